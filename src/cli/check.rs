//! `check`: a run against its baseline, for people and for CI.

pub(super) mod thresholds;

use super::args::CheckArgs;
use super::compare::{confidence, samples, slo};
use super::exit::Exit;
use super::failure::Failure;
use super::run::terminal_style;
use super::{say, with_stdout};
use crate::compare::Sample;
use crate::gate::{self, Outcome, Report, Thresholds};
use crate::plan::Error;
use crate::report::check::{self, github, junit};
use crate::verdict::Verdict;

/// The format of standard output.
enum Format {
    Github,
    Json,
    Junit,
    Table,
}

pub(super) fn main(args: &CheckArgs) -> Result<Exit, Failure> {
    let format = format(args.format.as_deref()).map_err(Failure::bad)?;
    let mut thresholds = thresholds::of(args).map_err(Failure::bad)?;
    thresholds.confidence = confidence(args.confidence_level.as_deref()).map_err(Failure::bad)?;
    thresholds.slo = slo(&args.goodput).map_err(Failure::bad)?;
    if args.baseline.is_empty() {
        let error =
            Error::new("--baseline", "is missing", "name the saved run that the candidate is held against");
        return Err(Failure::bad(error));
    }
    let candidate = samples(std::slice::from_ref(&args.candidate))?.swap_remove(0);
    let baselines = samples(&args.baseline)?;
    let report = compared(&baselines, &candidate, &thresholds).map_err(Failure::bad)?;
    match format {
        Format::Github => with_stdout(|mut out| github::write(&report, &mut out))?,
        Format::Json => with_stdout(|mut out| check::write_json(&report, &mut out))?,
        Format::Junit => with_stdout(|mut out| junit::write(&report, args.strict, &mut out))?,
        Format::Table => with_stdout(|mut out| check::write(&report, terminal_style(), &mut out))?,
    }
    let is_invalid =
        baselines.iter().chain([&candidate]).any(|run| run.run.verdict == Some(Verdict::Invalid));
    Ok(exit_of(&report, args.strict, is_invalid))
}

fn exit_of(report: &Report, strict: bool, is_invalid: bool) -> Exit {
    match report.outcome {
        Outcome::Regression => Exit::GateFailed,
        _ if strict && is_invalid => {
            say("tokload: a measurement is invalid (--strict)");
            Exit::NotValid
        }
        Outcome::Inconclusive if strict => {
            say("tokload: inconclusive (--strict)");
            Exit::GateFailed
        }
        _ if strict && report.is_doubtful() => {
            say("tokload: the runs are not of the same kind (--strict)");
            Exit::GateFailed
        }
        Outcome::Pass | Outcome::Inconclusive => Exit::Done,
    }
}

/// What the gate says, if it had anything to compare.
pub(super) fn compared(
    baselines: &[Sample],
    candidate: &Sample,
    thresholds: &Thresholds,
) -> Result<Report, Error> {
    let report = gate::check(baselines, candidate, thresholds);
    if report.comparisons == 0 { Err(nothing_to_compare(&report, candidate)) } else { Ok(report) }
}

/// A gate that compared nothing must not look like one that passed.
fn nothing_to_compare(report: &Report, candidate: &Sample) -> Error {
    let (wrong, remedy) = if !report.loads.is_empty() {
        ("nothing that both runs have is gated", "give --max-degradation FIGURE=SHARE for what they have")
    } else if candidate.run.levels.is_empty() {
        ("the candidate has no level", "name a run that was measured")
    } else {
        (
            "no load of the candidate is one of the baseline",
            "run both with the same --max-concurrency or --request-rate",
        )
    };
    let loads = if report.unmatched.is_empty() {
        String::new()
    } else {
        format!(" ({})", report.unmatched.join(", "))
    };
    Error::new("tokload check", format!("{wrong}{loads}"), remedy)
}

fn format(text: Option<&str>) -> Result<Format, Error> {
    match text {
        None | Some("table") => Ok(Format::Table),
        Some("github") => Ok(Format::Github),
        Some("json") => Ok(Format::Json),
        Some("junit") => Ok(Format::Junit),
        Some(other) => {
            let remedy = "give table, json, github or junit";
            Err(Error::new("--format", format!("'{other}' is not a format"), remedy))
        }
    }
}
