//! One model between several workers. Pure: time is an argument, and nothing here waits, locks or wakes.
//!
//! A worker gives its jobs to the model and gets its own tokens out of it. Whoever looks at the model advances it, and
//! lays what comes out for others into their outboxes. Each worker has a timer, the stamp at which it is to look
//! next. The law that makes this enough:
//!
//! *No token of a worker is due before the worker's timer.*
//!
//! A timer is set, whenever its worker calls, to the next wake-up of the whole model; no token of anybody is due
//! before that as things stand. Until the worker calls again others may call, and what they can change is this:
//!
//! - *They advance the model.* Steps with jobs of the worker's end at their stamps, each at the timer or later, and
//!   the steps that follow end later still. Jobs that wait for a slot, prompts that take several steps, caches and the noise of the next step
//!   all move at such an end only. What comes out for the worker lies in its outbox and was due at its timer or later.
//! - *They submit.* A job that comes to an idle replica begins a step there, which may end before the timer; but an
//!   idle replica has no job of the worker's, or it would not be idle, and gets one by the worker's own call alone. A
//!   job that comes in time for a step that has not begun (a freeze holds it up, or it begins at this very stamp)
//!   makes that step longer. The router, a full queue and a cold start decide where a job goes and whether it is
//!   taken, not when another one's tokens are due. A submission that is refused takes back what it had submitted
//!   before, which leaves longer steps as they were.
//! - *They cancel.* A step under way goes on as it is. A step that has not begun goes without the job: **it may end
//!   before the timer, and may take in a waiting job of the worker's**. This is the only change that brings anything
//!   forward, so after it the timers of the others are put forward too, and they must be woken
//!   ([`Shared::cancel`] names them).
//!
//! Fixed times move by no call of others at all, once a job has them.

#[cfg(test)]
pub(super) mod tests;

use super::jobs::{self, Wish};
use crate::model::{Emission, Gauges, Key, Refusal, Server};
use crate::time::Stamp;

/// A model and what lies ready for each worker.
#[derive(Debug)]
pub(super) struct Shared {
    server: Server,
    workers: Vec<Worker>,
    /// The latest stamp of any call: the workers' clock is one, but who reads it first may call last.
    now: Stamp,
    /// What came out and is being dealt.
    emissions: Vec<Emission>,
}

/// What belongs to one worker.
#[derive(Debug)]
struct Worker {
    /// Its emissions, in order, that others have brought about.
    outbox: Vec<Emission>,
    /// Its jobs in the model that were neither finished nor cancelled.
    jobs: u64,
    timer: Stamp,
}

impl Shared {
    pub(super) fn new(server: Server, workers: usize) -> Shared {
        let worker = || Worker { outbox: Vec::new(), jobs: 0, timer: Stamp::MAX };
        let workers = (0..workers).map(|_| worker()).collect();
        Shared { server, workers, now: Stamp::ZERO, emissions: Vec::new() }
    }

    /// When a worker is to look; `Stamp::MAX` if there is nothing to wait for. What is due is out by then, so it may
    /// look late, but not early.
    #[inline]
    pub(super) fn timer(&self, worker: usize) -> Stamp {
        self.workers[worker].timer
    }

    /// Gives the choices of a request to the model: all of them or none.
    ///
    /// # Errors
    /// As [`Server::submit`].
    pub(super) fn submit(&mut self, worker: usize, now: Stamp, wish: Wish<'_>) -> Result<Vec<Key>, Refusal> {
        self.now = self.now.max(now);
        let jobs = jobs::submit(&mut self.server, self.now, worker as u32, wish);
        self.workers[worker].jobs += jobs.as_ref().map_or(0, Vec::len) as u64;
        self.set_timer(worker);
        jobs
    }

    /// Forgets jobs of a worker, those that have ended excepted. `sooner` is told of each other worker whose timer is
    /// put forward.
    pub(super) fn cancel(
        &mut self,
        worker: usize,
        now: Stamp,
        jobs: &[Key],
        mut sooner: impl FnMut(usize, Stamp),
    ) {
        self.now = self.now.max(now);
        let found = jobs.iter().filter(|job| self.server.cancel(self.now, **job)).count();
        self.workers[worker].jobs -= found as u64;
        // What was due before still comes out, and the model has computed it by now.
        while self.server.next_wakeup() <= self.now {
            self.advance();
        }
        self.set_timer(worker);
        if found == 0 {
            return;
        }
        let next = self.server.next_wakeup();
        for (place, other) in self.workers.iter_mut().enumerate() {
            if place != worker && other.jobs > 0 && next < other.timer {
                other.timer = next;
                sooner(place, next);
            }
        }
    }

    /// Appends what a worker is due by `now`, in order, to `out`: what others have laid out for it, or else a batch of
    /// what the model has by then. Its timer says whether there is more.
    pub(super) fn look(&mut self, worker: usize, now: Stamp, out: &mut Vec<Emission>) {
        self.now = self.now.max(now);
        if self.workers[worker].outbox.is_empty() {
            self.advance();
        }
        out.append(&mut self.workers[worker].outbox);
        self.set_timer(worker);
    }

    /// What the model is doing, as of the last call that carried the time.
    pub(super) fn gauges(&self) -> Gauges {
        self.server.gauges()
    }

    fn advance(&mut self) {
        self.server.advance(self.now, &mut self.emissions);
        for emission in self.emissions.drain(..) {
            let (worker, emission) = jobs::addressed(emission);
            let worker = &mut self.workers[worker];
            worker.jobs -= u64::from(emission.last);
            worker.outbox.push(emission);
        }
    }

    /// A worker without jobs waits for nothing, however busy others are.
    fn set_timer(&mut self, worker: usize) {
        let next = self.server.next_wakeup();
        let worker = &mut self.workers[worker];
        worker.timer = match worker.outbox.first() {
            Some(emission) => emission.due,
            None if worker.jobs > 0 => next,
            None => Stamp::MAX,
        };
    }
}
