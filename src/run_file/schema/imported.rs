//! Where an imported run comes from.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The file of another tool that a run was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedBlock {
    /// The tool: `vllm`, `aiperf`, `llama-bench`. Its definitions stand in the run's.
    pub tool: String,
    /// The files, without a directory.
    pub files: Vec<String>,
    /// There is a line for each request.
    pub detailed: bool,
    /// What the tool calls the API that was asked; `None` where the file does not say.
    pub backend: Option<String>,
    /// What does not fit, or cannot be said, one line each.
    pub notes: Vec<String>,
    /// The line of each level as the tool prints it, by the names of its columns, where it prints a table: `llama-bench`,
    /// `llama-batched-bench`. Absent for others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub printed: Vec<BTreeMap<String, String>>,
}
