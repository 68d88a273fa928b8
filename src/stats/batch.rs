//! Batch means: the error of a mean whose values depend on their neighbours.
//!
//! Latencies behind a queue come in waves, so that a thousand of them may be worth ten. Means of long batches are
//! nearly independent, and their spread says what the values alone cannot.

use crate::stats::confidence::{Confidence, Interval};
use crate::stats::student;

/// A mean with its standard error from the means of consecutive batches.
///
/// Values stand in the order of their planned times. Batch i of b holds the values `i n / b` to `(i + 1) n / b`,
/// rounded down, so that sizes differ by one at most, nothing is left over, and the mean is that of all values.
/// The standard error is `sqrt(S^2 / n)`, where `S^2` is the sum of size times squared distance of a batch's mean from
/// the mean, over b - 1: for equal batches the textbook's (METRICS.md section 7; Law and Carson 1979).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchMeans {
    n: usize,
    batches: usize,
    mean: f64,
    /// `S^2`: what the variance of the values would be if independent ones gave such batches.
    long_run_variance: f64,
    /// The population variance of the values themselves.
    variance: f64,
}

impl BatchMeans {
    /// Batches of a level: the spec's.
    pub const BATCHES: usize = 10;

    /// The means of [`BatchMeans::BATCHES`] batches; `None` below two values for each, where a batch is no batch.
    #[must_use]
    pub fn of(values: &[f64]) -> Option<BatchMeans> {
        BatchMeans::in_batches(values, BatchMeans::BATCHES)
    }

    /// The means of so many batches, at least two; `None` below two values for each.
    ///
    /// Few large batches are less dependent, and pay for it with a larger factor of Student's t.
    #[must_use]
    pub fn in_batches(values: &[f64], batches: usize) -> Option<BatchMeans> {
        let n = values.len();
        if batches < 2 || n / 2 < batches {
            return None;
        }
        let mean = mean_of(values);
        let between: f64 = (0..batches)
            .map(|i| &values[edge(i, n, batches)..edge(i + 1, n, batches)])
            .map(|batch| batch.len() as f64 * (mean_of(batch) - mean).powi(2))
            .sum();
        Some(BatchMeans {
            n,
            batches,
            mean,
            long_run_variance: between / (batches - 1) as f64,
            variance: values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n as f64,
        })
    }

    /// Number of values.
    #[must_use]
    pub const fn n(&self) -> usize {
        self.n
    }

    /// Number of batches.
    #[must_use]
    pub const fn batches(&self) -> usize {
        self.batches
    }

    /// The mean of all values.
    #[must_use]
    pub const fn mean(&self) -> f64 {
        self.mean
    }

    /// The standard error of the mean.
    #[must_use]
    pub fn standard_error(&self) -> f64 {
        (self.long_run_variance / self.n as f64).sqrt()
    }

    /// The design effect DEFF: by how much the variance of the mean exceeds that of as many independent values. Below
    /// 1 where high values follow low ones. `None` where all values are equal.
    ///
    /// For a 0/1 indicator with share q the variance of the values is q (1 - q), so that this is the spec's formula.
    #[must_use]
    pub fn design_effect(&self) -> Option<f64> {
        (self.variance > 0.0).then(|| self.long_run_variance / self.variance)
    }

    /// The interval that holds the mean with `confidence`, by Student's t with b - 1 degrees of freedom.
    ///
    /// It is a point where all batches have one mean: for a share take [`crate::stats::Share`], which knows better.
    #[must_use]
    pub fn interval(&self, confidence: Confidence) -> Interval {
        Interval::around(self.mean, self.reach(confidence.two_sided_tail()))
    }

    /// What the mean is above with `confidence`, one-sided.
    #[must_use]
    pub fn lower(&self, confidence: Confidence) -> f64 {
        self.mean - self.reach(confidence.one_sided_tail())
    }

    /// What the mean is below with `confidence`, one-sided.
    #[must_use]
    pub fn upper(&self, confidence: Confidence) -> f64 {
        self.mean + self.reach(confidence.one_sided_tail())
    }

    fn reach(&self, tail: f64) -> f64 {
        student::quantile(tail, (self.batches - 1) as f64) * self.standard_error()
    }
}

/// Where batch `i` begins; the multiplication is wide because i n may not fit.
fn edge(i: usize, n: usize, batches: usize) -> usize {
    (i as u128 * n as u128 / batches as u128) as usize
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    fn draws(seed: u64, n: usize) -> Vec<f64> {
        let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
        (0..n).map(|_| rng::unit(&mut stream)).collect()
    }

    /// By hand: batches (1, 3), (5, 7), (3, 5) have means 2, 6, 4 about 4, and S^2 = 2 (4 + 4 + 0) / 2 = 8.
    #[test]
    fn three_batches_of_two_by_hand() {
        let means = BatchMeans::in_batches(&[1.0, 3.0, 5.0, 7.0, 3.0, 5.0], 3).unwrap();
        assert_eq!((means.n(), means.batches(), means.mean()), (6, 3, 4.0));
        assert!((means.standard_error() - (8.0_f64 / 6.0).sqrt()).abs() < 1e-15);
        // The values themselves spread by 22/6.
        assert!((means.design_effect().unwrap() - 8.0 / (22.0 / 6.0)).abs() < 1e-15);
        let reach = 4.302_652_729_749_464 * (8.0_f64 / 6.0).sqrt();
        let interval = means.interval(Confidence::C95);
        assert!(
            (interval.low - (4.0 - reach)).abs() < 1e-12 && (interval.high - (4.0 + reach)).abs() < 1e-12
        );
    }

    /// Batch size times the variance of the batch means over q (1 - q), as the spec has it.
    #[test]
    fn the_design_effect_of_an_indicator_is_the_formula_of_the_spec() {
        let indicator: Vec<f64> =
            draws(1, 1000).iter().zip(1..).map(|(u, i)| f64::from(*u < f64::from(i) / 1000.0)).collect();
        let share = indicator.iter().sum::<f64>() / 1000.0;
        let means: Vec<f64> = indicator.chunks(100).map(mean_of).collect();
        let variance = means.iter().map(|mean| (mean - share).powi(2)).sum::<f64>() / 9.0;
        let spec = 100.0 * variance / (share * (1.0 - share));
        let ours = BatchMeans::of(&indicator).unwrap().design_effect().unwrap();
        assert!((ours - spec).abs() < 1e-9 * spec && spec > 10.0, "{ours} {spec}");
    }

    #[test]
    fn a_remainder_is_spread_over_the_batches() {
        for n in [20, 21, 29, 1003] {
            let sizes: Vec<usize> = (0..10).map(|i| edge(i + 1, n, 10) - edge(i, n, 10)).collect();
            assert_eq!(sizes.iter().sum::<usize>(), n);
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
            let values = draws(2, n);
            assert!((BatchMeans::of(&values).unwrap().mean() - mean_of(&values)).abs() < 1e-15);
        }
    }

    #[test]
    fn too_few_values_have_no_batches() {
        assert_eq!(BatchMeans::of(&draws(3, 19)), None);
        assert!(BatchMeans::of(&draws(3, 20)).is_some());
        assert_eq!(BatchMeans::in_batches(&draws(3, 100), 1), None);
        assert_eq!(BatchMeans::of(&[]), None);
    }

    #[test]
    fn equal_values_have_no_error_and_no_design_effect() {
        let means = BatchMeans::of(&[1.0; 40]).unwrap();
        assert_eq!((means.standard_error(), means.design_effect()), (0.0, None));
        assert_eq!(means.interval(Confidence::C95), Interval { low: 1.0, high: 1.0 });
    }

    /// Of independent values the design effect is 1 and 95 % of the intervals hold the mean.
    #[test]
    fn independent_values_are_covered_as_often_as_claimed() {
        let repeats = 2000;
        let (mut held, mut effect) = (0, 0.0);
        for seed in 0..repeats {
            let means = BatchMeans::of(&draws(100 + seed, 103)).unwrap();
            held += u64::from(means.interval(Confidence::C95).contains(0.5));
            effect += means.design_effect().unwrap() / repeats as f64;
        }
        // Two standard errors of 2000 repeats are 1 %; the design effect varies by sqrt(2/9).
        assert!((0.94..=0.96).contains(&(held as f64 / repeats as f64)), "{held} of {repeats}");
        assert!((effect - 1.0).abs() < 0.03, "{effect}");
    }
}
