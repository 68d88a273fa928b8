//! What holds for any bytes that answer any request: the law beside the code, for the fuzzer and the corpus test.

use super::{Arrival, Ask, ContentEvent, Exchange, NoSink, Progress, Sink, Usages};
use std::sync::Arc;

use crate::api::{Channel, Dialect, Finish, Raw, Shape};
use crate::metrics::{Class, Flags, Gaps, Record, TimeoutPhase};
use crate::time::Stamp;
use crate::wire::cuts::Cuts;
use crate::wire::json::Json;

/// Plays a request: the first byte says what was asked, the second how the connection ends and which of the further
/// dialects is spoken, the third how long the reads are, and the rest is what the peer sends. Each read comes a millisecond after the one before.
///
/// # Panics
/// If cutting a read changes what is learned, if marks are out of order, if more is kept than came, if the outcome is
/// not final, or if reading the text as well changes the record.
pub fn fuzz_exchange(data: &[u8]) {
    let [ask, end, read_len, bytes @ ..] = data else { return };
    let life = Life {
        ask: ask_of(*ask, *end),
        resent: ask & 0x40 != 0,
        kernel: ask & 0x80 != 0,
        end: *end,
        read_len: match read_len {
            0 => usize::MAX,
            len => usize::from(*len) * 4,
        },
    };
    // One for all, since an exchange that was used must be as a new one.
    let (mut exchange, mut json) = (Exchange::new(), Json::new());
    let mut heard = Heard::default();
    let whole = life.play(&mut exchange, &mut json, bytes, None, &mut heard);
    check(&life, &whole, &heard);
    for cuts in Cuts::of(bytes) {
        let mut also_heard = Heard::default();
        let cut = life.play(&mut exchange, &mut json, bytes, Some(cuts), &mut also_heard);
        assert_eq!(cut, whole, "{cuts:?} changed what is learned");
        assert_eq!(also_heard, heard, "{cuts:?} changed what is said");
    }
    let without_text = life.play(&mut Exchange::new(), &mut json, bytes, None, &mut NoSink);
    assert_eq!(without_text, whole, "the text was not wanted, and that changed what is learned");
}

/// `end` holds one of six ends, and six times the place of the dialect; of the first two, `bits` chooses.
fn ask_of(bits: u8, end: u8) -> Ask {
    let answers = u32::from(bits >> 2 & 3) + 1;
    let dialect = match usize::from(end / 6) {
        0 => Dialect::ALL[usize::from(bits & 1)],
        place => {
            let place = (place + 1) % (Dialect::ALL.len() + 1);
            Dialect::ALL.get(place).copied().unwrap_or(Dialect::Raw)
        }
    };
    Ask {
        dialect,
        raw: raw_of(dialect),
        stream: bits & 2 == 0,
        answers,
        prompts: if bits & 0x10 == 0 { 1 } else { answers },
        max_tokens: if bits & 0x20 == 0 { 0 } else { 8 },
        // The dialects come round several times: from then on the user has enough of three tokens.
        leaves_with: if end < LEAVES_FROM { 0 } else { 3 },
        replica_header: None,
    }
}

/// Ends from here on are those of users who go away.
const LEAVES_FROM: u8 = 120;

/// Places that other dialects have, too, so that their seeds say something.
fn raw_of(dialect: Dialect) -> Option<Arc<Shape>> {
    let raw = Raw {
        content: "/choices/0/delta/content".to_owned(),
        finish: Some("/choices/0/finish_reason".to_owned()),
        output_tokens: Some("/usage/completion_tokens".to_owned()),
        ..Raw::default()
    };
    raw.shape().ok().filter(|_| dialect == Dialect::Raw).map(Arc::new)
}

/// All about a request but the bytes that answer it.
struct Life {
    ask: Ask,
    resent: bool,
    kernel: bool,
    end: u8,
    read_len: usize,
}

/// Everything that a caller can learn of it.
#[derive(Debug, PartialEq)]
struct Learned {
    record: Record,
    gaps: Gaps,
    kernel_gaps: Gaps,
    usages: Usages,
    message: String,
    dispatched: u64,
    done: bool,
    finish: Option<Finish>,
    reusable: bool,
    progress: Progress,
}

impl Life {
    fn play<S: Sink>(
        &self,
        exchange: &mut Exchange,
        json: &mut Json,
        bytes: &[u8],
        mut cuts: Option<Cuts>,
        sink: &mut S,
    ) -> Learned {
        exchange.begin(self.ask.clone(), Record::planned(0, Stamp::from_millis(1)));
        exchange.on_start(Stamp::from_millis(2));
        exchange.on_connected(Stamp::from_millis(3), self.resent);
        if self.resent {
            exchange.resend();
        }
        exchange.on_sent(Stamp::from_millis(4));
        let (mut ms, mut fed) = (10, 0);
        let mut progress = Progress::Pending;
        for read in bytes.chunks(self.read_len) {
            ms += 1;
            let kernel = self.kernel.then(|| Stamp::from_millis(ms - 5));
            let at = Arrival { read: Stamp::from_millis(ms), kernel, read_no: ms, late: ms % 3 == 0 };
            let mut rest = read;
            while !rest.is_empty() {
                let len = cuts.as_mut().map_or(rest.len(), |cuts| cuts.next_len(rest.len()));
                let (piece, later) = rest.split_at(len);
                rest = later;
                fed += piece.len();
                progress = exchange.on_bytes(&at, piece, json, sink);
                let kept = exchange.buffered_bytes();
                assert!(kept <= 2 * fed, "{kept} bytes are kept of {fed}");
            }
        }
        if progress == Progress::Pending {
            progress = self.end(exchange, Stamp::from_millis(ms + 1), json, sink);
        }
        let learned = learn(exchange, progress);
        if progress == Progress::Over {
            let _ = exchange.on_eof(Stamp::from_millis(ms + 7), json, sink);
            let late = Stamp::from_millis(ms + 8);
            let _ = exchange.on_timeout(late, TimeoutPhase::Gap);
            let at = Arrival { read: late, kernel: None, read_no: 0, late: true };
            let _ = exchange.on_bytes(&at, b"HTTP/1.1 200 OK\r\n\r\n", json, sink);
            assert_eq!(*exchange.record(), learned.record, "what is over has changed");
            assert!(!exchange.reusable());
        }
        learned
    }

    fn end<S: Sink>(&self, exchange: &mut Exchange, now: Stamp, json: &mut Json, sink: &mut S) -> Progress {
        match self.end % 6 {
            0 => exchange.on_eof(now, json, sink),
            1 => exchange.on_reset(now),
            2 => {
                let phase = exchange.waiting_for().phase.unwrap_or(TimeoutPhase::Gap);
                exchange.on_timeout(now, phase)
            }
            3 => exchange.on_timeout(now, TimeoutPhase::Total),
            4 => exchange.on_abandoned(now),
            _ => Progress::Pending,
        }
    }
}

fn learn(exchange: &Exchange, progress: Progress) -> Learned {
    Learned {
        record: *exchange.record(),
        gaps: exchange.gaps().clone(),
        kernel_gaps: exchange.kernel_gaps().clone(),
        usages: *exchange.usages(),
        message: exchange.message().to_owned(),
        dispatched: exchange.dispatched(),
        done: exchange.done(),
        finish: exchange.finish(),
        reusable: exchange.reusable(),
        progress,
    }
}

fn check(life: &Life, learned: &Learned, heard: &Heard) {
    let record = &learned.record;
    let marks =
        [Some(record.plan), Some(record.start), record.byte, record.first, record.answer, record.last];
    let order: Vec<Stamp> = marks.into_iter().flatten().collect();
    assert!(order.is_sorted(), "marks out of order: {record:?}");
    assert_eq!(record.events, heard.content_events);
    let spoke = record.events > 0;
    assert_eq!((record.first.is_some(), record.last.is_some()), (spoke, spoke));
    assert_eq!(
        (record.kernel_first.is_some(), record.kernel_last.is_some()),
        (spoke && life.kernel, spoke && life.kernel)
    );
    if life.ask.answers == 1 {
        assert_eq!(learned.gaps.len(), record.events.saturating_sub(1) as usize);
    }
    assert_eq!(learned.kernel_gaps.len(), if life.kernel { learned.gaps.len() } else { 0 });
    assert!(learned.message.len() <= super::answer::SAID_BYTES_MAX, "a message without bounds");
    if learned.progress == Progress::Pending {
        return;
    }
    assert!(record.last.is_none_or(|last| last <= record.end), "the end before the last: {record:?}");
    assert_eq!(record.stall_ns.get(), learned.gaps.stall());
    let whole_body = record.flags.contains(Flags::WHOLE_BODY);
    match record.outcome.class {
        Class::Ok => assert!(spoke || whole_body, "a success that said nothing: {record:?}"),
        Class::Unfinished => assert_eq!(life.end % 6, 4, "no outcome: {record:?}"),
        Class::Cancelled => {
            assert!(life.ask.leaves_with > 0 && spoke && !learned.reusable, "nobody went away: {record:?}");
            assert_eq!(record.last, Some(record.end), "gone before or after the event: {record:?}");
        }
        Class::Connect => panic!("there was a connection: {record:?}"),
        _ => {}
    }
    assert!(!(learned.reusable && record.flags.contains(Flags::FRAMING_INCOMPLETE)));
}

/// What was said, and how often.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    texts: Vec<(u32, Channel, String)>,
    interim: Vec<u16>,
    content_events: u32,
}

impl Sink for Heard {
    const WANTS_TEXT: bool = true;

    fn interim(&mut self, status: u16) {
        self.interim.push(status);
    }

    fn piece(&mut self, choice: u32, channel: Channel, text: &str) {
        assert!(!text.is_empty());
        self.texts.push((choice, channel, text.to_owned()));
    }

    fn content_event(&mut self, event: &ContentEvent) {
        assert!(event.tokens > 0);
        self.content_events += 1;
    }
}
