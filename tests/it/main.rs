//! The integration tests: one binary, one module per subject.

mod aggregates;
mod api_captures;
mod cases;
mod corpus;
mod goldens;
mod goldens_histogram;
mod java_random;
mod load;
mod wire_split;
mod mock;
mod report;
mod run_file;
mod args;
mod plan;
mod schedule;
