//! The integration tests: one binary, one module per subject.

mod api_captures;
mod cases;
mod corpus;
mod wire_split;
mod aggregates;
mod goldens;
mod goldens_histogram;
mod java_random;
