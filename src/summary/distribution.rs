//! One metric over many requests: exact from values, or from a histogram.

use crate::metrics::Tally;
use crate::metrics::metric::Metric;
use crate::stats::quantile::nearest_rank;
use crate::stats::totals::{self, FloatSum};
use crate::stats::{Histogram, Quantile};
use crate::summary::{Bounds, Distribution, QuantileValue};

impl Distribution {
    /// The distribution of `values`, which ascend, one per request, beside `failed` requests that have none because
    /// they failed.
    pub(crate) fn of_sorted(metric: Metric, values: &[f64], failed: u64) -> Option<Distribution> {
        let (min, max) = (*values.first()?, *values.last()?);
        let mut histogram = Histogram::new();
        histogram.record_ascending(values.iter().map(|value| metric.to_ticks(*value)));
        let n = values.len() as u64;
        let (mut sum, mut sum_of_squares) = (FloatSum::default(), FloatSum::default());
        for value in values {
            sum.add(*value);
            sum_of_squares.add(value * value);
        }
        Some(Distribution {
            metric,
            n,
            min,
            max,
            sum: sum.total(),
            sum_of_squares: sum_of_squares.total(),
            quantiles: reported(|quantile| nearest_rank(values, quantile)),
            with_failures: reported(|quantile| value_at(values, quantile.rank(n + failed))),
            histogram,
            bounds: None,
        })
    }

    /// The distribution of gaps, which only a tally has, with what is uncertain of them.
    pub(super) fn pooled(metric: Metric, tally: &Tally) -> Option<Distribution> {
        let pooled = Distribution::of_histogram(metric, tally.histogram(metric), None)?;
        let bounds = tally.bounds(metric).map(|(low, high)| {
            let of = |histogram: &Histogram| {
                reported(|quantile| {
                    histogram.shown_quantile(quantile).map(|ticks| metric.from_ticks(ticks as f64))
                })
            };
            Bounds { joined: tally.joined_gaps(metric), low: of(&low), high: of(&high) }
        });
        Some(Distribution { bounds, ..pooled })
    }

    /// The distribution that `histogram` holds in the ticks of `metric`.
    ///
    /// `failed` are the requests without a value because they failed; `None` for pooled gaps, of which a request
    /// has any number.
    pub(crate) fn of_histogram(
        metric: Metric,
        histogram: &Histogram,
        failed: Option<u64>,
    ) -> Option<Distribution> {
        let totals = histogram.totals();
        let value = |ticks: u64| metric.from_ticks(ticks as f64);
        let with_failures = |failed| {
            reported(|quantile| histogram.shown_at_rank(quantile.rank(totals.n() + failed)).map(value))
        };
        Some(Distribution {
            metric,
            n: totals.n(),
            min: value(totals.min()?),
            max: value(totals.max()?),
            sum: metric.from_ticks(totals.sum() as f64),
            sum_of_squares: metric.from_ticks(metric.from_ticks(totals.sum_of_squares() as f64)),
            quantiles: reported(|quantile| histogram.shown_quantile(quantile).map(value)),
            with_failures: failed.map(with_failures).unwrap_or_default(),
            histogram: histogram.clone(),
            bounds: None,
        })
    }

    /// Mean, in the metric's unit; 0 without values.
    #[must_use]
    pub fn mean(&self) -> f64 {
        totals::mean(self.n, self.sum).unwrap_or(0.0)
    }

    /// Population standard deviation, in the metric's unit; 0 without values.
    #[must_use]
    pub fn standard_deviation(&self) -> f64 {
        totals::standard_deviation(self.n, self.sum, self.sum_of_squares).unwrap_or(0.0)
    }

    /// One of the reported quantiles ([`Quantile::REPORTED`]); `None` for any other.
    #[must_use]
    pub fn quantile(&self, quantile: Quantile) -> Option<f64> {
        self.quantiles.iter().find(|q| q.parts == quantile.parts())?.value
    }
}

impl Bounds {
    /// Between `distribution` and what it would be of `values`, which ascend and each lie on the same side of theirs.
    pub(super) fn between(joined: u64, distribution: &Distribution, values: &[f64]) -> Bounds {
        let sides = |pick: fn(f64, f64) -> f64| {
            reported(|quantile| Some(pick(distribution.quantile(quantile)?, nearest_rank(values, quantile)?)))
        };
        Bounds { joined, low: sides(f64::min), high: sides(f64::max) }
    }
}

fn reported(value: impl Fn(Quantile) -> Option<f64>) -> Vec<QuantileValue> {
    let of = |quantile: Quantile| QuantileValue { parts: quantile.parts(), value: value(quantile) };
    Quantile::REPORTED.into_iter().map(of).collect()
}

/// The value of this rank, from 1; `None` beyond the last, where the failed requests stand.
fn value_at(sorted: &[f64], rank: u64) -> Option<f64> {
    sorted.get(usize::try_from(rank.checked_sub(1)?).ok()?).copied()
}
