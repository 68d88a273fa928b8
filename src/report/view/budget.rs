//! The error budget: what the client may have added to the numbers above it, and how well it kept up.

use super::{Cell, Column, Row};
use crate::metrics::metric::Metric;
use crate::report::format;
use crate::run_file::schema::{ClientErrorBlock, DelayBlock, LevelBlock};
use crate::stats::Quantile;

/// The columns behind the load, in the order of the cells of [`of`].
pub(super) const COLUMNS: &[Column] = &[
    column("p99 off by at most, ms", "TTFT"),
    column("p99 off by at most, ms", "TPOT"),
    column("p99 off by at most, ms", "ITL"),
    column("p99 off by at most, ms", "E2E"),
    column("late p99 ms", "loop"),
    column("late p99 ms", "read"),
    column("CPU %", "shard"),
    column("CPU %", "host"),
    column("events", "joined %"),
];

/// The row of a level; `None` for one that was not really measured.
pub(super) fn of(level: &LevelBlock) -> Option<Row> {
    let check = &level.self_check;
    check.loop_lag.as_ref()?;
    let error = |metric| error_cell(check.error_of(metric, Quantile::P99));
    let delay = |delay: Option<DelayBlock>| number(delay.and_then(|d| d.p99_ns), format::ms);
    let cells = vec![
        error(Metric::Ttft),
        error(Metric::Tpot),
        error(Metric::Itl),
        error(Metric::E2e),
        delay(check.loop_lag),
        delay(check.receive_lag),
        number(check.cpu_share_max, format::percent),
        number(check.host.as_ref().and_then(|host| host.busy_share), format::percent),
        number((check.events > 0).then(|| check.joined as f64 / check.events as f64), format::percent),
    ];
    Some(Row { label: level.label.clone(), cells, second: false })
}

/// `~` before what is estimated.
fn error_cell(error: Option<&ClientErrorBlock>) -> Cell {
    let Some(error) = error else { return Cell::Absent };
    let text = format!("{}{}", if error.estimated { "~" } else { "" }, format::ms(error.error_ns));
    // A millisecond, or a hundredth of the value: the bounds of the measurement spec for the client's lateness.
    if error.error_ns > (error.value_ns / 100.0).max(1e6) { Cell::Suspect(text) } else { Cell::Number(text) }
}

fn number(value: Option<f64>, format: fn(f64) -> String) -> Cell {
    value.map_or(Cell::Absent, |value| Cell::Number(format(value)))
}

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}
