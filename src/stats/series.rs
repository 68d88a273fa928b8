//! Placeholder until the statistics room is merged.

/// Placeholder.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Series {
    bin_ns: u64,
}
