//! The figures of a tool: distributions with its rule for percentiles, and single numbers.

use crate::stats::Quantile;
use crate::stats::quantile::{linear, nearest_rank};

/// How a percentile of n sorted values is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The value at place floor(n * p) from 0.
    Floor,
    /// Between the two values around place (n - 1) * p from 0, in proportion: numpy's usual rule.
    Linear,
    /// The value at place ceil(n * p) from 1.
    NearestRank,
}

impl Rule {
    /// In a word or two.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Rule::Floor => "floor(n p)",
            Rule::Linear => "linear",
            Rule::NearestRank => "nearest rank",
        }
    }
}

/// The values of a figure, one per request or one per gap, in its unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    sorted: Vec<f64>,
    rule: Rule,
}

impl Spread {
    /// Of `values` in any order; `None` without any.
    #[must_use]
    pub fn of(mut values: Vec<f64>, rule: Rule) -> Option<Spread> {
        values.sort_unstable_by(f64::total_cmp);
        (!values.is_empty()).then_some(Spread { sorted: values, rule })
    }

    /// How many there are, 1 or more.
    #[must_use]
    pub fn n(&self) -> usize {
        self.sorted.len()
    }

    /// Their sum.
    #[must_use]
    pub fn sum(&self) -> f64 {
        self.sorted.iter().sum()
    }

    /// Their mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum() / self.sorted.len() as f64
    }

    /// Population variance.
    #[must_use]
    pub fn variance(&self) -> f64 {
        let mean = self.mean();
        self.sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / self.sorted.len() as f64
    }

    /// The least.
    #[must_use]
    pub fn min(&self) -> f64 {
        self.sorted.first().copied().unwrap_or_default()
    }

    /// The greatest.
    #[must_use]
    pub fn max(&self) -> f64 {
        self.sorted.last().copied().unwrap_or_default()
    }

    /// The percentile by the tool's rule.
    #[must_use]
    pub fn percentile(&self, quantile: Quantile) -> f64 {
        let value = match self.rule {
            Rule::Linear => linear(&self.sorted, quantile),
            Rule::NearestRank => nearest_rank(&self.sorted, quantile),
            Rule::Floor => {
                let n = self.sorted.len();
                // In whole numbers: 0.99 in binary is a little less than it says.
                let place = n as u128 * u128::from(quantile.parts()) / u128::from(Quantile::MAX.parts());
                usize::try_from(place).ok().and_then(|place| self.sorted.get(place.min(n - 1)).copied())
            }
        };
        value.unwrap_or_default()
    }
}

/// A figure with a distribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The tool's name for it.
    pub name: &'static str,
    /// Its values.
    pub spread: Spread,
}

/// A single number of a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Total {
    /// The tool's name for it.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}
