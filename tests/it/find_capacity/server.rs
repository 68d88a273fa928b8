//! A modelled server that is asked how much it bears: by a search, by the usual rule of thumb, and by long simulations.
//! Shared by the test and by `benches/capacity.rs`.

use std::sync::Arc;

use tokload::engine::{Course, Engine, drive};
use tokload::load::{Route, Target, probe};
use tokload::mock::{Paper, Settings};
use tokload::model;
use tokload::plan::{Arrivals, Axis, Endpoint, Level, Load, Plan, Search, Slo, Stop};
use tokload::run::{Judgement, LevelResult};
use tokload::sim::{Setup, SimEngine};
use tokload::strategy::{Found, Hunt};
use tokload::sys::signals::Interrupts;
use tokload::time::Stamp;
use tokload::workload::{Content, Mix};

/// Requests of each long simulation.
pub const TRUTH_REQUESTS: u64 = 50_000;
/// Those of a first look are so many times shorter, and enough where they are so many standard errors from the target.
const TRUTH_SHORT: u64 = 20;
const TRUTH_SURE: f64 = 8.0;
/// Fewer are no look: users would hardly have come to send twice.
const TRUTH_SHORT_MIN: u64 = 1000;
/// None of the seeds of searches.
const TRUTH_SEED: u64 = 4711;
/// How dense the grid of long simulations is, as a share of the load.
const TRUTH_STEP: f64 = 0.002;
/// Simulations at each of its loads, with seeds of their own.
const TRUTH_REPEATS: usize = 5;
/// Student's t for 95 %, one-sided, of as many.
const TRUTH_T: f64 = 2.132;

/// What is asked.
pub struct Question {
    pub name: &'static str,
    pub search: Search,
    pub load: Load,
    pub slo: Slo,
}

/// The answer of the usual rule.
pub struct Naive {
    pub low: f64,
    pub high: f64,
    pub requests: u64,
}

/// Between which loads capacity lies, as far as long simulations tell: the highest that they are sure to hold and the lowest
/// that they are sure not to. Of whole loads the former is capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truth {
    pub low: f64,
    pub high: f64,
}

/// A server in virtual time.
pub struct Server {
    pub model: model::Settings,
}

impl Question {
    /// How many users of a closed loop.
    pub fn users() -> Question {
        Question {
            name: "users, TTFT <= 60 ms for 90 %",
            search: Search::along(Axis::Concurrency),
            load: Load::closed(1),
            slo: Slo { ttft_ms: Some(60.0), ..Slo::default() },
        }
    }

    /// How many requests per second of an open loop.
    pub fn rate() -> Question {
        Question {
            name: "requests per second, TTFT <= 200 ms for 90 %",
            // Not 1: capacity is 12.0 to within what long simulations know, and no answer of which 12 is an end could be
            // told from a wrong one.
            search: Search { start: 0.9, ..Search::along(Axis::Rate) },
            load: Load { arrivals: Arrivals::Poisson { rate: 1.0 }, cap: None, users: None, think_s: 0.0 },
            slo: Slo { ttft_ms: Some(200.0), ..Slo::default() },
        }
    }

    fn plan(&self, seed: u64) -> Plan {
        let mut plan = Plan::new(seed);
        plan.target.endpoints = vec![Endpoint { url: "http://simulation.invalid:80".to_owned() }];
        plan.target.models = vec!["simulated".to_owned()];
        plan.workload.input_words = 200.into();
        // Where the length of prompts is asked, their answers are beside the point.
        plan.workload.output_tokens = if self.search.vary == Axis::InputLen { 2.into() } else { 50.into() };
        plan.slo = self.slo;
        plan.search = Some(self.search);
        let stop = Stop { units: Some(100), ..Stop::default() };
        plan.levels = vec![Level { load: self.load.clone(), stop, warmups: 0, ..Level::default() }];
        plan.validate().expect("a plan that can be run");
        plan
    }
}

impl Truth {
    /// Whether an answer, whose upper end is the first load that does not hold, holds it.
    pub fn is_within(self, low: f64, high: f64) -> bool {
        low <= self.low && self.high < high
    }
}

impl std::fmt::Display for Truth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Truth { low, high } if low == high => write!(f, "{low}"),
            Truth { low, high } => write!(f, "{low:.2} to {high:.2}"),
        }
    }
}

impl Server {
    /// 16 slots, as in the worked examples.
    pub fn course() -> Server {
        Server { model: model::Settings::course() }
    }

    /// A whole search.
    pub fn search(&self, question: &Question, seed: u64) -> Found {
        let plan = question.plan(seed);
        let mut hunt = Hunt::of(&plan, &[]).expect("a plan with a search");
        let mut next = |done: &[LevelResult]| hunt.next(done);
        let course = Course { first: 0, levels: None, next: &mut next };
        let driven = drive(&mut self.engine(&plan), course, &mut |_| {});
        assert!(driven.failed.is_none(), "{:?}", driven.failed);
        hunt.into_found(&driven.finished)
    }

    /// 64 requests at each load; a load passes if the share of good ones reaches the target.
    pub fn naive(&self, question: &Question, seed: u64) -> Naive {
        let plan = question.plan(seed);
        let mut engine = self.engine(&plan);
        let (mut naive, mut ordinal) = (Naive { low: 0.0, high: f64::INFINITY, requests: 0 }, 0);
        let whole = question.search.vary.is_whole();
        loop {
            let load = match (naive.low, naive.high) {
                (0.0, f64::INFINITY) => 1.0,
                (low, f64::INFINITY) => 2.0 * low,
                (low, high) => f64::midpoint(low, high),
            };
            let load = if whole { load.floor() } else { load };
            let step = if whole { (0.1 * naive.low).max(1.0) } else { 0.1 * naive.low };
            if naive.high - naive.low <= step || load <= naive.low {
                return naive;
            }
            let (n, good) = attained(&mut engine, &plan, ordinal, load, 64);
            ordinal += 1;
            naive.requests += n;
            if good as f64 >= question.search.target * n as f64 {
                naive.low = load;
            } else {
                naive.high = load;
            }
        }
    }

    /// Where capacity lies by long simulations of so many requests each, several at each load.
    pub fn truth(&self, question: &Question, requests: u64) -> Truth {
        let plan = question.plan(TRUTH_SEED);
        let (whole, target) = (question.search.vary.is_whole(), question.search.target);
        let shares = |load: f64, requests: u64| -> Vec<f64> {
            std::thread::scope(|scope| {
                let one = |ordinal| {
                    let plan = &plan;
                    scope.spawn(move || {
                        let (n, good) = attained(&mut self.engine(plan), plan, ordinal, load, requests);
                        good as f64 / n as f64
                    })
                };
                let repeats: Vec<_> = (1..=TRUTH_REPEATS).map(one).collect();
                repeats.into_iter().map(|repeat| repeat.join().expect("a simulation")).collect()
            })
        };
        // The share of good ones, less the target, in units of what is not known of it. Far from capacity a few show it.
        let excess = |load: f64| {
            let short = requests / TRUTH_SHORT;
            if short >= TRUTH_SHORT_MIN {
                let short = distance(&shares(load, short), target);
                if short.abs() > TRUTH_SURE {
                    return short;
                }
            }
            distance(&shares(load, requests), target)
        };
        let mut top = 1.0;
        while excess(top) > TRUTH_T {
            top *= 2.0;
        }
        let edge = |least: f64| {
            let (mut low, mut high) = (top / 2.0, top);
            while high - low > if whole { 1.0 } else { TRUTH_STEP * low } {
                let middle = f64::midpoint(low, high);
                let load = if whole { middle.floor() } else { middle };
                if excess(load) >= least { low = load } else { high = load }
            }
            (low, high)
        };
        if whole {
            let (low, _) = edge(0.0);
            return Truth { low, high: low };
        }
        let ((low, _), (_, high)) = (edge(TRUTH_T), edge(-TRUTH_T));
        Truth { low, high }
    }

    fn engine(&self, plan: &Plan) -> SimEngine {
        let route = Route::nowhere("simulated", plan.target.request_path(), Vec::new()).expect("a path");
        let target = Target {
            routes: vec![route],
            templates: vec![plan.template("simulated").expect("a body")],
            content: Content::new(plan),
            mix: Mix::equal(1),
            routing: tokload::workload::Routing::in_turn(1),
        };
        let settings =
            Settings { model: "simulated".to_owned(), serving: self.model.clone(), ..Settings::default() };
        SimEngine::new(Setup {
            plan: Arc::new(plan.clone()),
            target: Arc::new(target),
            ask: probe::ask_of(plan),
            servers: vec![Paper::new(settings, Stamp::ZERO).expect("a server")],
            spool: None,
            live: None,
            interrupts: Interrupts::default(),
        })
    }
}

/// How far the mean of `shares` is above `target`, in standard errors.
fn distance(shares: &[f64], target: f64) -> f64 {
    let n = shares.len() as f64;
    let mean = shares.iter().sum::<f64>() / n;
    let variance = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean - target) / (variance / n).sqrt().max(f64::MIN_POSITIVE)
}

/// Judged and good requests of `units` at `load`.
fn attained(engine: &mut SimEngine, plan: &Plan, ordinal: usize, load: f64, units: u64) -> (u64, u64) {
    let search = plan.search.expect("a plan with a search");
    let mut like = plan.levels[0].clone();
    like.stop.units = Some(units);
    let mut level = search.level(&like, load, tokload::stats::Confidence::C95, 1);
    let decide = level.decide.as_mut().expect("a level of a search");
    // As long as it is, whatever comes.
    (decide.times_max, decide.target) = (1, 1e-9);
    level.stop.units = Some(units);
    let judged =
        engine.run_level(ordinal, &level, &mut |_| {}).expect("a level").judged.expect("a judgement");
    assert_ne!(judged.outcome, Judgement::Fail, "nothing fails here");
    (judged.n, judged.good)
}
