//! `<name>.chunks`: the time of every content event, for `--save-chunks`.
//!
//! A header of 16 bytes (magic `TOKLCHNK`, version, bytes per time), then for each record of the record file, in its
//! order, [`Record::events`] times: little-endian `u64`, ns since the run's epoch. It is read along with the records,
//! which say how many times belong to whom.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use super::read::ReadError;
use super::spool::Content;
use crate::metrics::Record;
use crate::time::Stamp;

/// The times of content events, read from the first record's on.
#[derive(Debug)]
pub struct Chunks {
    path: PathBuf,
    input: BufReader<File>,
}

impl Chunks {
    /// Opens a chunk file and checks its header.
    ///
    /// # Errors
    ///
    /// When the file cannot be read or is not a chunk file of version 1.
    pub fn open(path: &Path) -> Result<Chunks, ReadError> {
        let mut file = File::open(path).map_err(|e| ReadError::io(path, e))?;
        Content::Chunks.check(&mut file, path)?;
        Ok(Chunks { path: path.to_owned(), input: BufReader::new(file) })
    }

    /// The times of the next record in the order of the record file, which must be `record`, into `times`.
    ///
    /// # Errors
    ///
    /// When the file ends before.
    pub fn next(&mut self, record: &Record, times: &mut Vec<Stamp>) -> Result<(), ReadError> {
        times.clear();
        let mut bytes = [0; size_of::<u64>()];
        for _ in 0..record.events {
            self.input.read_exact(&mut bytes).map_err(|e| match e.kind() {
                io::ErrorKind::UnexpectedEof => ReadError::ChunksShort { path: self.path.clone() },
                _ => ReadError::io(&self.path, e),
            })?;
            times.push(Stamp::from_nanos(u64::from_le_bytes(bytes)));
        }
        Ok(())
    }
}
