//! [`SimEngine`]: time jumps from one event to the next.

use std::sync::Arc;
use std::time::Duration;

use super::client::{Client, Pipe, drink, hear, settle};
use crate::engine::{Engine, Error};
use crate::exchange::{Ask, Progress};
use crate::load::assemble::{self, Beside};
use crate::load::virtually::{
    Agenda, Alarms, Bell, ClosedLoop, Deadlines, Gauges, Halt, Leg, LegOutcome, Limit, Reading, Replayed,
    Requests, Rung, ShardReport, Showing, Standing, Watch, Work, later, next_limit,
};
use crate::load::{Spool, SpoolSender, Spooled, Target, replay};
use crate::metrics::{Class, Live, Phase};
use crate::mock::Paper;
use crate::plan::{Arrivals, Level, Plan, Timestamps};
use crate::run::{Event, LevelResult, Stamps, Tick};
use crate::sys::signals::Interrupts;
use crate::time::Stamp;
use crate::wire::json::Json;
use crate::workload::{arrival, recording};

/// What a [`SimEngine`] is made of.
#[derive(Debug)]
pub struct Setup {
    /// The plan.
    pub plan: Arc<Plan>,
    /// Bodies; the addresses of its routes are never used.
    pub target: Arc<Target>,
    /// How answers are read.
    pub ask: Ask,
    /// The servers, one for each route of the target.
    pub servers: Vec<Paper>,
    /// Where records go; `None`: not kept.
    pub spool: Option<Spool>,
    /// Where it shows what it does, if anybody looks: as its only shard.
    pub live: Option<Live>,
    /// The user's wish to stop.
    pub interrupts: Interrupts,
}

/// Runs levels in virtual time, one after another on one time line.
#[derive(Debug)]
pub struct SimEngine {
    setup: Setup,
    now: Stamp,
    records: u64,
    json: Json,
    /// Requests in flight by the number that the server knows them by.
    clients: Vec<Client>,
    spare: Vec<usize>,
    /// Most requests in flight at once.
    clients_max: usize,
    gauges: Gauges,
    deadlines: Deadlines,
    alarms: Alarms,
}

/// What is sent in a leg.
struct Sends {
    agenda: Agenda,
    /// What, where it stands in a trace.
    recorded: Option<recording::Sends>,
    cap: Option<u32>,
    /// Decides whether the leg goes on, where its length depends on what comes.
    watch: Option<Watch>,
}

/// Simulated time between two looks at the user's wishes and the live view.
const LOOK_EVERY: usize = 4096;
/// A request arrives later than it was sent, by however little: what is sent when an answer ends, with a step of the
/// server, comes too late for the step that begins then.
const ON_THE_WAY: Duration = Duration::from_nanos(1);
/// A pause between levels, so that their time lines do not touch.
const BETWEEN_LEGS: Duration = Duration::from_millis(10);
/// Most requests in flight at once: no descriptors end a simulation that grows and grows, and each takes 3 kB.
const CLIENTS_MAX: usize = 1_000_000;

type Events<'a> = &'a mut dyn FnMut(Event<'_>);

impl SimEngine {
    /// An engine at the beginning of its time line.
    #[must_use]
    pub fn new(setup: Setup) -> SimEngine {
        SimEngine {
            setup,
            now: Stamp::ZERO,
            records: 0,
            json: Json::new(),
            clients: Vec::new(),
            spare: Vec::new(),
            clients_max: CLIENTS_MAX,
            gauges: Gauges::default(),
            deadlines: Deadlines::new(Stamp::ZERO),
            alarms: Alarms::default(),
        }
    }

    /// Ends the spool.
    pub fn finish(mut self) -> Option<Spooled> {
        self.setup.spool.take().map(Spool::finish)
    }

    fn leg(&self, ordinal: usize, level: &Level, phase: Phase, cut: Duration) -> Leg {
        Leg::planned(
            &self.setup.plan,
            self.setup.target.of_level(level, ordinal),
            self.setup.ask.clone(),
            level,
            (ordinal, phase, cut),
        )
    }

    fn warm_up(&mut self, ordinal: usize, level: &Level, events: Events<'_>) -> Result<LegOutcome, Error> {
        events(Event::WarmupStarted { ordinal, requests: level.warmups });
        let leg = self.leg(ordinal, level, Phase::Warmup, Duration::ZERO).for_warm_up(level.warmups);
        let of = ClosedLoop::of(assemble::warm_up_users(level), u64::from(level.warmups));
        let sends = Sends { agenda: self.closed(&of)?, recorded: None, cap: None, watch: None };
        self.run_leg(leg, sends, &mut |_| {})
    }

    fn sends(&self, ordinal: usize, level: &Level) -> Result<Sends, Error> {
        let watch = Watch::of(&self.setup.plan, level);
        let share = self.setup.plan.own_share();
        let cap = level.load.cap.map(|cap| share.count_u32(cap));
        let part = share.part((0, 1));
        if let Some(Replayed { schedule, requests }) = Replayed::of(&self.setup.target, level, part)? {
            return Ok(Sends { agenda: Agenda::open(schedule), recorded: Some(requests), cap, watch });
        }
        Ok(Sends { agenda: self.agenda(ordinal, level, watch.as_ref())?, recorded: None, cap, watch })
    }

    fn agenda(&self, ordinal: usize, level: &Level, watch: Option<&Watch>) -> Result<Agenda, Error> {
        let duration = level.stop.duration_s.map_or(Duration::MAX, assemble::seconds);
        if let Some(users) = level.load.users {
            let of = ClosedLoop {
                think: assemble::seconds(level.load.think_s),
                spread: assemble::seconds(self.setup.plan.client.start_spread_us / 1e6),
                pace: level.load.interval_s().map(assemble::seconds),
                ramp: level.load.ramp_s().map(assemble::seconds),
                duration,
                ..ClosedLoop::of(users, level.stop.units.unwrap_or(u64::MAX))
            };
            return self.closed(&of);
        }
        // Told now rather than after the work of sending all there is room for.
        let share = self.setup.plan.own_share();
        let burst = level.load.arrivals == Arrivals::Burst;
        let at_once = level.stop.units.filter(|_| burst).map(|units| share.count(units));
        if at_once.is_some_and(|n| n > self.clients_max as u64) {
            return Err(self.crowded());
        }
        let seed = self.setup.plan.level_seed(ordinal);
        let stop = watch.map_or_else(|| level.stop.clone(), |watch| watch.longest_stop(&level.stop));
        let schedule = arrival::Schedule::new(&level.load.arrivals, seed, &stop);
        let (place, shares) = share.part((0, 1));
        let dealt = arrival::Dealt::new(schedule, place, shares);
        Ok(Agenda::open(Box::new(dealt.map(|due| (due.index, due.offset_ns)))))
    }

    /// The users of `of` that are this share's, as many as there is room for.
    fn closed(&self, of: &ClosedLoop) -> Result<Agenda, Error> {
        let share = self.setup.plan.own_share();
        let (shard, shards) = share.part((0, 1));
        match share.count(u64::from(of.users).min(of.units)) {
            users if users <= self.clients_max as u64 => {
                Ok(Agenda::closed(&ClosedLoop { shard, shards, ..*of }))
            }
            _ => Err(self.crowded()),
        }
    }

    fn crowded(&self) -> Error {
        Error::Refused(format!(
            "more than {} requests would be in flight at once, for which a simulation has no room; give fewer users or \
             warm-ups, a cap by --max-concurrency, or fewer requests",
            self.clients_max
        ))
    }

    fn run_leg(&mut self, leg: Leg, sends: Sends, events: Events<'_>) -> Result<LegOutcome, Error> {
        let Sends { agenda, recorded, cap, mut watch } = sends;
        let leg = Arc::new(leg);
        self.now = self.now + BETWEEN_LEGS;
        let start = self.now;
        let requests = Requests::new(Arc::clone(&leg), &agenda, recorded);
        let mut work = Work::new(Arc::clone(&leg), agenda, requests);
        let live = self.setup.live.as_ref().and_then(|live| live.shard(0));
        work.showing = Showing::new(live, leg.phase, self.gauges.read().events);
        work.begin(start);
        if let Some(spool) = self.setup.spool.as_ref().filter(|_| leg.phase == Phase::Measured) {
            spool.begin_measuring(start);
        }
        self.alarms.clear();
        let mut permits = cap.unwrap_or(u32::MAX);
        let before = self.gauges.read();
        let mut interrupted = false;
        let mut looks = 0;
        while !work.is_over() {
            let next = work.next_send().min(self.next_wakeup());
            let due_at = watch.as_ref().map_or(Duration::MAX, Watch::due_at);
            let next = next.min(work.next_end()).min(self.deadlines.next()).min(later(start, due_at));
            self.now = self.now.max(next.min(self.alarms.next()));
            self.deliver(&mut work, &mut permits);
            self.ring(&mut work, &mut permits);
            self.send_due(&mut work, &mut permits);
            if self.clients.len() > self.clients_max {
                return Err(self.crowded());
            }
            self.check_deadlines(&mut work, &mut permits);
            if let Some(watch) = &mut watch
                && watch.is_due(self.now - start, work.check.sent)
            {
                self.decide(&mut work, watch, (before, start), events);
            }
            self.check_end(&mut work, &mut permits);
            looks += 1;
            if looks % LOOK_EVERY == 0 {
                interrupted |= pass_on(&self.setup.interrupts, &leg);
                let now = self.gauges.read();
                work.showing.publish(work.check.read_bytes, now.events);
                events(Event::Tick(Tick {
                    elapsed_s: (self.now - start).as_secs_f64(),
                    in_flight: now.in_flight(),
                    ok: now.ok - before.ok,
                    failed: now.failed - before.failed,
                    events: now.events - before.events,
                }));
            }
        }
        work.check.wall_ns = self.now.nanos_since(start);
        work.showing.publish(work.check.read_bytes, self.gauges.read().events);
        if let Some(sender) = self.setup.spool.as_ref().map(Spool::sender) {
            flush(&sender, &mut work);
        }
        let cut = leg.cut;
        let mut report = work.into_report();
        let watched = watch.map(|mut watch| {
            watch.take(std::mem::take(&mut report.observations));
            watch.end()
        });
        let replicas = leg.replicas.as_ref().map(|replicas| replicas.names()).unwrap_or_default();
        Ok(LegOutcome { start, cut, reports: vec![report], watched, interrupted, replicas })
    }

    /// Goes on or not, by what was observed so far.
    fn decide(&self, work: &mut Work, watch: &mut Watch, since: (Reading, Stamp), events: Events<'_>) {
        let (before, start) = since;
        watch.take(work.take_observations());
        let busy = self.clients.iter().filter(|client| client.busy).map(|client| client.exchange.record());
        let overdue = work.overdue(self.now, busy);
        let now = self.gauges.read();
        let hopeless = now.ok == before.ok && now.failed > before.failed;
        let standing = Standing { elapsed: self.now - start, sent: work.check.sent, overdue, hopeless };
        let decision = watch.decide(standing);
        work.leg.signal.set_reach(decision.reach, decision.open);
        if decision.stop {
            work.leg.signal.halt(Halt::Stop);
        }
        if let Some(note) = decision.note {
            events(Event::Note(&note));
        }
    }

    /// When a server has something to say next.
    fn next_wakeup(&self) -> Stamp {
        self.setup.servers.iter().map(Paper::next_wakeup).min().unwrap_or(Stamp::MAX)
    }

    /// The client of `slot` has gone.
    fn hang_up(&mut self, slot: usize) {
        if let Some(server) = self.setup.servers.get_mut(self.clients[slot].route) {
            server.cancel(self.now, slot as u64);
        }
    }

    /// Everything that the servers have to say by now.
    fn deliver(&mut self, work: &mut Work, permits: &mut u32) {
        let mut left = Vec::new();
        while self.next_wakeup() <= self.now {
            for (route, server) in self.setup.servers.iter_mut().enumerate() {
                for (slot, due, bytes) in server.advance(self.now) {
                    let slot = slot as usize;
                    let client = &mut self.clients[slot];
                    if !client.busy || client.route != route {
                        continue;
                    }
                    let progress = match &mut client.pipe {
                        None => hear(client, due, bytes, &mut self.json, work, &self.gauges),
                        Some(pipe) => {
                            pipe.bytes.extend(bytes);
                            let around = (&mut self.json, &self.gauges, &mut self.alarms);
                            drink(client, slot, due, work, around)
                        }
                    };
                    if progress == Progress::Over {
                        // The server may have more to say to a client that has heard enough; it is told at the end.
                        left.extend(
                            (client.exchange.record().outcome.class == Class::Cancelled).then_some(slot),
                        );
                        settle(client, slot, due, work, permits, &mut self.spare, &self.gauges);
                    }
                }
            }
            for slot in left.drain(..) {
                self.hang_up(slot);
            }
        }
        if work.block_is_full()
            && let Some(sender) = self.setup.spool.as_ref().map(Spool::sender)
        {
            flush(&sender, work);
        }
    }

    /// Users who go away now, and slow readers who may read again.
    fn ring(&mut self, work: &mut Work, permits: &mut u32) {
        while let Some(Rung { slot, uses, bell }) = self.alarms.pop(self.now) {
            let client = &mut self.clients[slot];
            if !client.busy || client.uses as u32 != uses {
                continue;
            }
            let progress = match bell {
                Bell::Leave => client.exchange.on_leaving(self.now),
                Bell::Read => {
                    client.pipe.iter_mut().for_each(|pipe| pipe.waits = false);
                    let around = (&mut self.json, &self.gauges, &mut self.alarms);
                    drink(client, slot, self.now, work, around)
                }
            };
            if progress == Progress::Over {
                // Of an answer that was complete there is nothing left to cancel.
                self.hang_up(slot);
                settle(&mut self.clients[slot], slot, self.now, work, permits, &mut self.spare, &self.gauges);
            }
        }
    }

    fn send_due(&mut self, work: &mut Work, permits: &mut u32) {
        while *permits > 0
            && let Some(due) = work.waiting.pop_front()
        {
            self.start(work, due, self.now, permits);
        }
        // All of a burst are due at once.
        while self.clients.len() <= self.clients_max
            && let Some(due) = work.agenda.pop(self.now)
        {
            work.last_plan = work.last_plan.max(Some(due.plan));
            if *permits > 0 {
                self.start(work, due, due.ready, permits);
            } else {
                work.waiting.push_back(due);
            }
        }
    }

    fn start(&mut self, work: &mut Work, due: crate::load::virtually::Due, permit: Stamp, permits: &mut u32) {
        let Some(mut request) = work.take(&due) else {
            // The file of requests broke off: the level is no longer the planned one.
            work.on_unsent(&due, self.now, Class::Cancelled);
            return work.leg.signal.halt(Halt::Abort);
        };
        *permits -= 1;
        let slot = self.spare.pop().unwrap_or_else(|| {
            self.clients.push(Client::new());
            self.clients.len() - 1
        });
        let (conduct, item) = (work.leg.target.content.conduct(), work.leg.item(due.index));
        let (abort, read_rate) = (conduct.abort(item, due.turn).unwrap_or_default(), conduct.read_rate(item));
        let route = work.leg.route_of(&due, permit.max(self.now));
        let begin = work.leg.target.direct(route, &mut request.bytes);
        let record = work.leg.record_of(&due, route, permit, read_rate.is_some());
        work.check.bodies = work.check.bodies.wrapping_add(request.hash);
        self.gauges.on_sent();
        work.on_start(self.now);
        let client = &mut self.clients[slot];
        client.begin(due, route, self.now);
        client.leaves_after = abort.after;
        client.pipe = read_rate.map(Pipe::new);
        client.exchange.begin(work.leg.ask_of(request.max_tokens, abort), record);
        client.exchange.on_start(self.now);
        client.exchange.on_connected(self.now, false);
        client.exchange.on_sent(self.now);
        let arrival = self.now + ON_THE_WAY;
        let server = self.setup.servers.get_mut(route);
        let answer = server.map(|server| server.on_request(arrival, slot as u64, &request.bytes[begin..]));
        let answer = answer.unwrap_or_default();
        work.requests.give_back(due.user, request.bytes);
        self.watch(work, slot);
        let client = &mut self.clients[slot];
        if let Some(after) = client.leaves_after {
            let rung = Rung { slot, uses: client.uses as u32, bell: Bell::Leave };
            self.alarms.set(later(self.now, after), rung);
        }
        if answer.is_empty() {
            return;
        }
        let now = self.now;
        let progress = match &mut client.pipe {
            None => hear(client, now, &answer, &mut self.json, work, &self.gauges),
            Some(pipe) => {
                pipe.bytes.extend(&answer);
                drink(client, slot, now, work, (&mut self.json, &self.gauges, &mut self.alarms))
            }
        };
        if progress == Progress::Over {
            settle(client, slot, now, work, permits, &mut self.spare, &self.gauges);
        }
    }

    fn watch(&mut self, work: &Work, slot: usize) {
        let client = &self.clients[slot];
        let (at, _) = next_limit(&work.leg.limits, Limit::of(&client.exchange, client.last_read));
        if at != Stamp::MAX {
            self.deadlines.insert(at, client.uses << 32 | slot as u64);
        }
    }

    fn check_deadlines(&mut self, work: &mut Work, permits: &mut u32) {
        if self.now < self.deadlines.next() {
            return;
        }
        let mut due = Vec::new();
        self.deadlines.expire(self.now, &mut due);
        for key in due {
            let slot = (key & u64::from(u32::MAX)) as usize;
            let client = &mut self.clients[slot];
            if !client.busy || client.uses & u64::from(u32::MAX) != key >> 32 {
                continue;
            }
            let (at, phase) = next_limit(&work.leg.limits, Limit::of(&client.exchange, client.last_read));
            if at > self.now {
                self.watch(work, slot);
                continue;
            }
            let _ = client.exchange.on_timeout(self.now, phase);
            self.hang_up(slot);
            settle(&mut self.clients[slot], slot, self.now, work, permits, &mut self.spare, &self.gauges);
        }
    }

    fn check_end(&mut self, work: &mut Work, permits: &mut u32) {
        let ending = work.look_at_end(self.now);
        if ending.cancels_waiting {
            for due in std::mem::take(&mut work.waiting) {
                work.on_unsent(&due, self.now, Class::Cancelled);
            }
        }
        if !ending.gives_up {
            return;
        }
        work.give_up_unsent(self.now);
        for slot in 0..self.clients.len() {
            if self.clients[slot].busy {
                let _ = self.clients[slot].exchange.on_abandoned(self.now);
                self.hang_up(slot);
                settle(&mut self.clients[slot], slot, self.now, work, permits, &mut self.spare, &self.gauges);
            }
        }
    }
}

impl Engine for SimEngine {
    fn run_level(&mut self, ordinal: usize, level: &Level, events: Events<'_>) -> Result<LevelResult, Error> {
        let first = self.records;
        if let Some(spool) = &self.setup.spool {
            spool.begin_level(ordinal, level);
        }
        let warms_up = assemble::warms_up(&self.setup.plan, level);
        let warm_up: Vec<ShardReport> =
            if warms_up { self.warm_up(ordinal, level, events)?.reports } else { Vec::new() };
        self.records += assemble::records(&warm_up);
        let cut = assemble::cut(level, self.setup.plan.steady_cut, &warm_up);
        let leg = self.leg(ordinal, level, Phase::Measured, cut);
        let sends = self.sends(ordinal, level)?;
        events(Event::MeasuringStarted { ordinal });
        let outcome = self.run_leg(leg, sends, events)?;
        replay::check(&self.setup.target)?;
        self.records += assemble::records(&outcome.reports);
        let spooled = self.setup.spool.as_ref().map(Spool::flush).unwrap_or_default();
        spooled.notes(0).iter().for_each(|note| events(Event::Note(note)));
        let range = assemble::range(self.setup.spool.as_ref(), first, self.records);
        // Virtual time has one clock, and no kernel stands between it and the client.
        let stamps = Stamps { in_use: Timestamps::User, why_not: None };
        let beside = Beside { records: range, slices: spooled.slices, host: None, stamps };
        Ok(assemble::level_result(ordinal, level, outcome, beside))
    }
}

fn pass_on(interrupts: &Interrupts, leg: &Leg) -> bool {
    let wished = match interrupts.count() {
        0 => return false,
        1 => Halt::Stop,
        _ => Halt::Abort,
    };
    leg.signal.halt(wished);
    true
}

fn flush(sender: &SpoolSender, work: &mut Work) {
    sender.send_or_wait(work.block.take());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::request::Template;
    use crate::load::Route;
    use crate::load::probe::ask_of;
    use crate::mock::Settings;
    use crate::plan::{Arrivals, Load, Stop};
    use crate::workload::{Content, Mix, Routing};

    fn level(load: Load, units: u64) -> Level {
        Level { load, stop: Stop { units: Some(units), ..Stop::default() }, warmups: 0, ..Level::default() }
    }

    /// How many requests were sent where four may be in flight, or the refusal.
    fn with_room_for_four(level: &Level) -> Result<u64, String> {
        let plan = Plan::new(1);
        let target = Target {
            routes: vec![Route::nowhere("sim", plan.target.request_path(), Vec::new()).unwrap()],
            templates: vec![Template::new(
                plan.target.dialect,
                "m",
                plan.target.stream,
                &plan.workload.body_options(),
            )],
            mix: Mix::equal(1),
            routing: Routing::in_turn(1),
            content: Content::new(&plan),
        };
        let settings = Settings { model: "m".to_owned(), ..Settings::default() };
        let mut engine = SimEngine::new(Setup {
            ask: ask_of(&plan),
            plan: Arc::new(plan),
            target: Arc::new(target),
            servers: vec![Paper::new(settings, Stamp::ZERO).unwrap()],
            spool: None,
            live: None,
            interrupts: Interrupts::default(),
        });
        engine.clients_max = 4;
        let result = engine.run_level(0, level, &mut |_| {}).map_err(|error| error.to_string())?;
        Ok(result.shards.iter().map(|shard| shard.sent).sum())
    }

    #[test]
    fn more_requests_at_once_than_there_is_room_for_are_refused() {
        let open = |arrivals, cap| Load { arrivals, cap, users: None, think_s: 0.0 };
        let burst = || open(Arrivals::Burst, None);
        let rate = || Arrivals::Constant { rate: 1000.0 };
        let fitting = [(burst(), 4), (Load::closed(4), 9), (Load::closed(9), 4), (open(rate(), Some(4)), 9)];
        for (load, units) in fitting {
            assert_eq!(with_room_for_four(&level(load, units)), Ok(units));
        }
        let users = Load::closed(u32::MAX);
        for (load, units) in [(burst(), 5), (burst(), u64::MAX), (open(rate(), None), 9), (users, u64::MAX)] {
            let refused = with_room_for_four(&level(load, units)).unwrap_err();
            assert!(refused.starts_with("more than 4 requests would be in flight at once"), "{refused}");
        }
        assert!(with_room_for_four(&Level { warmups: u32::MAX, ..level(burst(), 1) }).is_err());
    }
}
