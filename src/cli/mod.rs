//! The command line: arguments, one file per command, exit codes.

pub mod aliases;
pub mod args;
pub mod exit;
mod help;
mod normalise;
pub mod plan_from_args;
pub mod redact;
pub mod value;
