//! The search for the highest load that holds (METRICS.md section 12).
//!
//! 1. *Bracket*: the load is doubled until one does not hold; where the first does not, it is halved until one does.
//! 2. *Bisect*: between the highest load that held and the lowest that did not, until they are near enough.
//! 3. *Confirm*: once more at the highest that held, with requests of its own, three times as long, at 99 %. If it does
//!    not hold then, one step down, and again.
//! 4. *Settle* the upper end: where the load above the answer stayed undecided, go up to one that fails.
//! 5. On wish, *overload* the server and see whether it *recovers*: whether the same load holds behind that.
//!
//! A quick look ([`Search::within_s`]) begins with one user *alone*, whose numbers stand for themselves. It may leave open
//! whether that load holds: requests of one user are few.
//!
//! A level is decided by bounds on its share of good requests, not by the share itself. One that stays undecided at its
//! greatest length sends the search downwards as one that fails does, but is no end of the answer: near capacity a level
//! of any length is undecided, and capacity may as well lie above it. So the answer reaches from a load that holds to one
//! that fails, and names those between that would not tell. That fewer requests are good at a higher load is what
//! bisection rests on; pairs of loads that contradict it are part of the answer.

use serde::{Deserialize, Serialize};

use crate::api::failure::is_context_limit;
use crate::plan::{Axis, Level, Search};
use crate::run::{Example, Judged, Judgement, LevelResult};
use crate::stats::Confidence;
use crate::stats::sort;
use crate::strategy::{Flow, LimitHeld, Medians};

/// What a load is tried for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// To see what one user has who shares the server with nobody.
    Alone,
    /// To find one load that holds and one that does not.
    Bracket,
    /// To narrow what lies between.
    Bisect,
    /// To be sure of the highest that holds.
    Confirm,
    /// To find one that fails, above what stayed undecided.
    Settle,
    /// To overload the server.
    Overload,
    /// To see whether it has recovered.
    Recovery,
}

/// A load that was tried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The load, in the unit of what is varied.
    pub load: f64,
    /// What for.
    pub stage: Stage,
    /// What became of it; `None` where it was to decide nothing.
    pub judged: Option<Judged>,
    /// Medians of its requests that ended well.
    pub medians: Medians,
    /// How its requests stood to each limit; empty where no records were kept.
    pub limits: Vec<LimitHeld>,
    /// Where their time went; `None` where no records were kept, or nobody came twice, or the load is no number of users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
    /// The server refused requests because they are longer than its context.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub too_long: bool,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// This load.
    Try {
        /// In the unit of what is varied.
        load: f64,
        /// What for.
        stage: Stage,
    },
    /// Nothing: the search is over.
    Over,
}

/// What a search has found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The highest load that holds; `None` if none does.
    pub low: Option<f64>,
    /// The lowest load above it that failed, or, while there is none, that was not seen to hold; `None` if all did.
    pub high: Option<f64>,
    /// How the search ended.
    pub ending: Ending,
    /// How sure it is that `low` holds, a share: 0.99 once it is confirmed.
    pub confidence: f64,
    /// `high` has failed, rather than stayed undecided. True as well where there is none.
    pub decided: bool,
    /// Loads between `low` and `high` that stayed undecided at their greatest length, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<f64>,
    /// Whether `low` held behind an overload; `None` where that was not tried, or not decided.
    pub recovered: Option<bool>,
    /// Pairs of loads of which the lower one was not seen to hold and the higher one did.
    pub non_monotone: Vec<[f64; 2]>,
    /// Requests that were judged in all of it.
    pub requests: u64,
}

/// How a search ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// As it should.
    Found,
    /// Not even the lowest load that was tried holds.
    NothingHolds,
    /// The first load had too few requests, at its greatest length, to show that it holds.
    TooFew,
    /// All loads hold, up to the highest that was to be tried.
    AllHold,
    /// Judged at other limits than it had: what was tried does not bound capacity on both sides.
    NotTried,
    /// Before its end: by the user, for lack of time, or by a fault.
    BrokenOff,
}

impl Trial {
    /// What became of `load`, whose limits are still to be looked at.
    #[must_use]
    pub fn of(load: f64, stage: Stage, result: &LevelResult) -> Trial {
        let refused = |example: &Example| example.outcome.is_failure() && is_context_limit(&example.message);
        Trial {
            load,
            stage,
            judged: result.judged,
            medians: Medians::of(&result.tally),
            limits: Vec::new(),
            flow: None,
            too_long: result.examples.iter().any(refused),
        }
    }

    /// Whether the load was seen to hold.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.judged.is_some_and(|judged| judged.outcome == Judgement::Pass)
    }

    fn is_undecided(&self) -> bool {
        self.judged.is_some_and(|judged| judged.outcome == Judgement::Undecided)
    }

    /// Whether it was to tell something of capacity, and whether it is known not to hold.
    fn bounds(&self) -> bool {
        self.judged.is_some() && !matches!(self.stage, Stage::Overload | Stage::Recovery)
    }

    fn fails(&self) -> bool {
        self.bounds() && !self.holds() && !self.is_undecided()
    }
}

/// What to do behind `trials`, the tries of `search` so far in their order.
#[must_use]
pub fn next(search: &Search, trials: &[Trial]) -> Step {
    let state = State::of(search, trials);
    let attempt = |load, stage| Step::Try { load, stage };
    // A quick look has no time for what is beyond its answer.
    let settled_from = state.confirmed.filter(|_| search.within_s.is_none());
    if let Some(load) = settled_from.and_then(|low| unsettled(search, trials, low)) {
        return attempt(load, Stage::Settle);
    }
    if let Some(step) = state.beyond(search, trials) {
        return step;
    }
    if state.is_unconfirmed {
        return Step::Over;
    }
    match (state.low, state.high) {
        (None, None) if search.within_s.is_some() && trials.is_empty() => attempt(1.0, Stage::Alone),
        // Nobody else was there, and limits were missed: more users need not be tried before that is decided.
        (None, None) if trials.last().is_some_and(has_missed) => attempt(1.0, Stage::Bracket),
        (None, None) => attempt(search.start, Stage::Bracket),
        (Some(low), None) if low >= search.max => attempt(low, Stage::Confirm),
        (Some(low), None) => {
            attempt(rounded(search, (2.0 * low).max(search.start).min(search.max)), Stage::Bracket)
        }
        // A confirmation has failed there: one step down.
        (None, Some(high)) if state.has_stepped_down => match below(search, high) {
            Some(load) => attempt(load, Stage::Confirm),
            None => Step::Over,
        },
        // Fewer of what was all good and too little would show no more.
        (None, Some(_)) if too_few(trials) => Step::Over,
        (None, Some(high)) => match halved(search, high) {
            Some(load) => attempt(load, Stage::Bracket),
            None => Step::Over,
        },
        (Some(low), Some(high)) => match between(search, low, high) {
            Some(load) => attempt(load, Stage::Bisect),
            None => attempt(low, Stage::Confirm),
        },
    }
}

/// The level in which `load` is tried for `stage`: like `like`, which the plan has.
///
/// Confirmations are three times as long as what decided that load before. An open loop lasts ten of the E2E known by
/// now, and ten seconds, at least: a queue takes its time.
#[must_use]
pub fn level(search: &Search, like: &Level, trials: &[Trial], load: f64, stage: Stage) -> Level {
    let decided = trials.iter().rev().find(|trial| trial.load == load && trial.holds());
    let times = decided.and_then(|trial| trial.judged).map_or(1, |judged| judged.times);
    let (confidence, times) = match stage {
        Stage::Confirm => (Confidence::C99, CONFIRM_TIMES.saturating_mul(times)),
        _ => (Confidence::C95, 1),
    };
    let mut like = like.clone();
    if let (Some(units), Some(rate)) =
        (like.stop.units, like.load.rate().filter(|_| like.load.users.is_none()))
    {
        let rate = if search.vary == Axis::Rate { load } else { rate };
        let e2e_ms = trials.iter().filter_map(|trial| trial.medians.e2e_ms).fold(0.0, f64::max);
        let least = rate * (QUEUE_E2ES * e2e_ms / 1e3).max(QUEUE_S_MIN);
        like.stop.units = Some(units.max(least.ceil() as u64));
    }
    let mut level = search.level(&like, load, confidence, times);
    if stage == Stage::Overload {
        level.decide = None;
    }
    level
}

/// What `trials` say together; `broken_off` if there would have been more of them.
#[must_use]
pub fn answer(search: &Search, trials: &[Trial], broken_off: bool) -> Answer {
    let state = State::of(search, trials);
    // What a confirmation that failed has put aside still held once, below it.
    let once = || {
        let held =
            trials.iter().filter(|trial| trial.holds() && state.high.is_none_or(|high| trial.load < high));
        held.map(|trial| trial.load).reduce(f64::max)
    };
    let low = state.confirmed.or(state.low).or_else(|| once().filter(|_| broken_off));
    let failed = low.and_then(|low| lowest_failed(trials, low));
    let high = failed.or(state.high);
    let of_high = |trial: &Trial| Some(trial.load) == high && trial.fails();
    let ending = match (low, high) {
        _ if broken_off => Ending::BrokenOff,
        (None, _) if too_few(trials) => Ending::TooFew,
        (None, _) => Ending::NothingHolds,
        (Some(_), None) => Ending::AllHold,
        (Some(_), Some(_)) => Ending::Found,
    };
    let last = trials.iter().rev().find(|trial| trial.stage == Stage::Recovery);
    Answer {
        low,
        high,
        ending,
        confidence: if state.confirmed.is_some() { Confidence::C99 } else { Confidence::C95 }.level(),
        decided: high.is_none() || trials.iter().any(of_high),
        undecided: undecided(trials, low, high),
        recovered: last.filter(|trial| !trial.is_undecided()).map(Trial::holds),
        non_monotone: non_monotone(trials),
        requests: trials.iter().filter_map(|trial| trial.judged).map(|judged| judged.n).sum(),
    }
}

/// What is known behind some trials.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct State {
    /// The highest load that held, below `high`.
    low: Option<f64>,
    /// The lowest load that was not seen to hold.
    high: Option<f64>,
    confirmed: Option<f64>,
    has_stepped_down: bool,
    /// A quick look's confirmation has decided nothing.
    is_unconfirmed: bool,
    overloaded: bool,
    recovered: bool,
}

impl State {
    fn of(search: &Search, trials: &[Trial]) -> State {
        let mut state = State::default();
        for trial in trials {
            let &Trial { load, stage, .. } = trial;
            match (stage, trial.holds()) {
                (Stage::Alone, false) if trial.is_undecided() => {}
                (Stage::Alone | Stage::Bracket | Stage::Bisect, true) => state.low = Some(load),
                (Stage::Alone | Stage::Bracket | Stage::Bisect, false) => state.high = Some(load),
                (Stage::Confirm, true) => state.confirmed = Some(load),
                // There is no time for one step after the other: what held once is the answer, with what that is worth.
                (Stage::Confirm, false) if search.within_s.is_some() && trial.is_undecided() => {
                    state.is_unconfirmed = true;
                }
                (Stage::Confirm, false) => {
                    // What held below that load was not confirmed either.
                    (state.low, state.high) = (None, Some(load));
                    state.has_stepped_down = true;
                }
                (Stage::Settle, _) => {}
                (Stage::Overload, _) => state.overloaded = true,
                (Stage::Recovery, _) => state.recovered = true,
            }
        }
        debug_assert!(state.low.is_none_or(|low| low <= search.max));
        state
    }

    /// The steps behind a confirmed answer.
    fn beyond(&self, search: &Search, trials: &[Trial]) -> Option<Step> {
        let confirmed = self.confirmed?;
        Some(match (search.overload, self.overloaded, self.recovered) {
            (true, false, _) => {
                let high = lowest_failed(trials, confirmed).or(self.high);
                let load = rounded(search, OVERLOAD * high.unwrap_or(confirmed));
                Step::Try { load, stage: Stage::Overload }
            }
            (true, true, false) => Step::Try { load: confirmed, stage: Stage::Recovery },
            _ => Step::Over,
        })
    }
}

/// The lowest load above `low` that failed.
fn lowest_failed(trials: &[Trial], low: f64) -> Option<f64> {
    let above = |load: &f64| *load > low;
    trials.iter().filter(|trial| trial.fails()).map(|trial| trial.load).filter(above).min_by(f64::total_cmp)
}

/// What stayed undecided between the ends of an answer, ascending.
fn undecided(trials: &[Trial], low: Option<f64>, high: Option<f64>) -> Vec<f64> {
    let inside = |load: &f64| low.is_none_or(|low| *load > low) && high.is_none_or(|high| *load < high);
    let open = trials.iter().filter(|trial| trial.bounds() && trial.is_undecided());
    let mut loads: Vec<f64> = open.map(|trial| trial.load).filter(inside).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    loads
}

/// The load to try for the upper end of an answer from `low`: between the highest that did not fail and the lowest that
/// did, or above all; `None` where these are near enough, or nothing stayed undecided.
fn unsettled(search: &Search, trials: &[Trial], low: f64) -> Option<f64> {
    let failed = lowest_failed(trials, low);
    undecided(trials, Some(low), failed).last()?;
    let below = |load: &f64| failed.is_none_or(|failed| *load < failed);
    let tried = trials.iter().filter(|trial| trial.bounds() && !trial.fails());
    let top = tried.map(|trial| trial.load).filter(below).fold(low, f64::max);
    match failed {
        Some(failed) => between(search, top, failed),
        None => (top < search.max).then(|| rounded(search, (2.0 * top).min(search.max))),
    }
}

/// Whether the last load stayed undecided without a single miss: its greatest length has too few requests to show anything.
fn too_few(trials: &[Trial]) -> bool {
    let last = trials.last().filter(|trial| trial.is_undecided());
    last.and_then(|trial| trial.judged).is_some_and(|judged| judged.good == judged.n)
}

/// Whether some of its requests missed a limit.
fn has_missed(trial: &Trial) -> bool {
    trial.judged.is_some_and(|judged| judged.good < judged.n)
}

/// The load in the middle of two; `None` if they are near enough.
fn between(search: &Search, low: f64, high: f64) -> Option<f64> {
    let middle = rounded(search, f64::midpoint(low, high));
    (!search.is_near(low, high) && low < middle && middle < high).then_some(middle)
}

/// Half of a load; `None` where there is nothing below.
fn halved(search: &Search, high: f64) -> Option<f64> {
    let half = rounded(search, high / 2.0);
    let least = if search.vary.is_whole() { 1.0 } else { search.start * LEAST_OF_START };
    (half >= least && half < high).then_some(half)
}

/// One step below a load; `None` where there is nothing.
fn below(search: &Search, high: f64) -> Option<f64> {
    let less = rounded(search, high - search.step(high));
    let least = if search.vary.is_whole() { 1.0 } else { search.start * LEAST_OF_START };
    (less >= least && less < high).then_some(less)
}

/// A load as it is tried: whole, or of three digits, downwards.
fn rounded(search: &Search, load: f64) -> f64 {
    if search.vary.is_whole() {
        return load.floor();
    }
    let digit = 10f64.powf(load.log10().floor() - 2.0);
    // Through text, so that no binary dust stands behind the digits.
    let tidy = format!("{:.9}", (load / digit + 1e-9).floor() * digit);
    tidy.parse().ok().filter(|tidy: &f64| *tidy > 0.0).unwrap_or(load)
}

pub(super) fn non_monotone(trials: &[Trial]) -> Vec<[f64; 2]> {
    let decides = |trial: &&Trial| match trial.stage {
        Stage::Recovery => false,
        Stage::Alone => !trial.is_undecided(),
        _ => trial.judged.is_some(),
    };
    let mut pairs: Vec<[f64; 2]> = Vec::new();
    for failed in trials.iter().filter(decides).filter(|trial| !trial.holds()) {
        for held in trials.iter().filter(decides).filter(|trial| trial.holds()) {
            let pair = [failed.load, held.load];
            if failed.load <= held.load && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    }
    sort::few_by(&mut pairs, |a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
    pairs
}

/// A confirmation is longer by this.
const CONFIRM_TIMES: u32 = 3;
/// An overload, over what was not seen to hold.
const OVERLOAD: f64 = 2.0;
/// An open loop lasts as many E2Es at least, and as many seconds.
const QUEUE_E2ES: f64 = 10.0;
const QUEUE_S_MIN: f64 = 10.0;
/// The lowest rate that is tried, over the first.
const LEAST_OF_START: f64 = 1e-3;

#[cfg(test)]
mod tests;
