//! A timer as a descriptor.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A one-shot timer on `CLOCK_MONOTONIC`; its descriptor becomes readable when it expires.
#[derive(Debug)]
pub struct TimerFd {
    fd: OwnedFd,
}

impl TimerFd {
    /// A timer that is not armed.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new() -> io::Result<TimerFd> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(TimerFd { fd: timerfd_create(TimerfdClockId::Monotonic, flags)? })
    }

    /// Arms it to expire after `delay` (at least 1 ns: zero would disarm it).
    ///
    /// # Errors
    /// None in practice.
    pub fn arm(&self, delay: Duration) -> io::Result<()> {
        let delay = delay.max(Duration::from_nanos(1));
        let it_value = Timespec {
            tv_sec: i64::try_from(delay.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(delay.subsec_nanos()),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    /// Takes the expiry, so that the descriptor is no longer readable.
    pub fn take(&self) {
        let mut count = [0; 8];
        // Nothing to do on an error: an expiry that was taken already leaves the descriptor unreadable, as wanted.
        let _ = rustix::io::read(&self.fd, &mut count);
    }
}

impl AsFd for TimerFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
