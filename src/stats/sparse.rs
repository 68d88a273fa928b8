//! A histogram that costs what it holds: buckets in use alone, packed.
//!
//! For many small ones that are kept for long, as the slices of a run of days. Its buckets are those of
//! [`Histogram`], so that a quantile is as exact as there; a bucket takes two or three bytes.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stats::histogram::Histogram;
use crate::stats::quantile::Quantile;

/// Counts of values, ns, by the buckets of a [`Histogram`], and their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sparse {
    /// For each bucket in use, ascending, how far it is from the one before and its count, which is above 0: numbers of
    /// seven bits a byte, the lowest first, the highest bit set where another byte follows.
    packed: Box<[u8]>,
    sum: u64,
}

impl Sparse {
    /// What `histogram` holds; its sum where it is below 2^64 ns.
    #[must_use]
    pub fn of(histogram: &Histogram) -> Sparse {
        let buckets = histogram.buckets().map(|one| (Histogram::bucket_of(one.lowest), one.count));
        Sparse { packed: pack(buckets), sum: u64::try_from(histogram.totals().sum()).unwrap_or(u64::MAX) }
    }

    /// Adds everything that `other` holds; in any order the sum is the same.
    pub fn merge(&mut self, other: &Sparse) {
        self.sum = self.sum.saturating_add(other.sum);
        if self.packed.is_empty() {
            self.packed.clone_from(&other.packed);
            return;
        }
        if other.packed.is_empty() {
            return;
        }
        let mut all: Vec<(u16, u64)> = self.buckets().chain(other.buckets()).collect();
        all.sort_unstable_by_key(|(code, _)| *code);
        all.dedup_by(|next, last| {
            let same = next.0 == last.0;
            if same {
                last.1 = last.1.saturating_add(next.1);
            }
            same
        });
        self.packed = pack(all.into_iter());
    }

    /// Number of values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.buckets().fold(0, |n, (_, count)| n.saturating_add(count))
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
        let at = self.buckets().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        });
        at.map(|(code, _)| Histogram::bucket_highest(code))
    }

    /// Adds the values to `histogram`, whose sums then take each at the highest of its bucket.
    pub fn pool_into(&self, histogram: &mut Histogram) {
        for (code, count) in self.buckets() {
            histogram.record_n(Histogram::bucket_highest(code).min(Histogram::HIGHEST_NS), count);
        }
    }

    /// The buckets in use, ascending, with their counts.
    fn buckets(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let (mut rest, mut code) = (&*self.packed, 0_u16);
        std::iter::from_fn(move || {
            let step = unpack(&mut rest)?;
            let count = unpack(&mut rest)?;
            // Below the number of buckets, as it was packed.
            code = code.wrapping_add(step as u16);
            Some((code, count))
        })
    }
}

/// Buckets that ascend, each as its distance from the one before and its count.
pub(super) fn pack(buckets: impl Iterator<Item = (u16, u64)>) -> Box<[u8]> {
    let (mut packed, mut before) = (Vec::new(), 0);
    for (code, count) in buckets {
        for mut number in [u64::from(code - before), count] {
            while number > 0x7f {
                packed.push(number as u8 | 0x80);
                number >>= 7;
            }
            packed.push(number as u8);
        }
        before = code;
    }
    packed.into_boxed_slice()
}

/// The next number; `None` at the end.
pub(super) fn unpack(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (byte, further) = rest.split_first()?;
        *rest = further;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(number)
}

impl Serialize for Sparse {
    /// A flat list: the sum, then for each bucket how far it is from the one before it, and its count.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut rest = &*self.packed;
        let numbers = std::iter::from_fn(|| unpack(&mut rest));
        to.collect_seq((!self.packed.is_empty()).then_some(self.sum).into_iter().chain(numbers))
    }
}

impl<'de> Deserialize<'de> for Sparse {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Sparse, D::Error> {
        let stored = Vec::<u64>::deserialize(from)?;
        let Some((sum, pairs)) = stored.split_first() else { return Ok(Sparse::default()) };
        let mut buckets = Vec::with_capacity(pairs.len() / 2);
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
            buckets.push((at as u16, count));
        }
        Ok(Sparse { packed: pack(buckets.into_iter()), sum: *sum })
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
            assert_eq!(Sparse::of(&back).packed, sparse.packed);
        }
        assert_eq!(Sparse::default().mean(), None);
    }

    #[test]
    fn a_bucket_takes_two_or_three_bytes_and_any_count_fits() {
        let sparse = Sparse::of(&histogram(5, 5000));
        let buckets = sparse.buckets().count();
        assert!(buckets > 1000 && sparse.packed.len() < 3 * buckets, "{} of {buckets}", sparse.packed.len());
        let wide = [(0, 1), (127, 128), (300, u64::MAX), (Histogram::BUCKETS - 1, 1 << 63)];
        let packed = Sparse { packed: pack(wide.into_iter()), sum: 0 };
        assert_eq!(packed.buckets().collect::<Vec<_>>(), wide);
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
