//! Whether a figure drifts over equal slices of time, by how much, and how sure that is.
//!
//! The slope is the median of the slopes between all pairs of slices (Theil 1950, Sen 1968): a slice that was much slower
//! than the rest moves it little. Whether it could be chance is Kendall's rank statistic (Mann 1945), whose variance is
//! widened by the correlation of the ranks that are left when the slope is taken off (Hamed and Rao 1998): a queue goes up
//! and down in waves longer than a slice, and neighbours then are worth less than their number. The interval of the slope
//! are the slopes at the ranks that this variance gives.

use crate::stats::student::normal_quantile;

/// Fewer slices than these say nothing of a drift.
pub const SLICES_MIN: usize = 8;

/// The drift of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// Change from one slice to the next.
    pub slope: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The rank statistic, a standard normal variable where nothing drifts; above 0 where the figure grows.
    pub z: f64,
    /// Median of the slices.
    pub level: f64,
    /// Slices that had a value.
    pub n: usize,
    /// How many independent ones they are worth.
    pub n_eff: f64,
}

impl Drift {
    /// The drift of `values`, one for each slice, `None` where it has none, with an interval that misses the true slope
    /// with the probability `tail` at either end.
    ///
    /// `None` below [`SLICES_MIN`] values and where all are equal. Compares every pair: for hundreds of slices.
    #[must_use]
    pub fn of(values: &[Option<f64>], tail: f64) -> Option<Drift> {
        let known: Vec<(f64, f64)> = values
            .iter()
            .enumerate()
            .filter_map(|(place, value)| Some((place as f64, (*value).filter(|value| value.is_finite())?)))
            .collect();
        let n = known.len();
        if n < SLICES_MIN {
            return None;
        }
        let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
        let mut score = 0_i64;
        for (place, late) in known.iter().enumerate() {
            for early in &known[..place] {
                slopes.push((late.1 - early.1) / (late.0 - early.0));
                score += i64::from(late.1 > early.1) - i64::from(late.1 < early.1);
            }
        }
        slopes.sort_unstable_by(f64::total_cmp);
        let slope = median(&slopes);
        let mut sorted: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let weight = |n: usize| (n as f64) * (n as f64 - 1.0) * (2.0 * n as f64 + 5.0);
        let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|equal| weight(equal.len())).sum();
        let plain = (weight(n) - ties) / 18.0;
        if plain <= 0.0 {
            return None;
        }
        let rest: Vec<f64> = known.iter().map(|(place, value)| value - slope * place).collect();
        let widening = widening(&rest);
        let variance = plain * widening;
        let reach = normal_quantile(tail) * variance.sqrt();
        let pairs = slopes.len() as f64;
        // The ranks of Sen's interval, from 1; beyond the first or the last slope there is none.
        let at = |rank: f64| slopes[(rank.max(1.0).min(pairs) as usize) - 1];
        Some(Drift {
            slope,
            low: at(((pairs - reach) / 2.0).floor()),
            high: at(((pairs + reach) / 2.0).ceil() + 1.0),
            z: (score - score.signum()) as f64 / variance.sqrt(),
            level: median(&sorted),
            n,
            n_eff: n as f64 / widening,
        })
    }
}

/// By how much the variance of the rank statistic is larger than that of independent values; at least 1.
///
/// Correlations of ranks count up to the first lag at which they are within what chance gives; further ones are noise,
/// and their sum would be as large as the series is long.
fn widening(values: &[f64]) -> f64 {
    let n = values.len();
    let ranks = ranks(values);
    let mean = (n as f64 + 1.0) / 2.0;
    let spread: f64 = ranks.iter().map(|rank| (rank - mean).powi(2)).sum();
    if spread <= 0.0 {
        return 1.0;
    }
    let chance = 1.0 / (n as f64).sqrt();
    let size = n as f64;
    let mut sum = 0.0;
    for lag in 1..=n / 3 {
        let pairs = ranks.iter().zip(&ranks[lag..]);
        let together: f64 = pairs.map(|(a, b)| (a - mean) * (b - mean)).sum();
        // What the taking off of mean and slope costs each correlation is about this much.
        let correlation = together / spread + (lag as f64 / size + 1.0) / size;
        if correlation <= chance {
            break;
        }
        let lag = lag as f64;
        sum += (size - lag) * (size - lag - 1.0) * (size - lag - 2.0) * correlation;
    }
    (1.0 + 2.0 / (size * (size - 1.0) * (size - 2.0)) * sum).max(1.0)
}

/// Ranks from 1, equal values having the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = first as f64 + (equal.len() as f64 + 1.0) / 2.0;
        equal.iter().for_each(|place| ranks[*place] = rank);
        first += equal.len();
    }
    ranks
}

/// Of sorted values, at least one.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    /// Values that keep a share `memory` of how far the one before was off, plus a slope.
    fn series(seed: u64, n: usize, memory: f64, slope: f64) -> Vec<Option<f64>> {
        let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
        let mut off = 0.0;
        let mut next = |place: usize| {
            let noise: f64 = (0..12).map(|_| rng::unit(&mut stream)).sum::<f64>() - 6.0;
            off = memory * off + noise;
            Some(100.0 + off + slope * place as f64)
        };
        (0..n).map(&mut next).collect()
    }

    #[test]
    fn a_straight_line_has_its_slope_and_no_doubt() {
        let line: Vec<Option<f64>> = (0..20).map(|i| Some(5.0 + 0.5 * f64::from(i))).collect();
        let drift = Drift::of(&line, 0.025).unwrap();
        assert_eq!((drift.slope, drift.low, drift.high, drift.n), (0.5, 0.5, 0.5, 20));
        // By hand: all 190 pairs grow, variance 20 * 19 * 45 / 18.
        assert!((drift.z - 189.0 / 950.0_f64.sqrt()).abs() < 1e-12);
        let down: Vec<Option<f64>> = line.iter().rev().copied().collect();
        assert_eq!(Drift::of(&down, 0.025).unwrap().slope, -0.5);
    }

    #[test]
    fn a_slice_without_a_value_and_one_that_stands_out_change_little() {
        let mut line: Vec<Option<f64>> = (0..20).map(|i| Some(5.0 + 0.5 * f64::from(i))).collect();
        (line[3], line[11]) = (None, Some(1e6));
        let drift = Drift::of(&line, 0.025).unwrap();
        assert!((drift.slope - 0.5).abs() < 1e-12 && drift.n == 19);
    }

    #[test]
    fn too_few_or_equal_values_say_nothing() {
        assert_eq!(Drift::of(&[Some(1.0); 20], 0.025), None);
        assert_eq!(Drift::of(&series(1, SLICES_MIN - 1, 0.0, 1.0), 0.025), None);
        assert_eq!(Drift::of(&[None; 30], 0.025), None);
        assert_eq!(Drift::of(&[Some(f64::NAN); 30], 0.025), None);
    }

    /// Nominal: 5 %. Without the widening 30 % of the correlated series would alarm.
    #[test]
    fn chance_alarms_about_as_often_as_it_should_also_in_waves() {
        for (memory, most) in [(0.0, 0.08), (0.3, 0.12), (0.6, 0.14)] {
            let repeats = 200;
            let alarms = (0..repeats)
                .filter(|seed| {
                    let drift = Drift::of(&series(*seed, 60, memory, 0.0), 0.025).unwrap();
                    drift.z.abs() > 1.96
                })
                .count();
            let share = alarms as f64 / f64::from(repeats as u32);
            assert!(share <= most, "{share} at memory {memory}");
        }
    }

    #[test]
    fn the_interval_holds_the_true_slope() {
        let held = (0..100)
            .filter(|seed| {
                let drift = Drift::of(&series(*seed, 60, 0.3, 0.05), 0.025).unwrap();
                drift.low <= 0.05 && 0.05 <= drift.high
            })
            .count();
        assert!(held >= 88, "{held} of 100");
    }

    #[test]
    fn correlated_slices_are_worth_fewer() {
        let mean = |memory: f64| {
            let worth = (0..50).map(|seed| Drift::of(&series(seed, 100, memory, 0.0), 0.025).unwrap().n_eff);
            worth.sum::<f64>() / 50.0
        };
        assert!(mean(0.0) > 90.0 && mean(0.6) < 60.0, "{} {}", mean(0.0), mean(0.6));
    }
}
