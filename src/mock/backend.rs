//! The model behind the threads: a lock around what they share, and a bell for each of them.
//!
//! Sockets, requests and writing are where the processor's time goes, and belong to one thread each. The model takes a
//! small part of it and is where the threads meet. Who holds the lock steps the model once, by a batch of tokens at
//! most or the rest of a step, and never waits, sends or writes anything down meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::jobs::Wish;
use super::shared::Shared;
use crate::model::{Emission, Gauges, Key, Refusal, Server};
use crate::sys::waker::Waker;
use crate::time::Stamp;

/// A model that several threads may use.
#[derive(Debug)]
pub(super) struct Backend {
    shared: Mutex<Shared>,
    bells: Box<[Bell]>,
}

/// When a thread is to look, and how it is told that this is sooner than it had thought. On a cache line of its own:
/// each thread reads its own in every turn of its loop.
#[derive(Debug)]
#[repr(align(64))]
struct Bell {
    /// The thread's timer, ns. Written under the lock only.
    timer: AtomicU64,
    /// Absent until the thread serves.
    waker: OnceLock<Arc<Waker>>,
}

/// A thread's way to the model.
#[derive(Debug)]
pub(super) struct Access {
    backend: Arc<Backend>,
    worker: usize,
    /// What was fetched and is being handed out.
    hand: Vec<Emission>,
    /// How many of it have been handed out.
    given: usize,
}

impl Backend {
    /// A model for `workers` threads.
    pub(super) fn new(server: Server, workers: usize) -> Backend {
        let bell = |_| Bell { timer: AtomicU64::new(u64::MAX), waker: OnceLock::new() };
        Backend { shared: Mutex::new(Shared::new(server, workers)), bells: (0..workers).map(bell).collect() }
    }

    /// What the model is doing.
    pub(super) fn gauges(&self) -> Gauges {
        self.lock().gauges()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A thread that panicked is reported when the server stops; the model goes on for the others.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put_forward(&self, worker: usize, timer: Stamp) {
        self.set(worker, timer);
        if let Some(waker) = self.bells[worker].waker.get() {
            waker.wake();
        }
    }

    fn set(&self, worker: usize, timer: Stamp) {
        // The lock orders the writes; the waker's descriptor orders a read after being woken.
        self.bells[worker].timer.store(timer.as_nanos(), Ordering::Release);
    }
}

impl Access {
    /// The way of worker number `worker`, which is woken by `waker` when it has to look sooner.
    pub(super) fn new(backend: Arc<Backend>, worker: usize, waker: Arc<Waker>) -> Access {
        // A thread serves once.
        let _ = backend.bells[worker].waker.set(waker);
        Access { backend, worker, hand: Vec::new(), given: 0 }
    }

    /// When [`Access::look`] has something to do next; `Stamp::MAX` if there is nothing to wait for. Another thread may
    /// bring it forward; the waker says so.
    #[inline]
    pub(super) fn next_wakeup(&self) -> Stamp {
        match self.hand.get(self.given) {
            Some(emission) => emission.due,
            None => Stamp::from_nanos(self.backend.bells[self.worker].timer.load(Ordering::Acquire)),
        }
    }

    /// Fetches what is due by `now`, or a good part of it, to be had from [`Access::next`].
    pub(super) fn look(&mut self, now: Stamp) {
        if self.given < self.hand.len() || self.next_wakeup() > now {
            return;
        }
        self.hand.clear();
        self.given = 0;
        let mut shared = self.backend.lock();
        shared.look(self.worker, now, &mut self.hand);
        self.backend.set(self.worker, shared.timer(self.worker));
    }

    /// The next emission of those fetched.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Emission> {
        let emission = self.hand.get(self.given).copied()?;
        self.given += 1;
        Some(emission)
    }

    /// Gives the choices of a request that was complete at `now` to the model: all of them or none. Where another
    /// thread has moved the model on since, it counts as of then.
    ///
    /// # Errors
    /// As [`Server::submit`].
    pub(super) fn submit(&mut self, now: Stamp, wish: Wish<'_>) -> Result<Vec<Key>, Refusal> {
        let mut shared = self.backend.lock();
        let jobs = shared.submit(self.worker, now, wish);
        self.backend.set(self.worker, shared.timer(self.worker));
        jobs
    }

    /// Forgets jobs whose client has gone; those that have ended are passed over.
    pub(super) fn cancel(&mut self, now: Stamp, jobs: &[Key]) {
        let mut shared = self.backend.lock();
        shared.cancel(self.worker, now, jobs, |other, timer| self.backend.put_forward(other, timer));
        self.backend.set(self.worker, shared.timer(self.worker));
    }
}

#[cfg(test)]
mod tests {
    use super::super::shared::tests::{server, wish};
    use super::*;
    use crate::model::{Freeze, Job};
    use crate::sys::epoll::{Epoll, Interest};

    const AT: fn(u64) -> Stamp = Stamp::from_millis;

    /// The ways of two threads, and an epoll that watches their wakers under their numbers.
    fn two(freezes: Vec<Freeze>) -> ([Access; 2], Epoll) {
        let backend = Arc::new(Backend::new(server(freezes), 2));
        let epoll = Epoll::new(4).unwrap();
        let access = [0, 1].map(|worker| {
            let waker = Arc::new(Waker::new().unwrap());
            epoll.add(&*waker, worker as u64, Interest::Read).unwrap();
            Access::new(Arc::clone(&backend), worker, waker)
        });
        (access, epoll)
    }

    fn submit(access: &mut Access, ms: u64, tokens: (u32, u32)) -> Vec<Key> {
        let job = Job { prompt_tokens: tokens.0, output_tokens: tokens.1, ..Job::default() };
        wish(0, &job, |wish| access.submit(AT(ms), wish)).unwrap()
    }

    #[test]
    fn a_thread_is_woken_when_another_brings_its_tokens_forward() {
        let ([mut one, mut other], mut epoll) = two(vec![Freeze { at_s: 0.0, for_s: 0.1 }]);
        submit(&mut one, 1, (0, 1));
        submit(&mut other, 2, (50, 1));
        // It does not know of the other's prompt and need not: it looks too early once.
        assert_eq!((one.next_wakeup(), other.next_wakeup()), (AT(110), AT(160)));
        one.look(AT(110));
        assert_eq!((one.next(), one.next_wakeup()), (None, AT(160)));
        assert_eq!(epoll.poll().unwrap(), 0);

        let ([mut one, mut other], mut epoll) = two(vec![Freeze { at_s: 0.0, for_s: 0.1 }]);
        let long = submit(&mut other, 1, (50, 1));
        submit(&mut one, 2, (0, 1));
        assert_eq!(one.next_wakeup(), AT(160));
        other.cancel(AT(3), &long);
        assert_eq!((one.next_wakeup(), other.next_wakeup()), (AT(110), Stamp::MAX));
        assert_eq!((epoll.poll().unwrap(), epoll.ready(0).unwrap().token), (1, 0));
        one.look(AT(110));
        assert_eq!(one.next().map(|emission| emission.due), Some(AT(110)));
    }

    #[test]
    fn what_was_fetched_is_handed_out_before_more_is_fetched() {
        let ([mut one, _], _) = two(Vec::new());
        for ms in [0, 0, 1] {
            submit(&mut one, ms, (0, 2));
        }
        one.look(AT(9));
        assert_eq!(one.next(), None, "nothing is due");
        one.look(AT(50));
        assert_eq!(one.next().map(|emission| emission.due), Some(AT(10)));
        // The second of the step is as old as the first.
        assert_eq!(one.next_wakeup(), AT(10));
        one.look(AT(60));
        let rest: Vec<Stamp> = std::iter::from_fn(|| one.next()).map(|emission| emission.due).collect();
        assert_eq!(rest, [AT(10), AT(20), AT(20), AT(20), AT(30)]);
        assert_eq!(one.next_wakeup(), Stamp::MAX);
    }
}
