//! One part of a level against the rest of it: how much slower, and how well that is known.
//!
//! Medians, since the ratio of tails takes more requests than a replica gets. Each has the interval of its ranks for the
//! number of independent requests that it is worth, as everywhere (METRICS.md section 7); the ratio has that of both by
//! MOVER, on a logarithmic scale. All ratios of a level hold together with 95 %: each has its part of the 5 % (Bonferroni),
//! so that of many replicas that are alike none is named by chance.

use serde::{Deserialize, Serialize};

use crate::metrics::metric::Metric;
use crate::stats::order::Ranks;
use crate::stats::quantile::nearest_rank;
use crate::stats::{Confidence, Quantile, sort};
use crate::summary::statistics::Ordered;

/// The median of a part against that of all others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// What was measured.
    pub metric: Metric,
    /// The median of the part, ns.
    pub value: f64,
    /// Lower end of its interval, which holds with what the ratios hold with; `None`: too few requests.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// The median of the others, ns.
    pub others: f64,
    /// `value / others`.
    pub ratio: f64,
    /// Lower end of its interval; `None`: too few requests of either.
    pub ratio_low: Option<f64>,
    /// Upper end.
    pub ratio_high: Option<f64>,
}

/// What is compared.
pub(super) const METRICS: [Metric; 2] = [Metric::Ttft, Metric::Tpot];

/// The confidence of each of the intervals of so many parts.
pub(super) fn confidence_of(parts: usize) -> Confidence {
    let tail = Confidence::C95.one_sided_tail() / (parts.max(1) * METRICS.len()) as f64;
    Confidence::new(1.0 - tail).unwrap_or(Confidence::C999)
}

/// A median with the ends of its interval.
struct Median {
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
}

impl Against {
    /// Values of `metric` of a part and of all others, each in the order of their plans; `None` where one has none.
    pub(super) fn of(metric: Metric, own: &[f64], others: &[f64], confidence: Confidence) -> Option<Against> {
        let (own, others) = (Median::of(own, confidence)?, Median::of(others, confidence)?);
        if own.value <= 0.0 || others.value <= 0.0 {
            return None;
        }
        let distance =
            |far: Option<f64>, near: f64| far.filter(|far| *far > 0.0).map(|far| (far / near).ln().abs());
        let ratio = own.value / others.value;
        let below = distance(own.low, own.value).zip(distance(others.high, others.value));
        let above = distance(own.high, own.value).zip(distance(others.low, others.value));
        Some(Against {
            metric,
            value: own.value,
            low: own.low,
            high: own.high,
            others: others.value,
            ratio,
            ratio_low: below.map(|(own, others)| ratio * (-own.hypot(others)).exp()),
            ratio_high: above.map(|(own, others)| ratio * own.hypot(others).exp()),
        })
    }

    /// It is surely slower than the others.
    #[must_use]
    pub fn is_slower(&self) -> bool {
        self.ratio_low.is_some_and(|low| low > 1.0)
    }

    /// It is surely faster.
    #[must_use]
    pub fn is_faster(&self) -> bool {
        self.ratio_high.is_some_and(|high| high < 1.0)
    }
}

impl Median {
    fn of(values: &[f64], confidence: Confidence) -> Option<Median> {
        let mut sorted = values.to_vec();
        sort::values(&mut sorted);
        let n_eff = Ordered::of(values, &sorted)?.n_eff();
        let ranks = Ranks::effective(sorted.len() as u64, n_eff, Quantile::P50, confidence);
        let at = |rank: u64| sorted.get(rank as usize - 1).copied();
        Some(Median {
            value: nearest_rank(&sorted, Quantile::P50)?,
            low: ranks.lower.and_then(at),
            high: ranks.upper.and_then(at),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    /// Latencies around 200 ms, spread by a third, times `factor`.
    fn latencies(seed: u64, factor: f64, n: usize) -> Vec<f64> {
        let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
        (0..n).map(|_| 2e8 * factor * (0.67 + 0.66 * rng::unit(&mut stream))).collect()
    }

    #[test]
    fn half_as_slow_again_is_seen_with_its_ratio() {
        let found =
            Against::of(Metric::Ttft, &latencies(1, 1.5, 100), &latencies(2, 1.0, 300), confidence_of(4));
        let found = found.expect("there are values");
        assert!(found.is_slower() && !found.is_faster());
        let (low, high) = (found.ratio_low.expect("bounded"), found.ratio_high.expect("bounded"));
        assert!(1.2 < low && low < found.ratio && found.ratio < high && high < 1.9, "{found:?}");
        assert!((found.ratio - found.value / found.others).abs() < 1e-12);
    }

    #[test]
    fn what_is_alike_is_named_in_less_than_one_of_twenty_levels() {
        let parts = 4;
        let named = (0..400).filter(|seed| {
            let of: Vec<Vec<f64>> = (0..parts).map(|part| latencies(seed * 8 + part, 1.0, 100)).collect();
            (0..parts as usize).any(|part| {
                let others: Vec<f64> = of
                    .iter()
                    .enumerate()
                    .filter(|(one, _)| *one != part)
                    .flat_map(|(_, all)| all.clone())
                    .collect();
                let found = Against::of(Metric::Ttft, &of[part], &others, confidence_of(parts as usize));
                found.is_some_and(|found| found.is_slower() || found.is_faster())
            })
        });
        assert!(named.count() <= 20);
    }

    #[test]
    fn too_few_requests_bound_nothing() {
        let found =
            Against::of(Metric::Ttft, &latencies(1, 9.0, 5), &latencies(2, 1.0, 300), confidence_of(4));
        let found = found.expect("there are values");
        assert_eq!((found.low, found.ratio_low, found.ratio_high), (None, None, None));
        assert_eq!(Against::of(Metric::Ttft, &[], &[1.0], confidence_of(2)), None);
    }
}
