//! What a leg on one shard shows of itself while it runs, where anybody looks.

use std::sync::Arc;

use crate::metrics::live::{Count, Timing};
use crate::metrics::{Gaps, LiveShard, Phase, Record};
use crate::time::Stamp;

/// The hand that writes a shard's [`LiveShard`] during a leg; it does nothing where there is none.
#[derive(Debug, Default)]
pub(crate) struct Showing {
    live: Option<Arc<LiveShard>>,
    /// Warm-ups show that they are in flight, and nothing more.
    measures: bool,
    /// What was shown so far of counts that go on by themselves.
    read_bytes: u64,
    events: u64,
}

impl Showing {
    /// A leg of that phase; the shard has heard so many content events before.
    pub(crate) fn new(live: Option<Arc<LiveShard>>, phase: Phase, events: u64) -> Showing {
        Showing { live, measures: phase == Phase::Measured, read_bytes: 0, events }
    }

    pub(super) fn on_start(&self) {
        if let Some(live) = &self.live {
            live.count(Count::Started, 1);
            live.count(if self.measures { Count::Sent } else { Count::WarmUps }, 1);
        }
    }

    /// A request that was started has ended.
    pub(super) fn on_end(&self) {
        if let Some(live) = &self.live {
            live.count(Count::Ended, 1);
        }
    }

    /// A request has ended, or will never be sent.
    pub(super) fn on_done(&self, record: &Record, gaps: &Gaps, window_start: Stamp) {
        if let Some(live) = self.measured() {
            live.on_done(record, gaps, window_start);
        }
    }

    /// A request was started so late.
    pub(super) fn on_delay(&self, ns: u64) {
        if let Some(live) = self.measured() {
            live.time(Timing::ScheduleDelay, ns);
        }
    }

    /// A tick was seen so late: of several that passed unseen each has its own lag, as in the shard's own histogram.
    pub(super) fn on_lag(&self, ns: u64, interval: u64) {
        let Some(live) = self.measured() else { return };
        live.time(Timing::LoopLag, ns);
        let mut missing = ns.saturating_sub(interval);
        while interval > 0 && missing >= interval {
            live.time(Timing::LoopLag, missing);
            missing -= interval;
        }
    }

    /// Shows counts of which each read or event would be too much to tell: bytes of the leg, events of the shard.
    pub(crate) fn publish(&mut self, read_bytes: u64, events: u64) {
        if let Some(live) = self.measured() {
            live.count(Count::ReadBytes, read_bytes.saturating_sub(self.read_bytes));
            live.count(Count::Events, events.saturating_sub(self.events));
            (self.read_bytes, self.events) = (read_bytes, events);
        }
    }

    fn measured(&self) -> Option<&LiveShard> {
        self.live.as_deref().filter(|_| self.measures)
    }
}
