//! The requests and events of a level as its numbers rest on them, for whoever takes other statistics of the same.

use crate::metrics::{Phase, Record};
use crate::plan::Timestamps;
use crate::run::Window;
use crate::summary::by_stamps;
use crate::summary::statistics::throughput;

/// The measured requests of a level, with the stamps that its latencies rest on.
#[derive(Clone, Debug)]
pub struct Observed {
    /// In the order of their planned sends.
    measured: Vec<Record>,
    window: Window,
}

/// What fell into a slice of the window, of requests that ended well.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Throughput {
    /// Requests that ended.
    pub requests: f64,
    /// Output tokens, by the time of their events.
    pub output_tokens: f64,
    /// Prompt tokens, by the time of the first event.
    pub prompt_tokens: f64,
}

impl Observed {
    /// Of all `records` of a level, in any order; those of the warm-up are left out. `window` is the one that is
    /// reported, `timestamps` what the latencies rest on.
    #[must_use]
    pub fn of(records: &[Record], window: Window, timestamps: Timestamps) -> Observed {
        let stamped = by_stamps::of(records, timestamps);
        let mut measured: Vec<Record> =
            stamped.iter().filter(|record| record.phase == Phase::Measured).copied().collect();
        measured.sort_by_key(|record| (record.plan, record.index));
        Observed { measured, window }
    }

    /// The requests planned in the window, in the order of their plans.
    #[must_use]
    pub fn population(&self) -> &[Record] {
        if self.window.whole_level {
            return &self.measured;
        }
        let before = |edge| self.measured.partition_point(|record| record.plan < edge);
        let (start, end) = (before(self.window.start), before(self.window.end));
        &self.measured[start..end.max(start)]
    }

    /// The window.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// What of the requests falls into each of `count` equal slices of the window, whoever planned it. Of a window that
    /// is the whole level, everything does.
    #[must_use]
    pub fn throughput(&self, count: usize) -> Vec<Throughput> {
        let amounts = throughput::amounts(self.measured.iter(), &self.window, count);
        let of = |slice: &crate::summary::rates::Amounts| Throughput {
            requests: slice.ok,
            output_tokens: slice.output,
            prompt_tokens: slice.prompt,
        };
        amounts.iter().map(of).collect()
    }
}
