//! Results of aiperf: `profile_export_aiperf.json`, the statistics of all requests, and `profile_export.jsonl`, a line for
//! each. Either is read alone; the other, if it lies beside it, adds what the first has not.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::{Details, Error, File, Level, Numbers, Result, Tool, nanos};
use crate::metrics::metric::Metric;
use crate::metrics::{Class, Gaps, Kind, Outcome, Phase, Record, TokenSource};
use crate::plan::{Arrivals, Load};
use crate::run_file::WallTime;
use crate::run_file::schema::{DistributionBlock, ImportedBlock, TargetBlock, Unit, load_label};
use crate::stats::Quantile;
use crate::stats::sort;
use crate::summary::QuantileValue;
use crate::time::Stamp;

/// A line of the export of requests.
#[derive(Debug, Deserialize)]
struct Line {
    metadata: Metadata,
    #[serde(default)]
    metrics: Option<BTreeMap<String, Measured>>,
    #[serde(default)]
    error: Option<Failure>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    session_num: Option<u64>,
    turn_index: Option<u64>,
    request_start_ns: Option<u64>,
    request_end_ns: Option<u64>,
    benchmark_phase: Option<String>,
    was_cancelled: Option<bool>,
}

#[derive(Debug, Deserialize)]
struct Measured {
    value: Value,
    #[serde(default)]
    unit: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Failure {
    code: Option<i64>,
    r#type: Option<String>,
    message: Option<String>,
}

/// A metric by its name; in older versions they stand in a block of their own.
fn metric<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    value.get(name).or_else(|| value.get("records")?.get(name)).filter(|block| block.is_object())
}

pub(super) fn read(
    file: File<'_>,
    beside: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> std::result::Result<Result, Error> {
    let values: std::result::Result<Value, _> = serde_json::from_slice(file.bytes);
    let statistics = values.ok().filter(Tool::is_aiperf_statistics);
    let other_name = match statistics {
        Some(_) => file.name.strip_suffix("_aiperf.json").map(|stem| format!("{stem}.jsonl")),
        None => file.name.strip_suffix(".jsonl").map(|stem| format!("{stem}_aiperf.json")),
    };
    let other = other_name.as_deref().and_then(|name| Some((name, beside(name)?)));
    let mut files = vec![file.name.to_owned()];
    files.extend(other.as_ref().map(|(name, _)| (*name).to_owned()));
    let other = other.as_ref().map(|(_, bytes)| bytes.as_slice());
    let (statistics, lines) = match statistics {
        Some(statistics) => (Some(statistics), other.map(lines).transpose()?),
        None => {
            let statistics = other.map(serde_json::from_slice::<Value>).transpose().map_err(Error::Json)?;
            (statistics, Some(lines(file.bytes)?))
        }
    };
    let zero = lines.as_deref().and_then(first_start);
    let details = lines.map(|lines| details(&lines, zero.unwrap_or(0))).transpose()?;
    build(statistics.as_ref(), details, zero, files)
}

/// The lines of an export; an empty one is passed over.
fn lines(bytes: &[u8]) -> std::result::Result<Vec<Line>, Error> {
    let mut all = Vec::new();
    for (place, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let read = serde_json::from_slice(line);
        all.push(read.map_err(|error| Error::Value {
            key: format!("line {}", place + 1),
            wrong: error.to_string(),
        })?);
    }
    if all.is_empty() { Err(Error::Empty) } else { Ok(all) }
}

/// When the first measured request began, ns since 1970.
fn first_start(lines: &[Line]) -> Option<u64> {
    let measured = lines.iter().filter(|line| phase(line) == Phase::Measured);
    measured.filter_map(|line| line.metadata.request_start_ns).min()
}

fn phase(line: &Line) -> Phase {
    match line.metadata.benchmark_phase.as_deref() {
        Some("warmup") => Phase::Warmup,
        _ => Phase::Measured,
    }
}

/// The requests on a time line whose zero lies [`LEAD_NS`] before `zero`, so that warm-up requests have room.
fn details(lines: &[Line], zero: u64) -> std::result::Result<Details, Error> {
    let earliest = lines.iter().filter_map(|line| line.metadata.request_start_ns).min().unwrap_or(zero);
    let mut all = Details { timed: true, metrics: &KNOWN, ..Details::default() };
    let mut indices = [0_u64; 2];
    for (place, line) in lines.iter().enumerate() {
        let key = |what: &str| format!("request {}, {what}", place + 1);
        let begun = line.metadata.request_start_ns;
        let begun = begun.ok_or_else(|| Error::Missing { key: key("request_start_ns") })?;
        let start = begun - earliest;
        nanos(start as f64 / 1e9, &key("request_start_ns"))?;
        let index = &mut indices[phase(line) as usize];
        let mut record = Record::planned(*index, Stamp::from_nanos(start));
        *index += 1;
        record.phase = phase(line);
        record.session = line.metadata.session_num.unwrap_or(record.index);
        record.turn = u16::try_from(line.metadata.turn_index.unwrap_or(0)).unwrap_or(u16::MAX);
        let end = line.metadata.request_end_ns.map_or(start, |end| end.saturating_sub(earliest).max(start));
        nanos((end - start) as f64 / 1e9, &key("request_end_ns"))?;
        record.end = Stamp::from_nanos(end);
        let value = |name: &str| line.metrics.as_ref().and_then(|metrics| metrics.get(name));
        let tokens = |name: &str| Some(value(name)?.value.as_f64()?.max(0.0) as u32);
        let prompt = tokens("input_sequence_length").or_else(|| tokens("error_isl"));
        record.prompt_tokens = prompt;
        if let Some(failure) = failure(line) {
            record.outcome = failure;
            let said = line.error.as_ref().and_then(|error| error.message.clone()).unwrap_or_default();
            all.add_example(failure, &said);
            all.push(record, Gaps::default());
            continue;
        }
        record.outcome = Outcome::ok(0);
        let span = |name: &str| -> std::result::Result<Option<u64>, Error> {
            let Some(measured) = value(name) else { return Ok(None) };
            let Some(number) = measured.value.as_f64() else { return Ok(None) };
            nanos(number * seconds_per(&measured.unit, &key(name))?, &key(name)).map(Some)
        };
        let at = |offset: u64| Stamp::from_nanos(start.saturating_add(offset));
        let last = span("request_latency")?.unwrap_or(end - start);
        record.first = span("time_to_first_token")?.map(at);
        record.answer = span("time_to_first_output_token")?.map(at);
        record.last = Some(at(last));
        record.end = record.end.max(at(last));
        let gaps = gaps(value("inter_chunk_latency"), &key("inter_chunk_latency"))?;
        record.stall_ns = gaps.stall().into();
        record.output_tokens = tokens("output_sequence_length");
        record.output_source = TokenSource::Unknown;
        // Without gaps the number of chunks is not known: as many as tokens, so that TPOT is that of the tool.
        let chunks = if gaps.is_empty() { record.output_tokens.unwrap_or(1) } else { gaps.len() as u32 + 1 };
        record.events = chunks.max(1);
        all.push(record, gaps);
    }
    Ok(all)
}

/// What is known of a request.
const KNOWN: [Metric; 7] =
    [Metric::Ttft, Metric::Ttfa, Metric::E2e, Metric::Tpot, Metric::Itl, Metric::Stall, Metric::UserSpeed];

fn gaps(of: Option<&Measured>, key: &str) -> std::result::Result<Gaps, Error> {
    let mut gaps = Gaps::default();
    let Some(measured) = of else { return Ok(gaps) };
    let per = seconds_per(&measured.unit, key)?;
    for gap in measured.value.as_array().into_iter().flatten() {
        let wrong = || Error::Value { key: key.to_owned(), wrong: format!("{gap} is no gap") };
        gaps.record(nanos(gap.as_f64().ok_or_else(wrong)? * per, key)?);
    }
    Ok(gaps)
}

/// How a request failed; `None` if it did not.
fn failure(line: &Line) -> Option<Outcome> {
    if line.metadata.was_cancelled == Some(true) {
        return Some(Outcome::new(Class::Cancelled, Kind::None, 0));
    }
    let error = line.error.as_ref()?;
    let code = error.code.and_then(|code| u16::try_from(code).ok()).filter(|code| (300..=599).contains(code));
    let kind = error.r#type.as_deref().unwrap_or_default();
    let named = |words: &[&str]| words.iter().any(|word| kind.contains(word));
    Some(match code {
        _ if named(&["Cancel"]) => Outcome::new(Class::Cancelled, Kind::None, 0),
        Some(code) => Outcome::new(Class::Http, Kind::HttpStatus, code),
        _ if named(&["Timeout"]) => Outcome::new(Class::TimeoutTotal, Kind::Timeout, 0),
        _ if named(&["Connector", "ConnectionRefused"]) => Outcome::new(Class::Connect, Kind::Refused, 0),
        _ if named(&["Disconnected", "ConnectionReset", "ClientOSError"]) => {
            Outcome::new(Class::Reset, Kind::NoResponse, 0)
        }
        _ if named(&["Payload"]) => Outcome::new(Class::Truncated, Kind::Truncated, 0),
        _ => Outcome::new(Class::Malformed, Kind::None, 0),
    })
}

fn seconds_per(unit: &str, key: &str) -> std::result::Result<f64, Error> {
    Ok(match unit {
        "ns" => 1e-9,
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "sec" | "seconds" => 1.0,
        other => {
            return Err(Error::Value { key: key.to_owned(), wrong: format!("'{other}' is no unit of time") });
        }
    })
}

fn build(
    statistics: Option<&Value>,
    details: Option<Details>,
    zero: Option<u64>,
    files: Vec<String>,
) -> std::result::Result<Result, Error> {
    let avg = |name: &str| metric(statistics?, name)?.get("avg")?.as_f64().filter(|x| x.is_finite());
    let text = |name: &str| statistics.and_then(|all| Some(all.get(name)?.as_str()?.to_owned()));
    let ended = |is: fn(&Record) -> bool| {
        let measured =
            details.iter().flat_map(|details| &details.records).filter(|r| r.phase == Phase::Measured);
        measured.filter(|record| is(record)).count() as u64
    };
    let counted = |name: &str| avg(name).filter(|n| *n >= 0.0).map(|n| n as u64);
    let ok = counted("request_count").unwrap_or_else(|| ended(|record| record.outcome.is_ok()));
    let failed = counted("error_request_count").unwrap_or_else(|| {
        ended(|record| !record.outcome.is_ok() && record.outcome.class != Class::Cancelled)
    });
    let tokens =
        |total: &str, each: &str| avg(total).or_else(|| Some(avg(each)? * ok as f64)).map(|n| n as u64);
    let duration_s = match statistics.and_then(|all| metric(all, "benchmark_duration")) {
        Some(block) => {
            let unit = block.get("unit").and_then(Value::as_str).unwrap_or_default();
            avg("benchmark_duration").unwrap_or(0.0) * seconds_per(unit, "benchmark_duration")?
        }
        None => 0.0,
    };
    let mut distributions = Vec::new();
    for (name, of) in METRICS {
        if let Some(block) = statistics.and_then(|all| metric(all, name)) {
            distributions.extend(distribution(block, of, name)?.map(|block| (of, block)));
        }
    }
    let load = statistics.and_then(load);
    let label = match (&load, statistics.map(loadgen)) {
        (Some(load), _) => load_label(load),
        (None, Some((Some(rate), _))) => format!("{rate}/s"),
        _ => "load not said".to_owned(),
    };
    let level = Level {
        label,
        units: None,
        numbers: Numbers {
            duration_s,
            ok,
            failed,
            prompt_tokens: tokens("total_isl", "input_sequence_length"),
            output_tokens: tokens("total_osl", "output_sequence_length"),
            req_s: avg("request_throughput"),
            out_tok_s: avg("output_token_throughput"),
            ..Numbers::default()
        },
        load,
        distributions,
        details,
        printed: BTreeMap::new(),
    };
    let model = statistics.and_then(|all| all.pointer("/input_config/endpoint/model_names"));
    let models = model.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    Ok(Result {
        tool: Tool::Aiperf,
        version: text("aiperf_version").unwrap_or_default(),
        created: zero
            .map(|ns| WallTime::from_unix_nanos(ns).to_string())
            .or_else(|| text("start_time").as_deref().map(time))
            .unwrap_or_default(),
        label: None,
        metadata: Vec::new(),
        target: TargetBlock { models: models.map(str::to_owned).collect(), ..TargetBlock::default() },
        interrupted: statistics.and_then(|all| all.get("was_cancelled")?.as_bool()).unwrap_or(false),
        about: ImportedBlock {
            tool: Tool::Aiperf.name().to_owned(),
            files,
            detailed: level.details.is_some(),
            backend: statistics
                .and_then(|all| all.pointer("/input_config/endpoint/type")?.as_str().map(str::to_owned)),
            notes: Vec::new(),
            printed: Vec::new(),
        },
        levels: vec![level],
    })
}

/// A time in the form of run files, or as it is, without a zone that it may not have.
fn time(text: &str) -> String {
    WallTime::parse(text).map_or_else(|| text.replace('Z', ""), |time| time.to_string())
}

/// The distributions, by the tool's names.
const METRICS: [(&str, Metric); 6] = [
    ("time_to_first_token", Metric::Ttft),
    ("time_to_first_output_token", Metric::Ttfa),
    ("request_latency", Metric::E2e),
    ("inter_token_latency", Metric::Tpot),
    ("inter_chunk_latency", Metric::Itl),
    ("output_token_throughput_per_user", Metric::UserSpeed),
];

fn distribution(
    block: &Value,
    metric: Metric,
    name: &str,
) -> std::result::Result<Option<DistributionBlock>, Error> {
    let unit = block.get("unit").and_then(Value::as_str).unwrap_or_default();
    let factor = match Unit::of(metric) {
        Unit::Nanoseconds => seconds_per(unit, name)? * 1e9,
        Unit::TokensPerSecond => 1.0,
    };
    let value = |key: &str| Some(block.get(key)?.as_f64().filter(|x| x.is_finite())? * factor);
    let Some(mean) = value("avg") else { return Ok(None) };
    let keys = block.as_object().into_iter().flat_map(|map| map.keys());
    let mut quantiles: Vec<QuantileValue> = keys
        .filter_map(|key| {
            let quantile: Quantile = key.strip_prefix('p')?.parse().ok()?;
            Some(QuantileValue { parts: quantile.parts(), value: Some(value(key)?) })
        })
        .collect();
    sort::few_by_key(&mut quantiles, |quantile| quantile.parts);
    let n = block.get("count").and_then(Value::as_u64).unwrap_or(0);
    Ok(Some(DistributionBlock {
        n,
        min: value("min"),
        max: value("max"),
        sum: value("sum").or_else(|| (n > 0).then_some(mean * n as f64)),
        mean: Some(mean),
        std: value("std"),
        quantiles,
        ..DistributionBlock::unknown(Unit::of(metric))
    }))
}

/// Rate and concurrency that were asked for.
fn loadgen(all: &Value) -> (Option<f64>, Option<u32>) {
    let of = |key: &str| all.pointer(&format!("/input_config/loadgen/{key}")).and_then(Value::as_f64);
    let concurrency = of("concurrency").filter(|n| *n >= 1.0).map(|n| n as u32);
    (of("request_rate").filter(|rate| *rate > 0.0), concurrency)
}

fn load(all: &Value) -> Option<Load> {
    let mode = ["arrival_pattern", "request_rate_mode"].iter().find_map(|key| {
        all.pointer(&format!("/input_config/loadgen/{key}"))?.as_str().map(str::to_ascii_lowercase)
    });
    match loadgen(all) {
        (None, Some(users)) => Some(Load::closed(users)),
        (Some(rate), cap) => {
            let arrivals = match mode.as_deref()? {
                "constant" => Arrivals::Constant { rate },
                "poisson" => Arrivals::Poisson { rate },
                _ => return None,
            };
            Some(Load { arrivals, cap, users: None, think_s: 0.0 })
        }
        (None, None) => None,
    }
}
