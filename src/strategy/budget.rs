//! How long a level of a quick look may last, so that the whole ends in time.
//!
//! A level takes requests over throughput, and what is open in the end takes an answer more. Throughput at a load is taken
//! from loads that were tried: users over E2E (Little's law), and as high at more users as at fewer. A server that does
//! worse than that is cut off by the length and the grace of the level, which together never exceed what is left.

use crate::plan::{Level, Search};
use crate::stats::Confidence;
use crate::strategy::{Stage, Trial, first_look};

/// `level`, cut to what `left_s` seconds allow behind `trials`; `None` where they do not even suffice to decide it.
///
/// The first level, of one user alone, is as long as it is, and decides what it can.
#[must_use]
pub fn cut(mut level: Level, stage: Stage, trials: &[Trial], left_s: f64) -> Option<Level> {
    let users = f64::from(level.load.users?);
    let decide = level.decide.as_mut()?;
    if stage == Stage::Alone {
        decide.times_max = 1;
        return Some(level);
    }
    let per_s = throughput(trials, users)?;
    let least_s = requests_to_decide(decide.target, decide.confidence).max(ROUNDS_MIN * users) / per_s;
    let room_s = left_s - DRAIN_MARGIN * users / per_s;
    if room_s < least_s {
        return None;
    }
    let share = if stage == Stage::Confirm { CONFIRM_SHARE } else { SHARE };
    let longest_s = (room_s * share).max(least_s * MARGIN).min(room_s);
    // Lengthened as far as that, a level is looked at now and then, and ends when it is decided.
    decide.times_max = if stage == Stage::Confirm { 1 } else { decide.times_max };
    level.stop.duration_s = Some(longest_s / f64::from(decide.times_max));
    level.stop.grace_s = left_s - longest_s;
    // The level before has warmed the server.
    level.warmups = 0;
    Some(level)
}

/// How long a look has to be, s, so that behind one user alone, whose answers take `e2e_s`, the first load can be decided.
///
/// More than one user is taken to have no more answers in a second than one alone had, as [`cut`] takes it.
#[must_use]
pub fn look_s(search: &Search, e2e_s: f64) -> f64 {
    let users = search.start;
    let least = requests_to_decide(search.target, Confidence::C95.level()).max(ROUNDS_MIN * users);
    (least + DRAIN_MARGIN * users) * e2e_s / (1.0 - first_look::ALONE_SHARE)
}

/// Requests per second that `users` have at least, as far as the loads that were tried tell.
fn throughput(trials: &[Trial], users: f64) -> Option<f64> {
    let of = |trial: &Trial| {
        let e2e_s = trial.medians.e2e_ms? / 1e3;
        (e2e_s > 0.0).then(|| trial.load.min(users) / e2e_s)
    };
    trials.iter().filter_map(of).reduce(f64::max)
}

/// Independent requests that, all of them good, show a share of `target` with `confidence`.
fn requests_to_decide(target: f64, confidence: f64) -> f64 {
    ((1.0 - confidence).ln() / target.ln()).ceil()
}

/// A user comes so often at least: what queues shows from the second time on.
const ROUNDS_MIN: f64 = 2.0;
/// The part of what is left that a level may take, lengthened as far as it goes, and a confirmation.
const SHARE: f64 = 0.4;
const CONFIRM_SHARE: f64 = 0.85;
/// Throughput may be lower than it was by so much, and the last answers take longer.
const MARGIN: f64 = 1.25;
const DRAIN_MARGIN: f64 = 1.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Axis, Load, Stop};
    use crate::strategy::Medians;

    const SEARCH: Search = Search { within_s: Some(75.0), times_max: 4, ..Search::along(Axis::Concurrency) };

    /// `users` at once whose answers took so long.
    fn trial(users: f64, e2e_ms: f64) -> Trial {
        let medians = Medians { e2e_ms: Some(e2e_ms), ..Medians::default() };
        Trial {
            load: users,
            stage: Stage::Bracket,
            judged: None,
            medians,
            limits: Vec::new(),
            flow: None,
            too_long: false,
        }
    }

    fn level(users: f64, stage: Stage) -> Level {
        let stop = Stop { units: Some(40), duration_s: Some(4.0), grace_s: 10.0 };
        let like = Level { load: Load::closed(1), stop, warmups: 1, ..Level::default() };
        let confidence = if stage == Stage::Confirm { Confidence::C99 } else { Confidence::C95 };
        SEARCH.level(&like, users, confidence, 1)
    }

    #[test]
    fn a_level_and_its_last_answers_end_within_what_is_left() {
        for e2e_ms in [1.0, 30.0, 500.0, 2000.0, 20_000.0] {
            for users in [1.0, 2.0, 4.0, 64.0, 1024.0] {
                for left_s in [-3.0, 0.0, 1.0, 10.0, 75.0] {
                    for stage in [Stage::Bracket, Stage::Bisect, Stage::Confirm] {
                        let trials = [trial(1.0, e2e_ms)];
                        let Some(cut) = cut(level(users, stage), stage, &trials, left_s) else { continue };
                        let longest_s =
                            cut.stop.duration_s.unwrap() * f64::from(cut.decide.unwrap().times_max);
                        assert!(longest_s > 0.0 && cut.stop.grace_s >= 1.5 * e2e_ms / 1e3, "{cut:?}");
                        assert!(longest_s + cut.stop.grace_s <= left_s + 1e-9, "{cut:?}");
                        assert_eq!(cut.warmups, 0);
                    }
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_decided_in_time_is_not_begun() {
        // One request at a time, a second each: 29 good ones show 90 % with 95 % confidence, and the last takes a second.
        let trials = [trial(1.0, 1000.0), trial(4.0, 4000.0)];
        let begun = |users, stage, left_s| cut(level(users, stage), stage, &trials, left_s).is_some();
        assert!(begun(1.0, Stage::Bracket, 30.6) && !begun(1.0, Stage::Bracket, 30.4));
        // 44 for 99 %, and four answers to come.
        assert!(begun(4.0, Stage::Confirm, 50.1) && !begun(4.0, Stage::Confirm, 49.9));
        assert_eq!(requests_to_decide(0.9, 0.95), 29.0);
        assert_eq!(requests_to_decide(0.9, 0.99), 44.0);
        assert_eq!(cut(level(4.0, Stage::Bracket), Stage::Bracket, &[], 75.0), None, "nothing is known");
    }

    #[test]
    fn a_look_as_long_as_is_said_has_time_for_its_first_load() {
        for e2e_ms in [20.0, 300.0, 2000.0] {
            let search = Search { start: 4.0, ..SEARCH };
            let left_s = look_s(&search, e2e_ms / 1e3) * (1.0 - first_look::ALONE_SHARE);
            let begun = |left_s| {
                cut(level(4.0, Stage::Bracket), Stage::Bracket, &[trial(1.0, e2e_ms)], left_s).is_some()
            };
            assert!(begun(left_s * 1.001) && !begun(left_s * 0.999), "{e2e_ms} ms: {left_s} s");
        }
    }

    #[test]
    fn a_level_may_be_lengthened_but_for_a_confirmation() {
        let trials = [trial(1.0, 20.0)];
        let of = |stage| {
            let cut = cut(level(4.0, stage), stage, &trials, 70.0).unwrap();
            (cut.stop.units, cut.decide.unwrap().times_max, cut.stop.duration_s.unwrap().round())
        };
        assert_eq!(of(Stage::Bracket), (Some(40), 4, 7.0));
        assert_eq!(of(Stage::Confirm), (Some(40), 1, 59.0));
    }

    #[test]
    fn one_user_alone_is_as_long_as_it_is() {
        let alone = cut(level(1.0, Stage::Alone), Stage::Alone, &[], 75.0).unwrap();
        assert_eq!((alone.stop, alone.warmups), (level(1.0, Stage::Alone).stop, 1));
        assert_eq!(alone.decide.unwrap().times_max, 1);
    }
}
