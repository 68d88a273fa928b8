//! What all connections of a thread share: its way to the model, its book, its buffers.

use std::sync::{Arc, MutexGuard};

use super::account::{Account, Ending};
use super::ask::Ask;
use super::backend::Access;
use super::generation::Bytes;
use super::house::{Book, House};
use crate::sys::clock::RunClock;
use crate::sys::waker::Waker;

/// What all connections of a thread share.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) house: Arc<House>,
    /// Number of the thread.
    pub(super) thread: usize,
    pub(super) clock: RunClock,
    pub(super) model: Access,
    /// Bytes of the event at hand.
    pub(super) bytes: Bytes,
    /// Where sockets are read into.
    pub(super) buffer: Box<[u8]>,
}

impl Desk {
    /// The desk of a thread, which `waker` wakes.
    pub(super) fn new(house: Arc<House>, thread: usize, waker: Arc<Waker>) -> Desk {
        Desk {
            thread,
            clock: house.clock,
            model: house.access(thread, waker),
            house,
            bytes: Bytes::default(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
        }
    }

    /// The thread's own book.
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.house.book(self.thread)
    }

    /// A generation request is complete: its number.
    pub(super) fn open(&self) -> u64 {
        let mut book = self.book();
        book.truth.generations += 1;
        // Within the lock, as its end: whoever holds all books sees one moment.
        self.house.on_request()
    }

    /// Closes the account of a request.
    pub(super) fn settle(&self, mut account: Account, ending: Ending, ask: Option<&Ask>) {
        account.ending = ending;
        account.ended = self.clock.now();
        let mut book = self.book();
        book.truth.on_end(&account);
        if let Some(ask) = ask {
            book.meters.on_end(&account, ask.finish);
        }
        self.house.on_request_end();
    }
}

const BUFFER: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::Settings;
    use crate::time::Stamp;

    #[test]
    fn a_truth_of_all_threads_is_of_one_moment() {
        const REQUESTS: u64 = 20_000;
        let house = Arc::new(House::new(Settings::default(), None, 2).unwrap());
        let desk = |thread| Desk::new(Arc::clone(&house), thread, Arc::new(Waker::new().unwrap()));
        std::thread::scope(|scope| {
            for desk in [desk(0), desk(1)] {
                scope.spawn(move || {
                    for _ in 0..REQUESTS {
                        let number = desk.open();
                        desk.settle(Account::new(number, None, Stamp::ZERO), Ending::Refused, None);
                    }
                });
            }
            let mut ended = 0;
            while ended < 2 * REQUESTS {
                let truth = house.truth(false);
                ended = truth.ended(Ending::Refused);
                assert_eq!(truth.generations, ended + truth.in_flight);
                assert!((truth.in_flight..=2).contains(&truth.in_flight_max));
            }
        });
        assert_eq!(house.truth(false).in_flight, 0);
    }
}
