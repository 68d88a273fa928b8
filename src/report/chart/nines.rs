//! The whole distribution of each latency, on an axis of nines: the tail takes as much room as the rest.

use super::{Axis, Chart, Named, Point, Scale, Series, named};
use crate::metrics::Metric;
use crate::run_file::schema::LevelBlock;
use crate::stats::Histogram;

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
        for level in evenly(&levels, each) {
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
    let mut reading =
        "Left of 90 % are nine requests of ten; each further mark is the slowest tenth of what is left."
            .to_owned();
    if shown < all {
        reading += &format!(" {shown} of {all} levels are drawn, evenly chosen.");
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

/// At most `most` of `levels`, evenly spaced, the first and the last among them.
fn evenly<'a>(levels: &[&'a LevelBlock], most: usize) -> Vec<&'a LevelBlock> {
    if levels.len() <= most {
        return levels.to_vec();
    }
    if most == 1 {
        return levels.last().copied().into_iter().collect();
    }
    (0..most).map(|place| levels[place * (levels.len() - 1) / (most - 1)]).collect()
}

/// More lines than this cannot be told apart.
const LEVELS_MAX: usize = 8;
/// Points lie at least so far apart.
const STEP_NINES: f64 = 0.01;
