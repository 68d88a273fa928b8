//! Any number of runs beside each other, load by load.

use serde::Serialize;

use super::pareto::{self, Point};
use super::sample::{RunName, Sample};
use super::{Difference, Estimate, Figure, LoadOf, Rate, Remark, Scale, Unit, remarks};
use crate::metrics::Metric;
use crate::plan::Slo;
use crate::stats::{Confidence, Interval, Quantile};

/// Runs beside each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SideBySide {
    /// Always `tokload.compare`.
    pub schema: &'static str,
    /// Version of the schema.
    pub version: u32,
    /// Each interval of a value holds with this probability, and all intervals of differences together.
    pub confidence: f64,
    /// Differences that are shown.
    pub differences: u64,
    /// The runs, the first of which the others are compared with.
    pub runs: Vec<RunName>,
    /// The loads, those of the first run first.
    pub loads: Vec<Comparison>,
    /// Output tokens per second of all users against those of one.
    pub pareto: Vec<Point>,
    /// What besides the server differs.
    pub remarks: Vec<Remark>,
}

/// One load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The load in words.
    pub load: String,
    /// The figures, in the order of [`SideBySide::FIGURES`].
    pub figures: Vec<ComparedFigure>,
}

/// One figure of a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// Its name.
    pub figure: Figure,
    /// Its unit.
    pub unit: &'static str,
    /// One cell for each run; `None` where the run has no such load, or no such value.
    pub runs: Vec<Option<Cell>>,
}

/// A figure of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Its value.
    pub value: f64,
    /// Lower end of its interval; `None` where it is not known.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How it differs from the first run; `None` in that, and where that has no value.
    pub difference: Option<Difference>,
}

impl SideBySide {
    /// The figures that are compared.
    pub const FIGURES: [Figure; 10] = [
        Figure::Rate(Rate::Requests),
        Figure::Rate(Rate::OutputTokens),
        Figure::Quantile(Metric::Ttft, Quantile::P50),
        Figure::Quantile(Metric::Ttft, Quantile::P99),
        Figure::Quantile(Metric::Tpot, Quantile::P50),
        Figure::Quantile(Metric::Tpot, Quantile::P99),
        Figure::Quantile(Metric::E2e, Quantile::P50),
        Figure::Quantile(Metric::E2e, Quantile::P99),
        Figure::Attainment,
        Figure::Failed,
    ];
}

/// Compares `samples` with the first of them. Goodput is judged by `slo`, or by the limits of the first run.
///
/// All intervals of differences hold together with `confidence`: each is wider the more there are (Bonferroni).
#[must_use]
pub fn compare(samples: &[Sample], slo: Option<Slo>, confidence: Confidence) -> SideBySide {
    let slo = slo.or_else(|| samples.first()?.slo()).unwrap_or_default();
    let loads: Vec<Vec<LoadOf<'_>>> = samples.iter().map(Sample::loads).collect();
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for load in loads.iter().flatten() {
        if !keys.iter().any(|(key, _)| *key == load.key) {
            keys.push((&load.key, &load.label));
        }
    }
    let estimates: Vec<Vec<Vec<Option<Estimate>>>> = keys
        .iter()
        .map(|(key, _)| SideBySide::FIGURES.map(|figure| estimates(&loads, key, figure, slo)).to_vec())
        .collect();
    let compared = |runs: &Vec<Option<Estimate>>| match runs.split_first() {
        Some((Some(_), others)) => others.iter().flatten().count() as u64,
        _ => 0,
    };
    let differences: u64 = estimates.iter().flatten().map(compared).sum();
    let tail = confidence.two_sided_tail() / differences.max(1) as f64;
    let of_load = |((_, label), figures): (&(&str, &str), &Vec<Vec<Option<Estimate>>>)| Comparison {
        load: (*label).to_owned(),
        figures: SideBySide::FIGURES
            .iter()
            .zip(figures)
            .map(|(figure, runs)| ComparedFigure {
                figure: *figure,
                unit: figure.unit(),
                runs: cells(runs, confidence, tail),
            })
            .collect(),
    };
    SideBySide {
        schema: "tokload.compare",
        version: 1,
        confidence: confidence.level(),
        differences,
        runs: samples.iter().map(Sample::run_name).collect(),
        loads: keys.iter().zip(&estimates).map(of_load).collect(),
        pareto: pareto::front(samples),
        remarks: remarks::of_all(samples),
    }
}

fn estimates(loads: &[Vec<LoadOf<'_>>], key: &str, figure: Figure, slo: Slo) -> Vec<Option<Estimate>> {
    let of_run = |loads: &Vec<LoadOf<'_>>| {
        let load = loads.iter().find(|load| load.key == key)?;
        Estimate::of(figure, &Unit::rounds_of(load), slo, load.from_plan)
    };
    loads.iter().map(of_run).collect()
}

fn cells(runs: &[Option<Estimate>], confidence: Confidence, tail: f64) -> Vec<Option<Cell>> {
    let first = runs.first().and_then(Option::as_ref);
    let cell = |(place, estimate): (usize, &Option<Estimate>)| {
        let estimate = estimate.as_ref()?;
        let Interval { low, high } = estimate.interval(confidence);
        // A ratio that nothing bounds goes down to 0 and up without end.
        let is_open = |end: f64| !end.is_finite() || (estimate.scale == Scale::Relative && end == 0.0);
        let known = |end: f64| Some(end).filter(|end| estimate.is_bounded() && !is_open(*end));
        let difference = first.filter(|_| place > 0).map(|first| Difference::between(first, estimate, tail));
        Some(Cell { value: estimate.value, low: known(low), high: known(high), difference })
    };
    runs.iter().enumerate().map(cell).collect()
}

impl<'a> Unit<'a> {
    /// The rounds of a load, each for itself.
    #[must_use]
    pub fn rounds_of(load: &LoadOf<'a>) -> Vec<Unit<'a>> {
        load.rounds.iter().map(|round| Unit { rounds: vec![*round], is_run: false }).collect()
    }
}
