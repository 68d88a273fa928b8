//! The error budget: by how much the client itself may have falsified each metric of a level.
//!
//! With kernel stamps the error is measured: the same quantile of the same requests by both stamps, and what a kernel
//! stamp may itself be wrong by. Without them it is estimated from how late the client was with other things.

use serde::{Deserialize, Serialize};

use crate::metrics::Metric;
use crate::plan::Timestamps;
use crate::run::{LevelResult, ShardCheck};
use crate::stats::{Histogram, Quantile};
use crate::summary::{LevelSummary, QuantileValue};

/// The metrics that get an error figure.
pub const METRICS: [Metric; 6] =
    [Metric::Ttft, Metric::Ttfa, Metric::Tpot, Metric::Itl, Metric::Stall, Metric::E2e];

/// The client's error in one quantile of one metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClientError {
    /// The metric.
    pub metric: Metric,
    /// Which quantile: parts per 100 000.
    pub parts: u32,
    /// The quantile as reported, ns.
    pub value_ns: f64,
    /// The same by kernel stamps, over the requests that have both; `None` without them.
    pub kernel_ns: Option<f64>,
    /// By how much the reported value may be off through the client's doing, ns.
    pub error_ns: f64,
    /// Not measured, but estimated from the client's lateness elsewhere.
    pub estimated: bool,
}

/// What the shards of a level say of themselves, added up.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checks {
    /// See [`ShardCheck::schedule_delay`].
    pub schedule_delay: Histogram,
    /// See [`ShardCheck::loop_lag`].
    pub loop_lag: Histogram,
    /// See [`ShardCheck::receive_lag`].
    pub receive_lag: Histogram,
    /// See [`ShardCheck::queue_bytes`].
    pub queue_bytes: Histogram,
    /// See [`ShardCheck::rtt`].
    pub rtt: Histogram,
    /// The largest of the shards, ns.
    pub stamp_error_ns: u64,
    /// The largest step of the wall clock that any shard saw, ns.
    pub wall_step_ns: Option<i64>,
}

impl Checks {
    /// The sum over `shards`.
    #[must_use]
    pub fn of(shards: &[ShardCheck]) -> Checks {
        let mut all = Checks::default();
        for shard in shards {
            all.schedule_delay.merge(&shard.schedule_delay);
            all.loop_lag.merge(&shard.loop_lag);
            all.receive_lag.merge(&shard.receive_lag);
            all.queue_bytes.merge(&shard.queue_bytes);
            all.rtt.merge(&shard.rtt);
            all.stamp_error_ns = all.stamp_error_ns.max(shard.wall.error_ns);
            let steps = [all.wall_step_ns, shard.wall.step_ns].into_iter().flatten();
            all.wall_step_ns = steps.max_by_key(|step| step.unsigned_abs());
        }
        all
    }
}

/// The client's error in the median and the 99th percentile of each of [`METRICS`] that has a value, in their order;
/// empty for a level that was not really measured (virtual time has no error).
///
/// - Both stamps: |user quantile - kernel quantile| + the kernel stamp's own error.
/// - Latencies by kernel stamps: the kernel stamp's own error.
/// - Where events of one read are known by the stamp of the last alone, at least the distance to the farther bound.
/// - User stamps alone: the 99th percentile of loop lag plus that of schedule delay, estimated.
#[must_use]
pub fn client_errors(result: &LevelResult, summary: &LevelSummary) -> Vec<ClientError> {
    let checks = Checks::of(&result.shards);
    if checks.loop_lag.n() == 0 && checks.schedule_delay.n() == 0 {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for metric in METRICS {
        let Some(distribution) = summary.distribution(metric) else { continue };
        for quantile in [Quantile::P50, Quantile::P99] {
            let Some(value_ns) = distribution.quantile(quantile) else { continue };
            errors.push(client_error(&checks, summary, (metric, quantile), (value_ns, result.stamps.in_use)));
        }
    }
    errors
}

fn client_error(
    checks: &Checks,
    summary: &LevelSummary,
    (metric, quantile): (Metric, Quantile),
    (value_ns, timestamps): (f64, Timestamps),
) -> ClientError {
    let parts = quantile.parts();
    let own = checks.stamp_error_ns as f64;
    let pair = summary.stamp_pairs.iter().find(|pair| pair.metric == metric && pair.parts == parts);
    // Of events of one read only the last is known in time: the truth lies between the bounds.
    let gaps =
        if metric == Metric::Itl && timestamps == Timestamps::Both { Metric::ItlKernel } else { metric };
    let unknown = bounds_distance(summary, gaps, parts, value_ns);
    let measured = |kernel_ns, error_ns: f64| ClientError {
        metric,
        parts,
        value_ns,
        kernel_ns,
        error_ns: error_ns.max(unknown + own),
        estimated: false,
    };
    match (timestamps, pair) {
        (Timestamps::Kernel, _) => measured(None, own),
        (Timestamps::Both, Some(pair)) => {
            measured(Some(pair.kernel_ns), (pair.user_ns - pair.kernel_ns).abs() + own)
        }
        (Timestamps::Both | Timestamps::User, _) => {
            let p99 = |histogram: &Histogram| histogram.quantile(Quantile::P99).unwrap_or(0) as f64;
            let error_ns = p99(&checks.loop_lag) + p99(&checks.schedule_delay);
            ClientError { estimated: true, ..measured(None, error_ns) }
        }
    }
}

/// How far `value_ns` is from the farther bound of the quantile; 0 where there are none.
fn bounds_distance(summary: &LevelSummary, metric: Metric, parts: u32, value_ns: f64) -> f64 {
    let Some(bounds) = summary.distribution(metric).and_then(|d| d.bounds.as_ref()) else { return 0.0 };
    let distance = |side: &[QuantileValue]| {
        let bound = side.iter().find(|q| q.parts == parts).and_then(|q| q.value);
        bound.map_or(0.0, |bound| (value_ns - bound).abs())
    };
    distance(&bounds.low).max(distance(&bounds.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Gaps;
    use crate::metrics::{Flags, Outcome, Record, Tally};
    use crate::plan::{Level, Slo};
    use crate::run::{Span, Stamps, WallCheck, Window};
    use crate::summary::{self, Input};
    use crate::time::Stamp;

    /// A hundred answers whose first token came after 1..=100 ms and was read `late_ms(i)` later.
    fn measured(late_ms: impl Fn(u64) -> u64, in_use: Timestamps) -> Vec<ClientError> {
        measured_with(late_ms, Flags::default(), in_use)
    }

    fn measured_with(late_ms: impl Fn(u64) -> u64, flags: Flags, in_use: Timestamps) -> Vec<ClientError> {
        let at = Stamp::from_millis;
        let mut tally = Tally::new(Stamp::ZERO);
        let mut records = Vec::new();
        for i in 1..=100 {
            let mut record = Record::planned(i, Stamp::ZERO);
            (record.outcome, record.flags) = (Outcome::ok(200), flags);
            (record.first, record.kernel_first) = (Some(at(i + late_ms(i))), Some(at(i)));
            (record.last, record.kernel_last) = (record.first, record.kernel_first);
            record.end = at(i + late_ms(i));
            record.events = 1;
            let none = Gaps::default();
            tally.on_done(&record, &none, &none, Stamp::ZERO);
            records.push(record);
        }
        let mut shard =
            ShardCheck { wall: WallCheck { error_ns: 1_000, step_ns: None }, ..Default::default() };
        shard.loop_lag.record(3_000_000);
        shard.schedule_delay.record(2_000_000);
        let result = LevelResult {
            slices: None,
            replicas: Vec::new(),
            ordinal: 0,
            level: Level::default(),
            span: Span { t0: Stamp::ZERO, t1: at(0), t2: at(200) },
            window: Window { start: Stamp::ZERO, end: at(200), whole_level: true },
            tally,
            records: None,
            shards: vec![shard],
            host: None,
            stamps: Stamps { in_use, why_not: None },
            examples: Vec::new(),
            lengthened: None,
            judged: None,
            interrupted: false,
        };
        let summary = summary::level(&Input::new(&result, Some(&records), Slo::default()));
        client_errors(&result, &summary)
    }

    fn ttft_p99(errors: &[ClientError]) -> ClientError {
        *errors.iter().find(|error| error.metric == Metric::Ttft && error.parts == 99_000).unwrap()
    }

    #[test]
    fn with_both_stamps_the_error_is_their_difference_and_the_stamps_own() {
        let error = ttft_p99(&measured(|i| if i >= 98 { 40 } else { 0 }, Timestamps::Both));
        assert_eq!((error.value_ns, error.kernel_ns), (139e6, Some(99e6)));
        assert_eq!((error.error_ns, error.estimated), (40e6 + 1e3, false));
        // Lateness that leaves the quantile where it is is no error of the quantile.
        let error = ttft_p99(&measured(|i| u64::from(i < 50), Timestamps::Both));
        assert_eq!(error.error_ns, 1e3);
    }

    #[test]
    fn two_stamps_of_a_read_that_joined_first_events_agree_on_what_neither_knows() {
        // Everything came at the end of a read after i ms: the first event may have come at any time since the send.
        for in_use in [Timestamps::Both, Timestamps::Kernel] {
            let error = ttft_p99(&measured_with(|_| 0, Flags::FIRST_COALESCED, in_use));
            assert_eq!((error.value_ns, error.error_ns, error.estimated), (99e6, 99e6 + 1e3, false));
        }
    }

    #[test]
    fn latencies_by_kernel_stamps_have_the_stamps_error_alone() {
        let error = ttft_p99(&measured(|_| 40, Timestamps::Kernel));
        assert_eq!((error.value_ns, error.error_ns, error.estimated), (99e6, 1e3, false));
    }

    #[test]
    fn without_kernel_stamps_the_error_is_estimated_from_the_clients_lateness() {
        let error = ttft_p99(&measured(|_| 40, Timestamps::User));
        assert_eq!((error.value_ns, error.kernel_ns, error.estimated), (139e6, None, true));
        let (lag, delay) = (Histogram::bucket_of(3_000_000), Histogram::bucket_of(2_000_000));
        let expected = Histogram::bucket_highest(lag) + Histogram::bucket_highest(delay);
        assert_eq!(error.error_ns, expected as f64);
    }
}
