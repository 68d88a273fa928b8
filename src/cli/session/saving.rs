//! Putting a run and its records as lines on disk. What cannot be written is said in the end; what was measured is kept.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::{Files, Session};
use crate::cli::failure::Failure;
use crate::cli::whole_file::{replace, try_out};
use crate::run_file::{Loaded, RunFile, detail};

/// A run file that could not be written where it should be.
pub(super) struct Unsaved {
    /// Its text, unless it has found another place.
    pub(super) text: Option<String>,
}

impl Session {
    /// Writes the run file and what is made of it, unless nothing is to be saved. Returns the place of the run file; why
    /// something is not there goes to `failures`.
    ///
    /// # Errors
    ///
    /// When the run file could not be written. That of a command lies in the folder for temporary files then, or its text is
    /// to be printed; the caller of a library has the run.
    pub(super) fn save(
        &self,
        run: &mut RunFile,
        files: &Files,
        failures: &mut Vec<Failure>,
    ) -> Result<Option<PathBuf>, Unsaved> {
        if files.temporary {
            return Ok(None);
        }
        let path = files.destination.path();
        if let Err(unwritten) = files.destination.write(run) {
            let failure = Failure::of_write(&unwritten.error);
            if self.library.is_some() {
                failures.push(failure);
                return Err(Unsaved { text: None });
            }
            let report = format!("tokload report {} tells what its checkpoint has", path.display());
            let elsewhere = keep_elsewhere(path, &std::env::temp_dir(), &unwritten.json);
            let (place, text) = match elsewhere {
                Ok(place) => (format!("the result is in {}", place.display()), None),
                Err(_) => ("the result follows on standard output, as JSON".to_owned(), Some(unwritten.json)),
            };
            failures.push(failure.and(place).and(report));
            failures.extend(self.unmade(path));
            return Err(Unsaved { text });
        }
        if self.output.detailed {
            failures.extend(export_detailed(run, path).err());
        }
        Ok(Some(path.to_owned()))
    }

    /// What is missing as well where the run file is.
    fn unmade(&self, path: &Path) -> Option<Failure> {
        let lines = self.output.detailed.then(|| detailed_beside(path));
        let exports = self.output.exports.iter().map(|export| export.path().to_owned());
        let names: Vec<String> =
            lines.into_iter().chain(exports).map(|path| path.display().to_string()).collect();
        (!names.is_empty()).then(|| {
            let verb = if names.len() == 1 { "is" } else { "are" };
            Failure::own(format!(
                "{} {verb} not written: made of the saved run, which is not there",
                names.join(", ")
            ))
        })
    }
}

/// Writes the text of a run file whose place is `path` into `folder`, to where nothing is, for this user alone: who has set a
/// folder for results has thought of who may read them.
fn keep_elsewhere(path: &Path, folder: &Path, text: &str) -> io::Result<PathBuf> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let place = folder.join(format!("{stem}.{}.json", std::process::id()));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&place)?;
    // A full disk may show only when it is to be made durable.
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    written.map(|()| place.clone()).inspect_err(|_| {
        // Half of it helps nobody.
        let _ = fs::remove_file(&place);
    })
}

/// Refuses `--save-detailed` beside the run file `path` where its file is there already, unless `force`, or cannot be.
pub(super) fn check_detailed(path: &Path, force: bool) -> Result<(), Failure> {
    let lines = detailed_beside(path);
    if lines.exists() && !force {
        return Err(Failure::bad(format!(
            "{} is there already: name another --output-file, or overwrite it with --force",
            lines.display()
        )));
    }
    try_out(&lines)
}

/// `<name>.jsonl` beside the run file.
fn detailed_beside(path: &Path) -> PathBuf {
    path.with_extension("jsonl")
}

/// Writes it, whole or not at all: lines that end somewhere would look like fewer requests.
fn export_detailed(run: &RunFile, path: &Path) -> Result<(), Failure> {
    if run.records.is_none() {
        let why = run.records_absent.as_deref().unwrap_or_default();
        let lines = detailed_beside(path);
        return Err(Failure::own(format!(
            "{} is not written: it is made of the records; {why}",
            lines.display()
        )));
    }
    let kept = format!("{} and the .records beside it have all that was measured", path.display());
    let run = Loaded::open(path).map_err(|error| Failure::own(error).and(&kept))?;
    let lines = |out: &mut io::BufWriter<std::fs::File>| {
        run.export_detailed(out).map_err(|error| match error {
            detail::Error::Write(error) => error,
            detail::Error::Read(error) => io::Error::other(error),
        })
    };
    replace(&detailed_beside(path), lines).map_err(|failure| failure.and(kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_without_a_place_is_kept_elsewhere_over_nothing_and_for_its_user_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let keep = || keep_elsewhere(Path::new("/full/run.json"), folder.path(), "all of it");
        let place = keep().unwrap();
        assert_eq!(place, folder.path().join(format!("run.{}.json", std::process::id())));
        assert_eq!(fs::read_to_string(&place).unwrap(), "all of it");
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(keep().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(keep_elsewhere(Path::new("run.json"), &folder.path().join("none"), "").is_err());
    }
}
