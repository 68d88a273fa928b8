//! Why a command ends early: a sentence and an exit code.

use std::path::Path;
use std::{fmt, io};

use crate::cli::exit::Exit;
use crate::engine;
use crate::load::probe::ProbeError;
use crate::run_file::WriteError;

/// A sentence for the user, and how the process ends.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) exit: Exit,
    sentence: String,
}

impl Failure {
    /// Arguments, plan or input file are wrong.
    pub(super) fn bad(what: impl fmt::Display) -> Failure {
        Failure { exit: Exit::BadArguments, sentence: what.to_string() }
    }

    /// The target cannot be reached or is not ready.
    pub(super) fn unreachable(what: impl fmt::Display) -> Failure {
        Failure { exit: Exit::Unreachable, sentence: what.to_string() }
    }

    /// Our own fault, or this machine's.
    pub(super) fn own(what: impl fmt::Display) -> Failure {
        Failure { exit: Exit::OwnFault, sentence: what.to_string() }
    }

    /// The user has ended it before anything was measured.
    pub(super) fn interrupted(what: impl fmt::Display) -> Failure {
        Failure { exit: Exit::Interrupted, sentence: what.to_string() }
    }

    /// The user has ended a run before its first request.
    pub(super) fn unmeasured() -> Failure {
        Failure::interrupted(
            "ended by the user before the first request: nothing was measured, and nothing is saved",
        )
    }

    /// A file or folder of the user's choice cannot be written: another place cures that, unless the disk is full or broken.
    pub(super) fn unwritable(path: &Path, error: &io::Error) -> Failure {
        Failure { exit: exit_of(error), sentence: format!("{}: {error}", path.display()) }
    }

    /// A file of a run cannot be written.
    pub(super) fn of_write(error: &WriteError) -> Failure {
        let exit = match error {
            WriteError::Io { source, .. } => exit_of(source),
            WriteError::Exists { .. } | WriteError::NotAFile { .. } | WriteError::Unnamed { .. } => {
                Exit::BadArguments
            }
            WriteError::Lost { .. } => Exit::OwnFault,
        };
        Failure { exit, sentence: error.to_string() }
    }

    /// The same with more words behind it.
    pub(super) fn and(mut self, more: impl fmt::Display) -> Failure {
        self.sentence += &format!("; {more}");
        self
    }

    /// A probe of `url` failed.
    pub(super) fn of_probe(url: &str, error: &ProbeError) -> Failure {
        match error {
            ProbeError::NotReady(_) => Failure::unreachable(format!("{url}: {error}")),
            ProbeError::Refused(_) => Failure::bad(format!("{url}: {error}")),
        }
    }
}

/// Whether the place is wrong that an error of writing stems from, or the machine.
fn exit_of(error: &io::Error) -> Exit {
    match error.kind() {
        io::ErrorKind::AlreadyExists
        | io::ErrorKind::DirectoryNotEmpty
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem => Exit::BadArguments,
        _ => Exit::OwnFault,
    }
}

impl From<engine::Error> for Failure {
    fn from(error: engine::Error) -> Failure {
        match error {
            engine::Error::Refused(_) => Failure::bad(error),
            engine::Error::Machine { .. } | engine::Error::ShardLost { .. } => Failure::own(error),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
