//! Statistics of durations: histograms, exact totals, quantiles, series over time.
//!
//! Pure sums over numbers. What is measured, and which requests count, is decided above this floor.

pub mod coarse;
pub mod histogram;
pub mod quantile;
pub mod series;
pub mod totals;

pub use coarse::Coarse;
pub use histogram::Histogram;
pub use quantile::Quantile;
pub use series::Series;
pub use totals::Totals;
