//! The run's clock: the processor's counter, calibrated against `CLOCK_MONOTONIC`.
//!
//! Reading the counter and converting it costs about 10 ns, against 25 ns for `clock_gettime`. Where the counter is
//! not a clock (frequency not constant, not synchronised between cores), `CLOCK_MONOTONIC` is read instead. Every
//! clock read of the program is in this file.
#![expect(unsafe_code, reason = "reading the counter register has no safe wrapper in the standard library")]

use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::receive::WallStamp;
use crate::time::Stamp;

/// What a [`RunClock`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The processor's counter: TSC on x86-64, `CNTVCT_EL0` on aarch64.
    Counter,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

/// The time line of one run. `Copy`: every shard gets the same one, so that their stamps compare.
#[derive(Clone, Copy, Debug)]
pub struct RunClock {
    source: Source,
    /// Counter value at the epoch.
    epoch_ticks: u64,
    /// `CLOCK_MONOTONIC` at the epoch, ns.
    epoch_monotonic_ns: u64,
    /// Wall clock at the epoch, ns since 1970.
    epoch_wall_ns: u64,
    /// Nanoseconds per tick, times 2^40.
    scale: u64,
}

const SCALE_BITS: u32 = 40;
/// The least time to calibrate over: the tightest of many brackets is wrong by some ns, which makes it about 1 ppm, and no
/// user notices it at start.
const CALIBRATION: Duration = Duration::from_millis(5);

/// The first look of this process at both clocks. Whatever calibrates the counter does so over the time since then, the
/// better the longer the process has lived.
static FIRST: OnceLock<Bracket> = OnceLock::new();

impl RunClock {
    /// Calibrates the counter (5 ms at most, nothing later in the life of a process) and starts the run's time line.
    #[must_use]
    pub fn start() -> RunClock {
        if !counter_is_a_clock() {
            return RunClock::with_scale(Source::Monotonic, 0, bracket());
        }
        let first = *FIRST.get_or_init(bracket);
        let past = Duration::from_nanos(monotonic_ns().saturating_sub(first.monotonic_ns));
        if past < CALIBRATION {
            std::thread::sleep(CALIBRATION - past);
        }
        let second = bracket();
        let ticks = second.ticks.wrapping_sub(first.ticks);
        let ns = second.monotonic_ns.saturating_sub(first.monotonic_ns);
        if ticks == 0 || ns == 0 {
            return RunClock::with_scale(Source::Monotonic, 0, second);
        }
        let scale = u64::try_from((u128::from(ns) << SCALE_BITS) / u128::from(ticks)).unwrap_or(u64::MAX);
        RunClock::with_scale(Source::Counter, scale, second)
    }

    fn with_scale(source: Source, scale: u64, at: Bracket) -> RunClock {
        RunClock {
            source,
            epoch_ticks: at.ticks,
            epoch_monotonic_ns: at.monotonic_ns,
            epoch_wall_ns: wall_ns(),
            scale,
        }
    }

    /// Now, on the run's time line.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Stamp {
        match self.source {
            Source::Counter => Stamp::from_nanos(self.convert(counter())),
            Source::Monotonic => Stamp::from_nanos(monotonic_ns().saturating_sub(self.epoch_monotonic_ns)),
        }
    }

    #[inline]
    fn convert(&self, ticks: u64) -> u64 {
        let since = ticks.saturating_sub(self.epoch_ticks);
        ((u128::from(since) * u128::from(self.scale)) >> SCALE_BITS) as u64
    }

    /// What is read.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// Wall clock at the epoch, ns since 1970: read once per run, for files and for merging hosts.
    #[must_use]
    pub fn epoch_wall_ns(&self) -> u64 {
        self.epoch_wall_ns
    }

    /// Looks at the wall clock (about 0.2 us): the tightest of several brackets.
    #[must_use]
    pub fn wall_offset(&self) -> WallOffset {
        const LOOKS: usize = 5;
        let mut best = WallOffset { wall_minus_run_ns: 0, error_ns: u64::MAX };
        for _ in 0..LOOKS {
            let before = self.now();
            let wall = wall_ns();
            let width = self.now().nanos_since(before);
            if width / 2 < best.error_ns {
                let middle = before.as_nanos() + width / 2;
                let offset = i128::from(wall) - i128::from(middle);
                best = WallOffset {
                    wall_minus_run_ns: i64::try_from(offset).unwrap_or(i64::MAX),
                    error_ns: width / 2,
                };
            }
        }
        best
    }

    /// How far this clock has moved away from `CLOCK_MONOTONIC` since the epoch, ns (positive: ahead).
    #[must_use]
    pub fn drift_ns(&self) -> i64 {
        let line = self.on_monotonic();
        line.run_ns as i64 - line.monotonic_ns as i64
    }

    /// Compares this clock with `CLOCK_MONOTONIC` (about 2 us).
    #[must_use]
    pub fn on_monotonic(&self) -> OnMonotonic {
        let at = bracket();
        let monotonic_ns = at.monotonic_ns.saturating_sub(self.epoch_monotonic_ns);
        let run_ns = match self.source {
            Source::Counter => self.convert(at.ticks),
            Source::Monotonic => monotonic_ns,
        };
        OnMonotonic { epoch_ns: self.epoch_monotonic_ns, run_ns, monotonic_ns }
    }
}

/// A run's time line against `CLOCK_MONOTONIC`, which all processes of a machine share: by it the stamps of one process
/// compare with those of another, whatever the calibration of either is off by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OnMonotonic {
    /// `CLOCK_MONOTONIC` at the epoch, ns.
    pub epoch_ns: u64,
    /// What the run's clock says has passed since, ns.
    pub run_ns: u64,
    /// What `CLOCK_MONOTONIC` says has passed since, ns.
    pub monotonic_ns: u64,
}

impl OnMonotonic {
    /// `at` as a reading of `CLOCK_MONOTONIC`, ns. Exact to some 100 ns for stamps up to when the two were compared.
    #[must_use]
    pub fn nanos(&self, at: Stamp) -> u64 {
        let scaled =
            u128::from(at.as_nanos()) * u128::from(self.monotonic_ns) / u128::from(self.run_ns.max(1));
        self.epoch_ns.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX))
    }
}

/// Where the wall clock stood against a run's time line when it was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WallOffset {
    /// Wall clock minus run clock, ns.
    pub wall_minus_run_ns: i64,
    /// By how much that may be wrong, ns: half the time that the look took.
    pub error_ns: u64,
}

impl WallOffset {
    /// The stamp on the run's time line; the epoch for what came before it.
    #[inline]
    #[must_use]
    pub fn stamp(&self, at: WallStamp) -> Stamp {
        let ns = i128::from(at.0) - i128::from(self.wall_minus_run_ns);
        Stamp::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }
}

/// A counter value and the `CLOCK_MONOTONIC` reading closest to it.
#[derive(Clone, Copy)]
struct Bracket {
    ticks: u64,
    monotonic_ns: u64,
}

/// The tightest of several readings of the counter around one of the other clock.
fn bracket() -> Bracket {
    let mut best = (u64::MAX, Bracket { ticks: 0, monotonic_ns: 0 });
    for _ in 0..20 {
        let before = counter();
        let monotonic_ns = monotonic_ns();
        let width = counter().wrapping_sub(before);
        if width < best.0 {
            best = (width, Bracket { ticks: before.wrapping_add(width / 2), monotonic_ns });
        }
    }
    best.1
}

fn monotonic_ns() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

fn wall_ns() -> u64 {
    nanos(clock_gettime(ClockId::Realtime))
}

fn nanos(t: rustix::time::Timespec) -> u64 {
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: RDTSC exists on every x86-64 processor and touches no memory; where the kernel forbids it in user
    // mode (PR_TSC_SIGSEGV) no program of this kind can run.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn counter() -> u64 {
    let ticks: u64;
    // SAFETY: reading CNTVCT_EL0 has no side effect; Linux enables it for user mode (the vDSO reads it as well).
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

/// Whether the counter runs at a constant rate on all cores: the kernel's own choice of clock source says so.
fn counter_is_a_clock() -> bool {
    const CHOSEN: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(CHOSEN).is_ok_and(|name| matches!(name.trim(), "tsc" | "arch_sys_counter"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_two_processes_meet_on_the_monotonic_clock() {
        // A clock that gains a tenth against the machine's: 110 of its ns are 100.
        let fast = OnMonotonic { epoch_ns: 1_000, run_ns: 1_100, monotonic_ns: 1_000 };
        assert_eq!(fast.nanos(Stamp::from_nanos(110)), 1_100);
        assert_eq!(fast.nanos(Stamp::ZERO), 1_000);
        assert_eq!(OnMonotonic::default().nanos(Stamp::from_nanos(5)), 0);
        let (one, two) = (RunClock::start(), RunClock::start());
        let (before, between, after) = (one.now(), two.now(), one.now());
        let (one, two) = (one.on_monotonic(), two.on_monotonic());
        let between = two.nanos(between);
        // Some 100 ns are the clocks' own; a wrong epoch or scale would be off by far more than this.
        assert!(
            one.nanos(before) <= between + 20_000 && between <= one.nanos(after) + 20_000,
            "{one:?} {two:?}"
        );
    }

    #[test]
    fn stamps_do_not_go_back_and_follow_the_monotonic_clock() {
        let clock = RunClock::start();
        let mut last = clock.now();
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
        // 1 ms over a run of some milliseconds: a wrong unit or scale would be off by far more.
        assert!(clock.drift_ns().abs() < 1_000_000, "drift {} ns", clock.drift_ns());
    }
}
