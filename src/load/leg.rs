//! What a shard is told to do, and what it gives back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::exchange::Ask;
use crate::load::agenda::{ClosedLoop, Due, Schedule};
use crate::load::assemble::seconds;
use crate::load::outstanding::Outstanding;
use crate::load::permits::Permits;
use crate::load::pools::Pools;
use crate::load::replay::Replayed;
use crate::load::replicas::Replicas;
use crate::load::target::Target;
use crate::load::until::{self, Reach, Watch};
use crate::metrics::{Class, Flags, Phase, Record, Tally};
use crate::plan::{Burn, Connections, Level, Limits, Plan, Timestamps};
use crate::run::{Example, ShardCheck};
use crate::summary::precision::{Observation, Observed};
use crate::time::Stamp;
use crate::workload::{Abort, Item};

/// One stretch of load, the same for all shards: the warm-up of a level, or the level itself.
#[derive(Debug)]
pub(crate) struct Leg {
    /// Endpoints and bodies.
    pub target: Arc<Target>,
    /// How answers are read; the length that a request asks for is its own, see [`Leg::ask_of`].
    pub ask: Ask,
    /// Warm-up or measured.
    pub phase: Phase,
    /// Seed of the level's prompts: those of different levels differ.
    pub seed: u64,
    /// When a request counts as lost.
    pub limits: Spans,
    /// The cap, in a capped open loop.
    pub permits: Option<Permits>,
    /// How connections are kept, and how many there may be.
    pub connections: Kept,
    /// Requests under way at each endpoint, where sends go by them.
    pub outstanding: Option<Outstanding>,
    /// Who answers, where that is told apart.
    pub replicas: Option<Replicas>,
    /// Judged from the plan.
    pub from_plan: bool,
    /// Keep the time of each content event.
    pub keep_chunks: bool,
    /// Which stamps the latencies rest on.
    pub timestamps: Timestamps,
    /// Time to waste.
    pub burn: Option<Burn>,
    /// Length of the ramp that is cut off the front of the window.
    pub cut: Duration,
    /// How long open requests are followed after the planned length, or after the user has stopped the run.
    pub grace: Duration,
    /// What each request is observed for, where the leg goes on until a figure is known.
    pub observed: Option<Observed>,
    /// Common start, reach and stop, set by the coordinator.
    pub signal: Signal,
}

/// The connections of a leg.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// The plan's settings.
    pub settings: Connections,
    /// Most connections to each endpoint, where there is a limit.
    pub pools: Option<Arc<Pools>>,
    /// Connections of this process to each endpoint that stand before the leg begins, and the shards that open them.
    pub warm: (u32, usize),
}

impl Kept {
    /// How many of them the shard at `place` opens.
    #[must_use]
    pub(crate) fn warm_of(&self, place: usize) -> usize {
        let (all, shards) = (self.warm.0 as usize, self.warm.1.max(1));
        all / shards + usize::from(place < all % shards)
    }
}

/// Time limits of a request; `Duration::MAX` where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spans {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the first content event.
    pub first: Duration,
    /// Silence after a content event.
    pub gap: Duration,
    /// The whole request.
    pub total: Duration,
}

impl From<&Limits> for Spans {
    fn from(limits: &Limits) -> Spans {
        Spans {
            connect: span(limits.connect_s),
            first: span(limits.first_s),
            gap: span(limits.gap_s),
            total: span(limits.total_s),
        }
    }
}

/// A limit in seconds; 0 means none.
fn span(seconds: f64) -> Duration {
    if seconds > 0.0 { Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX) } else { Duration::MAX }
}

/// What the coordinator says to all shards at once.
#[derive(Debug)]
pub(crate) struct Signal {
    start: AtomicU64,
    halt: AtomicU8,
    /// Rises when something else is told.
    version: AtomicU64,
    told: Mutex<Told>,
}

/// What is told while a leg runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// How far sends may go.
    pub reach: Reach,
    /// It may yet be moved on: whoever gets there waits.
    pub open: bool,
    /// How often observations were asked for.
    pub asked: u64,
}

/// Whether to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Halt {
    /// Go on.
    No = 0,
    /// Send nothing more; follow what is open for the grace period.
    Stop = 1,
    /// Give up what is open.
    Abort = 2,
}

impl Default for Signal {
    fn default() -> Signal {
        Signal::new(Reach { units: u64::MAX, length: Duration::MAX }, false)
    }
}

impl Signal {
    /// The signal of a leg that goes so far, or, if it is `open`, perhaps farther.
    pub(crate) fn new(reach: Reach, open: bool) -> Signal {
        Signal {
            start: AtomicU64::new(u64::MAX),
            halt: AtomicU8::new(Halt::No as u8),
            version: AtomicU64::new(0),
            told: Mutex::new(Told { reach, open, asked: 0 }),
        }
    }

    /// Tells all shards how far they may go from now on, and whether that may change again.
    pub(crate) fn set_reach(&self, reach: Reach, open: bool) {
        self.tell(|told| (told.reach, told.open) = (reach, open));
    }

    /// Asks all shards for what they have observed since the last time.
    pub(crate) fn ask(&self) {
        self.tell(|told| told.asked += 1);
    }

    fn tell(&self, change: impl FnOnce(&mut Told)) {
        change(&mut self.told.lock().unwrap_or_else(PoisonError::into_inner));
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Rises whenever [`Signal::told`] may have changed: all that need be looked at in every turn.
    #[inline]
    #[must_use]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// What is told now.
    #[must_use]
    pub(crate) fn told(&self) -> Told {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the common start.
    pub(crate) fn set_start(&self, at: Stamp) {
        self.start.store(at.as_nanos(), Ordering::Release);
    }

    /// The common start, once it is set.
    #[must_use]
    pub(crate) fn start(&self) -> Option<Stamp> {
        Some(self.start.load(Ordering::Acquire)).filter(|ns| *ns != u64::MAX).map(Stamp::from_nanos)
    }

    /// Asks all shards to stop or to give up. It is never taken back.
    pub(crate) fn halt(&self, how: Halt) {
        self.halt.fetch_max(how as u8, Ordering::Release);
    }

    /// What was asked.
    #[inline]
    #[must_use]
    pub(crate) fn halted(&self) -> Halt {
        match self.halt.load(Ordering::Acquire) {
            0 => Halt::No,
            1 => Halt::Stop,
            _ => Halt::Abort,
        }
    }
}

impl Leg {
    /// The leg of a level: its phase and the cut of its ramp are `of`'s.
    pub(crate) fn planned(
        plan: &Plan,
        target: Arc<Target>,
        ask: Ask,
        level: &Level,
        of: (usize, Phase, Duration),
    ) -> Leg {
        let (ordinal, phase, cut) = of;
        let outstanding = (!target.routing.is_fixed()).then(|| Outstanding::new(target.routes.len()));
        Leg {
            outstanding,
            replicas: Replicas::of(plan, &target),
            target,
            ask,
            phase,
            seed: plan.level_seed(ordinal),
            limits: Spans::from(&plan.limits),
            permits: None,
            connections: Kept { settings: plan.target.connections.clone(), ..Kept::default() },
            from_plan: level.load.judged_from_plan(),
            keep_chunks: plan.keep.chunks,
            timestamps: plan.client.timestamps,
            burn: plan.client.burn,
            cut,
            grace: seconds(level.stop.grace_s),
            observed: until::observed(plan, level),
            signal: Signal::new(
                Reach::of(level),
                Watch::of(plan, level).is_some_and(|watch| watch.is_open()),
            ),
        }
    }

    /// The same leg as the level's warm-up: a closed loop of so many requests to its end, without a cap.
    pub(crate) fn for_warm_up(mut self, units: u32) -> Leg {
        self.permits = None;
        self.from_plan = false;
        self.observed = None;
        self.signal = Signal::new(Reach { units: u64::from(units), length: Duration::MAX }, false);
        self
    }

    /// Request `index`, as the workload knows it.
    #[must_use]
    pub(crate) fn item(&self, index: u64) -> Item {
        Item { seed: self.seed, phase: self.phase, index }
    }

    /// Whether what it sends are sessions that may have several turns.
    #[must_use]
    pub(crate) fn has_sessions(&self) -> bool {
        self.target.content.has_sessions(self.phase)
    }

    /// Whether answers are gathered, because later turns repeat them.
    #[must_use]
    pub(crate) fn gathers_replies(&self) -> bool {
        self.has_sessions() && self.target.content.agents().is_none()
    }

    /// The endpoint of a request that is due and sent `now`; it is under way there until [`Leg::on_end`].
    pub(crate) fn route_of(&self, due: &Due, now: Stamp) -> usize {
        let fixed = self.target.route_of(self.item(due.index));
        fixed.unwrap_or_else(|| self.outstanding.as_ref().map_or(0, |all| all.choose(now)))
    }

    /// A request with this record has ended.
    pub(crate) fn on_end(&self, record: &Record) {
        if let Some(outstanding) = &self.outstanding {
            let refused = record.outcome.class == Class::Connect;
            outstanding.release(usize::from(record.endpoint), record.end, refused);
        }
    }

    /// The record of a request that is due to go to endpoint `route`, before anything has happened to it. Its user reads
    /// slowly if `slow`.
    pub(crate) fn record_of(&self, due: &Due, route: usize, permit: Stamp, slow: bool) -> Record {
        let mut record = due.record();
        record.permit = permit;
        record.phase = self.phase;
        record.endpoint = route as u16;
        record.model = self.target.model_of(self.item(due.index)) as u16;
        if self.from_plan {
            record.flags.insert(Flags::FROM_PLAN);
        }
        if slow {
            record.flags.insert(Flags::SLOW_READER);
        }
        record
    }

    /// How the answer to a request is read that asks for so many tokens, and whose user goes away as `abort` says.
    #[must_use]
    pub(crate) fn ask_of(&self, max_tokens: u32, abort: Abort) -> Ask {
        if !self.ask.dialect.generates() {
            return self.ask.clone();
        }
        Ask { max_tokens, leaves_with: abort.after_tokens.unwrap_or(0), ..self.ask.clone() }
    }
}

/// A shard's own part of a leg.
pub(crate) enum Part {
    /// Some users of a closed loop.
    Closed(ClosedLoop),
    /// Some of the planned sends.
    Open(Schedule),
    /// Some of the sends of a trace.
    Replayed(Box<Replayed>),
}

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Part::Closed(part) => f.debug_tuple("Closed").field(part).finish(),
            Part::Open(_) => f.write_str("Open"),
            Part::Replayed(_) => f.write_str("Replayed"),
        }
    }
}

/// What a shard is handed, once per leg.
#[derive(Debug)]
pub(crate) struct Order {
    /// The leg.
    pub leg: Arc<Leg>,
    /// This shard's part.
    pub part: Part,
}

/// What a shard gives back.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The first requests are written; waiting for the start.
    Prepared,
    /// What was observed since the last time.
    Sample(Sample),
    /// The leg is over on this shard.
    Done(Box<ShardReport>),
}

/// What a shard has observed since it was asked before.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    /// Of requests that have ended since.
    pub seen: Vec<Observation>,
    /// Requests that have not ended and have missed a limit by now.
    pub overdue: u64,
}

/// The result of a leg on one shard.
#[derive(Debug)]
pub(crate) struct ShardReport {
    /// Histograms and counts.
    pub tally: Tally,
    /// What the shard says of itself.
    pub check: ShardCheck,
    /// One failure per outcome.
    pub examples: Vec<Example>,
    /// Records handed to the spool.
    pub records: u64,
    /// Last planned send; `None` if there was none.
    pub last_plan: Option<Stamp>,
    /// Last end of a request.
    pub last_end: Option<Stamp>,
    /// E2E of the requests that ended well, ns, at most some thousands: for the cut of the level after a warm-up.
    pub e2e_ns: Vec<u64>,
    /// What was observed and not yet handed over.
    pub observations: Vec<Observation>,
}
