//! The integration tests: one binary, one module per subject.

mod corpus;
mod wire_split;
mod api_captures;
