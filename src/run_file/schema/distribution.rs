//! The distribution of one metric as stored: exact moments, quantiles by name, and the whole histogram.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::metric::Metric;
use crate::stats::Histogram;
use crate::summary::{Distribution, QuantileValue};

/// One metric of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistributionBlock {
    /// Unit of every value in it.
    pub unit: Unit,
    /// Number of values.
    pub n: u64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Sum of the values.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_of_squares: f64,
    /// `sum / n`.
    pub mean: Option<f64>,
    /// Population standard deviation.
    pub std: Option<f64>,
    /// Quantiles by nearest rank, keyed `p50`, `p99.9`.
    #[serde(with = "quantiles")]
    pub quantiles: Vec<QuantileValue>,
    /// Quantiles with every failed request as infinitely slow; `null` where the rank falls on one. Empty for metrics
    /// that are not one per request.
    #[serde(with = "quantiles")]
    pub with_failures: Vec<QuantileValue>,
    /// The values as a histogram: HdrHistogram V2, compressed, base64. `None` where it was left out.
    pub histogram: Option<String>,
}

/// Unit of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Tokens per second.
    #[serde(rename = "tok/s")]
    TokensPerSecond,
}

impl Unit {
    /// The unit of `metric`.
    #[must_use]
    pub fn of(metric: Metric) -> Unit {
        match metric {
            Metric::UserSpeed => Unit::TokensPerSecond,
            _ => Unit::Nanoseconds,
        }
    }
}

impl DistributionBlock {
    /// The stored form of `distribution`.
    #[must_use]
    pub fn new(distribution: &Distribution) -> DistributionBlock {
        let n = distribution.n as f64;
        let some = distribution.n > 0;
        let mean = some.then(|| distribution.sum / n);
        let variance = mean.map(|mean| (distribution.sum_of_squares / n - mean * mean).max(0.0));
        DistributionBlock {
            unit: Unit::of(distribution.metric),
            n: distribution.n,
            min: distribution.min,
            max: distribution.max,
            sum: distribution.sum,
            sum_of_squares: distribution.sum_of_squares,
            mean,
            std: variance.map(f64::sqrt),
            quantiles: distribution.quantiles.clone(),
            with_failures: distribution.with_failures.clone(),
            histogram: Some(distribution.histogram.to_base64()),
        }
    }

    /// The quantile at `parts` per 100 000, if it is stored.
    #[must_use]
    pub fn quantile(&self, parts: u32) -> Option<f64> {
        self.quantiles.iter().find(|q| q.parts == parts)?.value
    }

    /// Whether the quantile at `parts` falls on a failed request when those count as infinitely slow.
    #[must_use]
    pub fn fails(&self, parts: u32) -> bool {
        self.with_failures.iter().any(|q| q.parts == parts && q.value.is_none())
    }

    /// The whole histogram; `None` if it was left out or cannot be read.
    #[must_use]
    pub fn histogram(&self) -> Option<Histogram> {
        Histogram::from_base64(self.histogram.as_deref()?).ok()
    }
}

/// The name of a quantile: 99 900 parts per 100 000 is `p99.9`.
#[must_use]
pub fn quantile_name(parts: u32) -> String {
    format!("p{}", f64::from(parts) / 1000.0)
}

/// The parts per 100 000 of a name; `None` if it is not one that [`quantile_name`] gives.
fn quantile_parts(name: &str) -> Option<u32> {
    let percent: f64 = name.strip_prefix('p')?.parse().ok()?;
    let parts = (percent * 1000.0).round();
    let parts = (0.0..=100_000.0).contains(&parts).then_some(parts as u32)?;
    (quantile_name(parts) == name).then_some(parts)
}

/// Quantiles as an object of names, in rising order.
mod quantiles {
    use serde::de::Error;
    use serde::ser::SerializeMap;
    use serde::{Deserializer, Serializer};

    use super::*;

    pub(super) fn serialize<S: Serializer>(values: &[QuantileValue], to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(values.len()))?;
        for quantile in values {
            map.serialize_entry(&quantile_name(quantile.parts), &quantile.value)?;
        }
        map.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<QuantileValue>, D::Error> {
        let named = BTreeMap::<String, Option<f64>>::deserialize(from)?;
        let mut values = Vec::with_capacity(named.len());
        for (name, value) in named {
            let parts = quantile_parts(&name)
                .ok_or_else(|| D::Error::custom(format_args!("`{name}` is not the name of a quantile")))?;
            values.push(QuantileValue { parts, value });
        }
        values.sort_by_key(|quantile| quantile.parts);
        Ok(values)
    }
}

/// Distributions by the metric's name; metrics that this tokload does not know are skipped.
pub(super) mod by_metric {
    use serde::de::Error;
    use serde::de::value::{Error as NameError, StrDeserializer};
    use serde::{Deserializer, Serializer};
    use serde_json::Value;

    use super::*;

    type Blocks = BTreeMap<Metric, DistributionBlock>;

    pub(in super::super) fn serialize<S: Serializer>(blocks: &Blocks, to: S) -> Result<S::Ok, S::Error> {
        blocks.serialize(to)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Blocks, D::Error> {
        let named = BTreeMap::<String, Value>::deserialize(from)?;
        let known = named.into_iter().filter_map(|(name, value)| {
            let metric = Metric::deserialize(StrDeserializer::<NameError>::new(&name)).ok()?;
            Some(DistributionBlock::deserialize(value).map(|block| (metric, block)).map_err(D::Error::custom))
        });
        known.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantile_names_lead_back_to_their_parts() {
        for parts in 0..=100_000 {
            assert_eq!(quantile_parts(&quantile_name(parts)), Some(parts));
        }
        assert_eq!(quantile_name(50_000), "p50");
        assert_eq!(quantile_name(99_990), "p99.99");
        for foreign in ["p", "50", "p050", "p50.0", "p101", "p-1", "pnan", "p1e1"] {
            assert_eq!(quantile_parts(foreign), None, "{foreign}");
        }
    }
}
