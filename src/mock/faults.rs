//! Faults on purpose: what the server does wrong, and to which requests.

use std::time::Duration;

/// What goes wrong. The default is nothing.
///
/// "Request" means one to a generating endpoint; they are numbered over all threads from 0, in the order in which
/// they were complete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Requests that get another answer than the one they asked for.
    pub answer: Option<(When, Answer)>,
    /// Answers that break off.
    pub cut: Option<(When, Cut)>,
    /// Body fields that are refused with 400, as a server that validates strictly does: `ignore_eos`, or
    /// `stream_options.continuous_usage_stats` for a field inside another.
    pub refused_fields: Vec<String>,
    /// Close the connection after each answer.
    pub close_after_answer: bool,
    /// How long connections wait to be accepted; `Duration::MAX`: for ever. Together with a small backlog, connects
    /// time out.
    pub accept_delay: Duration,
}

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// All.
    Always,
    /// Every `n`-th: numbers `n-1`, `2n-1`, ...; none for 0.
    EveryNth(u64),
    /// The first `n`.
    First(u64),
}

/// An answer that is not the one asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The connection ends without a byte.
    Close,
    /// 200 with a page of HTML, as from something in between that is no LLM server.
    Html,
    /// A whole JSON answer although a stream was asked for.
    PlainJson,
    /// The connection is reset without a byte.
    Reset,
    /// Nothing, for ever.
    Silence,
    /// An error object with this status.
    Status {
        /// The status, 400 to 599.
        status: u16,
        /// `Retry-After`, s.
        retry_after_s: Option<u32>,
    },
}

/// Where an answer breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// In place of the content event with this number, counted over all choices from 0. A whole answer is cut in the
    /// middle of its body.
    pub after_events: u64,
    /// How.
    pub how: Break,
}

/// How an answer breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// The connection ends (FIN), without the end of the body.
    Close,
    /// An error event, `[DONE]` and a clean end, as vLLM does when its engine dies; status 500 for a whole answer.
    ErrorEvent,
    /// Half of the event, then the connection ends (FIN).
    Half,
    /// The connection is reset (RST).
    Reset,
    /// Nothing more comes; the connection stays open.
    Stall,
}

impl When {
    /// Whether request `number` is one of them.
    #[must_use]
    pub fn includes(self, number: u64) -> bool {
        match self {
            When::Always => true,
            When::EveryNth(0) => false,
            When::EveryNth(n) => number % n == n - 1,
            When::First(n) => number < n,
        }
    }
}

impl Faults {
    pub(super) fn answer_to(&self, number: u64) -> Option<Answer> {
        self.answer.and_then(|(when, answer)| when.includes(number).then_some(answer))
    }

    pub(super) fn cut_of(&self, number: u64) -> Option<Cut> {
        self.cut.and_then(|(when, cut)| when.includes(number).then_some(cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_and_nth_count_from_one() {
        let of = |when: When| (0..6).filter(|n| when.includes(*n)).collect::<Vec<_>>();
        assert_eq!(of(When::Always), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of(When::First(2)), [0, 1]);
        assert_eq!(of(When::EveryNth(3)), [2, 5]);
        assert_eq!(of(When::EveryNth(1)), [0, 1, 2, 3, 4, 5]);
        assert!(of(When::EveryNth(0)).is_empty());
    }
}
