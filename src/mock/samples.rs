//! Times kept exactly up to a bound, and beyond it in a histogram.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

use crate::stats::quantile::{Quantile, nearest_rank};

/// The spread of times, us. All zero if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Number of times.
    pub count: u64,
    /// The quantiles are exact. Else there were more times than are kept, and quantiles have four digits; the other
    /// numbers are exact all the same.
    pub exact: bool,
    /// Mean, us.
    pub mean_us: f64,
    /// Smallest, us.
    pub min_us: f64,
    /// Median, us, nearest rank, as the other quantiles.
    pub p50_us: f64,
    /// 90th percentile, us.
    pub p90_us: f64,
    /// 95th percentile, us.
    pub p95_us: f64,
    /// 99th percentile, us.
    pub p99_us: f64,
    /// 99.9th percentile, us.
    pub p999_us: f64,
    /// Largest, us.
    pub max_us: f64,
}

/// Times of one kind.
#[derive(Clone, Debug)]
pub(super) struct Samples {
    /// All of them, ns, as long as there is no histogram.
    exact: Vec<u64>,
    /// All of them, once there were more than `bound`: to four digits or 1 us, whichever is coarser. Above an hour
    /// they count as an hour.
    rough: Option<Box<Histogram<u64>>>,
    /// Most times kept exactly.
    bound: usize,
    count: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

const FINEST_NS: u64 = 1_000;
const LONGEST_NS: u64 = 3_600_000_000_000;

impl Samples {
    /// None yet; at most `bound` will be kept exactly.
    pub(super) fn new(bound: usize) -> Samples {
        Samples { exact: Vec::new(), rough: None, bound, count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    #[inline]
    pub(super) fn record(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
        if self.rough.is_none() && self.exact.len() < self.bound {
            self.exact.push(ns);
        } else {
            self.histogram().saturating_record(ns);
        }
    }

    /// Adds the times of another part of the server; the bounds add up, too.
    pub(super) fn add(&mut self, other: &Samples) {
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.bound = self.bound.saturating_add(other.bound);
        match &other.rough {
            Some(others) => self.histogram().add(others.as_ref()).expect("the bounds are equal"),
            None if self.rough.is_none() => self.exact.extend_from_slice(&other.exact),
            None => {
                let histogram = self.histogram();
                other.exact.iter().for_each(|ns| histogram.saturating_record(*ns));
            }
        }
    }

    pub(super) fn spread(&self) -> Spread {
        if self.count == 0 {
            return Spread::default();
        }
        let us = |ns: u64| ns as f64 / 1e3;
        let mut sorted = self.exact.clone();
        sorted.sort_unstable();
        let at = |quantile: Quantile| match &self.rough {
            None => us(nearest_rank(&sorted, quantile).unwrap_or_default()),
            Some(histogram) => {
                let share = f64::from(quantile.parts()) / 1e5;
                // The histogram gives the upper end of a bucket.
                us(histogram.value_at_quantile(share).clamp(self.min_ns, self.max_ns))
            }
        };
        Spread {
            count: self.count,
            exact: self.rough.is_none(),
            mean_us: us(self.sum_ns) / self.count as f64,
            min_us: us(self.min_ns),
            p50_us: at(Quantile::P50),
            p90_us: at(Quantile::P90),
            p95_us: at(Quantile::P95),
            p99_us: at(Quantile::P99),
            p999_us: at(Quantile::P999),
            max_us: us(self.max_ns),
        }
    }

    /// The histogram of all times so far; from now on they are kept in it.
    fn histogram(&mut self) -> &mut Histogram<u64> {
        let exact = std::mem::take(&mut self.exact);
        self.rough.get_or_insert_with(|| {
            let mut histogram =
                Histogram::new_with_bounds(FINEST_NS, LONGEST_NS, 4).expect("the bounds are valid");
            exact.iter().for_each(|ns| histogram.saturating_record(*ns));
            Box::new(histogram)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bound: usize, us: impl IntoIterator<Item = u64>) -> Samples {
        let mut samples = Samples::new(bound);
        us.into_iter().for_each(|us| samples.record(Duration::from_micros(us)));
        samples
    }

    #[test]
    fn quantiles_are_exact_up_to_the_bound() {
        let spread = of(100, 1..=100).spread();
        assert!(spread.exact);
        assert_eq!((spread.p50_us, spread.p90_us, spread.p99_us, spread.p999_us), (50.0, 90.0, 99.0, 100.0));
        assert_eq!((spread.mean_us, spread.min_us, spread.max_us), (50.5, 1.0, 100.0));
        assert_eq!(of(9, []).spread(), Spread::default());
    }

    #[test]
    fn beyond_the_bound_they_are_rough_and_say_so() {
        let spread = of(99, 1_000..=101_000).spread();
        assert!(!spread.exact);
        assert_eq!((spread.count, spread.min_us, spread.max_us), (100_001, 1_000.0, 101_000.0));
        assert!((spread.p50_us - 51_000.0).abs() <= 6.0 && (spread.p99_us - 100_000.0).abs() <= 11.0);
    }

    #[test]
    fn parts_add_up_whatever_they_keep() {
        for (left, right) in [(100, 100), (3, 100), (100, 3), (3, 3)] {
            let mut sum = of(left, 1..=50);
            sum.add(&of(right, 51..=100));
            let spread = sum.spread();
            assert_eq!(spread.exact, left == 100 && right == 100);
            assert_eq!((spread.count, spread.mean_us, spread.max_us), (100, 50.5, 100.0));
            assert!((spread.p50_us - 50.0).abs() <= 1.0 && (spread.p99_us - 99.0).abs() <= 1.0);
        }
    }
}
