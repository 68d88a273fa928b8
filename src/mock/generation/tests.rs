use super::*;
use crate::mock::ask::Finish;
use crate::mock::face::tests::face;
use crate::mock::faults::Cut;
use crate::mock::reply::ServedBy;
use crate::model::keyed::Key;

const ASK: Ask = Ask {
    surface: Surface::Chat,
    stream: true,
    choices: 1,
    tokens: 3,
    finish: Finish::Length,
    reasoning: 0,
    tool: None,
    prompt_tokens: 5,
    include_usage: true,
    continuous_usage: false,
};
const DRESS: Dress = Dress { role: Role::First, late_head: false, usage: Usage::Asked };
/// Closed by the end of the connection: the bytes are the events.
const PLAIN: Manner =
    Manner { chunks: false, keep_alive: false, head_only: false, served_by: ServedBy::NOBODY };

fn generation(ask: Ask, dress: Dress) -> Generation {
    let face = Face { tool: ask.tool.clone(), thinks: ask.reasoning > 0, ..face(ask.surface) };
    Generation::new(face, ask, dress, PLAIN)
}

fn faulty(ask: Ask, fault: Fault) -> Generation {
    generation(ask, DRESS).with_fault(Some(fault))
}

/// The bytes on arrival, of each event and of what follows it, and the progress of the last event.
fn run(generation: Generation) -> (Vec<String>, Progress) {
    run_by(generation, 1)
}

/// The same with `step` tokens in an emission.
fn run_by(mut generation: Generation, step: u32) -> (Vec<String>, Progress) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut start = Vec::new();
    generation.on_start(Stamp::ZERO, &mut start);
    let mut writes = vec![text(&start)];
    let Ask { choices, tokens, .. } = generation.ask;
    let key = Key::from_token(0);
    let mut from = 0;
    while from < tokens {
        let count = step.min(tokens - from);
        for choice in 0..choices {
            let mut out = Bytes::default();
            let last = from + count == tokens;
            let emission = Emission {
                key: key.into(),
                owner: key.token(),
                due: Stamp::ZERO,
                choice,
                tokens: count,
                cached_tokens: 0,
                first: from == 0,
                last,
            };
            let progress = generation.on_emission(&emission, Stamp::ZERO, &mut out);
            writes.push(text(&out.event));
            writes.push(text(&out.after));
            if progress != Progress::More {
                writes.retain(|write| !write.is_empty());
                return (writes, progress);
            }
        }
        from += count;
    }
    panic!("the answer did not end");
}

/// What matters of each event of a write: role, content, finish reason, usage.
fn events(write: &str) -> Vec<String> {
    write
        .split("\n\n")
        .filter_map(|event| Some(event.split_once("data: ")?.1))
        .map(|data| match serde_json::from_str::<serde_json::Value>(data) {
            Err(_) => data.to_owned(),
            Ok(event) => {
                let choice = &event["choices"][0];
                let part = |name: &str, value: &serde_json::Value| {
                    if value.is_null() { String::new() } else { format!("{name}{value} ") }
                };
                let text = part("#", &choice["index"])
                    + &part("role ", &choice["delta"]["role"])
                    + &part("", &choice["delta"]["content"])
                    + &part("thinks ", &choice["delta"]["reasoning_content"])
                    + &part("calls ", &choice["delta"]["tool_calls"][0]["function"]["name"])
                    + &part("args ", &choice["delta"]["tool_calls"][0]["function"]["arguments"])
                    + &part("", &choice["text"])
                    + &part("finish ", &choice["finish_reason"])
                    + &part("usage ", &event["usage"]["completion_tokens"])
                    + &part("error ", &event["error"]["code"]);
                text.trim_end().to_owned()
            }
        })
        .collect()
}

#[test]
fn a_stream_opens_with_its_role_and_ends_with_usage_and_done() {
    let (writes, progress) = run(generation(ASK, DRESS));
    assert_eq!(progress, Progress::Done);
    assert!(writes[0].starts_with("HTTP/1.0 200 OK\r\n") && writes[0].ends_with("\r\n\r\n"));
    assert_eq!(events(&writes[1]), [r##"#0 role "assistant" """##, r##"#0 " apple""##]);
    assert_eq!(events(&writes[2]), [r##"#0 " bread""##]);
    assert_eq!(events(&writes[3]), [r##"#0 " cloud" finish "length""##]);
    assert_eq!(events(&writes[4]), ["usage 3", "[DONE]"]);
    assert_eq!(writes.len(), 5);
}

#[test]
fn an_early_role_comes_with_the_head_and_none_not_at_all() {
    let (writes, _) = run(generation(ASK, Dress { role: Role::Early, ..DRESS }));
    assert_eq!(events(&writes[0]), [r##"#0 role "assistant" """##]);
    assert_eq!(events(&writes[1]).len(), 1);
    let (writes, _) = run(generation(ASK, Dress { role: Role::None, ..DRESS }));
    assert_eq!(events(&writes.concat()).len(), 5);
}

#[test]
fn a_late_head_comes_with_the_first_event() {
    let (writes, _) = run(generation(ASK, Dress { late_head: true, ..DRESS }));
    assert!(writes[0].starts_with("HTTP/1.0 200 OK\r\n"));
    assert_eq!(events(&writes[0]).len(), 2);
}

#[test]
fn usage_comes_only_where_it_is_asked_for_and_allowed() {
    let count = |ask: Ask, dress: Dress| run(generation(ask, dress)).0.concat().matches("usage").count();
    assert_eq!(count(ASK, DRESS), 1);
    assert_eq!(count(Ask { include_usage: false, ..ASK }, DRESS), 0);
    assert_eq!(count(ASK, Dress { usage: Usage::Never, ..DRESS }), 0);
    assert_eq!(count(Ask { stream: false, ..ASK }, DRESS), 1);
    assert_eq!(count(Ask { stream: false, ..ASK }, Dress { usage: Usage::Never, ..DRESS }), 0);
}

#[test]
fn continuous_usage_counts_up_in_every_event() {
    let (writes, _) = run(generation(Ask { continuous_usage: true, ..ASK }, DRESS));
    assert_eq!(
        events(&writes.concat()),
        [
            r##"#0 role "assistant" "" usage 0"##,
            r##"#0 " apple" usage 1"##,
            r##"#0 " bread" usage 2"##,
            r##"#0 " cloud" finish "length" usage 3"##,
            "usage 3",
            "[DONE]"
        ]
    );
}

#[test]
fn choices_are_interleaved_and_end_each_for_itself() {
    let (writes, _) = run(generation(Ask { choices: 2, tokens: 2, ..ASK }, DRESS));
    assert_eq!(
        events(&writes.concat()),
        [
            r##"#0 role "assistant" """##,
            r##"#0 " apple""##,
            r##"#1 role "assistant" """##,
            r##"#1 " field""##,
            r##"#0 " bread" finish "length""##,
            r##"#1 " grass" finish "length""##,
            "usage 4",
            "[DONE]"
        ]
    );
}

#[test]
fn text_completions_have_no_role_and_chunks_hold_several_tokens() {
    let ask = Ask { surface: Surface::Text, tokens: 5, include_usage: false, ..ASK };
    let (writes, _) = run_by(generation(ask, DRESS), 2);
    assert_eq!(
        events(&writes.concat()),
        [r##"#0 " apple bread""##, r##"#0 " cloud dance""##, r##"#0 " eagle" finish "length""##, "[DONE]"]
    );
}

#[test]
fn a_whole_answer_is_one_write() {
    let (writes, progress) = run(generation(Ask { stream: false, choices: 2, ..ASK }, DRESS));
    assert_eq!((writes.len(), progress), (1, Progress::Done));
    let body = writes[0].split_once("\r\n\r\n").unwrap().1;
    let value: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(value["choices"][0]["message"]["content"], " apple bread cloud");
    assert_eq!(value["choices"][1]["message"]["content"], " field grass house");
    assert_eq!(value["usage"]["completion_tokens"], 6);
}

#[test]
fn a_cut_stands_in_the_place_of_its_event() {
    let cut = |how, after_events| run(faulty(ASK, Fault::Cut(Cut { after_events, how })));
    let (writes, progress) = cut(Break::Close, 2);
    assert_eq!((events(&writes.concat()).len(), progress), (3, Progress::Close));
    assert_eq!(cut(Break::Reset, 0).1, Progress::Reset);
    assert_eq!(cut(Break::Stall, 1).1, Progress::Stall);
    let (writes, progress) = cut(Break::ErrorEvent, 1);
    assert_eq!(progress, Progress::Failed);
    assert_eq!(events(&writes.concat())[2..], ["error 500", "[DONE]"]);
    let (writes, progress) = cut(Break::Half, 1);
    assert_eq!(progress, Progress::Close);
    assert!(writes[2].starts_with("data: {") && !writes[2].ends_with('\n'));
    let (writes, progress) = cut(Break::BadJson, 1);
    assert_eq!(progress, Progress::Failed);
    assert!(writes[2].starts_with("data: {\"id\"") && writes[2].ends_with(":0,\n\n"));
    let (writes, progress) = cut(Break::Close, 9);
    assert_eq!((events(&writes.concat()).len(), progress), (3, Progress::Close), "the last one at least");
}

#[test]
fn a_cut_whole_answer_lacks_its_second_half() {
    let whole = Ask { stream: false, ..ASK };
    let cut = |how| run(faulty(whole.clone(), Fault::Cut(Cut { after_events: 0, how })));
    let length = run(generation(whole.clone(), DRESS)).0[0].len();
    let (writes, progress) = cut(Break::Close);
    assert_eq!((writes[0].len(), progress), (length / 2, Progress::Close));
    let (writes, progress) = cut(Break::ErrorEvent);
    assert!(writes[0].starts_with("HTTP/1.0 500 ") && progress == Progress::Failed);
}

#[test]
fn reasoning_comes_first_and_an_emission_of_both_is_two_events() {
    let ask = Ask { reasoning: 2, include_usage: false, ..ASK };
    let (writes, _) = run(generation(ask.clone(), Dress { role: Role::None, ..DRESS }));
    assert_eq!(
        events(&writes.concat()),
        [r##"#0 thinks " apple""##, r##"#0 thinks " bread""##, r##"#0 " cloud" finish "length""##, "[DONE]"]
    );
    let all = |step| {
        let (writes, _) = run_by(generation(ask.clone(), Dress { role: Role::None, ..DRESS }), step);
        events(&writes.concat())
    };
    let both = [r##"#0 thinks " apple bread""##, r##"#0 " cloud" finish "length""##, "[DONE]"];
    assert_eq!(all(2), both);
    assert_eq!(all(3), both);
}

#[test]
fn a_tool_call_ends_in_an_event_of_its_own() {
    let ask = Ask { tool: Some("\"f\"".into()), finish: Finish::ToolCalls, include_usage: false, ..ASK };
    let (writes, _) = run(generation(ask, DRESS));
    assert_eq!(
        events(&writes.concat()),
        [
            r##"#0 role "assistant" """##,
            r##"#0 calls "f""##,
            r##"#0 args "{\"text\":\" bread""##,
            r##"#0 args " cloud\"}""##,
            r##"#0 finish "tool_calls""##,
            "[DONE]"
        ]
    );
}

#[test]
fn ollama_streams_lines_and_ends_with_its_counts() {
    let ask = Ask { surface: Surface::OllamaChat, reasoning: 1, ..ASK };
    let (writes, progress) = run(generation(ask.clone(), DRESS));
    assert!(writes[0].contains("content-type: application/x-ndjson"));
    let lines: Vec<serde_json::Value> =
        writes[1..].concat().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), progress), (4, Progress::Done));
    assert_eq!(lines[0]["message"]["thinking"], " apple");
    assert_eq!(lines[2]["message"]["content"], " cloud");
    assert_eq!((lines[3]["done"].as_bool(), lines[3]["eval_count"].as_u64()), (Some(true), Some(3)));
    let (writes, _) = run(faulty(ask, Fault::Flaw(Flaw::NoDone)));
    assert_eq!(writes[1..].concat().lines().count(), 3);
}

#[test]
fn ollama_calls_a_tool_in_one_line_when_its_last_token_has_come() {
    let ask =
        Ask { surface: Surface::OllamaChat, tool: Some("\"f\"".into()), finish: Finish::ToolCalls, ..ASK };
    let lines = |writes: &[String]| -> Vec<serde_json::Value> {
        writes.concat().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let (writes, progress) = run(generation(ask.clone(), DRESS));
    let lines_of_all = lines(&writes[1..]);
    assert_eq!((lines_of_all.len(), progress), (2, Progress::Done));
    let call = serde_json::json!([{"function": {"name": "f", "arguments": {"text": " bread cloud"}}}]);
    assert_eq!(lines_of_all[0]["message"]["tool_calls"], call);
    assert_eq!(
        (&lines_of_all[1]["done_reason"], &lines_of_all[1]["eval_count"]),
        (&"stop".into(), &3.into())
    );
    // Reasoning comes as it does, and the call after it has one token less.
    let (writes, _) = run(generation(Ask { reasoning: 1, ..ask }, DRESS));
    let thought = lines(&writes[1..]);
    assert_eq!(thought[0]["message"]["thinking"], " apple");
    assert_eq!(thought[1]["message"]["tool_calls"][0]["function"]["arguments"]["text"], " cloud");
}

#[test]
fn cached_tokens_are_told_where_the_model_knows_them() {
    let mut told = generation(ASK, DRESS);
    told.on_cached(Some(4));
    assert!(run(told).0.concat().contains(r#""prompt_tokens_details":{"cached_tokens":4}"#));
    assert!(!run(generation(ASK, DRESS)).0.concat().contains("details"));
}

#[test]
fn usage_can_come_unasked() {
    let ask = Ask { include_usage: false, ..ASK };
    let (writes, _) = run(generation(ask, Dress { usage: Usage::Always, ..DRESS }));
    assert!(writes.concat().contains("completion_tokens"));
}

#[test]
fn flaws_leave_out_what_they_say() {
    let of = |flaw| {
        let (writes, progress) = run(faulty(ASK, Fault::Flaw(flaw)));
        (writes[0].clone(), events(&writes[1..].concat()), progress)
    };
    let (_, empty, _) = of(Flaw::Empty);
    assert_eq!(empty, [r##"#0 role "assistant" """##, r##"#0 finish "length""##, "usage 0", "[DONE]"]);
    let (_, no_done, progress) = of(Flaw::NoDone);
    assert_eq!(no_done[3..], [r##"#0 " cloud" finish "length""##, "usage 3"]);
    assert_eq!(progress, Progress::Done);
    let (_, no_finish, progress) = of(Flaw::NoFinish);
    assert_eq!(no_finish[3..], [r##"#0 " cloud""##, "usage 3"]);
    assert_eq!(progress, Progress::Failed);
    let (_, no_usage, _) = of(Flaw::NoUsage);
    assert_eq!(no_usage[3..], [r##"#0 " cloud" finish "length""##, "[DONE]"]);
    let (head, _, progress) = of(Flaw::WrongType);
    assert!(head.contains("content-type: text/html") && progress == Progress::Failed);
}

#[test]
fn deliveries_change_the_bytes_and_not_what_they_say() {
    let plain = events(&run(generation(ASK, DRESS)).0.concat());
    let of = |delivery| {
        let (writes, progress) = run(faulty(ASK, Fault::Delivery(delivery)));
        assert_eq!(progress, Progress::Done);
        writes
    };
    let bundled = of(Delivery::Bundle(2));
    assert_eq!((bundled.len(), events(&bundled[1]).len()), (4, 3), "the role, and two of content");
    assert_eq!(events(&bundled.concat()), plain);
    let commented = of(Delivery::Comments).concat();
    assert_eq!(commented.matches(": keep-alive\n\n").count(), 3);
    let crlf = of(Delivery::Crlf)[1..].concat();
    assert_eq!(events(&crlf.replace("\r\n", "\n")), plain);
    assert_eq!(crlf.matches('\n').count(), crlf.matches("\r\n").count());
    let giant = of(Delivery::Giant(2_000_000));
    assert!(giant[1].len() > 2_000_000 && giant[2].len() < 1000);
    assert_eq!(events(&giant.concat()), plain);
}
