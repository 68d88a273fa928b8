//! Rates that vary over the time of a level: what a plan says of them, and their form in a file.
//!
//! Owns the types; what follows from them (the requests expected by a time, and the time by which so many are) is
//! [`Course`]'s.

mod course;

pub use course::Course;

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Arrivals of an open loop whose rate varies, or whose number is exact.
///
/// A process of rate one gives the number of requests that lie between two arrivals on average; the rate over time turns
/// that into times. So constant gaps follow the rate, and Poisson gaps make the inhomogeneous Poisson process of exactly
/// that rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Varying {
    /// The process of rate one.
    pub gaps: Gaps,
    /// Requests per second over all shards.
    pub rate: Rate,
    /// The arrivals are moved, all in proportion, so that the last of the level's `units` comes when as many are expected
    /// by the rate: request `n` at `n / rate`.
    pub exact_count: bool,
}

/// A process of rate one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Gaps {
    /// Equal gaps, from an arrival at 0 on.
    Constant,
    /// Gamma gaps of shape `burstiness` (1: Poisson; below: bursty; above: regular).
    Gamma {
        /// Shape of the gaps.
        burstiness: f64,
    },
    /// Exponential gaps.
    Poisson,
}

/// Requests per second: the same all the time, or over time.
///
/// In a file a plain number is the former, and a table with `pieces` the latter.
#[derive(Clone, Debug, PartialEq)]
pub enum Rate {
    /// Over time.
    Series(Series),
    /// The same all the time.
    Steady(f64),
}

/// A rate over time, piece by piece.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Series {
    /// One after another, from the level's start on.
    pub pieces: Vec<Piece>,
    /// The first piece comes again after the last. Otherwise the rate at the end of the last one is held.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeat: bool,
}

/// A stretch of a series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// Requests per second at its beginning; 0 for none.
    pub rate: f64,
    /// Requests per second at its end; absent: as at its beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_rate: Option<f64>,
    /// How long it takes, s.
    pub length_s: f64,
    /// How the rate goes from one to the other.
    #[serde(default, skip_serializing_if = "Shape::is_linear")]
    pub shape: Shape,
}

/// How a rate goes from one value to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// By the same factor in equal times. In equal numbers of requests, it is by the same difference.
    Exponential,
    /// By equal differences of the gap, one divided by the rate, in equal times. In equal numbers of requests, it is by the
    /// same factor.
    Hyperbolic,
    /// By equal differences in equal times.
    #[default]
    Linear,
}

impl Shape {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
    const fn is_linear(&self) -> bool {
        matches!(self, Shape::Linear)
    }

    /// Its name in files and options.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Shape::Exponential => "exponential",
            Shape::Hyperbolic => "hyperbolic",
            Shape::Linear => "linear",
        }
    }
}

impl Piece {
    /// The same rate for so long.
    #[must_use]
    pub const fn steady(rate: f64, length_s: f64) -> Piece {
        Piece { rate, to_rate: None, length_s, shape: Shape::Linear }
    }

    /// From one rate to another in so long.
    #[must_use]
    pub const fn ramp(rate: f64, to_rate: f64, length_s: f64, shape: Shape) -> Piece {
        Piece { rate, to_rate: Some(to_rate), length_s, shape }
    }

    /// A ramp in which `requests` are expected, from `rate` to `to_rate`, both above 0: in the number of requests it is
    /// linear, or exponential. Over time that is exponential or hyperbolic, and how long it takes follows:
    /// with `x = rate`, `y = to_rate`, `n ln(y / x) / (y - x)` or `n (1 / x - 1 / y) / ln(y / x)` seconds.
    #[must_use]
    pub fn ramp_over_requests(rate: f64, to_rate: f64, requests: f64, exponential: bool) -> Piece {
        // In both formulas 0 / 0 where nothing rises, and digits are lost close to that.
        let difference = (to_rate - rate) / rate;
        if difference.abs() < 1e-9 {
            return Piece::steady(rate, requests / rate);
        }
        let log = if difference.abs() < 0.5 { difference.ln_1p() } else { (to_rate / rate).ln() };
        match exponential {
            false => Piece::ramp(rate, to_rate, requests * log / (to_rate - rate), Shape::Exponential),
            true => {
                let length_s = requests * difference / (to_rate * log);
                Piece::ramp(rate, to_rate, length_s, Shape::Hyperbolic)
            }
        }
    }

    /// The rate at its end.
    #[must_use]
    pub fn end(&self) -> f64 {
        self.to_rate.unwrap_or(self.rate)
    }

    /// Whether it is one rate throughout.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.end() == self.rate
    }
}

impl Series {
    /// Most pieces: a week in minutes is one hundred more.
    pub const PIECES_MAX: usize = 10_000;

    /// How long all pieces take, s.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        self.pieces.iter().map(|piece| piece.length_s).sum()
    }

    /// How long it takes until the rate is the same for good, where the series is nothing but a way there: one ramp.
    #[must_use]
    pub fn lead_in_s(&self) -> Option<f64> {
        match self.pieces.as_slice() {
            [ramp] if !self.repeat && !ramp.is_steady() && ramp.end() > 0.0 => Some(ramp.length_s),
            _ => None,
        }
    }

    fn bounds(&self) -> (f64, f64) {
        let rates = self.pieces.iter().flat_map(|piece| [piece.rate, piece.end()]);
        rates.fold((f64::INFINITY, 0.0), |(least, most), rate| (rate.min(least), rate.max(most)))
    }
}

impl Rate {
    /// The rate, if it is the same all the time.
    #[must_use]
    pub fn steady(&self) -> Option<f64> {
        match self {
            Rate::Series(_) => None,
            Rate::Steady(rate) => Some(*rate),
        }
    }

    /// The series, if the rate varies.
    #[must_use]
    pub fn series(&self) -> Option<&Series> {
        match self {
            Rate::Series(series) => Some(series),
            Rate::Steady(_) => None,
        }
    }

    /// The largest rate at any time.
    #[must_use]
    pub fn peak(&self) -> f64 {
        match self {
            Rate::Series(series) => series.bounds().1,
            Rate::Steady(rate) => *rate,
        }
    }
}

impl Varying {
    /// Coefficient of variation of the gaps of the process of rate one.
    #[must_use]
    pub fn variation(&self) -> f64 {
        self.gaps.variation()
    }
}

impl Gaps {
    /// Their coefficient of variation.
    #[must_use]
    pub fn variation(self) -> f64 {
        match self {
            Gaps::Constant => 0.0,
            Gaps::Gamma { burstiness } => 1.0 / burstiness.sqrt(),
            Gaps::Poisson => 1.0,
        }
    }
}

impl fmt::Display for Rate {
    /// For tables: `5`, or the smallest and the largest of a series: `0 to 50`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rate::Series(series) => {
                let (least, most) = series.bounds();
                match least < most {
                    true => write!(f, "{} to {}", short(least), short(most)),
                    false => write!(f, "{}", short(most)),
                }
            }
            Rate::Steady(rate) => write!(f, "{rate}"),
        }
    }
}

impl fmt::Display for Piece {
    /// For reading: `5 for 60 s`, `5 to 50 in 60 s`, `5 to 50 in 60 s, exponential`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rate, s) = (short(self.rate), short(self.length_s));
        if self.is_steady() {
            return write!(f, "{rate} for {s} s");
        }
        write!(f, "{rate} to {} in {s} s", short(self.end()))?;
        match self.shape {
            Shape::Linear => Ok(()),
            shape => write!(f, ", {}", shape.name()),
        }
    }
}

/// A rate, or another number that a search has made, as it stands in labels: with three decimals at most, or three digits where
/// it is below 1, and without zeros at its end. `29.802322387695313` is `29.802`, `0.0012345` is `0.00123`.
///
/// Two numbers may look alike then; who tells loads apart by their labels has to see to that.
#[must_use]
pub fn in_label(number: f64) -> String {
    if !(number.is_finite() && number > 0.0) {
        return number.to_string();
    }
    let decimals = if number >= 1.0 { 3 } else { 2 - number.log10().floor() as i32 };
    // Beyond that there is nothing but zeros.
    let text = format!("{number:.*}", decimals.clamp(3, 320) as usize);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A number without the digits that only arithmetic made.
fn short(number: f64) -> f64 {
    // Beyond that there are no such digits.
    if number.abs() < 1e9 { (number * 1e6).round() / 1e6 } else { number }
}

impl From<f64> for Rate {
    fn from(rate: f64) -> Rate {
        Rate::Steady(rate)
    }
}

impl Serialize for Rate {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Rate::Series(series) => series.serialize(serializer),
            Rate::Steady(rate) => rate.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Rate {
    // An untagged enum would only say that nothing matched.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Rate, D::Error> {
        deserializer.deserialize_any(NumberOrTable)
    }
}

struct NumberOrTable;

impl<'de> Visitor<'de> for NumberOrTable {
    type Value = Rate;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of requests per second, or a table of pieces")
    }

    fn visit_f64<E>(self, rate: f64) -> Result<Rate, E> {
        Ok(Rate::Steady(rate))
    }

    fn visit_u64<E>(self, rate: u64) -> Result<Rate, E> {
        Ok(Rate::Steady(rate as f64))
    }

    fn visit_i64<E>(self, rate: i64) -> Result<Rate, E> {
        Ok(Rate::Steady(rate as f64))
    }

    fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Rate, A::Error> {
        Series::deserialize(MapAccessDeserializer::new(table)).map(Rate::Series)
    }
}

#[cfg(test)]
mod tests;
