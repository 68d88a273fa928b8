//! A search for capacity against modelled servers: exact in virtual time, and the same from the command line.

#[path = "find_capacity/server.rs"]
mod server;

use server::{Question, Server, TRUTH_REQUESTS};
use tokload::model::{self, Fixed, Serving};
use tokload::plan::{Axis, Load, Search, Slo};
use tokload::run::{Judgement, Why};
use tokload::strategy::{Cause, Ending, Found, Stage};

/// TTFT is 80 ms for each request in flight, and may be 360 ms: capacity is 4.
fn eighty_ms_each() -> (Question, Server) {
    let question = Question {
        name: "four",
        search: Search::along(Axis::Concurrency),
        load: Load::closed(1),
        slo: Slo { ttft_ms: Some(360.0), ..Slo::default() },
    };
    let fixed = Fixed { ttft_ms: 0.0, ttft_per_in_flight_ms: 80.0, itl_ms: 10.0, ..Fixed::default() };
    (question, Server { model: model::Settings::serving(Serving::Fixed(fixed)) })
}

fn loads(found: &Found) -> Vec<(f64, Stage)> {
    found.trials.iter().map(|trial| (trial.load, trial.stage)).collect()
}

#[test]
fn four_requests_at_once_are_found_exactly_whatever_the_seed() {
    use Stage::{Bisect, Bracket, Confirm};
    let (question, server) = eighty_ms_each();
    for seed in 1..=5 {
        let found = server.search(&question, seed);
        let expected = [
            (1.0, Bracket),
            (2.0, Bracket),
            (4.0, Bracket),
            (8.0, Bracket),
            (6.0, Bisect),
            (5.0, Bisect),
            (4.0, Confirm),
        ];
        assert_eq!(loads(&found), expected);
        let answer = &found.answer;
        assert_eq!((answer.low, answer.high, answer.ending), (Some(4.0), Some(5.0), Ending::Found));
        assert_eq!((answer.confidence, answer.decided), (0.99, true));
    }
    let truth = server.truth(&question, 40);
    assert_eq!((truth.low, truth.high), (4.0, 4.0), "{}", question.name);
}

/// 16 slots, of which one user takes one: a prompt of n tokens is computed in a step of 10 + 0.5 + 0.05 n ms, which is its
/// TTFT but for the nanosecond that it is on the way. At 3000 tokens that is 160.5 ms, at 3001 it is 160.55 ms.
#[test]
fn the_longest_prompt_is_what_the_cost_of_a_prefill_leaves() {
    let question = Question {
        name: "prompts",
        search: Search { start: 2990.0, max: 3010.0, tolerance: 1e-6, ..Search::along(Axis::InputLen) },
        load: Load::closed(1),
        slo: Slo { ttft_ms: Some(160.52), ..Slo::default() },
    };
    let found = Server::course().search(&question, 1);
    let answer = &found.answer;
    assert_eq!((answer.low, answer.high, answer.ending), (Some(3000.0), Some(3001.0), Ending::Found));
    assert_eq!((answer.confidence, answer.decided), (0.99, true));
    let tried: Vec<f64> = found.trials.iter().map(|trial| trial.load).collect();
    assert_eq!(tried, [2990.0, 3010.0, 3000.0, 3005.0, 3002.0, 3001.0, 3000.0]);
    let ttft = |load| found.trials.iter().find(|trial| trial.load == load).unwrap().medians.ttft_ms.unwrap();
    // As exact as the histogram: 1 in 256.
    assert!((ttft(2990.0) - 160.0).abs() < 0.7);
}

/// An answer of m tokens to a prompt of 200 takes 20.5 ms and m - 1 steps of 10.5 ms: 535 ms for 50.
#[test]
fn the_longest_answer_is_what_its_pace_leaves() {
    let question = Question {
        name: "answers",
        search: Search { tolerance: 1e-6, max: 100.0, ..Search::along(Axis::OutputLen) },
        load: Load::closed(1),
        slo: Slo { e2e_ms: Some(535.01), ..Slo::default() },
    };
    let found = Server::course().search(&question, 1);
    assert_eq!((found.answer.low, found.answer.high), (Some(50.0), Some(51.0)));
}

#[test]
fn a_level_that_cannot_hold_any_more_is_stopped_and_one_that_holds_is_not_cut() {
    let (question, server) = eighty_ms_each();
    let found = server.search(&question, 1);
    for trial in &found.trials {
        let judged = trial.judged.unwrap();
        assert_eq!(judged.stopped_early, trial.load > 4.0, "{trial:?}");
        match trial.stage {
            Stage::Confirm => assert_eq!((judged.n, judged.confidence), (300, 0.99)),
            _ if trial.load <= 4.0 => assert_eq!((judged.n, judged.good, judged.times), (100, 100, 1)),
            _ => {
                assert_eq!((judged.outcome, judged.why), (Judgement::Fail, Why::Attainment));
                assert!(judged.n < 100 && judged.failed == 0, "{judged:?}");
            }
        }
    }
}

/// With a hundred requests a tenth of which just fails, nothing is decided at once.
#[test]
fn what_is_not_decided_is_lengthened() {
    let mut question = Question::rate();
    question.search.times_max = 4;
    let found = Server::course().search(&question, 3);
    let longest = found.trials.iter().filter_map(|trial| trial.judged).map(|judged| judged.times).max();
    assert!((2..=4).contains(&longest.unwrap()), "{:?}", loads(&found));
    for trial in &found.trials {
        let judged = trial.judged.unwrap();
        let expected = match judged.outcome {
            Judgement::Pass => judged.lower > 0.88,
            Judgement::Fail => judged.upper < 0.9 || judged.stopped_early,
            Judgement::Undecided => judged.lower < 0.9 && judged.upper >= 0.9,
        };
        assert!(expected, "{judged:?}");
    }
}

/// 16 slots: the sixteenth user is served at once, the seventeenth waits for an end.
#[test]
fn the_search_and_long_simulations_agree_on_the_slots() {
    let (question, server) = (Question::users(), Server::course());
    let truth = server.truth(&question, TRUTH_REQUESTS / 500);
    let found = server.search(&question, 1);
    let (low, high) = (found.answer.low.unwrap(), found.answer.high.unwrap());
    assert!(truth.is_within(low, high), "{low} {truth} {high}");
    assert!(high - low <= 2.0, "{low} {high}");
}

/// The usual rule, 64 requests and a share of 90 %, is wrong about as often as a coin; how often, the benchmark prints.
#[test]
fn the_usual_rule_comes_to_an_end_and_costs_less() {
    let (question, server) = eighty_ms_each();
    let naive = server.naive(&question, 1);
    assert_eq!((naive.low, naive.high), (4.0, 5.0));
    assert_eq!(naive.requests, 6 * 64);
}

#[test]
fn without_records_no_cause_is_named_and_with_medians_it_is() {
    // The search of the rig keeps no records: which limit binds is not known then.
    let (question, server) = eighty_ms_each();
    let found = server.search(&question, 1);
    assert_eq!(found.binding, None);
    let above = found.trials.iter().find(|trial| trial.load == 5.0).unwrap();
    let below = found.trials.iter().rev().find(|trial| trial.load == 4.0).unwrap();
    let mut looked_at = above.clone();
    looked_at.limits = vec![tokload::strategy::LimitHeld {
        name: "ttft".to_owned(),
        limit_ms: 360.0,
        missed: 20,
        kept_ms: Some(400.0),
    }];
    let binding = tokload::strategy::Binding::of(Axis::Concurrency, Some(below), &looked_at).unwrap();
    assert_eq!(binding.cause, Cause::Queueing);
}
