//! The gate: exact cases by hand, then pairs of simulated builds. `benches/check.rs` counts how often it is wrong.

pub(crate) mod builds;
pub(crate) mod made;

use serde_json::Value;
use tokload::compare::{Estimate, Figure, Sample, SideBySide, Unit};
use tokload::gate::{self, Against, Checked, Limit, Outcome, Reason, Report, Thresholds};
use tokload::metrics::Metric;
use tokload::plan::{Arrivals, Grade, Load, Slo};
use tokload::report::Style;
use tokload::report::check::{self as shown, github, junit};
use tokload::stats::{Confidence, Quantile};

use crate::run_file::conforms;
use made::{constant, run, spread};

const TTFT: Figure = Figure::Quantile(Metric::Ttft, Quantile::P50);

fn closed(users: u32) -> Load {
    Load::closed(users)
}

fn open(rate: f64) -> Load {
    Load { arrivals: Arrivals::Poisson { rate }, cap: None, users: None, think_s: 0.0 }
}

/// Only `figure`, by `worse`.
fn only(figure: &str, worse: f64) -> Thresholds {
    let mut thresholds = Thresholds::none();
    thresholds.set(Limit::new(figure.parse().unwrap(), worse));
    thresholds
}

fn checked<'a>(report: &'a Report, figure: &str) -> &'a Checked {
    let figures = report.loads.iter().flat_map(|load| &load.figures);
    figures.into_iter().find(|checked| checked.figure.to_string() == figure).unwrap()
}

fn pair(base: Vec<Option<f64>>, own: Vec<Option<f64>>, thresholds: &Thresholds) -> Report {
    gate::check(&[run("base", &[(closed(2), base)])], &run("own", &[(closed(2), own)]), thresholds)
}

/// Without any spread the change is known exactly, and only the limit decides.
#[test]
fn exact_values_are_held_against_the_limit() {
    for (ttft_ms, change, outcome) in [
        (100.0, 0.0, Outcome::Pass),
        (104.9, 0.049, Outcome::Pass),
        (105.0, 0.05, Outcome::Pass),
        (105.2, 0.052, Outcome::Regression),
        (50.0, -0.5, Outcome::Pass),
    ] {
        let report = pair(constant(100, 100.0), constant(100, ttft_ms), &only("ttft_p50", 0.05));
        let of = checked(&report, "ttft_p50");
        assert_eq!((report.outcome, of.outcome, of.reason), (outcome, outcome, None), "{ttft_ms}");
        let difference = of.difference.unwrap();
        for end in [difference.change, difference.low.unwrap(), difference.high.unwrap()] {
            assert!((end - change).abs() < 1e-12, "{ttft_ms}: {difference:?}");
        }
        assert_eq!((of.baseline, of.candidate), (Some(100e6), Some(ttft_ms * 1e6)));
    }
}

/// 300 requests of which none failed: the share is below what 300 failures-free ones allow, p^n = tail.
#[test]
fn failures_are_told_from_none_by_the_exact_bound() {
    let tail: f64 = 0.025;
    let bound = 1.0 - tail.powf(1.0 / 300.0);
    let report = pair(constant(300, 100.0), constant(300, 100.0), &only("failed", 0.01));
    let of = checked(&report, "failed");
    let difference = of.difference.unwrap();
    assert_eq!((difference.change, of.outcome, of.reason), (0.0, Outcome::Inconclusive, Some(Reason::Wide)));
    // Both sides may have failed that rarely.
    assert!((difference.high.unwrap() - bound).abs() < 1e-9, "{difference:?} {bound}");
    assert!((difference.low.unwrap() + bound).abs() < 1e-9);
    // As many as were asked for decide.
    let needed = of.needed.unwrap();
    assert!(needed.candidate > 300 && needed.candidate < 2000, "{needed:?}");
    let n = needed.candidate as usize;
    let again = pair(constant(n, 100.0), constant(n, 100.0), &only("failed", 0.01));
    assert_eq!(again.outcome, Outcome::Pass);
    // One in ten is no accident.
    let failing: Vec<_> = (0..300).map(|i| (i % 10 != 3).then_some(100.0)).collect();
    let report = pair(constant(300, 100.0), failing, &Thresholds::default());
    assert_eq!(report.outcome, Outcome::Regression);
    assert_eq!(checked(&report, "failed").outcome, Outcome::Regression);
    assert_eq!(checked(&report, "attainment").outcome, Outcome::Regression);
    assert_eq!(checked(&report, "ttft_p50").outcome, Outcome::Pass, "latencies are those of the ok requests");
}

#[test]
fn an_error_rate_is_held_against_nothing() {
    let failing = || (0..400).map(|i| (i % 20 != 3).then_some(100.0)).collect::<Vec<_>>();
    let mut thresholds = Thresholds::none();
    for (worse, outcome) in [(0.01, Outcome::Regression), (0.2, Outcome::Pass)] {
        thresholds.set(Limit { against: Against::Nothing, ..Limit::new(Figure::Failed, worse) });
        // The baseline failed as often, which makes no difference.
        let report = pair(failing(), failing(), &thresholds);
        let of = checked(&report, "failed");
        assert_eq!((of.outcome, of.baseline, of.candidate), (outcome, None, Some(0.05)));
    }
}

#[test]
fn throughput_falls_and_is_held_against_the_share_that_it_may_lose() {
    // The requests of these runs are planned by the clock; every other one fails, and half of the tokens are lost.
    let thresholds = only("out_tok_s", 0.05);
    let (all, half) = (constant(400, 100.0), (0..400).map(|i| (i % 2 == 0).then_some(100.0)).collect());
    let report = pair(all, half, &thresholds);
    let of = checked(&report, "out_tok_s");
    assert_eq!(of.outcome, Outcome::Regression, "{of:?}");
    let difference = of.difference.unwrap();
    assert!((difference.change + 0.5).abs() < 0.01 && difference.high.unwrap() < -0.3, "{difference:?}");
}

#[test]
fn every_interval_is_wider_the_more_are_compared() {
    let (base, own) = (spread(400, 100.0, 1), spread(400, 100.0, 2));
    let width = |thresholds: &Thresholds| {
        let report = pair(base.clone(), own.clone(), thresholds);
        let difference = checked(&report, "ttft_p50").difference.unwrap();
        (report.comparisons, difference.high.unwrap() - difference.low.unwrap())
    };
    let (one, alone) = width(&only("ttft_p50", 0.05));
    let (many, among) = width(&Thresholds::default());
    assert_eq!((one, many), (1, 5));
    assert!(among > 1.2 * alone, "{alone} {among}");
    let unsure = Thresholds { confidence: Confidence::new(0.5).unwrap(), ..only("ttft_p50", 0.05) };
    assert!(width(&unsure).1 < 0.5 * alone);
}

/// Between pass and regression lies what cannot be told, and what it would take.
#[test]
fn few_requests_are_no_verdict_and_those_asked_for_are() {
    let check = |n: usize, m: usize, ttft_ms: f64, seed: u64| {
        pair(spread(n, 100.0, seed), spread(m, ttft_ms, seed + 1), &only("ttft_p50", 0.02))
    };
    let few = check(9, 9, 104.0, 1);
    assert_eq!(checked(&few, "ttft_p50").reason, Some(Reason::TooFew));
    let mut decided = 0;
    for seed in (0..40).step_by(2) {
        let first = check(30, 30, 104.0, seed);
        if first.outcome == Outcome::Regression {
            continue;
        }
        assert_eq!(first.outcome, Outcome::Inconclusive);
        let needed = first.loads[0].needed.unwrap();
        assert!(needed.candidate > 30 && needed.candidate < 1000, "{needed:?}");
        let (n, m) = (needed.baseline as usize, needed.candidate as usize);
        decided += i32::from(check(n, m, 104.0, seed + 100).outcome == Outcome::Regression);
        assert_eq!(check(n, m, 100.0, seed + 200).outcome, Outcome::Pass, "{needed:?}");
    }
    assert!(decided >= 15, "{decided}");
}

#[test]
fn every_estimate_is_the_stored_number() {
    let plan = builds::plan(5, &builds::loads(), &[200, 200, 200]);
    let sample = builds::run("run", &plan, builds::build(1.0));
    let further =
        ["ttft_plan_p90", "goodput_s", "total_tok_s", "e2e_p99.9"].map(|name| name.parse().unwrap());
    for load in sample.loads() {
        for figure in SideBySide::FIGURES.into_iter().chain(further) {
            let estimate = Estimate::of(figure, &Unit::rounds_of(&load), plan.slo, load.from_plan).unwrap();
            let stored = figure.stored(load.rounds[0].block).unwrap();
            assert!(
                (estimate.value / stored - 1.0).abs() < 1e-9 || estimate.value == stored,
                "{figure} {}",
                load.label
            );
            let interval = estimate.interval(Confidence::C95);
            assert!(interval.contains(estimate.value), "{figure}: {interval:?}");
        }
    }
}

#[test]
fn equal_builds_are_no_regression_and_much_slower_ones_are() {
    let loads = builds::loads();
    let run = |seed, prefill| {
        builds::run("run", &builds::plan(seed, &loads, &[150, 150, 150]), builds::build(prefill))
    };
    for seed in 0..3 {
        let report = gate::check(&[run(seed, 1.0)], &run(100 + seed, 1.0), &Thresholds::default());
        assert_ne!(report.outcome, Outcome::Regression, "{report:?}");
        let report = gate::check(&[run(seed, 1.0)], &run(200 + seed, 2.0), &Thresholds::default());
        assert_eq!(report.outcome, Outcome::Regression, "{report:?}");
    }
}

#[test]
fn an_open_loop_is_judged_from_the_plan_and_its_throughput_by_nobody() {
    let loads = [closed(4), open(6.0)];
    let run = |seed| builds::run("run", &builds::plan(seed, &loads, &[60, 60]), builds::build(1.0));
    let report = gate::check(&[run(1)], &run(2), &Thresholds::default());
    let names = |load: usize| -> Vec<String> {
        report.loads[load].figures.iter().map(|checked| checked.figure.to_string()).collect()
    };
    assert_eq!(names(0), ["ttft_p50", "tpot_p50", "out_tok_s", "attainment", "failed"]);
    assert_eq!(names(1), ["ttft_plan_p50", "tpot_p50", "attainment", "failed"]);
    assert_eq!(report.comparisons, 9);
}

#[test]
fn a_growing_queue_has_no_latency_to_judge_but_a_throughput() {
    let run = |seed| {
        let mut plan = builds::plan(seed, &[open(40.0)], &[3000]);
        plan.levels[0].stop.units = None;
        plan.levels[0].stop.duration_s = Some(60.0);
        builds::run("run", &plan, builds::build(1.0))
    };
    let report = gate::check(&[run(1)], &run(2), &Thresholds::default());
    let of = checked(&report, "ttft_plan_p50");
    assert_eq!((of.outcome, of.reason, of.needed), (Outcome::Inconclusive, Some(Reason::Growing), None));
    assert_eq!(checked(&report, "out_tok_s").outcome, Outcome::Pass);
}

/// What is left of a run whose records are gone, and of one that never had any.
#[test]
fn without_records_the_kept_statistics_speak_and_without_these_nobody_does() {
    let (run, records) = made::run_file(&[(closed(2), spread(400, 100.0, 1))]);
    let whole = Sample::new("whole", run.clone(), &records);
    let kept = Sample::new("kept", run.clone(), &[]);
    let mut bare = run.clone();
    bare.levels[0].statistics = None;
    let bare = Sample::new("bare", bare, &[]);
    let thresholds = only("ttft_p50", 0.05);
    let reach = |sample: &Sample| {
        let report = gate::check(std::slice::from_ref(sample), &whole, &thresholds);
        let of = checked(&report, "ttft_p50").clone();
        assert!(of.difference.unwrap().change.abs() < 1e-9);
        (report.outcome, of.reason, of.difference.unwrap().high)
    };
    let (outcome, _, high) = reach(&whole);
    let (outcome_kept, _, high_kept) = reach(&kept);
    assert_eq!((outcome, outcome_kept), (Outcome::Pass, Outcome::Pass));
    assert!((high_kept.unwrap() / high.unwrap() - 1.0).abs() < 0.3, "{high:?} {high_kept:?}");
    assert_eq!(reach(&bare), (Outcome::Inconclusive, Some(Reason::NoRecords), None));
    let report = gate::check(&[bare], &whole, &thresholds);
    assert!(report.is_doubtful());
    assert!(report.remarks.iter().any(|remark| remark.text.contains("records of bare are not there")));
}

#[test]
fn five_rounds_speak_for_themselves_even_without_records() {
    let run = |seed: u64| {
        let mut plan = builds::plan(seed, &[closed(4)], &[100]);
        plan.runs = 5;
        let (mut run, _) = builds::run_file(&plan, builds::build(1.0));
        run.levels.iter_mut().for_each(|level| level.statistics = None);
        Sample::new("rounds", run, &[])
    };
    let (base, own) = (run(1), run(2));
    assert_eq!(base.loads().len(), 1);
    let report = gate::check(std::slice::from_ref(&base), &own, &only("ttft_p50", 0.2));
    assert_eq!(report.outcome, Outcome::Pass, "{report:?}");
    let stored = base.run.repeats.as_ref().unwrap()[0].figures["ttft_p50"].clone();
    let estimate = Estimate::of(TTFT, &Unit::rounds_of(&base.loads()[0]), Slo::default(), false).unwrap();
    let interval = estimate.interval(Confidence::C95);
    // Logarithms of five values that are near each other spread as the values do.
    let (ours, theirs) = (interval.width(), 2.0 * stored.reach.unwrap());
    assert!((ours / theirs - 1.0).abs() < 0.1, "{ours} {theirs}");
}

/// Five baselines that differ among themselves: what a single one calls a regression is within their noise.
#[test]
fn several_baselines_are_a_noise_floor() {
    let run = |name: &str, ttft_ms, seed| run(name, &[(closed(2), spread(400, ttft_ms, seed))]);
    let baselines: Vec<Sample> = [92.0, 97.0, 100.0, 103.0, 108.0]
        .iter()
        .zip(0..)
        .map(|(ttft_ms, seed)| run("base", *ttft_ms, seed))
        .collect();
    let candidate = run("own", 108.0, 9);
    let thresholds = only("ttft_p50", 0.02);
    let alone = gate::check(&baselines[2..3], &candidate, &thresholds);
    assert_eq!(alone.outcome, Outcome::Regression);
    let among = gate::check(&baselines, &candidate, &thresholds);
    assert_eq!(among.outcome, Outcome::Inconclusive);
    assert_eq!(among.loads[0].figures[0].reason, Some(Reason::RunsDiffer), "more requests are no help");
    assert_eq!(among.loads[0].baseline_requests, 2000);
    // Two say that there is noise, and that they are few.
    let two = gate::check(&baselines[1..=2], &candidate, &thresholds);
    assert!(two.remarks.iter().any(|remark| remark.text.contains("take 5")), "{two:?}");
    // Baselines that agree are no weaker than one.
    let same: Vec<Sample> = (0..5).map(|seed| run("base", 100.0, seed)).collect();
    assert_eq!(gate::check(&same, &candidate, &thresholds).outcome, Outcome::Regression);
}

#[test]
fn what_besides_the_server_differs_is_said_and_doubted() {
    let (run, records) =
        made::run_file(&[(closed(2), constant(700, 100.0)), (closed(4), constant(700, 100.0))]);
    let base = Sample::new("base", run.clone(), &records);
    let same = gate::check(std::slice::from_ref(&base), &base, &Thresholds::default());
    assert_eq!((same.outcome, same.is_doubtful()), (Outcome::Pass, false), "{:?}", same.remarks);
    let said = |change: &dyn Fn(&mut tokload::run_file::RunFile)| {
        let mut other = run.clone();
        change(&mut other);
        let report = gate::check(
            std::slice::from_ref(&base),
            &Sample::new("own", other, &records),
            &Thresholds::default(),
        );
        let warned = report.remarks.iter().filter(|remark| remark.grade > Grade::Info);
        (report.is_doubtful(), warned.map(|remark| remark.text.clone()).collect::<Vec<_>>().join("\n"))
    };
    let doubt = |change: &dyn Fn(&mut tokload::run_file::RunFile), text: &str| {
        let (doubtful, texts) = said(change);
        assert!(doubtful && texts.contains(text), "no {text:?} in {texts:?}");
    };
    let planned = |run: &mut tokload::run_file::RunFile, change: &dyn Fn(&mut tokload::plan::Plan)| {
        let mut plan = run.plan.read().unwrap();
        change(&mut plan);
        run.plan = tokload::run_file::schema::Verbatim::of(&plan);
    };
    doubt(
        &|run| planned(run, &|plan| plan.workload.output_tokens = 99.into()),
        "workload.output_tokens 64 -> 99",
    );
    doubt(&|run| planned(run, &|plan| plan.target.stream = false), "target.stream true -> false");
    doubt(&|run| planned(run, &|plan| plan.slo.ttft_ms = Some(1.0)), "limits {\"ttft_ms\":1.0");
    doubt(&|run| run.definitions[4].formula += "!", "other definitions of ttft");
    doubt(&|run| run.environment.cpu_model = Some("Z80".to_owned()), "another CPU: unknown -> Z80");
    doubt(&|run| run.tool.version = "0.0.1".to_owned(), "-> tokload 0.0.1");
    doubt(&|run| run.target.kind = Some("sglang".to_owned()), "another kind of server: vllm -> sglang");
    doubt(&|run| run.verdict = Some(tokload::verdict::Verdict::Invalid), "own is invalid");
    doubt(&|run| run.interrupted = true, "own was interrupted");
    doubt(&|run| run.levels[0].self_check.timestamps = Some(tokload::plan::Timestamps::Kernel), "stamps:");
    doubt(&|run| run.levels[0].tokens.sources = [0, 0, 9, 0], "output tokens counted by: usage -> events");
    // A seed, another address, more requests and another version of the server are what runs may differ in.
    let free = |change: &dyn Fn(&mut tokload::run_file::RunFile)| {
        assert_eq!(said(change), (false, String::new()));
    };
    free(&|run| planned(run, &|plan| plan.seed = 9));
    free(&|run| planned(run, &|plan| plan.levels[0].stop.units = Some(9)));
    free(&|run| run.target.version = Some("2".to_owned()));
}

#[test]
fn a_load_that_only_one_side_has_is_never_skipped() {
    let of = |users: &[u32]| {
        let levels: Vec<_> = users.iter().map(|users| (closed(*users), constant(700, 100.0))).collect();
        run(&format!("{users:?}"), &levels)
    };
    let report = gate::check(&[of(&[1, 2])], &of(&[2, 4]), &Thresholds::default());
    assert_eq!(report.loads.len(), 1);
    assert_eq!(report.unmatched, ["4 users", "1 user"]);
    assert_eq!((report.outcome, report.is_doubtful()), (Outcome::Inconclusive, true));
    assert_eq!(report.loads[0].outcome, Outcome::Pass);
    // One that got worse stays a regression, whatever else was not compared.
    let worse = run("worse", &[(closed(2), constant(700, 130.0))]);
    assert_eq!(gate::check(&[of(&[1, 2])], &worse, &Thresholds::default()).outcome, Outcome::Regression);
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn sample_report() -> Report {
    let base = run("runs/base.json", &[(closed(2), constant(300, 100.0)), (closed(8), constant(20, 100.0))]);
    let own = run("runs/own.json", &[(closed(2), constant(300, 110.0)), (closed(8), constant(20, 100.0))]);
    let mut thresholds = only("ttft_p50", 0.05);
    thresholds.set(Limit::new(Figure::Failed, 0.01));
    gate::check(&[base], &own, &thresholds)
}

#[test]
fn the_table_says_what_was_compared_what_is_open_and_the_outcome() {
    let table = text(|out| shown::write(&sample_report(), Style { width: 100, color: false }, out));
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let head: Vec<String> = table.lines().take(8).map(squeezed).collect();
    let expected = [
        "check runs/own.json · vllm · 2026-11-30 20:44:53 UTC",
        "against runs/base.json · vllm · 2026-11-30 20:44:53 UTC",
        "",
        "change %",
        "load before now seen interval limit outcome",
        "2 users regression",
        "ttft_p50 ms 100.0 110.0 +10.0 +10.0 to +10.0 +5 regression",
        // 1 - (0.025 / 4)^(1 / 300): no failure among 300, four intervals.
        "failed % 0 0 +0.00 -1.68 to +1.68 +1 inconclusive",
    ];
    assert_eq!(head, expected, "{table}");
    assert!(table.contains("! 2 users: "), "{table}");
    assert!(table.ends_with("\nregression: ttft_p50 at 2 users\n"), "{table}");
    for width in [60, 80, 120] {
        let table = text(|out| shown::write(&sample_report(), Style { width, color: false }, out));
        assert!(table.lines().skip(3).all(|line| line.chars().count() <= width), "{width}: {table}");
    }
}

#[test]
fn every_format_names_every_figure_that_is_no_pass() {
    let report = sample_report();
    let lines = text(|out| github::write(&report, out));
    assert!(
        lines.starts_with("::error title=tokload check%3A regression::2 users: ttft_p50 100.0 -> 110.0 ms, ")
    );
    assert_eq!(lines.matches("::warning title=tokload check%3A inconclusive::").count(), 2, "{lines}");
    let xml = text(|out| junit::write(&report, false, out));
    assert!(xml.contains("<testsuite name=\"2 users\" tests=\"2\" failures=\"1\" skipped=\"1\">"), "{xml}");
    let strict = text(|out| junit::write(&report, true, out));
    assert!(
        strict.contains("<testsuite name=\"2 users\" tests=\"2\" failures=\"2\" skipped=\"0\">"),
        "{strict}"
    );
    for tag in ["testsuites", "testsuite"] {
        let (opened, closed) =
            (xml.matches(&format!("<{tag} ")).count(), xml.matches(&format!("</{tag}>")).count());
        assert_eq!(opened, closed, "{tag}: {xml}");
    }
}

#[test]
fn json_conforms_to_the_published_schema() {
    let schema: Value =
        serde_json::from_str(include_str!("../../tools/schema/tokload.check.v1.schema.json")).unwrap();
    let json: Value = serde_json::from_str(&text(|out| shown::write_json(&sample_report(), out))).unwrap();
    assert_eq!(conforms(&schema, &schema, &json, "check"), Ok(()));
    assert_eq!(json["outcome"], "regression");
    let mut broken = json.clone();
    broken["loads"][0]["figures"][0]["outcome"] = "fine".into();
    assert_eq!(
        conforms(&schema, &schema, &broken, "check").unwrap_err(),
        "check.loads[0].figures[0].outcome: not in the enum"
    );
}
