//! Levels over time: a row for each slice, or for some neighbours together where there are many.

use super::{Cell, Column, Note, Row};
use crate::metrics::slices;
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{LevelBlock, SlicesBlock};
use crate::stats::{Quantile, Sparse};
use crate::summary::slices::{Piece, pieces};

/// Rows of a level at most.
const ROWS_MAX: usize = 24;

/// The columns behind the time.
pub(super) const COLUMNS: &[Column] = &[
    column("", "ok"),
    column("", "failed"),
    column("", "req/s"),
    column("", "tok/s"),
    column("TTFT ms", "p50"),
    column("TTFT ms", "p99"),
    column("TPOT ms", "p50"),
    column("ITL ms", "p50"),
    column("ITL ms", "p99"),
    column("E2E ms", "p50"),
    column("E2E ms", "p99"),
];

/// The slices of each level that has any.
pub(super) fn rows(run: &RunFile) -> Vec<Row> {
    let several = run.levels.len() > 1;
    run.levels.iter().flat_map(|level| of_level(level, several)).collect()
}

/// How many slices a row stands for, and that neighbours were joined.
pub(super) fn notes(run: &RunFile) -> Vec<Note> {
    run.levels.iter().filter_map(|level| note(run, level)).collect()
}

fn note(run: &RunFile, level: &LevelBlock) -> Option<Note> {
    let slices = level.slices.as_ref()?;
    let mut parts = Vec::new();
    if slices.width_s > slices.asked_s {
        parts.push(format!(
            "slices of {} s were joined to {} s, at most {} are kept",
            format::typed(slices.asked_s),
            format::typed(slices.width_s),
            slices::Slices::MAX
        ));
    }
    let together = together(slices.rows.len());
    if together > 1 {
        parts.push(format!(
            "a row of slices stands for {together} of {} s each: all are in the run file, and in --export slices=FILE",
            format::typed(slices.width_s)
        ));
    }
    let text = parts.join("; ");
    let text = if run.levels.len() > 1 { format!("{}: {text}", level.label) } else { text };
    (!parts.is_empty()).then_some(Note { warning: false, text })
}

fn of_level(level: &LevelBlock, several: bool) -> Vec<Row> {
    let Some(block) = &level.slices else { return Vec::new() };
    let Ok(slices) = block.buckets.read() else { return Vec::new() };
    let together = together(slices.rows().len());
    let row = |piece: &Piece| {
        let time = format!("{} s", format::typed(piece.start_s));
        let label = if several { format!("{}, {time}", level.label) } else { time };
        Row { label, cells: cells(piece), second: false }
    };
    pieces(&slices, level.span.nanos(), together).iter().map(row).collect()
}

fn together(rows: usize) -> usize {
    rows.div_ceil(ROWS_MAX).max(1)
}

fn cells(piece: &Piece) -> Vec<Cell> {
    let row = &piece.row;
    let failed = match row.failed {
        0 => Cell::Number("0".to_owned()),
        failed => Cell::Failures(failed.to_string()),
    };
    let at = |values: &Sparse, quantile| match values.quantile(quantile) {
        Some(ns) => Cell::Number(format::ms(ns as f64)),
        None => Cell::Absent,
    };
    vec![
        Cell::Number(row.ok.to_string()),
        failed,
        Cell::Number(format::rate(piece.rate(row.ok))),
        Cell::Number(format::rate(piece.rate(row.tokens))),
        at(&row.ttft, Quantile::P50),
        at(&row.ttft, Quantile::P99),
        at(&row.tpot, Quantile::P50),
        at(&row.itl, Quantile::P50),
        at(&row.itl, Quantile::P99),
        at(&row.e2e, Quantile::P50),
        at(&row.e2e, Quantile::P99),
    ]
}

/// The whole of what a file has of its slices.
pub(in crate::report) fn blocks(run: &RunFile) -> impl Iterator<Item = (&LevelBlock, &SlicesBlock)> {
    run.levels.iter().filter_map(|level| Some((level, level.slices.as_ref()?)))
}

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}
