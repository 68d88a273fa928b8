//! Files that grow while a level runs: records, and the times of content events.
//!
//! Owns the header of such a file and its life: written under a temporary name, renamed when complete. What the
//! items mean is said in `records` and `chunks`. A spool is fed through [`Spool::writer`] by whoever runs the level
//! and finished by whoever made it, so that the writing side needs to know no file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::read::ReadError;
use super::schema::SideFile;
use super::write::{self, WriteError};

/// What a side file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Times of content events: little-endian `u64`, ns since the run's epoch.
    Chunks,
    /// One record per request.
    Records,
}

/// A side file being written. Dropped unfinished it stays under its temporary name if anything was written to it.
#[derive(Debug)]
pub struct Spool {
    content: Content,
    file: File,
    part: PathBuf,
    target: PathBuf,
    force: bool,
    accepted: Arc<AtomicU64>,
    finished: bool,
}

/// The writing end of a [`Spool`]; flushed when dropped.
#[derive(Debug)]
pub struct SpoolWriter {
    out: BufWriter<File>,
    accepted: Arc<AtomicU64>,
}

impl Content {
    const fn magic(self) -> [u8; 8] {
        match self {
            Content::Chunks => *b"TOKLCHNK",
            Content::Records => *b"TOKLRECS",
        }
    }

    /// Size of one item.
    pub(super) const fn item_bytes(self) -> usize {
        match self {
            Content::Chunks => size_of::<u64>(),
            Content::Records => crate::metrics::Record::BYTES,
        }
    }

    /// The header: magic, version, bytes per item (both little-endian `u32`).
    pub(super) fn header(self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(&self.magic());
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[12..].copy_from_slice(&(self.item_bytes() as u32).to_le_bytes());
        header
    }

    /// Reads the header of the file `path` and checks it.
    pub(super) fn check(self, file: &mut File, path: &Path) -> Result<(), ReadError> {
        let mut header = [0; HEADER_BYTES];
        let foreign = |what| ReadError::ForeignSideFile { path: path.to_owned(), what };
        match file.read_exact(&mut header) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(foreign("it has no whole header"));
            }
            other => other.map_err(|e| ReadError::io(path, e))?,
        }
        if header[..8] != self.magic() {
            return Err(foreign("it does not begin as one"));
        }
        let wanted = self.header();
        if header[8..12] != wanted[8..12] {
            return Err(foreign("its version is not 1, the only one that this tokload knows"));
        }
        if header[12..] != wanted[12..] {
            return Err(foreign("its items are of another size"));
        }
        Ok(())
    }
}

impl Spool {
    /// Starts the side file `target`; nothing is at that place before [`Spool::finish`].
    pub(super) fn create(content: Content, target: PathBuf, force: bool) -> Result<Spool, WriteError> {
        write::refuse_existing(&target, force)?;
        let part = write::part_of(&target);
        let cannot = |e| WriteError::io("create", &part, e);
        let mut file = File::create(&part).map_err(cannot)?;
        if let Err(error) = file.write_all(&content.header()) {
            // Half a header helps nobody, and a failure to remove it harms nobody.
            let _ = fs::remove_file(&part);
            return Err(cannot(error));
        }
        let accepted = Arc::new(AtomicU64::new(0));
        Ok(Spool { content, file, part, target, force, accepted, finished: false })
    }

    /// A writing end, to be moved to the thread that writes. Whole items only; one writer at a time.
    ///
    /// # Errors
    ///
    /// When the system has no descriptor left.
    pub fn writer(&self) -> Result<SpoolWriter, WriteError> {
        let file = self.file.try_clone().map_err(|e| WriteError::io("open", &self.part, e))?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(SpoolWriter { out, accepted: Arc::clone(&self.accepted) })
    }

    /// Makes the file durable, gives it its name, and says what is in it. The writer must have been dropped.
    ///
    /// # Errors
    ///
    /// When not everything reached the disk or the name cannot be given; what did reach it stays under the temporary
    /// name, which the error says.
    pub fn finish(mut self) -> Result<SideFile, WriteError> {
        self.finished = true;
        self.file.sync_all().map_err(|e| WriteError::io("write", &self.part, e))?;
        let length = self.file.metadata().map_err(|e| WriteError::io("write", &self.part, e))?.len();
        let accepted = self.accepted.load(Ordering::Acquire);
        let lost_bytes = (HEADER_BYTES as u64 + accepted).saturating_sub(length);
        let item_bytes = self.content.item_bytes() as u64;
        if lost_bytes > 0 {
            let kept = length.saturating_sub(HEADER_BYTES as u64) / item_bytes;
            return Err(WriteError::Lost { path: self.part.clone(), lost_bytes, kept });
        }
        write::rename(&self.part, &self.target, self.force)?;
        Ok(SideFile {
            file: write::file_name(&self.target),
            count: accepted / item_bytes,
            item_bytes: item_bytes as u32,
        })
    }

    /// What to say of a write that failed.
    #[must_use]
    pub fn failed(&self, error: io::Error) -> WriteError {
        WriteError::io("write", &self.part, error)
    }

    /// The name under which it is written until it is finished.
    #[must_use]
    pub fn part(&self) -> &Path {
        &self.part
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if !self.finished && self.accepted.load(Ordering::Acquire) == 0 {
            // Nothing is lost with an empty file, and a failure to remove it harms nobody.
            let _ = fs::remove_file(&self.part);
        }
    }
}

impl Write for SpoolWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.accepted.fetch_add(written as u64, Ordering::Release);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Size of the header.
pub(super) const HEADER_BYTES: usize = 16;
const VERSION: u32 = 1;
const BUFFER_BYTES: usize = 256 * 1024;
