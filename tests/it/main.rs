//! The integration tests: one binary, one module per subject.

mod args;
mod plan;
mod schedule;
