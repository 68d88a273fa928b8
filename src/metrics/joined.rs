//! What is known of the gaps between events that shared a read: their sum, hence bounds on every quantile.
//!
//! The headline distribution takes the events at the stamp of their read, which makes one gap of the whole sum and
//! zeros. Nothing is spread over them; this keeps beside it how far each quantile may be from the truth.

use serde::{Deserialize, Serialize};

use crate::metrics::gaps::{Gaps, Lump};
use crate::stats::Histogram;

/// The lumps of many requests, as what has to be put in place of the gaps that were recorded for them.
///
/// `k` gaps of sum `s` are at least nothing, and the largest of them at least `s / k`; the `j`-th largest is at most
/// `s / j`. So among all ways to part the sum, no quantile of the pooled gaps can be lower than with `s / k, 0, ...`,
/// nor higher than with `s, s / 2, ..., s / k`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Joined {
    /// Number of gaps in lumps.
    gaps: u64,
    /// Gaps that were recorded as zero.
    zeros: u64,
    /// Those that were recorded with the whole sum of their lump.
    sums: Histogram,
    /// What stands for the sums in the lower bound.
    low: Histogram,
    /// What stands for the zeros in the upper bound.
    high: Histogram,
}

impl Joined {
    /// Adds the lumps of a request.
    pub fn add(&mut self, gaps: &Gaps) {
        gaps.lumps().for_each(|lump| self.add_lump(lump));
    }

    fn add_lump(&mut self, lump: Lump) {
        let Lump { sum_ns, gaps, led } = lump;
        let recorded_as_sum = u64::from(led);
        self.gaps += u64::from(gaps);
        self.zeros += u64::from(gaps) - recorded_as_sum;
        if led {
            self.sums.record(sum_ns);
            self.low.record(sum_ns / u64::from(gaps));
        }
        let first = if led { 2 } else { 1 };
        (first..=gaps).for_each(|j| self.high.record(sum_ns / u64::from(j)));
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Joined) {
        self.gaps += other.gaps;
        self.zeros += other.zeros;
        self.sums.merge(&other.sums);
        self.low.merge(&other.low);
        self.high.merge(&other.high);
    }

    /// Number of gaps whose events shared a read.
    #[must_use]
    pub fn gaps(&self) -> u64 {
        self.gaps
    }

    /// Lower and upper bound of every quantile of the gaps pooled in `all`, which hold those of the lumps; `None` if
    /// there are no lumps, so that `all` is exact.
    #[must_use]
    pub fn bounds(&self, all: &Histogram) -> Option<(Histogram, Histogram)> {
        if self.gaps == 0 {
            return None;
        }
        let mut zeros = Histogram::new();
        zeros.record_n(0, self.zeros);
        Some((all.with_exchanged(&self.sums, &self.low), all.with_exchanged(&zeros, &self.high)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{self, Purpose};
    use crate::stats::Quantile;

    const QUANTILES: [Quantile; 4] = [Quantile::P50, Quantile::P90, Quantile::P95, Quantile::P99];

    #[test]
    fn without_lumps_there_is_nothing_to_bound() {
        let (mut gaps, mut joined) = (Gaps::default(), Joined::default());
        gaps.record(5);
        joined.add(&gaps);
        assert_eq!(joined.bounds(&Histogram::new()), None);
        assert_eq!(joined, Joined::default());
    }

    #[test]
    fn a_stall_that_joins_events_is_bounded_from_both_sides() {
        // 98 gaps of 20, then 3 in one read with a sum of 60: between "three of 20" and "60, 30, 20".
        let (mut gaps, mut joined, mut all) = (Gaps::default(), Joined::default(), Histogram::new());
        (0..98).for_each(|_| gaps.record(20));
        gaps.record(60);
        gaps.record_joined(60);
        gaps.record_joined(60);
        gaps.pool_into(&mut all);
        joined.add(&gaps);
        let (low, high) = joined.bounds(&all).unwrap();
        assert_eq!(low.buckets().map(|b| (b.highest, b.count)).collect::<Vec<_>>(), [(0, 2), (20, 99)]);
        assert_eq!(
            high.buckets().map(|b| (b.highest, b.count)).collect::<Vec<_>>(),
            [(20, 99), (30, 1), (60, 1)]
        );
        assert_eq!(joined.gaps(), 3);
    }

    #[test]
    fn the_truth_lies_within_the_bounds() {
        let mut draws = rng::stream(4, Purpose::Prompt, 0);
        for _ in 0..50 {
            let (mut gaps, mut truth, mut all, mut joined) =
                (Gaps::default(), Histogram::new(), Histogram::new(), Joined::default());
            let mut waiting = 0;
            for _ in 0..500 {
                // Each event waits for the one read that takes it, which takes up to four.
                let gap = u64::from(rng::below(&mut draws, 1000));
                truth.record(gap);
                waiting += gap;
                if rng::below(&mut draws, 3) > 0 {
                    gaps.record(waiting);
                    waiting = 0;
                } else {
                    // This one came before the read that ended at the next: the same read.
                    let more = u64::from(rng::below(&mut draws, 1000));
                    truth.record(more);
                    gaps.record(waiting + more);
                    gaps.record_joined(0);
                    waiting = 0;
                }
            }
            gaps.pool_into(&mut all);
            joined.add(&gaps);
            let Some((low, high)) = joined.bounds(&all) else { continue };
            for quantile in QUANTILES {
                let [low, truth, high] = [&low, &truth, &high].map(|h| h.quantile(quantile).unwrap());
                assert!(low <= truth && truth <= high, "{low} {truth} {high}");
            }
        }
    }
}
