//! One level as stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::distribution::{DistributionBlock, by_metric};
use super::verbatim::Verbatim;
use crate::metrics::Outcome;
use crate::metrics::metric::Metric;
use crate::plan::{Arrivals, Level, Load};
use crate::run::{Example, LevelResult, RecordRange, ShardCheck, Span, Window};
use crate::run_file::redact;
use crate::stats::{Quantile, Series};
use crate::summary::{Counts, Goodput, InFlight, LevelSummary, Rates, Tokens};
use crate::time::Stamp;

/// Everything kept of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelBlock {
    /// Place in the run, from 0.
    pub ordinal: usize,
    /// The load in words.
    pub label: String,
    /// The load setting as planned.
    pub setting: Verbatim<Level>,
    /// Its marks.
    pub span: SpanBlock,
    /// Its measurement window.
    pub window: WindowBlock,
    /// Requests planned in the window, by how they ended.
    pub counts: Counts,
    /// Distributions by metric; metrics without any value are absent.
    #[serde(with = "by_metric")]
    pub distributions: BTreeMap<Metric, DistributionBlock>,
    /// Throughput.
    pub rates: RatesBlock,
    /// Requests that kept every SLO; `None` without SLOs.
    pub goodput: Option<Goodput>,
    /// Token counts.
    pub tokens: Tokens,
    /// Requests in flight; `None` if not known.
    pub in_flight: Option<InFlight>,
    /// The client's own error budget.
    pub self_check: SelfCheckBlock,
    /// What the numbers mean; none yet.
    pub findings: Option<Value>,
    /// Whether the measurement is valid; not judged yet.
    pub verdict: Option<Value>,
    /// The level over time, in at most 1800 bins; `None` where it was left out.
    pub series: Option<Verbatim<Series>>,
    /// At most one failure per outcome.
    pub examples: Vec<ExampleBlock>,
    /// Its part of the record file.
    pub records: Option<RecordsBlock>,
    /// Ended early by the user.
    pub interrupted: bool,
}

/// Marks of a level, ns since the run's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanBlock {
    /// First planned send.
    pub t0_ns: u64,
    /// Last planned send, or the set end.
    pub t1_ns: u64,
    /// End of the drain.
    pub t2_ns: u64,
}

/// Measurement window of a level, `[start, end)` in ns since the run's epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowBlock {
    /// First instant inside.
    pub start_ns: u64,
    /// First instant after it.
    pub end_ns: u64,
    /// It is the whole level, and every request belongs to the population.
    pub whole_level: bool,
}

/// Throughput over the two spans, never one without the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RatesBlock {
    /// In the measurement window.
    pub window: Rates,
    /// Over the whole level with ramp and drain.
    pub level: Rates,
}

/// What the client says of itself. `None`: not measured yet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SelfCheckBlock {
    /// Our own lateness.
    pub schedule_delay: Option<DelayBlock>,
    /// Busy share of the busiest shard's thread, 0..=1.
    pub cpu_share_max: Option<f64>,
    /// Requests sent.
    pub sent: u64,
    /// Reads that returned bytes.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Content events.
    pub events: u64,
    /// Content events that shared a read with an earlier one.
    pub coalesced: u64,
    /// Their share of all content events; `None` without any.
    pub coalesced_share: Option<f64>,
    /// Connections opened.
    pub connects: u64,
    /// Requests resent on a fresh connection.
    pub resent: u64,
    /// Each shard.
    pub shards: Vec<ShardBlock>,
    /// User stamp minus kernel receive stamp of the same read.
    pub receive_lag: Option<Value>,
    /// Late wake-up of a tick in each shard.
    pub loop_lag: Option<Value>,
    /// Busy share, steal and throttling of the host.
    pub host_cpu: Option<Value>,
    /// Swap and buffer overflow.
    pub memory: Option<Value>,
    /// The tool's own floor on this machine, and the drift of its clock.
    pub floor: Option<Value>,
}

/// Our own lateness, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayBlock {
    /// Median.
    pub p50_ns: Option<f64>,
    /// 99th percentile.
    pub p99_ns: Option<f64>,
    /// Largest.
    pub max_ns: f64,
}

/// One shard's self-check.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardBlock {
    /// Core that it was pinned to.
    pub core: Option<u32>,
    /// CPU time of its thread, ns.
    pub cpu_ns: u64,
    /// Length of the level on it, ns.
    pub wall_ns: u64,
    /// `cpu_ns / wall_ns`.
    pub cpu_share: Option<f64>,
    /// Requests sent.
    pub sent: u64,
    /// Reads that returned bytes.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Content events.
    pub events: u64,
    /// Content events that shared a read with an earlier one.
    pub coalesced: u64,
    /// Connections opened.
    pub connects: u64,
    /// Requests resent on a fresh connection.
    pub resent: u64,
}

/// One failure as an example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExampleBlock {
    /// How it ended.
    pub outcome: Outcome,
    /// The outcome as printed: `http_429`.
    pub label: String,
    /// What the server or the system said.
    pub message: String,
}

/// A level's part of the record file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordsBlock {
    /// Records before it.
    pub first: u64,
    /// Records in it, warm-up included.
    pub count: u64,
}

impl LevelBlock {
    /// The stored form of a level.
    #[must_use]
    pub fn new(result: &LevelResult, summary: &LevelSummary) -> LevelBlock {
        let mut block = LevelBlock {
            ordinal: result.ordinal,
            label: load_label(&result.level.load),
            setting: Verbatim::of(&result.level),
            span: result.span.into(),
            window: result.window.into(),
            counts: Counts::default(),
            distributions: BTreeMap::new(),
            rates: RatesBlock { window: summary.window_rates, level: summary.level_rates },
            goodput: None,
            tokens: Tokens::default(),
            in_flight: None,
            self_check: SelfCheckBlock::new(&result.shards),
            findings: None,
            verdict: None,
            series: Some(Verbatim::of(result.tally.series())),
            examples: result.examples.iter().map(ExampleBlock::new).collect(),
            records: result.records.map(RecordsBlock::from),
            interrupted: result.interrupted,
        };
        block.set(summary);
        block
    }

    /// Puts other numbers in the place of its own: the same level, judged anew.
    pub fn set(&mut self, summary: &LevelSummary) {
        self.counts = summary.counts.clone();
        self.distributions =
            summary.distributions.iter().map(|d| (d.metric, DistributionBlock::new(d))).collect();
        self.rates = RatesBlock { window: summary.window_rates, level: summary.level_rates };
        self.goodput = summary.goodput;
        self.tokens = summary.tokens.clone();
        self.in_flight = summary.in_flight;
        let delay = self.distributions.get(&Metric::ScheduleDelay);
        self.self_check.schedule_delay = delay.map(|delay| DelayBlock {
            p50_ns: delay.quantile(Quantile::P50),
            p99_ns: delay.quantile(Quantile::P99),
            max_ns: delay.max,
        });
    }
}

impl SelfCheckBlock {
    fn new(checks: &[ShardCheck]) -> SelfCheckBlock {
        let shards: Vec<ShardBlock> = checks.iter().map(ShardBlock::new).collect();
        let sum = |field: fn(&ShardCheck) -> u64| checks.iter().map(field).sum::<u64>();
        let (events, coalesced) = (sum(|s| s.events), sum(|s| s.coalesced));
        SelfCheckBlock {
            schedule_delay: None,
            cpu_share_max: shards.iter().filter_map(|s| s.cpu_share).reduce(f64::max),
            sent: sum(|s| s.sent),
            reads: sum(|s| s.reads),
            read_bytes: sum(|s| s.read_bytes),
            events,
            coalesced,
            coalesced_share: share(coalesced, events),
            connects: sum(|s| s.connects),
            resent: sum(|s| s.resent),
            shards,
            ..SelfCheckBlock::default()
        }
    }
}

impl ShardBlock {
    fn new(check: &ShardCheck) -> ShardBlock {
        ShardBlock {
            core: check.core,
            cpu_ns: check.cpu_ns,
            wall_ns: check.wall_ns,
            cpu_share: share(check.cpu_ns, check.wall_ns),
            sent: check.sent,
            reads: check.reads,
            read_bytes: check.read_bytes,
            events: check.events,
            coalesced: check.coalesced,
            connects: check.connects,
            resent: check.resent,
        }
    }
}

impl ExampleBlock {
    fn new(example: &Example) -> ExampleBlock {
        let message: String = example.message.chars().take(MESSAGE_CHARS_MAX).collect();
        ExampleBlock {
            outcome: example.outcome,
            label: example.outcome.label(),
            message: redact::urls(&message),
        }
    }
}

impl From<Span> for SpanBlock {
    fn from(span: Span) -> SpanBlock {
        SpanBlock { t0_ns: span.t0.as_nanos(), t1_ns: span.t1.as_nanos(), t2_ns: span.t2.as_nanos() }
    }
}

impl From<SpanBlock> for Span {
    fn from(block: SpanBlock) -> Span {
        let at = Stamp::from_nanos;
        Span { t0: at(block.t0_ns), t1: at(block.t1_ns), t2: at(block.t2_ns) }
    }
}

impl From<Window> for WindowBlock {
    fn from(window: Window) -> WindowBlock {
        WindowBlock {
            start_ns: window.start.as_nanos(),
            end_ns: window.end.as_nanos(),
            whole_level: window.whole_level,
        }
    }
}

impl From<WindowBlock> for Window {
    fn from(block: WindowBlock) -> Window {
        let at = Stamp::from_nanos;
        Window { start: at(block.start_ns), end: at(block.end_ns), whole_level: block.whole_level }
    }
}

impl From<RecordRange> for RecordsBlock {
    fn from(range: RecordRange) -> RecordsBlock {
        RecordsBlock { first: range.first, count: range.count }
    }
}

impl From<RecordsBlock> for RecordRange {
    fn from(block: RecordsBlock) -> RecordRange {
        RecordRange { first: block.first, count: block.count }
    }
}

/// A load in words: `4 users`, `poisson 5/s cap 8`. Rates are requests per second.
#[must_use]
pub fn load_label(load: &Load) -> String {
    let mut label = match (load.users, load.arrivals) {
        (Some(1), _) => "1 user".to_owned(),
        (Some(users), _) => format!("{users} users"),
        (None, Arrivals::Closed) => "closed loop".to_owned(),
        (None, Arrivals::Burst) => "burst".to_owned(),
        (None, Arrivals::Constant { rate }) => format!("constant {rate}/s"),
        (None, Arrivals::Poisson { rate }) => format!("poisson {rate}/s"),
        (None, Arrivals::Gamma { rate, burstiness }) => format!("gamma({burstiness}) {rate}/s"),
    };
    if let Some(cap) = load.cap {
        label += &format!(" cap {cap}");
    }
    if load.think_s > 0.0 {
        label += &format!(" think {} s", load.think_s);
    }
    label
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Enough for an error object, too little for the page of a proxy.
const MESSAGE_CHARS_MAX: usize = 500;
