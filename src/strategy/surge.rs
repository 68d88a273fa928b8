//! A stress test while it runs: which overload the server does not take, and then the level that is looked at.

use crate::plan::{Level, Plan, Stress};
use crate::run::{Judged, Judgement, LevelResult};

/// The levels of a stress test, one after another.
#[derive(Debug)]
pub struct Surge {
    stress: Stress,
    like: Level,
}

impl Surge {
    /// The stress test of `plan`, if it is one.
    #[must_use]
    pub fn of(plan: &Plan) -> Option<Surge> {
        Some(Surge { stress: plan.stress?, like: plan.levels.first()?.clone() })
    }

    /// How many levels there will be; `None` where that depends on the server.
    #[must_use]
    pub fn levels(&self) -> Option<usize> {
        self.stress.to_rate.map(|_| 1)
    }

    /// The level to run next, behind the results so far.
    #[must_use]
    pub fn next(&self, done: &[LevelResult]) -> Option<Level> {
        if let Some(to) = self.stress.to_rate {
            return if done.is_empty() { self.stress.level(&self.like, to) } else { None };
        }
        let steps = done.iter().take_while(|one| one.level.decide.is_some()).count();
        if steps < done.len() {
            return None;
        }
        let failed = done.last().is_some_and(|last| fails(last, self.stress.bad_max));
        if !failed && steps < Stress::STEPS_MAX {
            return self.stress.step(&self.like, steps + 1);
        }
        // Also where none has failed: the highest there is, which the result says.
        let rate = done.last().and_then(|last| last.level.load.rate())?;
        self.stress.level(&self.like, rate)
    }
}

fn fails(step: &LevelResult, bad_max: f64) -> bool {
    let counts = &step.tally.whole().counts;
    is_too_much((counts.ok, counts.failed), step.judged, bad_max)
}

/// Whether a step, with so many requests that ended well and that failed, is more than the server takes: surely too many bad
/// requests, or a larger share of failures than `bad_max`.
#[must_use]
pub fn is_too_much((ok, failed): (u64, u64), judged: Option<Judged>, bad_max: f64) -> bool {
    let ended = ok + failed;
    let by_failures = ended > 0 && failed as f64 > bad_max * ended as f64;
    by_failures || judged.is_some_and(|judged| judged.outcome == Judgement::Fail)
}
