use super::*;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn body(template: &Template, prompt: &str, max_tokens: u32) -> String {
    let mut out = b"kept".to_vec();
    template.write(&mut out, prompt, max_tokens, &Filling { index: 3, ..Filling::default() });
    String::from_utf8(out).unwrap().strip_prefix("kept").unwrap().to_owned()
}

#[test]
fn a_plain_chat_body_is_exactly_this() {
    let template = Template::new(Dialect::OpenaiChat, "m/1", true, &BodyOptions::default());
    assert_eq!(
        body(&template, "one two", 16),
        r#"{"model":"m/1","messages":[{"role":"user","content":"one two"}],"max_tokens":16,"stream":true}"#
    );
}

#[test]
fn a_completions_body_with_every_option_is_exactly_this() {
    let options = BodyOptions {
        choices: 2,
        ignore_eos: true,
        min_tokens: true,
        include_usage: true,
        continuous_usage: true,
        system: false,
        prompt_ids: false,
        sampling: map(json!({"temperature": 0.0, "top_k": -1})),
        extra_body: map(json!({"seed": 7})),
    };
    let template = Template::new(Dialect::Openai, "m", true, &options);
    assert_eq!(
        body(&template, "a", 8),
        concat!(
            r#"{"model":"m","prompt":"a","max_tokens":8,"min_tokens":8,"ignore_eos":true,"n":2,"temperature":0.0,"#,
            r#""top_k":-1,"stream":true,"stream_options":{"continuous_usage_stats":true,"include_usage":true},"#,
            r#""seed":7}"#
        )
    );
}

#[test]
fn a_prompt_of_ids_is_a_list_where_the_dialect_takes_one() {
    let options = BodyOptions { prompt_ids: true, ..BodyOptions::default() };
    for (dialect, field) in [
        (Dialect::Openai, r#""prompt":[3,44,5],"#),
        (Dialect::LlamaCpp, r#""prompt":[3,44,5],"#),
        (Dialect::Sglang, r#""input_ids":[3,44,5],"#),
    ] {
        let text = body(&Template::new(dialect, "m", true, &options), "3,44,5", 8);
        assert!(text.contains(field), "{text}");
        serde_json::from_str::<Value>(&text).unwrap();
    }
}

#[test]
fn stream_options_are_sent_with_a_stream_only() {
    let options = BodyOptions { include_usage: true, continuous_usage: true, ..BodyOptions::default() };
    let template = Template::new(Dialect::Openai, "m", false, &options);
    assert_eq!(body(&template, "a", 1), r#"{"model":"m","prompt":"a","max_tokens":1,"stream":false}"#);
}

#[test]
fn a_further_field_stands_in_the_place_of_ours() {
    let options = BodyOptions {
        min_tokens: true,
        include_usage: true,
        sampling: map(json!({"temperature": 1.0})),
        extra_body: map(json!({
            "model": "other", "messages": [], "max_tokens": 3, "min_tokens": 1, "temperature": 0.5,
            "stream_options": {"include_usage": false}, "stream": false,
        })),
        ..BodyOptions::default()
    };
    let template = Template::new(Dialect::OpenaiChat, "m", true, &options);
    assert_eq!(
        body(&template, "unused", 99),
        concat!(
            r#"{"model":"other","messages":[],"max_tokens":3,"min_tokens":1,"temperature":0.5,"stream":false,"#,
            r#""stream_options":{"include_usage":false}}"#
        )
    );
}

#[test]
fn names_and_prompts_are_escaped() {
    let options = BodyOptions { extra_body: map(json!({"a\"b": "c\\d"})), ..BodyOptions::default() };
    for dialect in Dialect::ALL {
        let template = Template::new(dialect, "m\"\n", true, &options);
        let prompt = "quote \" slash \\ line \n null \0 你 🦀 \u{2028}";
        let read: Value = serde_json::from_str(&body(&template, prompt, u32::MAX)).unwrap();
        let said = &read[dialect.prompt_field()];
        assert_eq!(if said.is_array() { &said[0]["content"] } else { said }, prompt);
        if let Some(model) = read.get("model") {
            assert_eq!(model, "m\"\n");
        }
        assert_eq!(read["a\"b"], "c\\d");
        let limits = read.to_string().matches(&u32::MAX.to_string()).count();
        assert_eq!(limits, usize::from(dialect.generates()), "{read}");
    }
}

/// Everything that can be asked for, in each dialect's words; what it does not have is left out.
#[test]
fn each_dialect_asks_in_its_own_words() {
    let options = BodyOptions {
        ignore_eos: true,
        min_tokens: true,
        include_usage: true,
        sampling: map(json!({"temperature": 0.5, "repetition_penalty": 1.1})),
        ..BodyOptions::default()
    };
    let of = |dialect| body(&Template::new(dialect, "m", true, &options), "hi", 7);
    for (dialect, expected) in [
        (
            Dialect::Messages,
            r#"{"model":"m","max_tokens":7,"messages":[{"role":"user","content":"hi"}],"repetition_penalty":1.1,"temperature":0.5,"stream":true}"#,
        ),
        (
            Dialect::Responses,
            r#"{"model":"m","input":"hi","max_output_tokens":7,"repetition_penalty":1.1,"temperature":0.5,"stream":true}"#,
        ),
        (
            Dialect::OllamaChat,
            r#"{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"options":{"num_predict":7,"repeat_penalty":1.1,"temperature":0.5}}"#,
        ),
        (
            Dialect::OllamaGenerate,
            r#"{"model":"m","prompt":"hi","stream":true,"options":{"num_predict":7,"repeat_penalty":1.1,"temperature":0.5}}"#,
        ),
        (
            Dialect::LlamaCpp,
            r#"{"model":"m","prompt":"hi","n_predict":7,"ignore_eos":true,"repeat_penalty":1.1,"temperature":0.5,"stream":true}"#,
        ),
        (
            Dialect::Sglang,
            r#"{"text":"hi","sampling_params":{"max_new_tokens":7,"min_new_tokens":7,"ignore_eos":true,"repetition_penalty":1.1,"temperature":0.5},"stream":true}"#,
        ),
        (Dialect::Embeddings, r#"{"model":"m","input":"hi"}"#),
    ] {
        assert_eq!(of(dialect), expected, "{dialect:?}");
    }
}

#[test]
fn further_fields_of_an_inner_object_leave_the_others_in_it() {
    let extra = map(json!({"options": {"seed": 1, "num_predict": 3}, "keep_alive": 5}));
    let options = BodyOptions { extra_body: extra, ..BodyOptions::default() };
    let template = Template::new(Dialect::OllamaGenerate, "m", false, &options);
    assert_eq!(
        body(&template, "hi", 7),
        r#"{"model":"m","prompt":"hi","stream":false,"options":{"num_predict":3,"seed":1},"keep_alive":5}"#
    );
    let options = BodyOptions { extra_body: map(json!({"options": null})), ..BodyOptions::default() };
    let template = Template::new(Dialect::OllamaGenerate, "m", false, &options);
    assert_eq!(body(&template, "hi", 7), r#"{"model":"m","prompt":"hi","stream":false,"options":null}"#);
}

#[test]
fn a_message_of_the_system_stands_before_the_prompt_where_its_dialect_has_it() {
    let options = BodyOptions { system: true, ..BodyOptions::default() };
    let of = |dialect| {
        let mut out = Vec::new();
        let texts = Texts { system: "be \"brief\"", prompt: "why" };
        Template::new(dialect, "m", true, &options).write(&mut out, texts, 9, &Filling::default());
        serde_json::from_slice::<Value>(&out).unwrap()
    };
    let chat = json!([{"role": "system", "content": "be \"brief\""}, {"role": "user", "content": "why"}]);
    for dialect in [Dialect::OpenaiChat, Dialect::OllamaChat] {
        assert_eq!(of(dialect)["messages"], chat, "{dialect:?}");
    }
    let messages = of(Dialect::Messages);
    assert_eq!((&messages["system"], &messages["messages"]), (&chat[0]["content"], &json!([chat[1]])));
    let responses = of(Dialect::Responses);
    assert_eq!((&responses["instructions"], &responses["input"]), (&chat[0]["content"], &json!("why")));
    for dialect in Dialect::ALL {
        assert_eq!(
            of(dialect).to_string().contains("brief"),
            dialect.has(crate::api::Extra::System),
            "{dialect:?}"
        );
    }
}

/// Every character on its own and within others: what a reader of JSON makes of the string is the text.
#[test]
fn strings_are_what_a_reader_makes_of_them() {
    let others = "0123456789abcdef0123456789abcdef";
    for one in (0..0x300).chain(0xfff0..=0x1_0010).filter_map(char::from_u32) {
        for text in [String::from(one), format!("{others}{one}"), format!("{one}{others}")] {
            let mut written = b"before".to_vec();
            write_string(&mut written, &text);
            assert_eq!(serde_json::from_slice::<String>(&written[6..]).ok(), Some(text));
        }
    }
    let mut empty = Vec::new();
    write_string(&mut empty, "");
    assert_eq!(empty, b"\"\"");
}
