//! A share that was killed, merged with those that were saved: what is judged is the time in which all is known of all.

use std::fs;

use serde_json::{Value, json};
use tokload::metrics::{Phase, Record};
use tokload::run_file::Loaded;

use super::{Dir, json as read};

/// A server whose requests do not know of each other, so that shares are simulated one by one.
const FIXED: &str = "simulate --ttft 120 --itl 11 --random-output-len 4 -q";

impl Dir {
    /// Makes of `part.share-2-of-3.json` what is known of a process that was killed when `count` of its records had been
    /// written: neither counts nor a self-check, and the level as a whole.
    fn cut(&self, count: u64) {
        let path = self.path("part.share-2-of-3.json");
        let mut part = read(&path);
        part["interrupted"] = true.into();
        part["cut"] = json!({"process": 77, "running": false, "until_s": 1.0, "others": 0});
        let level = &mut part["levels"][0];
        level["interrupted"] = true.into();
        level["self_check"]["shards"] = json!([]);
        level["part"]["shards"] = json!([]);
        level["records"]["count"] = count.into();
        let span = level["span"].clone();
        level["window"] = json!({"start_ns": span["t0_ns"], "end_ns": span["t2_ns"], "whole_level": true});
        level["statistics"] = Value::Null;
        fs::write(&path, part.to_string()).unwrap();
    }

    /// The measured records of a run, in the order of their plan, moved to the beginning of the level.
    fn measured(&self, name: &str) -> Vec<Record> {
        let loaded = Loaded::open(&self.path(name)).unwrap();
        let level = &loaded.run.levels[0];
        let all = loaded.records().unwrap().range(level.records.unwrap().into()).unwrap();
        let all = all.map(|record| record.unwrap()).filter(|record| record.phase == Phase::Measured);
        let mut all: Vec<Record> = all.collect();
        all.sort_by_key(|record| record.index);
        all
    }
}

#[test]
fn a_share_that_was_cut_ends_the_window_where_it_stops_being_known() {
    let dir = Dir::new();
    let load = "--request-rate 30 --duration 60 --num-warmups 0";
    dir.tokload(&format!("{FIXED} {load} --output-file one.json")).shows(0);
    for index in 1..=3 {
        dir.tokload(&format!("{FIXED} {load} --share {index}/3 --output-file part.json")).shows(0);
    }
    dir.cut(400);
    let files = [1, 2, 3].map(|index| format!("part.share-{index}-of-3.json")).join(" ");
    let said = dir.tokload(&format!("merge {files} --output-file all.json"));
    assert!(said.shows(0).contains("share 2 was cut"), "{said:?}");
    let all = read(&dir.path("all.json"));
    let level = &all["levels"][0];
    let [start, end] = ["start_ns", "end_ns"].map(|key| level["window"][key].as_u64().unwrap());
    // The other windows begin after 10 s. With these answers requests end in the order of their plan: 400 of every third.
    let one = dir.measured("one.json");
    let of_two: Vec<&Record> = one.iter().filter(|record| record.index % 3 == 1).collect();
    let first = level["span"]["t0_ns"].as_u64().unwrap();
    assert_eq!(start - first, 10_000_000_000);
    assert_eq!(end - first, of_two[399].plan.as_nanos() - zero(&dir));
    // What one process had planned in that time, to a request.
    let in_window = |record: &&Record| {
        let at = record.plan.as_nanos() - zero(&dir);
        (start - first..end - first).contains(&at)
    };
    assert_eq!(level["counts"]["planned"].as_u64().unwrap(), one.iter().filter(in_window).count() as u64);
    let said = format!("{} {}", all["findings"], level["findings"]);
    assert!(!said.contains("little_mismatch") && !said.contains("realised_rate_off"), "{said}");
    let little = &level["statistics"]["little"];
    assert_eq!((&little["counted"], &little["verdict"]), (&Value::Null, &"holds".into()));
    let notes = all["merged"]["notes"].to_string();
    assert!(
        notes.contains("its process 77 ended before it could save") && notes.contains("no counts"),
        "{notes}"
    );
    assert_eq!(crate::run_file::against_the_schema(&all), Ok(()));
    // Judged anew from its file it is the same.
    let again: Value = serde_json::from_str(&dir.tokload("report all.json --format json").out).unwrap();
    assert_eq!(again["levels"][0]["counts"], level["counts"]);
}

/// The first planned send of the run of one process.
fn zero(dir: &Dir) -> u64 {
    read(&dir.path("one.json"))["levels"][0]["span"]["t0_ns"].as_u64().unwrap()
}

#[test]
fn a_share_that_was_cut_before_the_window_counts_from_the_beginning() {
    let dir = Dir::new();
    let load = "-c 6 --duration 60 --num-warmups 0 --start-spread 0";
    for index in 1..=3 {
        dir.tokload(&format!("{FIXED} {load} --share {index}/3 --output-file part.json")).shows(0);
    }
    // Two users of it, each of whom has had two answers of 153 ms.
    dir.cut(4);
    let files = [1, 2, 3].map(|index| format!("part.share-{index}-of-3.json")).join(" ");
    dir.tokload(&format!("merge {files} --output-file all.json")).shows(0);
    let all = read(&dir.path("all.json"));
    let level = &all["levels"][0];
    let [start, end] = ["start_ns", "end_ns"].map(|key| level["window"][key].as_u64().unwrap());
    assert_eq!(start, level["span"]["t0_ns"].as_u64().unwrap());
    // The server rounds its times to nanoseconds.
    assert!((306_000_000..306_000_010).contains(&(end - start)), "{}", end - start);
    assert_eq!(level["counts"]["planned"], 12);
}
