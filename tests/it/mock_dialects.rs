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
        assert_eq!((record.reasoning_tokens, record.output_tokens, record.events), (Some(2), Some(5), 5));
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
