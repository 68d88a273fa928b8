//! Why a command ends early: a sentence and an exit code.

use std::fmt;

use crate::cli::exit::Exit;
use crate::engine;
use crate::load::probe::ProbeError;

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

    /// A probe of `url` failed.
    pub(super) fn of_probe(url: &str, error: &ProbeError) -> Failure {
        match error {
            ProbeError::NotReady(_) => Failure::unreachable(format!("{url}: {error}")),
            ProbeError::Refused(_) => Failure::bad(format!("{url}: {error}")),
        }
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
