//! What is wrong with a plan or with the words that ask for one, and what to do about it.
//!
//! Owns the error type and the search for the name that was meant. The command line uses the same type, so that a
//! mistake reads alike wherever it was made.

use std::fmt;

/// A plan or an argument that cannot be run.
///
/// Shown as one line: `--request-rate: '5x' is not a rate; give requests per second, as in 2.5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The option (`--request-rate`), or the place in a file (``line 3, `levels.load.users` ``).
    pub subject: String,
    /// What is wrong with it.
    pub wrong: String,
    /// What to do instead.
    pub remedy: String,
}

impl Error {
    /// An error about `subject`. `wrong` and `remedy` are lower-case and without a full stop.
    pub fn new(subject: impl Into<String>, wrong: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error { subject: subject.into(), wrong: wrong.into(), remedy: remedy.into() }
    }

    /// The same error found in the file `name`.
    #[must_use]
    pub fn in_file(mut self, name: &str) -> Error {
        self.subject = format!("{name}, {}", self.subject);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.subject, self.wrong, self.remedy)
    }
}

impl std::error::Error for Error {}

/// The candidate that `word` was most likely meant to be; `None` if none is near.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|name| (strsim::jaro_winkler(word, name), name))
        .filter(|&(likeness, _)| likeness >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// Likeness (Jaro-Winkler, 0 to 1) from which a name is worth proposing: a swap, a slip or a lost letter stays above
/// it even in a word of three, another word of the same length does not.
const NEAR: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let names = ["users", "cap", "arrivals", "think_s"];
        assert_eq!(nearest("user", names), Some("users"));
        assert_eq!(nearest("arivals", names), Some("arrivals"));
        assert_eq!(nearest("think", names), Some("think_s"));
        assert_eq!(nearest("rum", ["quick", "run"]), Some("run"));
        assert_eq!(nearest("temperature", names), None);
    }
}
