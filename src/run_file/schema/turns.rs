//! The turns of sessions as stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::distribution::{DistributionBlock, by_metric};
use crate::metrics::metric::Metric;
use crate::summary::{Counts, Tokens, TurnSummary};

/// The requests of one turn of all sessions, planned in the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnBlock {
    /// Which turn, from 1.
    pub turn: u32,
    /// Those of all later turns, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub and_later: bool,
    /// How they ended.
    pub counts: Counts,
    /// Distributions by metric, without histograms.
    #[serde(with = "by_metric")]
    pub distributions: BTreeMap<Metric, DistributionBlock>,
    /// Token counts.
    pub tokens: Tokens,
}

impl TurnBlock {
    pub(super) fn new(summary: &TurnSummary) -> TurnBlock {
        let block =
            |distribution| DistributionBlock { histogram: None, ..DistributionBlock::new(distribution) };
        TurnBlock {
            turn: summary.turn,
            and_later: summary.and_later,
            counts: summary.counts.clone(),
            distributions: summary.distributions.iter().map(|d| (d.metric, block(d))).collect(),
            tokens: summary.tokens.clone(),
        }
    }
}
