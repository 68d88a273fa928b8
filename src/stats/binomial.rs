//! The binomial distribution: its cumulative probability, and the exact bounds on a share that it gives
//! (Clopper and Pearson 1934).
//!
//! Everything goes through the incomplete beta function, so that 10^8 trials take milliseconds, and counts need not be
//! whole: an effective sample of 17.3 with 15.6 successes has bounds too.

use crate::stats::beta::{self, Point};
use crate::stats::confidence::{Confidence, Interval};

/// The probability of at most `k` successes in `n` trials, each a success with `p` (0 to 1) and a failure with `q`.
///
/// `q` is `1 - p`, given by the caller because 0.001 is nearer to one in a thousand than `1 - 0.999` is.
#[must_use]
pub fn at_most(k: u64, n: u64, p: f64, q: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    beta::regularised((n - k) as f64, k as f64 + 1.0, Point { x: q, y: p })
}

/// Successes among independent trials; neither need be a whole number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    successes: f64,
    trials: f64,
}

impl Sample {
    /// `successes` of `trials`.
    #[must_use]
    pub fn new(successes: u64, trials: u64) -> Sample {
        Sample::with_share(successes.min(trials) as f64 / trials as f64, trials as f64)
    }

    /// A share of successes (0 to 1) in `trials`, which may be an effective number.
    ///
    /// Without trials, or where a number is missing, the sample says nothing: its bounds are 0 and 1.
    #[must_use]
    pub fn with_share(share: f64, trials: f64) -> Sample {
        if trials > 0.0 && trials.is_finite() && (0.0..=1.0).contains(&share) {
            return Sample { successes: share * trials, trials };
        }
        Sample { successes: 0.0, trials: 0.0 }
    }

    /// The largest share that lies below the true one with `confidence`.
    #[must_use]
    pub fn lower(self, confidence: Confidence) -> f64 {
        self.low(confidence.one_sided_tail())
    }

    /// The smallest share that lies above the true one with `confidence`.
    #[must_use]
    pub fn upper(self, confidence: Confidence) -> f64 {
        self.high(confidence.one_sided_tail())
    }

    /// The interval that holds the true share with at least `confidence`, as much beyond each end.
    #[must_use]
    pub fn interval(self, confidence: Confidence) -> Interval {
        let tail = confidence.two_sided_tail();
        Interval { low: self.low(tail), high: self.high(tail) }
    }

    /// The share with which as many successes or more have probability `tail`.
    fn low(self, tail: f64) -> f64 {
        if self.successes <= 0.0 {
            return 0.0;
        }
        beta::quantile(self.successes, self.failures() + 1.0, tail)
    }

    /// The share with which as few successes or fewer have probability `tail`.
    fn high(self, tail: f64) -> f64 {
        if self.failures() <= 0.0 {
            return 1.0;
        }
        // By the failures, whose share is small where this matters.
        1.0 - beta::quantile(self.failures(), self.successes + 1.0, tail)
    }

    fn failures(self) -> f64 {
        self.trials - self.successes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    /// Term by term.
    fn at_most_by_terms(k: u64, n: u64, p: f64) -> f64 {
        let (mut term, mut sum) = ((1.0 - p).powf(n as f64), 0.0);
        for i in 0..=k.min(n) {
            sum += term;
            term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
        }
        sum
    }

    #[test]
    fn cumulative_probabilities_are_the_sums_of_their_terms() {
        let mut stream = rng::stream(1, rng::Purpose::Choice, 0);
        for _ in 0..2000 {
            let n = 1 + u64::from(rng::below(&mut stream, 400));
            let k = u64::from(rng::below(&mut stream, n as u32 + 2));
            let p = 0.001 + 0.8 * rng::unit(&mut stream);
            let (ours, naive) = (at_most(k, n, p, 1.0 - p), at_most_by_terms(k, n, p));
            assert!((ours - naive).abs() < 1e-11 * naive + 1e-14, "{k} of {n} at {p}: {ours} {naive}");
        }
        assert_eq!(at_most(5, 5, 0.3, 0.7), 1.0);
        assert_eq!(at_most(0, 0, 0.3, 0.7), 1.0);
        assert_eq!((at_most(0, 9, 0.0, 1.0), at_most(8, 9, 1.0, 0.0)), (1.0, 0.0));
    }

    /// References: mpmath at 40 digits.
    #[test]
    fn a_hundred_million_trials_keep_their_digits() {
        for (k, n, parts, reference) in LARGE {
            let (p, q) = (parts / 1000.0, (1000.0 - parts) / 1000.0);
            let ours = at_most(k, n, p, q);
            assert!((ours / reference - 1.0).abs() < 1e-9, "{k} of {n} at {p}: {ours} {reference}");
        }
    }

    /// METRICS.md section 12: misses with which a target is surely met (95 %, one-sided), and surely missed.
    #[test]
    fn independent_limits_of_attainment_are_those_of_the_spec() {
        let allowed = |n: u64, target| {
            (0..=n).take_while(|miss| Sample::new(n - miss, n).lower(Confidence::C95) >= target).count() - 1
        };
        let fails = |n: u64, target| {
            (0..=n).find(|miss| Sample::new(n - miss, n).upper(Confidence::C95) < target).unwrap()
        };
        for (n, misses, certain) in [(64, 2, 12), (100, 4, 16), (200, 12, 28), (500, 38, 62), (1000, 84, 117)]
        {
            assert_eq!((allowed(n, 0.9), fails(n, 0.9)), (misses, certain), "90 % of {n}");
        }
        for (n, misses, certain) in [(300, 0, 7), (500, 1, 10), (1000, 4, 16), (2000, 12, 29)] {
            assert_eq!((allowed(n, 0.99), fails(n, 0.99)), (misses, certain), "99 % of {n}");
        }
    }

    /// At a bound, what was seen or worse has just the probability of the tail.
    #[test]
    fn bounds_are_where_the_tail_is_spent() {
        let mut stream = rng::stream(2, rng::Purpose::Choice, 0);
        for _ in 0..300 {
            let n = 2 + u64::from(rng::below(&mut stream, 300));
            let k = 1 + u64::from(rng::below(&mut stream, n as u32 - 1));
            let Interval { low, high } = Sample::new(k, n).interval(Confidence::C95);
            assert!(low < k as f64 / n as f64 && k as f64 / (n as f64) < high);
            assert!((1.0 - at_most(k - 1, n, low, 1.0 - low) - 0.025).abs() < 1e-9, "{k} of {n}");
            assert!((at_most(k, n, high, 1.0 - high) - 0.025).abs() < 1e-9, "{k} of {n}");
        }
    }

    /// Without failures the bound has a closed form; without trials there is none.
    #[test]
    fn extremes_have_one_bound() {
        let all = Sample::with_share(1.0, 9.5);
        assert_eq!(all.interval(Confidence::C95).high, 1.0);
        assert!((all.lower(Confidence::C95) - 0.05_f64.powf(1.0 / 9.5)).abs() < 1e-12);
        assert!(
            (Sample::new(0, 300).upper(Confidence::C95) - (1.0 - 0.05_f64.powf(1.0 / 300.0))).abs() < 1e-12
        );
        let nothing = Interval { low: 0.0, high: 1.0 };
        for sample in [Sample::new(0, 0), Sample::with_share(f64::NAN, 5.0), Sample::with_share(0.5, -1.0)] {
            assert_eq!(sample.interval(Confidence::C99), nothing);
        }
    }

    const LARGE: [(u64, u64, f64, f64); 9] = [
        (1000500, 100000000, 10.0, 0.6925684976584211),
        (999000, 100000000, 10.0, 0.15755996411226272),
        (995000, 100000000, 10.0, 2.469397259059276e-07),
        (99002000, 100000000, 990.0, 0.9778413950155277),
        (50000000, 100000000, 500.0, 0.5000398942279404),
        (49980000, 100000000, 500.0, 3.168462083897178e-05),
        (99900, 1000000, 100.0, 0.370219882244035),
        (900, 1000000, 1.0, 0.0006940154622868569),
        (999000, 1000000, 999.0, 0.504211555166992),
    ];
}
