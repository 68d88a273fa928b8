//! What was sent of a trace or a data set, and what was not.

use serde::{Deserialize, Serialize};

use crate::workload::deck::Contents;
use crate::workload::recording::Overview;

/// A trace as it was looked through before the run. Its name and how it was read stand in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceBlock {
    /// Its format.
    pub format: String,
    /// Records of the file.
    pub records: u64,
    /// Requests that were planned at times of the file, in a level that is not ended earlier.
    pub requests: u64,
    /// Later turns of their sessions, planned as the answers before them ended; absent where there are none.
    #[serde(default, skip_serializing_if = "is_none")]
    pub later_turns: u64,
    /// Tokens of their prompts, as far as the trace gives lengths.
    pub prompt_tokens: u64,
    /// Time of the last of them after the first instant of the slice, as recorded, ns.
    pub last_ns: u64,
    /// Records that could not be read.
    pub malformed: u64,
    /// The first few of them: file, line and reason.
    pub malformed_first: Vec<String>,
    /// Calls left out because they had failed when they were recorded.
    pub failed: u64,
    /// Requests left out because they asked another model.
    pub other_model: u64,
    /// Requests left out because they lie outside of the slice.
    pub outside: u64,
    /// Requests left out because they have no time and follow no turn of their session.
    pub turns: u64,
    /// Requests sent with a shorter prompt.
    pub prompts_cut: u64,
    /// Requests sent with a shorter answer.
    pub outputs_cut: u64,
    /// Requests sent without their images.
    pub images: u64,
    /// Tokens of the longest request, its answer included; absent where the file says no lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_prompt: Option<u32>,
}

impl From<&Overview> for TraceBlock {
    fn from(of: &Overview) -> TraceBlock {
        TraceBlock {
            format: of.format.name().to_owned(),
            records: of.counts.records,
            requests: of.requests,
            later_turns: of.later,
            prompt_tokens: of.prompt_tokens,
            last_ns: of.last_ns,
            malformed: of.counts.malformed,
            malformed_first: of.counts.first_errors.iter().map(ToString::to_string).collect(),
            failed: of.dropped.failed,
            other_model: of.dropped.other_model,
            outside: of.dropped.outside,
            turns: of.turns,
            prompts_cut: of.dropped.prompts_cut,
            outputs_cut: of.dropped.outputs_cut,
            images: of.images,
            longest_prompt: of.longest_prompt,
        }
    }
}

/// A data set as it was looked through before the run. Its name and how it was read stand in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataBlock {
    /// Its format.
    pub format: String,
    /// Records of the file.
    pub records: u64,
    /// Prompts that requests took, or sessions; a level with more of them took them again.
    pub prompts: u64,
    /// Later turns of these sessions; absent where only first questions were sent.
    #[serde(default, skip_serializing_if = "is_none")]
    pub later_turns: u64,
    /// Records that could not be read.
    pub malformed: u64,
    /// The first few of them: file, line and reason.
    pub malformed_first: Vec<String>,
    /// Conversations left out because nobody answered.
    pub unanswered: u64,
    /// Calls left out because they had failed when they were recorded.
    pub failed: u64,
    /// Turns left out because they would need the answer before them.
    pub turns: u64,
    /// Requests left out because they are for another path.
    pub other_paths: u64,
    /// Prompts left out for their lengths, or by the rules of another tool.
    #[serde(default, skip_serializing_if = "is_none")]
    pub filtered: u64,
    /// Prompts sent without their images.
    pub images: u64,
    /// Answers whose length the file says.
    pub lengths_said: u64,
    /// Answers whose length is estimated from their recorded text.
    pub lengths_estimated: u64,
    /// Tokens of the longest request, its answer included; absent where the file says no lengths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_prompt: Option<u32>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_none(n: &u64) -> bool {
    *n == 0
}

impl From<&Contents> for DataBlock {
    fn from(of: &Contents) -> DataBlock {
        DataBlock {
            format: of.format.name().to_owned(),
            records: of.counts.records,
            prompts: of.prompts,
            later_turns: of.later,
            malformed: of.counts.malformed,
            malformed_first: of.counts.first_errors.iter().map(ToString::to_string).collect(),
            unanswered: of.counts.unanswered,
            failed: of.failed,
            turns: of.turns,
            other_paths: of.other_paths,
            filtered: of.filtered,
            images: of.images,
            lengths_said: of.lengths_said,
            lengths_estimated: of.lengths_estimated,
            longest_prompt: of.longest_prompt,
        }
    }
}
