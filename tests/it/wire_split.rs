//! The wire decoders on the recorded cases: what the framing alone decides comes out as listed, no cut of the
//! stream changes anything, and slow decoders written the obvious way agree, on the cases and on mutations of them.

mod naive;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tokload::rng::{self, Purpose, Stream};
use tokload::wire::http::{self, ContentType, Framing, Part, Response};
use tokload::wire::sse::{self, Name};

/// One response of `cases.json` with its bytes.
struct Case {
    id: String,
    bytes: Vec<u8>,
    /// Ends of reads.
    splits: Vec<usize>,
    open: bool,
    expected: Value,
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let text = fs::read(folder.join("cases.json")).unwrap();
    let list: Value = serde_json::from_slice(&text).unwrap();
    let mut cases = Vec::new();
    for entry in list["cases"].as_array().unwrap() {
        let id = entry["id"].as_str().unwrap();
        match entry["responses"].as_array() {
            None => cases.push(case(id.to_owned(), entry, &folder)),
            Some(responses) => {
                let numbered = responses.iter().zip(1..);
                cases.extend(numbered.map(|(response, i)| case(format!("{id}-{i}"), response, &folder)));
            }
        }
    }
    assert!(cases.len() > 100, "cases are missing");
    cases
}

fn case(id: String, entry: &Value, folder: &Path) -> Case {
    let file: PathBuf = folder.join(entry["file"].as_str().unwrap());
    let bytes = fs::read(file).unwrap();
    assert_eq!(bytes.len() as u64, entry["bytes"].as_u64().unwrap(), "{id}");
    let splits = match &entry["splits"] {
        Value::Array(ends) => ends.iter().map(|end| end.as_u64().unwrap() as usize).collect(),
        Value::String(all) if all == "all" => (1..bytes.len()).collect(),
        _ => Vec::new(),
    };
    Case { id, bytes, splits, open: entry["eof"] == "open", expected: entry["expected"].clone() }
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Event {
    data: Vec<u8>,
    name: Name,
    error_field: bool,
}

impl From<sse::Event<'_>> for Event {
    fn from(event: sse::Event<'_>) -> Event {
        Event { data: event.data.to_vec(), name: event.name, error_field: event.error_field }
    }
}

/// All that the two decoders together make of a response.
#[derive(Clone, PartialEq, Debug, Default)]
struct Reading {
    interim: Vec<u16>,
    head: Option<http::Head>,
    body: Vec<u8>,
    events: Vec<Event>,
    /// The event without its blank line at a clean end.
    last: Option<Event>,
    complete: bool,
    keep_alive: bool,
    /// Bytes after the end of the message.
    leftover: usize,
    error: Option<http::Error>,
}

/// The decoders, reused from one reading to the next as a connection would.
struct Reader {
    response: Response,
    decoder: sse::Decoder,
}

impl Reader {
    fn new() -> Reader {
        Reader {
            response: Response::new(http::Limits::default()),
            decoder: sse::Decoder::new(sse::Limits::default()),
        }
    }

    /// Reads the pieces; a connection that does not stay open closes after them.
    fn read<'a>(&mut self, pieces: impl IntoIterator<Item = &'a [u8]>, open: bool) -> Reading {
        self.response.reset();
        self.decoder.reset();
        let mut reading = Reading::default();
        for piece in pieces {
            if reading.error.is_none()
                && let Err(error) = self.read_piece(piece, &mut reading)
            {
                reading.error = Some(error);
            }
        }
        if !open && reading.error.is_none() {
            reading.error = self.response.on_eof().err();
        }
        reading.head = self.response.head().copied();
        reading.complete = self.response.is_complete();
        reading.keep_alive = self.response.keep_alive();
        if reading.complete {
            reading.last = self.decoder.finish().expect("within the limits").map(Event::from);
        }
        reading
    }

    fn read_piece(&mut self, mut input: &[u8], reading: &mut Reading) -> Result<(), http::Error> {
        loop {
            let step = self.response.next(input)?;
            input = &input[step.used..];
            match step.part {
                Some(Part::Interim(status)) => reading.interim.push(status),
                Some(Part::Head | Part::End) => {}
                Some(Part::Body(data)) => {
                    reading.body.extend_from_slice(data);
                    reading.events.extend(events_of(&mut self.decoder, data));
                }
                None => break,
            }
        }
        reading.leftover += input.len();
        Ok(())
    }
}

fn events_of(decoder: &mut sse::Decoder, mut input: &[u8]) -> Vec<Event> {
    let mut events = Vec::new();
    loop {
        let step = decoder.next(input).expect("within the limits");
        input = &input[step.used..];
        let Some(event) = step.event else { break };
        events.push(event.into());
    }
    assert!(input.is_empty());
    events
}

/// The bytes between consecutive ends, and behind the last one.
fn pieces<'a>(bytes: &'a [u8], ends: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let ends = ends.iter().copied().chain(std::iter::once(bytes.len()));
    starts.zip(ends).map(|(start, end)| &bytes[start..end])
}

#[test]
fn every_split_is_the_same() {
    let mut reader = Reader::new();
    for case in cases() {
        let bytes = &case.bytes[..];
        let whole = reader.read([bytes], case.open);
        assert_eq!(reader.read(pieces(bytes, &case.splits), case.open), whole, "{} at its splits", case.id);
        assert_eq!(reader.read(bytes.chunks(1), case.open), whole, "{} byte by byte", case.id);
        if bytes.len() > 3000 {
            continue;
        }
        for cut in 0..=bytes.len() {
            assert_eq!(reader.read(pieces(bytes, &[cut]), case.open), whole, "{} cut at {cut}", case.id);
        }
    }
}

#[test]
fn a_stream_of_more_than_a_mebibyte_per_line_is_the_same_in_pieces_of_any_size() {
    let mut reader = Reader::new();
    let case = cases().into_iter().find(|case| case.id == "sse-line-over-1mib").unwrap();
    let whole = reader.read([&case.bytes[..]], case.open);
    assert!(whole.events.iter().any(|event| event.data.len() > 1 << 20));
    for len in [1000, 4096, 65_536, 1 << 20] {
        assert_eq!(reader.read(case.bytes.chunks(len), case.open), whole, "in pieces of {len}");
    }
}

#[test]
fn every_case_is_framed_as_listed() {
    let mut reader = Reader::new();
    for case in cases() {
        let reading = reader.read([&case.bytes[..]], case.open);
        let expected = &case.expected;
        let id = &case.id;
        assert_eq!(reading.head.map(|head| u64::from(head.status)), expected["http_status"].as_u64(), "{id}");
        assert_eq!(serde_json::json!(reading.interim), expected["interim"], "{id}");
        let retry_after_s = reading.head.and_then(|head| head.retry_after_s);
        assert_eq!(retry_after_s, expected["retry_after_s"].as_u64(), "{id}");

        let after = &case.bytes[case.bytes.len() - reading.leftover..];
        let leftover = reading.complete && !after.trim_ascii().is_empty();
        match expected["conn_reusable"].as_bool() {
            Some(reusable) => assert_eq!(reading.keep_alive && !leftover, reusable, "{id}"),
            None => assert_eq!(expected["conn_reusable"], "any", "{id}"),
        }

        let (outcome, kind) = (&expected["outcome"], &expected["error_kind"]);
        match reading.error {
            Some(http::Error::NoResponse) => assert_eq!(kind, "no_response", "{id}"),
            // With [DONE] before it, a cut is a remark for the room above.
            Some(http::Error::Truncated) => assert!(kind == "truncated" || outcome == "ok", "{id}"),
            Some(_) => assert_eq!(kind, "protocol", "{id}"),
            None => assert!(kind != "protocol" && kind != "truncated" && kind != "no_response", "{id}"),
        }
        assert_eq!(kind == "unsupported_encoding", reading.head.is_some_and(|head| head.encoded), "{id}");
    }
}

#[test]
fn every_case_dispatches_the_events_listed() {
    let mut reader = Reader::new();
    for case in cases() {
        let reading = reader.read([&case.bytes[..]], case.open);
        let Some(head) = reading.head else { continue };
        if !(200..300).contains(&head.status) || head.content_type != ContentType::EventStream || head.encoded
        {
            continue;
        }
        let listed = case.expected["events"].as_u64().unwrap() as usize;
        let all: Vec<_> = reading.events.iter().chain(&reading.last).collect();
        let done = all.iter().position(|event| event.data.trim_ascii() == b"[DONE]");
        let counted = done.map_or(all.len(), |done| done + 1);
        match case.expected["outcome"].as_str() {
            // These may fail in an event, whose meaning is not known here, and the count ends with it.
            Some("stream_error" | "malformed") => assert!(listed <= counted, "{}", case.id),
            _ => assert_eq!(counted, listed, "{}", case.id),
        }
    }
}

#[test]
fn error_events_and_error_fields_of_the_cases_are_told() {
    let mut reader = Reader::new();
    for case in cases() {
        let reading = reader.read([&case.bytes[..]], case.open);
        let told = reading.events.iter().any(|event| event.name == Name::Error || event.error_field);
        let expected =
            ["oai-event-error", "oai-event-error-plain", "oai-error-field-line"].contains(&&case.id[..]);
        assert_eq!(told, expected, "{}", case.id);
    }
}

#[test]
fn naive_decoders_agree_on_every_case() {
    let mut reader = Reader::new();
    let mut chunked = 0;
    for case in cases() {
        let reading = reader.read([&case.bytes[..]], true);
        if let Some(framed) = chunked_body(&case.bytes, &reading) {
            compare_chunked(framed, &reading);
            chunked += 1;
        }
        compare_sse(&reading.body, &case.id);
    }
    assert!(chunked > 80, "{chunked}");
}

#[test]
fn naive_decoders_agree_on_mutations_of_the_cases() {
    let mut reader = Reader::new();
    let cases: Vec<_> = cases().into_iter().filter(|case| case.bytes.len() < 6000).collect();
    for index in 0..4000 {
        let mut stream = rng::stream(20_261_130, Purpose::Choice, index);
        let case = &cases[index as usize % cases.len()];
        let reading = reader.read([&case.bytes[..]], true);
        let Some(framed) = chunked_body(&case.bytes, &reading) else { continue };

        let mut bytes = case.bytes.clone();
        let head_len = bytes.len() - framed.len();
        for _ in 0..=rng::below(&mut stream, 4) {
            mutate(&mut bytes, head_len, &mut stream);
        }
        let whole = reader.read([&bytes[..]], true);
        compare_chunked(&bytes[head_len..], &whole);
        let cut = rng::below(&mut stream, bytes.len() as u32 + 1) as usize;
        assert_eq!(
            reader.read(pieces(&bytes, &[cut]), true),
            whole,
            "{} mutated at {index}, cut at {cut}",
            case.id
        );

        let mut body = reading.body;
        for _ in 0..=rng::below(&mut stream, 4) {
            mutate(&mut body, 0, &mut stream);
        }
        compare_sse(&body, &case.id);
        sse::fuzz_sse(&body);
    }
}

#[test]
fn mutated_heads_keep_the_law_of_the_decoder() {
    let cases: Vec<_> = cases().into_iter().filter(|case| case.bytes.len() < 6000).collect();
    for index in 0..2000 {
        let mut stream = rng::stream(20_261_201, Purpose::Choice, index);
        let mut bytes = cases[index as usize % cases.len()].bytes.clone();
        bytes.truncate(400);
        for _ in 0..=rng::below(&mut stream, 4) {
            mutate(&mut bytes, 0, &mut stream);
        }
        http::fuzz_http_response(&bytes);
    }
}

/// The chunked body of a response with its framing, if it has one.
fn chunked_body<'a>(bytes: &'a [u8], reading: &Reading) -> Option<&'a [u8]> {
    if reading.head?.framing != Framing::Chunked {
        return None;
    }
    // The body begins behind the blank line of the final head, which no interim head of the cases contains.
    let mut start = 0;
    for _ in 0..=reading.interim.len() {
        start += bytes[start..].windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    }
    Some(&bytes[start..])
}

fn compare_chunked(framed: &[u8], reading: &Reading) {
    let naive = naive::chunked(framed);
    let found = match reading.error {
        Some(_) => naive::Ending::Broken,
        None if reading.complete => naive::Ending::Complete { leftover: reading.leftover },
        None => naive::Ending::Open,
    };
    let text = String::from_utf8_lossy(framed);
    assert_eq!(found, naive.ending, "{text}");
    assert!(reading.body == naive.data, "data differs for {text}");
}

fn compare_sse(body: &[u8], id: &str) {
    let mut decoder = sse::Decoder::new(sse::Limits::default());
    let events = events_of(&mut decoder, body);
    let last = decoder.finish().unwrap().map(Event::from);
    let naive = naive::sse(body);
    assert_eq!((events, last), naive, "{id}: {}", String::from_utf8_lossy(body));
}

/// Changes the bytes behind `from` in one place.
fn mutate(bytes: &mut Vec<u8>, from: usize, stream: &mut Stream) {
    const TOKENS: [&[u8]; 22] = [
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\n\r\n",
        b"\n\n",
        b"\r\r",
        b"0\r\n\r\n",
        b"0\r\n",
        b"5\r\nhello\r\n",
        b";x=y",
        b" ",
        b"0",
        b"f",
        b":",
        b": ",
        b"data",
        b"data: ",
        b"data:\n",
        b"event: error\n",
        b"error: x\n",
        b"\xEF\xBB\xBF",
        b"id: 7\r\n",
    ];
    let mut place = |len: usize| from + rng::below(stream, (len - from) as u32 + 1) as usize;
    let at = place(bytes.len());
    let other = place(bytes.len());
    let (start, end) = (at.min(other), at.max(other).min(at.min(other) + 8));
    match rng::below(stream, 5) {
        0 => {
            let token = TOKENS[rng::below(stream, TOKENS.len() as u32) as usize];
            bytes.splice(at..at, token.iter().copied());
        }
        1 => drop(bytes.drain(start..end)),
        2 => {
            let copy = bytes[start..end].to_vec();
            bytes.splice(at..at, copy);
        }
        3 if at < bytes.len() => bytes[at] ^= 1 << rng::below(stream, 8),
        _ if rng::below(stream, 8) == 0 => bytes.truncate(at),
        _ => {
            let token = TOKENS[rng::below(stream, TOKENS.len() as u32) as usize];
            bytes.splice(start..end, token.iter().copied());
        }
    }
}
