//! The shares of a merged run beside each other, so that a host that stands out is seen: a row for each process of each level.

use super::{Cell, Column, Note, Row};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{ClockOffset, LevelBlock, LevelShareBlock, MergedBlock, ShareNumbers};
use crate::stats::sort;
use crate::verdict::Verdict;

/// Rows of a level at most.
const ROWS_MAX: usize = 32;

/// The columns behind the name, in the order of the cells.
pub(super) const COLUMNS: &[Column] = &[
    column("", "ok"),
    column("", "failed"),
    column("", "req/s"),
    column("output", "tok/s"),
    column("TTFT ms", "p50"),
    column("TTFT ms", "p99"),
    column("ITL ms", "p99"),
    column("delay ms", "p99"),
    column("clock ms", "off"),
    column("", "verdict"),
];

/// One row for each share of each level; without any where one process made the run.
pub(super) fn rows(run: &RunFile) -> Vec<Row> {
    let Some(merged) = &run.merged else { return Vec::new() };
    let several = run.levels.len() > 1;
    let of_level = |level: &LevelBlock| -> Vec<Row> {
        let row = |(share, own): &(&LevelShareBlock, &ShareNumbers)| {
            let name = name(merged, share);
            let label = if several { format!("{name}, {}", level.label) } else { name };
            let label = format::one_line(&label, LABEL_CHARS_MAX);
            Row { label, cells: cells(own, clock(merged, share.share)), second: false }
        };
        shown(level).iter().map(row).collect()
    };
    run.levels.iter().flat_map(of_level).collect()
}

/// What the numbers are, and which rows are left out.
pub(super) fn notes(run: &RunFile) -> Vec<Note> {
    if run.merged.is_none() || run.levels.iter().all(|level| known(level).is_empty()) {
        return Vec::new();
    }
    let mut notes = vec![
        "shares: the numbers of each are those of its own file, over its own window; `clock` is what the clock of share 1 \
         shows more, ± how well that is known"
            .to_owned(),
    ];
    if let Some(most) = run.levels.iter().map(|level| known(level).len()).max().filter(|n| *n > ROWS_MAX) {
        notes.push(format!(
            "shares: of {most} the {ROWS_MAX} with the highest TTFT p99 have a row; all are in the run file"
        ));
    }
    notes.into_iter().map(|text| Note { warning: false, text }).collect()
}

/// The shares of a level whose numbers are known: files of an earlier tokload have none.
fn known(level: &LevelBlock) -> Vec<(&LevelShareBlock, &ShareNumbers)> {
    let shares = level.shares.as_deref().unwrap_or_default();
    shares.iter().filter_map(|share| Some((share, share.own.as_ref()?))).collect()
}

/// Those that have a row: all, or of many the slowest, in the order of their numbers.
fn shown(level: &LevelBlock) -> Vec<(&LevelShareBlock, &ShareNumbers)> {
    let mut shares = known(level);
    if shares.len() > ROWS_MAX {
        // Where failures reach the percentile it is beyond all others.
        let slow = |own: &ShareNumbers| own.ttft_ms_p99.unwrap_or(f64::INFINITY);
        sort::few_by(&mut shares, |(_, a), (_, b)| slow(b).total_cmp(&slow(a)));
        shares.truncate(ROWS_MAX);
        sort::few_by_key(&mut shares, |(share, _)| share.share);
    }
    shares
}

fn name(merged: &MergedBlock, share: &LevelShareBlock) -> String {
    let of_run = merged.shares.iter().find(|other| other.share == share.share);
    let host = of_run.and_then(|of_run| of_run.environment.host.as_deref());
    let host = host.map_or_else(String::new, |host| format!(" on {host}"));
    let early = if share.interrupted { ", stopped early" } else { "" };
    format!("share {}{host}{early}", share.share)
}

fn clock(merged: &MergedBlock, share: u32) -> Option<ClockOffset> {
    merged.shares.iter().find(|other| other.share == share)?.environment.clock_offset
}

fn cells(own: &ShareNumbers, clock: Option<ClockOffset>) -> Vec<Cell> {
    let ms = |ms: Option<f64>| ms.map_or(Cell::Absent, |ms| Cell::Number(format::ms(ms * 1e6)));
    // Without a success there is no throughput to speak of; a zero would look like a measurement.
    let rate = |per_s: f64| match own.ok {
        0 => Cell::Absent,
        _ => Cell::Number(format::rate(per_s)),
    };
    let latency = |of: Option<f64>| match of {
        None if own.failed > 0 => Cell::Failed,
        of => ms(of),
    };
    vec![
        Cell::Number(own.ok.to_string()),
        match own.failed {
            0 => Cell::Number("0".to_owned()),
            n => Cell::Failures(n.to_string()),
        },
        rate(own.req_s),
        rate(own.out_tok_s),
        latency(own.ttft_ms_p50),
        latency(own.ttft_ms_p99),
        ms(own.itl_ms_p99),
        ms(own.delay_ms_p99),
        clock.map_or(Cell::Absent, |clock| {
            let [offset, bound] = [clock.offset_ns as f64, clock.bound_ns as f64].map(|ns| ns / 1e6);
            let text = format!("{offset:+.1} ±{bound:.1}");
            if clock.is_large() { Cell::Suspect(text) } else { Cell::Number(text) }
        }),
        match own.verdict {
            None => Cell::Absent,
            Some(Verdict::Valid) => Cell::Number(Verdict::Valid.word().to_owned()),
            Some(other) => Cell::Suspect(other.word().to_owned()),
        },
    ]
}

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}

const LABEL_CHARS_MAX: usize = 100;
