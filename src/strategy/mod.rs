//! Which load to try next, and what the tries say together.
//!
//! Pure: the loads that were tried and what became of them come in, the next one or the answer goes out. So a search
//! that was interrupted goes on from the file that it left.

mod again;
pub mod budget;
pub mod capacity;
pub mod first_look;
mod hunt;
mod limits;
pub(crate) mod side;
pub mod slots;
mod surge;

pub(crate) use again::Limits;
pub use capacity::{Answer, Ending, Stage, Step, Trial};
pub use hunt::{Found, Hunt};
pub use limits::{Binding, Cause, LimitHeld, Medians};
pub use slots::{Flow, Slots};
pub use surge::{Surge, is_too_much};
