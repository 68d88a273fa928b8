//! How well a figure of a load is known: at any confidence, and if more requests had been sent.

mod units;

pub use units::Unit;

use super::figure::Scale;
use crate::stats::binomial::Sample as Binomial;
use crate::stats::{Confidence, Interval, Quantile, Share, order, student};

/// A figure with what is known of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Its value, in the figure's unit.
    pub value: f64,
    /// How changes of it are expressed, and distances below.
    pub scale: Scale,
    /// Independent requests that those behind it are worth; 0 where nobody knows.
    pub n_eff: f64,
    within: Within,
    between: Option<Between>,
}

/// How far the truth may lie to either side, on the figure's scale: differences of logarithms for relative changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// Below the value; infinite where nothing bounds it.
    pub low: f64,
    /// Above it.
    pub high: f64,
}

/// What is known from within a run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Within {
    /// Nothing: how much the requests resemble each other was not kept.
    Unknown,
    /// Runs speak for themselves.
    Runs,
    /// Standard errors to either side.
    Errors(Errors),
    /// A share, by its exact bounds and its batches.
    Share(KnownShare),
}

/// Standard errors of a value, on its scale.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Errors {
    low: f64,
    high: f64,
    /// Independent requests from which there is a bound below at all, and above.
    least_low: f64,
    least_high: f64,
}

/// A share with the reach of its batch means at one standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
struct KnownShare {
    value: f64,
    batch_error: f64,
}

/// What runs differ by beyond what each knows of itself, as a part of the variance of the value.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Between {
    variance: f64,
    /// Degrees of freedom; `None` where runs are too few for them to mean anything.
    df: Option<f64>,
}

/// Independent requests below which nothing is concluded from within a run: ten blocks, each as long as the correlation.
const LEAST_EFFECTIVE: f64 = 10.0;
/// A block is so many correlation lengths long where there are enough requests.
const LENGTHS_PER_BLOCK: f64 = 5.0;
/// Fewest and most blocks.
const BLOCKS: (f64, f64) = (10.0, 60.0);

/// Blocks that requests worth `n_eff` independent ones are cut into.
fn blocks(n_eff: f64) -> f64 {
    (n_eff / LENGTHS_PER_BLOCK).floor().clamp(BLOCKS.0, BLOCKS.1)
}

impl Estimate {
    /// How far the truth may lie to either side, `tail` being the probability that it lies farther on one of them, if
    /// the level were `times` as long (1: as it is).
    #[must_use]
    pub fn reach(&self, tail: f64, times: f64) -> Reach {
        let within = self.within(tail, times);
        let Some(Between { variance, df }) = self.between else { return within };
        let factor = df.map_or_else(|| student::normal_quantile(tail), |df| student::quantile(tail, df));
        let between = factor * variance.sqrt();
        if self.within == Within::Runs {
            return Reach { low: between, high: between };
        }
        Reach { low: within.low.hypot(between), high: within.high.hypot(between) }
    }

    /// The interval that holds the figure with `confidence`, in its unit. An end that nothing bounds is infinite, or 0
    /// below.
    #[must_use]
    pub fn interval(&self, confidence: Confidence) -> Interval {
        let Reach { low, high } = self.reach(confidence.two_sided_tail(), 1.0);
        match self.scale {
            Scale::Points => Interval { low: self.value - low, high: self.value + high }.clamped(0.0, 1.0),
            Scale::Relative => Interval { low: self.value * (-low).exp(), high: self.value * high.exp() },
        }
    }

    /// Whether anything is known of how far the truth may be off.
    #[must_use]
    pub fn is_bounded(&self) -> bool {
        self.within != Within::Unknown
    }

    /// Whether there are enough independent requests, or runs, to conclude anything.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.within == Within::Runs || self.n_eff >= LEAST_EFFECTIVE
    }

    /// A value that is known exactly.
    #[must_use]
    pub fn exact(value: f64, scale: Scale) -> Estimate {
        let between = Some(Between { variance: 0.0, df: None });
        Estimate { value, scale, n_eff: f64::INFINITY, within: Within::Runs, between }
    }

    /// The same of a single run, where other runs of the kind differ among themselves by more than each knows of
    /// itself: `others` is an estimate over several.
    #[must_use]
    pub fn among(mut self, others: &Estimate, runs: usize) -> Estimate {
        if let (None, Some(Between { variance, df })) = (self.between, others.between) {
            let of_one = variance * runs as f64;
            let sd = self.within(SD_TAIL, 1.0);
            let own = if self.within == Within::Unknown { 0.0 } else { sd.low.max(sd.high).powi(2) };
            // Over five runs and more the spread holds what each does not know of itself.
            let excess = if others.within == Within::Runs { (of_one - own).max(0.0) } else { of_one };
            self.between = Some(Between { variance: excess, df });
        }
        self
    }

    fn within(&self, tail: f64, times: f64) -> Reach {
        let n_eff = self.n_eff * times;
        match self.within {
            Within::Unknown => Reach { low: f64::INFINITY, high: f64::INFINITY },
            Within::Runs => Reach { low: 0.0, high: 0.0 },
            Within::Errors(Errors { low, high, least_low, least_high }) => {
                let factor = student::quantile(tail, blocks(n_eff) - 1.0) / times.sqrt();
                let side = |error: f64, least: f64| {
                    if n_eff < least.max(LEAST_EFFECTIVE) { f64::INFINITY } else { error * factor }
                };
                Reach { low: side(low, least_low), high: side(high, least_high) }
            }
            Within::Share(share) => share.reach(tail, n_eff, times),
        }
    }
}

impl KnownShare {
    fn reach(self, tail: f64, n_eff: f64, times: f64) -> Reach {
        let KnownShare { value, batch_error } = self;
        let Some(confidence) = Confidence::new(1.0 - 2.0 * tail) else {
            return Reach { low: f64::INFINITY, high: f64::INFINITY };
        };
        let exact = Binomial::with_share(value, n_eff).interval(confidence);
        let batches = student::quantile(tail, BLOCKS.0 - 1.0) * batch_error / times.sqrt();
        Reach { low: (value - exact.low).max(batches), high: (exact.high - value).max(batches) }
    }
}

impl From<Share> for KnownShare {
    fn from(share: Share) -> KnownShare {
        let one_error =
            |interval: Interval| interval.width() / 2.0 / student::quantile(C95_TAIL, BLOCKS.0 - 1.0);
        let batch_error = share.by_batch_means(Confidence::C95).map_or(0.0, one_error);
        KnownShare { value: share.value(), batch_error }
    }
}

impl Errors {
    /// The same to both sides, bounded from any number on.
    fn even(error: f64) -> Errors {
        Errors { low: error, high: error, least_low: 0.0, least_high: 0.0 }
    }

    /// Of a quantile: from so many independent values on it has bounds.
    fn of_quantile(low: f64, high: f64, quantile: Quantile) -> Errors {
        let least =
            |quantile| order::n_for_upper_end(quantile, Confidence::C95).map_or(f64::INFINITY, |n| n as f64);
        // Below a quantile is above its mirror image.
        let mirrored =
            Quantile::from_parts(Quantile::MAX.parts() - quantile.parts()).unwrap_or(Quantile::P50);
        Errors { low, high, least_low: least(mirrored), least_high: least(quantile) }
    }
}

/// What lies beyond one standard error of a normal variable.
const SD_TAIL: f64 = 0.158_655;
/// What lies beyond each end of a 95 % interval.
const C95_TAIL: f64 = 0.025;
