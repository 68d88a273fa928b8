//! From the requests of a stored level to the figures of each tool.

use super::{Figure, Other, Spread, Total};
use crate::metrics::record::Flags;
use crate::metrics::{Class, Phase, Record};
use crate::plan::Slo;
use crate::report::requests::{Request, Unreadable, by_level};
use crate::run_file::Loaded;
use crate::run_file::schema::LevelBlock;
use crate::stats::Quantile;
use crate::time::Stamp;

/// A level as one tool has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Whose.
    pub tool: Other,
    /// Place of the level in the run, from 0.
    pub ordinal: usize,
    /// Its load in words.
    pub label: String,
    /// Requests that ended well.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Requests whose users went away as planned.
    pub cancelled: u64,
    /// Its distributions, in the tool's order.
    pub figures: Vec<Figure>,
    /// Its single numbers, in the tool's order.
    pub totals: Vec<Total>,
    /// Whether the limits hold at p99, of a tool that says so of a level as a whole; `None` without limits.
    pub passes: Option<bool>,
}

impl Level {
    /// The distribution of this name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Spread> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| &figure.spread)
    }

    /// The single number of this name.
    #[must_use]
    pub fn total(&self, name: &str) -> Option<f64> {
        self.totals.iter().find(|total| total.name == name).map(|total| total.value)
    }
}

/// The levels of a stored run as `tool` has them. `slo` judges goodput.
///
/// # Errors
///
/// When there are no records, or something cannot be read.
pub fn recorded(loaded: &Loaded, slo: &Slo, tool: Other) -> Result<Vec<Level>, Unreadable> {
    by_level(loaded, |block, requests| Ok(level(Place::of(block), requests, slo, tool)))
}

/// Which level it is, and when it began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub(super) ordinal: usize,
    pub(super) label: &'a str,
    pub(super) t0: Stamp,
}

impl<'a> Place<'a> {
    fn of(block: &'a LevelBlock) -> Place<'a> {
        Place { ordinal: block.ordinal, label: &block.label, t0: Stamp::from_nanos(block.span.t0_ns) }
    }
}

/// What all tools see of a level.
struct Seen<'a> {
    t0: Stamp,
    /// End of the last request, whatever became of it.
    end: Stamp,
    measured: Vec<&'a Request>,
    ok: Vec<&'a Request>,
    slo: Slo,
}

pub(super) fn level(place: Place<'_>, requests: &[Request], slo: &Slo, tool: Other) -> Level {
    let measured: Vec<&Request> =
        requests.iter().filter(|request| request.record.phase == Phase::Measured).collect();
    let t0 = place.t0;
    let seen = Seen {
        t0,
        end: measured.iter().map(|request| request.record.end).fold(t0, Stamp::max),
        ok: measured.iter().copied().filter(|request| request.record.outcome.is_ok()).collect(),
        measured,
        slo: *slo,
    };
    let cancelled =
        seen.measured.iter().filter(|request| request.record.outcome.class == Class::Cancelled).count();
    let ok = seen.ok.len();
    let (figures, totals, passes) = match tool {
        Other::Guidellm => guidellm(&seen),
        Other::Mlperf => mlperf(&seen),
        Other::Servebench => servebench(&seen),
    };
    Level {
        tool,
        ordinal: place.ordinal,
        label: place.label.to_owned(),
        ok: ok as u64,
        failed: (seen.measured.len() - ok - cancelled) as u64,
        cancelled: cancelled as u64,
        figures,
        totals,
        passes,
    }
}

type Figures = (Vec<Figure>, Vec<Total>, Option<bool>);

impl Seen<'_> {
    /// The values that `of` finds, one per request that ended well.
    fn each(&self, tool: Other, name: &'static str, of: impl Fn(&Record) -> Option<f64>) -> Option<Figure> {
        let values = self.ok.iter().filter_map(|request| of(&request.record)).collect();
        Some(Figure { name, spread: Spread::of(values, tool.rule())? })
    }

    fn output_tokens(&self) -> f64 {
        self.ok.iter().filter_map(|request| request.record.output_tokens).map(f64::from).sum()
    }

    fn prompt_tokens(&self) -> f64 {
        self.ok.iter().filter_map(|request| request.record.prompt_tokens).map(f64::from).sum()
    }
}

fn guidellm(seen: &Seen<'_>) -> Figures {
    let tool = Other::Guidellm;
    let figures = [
        seen.each(tool, "request_latency", |r| Some(r.stream_ns() as f64 / 1e9)),
        seen.each(tool, "time_to_first_token_ms", |r| streamed(r, r.ttft_ns())),
        seen.each(tool, "time_to_first_output_token_ms", |r| streamed(r, r.ttfa_ns())),
        seen.each(tool, "time_per_output_token_ms", |r| {
            let n = r.output_tokens.filter(|n| *n > 0)?;
            Some(ms(r.e2e_ns()?) / f64::from(n))
        }),
        seen.each(tool, "inter_token_latency_ms", |r| {
            per_token(r, ms(streamed_last(r)?.nanos_since(r.first?)))
        }),
        seen.each(tool, "prompt_token_count", |r| r.prompt_tokens.map(f64::from)),
        seen.each(tool, "output_token_count", |r| r.output_tokens.map(f64::from)),
    ];
    let first = seen.measured.iter().map(|request| request.record.start).min().unwrap_or(seen.t0);
    let duration_s = seconds(first, seen.end);
    let output = seen.output_tokens();
    let per = |amount: f64| if duration_s > 0.0 { amount / duration_s } else { 0.0 };
    let in_flight_s: f64 =
        seen.ok.iter().map(|request| seconds(request.record.start, request.record.end)).sum();
    let totals = vec![
        Total { name: "duration", value: duration_s },
        Total { name: "requests_per_second", value: per(seen.ok.len() as f64) },
        Total { name: "request_concurrency", value: per(in_flight_s) },
        Total { name: "output_tokens_per_second", value: per(output) },
        Total { name: "tokens_per_second", value: per(output + seen.prompt_tokens()) },
    ];
    (figures.into_iter().flatten().collect(), totals, None)
}

fn servebench(seen: &Seen<'_>) -> Figures {
    let tool = Other::Servebench;
    let mut figures: Vec<Figure> = [
        seen.each(tool, "ttft_ms", |r| streamed(r, r.ttft_ns())),
        seen.each(tool, "tpot_ms", servebench_tpot),
        seen.each(tool, "e2e_ms", |r| Some(ms(r.stream_ns()))),
    ]
    .into_iter()
    .flatten()
    .collect();
    if seen.ok.iter().all(|request| request.events.is_some()) {
        let events = seen.ok.iter().filter_map(|request| request.events.as_deref());
        let gaps =
            events.flat_map(|times| times.windows(2).map(|pair| ms(pair[1].nanos_since(pair[0])))).collect();
        let spread = Spread::of(gaps, tool.rule());
        figures.extend(spread.map(|spread| Figure { name: "itl_ms", spread }));
    }
    let duration_s = seconds(seen.t0, seen.end);
    let per = |amount: f64| if duration_s > 0.0 { amount / duration_s } else { 0.0 };
    let output = seen.output_tokens();
    let mut totals = vec![
        Total { name: "duration_s", value: duration_s },
        Total { name: "request_throughput", value: per(seen.ok.len() as f64) },
        Total { name: "output_throughput", value: per(output) },
        Total { name: "total_throughput", value: per(output + seen.prompt_tokens()) },
    ];
    if seen.slo.ttft_ms.is_some() || seen.slo.tpot_ms.is_some() {
        let keeps = |limit: Option<f64>, value: f64| limit.is_none_or(|limit| value <= limit);
        let is_good = |r: &Record| {
            let ttft = streamed(r, r.ttft_ns()).unwrap_or_else(|| ms(r.stream_ns()));
            keeps(seen.slo.ttft_ms, ttft) && keeps(seen.slo.tpot_ms, servebench_tpot(r).unwrap_or(0.0))
        };
        let good = seen.ok.iter().filter(|request| is_good(&request.record)).count() as f64;
        totals.push(Total { name: "goodput", value: per(good) });
        if !seen.measured.is_empty() {
            totals.push(Total { name: "attainment", value: good / seen.measured.len() as f64 });
        }
    }
    (figures, totals, None)
}

/// The tail behind the last token, `usage` and `[DONE]`, is in it.
fn servebench_tpot(r: &Record) -> Option<f64> {
    streamed_last(r)?;
    per_token(r, ms(r.end.nanos_since(r.first?)))
}

fn mlperf(seen: &Seen<'_>) -> Figures {
    let tool = Other::Mlperf;
    let tpot = |r: &Record| {
        streamed_last(r)?;
        per_token(r, r.end.nanos_since(r.first?) as f64)
    };
    let figures: Vec<Figure> = [
        seen.each(tool, "latency_ns", |r| Some(r.stream_plan_ns() as f64)),
        seen.each(tool, "first_token_latency_ns", |r| Some(streamed(r, r.ttft_plan_ns())? * 1e6)),
        seen.each(tool, "time_to_output_token_ns", tpot),
    ]
    .into_iter()
    .flatten()
    .collect();
    let last_issued = seen.ok.iter().max_by_key(|request| request.record.plan);
    let done_s = last_issued.map_or(0.0, |request| seconds(seen.t0, request.record.end));
    let per = |amount: f64| if done_s > 0.0 { amount / done_s } else { 0.0 };
    let samples = seen.ok.len() as f64;
    let issued = seen.measured.iter().map(|request| request.record.plan).max().unwrap_or(seen.t0);
    let issued_s = seconds(seen.t0, issued);
    let totals = vec![
        Total { name: "final_query_done_s", value: done_s },
        Total {
            name: "scheduled_samples_per_second",
            value: if issued_s > 0.0 { (seen.measured.len() - 1) as f64 / issued_s } else { 0.0 },
        },
        Total { name: "completed_samples_per_second", value: per((samples - 1.0).max(0.0)) },
        Total { name: "completed_tokens_per_second", value: per(seen.output_tokens()) },
    ];
    let at_p99 = |name: &str| {
        let figure = figures.iter().find(|figure| figure.name == name)?;
        Some(figure.spread.percentile(Quantile::P99) / 1e6)
    };
    let limits = [
        (seen.slo.ttft_ms, "first_token_latency_ns"),
        (seen.slo.tpot_ms, "time_to_output_token_ns"),
        (seen.slo.e2e_ms, "latency_ns"),
    ];
    let is_limited = limits.iter().any(|(limit, _)| limit.is_some());
    let is_whole = seen.ok.len() == seen.measured.len() && !seen.ok.is_empty();
    let keeps = |(limit, name): &(Option<f64>, &str)| {
        limit.is_none_or(|limit| at_p99(name).is_none_or(|value| value <= limit))
    };
    let passes = is_limited.then(|| is_whole && limits.iter().all(keeps));
    (figures, totals, passes)
}

/// A latency of an answer that came in pieces, in ms.
fn streamed(record: &Record, ns: Option<u64>) -> Option<f64> {
    ns.filter(|_| !record.flags.contains(Flags::WHOLE_BODY)).map(ms)
}

fn streamed_last(record: &Record) -> Option<Stamp> {
    record.last.filter(|_| !record.flags.contains(Flags::WHOLE_BODY))
}

/// A time after the first token by the tokens after it; `None` of answers of one token.
fn per_token(record: &Record, time: f64) -> Option<f64> {
    let after_first = record.output_tokens?.checked_sub(1).filter(|n| *n > 0)?;
    Some(time / f64::from(after_first))
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

fn seconds(from: Stamp, until: Stamp) -> f64 {
    until.nanos_since(from) as f64 / 1e9
}
