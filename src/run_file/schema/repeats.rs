//! What the repeats of a load say together: the spread between runs, which one run cannot know.
//!
//! Owns which figures are compared and how they are stored; the interval itself is `stats::repeats`'s. Made of the
//! levels' own blocks, so that a stored run judged by another SLO has its repeats judged by it as well.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::RunFile;
use super::level::LevelBlock;
use crate::metrics::metric::Metric;
use crate::stats::{Confidence, Interval, Quantile, Repeats};

/// The repeats of one load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RepeatsBlock {
    /// Place of the load among the levels of the plan, from 0.
    pub level: usize,
    /// The load in words.
    pub label: String,
    /// Repeats that were run to their end; one that was interrupted does not count.
    pub n: usize,
    /// There are enough of them to rest a claim on: 5.
    pub enough: bool,
    /// The probability with which each interval holds what repeats of this kind have in the mean.
    pub confidence: f64,
    /// The figures by name: `req_s`, `ttft_p99`.
    pub figures: BTreeMap<String, FigureBlock>,
}

/// One figure over the repeats.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigureBlock {
    /// Unit of the values: `share`, `requests/s`, `tokens/s`, `ns`.
    pub unit: String,
    /// The value of each repeat, in their order; `None` where there was none, or where it fell on a failed request.
    pub values: Vec<Option<f64>>,
    /// Their mean; this and all below `None` below two repeats, and where one has no value.
    pub mean: Option<f64>,
    /// Their standard deviation, that of a sample (n - 1).
    pub sd: Option<f64>,
    /// How far the interval reaches to both sides of the mean: Student's t, n - 1 degrees of freedom.
    pub reach: Option<f64>,
    /// Lower end of the interval, not below 0.
    pub low: Option<f64>,
    /// Upper end, of a share not above 1.
    pub high: Option<f64>,
}

/// Name, unit and value of each figure.
type Figure = (&'static str, &'static str, fn(&LevelBlock) -> Option<f64>);

/// The figures that are compared: the columns of the table.
const FIGURES: [Figure; 10] = [
    ("attainment", "share", |level| level.goodput.map(|goodput| goodput.attainment)),
    ("goodput_s", "requests/s", |level| level.goodput.map(|goodput| goodput.good_s)),
    ("req_s", "requests/s", |level| Some(level.rates.window.req_s)),
    ("out_tok_s", "tokens/s", |level| Some(level.rates.window.out_tok_s)),
    ("ttft_p50", "ns", |level| percentile(level, Metric::Ttft, Quantile::P50)),
    ("ttft_p99", "ns", |level| percentile(level, Metric::Ttft, Quantile::P99)),
    ("tpot_p50", "ns", |level| percentile(level, Metric::Tpot, Quantile::P50)),
    ("tpot_p99", "ns", |level| percentile(level, Metric::Tpot, Quantile::P99)),
    ("e2e_p50", "ns", |level| percentile(level, Metric::E2e, Quantile::P50)),
    ("e2e_p99", "ns", |level| percentile(level, Metric::E2e, Quantile::P99)),
];

impl RunFile {
    /// Puts in their place what the repeats of each load say together; nothing where every level was run once.
    ///
    /// A pure function of the levels' blocks and the plan, to be called again when these have changed.
    pub fn compare_repeats(&mut self) {
        let loads = match self.plan.read() {
            Ok(plan) if plan.runs > 1 => plan.levels.len(),
            _ => 0,
        };
        let of_load = |place: usize| {
            let repeats = self.levels.iter().filter(|level| level.ordinal % loads == place);
            let repeats: Vec<&LevelBlock> = repeats.filter(|level| !level.interrupted).collect();
            RepeatsBlock::of(place, &repeats)
        };
        self.repeats = (loads > 0).then(|| (0..loads).filter_map(of_load).collect());
    }
}

impl RepeatsBlock {
    fn of(level: usize, repeats: &[&LevelBlock]) -> Option<RepeatsBlock> {
        let label = repeats.first()?.load_label();
        let of_figure = |(name, unit, value): &Figure| {
            let values = repeats.iter().map(|level| value(level).filter(|value| value.is_finite())).collect();
            ((*name).to_owned(), FigureBlock::of(unit, values))
        };
        Some(RepeatsBlock {
            level,
            label,
            n: repeats.len(),
            enough: repeats.len() >= Repeats::ENOUGH,
            confidence: Confidence::C95.level(),
            figures: FIGURES.iter().map(of_figure).collect(),
        })
    }
}

impl FigureBlock {
    fn of(unit: &str, values: Vec<Option<f64>>) -> FigureBlock {
        let all: Option<Vec<f64>> = values.iter().copied().collect();
        let repeats = all.and_then(|values| Repeats::of(&values));
        let interval = repeats.map(|repeats| repeats.interval(Confidence::C95));
        let most = if unit == "share" { 1.0 } else { f64::INFINITY };
        let clamped = interval.map(|interval| interval.clamped(0.0, most));
        FigureBlock {
            unit: unit.to_owned(),
            values,
            mean: repeats.map(|repeats| repeats.mean()),
            sd: repeats.map(|repeats| repeats.standard_deviation()),
            reach: interval.map(|interval| interval.width() / 2.0),
            low: clamped.map(|Interval { low, .. }| low),
            high: clamped.map(|Interval { high, .. }| high),
        }
    }
}

/// The percentile that the table shows: none where it falls on a failed request, which is infinitely slow.
fn percentile(level: &LevelBlock, metric: Metric, quantile: Quantile) -> Option<f64> {
    let distribution = level.distributions.get(&metric)?;
    if distribution.fails(quantile) { None } else { distribution.quantile(quantile) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_an_interval_if_every_repeat_has_a_value() {
        let some = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        // 2, 4, 6, 8, 10: mean 6, variance 10, t of 4 degrees 2.776.
        let figure = FigureBlock::of("ns", some(&[2.0, 4.0, 6.0, 8.0, 10.0]));
        assert_eq!((figure.mean, figure.sd), (Some(6.0), Some(10.0_f64.sqrt())));
        let reach = 2.776_445_105_197_794 * 2.0_f64.sqrt();
        assert!((figure.reach.unwrap() - reach).abs() < 1e-12);
        assert!((figure.low.unwrap() - (6.0 - reach)).abs() < 1e-12);
        for values in [vec![Some(1.0)], vec![Some(1.0), None, Some(2.0)], Vec::new()] {
            let figure = FigureBlock::of("ns", values.clone());
            assert_eq!((figure.mean, figure.reach, figure.values), (None, None, values));
        }
        let share = FigureBlock::of("share", some(&[0.9, 1.0]));
        assert_eq!(share.high, Some(1.0));
        assert!(share.reach.unwrap() > 0.5, "two repeats know little");
    }
}
