//! aiperf's tables on standard output and its files: `--metric-view aiperf`, and what `profile` leaves behind.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::export::Place;
use super::failure::Failure;
use super::value::Format;
use super::whole_file::try_out;
use super::{say, with_stdout};
use crate::report::View;
use crate::report::aiperf::{self, Group, Level, Metric, Saved};
use crate::run_file::RunFile;

/// What of aiperf's is wanted of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AiperfOutput {
    /// The tables are printed instead of ours.
    pub is_shown: bool,
    /// The files are written.
    pub is_saved: bool,
}

/// Whether files could be written in `dir`, or where aiperf puts them, before anything is measured.
pub(super) fn check(dir: Option<&str>) -> Result<(), Failure> {
    try_out(&Path::new(dir.unwrap_or(USUAL)).join("a"))
}

/// Writes the files of each level, over those that are there as aiperf does; returns their names. They lie in `dir`, or
/// where aiperf puts them; those of several levels and rounds in folders of it.
pub(super) fn save(run: &RunFile, levels: &[Level], dir: Option<&str>) -> Result<Vec<PathBuf>, Failure> {
    let Some(first) = levels.first() else { return Ok(Vec::new()) };
    let usual = || Path::new(USUAL).join(Saved::of(run, first).run_folder());
    let mut folder = Place::new(dir.map_or_else(usual, PathBuf::from));
    for level in levels {
        let written = aiperf::write_files(run, level, &mut folder);
        written.map_err(|error| folder.why_unwritten(error.to_string()))?;
    }
    Ok(folder.written)
}

/// Prints the tables, or the objects as lines of JSON, and beside them on standard error what must not be missed.
pub(super) fn show(
    run: &RunFile,
    levels: &[Level],
    format: Format,
    terminal: Option<usize>,
    quiet: bool,
) -> Result<(), Failure> {
    match format {
        Format::Json => with_stdout(|out| {
            for level in levels {
                writeln!(out, "{}", Value::Object(aiperf::to_json(level, &Saved::of(run, level))))?;
            }
            Ok(())
        }),
        Format::Table => with_stdout(|mut out| {
            for level in levels {
                if levels.len() > 1 {
                    writeln!(out, "\n{}", Saved::of(run, level).level)?;
                }
                aiperf::write(level, aiperf::width(terminal), &mut out)?;
                let duration = level.figure(Metric::BenchmarkDuration).and_then(|figure| figure.stats.avg);
                if let Some(seconds) = duration {
                    let early = if level.about.interrupted { " (cancelled early)" } else { "" };
                    writeln!(out, "\nBenchmark Duration: {seconds:.2} sec{early}")?;
                }
            }
            Ok(())
        }),
    }?;
    if quiet {
        return Ok(());
    }
    remarks(levels).iter().for_each(|remark| say(remark));
    let view = View::new(run, &[], None);
    view.verdict.iter().for_each(|verdict| say(verdict));
    view.findings.iter().filter(|note| note.warning).for_each(|note| say(&note.text));
    Ok(())
}

/// What of `levels` is not as aiperf would have it, one line each.
fn remarks(levels: &[Level]) -> Vec<String> {
    let mut said = vec![DEFINITIONS.to_owned()];
    let ok = || levels.iter().flat_map(|level| &level.answers).filter(|answer| answer.failure.is_none());
    if ok().any(|answer| answer.ttft_ns.is_some() && answer.gaps_ns.is_none()) {
        said.push(
            "times of events were not kept (--save-chunks): there is no time to second token, inter-chunk latency is that \
             of a histogram, within 0.1 %, and decode throughput is even within a request"
                .to_owned(),
        );
    }
    let uncounted = ok().filter(|answer| answer.input_tokens.is_none()).count();
    if uncounted > 0 {
        said.push(format!(
            "the server counted no prompt tokens for {uncounted} answers: input sequence length is without them"
        ));
    }
    if ok().any(|answer| answer.output_tokens.is_some() && answer.usage.completion.is_none()) {
        said.push(
            "where the server counts no tokens, output sequence length is our count of them".to_owned(),
        );
    }
    if levels.iter().any(|level| level.about.slo.itl_max_ms.is_some()) {
        said.push("aiperf has no limit on the largest gap: itl_max is left out of goodput here".to_owned());
    }
    let has = |metric| levels.iter().any(|level| level.figure(metric).is_some());
    if has(Metric::UsagePromptTokens) && !has(Metric::UsagePromptCacheReadTokens) {
        said.push(
            "the server says nothing of tokens from its prefix cache (vLLM: --enable-prompt-tokens-details, SGLang: \
             --enable-cache-report)"
                .to_owned(),
        );
    }
    let is_empty = |level: &Level| level.figures.iter().all(|figure| figure.metric.group() == Group::Files);
    if levels.iter().any(is_empty) {
        said.push("a level without any request has no tables".to_owned());
    }
    said
}

/// Where aiperf puts its files.
const USUAL: &str = "artifacts";

/// What the numbers are, and where the others stand.
const DEFINITIONS: &str = "these are aiperf's definitions over all requests of the level, without a warm-up cut: \
    percentiles by linear interpolation, cancelled requests among the errors, which are left out of all but the \
    error-adjusted rows; inter-token latency is what tokload calls TPOT; tokload report shows the saved run in ours";
