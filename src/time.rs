//! `Stamp`: a point on the run's own time line.
//!
//! Pure code receives stamps as arguments and never asks for the time; only `sys::clock` makes real ones.
//! There is no clock trait: a test or a simulation writes the stamps that it means.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Nanoseconds since the run's epoch, on one monotonic clock.
///
/// Range: 0 to `u64::MAX - 1` ns (584 years). Stamps of different shards of one process compare; stamps of different
/// hosts do not. Arithmetic saturates: an earlier stamp minus a later one is [`Duration::ZERO`]. A stamp that may be absent
/// takes no more room: a record has nine of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Stamp(
    /// Nanoseconds, and one more.
    NonZeroU64,
);

impl Stamp {
    /// The epoch of the run.
    pub const ZERO: Stamp = Stamp::from_nanos(0);
    /// Later than every real stamp: "never".
    pub const MAX: Stamp = Stamp(NonZeroU64::MAX);

    /// The stamp `ns` nanoseconds after the epoch.
    #[must_use]
    #[inline]
    pub const fn from_nanos(ns: u64) -> Stamp {
        Stamp(NonZeroU64::MIN.saturating_add(ns))
    }

    /// The stamp `ms` milliseconds after the epoch.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Stamp {
        Stamp::from_nanos(ms.saturating_mul(1_000_000))
    }

    /// The same moment on a time line on which `from` is `to`; not before its epoch.
    #[must_use]
    pub fn moved(self, from: Stamp, to: Stamp) -> Stamp {
        match self >= from {
            true => to + (self - from),
            false => to - (from - self),
        }
    }

    /// Nanoseconds since the epoch.
    #[must_use]
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0.get() - 1
    }

    /// Seconds since the epoch, rounded to the nearest `f64`.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.as_nanos() as f64 / 1e9
    }

    /// Nanoseconds from `earlier` to `self`; 0 if `earlier` is later.
    #[must_use]
    #[inline]
    pub const fn nanos_since(self, earlier: Stamp) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }
}

impl Default for Stamp {
    fn default() -> Stamp {
        Stamp::ZERO
    }
}

impl From<u64> for Stamp {
    fn from(ns: u64) -> Stamp {
        Stamp::from_nanos(ns)
    }
}

impl From<Stamp> for u64 {
    fn from(at: Stamp) -> u64 {
        at.as_nanos()
    }
}

impl Sub for Stamp {
    type Output = Duration;

    fn sub(self, earlier: Stamp) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }
}

impl Add<Duration> for Stamp {
    type Output = Stamp;

    fn add(self, span: Duration) -> Stamp {
        Stamp(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Stamp {
    type Output = Stamp;

    fn sub(self, span: Duration) -> Stamp {
        Stamp::from_nanos(self.as_nanos().saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stamp").field(&self.as_nanos()).finish()
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} s", self.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_saturates_at_zero() {
        assert_eq!(Stamp::from_millis(3) - Stamp::from_millis(5), Duration::ZERO);
        assert_eq!(Stamp::from_millis(5) - Stamp::from_millis(3), Duration::from_millis(2));
    }

    #[test]
    fn sums_saturate_at_the_ends() {
        assert_eq!(Stamp::MAX + Duration::from_secs(1), Stamp::MAX);
        assert_eq!(Stamp::ZERO - Duration::from_secs(1), Stamp::ZERO);
        assert_eq!(Stamp::ZERO + Duration::MAX, Stamp::MAX);
        assert_eq!((Stamp::from_nanos(u64::MAX), Stamp::MAX.as_nanos()), (Stamp::MAX, u64::MAX - 1));
    }

    #[test]
    fn an_absent_stamp_takes_no_more_room_and_files_have_nanoseconds() {
        assert_eq!(size_of::<Option<Stamp>>(), size_of::<u64>());
        let stored = [0, 1, 1_500_000_000].map(Stamp::from_nanos);
        assert_eq!(serde_json::to_string(&stored).unwrap(), "[0,1,1500000000]");
        assert_eq!(serde_json::from_str::<[Stamp; 3]>("[0,1,1500000000]").unwrap(), stored);
        assert_eq!((format!("{:?}", stored[1]), Stamp::default()), ("Stamp(1)".to_owned(), Stamp::ZERO));
    }
}
