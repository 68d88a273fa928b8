//! How well throughput is known: slices of the window, and batch means of them.

use crate::metrics::Record;
use crate::run::Window;
use crate::stats::BatchMeans;
use crate::summary::rates::output_tokens_in;
use crate::summary::statistics::{Estimate, ThroughputStatistics};
use crate::time::Stamp;

/// Slices of a window: two for each of the batches.
const SLICES: usize = 2 * BatchMeans::BATCHES;

/// Of the events of `ok` requests in `window`, whoever planned them; `None` where none ended in it.
pub(super) fn of(measured: &[&Record], window: &Window) -> Option<ThroughputStatistics> {
    let slices = slices(window);
    let (mut requests, mut tokens) = ([0.0; SLICES], [0.0; SLICES]);
    let ok = measured.iter().filter(|record| record.outcome.is_ok());
    for record in ok {
        let last = record.last.unwrap_or(record.end);
        let (from, to) = (place(&slices, record.first.unwrap_or(record.end)), place(&slices, last));
        if slices[to].contains(last) {
            requests[to] += 1.0;
        }
        for (tokens, slice) in tokens[from..=to].iter_mut().zip(&slices[from..=to]) {
            *tokens += output_tokens_in(record, slice);
        }
    }
    let ended: f64 = requests.iter().sum();
    let slice_s = window.nanos() as f64 / 1e9 / SLICES as f64;
    if ended == 0.0 || slice_s == 0.0 {
        return None;
    }
    let estimate = |amounts: [f64; SLICES]| {
        let rates = amounts.map(|amount| amount / slice_s);
        BatchMeans::of(&rates).as_ref().map(Estimate::of)
    };
    Some(ThroughputStatistics { req_s: estimate(requests)?, out_tok_s: estimate(tokens)? })
}

/// Equal slices, their edges rounded down to nanoseconds. What lies beyond a window that is the whole level belongs to
/// its first and last one.
fn slices(window: &Window) -> Vec<Window> {
    let edge = |i: usize| match i {
        0 if window.whole_level => Stamp::ZERO,
        SLICES if window.whole_level => Stamp::MAX,
        _ => {
            let offset = u128::from(window.nanos()) * i as u128 / SLICES as u128;
            // At most the window's length, which fits.
            Stamp::from_nanos(window.start.as_nanos() + offset as u64)
        }
    };
    (0..SLICES).map(|i| Window { start: edge(i), end: edge(i + 1), whole_level: false }).collect()
}

/// The slice that holds `at`, or the nearest one.
fn place(slices: &[Window], at: Stamp) -> usize {
    slices[1..].partition_point(|slice| slice.start <= at)
}
