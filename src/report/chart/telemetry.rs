//! What servers, GPUs and the client's machine said over time, in the time line of the run's other charts.

use super::{Axis, Chart, Named, Point, Scale, Series, marks, named};
use crate::summary::telemetry::Line;

/// A chart, and what is drawn in it.
struct Kind {
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    /// What is drawn, under which name, and by how much it is multiplied for that unit.
    shown: &'static [(&'static str, &'static str, f64)],
}

const KINDS: [Kind; 5] = [
    Kind {
        id: "server-requests-time",
        title: "Requests in the servers over time",
        unit: "requests",
        shown: &[("running", "running", 1.0), ("waiting", "waiting", 1.0)],
    },
    Kind {
        id: "kv-cache-time",
        title: "KV cache over time",
        unit: "% in use",
        shown: &[("kv_cache_use", "", 100.0)],
    },
    Kind { id: "gpu-time", title: "GPUs over time", unit: "% busy", shown: &[("gpu_busy", "", 100.0)] },
    Kind { id: "power-time", title: "Power of GPUs over time", unit: "W", shown: &[("power_w", "", 1.0)] },
    Kind {
        id: "client-cpu-time",
        title: "CPUs of the client's machine over time",
        unit: "% busy",
        shown: &[("cpu_busy", "", 100.0)],
    },
];
/// Lines of a chart at most: more cannot be told apart.
const LINES_MAX: usize = 16;

/// Those of which something was said.
pub(super) fn charts(runs: &[Named<'_>]) -> Vec<Chart> {
    let charts = KINDS.iter().filter_map(|kind| chart(kind, runs));
    charts.collect()
}

fn chart(kind: &Kind, runs: &[Named<'_>]) -> Option<Chart> {
    let mut series: Vec<Series> = runs.iter().flat_map(|run| lines(kind, run)).collect();
    let left_out = series.len().saturating_sub(LINES_MAX);
    series.truncate(LINES_MAX);
    if series.is_empty() {
        return None;
    }
    let mut reading = "Each point is a reading, or the mean of several; levels follow each other.".to_owned();
    if left_out > 0 {
        reading += &format!(" {left_out} more lines are in the run file.");
    }
    reading += &marks::levels_in_words(runs);
    Some(Chart {
        id: kind.id,
        title: kind.title,
        reading,
        x: Axis { title: "s since the run began", scale: Scale::Linear },
        y: Axis { title: kind.unit, scale: Scale::Linear },
        series,
        heat: None,
        marks: marks::levels(runs),
        empty: None,
    })
}

/// A line for each of whom it was said, through all levels.
fn lines(kind: &Kind, run: &Named<'_>) -> Vec<Series> {
    let levels = &run.run.levels;
    let first_s = levels.iter().map(|level| level.span.t0_ns as f64 / 1e9).fold(f64::INFINITY, f64::min);
    let all = || levels.iter().filter_map(|level| level.telemetry.as_ref()).flat_map(|told| &told.lines);
    let mut series = Vec::new();
    for (what, name, factor) in kind.shown {
        let mut whose: Vec<&str> =
            all().filter(|line| line.what == *what).map(|line| line.of.as_str()).collect();
        whose.sort_unstable();
        whose.dedup();
        for of in &whose {
            let of_both = |line: &&Line| line.what == *what && line.of == **of;
            let mut points = Vec::new();
            for line in all().filter(of_both) {
                points.extend(line.at_s.iter().zip(&line.values).map(|(at_s, value)| Point {
                    x: at_s - first_s,
                    y: Some(value * factor),
                    ..Point::default()
                }));
                // Between two levels nothing was looked at.
                let end = points.last().map_or(0.0, |point: &Point| point.x);
                points.push(Point { x: end, ..Point::default() });
            }
            let label = match (whose.len(), *name) {
                (1, name) => name.to_owned(),
                (_, "") => (*of).to_owned(),
                (_, name) => format!("{name}, {of}"),
            };
            series.push(Series::line(named(run, &label), points));
        }
    }
    series
}
