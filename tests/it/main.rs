//! The integration tests: one binary, one module per subject.

mod aggregates;
mod api_captures;
mod captures;
mod cases;
mod corpus;
mod goldens;
mod goldens_histogram;
mod java_random;
mod layers;
mod lifecycle;
mod wire_split;
