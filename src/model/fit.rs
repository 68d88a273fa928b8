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
//! it, or do not. Where the base is small, request rates hardly tell slots; but TPOT of any level lies between a step
//! of its batch and that with a prompt of each other sequence, and what does not is counted as an error.
//!
//! What the numbers do not tell is said and not guessed: costs that could stand in for each other are an error, the
//! others come with their standard error, and slots with those that fit nearly as well. Pure; where the points come
//! from is not its business.

mod linear;

use self::linear::{Solved, error, solve, undetermined};
use super::settings::{Batching, Cost};
use crate::stats::sort;

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
    /// Standard errors of the three, ms, as far as the errors of the fit tell: infinite if there are no more numbers
    /// than costs, 0 for a cost that is [held at zero](Fit::at_zero). What the model lacks may be worth more.
    pub deviation: Cost,
    /// Costs that would have come out below zero.
    pub at_zero: Terms,
    /// Its slots; `None` if no level filled them.
    pub slots: Option<u32>,
    /// Other slots that explain the points nearly as well, in rising order, `None` last.
    pub slots_as_good: Vec<Option<u32>>,
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

/// Some of the three costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// [`Cost::base_ms`].
    pub base: bool,
    /// [`Cost::per_sequence_ms`].
    pub sequence: bool,
    /// [`Cost::per_prefill_token_ms`].
    pub prefill: bool,
}

/// Why nothing can be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The point at this place of the list, from 0, has a number that is out of range or not a number.
    BadPoint(usize),
    /// These costs could stand in for each other, or show nowhere if it is one. What a step costs by itself and per
    /// sequence shows in levels of different numbers of users; what prompts cost in a level of one user with answers of
    /// several tokens, or in prompts of different lengths.
    Undetermined(Terms),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::BadPoint(place) => write!(f, "level {} has no usable numbers", place + 1),
            Error::Undetermined(terms) => write!(f, "the levels do not tell the cost {terms}"),
        }
    }
}

impl std::error::Error for Error {}

impl Terms {
    const ALL: Terms = Terms { base: true, sequence: true, prefill: true };

    fn of(which: [bool; 3]) -> Terms {
        let [base, sequence, prefill] = which;
        Terms { base, sequence, prefill }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self == Terms::default()
    }
}

impl std::fmt::Display for Terms {
    /// `of a step from that of a sequence` or the like.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all =
            [(self.base, "of a step"), (self.sequence, "of a sequence"), (self.prefill, "of a prompt token")];
        let named: Vec<&str> = all.into_iter().filter_map(|(is_one, name)| is_one.then_some(name)).collect();
        f.write_str(&named.join(" from that "))
    }
}

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
    let (best, slots_as_good) = choose(points).ok_or(Error::Undetermined(Terms::ALL))?;
    let rows = best.guess.rows(points);
    let open = undetermined(&rows);
    if !open.is_empty() {
        return Err(Error::Undetermined(open));
    }
    let Solved { costs, used, spread } = best.solved;
    let freedom = rows.len() - used.iter().filter(|used| **used).count();
    let squares = error(&rows, costs);
    let sigma = if freedom == 0 { f64::INFINITY } else { (squares / freedom as f64).sqrt() };
    Ok(Fit {
        cost: cost(costs),
        deviation: cost(std::array::from_fn(|k| if used[k] { sigma * spread[k] } else { 0.0 })),
        at_zero: Terms::of(used.map(|used| !used)),
        slots: best.guess.slots,
        slots_as_good,
        error_rms: (squares / rows.len() as f64).sqrt(),
        residuals: rows.iter().map(|row| row.residual(costs)).collect(),
    })
}

fn cost([base_ms, per_sequence_ms, per_prefill_token_ms]: [f64; 3]) -> Cost {
    Cost { base_ms, per_sequence_ms, per_prefill_token_ms }
}

/// The guess that explains the points best, and other slots that do nearly as well.
fn choose(points: &[Point]) -> Option<(Tried, Vec<Option<u32>>)> {
    let most = points.iter().map(|point| point.users).max().unwrap_or(0);
    // From the simplest on: slots that are never filled, users who are always in time. A tie leaves it at that.
    let slots = std::iter::once(None).chain((1..most.min(SLOTS_TRIED)).rev().map(Some));
    let guesses = slots.flat_map(|slots| [false, true].map(|misses| Guess { slots, misses }));
    let tried: Vec<Tried> = guesses.filter_map(|guess| guess.tried(points)).collect();
    let better = |best: Tried, next: &Tried| match next.error < best.error * (1.0 - TIE) - TIE {
        true => *next,
        false => best,
    };
    let simplest = tried.first()?;
    let never_filled = tried.iter().filter(|tried| tried.guess.slots.is_none()).fold(*simplest, better);
    let mut best = tried.iter().fold(*simplest, better);
    // Full slots are one thing more that may have been: only if they explain what nothing else does.
    if never_filled.error <= as_good_as(&best, points) {
        best = never_filled;
    }
    let enough = as_good_as(&best, points);
    Some((best, slots_within(&tried, &best, enough)))
}

/// The error up to which other slots are as good as the best: by Fisher's test nine out of ten errors that chance makes
/// of it are below. Few numbers may fit by chance; of them a difference within their blur is none. Of many, errors may
/// come from what the model lacks, which is no chance: a quarter more is then no difference either.
fn as_good_as(best: &Tried, points: &[Point]) -> f64 {
    let rows = best.guess.rows(points).len();
    let bounds = points.iter().filter(|point| point.has_bounds()).count();
    let freedom = (rows + bounds).saturating_sub(UNKNOWNS).max(1);
    let f = F_90.get(freedom - 1).copied().unwrap_or(F_90_MANY);
    let blur = if freedom < TRUSTED { linear::BLUR } else { 0.0 };
    (best.error * (1.0 + f / freedom as f64).sqrt().max(A_QUARTER_MORE)).hypot(blur)
}

/// Slots other than the best with an error of at most `enough`.
fn slots_within(tried: &[Tried], best: &Tried, enough: f64) -> Vec<Option<u32>> {
    let others = tried.iter().filter(|other| other.guess.slots != best.guess.slots && other.error <= enough);
    let mut slots: Vec<Option<u32>> = others.map(|other| other.guess.slots).collect();
    sort::few_by_key(&mut slots, |slots| slots.unwrap_or(u32::MAX));
    slots.dedup();
    slots
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

    /// Whether its TPOT is not fitted, but has bounds.
    fn has_bounds(&self) -> bool {
        self.users > 1 && self.output_tokens > 1.0
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

/// A guess with the costs that fit it best.
#[derive(Clone, Copy)]
struct Tried {
    guess: Guess,
    solved: Solved,
    /// Root of the mean square of the relative errors, TPOT out of its bounds included.
    error: f64,
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

    /// Its best costs; `None` if nothing can be said for lack of numbers.
    fn tried(self, points: &[Point]) -> Option<Tried> {
        let rows = self.rows(points);
        let solved = solve(&rows)?;
        let bounds: f64 = points.iter().map(|point| self.out_of_bounds(point, solved.costs).powi(2)).sum();
        let squares = error(&rows, solved.costs) + bounds;
        Some(Tried { guess: self, solved, error: (squares / rows.len() as f64).sqrt() })
    }

    /// By which share TPOT lies outside of what it can be: at least a step of the batch, at most that and a prompt for
    /// each sequence of it in the course of an answer. Of a single user it is fitted itself.
    fn out_of_bounds(self, point: &Point, costs: [f64; 3]) -> f64 {
        let Point { prompt_tokens, output_tokens, tpot_ms, .. } = *point;
        if !point.has_bounds() {
            return 0.0;
        }
        let [base, sequence, prefill] = costs;
        let batch = self.batch(point);
        let least = base + sequence * batch;
        let most = least + prefill * prompt_tokens * batch / (output_tokens - 1.0);
        (least / tpot_ms - 1.0).max(1.0 - most / tpot_ms).max(0.0)
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

/// More slots than any measured server has; beyond, they count as not filled.
const SLOTS_TRIED: u32 = 1 << 16;
/// Degrees of freedom from which on the errors of a fit say how exact its numbers are.
const TRUSTED: usize = 5;
const A_QUARTER_MORE: f64 = 1.25;
/// Three costs and the slots.
const UNKNOWNS: usize = 4;
/// Quantile 0.9 of Fisher's distribution for one degree of freedom over 1, 2, ... of them, and over many.
const F_90: [f64; 10] = [39.86, 8.53, 5.54, 4.54, 4.06, 3.78, 3.59, 3.46, 3.36, 3.29];
const F_90_MANY: f64 = 2.71;
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
        let seq_prefill = Terms { sequence: true, prefill: true, ..Terms::default() };
        assert_eq!(fit(&points), Err(Error::Undetermined(seq_prefill)));
        points.push(Point { prompt_tokens: 0.0, ttft_ms: 12.0, tpot_ms: 12.0, ..points[1] });
        assert_cost(&fit(&points).unwrap(), COST, 1e-9);
    }

    #[test]
    fn what_is_not_told_apart_is_an_error() {
        assert_eq!(fit(&[]), Err(Error::Undetermined(Terms::ALL)));
        let of_steps = Terms { base: true, sequence: true, ..Terms::default() };
        assert_eq!(fit(&points(COST, 16, &[1])), Err(Error::Undetermined(of_steps)));
        let mut points = points(COST, 16, &[1, 4]);
        points[1].tpot_ms = f64::NAN;
        assert_eq!(fit(&points), Err(Error::BadPoint(1)));
        assert_eq!(Error::BadPoint(1).to_string(), "level 2 has no usable numbers");
    }

    #[test]
    fn answers_of_one_token_do_not_tell_a_sequence_from_its_prompt_however_the_prompts_scatter() {
        let of = |scatter: f64| {
            let all = [1, 4, 16].iter().zip([1.0, 1.0 + scatter, 1.0 - scatter]);
            let points: Vec<Point> = all
                .map(|(users, prompts)| {
                    let (batch, prompt_tokens) = (f64::from(*users), 200.0 * prompts);
                    let step_ms = COST.base_ms
                        + (COST.per_sequence_ms + COST.per_prefill_token_ms * prompt_tokens) * batch;
                    Point {
                        users: *users,
                        prompt_tokens,
                        output_tokens: 1.0,
                        ttft_ms: step_ms,
                        tpot_ms: 0.0,
                        request_rate: None,
                    }
                })
                .collect();
            fit(&points)
        };
        let open = Terms { sequence: true, prefill: true, ..Terms::default() };
        for scatter in [0.0, 0.002, 0.01] {
            assert_eq!(of(scatter), Err(Error::Undetermined(open)), "{scatter}");
        }
        // Prompts of clearly different lengths do tell.
        assert_cost(&of(0.5).unwrap(), COST, 1e-9);
        assert_eq!(
            Error::Undetermined(open).to_string(),
            "the levels do not tell the cost of a sequence from that of a prompt token"
        );
    }

    #[test]
    fn slots_show_in_tpot_where_the_base_is_nothing_and_rates_are_the_same_for_any() {
        // As of a server that computes on one core: a batch is as good as its sequences one after the other.
        let cost = Cost { base_ms: 0.0, per_sequence_ms: 7.5, per_prefill_token_ms: 0.5 };
        let fitted = fit(&points(cost, 4, &[1, 2, 4, 8])).unwrap();
        assert_eq!(fitted.slots, Some(4));
        assert_cost(&fitted, cost, 1e-9);
        assert_eq!(fit(&points(cost, 16, &[1, 2, 4, 8])).unwrap().slots, None);
    }

    #[test]
    fn slots_that_would_do_as_well_are_named() {
        let of = |slots, users: &[u32]| {
            let fitted = fit(&points(COST, slots, users)).unwrap();
            (fitted.slots, fitted.slots_as_good)
        };
        // Numbers that are right to a percent cannot tell these apart.
        assert_eq!(of(16, &[1, 4, 16]), (None, vec![Some(14), Some(15)]));
        // Many that agree are more exact than that.
        assert_eq!(of(16, &[1, 2, 4, 8, 16, 32, 64]), (Some(16), vec![]));
        // In a level that is full twice over TPOT is that of half of its users.
        assert_eq!(of(8, &[1, 16]), (Some(8), vec![]));
    }

    #[test]
    fn a_deviation_is_that_of_the_errors() {
        let exact = fit(&points(COST, 16, &[1, 4, 16, 64])).unwrap();
        assert!(exact.deviation.base_ms < 1e-9 && exact.at_zero.is_empty());
        let mut points = points(COST, 16, &[1, 4, 16]);
        for (point, error) in points.iter_mut().zip([1.01, 0.99, 1.01]) {
            (point.ttft_ms, point.tpot_ms) = (point.ttft_ms * error, point.tpot_ms * error);
        }
        let blurred = fit(&points).unwrap();
        // Slots of fifteen would explain the blur a little better.
        assert_eq!((blurred.slots, blurred.slots_as_good.last()), (None, Some(&Some(15))), "{blurred:?}");
        let off = (blurred.cost.base_ms - COST.base_ms).abs();
        assert!(blurred.deviation.base_ms > off / 3.0 && blurred.deviation.base_ms < 1.0, "{blurred:?}");
    }

    #[test]
    fn no_cost_is_below_zero() {
        // A slightly falling TPOT would give a negative cost per sequence.
        let mut points = points(Cost { per_sequence_ms: 0.0, ..COST }, 64, &[1, 2, 4, 8]);
        for point in &mut points {
            point.tpot_ms *= 1.0 - 0.001 * f64::from(point.users);
        }
        let fitted = fit(&points).unwrap();
        assert_eq!((fitted.cost.per_sequence_ms, fitted.deviation.per_sequence_ms), (0.0, 0.0));
        assert_eq!(fitted.at_zero, Terms { sequence: true, ..Terms::default() });
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
