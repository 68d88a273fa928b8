//! `check` and `compare` from outside: what they print, refuse, and end with.

use std::fs;

use serde_json::Value;

use super::{Dir, json};

/// Saved runs of a simulated server: `base`, `same` with other requests, and `slow` whose prompts take twice as long.
fn runs(options: &str) -> Dir {
    let dir = Dir::new();
    for (name, seed, prefill) in [("base", 1, "0.25"), ("same", 2, "0.25"), ("slow", 3, "0.6")] {
        let said = dir.tokload(&format!(
            "simulate -c 2,4 --num-prompts 200 --seed {seed} --base-ms 8 --per-sequence-ms 0.5 --per-prefill-token-ms {prefill} \
             --noise 0.1 --random-output-len 8 --output-file {name}.json {options}"
        ));
        assert_eq!(said.code, 0, "{said:?}");
    }
    dir
}

#[test]
fn a_regression_ends_with_1_and_equal_runs_with_0() {
    let dir = runs("");
    let said = dir.tokload("check slow.json --baseline base.json");
    assert_eq!((said.code, said.err.as_str()), (1, ""), "{said:?}");
    assert!(said.out.contains("\nregression: ttft_p50 at 2 users"), "{}", said.out);
    let said = dir.tokload("check same.json -b base.json --max-degradation failed=off");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert!(!said.out.contains("regression"), "{}", said.out);
    // The same run is never worse than itself, and what cannot be told is said.
    let said = dir.tokload("check base.json --baseline base.json --strict");
    assert_eq!(said.code, 1, "{said:?}");
    assert_eq!(said.out.matches("base.json is simulated").count(), 1, "once is enough: {}", said.out);
    assert!(said.out.contains("\ninconclusive: "), "{}", said.out);
    assert!(said.out.contains(" would decide"), "{}", said.out);
    assert_eq!(said.err, "tokload: inconclusive (--strict)\n");
    let said = dir.tokload("check base.json --baseline base.json");
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn every_format_has_the_same_outcome() {
    let dir = runs("");
    let line = "check slow.json --baseline base.json --baseline same.json";
    let said = dir.tokload(&format!("{line} --format json"));
    assert_eq!(said.code, 1);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&report["schema"], &report["outcome"]), (&"tokload.check".into(), &"regression".into()));
    assert_eq!(report["baselines"].as_array().unwrap().len(), 2);
    let said = dir.tokload(&format!("{line} --format github"));
    assert!(
        said.code == 1 && said.out.starts_with("::error title=tokload check%3A regression::2 users: "),
        "{said:?}"
    );
    let said = dir.tokload(&format!("{line} --format junit"));
    assert!(said.code == 1 && said.out.contains("<failure message=\"ttft_p50 "), "{said:?}");
    dir.tokload(&format!("{line} --format xml")).refuses(2, &["--format: 'xml'", "junit"]);
}

#[test]
fn limits_and_confidence_are_options() {
    let dir = runs("");
    // Slower by less than half as much again: within such a limit.
    let line = "check slow.json --baseline base.json --max-degradation none --max-ttft-degradation-pct";
    let said = dir.tokload(&format!("{line} 300"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("\npass: none of 2 figures"), "{}", said.out);
    assert_eq!(dir.tokload(&format!("{line} 1 --confidence-level 99.9")).code, 1);
    dir.tokload(&format!("{line} x")).refuses(2, &["--max-ttft-degradation-pct: 'x'", "as in 10"]);
    dir.tokload("check slow.json --baseline base.json --max-degradation tpott_p50=3%")
        .refuses(2, &["'tpott_p50' is no figure", "did you mean tpot_p50?"]);
    dir.tokload("check slow.json").refuses(2, &["--baseline: is missing"]);
    dir.tokload("check --baseline base.json").refuses(2, &["candidate"]);
}

#[test]
fn what_differs_is_said_and_fails_only_with_strict() {
    let dir = runs("");
    let said = dir.tokload(
        "simulate -c 2,16 --num-prompts 100 --seed 9 --base-ms 8 --random-output-len 4 --output-file other.json",
    );
    assert_eq!(said.code, 0);
    let line =
        "check other.json --baseline base.json --max-degradation none --max-degradation attainment=50%";
    let said = dir.tokload(line);
    assert_eq!(said.code, 0, "{said:?}");
    for part in [
        "! 4 users: only one side has this load",
        "! 16 users: only one side has this load",
        "another plan: workload.output_tokens 8 -> 4",
    ] {
        let flowing = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flowing.contains(part), "no {part:?} in {flowing}");
    }
    assert_eq!(dir.tokload(&format!("{line} --strict")).code, 1);
    let said = dir.tokload("simulate -c 64 --num-prompts 100 --output-file alone.json");
    assert_eq!(said.code, 0);
    dir.tokload("check alone.json --baseline base.json")
        .refuses(2, &["no load of the candidate is one of the baseline", "64 users"]);
}

#[test]
fn runs_without_records_say_so() {
    let dir = runs("--no-records");
    assert_eq!(dir.names(), ["base.json", "same.json", "slow.json"]);
    let said = dir
        .tokload("check slow.json --baseline base.json --max-degradation none --max-degradation ttft_p50=5%");
    assert_eq!(said.code, 0, "{said:?}");
    let flowing = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flowing.contains("the records of slow.json are not there"), "{flowing}");
    assert!(flowing.contains("ttft_p50: without records nobody knows how far it may be off"), "{flowing}");
    let said = dir.tokload("compare base.json slow.json");
    assert_eq!(said.code, 0, "{said:?}");
}

#[test]
fn compare_shows_runs_beside_each_other_under_any_of_its_names() {
    let dir = runs("");
    let said = dir.tokload("compare base.json same.json slow.json");
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    for part in
        ["A  base.json", "B  same.json", "C  slow.json", "\n2 users\n", "\n4 users\n", "no difference shown"]
    {
        assert!(said.out.contains(part), "no {part:?} in {}", said.out);
    }
    for name in ["compare-models", "--compare"] {
        assert_eq!(dir.tokload(&format!("{name} base.json same.json slow.json")).out, said.out);
    }
    let json = dir.tokload("compare base.json slow.json --format json --goodput ttft:1");
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["schema"], "tokload.compare");
    let attainment = &json["loads"][0]["figures"][8];
    assert_eq!((&attainment["figure"], &attainment["runs"][0]["value"]), (&"attainment".into(), &0.0.into()));
    dir.tokload("compare base.json").refuses(2, &["takes two runs or more"]);
    dir.tokload("compare").refuses(2, &["takes two runs or more"]);
}

#[test]
fn wrong_files_are_named_with_what_is_wrong() {
    let dir = runs("");
    let text = fs::read_to_string(dir.path("base.json")).unwrap();
    let records = fs::read(dir.path("base.records")).unwrap();
    fs::write(dir.path("foreign.json"), "{\"schema\":\"other\",\"version\":1}").unwrap();
    fs::write(dir.path("cut.json"), &text[..text.len() / 2]).unwrap();
    fs::write(dir.path("newer.json"), text.replacen("\"version\": 1", "\"version\": 9", 1)).unwrap();
    fs::write(dir.path("half.json"), text.replace("base.records", "half.records")).unwrap();
    fs::write(dir.path("half.records"), &records[..records.len() / 2]).unwrap();
    for (name, part) in [
        ("gone.json", "cannot read gone.json"),
        ("gone.json", "; name the file that a run has saved"),
        ("foreign.json", "is not a tokload run file"),
        ("cut.json", "it is JSON that breaks off in line"),
        ("base.records", "of a run with .records and .chunks beside it name the .json"),
        ("newer.json", "use a newer tokload"),
        ("half.json", "it was cut off"),
        ("/dev/zero", "is not a regular file"),
    ] {
        for line in [
            format!("check {name} --baseline same.json"),
            format!("check same.json --baseline {name}"),
            format!("compare same.json {name}"),
        ] {
            dir.tokload(&line).refuses(2, &[part]);
        }
    }
    assert_eq!(json(&dir.path("base.json"))["version"], 1);
}
