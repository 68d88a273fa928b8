//! The rules of the checklist that a finished level is held to, a file for each thing that they are about.
//!
//! Grades follow one question: does a number of the report mislead whoever does not read this line? Yes: a warning. All
//! of them: invalid. No, but it means something else than it may seem to: information.

mod answers;
mod client;
mod drift;
mod fleet;
mod load;
mod machine;
mod outcomes;
mod statistics;
mod words;

use super::Facts;
use crate::plan::{Finding, Plan};

/// Looks at one subject and adds what it finds.
type Look = fn(&Plan, &Facts, &mut Vec<Finding>);

/// Every subject.
pub(super) const ALL: [Look; 8] = [
    answers::look,
    client::look,
    drift::look,
    fleet::look,
    load::look,
    machine::look,
    outcomes::look,
    statistics::look,
];

#[cfg(test)]
mod tests;
