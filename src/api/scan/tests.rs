use super::*;
use crate::api::Dialect;
use Dialect::{Openai, OpenaiChat};

fn scan<'t>(dialect: Dialect, frame: &mut Frame, data: &'t [u8], wants_text: bool) -> Option<Known<'t>> {
    if let Some(Piece { choice, channel, text }) = frame.known(data, wants_text) {
        return Some(Known { choice, piece: Some((channel, text)), finish: None, usage: None });
    }
    beyond_frame(dialect.part_of_event()?, frame, data, wants_text)
}

/// What the scan knows of an event, as `choice channel text`; `None` where it asks.
fn known(dialect: Dialect, data: &str) -> Option<String> {
    fuzz_json_scan(data.as_bytes());
    let known = scan(dialect, &mut Frame::new(), data.as_bytes(), true)?;
    Some(shown(&known))
}

/// `choice channel text`, `, ` and why it ended, `, ` and `prompt completion cached reasoning`.
fn shown(known: &Known<'_>) -> String {
    let Known { choice, piece, finish, usage } = known;
    let piece = match piece {
        None => "nothing".to_owned(),
        Some((channel, text)) => format!("{choice} {channel:?} {text}"),
    };
    let finish = finish.map_or(String::new(), |finish| format!(", {finish:?}"));
    let usage = usage.map_or(String::new(), |usage| {
        let count = |count: Option<u32>| count.map_or("-".to_owned(), |n| n.to_string());
        let counts = [usage.prompt, usage.completion, usage.cached, usage.reasoning].map(count);
        format!(", {}", counts.join(" "))
    });
    piece + &finish + &usage
}

#[test]
fn the_usual_chunk_of_each_server_is_known() {
    for (server, dialect, data, expected) in USUAL {
        assert_eq!(known(*dialect, data).as_deref(), Some(*expected), "{server}");
    }
}

#[test]
fn events_of_one_answer_are_known_by_their_frame_alone() {
    for (server, dialect, data, _) in USUAL {
        let mut frame = Frame::new();
        let Some(Known { choice, piece: Some((channel, text)), finish: None, usage: None }) =
            scan(*dialect, &mut frame, data.as_bytes(), true)
        else {
            continue;
        };
        let other = |piece: &str| data.replacen(&format!("\"{text}\""), &format!("\"{piece}\""), 1);
        let known = |frame: &Frame, data: &str, wants_text| {
            let known = frame.known(data.as_bytes(), wants_text)?;
            Some((known.channel, known.text.to_owned()))
        };
        assert_eq!(known(&frame, &other("x y"), true), Some((channel, "x y".to_owned())), "{server}");
        assert_eq!(frame.known(data.as_bytes(), true).map(|known| known.choice), Some(choice), "{server}");
        // The text has to be decoded if anybody wants it.
        let escaped = other(r#"\n\""#);
        assert_eq!(known(&frame, &escaped, false), Some((channel, String::new())), "{server}");
        assert_eq!(known(&frame, &escaped, true), None, "{server}");
        for unlike in [
            other(""),
            other("\u{1}"),
            other(r"\u0041"),
            other("\",\""),
            format!("{data} "),
            format!(" {data}"),
        ] {
            assert_eq!(known(&frame, &unlike, false), None, "{server}: {unlike}");
        }
        assert_eq!(known(&frame, &data[..data.len() - 1], false), None, "{server}");
        frame.clear();
        assert_eq!(known(&frame, data, false), None, "{server}");
    }
}

#[test]
fn what_differs_beside_the_piece_is_walked_over_and_learned() {
    let mut frame = Frame::new();
    let event = |created: u32, text: &str| {
        format!(r#"{{"created":{created},"choices":[{{"index":2,"delta":{{"content":"{text}"}}}}]}}"#)
    };
    let mut known = |data: &str| {
        let by_frame = frame.known(data.as_bytes(), true).is_some();
        let known = scan(OpenaiChat, &mut frame, data.as_bytes(), true)?;
        Some((by_frame, known.choice, known.piece?.1.to_owned()))
    };
    assert_eq!(known(&event(1, "a")), Some((false, 2, "a".to_owned())));
    assert_eq!(known(&event(1, "bc")), Some((true, 2, "bc".to_owned())));
    assert_eq!(known(&event(2, "d")), Some((false, 2, "d".to_owned())));
    assert_eq!(known(&event(2, "e")), Some((true, 2, "e".to_owned())));
    // More around the piece than is kept.
    let long = event(2, "f").replacen('{', &format!(r#"{{"id":"{}","#, "x".repeat(600)), 1);
    assert_eq!(known(&long), Some((false, 2, "f".to_owned())));
    assert_eq!(known(&long), Some((false, 2, "f".to_owned())));
}

#[test]
fn anything_unusual_goes_to_the_full_parser() {
    for data in [
        "",
        "{",
        "{}",
        "null",
        "[DONE]",
        r#"{"choices":[]}"#,
        r#"{"choices":null}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a","content":"b"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a","content":""}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a","content":null}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"},"delta":{}}]}"#,
        r#"{"choices":[{"index":0,"index":1,"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"choices":[{"index":0}]}"#,
        r#"{"object":"x","object":"error","choices":[{"index":0,"delta":{"content":"a"}}]}"#,
        r#"{"object":"error","choices":[{"index":0,"delta":{"content":"a"}}]}"#,
        r#"{"type":"error","choices":[{"index":0,"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"error":{"message":"x"}}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a","reasoning":"b"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":["a"]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{}]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[],"tool_calls":[]}}]}"#,
        r#"{"choices":[{"index":0,"message":{"content":"a"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"},"token_ids":[1]}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"content":[]}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a\u0062"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a\n"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"c\u006fntent":"a"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"created":1.5}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"created":01}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"created":1234567890123456789}"#,
        r#"{"choices":[{"index":4294967296,"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"index":-1,"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}]} x"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}},]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"},}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],}"#,
        r#"{"choices":[{"index":0 "delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"x":nullx}"#,
        r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":nul}"#,
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\nb\"}}]}",
        "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"abcdefgh\u{1}\"}}]}",
        r#"{"choices":[{"index":0,"text":"a"}]}"#,
    ] {
        assert_eq!(known(OpenaiChat, data), None, "{data}");
    }
    assert_eq!(known(Openai, r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#), None);
    assert_eq!(known(Openai, r#"{"choices":[{"index":0,"text":"a","text":"b"}]}"#), None);
}

#[test]
fn where_no_text_is_wanted_simple_escapes_are_known_too() {
    for data in [r#"a\n"#, r#"\""#, r#"\\"#, r#"abcdefg\\\"hijk\/\b\f\r\t"#] {
        let data = format!(r#"{{"choices":[{{"index":2,"delta":{{"content":"{data}"}}}}]}}"#);
        fuzz_json_scan(data.as_bytes());
        let expected = Known { choice: 2, piece: Some((Channel::Content, "")), finish: None, usage: None };
        assert_eq!(scan(OpenaiChat, &mut Frame::new(), data.as_bytes(), false), Some(expected), "{data}");
    }
    for data in [r"\u0041", r"\x", r"\", r#"\\""#] {
        let data = format!(r#"{{"choices":[{{"index":2,"delta":{{"content":"{data}"}}}}]}}"#);
        fuzz_json_scan(data.as_bytes());
        assert_eq!(scan(OpenaiChat, &mut Frame::new(), data.as_bytes(), false), None, "{data}");
    }
}

#[test]
fn bad_utf8_is_never_handed_out() {
    for bad in [&b"\xff"[..], b"\xe2", b"\xe2\x82", b"\xf0\x9f\xa6", b"\xed\xa0\x80", b"\xc0\xaf"] {
        for place in ["model", "content"] {
            let mut data = br#"{"model":""#.to_vec();
            data.extend(if place == "model" { bad } else { b"m" });
            data.extend(br#"","choices":[{"index":0,"delta":{"content":""#);
            data.extend(if place == "content" { bad } else { b"a" });
            data.extend(br#""}}]}"#);
            fuzz_json_scan(&data);
            assert_eq!(scan(OpenaiChat, &mut Frame::new(), &data, true).is_some(), place == "model");
        }
    }
}

#[test]
fn a_run_ends_at_the_first_special_byte_wherever_it_stands() {
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1F);
    let mut random = Random(7);
    for length in 0..40 {
        for _ in 0..200 {
            let text: Vec<u8> = (0..length).map(|_| BYTES[random.below(BYTES.len())]).collect();
            let naive = text.iter().position(is_special).unwrap_or(length);
            assert_eq!(plain_run(&text), naive, "{text:?}");
        }
    }
}

/// The same of a whole answer.
fn whole_known(dialect: Dialect, body: &str) -> Option<String> {
    fuzz_json_scan(body.as_bytes());
    whole(dialect.part_of_whole()?, body.as_bytes(), true).as_ref().map(shown)
}

#[test]
fn the_usual_whole_answer_of_each_server_is_known() {
    for (server, dialect, body, expected) in WHOLE {
        assert_eq!(whole_known(*dialect, body).as_deref(), Some(*expected), "{server}");
    }
}

#[test]
fn an_unusual_whole_answer_goes_to_the_full_parser() {
    for body in [
        "",
        "{}",
        r#"{"choices":[]}"#,
        r#"{"choices":[{"message":{"content":"a"}},{"message":{"content":"b"}}]}"#,
        r#"{"choices":[{"delta":{"content":"a"}}]}"#,
        r#"{"choices":[{"text":"a"}]}"#,
        r#"{"choices":[{"message":{"content":"a","content":"b"}}]}"#,
        r#"{"choices":[{"message":{"content":"a","reasoning":"b"}}]}"#,
        r#"{"choices":[{"message":{"content":"a\n"}}]}"#,
        r#"{"choices":[{"message":{"content":["a"]}}]}"#,
        r#"{"choices":[{"message":{"content":"a","tool_calls":[{}]}}]}"#,
        r#"{"choices":[{"message":{"content":"a","tool_calls":[],"tool_calls":[]}}]}"#,
        r#"{"choices":[{"message":{"content":"a"},"message":{}}]}"#,
        r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop","finish_reason":null}]}"#,
        r#"{"choices":[{"message":{"content":"a"},"finish_reason":"s\u0074op"}]}"#,
        r#"{"choices":[{"message":{"content":"a"},"finish_reason":1}]}"#,
        r#"{"choices":[{"message":{"content":"a"},"token_ids":[1]}]}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"error":"x"}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"object":"error"}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1},"usage":null}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1,"prompt_tokens":2}}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":-1}}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1.0}}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":4294967296}}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":null}}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"cost":1}}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens_details":{"cached_tokens":1,"cached_tokens":2}}}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens_details":{"cached_tokens":null}}}"#,
        r#"{"choices":[{"message":{"content":"a"}}],"timings":{}}"#,
        r#"{"choices":[{"message":{"content":"a"}}]} x"#,
    ] {
        assert_eq!(whole_known(OpenaiChat, body), None, "{body}");
    }
}

/// Every cut of the shorter answers, and every byte of them by each of a few others: whatever is known then is what the full
/// parser reports.
#[test]
fn damaged_whole_answers_are_never_known_wrongly() {
    for (_, _, body, _) in &WHOLE[2..] {
        for at in 0..body.len() {
            fuzz_json_scan(&body.as_bytes()[..at]);
            for byte in *b"\"\\0,}]n \xff" {
                let mut damaged = body.as_bytes().to_vec();
                damaged[at] = byte;
                fuzz_json_scan(&damaged);
            }
        }
    }
}

#[test]
fn the_last_events_of_a_stream_are_known() {
    for (data, expected) in [
        (r#"{"choices":[{"index":1,"delta":{},"finish_reason":"stop"}]}"#, "nothing, Stop"),
        (
            r#"{"choices":[{"index":1,"delta":{"content":"a"},"finish_reason":"length"}]}"#,
            "1 Content a, Length",
        ),
        (r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":""}]}"#, "0 Content a"),
        (
            r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"total_tokens":3,"completion_tokens":2}}"#,
            "0 Content a, 1 2 - -",
        ),
    ] {
        assert_eq!(known(OpenaiChat, data).as_deref(), Some(expected), "{data}");
    }
}

/// What an event says beside its piece is not carried over to the next one that looks like it.
#[test]
fn an_event_that_says_more_leaves_no_frame() {
    for more in [r#","finish_reason":"stop"}]}"#, r#"}],"usage":{"prompt_tokens":1}}"#] {
        let event = |text: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}{more}"#);
        let mut frame = Frame::new();
        let (first, second) = (event("a"), event("b"));
        let first = scan(OpenaiChat, &mut frame, first.as_bytes(), true).unwrap();
        assert!(first.finish.is_some() || first.usage.is_some());
        assert_eq!(frame.known(second.as_bytes(), true), None);
        let second = scan(OpenaiChat, &mut frame, second.as_bytes(), true).unwrap();
        assert_eq!((second.finish, second.usage), (first.finish, first.usage));
    }
}

/// Tens of thousands of damaged chunks. Whatever the scan knows of one, the full parser reports the same.
#[test]
fn the_scan_agrees_with_the_full_parser_on_damaged_chunks() {
    let mut random = Random(1);
    let mut still_known = 0;
    for round in 0..8_000 {
        let (_, dialect, data, _) = USUAL[round % USUAL.len()];
        let whole = data.as_bytes();
        let mut data = whole.to_vec();
        for _ in 0..=random.below(4) / 3 {
            damage(&mut data, &mut random);
        }
        // Behind the whole one, whose frame it may have.
        fuzz_json_scan(&[whole, b"\n", &data].concat());
        still_known += usize::from(scan(dialect, &mut Frame::new(), &data, false).is_some());
    }
    assert!((800..4_000).contains(&still_known), "the damage is too weak or too strong: {still_known}");
}

fn damage(data: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(data.len() + 1);
    let size = random.below(12);
    let end = (at + size).min(data.len());
    match random.below(6) {
        0 => drop(data.drain(at..end)),
        1 => {
            let copy = data[at..end].to_vec();
            let to = random.below(data.len() + 1);
            data.splice(to..to, copy);
        }
        2 => data.truncate(data.len() - random.below(4).min(data.len())),
        3 => {
            // Where a field may begin, so that many of the results are documents again.
            let starts = (0..data.len()).filter(|at| matches!(data[*at], b'{' | b',')).map(|at| at + 1);
            let starts: Vec<usize> = starts.collect();
            let at = if starts.is_empty() { at } else { starts[random.below(starts.len())] };
            let token = TOKENS[random.below(TOKENS.len())];
            data.splice(at..at, token.bytes());
        }
        4 => {
            let token = TOKENS[random.below(TOKENS.len())];
            data.splice(at..end, token.bytes());
        }
        _ => {
            if let Some(byte) = data.get_mut(at) {
                *byte = BYTES[random.below(BYTES.len())];
            }
        }
    }
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
}

const BYTES: &[u8] =
    b"\"\"\\\\{}[],: aZ09.-+eEnu/\x00\x01\x1f \x20\x21\x22\x23\x5b\x5d\x7f\x80\x9f\xa0\xa2\xdc\xe2\xff\n\t";

const TOKENS: &[&str] = &[
    "\"content\":\"a\",",
    "\"content\":null,",
    "\"content\":\"\",",
    "\"index\":1,",
    "\"choices\":[],",
    "\"delta\":{},",
    "\"error\":\"e\",",
    "\"error\":null,",
    "\"object\":\"error\",",
    "\"type\":\"error\",",
    "\"usage\":{\"completion_tokens\":1},",
    "\"finish_reason\":\"stop\",",
    "\"token_ids\":[1,2],",
    "\"text\":\"t\",",
    "\"reasoning\":\"r\",",
    ",{\"index\":1}",
    "null",
    "{}",
    "[]",
    "\\n",
    "\\\"",
    "\\ud800",
    "\\u0041",
    "12345678901234567890",
    "1.5",
    "\u{fffd}",
    "\"",
    ",",
    " ",
];

/// Server, dialect, data, what it says.
const USUAL: &[(&str, Dialect, &str, &str)] = &[
    (
        "vLLM",
        OpenaiChat,
        r#"{"id":"chatcmpl-8d123781d36db42f","object":"chat.completion.chunk","created":1796061161,"model":"tiny","choices":[{"index":0,"delta":{"content":" corn"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
        "0 Content  corn",
    ),
    (
        "vLLM, role",
        OpenaiChat,
        r#"{"id":"chatcmpl-8d123781d36db42f","object":"chat.completion.chunk","created":1796061161,"model":"tiny","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}"#,
        "nothing",
    ),
    (
        "vLLM, reasoning",
        OpenaiChat,
        r#"{"id":"chatcmpl-949c893ddac27c1f","object":"chat.completion.chunk","created":1796061518,"model":"tiny-think","choices":[{"index":1,"delta":{"reasoning":" lef"},"logprobs":null,"finish_reason":null,"token_ids":null}]}"#,
        "1 Reasoning  lef",
    ),
    (
        "vLLM, completions",
        Openai,
        r#"{"id":"cmpl-991594e8c22022c8","object":"text_completion","created":1796061184,"model":"tiny","choices":[{"index":0,"text":" islan","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}"#,
        "0 Content  islan",
    ),
    (
        "llama.cpp",
        OpenaiChat,
        r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"content":" corn"}}],"created":1796061161,"id":"chatcmpl-x","model":"tiny","system_fingerprint":"b10434-7e4c0a9","object":"chat.completion.chunk"}"#,
        "0 Content  corn",
    ),
    (
        "llama.cpp, role",
        OpenaiChat,
        r#"{"choices":[{"finish_reason":null,"index":0,"delta":{"role":"assistant","content":null}}],"created":1796061161,"id":"chatcmpl-x","model":"tiny","system_fingerprint":"b10434-7e4c0a9","object":"chat.completion.chunk"}"#,
        "nothing",
    ),
    (
        "llama.cpp, completions",
        Openai,
        r#"{"choices":[{"text":" a","index":0,"logprobs":null,"finish_reason":null}],"created":1796061161,"model":"tiny","system_fingerprint":"b10434","object":"text_completion","id":"chatcmpl-x"}"#,
        "0 Content  a",
    ),
    (
        "llama-cpp-python",
        OpenaiChat,
        r#"{"id": "chatcmpl-2d40d0ff", "model": "tiny", "created": 1796061923, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": " a"}, "logprobs": null, "finish_reason": null}]}"#,
        "0 Content  a",
    ),
    (
        "SGLang",
        OpenaiChat,
        r#"{"id":"a41f","object":"chat.completion.chunk","created":1796061161,"model":"m","choices":[{"index":0,"delta":{"role":null,"content":"你🦀","reasoning_content":null,"tool_calls":null},"logprobs":null,"finish_reason":null,"matched_stop":null}],"usage":null}"#,
        "0 Content 你🦀",
    ),
    (
        "Dynamo",
        OpenaiChat,
        r#"{"id":"chatcmpl-aacff6f1","choices":[{"index":0,"delta":{"content":" filler1408","role":"assistant"},"finish_reason":null,"logprobs":null}],"created":1796061470,"model":"tiny","object":"chat.completion.chunk"}"#,
        "0 Content  filler1408",
    ),
    (
        "Dynamo, completions",
        Openai,
        r#"{"id":"cmpl-e2037cef","choices":[{"text":" filler1955","index":0}],"created":1796061476,"model":"tiny","system_fingerprint":null,"object":"text_completion","usage":null}"#,
        "0 Content  filler1955",
    ),
    (
        "transformers serve",
        OpenaiChat,
        r#"{"id":"req_0","choices":[{"delta":{"content":" a"},"index":0}],"created":1796061161,"model":"tiny","object":"chat.completion.chunk","system_fingerprint":""}"#,
        "0 Content  a",
    ),
    (
        "OpenAI",
        OpenaiChat,
        r#"{"id":"chatcmpl-B","object":"chat.completion.chunk","created":1796061161,"model":"gpt","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"refusal":" a"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x1"}"#,
        "0 Refusal  a",
    ),
];

const WHOLE: &[(&str, Dialect, &str, &str)] = &[
    (
        "vLLM",
        OpenaiChat,
        r#"{"id":"chatcmpl-b","object":"chat.completion","created":1796061183,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":" corn lef","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"vllm-0.32.0","usage":{"prompt_tokens":26,"total_tokens":42,"completion_tokens":16,"prompt_tokens_details":null,"completion_tokens_details":null},"prompt_logprobs":null,"prompt_token_ids":null,"prompt_text":null,"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}"#,
        "0 Content  corn lef, Length, 26 16 - -",
    ),
    (
        "vLLM, completions",
        Openai,
        r#"{"id":"cmpl-a","object":"text_completion","created":1796061186,"model":"tiny","choices":[{"index":0,"text":" islan","logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"vllm-0.32.0","usage":{"prompt_tokens":11,"total_tokens":16,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":0}},"kv_transfer_params":null,"ec_transfer_params":null,"metrics":null}"#,
        "0 Content  islan, Stop, 11 5 8 0",
    ),
    (
        "llama-cpp-python",
        OpenaiChat,
        r#"{"id": "chatcmpl-e", "object": "chat.completion", "created": 1796061924, "model": "tiny", "choices": [{"index": 0, "message": {"content": " mount ha", "role": "assistant"}, "logprobs": null, "finish_reason": "length"}], "usage": {"prompt_tokens": 26, "completion_tokens": 16, "total_tokens": 42}}"#,
        "0 Content  mount ha, Length, 26 16 - -",
    ),
    (
        "transformers serve",
        OpenaiChat,
        r#"{"id":"267c","choices":[{"finish_reason":"length","index":0,"message":{"content":" corn","role":"assistant"}}],"created":1796061608,"model":"m","object":"chat.completion","usage":{"completion_tokens":16,"prompt_tokens":26,"total_tokens":42}}"#,
        "0 Content  corn, Length, 26 16 - -",
    ),
    (
        "reasoning alone, no counts",
        OpenaiChat,
        r#"{"choices":[{"message":{"content":null,"reasoning_content":"hm","tool_calls":[]},"finish_reason":null}],"usage":null}"#,
        "0 Reasoning hm",
    ),
    ("no text", Openai, r#"{"choices":[{"text":""}],"usage":{}}"#, "nothing"),
];
