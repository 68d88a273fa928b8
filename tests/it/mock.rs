//! The mock server over real sockets: what it promises to those who test against it.
//!
//! The client is a few lines over `std::net`, so that nothing here shares code with what the mock serves to check.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokload::metrics::Class;
use tokload::mock::{
    Answer, Break, Cut, Ending, Farewell, Fault, Faults, Identity, Mock, Role, Settings, When,
};
use tokload::model::{self, Batching, Cost, Serving};
use tokload::pace::{Kernel, Mode};
use tokload::plan::{Driver, Load};
use tokload::sys::clock::RunClock;
use tokload::time::Stamp;

use crate::rig;

pub(crate) fn quick() -> Settings {
    Settings { serving: model::Settings::fixed(3.0, 1.0), max_tokens: 4, ..Settings::default() }
}

fn with(faults: Faults) -> Mock {
    Mock::start(Settings { faults, ..quick() }).unwrap()
}

pub(crate) struct Client {
    socket: TcpStream,
    unread: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The body came to its end.
    pub(crate) whole: bool,
}

impl Client {
    pub(crate) fn to(mock: &Mock) -> Client {
        let socket = TcpStream::connect(mock.address()).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Client { socket, unread: Vec::new() }
    }

    pub(crate) fn send(&mut self, text: &str) -> &mut Client {
        self.socket.write_all(text.as_bytes()).unwrap();
        self
    }

    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Response {
        self.send(&post(path, body)).response()
    }

    pub(crate) fn get(&mut self, path: &str) -> Response {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: mock\r\n\r\n")).response()
    }

    /// Reads more; `false` at the end.
    fn more(&mut self) -> std::io::Result<bool> {
        let mut part = [0; 65536];
        let count = self.socket.read(&mut part)?;
        self.unread.extend_from_slice(&part[..count]);
        Ok(count > 0)
    }

    fn until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|w| w == end) {
                return Some(self.unread.drain(..at + end.len()).collect());
            }
            if !self.more().unwrap() {
                return None;
            }
        }
    }

    fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.unread.len() < count {
            if !self.more().unwrap() {
                return None;
            }
        }
        Some(self.unread.drain(..count).collect())
    }

    fn response(&mut self) -> Response {
        let head = String::from_utf8(self.until(b"\r\n\r\n").expect("a head")).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.split("content-length: ").nth(1).map(|rest| rest.split('\r').next().unwrap());
        if let Some(length) = length {
            let body = self.exactly(length.parse().unwrap());
            return Response { status, head, whole: body.is_some(), body: body.unwrap_or_default() };
        }
        let mut body = Vec::new();
        let whole = if head.contains("transfer-encoding: chunked") {
            self.chunks(&mut body)
        } else {
            while self.more().unwrap() {}
            body.append(&mut self.unread);
            true
        };
        Response { status, head, body, whole }
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> bool {
        loop {
            let Some(line) = self.until(b"\r\n") else { return false };
            let size = std::str::from_utf8(&line[..line.len() - 2]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            let Some(chunk) = self.exactly(size + 2) else { return false };
            body.extend_from_slice(&chunk[..size]);
            if size == 0 {
                return true;
            }
        }
    }

    fn ends(&mut self) -> bool {
        !self.more().unwrap()
    }
}

impl Response {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The data of each event.
    pub(crate) fn events(&self) -> Vec<String> {
        let text = std::str::from_utf8(&self.body).unwrap();
        let events = text.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
        events.map(str::to_owned).collect()
    }

    /// The text of a choice of a chat stream, and its finish reason.
    fn text(&self, choice: u64) -> (String, Value) {
        let (mut text, mut finish) = (String::new(), Value::Null);
        for event in self.events().iter().filter(|event| *event != "[DONE]") {
            let event: Value = serde_json::from_str(event).unwrap();
            let mine = event["choices"].as_array().unwrap().iter().filter(|c| c["index"] == choice);
            for part in mine {
                text += part["delta"]["content"].as_str().unwrap_or_default();
                finish = part["finish_reason"].clone();
            }
        }
        (text, finish)
    }
}

pub(crate) fn post(path: &str, body: &Value) -> String {
    let body = body.to_string();
    format!("POST {path} HTTP/1.1\r\nHost: mock\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

pub(crate) fn chat(more: &Value) -> Value {
    let mut body = json!({"model": "mock-model", "stream": true,
        "messages": [{"role": "user", "content": "one two three"}]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

pub(crate) const CHAT: &str = "/v1/chat/completions";

#[test]
fn a_stream_holds_the_tokens_asked_for_and_its_usage() {
    let mock = Mock::start(quick()).unwrap();
    let body = chat(&json!({"max_tokens": 6, "stream_options": {"include_usage": true}}));
    let response = Client::to(&mock).post(CHAT, &body);
    assert!(response.status == 200 && response.whole);
    assert!(response.head.contains("content-type: text/event-stream"));
    assert_eq!(response.text(0), (" apple bread cloud dance eagle field".to_owned(), json!("length")));
    let events = response.events();
    // Role, six of content, usage, [DONE].
    assert_eq!((events.len(), events[8].as_str()), (9, "[DONE]"));
    let usage: Value = serde_json::from_str(&events[7]).unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"], json!({"prompt_tokens": 3, "completion_tokens": 6, "total_tokens": 9}));
    let truth = mock.stop().unwrap();
    assert_eq!((truth.requests, truth.streams, truth.completed(), truth.broken()), (1, 1, 1, 0));
    assert_eq!((truth.events, truth.tokens, truth.connections), (6, 6, 1));
    assert_eq!((truth.ttft().count, truth.itl().count, truth.lateness().count), (1, 5, 6));
}

#[test]
fn every_driver_thread_count_and_timer_serves() {
    for (driver, workers, timer) in [
        (Driver::Epoll, 1, Mode::Sleep),
        (Driver::IoUring, 3, Mode::Sleep),
        (Driver::Auto, 2, Mode::Sleep),
        (Driver::IoUring, 1, Mode::Busy),
    ] {
        let started = Mock::start(Settings { driver, workers, timer, ..quick() });
        if driver == Driver::IoUring && started.is_err() {
            // A kernel or a container may refuse it.
            continue;
        }
        let mock = started.unwrap();
        assert_eq!(mock.kernel() == Kernel::IoUring, driver == Driver::IoUring);
        let mut clients: Vec<Client> = (0..20).map(|_| Client::to(&mock)).collect();
        for client in &mut clients {
            client.send(&post(CHAT, &chat(&json!({"max_tokens": 5}))));
        }
        for client in &mut clients {
            assert_eq!(client.response().text(0).0.split_whitespace().count(), 5);
        }
        let truth = mock.stop().unwrap();
        assert_eq!((truth.completed(), truth.events), (20, 100), "{driver:?} {workers} {timer:?}");
    }
}

#[test]
fn choices_and_whole_answers_and_text_completions() {
    let serving = model::Settings { tokens_per_step: 2, ..quick().serving };
    let mock = Mock::start(Settings { serving, ..quick() }).unwrap();
    let mut client = Client::to(&mock);
    let both = client.post(CHAT, &chat(&json!({"n": 2, "max_tokens": 3})));
    assert_eq!(both.text(0).0, " apple bread cloud");
    assert_eq!(both.text(1), (" field grass house".to_owned(), json!("length")));
    let whole = client.post(CHAT, &chat(&json!({"stream": false}))).json();
    assert_eq!(whole["choices"][0]["message"]["content"], " apple bread cloud dance");
    assert_eq!(whole["usage"]["total_tokens"], 7);
    let text = client.post("/v1/completions", &json!({"prompt": ["a b", "c"], "max_tokens": 1})).json();
    assert_eq!(text["choices"][1]["text"], " field");
    assert_eq!(text["usage"], json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}));
    let stream = client.post("/v1/completions", &json!({"prompt": "a", "stream": true}));
    assert_eq!(stream.events().len(), 3);
    assert!(stream.events()[1].contains("\"text\":\" cloud dance\""));
}

#[test]
fn models_health_and_version_answer_get_and_head() {
    let mock = Mock::start(quick()).unwrap();
    let mut client = Client::to(&mock);
    assert_eq!(client.get("/v1/models").json()["data"][0]["id"], "mock-model");
    assert_eq!(client.get("/health").status, 200);
    assert!(client.get("/version").json()["version"].is_string());
    client.send("HEAD /v1/models HTTP/1.1\r\nHost: mock\r\n\r\n");
    let head = String::from_utf8(client.until(b"\r\n\r\n").unwrap()).unwrap();
    assert!(head.contains("content-length: ") && !head.contains("content-length: 0"));
    // The next answer follows at once: HEAD had no body.
    assert_eq!(client.get("/nowhere").json(), json!({"detail": "Not Found"}));
    assert_eq!(client.get(CHAT).status, 405);
}

#[test]
fn a_cold_server_refuses_everything_but_its_numbers() {
    let mut settings = quick();
    settings.serving.cold_start_s = 1000.0;
    let mock = Mock::start(settings).unwrap();
    let mut client = Client::to(&mock);
    for path in ["/health", "/v1/models", "/version", "/api/tags"] {
        assert_eq!(client.get(path).status, 503, "{path}");
    }
    client.send("GET /health HTTP/1.1\r\nHost: mock\r\n\r\n");
    let head = String::from_utf8(client.until(b"\r\n\r\n").unwrap()).unwrap();
    assert!(head.contains("retry-after: 1000\r\n"), "{head}");
    let mut client = Client::to(&mock);
    assert_eq!((client.get("/metrics").status, client.get("/truth").status), (200, 200));
    assert_eq!((client.get("/nowhere").status, client.get(CHAT).status), (404, 405));
}

#[test]
fn a_request_that_is_turned_away_meets_no_fault() {
    let cost = Cost { base_ms: 1.0, ..Cost::default() };
    let batching = Batching { slots: 1, queue_max: Some(0), cost, ..Batching::default() };
    let serving = model::Settings::serving(Serving::Batching(batching));
    let faults = Faults::always(Fault::Farewell(Farewell::Announced));
    let mock = Mock::start(Settings { serving, faults, ..quick() }).unwrap();
    let mut served = Client::to(&mock);
    served.send(&post(CHAT, &chat(&json!({"max_tokens": 100_000}))));
    served.until(b"data: ").unwrap();
    let mut other = Client::to(&mock);
    assert_eq!(other.post(CHAT, &chat(&json!({"max_tokens": 1}))).status, 429);
    assert_eq!(other.get("/health").status, 200, "the connection goes on");
    let truth = mock.stop().unwrap();
    assert_eq!(truth.faults(), [(Fault::Farewell(Farewell::Announced), 1)]);
    assert_eq!((truth.generations, truth.ended(Ending::Refused)), (2, 1));
}

#[test]
fn pipelined_requests_are_answered_in_order_and_close_is_kept() {
    let mock = Mock::start(quick()).unwrap();
    let mut client = Client::to(&mock);
    let one = post(CHAT, &chat(&json!({"max_tokens": 2})));
    let old = "GET /v1/models HTTP/1.1\r\nHost: mock\r\nConnection: close\r\n\r\n";
    client.send(&format!("{one}{one}{old}"));
    for _ in 0..2 {
        assert_eq!(client.response().text(0).0, " apple bread");
    }
    assert!(client.response().head.contains("connection: close"));
    assert!(client.ends());
}

#[test]
fn http_1_0_gets_a_stream_that_ends_with_the_connection() {
    let mock = Mock::start(quick()).unwrap();
    let request = post(CHAT, &chat(&json!({}))).replace("HTTP/1.1", "HTTP/1.0");
    let response = Client::to(&mock).send(&request).response();
    assert!(response.head.starts_with("HTTP/1.0 200 OK") && !response.head.contains("chunked"));
    assert_eq!(response.events().last().unwrap(), "[DONE]");
}

#[test]
fn a_waiting_client_is_told_to_continue_and_chunked_bodies_are_read() {
    let mock = Mock::start(quick()).unwrap();
    let mut client = Client::to(&mock);
    let head = format!("POST {CHAT} HTTP/1.1\r\nHost: mock\r\nTransfer-Encoding: chunked\r\n");
    client.send(&format!("{head}Expect: 100-continue\r\n\r\n"));
    assert_eq!(client.until(b"\r\n\r\n").unwrap(), b"HTTP/1.1 100 Continue\r\n\r\n");
    let body = chat(&json!({})).to_string();
    let (left, right) = body.split_at(20);
    client.send(&format!("{:x}\r\n{left}\r\n{:x};x=y\r\n{right}\r\n0\r\n\r\n", left.len(), right.len()));
    assert_eq!(client.response().status, 200);
}

#[test]
fn what_is_no_request_is_refused_and_the_refusal_arrives() {
    let mock = Mock::start(quick()).unwrap();
    let refused = |text: &str| {
        let mut client = Client::to(&mock);
        // A server that gives up early may end the connection while we still write.
        let _ = client.socket.write_all(text.as_bytes());
        let response = client.response();
        assert!(response.json()["error"]["message"].is_string() && client.ends(), "{text:.40}");
        response.status
    };
    assert_eq!(refused("\u{16}\u{3}\u{1}\u{2}\0 hello"), 400);
    assert_eq!(refused("GET /\r\n\r\n"), 400);
    assert_eq!(refused(&format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\n\r\n")), 411);
    let large = format!("POST {CHAT} HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n");
    // The body that is on its way must not take the answer with it.
    assert_eq!(refused(&(large + &"x".repeat(300_000))), 413);
    assert_eq!(refused(&format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(70_000))), 431);
    let mut client = Client::to(&mock);
    assert_eq!(client.post(CHAT, &json!({"model": "other", "messages": []})).status, 404);
    let broken = client.post(CHAT, &json!(7));
    assert_eq!((broken.status, broken.json()["error"]["code"].clone()), (400, json!(400)));
    assert_eq!(client.get("/health").status, 200, "a bad body leaves the connection usable");
}

#[test]
fn wrong_answers_on_purpose() {
    let limited = Answer::Status { status: 429, retry_after_s: Some(2) };
    let mock = with(Faults::when(When::First(2), Fault::Answer(limited)));
    let mut client = Client::to(&mock);
    let body = chat(&json!({}));
    let answers: Vec<u16> = (0..3).map(|_| client.post(CHAT, &body).status).collect();
    assert_eq!(answers, [429, 429, 200]);

    let of = |answer| {
        let mock = with(Faults::always(Fault::Answer(answer)));
        assert_eq!(Client::to(&mock).get("/v1/models").status, 200, "only generation goes wrong");
        Client::to(&mock).post(CHAT, &body)
    };
    assert!(of(Answer::Html).head.contains("content-type: text/html"));
    assert_eq!(of(Answer::PlainJson).json()["object"], "chat.completion");
    let mut client = Client::to(with_answer(Answer::Close));
    assert!(client.send(&post(CHAT, &body)).more().map_or(true, |more| !more));
}

fn with_answer(answer: Answer) -> &'static Mock {
    let faults = Faults::always(Fault::Answer(answer));
    // Lives as long as the test process: the client outlives the expression.
    Box::leak(Box::new(with(faults)))
}

#[test]
fn silence_and_resets_and_refused_fields() {
    let body = chat(&json!({}));
    let mut client = Client::to(with_answer(Answer::Reset));
    let error = client.send(&post(CHAT, &body)).more().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);

    let mut client = Client::to(with_answer(Answer::Silence));
    client.socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    assert_eq!(client.send(&post(CHAT, &body)).more().unwrap_err().kind(), ErrorKind::WouldBlock);

    let mock = with(Faults { refused_fields: vec!["ignore_eos".to_owned()], ..Faults::default() });
    let mut client = Client::to(&mock);
    let refusal = client.post(CHAT, &chat(&json!({"ignore_eos": true})));
    let message = refusal.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(refusal.status == 400 && message.contains("ignore_eos") && message.contains("not permitted"));
    assert_eq!(client.post(CHAT, &body).status, 200);
}

#[test]
fn streams_break_off_on_purpose() {
    let start = |how| {
        let mock = with(Faults::always(Fault::Cut(Cut { after_events: 2, how })));
        let mut client = Client::to(&mock);
        client.send(&post(CHAT, &chat(&json!({}))));
        (mock, client)
    };
    let (mock, mut client) = start(Break::Close);
    let response = client.response();
    assert_eq!((response.text(0).0.as_str(), response.whole), (" apple bread", false));
    assert_eq!(mock.stop().unwrap().broken(), 1);

    let (_mock, mut client) = start(Break::Half);
    assert!(!client.response().whole);

    let (_mock, mut client) = start(Break::ErrorEvent);
    let response = client.response();
    assert!(response.whole && response.events()[3].contains("\"error\""));
    assert_eq!(client.get("/health").status, 200);

    let (_mock, mut client) = start(Break::Reset);
    let error = std::iter::from_fn(|| Some(client.more())).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);

    let (mock, mut client) = start(Break::Stall);
    client.until(b" bread").unwrap();
    client.socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let error = std::iter::from_fn(|| Some(client.more())).find_map(Result::err).unwrap();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert_eq!(mock.stop().unwrap().broken(), 1);
}

#[test]
fn tokens_of_an_answer_that_ended_early_do_not_reach_the_next() {
    let cut = Cut { after_events: 0, how: Break::ErrorEvent };
    let faults = Faults::when(When::First(1), Fault::Cut(cut));
    let settings = Settings { serving: model::Settings::fixed(0.0, 0.0), faults, ..quick() };
    let mock = Mock::start(settings).unwrap();
    let two = post(CHAT, &chat(&json!({"n": 2, "max_tokens": 3})));
    let mut client = Client::to(&mock);
    client.send(&format!("{two}{two}"));
    assert!(client.response().events()[0].contains("\"error\""));
    let next = client.response();
    assert_eq!(
        (next.text(0).0.as_str(), next.text(1).0.as_str()),
        (" apple bread cloud", " field grass house")
    );
    assert_eq!(client.get("/health").status, 200);
}

#[test]
fn connections_close_on_purpose_and_after_idling() {
    let mock = with(Faults::always(Fault::Farewell(Farewell::Announced)));
    let mut client = Client::to(&mock);
    let response = client.post(CHAT, &chat(&json!({})));
    assert!(response.whole && response.head.contains("connection: close") && client.ends());

    let settings = Settings { keep_alive: Some(Duration::from_millis(20)), ..quick() };
    let mock = Mock::start(settings).unwrap();
    let mut client = Client::to(&mock);
    assert_eq!(client.get("/health").status, 200);
    assert!(client.ends());
}

#[test]
fn a_client_that_goes_away_ends_its_stream() {
    let mock = Mock::start(Settings { serving: model::Settings::fixed(3.0, 600e3), ..quick() }).unwrap();
    let mut client = Client::to(&mock);
    client.send(&post(CHAT, &chat(&json!({})))).until(b" apple").unwrap();
    client.socket.shutdown(Shutdown::Both).unwrap();
    let mut other = Client::to(&mock);
    // Accepted after the end of the first was there to be read, and answered after it was.
    assert_eq!(other.get("/health").status, 200);
    let truth = mock.stop().unwrap();
    assert_eq!((truth.generations, truth.completed(), truth.broken()), (1, 0, 1));
}

#[test]
fn a_client_that_does_not_read_gets_everything_later() {
    let serving = model::Settings::fixed(0.0, 0.0);
    let settings = Settings { serving, max_tokens: 100_000, ..quick() };
    let mock = Mock::start(settings).unwrap();
    let mut slow = Client::to(&mock);
    slow.send(&post(CHAT, &chat(&json!({}))));
    // A second client is served while the first one's socket is full.
    let other = Client::to(&mock).post(CHAT, &chat(&json!({"max_tokens": 5000})));
    assert_eq!(other.text(0).0.len(), 5000 * 6);
    assert_eq!(slow.response().text(0).0.len(), 100_000 * 6);
    assert!(mock.stop().unwrap().partial_sends > 0);
}

/// Answers that nobody reads are not written either: the server stops listening to the client until it reads.
#[test]
fn a_client_that_asks_and_does_not_read_is_not_heard_until_it_does() {
    let mock = Mock::start(quick()).unwrap();
    let mut client = Client::to(&mock);
    client.socket.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    // Its answer is long: the kernel holds some megabytes in each direction before anybody has to wait.
    let request = format!("GET /metrics HTTP/1.1\r\nHost: mock\r\nX: {}\r\n\r\n", "x".repeat(8000));
    let mut sent = 0;
    let stuck = loop {
        let rest = &request.as_bytes()[sent % request.len()..];
        match client.socket.write(rest) {
            Ok(count) => sent += count,
            Err(error) => break error,
        }
        assert!(sent < 64 << 20, "the server takes requests for ever");
    };
    assert_eq!(stuck.kind(), ErrorKind::WouldBlock);
    let (asked, taken) = ((sent / request.len()) as u64, mock.truth(false).requests);
    assert!(taken < asked, "{taken} of {asked} requests answered into the void");
    for _ in 0..asked {
        assert!(client.response().whole);
    }
    client.socket.write_all(&request.as_bytes()[sent % request.len()..]).unwrap();
    assert!(client.response().whole);
    assert_eq!(mock.stop().unwrap().requests, asked + 1);
}

/// One model behind two threads: its only slot serves one request after the other, whichever thread it came in by, and
/// the truth of both threads together is what the client saw.
#[test]
fn two_threads_serve_from_one_model_and_count_as_one_server() {
    let cost = Cost { base_ms: 2.0, per_sequence_ms: 0.0, per_prefill_token_ms: 0.0 };
    let batching = Batching { slots: 1, cost, ..Batching::default() };
    let serving = model::Settings::serving(Serving::Batching(batching));
    let mock = Mock::start(Settings { serving, workers: 2, accounts_max: 100, ..quick() }).unwrap();
    let mut plan = rig::plan_for(mock.address().port());
    plan.workload.output_tokens = 3.into();
    // Connections for all of them at once: the kernel deals them to both threads.
    let run = rig::run(&plan, 1, &rig::level(Load::closed(16), 62));
    let running = Client::to(&mock).get("/metrics").body;
    assert!(
        String::from_utf8(running)
            .unwrap()
            .contains("num_requests_running{engine=\"0\",model_name=\"mock-model\"} 0.0")
    );
    let truth = mock.stop().unwrap();
    // Two of them are warm-ups.
    assert_eq!((run.count(Class::Ok), run.records.len()), (62, 64));
    assert_eq!((truth.generations, truth.completed(), truth.in_flight), (64, 64, 0));
    assert_eq!((truth.events, truth.tokens), (3 * 64, 3 * 64));
    assert_eq!((truth.ttft().count, truth.itl().count, truth.accounts.len()), (64, 128, 64));
    assert!((2..=16).contains(&truth.in_flight_max), "{}", truth.in_flight_max);
    let mut dues: Vec<Stamp> =
        truth.accounts.iter().flat_map(|a| [a.first.unwrap().due, a.last.unwrap().due]).collect();
    dues.sort_unstable();
    assert!(dues.windows(2).all(|pair| pair[1].nanos_since(pair[0]) >= 2_000_000), "steps overlap");
}

#[test]
fn a_thousand_streams_at_once_each_on_its_own_phase() {
    let serving = model::Settings::fixed(300.0, 20.0);
    let mock = Mock::start(Settings { serving, role: Role::Early, ..quick() }).unwrap();
    let mut clients: Vec<Client> = (0..1000).map(|_| Client::to(&mock)).collect();
    let request = post(CHAT, &chat(&json!({"max_tokens": 10, "stream_options": {"include_usage": true}})));
    for client in &mut clients {
        client.send(&request);
    }
    for client in &mut clients {
        let response = client.response();
        assert!(response.whole);
        assert_eq!(response.text(0).0.split_whitespace().count(), 10);
        assert_eq!(response.events().len(), 13);
    }
    let truth = mock.stop().unwrap();
    assert_eq!((truth.completed(), truth.events, truth.connections_max), (1000, 10_000, 1000));
}

#[test]
fn the_set_times_are_kept() {
    let ms = Duration::from_millis;
    let serving = model::Settings::fixed(60.0, 10.0);
    let mock = Mock::start(Settings { serving, max_tokens: 21, ..quick() }).unwrap();
    let clock = RunClock::start();
    let start = clock.now();
    let response = Client::to(&mock).post(CHAT, &chat(&json!({})));
    let took = clock.now() - start;
    assert!(response.whole);
    // Never early; late only as far as other tests take the machine.
    assert!((ms(260)..ms(1260)).contains(&took), "{took:?}");
    let truth = mock.stop().unwrap();
    assert!(truth.ttft().min_us >= 59_900.0, "{:?}", truth.ttft());
    assert!((truth.itl().mean_us - 10_000.0).abs() < 5_000.0, "{:?}", truth.itl());
}

#[test]
fn tls_carries_the_same_stream() {
    let identity = Identity::self_signed(&["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from_pem_slice(&identity.certificate_pem).unwrap();
    let mock = Mock::start(Settings { tls: Some(identity), ..quick() }).unwrap();

    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = "localhost".try_into().unwrap();
    let session = rustls::ClientConnection::new(std::sync::Arc::new(config), name).unwrap();
    let mut tls = rustls::StreamOwned::new(session, TcpStream::connect(mock.address()).unwrap());
    let close = post(CHAT, &chat(&json!({}))).replace("Host: mock", "Host: mock\r\nConnection: close");
    tls.write_all(close.as_bytes()).unwrap();
    let mut answer = String::new();
    tls.read_to_string(&mut answer).unwrap();
    assert!(answer.contains(" dance") && answer.ends_with("[DONE]\n\n\r\n0\r\n\r\n"));

    // Plain HTTP to the TLS port: an alert and the end, not a hang.
    let mut plain = Client::to(&mock);
    plain.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    while plain.more().unwrap_or(false) {}
}

#[test]
fn connections_wait_where_accepting_is_slow() {
    let delay = Duration::from_millis(80);
    let mock = with(Faults { accept_delay: delay, ..Faults::default() });
    let clock = RunClock::start();
    let start = clock.now();
    assert_eq!(Client::to(&mock).get("/health").status, 200);
    assert!(clock.now() - start >= delay);
}

#[test]
fn what_cannot_be_started_is_an_error() {
    assert!(Mock::start(Settings { cores: Some(vec![100_000]), ..quick() }).is_err());
    let identity = Identity { certificate_pem: b"no".to_vec(), key_pem: Vec::new() };
    assert!(Mock::start(Settings { tls: Some(identity), ..quick() }).is_err());
    let mock = Mock::start(quick()).unwrap();
    for workers in [1, 2] {
        let again = Settings { port: mock.address().port(), workers, ..quick() };
        assert_eq!(Mock::start(again).unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}
