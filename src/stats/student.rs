//! Tails and quantiles of Student's t and of the normal distribution.
//!
//! Upper tails rather than cumulative probabilities: `1 - 10^-20` is no number, `10^-20` is. The lower ones follow by
//! symmetry.

use std::f64::consts::TAU;

use crate::stats::beta::{self, Point};

/// The probability that a Student t variable with `df` degrees of freedom (any number above 0) exceeds `t`.
#[must_use]
pub fn tail(t: f64, df: f64) -> f64 {
    let (square, sum) = (t * t, df + t * t);
    if square.is_infinite() {
        return if t > 0.0 { 0.0 } else { 1.0 };
    }
    let at = Point { x: df / sum, y: square / sum };
    let beyond = beta::regularised(df / 2.0, 0.5, at) / 2.0;
    if t < 0.0 { 1.0 - beyond } else { beyond }
}

/// The `t` that a Student t variable with `df` degrees of freedom exceeds with probability `tail`.
///
/// `tail` is above 0 and below 1, `df` above 0: 0.025 and 9 give 2.262, the factor of a 95 % interval from 10 values.
/// Not a number outside this range.
#[must_use]
pub fn quantile(tail: f64, df: f64) -> f64 {
    if df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    by_tail(tail, |t| self::tail(t, df))
}

/// The probability that a standard normal variable exceeds `z`.
#[must_use]
pub fn normal_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - normal_tail(-z);
    }
    let density = (-z * z / 2.0).exp() / TAU.sqrt();
    if z < 3.0 { 0.5 - density * odd_series(z) } else { density / mills_fraction(z) }
}

/// The `z` that a standard normal variable exceeds with probability `tail`: 0.025 gives 1.95996.
///
/// `tail` is above 0 and below 1; not a number outside.
#[must_use]
pub fn normal_quantile(tail: f64) -> f64 {
    by_tail(tail, normal_tail)
}

/// Inverts the upper tail of a distribution that is symmetric about 0.
fn by_tail(tail: f64, of: impl Fn(f64) -> f64) -> f64 {
    if !(tail > 0.0 && tail < 1.0) {
        return f64::NAN;
    }
    if tail > 0.5 {
        return -by_tail(1.0 - tail, of);
    }
    if tail == 0.5 {
        return 0.0;
    }
    let mut high = 1.0;
    while of(high) > tail && high < f64::MAX / 2.0 {
        high *= 2.0;
    }
    beta::bisect(0.0, high, |t| of(t) > tail)
}

/// `z + z^3/3 + z^5/15 + ...`: what the density is multiplied with to give the probability between 0 and `z`.
fn odd_series(z: f64) -> f64 {
    let (mut sum, mut term) = (z, z);
    for odd in (3..).step_by(2) {
        term *= z * z / f64::from(odd);
        let next = sum + term;
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// Density over tail, `z + 1/(z + 2/(z + 3/(z + ...)))`, from the inside out; for `z` of 3 and more.
fn mills_fraction(z: f64) -> f64 {
    (1..=150).rev().fold(z, |inner, k| z + f64::from(k) / inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    fn near(ours: f64, reference: f64, relative: f64) {
        assert!((ours - reference).abs() <= relative * reference.abs(), "{ours} is not {reference}");
    }

    /// References: mpmath at 40 digits.
    #[test]
    fn student_quantiles_are_those_of_the_tables() {
        for (tail, df, t) in REFERENCE_T {
            near(quantile(tail, df), t, 1e-11);
        }
    }

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        for (tail, z) in REFERENCE_Z {
            near(normal_quantile(tail), z, 1e-12);
            near(normal_tail(z), tail, 1e-12);
        }
        for (tail, z) in &REFERENCE_Z[..7] {
            near(normal_quantile(1.0 - tail), -z, 1e-12);
            near(normal_tail(-z), 1.0 - tail, 1e-14);
        }
        assert_eq!(normal_quantile(0.5), 0.0);
    }

    /// Closed forms: df 1 is Cauchy, df 2 is `t / sqrt(2 + t^2)`.
    #[test]
    fn one_and_two_degrees_of_freedom_have_closed_forms() {
        let mut stream = rng::stream(1, rng::Purpose::Choice, 0);
        for _ in 0..500 {
            let t = 40.0 * rng::unit(&mut stream) - 20.0;
            near(tail(t, 1.0), 0.5 - t.atan() / std::f64::consts::PI, 1e-10);
            near(tail(t, 2.0), 0.5 - t / (2.0 + t * t).sqrt() / 2.0, 1e-10);
        }
    }

    #[test]
    fn a_quantile_is_what_its_tail_says() {
        let mut stream = rng::stream(2, rng::Purpose::Choice, 0);
        for _ in 0..300 {
            let df = 0.5 + 200.0 * rng::unit(&mut stream);
            let wanted = rng::unit(&mut stream).max(1e-12);
            near(tail(quantile(wanted, df), df), wanted, 1e-10);
            near(normal_tail(normal_quantile(wanted)), wanted, 1e-11);
        }
    }

    #[test]
    fn the_two_forms_of_the_normal_tail_meet() {
        near(normal_tail(3.0 - 1e-13), normal_tail(3.0), 1e-11);
        near(quantile(0.025, 1e9), normal_quantile(0.025), 1e-8);
    }

    #[test]
    fn what_has_no_quantile_is_no_number() {
        for tail in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(quantile(tail, 3.0).is_nan() && normal_quantile(tail).is_nan());
        }
        assert!(quantile(0.1, 0.0).is_nan() && quantile(0.1, f64::NAN).is_nan());
        assert_eq!((tail(f64::INFINITY, 3.0), tail(f64::NEG_INFINITY, 3.0)), (0.0, 1.0));
    }

    const REFERENCE_T: [(f64, f64, f64); 15] = [
        (0.025, 1.0, 12.706204736174705),
        (0.025, 2.0, 4.302652729749464),
        (0.025, 4.0, 2.7764451051977943),
        (0.025, 9.0, 2.2621571627982053),
        (0.025, 13.5, 2.1522631393099103),
        (0.025, 19.0, 2.0930240544083096),
        (0.025, 120.0, 1.979930405082441),
        (0.05, 9.0, 1.8331129326562372),
        (0.005, 9.0, 3.2498355415921263),
        (0.05, 4.0, 2.1318467863266504),
        (0.005, 4.0, 4.604094871349993),
        (0.0005, 30.0, 3.645958635042022),
        (0.1, 1000.0, 1.2823987214609245),
        (1e-10, 5.0, 156.8255927088943),
        (0.4, 7.0, 0.2631668613520228),
    ];

    const REFERENCE_Z: [(f64, f64); 10] = [
        (0.1, 1.2815515655446004),
        (0.05, 1.6448536269514726),
        (0.025, 1.9599639845400543),
        (0.01, 2.326347874040841),
        (0.005, 2.575829303548901),
        (0.001, 3.0902323061678136),
        (0.4, 0.2533471031357997),
        (1e-06, 4.753424308822899),
        (1e-12, 7.034483825301132),
        (1e-100, 21.273453560965326),
    ];
}
