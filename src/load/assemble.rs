//! From the reports of a leg's shards to the result of a level: its marks, its window, everything added up.

use std::time::Duration;

use crate::load::leg::ShardReport;
use crate::load::spool::Spool;
use crate::load::until::{Reach, Watched};
use crate::metrics::{Slices, Tally};
use crate::plan::{Arrivals, Level, Plan, SteadyCut, Timestamps};
use crate::run::{Example, HostCheck, LevelResult, RecordRange, ShardCheck, Span, Stamps, Window};
use crate::time::Stamp;

/// Levels planned at least this long have their ramp cut off and end with the planned length.
const WINDOWED: Duration = Duration::from_secs(60);
/// The shortest cut.
const CUT_MIN: Duration = Duration::from_secs(10);

/// The reports of all shards that took part in a leg.
pub(crate) struct LegOutcome {
    /// The common start.
    pub(crate) start: Stamp,
    /// The ramp that was cut off.
    pub(crate) cut: Duration,
    pub(crate) reports: Vec<ShardReport>,
    /// What became of it, if its length depended on what came.
    pub(crate) watched: Option<Watched>,
    /// Ended early by the user.
    pub(crate) interrupted: bool,
    /// The names of the replicas that answered.
    pub(crate) replicas: Vec<String>,
}

/// What a level's result holds beside the shards' reports.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub(crate) records: Option<RecordRange>,
    pub(crate) slices: Option<Slices>,
    pub(crate) host: Option<HostCheck>,
    /// Which stamps were taken.
    pub(crate) stamps: Stamps,
}

impl LegOutcome {
    /// It did not go as far as it was to go: the user ended it, or its outcome was certain before.
    fn is_broken_off(&self) -> bool {
        let stopped = |watched: Watched| watched.judged.is_some_and(|judged| judged.stopped_early);
        self.interrupted || self.watched.is_some_and(stopped)
    }
}

/// The result of the level at place `ordinal`.
pub(crate) fn level_result(
    ordinal: usize,
    level: &Level,
    outcome: LegOutcome,
    beside: Beside,
) -> LevelResult {
    let span = span(&outcome, level);
    let broken_off = outcome.is_broken_off();
    let window = if is_windowed(level) && !broken_off {
        Window { start: span.t0 + outcome.cut, end: span.t1, whole_level: false }
    } else {
        Window { start: span.t0, end: span.t2, whole_level: true }
    };
    let mut tally = Tally::new(span.t0);
    let mut examples: Vec<Example> = Vec::new();
    for report in &outcome.reports {
        tally.merge(&report.tally);
        for example in &report.examples {
            if examples.iter().all(|known| known.outcome != example.outcome) {
                examples.push(example.clone());
            }
        }
    }
    if is_windowed(level) && broken_off {
        tally.include_early();
    }
    let shards: Vec<ShardCheck> = outcome.reports.into_iter().map(|report| report.check).collect();
    let judged_by_kernel = beside.stamps.in_use == Timestamps::Kernel;
    let stamps = stamps(beside.stamps, &shards);
    if stamps.in_use == Timestamps::User {
        tally.forget_kernel_stamps(judged_by_kernel);
    }
    LevelResult {
        ordinal,
        level: level.clone(),
        span,
        window,
        tally,
        slices: beside.slices,
        records: beside.records,
        shards,
        host: beside.host,
        stamps,
        examples,
        lengthened: outcome.watched.and_then(|watched| watched.lengthened),
        judged: outcome.watched.and_then(|watched| watched.judged),
        interrupted: outcome.interrupted,
        replicas: outcome.replicas,
    }
}

/// The records of a level from `first` up to `end`, where any are kept.
pub(crate) fn range(spool: Option<&Spool>, first: u64, end: u64) -> Option<RecordRange> {
    spool.filter(|spool| spool.keeps_records()).map(|_| RecordRange { first, count: end - first })
}

/// What the latencies of a level rest on: kernel stamps are worth nothing if the wall clock was set while they were
/// taken, or if the kernel gave none.
fn stamps(asked: Stamps, shards: &[ShardCheck]) -> Stamps {
    if asked.in_use == Timestamps::User {
        return asked;
    }
    let step_ns = shards.iter().filter_map(|shard| shard.wall.step_ns).max_by_key(|step| step.unsigned_abs());
    let given: u64 = shards.iter().map(|shard| shard.receive_lag.n()).sum();
    let missing: u64 = shards.iter().map(|shard| shard.unstamped).sum();
    let why_not = match step_ns {
        Some(step) => format!(
            "the wall clock was set by {:+.3} ms during the level: its kernel stamps are void",
            step as f64 / 1e6
        ),
        None if given == 0 && missing > 0 => "the kernel stamped none of the reads".to_owned(),
        None => return asked,
    };
    Stamps { in_use: Timestamps::User, why_not: Some(why_not) }
}

/// Whether this process sends any of a level's warm-up requests: they are dealt to shares as those of the level are.
pub(crate) fn warms_up(plan: &Plan, level: &Level) -> bool {
    plan.own_share().count_u32(warm_up_users(level)) > 0
}

/// Users who send a level's warm-up requests, over all shares: as many as the level has in flight.
pub(crate) fn warm_up_users(level: &Level) -> u32 {
    level.load.users.or(level.load.cap).unwrap_or(level.warmups).min(level.warmups)
}

fn is_windowed(level: &Level) -> bool {
    let long = level.stop.duration_s.is_some_and(|s| seconds(s) >= WINDOWED);
    // A trace may be over long before its planned length, and has a shape of its own from its first request on, as has a
    // rate over time.
    let shaped = level.load.speedup().is_some() || level.load.has_own_shape();
    // Of a ramp of the rate that takes most of the level nobody asks for what comes after.
    let ramp =
        level.load.users.is_none() && level.load.lead_in_s() > level.stop.duration_s.unwrap_or(0.0) / 2.0;
    long && level.stop.units.is_none() && level.load.arrivals != Arrivals::Burst && !shaped && !ramp
}

/// The ramp to cut off a level with a window: 10 s, a tenth of the level, or twice the median E2E of the warm-up,
/// whichever is longest, but at most half of the level; nothing of other levels, and nothing where the plan says so.
///
/// What leads in to the load that was asked for, as users who come in one after another, is cut off as a whole, however
/// long it is: only at its end are all in flight. Twice the median E2E come on top, for the last of them.
///
/// A cut by MSER-5 is known when the level is over, and moves the window then; until then it is this one.
///
/// The measurement spec takes the E2E of the level itself. That is known only at its end, and gaps are pooled as
/// requests end; so the cut is fixed before the level from the warm-up, which runs at the same concurrency.
pub(crate) fn cut(level: &Level, rule: SteadyCut, warm_up: &[ShardReport]) -> Duration {
    if !is_windowed(level) || rule == SteadyCut::None {
        return Duration::ZERO;
    }
    let mut warm_e2e_ns: Vec<u64> = warm_up.iter().flat_map(|report| &report.e2e_ns).copied().collect();
    let length = level.stop.duration_s.map_or(Duration::ZERO, seconds);
    warm_e2e_ns.sort_unstable();
    let median = warm_e2e_ns.get(warm_e2e_ns.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    let twice = Duration::from_nanos(median.saturating_mul(2));
    let lead_in = seconds(level.load.lead_in_s());
    CUT_MIN.max(length / 10).max(lead_in.saturating_add(twice)).min(length / 2).max(lead_in)
}

fn span(outcome: &LegOutcome, level: &Level) -> Span {
    let t0 = outcome.start;
    let last_plan = outcome.reports.iter().filter_map(|report| report.last_plan).max().unwrap_or(t0);
    let planned = Reach::of(level).length;
    let length = outcome.watched.map_or(planned, |watched| watched.reach.length);
    // A trace may be over before the time is.
    let by_time = level.stop.units.is_none() && !outcome.is_broken_off() && level.load.speedup().is_none();
    let t1 = if by_time && length != Duration::MAX { t0 + length } else { last_plan };
    let last_end = outcome.reports.iter().filter_map(|report| report.last_end).max().unwrap_or(t1);
    Span { t0, t1, t2: last_end.max(t1) }
}

pub(crate) fn records(reports: &[ShardReport]) -> u64 {
    reports.iter().map(|report| report.records).sum()
}

/// A span in seconds as a duration; below zero it is none, beyond all bounds it is for ever.
pub(crate) fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s.max(0.0)).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Load, Stop};
    use crate::run::{Lengthened, WallCheck};

    fn level(duration_s: Option<f64>, units: Option<u64>) -> Level {
        Level {
            load: Load::closed(2),
            stop: Stop { units, duration_s, grace_s: 30.0 },
            warmups: 0,
            ..Level::default()
        }
    }

    fn report(e2e_ms: &[u64]) -> ShardReport {
        ShardReport {
            tally: Tally::default(),
            check: Default::default(),
            examples: Vec::new(),
            records: 0,
            last_plan: Some(Stamp::from_millis(1500)),
            last_end: Some(Stamp::from_millis(2500)),
            e2e_ns: e2e_ms.iter().map(|ms| ms * 1_000_000).collect(),
            observations: Vec::new(),
        }
    }

    #[test]
    fn only_long_levels_bounded_by_time_have_a_window() {
        assert!(is_windowed(&level(Some(60.0), None)));
        assert!(!is_windowed(&level(Some(59.9), None)));
        assert!(!is_windowed(&level(Some(600.0), Some(10))));
        assert!(!is_windowed(&level(None, Some(10))));
        let burst = Load { arrivals: Arrivals::Burst, cap: None, users: None, think_s: 0.0 };
        assert!(!is_windowed(&Level { load: burst, ..level(Some(60.0), None) }));
        let arrivals = Arrivals::Trace { speedup: 1.0 };
        let trace = Load { arrivals, cap: None, users: None, think_s: 0.0 };
        let trace = Level { load: trace, ..level(Some(600.0), None) };
        assert!(!is_windowed(&trace) && cut(&trace, SteadyCut::Default, &[]) == Duration::ZERO);
    }

    #[test]
    fn the_cut_is_the_longest_of_three_and_at_most_half() {
        let by = |rule, length, e2e: &[u64]| cut(&level(Some(length), None), rule, &[report(e2e)]);
        let cut = |length, e2e: &[u64]| by(SteadyCut::Default, length, e2e).as_secs_f64();
        assert_eq!(cut(60.0, &[]), 10.0);
        assert_eq!(cut(300.0, &[1000]), 30.0);
        assert_eq!(cut(60.0, &[9000, 8000, 100]), 16.0);
        assert_eq!(cut(60.0, &[100_000]), 30.0);
        assert_eq!(by(SteadyCut::Mser5, 300.0, &[1000]), Duration::from_secs(30));
        assert_eq!(by(SteadyCut::None, 300.0, &[1000]), Duration::ZERO);
    }

    #[test]
    fn a_clock_that_was_set_or_a_silent_kernel_voids_the_kernel_stamps() {
        let both = || Stamps { in_use: Timestamps::Both, why_not: None };
        let mut good = ShardCheck::default();
        good.receive_lag.record(5_000);
        assert_eq!(stamps(both(), std::slice::from_ref(&good)), both());
        let set =
            |step_ns| ShardCheck { wall: WallCheck { error_ns: 0, step_ns: Some(step_ns) }, ..good.clone() };
        let void = stamps(both(), &[good.clone(), set(2_000_000), set(-3_500_000)]);
        assert_eq!(void.in_use, Timestamps::User);
        assert!(void.why_not.unwrap().contains("-3.500 ms"));
        let silent = ShardCheck { unstamped: 3, ..ShardCheck::default() };
        assert_eq!(stamps(both(), std::slice::from_ref(&silent)).in_use, Timestamps::User);
        assert_eq!(stamps(both(), &[good.clone(), silent]), both());
        let user = Stamps { in_use: Timestamps::User, why_not: None };
        assert_eq!(stamps(user.clone(), &[set(1)]), user);
    }

    #[test]
    fn a_level_ends_with_its_planned_length_or_its_last_plan() {
        let outcome = |interrupted| LegOutcome {
            replicas: Vec::new(),
            start: Stamp::from_millis(1000),
            cut: Duration::ZERO,
            reports: vec![report(&[])],
            watched: None,
            interrupted,
        };
        let ms = Stamp::from_millis;
        let by_time = level(Some(1.0), None);
        assert_eq!(span(&outcome(false), &by_time), Span { t0: ms(1000), t1: ms(2000), t2: ms(2500) });
        assert_eq!(span(&outcome(true), &by_time).t1, ms(1500));
        assert_eq!(span(&outcome(false), &level(None, Some(5))).t1, ms(1500));
        let to = |length_s| {
            let lengthened = Lengthened { times: 4, reached: true, value: None, low: None, high: None };
            let reach = Reach { units: u64::MAX, length: Duration::from_secs(length_s) };
            let watched = Watched { reach, lengthened: Some(lengthened), judged: None };
            LegOutcome { watched: Some(watched), ..outcome(false) }
        };
        assert_eq!(span(&to(4), &by_time), Span { t0: ms(1000), t1: ms(5000), t2: ms(5000) });
    }
}
