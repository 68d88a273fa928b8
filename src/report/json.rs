//! `--format json`: the numbers of the levels as they are stored.

use std::io;

use crate::run_file::RunFile;
use crate::run_file::write::to_json;

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
        for distribution in level.distributions.values_mut() {
            distribution.histogram = None;
        }
    }
    out.write_all(to_json(&shown).as_bytes())
}
