//! One shard: a pinned thread with its own runtime, its own connections, its own histograms.
//!
//! It shares nothing while it measures: a leg is moved in, a report is moved out. In between, one task waits on one
//! [`Pace`], reads what has come, stamps it at once, feeds the exchanges, and looks at the schedule again after every
//! few events, so that a send is not late because many events came.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use crate::exchange::{Arrival, ContentEvent, Progress, Sink};
use crate::load::agenda::{Agenda, Due, later};
use crate::load::connection::{Connection, State};
use crate::load::deadlines::Deadlines;
use crate::load::gauges::Gauges;
use crate::load::leg::{Halt, Leg, Order, Part, Reply, ShardReport};
use crate::load::requests::Requests;
use crate::load::spool::{Block, SpoolSender};
use crate::metrics::{Class, Flags, Kind, Outcome, Phase, Record, Tally, TimeoutPhase};
use crate::pace::Pace;
use crate::run::{Example, ShardCheck};
use crate::sys::cpu::thread_cpu_ns;
use crate::sys::epoll::{Interest, Ready};
use crate::sys::socket::Received;
use crate::time::Stamp;
use crate::wire::json::Json;

/// How many events are handled before the schedule is looked at again: some 10 us of work.
const EVENTS_BETWEEN_SENDS: usize = 8;
/// How long the end of the framing is awaited after `[DONE]` before the connection is given up.
const LINGER: Duration = Duration::from_secs(1);
/// A user whose connection was refused comes back no sooner: a dead server is not to be hammered.
const REFUSED_PAUSE: Duration = Duration::from_millis(100);
/// A slot in use is looked at by the deadline wheel at least this often.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// E2E values kept for the cut of the level after a warm-up.
const E2E_KEPT_MAX: usize = 4096;
const READ_BYTES: usize = 64 << 10;
const RECORDS_PER_BLOCK: usize = 512;
const EXAMPLES_MAX: usize = 32;

/// The lasting parts of a shard: what outlives a leg.
#[derive(Debug)]
pub(super) struct Shard {
    place: usize,
    pace: Pace,
    connections: Vec<Connection>,
    /// Slots without a socket.
    spare: Vec<u32>,
    /// Idle connections by route, the one used last on top: fewer stay warm, and the others age out.
    idle: Vec<Vec<u32>>,
    /// Which address of each route last accepted a connection.
    preferred: Vec<usize>,
    deadlines: Deadlines,
    json: Json,
    buffer: Box<[u8]>,
    plain: Vec<u8>,
    gauges: Arc<Gauges>,
    spool: Option<SpoolSender>,
    core: Option<u32>,
}

/// What belongs to one leg.
#[derive(Debug)]
struct Work {
    leg: Arc<Leg>,
    agenda: Agenda,
    requests: Requests,
    tally: Tally,
    block: Block,
    check: ShardCheck,
    examples: Vec<Example>,
    /// Due, but without a permit yet; in the order of their plans.
    waiting: VecDeque<Due>,
    in_flight: usize,
    /// Nothing more is sent, and what is open is given up at this stamp.
    give_up: Option<Stamp>,
    window_start: Stamp,
    end: Stamp,
    last_plan: Option<Stamp>,
    last_end: Option<Stamp>,
    records: u64,
    e2e_ns: Vec<u64>,
}

/// Everything a shard thread needs to begin.
#[derive(Debug)]
pub(super) struct Equipment {
    pub(super) place: usize,
    pub(super) core: Option<u32>,
    pub(super) pace: Pace,
    pub(super) gauges: Arc<Gauges>,
    pub(super) spool: Option<SpoolSender>,
}

impl Shard {
    pub(super) fn new(equipment: Equipment) -> Shard {
        let now = equipment.pace.clock().now();
        Shard {
            place: equipment.place,
            pace: equipment.pace,
            connections: Vec::new(),
            spare: Vec::new(),
            idle: Vec::new(),
            preferred: Vec::new(),
            deadlines: Deadlines::new(now),
            json: Json::new(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            plain: Vec::new(),
            gauges: equipment.gauges,
            spool: equipment.spool,
            core: equipment.core,
        }
    }

    /// Runs legs until the coordinator hangs up.
    pub(super) async fn run(mut self, orders: Receiver<Order>, replies: Sender<Reply>) -> io::Result<()> {
        loop {
            // A wake is taken before its cause is looked for: one that comes after the look ends the sleep.
            self.tend_idle()?;
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

    /// Between legs: connections that the peer closes are dropped.
    fn tend_idle(&mut self) -> io::Result<()> {
        let count = self.pace.poll()?;
        for place in 0..count {
            if let Some(ready) = self.pace.ready(place)
                && let Some(slot) = self.slot_of(ready.token)
                && self.connections[slot].state == State::Idle
            {
                self.drop_idle(slot);
            }
        }
        Ok(())
    }

    async fn run_leg(&mut self, order: Order, replies: &Sender<Reply>) -> io::Result<ShardReport> {
        let leg = order.leg;
        let routes = leg.target.routes.len();
        self.idle.resize_with(routes, Vec::new);
        self.preferred.resize(routes, 0);
        let mut agenda = match order.part {
            Part::Closed(users) => Agenda::closed(&users),
            Part::Open(schedule) => Agenda::open(schedule),
        };
        let mut requests = Requests::new(Arc::clone(&leg), &agenda);
        while requests.prepare_one(&mut agenda) {}
        let mut work = Work::new(Arc::clone(&leg), agenda, requests);
        work.check.core = self.core;
        // The coordinator may have given up meanwhile; then there is nobody to tell.
        let _ = replies.send(Reply::Prepared);
        let start = loop {
            self.tend_idle()?;
            if let Some(start) = leg.signal.start() {
                break start;
            }
            if leg.signal.halted() != Halt::No {
                break self.pace.clock().now();
            }
            self.pace.idle(Stamp::MAX).await?;
        };
        work.begin(start);
        let cpu = thread_cpu_ns();
        self.work_off(&mut work).await?;
        work.check.cpu_ns = thread_cpu_ns() - cpu;
        work.check.wall_ns = self.pace.clock().now().nanos_since(start);
        self.flush_records(&mut work);
        Ok(work.into_report())
    }

    async fn work_off(&mut self, work: &mut Work) -> io::Result<()> {
        loop {
            let count = self.pace.poll()?;
            for place in 0..count {
                if let Some(ready) = self.pace.ready(place) {
                    self.on_ready(work, ready);
                }
                if place % EVENTS_BETWEEN_SENDS == EVENTS_BETWEEN_SENDS - 1 {
                    self.send_due(work);
                }
            }
            self.send_due(work);
            let now = self.pace.clock().now();
            self.check_deadlines(work, now);
            self.check_end(work, now);
            if work.is_over() {
                return Ok(());
            }
            if count == 0 {
                let next = work.next_send();
                if next - crate::pace::LEAD > now && work.requests.prepare_one(&mut work.agenda) {
                    continue;
                }
                let until = next.min(self.deadlines.next()).min(work.next_end());
                self.pace.idle(until).await?;
            }
        }
    }

    // ---- sending ---------------------------------------------------------------------------------------------

    fn send_due(&mut self, work: &mut Work) {
        while !work.waiting.is_empty()
            && work.leg.permits.as_ref().is_some_and(|all| all.take_grant(self.place))
        {
            if let Some(due) = work.waiting.pop_front() {
                self.start(work, due, self.pace.clock().now());
            }
        }
        while let Some(due) = work.agenda.pop(self.pace.clock().now()) {
            work.last_plan = Some(work.last_plan.map_or(due.plan, |last| last.max(due.plan)));
            let admitted =
                work.leg.permits.as_ref().is_none_or(|permits| permits.acquire(self.place, due.plan));
            if admitted {
                self.start(work, due, due.plan);
            } else {
                work.waiting.push_back(due);
            }
        }
    }

    /// Takes a request in hand.
    fn start(&mut self, work: &mut Work, due: Due, permit: Stamp) {
        let request = work.requests.take(&due);
        let route = work.leg.target.route_of(due.index);
        let mut record = Record::planned(due.index, due.plan);
        record.permit = permit;
        record.phase = work.leg.phase;
        record.endpoint = route as u16;
        record.model = work.leg.target.model_of(due.index) as u16;
        if work.leg.from_plan {
            record.flags.insert(Flags::FROM_PLAN);
        }
        work.in_flight += 1;
        work.check.sent += 1;
        self.gauges.on_sent();
        let now = self.pace.clock().now();
        let slot = self.idle_or_spare(route);
        let connection = &mut self.connections[slot];
        connection.route = route;
        connection.due = due;
        connection.request = request;
        connection.written = 0;
        connection.is_sent = false;
        connection.tried = 0;
        connection.times.clear();
        connection.last_read = now;
        connection.last_content_read = u64::MAX;
        connection.exchange.begin(work.leg.ask, record);
        connection.exchange.on_start(now);
        work.tally.on_sent(now);
        if connection.state == State::Idle {
            connection.state = State::Busy;
            connection.reused = true;
            connection.exchange.on_connected(now, false);
            self.watch_deadline(work, slot, now);
            self.send(work, slot);
        } else {
            self.connect(work, slot, now);
        }
    }

    /// An idle connection of the route that still stands, else a slot without a socket.
    fn idle_or_spare(&mut self, route: usize) -> usize {
        while let Some(slot) = self.idle[route].pop() {
            let slot = slot as usize;
            if self.connections[slot].socket.as_ref().is_some_and(|socket| socket.is_quiet()) {
                return slot;
            }
            self.free(slot);
        }
        match self.spare.pop() {
            Some(slot) => slot as usize,
            None => {
                self.connections.push(Connection::new());
                self.connections.len() - 1
            }
        }
    }

    fn connect(&mut self, work: &mut Work, slot: usize, now: Stamp) {
        let route = self.connections[slot].route;
        let addresses = work.leg.target.routes[route].addresses.len();
        let mut error = None;
        while self.connections[slot].tried < addresses {
            let connection = &mut self.connections[slot];
            connection.address = (self.preferred[route] + connection.tried) % addresses;
            connection.tried += 1;
            let target = &work.leg.target.routes[route];
            match connection.open(target.addresses[connection.address], target.tls.as_ref()) {
                Ok(()) => {
                    work.check.connects += 1;
                    match self.watch(slot) {
                        Ok(()) => return self.watch_deadline(work, slot, now),
                        Err(refused) => error = Some(refused),
                    }
                }
                Err(refused) => error = Some(refused),
            }
        }
        let error = error.unwrap_or_else(|| io::Error::other("no address left to try"));
        self.fail_to_connect(work, slot, &error);
    }

    fn fail_to_connect(&mut self, work: &mut Work, slot: usize, error: &io::Error) {
        let kind = match error.kind() {
            io::ErrorKind::ConnectionRefused => Kind::Refused,
            io::ErrorKind::InvalidData => Kind::Tls,
            _ => Kind::Unreachable,
        };
        let now = self.pace.clock().now();
        let progress = self.connections[slot].exchange.on_no_connection(now, kind, &error.to_string());
        self.after(work, slot, progress);
    }

    fn watch(&mut self, slot: usize) -> io::Result<()> {
        let token = self.token(slot);
        let connection = &mut self.connections[slot];
        let socket = connection.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        connection.watches_writes = true;
        self.pace.add(socket, token, Interest::ReadWrite)
    }

    /// Asks for write readiness only while something waits to be written: a writable socket is always ready.
    fn set_write_interest(&mut self, slot: usize, wanted: bool) {
        let token = self.token(slot);
        let connection = &mut self.connections[slot];
        if connection.watches_writes == wanted {
            return;
        }
        connection.watches_writes = wanted;
        if let Some(socket) = &connection.socket {
            let interest = if wanted { Interest::ReadWrite } else { Interest::Read };
            // The socket is in the epoll as long as it is open; there is nothing that could fail.
            let _ = self.pace.modify(socket, token, interest);
        }
    }

    fn send(&mut self, work: &mut Work, slot: usize) {
        match self.connections[slot].send() {
            Ok(true) => {
                let now = self.pace.clock().now();
                let connection = &mut self.connections[slot];
                connection.is_sent = true;
                connection.exchange.on_sent(now);
                let request = std::mem::take(&mut connection.request);
                work.requests.give_back(connection.due.user, request);
                self.set_write_interest(slot, false);
            }
            Ok(false) => self.set_write_interest(slot, true),
            // The answer may be there all the same (a 413 before the body was read): reading decides.
            Err(_) => self.read(work, slot, true),
        }
    }

    // ---- receiving -------------------------------------------------------------------------------------------

    fn on_ready(&mut self, work: &mut Work, ready: Ready) {
        let Some(slot) = self.slot_of(ready.token) else { return };
        match self.connections[slot].state {
            State::Closed => {}
            State::Idle => self.drop_idle(slot),
            State::Opening => self.on_opening(work, slot, ready),
            State::Busy => {
                if ready.writable && !self.connections[slot].is_sent && self.connections[slot].watches_writes
                {
                    self.send(work, slot);
                }
                if ready.readable && self.slot_of(ready.token).is_some() {
                    self.read(work, slot, false);
                }
            }
        }
    }

    fn on_opening(&mut self, work: &mut Work, slot: usize, ready: Ready) {
        let token = ready.token;
        if self.connections[slot].transport.is_ready() || !ready.readable {
            let connected = match &self.connections[slot].socket {
                Some(socket) => socket.connected(),
                None => Err(io::ErrorKind::NotConnected.into()),
            };
            if let Err(error) = connected {
                return self.try_next_address(work, slot, &error);
            }
        }
        if let Err(error) = self.handshake(slot, ready) {
            return self.try_next_address(work, slot, &error);
        }
        if !self.connections[slot].transport.is_ready() || self.slot_of(token).is_none() {
            return;
        }
        let now = self.pace.clock().now();
        let connection = &mut self.connections[slot];
        connection.state = State::Busy;
        connection.exchange.on_connected(now, true);
        self.preferred[connection.route] = connection.address;
        self.watch_deadline(work, slot, now);
        self.send(work, slot);
    }

    /// Carries the TLS handshake on; nothing to do without TLS.
    fn handshake(&mut self, slot: usize, ready: Ready) -> io::Result<()> {
        let connection = &mut self.connections[slot];
        if connection.transport.is_ready() {
            return Ok(());
        }
        let Some(socket) = &connection.socket else { return Ok(()) };
        if ready.readable {
            match socket.receive(&mut self.buffer)? {
                Received::Bytes(count) => {
                    connection.transport.open(&self.buffer[..count], &mut self.plain).map(|_| ())?;
                }
                Received::End => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "closed during the TLS handshake",
                    ));
                }
                Received::Nothing => {}
            }
        }
        let flushed = connection.transport.flush(socket)?;
        self.set_write_interest(slot, !flushed);
        Ok(())
    }

    fn try_next_address(&mut self, work: &mut Work, slot: usize, error: &io::Error) {
        let now = self.pace.clock().now();
        let connection = &mut self.connections[slot];
        let addresses = work.leg.target.routes[connection.route].addresses.len();
        // Another address of a server that does not speak TLS would not either.
        if connection.tried < addresses && error.kind() != io::ErrorKind::InvalidData {
            return self.connect(work, slot, now);
        }
        self.fail_to_connect(work, slot, error);
    }

    /// One read: the stamp is taken right after it returns, before anything is looked at.
    fn read(&mut self, work: &mut Work, slot: usize, broken: bool) {
        let connection = &mut self.connections[slot];
        let Some(socket) = &connection.socket else { return };
        let received = socket.receive(&mut self.buffer);
        let now = self.pace.clock().now();
        match received {
            Ok(Received::Bytes(count)) => {
                connection.read_no += 1;
                connection.last_read = now;
                work.check.reads += 1;
                work.check.read_bytes += count as u64;
                let at = Arrival { read: now, kernel: None, read_no: connection.read_no };
                self.on_bytes(work, slot, at, count);
            }
            Ok(Received::Nothing) if !broken => {}
            Ok(Received::End) => self.on_end_of_connection(work, slot, now, true),
            Ok(Received::Nothing) | Err(_) => self.on_end_of_connection(work, slot, now, false),
        }
    }

    fn on_bytes(&mut self, work: &mut Work, slot: usize, at: Arrival, count: usize) {
        let connection = &mut self.connections[slot];
        let opened = match connection.transport.open(&self.buffer[..count], &mut self.plain) {
            Ok(opened) => opened,
            Err(_) => return self.on_end_of_connection(work, slot, at.read, false),
        };
        let ended = opened.ended;
        let mut ear = Ear {
            tally: &mut work.tally,
            gauges: &self.gauges,
            check: &mut work.check,
            last_content_read: &mut connection.last_content_read,
            times: work.leg.keep_chunks.then_some(&mut connection.times),
        };
        let progress = connection.exchange.on_bytes(&at, opened.bytes, &mut self.json, &mut ear);
        if progress == Progress::Pending && ended {
            return self.on_end_of_connection(work, slot, at.read, true);
        }
        self.after(work, slot, progress);
    }

    fn on_end_of_connection(&mut self, work: &mut Work, slot: usize, now: Stamp, in_good_order: bool) {
        let connection = &mut self.connections[slot];
        if connection.reused && connection.exchange.is_unanswered() {
            return self.resend(work, slot, now);
        }
        let mut ear = Ear {
            tally: &mut work.tally,
            gauges: &self.gauges,
            check: &mut work.check,
            last_content_read: &mut connection.last_content_read,
            times: work.leg.keep_chunks.then_some(&mut connection.times),
        };
        let progress = if in_good_order {
            connection.exchange.on_eof(now, &mut self.json, &mut ear)
        } else {
            connection.exchange.on_reset(now)
        };
        self.after(work, slot, progress);
    }

    /// The peer closed a connection that had been idle just when a request was written to it: once more on a fresh
    /// one, counted, with the clock running on.
    fn resend(&mut self, work: &mut Work, slot: usize, now: Stamp) {
        let connection = &mut self.connections[slot];
        connection.exchange.resend();
        if connection.is_sent {
            let due = connection.due;
            connection.request = work.requests.write(due.index);
        }
        connection.written = 0;
        connection.is_sent = false;
        connection.tried = 0;
        work.check.resent += 1;
        self.connect(work, slot, now);
    }

    // ---- ends ------------------------------------------------------------------------------------------------

    /// Settles a request whose exchange is over.
    fn after(&mut self, work: &mut Work, slot: usize, progress: Progress) {
        let now = self.pace.clock().now();
        let connection = &mut self.connections[slot];
        if progress == Progress::Pending {
            // Another limit runs from here on, and it may be shorter than the one being watched.
            if connection.exchange.waiting_for().phase != connection.watched {
                self.watch_deadline(work, slot, now);
            }
            return;
        }
        let exchange = &connection.exchange;
        let record = *exchange.record();
        work.on_done(&record, exchange, &connection.times);
        self.gauges.on_done(record.outcome.is_ok());
        let due = connection.due;
        if !connection.is_sent {
            let request = std::mem::take(&mut connection.request);
            work.requests.give_back(due.user, request);
        }
        let pause = if record.outcome.class == Class::Connect { REFUSED_PAUSE } else { Duration::ZERO };
        work.agenda.on_done(due.user, now, pause);
        if let Some(permits) = &work.leg.permits {
            permits.release(self.place);
        }
        if self.connections[slot].exchange.reusable() && self.connections[slot].is_sent {
            let connection = &mut self.connections[slot];
            connection.state = State::Idle;
            let route = connection.route;
            self.set_write_interest(slot, false);
            self.idle[route].push(slot as u32);
        } else {
            self.free(slot);
        }
        if work.block.records.len() >= RECORDS_PER_BLOCK * Record::BYTES {
            self.flush_records(work);
        }
    }

    fn free(&mut self, slot: usize) {
        self.connections[slot].close();
        self.spare.push(slot as u32);
    }

    fn drop_idle(&mut self, slot: usize) {
        let route = self.connections[slot].route;
        self.idle[route].retain(|idle| *idle as usize != slot);
        self.free(slot);
    }

    fn flush_records(&mut self, work: &mut Work) {
        if let Some(spool) = &self.spool
            && !work.block.records.is_empty()
        {
            spool.send(std::mem::take(&mut work.block));
        }
        work.block.records.clear();
        work.block.chunks.clear();
    }

    // ---- deadlines -------------------------------------------------------------------------------------------

    /// Has the wheel look at `slot` when its deadline may have passed, or after [`LOOK_AGAIN`]: so there is one entry
    /// per slot, not one per request.
    fn watch_deadline(&mut self, work: &Work, slot: usize, now: Stamp) {
        let at = self.deadline(work, slot).0.max(now).min(now + LOOK_AGAIN);
        let connection = &mut self.connections[slot];
        connection.watched = connection.exchange.waiting_for().phase;
        if at < connection.looked_at {
            connection.looked_at = at;
            self.deadlines.insert(at, slot as u64);
        }
    }

    /// When the request on `slot` next passes a limit, and which one.
    fn deadline(&self, work: &Work, slot: usize) -> (Stamp, TimeoutPhase) {
        let connection = &self.connections[slot];
        let limits = &work.leg.limits;
        let start = connection.exchange.record().start;
        let total = (later(start, limits.total), TimeoutPhase::Total);
        let waiting = connection.exchange.waiting_for();
        let running = match (connection.state, waiting.phase) {
            (State::Opening, _) => (later(start, limits.connect), TimeoutPhase::Connect),
            (_, None) => (waiting.since + LINGER, TimeoutPhase::Gap),
            // Silence is silence of the connection: a keep-alive is a sign of life.
            (_, Some(TimeoutPhase::Gap)) => (later(connection.last_read, limits.gap), TimeoutPhase::Gap),
            (_, Some(phase)) => (later(waiting.since, limits.first), phase),
        };
        if total.0 < running.0 { total } else { running }
    }

    fn check_deadlines(&mut self, work: &mut Work, now: Stamp) {
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
    fn check_end(&mut self, work: &mut Work, now: Stamp) {
        let halted = work.leg.signal.halted();
        if work.give_up.is_none() && (now >= work.end || halted != Halt::No) {
            work.agenda.stop();
            work.give_up = Some(later(now.min(work.end), work.leg.grace));
            if halted != Halt::No {
                self.cancel_waiting(work, now);
            }
        }
        if halted == Halt::Abort || work.give_up.is_some_and(|at| now >= at) {
            self.abandon(work, now);
        }
    }

    /// Requests that wait for the cap when the user stops the run are never sent: neither success nor failure.
    fn cancel_waiting(&mut self, work: &mut Work, now: Stamp) {
        for due in std::mem::take(&mut work.waiting) {
            work.on_unsent(&due, now, Class::Cancelled);
        }
    }

    fn abandon(&mut self, work: &mut Work, now: Stamp) {
        for due in std::mem::take(&mut work.waiting) {
            work.on_unsent(&due, now, Class::Unfinished);
        }
        for slot in 0..self.connections.len() {
            if matches!(self.connections[slot].state, State::Opening | State::Busy) {
                let progress = self.connections[slot].exchange.on_abandoned(now);
                self.after(work, slot, progress);
            }
        }
    }

    // ---- tokens ----------------------------------------------------------------------------------------------

    /// Slot and generation in one number, for the epoll and the wheel.
    fn token(&self, slot: usize) -> u64 {
        u64::from(self.connections[slot].generation & GENERATION_MASK) << 32 | slot as u64
    }

    /// The slot that a token means, unless it has changed hands since.
    fn slot_of(&self, token: u64) -> Option<usize> {
        let slot = (token & u64::from(u32::MAX)) as usize;
        let connection = self.connections.get(slot)?;
        (u64::from(connection.generation & GENERATION_MASK) == token >> 32).then_some(slot)
    }
}

/// The highest tokens are the pace's own.
const GENERATION_MASK: u32 = u32::MAX >> 1;

impl Work {
    fn new(leg: Arc<Leg>, agenda: Agenda, requests: Requests) -> Work {
        Work {
            agenda,
            requests,
            tally: Tally::new(Stamp::ZERO),
            block: Block::default(),
            check: ShardCheck::default(),
            examples: Vec::new(),
            waiting: VecDeque::new(),
            in_flight: 0,
            give_up: None,
            window_start: Stamp::ZERO,
            end: Stamp::MAX,
            last_plan: None,
            last_end: None,
            records: 0,
            e2e_ns: Vec::new(),
            leg,
        }
    }

    /// The common start is known: everything that was laid out from zero moves there.
    fn begin(&mut self, start: Stamp) {
        self.agenda.begin(start);
        self.tally.begin(start);
        self.window_start = start + self.leg.cut;
        self.end = later(start, self.leg.duration);
    }

    fn is_over(&mut self) -> bool {
        self.in_flight == 0 && self.waiting.is_empty() && self.agenda.is_empty()
    }

    fn next_send(&mut self) -> Stamp {
        self.agenda.next().unwrap_or(Stamp::MAX)
    }

    /// When the end of the leg has to be looked at.
    fn next_end(&self) -> Stamp {
        self.give_up.unwrap_or(self.end)
    }

    fn on_done(&mut self, record: &Record, exchange: &crate::exchange::Exchange, times: &[u64]) {
        self.in_flight -= 1;
        if record.outcome.is_failure() {
            self.keep_example(record.outcome, exchange.message());
        }
        self.tally.on_done(record, exchange.gaps(), exchange.kernel_gaps(), self.window_start);
        if record.outcome.class != Class::Cancelled {
            self.last_end = self.last_end.max(Some(record.end));
        }
        if let (true, Some(e2e)) = (record.outcome.is_ok(), record.e2e_ns())
            && self.e2e_ns.len() < E2E_KEPT_MAX
        {
            self.e2e_ns.push(e2e);
        }
        self.keep_record(record, times);
    }

    /// A request that was planned and never sent.
    fn on_unsent(&mut self, due: &Due, now: Stamp, class: Class) {
        let mut record = Record::planned(due.index, due.plan);
        record.phase = self.leg.phase;
        record.outcome = Outcome::new(class, Kind::None, 0);
        record.permit = now;
        record.start = now;
        record.end = now;
        record.flags.insert(Flags::FROM_PLAN);
        let none = crate::metrics::tally::Gaps::default();
        self.tally.on_done(&record, &none, &none, self.window_start);
        self.keep_record(&record, &[]);
    }

    fn keep_record(&mut self, record: &Record, times: &[u64]) {
        self.records += 1;
        self.block.records.extend_from_slice(&record.encode());
        for at in times {
            self.block.chunks.extend_from_slice(&at.to_le_bytes());
        }
    }

    fn keep_example(&mut self, outcome: Outcome, message: &str) {
        let known = self.examples.iter().any(|one| one.outcome == outcome);
        if !known && self.examples.len() < EXAMPLES_MAX && self.leg.phase == Phase::Measured {
            self.examples.push(Example { outcome, message: message.to_owned() });
        }
    }

    fn into_report(self) -> ShardReport {
        ShardReport {
            tally: self.tally,
            check: self.check,
            examples: self.examples,
            records: self.records,
            last_plan: self.last_plan,
            last_end: self.last_end,
            e2e_ns: self.e2e_ns,
        }
    }
}

/// Listens to the content events of one read.
struct Ear<'a> {
    tally: &'a mut Tally,
    gauges: &'a Gauges,
    check: &'a mut ShardCheck,
    last_content_read: &'a mut u64,
    times: Option<&'a mut Vec<u64>>,
}

impl Sink for Ear<'_> {
    const WANTS_TEXT: bool = false;

    #[inline]
    fn content_event(&mut self, event: &ContentEvent) {
        self.check.events += 1;
        if *self.last_content_read == event.at.read_no {
            self.check.coalesced += 1;
        }
        *self.last_content_read = event.at.read_no;
        self.tally.on_content(event.at.read, event.tokens);
        self.gauges.on_event();
        if let Some(times) = &mut self.times {
            times.push(event.at.read.as_nanos());
        }
    }
}
