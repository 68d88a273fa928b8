//! From a request that may be sent to the connection that it goes by: one of its session, an idle one, a new one, or the
//! wait for one.

use super::Shard;
use super::work::Work;
use crate::load::agenda::Due;
use crate::load::connection::lane;
use crate::load::pools::Admission;
use crate::plan::Reuse;
use crate::time::Stamp;

/// A request that waits for a connection to its endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) due: Due,
    /// The endpoint, where it counts as under way already.
    pub(crate) route: usize,
}

/// An idle connection that goes to a request which waits for one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handed {
    pub(super) slot: u32,
    /// The request, which is in no queue any more; `None`: the oldest of the connection's endpoint.
    pub(super) to: Option<Due>,
}

/// The connection that a request goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) route: usize,
    /// Idle, or without a socket and then to be connected.
    pub(super) slot: usize,
    /// Whether it has just been looked at: an idle one still stands. Looking is a call into the kernel.
    pub(super) checked: bool,
}

impl Shard {
    /// A request that the cap has let through at `permit`.
    pub(super) fn admit(&mut self, work: &mut Work, due: Due, permit: Stamp) {
        let route = work.leg.route_of(&due, permit);
        let now = self.pace.clock().now();
        if let Some(slot) = self.own_connection(&due, route, now) {
            return self.start(work, due, permit, Way { route, slot, checked: true });
        }
        let lane = self.lane_of(work, &due, route);
        let Some(pools) = self.pools.clone() else {
            let slot = self.take_idle(lane, now);
            let slot = slot.unwrap_or_else(|| self.spare_slot());
            return self.start(work, due, permit, Way { route, slot, checked: true });
        };
        match pools.admit(route, self.place, due.plan, !self.idle[lane].is_empty()) {
            // What was idle may be gone: then its place is taken by a new one.
            Admission::Idle => {
                let slot = self.idle[lane].pop().map_or_else(|| self.spare_slot(), |slot| slot as usize);
                self.start(work, due, permit, Way { route, slot, checked: false });
            }
            Admission::Open => {
                let slot = self.spare_slot();
                self.start(work, due, permit, Way { route, slot, checked: false });
            }
            Admission::Wait => {
                work.queued.resize_with(work.queued.len().max(route + 1), Default::default);
                work.queued[route].push_back(Queued { due, route });
                self.free_those_of(due.index);
                // It may be this shard's own, of another lane.
                self.evict();
            }
        }
    }

    /// Starts requests that have waited for a connection and get one.
    pub(super) fn admit_waiting(&mut self, work: &mut Work) {
        let Some(pools) = self.pools.clone() else { return };
        self.has_closed = false;
        self.evict();
        while let Some(Handed { slot, to }) = self.handed.pop() {
            let slot = slot as usize;
            let route = self.connections[slot].route;
            match to.or_else(|| work.next_queued(route)) {
                Some(due) => {
                    // One of a slow reader has little room to receive; its place serves as well.
                    let fits = self.connections[slot].lane() == self.lane_of(work, &due, route);
                    if !fits {
                        self.connections[slot].close();
                    }
                    self.start_late(work, due, Way { route, slot, checked: false });
                }
                None => self.pool(slot),
            }
        }
        for route in 0..work.queued.len() {
            while pools.take_grant(route, self.place) {
                match work.next_queued(route) {
                    Some(due) => {
                        let slot = self.spare_slot();
                        self.start_late(work, due, Way { route, slot, checked: false });
                    }
                    None => pools.on_closed(route, self.place, false),
                }
            }
        }
    }

    fn start_late(&mut self, work: &mut Work, due: Due, way: Way) {
        let now = self.pace.clock().now();
        work.check.conn_wait.record(now.nanos_since(due.plan));
        self.start(work, due, now, way);
    }

    /// The connection that the session of `due` has for itself and does not use at the moment; without its socket where that
    /// was closed or is too old.
    fn own_connection(&mut self, due: &Due, route: usize, now: Stamp) -> Option<usize> {
        if self.settings.reuse != Reuse::StickyUserSessions {
            return None;
        }
        let own = self.of_sessions.get_mut(&due.index)?;
        let place = own.iter().position(|slot| self.connections[*slot as usize].route == route)?;
        let slot = own.swap_remove(place) as usize;
        if !self.stands(slot, now) {
            self.connections[slot].close();
        }
        Some(slot)
    }

    fn lane_of(&self, work: &Work, due: &Due, route: usize) -> usize {
        let is_slow = work.leg.target.content.conduct().read_rate(work.leg.item(due.index)).is_some();
        lane(route, is_slow)
    }
}
