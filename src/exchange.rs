//! The life of one request, from the planned send to its record: bytes and stamps in, a [`Record`] out.
//!
//! An [`Exchange`] owns no socket and reads no clock. It is driven in the same way by a script of (stamp, bytes), by
//! the simulation and by a connection. Law: cutting the bytes into other reads at equal stamps gives an equal
//! record.
//!
//! The framing is read to its end even after the answer is over (after `[DONE]`, or after a failure inside the
//! answer), because only then can the connection serve another request.

mod answer;
mod fuzz;
#[cfg(test)]
mod tests;
mod told;
mod usages;

use std::time::Duration;

use crate::api::{self, Frame, Framing};
use crate::metrics::tally::Gaps;
use crate::metrics::{Class, Flags, Handshake, Kind, Outcome, Record, TimeoutPhase};
use crate::sys::prefetch::prefetch;
use crate::time::Stamp;
use crate::wire::http::{self, ContentType, Part};
use crate::wire::json::Json;
use crate::wire::{lines, sse};

use answer::Answer;
#[doc(hidden)]
pub use fuzz::fuzz_exchange;
pub use told::{Arrival, Ask, ContentEvent, NoSink, Progress, Sink, Waiting};
pub use usages::Usages;

/// Why a connection ended before its response did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The peer closed in good order.
    Closed,
    /// The peer broke the connection.
    Reset,
    /// The framing became unreadable.
    Broken,
    /// Our own limit passed.
    Timeout(TimeoutPhase),
}

/// One request and its response.
// What each event needs fills whole lines of the cache: see `Exchange::prefetch`.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Exchange {
    answer: Answer,
    /// What the events of the answer have in common.
    frame: Frame,
    /// Collected text of a body that is not read as a stream; of failures its beginning.
    whole: Vec<u8>,
    sse: sse::Decoder,
    over: bool,
    behind: Behind,
    body: Body,
    http: http::Response,
    lines: lines::Decoder,
}

const _: () = {
    let hot = std::mem::offset_of!(Exchange, sse) + sse::Decoder::HOT;
    assert!(hot.is_multiple_of(64));
    assert!(std::mem::offset_of!(Exchange, http) + http::Response::HOT <= hot + 64);
};

/// What followed the response on its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    /// Nothing.
    Nothing,
    /// The first half of a line end.
    CarriageReturn,
    /// One line end: tolerated, in the spirit of RFC 9112, section 2.2.
    LineEnd,
    /// Bytes that belong to no response, an end of the connection, or an end of our patience.
    Unfit,
}

impl Behind {
    /// The same after one byte more; one at a time, so that a cut changes nothing.
    fn then(self, byte: u8) -> Behind {
        match (self, byte) {
            (Behind::Nothing, b'\r') => Behind::CarriageReturn,
            (Behind::Nothing | Behind::CarriageReturn, b'\n') => Behind::LineEnd,
            _ => Behind::Unfit,
        }
    }
}

/// How the body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// Not known yet.
    Unknown,
    /// Event stream.
    Events,
    /// One JSON object per line.
    Lines,
    /// Collected, then read as one answer.
    Whole,
    /// The status says failure, or the encoding is not ours: the beginning is kept for the message.
    Failure,
    /// A stream was asked for and something else came: the beginning decides whether it is an error object.
    NotAStream,
}

/// Most bytes kept of a body that only serves as a message.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// Most bytes of an answer that is read whole.
const WHOLE_BYTES_MAX: usize = 256 << 20;

impl Exchange {
    /// An exchange without a request yet; see [`Exchange::begin`].
    #[must_use]
    pub fn new() -> Exchange {
        Exchange {
            http: http::Response::new(http::Limits::default()),
            body: Body::Unknown,
            whole: Vec::new(),
            sse: sse::Decoder::new(sse::Limits::default()),
            lines: lines::Decoder::new(lines::Limits::default()),
            answer: Answer::new(),
            frame: Frame::new(),
            over: false,
            behind: Behind::Nothing,
        }
    }

    /// Takes up a request whose plan stands in `record`; the memory of the one before is used again.
    pub fn begin(&mut self, ask: Ask, record: Record) {
        self.restart();
        self.frame.clear();
        self.http.seek(ask.replica_header.clone());
        self.answer.begin(ask, record);
    }

    /// Forgets every byte of a response, because the request is sent again on a fresh connection. The clock is not
    /// restarted and the record says so.
    pub fn resend(&mut self) {
        self.restart();
        let record = &mut self.answer.record;
        record.flags.insert(Flags::RESENT);
        record.conn = None;
        record.handshake = None;
        record.sent = None;
        record.byte = None;
    }

    fn restart(&mut self) {
        self.http.reset();
        self.sse.reset();
        self.lines.reset();
        self.whole.clear();
        self.whole.shrink_to(MESSAGE_BYTES_MAX);
        self.body = Body::Unknown;
        self.over = false;
        self.behind = Behind::Nothing;
    }

    /// Taken in hand, before looking for a connection.
    pub fn on_start(&mut self, now: Stamp) {
        self.answer.on_start(now);
    }

    /// The connection is ready; `fresh` if it was opened for this request.
    pub fn on_connected(&mut self, now: Stamp, fresh: bool) {
        self.answer.record.conn = Some(now);
        if fresh {
            self.answer.record.flags.insert(Flags::FRESH_CONNECTION);
        }
    }

    /// The TLS handshake of the connection opened for this request took so long, and took up an earlier session or not.
    pub fn on_handshake(&mut self, took: Duration, resumed: bool) {
        self.answer.record.handshake = Some(Handshake::of(took, resumed));
    }

    /// The last request byte was handed to the kernel.
    pub fn on_sent(&mut self, now: Stamp) {
        self.answer.record.sent = Some(now);
    }

    /// Bytes may come soon: has what an event needs of this struct brought into the cache.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&self.over);
        self.answer.prefetch();
        self.frame.prefetch();
    }

    /// The same for what lies elsewhere; to be called once the struct itself is there.
    #[inline]
    pub fn prefetch_parts(&self) {
        self.answer.gaps.prefetch_next();
        self.answer.kernel_gaps.prefetch_next();
    }

    /// Bytes were read.
    pub fn on_bytes<S: Sink>(
        &mut self,
        at: &Arrival,
        bytes: &[u8],
        json: &mut Json,
        sink: &mut S,
    ) -> Progress {
        if !self.over && self.answer.record.byte.is_none() && !bytes.is_empty() {
            self.answer.record.byte = Some(at.read);
        }
        self.answer.on_read(at);
        let mut rest = bytes;
        while !self.over {
            match self.http.next(rest) {
                Ok(http::Step { used, part }) => {
                    rest = &rest[used..];
                    match part {
                        None => return Progress::Pending,
                        Some(Part::Interim(status)) => self.on_interim(status, at, rest.is_empty(), sink),
                        Some(Part::Head) => self.on_head(at),
                        Some(Part::Body(body)) => {
                            self.on_body(at, body, json, sink);
                            if self.answer.has_left() {
                                self.over = true;
                                self.behind = Behind::Unfit;
                            }
                        }
                        Some(Part::End) => self.on_end(at, json, sink),
                    }
                }
                Err(_) => self.cut(Cut::Broken, at.read),
            }
        }
        self.behind = rest.iter().fold(self.behind, |behind, byte| behind.then(*byte));
        Progress::Over
    }

    /// The peer closed the connection in good order.
    pub fn on_eof<S: Sink>(&mut self, now: Stamp, json: &mut Json, sink: &mut S) -> Progress {
        if !self.over {
            match self.http.on_eof() {
                Ok(_) => {
                    let at = Arrival { read: now, kernel: None, read_no: u64::MAX, late: false };
                    self.on_end(&at, json, sink);
                }
                Err(_) => self.cut(Cut::Closed, now),
            }
        }
        self.behind = Behind::Unfit;
        Progress::Over
    }

    /// The peer broke the connection, or sending failed.
    pub fn on_reset(&mut self, now: Stamp) -> Progress {
        if !self.over {
            self.cut(Cut::Reset, now);
        }
        self.behind = Behind::Unfit;
        Progress::Over
    }

    /// A limit of ours passed.
    pub fn on_timeout(&mut self, now: Stamp, phase: TimeoutPhase) -> Progress {
        if !self.over {
            self.cut(Cut::Timeout(phase), now);
        }
        self.behind = Behind::Unfit;
        Progress::Over
    }

    /// There will be no connection.
    pub fn on_no_connection(&mut self, now: Stamp, kind: Kind, message: &str) -> Progress {
        self.answer.fail(Outcome::new(Class::Connect, kind, 0), now, message);
        self.over = true;
        self.behind = Behind::Unfit;
        Progress::Over
    }

    /// The level ended, grace period included, and the request is still open.
    pub fn on_abandoned(&mut self, now: Stamp) -> Progress {
        if self.answer.done {
            self.cut(Cut::Closed, now);
        } else {
            let status = self.answer.record.outcome.status;
            self.answer.fail(Outcome::new(Class::Unfinished, Kind::None, status), now, "");
        }
        self.over = true;
        self.behind = Behind::Unfit;
        Progress::Over
    }

    /// The user goes away, as planned. An answer that is settled already has come before.
    pub fn on_leaving(&mut self, now: Stamp) -> Progress {
        if self.over || self.answer.is_settled() {
            return if self.over { Progress::Over } else { Progress::Pending };
        }
        self.answer.leave(now);
        self.over = true;
        self.behind = Behind::Unfit;
        Progress::Over
    }

    /// What the shard's deadline wheel has to watch: which limit is running, and since when.
    #[must_use]
    pub fn waiting_for(&self) -> Waiting {
        if self.answer.is_settled() {
            return Waiting { phase: None, since: self.answer.record.end };
        }
        match self.answer.record.last {
            Some(last) => Waiting { phase: Some(TimeoutPhase::Gap), since: last },
            None => Waiting { phase: Some(TimeoutPhase::First), since: self.answer.record.start },
        }
    }

    /// Whether the connection may serve another request; final once the exchange is over.
    #[must_use]
    pub fn reusable(&self) -> bool {
        let fit = matches!(self.behind, Behind::Nothing | Behind::LineEnd);
        self.over && fit && self.http.is_complete() && self.http.keep_alive()
    }

    /// No byte of a response has come: on a reused connection the request may be sent once more.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        !self.http.started()
    }

    /// The response head, once it has come.
    #[must_use]
    pub fn head(&self) -> Option<&http::Head> {
        self.http.head()
    }

    /// Who answered, as the head says in the field that was asked for ([`Ask::replica_header`]).
    #[must_use]
    pub fn replica(&self) -> Option<&str> {
        self.http.sought()
    }

    /// The record; final once the exchange is over.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.answer.record
    }

    /// The gaps between content events by user stamps.
    #[must_use]
    pub fn gaps(&self) -> &Gaps {
        &self.answer.gaps
    }

    /// The gaps between content events by kernel stamps; empty without them.
    #[must_use]
    pub fn kernel_gaps(&self) -> &Gaps {
        &self.answer.kernel_gaps
    }

    /// What the server said of a failure; empty if nothing.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.answer.message
    }

    /// The beginning of a body that was not read as a stream; empty for one that was.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.whole
    }

    /// Events dispatched, up to and including `[DONE]` or the failing one.
    #[must_use]
    pub fn dispatched(&self) -> u64 {
        self.answer.dispatched
    }

    /// `[DONE]` was seen, or the dialect's own last event.
    #[must_use]
    pub fn done(&self) -> bool {
        self.answer.done
    }

    /// The finish reason of the first choice, or of the lowest index seen.
    #[must_use]
    pub fn finish(&self) -> Option<api::Finish> {
        self.answer.finish_reason()
    }

    /// Token counts as the server gave them.
    #[must_use]
    pub fn usages(&self) -> &Usages {
        &self.answer.usages
    }

    /// Bytes of the response kept inside: of an unfinished head, event or line, and of a body that is read whole.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.http.buffered_bytes()
            + self.sse.buffered_bytes()
            + self.lines.buffered_bytes()
            + self.whole.len()
    }

    fn on_interim<S: Sink>(&mut self, status: u16, at: &Arrival, alone: bool, sink: &mut S) {
        // The final response has a first byte of its own.
        self.answer.record.byte = (!alone).then_some(at.read);
        sink.interim(status);
    }

    fn on_head(&mut self, at: &Arrival) {
        let Some(head) = self.http.head() else { return };
        if at.kernel.is_some() {
            self.answer.expect_kernel_gaps();
        }
        let status = head.status;
        self.answer.record.outcome.status = status;
        if !(200..300).contains(&status) {
            self.body = Body::Failure;
            self.answer.fail(Outcome::new(Class::Http, Kind::HttpStatus, status), at.read, "");
        } else if head.encoded {
            self.body = Body::Failure;
            let outcome = Outcome::new(Class::Malformed, Kind::UnsupportedEncoding, status);
            self.answer.fail(outcome, at.read, "the body is compressed, which was not asked for");
        } else if !self.answer.ask.stream {
            self.body = Body::Whole;
            self.answer.record.flags.insert(Flags::WHOLE_BODY);
        } else {
            self.body = match head.content_type {
                ContentType::Json | ContentType::Html => Body::NotAStream,
                ContentType::NdJson => Body::Lines,
                ContentType::EventStream => Body::Events,
                ContentType::Absent | ContentType::Other => match self.answer.ask.dialect.framing() {
                    Framing::Events => Body::Events,
                    Framing::Lines => Body::Lines,
                },
            };
        }
    }

    fn on_body<S: Sink>(&mut self, at: &Arrival, body: &[u8], json: &mut Json, sink: &mut S) {
        match self.body {
            Body::Events => self.on_events(at, body, json, sink),
            Body::Lines => self.on_lines(at, body, json, sink),
            Body::Whole => {
                self.whole.extend_from_slice(body);
                if self.whole.len() > WHOLE_BYTES_MAX {
                    self.cut(Cut::Broken, at.read);
                }
            }
            Body::Unknown | Body::Failure | Body::NotAStream => {
                let room = MESSAGE_BYTES_MAX.saturating_sub(self.whole.len()).min(body.len());
                self.whole.extend_from_slice(&body[..room]);
            }
        }
    }

    fn on_events<S: Sink>(&mut self, at: &Arrival, mut body: &[u8], json: &mut Json, sink: &mut S) {
        while !self.answer.is_settled() {
            // Looked at where it was written: a copy would wait for the narrower stores before it.
            match &self.sse.next(body) {
                Ok(sse::Step { used, event }) => {
                    body = &body[*used..];
                    match event {
                        Some(event) => self.answer.on_event(at, event, (json, &mut self.frame), sink),
                        None => return,
                    }
                }
                Err(_) => {
                    let outcome = self.failure(Class::Malformed, Kind::Protocol);
                    return self.answer.fail(
                        outcome,
                        at.read,
                        "an event or a line of it is over the size limit",
                    );
                }
            }
        }
    }

    fn on_lines<S: Sink>(&mut self, at: &Arrival, mut body: &[u8], json: &mut Json, sink: &mut S) {
        while !self.answer.is_settled() {
            match self.lines.next(body) {
                Ok(lines::Step { used, line }) => {
                    body = &body[used..];
                    match line {
                        Some(line) => self.answer.on_data(at, line, (json, &mut self.frame), sink),
                        None => return,
                    }
                }
                Err(_) => {
                    let outcome = self.failure(Class::Malformed, Kind::Protocol);
                    return self.answer.fail(outcome, at.read, "a line is over the size limit");
                }
            }
        }
    }

    /// The body ended in good order.
    fn on_end<S: Sink>(&mut self, at: &Arrival, json: &mut Json, sink: &mut S) {
        match self.body {
            Body::Events => {
                if !self.answer.is_settled()
                    && let Ok(Some(event)) = self.sse.finish()
                {
                    self.answer.on_tail(at, &event, (json, &mut self.frame), sink);
                }
                self.answer.on_end_of_stream(at.read);
            }
            Body::Lines => {
                if !self.answer.is_settled()
                    && let Ok(Some(line)) = self.lines.finish()
                {
                    self.answer.on_data(at, line, (json, &mut self.frame), sink);
                }
                self.answer.on_end_of_stream(at.read);
            }
            Body::Whole => self.answer.on_whole(at, &self.whole, json, sink),
            Body::NotAStream => self.answer.on_not_a_stream(at, &self.whole, json),
            Body::Failure | Body::Unknown => {
                if let Some(message) = api::error_message(json, &self.whole) {
                    self.answer.message = message;
                }
            }
        }
        self.over = true;
    }

    /// The response ended before its framing did.
    fn cut(&mut self, cut: Cut, now: Stamp) {
        self.over = true;
        self.behind = Behind::Unfit;
        self.answer.fail_if_doomed(now);
        if self.answer.is_settled() {
            if self.answer.done && !self.answer.has_failed() {
                self.answer.record.flags.insert(Flags::FRAMING_INCOMPLETE);
                self.answer.settle_ok();
            }
            return;
        }
        let unanswered = !self.http.started();
        let outcome = match cut {
            Cut::Closed if self.answer.is_finished() => {
                self.answer.record.flags.insert(Flags::FRAMING_INCOMPLETE);
                return self.answer.on_end_of_stream(now);
            }
            Cut::Closed | Cut::Reset if unanswered => self.failure(Class::Reset, Kind::NoResponse),
            Cut::Closed => self.failure(Class::Truncated, Kind::Truncated),
            Cut::Reset => self.failure(Class::Reset, Kind::Truncated),
            Cut::Broken => self.failure(Class::Malformed, Kind::Protocol),
            Cut::Timeout(phase) => Outcome::timeout(phase, self.answer.record.outcome.status),
        };
        self.answer.fail(outcome, now, "");
    }

    fn failure(&self, class: Class, kind: Kind) -> Outcome {
        Outcome::new(class, kind, self.answer.record.outcome.status)
    }
}

impl Default for Exchange {
    fn default() -> Exchange {
        Exchange::new()
    }
}
