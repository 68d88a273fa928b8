//! What is malformed is told with its line, and costs no other record.

use std::io::{self, BufRead, BufReader, Read};

use super::super::*;
use super::{of_format, read, replay};
use crate::workload::trace::Node;

const SKIP: OnError = OnError::Skip;

/// Files in which one line is wrong: the format, the line before it (a header or nothing), the line, the place, the
/// reason.
#[rustfmt::skip]
const WRONG: [(Format, &str, &str, &str, Reason); 62] = [
    (Format::AzureLlm, AZURE, "yesterday,1,2", "TIMESTAMP", Reason::NotATime),
    (Format::AzureLlm, AZURE, ",1,2", "TIMESTAMP", Reason::Empty),
    (Format::AzureLlm, AZURE, "2023-11-16 09:30:46,-1,2", "ContextTokens", Reason::Negative),
    (Format::AzureLlm, AZURE, "2023-11-16 09:30:46,1.5,2", "ContextTokens", Reason::Fraction),
    (Format::AzureLlm, AZURE, "2023-11-16 09:30:46,NaN,2", "ContextTokens", Reason::NotFinite),
    (Format::AzureLlm, AZURE, "2023-11-16 09:30:46,4294967296,2", "ContextTokens", Reason::TooLarge),
    (Format::AzureLlm, AZURE, "2023-11-16 09:30:46,1,", "GeneratedTokens", Reason::Empty),
    (Format::AzureLlm, AZURE, "2023-11-16 09:30:46,1,x", "GeneratedTokens", Reason::NotANumber),
    (Format::AzureLlm, AZURE, "2023-11-16 09:30:46,1", "", Reason::Width),
    (Format::AzureLlm, AZURE, "2023-11-16 09:30:46,1,2,3", "", Reason::Width),
    (Format::AzureLlm, AZURE, "1960-11-16 09:30:46,1,2", "TIMESTAMP", Reason::Negative),
    (Format::AzureLmm, "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens", "2023-11-16 09:30:46,-2,1,2", "NumImages", Reason::Negative),
    (Format::BurstGpt, BURST, "NaN,m,1,2", "Timestamp", Reason::NotFinite),
    (Format::BurstGpt, BURST, "inf,m,1,2", "Timestamp", Reason::NotFinite),
    (Format::BurstGpt, BURST, "-5,m,1,2", "Timestamp", Reason::Negative),
    (Format::BurstGpt, BURST, "1e300,m,1,2", "Timestamp", Reason::TooLarge),
    (Format::BurstGpt, BURST, "5,m,,2", "Request tokens", Reason::Empty),
    (Format::Csv, "prompt,output_tokens", "\"\",3", "prompt", Reason::Empty),
    (Format::Csv, "prompt,output_tokens", "a,-3", "output_tokens", Reason::Negative),
    (Format::Mooncake, "", "", "", Reason::NotAnObject),
    (Format::Mooncake, "", "[1]", "", Reason::NotAnObject),
    (Format::Mooncake, "", "nonsense", "", Reason::NotAnObject),
    (Format::Mooncake, "", r#"{"input_length": 5"#, "column 18", Reason::CutOff),
    (Format::Mooncake, "", r#"{"input_length": 5}}"#, "column 20", Reason::Syntax),
    (Format::Mooncake, "", r#"{"input_length": NaN}"#, "column 18", Reason::Syntax),
    (Format::Mooncake, "", r#"{"input_length": -5}"#, "input_length", Reason::Negative),
    (Format::Mooncake, "", r#"{"input_length": "5"}"#, "input_length", Reason::NotANumber),
    (Format::Mooncake, "", r#"{"input_length": 1e10}"#, "input_length", Reason::TooLarge),
    (Format::Mooncake, "", r#"{"input_length": 5, "input_tokens": 5}"#, "input_tokens", Reason::Ambiguous),
    (Format::Mooncake, "", r#"{"input_length": 5, "timestamp": -1}"#, "timestamp", Reason::Negative),
    (Format::Mooncake, "", r#"{"input_length": 5, "timestamp": 1e400}"#, "timestamp", Reason::TooLarge),
    (Format::Mooncake, "", r#"{"input_length": 5, "timestamp": 1, "created_time": 1}"#, "created_time", Reason::Ambiguous),
    (Format::Mooncake, "", r#"{"input_length": 5, "delay": "1"}"#, "delay", Reason::NotANumber),
    (Format::Mooncake, "", r#"{"input_length": 5, "hash_ids": 7}"#, "hash_ids", Reason::NotAList),
    (Format::Mooncake, "", r#"{"input_length": 5, "hash_ids": [1, -7]}"#, "hash_ids", Reason::Negative),
    (Format::Mooncake, "", r#"{"input_length": 5, "hash_ids": [1, 0.5]}"#, "hash_ids", Reason::Fraction),
    (Format::Mooncake, "", r#"{"input_length": 5, "hash_ids": [18446744073709551616]}"#, "hash_ids", Reason::TooLarge),
    (Format::Mooncake, "", r#"{"input_length": 5, "hash_ids": [null]}"#, "hash_ids", Reason::NotANumber),
    (Format::Mooncake, "", r#"{"hash_ids": [1]}"#, "input_length", Reason::Missing),
    (Format::Mooncake, "", r#"{"output_length": 1}"#, "", Reason::NoPrompt),
    (Format::Mooncake, "", r#"{"payload": [1]}"#, "payload", Reason::NotAnObject),
    (Format::Mooncake, "", r#"{"messages": []}"#, "messages", Reason::Empty),
    (Format::Mooncake, "", r#"{"messages": {}}"#, "messages", Reason::NotAList),
    (Format::Mooncake, "", r#"{"text_input": 5}"#, "text_input", Reason::NotText),
    (Format::Mooncake, "", r#"{"text_input": "\ud800"}"#, "text_input", Reason::NotUnicode),
    (Format::Bailian, "", r#"{"timestamp": 1, "output_length": 2}"#, "input_length", Reason::Missing),
    (Format::Bailian, "", r#"{"input_length": 1, "output_length": 2}"#, "timestamp", Reason::Missing),
    (Format::Bailian, "", r#"{"input_length": 1, "timestamp": 1, "output_length": 2, "chat_id": 1, "parent_chat_id": -2}"#, "parent_chat_id", Reason::Negative),
    (Format::Bailian, "", r#"{"input_length": 1, "timestamp": 1, "output_length": 2, "turn": 0}"#, "turn", Reason::Empty),
    (Format::AiperfSingleTurn, "", r#"{"role": "user"}"#, "", Reason::NoPrompt),
    (Format::AiperfSingleTurn, "", r#"{"text": "a", "texts": ["b"]}"#, "texts", Reason::Ambiguous),
    (Format::AiperfSingleTurn, "", r#"{"texts": ["b", 1]}"#, "texts", Reason::NotText),
    (Format::AiperfMultiTurn, "", r#"{"session_id": "a"}"#, "turns", Reason::Missing),
    (Format::AiperfMultiTurn, "", r#"{"turns": []}"#, "turns", Reason::Empty),
    (Format::AiperfMultiTurn, "", r#"{"turns": [{"text": "a"}, {"delay": 1}]}"#, "", Reason::NoPrompt),
    (Format::VllmCustom, "", r#"{"output_tokens": 1}"#, "prompt", Reason::Missing),
    (Format::OpenAiBatch, "", r#"{"url": "/v1"}"#, "body", Reason::Missing),
    (Format::OpenAiBatch, "", r#"{"url": "/v1", "body": {"max_tokens": -1}}"#, "max_tokens", Reason::Negative),
    (Format::ShareGpt, "", r#"{"conversations": [{"value": "a"}]}"#, "from", Reason::Missing),
    (Format::ShareGpt, "", r#"{"conversations": [{"from": "gpt"}]}"#, "value", Reason::Missing),
    (Format::Dolly, "", r#"{"response": "a"}"#, "instruction", Reason::Missing),
    (Format::Jsonl, "", r#"{"question": "a"}"#, "", Reason::NoPrompt),
];

const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";
const BURST: &str = "Timestamp,Model,Request tokens,Response tokens";

/// A line of the format that is right.
fn right(format: Format) -> &'static str {
    match format {
        Format::AzureLlm => "2023-11-16 09:30:46.5,7,9",
        Format::AzureLmm => "2023-11-16 09:30:46.5,1,7,9",
        Format::BurstGpt => "3.5,GPT-4,7,9",
        Format::Csv => "a prompt,5",
        Format::Mooncake => r#"{"input_length": 7}"#,
        Format::Bailian => r#"{"timestamp": 1, "input_length": 7, "output_length": 1}"#,
        Format::AiperfSingleTurn => r#"{"text": "a"}"#,
        Format::AiperfMultiTurn => r#"{"turns": ["a"]}"#,
        Format::VllmCustom => r#"{"prompt": "a"}"#,
        Format::OpenAiBatch => r#"{"url": "/v1", "body": {}}"#,
        Format::ShareGpt => {
            r#"{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}"#
        }
        Format::Dolly => r#"{"instruction": "a", "response": "b"}"#,
        Format::Jsonl => r#"{"messages": [{"role": "user"}]}"#,
        Format::Weka | Format::Text => "",
    }
}

fn place(error: &Error) -> String {
    match &error.place {
        Place::Record => String::new(),
        Place::Column(column) => format!("column {column}"),
        Place::Field(name) => name.to_string(),
    }
}

#[test]
fn a_wrong_line_is_told_with_its_number_its_field_and_the_reason() {
    for (format, header, line, field, reason) in WRONG {
        // An empty line is none: it stands for one of blanks and a bracket.
        let line = if line.is_empty() { "  ]" } else { line };
        let right = right(format);
        let head = if header.is_empty() { String::new() } else { format!("{header}\n") };
        let text = format!("{head}{right}\n\n{line}\r\n{right}\n");
        let expected_line = if header.is_empty() { 3 } else { 4 };
        let error = read("f", text.as_bytes(), &of_format(format)).expect_err(line);
        assert_eq!(
            (error.line, place(&error).as_str(), error.reason),
            (expected_line, field, reason),
            "{line}"
        );
        let told = error.to_string();
        assert!(told.starts_with(&format!("f:{expected_line}: ")) && told.contains(field), "{told}");

        let mut input = text.as_bytes();
        let options = Options { on_error: SKIP, ..of_format(format) };
        let mut reader = Reader::open("f", &mut input, options).unwrap();
        assert_eq!(reader.by_ref().filter(Result::is_ok).count(), 2, "{line}");
        assert_eq!(reader.counts().malformed, 1);
        assert_eq!(reader.counts().first_errors, [error]);
        assert_eq!(reader.counts().entries, 2);
    }
}

#[test]
fn bytes_that_are_no_text_are_told_in_every_format() {
    for format in Format::ALL {
        if matches!(format, Format::Weka) {
            continue;
        }
        let header = match format {
            Format::AzureLlm => AZURE,
            Format::AzureLmm => "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens",
            Format::BurstGpt => BURST,
            Format::Csv => "prompt,output_tokens",
            _ => "",
        };
        let mut text = format!("{header}\n").into_bytes();
        let right = right(format);
        text.extend_from_slice(b"{\"a\": \"\xC3(\", \"b\": \"\xFF\"}\n");
        text.extend_from_slice(right.as_bytes());
        let error = read("f", &text, &of_format(format)).unwrap_err();
        assert_eq!((error.line, error.reason), (2, Reason::NotUnicode), "{format:?}");
    }
}

#[test]
fn a_header_without_a_column_is_told_at_once() {
    for (format, header, field) in [
        (Format::AzureLlm, "TIMESTAMP,ContextTokens", "GeneratedTokens"),
        (Format::AzureLmm, AZURE, "NumImages"),
        (Format::BurstGpt, AZURE, "Request tokens"),
        (Format::Csv, "a,b", "prompt"),
    ] {
        let options = Options { on_error: SKIP, ..of_format(format) };
        let error = read("f", format!("\n{header}\n1,2,3\n").as_bytes(), &options).unwrap_err();
        assert_eq!((error.line, place(&error).as_str(), error.reason), (2, field, Reason::Missing));
    }
    let error = read("a.csv", b"a,b\n1,2\n", &Options { column: Some("c".into()), ..Options::default() });
    assert_eq!(error.unwrap_err().to_string(), "a.csv:1: c: missing");
}

#[test]
fn what_has_no_known_beginning_is_not_guessed() {
    for (file, text, reason) in [
        ("a.jsonl", "{\"question\": \"a\"}", Reason::NoFormat),
        ("a.json", "nothing", Reason::NoFormat),
        ("a.txt", " \n", Reason::Empty),
    ] {
        let error = read(file, text.as_bytes(), &Options::default()).unwrap_err();
        assert_eq!((error.line, error.reason), (1, reason));
    }
}

#[test]
fn a_record_beyond_the_bound_is_told_and_passed() {
    for (format, text, line) in [
        (Format::Text, format!("a\n{}\nb\n", "x".repeat(200)), 2),
        (
            Format::Jsonl,
            format!("{{\"text\": \"a\"}}\n{{\"text\": \"{}\"}}\n{{\"text\": \"b\"}}", "x".repeat(200)),
            2,
        ),
        (
            Format::Jsonl,
            format!("[{{\"text\": \"a\"}},\n{{\"text\":\n \"{}\"}},{{\"text\": \"b\"}}]", "x".repeat(200)),
            2,
        ),
        (Format::Csv, format!("prompt\na\n\"{}\"\nb\n", "x\n".repeat(100)), 3),
        (Format::Csv, format!("prompt\na\n{}\nb\n", ",".repeat(5000)), 3),
    ] {
        let options = Options { record_bytes_max: 100, ..of_format(format) };
        let error = read("f", text.as_bytes(), &options).unwrap_err();
        assert_eq!((error.line, error.reason), (line, Reason::TooLong), "{format:?}");
        let entries = read("f", text.as_bytes(), &Options { on_error: SKIP, ..options }).unwrap();
        assert_eq!(entries.len(), 2, "{format:?}");
    }
}

#[test]
fn a_broken_array_ends_the_reading_even_where_errors_are_skipped() {
    let skip = Options { on_error: SKIP, ..of_format(Format::ShareGpt) };
    let one = right(Format::ShareGpt);
    for (text, line, reason) in [
        (format!("[{one}\n{one}]"), 2, Reason::Syntax),
        (format!("[{one},\n,{one}]"), 2, Reason::Syntax),
        (format!("[{one}]\n{one}"), 2, Reason::Syntax),
    ] {
        let error = read("f", text.as_bytes(), &skip).unwrap_err();
        assert_eq!((error.line, error.reason), (line, reason), "{text}");
    }
    // An element that is no conversation costs itself; a file that was cut off is read as far as it goes.
    for (text, line, reason) in [
        (format!("[{one},\n 17, {one}]"), 2, Reason::NotAnObject),
        (format!("[{one}, {one},\n {{\"a\": ["), 2, Reason::CutOff),
        (format!("[{one}, {one}\n"), 2, Reason::CutOff),
    ] {
        let mut input = text.as_bytes();
        let mut reader = Reader::open("f", &mut input, skip.clone()).unwrap();
        assert_eq!(reader.by_ref().map(Result::unwrap).count(), 2, "{text}");
        let errors = &reader.counts().first_errors;
        assert_eq!(errors.iter().map(|e| (e.line, e.reason)).collect::<Vec<_>>(), [(line, reason)], "{text}");
    }
}

#[test]
fn errors_inside_of_an_element_have_the_line_they_stand_on() {
    let text = "[\n {\"conversations\":\n  nonsense}\n]";
    let error = read("f", text.as_bytes(), &of_format(Format::ShareGpt)).unwrap_err();
    assert_eq!((error.line, place(&error).as_str(), error.reason), (3, "column 4", Reason::Syntax));
}

#[test]
fn wrong_agent_sessions_are_told() {
    for (text, line, field, reason) in [
        (r#"{"id": "a", "requests": [{"in": 1, "out": 1}]}"#, 1, "t", Reason::Missing),
        ("{\"requests\": [\n{\"t\": -1, \"in\": 1, \"out\": 1}]}", 2, "t", Reason::Negative),
        (r#"{"requests": [{"t": 1, "in": 1, "out": 1, "type": "x"}]}"#, 1, "type", Reason::Unknown),
        (r#"{"requests": 5}"#, 1, "requests", Reason::NotAList),
        (r#"{"hash_id_scope": "x", "requests": []}"#, 1, "hash_id_scope", Reason::Unknown),
        (r#"{"block_size": 0, "requests": []}"#, 1, "block_size", Reason::Empty),
        ("{\"requests\": [],\n\"block_size\": 32}", 2, "block_size", Reason::Late),
        ("{\"requests\": [],\n\"hash_id_scope\": \"global\"}", 2, "hash_id_scope", Reason::Late),
        ("{\"requests\": [],\n\"id\": \"a\"}", 2, "id", Reason::Late),
        ("{\"requests\": [\n}", 2, "", Reason::Syntax),
        ("{\"requests\": [", 1, "", Reason::CutOff),
        ("{\"id\" 5}", 1, "", Reason::Syntax),
        ("\n[5]", 2, "", Reason::NotAnObject),
    ] {
        let error = read("f", text.as_bytes(), &of_format(Format::Weka)).expect_err(text);
        assert_eq!((error.line, place(&error).as_str(), error.reason), (line, field, reason), "{text}");
    }
    // What is said late but changes nothing is no error.
    let late = r#"{"requests": [{"t": 1, "in": 1, "out": 1}], "block_size": 64, "hash_id_scope": "local"}"#;
    assert_eq!(read("f", late.as_bytes(), &of_format(Format::Weka)).unwrap().len(), 1);
}

#[test]
fn a_mark_at_the_beginning_is_no_part_of_any_format() {
    let one = right(Format::ShareGpt);
    let session = r#"{"requests": [{"t": 1, "in": 1, "out": 1}]}"#;
    for (format, text) in [
        (Format::ShareGpt, format!("[{one}]")),
        (Format::ShareGpt, one.to_owned()),
        (Format::Weka, session.to_owned()),
        (Format::Weka, format!("[{session}]")),
        (Format::AzureLlm, format!("{AZURE}\n{}", right(Format::AzureLlm))),
        (Format::Text, "a".to_owned()),
    ] {
        // The mark moves what stands behind it.
        let wherever = |entries: Vec<Entry>| -> Vec<Entry> {
            let placeless = |node: Box<Node>| Box::new(Node { offset: 0, ..*node });
            entries.into_iter().map(|entry| Entry { node: entry.node.map(placeless), ..entry }).collect()
        };
        let plain = wherever(read("f", text.as_bytes(), &of_format(format)).unwrap());
        let marked = format!("\u{FEFF}{text}");
        assert_eq!(
            read("f", marked.as_bytes(), &Options::default()).map(wherever),
            Ok(plain.clone()),
            "{marked}"
        );
        let planned = replay("f", marked.as_bytes(), &Options::default()).unwrap();
        assert_eq!(wherever(planned.into_iter().map(|planned| planned.entry).collect()), plain);
    }
}

#[test]
fn only_the_first_errors_are_kept_but_all_are_counted() {
    let text = "{\"text\": 1}\n".repeat(1000);
    let mut input = text.as_bytes();
    let options = Options { on_error: SKIP, ..of_format(Format::Jsonl) };
    let mut reader = Reader::open("f", &mut input, options).unwrap();
    assert!(reader.next().is_none());
    assert_eq!((reader.counts().malformed, reader.counts().first_errors.len()), (1000, 10));
}

#[test]
fn a_failure_of_reading_is_no_malformed_record() {
    struct Failing;

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }

    let mut whole = b"{\"text\": \"a\"}\n".repeat(8000);
    whole.extend_from_slice(b"{\"te");
    let mut input = BufReader::new(whole.chain(Failing));
    let options = Options { on_error: SKIP, ..of_format(Format::Jsonl) };
    let input: &mut dyn BufRead = &mut input;
    let entries: Vec<_> = Reader::open("f", input, options).unwrap().collect();
    assert_eq!(entries.iter().filter(|entry| entry.is_ok()).count(), 8000);
    let error = entries.last().unwrap().as_ref().unwrap_err();
    assert_eq!((error.line, error.reason), (8001, Reason::Read(io::ErrorKind::ConnectionReset)));
}

/// What stands behind it would be one long field, and its records lost without a word.
#[test]
fn a_quote_that_is_never_closed_is_no_record() {
    let of = |text: &str| read("a.csv", text.as_bytes(), &of_format(Format::Csv));
    let error = of("prompt\nfirst\n\"second\nthird\n").unwrap_err();
    assert_eq!((error.line, error.reason), (3, Reason::CutOff));
    assert_eq!(of("prompt\na,\n").unwrap_err().reason, Reason::Width);
    for whole in ["prompt\n\"a \"\"b\"\"\"", "prompt\na \"b\n", "prompt\n\"a\nb\"\n", "prompt\n\"a\""] {
        assert_eq!(of(whole).unwrap().len(), 1, "{whole}");
    }
}
