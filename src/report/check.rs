//! What a gate says, as text, JSON, annotations of GitHub's actions, and JUnit's XML.
//!
//! One table, in words where a number would not do. Every format says the same of every figure, and every remark.

pub mod github;
pub mod junit;

use std::io::{self, Write};

use serde_json::json;

use super::format;
use super::terminal::{self, Style};
use super::view::{Cell, Column, Note, Row, Table};
use crate::compare::{Difference, Figure, RunName, Scale};
use crate::gate::{Against, Checked, CheckedLoad, Needed, Outcome, Reason, Report};
use crate::metrics::metric::Better;
use crate::plan::Grade;

/// Writes the table, and below it what it takes to decide, what differs besides the server, and the outcome.
///
/// # Errors
///
/// When `out` fails.
pub fn write(report: &Report, style: Style, out: &mut impl Write) -> io::Result<()> {
    for line in title(report) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    let rows = report.loads.iter().flat_map(rows_of).collect();
    terminal::table(&Table::of("load", COLUMNS.to_vec(), rows), style, out)?;
    writeln!(out)?;
    let shared = format!(
        "intervals: all {} hold together with {} %; those of shares are in points; a limit is on what the interval can \
         be, not on the change seen",
        report.comparisons,
        format::typed((report.confidence * 1e4).round() / 1e2)
    );
    let mut notes = vec![Note { warning: false, text: shared }];
    notes.extend(report.loads.iter().flat_map(open_questions));
    notes.extend(report.unmatched.iter().map(|load| Note {
        warning: true,
        text: format!("{load}: only one side has this load, so nothing is said of it"),
    }));
    notes.extend(remarks(report));
    terminal::write_notes(&notes, style, out)?;
    writeln!(out, "\n{}", conclusion(report))
}

/// Writes the report as JSON: `tools/schema/tokload.check.v1.schema.json` describes it.
///
/// # Errors
///
/// When `out` fails.
pub fn write_json(report: &Report, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{:#}", json!(report))
}

/// The outcome in a sentence.
#[must_use]
pub fn conclusion(report: &Report) -> String {
    let of = |wanted: Outcome| {
        let figures = report.loads.iter().flat_map(move |load| {
            let figures = load.figures.iter().filter(move |figure| figure.outcome == wanted);
            figures.map(move |figure| format!("{} at {}", figure.figure, load.load))
        });
        figures.collect::<Vec<_>>()
    };
    match report.outcome {
        Outcome::Pass => {
            format!("pass: none of {} figures is worse by more than its limit", report.comparisons)
        }
        Outcome::Regression => format!("regression: {}", of(Outcome::Regression).join(", ")),
        Outcome::Inconclusive => {
            let open = of(Outcome::Inconclusive);
            match open.len() {
                0 => "inconclusive: not every load was compared".to_owned(),
                n => format!(
                    "inconclusive: {n} of {} figures cannot be told from their limits with what was measured",
                    report.comparisons
                ),
            }
        }
    }
}

const COLUMNS: &[Column] = &[
    column("", "before"),
    column("", "now"),
    column("change %", "seen"),
    column("change %", "interval"),
    column("", "limit"),
    column("", "outcome"),
];

fn title(report: &Report) -> Vec<String> {
    let mut lines = vec![format!("check    {}", run_title(&report.candidate))];
    let heads = std::iter::once("against  ").chain(std::iter::repeat("         "));
    lines.extend(heads.zip(&report.baselines).map(|(head, run)| format!("{head}{}", run_title(run))));
    lines
}

/// `new.json · vllm 0.11 · 2026-12-01 03:00:00 UTC`.
pub(super) fn run_title(run: &RunName) -> String {
    let mut parts = vec![run.name.clone()];
    parts.extend(run.server.clone());
    parts.push(run.created.split('.').next().unwrap_or_default().replace('T', " ") + " UTC");
    parts.extend(run.label.clone());
    // A file may come from anywhere.
    format::one_line(&parts.join(" · "), TITLE_CHARS_MAX)
}

fn rows_of(load: &CheckedLoad) -> Vec<Row> {
    let mut cells = vec![Cell::Blank; COLUMNS.len() - 1];
    cells.push(outcome(load.outcome));
    let head = Row { label: load.load.clone(), cells, second: false };
    std::iter::once(head).chain(load.figures.iter().map(row_of)).collect()
}

fn row_of(checked: &Checked) -> Row {
    let shown = |value: Option<f64>| {
        value.map_or(Cell::Absent, |value| Cell::Number(self::value(checked.figure, value)))
    };
    let difference = checked.difference;
    let cells = vec![
        match checked.against {
            Against::Baseline => shown(checked.baseline),
            Against::Nothing => Cell::Blank,
        },
        shown(checked.candidate),
        difference.map_or(Cell::Absent, |of| Cell::Number(end(checked.figure, of.change))),
        difference.map_or(Cell::Absent, |of| Cell::Number(interval(checked.figure, &of))),
        Cell::Number(without_unit(&limit(checked))),
        outcome(checked.outcome),
    ];
    Row { label: format!(" {}{}", checked.figure, unit(checked.figure)), cells, second: false }
}

fn outcome(outcome: Outcome) -> Cell {
    let word = word(outcome).to_owned();
    match outcome {
        Outcome::Pass => Cell::Number(word),
        Outcome::Inconclusive => Cell::Suspect(word),
        Outcome::Regression => Cell::Failures(word),
    }
}

/// The outcome in a word.
pub(crate) const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Inconclusive => "inconclusive",
        Outcome::Regression => "regression",
    }
}

/// The unit behind the name of a figure in which its values are shown.
pub(super) fn unit(figure: Figure) -> &'static str {
    match figure {
        Figure::Quantile(..) => " ms",
        Figure::Attainment | Figure::Failed => " %",
        Figure::Rate(_) => "",
    }
}

/// A value without its unit.
pub(super) fn value(figure: Figure, value: f64) -> String {
    match figure {
        Figure::Quantile(..) => format::ms(value),
        Figure::Attainment | Figure::Failed => format::percent(value),
        Figure::Rate(_) => format::rate(value),
    }
}

/// A change with its sign and unit: `+8.9 %`, of a share `-1.25 pt`.
pub(super) fn change(figure: Figure, change: f64) -> String {
    let unit = if figure.scale() == Scale::Relative { "%" } else { "pt" };
    format!("{} {unit}", end(figure, change))
}

/// Both ends of a change: `+6.1 to +11.8`, without the unit.
pub(super) fn interval(figure: Figure, difference: &Difference) -> String {
    let known = |end: Option<f64>| end.map_or_else(|| "?".to_owned(), |end| self::end(figure, end));
    match (difference.low, difference.high) {
        (None, None) => "not known".to_owned(),
        (low, high) => format!("{} to {}", known(low), known(high)),
    }
}

/// A change with its sign, in percent or points.
pub(super) fn end(figure: Figure, change: f64) -> String {
    match figure.scale() {
        Scale::Relative => format!("{:+.1}", positive_zero(change * 100.0, 1)),
        Scale::Points => format!("{:+.2}", positive_zero(change * 100.0, 2)),
    }
}

fn without_unit(text: &str) -> String {
    text.split(' ').next().unwrap_or_default().to_owned()
}

/// No minus before a number that is shown as 0.
fn positive_zero(number: f64, decimals: i32) -> f64 {
    let scale = 10f64.powi(decimals);
    let rounded = (number * scale).round() / scale;
    if rounded == 0.0 { 0.0 } else { rounded }
}

/// The limit as the change that it allows: `+5 %`, `-5 pt`; of the candidate alone `1 %`.
fn limit(checked: &Checked) -> String {
    let percent = format::typed((checked.limit * 1e6).round() / 1e4);
    if checked.against == Against::Nothing {
        return format!("{percent} %");
    }
    let sign = if checked.figure.better() == Better::Lower { '+' } else { '-' };
    let unit = if checked.figure.scale() == Scale::Relative { "%" } else { "pt" };
    format!("{sign}{percent} {unit}")
}

/// What is open in a load and would be decided by what.
fn open_questions(load: &CheckedLoad) -> Vec<Note> {
    let mut notes = Vec::new();
    if let Some(Needed { candidate, baseline }) = load.needed {
        let each: Vec<String> = load
            .figures
            .iter()
            .filter_map(|figure| Some(format!("{} {}", figure.figure, figure.needed?.candidate)))
            .collect();
        let text = format!(
            "{}: {candidate} requests in the candidate and {baseline} in the baseline would decide, where there are {} \
             and {} ({})",
            load.load,
            load.candidate_requests,
            load.baseline_requests,
            each.join(", ")
        );
        notes.push(Note { warning: true, text });
    }
    for checked in &load.figures {
        if let Some(reason) = checked.reason.filter(|_| checked.needed.is_none()) {
            let text = format!("{}: {}: {}", load.load, checked.figure, why(reason));
            notes.push(Note { warning: true, text });
        }
    }
    notes
}

/// Why a figure is inconclusive, in words.
pub(super) const fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::Missing => "one side has no value of it, or 0, from which nothing changes relatively",
        Reason::Growing => {
            "a queue grew all the while, so that it has no steady value: take a load that the server can bear"
        }
        Reason::NoRecords => {
            "without records nobody knows how far it may be off: keep them, or take five rounds by --num-runs 5"
        }
        Reason::TooFew => "its requests are worth too few independent ones",
        Reason::Wide => "its interval holds the limit",
        Reason::RunsDiffer => {
            "no number of requests would decide: take more runs as baselines, or a limit above 0"
        }
    }
}

fn remarks(report: &Report) -> Vec<Note> {
    let note = |remark: &crate::compare::Remark| Note {
        warning: remark.grade > Grade::Info,
        text: format!("{}: {}", remark.about, format::one_line(&remark.text, REMARK_CHARS_MAX)),
    };
    report.remarks.iter().map(note).collect()
}

/// A figure of a load in a sentence: `ttft_p50 55.25 -> 60.77 ms, change +10.0 % (+8.1 to +12.0), limit +5 %`.
pub(super) fn sentence(checked: &Checked) -> String {
    let shown = |value: Option<f64>| {
        value.map_or_else(|| "unknown".to_owned(), |value| self::value(checked.figure, value))
    };
    let before = match checked.against {
        Against::Baseline => format!("{} -> ", shown(checked.baseline)),
        Against::Nothing => String::new(),
    };
    let mut text = format!("{} {before}{}{}", checked.figure, shown(checked.candidate), unit(checked.figure));
    if let Some(difference) = checked.difference {
        text += &format!(
            ", change {} ({})",
            change(checked.figure, difference.change),
            interval(checked.figure, &difference)
        );
    }
    text += &format!(", limit {}", limit(checked));
    match (checked.needed, checked.reason) {
        (Some(needed), _) => {
            text += &format!(
                "; {} requests in the candidate and {} in the baseline would decide",
                needed.candidate, needed.baseline
            );
        }
        (None, Some(reason)) => text += &format!("; {}", why(reason)),
        (None, None) => {}
    }
    text
}

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}

const TITLE_CHARS_MAX: usize = 300;
const REMARK_CHARS_MAX: usize = 800;
