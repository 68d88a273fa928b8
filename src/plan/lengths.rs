//! How long prompts and answers are, as a plan states it, and what prompts share.
//!
//! Owns the types and their form in a file; drawing a length is `workload::lengths`'s business.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Workload;

/// The length of each prompt in words, or of each answer in tokens.
///
/// In a file a plain number is the length of all, and a table says how one is drawn for each request:
/// `input_words = { distribution = "lognormal", median = 600, sigma = 1 }`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Lengths {
    /// Each has its own.
    Drawn(Distribution),
    /// All have this one.
    Fixed(u32),
}

/// How a length is drawn. Bounds are inclusive and part of the draw as stated; a lower one is 1 and an upper one
/// [`Lengths::MAX`] where it is absent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "distribution", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
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
    /// Each whole number from `min` to `max` is as likely as the others.
    Uniform {
        /// The smallest.
        min: u32,
        /// The largest.
        max: u32,
    },
}

/// A beginning that prompts share: before its own words, each request has the words of one of `pool` prefixes, drawn
/// by the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prefix {
    /// Its words; they come on top of those of the prompt.
    pub words: u32,
    /// How many different ones there are. 1 by default: all prompts begin alike.
    #[serde(default = "one")]
    pub pool: u32,
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
        match *self {
            Lengths::Drawn(
                Distribution::Lognormal { min, max, .. } | Distribution::Normal { min, max, .. },
            ) => (min.unwrap_or(1), max.unwrap_or(Lengths::MAX)),
            Lengths::Drawn(Distribution::Uniform { min, max }) => (min, max),
            Lengths::Fixed(length) => (length, length),
        }
    }

    /// About the mean length, for estimates: that of the distribution without rounding and bounds, moved to a bound
    /// that it is beyond.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let (min, max) = self.bounds();
        let mean = match *self {
            Lengths::Drawn(Distribution::Lognormal { median, sigma, .. }) => {
                median * (sigma * sigma / 2.0).exp()
            }
            Lengths::Drawn(Distribution::Normal { mean, .. }) => mean,
            Lengths::Drawn(Distribution::Uniform { .. }) | Lengths::Fixed(_) => {
                (f64::from(min) + f64::from(max)) / 2.0
            }
        };
        mean.min(f64::from(max)).max(f64::from(min))
    }
}

impl Workload {
    /// The words of each prompt, those of a shared prefix among them, if all prompts have as many.
    #[must_use]
    pub fn prompt_words(&self) -> Option<u32> {
        if self.is_recorded() {
            return None;
        }
        let shared = self.prefix.map_or(0, |prefix| prefix.words);
        self.input_words.fixed().map(|own| own.saturating_add(shared))
    }

    /// Whether prompts are those of a file.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.trace.is_some() || self.data.is_some()
    }

    /// The words asked for in prompts, for reading: `128`, `1500 shared + 200 to 300`, `those of the trace`.
    #[must_use]
    pub fn prompt_words_text(&self) -> String {
        match self.prefix {
            _ if self.trace.is_some() => "those of the trace".to_owned(),
            _ if self.data.is_some() => "those of the data set".to_owned(),
            None => self.input_words.to_string(),
            Some(Prefix { words, .. }) => format!("{words} shared + {}", self.input_words),
        }
    }

    /// The tokens of the server's chat template that come on top, where they are known.
    #[must_use]
    pub fn template_tokens(&self) -> Option<u32> {
        self.tokens.as_ref()?.found.as_ref()?.template.filter(|tokens| *tokens > 0)
    }
}

impl From<u32> for Lengths {
    fn from(length: u32) -> Lengths {
        Lengths::Fixed(length)
    }
}

impl fmt::Display for Lengths {
    /// For reading: `128`, `100 to 300`, `normal, mean 200, stddev 50`, `lognormal, median 600, sigma 1, 8 to 8192`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (min, max) = match *self {
            Lengths::Drawn(Distribution::Lognormal { median, sigma, min, max }) => {
                write!(f, "lognormal, median {median}, sigma {sigma}")?;
                (min, max)
            }
            Lengths::Drawn(Distribution::Normal { mean, stddev, min, max }) => {
                write!(f, "normal, mean {mean}, stddev {stddev}")?;
                (min, max)
            }
            Lengths::Drawn(Distribution::Uniform { min, max }) => return write!(f, "{min} to {max}"),
            Lengths::Fixed(length) => return write!(f, "{length}"),
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

fn one() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGNORMAL: Distribution =
        Distribution::Lognormal { median: 600.0, sigma: 1.0, min: Some(8), max: Some(8192) };
    const NORMAL: Distribution = Distribution::Normal { mean: 200.5, stddev: 50.0, min: None, max: None };
    const UNIFORM: Distribution = Distribution::Uniform { min: 100, max: 300 };

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
    }

    #[test]
    fn for_reading() {
        let text = |distribution| Lengths::Drawn(distribution).to_string();
        assert_eq!(text(LOGNORMAL), "lognormal, median 600, sigma 1, 8 to 8192");
        assert_eq!(text(NORMAL), "normal, mean 200.5, stddev 50");
        let mut workload = Workload { input_words: Lengths::Drawn(UNIFORM), ..Workload::default() };
        assert_eq!((workload.prompt_words(), workload.prompt_words_text()), (None, "100 to 300".into()));
        workload.prefix = Some(Prefix { words: 1500, pool: 1 });
        assert_eq!(workload.prompt_words_text(), "1500 shared + 100 to 300");
        workload.input_words = 24.into();
        assert_eq!(workload.prompt_words(), Some(1524));
    }
}
