//! Whatever is written in a format is read back, however the bytes are cut.

use std::io::BufReader;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::*;
use super::of_format;
use crate::rng::{self, Purpose, Stream};

/// Random entries of one format, and how it writes one.
struct Writer {
    format: Format,
    header: &'static str,
    entry: fn(&mut Stream) -> Entry,
    write: fn(&Entry) -> String,
}

const WRITERS: [Writer; 12] = [
    Writer {
        format: Format::AzureLlm,
        header: "GeneratedTokens,TIMESTAMP,ContextTokens\n",
        entry: |draws| timed(draws, 100),
        write: |entry| {
            let (tokens, output) = lengths(entry);
            format!("{output},{},{tokens}", date(entry.at.unwrap()))
        },
    },
    Writer {
        format: Format::AzureLmm,
        header: "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n",
        entry: |draws| Entry { images: rng::below(draws, 9), ..timed(draws, 100) },
        write: |entry| {
            let (tokens, output) = lengths(entry);
            format!("{}+00:00,{},{tokens}.0,{output}", date(entry.at.unwrap()), entry.images)
        },
    },
    Writer {
        format: Format::BurstGpt,
        header: "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n",
        entry: |draws| {
            let entry = timed(draws, 1);
            let failed = entry.output_tokens == Some(0);
            let session = maybe(draws, |draws| Session::Named(word(draws)));
            Entry { session, model: Some(word(draws)), failed, ..entry }
        },
        write: |entry| {
            let (tokens, output) = lengths(entry);
            let session = match &entry.session {
                Some(Session::Named(name)) => name,
                _ => "",
            };
            let model = quoted(entry.model.as_deref().unwrap());
            format!(
                "{},{},7,{model},{tokens},{output},,\"a, log\"",
                seconds(entry.at.unwrap()),
                quoted(session)
            )
        },
    },
    Writer {
        format: Format::Mooncake,
        header: "",
        entry: |draws| {
            let entry = Entry { output_tokens: maybe(draws, length), ..Entry::new(any_prompt(draws)) };
            Entry {
                at: maybe(draws, |draws| time(draws, 1)),
                after_previous: maybe(draws, |draws| Duration::from_nanos(time(draws, 1))),
                session: maybe(draws, |draws| Session::Named(text(draws))),
                ..entry
            }
        },
        write: |entry| {
            let mut fields = vec![];
            match &entry.prompt {
                Prompt::Tokens { count, blocks } => {
                    fields.push(format!("\"input_tokens\": {count}"));
                    fields.extend(blocks.as_ref().map(|blocks| format!("\"hash_ids\": {:?}", blocks.ids)));
                }
                Prompt::Text(text) => fields.push(format!("\"text_input\": {}", json!(text))),
                Prompt::Messages { messages, tools } => {
                    fields.push(format!("\"messages\": {messages}"));
                    fields.extend(tools.as_ref().map(|tools| format!("\"tools\": {tools}")));
                }
                Prompt::Body { body, .. } => fields.push(format!("\"payload\": {body}")),
                Prompt::Parts(_) => panic!("not of this format"),
            }
            fields.extend(entry.at.map(|at| format!("\"created_time\": {}", milliseconds(at))));
            let wait = entry.after_previous.map(|wait| wait.as_nanos() as u64);
            fields.extend(wait.map(|wait| format!("\"delay_ms\": {}", milliseconds(wait))));
            fields.extend(entry.output_tokens.map(|tokens| format!("\"output_tokens\": {tokens}")));
            fields.extend(session(entry).map(|name| format!("\"session_id\": {}", json!(name))));
            format!("{{{}}}", fields.join(", "))
        },
    },
    Writer {
        format: Format::Bailian,
        header: "",
        entry: |draws| {
            let blocks = Some(Blocks { ids: ids(draws), block_tokens: 16, scope: 0 });
            let parent = maybe(draws, |draws| u64::from(rng::below(draws, 9)));
            let id = u64::from(rng::below(draws, 99));
            Entry {
                prompt: Prompt::Tokens { count: length(draws), blocks },
                session: Some(Session::Linked { id, parent }),
                turn: Some(rng::below(draws, 5)),
                ..timed(draws, 1)
            }
        },
        write: |entry| {
            let (tokens, output) = lengths(entry);
            let Prompt::Tokens { blocks: Some(blocks), .. } = &entry.prompt else { panic!() };
            let Some(Session::Linked { id, parent }) = entry.session else { panic!() };
            let parent = parent.map_or("-1".to_owned(), |parent| parent.to_string());
            format!(
                r#"{{"chat_id": {id}, "parent_chat_id": {parent}, "timestamp": {}, "input_length": {tokens}, "output_length": {output}, "type": "x", "turn": {}, "hash_ids": {:?}}}"#,
                seconds(entry.at.unwrap()),
                entry.turn.unwrap() + 1,
                blocks.ids
            )
        },
    },
    Writer {
        format: Format::AiperfSingleTurn,
        header: "",
        entry: |draws| {
            let prompt = match rng::below(draws, 2) {
                0 => Prompt::Text(text(draws)),
                _ => Prompt::Parts(vec![text(draws), text(draws), text(draws)]),
            };
            Entry {
                output_tokens: maybe(draws, length),
                session: maybe(draws, |draws| Session::Named(text(draws))),
                extra: maybe(draws, |draws| json!({ "a": text(draws) }).to_string().into()),
                ..Entry::new(prompt)
            }
        },
        write: |entry| {
            let mut value = match &entry.prompt {
                Prompt::Parts(parts) => json!({ "texts": parts }),
                prompt => json!({ "text": only_text(prompt) }),
            };
            put(&mut value, "output_length", entry.output_tokens.map(Value::from));
            put(&mut value, "session_id", session(entry).map(Value::from));
            put(&mut value, "extra", entry.extra.as_ref().map(|extra| serde_json::from_str(extra).unwrap()));
            value.to_string()
        },
    },
    Writer {
        format: Format::VllmCustom,
        header: "",
        entry: |draws| Entry { output_tokens: maybe(draws, length), ..Entry::new(Prompt::Text(text(draws))) },
        write: |entry| {
            let mut value = json!({ "prompt": only_text(&entry.prompt) });
            put(&mut value, "output_tokens", entry.output_tokens.map(Value::from));
            value.to_string()
        },
    },
    Writer {
        format: Format::OpenAiBatch,
        header: "",
        entry: |draws| {
            let (model, tokens) = (word(draws), length(draws));
            let body =
                json!({ "model": model, "max_tokens": tokens, "prompt": text(draws) }).to_string().into();
            let url = maybe(draws, text);
            Entry {
                model: Some(model),
                output_tokens: Some(tokens),
                ..Entry::new(Prompt::Body { url, body })
            }
        },
        write: |entry| {
            let Prompt::Body { url, body } = &entry.prompt else { panic!() };
            format!(r#"{{"custom_id": "x", "body": {body}, "url": {}}}"#, json!(url))
        },
    },
    Writer {
        format: Format::ShareGpt,
        header: "",
        entry: |draws| Entry { answer: Some(text(draws)), ..Entry::new(Prompt::Text(text(draws))) },
        write: |entry| {
            let turn = |from: &str, value: Option<&str>| json!({ "from": from, "value": value });
            let asked = only_text(&entry.prompt);
            json!({ "id": 7, "conversations": [
                turn("system", Some("x")), turn("gpt", Some("y")),
                turn("human", Some(&asked)), turn("gpt", entry.answer.as_deref()), turn("human", Some("z")),
            ] })
            .to_string()
        },
    },
    Writer {
        format: Format::Dolly,
        header: "",
        entry: |draws| Entry { answer: Some(text(draws)), ..Entry::new(Prompt::Text(text(draws))) },
        write: |entry| {
            json!({ "instruction": only_text(&entry.prompt), "context": " ", "response": entry.answer })
                .to_string()
        },
    },
    Writer {
        format: Format::Csv,
        header: "id,output_tokens,prompt\n",
        entry: |draws| {
            let prompt = Prompt::Text(format!("x{}", text(draws)).into());
            Entry { output_tokens: maybe(draws, length), ..Entry::new(prompt) }
        },
        write: |entry| {
            let tokens = entry.output_tokens.map_or(String::new(), |tokens| tokens.to_string());
            format!("1,{tokens},{}", quoted(&only_text(&entry.prompt)))
        },
    },
    Writer {
        format: Format::Text,
        header: "",
        entry: |draws| Entry::new(Prompt::Text(word(draws))),
        write: |entry| only_text(&entry.prompt),
    },
];

#[test]
fn what_is_written_is_read_back_however_it_is_cut() {
    for (index, writer) in WRITERS.iter().enumerate() {
        for seed in 0..20 {
            let mut draws = rng::stream(seed, Purpose::Choice, index as u64);
            let line_end = if seed % 2 == 0 { "\n" } else { "\r\n" };
            let mut written = Vec::new();
            let mut file = String::from(if seed % 3 == 0 { "\u{FEFF}" } else { "" });
            file += writer.header;
            for _ in 0..20 {
                let entry = (writer.entry)(&mut draws);
                let line = file.matches('\n').count() as u64 + 1;
                file += &(writer.write)(&entry);
                file += line_end;
                written.push(Entry { line, ..entry });
            }
            for capacity in [1, 7, 8192] {
                let mut input = BufReader::with_capacity(capacity, file.as_bytes());
                let reader = Reader::open("f", &mut input, of_format(writer.format)).unwrap();
                let read: Result<Vec<_>, _> = reader.collect();
                assert_eq!(read.as_deref(), Ok(&*written), "{:?}\n{file}", writer.format);
            }
        }
    }
}

fn timed(draws: &mut Stream, step_ns: u64) -> Entry {
    let prompt = Prompt::Tokens { count: length(draws), blocks: None };
    Entry { at: Some(time(draws, step_ns)), output_tokens: Some(length(draws)), ..Entry::new(prompt) }
}

fn any_prompt(draws: &mut Stream) -> Prompt {
    match rng::below(draws, 4) {
        0 => {
            let blocks = maybe(draws, |draws| Blocks { ids: ids(draws), block_tokens: 512, scope: 0 });
            Prompt::Tokens { count: length(draws), blocks }
        }
        1 => Prompt::Text(text(draws)),
        2 => {
            let messages = json!([{ "role": "user", "content": text(draws) }]).to_string().into();
            Prompt::Messages { messages, tools: maybe(draws, |_| "[{\"type\":  1}]".into()) }
        }
        _ => Prompt::Body { url: None, body: json!({ "prompt": text(draws) }).to_string().into() },
    }
}

fn time(draws: &mut Stream, step_ns: u64) -> u64 {
    let ns = u64::from(rng::below(draws, u32::MAX)) << rng::below(draws, 28);
    ns + u64::from(rng::below(draws, 999)) / step_ns * step_ns - ns % step_ns
}

fn length(draws: &mut Stream) -> u32 {
    rng::below(draws, u32::MAX) >> rng::below(draws, 32)
}

fn ids(draws: &mut Stream) -> Vec<u64> {
    (0..rng::below(draws, 5))
        .map(|_| u64::from(rng::below(draws, u32::MAX)) << rng::below(draws, 33))
        .collect()
}

fn maybe<T>(draws: &mut Stream, some: impl FnOnce(&mut Stream) -> T) -> Option<T> {
    if rng::below(draws, 2) == 0 { None } else { Some(some(draws)) }
}

fn word(draws: &mut Stream) -> Box<str> {
    ["GPT-4", "a b", "x,y", "\"q\"", "żółw"][rng::below(draws, 5) as usize].into()
}

/// Everything that has to be quoted or escaped somewhere.
fn text(draws: &mut Stream) -> Box<str> {
    let pieces = ["a", " ", "\n", "\"", "\\", ",", "\u{1}", "é", "𝄞", "{", "]", "\r\n", "null", "'"];
    let length = rng::below(draws, 12);
    (0..length).map(|_| pieces[rng::below(draws, 14) as usize]).collect::<String>().into()
}

fn lengths(entry: &Entry) -> (u32, u32) {
    (entry.prompt_tokens().unwrap(), entry.output_tokens.unwrap())
}

fn session(entry: &Entry) -> Option<&str> {
    match &entry.session {
        Some(Session::Named(name)) => Some(name),
        _ => None,
    }
}

fn only_text(prompt: &Prompt) -> String {
    let Prompt::Text(text) = prompt else { panic!("{prompt:?}") };
    text.to_string()
}

fn put(object: &mut Value, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[name] = value;
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn seconds(ns: u64) -> String {
    format!("{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn milliseconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000, ns % 1_000_000)
}

/// Written by a calendar of its own: days are counted one by one.
fn date(ns: u64) -> String {
    let (mut days, second) = (ns / 86_400_000_000_000, ns / 1_000_000_000 % 86_400);
    let (mut year, mut month) = (1970, 0);
    loop {
        let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        let length = [31, if is_leap { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month];
        if days < length {
            break;
        }
        days -= length;
        month += 1;
        if month == 12 {
            (year, month) = (year + 1, 0);
        }
    }
    let (hour, minute) = (second / 3600, second / 60 % 60);
    let fraction = format!("{:09}", ns % 1_000_000_000);
    format!(
        "{year}-{:02}-{:02} {hour:02}:{minute:02}:{:02}.{}",
        month + 1,
        days + 1,
        second % 60,
        &fraction[..7]
    )
}
