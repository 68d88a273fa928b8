//! `LevelResult` and records to numbers with units: the one place where a level is aggregated.

use serde::{Deserialize, Serialize};

use crate::metrics::metric::Metric;
use crate::metrics::outcome::Outcome;
use crate::plan::Slo;
use crate::stats::Histogram;

/// All numbers of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelSummary {
    /// Requests planned in the window, by how they ended.
    pub counts: Counts,
    /// Distributions, of `ok` requests planned in the window; metrics without any value are absent.
    pub distributions: Vec<Distribution>,
    /// Throughput in the window.
    pub window_rates: Rates,
    /// Throughput over the whole level, with ramp and drain.
    pub level_rates: Rates,
    /// Requests per second that kept every SLO; `None` without SLOs.
    pub goodput: Option<Goodput>,
    /// Token counts of `ok` requests planned in the window.
    pub tokens: Tokens,
    /// Requests in flight during the window; `None` without records.
    pub in_flight: Option<InFlight>,
}

/// Requests by how they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Planned in the window.
    pub planned: u64,
    /// Ended well.
    pub ok: u64,
    /// Failed, unfinished ones included.
    pub failed: u64,
    /// Cancelled as planned.
    pub cancelled: u64,
    /// Every outcome seen, with its count, in the order of [`Outcome`].
    pub outcomes: Vec<OutcomeCount>,
}

/// How often an outcome was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCount {
    /// The outcome.
    pub outcome: Outcome,
    /// How often.
    pub count: u64,
}

/// The distribution of one metric: ns, or tokens per second for [`Metric::UserSpeed`].
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// What was measured.
    pub metric: Metric,
    /// Number of values.
    pub n: u64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Sum of the values.
    pub sum: f64,
    /// Sum of their squares.
    pub sum_of_squares: f64,
    /// Quantiles by nearest rank: exact where records are kept, else from the histogram.
    pub quantiles: Vec<QuantileValue>,
    /// Quantiles over all requests planned in the window but the cancelled, failures being infinitely slow
    /// (`None`: failed). Empty for metrics that are not one per request.
    pub with_failures: Vec<QuantileValue>,
    /// The values as a histogram (highest equivalent value, 3 significant digits).
    pub histogram: Histogram,
}

/// One quantile.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantileValue {
    /// Parts per 100 000: 99 900 is p99.9.
    pub parts: u32,
    /// The value; `None` where the rank falls on a failed request.
    pub value: Option<f64>,
}

/// Throughput over a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// Length of the span, s.
    pub span_s: f64,
    /// Planned sends per second.
    pub offered_s: f64,
    /// `ok` requests per second, by the time of their last content event.
    pub req_s: f64,
    /// Output tokens per second.
    pub out_tok_s: f64,
    /// Prompt tokens per second, counted at the first content event.
    pub in_tok_s: f64,
    /// Both.
    pub total_tok_s: f64,
}

/// Requests that kept every SLO.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    /// The limits.
    pub slo: Slo,
    /// Judged from the planned send (open loop) or from the start (closed loop).
    pub from_plan: bool,
    /// How many were good.
    pub good: u64,
    /// Per second of the window.
    pub good_s: f64,
    /// Share of all requests planned in the window but the cancelled, 0..=1.
    pub attainment: f64,
}

/// Token counts of `ok` requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tokens {
    /// Output tokens.
    pub output: u64,
    /// Prompt tokens where known.
    pub prompt: u64,
    /// Requests whose prompt tokens are known.
    pub prompt_known: u64,
    /// Cached prompt tokens where known; `None` if no answer said.
    pub cached: Option<u64>,
    /// Content events.
    pub events: u64,
    /// Requests with each source of output tokens: usage, tokenizer, events, unknown.
    pub sources: [u64; 4],
    /// More than one source of output tokens in the level.
    pub mixed_sources: bool,
    /// Requests with several tokens in a single content event.
    pub single_chunk: u64,
    /// Requests whose output length differs from the one asked for.
    pub length_off: u64,
}

/// Requests in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InFlight {
    /// Time-weighted mean over the window.
    pub mean: f64,
    /// Most at once in the window.
    pub max: u64,
    /// At the window's start.
    pub at_start: u64,
    /// At its end.
    pub at_end: u64,
}
