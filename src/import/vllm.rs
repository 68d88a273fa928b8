//! Results of `vllm bench serve --save-result`, with or without `--save-detailed`, one or many (`--append-result`).

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Details, Error, File, Level, Numbers, Result, Skeleton, Tool, nanos};
use crate::metrics::metric::Metric;
use crate::metrics::{Class, Gaps, Kind, Outcome, Record, TokenSource};
use crate::plan::{Arrivals, Load};
use crate::run::Example;
use crate::run_file::schema::{DistributionBlock, ImportedBlock, TargetBlock, Unit, load_label};
use crate::stats::Quantile;
use crate::stats::sort;
use crate::summary::QuantileValue;
use crate::time::Stamp;

/// The lists with an entry for each request; all texts but errors are passed over.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lists {
    input_lens: Option<Vec<u64>>,
    output_lens: Option<Vec<u64>>,
    ttfts: Option<Vec<f64>>,
    itls: Option<Vec<Vec<f64>>>,
    start_times: Option<Vec<f64>>,
    /// Of results without streaming, in newer versions.
    latencies: Option<Vec<f64>>,
    errors: Option<Vec<Option<String>>>,
}

pub(super) fn read(file: File<'_>) -> std::result::Result<Result, Error> {
    // Twice over the bytes: once for what is short, once for the lists, so that generated texts are never kept.
    let heads = values::<Skeleton>(file.bytes)?;
    let lists = values::<Lists>(file.bytes)?;
    let heads: Vec<Map<String, Value>> = heads
        .into_iter()
        .map(|Skeleton(value)| match value {
            Value::Object(map) => Ok(map),
            _ => Err(Error::Unknown),
        })
        .collect::<std::result::Result<_, _>>()?;
    let first = heads.first().ok_or(Error::Empty)?;
    let text = |key: &str| first.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut notes = Vec::new();
    let mut levels = Vec::new();
    for (head, lists) in heads.iter().zip(lists) {
        levels.push(level(head, lists, &mut notes)?);
    }
    let detailed = levels.iter().any(|level| level.details.is_some());
    if let Some(good_s) = number(first, "request_goodput") {
        notes.push(format!(
            "vLLM counted {good_s:.3} good requests/s, by limits that its file does not say; judge by your own with report \
             --goodput where it was made with --save-detailed"
        ));
    }
    let kind = text("backend").or_else(|| text("endpoint_type"));
    Ok(Result {
        tool: Tool::Vllm,
        version: String::new(),
        created: text("date").as_deref().map(date).unwrap_or_default(),
        label: text("label"),
        metadata: metadata(first),
        target: TargetBlock { models: text("model_id").into_iter().collect(), ..TargetBlock::default() },
        interrupted: false,
        levels,
        about: ImportedBlock {
            tool: Tool::Vllm.name().to_owned(),
            files: vec![file.name.to_owned()],
            detailed,
            backend: kind,
            notes,
            printed: Vec::new(),
        },
    })
}

/// All values of a file of one or more.
fn values<T: for<'de> Deserialize<'de>>(bytes: &[u8]) -> std::result::Result<Vec<T>, Error> {
    serde_json::Deserializer::from_slice(bytes).into_iter().map(|value| value.map_err(Error::Json)).collect()
}

fn level(
    head: &Map<String, Value>,
    lists: Lists,
    notes: &mut Vec<String>,
) -> std::result::Result<Level, Error> {
    let needed = |key: &str| number(head, key).ok_or_else(|| Error::Missing { key: key.to_owned() });
    let count = |key: &str| number(head, key).filter(|n| *n >= 0.0).map(|n| n as u64);
    let (duration_s, completed) = (needed("duration")?, needed("completed")?);
    if !(duration_s > 0.0 && duration_s.is_finite() && completed >= 0.0) {
        let wrong = format!("{duration_s} s for {completed} requests");
        return Err(Error::Value { key: "duration".to_owned(), wrong });
    }
    let ok = completed as u64;
    let units = count("num_prompts");
    // Before there was `failed`, it was what was left of the prompts.
    let failed = count("failed").unwrap_or_else(|| units.unwrap_or(ok).saturating_sub(ok));
    let numbers = Numbers {
        duration_s,
        ok,
        failed,
        prompt_tokens: count("total_input_tokens"),
        output_tokens: count("total_output_tokens"),
        req_s: number(head, "request_throughput"),
        out_tok_s: number(head, "output_throughput"),
        ..Numbers::default()
    };
    let load = load(head);
    let details = details(lists)?;
    if let Some(details) = &details {
        let well = details.records.iter().filter(|record| record.outcome.is_ok()).count() as u64;
        if well != ok {
            notes.push(format!("{well} requests of the lists ended well where the file counts {ok}"));
        }
    }
    Ok(Level {
        label: label(head, load.as_ref()),
        load,
        units,
        distributions: METRICS
            .iter()
            .filter_map(|(name, metric)| distribution(head, name, *metric, ok))
            .collect(),
        numbers,
        details,
        printed: BTreeMap::new(),
    })
}

fn number(head: &Map<String, Value>, key: &str) -> Option<f64> {
    head.get(key)?.as_f64().filter(|number| number.is_finite())
}

/// What the options of the tool ask for; `None` with a ramp, whose times the file does not say.
fn load(head: &Map<String, Value>) -> Option<Load> {
    if head.contains_key("ramp_up_strategy") {
        return None;
    }
    let limit = number(head, "max_concurrency").filter(|n| *n >= 1.0).map(|n| n as u32);
    let rate = match head.get("request_rate")? {
        Value::String(text) if text == "inf" => None,
        other => Some(other.as_f64().filter(|rate| *rate > 0.0)?),
    };
    let open = |arrivals, cap| Load { arrivals, cap, users: None, think_s: 0.0 };
    Some(match (rate, limit) {
        (None, Some(users)) => Load::closed(users),
        (None, None) => open(Arrivals::Burst, None),
        (Some(rate), cap) => match number(head, "burstiness") {
            Some(burstiness) if burstiness != 1.0 => open(Arrivals::Gamma { rate, burstiness }, cap),
            Some(_) => open(Arrivals::Poisson { rate }, cap),
            None => return None,
        },
    })
}

fn label(head: &Map<String, Value>, load: Option<&Load>) -> String {
    if let Some(load) = load {
        return load_label(load);
    }
    let said = ["ramp_up_strategy", "request_rate", "max_concurrency"];
    let words = said.iter().filter_map(|key| {
        let value = head.get(*key).filter(|value| !value.is_null())?;
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Some(format!("{} {text}", key.replace('_', " ")))
    });
    let words: Vec<String> = words.collect();
    if words.is_empty() { "load not said".to_owned() } else { words.join(", ") }
}

/// The distributions that a result may have, by the tool's names.
const METRICS: [(&str, Metric); 4] =
    [("ttft", Metric::Ttft), ("tpot", Metric::Tpot), ("itl", Metric::Itl), ("e2el", Metric::E2e)];

/// One of the tool's own, in milliseconds there.
fn distribution(
    head: &Map<String, Value>,
    name: &str,
    metric: Metric,
    ok: u64,
) -> Option<(Metric, DistributionBlock)> {
    let ns = |key: &str| number(head, key).map(|ms| ms * 1e6);
    let mean = ns(&format!("mean_{name}_ms"))?;
    let mut quantiles = Vec::new();
    let suffix = format!("_{name}_ms");
    for key in head.keys() {
        let percentile = key.strip_prefix('p').and_then(|rest| rest.strip_suffix(&suffix));
        if let Some(quantile) = percentile.and_then(|text| text.parse::<Quantile>().ok()) {
            quantiles.push(QuantileValue { parts: quantile.parts(), value: ns(key) });
        }
    }
    if let Some(median) = ns(&format!("median_{name}_ms"))
        && quantiles.iter().all(|q| q.parts != Quantile::P50.parts())
    {
        quantiles.push(QuantileValue { parts: Quantile::P50.parts(), value: Some(median) });
    }
    sort::few_by_key(&mut quantiles, |quantile| quantile.parts);
    // How many gaps there were, and how many answers of more than one token, it does not say.
    let n = if matches!(metric, Metric::Ttft | Metric::E2e) { ok } else { 0 };
    let block = DistributionBlock {
        mean: Some(mean),
        std: ns(&format!("std_{name}_ms")),
        sum: (n > 0).then_some(mean * n as f64),
        n,
        quantiles,
        ..DistributionBlock::unknown(Unit::of(metric))
    };
    Some((metric, block))
}

/// Each request, where the lists have one entry for each.
fn details(lists: Lists) -> std::result::Result<Option<Details>, Error> {
    let Lists { input_lens, output_lens, ttfts, itls, start_times, latencies, errors } = lists;
    let (Some(ttfts), Some(itls), Some(output_lens)) = (ttfts, itls, output_lens) else { return Ok(None) };
    let n = ttfts.len();
    for (key, length) in [
        ("itls", Some(itls.len())),
        ("output_lens", Some(output_lens.len())),
        ("input_lens", input_lens.as_ref().map(Vec::len)),
        ("start_times", start_times.as_ref().map(Vec::len)),
        ("latencies", latencies.as_ref().map(Vec::len)),
        ("errors", errors.as_ref().map(Vec::len)),
    ] {
        if let Some(length) = length.filter(|length| *length != n) {
            let wrong = format!("the list has {length} entries where ttfts has {n}");
            return Err(Error::Value { key: key.to_owned(), wrong });
        }
    }
    let zero_s = start_times.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let mut all = Details { timed: start_times.is_some(), metrics: &KNOWN, ..Details::default() };
    for i in 0..n {
        let key = |list: &str| format!("{list}[{i}]");
        let error = errors.as_ref().and_then(|errors| errors[i].as_deref()).unwrap_or_default();
        let start = match &start_times {
            Some(starts) => nanos(starts[i] - zero_s, &key("start_times"))?,
            None => 0,
        };
        let mut record = Record::planned(i as u64, Stamp::from_nanos(start));
        record.prompt_tokens = input_lens.as_ref().map(|lens| short(lens[i]));
        // An entry without any time and text of an error stands for a request that came to nothing, too.
        if !error.is_empty() || (ttfts[i] == 0.0 && output_lens[i] == 0) {
            record.outcome = outcome(error);
            all.add_example(record.outcome, error);
            all.push(record, Gaps::default());
            continue;
        }
        record.outcome = Outcome::ok(0);
        let mut gaps = Gaps::with_capacity(itls[i].len());
        let (mut last, first) = (nanos(ttfts[i], &key("ttfts"))?, nanos(ttfts[i], &key("ttfts"))?);
        // Summed as the tool sums them, so that no rounding adds up.
        let mut sum_s = ttfts[i];
        for gap in &itls[i] {
            gaps.record(nanos(*gap, &key("itls"))?);
            sum_s += gap;
        }
        if !itls[i].is_empty() {
            last = nanos(sum_s, &key("itls"))?;
        }
        if let Some(latencies) = &latencies {
            last = nanos(latencies[i], &key("latencies"))?.max(first);
        }
        let at = |offset: u64| Stamp::from_nanos(start.saturating_add(offset));
        (record.first, record.last, record.end) = (Some(at(first)), Some(at(last)), at(last));
        record.stall_ns = gaps.stall().into();
        (record.output_tokens, record.output_source) = (Some(short(output_lens[i])), TokenSource::Unknown);
        record.events = u32::try_from(gaps.len() + 1).unwrap_or(u32::MAX);
        all.push(record, gaps);
    }
    Ok(Some(all))
}

/// What is known of a request.
const KNOWN: [Metric; 6] =
    [Metric::Ttft, Metric::E2e, Metric::Tpot, Metric::Itl, Metric::Stall, Metric::UserSpeed];

fn short(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl Details {
    pub(super) fn push(&mut self, record: Record, gaps: Gaps) {
        self.records.push(record);
        self.gaps.push(gaps);
    }

    /// Keeps what was said of a failure, once per outcome.
    pub(super) fn add_example(&mut self, outcome: Outcome, said: &str) {
        if self.examples.iter().all(|known| known.outcome != outcome) {
            // The last line of a Python traceback names the error.
            let message = said.trim_end().lines().last().unwrap_or_default().trim().to_owned();
            self.examples.push(Example { outcome, message });
        }
    }
}

/// What a failure probably was, from the words that the tool has for it: the reason of a status, or a traceback.
fn outcome(said: &str) -> Outcome {
    let said = said.trim();
    let status = REASONS.iter().find(|(reason, _)| said.eq_ignore_ascii_case(reason));
    if let Some((_, status)) = status {
        return Outcome::new(Class::Http, Kind::HttpStatus, *status);
    }
    let named = WORDS.iter().find(|(words, ..)| words.iter().any(|word| said.contains(word)));
    named.map_or(Outcome::new(Class::Malformed, Kind::None, 0), |(_, class, kind)| {
        Outcome::new(*class, *kind, 0)
    })
}

const REASONS: [(&str, u16); 11] = [
    ("Bad Request", 400),
    ("Unauthorized", 401),
    ("Forbidden", 403),
    ("Not Found", 404),
    ("Request Entity Too Large", 413),
    ("Unprocessable Entity", 422),
    ("Too Many Requests", 429),
    ("Internal Server Error", 500),
    ("Bad Gateway", 502),
    ("Service Unavailable", 503),
    ("Gateway Timeout", 504),
];

const WORDS: [(&[&str], Class, Kind); 6] = [
    (&["TimeoutError", "ServerTimeoutError"], Class::TimeoutTotal, Kind::Timeout),
    (&["ClientConnectorDNSError", "gaierror"], Class::Connect, Kind::Dns),
    (&["ClientConnector", "ConnectionRefused"], Class::Connect, Kind::Refused),
    (&["ServerDisconnected", "ConnectionReset", "ClientOSError"], Class::Reset, Kind::NoResponse),
    (&["ClientPayloadError", "IncompleteRead"], Class::Truncated, Kind::Truncated),
    (&["Never received a valid chunk"], Class::Empty, Kind::NoOutput),
];

/// `20260131-120000`, in the time of the machine that wrote it, as `2026-01-31T12:00:00`: of no known zone.
fn date(text: &str) -> String {
    let digits: Vec<&str> =
        [0..4, 4..6, 6..8, 9..11, 11..13, 13..15].into_iter().filter_map(|r| text.get(r)).collect();
    let whole = text.len() == 15 && digits.iter().all(|part| part.bytes().all(|b| b.is_ascii_digit()));
    match digits[..] {
        [y, mo, d, h, mi, s] if whole => format!("{y}-{mo}-{d}T{h}:{mi}:{s}"),
        _ => String::new(),
    }
}

/// What the user added: every text that is not one of the tool's own.
fn metadata(head: &Map<String, Value>) -> Vec<(String, String)> {
    const OWN: [&str; 10] = [
        "date",
        "endpoint_type",
        "backend",
        "label",
        "model_id",
        "tokenizer_id",
        "request_rate",
        "ramp_up_strategy",
        "burstiness",
        "max_concurrency",
    ];
    let texts = head.iter().filter(|(key, _)| !OWN.contains(&key.as_str()));
    texts.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_no_known_zone() {
        assert_eq!(date("20260131-120000"), "2026-01-31T12:00:00");
        for text in ["", "2026", "20260131-12000x", "2026013112:00:00", "20260131-1200000"] {
            assert_eq!(date(text), "", "{text}");
        }
    }

    #[test]
    fn failures_are_told_from_their_words() {
        for (said, class, status) in [
            ("Too Many Requests", Class::Http, 429),
            (
                "Traceback ...\naiohttp.client_exceptions.ServerDisconnectedError: Server disconnected\n",
                Class::Reset,
                0,
            ),
            ("aiohttp.client_exceptions.ClientConnectorError: Cannot connect", Class::Connect, 0),
            ("asyncio.exceptions.TimeoutError", Class::TimeoutTotal, 0),
            (
                "Never received a valid chunk to calculate TTFT.This response will be marked as failed!",
                Class::Empty,
                0,
            ),
            ("something else", Class::Malformed, 0),
            ("", Class::Malformed, 0),
        ] {
            let told = outcome(said);
            assert_eq!((told.class, told.status), (class, status), "{said}");
        }
    }
}
