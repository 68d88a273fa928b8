//! Statistics of durations: histograms, exact totals, quantiles, series over time.
//!
//! Pure sums over numbers. What is measured, and which requests count, is decided above this floor.

pub mod backfill;
pub mod batch;
mod beta;
pub mod binomial;
pub mod coarse;
pub mod confidence;
pub mod correlation;
pub mod histogram;
pub mod inflight;
pub mod little;
pub mod order;
pub mod quantile;
pub mod repeats;
pub mod series;
pub mod share;
pub mod student;
pub mod totals;
pub mod trend;

pub use batch::BatchMeans;
pub use coarse::Coarse;
pub use confidence::{Confidence, Interval};
pub use histogram::Histogram;
pub use quantile::Quantile;
pub use repeats::Repeats;
pub use series::Series;
pub use share::Share;
pub use totals::Totals;
pub use trend::Trend;
