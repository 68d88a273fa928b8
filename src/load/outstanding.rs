//! Requests under way at each endpoint over all shards, for sends that go where the fewest are.
//!
//! Touched when a request is sent and when it ends, never per event. Each count has a cache line of its own, so that
//! shards that send to different endpoints do not slow each other down.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::time::Stamp;

/// The counts of one leg.
#[derive(Debug)]
pub(crate) struct Outstanding {
    endpoints: Box<[Count]>,
    /// Where the next search begins, so that equals come in turn.
    turn: Turn,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Count {
    under_way: AtomicU32,
    /// Passed over until then, ns on the run's time line: it has refused a connection.
    shunned_until: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct Turn(AtomicUsize);

/// So long an endpoint is passed over that has refused a connection: it would have the fewest requests under way, and
/// get them all.
pub(crate) const SHUNNED_FOR: Duration = Duration::from_secs(1);

impl Outstanding {
    /// Nothing is under way at any of so many endpoints, at least one.
    pub(crate) fn new(endpoints: usize) -> Outstanding {
        Outstanding {
            endpoints: (0..endpoints.max(1)).map(|_| Count::default()).collect(),
            turn: Turn::default(),
        }
    }

    /// Counts a request that is sent at `now` to the endpoint that has the fewest, which it returns: among equals the
    /// next one after the last choice, and one that is passed over only where all are.
    pub(crate) fn choose(&self, now: Stamp) -> usize {
        let n = self.endpoints.len();
        let first = self.turn.0.load(Ordering::Relaxed);
        loop {
            let load = |place: usize| {
                let count = &self.endpoints[place];
                let shunned = count.shunned_until.load(Ordering::Relaxed) > now.as_nanos();
                (shunned, count.under_way.load(Ordering::Acquire))
            };
            let places = (0..n).map(|step| (first + step) % n).map(|place| (load(place), place));
            let Some(((_, seen), place)) = places.min_by_key(|(load, _)| *load) else { return 0 };
            // Another shard may have counted one meanwhile: then it may no longer be the one with the fewest.
            let counter = &self.endpoints[place].under_way;
            if counter.compare_exchange(seen, seen + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                self.turn.0.store(place + 1, Ordering::Relaxed);
                return place;
            }
        }
    }

    /// A request that was sent to `endpoint` has ended at `now`; it was `refused` where no connection came about.
    pub(crate) fn release(&self, endpoint: usize, now: Stamp, refused: bool) {
        let Some(count) = self.endpoints.get(endpoint) else { return };
        if refused {
            count.shunned_until.store((now + SHUNNED_FOR).as_nanos(), Ordering::Relaxed);
        }
        count.under_way.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Stamp = Stamp::from_millis(5);

    #[test]
    fn the_fewest_get_the_next_and_equals_come_in_turn() {
        let all = Outstanding::new(3);
        let chosen: Vec<usize> = (0..6).map(|_| all.choose(NOW)).collect();
        assert_eq!(chosen, [0, 1, 2, 0, 1, 2]);
        all.release(1, NOW, false);
        assert_eq!((all.choose(NOW), all.choose(NOW)), (1, 2));
        all.release(0, NOW, false);
        all.release(0, NOW, false);
        assert_eq!((all.choose(NOW), all.choose(NOW)), (0, 0));
    }

    #[test]
    fn one_that_refuses_is_passed_over_for_a_second() {
        let all = Outstanding::new(2);
        assert_eq!(all.choose(NOW), 0);
        all.release(0, NOW, true);
        assert_eq!((all.choose(NOW), all.choose(NOW)), (1, 1));
        assert_eq!(all.choose(NOW + SHUNNED_FOR), 0);
        all.release(1, NOW, true);
        all.release(0, NOW, true);
        assert_eq!(all.choose(NOW), 0, "where all refuse, the fewest again");
    }

    #[test]
    fn threads_never_leave_one_more_than_one_ahead() {
        let all = Outstanding::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..500).for_each(|_| assert!(all.choose(NOW) < 4)));
            }
        });
        let counts: Vec<u32> =
            all.endpoints.iter().map(|count| count.under_way.load(Ordering::Relaxed)).collect();
        assert_eq!(counts, [500; 4]);
    }
}
