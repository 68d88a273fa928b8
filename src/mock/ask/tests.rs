use super::*;

const TERMS: Terms<'static> = Terms {
    model: "mock",
    adapters: &[],
    max_model_len: 1000,
    beside: Beside { bos: 0, template: 0 },
    tokenizes: true,
    max_tokens: 16,
    eos_after: None,
    reasoning: 0,
    tool_call: false,
    refused_fields: &[],
};

fn chat(body: &str) -> Result<Ask, Denial> {
    read(Surface::Chat, body.as_bytes(), TERMS)
}

fn text(body: &str) -> Result<Ask, Denial> {
    read(Surface::Text, body.as_bytes(), TERMS)
}

#[test]
fn a_full_chat_request_is_understood() {
    let ask = chat(
        r#"{"model":"mock","messages":[{"role":"system","content":"be brief"},
            {"role":"user","content":[{"type":"text","text":" tell  me\nmore"},{"type":"image_url"}]},
            {"role":"assistant","content":null}],
            "stream":true,"max_tokens":7,"n":2,"ignore_eos":true,"min_tokens":7,"temperature":0.5,
            "stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
    );
    assert_eq!(
        ask,
        Ok(Ask {
            surface: Surface::Chat,
            stream: true,
            choices: 2,
            tokens: 7,
            finish: Finish::Length,
            reasoning: 0,
            tool: None,
            prompt_tokens: 5,
            include_usage: true,
            continuous_usage: true,
        })
    );
}

#[test]
fn defaults_hold_where_fields_are_absent_or_null() {
    let ask =
        chat(r#"{"messages":[],"max_tokens":null,"n":null,"stream":null,"stream_options":null}"#).unwrap();
    assert_eq!((ask.stream, ask.tokens, ask.choices, ask.prompt_tokens), (false, 16, 1, 0));
    assert!(!ask.include_usage);
}

#[test]
fn the_newer_name_of_max_tokens_wins() {
    let ask = chat(r#"{"messages":[],"max_tokens":3,"max_completion_tokens":4}"#).unwrap();
    assert_eq!(ask.tokens, 4);
}

#[test]
fn an_answer_ends_by_itself_unless_told_not_to() {
    let of = |more: &str| {
        let body = format!(r#"{{"messages":[],"max_tokens":12{more}}}"#);
        let terms = Terms { eos_after: Some(5), ..TERMS };
        let ask = read(Surface::Chat, body.as_bytes(), terms).unwrap();
        (ask.tokens, ask.finish)
    };
    assert_eq!(of(""), (5, Finish::Stop));
    assert_eq!(of(r#","ignore_eos":true"#), (12, Finish::Length));
    assert_eq!(of(r#","min_tokens":8"#), (8, Finish::Stop));
    assert_eq!(of(r#","min_tokens":12"#), (12, Finish::Length));
    let more = chat(r#"{"messages":[],"max_tokens":12,"min_tokens":13}"#).unwrap_err();
    assert_eq!(more.message, "min_tokens must be less than or equal to max_tokens=12, got 13.");
}

#[test]
fn a_tool_is_called_on_demand_and_by_setting() {
    let tools = r#""tools":[{"type":"function","function":{"name":"weather"}}]"#;
    let of = |more: &str, tool_call| {
        let body = format!(r#"{{"messages":[]{more}}}"#);
        let ask = read(Surface::Chat, body.as_bytes(), Terms { tool_call, ..TERMS }).unwrap();
        ask.tool.map(|name| name.to_string())
    };
    assert_eq!(of(&format!(",{tools}"), false), None);
    assert_eq!(of(&format!(r#",{tools},"tool_choice":"auto""#), false), None);
    assert_eq!(of(&format!(r#",{tools},"tool_choice":"required""#), false).unwrap(), r#""weather""#);
    let named = r#""tool_choice":{"type":"function","function":{"name":"time"}}"#;
    assert_eq!(of(&format!(",{tools},{named}"), false).unwrap(), r#""time""#);
    assert_eq!(of(&format!(",{tools}"), true).unwrap(), r#""weather""#);
    assert_eq!(of("", true).unwrap(), r#""lookup""#);
    let without = chat(r#"{"messages":[],"tool_choice":"required"}"#).unwrap_err();
    assert!(without.message.contains("`tools` must be set"));
}

#[test]
fn ollama_streams_by_default_and_has_its_own_names() {
    let of = |surface, body: &str| read(surface, body.as_bytes(), Terms { reasoning: 3, ..TERMS }).unwrap();
    let chat = of(
        Surface::OllamaChat,
        r#"{"model":"mock","messages":[{"role":"user","content":"a b"}],"options":{"num_predict":9}}"#,
    );
    assert_eq!((chat.stream, chat.tokens, chat.prompt_tokens, chat.reasoning), (true, 9, 2, 3));
    let text = of(
        Surface::OllamaGenerate,
        r#"{"model":"mock","system":"a","prompt":"b c","stream":false,"think":false,
            "options":{"num_predict":-1}}"#,
    );
    assert_eq!((text.stream, text.tokens, text.prompt_tokens, text.reasoning), (false, 16, 3, 0));
    let bad = |body: &str| read(Surface::OllamaGenerate, body.as_bytes(), TERMS).unwrap_err().status;
    assert_eq!(bad(r#"{"prompt":7}"#), 400);
    assert_eq!(bad(r#"{"prompt":"a","options":{"num_predict":"x"}}"#), 400);
    assert_eq!(bad(r#"{"prompt":"a","model":"other"}"#), 404);
}

#[test]
fn ollama_calls_a_tool_where_the_server_always_does() {
    let of = |surface, body: &str, reasoning| {
        let ask = read(surface, body.as_bytes(), Terms { tool_call: true, reasoning, ..TERMS }).unwrap();
        (ask.tool.map(|name| name.to_string()), ask.finish)
    };
    let named = r#"{"messages":[],"tools":[{"type":"function","function":{"name":"weather"}}],"options":{"num_predict":4}}"#;
    assert_eq!(of(Surface::OllamaChat, named, 0), (Some("\"weather\"".to_owned()), Finish::ToolCalls));
    assert_eq!(of(Surface::OllamaChat, r#"{"messages":[]}"#, 0).0.as_deref(), Some("\"lookup\""));
    assert_eq!(of(Surface::OllamaChat, named, 4), (None, Finish::Length), "no token is left for it");
    assert_eq!(of(Surface::OllamaGenerate, r#"{"prompt":"a"}"#, 0).0, None);
    assert_eq!(read(Surface::OllamaChat, named.as_bytes(), TERMS).unwrap().tool, None);
}

#[test]
fn continuous_usage_needs_usage() {
    let ask = chat(r#"{"messages":[],"stream":true,"stream_options":{"continuous_usage_stats":true}}"#);
    assert!(!ask.unwrap().continuous_usage);
}

#[test]
fn prompts_may_be_text_or_ids_one_or_many() {
    let of = |prompt: &str| {
        let ask = text(&format!(r#"{{"prompt":{prompt},"n":2}}"#)).unwrap();
        (ask.choices, ask.prompt_tokens)
    };
    assert_eq!(of(r#""one two three""#), (2, 3));
    assert_eq!(of(r#"["one two","three"]"#), (4, 3));
    assert_eq!(of("[5,6,7]"), (2, 3));
    assert_eq!(of("[[5,6],[7]]"), (4, 3));
    for bad in ["[]", "{}", "[true]", "7"] {
        assert_eq!(text(&format!(r#"{{"prompt":{bad}}}"#)).unwrap_err().status, 400, "{bad}");
    }
}

#[test]
fn what_vllm_refuses_is_refused_in_its_words() {
    let says = |body: &str| chat(body).unwrap_err();
    let model = says(r#"{"model":"x","messages":[]}"#);
    assert_eq!((model.status, model.kind), (404, "NotFoundError"));
    assert_eq!(model.message, "The model `x` does not exist. Valid aliases: mock.");
    assert!(says("{").message.contains("JSON decode error"));
    assert!(says("[]").message.contains("valid dictionary"));
    assert!(says("{}").message.contains("Field required"));
    assert_eq!(says(r#"{"messages":[],"max_tokens":"many"}"#).param.as_deref(), Some("body.max_tokens"));
    assert!(says(r#"{"messages":[],"max_tokens":0}"#).message.contains("at least 1"));
    assert!(says(r#"{"messages":[],"max_tokens":1001}"#).message.contains("max_model_len=1000"));
    assert!(says(r#"{"messages":[],"n":0}"#).message.contains("between 1 and 128"));
    assert!(says(r#"{"messages":[],"n":129}"#).message.contains("between 1 and 128"));
    assert!(says(r#"{"messages":[],"stream_options":{}}"#).message.contains("stream=True"));
    assert_eq!(says(r#"{"messages":["x"]}"#).status, 400);
    let long = format!(r#"{{"messages":[{{"content":"{}"}}]}}"#, "w ".repeat(1000));
    assert!(says(&long).message.contains("maximum context length"));
}

#[test]
fn a_field_set_to_be_refused_is_named() {
    let refused = ["ignore_eos".to_owned(), "stream_options.continuous_usage_stats".to_owned()];
    let terms = Terms { refused_fields: &refused, ..TERMS };
    let read = |body: &str| read(Surface::Chat, body.as_bytes(), terms);
    let denial = read(r#"{"messages":[],"ignore_eos":true}"#).unwrap_err();
    assert_eq!(denial.status, 400);
    assert!(denial.message.contains("'body.ignore_eos', 'msg': 'Extra inputs are not permitted'"));
    let inner = r#"{"messages":[],"stream":true,"stream_options":{"continuous_usage_stats":false}}"#;
    assert!(read(inner).is_err());
    assert!(read(r#"{"messages":[],"stream":true,"stream_options":{"include_usage":true}}"#).is_ok());
}

/// The prompts of `workload::prompts` cost what they were asked to, of any index.
#[test]
fn a_hyphen_in_a_word_is_two_more_tokens() {
    let tokens = |text| fields::tokens(text).collect::<Vec<_>>();
    assert_eq!(
        tokens(" river-stone  is\nwarm-a-b"),
        ["river", "-", "stone", "is", "warm", "-", "a", "-", "b"]
    );
    assert_eq!(tokens("- a- -b --"), ["-", "a", "-", "-", "b", "-", "-"]);
    assert_eq!(tokens(""), [""; 0]);
    for index in [0, 1023, 1024, 1_048_576] {
        let mut prompt = String::new();
        crate::workload::prompts::write_prompt(&mut prompt, 7, crate::rng::Purpose::Prompt, index, 9);
        assert_eq!(fields::words(&prompt), 9, "{prompt}");
    }
}
