//! What a run has found, marked in its charts: the knee, capacity and the limits over loads, levels over time.

use super::load::Loads;
use super::{Chart, Mark, Named, Place, named};
use crate::metrics::Metric;
use crate::plan::{Axis, Slo, in_label};
use crate::report::{format, view};
use crate::run_file::schema::{KneeBlock, LevelBlock};
use crate::strategy::Found;
use crate::summary::PhaseSummary;

/// Knee, or capacity, of each run at the places that `loads` has for them.
pub(super) fn findings(loads: &Loads, runs: &[Named<'_>]) -> Vec<Mark> {
    let of = |run: &Named<'_>| match (&run.run.capacity, &run.run.knee) {
        (Some(found), _) => capacity(loads, run, found),
        (None, Some(block)) => knee(loads, run, block),
        (None, None) => None,
    };
    runs.iter().filter_map(of).collect()
}

/// What the marks cannot show of the knee, as a sentence of the chart of throughput; empty where there is nothing to say.
pub(super) fn without_knee(runs: &[Named<'_>]) -> &'static str {
    match runs {
        [Named { run, .. }] => match &run.knee {
            Some(knee) if knee.at.is_none() => " No knee is seen up to the highest load.",
            Some(knee) if !knee.waits => {
                " It stops growing while E2E does not rise: something else than a full server holds it back."
            }
            _ => "",
        },
        _ => "",
    }
}

/// A line where users come in whole numbers; else the span in which throughput stops growing.
fn knee(loads: &Loads, run: &Named<'_>, knee: &KneeBlock) -> Option<Mark> {
    let at = knee.at.filter(|_| knee.waits)?.load;
    let below = knee.below.map(|below| below.load);
    let place = |load: f64| loads.place_of(run.run, knee.vary, load);
    let name = in_label(at);
    let (spot, words) = match (knee.vary, below) {
        (Axis::Concurrency, Some(_)) => (Place::At(place(at)?), format!("knee {name}")),
        (Axis::Concurrency, None) if at == 1.0 => (Place::At(place(at)?), format!("knee {name}")),
        (_, Some(below)) => {
            (Place::Between(place(below)?, place(at)?), format!("knee {} to {name}", in_label(below)))
        }
        (_, None) => (Place::At(place(at)?), format!("knee {name} or lower")),
    };
    let doubt = if view::doubts_knee(run.run) { ", in doubt" } else { "" };
    Some(Mark { at: spot, name: named(run, &(words + doubt)) })
}

/// From the highest load that holds to the lowest that does not; a line where only one of them is known.
fn capacity(loads: &Loads, run: &Named<'_>, found: &Found) -> Option<Mark> {
    let vary = run.run.plan.read().ok()?.search?.vary;
    let place = |load: f64| loads.place_of(run.run, vary, load);
    let (at, words) = match (found.answer.low, found.answer.high) {
        (Some(low), Some(high)) => {
            // The load that fails is none of those that may hold.
            let most = if vary.is_whole() { high - 1.0 } else { high };
            let [least, greatest] = [low, most].map(in_label);
            let range = if least == greatest { least } else { format!("{least} to {greatest}") };
            (Place::Between(place(low)?, place(high)?), format!("capacity {range}"))
        }
        (Some(low), None) => (Place::At(place(low)?), format!("capacity {} or more", in_label(low))),
        (None, Some(high)) => (Place::At(place(high)?), format!("capacity below {}", in_label(high))),
        (None, None) => return None,
    };
    Some(Mark { at, name: named(run, &words) })
}

/// Puts the limits that runs were judged by into `chart`, which shows `metric`. One far above what was measured would
/// press that flat: it is said instead, unless it is the one that ended a search.
pub(super) fn limits(chart: &mut Chart, runs: &[Named<'_>], metric: Metric) {
    let points = || chart.series.iter().flat_map(|series| &series.points);
    let highest = points().filter_map(|point| point.y).fold(0.0, f64::max);
    let mut marks: Vec<Mark> = Vec::new();
    let mut beyond: Vec<String> = Vec::new();
    for run in runs {
        // Those of the levels: a report may judge by others than the plan had.
        let Some(goodput) = run.run.levels.iter().find_map(|level| level.goodput) else { continue };
        let Some((name, words, limit_ms)) = limit(&goodput.slo, metric) else { continue };
        let found = run.run.capacity.as_ref().and_then(|found| found.binding.as_ref()?.limit.as_ref());
        let binds = found.is_some_and(|held| held.name == name);
        let typed = format::typed(limit_ms);
        if !binds && limit_ms > highest * IN_SIGHT {
            beyond.push(named(run, &format!("the {words} of {typed} ms lies above what is drawn")));
            continue;
        }
        let binding = if binds { ", binding" } else { "" };
        let words = format!("{words} {typed} ms{binding}");
        let at = Place::Limit(limit_ms);
        match marks.iter_mut().find(|mark| mark.at == at && mark.name.ends_with(&words)) {
            // What several runs share is nobody's own.
            Some(mark) => mark.name = words,
            None => marks.push(Mark { at, name: named(run, &words) }),
        }
    }
    let is_from_plan = matches!(metric, Metric::Ttft | Metric::E2e) && !marks.is_empty();
    if is_from_plan && runs.iter().any(waits_for_a_cap) {
        chart.reading +=
            " The SLO is judged from the planned send; what is drawn begins behind the wait for the cap.";
    }
    chart.marks.extend(marks);
    if let [only] = beyond.as_slice() {
        let mut letters = only.chars();
        let first = letters.next().map_or_else(String::new, |letter| letter.to_uppercase().to_string());
        chart.reading += &format!(" {first}{}.", letters.as_str());
    } else if !beyond.is_empty() {
        chart.reading += &format!(" Not drawn: {}.", beyond.join("; "));
    }
}

/// Whether requests are judged from a planned send that they may have waited behind for a cap.
fn waits_for_a_cap(run: &Named<'_>) -> bool {
    let is_capped = |level: &LevelBlock| {
        level
            .setting
            .read()
            .is_ok_and(|setting| setting.load.cap.is_some() && setting.load.judged_from_plan())
    };
    run.run.levels.iter().any(is_capped)
}

/// The limit of `metric`: its name in a search, how it is called, and itself, ms.
fn limit(slo: &Slo, metric: Metric) -> Option<(&'static str, &'static str, f64)> {
    match metric {
        Metric::Ttft => slo.ttft_ms.map(|ms| ("ttft", "SLO", ms)),
        Metric::Tpot => slo.tpot_ms.map(|ms| ("tpot", "SLO", ms)),
        // The largest gap of a request is judged, of which the percentiles of all gaps are no measure.
        Metric::Itl => slo.itl_max_ms.map(|ms| ("itl_max", "SLO of the largest gap", ms)),
        Metric::E2e => slo.e2e_ms.map(|ms| ("e2e", "SLO", ms)),
        _ => None,
    }
}

/// Where the levels of a run begin, with what they are; nothing where there is only one, or several runs.
pub(super) fn levels(runs: &[Named<'_>]) -> Vec<Mark> {
    let [run] = runs else { return Vec::new() };
    let loads = Loads::of(runs);
    let begun = || run.run.levels.iter().filter(|level| level.series.is_some());
    if begun().count() < 2 {
        return Vec::new();
    }
    let first_ns = begun().map(|level| level.span.t0_ns).min().unwrap_or_default();
    let at_s = |level: &LevelBlock| (level.span.t0_ns - first_ns) as f64 / 1e9;
    let name = |level: &LevelBlock| match loads.amount(level) {
        Some(amount) => in_label(amount),
        None => format::one_line(&level.load_label(), LABEL_CHARS_MAX),
    };
    begun().map(|level| Mark { at: Place::Begins(at_s(level)), name: name(level) }).collect()
}

/// Where the phases of a stress test begin, and where the server was as before; nothing where several runs overlay.
pub(super) fn stress(runs: &[Named<'_>]) -> Vec<Mark> {
    let [run] = runs else { return Vec::new() };
    let first_ns = run.run.levels.iter().map(|level| level.span.t0_ns).min().unwrap_or_default();
    let of_level = |level: &LevelBlock| -> Vec<Mark> {
        let Some(found) = &level.stress else { return Vec::new() };
        let begins_s = (level.span.t0_ns - first_ns) as f64 / 1e9;
        let phase = |phase: &PhaseSummary| Mark {
            at: Place::Begins(begins_s + phase.start_s),
            name: phase.phase.name().to_owned(),
        };
        let dropped_s = found.phases.last().map_or(0.0, |after| after.start_s);
        let recovered = found.recovery.after_s.map(|s| Mark {
            at: Place::At(begins_s + dropped_s + s),
            name: format!("as before after {s:.1} s"),
        });
        found.phases.iter().map(phase).chain(recovered).collect()
    };
    run.run.levels.iter().flat_map(of_level).collect()
}

/// What the lines of [`levels`] are, as a sentence behind the reading of a chart.
pub(super) fn levels_in_words(runs: &[Named<'_>]) -> String {
    let loads = Loads::of(runs);
    let not_all = match runs.iter().map(|run| run.run.levels.len()).max() {
        Some(MANY..) => " Of levels close together not each has its own.",
        _ => "",
    };
    format!(" Upright lines: a level begins, with the {} above it.{not_all}", loads.title())
}

/// A limit up to so many times the highest value is in the picture.
const IN_SIGHT: f64 = 1.5;
const LABEL_CHARS_MAX: usize = 24;
/// So many levels are too close together in a picture of a phone's width.
const MANY: usize = 6;
