//! Statistics of latency.
pub mod histogram;
pub use histogram::Histogram;
