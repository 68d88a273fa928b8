use super::*;
use crate::plan::{Arrivals, Axis, Load, Stop};
use crate::run::Why;

fn judged(outcome: Judgement) -> Judged {
    Judged {
        outcome,
        why: Why::Attainment,
        confidence: 0.95,
        n: 100,
        good: 90,
        failed: 0,
        lower: 0.8,
        upper: 1.0,
        times: 1,
        stopped_early: false,
    }
}

/// A whole search against a server of which `outcome` says what becomes of a load, with all its steps.
fn searched(search: &Search, outcome: impl Fn(f64, Stage) -> Judgement) -> (Vec<(f64, Stage)>, Answer) {
    let mut trials: Vec<Trial> = Vec::new();
    while let Step::Try { load, stage } = next(search, &trials) {
        assert!(trials.len() < 200, "{trials:?}");
        assert!(load > 0.0 && (stage == Stage::Overload || load <= search.max));
        trials.push(Trial {
            load,
            stage,
            judged: Some(judged(outcome(load, stage))),
            medians: Medians::default(),
            limits: Vec::new(),
            flow: None,
            too_long: false,
        });
    }
    (trials.iter().map(|trial| (trial.load, trial.stage)).collect(), answer(search, &trials, false))
}

fn up_to(capacity: f64) -> impl Fn(f64, Stage) -> Judgement {
    move |load, _| if load <= capacity { Judgement::Pass } else { Judgement::Fail }
}

const USERS: Search = Search::along(Axis::Concurrency);

#[test]
fn it_doubles_halves_what_is_between_and_confirms() {
    use Stage::{Bisect, Bracket, Confirm};
    let (steps, answer) = searched(&USERS, up_to(13.0));
    let expected = [
        (1.0, Bracket),
        (2.0, Bracket),
        (4.0, Bracket),
        (8.0, Bracket),
        (16.0, Bracket),
        (12.0, Bisect),
        (14.0, Bisect),
        (13.0, Bisect),
        (13.0, Confirm),
    ];
    assert_eq!(steps, expected);
    assert_eq!((answer.low, answer.high, answer.ending), (Some(13.0), Some(14.0), Ending::Found));
    assert_eq!((answer.confidence, answer.decided, answer.requests), (0.99, true, 900));
    assert_eq!(answer.non_monotone, Vec::<[f64; 2]>::new());
}

#[test]
fn whole_capacities_are_found_to_a_tenth_and_rates_as_well() {
    for capacity in 1..600 {
        let (steps, answer) = searched(&USERS, up_to(f64::from(capacity)));
        let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
        let capacity = f64::from(capacity);
        assert!(low <= capacity && capacity < high, "{low} {capacity} {high}");
        assert!(high - low <= (0.1 * low).max(1.0));
        assert!(steps.len() < 20);
    }
    let rates = Search { start: 2.0, ..Search::along(Axis::Rate) };
    for step in 1..500 {
        let capacity = 0.01 * 1.03f64.powi(step);
        let (_, answer) = searched(&rates, up_to(capacity));
        let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
        assert!(low <= capacity && capacity < high, "{low} {capacity} {high}");
        assert!(high - low <= 0.101 * low, "{low} {high}");
    }
}

#[test]
fn a_first_load_that_does_not_hold_is_halved() {
    let from = Search { start: 40.0, ..USERS };
    let (steps, answer) = searched(&from, up_to(3.0));
    let loads: Vec<f64> = steps.iter().map(|(load, _)| *load).collect();
    assert_eq!(loads, [40.0, 20.0, 10.0, 5.0, 2.0, 3.0, 4.0, 3.0]);
    assert_eq!((answer.low, answer.high), (Some(3.0), Some(4.0)));
}

#[test]
fn nothing_holds_and_all_hold() {
    let (steps, none) = searched(&USERS, up_to(0.0));
    assert_eq!((steps.len(), none.low, none.high, none.ending), (1, None, Some(1.0), Ending::NothingHolds));
    let rates = Search { start: 8.0, ..Search::along(Axis::Rate) };
    let (steps, none) = searched(&rates, up_to(0.0));
    assert_eq!((none.low, none.ending), (None, Ending::NothingHolds));
    assert!(steps.len() <= 11 && none.high < Some(0.02), "{steps:?}");
    let (steps, all) = searched(&Search { max: 100.0, ..USERS }, up_to(f64::INFINITY));
    assert_eq!(steps.last(), Some(&(100.0, Stage::Confirm)));
    assert_eq!((all.low, all.high, all.ending, all.decided), (Some(100.0), None, Ending::AllHold, true));
}

#[test]
fn a_confirmation_that_fails_steps_down() {
    let (steps, answer) = searched(&USERS, |load, stage| match stage {
        Stage::Confirm if load > 11.0 => Judgement::Fail,
        _ => up_to(13.0)(load, stage),
    });
    assert_eq!(steps[8..], [(13.0, Stage::Confirm), (12.0, Stage::Confirm), (11.0, Stage::Confirm)]);
    assert_eq!((answer.low, answer.high, answer.ending), (Some(11.0), Some(12.0), Ending::Found));
    // 13 held and did not, 12 did not while 12 and 13 held: that is said.
    assert_eq!(answer.non_monotone, [[12.0, 12.0], [12.0, 13.0], [13.0, 13.0]]);
    let (_, nothing) = searched(&USERS, |load, stage| match stage {
        Stage::Confirm => Judgement::Fail,
        _ => up_to(13.0)(load, stage),
    });
    assert_eq!((nothing.low, nothing.high, nothing.ending), (None, Some(1.0), Ending::NothingHolds));
}

/// Undecided loads send the search downwards, and are no end of the answer: it goes up to one that fails.
#[test]
fn what_stays_undecided_lies_within_the_answer() {
    use Stage::{Confirm, Settle};
    let outcome = |load, _| match load {
        load if load <= 10.0 => Judgement::Pass,
        load if load < 14.0 => Judgement::Undecided,
        _ => Judgement::Fail,
    };
    let (steps, answer) = searched(&USERS, outcome);
    assert_eq!(steps[steps.len() - 3..], [(10.0, Confirm), (14.0, Settle), (13.0, Settle)]);
    assert_eq!((answer.low, answer.high, answer.decided), (Some(10.0), Some(14.0), true));
    assert_eq!((answer.undecided, answer.ending), (vec![11.0, 12.0, 13.0], Ending::Found));
    // Where the confirmation stays undecided as well, the answer begins one step further down.
    let (steps, answer) = searched(&USERS, |load, stage| match stage {
        Confirm if load > 9.0 => Judgement::Undecided,
        _ => outcome(load, stage),
    });
    assert_eq!(steps[steps.len() - 4..], [(10.0, Confirm), (9.0, Confirm), (14.0, Settle), (13.0, Settle)]);
    assert_eq!((answer.low, answer.high, answer.decided), (Some(9.0), Some(14.0), true));
    assert_eq!(answer.undecided, [10.0, 11.0, 12.0, 13.0]);
}

#[test]
fn where_nothing_fails_the_upper_end_is_undecided_and_said_to_be() {
    let search = Search { max: 50.0, ..USERS };
    let (steps, answer) = searched(&search, |load, _| match load {
        load if load <= 10.0 => Judgement::Pass,
        _ => Judgement::Undecided,
    });
    assert_eq!(steps[steps.len() - 2..], [(32.0, Stage::Settle), (50.0, Stage::Settle)]);
    assert_eq!((answer.low, answer.high, answer.decided), (Some(10.0), Some(11.0), false));
    let rates = Search { overload: true, ..Search::along(Axis::Rate) };
    let (steps, answer) = searched(&rates, |load, _| match load {
        load if load <= 3.0 => Judgement::Pass,
        load if load < 4.5 => Judgement::Undecided,
        _ => Judgement::Fail,
    });
    let beyond: Vec<_> = steps.iter().rev().take(2).rev().map(|(_, stage)| *stage).collect();
    assert_eq!(beyond, [Stage::Overload, Stage::Recovery]);
    assert_eq!((answer.low, answer.decided), (Some(3.0), true), "{steps:?}");
    let overload = steps.iter().find(|(_, stage)| *stage == Stage::Overload);
    assert_eq!(overload.map(|(load, _)| *load), answer.high.map(|high| 2.0 * high));
}

#[test]
fn an_overload_is_followed_by_the_same_load_again() {
    let search = Search { overload: true, ..USERS };
    let (steps, answer) = searched(&search, up_to(4.0));
    assert_eq!(steps[steps.len() - 2..], [(10.0, Stage::Overload), (4.0, Stage::Recovery)]);
    assert_eq!(answer.recovered, Some(true));
    let of = |then: Judgement| {
        let outcome =
            move |load, stage| if stage == Stage::Recovery { then } else { up_to(4.0)(load, stage) };
        searched(&search, outcome).1.recovered
    };
    assert_eq!((of(Judgement::Fail), of(Judgement::Undecided)), (Some(false), None));
}

/// The search is a function of its trials: cut anywhere it goes on as if it had not been.
#[test]
fn a_search_that_was_cut_goes_on_from_its_trials() {
    let (steps, _) = searched(&USERS, up_to(13.0));
    let trials: Vec<Trial> = steps
        .iter()
        .map(|&(load, stage)| Trial {
            load,
            stage,
            judged: Some(judged(up_to(13.0)(load, stage))),
            medians: Medians::default(),
            limits: Vec::new(),
            flow: None,
            too_long: false,
        })
        .collect();
    for (cut, &(load, stage)) in steps.iter().enumerate() {
        assert_eq!(next(&USERS, &trials[..cut]), Step::Try { load, stage });
        let broken_off = answer(&USERS, &trials[..cut], true);
        assert_eq!(broken_off.ending, Ending::BrokenOff);
        assert_eq!(broken_off.confidence, 0.95);
    }
    assert_eq!(next(&USERS, &trials), Step::Over);
}

#[test]
fn levels_are_long_enough_for_their_question() {
    let stop = Stop { units: Some(100), ..Stop::default() };
    let users = Level { load: Load::closed(1), stop: stop.clone(), warmups: 2, ..Level::default() };
    let tried = |load, times| Trial {
        load,
        stage: Stage::Bisect,
        judged: Some(Judged { times, ..judged(Judgement::Pass) }),
        medians: Medians { e2e_ms: Some(2500.0), ..Medians::default() },
        limits: Vec::new(),
        flow: None,
        too_long: false,
    };
    let of = |load, stage| level(&USERS, &users, &[tried(4.0, 2)], load, stage);
    assert_eq!((of(4.0, Stage::Bisect).load.users, of(4.0, Stage::Bisect).stop.units), (Some(4), Some(100)));
    assert_eq!(of(50.0, Stage::Bracket).stop.units, Some(400), "eight requests of each user");
    let confirm = of(4.0, Stage::Confirm);
    assert_eq!((confirm.stop.units, confirm.decide.unwrap().confidence), (Some(600), 0.99));
    assert_eq!(of(8.0, Stage::Overload).decide, None);
    let arrivals = Arrivals::Gamma { rate: 1.0, burstiness: 0.5 };
    let open = Level { load: Load { arrivals, cap: Some(9), users: None, think_s: 0.0 }, ..users.clone() };
    let rates = Search::along(Axis::Rate);
    let tries = [tried(4.0, 1)];
    let of = |load, trials: &[Trial]| level(&rates, &open, trials, load, Stage::Bisect);
    assert_eq!(of(40.0, &[]).stop.units, Some(400), "ten seconds");
    let slow = of(40.0, &tries);
    assert_eq!(slow.stop.units, Some(1000), "ten times 2.5 s");
    assert_eq!(
        (slow.load.arrivals, slow.load.cap),
        (Arrivals::Gamma { rate: 40.0, burstiness: 0.5 }, Some(9))
    );
}

#[test]
fn too_few_requests_decide_nothing_and_lower_loads_would_not_either() {
    let undecided = Judged { good: 100, upper: 1.0, lower: 0.7, ..judged(Judgement::Undecided) };
    let trial = Trial {
        load: 1.0,
        stage: Stage::Bracket,
        judged: Some(undecided),
        medians: Medians::default(),
        limits: Vec::new(),
        flow: None,
        too_long: false,
    };
    let search = Search::along(Axis::Speedup);
    let trials = [trial];
    assert_eq!(next(&search, &trials), Step::Over);
    let answer = answer(&search, &trials, false);
    assert_eq!((answer.low, answer.ending), (None, Ending::TooFew));
}

/// A quick look at a server that holds up to `capacity` users, of whom one alone is not decided.
fn quick(
    alone: Judgement,
    good: u64,
    of_others: impl Fn(f64, Stage) -> Judgement,
) -> (Vec<(f64, Stage)>, Answer) {
    let search = Search { start: 4.0, within_s: Some(75.0), ..USERS };
    let mut trials: Vec<Trial> = Vec::new();
    while let Step::Try { load, stage } = next(&search, &trials) {
        assert!(trials.len() < 50, "{trials:?}");
        let is_alone = stage == Stage::Alone;
        let outcome = if is_alone { alone } else { of_others(load, stage) };
        let n = if is_alone { 9 } else { 100 };
        let judged = Judged { n, good: if is_alone { good } else { 90 }, ..judged(outcome) };
        let (judged, medians) = (Some(judged), Medians::default());
        trials.push(Trial { load, stage, judged, medians, limits: Vec::new(), flow: None, too_long: false });
    }
    (trials.iter().map(|trial| (trial.load, trial.stage)).collect(), answer(&search, &trials, false))
}

#[test]
fn a_quick_look_begins_with_one_user_and_goes_on_with_four() {
    use Stage::{Alone, Bisect, Bracket, Confirm};
    for alone in [Judgement::Undecided, Judgement::Pass] {
        let (steps, answer) = quick(alone, 9, up_to(5.0));
        let expected =
            [(1.0, Alone), (4.0, Bracket), (8.0, Bracket), (6.0, Bisect), (5.0, Bisect), (5.0, Confirm)];
        assert_eq!(steps, expected);
        assert_eq!((answer.low, answer.high), (Some(5.0), Some(6.0)));
        assert_eq!(answer.non_monotone, Vec::<[f64; 2]>::new(), "what is open contradicts nothing");
    }
    let (steps, answer) = quick(Judgement::Undecided, 9, up_to(1.0));
    assert_eq!(steps, [(1.0, Alone), (4.0, Bracket), (2.0, Bracket), (1.0, Bracket), (1.0, Confirm)]);
    assert_eq!((answer.low, answer.high), (Some(1.0), Some(2.0)));
}

#[test]
fn a_user_alone_who_misses_limits_is_looked_at_before_more_come() {
    let (steps, answer) = quick(Judgement::Fail, 1, up_to(5.0));
    assert_eq!((steps.len(), answer.ending, answer.high), (1, Ending::NothingHolds, Some(1.0)));
    let (steps, _) = quick(Judgement::Undecided, 8, up_to(5.0));
    assert_eq!(steps[..3], [(1.0, Stage::Alone), (1.0, Stage::Bracket), (4.0, Stage::Bracket)]);
}

#[test]
fn a_quick_confirmation_that_decides_nothing_leaves_what_held_once() {
    let (steps, answer) = quick(Judgement::Undecided, 9, |load, stage| match stage {
        Stage::Confirm => Judgement::Undecided,
        _ => up_to(5.0)(load, stage),
    });
    assert_eq!(steps.last(), Some(&(5.0, Stage::Confirm)));
    assert_eq!((answer.low, answer.high, answer.confidence), (Some(5.0), Some(6.0), 0.95));
    assert_eq!(answer.ending, Ending::Found);
}

#[test]
fn what_held_once_is_not_lost_where_time_is_up_behind_a_confirmation() {
    let of = |load, stage, outcome| Trial {
        load,
        stage,
        judged: Some(judged(outcome)),
        medians: Medians::default(),
        limits: Vec::new(),
        flow: None,
        too_long: false,
    };
    let trials = [
        of(4.0, Stage::Bracket, Judgement::Pass),
        of(8.0, Stage::Bracket, Judgement::Pass),
        of(9.0, Stage::Bracket, Judgement::Fail),
        of(8.0, Stage::Confirm, Judgement::Fail),
    ];
    let left = answer(&USERS, &trials, true);
    assert_eq!((left.low, left.high, left.ending), (Some(4.0), Some(8.0), Ending::BrokenOff));
    assert_eq!((left.confidence, answer(&USERS, &trials, false).low), (0.95, None));
}
