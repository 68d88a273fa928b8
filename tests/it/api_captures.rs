//! The dialects against answers of real servers (`tests/captures`) and against the dialect cases (`tests/cases`).
//!
//! The framing here is naive on purpose: it knows whole responses only and shares nothing with `wire`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokload::api::{
    Channel, Dialect, Finish, Frame, NotAnObject, Reader, Usage, error_message, fuzz_json_scan, names_field,
};
use tokload::wire::json::Json;

#[test]
fn every_capture_assembles_to_its_reading() {
    let mut read = 0;
    for (name, capture) in captures() {
        let response = Response::of(&capture.raw);
        if response.status == 200 {
            let answer = assemble(capture.dialect, &response);
            assert_eq!(answer.refused, 0, "{name}: data that is no object");
            assert_eq!(answer.summary(), expected_summary(&capture.json), "{name}");
        } else {
            check_refusal(&name, &capture, &response);
        }
        read += 1;
    }
    assert_eq!(read, 206, "the captures of the chat and completions routes");
}

#[test]
fn listed_tokens_add_up_to_the_tokens_asked_for() {
    let mut checked = 0;
    for (name, capture) in captures() {
        let response = Response::of(&capture.raw);
        let streams_logprobs = name.contains("-stream-logprobs") && !name.starts_with("dynamo");
        if response.status == 200 && streams_logprobs && !name.starts_with("transformers") {
            let answer = assemble(capture.dialect, &response);
            let listed: u32 = answer.choices.values().map(|choice| choice.tokens).sum();
            assert_eq!(capture.json["request"]["body"]["max_tokens"], listed, "{name}");
            checked += 1;
        }
    }
    assert_eq!(checked, 6, "two routes of three servers list tokens");
}

#[test]
fn only_the_servers_that_refuse_an_optional_field_name_it() {
    let mut named = Vec::new();
    for (name, capture) in captures() {
        let response = Response::of(&capture.raw);
        for field in ["ignore_eos", "min_tokens", "stream_options", "continuous_usage_stats"] {
            if response.status != 200 && names_field(&response.body, field) {
                named.push(format!("{name} {field}"));
            }
        }
    }
    let expected = ["ignore-eos ignore_eos", "min-tokens min_tokens", "stop-word ignore_eos"];
    assert_eq!(named, expected.map(|case| format!("transformers-serve__chat-stream-{case}")));
}

#[test]
fn the_scan_agrees_with_the_full_parser_on_every_captured_event() {
    let mut random = Random(3);
    for (_, capture) in captures() {
        let events = Response::of(&capture.raw).events();
        for (place, event) in events.iter().enumerate() {
            // Chunks of one stream differ in their text alone: the first and every fifth will do.
            if place < 5 || place % 5 == 0 {
                fuzz_json_scan(&event.data);
                fuzz_json_scan(&random.damaged(&event.data));
            }
        }
    }
}

#[test]
fn every_dialect_case_is_read_as_expected() {
    let cases: Value = serde_json::from_slice(&fs::read(tests("cases/cases.json")).unwrap()).unwrap();
    let mut read = 0;
    for case in cases["cases"].as_array().unwrap() {
        let id = case["id"].as_str().unwrap();
        let here =
            ["sse-invalid-utf8", "sse-pretty-json", "sse-bad-json-mid", "http-200-json-error"].contains(&id);
        if id.starts_with("oai-") || here {
            check_case(id, case);
            read += 1;
        }
    }
    assert_eq!(read, 49);
}

fn check_case(id: &str, case: &Value) {
    let raw = fs::read(tests("cases").join(case["file"].as_str().unwrap())).unwrap();
    let response = Response::of(&raw);
    let dialect =
        if response.body_has("\"text_completion\"") { Dialect::Openai } else { Dialect::OpenaiChat };
    let answer = assemble(dialect, &response);
    let expected = &case["expected"];
    let n = case["n"].as_u64().unwrap_or(1);
    // With n = 1 all choices form one answer (D10).
    let all = |text: fn(&Choice) -> &str| answer.pieces_in_order(n > 1, text);
    assert_eq!(all(|choice| &choice.visible), expected["content"], "{id}: content");
    assert_eq!(all(|choice| &choice.reasoning), expected["reasoning"], "{id}: reasoning");
    assert_eq!(all(|choice| &choice.tool), expected["tool_text"], "{id}: tool_text");
    if let Some(contents) = expected["contents"].as_object() {
        for (index, text) in contents {
            assert_eq!(answer.choices[&index.parse().unwrap()].visible, *text, "{id}: choice {index}");
        }
    }
    assert_eq!(answer.visible_in.len() as u64, expected["content_chunks"], "{id}: content_chunks");
    assert_eq!(answer.output_in.len() as u64, expected["output_chunks"], "{id}: output_chunks");
    let first = answer.output_in.first().map(|place| *place as u64);
    assert_eq!(first, expected["first_output_event_index"].as_u64(), "{id}: first_output_event_index");
    let finish = answer.choices.values().find_map(|choice| choice.finish);
    assert_eq!(finish, expected["finish_reason"].as_str().map(finish_of), "{id}: finish_reason");
    let usage = answer.usage_in.last().map(|(_, usage, _)| *usage);
    assert_eq!(usage, usage_of(&expected["usage"]), "{id}: usage");
    let failed = answer.errors > 0 || answer.refused > 0;
    let failure = matches!(expected["outcome"].as_str(), Some("stream_error" | "malformed"));
    assert_eq!(failed, failure, "{id}: outcome");
}

fn check_refusal(name: &str, capture: &Capture, response: &Response) {
    let message = error_message(&mut Json::new(), &response.body);
    let Some(errors) = capture.json["read_as"]["errors"].as_array().filter(|errors| !errors.is_empty())
    else {
        let bare: Result<Value, _> = serde_json::from_slice(&response.body);
        let expected = match bare {
            Ok(body) => {
                let message = [&body["message"], &body["error"]["message"]];
                message.iter().find_map(|text| text.as_str()).map(str::to_owned)
            }
            Err(_) => Some(String::from_utf8(response.body.clone()).unwrap()).filter(|body| !body.is_empty()),
        };
        assert_eq!(message, expected, "{name}");
        return;
    };
    let error = &errors[0];
    let candidates =
        [&error["error"]["message"], &error["detail"], &error["detail"][0]["msg"], &error["error"]["type"]];
    let expected = candidates.iter().find_map(|text| text.as_str().filter(|text| !text.is_empty()));
    let expected: Vec<&str> = expected.unwrap().split_whitespace().take(12).collect();
    let message = message.unwrap();
    assert!(message.contains(&expected.join(" ")), "{name}: {message}");
}

/// Reads a whole response; stops at the first failure, as a client does.
fn assemble(dialect: Dialect, response: &Response) -> Answer {
    let mut answer = Answer::default();
    let mut json = Json::new();
    if !response.is_event_stream {
        let outcome = dialect.read_whole(&mut json, &response.body, &mut answer);
        answer.close_event(0, outcome);
        return answer;
    }
    let mut frame = Frame::new();
    for (place, event) in response.events().into_iter().enumerate() {
        if event.data == b"[DONE]" {
            break;
        }
        if event.is_error {
            answer.errors += 1;
            break;
        }
        if event.data == b"null" {
            continue;
        }
        let outcome = dialect.read_event(&mut json, &mut frame, &event.data, &mut answer);
        answer.close_event(place, outcome);
        if answer.errors > 0 || answer.refused > 0 {
            break;
        }
    }
    answer
}

/// Everything reported by the events of one response.
#[derive(Default)]
struct Answer {
    choices: BTreeMap<u32, Choice>,
    /// Indices of choices in the order of their pieces.
    order: Vec<(u32, Channel, String)>,
    usage_in: Vec<(usize, Usage, u32)>,
    output_in: Vec<usize>,
    visible_in: Vec<usize>,
    errors: u32,
    refused: u32,
    /// Of the event being read.
    heard: Vec<(u32, Channel)>,
    usage: Option<(Usage, u32)>,
}

#[derive(Default)]
struct Choice {
    visible: String,
    reasoning: String,
    tool: String,
    finish: Option<Finish>,
    tokens: u32,
    events: BTreeMap<Channel, u32>,
}

impl Reader for Answer {
    const WANTS_TEXT: bool = true;

    fn piece(&mut self, choice: u32, channel: Channel, text: &str) {
        assert!(!text.is_empty());
        self.heard.push((choice, channel));
        self.order.push((choice, channel, text.to_owned()));
        let choice = self.choices.entry(choice).or_default();
        match channel {
            Channel::Content | Channel::Refusal => choice.visible.push_str(text),
            Channel::Reasoning => choice.reasoning.push_str(text),
            Channel::Tool => choice.tool.push_str(text),
        }
    }

    fn finish(&mut self, choice: u32, reason: Finish) {
        match reason {
            Finish::Error => self.errors += 1,
            reason => self.choices.entry(choice).or_default().finish = Some(reason),
        }
    }

    fn tokens(&mut self, choice: u32, count: u32) {
        self.choices.entry(choice).or_default().tokens += count;
    }

    fn usage(&mut self, usage: Usage, choices: u32) {
        self.usage = Some((usage, choices));
    }

    fn error(&mut self, _message: &str) {
        self.errors += 1;
    }
}

impl Answer {
    fn close_event(&mut self, place: usize, outcome: Result<(), NotAnObject>) {
        self.refused += u32::from(outcome.is_err());
        let mut heard = std::mem::take(&mut self.heard);
        heard.sort_unstable();
        heard.dedup();
        if !heard.is_empty() {
            self.output_in.push(place);
        }
        if heard.iter().any(|(_, channel)| matches!(channel, Channel::Content | Channel::Refusal)) {
            self.visible_in.push(place);
        }
        for (choice, channel) in heard {
            *self.choices.entry(choice).or_default().events.entry(channel).or_default() += 1;
        }
        self.usage_in.extend(self.usage.take().map(|(usage, choices)| (place, usage, choices)));
    }

    /// The text of choice 0, or of all choices as it came.
    fn pieces_in_order(&self, by_index: bool, text: fn(&Choice) -> &str) -> String {
        if by_index {
            return self.choices.get(&0).map(text).unwrap_or_default().to_owned();
        }
        let mut all = Choice::default();
        for (_, channel, piece) in &self.order {
            match channel {
                Channel::Content | Channel::Refusal => all.visible.push_str(piece),
                Channel::Reasoning => all.reasoning.push_str(piece),
                Channel::Tool => all.tool.push_str(piece),
            }
        }
        text(&all).to_owned()
    }

    fn summary(&self) -> Summary {
        let count = |choice: &Choice, channel| choice.events.get(&channel).copied().unwrap_or_default();
        let choices = self.choices.iter().map(|(index, choice)| {
            let summary = ChoiceSummary {
                text: choice.visible.clone(),
                reasoning: choice.reasoning.clone(),
                tool: choice.tool.clone(),
                finish: choice.finish,
                events: [Channel::Content, Channel::Reasoning, Channel::Tool]
                    .map(|channel| count(choice, channel)),
            };
            (*index, summary)
        });
        Summary {
            choices: choices.collect(),
            usage: self.usage_in.last().map(|(_, usage, _)| *usage),
            usage_at: self
                .usage_in
                .iter()
                .map(|(place, _, choices)| (*place as u64, u64::from(*choices)))
                .collect(),
            errors: u64::from(self.errors),
        }
    }
}

#[derive(Debug, PartialEq)]
struct Summary {
    choices: BTreeMap<u32, ChoiceSummary>,
    usage: Option<Usage>,
    usage_at: Vec<(u64, u64)>,
    errors: u64,
}

#[derive(Debug, PartialEq)]
struct ChoiceSummary {
    text: String,
    reasoning: String,
    tool: String,
    finish: Option<Finish>,
    events: [u32; 3],
}

fn expected_summary(json: &Value) -> Summary {
    let read_as = &json["read_as"];
    let choices = read_as["choices"].as_object().unwrap().iter().filter_map(|(index, choice)| {
        let text = |name: &str| choice[name].as_str().unwrap().to_owned();
        let count = |name: &str| u32::try_from(choice[name].as_u64().unwrap()).unwrap();
        let calls = choice["tool_calls"].as_object().unwrap().values();
        let tool: String = calls
            .flat_map(|call| [&call["name"], &call["arguments"]])
            .map(|text| text.as_str().unwrap_or_default())
            .collect();
        let summary = ChoiceSummary {
            text: text("text"),
            reasoning: text("reasoning"),
            tool,
            finish: choice["finish_reason"].as_str().map(finish_of),
            events: ["content_events", "reasoning_events", "tool_events"].map(count),
        };
        // A choice that never said anything is not reported.
        let silent = summary.finish.is_none() && summary.events == [0; 3];
        (!silent).then(|| (index.parse().unwrap(), summary))
    });
    let places = read_as["usage_at"].as_array().unwrap().iter();
    Summary {
        choices: choices.collect(),
        usage: usage_of(&read_as["usage"]),
        usage_at: places.map(|at| (at["event"].as_u64().unwrap(), at["choices"].as_u64().unwrap())).collect(),
        errors: read_as["errors"].as_array().unwrap().len() as u64,
    }
}

fn usage_of(usage: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64().map(|count| u32::try_from(count).unwrap());
    usage.is_object().then(|| Usage {
        prompt: count(&usage["prompt_tokens"]),
        completion: count(&usage["completion_tokens"]),
        cached: count(&usage["prompt_tokens_details"]["cached_tokens"]),
        reasoning: count(&usage["completion_tokens_details"]["reasoning_tokens"]),
    })
}

fn finish_of(reason: &str) -> Finish {
    match reason {
        "stop" => Finish::Stop,
        "length" => Finish::Length,
        "tool_calls" => Finish::ToolCalls,
        "function_call" => Finish::FunctionCall,
        "content_filter" => Finish::ContentFilter,
        _ => panic!("{reason}"),
    }
}

struct Capture {
    raw: Vec<u8>,
    json: Value,
    dialect: Dialect,
}

fn captures() -> BTreeMap<String, Capture> {
    let files = fs::read_dir(tests("captures")).unwrap().map(|entry| entry.unwrap().path());
    let notes = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let load = |path: PathBuf| {
        let json: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let dialects = [Dialect::OpenaiChat, Dialect::Openai];
        let dialect = *dialects.iter().find(|dialect| json["request"]["path"] == dialect.path()).unwrap();
        let raw = fs::read(path.with_extension("raw")).unwrap();
        (path.file_stem().unwrap().to_string_lossy().into_owned(), Capture { raw, json, dialect })
    };
    notes.map(load).collect()
}

fn tests(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// A whole response, framed naively.
struct Response {
    status: u16,
    is_event_stream: bool,
    body: Vec<u8>,
}

struct Event {
    data: Vec<u8>,
    /// `event: error`, or a field named `error`.
    is_error: bool,
}

impl Response {
    fn of(raw: &[u8]) -> Response {
        let end = raw.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(raw[..end].to_vec()).unwrap().to_ascii_lowercase();
        let body = &raw[end + 4..];
        let chunked = head.contains("transfer-encoding: chunked");
        Response {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            is_event_stream: head.contains("content-type: text/event-stream"),
            body: if chunked { dechunked(body) } else { body.to_vec() },
        }
    }

    fn body_has(&self, text: &str) -> bool {
        self.body.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// Events with data, split at blank lines; one cut off at the end is none.
    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let (mut data, mut is_error) = (Vec::new(), false);
        for line in self.body.split(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                if !data.is_empty() || is_error {
                    events.push(Event { data: data.join(&b'\n'), is_error });
                }
                (data, is_error) = (Vec::new(), false);
            } else if let Some(value) = line.strip_prefix(b"data:") {
                data.push(value.strip_prefix(b" ").unwrap_or(value).to_vec());
            } else if line.starts_with(b"event: error") || line.starts_with(b"error:") {
                is_error = true;
            }
        }
        events
    }
}

fn dechunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = usize::from_str_radix(str::from_utf8(&rest[..end]).unwrap().trim(), 16).unwrap();
        let chunk = &rest[end + 2..];
        body.extend_from_slice(&chunk[..size.min(chunk.len())]);
        rest = chunk.get(size + 2..).unwrap_or_default();
    }
    body
}

/// xorshift: the same bytes in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }

    /// `data` with a few bytes copied elsewhere, removed or replaced.
    fn damaged(&mut self, data: &[u8]) -> Vec<u8> {
        let mut data = data.to_vec();
        let from = self.below(data.len());
        let end = (from + 1 + self.below(24)).min(data.len());
        let piece = data[from..end].to_vec();
        let to = self.below(data.len());
        match self.below(3) {
            0 => drop(data.splice(to..to, piece)),
            1 => drop(data.drain(from..end)),
            _ => data[to] = b"\"\\{}[],:0en\x01\xff"[self.below(13)],
        }
        data
    }
}
