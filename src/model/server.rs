//! The one seam to every kind of server: when it is asked, it has done all that it would have done by then.

use super::batching::Replicas;
use super::fixed::Timetable;
use super::freezes::Freezes;
use super::job::{Emission, Job, Key, Refusal};
use super::settings::{Serving, Settings};
use crate::plan::Error;
use crate::time::Stamp;

/// A server as a state machine: jobs and stamps in, tokens out.
///
/// It owns no clock. Calls carry the time, which does not run backwards: a stamp below an earlier one counts as that
/// earlier one. A job submitted at the very moment at which a step begins is part of it.
#[derive(Debug)]
pub struct Server {
    core: Core,
    /// From when on jobs are taken.
    ready: Stamp,
    /// The latest stamp of any call.
    now: Stamp,
    /// What came out before it was asked for, because a submission or a cancellation came first.
    early: Early,
}

#[derive(Debug)]
enum Core {
    Batching(Replicas),
    Fixed(Timetable),
}

/// Emissions that wait to be handed out.
#[derive(Debug, Default)]
struct Early {
    emissions: Vec<Emission>,
    /// How many of them have been handed out.
    taken: usize,
}

/// What a server is doing, for its metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// Jobs that have a slot.
    pub running: u64,
    /// Jobs that wait for one.
    pub waiting: u64,
    /// Steps so far; 0 for fixed timing.
    pub steps: u64,
    /// Prompt tokens of the jobs that have got past their prompts so far.
    pub prompt_tokens: u64,
    /// How many of them the prefix cache saved.
    pub cached_tokens: u64,
    /// Blocks in the prefix caches.
    pub cache_blocks: u64,
    /// Blocks that they hold at most; `None` where there is no bound or no cache.
    pub cache_blocks_max: Option<u64>,
}

/// About how many emissions one call gives at most: a late caller must still get to other things.
const BATCH: usize = 64;

impl Server {
    /// A server that starts at `start`: cold start and freezes count from there.
    ///
    /// # Errors
    /// The settings are impossible, as [`Settings::validate`] says.
    pub fn new(settings: &Settings, start: Stamp) -> Result<Server, Error> {
        settings.validate()?;
        let freezes = Freezes::new(&settings.freezes, settings.slowing_per_minute, start);
        let core = match &settings.serving {
            Serving::Batching(batching) => Core::Batching(Replicas::new(settings, batching, freezes)),
            Serving::Fixed(fixed) => Core::Fixed(Timetable::new(settings, fixed, freezes)),
        };
        let cold_ns = (settings.cold_start_s * 1e9).round() as u64;
        let ready = Stamp::from_nanos(start.as_nanos().saturating_add(cold_ns));
        Ok(Server { core, ready, now: start, early: Early::default() })
    }

    /// Takes a job whose request was complete at `now`.
    ///
    /// # Errors
    /// The server is still cold, or the queue of the replica that would get the job is full.
    pub fn submit(&mut self, now: Stamp, job: Job) -> Result<Key, Refusal> {
        let now = self.see(now);
        if now < self.ready {
            return Err(Refusal::Cold { ready_in: self.ready - now });
        }
        if self.core.depends_on_others() {
            self.catch_up();
        }
        match &mut self.core {
            Core::Batching(replicas) => replicas.submit(now, job).ok_or(Refusal::QueueFull),
            Core::Fixed(timetable) => Ok(timetable.submit(now, &job)),
        }
    }

    /// Forgets a job whose client has gone: nothing that would be due after `now` comes of it. Its slot is free from
    /// the next step on; the step under way goes on with it. What was due by `now` still comes out.
    ///
    /// Returns whether there was anything to forget: a job that has ended is passed over.
    pub fn cancel(&mut self, now: Stamp, key: Key) -> bool {
        let now = self.see(now);
        self.catch_up();
        match &mut self.core {
            Core::Batching(replicas) => replicas.cancel(now, key),
            Core::Fixed(timetable) => timetable.cancel(key),
        }
    }

    /// Empties the prefix caches at `now`. Prompts that are being computed enter them when they are done.
    pub fn forget_prefixes(&mut self, now: Stamp) {
        self.see(now);
        self.catch_up();
        if let Core::Batching(replicas) = &mut self.core {
            replicas.forget_prefixes();
        }
    }

    /// When [`Server::advance`] has something to do next; `Stamp::MAX` if nothing is in flight. A submission or a
    /// cancellation may change it. It may be early: a step may end of which nothing comes out.
    #[inline]
    #[must_use]
    pub fn next_wakeup(&self) -> Stamp {
        if let Some(emission) = self.early.emissions.get(self.early.taken) {
            return emission.due;
        }
        self.core.next_due()
    }

    /// Appends what is due by `now`, in order, to `emissions`.
    ///
    /// One call gives 64 emissions and the rest of a step at most, so look at [`Server::next_wakeup`] again.
    pub fn advance(&mut self, now: Stamp, emissions: &mut Vec<Emission>) {
        let now = self.see(now);
        let enough = emissions.len() + BATCH;
        self.early.hand_out(enough, emissions);
        self.core.run(now, enough, emissions);
    }

    /// What it is doing, as of the last call that carried the time.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        match &self.core {
            Core::Batching(replicas) => replicas.gauges(),
            Core::Fixed(timetable) => Gauges { running: timetable.in_flight(), ..Gauges::default() },
        }
    }

    /// The replica, from 0, that serves or served a job of this server.
    #[must_use]
    pub fn replica(&self, key: Key) -> usize {
        match &self.core {
            Core::Batching(replicas) => replicas.replica(key),
            Core::Fixed(_) => 0,
        }
    }

    /// Time does not run backwards.
    fn see(&mut self, now: Stamp) -> Stamp {
        self.now = self.now.max(now);
        self.now
    }

    /// Does what was to be done by now; what comes out is kept.
    fn catch_up(&mut self) {
        self.core.run(self.now, usize::MAX, &mut self.early.emissions);
    }
}

impl Core {
    #[inline]
    fn next_due(&self) -> Stamp {
        match self {
            Core::Batching(replicas) => replicas.next_due(),
            Core::Fixed(timetable) => timetable.next_due(),
        }
    }

    /// Whether it matters to a new job which others are in flight.
    fn depends_on_others(&self) -> bool {
        match self {
            Core::Batching(_) => true,
            Core::Fixed(timetable) => timetable.counts_jobs(),
        }
    }

    /// Appends what is due by `now`, in order, until `out` has `enough` emissions.
    fn run(&mut self, now: Stamp, enough: usize, out: &mut Vec<Emission>) {
        match self {
            Core::Batching(replicas) => replicas.run(now, enough, out),
            Core::Fixed(timetable) => timetable.run(now, enough, out),
        }
    }
}

impl Early {
    /// Moves emissions until `out` has `enough`.
    fn hand_out(&mut self, enough: usize, out: &mut Vec<Emission>) {
        let end = self.emissions.len().min(self.taken + enough.saturating_sub(out.len()));
        out.extend_from_slice(&self.emissions[self.taken..end]);
        self.taken = end;
        if end == self.emissions.len() {
            self.emissions.clear();
            self.taken = 0;
        }
    }
}
