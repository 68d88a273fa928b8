//! The wall clock, which kernel stamps are in, followed on the run's time line.
//!
//! Pure: looks at the clock are handed in. Between two looks the offset is taken as constant, so a clock that is being
//! slewed misplaces a stamp by little, which is kept as its error; a clock that was set makes stamps worthless, which
//! is said.

use std::time::Duration;

use crate::run::WallCheck;
use crate::sys::clock::WallOffset;
use crate::sys::receive::WallStamp;
use crate::time::Stamp;

/// What two looks may differ by beyond slewing: a look that was interrupted.
const UNSURE: Duration = Duration::from_micros(20);
/// Clocks are slewed by half a thousandth at most where the kernel does it. Twice that is taken for a step.
const SLEW_PARTS: u64 = 1000;
/// A look that took longer than twice this was interrupted; the next one will do.
const POOR_ERROR: Duration = Duration::from_micros(5);
/// For how long a poor look is passed over.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where the wall clock stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wall {
    offset: WallOffset,
    looked_at: Stamp,
    check: WallCheck,
}

impl Wall {
    /// The wall clock as it was seen at `now`.
    pub(super) fn new(now: Stamp, offset: WallOffset) -> Wall {
        let check = WallCheck { error_ns: offset.error_ns, step_ns: None };
        Wall { offset, looked_at: now, check }
    }

    /// Another look. The difference to the last one is slewing, or a step.
    pub(super) fn look(&mut self, now: Stamp, offset: WallOffset) {
        let passed = now.nanos_since(self.looked_at);
        if offset.error_ns > POOR_ERROR.as_nanos() as u64 && passed < PATIENCE.as_nanos() as u64 {
            return;
        }
        let change = offset.wall_minus_run_ns.saturating_sub(self.offset.wall_minus_run_ns);
        let unsure = UNSURE.as_nanos() as u64 + self.offset.error_ns + offset.error_ns;
        if change.unsigned_abs() > passed / SLEW_PARTS + unsure {
            let larger = self.check.step_ns.is_none_or(|step| step.unsigned_abs() < change.unsigned_abs());
            self.check.step_ns = if larger { Some(change) } else { self.check.step_ns };
        } else {
            let error = change.unsigned_abs() + offset.error_ns;
            self.check.error_ns = self.check.error_ns.max(error);
        }
        (self.offset, self.looked_at) = (offset, now);
    }

    /// Where a kernel stamp lies on the run's time line.
    #[inline]
    pub(super) fn stamp(&self, at: WallStamp) -> Stamp {
        self.offset.stamp(at)
    }

    /// What a kernel stamp may be wrong by without anybody being at fault, ns.
    pub(super) fn error_ns(&self) -> u64 {
        self.check.error_ns
    }

    /// What was seen since the last call.
    pub(super) fn take_check(&mut self) -> WallCheck {
        let fresh = WallCheck { error_ns: self.offset.error_ns, step_ns: None };
        std::mem::replace(&mut self.check, fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offset(wall_minus_run_ns: i64) -> WallOffset {
        WallOffset { wall_minus_run_ns, error_ns: 30 }
    }

    #[test]
    fn a_slewed_clock_costs_certainty_and_no_more() {
        let mut wall = Wall::new(Stamp::ZERO, offset(1_000));
        wall.look(Stamp::from_millis(10), offset(1_000 + 5_000));
        assert_eq!(wall.stamp(WallStamp(7_000)), Stamp::from_nanos(1_000));
        assert_eq!(wall.take_check(), WallCheck { error_ns: 5_030, step_ns: None });
        assert_eq!(wall.take_check(), WallCheck { error_ns: 30, step_ns: None });
    }

    #[test]
    fn a_clock_that_was_set_is_noticed_and_the_largest_step_kept() {
        let mut wall = Wall::new(Stamp::ZERO, offset(0));
        wall.look(Stamp::from_millis(10), offset(100_000));
        wall.look(Stamp::from_millis(20), offset(-900_000));
        wall.look(Stamp::from_millis(30), offset(-800_000));
        assert_eq!(wall.take_check(), WallCheck { error_ns: 30, step_ns: Some(-1_000_000) });
    }

    #[test]
    fn what_is_slewing_depends_on_the_time_between_looks() {
        let mut wall = Wall::new(Stamp::ZERO, offset(0));
        wall.look(Stamp::from_millis(1000), offset(500_000));
        assert_eq!(wall.take_check().step_ns, None);
        wall.look(Stamp::from_millis(1010), offset(1_000_000));
        assert_eq!(wall.take_check().step_ns, Some(500_000));
    }

    #[test]
    fn a_look_that_was_interrupted_is_passed_over_for_a_while() {
        let mut wall = Wall::new(Stamp::ZERO, offset(0));
        let poor = WallOffset { wall_minus_run_ns: 400_000, error_ns: 400_000 };
        wall.look(Stamp::from_millis(10), poor);
        assert_eq!(wall.stamp(WallStamp(5)), Stamp::from_nanos(5));
        wall.look(Stamp::from_millis(1010), poor);
        assert_eq!(wall.take_check(), WallCheck { error_ns: 800_000, step_ns: None });
    }
}
