//! What a level of a share keeps beyond what it shows: sums that were not rounded, from which the whole level is made.

use serde::{Deserialize, Serialize};

use crate::metrics::Tally;
use crate::run::{LevelResult, ShardCheck};

/// The counts of a level of one process of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Histograms, counts and series of its requests.
    pub tally: Tally,
    /// What its shards say of themselves.
    pub shards: Vec<ShardCheck>,
}

impl Part {
    /// That of `result`.
    #[must_use]
    pub fn of(result: &LevelResult) -> Part {
        Part { tally: result.tally.clone(), shards: result.shards.clone() }
    }
}
