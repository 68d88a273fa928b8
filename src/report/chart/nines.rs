//! The whole distribution of each latency, on an axis of nines: the tail takes as much room as the rest.

use super::{Axis, Chart, Named, Point, Scale, Series, named};
use crate::metrics::Metric;
use crate::run_file::schema::LevelBlock;
use crate::stats::Histogram;
use crate::stats::sort;

const METRICS: [(&str, &str, Metric); 3] = [
    ("ttft-nines", "TTFT by percentile", Metric::Ttft),
    ("itl-nines", "ITL by percentile", Metric::Itl),
    ("e2e-nines", "E2E by percentile", Metric::E2e),
];

pub(super) fn charts(runs: &[Named<'_>]) -> Vec<Chart> {
    METRICS.map(|metric| chart(runs, metric)).into()
}

fn chart(runs: &[Named<'_>], (id, title, metric): (&'static str, &'static str, Metric)) -> Chart {
    let with_values = |run: &Named<'_>| {
        run.run.levels.iter().filter(|level| level.distributions.contains_key(&metric)).count()
    };
    let all: usize = runs.iter().map(with_values).sum();
    let each = (LEVELS_MAX / runs.len().max(1)).max(1);
    let mut series = Vec::new();
    for run in runs {
        let levels: Vec<&LevelBlock> =
            run.run.levels.iter().filter(|level| level.distributions.contains_key(&metric)).collect();
        for level in evenly(&levels, each, &of_answer(run)) {
            // A search tries its answer twice.
            let is_again =
                levels.iter().any(|other| other.ordinal < level.ordinal && other.label == level.label);
            let name = match is_again {
                true => format!("{}, level {}", level.label, level.ordinal + 1),
                false => level.label.clone(),
            };
            let histogram = level.distributions.get(&metric).and_then(|d| d.histogram());
            let points = histogram.as_ref().map(points).unwrap_or_default();
            series.push(Series::line(named(run, &name), points));
        }
    }
    let shown = series.len();
    let what = if metric == Metric::Itl { "gaps" } else { "requests" };
    let mut reading = format!(
        "Left of 90 % are nine {what} of ten; each further mark is the slowest tenth of what is left."
    );
    if shown < all {
        let answer = match runs.iter().any(|run| !of_answer(run).is_empty()) {
            true => ", those beside the answer among them",
            false => "",
        };
        reading += &format!(" {shown} of {all} levels are drawn, evenly chosen{answer}.");
    }
    let is_stripped = all > 0 && series.iter().all(|series| series.points.is_empty());
    Chart {
        id,
        title,
        reading,
        x: Axis { title: "percentile", scale: Scale::Nines },
        y: Axis { title: "ms", scale: Scale::Log },
        series,
        heat: None,
        marks: Vec::new(),
        empty: is_stripped.then(|| "the file holds no histograms: only those of tokload do".to_owned()),
    }
}

/// The value at each share, ms: a bucket's highest value from the share of what lies below it to that of what it ends, as
/// a step. The slowest value ends at the share of all but one: it is the one.
fn points(histogram: &Histogram) -> Vec<Point> {
    let n = histogram.n();
    let share = |rank: u64| rank.min(n.saturating_sub(1)) as f64 / n.max(1) as f64;
    let nines = |share: f64| -(1.0 - share).log10();
    let mut points: Vec<Point> = Vec::new();
    let mut seen = 0;
    // Values that no eye can part are drawn as one, the slowest of them.
    let mut left_at = f64::NEG_INFINITY;
    for bucket in histogram.buckets() {
        let (from, to) = (share(seen), share(seen + bucket.count));
        seen += bucket.count;
        let at = |x: f64| Point { x, y: Some(bucket.highest as f64 / 1e6), ..Point::default() };
        let is_step = nines(to) - nines(from) >= STEP_NINES;
        if is_step || nines(to) - left_at >= STEP_NINES || seen >= n {
            if is_step {
                points.push(at(from));
            }
            points.push(at(to));
            left_at = nines(to);
        }
    }
    points
}

/// The levels that a search's answer rests on: the last one at the load that holds and at the load that does not.
fn of_answer(run: &Named<'_>) -> Vec<usize> {
    let Some((found, search)) =
        run.run.capacity.as_ref().zip(run.run.plan.read().ok().and_then(|plan| plan.search))
    else {
        return Vec::new();
    };
    let at = |load: f64| {
        let levels = run.run.levels.iter().filter(|level| level.amount(search.vary) == Some(load));
        levels.map(|level| level.ordinal).next_back()
    };
    [found.answer.low, found.answer.high].into_iter().flatten().filter_map(at).collect()
}

/// At most `most` of `levels`, those `wanted` by their ordinal and the others evenly spaced, the first and the last among
/// them where there is room.
fn evenly<'a>(levels: &[&'a LevelBlock], most: usize, wanted: &[usize]) -> Vec<&'a LevelBlock> {
    if levels.len() <= most {
        return levels.to_vec();
    }
    let is_wanted = |level: &&LevelBlock| wanted.contains(&level.ordinal);
    let mut chosen: Vec<&LevelBlock> = levels.iter().copied().filter(is_wanted).take(most).collect();
    let others: Vec<&LevelBlock> = levels.iter().copied().filter(|level| !is_wanted(level)).collect();
    let room = most - chosen.len();
    match room {
        0 => {}
        1 => chosen.extend(others.last()),
        _ => chosen.extend((0..room).filter_map(|place| others.get(place * (others.len() - 1) / (room - 1)))),
    }
    sort::few_by_key(&mut chosen, |level| level.ordinal);
    chosen
}

/// More lines than this cannot be told apart.
const LEVELS_MAX: usize = 8;
/// Points lie at least so far apart.
const STEP_NINES: f64 = 0.01;
