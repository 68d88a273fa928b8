//! From a stored level to what aiperf would have kept of it.

use super::answer::{Answer, Failure, Http, Usage};
use super::stats::Stats;
use super::{About, Level};
use crate::metrics::metric::Metric;
use crate::metrics::record::Flags;
use crate::metrics::{Class, Kind, Outcome, Phase, Record, TokenSource};
use crate::plan::{Plan, Slo};
use crate::report::requests::{Request, Unreadable, by_level};
use crate::run_file::schema::{ExampleBlock, LevelBlock, RunFile};
use crate::run_file::{Loaded, WallTime};
use crate::stats::Quantile;
use crate::time::Stamp;

/// The levels of a stored run, their goodput judged by `slo`.
///
/// # Errors
///
/// When there are no records, or something cannot be read.
pub fn recorded(loaded: &Loaded, slo: &Slo) -> Result<Vec<Level>, Unreadable> {
    by_level(loaded, |block, requests| Ok(level(&loaded.run, block, requests, slo)))
}

/// One level of `run` with `requests`, all that it has.
#[must_use]
pub fn level(run: &RunFile, block: &LevelBlock, requests: &[Request], slo: &Slo) -> Level {
    let plan: Option<Plan> = run.plan.read().ok();
    let epoch_ns = WallTime::parse(&run.created).map_or(0, WallTime::unix_nanos);
    let at = |stamp: Stamp| epoch_ns.saturating_add(stamp.as_nanos());
    let of = |phase: Phase| {
        let of_phase = requests.iter().filter(move |request| request.record.phase == phase);
        of_phase.map(|request| answer(request, &at, &block.examples)).collect::<Vec<Answer>>()
    };
    let measured = requests.iter().filter(|request| request.record.phase == Phase::Measured);
    let t0 = Stamp::from_nanos(block.span.t0_ns);
    let about = About {
        ordinal: block.ordinal,
        begun_ns: at(t0),
        ended_ns: at(measured.map(|request| request.record.end).fold(t0, Stamp::max)),
        slo: *slo,
        generates: plan.as_ref().is_none_or(|plan| plan.target.dialect.generates()),
        per_chunk_usage: plan.is_some_and(|plan| plan.workload.options.continuous_usage),
        interrupted: run.interrupted || block.interrupted,
        gaps: stored_gaps(block),
    };
    Level::of(of(Phase::Measured), of(Phase::Warmup), about)
}

fn answer(request: &Request, at: &impl Fn(Stamp) -> u64, examples: &[ExampleBlock]) -> Answer {
    let r = &request.record;
    let count = |tokens: Option<u32>| tokens.map(u64::from);
    let asked = Answer {
        session: r.session,
        turn: r.turn,
        issued_ns: at(r.plan),
        start_ns: at(r.start),
        ack_ns: r.byte.map(at),
        end_ns: at(r.end),
        input_tokens: count(r.prompt_tokens),
        ..Answer::default()
    };
    if !r.outcome.is_ok() {
        let example = examples.iter().find(|example| example.outcome == r.outcome);
        return Answer {
            cancelled: matches!(r.outcome.class, Class::Cancelled | Class::Unfinished),
            failure: Some(failure(r.outcome, example.map(|example| example.message.as_str()))),
            ..asked
        };
    }
    let is_streamed = !r.flags.contains(Flags::WHOLE_BODY);
    let latency_ns = r.e2e_ns().unwrap_or_else(|| r.stream_ns());
    let gaps = |times: &[Stamp]| times.windows(2).map(|pair| pair[1].nanos_since(pair[0])).collect();
    let by_usage = |source, tokens| count(tokens).filter(|_| source == TokenSource::Usage);
    Answer {
        end_ns: asked.start_ns.saturating_add(latency_ns),
        ttft_ns: r.ttft_ns().filter(|_| is_streamed),
        ttfo_ns: r.ttfa_ns().filter(|_| is_streamed),
        latency_ns,
        gaps_ns: request.events.as_deref().filter(|_| is_streamed).map(gaps),
        output_tokens: count(r.output_tokens),
        reasoning_tokens: count(r.reasoning_tokens.get()),
        tokens_after_first: count(r.tokens_after_first.get()),
        usage: Usage {
            prompt: by_usage(r.prompt_source, r.prompt_tokens),
            cache_read: count(r.cached_tokens.get()),
            completion: by_usage(r.output_source, r.output_tokens),
            reasoning: count(r.reasoning_tokens.get()),
        },
        http: http(r),
        ..asked
    }
}

fn http(r: &Record) -> Http {
    let between = |from: Option<Stamp>, to: Option<Stamp>| Some(to?.nanos_since(from?));
    let reused = !r.flags.contains(Flags::FRESH_CONNECTION);
    Http {
        reused,
        connecting_ns: r.connect_ns().map(|ns| if reused { 0 } else { ns }),
        sending_ns: between(r.conn, r.sent),
        waiting_ns: between(r.sent, r.byte),
        receiving_ns: between(r.byte, Some(r.end)),
    }
}

/// The error as aiperf's Python would name it, so that what counts errors by their types goes on to do so. `said` is
/// what the server or the system said of one that ended alike.
fn failure(outcome: Outcome, said: Option<&str>) -> Failure {
    let cancelled = Some(499);
    let (code, kind) = match (outcome.class, outcome.kind) {
        (Class::Cancelled | Class::Unfinished, _) => (cancelled, "RequestCancellationError".to_owned()),
        (Class::Http, _) => (Some(outcome.status), reason(outcome.status).to_owned()),
        (class, kind) => (None, kind_of(class, kind).to_owned()),
    };
    let told = match outcome.class {
        Class::Ok | Class::Http | Class::Connect => "",
        Class::Cancelled => "given up as planned",
        Class::Unfinished => "still open after the grace period",
        Class::Empty => "no content in the answer",
        Class::Malformed => "not the answer that was asked for",
        Class::Reset => "the connection was broken",
        Class::StreamError => "an error inside the answer",
        Class::TimeoutConnect => "no connection in time",
        Class::TimeoutFirst => "no content in time",
        Class::TimeoutGap => "silence after the first content",
        Class::TimeoutTotal => "not ended in time",
        Class::Truncated => "the answer ended too early",
    };
    let parts = [told, said.unwrap_or_default()].map(str::trim);
    let message = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    let message = if message.is_empty() { outcome.label() } else { message };
    Failure { code, kind, message }
}

fn kind_of(class: Class, kind: Kind) -> &'static str {
    match (class, kind) {
        (Class::Connect, Kind::Dns) => "ClientConnectorDNSError",
        (Class::Connect, Kind::Tls) => "ClientConnectorSSLError",
        (Class::Connect, _) => "ClientConnectorError",
        (Class::Reset, Kind::NoResponse) => "ServerDisconnectedError",
        (Class::Reset, _) => "ClientOSError",
        (Class::Truncated, Kind::Truncated) => "ClientPayloadError",
        (Class::StreamError, _) => "SSEResponseError",
        (Class::TimeoutConnect | Class::TimeoutFirst | Class::TimeoutGap | Class::TimeoutTotal, _) => {
            "TimeoutError"
        }
        _ => "InvalidInferenceResultError",
    }
}

/// The phrase of a status, which servers nowadays leave out of what they send.
fn reason(status: u16) -> &'static str {
    match status {
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Payload Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "HTTP Error",
    }
}

/// The gaps of a level whose event times were not kept: moments are exact, percentiles those of a histogram.
fn stored_gaps(block: &LevelBlock) -> Option<Stats> {
    let gaps = block.distributions.get(&Metric::Itl)?;
    let histogram = gaps.histogram()?;
    let ms = |ns: Option<f64>| ns.map(|ns| ns / 1e6);
    let at = |p: u32| gaps.quantile_of(&histogram, Quantile::from_parts(p * 1000)?).map(|ns| ns / 1e6);
    Some(Stats {
        avg: ms(gaps.mean),
        min: ms(gaps.min),
        max: ms(gaps.max),
        sum: ms(gaps.sum),
        percentiles: Stats::PERCENTILES.map(at),
        std: ms(gaps.std),
        count: Some(gaps.n),
    })
}
