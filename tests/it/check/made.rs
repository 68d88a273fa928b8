//! Runs made up by hand, to compare.

use std::time::Duration;

use tokload::compare::Sample;
use tokload::metrics::{Class, Kind, Outcome, Record, Tally, TokenSource};
use tokload::plan::{Level, Load, Plan, Stop};
use tokload::run::{LevelResult, RecordRange, ShardCheck, Span, Stamps, Window};
use tokload::run_file::schema::{EnvironmentBlock, TargetBlock};
use tokload::run_file::{RunFile, WallTime};
use tokload::summary::{self, Input};
use tokload::time::Stamp;

/// A run in which request i of each level comes after 100 ms times i, and has the given TTFT, ms; `None`: it fails. Each
/// answer has eleven tokens 10 ms apart.
pub(crate) fn run(name: &str, levels: &[(Load, Vec<Option<f64>>)]) -> Sample {
    let (run, records) = run_file(levels);
    Sample::new(name, run, &records)
}

/// The same as a run file, with the records of each level.
pub(crate) fn run_file(levels: &[(Load, Vec<Option<f64>>)]) -> (RunFile, Vec<Option<Vec<Record>>>) {
    let mut plan = Plan::new(1);
    plan.target.models = vec!["made".to_owned()];
    let level = |(load, ttft): &(Load, Vec<Option<f64>>)| Level {
        load: load.clone(),
        stop: Stop { units: Some(ttft.len() as u64), ..Stop::default() },
        warmups: 2,
        ..Level::default()
    };
    plan.levels = levels.iter().map(level).collect();
    let target = TargetBlock { kind: Some("vllm".to_owned()), ..TargetBlock::default() };
    let created = WallTime::from_unix_nanos(1_796_071_493_000_000_042);
    let mut run = RunFile::new(created, &plan, EnvironmentBlock::default(), target);
    let (mut first, mut all) = (0, Vec::new());
    for (ordinal, (level, (_, ttft))) in plan.levels.iter().zip(levels).enumerate() {
        let t0 = Stamp::from_millis(1_000_000 * ordinal as u64 + 1_000);
        let records: Vec<Record> =
            ttft.iter().zip(0..).map(|(ttft, index)| request(index, t0, *ttft)).collect();
        let last = |of: fn(&Record) -> Stamp| records.iter().map(of).max().unwrap_or(t0);
        let (t1, t2) = (last(|record| record.plan), last(|record| record.end));
        let count = records.len() as u64;
        let result = LevelResult {
            slices: None,
            replicas: Vec::new(),
            ordinal,
            level: level.clone(),
            span: Span { t0, t1, t2 },
            window: Window { start: t0, end: t2, whole_level: true },
            tally: Tally::new(t0),
            records: Some(RecordRange { first, count }),
            shards: vec![ShardCheck { sent: count, ..ShardCheck::default() }],
            host: None,
            stamps: Stamps::default(),
            examples: Vec::new(),
            lengthened: None,
            judged: None,
            interrupted: false,
        };
        first += count;
        run.push(&result, &summary::level(&Input::new(&result, Some(&records), plan.slo)));
        all.push(Some(records));
    }
    run.judge();
    (run, all)
}

fn request(index: u64, t0: Stamp, ttft_ms: Option<f64>) -> Record {
    let plan = t0 + Duration::from_millis(100 * index);
    let mut record = Record::planned(index, plan);
    (record.permit, record.start) = (plan, plan);
    let Some(ttft_ms) = ttft_ms else {
        record.outcome = Outcome::new(Class::Http, Kind::HttpStatus, 500);
        record.end = plan + Duration::from_millis(5);
        return record;
    };
    let first = plan + Duration::from_nanos((ttft_ms * 1e6).round() as u64);
    let last = first + Duration::from_millis(100);
    record.outcome = Outcome::ok(200);
    (record.first, record.answer, record.last, record.end) = (Some(first), Some(first), Some(last), last);
    (record.events, record.output_tokens, record.output_source) = (11, Some(11), TokenSource::Usage);
    record.stall_ns = 10_000_000.into();
    (record.prompt_tokens, record.prompt_source) = (Some(20), TokenSource::Usage);
    record
}

/// `n` requests with one TTFT, ms.
pub(crate) fn constant(n: usize, ttft_ms: f64) -> Vec<Option<f64>> {
    vec![Some(ttft_ms); n]
}

/// `n` requests whose TTFT lies evenly within a tenth about `ttft_ms`, in an order without waves.
pub(crate) fn spread(n: usize, ttft_ms: f64, seed: u64) -> Vec<Option<f64>> {
    let mut stream = tokload::rng::stream(seed, tokload::rng::Purpose::Choice, 0);
    (0..n).map(|_| Some(ttft_ms * (0.95 + 0.1 * tokload::rng::unit(&mut stream)))).collect()
}
