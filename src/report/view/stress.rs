//! What a stress test found: a sentence at the head, and a row for each phase.

use super::{Cell, Column, Note, Row};
use crate::plan::{Plan, StressPhase};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::LevelBlock;
use crate::strategy::is_too_much;
use crate::summary::{HerdSummary, PhaseSummary, Recovery, StressSummary, TOGETHER};

/// The columns behind the phase.
pub(super) const COLUMNS: &[Column] = &[
    column("", "from s"),
    column("", "to s"),
    column("", "planned"),
    column("", "ok"),
    column("", "failed"),
    column("", "given up"),
    column("", "over SLO"),
    column("", "under way"),
    column("TTFT ms", "p50"),
    column("TTFT ms", "p99"),
    column("E2E ms", "p50"),
    column("E2E ms", "p99"),
];

fn stressed(run: &RunFile) -> Option<&StressSummary> {
    run.levels.iter().find_map(|level| level.stress.as_ref())
}

/// What was found, the most important line first; empty where there was no stress test.
pub(super) fn headline(run: &RunFile) -> Vec<String> {
    let Some(plan) = run.plan.read().ok().filter(|plan| plan.stress.is_some()) else { return Vec::new() };
    let Some(found) = stressed(run) else {
        return vec![
            "stress: the run ended before the level that is looked at, or kept no records of it".to_owned(),
        ];
    };
    let is_cut = run.levels.iter().any(|level| level.stress.is_some() && level.interrupted);
    let mut lines = vec![recovered(found, is_cut)];
    lines.extend(unharmed(found));
    let lost = |of: fn(&PhaseSummary) -> u64| found.phases.iter().map(of).sum::<u64>();
    let (failed, given_up, over) =
        (lost(|one| one.failed), lost(|one| one.given_up), lost(|one| one.over_slo));
    let planned = lost(|one| one.planned);
    lines.push(format!(
        "lost of {planned} requests: {failed} failed, {given_up} given up, {over} over the SLO; most under way at once: {}",
        found.phases.iter().map(|one| one.under_way_max).max().unwrap_or(0)
    ));
    lines.extend(overload(run, &plan, found));
    lines
}

/// `stress: as before 12.4 s after the overload ended (known to 0.1 s), at 5 req/s behind 30 s of 20 req/s`
///
/// Of a level that `is_cut` it may be too early to tell.
fn recovered(found: &StressSummary, is_cut: bool) -> String {
    let Recovery { after_s, resolution_s, watched_s, requests } = found.recovery;
    let hold_s = found.phases.get(2).map_or(0.0, |hold| hold.end_s - hold.start_s);
    let load = format!(
        "at {} req/s behind {} s of {} req/s",
        format::rate(found.normal_s),
        format::typed(hold_s),
        format::rate(found.overload_s)
    );
    let behind = found.phases.last().map_or(0, |after| after.planned.saturating_sub(requests));
    if is_cut && (after_s.is_none() || behind < TOGETHER as u64) {
        return format!(
            "stress: it was interrupted before anything could be told, {load}: {} requests came behind the overload, and \
             {TOGETHER} in a row tell",
            found.phases.last().map_or(0, |after| after.planned)
        );
    }
    match after_s {
        Some(0.0) => format!("stress: as before at once, {load}"),
        Some(s) => format!(
            "stress: as before {s:.2} s after the overload ended (known to {resolution_s:.2} s, {requests} requests later), {load}"
        ),
        None => format!(
            "stress: not as before within the {} s that were watched, {load}; watch longer by --stress-after",
            format::typed(watched_s)
        ),
    }
}

/// Says so where the overload did no harm, so that there was nothing to recover from.
fn unharmed(found: &StressSummary) -> Option<String> {
    let during =
        || found.phases.iter().filter(|one| [StressPhase::Ramp, StressPhase::Hold].contains(&one.phase));
    let hold = during().next_back()?;
    let within = |value: Option<f64>, bound: Option<f64>| Some(value? <= bound?);
    let is_harmless = during().all(|one| one.failed + one.given_up + one.over_slo == 0)
        && within(hold.e2e_p50, found.e2e_before)?
        && within(hold.ttft_p50, found.ttft_before).unwrap_or(true);
    is_harmless.then(|| {
        "the overload was none: nothing failed, and at least half of the requests were served as before; there was nothing to \
         recover from (give a higher --stress-to)"
            .to_owned()
    })
}

/// How the overload was found.
fn overload(run: &RunFile, plan: &Plan, found: &StressSummary) -> Option<String> {
    let stress = plan.stress.filter(|stress| stress.to_rate.is_none())?;
    let steps: Vec<&LevelBlock> = run.levels.iter().filter(|level| level.stress.is_none()).collect();
    let fell =
        |step: &&LevelBlock| is_too_much((step.counts.ok, step.counts.failed), step.judged, stress.bad_max);
    if !steps.last().is_some_and(fell) {
        return Some(format!(
            "no overload was found: {} steps up to {} req/s held, and the highest of them was kept up; the server takes more, or \
             the client cannot send more",
            steps.len(),
            format::rate(found.overload_s)
        ));
    }
    let rates: Vec<f64> =
        steps.into_iter().filter_map(|level| level.setting.read().ok()?.load.rate()).collect();
    let held = rates.len().checked_sub(2).map_or(found.normal_s, |place| rates[place]);
    Some(format!(
        "the overload was looked for: {} req/s held, at {} more than {} % of the requests failed or missed a limit",
        format::rate(held),
        format::rate(found.overload_s),
        format::percent(stress.bad_max)
    ))
}

/// One row for each phase.
pub(super) fn rows(run: &RunFile) -> Vec<Row> {
    let Some(found) = stressed(run) else { return Vec::new() };
    found.phases.iter().map(row).collect()
}

fn row(phase: &PhaseSummary) -> Row {
    let number = |n: u64| Cell::Number(n.to_string());
    let bad = |n: u64| if n == 0 { number(0) } else { Cell::Failures(n.to_string()) };
    let ms = |ns: Option<f64>| ns.map_or(Cell::Absent, |ns| Cell::Number(format::ms(ns)));
    let cells = vec![
        Cell::Number(format::typed(phase.start_s)),
        Cell::Number(format::typed(phase.end_s)),
        number(phase.planned),
        number(phase.ok),
        bad(phase.failed),
        bad(phase.given_up),
        number(phase.over_slo),
        number(phase.under_way_max),
        ms(phase.ttft_p50),
        ms(phase.ttft_p99),
        ms(phase.e2e_p50),
        ms(phase.e2e_p99),
    ];
    Row { label: phase.phase.name().to_owned(), cells, second: false }
}

/// How near to each other the requests of bursts were sent, level by level.
pub(super) fn herds(run: &RunFile) -> Vec<Note> {
    let several = run.levels.len() > 1;
    let note = |level: &LevelBlock| {
        let herd = level.herd.as_ref()?;
        let text = herd_in_words(herd)?;
        let text = if several { format!("{}: {text}", level.label) } else { text };
        Some(Note { warning: !herd.unconnected.is_empty(), text })
    };
    run.levels.iter().filter_map(note).collect()
}

fn herd_in_words(herd: &HerdSummary) -> Option<String> {
    let (p50, max) = (herd.spread_p50?, herd.spread_max?);
    let ms = |ns: u64| format::ms(ns as f64);
    let bursts = if herd.bursts == 1 { "1 burst".to_owned() } else { format!("{} bursts", herd.bursts) };
    let mut text = format!(
        "{bursts} of up to {} requests: the sends of one lie within {} ms at the median, {} ms at most",
        herd.size,
        ms(p50),
        ms(max)
    );
    if let Some(late) = herd.late_max {
        text += &format!(", the last of them {} ms after its planned instant", ms(late));
    }
    if let (Some(p50), Some(p99), Some(max)) = (herd.connect_p50, herd.connect_p99, herd.connect_max) {
        let (p50, p99, max) = (ms(p50), ms(p99), ms(max));
        text += &format!(
            "; {} connections were opened for them, p50 / p99 / max {p50} / {p99} / {max} ms",
            herd.connections
        );
    }
    if !herd.unconnected.is_empty() {
        let words: Vec<String> =
            herd.unconnected.iter().map(|(name, count)| format!("{count} {name}")).collect();
        text += &format!("; without a connection: {}", words.join(", "));
    }
    Some(text)
}

const fn column(group: &'static str, name: &'static str) -> Column {
    Column { group, name }
}
