//! Statistics of latency.
pub mod histogram;
pub mod series;
pub use histogram::Histogram;
pub use series::Series;
