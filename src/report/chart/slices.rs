//! Slices of time: the median of each with the band that holds most of its requests, and the slow tail.

use super::{Axis, Chart, Named, Point, Scale, Series, marks, named};
use crate::metrics::slices::Row;
use crate::report::view::slices_of;
use crate::stats::{Quantile, Sparse};
use crate::summary::slices::{Piece, pieces};

type Of = fn(&Row) -> &Sparse;

/// The ends of the band.
const BAND: (Quantile, Quantile) = (at(10_000), Quantile::P90);

/// A chart for each latency; none where no run has slices.
pub(super) fn charts(runs: &[Named<'_>]) -> Vec<Chart> {
    if runs.iter().all(|run| slices_of(run.run).next().is_none()) {
        return Vec::new();
    }
    let kinds: [(&str, &str, Of); 3] = [
        ("ttft-slices", "TTFT by slices", |row| &row.ttft),
        ("itl-slices", "ITL by slices", |row| &row.itl),
        ("e2e-slices", "E2E by slices", |row| &row.e2e),
    ];
    let mut charts: Vec<Chart> =
        kinds.into_iter().map(|(id, title, of)| latency(id, title, runs, of)).collect();
    charts.push(failures(runs));
    let words = marks::levels_in_words(runs);
    for chart in &mut charts {
        chart.marks = marks::levels(runs);
        chart.reading += &words;
    }
    charts
}

fn latency(id: &'static str, title: &'static str, runs: &[Named<'_>], of: Of) -> Chart {
    let mut series = Vec::new();
    for run in runs {
        let ms = |values: &Sparse, quantile| values.quantile(quantile).map(|ns| ns as f64 / 1e6);
        series.push(line(run, "p50", &|piece: &Piece| {
            let values = of(&piece.row);
            let band = ms(values, BAND.0).zip(ms(values, BAND.1));
            (ms(values, Quantile::P50), band)
        }));
        series.push(line(run, "p99", &|piece: &Piece| (ms(of(&piece.row), Quantile::P99), None)));
    }
    let reading = "Each point is a slice; the band holds 80 % of what ended in it (p10 to p90).".to_owned();
    chart(id, title, "ms", reading, series)
}

fn failures(runs: &[Named<'_>]) -> Chart {
    let ok = runs.iter().map(|run| line(run, "ok", &|piece: &Piece| (Some(piece.rate(piece.row.ok)), None)));
    let failed = runs
        .iter()
        .map(|run| line(run, "failed", &|piece: &Piece| (Some(piece.rate(piece.row.failed)), None)));
    let series = ok.chain(failed).collect();
    let reading = "Each point is a slice: the requests that ended in it, well or not.".to_owned();
    chart("requests-slices", "Requests by slices", "requests/s", reading, series)
}

/// A value with its band.
type Value = (Option<f64>, Option<(f64, f64)>);

/// A line through the slices of all levels of a run, in the time line of its other charts.
fn line(run: &Named<'_>, name: &str, of: &dyn Fn(&Piece) -> Value) -> Series {
    let first_ns = run.run.levels.iter().map(|level| level.span.t0_ns).min().unwrap_or(0);
    let mut points = Vec::new();
    for (level, block) in slices_of(run.run) {
        let Ok(slices) = block.buckets.read() else { continue };
        let begins = (level.span.t0_ns - first_ns) as f64 / 1e9;
        let together = slices.rows().len().div_ceil(POINTS_MAX).max(1);
        let pieces = pieces(&slices, level.span.nanos(), together);
        for piece in &pieces {
            let (y, band) = of(piece);
            let middle_s = piece.start_s + piece.length_s / 2.0;
            points.push(Point { x: begins + middle_s, y, band, ..Point::default() });
        }
        // Levels are not joined.
        let end_s = pieces.last().map_or(0.0, |last| last.start_s + last.length_s);
        points.push(Point { x: begins + end_s, ..Point::default() });
    }
    Series::line(named(run, name), points)
}

fn chart(
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    reading: String,
    series: Vec<Series>,
) -> Chart {
    Chart {
        id,
        title,
        reading,
        x: Axis { title: "s since the run began", scale: Scale::Linear },
        y: Axis { title: unit, scale: Scale::Linear },
        series,
        heat: None,
        marks: Vec::new(),
        empty: None,
    }
}

const fn at(parts: u32) -> Quantile {
    match Quantile::from_parts(parts) {
        Some(quantile) => quantile,
        None => Quantile::P50,
    }
}

/// Points of a level at most: neighbours share one where there are more.
const POINTS_MAX: usize = 300;
