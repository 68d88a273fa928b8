//! Under construction.

pub mod json;
