//! `import`: the result file of another tool as a run file, saved and shown.

use std::fs;
use std::path::Path;

use crate::cli::args::ImportArgs;
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::merge::{destination, save};
use crate::cli::run::show_run;
use crate::cli::value::{self, Format};
use crate::import::{self, File, TimeUnit, Tool};
use crate::plan::{Error, nearest};

pub(super) fn main(args: &ImportArgs) -> Result<Exit, Failure> {
    let format = args.format.as_deref().map_or(Ok(Format::default()), |text| value::format("--format", text));
    let format = format.map_err(Failure::bad)?;
    let tool = args.from.as_deref().map_or(Ok(None), tool).map_err(Failure::bad)?;
    let unit = args.unit.as_deref().map(unit).transpose().map_err(Failure::bad)?;
    let path = Path::new(&args.file);
    let bytes = bytes_of(path)?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = |name: &str| fs::read(path.with_file_name(name)).ok();
    let told = |error: import::Error| match error {
        import::Error::Write(error) => Failure::of_write(&error),
        other => Failure::bad(format!("{}: {other}", args.file)),
    };
    let result = import::read(File { name: &name, bytes: &bytes }, tool, unit, &beside).map_err(told)?;
    drop(bytes);
    let destination = destination(args.output_file.as_deref(), args.force)?;
    let run = result.into_run(&destination).map_err(told)?;
    save(&run, &destination)?;
    let place = destination.path().display().to_string();
    let next = if run.records.is_some() {
        vec![format!("tokload report {place} --goodput ttft:1000 tpot:100")]
    } else {
        Vec::new()
    };
    show_run(&run, format, &next, Some(&place))?;
    Ok(Exit::Done)
}

/// Asked before it is opened: opening a pipe waits for a writer, and a device has no end.
fn bytes_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let told = |error: &dyn std::fmt::Display| {
        Failure::bad(format!("cannot read {}: {error}; name a result file", path.display()))
    };
    let there = fs::metadata(path).map_err(|error| told(&error))?;
    if !there.is_file() {
        return Err(told(&"it is not a regular file"));
    }
    fs::read(path).map_err(|error| told(&error))
}

fn tool(text: &str) -> Result<Option<Tool>, Error> {
    if text == "auto" {
        return Ok(None);
    }
    let known = Tool::ALL.into_iter().find(|tool| tool.name() == text);
    known.map(Some).ok_or_else(|| {
        let names = Tool::ALL.map(Tool::name);
        let near = nearest(text, names).map_or_else(String::new, |near| format!("did you mean {near}? "));
        let remedy = format!("{near}give {} or auto", names.join(", "));
        Error::new("--from", format!("'{text}' is no tool that is known"), remedy)
    })
}

fn unit(text: &str) -> Result<TimeUnit, Error> {
    let all = [TimeUnit::Nanoseconds, TimeUnit::Microseconds, TimeUnit::Milliseconds, TimeUnit::Seconds];
    all.into_iter()
        .find(|unit| unit.name() == text)
        .ok_or_else(|| Error::new("--unit", format!("'{text}' is no unit of time"), "give ns, us, ms or s"))
}
