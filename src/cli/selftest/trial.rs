//! One load through the real engine against a mock server of known times, and what came of it.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use super::errors::{Errors, Off};
use super::ladder::Step;
use super::outcome::{ByKernel, SendBlock, StepBlock};
use super::server::{Server, Truth};
use super::shares::Cores;
use crate::cli::failure::Failure;
use crate::cli::target;
use crate::engine::Engine as _;
use crate::load::{LoadEngine, Setup, Spool, SpoolFiles, Target, probe};
use crate::metrics::{Metric, Phase, Record};
use crate::plan::{Arrivals, Endpoint, Level, Limits, Load, Plan, Secrets, Slo, Stop};
use crate::run::LevelResult;
use crate::stats::{Histogram, Quantile};
use crate::summary::{self, LevelSummary};
use crate::sys::clock::RunClock;
use crate::sys::limits::reserve_descriptors;
use crate::sys::signals::Interrupts;
use crate::time::Stamp;
use crate::verdict::budget::Checks;
use crate::workload::Item;

/// What every trial has in common.
pub(super) struct Bench<'a> {
    pub(super) cores: &'a Cores,
    pub(super) watch: Watch,
    /// Seed of the prompts.
    pub(super) seed: u64,
}

/// The end of all trials: the user's wish, or the time that is set.
pub(super) struct Watch {
    pub(super) clock: RunClock,
    pub(super) ends: Stamp,
    pub(super) user: Interrupts,
    /// What the engines listen to.
    engine: Interrupts,
}

/// An engine with one server, and the records of what it did.
struct Rig<'a> {
    bench: &'a Bench<'a>,
    server: Server,
    plan: Arc<Plan>,
    target: Arc<Target>,
    shelf: Shelf,
    engine: LoadEngine,
}

impl Watch {
    /// Counts on `user` for the user's wish; time is up at `ends` of `clock`.
    pub(super) fn new(clock: RunClock, ends: Stamp, user: Interrupts) -> Watch {
        Watch { clock, ends, user, engine: Interrupts::default() }
    }

    /// Time that is left, s.
    pub(super) fn left_s(&self) -> f64 {
        (self.ends - self.clock.now()).as_secs_f64()
    }

    /// Whether all has to end now. What runs then is given up: a part of a level has no percentiles worth showing.
    pub(super) fn is_over(&self) -> bool {
        let over = self.user.count() > 0 || self.clock.now() >= self.ends;
        if over && self.engine.count() == 0 {
            // Once is to send no more, twice is to give up what is open.
            self.engine.raise();
            self.engine.raise();
        }
        over
    }
}

/// Runs `step`; `None` if it was cut short.
pub(super) fn run(step: &Step, bench: &Bench<'_>) -> Result<Option<StepBlock>, Failure> {
    let mut rig = Rig::new(step, bench)?;
    let waves = |waves| {
        let units = Some(u64::from(step.streams) * u64::from(waves));
        let stop = Stop { units, duration_s: None, grace_s: GRACE_S };
        Level { load: Load::closed(step.streams), stop, warmups: 0, ..Level::default() }
    };
    // The first answer of each stream opens its connection. It is measured by nobody: what is asked is what the client
    // adds to an answer when it is busy with all the others.
    if rig.level(0, &waves(1))?.is_none() {
        return Ok(None);
    }
    rig.truth()?;
    rig.shelf.clear();
    let Some(result) = rig.level(1, &waves(step.waves))? else { return Ok(None) };
    let truth = rig.truth()?;
    rig.written_up(step, &result, &truth).map(Some)
}

/// Sends requests at a constant rate for `seconds`; `None` if it was cut short.
pub(super) fn sends(seconds: f64, bench: &Bench<'_>) -> Result<Option<SendBlock>, Failure> {
    let step = Step { streams: SENDS_WARM, ttft_ms: 20.0, itl_ms: 20.0, tokens: 2, waves: 1 };
    let mut rig = Rig::new(&step, bench)?;
    let load = Load { arrivals: Arrivals::Constant { rate: SENDS_S }, cap: None, users: None, think_s: 0.0 };
    let stop = Stop { units: None, duration_s: Some(seconds), grace_s: GRACE_S };
    let Some(result) = rig.level(0, &Level { load, stop, warmups: SENDS_WARM, ..Level::default() })? else {
        return Ok(None);
    };
    let delay = Checks::of(&result.shards).schedule_delay;
    Ok(off_of(&delay).map(|delay_ns| SendBlock { rate: SENDS_S, sends: delay.n(), delay: delay_ns }))
}

impl<'a> Rig<'a> {
    fn new(step: &Step, bench: &'a Bench<'a>) -> Result<Rig<'a>, Failure> {
        let server = Server::start(step, bench.cores)?;
        let plan = Arc::new(plan(step, bench, &server.url));
        let target = Arc::new(target::of(&plan, target::routes(&plan, &Secrets::default())?, None)?);
        reserve_descriptors(u64::from(step.streams) + OWN_DESCRIPTORS);
        let shelf = Shelf::default();
        let files = SpoolFiles { records: Box::new(shelf.clone()), chunks: None };
        let cores = bench.cores.client.iter().copied().map(Some).collect::<Vec<_>>();
        let engine = LoadEngine::start(Setup {
            clock: bench.watch.clock,
            target: Arc::clone(&target),
            ask: probe::ask_of(&plan),
            plan: Arc::clone(&plan),
            cores: if cores.is_empty() { vec![None] } else { cores },
            spool: Some(Spool::start(files).map_err(Failure::own)?),
            live: None,
            agreed: None,
            interrupts: bench.watch.engine.clone(),
        })?;
        Ok(Rig { bench, server, plan, target, shelf, engine })
    }

    /// Runs a level; `None` if it was cut short.
    fn level(&mut self, ordinal: usize, level: &Level) -> Result<Option<LevelResult>, Failure> {
        let watch = &self.bench.watch;
        if watch.is_over() {
            return Ok(None);
        }
        let result = self.engine.run_level(ordinal, level, &mut |_| {
            watch.is_over();
        })?;
        Ok((!result.interrupted).then_some(result))
    }

    fn truth(&self) -> Result<Truth, Failure> {
        match self.target.routes.first() {
            Some(route) => self.server.truth(route),
            None => Err(Failure::own("the mock server has no address")),
        }
    }

    fn written_up(&self, step: &Step, result: &LevelResult, truth: &Truth) -> Result<StepBlock, Failure> {
        let records = self.shelf.records().map_err(Failure::own)?;
        let summary = summary::level(&summary::Input::new(result, Some(&records), Slo::default()));
        let line = self.bench.watch.clock.on_monotonic();
        let (seed, content) = (self.plan.level_seed(result.ordinal), &self.target.content);
        let mut prompt = String::new();
        let errors = Errors::of(&records, &truth.served, &line, |index, body| {
            let item = Item { seed, phase: Phase::Measured, index };
            prompt.clear();
            content.write_prompt(&mut prompt, item);
            let template = &self.target.templates[self.target.model_of(item)];
            template.write(body, prompt.as_str(), content.output_tokens(item), &item.filling());
        });
        let events: u64 = result.shards.iter().map(|shard| shard.events).sum();
        let cpu_ns: u64 = result.shards.iter().map(|shard| shard.cpu_ns).sum();
        let level_s = (result.span.t2 - result.span.t0).as_secs_f64();
        let by_kernel = ByKernel {
            ttft: Off::of(errors.kernel_ttft),
            itl: itl_error(&summary, Metric::ItlKernel, truth.itl),
        };
        Ok(StepBlock {
            step: *step,
            requests: summary.counts.ok,
            failed: step.requests().saturating_sub(summary.counts.ok),
            unknown: errors.unknown,
            events,
            events_s: if level_s > 0.0 { (events as f64 / level_s).round() as u64 } else { 0 },
            cpu_ns,
            busy_share: result.host.and_then(|host| host.busy_share),
            ttft: Off::of(errors.ttft),
            last: Off::of(errors.last),
            itl: itl_error(&summary, Metric::Itl, truth.itl),
            by_kernel: Some(by_kernel).filter(|kernel| kernel.ttft.is_some()),
            server_late: truth.lateness,
            to_server: Off::of(errors.to_server),
        })
    }
}

/// The quantiles of the gaps as measured, minus those of the server's. The gaps that we pool are rounded up to the buckets
/// of a histogram; so are the server's here, that the rounding is no error.
fn itl_error(summary: &LevelSummary, metric: Metric, truth: Off) -> Option<Off> {
    let measured = summary.distribution(metric)?;
    let at = |quantile| measured.quantile(quantile).map(|ns| ns as i64);
    let bucket = |ns: i64| Histogram::bucket_highest(Histogram::bucket_of(ns.max(0) as u64)) as i64;
    let measured =
        Off { p50_ns: at(Quantile::P50)?, p99_ns: at(Quantile::P99)?, max_ns: measured.max as i64 };
    // A quantile is no larger than the largest value, which is exact on both sides.
    let top = |ns: i64| bucket(ns).min(truth.max_ns);
    let truth = Off { p50_ns: top(truth.p50_ns), p99_ns: top(truth.p99_ns), max_ns: truth.max_ns };
    Some(Off::between(measured, truth))
}

fn off_of(histogram: &Histogram) -> Option<Off> {
    let at = |quantile| histogram.quantile(quantile).map(|ns| ns as i64);
    let max_ns = histogram.totals().max()? as i64;
    Some(Off { p50_ns: at(Quantile::P50)?, p99_ns: at(Quantile::P99)?, max_ns })
}

/// A plan that leaves its levels to be run one by one.
fn plan(step: &Step, bench: &Bench<'_>, url: &str) -> Plan {
    let mut plan = Plan::new(bench.seed & Plan::SEED_MAX);
    plan.target.endpoints = vec![Endpoint { url: url.to_owned() }];
    plan.target.models = vec!["mock".to_owned()];
    plan.workload.input_words = PROMPT_WORDS.into();
    plan.workload.output_tokens = step.tokens.into();
    plan.limits = Limits { connect_s: 10.0, first_s: 30.0, gap_s: 30.0, total_s: 60.0 };
    plan.client.start_spread_us = step.spread_us(bench.cores);
    plan
}

/// Records in memory: a level of them is some MiB, and a disk would only be in the way.
#[derive(Clone, Debug, Default)]
struct Shelf(Arc<Mutex<Vec<u8>>>);

impl Shelf {
    fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// # Errors
    /// A record is none of ours.
    fn records(&self) -> Result<Vec<Record>, String> {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (records, _) = bytes.as_chunks::<{ Record::BYTES }>();
        let read = records.iter().map(Record::decode).collect::<Option<Vec<_>>>();
        read.ok_or_else(|| "a record of the selftest is none of ours".to_owned())
    }
}

impl Write for Shelf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends per second at a constant rate, and the connections that are open before.
const SENDS_S: f64 = 500.0;
const SENDS_WARM: u32 = 32;
const PROMPT_WORDS: u32 = 16;
/// No level is stopped but to be given up.
const GRACE_S: f64 = 30.0;
const OWN_DESCRIPTORS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_kept_in_memory_until_they_are_cleared() {
        let shelf = Shelf::default();
        let record = Record::planned(3, Stamp::from_millis(5));
        shelf.clone().write_all(&record.encode()).unwrap();
        assert_eq!(shelf.records(), Ok(vec![record]));
        shelf.clear();
        assert_eq!(shelf.records(), Ok(vec![]));
        shelf.clone().write_all(&[255; Record::BYTES]).unwrap();
        assert!(shelf.records().is_err());
    }

    #[test]
    fn time_and_the_user_end_all_that_runs() {
        let clock = RunClock::start();
        let user = Interrupts::default();
        let watch = |ends| Watch::new(clock, ends, user.clone());
        let over = watch(Stamp::ZERO);
        assert!(over.is_over() && over.is_over());
        assert_eq!(over.engine.count(), 2);
        let waiting = watch(Stamp::MAX);
        assert!(!waiting.is_over());
        assert_eq!(waiting.engine.count(), 0);
        user.raise();
        assert!(waiting.is_over());
        assert_eq!(waiting.engine.count(), 2);
    }

    #[test]
    fn quantiles_of_a_histogram_are_its_buckets() {
        let mut histogram = Histogram::new();
        (1..=100_u64).for_each(|us| histogram.record(us * 1_000));
        let off = off_of(&histogram).unwrap();
        let bucket = |ns| Histogram::bucket_highest(Histogram::bucket_of(ns)) as i64;
        assert_eq!(off, Off { p50_ns: bucket(50_000), p99_ns: bucket(99_000), max_ns: 100_000 });
        assert_eq!(off_of(&Histogram::new()), None);
    }
}
