//! Exact totals of a set of durations: what no histogram may be asked for.
//!
//! A mean or a maximum taken from buckets is off by up to half a bucket, so that these are kept beside them.

use serde::{Deserialize, Serialize};

/// Number, smallest, largest, sum and sum of squares of durations in nanoseconds.
///
/// All are exact integers: adding them up in another order, or over shards, gives the same bits. The sums are
/// 128 bits wide and stop at the largest value instead of wrapping; for values up to an hour that takes more than
/// 10^13 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    n: u64,
    /// `u64::MAX` while `n` is 0, so that recording needs no case for the first value.
    min: u64,
    max: u64,
    #[serde(with = "decimal")]
    sum: u128,
    #[serde(with = "decimal")]
    sum_of_squares: u128,
}

impl Totals {
    /// Totals of nothing.
    #[must_use]
    pub const fn new() -> Totals {
        Totals { n: 0, min: u64::MAX, max: 0, sum: 0, sum_of_squares: 0 }
    }

    /// Totals that were kept apart; of nothing where `n` is 0.
    #[must_use]
    pub(crate) fn of_parts(n: u64, (min, max): (u64, u64), sum: u64, sum_of_squares: u128) -> Totals {
        if n == 0 { Totals::new() } else { Totals { n, min, max, sum: u128::from(sum), sum_of_squares } }
    }

    /// Adds the value `ns`.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Adds the value `ns`, `count` times.
    #[inline]
    pub fn record_n(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        let (wide, times) = (u128::from(ns), u128::from(count));
        self.n = self.n.saturating_add(count);
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sum = self.sum.saturating_add(wide * times);
        self.sum_of_squares = self.sum_of_squares.saturating_add((wide * wide).saturating_mul(times));
    }

    /// The totals of all values of a sequence, each `count` times.
    pub(super) fn of_arithmetic(values: Arithmetic, count: u64) -> Totals {
        if values.terms == 0 || count == 0 {
            return Totals::new();
        }
        let [least, step, terms, count] = [values.least, values.step, values.terms, count].map(u128::from);
        // least + i step for i below terms: sums of i and of its squares.
        let (of_i, of_squares) = (terms * (terms - 1) / 2, (terms - 1) * terms * (2 * terms - 1) / 6);
        let squares = (terms * least * least)
            .saturating_add(2 * least * step * of_i)
            .saturating_add((step * step).saturating_mul(of_squares));
        Totals {
            n: values.terms.saturating_mul(count as u64),
            min: values.least,
            max: values.least + values.step * (values.terms - 1),
            sum: (terms * least + step * of_i).saturating_mul(count),
            sum_of_squares: squares.saturating_mul(count),
        }
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Totals) {
        self.n = self.n.saturating_add(other.n);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum = self.sum.saturating_add(other.sum);
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
    }

    /// Number of values.
    #[must_use]
    pub const fn n(&self) -> u64 {
        self.n
    }

    /// Smallest value, ns.
    #[must_use]
    pub fn min(&self) -> Option<u64> {
        (self.n > 0).then_some(self.min)
    }

    /// Largest value, ns.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        (self.n > 0).then_some(self.max)
    }

    /// Sum of the values, ns.
    #[must_use]
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// Sum of the squares of the values, ns².
    #[must_use]
    pub const fn sum_of_squares(&self) -> u128 {
        self.sum_of_squares
    }

    /// Mean, ns.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.n > 0).then(|| self.sum as f64 / self.n as f64)
    }
}

/// `least`, `least + step`, ...: so many durations of up to an hour, all of which fit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arithmetic {
    pub(super) least: u64,
    pub(super) step: u64,
    pub(super) terms: u64,
}

impl Default for Totals {
    fn default() -> Totals {
        Totals::new()
    }
}

/// The mean of `n` values from their sum; `None` for `n == 0`.
#[must_use]
pub fn mean(n: u64, sum: f64) -> Option<f64> {
    (n > 0).then(|| sum / n as f64)
}

/// The population standard deviation of `n` values from their sum and sum of squares; `None` for `n == 0`.
///
/// The difference of two `f64` that are nearly equal: a deviation below about 10^-8 of the mean is lost in rounding.
#[must_use]
pub fn standard_deviation(n: u64, sum: f64, sum_of_squares: f64) -> Option<f64> {
    let mean = mean(n, sum)?;
    Some((sum_of_squares / n as f64 - mean * mean).max(0.0).sqrt())
}

/// A sum of `f64` with the rounding error carried along (Neumaier), so that it does not grow with the number of
/// terms.
#[derive(Clone, Copy, Debug, Default)]
pub struct FloatSum {
    sum: f64,
    error: f64,
}

impl FloatSum {
    /// Adds `value`.
    #[inline]
    pub fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        self.error +=
            if self.sum.abs() >= value.abs() { (self.sum - sum) + value } else { (value - sum) + self.sum };
        self.sum = sum;
    }

    /// The sum.
    #[must_use]
    pub fn total(self) -> f64 {
        self.sum + self.error
    }
}

impl FromIterator<f64> for FloatSum {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> FloatSum {
        let mut sum = FloatSum::default();
        values.into_iter().for_each(|value| sum.add(value));
        sum
    }
}

/// 128-bit integers as decimal text: most readers of JSON round a number of that size.
pub(super) mod decimal {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de::Error as _};

    pub(in crate::stats) fn serialize<T: Display, S: Serializer>(
        value: &T,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_str(value)
    }

    pub(in crate::stats) fn deserialize<'de, T: FromStr, D: Deserializer<'de>>(
        from: D,
    ) -> Result<T, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(|_| D::Error::custom("expected a decimal integer of at most 128 bits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_exact_beyond_sixty_four_bits() {
        let mut totals = Totals::new();
        totals.record_n(u64::MAX, 3);
        totals.record(1);
        assert_eq!(totals.sum(), 3 * u128::from(u64::MAX) + 1);
        assert_eq!((totals.n(), totals.min(), totals.max()), (4, Some(1), Some(u64::MAX)));
        assert_eq!(totals.sum_of_squares(), u128::MAX, "stops at the end, does not wrap");
    }

    #[test]
    fn totals_of_nothing_have_no_values() {
        let mut totals = Totals::new();
        totals.record_n(7, 0);
        assert_eq!((totals.min(), totals.max(), totals.mean()), (None, None, None));
        assert_eq!(totals, Totals::default());
    }

    #[test]
    fn merging_is_recording_both() {
        let (mut all, mut left, mut right) = (Totals::new(), Totals::new(), Totals::new());
        for ns in [5, 0, 1_000_000_007, 12] {
            all.record(ns);
            if ns % 2 == 0 { left.record(ns) } else { right.record(ns) }
        }
        left.merge(&right);
        assert_eq!(left, all);
    }

    #[test]
    fn deviation_comes_from_the_sums() {
        let mut totals = Totals::new();
        [2, 4, 4, 4, 5, 5, 7, 9].into_iter().for_each(|ns| totals.record(ns));
        let deviation = standard_deviation(totals.n(), totals.sum() as f64, totals.sum_of_squares() as f64);
        assert_eq!(deviation, Some(2.0));
        assert_eq!(standard_deviation(0, 0.0, 0.0), None);
        assert_eq!(standard_deviation(3, 0.3, 0.029_999_999), Some(0.0), "never the root of a negative");
    }

    #[test]
    fn a_float_sum_keeps_what_plain_addition_drops() {
        let values = [1e16, 1.0, -1e16, 1.0];
        assert_eq!(values.iter().copied().collect::<FloatSum>().total(), 2.0);
        assert_ne!(values.iter().sum::<f64>(), 2.0);
    }

    #[test]
    fn stored_totals_come_back_exactly() {
        let mut totals = Totals::new();
        totals.record_n(u64::MAX - 1, 2);
        let text = serde_json::to_string(&totals).unwrap();
        assert_eq!(serde_json::from_str::<Totals>(&text).unwrap(), totals);
    }
}
