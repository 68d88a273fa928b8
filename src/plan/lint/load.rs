//! How requests arrive, how many there are, and what precedes them.

use crate::plan::{Finding, Grade, Level, Plan, Rule};

/// Shorter levels have no ramp cut off, s.
const WINDOWED_S: f64 = 60.0;
/// Below as many requests a p99 rests on one of them, and chance decides which.
pub(crate) const REQUESTS_MIN: u64 = 200;

pub(super) fn look(plan: &Plan, found: &mut Vec<Finding>) {
    found.extend(no_warmup(plan));
    found.extend(too_few(plan));
    found.extend(closed_loop(plan));
    found.extend(ramp(plan));
    found.extend(series(plan));
    found.extend(share_of_run(plan));
    if plan.runs == 1 {
        found.push(Finding::new(
            Rule::SingleRun,
            Grade::Info,
            "one run tells nothing of the spread between runs",
            "give --num-runs 5",
        ));
    }
}

fn no_warmup(plan: &Plan) -> Option<Finding> {
    let cold = plan.levels.iter().filter(|level| level.warmups == 0).count();
    (cold > 0).then(|| {
        let evidence = format!(
            "{} without warm-up: first requests meet cold caches and new connections",
            of_levels(cold, plan)
        );
        Finding::new(Rule::NoWarmup, Grade::Warn, evidence, "give --num-warmups 2 or more")
    })
}

fn too_few(plan: &Plan) -> Option<Finding> {
    // The levels of a search are as long as their question needs.
    let set = plan.levels.iter().filter(|_| plan.search.is_none());
    few_requests(set.filter_map(|level| plan.requests_expected(level)).min()?, plan.turns_expected()?)
}

/// The finding that `n` requests are few for a level, of which sessions have so many on average.
pub(crate) fn few_requests(n: u64, turns: f64) -> Option<Finding> {
    (n < REQUESTS_MIN).then(|| {
        // The p99 of n requests rests on the n / 100 slowest: on one, for all n below the bound.
        let requests = if n == 1 { "1 request".to_owned() } else { format!("{n} requests") };
        let evidence = format!("{requests} in a level: a single one of them makes its p99");
        // Where there are sessions, they are what is counted.
        let prompts = (REQUESTS_MIN as f64 / turns.max(1.0)).ceil();
        let remedy = format!("give --num-prompts {prompts} or more, or a longer --duration");
        Finding::new(Rule::FewRequests, Grade::Warn, evidence, remedy)
    })
}

fn share_of_run(plan: &Plan) -> Option<Finding> {
    let share = plan.share.filter(|share| share.of > 1)?;
    let evidence = format!("share {share}: rates and counts are those of a part of the load");
    let remedy = "make one result of all shares by tokload merge";
    Some(Finding::new(Rule::ShareOfRun, Grade::Info, evidence, remedy))
}

/// A closed loop is a fair question with another answer, not a fault: hence no warning.
fn closed_loop(plan: &Plan) -> Option<Finding> {
    // Paced users have a plan, and are judged from it.
    let closed = plan.levels.iter().filter(|level| !level.load.judged_from_plan()).count();
    (closed > 0).then(|| {
        let who = if closed == plan.levels.len() { String::new() } else { of_levels(closed, plan) + ": " };
        let evidence = format!("{who}users wait, so a slow server is asked less");
        let remedy = "give a finite --request-rate for latencies that count the wait of new arrivals";
        Finding::new(Rule::ClosedLoopWithoutQueueTime, Grade::Info, evidence, remedy)
    })
}

/// Users who come in during what is measured, or whose coming in leaves little of it.
fn ramp(plan: &Plan) -> Option<Finding> {
    let short = |level: &&Level| {
        let ramp_s = level.load.ramp_s().unwrap_or(0.0);
        ramp_s > 0.0 && level.stop.duration_s.is_none_or(|s| s < WINDOWED_S || s < 2.0 * ramp_s)
    };
    let level = plan.levels.iter().find(short)?;
    let ramp_s = level.load.ramp_s()?;
    let evidence = match level.stop.duration_s {
        Some(s) if s >= WINDOWED_S => format!("users come in for {ramp_s} s of a level of {s} s"),
        _ => format!("users come in for {ramp_s} s, and that is part of what is measured"),
    };
    let remedy = format!("give --duration {:.0}s or more: users who come in are cut off then", {
        (4.0 * ramp_s).max(WINDOWED_S).ceil()
    });
    Some(Finding::new(Rule::WindowShort, Grade::Info, evidence, remedy))
}

/// A load that varies as planned has no steady state; a level that ends with its series half done was perhaps not meant.
fn series(plan: &Plan) -> Option<Finding> {
    let level = plan.levels.iter().find(|level| level.load.has_own_shape())?;
    let length_s = level.load.course()?.length_s();
    let (mut evidence, remedy) = (
        "the rate varies as planned: numbers are of all of it, and no steady state is looked for".to_owned(),
        "read the series over time in the run file, or run each rate as a level of its own",
    );
    if let Some(s) = level.stop.duration_s.filter(|s| *s < length_s) {
        evidence.push_str(&format!("; the level ends after {s} of its {length_s} s"));
    }
    Some(Finding::new(Rule::NotStationary, Grade::Info, evidence, remedy))
}

/// `1 level`, `2 of 5 levels`.
fn of_levels(n: usize, plan: &Plan) -> String {
    match (n, plan.levels.len()) {
        (1, 1) => "1 level".to_owned(),
        (n, all) if n == all => format!("all {all} levels"),
        (n, all) => format!("{n} of {all} levels"),
    }
}

impl Plan {
    /// Turns of a session on average; `None` where those of a file count.
    #[must_use]
    pub fn turns_expected(&self) -> Option<f64> {
        match &self.workload.conversation {
            None => Some(1.0),
            Some(_) if self.workload.is_recorded() => None,
            Some(conversation) => Some(conversation.turns.mean().max(1.0)),
        }
    }

    /// Requests that a level of it will send, those of all turns, as far as the plan says.
    #[must_use]
    pub fn requests_expected(&self, level: &Level) -> Option<u64> {
        let (sessions, turns) = (level.requests_expected()?, self.turns_expected()?);
        // `as` saturates.
        Some((sessions as f64 * turns).round() as u64)
    }
}

impl Level {
    /// Requests that the level will send, or sessions where there are such, as far as its plan says: their number, or what
    /// its rate makes in its duration, whichever is less. `None` for users who send until a time is over.
    #[must_use]
    pub fn requests_expected(&self) -> Option<u64> {
        let course = self.load.course();
        let by_time = course.zip(self.stop.duration_s).map(|(course, s)| course.count_by(s).round() as u64);
        [self.stop.units, by_time].into_iter().flatten().min()
    }
}
