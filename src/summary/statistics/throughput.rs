//! How well throughput is known: slices of the window, and batch means of them.

use crate::metrics::Record;
use crate::run::Window;
use crate::stats::BatchMeans;
use crate::summary::rates::Amounts;
use crate::summary::statistics::{Estimate, ThroughputStatistics};
use crate::time::Stamp;

/// Slices of a window: two for each of the batches.
const SLICES: usize = 2 * BatchMeans::BATCHES;

/// Of the events of `ok` requests in `window`, whoever planned them; `None` where none ended in it.
pub(super) fn of(measured: &[&Record], window: &Window) -> Option<ThroughputStatistics> {
    let amounts = amounts(measured.iter().copied(), window, SLICES);
    let ended: f64 = amounts.iter().map(|slice| slice.ok).sum();
    let slice_s = window.nanos() as f64 / 1e9 / SLICES as f64;
    if ended == 0.0 || slice_s == 0.0 {
        return None;
    }
    let estimate = |amount: fn(&Amounts) -> f64| {
        let rates: Vec<f64> = amounts.iter().map(|slice| amount(slice) / slice_s).collect();
        BatchMeans::of(&rates).as_ref().map(Estimate::of)
    };
    Some(ThroughputStatistics {
        req_s: estimate(|slice| slice.ok)?,
        out_tok_s: estimate(|slice| slice.output)?,
    })
}

/// What of the `ok` requests among `measured` falls into each of `count` equal slices of `window`.
pub(in crate::summary) fn amounts<'a>(
    measured: impl Iterator<Item = &'a Record>,
    window: &Window,
    count: usize,
) -> Vec<Amounts> {
    let slices = slices(window, count);
    let mut amounts = vec![Amounts::default(); count];
    for record in measured.filter(|record| record.outcome.is_ok()) {
        let last = record.last.unwrap_or(record.end);
        let (from, to) = (place(&slices, record.first.unwrap_or(record.end)), place(&slices, last));
        for (amounts, slice) in amounts[from..=to].iter_mut().zip(&slices[from..=to]) {
            amounts.add(record, slice);
        }
    }
    amounts
}

/// Equal slices, their edges rounded down to nanoseconds. What lies beyond a window that is the whole level belongs to
/// its first and last one.
fn slices(window: &Window, count: usize) -> Vec<Window> {
    let edge = |i: usize| match i {
        0 if window.whole_level => Stamp::ZERO,
        _ if window.whole_level && i == count => Stamp::MAX,
        _ => {
            let offset = u128::from(window.nanos()) * i as u128 / count as u128;
            // At most the window's length, which fits.
            Stamp::from_nanos(window.start.as_nanos() + offset as u64)
        }
    };
    (0..count).map(|i| Window { start: edge(i), end: edge(i + 1), whole_level: false }).collect()
}

/// The slice that holds `at`, or the nearest one.
fn place(slices: &[Window], at: Stamp) -> usize {
    slices[1..].partition_point(|slice| slice.start <= at)
}
