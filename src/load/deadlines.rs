//! One coarse wheel of deadlines per shard, in place of a timer per read.
//!
//! A key is looked at when its slot comes round; whether its deadline has really passed is decided then by its owner,
//! who puts it back if not. So a deadline that moves with every event costs nothing per event.

use std::time::Duration;

use crate::time::Stamp;

/// How finely deadlines are kept. A limit fires at most this much late.
pub(crate) const TICK: Duration = Duration::from_millis(100);

const SLOTS: usize = 512;

/// A hashed wheel of [`TICK`]-wide slots. Keys are opaque.
#[derive(Debug)]
pub(crate) struct Deadlines {
    slots: Vec<Vec<Entry>>,
    /// The first tick not yet looked at.
    next_tick: u64,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    tick: u64,
    key: u64,
}

impl Deadlines {
    /// An empty wheel that starts at `now`.
    #[must_use]
    pub(crate) fn new(now: Stamp) -> Deadlines {
        Deadlines { slots: vec![Vec::new(); SLOTS], next_tick: tick_of(now), len: 0 }
    }

    /// Has `key` looked at in the first tick that begins at or after `at`.
    pub(crate) fn insert(&mut self, at: Stamp, key: u64) {
        let whole = TICK.as_nanos() as u64;
        let tick = at.as_nanos().div_ceil(whole).max(self.next_tick);
        self.slots[tick as usize % SLOTS].push(Entry { tick, key });
        self.len += 1;
    }

    /// Moves to `due` every key whose tick has begun by `now`.
    pub(crate) fn expire(&mut self, now: Stamp, due: &mut Vec<u64>) {
        let last = tick_of(now);
        if self.len == 0 {
            self.next_tick = self.next_tick.max(last + 1);
            return;
        }
        // After a long pause each slot is looked at once, not once per tick missed.
        let first = self.next_tick.max((last + 1).saturating_sub(SLOTS as u64));
        for tick in first..=last {
            let before = due.len();
            self.slots[tick as usize % SLOTS].retain(|entry| {
                if entry.tick <= last {
                    due.push(entry.key);
                }
                entry.tick > last
            });
            self.len -= due.len() - before;
        }
        self.next_tick = self.next_tick.max(last + 1);
    }

    /// When the wheel has to be looked at next; `Stamp::MAX` if it is empty.
    #[must_use]
    pub(crate) fn next(&self) -> Stamp {
        if self.len == 0 { Stamp::MAX } else { Stamp::from_nanos(self.next_tick * TICK.as_nanos() as u64) }
    }
}

fn tick_of(at: Stamp) -> u64 {
    at.as_nanos() / TICK.as_nanos() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expired(wheel: &mut Deadlines, ms: u64) -> Vec<u64> {
        let mut due = Vec::new();
        wheel.expire(Stamp::from_millis(ms), &mut due);
        due.sort_unstable();
        due
    }

    #[test]
    fn a_key_comes_once_and_never_early() {
        let mut wheel = Deadlines::new(Stamp::ZERO);
        wheel.insert(Stamp::from_millis(150), 1);
        wheel.insert(Stamp::from_millis(1000), 2);
        assert_eq!(expired(&mut wheel, 149), [0; 0]);
        assert_eq!(expired(&mut wheel, 199), [0; 0]);
        assert_eq!(expired(&mut wheel, 200), [1]);
        assert_eq!(expired(&mut wheel, 999), [0; 0]);
        assert_eq!(expired(&mut wheel, 5000), [2]);
        assert_eq!(wheel.next(), Stamp::MAX);
    }

    #[test]
    fn a_deadline_beyond_one_turn_waits_its_turns() {
        let mut wheel = Deadlines::new(Stamp::ZERO);
        let far = TICK.as_millis() as u64 * (SLOTS as u64 + 3);
        wheel.insert(Stamp::from_millis(far), 7);
        wheel.insert(Stamp::from_millis(300), 8);
        assert_eq!(expired(&mut wheel, 400), [8]);
        assert_eq!(expired(&mut wheel, far - 1), [0; 0]);
        assert_eq!(expired(&mut wheel, far), [7]);
    }

    #[test]
    fn a_long_pause_loses_nothing() {
        let mut wheel = Deadlines::new(Stamp::ZERO);
        for key in 0..2000 {
            wheel.insert(Stamp::from_millis(key * 77), key);
        }
        assert_eq!(expired(&mut wheel, 10_000_000), (0..2000).collect::<Vec<_>>());
    }

    #[test]
    fn a_deadline_in_the_past_comes_at_the_next_look() {
        let mut wheel = Deadlines::new(Stamp::ZERO);
        assert_eq!(expired(&mut wheel, 1000), [0; 0]);
        wheel.insert(Stamp::from_millis(10), 3);
        assert_eq!(expired(&mut wheel, 1100), [3]);
    }
}
