//! Long runs: slices of time on every way through the program, and what a killed run leaves.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokload::mock::Faults;

use super::{Dir, Running, json, mock, run, url};

const SIMULATED: &str = "simulate --ttft 100 --ttft-jitter 20 --itl 10 --itl-jitter 5 --request-rate 20 --duration 90 \
                         --input-len 8 --output-len 4 --seed 7 --slice-duration 5";

fn simulated(more: &str) -> String {
    format!("{SIMULATED} {more}")
}

#[test]
fn slices_are_in_the_run_file_the_table_and_the_exports() {
    let dir = Dir::new();
    let said =
        dir.tokload(&simulated("--output-file run.json --export slices=slices.csv --export aiperf=aiperf"));
    let said = said.shows(0);
    assert!(said.contains("from ") && said.contains("85 s"), "{said}");
    let file = json(&dir.path("run.json"));
    let slices = &file["levels"][0]["slices"];
    assert_eq!((slices["asked_s"].as_f64(), slices["width_s"].as_f64()), (Some(5.0), Some(5.0)));
    let rows = slices["rows"].as_array().unwrap();
    assert_eq!(rows.iter().map(|row| row["ok"].as_u64().unwrap()).sum::<u64>(), whole(&file));
    // The window begins after 10 s; the drain is too short for a slice of its own, and counted to the last one.
    let steady: Vec<bool> = rows.iter().map(|row| row["steady"].as_bool().unwrap()).collect();
    assert_eq!(steady.iter().filter(|steady| **steady).count(), 16, "{steady:?}");
    assert!(!steady[1] && steady[2] && steady[17]);
    let width = |row: &Value| row["width_s"].as_f64().unwrap();
    let span = &file["levels"][0]["span"];
    let ran_s = (span["t2_ns"].as_u64().unwrap() - span["t0_ns"].as_u64().unwrap()) as f64 / 1e9;
    let (last, whole) = rows.split_last().unwrap();
    assert!(whole.iter().all(|row| width(row) == 5.0));
    assert!((width(last) - (ran_s - 85.0)).abs() < 1e-9 && width(last) > 5.0, "{last} of {ran_s}");
    let csv = std::fs::read_to_string(dir.path("slices.csv")).unwrap();
    let mut lines = csv.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("level,label,slice,start_s,width_s,steady,ok,failed,req_s,out_tok_s,ttft_n")
    );
    assert_eq!(lines.count(), rows.len());

    let slices = json(&dir.path("aiperf/profile_export_aiperf_timeslices.json"));
    let slices = slices["timeslices"].as_array().unwrap();
    assert_eq!(slices.len(), 18);
    assert_eq!(slices[3]["timeslice_index"], 3);
    assert!(slices[3]["time_to_first_token"]["p90"].as_f64().is_some_and(|ms| (100.0..=121.0).contains(&ms)));
    let csv = std::fs::read_to_string(dir.path("aiperf/profile_export_aiperf_timeslices.csv")).unwrap();
    assert!(csv.starts_with("Timeslice,Metric,Unit,Stat,Value\r\n0,"), "{csv}");

    // Again, as a page and in other forms.
    let page = dir.tokload("report run.json --format html");
    let page = page.shows(0);
    for words in ["Slices of time", "TTFT by slices", "ITL by slices", "E2E by slices", "Requests by slices"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert!(dir.tokload("report run.json --format markdown").shows(0).contains("| 85 s |"));
    assert_eq!(
        json_of(&dir.tokload("report run.json --format json").out)["levels"][0]["slices"],
        file["levels"][0]["slices"]
    );
    assert_eq!(
        dir.names(),
        ["aiperf", "run.chunks", "run.json", "run.records", "slices.csv"],
        "no checkpoint is left"
    );
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Requests of the level that ended well, ramp and drain included.
fn whole(file: &Value) -> u64 {
    let series = &file["levels"][0]["series"]["ok"];
    series.as_array().unwrap().iter().map(|ok| ok.as_u64().unwrap()).sum()
}

#[test]
fn shares_of_a_run_have_the_same_slices_together_as_one_process_has() {
    let dir = Dir::new();
    dir.tokload(&simulated("--output-file whole.json")).shows(0);
    for share in 1..=3 {
        dir.tokload(&simulated(&format!("--output-file part.json --share {share}/3"))).shows(0);
    }
    dir.tokload("merge part.share-1-of-3.json part.share-2-of-3.json part.share-3-of-3.json --output-file merged.json")
        .shows(0);
    let slices = |name: &str| json(&dir.path(name))["levels"][0]["slices"].clone();
    // The simulated server of each share answers its own requests alone, so that only counts are the same.
    let ok = |of: &Value| {
        let rows = of["rows"].as_array().unwrap().iter().map(|row| row["ok"].as_u64().unwrap());
        rows.collect::<Vec<u64>>()
    };
    let (whole, merged) = (slices("whole.json"), slices("merged.json"));
    assert_eq!(ok(&whole).iter().sum::<u64>(), ok(&merged).iter().sum::<u64>());
    assert_eq!(ok(&whole).len(), ok(&merged).len());
    assert!(merged["drift"].as_array().is_some_and(|drift| !drift.is_empty()));
}

#[test]
fn slices_that_nobody_asked_for_are_not_exported() {
    let dir = Dir::new();
    let short = "simulate -c 1 --num-prompts 2 -q --output-file run.json";
    dir.tokload(&format!("{short} --export slices=x.csv")).refuses(2, &["--export", "--slice-duration 10s"]);
    dir.tokload(short).shows(0);
    dir.tokload("report run.json --export csv=y.csv --export slices=x.csv")
        .refuses(2, &["--export slices", "--slice-duration 10s"]);
    assert_eq!(dir.names(), ["run.json", "run.records"]);
}

#[test]
fn slices_need_no_records_and_outlive_their_number() {
    let dir = Dir::new();
    let line = "simulate --ttft 10 --itl 1 -c 1 --duration 40 --output-len 2 --slice-duration 0.01 --no-records \
                --output-file run.json";
    let said = dir.tokload(line);
    let said = said.shows(0);
    assert!(said.contains("slices of 0.01 s were joined to 0.04 s"), "{said}");
    let file = json(&dir.path("run.json"));
    assert!(file["levels"][0]["records"].is_null());
    let slices = &file["levels"][0]["slices"];
    assert_eq!(slices["width_s"].as_f64(), Some(0.04));
    assert!(slices["rows"].as_array().unwrap().len() <= 1440);
    assert_eq!(dir.names(), ["run.json"]);
}

impl Running {
    fn kill(&self) {
        kill_process(Pid::from_child(&self.child), Signal::KILL).unwrap();
    }
}

/// A run against a mock that is killed so long after its first checkpoint.
fn killed(dir: &Dir, more: &str, after: Duration) -> u32 {
    let mock = mock(Faults::default());
    let line = format!("-c 4 --duration 300 --output-file run.json {more}");
    let running = dir.start(&run(&url(&mock), &line));
    while !dir.names().iter().any(|name| name.contains(".open.")) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(after);
    let process = running.child.id();
    running.kill();
    running.end();
    process
}

#[test]
fn a_killed_run_is_reported_from_what_it_left() {
    let dir = Dir::new();
    let process = killed(&dir, "--slice-duration 0.2 --label soak", Duration::from_millis(1200));
    let names = dir.names();
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(!dir.path("run.json").exists());
    let said = dir.tokload("report run.json");
    let said = said.shows(0);
    let flowing = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut = format!("the run was cut: process {process} ended");
    for words in ["soak", &cut, ". 4 users was cut short after ", " s of 300 s. ITL is of histograms"] {
        assert!(flowing.contains(words), "{words}: {said}");
    }
    assert!(!said.contains("interrupted:"), "it is said once: {said}");
    let file = json_of(&dir.tokload("report run.json --format json").out);
    let level = &file["levels"][0];
    assert_eq!(file["cut"]["process"], process);
    // A second of it was there at the first checkpoint, and another follows: at most the last one is missing.
    let until = file["cut"]["until_s"].as_f64().unwrap();
    assert!(until > 1.0, "{until}");
    let ok = level["counts"]["ok"].as_u64().unwrap();
    assert!(ok > 50, "{ok}");
    for metric in ["ttft", "tpot", "itl", "e2e"] {
        let n = level["distributions"][metric]["n"].as_u64().unwrap();
        assert!(n > 50, "{metric} {n}");
    }
    let gaps = level["distributions"]["itl"]["n"].as_u64().unwrap();
    // Four of each request; those of the last second are not known.
    assert!(gaps.is_multiple_of(4) && gaps <= 4 * ok && gaps as f64 > 4.0 * ok as f64 * 0.4, "{gaps} {ok}");
    assert!(level["slices"]["rows"].as_array().is_some_and(|rows| rows.len() >= 2), "{}", level["slices"]);
    assert_eq!(crate::run_file::against_the_schema(&file), Ok(()));
    // By the name of what is left, and with the requests one by one.
    let journal = names.iter().find(|name| name.contains("checkpoint")).unwrap();
    assert!(dir.tokload(&format!("report {journal}")).shows(0).contains("the run was cut"));
    dir.tokload("report run.json --export csv-records=requests.csv").shows(0);
    let rows = std::fs::read_to_string(dir.path("requests.csv")).unwrap().lines().count() as u64;
    assert!(rows > ok, "{rows} {ok}");
    assert!(dir.tokload("report run.json --goodput ttft:1000").shows(0).contains("goodput"));
}

#[test]
fn a_journal_that_broke_off_is_read_up_to_there() {
    let dir = Dir::new();
    killed(&dir, "", Duration::from_millis(100));
    let names = dir.names();
    let find = |part: &str| dir.path(names.iter().find(|name| name.contains(part)).unwrap());
    let (journal, open) = (find("checkpoint"), find("open"));
    let text = std::fs::read(&journal).unwrap();
    let first = text.iter().position(|byte| *byte == b'\n').unwrap();
    // The open slice of another time, half of it, none; and lines that broke off.
    for (keep, rest) in [(text.len() - 3, "{\"news\":99,"), (first + 20, ""), (first + 1, "[]")] {
        std::fs::write(&journal, &text[..keep]).unwrap();
        std::fs::write(&open, rest).unwrap();
        let said = dir.tokload("report run.json");
        assert!(said.code == 0 && said.out.contains("the run was cut"), "{said:?}");
    }
    std::fs::write(&journal, &text[..first - 5]).unwrap();
    dir.tokload("report run.json").refuses(2, &["broke off before it said what the run is"]);
    std::fs::remove_file(&journal).unwrap();
    dir.tokload("report run.json").refuses(2, &["run.json", "name the file that a run has saved"]);
}

#[test]
fn a_stress_test_looks_for_the_overload_and_times_the_recovery() {
    let dir = Dir::new();
    // 80 ms for each request, one at a time: 12.5 a second.
    let server =
        "--slots 1 --base-ms 80 --per-sequence-ms 0 --per-prefill-token-ms 0 --output-len 1 --input-len 8";
    let line = format!(
        "simulate {server} --stress --request-rate 5 --arrival-pattern constant --stress-before 10 --stress-hold 5 \
         --num-warmups 0 --seed 3 --goodput ttft:500 --output-file run.json"
    );
    let said = dir.tokload(&line);
    let said = said.out;
    for words in [
        "stress: as before ",
        "lost of ",
        "the overload was looked for: 12.21 req/s held",
        "hold",
        "over SLO",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let file = json(&dir.path("run.json"));
    let levels = file["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 6, "five steps and the level that is looked at");
    let stress = &levels[5]["stress"];
    assert!((stress["overload_s"].as_f64().unwrap() - 15.2587890625).abs() < 1e-9);
    assert!(stress["recovery"]["after_s"].as_f64().is_some_and(|s| s > 1.0), "{stress}");
    assert_eq!(stress["phases"].as_array().unwrap().len(), 4);
    assert!(levels[..5].iter().all(|level| level["stress"].is_null()));
    assert_eq!(crate::run_file::against_the_schema(&file), Ok(()));
    let page = dir.tokload("report run.json --format html").out;
    assert!(page.contains("Phases of the stress test") && page.contains("as before after"));
    // The plan that it prints is one that it takes.
    let dry = dir.tokload(&format!("{line} --slice-duration 5 --dry-run --force")).out;
    for words in [
        "looked for first: levels of 10 s at 6.2500, 7.8125, 9.7656, ... req/s",
        "the rate that fails",
        "slices of 5 s",
    ] {
        assert!(dry.contains(words), "{words}: {dry}");
    }
    let dry = dir.tokload(&format!("{line} --stress-to 20 --dry-run --force")).out;
    assert!(
        dry.contains("stress test: 5 req/s for 10 s, a ramp of 10 s, 20 req/s for 5 s, 5 req/s"),
        "{dry}"
    );
    let plan = dir.tokload(&format!("{line} --stress-to 20 --print-config --force")).out;
    assert!(plan.contains("[stress]") && plan.contains("to_rate = 20.0"), "{plan}");
    std::fs::write(dir.path("plan.toml"), &plan).unwrap();
    dir.tokload(&format!("simulate {server} --config plan.toml --output-file again.json"));
    let again = json(&dir.path("again.json"));
    assert_eq!(again["levels"].as_array().unwrap().len(), 1);
    assert_eq!(again["levels"][0]["stress"]["overload_s"], 20.0);
}

#[test]
fn a_thundering_herd_says_how_near_its_sends_were() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(&url(&mock), "--bursts 20@0.2 --num-prompts 60 --workers 2 --output-file run.json");
    let said = dir.tokload(&line);
    let said = said.shows(0);
    assert!(said.contains("3 bursts of up to 20 requests: the sends of one lie within"), "{said}");
    let file = json(&dir.path("run.json"));
    let herd = &file["levels"][0]["herd"];
    assert!(herd["connections"].as_u64().is_some_and(|n| n >= 18), "{herd}");
    assert_eq!(crate::run_file::against_the_schema(&file), Ok(()));
}

#[test]
fn an_overload_that_does_no_harm_is_no_recovery() {
    let dir = Dir::new();
    let line = "simulate --ttft 50 --itl 5 --output-len 2 --request-rate 5 --stress --stress-to 18 --stress-before 5 \
                --stress-hold 5 --stress-after 5 --seed 1 --no-save -q";
    let said = dir.tokload(line);
    assert!(said.out.contains("the overload was none: nothing failed"), "{}", said.out);
    assert!(!said.out.contains("no overload was found"), "it was given: {}", said.out);
}

#[test]
fn records_that_are_damaged_make_what_a_killed_run_left_invalid() {
    let dir = Dir::new();
    killed(&dir, "--slice-duration 0.2", Duration::from_millis(2500));
    let records = dir.names().into_iter().find(|name| name.contains(".records.")).unwrap();
    let file = std::fs::File::options().write(true).open(dir.path(&records)).unwrap();
    let whole = file.metadata().unwrap().len();
    for left in [whole / 10, 0] {
        file.set_len(left).unwrap();
        let said = dir.tokload("report run.json").out;
        assert!(said.contains("verdict: invalid"), "{left} of {whole} bytes: {said}");
        assert!(
            said.split_whitespace().collect::<Vec<_>>().join(" ").contains("Its records are damaged"),
            "{said}"
        );
        assert_eq!(dir.tokload("report run.json --strict").code, 4);
    }
}
