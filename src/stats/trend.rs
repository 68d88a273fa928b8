//! Whether a level had a steady state: where it begins, whether there is one, whether the server kept up.
//!
//! Works on means of equal slices of time. Which series that is (in-flight, or p50 of TTFT) and what follows from it is
//! decided above.

/// How many values at the front of a series belong to its start: MSER-5 (White 1997, Spratt 1998; METRICS.md section 9).
///
/// Means of five values are taken (a last group of fewer is left out). The cut is the number of means `d`, of the
/// first half, whose removal leaves the least `variance / (n - d)`: the smallest standard error, so that what is
/// removed is balanced against what is lost. The earliest of equal ones. `None` where the least lies at the far end of
/// that half, which means that the series still settles there and has no steady state to show, and below ten values.
#[must_use]
pub fn mser5(values: &[f64]) -> Option<usize> {
    let means: Vec<f64> = values.chunks_exact(GROUP).map(mean_of).collect();
    if means.len() < 2 {
        return None;
    }
    let last = means.len() / 2;
    // From the back, as a running mean and sum of squared distances (Welford), which do not cancel.
    let (mut mean, mut squares) = (0.0, 0.0);
    let mut best = (f64::INFINITY, last);
    for (d, value) in means.iter().enumerate().rev() {
        let left = (means.len() - d) as f64;
        let distance = value - mean;
        mean += distance / left;
        squares += distance * (value - mean);
        let error = squares / (left * left);
        if d <= last && error <= best.0 {
            best = (error, d);
        }
    }
    (best.1 < last).then_some(best.1 * GROUP)
}

const GROUP: usize = 5;

/// Kendall's rank statistic of a series against time, as a standard normal variable under no trend (Mann 1945): above
/// 0 where the series grows. With the usual corrections for ties and continuity; 0 for fewer than three values and
/// where all are equal.
///
/// Compares every pair, so it is meant for some dozens of values; those that are no numbers take no part.
#[must_use]
pub fn mann_kendall(values: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    let mut score = 0_i64;
    for (i, late) in sorted.iter().enumerate() {
        for early in &sorted[..i] {
            score += i64::from(late > early) - i64::from(late < early);
        }
    }
    if sorted.len() < 3 {
        return 0.0;
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let weight = |n: usize| (n as f64) * (n as f64 - 1.0) * (2.0 * n as f64 + 5.0);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|equal| weight(equal.len())).sum();
    let variance = (weight(sorted.len()) - ties) / 18.0;
    if variance <= 0.0 {
        return 0.0;
    }
    (score - score.signum()) as f64 / variance.sqrt()
}

/// How a series moves over a level, from the means of equal slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// [`mann_kendall`] of the slices.
    pub z: f64,
    /// Mean of the first quarter of the slices.
    pub first_quarter: f64,
    /// Mean of the last quarter.
    pub last_quarter: f64,
}

impl Trend {
    /// Slices that the rule is meant for.
    pub const SLICES: usize = 20;
    /// Growth that chance gives once in a hundred steady levels.
    pub const Z_MAX: f64 = 2.33;
    /// Growth that matters: last over first quarter.
    pub const GROWTH_MAX: f64 = 1.5;

    /// The trend of the means of equal slices, [`Trend::SLICES`] of them; `None` below four, which have no quarters.
    #[must_use]
    pub fn of(slices: &[f64]) -> Option<Trend> {
        let quarter = slices.len() / 4;
        if quarter == 0 {
            return None;
        }
        Some(Trend {
            z: mann_kendall(slices),
            first_quarter: mean_of(&slices[..quarter]),
            last_quarter: mean_of(&slices[slices.len() - quarter..]),
        })
    }

    /// Whether the level grew: surely (z above 2.33) and by much (last quarter above 1.5 of the first). Either alone
    /// is common in steady levels; METRICS.md section 9 has the measured alarms of both together.
    #[must_use]
    pub fn is_growing(&self) -> bool {
        self.z > Trend::Z_MAX && self.last_quarter > Trend::GROWTH_MAX * self.first_quarter
    }
}

/// Whether a server fell behind: fewer than 95 % of the requests planned in a window were completed in it. Nothing
/// planned is no load.
#[must_use]
pub fn is_saturated(completed: u64, planned: u64) -> bool {
    u128::from(completed) * 100 < u128::from(planned) * 95
}

fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    fn noise(seed: u64, n: usize) -> Vec<f64> {
        let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
        (0..n).map(|_| rng::unit(&mut stream)).collect()
    }

    /// The definition: for each cut the variance of what is left over its number.
    fn mser5_by_definition(values: &[f64]) -> Option<usize> {
        let means: Vec<f64> = values.chunks_exact(5).map(mean_of).collect();
        let last = means.len() / 2;
        let error = |d: usize| {
            let left = &means[d..];
            let mean = mean_of(left);
            left.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (left.len() * left.len()) as f64
        };
        let best = (0..=last).min_by(|a, b| error(*a).total_cmp(&error(*b)))?;
        (best < last).then_some(best * 5)
    }

    #[test]
    fn the_cut_is_where_the_standard_error_is_least() {
        for seed in 0..60 {
            let ramp = seed as usize % 70;
            let mut values = noise(seed, 103 + seed as usize);
            values.iter_mut().take(ramp).enumerate().for_each(|(i, x)| *x -= 0.1 * (ramp - i) as f64);
            assert_eq!(mser5(&values), mser5_by_definition(&values), "seed {seed}");
        }
    }

    #[test]
    fn a_start_is_cut_and_a_steady_series_is_not() {
        let mut filling = vec![16.0; 200];
        (0..30).for_each(|i| filling[i] = i as f64 / 2.0);
        assert_eq!(mser5(&filling), Some(30));
        assert_eq!(mser5(&[7.0; 100]), Some(0));
        let cuts: Vec<usize> = (0..50).filter_map(|seed| mser5(&noise(seed, 500))).collect();
        assert!(cuts.len() >= 45 && cuts.iter().sum::<usize>() / cuts.len() < 60, "{cuts:?}");
    }

    #[test]
    fn what_never_settles_has_no_cut() {
        let growing: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(mser5(&growing), None);
        assert_eq!(mser5(&[1.0; 9]), None);
        assert_eq!(mser5(&[]), None);
        assert_eq!(mser5(&[1.0; 10]), Some(0));
    }

    /// By hand: 1, 2, 3, 4 has score 6 and variance 4 * 3 * 13 / 18.
    #[test]
    fn mann_kendall_by_hand() {
        let z = 5.0 / (156.0_f64 / 18.0).sqrt();
        assert!((mann_kendall(&[1.0, 2.0, 3.0, 4.0]) - z).abs() < 1e-15);
        assert!((mann_kendall(&[4.0, 3.0, 2.0, 1.0]) + z).abs() < 1e-15);
        // 1, 2, 2, 3: score 5; the tie takes 2 * 1 * 9 from the weight of 156.
        assert!((mann_kendall(&[1.0, 2.0, 2.0, 3.0]) - 4.0 / (138.0_f64 / 18.0).sqrt()).abs() < 1e-15);
        assert_eq!(mann_kendall(&[1.0, 3.0, 2.0, f64::NAN]), mann_kendall(&[1.0, 3.0, 2.0]));
        assert_eq!(mann_kendall(&[5.0; 20]), 0.0);
        assert_eq!(mann_kendall(&[1.0, 2.0]), 0.0);
    }

    #[test]
    fn noise_alarms_about_once_in_a_hundred() {
        let repeats = 3000;
        let alarms = (0..repeats).filter(|seed| mann_kendall(&noise(*seed, 20)) > Trend::Z_MAX).count();
        // 0.99 % expected; two standard errors are 0.36 %.
        assert!((18..=42).contains(&alarms), "{alarms} of {repeats}");
    }

    #[test]
    fn growth_must_be_sure_and_large() {
        let slices = |from: f64, to: f64| -> Vec<f64> {
            (0..20).map(|i| from + (to - from) * f64::from(i) / 19.0).collect()
        };
        let doubling = Trend::of(&slices(10.0, 20.0)).unwrap();
        assert!(doubling.is_growing() && doubling.z > 6.0);
        assert!((doubling.first_quarter - (10.0 + 20.0 / 19.0)).abs() < 1e-12);
        assert!((doubling.last_quarter - (20.0 - 20.0 / 19.0)).abs() < 1e-12);
        // Sure, but small; falling; large, but one slice only.
        assert!(!Trend::of(&slices(10.0, 14.0)).unwrap().is_growing());
        assert!(!Trend::of(&slices(20.0, 10.0)).unwrap().is_growing());
        let mut outlier = vec![10.0; 20];
        outlier[18] = 1000.0;
        assert!(!Trend::of(&outlier).unwrap().is_growing());
        // From nothing to something is growth without a bound.
        assert!(Trend::of(&slices(0.0, 1.0)).unwrap().is_growing());
        assert!(!Trend::of(&[0.0; 20]).unwrap().is_growing());
        assert_eq!(Trend::of(&[1.0; 3]), None);
    }

    #[test]
    fn a_server_is_saturated_below_95_percent() {
        assert!(is_saturated(94, 100) && !is_saturated(95, 100) && !is_saturated(100, 100));
        assert!(!is_saturated(0, 0) && is_saturated(0, 1));
        assert!(is_saturated(u64::MAX / 2, u64::MAX));
    }
}
