//! How much the values of a series depend on those before: its design effect from its autocorrelations.
//!
//! Batch means see only what varies between a few batches. A short level near saturation sees one wave or none, and
//! its batches then agree by chance; the autocorrelations still tell how long a wave lasts.

/// The design effect of the mean of `values`, which stand in the order of their planned times: 1 + 2 times the sum of
/// the autocorrelations, at least 1. `None` where all values are equal, or where there are fewer than 4.
///
/// The sum ends where Geyer's initial monotone sequence does (Geyer 1992): autocovariances are added in pairs while
/// the sums of the pairs are positive, and none counts for more than the one before. Later ones are noise.
///
/// Values that are no numbers or infinite (a failed request has no latency) count as the largest that is finite.
/// Above [`GROUPS_MAX`] values, means of consecutive groups stand for them, so that the work has a bound: at most
/// half as many lags, some 10^7 multiplications.
#[must_use]
pub fn design_effect(values: &[f64]) -> Option<f64> {
    if values.len() < 4 {
        return None;
    }
    let deviations = deviations(values)?;
    let variance = mean_square(&deviations);
    let size = values.len().div_ceil(GROUPS_MAX);
    if size == 1 {
        return Some((long_run_variance(&deviations) / variance).max(1.0));
    }
    // Whole groups only. The variance of a mean of groups is that of their values' mean, the group counts that often.
    let groups: Vec<f64> =
        deviations.chunks_exact(size).map(|group| group.iter().sum::<f64>() / size as f64).collect();
    Some((size as f64 * long_run_variance(&groups) / variance).max(1.0))
}

/// Most values of which autocorrelations are taken one by one.
pub const GROUPS_MAX: usize = 4096;

/// The distances of the values from their mean, in units of the largest; `None` if there are none.
fn deviations(values: &[f64]) -> Option<Vec<f64>> {
    let largest = values.iter().copied().filter(|value| value.is_finite()).reduce(f64::max)?;
    let finite = values.iter().map(|value| if value.is_finite() { *value } else { largest });
    let mean = finite.clone().sum::<f64>() / values.len() as f64;
    let reach = finite.clone().fold(0.0_f64, |reach, value| reach.max((value - mean).abs()));
    // A mean is off by a few roundings; that is no variation.
    if reach <= 1e-12 * mean.abs() {
        return None;
    }
    Some(finite.map(|value| (value - mean) / reach).collect())
}

fn mean_square(deviations: &[f64]) -> f64 {
    autocovariance(deviations, 0)
}

/// The sum of the autocovariances over all lags of both signs, as far as they can be told from noise.
fn long_run_variance(deviations: &[f64]) -> f64 {
    let pairs = (0..deviations.len() / 4)
        .map(|pair| autocovariance(deviations, 2 * pair) + autocovariance(deviations, 2 * pair + 1));
    let mut least = f64::INFINITY;
    let positive: f64 = pairs
        .map_while(|pair| {
            least = pair.min(least);
            (least > 0.0).then_some(least)
        })
        .sum();
    // Lag 0 is one value of two equal signs.
    2.0 * positive - mean_square(deviations)
}

/// Divided by n at every lag, which keeps the whole sequence that of some process.
fn autocovariance(deviations: &[f64], lag: usize) -> f64 {
    let products = deviations.iter().zip(&deviations[lag..]).map(|(early, late)| early * late);
    products.sum::<f64>() / deviations.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    /// `x <- phi x + noise`: the autocorrelation at lag k is `phi^k`, the design effect `(1 + phi) / (1 - phi)`.
    fn autoregressive(seed: u64, phi: f64, n: usize) -> Vec<f64> {
        let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
        let mut x = 0.0;
        (0..n + 500)
            .map(|_| {
                x = phi * x + rng::unit(&mut stream) - 0.5;
                x
            })
            .skip(500)
            .collect()
    }

    #[test]
    fn the_design_effect_of_an_autoregression_is_known() {
        for (phi, tolerance) in [(0.0, 0.1), (0.5, 0.15), (0.9, 0.15), (0.98, 0.25)] {
            let expected = (1.0 + phi) / (1.0 - phi);
            let repeats = 12;
            let mean = (0..repeats)
                .map(|seed| design_effect(&autoregressive(seed, phi, 4000)).unwrap() / repeats as f64)
                .sum::<f64>();
            assert!((mean / expected - 1.0).abs() < tolerance, "phi {phi}: {mean} {expected}");
        }
    }

    /// Grouping changes the way, not the number.
    #[test]
    fn a_long_series_is_grouped_to_the_same_effect() {
        let long = autoregressive(5, 0.95, 40_000);
        let grouped = design_effect(&long).unwrap();
        let parts: f64 = long.chunks(4000).map(|part| design_effect(part).unwrap() / 10.0).sum();
        assert!((grouped / 39.0 - 1.0).abs() < 0.2, "{grouped}");
        assert!((parts / 39.0 - 1.0).abs() < 0.2, "{parts}");
    }

    /// By hand, for 1, 2, 3, 4 about 2.5: autocovariances 5/4 and 1.25/4 make one pair, the only one that 4 values
    /// have; 2 (5 + 1.25) / 4 - 5 / 4 over 5 / 4 is 1.5.
    #[test]
    fn four_values_by_hand() {
        assert!((design_effect(&[1.0, 2.0, 3.0, 4.0]).unwrap() - 1.5).abs() < 1e-12);
        assert_eq!(design_effect(&[1.0, 2.0, 3.0]), None);
    }

    #[test]
    fn alternation_is_not_worth_more_than_independence() {
        let zigzag: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        assert_eq!(design_effect(&zigzag), Some(1.0));
    }

    #[test]
    fn constants_have_no_correlation() {
        assert_eq!(design_effect(&[0.1; 1000]), None);
        assert_eq!(design_effect(&[f64::NAN; 10]), None);
        assert_eq!(design_effect(&[f64::INFINITY; 10]), None);
    }

    #[test]
    fn scale_and_origin_make_no_difference() {
        let series = autoregressive(7, 0.8, 1000);
        let base = design_effect(&series).unwrap();
        let moved: Vec<f64> = series.iter().map(|x| 1e9 + 1e7 * x).collect();
        assert!((design_effect(&moved).unwrap() / base - 1.0).abs() < 1e-6);
    }

    #[test]
    fn a_failure_counts_as_the_slowest() {
        let mut failed = autoregressive(8, 0.8, 500);
        let largest = failed.iter().copied().fold(f64::MIN, f64::max);
        let mut slow = failed.clone();
        (failed[100], failed[101]) = (f64::INFINITY, f64::NAN);
        (slow[100], slow[101]) = (largest, largest);
        // Unless one of the two was the largest itself.
        assert!(failed.contains(&largest));
        assert_eq!(design_effect(&failed), design_effect(&slow));
    }
}
