use super::*;
use crate::api::talk::{ALONE, Fragment};
use crate::api::{Channel, Finish, Frame, Usage};

/// Everything that is reported, in short words; parts of calls apart.
#[derive(Default)]
struct Heard(Vec<String>, Vec<String>);

impl Reader for Heard {
    const WANTS_TEXT: bool = true;

    fn piece(&mut self, choice: u32, channel: Channel, text: &str) {
        assert!(choice == 0 && !text.is_empty());
        self.0.push(format!("{channel:?} {text}"));
    }

    fn finish(&mut self, choice: u32, reason: Finish) {
        assert_eq!(choice, 0);
        self.0.push(format!("{reason:?}"));
    }

    fn tokens(&mut self, _choice: u32, count: u32) {
        self.0.push(format!("tokens {count}"));
    }

    fn usage(&mut self, usage: Usage, _choices: u32) {
        self.0.push(counts("usage", usage));
    }

    fn error(&mut self, message: &str) {
        self.0.push(format!("error {message}"));
    }

    fn usage_update(&mut self, update: Usage) {
        self.0.push(counts("update", update));
    }

    fn grown(&mut self, _choice: u32, channel: Channel, text: &str) {
        self.0.push(format!("{channel:?} so far {text}"));
    }

    fn end(&mut self) {
        self.0.push("end".to_owned());
    }

    fn call(&mut self, choice: u32, fragment: &Fragment<'_>) {
        let Fragment { place, id, name, arguments } = fragment;
        self.1.push(format!("{choice} {place} {id} {name} {arguments}"));
    }
}

fn counts(word: &str, usage: Usage) -> String {
    let Usage { prompt, completion, cached, reasoning } = usage;
    let number = |count: Option<u32>| count.map_or("-".to_owned(), |count| count.to_string());
    format!("{word} {} {} {} {}", number(prompt), number(completion), number(cached), number(reasoning))
}

fn event(dialect: Dialect, data: &str) -> Vec<String> {
    let mut heard = Heard::default();
    dialect.read_event(&mut Json::new(), &mut Frame::new(), data.as_bytes(), &mut heard).unwrap();
    heard.0
}

fn whole(dialect: Dialect, body: &str) -> Vec<String> {
    let mut heard = Heard::default();
    dialect.read_whole(&mut Json::new(), body.as_bytes(), &mut heard).unwrap();
    heard.0
}

fn check(dialect: Dialect, events: &[(&str, &[&str])]) {
    for (data, expected) in events {
        assert_eq!(event(dialect, data), *expected, "{dialect:?} {data}");
    }
}

#[test]
fn names_are_those_of_plans() {
    for dialect in Dialect::ALL {
        assert_eq!(serde_json::to_value(dialect).unwrap(), dialect.name());
    }
}

#[test]
fn errors_are_errors_in_every_dialect() {
    for dialect in Dialect::ALL {
        for (data, message) in [
            (r#"{"error":{"message":"no","type":"x"}}"#, "error no"),
            (r#"{"error":"no"}"#, "error no"),
            (r#"{"type":"error","message":"no"}"#, "error no"),
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                "error Overloaded",
            ),
            (r#"{"object":"error","message":"no","code":400}"#, "error no"),
        ] {
            assert_eq!(event(dialect, data), [message], "{dialect:?}");
            assert_eq!(whole(dialect, data), [message], "{dialect:?}");
        }
        for data in [r#"{"error":null}"#, r#"{"error":{}}"#, "{}"] {
            assert!(event(dialect, data).iter().all(|said| !said.starts_with("error")), "{dialect:?} {data}");
        }
        let mut heard = Heard::default();
        for data in ["", "[]", "7", "{"] {
            assert!(
                dialect.read_event(&mut Json::new(), &mut Frame::new(), data.as_bytes(), &mut heard).is_err(),
                "{dialect:?}"
            );
        }
        assert!(heard.0.is_empty());
    }
}

#[test]
fn messages_say_something_new_in_deltas_alone() {
    check(
        Dialect::Messages,
        &[
            (
                r#"{"type":"message_start","message":{"role":"assistant","content":[],"usage":{"input_tokens":4,"cache_creation_input_tokens":8,"cache_read_input_tokens":16,"output_tokens":1}}}"#,
                &["update 28 1 16 -"],
            ),
            (r#"{"type":"ping"}"#, &[]),
            (
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
                &[],
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}"#,
                &["Reasoning hm"],
            ),
            (
                r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq"}}"#,
                &[],
            ),
            (r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":""}}"#, &[]),
            (
                r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}"#,
                &["Content a"],
            ),
            (
                r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
                &[],
            ),
            (
                r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}"#,
                &["Tool {\"a"],
            ),
            (r#"{"type":"content_block_stop","index":2}"#, &[]),
            (
                r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
                &["ToolCalls", "update - 9 - -"],
            ),
            (r#"{"type":"message_delta","delta":{"stop_reason":null},"usage":{}}"#, &[]),
            (r#"{"type":"message_stop"}"#, &["end"]),
        ],
    );
    for (reason, finish) in [
        ("end_turn", "Stop"),
        ("stop_sequence", "Stop"),
        ("max_tokens", "Length"),
        ("refusal", "ContentFilter"),
        ("pause_turn", "Other"),
    ] {
        let data = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#);
        assert_eq!(event(Dialect::Messages, &data), [finish]);
    }
    assert_eq!(
        whole(
            Dialect::Messages,
            r#"{"type":"message","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"a"},{"type":"tool_use","name":"f","input":{}}],"stop_reason":"end_turn","usage":{"input_tokens":3,"output_tokens":5}}"#
        ),
        ["Reasoning hm", "Content a", "Tool f", "Stop", "update 3 5 - -"]
    );
}

#[test]
fn what_a_beginning_counted_stays_where_the_end_does_not_say() {
    let start = Usage { prompt: Some(26), completion: Some(0), cached: Some(25), reasoning: None };
    let later = |prompt, cached| Usage { prompt, completion: Some(16), cached, reasoning: None };
    assert_eq!(start.updated(later(None, None)), Usage { completion: Some(16), ..start });
    // Of the prompt this is what was not cached.
    assert_eq!(start.updated(later(Some(1), None)).prompt, Some(26));
    assert_eq!(start.updated(later(Some(27), Some(20))).prompt, Some(27));
    assert_eq!(later(Some(1), None).updated(later(Some(2), None)).prompt, Some(2));
}

#[test]
fn responses_say_something_new_in_deltas_alone() {
    check(
        Dialect::Responses,
        &[
            (
                r#"{"type":"response.created","response":{"status":"in_progress","error":null,"usage":null}}"#,
                &[],
            ),
            (r#"{"type":"response.output_item.added","item":{"type":"message","content":[]}}"#, &[]),
            (r#"{"type":"response.reasoning_text.delta","delta":"hm"}"#, &["Reasoning hm"]),
            (r#"{"type":"response.reasoning_summary_text.delta","delta":"hm"}"#, &["Reasoning hm"]),
            (r#"{"type":"response.output_text.delta","delta":"a","logprobs":[]}"#, &["Content a"]),
            (r#"{"type":"response.output_text.delta","delta":""}"#, &[]),
            (r#"{"type":"response.refusal.delta","delta":"no"}"#, &["Refusal no"]),
            (r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#, &["Tool {"]),
            (r#"{"type":"response.mcp_call_arguments.delta","delta":"{"}"#, &["Tool {"]),
            (r#"{"type":"response.something_new.delta","delta":"x"}"#, &["Content x"]),
            (r#"{"type":"response.output_text.done","text":"a"}"#, &[]),
            (
                r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message"}],"usage":{"input_tokens":3,"output_tokens":5,"input_tokens_details":{"cached_tokens":1},"output_tokens_details":{"reasoning_tokens":2}}}}"#,
                &["Stop", "usage 3 5 1 2", "end"],
            ),
            (
                r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call"}]}}"#,
                &["ToolCalls", "end"],
            ),
            (
                r#"{"type":"response.completed","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}}"#,
                &["Length", "end"],
            ),
            (
                r#"{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"}}}"#,
                &["ContentFilter", "end"],
            ),
            (
                r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"died"}}}"#,
                &["error died"],
            ),
            (r#"{"type":"response.failed","response":{"error":null}}"#, &["error response.failed"]),
            (
                r#"{"type":"error","code":"server_error","message":"died","param":null,"sequence_number":3}"#,
                &["error died"],
            ),
        ],
    );
    assert_eq!(
        whole(
            Dialect::Responses,
            r#"{"object":"response","status":"completed","error":null,"output":[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]},{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]},{"type":"function_call","name":"f","arguments":"{}"}],"usage":{"input_tokens":3,"output_tokens":5}}"#
        ),
        ["Reasoning hm", "Content a", "Refusal no", "Tool f", "Tool {}", "ToolCalls", "usage 3 5 - -"]
    );
    let failed = r#"{"object":"response","status":"failed","error":{"message":"died"}}"#;
    assert_eq!(whole(Dialect::Responses, failed), ["error died"]);
}

#[test]
fn ollama_ends_in_a_line_with_counts() {
    for (dialect, name) in [(Dialect::OllamaChat, "chat"), (Dialect::OllamaGenerate, "generate")] {
        check(
            dialect,
            &[
                (
                    r#"{"model":"m","message":{"role":"assistant","content":"a"},"done":false}"#,
                    &["Content a"],
                ),
                (
                    r#"{"message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#,
                    &["Reasoning hm"],
                ),
                (
                    r#"{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}"#,
                    &["Tool f"],
                ),
                (r#"{"response":"a","done":false}"#, &["Content a"]),
                (r#"{"response":"","thinking":"hm","done":false}"#, &["Reasoning hm"]),
                (
                    r#"{"response":"","done":true,"done_reason":"length","context":[1,2],"prompt_eval_count":3,"eval_count":5,"total_duration":9}"#,
                    &["Length", "usage 3 5 - -", "end"],
                ),
                (
                    r#"{"message":{"content":""},"done":true,"done_reason":"stop","eval_count":5}"#,
                    &["Stop", "usage - 5 - -", "end"],
                ),
                (r#"{"response":"a","done":true}"#, &["Content a", "end"]),
                (r#"{"response":"","done":true,"done_reason":"load"}"#, &["Other", "end"]),
            ],
        );
        assert_eq!(
            whole(dialect, r#"{"response":"a","done":true,"done_reason":"stop"}"#)[0],
            "Content a",
            "{name}"
        );
    }
}

#[test]
fn sglang_repeats_the_text_and_counts_as_it_goes() {
    check(
        Dialect::Sglang,
        &[
            (
                r#"{"text":" a","output_ids":[5],"meta_info":{"id":"x","finish_reason":null,"prompt_tokens":3,"completion_tokens":1,"cached_tokens":2}}"#,
                &["Content so far  a", "usage 3 1 2 -"],
            ),
            (
                r#"{"text":" a b","meta_info":{"finish_reason":{"type":"length","length":2},"prompt_tokens":3,"completion_tokens":2}}"#,
                &["Length", "Content so far  a b", "usage 3 2 - -"],
            ),
            (
                r#"{"text":"","meta_info":{"finish_reason":{"type":"stop","matched":2}}}"#,
                &["Stop", "Content so far "],
            ),
            (
                r#"{"text":"","meta_info":{"finish_reason":{"type":"abort","message":"too long"}}}"#,
                &["error too long", "Content so far "],
            ),
        ],
    );
}

#[test]
fn llama_cpp_says_that_it_stops() {
    check(
        Dialect::LlamaCpp,
        &[
            (
                r#"{"index":0,"content":" a","tokens":[5],"stop":false,"tokens_predicted":1,"tokens_evaluated":4}"#,
                &["Content  a", "usage 4 1 - -"],
            ),
            (
                r#"{"content":"","stop":true,"stop_type":"limit","tokens_predicted":8,"tokens_evaluated":4,"tokens_cached":11,"timings":{"cache_n":3}}"#,
                &["Length", "usage 4 8 3 -", "end"],
            ),
            (r#"{"content":"","stop":true,"stop_type":"word"}"#, &["Stop", "end"]),
            // Of old versions.
            (r#"{"content":"","stop":true,"stopped_eos":false,"stopped_limit":true}"#, &["Length", "end"]),
            (r#"{"content":"","stop":true,"stopped_eos":true,"stopped_limit":false}"#, &["Stop", "end"]),
            (r#"{"content":"","stop":true}"#, &["Other", "end"]),
        ],
    );
}

#[test]
fn an_embedding_is_a_vector_and_a_prompt() {
    for vector in ["[0.5,-1e-3]", "\"AAAA\""] {
        let body = format!(
            r#"{{"object":"list","data":[{{"object":"embedding","index":0,"embedding":{vector}}}],"usage":{{"prompt_tokens":3,"total_tokens":3}}}}"#
        );
        assert_eq!(whole(Dialect::Embeddings, &body), ["Content [embedding]", "usage 3 - - -"]);
    }
    for empty in [r#"{"data":[]}"#, r#"{"data":[{"embedding":[]}]}"#, r#"{"data":[{"index":0}]}"#] {
        assert!(whole(Dialect::Embeddings, empty).is_empty());
    }
}

/// What each dialect tells of a call, so that it can be repeated.
#[test]
fn parts_of_calls_are_told_with_their_place() {
    let calls = |dialect: Dialect, data: &str| {
        let mut heard = Heard::default();
        dialect.read_event(&mut Json::new(), &mut Frame::new(), data.as_bytes(), &mut heard).unwrap();
        heard.1
    };
    let of_whole = |dialect: Dialect, body: &str| {
        let mut heard = Heard::default();
        dialect.read_whole(&mut Json::new(), body.as_bytes(), &mut heard).unwrap();
        heard.1
    };
    let chat = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c","function":{"name":"f","arguments":"{"}}]}}]}"#;
    assert_eq!(calls(Dialect::OpenaiChat, chat), ["0 1 c f {"]);
    let message = r#"{"choices":[{"index":0,"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]}}]}"#;
    assert_eq!(of_whole(Dialect::OpenaiChat, message), ["0 0 a f {}", "0 1 b g {}"]);
    let begins = r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#;
    let goes_on = r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}"#;
    assert_eq!(calls(Dialect::Messages, begins), ["0 2 t f "]);
    assert_eq!(calls(Dialect::Messages, goes_on), ["0 2   {\"a\""]);
    let block = r#"{"content":[{"type":"text","text":"x"},{"type":"tool_use","id":"t","name":"f","input":{"n":1,"l":[true,null,"s"]}}]}"#;
    assert_eq!(of_whole(Dialect::Messages, block), [r#"0 1 t f {"l":[true,null,"s"],"n":1}"#]);
    let added = r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"r","name":"f"}}"#;
    let delta = r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}"#;
    assert_eq!(calls(Dialect::Responses, added), ["0 1 r f "]);
    assert_eq!(calls(Dialect::Responses, delta), ["0 1   {}"]);
    let items = r#"{"status":"completed","output":[{"type":"function_call","call_id":"r","name":"f","arguments":"{}"}]}"#;
    assert_eq!(of_whole(Dialect::Responses, items), ["0 0 r f {}"]);
    let line = r#"{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{"a":1.5}}}]}}"#;
    assert_eq!(calls(Dialect::OllamaChat, line), [format!("0 {ALONE}  f {{\"a\":1.5}}")]);
}
