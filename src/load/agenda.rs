//! Which request of a shard is due next, and when.
//!
//! Open loop: the shard's part of the one master schedule. Closed loop: the shard's users, each of which is ready
//! again after its answer and its think time, or, if it is paced, at its next planned time but not before its answer. In
//! both, the later turns of sessions, which are planned as the answers before them end ([`Agenda::go_on`]). No sockets and no clocks: stamps are handed in. An agenda is laid out
//! from stamp zero and moved to the level's common start by [`Agenda::begin`], so that the first requests can be
//! written before the start is known.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::load::until::Reach;
use crate::metrics::Record;
use crate::time::Stamp;
use crate::workload::arrival;

/// A request whose time has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Place in the level's plan: that of its session.
    pub index: u64,
    /// Turn of that session, from 0.
    pub turn: u16,
    /// Intended send.
    pub plan: Stamp,
    /// From when on it may be sent: its plan, or later where its user still waited for an answer then. What comes after
    /// it is the client's own lateness.
    pub ready: Stamp,
    /// The shard's user that sends it; `None` in an open loop.
    pub user: Option<u32>,
}

impl Due {
    /// The record of its request, which has not been started.
    pub(crate) fn record(&self) -> Record {
        Record { turn: self.turn, ..Record::planned(self.index, self.plan) }
    }
}

/// Planned (index, offset in ns) of one shard, by rising offset.
pub(crate) type Schedule = Box<dyn Iterator<Item = (u64, u64)> + Send>;

/// The sends of one shard in one level.
pub(crate) struct Agenda {
    source: Source,
    turns: Turns,
    stopped: bool,
}

/// Later turns of sessions that have been planned, by the time from which they may be sent.
#[derive(Debug)]
struct Turns {
    planned: BinaryHeap<Reverse<Turn>>,
    /// None is due that is planned from here on.
    end: Stamp,
}

/// In the order of the times from which they may be sent.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    ready: Stamp,
    plan: Stamp,
    index: u64,
    turn: u16,
    user: Option<u32>,
}

impl Turns {
    fn none() -> Turns {
        Turns { planned: BinaryHeap::new(), end: Stamp::MAX }
    }

    /// When the next one is due.
    fn next(&self) -> Option<Stamp> {
        self.planned.peek().filter(|Reverse(turn)| turn.plan < self.end).map(|Reverse(turn)| turn.ready)
    }

    fn pop(&mut self) -> Option<Due> {
        let Reverse(Turn { ready, plan, index, turn, user }) = self.planned.pop()?;
        Some(Due { index, turn, plan, ready, user })
    }
}

enum Source {
    Open(Arrivals),
    Closed(Users),
}

/// The planned sends of an open loop.
struct Arrivals {
    schedule: Schedule,
    /// Drawn from the schedule and not yet due: (index, offset in ns).
    upcoming: VecDeque<(u64, u64)>,
    start: Stamp,
    /// Indices and offsets from here on are not due for now.
    units: u64,
    end_ns: u64,
}

/// How far an open loop's schedule is walked ahead of time, in sends of one shard.
const AHEAD: usize = 1024;

/// The users of one shard in a closed loop.
///
/// User `u` of all `total` users runs the sessions `u`, `u + total`, `u + 2 total` and so on, one after another.
struct Users {
    /// When each user that has a request left is ready, earliest first; users in flight are not in it.
    ready: BinaryHeap<Reverse<(Stamp, u32)>>,
    /// Users whose next request lies beyond the reach, with the time at which they were free.
    parked: Vec<(Stamp, u32)>,
    next_index: Vec<u64>,
    total: u64,
    units: u64,
    think: Duration,
    pace: Option<Pace>,
    start: Stamp,
    stop: Stamp,
    /// Users whose unsent requests have been given up already.
    given_up: usize,
}

/// The schedules of paced users.
#[derive(Clone, Copy)]
struct Pace {
    interval_ns: u64,
}

/// Users of a closed loop as one shard sees them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClosedLoop {
    /// Users over all shards.
    pub users: u32,
    /// Parts that users are dealt to: the shards that have users, of all processes together.
    pub shards: u32,
    /// This shard's part, below `shards`.
    pub shard: u32,
    /// Requests over all users; `u64::MAX` without a limit.
    pub units: u64,
    /// Pause between an answer and the next request.
    pub think: Duration,
    /// Gap between the first sends of this shard's users; paced ones begin as their schedules say.
    pub spread: Duration,
    /// Gap between the planned sends of each user, if they are paced.
    pub pace: Option<Duration>,
    /// How long the users of all shards take to come in one after another, in place of the spread.
    pub ramp: Option<Duration>,
    /// No request is planned at or after this time since the start; `Duration::MAX` without a limit.
    pub duration: Duration,
}

impl ClosedLoop {
    /// So many users on one shard of one process who send `units` requests as soon as they can.
    pub(crate) fn of(users: u32, units: u64) -> ClosedLoop {
        ClosedLoop {
            users,
            shards: 1,
            shard: 0,
            units,
            think: Duration::ZERO,
            spread: Duration::ZERO,
            pace: None,
            ramp: None,
            duration: Duration::MAX,
        }
    }

    /// When user `user` of all is first ready, the `place`-th of this shard.
    fn first_ready(&self, user: u32, place: u32) -> Stamp {
        match self.ramp {
            None => Stamp::ZERO + self.spread.saturating_mul(place),
            Some(ramp) => planned(Stamp::ZERO, arrival::joined_offset_ns(user, self.users, nanos(ramp))),
        }
    }
}

impl Agenda {
    /// The agenda of an open loop, from stamp zero.
    #[must_use]
    pub(crate) fn open(schedule: Schedule) -> Agenda {
        let upcoming = VecDeque::with_capacity(AHEAD);
        let arrivals = Arrivals { schedule, upcoming, start: Stamp::ZERO, units: u64::MAX, end_ns: u64::MAX };
        Agenda { source: Source::Open(arrivals), turns: Turns::none(), stopped: false }
    }

    /// The agenda of a closed loop, from stamp zero.
    #[must_use]
    pub(crate) fn closed(of: &ClosedLoop) -> Agenda {
        let mut users = Users {
            ready: BinaryHeap::new(),
            parked: Vec::new(),
            next_index: Vec::new(),
            total: u64::from(of.users),
            units: of.units,
            think: of.think,
            pace: of.pace.map(|interval| Pace { interval_ns: nanos(interval) }),
            start: Stamp::ZERO,
            stop: later(Stamp::ZERO, of.duration),
            given_up: 0,
        };
        for (place, user) in (0..).zip(arrival::users_of(of.shard, of.shards, of.users)) {
            users.next_index.push(u64::from(user));
            users.set_free(place, of.first_ready(user, place));
        }
        users.parked.reserve(users.next_index.len());
        Agenda { source: Source::Closed(users), turns: Turns::none(), stopped: false }
    }

    /// Moves everything planned from stamp zero to `start`.
    pub(crate) fn begin(&mut self, start: Stamp) {
        let shift = start - Stamp::ZERO;
        match &mut self.source {
            Source::Open(arrivals) => arrivals.start = start,
            Source::Closed(users) => {
                let ready = std::mem::take(&mut users.ready);
                users.ready =
                    ready.into_iter().map(|Reverse((at, user))| Reverse((at + shift, user))).collect();
                users.parked.iter_mut().for_each(|(at, _)| *at = *at + shift);
                users.start = start;
                users.stop = users.stop + shift;
            }
        }
    }

    /// Moves the end: the requests below so many, planned before so long after the start, may become due. A user who
    /// waited for that is ready from `now` on.
    pub(crate) fn set_reach(&mut self, reach: Reach, now: Stamp) {
        self.turns.end = later(self.start(), reach.length);
        match &mut self.source {
            Source::Open(arrivals) => {
                arrivals.units = reach.units;
                arrivals.end_ns = u64::try_from(reach.length.as_nanos()).unwrap_or(u64::MAX);
            }
            Source::Closed(users) => {
                users.units = reach.units;
                users.stop = later(users.start, reach.length);
                for (free, user) in std::mem::take(&mut users.parked) {
                    users.set_free(user, free.max(now));
                }
            }
        }
    }

    /// When the next request is due; `None` if none is waiting (in a closed loop one may still come).
    pub(crate) fn next(&mut self) -> Option<Stamp> {
        match (self.next_of_source(), self.turns.next().filter(|_| !self.stopped)) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The same without later turns.
    fn next_of_source(&mut self) -> Option<Stamp> {
        if self.stopped {
            return None;
        }
        match &mut self.source {
            Source::Open(arrivals) => {
                let (index, offset) = arrivals.peek(0)?;
                let within = index < arrivals.units && offset < arrivals.end_ns;
                within.then(|| planned(arrivals.start, offset))
            }
            Source::Closed(users) => users.ready.peek().map(|Reverse((at, _))| *at),
        }
    }

    /// The next request, if it is due.
    pub(crate) fn pop(&mut self, now: Stamp) -> Option<Due> {
        let next = self.next()?;
        if next > now {
            return None;
        }
        // Of equal times the turn comes first: its session has waited.
        if self.turns.next() == Some(next) {
            return self.turns.pop();
        }
        match &mut self.source {
            Source::Open(arrivals) => {
                let (index, offset) = arrivals.upcoming.pop_front()?;
                let plan = planned(arrivals.start, offset);
                Some(Due { index, turn: 0, plan, ready: plan, user: None })
            }
            Source::Closed(users) => {
                let Reverse((ready, user)) = users.ready.pop()?;
                let index = users.take_index(user);
                let plan = users.planned(index).unwrap_or(ready);
                Some(Due { index, turn: 0, plan, ready, user: Some(user) })
            }
        }
    }

    /// The next request that was planned by `now` and can no longer be sent. Unlike those of [`Agenda::pop`] they need
    /// not be ready: a paced user that still waits for an answer has not sent what it has planned since.
    pub(crate) fn pop_unsent(&mut self, now: Stamp) -> Option<Due> {
        match &mut self.source {
            Source::Closed(users) if users.pace.is_some() && !self.stopped => users.pop_unsent(now),
            _ => self.pop(now),
        }
    }

    /// In an open loop, the index of the send after the one of index `after` (the first one for `None`), as far as
    /// the schedule is walked ahead.
    pub(crate) fn upcoming_after(&mut self, after: Option<u64>) -> Option<u64> {
        let Source::Open(arrivals) = &mut self.source else { return None };
        let place = match after {
            None => 0,
            // Indices of one shard rise, so those written ahead are found by halving.
            Some(after) => arrivals.upcoming.partition_point(|(index, _)| *index <= after),
        };
        arrivals.peek(place).map(|(index, _)| index)
    }

    /// The session of `due` goes on with turn `turn`, which is planned for `plan` and may be sent from `ready` on. Its
    /// user, where there is one, is bound until it ends.
    pub(crate) fn go_on(&mut self, due: &Due, turn: u16, (plan, ready): (Stamp, Stamp)) {
        let Due { index, user, .. } = *due;
        self.turns.planned.push(Reverse(Turn { ready: ready.max(plan), plan, index, turn, user }));
    }

    /// Takes back what is planned of session `index` beyond its first turn, and says how many turns these are.
    pub(crate) fn withdraw(&mut self, index: u64) -> usize {
        let before = self.turns.planned.len();
        self.turns.planned.retain(|Reverse(turn)| turn.index != index);
        before - self.turns.planned.len()
    }

    fn start(&self) -> Stamp {
        match &self.source {
            Source::Open(arrivals) => arrivals.start,
            Source::Closed(users) => users.start,
        }
    }

    /// A user's session has ended; it is ready again after its think time, or `pause` if that is longer.
    pub(crate) fn on_done(&mut self, user: Option<u32>, now: Stamp, pause: Duration) {
        let (Source::Closed(users), Some(user)) = (&mut self.source, user) else { return };
        users.set_free(user, now + users.think.max(pause));
    }

    /// The index of a user's next session, where there is one to prepare for.
    #[must_use]
    pub(crate) fn next_of_user(&self, user: u32) -> Option<u64> {
        match &self.source {
            Source::Open(_) => None,
            Source::Closed(users) => {
                users.next_index.get(user as usize).copied().filter(|next| *next < users.units)
            }
        }
    }

    /// Number of users on this shard.
    #[must_use]
    pub(crate) fn users(&self) -> u32 {
        match &self.source {
            Source::Open(_) => 0,
            Source::Closed(users) => users.next_index.len() as u32,
        }
    }

    /// No further request becomes due.
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Nothing is due any more, unless a request in flight makes its user ready again.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.next().is_none()
    }
}

impl std::fmt::Debug for Agenda {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match &self.source {
            Source::Open(_) => "open",
            Source::Closed(_) => "closed",
        };
        f.debug_struct("Agenda").field("loop", &kind).field("stopped", &self.stopped).finish_non_exhaustive()
    }
}

impl Users {
    /// The user has nothing in flight from `free` on: it is ready then, or when it has planned to be, or it waits until
    /// the end is moved on.
    fn set_free(&mut self, user: u32, free: Stamp) {
        let Some(next) = self.next_index.get(user as usize).copied() else { return };
        let plan = self.planned(next).unwrap_or(free);
        if next < self.units && plan < self.stop {
            self.ready.push(Reverse((plan.max(free), user)));
        } else {
            self.parked.push((free, user));
        }
    }

    /// When request `index` is planned, if the users are paced.
    fn planned(&self, index: u64) -> Option<Stamp> {
        let Pace { interval_ns } = self.pace?;
        // There are no more users than fit 32 bits.
        Some(planned(self.start, arrival::paced_offset_ns(index, self.total as u32, interval_ns)))
    }

    /// The index of the user's next request, which it then has behind it.
    fn take_index(&mut self, user: u32) -> u64 {
        let next = &mut self.next_index[user as usize];
        let index = *next;
        *next += self.total;
        index
    }

    /// User by user what was planned by `now`, in flight or not.
    fn pop_unsent(&mut self, now: Stamp) -> Option<Due> {
        self.ready.clear();
        while let Some(next) = self.next_index.get(self.given_up).copied() {
            let user = self.given_up as u32;
            let plan = self.planned(next)?;
            if next < self.units && plan < self.stop && plan <= now {
                let index = self.take_index(user);
                return Some(Due { index, turn: 0, plan, ready: plan, user: Some(user) });
            }
            self.given_up += 1;
        }
        None
    }
}

impl Arrivals {
    /// Upcoming send number `place`, drawn from the schedule if need be and allowed.
    fn peek(&mut self, place: usize) -> Option<(u64, u64)> {
        while self.upcoming.len() <= place && self.upcoming.len() < AHEAD {
            self.upcoming.push_back(self.schedule.next()?);
        }
        self.upcoming.get(place).copied()
    }
}

/// `Stamp + Duration`, where `Duration::MAX` means never.
pub(crate) fn later(at: Stamp, span: Duration) -> Stamp {
    if span == Duration::MAX { Stamp::MAX } else { at + span }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn planned(start: Stamp, offset_ns: u64) -> Stamp {
    start + Duration::from_nanos(offset_ns)
}

#[cfg(test)]
mod tests;
