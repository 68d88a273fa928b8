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
/// The relative error is about 10^-12 up to `a + b` = 10^8, of results that are not below 10^-300. Takes a number of
/// steps in the order of `sqrt(a + b)` near the mean and a few dozen elsewhere.
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
    // Far more than it takes: the fraction stands after about 3 sqrt(n) terms.
    let terms_max = 200.0 + 50.0 * n.sqrt();
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
