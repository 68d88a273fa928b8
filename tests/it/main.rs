//! The integration tests: one binary, one module per subject.

mod report;
mod run_file;
