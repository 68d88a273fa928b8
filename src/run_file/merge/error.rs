//! Why files cannot be merged, and what to do instead.

use std::fmt;
use std::path::PathBuf;

use crate::run_file::gathering::Sign;
use crate::run_file::read::ReadError;
use crate::run_file::write::WriteError;

/// Why files cannot be merged.
#[derive(Debug)]
pub enum MergeError {
    /// Two files are not of one run.
    Differ {
        /// One of them.
        first: PathBuf,
        /// The other.
        other: PathBuf,
        /// In what, with both values.
        what: String,
    },
    /// It is a result of another tool, which has no plan to hold the others against.
    Imported {
        /// The file.
        path: PathBuf,
    },
    /// A level's setting or counts are not ones that this tokload knows.
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: serde_json::Error,
    },
    /// It is a merged run already.
    Merged {
        /// The file.
        path: PathBuf,
    },
    /// Shares are missing.
    Missing {
        /// Which.
        missing: Vec<u32>,
        /// How many there should be.
        of: u32,
        /// What those of them last said that have said anything.
        last_signs: Vec<Sign>,
        /// The files of those whose processes have left a checkpoint, which can be merged by these names.
        left: Vec<PathBuf>,
    },
    /// A file has no level that was run.
    NoLevel {
        /// The file.
        path: PathBuf,
    },
    /// The record file of a run that kept records is not beside it.
    NoRecords {
        /// The run file.
        path: PathBuf,
    },
    /// The time of a run is none.
    NoTime {
        /// The file.
        path: PathBuf,
        /// What stands there.
        text: String,
    },
    /// No file is named.
    Nothing,
    /// The shares of a level were not measured at the same time.
    NotTogether {
        /// The level.
        label: String,
        /// How far apart they began by their clocks, s.
        apart_s: f64,
    },
    /// A file cannot be read.
    Read(ReadError),
    /// A share is there twice.
    Twice {
        /// Which.
        share: u32,
        /// One file of it.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
    /// It is no share but a whole run.
    Whole {
        /// The file.
        path: PathBuf,
    },
    /// The result cannot be written.
    Write(WriteError),
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MergeError::Differ { first, other, what } => write!(
                f,
                "{} and {} are not shares of one run: {what}; merge files that were made with the same options and the \
                 same --seed",
                first.display(),
                other.display()
            ),
            MergeError::Imported { path } => write!(
                f,
                "{} was imported, and only shares of a run by tokload are merged: give the files that run --share saved",
                path.display()
            ),
            MergeError::Malformed { path, source } => {
                write!(f, "{} is a run file, but its parts cannot be read: {source}", path.display())
            }
            MergeError::Merged { path } => write!(
                f,
                "{} is merged already: merge the files of all shares at once; runs are compared by tokload compare",
                path.display()
            ),
            MergeError::Missing { missing, of, last_signs, left } => {
                let list: Vec<String> = missing.iter().take(LISTED).map(u32::to_string).collect();
                let more = if missing.len() > LISTED { ", ..." } else { "" };
                let said: Vec<String> = last_signs.iter().take(LISTED).map(Sign::in_words).collect();
                let said = if said.is_empty() { String::new() } else { format!("; {}", said.join("; ")) };
                let left: Vec<String> =
                    left.iter().take(LISTED).map(|path| path.display().to_string()).collect();
                let left = match left.is_empty() {
                    true => String::new(),
                    false => format!(
                        "; what such a process has left is merged as well, by the name {}",
                        left.join(", ")
                    ),
                };
                write!(
                    f,
                    "{} of {of} shares are missing ({}{more}): name their files too, or merge what there is with \
                     --allow-missing{left}{said}",
                    missing.len(),
                    list.join(", ")
                )
            }
            MergeError::NoLevel { path } => {
                write!(f, "{} has no level that was run: there is nothing to merge", path.display())
            }
            MergeError::NoRecords { path } => write!(
                f,
                "{} was made with records, which are not beside it: put the file <name>.records there too",
                path.display()
            ),
            MergeError::NoTime { path, text } => {
                write!(f, "{} says '{text}' where the time of its beginning should stand", path.display())
            }
            MergeError::Nothing => f.write_str("no file is named: give the files of all shares"),
            MergeError::NotTogether { label, apart_s } => write!(
                f,
                "the shares of level {label} were not measured at the same time: by their clocks they began {apart_s:.1} s \
                 apart; start all processes at once, or, if clocks are wrong, merge with --align start"
            ),
            MergeError::Read(error) => error.fmt(f),
            MergeError::Twice { share, first, second } => write!(
                f,
                "{} and {} are both share {share}: name one of them",
                first.display(),
                second.display()
            ),
            MergeError::Whole { path } => write!(
                f,
                "{} is a whole run and no share of one (--share): repeats of a plan are made by --num-runs, runs are \
                 compared by tokload compare, and tokload check takes several baselines",
                path.display()
            ),
            MergeError::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for MergeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            MergeError::Malformed { source, .. } => Some(source),
            MergeError::Read(error) => Some(error),
            MergeError::Write(error) => Some(error),
            _ => None,
        }
    }
}

const LISTED: usize = 16;
