//! `find-capacity` and `simulate --find-capacity` from outside.

use serde_json::Value;
use tokload::mock::{Mock, Settings};
use tokload::model::{self, Fixed, Serving};

use super::{Dir, json};

const FOUR: &str =
    "simulate --find-capacity --ttft 0 --itl 10 --ttft-per-in-flight 80 --goodput ttft:360 --seed 1";

#[test]
fn the_answer_stands_first_with_its_limit_and_its_cause() {
    let dir = Dir::new();
    let said = dir.tokload(&format!("{FOUR} --output-file run.json"));
    let shown = said.shows(0);
    let one_line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = "capacity: 4 requests at once with 90 % of the requests good (99 %): at 5 TTFT p90 is 400.0 ms, over \
                 its 360 ms requests queue: median TTFT goes from 320.1 to 400.0 ms, while TPOT goes from 10.00 to 10.00 \
                 ms";
    assert!(one_line.contains(first), "{shown}");
    let run = json(&dir.path("run.json"));
    let answer = &run["capacity"]["answer"];
    assert_eq!((&answer["low"], &answer["high"]), (&4.0.into(), &5.0.into()));
    assert_eq!(answer["ending"], "found");
    assert_eq!(run["capacity"]["binding"]["limit"]["name"], "ttft");
    assert_eq!(run["plan"]["search"]["vary"], "concurrency");
    assert_eq!(run["levels"].as_array().unwrap().len(), run["capacity"]["trials"].as_array().unwrap().len());
    // The saved run shows the same.
    assert!(dir.tokload("report run.json").shows(0).contains("capacity: 4 requests at once"));
}

#[test]
fn no_load_that_holds_is_a_gate_that_failed() {
    let dir = Dir::new();
    let line = "simulate --find-capacity --ttft 500 --itl 10 --goodput ttft:360 --no-save";
    let said = dir.tokload(line);
    let shown = said.shows(1);
    assert!(shown.contains("capacity: none, not even 1 request at once"), "{shown}");
}

#[test]
fn a_search_says_what_it_does_not_go_with() {
    let dir = Dir::new();
    for (line, part) in [
        ("simulate --find-capacity -c 4", "--max-concurrency: is what the search varies (concurrency)"),
        ("simulate --find-capacity --request-rate 4", "give --vary rate"),
        (
            "simulate --find-capacity --vary rate --request-rate 4",
            "--request-rate: is what the search varies",
        ),
        ("simulate --find-capacity --vary prompts", "'prompts' cannot be varied"),
        ("simulate --find-capacity --vary speedup", "give --trace FILE"),
        ("simulate --find-capacity --target 100%", "1 is no share to keep"),
        ("simulate --find-capacity --target much", "'much' is not a share"),
        ("simulate --find-capacity --max 0.5", "--max: 0.5 is no load of a search for concurrency"),
        ("simulate --find-capacity --start 8 --max 4", "4 is no highest load"),
        ("simulate --find-capacity --start 0", "--start: 0 is no load"),
        ("simulate --find-capacity --start 1.5", "--start: 1.5 is no load"),
        ("simulate --find-capacity --tolerance 0", "--tolerance: 0 is no share"),
        ("simulate --find-capacity --goodput none", "a search needs limits to keep"),
        ("simulate --find-capacity --num-runs 3", "--num-runs"),
        ("simulate --find-capacity --until-ci 5%", "--until-ci"),
        ("simulate --find-capacity --share 1/2", "depends on the answers of all"),
        ("simulate --find-capacity --request-cancellation-rate 100", "--request-cancellation-rate"),
        ("simulate --find-capacity --read-rate 500", "--read-rate"),
        ("simulate --find-capacity --resume x.json", "a simulation is quick"),
        ("simulate --target 80%", "give --find-capacity as well"),
        ("find-capacity --resume nothing.json", "nothing.json"),
        ("find-capacity", "--base-url: no server is named"),
    ] {
        let said = dir.tokload(line);
        assert_eq!(said.code, 2, "{line}: {said:?}");
        assert!(said.err.contains(part), "{line}: {}", said.err);
    }
}

/// On a real server, broken off behind its first load and gone on with: as if it had not been.
#[test]
fn a_search_on_the_mock_is_gone_on_with_from_its_file() {
    let fixed = Fixed { ttft_ms: 0.0, ttft_per_in_flight_ms: 5.0, itl_ms: 0.1, ..Fixed::default() };
    let serving = model::Settings::serving(Serving::Fixed(fixed));
    let mock = Mock::start(Settings { serving, ..Settings::default() }).unwrap();
    let dir = Dir::new();
    // Loads that nothing can disturb: hardly any time, or none at all.
    let line = format!(
        "find-capacity --base-url http://{} --max 2 --goodput e2e:30000 --num-prompts 44 --random-output-len 2 \
         --workers 1 --output-file first.json --max-time 0.001",
        mock.address()
    );
    let said = dir.tokload(&line);
    let shown = said.shows(0);
    assert!(shown.contains("the search was broken off"), "{shown}");
    let first = json(&dir.path("first.json"));
    let loads = |run: &Value| -> Vec<f64> {
        let trials = run["capacity"]["trials"].as_array().unwrap();
        trials.iter().map(|trial| trial["load"].as_f64().unwrap()).collect()
    };
    assert_eq!(loads(&first), [1.0]);
    assert_eq!(first["capacity"]["answer"]["ending"], "broken_off");

    let said = dir.tokload("find-capacity --resume first.json --max-time 60 --output-file second.json");
    let shown = said.shows(0);
    assert!(shown.contains("capacity: at least 2 requests at once"), "{shown}");
    let second = json(&dir.path("second.json"));
    assert_eq!(loads(&second), [1.0, 2.0, 2.0]);
    assert_eq!(
        (second["capacity"]["earlier"].as_u64(), second["levels"].as_array().unwrap().len()),
        (Some(1), 2)
    );
    // The levels go on counting, so that no prompt comes again.
    let ordinals: Vec<_> =
        second["levels"].as_array().unwrap().iter().map(|level| &level["ordinal"]).collect();
    assert_eq!(ordinals, [1, 2]);
    let over = dir.tokload("find-capacity --resume second.json");
    assert!(over.err.contains("the search of that run is over"), "{over:?}");
    let other = dir.tokload("find-capacity --resume first.json --config x.toml");
    assert!(other.err.contains("leave out --config"), "{other:?}");
}
