//! What a shard does on the side: it measures how late it is itself, follows the wall clock, and, on wish, wastes time.

use std::time::Duration;

use super::Shard;
use super::work::Work;
use crate::load::assemble::seconds;
use crate::plan::Burn;
use crate::sys::receive::WallStamp;
use crate::time::Stamp;

/// How often the loop's lag is measured.
pub(super) const TICK: Duration = Duration::from_millis(10);
/// How long a record stays with its shard at most: what a killed run loses of it.
pub(super) const HAND_OVER: Duration = Duration::from_millis(250);

impl Shard {
    /// Measures how late this turn of the loop sees its tick, and shows what goes on by itself.
    pub(super) fn tick(&mut self, work: &mut Work, now: Stamp) {
        if now < work.next_tick {
            return;
        }
        let tick_ns = TICK.as_nanos() as u64;
        let lag = now.nanos_since(work.next_tick);
        work.on_lag(lag, tick_ns);
        work.showing.publish(work.check.read_bytes, self.gauges.read().events);
        work.next_tick = work.next_tick + TICK * (lag / tick_ns + 1) as u32;
        if let Some(wall) = &mut self.wall {
            wall.look(self.pace.clock().now(), self.pace.clock().wall_offset());
        }
        if now >= work.next_flush {
            work.next_flush = now + HAND_OVER;
            self.flush_records(work);
        }
    }

    /// Where the kernel's stamp of a read at `now` lies on our time line, and what there is to note of it.
    #[inline]
    pub(super) fn kernel_stamp(&self, work: &mut Work, at: Option<WallStamp>, now: Stamp) -> Option<Stamp> {
        let wall = self.wall.as_ref()?;
        let Some(at) = at else {
            work.check.unstamped += 1;
            return None;
        };
        let at = wall.stamp(at);
        if at > now {
            // Bytes are not read before they arrive: the clocks are read one after the other.
            work.check.ahead += u64::from(at.nanos_since(now) > wall.error_ns());
            work.receive_lags.record(0, &mut work.check.receive_lag);
            return Some(now);
        }
        work.receive_lags.record(now.nanos_since(at), &mut work.check.receive_lag);
        Some(at)
    }

    /// Wastes time if the plan says so.
    pub(super) fn burn(&self, work: &mut Work) {
        let Some(Burn { ms, every_s }) = work.leg.burn else { return };
        let now = self.pace.clock().now();
        if now < work.next_burn {
            return;
        }
        work.next_burn = now + seconds(every_s);
        let until = now + seconds(ms / 1e3);
        while self.pace.clock().now() < until {
            std::hint::spin_loop();
        }
    }
}
