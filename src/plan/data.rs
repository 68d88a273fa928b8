//! A data set as a part of a plan: which file prompts are taken from, in which order, and how long their answers are.

use serde::{Deserialize, Serialize};

use super::{Error, Plan, RecordErrors};

/// The file whose prompts are sent, at any load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSet {
    /// The file, as the command line named it.
    pub file: String,
    /// Its format by name; told from its beginning if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Column of the prompts in a CSV file; `prompt`, `text` or the only one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What a record does that cannot be read.
    #[serde(default)]
    pub errors: RecordErrors,
    /// Which of its prompts are left out for their lengths.
    #[serde(default, skip_serializing_if = "Filter::is_empty")]
    pub filter: Filter,
    /// The tool by whose rules prompts are chosen; absent: by our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compat: Option<Compat>,
    /// Prompts are taken in an order by the seed, another one in each pass; otherwise in that of the file. On by default.
    #[serde(default = "yes")]
    pub shuffle: bool,
    /// Where the lengths of answers are from.
    #[serde(default)]
    pub lengths: LengthRule,
}

/// Bounds, inclusive. Of lengths in tokens: as the file says or, of a text, four for three words. What has no length is
/// within each bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_min: Option<u32>,
    /// Of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_max: Option<u32>,
    /// Of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_min: Option<u32>,
    /// Of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer_max: Option<u32>,
    /// Of both together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_min: Option<u32>,
    /// Of both together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_max: Option<u32>,
    /// Of a conversation that is sent whole, turns: one of fewer is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_min: Option<u32>,
    /// Of the same: what goes beyond so many turns is cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_max: Option<u32>,
}

/// Whose rules choose among the prompts of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compat {
    /// Of ShareGPT the first two turns of each conversation, whoever said them, neither below 4 tokens, the first of at most
    /// 1024 and both together of at most 2048. Of BurstGPT what was asked of GPT-4 and answered.
    Vllm,
}

impl Filter {
    /// Whether nothing is left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    /// Whether lengths lie within the bounds.
    #[must_use]
    pub fn keeps(&self, prompt: u32, answer: Option<u32>) -> bool {
        let within = |length: Option<u32>, min: Option<u32>, max: Option<u32>| {
            length.is_none_or(|length| length >= min.unwrap_or(0) && length <= max.unwrap_or(u32::MAX))
        };
        let total = answer.map(|answer| prompt.saturating_add(answer));
        within(Some(prompt), self.prompt_min, self.prompt_max)
            && within(answer, self.answer_min, self.answer_max)
            && within(total, self.total_min, self.total_max)
    }
}

/// How long the answers to the prompts of a data set are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthRule {
    /// As the file says or, where it holds an answer, as long as that seems; else as planned.
    #[default]
    Recorded,
    /// As [`Workload::output_tokens`](super::Workload::output_tokens) says.
    Planned,
}

impl DataSet {
    /// All of `file`, in an order by the seed.
    #[must_use]
    pub fn of(file: &str) -> DataSet {
        DataSet {
            file: file.to_owned(),
            format: None,
            column: None,
            errors: RecordErrors::default(),
            filter: Filter::default(),
            compat: None,
            shuffle: true,
            lengths: LengthRule::default(),
        }
    }
}

impl Plan {
    /// A data set stands alone.
    pub(super) fn check_data(&self) -> Result<(), Error> {
        let Some(data) = &self.workload.data else { return Ok(()) };
        let wrong = |wrong: &str, remedy: &str| Err(Error::new("--dataset-path", wrong, remedy));
        if self.workload.trace.is_some() {
            return wrong("stands beside a trace", "give one of them");
        }
        if data.file.is_empty() {
            return wrong("no file is named", "give the file's name");
        }
        let Filter {
            prompt_min,
            prompt_max,
            answer_min,
            answer_max,
            total_min,
            total_max,
            turns_min,
            turns_max,
        } = data.filter;
        if let Some((min, max)) = turns_min.zip(turns_max).filter(|(min, max)| min > max) {
            let wrong = format!("nothing lies between {min} and {max} turns");
            return Err(Error::new("--multi-turn-min-turns", wrong, "give the smaller one as the fewest"));
        }
        for (min, max) in [(prompt_min, prompt_max), (answer_min, answer_max), (total_min, total_max)] {
            if min.zip(max).is_some_and(|(min, max)| min > max) {
                let remedy = "give the smaller bound first, as in prompt:4-1024";
                return Err(Error::new("--dataset-lengths", "nothing lies in a range", remedy));
            }
        }
        if self.workload.prefix.is_some() {
            return wrong("brings prompts of its own", "leave out what synthetic prompts begin with");
        }
        Ok(())
    }
}

const fn yes() -> bool {
    true
}
