//! Findings: what makes a measurement less than it seems, as values.
//!
//! Owns the rules' names, their order and the form of a finding. What is known before a run is looked for in `lint`,
//! what only a run shows in `verdict`; both give the same kind of value, so that one view prints either.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// A rule of the checklist, in the order of the measurement spec; the client's own probes stand at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A level without warm-up requests.
    NoWarmup,
    /// A level of so few requests that its p99 is the word of one or two of them.
    FewRequests,
    /// Requests repeat prompts, or parts of them, that a prefix cache then holds.
    IdenticalPrompts,
    /// Answers end where the model likes.
    OutputLengthNotFixed,
    /// Whole answers: no first token is seen.
    NotStreaming,
    /// Users wait for their answers, so that a slow server is asked less.
    ClosedLoopWithoutQueueTime,
    /// A configuration meets what the one before left in the server.
    ServerReusedAcrossConfigs,
    /// A shard had little time to spare.
    ClientCpu,
    /// Events are counted in the place of tokens.
    TokensCountedAsChunks,
    /// What was measured is not what will serve.
    NotProductionPlatform,
    /// Requests failed.
    Failures,
    /// Requests were still open when the level was given up.
    Unfinished,
    /// Answers ended too early.
    Truncated,
    /// Answers are of another length than asked.
    EarlyStop,
    /// Prompts have another number of tokens than asked.
    PromptTokensOff,
    /// Prompts that were to be new were found in a cache.
    CacheHitsUnwanted,
    /// Another share of the prompts came from the cache than they have in common.
    CacheShareOff,
    /// The same prompts were sent to this server before.
    SameSeedRerun,
    /// The level has no steady state.
    NotStationary,
    /// The server could not keep up with the arrivals.
    Saturated,
    /// The window is short beside what is measured in it.
    WindowShort,
    /// Too few independent requests for the percentiles shown.
    NEffLow,
    /// Neighbouring requests resemble each other much.
    DeffHigh,
    /// Requests were not planned at the rate asked for.
    RealisedRateOff,
    /// The cap of an open loop held requests back.
    CapReached,
    /// The client sent late.
    LateClient,
    /// The client read late.
    ReceiveLag,
    /// Events shared a read, so that the gaps between them are known in their sum only.
    Coalesced,
    /// Events carry several tokens.
    Bundled,
    /// Tokens of one level were counted in different ways.
    MixedTokenSource,
    /// Tokens of reasoning are counted but never shown.
    HiddenReasoning,
    /// Little's law does not hold as well as it must.
    LittleMismatch,
    /// Client and server share a machine.
    ClientOnServerHost,
    /// The server sent requests away.
    RateLimited,
    /// Nothing is known of the spread between runs.
    SingleRun,
    /// Files whose numbers mean different things are compared.
    MixedDefinitions,
    /// `localhost` has addresses of both families.
    LocalhostResolvesTwice,
    /// Something stands between client and server.
    ProxyInPath,
    /// The wall clock was set during a level.
    ClockStep,
    /// One stretch of a level was much slower than the rest.
    TimeSliceOutlier,
    /// A shard came late to its own events.
    LoopLag,
    /// Other guests of the physical machine took CPU time.
    CpuSteal,
    /// The client was held back by its CPU quota.
    CpuThrottled,
    /// The machine swapped, or records were lost.
    Memory,
    /// Requests needed new connections where old ones could have served.
    ConnectionReuse,
    /// Few local ports were left.
    PortsShort,
    /// Segments of requests had to be sent again.
    Retransmits,
    /// The load is one of several processes', and the numbers are those of its part.
    ShareOfRun,
    /// The wall clocks of the hosts of a merged run differ.
    ClocksApart,
    /// The processes of a merged level did not send at the same time.
    SharesApart,
    /// Some of the processes of a merged run are not in it.
    SharesMissing,
    /// Prompts grow from turn to turn, or beyond what the model takes.
    ContextGrowth,
    /// One of several endpoints or replicas fails more than the others.
    ReplicaFailing,
    /// One of them is slower than the others, or faster.
    ReplicaSlow,
    /// An endpoint did not get its share of the requests.
    ShareUneven,
    /// A figure changes as the level goes on.
    Drift,
}

/// How much a finding takes from a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    /// Worth knowing when the numbers are read.
    Info,
    /// Some number may mislead.
    Warn,
    /// The numbers are not what they claim to be.
    Invalid,
}

/// Something that makes a measurement less than it seems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which rule found it.
    pub rule: Rule,
    /// What it takes from the measurement.
    pub grade: Grade,
    /// What was seen, in numbers where there are any: lower-case, without a full stop.
    pub evidence: String,
    /// What to do about it: one imperative, lower-case, without a full stop.
    pub remedy: String,
}

impl Rule {
    /// Every rule with its name, in order.
    pub const ALL: [(Rule, &'static str); 56] = [
        (Rule::NoWarmup, "no_warmup"),
        (Rule::FewRequests, "few_requests"),
        (Rule::IdenticalPrompts, "identical_prompts"),
        (Rule::OutputLengthNotFixed, "output_length_not_fixed"),
        (Rule::NotStreaming, "not_streaming"),
        (Rule::ClosedLoopWithoutQueueTime, "closed_loop_without_queue_time"),
        (Rule::ServerReusedAcrossConfigs, "server_reused_across_configs"),
        (Rule::ClientCpu, "client_cpu"),
        (Rule::TokensCountedAsChunks, "tokens_counted_as_chunks"),
        (Rule::NotProductionPlatform, "not_production_platform"),
        (Rule::Failures, "failures"),
        (Rule::Unfinished, "unfinished"),
        (Rule::Truncated, "truncated"),
        (Rule::EarlyStop, "early_stop"),
        (Rule::PromptTokensOff, "prompt_tokens_off"),
        (Rule::CacheHitsUnwanted, "cache_hits_unwanted"),
        (Rule::CacheShareOff, "cache_share_off"),
        (Rule::SameSeedRerun, "same_seed_rerun"),
        (Rule::NotStationary, "not_stationary"),
        (Rule::Saturated, "saturated"),
        (Rule::WindowShort, "window_short"),
        (Rule::NEffLow, "n_eff_low"),
        (Rule::DeffHigh, "deff_high"),
        (Rule::RealisedRateOff, "realised_rate_off"),
        (Rule::CapReached, "cap_reached"),
        (Rule::LateClient, "late_client"),
        (Rule::ReceiveLag, "receive_lag"),
        (Rule::Coalesced, "coalesced"),
        (Rule::Bundled, "bundled"),
        (Rule::MixedTokenSource, "mixed_token_source"),
        (Rule::HiddenReasoning, "hidden_reasoning"),
        (Rule::LittleMismatch, "little_mismatch"),
        (Rule::ClientOnServerHost, "client_on_server_host"),
        (Rule::RateLimited, "rate_limited"),
        (Rule::SingleRun, "single_run"),
        (Rule::MixedDefinitions, "mixed_definitions"),
        (Rule::LocalhostResolvesTwice, "localhost_resolves_twice"),
        (Rule::ProxyInPath, "proxy_in_path"),
        (Rule::ClockStep, "clock_step"),
        (Rule::TimeSliceOutlier, "time_slice_outlier"),
        (Rule::LoopLag, "loop_lag"),
        (Rule::CpuSteal, "cpu_steal"),
        (Rule::CpuThrottled, "cpu_throttled"),
        (Rule::Memory, "memory"),
        (Rule::ConnectionReuse, "connection_reuse"),
        (Rule::PortsShort, "ports_short"),
        (Rule::Retransmits, "retransmits"),
        (Rule::ShareOfRun, "share_of_run"),
        (Rule::ClocksApart, "clocks_apart"),
        (Rule::SharesApart, "shares_apart"),
        (Rule::SharesMissing, "shares_missing"),
        (Rule::ContextGrowth, "context_growth"),
        (Rule::ReplicaFailing, "replica_failing"),
        (Rule::ReplicaSlow, "replica_slow"),
        (Rule::ShareUneven, "share_uneven"),
        (Rule::Drift, "drift"),
    ];

    /// Its name in files, tables and the checklist: `few_requests`.
    #[must_use]
    pub fn name(self) -> &'static str {
        Rule::ALL[self as usize].1
    }

    /// The rule of that name; `None` for one that this tokload does not know.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Rule> {
        Rule::ALL.into_iter().find(|(_, known)| *known == name).map(|(rule, _)| rule)
    }
}

impl Finding {
    /// A finding of `rule`.
    pub fn new(rule: Rule, grade: Grade, evidence: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { rule, grade, evidence: evidence.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.rule, self.evidence, self.remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_has_one_name_in_its_place() {
        for (place, (rule, name)) in Rule::ALL.into_iter().enumerate() {
            assert_eq!(rule as usize, place, "{name} is out of order");
            assert_eq!((rule.name(), Rule::from_name(name)), (name, Some(rule)));
        }
        assert_eq!(Rule::Drift as usize + 1, Rule::ALL.len());
        assert_eq!(Rule::from_name("of_tomorrow"), None);
    }
}
