//! Quantiles of exact values: which rank one is, and the value at it.
//!
//! A quantile is an integer of parts per 100 000 and its rank is computed in integers. In floating point 99.9 % of
//! 1000 values is rank 1000 instead of 999, and the maximum is reported for p99.9.

use std::fmt;
use std::str::FromStr;

/// A quantile in parts per 100 000: three decimals of a percentile, without rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantile {
    parts: u32,
}

impl Quantile {
    /// The median.
    pub const P50: Quantile = Quantile { parts: 50_000 };
    /// 90 %.
    pub const P90: Quantile = Quantile { parts: 90_000 };
    /// 95 %.
    pub const P95: Quantile = Quantile { parts: 95_000 };
    /// 99 %.
    pub const P99: Quantile = Quantile { parts: 99_000 };
    /// 99.9 %.
    pub const P999: Quantile = Quantile { parts: 99_900 };
    /// The maximum.
    pub const MAX: Quantile = Quantile { parts: Quantile::WHOLE };
    /// Those of every distribution, ascending.
    pub const REPORTED: [Quantile; 5] =
        [Quantile::P50, Quantile::P90, Quantile::P95, Quantile::P99, Quantile::P999];

    const WHOLE: u32 = 100_000;

    /// The quantile of `parts` per 100 000; `None` above 100 000.
    #[must_use]
    pub const fn from_parts(parts: u32) -> Option<Quantile> {
        if parts <= Quantile::WHOLE { Some(Quantile { parts }) } else { None }
    }

    /// Parts per 100 000: 99 900 is p99.9.
    #[must_use]
    pub const fn parts(self) -> u32 {
        self.parts
    }

    /// The nearest rank among `n` values, from 1: `max(1, ceil(n * parts / 100 000))`.
    ///
    /// At most `n`, except for `n == 0`, which has no rank 1.
    #[must_use]
    pub fn rank(self, n: u64) -> u64 {
        let rank = (u128::from(n) * u128::from(self.parts)).div_ceil(u128::from(Quantile::WHOLE));
        // At most n, because parts is at most the whole.
        (rank as u64).max(1)
    }
}

/// The nearest-rank quantile of `sorted`, which ascends; `None` if it is empty.
#[must_use]
pub fn nearest_rank<T: Copy>(sorted: &[T], quantile: Quantile) -> Option<T> {
    let rank = quantile.rank(sorted.len() as u64);
    sorted.get(usize::try_from(rank - 1).ok()?).copied()
}

/// The quantile of `sorted` by linear interpolation at `(n - 1) * p`, as numpy and the reports of vLLM have it;
/// `None` if it is empty.
///
/// For the vLLM-compatible view only: never in one table with [`nearest_rank`].
#[must_use]
pub fn linear(sorted: &[f64], quantile: Quantile) -> Option<f64> {
    let last = sorted.len().checked_sub(1)? as u128;
    let scaled = last * u128::from(quantile.parts);
    let whole = u128::from(Quantile::WHOLE);
    let below = (scaled / whole) as usize;
    let fraction = (scaled % whole) as f64 / f64::from(Quantile::WHOLE);
    let low = sorted[below];
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    // From the nearer end, as numpy does: a fraction close to 1 then meets the upper value.
    Some(if fraction < 0.5 { low + (high - low) * fraction } else { high - (high - low) * (1.0 - fraction) })
}

impl fmt::Display for Quantile {
    /// The percentile without trailing zeros: `50`, `99.9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (percent, rest) = (self.parts / 1000, self.parts % 1000);
        if rest == 0 {
            return write!(f, "{percent}");
        }
        let decimals = format!("{rest:03}");
        write!(f, "{percent}.{}", decimals.trim_end_matches('0'))
    }
}

/// Why a text is not a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// More than three decimals.
    Decimals,
    /// Not a decimal number without sign.
    Number,
    /// Above 100.
    Range,
}

impl FromStr for Quantile {
    type Err = ParseError;

    /// Reads a percentile of at most three decimals: `99.9`.
    fn from_str(text: &str) -> Result<Quantile, ParseError> {
        let (percent, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(percent) || !digits(decimals) {
            return Err(ParseError::Number);
        }
        if decimals.len() > 3 {
            return Err(ParseError::Decimals);
        }
        let thousandths = |part: &str| part.parse::<u32>().map_err(|_| ParseError::Range);
        let scale = 10_u32.pow(3 - decimals.len() as u32);
        let parts = thousandths(percent)?.checked_mul(1000).ok_or(ParseError::Range)?;
        let parts = parts.checked_add(thousandths(decimals)? * scale).ok_or(ParseError::Range)?;
        Quantile::from_parts(parts).ok_or(ParseError::Range)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParseError::Decimals => "a percentile has at most three decimals",
            ParseError::Number => "a percentile is a number such as 99 or 99.9",
            ParseError::Range => "a percentile is at most 100",
        })
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    fn quantile(parts: u32) -> Quantile {
        Quantile::from_parts(parts).unwrap()
    }

    /// The definition, without cleverness: the first rank that has at least `parts` of the values at or below it.
    fn rank_by_search(n: u64, parts: u32) -> u64 {
        (1..=n).find(|rank| rank * 100_000 >= n * u64::from(parts)).unwrap()
    }

    #[test]
    fn ranks_are_the_first_that_cover_the_share() {
        for n in 1..=300 {
            for parts in (0..=100_000).step_by(50).chain([99_999, 1, 33_333]) {
                assert_eq!(quantile(parts).rank(n), rank_by_search(n, parts), "n {n} parts {parts}");
            }
        }
    }

    #[test]
    fn the_rank_of_p999_of_a_thousand_is_999() {
        assert_eq!(Quantile::P999.rank(1000), 999);
        assert_eq!(quantile(7_000).rank(100), 7);
        assert_eq!(Quantile::MAX.rank(u64::MAX), u64::MAX);
        assert_eq!(Quantile::P50.rank(0), 1);
    }

    #[test]
    fn nearest_rank_is_the_value_with_enough_at_or_below() {
        let mut stream = rng::stream(1, rng::Purpose::Choice, 0);
        for n in 1..200 {
            let mut values: Vec<u32> = (0..n).map(|_| rng::below(&mut stream, 50)).collect();
            values.sort_unstable();
            for parts in [1, 10_000, 50_000, 90_000, 99_000, 99_900, 100_000] {
                let by_count = *values
                    .iter()
                    .find(|v| {
                        values.iter().filter(|w| w <= v).count() * 100_000 >= n as usize * parts as usize
                    })
                    .unwrap();
                assert_eq!(nearest_rank(&values, quantile(parts)), Some(by_count));
            }
        }
        assert_eq!(nearest_rank::<u32>(&[], Quantile::P50), None);
    }

    #[test]
    fn linear_lies_between_its_neighbours_as_the_formula_says() {
        let mut stream = rng::stream(2, rng::Purpose::Choice, 0);
        for n in 1..100_usize {
            let mut values: Vec<f64> = (0..n).map(|_| rng::unit(&mut stream)).collect();
            values.sort_unstable_by(f64::total_cmp);
            for parts in [0, 1, 25_000, 50_000, 90_000, 99_000, 99_900, 100_000] {
                let place = (n - 1) as f64 * (f64::from(parts) / 100_000.0);
                let (low, high) = (place.floor() as usize, place.ceil() as usize);
                let naive = values[low] + (place - place.floor()) * (values[high] - values[low]);
                let ours = linear(&values, quantile(parts)).unwrap();
                assert!((ours - naive).abs() < 1e-12, "n {n} parts {parts}: {ours} {naive}");
            }
        }
        assert_eq!(linear(&[], Quantile::P50), None);
    }

    #[test]
    fn percentiles_are_read_as_they_are_printed() {
        for (text, parts) in
            [("50", 50_000), ("99.9", 99_900), ("99.999", 99_999), ("0", 0), ("100", 100_000)]
        {
            let read: Quantile = text.parse().unwrap();
            assert_eq!(read.parts(), parts);
            assert_eq!(read.to_string(), text);
        }
        assert_eq!("99.90".parse::<Quantile>().unwrap(), Quantile::P999);
        assert_eq!("2.05".parse::<Quantile>().unwrap().to_string(), "2.05");
    }

    #[test]
    fn what_is_no_percentile_is_refused() {
        let refused = [
            ("99.9999", ParseError::Decimals),
            ("100.001", ParseError::Range),
            ("99999999999999999999", ParseError::Range),
            ("4294968", ParseError::Range),
            ("", ParseError::Number),
            (".5", ParseError::Number),
            ("5.", ParseError::Number),
            ("+5", ParseError::Number),
            ("p99", ParseError::Number),
        ];
        for (text, error) in refused {
            assert_eq!(text.parse::<Quantile>(), Err(error), "{text}");
        }
    }
}
