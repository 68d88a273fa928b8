//! Values on their way into a histogram.

use crate::stats::Histogram;

/// Values that are still to be counted in a [`Histogram`].
///
/// A duration of each of a hundred thousand reads a second falls into another bucket, whose memory the kernel has driven out
/// of the nearest cache since: counted one by one each waits for it, counted in a row they wait together, and until then
/// lie side by side.
#[derive(Debug)]
pub struct Pending {
    values: [u64; Pending::ROOM],
    held: usize,
}

impl Pending {
    const ROOM: usize = 64;

    /// No values.
    #[must_use]
    pub const fn new() -> Pending {
        Pending { values: [0; Pending::ROOM], held: 0 }
    }

    /// Takes `ns`, to be counted in `histogram`: now, with all before it, where there is no more room.
    #[inline]
    pub fn record(&mut self, ns: u64, histogram: &mut Histogram) {
        self.values[self.held] = ns;
        self.held += 1;
        if self.held == Pending::ROOM {
            self.count(histogram);
        }
    }

    /// Counts what has not been counted yet.
    pub fn count(&mut self, histogram: &mut Histogram) {
        self.values[..self.held].iter().for_each(|ns| histogram.record(*ns));
        self.held = 0;
    }
}

impl Default for Pending {
    fn default() -> Pending {
        Pending::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_counted_once() {
        let (mut pending, mut counted, mut expected) = (Pending::new(), Histogram::new(), Histogram::new());
        for ns in 0..1000 {
            pending.record(ns * ns, &mut counted);
            expected.record(ns * ns);
            assert_eq!(counted.n(), (ns + 1) / 64 * 64);
        }
        pending.count(&mut counted);
        pending.count(&mut counted);
        assert_eq!(counted, expected);
    }
}
