//! That a run ended early, by its user or with its process, and what is known of it nevertheless: said in one way in every
//! format.

use super::Note;
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{CutBlock, LevelBlock};

/// What is to be read first of a run that ended early; `None` of one that did not.
pub(super) fn note(run: &RunFile) -> Option<Note> {
    let text = match run.cut {
        Some(cut) => of_process(run, cut),
        None if run.interrupted => format!("interrupted: {}", missing(run)),
        None => return None,
    };
    Some(Note { warning: true, text })
}

/// The same in a word, for where there is no room: `interrupted`.
pub(in crate::report) fn word(run: &RunFile) -> Option<&'static str> {
    match run.cut {
        Some(CutBlock { running: true, .. }) => Some("still running"),
        Some(_) => Some("cut with its process"),
        None => run.interrupted.then_some("interrupted"),
    }
}

fn of_process(run: &RunFile, cut: CutBlock) -> String {
    let CutBlock { process, running, until_s, others, lost, uncounted, unrecorded } = cut;
    let mut text = match running {
        true => format!("the run goes on (process {process}): this is what it has kept so far"),
        false => format!(
            "the run was cut: process {process} ended without saving it, and this is what it had kept"
        ),
    };
    match until_s {
        Some(s) => {
            text += &format!(", up to {s:.3} s after its start; the last second may be missing");
        }
        None if run.levels.last().is_some_and(|level| !level.interrupted) => {}
        None => text += "; of a level that had begun nothing is known",
    }
    if !running {
        text += &format!(". {}", missing(run));
    }
    if run.levels.last().is_some_and(|level| level.interrupted) {
        text += ". ITL is of histograms, what the shards and the machine say of themselves is missing for the last level";
    }
    if lost > 0 {
        text += &format!(
            ". Its records are damaged: {lost} requests that its checkpoint has counted are not among them, so the numbers are \
             not those of the run; the slices have every request"
        );
    }
    if uncounted > 0 {
        text += &format!(
            ". Its checkpoint could not be kept to the end: ITL and slices lack {uncounted} requests of the last level"
        );
    }
    if unrecorded > 0 {
        text += &format!(
            ". The records of {unrecorded} requests of levels that were over are not there: their numbers are of histograms, \
             without goodput and intervals"
        );
    }
    match others {
        0 => {}
        1 => text += ". An older process has left something under this name as well",
        n => text += &format!(". {n} older processes have left something under this name as well"),
    }
    text
}

/// What of the plan was not done: `4 users was cut short after 3.4 s of 30 s, and 2 of 4 levels were not run`.
fn missing(run: &RunFile) -> String {
    let plan = run.plan.read().ok();
    let cut = run.levels.last().filter(|level| level.interrupted).map(cut_short);
    // Which levels a search or a stress test would have run is not known beforehand.
    let planned = plan.as_ref().filter(|plan| plan.search.is_none() && plan.stress.is_none());
    let planned = planned.map(|plan| plan.in_rounds().len());
    let rest = match planned {
        Some(1) if run.levels.is_empty() => Some("its level has no result".to_owned()),
        Some(planned) if run.levels.is_empty() => Some(format!("none of its {planned} levels has a result")),
        Some(planned) if planned > run.levels.len() => {
            let missing = planned - run.levels.len();
            let verb = if missing == 1 { "was" } else { "were" };
            Some(format!("{missing} of {planned} levels {verb} not run"))
        }
        Some(_) => None,
        None => Some("levels may be missing".to_owned()),
    };
    match (cut, rest) {
        (Some(cut), Some(rest)) => format!("{cut}, and {rest}"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "every level had been run".to_owned(),
    }
}

fn cut_short(level: &LevelBlock) -> String {
    let span = level.span;
    // Of a merged level the shares that were stopped or killed, after which the others went on.
    let shares = level.shares.as_deref().unwrap_or_default();
    let stopped: Vec<String> =
        shares.iter().filter(|share| share.interrupted).map(|share| share.share.to_string()).collect();
    let in_some = !stopped.is_empty() && stopped.len() < shares.len();
    let until_ns = if in_some { level.window.end_ns } else { span.t1_ns };
    let whose = match stopped.len() {
        _ if !in_some => String::new(),
        1 => format!(" in share {}", stopped[0]),
        _ => format!(" in shares {}", stopped.join(", ")),
    };
    let ran_s = until_ns.saturating_sub(span.t0_ns) as f64 / 1e9;
    let of = level.setting.read().ok().and_then(|level| level.stop.duration_s);
    let of = of.map_or_else(String::new, |s| format!(" of {} s", format::typed(s)));
    format!("{} was cut short{whose} after {ran_s:.1} s{of}", level.label)
}
