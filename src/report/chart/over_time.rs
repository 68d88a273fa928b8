//! The run over time: what was in flight, how fast, how slow, what failed; and where latencies lay.
//!
//! Made of the bins that each level keeps, folded to so many as a picture shows. The time line is that of the run: levels
//! follow each other, with the pauses between them.

use super::{Axis, Chart, Field, Heat, Named, Point, Scale, Series, marks, named};
use crate::run_file::schema::LevelBlock;
use crate::stats::{Coarse, Quantile, series};

/// Some time of a run.
#[derive(Clone, Debug, Default)]
struct Bin {
    /// How long levels were running in it, together, s.
    seen_s: f64,
    in_flight_s: f64,
    ok: u64,
    failed: u64,
    tokens: u64,
    ttft: Coarse,
    itl: Coarse,
    e2e: Coarse,
}

/// A run in bins of equal width.
struct Timeline {
    width_s: f64,
    bins: Vec<Bin>,
}

pub(super) fn charts(runs: &[Named<'_>]) -> Vec<Chart> {
    let lines: Vec<Timeline> = runs.iter().map(Timeline::of).collect();
    let is_known = lines.iter().any(|line| !line.bins.is_empty());
    let mut charts = vec![
        chart(
            "in-flight-time",
            "In flight over time",
            "requests",
            &lines,
            runs,
            &[("", |bin, width| bin.is_seen(width).then(|| bin.in_flight_s / bin.seen_s))],
        ),
        chart(
            "requests-time",
            "Requests over time",
            "requests/s",
            &lines,
            runs,
            &[
                ("ok", |bin, width| bin.rate(bin.ok, width)),
                ("failed", |bin, width| bin.rate(bin.failed, width)),
            ],
        ),
        chart(
            "tokens-time",
            "Output tokens over time",
            "tok/s",
            &lines,
            runs,
            &[("", |bin, width| bin.rate(bin.tokens, width))],
        ),
        chart(
            "ttft-time",
            "TTFT over time",
            "ms",
            &lines,
            runs,
            &[("p50", |bin, _| ms(&bin.ttft, Quantile::P50)), ("p99", |bin, _| ms(&bin.ttft, Quantile::P99))],
        ),
        chart(
            "itl-time",
            "ITL over time",
            "ms",
            &lines,
            runs,
            &[("p50", |bin, _| ms(&bin.itl, Quantile::P50)), ("p99", |bin, _| ms(&bin.itl, Quantile::P99))],
        ),
    ];
    if lines.iter().any(|line| line.bins.iter().any(|bin| bin.failed > 0)) {
        charts
            .iter_mut()
            .filter(|chart| chart.id == "tokens-time")
            .for_each(|chart| chart.reading += " Those of requests that failed later are among them.");
    }
    charts.push(failures(&lines, runs));
    // Heat maps cannot overlay: that of the first run is drawn, and says so.
    if let (Some(line), Some(run)) = (lines.first(), runs.first()) {
        charts.push(heat("ttft-heat", "TTFT, all requests", line, run, |bin| &bin.ttft));
        charts.push(heat("e2e-heat", "E2E, all requests", line, run, |bin| &bin.e2e));
    }
    if !is_known {
        for chart in &mut charts {
            chart.empty = Some("the file holds no course over time: only those of tokload do".to_owned());
        }
    }
    let stress = marks::stress(runs);
    for chart in &mut charts {
        chart.marks.extend(stress.iter().cloned());
    }
    let levels = marks::levels(runs);
    if !levels.is_empty() {
        let words = marks::levels_in_words(runs);
        for chart in &mut charts {
            chart.marks.extend(levels.iter().cloned());
            chart.reading += &words;
        }
    }
    charts
}

type Of = fn(&Bin, f64) -> Option<f64>;

fn chart(
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    lines: &[Timeline],
    runs: &[Named<'_>],
    shown: &[(&str, Of)],
) -> Chart {
    let mut series = Vec::new();
    for (line, run) in lines.iter().zip(runs) {
        for (name, of) in shown {
            let point = |(place, bin): (usize, &Bin)| Point {
                x: (place as f64 + 0.5) * line.width_s,
                y: of(bin, line.width_s),
                ..Point::default()
            };
            let points = line.bins.iter().enumerate().map(point).collect();
            series.push(Series::line(named(run, name), points));
        }
    }
    let width_s = lines.iter().map(|line| line.width_s).fold(0.0, f64::max);
    let is_latency = unit == "ms";
    let wide = is_latency && spread(&series) >= WIDE;
    let several = runs.iter().any(|run| run.run.levels.len() > 1);
    let follow = if several { "; levels follow each other" } else { "" };
    let exact = if is_latency {
        " Percentiles here are within 6 % of the exact ones, which the table has."
    } else {
        ""
    };
    Chart {
        id,
        title,
        reading: format!("Each point is {width_s} s of the run{follow}.{exact}"),
        x: Axis { title: "s since the run began", scale: Scale::Linear },
        y: Axis { title: unit, scale: if wide { Scale::Log } else { Scale::Linear } },
        series,
        heat: None,
        marks: Vec::new(),
        empty: None,
    }
}

/// Failures alone: beside the ok requests they are a line on the ground.
fn failures(lines: &[Timeline], runs: &[Named<'_>]) -> Chart {
    let any = lines.iter().any(|line| line.bins.iter().any(|bin| bin.failed > 0));
    let failed: &[(&str, Of)] = &[("", |bin, width| bin.rate(bin.failed, width))];
    let mut chart = chart("failures-time", "Failures over time", "failed requests/s", lines, runs, failed);
    chart.empty = (!any).then(|| "no request failed".to_owned());
    chart
}

fn heat(
    id: &'static str,
    title: &'static str,
    line: &Timeline,
    run: &Named<'_>,
    of: fn(&Bin) -> &Coarse,
) -> Chart {
    let (across, together) = fold_of(line.bins.len(), COLUMNS_MAX);
    let mut fields = Vec::new();
    for column in 0..across {
        let bins = line.bins.iter().skip(column * together).take(together);
        let mut all = Coarse::default();
        bins.for_each(|bin| all.merge(of(bin)));
        let x = column as f64 * together as f64 * line.width_s;
        let width = together as f64 * line.width_s;
        fields.extend(rows(&all).into_iter().map(|(y, count)| Field { x: (x, x + width), y, count }));
    }
    let most = fields.iter().map(|field| field.count).max().unwrap_or(0);
    let whose = if run.name.is_empty() { String::new() } else { format!(" Of {} alone.", run.name) };
    Chart {
        id,
        title,
        reading: format!(
            "The stronger the colour, the more requests, up to {most}: a field is {} s wide.{whose}",
            together as f64 * line.width_s
        ),
        x: Axis { title: "s since the run began", scale: Scale::Linear },
        y: Axis { title: "ms", scale: Scale::Log },
        series: Vec::new(),
        heat: Some(Heat { fields, most }),
        marks: Vec::new(),
        empty: None,
    }
}

/// Values of a column by rows of [`BUCKETS_PER_ROW`] buckets, ms.
fn rows(values: &Coarse) -> Vec<((f64, f64), u64)> {
    let mut rows: Vec<((f64, f64), u64)> = Vec::new();
    let mut last = None;
    for (bucket, count) in values.buckets().filter(|(_, count)| *count > 0) {
        let row = bucket / BUCKETS_PER_ROW;
        if last == Some(row)
            && let Some((_, sum)) = rows.last_mut()
        {
            *sum += u64::from(count);
            continue;
        }
        last = Some(row);
        let below = (row * BUCKETS_PER_ROW).checked_sub(1).map_or(LEAST_NS, Coarse::bucket_highest);
        let above =
            Coarse::bucket_highest((row * BUCKETS_PER_ROW + BUCKETS_PER_ROW - 1).min(Coarse::BUCKETS - 1));
        let ms = |ns: u64| ns.max(LEAST_NS) as f64 / 1e6;
        rows.push(((ms(below), ms(above)), u64::from(count)));
    }
    rows
}

impl Timeline {
    fn of(named: &Named<'_>) -> Timeline {
        let levels: Vec<Course> = named.run.levels.iter().filter_map(Course::of).collect();
        let widest = levels.iter().map(|level| level.series.width_ns() as f64 / 1e9).fold(1.0, f64::max);
        let end_s = levels.iter().map(|level| {
            level.start_s + level.series.slices().count() as f64 * level.series.width_ns() as f64 / 1e9
        });
        let first_s = levels.iter().map(|level| level.start_s).fold(f64::INFINITY, f64::min);
        let length_s = end_s.fold(0.0, f64::max) - first_s;
        if !length_s.is_finite() || length_s <= 0.0 {
            return Timeline { width_s: widest, bins: Vec::new() };
        }
        // Whole multiples of the widest bin: none is split.
        let width_s = (length_s / widest / POINTS_MAX).ceil().max(1.0) * widest;
        let mut bins = vec![Bin::default(); (length_s / width_s).ceil() as usize];
        let last = bins.len().saturating_sub(1);
        for level in &levels {
            for slice in level.series.slices() {
                let middle_s = level.start_s - first_s + slice.start_s + slice.width_s / 2.0;
                let place = ((middle_s / width_s) as usize).min(last);
                // The last slice of a level ends with it.
                let seen_s = (level.length_s - slice.start_s).clamp(0.0, slice.width_s);
                bins[place].add(&slice, seen_s);
            }
        }
        Timeline { width_s, bins }
    }
}

/// The bins of a level.
struct Course {
    /// When it began, s since the run's epoch.
    start_s: f64,
    /// How long it ran, to its last answer.
    length_s: f64,
    series: series::Series,
}

impl Course {
    fn of(level: &LevelBlock) -> Option<Course> {
        let series = level.series.as_ref()?.read().ok()?;
        let start_s = level.span.t0_ns as f64 / 1e9;
        Some(Course { start_s, length_s: level.span.t2_ns as f64 / 1e9 - start_s, series })
    }
}

impl Bin {
    /// Adds what a level did in `slice`, of which it ran for `seen_s`.
    fn add(&mut self, slice: &series::Slice<'_>, seen_s: f64) {
        self.seen_s += seen_s;
        self.in_flight_s += slice.in_flight * slice.width_s;
        self.ok += slice.ok;
        self.failed += slice.failed;
        self.tokens += slice.tokens;
        self.ttft.merge(slice.ttft);
        self.itl.merge(slice.itl);
        self.e2e.merge(slice.e2e);
    }

    /// Per second that a level ran; `None` where none did for long enough.
    fn rate(&self, count: u64, width_s: f64) -> Option<f64> {
        self.is_seen(width_s).then(|| count as f64 / self.seen_s)
    }

    /// Whether levels ran for so much of it that a rate means something.
    fn is_seen(&self, width_s: f64) -> bool {
        self.seen_s > 0.0 && self.seen_s >= SEEN_MIN * width_s
    }
}

fn ms(values: &Coarse, quantile: Quantile) -> Option<f64> {
    values.quantile_middle(quantile).map(|ns| ns / 1e6)
}

fn spread(series: &[Series]) -> f64 {
    let values = || series.iter().flat_map(|series| &series.points).filter_map(|point| point.y);
    let low = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    values().fold(0.0, f64::max) / low
}

/// `n` bins in at most `most` columns: the number of columns, and of bins in each.
fn fold_of(n: usize, most: usize) -> (usize, usize) {
    let together = n.div_ceil(most).max(1);
    (n.div_ceil(together), together)
}

/// The last moments of a level are no second of it.
const SEEN_MIN: f64 = 0.2;
/// Points of a line, and columns of a heat map.
const POINTS_MAX: f64 = 300.0;
const COLUMNS_MAX: usize = 60;
/// Buckets of a coarse histogram in a row of a heat map: four rows to each doubling.
const BUCKETS_PER_ROW: u8 = 2;
/// Below this a logarithmic axis says nothing more.
const LEAST_NS: u64 = 1_000;
/// Latencies that span more are drawn on a logarithmic axis.
const WIDE: f64 = 30.0;
