//! The coordinator: starts the shards, hands out legs, sets the common start, watches for the user's Ctrl-C, and
//! makes one result of the shards' reports.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::engine::{Engine, Error};
use crate::exchange::Ask;
use crate::load::agenda::ClosedLoop;
use crate::load::agreed::Agreed;
use crate::load::assemble::{self, Beside, LegOutcome, records, seconds};
use crate::load::gauges::{Gauges, Reading};
use crate::load::leg::{Halt, Kept, Leg, Order, Part, Reply};
use crate::load::permits::Permits;
use crate::load::pools::Pools;
use crate::load::prefix_cache::Resets;
use crate::load::replay::{self, Replayed};
use crate::load::shard::{Equipment, Shard};
use crate::load::spool::{Spool, SpoolSender, Spooled};
use crate::load::target::Target;
use crate::load::until::{Standing, Watch};
use crate::metrics::{Live, LiveShard, Phase, Slices};
use crate::pace::{self, Kernel, Mode, Pace};
use crate::plan::{Driver, Level, Plan, Timestamps};
use crate::run::{Event, HostCheck, LevelResult, Stamps, Tick};
use crate::sys::affinity::pin_to;
use crate::sys::clock::RunClock;
use crate::sys::receive::Stamping;
use crate::sys::signals::Interrupts;
use crate::sys::usage::{Ports, Usage};
use crate::sys::waker::Waker;
use crate::time::Stamp;
use crate::workload::arrival;

/// How often a live view is told.
const TICK: Duration = Duration::from_millis(250);
/// How often the coordinator looks whether the level may begin, or be ended by what is seen in it.
const LOOK: Duration = Duration::from_millis(20);
/// How often it looks at the user's wishes meanwhile: it may share a core with a shard.
const GLANCE: Duration = Duration::from_millis(125);
/// From the word to start to the start: every shard is awake by then.
const START_LEAD: Duration = Duration::from_millis(2);

/// What a [`LoadEngine`] is made of.
#[derive(Debug)]
pub struct Setup {
    /// The run's time line.
    pub clock: RunClock,
    /// Endpoints and bodies.
    pub target: Arc<Target>,
    /// How answers are read.
    pub ask: Ask,
    /// The plan.
    pub plan: Arc<Plan>,
    /// For each shard the core to pin it to, if any; never empty.
    pub cores: Vec<Option<u32>>,
    /// Where records go; `None`: not kept.
    pub spool: Option<Spool>,
    /// Where each shard shows what it does, if anybody looks: made for as many as there are [cores](Setup::cores).
    pub live: Option<Live>,
    /// The user's wish to stop.
    pub interrupts: Interrupts,
    /// Where the start of a level is agreed on with others; `None`: it starts when it is ready.
    pub agreed: Option<Arc<Agreed>>,
}

/// Runs levels for real: S shards on S cores.
#[derive(Debug)]
pub struct LoadEngine {
    setup: Setup,
    shards: Vec<Handle>,
    replies: Receiver<Reply>,
    records: u64,
    /// Records that could not be written so far.
    records_lost: u64,
    kernel: Kernel,
    stamps: Stamps,
    resets: Resets,
    /// The limit on connections, if the plan has one.
    pools: Option<Arc<Pools>>,
    /// Keeps the kernel's stamps on from before the first connection to the end.
    _stamping: Option<Stamping>,
}

/// What the shards are to send in a leg.
struct Sends {
    parts: Vec<Part>,
    /// Decides whether the leg goes on, where its length depends on what comes.
    watch: Option<Watch>,
    /// Which level it is, where others decide when it starts.
    agreed: Option<usize>,
}

/// A running shard.
#[derive(Debug)]
struct Handle {
    orders: Sender<Order>,
    waker: Arc<Waker>,
    gauges: Arc<Gauges>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// What a shard's thread says when it has come up.
type Started = Result<(Arc<Waker>, Kernel), io::Error>;

impl LoadEngine {
    /// Starts the shards.
    ///
    /// # Errors
    /// The system refuses a thread, a descriptor or the wished driver.
    pub fn start(setup: Setup) -> Result<LoadEngine, Error> {
        let (stamps, stamping) = enable_stamps(setup.plan.client.timestamps);
        let (reply, replies) = channel();
        let mut shards = Vec::new();
        let mut kernel = Kernel::IoUring;
        for (place, core) in setup.cores.iter().enumerate() {
            let (handle, of) = start_shard(&setup, (place, *core, stamping.is_some()), reply.clone())?;
            if of == Kernel::Epoll {
                kernel = Kernel::Epoll;
            }
            shards.push(handle);
        }
        let limit = setup.plan.target.connections.max.map(|max| setup.plan.own_share().count_u32(max).max(1));
        let pools = limit.map(|limit| {
            let wakers = shards.iter().map(|shard: &Handle| Arc::clone(&shard.waker)).collect();
            Arc::new(Pools::new(limit, setup.target.routes.len(), wakers))
        });
        Ok(LoadEngine {
            pools,
            setup,
            shards,
            replies,
            records: 0,
            records_lost: 0,
            kernel,
            stamps,
            resets: Resets::default(),
            _stamping: stamping,
        })
    }

    /// The kernel interface in use; epoll if any shard fell back to it.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Which stamps are taken, and why not those that the plan asked for.
    #[must_use]
    pub fn stamps(&self) -> &Stamps {
        &self.stamps
    }

    /// Whether every server emptied its prefix cache before every level so far; `None` if none was asked to.
    #[must_use]
    pub fn prefix_caches_emptied(&self) -> Option<bool> {
        self.resets.all_taken()
    }

    /// Ends the shards and the spool.
    ///
    /// # Errors
    /// A shard has panicked or lost its epoll.
    pub fn finish(mut self) -> Result<Option<Spooled>, Error> {
        let shards = std::mem::take(&mut self.shards);
        for (place, mut shard) in shards.into_iter().enumerate() {
            drop(shard.orders);
            shard.waker.wake();
            if let Some(thread) = shard.thread.take() {
                joined(place, thread)?;
            }
        }
        Ok(self.setup.spool.take().map(Spool::finish))
    }

    fn leg(&self, ordinal: usize, level: &Level, phase: Phase, cut: Duration) -> Leg {
        let wakers = self.shards.iter().map(|shard| Arc::clone(&shard.waker)).collect();
        let target = self.setup.target.of_level(level, ordinal);
        let leg =
            Leg::planned(&self.setup.plan, target, self.setup.ask.clone(), level, (ordinal, phase, cut));
        let share = self.setup.plan.own_share();
        let permits = level.load.cap.map(|cap| Permits::new(share.count_u32(cap), wakers));
        let warm = share.count_u32(self.setup.plan.target.connections.prewarm);
        let connections = Kept { pools: self.pools.clone(), warm: (warm, 1), ..leg.connections };
        Leg { permits, connections, ..leg }
    }

    /// Sends the warm-up requests of a level.
    fn warm_up(&mut self, ordinal: usize, level: &Level, events: Events<'_>) -> Result<LegOutcome, Error> {
        events(Event::WarmupStarted { ordinal, requests: level.warmups });
        let users = assemble::warm_up_users(level);
        let leg = self.leg(ordinal, level, Phase::Warmup, Duration::ZERO).for_warm_up(level.warmups);
        let parts = self.closed_parts(&ClosedLoop::of(users, u64::from(level.warmups)));
        self.run_leg(leg, Sends { parts, watch: None, agreed: None }, &mut |_| {})
    }

    /// The users of `all` dealt out to the shards.
    fn closed_parts(&self, all: &ClosedLoop) -> Vec<Part> {
        let share = self.setup.plan.own_share();
        let shards = (self.shards.len() as u32).min(share.count_u32(all.users)).max(1);
        let spread = seconds(self.setup.plan.client.start_spread_us / 1e6);
        let part = |shard| {
            let (shard, shards) = share.part((shard, shards));
            Part::Closed(ClosedLoop { shards, shard, spread, ..*all })
        };
        (0..shards).map(part).collect()
    }

    fn sends(&self, ordinal: usize, level: &Level) -> Result<Sends, Error> {
        let watch = Watch::of(&self.setup.plan, level);
        let agreed = self.setup.agreed.as_ref().map(|_| ordinal);
        Ok(Sends { parts: self.parts(ordinal, level, watch.as_ref())?, watch, agreed })
    }

    fn parts(&self, ordinal: usize, level: &Level, watch: Option<&Watch>) -> Result<Vec<Part>, Error> {
        let units = level.stop.units.unwrap_or(u64::MAX);
        let duration = level.stop.duration_s.map_or(Duration::MAX, seconds);
        if let Some(users) = level.load.users {
            let think = seconds(level.load.think_s);
            let pace = level.load.interval_s().map(seconds);
            let ramp = level.load.ramp_s().map(seconds);
            let all = ClosedLoop { think, pace, ramp, duration, ..ClosedLoop::of(users, units) };
            return Ok(self.closed_parts(&all));
        }
        let share = self.setup.plan.own_share();
        let own = u32::try_from(share.count(units)).unwrap_or(u32::MAX);
        let shards = own.min(self.shards.len() as u32).max(1);
        let seed = self.setup.plan.level_seed(ordinal);
        // The schedule is laid out as far as the level may ever go; how far it goes for now the signal says.
        let stop = watch.map_or_else(|| level.stop.clone(), |watch| watch.longest_stop(&level.stop));
        let part = |shard| {
            let (shard, shards) = share.part((shard, shards));
            if let Some(replayed) = Replayed::of(&self.setup.target, level, (shard, shards))? {
                return Ok(Part::Replayed(Box::new(replayed)));
            }
            let schedule = arrival::Schedule::new(&level.load.arrivals, seed, &stop);
            let dealt = arrival::Dealt::new(schedule, shard, shards);
            Ok(Part::Open(Box::new(dealt.map(|due| (due.index, due.offset_ns)))))
        };
        (0..shards).map(part).collect()
    }

    fn run_leg(&mut self, leg: Leg, sends: Sends, events: Events<'_>) -> Result<LegOutcome, Error> {
        let Sends { parts, mut watch, agreed } = sends;
        let agreed = self.setup.agreed.clone().zip(agreed);
        if self.setup.interrupts.count() > 0 {
            // The user's wish came before this leg, in the warm-up or between two: nothing more is sent.
            let start = self.setup.clock.now();
            let cut = leg.cut;
            return Ok(LegOutcome {
                start,
                cut,
                reports: Vec::new(),
                watched: None,
                interrupted: true,
                replicas: Vec::new(),
            });
        }
        let working = parts.len();
        let mut leg = leg;
        leg.connections.warm.1 = working;
        let leg = Arc::new(leg);
        let before: Reading = self.shards.iter().map(|shard| shard.gauges.read()).sum();
        for (part, shard) in parts.into_iter().zip(&self.shards) {
            // A shard that is gone is noticed below, by its missing reply.
            let _ = shard.orders.send(Order { leg: Arc::clone(&leg), part });
            shard.waker.wake();
        }
        let mut outcome = LegOutcome {
            start: Stamp::ZERO,
            cut: leg.cut,
            reports: Vec::new(),
            watched: None,
            interrupted: false,
            replicas: Vec::new(),
        };
        let (mut prepared, mut next_tick, mut samples_due, mut overdue) = (0, Stamp::ZERO, 0, 0);
        while outcome.reports.len() < working {
            let is_watched = watch.is_some() || leg.signal.start().is_none();
            match self.replies.recv_timeout(if is_watched { LOOK } else { GLANCE }) {
                Ok(Reply::Prepared) => {
                    prepared += 1;
                    match &agreed {
                        _ if prepared < working => {}
                        None => self.begin(&leg, &mut outcome, None),
                        Some((agreed, ordinal)) => agreed.ready(*ordinal),
                    }
                }
                Ok(Reply::Sample(sample)) => {
                    samples_due -= 1;
                    if let Some(watch) = &mut watch {
                        watch.take(sample.seen);
                        overdue += sample.overdue;
                        if samples_due == 0 && !outcome.interrupted {
                            let elapsed = self.setup.clock.now() - outcome.start;
                            self.decide(&leg, watch, (before, elapsed, overdue), events);
                        }
                    }
                }
                Ok(Reply::Done(report)) => outcome.reports.push(*report),
                Err(RecvTimeoutError::Timeout) => self.look_for_lost_shards()?,
                Err(RecvTimeoutError::Disconnected) => {
                    self.look_for_lost_shards()?;
                    return Err(Error::Refused("all shards have ended".to_owned()));
                }
            }
            self.pass_on_interrupts(&leg, &mut outcome);
            if prepared == working && leg.signal.start().is_none() {
                let start = agreed.as_ref().and_then(|(agreed, _)| agreed.take());
                start
                    .iter()
                    .filter_map(|start| start.note.as_ref())
                    .for_each(|note| events(Event::Note(note)));
                match start {
                    Some(start) => self.begin(&leg, &mut outcome, Some(start.at)),
                    // Nobody is waited for any more.
                    None if outcome.interrupted => self.begin(&leg, &mut outcome, None),
                    None => {}
                }
            }
            let now = self.setup.clock.now();
            if leg.signal.start().is_none() || now < outcome.start {
                continue;
            }
            if now >= next_tick {
                next_tick = now + TICK;
                events(Event::Tick(self.tick(before, (now - outcome.start).as_secs_f64())));
            }
            if samples_due == 0
                && !outcome.interrupted
                && outcome.reports.is_empty()
                && watch
                    .as_ref()
                    .is_some_and(|watch| watch.is_due(now - outcome.start, self.sent_since(before)))
            {
                (samples_due, overdue) = (working, 0);
                leg.signal.ask();
                self.wake_all();
            }
        }
        outcome.watched = watch.map(|mut watch| {
            outcome
                .reports
                .iter_mut()
                .for_each(|report| watch.take(std::mem::take(&mut report.observations)));
            watch.end()
        });
        outcome.replicas = leg.replicas.as_ref().map(|replicas| replicas.names()).unwrap_or_default();
        Ok(outcome)
    }

    /// Sets the common start: at the time that was agreed on, or as soon as every shard is awake.
    fn begin(&self, leg: &Leg, outcome: &mut LegOutcome, at: Option<Stamp>) {
        let soonest = self.setup.clock.now() + START_LEAD;
        outcome.start = at.map_or(soonest, |at| at.max(soonest));
        if let Some(spool) = self.setup.spool.as_ref().filter(|_| leg.phase == Phase::Measured) {
            // Told before any shard has a record to hand over.
            spool.begin_measuring(outcome.start);
        }
        leg.signal.set_start(outcome.start);
        self.wake_all();
    }

    /// All shards have told what they have seen: goes on or not.
    fn decide(&self, leg: &Leg, watch: &mut Watch, stands: (Reading, Duration, u64), events: Events<'_>) {
        let (before, elapsed, overdue) = stands;
        let now: Reading = self.shards.iter().map(|shard| shard.gauges.read()).sum();
        let hopeless = now.ok == before.ok && now.failed > before.failed;
        let sent = now.sent - before.sent;
        let decision = watch.decide(Standing { elapsed, sent, overdue, hopeless });
        leg.signal.set_reach(decision.reach, decision.open);
        if decision.stop {
            leg.signal.halt(Halt::Stop);
        }
        self.wake_all();
        if let Some(note) = decision.note {
            events(Event::Note(&note));
        }
    }

    fn sent_since(&self, before: Reading) -> u64 {
        let now: Reading = self.shards.iter().map(|shard| shard.gauges.read()).sum();
        now.sent - before.sent
    }

    fn tick(&self, before: Reading, elapsed_s: f64) -> Tick {
        let now: Reading = self.shards.iter().map(|shard| shard.gauges.read()).sum();
        Tick {
            elapsed_s,
            in_flight: now.in_flight(),
            ok: now.ok - before.ok,
            failed: now.failed - before.failed,
            events: now.events - before.events,
        }
    }

    fn pass_on_interrupts(&self, leg: &Leg, outcome: &mut LegOutcome) {
        let wished = match self.setup.interrupts.count() {
            0 => Halt::No,
            1 => Halt::Stop,
            _ => Halt::Abort,
        };
        // A leg whose outcome is certain may have stopped by itself before.
        if wished > leg.signal.halted() || (wished != Halt::No && !outcome.interrupted) {
            outcome.interrupted = true;
            leg.signal.halt(wished);
            self.wake_all();
        }
    }

    fn wake_all(&self) {
        self.shards.iter().for_each(|shard| shard.waker.wake());
    }

    /// A shard only ends when its orders end: one that has ended before has failed.
    fn look_for_lost_shards(&mut self) -> Result<(), Error> {
        for (place, shard) in self.shards.iter_mut().enumerate() {
            if let Some(thread) = shard.thread.take_if(|thread| thread.is_finished()) {
                joined(place, thread)?;
                return Err(Error::Refused(format!("shard {place} ended before its work")));
            }
        }
        Ok(())
    }

    /// Waits until all records are written; gives how many could not be, and the slices of the level.
    fn flush_spool(&self, events: Events<'_>) -> (u64, Option<Slices>) {
        let Some(spool) = &self.setup.spool else { return (0, None) };
        let spooled = spool.flush();
        spooled.notes(self.records_lost).iter().for_each(|note| events(Event::Note(note)));
        let lost = spooled.records_lost();
        (lost, spooled.slices)
    }
}

type Events<'a> = &'a mut dyn FnMut(Event<'_>);

impl Engine for LoadEngine {
    fn run_level(&mut self, ordinal: usize, level: &Level, events: Events<'_>) -> Result<LevelResult, Error> {
        let first = self.records;
        if let Some(spool) = &self.setup.spool {
            spool.begin_level(ordinal, level);
        }
        if self.setup.plan.target.reset_prefix_cache && self.setup.interrupts.count() == 0 {
            let (plan, routes) = (&self.setup.plan, &self.setup.target.routes);
            self.resets.before_level(&plan.target.endpoints, routes, &mut |note| events(Event::Note(note)));
        }
        let warms_up = assemble::warms_up(&self.setup.plan, level);
        let warm_up = if warms_up { self.warm_up(ordinal, level, events)?.reports } else { Vec::new() };
        self.records += records(&warm_up);
        let cut = assemble::cut(level, self.setup.plan.steady_cut, &warm_up);
        let leg = self.leg(ordinal, level, Phase::Measured, cut);
        let sends = self.sends(ordinal, level)?;
        events(Event::MeasuringStarted { ordinal });
        let before = Usage::read();
        let outcome = self.run_leg(leg, sends, events)?;
        replay::check(&self.setup.target)?;
        let after = Usage::read();
        self.records += records(&outcome.reports);
        let lost_before = self.records_lost;
        let (records_lost, slices) = self.flush_spool(events);
        self.records_lost = records_lost;
        let records_lost = self.records_lost - lost_before;
        let beside = Beside {
            records: assemble::range(self.setup.spool.as_ref(), first, self.records),
            slices,
            host: Some(HostCheck { records_lost, ..host_check(&before, &after) }),
            stamps: self.stamps.clone(),
        };
        let result = assemble::level_result(ordinal, level, outcome, beside);
        if let Some(why_not) = result.stamps.why_not.as_ref().filter(|_| self.stamps.why_not.is_none()) {
            events(Event::Note(&format!("{why_not}; the level's latencies are those of user stamps")));
        }
        Ok(result)
    }
}

/// What the machine went through between two readings.
fn host_check(before: &Usage, after: &Usage) -> HostCheck {
    let grown = |of: fn(&Usage) -> Option<u64>| Some(of(after)?.saturating_sub(of(before)?));
    let share = |part: Option<u64>| {
        let all = grown(|usage| usage.cpu_all).filter(|all| *all > 0)?;
        Some(part? as f64 / all as f64)
    };
    let ports = Ports::read();
    HostCheck {
        busy_share: share(grown(|usage| usage.cpu_busy)),
        steal_share: share(grown(|usage| usage.cpu_stolen)),
        throttled_s: grown(|usage| usage.throttled_us).map(|us| us as f64 / 1e6),
        major_faults: after.major_faults.saturating_sub(before.major_faults),
        minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
        preemptions: after.preemptions.saturating_sub(before.preemptions),
        swapped_pages: grown(|usage| usage.swapped_pages),
        time_wait: ports.time_wait,
        ports: ports.all,
        records_lost: 0,
    }
}

/// Switches the kernel's stamps on if they are wished; a machine that refuses them is measured without.
fn enable_stamps(wished: Timestamps) -> (Stamps, Option<Stamping>) {
    if wished == Timestamps::User {
        return (Stamps { in_use: Timestamps::User, why_not: None }, None);
    }
    match Stamping::enable() {
        Ok(stamping) => (Stamps { in_use: wished, why_not: None }, Some(stamping)),
        Err(error) => {
            let why_not = Some(format!("the kernel refuses receive stamps here ({error})"));
            (Stamps { in_use: Timestamps::User, why_not }, None)
        }
    }
}

fn start_shard(
    setup: &Setup,
    of: (usize, Option<u32>, bool),
    reply: Sender<Reply>,
) -> Result<(Handle, Kernel), Error> {
    let (place, core, stamped) = of;
    let (orders, from) = channel();
    let (started, on_start) = channel::<Started>();
    let gauges = Arc::new(Gauges::default());
    let spool = setup.spool.as_ref().map(Spool::sender);
    let live = setup.live.as_ref().and_then(|live| live.shard(place));
    let of_thread =
        ThreadPart { place, core, stamped, reply, started, gauges: Arc::clone(&gauges), live, spool };
    let (clock, driver) = (setup.clock, setup.plan.client.driver);
    let thread = std::thread::Builder::new()
        .name(format!("shard-{place}"))
        .spawn(move || shard_thread(of_thread, from, clock, driver))
        .map_err(|source| Error::Machine { doing: format!("cannot start shard {place}"), source })?;
    let refused =
        |source| Error::Machine { doing: format!("cannot start the runtime of shard {place}"), source };
    match on_start.recv() {
        Ok(Ok((waker, kernel))) => Ok((Handle { orders, waker, gauges, thread: Some(thread) }, kernel)),
        Ok(Err(source)) => Err(refused(source)),
        Err(_) => match thread.join() {
            Ok(Err(source)) => Err(refused(source)),
            Ok(Ok(())) => Err(Error::Refused(format!("shard {place} ended at once"))),
            Err(panic) => Err(Error::ShardLost { shard: place, message: message_of(&*panic) }),
        },
    }
}

/// What moves into a shard's thread.
struct ThreadPart {
    place: usize,
    core: Option<u32>,
    stamped: bool,
    reply: Sender<Reply>,
    started: Sender<Started>,
    gauges: Arc<Gauges>,
    live: Option<Arc<LiveShard>>,
    spool: Option<SpoolSender>,
}

fn shard_thread(
    part: ThreadPart,
    orders: Receiver<Order>,
    clock: RunClock,
    driver: Driver,
) -> io::Result<()> {
    // Pinned before the runtime and its buffers exist, so that their memory is this core's.
    let core = part.core.filter(|core| pin_to(*core));
    pace::block_on(driver, |kernel| async move {
        let pace = match Pace::new(clock, Mode::Sleep, kernel) {
            Ok(pace) => pace,
            Err(error) => {
                // Nobody listens only if the coordinator has gone.
                let _ = part.started.send(Err(error));
                return Ok(());
            }
        };
        let _ = part.started.send(Ok((pace.waker(), kernel)));
        let equipment = Equipment {
            place: part.place,
            core,
            pace,
            gauges: part.gauges,
            live: part.live,
            spool: part.spool,
            stamped: part.stamped,
        };
        Shard::new(equipment).run(orders, part.reply).await
    })?
}

fn joined(shard: usize, thread: JoinHandle<io::Result<()>>) -> Result<(), Error> {
    match thread.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(source)) => {
            Err(Error::Machine { doing: format!("shard {shard} could not go on waiting"), source })
        }
        Err(panic) => Err(Error::ShardLost { shard, message: message_of(&*panic) }),
    }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
