//! Under construction.
/// Under construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram;
