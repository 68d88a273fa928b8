//! How much worse a candidate may be.

use serde::Serialize;

use crate::compare::{Change, Estimate, Figure, Rate, Scale};
use crate::metrics::Metric;
use crate::metrics::metric::Better;
use crate::plan::Slo;
use crate::stats::{Confidence, Quantile};

/// The limits of a gate, and how sure it is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Thresholds {
    /// At most one for each figure and what it is held against.
    pub limits: Vec<Limit>,
    /// All intervals hold together with this probability.
    pub confidence: Confidence,
    /// By what goodput is judged; `None`: by the candidate's own limits.
    pub slo: Option<Slo>,
}

/// Most that a figure may get worse by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The figure. In a load that is judged from the planned send its twin from there is meant, where it has one.
    pub figure: Figure,
    /// As a share of the baseline (0.05: by 5 %), or in points of a share (0.05: from 90 % to 85 %). Not below 0.
    pub worse: f64,
    /// What it is held against.
    pub against: Against,
    /// In which loads it holds.
    pub place: Where,
}

/// What a limit is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// The baseline's value.
    Baseline,
    /// Nothing: the limit is one of the candidate alone.
    Nothing,
}

/// In which loads a limit holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In all.
    Everywhere,
    /// Where the server's speed decides how much is done: in closed loops, and where a queue grows. What an open loop
    /// gets done otherwise is what its schedule asks for.
    UnderFullLoad,
}

/// How much worse, on the scale of the figure, with the limit on the same scale.
pub(super) struct Worsening {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) limit: f64,
}

impl Thresholds {
    /// No limit at all.
    #[must_use]
    pub fn none() -> Thresholds {
        Thresholds { limits: Vec::new(), confidence: Confidence::C95, slo: None }
    }

    /// Puts `limit` in the place of the one of the same figure against the same, or adds it.
    pub fn set(&mut self, limit: Limit) {
        let same = |other: &&mut Limit| (other.figure, other.against) == (limit.figure, limit.against);
        match self.limits.iter_mut().find(same) {
            Some(place) => *place = limit,
            None => self.limits.push(limit),
        }
    }

    /// Takes the limits of `figure` away.
    pub fn remove(&mut self, figure: Figure) {
        self.limits.retain(|limit| limit.figure != figure);
    }
}

impl Default for Thresholds {
    /// TTFT and TPOT p50 by 5 %, output tokens per second by 5 % where the server's speed decides them, attainment by 5
    /// points, failed requests by 1 point; all together with 95 %.
    ///
    /// Tails are no default: to know a p90 as well takes five times the requests, a p99 many times more, and a gate that
    /// is never conclusive is none. Attainment watches them, as far as the limits of the run do.
    fn default() -> Thresholds {
        let p50 = |metric, worse| Limit::new(Figure::Quantile(metric, Quantile::P50), worse);
        let throughput =
            Limit { place: Where::UnderFullLoad, ..Limit::new(Figure::Rate(Rate::OutputTokens), 0.05) };
        Thresholds {
            limits: vec![
                p50(Metric::Ttft, 0.05),
                p50(Metric::Tpot, 0.05),
                throughput,
                Limit::new(Figure::Attainment, 0.05),
                Limit::new(Figure::Failed, 0.01),
            ],
            ..Thresholds::none()
        }
    }
}

impl Limit {
    /// `figure` may get worse by `worse` than in the baseline, in every load.
    #[must_use]
    pub const fn new(figure: Figure, worse: f64) -> Limit {
        Limit { figure, worse, against: Against::Baseline, place: Where::Everywhere }
    }

    /// How much worse `own` is than `base`, if both levels were `times` as long.
    pub(super) fn worsening(&self, base: &Estimate, own: &Estimate, tail: f64, times: f64) -> Worsening {
        let change = Change::between(base, own, tail, times);
        let (low, high) = (change.value - change.reach.low, change.value + change.reach.high);
        match self.figure.better() {
            Better::Lower => Worsening { value: change.value, low, high, limit: self.on_scale(self.worse) },
            Better::Higher => {
                Worsening { value: -change.value, low: -high, high: -low, limit: self.on_scale(self.worse) }
            }
        }
    }

    /// A worsening by the share `worse` on the scale of the figure. Who loses all is infinitely much worse.
    pub(super) fn on_scale(&self, worse: f64) -> f64 {
        match (self.figure.scale(), self.figure.better()) {
            (Scale::Points, _) => worse,
            (Scale::Relative, Better::Lower) => worse.ln_1p(),
            (Scale::Relative, Better::Higher) => -(-worse.min(1.0)).ln_1p(),
        }
    }
}
