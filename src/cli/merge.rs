//! `merge`: one run of the shares that several processes made, saved and shown.

use std::path::{Path, PathBuf};

use crate::cli::args::MergeArgs;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::run::{exit_of, show_run};
use crate::cli::value::{self, Format};
use crate::plan::Error;
use crate::run_file::merge::{Align, MergeError, Options, merge};
use crate::run_file::{Destination, RunFile, WallTime};
use crate::sys::clock::RunClock;

pub(super) fn main(args: &MergeArgs) -> Result<Exit, Failure> {
    let format = args.format.as_deref().map_or(Ok(Format::default()), |text| value::format("--format", text));
    let format = format.map_err(Failure::bad)?;
    let align = args.align.as_deref().map_or(Ok(Align::default()), align).map_err(Failure::bad)?;
    let destination = destination(args.output_file.as_deref(), args.force)?;
    let files: Vec<PathBuf> = args.files.iter().map(PathBuf::from).collect();
    let options = Options { allow_missing: args.allow_missing, align };
    let run = merge(&files, &destination, options).map_err(|error| match error {
        MergeError::Write(error) => Failure::of_write(&error),
        other => Failure::bad(other),
    })?;
    save(&run, &destination)?;
    show_run(&run, format, &next(destination.path()), Some(&destination.path().display().to_string()))?;
    Ok(exit_of(&run, args.strict))
}

/// Where a result goes that no run makes: `file`, or a name made of the time.
pub(super) fn destination(file: Option<&str>, force: bool) -> Result<Destination, Failure> {
    let opened = match file {
        Some(path) => Destination::at(PathBuf::from(path), force),
        None => {
            let now = WallTime::from_unix_nanos(RunClock::start().epoch_wall_ns());
            Destination::named_after(now, "", Path::new("."))
        }
    };
    opened.map_err(Failure::bad)
}

/// Writes the run file; what cannot be written goes to standard output.
pub(super) fn save(run: &RunFile, destination: &Destination) -> Result<(), Failure> {
    destination.write(run).map_err(|unwritten| {
        let failure = Failure::of_write(&unwritten.error).and("the result is on standard output");
        super::print(&unwritten.json).err().unwrap_or(failure)
    })
}

pub(super) fn next(path: &Path) -> Vec<String> {
    vec![format!("tokload report {} --goodput ttft:1000 tpot:100", path.display())]
}

fn align(text: &str) -> Result<Align, Error> {
    match text {
        "auto" => Ok(Align::Auto),
        "start" => Ok(Align::Start),
        other => Err(Error::new(
            "--align",
            format!("'{other}' is no way to put shares together"),
            "give auto or start",
        )),
    }
}
