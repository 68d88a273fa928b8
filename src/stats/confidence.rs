//! How sure an interval is, and the interval.

use std::fmt;

/// The probability with which an interval is to hold what it is about, above 0 and below 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// 95 %, that of every interval shown.
    pub const C95: Confidence = Confidence(0.95);
    /// 99 %, that of LoadGen's minimum counts and of a confirmed capacity.
    pub const C99: Confidence = Confidence(0.99);
    /// 99.9 %, where a bound is looked at again and again.
    pub const C999: Confidence = Confidence(0.999);

    /// The confidence `level`, such as 0.95; `None` unless it lies between 0 and 1.
    #[must_use]
    pub fn new(level: f64) -> Option<Confidence> {
        (level > 0.0 && level < 1.0).then_some(Confidence(level))
    }

    /// As a share: 0.95.
    #[must_use]
    pub const fn level(self) -> f64 {
        self.0
    }

    /// What may lie beyond a bound on one side.
    #[must_use]
    pub const fn one_sided_tail(self) -> f64 {
        1.0 - self.0
    }

    /// What may lie beyond each of the two ends of an interval.
    #[must_use]
    pub const fn two_sided_tail(self) -> f64 {
        (1.0 - self.0) / 2.0
    }
}

/// From `low` to `high`, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end, not below the lower one.
    pub high: f64,
}

impl Interval {
    /// The interval that reaches `reach` to both sides of `centre`.
    #[must_use]
    pub fn around(centre: f64, reach: f64) -> Interval {
        Interval { low: centre - reach, high: centre + reach }
    }

    /// Whether `value` lies in it.
    #[must_use]
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The smallest interval that holds both.
    #[must_use]
    pub fn hull(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.max(other.high) }
    }

    /// The part of it in `[low, high]`; an interval wholly outside becomes the nearer end.
    #[must_use]
    pub fn clamped(self, low: f64, high: f64) -> Interval {
        Interval { low: self.low.clamp(low, high), high: self.high.clamp(low, high) }
    }

    /// Its width.
    #[must_use]
    pub fn width(self) -> f64 {
        self.high - self.low
    }

    /// Half its width as a share of `centre`: 0.05 for plus or minus 5 %. Infinite where `centre` is 0, unless the
    /// width is 0 as well.
    #[must_use]
    pub fn relative_reach(self, centre: f64) -> f64 {
        if self.width() == 0.0 { 0.0 } else { self.width() / 2.0 / centre.abs() }
    }
}

impl fmt::Display for Confidence {
    /// As a percentage: `95 %`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // To ten digits, so that 0.999 is not 99.90000000000001.
        write!(f, "{} %", (self.0 * 1e12).round() / 1e10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_confidence_lies_between_never_and_always() {
        assert_eq!(Confidence::new(0.95), Some(Confidence::C95));
        for level in [0.0, 1.0, -0.1, 1.1, f64::NAN] {
            assert_eq!(Confidence::new(level), None);
        }
        assert_eq!(Confidence::new(0.999).unwrap().to_string(), "99.9 %");
        assert_eq!(Confidence::C95.to_string(), "95 %");
    }

    #[test]
    fn intervals_join_and_are_cut() {
        let (left, right) = (Interval { low: -1.0, high: 0.5 }, Interval::around(1.0, 0.25));
        assert_eq!(left.hull(right), Interval { low: -1.0, high: 1.25 });
        assert_eq!(left.hull(right).clamped(0.0, 1.0), Interval { low: 0.0, high: 1.0 });
        assert!(right.contains(0.75) && right.contains(1.25) && !right.contains(1.26));
        assert_eq!(right.relative_reach(1.0), 0.25);
        assert_eq!(Interval::around(0.0, 0.0).relative_reach(0.0), 0.0);
        assert_eq!(Interval::around(0.0, 1.0).relative_reach(0.0), f64::INFINITY);
    }
}
