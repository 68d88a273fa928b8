//! The integration tests: one binary, one module per subject.

mod api_captures;
mod cases;
mod corpus;
mod wire_split;
