//! `LevelResult` and records to numbers with units: the one place where a level is aggregated.
//!
//! Which requests belong to the population and which events to the window is decided here; the formulas of single
//! requests are in `metrics`. With records everything is exact; without them (`tally` below) it is what histograms
//! and the series can give.

mod against;
mod by_stamps;
pub mod cache;
mod columns;
mod distribution;
mod groups;
pub mod herd;
mod observed;
pub mod precision;
mod rates;
mod records;
pub mod recovery;
pub mod slices;
pub mod statistics;
mod tally;
pub mod telemetry;
mod turns;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::metrics::metric::Metric;
use crate::metrics::{Record, Tally};
use crate::plan::{Load, Share, Slo, SteadyCut, Timestamps};
use crate::run::{LevelResult, Span, Window};
use crate::stats::little::Counted;
use crate::stats::{Histogram, Quantile};

pub use self::against::Against;
pub use self::cache::CacheSplit;
pub use self::groups::{Group, GroupKey};
pub use self::herd::HerdSummary;
pub use self::observed::{Observed, Throughput};
pub use self::recovery::{PhaseSummary, Recovery, StressSummary, TOGETHER};
pub use self::slices::{DriftFigure, SliceLatency, SliceSummary};
pub use self::statistics::Statistics;
pub use self::turns::TurnSummary;
pub use crate::metrics::counts::{Counts, OutcomeCount, Tokens};

/// What a level is summarised from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Every record of the level, in any order; those of the warm-up are skipped. `None` if none were kept.
    pub records: Option<&'a [Record]>,
    /// The tally of all shards.
    pub tally: &'a Tally,
    /// The measurement window as the engine had it.
    pub window: Window,
    /// By which rule it is to begin.
    pub steady_cut: SteadyCut,
    /// The marks of the level.
    pub span: Span,
    /// Limits that a good request keeps.
    pub slo: Slo,
    /// Whether they are judged from the planned send.
    pub from_plan: bool,
    /// Which stamps of content events the latencies rest on. With those of the user alone, kernel stamps in the records
    /// are passed over: they were found to be worth nothing.
    pub timestamps: Timestamps,
    /// When the load becomes what it is from then on, s after the first planned send; `None` where it varies as planned
    /// until the end, so that nothing is steady.
    pub steady_from_s: Option<f64>,
    /// The users of a closed loop; `None` in an open one.
    pub users: Option<Users>,
    /// What the engine counted in flight in the window, while the level ran; `None` where it did not.
    pub counted: Option<Counted>,
}

/// The users of a closed loop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Users {
    /// How many there are.
    pub n: u32,
    /// Their pause between an answer and the next request, or the next session, s.
    pub think_s: f64,
}

impl<'a> Input<'a> {
    /// The result of a level with its records, judged by `slo` as its kind of load asks for. The window begins where the
    /// engine had it begin: see [`Input::steady_cut`].
    #[must_use]
    pub fn new(result: &'a LevelResult, records: Option<&'a [Record]>, slo: Slo) -> Input<'a> {
        Input {
            records,
            tally: &result.tally,
            window: result.window,
            span: result.span,
            slo,
            from_plan: result.level.load.judged_from_plan(),
            timestamps: result.stamps.in_use,
            steady_cut: SteadyCut::default(),
            steady_from_s: result.level.load.steady_from_s(),
            users: Users::of(&result.level.load, Share::WHOLE),
            counted: result.counted(),
        }
    }
}

impl Users {
    /// Those of `load` that are the share's and come back by themselves; `None` of an open loop, and of paced users, who
    /// wait for their plan.
    #[must_use]
    pub fn of(load: &Load, share: Share) -> Option<Users> {
        let users = load.users.filter(|_| load.interval_s().is_none());
        users.map(|n| Users { n: share.count_u32(n), think_s: load.think_s })
    }
}

/// The numbers of a level.
///
/// Latencies, counts, tokens and goodput are those of the requests planned in the window, followed into the drain.
/// Rates count the events that fall into it, whoever planned them. A level without requests, or a span of no
/// length, gives zeros and empty lists, never a number that is none.
#[must_use]
pub fn level(input: &Input<'_>) -> LevelSummary {
    match input.records {
        Some(records) => records::summarise(input, &by_stamps::of(records, input.timestamps)),
        None => tally::summarise(input),
    }
}

/// All numbers of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelSummary {
    /// The measurement window: that of the engine, or moved by the rule of the plan.
    pub window: Window,
    /// Requests planned in the window, by how they ended.
    pub counts: Counts,
    /// Distributions, of `ok` requests planned in the window but those of slow readers; metrics without any value are
    /// absent.
    pub distributions: Vec<Distribution>,
    /// Parts of the level that differ; empty where there is one model, one endpoint and nobody reads slowly, and without
    /// records.
    pub groups: Vec<Group>,
    /// Throughput in the window.
    pub window_rates: Rates,
    /// Throughput over the whole level, with ramp and drain.
    pub level_rates: Rates,
    /// Requests per second that kept every SLO; `None` without SLOs or without records.
    pub goodput: Option<Goodput>,
    /// Token counts of `ok` requests planned in the window.
    pub tokens: Tokens,
    /// Requests in flight during the window; `None` without records.
    pub in_flight: Option<InFlight>,
    /// How well these numbers are known, and whether they may be called those of a steady state; `None` without records.
    pub statistics: Option<Statistics>,
    /// The ok requests parted by what the prefix cache held of their prompts, where that parts them; `None` without
    /// records.
    pub cache_split: Option<CacheSplit>,
    /// The same quantiles by user and by kernel stamps; empty without kernel stamps.
    pub stamp_pairs: Vec<StampPair>,
    /// The turns of sessions apart; empty where none has a second turn, or without records.
    pub turns: Vec<TurnSummary>,
}

/// A quantile of one metric by user stamps and by kernel stamps, over the same requests: those that have both.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StampPair {
    /// What was measured.
    pub metric: Metric,
    /// Which quantile: parts per 100 000.
    pub parts: u32,
    /// By the stamps after each read, ns.
    pub user_ns: f64,
    /// By the kernel's receive stamps, ns.
    pub kernel_ns: f64,
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
    ///
    /// It counts nanoseconds, or thousandths of a token per second ([`Metric::to_ticks`]).
    pub histogram: Histogram,
    /// How far the quantiles may be from the truth because events shared a read; `None` where they are as they are.
    pub bounds: Option<Bounds>,
}

/// Lower and upper bound of quantiles.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// Number of values whose events shared a read.
    pub joined: u64,
    /// No reported quantile can be below these.
    pub low: Vec<QuantileValue>,
    /// Nor above these.
    pub high: Vec<QuantileValue>,
}

/// A quantile over requests of which some failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ranked {
    /// The rank falls on a failed request, which is infinitely slow.
    Failed,
    /// There is no request to rank.
    Undefined,
    /// The value at the rank, in the metric's unit.
    Value(f64),
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
    /// Share of all requests planned in the window but the cancelled and those of slow readers, 0..=1.
    pub attainment: f64,
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

impl LevelSummary {
    /// The distribution of `metric`; `None` if it has no value.
    #[must_use]
    pub fn distribution(&self, metric: Metric) -> Option<&Distribution> {
        self.distributions.iter().find(|distribution| distribution.metric == metric)
    }

    /// One of the reported quantiles ([`Quantile::REPORTED`]) of `metric`, failed requests being infinitely slow.
    ///
    /// Unlike the distribution it also speaks where every request failed.
    #[must_use]
    pub fn with_failures(&self, metric: Metric, quantile: Quantile) -> Ranked {
        let Some(distribution) = self.distribution(metric) else {
            let failed = metric.is_per_request() && self.counts.ranked_failed() > 0;
            return if failed { Ranked::Failed } else { Ranked::Undefined };
        };
        match distribution.with_failures.iter().find(|q| q.parts == quantile.parts()) {
            None => Ranked::Undefined,
            Some(QuantileValue { value: Some(value), .. }) => Ranked::Value(*value),
            Some(QuantileValue { value: None, .. }) => Ranked::Failed,
        }
    }
}
