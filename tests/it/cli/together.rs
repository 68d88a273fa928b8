//! Processes that a launcher has started: whose share is whose, how they begin together, and who merges.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tokload::metrics::Phase;
use tokload::mock::Faults;
use tokload::run_file::{Loaded, WallTime};
use tokload::sys::clock::RunClock;

use crate::run_file::against_the_schema;

use super::{Dir, Running, Said, json, mock, run, url};

const LOAD: &str = "--request-rate 100 --num-prompts 40 --seed 3 --workers 1 --no-cpu-affinity";

/// Variables as `srun` gives them to task `rank` of `size`.
fn slurm(rank: u32, size: u32) -> impl FnOnce(&mut Command) {
    let set = format!("SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID={rank} SLURM_NTASKS={size}");
    with(set)
}

fn with(variables: String) -> impl FnOnce(&mut Command) {
    move |command| {
        for (name, value) in variables.split_whitespace().filter_map(|pair| pair.split_once('=')) {
            command.env(name, value);
        }
    }
}

impl Dir {
    fn ranks(&self, line: &str, size: u32) -> Vec<Running> {
        (0..size).map(|rank| self.start_with(line, slurm(rank, size))).collect()
    }
}

fn ends(all: Vec<Running>) -> Vec<Said> {
    all.into_iter().map(Running::end).collect()
}

/// Index and planned time of each request, from the level's beginning on, ns.
fn planned(path: &Path) -> Vec<(u64, u64)> {
    let loaded = Loaded::open(path).unwrap();
    let level = &loaded.run.levels[0];
    let records = loaded.records().unwrap();
    let records = records.range(level.records.unwrap().into()).unwrap().map(|record| record.unwrap());
    let measured = records.filter(|record| record.phase == Phase::Measured);
    let mut all: Vec<(u64, u64)> =
        measured.map(|record| (record.index, record.plan.as_nanos() - level.span.t0_ns)).collect();
    all.sort_unstable();
    all
}

#[test]
fn processes_of_a_launcher_make_one_run_and_the_last_of_them_its_result() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let said = ends(dir.ranks(&run(&url(&mock), &format!("{LOAD} --output-file all.json")), 3));
    assert!(said.iter().all(|said| said.code == 0), "{said:?}");
    // One of them, whoever was last, has shown the whole; the others a line each.
    let shown: Vec<&Said> = said.iter().filter(|said| !said.out.is_empty()).collect();
    assert_eq!(shown.len(), 1, "{said:?}");
    assert!(shown[0].shows(0).contains("merged of 3 shares"), "{shown:?}");
    let line = |index: u32| format!("share {index} of 3: ");
    for (index, said) in (2..).zip(&said[1..]) {
        let own = format!("saved all.share-{index}-of-3.json");
        assert!(said.err.starts_with(&line(index)) && said.err.trim_end().ends_with(&own), "{said:?}");
        assert_eq!(said.err.lines().count(), 1, "{said:?}");
    }
    assert!(said[0].err.contains("this is share 1 of 3 by SLURM_PROCID of SLURM_NTASKS"), "{said:?}");
    assert!(said[0].err.contains("their clocks are within"), "{said:?}");
    assert!(!dir.names().iter().any(|name| name.contains("gathering")), "{:?}", dir.names());

    dir.tokload(&run(&url(&mock), &format!("{LOAD} --output-file one.json"))).shows(0);
    let [all, one] = ["all.json", "one.json"].map(|name| json(&dir.path(name)));
    assert_eq!(planned(&dir.path("all.json")), planned(&dir.path("one.json")));
    assert_eq!(all["levels"][0]["bodies"], one["levels"][0]["bodies"]);
    assert_eq!(all["levels"][0]["counts"]["ok"], 40);
    assert_eq!(against_the_schema(&all), Ok(()));
    let shares = all["levels"][0]["shares"].as_array().unwrap();
    // They begin at one time of one clock; the machine of a test may be late all the same.
    assert!(shares.iter().all(|share| share["began_s"].as_f64().unwrap() < 0.1), "{shares:?}");
    let clock = &all["merged"]["shares"][1]["environment"]["clock_offset"];
    let [offset, bound] = ["offset_ns", "bound_ns"].map(|key| clock[key].as_i64().unwrap());
    assert!(offset.abs() <= bound + 1_000_000, "{clock}");
    assert_eq!(all["environment"].get("clock_offset"), None);
    // The same, had the clock of share 2 been 2.5 s behind: by that of share 1 all began together, which is said.
    let path = dir.path("all.share-2-of-3.json");
    let mut second = json(&path);
    let created = WallTime::parse(second["created"].as_str().unwrap()).unwrap().unix_nanos();
    second["created"] = WallTime::from_unix_nanos(created - 2_500_000_000).to_string().into();
    second["environment"]["clock_offset"] =
        serde_json::json!({"offset_ns": 2_500_000_000_i64, "bound_ns": 3_000_000});
    fs::write(&path, second.to_string()).unwrap();
    let files = [1, 2, 3].map(|index| format!("all.share-{index}-of-3.json")).join(" ");
    dir.tokload(&format!("merge {files} --output-file behind.json")).shows(0);
    let behind = json(&dir.path("behind.json"));
    let findings = behind["findings"].to_string();
    assert!(
        findings.contains("the clock of share 2 on") && findings.contains("2.500 s behind"),
        "{findings}"
    );
    assert!(findings.contains("clocks_apart") && !findings.contains("shares_apart"), "{findings}");
    assert!(!all["findings"].to_string().contains("clocks_apart"));
    assert_eq!(behind["levels"][0]["rates"], all["levels"][0]["rates"]);
    // Of the same job again: the result is there.
    let again =
        dir.start_with(&run(&url(&mock), &format!("{LOAD} --output-file all.json")), slurm(1, 3)).end();
    again.refuses(2, &["all.json is there already", "--force"]);
}

#[test]
fn a_job_names_its_result_and_draws_one_seed_for_all() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(&url(&mock), "-c 4 --num-prompts 12 --workers 1 --no-cpu-affinity");
    let said = ends(dir.ranks(&line, 2));
    assert!(said.iter().all(|said| said.code == 0), "{said:?}");
    let run = json(&dir.path("tokload-slurm-7-0.json"));
    assert_eq!(run["levels"][0]["counts"]["ok"], 12);
    assert!(run["plan"]["seed"].as_u64().unwrap() > 1);
}

/// The clocks of all agree on the machine of a test, so that all start at the time that was given.
#[test]
fn a_start_that_was_given_is_kept_with_and_without_others() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let base = url(&mock);
    let clock = RunClock::start();
    let at = clock.epoch_wall_ns() / 1_000_000_000 + 3;
    let options = format!("{LOAD} --start-at {at}.25");
    let line = |index: u32| run(&base, &format!("{options} --share {index}/2 --output-file part.json"));
    let alone = [1, 2].map(|index| dir.start(&line(index)));
    let said = ends(Vec::from(alone));
    assert!(said.iter().all(|said| said.code == 0 && said.out.contains("share")), "{said:?}");
    for index in [1, 2] {
        let run = Loaded::open(&dir.path(&format!("part.share-{index}-of-2.json"))).unwrap().run;
        let created = WallTime::parse(&run.created).unwrap().unix_nanos();
        let start = created + run.levels[0].span.t0_ns;
        assert!(start.abs_diff(at * 1_000_000_000 + 250_000_000) < 20_000_000, "{start} {at}");
    }
    let late = run(&base, &format!("{LOAD} --start-at 2026-01-01T00:00:00Z --output-file late.json"));
    dir.tokload(&late).refuses(2, &["--start-at", "before all was ready", "+10s"]);
    let whole = run(&base, &format!("{LOAD} --start-at together"));
    dir.tokload(&whole).refuses(2, &["--start-at", "no share of one"]);
    dir.tokload(&run(&base, "--start-at noon")).refuses(2, &["--start-at", "'noon'", "+10s"]);
    assert!(dir.names().iter().all(|name| !name.starts_with("late")), "{:?}", dir.names());
}

#[test]
fn shares_by_hand_meet_where_that_is_asked_for() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let base = url(&mock);
    let line = |index: u32| {
        run(&base, &format!("{LOAD} --start-at together --share {index}/2 --output-file all.json"))
    };
    let said = ends(vec![dir.start(&line(1)), dir.start(&line(2))]);
    assert!(said.iter().all(|said| said.code == 0), "{said:?}");
    assert_eq!(json(&dir.path("all.json"))["levels"][0]["counts"]["ok"], 40);
    // One whose other does not come gives up, and says where it has looked.
    let lonely = run(
        &base,
        &format!("{LOAD} --start-at together --share 2/2 --share-timeout 0.1 --output-file b.json"),
    );
    let said = dir.tokload(&lonely);
    said.refuses(3, &["nothing was heard of share 1", "b.gathering", "same folder"]);
    assert!(!dir.path("b.share-2-of-2.json").exists() && !dir.path("b.gathering").exists());
    // The only share of a run needs no seed that others have, and nobody to meet.
    assert_eq!(dir.tokload(&run(&base, "--share 1/1 --dry-run")).code, 0);
}

/// Whether the process of share `index` waits for the others of `all.json`.
fn waits(dir: &Dir, index: u32) {
    let sign = dir.path(&format!("all.gathering/run.share-{index}.json"));
    let began = RunClock::start();
    while !fs::read_to_string(&sign).is_ok_and(|text| text.contains("\"plan\":\"")) {
        assert!(began.now().as_secs_f64() < 30.0, "share {index} does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_share_that_is_started_twice_is_refused_and_one_that_was_killed_may_come_again() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = |index: u32| {
        run(&url(&mock), &format!("{LOAD} --start-at together --share {index}/2 --output-file all.json"))
    };
    let mut second = dir.start(&line(2));
    waits(&dir, 2);
    let process = format!("process {} on ", second.child.id());
    dir.tokload(&line(2))
        .refuses(2, &["share 2 of 2 is made by another process as well", &process, "start each share once"]);
    second.child.kill().unwrap();
    second.child.wait().unwrap();
    let said = ends(vec![dir.start(&line(2)), dir.start(&line(1))]);
    assert!(said.iter().all(|said| said.code == 0), "{said:?}");
    assert_eq!(json(&dir.path("all.json"))["levels"][0]["counts"]["ok"], 40);
    assert!(!dir.path("all.gathering").exists());
}

#[test]
fn shares_of_different_plans_are_refused_before_anything_is_sent() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = |index: u32, load: &str| {
        let line = format!("{load} --start-at together --share {index}/2 --output-file all.json");
        dir.start(&run(&url(&mock), &line))
    };
    for (option, other, parts) in [
        ("--request-rate 100", "--request-rate 90", ["arrivals", "100.0 in share 1 and 90.0 in share 2"]),
        ("--seed 3", "--seed 4", ["plan.seed", "3 in share 1 and 4 in share 2"]),
    ] {
        let said = ends(vec![line(1, LOAD), line(2, &LOAD.replace(option, other))]);
        for said in &said {
            said.refuses(2, &["share 2 (process ", "is not of the run of share 1", "the same options"]);
            said.refuses(2, &parts);
        }
        assert_eq!(dir.names(), [""; 0]);
    }
    // Each process of both starts has asked once whether the server answers.
    assert_eq!(mock.truth(false).completed(), 4);
}

#[test]
fn nothing_is_left_of_a_share_that_gave_up_before_it_began() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let nowhere = format!("{LOAD} --start-at together --share 1/2 --output-file all.json");
    assert_eq!(dir.tokload(&run("http://127.0.0.1:9", &nowhere)).code, 3);
    assert_eq!(dir.names(), [""; 0]);
    let waiting = dir.start(&run(&url(&mock), &nowhere));
    waits(&dir, 1);
    waiting.interrupt();
    let said = waiting.end();
    assert!(said.code == 130 && said.err.contains("while it waited for the other shares"), "{said:?}");
    assert_eq!(dir.names(), [""; 0]);
}

/// A share that waits for the server has its place in the folder, and gives it up; one that waits for a start that all have
/// agreed on as well, with the others.
#[test]
fn ctrl_c_leaves_nothing_of_shares_that_have_measured_nothing() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let more = "--start-at together --share 1/2 --ready-check-timeout-sec 3000 --output-file all.json";
    let waiting = dir.start(&run("http://127.0.0.1:9", &format!("{LOAD} {more}")));
    let sign = dir.path("all.gathering/run.share-1.json");
    let began = RunClock::start();
    while !sign.exists() {
        assert!(began.now().as_secs_f64() < 30.0, "share 1 does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
    waiting.interrupt();
    let said = waiting.end();
    assert!(said.code == 130 && said.err.contains("while it waited for the server"), "{said:?}");
    assert_eq!((said.out.as_str(), dir.names()), ("", vec![]));

    let all = dir.ranks(&run(&url(&mock), &format!("{LOAD} --start-at +7200 --output-file all.json")), 2);
    all[0].wait_for("(UTC), in ");
    all.iter().for_each(Running::interrupt);
    for said in ends(all) {
        assert!(said.code == 130 && said.err.contains("nothing was measured"), "{said:?}");
    }
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn a_share_that_is_killed_is_named_with_its_last_sign_of_life() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(
        &url(&mock),
        "--request-rate 90 --duration 2s --seed 3 --workers 1 --no-cpu-affinity --output-file all.json",
    );
    let mut all = dir.ranks(&line, 3);
    let sign = dir.path("all.gathering/slurm-7-0.share-2.json");
    let began = RunClock::start();
    let measures = || fs::read_to_string(&sign).is_ok_and(|text| text.contains("\"ready\":0"));
    while !measures() && began.now().as_secs_f64() < 30.0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(1100));
    let mut second = all.remove(1);
    second.child.kill().unwrap();
    second.child.wait().unwrap();
    let said = ends(all);
    assert!(said.iter().all(|said| said.code == 0 && said.out.is_empty()), "{said:?}");
    assert!(!dir.path("all.json").exists());
    let files = "all.share-1-of-3.json all.share-3-of-3.json";
    let refused = dir.tokload(&format!("merge {files} --output-file all.json"));
    refused.refuses(
        2,
        &[
            "1 of 3 shares are missing (2)",
            "what such a process has left is merged as well, by the name all.share-2-of-3.json",
            "share 2 (process ",
            "last wrote at 20",
            "in level 1",
        ],
    );
    // With what it has left: up to where all is known of it, so that no law is broken and no rate is off.
    let with_it = "all.share-1-of-3.json all.share-2-of-3.json all.share-3-of-3.json";
    dir.tokload(&format!("merge {with_it} --output-file with.json")).shows(0);
    let run = json(&dir.path("with.json"));
    let level = &run["levels"][0];
    let [start, end] = ["start_ns", "end_ns"].map(|key| level["window"][key].as_u64().unwrap());
    assert!((100_000_000..1_500_000_000).contains(&(end - start)), "{start} {end}");
    assert_eq!((&level["window"]["whole_level"], &level["label"]), (&false.into(), &"poisson 90/s".into()));
    let said = format!("{} {}", run["findings"], level["findings"]);
    assert!(!said.contains("little_mismatch") && !said.contains("realised_rate_off"), "{said}");
    let notes = run["merged"]["notes"].to_string();
    assert!(
        notes.contains("share 2 was cut: its process ") && notes.contains("the window is from 0.000"),
        "{notes}"
    );
    assert_eq!(against_the_schema(&run), Ok(()));
    dir.tokload(&format!("merge {files} --allow-missing --output-file all.json")).shows(0);
    let run = json(&dir.path("all.json"));
    assert!(!run["levels"][0]["findings"].to_string().contains("realised_rate_off"));
    assert_eq!(run["levels"][0]["label"], "poisson 90/s, 2 of 3 shares: 60/s");
    let notes = run["merged"]["notes"].to_string();
    assert!(notes.contains("share 2 (process ") && notes.contains("last wrote at"), "{notes}");
    assert!(notes.contains("left of all.share-2-of-3.json is not in it"), "{notes}");
    assert!(run["findings"].to_string().contains("shares_missing"));
}

#[test]
fn what_launchers_say_wrong_and_what_they_cannot_share_is_refused_before_anything_is_sent() {
    let dir = Dir::new();
    // Nobody listens there: whatever was sent would end otherwise.
    let line = "run --base-url http://127.0.0.1:9 -c 4 --seed 1 --output-file all.json";
    let refuses = |line: &str, variables: &str, parts: &[&str]| {
        dir.start_with(line, with(variables.to_owned())).end().refuses(2, parts);
    };
    refuses(line, "OMPI_COMM_WORLD_RANK=4 OMPI_COMM_WORLD_SIZE=4", &["--share", "OMPI_COMM_WORLD_RANK is 4"]);
    refuses(line, "PMIX_RANK=1", &["--share", "PMIX_SIZE is not set", "unset the variable"]);
    refuses(line, "OMPI_COMM_WORLD_SIZE=4", &["--share", "OMPI_COMM_WORLD_RANK is not set"]);
    refuses(line, "JOB_COMPLETION_INDEX=1", &["--share", "TOKLOAD_COMPLETIONS"]);
    let task = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=8";
    refuses(line, task, &["--max-concurrency", "4 users", "share 2 of 8 by SLURM_PROCID", "--share none"]);
    refuses(
        "find-capacity --base-url http://127.0.0.1:9 --goodput ttft:500",
        task,
        &["process 2 of 8", "srun -n 1"],
    );
    refuses("quick --base-url http://127.0.0.1:9", task, &["process 2 of 8", "tokload quick"]);
    let run = "run --base-url http://127.0.0.1:9 -c 8";
    refuses(&format!("{run} --no-save"), task, &["--no-save", "--share none"]);
    refuses(&format!("{run} --export csv=a.csv"), task, &["--export", "tokload report"]);
    let pod = "JOB_COMPLETION_INDEX=1 TOKLOAD_COMPLETIONS=8";
    refuses(&format!("{run} --seed 1"), pod, &["--output-file", "all hosts share"]);
    refuses(&format!("{run} --output-file a.json"), pod, &["--share", "--seed 1"]);
    refuses(&format!("{run} --until-ci 5%"), task, &["--share", "--duration", "SLURM_PROCID"]);
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn a_shell_of_a_job_and_a_word_against_it_make_the_whole_run() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(&url(&mock), "-c 2 --num-prompts 4");
    let shell = "SLURM_JOB_ID=7 SLURM_NTASKS=4 SLURM_PROCID=0";
    let task = "SLURM_JOB_ID=7 SLURM_STEP_ID=0 SLURM_PROCID=1 SLURM_NTASKS=4";
    for (name, more, variables) in [("shell", "", shell), ("none", "--share none", task)] {
        let line = format!("{line} {more} --output-file {name}.json");
        dir.start_with(&line, with(variables.to_owned())).end().shows(0);
        let run: Value = json(&dir.path(&format!("{name}.json")));
        assert_eq!(run["levels"][0]["counts"]["ok"], 4);
    }
}
