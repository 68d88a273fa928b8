//! What ranks say about a quantile: intervals of order statistics, and LoadGen's minimum counts.
//!
//! Free of distributions: a value of the sorted list lies below the true quantile or not, which is binomial. This
//! needs independent values; of latencies behind a queue give the effective number ([`crate::stats::share`]), as
//! METRICS.md section 7 demands.

use crate::stats::binomial;
use crate::stats::confidence::Confidence;
use crate::stats::quantile::Quantile;

/// Between which values of the sorted list a quantile lies: ranks from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ranks {
    /// Rank of the lower end; `None` where even the smallest value may lie above the quantile.
    pub lower: Option<u64>,
    /// Rank of the upper end; `None` where even the largest value may lie below the quantile, shown as `> max`.
    pub upper: Option<u64>,
}

impl Ranks {
    /// The ranks between which the quantile lies with `confidence`, of `n` independent values.
    ///
    /// Lower: the largest `l` with `P(Bin(n, p) <= l - 1) <= a/2`; upper: the smallest `u` with
    /// `P(Bin(n, p) <= u - 1) >= 1 - a/2` (METRICS.md section 7). Takes about `2 log2(n)` incomplete beta functions.
    #[must_use]
    pub fn of(n: u64, quantile: Quantile, confidence: Confidence) -> Ranks {
        let (p, q) = shares(quantile);
        let tail = confidence.two_sided_tail();
        let below = |rank: u64| binomial::at_most(rank - 1, n, p, q);
        // Upper by the other tail, so that 0.975 need not be told from 0.9750000000000001.
        let above = |rank: u64| binomial::at_most(n - rank, n, q, p);
        let beyond_lower = first(1, n + 1, |rank| rank > n || below(rank) > tail);
        let upper = first(1, n + 1, |rank| rank > n || above(rank) <= tail);
        Ranks { lower: (beyond_lower > 1).then(|| beyond_lower - 1), upper: (upper <= n).then_some(upper) }
    }

    /// The same of `n` values that are worth `effective` independent ones: the ranks in `effective` (rounded down),
    /// at the same places in `n`, rounded outwards.
    ///
    /// Of `effective` independent values the one of rank r stands at r / (effective + 1) on average, and so does the
    /// one of rank r (n + 1) / (effective + 1) of the `n`. From `n` on nothing changes; below 1 there is no bound.
    #[must_use]
    pub fn effective(n: u64, effective: f64, quantile: Quantile, confidence: Confidence) -> Ranks {
        let few = whole_number(n, effective);
        let ranks = Ranks::of(few, quantile, confidence);
        let place = |rank: u64| u128::from(rank) * (u128::from(n) + 1);
        // Between 1 and n, as the ranks lie between 1 and `few`.
        Ranks {
            lower: ranks.lower.map(|rank| (place(rank) / (u128::from(few) + 1)) as u64),
            upper: ranks.upper.map(|rank| outwards(rank, few, n)),
        }
    }
}

/// An effective number as one of values, rounded down, at most `n`. Whatever is not a number counts as 0.
fn whole_number(n: u64, effective: f64) -> u64 {
    (effective.max(0.0) as u64).min(n)
}

/// The place in `n` of the value with this rank in `few`, rounded up.
fn outwards(rank: u64, few: u64, n: u64) -> u64 {
    (u128::from(rank) * (u128::from(n) + 1)).div_ceil(u128::from(few) + 1) as u64
}

/// How many independent values it takes until the interval of a quantile has an upper end: 36, 72, 368 and 3688 for
/// p90, p95, p99 and p99.9 at 95 %. `None` for the maximum, which no number bounds.
#[must_use]
pub fn n_for_upper_end(quantile: Quantile, confidence: Confidence) -> Option<u64> {
    let (p, _) = shares(quantile);
    let tail = confidence.two_sided_tail();
    // The upper end is missing while all values may lie below the quantile: p^n > a/2.
    least(|n| p.powf(n as f64) <= tail)
}

/// Whether `n_eff` independent values bound a quantile from above with 95 % (METRICS.md section 7: "supported").
#[must_use]
pub fn is_supported(quantile: Quantile, n_eff: f64) -> bool {
    n_for_upper_end(quantile, Confidence::C95).is_some_and(|n| n_eff >= n as f64)
}

/// LoadGen's early stopping: how many of `n` values may be above a limit while the quantile is below it, one-sided.
///
/// The largest `t` with `P(Bin(n, 1 - p) <= t) < 1 - confidence`; `None` where not even `t = 0` has it. LoadGen takes
/// 99 %.
#[must_use]
pub fn over_limit_allowed(n: u64, quantile: Quantile, confidence: Confidence) -> Option<u64> {
    let (p, q) = shares(quantile);
    let tail = confidence.one_sided_tail();
    first(0, n, |over| binomial::at_most(over, n, q, p) >= tail).checked_sub(1)
}

/// The least number of values of which `over` may be above the limit: 459 for p99, `over` 0 and 99 %.
///
/// `None` for the maximum, of which none may be above, ever.
#[must_use]
pub fn n_for_over_limit(over: u64, quantile: Quantile, confidence: Confidence) -> Option<u64> {
    let (p, q) = shares(quantile);
    let tail = confidence.one_sided_tail();
    least(|n| n > over && binomial::at_most(over, n, q, p) < tail)
}

/// The rank, from 1, of LoadGen's conservative estimate of a quantile: the `t`-th largest value, `t` being what
/// [`over_limit_allowed`] allows. `None` below one allowed, as it is for less than 662 values at p99 and 99 %.
#[must_use]
pub fn conservative_rank(n: u64, quantile: Quantile, confidence: Confidence) -> Option<u64> {
    let over = over_limit_allowed(n, quantile, confidence)?;
    (over >= 1).then(|| n - over + 1)
}

/// The same of `n` values that are worth `effective` independent ones, at the same place in `n`, rounded up.
#[must_use]
pub fn conservative_rank_effective(
    n: u64,
    effective: f64,
    quantile: Quantile,
    confidence: Confidence,
) -> Option<u64> {
    let few = whole_number(n, effective);
    conservative_rank(few, quantile, confidence).map(|rank| outwards(rank, few, n))
}

/// The shares below and above a quantile, each rounded once.
fn shares(quantile: Quantile) -> (f64, f64) {
    let (parts, whole) = (quantile.parts(), Quantile::MAX.parts());
    (f64::from(parts) / f64::from(whole), f64::from(whole - parts) / f64::from(whole))
}

/// The first of `low..=high` with `holds`, which once true stays so; `high` where it never is.
fn first(low: u64, high: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    high
}

/// The first number from 1 with `holds`, which once true stays so; `None` if it is above 2^48.
fn least(holds: impl Fn(u64) -> bool) -> Option<u64> {
    let high = (0..=48).map(|bits| 1 << bits).find(|n| holds(*n))?;
    Some(first(high / 2 + 1, high, holds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    fn quantile(percentile: &str) -> Quantile {
        percentile.parse().unwrap()
    }

    fn ranks(percentile: &str, n: u64) -> (Option<u64>, Option<u64>) {
        let Ranks { lower, upper } = Ranks::of(n, quantile(percentile), Confidence::C95);
        (lower, upper)
    }

    #[test]
    fn ranks_are_those_of_the_spec() {
        let spec = [
            ("50", 100, 40, 61),
            ("90", 100, 84, 96),
            ("95", 200, 184, 197),
            ("99", 368, 360, 368),
            ("99", 500, 490, 500),
            ("99", 1000, 983, 997),
            ("99", 10_000, 9880, 9920),
            ("99.9", 10_000, 9983, 9997),
        ];
        for (percentile, n, lower, upper) in spec {
            assert_eq!(ranks(percentile, n), (Some(lower), Some(upper)), "p{percentile} of {n}");
        }
    }

    #[test]
    fn below_the_counts_of_the_spec_there_is_no_upper_end() {
        for (percentile, n) in [("90", 36), ("95", 72), ("99", 368), ("99.9", 3688)] {
            assert_eq!(ranks(percentile, n - 1).1, None, "p{percentile} of {}", n - 1);
            assert_eq!(ranks(percentile, n).1, Some(n), "p{percentile} of {n}");
            assert_eq!(n_for_upper_end(quantile(percentile), Confidence::C95), Some(n));
            assert!(is_supported(quantile(percentile), n as f64));
            assert!(!is_supported(quantile(percentile), n as f64 - 0.01));
        }
        assert_eq!(n_for_upper_end(Quantile::MAX, Confidence::C95), None);
        assert!(!is_supported(Quantile::MAX, 1e12));
        assert!(!is_supported(Quantile::P50, f64::NAN));
    }

    /// The definition, rank by rank.
    #[test]
    fn bisection_finds_what_the_definition_says() {
        let mut stream = rng::stream(1, rng::Purpose::Choice, 0);
        for _ in 0..200 {
            let n = 1 + u64::from(rng::below(&mut stream, 200));
            let quantile = Quantile::from_parts(1 + rng::below(&mut stream, 99_999)).unwrap();
            let (p, q) = shares(quantile);
            let below = |rank: u64| binomial::at_most(rank - 1, n, p, q);
            let lower = (1..=n).rfind(|rank| below(*rank) <= 0.025);
            let upper = (1..=n).find(|rank| below(*rank) >= 0.975);
            assert_eq!(Ranks::of(n, quantile, Confidence::C95), Ranks { lower, upper }, "p{quantile} of {n}");
        }
    }

    #[test]
    fn the_extremes_have_one_end_at_most() {
        assert_eq!(ranks("50", 0), (None, None));
        assert_eq!(ranks("50", 5), (None, None));
        assert_eq!(ranks("50", 6), (Some(1), Some(6)));
        assert_eq!(ranks("100", 1000), (Some(1000), None));
        assert_eq!(ranks("0", 1000), (None, Some(1)));
    }

    #[test]
    fn fewer_independent_values_give_wider_ranks_at_the_same_places() {
        let of = |n, effective, q| Ranks::effective(n, effective, q, Confidence::C95);
        let (p50, p99) = (Quantile::P50, Quantile::P99);
        assert_eq!(of(1000, 1000.0, p99), Ranks::of(1000, p99, Confidence::C95));
        assert_eq!(of(1000, 1e9, p99), Ranks::of(1000, p99, Confidence::C95));
        // 40..61 of 100 are 40 and 61 parts of 101.
        assert_eq!(of(1000, 100.9, p50), Ranks { lower: Some(396), upper: Some(605) });
        assert_eq!(of(1000, 120.0, p99), Ranks { lower: Some(959), upper: None });
        for nothing in [0.0, 0.9, -4.0, f64::NAN] {
            assert_eq!(of(1000, nothing, p50), Ranks { lower: None, upper: None });
        }
        let full = of(7, 7.0, p50);
        assert_eq!(full, Ranks { lower: Some(1), upper: Some(7) });
    }

    #[test]
    fn a_conservative_estimate_of_fewer_independent_values_is_higher() {
        let of = |n, effective| conservative_rank_effective(n, effective, Quantile::P90, Confidence::C99);
        assert_eq!(of(681, 681.0), Some(681 - 50 + 1));
        assert_eq!(of(681, 1e9), of(681, 681.0));
        // 64 allow one above: the largest of 64, 64 of 65 parts of 682.
        assert_eq!(of(681, 64.5), Some((64 * 682_u64).div_ceil(65)));
        assert_eq!(of(681, 63.9), None);
    }

    #[test]
    fn loadgen_counts_are_those_of_the_spec() {
        let over = [0, 1, 2, 5, 10, 20, 50];
        let p99 = [459, 662, 838, 1307, 2010, 3304, 6898];
        let p90 = [44, 64, 81, 127, 197, 325, 681];
        for ((over, p99), p90) in over.into_iter().zip(p99).zip(p90) {
            for (q, n) in [(Quantile::P99, p99), (Quantile::P90, p90)] {
                assert_eq!(n_for_over_limit(over, q, Confidence::C99), Some(n), "{over} over p{q}");
                assert_eq!(over_limit_allowed(n, q, Confidence::C99), Some(over));
                assert_eq!(over_limit_allowed(n - 1, q, Confidence::C99), over.checked_sub(1));
            }
        }
        assert_eq!(over_limit_allowed(10_000, Quantile::P99, Confidence::C99), Some(77));
        assert_eq!(n_for_over_limit(0, Quantile::MAX, Confidence::C99), None);
        assert_eq!(over_limit_allowed(0, Quantile::P99, Confidence::C99), None);
    }

    #[test]
    fn the_conservative_estimate_begins_where_one_may_be_over() {
        for (percentile, n) in [("90", 64), ("95", 130), ("97", 219), ("99", 662), ("99.9", 6636)] {
            let of = |n| conservative_rank(n, quantile(percentile), Confidence::C99);
            assert_eq!((of(n - 1), of(n)), (None, Some(n)), "p{percentile}");
        }
        assert_eq!(conservative_rank(10_000, Quantile::P99, Confidence::C99), Some(10_000 - 76));
    }

    /// The normal approximation is good to a few ranks at this size: n p plus or minus 1.96 sqrt(n p q).
    #[test]
    fn a_hundred_million_values_have_ranks() {
        let n = 100_000_000_u64;
        let Ranks { lower, upper } = Ranks::of(n, Quantile::P99, Confidence::C95);
        let reach = 1.959_964 * (n as f64 * 0.99 * 0.01).sqrt();
        assert!((lower.unwrap() as f64 - (99e6 - reach)).abs() < 4.0, "{lower:?}");
        assert!((upper.unwrap() as f64 - (99e6 + reach)).abs() < 4.0, "{upper:?}");
    }
}
