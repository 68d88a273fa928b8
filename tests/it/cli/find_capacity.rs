//! `find-capacity` and `simulate --find-capacity` from outside.

use serde_json::Value;
use tokload::mock::{Mock, Settings};
use tokload::model::{self, Fixed, Serving};

use super::{Dir, json};
use crate::run_file::against_the_schema;

const FOUR: &str =
    "simulate --find-capacity --ttft 0 --itl 10 --ttft-per-in-flight 80 --goodput ttft:360 --seed 1";

#[test]
fn the_answer_stands_first_with_its_limit_and_its_cause() {
    let dir = Dir::new();
    let said = dir.tokload(&format!("{FOUR} --output-file run.json"));
    let shown = said.shows(0);
    let one_line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = "capacity: 4 requests at once with 90 % of the requests good (99 % sure): at 5 TTFT p90 is 400.0 ms, over \
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
    assert_eq!(against_the_schema(&run), Ok(()));
    // The saved run shows the same.
    assert!(dir.tokload("report run.json").shows(0).contains("capacity: 4 requests at once"));
}

fn one_line(shown: &str) -> String {
    shown.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// One user of a server whose prefill takes 0.05 ms a token after 10.5 ms.
#[test]
fn the_longest_prompts_are_named_with_their_load_and_prefill_as_the_cause() {
    let dir = Dir::new();
    let line = "simulate --find-capacity --vary input-len --goodput ttft:160.52 --tolerance 5% --random-output-len 2 --start 1024 --num-prompts 44 \
                --seed 1 --output-file run.json";
    let shown = one_line(dir.tokload(line).shows(0));
    let first = "capacity: prompts of 2944 to 3071 tokens at a load of 1 user with 90 % of the requests good (99 % sure): at \
                 3072 TTFT p90 is 164.1 ms, over its 160.52 ms prefill takes that long: median TTFT goes from";
    assert!(shown.contains(first), "{shown}");
    let run = json(&dir.path("run.json"));
    assert_eq!(run["plan"]["search"]["vary"], "input-len");
    assert_eq!(against_the_schema(&run), Ok(()));
    assert_eq!(run["capacity"]["binding"]["cause"], "prefill");
    let sizes: Vec<_> =
        run["levels"].as_array().unwrap().iter().map(|level| &level["setting"]["sizes"]).collect();
    assert_eq!((&sizes[0]["input_words"], &sizes[3]["input_words"]), (&1024.into(), &3072.into()));
    assert!(shown.contains("prompt tokens: asked 1024 to 4096, reported"), "{shown}");
    // Each level is held to its own length: nothing is off.
    for level in run["levels"].as_array().unwrap() {
        let (known, tokens) = (&level["tokens"]["prompt_known"], &level["tokens"]["prompt"]);
        let per_request = tokens.as_f64().unwrap() / known.as_f64().unwrap();
        assert_eq!(per_request, level["setting"]["sizes"]["input_words"].as_f64().unwrap());
        assert!(!level["findings"].to_string().contains("prompt_tokens_off"), "{}", level["findings"]);
    }
    assert!(one_line(dir.tokload("report run.json").shows(0)).contains(first));
    let answers = "simulate --find-capacity --vary output-len --goodput e2e:1000 --request-rate 0.5 --no-save \
                   --start 64 --num-prompts 44 --tolerance 30%";
    let shown = one_line(dir.tokload(answers).shows(0));
    assert!(shown.contains("capacity: answers of "), "{shown}");
    assert!(shown.contains("tokens at a load of 0.5 req/s with 90 %"), "{shown}");
    assert!(shown.contains("longer answers take longer: median E2E goes from"), "{shown}");
}

/// Judged again by its records: TTFT is 80 ms for each request in flight, and 1, 2, 4, 5, 6 and 8 were tried.
#[test]
fn a_saved_search_is_asked_at_other_limits() {
    let dir = Dir::new();
    dir.tokload(&format!("{FOUR} --output-file run.json")).shows(0);
    let at = |limits: &str| one_line(dir.tokload(&format!("report run.json --goodput {limits}")).shows(0));
    let same = at("ttft:360");
    assert!(
        same.contains("capacity: 4 requests at once with 90 % of the requests good (99 % sure): at 5"),
        "{same}"
    );
    let tighter = at("ttft:250");
    let first = "capacity: 2 to 3 requests at once with 90 % of the requests good (95 % sure): at 4 TTFT p90 is 320.0 ms, over \
                 its 250 ms";
    assert!(tighter.contains(first), "{tighter}");
    assert!(
        tighter.contains("does not tell between 2 and 4, where no load is decided: --start 2 --max 4"),
        "{tighter}"
    );
    // 5, 6 and 8 were stopped early: by their first requests nobody knows that they hold.
    let wider = at("ttft:900");
    assert!(wider.contains("capacity: at least 4 requests at once"), "{wider}");
    assert!(wider.contains("does not tell above 4 (up to 8 was tried): --start 4"), "{wider}");
    assert!(wider.contains("5, 6, 8: not decided at these limits"), "{wider}");
    let none = at("ttft:79");
    assert!(none.contains("capacity: none, not even 1 request at once leaves"), "{none}");
    assert!(!at("none").contains("capacity:"));
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
        (
            "simulate --find-capacity --vary input-len --random-input-len 9",
            "--random-input-len: is what the search varies (input-len)",
        ),
        ("simulate --find-capacity --vary input-len -c 1,2", "a length is searched for at one load"),
        ("simulate --find-capacity --vary input-len --request-rate inf", "at a load that stays the same"),
        ("simulate --find-capacity --vary output-len --osl-stddev 3", "lengths that differ"),
        (
            "simulate --find-capacity --vary input-len --multi-turn --multi-turn-num-turns 3",
            "lengths of their own",
        ),
        ("simulate --find-capacity --vary input-len --max 20000000", "is no highest load"),
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
    // What was seen of its loads says nothing of another question.
    for (option, what) in [
        ("--goodput e2e:1", "the limits"),
        ("--random-output-len 3", "what is sent"),
        ("--random-input-len 999", "what is sent"),
        ("--base-url http://127.0.0.1:9", "the server"),
        ("--backend openai", "the server"),
        ("--target 50%", "what is varied"),
    ] {
        let other = dir.tokload(&format!("find-capacity --resume first.json {option}"));
        assert_eq!(other.code, 2, "{option}: {other:?}");
        assert!(other.err.contains("--resume") && other.err.contains(what), "{option}: {other:?}");
    }
}

#[test]
fn levels_of_a_search_over_lengths_are_told_apart_everywhere() {
    let dir = Dir::new();
    let line = "simulate --find-capacity --vary output-len --goodput e2e:600 --output-file lengths.json";
    dir.tokload(line).shows(0);
    let run = json(&dir.path("lengths.json"));
    let labels: Vec<&str> =
        run["levels"].as_array().unwrap().iter().map(|level| level["label"].as_str().unwrap()).collect();
    assert_eq!(labels[..2], ["1 user, answers of 16", "1 user, answers of 32"]);
    // Each level has a folder of its own, also the one that was confirmed.
    let said = dir.tokload("report lengths.json --export aiperf=out");
    assert_eq!(said.code, 0, "{said:?}");
    let folders = std::fs::read_dir(dir.path("out")).unwrap().count();
    assert_eq!(folders, labels.len());
    // Runs over lengths are compared length by length.
    let said = dir.tokload("compare lengths.json lengths.json");
    assert!(
        said.out.contains("1 user, answers of 16\n") && said.out.contains("1 user, answers of 32\n"),
        "{said:?}"
    );
    // What is read is not written over.
    let said = dir.tokload("report lengths.json --export csv=lengths.json --force");
    said.refuses(2, &["--export", "is a run that is read"]);
}

/// A context of 500 tokens: prompts of 512 are refused, whatever the limits. Broken off and gone on with on the way.
#[test]
fn a_context_that_is_full_ends_the_search_for_the_longest_prompts() {
    let fixed = Fixed { ttft_ms: 0.1, itl_ms: 0.1, ..Fixed::default() };
    let serving = model::Settings::serving(Serving::Fixed(fixed));
    let mock = Mock::start(Settings { serving, max_model_len: 500, ..Settings::default() }).unwrap();
    let dir = Dir::new();
    let line = format!(
        "find-capacity --vary input-len --base-url http://{} --goodput ttft:30000 --num-prompts 44 -c 2 --tolerance 50% \
         --random-output-len 2 --workers 1 --output-file first.json --max-time 0.001",
        mock.address()
    );
    let shown = one_line(dir.tokload(&line).shows(0));
    assert!(shown.contains("the search was broken off"), "{shown}");
    let said = dir.tokload("find-capacity --resume first.json --max-time 60 --output-file second.json");
    let shown = one_line(said.shows(0));
    let first = "capacity: prompts of 384 to 511 tokens at a load of 2 users with 90 % of the requests good (99 % sure): at \
                 512 the server refuses requests as too long for its context (context limit)";
    assert!(shown.contains(first), "{shown}");
    let second = json(&dir.path("second.json"));
    let loads: Vec<_> =
        second["capacity"]["trials"].as_array().unwrap().iter().map(|trial| &trial["load"]).collect();
    assert_eq!(loads, [128.0, 256.0, 512.0, 384.0, 384.0]);
    assert_eq!(second["capacity"]["binding"]["cause"], "context_limit");
    assert_eq!(second["capacity"]["trials"][2]["too_long"], true);
}

#[test]
fn a_modelled_server_has_a_context_where_it_is_said() {
    let dir = Dir::new();
    let line =
        "simulate --find-capacity --vary input-len --max-model-len 500 --random-output-len 4 --no-save";
    let said = dir.tokload(line);
    let shown = said.shows(0).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains("refuses requests as too long for its context (context limit)"), "{shown}");
    dir.tokload("simulate --max-model-len 0").refuses(2, &["--max-model-len", "give 1 or more"]);
    dir.tokload("run --max-model-len 500").refuses(2, &["--max-model-len", "is the server's limit"]);
}
