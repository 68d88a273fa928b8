//! The repeats of each load as one row: means, and how far they are known.

use super::{Cell, Column, Note, Row};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{FigureBlock, RepeatsBlock};

/// A figure as it is shown.
struct Shown {
    column: Column,
    /// Its name in the file.
    name: &'static str,
    format: fn(f64) -> String,
    /// What its format multiplies by.
    scale: f64,
}

/// The columns behind the load.
const SHOWN: [Shown; 10] = [
    rate("", "req/s", "req_s"),
    rate("output", "tok/s", "out_tok_s"),
    ms("TTFT ms", "p50", "ttft_p50"),
    ms("TTFT ms", "p99", "ttft_p99"),
    ms("TPOT ms", "p50", "tpot_p50"),
    ms("TPOT ms", "p99", "tpot_p99"),
    ms("E2E ms", "p50", "e2e_p50"),
    ms("E2E ms", "p99", "e2e_p99"),
    rate("goodput", "req/s", "goodput_s"),
    Shown { column: column("goodput", "%"), name: "attainment", format: format::percent, scale: 100.0 },
];

/// The columns behind the load.
pub(super) fn columns() -> Vec<Column> {
    SHOWN.iter().map(|shown| shown.column).collect()
}

/// One row for each load that was repeated.
pub(super) fn rows(run: &RunFile) -> Vec<Row> {
    run.repeats.iter().flatten().filter(|repeats| repeats.n > 1).map(row).collect()
}

/// What has to be said of the rows.
pub(super) fn note(run: &RunFile) -> Option<Note> {
    let shown = || run.repeats.iter().flatten().filter(|repeats| repeats.n > 1);
    let least = shown().map(|repeats| repeats.n).min()?;
    let confidence = shown().map(|repeats| repeats.confidence * 100.0).next()?;
    let mut text = format!(
        "means over runs with prompts and gaps of their own, ± half of their {confidence} % interval (Student's t)"
    );
    let warning = !shown().all(|repeats| repeats.enough);
    if warning {
        text += &format!(
            "; {least} runs are too few to rest a claim on, take --num-runs {}",
            crate::stats::Repeats::ENOUGH
        );
    }
    Some(Note { warning, text })
}

fn row(repeats: &RepeatsBlock) -> Row {
    let cell = |shown: &Shown| match repeats.figures.get(shown.name) {
        Some(figure) => cell(figure, shown),
        None => Cell::Absent,
    };
    Row {
        label: format!("{}, {} runs", repeats.label, repeats.n),
        cells: SHOWN.iter().map(cell).collect(),
        second: false,
    }
}

/// Mean and reach, both with the digits of the mean.
fn cell(figure: &FigureBlock, shown: &Shown) -> Cell {
    let (Some(mean), Some(reach)) = (figure.mean, figure.reach) else { return Cell::Absent };
    let mean = (shown.format)(mean);
    let decimals = mean.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    Cell::Number(format!("{mean} ±{:.decimals$}", reach * shown.scale))
}

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}

const fn rate(group: &'static str, heading: &'static str, name: &'static str) -> Shown {
    Shown { column: column(group, heading), name, format: format::rate, scale: 1.0 }
}

const fn ms(group: &'static str, heading: &'static str, name: &'static str) -> Shown {
    Shown { column: column(group, heading), name, format: format::ms, scale: 1e-6 }
}
