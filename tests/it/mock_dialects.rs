//! What the mock server says in each of its dialects, over real sockets, and what this program's own client makes of
//! it.

use serde_json::{Value, json};
use tokload::metrics::Class;
use tokload::mock::{Delivery, Fault, Faults, Mock, ReasoningField, Settings, Usage};
use tokload::plan::Load;

use crate::mock::{CHAT, Client, Response, chat, quick};
use crate::rig;

fn start(change: impl FnOnce(&mut Settings)) -> Mock {
    let mut settings = quick();
    change(&mut settings);
    Mock::start(settings).unwrap()
}

/// The deltas of a stream, and its usage.
fn deltas(response: &Response) -> (Vec<Value>, Value) {
    assert!(response.status == 200 && response.whole, "{response:?}");
    let events: Vec<Value> = response
        .events()
        .iter()
        .filter(|event| *event != "[DONE]")
        .map(|event| serde_json::from_str(event).unwrap())
        .collect();
    let usage = events.last().unwrap()["usage"].clone();
    (events.into_iter().map(|event| event["choices"][0]["delta"].clone()).collect(), usage)
}

fn joined(deltas: &[Value], path: &str) -> String {
    deltas.iter().filter_map(|delta| delta.pointer(path)?.as_str()).collect()
}

#[test]
fn reasoning_comes_before_the_answer_under_the_wished_name() {
    for (field, name) in
        [(ReasoningField::Reasoning, "/reasoning"), (ReasoningField::ReasoningContent, "/reasoning_content")]
    {
        let mock = start(|settings| (settings.reasoning, settings.reasoning_field) = (3, field));
        let body = chat(&json!({"max_tokens": 5, "stream_options": {"include_usage": true}}));
        let (deltas, usage) = deltas(&Client::to(&mock).post(CHAT, &body));
        assert_eq!(joined(&deltas, name), " apple bread cloud");
        assert_eq!(joined(&deltas, "/content"), " dance eagle");
        assert_eq!(usage["completion_tokens"], 5);
        assert_eq!(usage["completion_tokens_details"]["reasoning_tokens"], 3);
    }
}

#[test]
fn the_client_tells_reasoning_from_the_answer() {
    let mock = start(|settings| settings.reasoning = 2);
    let run = rig::run(&rig::plan_for(mock.address().port()), 1, &rig::level(Load::closed(2), 6));
    assert_eq!(run.count(Class::Ok), 6);
    for record in run.measured() {
        assert_eq!(
            (record.reasoning_tokens.get(), record.output_tokens, record.events),
            (Some(2), Some(5), 5)
        );
        assert!(record.answer.is_some() && record.answer >= record.first);
    }
}

#[test]
fn a_tool_is_called_in_fragments() {
    let mock = start(|_| {});
    let body = chat(&json!({
        "max_tokens": 6,
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": {}}}],
        "tool_choice": "required",
    }));
    let response = Client::to(&mock).post(CHAT, &body);
    let (deltas, _) = deltas(&response);
    assert_eq!(joined(&deltas, "/tool_calls/0/function/name"), "weather");
    let arguments: Value =
        serde_json::from_str(&joined(&deltas, "/tool_calls/0/function/arguments")).unwrap();
    assert_eq!(arguments, json!({"text": " bread cloud dance eagle field"}));
    assert!(response.events().iter().any(|event| event.contains("\"finish_reason\":\"tool_calls\"")));
    assert_eq!(mock.stop().unwrap().tokens, 6);

    let mock = start(|settings| settings.tool_call = true);
    let run = rig::run(&rig::plan_for(mock.address().port()), 1, &rig::level(Load::closed(2), 4));
    assert_eq!(run.count(Class::Ok), 4);
    assert!(run.measured().iter().all(|record| record.events == 5), "fragments are content");
}

#[test]
fn answers_end_by_themselves_on_wish() {
    let mock = start(|settings| settings.eos_after = Some(2));
    let mut client = Client::to(&mock);
    let mut ended = |more: Value| {
        let mut body = chat(&json!({"max_tokens": 4, "stream": false}));
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = client.post(CHAT, &body).json();
        (answer["usage"]["completion_tokens"].clone(), answer["choices"][0]["finish_reason"].clone())
    };
    assert_eq!(ended(json!({})), (json!(2), json!("stop")));
    assert_eq!(ended(json!({"min_tokens": 3})), (json!(3), json!("stop")));
    assert_eq!(ended(json!({"ignore_eos": true})), (json!(4), json!("length")));
    assert_eq!(ended(json!({"max_completion_tokens": 1})), (json!(1), json!("length")));
}

#[test]
fn usage_is_given_as_it_is_set() {
    let count = |usage| {
        let mock = start(|settings| settings.usage = usage);
        let text = String::from_utf8(Client::to(&mock).post(CHAT, &chat(&json!({}))).body).unwrap();
        text.matches("completion_tokens").count()
    };
    assert_eq!([count(Usage::Always), count(Usage::Asked), count(Usage::Never)], [1, 0, 0]);
    let mock = start(|settings| settings.usage = Usage::Never);
    let options = json!({"include_usage": true, "continuous_usage_stats": true});
    let asked = Client::to(&mock).post(CHAT, &chat(&json!({"stream_options": options})));
    assert!(!String::from_utf8(asked.body).unwrap().contains("completion_tokens"));
}

#[test]
fn ollama_is_answered_in_lines() {
    let mock = start(|settings| settings.reasoning = 1);
    let mut client = Client::to(&mock);
    let lines = |response: Response| -> Vec<Value> {
        assert!(response.status == 200 && response.whole);
        assert!(response.head.contains("content-type: application/x-ndjson"));
        let text = String::from_utf8(response.body).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let body = json!({
        "model": "mock-model",
        "messages": [{"role": "user", "content": "one two"}],
        "options": {"num_predict": 3},
    });
    let chat = lines(client.post("/api/chat", &body));
    assert_eq!(joined(&chat, "/message/thinking"), " apple");
    assert_eq!(joined(&chat, "/message/content"), " bread cloud");
    assert!(chat[..3].iter().all(|line| line["done"] == false));
    let last = &chat[3];
    assert_eq!((last["done"].clone(), last["done_reason"].clone()), (json!(true), json!("length")));
    assert_eq!((last["prompt_eval_count"].clone(), last["eval_count"].clone()), (json!(2), json!(3)));
    assert!(last["prompt_eval_duration"].as_u64().unwrap() >= 3_000_000, "the TTFT");

    let text = json!({"model": "mock-model", "prompt": "one", "think": false, "options": {"num_predict": 2}});
    assert_eq!(joined(&lines(client.post("/api/generate", &text)), "/response"), " apple bread");
    let mut whole = text.clone();
    whole["stream"] = json!(false);
    let whole = client.post("/api/generate", &whole).json();
    assert_eq!((whole["response"].clone(), whole["done"].clone()), (json!(" apple bread"), json!(true)));
    assert_eq!(client.get("/api/tags").json()["models"][0]["name"], "mock-model");
    let unknown = client.post("/api/chat", &json!({"model": "other", "messages": []}));
    assert!(unknown.status == 404 && unknown.json()["error"].is_string());
}

#[test]
fn ollama_calls_a_tool_in_one_line() {
    let mock = start(|settings| settings.tool_call = true);
    let mut client = Client::to(&mock);
    let body = json!({
        "model": "mock-model",
        "messages": [{"role": "user", "content": "one two"}],
        "tools": [{"type": "function", "function": {"name": "weather", "parameters": {}}}],
        "options": {"num_predict": 4},
    });
    let response = client.post("/api/chat", &body);
    assert!(response.status == 200 && response.whole);
    let text = String::from_utf8(response.body).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let call = json!([{"function": {"name": "weather", "arguments": {"text": " bread cloud dance"}}}]);
    assert_eq!((lines.len(), &lines[0]["message"]["tool_calls"]), (2, &call));
    assert_eq!((&lines[1]["done_reason"], &lines[1]["eval_count"]), (&json!("stop"), &json!(4)));
    // The connection serves on, and whole answers have the call, too.
    let mut whole = body;
    whole["stream"] = json!(false);
    assert_eq!(client.post("/api/chat", &whole).json()["message"]["tool_calls"], call);
    assert_eq!(mock.stop().unwrap().tokens, 8);
}

#[test]
fn letters_of_several_bytes_arrive_whole_although_they_are_cut() {
    let fault = Fault::Delivery(Delivery::SplitUtf8);
    let mock = start(|settings| settings.faults = Faults::always(fault));
    let response = Client::to(&mock).post(CHAT, &chat(&json!({"max_tokens": 4})));
    let (deltas, _) = deltas(&response);
    assert_eq!(joined(&deltas, "/content"), " caf\u{e9} 5\u{e9}\u{e8} a\u{20ac}b a\u{1f600}");
}

/// The named events of a stream: each says its name in its data, too.
fn named(response: &Response) -> Vec<Value> {
    assert!(response.status == 200 && response.whole, "{response:?}");
    let text = String::from_utf8(response.body.clone()).unwrap();
    let event = |event: &str| {
        let (name, data) = event.split_once('\n').unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
        data
    };
    text.split_terminator("\n\n").map(event).collect()
}

fn types(events: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    types.dedup();
    types
}

#[test]
fn messages_open_and_close_each_block() {
    let mock = start(|settings| settings.reasoning = 2);
    let mut client = Client::to(&mock);
    let mut body = json!({
        "model": "mock-model", "max_tokens": 5, "stream": true, "system": "be brief",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "one two"}]}],
    });
    let events = named(&client.post("/v1/messages", &body));
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    assert_eq!(
        types(&events),
        [&["message_start"], &block[..], &block, &["message_delta", "message_stop"]].concat()
    );
    assert_eq!(events[0]["message"]["usage"], json!({"input_tokens": 4, "output_tokens": 0}));
    assert_eq!(joined(&events, "/delta/thinking"), " apple bread");
    assert_eq!(joined(&events, "/delta/text"), " cloud dance eagle");
    let at = |kind: &str| -> Vec<u64> {
        let of = events.iter().filter(|event| event["type"] == kind);
        of.map(|event| event["index"].as_u64().unwrap()).collect()
    };
    assert_eq!((at(block[0]), at(block[1]), at(block[2])), (vec![0, 1], vec![0, 0, 1, 1, 1], vec![0, 1]));
    let reason = &events[events.len() - 2];
    assert_eq!(
        (&reason["delta"]["stop_reason"], &reason["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(5))
    );

    body["tools"] = json!([{"name": "weather", "input_schema": {}}]);
    body["tool_choice"] = json!({"type": "any"});
    let events = named(&client.post("/v1/messages", &body));
    let opened = events.iter().filter(|event| event["type"] == block[0]).nth(1).unwrap();
    assert_eq!(opened["content_block"]["name"], "weather");
    let input: Value = serde_json::from_str(&joined(&events, "/delta/partial_json")).unwrap();
    assert_eq!(input, json!({"text": " dance eagle"}));
    assert_eq!(joined(&events, "/delta/stop_reason"), "tool_use");

    body["stream"] = json!(false);
    let whole = client.post("/v1/messages", &body).json();
    assert_eq!(whole["content"][0]["thinking"], " apple bread");
    assert_eq!((&whole["content"][1]["name"], &whole["content"][1]["input"]), (&json!("weather"), &input));
    let missing = client.post("/v1/messages", &json!({"messages": []}));
    assert!(
        missing.status == 400 && missing.json()["error"]["message"].as_str().unwrap().contains("max_tokens")
    );
}

#[test]
fn responses_tell_everything_again_at_their_end() {
    let mock = start(|settings| settings.reasoning = 2);
    let mut client = Client::to(&mock);
    let mut body = json!({
        "model": "mock-model", "max_output_tokens": 5, "stream": true, "instructions": "be brief",
        "input": [{"role": "user", "content": "one two"}],
    });
    let events = named(&client.post("/v1/responses", &body));
    let response = &events.last().unwrap()["response"];
    assert_eq!(events.last().unwrap()["type"], "response.incomplete");
    assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens");
    let usage = json!({
        "input_tokens": 4, "output_tokens": 5, "total_tokens": 9, "output_tokens_details": {"reasoning_tokens": 2},
    });
    assert_eq!(response["usage"], usage);
    let deltas = |kind: &str| -> String {
        let of = events.iter().filter(|event| event["type"] == kind);
        of.map(|event| event["delta"].as_str().unwrap()).collect()
    };
    assert_eq!(deltas("response.reasoning_text.delta"), " apple bread");
    assert_eq!(deltas("response.output_text.delta"), " cloud dance eagle");
    assert_eq!(response["output"][0]["content"][0]["text"], " apple bread");
    assert_eq!(response["output"][1]["content"][0]["text"], " cloud dance eagle");
    let done: Vec<&Value> =
        events.iter().filter(|event| event["type"] == "response.output_item.done").collect();
    assert_eq!(
        (done[0]["item"].clone(), done[1]["item"].clone()),
        (response["output"][0].clone(), response["output"][1].clone())
    );

    body["tools"] = json!([{"type": "function", "name": "weather"}]);
    body["tool_choice"] = json!("required");
    let events = named(&client.post("/v1/responses", &body));
    let response = &events.last().unwrap()["response"];
    let call = &response["output"][1];
    assert_eq!((&call["type"], &call["name"]), (&json!("function_call"), &json!("weather")));
    assert_eq!(call["arguments"], r#"{"text":" dance eagle"}"#);
    body["stream"] = json!(false);
    assert_eq!(client.post("/v1/responses", &body).json()["output"][1]["arguments"], call["arguments"]);
}

#[test]
fn the_servers_own_apis_count_in_every_event() {
    let mock = start(|_| {});
    let mut client = Client::to(&mock);
    let events = |response: Response| -> Vec<Value> {
        assert!(response.status == 200 && response.whole, "{response:?}");
        let events = response.events();
        events
            .iter()
            .filter(|event| *event != "[DONE]")
            .map(|event| serde_json::from_str(event).unwrap())
            .collect()
    };
    let sampling = json!({"max_new_tokens": 3, "ignore_eos": true});
    let mut body = json!({"text": "one two", "sampling_params": sampling, "stream": true});
    let sglang = events(client.post("/generate", &body));
    let texts: Vec<&str> = sglang.iter().map(|event| event["text"].as_str().unwrap()).collect();
    assert_eq!(texts, [" apple", " apple bread", " apple bread cloud"]);
    let counts: Vec<_> =
        sglang.iter().map(|event| event["meta_info"]["completion_tokens"].as_u64()).collect();
    assert_eq!(counts, [Some(1), Some(2), Some(3)]);
    assert_eq!(sglang[1]["meta_info"]["finish_reason"], Value::Null);
    assert_eq!(sglang[2]["meta_info"]["finish_reason"], json!({"type": "length", "length": 3}));
    assert_eq!(sglang[2]["meta_info"]["prompt_tokens"], 2);
    body["stream"] = json!(false);
    assert_eq!(client.post("/generate", &body).json()["text"], " apple bread cloud");

    let mut body = json!({"prompt": "one two", "n_predict": 3, "stream": true});
    let llama = events(client.post("/completion", &body));
    assert_eq!(joined(&llama, "/content"), " apple bread cloud");
    assert_eq!((llama.len(), &llama[2]["stop"], &llama[3]["stop"]), (4, &json!(false), &json!(true)));
    assert_eq!((&llama[1]["tokens_predicted"], &llama[1]["tokens"]), (&json!(2), &json!([1])));
    assert_eq!((&llama[3]["stop_type"], &llama[3]["timings"]["predicted_n"]), (&json!("limit"), &json!(3)));
    body["stream"] = json!(false);
    assert_eq!(client.post("/completion", &body).json()["content"], " apple bread cloud");

    let vectors =
        client.post("/v1/embeddings", &json!({"model": "mock-model", "input": ["one", "two three"]})).json();
    assert_eq!(
        (vectors["data"].as_array().unwrap().len(), &vectors["usage"]["prompt_tokens"]),
        (2, &json!(3))
    );
    for (path, body) in [
        ("/generate", json!({"text": ["a", "b"]})),
        ("/generate", json!({"text": "a", "sampling_params": 3})),
        ("/completion", json!({"n_predict": 3})),
        ("/v1/embeddings", json!({"input": []})),
        ("/v1/responses", json!({"input": 3})),
    ] {
        assert_eq!(client.post(path, &body).status, 400, "{path} {body}");
    }
}
