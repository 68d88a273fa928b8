//! What all threads of a server share: the settings, counters of whole requests, the books and the wish to stop.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::ServerConfig;

use super::Settings;
use super::ask::Terms;
use super::generation::Dress;
use super::meters::Meters;
use super::truth::Truth;
use crate::sys::clock::RunClock;
use crate::time::Stamp;

/// Shared by all threads; touched once per request, never per event, but for a look at the stop flag and the thread's
/// own book.
#[derive(Debug)]
pub(super) struct House {
    pub(super) settings: Settings,
    pub(super) clock: RunClock,
    pub(super) tls: Option<Arc<ServerConfig>>,
    model_json: Arc<str>,
    block_tokens: u32,
    /// One for each thread. Its owner takes the lock per event, where nobody else wants it; others take it when they
    /// are asked for the truth.
    books: Vec<Mutex<Book>>,
    /// Generation requests so far.
    requests: AtomicU64,
    in_flight: Level,
    connections: Level,
    stopping: AtomicBool,
}

/// What one thread writes down.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) truth: Truth,
    pub(super) meters: Meters,
}

/// How many there are, and were at most.
#[derive(Debug, Default)]
pub(super) struct Level {
    now: AtomicU64,
    most: AtomicU64,
}

impl Level {
    fn up(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn down(&self) {
        self.now.fetch_sub(1, Ordering::Relaxed);
    }

    fn read(&self, restart: bool) -> (u64, u64) {
        let now = self.now.load(Ordering::Relaxed);
        let most = match restart {
            true => self.most.swap(now, Ordering::Relaxed),
            false => self.most.load(Ordering::Relaxed),
        };
        (now, most)
    }
}

impl House {
    pub(super) fn new(settings: Settings, tls: Option<Arc<ServerConfig>>, threads: usize) -> House {
        let model_json = serde_json::Value::from(settings.model.as_str()).to_string().into();
        let book = || Mutex::new(Book { truth: Truth::new(&settings), meters: Meters::default() });
        let block_tokens = settings.model_settings().block_tokens();
        House {
            block_tokens,
            books: (0..threads).map(|_| book()).collect(),
            settings,
            clock: RunClock::start(),
            tls,
            model_json,
            requests: AtomicU64::new(0),
            in_flight: Level::default(),
            connections: Level::default(),
            stopping: AtomicBool::new(false),
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
        for thread in 0..self.books.len() {
            let mut book = self.book(thread);
            if restart {
                // Added up after the lock is gone: the thread is not kept waiting.
                let part = std::mem::replace(&mut book.truth, Truth::new(&self.settings));
                drop(book);
                sum.add(&part);
            } else {
                sum.add(&book.truth);
            }
        }
        (sum.in_flight, sum.in_flight_max) = self.in_flight.read(restart);
        sum.connections_max = self.connections.read(restart).1;
        sum
    }

    /// The page of `/metrics`.
    pub(super) fn exposition(&self) -> String {
        let mut sum = Meters::default();
        for thread in 0..self.books.len() {
            sum.add(&self.book(thread).meters);
        }
        sum.gauges.cache_usage /= self.books.len().max(1) as f64;
        sum.exposition(&self.settings.model)
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

    pub(super) fn dress(&self) -> Dress {
        let Settings { role, late_head, usage, .. } = self.settings;
        Dress { role, late_head, usage }
    }

    /// Tokens of a block of the model's prefix cache; 0 without one.
    pub(super) fn block_tokens(&self) -> u32 {
        self.block_tokens
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
        let house = House::new(Settings::default(), None, 3);
        (0..3).for_each(|thread| house.book(thread).truth.events = 5);
        house.on_request();
        assert_eq!((house.truth(false).events, house.truth(true).events), (15, 15));
        let after = house.truth(false);
        assert_eq!((after.events, after.in_flight, after.in_flight_max), (0, 1, 1));
    }
}
