//! How well quantiles and means of latencies are known.

use crate::metrics::counts::Counts;
use crate::metrics::metric::Metric;
use crate::stats::order::{self, Ranks};
use crate::stats::quantile::nearest_rank;
use crate::stats::{BatchMeans, Confidence, Quantile, Share, sort, totals};
use crate::summary::columns;
use crate::summary::groups::is_slow;
use crate::summary::statistics::{
    Estimate, LatencyStatistics, Level, QuantileStatistics, WholeLatency, WholeLevel, WholeQuantile,
};

/// Whether statistics are taken of `metric`: of those that SLOs are about, and of their twins from the plan where
/// requests are judged from it.
pub(in crate::summary) fn is_wanted(metric: Metric, from_plan: bool) -> bool {
    match metric {
        Metric::Ttft | Metric::Tpot | Metric::E2e | Metric::Stall => true,
        Metric::TtftPlan | Metric::E2ePlan => from_plan,
        _ => false,
    }
}

/// What can only be told while the values stand in the order of their plans.
pub(in crate::summary) struct Ordered {
    design_effect: f64,
    n_eff: f64,
    mean: Option<Estimate>,
}

impl Ordered {
    /// Of `values` in the order of their plans, and the same `sorted`; `None` if there are none.
    ///
    /// The design effect is that of "over p90", as the measurement spec has it, and of the values themselves, whichever
    /// is larger: waves of a queue show in the values where the tail alone has too few.
    pub(in crate::summary) fn of(values: &[f64], sorted: &[f64]) -> Option<Ordered> {
        let p90 = nearest_rank(sorted, Quantile::P90)?;
        let over: Vec<bool> = values.iter().map(|value| *value > p90).collect();
        let share = Share::of(&over, values)?;
        let mean = BatchMeans::of(values).as_ref().map(Estimate::of);
        Some(Ordered { design_effect: share.design_effect(), n_eff: share.n_effective(), mean })
    }

    /// How many independent values they are worth.
    pub(in crate::summary) fn n_eff(&self) -> f64 {
        self.n_eff
    }

    /// With the same values `sorted`.
    pub(in crate::summary) fn ranked(self, metric: Metric, sorted: &[f64]) -> LatencyStatistics {
        let n_eff = self.n_eff;
        let known = |quantile| quantile_of(sorted, quantile, n_eff);
        LatencyStatistics {
            metric,
            n: sorted.len() as u64,
            design_effect: self.design_effect,
            n_eff,
            mean: self.mean,
            quantiles: Quantile::REPORTED.into_iter().filter_map(known).collect(),
        }
    }
}

fn quantile_of(sorted: &[f64], quantile: Quantile, n_eff: f64) -> Option<QuantileStatistics> {
    let n = sorted.len() as u64;
    let at = |rank: u64| sorted.get(rank as usize - 1).copied();
    let ranks = Ranks::effective(n, n_eff, quantile, Confidence::C95);
    let conservative = order::conservative_rank_effective(n, n_eff, quantile, Confidence::C99);
    Some(QuantileStatistics {
        quantile,
        value: nearest_rank(sorted, quantile)?,
        low: ranks.lower.and_then(at),
        high: ranks.upper.and_then(at),
        needed: order::n_for_upper_end(quantile, Confidence::C95)?,
        supported: order::is_supported(quantile, n_eff),
        conservative: conservative.and_then(at),
    })
}

/// All requests of the level, whatever the window cuts off.
pub(super) fn whole_level(level: &Level<'_>) -> WholeLevel {
    let mut counts = Counts::default();
    level.measured.iter().for_each(|record| counts.add(record));
    let wanted = Metric::ALL.into_iter().filter(|metric| is_wanted(*metric, level.input.from_plan));
    let ok = level.measured.iter().copied().filter(|record| record.outcome.is_ok() && !is_slow(record));
    WholeLevel {
        planned: counts.planned,
        ok: counts.ok,
        failed: counts.failed,
        latencies: columns::of(wanted, ok).into_iter().filter_map(whole_latency).collect(),
    }
}

fn whole_latency((metric, mut values): (Metric, Vec<f64>)) -> Option<WholeLatency> {
    sort::values(&mut values);
    let n = values.len() as u64;
    let sum = values.iter().copied().collect::<totals::FloatSum>().total();
    let at = |quantile| Some(WholeQuantile { quantile, value: nearest_rank(&values, quantile)? });
    let quantiles = Quantile::REPORTED.into_iter().filter_map(at).collect();
    Some(WholeLatency { metric, n, mean: totals::mean(n, sum)?, quantiles })
}
