//! What a shard shows while it measures: relaxed counters that only it writes.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::metrics::{Class, Outcome};

/// One shard's counters, alone on their cache line so that readers do not slow the writer.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Gauges {
    sent: AtomicU64,
    ok: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    events: AtomicU64,
}

/// A reading of the gauges, or the sum of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Requests started.
    pub sent: u64,
    /// Requests ended well.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests given up as planned.
    pub cancelled: u64,
    /// Content events.
    pub events: u64,
}

impl Gauges {
    /// Counts a start.
    pub(crate) fn on_sent(&self) {
        bump(&self.sent);
    }

    /// Counts an end.
    pub(crate) fn on_done(&self, outcome: Outcome) {
        bump(match outcome.class {
            Class::Ok => &self.ok,
            Class::Cancelled => &self.cancelled,
            _ => &self.failed,
        });
    }

    /// Counts a content event.
    #[inline]
    pub(crate) fn on_event(&self) {
        bump(&self.events);
    }

    /// The counters now; each is exact, together they may be a moment apart.
    #[must_use]
    pub(crate) fn read(&self) -> Reading {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Reading {
            sent: of(&self.sent),
            ok: of(&self.ok),
            failed: of(&self.failed),
            cancelled: of(&self.cancelled),
            events: of(&self.events),
        }
    }
}

impl Reading {
    /// Requests in flight.
    #[must_use]
    pub(crate) fn in_flight(&self) -> u64 {
        self.sent.saturating_sub(self.ok + self.failed + self.cancelled)
    }
}

impl std::iter::Sum for Reading {
    fn sum<I: Iterator<Item = Reading>>(readings: I) -> Reading {
        readings.fold(Reading::default(), |a, b| Reading {
            sent: a.sent + b.sent,
            ok: a.ok + b.ok,
            failed: a.failed + b.failed,
            cancelled: a.cancelled + b.cancelled,
            events: a.events + b.events,
        })
    }
}

/// One writer: a load and a store, not a locked addition.
#[inline]
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
}
