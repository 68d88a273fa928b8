//! `quick` from outside: what it says, saves and returns. What it finds is tested in virtual time (`it::quick`).

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokload::mock::{Faults, Mock, Settings};
use tokload::model;

use super::canned::{Canned, models, stream};
use super::{Dir, json, mock, url};

/// A mock whose answers of 128 tokens take a few milliseconds.
fn fast() -> Mock {
    let serving = model::Settings::fixed(1.0, 0.05);
    Mock::start(Settings { model: "m".to_owned(), serving, ..Settings::default() }).unwrap()
}

#[test]
fn limits_that_one_user_does_not_keep_are_a_gate_that_failed() {
    let (dir, mock) = (Dir::new(), fast());
    let line = format!("quick -q --base-url {} --goodput ttft:0.01 --output-file run.json", url(&mock));
    let said = dir.tokload(&line);
    let out = said.shows(1).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("not even one user alone is served well"), "{out}");
    assert!(
        out.contains("keep TTFT <= 0.01 ms") && out.contains("one user alone: the first token comes"),
        "{out}"
    );
    assert!(out.contains("verdict:") && out.contains("p99 off by"), "{out}");
    assert_eq!(said.err, "", "it was to be quiet");

    let stored = json(&dir.path("run.json"));
    assert_eq!(stored["levels"].as_array().unwrap().len(), 1);
    assert_eq!(stored["capacity"]["answer"]["ending"], "nothing_holds");
    assert_eq!(stored["plan"]["workload"]["output_tokens"], 128);
    let again = dir.tokload("report run.json");
    assert_eq!((again.code, again.numbers()), (0, said.numbers()));
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    // The model, two short requests and the warm-up come before; answers take 30 ms.
    let canned = Canned::start(|asked| {
        if !asked.is_post() {
            return models();
        }
        std::thread::sleep(Duration::from_millis(30));
        stream()
    });
    let dir = Dir::new();
    let running = dir.start(&format!("quick -q --base-url {} --output-file run.json", canned.url()));
    canned.wait_for_posts(12);
    kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
    let said = running.end();
    let out = said.shows(130).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(out.contains("it was interrupted; tokload find-capacity --resume FILE goes on"), "{out}");
    let stored = json(&dir.path("run.json"));
    assert_eq!(stored["interrupted"], true);
    assert!(stored["levels"][0]["counts"]["ok"].as_u64().unwrap() >= 5, "{stored}");
    assert_eq!(dir.tokload("report run.json").numbers(), said.numbers());
}

#[test]
fn nobody_is_sent_to_a_run_that_lies_nowhere() {
    let canned = Canned::start(|asked| {
        if !asked.is_post() {
            return models();
        }
        std::thread::sleep(Duration::from_millis(10));
        stream()
    });
    for line in ["quick -q --no-save", "find-capacity -q --no-save --goodput ttft:500 --model m"] {
        let dir = Dir::new();
        let before = canned.posts();
        let running = dir.start(&format!("{line} --base-url {}", canned.url()));
        canned.wait_for_posts(before + 8);
        kill_process(Pid::from_child(&running.child), Signal::INT).unwrap();
        let said = running.end();
        let out = said.shows(130).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(out.contains("interrupted") || out.contains("broken off"), "{out}");
        assert!(!out.contains("--resume"), "{out}");
    }
}

#[test]
fn the_result_is_json_where_it_is_wanted_and_saved_nowhere_where_not() {
    let (dir, mock) = (Dir::new(), fast());
    let said = dir
        .tokload(&format!("quick -q --base-url {} --goodput ttft:0.01 --format json --no-save", url(&mock)));
    assert_eq!(said.code, 1, "{said:?}");
    let run: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(run["capacity"]["trials"][0]["stage"], "alone");
    let within_s = run["plan"]["search"]["within_s"].as_f64().unwrap();
    assert!((60.0..=75.1).contains(&within_s), "{within_s}");
    assert_eq!(dir.names(), Vec::<String>::new());
}

#[test]
fn what_cannot_be_done_is_refused_with_a_remedy() {
    let dir = Dir::new();
    let said = dir.tokload("quick --base-url http://127.0.0.1:9 --no-save");
    said.refuses(3, &["127.0.0.1:9", "is the server up"]);
    let mock = mock(Faults::default());
    let line = |more: &str| format!("quick --base-url {} --no-save {more}", url(&mock));
    dir.tokload(&line("--max-time 3")).refuses(2, &["--max-time", "15 s or more"]);
    dir.tokload(&line("--goodput speed:3")).refuses(2, &["--goodput"]);
    dir.tokload(&line("--goodput none -q")).refuses(2, &["--goodput", "limits to keep"]);
}
