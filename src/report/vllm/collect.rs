//! From a stored level to what vLLM's client would have kept of it.

use super::{About, Answer, Level, Selection, Spread};
use crate::metrics::metric::Metric;
use crate::metrics::{Class, Phase, Record};
use crate::plan::{Arrivals, Load, Slo};
use crate::report::requests::{Request, Unreadable, by_level};
use crate::run_file::Loaded;
use crate::run_file::schema::LevelBlock;
use crate::time::Stamp;

/// The levels of a stored run. `slo` judges goodput; `generates` says whether its answers are texts.
///
/// # Errors
///
/// When there are no records, or something cannot be read.
pub fn recorded(
    loaded: &Loaded,
    slo: &Slo,
    generates: bool,
    selection: &Selection,
) -> Result<Vec<Level>, Unreadable> {
    by_level(loaded, |block, requests| level(block, requests, slo, generates, selection))
}

/// One level of `requests`, all that it has.
///
/// # Errors
///
/// When the level's setting cannot be read.
pub fn level(
    block: &LevelBlock,
    requests: &[Request],
    slo: &Slo,
    generates: bool,
    selection: &Selection,
) -> Result<Level, Unreadable> {
    let setting = block.setting.read().map_err(Unreadable::Setting)?;
    let load = &setting.load;
    let t0 = Stamp::from_nanos(block.span.t0_ns);
    let mut answers = Vec::new();
    let mut end = t0;
    for Request { record, events } in requests {
        if record.phase == Phase::Warmup {
            continue;
        }
        end = end.max(record.end);
        // Users of a closed loop are, to vLLM, requests that all came at once and wait for one of N places.
        let came = if load.users.is_some() { t0 } else { record.plan };
        answers.push(answer(record, t0, came, events.as_deref()));
    }
    let about = About {
        ordinal: block.ordinal,
        duration_s: seconds(end.nanos_since(t0)),
        slo: *slo,
        max_concurrency: load.users.or(load.cap),
        request_rate: rate(load),
        generates,
        itl: stored_gaps(block, selection),
    };
    Ok(Level::of(answers, about, selection))
}

fn answer(record: &Record, t0: Stamp, came: Stamp, events: Option<&[Stamp]>) -> Answer {
    let ok = record.outcome.is_ok();
    let tokens = |count: Option<u32>| count.map_or(0, u64::from);
    Answer {
        ok,
        cancelled: record.outcome.class == Class::Cancelled,
        error: if ok { String::new() } else { record.outcome.label() },
        start_s: seconds(record.start.nanos_since(t0)),
        queue_s: seconds(record.start.nanos_since(came)),
        ttft_s: record.ttft_ns().map(seconds),
        latency_s: record.e2e_ns().map_or(0.0, seconds),
        gaps_s: events
            .map(|times| times.windows(2).map(|pair| seconds(pair[1].nanos_since(pair[0]))).collect()),
        input_tokens: tokens(record.prompt_tokens),
        output_tokens: tokens(record.output_tokens),
    }
}

/// The gaps of a level whose event times were not kept: moments are exact, percentiles those of a histogram.
fn stored_gaps(block: &LevelBlock, selection: &Selection) -> Option<Spread> {
    let gaps = block.distributions.get(&Metric::Itl)?;
    let histogram = gaps.histogram()?;
    let at = |quantile| gaps.quantile_of(&histogram, quantile).map_or(0.0, |ns| ns / 1e6);
    Some(Spread {
        mean_ms: gaps.mean? / 1e6,
        median_ms: at(crate::stats::Quantile::P50),
        std_ms: gaps.std? / 1e6,
        percentiles: selection.percentiles.iter().map(|quantile| (*quantile, at(*quantile))).collect(),
    })
}

/// The set rate, where there is one number for it.
fn rate(load: &Load) -> Option<f64> {
    match load.arrivals {
        Arrivals::Constant { rate } | Arrivals::Gamma { rate, .. } | Arrivals::Poisson { rate } => Some(rate),
        // As `bench serve` has it, whose gaps are stretched to the number of requests.
        Arrivals::Varying(ref varying) => varying.rate.steady(),
        _ => None,
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}
