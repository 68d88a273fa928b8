//! A tool's figures as a table for any format, and as its names in JSON.

use serde_json::{Map, Value, json};

use super::{Level, Other, Spread};
use crate::report::view::{Cell, Column, Note, Row, Table, View};
use crate::run_file::RunFile;
use crate::stats::Quantile;

/// What stands in the columns.
type Part = (&'static str, fn(&Spread) -> f64);

/// The percentiles that each tool prints.
fn percentiles(tool: Other) -> &'static [(&'static str, u32)] {
    match tool {
        Other::Guidellm => &[
            ("p1", 1_000),
            ("p5", 5_000),
            ("p10", 10_000),
            ("p25", 25_000),
            ("p50", 50_000),
            ("p75", 75_000),
            ("p90", 90_000),
            ("p95", 95_000),
            ("p99", 99_000),
            ("p99.9", 99_900),
        ],
        Other::Mlperf => &[
            ("p50", 50_000),
            ("p90", 90_000),
            ("p95", 95_000),
            ("p97", 97_000),
            ("p99", 99_000),
            ("p99.9", 99_900),
        ],
        Other::Servebench => &[("p50", 50_000), ("p90", 90_000), ("p95", 95_000), ("p99", 99_000)],
    }
}

const MOMENTS: [Part; 4] = [
    ("mean", Spread::mean),
    ("std", |spread| spread.variance().sqrt()),
    ("min", Spread::min),
    ("max", Spread::max),
];

/// For any format: a row per figure, and one per single number, of each level.
#[must_use]
pub fn view(run: &RunFile, tool: Other, levels: &[Level]) -> View {
    let whole = View::new(run, &[], None);
    let names = MOMENTS.iter().map(|(name, _)| *name).chain(percentiles(tool).iter().map(|(name, _)| *name));
    let columns: Vec<Column> = names.map(|name| Column { group: "", name }).collect();
    let is_one = levels.len() == 1;
    let rows = levels.iter().flat_map(|level| rows(level, is_one, columns.len())).collect();
    let mut notes = vec![Note { warning: false, text: tool.definitions().to_owned() }];
    for level in levels {
        notes.extend(told(level).map(|(warning, text)| Note {
            warning,
            text: if is_one { text } else { format!("{}: {text}", level.label) },
        }));
    }
    View {
        title: whole.title,
        table: Table { head: tool.name(), whole_labels: true, columns, rows },
        verdict: whole.verdict,
        findings: whole.findings.into_iter().filter(|note| note.warning).collect(),
        notes,
        ..View::default()
    }
}

fn rows(level: &Level, is_one: bool, width: usize) -> Vec<Row> {
    let label = |name: &str| if is_one { name.to_owned() } else { format!("{}: {name}", level.label) };
    let number = |value: f64| match value.is_finite() {
        true => Cell::Number(shown(value)),
        false => Cell::Absent,
    };
    let of_figure = |spread: &Spread| {
        let moments = MOMENTS.iter().map(|(_, of)| of(spread));
        let at = percentiles(level.tool).iter().filter_map(|(_, parts)| Quantile::from_parts(*parts));
        moments.chain(at.map(|quantile| spread.percentile(quantile))).map(number).collect()
    };
    let figures = level.figures.iter().map(|figure| Row {
        label: label(figure.name),
        cells: of_figure(&figure.spread),
        second: false,
    });
    let counts = [("ok", level.ok), ("failed", level.failed), ("cancelled", level.cancelled)];
    let counts = counts.into_iter().filter(|(name, count)| *name != "cancelled" || *count > 0);
    let single = |name: &str, cell: Cell| {
        let mut cells = vec![Cell::Blank; width];
        if let Some(first) = cells.first_mut() {
            *first = cell;
        }
        Row { label: label(name), cells, second: false }
    };
    let totals = level.totals.iter().map(|total| single(total.name, number(total.value)));
    let counts = counts.map(|(name, count)| single(name, Cell::Number(count.to_string())));
    figures.chain(totals).chain(counts).collect()
}

/// Nanoseconds are whole; others have as many digits as say something.
fn shown(value: f64) -> String {
    match value.abs() {
        x if x >= 1e5 => format!("{value:.0}"),
        x if x >= 100.0 => format!("{value:.1}"),
        x if x >= 1.0 || x == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// What must not be missed: whether it is a warning, and the words.
fn told(level: &Level) -> impl Iterator<Item = (bool, String)> {
    let mut told = Vec::new();
    if level.tool == Other::Mlperf {
        if level.failed + level.cancelled > 0 {
            let text = format!(
                "{} requests did not end well: for MLPerf such a run is invalid",
                level.failed + level.cancelled
            );
            told.push((true, text));
        }
        if let Some(passes) = level.passes {
            let text = match passes {
                true => "the limits hold at p99",
                false => "the limits do not hold at p99, or requests failed",
            };
            told.push((false, text.to_owned()));
        }
    }
    if level.ok == 0 {
        told.push((true, "no request ended well: there is nothing to measure".to_owned()));
    }
    told.into_iter()
}

/// A level as an object of the tool's names.
#[must_use]
pub fn to_json(level: &Level) -> Map<String, Value> {
    let figure = |spread: &Spread| {
        let percentiles: Map<String, Value> = percentiles(level.tool)
            .iter()
            .filter_map(|(name, parts)| {
                let value = spread.percentile(Quantile::from_parts(*parts)?);
                let name = match level.tool {
                    // As its files have them: p001, p999.
                    Other::Guidellm => guidellm_key(name),
                    _ => (*name).to_owned(),
                };
                Some((name, json!(value)))
            })
            .collect();
        json!({
            "mean": spread.mean(),
            "median": spread.percentile(Quantile::P50),
            "variance": spread.variance(),
            "std_dev": spread.variance().sqrt(),
            "min": spread.min(),
            "max": spread.max(),
            "count": spread.n(),
            "total_sum": spread.sum(),
            "percentiles": percentiles,
        })
    };
    let mut object = Map::new();
    object.insert("metric_view".to_owned(), json!(level.tool.name()));
    object.insert("level".to_owned(), json!(level.ordinal));
    object.insert("label".to_owned(), json!(level.label));
    for (name, count) in [("ok", level.ok), ("failed", level.failed), ("cancelled", level.cancelled)] {
        object.insert(name.to_owned(), json!(count));
    }
    for total in &level.totals {
        object.insert(total.name.to_owned(), json!(total.value));
    }
    if let Some(passes) = level.passes {
        object.insert("limits_hold".to_owned(), json!(passes));
    }
    for named in &level.figures {
        object.insert(named.name.to_owned(), figure(&named.spread));
    }
    object
}

fn guidellm_key(name: &str) -> String {
    match name {
        "p99.9" => "p999".to_owned(),
        "p1" => "p01".to_owned(),
        "p5" => "p05".to_owned(),
        other => other.to_owned(),
    }
}
