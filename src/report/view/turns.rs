//! The turns of sessions: a row for each of them, and what became of the sessions.

use super::{Cell, Column, Note, Row};
use crate::metrics::metric::Metric;
use crate::report::format;
use crate::run::Sessions;
use crate::run_file::RunFile;
use crate::run_file::schema::{LevelBlock, TurnBlock};
use crate::stats::Quantile;

/// The columns behind the turn.
pub(super) const COLUMNS: &[Column] = &[
    column("", "ok"),
    column("", "failed"),
    column("prompt", "tokens"),
    column("prompt", "cached %"),
    column("TTFT ms", "p50"),
    column("TTFT ms", "p90"),
    column("TPOT ms", "p50"),
    column("TPOT ms", "p90"),
    column("E2E ms", "p50"),
    column("E2E ms", "p90"),
];

/// One row for each turn of each level that had sessions of several.
pub(super) fn rows(run: &RunFile) -> Vec<Row> {
    let of_level = |level: &LevelBlock| -> Vec<Row> {
        level
            .turns
            .iter()
            .flatten()
            .map(|turn| row(turn, (run.levels.len() > 1).then_some(&*level.label)))
            .collect()
    };
    run.levels.iter().flat_map(of_level).collect()
}

/// What became of the sessions of each level.
pub(super) fn notes(run: &RunFile) -> Vec<Note> {
    let several = run.levels.len() > 1;
    let of_level = |level: &LevelBlock| {
        let text = said(&level.sessions?, level.counts.cancelled > 0);
        Some(Note {
            warning: level.sessions?.broken > 0,
            text: if several { format!("{}: {text}", level.label) } else { text },
        })
    };
    run.levels.iter().filter_map(of_level).collect()
}

/// Where requests were `cancelled`, their sessions are among those that were cut off.
fn said(sessions: &Sessions, cancelled: bool) -> String {
    let Sessions { begun, finished, broken, cut, turns_broken, turns_cut } = *sessions;
    let turns = |n: u64| if n == 1 { "1 turn".to_owned() } else { format!("{n} turns") };
    let mut text = format!("sessions: {begun} begun, {finished} finished");
    if broken > 0 {
        text += &format!(", {broken} ended by a failed turn ({} behind it never sent)", turns(turns_broken));
    }
    if cut > 0 {
        let by = if cancelled { "their users or the end of the level" } else { "the end of the level" };
        text += &format!(", {cut} cut off by {by} ({} not sent)", turns(turns_cut));
    }
    text
}

fn row(turn: &TurnBlock, level: Option<&str>) -> Row {
    let name = format!("turn {}{}", turn.turn, if turn.and_later { "+" } else { "" });
    let label = level.map_or_else(|| name.clone(), |level| format!("{level}, {name}"));
    let tokens = &turn.tokens;
    let mean = (tokens.prompt_known > 0).then(|| tokens.prompt as f64 / tokens.prompt_known as f64);
    let cached =
        tokens.cached.filter(|_| tokens.prompt > 0).map(|cached| cached as f64 / tokens.prompt as f64);
    let number = |text: Option<String>| text.map_or(Cell::Absent, Cell::Number);
    let mut cells = vec![
        Cell::Number(turn.counts.ok.to_string()),
        match turn.counts.failed {
            0 => Cell::Number("0".to_owned()),
            failed => Cell::Failures(failed.to_string()),
        },
        number(mean.map(format::rate)),
        number(cached.map(format::percent)),
    ];
    for metric in [Metric::Ttft, Metric::Tpot, Metric::E2e] {
        for quantile in [Quantile::P50, Quantile::P90] {
            cells.push(match turn.distributions.get(&metric) {
                Some(distribution) if distribution.fails(quantile) => Cell::Failed,
                Some(distribution) => number(distribution.quantile(quantile).map(format::ms)),
                None => Cell::Absent,
            });
        }
    }
    Row { label, cells, second: false }
}

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}
