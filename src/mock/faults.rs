//! Faults on purpose: what the server does wrong, to which requests, and when it is not there at all.
//!
//! Which request gets which fault is decided here, once per request. What a fault does is done by those whose work it
//! spoils: `connection` for [`Answer`], [`Delivery`] and [`Farewell`], `generation` for [`Cut`] and [`Flaw`], `shard`
//! for [`Outage`]. Their names on the command line are [`text`]'s.

mod text;

use std::time::Duration;

use crate::rng::{self, Purpose};

pub use text::{HTTP, RETRY_AFTER, RETRY_AFTER_S};

/// What goes wrong. The default is nothing.
///
/// "Request" means one to a generating endpoint; they are numbered over all threads from 0, in the order in which
/// they were complete.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Which requests meet which fault. At most one each: the first in this order that includes the request. One
    /// draw per request serves all that go by [`When::Chance`], so their shares are kept exactly and add up.
    pub requests: Vec<(When, Fault)>,
    /// When nobody is there.
    pub outages: Vec<Outage>,
    /// Body fields that are refused with 400, as a server that validates strictly does: `ignore_eos`, or
    /// `stream_options.continuous_usage_stats` for a field inside another.
    pub refused_fields: Vec<String>,
    /// How long connections wait to be accepted; `Duration::MAX`: for ever. Together with a small backlog, connects
    /// time out.
    pub accept_delay: Duration,
}

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    /// All.
    Always,
    /// Each with this probability, 0 to 1, drawn from the server's seed and the request's number.
    Chance(f64),
    /// Every `n`-th: numbers `n-1`, `2n-1`, ...; none for 0.
    EveryNth(u64),
    /// The first `n`.
    First(u64),
}

/// What is wrong with one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not the one asked for.
    Answer(Answer),
    /// It breaks off.
    Cut(Cut),
    /// It comes in an unusual way, but whole.
    Delivery(Delivery),
    /// The connection ends after it.
    Farewell(Farewell),
    /// A part of it is missing or wrong.
    Flaw(Flaw),
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
    /// In place of the content event with this number, counted over all choices from 0; of the last one if there are
    /// not as many. A whole answer is cut in the middle of its body.
    pub after_events: u64,
    /// How.
    pub how: Break,
}

/// How an answer breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// An event whose data is not JSON, `[DONE]` and a clean end. A whole answer loses the second half of its body,
    /// but its length says so.
    BadJson,
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

/// How a whole answer comes. `ByteSegments`, `SlowHead` and `SplitUtf8` concern one that is not streamed, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// This many events in one send; the first of them wait for the last.
    Bundle(u32),
    /// Each byte in a send of its own.
    ByteSegments,
    /// A comment line before every event, as servers send to keep proxies patient.
    Comments,
    /// Lines end with CRLF instead of LF.
    Crlf,
    /// The first content event carries this many further bytes.
    Giant(u32),
    /// Half of the head at once, everything else after this time.
    SlowHead(Duration),
    /// Words with letters of two to four bytes, and a send ends in the middle of each such letter.
    SplitUtf8,
}

/// How the connection ends after a whole answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// At once, and the answer's head says so.
    Announced,
    /// After it has been idle for this time, without a word: a request on its way then meets nobody.
    Idle(Duration),
}

/// What is missing or wrong in an answer that comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Not a single token.
    Empty,
    /// No `[DONE]`, or what ends a stream of an API without it.
    NoDone,
    /// Neither a finish reason nor `[DONE]`.
    NoFinish,
    /// No usage although it was asked for.
    NoUsage,
    /// Event stream and JSON alike are declared as HTML.
    WrongType,
}

/// Why faults cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultError {
    /// A probability is not from 0 to 1.
    Probability,
    /// The probabilities are more than 1 together.
    Sum,
}

/// A time in which nobody is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// What is affected.
    pub reach: Reach,
    /// When it begins, since the start of the server.
    pub start: Duration,
    /// How long it lasts.
    pub length: Duration,
}

/// What an outage affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// New connections are refused; open ones go on.
    Listener,
    /// As if the process were gone: new connections are refused and open ones reset.
    Server,
}

impl When {
    /// Whether request `number` is one of them, where no chance decides.
    fn includes(self, number: u64) -> bool {
        match self {
            When::Always => true,
            When::Chance(_) | When::EveryNth(0) => false,
            When::EveryNth(n) => number % n == n - 1,
            When::First(n) => number < n,
        }
    }
}

impl Faults {
    /// One fault for all requests.
    #[must_use]
    pub fn always(fault: Fault) -> Faults {
        Faults::when(When::Always, fault)
    }

    /// One fault for some requests.
    #[must_use]
    pub fn when(when: When, fault: Fault) -> Faults {
        Faults { requests: vec![(when, fault)], ..Faults::default() }
    }

    /// Whether it can be done.
    ///
    /// # Errors
    /// A probability is not one, or they add up to more than 1.
    pub fn check(&self) -> Result<(), FaultError> {
        let mut sum = 0.0;
        for (when, _) in &self.requests {
            if let When::Chance(chance) = when {
                if !(0.0..=1.0).contains(chance) {
                    return Err(FaultError::Probability);
                }
                sum += chance;
            }
        }
        // Twenty times 0.05 is a little more than 1 in binary.
        if sum > 1.0 + 1e-9 { Err(FaultError::Sum) } else { Ok(()) }
    }

    /// The place in `requests` of the fault that request `number` meets.
    pub(super) fn of(&self, seed: u64, number: u64) -> Option<usize> {
        // Without faults nothing is drawn.
        if self.requests.is_empty() {
            return None;
        }
        let draw = rng::unit(&mut rng::stream(seed, Purpose::MockFault, number));
        let mut below = 0.0;
        self.requests.iter().position(|(when, _)| match when {
            When::Chance(chance) => {
                below += chance;
                draw < below
            }
            when => when.includes(number),
        })
    }
}

impl Fault {
    pub(super) fn cut(self) -> Option<Cut> {
        if let Fault::Cut(cut) = self { Some(cut) } else { None }
    }

    pub(super) fn delivery(self) -> Option<Delivery> {
        if let Fault::Delivery(delivery) = self { Some(delivery) } else { None }
    }

    pub(super) fn farewell(self) -> Option<Farewell> {
        if let Fault::Farewell(farewell) = self { Some(farewell) } else { None }
    }

    pub(super) fn flaw(self) -> Option<Flaw> {
        if let Fault::Flaw(flaw) = self { Some(flaw) } else { None }
    }

    /// Whether it holds content back, so that what was due and what was sent do not belong together.
    pub(super) fn delays(self) -> bool {
        matches!(self.delivery(), Some(Delivery::Bundle(_) | Delivery::SlowHead(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RESET: Fault = Fault::Answer(Answer::Reset);
    const CLOSE: Fault = Fault::Answer(Answer::Close);

    #[test]
    fn first_and_nth_count_from_one() {
        let of = |when: When| {
            let faults = Faults::when(when, RESET);
            (0..6).filter(|n| faults.of(1, *n).is_some()).collect::<Vec<_>>()
        };
        assert_eq!(of(When::Always), [0, 1, 2, 3, 4, 5]);
        assert_eq!(of(When::First(2)), [0, 1]);
        assert_eq!(of(When::EveryNth(3)), [2, 5]);
        assert_eq!(of(When::EveryNth(1)), [0, 1, 2, 3, 4, 5]);
        assert!(of(When::EveryNth(0)).is_empty());
        assert!(of(When::Chance(0.0)).is_empty());
        assert_eq!(of(When::Chance(1.0)).len(), 6);
    }

    #[test]
    fn one_draw_serves_all_chances_and_each_keeps_its_share() {
        let faults = Faults {
            requests: vec![(When::Chance(0.1), RESET), (When::Chance(0.3), CLOSE)],
            ..Faults::default()
        };
        let mut counts = [0u32; 3];
        for number in 0..20_000 {
            counts[faults.of(5, number).unwrap_or(2)] += 1;
        }
        // Five standard deviations of the binomials.
        for (count, share) in counts.into_iter().zip([0.1, 0.3, 0.6]) {
            let variance: f64 = 20_000.0 * share * (1.0 - share);
            let width = 5.0 * variance.sqrt();
            assert!((f64::from(count) - 20_000.0 * share).abs() < width, "{counts:?}");
        }
        let again: Vec<_> = (0..100).map(|n| faults.of(5, n)).collect();
        assert_eq!(again, (0..100).map(|n| faults.of(5, n)).collect::<Vec<_>>());
        assert_ne!(again, (0..100).map(|n| faults.of(6, n)).collect::<Vec<_>>());
    }

    #[test]
    fn the_first_that_includes_a_request_wins() {
        let faults =
            Faults { requests: vec![(When::First(1), RESET), (When::Always, CLOSE)], ..Faults::default() };
        assert_eq!((faults.of(1, 0), faults.of(1, 1)), (Some(0), Some(1)));
    }

    #[test]
    fn chances_are_shares_of_one() {
        let of = |chances: &[f64]| {
            let requests = chances.iter().map(|chance| (When::Chance(*chance), RESET)).collect();
            Faults { requests, ..Faults::default() }.check()
        };
        assert_eq!(of(&[0.05; 20]), Ok(()));
        assert_eq!(of(&[0.6, 0.5]), Err(FaultError::Sum));
        assert_eq!(of(&[1.5]), Err(FaultError::Probability));
        assert_eq!(of(&[-0.1]), Err(FaultError::Probability));
        assert_eq!(of(&[f64::NAN]), Err(FaultError::Probability));
    }
}
