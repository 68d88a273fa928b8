//! Levels that are run several times: what is run, what is stored, what is shown.

use std::collections::HashSet;

use serde_json::Value;

use super::{Dir, json};

#[test]
fn every_load_is_run_in_each_round_and_summed_up() {
    let dir = Dir::new();
    let line = "simulate -c 2,4 --num-runs 5 --num-prompts 24 --seed 3 --output-file run.json \
                --random-output-len uniform:min=20,max=60";
    let said = dir.tokload(line);
    let table = said.shows(0);
    assert!(table.contains("2 users #1") && table.contains("4 users #5"), "{table}");
    assert!(table.contains("2 users, 5 runs") && table.contains("4 users, 5 runs"), "{table}");
    assert!(!said.numbers().contains("too few to rest a claim"), "{table}");

    let run = json(&dir.path("run.json"));
    let levels = run["levels"].as_array().unwrap();
    let places: Vec<_> = levels
        .iter()
        .map(|level| (level["label"].as_str().unwrap(), level["repeat"].as_u64().unwrap_or(0)))
        .collect();
    let expected: Vec<_> = (0..5)
        .flat_map(|round| [2, 4].map(|users| (format!("{users} users #{}", round + 1), round)))
        .collect();
    assert_eq!(places, expected.iter().map(|(label, round)| (label.as_str(), *round)).collect::<Vec<_>>());
    // Other answers are asked for in each round, so that no two have the same rate.
    let rates: HashSet<String> =
        levels.iter().map(|level| level["rates"]["window"]["req_s"].to_string()).collect();
    assert_eq!(rates.len(), 10);
    for (place, repeats) in run["repeats"].as_array().unwrap().iter().enumerate() {
        assert_eq!(
            (&repeats["level"], &repeats["n"], &repeats["enough"]),
            (&place.into(), &5.into(), &true.into())
        );
        let figure = &repeats["figures"]["req_s"];
        let of_levels: Vec<Value> = levels
            .iter()
            .skip(place)
            .step_by(2)
            .map(|level| level["rates"]["window"]["req_s"].clone())
            .collect();
        assert_eq!(figure["values"], Value::Array(of_levels));
        assert!(figure["reach"].as_f64().unwrap() > 0.0);
    }
}

/// A stored plan gives the same rounds again.
#[test]
fn a_run_of_several_rounds_is_repeated_by_its_plan() {
    let dir = Dir::new();
    let options = "--request-rate 20 --num-runs 3 --num-prompts 30 --seed 8";
    let numbers = |line: &str, name: &str| {
        dir.tokload(line).shows(0);
        json(&dir.path(name))["levels"].clone()
    };
    let first = numbers(&format!("simulate {options} --output-file a.json"), "a.json");
    let plan = dir.tokload(&format!("simulate {options} --print-config")).out;
    std::fs::write(dir.path("plan.toml"), plan).unwrap();
    let again = numbers("simulate --config plan.toml --seed 8 --output-file b.json", "b.json");
    assert_eq!(first, again);
    let shown = dir.tokload(&format!("simulate {options} --dry-run")).out;
    assert!(shown.contains("runs = 3") && shown.contains("# 3 rounds over all levels"), "{shown}");
    let few = dir.tokload("report a.json").numbers();
    assert!(few.contains("3 runs are too few to rest a claim on, take --num-runs 5"), "{few}");
}

#[test]
fn a_level_goes_on_until_its_figure_is_known_and_says_so() {
    let dir = Dir::new();
    let options = "--request-rate 8 --num-prompts 64 --noise 0.3 --seed 5";
    let said = dir.tokload(&format!("simulate {options} --until-ci e2e_p50:4% --output-file run.json"));
    let text = said.numbers();
    let run = json(&dir.path("run.json"));
    let lengthened = &run["levels"][0]["lengthened"];
    let times = lengthened["times"].as_u64().unwrap();
    assert!(times > 1, "{lengthened}");
    assert_eq!(run["levels"][0]["counts"]["planned"], 64 * times);
    assert_eq!(run["plan"]["until"]["figure"], "e2e_p50");
    assert_eq!(lengthened["value"], run["levels"][0]["distributions"]["e2e"]["quantiles"]["p50"]);
    assert!(
        text.contains("e2e_p50") && text.contains(&format!("within ±4 % after {times} times its planned")),
        "{text}"
    );
    assert!(said.err.contains("the level goes on to 2 times its planned length"), "{said:?}");
    assert_eq!(dir.tokload("report run.json").numbers(), text);
    let few =
        dir.tokload(&format!("simulate {options} --until-ci 0.1% --until-ci-max 2 --output-file few.json"));
    assert!(few.numbers().contains("! poisson 8/s: attainment"), "{few:?}");
    assert!(few.numbers().contains("not within ±0.1 % after 2 times its planned length"), "{few:?}");
}

#[test]
fn a_figure_cannot_be_waited_for_without_a_load() {
    Dir::new().tokload("simulate --until-ci 5%").refuses(
        2,
        &["--until-ci: all requests are sent at once, as where no load is given", "--max-concurrency"],
    );
}
