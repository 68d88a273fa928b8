//! Things to do at an exact time: users who go away, slow readers who may read again.
//!
//! Unlike deadlines, which are limits and may be passed by a tenth of a second, these are planned as sends are. An alarm
//! is not called off: whoever set it knows its request by a number, and passes over those that have ended.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::Stamp;

/// Alarms by time; those of one time in no order of their own.
#[derive(Debug, Default)]
pub(crate) struct Alarms {
    heap: BinaryHeap<Reverse<(Stamp, u32, u32, Bell)>>,
}

/// What an alarm is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bell {
    /// The user goes away.
    Leave,
    /// The user may read again.
    Read,
}

/// An alarm that went off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rung {
    /// The slot of the request that it was set for.
    pub slot: usize,
    /// How often the slot had been used then.
    pub uses: u32,
    /// What for.
    pub bell: Bell,
}

impl Alarms {
    /// Sets an alarm at `at`.
    pub(crate) fn set(&mut self, at: Stamp, rung: Rung) {
        self.heap.push(Reverse((at, rung.slot as u32, rung.uses, rung.bell)));
    }

    /// When the next one goes off; `Stamp::MAX` if none is set.
    #[inline]
    #[must_use]
    pub(crate) fn next(&self) -> Stamp {
        self.heap.peek().map_or(Stamp::MAX, |Reverse((at, ..))| *at)
    }

    /// The next one that has gone off by `now`.
    pub(crate) fn pop(&mut self, now: Stamp) -> Option<Rung> {
        if self.next() > now {
            return None;
        }
        let Reverse((_, slot, uses, bell)) = self.heap.pop()?;
        Some(Rung { slot: slot as usize, uses, bell })
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        self.heap.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alarms_go_off_in_the_order_of_their_times_and_never_early() {
        let mut alarms = Alarms::default();
        let at = Stamp::from_nanos;
        let rung = |slot| Rung { slot, uses: 1, bell: Bell::Leave };
        assert_eq!(alarms.next(), Stamp::MAX);
        for (ns, slot) in [(70, 0), (50, 1), (60, 2)] {
            alarms.set(at(ns), rung(slot));
        }
        assert_eq!((alarms.next(), alarms.pop(at(49))), (at(50), None));
        assert_eq!(alarms.pop(at(50)), Some(rung(1)));
        assert_eq!(alarms.pop(at(100)), Some(rung(2)));
        assert_eq!(alarms.pop(at(100)), Some(rung(0)));
        assert_eq!(alarms.pop(Stamp::MAX), None);
    }
}
