//! An exact limit on the connections to each endpoint over all shards.
//!
//! A connection is counted from before it is asked for until its socket is closed. Touched when a request begins or ends
//! and when a connection is closed, never per event. A lock, for the reasons that `permits` has: the oldest planned
//! request gets what becomes free. Shards never hand sockets to each other. So where the oldest one waits on another
//! shard, which has no connection or where more than this one's part of them are here, a connection is closed here and its
//! place in the count goes there; else the oldest of this shard goes by it, as another connection for each request would
//! be no pool. And where all places are taken by idle connections of other shards, one of these is asked to close one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sys::waker::Waker;
use crate::time::Stamp;

/// The connections of a run, by endpoint.
#[derive(Debug)]
pub(crate) struct Pools {
    pools: Vec<Pool>,
    wakers: Vec<Arc<Waker>>,
}

#[derive(Debug)]
struct Pool {
    queue: Mutex<Queue>,
    shards: Vec<Told>,
}

#[derive(Debug)]
struct Queue {
    limit: u32,
    /// Connections that stand or are being opened, and places that were granted and not yet taken up.
    open: u32,
    /// The same by shard.
    held: Vec<u32>,
    /// Of each shard, those among them that any request of it may take.
    idle: Vec<u32>,
    /// The planned times of each shard's waiting requests, ascending.
    waiting: Vec<VecDeque<Stamp>>,
}

impl Queue {
    /// The shard whose request has waited longest.
    fn oldest(&self) -> Option<usize> {
        let first = |shard: usize| self.waiting[shard].front().map(|plan| (*plan, shard));
        (0..self.waiting.len()).filter_map(first).min().map(|(_, shard)| shard)
    }

    /// Gives `shard` a place that is free.
    fn take(&mut self, shard: usize) {
        self.open += 1;
        self.held[shard] += 1;
    }

    /// A shard's part of the places.
    fn part(&self) -> u32 {
        self.limit.div_ceil(self.held.len().max(1) as u32)
    }
}

/// What a shard is told and has not yet acted upon.
#[derive(Debug, Default)]
struct Told {
    /// It may open so many connections, for its oldest waiting requests.
    granted: AtomicU32,
    /// It is to close so many idle ones.
    evicted: AtomicU32,
}

/// What a request that needs a connection gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// An idle connection of its shard.
    Idle,
    /// Leave to open one.
    Open,
    /// Neither: a grant will come later.
    Wait,
}

/// What becomes of a connection that has served a request and may serve another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// It waits for one.
    Idle,
    /// It serves the oldest waiting request of its shard.
    Handed,
    /// It is closed: the oldest waiting request is another shard's.
    Closed,
}

impl Pools {
    /// At most `limit` connections to each of so many endpoints, for the shards with these wakers.
    #[must_use]
    pub(super) fn new(limit: u32, endpoints: usize, wakers: Vec<Arc<Waker>>) -> Pools {
        let shards = wakers.len();
        let pool = |_| Pool {
            queue: Mutex::new(Queue {
                limit,
                open: 0,
                held: vec![0; shards],
                idle: vec![0; shards],
                waiting: vec![VecDeque::new(); shards],
            }),
            shards: (0..shards).map(|_| Told::default()).collect(),
        };
        Pools { pools: (0..endpoints).map(pool).collect(), wakers }
    }

    /// What a request of `shard` planned for `plan` gets; `has_idle`: that shard has a connection that would do. Requests
    /// of one shard must ask in the order of their plans.
    pub(super) fn admit(&self, route: usize, shard: usize, plan: Stamp, has_idle: bool) -> Admission {
        let pool = &self.pools[route];
        let mut queue = pool.lock();
        if queue.oldest().is_none() {
            if has_idle && queue.idle[shard] > 0 {
                queue.idle[shard] -= 1;
                return Admission::Idle;
            }
            if queue.open < queue.limit {
                queue.take(shard);
                return Admission::Open;
            }
        }
        queue.waiting[shard].push_back(plan);
        // One that is idle elsewhere, and not yet asked for on behalf of somebody else.
        let spare = (0..queue.idle.len())
            .find(|of| queue.idle[*of] > pool.shards[*of].evicted.load(Ordering::Relaxed));
        if let Some(of) = spare {
            pool.shards[of].evicted.fetch_add(1, Ordering::AcqRel);
            drop(queue);
            if of != shard {
                self.wakers[of].wake();
            }
        }
        Admission::Wait
    }

    /// Whether `shard` may open a connection that no request waits for.
    pub(super) fn may_open(&self, route: usize, shard: usize) -> bool {
        let mut queue = self.pools[route].lock();
        let may = queue.oldest().is_none() && queue.open < queue.limit;
        if may {
            queue.take(shard);
        }
        may
    }

    /// The request in `place` of the `queued` ones of `shard` waits no more, since it has a connection otherwise; false if it
    /// has been given one already.
    pub(super) fn leave(&self, route: usize, shard: usize, (place, queued): (usize, usize)) -> bool {
        let mut queue = self.pools[route].lock();
        let waiting = &mut queue.waiting[shard];
        // The first of them have been given one, and do not know it yet.
        let given = queued.saturating_sub(waiting.len());
        place.checked_sub(given).and_then(|place| waiting.remove(place)).is_some()
    }

    /// Takes up one grant of `shard`, if there is one: its oldest waiting request may open a connection.
    pub(super) fn take_grant(&self, route: usize, shard: usize) -> bool {
        let granted = &self.pools[route].shards[shard].granted;
        granted.load(Ordering::Relaxed) > 0 && granted.fetch_sub(1, Ordering::AcqRel) > 0
    }

    /// How many idle connections `shard` is to close now.
    pub(super) fn take_evictions(&self, route: usize, shard: usize) -> u32 {
        let evicted = &self.pools[route].shards[shard].evicted;
        if evicted.load(Ordering::Relaxed) == 0 { 0 } else { evicted.swap(0, Ordering::AcqRel) }
    }

    /// A connection of `shard` has served its request and may serve another, or has just been opened for none.
    pub(super) fn on_rest(&self, route: usize, shard: usize) -> Rest {
        let mut queue = self.pools[route].lock();
        let Some(oldest) = queue.oldest() else {
            queue.idle[shard] += 1;
            return Rest::Idle;
        };
        let is_due_here = oldest == shard || queue.held[shard] <= queue.part() && queue.held[oldest] > 0;
        match is_due_here.then(|| queue.waiting[shard].pop_front()).flatten() {
            Some(_) => Rest::Handed,
            None => Rest::Closed,
        }
    }

    /// A connection of `shard` is closed, or will not be opened: the oldest waiting request gets its place. It `was_idle` if
    /// [`Pools::on_rest`] said so and no request has taken it since.
    pub(super) fn on_closed(&self, route: usize, shard: usize, was_idle: bool) {
        let pool = &self.pools[route];
        let mut queue = pool.lock();
        if was_idle {
            queue.idle[shard] = queue.idle[shard].saturating_sub(1);
        }
        queue.open = queue.open.saturating_sub(1);
        queue.held[shard] = queue.held[shard].saturating_sub(1);
        let Some(oldest) = queue.oldest() else { return };
        queue.waiting[oldest].pop_front();
        queue.take(oldest);
        drop(queue);
        pool.shards[oldest].granted.fetch_add(1, Ordering::AcqRel);
        if oldest != shard {
            self.wakers[oldest].wake();
        }
    }

    /// Nothing of `shard` waits any more: what it was granted goes to others.
    pub(super) fn withdraw(&self, shard: usize) {
        for (route, pool) in self.pools.iter().enumerate() {
            pool.lock().waiting[shard].clear();
            while self.take_grant(route, shard) {
                self.on_closed(route, shard, false);
            }
        }
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // A shard that panicked inside these few lines cannot have left the queue half changed.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pools(limit: u32, shards: usize) -> Pools {
        Pools::new(limit, 1, (0..shards).map(|_| Arc::new(Waker::new().unwrap())).collect())
    }

    const T: Stamp = Stamp::ZERO;

    #[test]
    fn who_has_a_connection_otherwise_waits_no_more() {
        let pools = pools(1, 2);
        let at = |ms| Stamp::from_millis(ms);
        assert_eq!(pools.admit(0, 0, T, false), Admission::Open);
        for ms in 1..=3 {
            assert_eq!(pools.admit(0, 0, at(ms), false), Admission::Wait);
        }
        assert_eq!(pools.admit(0, 1, at(4), false), Admission::Wait);
        assert!(pools.leave(0, 0, (1, 3)));
        // The first is granted, and has not taken it up: of the two that are queued the second waits.
        pools.on_closed(0, 0, false);
        assert!(!pools.leave(0, 0, (0, 2)) && pools.leave(0, 0, (1, 2)));
        assert!(pools.take_grant(0, 0) && !pools.take_grant(0, 0));
        pools.on_closed(0, 0, false);
        assert!(pools.take_grant(0, 1), "nobody of the first shard waits any more");
    }

    #[test]
    fn a_shard_takes_its_own_idle_connections_and_opens_up_to_the_limit() {
        let pools = pools(2, 1);
        assert_eq!(pools.admit(0, 0, T, false), Admission::Open);
        assert_eq!(pools.on_rest(0, 0), Rest::Idle);
        assert_eq!(pools.admit(0, 0, T, true), Admission::Idle);
        assert_eq!(pools.admit(0, 0, T, false), Admission::Open);
        assert_eq!(pools.admit(0, 0, T, false), Admission::Wait);
        assert_eq!(pools.on_rest(0, 0), Rest::Handed);
        assert_eq!(pools.on_rest(0, 0), Rest::Idle);
    }

    #[test]
    fn the_oldest_request_gets_the_place_wherever_it_waits() {
        let pools = pools(1, 2);
        assert_eq!(pools.admit(0, 0, T, false), Admission::Open);
        assert_eq!(pools.admit(0, 1, Stamp::from_millis(1), false), Admission::Wait);
        assert_eq!(pools.admit(0, 0, Stamp::from_millis(2), false), Admission::Wait);
        assert_eq!(pools.on_rest(0, 0), Rest::Closed);
        pools.on_closed(0, 0, false);
        assert!(!pools.take_grant(0, 0) && pools.take_grant(0, 1) && !pools.take_grant(0, 1));
        pools.on_closed(0, 1, false);
        assert!(pools.take_grant(0, 0));
    }

    #[test]
    fn connections_are_kept_where_both_shards_have_their_part() {
        let pools = pools(2, 2);
        // The first shard has both, until the other wants one.
        assert_eq!(pools.admit(0, 0, T, false), Admission::Open);
        assert_eq!(pools.admit(0, 0, T, false), Admission::Open);
        for ms in 1..20 {
            for (shard, later) in [(1, 0), (0, 1)] {
                let plan = Stamp::from_nanos(ms * 1_000_000 + later);
                assert_eq!(pools.admit(0, shard, plan, false), Admission::Wait);
            }
        }
        assert_eq!(pools.on_rest(0, 0), Rest::Closed);
        pools.on_closed(0, 0, false);
        assert!(pools.take_grant(0, 1));
        // From then on each goes on with what it has, whoever is the oldest.
        for _ in 0..8 {
            assert_eq!((pools.on_rest(0, 0), pools.on_rest(0, 1)), (Rest::Handed, Rest::Handed));
            assert_eq!(pools.on_rest(0, 0), Rest::Handed);
        }
    }

    #[test]
    fn an_idle_connection_of_another_shard_is_asked_for_once() {
        let pools = pools(1, 2);
        assert_eq!(pools.admit(0, 0, T, false), Admission::Open);
        assert_eq!(pools.on_rest(0, 0), Rest::Idle);
        assert_eq!(pools.admit(0, 1, T, false), Admission::Wait);
        assert_eq!(pools.admit(0, 1, T, false), Admission::Wait);
        assert_eq!((pools.take_evictions(0, 1), pools.take_evictions(0, 0)), (0, 1));
        pools.on_closed(0, 0, true);
        assert!(pools.take_grant(0, 1));
    }

    #[test]
    fn what_is_withdrawn_goes_to_the_others() {
        let pools = pools(1, 2);
        assert_eq!(pools.admit(0, 0, T, false), Admission::Open);
        for shard in [1, 0, 1] {
            assert_eq!(pools.admit(0, shard, T, false), Admission::Wait);
        }
        pools.on_closed(0, 0, false);
        // By then one of the two has been granted the place.
        pools.withdraw(1);
        assert!(pools.take_grant(0, 0));
        pools.on_closed(0, 0, false);
        assert!(pools.may_open(0, 0) && !pools.may_open(0, 1));
    }

    /// Whatever shards do, never more than the limit are open, and everyone gets through.
    #[test]
    fn the_limit_holds_for_any_number_of_shards() {
        for (limit, shards) in [(1, 1), (1, 3), (3, 2), (4, 4)] {
            let pools = pools(limit, shards);
            let mut rng = crate::rng::stream(5, crate::rng::Purpose::Choice, u64::from(limit));
            let (mut busy, mut idle, mut waiting) =
                (vec![0u32; shards], vec![0u32; shards], vec![0u32; shards]);
            let (mut begun, mut done) = (0u64, 0u64);
            while done < 400 {
                let shard = crate::rng::below(&mut rng, shards as u32) as usize;
                if begun < 400 && crate::rng::below(&mut rng, 2) == 0 {
                    match pools.admit(0, shard, Stamp::from_nanos(begun), idle[shard] > 0) {
                        Admission::Idle => (idle[shard], busy[shard]) = (idle[shard] - 1, busy[shard] + 1),
                        Admission::Open => busy[shard] += 1,
                        Admission::Wait => waiting[shard] += 1,
                    }
                    begun += 1;
                } else if busy[shard] > 0 {
                    busy[shard] -= 1;
                    done += 1;
                    // One in four breaks.
                    let rest = (crate::rng::below(&mut rng, 4) > 0).then(|| pools.on_rest(0, shard));
                    match rest {
                        Some(Rest::Idle) => idle[shard] += 1,
                        Some(Rest::Handed) => {
                            (busy[shard], waiting[shard]) = (busy[shard] + 1, waiting[shard] - 1)
                        }
                        Some(Rest::Closed) | None => pools.on_closed(0, shard, false),
                    }
                }
                for (shard, resting) in idle.iter_mut().enumerate() {
                    for _ in 0..pools.take_evictions(0, shard).min(*resting) {
                        *resting -= 1;
                        pools.on_closed(0, shard, true);
                    }
                }
                for shard in 0..shards {
                    while pools.take_grant(0, shard) {
                        (busy[shard], waiting[shard]) = (busy[shard] + 1, waiting[shard] - 1);
                    }
                }
                assert!(busy.iter().chain(&idle).sum::<u32>() <= limit);
            }
        }
    }
}
