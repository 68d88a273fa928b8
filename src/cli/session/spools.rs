//! The side files of a run while it runs.

use std::path::PathBuf;
use std::time::Duration;
use std::{fs, io};

use crate::cli::failure::Failure;
use crate::load::{Spool as LoadSpool, SpoolFiles};
use crate::metrics::Record;
use crate::plan::{Plan, Timestamps};
use crate::run::LevelResult;
use crate::run::books::Keeping;
use crate::run_file::{Checkpoint, Destination, ReadError, Records, RunFile, Spool, WriteError};
use crate::sys::clock::RunClock;

/// The side files of a run while it runs.
pub(super) struct Spools {
    records: Option<Spool>,
    pub(super) chunks: Option<Spool>,
    /// What is left of the run if it is killed; `None` where nothing is saved, or no records are kept.
    checkpoint: Option<Checkpoint>,
}

/// Requests of a level whose records are looked at together, about a GiB: a longer level has the numbers of its histograms,
/// and its records for whoever reads them one by one.
pub(super) const EXACT_MAX: u64 = 4_000_000;

impl Spools {
    pub(super) fn open(plan: &Plan, destination: &Destination, temporary: bool) -> Result<Spools, Failure> {
        let records = plan
            .keep
            .records
            .then(|| destination.records())
            .transpose()
            .map_err(|error| Failure::of_write(&error))?;
        let chunks = plan
            .keep
            .chunks
            .then(|| destination.chunks())
            .transpose()
            .map_err(|error| Failure::of_write(&error))?;
        let is_kept = records.is_some() && !temporary;
        let checkpoint = is_kept
            .then(|| Checkpoint::create(destination))
            .transpose()
            .map_err(|error| Failure::of_write(&error))?;
        Ok(Spools { records, chunks: chunks.filter(|_| plan.keep.records), checkpoint })
    }

    /// The thread that writes them, and keeps the books of `plan`; `None` where neither is wanted.
    pub(super) fn start(&self, plan: &Plan, clock: RunClock) -> Result<Option<LoadSpool>, Failure> {
        let slice = plan.slice_s.and_then(|s| Duration::try_from_secs_f64(s).ok());
        let keeping = Keeping {
            slice,
            by_kernel: plan.client.timestamps == Timestamps::Kernel,
            keeper: self.checkpoint.as_ref().map(Checkpoint::keeper),
        };
        let Some(records) = &self.records else {
            if slice.is_none() {
                return Ok(None);
            }
            let files = SpoolFiles { records: Box::new(io::sink()), chunks: None };
            let spool = LoadSpool::keeping(files, keeping, Some(clock)).map_err(Failure::own)?;
            return Ok(Some(spool.without_records()));
        };
        let chunks = self.chunks.as_ref().map(Spool::writer).transpose().map_err(Failure::own)?;
        let files = SpoolFiles {
            records: Box::new(records.writer().map_err(Failure::own)?),
            chunks: chunks.map(|chunks| Box::new(chunks) as Box<dyn std::io::Write + Send>),
        };
        LoadSpool::keeping(files, keeping, Some(clock)).map(Some).map_err(Failure::own)
    }

    /// Says what the run is before its first level begins, for whoever finds it killed.
    pub(super) fn begin(&self, run: &RunFile) -> Result<(), Failure> {
        let Some(checkpoint) = &self.checkpoint else { return Ok(()) };
        checkpoint.begin(run).map_err(|error| Failure::of_write(&error))
    }

    /// Notes a level that is over. What cannot be written any more is said by the thread that writes as well.
    pub(super) fn level_done(&self, result: &LevelResult) {
        if let Some(checkpoint) = &self.checkpoint {
            let _ = checkpoint.level_done(result);
        }
    }

    /// Where records and the times of events lie while the run goes on.
    pub(super) fn parts(&self) -> [Option<PathBuf>; 2] {
        [&self.records, &self.chunks].map(|spool| spool.as_ref().map(|spool| spool.part().to_owned()))
    }

    /// The records of a level that has been run.
    pub(super) fn read(&self, result: &LevelResult) -> Result<Option<Vec<Record>>, ReadError> {
        let (Some(spool), Some(range)) = (&self.records, result.records) else { return Ok(None) };
        if range.count > EXACT_MAX {
            return Ok(None);
        }
        Records::open(spool.part())?.read(range).map(Some)
    }

    /// Removes the files of a run that is not kept.
    pub(super) fn discard(self) {
        for spool in [self.records, self.chunks].into_iter().flatten() {
            // What cannot be removed bears the name of no run.
            let _ = fs::remove_file(spool.part());
        }
    }

    /// Gives the files their names, or removes them; gives what is kept until the run is saved, and why not all has got its name.
    pub(super) fn finish(self, run: &mut RunFile, temporary: bool) -> (Kept, Result<(), Failure>) {
        let kept = Kept(self.checkpoint);
        if temporary {
            for spool in [self.records, self.chunks].into_iter().flatten() {
                // A file in the temporary folder that cannot be removed harms nobody.
                let _ = fs::remove_file(spool.part());
            }
            run.records_absent = Some(RunFile::UNSAVED.to_owned());
            return (kept, Ok(()));
        }
        let (mut records, mut chunks) = (Ok(()), Ok(()));
        match self.records.map(Spool::finish) {
            Some(Ok(file)) => run.records = Some(file),
            Some(Err(error)) => {
                let left = match &error {
                    WriteError::Lost { path, kept, .. } => {
                        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                        format!(", {kept} of them are in {name}")
                    }
                    _ => String::new(),
                };
                run.records_absent = Some(format!("they could not be written whole{left}"));
                records = Err(Failure::of_write(&error));
            }
            None => run.records_absent = Some("given up with --no-records".to_owned()),
        }
        match self.chunks.map(Spool::finish) {
            Some(Ok(file)) => run.chunks = Some(file),
            Some(Err(error)) => chunks = Err(Failure::of_write(&error)),
            None => {}
        }
        (kept, records.and(chunks))
    }
}

/// The checkpoint of a run whose records have their names; it goes when it is dropped.
pub(super) struct Kept(Option<Checkpoint>);

impl Kept {
    /// Leaves it: the run could not be saved.
    pub(super) fn stay(mut self) {
        self.0.iter_mut().for_each(Checkpoint::stay);
    }
}
