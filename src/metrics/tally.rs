//! Under construction.
/// Under construction.
#[derive(Clone, Debug)]
pub struct Tally;
