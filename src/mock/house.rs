//! What all threads of a server share: the settings, the model, counters of whole requests, the books and the wish to
//! stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustls::ServerConfig;

use super::Settings;
use super::ask::Terms;
use super::backend::{Access, Backend};
use super::generation::Dress;
use super::meters::Meters;
use super::reply::ServedBy;
use super::truth::Truth;
use crate::model::{Gauges, Server};
use crate::plan;
use crate::sys::clock::RunClock;
use crate::sys::waker::Waker;
use crate::time::Stamp;

/// Shared by all threads; touched once per request, never per event, but for a look at the stop flag and the thread's
/// own book.
#[derive(Debug)]
pub(super) struct House {
    pub(super) settings: Settings,
    pub(super) clock: RunClock,
    pub(super) tls: Option<Arc<ServerConfig>>,
    model_json: Arc<str>,
    /// One for all threads where requests slow each other down, else one for each.
    backends: Vec<Arc<Backend>>,
    /// One for each thread. Its owner takes the lock per event, where nobody else wants it; others take it when they
    /// are asked for the truth.
    books: Vec<Mutex<Book>>,
    /// Generation requests so far.
    requests: AtomicU64,
    in_flight: Level,
    connections: Level,
    stopping: AtomicBool,
    /// End of the cold start.
    ready: Stamp,
}

/// What one thread writes down.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) truth: Truth,
    pub(super) meters: Meters,
}

/// How many there are, in the lower half, and were at most, in the upper: one word, so that no thread sees or leaves
/// the one without the other.
#[derive(Debug, Default)]
pub(super) struct Level(AtomicU64);

impl Level {
    fn up(&self) {
        self.update(|now, most| (now + 1, most.max(now + 1)));
    }

    fn down(&self) {
        self.update(|now, most| (now - 1, most));
    }

    /// How many there are and were at most; with `restart`, the most begins anew.
    fn read(&self, restart: bool) -> (u64, u64) {
        self.update(|now, most| (now, if restart { now } else { most }))
    }

    /// Gives what was there before.
    fn update(&self, change: impl Fn(u64, u64) -> (u64, u64)) -> (u64, u64) {
        let parts = |word: u64| (word & u64::from(u32::MAX), word >> 32);
        let change = |word| {
            let (now, most) = parts(word);
            let (now, most) = change(now, most);
            Some(most << 32 | now)
        };
        // It always has a next value.
        parts(self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change).unwrap_or_default())
    }
}

impl House {
    /// # Errors
    /// The model's settings are impossible.
    pub(super) fn new(
        settings: Settings,
        tls: Option<Arc<ServerConfig>>,
        threads: usize,
    ) -> Result<House, plan::Error> {
        let model_json = serde_json::Value::from(settings.model.as_str()).to_string().into();
        let book = || Mutex::new(Book { truth: Truth::new(&settings), meters: Meters::default() });
        let clock = RunClock::start();
        let start = clock.now();
        let (backends, workers) = if settings.serving.is_shared() { (1, threads) } else { (threads, 1) };
        // A time that no clock reaches is one that never comes.
        let cold = Duration::try_from_secs_f64(settings.serving.cold_start_s).unwrap_or(Duration::MAX);
        let backend = |_| Ok(Arc::new(Backend::new(Server::new(&settings.serving, start)?, workers)));
        Ok(House {
            backends: (0..backends).map(backend).collect::<Result<_, plan::Error>>()?,
            books: (0..threads).map(|_| book()).collect(),
            settings,
            clock,
            tls,
            model_json,
            requests: AtomicU64::new(0),
            in_flight: Level::default(),
            connections: Level::default(),
            stopping: AtomicBool::new(false),
            ready: start + cold,
        })
    }

    /// How long the cold start goes on; `None` once it is over.
    pub(super) fn cold_for(&self, now: Stamp) -> Option<Duration> {
        (now < self.ready).then(|| self.ready - now)
    }

    /// The way of a thread to its model. What comes out for it sooner than it had thought is told by `waker`.
    pub(super) fn access(&self, thread: usize, waker: Arc<Waker>) -> Access {
        match &self.backends[..] {
            [shared] => Access::new(Arc::clone(shared), thread, waker),
            own => Access::new(Arc::clone(&own[thread]), 0, waker),
        }
    }

    /// A generation request is complete: its number.
    pub(super) fn on_request(&self) -> u64 {
        self.in_flight.up();
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// A generation request is over.
    pub(super) fn on_request_end(&self) {
        self.in_flight.down();
    }

    pub(super) fn on_connection(&self) {
        self.connections.up();
    }

    pub(super) fn on_connection_end(&self) {
        self.connections.down();
    }

    /// The book of a thread.
    pub(super) fn book(&self, thread: usize) -> MutexGuard<'_, Book> {
        // A thread that panicked is reported when the server stops; its counts stand.
        self.books[thread].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was served so far; with `restart`, counting begins anew.
    pub(super) fn truth(&self, restart: bool) -> Truth {
        let mut sum = Truth::new(&self.settings);
        let mut parts = Vec::new();
        // All books at once: the parts of a sum are of one moment. Nobody holds one and waits for another.
        let mut books: Vec<_> = (0..self.books.len()).map(|thread| self.book(thread)).collect();
        for book in &mut books {
            if restart {
                // Added up after the locks are gone: the threads are not kept waiting.
                parts.push(std::mem::replace(&mut book.truth, Truth::new(&self.settings)));
            } else {
                sum.add(&book.truth);
            }
        }
        (sum.in_flight, sum.in_flight_max) = self.in_flight.read(restart);
        sum.connections_max = self.connections.read(restart).1;
        drop(books);
        parts.iter().for_each(|part| sum.add(part));
        sum
    }

    /// The page of `/metrics`.
    pub(super) fn exposition(&self) -> String {
        let mut sum = Meters::default();
        for thread in 0..self.books.len() {
            sum.add(&self.book(thread).meters);
        }
        sum.exposition(&self.settings.model, &self.gauges())
    }

    /// What the model is doing; the sum, where each thread has its own.
    fn gauges(&self) -> Gauges {
        match &self.backends[..] {
            [shared] => shared.gauges(),
            own => {
                // Fixed times, which have neither a queue nor a cache.
                let running = own.iter().map(|backend| backend.gauges().running).sum();
                Gauges { running, ..Gauges::default() }
            }
        }
    }

    pub(super) fn model_json(&self) -> Arc<str> {
        Arc::clone(&self.model_json)
    }

    /// The wall clock at `now`, s since 1970.
    pub(super) fn wall_s(&self, now: Stamp) -> u64 {
        self.clock.epoch_wall_ns().saturating_add(now.as_nanos()) / 1_000_000_000
    }

    pub(super) fn terms(&self) -> Terms<'_> {
        self.settings.terms()
    }

    pub(super) fn served_by(&self) -> ServedBy {
        self.settings.served_by
    }

    pub(super) fn dress(&self) -> Dress {
        let Settings { role, late_head, usage, .. } = self.settings;
        Dress { role, late_head, usage }
    }

    /// Tokens of a block of the model's prefix cache; 0 without one.
    pub(super) fn block_tokens(&self) -> u32 {
        self.settings.serving.block_tokens()
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_knows_its_most_and_restarts_where_it_stands() {
        let level = Level::default();
        [(); 3].iter().for_each(|()| level.up());
        level.down();
        assert_eq!(level.read(true), (2, 3));
        assert_eq!(level.read(false), (2, 2));
    }

    #[test]
    fn the_truth_of_all_threads_begins_anew_on_wish() {
        let house = House::new(Settings::default(), None, 3).unwrap();
        (0..3).for_each(|thread| house.book(thread).truth.events = 5);
        house.on_request();
        assert_eq!((house.truth(false).events, house.truth(true).events), (15, 15));
        let after = house.truth(false);
        assert_eq!((after.events, after.in_flight, after.in_flight_max), (0, 1, 1));
    }
}
