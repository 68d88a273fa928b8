//! Why a file of another tool cannot be taken over.

use std::fmt;

use crate::run_file::WriteError;

/// Why a file of another tool cannot be taken over.
#[derive(Debug)]
pub enum Error {
    /// There is nothing in it.
    Empty,
    /// It is not JSON, or was cut off.
    Json(serde_json::Error),
    /// Something is missing that every such file has.
    Missing {
        /// Its key.
        key: String,
    },
    /// Bytes that are no text.
    NotText,
    /// It is a run file of ours.
    Ours,
    /// It is like no file that is known.
    Unknown,
    /// A value cannot be what it claims to be.
    Value {
        /// Its key.
        key: String,
        /// What is wrong with it.
        wrong: String,
    },
    /// The records cannot be written.
    Write(WriteError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Empty => f.write_str("the file is empty; give the result file of a tool"),
            Error::Json(error) => {
                write!(f, "this is not JSON, or was cut off: {error}; give a whole result file")
            }
            Error::Missing { key } => {
                write!(f, "'{key}' is missing, which every such file has; give the file as its tool wrote it")
            }
            Error::NotText => f.write_str("the file is no text; give the result file as its tool wrote it"),
            Error::Ours => f.write_str("this is a run file of tokload already: tokload report shows it as it is"),
            Error::Unknown => f.write_str(
                "this is no file that can be imported; give a result of vLLM's --save-result, aiperf's \
                 profile_export_aiperf.json or profile_export.jsonl, the output of llama-bench or llama-batched-bench, or an \
                 HdrHistogram log or .hgrm, and say whose it is by --from",
            ),
            Error::Value { key, wrong } => write!(f, "'{key}': {wrong}; correct the file, or make it again"),
            Error::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Json(error) => Some(error),
            Error::Write(error) => Some(error),
            _ => None,
        }
    }
}
