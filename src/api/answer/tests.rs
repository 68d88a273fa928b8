use super::*;
use crate::api::Dialect::{self, Openai, OpenaiChat};
use crate::api::Frame;
use crate::wire::json::Error;

/// The reports of one event, each as a short text.
#[derive(Default)]
struct Said(Vec<String>);

impl Reader for Said {
    const WANTS_TEXT: bool = true;

    fn piece(&mut self, choice: u32, channel: Channel, text: &str) {
        self.0.push(format!("{choice} {channel:?} {text}"));
    }

    fn finish(&mut self, choice: u32, reason: Finish) {
        self.0.push(format!("{choice} finish {reason:?}"));
    }

    fn tokens(&mut self, choice: u32, count: u32) {
        self.0.push(format!("{choice} tokens {count}"));
    }

    fn usage(&mut self, usage: Usage, choices: u32) {
        let Usage { prompt, completion, cached, reasoning } = usage;
        let counts = [prompt, completion, cached, reasoning]
            .map(|count| count.map_or("-".to_owned(), |count| count.to_string()));
        self.0.push(format!("usage {} beside {choices}", counts.join(" ")));
    }

    fn error(&mut self, message: &str) {
        self.0.push(format!("error {message}"));
    }
}

fn event(dialect: Dialect, data: &str) -> Vec<String> {
    let mut said = Said::default();
    dialect.read_event(&mut Json::new(), &mut Frame::new(), data.as_bytes(), &mut said).unwrap();
    said.0
}

/// A chat event whose only choice has this delta.
fn delta(delta: &str) -> Vec<String> {
    event(OpenaiChat, &format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#))
}

fn whole(dialect: Dialect, body: &str) -> Vec<String> {
    let mut said = Said::default();
    dialect.read_whole(&mut Json::new(), body.as_bytes(), &mut said).unwrap();
    said.0
}

const NOTHING: &[&str] = &[];

#[test]
fn role_empty_and_null_deltas_are_nothing() {
    for text in [
        r#"{"role":"assistant"}"#,
        r#"{"role":"assistant","content":""}"#,
        r#"{"role":"assistant","content":null}"#,
        r#"{"content":[]}"#,
        r#"{"content":7,"reasoning":{},"refusal":true}"#,
        r#"{"tool_calls":null,"function_call":null}"#,
        r#"{"tool_calls":[{"index":0,"id":"t","type":"function"}]}"#,
        r#"{"tool_calls":[null,{"function":null},{"function":{"name":"","arguments":""}}]}"#,
        "{}",
        "null",
        "\"x\"",
        "[]",
    ] {
        assert_eq!(delta(text), NOTHING, "{text}");
    }
}

#[test]
fn choices_may_be_missing_null_empty_or_no_objects() {
    for text in [
        "{}",
        r#"{"choices":null}"#,
        r#"{"choices":[]}"#,
        r#"{"choices":{}}"#,
        r#"{"choices":[null]}"#,
        r#"{"choices":["x",1]}"#,
        r#"{"choices":[{"index":0}]}"#,
        r#"{"choices":[{"finish_reason":null,"index":0,"content_filter_results":{}}]}"#,
        r#"{"type":"ping"}"#,
        r#"{"timings":{"predicted_n":1}}"#,
    ] {
        assert_eq!(event(OpenaiChat, text), NOTHING, "{text}");
        assert_eq!(event(Openai, text), NOTHING, "{text}");
    }
}

#[test]
fn each_kind_of_text_has_its_channel() {
    assert_eq!(delta(r#"{"content":"a"}"#), ["0 Content a"]);
    assert_eq!(delta(r#"{"refusal":"a","content":null}"#), ["0 Refusal a"]);
    assert_eq!(delta(r#"{"reasoning_content":"a"}"#), ["0 Reasoning a"]);
    assert_eq!(delta(r#"{"reasoning":"a"}"#), ["0 Reasoning a"]);
    assert_eq!(delta(r#"{"content":"b","reasoning":"a"}"#), ["0 Reasoning a", "0 Content b"]);
}

#[test]
fn both_names_of_reasoning_are_one_text() {
    assert_eq!(delta(r#"{"reasoning":"a","reasoning_content":"a"}"#), ["0 Reasoning a"]);
    assert_eq!(delta(r#"{"reasoning":"a","reasoning_content":""}"#), ["0 Reasoning a"]);
    assert_eq!(delta(r#"{"reasoning":null,"reasoning_content":"a"}"#), ["0 Reasoning a"]);
}

#[test]
fn content_may_be_a_list_of_parts() {
    assert_eq!(
        delta(
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m"},{"type":"text","text":"n"}]},
            {"type":"thinking","thinking":"o"},{"type":"reasoning","text":"p"},{"type":"text","text":"q"},
            {"text":"r"},{"type":"refusal","refusal":"s"},{"type":"image_url"},null,"t"]}"#
        ),
        [
            "0 Reasoning m",
            "0 Reasoning n",
            "0 Reasoning o",
            "0 Reasoning p",
            "0 Content q",
            "0 Content r",
            "0 Refusal s"
        ]
    );
}

#[test]
fn names_and_arguments_of_calls_are_tool_text() {
    assert_eq!(
        delta(
            r#"{"content":null,"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{"}},
            {"index":1,"function":{"name":null,"arguments":"}"}}]}"#
        ),
        ["0 Tool f", "0 Tool {", "0 Tool }"]
    );
    assert_eq!(delta(r#"{"function_call":{"name":"f","arguments":"x"}}"#), ["0 Tool f", "0 Tool x"]);
}

#[test]
fn only_the_delta_counts_in_a_stream_and_only_the_message_in_a_whole_answer() {
    let text =
        r#"{"choices":[{"index":0,"message":{"content":"all"},"delta":{"content":"new"},"text":"t"}]}"#;
    assert_eq!(event(OpenaiChat, text), ["0 Content new"]);
    assert_eq!(whole(OpenaiChat, text), ["0 Content all"]);
    assert_eq!(event(Openai, text), ["0 Content t"]);
    assert_eq!(whole(Openai, text), ["0 Content t"]);
}

#[test]
fn choices_are_told_apart_by_index_else_by_place() {
    let text = r#"{"choices":[{"index":3,"delta":{"content":"a"}},{"delta":{"content":"b"}},
        {"index":"x","delta":{"content":"c"}},{"index":-1,"delta":{"content":"d"}},{"index":7.0,"delta":{"content":"e"}}]}"#;
    assert_eq!(
        event(OpenaiChat, text),
        ["3 Content a", "1 Content b", "2 Content c", "3 Content d", "7 Content e"]
    );
}

#[test]
fn an_empty_finish_reason_is_none() {
    let reason =
        |text: &str| event(Openai, &format!(r#"{{"choices":[{{"index":1,"finish_reason":{text}}}]}}"#));
    for text in ["null", "\"\"", "{}", "0"] {
        assert_eq!(reason(text), NOTHING, "{text}");
    }
    for (text, name) in [
        ("stop", "Stop"),
        ("length", "Length"),
        ("tool_calls", "ToolCalls"),
        ("function_call", "FunctionCall"),
        ("content_filter", "ContentFilter"),
        ("error", "Error"),
        ("abort", "Error"),
        ("eos_token", "Other"),
        ("STOP", "Other"),
    ] {
        assert_eq!(reason(&format!("{text:?}")), [format!("1 finish {name}")]);
    }
}

#[test]
fn an_error_that_says_nothing_is_none() {
    for text in ["null", "false", "\"\"", "{}", "[]", "0"] {
        assert_eq!(event(OpenaiChat, &format!(r#"{{"error":{text}}}"#)), NOTHING, "{text}");
    }
    assert_eq!(
        event(OpenaiChat, r#"{"object":"chat.completion.chunk","type":"message","message":"x"}"#),
        NOTHING
    );
}

#[test]
fn an_error_is_reported_in_each_of_its_shapes() {
    for (text, said) in [
        (r#"{"error":{"message":"engine died","code":500}}"#, "error engine died"),
        (r#"{"error":"model overloaded"}"#, "error model overloaded"),
        (r#"{"error":{"message":"","type":"internal"}}"#, "error internal"),
        (r#"{"error":{"code":"busy"}}"#, "error busy"),
        (r#"{"error":{"code":1}}"#, "error "),
        (r#"{"error":true}"#, "error "),
        (r#"{"error":["x"]}"#, "error "),
        (r#"{"object":"error","message":"too long","type":"BadRequestError"}"#, "error too long"),
        (r#"{"type":"error"}"#, "error "),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            "error Overloaded",
        ),
    ] {
        assert_eq!(event(OpenaiChat, text), [said], "{text}");
        assert_eq!(whole(Openai, text), [said], "{text}");
    }
}

#[test]
fn the_error_comes_before_the_finish_reason_that_repeats_it() {
    let text = r#"{"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"error"}],"error":{"message":"m"}}"#;
    assert_eq!(event(OpenaiChat, text), ["error m", "0 Content x", "0 finish Error"]);
}

#[test]
fn usage_counts_may_take_any_form_and_may_be_missing() {
    let usage = |text: &str| event(OpenaiChat, &format!(r#"{{"choices":[],"usage":{text}}}"#));
    assert_eq!(usage(r#"{"prompt_tokens":1.2e1,"completion_tokens":7.0}"#), ["usage 12 7 - - beside 0"]);
    assert_eq!(
        usage(
            r#"{"prompt_tokens":9,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":null},
            "completion_tokens_details":{"reasoning_tokens":0}}"#
        ),
        ["usage 9 4 8 0 beside 0"]
    );
    assert_eq!(
        usage(r#"{"prompt_tokens":5,"prompt_tokens_details":null,"completion_tokens_details":null}"#),
        ["usage 5 - - - beside 0"]
    );
    assert_eq!(usage(r#"{"prompt_tokens":5,"completion_tokens":-1}"#), ["usage 5 - - - beside 0"]);
    for text in ["null", "{}", "[]", "7", r#"{"total_tokens":3}"#] {
        assert_eq!(usage(text), NOTHING, "{text}");
    }
}

#[test]
fn usage_tells_how_many_choices_stand_beside_it() {
    let text = r#"{"choices":[{"text":"a"},{"index":1}],"usage":{"completion_tokens":2}}"#;
    assert_eq!(event(Openai, text), ["0 Content a", "usage - 2 - - beside 2"]);
}

#[test]
fn listed_tokens_are_counted() {
    let choice = |text: &str| event(OpenaiChat, &format!(r#"{{"choices":[{{"index":2,{text}}}]}}"#));
    assert_eq!(choice(r#""token_ids":[4,5,6],"logprobs":{"content":[{}]}"#), ["2 tokens 3"]);
    assert_eq!(
        choice(r#""token_ids":null,"logprobs":{"content":[{"token":"a"},{"token":"b"}]}"#),
        ["2 tokens 2"]
    );
    assert_eq!(
        choice(r#""logprobs":{"content":null,"tokens":["a","b"],"text_offset":[0,1,2]}"#),
        ["2 tokens 2"]
    );
    for text in [
        r#""token_ids":[]"#,
        r#""token_ids":7"#,
        r#""logprobs":{"content":[]}"#,
        r#""logprobs":{"content":"x"}"#,
        r#""logprobs":[]"#,
    ] {
        assert_eq!(choice(text), NOTHING, "{text}");
    }
}

#[test]
fn of_equal_keys_the_last_one_counts_everywhere() {
    let text =
        r#"{"choices":[{"index":0,"delta":{"content":"no","content":"yes"}}],"model":"a","model":"b"}"#;
    assert_eq!(event(OpenaiChat, text), ["0 Content yes"]);
    let text =
        r#"{"choices":[],"choices":[{"index":1,"index":2,"delta":{"content":"a"},"delta":{"refusal":"b"}}]}"#;
    assert_eq!(event(OpenaiChat, text), ["2 Refusal b"]);
    let text = r#"{"error":"x","error":null,"usage":{"prompt_tokens":1},"usage":null}"#;
    assert_eq!(event(OpenaiChat, text), NOTHING);
}

#[test]
fn keys_and_text_are_decoded() {
    let text =
        r#"{"\u0063hoices":[{"index":0,"\u0064elta":{"\u0063ontent":"\ud83e\udd80 \u00e9\n\"q\"\\"}}]}"#;
    assert_eq!(event(OpenaiChat, text), ["0 Content 🦀 é\n\"q\"\\"]);
}

#[test]
fn what_is_no_object_is_refused_without_a_report() {
    for (text, refusal) in [
        ("null", NotAnObject::OtherValue),
        ("[]", NotAnObject::OtherValue),
        (r#"[{"error":"x"}]"#, NotAnObject::OtherValue),
        ("\"x\"", NotAnObject::OtherValue),
        ("1", NotAnObject::OtherValue),
        ("", NotAnObject::Text(Error::Syntax)),
        ("[DONE]", NotAnObject::Text(Error::Syntax)),
        (r#"{"error":"x"} x"#, NotAnObject::Text(Error::Syntax)),
        (r#"{"choices":[{"index":0,"delta":{"content":"l"#, NotAnObject::Text(Error::Syntax)),
        (r#"{"choices":[{"index":0,"delta":{"content":"l"}}]"#, NotAnObject::Text(Error::Syntax)),
        (&"[".repeat(200), NotAnObject::Text(Error::TooDeep)),
    ] {
        for dialect in [OpenaiChat, Openai] {
            let mut said = Said::default();
            assert_eq!(
                dialect.read_event(&mut Json::new(), &mut Frame::new(), text.as_bytes(), &mut said),
                Err(refusal),
                "{text}"
            );
            assert_eq!(
                dialect.read_whole(&mut Json::new(), text.as_bytes(), &mut said),
                Err(refusal),
                "{text}"
            );
            assert_eq!(said.0, NOTHING);
        }
    }
}
