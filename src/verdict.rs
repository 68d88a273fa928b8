//! What a measurement is worth: the client's own error, in numbers.
//!
//! Owns no measurement: everything here is made of a level's result and its summary.

pub mod budget;
