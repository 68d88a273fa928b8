//! From a result as it was read to a run file.

use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::json;

use super::{Details, Error, Level, Numbers, Result, definitions};
use crate::metrics::counts::{Counts, OutcomeCount, Tokens};
use crate::metrics::metric::Metric;
use crate::metrics::{Outcome, Phase, Record, Tally};
use crate::plan::{Load, Slo, SteadyCut, Timestamps};
use crate::run::{RecordRange, Span, Window};
use crate::run_file::schema::{
    DistributionBlock, EnvironmentBlock, ExampleBlock, LevelBlock, RatesBlock, RunFile, SCHEMA,
    SelfCheckBlock, ToolBlock, VERSION, Verbatim,
};
use crate::run_file::{Destination, Spool, WriteError, redact};
use crate::summary::{self, Rates};
use crate::time::Stamp;

pub(super) fn run(result: Result, into: &Destination) -> std::result::Result<RunFile, Error> {
    let Result { tool, version, created, label, metadata, target, interrupted, levels, mut about } = result;
    if levels.iter().any(|level| !level.printed.is_empty()) {
        about.printed = levels.iter().map(|level| level.printed.clone()).collect();
    }
    let mut run = RunFile {
        cut: None,
        schema: SCHEMA.to_owned(),
        version: VERSION,
        tool: ToolBlock { name: tool.name().to_owned(), version, git: None },
        created,
        label,
        metadata: metadata
            .into_iter()
            .map(|(name, value)| match redact::is_secret_name(&name) {
                true => (name, redact::REMOVED.to_owned()),
                false => (name, redact::urls(&value)),
            })
            .collect(),
        definitions: definitions::of(tool, about.detailed),
        environment: EnvironmentBlock::default(),
        plan: Verbatim::unknown(),
        target,
        levels: Vec::new(),
        findings: None,
        verdict: None,
        repeats: None,
        knee: None,
        capacity: None,
        merged: None,
        imported: Some(about),
        trace: None,
        data: None,
        telemetry: None,
        records: None,
        records_absent: None,
        chunks: None,
        interrupted,
    };
    // Every level or none: a run has records or has not.
    let is_timed = |level: &Level| level.details.as_ref().is_some_and(|details| details.timed);
    let mut records = match levels.iter().all(is_timed) {
        true => Some(Records::open(into).map_err(Error::Write)?),
        false => None,
    };
    for (ordinal, level) in levels.iter().enumerate() {
        let range = match (&mut records, &level.details) {
            (Some(records), Some(details)) => Some(records.write(&details.records).map_err(Error::Write)?),
            _ => None,
        };
        run.levels.push(block(ordinal, level, range));
    }
    match records {
        Some(records) => run.records = Some(records.finish().map_err(Error::Write)?),
        None => {
            run.records_absent = Some("the imported file does not say when each request was sent".to_owned());
        }
    }
    run.find_knee();
    Ok(run)
}

/// The side file of an imported run.
struct Records {
    spool: Spool,
    writer: crate::run_file::SpoolWriter,
    written: u64,
}

impl Records {
    fn open(into: &Destination) -> std::result::Result<Records, WriteError> {
        let spool = into.records()?;
        Ok(Records { writer: spool.writer()?, spool, written: 0 })
    }

    fn write(&mut self, records: &[Record]) -> std::result::Result<RecordRange, WriteError> {
        let first = self.written;
        for record in records {
            let written = self.writer.write_all(&record.encode());
            written.map_err(|error| self.spool.failed(error))?;
            self.written += 1;
        }
        Ok(RecordRange { first, count: self.written - first })
    }

    fn finish(mut self) -> std::result::Result<crate::run_file::schema::SideFile, WriteError> {
        let flushed = self.writer.flush();
        flushed.map_err(|error| self.spool.failed(error))?;
        drop(self.writer);
        self.spool.finish()
    }
}

fn block(ordinal: usize, level: &Level, range: Option<RecordRange>) -> LevelBlock {
    let numbers = &level.numbers;
    let length_ns = (numbers.duration_s * 1e9) as u64;
    let whole = Span { t0: Stamp::ZERO, t1: Stamp::from_nanos(length_ns), t2: Stamp::from_nanos(length_ns) };
    let is_counted = numbers.output_tokens.is_some() || numbers.out_tok_s.is_some();
    let span = level.details.as_ref().filter(|details| details.timed).map_or(whole, span);
    let window = Window { start: span.t0, end: span.t2, whole_level: true };
    let mut block = LevelBlock {
        ordinal,
        repeat: 0,
        label: level.label.clone(),
        setting: level.load.as_ref().map_or_else(Verbatim::unknown, |load| setting(load, level.units)),
        span: span.into(),
        window: window.into(),
        bodies: None,
        counts: counts(numbers),
        distributions: level.distributions.iter().cloned().collect(),
        groups: Vec::new(),
        replicas: Vec::new(),
        rates: rates(numbers, window.nanos() as f64 / 1e9),
        goodput: None,
        tokens: Tokens {
            prompt: numbers.prompt_tokens.unwrap_or(0),
            prompt_known: if numbers.prompt_tokens.is_some() { numbers.ok } else { 0 },
            output: numbers.output_tokens.unwrap_or(0),
            sources: [0, 0, 0, if is_counted { numbers.ok } else { 0 }],
            ..Tokens::default()
        },
        cache_split: None,
        reuse: None,
        in_flight: None,
        statistics: None,
        self_check: SelfCheckBlock::default(),
        findings: None,
        verdict: None,
        series: None,
        slices: None,
        stress: None,
        herd: None,
        examples: Vec::new(),
        lengthened: None,
        judged: None,
        turns: None,
        sessions: None,
        telemetry: None,
        part: None,
        shares: None,
        records: range.map(Into::into),
        interrupted: false,
    };
    if let Some(details) = &level.details {
        add_details(&mut block, details, (span, window));
    }
    block
}

/// What single requests say, in the place of what the tool says of all; its rates stay its own.
fn add_details(block: &mut LevelBlock, details: &Details, (span, window): (Span, Window)) {
    let mut tally = Tally::default();
    tally.begin(span.t0);
    let none = crate::metrics::Gaps::default();
    for (record, gaps) in details.records.iter().zip(&details.gaps) {
        if record.phase == Phase::Measured {
            tally.on_sent(record.start);
            tally.on_done(record, gaps, &none, span.t0);
        }
    }
    let summary = summary::level(&summary::Input {
        records: Some(&details.records),
        tally: &tally,
        window,
        steady_cut: SteadyCut::default(),
        span,
        slo: Slo::default(),
        // When requests were planned no file says.
        from_plan: false,
        timestamps: Timestamps::User,
        steady_from_s: None,
        users: None,
        counted: None,
    });
    let known = |metric: &Metric| details.metrics.contains(metric);
    let distributions = summary.distributions.iter().filter(|distribution| known(&distribution.metric));
    let ours: BTreeMap<Metric, DistributionBlock> = distributions
        .map(|distribution| (distribution.metric, DistributionBlock::new(distribution)))
        .collect();
    block.distributions.extend(ours);
    block.counts = summary.counts.clone();
    block.tokens = summary.tokens.clone();
    block.examples = details.examples.iter().map(ExampleBlock::new).collect();
    if block.rates.window.req_s == 0.0 && summary.counts.ok > 0 {
        // No file said what the tool made of them.
        block.rates = RatesBlock { window: summary.window_rates, level: summary.level_rates };
    }
    if details.timed {
        block.in_flight = summary.in_flight;
        block.statistics = summary.statistics;
        block.series = Some(Verbatim::of(tally.series()));
    }
}

fn span(details: &Details) -> Span {
    let measured = || details.records.iter().filter(|record| record.phase == Phase::Measured);
    let t0 = measured().map(|record| record.start).min().unwrap_or(Stamp::ZERO);
    let t1 = measured().map(|record| record.start).max().unwrap_or(t0);
    let t2 = measured().map(|record| record.end).max().unwrap_or(t1);
    Span { t0, t1, t2: t2.max(t1) }
}

fn setting(load: &Load, units: Option<u64>) -> Verbatim<crate::plan::Level> {
    // The rest of a level nobody knows: it is left out rather than filled in.
    let stop = units.map_or(json!({}), |units| json!({ "units": units }));
    Verbatim::partial(json!({ "load": load, "stop": stop }))
}

fn counts(numbers: &Numbers) -> Counts {
    let Numbers { ok, failed, .. } = *numbers;
    // How requests failed it does not say.
    let outcomes =
        if ok > 0 { vec![OutcomeCount { outcome: Outcome::ok(0), count: ok }] } else { Vec::new() };
    Counts { planned: ok + failed, ok, failed, outcomes, ..Counts::default() }
}

fn rates(numbers: &Numbers, span_s: f64) -> RatesBlock {
    let length = if numbers.duration_s > 0.0 { numbers.duration_s } else { span_s };
    let per = |n: u64| if length > 0.0 { n as f64 / length } else { 0.0 };
    let (out_tok_s, in_tok_s) = (
        numbers.out_tok_s.or(numbers.output_tokens.map(per)).unwrap_or(0.0),
        numbers.in_tok_s.or(numbers.prompt_tokens.map(per)).unwrap_or(0.0),
    );
    let rates = Rates {
        span_s: length,
        offered_s: per(numbers.ok + numbers.failed),
        req_s: numbers.req_s.unwrap_or(0.0),
        out_tok_s,
        in_tok_s,
        total_tok_s: numbers.total_tok_s.unwrap_or(out_tok_s + in_tok_s),
    };
    RatesBlock { window: rates, level: rates }
}
