//! Where an imported run comes from.

use serde::{Deserialize, Serialize};

/// The file of another tool that a run was made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedBlock {
    /// The tool: `vllm`, `aiperf`. Its definitions stand in the run's.
    pub tool: String,
    /// The files, without a directory.
    pub files: Vec<String>,
    /// There is a line for each request.
    pub detailed: bool,
    /// What the tool calls the API that was asked; `None` where the file does not say.
    pub backend: Option<String>,
    /// What does not fit, or cannot be said, one line each.
    pub notes: Vec<String>,
}
