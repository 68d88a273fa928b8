//! Findings and verdicts as stored, and how a run file is judged: by what stands in it, and nothing else.

use core::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::distribution::DistributionBlock;
use super::group::GroupBlock;
use super::level::LevelBlock;
use super::self_check::{DelayBlock, HostBlock, SelfCheckBlock};
use super::{RunFile, SpanBlock, WindowBlock};
use crate::metrics::Metric;
use crate::plan::lint::{Surroundings, lint};
use crate::plan::{Finding, Grade, Plan};
use crate::run::HostCheck;
use crate::stats::Quantile;
use crate::verdict::facts::{Client, Delay, Latency, PartOf, Times};
use crate::verdict::{self, Facts, Verdict};

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingBlock {
    /// Name of the rule, which may be one of a later tokload.
    pub rule: String,
    /// What it takes from the measurement.
    pub grade: Grade,
    /// What was seen.
    pub evidence: String,
    /// What to do about it.
    pub remedy: String,
}

impl RunFile {
    /// Looks for findings over the plan and in each level, and puts them and the verdicts in their places.
    ///
    /// A pure function of the blocks: a file from before there were findings is judged as it would be today. Nothing is
    /// found where the plan or a level's setting is one of a later tokload.
    pub fn judge(&mut self) {
        let Ok(plan) = self.plan.read() else { return };
        for level in &mut self.levels {
            level.judge(&plan);
        }
        let of_plan = lint(&plan, &self.surroundings()).into_iter().map(FindingBlock::from);
        let findings: Vec<FindingBlock> = of_plan.chain(self.merged_findings()).collect();
        let own = Verdict::of(findings.iter().map(|finding| finding.grade));
        let of_levels = self.levels.iter().filter_map(|level| level.verdict);
        self.verdict = Some(of_levels.fold(own, Verdict::max));
        self.findings = Some(findings);
    }

    /// What was around the plan when it was run.
    #[must_use]
    pub fn surroundings(&self) -> Surroundings {
        let addresses = self.target.addresses.iter().filter_map(|text| text.parse::<SocketAddr>().ok());
        Surroundings {
            simulated: self.is_simulated(),
            addresses: addresses.map(|address| address.ip()).collect(),
            server_on_this_host: self.target.on_client_host == Some(true),
            proxies: self.environment.proxies.clone(),
            via: self.target.via.clone(),
            same_prompts_at: self.same_prompts_at(),
            context_tokens: self.target.context_tokens,
            longest_prompt: self.longest_prompt(),
        }
    }

    /// The longest request of the file that they were taken from.
    fn longest_prompt(&self) -> Option<u32> {
        let of_trace = self.trace.as_ref().and_then(|trace| trace.longest_prompt);
        of_trace.or_else(|| self.data.as_ref().and_then(|data| data.longest_prompt))
    }

    /// When the same prompts were last sent to the server; `None` too if it was emptied since, or counts its hits and
    /// had none: then it has nothing to hide.
    fn same_prompts_at(&self) -> Option<String> {
        let seen = self.target.seen_before.as_ref()?;
        let cached: Option<u64> = self.levels.iter().map(|level| level.tokens.cached).sum();
        if self.target.prefix_cache_reset == Some(true) || cached == Some(0) {
            return None;
        }
        Some(seen.last_in_words())
    }
}

impl LevelBlock {
    fn judge(&mut self, plan: &Plan) {
        let Some(facts) = self.facts() else { return };
        let findings = verdict::findings(&plan.of_level(&facts.level), &facts);
        self.verdict = Some(Verdict::of(findings.iter().map(|finding| finding.grade)));
        self.findings = Some(findings.into_iter().map(FindingBlock::from).collect());
    }

    /// What the rules ask of the level; `None` if its setting is one of a later tokload.
    fn facts(&self) -> Option<Facts> {
        let cap_waits = self.distributions.get(&Metric::CapWait).and_then(DistributionBlock::histogram);
        Some(Facts {
            level: self.setting.read().ok()?,
            times: times(self.span, self.window),
            counts: self.counts.clone(),
            tokens: self.tokens.clone(),
            cache_share_planned: self.reuse.map(|reuse| reuse.share()),
            in_flight: self.in_flight,
            statistics: self.statistics.clone(),
            latencies: self.distributions.iter().map(|(metric, block)| (*metric, latency(block))).collect(),
            cap_waited: cap_waits
                .map(|waits| waits.buckets().filter(|b| b.highest > 0).map(|b| b.count).sum()),
            series: self.series.as_ref().and_then(|series| series.read().ok()).unwrap_or_default(),
            drift: self.slices.as_ref().map(|slices| slices.drift.clone()).unwrap_or_default(),
            slice_s: self.slices.as_ref().map(|slices| slices.width_s),
            client: client(&self.self_check),
            parts: self.groups.iter().map(part).collect(),
            replicas: self.replicas.clone(),
            shares_there: self.shares_there(),
        })
    }
}

impl From<Finding> for FindingBlock {
    fn from(finding: Finding) -> FindingBlock {
        let Finding { rule, grade, evidence, remedy } = finding;
        FindingBlock { rule: rule.name().to_owned(), grade, evidence, remedy }
    }
}

fn part(group: &GroupBlock) -> PartOf {
    PartOf {
        of: group.of,
        counts: group.counts.clone(),
        sessions: group.sessions,
        against: group.against.clone(),
    }
}

fn times(span: SpanBlock, window: WindowBlock) -> Times {
    let s = |from: u64, to: u64| to.saturating_sub(from) as f64 / 1e9;
    Times {
        window_s: s(window.start_ns, window.end_ns),
        cut_s: s(span.t0_ns, window.start_ns),
        whole_level: window.whole_level,
        planned_s: s(span.t0_ns, span.t1_ns),
        level_s: s(span.t0_ns, span.t2_ns),
    }
}

fn latency(block: &DistributionBlock) -> Latency {
    let p99 = Quantile::P99.parts();
    let bounds = block.bounds.as_ref().and_then(|bounds| {
        let of = |side: &[crate::summary::QuantileValue]| side.iter().find(|q| q.parts == p99)?.value;
        of(&bounds.low).zip(of(&bounds.high))
    });
    Latency {
        n: block.n,
        p50_ns: block.quantile(Quantile::P50).unwrap_or(0.0),
        p99_ns: block.quantile(Quantile::P99).unwrap_or(0.0),
        max_ns: block.max.unwrap_or(0.0),
        p99_bounds_ns: bounds,
    }
}

fn client(check: &SelfCheckBlock) -> Client {
    Client {
        timestamps: check.timestamps,
        schedule_delay: check.schedule_delay.map(delay),
        receive_lag: check.receive_lag.map(delay),
        loop_lag: check.loop_lag.map(delay),
        ttft_error_ns: check.error_of(Metric::Ttft, Quantile::P99).map(|error| error.error_ns),
        cpu_share_max: check.cpu_share_max,
        sent: check.sent,
        events: check.events,
        coalesced: check.coalesced,
        joined: check.joined,
        connects: check.connects,
        retransmits: check.retransmits,
        wall_step_ns: check.wall_step_ns,
        host: check.host.as_ref().map(HostCheck::from),
    }
}

fn delay(block: DelayBlock) -> Delay {
    Delay { p50_ns: block.p50_ns.unwrap_or(0.0), p99_ns: block.p99_ns.unwrap_or(0.0), max_ns: block.max_ns }
}

impl From<&HostBlock> for HostCheck {
    fn from(block: &HostBlock) -> HostCheck {
        HostCheck {
            busy_share: block.busy_share,
            steal_share: block.steal_share,
            throttled_s: block.throttled_s,
            major_faults: block.major_faults,
            minor_faults: block.minor_faults,
            preemptions: block.preemptions,
            swapped_pages: block.swapped_pages,
            time_wait: block.time_wait,
            ports: block.ports,
            records_lost: block.records_lost,
        }
    }
}
