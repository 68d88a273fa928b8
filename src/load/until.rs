//! Decides, while a leg runs, whether it goes on beyond its planned length, and for how long, or ends before it.
//!
//! Pure: stamps, counts and observations come in. The coordinator (or the virtual engine) asks it now and then; shards
//! only learn how far they may send ([`Reach`]). It decides shortly before that is reached, by what has ended until then,
//! so that load goes on without a pause when the leg is lengthened, and the leg ends as planned when it is not.

use std::time::Duration;

use crate::load::assemble::seconds;
use crate::plan::{Decide, Figure, Level, Plan, Stop, Until};
use crate::run::{Judged, Judgement, Lengthened, Why};
use crate::strategy::side;
use crate::summary::precision::{Known, Observation, Observed};

/// How far the sends of a leg go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Requests over all shards; `u64::MAX` without a limit.
    pub(crate) units: u64,
    /// Time from the start before which sends are planned; `Duration::MAX` without a limit.
    pub(crate) length: Duration,
}

/// What a level may go on for.
#[derive(Clone, Copy, Debug)]
enum Wish {
    /// To know on which side of a target it lies.
    Side(Decide),
    /// To know a figure well enough.
    Width(Until),
}

/// Follows one leg.
#[derive(Debug)]
pub(crate) struct Watch {
    wish: Wish,
    observed: Observed,
    /// Users, or what an open loop may send while a decision is being made.
    ahead: u64,
    planned: Reach,
    reach: Reach,
    /// The present reach in planned lengths, and the longest that there may be.
    times: u32,
    times_max: u32,
    /// From when on it is looked whether the leg has failed already; `None`: not at all.
    next_look: Option<Duration>,
    /// Why it was stopped before its end, if it was.
    stopped: Option<Why>,
    /// What was known when it was decided that the leg ends.
    decided: Option<Judgement>,
    seen: Vec<Observation>,
}

/// What the leg does next.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    /// How far it may go.
    pub(crate) reach: Reach,
    /// It may be lengthened again.
    pub(crate) open: bool,
    /// Nothing more is sent: the outcome is certain.
    pub(crate) stop: bool,
    /// For the user, if there is something to say.
    pub(crate) note: Option<String>,
}

/// What became of the wish, by all that was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    /// How far the leg was to go in the end.
    pub(crate) reach: Reach,
    /// How well the figure is known, where one was to be known.
    pub(crate) lengthened: Option<Lengthened>,
    /// On which side it lies, where that was to be known.
    pub(crate) judged: Option<Judged>,
}

/// A decision takes no longer: two looks of the coordinator, a turn of each shard and a sum over the observations.
const DECIDING: Duration = Duration::from_millis(150);
/// And the decision is made so late, as a part of the reach, that nearly all of it counts.
const LAST_PART: u32 = 20;
/// Looks at whether a leg has failed already: the first, and the least time between two of them.
const LOOK: Duration = Duration::from_millis(500);

impl Reach {
    /// The planned one of a level.
    pub(crate) fn of(level: &Level) -> Reach {
        Reach {
            units: level.stop.units.unwrap_or(u64::MAX),
            length: level.stop.duration_s.map_or(Duration::MAX, seconds),
        }
    }

    /// So many times as far.
    pub(crate) fn times(self, times: u32) -> Reach {
        Reach {
            units: self.units.saturating_mul(u64::from(times)),
            length: self.length.checked_mul(times).unwrap_or(Duration::MAX),
        }
    }
}

impl Wish {
    fn of(plan: &Plan, level: &Level) -> Option<Wish> {
        level.decide.map(Wish::Side).or(plan.until.map(Wish::Width))
    }

    fn figure(&self) -> Figure {
        match self {
            Wish::Side(_) => Figure::Attainment,
            Wish::Width(until) => until.figure,
        }
    }

    fn times_max(&self) -> u32 {
        match self {
            Wish::Side(decide) => decide.times_max,
            Wish::Width(until) => until.times_max,
        }
    }
}

/// What each request of a level is observed for; `None` where its length does not depend on it.
pub(crate) fn observed(plan: &Plan, level: &Level) -> Option<Observed> {
    let figure = Wish::of(plan, level)?.figure();
    Some(Observed { figure, slo: plan.slo, from_plan: level.load.judged_from_plan() })
}

impl Watch {
    /// A watch over `level`, if its length depends on what comes.
    pub(crate) fn of(plan: &Plan, level: &Level) -> Option<Watch> {
        Some(Watch::new(Wish::of(plan, level)?, observed(plan, level)?, level))
    }

    fn new(wish: Wish, observed: Observed, level: &Level) -> Watch {
        let planned = Reach::of(level);
        let ahead = match (level.load.users, level.load.peak_rate()) {
            // The last request of each user may be out long before the decision.
            (Some(users), _) => 2 * u64::from(users),
            (None, rate) => {
                let meanwhile = (rate.unwrap_or(0.0) * DECIDING.as_secs_f64()).ceil() as u64;
                meanwhile.max(u64::from(level.load.burst_size().unwrap_or(0)))
            }
        };
        let next_look = matches!(wish, Wish::Side(_)).then_some(LOOK);
        let times_max = wish.times_max();
        Watch {
            wish,
            observed,
            ahead,
            planned,
            reach: planned,
            times: 1,
            times_max,
            next_look,
            stopped: None,
            decided: None,
            seen: Vec::new(),
        }
    }

    /// The end of a schedule that is laid out as far as the leg may ever go.
    pub(crate) fn longest_stop(&self, planned: &Stop) -> Stop {
        let times = self.times_max;
        Stop {
            units: planned.units.map(|units| units.saturating_mul(u64::from(times))),
            duration_s: planned.duration_s.map(|s| s * f64::from(times)),
            grace_s: planned.grace_s,
        }
    }

    /// Whether the leg may be lengthened at all.
    pub(crate) fn is_open(&self) -> bool {
        self.times < self.times_max
    }

    /// From when on, since the start, a decision is due; `Duration::MAX` if it depends on the number of sends alone.
    pub(crate) fn due_at(&self) -> Duration {
        self.next_look.unwrap_or(Duration::MAX).min(self.end_due_at())
    }

    /// The same of the decision whether the leg goes on.
    fn end_due_at(&self) -> Duration {
        let Reach { length, .. } = self.reach;
        if length == Duration::MAX || !self.is_open() {
            return Duration::MAX;
        }
        length.saturating_sub((length / LAST_PART).max(DECIDING))
    }

    /// Whether a decision is due, so long after the start and with so many requests sent.
    pub(crate) fn is_due(&self, elapsed: Duration, sent: u64) -> bool {
        self.next_look.is_some_and(|at| elapsed >= at) || self.is_end_due(elapsed, sent)
    }

    fn is_end_due(&self, elapsed: Duration, sent: u64) -> bool {
        let Reach { units, .. } = self.reach;
        let left = (units / u64::from(LAST_PART)).max(self.ahead).max(1);
        self.is_open()
            && (elapsed >= self.end_due_at() || (units != u64::MAX && sent >= units.saturating_sub(left)))
    }

    /// Takes what requests have shown since the last time.
    pub(crate) fn take(&mut self, seen: Vec<Observation>) {
        self.seen.extend(seen);
    }

    /// Decides by what was seen so far, and what has come of it by `now`.
    pub(crate) fn decide(&mut self, now: Standing) -> Decision {
        match self.wish {
            Wish::Side(decide) => self.decide_side(decide, now),
            Wish::Width(until) => self.decide_width(until, now.hopeless),
        }
    }

    /// Goes on while the side is not known; stops where it cannot change any more.
    fn decide_side(&mut self, decide: Decide, now: Standing) -> Decision {
        let Standing { elapsed, sent, overdue, .. } = now;
        // Each look costs a sum over all that was seen: a quarter more each time keeps that in bounds.
        self.next_look = Some((elapsed + elapsed / 4).max(elapsed + LOOK));
        let longest = self.planned.times(self.times_max).units;
        let longest = Some(longest).filter(|units| *units != u64::MAX);
        let failed = side::certain_failure(&decide, longest, &mut self.seen, overdue);
        if let Some(why) = failed {
            self.stopped = Some(why);
            self.next_look = None;
            self.times_max = self.times;
            return Decision { reach: self.reach, open: false, stop: true, note: None };
        }
        if !self.is_end_due(elapsed, sent) {
            return self.as_before();
        }
        let judged = side::judge(&decide, &mut self.seen, overdue);
        if judged.outcome != Judgement::Undecided {
            self.decided = Some(judged.outcome);
            self.times_max = self.times;
            return self.as_before();
        }
        self.lengthen();
        let note = format!(
            "the share of good requests lies between {} and {}, {} are wished: the level goes on to {} times its planned \
             length",
            percent(judged.lower),
            percent(judged.upper),
            percent(decide.target),
            self.times
        );
        Decision { note: Some(note), ..self.as_before() }
    }

    /// A level of which nothing but failures has come is not lengthened.
    fn decide_width(&mut self, until: Until, hopeless: bool) -> Decision {
        let known = self.observed.known(&mut self.seen);
        if hopeless || is_reached(until, known) {
            // Closed for good: a later look may find the interval wider again.
            self.times_max = self.times;
            return self.as_before();
        }
        self.lengthen();
        let note = format!(
            "{} is known {}, {} is wished: the level goes on to {} times its planned length",
            until.figure,
            in_words(known),
            percent(until.half_width),
            self.times
        );
        Decision { note: Some(note), ..self.as_before() }
    }

    fn lengthen(&mut self) {
        self.times = self.times.saturating_mul(2).min(self.times_max);
        self.reach = self.planned.times(self.times);
    }

    fn as_before(&self) -> Decision {
        Decision { reach: self.reach, open: self.is_open(), stop: false, note: None }
    }

    /// What became of the wish, by all that was seen, and how far the leg was to go.
    pub(crate) fn end(mut self) -> Watched {
        let mut watched = Watched { reach: self.reach, lengthened: None, judged: None };
        match self.wish {
            Wish::Side(decide) => {
                let judged = side::judge(&decide, &mut self.seen, 0);
                // The last few requests may move a bound back over the target by a hair: it was decided before.
                let outcome = match judged.outcome {
                    Judgement::Undecided => self.decided.unwrap_or(Judgement::Undecided),
                    outcome => outcome,
                };
                let judged =
                    Judged { outcome, times: self.times, stopped_early: self.stopped.is_some(), ..judged };
                // What was open then has ended by now, some of it by our giving it up.
                let stopped = |why| Judged { outcome: Judgement::Fail, why, ..judged };
                watched.judged = Some(self.stopped.map_or(judged, stopped));
            }
            Wish::Width(until) => {
                let known = self.observed.known(&mut self.seen);
                watched.lengthened = Some(Lengthened {
                    times: self.times,
                    reached: is_reached(until, known),
                    value: known.map(|known| known.value),
                    low: known.map(|known| known.interval.low),
                    high: known.map(|known| known.interval.high),
                });
            }
        }
        watched
    }
}

/// How a leg stands when a decision is made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Standing {
    /// Time since its start.
    pub(crate) elapsed: Duration,
    /// Requests sent.
    pub(crate) sent: u64,
    /// Requests that have not ended and have missed a limit by now.
    pub(crate) overdue: u64,
    /// Nothing but failures has come so far.
    pub(crate) hopeless: bool,
}

fn is_reached(until: Until, known: Option<Known>) -> bool {
    known.is_some_and(|known| known.half_width() <= until.half_width)
}

fn in_words(known: Option<Known>) -> String {
    match known.map(|known| known.half_width()).filter(|half| half.is_finite()) {
        Some(half) => format!("to ±{}", percent(half)),
        None => "by too few independent requests".to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::metric::Metric;
    use crate::plan::{Arrivals, Load, Slo};
    use crate::stats::Quantile;
    use crate::time::Stamp;

    fn watch(load: Load, stop: Stop) -> Watch {
        let figure = Figure::Quantile(Metric::Ttft, Quantile::P50);
        let wish = Wish::Width(Until { figure, half_width: 0.05, times_max: 6 });
        let observed = Observed { figure, slo: Slo::default(), from_plan: false };
        Watch::new(wish, observed, &Level { load, stop, warmups: 0, ..Level::default() })
    }

    fn by_time(length_s: f64) -> Watch {
        watch(Load::closed(4), Stop { units: None, duration_s: Some(length_s), grace_s: 1.0 })
    }

    fn seen(n: u64, spread: f64) -> Vec<Observation> {
        let value = |i: u64| 100.0 * (1.0 + spread * ((i * 7919 % 1009) as f64 / 1009.0 - 0.5));
        (0..n)
            .map(|i| Observation { plan: Stamp::from_millis(i), value: value(i), good: true, failed: false })
            .collect()
    }

    #[test]
    fn a_leg_is_doubled_up_to_its_longest_and_then_ends() {
        let mut watch = by_time(10.0);
        let mut lengths = Vec::new();
        while watch.is_open() {
            let decision = watch.decide(Standing::default());
            assert_eq!(decision.open, watch.is_open());
            assert!(decision.note.unwrap().contains("by too few independent requests"));
            lengths.push(decision.reach.length.as_secs());
        }
        assert_eq!(lengths, [20, 40, 60], "two, four, and six times, the most that is allowed");
        let planned = Stop { units: Some(7), duration_s: Some(10.0), grace_s: 1.0 };
        let longest = Stop { units: Some(42), duration_s: Some(60.0), grace_s: 1.0 };
        assert_eq!(by_time(10.0).longest_stop(&planned), longest);
        let Watched { lengthened, reach, judged } = watch.end();
        let lengthened = lengthened.unwrap();
        assert_eq!(judged, None);
        assert_eq!((lengthened.times, lengthened.reached, lengthened.value), (6, false, None));
        assert_eq!(reach.length.as_secs(), 60);
    }

    #[test]
    fn it_ends_as_planned_when_the_figure_is_known() {
        let mut watch = by_time(10.0);
        watch.take(seen(2000, 0.1));
        let decision = watch.decide(Standing::default());
        assert_eq!((decision.reach.length.as_secs(), decision.open, decision.note), (10, false, None));
        // What comes later may be wild: the decision stands.
        watch.take(seen(50, 30.0));
        assert!(!watch.is_open() && !watch.is_due(Duration::MAX, u64::MAX));
        assert_eq!(watch.end().lengthened.unwrap().times, 1);
    }

    #[test]
    fn it_goes_on_once_and_then_knows() {
        let mut watch = by_time(10.0);
        watch.take(seen(40, 3.0));
        assert!(watch.decide(Standing::default()).note.unwrap().contains("2 times"));
        watch.take(seen(4000, 0.1));
        assert!(!watch.decide(Standing::default()).open);
        let Watched { lengthened, reach, judged } = watch.end();
        let lengthened = lengthened.unwrap();
        assert_eq!(judged, None);
        assert_eq!((lengthened.times, lengthened.reached, reach.length.as_secs()), (2, true, 20));
        assert!(lengthened.low < lengthened.value && lengthened.value < lengthened.high);
    }

    /// Peeking at the data costs little of the 95 %, which are on the safe side: independent values, a median wished to
    /// 5 %, four looks. 381 of 400 held.
    #[test]
    fn an_interval_that_was_waited_for_holds_about_as_often_as_it_says() {
        let (mut waited, mut held) = (0, 0);
        for round in 0..400 {
            let mut draws = crate::rng::stream(round, crate::rng::Purpose::Choice, 7);
            let mut watch = watch_units(Load::closed(1), 64);
            watch.times_max = 16;
            let mut sent = 0;
            loop {
                let more = watch.reach.units - sent;
                sent = watch.reach.units;
                watch.take(
                    (0..more)
                        .map(|i| Observation {
                            plan: Stamp::from_millis(sent + i),
                            value: 1.0 + crate::rng::unit(&mut draws),
                            good: true,
                            failed: false,
                        })
                        .collect(),
                );
                if !watch.is_open() || !watch.decide(Standing::default()).open {
                    break;
                }
            }
            let end = watch.end().lengthened.unwrap();
            waited += u32::from(end.times > 1);
            held += u32::from(end.low.unwrap() <= 1.5 && 1.5 <= end.high.unwrap());
        }
        assert!(
            waited > 300 && (370..=396).contains(&held),
            "{waited} waited, {held} of 400 hold the median"
        );
    }

    #[test]
    fn a_dead_server_is_not_loaded_longer() {
        let mut watch = by_time(10.0);
        let hopeless = Standing { hopeless: true, ..Standing::default() };
        let planned = watch.planned;
        assert_eq!(watch.decide(hopeless), Decision { reach: planned, open: false, stop: false, note: None });
    }

    #[test]
    fn decisions_are_due_before_the_end() {
        let watch = by_time(10.0);
        assert_eq!(watch.due_at(), Duration::from_millis(9500));
        assert!(!watch.is_due(Duration::from_millis(9499), u64::MAX - 1));
        assert!(watch.is_due(Duration::from_millis(9500), 0));
        assert_eq!(by_time(1.0).due_at(), Duration::from_millis(850), "never later than it takes");
        assert_eq!(by_time(0.1).due_at(), Duration::ZERO);
        let units = |load, units| watch_units(load, units);
        let closed = units(Load::closed(8), 100);
        assert!(
            !closed.is_due(Duration::MAX - Duration::from_secs(1), 83) && closed.is_due(Duration::ZERO, 84)
        );
        let open =
            Load { arrivals: Arrivals::Constant { rate: 100.0 }, cap: None, users: None, think_s: 0.0 };
        let open = units(open, 1000);
        assert!(!open.is_due(Duration::ZERO, 949) && open.is_due(Duration::ZERO, 950));
        assert!(units(Load::closed(8), 4).is_due(Duration::ZERO, 0), "a level of nothing knows nothing");
    }

    fn watch_units(load: Load, units: u64) -> Watch {
        watch(load, Stop { units: Some(units), duration_s: None, grace_s: 1.0 })
    }
}
