//! The table of a run.
