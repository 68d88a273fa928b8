//! An epoll descriptor and the events that it gives.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::Timespec;
use rustix::event::epoll;
use rustix::event::epoll::{CreateFlags, EventData, EventFlags};

/// What to wait for on a descriptor. A broken connection always wakes, and the end of the peer's data wakes whoever
/// reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Bytes to read, told at each look while there are any (level-triggered).
    Read,
    /// Bytes to read, told once when they have come (edge-triggered). The kernel does not look at the descriptor again at the
    /// next wait, 2 % of what an event costs, and whoever is told must read on until less comes than there is room
    /// for, and to the end where the peer [has ended](Ready::ended); or have it told again by [`Epoll::modify`].
    NewRead,
    /// Room to write, and bytes to read.
    ReadWrite,
    /// Room to write.
    Write,
}

/// One ready descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token under which the descriptor was added.
    pub token: u64,
    /// Bytes, the end of the data, or an error can be read.
    pub readable: bool,
    /// Bytes can be written (or an error has to be fetched).
    pub writable: bool,
    /// The peer has ended its side or the connection is broken, which the last read will tell: nothing further comes.
    pub ended: bool,
}

/// An epoll instance.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<epoll::Event>,
    /// A wait has fetched events that no poll has given yet.
    waited: bool,
}

impl Epoll {
    /// A new instance that gives at most `batch` events at once.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new(batch: usize) -> io::Result<Epoll> {
        let fd = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Epoll { fd, events: Vec::with_capacity(batch), waited: false })
    }

    /// A second descriptor of the same instance, to be waited on by the runtime.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn duplicate(&self) -> io::Result<OwnedFd> {
        self.fd.try_clone()
    }

    /// Starts watching `source`.
    ///
    /// # Errors
    /// The descriptor cannot be watched, or the system's limit on watches is reached.
    pub fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.fd, source, EventData::new_u64(token), flags(interest))?)
    }

    /// Changes what is watched.
    ///
    /// # Errors
    /// `source` is not being watched.
    pub fn modify(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.fd, source, EventData::new_u64(token), flags(interest))?)
    }

    /// Stops watching `source`. Closing the descriptor does the same.
    ///
    /// # Errors
    /// `source` is not being watched.
    pub fn remove(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, source)?)
    }

    /// Fetches what is ready now, without waiting, and gives the number of events. After [`Epoll::wait`] these are what it
    /// has fetched, without a call.
    ///
    /// # Errors
    /// None in practice: an interrupted call is answered with 0.
    pub fn poll(&mut self) -> io::Result<usize> {
        if !std::mem::take(&mut self.waited) {
            self.fetch(Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        }
        Ok(self.events.len())
    }

    /// Blocks the thread until something is ready, or the call is interrupted. The next [`Epoll::poll`] gives what it was.
    ///
    /// # Errors
    /// None in practice.
    pub fn wait(&mut self) -> io::Result<()> {
        self.fetch(None)?;
        self.waited = true;
        Ok(())
    }

    fn fetch(&mut self, timeout: Option<&Timespec>) -> io::Result<()> {
        self.events.clear();
        match epoll::wait(&self.fd, rustix::buffer::spare_capacity(&mut self.events), timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Event number `place` of the last [`Epoll::poll`].
    #[must_use]
    pub fn ready(&self, place: usize) -> Option<Ready> {
        let event = self.events.get(place)?;
        let flags = event.flags;
        let broken = flags.intersects(EventFlags::ERR | EventFlags::HUP);
        let ended = broken || flags.contains(EventFlags::RDHUP);
        Some(Ready {
            token: event.data.u64(),
            readable: ended || flags.contains(EventFlags::IN),
            writable: broken || flags.contains(EventFlags::OUT),
            ended,
        })
    }
}

impl fmt::Debug for Epoll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoll").field("fd", &self.fd).field("ready", &self.events.len()).finish()
    }
}

fn flags(interest: Interest) -> EventFlags {
    let read = EventFlags::IN | EventFlags::RDHUP;
    match interest {
        Interest::Read => read,
        Interest::NewRead => read | EventFlags::ET,
        Interest::ReadWrite => read | EventFlags::OUT,
        Interest::Write => EventFlags::OUT,
    }
}
