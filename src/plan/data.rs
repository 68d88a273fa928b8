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
    /// Prompts are taken in an order by the seed, another one in each pass; otherwise in that of the file. On by default.
    #[serde(default = "yes")]
    pub shuffle: bool,
    /// Where the lengths of answers are from.
    #[serde(default)]
    pub lengths: LengthRule,
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
        if self.workload.prefix.is_some() {
            return wrong("brings prompts of its own", "leave out what synthetic prompts begin with");
        }
        Ok(())
    }
}

const fn yes() -> bool {
    true
}
