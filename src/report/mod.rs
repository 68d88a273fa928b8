//! Views of a run: what is shown, and how.
//!
//! [`view::View`] is one inert value with everything worded; each format is a function that writes it. Nothing here
//! computes a number: all come from the run file's blocks, at run time as later. Only [`explain`] calculates, to show how
//! they hang together.

pub mod aiperf;
pub mod card;
pub mod chart;
pub mod check;
pub mod csv;
pub mod explain;
pub mod export;
pub mod format;
pub mod html;
pub mod json;
pub mod markdown;
pub mod others;
pub mod picture;
pub mod progress;
pub mod prometheus;
pub mod requests;
pub mod selftest;
pub mod side_by_side;
pub mod terminal;
pub mod view;
pub mod vllm;

pub use progress::Progress;
pub use terminal::Style;
pub use view::{View, machine};
