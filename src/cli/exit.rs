//! What the process tells its caller: every exit code, once.

use std::process::{ExitCode, Termination};

/// How the program ended. The numbers are part of the command line's contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// A gate failed: a regression, no level within the SLO, the failure threshold passed, every request failed.
    GateFailed = 1,
    /// Bad arguments, plan or input file.
    BadArguments = 2,
    /// The target could not be reached or was not ready.
    Unreachable = 3,
    /// The measurement is not valid, and `--strict` was given.
    NotValid = 4,
    /// Our own fault: an error that no input should cause.
    OwnFault = 5,
    /// Interrupted by the user, after partial results were written.
    Interrupted = 130,
}

impl Exit {
    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        self.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_the_documented_ones() {
        let all = [
            Exit::Done,
            Exit::GateFailed,
            Exit::BadArguments,
            Exit::Unreachable,
            Exit::NotValid,
            Exit::OwnFault,
            Exit::Interrupted,
        ];
        assert_eq!(all.map(Exit::code), [0, 1, 2, 3, 4, 5, 130]);
    }
}
