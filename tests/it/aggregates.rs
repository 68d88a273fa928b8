//! Every aggregate case, whole, through `summary`: each expected key is checked, and an unknown one fails.

use serde::Deserialize;
use serde_json::{Map, Value};
use tokload::metrics::{Class, Kind, Metric, Outcome, Phase, Record, Slo, Tally, TokenSource};
use tokload::run::{Span, Window};
use tokload::stats::Quantile;
use tokload::stats::quantile::{linear, nearest_rank};
use tokload::summary::{self, Input, LevelSummary, Ranked};
use tokload::time::Stamp;

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    id: String,
    records: Vec<Finished>,
    #[serde(default)]
    slo: Slo,
    window_ms: Option<(f64, f64)>,
    expected: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Finished {
    send_ms: f64,
    sched_ms: Option<f64>,
    first_ms: Option<f64>,
    last_ms: Option<f64>,
    end_ms: f64,
    out_tokens: u32,
    status: String,
    phase: Option<String>,
    token_source: Option<TokenSource>,
    events: Option<u32>,
}

impl Finished {
    fn record(&self, index: usize) -> Record {
        let mut record = Record::planned(index as u64, stamp(self.sched_ms.unwrap_or(self.send_ms)));
        record.start = stamp(self.send_ms);
        record.permit = record.plan;
        (record.first, record.last) = (self.first_ms.map(stamp), self.last_ms.map(stamp));
        record.answer = record.first;
        record.end = stamp(self.end_ms);
        record.output_tokens = Some(self.out_tokens);
        record.output_source = self.token_source.unwrap_or(TokenSource::Usage);
        record.events = self.events.unwrap_or(if self.first_ms.is_some() { 2 } else { 0 });
        record.phase = match self.phase.as_deref() {
            None | Some("main") => Phase::Measured,
            Some("warmup") => Phase::Warmup,
            Some(other) => panic!("phase {other}"),
        };
        record.outcome = match self.status.as_str() {
            "ok" => Outcome::ok(200),
            "error" => Outcome::new(Class::Reset, Kind::Truncated, 200),
            "unfinished" => Outcome::new(Class::Unfinished, Kind::None, 0),
            "cancelled" => Outcome::new(Class::Cancelled, Kind::None, 200),
            other => panic!("status {other}"),
        };
        record
    }
}

fn stamp(ms: f64) -> Stamp {
    Stamp::from_nanos((ms * 1e6).round() as u64)
}

impl Case {
    fn records(&self) -> Vec<Record> {
        self.records.iter().enumerate().map(|(index, finished)| finished.record(index)).collect()
    }

    fn summarise(&self, records: &[Record]) -> (LevelSummary, Window) {
        let measured = || records.iter().filter(|record| record.phase == Phase::Measured);
        let t0 = measured().map(|record| record.plan).min().unwrap();
        let t1 = measured().map(|record| record.plan).max().unwrap();
        let t2 = measured().map(|record| record.end).max().unwrap();
        let window = match self.window_ms {
            Some((start, end)) => Window { start: stamp(start), end: stamp(end), whole_level: false },
            None => Window { start: t0, end: t2, whole_level: true },
        };
        let summary = summary::level(&Input {
            records: Some(records),
            tally: &Tally::default(),
            window,
            span: Span { t0, t1, t2 },
            slo: self.slo,
            from_plan: self.records.iter().any(|finished| finished.sched_ms.is_some()),
            timestamps: tokload::plan::Timestamps::Both,
            steady_cut: tokload::plan::SteadyCut::Default,
            steady_from_s: Some(0.0),
            users: None,
            counted: None,
        });
        (summary, window)
    }

    fn check(&self) {
        let records = self.records();
        let (summary, window) = self.summarise(&records);
        for (key, expected) in &self.expected {
            let context = format!("{} {key}", self.id);
            if let Some(metric) = key.strip_suffix("_with_failures_ms") {
                check_failures(&summary, metric.parse().unwrap(), expected, &context);
            } else if let Some(metric) = key.strip_suffix("_ms") {
                let metric: Metric = metric.parse().unwrap();
                let ok = records.iter().filter(|r| r.phase == Phase::Measured && r.outcome.is_ok());
                let population = ok.filter(|r| window.contains(r.plan));
                let values: Vec<f64> = population.filter_map(|r| metric.of(r)).map(|ns| ns / 1e6).collect();
                check_distribution(&summary, metric, values, expected, &context);
            } else {
                check_number(&summary, key, expected, &context);
            }
        }
    }
}

fn check_number(summary: &LevelSummary, key: &str, expected: &Value, context: &str) {
    let counts = &summary.counts;
    let goodput = || summary.goodput.unwrap();
    let value = match key {
        "ok" => counts.ok as f64,
        "errors" => counts.failed as f64,
        "error_rate" => counts.failed as f64 / counts.judged() as f64,
        "level_s" => summary.level_rates.span_s,
        "level_req_s" => summary.level_rates.req_s,
        "level_out_tok_s" => summary.level_rates.out_tok_s,
        "req_s" => summary.window_rates.req_s,
        "output_tokens" => summary.tokens.output as f64,
        "good" => goodput().good as f64,
        "goodput_s" => goodput().good_s,
        "attainment" => goodput().attainment,
        "mixed_token_source" => {
            assert_eq!(Value::Bool(summary.tokens.mixed_sources), *expected, "{context}");
            return;
        }
        other => panic!("{context}: nothing computes {other}"),
    };
    assert_number(Some(value), expected, context);
}

fn check_distribution(
    summary: &LevelSummary,
    metric: Metric,
    mut values: Vec<f64>,
    expected: &Value,
    context: &str,
) {
    values.sort_unstable_by(f64::total_cmp);
    let found = summary.distribution(metric);
    for (key, expected) in expected.as_object().unwrap() {
        let quantile = |name: &str| name.strip_prefix('p').unwrap().parse::<Quantile>().unwrap();
        let ms = |ns: f64| ns / 1e6;
        let value = match (key.as_str(), key.strip_suffix("_linear")) {
            ("n", _) => Some(found.map_or(0, |d| d.n) as f64),
            ("mean", _) => found.map(|d| ms(d.mean())),
            ("min", _) => found.map(|d| ms(d.min)),
            ("max", _) => found.map(|d| ms(d.max)),
            (_, Some(name)) => linear(&values, quantile(name)),
            (name, None) => {
                let shown = found.and_then(|d| d.quantile(quantile(name))).map(ms);
                assert_eq!(shown, nearest_rank(&values, quantile(name)), "{context} {name}");
                shown
            }
        };
        assert_number(value, expected, &format!("{context} {key}"));
    }
}

fn check_failures(summary: &LevelSummary, metric: Metric, expected: &Value, context: &str) {
    for (key, expected) in expected.as_object().unwrap() {
        let quantile = key.strip_prefix('p').unwrap().parse().unwrap();
        match summary.with_failures(metric, quantile) {
            Ranked::Value(ns) => assert_number(Some(ns / 1e6), expected, context),
            Ranked::Failed => assert_eq!(expected, "failed", "{context} {key}"),
            Ranked::Undefined => assert_eq!(expected, &Value::Null, "{context} {key}"),
        }
    }
}

/// The expected numbers are written with six decimals.
fn assert_number(value: Option<f64>, expected: &Value, context: &str) {
    match (value, expected.as_f64()) {
        (Some(value), Some(expected)) => {
            assert!((value - expected).abs() <= 6e-7, "{context}: {value} instead of {expected}");
        }
        (value, expected) => assert_eq!(value, expected, "{context}"),
    }
}

#[test]
fn every_aggregate_case_comes_out_whole() {
    let file: File = serde_json::from_str(include_str!("../cases/aggregates.json")).unwrap();
    assert_eq!(file.cases.len(), 10);
    file.cases.iter().for_each(Case::check);
}
