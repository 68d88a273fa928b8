//! The slices of a level as stored.

use serde::{Deserialize, Serialize};

use super::verbatim::Verbatim;
use crate::metrics::Slices;
use crate::run::{LevelResult, Window};
use crate::summary::{DriftFigure, SliceSummary, slices};

/// A level in slices of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlicesBlock {
    /// Length of a slice that was asked for, s.
    pub asked_s: f64,
    /// Length of a slice, s: more where the level had too many, so that neighbours were joined.
    pub width_s: f64,
    /// Their numbers, in order. The last of them is as long as the level ran of it.
    pub rows: Vec<SliceSummary>,
    /// How figures move over the steady ones; empty where that cannot be said.
    #[serde(default)]
    pub drift: Vec<DriftFigure>,
    /// What they were made of, by which shares are merged.
    pub buckets: Verbatim<Slices>,
}

impl SlicesBlock {
    /// Those of a level; `None` where none were asked for.
    #[must_use]
    pub fn of(result: &LevelResult, window: &Window) -> Option<SlicesBlock> {
        let all = result.slices.as_ref()?;
        Some(SlicesBlock {
            asked_s: all.asked_ns() as f64 / 1e9,
            width_s: all.width_ns() as f64 / 1e9,
            rows: slices::of(result, window),
            drift: slices::drift(result, window),
            buckets: Verbatim::of(all),
        })
    }
}
