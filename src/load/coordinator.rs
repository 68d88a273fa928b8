//! The coordinator: starts the shards, hands out legs, sets the common start, watches for the user's Ctrl-C, and
//! makes one result of the shards' reports.

mod conducting;
mod threads;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::engine::{Engine, Error};
use crate::exchange::Ask;
use crate::load::agenda::ClosedLoop;
use crate::load::agreed::Agreed;
use crate::load::assemble::{self, Beside, LegOutcome, records, seconds};
use crate::load::leg::{Kept, Leg, Part, Reply};
use crate::load::permits::Permits;
use crate::load::pools::Pools;
use crate::load::prefix_cache::Resets;
use crate::load::replay::{self, Replayed};
use crate::load::spool::{Spool, Spooled};
use crate::load::target::Target;
use crate::load::until::Watch;
use crate::metrics::{Live, Phase, Slices};
use crate::pace::Kernel;
use crate::plan::{Level, Plan, Timestamps};
use crate::run::{Event, HostCheck, LevelResult, Stamps};
use crate::sys::clock::RunClock;
use crate::sys::receive::Stamping;
use crate::sys::signals::Interrupts;
use crate::sys::usage::{Ports, Usage};
use crate::workload::arrival;

use conducting::Sends;
use threads::{Handle, joined, start_shard};

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
