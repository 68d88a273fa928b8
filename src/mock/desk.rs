//! What all connections of a thread share: its model, its book, its buffers.

use std::io;
use std::sync::{Arc, MutexGuard};

use super::account::{Account, Ending};
use super::ask::Ask;
use super::generation::Bytes;
use super::house::{Book, House};
use crate::model::Server;
use crate::sys::clock::RunClock;

/// What all connections of a thread share.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) house: Arc<House>,
    /// Number of the thread.
    pub(super) thread: usize,
    pub(super) clock: RunClock,
    pub(super) model: Server,
    /// Bytes of the event at hand.
    pub(super) bytes: Bytes,
    /// Where sockets are read into.
    pub(super) buffer: Box<[u8]>,
}

impl Desk {
    /// # Errors
    /// The model's settings are impossible.
    pub(super) fn new(house: Arc<House>, thread: usize) -> io::Result<Desk> {
        let now = house.clock.now();
        Ok(Desk {
            thread,
            clock: house.clock,
            model: Server::new(&house.settings.model_settings(), now).map_err(io::Error::other)?,
            house,
            bytes: Bytes::default(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
        })
    }

    /// The thread's own book.
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.house.book(self.thread)
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
        drop(book);
        self.house.on_request_end();
    }
}

const BUFFER: usize = 64 * 1024;
