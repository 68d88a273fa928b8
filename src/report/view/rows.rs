//! The table: which columns there are, and a level as a row of them.

use super::{Cell, Column, Row};
use crate::metrics::metric::Metric;
use crate::report::format;
use crate::run_file::schema::LevelBlock;
use crate::stats::Quantile;

/// The columns behind the load, in the order of the cells of [`of`].
pub(super) const COLUMNS: &[Column] = &[
    column("", "ok"),
    column("", "failed"),
    column("", "req/s"),
    column("output", "tok/s"),
    column("TTFT ms", "p50"),
    column("TTFT ms", "p99"),
    column("TPOT ms", "p50"),
    column("TPOT ms", "p99"),
    column("ITL ms", "p50"),
    column("ITL ms", "p99"),
    column("E2E ms", "p50"),
    column("E2E ms", "p99"),
    column("goodput", "req/s"),
    column("goodput", "%"),
    column("delay ms", "p99"),
];

/// The row of a level, and below it the ok requests alone where failures reach a percentile.
pub(super) fn of(level: &LevelBlock, is_imported: bool) -> Vec<Row> {
    let cells = |ok_only| cells(level, is_imported, ok_only);
    let row = Row { label: level.label.clone(), cells: cells(false), second: false };
    if level.counts.ok == 0 || !row.cells.contains(&Cell::Failed) {
        return vec![row];
    }
    vec![row, Row { label: "  ok only".to_owned(), cells: cells(true), second: true }]
}

fn cells(level: &LevelBlock, is_imported: bool, ok_only: bool) -> Vec<Cell> {
    let number = |value: Option<f64>, format: fn(f64) -> String| match value.filter(|v| v.is_finite()) {
        Some(_) if ok_only => Cell::Blank,
        Some(value) => Cell::Number(format(value)),
        None => Cell::Absent,
    };
    let counts = &level.counts;
    // Without a success there is no throughput to speak of; a zero would look like a measurement. Nor is there one of a
    // length that nobody knows, as of an imported table of percentiles.
    let is_known = counts.ok > 0 && level.rates.window.span_s > 0.0;
    let rate = |value: f64| number(Some(value).filter(|_| is_known), format::rate);
    let mut cells = vec![
        number(Some(counts.ok as f64), |n| n.to_string()),
        match counts.failed {
            _ if ok_only => Cell::Blank,
            0 => Cell::Number("0".to_owned()),
            n => Cell::Failures(n.to_string()),
        },
        rate(level.rates.window.req_s),
        match is_imported && level.tokens.is_uncounted() {
            true => Cell::Absent,
            false => rate(level.rates.window.out_tok_s),
        },
    ];
    for metric in [Metric::Ttft, Metric::Tpot, Metric::Itl, Metric::E2e] {
        cells.extend([Quantile::P50, Quantile::P99].map(|q| percentile(level, metric, q, ok_only)));
    }
    cells.push(number(level.goodput.map(|g| g.good_s), format::rate));
    cells.push(match attainment(level) {
        Some(_) if ok_only => Cell::Blank,
        Some(text) => Cell::Number(text),
        None => Cell::Absent,
    });
    cells.push(number(level.delay_p99_ns(), format::ms));
    if ok_only {
        // Only what differs from the row above is said again.
        cells.iter_mut().filter(|cell| **cell == Cell::Absent).for_each(|cell| *cell = Cell::Blank);
    }
    cells
}

fn percentile(level: &LevelBlock, metric: Metric, quantile: Quantile, ok_only: bool) -> Cell {
    let Some(distribution) = level.distributions.get(&metric) else {
        let failed = level.counts.ranked_failed();
        let all_failed = failed > 0 && failed == level.counts.ranked();
        return if all_failed && metric.is_per_request() { Cell::Failed } else { Cell::Absent };
    };
    match distribution.quantile(quantile) {
        _ if distribution.fails(quantile) && !ok_only => Cell::Failed,
        Some(ns) if !ok_only || distribution.fails(quantile) => latency(level, metric, quantile, ns),
        Some(_) => Cell::Blank,
        None => Cell::Absent,
    }
}

/// A latency, marked where it is not what it seems.
fn latency(level: &LevelBlock, metric: Metric, quantile: Quantile, ns: f64) -> Cell {
    let text = format::ms(ns);
    let Some(statistics) = &level.statistics else { return Cell::Number(text) };
    if statistics.steady.latency_grows {
        return Cell::Growing(text + GROWS);
    }
    let known = statistics.latency(metric).and_then(|latency| latency.quantile(quantile));
    if known.is_some_and(|known| !known.supported) {
        return Cell::Unsupported(text + UNSUPPORTED);
    }
    Cell::Number(text)
}

/// Attainment in percent with its interval, where that is known: `90.2 (84.1-94.0)`.
fn attainment(level: &LevelBlock) -> Option<String> {
    let attainment = format::percent(level.goodput?.attainment);
    let known = level.statistics.as_ref().and_then(|statistics| statistics.attainment);
    Some(known.map_or(attainment.clone(), |known| {
        // Decimals of a wide interval say nothing.
        let end = if known.high - known.low < WIDE { format::percent } else { format::whole_percent };
        format!("{attainment} ({}-{})", end(known.low), end(known.high))
    }))
}

const WIDE: f64 = 0.1;
/// Behind a latency that grows with the length of the level.
pub(super) const GROWS: &str = "↑";
/// Behind a percentile for which there are too few independent requests.
pub(super) const UNSUPPORTED: &str = "?";

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}
