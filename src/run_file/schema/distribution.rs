//! The distribution of one metric as stored: exact moments, quantiles by name, and the whole histogram.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::metric::{self, Metric};
use crate::stats::sort;
use crate::stats::{Histogram, Quantile};
use crate::summary::{Distribution, QuantileValue};

/// One metric of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistributionBlock {
    /// Unit of every value in it.
    pub unit: Unit,
    /// Number of values; 0 where the file of another tool does not say.
    pub n: u64,
    /// Smallest value; this and what follows `None` where the file of another tool does not say.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Sum of the values.
    pub sum: Option<f64>,
    /// Sum of their squares.
    pub sum_of_squares: Option<f64>,
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
    /// The values as a histogram: HdrHistogram V2, compressed, base64; it counts ns, or thousandths of a token per
    /// second. `None` where it was left out.
    pub histogram: Option<String>,
    /// Values beyond the histogram's range, counted in its last bucket.
    pub overflow: u64,
    /// How far the quantiles may be from the truth because events shared a read; absent where they are as they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounds: Option<BoundsBlock>,
}

/// Lower and upper bound of quantiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundsBlock {
    /// Number of values whose events shared a read.
    pub joined: u64,
    /// No quantile can be below these.
    #[serde(with = "quantiles")]
    pub low: Vec<QuantileValue>,
    /// Nor above these.
    #[serde(with = "quantiles")]
    pub high: Vec<QuantileValue>,
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
        match metric.unit() {
            metric::Unit::Nanoseconds => Unit::Nanoseconds,
            metric::Unit::TokensPerSecond => Unit::TokensPerSecond,
        }
    }
}

impl DistributionBlock {
    /// The stored form of `distribution`.
    #[must_use]
    pub fn new(distribution: &Distribution) -> DistributionBlock {
        let some = distribution.n > 0;
        DistributionBlock {
            unit: Unit::of(distribution.metric),
            n: distribution.n,
            min: Some(distribution.min),
            max: Some(distribution.max),
            sum: Some(distribution.sum),
            sum_of_squares: Some(distribution.sum_of_squares),
            mean: some.then(|| distribution.mean()),
            std: some.then(|| distribution.standard_deviation()),
            quantiles: distribution.quantiles.clone(),
            with_failures: distribution.with_failures.clone(),
            histogram: Some(distribution.histogram.to_base64()),
            overflow: distribution.histogram.overflow(),
            bounds: distribution.bounds.as_ref().map(|bounds| BoundsBlock {
                joined: bounds.joined,
                low: bounds.low.clone(),
                high: bounds.high.clone(),
            }),
        }
    }

    /// A distribution of which nothing is known, to be filled with what the file of another tool says.
    #[must_use]
    pub fn unknown(unit: Unit) -> DistributionBlock {
        DistributionBlock {
            unit,
            n: 0,
            min: None,
            max: None,
            sum: None,
            sum_of_squares: None,
            mean: None,
            std: None,
            quantiles: Vec::new(),
            with_failures: Vec::new(),
            histogram: None,
            overflow: 0,
            bounds: None,
        }
    }

    /// The quantile, if it is stored.
    #[must_use]
    pub fn quantile(&self, quantile: Quantile) -> Option<f64> {
        self.quantiles.iter().find(|q| q.parts == quantile.parts())?.value
    }

    /// Whether the quantile falls on a failed request when those count as infinitely slow.
    #[must_use]
    pub fn fails(&self, quantile: Quantile) -> bool {
        self.with_failures.iter().any(|q| q.parts == quantile.parts() && q.value.is_none())
    }

    /// The quantile of `histogram`, this block's own, within the exact extremes, ns; for metrics that are times, and
    /// quantiles that are not stored.
    #[must_use]
    pub fn quantile_of(&self, histogram: &Histogram, quantile: Quantile) -> Option<f64> {
        let shown = histogram.quantile(quantile)? as f64;
        Some(shown.min(self.max.unwrap_or(shown)).max(self.min.unwrap_or(shown)))
    }

    /// The whole histogram; `None` if it was left out or cannot be read.
    #[must_use]
    pub fn histogram(&self) -> Option<Histogram> {
        Histogram::from_base64(self.histogram.as_deref()?).ok()
    }
}

/// Quantiles as an object of names, in rising order.
mod quantiles {
    use serde::de::Error as _;
    use serde::ser::{Error as _, SerializeMap};
    use serde::{Deserializer, Serializer};

    use super::*;

    pub(super) fn serialize<S: Serializer>(values: &[QuantileValue], to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(values.len()))?;
        for QuantileValue { parts, value } in values {
            let quantile =
                Quantile::from_parts(*parts).ok_or_else(|| S::Error::custom("no such quantile"))?;
            map.serialize_entry(&format!("p{quantile}"), value)?;
        }
        map.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<QuantileValue>, D::Error> {
        let named = BTreeMap::<String, Option<f64>>::deserialize(from)?;
        let mut values = Vec::with_capacity(named.len());
        for (name, value) in named {
            let percentile = name.strip_prefix('p').unwrap_or_default().parse::<Quantile>();
            let quantile = percentile.map_err(|e| D::Error::custom(format_args!("`{name}`: {e}")))?;
            values.push(QuantileValue { parts: quantile.parts(), value });
        }
        sort::few_by_key(&mut values, |quantile| quantile.parts);
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
