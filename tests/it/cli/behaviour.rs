//! Users who go away or read slowly, several models, placeholders: what is shown, stored and sent.

use std::sync::{Arc, Mutex};

use tokload::mock::{Ending, Faults, Mock, Settings};
use tokload::model;

use super::canned::{Canned, models, stream};
use super::{Dir, json, json_lines, mock, run, url};

#[test]
fn who_went_away_is_told_and_neither_ok_nor_failed() {
    let mock = mock(Faults::default());
    let dir = Dir::new();
    let options = "--random-output-len 40 -c 4 --num-prompts 40 --seed 5 --request-cancellation-rate 50 \
                   --request-cancellation-tokens 3 --save-detailed --output-file run.json";
    let said = dir.tokload(&run(&url(&mock), options).replacen("--random-output-len 5 ", "", 1));
    said.shows(0);
    let counts = json(&dir.path("run.json"))["levels"][0]["counts"].clone();
    let cancelled = counts["cancelled"].as_u64().unwrap();
    assert!(cancelled > 5 && counts["failed"] == 0, "{counts}");
    assert_eq!(counts["ok"].as_u64().unwrap() + cancelled, 40);
    assert_eq!(
        (&counts["cancelled_after_first"], &counts["cancelled_tokens"]),
        (&cancelled.into(), &(3 * cancelled).into())
    );
    let told = format!(
        "4 users: {cancelled} of 40 requests were cancelled, {cancelled} of them after the first token, with {} tokens \
         received for nothing",
        3 * cancelled
    );
    assert!(said.numbers().contains(&told), "{}", said.out);
    let lines = json_lines(&dir.path("run.jsonl"));
    assert_eq!(lines.iter().filter(|line| line["outcome"] == "cancelled").count() as u64, cancelled);
    assert_eq!(mock.stop().unwrap().ended(Ending::ClientLeft), cancelled);
    // The stored run says the same.
    let again = dir.tokload("report run.json");
    assert!(again.numbers().contains(&told), "{}", again.out);
}

#[test]
fn a_simulation_gives_up_and_reads_slowly_the_same_each_time() {
    let dir = Dir::new();
    let line = "simulate -c 4 --num-prompts 60 --seed 3 --request-cancellation-rate 20 --request-cancellation-delay 0.2 \
                --read-rate 1000 --slow-reader-share 0.3 --output-file";
    let said = dir.tokload(&format!("{line} a.json"));
    said.shows(0);
    assert!(said.out.contains("slow readers"), "{}", said.out);
    dir.tokload(&format!("{line} b.json")).shows(0);
    let levels = |name: &str| json(&dir.path(name))["levels"].clone();
    assert_eq!(levels("a.json"), levels("b.json"));
    let level = levels("a.json")[0].clone();
    assert!(level["counts"]["cancelled"].as_u64() > Some(3), "{}", level["counts"]);
    let [group] = level["groups"].as_array().unwrap().as_slice() else { panic!("{}", level["groups"]) };
    assert_eq!((&group["by"], group.get("place")), (&"slow_readers".into(), None));
    assert_eq!(group["counts"]["ok"], level["counts"]["slow_ok"]);
    assert_eq!(group["distributions"]["e2e"]["n"], group["counts"]["ok"]);
    let ordinary = level["counts"]["ok"].as_u64().unwrap() - group["counts"]["ok"].as_u64().unwrap();
    assert_eq!(level["distributions"]["e2e"]["n"], ordinary);
    // Judged anew from the records it is the same.
    let json_of = |line: &str| serde_json::from_str::<serde_json::Value>(&dir.tokload(line).out).unwrap();
    let again = json_of("report a.json --goodput ttft:500 tpot:50 --format json");
    assert_eq!(again["levels"][0]["groups"][0]["counts"], group["counts"]);
    assert!(again["levels"][0]["groups"][0]["distributions"]["e2e"]["histogram"].is_null());
}

#[test]
fn several_models_are_told_apart() {
    let serving = model::Settings::fixed(5.0, 1.0);
    let adapters = vec!["a/b:c".to_owned()];
    let mock =
        Mock::start(Settings { model: "m".to_owned(), adapters, serving, ..Settings::default() }).unwrap();
    let dir = Dir::new();
    let options = "-m m -m a/b:c --model-weights 3,1 -c 4 --num-prompts 40 --output-file run.json";
    let said = dir.tokload(&run(&url(&mock), options));
    let table = said.shows(0);
    let row = |name: &str| {
        let row = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{table}"));
        row.split_whitespace().nth(1).unwrap().to_owned()
    };
    assert_eq!((row("m "), row("a/b:c ")), ("30".to_owned(), "10".to_owned()));
    let groups = json(&dir.path("run.json"))["levels"][0]["groups"].clone();
    assert_eq!((&groups[1]["by"], &groups[1]["place"]), (&"model".into(), &1.into()));
    assert_eq!(groups[1]["goodput"]["good"], 10);
    // One of them that there is not fails, and only its requests do.
    let said = dir.tokload(&run(&url(&mock), "-m m -m none -c 2 --num-prompts 10"));
    let failed = said.out.lines().find(|line| line.starts_with("none ")).unwrap();
    assert_eq!(failed.split_whitespace().nth(2), Some("5"), "{}", said.out);
}

#[test]
fn placeholders_are_filled_in_headers_and_bodies() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let canned = Canned::start(move |request| {
        if request.is_post() {
            seen.lock().unwrap().push((request.head.clone(), request.body.clone()));
            stream()
        } else {
            models()
        }
    });
    let dir = Dir::new();
    let line = run(
        &canned.url(),
        "--num-warmups 0 --request-id-prefix run-7- -H X-Tier={{choice:gold,free}} --seed 4 \
         --extra-body {\"tier\":\"{{choice:gold,free}}\",\"n_of\":\"{{index}}\",\"user\":\"u-{{index}}\"} -c 2 --num-prompts 20",
    )
    .replacen("--num-warmups 1 ", "", 1);
    dir.tokload(&line).shows(0);
    let asked = asked.lock().unwrap();
    let value = |head: &str, name: &str| {
        let line = head.lines().find(|line| line.to_ascii_lowercase().starts_with(name)).unwrap().to_owned();
        line.split_once(": ").unwrap().1.to_owned()
    };
    let mut ids: Vec<String> = Vec::new();
    let mut tiers = Vec::new();
    // The first is the probe's.
    for (head, body) in &asked[1..] {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        let index = body["n_of"].as_u64().unwrap();
        assert_eq!(body["user"], format!("u-{index}"));
        assert_eq!(value(head, "x-request-id"), format!("run-7-{index}"));
        assert_eq!(value(head, "x-tier"), body["tier"].as_str().unwrap());
        ids.push(format!("{index}"));
        tiers.push(value(head, "x-tier"));
    }
    ids.sort_by_key(|id| id.parse::<u64>().unwrap());
    assert_eq!(ids, (0..20).map(|index| index.to_string()).collect::<Vec<_>>());
    assert!(tiers.iter().any(|tier| tier == "gold") && tiers.iter().any(|tier| tier == "free"));
}

#[test]
fn a_dry_run_says_who_will_do_what() {
    let dir = Dir::new();
    let said = dir.tokload(
        "run --base-url h:1 -m a -m b --request-cancellation-rate 100 --request-cancellation-delay 0.5 \
         --request-cancellation-tokens 4 --read-rate 900 --seed 1 --dry-run",
    );
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.out.contains("[workload.aborts]") && said.out.contains("[workload.slow_readers]"),
        "{}",
        said.out
    );
    let first = said.out.lines().find(|line| line.starts_with("# request 0 ")).unwrap();
    assert!(
        first.contains("to a, read at 900 bytes/s, given up 0.5 s after it is sent or with token 4"),
        "{first}"
    );
    let second = said.out.lines().find(|line| line.starts_with("# request 1 ")).unwrap();
    assert!(second.contains("to b,"), "{second}");
}
