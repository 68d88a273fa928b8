//! The regularised incomplete beta function, on which the tails of Student's t and of the binomial rest.
//!
//! Our own because of the sizes: a level has up to 10^8 requests. The crates that we looked at stop their continued
//! fraction after 140 terms or change to an 18-point quadrature, and take differences of log-gammas of 10^9, which
//! leaves 7 digits. Here the factor before the fraction comes from the deviance of the point from the mean and from
//! the errors of Stirling's formula (Loader 2000), none of which is large, and the fraction runs until it stands.

use std::f64::consts::TAU;

/// A point in `[0, 1]` with its complement, so that neither loses digits near 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    /// `1 - x`.
    pub(super) y: f64,
}

impl Point {
    pub(super) fn of(x: f64) -> Point {
        Point { x, y: 1.0 - x }
    }

    fn flipped(self) -> Point {
        Point { x: self.y, y: self.x }
    }
}

/// `I_x(a, b)`: the probability that a beta variable with `a, b > 0` is at most `x`.
///
/// The relative error is about 10^-12 up to `a + b` = 10^6 and below 10^-10 up to 10^8, where the rounding of `x` alone
/// makes as much; below 10^-300 it is 0. Takes about a third of `sqrt(a + b)` steps near the mean, a few dozen
/// elsewhere.
pub(super) fn regularised(a: f64, b: f64, at: Point) -> f64 {
    if at.x <= 0.0 {
        return 0.0;
    }
    if at.y <= 0.0 {
        return 1.0;
    }
    // The fraction converges on the near side of the mean; beyond it the other tail is taken.
    if at.x * (a + b + 2.0) < a + 1.0 {
        (scale(a, b, at) * fraction(a, b, at) / a).min(1.0)
    } else {
        (1.0 - scale(b, a, at.flipped()) * fraction(b, a, at.flipped()) / b).max(0.0)
    }
}

/// The `x` with `I_x(a, b) = p`, by bisection down to neighbouring numbers.
pub(super) fn quantile(a: f64, b: f64, p: f64) -> f64 {
    bisect(0.0, 1.0, |x| regularised(a, b, Point::of(x)) < p)
}

/// Where `below` turns from true to false between `low` and `high`, as near as numbers are.
pub(super) fn bisect(mut low: f64, mut high: f64, below: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = low + (high - low) / 2.0;
        // Neighbours have no number between them; a width of 10^-16 of the value adds nothing to what is known.
        if middle <= low || middle >= high || high - low <= f64::EPSILON * middle.abs() {
            return middle;
        }
        if below(middle) { low = middle } else { high = middle }
    }
}

/// `x^a y^b / B(a, b)`.
fn scale(a: f64, b: f64, at: Point) -> f64 {
    let n = a + b;
    let stirling = stirling_error(n) - stirling_error(a) - stirling_error(b);
    let deviance = deviance(a, n * at.x) + deviance(b, n * at.y);
    // In two square roots, because a * b may be beyond what a number holds when one of them is tiny.
    (a / TAU).sqrt() * (b / n).sqrt() * (stirling - deviance).exp()
}

/// The continued fraction of `I_x(a, b)` (DLMF 8.17.22) by Lentz's method.
fn fraction(a: f64, b: f64, at: Point) -> f64 {
    let n = a + b;
    // Far more than it takes: the fraction stands after about a third of sqrt(n) terms.
    let terms_max = 200.0 + 10.0 * n.sqrt();
    let mut numerators = 1.0;
    let mut denominators = 1.0 / nonzero(1.0 - n * at.x / (a + 1.0));
    let mut value = denominators;
    let mut m = 1.0;
    while m < terms_max {
        let even = m * (b - m) * at.x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (n + m) * at.x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            denominators = 1.0 / nonzero(1.0 + term * denominators);
            numerators = nonzero(1.0 + term / numerators);
            change = denominators * numerators;
            value *= change;
        }
        if (change - 1.0).abs() < f64::EPSILON {
            break;
        }
        m += 1.0;
    }
    value
}

fn nonzero(value: f64) -> f64 {
    if value.abs() < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { value }
}

/// `x ln(x / mean) + mean - x` without cancellation where they are near each other.
fn deviance(x: f64, mean: f64) -> f64 {
    let difference = x - mean;
    if difference.abs() >= 0.1 * (x + mean) {
        return x * (x / mean).ln() - difference;
    }
    // With v = (x - mean) / (x + mean): ln(x / mean) = 2 atanh v, summed as its series.
    let v = difference / (x + mean);
    let mut sum = difference * v;
    let mut power = 2.0 * x * v;
    for odd in (3..).step_by(2) {
        power *= v * v;
        let next = sum + power / f64::from(odd);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// `ln Gamma(z)` minus Stirling's `(z - 1/2) ln z - z + ln(2 pi) / 2`, for `z > 0`.
fn stirling_error(z: f64) -> f64 {
    let (mut z, mut error) = (z, 0.0);
    // From here on the series has all digits; below, one step of the recurrence at a time.
    while z < 16.0 {
        error += (z + 0.5) * (1.0 / z).ln_1p() - 1.0;
        z += 1.0;
    }
    let square = 1.0 / (z * z);
    let series = [1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0];
    error + series.into_iter().fold(0.0, |sum, factor| sum * square + factor) / z
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    /// References: mpmath at 50 digits.
    #[test]
    fn values_are_those_of_a_computation_in_fifty_digits() {
        for (a, b, x, reference) in REFERENCES {
            let ours = regularised(a, b, Point::of(x));
            assert!((ours / reference - 1.0).abs() < 1e-12, "{a} {b} {x}: {ours} {reference}");
        }
    }

    const REFERENCES: [(f64, f64, f64, f64); 10] = [
        (0.5, 0.5, 0.3, 0.36901011956554536),
        (0.001, 4.0, 1e-05, 0.9903664010338336),
        (2.5, 0.01, 0.9, 0.011678127164992934),
        (15.6, 2.7, 0.95, 0.9170370386001095),
        (15.6, 2.7, 0.5, 0.0005453149558360675),
        (300.25, 40.5, 0.9, 0.8613258621154088),
        (100000.0, 100000.0, 0.501, 0.8144532554424433),
        (45000.0, 0.5, 0.9999, 0.002699205174352184),
        (1e-06, 1e-06, 0.5, 0.5),
        (3.0, 10000000.0, 1e-07, 0.08030142466235511),
    ];

    /// `I_x(a, b) = 1 - I_y(b, a)`, and it grows with x, also where one tail takes over from the other.
    #[test]
    fn both_tails_make_one_and_it_never_falls() {
        let mut stream = rng::stream(1, rng::Purpose::Choice, 0);
        for _ in 0..200 {
            let [a, b] = [0, 0].map(|_: i32| (12.0 * rng::unit(&mut stream) - 4.0).exp());
            let values: Vec<f64> = (0..=40)
                .map(|i| {
                    let at = Point::of(f64::from(i) / 40.0);
                    let (ours, other) = (regularised(a, b, at), regularised(b, a, at.flipped()));
                    assert!((ours + other - 1.0).abs() < 1e-12, "{a} {b} {at:?}: {ours} {other}");
                    ours
                })
                .collect();
            assert!(values.windows(2).all(|pair| pair[1] >= pair[0] - 1e-14), "{a} {b}");
            assert_eq!((values[0], values[40]), (0.0, 1.0));
        }
    }

    #[test]
    fn a_quantile_is_where_its_probability_is() {
        let mut stream = rng::stream(2, rng::Purpose::Choice, 0);
        for _ in 0..200 {
            let (a, b) = (0.5 + 300.0 * rng::unit(&mut stream), 0.5 + 30.0 * rng::unit(&mut stream));
            let p = rng::unit(&mut stream);
            let x = quantile(a, b, p);
            assert!((regularised(a, b, Point::of(x)) - p).abs() < 1e-11, "{a} {b} {p}");
        }
    }
}
