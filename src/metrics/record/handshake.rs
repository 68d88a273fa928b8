//! The TLS handshake of a request's connection, as exactly as a record holds it.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// How long a TLS handshake took, and whether it took up an earlier session.
///
/// Its time is that of a record's 18 bits for it: to one part in 8192, up to 73 minutes. An `Option` of it takes no more
/// room.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handshake(
    /// The mantissa, then the exponent's code, which is never 0, and a bit for a session taken up.
    NonZeroU32,
);

/// Bits of the mantissa in a record.
const MANTISSA_BITS: u32 = 14;
/// Largest exponent code; 0 stands for no handshake at all.
const EXPONENT_MAX: u64 = 15;
const RESUMED: u32 = 1 << 31;

impl Handshake {
    /// One that took so long, to the nearest that can be told.
    #[must_use]
    pub fn of(took: Duration, resumed: bool) -> Handshake {
        let ns = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        Handshake::packed(parts(ns), resumed)
    }

    /// How long it took, ns.
    #[must_use]
    pub fn ns(self) -> u64 {
        let (mantissa, exponent) = self.code();
        mantissa << shift(exponent)
    }

    /// Whether it took up an earlier session.
    #[must_use]
    pub fn is_resumed(self) -> bool {
        self.0.get() & RESUMED != 0
    }

    /// The time as stored: 14 bits, and a code from 1 to 15 of what they are multiplied by.
    pub(super) fn code(self) -> (u64, u64) {
        let time = u64::from(self.0.get() & !RESUMED);
        (time & ((1 << MANTISSA_BITS) - 1), time >> MANTISSA_BITS)
    }

    /// What is stored as these; `None` for the code 0.
    pub(super) fn from_code((mantissa, exponent): (u64, u64), resumed: bool) -> Option<Handshake> {
        (1..=EXPONENT_MAX).contains(&exponent).then(|| Handshake::packed((mantissa, exponent), resumed))
    }

    fn packed((mantissa, exponent): (u64, u64), resumed: bool) -> Handshake {
        let time = NonZeroU32::MIN.saturating_add((mantissa | exponent << MANTISSA_BITS) as u32 - 1);
        Handshake(time | if resumed { RESUMED } else { 0 })
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake").field("ns", &self.ns()).field("resumed", &self.is_resumed()).finish()
    }
}

fn shift(exponent: u64) -> u64 {
    2 * (exponent - 1)
}

/// The nearest number that can be stored.
fn parts(ns: u64) -> (u64, u64) {
    let rounded = |exponent| {
        let half = 1u64.checked_shl(shift(exponent) as u32).map_or(0, |unit| unit / 2);
        ns.saturating_add(half) >> shift(exponent)
    };
    let fits = |exponent: &u64| rounded(*exponent) < 1 << MANTISSA_BITS;
    match (1..=EXPONENT_MAX).find(fits) {
        Some(exponent) => (rounded(exponent), exponent),
        None => ((1 << MANTISSA_BITS) - 1, EXPONENT_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_within_one_part_in_8192() {
        for exponent in 0..41 {
            for ns in [1u64 << exponent, (1u64 << exponent) * 3 / 2 + 1, (1u64 << exponent) - 1] {
                let handshake = Handshake::of(Duration::from_nanos(ns), false);
                let off = handshake.ns().abs_diff(ns);
                assert!(off * 8192 <= ns, "{ns}: {}", handshake.ns());
                assert_eq!(Handshake::from_code(handshake.code(), false), Some(handshake));
                assert_eq!(Handshake::of(Duration::from_nanos(handshake.ns()), false), handshake);
            }
        }
        assert_eq!(Handshake::of(Duration::from_millis(20), true).ns(), 20_000_768);
        assert!(Handshake::of(Duration::MAX, false).ns() > 4_000_000_000_000);
        assert_eq!(Handshake::from_code((5, 0), true), None);
    }
}
