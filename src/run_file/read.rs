//! Loading a stored run, and judging it anew.

use std::io;
use std::path::{Path, PathBuf};
use std::{error, fmt, fs};

use serde::Deserialize;

use super::chunks::Chunks;
use super::foreign::Foreign;
use super::records::Records;
use super::schema::{LevelBlock, RunFile, SCHEMA, SideFile, VERSION};
use super::spool::Content;
use super::{detail, recover, write};
use crate::metrics::Tally;
use crate::plan::{Slo, SteadyCut, Timestamps};
use crate::summary;

/// A stored run with what lies beside it.
#[derive(Debug)]
pub struct Loaded {
    /// The run as it was written.
    pub run: RunFile,
    path: PathBuf,
    records: Option<PathBuf>,
    /// Where the times of events are, if not where the run says.
    chunks: Option<PathBuf>,
}

/// Why a stored run could not be used.
#[derive(Debug)]
pub enum ReadError {
    /// A record holds a code that is not one of ours.
    BadRecord {
        /// The record file.
        path: PathBuf,
        /// Its place in it, from 0.
        number: u64,
    },
    /// The file of event times ends before the records do.
    ChunksShort {
        /// The file.
        path: PathBuf,
    },
    /// A side file is not what its name says.
    ForeignSideFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The system refused.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is a run file, but a block is missing or of another form.
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: serde_json::Error,
    },
    /// A newer version of the schema.
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// Not JSON, or JSON of something else.
    NotARunFile {
        /// The file.
        path: PathBuf,
        /// What it is.
        seen: Foreign,
    },
    /// A device, a pipe or a directory: what has no end could be read for ever, and the files beside a run are found
    /// by its name.
    NotAFile {
        /// The place.
        path: PathBuf,
    },
    /// The numbers cannot be computed anew, because the records are not there.
    NoRecords {
        /// The run file.
        path: PathBuf,
    },
    /// The record file holds fewer records than a level says.
    RecordsShort {
        /// The record file.
        path: PathBuf,
        /// Records that should be there.
        wanted: u64,
        /// Records that are.
        have: u64,
    },
}

impl Loaded {
    /// Loads the run file `path` and looks for its records. Where there is none, but a run has left its checkpoint that was
    /// to be saved there, it is made of that: see [`RunFile::cut`].
    ///
    /// # Errors
    ///
    /// When it cannot be read, is not a regular file, is no run file, or is of a newer version. What is wrong with its records shows when
    /// they are asked for: without them it can still be shown.
    pub fn open(path: &Path) -> Result<Loaded, ReadError> {
        // Asked before it is opened: opening a pipe waits for a writer.
        let there = fs::metadata(path);
        let is_missing = there.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
        let is_part = path.extension().is_some_and(|extension| extension == "part");
        if (is_missing || is_part)
            && let Some(recovered) = recover::open(path)
        {
            return recovered;
        }
        if !there.map_err(|e| ReadError::io(path, e))?.is_file() {
            return Err(ReadError::NotAFile { path: path.to_owned() });
        }
        let text = fs::read_to_string(path).map_err(|e| match e.kind() {
            io::ErrorKind::InvalidData => {
                ReadError::NotARunFile { path: path.to_owned(), seen: Foreign::Binary }
            }
            _ => ReadError::io(path, e),
        })?;
        let mut run = parse(&text, path)?;
        if run.verdict.is_none() {
            // A file from before there were verdicts.
            run.judge();
        }
        if run.knee.is_none() {
            // From before there were knees.
            run.find_knee();
        }
        let records = beside(path, run.records.as_ref(), Content::Records);
        Ok(Loaded { run, path: path.to_owned(), records, chunks: None })
    }

    /// A run that was not read from its file, with the file that its place is told by, and its records.
    pub(super) fn of(run: RunFile, path: PathBuf, records: Option<PathBuf>) -> Loaded {
        Loaded { run, path, records, chunks: None }
    }

    /// A run that is not saved yet, with the files that its records and the times of events are being kept in.
    #[must_use]
    pub fn of_parts(run: RunFile, records: Option<PathBuf>, chunks: Option<PathBuf>) -> Loaded {
        let path = records.clone().unwrap_or_default();
        Loaded { run, path, records, chunks }
    }

    /// The record file.
    ///
    /// # Errors
    ///
    /// When it is not there or is none.
    pub fn records(&self) -> Result<Records, ReadError> {
        let path = self.records.as_ref().ok_or_else(|| ReadError::NoRecords { path: self.path.clone() })?;
        Records::open(path)
    }

    /// The times of content events, from the first record's on; `None` if they were not kept.
    ///
    /// # Errors
    ///
    /// When their file cannot be read or is none.
    pub fn chunks(&self) -> Result<Option<Chunks>, ReadError> {
        let place = || beside(&self.path, self.run.chunks.as_ref(), Content::Chunks);
        self.chunks.clone().or_else(place).map(|place| Chunks::open(&place)).transpose()
    }

    /// The run with every number computed anew from the records, its goodput judged by `slo`.
    ///
    /// With the SLO of the plan it equals the stored run.
    ///
    /// # Errors
    ///
    /// When there are no records, too few of them, or a level of a later tokload.
    pub fn judged_by(&self, slo: &Slo) -> Result<RunFile, ReadError> {
        let records = self.records()?;
        let mut run = self.run.clone();
        for level in &mut run.levels {
            self.judge(level, &records, slo)?;
        }
        run.capacity = self.capacity_at(&records, slo)?;
        run.compare_repeats();
        run.find_knee();
        Ok(run)
    }

    /// Writes the records of all levels as JSON lines, with the times of content events where they were kept.
    ///
    /// # Errors
    ///
    /// When there are no records, or reading or writing fails.
    pub fn export_detailed<W: io::Write>(&self, out: &mut W) -> Result<(), detail::Error> {
        let records = self.records().map_err(detail::Error::Read)?;
        let mut chunks = self.chunks().map_err(detail::Error::Read)?;
        for level in &self.run.levels {
            let Some(range) = level.records else { continue };
            let label = level.exact_label();
            let place = detail::Level {
                ordinal: level.ordinal,
                label: &label,
                t0: crate::time::Stamp::from_nanos(level.span.t0_ns),
            };
            let records = records.range(range.into()).map_err(detail::Error::Read)?;
            detail::write(out, place, records, chunks.as_mut())?;
        }
        Ok(())
    }

    /// Of a run of another tool only what it did not judge is judged: its numbers are its own.
    fn judge_imported(&self, level: &mut LevelBlock, stored: &Records, slo: &Slo) -> Result<(), ReadError> {
        let range = level.records.ok_or_else(|| self.without_records())?;
        let records = stored.read(range.into())?;
        let summary = summary::level(&summary::Input {
            records: Some(&records),
            tally: &Tally::default(),
            window: level.fixed_window(),
            steady_cut: SteadyCut::default(),
            span: level.span.into(),
            slo: *slo,
            from_plan: false,
            timestamps: Timestamps::User,
            steady_from_s: None,
            users: None,
            counted: None,
        });
        level.goodput = summary.goodput;
        if let (Some(ours), Some(judged)) = (&mut level.statistics, summary.statistics) {
            ours.attainment = judged.attainment;
        }
        Ok(())
    }

    pub(super) fn malformed(&self, source: serde_json::Error) -> ReadError {
        ReadError::Malformed { path: self.path.clone(), source }
    }

    pub(super) fn without_records(&self) -> ReadError {
        ReadError::NoRecords { path: self.path.clone() }
    }

    fn judge(&self, level: &mut LevelBlock, stored: &Records, slo: &Slo) -> Result<(), ReadError> {
        if self.run.imported.is_some() {
            return self.judge_imported(level, stored, slo);
        }
        let setting = level.setting.read().map_err(|source| self.malformed(source))?;
        let plan = self.run.plan.read().map_err(|source| self.malformed(source))?;
        let share = plan.own_share();
        let range = level.records.ok_or_else(|| self.without_records())?;
        let records = stored.read(range.into())?;
        let statistics = level.statistics.as_ref();
        let summary = summary::level(&summary::Input {
            records: Some(&records),
            tally: &Tally::default(),
            window: level.fixed_window(),
            steady_cut: statistics.map(|statistics| statistics.steady.cut).unwrap_or_default(),
            span: level.span.into(),
            slo: *slo,
            from_plan: setting.load.judged_from_plan(),
            // A file from before there were kernel stamps has none in its records either.
            timestamps: level.self_check.timestamps.unwrap_or_default(),
            steady_from_s: setting.load.steady_from_s(),
            users: summary::Users::of(&setting.load, share),
            counted: statistics.and_then(|statistics| statistics.little?.counted),
        });
        // Gaps are in no record, and no SLO is judged by them: theirs stay as they were stored.
        let gaps: Vec<_> = std::mem::take(&mut level.distributions)
            .into_iter()
            .filter(|(metric, _)| !metric.is_per_request())
            .collect();
        level.set(&summary);
        level.distributions.extend(gaps);
        level.look_at(&plan, &records, slo);
        Ok(())
    }
}

/// The run in `text`; `path` is for the error's words only.
///
/// # Errors
///
/// When it is no run file of a version up to [`VERSION`].
pub fn parse(text: &str, path: &Path) -> Result<RunFile, ReadError> {
    // The head first: a newer file may differ in anything else.
    #[derive(Deserialize)]
    struct Head {
        schema: String,
        version: u32,
    }
    let path = || path.to_owned();
    let foreign = || ReadError::NotARunFile { path: path(), seen: Foreign::of(text) };
    let head: Head = serde_json::from_str(text).map_err(|_| foreign())?;
    if head.schema != SCHEMA {
        return Err(foreign());
    }
    if head.version > VERSION {
        return Err(ReadError::NewerVersion { path: path(), version: head.version });
    }
    serde_json::from_str(text).map_err(|source| ReadError::Malformed { path: path(), source })
}

/// The side file of the run file `run`: by the name that the run says, else by the run file's own name (both were
/// renamed). Only the name counts, never a directory in it: a run file must not open what it likes.
fn beside(run: &Path, stored: Option<&SideFile>, content: Content) -> Option<PathBuf> {
    let name = Path::new(&stored?.file).file_name()?;
    [run.with_file_name(name), write::beside(run, content)].into_iter().find(|place| place.is_file())
}

impl ReadError {
    pub(super) fn io(path: &Path, source: io::Error) -> ReadError {
        ReadError::Io { path: path.to_owned(), source }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::BadRecord { path, number } => {
                write!(f, "record {number} of {} is damaged", path.display())
            }
            ReadError::ChunksShort { path } => {
                write!(f, "{} ends before the records do: the run was cut off", path.display())
            }
            ReadError::ForeignSideFile { path, what } => {
                write!(f, "{} is not a file that this tokload can read: {what}", path.display())
            }
            ReadError::Io { path, source } => {
                write!(f, "cannot read {}: {source}", path.display())?;
                match source.kind() {
                    io::ErrorKind::NotFound => f.write_str("; name the file that a run has saved"),
                    _ => Ok(()),
                }
            }
            ReadError::Malformed { path, source } => {
                write!(
                    f,
                    "{} is a run file, but not a whole one: {source}; take the file as it was written, or measure again",
                    path.display()
                )
            }
            ReadError::NewerVersion { path, version } => write!(
                f,
                "{} has version {version} of the run file, this tokload reads up to {VERSION}: use a newer tokload",
                path.display()
            ),
            ReadError::NotAFile { path } => write!(
                f,
                "{} is not a regular file: save the run, and the files beside it, and name it by its path",
                path.display()
            ),
            ReadError::NotARunFile { path, seen } => write!(
                f,
                "{} is not a tokload run file (JSON with schema \"{SCHEMA}\"): {seen}",
                path.display()
            ),
            ReadError::NoRecords { path } => write!(
                f,
                "{} has no records of its requests, or they are not there: other SLOs, exports of requests and the blocks of other \
                 tools are made of them (the file <name>.records beside it, kept unless --no-records was given)",
                path.display()
            ),
            ReadError::RecordsShort { path, wanted, have } => {
                write!(
                    f,
                    "{} holds {have} records where {wanted} were measured: it was cut off",
                    path.display()
                )
            }
        }
    }
}

impl error::Error for ReadError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            ReadError::Io { source, .. } => Some(source),
            ReadError::Malformed { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_regular_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        // Either would be read for ever, or waited for.
        for path in [Path::new("/dev/zero"), &pipe, folder.path()] {
            let error = Loaded::open(path).unwrap_err();
            assert!(matches!(&error, ReadError::NotAFile { path: named } if named == path), "{error}");
        }
        let error = Loaded::open(Path::new("/dev/zero")).unwrap_err().to_string();
        let expected =
            "/dev/zero is not a regular file: save the run, and the files beside it, and name it by its path";
        assert_eq!(error, expected);
    }
}
