//! Who waits for whom in sessions of agents.

use super::*;
use crate::workload::trace::{AgentReader, Agents};

type Waits = Vec<(Vec<u32>, u64)>;

/// Of each request whom it waits for, and its pause in ms.
fn waits(text: &str) -> Waits {
    let entries = read("a.json", text.as_bytes(), &of_format(Format::Weka)).unwrap();
    let of = |entry: Entry| {
        let node = entry.node.unwrap();
        (node.after, node.pause_ns / 1_000_000)
    };
    entries.into_iter().map(of).collect()
}

fn request(t: f64, more: &str) -> String {
    format!("{{\"t\": {t}, \"in\": 1, \"out\": 1{more}}}")
}

fn sub_agent(t: f64, more: &str, requests: &[String]) -> String {
    format!("{{\"t\": {t}, \"type\": \"subagent\"{more}, \"requests\": [{}]}}", requests.join(", "))
}

fn session(requests: &[String]) -> String {
    format!("{{\"requests\": [{}]}}", requests.join(", "))
}

#[test]
fn a_pause_is_the_think_time_or_what_the_times_leave() {
    let api = |s: f64| format!(", \"api_time\": {s}");
    let text = session(&[
        request(0.0, &api(2.0)),
        request(5.0, &api(1.0)),
        request(7.0, ", \"think_time\": 0.5"),
        // The answer is recorded as longer than the time until the next request.
        request(8.0, &api(9.0)),
        request(10.0, ""),
    ]);
    let expected = [(vec![], 0), (vec![0], 3000), (vec![1], 500), (vec![2], 1000), (vec![3], 0)];
    assert_eq!(waits(&text), expected);
}

#[test]
fn a_sub_agent_is_waited_for_by_what_was_sent_when_it_was_through() {
    let text = session(&[
        request(0.0, ""),
        sub_agent(1.0, "", &[request(1.5, ""), request(4.0, "")]),
        // It was still at work.
        request(3.0, ""),
        request(5.0, ""),
    ]);
    assert_eq!(
        waits(&text),
        [(vec![], 0), (vec![0], 1500), (vec![1], 2500), (vec![0], 3000), (vec![3, 2], 1000)]
    );
    let launched = text.replace("\"subagent\"", "\"subagent\", \"status\": \"async_launched\"");
    assert_eq!(waits(&launched)[4], (vec![3], 2000));
    // One before all requests of its agent goes with the session.
    let first = session(&[sub_agent(0.0, "", &[request(0.0, "")]), request(2.0, "")]);
    assert_eq!(waits(&first), [(vec![], 0), (vec![0], 2000)]);
}

#[test]
fn sub_agents_of_sub_agents_work_for_them() {
    let inner = sub_agent(2.0, "", &[request(0.5, ""), request(1.0, "")]);
    let text = session(&[
        request(0.0, ""),
        sub_agent(10.0, "", &[request(1.0, ""), inner, request(4.0, "")]),
        request(20.0, ""),
    ]);
    // Seconds count from the beginning of whose they are: 10 + 1, 12 + 0.5, 12 + 1, 10 + 4.
    assert_eq!(
        waits(&text),
        [
            (vec![], 0),
            (vec![0], 11_000),
            (vec![1], 1500),
            (vec![2], 500),
            (vec![1, 3], 1000),
            (vec![0, 4], 6000)
        ]
    );
    let deep = (0..17).fold(request(0.0, ""), |inner, _| sub_agent(0.0, "", &[inner]));
    let error = read("a.json", session(&[deep]).as_bytes(), &of_format(Format::Weka)).unwrap_err();
    assert!(error.to_string().contains("nested too deep"), "{error}");
}

#[test]
fn what_is_left_out_passes_on_what_it_waited_for() {
    let text = session(&[
        request(0.0, ", \"model\": \"big\""),
        request(1.0, ", \"model\": \"small\""),
        sub_agent(2.0, "", &[request(2.0, ", \"model\": \"small\""), request(3.0, ", \"model\": \"big\"")]),
        request(4.0, ", \"model\": \"big\""),
    ]) + &session(&[request(0.0, ", \"model\": \"small\"")]);
    let mut input = Cursor::new(text.as_bytes());
    let options = of_format(Format::Weka);
    let mut keeps = |entry: &Entry, _| entry.model.as_deref() == Some("big");
    let agents = Agents::of("a.json", &mut input, &options, &mut keeps).unwrap();
    assert_eq!((agents.len(), agents.requests(0), agents.requests(1)), (1, 3, 0));
    let after: Vec<&[u16]> = (0..3).map(|number| agents.after(0, number)).collect();
    assert_eq!(after, [&[][..], &[0], &[0, 1]]);
    let next: Vec<&[u16]> = (0..3).map(|number| agents.next(0, number)).collect();
    assert_eq!(next, [&[1, 2][..], &[2], &[]]);
    assert_eq!(agents.when(0, 1).unwrap().at_ns, 3_000_000_000);
    assert_eq!((agents.when(0, 3), agents.after(9, 9)), (None, &[][..]));
    let mut reader = AgentReader::open(("a.json", Cursor::new(text.as_bytes())), &options, &agents).unwrap();
    assert_eq!(reader.entry(0, 2).unwrap().unwrap().at, Some(4_000_000_000));
    assert_eq!(reader.entry(0, 0).unwrap().unwrap().at, Some(0), "in any order");
    assert_eq!(reader.entry(0, 3), Ok(None));
    let mut reader =
        AgentReader::open(("a.json", Cursor::new(b"{\"requests\": []}")), &options, &agents).unwrap();
    assert!(reader.entry(0, 2).is_err(), "the file has changed");
}

#[test]
fn a_request_has_tokens_and_no_more_blocks_than_they_fill() {
    let fault = |request: &str| {
        let text = format!("{{\"block_size\": 64, \"requests\": [{request}]}}");
        read("a.json", text.as_bytes(), &of_format(Format::Weka)).map_err(|error| error.to_string())
    };
    for (request, said) in [
        (r#"{"t": 0, "in": 0, "out": 1}"#, "in: 0, and a request has one token at least"),
        (r#"{"t": 0, "in": 1, "out": 0}"#, "out: 0, and a request has one token at least"),
        (
            r#"{"t": 0, "in": 100, "out": 1, "hash_ids": [1, 2, 3]}"#,
            "hash_ids: more blocks than the prompt has tokens for",
        ),
    ] {
        let error = fault(request).unwrap_err();
        assert!(error.ends_with(said), "{error}");
    }
    for whole in [
        r#"{"t": 0, "in": 65, "out": 1, "hash_ids": [1, 2]}"#,
        r#"{"t": 0, "in": 64, "out": 1, "hash_ids": [1]}"#,
    ] {
        assert_eq!(fault(whole).unwrap().len(), 1);
    }
}
