//! `--format json`: the numbers of the levels as they are stored, and findings over a plan.

use std::io;

use serde_json::json;

use crate::run_file::RunFile;
use crate::run_file::schema::FindingBlock;
use crate::run_file::write::to_json;
use crate::verdict::Verdict;

/// Writes the run in the form of its file. What only programs read from a file is left out: histograms and series are
/// `null`.
///
/// # Errors
///
/// When `out` fails.
pub fn write(run: &RunFile, out: &mut impl io::Write) -> io::Result<()> {
    let mut shown = run.clone();
    for level in &mut shown.levels {
        level.series = None;
        let of_groups = level.groups.iter_mut().flat_map(|group| group.distributions.values_mut());
        for distribution in level.distributions.values_mut().chain(of_groups) {
            distribution.histogram = None;
        }
    }
    out.write_all(to_json(&shown).as_bytes())
}

/// Writes the findings over a plan with what they make of it.
///
/// # Errors
///
/// When `out` fails.
pub fn write_findings(
    findings: &[FindingBlock],
    verdict: Verdict,
    out: &mut impl io::Write,
) -> io::Result<()> {
    let document =
        json!({ "schema": "tokload.lint", "version": 1, "findings": findings, "verdict": verdict });
    writeln!(out, "{document:#}")
}
