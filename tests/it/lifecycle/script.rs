//! Scripts of (milliseconds, bytes), and a connection that plays them.

use std::mem;

use tokload::exchange::{Arrival, Ask, ContentEvent, Exchange, Progress, Sink};
use tokload::metrics::{Record, TimeoutPhase};
use tokload::stats::Histogram;
use tokload::time::Stamp;
use tokload::wire::json::Json;

use crate::goldens::inputs;

/// What arrives when: milliseconds since the send, and bytes.
pub(crate) type Script = Vec<(u64, Vec<u8>)>;

pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
pub(crate) const LAST_CHUNK: &str = "0\r\n\r\n";
pub(crate) const DONE: &str = "[DONE]";
pub(crate) const ROLE: &str = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#;
pub(crate) const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;

pub(crate) fn content(text: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}},"finish_reason":null}}]}}"#)
}

pub(crate) fn usage(prompt: u32, completion: u32) -> String {
    format!(r#"{{"choices":[],"usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion}}}}}"#)
}

/// An event in an HTTP chunk of its own.
pub(crate) fn event(data: &str) -> String {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len())
}

/// A script with an event for each entry, the head before the first.
pub(crate) fn stream(events: &[(u64, String)]) -> Script {
    let mut script: Script = events.iter().map(|(ms, data)| (*ms, event(data).into_bytes())).collect();
    script[0].1.splice(0..0, HEAD.bytes());
    script
}

/// The same, with the end of the body at the moment of the last event.
pub(crate) fn whole_stream(events: &[(u64, String)]) -> Script {
    let mut script = stream(events);
    script.extend(events.last().map(|(ms, _)| (*ms, LAST_CHUNK.into())));
    script
}

/// The whole life of the golden case: eight content events, nine tokens, then what ends a stream.
pub(crate) fn golden_stream() -> Script {
    let chunks: Vec<(u64, u32)> = serde_json::from_value(inputs("TokenTimings")["chunks"].clone()).unwrap();
    let mut events = vec![(20, ROLE.to_owned())];
    events.extend(chunks.iter().map(|(ms, tokens)| (*ms, content(&"word ".repeat(*tokens as usize)))));
    events.extend([(860, FINISH.to_owned()), (861, usage(20, 9)), (861, DONE.to_owned())]);
    whole_stream(&events)
}

/// How a script goes on behind its last byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum End {
    /// The peer closes.
    Close,
    /// The peer breaks the connection.
    Reset,
    /// Our own limit passes.
    Timeout(TimeoutPhase),
    /// The level is over, grace period included.
    Abandon,
}

/// Notes every content event.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Events(pub(crate) Vec<ContentEvent>);

impl Sink for Events {
    const WANTS_TEXT: bool = false;

    fn content_event(&mut self, event: &ContentEvent) {
        self.0.push(*event);
    }
}

impl Events {
    pub(crate) fn times_ms(&self) -> Vec<u64> {
        self.0.iter().map(|event| event.at.read.as_nanos() / 1_000_000).collect()
    }

    pub(crate) fn gaps_ms(&self) -> Vec<u64> {
        self.times_ms().windows(2).map(|pair| pair[1] - pair[0]).collect()
    }
}

/// A connection that plays scripts one after another, as a pooled one does.
#[derive(Default)]
pub(crate) struct Connection {
    pub(crate) exchange: Exchange,
    pub(crate) json: Json,
    pub(crate) events: Events,
    pub(crate) reads: u64,
    /// How long the kernel had the bytes before they were read, where it gives stamps.
    pub(crate) kernel_lag_ms: Option<u64>,
}

impl Connection {
    /// Sends a request at `start_ms`.
    pub(crate) fn send(&mut self, ask: Ask, index: u64, start_ms: u64) {
        let start = Stamp::from_millis(start_ms);
        self.events = Events::default();
        self.exchange.begin(ask, Record::planned(index, start));
        self.exchange.on_start(start);
        self.exchange.on_connected(start, self.reads == 0);
        self.exchange.on_sent(start);
    }

    /// One read; the pieces are a cut of it, which a read has not.
    pub(crate) fn read(&mut self, ms: u64, pieces: &[&[u8]]) -> Progress {
        self.reads += 1;
        let kernel = self.kernel_lag_ms.map(|lag| Stamp::from_millis(ms - lag));
        let at = Arrival { read: Stamp::from_millis(ms), kernel, read_no: self.reads, late: false };
        let mut progress = Progress::Pending;
        for piece in pieces {
            progress = self.exchange.on_bytes(&at, piece, &mut self.json, &mut self.events);
        }
        progress
    }

    pub(crate) fn play(&mut self, start_ms: u64, script: &Script) -> Progress {
        let mut progress = Progress::Pending;
        for (ms, bytes) in script {
            progress = self.read(start_ms + ms, &[bytes]);
        }
        progress
    }

    pub(crate) fn end(&mut self, ms: u64, end: End) -> Progress {
        let now = Stamp::from_millis(ms);
        match end {
            End::Close => self.exchange.on_eof(now, &mut self.json, &mut self.events),
            End::Reset => self.exchange.on_reset(now),
            End::Timeout(phase) => self.exchange.on_timeout(now, phase),
            End::Abandon => self.exchange.on_abandoned(now),
        }
    }

    pub(crate) fn record(&self) -> &Record {
        self.exchange.record()
    }

    pub(crate) fn remarks(&self) -> Vec<&'static str> {
        let of_the_end = ["framing_incomplete", "no_done", "no_finish_reason", "flushed_at_eof"];
        self.record().flags.names().filter(|name| of_the_end.contains(name)).collect()
    }
}

/// A connection on which `script` was sent at 0 and played.
pub(crate) fn played(ask: Ask, script: &Script) -> (Connection, Progress) {
    let mut connection = Connection::default();
    connection.send(ask, 0, 0);
    let progress = connection.play(0, script);
    (connection, progress)
}

pub(crate) fn codes_ms(gaps: &[u64]) -> Vec<u16> {
    gaps.iter().map(|ms| Histogram::bucket_of(ms * 1_000_000)).collect()
}

pub(crate) fn millis(ms: u64) -> Option<u64> {
    Some(ms * 1_000_000)
}

/// Everything that an exchange lets one learn.
pub(crate) fn learned(mut connection: Connection) -> impl PartialEq + std::fmt::Debug {
    let exchange = &connection.exchange;
    (
        *exchange.record(),
        exchange.gaps().clone(),
        exchange.kernel_gaps().clone(),
        (exchange.message().to_owned(), exchange.dispatched(), exchange.done(), exchange.finish()),
        (*exchange.usages(), exchange.reusable()),
        mem::take(&mut connection.events),
    )
}
