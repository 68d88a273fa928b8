//! The books of one leg on one shard: what is due, what was counted, which records wait to be written.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::Queued;
use super::showing::Showing;
use crate::api::talk::Reply;
use crate::exchange::Exchange;
use crate::load::agenda::{Agenda, Due, later};
use crate::load::leg::{Halt, Leg, Sample, ShardReport};
use crate::load::replicas::Known;
use crate::load::requests::{Next, Requests, Written};
use crate::load::spool::Block;
use crate::metrics::tally::Gaps;
use crate::metrics::{Class, Flags, Kind, Outcome, Phase, Record, Tally};
use crate::plan::Timestamps;
use crate::run::{Example, ShardCheck};
use crate::stats::{Pending, Running};
use crate::summary::precision::Observation;
use crate::time::Stamp;

/// E2E values kept for the cut of the level after a warm-up.
const E2E_KEPT_MAX: usize = 4096;
/// Bytes may wait so long for the client without its being late: the measurement spec's bound for receive lag.
const LATE_NS: u64 = 1_000_000;
const EXAMPLES_MAX: usize = 32;
const RECORDS_PER_BLOCK: usize = 512;

/// What the end of a leg asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    /// Requests that wait for the cap are never sent.
    pub(crate) cancels_waiting: bool,
    /// What is open is unfinished.
    pub(crate) gives_up: bool,
}

/// What belongs to one leg.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) leg: Arc<Leg>,
    pub(crate) agenda: Agenda,
    pub(crate) requests: Requests,
    pub(crate) tally: Tally,
    pub(crate) block: Block,
    /// When the block is handed over though it is not full.
    pub(crate) next_flush: Stamp,
    pub(crate) check: ShardCheck,
    /// What is still to come into [`ShardCheck::receive_lag`].
    pub(crate) receive_lags: Pending,
    pub(crate) showing: Showing,
    pub(crate) examples: Vec<Example>,
    /// Due, but without a permit yet; in the order of their plans.
    pub(crate) waiting: VecDeque<Due>,
    /// With a permit, but without a connection yet, by endpoint and in the order of their plans.
    pub(crate) queued: Vec<VecDeque<Queued>>,
    pub(crate) in_flight: usize,
    /// The text of answers is wanted: [`Leg::gathers_replies`].
    pub(crate) gathers_replies: bool,
    /// The common start.
    start: Stamp,
    /// What the signal said last: its version, whether the end may be moved, how often observations were asked for.
    version: u64,
    open: bool,
    asked: u64,
    answered: u64,
    observations: Vec<Observation>,
    /// Nothing more is sent, and what is open is given up at this stamp.
    pub(crate) give_up: Option<Stamp>,
    pub(crate) window_start: Stamp,
    /// When the loop's lag is measured next, and when time is wasted next.
    pub(crate) next_tick: Stamp,
    pub(crate) next_burn: Stamp,
    /// When the loop last had nothing left to read, as far as it knows.
    pub(crate) caught_up: Stamp,
    pub(crate) end: Stamp,
    pub(crate) last_plan: Option<Stamp>,
    pub(crate) last_end: Option<Stamp>,
    pub(crate) records: u64,
    pub(crate) e2e_ns: Vec<u64>,
    /// Names of replicas that this shard has met.
    known: Known,
}

impl Work {
    pub(crate) fn new(leg: Arc<Leg>, agenda: Agenda, requests: Requests) -> Work {
        Work {
            agenda,
            requests,
            tally: Tally::new(Stamp::ZERO),
            block: Block::default(),
            next_flush: Stamp::MAX,
            check: ShardCheck::default(),
            receive_lags: Pending::new(),
            showing: Showing::default(),
            examples: Vec::new(),
            waiting: VecDeque::new(),
            queued: Vec::new(),
            in_flight: 0,
            gathers_replies: leg.gathers_replies(),
            start: Stamp::ZERO,
            version: 0,
            open: false,
            asked: 0,
            answered: 0,
            observations: Vec::new(),
            give_up: None,
            window_start: Stamp::ZERO,
            next_tick: Stamp::MAX,
            next_burn: Stamp::ZERO,
            caught_up: Stamp::MAX,
            end: Stamp::MAX,
            last_plan: None,
            last_end: None,
            records: 0,
            e2e_ns: Vec::new(),
            known: Known::new(),
            leg,
        }
    }

    /// The common start is known: everything that was laid out from zero moves there.
    pub(crate) fn begin(&mut self, start: Stamp) {
        self.agenda.begin(start);
        self.tally.begin(start);
        self.window_start = start + self.leg.cut;
        self.start = start;
        let moments = [start, self.window_start].map(Stamp::as_nanos);
        self.check.running = Some(Running::marking(moments));
        self.listen(start);
    }

    /// Takes in what the signal tells.
    fn listen(&mut self, now: Stamp) {
        let signal = &self.leg.signal;
        // The version first: what changes in between is then looked at again.
        self.version = signal.version();
        let told = signal.told();
        self.agenda.set_reach(told.reach, now);
        self.end = later(self.start, told.reach.length);
        if let Some(running) = &mut self.check.running {
            running.mark(self.end.as_nanos());
        }
        self.open = told.open;
        self.asked = told.asked;
    }

    /// What was observed since the last time, if it was asked for since; `in_flight` are the records of requests that have
    /// not ended.
    pub(crate) fn answer<'a>(
        &mut self,
        now: Stamp,
        in_flight: impl Iterator<Item = &'a Record>,
    ) -> Option<Sample> {
        (self.answered != self.asked).then(|| {
            self.answered = self.asked;
            let overdue = self.overdue(now, in_flight);
            Sample { seen: self.take_observations(), overdue }
        })
    }

    /// How many requests that have not ended, or not even begun, have missed a limit by now.
    pub(crate) fn overdue<'a>(&self, now: Stamp, in_flight: impl Iterator<Item = &'a Record>) -> u64 {
        let Some(observed) = &self.leg.observed else { return 0 };
        let is_overdue =
            |record: &Record| record.plan >= self.window_start && observed.is_overdue(record, now);
        let waiting = self.waiting.iter().chain(self.queued.iter().flatten().map(|one| &one.due));
        let waiting = waiting.filter(|due| {
            let unsent = Record { start: now, ..Record::planned(due.index, due.plan) };
            is_overdue(&unsent)
        });
        (in_flight.filter(|record| is_overdue(record)).count() + waiting.count()) as u64
    }

    /// What was observed since the last time.
    pub(crate) fn take_observations(&mut self) -> Vec<Observation> {
        std::mem::take(&mut self.observations)
    }

    /// A request is taken in hand.
    pub(crate) fn on_start(&mut self, now: Stamp) {
        self.in_flight += 1;
        self.check.sent += 1;
        self.showing.on_start();
        if let Some(running) = &mut self.check.running {
            running.on_start(now.as_nanos());
        }
        self.tally.on_sent(now);
    }

    /// It was started so late after its plan and its permit, ns.
    pub(crate) fn on_delay(&mut self, ns: u64) {
        self.check.schedule_delay.record(ns);
        self.showing.on_delay(ns);
    }

    /// The loop saw a tick so late, ns. Of several that passed unseen each has its own lag: an event that came then would have
    /// waited so long.
    pub(crate) fn on_lag(&mut self, ns: u64, interval: u64) {
        self.check.loop_lag.record_corrected(ns, interval);
        self.showing.on_lag(ns, interval);
    }

    /// Whether the bytes of a read at `now` may have waited for the client, so that several events of it need not have
    /// come together. A thread that slept past its tick was late as well.
    #[inline]
    pub(crate) fn is_late(&self, now: Stamp, kernel: Option<Stamp>) -> bool {
        let there_since = self.caught_up.min(self.next_tick);
        now.nanos_since(there_since) > LATE_NS || kernel.is_some_and(|at| now.nanos_since(at) > LATE_NS)
    }

    /// What the end of the leg asks for at `now`: nothing more is sent from the planned length on or when the user
    /// says so, and after the grace period what is open is given up.
    pub(crate) fn look_at_end(&mut self, now: Stamp) -> Ending {
        if self.leg.signal.version() != self.version {
            self.listen(now);
        }
        let halted = self.leg.signal.halted();
        if halted != Halt::No {
            self.agenda.stop();
        }
        // The agenda itself ends before `end`; what it still holds then was planned in time and is only late.
        let ended = now >= self.end && !self.open;
        if self.give_up.is_none() && (ended || halted != Halt::No) {
            self.give_up = Some(later(now.min(self.end), self.leg.grace));
        }
        Ending {
            // Also in the drain: whoever waits for the cap then is not sent any more.
            cancels_waiting: halted != Halt::No,
            gives_up: halted == Halt::Abort || self.give_up.is_some_and(|at| now >= at),
        }
    }

    /// Gives up what waits, and what was planned and could not even be taken in hand in time.
    pub(crate) fn give_up_unsent(&mut self, now: Stamp) {
        while let Some(due) = self.agenda.pop_unsent(now) {
            self.last_plan = self.last_plan.max(Some(due.plan));
            self.on_unsent(&due, now, Class::Unfinished);
        }
        self.agenda.stop();
        for due in std::mem::take(&mut self.waiting) {
            self.on_unsent(&due, now, Class::Unfinished);
        }
    }

    /// Enough records wait to be written.
    pub(crate) fn block_is_full(&self) -> bool {
        self.block.records.len() >= RECORDS_PER_BLOCK * Record::BYTES
    }

    pub(crate) fn is_over(&mut self) -> bool {
        let nobody_waits = self.waiting.is_empty() && self.queued.iter().all(VecDeque::is_empty);
        let nothing_left = self.in_flight == 0 && nobody_waits && self.agenda.is_empty();
        // While the end may be moved, whoever has got there waits for it; but not for a run that is given up.
        nothing_left && (!self.open || self.give_up.is_some())
    }

    /// The oldest request that waits for a connection to endpoint `route`.
    pub(crate) fn next_queued(&mut self, route: usize) -> Option<Due> {
        self.queued.get_mut(route)?.pop_front().map(|one| one.due)
    }

    /// Whether a request of `session` waits for a connection to any endpoint.
    pub(crate) fn is_queued(&self, session: u64) -> bool {
        self.queued.iter().flatten().any(|one| one.due.index == session)
    }

    pub(crate) fn next_send(&mut self) -> Stamp {
        self.agenda.next().unwrap_or(Stamp::MAX)
    }

    /// When the end of the leg has to be looked at.
    pub(crate) fn next_end(&self) -> Stamp {
        self.give_up.unwrap_or(if self.open { Stamp::MAX } else { self.end })
    }

    /// The record of `exchange`, which is over, with the replica that answered where these are told apart; `at` is the route
    /// and the place of its address.
    pub(crate) fn record_of(&mut self, exchange: &Exchange, (route, address): (usize, usize)) -> Record {
        let record = *exchange.record();
        let Some(replicas) = &self.leg.replicas else { return record };
        let replica = match exchange.replica() {
            _ if replicas.are_addresses() => record.conn.and_then(|_| replicas.at(route, address)),
            Some(name) => replicas.named(name, &mut self.known),
            None => None,
        };
        Record { replica, ..record }
    }

    pub(crate) fn on_done(&mut self, record: &Record, exchange: &Exchange, times: &[u64]) {
        self.in_flight -= 1;
        self.showing.on_end();
        self.leg.on_end(record);
        if let Some(running) = &mut self.check.running {
            running.on_end(record.end.as_nanos());
        }
        if record.outcome.is_failure() {
            self.keep_example(record.outcome, exchange.message());
        }
        let (user, kernel) = (exchange.gaps(), exchange.kernel_gaps());
        let by_kernel = record.by_kernel().filter(|_| self.leg.timestamps == Timestamps::Kernel);
        let (judged, gaps) = match &by_kernel {
            Some(by_kernel) if kernel.len() == user.len() => (by_kernel, kernel),
            _ => (record, user),
        };
        self.tally.on_done(judged, gaps, kernel, self.window_start);
        self.showing.on_done(judged, gaps, self.window_start);
        self.observe(judged);
        self.last_end = self.last_end.max(Some(record.end));
        if let (true, Some(e2e)) = (record.outcome.is_ok(), record.e2e_ns())
            && !record.flags.contains(Flags::SLOW_READER)
            && self.e2e_ns.len() < E2E_KEPT_MAX
        {
            self.e2e_ns.push(e2e);
        }
        self.keep_record(record, times, gaps);
    }

    /// The written request of `due`; `None` where the file that it is in broke off. What goes with the beginning of its
    /// session is planned.
    pub(crate) fn take(&mut self, due: &Due) -> Option<Written> {
        let written = self.requests.take(due)?;
        for (turn, next) in self.requests.beside(due) {
            self.plan(due, (turn, next), due.ready);
        }
        Some(written)
    }

    /// What follows a request that has ended, now: further turns of its session, a pause after the end of the answer; or,
    /// when the session has ended, the next one of its user, at least the given pause from now. Returns whether it has.
    pub(crate) fn go_on(
        &mut self,
        due: &Due,
        record: &Record,
        reply: &Reply,
        (now, pause): (Stamp, Duration),
    ) -> bool {
        let mut follow = self.requests.on_end(due, record, reply);
        for next in follow.next {
            self.plan(due, next, record.end);
        }
        if follow.withdraws {
            let requests = self.agenda.withdraw(due.index);
            follow.is_over = self.requests.on_withdrawn(due.index, requests);
        }
        if follow.is_over {
            self.agenda.on_done(due.user, now, pause);
        }
        follow.is_over
    }

    fn plan(&mut self, due: &Due, (turn, next): (u16, Next), end: Stamp) {
        let times = match next {
            Next::After(pause) => (end + pause, end + pause),
            Next::At(offset_ns) => (self.start + Duration::from_nanos(offset_ns), end),
            Next::On(plan, ready) => (plan, ready),
        };
        self.agenda.go_on(due, turn, times);
    }

    /// A request that was planned and never sent.
    pub(crate) fn on_unsent(&mut self, due: &Due, now: Stamp, class: Class) {
        self.requests.on_unsent(due);
        let mut record = due.record();
        record.phase = self.leg.phase;
        record.outcome = Outcome::new(class, Kind::None, 0);
        record.permit = now;
        record.start = now;
        record.end = now;
        record.flags.insert(Flags::FROM_PLAN);
        let none = Gaps::default();
        self.tally.on_done(&record, &none, &none, self.window_start);
        self.showing.on_done(&record, &none, self.window_start);
        self.observe(&record);
        self.keep_record(&record, &[], &none);
    }

    /// Notes what the figure takes of a request that the leg goes on for.
    fn observe(&mut self, record: &Record) {
        if let Some(observed) = &self.leg.observed
            && record.plan >= self.window_start
            && !record.flags.contains(Flags::SLOW_READER)
        {
            self.observations.extend(observed.of(record));
        }
    }

    pub(crate) fn keep_record(&mut self, record: &Record, times: &[u64], gaps: &Gaps) {
        self.records += 1;
        self.block.push(record, times, gaps);
    }

    pub(crate) fn keep_example(&mut self, outcome: Outcome, message: &str) {
        let known = self.examples.iter().any(|one| one.outcome == outcome);
        if !known && self.examples.len() < EXAMPLES_MAX && self.leg.phase == Phase::Measured {
            self.examples.push(Example { outcome, message: message.to_owned() });
        }
    }

    pub(crate) fn into_report(mut self) -> ShardReport {
        self.receive_lags.count(&mut self.check.receive_lag);
        let sessions = self.requests.into_sessions();
        ShardReport {
            tally: self.tally,
            check: ShardCheck { sessions, ..self.check },
            examples: self.examples,
            records: self.records,
            last_plan: self.last_plan,
            last_end: self.last_end,
            e2e_ns: self.e2e_ns,
            observations: self.observations,
        }
    }
}
