//! tokload: a load generator for LLM inference servers.
//!
//! # As a library
//!
//! A [`Plan`](plan::Plan) says what is sent, when and until when; [`run()`] sends it and gives a [`Run`], of which
//! [`Run::levels`] holds what was measured of each load. [`Runner`] adds what is no part of a plan: keys, where the run is
//! saved, how to stop it.
//!
//! ```
//! use tokload::metrics::Metric;
//! use tokload::mock::{self, Mock};
//! use tokload::model;
//! use tokload::plan::{Plan, Slo};
//! use tokload::stats::Quantile;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // A server with known times; leave it out and name your own.
//!     let serving = model::Settings::fixed(20.0, 2.0);
//!     let server = Mock::start(mock::Settings { serving, ..mock::Settings::default() })?;
//!
//!     let plan = Plan::builder(&format!("http://{}", server.address()))
//!         .users([1, 4])
//!         .requests(40)
//!         .output_tokens(16)
//!         .slo(Slo { ttft_ms: Some(500.0), tpot_ms: Some(50.0), ..Slo::default() })
//!         .build()?;
//!     let run = tokload::run(&plan)?;
//!
//!     println!("{run}"); // the table of tokload report
//!     for level in run.levels() {
//!         assert_eq!(level.counts.ok, 40);
//!         let ttft_ms = level.quantile_ms(Metric::Ttft, Quantile::P50).ok_or("no first token")?;
//!         assert!(ttft_ms >= 20.0, "{}: {ttft_ms} ms", level.label);
//!         assert!(level.rates.window.out_tok_s > 0.0);
//!     }
//!     Ok(())
//! }
//! ```
//!
//! The highest load at which a server keeps its limits, here of a modelled one in virtual time:
//!
//! ```
//! use tokload::model;
//! use tokload::plan::{Axis, Plan, Search, Slo};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // TTFT is 80 ms for each request in flight, so that four of them keep 360 ms.
//!     let times = model::Fixed { ttft_ms: 0.0, ttft_per_in_flight_ms: 80.0, ..model::Fixed::default() };
//!     let server = model::Settings::serving(model::Serving::Fixed(times));
//!
//!     let plan = Plan::simulation()
//!         .seed(1)
//!         .output_tokens(8)
//!         .search(Search { max: 64.0, ..Search::along(Axis::Concurrency) })
//!         .slo(Slo { ttft_ms: Some(360.0), ..Slo::default() })
//!         .build()?;
//!     let run = tokload::simulate(&plan, &server)?; // of a real server: tokload::run(&plan)?
//!
//!     let answer = &run.capacity().ok_or("no search")?.answer;
//!     assert_eq!((answer.low, answer.high), (Some(4.0), Some(5.0)));
//!     Ok(())
//! }
//! ```
//!
//! Whether a build got worse, by intervals that all hold together, so that noise is no regression:
//!
//! ```
//! use tokload::gate::{Outcome, Thresholds};
//! use tokload::model::{Batching, Cost, Serving, Settings};
//! use tokload::plan::Plan;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let measure = |seed, base_ms| {
//!         let cost = Cost { base_ms, per_sequence_ms: 0.5, per_prefill_token_ms: 0.0 };
//!         let server = Settings::serving(Serving::Batching(Batching { cost, ..Batching::default() }));
//!         let plan = Plan::simulation().seed(seed).users([8]).requests(900).output_tokens(4).build()?;
//!         Ok::<_, Box<dyn std::error::Error>>(tokload::simulate(&plan, &server)?)
//!     };
//!     let main = measure(1, 10.0)?; // or of a file: Run::open("main.json")?
//!     let same = tokload::check(&measure(2, 10.0)?, [&main], &Thresholds::default())?;
//!     let slower = tokload::check(&measure(3, 12.0)?, [&main], &Thresholds::default())?;
//!     assert_eq!((same.outcome, slower.outcome), (Outcome::Pass, Outcome::Regression));
//!     Ok(())
//! }
//! ```
//!
#![doc = include_str!("ARCHITECTURE.md")]
#![deny(unsafe_code)]
#![warn(missing_docs, unreachable_pub, missing_debug_implementations)]
#![warn(clippy::print_stdout, clippy::print_stderr, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
compile_error!(
    "tokload runs on Linux on x86-64 and aarch64 only: it needs epoll, timerfd and a counter register"
);

// Beneath everything: the operating system, and all unsafe code.
pub mod sys;

// Floor 0, ground.
pub mod rng;
pub mod time;

// Floor 1, instruments.
pub mod stats;
pub mod wire;

// Floor 2, domain.
pub mod api;
pub mod metrics;
pub mod plan;
pub mod workload;
// What a server does with it, without one.
pub mod model;

// Floor 3, lifecycle.
pub mod exchange;
pub mod run;
pub mod summary;
pub mod verdict;

pub mod strategy;

// Floor 4, engines.
pub mod engine;
pub mod pace;
// What runs on the runtime waits through `pace`.
pub mod load;

// What others say meanwhile, fetched as the client's own questions are, and what is told to who looks on: nothing of it is
// on the path of a request.
pub mod telemetry;

pub mod mock;
pub mod sim;

// Floor 5, artefacts.
pub mod run_file;
// Results of other tools as runs.
pub mod import;
// Runs against each other.
pub mod compare;
pub mod gate;

// Floor 6, views.
pub mod report;

// Floor 7, entry.
pub mod cli;
pub mod harness;

pub use harness::{Error, ErrorKind, Run, Runner, check, find_capacity, run, simulate};
