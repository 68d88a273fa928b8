//! Statistics of durations: histograms, exact totals, quantiles, series over time; and how well they are known.
//!
//! Pure sums over numbers. What is measured, and which requests count, is decided above this floor.
//!
//! | question | room |
//! |---|---|
//! | how well is a share known, such as attainment | [`share`] |
//! | a mean or a rate of one level; of repeated runs | [`batch`]; [`repeats`] |
//! | between which values a quantile lies, and whether there are enough | [`order`] |
//! | how many independent values dependent ones are worth | [`correlation`], [`batch`] |
//! | had the level a steady state, did the server keep up | [`trend`] |
//! | does a figure drift over the slices of a run, and by how much | [`drift`] |
//! | many small histograms that are kept for long | [`sparse`] |
//! | how many were open when; counted meanwhile; do the records agree with it | [`inflight`]; [`running`]; [`little`] |
//! | how far a figure would move if other stretches had been measured | [`bootstrap`] |
//! | from which load on more brings no more throughput | [`knee`] |
//! | what a gauge or a counter of somebody else was, in bounded memory | [`track`] |
//! | what a closed loop hid, in imported data | [`backfill`] |

pub mod backfill;
pub mod batch;
mod beta;
pub mod binomial;
pub mod bootstrap;
pub mod coarse;
pub mod confidence;
pub mod correlation;
pub mod drift;
pub mod histogram;
pub mod inflight;
pub mod knee;
pub mod little;
pub mod order;
pub mod pending;
pub mod quantile;
pub mod repeats;
pub mod running;
pub mod series;
pub mod share;
pub mod sort;
pub mod sparse;
pub mod student;
pub mod totals;
pub mod track;
pub mod trend;

pub use batch::BatchMeans;
pub use coarse::Coarse;
pub use confidence::{Confidence, Interval};
pub use drift::Drift;
pub use histogram::Histogram;
pub use inflight::InFlight;
pub use little::Little;
pub use pending::Pending;
pub use quantile::Quantile;
pub use repeats::Repeats;
pub use running::Running;
pub use series::Series;
pub use share::Share;
pub use sparse::Sparse;
pub use totals::Totals;
pub use track::Track;
pub use trend::Trend;
