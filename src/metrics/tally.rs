//! Placeholder until the statistics room is merged.

/// Placeholder.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Placeholder.
    pub series: crate::stats::Series,
}
