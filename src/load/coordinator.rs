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
use crate::load::gauges::{Gauges, Reading};
use crate::load::leg::{Halt, Leg, Order, Part, Reply, ShardReport, Signal, Spans};
use crate::load::permits::Permits;
use crate::load::shard::{Equipment, Shard};
use crate::load::spool::{Spool, SpoolSender, Spooled};
use crate::load::target::Target;
use crate::metrics::{Phase, Tally};
use crate::pace::{self, Kernel, Mode, Pace};
use crate::plan::{Arrivals, Driver, Level, Plan};
use crate::run::{Event, Example, LevelResult, RecordRange, Span, Tick, Window};
use crate::sys::affinity::pin_to;
use crate::sys::clock::RunClock;
use crate::sys::signals::Interrupts;
use crate::sys::waker::Waker;
use crate::time::Stamp;
use crate::workload::arrival;

/// How often a live view is told.
const TICK: Duration = Duration::from_millis(250);
/// How often the coordinator looks at the user's wishes.
const LOOK: Duration = Duration::from_millis(20);
/// From the word to start to the start: every shard is awake by then.
const START_LEAD: Duration = Duration::from_millis(2);
/// Levels planned at least this long have their ramp cut off and end with the planned length.
const WINDOWED: Duration = Duration::from_secs(60);
/// The shortest cut.
const CUT_MIN: Duration = Duration::from_secs(10);

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
    /// The user's wish to stop.
    pub interrupts: Interrupts,
}

/// Runs levels for real: S shards on S cores.
#[derive(Debug)]
pub struct LoadEngine {
    setup: Setup,
    shards: Vec<Handle>,
    replies: Receiver<Reply>,
    records: u64,
    kernel: Kernel,
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
        let (reply, replies) = channel();
        let mut shards = Vec::new();
        let mut kernel = Kernel::IoUring;
        for (place, core) in setup.cores.iter().enumerate() {
            let (handle, of) = start_shard(&setup, place, *core, reply.clone())?;
            if of == Kernel::Epoll {
                kernel = Kernel::Epoll;
            }
            shards.push(handle);
        }
        Ok(LoadEngine { setup, shards, replies, records: 0, kernel })
    }

    /// The kernel interface in use; epoll if any shard fell back to it.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
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
        Leg {
            target: Arc::clone(&self.setup.target),
            ask: self.setup.ask,
            phase,
            seed: self.setup.plan.level_seed(ordinal),
            limits: Spans::from(&self.setup.plan.limits),
            permits: level.load.cap.map(|cap| Permits::new(cap, wakers)),
            from_plan: level.load.judged_from_plan(),
            keep_chunks: self.setup.plan.keep.chunks,
            cut,
            grace: seconds(level.stop.grace_s),
            duration: level.stop.duration_s.map_or(Duration::MAX, seconds),
            signal: Signal::default(),
        }
    }

    /// Sends the warm-up requests of a level.
    fn warm_up(&mut self, ordinal: usize, level: &Level, events: Events<'_>) -> Result<LegOutcome, Error> {
        events(Event::WarmupStarted { ordinal, requests: level.warmups });
        let concurrency = level.load.users.or(level.load.cap).unwrap_or(level.warmups);
        let users = concurrency.min(level.warmups);
        let mut leg = self.leg(ordinal, level, Phase::Warmup, Duration::ZERO);
        leg.permits = None;
        leg.from_plan = false;
        leg.duration = Duration::MAX;
        let parts = self.closed_parts(users, u64::from(level.warmups), Duration::ZERO, Duration::MAX);
        self.run_leg(leg, parts, &mut |_| {})
    }

    fn closed_parts(&self, users: u32, units: u64, think: Duration, duration: Duration) -> Vec<Part> {
        let shards = (self.shards.len() as u32).min(users).max(1);
        let spread = seconds(self.setup.plan.client.start_spread_us / 1e6);
        let part = |shard| Part::Closed(ClosedLoop { users, shards, shard, units, think, spread, duration });
        (0..shards).map(part).collect()
    }

    fn parts(&self, ordinal: usize, level: &Level) -> Vec<Part> {
        let units = level.stop.units.unwrap_or(u64::MAX);
        let duration = level.stop.duration_s.map_or(Duration::MAX, seconds);
        if let Some(users) = level.load.users {
            return self.closed_parts(users, units, seconds(level.load.think_s), duration);
        }
        let shards = u32::try_from(units).unwrap_or(u32::MAX).min(self.shards.len() as u32).max(1);
        let seed = self.setup.plan.level_seed(ordinal);
        let part = |shard| {
            let schedule = arrival::Schedule::new(level.load.arrivals, seed, &level.stop);
            let dealt = arrival::Dealt::new(schedule, shard, shards);
            Part::Open(Box::new(dealt.map(|due| (due.index, due.offset_ns))))
        };
        (0..shards).map(part).collect()
    }

    fn run_leg(&mut self, leg: Leg, parts: Vec<Part>, events: Events<'_>) -> Result<LegOutcome, Error> {
        let leg = Arc::new(leg);
        let working = parts.len();
        let before: Reading = self.shards.iter().map(|shard| shard.gauges.read()).sum();
        for (part, shard) in parts.into_iter().zip(&self.shards) {
            // A shard that is gone is noticed below, by its missing reply.
            let _ = shard.orders.send(Order { leg: Arc::clone(&leg), part });
            shard.waker.wake();
        }
        let mut outcome = LegOutcome { start: Stamp::ZERO, reports: Vec::new(), interrupted: false };
        let (mut prepared, mut next_tick) = (0, Stamp::ZERO);
        while outcome.reports.len() < working {
            match self.replies.recv_timeout(LOOK) {
                Ok(Reply::Prepared) => {
                    prepared += 1;
                    if prepared == working {
                        outcome.start = self.setup.clock.now() + START_LEAD;
                        leg.signal.set_start(outcome.start);
                        self.wake_all();
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
            let now = self.setup.clock.now();
            if prepared == working && now >= next_tick && now >= outcome.start {
                next_tick = now + TICK;
                events(Event::Tick(self.tick(before, (now - outcome.start).as_secs_f64())));
            }
        }
        Ok(outcome)
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
        if wished > leg.signal.halted() {
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

    fn flush_spool(&self, events: Events<'_>) {
        let Some(spool) = &self.setup.spool else { return };
        let spooled = spool.flush();
        if let Some(error) = spooled.error {
            let lost = spooled.lost_bytes / crate::metrics::Record::BYTES as u64;
            events(Event::Note(&format!(
                "records could not be written ({error}); {lost} are lost, the histograms have every request"
            )));
        }
    }
}

type Events<'a> = &'a mut dyn FnMut(Event<'_>);

/// The reports of all shards that took part in a leg.
struct LegOutcome {
    start: Stamp,
    reports: Vec<ShardReport>,
    interrupted: bool,
}

impl Engine for LoadEngine {
    fn run_level(&mut self, ordinal: usize, level: &Level, events: Events<'_>) -> Result<LevelResult, Error> {
        let first = self.records;
        let warm_up =
            if level.warmups > 0 { self.warm_up(ordinal, level, events)?.reports } else { Vec::new() };
        self.records += records(&warm_up);
        let windowed = is_windowed(level);
        let cut = if windowed { cut(level, &warm_up) } else { Duration::ZERO };
        let leg = self.leg(ordinal, level, Phase::Measured, cut);
        let parts = self.parts(ordinal, level);
        let outcome = self.run_leg(leg, parts, events)?;
        self.records += records(&outcome.reports);
        self.flush_spool(events);
        let span = span(&outcome, level);
        let window = if windowed && !outcome.interrupted {
            Window { start: span.t0 + cut, end: span.t1, whole_level: false }
        } else {
            Window { start: span.t0, end: span.t2, whole_level: true }
        };
        let mut tally = Tally::new(span.t0);
        let mut examples: Vec<Example> = Vec::new();
        for report in &outcome.reports {
            tally.merge(&report.tally);
            for example in &report.examples {
                if examples.iter().all(|known| known.outcome != example.outcome) {
                    examples.push(example.clone());
                }
            }
        }
        Ok(LevelResult {
            ordinal,
            level: level.clone(),
            span,
            window,
            tally,
            records: self.setup.spool.as_ref().map(|_| RecordRange { first, count: self.records - first }),
            shards: outcome.reports.into_iter().map(|report| report.check).collect(),
            examples,
            interrupted: outcome.interrupted,
        })
    }
}

fn start_shard(
    setup: &Setup,
    place: usize,
    core: Option<u32>,
    reply: Sender<Reply>,
) -> Result<(Handle, Kernel), Error> {
    let (orders, from) = channel();
    let (started, on_start) = channel::<Started>();
    let gauges = Arc::new(Gauges::default());
    let spool = setup.spool.as_ref().map(Spool::sender);
    let of_thread = ThreadPart { place, core, reply, started, gauges: Arc::clone(&gauges), spool };
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
    reply: Sender<Reply>,
    started: Sender<Started>,
    gauges: Arc<Gauges>,
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
        let pace = match Pace::new(clock, Mode::Sleep) {
            Ok(pace) => pace,
            Err(error) => {
                // Nobody listens only if the coordinator has gone.
                let _ = part.started.send(Err(error));
                return Ok(());
            }
        };
        let _ = part.started.send(Ok((pace.waker(), kernel)));
        let equipment = Equipment { place: part.place, core, pace, gauges: part.gauges, spool: part.spool };
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

fn is_windowed(level: &Level) -> bool {
    let long = level.stop.duration_s.is_some_and(|s| seconds(s) >= WINDOWED);
    long && level.stop.units.is_none() && level.load.arrivals != Arrivals::Burst
}

/// The ramp to cut off: 10 s, a tenth of the level, or twice the median E2E of the warm-up, whichever is longest, but
/// at most half of the level.
///
/// The measurement spec takes the E2E of the level itself. That is known only at its end, and gaps are pooled as
/// requests end; so the cut is fixed before the level from the warm-up, which runs at the same concurrency.
fn cut(level: &Level, warm_up: &[ShardReport]) -> Duration {
    let mut warm_e2e_ns: Vec<u64> = warm_up.iter().flat_map(|report| &report.e2e_ns).copied().collect();
    let length = level.stop.duration_s.map_or(Duration::ZERO, seconds);
    warm_e2e_ns.sort_unstable();
    let median = warm_e2e_ns.get(warm_e2e_ns.len().saturating_sub(1) / 2).copied().unwrap_or(0);
    let twice = Duration::from_nanos(median.saturating_mul(2));
    CUT_MIN.max(length / 10).max(twice).min(length / 2)
}

fn span(outcome: &LegOutcome, level: &Level) -> Span {
    let t0 = outcome.start;
    let last_plan = outcome.reports.iter().filter_map(|report| report.last_plan).max().unwrap_or(t0);
    let t1 = match level.stop.duration_s {
        Some(length) if level.stop.units.is_none() && !outcome.interrupted => t0 + seconds(length),
        _ => last_plan,
    };
    let last_end = outcome.reports.iter().filter_map(|report| report.last_end).max().unwrap_or(t1);
    Span { t0, t1, t2: last_end.max(t1) }
}

fn records(reports: &[ShardReport]) -> u64 {
    reports.iter().map(|report| report.records).sum()
}

fn seconds(s: f64) -> Duration {
    Duration::try_from_secs_f64(s.max(0.0)).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Load, Stop};

    fn level(duration_s: Option<f64>, units: Option<u64>) -> Level {
        Level { load: Load::closed(2), stop: Stop { units, duration_s, grace_s: 30.0 }, warmups: 0 }
    }

    fn report(e2e_ms: &[u64]) -> ShardReport {
        ShardReport {
            tally: Tally::default(),
            check: Default::default(),
            examples: Vec::new(),
            records: 0,
            last_plan: Some(Stamp::from_millis(1500)),
            last_end: Some(Stamp::from_millis(2500)),
            e2e_ns: e2e_ms.iter().map(|ms| ms * 1_000_000).collect(),
        }
    }

    #[test]
    fn only_long_levels_bounded_by_time_have_a_window() {
        assert!(is_windowed(&level(Some(60.0), None)));
        assert!(!is_windowed(&level(Some(59.9), None)));
        assert!(!is_windowed(&level(Some(600.0), Some(10))));
        assert!(!is_windowed(&level(None, Some(10))));
        let burst = Load { arrivals: Arrivals::Burst, cap: None, users: None, think_s: 0.0 };
        assert!(!is_windowed(&Level { load: burst, ..level(Some(60.0), None) }));
    }

    #[test]
    fn the_cut_is_the_longest_of_three_and_at_most_half() {
        let cut = |length, e2e: &[u64]| cut(&level(Some(length), None), &[report(e2e)]).as_secs_f64();
        assert_eq!(cut(60.0, &[]), 10.0);
        assert_eq!(cut(300.0, &[1000]), 30.0);
        assert_eq!(cut(60.0, &[9000, 8000, 100]), 16.0);
        assert_eq!(cut(60.0, &[100_000]), 30.0);
    }

    #[test]
    fn a_level_ends_with_its_planned_length_or_its_last_plan() {
        let outcome = |interrupted| LegOutcome {
            start: Stamp::from_millis(1000),
            reports: vec![report(&[])],
            interrupted,
        };
        let ms = Stamp::from_millis;
        let by_time = level(Some(1.0), None);
        assert_eq!(span(&outcome(false), &by_time), Span { t0: ms(1000), t1: ms(2000), t2: ms(2500) });
        assert_eq!(span(&outcome(true), &by_time).t1, ms(1500));
        assert_eq!(span(&outcome(false), &level(None, Some(5))).t1, ms(1500));
    }
}
