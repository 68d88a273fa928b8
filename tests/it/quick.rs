//! A quick look at modelled servers, in virtual time: it ends in time, and names the slots that the server has, or none.

use tokload::mock::Settings;
use tokload::model::{Batching, Cost, Fixed, PrefixCache, Router, Serving};
use tokload::plan::{Axis, Level, Load, Plan, Search, Slo, Stop};
use tokload::run::LevelResult;
use tokload::strategy::first_look::{self, Glance};
use tokload::strategy::{Ending, Found, Stage};

use crate::rig::{plan_for, search};

/// Seconds that a look may take.
const WITHIN_S: f64 = 75.0;

/// What `quick` would plan for a server of which one request has shown `ttft_ms` and `tpot_ms`.
fn plan(ttft_ms: f64, tpot_ms: f64, seed: u64) -> Plan {
    let glance = Glance { ttft_ms, tpot_ms: Some(tpot_ms) };
    let mut plan = plan_for(1);
    plan.seed = seed;
    plan.workload.input_words = 128.into();
    let tokens = first_look::answer_tokens(glance);
    plan.workload.output_tokens = tokens.into();
    plan.slo = Slo { ttft_ms: Some(500.0), tpot_ms: Some(50.0), ..Slo::default() };
    plan.slo = first_look::limits(glance, plan.slo);
    first_look::set(&mut plan, first_look::answer_ms(glance, tokens), WITHIN_S);
    plan.validate().unwrap();
    plan
}

fn batching(slots: u32) -> Batching {
    Batching { slots, cost: Cost { base_ms: 8.0, per_sequence_ms: 0.5, per_prefill_token_ms: 0.1 }, ..Batching::default() }
}

/// A look at a server, whose cost for one user it has seen; what it found, and its levels.
fn look_at(server: Batching, seed: u64) -> (Found, Vec<LevelResult>) {
    let tpot_ms = server.cost.step_ms(1, 0);
    let plan = plan(server.cost.step_ms(1, 128), tpot_ms, seed);
    let serving = tokload::model::Settings::serving(Serving::Batching(server));
    search(&plan, Settings { serving, ..Settings::default() })
}

fn took_s(levels: &[LevelResult]) -> f64 {
    (levels.last().unwrap().span.t2 - levels[0].span.t0).as_secs_f64()
}

fn slots(found: &Found) -> Option<u32> {
    found.slots.map(|slots| slots.slots)
}

#[test]
fn the_slots_of_a_server_are_named_as_they_are() {
    for true_slots in [1, 2, 3, 4, 6, 8, 16] {
        for seed in 1..=3 {
            let noise = [0.0, 0.1, 0.3][seed as usize - 1];
            let (found, levels) = look_at(Batching { noise, ..batching(true_slots) }, seed);
            eprintln!("{true_slots} {noise}: {:?} {:?} {:?} in {} s", found.slots, found.answer, found.trials.iter().map(|t| (t.load, t.stage, t.judged.map(|j| (j.outcome, j.n)))).collect::<Vec<_>>(), took_s(&levels));
            assert!(took_s(&levels) <= WITHIN_S);
            assert_eq!(slots(&found), Some(true_slots), "{found:?}");
        }
    }
}
