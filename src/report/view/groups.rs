//! Parts of the levels as rows: by model, by endpoint, by replica, slow readers; and what was given up and left out.

use super::{Cell, Column, Note, Row};
use crate::metrics::Record;
use crate::metrics::metric::Metric;
use crate::plan::Plan;
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{GroupBlock, LevelBlock};
use crate::stats::Quantile;
use crate::summary::GroupKey;

/// The columns behind the label, in the order of the cells.
pub(super) const COLUMNS: &[Column] = &[
    column("", "ok"),
    column("", "failed"),
    column("share", "%"),
    column("TTFT ms", "p50"),
    column("TTFT ms", "p99"),
    column("TPOT ms", "p50"),
    column("TPOT ms", "p99"),
    column("E2E ms", "p50"),
    column("E2E ms", "p99"),
    column("out", "tok/s"),
    column("good", "%"),
];

/// One row for each group of each level.
pub(super) fn rows(run: &RunFile) -> Vec<Row> {
    let plan = run.plan.read().ok();
    let row = |level: &LevelBlock, group: &GroupBlock| {
        let name = name_in(plan.as_ref(), level, group.of);
        let label = if run.levels.len() > 1 { format!("{}, {name}", level.label) } else { name };
        Row { label: format::one_line(&label, LABEL_CHARS_MAX), cells: cells(level, group), second: false }
    };
    run.levels.iter().flat_map(|level| level.groups.iter().map(move |group| row(level, group))).collect()
}

/// What a part of `level`, one of `run`, is called: the model's name, the endpoint's URL.
pub fn group_name(run: &RunFile, level: &LevelBlock, of: GroupKey) -> String {
    format::one_line(&name_in(run.plan.read().ok().as_ref(), level, of), LABEL_CHARS_MAX)
}

fn name_in(plan: Option<&Plan>, level: &LevelBlock, of: GroupKey) -> String {
    let target = plan.map(|plan| &plan.target);
    match of {
        GroupKey::SlowReaders => "slow readers".to_owned(),
        GroupKey::FreshConnections => "fresh connections".to_owned(),
        GroupKey::ReusedConnections => "reused connections".to_owned(),
        GroupKey::Model(place) => target
            .and_then(|target| target.models.get(usize::from(place)).cloned())
            .unwrap_or_else(|| format!("model {}", place + 1)),
        GroupKey::Endpoint(place) => target
            .and_then(|target| Some(target.endpoints.get(usize::from(place))?.url.clone()))
            .unwrap_or_else(|| format!("endpoint {}", place + 1)),
        GroupKey::Replica(place) => level
            .replicas
            .get(usize::from(place))
            .map_or_else(|| format!("replica {}", place + 1), |name| format!("replica {name}")),
    }
}

/// What was given up, and whose latencies stand apart.
pub(super) fn notes(run: &RunFile) -> Vec<Note> {
    let mut notes = Vec::new();
    let plan = run.plan.read().ok();
    let asks_for_aborts = plan.as_ref().is_some_and(|plan| plan.workload.aborts.is_some());
    let header = plan.as_ref().and_then(|plan| plan.target.replica_header.as_deref());
    // A killed run has no names, and a simulated one no headers.
    if run.cut.is_none() && !run.is_simulated() {
        notes.extend(run.levels.iter().filter_map(|level| unnamed(level, header?)));
    }
    let mut say = |text| notes.push(Note { warning: false, text });
    for LevelBlock { label, counts, .. } in &run.levels {
        if counts.cancelled > 0 {
            say(format!(
                "{label}: {} of {} requests were cancelled, {} of them after the first token, with {} tokens received for \
                 nothing; they count neither as ok nor as failed",
                counts.cancelled, counts.planned, counts.cancelled_after_first, counts.cancelled_tokens
            ));
        }
        if counts.cancelled == 0 && counts.planned > 0 && asks_for_aborts {
            say(format!("{label}: nobody went away: every answer was complete or had failed before"));
        }
        let slow = counts.slow_ok + counts.slow_failed;
        if slow > 0 {
            let apart = if counts.ranked() == 0 { ": there are no others" } else { "" };
            say(format!(
                "{label}: {slow} requests were read slowly, {} of them to the end; their latencies are their readers' own \
                 and stand apart, and goodput is without them{apart}",
                counts.slow_ok
            ));
        }
    }
    notes
}

/// Answers that do not say which replica gave them, or of more replicas than are told apart.
fn unnamed(level: &LevelBlock, header: &str) -> Option<Note> {
    let LevelBlock { label, counts, replicas, groups, .. } = level;
    if counts.ok == 0 {
        return None;
    }
    if replicas.is_empty() {
        let text = format!(
            "{label}: no answer has the header {header}, so that replicas are not told apart; check --replica-header"
        );
        return Some(Note { warning: true, text });
    }
    let of_replicas = groups.iter().filter(|group| matches!(group.of, GroupKey::Replica(_)));
    let in_rows: u64 = of_replicas.map(|group| group.counts.ok).sum();
    // One replica alone has no row, and without records there are none.
    let rest = counts.ok.checked_sub(in_rows).filter(|rest| *rest > 0 && in_rows > 0)?;
    let why = match replicas.len() >= usize::from(Record::REPLICAS_MAX) {
        true => format!("more replicas answered than the {} that are told apart", Record::REPLICAS_MAX),
        false => format!("their answers have no header {header}"),
    };
    let text = format!("{label}: {rest} of {} ok requests are in no replica's row: {why}", counts.ok);
    Some(Note { warning: true, text })
}

fn cells(level: &LevelBlock, group: &GroupBlock) -> Vec<Cell> {
    let mut cells = vec![
        Cell::Number(group.counts.ok.to_string()),
        match group.counts.failed {
            0 => Cell::Number("0".to_owned()),
            n => Cell::Failures(n.to_string()),
        },
        match level.counts.planned {
            0 => Cell::Absent,
            all => Cell::Number(format::percent(group.counts.planned as f64 / all as f64)),
        },
    ];
    for metric in [Metric::Ttft, Metric::Tpot, Metric::E2e] {
        cells.extend([Quantile::P50, Quantile::P99].map(|quantile| percentile(group, metric, quantile)));
    }
    cells.push(group.rates.map_or(Cell::Absent, |rates| Cell::Number(format::rate(rates.out_tok_s))));
    let attainment = group.goodput.map(|goodput| Cell::Number(format::percent(goodput.attainment)));
    cells.push(attainment.unwrap_or(Cell::Absent));
    cells
}

fn percentile(group: &GroupBlock, metric: Metric, quantile: Quantile) -> Cell {
    let Some(distribution) = group.distributions.get(&metric) else {
        let all_failed = group.counts.ok == 0 && group.counts.failed > 0;
        return if all_failed { Cell::Failed } else { Cell::Absent };
    };
    match distribution.quantile(quantile) {
        _ if distribution.fails(quantile) => Cell::Failed,
        Some(ns) => Cell::Number(format::ms(ns)),
        None => Cell::Absent,
    }
}

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}

const LABEL_CHARS_MAX: usize = 60;
