//! `aiperf`: the files that `aiperf profile` leaves behind: three, and two of time slices where slices were asked for.

use std::path::Path;

use serde_json::Value;

use super::{Error, Form, Needs, Sink, Source};
use crate::report::aiperf::{self, Level, Saved, timeslices};
use crate::run_file::RunFile;

pub(super) const FORM: Form = Form {
    name: "aiperf",
    what: "aiperf's profile_export_aiperf.json and .csv and profile_export.jsonl",
    is_folder: true,
    is_built_in: true,
    needs: Needs::Events,
    write,
};

fn write(source: &Source<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    for level in aiperf::recorded(source.loaded, &source.slo)? {
        level_files(&source.loaded.run, &level, sink)?;
    }
    Ok(())
}

/// Writes the files of one level of `run`, in the folder that aiperf has for one of several.
///
/// # Errors
///
/// When `sink` fails.
pub fn level_files(run: &RunFile, level: &Level, sink: &mut dyn Sink) -> Result<(), Error> {
    let saved = Saved::of(run, level);
    let folder = saved.folder();
    let name = |file: &str| Path::new(&folder).join(file).display().to_string();
    sink.file(&name("profile_export_aiperf.csv"), &mut |mut out| aiperf::write_csv(level, &mut out))?;
    let object = Value::Object(aiperf::to_json(level, &saved));
    sink.file(&name("profile_export_aiperf.json"), &mut |out| write!(out, "{object:#}"))?;
    sink.file(&name("profile_export.jsonl"), &mut |mut out| aiperf::write_lines(level, &mut out))?;
    let slice_s = saved.plan.as_ref().and_then(|plan| plan.slice_s);
    let Some(slice_ns) = slice_s.map(|s| (s * 1e9).round() as u64) else { return Ok(()) };
    let slices = timeslices::of(level, slice_ns);
    let (csv, object) =
        ("profile_export_aiperf_timeslices.csv", Value::Object(timeslices::to_json(&slices, &saved)));
    sink.file(&name(csv), &mut |mut out| timeslices::write_csv(&slices, &mut out))?;
    sink.file(&name("profile_export_aiperf_timeslices.json"), &mut |out| write!(out, "{object:#}"))
}
