//! The side files of a run while it runs.

use std::fs;

use crate::cli::failure::Failure;
use crate::load::{Spool as LoadSpool, SpoolFiles};
use crate::metrics::Record;
use crate::plan::Plan;
use crate::run::LevelResult;
use crate::run_file::{Destination, ReadError, Records, RunFile, Spool};

/// The side files of a run while it runs.
pub(super) struct Spools {
    records: Option<Spool>,
    pub(super) chunks: Option<Spool>,
}

impl Spools {
    pub(super) fn open(plan: &Plan, destination: &Destination) -> Result<Spools, Failure> {
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
        Ok(Spools { records, chunks: chunks.filter(|_| plan.keep.records) })
    }

    pub(super) fn start(&self) -> Result<Option<LoadSpool>, Failure> {
        let Some(records) = &self.records else { return Ok(None) };
        let chunks = self.chunks.as_ref().map(Spool::writer).transpose().map_err(Failure::own)?;
        let files = SpoolFiles {
            records: Box::new(records.writer().map_err(Failure::own)?),
            chunks: chunks.map(|chunks| Box::new(chunks) as Box<dyn std::io::Write + Send>),
        };
        LoadSpool::start(files).map(Some).map_err(Failure::own)
    }

    /// The records of a level that has been run.
    pub(super) fn read(&self, result: &LevelResult) -> Result<Option<Vec<Record>>, ReadError> {
        let (Some(spool), Some(range)) = (&self.records, result.records) else { return Ok(None) };
        let records = Records::open(spool.part())?.range(range)?.collect::<Result<Vec<_>, _>>()?;
        Ok(Some(records))
    }

    /// Gives the files their names, or removes them.
    pub(super) fn finish(self, run: &mut RunFile, temporary: bool) -> Result<(), Failure> {
        if temporary {
            for spool in [self.records, self.chunks].into_iter().flatten() {
                // A file in the temporary folder that cannot be removed harms nobody.
                let _ = fs::remove_file(spool.part());
            }
            run.records_absent = Some(RunFile::UNSAVED.to_owned());
            return Ok(());
        }
        let (mut records, mut chunks) = (Ok(()), Ok(()));
        match self.records.map(Spool::finish) {
            Some(Ok(file)) => run.records = Some(file),
            Some(Err(error)) => {
                run.records_absent = Some("they could not be written whole".to_owned());
                records = Err(Failure::of_write(&error));
            }
            None => run.records_absent = Some("given up with --no-records".to_owned()),
        }
        match self.chunks.map(Spool::finish) {
            Some(Ok(file)) => run.chunks = Some(file),
            Some(Err(error)) => chunks = Err(Failure::of_write(&error)),
            None => {}
        }
        records.and(chunks)
    }
}
