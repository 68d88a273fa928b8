//! The virtual engine: the whole path from body to record in virtual time, exact and repeatable.

use std::time::Duration;

use tokload::metrics::{Class, Flags, Record};
use tokload::model::{self, Batching, Fixed, Freeze, Serving};
use tokload::plan::{Arrivals, Level, Load, Plan, Stop, Until};
use tokload::run::LevelResult;
use tokload::stats::{Histogram, Quantile};

use crate::goldens::values;
use crate::rig;

/// 200 words in, 50 tokens out, as in the worked examples.
pub(crate) fn plan() -> Plan {
    let mut plan = rig::plan_for(1);
    plan.workload.input_words = 200.into();
    plan.workload.output_tokens = 50.into();
    plan.client.start_spread_us = 0.0;
    plan
}

/// The level and its measured records in the order of the plan.
pub(crate) fn run(plan: &Plan, server: model::Settings, level: &Level) -> (LevelResult, Vec<Record>) {
    let run = rig::simulate(plan, server, level);
    let mut records: Vec<Record> = run.measured().into_iter().copied().collect();
    records.sort_by_key(|record| record.index);
    (run.result, records)
}

fn level(load: Load, units: u64) -> Level {
    Level {
        load,
        stop: Stop { units: Some(units), duration_s: None, grace_s: 30.0 },
        warmups: 0,
        ..Level::default()
    }
}

pub(crate) fn batching(slots: u32) -> model::Settings {
    model::Settings::serving(Serving::Batching(Batching { slots, ..Batching::default() }))
}

/// What `units` requests to the server of the worked example give.
pub(crate) fn records_of(plan: &Plan, arrivals: Arrivals, units: u64) -> Vec<Record> {
    let load = Load { arrivals, cap: None, users: None, think_s: 0.0 };
    run(plan, model::Settings::course(), &level(load, units)).1
}

/// How much later than it is sent a simulated request arrives.
const ON_THE_WAY_NS: u64 = 1;

/// Golden LittleClosedLoop: W is 0.535, 0.64 and 1.06 s for 1, 4 and 16 users of a server without a slot limit.
#[test]
fn latencies_of_a_closed_loop_are_those_worked_out_by_hand() {
    for (users, e2e_ms) in [(1, 535.0), (4, 640.0), (16, 1060.0)] {
        let (_, records) = run(&plan(), batching(10_000), &level(Load::closed(users), u64::from(users) * 5));
        assert_eq!(records.len(), users as usize * 5);
        for record in &records {
            assert_eq!(record.outcome.class, Class::Ok);
            assert_eq!(record.e2e_ns(), Some((e2e_ms * 1e6) as u64 + ON_THE_WAY_NS), "{users} users");
            assert_eq!((record.prompt_tokens, record.output_tokens), (Some(200), Some(50)));
        }
    }
}

#[test]
fn a_simulation_repeats_bit_for_bit() {
    let load = Load { arrivals: Arrivals::Poisson { rate: 12.0 }, cap: None, users: None, think_s: 0.0 };
    let level = Level { warmups: 3, ..level(load, 200) };
    let first = run(&plan(), model::Settings::course(), &level);
    let second = run(&plan(), model::Settings::course(), &level);
    assert_eq!(first.1, second.1);
    assert_eq!(first.0.tally, second.0.tally);
    assert_eq!(first.1.len(), 200);
}

/// TTFT = 80 ms x requests in flight: at 4 users 320 ms, at 5 users 400 ms, so the capacity for 360 ms is 4.
#[test]
fn a_known_capacity_is_met_exactly() {
    let fixed = Fixed { ttft_ms: 0.0, ttft_per_in_flight_ms: 80.0, itl_ms: 0.001, ..Fixed::default() };
    let server = model::Settings::serving(Serving::Fixed(fixed));
    let mut plan = plan();
    plan.workload.output_tokens = 1.into();
    for users in 1..=6u32 {
        let (_, records) = run(&plan, server.clone(), &level(Load::closed(users), u64::from(users) * 8));
        let settled = &records[users as usize..];
        let ttft_ns = u64::from(users) * 80_000_000 + ON_THE_WAY_NS;
        assert!(settled.iter().all(|r| r.ttft_ns() == Some(ttft_ns)), "{users} users");
    }
}

#[test]
fn a_cap_holds_and_waiting_for_it_is_told_apart() {
    let load = Load { arrivals: Arrivals::Constant { rate: 100.0 }, cap: Some(2), users: None, think_s: 0.0 };
    let (_, records) = run(&plan(), model::Settings::course(), &level(load, 20));
    assert!(records.iter().all(|record| record.schedule_delay_ns() == 0));
    let waited = records.iter().filter(|record| record.cap_wait_ns() > 0).count();
    assert_eq!(waited, 18);
}

/// A frozen server is seen in full from the plan, and hardly at all by polite users.
#[test]
fn a_freeze_shows_from_the_plan() {
    let mut server = batching(1);
    // The level begins 10 ms after the server.
    server.freezes = vec![Freeze { at_s: 10.01, for_s: 2.0 }];
    if let Serving::Batching(batching) = &mut server.serving {
        batching.cost = model::Cost { base_ms: 50.0, per_sequence_ms: 0.0, per_prefill_token_ms: 0.0 };
    }
    let mut plan = plan();
    plan.workload.output_tokens = 1.into();
    let load = Load { arrivals: Arrivals::Constant { rate: 10.0 }, cap: None, users: None, think_s: 0.0 };
    let (_, records) = run(&plan, server, &level(load, 300));
    let mut e2e: Vec<u64> = records.iter().map(|record| record.e2e_plan_ns().unwrap() / 1_000_000).collect();
    e2e.sort_unstable();
    assert_eq!((e2e[149], e2e[269]), (50, 550));
    assert!(e2e[299] >= 1990, "the longest wait is {} ms", e2e[299]);
}

/// Golden OpenVsClosed: one user who is to send every 100 ms to a server that stands still for 2 s. From the send it
/// hides the standstill, from its plan it shows all of it.
#[test]
fn a_paced_user_shows_a_freeze_from_its_plan_as_the_golden_has_it() {
    let mut server = batching(1);
    // The level begins 10 ms after the server.
    server.freezes = vec![Freeze { at_s: 10.01, for_s: 2.0 }];
    if let Serving::Batching(batching) = &mut server.serving {
        batching.cost = model::Cost { base_ms: 50.0, per_sequence_ms: 0.0, per_prefill_token_ms: 0.0 };
    }
    let mut plan = plan();
    plan.workload.output_tokens = 1.into();
    let (result, records) = run(&plan, server, &level(Load::paced(1, 0.1), 300));
    let us = |ns: Option<u64>| ns.unwrap() / 1000;
    let (mut from_send, mut from_plan) = (Histogram::new(), Histogram::new());
    for (k, record) in records.iter().enumerate() {
        assert_eq!(record.plan, result.span.t0 + Duration::from_millis(100) * k as u32);
        assert_eq!(record.schedule_delay_ns(), 0, "whoever waits for an answer is not late");
        assert!(record.flags.contains(Flags::FROM_PLAN));
        from_send.record(us(record.e2e_ns()));
        from_plan.record(us(record.e2e_plan_ns()));
    }
    for (row, histogram) in [(0, &from_send), (2, &from_plan)] {
        let row = &values("OpenVsClosed")[row];
        assert_eq!(histogram.n(), row["n"].as_u64().unwrap());
        for (key, quantile) in
            [("p50", Quantile::P50), ("p90", Quantile::P90), ("p99", Quantile::P99), ("max", Quantile::MAX)]
        {
            let shown = histogram.quantile(quantile).unwrap() as f64 / 1e3;
            assert_eq!(shown, row[key].as_f64().unwrap(), "{} {key}", row["name"]);
        }
    }
}

/// Twice what the server can do: the plan goes on, and what was planned in time and not sent is counted.
#[test]
fn what_paced_users_could_not_send_is_unfinished() {
    let server = batching(1);
    let level = Level {
        load: Load::paced(2, 0.5),
        stop: Stop { units: None, duration_s: Some(20.0), grace_s: 5.0 },
        warmups: 0,
        ..Level::default()
    };
    let (result, records) = run(&plan(), server, &level);
    assert_eq!(records.len(), 80, "every planned request has a record");
    let of = |class| records.iter().filter(|record| record.outcome.class == class).count();
    let ok = of(Class::Ok);
    assert!((40..60).contains(&ok), "{ok}: 25 s of 0.53 s each");
    assert_eq!(of(Class::Unfinished), 80 - ok);
    let end = result.span.t0 + Duration::from_secs(20);
    assert!(records.iter().all(|record| record.plan < end));
    assert!(records.iter().any(|record| record.start > end), "sent late, in the drain");
}

fn until(figure: &str, half_width: f64, times_max: u32) -> Plan {
    let figure = figure.parse().unwrap();
    Plan { until: Some(Until { figure, half_width, times_max }), ..plan() }
}

fn noisy() -> model::Settings {
    model::Settings::serving(Serving::Batching(Batching { slots: 16, noise: 0.3, ..Batching::default() }))
}

/// Load goes on through an extension as if the level had been planned so long: same times, same requests.
#[test]
fn a_level_that_is_lengthened_is_the_beginning_of_a_longer_one() {
    let by_time = |s| Stop { units: None, duration_s: Some(s), grace_s: 30.0 };
    let by_units = |units| Stop { units: Some(units), duration_s: None, grace_s: 30.0 };
    let poisson = Load { arrivals: Arrivals::Poisson { rate: 8.0 }, cap: None, users: None, think_s: 0.0 };
    let capped = Load { cap: Some(3), ..poisson.clone() };
    for load in [poisson, capped, Load::closed(5), Load::paced(5, 0.9), Load::closed(40)] {
        for (short, long) in [(by_time(7.0), by_time(56.0)), (by_units(100), by_units(800))] {
            let level = |stop: Stop| Level { load: load.clone(), stop, warmups: 2, ..Level::default() };
            // No level of this length knows its p99 to a thousandth: it is doubled to the most there is.
            let (result, records) = run(&until("ttft_p99", 0.001, 8), noisy(), &level(short));
            let lengthened = result.lengthened.unwrap();
            assert_eq!((lengthened.times, lengthened.reached), (8, false));
            let (expected, all) = run(&plan(), noisy(), &level(long));
            assert_eq!(records, all, "{load:?}");
            assert_eq!((result.span, result.window), (expected.span, expected.window), "{load:?}");
            assert_eq!(result.tally, expected.tally);
        }
    }
}

/// Whether a level has a ramp cut off, and how long that is, its planned length decides: it is known beforehand.
#[test]
fn the_window_of_a_level_that_is_lengthened_ends_later() {
    let level = Level {
        load: Load::closed(5),
        stop: Stop { units: None, duration_s: Some(60.0), grace_s: 30.0 },
        warmups: 0,
        ..Level::default()
    };
    let (result, _) = run(&until("ttft_p99", 0.001, 3), noisy(), &level);
    let t0 = result.span.t0;
    let at = |s| t0 + Duration::from_secs(s);
    assert_eq!((result.window.start, result.window.end, result.window.whole_level), (at(10), at(180), false));
    assert_eq!(result.span.t1, at(180));
}

#[test]
fn a_level_ends_when_its_figure_is_known() {
    let load = Load { arrivals: Arrivals::Poisson { rate: 8.0 }, cap: None, users: None, think_s: 0.0 };
    let level = Level {
        load,
        stop: Stop { units: Some(64), duration_s: None, grace_s: 30.0 },
        warmups: 0,
        ..Level::default()
    };
    let (result, records) = run(&until("e2e_p50", 0.04, 64), noisy(), &level);
    let lengthened = result.lengthened.unwrap();
    assert!((2..=32).contains(&lengthened.times), "{lengthened:?}");
    assert_eq!(
        records.len() as u64,
        64 * u64::from(lengthened.times),
        "it ends at a multiple of what was planned"
    );
    let (value, low, high) = (lengthened.value.unwrap(), lengthened.low.unwrap(), lengthened.high.unwrap());
    let mut e2e: Vec<u64> = records.iter().map(|record| record.e2e_ns().unwrap()).collect();
    e2e.sort_unstable();
    assert_eq!(value, e2e[e2e.len() / 2 - 1] as f64, "the nearest rank over all requests of the level");
    // Decided by what had ended then, stated by all: within a little of the wish.
    assert!((high - low) / 2.0 / value < 0.05, "{lengthened:?}");
    // What is wished less is known at once, and then nothing is lengthened.
    let (result, records) = run(&until("e2e_p50", 0.5, 64), noisy(), &level);
    assert_eq!((result.lengthened.unwrap().times, result.lengthened.unwrap().reached), (1, true));
    assert_eq!(records.len(), 64);
    let (plain, same) = run(&plan(), noisy(), &level);
    assert_eq!((same, plain.lengthened), (records, None));
}

#[test]
fn a_server_that_refuses_everything_is_not_asked_for_longer() {
    let cold = model::Settings { cold_start_s: 1e6, ..noisy() };
    let level = Level {
        load: Load::closed(2),
        stop: Stop { units: None, duration_s: Some(5.0), grace_s: 1.0 },
        warmups: 0,
        ..Level::default()
    };
    let (result, _) = run(&until("attainment", 0.05, 16), cold, &level);
    assert_eq!(result.lengthened.unwrap().times, 1);
    assert_eq!(result.span.t1, result.span.t0 + Duration::from_secs(5));
}

#[test]
fn a_refusal_of_the_server_is_an_outcome() {
    let mut server = batching(1);
    if let Serving::Batching(batching) = &mut server.serving {
        batching.queue_max = Some(1);
    }
    let burst = Load { arrivals: Arrivals::Burst, cap: None, users: None, think_s: 0.0 };
    let (_, records) = run(&plan(), server, &level(burst, 5));
    let of = |class| records.iter().filter(|record| record.outcome.class == class).count();
    assert_eq!((of(Class::Ok), of(Class::Http)), (2, 3));
    assert!(records.iter().all(|record| matches!(record.outcome.status, 200 | 429)));
}

/// A server that refuses at once, and users who come back at once: time must go on all the same.
#[test]
fn users_of_a_server_that_refuses_come_back_later() {
    let mut server = batching(16);
    server.cold_start_s = 5.0;
    let stop = Stop { units: None, duration_s: Some(10.0), grace_s: 30.0 };
    let (_, records) =
        run(&plan(), server, &Level { load: Load::closed(2), stop, warmups: 0, ..Level::default() });
    let of = |class| records.iter().filter(|record| record.outcome.class == class).count();
    // Every 100 ms from 10 ms on, which is when the level begins.
    assert_eq!(of(Class::Http), 2 * 50);
    assert!(of(Class::Ok) > 10);
}

/// An answer ends with a step; the next request of its user is too late for the step that begins then, as it is over
/// every network.
#[test]
fn a_user_who_comes_back_at_once_misses_the_next_step() {
    let mut plan = plan();
    plan.client.start_spread_us = 20_000.0;
    let (_, records) = run(&plan, batching(16), &level(Load::closed(2), 8));
    // Alone: prefill of 200 tokens and one sequence. Beside another: that one's step of 10.5 ms first, then the own.
    let ttft_ms: Vec<u64> = records.iter().map(|record| record.ttft_ns().unwrap() / 1_000_000).collect();
    assert_eq!(ttft_ms[0], 20);
    assert!(ttft_ms[4..].iter().all(|ms| *ms > 30), "{ttft_ms:?}");
}

#[test]
fn what_is_open_after_the_grace_period_is_unfinished() {
    let stop = Stop { units: None, duration_s: Some(1.0), grace_s: 0.1 };
    let level = Level { load: Load::closed(3), stop, warmups: 0, ..Level::default() };
    let (_, records) = run(&plan(), model::Settings::course(), &level);
    assert!(records.iter().any(|record| record.outcome.class == Class::Unfinished));
    assert!(records.iter().all(|record| record.plan.nanos_since(records[0].plan) < 1_000_000_000));
}
