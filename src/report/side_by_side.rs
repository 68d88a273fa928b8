//! Runs beside each other: a table for each load, and the trade between all users and one.

use std::io::{self, Write};

use serde_json::json;

use super::check::{interval, run_title, value};
use super::format;
use super::terminal::{self, Style};
use super::view::{Cell, Column, Note, Row, Table};
use crate::compare::{self, ComparedFigure, Comparison, SideBySide};
use crate::plan::Grade;

/// Writes a table for each load, the front, and what differs besides the server.
///
/// # Errors
///
/// When `out` fails.
pub fn write(runs: &SideBySide, style: Style, out: &mut impl Write) -> io::Result<()> {
    for (place, run) in runs.runs.iter().enumerate() {
        writeln!(out, "{}  {}", letter(place), run_title(run))?;
    }
    for load in &runs.loads {
        writeln!(out, "\n{}", load.load)?;
        let rows = rows_of(runs, load);
        terminal::table(&Table::of("run", COLUMNS.to_vec(), rows), style, out)?;
    }
    if !runs.pareto.is_empty() {
        writeln!(out)?;
        let rows = runs.pareto.iter().map(point_row).collect();
        terminal::table(&Table::of("point", POINT_COLUMNS.to_vec(), rows), style, out)?;
    }
    writeln!(out)?;
    terminal::write_notes(&notes(runs), style, out)
}

/// Writes the comparison as JSON: `tools/schema/tokload.compare.v1.schema.json` describes it.
///
/// # Errors
///
/// When `out` fails.
pub fn write_json(runs: &SideBySide, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:#}", json!(runs))
}

/// In the order of [`SideBySide::FIGURES`].
const COLUMNS: &[Column] = &[
    column("", "req/s"),
    column("output", "tok/s"),
    column("TTFT ms", "p50"),
    column("TTFT ms", "p99"),
    column("TPOT ms", "p50"),
    column("TPOT ms", "p99"),
    column("E2E ms", "p50"),
    column("E2E ms", "p99"),
    column("goodput", "%"),
    column("failed", "%"),
];

const POINT_COLUMNS: &[Column] =
    &[column("tok/s", "one user"), column("tok/s", "all users"), column("", "front")];

/// A row for each run with its values, and below each but the first one with what changed.
fn rows_of(runs: &SideBySide, load: &Comparison) -> Vec<Row> {
    let mut rows = Vec::new();
    for place in 0..runs.runs.len() {
        if load.figures.iter().all(|figure| figure.runs[place].is_none()) {
            continue;
        }
        let label = format!("{}  {}", letter(place), short(&runs.runs[place].name));
        let cells = load.figures.iter().map(|figure| known(figure, place)).collect();
        rows.push(Row { label, cells, second: false });
        let changes: Vec<Cell> = load.figures.iter().map(|figure| changed(figure, place)).collect();
        if changes.iter().any(|cell| *cell != Cell::Blank) {
            rows.push(Row {
                label: format!("   {} to {}, %", letter(0), letter(place)),
                cells: changes,
                second: true,
            });
        }
    }
    rows
}

/// `55.25 (54.1-56.3)`.
fn known(figure: &ComparedFigure, place: usize) -> Cell {
    let Some(cell) = figure.runs[place] else { return Cell::Absent };
    let shown = |number| value(figure.figure, number);
    match (cell.low, cell.high) {
        (None, None) => Cell::Number(shown(cell.value)),
        (low, high) => {
            let end = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), shown);
            Cell::Number(format!("{} ({}-{})", shown(cell.value), end(low), end(high)))
        }
    }
}

/// `+8.9 (+6.1 to +11.8)`, or `≈ (-3.1 to +4.0)` where no difference is shown.
fn changed(figure: &ComparedFigure, place: usize) -> Cell {
    let Some(difference) = figure.runs[place].and_then(|cell| cell.difference) else { return Cell::Blank };
    let interval = interval(figure.figure, &difference);
    if difference.direction().is_eq() {
        return Cell::Number(format!("{SAME} ({interval})"));
    }
    let seen = super::check::end(figure.figure, difference.change);
    Cell::Number(format!("{seen} ({interval})"))
}

fn point_row(point: &compare::Point) -> Row {
    Row {
        label: format!("{}  {}", letter(point.run), point.load),
        cells: vec![
            Cell::Number(format::rate(point.user_tok_s)),
            Cell::Number(format::rate(point.out_tok_s)),
            if point.on_front { Cell::Number("*".to_owned()) } else { Cell::Blank },
        ],
        second: false,
    }
}

fn notes(runs: &SideBySide) -> Vec<Note> {
    let percent = format::typed((runs.confidence * 1e4).round() / 1e2);
    let mut notes = Vec::new();
    let mut say = |text: String| notes.push(Note { warning: false, text });
    say(format!(
        "values with the interval that holds each with {percent} %; without one where it is not known"
    ));
    if runs.differences > 0 {
        say(format!(
            "changes with intervals that hold together with {percent} %, all {}: of shares in points; `{SAME}`: no \
             difference shown",
            runs.differences
        ));
    }
    if !runs.pareto.is_empty() {
        say("front: no other point gives more tokens to one user without giving fewer to all".to_owned());
    }
    notes.extend(runs.remarks.iter().map(|remark| Note {
        warning: remark.grade > Grade::Info,
        text: format!("{}: {}", remark.about, format::one_line(&remark.text, REMARK_CHARS_MAX)),
    }));
    notes
}

/// `A`, `B`, ..., `Z`, `A1`.
fn letter(place: usize) -> String {
    let letter = char::from(b'A' + (place % 26) as u8);
    if place < 26 { letter.to_string() } else { format!("{letter}{}", place / 26) }
}

/// The file's name without its folders.
fn short(path: &str) -> String {
    format::one_line(path.rsplit('/').next().unwrap_or(path), NAME_CHARS_MAX)
}

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}

const SAME: &str = "≈";
const NAME_CHARS_MAX: usize = 24;
const REMARK_CHARS_MAX: usize = 800;
