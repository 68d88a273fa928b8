//! The `tokload` program: arguments to a call, the outcome to an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    tokload::cli::main(std::env::args_os().skip(1)).into()
}
