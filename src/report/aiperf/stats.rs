//! Statistics as aiperf has them: percentiles by linear interpolation, population deviations.

use crate::stats::Quantile;
use crate::stats::quantile::linear;

/// The numbers of a metric, in its unit. What a metric has not, or what is infinite, is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Mean, or the only number.
    pub avg: Option<f64>,
    /// Least value.
    pub min: Option<f64>,
    /// Greatest value.
    pub max: Option<f64>,
    /// Sum.
    pub sum: Option<f64>,
    /// The percentiles of [`Stats::PERCENTILES`].
    pub percentiles: [Option<f64>; 9],
    /// Population standard deviation.
    pub std: Option<f64>,
    /// Values.
    pub count: Option<u64>,
}

impl Stats {
    /// The percentiles of a metric.
    pub const PERCENTILES: [u32; 9] = [1, 5, 10, 25, 50, 75, 90, 95, 99];

    /// A metric that is one number.
    #[must_use]
    pub fn single(value: f64) -> Stats {
        Stats { avg: finite(value), ..Stats::default() }
    }

    /// Of `values`, which may stand in any order; `None` without any.
    #[must_use]
    pub fn of(mut values: Vec<f64>) -> Option<Stats> {
        values.sort_unstable_by(f64::total_cmp);
        let (first, last) = (*values.first()?, *values.last()?);
        let n = values.len() as f64;
        let sum = values.iter().sum::<f64>();
        let mean = sum / n;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / n;
        Some(Stats {
            avg: finite(mean),
            min: finite(first),
            max: finite(last),
            sum: finite(sum),
            percentiles: Stats::PERCENTILES.map(|p| {
                let quantile = Quantile::from_parts(p * 1000)?;
                linear(&values, quantile).and_then(finite)
            }),
            std: finite(variance.sqrt()),
            count: Some(values.len() as u64),
        })
    }

    /// Of `values` and `failures` more that are infinite; `None` without any value. Percentiles are those of the nearest
    /// place, halves to the even one: between a number and infinity there is nothing to interpolate.
    #[must_use]
    pub fn adjusted(mut values: Vec<f64>, failures: u64) -> Option<Stats> {
        values.sort_unstable_by(f64::total_cmp);
        let all = values.len() as u64 + failures;
        let at = |p: u32| {
            let place = f64::from(p) / 100.0 * (all - 1) as f64;
            values.get(place.round_ties_even() as usize).copied()
        };
        Some(Stats {
            min: Some(*values.first()?),
            percentiles: Stats::PERCENTILES.map(at),
            count: Some(all),
            ..Stats::default()
        })
    }

    /// The percentile `p`, one of [`Stats::PERCENTILES`].
    #[must_use]
    pub fn percentile(&self, p: u32) -> Option<f64> {
        let place = Stats::PERCENTILES.iter().position(|of| *of == p)?;
        self.percentiles[place]
    }

    /// The numbers by aiperf's names, in the order of its files of values separated by commas.
    #[must_use]
    pub fn columns(&self) -> Vec<(String, Option<f64>)> {
        let percentiles = Stats::PERCENTILES.iter().zip(self.percentiles);
        let named = |name: &str, value| (name.to_owned(), value);
        let mut all = vec![
            named("avg", self.avg),
            named("min", self.min),
            named("max", self.max),
            named("sum", self.sum),
        ];
        all.extend(percentiles.map(|(p, value)| (format!("p{p}"), value)));
        all.push(named("std", self.std));
        all
    }
}

/// Nothing in a file is infinite or no number.
fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}
