//! Lengths with weights: what was counted somewhere, or the parts of a mixed load.
//!
//! Owns the table, its form in a plan, and the choice of a part; where the numbers are from is not known here. A plan
//! holds the table itself and not the name of a file, so that a stored plan repeats the same lengths.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Parts, of which each is chosen with a probability in proportion to its weight.
///
/// In a plan: `lengths = [64, 256], weights = [3, 1]`; without weights all are alike. `stddevs` are those of the parts,
/// none of them spread if absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "TableText", into = "TableText")]
pub struct Table(Arc<Inner>);

/// A part of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Part {
    /// Its length, or its mean if it is spread.
    pub length: u32,
    /// Standard deviation around it; 0 for none.
    pub stddev: f64,
    /// Weight among the others.
    pub weight: f64,
}

#[derive(Debug, PartialEq)]
struct Inner {
    parts: Vec<Part>,
    /// Sums of the weights up to and with each part.
    sums: Vec<f64>,
    /// The last part with a weight.
    last: usize,
}

impl Table {
    /// Most parts of a table: what a plan can hold and a person can still look through.
    pub const PARTS_MAX: usize = 1 << 14;

    /// The table of these parts.
    pub fn new(parts: impl IntoIterator<Item = Part>) -> Table {
        let parts: Vec<Part> = parts.into_iter().collect();
        let mut sum = 0.0;
        let sums = parts.iter().map(|part| {
            sum += part.weight;
            sum
        });
        let sums = sums.collect();
        let last = parts.iter().rposition(|part| part.weight > 0.0).unwrap_or(0);
        Table(Arc::new(Inner { parts, sums, last }))
    }

    /// The table of lengths in ascending order that were each counted so often (any weight above 0).
    ///
    /// More than [`Table::PARTS_MAX`] different ones become as many quantiles, all alike: those in the middle of equal
    /// shares of the whole.
    pub fn of_counts(counts: impl IntoIterator<Item = (u32, f64)>) -> Table {
        let whole =
            Table::new(counts.into_iter().map(|(length, weight)| Part { length, stddev: 0.0, weight }));
        if whole.parts().len() <= Table::PARTS_MAX {
            return whole;
        }
        let middle = |place: usize| (place as f64 + 0.5) / Table::PARTS_MAX as f64;
        let part = |place| Part { weight: 1.0, ..whole.pick(middle(place)).unwrap_or_default() };
        Table::new((0..Table::PARTS_MAX).map(part))
    }

    /// Its parts.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.0.parts
    }

    /// The part at `share` (0..1) of the whole weight; `None` if there are none.
    #[must_use]
    pub fn pick(&self, share: f64) -> Option<Part> {
        let Inner { parts, sums, last } = &*self.0;
        let wanted = share * sums.last()?;
        let place = sums.partition_point(|sum| *sum <= wanted);
        // A share a hair below 1 of the sum may be rounded to it.
        parts.get(place.min(*last)).copied()
    }

    /// Whether both have the same weights in the same order.
    #[must_use]
    pub fn has_weights_of(&self, other: &Table) -> bool {
        let weights = |table: &Table| table.parts().iter().map(|part| part.weight).collect::<Vec<_>>();
        weights(self) == weights(other)
    }

    /// The smallest and the largest length that may be drawn.
    pub(super) fn bounds(&self) -> (u32, u32) {
        let is_spread = |part: &Part| part.stddev > 0.0;
        let least = self.parts().iter().map(|part| if is_spread(part) { 1 } else { part.length }).min();
        let most = |part: &Part| if is_spread(part) { super::Lengths::MAX } else { part.length };
        (least.unwrap_or(1), self.parts().iter().map(most).max().unwrap_or(1))
    }

    /// The mean length, spreads apart.
    pub(super) fn mean(&self) -> f64 {
        let sum: f64 = self.parts().iter().map(|part| f64::from(part.length) * part.weight).sum();
        let weights: f64 = self.parts().iter().map(|part| part.weight).sum();
        if weights > 0.0 { sum / weights } else { 0.0 }
    }
}

impl Default for Part {
    fn default() -> Part {
        Part { length: 1, stddev: 0.0, weight: 1.0 }
    }
}

impl fmt::Display for Table {
    /// For reading: `3 lengths from 64 to 1024, mean 217.6`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parts() {
            [only] => write!(f, "1 length, {}", only.length)?,
            parts => {
                let lengths = || parts.iter().map(|part| part.length);
                let (min, max) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
                let mean = (self.mean() * 10.0).round() / 10.0;
                write!(f, "{} lengths from {min} to {max}, mean {mean}", parts.len())?;
            }
        }
        if self.parts().iter().any(|part| part.stddev > 0.0) { f.write_str(", each spread") } else { Ok(()) }
    }
}

/// The form in a plan.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    lengths: Vec<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stddevs: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    weights: Vec<f64>,
}

impl TryFrom<TableText> for Table {
    type Error = String;

    fn try_from(text: TableText) -> Result<Table, String> {
        let TableText { lengths, stddevs, weights } = text;
        for (what, found) in [("stddevs", stddevs.len()), ("weights", weights.len())] {
            if found > 0 && found != lengths.len() {
                return Err(format!("{found} {what} for {} lengths", lengths.len()));
            }
        }
        let at = |list: &[f64], place, absent| list.get(place).copied().unwrap_or(absent);
        let part = |(place, length)| Part {
            length,
            stddev: at(&stddevs, place, 0.0),
            weight: at(&weights, place, 1.0),
        };
        Ok(Table::new(lengths.into_iter().enumerate().map(part)))
    }
}

impl From<Table> for TableText {
    fn from(table: Table) -> TableText {
        let parts = table.parts();
        // What is the same for all is what it is where it is absent.
        let unless = |all: bool, list: Vec<f64>| if all { Vec::new() } else { list };
        TableText {
            lengths: parts.iter().map(|part| part.length).collect(),
            stddevs: unless(
                parts.iter().all(|part| part.stddev == 0.0),
                parts.iter().map(|part| part.stddev).collect(),
            ),
            weights: unless(
                parts.iter().all(|part| part.weight == 1.0),
                parts.iter().map(|part| part.weight).collect(),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(weights: &[f64]) -> Table {
        let part =
            |(place, weight): (usize, &f64)| Part { length: place as u32, stddev: 0.0, weight: *weight };
        Table::new(weights.iter().enumerate().map(part))
    }

    #[test]
    fn each_part_has_its_share_of_the_whole() {
        let table = table(&[0.0, 3.0, 0.0, 1.0, 0.0]);
        let picked = |share| table.pick(share).unwrap().length;
        assert_eq!([0.0, 0.5, 0.749, 0.75, 0.999].map(picked), [1, 1, 1, 3, 3]);
        // Not one without a weight, wherever rounding ends.
        assert_eq!(picked(1.0), 3);
        assert_eq!(super::Table::new([]).pick(0.5), None);
    }

    #[test]
    fn many_lengths_become_quantiles_of_the_same_mean() {
        let n = 3 * Table::PARTS_MAX as u32;
        let exact = Table::of_counts((0..n / 3).map(|length| (length, 1.0)));
        assert_eq!(exact.parts().len(), Table::PARTS_MAX);
        // Of three neighbours each, the middle one.
        let reduced = Table::of_counts((0..n).map(|length| (length, 2.0)));
        assert_eq!(reduced.parts().len(), Table::PARTS_MAX);
        assert!(
            reduced.parts().iter().enumerate().all(|(place, part)| part.length as usize == 3 * place + 1)
        );
        assert_eq!(reduced.mean(), f64::from(n - 1) / 2.0);
    }
}
