//! What is said of how well a level is known, on levels of the 16-slot server in virtual time.

use tokload::metrics::{Metric, Record};
use tokload::model::{self, Freeze};
use tokload::plan::{Arrivals, Level, Load, Plan, Slo, SteadyCut, Stop};
use tokload::run::LevelResult;
use tokload::run_file::schema::{EnvironmentBlock, TargetBlock};
use tokload::run_file::write::to_json;
use tokload::run_file::{Loaded, RunFile, WallTime};
use tokload::stats::Quantile;
use tokload::stats::little::Verdict;
use tokload::summary::{self, Input, LevelSummary, Statistics};

use crate::run_file::Sample;
use crate::simulate::{self, batching, plan};

/// Requests per second that the server can just do.
const SATURATION: f64 = 15.06;

struct Run {
    result: LevelResult,
    records: Vec<Record>,
    cut: SteadyCut,
}

impl Run {
    fn of(server: model::Settings, level: &Level) -> Run {
        Run::with(&plan(), server, level)
    }

    fn with(plan: &Plan, server: model::Settings, level: &Level) -> Run {
        let (result, records) = simulate::run(plan, server, level);
        Run { result, records, cut: plan.steady_cut }
    }

    fn input(&self) -> Input<'_> {
        let slo = Slo { ttft_ms: Some(100.0), ..Slo::default() };
        Input { steady_cut: self.cut, ..Input::new(&self.result, Some(&self.records), slo) }
    }

    fn summary(&self) -> LevelSummary {
        summary::level(&self.input())
    }

    fn statistics(&self) -> Statistics {
        self.summary().statistics.unwrap()
    }
}

fn open(percent: f64, cap: Option<u32>) -> Load {
    Load {
        arrivals: Arrivals::Poisson { rate: SATURATION * percent / 100.0 },
        cap,
        users: None,
        think_s: 0.0,
    }
}

fn timed(load: Load, duration_s: f64) -> Level {
    Level {
        load,
        stop: Stop { units: None, duration_s: Some(duration_s), grace_s: 60.0 },
        warmups: 0,
        ..Level::default()
    }
}

fn counted(load: Load, units: u64) -> Level {
    Level {
        load,
        stop: Stop { units: Some(units), duration_s: None, grace_s: 60.0 },
        warmups: 0,
        ..Level::default()
    }
}

#[test]
fn an_open_loop_below_saturation_is_steady_and_known() {
    let run = Run::of(model::Settings::course(), &timed(open(60.0, None), 300.0));
    let summary = run.summary();
    let statistics = summary.statistics.as_ref().unwrap();
    let steady = statistics.steady;
    assert!(!steady.trend.unwrap().growing, "{steady:?}");
    assert_eq!((steady.saturated, steady.latency_grows), (Some(false), false));
    let ttft = statistics.latency(Metric::TtftPlan).unwrap();
    // Every fifth to tenth request is worth one that stands alone: enough for p95, not for p99.
    assert!((5.0..12.0).contains(&ttft.design_effect), "{ttft:?}");
    assert_eq!(ttft.n_eff, ttft.n as f64 / ttft.design_effect);
    for quantile in Quantile::REPORTED {
        let known = ttft.quantile(quantile).unwrap();
        let reported = summary.distribution(Metric::TtftPlan).unwrap().quantile(quantile);
        assert_eq!(Some(known.value), reported);
        assert!(known.low.unwrap() <= known.value && known.high.is_none_or(|high| known.value <= high));
        assert_eq!(known.supported, quantile <= Quantile::P95);
        assert_eq!(known.high.is_some(), known.supported, "{known:?}");
    }
    let mean = ttft.mean.unwrap();
    assert!((mean.value / summary.distribution(Metric::TtftPlan).unwrap().mean() - 1.0).abs() < 1e-12);
    assert!(mean.low < mean.value && mean.value < mean.high);
    let attainment = statistics.attainment.unwrap();
    assert_eq!(attainment.value, summary.goodput.unwrap().attainment);
    assert!(attainment.low < attainment.value && attainment.value < attainment.high);
    let throughput = statistics.throughput.unwrap();
    for (known, rate) in [
        (throughput.req_s, summary.window_rates.req_s),
        (throughput.out_tok_s, summary.window_rates.out_tok_s),
    ] {
        assert!((known.value / rate - 1.0).abs() < 1e-9, "{known:?} {rate}");
        assert!(known.low < rate && rate < known.high);
    }
    assert!(throughput.req_s.low < SATURATION * 0.6 && SATURATION * 0.6 < throughput.req_s.high);
}

/// Where there is no queue worth the name, a request says little of its neighbour.
#[test]
fn a_p99_is_supported_by_enough_requests_that_do_not_queue() {
    let run = Run::of(model::Settings::course(), &timed(open(20.0, None), 600.0));
    let statistics = run.statistics();
    let ttft = statistics.latency(Metric::TtftPlan).unwrap();
    assert!(ttft.n_eff >= 368.0, "{ttft:?}");
    let p99 = ttft.quantile(Quantile::P99).unwrap();
    assert!(p99.supported && p99.high.is_some() && p99.needed == 368);
    assert!(p99.conservative.is_none_or(|conservative| conservative >= p99.value));
}

#[test]
fn an_open_loop_above_saturation_has_no_steady_latency() {
    let run = Run::of(model::Settings::course(), &timed(open(110.0, None), 150.0));
    let statistics = run.statistics();
    let steady = statistics.steady;
    assert!(steady.trend.unwrap().growing, "{steady:?}");
    assert_eq!((steady.saturated, steady.latency_grows), (Some(true), true));
    assert!(steady.completed < steady.planned);
    assert_eq!(statistics.little.unwrap().verdict, Verdict::Loose);
    assert!(!statistics.latency(Metric::TtftPlan).unwrap().quantile(Quantile::P99).unwrap().supported);
}

/// As the checklist has it: a thousand good requests without a flaw.
#[test]
fn a_thousand_requests_without_a_cut_are_steady_as_well() {
    let run = Run::of(model::Settings::course(), &counted(open(60.0, None), 1000));
    let statistics = run.statistics();
    assert!(run.result.window.whole_level);
    assert!(!statistics.steady.trend.unwrap().growing);
    assert_eq!((statistics.steady.saturated, statistics.steady.latency_grows), (None, false));
    assert_eq!(statistics.whole_level, None);
    let little = statistics.little.unwrap();
    assert_eq!((little.gap, little.verdict), (0.0, Verdict::Holds));
    // Overloaded, they are not.
    let run = Run::of(model::Settings::course(), &counted(open(120.0, None), 1000));
    assert!(run.statistics().steady.latency_grows);
}

/// Behind a cap requests in flight cannot grow; those that wait for it can.
#[test]
fn a_queue_before_the_cap_is_growth_too() {
    let run = Run::of(model::Settings::course(), &timed(open(110.0, Some(16)), 100.0));
    let summary = run.summary();
    assert_eq!(summary.in_flight.unwrap().max, 16);
    let steady = summary.statistics.unwrap().steady;
    assert!(steady.trend.unwrap().last_quarter > 20.0, "{steady:?}");
    assert!(steady.latency_grows);
}

#[test]
fn the_books_agree_with_what_was_counted() {
    for (load, percent_of_cap) in [(open(80.0, None), 0), (open(90.0, Some(12)), 12), (Load::closed(8), 8)] {
        for level in [timed(load.clone(), 80.0), counted(load.clone(), 300)] {
            let run = Run::of(model::Settings::course(), &level);
            let little = run.statistics().little.unwrap();
            assert!(little.counter_gap.unwrap() < 1e-12, "{little:?}");
            assert_ne!(little.verdict, Verdict::Broken, "{percent_of_cap} {little:?}");
            assert!(little.gap.abs() <= little.gap_bound);
            let in_flight = run.summary().in_flight.unwrap();
            let counted = little.counted.unwrap();
            assert_eq!((counted.at_start, counted.at_end), (in_flight.at_start, in_flight.at_end));
        }
    }
}

#[test]
fn a_counter_or_a_record_that_was_tampered_with_breaks_the_books() {
    let mut run = Run::of(model::Settings::course(), &timed(open(80.0, None), 80.0));
    let verdict = |input: &Input<'_>| {
        let little = summary::level(input).statistics.unwrap().little.unwrap();
        little.verdict
    };
    assert_eq!(verdict(&run.input()), Verdict::Holds);
    let mut counted = run.result.counted().unwrap();
    counted.mean *= 1.0 + 2e-6;
    assert_eq!(verdict(&Input { counted: Some(counted), ..run.input() }), Verdict::Broken);
    let whole = run.records.clone();
    run.records.remove(500);
    assert_eq!(verdict(&run.input()), Verdict::Broken, "a record is missing");
    run.records = whole;
    run.records.push(run.records[500]);
    assert_eq!(verdict(&run.input()), Verdict::Broken, "a record is there twice");
    run.records.pop();
    let end = run.records[500].end;
    run.records[500].end = end + std::time::Duration::from_millis(2);
    assert_eq!(verdict(&run.input()), Verdict::Broken, "a record ends elsewhere");
}

/// Users who come back at once, or after a second: the virtual client takes no time of its own.
#[test]
fn a_virtual_client_turns_around_at_once() {
    for think_s in [0.0, 1.0] {
        let load = Load { think_s, ..Load::closed(16) };
        let run = Run::of(model::Settings::course(), &timed(load, 120.0));
        let little = run.statistics().little.unwrap();
        let cycle_s = little.life_s + think_s;
        // Cycles cut by the edges of the window leave a little.
        assert!(little.turnaround_s.unwrap().abs() < 0.02 * cycle_s, "{little:?}");
        assert_eq!(run.statistics().steady.saturated, None);
    }
    let short = Run::of(model::Settings::course(), &counted(Load::closed(16), 64));
    assert_eq!(short.statistics().little.unwrap().turnaround_s, None);
}

/// A server that is frozen at first: the backlog of 15 s is worked off long after the default cut.
#[test]
fn mser5_moves_the_window_behind_a_slow_start() {
    let mut server = batching(16);
    server.freezes = vec![Freeze { at_s: 0.0, for_s: 15.0 }];
    let level = timed(open(60.0, None), 100.0);
    let by = |cut| Run::with(&Plan { steady_cut: cut, ..plan() }, server.clone(), &level);
    let (default, mser5, none) = (by(SteadyCut::Default), by(SteadyCut::Mser5), by(SteadyCut::None));
    let start_s = |run: &Run| {
        let summary = run.summary();
        (summary.window.start - run.result.span.t0).as_secs_f64()
    };
    assert_eq!((start_s(&default), start_s(&none)), (10.0, 0.0));
    let found = start_s(&mser5);
    assert!((15.0..50.0).contains(&found), "{found}");
    assert_eq!(found, found.round(), "in hundredths of the level");
    let p99 = |run: &Run| run.summary().distribution(Metric::TtftPlan).unwrap().quantile(Quantile::P99);
    assert!(p99(&default) > Some(5e9) && p99(&mser5) < Some(2e9), "{:?}", p99(&mser5));
    let steady = mser5.statistics().steady;
    assert_eq!((steady.cut, steady.found), (SteadyCut::Mser5, Some(true)));
    // The engine cut where it always does; gaps are those of its window, and so are the books.
    assert_eq!(steady.fixed_start_ns, default.result.window.start.as_nanos());
    assert_eq!(mser5.result.window, default.result.window);
    let little = mser5.statistics().little.unwrap();
    assert_eq!((little.start_ns, little.verdict), (steady.fixed_start_ns, Verdict::Loose));
    assert_eq!(default.statistics().steady.found, None);
    // What grows to the end has no steady state, and keeps the default cut.
    let growing = timed(open(130.0, None), 100.0);
    let run = Run::with(&Plan { steady_cut: SteadyCut::Mser5, ..plan() }, batching(16), &growing);
    assert_eq!(run.statistics().steady.found, Some(false));
    assert_eq!(run.summary().window, run.result.window);
}

/// The window that MSER-5 moved, the engine's own one and its count are stored, so that the numbers can be made anew.
#[test]
fn a_stored_level_judged_anew_is_the_same_by_every_rule() {
    for steady_cut in [SteadyCut::Default, SteadyCut::Mser5, SteadyCut::None] {
        let plan = Plan { steady_cut, slo: Slo { ttft_ms: Some(100.0), ..Slo::default() }, ..plan() };
        let mut server = batching(16);
        server.freezes = vec![Freeze { at_s: 0.0, for_s: 8.0 }];
        let run = Run::with(&plan, server, &timed(open(60.0, None), 60.0));
        let summary = run.summary();
        let nobody = (EnvironmentBlock::default(), TargetBlock::default());
        let mut stored = RunFile::new(WallTime::from_unix_nanos(0), &plan, nobody.0, nobody.1);
        stored.push(&run.result, &summary);
        stored.judge();
        let directory = tempfile::tempdir().unwrap();
        let mut sample = Sample { run: stored, records: run.records };
        let destination = sample.write(directory.path().join("run.json"));
        let loaded = Loaded::open(destination.path()).unwrap();
        let anew = loaded.judged_by(&plan.slo).unwrap();
        assert_eq!(anew.levels[0].statistics, summary.statistics);
        assert_eq!(anew, sample.run, "{steady_cut:?}");
        assert_eq!(
            anew.levels[0].window.start_ns > anew.levels[0].fixed_window().start.as_nanos(),
            steady_cut == SteadyCut::Mser5
        );
        // A file from before there were statistics can still get them, without what was counted then.
        let mut text: serde_json::Value = serde_json::from_str(&to_json(&sample.run)).unwrap();
        assert!(text["levels"][0].as_object_mut().unwrap().remove("statistics").is_some());
        std::fs::write(destination.path(), text.to_string()).unwrap();
        let old = Loaded::open(destination.path()).unwrap();
        assert_eq!(old.run.levels[0].statistics, None);
        let anew = old.judged_by(&plan.slo).unwrap();
        let little = anew.levels[0].statistics.as_ref().unwrap().little.unwrap();
        assert_eq!((little.counted, little.counter_gap), (None, None));
    }
}

#[test]
fn a_level_with_a_cut_keeps_its_whole_beside_it() {
    let run = Run::of(model::Settings::course(), &timed(open(60.0, None), 80.0));
    let (summary, whole) = (run.summary(), run.statistics().whole_level.unwrap());
    assert_eq!((whole.planned, whole.ok, whole.failed), (run.records.len() as u64, whole.planned, 0));
    assert!(whole.planned > summary.counts.planned);
    let metrics: Vec<Metric> = whole.latencies.iter().map(|latency| latency.metric).collect();
    let known: Vec<Metric> =
        summary.statistics.unwrap().latencies.iter().map(|latency| latency.metric).collect();
    assert_eq!(metrics, known);
    assert_eq!(
        known,
        [Metric::Ttft, Metric::E2e, Metric::Tpot, Metric::Stall, Metric::TtftPlan, Metric::E2ePlan]
    );
    let mut ttft: Vec<f64> = run.records.iter().filter_map(|record| Metric::Ttft.of(record)).collect();
    ttft.sort_unstable_by(f64::total_cmp);
    assert_eq!(
        (whole.latencies[0].n, whole.latencies[0].quantiles[0].value),
        (ttft.len() as u64, ttft[ttft.len().div_ceil(2) - 1])
    );
}

/// The order in which records lie in their file is that of their ends, over all shards; what is said of them is not.
#[test]
fn the_order_of_the_records_does_not_matter() {
    let mut run = Run::of(model::Settings::course(), &counted(open(80.0, None), 400));
    let before = run.summary();
    run.records.sort_by_key(|record| std::cmp::Reverse((record.end, record.index)));
    assert_eq!(run.summary(), before);
}
