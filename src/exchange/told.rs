//! What an exchange is told, and what it tells: reads, what was asked, where its text goes, and what it waits for.

use std::sync::Arc;

use crate::api::talk::Fragment;
use crate::api::{Channel, Dialect, Shape};
use crate::metrics::TimeoutPhase;
use crate::time::Stamp;

/// One read from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Right after the read returned.
    pub read: Stamp,
    /// The kernel's receive stamp of the last byte of the read, where the machine gives one.
    pub kernel: Option<Stamp>,
    /// Number of the read on its connection: content events of one read are coalesced.
    pub read_no: u64,
    /// The client was not there when bytes may have come: it was busy or asleep for too long. Only then do several
    /// events of one read say nothing of the server; else it sent them together.
    pub late: bool,
}

/// What was asked, as far as the reading of the answer depends on it.
// What reading an event depends on comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Ask {
    /// Where its parts stand, for [`Dialect::Raw`].
    pub raw: Option<Arc<Shape>>,
    /// The token, from 1, with which the user goes away; 0 for one who waits for all of them. Where the server does not
    /// count tokens as it goes, content events are counted.
    pub leaves_with: u32,
    /// Dialect of the answer.
    pub dialect: Dialect,
    /// Asked as a stream.
    pub stream: bool,
    /// Answers expected: choices per prompt times prompts, at least 1.
    pub answers: u32,
    /// Prompts in the request, at least 1.
    pub prompts: u32,
    /// Output tokens asked for, 0 if open.
    pub max_tokens: u32,
    /// The field of the head in which a replica says who it is; `None`: it is not looked for.
    pub replica_header: Option<Arc<str>>,
}

impl Ask {
    /// Bytes, from the start of this struct, of what reading an event depends on.
    pub(super) const HOT: usize = std::mem::offset_of!(Ask, answers);
}

impl Default for Ask {
    fn default() -> Ask {
        Ask {
            dialect: Dialect::OpenaiChat,
            raw: None,
            stream: true,
            answers: 1,
            prompts: 1,
            max_tokens: 0,
            leaves_with: 0,
            replica_header: None,
        }
    }
}

/// Receives what the record does not keep. All methods do nothing unless overridden.
pub trait Sink {
    /// Whether [`Sink::piece`] wants the text of the answer; decoding it costs time.
    const WANTS_TEXT: bool;

    /// An interim (1xx) response.
    fn interim(&mut self, _status: u16) {}
    /// A piece of text, in order of arrival. Empty where the text was not wanted.
    fn piece(&mut self, _choice: u32, _channel: Channel, _text: &str) {}
    /// A part of a call that the answer makes, beside its pieces.
    fn call(&mut self, _choice: u32, _fragment: &Fragment<'_>) {}
    /// A content event; its pieces came before it.
    fn content_event(&mut self, _event: &ContentEvent) {}
}

/// A content event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentEvent {
    /// The read that completed it.
    pub at: Arrival,
    /// Its place among the dispatched events, from 0.
    pub index: u64,
    /// Its tokens, 1 where unknown.
    pub tokens: u32,
}

/// A sink for those who want only the record.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSink;

impl Sink for NoSink {
    const WANTS_TEXT: bool = false;
}

/// Whether an exchange waits for more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Progress {
    /// More bytes, an end or a timeout must come.
    Pending,
    /// The outcome is final and nothing more is read.
    Over,
}

/// Which limit of ours is running. `phase` is `None` once the answer is over and only the end of the framing is
/// awaited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The limit.
    pub phase: Option<TimeoutPhase>,
    /// Since when.
    pub since: Stamp,
}
