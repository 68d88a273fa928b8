//! A rate over time as its integral: how many requests are expected by a time, and by when so many are.

use super::{Piece, Rate, Shape};

/// The integral of a rate over time and its inverse, each in steps of the logarithm of the number of pieces.
///
/// Times are seconds since the start of a level, numbers are of requests and not whole. Within a piece that begins with
/// the rate `a`, ends with `b` and takes `d` seconds, `t` seconds after its beginning,
///
/// - linear: `a t + (b - a) t^2 / 2 d` requests are expected,
/// - exponential: `a (exp(k t) - 1) / k` with `k = ln(b / a) / d`,
/// - hyperbolic: `-ln(1 - a q t) / q` with `q = (1 / a - 1 / b) / d`.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    pieces: Vec<Placed>,
    /// How long all pieces take, s, and how many requests are expected in them.
    length_s: f64,
    count: f64,
    after: After,
}

/// What follows the last piece.
#[derive(Clone, Copy, Debug, PartialEq)]
enum After {
    /// This rate, for good.
    Hold(f64),
    /// The first piece again.
    Repeat,
}

/// A piece in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Placed {
    piece: Piece,
    /// When it begins.
    start_s: f64,
    /// How many are expected before it.
    before: f64,
    /// And by its end.
    by_end: f64,
}

impl Course {
    /// The course of `rate`, whose numbers are taken as validated.
    #[must_use]
    pub fn of(rate: &Rate) -> Course {
        let series = match rate {
            Rate::Steady(rate) => {
                return Course { pieces: Vec::new(), length_s: 0.0, count: 0.0, after: After::Hold(*rate) };
            }
            Rate::Series(series) => series,
        };
        let (mut start_s, mut before) = (0.0, 0.0);
        let mut pieces = Vec::with_capacity(series.pieces.len());
        for piece in &series.pieces {
            let by_end = before + piece.count_by(piece.length_s);
            pieces.push(Placed { piece: *piece, start_s, before, by_end });
            (start_s, before) = (start_s + piece.length_s, by_end);
        }
        let held = series.pieces.last().map_or(0.0, Piece::end);
        let after = if series.repeat { After::Repeat } else { After::Hold(held) };
        Course { pieces, length_s: start_s, count: before, after }
    }

    /// How many requests are expected in the first `s` seconds.
    #[must_use]
    pub fn count_by(&self, s: f64) -> f64 {
        if s < self.length_s {
            return self.count_within(s);
        }
        let left_s = s - self.length_s;
        match self.after {
            After::Hold(rate) => self.count + rate * left_s,
            After::Repeat => {
                let periods = (s / self.length_s).floor();
                let left_s = (s - periods * self.length_s).clamp(0.0, self.length_s);
                periods * self.count + self.count_within(left_s)
            }
        }
    }

    /// The last time by which no more than `count` requests are expected, s: no arrival lies where the rate is 0. `None`
    /// if there never are more.
    #[must_use]
    pub fn time_of(&self, count: f64) -> Option<f64> {
        if count < self.count {
            return self.time_within(count);
        }
        match self.after {
            After::Hold(rate) => (rate > 0.0).then(|| self.length_s + (count - self.count) / rate),
            After::Repeat => {
                if self.count <= 0.0 {
                    return None;
                }
                let periods = (count / self.count).floor();
                let left = (count - periods * self.count).clamp(0.0, self.count);
                // What lies on the last request of a period belongs to the next one.
                match self.time_within(left) {
                    Some(s) => Some(periods * self.length_s + s),
                    None => Some((periods + 1.0) * self.length_s + self.time_within(0.0)?),
                }
            }
        }
    }

    /// For how long it goes on as its series says before the first piece comes again or the last rate is held, s.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        self.length_s
    }

    fn count_within(&self, s: f64) -> f64 {
        let after = self.pieces.partition_point(|placed| placed.start_s <= s);
        let Some(placed) = after.checked_sub(1).and_then(|place| self.pieces.get(place)) else {
            return 0.0;
        };
        (placed.before + placed.piece.count_by(s - placed.start_s)).min(placed.by_end)
    }

    fn time_within(&self, count: f64) -> Option<f64> {
        let place = self.pieces.partition_point(|placed| placed.by_end <= count);
        let placed = self.pieces.get(place)?;
        Some(placed.start_s + placed.piece.time_of((count - placed.before).max(0.0)))
    }
}

impl Piece {
    /// How many requests are expected in its first `t` seconds.
    fn count_by(&self, t: f64) -> f64 {
        let (a, b, d) = (self.rate, self.end(), self.length_s);
        match self.curve() {
            Curve::Linear => a * t + (b - a) * (t / d) * t / 2.0,
            Curve::Exponential { k } => a * (k * t).exp_m1() / k,
            Curve::Hyperbolic { q } => -ln((b - a) / b * (-t / d), (1.0 - t / d) + a / b * (t / d)) / q,
        }
    }

    /// When `count` are expected, s after its beginning: the inverse, in the form that loses no digits.
    fn time_of(&self, count: f64) -> f64 {
        let (a, b, d) = (self.rate, self.end(), self.length_s);
        let t = match self.curve() {
            Curve::Linear => {
                let root = (a * a + 2.0 * (b - a) * (count / d)).max(0.0).sqrt();
                // Nothing yet of a rate that begins with 0.
                if a + root > 0.0 { 2.0 * count / (a + root) } else { 0.0 }
            }
            Curve::Exponential { k } => (k * count / a).ln_1p() / k,
            Curve::Hyperbolic { q } => -(-q * count).exp_m1() / (a * q),
        };
        // Rounding may have gone a hair beyond the end, where there is no logarithm any more.
        if t.is_nan() { d } else { t.clamp(0.0, d) }
    }

    fn curve(&self) -> Curve {
        let (a, b, d) = (self.rate, self.end(), self.length_s);
        let rise = (b - a) / a;
        // So close to each other all curves are the same line, and the others would lose their digits.
        if rise.abs() < 1e-9 {
            return Curve::Linear;
        }
        match self.shape {
            Shape::Linear => Curve::Linear,
            Shape::Exponential => Curve::Exponential { k: ln(rise, b / a) / d },
            Shape::Hyperbolic => Curve::Hyperbolic { q: rise / (b * d) },
        }
    }
}

/// The logarithm of a number of which also the difference to 1 is known, by whichever has kept its digits.
fn ln(above_one: f64, number: f64) -> f64 {
    if above_one.abs() < 0.5 { above_one.ln_1p() } else { number.ln() }
}

/// The curve of a piece with what it is computed from.
enum Curve {
    Linear,
    Exponential { k: f64 },
    Hyperbolic { q: f64 },
}
