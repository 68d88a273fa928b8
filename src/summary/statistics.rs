//! How well the numbers of a level are known, whether it had a steady state, and whether its books agree.
//!
//! Neighbours in a queue resemble each other: a thousand latencies may be worth ten. So nothing here rests on the number
//! of requests alone (METRICS.md section 7). Owns which statistic is taken of what; the statistics themselves are in
//! `stats`, and what follows from them is `verdict`'s.

mod books;
mod latencies;
pub(super) mod steady;
pub(super) mod throughput;

use serde::{Deserialize, Serialize};

use crate::metrics::metric::Metric;
use crate::metrics::slo::judged as judged_by;
use crate::metrics::{Class, Record};
use crate::plan::SteadyCut;
use crate::run::Window;
use crate::stats::inflight::Span;
use crate::stats::little::{Counted, Verdict};
use crate::stats::{BatchMeans, Confidence, InFlight, Interval, Quantile, Share, Trend};
use crate::summary::Input;

pub(super) use latencies::{Ordered, is_wanted};
pub(super) use steady::Served;

/// What is known of the numbers of a level. Every interval holds with 95 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statistics {
    /// The share of good requests; `None` without SLOs, and where nothing was judged.
    pub attainment: Option<AttainmentStatistics>,
    /// TTFT, TPOT, E2E and stall, and the first and third from the plan where requests are judged from it. Metrics
    /// without a value are absent.
    pub latencies: Vec<LatencyStatistics>,
    /// Throughput in the window; `None` without any.
    pub throughput: Option<ThroughputStatistics>,
    /// Whether the level had a steady state.
    pub steady: SteadyStatistics,
    /// Little's law over the level's window as the engine had it; `None` where nothing was in flight in it.
    pub little: Option<LittleStatistics>,
    /// The level with ramp and drain, beside the window; `None` where the window is all of it.
    pub whole_level: Option<WholeLevel>,
}

/// How well attainment is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttainmentStatistics {
    /// Good requests over those that were judged, 0..=1.
    pub value: f64,
    /// Requests that were judged.
    pub n: u64,
    /// How many of them were good.
    pub good: u64,
    /// How many of these requests are worth one independent one: 1 to n.
    pub design_effect: f64,
    /// What they are worth: `n / design_effect`.
    pub n_eff: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How well the quantiles of a metric are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyStatistics {
    /// The metric.
    pub metric: Metric,
    /// Number of values.
    pub n: u64,
    /// How many of them are worth one independent one: 1 to n.
    pub design_effect: f64,
    /// What they are worth: `n / design_effect`.
    pub n_eff: f64,
    /// The mean, ns; `None` below 20 values.
    pub mean: Option<Estimate>,
    /// Those of every distribution, ascending.
    pub quantiles: Vec<QuantileStatistics>,
}

/// How well one quantile is known, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuantileStatistics {
    /// Which one: `p99`.
    #[serde(with = "percentile")]
    pub quantile: Quantile,
    /// Its value, by nearest rank.
    pub value: f64,
    /// Lower end of its interval; `None`: even the smallest value may be above it.
    pub low: Option<f64>,
    /// Upper end; `None`: even the largest value may be below it.
    pub high: Option<f64>,
    /// Independent values that it takes until there is an upper end.
    pub needed: u64,
    /// Whether there are as many.
    pub supported: bool,
    /// What the quantile is below with 99 %, one-sided, as LoadGen has it; `None` with too few values.
    pub conservative: Option<f64>,
}

/// A mean with the interval that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// How well throughput is known, from slices of the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThroughputStatistics {
    /// `ok` requests per second.
    pub req_s: Estimate,
    /// Output tokens per second.
    pub out_tok_s: Estimate,
}

/// Whether a level had a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyStatistics {
    /// Where the window was to begin.
    pub cut: SteadyCut,
    /// Whether MSER-5 found a steady state; `None` where it was not asked for, or the window is the whole level.
    pub found: Option<bool>,
    /// Where the window began while the level ran, ns since the run's epoch: gaps, which are pooled then, are those of
    /// requests planned from here on.
    pub fixed_start_ns: u64,
    /// How the number of requests under way moved; `None` where the level is too short to say.
    pub trend: Option<TrendStatistics>,
    /// Requests that ended in the window, other than by our giving them up.
    pub completed: u64,
    /// Requests that were planned in it, without the cancelled.
    pub planned: u64,
    /// Fewer than 95 % of the planned were completed. `None` in a closed loop, where nobody plans ahead, and where the
    /// window is the whole level, in which everything ends.
    pub saturated: Option<bool>,
    /// The load is an open loop and the queue grew: latencies have no steady value, but grow with the length of the
    /// level.
    pub latency_grows: bool,
}

/// How the number of requests under way moved over a level: from their start, or from their planned send where a cap
/// held them back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrendStatistics {
    /// Mann-Kendall's statistic of 20 slices: above 2.33 once in a hundred steady levels.
    pub z: f64,
    /// Mean of the first quarter of the slices.
    pub first_quarter: f64,
    /// Mean of the last quarter.
    pub last_quarter: f64,
    /// Not stationary: z above 2.33, and the last quarter above 1.5 times the first.
    pub growing: bool,
}

/// Little's law, `L = lambda W`, over the window as the engine had it, every request counting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LittleStatistics {
    /// Start of that window, ns since the run's epoch.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// L: mean requests in flight, from the records.
    pub in_flight: f64,
    /// lambda: requests that ended, per second.
    pub ended_s: f64,
    /// W: their mean time in flight, s.
    pub life_s: f64,
    /// `lambda W / L - 1`.
    pub gap: f64,
    /// Most that it can be off for correct records.
    pub gap_bound: f64,
    /// What the engine counted in flight while the level ran; `None` where it did not.
    pub counted: Option<Counted>,
    /// By how much the counted mean differs from L, as a share.
    pub counter_gap: Option<f64>,
    /// What follows.
    pub verdict: Verdict,
    /// Z where sessions have several turns: the mean pause before a request, that between turns or that of its user between
    /// sessions, s. Absent where Z is the think time of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_s: Option<f64>,
    /// What remains of a user's cycle, `N / lambda - W - Z`: the client's turn-around, s. `None` in an open loop, and
    /// where the window is the whole level.
    pub turnaround_s: Option<f64>,
}

/// A level with ramp and drain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WholeLevel {
    /// Requests that were planned.
    pub planned: u64,
    /// Requests that ended well.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// The metrics of [`Statistics::latencies`], of all `ok` requests.
    pub latencies: Vec<WholeLatency>,
}

/// A metric over a level with ramp and drain, ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WholeLatency {
    /// The metric.
    pub metric: Metric,
    /// Number of values.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// Those of every distribution, ascending.
    pub quantiles: Vec<WholeQuantile>,
}

/// One quantile of it, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WholeQuantile {
    /// Which one: `p99`.
    #[serde(with = "percentile")]
    pub quantile: Quantile,
    /// Its value, by nearest rank.
    pub value: f64,
}

impl Statistics {
    /// How well the quantiles of `metric` are known; `None` if it is none of those looked at, or has no value.
    #[must_use]
    pub fn latency(&self, metric: Metric) -> Option<&LatencyStatistics> {
        self.latencies.iter().find(|latency| latency.metric == metric)
    }
}

impl LatencyStatistics {
    /// One of the reported quantiles ([`Quantile::REPORTED`]); `None` for any other.
    #[must_use]
    pub fn quantile(&self, quantile: Quantile) -> Option<&QuantileStatistics> {
        self.quantiles.iter().find(|known| known.quantile == quantile)
    }
}

/// What the statistics of a level are made of.
pub(super) struct Level<'a> {
    /// With the window that is reported.
    pub(super) input: Input<'a>,
    /// The window that the engine had, and what became of it.
    pub(super) cut: steady::Cut,
    /// Every request, warm-up left out.
    pub(super) measured: &'a [&'a Record],
    /// Some of them are later turns of their sessions.
    pub(super) has_turns: bool,
    /// What of them the server was asked for and did in the window that is reported.
    pub(super) served: Served,
    /// What became of those planned in the window, in the order of their plans, without those of slow readers.
    pub(super) judged: &'a Judged,
    /// The life of each of `measured`, empty for one that was never taken in hand.
    pub(super) lives: &'a [Span],
    /// How many of them were open when.
    pub(super) in_flight: &'a InFlight,
}

/// The statistics of a level whose `latencies` were taken on the way.
pub(super) fn of(level: &Level<'_>, latencies: Vec<LatencyStatistics>) -> Statistics {
    Statistics {
        attainment: attainment(level.judged),
        latencies,
        throughput: throughput::of(level.measured, &level.input.window),
        steady: steady::of(level),
        little: books::little(level),
        whole_level: (!level.input.window.whole_level).then(|| latencies::whole_level(level)),
    }
}

/// Requests held against the limits of a level, in their order, but for the cancelled.
pub(super) struct Judged {
    /// Whether each was good.
    hits: Vec<bool>,
    /// What decided that, over its limit.
    behind: Vec<f64>,
}

impl Judged {
    /// Those `ranked`; none where there is no limit.
    pub(super) fn of(input: &Input<'_>, ranked: &[&Record]) -> Judged {
        let Input { slo, from_plan, .. } = input;
        let judged =
            ranked.iter().filter(|record| !slo.is_empty() && record.outcome.class != Class::Cancelled);
        let (hits, behind) = judged.map(|record| judged_by(record, slo, *from_plan)).unzip();
        Judged { hits, behind }
    }

    /// How many were good.
    pub(super) fn good(&self) -> u64 {
        self.hits.iter().filter(|hit| **hit).count() as u64
    }
}

/// `None` where nothing was judged.
fn attainment(Judged { hits, behind }: &Judged) -> Option<AttainmentStatistics> {
    let share = Share::of(hits, behind)?;
    let Interval { low, high } = share.interval(Confidence::C95);
    Some(AttainmentStatistics {
        value: share.value(),
        n: share.n() as u64,
        good: share.ones() as u64,
        design_effect: share.design_effect(),
        n_eff: share.n_effective(),
        low: rounded(low),
        high: rounded(high),
    })
}

/// To twelve digits: what the last places of a root or an exponential are depends on the machine, and a run file must
/// not.
fn rounded(end: f64) -> f64 {
    format!("{end:.11e}").parse().unwrap_or(end)
}

impl Estimate {
    /// Of values that are never below 0.
    fn of(batches: &BatchMeans) -> Estimate {
        let Interval { low, high } = batches.interval(Confidence::C95).clamped(0.0, f64::MAX);
        Estimate { value: batches.mean(), low: rounded(low), high: rounded(high) }
    }
}

impl From<Trend> for TrendStatistics {
    fn from(trend: Trend) -> TrendStatistics {
        let growing = trend.is_growing();
        let Trend { z, first_quarter, last_quarter } = trend;
        TrendStatistics { z, first_quarter, last_quarter, growing }
    }
}

/// A quantile as its name: `p99.9`.
mod percentile {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::stats::Quantile;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    pub(super) fn serialize<S: Serializer>(quantile: &Quantile, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("p{quantile}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Quantile, D::Error> {
        let name = String::deserialize(from)?;
        let percentile = name.strip_prefix('p').unwrap_or_default().parse();
        percentile.map_err(|error| D::Error::custom(format_args!("`{name}`: {error}")))
    }
}

/// The stretch of time from `window`'s start to its end.
fn stretch(window: &Window) -> crate::stats::inflight::Span {
    crate::stats::inflight::Span { start: window.start.as_nanos(), end: window.end.as_nanos() }
}
