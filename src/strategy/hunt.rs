//! A search while it runs: what was tried, what is tried next, when there is no time for more, and what was found.

use serde::{Deserialize, Serialize};

use crate::metrics::Record;
use crate::plan::{Axis, Level, Plan, Search};
use crate::run::LevelResult;
use crate::strategy::capacity::{self, Answer, Stage, Step, Trial};
use crate::strategy::{Binding, Flow, LimitHeld, Slots, budget, slots};

/// What a search has found, and what that rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Between which loads capacity lies.
    pub answer: Answer,
    /// Which limit the higher of them does not keep, and why; `None` where no load failed, or nothing is known of it.
    pub binding: Option<Binding>,
    /// How many requests the server works on at once, where the loads tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<Slots>,
    /// How many of the trials were made by an earlier run, which this one went on from: their levels stand there.
    #[serde(default)]
    pub earlier: usize,
    /// The trials were judged again at other limits than the search had, by their records.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub judged_again: bool,
    /// All loads that were tried, in that order. The first behind the earlier ones is the first of the run's levels.
    pub trials: Vec<Trial>,
}

/// A search under way.
///
/// [`Hunt::next`] is what [`drive`](crate::engine::drive) asks for levels; in the end [`Hunt::into_found`] has the
/// answer.
#[derive(Debug)]
pub struct Hunt {
    search: Search,
    like: Level,
    /// Those of an earlier run first.
    trials: Vec<Trial>,
    earlier: usize,
    /// What the level under way is tried for.
    trying: Option<(f64, Stage)>,
    is_over: bool,
}

impl Hunt {
    /// The search of `plan`, if it has one, behind the trials of an earlier run.
    #[must_use]
    pub fn of(plan: &Plan, earlier: &[Trial]) -> Option<Hunt> {
        Some(Hunt {
            search: plan.search?,
            like: plan.levels.first()?.clone(),
            trials: earlier.to_vec(),
            earlier: earlier.len(),
            trying: None,
            is_over: false,
        })
    }

    /// The level to run next, behind the results of this run.
    pub fn next(&mut self, done: &[LevelResult]) -> Option<Level> {
        self.take(done);
        if self.is_late(done) {
            return None;
        }
        let Step::Try { load, stage } = capacity::next(&self.search, &self.trials) else {
            self.is_over = true;
            return None;
        };
        let level = capacity::level(&self.search, &self.like, &self.trials, load, stage);
        let level = match self.search.within_s {
            Some(within_s) => budget::cut(level, stage, &self.trials, within_s - elapsed_s(done))?,
            None => level,
        };
        self.trying = Some((load, stage));
        Some(level)
    }

    /// Takes in the result of the level that was tried. One that was interrupted has decided nothing.
    fn take(&mut self, done: &[LevelResult]) {
        let Some(result) = done.last().filter(|_| done.len() > self.trials.len() - self.earlier) else {
            return;
        };
        if let Some((load, stage)) = self.trying.take().filter(|_| !result.interrupted) {
            self.trials.push(Trial::of(load, stage, result));
        }
    }

    fn is_late(&self, done: &[LevelResult]) -> bool {
        !done.is_empty() && self.search.time_max_s.is_some_and(|most| elapsed_s(done) >= most)
    }

    /// Notes how the requests of this run's level number `place` stood to the limits.
    pub fn look_at(&mut self, place: usize, records: &[Record], plan: &Plan) {
        let from_plan = self.like.load.judged_from_plan();
        if let Some(trial) = self.trials.get_mut(self.earlier + place) {
            trial.limits = LimitHeld::all(records, &plan.slo, from_plan, self.search.target);
            trial.flow = match self.search.vary {
                Axis::Concurrency => Flow::of(records, trial.load as u64),
                Axis::InputLen | Axis::OutputLen | Axis::Rate | Axis::Speedup => None,
            };
        }
    }

    /// What was found, behind all results of this run.
    #[must_use]
    pub fn into_found(mut self, done: &[LevelResult]) -> Found {
        self.take(done);
        let is_over = self.is_over || capacity::next(&self.search, &self.trials) == Step::Over;
        let answer = capacity::answer(&self.search, &self.trials, !is_over);
        let at = |load: f64, holds: bool| {
            self.trials.iter().rev().find(|trial| trial.load == load && trial.holds() == holds)
        };
        let above = answer.high.and_then(|high| at(high, false));
        let below = answer.low.and_then(|low| at(low, true));
        let binding = above.and_then(|above| Binding::of(self.search.vary, below, above));
        let slots = slots_of(&self.trials);
        Found { answer, binding, slots, earlier: self.earlier, judged_again: false, trials: self.trials }
    }
}

/// On how many requests at once the server works, as far as `trials` agree.
pub(super) fn slots_of(trials: &[Trial]) -> Option<Slots> {
    let seen: Vec<(u32, Flow)> =
        trials.iter().filter_map(|trial| Some((trial.load as u32, trial.flow?))).collect();
    slots::infer(&seen)
}

/// From the first request to the end of what is done, s.
fn elapsed_s(done: &[LevelResult]) -> f64 {
    match (done.first(), done.last()) {
        (Some(first), Some(last)) => (last.span.t2 - first.span.t0).as_secs_f64(),
        _ => 0.0,
    }
}
