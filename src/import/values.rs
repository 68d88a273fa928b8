//! Distributions of what a file says: of single values, or of a mean alone.

use super::Error;
use crate::metrics::metric::Metric;
use crate::run_file::schema::{DistributionBlock, Unit};
use crate::stats::Histogram;
use crate::summary::Distribution;

/// The distribution of `values`, in any order; `None` without any.
pub(super) fn of_values(metric: Metric, mut values: Vec<f64>) -> Option<(Metric, DistributionBlock)> {
    values.sort_unstable_by(f64::total_cmp);
    let distribution = Distribution::of_sorted(metric, &values, 0)?;
    Some((metric, plain(&distribution)))
}

/// The distribution that a histogram holds; `None` of an empty one.
pub(super) fn of_histogram(metric: Metric, histogram: &Histogram) -> Option<(Metric, DistributionBlock)> {
    let distribution = Distribution::of_histogram(metric, histogram, None)?;
    Some((metric, plain(&distribution)))
}

/// How many failed beside these values no file of this kind says.
fn plain(distribution: &Distribution) -> DistributionBlock {
    DistributionBlock { with_failures: Vec::new(), ..DistributionBlock::new(distribution) }
}

/// The distribution of which the mean is known, and its deviation if the file says it; `n` is 0 where it does not say
/// how many values there were.
pub(super) fn of_mean(metric: Metric, mean: f64, std: Option<f64>, n: u64) -> (Metric, DistributionBlock) {
    let block = DistributionBlock {
        mean: Some(mean),
        std,
        sum: (n > 0).then_some(mean * n as f64),
        n,
        ..DistributionBlock::unknown(Unit::of(metric))
    };
    (metric, block)
}

/// A number that can be one of a measurement.
pub(super) fn positive(value: f64, key: &str) -> std::result::Result<f64, Error> {
    if value.is_finite() && value >= 0.0 {
        return Ok(value);
    }
    Err(Error::Value { key: key.to_owned(), wrong: format!("{value} cannot be measured") })
}
