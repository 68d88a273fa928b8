//! The interval of a mean over independent repeats, such as runs with new seeds against a fresh server.
//!
//! Independent by what was done, not by assumption: nothing need be known about what happens inside a run. That is why
//! a few repeats say more about a loaded server than many requests of one run do.

use crate::stats::confidence::{Confidence, Interval};
use crate::stats::student;

/// One figure of several independent repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repeats {
    n: usize,
    mean: f64,
    sd: f64,
}

impl Repeats {
    /// Repeats from which a mean may be called known (METRICS.md section 7).
    pub const ENOUGH: usize = 5;

    /// The repeats' `values`; `None` below two, which have no spread, and where one is not finite.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<Repeats> {
        let n = values.len();
        if n < 2 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Repeats { n, mean, sd: (squares / (n - 1) as f64).sqrt() })
    }

    /// Number of repeats.
    #[must_use]
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Their mean.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// Their standard deviation, that of a sample (n - 1).
    #[must_use]
    pub const fn standard_deviation(&self) -> f64 {
        self.sd
    }

    /// The interval that holds the mean of all possible repeats with `confidence`, by Student's t with n - 1 degrees
    /// of freedom. A point where all repeats agree.
    #[must_use]
    pub fn interval(&self, confidence: Confidence) -> Interval {
        let t = student::quantile(confidence.two_sided_tail(), (self.n - 1) as f64);
        Interval::around(self.mean, t * self.sd / (self.n as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    /// 2, 4, 6, 8, 10: mean 6, variance 10, t of 4 degrees 2.776.
    #[test]
    fn five_repeats_by_hand() {
        let repeats = Repeats::of(&[2.0, 4.0, 6.0, 8.0, 10.0]).unwrap();
        assert_eq!((repeats.n(), repeats.mean()), (5, 6.0));
        assert!((repeats.standard_deviation() - 10.0_f64.sqrt()).abs() < 1e-15);
        let interval = repeats.interval(Confidence::C95);
        let reach = 2.776_445_105_197_794 * 2.0_f64.sqrt();
        assert!(
            (interval.low - (6.0 - reach)).abs() < 1e-12 && (interval.high - (6.0 + reach)).abs() < 1e-12
        );
    }

    #[test]
    fn one_repeat_has_no_interval() {
        assert_eq!(Repeats::of(&[]), None);
        assert_eq!(Repeats::of(&[1.0]), None);
        assert_eq!(Repeats::of(&[1.0, f64::INFINITY, 2.0]), None);
        let equal = Repeats::of(&[3.0; 4]).unwrap();
        assert_eq!(equal.interval(Confidence::C99), Interval { low: 3.0, high: 3.0 });
    }

    #[test]
    fn intervals_hold_the_mean_as_often_as_claimed() {
        let mut stream = rng::stream(1, rng::Purpose::Choice, 0);
        let rounds = 4000;
        let held = (0..rounds)
            .filter(|_| {
                // Sums of six are near enough to normal.
                let values: Vec<f64> = (0..5).map(|_| (0..6).map(|_| rng::unit(&mut stream)).sum()).collect();
                Repeats::of(&values).unwrap().interval(Confidence::C95).contains(3.0)
            })
            .count();
        assert!((0.943..=0.957).contains(&(held as f64 / f64::from(rounds))), "{held} of {rounds}");
    }
}
