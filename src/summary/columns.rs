//! The values of many requests by metric, taken of several metrics in one walk over the records.
//!
//! A record is three lines of the cache, so that what a walk costs is to fetch them, not to compute.

use crate::metrics::Record;
use crate::metrics::metric::Metric;

/// Metrics of one walk, where there are many: what is kept of them is then at most three eighths of the records.
pub(super) const TOGETHER: usize = 11;

/// Each of `metrics` with the values of those of the `records` that have one, in their order.
pub(super) fn of<'r>(
    metrics: impl IntoIterator<Item = Metric>,
    records: impl Iterator<Item = &'r Record>,
) -> Vec<(Metric, Vec<f64>)> {
    // Room that nobody writes to is never fetched.
    let most = records.size_hint().1.unwrap_or(0);
    let empty = |metric| (metric, Vec::with_capacity(most));
    let mut columns: Vec<(Metric, Vec<f64>)> = metrics.into_iter().map(empty).collect();
    // A block stays in the nearest cache while one metric after the other is taken of it.
    let mut records = records.peekable();
    let mut block = Vec::with_capacity(BLOCK);
    while records.peek().is_some() {
        block.clear();
        block.extend(records.by_ref().take(BLOCK));
        for (metric, values) in &mut columns {
            metric.append_of(&block, values);
        }
    }
    columns
}

/// Records that are looked at together: 24 KiB.
const BLOCK: usize = 128;
