//! How long prompts and answers are, as a plan states it.
//!
//! Owns the types and their form in a file; drawing a length is `workload::lengths`'s business.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::table::Table;

/// The length of each prompt in words, or of each answer in tokens.
///
/// In a file a plain number is the length of all, and a table says how one is drawn for each request:
/// `input_words = { distribution = "lognormal", median = 600, sigma = 1 }`.
#[derive(Clone, Debug, PartialEq)]
pub enum Lengths {
    /// Each has its own.
    Drawn(Distribution),
    /// All have this one.
    Fixed(u32),
}

/// How a length is drawn. Bounds are inclusive and part of the draw as stated; a lower one is 1 and an upper one
/// [`Lengths::MAX`] where it is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "distribution", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// One of a table, by its weight: what was counted somewhere.
    Empirical(Table),
    /// Gamma, rounded to the nearest (half up), moved to a bound that it is beyond.
    Gamma {
        /// The mean.
        mean: f64,
        /// The shape: 1 is exponential, above 1 has a hump. The coefficient of variation is `1 / sqrt(shape)`.
        shape: f64,
        /// Lower bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u32>,
        /// Upper bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u32>,
    },
    /// `median * exp(sigma * z)` for a standard normal `z`, rounded to the nearest (half up), moved to a bound that it
    /// is beyond.
    Lognormal {
        /// The median: half of all are longer. Its mean is `median * exp(sigma^2 / 2)`.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// Lower bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u32>,
        /// Upper bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u32>,
    },
    /// `mean + stddev * z` for a standard normal `z` that is drawn again while the sum is negative, rounded up, moved
    /// to a bound that it is beyond. So does aiperf.
    Normal {
        /// The mean before what is negative is drawn again, and before rounding up, which adds one half.
        mean: f64,
        /// The standard deviation, likewise.
        stddev: f64,
        /// Lower bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u32>,
        /// Upper bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<u32>,
    },
    /// One of a table by its weight, with the same choice for the prompt and the answer of a request: a pair. Both
    /// lengths of a plan are this, with the same weights, or neither is. A part with a standard deviation is drawn around
    /// it as [`Distribution::Normal`] is.
    Paired(Table),
    /// Each whole number from `min` to `max` is as likely as the others.
    Uniform {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
    /// `k` from 1 to `max` with a probability that falls as `k^-exponent`: most are short. One below `min` is moved to it.
    Zipf {
        /// How fast it falls, from 0, where all are alike.
        exponent: f64,
        /// Lower bound.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<u32>,
        /// The largest.
        max: u32,
    },
}

impl Lengths {
    /// The largest length that is drawn, and the longest prompt in words: beyond every model's context, and small
    /// enough to be held in memory by the dozen.
    pub const MAX: u32 = 16_000_000;

    /// The length, if all have the same.
    #[must_use]
    pub fn fixed(&self) -> Option<u32> {
        match *self {
            Lengths::Drawn(_) => None,
            Lengths::Fixed(length) => Some(length),
        }
    }

    /// The smallest and the largest length that may occur.
    #[must_use]
    pub fn bounds(&self) -> (u32, u32) {
        match self {
            Lengths::Drawn(Distribution::Empirical(table) | Distribution::Paired(table)) => table.bounds(),
            Lengths::Drawn(
                Distribution::Gamma { min, max, .. }
                | Distribution::Lognormal { min, max, .. }
                | Distribution::Normal { min, max, .. },
            ) => (min.unwrap_or(1), max.unwrap_or(Lengths::MAX)),
            Lengths::Drawn(Distribution::Uniform { min, max }) => (*min, *max),
            Lengths::Drawn(Distribution::Zipf { min, max, .. }) => (min.unwrap_or(1), *max),
            Lengths::Fixed(length) => (*length, *length),
        }
    }

    /// About the mean length, for estimates: that of the distribution without rounding and bounds, moved to a bound
    /// that it is beyond.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let (min, max) = self.bounds();
        let mean = match self {
            Lengths::Drawn(Distribution::Empirical(table) | Distribution::Paired(table)) => table.mean(),
            Lengths::Drawn(Distribution::Gamma { mean, .. } | Distribution::Normal { mean, .. }) => *mean,
            Lengths::Drawn(Distribution::Lognormal { median, sigma, .. }) => {
                median * (sigma * sigma / 2.0).exp()
            }
            Lengths::Drawn(Distribution::Zipf { exponent, max, .. }) => {
                power_sum(*max, 1.0 - exponent) / power_sum(*max, -exponent)
            }
            Lengths::Drawn(Distribution::Uniform { .. }) | Lengths::Fixed(_) => {
                (f64::from(min) + f64::from(max)) / 2.0
            }
        };
        mean.min(f64::from(max)).max(f64::from(min))
    }

    /// The parts of pairs, where this is one half of them.
    #[must_use]
    pub fn paired(&self) -> Option<&Table> {
        match self {
            Lengths::Drawn(Distribution::Paired(table)) => Some(table),
            _ => None,
        }
    }
}

/// The sum of `k^power` for `k` from 1 to `n`: the first exactly, the rest by the integral, which differs from it by less
/// than 1e-6 of it.
fn power_sum(n: u32, power: f64) -> f64 {
    let first: f64 = (1..=n.min(POWERS)).map(|k| f64::from(k).powf(power)).sum();
    let antiderivative = |x: f64| match power + 1.0 {
        0.0 => x.ln(),
        above => x.powf(above) / above,
    };
    let rest = |n: u32| antiderivative(f64::from(n) + 0.5) - antiderivative(f64::from(POWERS) + 0.5);
    if n > POWERS { first + rest(n) } else { first }
}

/// Terms that are added one by one.
const POWERS: u32 = 1000;

impl From<u32> for Lengths {
    fn from(length: u32) -> Lengths {
        Lengths::Fixed(length)
    }
}

impl fmt::Display for Lengths {
    /// For reading: `128`, `100 to 300`, `normal, mean 200, stddev 50`, `lognormal, median 600, sigma 1, 8 to 8192`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let distribution = match self {
            Lengths::Drawn(distribution) => distribution,
            Lengths::Fixed(length) => return write!(f, "{length}"),
        };
        let (min, max) = match distribution {
            Distribution::Empirical(table) => return write!(f, "empirical, {table}"),
            Distribution::Gamma { mean, shape, min, max } => {
                write!(f, "gamma, mean {mean}, shape {shape}")?;
                (*min, *max)
            }
            Distribution::Lognormal { median, sigma, min, max } => {
                write!(f, "lognormal, median {median}, sigma {sigma}")?;
                (*min, *max)
            }
            Distribution::Normal { mean, stddev, min, max } => {
                write!(f, "normal, mean {mean}, stddev {stddev}")?;
                (*min, *max)
            }
            Distribution::Paired(table) => return write!(f, "of pairs, {table}"),
            Distribution::Uniform { min, max } => return write!(f, "{min} to {max}"),
            Distribution::Zipf { exponent, min, max } => {
                write!(f, "zipf, exponent {exponent}")?;
                (*min, Some(*max))
            }
        };
        match (min, max) {
            (None, None) => Ok(()),
            (Some(min), None) => write!(f, ", at least {min}"),
            (None, Some(max)) => write!(f, ", at most {max}"),
            (Some(min), Some(max)) => write!(f, ", {min} to {max}"),
        }
    }
}

impl Serialize for Lengths {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Lengths::Drawn(distribution) => distribution.serialize(serializer),
            Lengths::Fixed(length) => length.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Lengths {
    // An untagged enum would only say that nothing matched.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lengths, D::Error> {
        deserializer.deserialize_any(NumberOrTable)
    }
}

struct NumberOrTable;

impl<'de> Visitor<'de> for NumberOrTable {
    type Value = Lengths;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number, or a table that names a distribution")
    }

    fn visit_u64<E: serde::de::Error>(self, length: u64) -> Result<Lengths, E> {
        let fits = u32::try_from(length).map_err(|_| E::invalid_value(Unexpected::Unsigned(length), &self));
        fits.map(Lengths::Fixed)
    }

    fn visit_i64<E: serde::de::Error>(self, length: i64) -> Result<Lengths, E> {
        let fits = u32::try_from(length).map_err(|_| E::invalid_value(Unexpected::Signed(length), &self));
        fits.map(Lengths::Fixed)
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Lengths, A::Error> {
        Distribution::deserialize(MapAccessDeserializer::new(table)).map(Lengths::Drawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::table::Part;

    const LOGNORMAL: Distribution =
        Distribution::Lognormal { median: 600.0, sigma: 1.0, min: Some(8), max: Some(8192) };
    const NORMAL: Distribution = Distribution::Normal { mean: 200.5, stddev: 50.0, min: None, max: None };
    const UNIFORM: Distribution = Distribution::Uniform { min: 100, max: 300 };
    const GAMMA: Distribution = Distribution::Gamma { mean: 600.0, shape: 2.5, min: Some(8), max: None };
    const ZIPF: Distribution = Distribution::Zipf { exponent: 1.5, min: None, max: 4096 };

    fn table(parts: &[(u32, f64, f64)]) -> Table {
        Table::new(parts.iter().map(|(length, stddev, weight)| Part {
            length: *length,
            stddev: *stddev,
            weight: *weight,
        }))
    }

    #[test]
    fn every_form_is_read_as_it_is_written() {
        for (lengths, json) in [
            (Lengths::Fixed(128), "128"),
            (
                Lengths::Drawn(LOGNORMAL),
                r#"{"distribution":"lognormal","median":600.0,"sigma":1.0,"min":8,"max":8192}"#,
            ),
            (Lengths::Drawn(NORMAL), r#"{"distribution":"normal","mean":200.5,"stddev":50.0}"#),
            (Lengths::Drawn(UNIFORM), r#"{"distribution":"uniform","min":100,"max":300}"#),
            (Lengths::Drawn(GAMMA), r#"{"distribution":"gamma","mean":600.0,"shape":2.5,"min":8}"#),
            (Lengths::Drawn(ZIPF), r#"{"distribution":"zipf","exponent":1.5,"max":4096}"#),
            (
                Lengths::Drawn(Distribution::Empirical(table(&[(9, 0.0, 1.0), (12, 0.0, 1.0)]))),
                r#"{"distribution":"empirical","lengths":[9,12]}"#,
            ),
            (
                Lengths::Drawn(Distribution::Paired(table(&[(9, 1.5, 2.0), (12, 0.0, 1.0)]))),
                r#"{"distribution":"paired","lengths":[9,12],"stddevs":[1.5,0.0],"weights":[2.0,1.0]}"#,
            ),
        ] {
            assert_eq!(serde_json::to_string(&lengths).unwrap(), json);
            assert_eq!(serde_json::from_str::<Lengths>(json).unwrap(), lengths);
        }
    }

    #[test]
    fn what_is_no_length_is_refused_with_what_was_expected() {
        let refused = |json: &str| serde_json::from_str::<Lengths>(json).unwrap_err().to_string();
        for json in ["-1", "4294967296", "\"many\"", "1.5", "[1]"] {
            assert!(refused(json).contains("a table that names a distribution"), "{}", refused(json));
        }
        assert!(refused(r#"{"distribution":"zeta"}"#).contains("`zeta`"));
        assert!(refused(r#"{"distribution":"uniform","min":1}"#).contains("`max`"));
        assert!(refused(r#"{"distribution":"uniform","min":1,"max":2,"mean":1}"#).contains("`mean`"));
        assert!(refused(r#"{"distribution":"zipf","exponent":1}"#).contains("`max`"));
        assert!(refused(r#"{"distribution":"empirical","lengths":[1],"mean":1}"#).contains("`mean`"));
        assert!(refused(r#"{"distribution":"paired"}"#).contains("`lengths`"));
        let wrong = refused(r#"{"distribution":"empirical","lengths":[1,2],"weights":[1]}"#);
        assert!(wrong.contains("1 weights for 2 lengths"), "{wrong}");
    }

    #[test]
    fn means_and_bounds() {
        let of = |lengths: Lengths| (lengths.fixed(), lengths.bounds(), lengths.mean());
        assert_eq!(of(7.into()), (Some(7), (7, 7), 7.0));
        assert_eq!(of(Lengths::Drawn(UNIFORM)), (None, (100, 300), 200.0));
        assert_eq!(of(Lengths::Drawn(NORMAL)), (None, (1, Lengths::MAX), 200.5));
        assert_eq!(of(Lengths::Drawn(LOGNORMAL)), (None, (8, 8192), 600.0 * 0.5f64.exp()));
        let short = Distribution::Normal { mean: 200.5, stddev: 50.0, min: None, max: Some(90) };
        assert_eq!(Lengths::Drawn(short).mean(), 90.0);
        assert_eq!(of(Lengths::Drawn(GAMMA)), (None, (8, Lengths::MAX), 600.0));
        let few = table(&[(10, 0.0, 3.0), (20, 0.0, 1.0)]);
        assert_eq!(of(Lengths::Drawn(Distribution::Empirical(few))), (None, (10, 20), 12.5));
        let pair = table(&[(10, 2.0, 1.0), (20, 0.0, 1.0)]);
        assert_eq!(of(Lengths::Drawn(Distribution::Paired(pair))), (None, (1, Lengths::MAX), 15.0));
    }

    #[test]
    fn the_mean_of_a_zipf_is_that_of_its_sum() {
        for (exponent, max) in
            [(0.0, 9), (1.0, 4096), (1.5, 4096), (2.0, 100_000), (1.0, 100_000), (0.3, 20_000)]
        {
            let sum = |power: f64| (1..=max).map(|k| f64::from(k).powf(power)).sum::<f64>();
            let exact = sum(1.0 - exponent) / sum(-exponent);
            let found = Lengths::Drawn(Distribution::Zipf { exponent, min: None, max }).mean();
            assert!((found / exact - 1.0).abs() < 1e-6, "{exponent}, {max}: {found}, not {exact}");
        }
    }

    #[test]
    fn for_reading() {
        let text = |distribution| Lengths::Drawn(distribution).to_string();
        assert_eq!(text(LOGNORMAL), "lognormal, median 600, sigma 1, 8 to 8192");
        assert_eq!(text(NORMAL), "normal, mean 200.5, stddev 50");
        assert_eq!(text(GAMMA), "gamma, mean 600, shape 2.5, at least 8");
        assert_eq!(text(ZIPF), "zipf, exponent 1.5, at most 4096");
        let few = table(&[(10, 0.0, 3.0), (20, 0.0, 1.0)]);
        assert_eq!(text(Distribution::Empirical(few)), "empirical, 2 lengths from 10 to 20, mean 12.5");
        let one = table(&[(10, 0.0, 3.0)]);
        assert_eq!(text(Distribution::Paired(one)), "of pairs, 1 length, 10");
    }
}
