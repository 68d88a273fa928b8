//! Overload and recovery in virtual time, against a queue whose backlog can be worked out by hand.

use tokload::metrics::Record;
use tokload::model::{self, Batching, Cost, Serving};
use tokload::plan::{Arrivals, Level, Load, Plan, Rule, Slo, Stop, Stress, StressPhase};
use tokload::summary::{StressSummary, herd, recovery};

use crate::rig;

/// One request at a time, 80 ms each: 12.5 a second.
const SERVICE_NS: u64 = 80_000_000;
/// How much later than it is sent a simulated request arrives.
const ON_THE_WAY_NS: u64 = 1;

fn server() -> model::Settings {
    let cost = Cost { base_ms: 80.0, per_sequence_ms: 0.0, per_prefill_token_ms: 0.0 };
    model::Settings::serving(Serving::Batching(Batching { slots: 1, cost, ..Batching::default() }))
}

fn normal(rate: f64) -> Level {
    Level {
        load: Load { arrivals: Arrivals::Constant { rate }, cap: None, users: None, think_s: 0.0 },
        stop: Stop { units: None, duration_s: None, grace_s: 30.0 },
        warmups: 0,
        ..Level::default()
    }
}

fn plan(stress: Stress) -> Plan {
    let mut plan = rig::plan_for(1);
    plan.workload.output_tokens = 1.into();
    plan.stress = Some(stress);
    plan
}

fn stressed(plan: &Plan, server: model::Settings, to: f64) -> (StressSummary, Vec<Record>) {
    let stress = plan.stress.unwrap();
    let level = stress.level(&normal(5.0), to).unwrap();
    let run = rig::simulate(plan, server, &level);
    let mut records: Vec<Record> = run.measured().into_iter().copied().collect();
    records.sort_by_key(|record| record.plan);
    let slo = Slo { ttft_ms: Some(500.0), ..Slo::default() };
    (recovery::of(&stress, (&level, run.result.span.t0), &records, &slo).unwrap(), records)
}

const STRESS: Stress =
    Stress { to_rate: None, before_s: 10.0, ramp_s: 2.0, hold_s: 4.0, after_s: 20.0, bad_max: 0.1 };

#[test]
fn the_time_to_recover_is_that_of_the_backlog_to_the_request() {
    let (found, records) = stressed(&plan(STRESS), server(), 20.0);
    let t0 = records[0].plan;
    // Whoever comes waits for the work of those before it (Lindley).
    let mut wait = 0_u64;
    for pair in records.windows(2) {
        assert_eq!(pair[0].ttft_ns(), Some(wait + SERVICE_NS + ON_THE_WAY_NS), "request {}", pair[0].index);
        wait = (wait + SERVICE_NS).saturating_sub(pair[1].plan.nanos_since(pair[0].plan));
    }
    let drop_ns = 16_000_000_000;
    let after: Vec<&Record> = records.iter().filter(|one| one.plan.nanos_since(t0) >= drop_ns).collect();
    // Behind the overload each request of five a second takes 200 - 80 ms off what the first of them waits.
    let first_wait = after[0].ttft_ns().unwrap() - SERVICE_NS - ON_THE_WAY_NS;
    let requests = first_wait.div_ceil(120_000_000);
    assert!(requests > 10, "{first_wait}");
    let expected_ns = after[0].plan.nanos_since(t0) - drop_ns + requests * 200_000_000;
    let recovery = found.recovery;
    assert_eq!((recovery.after_s.unwrap() * 1e9).round() as u64, expected_ns);
    assert_eq!((recovery.requests, recovery.watched_s), (requests, 20.0));
    assert!((recovery.resolution_s - 0.2).abs() < 1e-9, "{recovery:?}");
    assert_eq!(found.ttft_before, Some((SERVICE_NS + ON_THE_WAY_NS) as f64));
}

#[test]
fn each_request_is_in_its_phase_with_what_became_of_it() {
    let (found, records) = stressed(&plan(STRESS), server(), 20.0);
    let names: Vec<StressPhase> = found.phases.iter().map(|phase| phase.phase).collect();
    assert_eq!(names, StressPhase::ALL);
    assert_eq!(found.phases.iter().map(|phase| phase.planned).sum::<u64>(), records.len() as u64);
    let [before, ramp, hold, after] = found.phases.as_slice() else { panic!("{:?}", found.phases) };
    assert_eq!((before.start_s, before.end_s, before.planned, before.over_slo), (0.0, 10.0, 50, 0));
    assert_eq!((ramp.planned, hold.planned), (25, 80));
    assert_eq!((before.under_way_max, found.normal_s, found.overload_s), (1, 5.0, 20.0));
    // 80 requests of which 50 are served: 30 more wait than before, and all but the first miss half a second.
    assert!(hold.under_way_max >= 30 && hold.over_slo > 60 && after.over_slo > 15, "{found:?}");
    assert_eq!((hold.failed, hold.given_up, after.failed), (0, 0, 0));
}

#[test]
fn who_does_not_recover_in_time_is_said_not_to_have() {
    let short = Stress { after_s: 3.0, ..STRESS };
    let (found, _) = stressed(&plan(short), server(), 20.0);
    assert_eq!((found.recovery.after_s, found.recovery.watched_s, found.recovery.requests), (None, 3.0, 15));
}

#[test]
fn what_the_server_takes_leaves_nothing_to_recover_from() {
    let (found, _) = stressed(&plan(STRESS), server(), 12.0);
    assert_eq!(found.recovery.after_s, Some(0.0));
    assert_eq!(found.recovery.requests, 0);
}

#[test]
fn requests_that_are_refused_or_given_up_are_lost() {
    let mut settings = server();
    if let Serving::Batching(batching) = &mut settings.serving {
        batching.queue_max = Some(5);
    }
    let (found, records) = stressed(&plan(STRESS), settings, 20.0);
    let failed = records.iter().filter(|one| one.outcome.is_failure()).count() as u64;
    assert!(failed > 10);
    assert_eq!(found.phases.iter().map(|phase| phase.failed).sum::<u64>(), failed);
    let mut patient = plan(STRESS);
    patient.limits.total_s = 1.0;
    let (found, records) = stressed(&patient, server(), 20.0);
    let given_up = records.iter().filter(|one| one.outcome.is_failure()).count() as u64;
    assert!(given_up > 5);
    assert_eq!(found.phases.iter().map(|phase| phase.given_up).sum::<u64>(), given_up);
    assert!(found.recovery.after_s.is_some());
}

#[test]
fn bursts_are_sent_at_one_instant_and_their_spread_is_told() {
    let arrivals = Arrivals::Bursts { size: 25, every_s: 5.0 };
    let level = Level {
        load: Load { arrivals, ..normal(1.0).load },
        stop: Stop { units: Some(100), duration_s: None, grace_s: 30.0 },
        ..normal(1.0)
    };
    let mut quiet = plan(STRESS);
    quiet.stress = None;
    let run = rig::simulate(&quiet, model::Settings::fixed(10.0, 1.0), &level);
    let records: Vec<Record> = run.measured().into_iter().copied().collect();
    let found = herd::of(&level, &records).unwrap();
    assert_eq!((found.bursts, found.size, found.spread_p50, found.spread_max), (4, 25, Some(0), Some(0)));
    assert_eq!((found.late_max, found.unconnected.len()), (Some(0), 0));
    assert_eq!(herd::of(&normal(1.0), &records), None);
    assert!(Rule::from_name("drift").is_some());
}
