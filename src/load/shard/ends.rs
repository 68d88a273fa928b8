//! How requests end: answered, timed out, given up, cancelled; and what becomes of their connections.

use std::time::Duration;

use super::work::Work;
use super::{Handed, Queued, Shard};
use crate::exchange::Progress;
use crate::load::connection::State;
use crate::load::limits::{Limit, next_limit};
use crate::metrics::{Class, TimeoutPhase};
use crate::time::Stamp;

/// A user whose connection was refused comes back no sooner: a dead server is not to be hammered.
pub(crate) const REFUSED_PAUSE: Duration = Duration::from_millis(100);
/// A slot in use is looked at by the deadline wheel at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

impl Shard {
    /// Goes on with a request, or settles it if its exchange is over.
    pub(super) fn after(&mut self, work: &mut Work, slot: usize, progress: Progress) {
        match progress {
            Progress::Pending => self.go_on_waiting(work, slot, self.pace.clock().now()),
            Progress::Over => self.settle(work, slot),
        }
    }

    /// More has to come on `slot`. Another limit may run from here on, and it may be shorter than the one being watched.
    #[inline]
    pub(super) fn go_on_waiting(&mut self, work: &mut Work, slot: usize, now: Stamp) {
        let connection = &self.connections[slot];
        if connection.exchange.waiting_for().phase != connection.watched {
            self.watch_deadline(work, slot, now);
        }
    }

    /// Settles a request whose exchange is over.
    pub(super) fn settle(&mut self, work: &mut Work, slot: usize) {
        let now = self.pace.clock().now();
        let connection = &mut self.connections[slot];
        let exchange = &connection.exchange;
        let record = work.record_of(exchange, (connection.route, connection.address));
        work.on_done(&record, exchange, &connection.times);
        let goes_on = connection.is_sent && connection.exchange.reusable();
        connection.ask_kernel(&mut work.check, now, goes_on);
        self.gauges.on_done(record.outcome);
        let due = connection.due;
        if !connection.is_sent {
            let request = std::mem::take(&mut connection.request);
            work.requests.give_back(due.user, request);
        }
        let pause = if record.outcome.class == Class::Connect { REFUSED_PAUSE } else { Duration::ZERO };
        let pause = (now, pause);
        let session_over = work.go_on(&due, &record, &self.connections[slot].reply, pause);
        if let Some(permits) = &work.leg.permits {
            permits.release(self.place);
        }
        self.rest(work, slot, session_over);
        if work.block_is_full() {
            self.flush_records(work);
        }
    }

    pub(super) fn flush_records(&mut self, work: &mut Work) {
        if let Some(spool) = &self.spool
            && !work.block.records.is_empty()
        {
            spool.send(work.block.take());
        }
        work.block.clear();
    }

    /// Has the wheel look at `slot` when its deadline may have passed, or after [`LOOK_AGAIN`]: so there is one entry
    /// per slot, not one per request.
    pub(super) fn watch_deadline(&mut self, work: &Work, slot: usize, now: Stamp) {
        let at = self.deadline(work, slot).0.max(now).min(now + LOOK_AGAIN);
        let connection = &mut self.connections[slot];
        connection.watched = connection.exchange.waiting_for().phase;
        if at < connection.looked_at {
            connection.looked_at = at;
            self.deadlines.insert(at, slot as u64);
        }
    }

    /// When the request on `slot` next passes a limit, and which one.
    pub(super) fn deadline(&self, work: &Work, slot: usize) -> (Stamp, TimeoutPhase) {
        let connection = &self.connections[slot];
        let connecting = connection.state == State::Opening;
        let limit = Limit::of(&connection.exchange, connection.last_read).connecting(connecting);
        next_limit(&work.leg.limits, limit)
    }

    pub(super) fn check_deadlines(&mut self, work: &mut Work, now: Stamp) {
        if now < self.deadlines.next() {
            return;
        }
        let mut due = Vec::new();
        self.deadlines.expire(now, &mut due);
        for slot in due {
            let slot = slot as usize;
            self.connections[slot].looked_at = Stamp::MAX;
            if !matches!(self.connections[slot].state, State::Opening | State::Busy) {
                continue;
            }
            let (at, phase) = self.deadline(work, slot);
            if at > now {
                self.watch_deadline(work, slot, now);
                continue;
            }
            let progress = self.connections[slot].exchange.on_timeout(now, phase);
            self.after(work, slot, progress);
        }
    }

    /// Stops when the planned length is over or the user says so, and gives up what is open after the grace period.
    pub(super) fn check_end(&mut self, work: &mut Work, now: Stamp) {
        let ending = work.look_at_end(now);
        if ending.cancels_waiting {
            self.cancel_waiting(work, now);
        }
        if ending.gives_up {
            self.abandon(work, now);
        }
    }

    /// Requests that wait for the cap when the user stops the run are never sent: neither success nor failure.
    pub(super) fn cancel_waiting(&mut self, work: &mut Work, now: Stamp) {
        for due in std::mem::take(&mut work.waiting) {
            work.on_unsent(&due, now, Class::Cancelled);
        }
        self.give_up_queued(work, now, Class::Cancelled);
    }

    /// Requests that wait for a connection are never sent.
    fn give_up_queued(&mut self, work: &mut Work, now: Stamp, class: Class) {
        let mut queued: Vec<Queued> = work.queued.iter_mut().flat_map(std::mem::take).collect();
        // Those that were to go by a connection of their session are in no queue.
        for Handed { slot, to } in self.handed.extract_if(.., |one| one.to.is_some()).collect::<Vec<_>>() {
            let route = self.connections[slot as usize].route;
            queued.extend(to.map(|due| Queued { due, route }));
            self.free(slot as usize);
        }
        if queued.is_empty() {
            return;
        }
        for Queued { due, route } in queued {
            if let Some(outstanding) = &work.leg.outstanding {
                outstanding.release(route, now, false);
            }
            if let Some(permits) = &work.leg.permits {
                permits.release(self.place);
            }
            work.on_unsent(&due, now, class);
        }
        if let Some(pools) = &self.pools {
            pools.withdraw(self.place);
        }
    }

    /// Gives up what is open, what waits, and what was planned and could not even be taken in hand in time.
    pub(super) fn abandon(&mut self, work: &mut Work, now: Stamp) {
        work.give_up_unsent(now);
        self.give_up_queued(work, now, Class::Unfinished);
        for slot in 0..self.connections.len() {
            if matches!(self.connections[slot].state, State::Opening | State::Busy) {
                let progress = self.connections[slot].exchange.on_abandoned(now);
                self.after(work, slot, progress);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::load::agenda::Agenda;
    use crate::load::gauges::Gauges;
    use crate::load::leg::Leg;
    use crate::load::requests::{Requests, tests::leg};
    use crate::load::shard::Equipment;
    use crate::pace::{Kernel, Mode, Pace, block_on};
    use crate::plan::Driver;
    use crate::sys::clock::RunClock;

    /// A shard, and the books of a leg that has begun at zero, ends after 1 s and has one send planned for then less
    /// 1 ns.
    fn at_the_end() -> (Shard, Work) {
        let pace = Pace::new(RunClock::start(), Mode::Sleep, Kernel::Epoll).unwrap();
        let equipment = Equipment {
            place: 0,
            core: None,
            pace,
            gauges: Arc::new(Gauges::default()),
            live: None,
            spool: None,
            stamped: false,
        };
        let leg = leg();
        let agenda = Agenda::open(Box::new([(0, 999_999_999)].into_iter()));
        let requests = Requests::new(Arc::clone(&leg), &agenda, None);
        let mut work = Work::new(leg, agenda, requests);
        work.begin(Stamp::ZERO);
        work.end = Stamp::from_millis(1000);
        (Shard::new(equipment), work)
    }

    #[test]
    fn what_is_late_at_the_end_is_still_due() {
        block_on(Driver::Epoll, |_| async {
            let (mut shard, mut work) = at_the_end();
            work.leg = Arc::new(Leg { grace: Duration::from_secs(5), ..Arc::try_unwrap(leg()).unwrap() });
            shard.check_end(&mut work, Stamp::from_millis(1000));
            assert_eq!(work.give_up, Some(Stamp::from_millis(6000)));
            assert!(work.agenda.pop(Stamp::from_millis(1000)).is_some());
        })
        .unwrap();
    }

    #[test]
    fn what_is_late_when_the_grace_is_over_is_counted_as_unfinished() {
        block_on(Driver::Epoll, |_| async {
            let (mut shard, mut work) = at_the_end();
            shard.check_end(&mut work, Stamp::from_millis(1000));
            assert!(work.is_over());
            assert_eq!(work.tally.whole().counts.failed, 1);
            assert_eq!(work.last_plan, Some(Stamp::from_nanos(999_999_999)));
        })
        .unwrap();
    }
}
