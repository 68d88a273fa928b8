//! What became of one generation request, as the server sees it.

use std::hash::Hasher as _;

use super::faults::Fault;
use super::generation::Content;
use crate::time::Stamp;

/// One generation request. Stamps count from the start of the server and are taken immediately before a send, so
/// that they hold neither the kernel's part nor the client's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Number of the request, over all threads from 0.
    pub number: u64,
    /// What was wrong on purpose.
    pub fault: Option<Fault>,
    /// A stream was asked for and given.
    pub stream: bool,
    /// Number of choices.
    pub choices: u32,
    /// When its last byte was read.
    pub arrived: Stamp,
    /// The first content event, or the whole answer.
    pub first: Option<Write>,
    /// The last content event, or the whole answer.
    pub last: Option<Write>,
    /// When the server was done with it.
    pub ended: Stamp,
    /// Tokens of the prompt, 0 if it was not understood.
    pub prompt_tokens: u32,
    /// Those of them that came out of a cache; `None` where the model has none.
    pub cached_tokens: Option<u32>,
    /// Tokens sent.
    pub tokens: u32,
    /// Content events sent.
    pub events: u32,
    /// HTTP status of the answer, 0 if there was none.
    pub status: u16,
    /// How it ended.
    pub ending: Ending,
    /// [`mark`] of its body, by which its sender knows it again; 0 where accounts are not kept.
    pub mark: u64,
}

/// A number that tells bodies of requests apart: the same bytes have the same in every process of one build.
#[must_use]
pub fn mark(body: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(body);
    hasher.finish()
}

/// When something was to be sent and when it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// When it was due.
    pub due: Stamp,
    /// When it was handed to the kernel.
    pub sent: Stamp,
}

/// How a request ended, as the server sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ending {
    /// It broke off on purpose.
    BrokenOff,
    /// The client went away before the end.
    ClientLeft,
    /// Sent to its end, as asked for.
    Complete,
    /// It ended in good order but was no proper answer, on purpose.
    Failed,
    /// Answered with an HTTP error.
    Refused,
    /// The server went down, or was stopped.
    Stopped,
}

impl Ending {
    /// All of them, in the order of the type.
    pub const ALL: [Ending; 6] = [
        Ending::BrokenOff,
        Ending::ClientLeft,
        Ending::Complete,
        Ending::Failed,
        Ending::Refused,
        Ending::Stopped,
    ];

    /// As files name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Ending::BrokenOff => "broken_off",
            Ending::ClientLeft => "client_left",
            Ending::Complete => "complete",
            Ending::Failed => "failed",
            Ending::Refused => "refused",
            Ending::Stopped => "stopped",
        }
    }
}

impl Account {
    /// Of a request that was complete at `now`.
    pub(super) fn new(number: u64, fault: Option<Fault>, now: Stamp) -> Account {
        Account {
            number,
            fault,
            stream: false,
            choices: 1,
            arrived: now,
            first: None,
            last: None,
            ended: now,
            prompt_tokens: 0,
            cached_tokens: None,
            tokens: 0,
            events: 0,
            status: 0,
            ending: Ending::BrokenOff,
            mark: 0,
        }
    }

    /// A content event is sent.
    pub(super) fn on_content(&mut self, content: &Content, sent: Stamp) {
        let write = Write { due: content.due, sent };
        self.first.get_or_insert(write);
        self.last = Some(write);
        self.events += 1;
        self.tokens += content.tokens;
    }

    /// From the request's last byte to its first content event; `None` without a stream.
    #[must_use]
    pub fn ttft_ns(&self) -> Option<u64> {
        self.first.filter(|_| self.stream).map(|first| first.sent.nanos_since(self.arrived))
    }

    /// From the request's last byte to its last content event, or to the whole answer.
    #[must_use]
    pub fn e2e_ns(&self) -> Option<u64> {
        self.last.map(|last| last.sent.nanos_since(self.arrived))
    }

    /// Time per token after the first; `None` for a single token or event, several choices, and without a stream.
    #[must_use]
    pub fn tpot_ns(&self) -> Option<u64> {
        let (first, last) = (self.first?, self.last?);
        let defined = self.stream && self.choices == 1 && self.tokens > 1 && self.events > 1;
        defined.then(|| last.sent.nanos_since(first.sent) / u64::from(self.tokens - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(events: &[(u64, u32)]) -> Account {
        let mut account = Account { stream: true, ..Account::new(0, None, Stamp::from_millis(100)) };
        for (ms, tokens) in events {
            let content = Content { choice: 0, tokens: *tokens, due: Stamp::from_millis(ms - 1) };
            account.on_content(&content, Stamp::from_millis(*ms));
        }
        account
    }

    #[test]
    fn times_are_those_of_the_first_and_last_event() {
        let account = account(&[(150, 2), (170, 2), (200, 2)]);
        assert_eq!(account.ttft_ns(), Some(50_000_000));
        assert_eq!(account.e2e_ns(), Some(100_000_000));
        assert_eq!(account.tpot_ns(), Some(10_000_000));
        assert_eq!(account.last.unwrap().due, Stamp::from_millis(199));
    }

    #[test]
    fn bodies_are_told_apart_by_their_marks() {
        assert_eq!(mark(b"{\"prompt\":\"a\"}"), mark(b"{\"prompt\":\"a\"}"));
        assert_ne!(mark(b"{\"prompt\":\"a\"}"), mark(b"{\"prompt\":\"b\"}"));
    }

    #[test]
    fn what_is_not_defined_is_not_there() {
        assert_eq!(account(&[]).e2e_ns(), None);
        assert_eq!(account(&[(150, 5)]).tpot_ns(), None);
        let several = Account { choices: 2, ..account(&[(150, 1), (160, 1)]) };
        assert_eq!((several.tpot_ns(), several.ttft_ns()), (None, Some(50_000_000)));
        let whole = Account { stream: false, ..account(&[(150, 5)]) };
        assert_eq!((whole.ttft_ns(), whole.e2e_ns()), (None, Some(50_000_000)));
    }
}
