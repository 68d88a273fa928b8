//! Putting a run and its records as lines on disk. What cannot be written is said in the end; what was measured is kept.

use std::io;
use std::path::{Path, PathBuf};

use super::{Files, Session};
use crate::cli::failure::Failure;
use crate::cli::whole_file::{replace, try_out};
use crate::run_file::{Loaded, RunFile, detail};

impl Session {
    /// Writes the run file and what is made of it, unless nothing is to be saved. Returns the place of the run file; why
    /// something is not there goes to `failures`.
    ///
    /// # Errors
    ///
    /// When the run file of a command could not be written: the run is on standard output then, in the place of a table.
    pub(super) fn save(
        &self,
        run: &mut RunFile,
        files: &Files,
        failures: &mut Vec<Failure>,
    ) -> Result<Option<PathBuf>, Failure> {
        if files.temporary {
            return Ok(None);
        }
        let path = files.destination.path();
        if let Err(unwritten) = files.destination.write(run) {
            let failure = Failure::of_write(&unwritten.error);
            if self.library.is_some() {
                // The caller has the run.
                failures.push(failure);
                return Ok(None);
            }
            // What was measured is not given up: the text goes where it can still be kept.
            crate::cli::print(&unwritten.json)?;
            return Err(failure.and("the result is on standard output"));
        }
        if self.output.detailed {
            failures.extend(export_detailed(path).err());
        }
        Ok(Some(path.to_owned()))
    }
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
fn export_detailed(path: &Path) -> Result<(), Failure> {
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
