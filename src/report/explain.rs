//! A run explained in plain words: why the curve bends, and Little's law line by line.
//!
//! Every sentence rests on numbers of the run file, and shows them; what a modelled server adds is said only where
//! there is one. Unlike the other views it calculates, but before the reader's eyes: products and differences of
//! numbers that the table has. It does not judge a measurement.

mod curve;
mod facts;
mod little;
mod server;
mod telemetry;

use std::io::{self, Write};

use self::facts::Facts;
use crate::model::Settings;
use crate::run_file::RunFile;
use crate::run_file::schema::LevelBlock;

/// Explains `run`, in the order of its levels; `model` is the server if it was a modelled one.
///
/// Levels without data are passed over, and a run without any gives nothing.
///
/// # Errors
/// Those of `out`.
pub fn write(run: &RunFile, model: Option<&Settings>, out: &mut impl Write) -> io::Result<()> {
    let choices = run.plan.read().map_or(1, |plan| plan.workload.choices);
    let levels: Vec<Facts<'_>> = run.levels.iter().filter_map(|level| Facts::of(level, choices)).collect();
    let curve = curve::paragraphs(&levels, model);
    if !curve.is_empty() {
        writeln!(out, "\nwhy the curve bends")?;
    }
    for paragraph in &curve {
        wrap(out, "  ", paragraph)?;
    }
    if !levels.is_empty() {
        writeln!(out, "\nLittle's law: in flight = ended per second * time in flight, L = X W")?;
    }
    for level in &levels {
        writeln!(out, "  {}", level.label)?;
        for line in little::lines(level) {
            wrap(out, "    ", &line)?;
        }
    }
    let has_data = |level: &&LevelBlock| Facts::of(level, choices).is_some();
    let told = run.levels.iter().filter(has_data).map(|level| (level, telemetry::lines(level)));
    let told: Vec<_> = told.collect();
    if told.iter().any(|(_, lines)| !lines.is_empty()) {
        writeln!(out, "\nwhat the servers said meanwhile")?;
    }
    for (level, lines) in told.iter().filter(|(_, lines)| !lines.is_empty()) {
        writeln!(out, "  {}", level.label)?;
        lines.iter().try_for_each(|line| wrap(out, "    ", line))?;
    }
    Ok(())
}

/// Writes `text` in lines of at most [`WIDTH`] characters behind `indent`, further ones two deeper.
fn wrap(out: &mut impl Write, indent: &str, text: &str) -> io::Result<()> {
    let mut used = 0;
    for (place, word) in text.split(' ').enumerate() {
        let width = word.chars().count();
        let breaks = place > 0 && used + 1 + width > WIDTH;
        let before = match place {
            0 => indent.to_owned(),
            _ if breaks => format!("\n{indent}  "),
            _ => " ".to_owned(),
        };
        write!(out, "{before}{word}")?;
        used = if breaks { indent.len() + 2 + width } else { used + before.len() + width };
    }
    writeln!(out)
}

const WIDTH: usize = 80;
