//! The command line: arguments, one file per command, exit codes.
//!
//! Here, and in the live progress, the program prints: results on standard output, everything else on standard error.

pub mod aiperf_result;
pub mod aliases;
pub mod args;
mod check;
mod compare;
mod dry_run;
pub mod exit;
pub mod export;
mod failure;
mod find_capacity;
mod gather;
mod help;
mod import;
pub(crate) mod library;
mod lint;
mod merge;
pub mod metric_view;
mod mock_server;
pub mod model_options;
mod next;
mod normalise;
mod others_view;
mod own_words;
mod parquet_file;
pub mod plan_from_args;
pub mod presets;
mod proxies;
mod quick;
pub mod ranks;
mod rate_file;
mod report;
mod run;
mod script;
mod selftest;
mod session;
mod share;
pub mod simulate;
mod state;
mod state_dir;
mod target;
mod text_file;
mod together;
mod tokens;
pub mod value;
pub mod vllm_result;
mod whole_file;

use std::ffi::OsString;
use std::io::{self, Write};

use args::{Asked, Command};
use exit::Exit;
use failure::Failure;

/// Does what the arguments after the program's name ask for.
#[must_use]
pub fn main(argv: impl IntoIterator<Item = OsString>) -> Exit {
    let words: Vec<OsString> = argv.into_iter().collect();
    let asked = match args::parse(words.iter().cloned()) {
        Ok(asked) => asked,
        Err(error) => return complain(&Failure::bad(error)),
    };
    let done = match asked {
        Asked::Text(text) => print(text.trim_end()).map(|()| Exit::Done),
        Asked::Command { command, tool, notes } => {
            notes.iter().for_each(|note| say(note));
            let typed: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            match command {
                Command::Check(args) => check::main(&args),
                Command::Compare(args) => compare::main(&args),
                Command::FindCapacity(words) => find_capacity::main(&words, tool, typed),
                Command::Import(args) => import::main(&args),
                Command::Lint(words) => lint::main(&words, tool),
                Command::Merge(args) => merge::main(&args),
                Command::MockServer(words) => mock_server::main(&words),
                Command::Quick(args) => quick::main(&args, typed),
                Command::Report(args) => report::main(&args),
                Command::Run(args) => run::main(&args, tool, typed),
                Command::Selftest(args) => selftest::main(&args),
                Command::Share(args) => share::main(&args),
                Command::Simulate(words) => simulate::main(&words, typed),
            }
        }
    };
    done.unwrap_or_else(|failure| complain(&failure))
}

fn complain(failure: &Failure) -> Exit {
    // What is wrong with the command line itself is said of `tokload` or `tokload run` already.
    let sentence = failure.to_string();
    if sentence.starts_with("tokload") {
        say(&sentence)
    } else {
        say(&format!("tokload: {sentence}"))
    }
    failure.exit
}

/// One line on standard error. Whether anybody reads it decides nothing: a run goes on, and is saved, without.
fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// A text on standard output.
fn print(text: &str) -> Result<(), Failure> {
    with_stdout(|out| writeln!(out, "{text}"))
}

/// Writes on standard output. A reader that has gone away (`| head`) has had enough: no failure.
fn with_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::own(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}
