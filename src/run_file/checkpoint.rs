//! What a run leaves beside its records while it runs, so that one that is killed can be reported.
//!
//! Two files under temporary names, gone when the run is saved. The journal has a line of JSON for whatever is known for
//! good: what the run is, which level has begun, what came to finished slices, what levels that are over have counted. It
//! grows by a line, so that a run of days costs no more than one of minutes, and a line that was cut off is left out. The
//! slice that is being filled stands in a file of its own, written anew and put in the place of the one before it; it says
//! how long the journal was, so that nothing is counted twice. All that is lost is what came since: a second at most.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use super::layout;
use super::schema::{RecordsBlock, RunFile, SpanBlock, WindowBlock};
use super::write::{self, Destination, WriteError};
use crate::metrics::Tally;
use crate::metrics::slices::{Added, Slices};
use crate::plan::{Level, Timestamps};
use crate::run::books::Keeper;
use crate::run::{LevelResult, ShardCheck};
use crate::sys::host::process_exists;
use crate::time::Stamp;

/// The journal of a run that goes on, and what belongs to it. Dropped, it takes its files with it.
#[derive(Debug)]
pub struct Checkpoint {
    journal: Journal,
    open: PathBuf,
    /// The run could not be saved: what is here is all that there is.
    stays: bool,
}

/// The file that lines are added to, by the thread of the run and by the one that writes records.
#[derive(Clone, Debug)]
struct Journal {
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

/// A line of the journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The run, without levels. Always the first.
    Run(Box<RunFile>),
    /// A level has begun, warm-up included.
    Level {
        /// Its place.
        ordinal: usize,
        /// Its setting.
        level: Box<Level>,
        /// Records before its own.
        records: u64,
    },
    /// Its measured requests have begun.
    Start {
        /// Its place.
        ordinal: usize,
        /// The first planned send.
        start_ns: u64,
        /// Length of its slices.
        slice_ns: u64,
    },
    /// What came to finished slices.
    News(Vec<Added>),
    /// A level is over.
    Done(Box<Done>),
}

/// A level that is over, as its shards left it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) ordinal: usize,
    pub(super) level: Level,
    pub(super) span: SpanBlock,
    pub(super) window: WindowBlock,
    pub(super) records: Option<RecordsBlock>,
    pub(super) replicas: Vec<String>,
    pub(super) timestamps: Timestamps,
    pub(super) timestamps_why_not: Option<String>,
    pub(super) tally: Tally,
    pub(super) slices: Option<Slices>,
    pub(super) shards: Vec<ShardCheck>,
    pub(super) interrupted: bool,
}

/// The slice that is being filled.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Open {
    /// Lines of news in the journal when it was written.
    pub(super) news: u64,
    /// What is in it.
    pub(super) added: Added,
}

impl Checkpoint {
    /// Starts the journal of the run that is to be saved at `destination`, whose first line is `run`, without levels and
    /// without secrets.
    ///
    /// # Errors
    ///
    /// When it cannot be created or written.
    pub fn create(destination: &Destination) -> Result<Checkpoint, WriteError> {
        let path = write::part_of(&write::beside_as(destination.path(), JOURNAL));
        let open = write::part_of(&write::beside_as(destination.path(), OPEN));
        let cannot = |e| WriteError::io("create", &path, e);
        // A process of this number may have left one.
        let _ = fs::remove_file(&open);
        let file = File::create(&path).map_err(cannot)?;
        // From then on at the end, whoever writes.
        let appending = OpenOptions::new().append(true).open(&path).map_err(cannot)?;
        drop(file);
        let journal = Journal { path: path.clone(), file: Arc::new(Mutex::new(appending)) };
        Ok(Checkpoint { journal, open, stays: false })
    }

    /// Says what the run is; it must be free of secrets.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn begin(&self, run: &RunFile) -> Result<(), WriteError> {
        let line = Line::Run(Box::new(run.clone()));
        self.journal.add(&line).map_err(|e| WriteError::io("write", &self.journal.path, e))
    }

    /// Who is told while levels run.
    #[must_use]
    pub fn keeper(&self) -> Box<dyn Keeper> {
        Box::new(Writer { journal: self.journal.clone(), open: self.open.clone(), news: 0 })
    }

    /// A level is over.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn level_done(&self, result: &LevelResult) -> io::Result<()> {
        self.journal.add(&Line::Done(Box::new(Done {
            ordinal: result.ordinal,
            level: result.level.clone(),
            span: result.span.into(),
            window: result.window.into(),
            records: result.records.map(RecordsBlock::from),
            replicas: result.replicas.clone(),
            timestamps: result.stamps.in_use,
            timestamps_why_not: result.stamps.why_not.clone(),
            tally: result.tally.clone(),
            slices: result.slices.clone(),
            shards: result.shards.clone(),
            interrupted: result.interrupted,
        })))
    }

    /// Leaves the files where they are, since the run could not be saved.
    pub fn stay(&mut self) {
        self.stays = true;
    }
}

impl Drop for Checkpoint {
    fn drop(&mut self) {
        if !self.stays {
            // What cannot be removed harms nobody: a run that is saved is found before it.
            let _ = fs::remove_file(&self.open);
            let _ = fs::remove_file(&self.journal.path);
        }
    }
}

impl Journal {
    fn add(&self, line: &Line) -> io::Result<()> {
        let bytes = layout::to_line(line)?;
        // A thread that broke off in here has left half a line, which is left out.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let before = file.metadata()?.len();
        file.write_all(&bytes).inspect_err(|_| {
            // A disk that was full for a while must not make one line of two halves, of which nobody could read what follows.
            let _ = file.set_len(before);
        })
    }
}

/// What the writing thread has of it.
#[derive(Debug)]
struct Writer {
    journal: Journal,
    open: PathBuf,
    /// Lines of news so far.
    news: u64,
}

impl Keeper for Writer {
    fn on_level(&mut self, ordinal: usize, level: &Level, records: u64) -> io::Result<()> {
        self.journal.add(&Line::Level { ordinal, level: Box::new(level.clone()), records })
    }

    fn on_start(&mut self, ordinal: usize, start: Stamp, slice_ns: u64) -> io::Result<()> {
        self.journal.add(&Line::Start { ordinal, start_ns: start.as_nanos(), slice_ns })
    }

    fn on_news(&mut self, news: &[Added], open: Option<&Added>) -> io::Result<()> {
        if !news.is_empty() {
            self.journal.add(&Line::News(news.to_vec()))?;
            self.news += 1;
        }
        let Some(added) = open else { return Ok(()) };
        let open = Open { news: self.news, added: added.clone() };
        write::replace(&self.open, &layout::to_line(&open)?)
    }
}

/// The files that a run has left which ended without being saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leftover {
    /// The number of its process.
    pub(super) process: u32,
    pub(super) journal: PathBuf,
    pub(super) open: PathBuf,
    pub(super) records: PathBuf,
    /// Their name in a run whose records were complete when it could not be saved.
    pub(super) whole_records: PathBuf,
    /// How many other processes have left some of the same run file.
    pub(super) others: usize,
}

impl Leftover {
    /// What is left of the run that was to be saved at `run`, or whose journal that is: the newest, where there are several.
    pub(super) fn of(run: &Path) -> Option<Leftover> {
        let name = run.file_name()?.to_str()?;
        if let Some((stem, rest)) = name.rsplit_once(&format!(".{JOURNAL}.")) {
            let process = rest.strip_suffix(".part")?.parse().ok()?;
            return Some(Leftover::at(&run.with_file_name(format!("{stem}.json")), process, 0));
        }
        let journal = write::beside_as(run, JOURNAL);
        let begins = format!("{}.", journal.file_name()?.to_str()?);
        let folder = run.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut found: Vec<_> = fs::read_dir(folder)
            .ok()?
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name();
                let process = name.to_str()?.strip_prefix(&begins)?.strip_suffix(".part")?.parse().ok()?;
                Some((entry.metadata().ok()?.modified().ok()?, process))
            })
            .collect();
        found.sort_unstable();
        let (_, process) = found.pop()?;
        Some(Leftover::at(run, process, found.len()))
    }

    fn at(run: &Path, process: u32, others: usize) -> Leftover {
        let part = |extension: &str| {
            let mut name = write::beside_as(run, extension).into_os_string();
            name.push(format!(".{process}.part"));
            PathBuf::from(name)
        };
        let whole_records = write::beside_as(run, RECORDS);
        let (journal, open, records) = (part(JOURNAL), part(OPEN), part(RECORDS));
        Leftover { process, journal, open, records, whole_records, others }
    }

    /// Whether `file` was written to when the run had begun, as far as can be told.
    pub(super) fn is_older_than(&self, file: &Path) -> bool {
        let began = fs::metadata(&self.journal).and_then(|journal| journal.created());
        let written = fs::metadata(file).and_then(|file| file.modified());
        began.ok().zip(written.ok()).is_none_or(|(began, written)| began <= written)
    }

    /// Whether its process is still there: the run goes on, then.
    pub(super) fn is_running(&self) -> bool {
        process_exists(self.process)
    }
}

const RECORDS: &str = "records";
const JOURNAL: &str = "checkpoint";
const OPEN: &str = "open";
