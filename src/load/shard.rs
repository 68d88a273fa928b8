//! One shard: a pinned thread with its own runtime, its own connections, its own histograms.
//!
//! It shares nothing while it measures: a leg is moved in, a report is moved out. In between, one task waits on one
//! [`Pace`], reads what has come, stamps it at once, feeds the exchanges, and looks at the schedule again after every
//! few events, so that a send is not late because many events came.

mod admitting;
mod ends;
mod hearing;
mod receiving;
mod resting;
mod ringing;
mod sending;
mod showing;
mod ticking;
mod warming;
mod work;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use crate::load::agenda::Agenda;
use crate::load::alarms::Alarms;
use crate::load::assemble::seconds;
use crate::load::connection::{Connection, LANES, State};
use crate::load::deadlines::Deadlines;
use crate::load::gauges::Gauges;
use crate::load::leg::{Halt, Order, Part, Reply, ShardReport};
use crate::load::pools::Pools;
use crate::load::requests::Requests;
use crate::load::spool::SpoolSender;
use crate::load::wall::Wall;
use crate::metrics::LiveShard;
use crate::pace::Pace;
use crate::plan::Connections;
use crate::sys::cpu::thread_cpu_ns;
use crate::time::Stamp;
use crate::wire::json::Json;

use resting::OfSessions;

use admitting::Handed;
pub(crate) use admitting::Queued;
pub(crate) use ends::REFUSED_PAUSE;
pub(crate) use hearing::{Ear, Gatherer};
pub(crate) use showing::Showing;
pub(crate) use work::Work;

/// How many events are handled before the schedule is looked at again: some 10 us of work.
const EVENTS_BETWEEN_SENDS: usize = 8;
const READ_BYTES: usize = 64 << 10;
/// A wait that took longer has found nothing ready.
const SLEPT: Duration = Duration::from_micros(50);

/// The lasting parts of a shard: what outlives a leg.
#[derive(Debug)]
pub(super) struct Shard {
    place: usize,
    pace: Pace,
    connections: Vec<Connection>,
    /// Slots without a socket.
    spare: Vec<u32>,
    /// Idle connections by [lane](Connection::lane), the one used last on top: fewer stay warm, and the others age out.
    idle: Vec<Vec<u32>>,
    /// Idle connections that are kept for the sessions under way.
    of_sessions: OfSessions,
    /// Those that go to a request of ours that waits for one.
    handed: Vec<Handed>,
    /// One was closed where there may be only so many, so that a request of ours that waits may have got its place.
    has_closed: bool,
    /// The last read took all that there was room for, so that there may be more.
    has_filled: bool,
    /// How the plan has connections kept, and the age that they may reach.
    settings: Connections,
    max_age: Option<Duration>,
    /// The limit on them over all shards, if there is one.
    pools: Option<Arc<Pools>>,
    /// Which address of each route last accepted a connection.
    preferred: Vec<usize>,
    deadlines: Deadlines,
    alarms: Alarms,
    json: Json,
    buffer: Box<[u8]>,
    plain: Vec<u8>,
    gauges: Arc<Gauges>,
    live: Option<Arc<LiveShard>>,
    spool: Option<SpoolSender>,
    core: Option<u32>,
    /// The wall clock, where the kernel stamps what arrives.
    wall: Option<Wall>,
    /// When anything was read last.
    last_read: Stamp,
}

/// Everything a shard thread needs to begin.
#[derive(Debug)]
pub(super) struct Equipment {
    pub(super) place: usize,
    pub(super) core: Option<u32>,
    pub(super) pace: Pace,
    pub(super) gauges: Arc<Gauges>,
    /// Where it shows what it does, if anybody looks.
    pub(super) live: Option<Arc<LiveShard>>,
    pub(super) spool: Option<SpoolSender>,
    /// The kernel stamps what arrives.
    pub(super) stamped: bool,
}

/// What a turn found that had nothing left to do and went to sleep: as long as nothing is sent and nothing ends, there is
/// nothing to do before `until` but to read.
#[derive(Clone, Copy, Debug)]
struct Calm {
    after: Done,
    until: Stamp,
}

/// What had been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Done {
    sent: u64,
    ended: u64,
}

/// What a turn found ready.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// How many descriptors.
    count: usize,
    /// Somebody called the shard.
    called: bool,
}

impl Done {
    fn of(work: &Work) -> Done {
        Done { sent: work.check.sent, ended: work.records }
    }
}

impl Shard {
    pub(super) fn new(equipment: Equipment) -> Shard {
        let clock = *equipment.pace.clock();
        let now = clock.now();
        Shard {
            place: equipment.place,
            pace: equipment.pace,
            connections: Vec::new(),
            spare: Vec::new(),
            idle: Vec::new(),
            of_sessions: OfSessions::default(),
            handed: Vec::new(),
            has_closed: false,
            has_filled: false,
            settings: Connections::default(),
            max_age: None,
            pools: None,
            preferred: Vec::new(),
            deadlines: Deadlines::new(now),
            alarms: Alarms::default(),
            json: Json::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            plain: Vec::new(),
            gauges: equipment.gauges,
            live: equipment.live,
            spool: equipment.spool,
            core: equipment.core,
            wall: equipment.stamped.then(|| Wall::new(now, clock.wall_offset())),
            last_read: now,
        }
    }

    /// Runs legs until the coordinator hangs up.
    pub(super) async fn run(mut self, orders: Receiver<Order>, replies: Sender<Reply>) -> io::Result<()> {
        loop {
            // A wake is taken before its cause is looked for: one that comes after the look ends the sleep.
            self.tend_idle(None)?;
            self.evict();
            match orders.try_recv() {
                Ok(order) => {
                    let report = self.run_leg(order, &replies).await?;
                    if replies.send(Reply::Done(Box::new(report))).is_err() {
                        return Ok(());
                    }
                }
                Err(TryRecvError::Disconnected) => return Ok(()),
                Err(TryRecvError::Empty) => self.pace.idle(Stamp::MAX).await?,
            }
        }
    }

    /// Between legs: connections that the peer closes are dropped, and those that are opened beforehand go on.
    fn tend_idle(&mut self, mut work: Option<&mut Work>) -> io::Result<()> {
        let count = self.pace.poll()?;
        for place in 0..count {
            if let Some(ready) = self.pace.ready(place)
                && let Some(slot) = self.slot_of(ready.token)
            {
                match self.connections[slot].state {
                    State::Idle => self.on_idle_ready(slot),
                    State::Warming => self.on_warming(work.as_deref_mut(), slot, ready),
                    State::Closed | State::Opening | State::Busy => {}
                }
                self.have_rest_told(ready);
            }
        }
        Ok(())
    }

    async fn run_leg(&mut self, order: Order, replies: &Sender<Reply>) -> io::Result<ShardReport> {
        let leg = order.leg;
        let routes = leg.target.routes.len();
        self.idle.resize_with(routes * LANES, Vec::new);
        self.preferred.resize(routes, 0);
        self.settings.clone_from(&leg.connections.settings);
        self.max_age = self.settings.max_age_s.map(seconds);
        self.pools.clone_from(&leg.connections.pools);
        let (mut agenda, recorded) = match order.part {
            Part::Closed(users) => (Agenda::closed(&users), None),
            Part::Open(schedule) => (Agenda::open(schedule), None),
            Part::Replayed(part) => (Agenda::open(part.schedule), Some(part.requests)),
        };
        let mut requests = Requests::new(Arc::clone(&leg), &agenda, recorded);
        while requests.prepare_one(&mut agenda, Duration::MAX) {}
        let mut work = Work::new(Arc::clone(&leg), agenda, requests);
        work.check.core = self.core;
        work.showing = Showing::new(self.live.clone(), leg.phase, self.gauges.read().events);
        self.warm(&mut work).await?;
        // The coordinator may have given up meanwhile; then there is nobody to tell.
        let _ = replies.send(Reply::Prepared);
        let start = loop {
            self.tend_idle(Some(&mut work))?;
            self.evict();
            if let Some(start) = leg.signal.start() {
                break start;
            }
            if leg.signal.halted() != Halt::No {
                break self.pace.clock().now();
            }
            self.pace.idle(Stamp::MAX).await?;
        };
        work.begin(start);
        work.next_tick = start + ticking::TICK;
        work.next_flush = start + ticking::HAND_OVER;
        work.caught_up = start;
        if let Some(wall) = &mut self.wall {
            wall.look(self.pace.clock().now(), self.pace.clock().wall_offset());
            let _of_the_pause = wall.take_check();
        }
        // A stop that came before the start: nothing is sent.
        self.check_end(&mut work, self.pace.clock().now());
        let cpu = thread_cpu_ns();
        self.alarms.clear();
        self.work_off(&mut work, replies).await?;
        work.check.cpu_ns = thread_cpu_ns() - cpu;
        for connection in &mut self.connections {
            let _rtt = connection.count_retransmits(&mut work.check);
        }
        self.close_sessions();
        if let Some(pools) = &self.pools {
            pools.withdraw(self.place);
        }
        if let Some(wall) = &mut self.wall {
            wall.look(self.pace.clock().now(), self.pace.clock().wall_offset());
            work.check.wall = wall.take_check();
        }
        work.check.wall_ns = self.pace.clock().now().nanos_since(start);
        self.flush_records(&mut work);
        work.showing.publish(work.check.read_bytes, self.gauges.read().events);
        Ok(work.into_report())
    }

    /// Works until the leg is over, in turns: what has come is read, then all else is looked after.
    async fn work_off(&mut self, work: &mut Work, replies: &Sender<Reply>) -> io::Result<()> {
        let mut calm: Option<Calm> = None;
        // When the wait before this turn began to look at what is ready.
        let mut waited = None;
        loop {
            let turn = waited.take().unwrap_or_else(|| self.pace.clock().now());
            let heard = self.hear(work, turn)?;
            // The usual turn reads parts of answers that go on, which changes nothing of what else is to be done.
            if let Some(calm) = &calm
                && self.stays(calm, work, &heard)
            {
                waited = Some(self.wait(work, self.last_read).await?);
                continue;
            }
            let now = self.look_after(work, replies);
            if work.is_over() {
                return Ok(());
            }
            if heard.count == 0 {
                let next = work.next_send();
                let room = next - crate::pace::LEAD - now;
                if !room.is_zero() && work.requests.prepare_one(&mut work.agenda, room) {
                    continue;
                }
                // A tick is not waited for by spinning: how late a sleeper wakes is part of what it measures.
                let tick = work.next_tick + crate::pace::LEAD;
                let until =
                    next.min(self.deadlines.next()).min(self.alarms.next()).min(work.next_end()).min(tick);
                calm = self.pace.prepare(until)?.then(|| Calm { after: Done::of(work), until });
                if calm.is_some() {
                    waited = Some(self.wait(work, now).await?);
                }
            }
        }
    }

    /// Reads what is ready, in a turn that looks at the clock at `turn`, and sends what falls due meanwhile.
    #[inline]
    fn hear(&mut self, work: &mut Work, turn: Stamp) -> io::Result<Heard> {
        let count = self.pace.poll()?;
        let mut called = false;
        self.expect(0);
        for place in 0..count {
            self.expect(place + 1);
            match self.pace.ready(place) {
                Some(ready) => self.on_ready(work, ready),
                None => called = true,
            }
            if place % EVENTS_BETWEEN_SENDS == EVENTS_BETWEEN_SENDS - 1 {
                self.send_due(work);
                self.ring(work);
            }
        }
        if count < crate::pace::BATCH {
            // What was not ready then had nothing to read.
            work.caught_up = turn;
        }
        Ok(Heard { count, called })
    }

    /// Whether, after this turn, there is nothing to do but what the shard slept for before it, and time is left to sleep.
    #[inline]
    fn stays(&self, calm: &Calm, work: &Work, heard: &Heard) -> bool {
        !(heard.called || self.has_closed)
            && (1..crate::pace::BATCH).contains(&heard.count)
            && calm.after == Done::of(work)
            && self.alarms.next().min(self.deadlines.next()) >= calm.until
            && self.last_read + crate::pace::LEAD < calm.until
            && self.pace.is_prepared(calm.until)
    }

    /// All that a turn looks after but reading: what is due, what has ended, what the coordinator asks; the time of it.
    fn look_after(&mut self, work: &mut Work, replies: &Sender<Reply>) -> Stamp {
        self.burn(work);
        self.send_due(work);
        self.ring(work);
        let now = self.pace.clock().now();
        self.tick(work, now);
        self.check_deadlines(work, now);
        self.check_end(work, now);
        if !self.handed.is_empty() || self.has_closed {
            self.send_due(work);
        }
        let busy = self.connections.iter().filter(|one| one.state == State::Busy);
        if let Some(sample) = work.answer(now, busy.map(|one| one.exchange.record())) {
            // A coordinator that has gone is noticed at the end of the leg.
            let _ = replies.send(Reply::Sample(sample));
        }
        now
    }

    /// Sleeps until something happens, having looked at the clock at `now`; since when, at the latest, nothing that the next
    /// turn finds ready was there.
    async fn wait(&mut self, work: &mut Work, now: Stamp) -> io::Result<Stamp> {
        self.pace.wait().await?;
        let woken = self.pace.clock().now();
        // What was there before the wait was not waited for.
        if woken - now <= SLEPT {
            return Ok(now);
        }
        work.caught_up = woken;
        Ok(woken)
    }

    /// Event number `place` of this turn comes next: what its connection keeps is brought into the cache meanwhile.
    #[inline]
    fn expect(&self, place: usize) {
        let connection = self.pace.upcoming(place).and_then(|token| self.connections.get(slot_in(token)));
        connection.into_iter().for_each(Connection::prefetch);
    }

    /// Slot and generation in one number, for the epoll and the wheel.
    fn token(&self, slot: usize) -> u64 {
        u64::from(self.connections[slot].generation & GENERATION_MASK) << 32 | slot as u64
    }

    /// The slot that a token means, unless it has changed hands since.
    fn slot_of(&self, token: u64) -> Option<usize> {
        let slot = slot_in(token);
        let connection = self.connections.get(slot)?;
        (u64::from(connection.generation & GENERATION_MASK) == token >> 32).then_some(slot)
    }
}

/// The slot that a token meant when it was made.
fn slot_in(token: u64) -> usize {
    (token & u64::from(u32::MAX)) as usize
}

/// The highest tokens are the pace's own.
const GENERATION_MASK: u32 = u32::MAX >> 1;
