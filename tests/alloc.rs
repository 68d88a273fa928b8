//! No event allocates: whatever a stream costs in memory is paid before its request is sent.
//!
//! A binary of its own, because it counts the allocations of the whole process (per thread, so that the test harness
//! does not disturb).

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use tokload::exchange::{Arrival, Ask, ContentEvent, Exchange, Progress, Sink};
use tokload::metrics::{Outcome, Record, Tally};
use tokload::model::{Batching, Job, PrefixCache, Router, Server, Serving, Settings, block_hashes};
use tokload::time::Stamp;
use tokload::wire::json::Json;

/// The system's allocator, counted.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Allocations and reallocations of this thread while `work` ran.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

// SAFETY: every call is handed to `System` as it came, and its answer back; the counter is a thread-local without
// destructor and without lazy start, so that touching it neither allocates nor runs after its end.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block came from `System`.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as above; the block came from `System`.
        unsafe { System.realloc(block, layout, len) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// What a shard does with each event.
struct Ear<const TEXT: bool> {
    tally: Tally,
    heard: u32,
    text_bytes: usize,
}

impl<const TEXT: bool> Sink for Ear<TEXT> {
    const WANTS_TEXT: bool = TEXT;

    fn piece(&mut self, _choice: u32, _channel: tokload::api::Channel, text: &str) {
        self.text_bytes += text.len();
    }

    fn content_event(&mut self, event: &ContentEvent) {
        self.tally.on_content(event.at.read, event.tokens);
        self.heard += 1;
    }
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ndate: Mon, 30 Nov 2026 17:55:17 GMT\r\nserver: uvicorn\r\n\
    content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

fn chunk(data: &str) -> Vec<u8> {
    let event = format!("data: {data}\n\n");
    format!("{:x}\r\n{event}\r\n", event.len()).into_bytes()
}

/// An event as vLLM sends it: `delta` and what stands beside the choices.
fn vllm(delta: &str, beside: &str) -> Vec<u8> {
    chunk(&format!(
        r#"{{"id":"chatcmpl-8d123781d36db42f","object":"chat.completion.chunk","created":1796061161,"model":"tiny","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":null,"token_ids":null}}]{beside}}}"#
    ))
}

fn corn(_place: usize) -> Vec<u8> {
    vllm(r#"{"content":" corn"}"#, "")
}

/// How the events come.
#[derive(Clone, Copy)]
struct Way {
    events_per_read: usize,
    /// Each read is handed on in two pieces.
    halved: bool,
    kernel: bool,
}

const ONE: Way = Way { events_per_read: 1, halved: false, kernel: false };
const TEN: Way = Way { events_per_read: 10, ..ONE };
const EVENTS: usize = 4000;

/// One exchange with all that it needs, as a shard holds it.
struct Rig<const TEXT: bool> {
    exchange: Exchange,
    json: Json,
    ear: Ear<TEXT>,
    now_ns: u64,
}

impl<const TEXT: bool> Rig<TEXT> {
    fn new() -> Rig<TEXT> {
        let ear = Ear { tally: Tally::new(Stamp::ZERO), heard: 0, text_bytes: 0 };
        Rig { exchange: Exchange::new(), json: Json::new(), ear, now_ns: 0 }
    }

    fn begin(&mut self, max_tokens: u32) {
        let now = Stamp::from_nanos(self.now_ns);
        self.ear.tally.on_sent(now);
        self.exchange.begin(Ask { max_tokens, ..Ask::default() }, Record::planned(0, now));
        self.exchange.on_start(now);
    }

    fn read(&mut self, bytes: &[u8], way: Way) {
        self.now_ns += 700_000;
        let kernel = way.kernel.then(|| Stamp::from_nanos(self.now_ns - 9_000));
        let at = Arrival { read: Stamp::from_nanos(self.now_ns), kernel, read_no: self.now_ns, late: false };
        let half = if way.halved { bytes.len() / 2 } else { 0 };
        for piece in [&bytes[..half], &bytes[half..]] {
            let progress = self.exchange.on_bytes(&at, piece, &mut self.json, &mut self.ear);
            assert_eq!(progress, Progress::Pending);
        }
    }

    /// The allocations of the head and of `EVENTS` events: all that lies between the send and the finish reason.
    fn allocations(&mut self, event: impl Fn(usize) -> Vec<u8>, way: Way) -> u64 {
        let events: Vec<Vec<u8>> = (1..=EVENTS).map(event).collect();
        let reads: Vec<Vec<u8>> = events.chunks(way.events_per_read).map(<[_]>::concat).collect();
        let heard = self.ear.heard;
        let count = allocations(|| {
            self.read(HEAD, Way { halved: false, ..way });
            reads.iter().for_each(|read| self.read(read, way));
        });
        assert_eq!((self.ear.heard - heard) as usize, EVENTS, "not every event was content");
        let last =
            [chunk(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#), chunk("[DONE]")];
        self.read(&last.concat(), ONE);
        let now = Stamp::from_nanos(self.now_ns);
        let at = Arrival { read: now, kernel: None, read_no: 0, late: false };
        let progress = self.exchange.on_bytes(&at, b"0\r\n\r\n", &mut self.json, &mut self.ear);
        assert_eq!((progress, self.exchange.record().outcome), (Progress::Over, Outcome::ok(200)));
        count
    }
}

#[test]
fn a_typical_event_allocates_nothing() {
    for way in [ONE, TEN] {
        let mut rig = Rig::<false>::new();
        rig.begin(EVENTS as u32);
        assert_eq!(rig.allocations(corn, way), 0, "the first request of a connection");
        rig.begin(EVENTS as u32);
        assert_eq!(rig.allocations(corn, way), 0, "the second");
    }
}

#[test]
fn an_event_whose_text_is_wanted_allocates_nothing() {
    let mut rig = Rig::<true>::new();
    rig.begin(EVENTS as u32);
    assert_eq!(rig.allocations(corn, TEN), 0);
    assert_eq!(rig.ear.text_bytes, EVENTS * " corn".len());
}

/// What the scan does not know goes to the full parser, whose memory belongs to the shard and is there after the
/// first documents.
#[test]
fn an_event_for_the_full_parser_allocates_nothing() {
    let tool = |_| vllm(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}}]}"#, "");
    let several = |_| vllm(r#"{"content":" a \u00e9\n","reasoning_content":"b"}"#, "");
    for way in [ONE, TEN] {
        let mut rig = warm(several);
        rig.begin(EVENTS as u32);
        assert_eq!(rig.allocations(several, way), 0, "escapes and two texts");
        let mut rig = warm(tool);
        rig.begin(EVENTS as u32);
        assert_eq!(rig.allocations(tool, way), 0, "tool arguments");
    }
}

/// The gaps per token have memory of their own, made with the first one that a connection meets.
#[test]
fn events_that_tell_their_tokens_allocate_once_per_connection() {
    let usage = |so_far| {
        let beside =
            format!(r#","usage":{{"prompt_tokens":20,"completion_tokens":{so_far},"total_tokens":27}}"#);
        vllm(r#"{"content":" corn"}"#, &beside)
    };
    let listed = |_| chunk(r#"{"choices":[{"index":0,"delta":{"content":"x"},"token_ids":[1,2,3]}]}"#);
    for way in [ONE, TEN] {
        // Counts are known to the scan; lists of ids go to the full parser, whose memory is there after the first.
        let mut rig = warm(listed);
        rig.begin(EVENTS as u32);
        assert_eq!(rig.allocations(usage, way), 1, "running usage");
        rig.begin(EVENTS as u32);
        assert_eq!(rig.allocations(usage, way), 0, "running usage, the second request");
        rig.begin(EVENTS as u32);
        assert_eq!(rig.allocations(listed, way), 0, "token ids, the third");
    }
}

/// A rig whose parser has seen two such events, on another connection.
fn warm(event: impl Fn(usize) -> Vec<u8>) -> Rig<true> {
    let (mut other, mut rig) = (Rig::<true>::new(), Rig::<true>::new());
    other.begin(0);
    other.read(&[HEAD, &event(1), &event(2)].concat(), ONE);
    rig.json = other.json;
    rig
}

/// A cut event is put together in memory that is kept: the first one pays for all.
#[test]
fn a_cut_event_allocates_once_per_connection() {
    let mut rig = Rig::<false>::new();
    let halved = Way { halved: true, ..ONE };
    rig.begin(EVENTS as u32);
    let first = rig.allocations(corn, halved);
    assert!(first <= 4, "{first} allocations");
    rig.begin(EVENTS as u32);
    assert_eq!(rig.allocations(corn, halved), 0);
}

/// Where nobody said how long the answer will be, memory doubles now and then; the next request has it.
#[test]
fn an_answer_of_unknown_length_doubles_its_memory() {
    let mut rig = Rig::<false>::new();
    rig.begin(0);
    let first = rig.allocations(corn, ONE);
    assert!(first <= u64::from(EVENTS.ilog2()) + 1, "{first} allocations");
    rig.begin(0);
    assert_eq!(rig.allocations(corn, ONE), 0);
}

/// Stamps of the kernel come with gaps of their own, whose memory is made with the head.
#[test]
fn gaps_by_kernel_stamps_allocate_once_per_connection() {
    for way in [ONE, TEN] {
        let way = Way { kernel: true, ..way };
        let mut rig = Rig::<false>::new();
        rig.begin(EVENTS as u32);
        assert_eq!(rig.allocations(corn, way), 1, "the first request of a connection");
        rig.begin(EVENTS as u32);
        assert_eq!(rig.allocations(corn, way), 0, "the second");
    }
}

/// The counter counts: a test that can only see zero would prove nothing.
#[test]
fn allocations_are_counted() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1_u8; 100]))), 1);
    let mut growing: Vec<u8> = Vec::with_capacity(8);
    assert_eq!(allocations(|| growing.extend_from_slice(&[0; 64])), 1);
}

/// A modelled server of every feature, with users who ask again: neither tokens nor jobs allocate once it is warm.
#[test]
fn a_modelled_token_allocates_nothing() {
    let batching = Batching {
        slots: 8,
        queue_max: Some(100),
        step_tokens_max: Some(64),
        noise: 0.1,
        replicas: 3,
        router: Router::LeastLoaded,
        prefix_cache: Some(PrefixCache { blocks_max: Some(50), ..PrefixCache::default() }),
        ..Batching::default()
    };
    let mut server = Server::new(&Settings::serving(Serving::Batching(batching)), Stamp::ZERO).unwrap();
    let prompts: Vec<_> =
        (0..20_u64).map(|prompt| block_hashes((0..200).map(|token| token + (prompt << 32)), 16)).collect();
    let mut jobs = 0_u32;
    let mut job = |owner| {
        jobs += 1;
        let blocks = Arc::clone(&prompts[jobs as usize % prompts.len()]);
        Job { owner, prompt_tokens: 200, output_tokens: 20 + jobs % 50, blocks, ..Job::default() }
    };
    for owner in 0..60 {
        server.submit(Stamp::ZERO, job(owner)).unwrap();
    }
    let mut emissions = Vec::new();
    let mut run = |tokens: usize| {
        let mut done = 0;
        while done < tokens {
            let now = server.next_wakeup();
            server.advance(now, &mut emissions);
            done += emissions.len();
            for emission in emissions.drain(..).filter(|emission| emission.last) {
                server.submit(now, job(emission.owner)).unwrap();
            }
        }
    };
    run(100_000);
    assert_eq!(allocations(|| run(100_000)), 0);
}
