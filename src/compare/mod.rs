//! Runs beside each other: figures with their intervals, differences, and what besides the server differs.
//!
//! Owns which requests of two runs are held against each other and how well a difference is known; what follows from it
//! is `gate`'s. Everything is a function of [`Sample`]s, which hold a run file and its records in memory.
//!
//! A figure of a load is an [`Estimate`]: a value, and how far the truth may be from it to either side at any
//! confidence. Where it comes from depends on what there is, the best first:
//!
//! | there are | spread |
//! |---|---|
//! | five runs or rounds of the load | Student's t over them |
//! | records | the larger of a bootstrap over blocks of five correlation lengths, and the ranks or the exact binomial bounds of as many independent requests as they are worth |
//! | the statistics of a run whose records are gone | the same without the bootstrap |
//! | histograms alone | none: how much the requests resemble each other is not known |
//!
//! A difference of two estimates is bounded by the squares of their reaches (MOVER; Zou and Donner 2008), on a
//! logarithmic scale where a relative change is meant, so that skewed tails stay skewed.

mod difference;
mod estimate;
mod figure;
mod pareto;
mod remarks;
mod sample;
mod side_by_side;

pub(crate) use difference::Change;
pub use difference::Difference;
pub use estimate::{Estimate, Reach, Unit};
pub use figure::{Figure, Rate, Scale, UnknownFigure};
pub use pareto::{Point, front};
pub use remarks::{Remark, between};
pub(crate) use remarks::{alone, in_order, limits};
pub use sample::{LoadOf, Round, RunName, Sample};
pub use side_by_side::{Cell, ComparedFigure, Comparison, SideBySide, compare};
