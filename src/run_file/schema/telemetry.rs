//! Who was asked about servers, GPUs and the client's machine, as stored; what they said of a level is the level's.

use serde::{Deserialize, Serialize};

use crate::summary::telemetry::{ExporterSeen, Kind, Observed, Trouble};

/// Who was asked while the run went on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TelemetryBlock {
    /// From one reading to the next as planned, s.
    pub interval_s: f64,
    /// Each of them.
    pub exporters: Vec<ExporterBlock>,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExporterBlock {
    /// Of what it speaks.
    pub kind: Kind,
    /// Its URL without secrets, or what it is.
    pub name: String,
    /// What kinds of servers or GPUs it spoke of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub products: Vec<String>,
    /// How often it was asked.
    pub attempts: u64,
    /// How often it said something that was understood.
    pub answered: u64,
    /// What was wrong, at most 8 lines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<Trouble>,
}

impl TelemetryBlock {
    /// The stored form; `None` where nobody was asked.
    #[must_use]
    pub fn of(observed: &Observed) -> Option<TelemetryBlock> {
        let exporters: Vec<_> = observed.exporters.iter().map(ExporterBlock::of).collect();
        (!exporters.is_empty()).then_some(TelemetryBlock { interval_s: observed.interval_s, exporters })
    }
}

impl ExporterBlock {
    fn of(seen: &ExporterSeen) -> ExporterBlock {
        let mut products: Vec<String> =
            seen.sources.iter().filter_map(|source| source.product.clone()).collect();
        products.dedup();
        ExporterBlock {
            kind: seen.kind,
            name: seen.name.clone(),
            products,
            attempts: seen.attempts,
            answered: seen.answered,
            troubles: seen.troubles.clone(),
        }
    }
}
