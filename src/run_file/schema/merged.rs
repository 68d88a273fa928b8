//! What a merged run was made of: the processes of the run, and of each level.

use serde::{Deserialize, Serialize};

use super::self_check::HostBlock;
use super::{EnvironmentBlock, FindingBlock, RunFile};
use crate::plan::{Finding, Grade, Rule};

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
}

/// Shares that begin a level within so long of each other are taken to have begun together: this long, ns, or a hundredth
/// of the level's planned length, whichever is more. Clocks of machines differ by milliseconds where they are kept.
const APART_MAX_NS: u64 = 100_000_000;

/// How far apart the shares of a level planned `planned_ns` long may begin it, ns.
#[must_use]
pub fn apart_max_ns(planned_ns: u64) -> u64 {
    APART_MAX_NS.max(planned_ns / 100)
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
