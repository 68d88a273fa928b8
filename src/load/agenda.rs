//! Which request of a shard is due next, and when.
//!
//! Open loop: the shard's part of the one master schedule. Closed loop: the shard's users, each of which is ready
//! again after its answer and its think time, or, if it is paced, at its next planned time but not before its answer. No sockets and no clocks: stamps are handed in. An agenda is laid out
//! from stamp zero and moved to the level's common start by [`Agenda::begin`], so that the first requests can be
//! written before the start is known.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::load::until::Reach;
use crate::time::Stamp;
use crate::workload::arrival;

/// A request whose time has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Place in the level's plan.
    pub index: u64,
    /// Intended send.
    pub plan: Stamp,
    /// From when on it may be sent: its plan, or later where its user still waited for an answer then. What comes after
    /// it is the client's own lateness.
    pub ready: Stamp,
    /// The shard's user that sends it; `None` in an open loop.
    pub user: Option<u32>,
}

/// Planned (index, offset in ns) of one shard, by rising offset.
pub(crate) type Schedule = Box<dyn Iterator<Item = (u64, u64)> + Send>;

/// The sends of one shard in one level.
pub(crate) struct Agenda {
    source: Source,
    stopped: bool,
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
/// User `u` of all `total` users sends the requests `u`, `u + total`, `u + 2 total` and so on.
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
    /// Shards that have users.
    pub shards: u32,
    /// This shard, below `shards`.
    pub shard: u32,
    /// Requests over all users; `u64::MAX` without a limit.
    pub units: u64,
    /// Pause between an answer and the next request.
    pub think: Duration,
    /// Gap between the first sends of this shard's users; paced ones begin as their schedules say.
    pub spread: Duration,
    /// Gap between the planned sends of each user, if they are paced.
    pub pace: Option<Duration>,
    /// No request is planned at or after this time since the start; `Duration::MAX` without a limit.
    pub duration: Duration,
}

impl ClosedLoop {
    /// So many users on one shard who send `units` requests as soon as they can.
    pub(crate) fn of(users: u32, units: u64) -> ClosedLoop {
        ClosedLoop {
            users,
            shards: 1,
            shard: 0,
            units,
            think: Duration::ZERO,
            spread: Duration::ZERO,
            pace: None,
            duration: Duration::MAX,
        }
    }
}

impl Agenda {
    /// The agenda of an open loop, from stamp zero.
    #[must_use]
    pub(crate) fn open(schedule: Schedule) -> Agenda {
        let upcoming = VecDeque::with_capacity(AHEAD);
        let arrivals = Arrivals { schedule, upcoming, start: Stamp::ZERO, units: u64::MAX, end_ns: u64::MAX };
        Agenda { source: Source::Open(arrivals), stopped: false }
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
            pace: of
                .pace
                .map(|interval| Pace { interval_ns: u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX) }),
            start: Stamp::ZERO,
            stop: later(Stamp::ZERO, of.duration),
            given_up: 0,
        };
        let mut at = Stamp::ZERO;
        for user in arrival::users_of(of.shard, of.shards, of.users) {
            users.next_index.push(u64::from(user));
            users.set_free(users.next_index.len() as u32 - 1, at);
            at = at + of.spread;
        }
        users.parked.reserve(users.next_index.len());
        Agenda { source: Source::Closed(users), stopped: false }
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
        if self.next()? > now {
            return None;
        }
        match &mut self.source {
            Source::Open(arrivals) => {
                let (index, offset) = arrivals.upcoming.pop_front()?;
                let plan = planned(arrivals.start, offset);
                Some(Due { index, plan, ready: plan, user: None })
            }
            Source::Closed(users) => {
                let Reverse((ready, user)) = users.ready.pop()?;
                let index = users.take_index(user);
                let plan = users.planned(index).unwrap_or(ready);
                Some(Due { index, plan, ready, user: Some(user) })
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

    /// A user's request has ended; it is ready again after its think time, or `pause` if that is longer.
    pub(crate) fn on_done(&mut self, user: Option<u32>, now: Stamp, pause: Duration) {
        let (Source::Closed(users), Some(user)) = (&mut self.source, user) else { return };
        users.set_free(user, now + users.think.max(pause));
    }

    /// The index of a user's next request, where there is one to prepare for.
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
                return Some(Due { index: self.take_index(user), plan, ready: plan, user: Some(user) });
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

fn planned(start: Stamp, offset_ns: u64) -> Stamp {
    start + Duration::from_nanos(offset_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Stamp = Stamp::from_millis(1000);

    fn of(users: u32, shards: u32, shard: u32, units: u64) -> ClosedLoop {
        ClosedLoop {
            users,
            shards,
            shard,
            units,
            think: Duration::ZERO,
            spread: Duration::from_micros(50),
            ..ClosedLoop::of(users, units)
        }
    }

    fn paced(users: u32, shards: u32, shard: u32) -> ClosedLoop {
        let pace = Some(Duration::from_millis(100));
        ClosedLoop { pace, duration: Duration::from_secs(1), ..of(users, shards, shard, u64::MAX) }
    }

    fn begun(mut agenda: Agenda) -> Agenda {
        agenda.begin(START);
        agenda
    }

    /// Serves every request at once and collects the indices.
    fn drain(agenda: &mut Agenda) -> Vec<u64> {
        let mut seen = Vec::new();
        while let Some(at) = agenda.next() {
            let due = agenda.pop(at).unwrap();
            seen.push(due.index);
            agenda.on_done(due.user, at + Duration::from_millis(1), Duration::ZERO);
        }
        seen
    }

    #[test]
    fn users_of_all_shards_send_each_index_once() {
        for shards in [1, 2, 5] {
            let mut all: Vec<u64> = (0..shards)
                .flat_map(|shard| drain(&mut begun(Agenda::closed(&of(5, shards, shard, 23)))))
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..23).collect::<Vec<_>>());
        }
    }

    #[test]
    fn first_sends_are_spread_and_later_ones_follow_the_answer() {
        let mut agenda = begun(Agenda::closed(&of(2, 1, 0, 100)));
        assert_eq!(agenda.pop(START).unwrap().index, 0);
        assert_eq!(agenda.pop(START), None);
        let second = agenda.next().unwrap();
        assert_eq!(second, START + Duration::from_micros(50));
        assert_eq!(agenda.pop(second).unwrap(), Due { index: 1, plan: second, ready: second, user: Some(1) });
        let end = START + Duration::from_millis(7);
        agenda.on_done(Some(0), end, Duration::ZERO);
        assert_eq!(agenda.pop(end).unwrap(), Due { index: 2, plan: end, ready: end, user: Some(0) });
    }

    #[test]
    fn paced_users_of_all_shards_plan_equal_gaps() {
        for shards in [1, 2, 3] {
            let mut all = Vec::new();
            for shard in 0..shards {
                let mut agenda = begun(Agenda::closed(&paced(4, shards, shard)));
                while let Some(at) = agenda.next() {
                    let due = agenda.pop(at).unwrap();
                    assert_eq!(due.plan, due.ready, "nobody waits");
                    all.push((due.index, due.plan));
                    agenda.on_done(due.user, at + Duration::from_millis(7), Duration::ZERO);
                }
            }
            all.sort_unstable();
            let expected = (0..40).map(|index| (index, START + Duration::from_millis(25 * index)));
            assert_eq!(all, expected.collect::<Vec<_>>(), "{shards} shards");
        }
    }

    #[test]
    fn a_paced_user_that_waits_keeps_its_plan_and_sends_at_once_when_it_is_free() {
        let mut agenda = begun(Agenda::closed(&paced(1, 1, 0)));
        let ms = |ms| START + Duration::from_millis(ms);
        assert!(agenda.pop(START).is_some());
        agenda.on_done(Some(0), ms(250), Duration::ZERO);
        assert_eq!(agenda.pop(ms(249)), None);
        let second = Due { index: 1, plan: ms(100), ready: ms(250), user: Some(0) };
        assert_eq!(agenda.pop(ms(251)), Some(second), "its lateness is the server's until it is free");
        agenda.on_done(Some(0), ms(260), Duration::ZERO);
        assert_eq!(agenda.next(), Some(ms(260)), "what was planned for 200 is still to be sent");
        agenda.pop(ms(260)).unwrap();
        agenda.on_done(Some(0), ms(270), Duration::ZERO);
        assert_eq!(agenda.next(), Some(ms(300)), "back in step");
    }

    #[test]
    fn what_paced_users_planned_in_time_is_sent_after_the_end_or_counted() {
        let ms = |ms| START + Duration::from_millis(ms);
        let mut agenda = begun(Agenda::closed(&paced(2, 1, 0)));
        let (first, second) = (agenda.pop(START).unwrap(), agenda.pop(ms(50)).unwrap());
        agenda.on_done(first.user, ms(1200), Duration::ZERO);
        let late = agenda.pop(ms(1200)).unwrap();
        assert_eq!((late.index, late.plan), (2, ms(100)), "planned in time, sent in the drain");
        // User 1 is still in flight with its first, user 0 with its second: 9 and 8 of ten each are left.
        let mut left = Vec::new();
        while let Some(due) = agenda.pop_unsent(ms(3000)) {
            left.push(due.index);
        }
        left.sort_unstable();
        assert_eq!(left, (3..20).collect::<Vec<_>>());
        assert!(agenda.is_empty());
        assert_eq!(second.index, 1);
        agenda.stop();
        assert_eq!(agenda.pop_unsent(Stamp::MAX), None);
    }

    fn reach(units: u64, length: Duration) -> Reach {
        Reach { units, length }
    }

    #[test]
    fn an_open_loop_goes_on_with_its_schedule_when_the_end_is_moved() {
        let schedule: Schedule = Box::new((0..100u64).map(|i| (i, i * 1_000_000)));
        let mut agenda = begun(Agenda::open(schedule));
        agenda.set_reach(reach(30, Duration::MAX), START);
        let mut all = drain(&mut agenda);
        assert_eq!(all.len(), 30);
        agenda.set_reach(reach(60, Duration::from_millis(50)), START);
        all.extend(drain(&mut agenda));
        agenda.set_reach(reach(200, Duration::MAX), START);
        assert_eq!(agenda.pop(Stamp::MAX).unwrap().plan, START + Duration::from_millis(50));
        all.extend([50].into_iter().chain(drain(&mut agenda)));
        assert_eq!(all, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn users_at_the_end_go_on_when_it_is_moved() {
        // Of five users the last two have no request at first.
        let mut agenda = begun(Agenda::closed(&of(5, 1, 0, 3)));
        assert_eq!(agenda.users(), 5);
        let mut all = drain(&mut agenda);
        assert_eq!(all, [0, 1, 2]);
        let later = START + Duration::from_secs(1);
        agenda.set_reach(reach(12, Duration::MAX), later);
        assert_eq!(agenda.next(), Some(later), "nobody was late: there was nothing to send before");
        all.extend(drain(&mut agenda));
        all.sort_unstable();
        assert_eq!(all, (0..12).collect::<Vec<_>>());
        agenda.set_reach(reach(12, Duration::MAX), later);
        assert!(agenda.is_empty());
    }

    #[test]
    fn paced_users_keep_their_plans_when_the_end_is_moved() {
        let mut agenda = begun(Agenda::closed(&paced(2, 1, 0)));
        let all = drain(&mut agenda);
        assert_eq!(all.len(), 20);
        agenda.set_reach(reach(u64::MAX, Duration::from_secs(2)), START + Duration::from_millis(900));
        assert_eq!(agenda.pop(Stamp::MAX).unwrap().plan, START + Duration::from_secs(1));
    }

    #[test]
    fn nothing_is_planned_at_or_after_the_end() {
        let limit = ClosedLoop { duration: Duration::from_millis(10), ..of(1, 1, 0, u64::MAX) };
        let mut agenda = begun(Agenda::closed(&limit));
        assert!(agenda.pop(START).is_some());
        agenda.on_done(Some(0), START + Duration::from_millis(10), Duration::ZERO);
        assert!(agenda.is_empty());
    }

    #[test]
    fn an_open_loop_keeps_its_plan_when_it_is_late() {
        let schedule: Schedule = Box::new([(3, 0), (7, 2_000_000)].into_iter());
        let mut agenda = begun(Agenda::open(schedule));
        let late = START + Duration::from_secs(1);
        assert_eq!(agenda.pop(late), Some(Due { index: 3, plan: START, ready: START, user: None }));
        assert_eq!(agenda.pop(late).unwrap().plan, START + Duration::from_millis(2));
        assert!(agenda.is_empty());
    }

    #[test]
    fn the_schedule_is_walked_ahead_without_losing_its_place() {
        let schedule: Schedule = Box::new((0..3000u64).map(|i| (2 * i, i * 1000)));
        let mut agenda = Agenda::open(schedule);
        let mut last = None;
        let mut ahead = 0;
        while let Some(index) = agenda.upcoming_after(last) {
            assert_eq!(index, 2 * ahead);
            last = Some(index);
            ahead += 1;
        }
        assert_eq!(ahead, AHEAD as u64);
        agenda.begin(START);
        assert_eq!(drain(&mut agenda), (0..3000).map(|i| 2 * i).collect::<Vec<u64>>());
    }

    #[test]
    fn a_stopped_agenda_gives_nothing() {
        let mut agenda = begun(Agenda::closed(&of(1, 1, 0, 10)));
        agenda.stop();
        assert_eq!(agenda.pop(Stamp::MAX), None);
    }
}
