//! What a merged run was made of: the processes of the run, and of each level.

use serde::{Deserialize, Serialize};

use super::self_check::HostBlock;
use super::{EnvironmentBlock, FindingBlock, LevelBlock, RunFile};
use crate::metrics::metric::Metric;
use crate::plan::{Finding, Grade, Rule, Share};
use crate::stats::Quantile;
use crate::verdict::Verdict;

/// How the wall clock of a process stands to that of the first share, as seen through the folder that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockOffset {
    /// What the clock of the first share shows more, ns.
    pub offset_ns: i64,
    /// How wrong that may be to either side, ns: half of what a question and its answer took.
    pub bound_ns: u64,
}

impl ClockOffset {
    /// That of one question: asked at `asked` and answered at `answered` by our clock, read at `seen` and answered at
    /// `told` by the other's, all in ns since 1970.
    #[must_use]
    pub fn of_question(asked: u64, (seen, told): (u64, u64), answered: u64) -> ClockOffset {
        let there = i128::from(seen) + i128::from(told);
        let here = i128::from(asked) + i128::from(answered);
        let way = answered.saturating_sub(asked).saturating_sub(told.saturating_sub(seen));
        ClockOffset {
            offset_ns: i64::try_from((there - here) / 2).unwrap_or(i64::MAX),
            bound_ns: way.div_ceil(2),
        }
    }

    /// What to add to a time of this clock for that of the first share, ns: nothing where the clocks may well agree, since
    /// machines keep them better than files can show.
    #[must_use]
    pub fn correction_ns(&self) -> i64 {
        if self.offset_ns.unsigned_abs() > self.bound_ns { self.offset_ns } else { 0 }
    }

    /// Whether the clocks differ by more than [`CLOCKS_APART_MAX_NS`], whatever the bound leaves open.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.offset_ns.unsigned_abs() > self.bound_ns.saturating_add(CLOCKS_APART_MAX_NS)
    }
}

/// Clocks that differ by no more, ns, are taken to be kept.
pub const CLOCKS_APART_MAX_NS: u64 = 10_000_000;

/// The processes that made a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedBlock {
    /// How many the plan was dealt to.
    pub of: u32,
    /// Shares that are not in it; the load was so much less. Empty: it is whole.
    pub missing: Vec<u32>,
    /// Those that are, in their order.
    pub shares: Vec<MergedShareBlock>,
    /// In what the shares differ beyond their part of the load, one line each.
    pub notes: Vec<String>,
}

/// One of the processes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedShareBlock {
    /// Which share it made, from 1.
    pub share: u32,
    /// The file that it was read from, without a directory.
    pub file: String,
    /// Wall-clock time of the process's own epoch, RFC 3339 in UTC.
    pub created: String,
    /// `--label` of it.
    pub label: Option<String>,
    /// Ended early by the user.
    pub interrupted: bool,
    /// The machine that it ran on.
    pub environment: EnvironmentBlock,
}

/// The part that one process had in a level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelShareBlock {
    /// Which share, from 1.
    pub share: u32,
    /// Of how many; 0 in a file of an earlier tokload.
    #[serde(default)]
    pub of: u32,
    /// Requests planned, of any outcome.
    pub planned: u64,
    /// How much later than the first of all shares it began the level by the wall clocks of their machines, s; `None` in
    /// virtual time.
    pub began_s: Option<f64>,
    /// How much later it stands in the merged level, s: 0 where all are taken to have begun together.
    pub placed_s: f64,
    /// Ended early by the user.
    pub interrupted: bool,
    /// What its machine went through.
    pub host: Option<HostBlock>,
    /// Its numbers; absent in a file of an earlier tokload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<ShareNumbers>,
}

/// What the file of a share has of a level, over that share's own window: what tells one host from the others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShareNumbers {
    /// Requests that ended well.
    pub ok: u64,
    /// Those that failed.
    pub failed: u64,
    /// The former per second.
    pub req_s: f64,
    /// Output tokens per second.
    pub out_tok_s: f64,
    /// Median of TTFT, ms; `None` without a value, or where failed requests reach it.
    pub ttft_ms_p50: Option<f64>,
    /// Its 99th percentile, likewise.
    pub ttft_ms_p99: Option<f64>,
    /// The 99th percentile of ITL, ms.
    pub itl_ms_p99: Option<f64>,
    /// The 99th percentile of our own lateness with requests, ms; `None` where that is not known.
    pub delay_ms_p99: Option<f64>,
    /// The 99th percentile of how late its shards saw a tick, ms; `None` in virtual time, which has none.
    pub loop_lag_ms_p99: Option<f64>,
    /// What they are worth; `None` if the share was not judged.
    pub verdict: Option<Verdict>,
}

impl ShareNumbers {
    /// Those of the level of a share's file.
    #[must_use]
    pub fn of(level: &LevelBlock) -> ShareNumbers {
        let ms = |ns: f64| ns / 1e6;
        let lag = level.self_check.loop_lag.and_then(|lag| lag.p99_ns);
        let rates = level.rates.window;
        ShareNumbers {
            ok: level.counts.ok,
            failed: level.counts.failed,
            req_s: rates.req_s,
            out_tok_s: rates.out_tok_s,
            ttft_ms_p50: level.quantile_ms(Metric::Ttft, Quantile::P50),
            ttft_ms_p99: level.quantile_ms(Metric::Ttft, Quantile::P99),
            itl_ms_p99: level.quantile_ms(Metric::Itl, Quantile::P99),
            delay_ms_p99: level.delay_p99_ns().map(ms),
            loop_lag_ms_p99: lag.map(ms),
            verdict: level.verdict,
        }
    }
}

/// Shares that begin a level within so long of each other are taken to have begun together: this long, ns, or a hundredth
/// of the level's planned length, whichever is more. Clocks of machines differ by milliseconds where they are kept.
const APART_MAX_NS: u64 = 100_000_000;

/// How far apart the shares of a level planned `planned_ns` long may begin it, ns.
#[must_use]
pub fn apart_max_ns(planned_ns: u64) -> u64 {
    APART_MAX_NS.max(planned_ns / 100)
}

impl LevelBlock {
    /// The shares that the level is of, where it is of fewer than it was planned for; empty where it is whole, and where
    /// one process made it.
    #[must_use]
    pub fn shares_there(&self) -> Vec<Share> {
        let shares = self.shares.as_deref().unwrap_or_default();
        let of = shares.first().map_or(0, |share| share.of);
        if shares.len() >= of as usize {
            return Vec::new();
        }
        shares.iter().map(|share| Share { index: share.share, of }).collect()
    }
}

impl RunFile {
    /// What being merged takes from the run.
    pub(super) fn merged_findings(&self) -> Vec<FindingBlock> {
        let Some(merged) = &self.merged else { return Vec::new() };
        let mut found = Vec::new();
        if !merged.missing.is_empty() {
            let missing: Vec<String> = merged.missing.iter().map(u32::to_string).collect();
            let evidence = format!(
                "{} of {} shares are not in it ({}): {:.0} % of the planned load was offered",
                merged.missing.len(),
                merged.of,
                missing.join(", "),
                merged.shares.len() as f64 * 100.0 / f64::from(merged.of)
            );
            let remedy = "read its rates as those of the load that was offered, or run all shares again";
            found.push(Finding::new(Rule::SharesMissing, Grade::Warn, evidence, remedy).into());
        }
        let clocks = merged.shares.iter().filter_map(|share| Some((share, share.environment.clock_offset?)));
        for (share, clock) in clocks.filter(|(_, clock)| clock.is_large()) {
            let host = share.environment.host.as_deref().unwrap_or("its host");
            let evidence = format!(
                "the clock of share {} on {host} is {:.3} s {} that of share 1, to {:.3} s",
                share.share,
                clock.offset_ns.unsigned_abs() as f64 / 1e9,
                if clock.offset_ns > 0 { "behind" } else { "ahead of" },
                clock.bound_ns as f64 / 1e9
            );
            let remedy =
                "keep the clocks of the hosts (chrony, ntpd); starts were corrected for it, to that bound";
            found.push(Finding::new(Rule::ClocksApart, Grade::Warn, evidence, remedy).into());
        }
        for level in &self.levels {
            found.extend(level.shares.as_deref().and_then(|shares| apart(&level.label, shares)));
        }
        found
    }
}

/// Shares that were put where their clocks say, since they began far apart.
fn apart(label: &str, shares: &[LevelShareBlock]) -> Option<FindingBlock> {
    let most_s = shares.iter().map(|share| share.placed_s).fold(0.0, f64::max);
    (most_s > 0.0).then(|| {
        let evidence = format!(
            "{label}: by their clocks the processes began up to {most_s:.1} s apart, so that the load was not all there \
             for all of the level"
        );
        let remedy = "start all processes at once, or, if clocks are wrong, merge with --align start";
        Finding::new(Rule::SharesApart, Grade::Warn, evidence, remedy).into()
    })
}
