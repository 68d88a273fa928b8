//! An exact cap on requests in flight over all shards.
//!
//! Touched when a request starts and when it ends, never per event. A lock, not an atomic counter: with a bare counter
//! whichever shard looks first would take a freed permit, and requests of the others would wait longer than their
//! turn, which `cap_wait` would then show as the server's doing. Here the oldest planned request gets it, as it would
//! from one queue. Uncontended, the lock costs some 20 ns per request.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::sys::waker::Waker;
use crate::time::Stamp;

/// The permits of one level.
#[derive(Debug)]
pub(crate) struct Permits {
    queue: Mutex<Queue>,
    shards: Vec<Grants>,
}

#[derive(Debug)]
struct Queue {
    free: u32,
    /// Waiting requests by planned time; the shard is all that is needed to find them, since a shard's own requests
    /// wait in the order of their plans.
    waiting: BinaryHeap<Reverse<(Stamp, usize)>>,
}

/// Permits granted to a shard that it has not yet taken up.
#[derive(Debug)]
struct Grants {
    count: AtomicU32,
    waker: Arc<Waker>,
}

impl Permits {
    /// `cap` permits for the shards with these wakers.
    #[must_use]
    pub(super) fn new(cap: u32, wakers: Vec<Arc<Waker>>) -> Permits {
        let grants = |waker| Grants { count: AtomicU32::new(0), waker };
        Permits {
            queue: Mutex::new(Queue { free: cap, waiting: BinaryHeap::new() }),
            shards: wakers.into_iter().map(grants).collect(),
        }
    }

    /// Takes a permit for a request of `shard` planned for `plan`; `false` puts it in the queue, and a grant will
    /// come later. Requests of one shard must ask in the order of their plans.
    pub(super) fn acquire(&self, shard: usize, plan: Stamp) -> bool {
        let mut queue = self.lock();
        if queue.free > 0 && queue.waiting.is_empty() {
            queue.free -= 1;
            return true;
        }
        queue.waiting.push(Reverse((plan, shard)));
        false
    }

    /// Gives a permit back; the oldest waiting request gets it and its shard is woken (unless it is the caller's).
    pub(super) fn release(&self, caller: usize) {
        let mut queue = self.lock();
        let Some(Reverse((_, shard))) = queue.waiting.pop() else {
            queue.free += 1;
            return;
        };
        drop(queue);
        let grants = &self.shards[shard];
        grants.count.fetch_add(1, Ordering::AcqRel);
        if shard != caller {
            grants.waker.wake();
        }
    }

    /// Takes up one grant of `shard`, if there is one: its oldest waiting request may start.
    pub(super) fn take_grant(&self, shard: usize) -> bool {
        let count = &self.shards[shard].count;
        count.load(Ordering::Relaxed) > 0 && count.fetch_sub(1, Ordering::AcqRel) > 0
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        // A shard that panicked inside these few lines cannot have left the queue half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permits(cap: u32, shards: usize) -> Permits {
        Permits::new(cap, (0..shards).map(|_| Arc::new(Waker::new().unwrap())).collect())
    }

    /// Plays random starts and ends of `shards` shards and checks that never more than `cap` hold a permit, that
    /// all get one, and that they get it in the order of their plans.
    fn play(cap: u32, shards: usize) {
        let permits = permits(cap, shards);
        let mut rng = crate::rng::stream(5, crate::rng::Purpose::Choice, u64::from(cap));
        let mut waiting: Vec<std::collections::VecDeque<u64>> = vec![Default::default(); shards];
        let (mut holders, mut admitted, mut planned) = (Vec::new(), Vec::new(), 0u64);
        while admitted.len() < 500 {
            let shard = crate::rng::below(&mut rng, shards as u32) as usize;
            if planned < 500 && crate::rng::below(&mut rng, 2) == 0 {
                if permits.acquire(shard, Stamp::from_nanos(planned)) {
                    holders.push(shard);
                    admitted.push(planned);
                } else {
                    waiting[shard].push_back(planned);
                }
                planned += 1;
            } else if let Some(holder) = holders.pop() {
                permits.release(holder);
                for (shard, queue) in waiting.iter_mut().enumerate() {
                    while permits.take_grant(shard) {
                        holders.push(shard);
                        admitted.push(queue.pop_front().unwrap());
                    }
                }
            }
            assert!(holders.len() <= cap as usize);
        }
        assert!(admitted.is_sorted(), "admitted out of turn");
    }

    #[test]
    fn the_cap_holds_and_turns_are_kept_for_any_cap() {
        for shards in [1, 2, 4] {
            for cap in [1, 3, shards.max(2) - 1, shards + 1] {
                play(cap as u32, shards);
            }
        }
    }

    #[test]
    fn a_grant_is_taken_once() {
        let permits = permits(1, 2);
        assert!(permits.acquire(0, Stamp::ZERO));
        assert!(!permits.acquire(1, Stamp::ZERO));
        permits.release(0);
        assert!(!permits.take_grant(0));
        assert!(permits.take_grant(1));
        assert!(!permits.take_grant(1));
    }
}
