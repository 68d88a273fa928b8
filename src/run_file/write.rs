//! Putting a run on disk: names, no overwriting, all or nothing.
//!
//! A file is written under a temporary name in the directory of its target and renamed when it is complete. Whatever
//! fails, the measured numbers are handed back: [`Unwritten`] carries them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{error, fmt};

use super::layout;
use super::schema::RunFile;
use super::spool::{Content, Spool};
use super::wall::WallTime;

/// Where a run goes: the run file, and beside it its records and chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    path: PathBuf,
    force: bool,
}

/// Why a file could not be written.
#[derive(Debug)]
pub enum WriteError {
    /// There is such a file already and overwriting was not asked for.
    Exists {
        /// Its place.
        path: PathBuf,
    },
    /// The system refused.
    Io {
        /// The verb: "create", "write", "rename".
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A spooled file is shorter than what was written to it; what there is stays under its temporary name.
    Lost {
        /// The temporary name.
        path: PathBuf,
        /// Bytes that are missing.
        lost_bytes: u64,
        /// Whole items that are there.
        kept: u64,
    },
    /// At that place is something that is not a file.
    NotAFile {
        /// The place.
        path: PathBuf,
    },
    /// The path names no file: it is empty, or ends in a directory.
    Unnamed {
        /// The path.
        path: PathBuf,
    },
}

/// A run that could not be written, with its whole text.
#[derive(Debug)]
pub struct Unwritten {
    /// Why.
    pub error: WriteError,
    /// What would have stood in the run file.
    pub json: String,
}

impl Destination {
    /// The run file `path`, checked before anything is measured: free (or `force`), in a directory that can be
    /// written to.
    ///
    /// # Errors
    ///
    /// When the path names no file, a file of the run is there already and `force` is off, or the directory refuses.
    pub fn at(path: PathBuf, force: bool) -> Result<Destination, WriteError> {
        if !names_a_file(&path) {
            return Err(WriteError::Unnamed { path });
        }
        let destination = Destination { path, force };
        for place in
            [&destination.path, &destination.beside(Content::Records), &destination.beside(Content::Chunks)]
        {
            refuse_existing(place, force)?;
        }
        destination.try_out()?;
        Ok(destination)
    }

    /// `tokload-<time><suffix>.json` in `directory`, with a number before the suffix if that second has a run already.
    ///
    /// # Errors
    ///
    /// When the directory refuses.
    pub fn named_after(time: WallTime, suffix: &str, directory: &Path) -> Result<Destination, WriteError> {
        let stem = format!("tokload-{}", time.compact());
        let mut number = 1;
        loop {
            let name = match number {
                1 => format!("{stem}{suffix}.json"),
                _ => format!("{stem}-{number}{suffix}.json"),
            };
            match Destination::at(directory.join(name), false) {
                Err(WriteError::Exists { .. } | WriteError::NotAFile { .. }) if number < NUMBER_MAX => {
                    number += 1
                }
                other => return other,
            }
        }
    }

    /// The run file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the record file.
    ///
    /// # Errors
    ///
    /// When it cannot be created.
    pub fn records(&self) -> Result<Spool, WriteError> {
        Spool::create(Content::Records, self.beside(Content::Records), self.force)
    }

    /// Starts the file of event times.
    ///
    /// # Errors
    ///
    /// When it cannot be created.
    pub fn chunks(&self) -> Result<Spool, WriteError> {
        Spool::create(Content::Chunks, self.beside(Content::Chunks), self.force)
    }

    /// Writes the run file.
    ///
    /// # Errors
    ///
    /// When the disk is full, the directory refuses, or the name was taken meanwhile; the text comes back.
    pub fn write(&self, run: &RunFile) -> Result<(), Unwritten> {
        let json = to_json(run);
        let part = part_of(&self.path);
        let written = put(&part, &json).and_then(|()| rename(&part, &self.path, self.force));
        written.map_err(|error| {
            // Half a file helps nobody; the whole text goes to the caller.
            let _ = fs::remove_file(&part);
            Unwritten { error, json }
        })
    }

    /// The side file of this run: `<name>.records` for `<name>.json`.
    pub(super) fn beside(&self, content: Content) -> PathBuf {
        beside(&self.path, content)
    }

    /// Creates and removes a file, the only honest test of a directory.
    fn try_out(&self) -> Result<(), WriteError> {
        let part = part_of(&self.path);
        let tried = File::create(&part).and_then(|_| fs::remove_file(&part));
        tried.map_err(|e| WriteError::io("create", &self.path, e))
    }
}

/// The text of a run file: JSON with a line feed at its end.
#[must_use]
pub fn to_json(run: &RunFile) -> String {
    layout::to_string(run).expect("all keys of a run file are text")
}

/// The side file of the run file `run`: `.json` goes, `.records` or `.chunks` comes.
pub(super) fn beside(run: &Path, content: Content) -> PathBuf {
    beside_as(
        run,
        match content {
            Content::Chunks => "chunks",
            Content::Records => "records",
        },
    )
}

/// The file beside the run file `run` with this extension in the place of `.json`.
pub(super) fn beside_as(run: &Path, extension: &str) -> PathBuf {
    if run.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) {
        return run.with_extension(extension);
    }
    let mut name = run.as_os_str().to_owned();
    name.push(".");
    name.push(extension);
    PathBuf::from(name)
}

/// The temporary name of `target`, in the same directory: a rename must not cross file systems.
pub(super) fn part_of(target: &Path) -> PathBuf {
    let mut name = target.file_name().map_or_else(OsString::new, OsString::from);
    name.push(format!(".{}.part", std::process::id()));
    target.with_file_name(name)
}

/// Whether a file could be at `path`: after `/`, `/.` or nothing there is none.
fn names_a_file(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    path.file_name().is_some() && !bytes.ends_with(b"/") && !bytes.ends_with(b"/.")
}

/// The name of `path` without its directory.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// Refuses a place that is taken. Devices, directories and links are refused even under force: renaming over
/// `/dev/null`, or over `/dev/stdout` (a link, to a regular file if output is redirected), would replace it.
pub(super) fn refuse_existing(path: &Path, force: bool) -> Result<(), WriteError> {
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(WriteError::io("create", path, e)),
        Ok(there) if !there.is_file() => Err(WriteError::NotAFile { path: path.to_owned() }),
        Ok(_) if force => Ok(()),
        Ok(_) => Err(WriteError::Exists { path: path.to_owned() }),
    }
}

/// Writes `bytes` to a file that only then takes the place of `target`.
pub(super) fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = target.as_os_str().to_owned();
    name.push("~");
    let new = PathBuf::from(name);
    let replaced = fs::write(&new, bytes).and_then(|()| fs::rename(&new, target));
    replaced.inspect_err(|_| {
        // Half of it helps nobody, and takes room that a full disk does not have.
        let _ = fs::remove_file(&new);
    })
}

/// Gives `part` its name. Without `force` a file that appeared meanwhile is not overwritten.
pub(super) fn rename(part: &Path, target: &Path, force: bool) -> Result<(), WriteError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;

    if !force {
        match renameat_with(CWD, part, CWD, target, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => return Err(WriteError::Exists { path: target.to_owned() }),
            // Network file systems do not know the flag: look first, then rename.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => refuse_existing(target, false)?,
            Err(e) => return Err(WriteError::io("rename", part, e.into())),
        }
    }
    fs::rename(part, target).map_err(|e| WriteError::io("rename", part, e))
}

fn put(part: &Path, json: &str) -> Result<(), WriteError> {
    let write = || {
        let mut file = File::create(part)?;
        file.write_all(json.as_bytes())?;
        // A full disk may show only here.
        file.sync_all()
    };
    write().map_err(|e| WriteError::io("write", part, e))
}

impl WriteError {
    pub(super) fn io(doing: &'static str, path: &Path, source: io::Error) -> WriteError {
        WriteError::Io { doing, path: path.to_owned(), source }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Exists { path } => {
                write!(
                    f,
                    "{} is there already: name another --output-file, or overwrite it with --force",
                    path.display()
                )
            }
            WriteError::Io { doing, path, source } => {
                write!(f, "cannot {doing} {}: {source}", path.display())?;
                match source.kind() {
                    io::ErrorKind::NotFound => f.write_str("; its directory must exist"),
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                        f.write_str("; make room or choose another disk with --output-file")
                    }
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                        f.write_str("; choose a directory that you may write to with --output-file")
                    }
                    _ => Ok(()),
                }
            }
            WriteError::Lost { path, lost_bytes, .. } => {
                write!(
                    f,
                    "{lost_bytes} bytes did not reach {}: is the disk full? what did is kept there",
                    path.display()
                )
            }
            WriteError::NotAFile { path } => {
                write!(f, "{} is not a regular file: name another --output-file", path.display())
            }
            WriteError::Unnamed { path } => {
                write!(f, "--output-file '{}' names no file: give one, as in run.json", path.display())
            }
        }
    }
}

impl error::Error for WriteError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            WriteError::Io { source, .. } => Some(source),
            WriteError::Exists { .. }
            | WriteError::Lost { .. }
            | WriteError::NotAFile { .. }
            | WriteError::Unnamed { .. } => None,
        }
    }
}

/// Runs of one second that get a number; more in one directory is a mistake somewhere.
const NUMBER_MAX: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn side_files_take_the_name_of_the_run() {
        let records = |name: &str| beside(Path::new(name), Content::Records);
        assert_eq!(records("a/run.json"), Path::new("a/run.records"));
        assert_eq!(records("a/run.v2"), Path::new("a/run.v2.records"));
        assert_eq!(records("run"), Path::new("run.records"));
        assert_eq!(beside(Path::new("r.JSON"), Content::Chunks), Path::new("r.chunks"));
    }

    #[test]
    fn a_second_run_of_the_same_second_gets_a_number() {
        let directory = tempfile::tempdir().unwrap();
        let time = WallTime::from_unix_nanos(0);
        let name = || {
            let free = Destination::named_after(time, "", directory.path()).unwrap();
            fs::write(free.path(), "").unwrap();
            file_name(free.path())
        };
        assert_eq!(name(), "tokload-19700101T000000Z.json");
        assert_eq!(name(), "tokload-19700101T000000Z-2.json");
        assert_eq!(name(), "tokload-19700101T000000Z-3.json");
    }

    #[test]
    fn taken_places_are_refused_before_anything_is_measured() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("run.json");
        fs::write(directory.path().join("run.records"), "kept").unwrap();
        let error = Destination::at(run.clone(), false).unwrap_err();
        assert!(matches!(&error, WriteError::Exists { path } if path.ends_with("run.records")));
        assert!(Destination::at(run, true).is_ok());
        assert!(matches!(
            Destination::at(directory.path().to_owned(), true),
            Err(WriteError::NotAFile { .. })
        ));
        let missing = Destination::at(directory.path().join("no/run.json"), false).unwrap_err();
        assert!(missing.to_string().ends_with("; its directory must exist"), "{missing}");
    }

    #[test]
    fn a_path_without_a_name_is_refused_before_anything_is_measured() {
        let directory = tempfile::tempdir().unwrap();
        for path in ["", ".", "..", "/", "new/", "new/."] {
            // Whether the directory is there or not does not matter.
            for place in [PathBuf::from(path), directory.path().join(path)] {
                if place.file_name().is_some() && !path.starts_with("new") {
                    continue;
                }
                let error = Destination::at(place, true).unwrap_err();
                assert!(matches!(error, WriteError::Unnamed { .. }), "{path}: {error}");
            }
        }
        let empty = Destination::at(PathBuf::new(), false).unwrap_err().to_string();
        assert_eq!(empty, "--output-file '' names no file: give one, as in run.json");
    }

    #[test]
    fn a_link_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link.json"));
        fs::write(&file, "kept").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(matches!(Destination::at(link, true), Err(WriteError::NotAFile { .. })));
        let dangling = directory.path().join("dangling.json");
        std::os::unix::fs::symlink(directory.path().join("nothing"), &dangling).unwrap();
        assert!(matches!(Destination::at(dangling, false), Err(WriteError::NotAFile { .. })));
    }

    #[test]
    fn a_file_that_appeared_meanwhile_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let (part, target) = (directory.path().join("part"), directory.path().join("target"));
        fs::write(&part, "new").unwrap();
        fs::write(&target, "old").unwrap();
        assert!(matches!(rename(&part, &target, false), Err(WriteError::Exists { .. })));
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        rename(&part, &target, true).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }
}
