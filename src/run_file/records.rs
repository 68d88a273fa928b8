//! `<name>.records`: one binary record per request, in the order in which the shards handed them over.
//!
//! A header of 16 bytes (magic `TOKLRECS`, version, bytes per record), then records of [`Record::BYTES`] bytes. The
//! layout of a record is `metrics::record`'s. Read as a stream: a file of millions of requests is never in memory.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::read::ReadError;
use super::spool::{Content, HEADER_BYTES};
use crate::metrics::Record;
use crate::run::RecordRange;

/// A record file, open for reading.
#[derive(Debug)]
pub struct Records {
    path: PathBuf,
    count: u64,
    torn_bytes: u64,
}

/// The records of a range, one after another.
#[derive(Debug)]
pub struct RecordIter {
    path: PathBuf,
    input: BufReader<File>,
    next: u64,
    end: u64,
}

impl Records {
    /// Opens a record file and checks its header.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not a record file of version 1.
    pub fn open(path: &Path) -> Result<Records, ReadError> {
        let mut file = File::open(path).map_err(|e| ReadError::io(path, e))?;
        Content::Records.check(&mut file, path)?;
        let length = file.metadata().map_err(|e| ReadError::io(path, e))?.len();
        let body = length.saturating_sub(HEADER_BYTES as u64);
        let item = Record::BYTES as u64;
        Ok(Records { path: path.to_owned(), count: body / item, torn_bytes: body % item })
    }

    /// Number of whole records.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of a last record that was cut off, as after a crash; 0 normally. It is left out of every range.
    #[must_use]
    pub fn torn_bytes(&self) -> u64 {
        self.torn_bytes
    }

    /// The whole file as a range.
    #[must_use]
    pub fn all(&self) -> RecordRange {
        RecordRange { first: 0, count: self.count }
    }

    /// The records of `range`, all together.
    ///
    /// # Errors
    ///
    /// When the file has fewer records, cannot be read, or holds one that is damaged.
    pub fn read(&self, range: RecordRange) -> Result<Vec<Record>, ReadError> {
        let RecordIter { path, mut input, mut next, end } = self.range(range)?;
        // No more than the file has, as is known by now.
        let mut all = Vec::with_capacity(usize::try_from(range.count).unwrap_or(0));
        let mut block = vec![0; BUFFER_BYTES];
        while next < end {
            let left = usize::try_from(end - next).unwrap_or(usize::MAX);
            let bytes = &mut block[..left.saturating_mul(Record::BYTES).min(BUFFER_BYTES)];
            input.read_exact(bytes).map_err(|e| ReadError::io(&path, e))?;
            for bytes in bytes.as_chunks().0 {
                let bad = || ReadError::BadRecord { path: path.clone(), number: next };
                all.push(Record::decode(bytes).ok_or_else(bad)?);
                next += 1;
            }
        }
        Ok(all)
    }

    /// The records of `range`.
    ///
    /// # Errors
    ///
    /// When the file has fewer records, or cannot be read.
    pub fn range(&self, range: RecordRange) -> Result<RecordIter, ReadError> {
        let end = range.first.saturating_add(range.count);
        if end > self.count {
            return Err(ReadError::RecordsShort { path: self.path.clone(), wanted: end, have: self.count });
        }
        let mut file = File::open(&self.path).map_err(|e| ReadError::io(&self.path, e))?;
        let at = HEADER_BYTES as u64 + range.first * Record::BYTES as u64;
        file.seek(SeekFrom::Start(at)).map_err(|e| ReadError::io(&self.path, e))?;
        let input = BufReader::with_capacity(BUFFER_BYTES, file);
        Ok(RecordIter { path: self.path.clone(), input, next: range.first, end })
    }
}

impl Iterator for RecordIter {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        let number = self.next;
        self.next += 1;
        let mut bytes = [0; Record::BYTES];
        let read = self.input.read_exact(&mut bytes).map_err(|e| ReadError::io(&self.path, e));
        let record = read.and_then(|()| {
            Record::decode(&bytes).ok_or_else(|| ReadError::BadRecord { path: self.path.clone(), number })
        });
        if record.is_err() {
            self.next = self.end;
        }
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.end - self.next).unwrap_or(usize::MAX);
        (0, Some(left))
    }
}

const BUFFER_BYTES: usize = 512 * Record::BYTES;
