//! A quick look at modelled servers, in virtual time: it ends in time, finds what they bear, and names the slots that they
//! have, or none.

use tokload::mock::Settings;
use tokload::model::{self, Batching, Cost, Fixed, Router, Serving};
use tokload::plan::{Plan, Slo};
use tokload::run::LevelResult;
use tokload::strategy::first_look::{self, Glance};
use tokload::strategy::{Cause, Ending, Found, Stage};

use crate::rig::{plan_for, search};

/// Seconds that a look may take.
const WITHIN_S: f64 = 75.0;
const COST: Cost = Cost { base_ms: 8.0, per_sequence_ms: 0.5, per_prefill_token_ms: 0.1 };

/// A look at a server whose first request has shown these times, as `quick` would plan it.
fn look(serving: Serving, times: (f64, f64)) -> (Found, Vec<LevelResult>) {
    look_within(WITHIN_S, serving, times)
}

fn look_within(within_s: f64, serving: Serving, (ttft_ms, tpot_ms): (f64, f64)) -> (Found, Vec<LevelResult>) {
    let glance = Glance { ttft_ms, tpot_ms: Some(tpot_ms) };
    let mut plan: Plan = plan_for(1);
    plan.workload.input_words = 128.into();
    let tokens = first_look::answer_tokens(glance, within_s);
    plan.workload.output_tokens = tokens.into();
    let usual = Slo { ttft_ms: Some(500.0), tpot_ms: Some(50.0), ..Slo::default() };
    plan.slo = first_look::limits(glance, usual);
    first_look::set(&mut plan, first_look::answer_ms(glance, tokens), within_s);
    plan.validate().unwrap();
    let (found, levels) =
        search(&plan, Settings { serving: model::Settings::serving(serving), ..Settings::default() });
    let took_s = (levels.last().unwrap().span.t2 - levels[0].span.t0).as_secs_f64();
    assert!(took_s <= within_s, "{took_s} s");
    assert_eq!((found.trials[0].load, found.trials[0].stage), (1.0, Stage::Alone));
    (found, levels)
}

fn of(server: Batching) -> Found {
    let cost = server.cost;
    look(Serving::Batching(server), (cost.step_ms(1, 128), cost.step_ms(1, 0))).0
}

/// A server of so many slots, whose steps vary a little.
fn with(slots: u32) -> Batching {
    Batching { slots, noise: 0.1, cost: COST, ..Batching::default() }
}

fn slots(found: &Found) -> Option<u32> {
    found.slots.map(|slots| slots.slots)
}

/// Users beyond the slots wait for half a second and more.
#[track_caller]
fn is_found_with(server: Batching, true_slots: u32) {
    let found = of(server);
    assert_eq!(slots(&found), Some(true_slots), "{found:?}");
    let answer = &found.answer;
    let (low, high) = (answer.low.unwrap(), answer.high.unwrap());
    assert!(low <= f64::from(true_slots) && f64::from(true_slots) < high, "{answer:?}");
    assert_eq!((answer.ending, answer.confidence), (Ending::Found, 0.99), "{answer:?}");
    assert_eq!(answer.non_monotone, Vec::<[f64; 2]>::new());
}

#[test]
fn one_slot_is_named() {
    is_found_with(with(1), 1);
}

#[test]
fn two_slots_are_named() {
    is_found_with(with(2), 2);
}

#[test]
fn four_slots_are_named() {
    is_found_with(with(4), 4);
}

#[test]
fn eight_slots_are_named() {
    is_found_with(with(8), 8);
}

/// Two replicas of two slots serve four.
#[test]
fn slots_of_several_replicas_are_those_of_all() {
    let server = Batching { replicas: 2, router: Router::LeastLoaded, ..with(2) };
    assert_eq!(slots(&of(server)), Some(4));
}

/// Whoever comes is served, and slows the others down.
#[test]
fn a_server_without_slots_has_none() {
    let cost = Cost { per_sequence_ms: 6.0, ..COST };
    let found = of(Batching { slots: u32::MAX, cost, ..with(1) });
    assert_eq!(slots(&found), None, "{found:?}");
    assert_eq!(found.binding.unwrap().cause, Cause::SlowerTokens);
}

/// Prompts are computed together with what else there is, which makes them wait in a line of their own.
#[test]
fn slow_prompts_are_no_slots() {
    let cost = Cost { base_ms: 4.0, per_sequence_ms: 0.1, per_prefill_token_ms: 1.5 };
    let found = of(Batching { slots: u32::MAX, cost, ..with(1) });
    assert_eq!(slots(&found), None, "{found:?}");
}

/// TTFT grows by 80 ms with each request in flight, and nobody waits for anybody's end.
#[test]
fn a_growing_ttft_alone_is_no_slots() {
    let fixed = Fixed { ttft_ms: 0.0, ttft_per_in_flight_ms: 80.0, itl_ms: 10.0, ..Fixed::default() };
    let (found, _) = look(Serving::Fixed(fixed), (80.0, 10.0));
    assert_eq!(slots(&found), None, "{found:?}");
    assert!(found.answer.low.is_some_and(|low| (4.0..=6.0).contains(&low)), "{:?}", found.answer);
}

/// A token takes 300 ms and a prompt three seconds: a single request of 16 tokens takes eight.
#[test]
fn a_very_slow_server_is_left_in_time_with_what_one_user_has() {
    let cost = Cost { base_ms: 300.0, per_sequence_ms: 10.0, per_prefill_token_ms: 25.0 };
    let (found, levels) = look(Serving::Batching(Batching { slots: 4, cost, ..with(4) }), (3510.0, 310.0));
    assert_eq!(found.answer.ending, Ending::BrokenOff, "{:?}", found.answer);
    assert!(found.trials[0].medians.tpot_ms.is_some() && levels.len() < 4, "{:?}", found.trials);
}

/// Where nothing ends, the level of one user ends in time all the same.
#[test]
fn a_server_that_never_answers_in_time_is_left() {
    let fixed = Fixed { ttft_ms: 600e3, itl_ms: 1.0, ..Fixed::default() };
    let (found, levels) = look(Serving::Fixed(fixed), (0.0, 0.0));
    assert_eq!((found.answer.low, levels.len()), (None, 1), "{:?}", found.answer);
}

/// What `quick --max-time 15` and `20` leave for loads, at the speeds of the built-in mock server.
#[test]
fn a_short_look_has_an_answer_too() {
    for within_s in [9.0, 13.0, 15.0] {
        let server = with(4);
        let first = (server.cost.step_ms(1, 128), server.cost.step_ms(1, 0));
        let (found, _) = look_within(within_s, Serving::Batching(server), first);
        let answer = &found.answer;
        assert!(answer.low.is_some_and(|low| (4.0..=8.0).contains(&low)), "{within_s}: {answer:?}");
        assert!(found.trials.len() > 1, "{within_s}: {found:?}");
    }
}
