//! The trade of a server: what all users get together against what each of them gets.

use serde::Serialize;

use super::sample::Sample;
use crate::compare::figure::{Figure, Rate};
use crate::metrics::Metric;
use crate::stats::Quantile;
use crate::stats::sort;

/// A load of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Place of the run, from 0.
    pub run: usize,
    /// The load in words.
    pub load: String,
    /// Output tokens per second that one user saw: one over the median TPOT.
    pub user_tok_s: f64,
    /// Output tokens per second of all users together, over the window.
    pub out_tok_s: f64,
    /// No other point has more of one and at least as much of the other.
    pub on_front: bool,
}

/// The points of all loads of `samples`, by rising speed of one user. Loads without tokens have none; those of rounds
/// have the mean of their rounds.
#[must_use]
pub fn front(samples: &[Sample]) -> Vec<Point> {
    let mut points = Vec::new();
    for (run, sample) in samples.iter().enumerate() {
        for load in sample.loads() {
            let mean = |figure: Figure| {
                let values: Option<Vec<f64>> =
                    load.rounds.iter().map(|round| figure.stored(round.block)).collect();
                let values = values.filter(|values| !values.is_empty())?;
                Some(values.iter().sum::<f64>() / values.len() as f64)
            };
            let tpot_ns = mean(Figure::Quantile(Metric::Tpot, Quantile::P50)).filter(|ns| *ns > 0.0);
            if let (Some(tpot_ns), Some(out_tok_s)) = (tpot_ns, mean(Figure::Rate(Rate::OutputTokens))) {
                let user_tok_s = 1e9 / tpot_ns;
                points.push(Point { run, load: load.label.clone(), user_tok_s, out_tok_s, on_front: false });
            }
        }
    }
    sort::few_by(&mut points, |a, b| {
        a.user_tok_s.total_cmp(&b.user_tok_s).then(a.out_tok_s.total_cmp(&b.out_tok_s))
    });
    let mut best = (f64::INFINITY, f64::NEG_INFINITY);
    // From the quickest down: who gives more in total than all that are quicker is on the front, and its equals.
    for point in points.iter_mut().rev() {
        let this = (point.user_tok_s, point.out_tok_s);
        point.on_front = this.1 > best.1 || this == best;
        if this.1 > best.1 {
            best = this;
        }
    }
    points
}
