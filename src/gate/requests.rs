//! How many requests would decide.

use serde::Serialize;

use super::thresholds::Limit;
use crate::compare::Estimate;

/// Requests of a load that would decide, in both runs, rounded up to two digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Needed {
    /// In the candidate, all told.
    pub candidate: u64,
    /// In the baseline, over all its runs.
    pub baseline: u64,
}

impl Needed {
    /// `times` as many as there are (of the candidate, of the baseline).
    pub(super) fn times(times: f64, (candidate, baseline): (u64, u64)) -> Needed {
        let of = |n: u64| two_digits((n as f64 * times).ceil());
        Needed { candidate: of(candidate), baseline: of(baseline) }
    }

    /// What is enough for both.
    #[must_use]
    pub fn max(self, other: Needed) -> Needed {
        Needed { candidate: self.candidate.max(other.candidate), baseline: self.baseline.max(other.baseline) }
    }
}

/// How many times as long both levels would have to be for a verdict; `None` where no length would do, or none below
/// [`TIMES_MAX`].
///
/// Planned for by what the gate is to tell apart, not by what was seen by chance: a figure that did not change at all,
/// and one that changed by twice the limit, are each found to be so with 97 %. What was seen counts only where it is
/// surely farther from the limit than that, and needs less.
pub(super) fn needed(base: &Estimate, own: &Estimate, limit: &Limit, tail: f64) -> Option<f64> {
    let seen = limit.worsening(base, own, SEEN_TAIL, 1.0);
    let at_limit = limit.on_scale(limit.worse);
    let planned = at_limit.min(limit.on_scale(2.0 * limit.worse) - at_limit);
    let surely = (seen.low - at_limit).max(at_limit - seen.high);
    let gap = planned.max(surely);
    let reach = |tail: f64, times: f64| {
        let worse = limit.worsening(base, own, tail, times);
        (worse.high - worse.value).max(worse.value - worse.low)
    };
    let decides = |times: f64| reach(tail, times) + reach(POWER_TAIL, times) <= gap;
    let mut high = 1.0;
    while !decides(high) {
        high *= 2.0;
        if high > TIMES_MAX {
            return None;
        }
    }
    let mut low = high / 2.0;
    for _ in 0..STEPS {
        let middle = low.midpoint(high);
        if decides(middle) { high = middle } else { low = middle }
    }
    // It did not decide as it is.
    Some(high.max(LEAST_TIMES))
}

/// Up to two digits, upwards: 1 234 is 1 300.
fn two_digits(n: f64) -> u64 {
    if n < 100.0 {
        return n as u64;
    }
    let digit = 10f64.powi(n.log10().floor() as i32 - 1);
    ((n / digit).ceil() * digit) as u64
}

/// How often a verdict that could be found is missed.
const POWER_TAIL: f64 = 0.03;
/// How often the truth is nearer to the limit than what was seen counts for.
const SEEN_TAIL: f64 = 0.05;
/// Beyond this more requests are no answer.
const TIMES_MAX: f64 = 65_536.0;
/// A little more is always needed of what did not decide.
const LEAST_TIMES: f64 = 1.2;
const STEPS: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_rounded_up_to_two_digits() {
        assert_eq!(
            [1.0, 99.0, 100.0, 101.0, 1234.0, 98_000.0, 99_001.0].map(two_digits),
            [1, 99, 100, 110, 1300, 98_000, 100_000]
        );
        let one = Needed::times(2.5, (100, 1000));
        assert_eq!(one, Needed { candidate: 250, baseline: 2500 });
        assert_eq!(
            one.max(Needed { candidate: 1, baseline: 9000 }),
            Needed { candidate: 250, baseline: 9000 }
        );
    }
}
