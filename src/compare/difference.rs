//! The difference of two estimates and how well it is known.

use serde::Serialize;

use super::estimate::{Estimate, Reach};
use super::figure::Scale;

/// A change from one run to another: a share of what it was, or a difference of shares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The change: 0.1 is a tenth more.
    pub change: f64,
    /// Lower end of its interval; `None` where nothing bounds it.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// A change on the scale of its figure: a difference of logarithms, or of shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Change {
    pub(crate) scale: Scale,
    pub(crate) value: f64,
    pub(crate) reach: Reach,
}

impl Difference {
    /// From `base` to `other`; `tail` is the probability that the truth lies beyond one end.
    #[must_use]
    pub fn between(base: &Estimate, other: &Estimate, tail: f64) -> Difference {
        Change::between(base, other, tail, 1.0).difference()
    }

    /// Which way it surely goes: above 0, below it, or neither.
    #[must_use]
    pub fn direction(&self) -> std::cmp::Ordering {
        match (self.low, self.high) {
            (Some(low), _) if low > 0.0 => std::cmp::Ordering::Greater,
            (_, Some(high)) if high < 0.0 => std::cmp::Ordering::Less,
            _ => std::cmp::Ordering::Equal,
        }
    }
}

impl Change {
    /// From `base` to `other`, if both levels were `times` as long.
    pub(crate) fn between(base: &Estimate, other: &Estimate, tail: f64, times: f64) -> Change {
        let on_scale = |value: f64| if base.scale == Scale::Relative { value.ln() } else { value };
        let (of_base, of_other) = (base.reach(tail, times), other.reach(tail, times));
        Change {
            scale: base.scale,
            value: on_scale(other.value) - on_scale(base.value),
            reach: Reach { low: of_other.low.hypot(of_base.high), high: of_other.high.hypot(of_base.low) },
        }
    }

    /// As a share of what it was, or in points.
    pub(crate) fn difference(self) -> Difference {
        let Change { scale, value, reach } = self;
        let shown = |value: f64| if scale == Scale::Relative { value.exp_m1() } else { value };
        let bounded = |reach: f64, end: f64| reach.is_finite().then(|| shown(end));
        Difference {
            change: shown(value),
            low: bounded(reach.low, value - reach.low),
            high: bounded(reach.high, value + reach.high),
        }
    }
}
