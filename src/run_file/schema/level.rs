//! One level as stored.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::distribution::{DistributionBlock, Unit, by_metric};
use super::findings::FindingBlock;
use super::group::GroupBlock;
use super::label::{exact_level_label, level_label};
use super::merged::LevelShareBlock;
use super::part::Part;
use super::reuse::ReuseBlock;
use super::self_check::SelfCheckBlock;
use super::slices::SlicesBlock;
use super::turns::TurnBlock;
use super::verbatim::Verbatim;
use crate::metrics::metric::Metric;
use crate::metrics::{Outcome, Record};
use crate::plan::{Level, Plan, Share, Slo};
use crate::run::{Example, Judged, Lengthened, LevelResult, RecordRange, Sessions, Span, Window};
use crate::run_file::redact;
use crate::stats::{Quantile, Series};
use crate::summary::telemetry::LevelTelemetry;
use crate::summary::{
    CacheSplit, Counts, Goodput, HerdSummary, InFlight, LevelSummary, Rates, Statistics, StressSummary,
    Tokens, herd, recovery,
};
use crate::time::Stamp;
use crate::verdict::{self, Verdict};

/// Everything kept of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelBlock {
    /// Place in the run, from 0.
    pub ordinal: usize,
    /// In which round over all levels it was run, from 0; absent in the first.
    #[serde(default, skip_serializing_if = "is_first")]
    pub repeat: usize,
    /// The load in words, with the number of the repeat, from 1, where there are several.
    pub label: String,
    /// The load setting as planned.
    pub setting: Verbatim<Level>,
    /// Its marks.
    pub span: SpanBlock,
    /// Its measurement window.
    pub window: WindowBlock,
    /// What was sent, as a number of 16 hexadecimal digits: a sum of hashes of all bodies with their indices. Equal in two
    /// runs that sent the same bodies in the same places; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bodies: Option<String>,
    /// Requests planned in the window, by how they ended.
    pub counts: Counts,
    /// Distributions by metric; metrics without any value are absent.
    #[serde(with = "by_metric")]
    pub distributions: BTreeMap<Metric, DistributionBlock>,
    /// Parts of the level that differ: by model and by endpoint where there are several, and slow readers. Absent
    /// without any, and without records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupBlock>,
    /// The names of the replicas that answered, in the order in which they were first seen; absent where none was looked
    /// for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replicas: Vec<String>,
    /// Throughput.
    pub rates: RatesBlock,
    /// Requests that kept every SLO; `None` without SLOs.
    pub goodput: Option<Goodput>,
    /// Token counts.
    pub tokens: Tokens,
    /// The requests parted by what the prefix cache held of their prompts; absent where it does not part them, or is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_split: Option<CacheSplit>,
    /// What of the prompts that were sent an unlimited prefix cache finds; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reuse: Option<ReuseBlock>,
    /// Requests in flight; `None` if not known.
    pub in_flight: Option<InFlight>,
    /// How well the numbers are known, and whether the level was steady; `None` if records were not kept, and in files
    /// from before it was looked at.
    #[serde(default)]
    pub statistics: Option<Statistics>,
    /// The client's own error budget.
    pub self_check: SelfCheckBlock,
    /// What makes the numbers less than they seem; `None` if nobody has looked.
    pub findings: Option<Vec<FindingBlock>>,
    /// What they are worth; `None` if the level is not judged.
    pub verdict: Option<Verdict>,
    /// The level over time, in at most 1800 bins; `None` where it was left out.
    pub series: Option<Verbatim<Series>>,
    /// The level in slices of the length that was asked for; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slices: Option<SlicesBlock>,
    /// What a stress test found, of the level that it looks at; absent elsewhere, and without records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stress: Option<StressSummary>,
    /// How near to each other the requests of a burst were; absent where there are no bursts, and without records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub herd: Option<HerdSummary>,
    /// At most one failure per outcome.
    pub examples: Vec<ExampleBlock>,
    /// How it went with the plan's wish to know a figure well; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lengthened: Option<LengthenedBlock>,
    /// On which side of the wished share its good requests lie, where that ended the level; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
    /// The turns of sessions apart; absent where no session has a second one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Vec<TurnBlock>>,
    /// What became of the sessions; absent where each request was one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Sessions>,
    /// What servers, GPUs and the client's machine said meanwhile; absent where they said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<LevelTelemetry>,
    /// What merging needs of a level of one share; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Verbatim<Part>>,
    /// The processes that a merged level was made of; absent elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<Vec<LevelShareBlock>>,
    /// Its part of the record file.
    pub records: Option<RecordsBlock>,
    /// Ended early by the user.
    pub interrupted: bool,
}

/// What became of the wish to know a figure of a level well enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LengthenedBlock {
    /// How often its planned length the level was to have: 1 if it was not lengthened.
    pub times: u32,
    /// The figure is known as well as was wished, by all requests of the level.
    pub reached: bool,
    /// The figure, ns or a share; `None` where the requests do not bound it.
    pub value: Option<f64>,
    /// Lower end of its 95 % interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
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

impl SpanBlock {
    /// From the first planned send to the end of the drain, ns.
    #[must_use]
    pub fn nanos(&self) -> u64 {
        self.t2_ns.saturating_sub(self.t0_ns)
    }
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
            repeat: 0,
            label: level_label(&result.level),
            setting: Verbatim::of(&result.level),
            span: result.span.into(),
            window: summary.window.into(),
            bodies: bodies(result),
            counts: Counts::default(),
            distributions: BTreeMap::new(),
            groups: Vec::new(),
            replicas: result.replicas.clone(),
            rates: RatesBlock { window: summary.window_rates, level: summary.level_rates },
            goodput: None,
            tokens: Tokens::default(),
            cache_split: None,
            reuse: None,
            in_flight: None,
            statistics: None,
            self_check: SelfCheckBlock::new(result, &verdict::budget::client_errors(result, summary)),
            findings: None,
            verdict: None,
            series: Some(Verbatim::of(result.tally.series())),
            slices: SlicesBlock::of(result, &summary.window),
            stress: None,
            herd: None,
            examples: result.examples.iter().map(ExampleBlock::new).collect(),
            lengthened: result.lengthened.map(LengthenedBlock::from),
            judged: result.judged,
            turns: None,
            sessions: result.sessions(),
            telemetry: None,
            part: None,
            shares: None,
            records: result.records.map(RecordsBlock::from),
            interrupted: result.interrupted,
        };
        block.set(summary);
        block
    }

    /// Says in which round it was run, where there are several.
    pub(super) fn set_repeat(&mut self, repeat: usize) {
        self.repeat = repeat;
        self.label = format!("{} #{}", self.load_label(), repeat + 1);
    }

    /// Says which share of the level it is, and keeps what merging needs.
    pub(super) fn set_share(&mut self, share: Share, result: &LevelResult) {
        self.label = format!("{}, share {share}", self.label);
        self.part = Some(Verbatim::of(&Part::of(result)));
    }

    /// What is made of all records of the level for a load that changes on purpose: a stress test, or bursts.
    pub fn look_at(&mut self, plan: &Plan, records: &[Record], slo: &Slo) {
        let Ok(level) = self.setting.read() else { return };
        let t0 = Stamp::from_nanos(self.span.t0_ns);
        self.stress = plan.stress.and_then(|stress| recovery::of(&stress, (&level, t0), records, slo));
        self.herd = herd::of(&level, records);
    }

    /// The load in words, without the number of the repeat: another load of the run has other ones.
    #[must_use]
    pub fn load_label(&self) -> String {
        let Ok(level) = self.setting.read() else { return self.label.clone() };
        // That of a load that would look like another, or of a file from before numbers were rounded.
        let exact = exact_level_label(&level);
        if self.label.starts_with(&exact) { exact } else { level_label(&level) }
    }

    /// The label with all digits of its load, for files that programs read.
    #[must_use]
    pub fn exact_label(&self) -> String {
        let Ok(level) = self.setting.read() else { return self.label.clone() };
        self.label.replacen(&self.load_label(), &exact_level_label(&level), 1)
    }

    /// Takes all digits of its load into its label where it would look like one of `others` and is none.
    pub(super) fn tell_from(&mut self, others: &[LevelBlock]) {
        let Ok(own) = self.setting.read() else { return };
        let looks_like = |other: &&LevelBlock| other.load_label() == self.label;
        let is_other = |other: &LevelBlock| {
            other.setting.read().is_ok_and(|other| (other.load, other.sizes) != (own.load.clone(), own.sizes))
        };
        if others.iter().filter(looks_like).any(is_other) {
            self.label = exact_level_label(&own);
        }
    }

    /// Puts other numbers in the place of its own: the same level, judged anew.
    pub fn set(&mut self, summary: &LevelSummary) {
        self.window = summary.window.into();
        self.counts = summary.counts.clone();
        self.distributions =
            summary.distributions.iter().map(|d| (d.metric, DistributionBlock::new(d))).collect();
        self.groups = summary.groups.iter().map(GroupBlock::new).collect();
        self.rates = RatesBlock { window: summary.window_rates, level: summary.level_rates };
        self.goodput = summary.goodput;
        self.tokens = summary.tokens.clone();
        self.cache_split = summary.cache_split;
        self.in_flight = summary.in_flight;
        self.statistics.clone_from(&summary.statistics);
        let turns: Vec<TurnBlock> = summary.turns.iter().map(TurnBlock::new).collect();
        self.turns = (!turns.is_empty()).then_some(turns);
    }
}

impl LevelBlock {
    /// The window as the engine had it: what a rule of the plan moved is put back.
    #[must_use]
    pub fn fixed_window(&self) -> Window {
        let window = Window::from(self.window);
        let start = self.statistics.as_ref().map(|statistics| statistics.steady.fixed_start_ns);
        Window { start: start.map_or(window.start, Stamp::from_nanos), ..window }
    }
}

impl ExampleBlock {
    /// The stored form of an example.
    #[must_use]
    pub fn new(example: &Example) -> ExampleBlock {
        let message: String = example.message.chars().take(MESSAGE_CHARS_MAX).collect();
        ExampleBlock {
            outcome: example.outcome,
            label: example.outcome.label(),
            message: redact::urls(&message),
        }
    }
}

impl From<Lengthened> for LengthenedBlock {
    fn from(lengthened: Lengthened) -> LengthenedBlock {
        let Lengthened { times, reached, value, low, high } = lengthened;
        LengthenedBlock { times, reached, value, low, high }
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

impl LevelBlock {
    /// The quantile of a latency, ms; `None` where the metric has no value, or where failures reach the quantile, which is
    /// then no latency.
    #[must_use]
    pub fn quantile_ms(&self, metric: Metric, quantile: Quantile) -> Option<f64> {
        let distribution = self.distributions.get(&metric).filter(|one| one.unit == Unit::Nanoseconds)?;
        if distribution.fails(quantile) { None } else { Some(distribution.quantile(quantile)? / 1e6) }
    }

    /// The 99th percentile of how late we were with requests, ns: with all that were taken in hand, or, in files from before that
    /// was kept, with those that ended well. `None` where it is not known.
    #[must_use]
    pub fn delay_p99_ns(&self) -> Option<f64> {
        let of_ok = || self.distributions.get(&Metric::ScheduleDelay)?.quantile(Quantile::P99);
        self.self_check.schedule_delay.and_then(|delay| delay.p99_ns).or_else(of_ok)
    }

    /// The rate that was asked for on average over the time that requests are counted in, per second: of a merged level
    /// that of the shares which are there. `None` where there is none, or the load is not known to this tokload.
    #[must_use]
    pub fn asked_s(&self) -> Option<f64> {
        let load = self.setting.read().ok()?.load;
        let (window, span) = (self.window, self.span);
        let (from_ns, until_ns) =
            if window.whole_level { (span.t0_ns, span.t1_ns) } else { (window.start_ns, window.end_ns) };
        let since_start = |ns: u64| ns.saturating_sub(span.t0_ns) as f64 / 1e9;
        let asked = load.asked_between(since_start(from_ns), since_start(until_ns))?;
        let there = self.shares_there();
        Some(if there.is_empty() { asked } else { there.iter().map(|share| share.rate(asked)).sum() })
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

fn bodies(result: &LevelResult) -> Option<String> {
    // Nothing was sent, or nobody has looked: of anything that was, the sum is 0 once in 2^64 runs.
    let sum = result.shards.iter().map(|shard| shard.bodies).fold(0, u64::wrapping_add);
    (sum != 0).then(|| format!("{sum:016x}"))
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_first(repeat: &usize) -> bool {
    *repeat == 0
}

/// Enough for an error object, too little for the page of a proxy.
const MESSAGE_CHARS_MAX: usize = 500;
