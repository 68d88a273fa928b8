//! The pure path of an event as a shard takes it: HTTP framing, event stream, JSON, exchange, tally. Shared by the
//! benchmark in time and the one in instructions, so that both measure the same.

use std::fmt;

use tokload::exchange::{Arrival, Ask, ContentEvent, Exchange, Progress, Sink};
use tokload::metrics::{Outcome, Record, Tally};
use tokload::time::Stamp;
use tokload::wire::json::Json;

/// One way in which the events of a stream arrive.
pub struct Path {
    pub name: &'static str,
    /// Content events in one read.
    pub events_per_read: usize,
    /// Each read ends in the middle of its last event, and the next one brings the rest.
    pub cut: bool,
    /// The kernel gives its stamp of each read.
    pub kernel: bool,
    /// Each event tells the tokens so far, which needs the full parser.
    pub usage: bool,
}

pub const PATHS: [Path; 6] = [
    Path { name: "one_per_read", events_per_read: 1, cut: false, kernel: false, usage: false },
    Path { name: "ten_per_read", events_per_read: 10, cut: false, kernel: false, usage: false },
    Path { name: "one_in_two_reads", events_per_read: 1, cut: true, kernel: false, usage: false },
    Path { name: "one_per_read_kernel_stamps", events_per_read: 1, cut: false, kernel: true, usage: false },
    Path { name: "one_per_read_running_usage", events_per_read: 1, cut: false, kernel: false, usage: true },
    Path { name: "ten_per_read_running_usage", events_per_read: 10, cut: false, kernel: false, usage: true },
];

/// Content events of one request.
const EVENTS: usize = 1000;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 17:55:17 GMT\r\nserver: uvicorn\r\n\
    content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

/// A connection that is served the same answer again and again.
pub struct Rig {
    exchange: Exchange,
    json: Json,
    ear: Ear,
    now_ns: u64,
    read_no: u64,
    kernel: bool,
    /// The reads of one answer.
    reads: Vec<Vec<u8>>,
    next: usize,
    end: Vec<u8>,
}

/// What a shard does with an event.
struct Ear(Tally);

impl Sink for Ear {
    const WANTS_TEXT: bool = false;

    #[inline]
    fn content_event(&mut self, event: &ContentEvent) {
        self.0.on_content(event.at.read, event.tokens);
    }
}

impl Rig {
    pub fn new(path: &Path) -> Rig {
        let events: Vec<Vec<u8>> = (1..=EVENTS).map(|place| path.event(place)).collect();
        let mut reads: Vec<Vec<u8>> = events.chunks(path.events_per_read).map(<[_]>::concat).collect();
        if path.cut {
            reads = reads
                .iter()
                .flat_map(|read| [&read[..read.len() / 2], &read[read.len() / 2..]])
                .map(<[_]>::to_vec)
                .collect();
        }
        let finish = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#;
        let mut rig = Rig {
            exchange: Exchange::new(),
            json: Json::new(),
            ear: Ear(Tally::new(Stamp::ZERO)),
            now_ns: 0,
            read_no: 0,
            kernel: path.kernel,
            reads,
            next: 0,
            end: [chunk(finish), chunk("[DONE]"), b"0\r\n\r\n".to_vec()].concat(),
        };
        rig.begin();
        rig
    }

    /// The next read of content events; with the last one of an answer the request ends and another begins, which a
    /// thousand events share.
    #[inline]
    pub fn read(&mut self) {
        if self.next == self.reads.len() {
            self.end();
            self.begin();
        }
        let at = self.arrival();
        let bytes = std::hint::black_box(&self.reads[self.next][..]);
        let progress = self.exchange.on_bytes(&at, bytes, &mut self.json, &mut self.ear);
        debug_assert_eq!(progress, Progress::Pending);
        let _ = progress;
        self.next += 1;
    }

    fn begin(&mut self) {
        let now = Stamp::from_nanos(self.now_ns);
        self.exchange.begin(Ask { max_tokens: EVENTS as u32, ..Ask::default() }, Record::planned(0, now));
        self.exchange.on_start(now);
        self.ear.0.on_sent(now);
        let at = self.arrival();
        let progress = self.exchange.on_bytes(&at, HEAD, &mut self.json, &mut self.ear);
        assert_eq!(progress, Progress::Pending);
        self.next = 0;
    }

    fn end(&mut self) {
        let at = self.arrival();
        let progress = self.exchange.on_bytes(&at, &self.end, &mut self.json, &mut self.ear);
        let record = self.exchange.record();
        assert_eq!((progress, record.outcome), (Progress::Over, Outcome::ok(200)));
        assert_eq!(record.events as usize, EVENTS);
        self.ear.0.on_done(record, self.exchange.gaps(), self.exchange.kernel_gaps(), Stamp::ZERO);
    }

    #[inline]
    fn arrival(&mut self) -> Arrival {
        self.read_no += 1;
        // About a millisecond, never twice the same.
        self.now_ns += 950_000 + (self.read_no * 7_919) % 100_003;
        let read = Stamp::from_nanos(self.now_ns);
        let kernel = self.kernel.then(|| Stamp::from_nanos(self.now_ns - 8_000));
        Arrival { read, kernel, read_no: self.read_no, late: false }
    }
}

impl Path {
    /// An event as vLLM sends it, 217 bytes, or with running usage.
    fn event(&self, place: usize) -> Vec<u8> {
        let usage = if self.usage {
            format!(
                r#","usage":{{"prompt_tokens":20,"total_tokens":{},"completion_tokens":{place}}}"#,
                20 + place
            )
        } else {
            String::new()
        };
        chunk(&format!(
            r#"{{"id":"chatcmpl-8d123781d36db42f","object":"chat.completion.chunk","created":1796061161,"model":"tiny","choices":[{{"index":0,"delta":{{"content":" corn"}},"logprobs":null,"finish_reason":null,"token_ids":null}}]{usage}}}"#
        ))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// An event in an HTTP chunk of its own.
fn chunk(data: &str) -> Vec<u8> {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}
