//! From a stored level to what vLLM's client would have kept of it.

use std::fmt;

use super::{About, Answer, Level, Selection, Spread};
use crate::metrics::metric::Metric;
use crate::metrics::{Class, Phase, Record};
use crate::plan::{Arrivals, Load, Slo, Timestamps};
use crate::run_file::schema::LevelBlock;
use crate::run_file::{Chunks, Loaded, ReadError};
use crate::time::Stamp;

/// Why a run cannot be shown so.
#[derive(Debug)]
pub enum Unreadable {
    /// Records or times of events.
    Read(ReadError),
    /// The setting of a level, of a later tokload.
    Setting(serde_json::Error),
}

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
    let records = loaded.records()?;
    let mut chunks = loaded.chunks()?;
    let mut levels = Vec::new();
    for block in &loaded.run.levels {
        let Some(range) = block.records else { continue };
        let records = records.range(range.into())?.collect::<Result<Vec<_>, _>>()?;
        levels.push(level(block, &records, chunks.as_mut(), slo, generates, selection)?);
    }
    Ok(levels)
}

/// One level of `records`, all that it has; `chunks` stands at its first record.
///
/// # Errors
///
/// When times of events cannot be read, or the level's setting.
pub fn level(
    block: &LevelBlock,
    records: &[Record],
    mut chunks: Option<&mut Chunks>,
    slo: &Slo,
    generates: bool,
    selection: &Selection,
) -> Result<Level, Unreadable> {
    let setting = block.setting.read().map_err(Unreadable::Setting)?;
    let load = &setting.load;
    let t0 = Stamp::from_nanos(block.span.t0_ns);
    let by_kernel = block.self_check.timestamps == Some(Timestamps::Kernel);
    let mut answers = Vec::new();
    let mut end = t0;
    let mut times = Vec::new();
    for record in records {
        if let Some(chunks) = chunks.as_deref_mut() {
            chunks.next(record, &mut times)?;
        }
        if record.phase == Phase::Warmup {
            continue;
        }
        end = end.max(record.end);
        let stamped = if by_kernel { record.by_kernel().unwrap_or(*record) } else { *record };
        // Users of a closed loop are, to vLLM, requests that all came at once and wait for one of N places.
        let came = if load.users.is_some() { t0 } else { record.plan };
        let events = chunks.is_some().then_some(times.as_slice());
        answers.push((record.index, answer(&stamped, t0, came, events)));
    }
    answers.sort_by_key(|(index, _)| *index);
    let about = About {
        ordinal: block.ordinal,
        duration_s: seconds(end.nanos_since(t0)),
        slo: *slo,
        max_concurrency: load.users.or(load.cap),
        request_rate: rate(load),
        generates,
        itl: stored_gaps(block, selection),
    };
    Ok(Level::of(answers.into_iter().map(|(_, answer)| answer).collect(), about, selection))
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
    let at = |quantile| histogram.quantile(quantile).map_or(0.0, |ns| ns as f64 / 1e6);
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

impl From<ReadError> for Unreadable {
    fn from(error: ReadError) -> Unreadable {
        Unreadable::Read(error)
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreadable::Read(error) => error.fmt(f),
            Unreadable::Setting(error) => write!(f, "the setting of a level cannot be read: {error}"),
        }
    }
}

impl std::error::Error for Unreadable {}
