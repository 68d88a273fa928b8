//! The crate as a library: the same numbers as the commands', errors as values, nothing printed or left behind.

use std::process::Command;
use std::time::Duration;

use tokload::metrics::Metric;
use tokload::mock::{self, Mock};
use tokload::model::{self, Settings};
use tokload::plan::{Axis, Load, Plan, Search, Slo};
use tokload::stats::Quantile;
use tokload::sys::signals::Interrupts;
use tokload::{ErrorKind, Run, Runner};

fn small() -> tokload::plan::PlanBuilder {
    Plan::simulation().seed(3).prompt_words(16).output_tokens(8)
}

#[test]
fn a_simulated_plan_gives_the_numbers_of_the_command() {
    let plan = small().users([1, 2, 4]).requests(12).build().unwrap();
    let run = tokload::simulate(&plan, &Settings { seed: 3, ..Settings::course() }).unwrap();
    let line = "simulate --seed 3 --random-input-len 16 --random-output-len 8 --max-concurrency 1,2,4 --num-prompts 12 \
                --no-save --format json";
    let said = Command::new(env!("CARGO_BIN_EXE_tokload")).args(line.split_whitespace()).output().unwrap();
    let shown: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    let own: serde_json::Value = serde_json::from_str(&run.to_json()).unwrap();
    for (shown, own) in shown["levels"].as_array().unwrap().iter().zip(own["levels"].as_array().unwrap()) {
        for block in ["bodies", "counts", "rates", "goodput", "tokens", "span"] {
            assert_eq!(shown[block], own[block], "{block}");
        }
    }
    assert_eq!(own["plan"], shown["plan"]);
    assert_eq!(own["knee"], shown["knee"]);
    assert!(run.to_string().contains("no knee up to 4 users"), "{run}");
    assert!(run.knee().is_some() && run.capacity().is_none() && run.verdict().is_some());
}

#[test]
fn runs_follow_each_other_and_are_saved_where_it_is_said() {
    let serving = Settings::fixed(5.0, 1.0);
    let server = Mock::start(mock::Settings { serving, ..mock::Settings::default() }).unwrap();
    let url = format!("http://{}/v1", server.address());
    let plan = Plan::builder(&url).users([2]).requests(8).warmups(0).output_tokens(4).build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let runner = Runner::new().save(&path).label("first").metadata("gpu", "none").api_key("hunter2");
    let run = runner.run(&plan).unwrap();
    assert_eq!((run.levels()[0].counts.ok, run.levels()[0].counts.failed), (8, 0));
    let saved = Run::open(&path).unwrap();
    assert_eq!(saved.file(), run.file());
    assert!(!run.to_json().contains("hunter2") && folder.path().join("run.records").exists());
    // A second one: nothing of a run belongs to the process; and what is there is not overwritten unasked.
    let taken = runner.run(&plan).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Input);
    assert!(taken.to_string().contains("is there already"), "{taken}");
    assert!(tokload::run(&plan).is_ok() && runner.overwrite().run(&plan).is_ok());
}

#[test]
fn a_run_that_is_not_saved_is_checked_by_its_records() {
    let measure = |seed| {
        let plan = small().seed(seed).users([2]).requests(60).build().unwrap();
        tokload::simulate(&plan, &Settings::course()).unwrap()
    };
    let report = tokload::check(&measure(1), [&measure(2)], &tokload::gate::Thresholds::default()).unwrap();
    assert_eq!(report.loads.len(), 1);
    assert!(report.loads[0].figures.iter().all(|figure| figure.difference.is_some()));
    let open = small().rates([5.0]).requests(20).build().unwrap();
    let other = tokload::simulate(&open, &Settings::course()).unwrap();
    let none = tokload::check(&other, [&measure(1)], &tokload::gate::Thresholds::default()).unwrap_err();
    assert!(none.to_string().contains("no load of the candidate is one of the baseline"), "{none}");
    let empty: [&Run; 0] = [];
    assert!(tokload::check(&other, empty, &tokload::gate::Thresholds::default()).is_err());
}

/// Files of runs that are not saved are apart, even of those that begin in the same second.
#[test]
fn runs_at_the_same_time_do_not_meet() {
    let of = |seed: u64| {
        let plan = small().seed(seed).users([2]).requests(60).build().unwrap();
        tokload::simulate(&plan, &Settings::course()).unwrap()
    };
    let together: Vec<Run> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || of(seed))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for run in together {
        assert_eq!(run.levels()[0].counts.ok, 60);
        assert!(run.levels()[0].statistics.is_some(), "its records were read");
    }
}

#[test]
fn capacity_is_found_along_what_is_varied() {
    let times =
        model::Fixed { ttft_ms: 1.0, ttft_per_in_flight_ms: 8.0, itl_ms: 0.0, ..model::Fixed::default() };
    let serving = Settings::serving(model::Serving::Fixed(times));
    let slo = Slo { ttft_ms: Some(30.0), ..Slo::default() };
    let search = Search { max: 16.0, ..Search::along(Axis::Concurrency) };
    let searched = small().output_tokens(1).slo(slo).search(search).build().unwrap();
    let run = tokload::simulate(&searched, &serving).unwrap();
    let answer = &run.capacity().unwrap().answer;
    assert_eq!((answer.low, answer.high), (Some(3.0), Some(4.0)));
    assert_eq!(run.knee(), None);
}

/// Of a server that takes 10 ms for the first token of each that is there: with four users 40 ms, whatever the machine.
#[test]
fn capacity_of_a_server_is_found_through_its_socket() {
    let times =
        model::Fixed { ttft_ms: 0.0, ttft_per_in_flight_ms: 10.0, itl_ms: 0.0, ..model::Fixed::default() };
    let serving = Settings::serving(model::Serving::Fixed(times));
    let server = Mock::start(mock::Settings { serving, ..mock::Settings::default() }).unwrap();
    let slo = Slo { ttft_ms: Some(39.0), ..Slo::default() };
    let builder = Plan::builder(&format!("http://{}", server.address())).prompt_words(8).output_tokens(1);
    // Its own loads are those of a run; a search has its own.
    let plan = builder.users([64, 128]).requests(30).slo(slo).build().unwrap();
    let search = Search { start: 4.0, max: 8.0, times_max: 2, ..Search::along(Axis::Concurrency) };
    let run = tokload::find_capacity(&plan, search).unwrap();
    let answer = &run.capacity().unwrap().answer;
    assert!(answer.high.is_some_and(|high| high <= 4.0), "{answer:?}");
    assert!(answer.low.is_none_or(|low| low < 4.0), "{answer:?}");
    assert_eq!(run.levels()[0].setting.read().unwrap().load.users, Some(4));
    assert!(run.levels().len() > 1 && run.to_string().contains("capacity: "), "{run}");
    assert!(run.levels().iter().all(|level| level.counts.failed == 0));
    let open = Search { start: 0.0, ..search };
    assert_eq!(tokload::find_capacity(&plan, open).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn a_search_begins_as_its_plan_says() {
    let search = Search { start: 2.0, ..Search::along(Axis::Concurrency) };
    let like =
        |builder: tokload::plan::PlanBuilder| search.level_to_begin(&builder.build().unwrap().levels[0]);
    let level = like(small().load(Load { think_s: 1.0, ..Load::closed(8) }));
    assert_eq!((level.load.users, level.load.think_s, level.stop.units), (Some(2), 1.0, Some(100)));
    assert_eq!(like(small().users([8]).requests(500)).stop.units, Some(500));
    assert_eq!(like(small().users([8]).duration(Duration::from_secs(9))).stop.duration_s, Some(9.0));
}

#[test]
fn what_is_wrong_has_a_kind_and_a_sentence() {
    let nobody = Plan::builder("http://127.0.0.1:1").users([1]).build().unwrap();
    let error = Runner::new().wait(Duration::ZERO).run(&nobody).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    assert!(error.into_run().is_none());
    let mut broken = nobody;
    broken.levels.clear();
    assert_eq!(tokload::run(&broken).unwrap_err().kind(), ErrorKind::Input);
    let error = Run::open("no/such/run.json").unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.to_string().contains("no/such/run.json"), "{error}");
}

#[test]
fn a_run_that_is_stopped_has_what_was_measured() {
    let stop = Interrupts::default();
    stop.raise();
    let plan = small().users([1, 2]).requests(100_000).build().unwrap();
    let run = Runner::new().stop_by(&stop).simulate(&plan, &Settings::course()).unwrap();
    assert!(run.file().interrupted && run.levels().len() == 1);
    assert!(run.levels()[0].counts.planned < 100_000);
}

#[test]
fn a_latency_that_failures_reach_is_none() {
    let plan = small().users([2]).requests(20).build().unwrap();
    let run = tokload::simulate(&plan, &Settings::course()).unwrap();
    let mut level = run.levels()[0].clone();
    let ms = level.quantile_ms(Metric::Ttft, Quantile::P50).unwrap();
    assert!((10.0..100.0).contains(&ms));
    assert_eq!(level.quantile_ms(Metric::UserSpeed, Quantile::P50), None, "no time");
    let distribution = level.distributions.get_mut(&Metric::Ttft).unwrap();
    distribution.with_failures.iter_mut().for_each(|one| one.value = None);
    assert_eq!(level.quantile_ms(Metric::Ttft, Quantile::P50), None);
}

/// The README shows the documented examples, which are compiled and run.
#[test]
fn the_readme_has_the_examples_of_the_crate() {
    let documented: Vec<&str> = include_str!("../../src/lib.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//!").map(|text| text.strip_prefix(' ').unwrap_or(text)))
        .collect();
    let documented = documented.join("\n");
    let readme = include_str!("../../README.md");
    let examples: Vec<&str> =
        readme.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(examples.len(), 3);
    for example in examples {
        assert!(documented.contains(example), "not in src/lib.rs:\n{example}");
    }
}
