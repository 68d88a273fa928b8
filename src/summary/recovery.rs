//! What an overload did, and how long the server took to be as before: of the level that a stress test looks at.
//!
//! As before means: as slow as before, or quicker. The bounds are the 95th percentiles of TTFT and E2E under the normal
//! load at first, both from the planned send, so that whoever waited is slow. The server has recovered with the first
//! request behind the overload that keeps both bounds and is followed by requests of which no more miss them than chance
//! gives. So the time is known to the distance of two requests, and says so.

use serde::{Deserialize, Serialize};

use crate::metrics::slo::good;
use crate::metrics::{Class, Phase, Record, Slo};
use crate::plan::{Level, Stress, StressPhase};
use crate::stats::Quantile;
use crate::stats::quantile::nearest_rank;
use crate::time::Stamp;

/// Requests that are looked at together.
pub const TOGETHER: usize = 20;
/// How many of them may be beyond the 95th percentile of before: more come together in one of sixty cases.
const BEYOND_MAX: usize = 3;

/// A stress test, as its requests tell it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StressSummary {
    /// The normal load, requests per second.
    pub normal_s: f64,
    /// The overload, requests per second.
    pub overload_s: f64,
    /// What happened in each phase to the requests that were planned in it.
    pub phases: Vec<PhaseSummary>,
    /// 95th percentile of TTFT from the planned send under the normal load at first, ns; `None` without a value.
    pub ttft_before: Option<f64>,
    /// The same of E2E.
    pub e2e_before: Option<f64>,
    /// Whether and when it was as before.
    pub recovery: Recovery,
}

/// A phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PhaseSummary {
    /// Which.
    pub phase: StressPhase,
    /// Its beginning, s after the first planned send.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Requests planned in it.
    pub planned: u64,
    /// Those that ended well.
    pub ok: u64,
    /// Those that the server, or the way to it, failed.
    pub failed: u64,
    /// Those that took longer than the client waits, or were still open at the end.
    pub given_up: u64,
    /// Those that ended well and missed a limit.
    pub over_slo: u64,
    /// Median of TTFT from the planned send, ns; `None` without a value.
    pub ttft_p50: Option<f64>,
    /// Its 99th percentile.
    pub ttft_p99: Option<f64>,
    /// Median of E2E from the planned send, ns.
    pub e2e_p50: Option<f64>,
    /// Its 99th percentile.
    pub e2e_p99: Option<f64>,
    /// Most requests under way at once, those that waited for the cap included.
    pub under_way_max: u64,
}

/// Whether and when a server was as before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// From the end of the overload to the planned send of the first request that is served as before, s; `None`: not in the
    /// time that was watched.
    pub after_s: Option<f64>,
    /// How exactly that is known, s: the distance to the request before it.
    pub resolution_s: f64,
    /// How long the load was normal again, s.
    pub watched_s: f64,
    /// Requests planned between the overload's end and that one.
    pub requests: u64,
}

/// The stress test of a level, from its records; `None` where it is not the level that is looked at.
#[must_use]
pub fn of(
    stress: &Stress,
    (level, t0): (&Level, Stamp),
    records: &[Record],
    slo: &Slo,
) -> Option<StressSummary> {
    let phases = stress.phases(level)?;
    let at = |s: f64| Stamp::from_nanos(t0.as_nanos() + (s * 1e9).round() as u64);
    let mut measured: Vec<&Record> = records.iter().filter(|one| one.phase == Phase::Measured).collect();
    measured.sort_unstable_by_key(|one| (one.plan, one.index));
    let within = |(_, from, to): (StressPhase, f64, f64)| -> &[&Record] {
        let first = measured.partition_point(|one| one.plan < at(from));
        let end = measured.partition_point(|one| one.plan < at(to));
        &measured[first..end.max(first)]
    };
    let bound = |of: fn(&Record) -> Option<u64>| quantile(within(phases[0]), of, Quantile::P95);
    let (ttft_before, e2e_before) = (bound(ttft), bound(e2e));
    // What was planned behind the last phase, as an arrival on its very end, belongs to it.
    let last = (phases[3].0, phases[3].1, f64::from(u32::MAX));
    let (normal_s, overload_s) = rates(level)?;
    Some(StressSummary {
        normal_s,
        overload_s,
        phases: phases
            .iter()
            .map(|phase| {
                let own = within(if phase.0 == StressPhase::After { last } else { *phase });
                summary(*phase, own, &measured, (at(phase.1), at(phase.2)), slo)
            })
            .collect(),
        ttft_before,
        e2e_before,
        recovery: recovery(
            within(last),
            at(phases[3].1),
            (ttft_before, e2e_before),
            phases[3].2 - phases[3].1,
        ),
    })
}

fn rates(level: &Level) -> Option<(f64, f64)> {
    let pieces = &level.load.arrivals.series()?.pieces;
    Some((pieces.first()?.rate, pieces.get(2)?.rate))
}

fn recovery(after: &[&Record], from: Stamp, bounds: (Option<f64>, Option<f64>), watched_s: f64) -> Recovery {
    let keeps = |of: Option<u64>, bound: Option<f64>| match (of, bound) {
        (Some(value), Some(bound)) => value as f64 <= bound,
        _ => false,
    };
    let is_as_before = |one: &&Record| {
        one.outcome.is_ok() && keeps(e2e(one), bounds.1) && (bounds.0.is_none() || keeps(ttft(one), bounds.0))
    };
    let kept: Vec<bool> = after.iter().map(is_as_before).collect();
    // A cancelled request tells nothing.
    let recovered = (0..kept.len()).find(|place| {
        let next = &kept[*place..kept.len().min(place + TOGETHER)];
        // Of fewer, fewer may be beyond.
        let most = BEYOND_MAX * next.len() / TOGETHER;
        kept[*place] && next.iter().filter(|kept| !**kept).count() <= most
    });
    let seconds = |stamp: Stamp| stamp.nanos_since(from) as f64 / 1e9;
    let place = recovered.unwrap_or(0);
    let before = place.checked_sub(1).map_or(0.0, |place| seconds(after[place].plan));
    Recovery {
        after_s: recovered.map(|place| seconds(after[place].plan)),
        resolution_s: after.get(place).map_or(watched_s, |one| seconds(one.plan) - before),
        watched_s,
        requests: recovered.unwrap_or(kept.len()) as u64,
    }
}

fn summary(
    (phase, start_s, end_s): (StressPhase, f64, f64),
    own: &[&Record],
    all: &[&Record],
    (from, to): (Stamp, Stamp),
    slo: &Slo,
) -> PhaseSummary {
    let count = |of: &dyn Fn(&Record) -> bool| own.iter().filter(|one| of(one)).count() as u64;
    let is_given_up = |one: &Record| {
        matches!(
            one.outcome.class,
            Class::TimeoutConnect
                | Class::TimeoutFirst
                | Class::TimeoutGap
                | Class::TimeoutTotal
                | Class::Unfinished
        )
    };
    PhaseSummary {
        phase,
        start_s,
        end_s,
        planned: own.len() as u64,
        ok: count(&|one| one.outcome.is_ok()),
        failed: count(&|one| one.outcome.is_failure() && !is_given_up(one)),
        given_up: count(&is_given_up),
        over_slo: count(&|one| one.outcome.is_ok() && !slo.is_empty() && !good(one, slo, true)),
        ttft_p50: quantile(own, ttft, Quantile::P50),
        ttft_p99: quantile(own, ttft, Quantile::P99),
        e2e_p50: quantile(own, e2e, Quantile::P50),
        e2e_p99: quantile(own, e2e, Quantile::P99),
        under_way_max: under_way_max(all, from, to),
    }
}

/// Most requests between their planned sends and their ends at once within `[from, to)`.
fn under_way_max(all: &[&Record], from: Stamp, to: Stamp) -> u64 {
    let lives = all.iter().filter(|one| one.plan < to && one.end > from);
    let mut turns: Vec<(Stamp, i64)> =
        lives.flat_map(|one| [(one.plan.max(from), 1), (one.end.min(to), -1)]).collect();
    // Whoever ends goes before who comes.
    turns.sort_unstable();
    let mut now = 0;
    turns.into_iter().fold(0, |most, (_, turn)| {
        now += turn;
        most.max(now)
    }) as u64
}

fn ttft(one: &Record) -> Option<u64> {
    one.first.map(|first| first.nanos_since(one.plan))
}

fn e2e(one: &Record) -> Option<u64> {
    Some(one.last.unwrap_or(one.end).nanos_since(one.plan))
}

fn quantile(records: &[&Record], of: fn(&Record) -> Option<u64>, quantile: Quantile) -> Option<f64> {
    let ok = records.iter().filter(|one| one.outcome.is_ok());
    let mut values: Vec<u64> = ok.filter_map(|one| of(one)).collect();
    values.sort_unstable();
    nearest_rank(&values, quantile).map(|ns| ns as f64)
}
