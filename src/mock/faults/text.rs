//! The words for faults, as the truth names them and the command line reads them: `stall`, `stall=5`,
//! `http-503-retry-after=2`.

use std::fmt;
use std::time::Duration;

use super::{Answer, Break, Cut, Delivery, Farewell, Fault, Flaw};

/// The number in `http-CODE` is not part of its word.
pub const HTTP: &str = "http-";
/// What follows `http-CODE` where the answer says when to come again.
pub const RETRY_AFTER: &str = "-retry-after";
/// What follows [`RETRY_AFTER`] if nothing else is said, s.
pub const RETRY_AFTER_S: u32 = 1;

impl Fault {
    /// The word of every fault but the HTTP errors, with the fault that the word alone means.
    pub const NAMED: [(&str, Fault); 25] = [
        ("bad-json", cut(Break::BadJson)),
        ("bundle", Fault::Delivery(Delivery::Bundle(4))),
        ("byte-segments", Fault::Delivery(Delivery::ByteSegments)),
        ("close", cut(Break::Close)),
        ("close-before", Fault::Answer(Answer::Close)),
        ("close-idle", Fault::Farewell(Farewell::Idle(Duration::ZERO))),
        ("comments", Fault::Delivery(Delivery::Comments)),
        ("connection-close", Fault::Farewell(Farewell::Announced)),
        ("crlf", Fault::Delivery(Delivery::Crlf)),
        ("empty", Fault::Flaw(Flaw::Empty)),
        ("error-event", cut(Break::ErrorEvent)),
        ("giant", Fault::Delivery(Delivery::Giant(1_310_720))),
        ("html", Fault::Answer(Answer::Html)),
        ("json-body", Fault::Answer(Answer::PlainJson)),
        ("missing-done", Fault::Flaw(Flaw::NoDone)),
        ("missing-finish", Fault::Flaw(Flaw::NoFinish)),
        ("missing-usage", Fault::Flaw(Flaw::NoUsage)),
        ("reset", cut(Break::Reset)),
        ("reset-before", Fault::Answer(Answer::Reset)),
        ("silence", Fault::Answer(Answer::Silence)),
        ("slow-headers", Fault::Delivery(Delivery::SlowHead(Duration::from_secs(1)))),
        ("split-utf8", Fault::Delivery(Delivery::SplitUtf8)),
        ("stall", cut(Break::Stall)),
        ("truncated-chunk", cut(Break::Half)),
        ("wrong-type", Fault::Flaw(Flaw::WrongType)),
    ];

    /// The same kind of fault with the value of its own that `number` is: the place of a cut, the events of a bundle,
    /// the bytes of a giant. `None` if it has none of this sort, or not this one.
    #[must_use]
    pub fn with_number(self, number: u64) -> Option<Fault> {
        match self {
            Fault::Cut(Cut { how, .. }) => Some(Fault::Cut(Cut { after_events: number, how })),
            Fault::Delivery(Delivery::Bundle(_)) => match u32::try_from(number) {
                Ok(events @ 1..) => Some(Fault::Delivery(Delivery::Bundle(events))),
                _ => None,
            },
            Fault::Delivery(Delivery::Giant(_)) => match u32::try_from(number) {
                Ok(bytes) if (GIANT_BYTES_MIN..=GIANT_BYTES_MAX).contains(&bytes) => {
                    Some(Fault::Delivery(Delivery::Giant(bytes)))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Which numbers [`with_number`](Fault::with_number) takes, for a message: `events from 1` or the like; `None` if it
    /// takes none.
    #[must_use]
    pub fn numbers(self) -> Option<String> {
        match self {
            Fault::Cut(_) => Some("the number of an event, from 0".to_owned()),
            Fault::Delivery(Delivery::Bundle(_)) => Some(format!("events, from 1 to {}", u32::MAX)),
            Fault::Delivery(Delivery::Giant(_)) => {
                Some(format!("bytes, from {GIANT_BYTES_MIN} to {GIANT_BYTES_MAX}"))
            }
            _ => None,
        }
    }

    /// The same kind of fault with another time. `None` if it has none.
    #[must_use]
    pub fn with_time(self, time: Duration) -> Option<Fault> {
        match self {
            Fault::Delivery(Delivery::SlowHead(_)) => Some(Fault::Delivery(Delivery::SlowHead(time))),
            Fault::Farewell(Farewell::Idle(_)) => Some(Fault::Farewell(Farewell::Idle(time))),
            _ => None,
        }
    }

    /// Its number or its time, as `=` is followed by it.
    fn value(self) -> Option<String> {
        match self {
            Fault::Cut(Cut { after_events, .. }) => Some(after_events.to_string()),
            Fault::Delivery(Delivery::Bundle(number) | Delivery::Giant(number)) => Some(number.to_string()),
            Fault::Delivery(Delivery::SlowHead(time)) | Fault::Farewell(Farewell::Idle(time)) => {
                Some(format!("{}ms", time.as_secs_f64() * 1e3))
            }
            _ => None,
        }
    }

    /// Its word.
    fn word(self) -> &'static str {
        match self {
            Fault::Answer(Answer::Close) => "close-before",
            Fault::Answer(Answer::Html) => "html",
            Fault::Answer(Answer::PlainJson) => "json-body",
            Fault::Answer(Answer::Reset) => "reset-before",
            Fault::Answer(Answer::Silence) => "silence",
            Fault::Answer(Answer::Status { .. }) => HTTP,
            Fault::Cut(Cut { how: Break::BadJson, .. }) => "bad-json",
            Fault::Cut(Cut { how: Break::Close, .. }) => "close",
            Fault::Cut(Cut { how: Break::ErrorEvent, .. }) => "error-event",
            Fault::Cut(Cut { how: Break::Half, .. }) => "truncated-chunk",
            Fault::Cut(Cut { how: Break::Reset, .. }) => "reset",
            Fault::Cut(Cut { how: Break::Stall, .. }) => "stall",
            Fault::Delivery(Delivery::Bundle(_)) => "bundle",
            Fault::Delivery(Delivery::ByteSegments) => "byte-segments",
            Fault::Delivery(Delivery::Comments) => "comments",
            Fault::Delivery(Delivery::Crlf) => "crlf",
            Fault::Delivery(Delivery::Giant(_)) => "giant",
            Fault::Delivery(Delivery::SlowHead(_)) => "slow-headers",
            Fault::Delivery(Delivery::SplitUtf8) => "split-utf8",
            Fault::Farewell(Farewell::Announced) => "connection-close",
            Fault::Farewell(Farewell::Idle(_)) => "close-idle",
            Fault::Flaw(Flaw::Empty) => "empty",
            Fault::Flaw(Flaw::NoDone) => "missing-done",
            Fault::Flaw(Flaw::NoFinish) => "missing-finish",
            Fault::Flaw(Flaw::NoUsage) => "missing-usage",
            Fault::Flaw(Flaw::WrongType) => "wrong-type",
        }
    }
}

const fn cut(how: Break) -> Fault {
    Fault::Cut(Cut { after_events: 2, how })
}

impl fmt::Display for Fault {
    /// The word, and the value where it is not the word's own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.word();
        if let Fault::Answer(Answer::Status { status, retry_after_s }) = self {
            write!(f, "{word}{status}")?;
            return match retry_after_s {
                None => Ok(()),
                Some(RETRY_AFTER_S) => f.write_str(RETRY_AFTER),
                Some(seconds) => write!(f, "{RETRY_AFTER}={seconds}"),
            };
        }
        match self.value() {
            Some(value) if !Fault::NAMED.contains(&(word, *self)) => write!(f, "{word}={value}"),
            _ => f.write_str(word),
        }
    }
}

/// Smaller events than a client reads at once are not unusual: nothing would go wrong.
const GIANT_BYTES_MIN: u32 = 64 << 10;
/// Larger events than a client may be expected to take are no test of it.
const GIANT_BYTES_MAX: u32 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_has_one_word() {
        for (word, fault) in Fault::NAMED {
            assert_eq!(fault.to_string(), word);
        }
        let mut words: Vec<_> = Fault::NAMED.iter().map(|(word, _)| word).collect();
        words.dedup();
        assert!(words.is_sorted() && words.len() == Fault::NAMED.len());
    }

    #[test]
    fn values_stand_behind_the_word_unless_they_are_its_own() {
        let named = |word| Fault::NAMED.iter().find(|(name, _)| *name == word).unwrap().1;
        assert_eq!(named("stall").with_number(0).unwrap().to_string(), "stall=0");
        assert_eq!(named("stall").with_number(2).unwrap().to_string(), "stall");
        assert_eq!(named("bundle").with_number(0), None);
        let giant = |bytes| named("giant").with_number(bytes).map(|fault| fault.to_string());
        assert_eq!(giant(65_536).as_deref(), Some("giant=65536"));
        assert_eq!(giant(64 << 20).as_deref(), Some("giant=67108864"));
        assert_eq!([giant(65_535), giant((64 << 20) + 1), giant(1 << 40)], [None, None, None]);
        assert_eq!(named("crlf").with_number(1), None);
        let slow = named("slow-headers").with_time(Duration::from_millis(50)).unwrap();
        assert_eq!(slow.to_string(), "slow-headers=50ms");
        assert_eq!(named("html").with_time(Duration::ZERO), None);
        let status = |retry_after_s| Fault::Answer(Answer::Status { status: 503, retry_after_s }).to_string();
        assert_eq!(
            [status(None), status(Some(1)), status(Some(9))],
            ["http-503", "http-503-retry-after", "http-503-retry-after=9"]
        );
    }
}
