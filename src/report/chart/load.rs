//! Charts against load: latency, throughput, goodput, and the trade between all users and one.

use super::{Axis, Chart, Named, Point, Scale, Series, marks, named};
use crate::metrics::Metric;
use crate::plan::Axis as Vary;
use crate::run_file::RunFile;
use crate::run_file::schema::{FigureBlock, LevelBlock, RepeatsBlock};
use crate::stats::sort;
use crate::stats::{Quantile, Repeats};

/// The latencies that a report shows, with their names in links.
const LATENCIES: [(&str, &str, Metric); 4] = [
    ("ttft-load", "TTFT against load", Metric::Ttft),
    ("tpot-load", "TPOT against load", Metric::Tpot),
    ("itl-load", "ITL against load", Metric::Itl),
    ("e2e-load", "E2E against load", Metric::E2e),
];
const PERCENTILES: [(&str, Quantile); 3] =
    [("p50", Quantile::P50), ("p90", Quantile::P90), ("p99", Quantile::P99)];

pub(super) fn charts(runs: &[Named<'_>]) -> Vec<Chart> {
    let loads = Loads::of(runs);
    let mut charts: Vec<Chart> = LATENCIES.iter().map(|latency| loads.latency(runs, *latency)).collect();
    charts.push(loads.throughput(runs));
    charts.push(loads.requests(runs));
    let found = marks::findings(&loads, runs);
    charts.iter_mut().for_each(|chart| chart.marks.extend(found.clone()));
    charts.push(pareto(runs));
    charts
}

/// Where loads lie from left to right.
pub(super) struct Loads {
    axis: Axis,
    of: Amounts,
}

/// What of a load decides its place.
enum Amounts {
    /// Its number.
    Varied(Vary),
    /// Its name, one of these.
    Names(Vec<String>),
}

/// A load of a run, with all its repeats.
struct Load<'a> {
    label: String,
    x: f64,
    levels: Vec<&'a LevelBlock>,
}

/// What may be varied, the first that every level has a number of being shown: who varies a length has users as well.
const VARIED: [(Vary, &str); 5] = [
    (Vary::InputLen, "prompt length, words or tokens"),
    (Vary::OutputLen, "answer length, tokens"),
    (Vary::Concurrency, "users"),
    (Vary::Rate, "asked requests/s"),
    (Vary::Speedup, "times the trace's speed"),
];

impl Loads {
    /// By what is varied where every level has a number of it, else by name.
    pub(super) fn of(runs: &[Named<'_>]) -> Loads {
        let levels = || runs.iter().flat_map(|named| &named.run.levels);
        for (vary, title) in VARIED {
            let Some(amounts) = levels().map(|level| level.amount(vary)).collect::<Option<Vec<f64>>>() else {
                continue;
            };
            // A single load has its name, which says more than a place between 0 and itself.
            let is_several = amounts.iter().any(|amount| Some(amount) != amounts.first());
            if !is_several {
                break;
            }
            let low = amounts.iter().copied().fold(f64::INFINITY, f64::min);
            let high = amounts.iter().copied().fold(0.0, f64::max);
            let scale = match low > 0.0 && high / low >= LOG_FROM {
                true => Scale::Log,
                false if vary.is_whole() => Scale::Whole,
                false => Scale::Linear,
            };
            return Loads { axis: Axis { title, scale }, of: Amounts::Varied(vary) };
        }
        let mut names: Vec<String> = Vec::new();
        for level in levels() {
            let label = level.load_label();
            if !names.contains(&label) {
                names.push(label);
            }
        }
        Loads { axis: Axis { title: "load", scale: Scale::Names(names.clone()) }, of: Amounts::Names(names) }
    }

    /// What lies from left to right.
    pub(super) const fn title(&self) -> &'static str {
        self.axis.title
    }

    /// The number that decides the place of `level`; `None` where names do.
    pub(super) fn amount(&self, level: &LevelBlock) -> Option<f64> {
        match &self.of {
            Amounts::Varied(vary) => level.amount(*vary),
            Amounts::Names(_) => None,
        }
    }

    /// The place of the load that has so much of `vary`, a load of `run` where places are names.
    pub(super) fn place_of(&self, run: &RunFile, vary: Vary, amount: f64) -> Option<f64> {
        match &self.of {
            Amounts::Varied(own) => (*own == vary).then_some(amount),
            Amounts::Names(_) => {
                let level = run.levels.iter().find(|level| level.amount(vary) == Some(amount))?;
                self.place(level, &level.load_label())
            }
        }
    }

    /// The loads of a run from left to right, each with its repeats.
    fn order<'a>(&self, named: &Named<'a>) -> Vec<Load<'a>> {
        let mut loads: Vec<Load<'a>> = Vec::new();
        for level in &named.run.levels {
            let label = level.load_label();
            match loads.iter_mut().find(|load| load.label == label) {
                Some(load) => load.levels.push(level),
                None => {
                    let Some(x) = self.place(level, &label) else { continue };
                    loads.push(Load { label, x, levels: vec![level] });
                }
            }
        }
        sort::few_by(&mut loads, |a, b| a.x.total_cmp(&b.x));
        loads
    }

    fn place(&self, level: &LevelBlock, label: &str) -> Option<f64> {
        match &self.of {
            Amounts::Names(names) => names.iter().position(|name| name == label).map(|place| place as f64),
            Amounts::Varied(vary) => level.amount(*vary),
        }
    }

    fn chart(&self, id: &'static str, title: &'static str, y: Axis, series: Vec<Series>) -> Chart {
        let reading = String::new();
        Chart {
            id,
            title,
            reading,
            x: self.axis.clone(),
            y,
            series,
            heat: None,
            marks: Vec::new(),
            empty: None,
        }
    }

    fn latency(
        &self,
        runs: &[Named<'_>],
        (id, title, metric): (&'static str, &'static str, Metric),
    ) -> Chart {
        let mut series = Vec::new();
        for named in runs {
            let loads = self.order(named);
            for (name, quantile) in PERCENTILES {
                let figure = format!("{}_{name}", metric.name());
                let value = |level: &LevelBlock| quantile_of(level, metric, quantile);
                let points = loads.iter().map(|load| load.point(named, &figure, 1e-6, &value)).collect();
                series.push(Series::line(super::named(named, name), points));
            }
        }
        let y = Axis { title: "ms", scale: log_if_wide(&series) };
        let mut chart = self.chart(id, title, y, series);
        chart.reading = if metric == Metric::Itl {
            "Gaps between content events, pooled over requests.".to_owned()
        } else {
            "Percentiles over the requests that ended well; bands, where there is enough for one, are 95 % intervals."
                .to_owned()
        };
        marks::limits(&mut chart, runs, metric);
        chart
    }

    fn throughput(&self, runs: &[Named<'_>]) -> Chart {
        let value = |level: &LevelBlock| throughput(level);
        let series = runs
            .iter()
            .map(|named| {
                let points = self
                    .order(named)
                    .iter()
                    .map(|load| load.point(named, "out_tok_s", 1.0, &value))
                    .collect();
                Series::line(super::named(named, "all users together"), points)
            })
            .collect();
        let y = Axis { title: "output tok/s", scale: Scale::Linear };
        let mut chart = self.chart("throughput-load", "Throughput against load", y, series);
        chart.reading = "Output tokens per second in the measured window.".to_owned();
        if runs.iter().any(|run| run.run.levels.len() > 1) {
            chart.reading += " Where it stops growing, the server is full.";
        }
        chart.reading += marks::without_knee(runs);
        chart
    }

    fn requests(&self, runs: &[Named<'_>]) -> Chart {
        let mut series = Vec::new();
        for named in runs {
            let loads = self.order(named);
            let all = |level: &LevelBlock| requests(level);
            let good = |level: &LevelBlock| good(level);
            let points = |figure: &str, value: &dyn Fn(&LevelBlock) -> Value| {
                loads.iter().map(|load| load.point(named, figure, 1.0, value)).collect()
            };
            series.push(Series::line(super::named(named, "ok"), points("req_s", &all)));
            series.push(Series::line(super::named(named, "good"), points("goodput_s", &good)));
        }
        let has_slo = runs.iter().any(|named| named.run.levels.iter().any(|level| level.goodput.is_some()));
        let y = Axis { title: "requests/s", scale: Scale::Linear };
        let mut chart = self.chart("requests-load", "Requests and goodput against load", y, series);
        chart.reading = if has_slo {
            "Requests that ended well, and those of them that kept every SLO; bands are 95 % intervals."
                .to_owned()
        } else {
            "Requests that ended well. There is no goodput without an SLO (--goodput).".to_owned()
        };
        chart
    }
}

/// A value with the interval that holds it.
#[derive(Clone, Copy, Default)]
struct Value {
    value: Option<f64>,
    band: Option<(f64, f64)>,
}

impl Load<'_> {
    /// What all repeats have in the mean, or the only one has, times `scale`.
    fn point(&self, named: &Named<'_>, figure: &str, scale: f64, of: &dyn Fn(&LevelBlock) -> Value) -> Point {
        let longest = || self.levels.iter().max_by_key(|level| level.counts.ok);
        let known = match self.levels.as_slice() {
            [only] => of(only),
            // A search tries its answer again, for longer: that is no repeat, and what the answer rests on.
            _ if named.run.capacity.is_some() => longest().map_or_else(Value::default, |level| of(level)),
            several => repeated(named, &self.label, figure)
                .unwrap_or_else(|| mean(several.iter().map(|l| of(l).value))),
        };
        Point {
            x: self.x,
            y: known.value.map(|value| value * scale),
            band: known.band.map(|(low, high)| (low * scale, high * scale)),
            of: self.label.clone(),
        }
    }
}

/// The figure as the run file has it over the repeats.
fn repeated(named: &Named<'_>, label: &str, figure: &str) -> Option<Value> {
    let block: &RepeatsBlock = named.run.repeats.iter().flatten().find(|repeats| repeats.label == label)?;
    let FigureBlock { mean, low, high, .. } = block.figures.get(figure)?;
    Some(Value { value: *mean, band: low.zip(*high) })
}

/// The mean of what has no figure of its own, where every repeat has a value.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Value {
    let values: Option<Vec<f64>> = values.collect();
    let known = values.and_then(|values| Repeats::of(&values)).map(|repeats| repeats.mean());
    Value { value: known, band: None }
}

fn quantile_of(level: &LevelBlock, metric: Metric, quantile: Quantile) -> Value {
    let value = level.distributions.get(&metric).and_then(|distribution| distribution.quantile(quantile));
    let known =
        level.statistics.as_ref().and_then(|statistics| statistics.latency(metric)?.quantile(quantile));
    Value { value, band: known.and_then(|known| known.low.zip(known.high)) }
}

fn throughput(level: &LevelBlock) -> Value {
    let known = level.statistics.as_ref().and_then(|statistics| statistics.throughput);
    Value {
        value: Some(level.rates.window.out_tok_s).filter(|_| level.counts.ok > 0),
        band: known.map(|known| (known.out_tok_s.low, known.out_tok_s.high)),
    }
}

fn requests(level: &LevelBlock) -> Value {
    let known = level.statistics.as_ref().and_then(|statistics| statistics.throughput);
    Value {
        value: Some(level.rates.window.req_s).filter(|_| level.counts.ok > 0),
        band: known.map(|known| (known.req_s.low, known.req_s.high)),
    }
}

fn good(level: &LevelBlock) -> Value {
    Value { value: level.goodput.map(|goodput| goodput.good_s), band: None }
}

/// What all get against what one gets, level by level.
fn pareto(runs: &[Named<'_>]) -> Chart {
    let series = runs.iter().map(|run| {
        let mut points: Vec<Point> = run.run.levels.iter().filter_map(trade).collect();
        sort::few_by(&mut points, |a, b| a.x.total_cmp(&b.x));
        Series { name: named(run, "levels"), points, line: true }
    });
    Chart {
        id: "pareto",
        title: "All users against one",
        reading:
            "Each point is a level: up is more for all, right is faster for each. The best lie up and right."
                .to_owned(),
        x: Axis { title: "output tok/s of one user, p50", scale: Scale::Linear },
        y: Axis { title: "output tok/s of all", scale: Scale::Linear },
        series: series.collect(),
        heat: None,
        marks: Vec::new(),
        empty: None,
    }
}

fn trade(level: &LevelBlock) -> Option<Point> {
    let one = level.distributions.get(&Metric::UserSpeed)?.quantile(Quantile::P50)?;
    Some(Point { x: one, y: throughput(level).value, band: None, of: level.label.clone() })
}

/// Logarithmic where the values span more than a plain axis can show.
fn log_if_wide(series: &[Series]) -> Scale {
    let values = || series.iter().flat_map(|series| &series.points).filter_map(|point| point.y);
    let low = values().filter(|value| *value > 0.0).fold(f64::INFINITY, f64::min);
    let high = values().fold(0.0, f64::max);
    if low.is_finite() && high / low >= WIDE { Scale::Log } else { Scale::Linear }
}

/// The largest load is so many times the smallest from where on doublings are evenly spaced.
const LOG_FROM: f64 = 8.0;
/// The same of latencies.
const WIDE: f64 = 30.0;
