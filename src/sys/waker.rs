//! A descriptor by which one thread wakes another out of its epoll.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An eventfd: readable after [`Waker::wake`] until [`Waker::take`].
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
}

impl Waker {
    /// A waker that has not been woken.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> io::Result<Waker> {
        Ok(Waker { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Makes the descriptor readable.
    pub fn wake(&self) {
        // The only failure is a full counter, in which case the descriptor is readable already.
        let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Takes all wakes so far.
    pub fn take(&self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.fd, &mut count);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
