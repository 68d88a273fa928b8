//! How many requests were in flight: the step function over their lives.

use crate::metrics::Record;
use crate::run::Window;
use crate::summary::InFlight;
use crate::time::Stamp;

/// The step function over the lives `[start, end)` of `records`, whatever their outcome, within the window.
///
/// A request that was never taken in hand has no life: its start is its end.
pub(super) fn step_function<'a>(records: impl Iterator<Item = &'a Record>, window: &Window) -> InFlight {
    let mut steps: Vec<(Stamp, i64)> = Vec::new();
    for record in records.filter(|record| record.start < record.end) {
        steps.extend([(record.start, 1), (record.end, -1)]);
    }
    // Ends before starts at one stamp: a user's next request takes the place of the last.
    steps.sort_unstable();
    let mut inside = steps.iter().peekable();
    let mut open = 0_i64;
    while let Some((_, step)) = inside.next_if(|(at, _)| *at <= window.start) {
        open += step;
    }
    let (at_start, mut max, mut area, mut since) = (open, open, 0_i128, window.start);
    while let Some((at, step)) = inside.next_if(|(at, _)| *at < window.end) {
        area += i128::from(open) * i128::from(at.nanos_since(since));
        since = *at;
        open += step;
        max = max.max(open);
    }
    area += i128::from(open) * i128::from(window.end.nanos_since(since));
    while let Some((_, step)) = inside.next_if(|(at, _)| *at <= window.end) {
        open += step;
    }
    let length = window.nanos();
    InFlight {
        mean: if length == 0 { 0.0 } else { area as f64 / length as f64 },
        max: max as u64,
        at_start: at_start as u64,
        at_end: open as u64,
    }
}
