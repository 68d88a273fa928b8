//! From a measured sweep to the server that would give it: base, per-sequence and prefill cost, and slots.
//!
//! It rests on what holds in every closed loop without think time, whether its users go in step or not. A step of `b`
//! sequences costs `base + sequence * b` and what it computes of prompts; it yields `b` tokens; each request takes
//! `n` tokens and brings a prompt of `p` tokens. So the server spends, per request,
//!
//! ```text
//! 1 / request rate = base * n / b + sequence * n + prefill * p,      b = min(users, slots)
//! ```
//!
//! and at a single user, where nobody else is in the steps, TPOT is `base + sequence` and TTFT that and `prefill * p`
//! more. All of this is linear in the three costs: they come from least squares of relative errors, none below zero.
//! Slots are not linear and come from trying: every number, and that users who come just after a step has begun miss
//! it, or do not. Pure; where the points come from is not its business.

use super::settings::{Batching, Cost};

/// One level of a closed loop without think time, as it was measured. Means over its requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Users; at least 1.
    pub users: u32,
    /// Tokens of a prompt that had to be computed: without those from a prefix cache. At least 0.
    pub prompt_tokens: f64,
    /// Tokens of an answer; at least 1.
    pub output_tokens: f64,
    /// TTFT.
    pub ttft_ms: f64,
    /// TPOT; not looked at for answers of one token.
    pub tpot_ms: f64,
    /// Requests finished per second. If absent, users over E2E stand in (Little's law), with E2E = TTFT + TPOT times
    /// the tokens after the first: too high by what the level took to fill.
    pub request_rate: Option<f64>,
}

/// A server and how well it explains what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// What its steps cost.
    pub cost: Cost,
    /// Its slots; `None` if no level filled them.
    pub slots: Option<u32>,
    /// Root of the mean square of the relative errors.
    pub error_rms: f64,
    /// Every number that was fitted, in the order of the points.
    pub residuals: Vec<Residual>,
}

/// One measured number beside what the fitted server gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Residual {
    /// Users of its level.
    pub users: u32,
    /// What was measured.
    pub quantity: Quantity,
    /// Its value.
    pub measured_ms: f64,
    /// The value of the fitted server.
    pub fitted_ms: f64,
}

/// What a fit explains, ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Time of the server per request: one over the request rate.
    PerRequest,
    /// TPOT of a single user.
    Tpot,
    /// TTFT of a single user.
    Ttft,
}

/// Why nothing can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The point at this place of the list, from 0, has a number that is out of range or not a number.
    BadPoint(usize),
    /// The points leave a cost open. What a step costs by itself and per sequence shows in levels of different
    /// numbers of users; what prompts cost in a level of one user, or in prompts of different lengths.
    Undetermined,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::BadPoint(place) => write!(f, "level {} has no usable numbers", place + 1),
            Error::Undetermined => f.write_str(
                "the levels do not tell the costs apart; measure at one user and at several more numbers of users",
            ),
        }
    }
}

impl std::error::Error for Error {}

impl Fit {
    /// A server of these costs. Slots that no level filled are as many as it takes.
    #[must_use]
    pub fn batching(&self) -> Batching {
        Batching { slots: self.slots.unwrap_or(u32::MAX), cost: self.cost, ..Batching::default() }
    }
}

/// The server that explains the points best.
///
/// # Errors
/// A point has no usable numbers, or the points leave a cost open.
pub fn fit(points: &[Point]) -> Result<Fit, Error> {
    if let Some(place) = points.iter().position(|point| !point.is_usable()) {
        return Err(Error::BadPoint(place));
    }
    let most = points.iter().map(|point| point.users).max().unwrap_or(0);
    let mut best: Option<(f64, Guess, [f64; 3])> = None;
    // From the simplest on: slots that are never filled, users who are always in time. A tie leaves it at that.
    let slots = std::iter::once(None).chain((1..most.min(SLOTS_TRIED)).rev().map(Some));
    for guess in slots.flat_map(|slots| [false, true].map(|misses| Guess { slots, misses })) {
        let Some((costs, error)) = solve(&guess.rows(points)) else { continue };
        if best.is_none_or(|(least, ..)| error < least * (1.0 - TIE) - TIE * TIE) {
            best = Some((error, guess, costs));
        }
    }
    let (error, guess, costs) = best.ok_or(Error::Undetermined)?;
    let rows = guess.rows(points);
    let [base_ms, per_sequence_ms, per_prefill_token_ms] = costs;
    Ok(Fit {
        cost: Cost { base_ms, per_sequence_ms, per_prefill_token_ms },
        slots: guess.slots,
        error_rms: (error / rows.len() as f64).sqrt(),
        residuals: rows.iter().map(|row| row.residual(costs)).collect(),
    })
}

impl Point {
    fn is_usable(&self) -> bool {
        let Point { prompt_tokens, output_tokens, ttft_ms, tpot_ms, request_rate, .. } = *self;
        let positive = |value: f64| value.is_finite() && value > 0.0;
        self.users >= 1
            && prompt_tokens.is_finite()
            && prompt_tokens >= 0.0
            && output_tokens.is_finite()
            && output_tokens >= 1.0
            && positive(ttft_ms)
            && (output_tokens == 1.0 || positive(tpot_ms))
            && request_rate.is_none_or(positive)
    }

    fn per_request_ms(&self) -> f64 {
        let later = self.output_tokens - 1.0;
        let e2e_ms = self.ttft_ms + if later > 0.0 { later * self.tpot_ms } else { 0.0 };
        self.request_rate.map_or(e2e_ms / f64::from(self.users), |rate| 1000.0 / rate)
    }
}

/// What is not linear.
#[derive(Clone, Copy)]
struct Guess {
    slots: Option<u32>,
    /// A user's next request comes just after a step has begun and waits for the next one, as it does over a network;
    /// that leaves its slot empty for a step. At one user the server waits for the user instead, and while others
    /// wait, they take the slot.
    misses: bool,
}

/// One linear equation: `measured_ms` is about the sum of the costs times their factors.
struct Row {
    users: u32,
    quantity: Quantity,
    measured_ms: f64,
    factors: [f64; 3],
}

impl Guess {
    fn rows(self, points: &[Point]) -> Vec<Row> {
        let mut rows = Vec::new();
        for point in points {
            let Point { users, prompt_tokens, output_tokens, ttft_ms, tpot_ms, .. } = *point;
            let mut row = |quantity, measured_ms, factors| {
                rows.push(Row { users, quantity, measured_ms, factors });
            };
            let per_batch = output_tokens / self.batch(point);
            row(Quantity::PerRequest, point.per_request_ms(), [per_batch, output_tokens, prompt_tokens]);
            if users == 1 {
                row(Quantity::Ttft, ttft_ms, [1.0, 1.0, prompt_tokens]);
                if output_tokens > 1.0 {
                    row(Quantity::Tpot, tpot_ms, [1.0, 1.0, 0.0]);
                }
            }
        }
        rows
    }

    /// Mean number of sequences in a step.
    fn batch(self, point: &Point) -> f64 {
        let users = f64::from(point.users);
        match self.slots {
            Some(slots) if slots < point.users => f64::from(slots),
            _ if self.misses && point.users > 1 => users * point.output_tokens / (point.output_tokens + 1.0),
            _ => users,
        }
    }
}

impl Row {
    fn fitted_ms(&self, costs: [f64; 3]) -> f64 {
        self.factors.iter().zip(costs).map(|(factor, cost)| factor * cost).sum()
    }

    fn residual(&self, costs: [f64; 3]) -> Residual {
        let Row { users, quantity, measured_ms, .. } = *self;
        Residual { users, quantity, measured_ms, fitted_ms: self.fitted_ms(costs) }
    }
}

/// The costs, none below zero, with the least sum of squares of relative errors, and that sum; `None` if the rows do
/// not determine them.
fn solve(rows: &[Row]) -> Option<([f64; 3], f64)> {
    let free = least_squares(rows, [true; 3])?;
    if free.iter().all(|cost| *cost >= 0.0) {
        return Some((free, error(rows, free)));
    }
    // Three costs: the best of all ways to leave some of them out is the best with none below zero.
    let ways = (1..7_u8).map(|way| [way & 1 != 0, way & 2 != 0, way & 4 != 0]);
    ways.filter_map(|way| least_squares(rows, way))
        .filter(|costs| costs.iter().all(|cost| *cost >= 0.0))
        .map(|costs| (costs, error(rows, costs)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
}

fn error(rows: &[Row], costs: [f64; 3]) -> f64 {
    rows.iter().map(|row| (row.fitted_ms(costs) / row.measured_ms - 1.0).powi(2)).sum()
}

/// Least squares of the relative errors in the costs that are `used`; the others are 0. By Gram-Schmidt, twice over,
/// on columns of length 1. `None` if a column is as good as a sum of those before it.
fn least_squares(rows: &[Row], used: [bool; 3]) -> Option<[f64; 3]> {
    let used: Vec<usize> = (0..3).filter(|column| used[*column]).collect();
    let column =
        |column: usize| -> Vec<f64> { rows.iter().map(|r| r.factors[column] / r.measured_ms).collect() };
    let mut basis: Vec<Vec<f64>> = Vec::new();
    // Upper triangle: how column k is made of the first k + 1 of the basis.
    let mut triangle = [[0.0; 3]; 3];
    let mut lengths = [0.0; 3];
    for (k, &which) in used.iter().enumerate() {
        let mut vector = column(which);
        lengths[k] = dot(&vector, &vector).sqrt();
        vector.iter_mut().for_each(|value| *value /= lengths[k]);
        for _ in 0..2 {
            for (j, unit) in basis.iter().enumerate() {
                let part = dot(unit, &vector);
                triangle[j][k] += part;
                vector.iter_mut().zip(unit).for_each(|(value, unit)| *value -= part * unit);
            }
        }
        let rest = dot(&vector, &vector).sqrt();
        // Not a number where a column is nothing but zeros.
        if rest.is_nan() || rest < DEPENDENT {
            return None;
        }
        triangle[k][k] = rest;
        vector.iter_mut().for_each(|value| *value /= rest);
        basis.push(vector);
    }
    let mut costs = [0.0; 3];
    let mut solution = [0.0; 3];
    for k in (0..used.len()).rev() {
        // The right side is 1 everywhere: each row is divided by what was measured.
        let known: f64 = (k + 1..used.len()).map(|j| triangle[k][j] * solution[j]).sum();
        solution[k] = (basis[k].iter().sum::<f64>() - known) / triangle[k][k];
        costs[used[k]] = solution[k] / lengths[k];
    }
    Some(costs)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// More slots than any measured server has; beyond, they count as not filled.
const SLOTS_TRIED: u32 = 1 << 16;

/// Share of its length that a column must have of its own. What is measured has three or four digits.
const DEPENDENT: f64 = 1e-4;

/// By how much a guess must be better than a simpler one.
const TIE: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    const COST: Cost = Cost { base_ms: 10.0, per_sequence_ms: 0.5, per_prefill_token_ms: 0.05 };

    /// What a server gives whose sequences are all in step: users wait for a slot, prefill in one step, decode.
    fn point(cost: Cost, slots: u32, users: u32) -> Point {
        let (n, p) = (50.0, 200.0);
        let batch = f64::from(users.min(slots));
        let decode_ms = cost.base_ms + cost.per_sequence_ms * batch;
        let prefill_ms = decode_ms + cost.per_prefill_token_ms * p * batch;
        let cycle_ms = prefill_ms + (n - 1.0) * decode_ms;
        let wait_ms = cycle_ms * (f64::from(users) / batch - 1.0);
        Point {
            users,
            prompt_tokens: p,
            output_tokens: n,
            ttft_ms: wait_ms + prefill_ms,
            tpot_ms: decode_ms,
            request_rate: None,
        }
    }

    fn points(cost: Cost, slots: u32, users: &[u32]) -> Vec<Point> {
        users.iter().map(|users| point(cost, slots, *users)).collect()
    }

    #[track_caller]
    fn assert_cost(fit: &Fit, cost: Cost, relative: f64) {
        for (fitted, true_ms) in [
            (fit.cost.base_ms, cost.base_ms),
            (fit.cost.per_sequence_ms, cost.per_sequence_ms),
            (fit.cost.per_prefill_token_ms, cost.per_prefill_token_ms),
        ] {
            assert!((fitted - true_ms).abs() <= relative * true_ms, "{fitted} instead of {true_ms}");
        }
    }

    #[test]
    fn a_server_without_noise_is_found_exactly() {
        let fitted = fit(&points(COST, 16, &[1, 2, 4, 8, 16, 32, 64])).unwrap();
        assert_cost(&fitted, COST, 1e-9);
        assert_eq!(fitted.slots, Some(16));
        assert!(fitted.error_rms < 1e-12);
        assert_eq!(fitted.residuals.len(), 9, "three of one user, one of each other level");
        assert!(fitted.residuals.iter().all(|r| (r.fitted_ms - r.measured_ms).abs() < 1e-9));
        assert_eq!(fitted.batching().slots, 16);
    }

    #[test]
    fn slots_that_no_level_fills_stay_open() {
        for users in [&[1, 4, 8][..], &[1, 8, 16]] {
            let fitted = fit(&points(COST, 16, users)).unwrap();
            assert_cost(&fitted, COST, 1e-9);
            assert_eq!(fitted.slots, None);
        }
    }

    #[test]
    fn slots_between_the_levels_are_found() {
        let fitted = fit(&points(COST, 23, &[1, 4, 16, 64])).unwrap();
        assert_cost(&fitted, COST, 1e-9);
        assert_eq!(fitted.slots, Some(23));
    }

    #[test]
    fn prompts_of_different_lengths_stand_in_for_a_level_of_one_user() {
        let mut points = points(COST, 16, &[2, 4, 8]);
        assert_eq!(fit(&points), Err(Error::Undetermined));
        points.push(Point { prompt_tokens: 0.0, ttft_ms: 12.0, tpot_ms: 12.0, ..points[1] });
        assert_cost(&fit(&points).unwrap(), COST, 1e-9);
    }

    #[test]
    fn what_is_not_told_apart_is_an_error() {
        assert_eq!(fit(&[]), Err(Error::Undetermined));
        assert_eq!(fit(&points(COST, 16, &[1])), Err(Error::Undetermined));
        let mut points = points(COST, 16, &[1, 4]);
        points[1].tpot_ms = f64::NAN;
        assert_eq!(fit(&points), Err(Error::BadPoint(1)));
        assert_eq!(Error::BadPoint(1).to_string(), "level 2 has no usable numbers");
    }

    #[test]
    fn no_cost_is_below_zero() {
        // A slightly falling TPOT would give a negative cost per sequence.
        let mut points = points(Cost { per_sequence_ms: 0.0, ..COST }, 64, &[1, 2, 4, 8]);
        for point in &mut points {
            point.tpot_ms *= 1.0 - 0.001 * f64::from(point.users);
        }
        let fitted = fit(&points).unwrap();
        assert_eq!(fitted.cost.per_sequence_ms, 0.0);
        assert!((fitted.cost.base_ms / 10.0 - 1.0).abs() < 0.02, "{fitted:?}");
        assert!(fitted.error_rms > 1e-4);
    }

    #[test]
    fn a_measured_rate_counts_more_than_what_the_latencies_would_give() {
        let mut points = points(COST, 16, &[1, 4, 16, 64]);
        for point in &mut points {
            point.request_rate = Some(1000.0 / point.per_request_ms());
            if point.users > 1 {
                point.ttft_ms *= 3.0;
            }
        }
        let fitted = fit(&points).unwrap();
        assert_cost(&fitted, COST, 1e-9);
        assert_eq!(fitted.slots, Some(16));
    }
}
