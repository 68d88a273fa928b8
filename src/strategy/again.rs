//! What the loads that a search has tried say at other limits than it had.
//!
//! The search chose its loads for its own limits, so at others it may have tried nothing where capacity lies: then the
//! answer is as wide as what was not tried, and says so. It is put together from all loads in the order of the loads, since
//! the steps of the search mean nothing any more.

use super::capacity::{self, Answer, Ending, Stage, Trial};
use super::hunt::slots_of;
use super::{Binding, Found, LimitHeld, side};
use crate::metrics::slo::Slo;
use crate::metrics::{Class, Flags, Phase, Record};
use crate::plan::{Decide, Figure, Search};
use crate::run::{Judged, Judgement};
use crate::stats::Confidence;
use crate::stats::sort;
use crate::summary::precision::{Observation, Observed};
use crate::time::Stamp;

/// What a level's records are judged by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    /// The limits of a good request.
    pub(crate) slo: &'a Slo,
    /// Whether they are judged from the planned send.
    pub(crate) from_plan: bool,
    /// What the level was to decide; `None` where it was to decide nothing.
    pub(crate) decide: Option<Decide>,
    /// Share of requests that is to be good.
    pub(crate) target: f64,
    /// Requests planned before it belong to the ramp of the level.
    pub(crate) from: Stamp,
}

impl Trial {
    /// The same trial at other limits, by the records of its level.
    ///
    /// A level that was stopped before its planned length may show that the load does not hold, never that it does: its
    /// queue may not have grown yet. Requests that were open when it was stopped and had not passed the new limits by then
    /// are taken as good and as missed, and the level is decided where both come to the same.
    pub(crate) fn judged_again(&self, records: &[Record], limits: Limits<'_>) -> Trial {
        let Limits { slo, from_plan, target, .. } = limits;
        let judged = self.judged.zip(limits.decide).map(|(was, decide)| again(&was, decide, records, limits));
        Trial { judged, limits: LimitHeld::all(records, slo, from_plan, target), ..self.clone() }
    }
}

fn again(was: &Judged, decide: Decide, records: &[Record], limits: Limits<'_>) -> Judged {
    let Limits { slo, from_plan, from, .. } = limits;
    let observed = Observed { figure: Figure::Attainment, slo: *slo, from_plan };
    let counts = |record: &&Record| {
        record.phase == Phase::Measured && record.plan >= from && !record.flags.contains(Flags::SLOW_READER)
    };
    // Of whom nothing is known but that they were not over: given up because the level was stopped.
    let is_open = |record: &Record| was.stopped_early && record.outcome.class == Class::Unfinished;
    let mut open = 0;
    let mut seen: Vec<Observation> = Vec::new();
    for record in records.iter().filter(counts) {
        match observed.of(record) {
            Some(mut one) if is_open(record) => {
                one.failed = false;
                if observed.is_overdue(record, record.end) {
                    seen.push(one);
                } else {
                    open += 1;
                }
            }
            Some(one) => seen.push(one),
            None => {}
        }
    }
    let mut best = seen.clone();
    let last = seen.iter().map(|one| one.plan).max().unwrap_or_default();
    best.extend((0..open).map(|_| Observation { plan: last, value: 0.0, good: true, failed: false }));
    let (worst, best) = (side::judge(&decide, &mut seen, open), side::judge(&decide, &mut best, 0));
    let outcome = match worst.outcome {
        Judgement::Pass if was.stopped_early => Judgement::Undecided,
        outcome if outcome == best.outcome => outcome,
        _ => Judgement::Undecided,
    };
    Judged { outcome, times: was.times, stopped_early: was.stopped_early, ..worst }
}

impl Found {
    /// What `trials`, judged again at other limits, say together.
    pub(crate) fn again(search: &Search, trials: Vec<Trial>, earlier: usize) -> Found {
        let answer = answer(search, &trials);
        let at = |load: Option<f64>| tried(&trials).find(|trial| Some(trial.load) == load);
        let binding = at(answer.high).and_then(|above| Binding::of(search.vary, at(answer.low), above));
        let slots = slots_of(&trials);
        Found { answer, binding, slots, earlier, judged_again: true, trials }
    }
}

/// The loads that tell something, each once, by what was tried last there: that was the longest.
fn tried(trials: &[Trial]) -> impl DoubleEndedIterator<Item = &Trial> {
    let mut last: Vec<&Trial> = Vec::new();
    for trial in trials.iter().filter(|trial| trial.judged.is_some()) {
        if matches!(trial.stage, Stage::Overload | Stage::Recovery) {
            continue;
        }
        match last.iter_mut().find(|known| known.load == trial.load) {
            Some(known) => *known = trial,
            None => last.push(trial),
        }
    }
    sort::few_by(&mut last, |a, b| a.load.total_cmp(&b.load));
    last.into_iter()
}

/// From the highest load that holds to the lowest above it that fails, where the loads are in that order.
fn answer(search: &Search, trials: &[Trial]) -> Answer {
    let outcome = |trial: &&Trial| trial.judged.map_or(Judgement::Undecided, |judged| judged.outcome);
    let fails = |trial: &&Trial| outcome(trial) == Judgement::Fail;
    let high = tried(trials).find(fails).map(|trial| trial.load);
    let below = |trial: &&Trial| high.is_none_or(|high| trial.load < high);
    let holding = tried(trials).rev().filter(below).find(|trial| trial.holds());
    let low = holding.map(|trial| trial.load);
    let inside = |load: &f64| low.is_none_or(|low| *load > low) && high.is_none_or(|high| *load < high);
    let open = tried(trials).filter(|trial| outcome(trial) == Judgement::Undecided);
    let sure = holding.and_then(|trial| trial.judged).map(|judged| judged.confidence);
    Answer {
        low,
        high,
        ending: match (low, high) {
            (Some(_), Some(_)) => Ending::Found,
            // Nothing lower could have been tried.
            (None, Some(high)) if search.vary.is_whole() && high <= 1.0 => Ending::NothingHolds,
            _ => Ending::NotTried,
        },
        confidence: sure.unwrap_or(Confidence::C95.level()),
        decided: true,
        undecided: open.map(|trial| trial.load).filter(inside).collect(),
        recovered: None,
        non_monotone: capacity::non_monotone(trials),
        requests: trials.iter().filter_map(|trial| trial.judged).map(|judged| judged.n).sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Kind, Outcome};
    use crate::plan::Axis;
    use crate::run::Why;
    use crate::strategy::Medians;

    const DECIDE: Decide = Decide { target: 0.9, failures_max: 0.0, confidence: 0.95, times_max: 16 };

    fn trial(load: f64, stage: Stage, outcome: Judgement, stopped_early: bool) -> Trial {
        let judged = Judged {
            outcome,
            why: Why::Attainment,
            confidence: if stage == Stage::Confirm { 0.99 } else { 0.95 },
            n: 100,
            good: 90,
            failed: 0,
            lower: 0.8,
            upper: 1.0,
            times: 1,
            stopped_early,
        };
        let medians = Medians::default();
        Trial { load, stage, judged: Some(judged), medians, limits: Vec::new(), flow: None, too_long: false }
    }

    fn answer_of(outcomes: &[(f64, Judgement)]) -> Answer {
        let trials = outcomes.iter().map(|(load, outcome)| trial(*load, Stage::Bisect, *outcome, false));
        answer(&Search::along(Axis::Concurrency), &trials.collect::<Vec<_>>())
    }

    #[test]
    fn the_answer_reaches_from_what_holds_to_what_fails_in_the_order_of_the_loads() {
        use Judgement::{Fail, Pass, Undecided};
        let found = answer_of(&[(1.0, Pass), (4.0, Fail), (2.0, Fail), (3.0, Fail)]);
        assert_eq!((found.low, found.high, found.ending), (Some(1.0), Some(2.0), Ending::Found));
        let between = answer_of(&[(1.0, Pass), (2.0, Pass), (4.0, Undecided), (8.0, Fail), (6.0, Undecided)]);
        assert_eq!((between.low, between.high), (Some(2.0), Some(8.0)));
        assert_eq!(between.undecided, [4.0, 6.0]);
        let above = answer_of(&[(1.0, Pass), (2.0, Pass), (4.0, Undecided)]);
        assert_eq!((above.low, above.high, above.ending), (Some(2.0), None, Ending::NotTried));
        let below = answer_of(&[(4.0, Fail), (8.0, Fail)]);
        assert_eq!((below.low, below.high, below.ending), (None, Some(4.0), Ending::NotTried));
        assert_eq!(answer_of(&[(1.0, Fail), (2.0, Fail)]).ending, Ending::NothingHolds);
        let nothing = answer_of(&[(4.0, Undecided)]);
        assert_eq!((nothing.low, nothing.high, nothing.undecided), (None, None, vec![4.0]));
        // The later of two tries counts, which was the longer one.
        let twice = answer_of(&[(2.0, Pass), (4.0, Fail), (3.0, Pass), (3.0, Undecided)]);
        assert_eq!((twice.low, twice.high, twice.undecided), (Some(2.0), Some(4.0), vec![3.0]));
        let mixed = answer_of(&[(2.0, Pass), (3.0, Fail), (4.0, Pass), (5.0, Fail)]);
        assert_eq!((mixed.low, mixed.high, mixed.non_monotone), (Some(2.0), Some(3.0), vec![[3.0, 4.0]]));
    }

    /// `n` requests 10 ms apart, each with its TTFT in ms; of the last `open` nothing was seen but 50 ms.
    fn records(ttfts_ms: &[u64], open: u64) -> Vec<Record> {
        let done = ttfts_ms.iter().enumerate().map(|(i, ttft)| {
            let plan = Stamp::from_millis(10 * i as u64);
            let mut record = Record::planned(i as u64, plan);
            let first = Stamp::from_millis(10 * i as u64 + ttft);
            record.outcome = Outcome::ok(200);
            (record.start, record.first, record.answer) = (plan, Some(first), Some(first));
            (record.last, record.end) = (Some(first), first);
            record
        });
        let from = ttfts_ms.len() as u64;
        let left = (from..from + open).map(|i| {
            let plan = Stamp::from_millis(10 * i);
            let mut record = Record::planned(i, plan);
            record.outcome = Outcome::new(Class::Unfinished, Kind::None, 0);
            (record.start, record.end) = (plan, Stamp::from_millis(10 * i + 50));
            record
        });
        done.chain(left).collect()
    }

    fn at(ttft_ms: f64, was: &Trial, records: &[Record]) -> Judgement {
        let slo = Slo { ttft_ms: Some(ttft_ms), ..Slo::default() };
        let limits =
            Limits { slo: &slo, from_plan: false, decide: Some(DECIDE), target: 0.9, from: Stamp::ZERO };
        was.judged_again(records, limits).judged.unwrap().outcome
    }

    #[test]
    fn levels_are_judged_by_their_records() {
        let whole = trial(4.0, Stage::Bisect, Judgement::Pass, false);
        let all = records(&[20; 100], 0);
        assert_eq!(at(20.0, &whole, &all), Judgement::Pass, "equality keeps the limit");
        assert_eq!(at(19.9, &whole, &all), Judgement::Fail);
        let mut some = [20; 100];
        (0..9).for_each(|i| some[11 * i] = 40);
        assert_eq!(at(30.0, &whole, &records(&some, 0)), Judgement::Undecided);
    }

    #[test]
    fn a_level_that_was_stopped_never_passes_at_other_limits() {
        let stopped = trial(8.0, Stage::Bisect, Judgement::Fail, true);
        assert_eq!(at(30.0, &stopped, &records(&[20; 100], 0)), Judgement::Undecided);
        assert_eq!(at(10.0, &stopped, &records(&[20; 100], 0)), Judgement::Fail);
        // What was open for 50 ms has passed 30 ms, and nobody knows of 60 ms.
        assert_eq!(at(30.0, &stopped, &records(&[20; 20], 80)), Judgement::Fail);
        assert_eq!(at(60.0, &stopped, &records(&[20; 20], 80)), Judgement::Undecided);
        // Its own stop is no failure of the server.
        assert_eq!(at(60.0, &stopped, &records(&[20; 400], 2)), Judgement::Undecided);
        let whole = trial(8.0, Stage::Bisect, Judgement::Fail, false);
        assert_eq!(at(60.0, &whole, &records(&[20; 400], 2)), Judgement::Fail, "a failure as ever");
    }

    #[test]
    fn what_binds_is_looked_for_at_the_new_limits() {
        let slo = Slo { ttft_ms: Some(30.0), ..Slo::default() };
        let limits =
            Limits { slo: &slo, from_plan: false, decide: Some(DECIDE), target: 0.9, from: Stamp::ZERO };
        let trials = vec![
            trial(1.0, Stage::Bracket, Judgement::Fail, false).judged_again(&records(&[20; 100], 0), limits),
            trial(2.0, Stage::Bracket, Judgement::Pass, false).judged_again(&records(&[40; 100], 0), limits),
        ];
        let found = Found::again(&Search::along(Axis::Concurrency), trials, 0);
        assert!(found.judged_again);
        assert_eq!((found.answer.low, found.answer.high), (Some(1.0), Some(2.0)));
        let limit = found.binding.unwrap().limit.unwrap();
        assert_eq!((limit.missed, limit.limit_ms, limit.kept_ms), (100, 30.0, Some(40.0)));
    }
}
