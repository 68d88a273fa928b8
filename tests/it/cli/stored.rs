//! What a run shows and what it stores are the same, and a plan that was printed is the plan that runs.

use serde_json::Value;
use tokload::mock::Faults;

use super::canned::{Canned, error, models, stream};
use super::{Dir, json, json_lines, mock, run, url};

#[test]
fn report_shows_the_numbers_of_the_run() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let said = dir.tokload(&run(&url(&mock), "-c 1,3 --num-prompts 12 --output-file run.json"));
    said.shows(0);
    assert_eq!(dir.names(), ["run.json", "run.records"]);
    let again = dir.tokload("report run.json");
    assert_eq!((again.code, again.numbers()), (0, said.numbers()));
    assert_eq!(again.err, "");
}

#[test]
fn report_judges_by_another_limit_as_the_run_would_have() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(&url(&mock), "-c 2 --num-prompts 12 --output-file run.json --goodput ttft:5000 e2e:9000");
    dir.tokload(&line).shows(0);
    let all = json(&dir.path("run.json"))["levels"][0]["goodput"].clone();
    assert_eq!(all["good"], 12, "{all}");
    let judged = |limits: &str| -> Value {
        let said = dir.tokload(&format!("report run.json --format json --goodput {limits}"));
        assert_eq!(said.code, 0, "{said:?}");
        serde_json::from_str::<Value>(&said.out).unwrap()["levels"][0]["goodput"].clone()
    };
    assert_eq!(judged("ttft:5000 e2e:9000"), all);
    // No answer comes within 1 ms of a server that waits 5.
    assert_eq!(judged("ttft:1")["good"], 0);
    // Everything but the judgement is as it was.
    let said = dir.tokload("report run.json --goodput ttft:1");
    assert!(said.shows(0).contains("TTFT <= 1 ms"), "{}", said.out);
    dir.tokload("report run.json --goodput nonsense:1").refuses(2, &["--goodput", "ttft"]);
}

#[test]
fn report_explains_a_measured_run_by_its_numbers() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let said = dir.tokload(&run(&url(&mock), "-c 1,4 --num-prompts 12 --output-file run.json"));
    said.shows(0);
    let explained = dir.tokload("report run.json --explain");
    let text = explained.shows(0);
    let (table, words) = text.split_once("\nwhy the curve bends\n").unwrap();
    assert_eq!(table.split_whitespace().collect::<Vec<_>>().join(" "), said.numbers());
    // What only a modelled server knows is not said.
    assert!(
        words.contains("\nLittle's law:") && words.contains("1 to 4 users") && !words.contains("slots"),
        "{words}"
    );
    let sentence = "tokload: --explain: is text for a terminal, which has no place beside another format or --output; leave out one \
         of the two\n";
    let json = dir.tokload("report run.json --explain --format json");
    assert_eq!((json.code, json.out.as_str(), json.err.as_str()), (2, "", sentence));
}

#[test]
fn report_explains_a_simulated_run_as_the_simulation_did() {
    let dir = Dir::new();
    let said = dir.tokload("simulate -c 1,16,64 --duration 60 --explain --slots 8 --output-file run.json");
    assert!(said.out.contains("\n  tokload report run.json --explain\n"), "{}", said.out);
    let words = |out: &str| out.split_once("\nwhy the curve bends\n").unwrap().1.to_owned();
    let again = dir.tokload("report run.json --explain");
    assert_eq!((again.code, words(&again.out)), (0, words(&said.out)));
    assert!(words(&again.out).contains("The server has 8 slots"), "{}", again.out);
}

#[test]
fn a_run_in_which_nothing_ended_well_says_that_there_is_nothing_to_explain() {
    let dir = Dir::new();
    let said =
        dir.tokload("simulate -c 1 --num-prompts 2 --cold-start 100 --num-warmups 0 --output-file run.json");
    assert_eq!(said.code, 1, "{said:?}");
    let again = dir.tokload("report run.json --explain");
    assert_eq!(again.code, 0, "{again:?}");
    assert!(again.out.ends_with("\nthere is nothing to explain: no request ended well\n"), "{}", again.out);
}

#[test]
fn what_is_no_file_is_not_read_for_ever() {
    let dir = Dir::new();
    for line in ["report /dev/zero", "simulate --fit /dev/zero"] {
        dir.tokload(line).refuses(2, &["/dev/zero is not a regular file"]);
    }
    let mut line: Vec<_> = "simulate -c 1 --num-prompts 2 --output-file".split(' ').collect();
    line.push("");
    let said = dir.start_with("", |command| _ = command.args(&line)).end();
    said.refuses(2, &["--output-file '' names no file: give one, as in run.json"]);
    assert!(dir.names().is_empty());
}

#[test]
fn json_on_standard_output_is_the_saved_run_without_its_bulk() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let said = dir.tokload(&run(&url(&mock), "-c 1 --num-prompts 4 --output-file run.json --format json"));
    assert_eq!(said.code, 0, "{said:?}");
    let shown: Value = serde_json::from_str(&said.out).unwrap();
    let mut saved = json(&dir.path("run.json"));
    for level in saved["levels"].as_array_mut().unwrap() {
        level["series"] = Value::Null;
        for distribution in level["distributions"].as_object_mut().unwrap().values_mut() {
            assert!(distribution["histogram"].is_string());
            distribution["histogram"] = Value::Null;
        }
    }
    assert_eq!(shown, saved);
    assert_eq!(shown["levels"][0]["counts"]["ok"], 4);
    let again = dir.tokload("report run.json --format json");
    assert_eq!(serde_json::from_str::<Value>(&again.out).unwrap(), shown);
}

#[test]
fn the_default_name_is_the_time_and_no_save_leaves_nothing() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    dir.tokload(&run(&url(&mock), "-c 1 --num-prompts 2 --no-save")).shows(0);
    assert!(dir.names().is_empty());
    let said = dir.tokload(&run(&url(&mock), "-c 1 --num-prompts 2"));
    let names = dir.names();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].starts_with("tokload-2") && names[0].ends_with("Z.json"), "{names:?}");
    assert_eq!(names[1], names[0].replace(".json", ".records"));
    assert!(said.out.contains(&names[0]), "{said:?}");
}

#[test]
fn records_are_exported_with_as_many_times_as_events() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = "-c 2 --num-prompts 10 --output-file run.json --save-detailed --save-chunks";
    dir.tokload(&run(&url(&mock), line)).shows(0);
    assert_eq!(dir.names(), ["run.chunks", "run.json", "run.jsonl", "run.records"]);
    let lines = json_lines(&dir.path("run.jsonl"));
    let of = |phase: &str| lines.iter().filter(|line| line["phase"] == phase).count();
    assert_eq!((of("warmup"), of("measured")), (1, 10));
    for line in &lines {
        let times: Vec<f64> =
            line["event_ms"].as_array().unwrap().iter().map(|time| time.as_f64().unwrap()).collect();
        assert_eq!(line["events"], times.len());
        assert_eq!(line["output_tokens"], 5);
        assert_eq!(line["output_source"], "usage");
        assert!(times.is_sorted(), "{times:?}");
        assert_eq!(line["first_ms"], times[0]);
        assert_eq!(line["last_ms"], *times.last().unwrap());
        let number = |key: &str| line[key].as_f64().unwrap();
        assert!((number("e2e_ms") - (number("last_ms") - number("start_ms"))).abs() < 1e-6, "{line}");
    }
    let mut indices: Vec<u64> = lines
        .iter()
        .filter(|line| line["phase"] == "measured")
        .map(|line| line["index"].as_u64().unwrap())
        .collect();
    indices.sort_unstable();
    assert_eq!(indices, (0..10).collect::<Vec<u64>>());
}

#[test]
fn without_records_the_run_says_what_is_lost() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let said = dir.tokload(&run(&url(&mock), "-c 1 --num-prompts 4 --no-records --output-file run.json"));
    assert!(said.shows(0).contains("no records were kept"), "{said:?}");
    assert_eq!(dir.names(), ["run.json"]);
    dir.tokload("report run.json --goodput ttft:1").refuses(2, &["record"]);
}

#[test]
fn a_printed_plan_is_the_plan_that_runs() {
    let canned = Canned::start(|asked| if asked.is_post() { stream() } else { models() });
    let dir = Dir::new();
    let options =
        "--request-rate 50,80 --num-prompts 9 --seed 11 --model m --temperature 0.5 --goodput ttft:70";
    let printed = dir.tokload(&run(&canned.url(), &format!("{options} --print-config")));
    assert_eq!((printed.code, printed.err.as_str()), (0, ""), "{printed:?}");
    std::fs::write(dir.path("plan.toml"), &printed.out).unwrap();
    let again = dir.tokload("run --config plan.toml --print-config");
    assert_eq!((again.code, &again.out), (0, &printed.out));

    let direct = dir.tokload(&run(&canned.url(), &format!("{options} --dry-run")));
    let by_file = dir.tokload("run --config plan.toml --dry-run");
    assert_eq!((direct.code, &direct.out), (0, &by_file.out));
    assert!(direct.out.contains("# request 0 at "), "{}", direct.out);
    assert_eq!(canned.posts(), 0, "a dry run sends nothing");

    dir.tokload("run --config plan.toml --output-file run.json").shows(0);
    let stored = json(&dir.path("run.json"));
    assert_eq!(stored["plan"]["seed"], 11);
    let counts: Vec<&Value> =
        stored["levels"].as_array().unwrap().iter().map(|level| &level["counts"]["ok"]).collect();
    assert_eq!(counts, [9, 9]);

    std::fs::write(dir.path("bad.toml"), printed.out.replace("seed", "sead")).unwrap();
    dir.tokload("run --config bad.toml").refuses(2, &["bad.toml", "sead", "seed"]);
}

#[test]
fn an_optional_field_that_is_refused_is_dropped_with_a_line() {
    let strict = Faults { refused_fields: vec!["ignore_eos".to_owned()], ..Faults::default() };
    let (dir, mock) = (Dir::new(), mock(strict));
    let said = dir.tokload(&run(&url(&mock), "-c 1 --num-prompts 4 --output-file run.json"));
    said.shows(0);
    let lines: Vec<&str> = said.err.lines().collect();
    assert_eq!(lines[0], "the server refuses ignore_eos: requests go without it");
    let rule = |line: &&str| line.split(':').next().unwrap_or_default().to_owned();
    assert_eq!(lines[1..].iter().map(rule).collect::<Vec<_>>(), ["few_requests", "output_length_not_fixed"]);
    let stored = json(&dir.path("run.json"));
    assert_eq!(stored["plan"]["workload"]["options"]["dropped"], serde_json::json!(["ignore_eos"]));
    assert_eq!(stored["levels"][0]["counts"]["ok"], 4);
}

#[test]
fn a_field_that_is_not_optional_is_not_dropped() {
    let canned = Canned::start(|asked| match asked.is_post() {
        true if asked.body.contains("temperature") => error(400, "temperature is not supported"),
        true => stream(),
        false => models(),
    });
    let said = Dir::new().tokload(&run(&canned.url(), "--temperature 0.3"));
    said.refuses(2, &["HTTP 400", "temperature is not supported"]);
}

#[test]
fn help_and_version_go_to_standard_output() {
    let dir = Dir::new();
    for line in
        ["--help", "run --help", "quick --help", "report --help", "mock-server --help", "--version", ""]
    {
        let said = dir.tokload(line);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{line}: {said:?}");
        assert!(said.out.contains("tokload"), "{line}");
    }
}
