//! Conversations from outside: what each later turn says, to whom, and what is shown of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json as object};

use super::canned::{Canned, http, models};
use super::{Dir, json, mock, run, url};
use tokload::mock::Faults;

/// Chunks of a chat as events, with an end.
fn chat(deltas: &[Value]) -> Vec<u8> {
    let mut body = String::new();
    for delta in deltas {
        body += &format!("data: {}\n\n", object!({ "choices": [{ "index": 0, "delta": delta }] }));
    }
    body += "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    http(200, "text/event-stream", &body)
}

type Seen = Arc<Mutex<Vec<(String, Value)>>>;

/// A server that says `answer` and keeps the heads and bodies of what it was asked in earnest.
fn listening(answer: impl Fn(&Value) -> Vec<Value> + Send + Sync + 'static) -> (Canned, Seen) {
    let seen = Seen::default();
    let kept = Arc::clone(&seen);
    let canned = Canned::start(move |asked| {
        if !asked.is_post() {
            return models();
        }
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        let said = answer(&body);
        kept.lock().unwrap().push((asked.head.clone(), body));
        chat(&said)
    });
    (canned, seen)
}

fn header(head: &str) -> Option<String> {
    let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with("x-session-id:"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[test]
fn later_turns_repeat_what_was_said_without_the_reasoning() {
    let answer = |_: &Value| {
        vec![
            object!({ "reasoning_content": "hm" }),
            object!({ "content": "so \"it\"" }),
            object!({ "content": " is\n" }),
        ]
    };
    let (server, seen) = listening(answer);
    let line = run(
        &server.url(),
        "--multi-turn --multi-turn-num-turns 3 --per-turn-input-len 4 -c 1 --num-prompts 1",
    );
    let said = Dir::new().tokload(&format!("{line} --session-header X-Session-ID --no-save"));
    said.shows(0);
    let seen = seen.lock().unwrap();
    let last = seen.last().unwrap();
    let messages = last.1["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert!(messages.iter().skip(1).step_by(2).all(|message| message["content"] == "so \"it\" is\n"));
    let words: Vec<usize> =
        messages.iter().step_by(2).map(|m| m["content"].as_str().unwrap().split(' ').count()).collect();
    assert_eq!(words, [8, 4, 4]);
    // Each turn begins with the one before it, to the byte: what a prefix cache needs.
    let turns = &seen[seen.len() - 3..];
    for pair in turns.windows(2) {
        let before = pair[0].1["messages"].as_array().unwrap();
        assert_eq!(pair[1].1["messages"].as_array().unwrap()[..before.len()], before[..]);
    }
    let ids: Vec<Option<String>> = turns.iter().map(|(head, _)| header(head)).collect();
    assert!(ids[0].is_some() && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
}

#[test]
fn all_turns_of_a_session_go_to_one_server() {
    let answer = |_: &Value| vec![object!({ "content": "yes" })];
    let servers = [listening(answer), listening(answer), listening(answer)];
    let urls: Vec<String> =
        servers.iter().map(|(server, _)| format!("--base-url {}", server.url())).collect();
    let said = Dir::new().tokload(&format!(
        "run {} --model m --multi-turn -c 2 --num-prompts 9 --num-warmups 0 --session-header X-Session-ID --no-save",
        urls.join(" ")
    ));
    said.shows(0);
    let mut where_seen: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, (_, seen)) in servers.iter().enumerate() {
        for (head, _) in seen.lock().unwrap().iter() {
            // The probe of a run is no session.
            if let Some(id) = header(head) {
                where_seen.entry(id).or_default().push(place);
            }
        }
    }
    assert_eq!(where_seen.len(), 9);
    assert!(where_seen.values().all(|places| places.len() == 3 && places.iter().all(|p| *p == places[0])));
    let used: Vec<usize> = where_seen.values().map(|places| places[0]).collect();
    assert!((0..3).all(|place| used.iter().filter(|used| **used == place).count() == 3), "{used:?}");
}

/// An agent's session: tools are declared, called by the live answer, and the results bear the ids of its calls.
#[test]
fn results_of_tools_follow_the_calls_of_the_live_answer() {
    let call = object!({ "index": 0, "id": "live-1", "type": "function", "function": { "name": "look", "arguments": "" } });
    let arguments = object!({ "index": 0, "function": { "arguments": "{\"at\":1}" } });
    let answer = move |body: &Value| match body["messages"].as_array().unwrap().len() {
        1 if body.get("tools").is_some() => {
            vec![object!({ "tool_calls": [call] }), object!({ "tool_calls": [arguments] })]
        }
        _ => vec![object!({ "content": "done" })],
    };
    let (server, seen) = listening(answer);
    let dir = Dir::new();
    let recorded = object!({ "role": "assistant", "content": null, "tool_calls": [
        { "id": "rec-1", "type": "function", "function": { "name": "look", "arguments": "{}" } }
    ]});
    let session = object!({
        "messages": [
            { "role": "user", "content": "where?" }, recorded,
            { "role": "tool", "tool_call_id": "rec-1", "content": "here" },
        ],
        "tools": [{ "type": "function", "function": { "name": "look" } }],
    });
    std::fs::write(dir.path("agent.jsonl"), format!("{session}\n")).unwrap();
    for (replies, id) in [("live", "live-1"), ("recorded", "rec-1")] {
        seen.lock().unwrap().clear();
        let line = format!(
            "run --base-url {} --dataset-path agent.jsonl --multi-turn --replies {replies} --random-output-len 5 -c 1 \
             --num-prompts 1 --num-warmups 0 --no-save",
            server.url()
        );
        dir.tokload(&line).shows(0);
        let seen = seen.lock().unwrap();
        let body = &seen.last().unwrap().1;
        assert_eq!(body["tools"], session["tools"], "{replies}");
        let messages = body["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 3, "{body}");
        assert_eq!(messages[1]["tool_calls"][0]["id"], id);
        assert_eq!(messages[1]["tool_calls"][0]["function"]["name"], "look");
        assert_eq!((&messages[2]["tool_call_id"], &messages[2]["content"]), (&id.into(), &"here".into()));
    }
}

#[test]
fn each_api_holds_conversations_and_the_report_tells_their_turns() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    for name in
        ["chat", "messages", "responses", "ollama", "completions", "ollama-generate", "llama.cpp", "sglang"]
    {
        let talk = "--multi-turn --multi-turn-num-turns 3 --multi-turn-delay-ms 2 --per-turn-input-len 4";
        let line = run(&url(&mock), &format!("--backend {name} {talk} -c 2 --num-prompts 4"));
        let said = dir.tokload(&format!("{line} --output-file run.json --force"));
        let table = said.shows(0);
        assert!(table.contains("sessions: 4 begun, 4 finished"), "{name}: {table}");
        let level = &json(&dir.path("run.json"))["levels"][0];
        let turns: Vec<(u64, u64)> = (0..3)
            .map(|turn| {
                let turn = &level["turns"][turn];
                (turn["counts"]["ok"].as_u64().unwrap(), turn["tokens"]["prompt"].as_u64().unwrap())
            })
            .collect();
        // Eight words; then each time the five of the answer and four more.
        assert_eq!(turns, [(4, 4 * 8), (4, 4 * 17), (4, 4 * 26)], "{name}");
        assert_eq!(level["sessions"]["finished"], 4);
        let stored = dir.tokload("report run.json").shows(0).to_owned();
        assert!(stored.contains("turn 3") && stored.contains("sessions: 4 begun"), "{stored}");
    }
    let refused = run(&url(&mock), "--backend embeddings --multi-turn --goodput e2e:5");
    dir.tokload(&refused).refuses(2, &["--multi-turn", "embeddings have no answers"]);
}

#[test]
fn a_dry_run_shows_the_turns_of_sessions_and_a_plan_keeps_them() {
    let dir = Dir::new();
    let talk =
        "--multi-turn --multi-turn-num-turns 7 --multi-turn-delay-ms 250 --session-header X-Session-ID";
    let line = format!("simulate -c 2 --num-prompts 3 --seed 1 --random-input-len 20 {talk}");
    let printed = |line: &str| {
        let said = dir.tokload(line);
        assert_eq!(said.code, 0, "{said:?}");
        said.out
    };
    let shown = printed(&format!("{line} --dry-run"));
    assert!(
        shown.contains("[workload.conversation]") && shown.contains("session_header = \"X-Session-ID\""),
        "{shown}"
    );
    assert!(shown.contains("#   turn 2 250ms after the answer, 20 words more, max_tokens 64: "), "{shown}");
    assert!(shown.contains("#   and 2 more turns"), "{shown}");
    let at_once = printed(&format!(
        "{} --dry-run",
        line.replace("--multi-turn-delay-ms 250", "--multi-turn-delay-ms 0")
    ));
    assert!(at_once.contains("#   turn 2 at once after the answer, 20 words more, "), "{at_once}");
    // Later turns repeat answers, of which no cache's share is known before.
    let common = "--shared-system-prompt-length 50";
    assert!(!printed(&format!("{line} {common} --dry-run")).contains("prefix cache"));
    let plan = printed(&format!("{line} --print-config"));
    std::fs::write(dir.path("plan.toml"), plan).unwrap();
    let again = printed("simulate --config plan.toml --dry-run");
    assert_eq!(again, shown);
}

#[test]
fn a_rate_is_one_of_sessions_and_users_who_go_away_end_them() {
    let dir = Dir::new();
    let said = dir.tokload(
        "simulate --multi-turn --request-rate 2 --num-prompts 40 --random-output-len 4 --seed 3 --no-save \
         --request-cancellation-rate 20",
    );
    let shown = said.shows(0).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("asked 2 sessions/s; "), "{shown}");
    assert!(!shown.contains("realised_rate_off") && !shown.contains("planned 5"), "{shown}");
    assert!(shown.contains("cut off by their users or the end of the level"), "{shown}");
}
