//! The records of all shares in one file, moved to one time line, and the times of their events beside them.

use std::fs;
use std::io::Write as _;

use super::level::Parts;
use super::place::Placed;
use super::{Member, MergeError};
use crate::metrics::Record;
use crate::run::RecordRange;
use crate::run_file::chunks::Chunks;
use crate::run_file::read::ReadError;
use crate::run_file::records::Records;
use crate::run_file::schema::RunFile;
use crate::run_file::spool::{Spool, SpoolWriter};
use crate::run_file::write::{Destination, WriteError};
use crate::time::Stamp;

/// The side files of a merged run while they are written.
#[derive(Debug)]
pub(super) struct Copies {
    /// Where records go, and from where; `None` if some share kept none.
    records: Option<Copy<Records>>,
    /// The same of event times.
    chunks: Option<Copy<Chunks>>,
    absent: Option<String>,
    copied: u64,
}

/// One file, made of those of all shares in their order.
#[derive(Debug)]
struct Copy<S> {
    into: Spool,
    writer: Option<SpoolWriter>,
    from: Vec<S>,
}

impl Copies {
    /// Opens the record files, and those of event times where all shares have them.
    pub(super) fn open(members: &[Member], into: &Destination) -> Result<Copies, MergeError> {
        if let Some(without) = members.iter().find(|member| member.loaded.run.records.is_none()) {
            let alike = super::common(members, |run| &run.records_absent).flatten();
            let absent = alike.or_else(|| Some(format!("share {} kept none", without.share.index)));
            return Ok(Copies { records: None, chunks: None, absent, copied: 0 });
        }
        let records = members.iter().map(|member| {
            member.loaded.records().map_err(|error| match error {
                ReadError::NoRecords { path } => MergeError::NoRecords { path },
                other => MergeError::Read(other),
            })
        });
        let from = records.collect::<Result<Vec<_>, _>>()?;
        let chunks =
            members.iter().map(|member| member.loaded.chunks()).collect::<Result<Option<Vec<_>>, _>>();
        let chunks = chunks.map_err(MergeError::Read)?;
        let records = Copy::new(into.records(), from)?;
        let chunks = chunks.map(|from| Copy::new(into.chunks(), from)).transpose()?;
        Ok(Copies { records: Some(records), chunks, absent: None, copied: 0 })
    }

    pub(super) fn are_kept(&self) -> bool {
        self.records.is_some()
    }

    /// Copies the records of a level, and gives them back.
    pub(super) fn level(
        &mut self,
        parts: &Parts<'_>,
        placed: &Placed,
    ) -> Result<Option<(RecordRange, Vec<Record>)>, MergeError> {
        let Some(copy) = &mut self.records else { return Ok(None) };
        let first = self.copied;
        let mut all = Vec::new();
        let names = super::level::replicas(parts);
        for (place, part) in parts.all.iter().enumerate() {
            let no_records = || MergeError::NoRecords { path: part.member.path.clone() };
            let range = part.block.records.ok_or_else(no_records)?;
            let to = placed.start_of(place);
            for record in copy.from[place].range(range.into()).map_err(MergeError::Read)? {
                let record = record.map_err(MergeError::Read)?;
                // Each process has numbered the replicas as it met them.
                let name = record.replica.and_then(|replica| part.block.replicas.get(usize::from(replica)));
                let place_of = |name: &String| names.iter().position(|one| one == name);
                let replica = name.and_then(place_of).and_then(|place| u16::try_from(place).ok());
                let moved = Record { replica, ..record.moved(part.t0(), to) };
                copy.write(&moved.encode())?;
                if let Some(chunks) = &mut self.chunks {
                    chunks.events(place, &record, (part.t0(), to))?;
                }
                // As it will be read from the file: what no field can hold is cut off there.
                all.push(moved);
                self.copied += 1;
            }
        }
        Ok(Some((RecordRange { first, count: self.copied - first }, all)))
    }

    /// Gives the files their names and says what is in them.
    pub(super) fn finish(&mut self, mut run: RunFile) -> Result<RunFile, MergeError> {
        run.records_absent = self.absent.take();
        if let Some(copy) = self.records.take() {
            run.records = Some(copy.finish()?);
        }
        if let Some(copy) = self.chunks.take() {
            run.chunks = Some(copy.finish()?);
        }
        Ok(run)
    }

    /// Removes what was written: everything is still where it came from.
    pub(super) fn discard(self) {
        let parts = [self.records.map(|copy| copy.into), self.chunks.map(|copy| copy.into)];
        for spool in parts.into_iter().flatten() {
            // A failure to remove it harms nobody.
            let _ = fs::remove_file(spool.part());
        }
    }
}

impl<S> Copy<S> {
    fn new(into: Result<Spool, WriteError>, from: Vec<S>) -> Result<Copy<S>, MergeError> {
        let into = into.map_err(MergeError::Write)?;
        let writer = Some(into.writer().map_err(MergeError::Write)?);
        Ok(Copy { into, writer, from })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), MergeError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let written = writer.write_all(bytes);
        written.map_err(|error| MergeError::Write(self.into.failed(error)))
    }

    fn finish(mut self) -> Result<crate::run_file::schema::SideFile, MergeError> {
        if let Some(mut writer) = self.writer.take() {
            let flushed = writer.flush();
            flushed.map_err(|error| MergeError::Write(self.into.failed(error)))?;
        }
        self.into.finish().map_err(MergeError::Write)
    }
}

impl Copy<Chunks> {
    /// Copies the event times of the next record of part `place`, moved as the record is.
    fn events(
        &mut self,
        place: usize,
        record: &Record,
        (from, to): (Stamp, Stamp),
    ) -> Result<(), MergeError> {
        let mut times = Vec::new();
        self.from[place].next(record, &mut times).map_err(MergeError::Read)?;
        for at in times {
            self.write(&at.moved(from, to).as_nanos().to_le_bytes())?;
        }
        Ok(())
    }
}
