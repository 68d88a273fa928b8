//! Records by one kind of stamps or the other, and what the two say of the same requests.

use std::borrow::Cow;

use crate::metrics::metric::Metric;
use crate::metrics::{Record, Tally};
use crate::plan::Timestamps;
use crate::stats::quantile::nearest_rank;
use crate::stats::{Quantile, sort};
use crate::summary::StampPair;

/// Metrics of a request that rest on the stamps of content events.
const STAMPED: [Metric; 8] = [
    Metric::Ttft,
    Metric::Ttfa,
    Metric::E2e,
    Metric::Tpot,
    Metric::Stall,
    Metric::TtftPlan,
    Metric::TtfaPlan,
    Metric::E2ePlan,
];
const QUANTILES: [Quantile; 2] = [Quantile::P50, Quantile::P99];

/// The records with the stamps that their latencies are to rest on.
pub(super) fn of(records: &[Record], timestamps: Timestamps) -> Cow<'_, [Record]> {
    match timestamps {
        Timestamps::Both => Cow::Borrowed(records),
        Timestamps::Kernel => records.iter().map(|one| one.by_kernel().unwrap_or(*one)).collect(),
        Timestamps::User if records.iter().all(|record| record.kernel_first.is_none()) => {
            Cow::Borrowed(records)
        }
        Timestamps::User => records.iter().map(Record::without_kernel).collect(),
    }
}

/// The stamped metrics of the requests that have both stamps, by each.
pub(super) fn pairs<'a>(
    ok: impl Iterator<Item = &'a Record> + Clone,
    timestamps: Timestamps,
) -> Vec<StampPair> {
    if timestamps != Timestamps::Both {
        return Vec::new();
    }
    let mut pairs = Vec::new();
    for (metric, mut user, mut kernel) in STAMPED.chunks(TOGETHER).flat_map(|some| columns(some, ok.clone()))
    {
        sort::values(&mut user);
        sort::values(&mut kernel);
        for quantile in QUANTILES {
            if let (Some(user_ns), Some(kernel_ns)) =
                (nearest_rank(&user, quantile), nearest_rank(&kernel, quantile))
            {
                pairs.push(StampPair { metric, parts: quantile.parts(), user_ns, kernel_ns });
            }
        }
    }
    pairs
}

/// Each of `metrics` by user and by kernel stamps, of the requests that have both, in their order.
fn columns<'a>(
    metrics: &[Metric],
    ok: impl Iterator<Item = &'a Record>,
) -> Vec<(Metric, Vec<f64>, Vec<f64>)> {
    let mut columns: Vec<_> = metrics.iter().map(|metric| (*metric, Vec::new(), Vec::new())).collect();
    for (by_user, by_kernel) in ok.filter_map(|record| Some((record, record.by_kernel()?))) {
        for (metric, user, kernel) in &mut columns {
            if let (Some(a), Some(b)) = (metric.of(by_user), metric.of(&by_kernel)) {
                user.push(a);
                kernel.push(b);
            }
        }
    }
    columns
}

/// Metrics of one walk over the records: what is kept of them is then a fifth of these.
const TOGETHER: usize = 4;

/// The same of metrics that a tally has by both stamps.
pub(super) fn pairs_of(tally: &Tally, metrics: &[(Metric, Metric)]) -> Vec<StampPair> {
    let mut pairs = Vec::new();
    for (metric, by_kernel) in metrics {
        for quantile in QUANTILES {
            let at = |metric: Metric| tally.histogram(metric).quantile(quantile);
            if let (Some(user), Some(kernel)) = (at(*metric), at(*by_kernel)) {
                let (user_ns, kernel_ns) = (user as f64, kernel as f64);
                pairs.push(StampPair { metric: *metric, parts: quantile.parts(), user_ns, kernel_ns });
            }
        }
    }
    pairs
}
