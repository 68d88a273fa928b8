//! A part of a level as stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::distribution::{DistributionBlock, by_metric};
use crate::metrics::metric::Metric;
use crate::summary::{Against, Counts, Goodput, Group, GroupKey, Rates, Tokens};

/// Some of the requests of a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupBlock {
    /// Which: `by` says what they are told apart by, `place` which of the plan's models or endpoints, or of
    /// the level's replicas.
    #[serde(flatten)]
    pub of: GroupKey,
    /// Those planned in the window, by how they ended.
    pub counts: Counts,
    /// Token counts of the `ok` ones.
    pub tokens: Tokens,
    /// Their distributions by metric; metrics without any value are absent.
    #[serde(with = "by_metric")]
    pub distributions: BTreeMap<Metric, DistributionBlock>,
    /// Those that kept every SLO; `None` without SLOs, and of slow readers.
    pub goodput: Option<Goodput>,
    /// Throughput in the window; `None` in files from before it was kept.
    #[serde(default)]
    pub rates: Option<Rates>,
    /// First requests of sessions among those planned in the window.
    #[serde(default)]
    pub sessions: u64,
    /// Of an endpoint or a replica: its medians against those of the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<Against>,
}

impl GroupBlock {
    pub(super) fn new(group: &Group) -> GroupBlock {
        let Group { of, counts, tokens, distributions, goodput, rates, sessions, against } = group;
        GroupBlock {
            of: *of,
            counts: counts.clone(),
            tokens: tokens.clone(),
            distributions: distributions.iter().map(|d| (d.metric, DistributionBlock::new(d))).collect(),
            goodput: *goodput,
            rates: Some(*rates),
            sessions: *sessions,
            against: against.clone(),
        }
    }
}
