//! How well the figure is known that levels went on for.

use super::Note;
use crate::plan::{Figure, Until};
use crate::report::format;
use crate::run_file::RunFile;
use crate::run_file::schema::{LengthenedBlock, LevelBlock};

/// One remark for each level that was to know a figure.
pub(super) fn notes(run: &RunFile) -> Vec<Note> {
    let Some(until) = run.plan.read().ok().and_then(|plan| plan.until) else { return Vec::new() };
    run.levels.iter().filter_map(|level| note(level, &until)).collect()
}

fn note(level: &LevelBlock, until: &Until) -> Option<Note> {
    let LengthenedBlock { times, reached, value, low, high } = level.lengthened?;
    let unit = if until.figure == Figure::Attainment { " %" } else { " ms" };
    let number = |value: f64| match until.figure {
        Figure::Attainment => format::percent(value),
        Figure::Quantile(..) => format::ms(value),
    };
    let known = match (value, low, high) {
        (Some(value), Some(low), Some(high)) => {
            let (value, low, high) = (number(value), number(low), number(high));
            format!("{} {value}{unit}, 95 % interval {low} to {high}{unit}", until.figure)
        }
        _ => format!("{} has no bounds, its requests are worth too few independent ones", until.figure),
    };
    let wish = format!("±{} %", format::typed((until.half_width * 1e4).round() / 1e2));
    let length = match times {
        1 => "its planned length".to_owned(),
        times => format!("{times} times its planned length"),
    };
    let text = match reached {
        true => format!("{}: {known}, within {wish} after {length}", level.label),
        false => format!("{}: {known}, not within {wish} after {length}", level.label),
    };
    Some(Note { warning: !reached, text })
}
