//! What the rules ask of a level that was run.
//!
//! Owns the form in which they see it, not one number: the run file fills it from its blocks, so that a run that has
//! just ended and one that was stored are judged by the same code.

use std::collections::BTreeMap;

use crate::metrics::Metric;
use crate::plan::{Level, Plan, Share, Timestamps};
use crate::run::HostCheck;
use crate::stats::Series;
use crate::summary::{Against, Counts, DriftFigure, GroupKey, InFlight, Statistics, Tokens};

/// One level.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Its load setting.
    pub level: Level,
    /// Its lengths.
    pub times: Times,
    /// Requests planned in the window, by how they ended.
    pub counts: Counts,
    /// Token counts of the ok requests among them.
    pub tokens: Tokens,
    /// The share of the prompt tokens that an unlimited prefix cache finds, 0..=1; `None` where that is not known.
    pub cache_share_planned: Option<f64>,
    /// Requests in flight; `None` where no records were kept.
    pub in_flight: Option<InFlight>,
    /// How well the numbers are known, and whether the level was steady; `None` where no records were kept.
    pub statistics: Option<Statistics>,
    /// The metrics that have values, ns.
    pub latencies: BTreeMap<Metric, Latency>,
    /// Ok requests that waited for the cap; `None` where that is not known.
    pub cap_waited: Option<u64>,
    /// The level over time, from its first planned send on; empty where it was left out.
    pub series: Series,
    /// How figures move over the slices of the level; empty where that cannot be said.
    pub drift: Vec<DriftFigure>,
    /// Length of a slice, s; `None` where there are none.
    pub slice_s: Option<f64>,
    /// What the client says of itself.
    pub client: Client,
    /// The endpoints and replicas, where there are several.
    pub parts: Vec<PartOf>,
    /// The names of the replicas, by their places.
    pub replicas: Vec<String>,
    /// The shares of the plan that it is of, where it was merged of fewer than there should be; else empty: it is of the
    /// plan's own share.
    pub shares_there: Vec<Share>,
}

/// An endpoint or a replica.
#[derive(Clone, Debug, PartialEq)]
pub struct PartOf {
    /// Which.
    pub of: GroupKey,
    /// Its requests planned in the window, by how they ended.
    pub counts: Counts,
    /// First requests of sessions among them.
    pub sessions: u64,
    /// Its medians against those of the others.
    pub against: Vec<Against>,
}

/// Lengths of a level, s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// The measurement window.
    pub window_s: f64,
    /// From the first planned send to its start.
    pub cut_s: f64,
    /// The window is the whole level, with ramp and drain.
    pub whole_level: bool,
    /// From the first planned send to the last, or to the set end.
    pub planned_s: f64,
    /// From the first planned send to the end of the drain.
    pub level_s: f64,
}

/// A metric over the ok requests of a level, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Latency {
    /// Number of values.
    pub n: u64,
    /// Median.
    pub p50_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
    /// Largest.
    pub max_ns: f64,
    /// Between which values the 99th percentile lies, where events shared reads.
    pub p99_bounds_ns: Option<(f64, f64)>,
}

/// What the client says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Client {
    /// Which stamps the latencies rest on; `None`: not measured.
    pub timestamps: Option<Timestamps>,
    /// Our own lateness in sending.
    pub schedule_delay: Option<Delay>,
    /// From the kernel's stamp of a read until we had it.
    pub receive_lag: Option<Delay>,
    /// Late sight of a tick of 10 ms; `None` in virtual time.
    pub loop_lag: Option<Delay>,
    /// By how much the client may have falsified TTFT p99, ns.
    pub ttft_error_ns: Option<f64>,
    /// Busy share of the busiest shard's thread, 0..=1.
    pub cpu_share_max: Option<f64>,
    /// Requests sent.
    pub sent: u64,
    /// Content events.
    pub events: u64,
    /// Content events that shared a read with an earlier one.
    pub coalesced: u64,
    /// Those among them that the client was late for.
    pub joined: u64,
    /// Connections opened.
    pub connects: u64,
    /// Segments that the kernel sent again.
    pub retransmits: u64,
    /// The largest step of the wall clock, ns.
    pub wall_step_ns: Option<i64>,
    /// What the machine went through.
    pub host: Option<HostCheck>,
}

/// Quantiles of a delay, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delay {
    /// Median.
    pub p50_ns: f64,
    /// 99th percentile.
    pub p99_ns: f64,
    /// Largest.
    pub max_ns: f64,
}

impl Facts {
    /// The shares of the plan's load that the level is of.
    pub(super) fn shares(&self, plan: &Plan) -> Vec<Share> {
        if self.shares_there.is_empty() { vec![plan.own_share()] } else { self.shares_there.clone() }
    }

    /// How many of `n` users or places under a cap are theirs.
    pub(super) fn own(&self, plan: &Plan, n: u32) -> u32 {
        self.shares(plan).iter().map(|share| share.count_u32(n)).sum()
    }

    /// The median of `metric`, ns; `None` without a value.
    pub(super) fn p50_ns(&self, metric: Metric) -> Option<f64> {
        self.latencies.get(&metric).map(|latency| latency.p50_ns)
    }
}
