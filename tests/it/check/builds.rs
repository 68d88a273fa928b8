//! Runs of simulated builds of a server, as samples to compare. Shared by the tests and by `benches/check.rs`.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use tokload::compare::Sample;
use tokload::engine::Engine;
use tokload::load::{Route, Spool, SpoolFiles, Target, probe};
use tokload::metrics::Record;
use tokload::mock::{Paper, Settings};
use tokload::model::{self, Batching, Cost, Serving};
use tokload::plan::{Arrivals, Distribution, Endpoint, Lengths, Level, Load, Plan, Stop};
use tokload::run_file::schema::{EnvironmentBlock, TargetBlock, VIRTUAL_CLOCK};
use tokload::run_file::{RunFile, WallTime};
use tokload::sim::{self, SimEngine};
use tokload::summary::{self, Input};
use tokload::sys::signals::Interrupts;
use tokload::time::Stamp;

/// A server of 16 slots whose prompts take `prefill` times as long as usual; each step's cost wavers by 10 %.
pub fn build(prefill: f64) -> model::Settings {
    let usual = Cost { base_ms: 15.0, per_sequence_ms: 0.3, per_prefill_token_ms: 0.1 };
    let cost = Cost { per_prefill_token_ms: usual.per_prefill_token_ms * prefill, ..usual };
    model::Settings::serving(Serving::Batching(Batching {
        slots: 16,
        noise: 0.1,
        cost,
        ..Batching::default()
    }))
}

/// A closed loop of four users, an open one of 8 requests a second and one of 14: a third of what the server can do, and
/// more than half.
pub fn loads() -> Vec<Load> {
    let open = |rate| Load { arrivals: Arrivals::Poisson { rate }, cap: None, users: None, think_s: 0.0 };
    vec![Load::closed(4), open(8.0), open(14.0)]
}

/// A plan of `loads` with so many requests each; prompts differ in length by a factor of two and more.
pub fn plan(seed: u64, loads: &[Load], units: &[u64]) -> Plan {
    let mut plan = Plan::new(seed);
    plan.target.endpoints = vec![Endpoint { url: "http://simulation.invalid:80".to_owned() }];
    plan.target.models = vec!["simulated".to_owned()];
    plan.workload.input_words =
        Lengths::Drawn(Distribution::Lognormal { median: 150.0, sigma: 0.5, min: Some(10), max: Some(2000) });
    plan.workload.output_tokens = 16.into();
    plan.client.start_spread_us = 0.0;
    let level = |(load, units): (&Load, &u64)| Level {
        load: load.clone(),
        stop: Stop { units: Some(*units), duration_s: None, grace_s: 60.0 },
        warmups: 0,
        ..Level::default()
    };
    plan.levels = loads.iter().zip(units).map(level).collect();
    plan
}

/// What `plan` gives at a server like `server`, which wavers in its own way for each seed.
pub fn run(name: &str, plan: &Plan, server: model::Settings) -> Sample {
    let (run, records) = run_file(plan, server);
    Sample::new(name, run, &records)
}

/// The run file and the records of each level.
pub fn run_file(plan: &Plan, server: model::Settings) -> (RunFile, Vec<Option<Vec<Record>>>) {
    let tape = Tape::default();
    let files = SpoolFiles { records: Box::new(tape.clone()), chunks: None };
    let serving = model::Settings { seed: plan.seed, ..server };
    let settings =
        Settings { model: "simulated".to_owned(), serving, max_model_len: u32::MAX, ..Settings::default() };
    let route = Route::nowhere("simulated", plan.target.request_path(), Vec::new()).expect("a route");
    let target = Target {
        routes: vec![route],
        templates: vec![plan.template("simulated").expect("a template")],
        content: tokload::workload::Content::new(plan),
        mix: tokload::workload::Mix::equal(1),
        routing: tokload::workload::Routing::in_turn(1),
    };
    let mut engine = SimEngine::new(sim::Setup {
        plan: Arc::new(plan.clone()),
        target: Arc::new(target),
        ask: probe::ask_of(plan),
        servers: vec![Paper::new(settings, Stamp::ZERO).expect("a server that is possible")],
        spool: Some(Spool::start(files).expect("a spool")),
        live: None,
        interrupts: Interrupts::default(),
    });
    let levels = plan.in_rounds();
    let results: Vec<_> = levels
        .iter()
        .enumerate()
        .map(|(ordinal, level)| engine.run_level(ordinal, level, &mut |_| {}).expect("a level that runs"))
        .collect();
    engine.finish();
    let bytes = tape.0.lock().expect("nobody panicked");
    let all: Vec<Record> = bytes
        .chunks_exact(Record::BYTES)
        .map(|one| Record::decode(one.try_into().expect("whole records")).expect("records of ours"))
        .collect();
    let environment =
        EnvironmentBlock { clock: Some(VIRTUAL_CLOCK.to_owned()), ..EnvironmentBlock::default() };
    let mut run = RunFile::new(WallTime::from_unix_nanos(0), plan, environment, TargetBlock::default());
    let mut records = Vec::new();
    for result in &results {
        let range = result.records.expect("records are kept");
        let of_level = all[range.first as usize..(range.first + range.count) as usize].to_vec();
        run.push(result, &summary::level(&Input::new(result, Some(&of_level), plan.slo)));
        records.push(Some(of_level));
    }
    run.compare_repeats();
    run.judge();
    (run, records)
}

/// Bytes written by the spool.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
