//! Waiting: until descriptors are ready, and until a stamp, more finely than the runtime's timer.
//!
//! A [`Pace`] is what one thread of a shard or of the mock server waits on. All its descriptors lie in one
//! epoll, so a read costs what it costs under plain epoll. The thread sleeps in that epoll itself; on the io_uring driver it
//! does while bytes come, and in the runtime, which waits for that descriptor alone, once a whole sleep has brought none. Time is a timerfd in the same epoll, armed [`LEAD`] early; the rest is spun
//! away by polling, so that bytes go on being received while a send is due. Nothing spins when nothing is due.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use monoio::net::TcpStream;
use monoio::{IoUringDriver, LegacyDriver, Runtime, RuntimeBuilder};

use crate::plan::Driver;
use crate::sys::clock::RunClock;
use crate::sys::epoll::{Epoll, Interest, Ready};
use crate::sys::timerfd::TimerFd;
use crate::sys::waker::Waker;
use crate::time::Stamp;

/// How early the timer is armed. A wake from idle takes 30 to 50 us, 100 us at p99; the rest of the lead is spun.
pub const LEAD: Duration = Duration::from_micros(100);

/// How to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Sleep until something is ready or nearly due.
    #[default]
    Sleep,
    /// Poll all the time: the core is busy, wake-ups cost nothing.
    Busy,
}

/// The kernel interface that a runtime waits on in fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// epoll.
    Epoll,
    /// io_uring.
    IoUring,
}

/// Runs `start`'s future on the calling thread, in a runtime of its own on the wished driver. `start` learns which
/// interface it became: [`Driver::Auto`] is epoll, which costs less per event (`tools/bench`, `cpu`).
///
/// The runtime's timer is off: time is a matter of [`Pace`].
///
/// # Errors
/// The kernel refuses the wished interface, or the system has no descriptor left.
pub fn block_on<F: Future>(driver: Driver, start: impl FnOnce(Kernel) -> F) -> io::Result<F::Output> {
    match driver {
        // May be forbidden by the kernel or a container, or locked memory or descriptors are short.
        Driver::IoUring => Ok(ring()?.block_on(start(Kernel::IoUring))),
        Driver::Auto | Driver::Epoll => {
            Ok(RuntimeBuilder::<LegacyDriver>::new().build()?.block_on(start(Kernel::Epoll)))
        }
    }
}

/// A runtime on io_uring whose ring knows that one thread alone uses it and does the kernel's deferred work when it
/// asks: without that each completion may interrupt the thread. Kernels before 6.1 get a plain ring.
fn ring() -> io::Result<Runtime<IoUringDriver>> {
    let mut tuned = io_uring::IoUring::builder();
    tuned.setup_single_issuer().setup_defer_taskrun();
    let tuned = RuntimeBuilder::<IoUringDriver>::new().uring_builder(tuned).build();
    tuned.or_else(|_| RuntimeBuilder::<IoUringDriver>::new().build())
}

/// The waiting of one thread.
#[derive(Debug)]
pub struct Pace {
    epoll: Epoll,
    /// The epoll descriptor as the runtime sees it, where the runtime does the waiting. No socket call is ever made on it.
    gate: Option<TcpStream>,
    timer: TimerFd,
    waker: Arc<Waker>,
    clock: RunClock,
    mode: Mode,
    /// When the timer will expire; `Stamp::MAX` when it is not armed.
    armed: Stamp,
    /// A descriptor of others was ready since the last wait.
    heard: bool,
}

/// Tokens from here on are the pace's own.
const OWN_TOKENS: u64 = u64::MAX - 1;
const TIMER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;
/// Most events that [`Pace::poll`] gives at once.
pub const BATCH: usize = 256;

impl Pace {
    /// A pace for the calling thread, which must be inside a runtime on `kernel`.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub fn new(clock: RunClock, mode: Mode, kernel: Kernel) -> io::Result<Pace> {
        let epoll = Epoll::new(BATCH)?;
        let gate = match kernel {
            Kernel::Epoll => None,
            Kernel::IoUring => Some(TcpStream::from_std(std::net::TcpStream::from(epoll.duplicate()?))?),
        };
        let timer = TimerFd::new()?;
        let waker = Arc::new(Waker::new()?);
        epoll.add(&timer, TIMER, Interest::Read)?;
        epoll.add(&*waker, WAKER, Interest::Read)?;
        Ok(Pace { epoll, gate, timer, waker, clock, mode, armed: Stamp::MAX, heard: false })
    }

    /// The run's clock.
    #[must_use]
    pub fn clock(&self) -> &RunClock {
        &self.clock
    }

    /// By which another thread ends a wait of this one.
    #[must_use]
    pub fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    /// Starts watching `source` under `token` (below `u64::MAX - 1`).
    ///
    /// # Errors
    /// As [`Epoll::add`].
    pub fn add(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        debug_assert!(token < OWN_TOKENS);
        self.epoll.add(source, token, interest)
    }

    /// Changes what is watched.
    ///
    /// # Errors
    /// As [`Epoll::modify`].
    pub fn modify(&self, source: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.epoll.modify(source, token, interest)
    }

    /// Stops watching `source`. Closing the descriptor does the same.
    ///
    /// # Errors
    /// As [`Epoll::remove`].
    pub fn remove(&self, source: impl AsFd) -> io::Result<()> {
        self.epoll.remove(source)
    }

    /// Fetches what is ready, without waiting; the events are then read by [`Pace::ready`].
    ///
    /// # Errors
    /// As [`Epoll::poll`].
    #[inline]
    pub fn poll(&mut self) -> io::Result<usize> {
        self.epoll.poll()
    }

    /// The token of event number `place` of the last [`Pace::poll`], to make ready for it; `None` if there is no such event.
    #[inline]
    #[must_use]
    pub fn upcoming(&self, place: usize) -> Option<u64> {
        self.epoll.ready(place).map(|ready| ready.token)
    }

    /// Event number `place` of the last [`Pace::poll`]; `None` for the pace's own timer and waker.
    #[inline]
    pub fn ready(&mut self, place: usize) -> Option<Ready> {
        let ready = self.epoll.ready(place)?;
        match ready.token {
            TIMER => {
                self.timer.take();
                self.armed = Stamp::MAX;
                None
            }
            WAKER => {
                self.waker.take();
                None
            }
            _ => {
                self.heard = true;
                Some(ready)
            }
        }
    }

    /// Sleeps until a descriptor is ready, the waker is used, or `until` is less than [`LEAD`] away. Returns at once
    /// if it is so already: the caller goes on polling and so spins the rest of the lead away.
    ///
    /// # Errors
    /// As [`Pace::prepare`] and [`Pace::wait`].
    pub async fn idle(&mut self, until: Stamp) -> io::Result<()> {
        if self.prepare(until)? {
            self.wait().await?;
        }
        Ok(())
    }

    /// Sees to it that [`Pace::wait`] ends [`LEAD`] before `until` at the latest; `false` if it is not to be called, since
    /// that is now, or one does not sleep at all.
    ///
    /// # Errors
    /// The timer could not be armed.
    pub fn prepare(&mut self, until: Stamp) -> io::Result<bool> {
        if self.mode == Mode::Busy {
            return Ok(false);
        }
        if until != Stamp::MAX {
            let wake = until - LEAD;
            let now = self.clock.now();
            if wake <= now {
                return Ok(false);
            }
            // A timer that expires earlier than needed is left alone: it costs one wake, arming costs a call.
            if wake < self.armed {
                self.timer.arm(wake - now)?;
                self.armed = wake;
            }
        }
        Ok(true)
    }

    /// Whether [`Pace::wait`] ends [`LEAD`] before `until` at the latest: no longer so once the timer has fired, which it may
    /// have done for an earlier time.
    #[inline]
    #[must_use]
    pub fn is_prepared(&self, until: Stamp) -> bool {
        until == Stamp::MAX || self.armed <= until - LEAD
    }

    /// Sleeps until a descriptor is ready, the waker is used, or the time that was [prepared](Pace::prepare) for is there.
    ///
    /// # Errors
    /// The wait failed.
    #[inline]
    pub async fn wait(&mut self) -> io::Result<()> {
        let heard = std::mem::take(&mut self.heard);
        match &self.gate {
            Some(gate) if !heard => gate.readable(false).await,
            // Nothing else runs on this thread, and a runtime that waited for this epoll in one of its own, or in a ring, would
            // wake twice for each wake: two more calls, up to a quarter of an event's cost (`tools/bench`, `cpu`).
            _ => self.epoll.wait(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_that_has_fired_is_prepared_for_nothing() {
        let fired = block_on(Driver::Epoll, |kernel| async move {
            let mut pace = Pace::new(RunClock::start(), Mode::Sleep, kernel).unwrap();
            let soon = pace.clock().now() + Duration::from_millis(50);
            let late = soon + Duration::from_secs(100);
            assert!(!pace.is_prepared(late));
            assert!(pace.prepare(soon).unwrap());
            // The timer is left as it is, and fires early for this one.
            assert!(pace.prepare(late).unwrap());
            assert!(pace.is_prepared(soon) && pace.is_prepared(late));
            pace.wait().await.unwrap();
            assert_eq!((pace.poll().unwrap(), pace.ready(0)), (1, None));
            assert!(pace.is_prepared(Stamp::MAX));
            pace.is_prepared(late)
        });
        assert!(!fired.unwrap());
    }
}
