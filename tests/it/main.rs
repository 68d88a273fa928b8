//! The integration tests: one binary, one module per subject.

mod aggregates;
mod goldens;
mod goldens_histogram;
mod java_random;
