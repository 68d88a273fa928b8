//! What a run shows while it goes on is what its result says when it is over: every run of the tests of both engines is
//! held to that, sum by sum and bucket by bucket.

use std::collections::BTreeMap;

use tokload::metrics::live::{BOUNDS_NS, Count, Part, Sums, Timing};
use tokload::metrics::{Live, Metric, Outcome};
use tokload::mock::{Answer, Fault, Faults, Settings, When};
use tokload::model;
use tokload::plan::{Arrivals, Level, Load, Stop};
use tokload::report::progress::Course;
use tokload::report::prometheus;
use tokload::run::LevelResult;
use tokload::stats::Histogram;
use tokload::sys::signals::Interrupts;

use crate::rig::{mock, plan_for, run_with, simulate_levels, simulate_with};

/// What was shown of a level is what its result holds.
pub(crate) fn check(shown: &Sums, result: &LevelResult) {
    let (shards, tally) = (&result.shards, &result.tally);
    let sum = |of: fn(&tokload::run::ShardCheck) -> u64| shards.iter().map(of).sum::<u64>();
    assert_eq!(shown.count(Count::Sent), sum(|shard| shard.sent));
    assert_eq!(shown.count(Count::ReadBytes), sum(|shard| shard.read_bytes));
    assert_eq!(shown.in_flight(), 0);
    if tally.whole().counts.slow_ok + tally.whole().counts.slow_failed == 0 {
        assert!(shown.count(Count::Events) >= sum(|shard| shard.events));
    }
    let mut ended: BTreeMap<String, u64> = BTreeMap::new();
    for seen in &tally.whole().counts.outcomes {
        *ended.entry(seen.outcome.label()).or_default() += seen.count;
    }
    let of = |parts: &[Part]| {
        let mut labels: BTreeMap<String, u64> = BTreeMap::new();
        for (outcome, count) in parts.iter().flat_map(|part| shown.outcomes(*part)) {
            *labels.entry(Outcome::label(outcome)).or_default() += count;
        }
        labels
    };
    assert_eq!(of(&Part::ALL), ended);
    // A level without a window, as one that was broken off, is reported whole.
    let parts = if result.window.whole_level { &Part::ALL[..] } else { &[Part::Window] };
    assert_eq!(of(parts).values().sum::<u64>(), tally.window().counts.planned);
    let tokens = |of: fn(&Sums, Part) -> u64| parts.iter().map(|part| of(shown, *part)).sum::<u64>();
    assert_eq!(tokens(Sums::output_tokens), tally.window().tokens.output);
    assert_eq!(tokens(Sums::prompt_tokens), tally.window().tokens.prompt);
    let timings = [
        (Timing::Ttft as fn(Part) -> Timing, Metric::Ttft),
        (Timing::Tpot, Metric::Tpot),
        (Timing::Itl, Metric::Itl),
        (Timing::E2e, Metric::E2e),
    ];
    for (timing, metric) in timings {
        let parts: Vec<Timing> = parts.iter().map(|part| timing(*part)).collect();
        same(shown, &parts, std::iter::once(tally.histogram(metric)), metric.name());
    }
    same(shown, &[Timing::ScheduleDelay], shards.iter().map(|shard| &shard.schedule_delay), "schedule delay");
    same(shown, &[Timing::LoopLag], shards.iter().map(|shard| &shard.loop_lag), "loop lag");
}

/// The same sum, and as many values below each bound.
fn same<'a>(shown: &Sums, timings: &[Timing], stored: impl Iterator<Item = &'a Histogram>, what: &str) {
    let mut all = Histogram::new();
    stored.for_each(|histogram| all.merge(histogram));
    let sum: u64 = timings.iter().map(|timing| shown.times(*timing).sum_ns).sum();
    assert_eq!(u128::from(sum), all.totals().sum(), "{what}");
    let mut below = 0;
    for (place, bound) in BOUNDS_NS.iter().enumerate() {
        below += timings.iter().map(|timing| shown.times(*timing).counts[place]).sum::<u64>();
        let known: u64 =
            all.buckets().filter(|bucket| bucket.lowest <= *bound).map(|bucket| bucket.count).sum();
        assert_eq!(below, known, "{what} up to {bound} ns");
    }
    assert_eq!(timings.iter().map(|timing| shown.times(*timing).n()).sum::<u64>(), all.n(), "{what}");
}

fn closed(users: u32, units: u64) -> Level {
    Level {
        load: Load::closed(users),
        stop: Stop { units: Some(units), ..Stop::default() },
        ..Level::default()
    }
}

#[test]
fn counters_run_on_over_the_levels_and_are_the_sum_of_their_results() {
    let mut plan = plan_for(0);
    plan.target.models = vec!["mock-model".to_owned()];
    let levels: Vec<Level> = [1, 4].map(|users| Level { warmups: 3, ..closed(users, 40) }).into();
    let settings = Settings { serving: model::Settings::fixed(5.0, 1.0), ..Settings::default() };
    let (live, results) = simulate_levels(&plan, settings, &levels);
    let text = prometheus::page(&live.read(), &Course::default());
    let value = |line: &str| -> u64 {
        let mut lines = text.lines().filter_map(|there| there.strip_prefix(line)?.strip_prefix(' '));
        lines.next().unwrap_or_else(|| panic!("no {line} in {text}")).parse::<f64>().unwrap() as u64
    };
    let sum = |of: &dyn Fn(&LevelResult) -> u64| results.iter().map(of).sum::<u64>();
    let ok = sum(&|result| result.tally.window().counts.ok);
    assert_eq!(ok, 80);
    assert_eq!(value("tokload_requests_total{outcome=\"ok\",part=\"window\"}"), ok);
    assert_eq!(value("tokload_requests_sent_total"), ok);
    assert_eq!(value("tokload_warmup_requests_sent_total"), 6);
    let tokens = sum(&|result| result.tally.window().tokens.output);
    assert_eq!(value("tokload_output_tokens_total{part=\"window\"}"), tokens);
    for (name, metric) in [
        ("time_to_first_token", Metric::Ttft),
        ("time_per_output_token", Metric::Tpot),
        ("inter_token_latency", Metric::Itl),
        ("e2e_request_latency", Metric::E2e),
    ] {
        let n = sum(&|result| result.tally.histogram(metric).n());
        assert_eq!(value(&format!("tokload_{name}_seconds_count{{part=\"window\"}}")), n);
        assert_eq!(value(&format!("tokload_{name}_seconds_bucket{{part=\"window\",le=\"+Inf\"}}")), n);
    }
}

#[test]
fn the_ramp_of_a_long_level_is_shown_apart() {
    let level = Level {
        load: Load { arrivals: Arrivals::Constant { rate: 5.0 }, cap: None, users: None, think_s: 0.0 },
        stop: Stop { units: None, duration_s: Some(60.0), ..Stop::default() },
        warmups: 0,
        ..Level::default()
    };
    // Held to it in the rig; here only that there is something of both.
    let run = simulate_with(&plan_for(0), &level, |_| {});
    assert!(!run.result.window.whole_level);
    let (whole, window) = (run.result.tally.whole(), run.result.tally.window());
    assert!(whole.counts.planned > window.counts.planned && window.counts.ok > 0);
}

#[test]
fn shards_add_up_while_they_run_for_real() {
    let later = Fault::Answer(Answer::Status { status: 429, retry_after_s: None });
    let mock = mock(Faults { requests: vec![(When::EveryNth(7), later)], ..Faults::default() });
    let level = Level { warmups: 4, ..closed(6, 60) };
    let run = run_with(&plan_for(mock.address().port()), 2, &level, Interrupts::default());
    assert!(run.result.shards.iter().all(|shard| shard.sent > 0 && shard.loop_lag.n() > 0));
    assert!(run.result.tally.whole().counts.failed >= 8);
}

#[test]
fn nobody_is_shown_what_nobody_has_counted() {
    let shown = Live::new(3).read();
    assert_eq!((shown, Live::new(0).read()), (Sums::default(), Sums::default()));
}
