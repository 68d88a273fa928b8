//! How well one figure is known while its level still runs, from one small value per request.
//!
//! By the same methods as the statistics of a finished level: an interval never rests on the number of requests alone,
//! since neighbours in a queue resemble each other (METRICS.md section 7).

use crate::metrics::slo::{good, strain};
use crate::metrics::{Class, Outcome, Record};
use crate::plan::{Figure, Slo};
use crate::stats::order::Ranks;
use crate::stats::quantile::nearest_rank;
use crate::stats::{Confidence, Interval, Quantile, Share};
use crate::time::Stamp;

/// What a figure takes of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Its planned send: observations are ordered by it.
    pub plan: Stamp,
    /// The latency, ns; or, for attainment, how near the request came to its limits: above 1 one was passed, infinite
    /// where it failed.
    pub value: f64,
    /// It kept every limit.
    pub good: bool,
    /// It failed.
    pub failed: bool,
}

/// What requests are observed for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// The figure.
    pub figure: Figure,
    /// The limits of a good request.
    pub slo: Slo,
    /// Whether they are judged from the planned send.
    pub from_plan: bool,
}

/// A figure and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Known {
    /// Its value.
    pub value: f64,
    /// Where it lies.
    pub interval: Interval,
}

impl Observed {
    /// What the figure takes of a request that has ended; `None` if it is none of its requests: cancelled, or without
    /// the latency.
    #[must_use]
    pub fn of(&self, record: &Record) -> Option<Observation> {
        let Observed { figure, slo, from_plan } = self;
        let plan = record.plan;
        match figure {
            Figure::Attainment => (record.outcome.class != Class::Cancelled).then(|| Observation {
                plan,
                value: strain(record, slo, *from_plan),
                good: good(record, slo, *from_plan),
                failed: record.outcome.is_failure(),
            }),
            Figure::Quantile(metric, _) => {
                let value = metric.of(record).filter(|_| record.outcome.is_ok())?;
                Some(Observation { plan, value, good: true, failed: false })
            }
        }
    }

    /// Whether a request that is still open at `now` has missed a limit by then, however it goes on.
    #[must_use]
    pub fn is_overdue(&self, record: &Record, now: Stamp) -> bool {
        let open = Record {
            // At best its first token, its answer and its end come now.
            first: record.first.or(Some(now)),
            answer: record.answer.or(Some(now)),
            last: Some(now),
            outcome: Outcome::ok(200),
            ..*record
        };
        !good(&open, &self.slo, self.from_plan)
    }

    /// The figure over `observations`, which are put in the order of their plans; `None` while they do not bound it.
    #[must_use]
    pub fn known(&self, observations: &mut [Observation]) -> Option<Known> {
        observations.sort_by_key(|one| one.plan);
        let values: Vec<f64> = observations.iter().map(|one| one.value).collect();
        match self.figure {
            Figure::Attainment => {
                let hits: Vec<bool> = observations.iter().map(|one| one.good).collect();
                let share = Share::of(&hits, &values)?;
                Some(Known { value: share.value(), interval: share.interval(Confidence::C95) })
            }
            Figure::Quantile(_, quantile) => of_quantile(&values, quantile),
        }
    }
}

impl Known {
    /// Half the width of the interval, as a share of the value; infinite where that is 0.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        self.interval.relative_reach(self.value)
    }
}

/// The ranks of as many independent values as these are worth by whether they are over p90, or by their own
/// correlations, whichever is less.
fn of_quantile(values: &[f64], quantile: Quantile) -> Option<Known> {
    let n = values.len() as u64;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let p90 = nearest_rank(&sorted, Quantile::P90)?;
    let over: Vec<bool> = values.iter().map(|value| *value > p90).collect();
    let n_eff = Share::of(&over, values)?.n_effective();
    let ranks = Ranks::effective(n, n_eff, quantile, Confidence::C95);
    let at = |rank: Option<u64>| sorted.get(rank? as usize - 1).copied();
    let interval = Interval { low: at(ranks.lower)?, high: at(ranks.upper)? };
    Some(Known { value: nearest_rank(&sorted, quantile)?, interval })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::metric::Metric;
    use crate::rng;

    fn observed(figure: Figure) -> Observed {
        Observed { figure, slo: Slo { ttft_ms: Some(100.0), ..Slo::default() }, from_plan: false }
    }

    fn median() -> Observed {
        observed(Figure::Quantile(Metric::Ttft, Quantile::P50))
    }

    fn observations(values: impl IntoIterator<Item = f64>) -> Vec<Observation> {
        let one = |(i, value): (usize, f64)| Observation {
            plan: Stamp::from_millis(i as u64),
            value,
            good: value <= 1.0,
            failed: value.is_infinite(),
        };
        values.into_iter().enumerate().map(one).collect()
    }

    fn independent(n: usize) -> Vec<f64> {
        let mut stream = rng::stream(5, rng::Purpose::Choice, 0);
        (0..n).map(|_| rng::unit(&mut stream)).collect()
    }

    #[test]
    fn more_requests_know_better_and_waves_less() {
        let half =
            |values: Vec<f64>| median().known(&mut observations(values)).map(|known| known.half_width());
        let (few, many) = (half(independent(100)).unwrap(), half(independent(10_000)).unwrap());
        assert!(many < few / 5.0, "{few} {many}");
        // The same values, each ten times in a row, are worth little more than once.
        let waves = independent(1000).into_iter().flat_map(|value| [value; 10]).collect();
        assert!(half(waves).unwrap() > 2.0 * many);
        assert_eq!(half(vec![1.0; 3]), None, "three values bound no median");
        assert_eq!(half(Vec::new()), None);
    }

    #[test]
    fn the_order_of_the_shards_does_not_matter() {
        let mut all = observations(independent(500));
        let expected = median().known(&mut all);
        all.rotate_left(250);
        all.reverse();
        assert_eq!(median().known(&mut all), expected);
    }

    #[test]
    fn attainment_counts_failures_and_is_known_by_its_misses() {
        let mut all = observations((0..1000).map(|i| if i % 10 == 3 { f64::INFINITY } else { 0.5 }));
        let known = observed(Figure::Attainment).known(&mut all).unwrap();
        assert_eq!(known.value, 0.9);
        assert!(known.interval.contains(0.9) && known.half_width() < 0.03, "{known:?}");
    }

    #[test]
    fn each_figure_takes_its_own_of_a_request() {
        use crate::metrics::{Kind, Outcome};
        let mut record = Record::planned(0, Stamp::from_millis(5));
        record.start = Stamp::from_millis(10);
        (record.first, record.last) = (Some(Stamp::from_millis(90)), Some(Stamp::from_millis(90)));
        record.outcome = Outcome::ok(200);
        let attainment = observed(Figure::Attainment).of(&record).unwrap();
        assert_eq!((attainment.value, attainment.good), (0.8, true));
        let from_plan = Observed { from_plan: true, ..observed(Figure::Attainment) };
        assert_eq!(from_plan.of(&record).unwrap().value, 0.85);
        assert_eq!(median().of(&record).unwrap().value, 80e6);
        record.outcome = Outcome::new(Class::Reset, Kind::Truncated, 200);
        assert_eq!(median().of(&record), None);
        let failed = observed(Figure::Attainment).of(&record).unwrap();
        assert_eq!((failed.value, failed.good), (f64::INFINITY, false));
        record.outcome = Outcome::new(Class::Cancelled, Kind::None, 0);
        assert_eq!(observed(Figure::Attainment).of(&record), None);
    }
}
