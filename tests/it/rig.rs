//! What the tests of both engines share: a mock and a model, a plan for them, a run and its records.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokload::engine::{Course, Engine, drive};
use tokload::load::{LoadEngine, Route, RouteParts, Setup, Spool, SpoolFiles, Target, Way, probe, tls};
use tokload::metrics::{Class, Live, Phase, Record};
use tokload::mock::{Faults, Mock, Paper, Settings};
use tokload::model;
use tokload::plan::{Arrivals, Endpoint, Level, Load, Plan, Slo, Stop};
use tokload::run::LevelResult;
use tokload::run::books::Keeping;
use tokload::sim::{self, SimEngine};
use tokload::stats::little::Verdict;
use tokload::strategy::{Found, Hunt};
use tokload::summary::{self, Input};
use tokload::sys::clock::RunClock;
use tokload::sys::signals::Interrupts;
use tokload::time::Stamp;
use tokload::workload::recording::Open;
use tokload::workload::{Content, Deck, Mix, Recording, Script};

use crate::live;

/// Bytes written by the spool, to be looked at afterwards.
#[derive(Clone, Default)]
struct Tape(Arc<Mutex<Vec<u8>>>);

impl Write for Tape {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A mock server with quick answers.
pub(crate) fn mock(faults: Faults) -> Mock {
    Mock::start(Settings { faults, ..quick() }).expect("a mock server on loopback")
}

/// Settings of quick answers.
pub(crate) fn quick() -> Settings {
    Settings { serving: model::Settings::fixed(5.0, 1.0), ..Settings::default() }
}

pub(crate) fn plan_for(port: u16) -> Plan {
    let mut plan = Plan::new(7);
    plan.target.endpoints = vec![Endpoint { url: format!("http://127.0.0.1:{port}") }];
    plan.target.models = vec!["mock-model".to_owned()];
    plan.workload.input_words = 8.into();
    plan.workload.output_tokens = 5.into();
    plan.workload.options.include_usage = true;
    plan
}

pub(crate) struct Run {
    pub(crate) result: LevelResult,
    pub(crate) records: Vec<Record>,
}

impl Run {
    fn of(result: LevelResult, tape: &Tape) -> Run {
        let bytes = tape.0.lock().unwrap();
        let records: Vec<Record> = bytes
            .chunks_exact(Record::BYTES)
            .map(|one| Record::decode(one.try_into().unwrap()).unwrap())
            .collect();
        assert_eq!(records.len() as u64, result.records.unwrap().count);
        check_books(&result, &records);
        Run { result, records }
    }

    pub(crate) fn measured(&self) -> Vec<&Record> {
        self.records.iter().filter(|record| record.phase == Phase::Measured).collect()
    }

    pub(crate) fn count(&self, class: Class) -> usize {
        self.measured().iter().filter(|record| record.outcome.class == class).count()
    }

    /// Most requests in flight at once, from their records.
    pub(crate) fn most_in_flight(&self) -> i64 {
        let mut steps: Vec<(u64, i64)> = Vec::new();
        for record in self.measured() {
            steps.push((record.start.as_nanos(), 1));
            steps.push((record.end.as_nanos(), -1));
        }
        steps.sort_unstable();
        let mut now = 0;
        steps
            .iter()
            .map(|(_, step)| {
                now += step;
                now
            })
            .max()
            .unwrap_or(0)
    }
}

pub(crate) fn run_with(plan: &Plan, shards: usize, level: &Level, interrupts: Interrupts) -> Run {
    run_through(plan, shards, level, interrupts, tls::config(&tls::Trust::anyone()).unwrap())
}

pub(crate) fn run_through(
    plan: &Plan,
    shards: usize,
    level: &Level,
    interrupts: Interrupts,
    tls: Arc<rustls::ClientConfig>,
) -> Run {
    let route = |endpoint: &Endpoint| {
        let parts = RouteParts {
            address: &endpoint.address().unwrap(),
            path: plan.target.request_path().to_owned(),
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            tls: Arc::clone(&tls),
        };
        let way = Way { connections: Some(&plan.target.connections), sni: plan.target.tls.sni.as_deref() };
        Route::along(parts, way).unwrap()
    };
    run_on(plan, shards, level, interrupts, plan.target.endpoints.iter().map(route).collect())
}

/// The same on routes of one's own, one for each endpoint of the plan.
pub(crate) fn run_on(
    plan: &Plan,
    shards: usize,
    level: &Level,
    interrupts: Interrupts,
    routes: Vec<Route>,
) -> Run {
    let (tape, spool) = spool(plan);
    let live = Live::new(shards);
    let setup = Setup {
        clock: RunClock::start(),
        plan: Arc::new(plan.clone()),
        target: target_of(plan, routes, script(plan)),
        ask: probe::ask_of(plan),
        cores: vec![None; shards],
        spool: Some(spool),
        live: Some(live.clone()),
        interrupts,
        agreed: None,
    };
    let mut engine = LoadEngine::start(setup).unwrap();
    let result = engine.run_level(0, level, &mut |_| {}).unwrap();
    live::check(&live.read(), &result);
    let spooled = engine.finish().unwrap().unwrap();
    assert_eq!((spooled.lost_bytes, spooled.error), (0, None));
    Run::of(result, &tape)
}

/// The same plan in virtual time, against a server without a socket.
pub(crate) fn simulate(plan: &Plan, serving: model::Settings, level: &Level) -> Run {
    simulate_with(plan, level, |settings| settings.serving = serving)
}

/// The same with other settings of the server.
pub(crate) fn simulate_with(plan: &Plan, level: &Level, change: impl FnOnce(&mut Settings)) -> Run {
    let mut settings = Settings::default();
    change(&mut settings);
    simulated(plan, settings, level, (script(plan), Interrupts::default()))
}

/// The same with the user's wish to stop.
pub(crate) fn simulate_interrupted(plan: &Plan, serving: model::Settings, level: &Level) -> Run {
    let interrupts = Interrupts::default();
    interrupts.raise();
    simulated(plan, Settings { serving, ..Settings::default() }, level, (script(plan), interrupts))
}

/// The same with the requests of `script`.
pub(crate) fn simulate_script(
    plan: &Plan,
    serving: model::Settings,
    level: &Level,
    script: Option<Script>,
) -> Run {
    simulated(plan, Settings { serving, ..Settings::default() }, level, (script, Interrupts::default()))
}

fn simulated(plan: &Plan, settings: Settings, level: &Level, with: (Option<Script>, Interrupts)) -> Run {
    simulate_fleet(plan, vec![settings], level, with)
}

/// A server for each endpoint of the plan, in virtual time.
pub(crate) fn simulate_fleet(
    plan: &Plan,
    servers: Vec<Settings>,
    level: &Level,
    (script, interrupts): (Option<Script>, Interrupts),
) -> Run {
    let (tape, spool) = spool(plan);
    let live = Live::new(1);
    let mut engine = SimEngine::new(sim::Setup {
        plan: Arc::new(plan.clone()),
        target: target_with(plan, script),
        ask: probe::ask_of(plan),
        servers: servers.into_iter().map(|one| Paper::new(one, Stamp::ZERO).unwrap()).collect(),
        spool: Some(spool),
        live: Some(live.clone()),
        interrupts,
    });
    let result = engine.run_level(0, level, &mut |_| {}).unwrap();
    live::check(&live.read(), &result);
    engine.finish().unwrap();
    Run::of(result, &tape)
}

/// Several levels in virtual time: what was shown of them and what came of them, each held to the other.
pub(crate) fn simulate_levels(plan: &Plan, settings: Settings, levels: &[Level]) -> (Live, Vec<LevelResult>) {
    let live = Live::new(1);
    let mut engine = SimEngine::new(sim::Setup {
        plan: Arc::new(plan.clone()),
        target: target_with(plan, None),
        ask: probe::ask_of(plan),
        servers: vec![Paper::new(settings, Stamp::ZERO).unwrap()],
        spool: None,
        live: Some(live.clone()),
        interrupts: Interrupts::default(),
    });
    let run = |(ordinal, level)| {
        let before = live.read();
        let result = engine.run_level(ordinal, level, &mut |_| {}).unwrap();
        live::check(&live.read().since(&before), &result);
        result
    };
    let results = levels.iter().enumerate().map(run).collect();
    (live, results)
}

/// A whole search in virtual time, with what its records tell, and the levels that it ran.
pub(crate) fn search(plan: &Plan, settings: Settings) -> (Found, Vec<LevelResult>) {
    let (tape, spool) = spool(plan);
    let mut engine = SimEngine::new(sim::Setup {
        plan: Arc::new(plan.clone()),
        target: target_with(plan, None),
        ask: probe::ask_of(plan),
        servers: vec![Paper::new(settings, Stamp::ZERO).unwrap()],
        spool: Some(spool),
        live: None,
        interrupts: Interrupts::default(),
    });
    let mut hunt = Hunt::of(plan, &[]).unwrap();
    let mut next = |done: &[LevelResult]| hunt.next(done);
    let driven = drive(&mut engine, Course { first: 0, levels: None, next: &mut next }, &mut |_| {});
    assert!(driven.failed.is_none(), "{:?}", driven.failed);
    engine.finish().unwrap();
    let bytes = tape.0.lock().unwrap();
    let mut records =
        bytes.chunks_exact(Record::BYTES).map(|one| Record::decode(one.try_into().unwrap()).unwrap());
    for (place, result) in driven.finished.iter().enumerate() {
        let of_level: Vec<Record> = records.by_ref().take(result.records.unwrap().count as usize).collect();
        hunt.look_at(place, &of_level, plan);
    }
    (hunt.into_found(&driven.finished), driven.finished)
}

fn spool(plan: &Plan) -> (Tape, Spool) {
    let tape = Tape::default();
    let files = SpoolFiles { records: Box::new(tape.clone()), chunks: None };
    let keeping = Keeping { slice: plan.slice_s.map(Duration::from_secs_f64), ..Keeping::default() };
    (tape, Spool::keeping(files, keeping, None).unwrap())
}

/// What goes to nobody, with the requests of `script`.
pub(crate) fn target_with(plan: &Plan, script: Option<Script>) -> Arc<Target> {
    let route = Route::nowhere("sim", plan.target.request_path(), Vec::new()).unwrap();
    target_of(plan, vec![route; plan.target.endpoints.len().max(1)], script)
}

fn target_of(plan: &Plan, routes: Vec<Route>, script: Option<Script>) -> Arc<Target> {
    Arc::new(Target {
        routes,
        templates: plan.target.models.iter().map(|model| plan.template(model).unwrap()).collect(),
        mix: Mix::new(&plan.target),
        routing: tokload::workload::Routing::new(&plan.target),
        content: Content::new(plan).with_script(script),
    })
}

/// The file that the plan takes its requests from.
fn script(plan: &Plan) -> Option<Script> {
    deck(plan).map(Script::Data).or_else(|| recording(plan).map(Script::Trace))
}

/// The trace that the plan sends.
pub(crate) fn recording(plan: &Plan) -> Option<Arc<Recording>> {
    let trace = plan.workload.trace.as_ref()?;
    Some(Arc::new(Recording::look(trace, opener(&trace.file)).unwrap()))
}

/// The data set that the plan takes its prompts from.
pub(crate) fn deck(plan: &Plan) -> Option<Arc<Deck>> {
    let data = plan.workload.data.as_ref()?;
    let look = if plan.workload.conversation.is_some() { Deck::look_for_sessions } else { Deck::look };
    Some(Arc::new(look(data, plan.target.request_path(), opener(&data.file)).unwrap()))
}

fn opener(file: &str) -> Open {
    let file = file.to_owned();
    Box::new(move || Ok(Box::new(BufReader::new(File::open(&file)?))))
}

/// Whatever the server does, the records agree with what the shards counted in flight meanwhile.
fn check_books(result: &LevelResult, records: &[Record]) {
    let summary = summary::level(&Input::new(result, Some(records), Slo::default()));
    if let Some(little) = summary.statistics.unwrap().little {
        assert!(little.counter_gap.is_some_and(|gap| gap < 1e-9), "{little:?}");
        assert_ne!(little.verdict, Verdict::Broken, "{little:?}");
    }
}

pub(crate) fn run(plan: &Plan, shards: usize, level: &Level) -> Run {
    run_with(plan, shards, level, Interrupts::default())
}

pub(crate) fn level(load: Load, units: u64) -> Level {
    Level {
        load,
        stop: Stop { units: Some(units), duration_s: None, grace_s: 5.0 },
        warmups: 2,
        ..Level::default()
    }
}

/// A load for so many seconds, without warm-up.
pub(crate) fn timed(load: Load, duration_s: f64) -> Level {
    Level {
        load,
        stop: Stop { units: None, duration_s: Some(duration_s), grace_s: 30.0 },
        warmups: 0,
        ..Level::default()
    }
}

pub(crate) fn open(rate: f64, cap: Option<u32>) -> Load {
    Load { arrivals: Arrivals::Poisson { rate }, cap, users: None, think_s: 0.0 }
}
