//! A histogram that costs what it holds: buckets in use alone, as pairs.
//!
//! For many small ones that are kept for long, as the slices of a run of days. Its buckets are those of
//! [`Histogram`], so that a quantile is as exact as there.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stats::histogram::Histogram;
use crate::stats::quantile::Quantile;

/// Counts of values, ns, by the buckets of a [`Histogram`], and their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sparse {
    /// Buckets in use, ascending, with their counts, which are above 0.
    buckets: Vec<(u16, u64)>,
    sum: u64,
}

impl Sparse {
    /// What `histogram` holds; its sum where it is below 2^64 ns.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Sparse {
        let buckets = histogram.buckets().map(|one| (Histogram::bucket_of(one.lowest), one.count)).collect();
        Sparse { buckets, sum: u64::try_from(histogram.totals().sum()).unwrap_or(u64::MAX) }
    }

    /// Adds everything that `other` holds; in any order the sum is the same.
    pub fn merge(&mut self, other: &Sparse) {
        self.sum = self.sum.saturating_add(other.sum);
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
            return;
        }
        let mut all: Vec<(u16, u64)> = self.buckets.iter().chain(&other.buckets).copied().collect();
        all.sort_unstable_by_key(|(code, _)| *code);
        let mut merged: Vec<(u16, u64)> = Vec::with_capacity(all.len());
        for (code, count) in all {
            match merged.last_mut() {
                Some(last) if last.0 == code => last.1 = last.1.saturating_add(count),
                _ => merged.push((code, count)),
            }
        }
        merged.shrink_to_fit();
        self.buckets = merged;
    }

    /// Number of values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.buckets.iter().fold(0, |n, (_, count)| n.saturating_add(*count))
    }

    /// Their mean, ns; `None` without a value.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        Some(self.n()).filter(|n| *n > 0).map(|n| self.sum as f64 / n as f64)
    }

    /// The nearest-rank quantile as the highest value of its bucket, ns, as [`Histogram::quantile`] gives it; `None`
    /// without a value.
    #[must_use]
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        let rank = quantile.rank(self.n());
        let mut seen = 0_u64;
        let at = self.buckets.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        });
        at.map(|(code, _)| Histogram::bucket_highest(*code))
    }

    /// Adds the values to `histogram`, whose sums then take each at the highest of its bucket.
    pub fn pool_into(&self, histogram: &mut Histogram) {
        for (code, count) in &self.buckets {
            histogram.record_n(Histogram::bucket_highest(*code).min(Histogram::HIGHEST_NS), *count);
        }
    }
}

impl Serialize for Sparse {
    /// A flat list: the sum, then for each bucket how far it is from the one before it, and its count.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.buckets.is_empty() {
            return to.collect_seq(std::iter::empty::<u64>());
        }
        let mut before = 0;
        let pairs = self.buckets.iter().flat_map(|(code, count)| {
            let step = u64::from(*code - before);
            before = *code;
            [step, *count]
        });
        to.collect_seq(std::iter::once(self.sum).chain(pairs))
    }
}

impl<'de> Deserialize<'de> for Sparse {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Sparse, D::Error> {
        let stored = Vec::<u64>::deserialize(from)?;
        let Some((sum, pairs)) = stored.split_first() else { return Ok(Sparse::default()) };
        let mut read = Sparse { buckets: Vec::with_capacity(pairs.len() / 2), sum: *sum };
        let mut at = 0_u64;
        for (place, pair) in pairs.chunks(2).enumerate() {
            let &[step, count] = pair else {
                return Err(D::Error::custom("a bucket of a sparse histogram has no count"));
            };
            at = at.saturating_add(step);
            if at >= u64::from(Histogram::BUCKETS) || count == 0 || (place > 0 && step == 0) {
                return Err(D::Error::custom(
                    "the buckets of a sparse histogram are not ascending, or empty",
                ));
            }
            read.buckets.push((at as u16, count));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    fn histogram(seed: u64, n: usize) -> Histogram {
        let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
        let mut histogram = Histogram::new();
        (0..n).for_each(|_| histogram.record((rng::unit(&mut stream) * 3e8) as u64));
        histogram
    }

    #[test]
    fn it_says_what_the_histogram_says() {
        for n in [0, 1, 2, 999] {
            let dense = histogram(7, n);
            let sparse = Sparse::of(&dense);
            assert_eq!(sparse.n(), n as u64);
            for quantile in Quantile::REPORTED {
                assert_eq!(sparse.quantile(quantile), dense.quantile(quantile), "{quantile} of {n}");
            }
            let mut back = Histogram::new();
            sparse.pool_into(&mut back);
            assert_eq!(Sparse::of(&back).buckets, sparse.buckets);
        }
        assert_eq!(Sparse::default().mean(), None);
    }

    #[test]
    fn a_sum_is_that_of_all_values() {
        let (mut a, b) = (histogram(1, 500), histogram(2, 300));
        let (mut left, right) = (Sparse::of(&a), Sparse::of(&b));
        a.merge(&b);
        left.merge(&right);
        assert_eq!(left, Sparse::of(&a));
        left.merge(&Sparse::default());
        assert_eq!(left, Sparse::of(&a));
        let mut empty = Sparse::default();
        empty.merge(&left);
        assert_eq!(empty, left);
    }

    #[test]
    fn what_was_stored_comes_back_and_nonsense_is_refused() {
        for sparse in [Sparse::of(&histogram(3, 200)), Sparse::default()] {
            let text = serde_json::to_string(&sparse).unwrap();
            assert_eq!(serde_json::from_str::<Sparse>(&text).unwrap(), sparse, "{text}");
        }
        for wrong in ["[1,2]", "[1,2,0]", "[1,40000,1]", "[1,3,1,0,1]", "[1,18446744073709551615,1]", "[-1]"]
        {
            assert!(serde_json::from_str::<Sparse>(wrong).is_err(), "{wrong}");
        }
    }
}
