//! The tables that aiperf prints, and above them that of errors.

use std::io::{self, Write};

use super::grid::{Grid, Side};
use super::metric::Group;
use super::{Figure, Level, Stats};
use crate::report::format::one_line;

/// The narrowest tables that aiperf draws: on a narrower terminal lines run over its edge.
pub const WIDTH_MIN: usize = 100;
/// The width of tables in files and pipes.
pub const WIDTH_OF_FILES: usize = 140;

/// The width of tables on a terminal of so many columns; `None`: there is none.
#[must_use]
pub fn width(terminal: Option<usize>) -> usize {
    terminal.map_or(WIDTH_OF_FILES, |columns| columns.max(WIDTH_MIN))
}

/// Writes the tables of `level` within `width` columns: errors, then the metrics. Spaces at the ends of lines are
/// aiperf's.
///
/// # Errors
///
/// When `out` fails.
pub fn write(level: &Level, width: usize, out: &mut impl Write) -> io::Result<()> {
    write_errors(level, width, out)?;
    let title = format!("NVIDIA AIPerf | {}", subject(level.about.generates));
    let mut is_first = true;
    for (group, name) in [
        (Group::Effective, ": Effective"),
        (Group::Active, ": Active"),
        (Group::Usage, ": Usage"),
        (Group::Main, ""),
    ] {
        let rows: Vec<Vec<String>> =
            level.figures.iter().filter(|figure| figure.metric.group() == group).map(row).collect();
        if rows.is_empty() {
            continue;
        }
        if std::mem::take(&mut is_first) {
            write!(out, "\n\n")?;
        }
        let heads = ["Metric", "avg", "min", "max", "p99", "p90", "p50", "std"];
        let columns = heads.map(|head| (head.to_owned(), Side::Right)).to_vec();
        Grid { title: format!("{title}{name}"), columns, rows }.write(width, out)?;
    }
    Ok(())
}

/// Writes the table of errors; nothing without any.
///
/// # Errors
///
/// When `out` fails.
pub fn write_errors(level: &Level, width: usize, out: &mut impl Write) -> io::Result<()> {
    if level.errors.is_empty() {
        return Ok(());
    }
    let rows = level.errors.iter().map(|error| {
        let failure = &error.failure;
        let code = failure.code.map_or_else(|| NONE.to_owned(), |code| code.to_string());
        let message = one_line(&failure.message, MESSAGE_MAX);
        vec![code, failure.kind.clone(), message, grouped(&error.count.to_string())]
    });
    let columns =
        [("Code", Side::Right), ("Type", Side::Right), ("Message", Side::Left), ("Count", Side::Right)];
    let columns = columns.map(|(head, side)| (head.to_owned(), side)).to_vec();
    write!(out, "\n\n")?;
    Grid { title: "NVIDIA AIPerf | Error Summary".to_owned(), columns, rows: rows.collect() }
        .write(width, out)
}

/// What the endpoint is for, in titles.
fn subject(generates: bool) -> &'static str {
    if generates { "LLM Metrics" } else { "Embeddings Metrics" }
}

fn row(figure: &Figure) -> Vec<String> {
    let header = figure.header();
    // A long name has its unit on a line of its own.
    let between = if header.len() > 30 { "\n" } else { " " };
    let stats: &Stats = &figure.stats;
    let numbers = [
        stats.avg,
        stats.min,
        stats.max,
        stats.percentile(99),
        stats.percentile(90),
        stats.percentile(50),
        stats.std,
    ];
    let name = format!("{header}{between}({})", figure.metric.unit());
    std::iter::once(name).chain(numbers.map(number)).collect()
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), |value| grouped(&format!("{value:.2}")))
}

/// A number with commas between its thousands.
fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(a, b)| (a, Some(b)));
    let mut text = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    fraction.iter().for_each(|fraction| text += &format!(".{fraction}"));
    text
}

const NONE: &str = "N/A";
/// A server's message may be a page.
const MESSAGE_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_parted() {
        let shown = [0.0, 12.0, 999.999, 1000.0, 1_234_567.891, -1234.5].map(|value| number(Some(value)));
        assert_eq!(shown, ["0.00", "12.00", "1,000.00", "1,000.00", "1,234,567.89", "-1,234.50"]);
        assert_eq!((number(None).as_str(), grouped("12345").as_str()), ("N/A", "12,345"));
    }

    #[test]
    fn tables_are_never_narrower_than_aiperfs() {
        assert_eq!([None, Some(80), Some(120), Some(200)].map(width), [140, 100, 120, 200]);
    }
}
