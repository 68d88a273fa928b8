//! The start of a level, where it is not this process's alone to decide.
//!
//! The coordinator says which level is ready and looks for its start; whoever agrees with other processes, on a thread of
//! its own, sees what is waited for and sets it. Neither waits for the other here.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::time::Stamp;

/// What is agreed on between the coordinator and whoever knows the starts.
#[derive(Default)]
pub struct Agreed {
    state: Mutex<State>,
    known: Option<Box<Known>>,
}

/// The start of a level that is ready now, where no other process has to be asked.
type Known = dyn Fn(usize) -> Start + Send + Sync;

/// A start that was agreed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The first planned send.
    pub at: Stamp,
    /// What the user should know about it.
    pub note: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    waited_for: Option<usize>,
    start: Option<Start>,
}

impl Agreed {
    /// Starts that are known as soon as a level is ready: `known` gives that of each.
    pub fn known(known: impl Fn(usize) -> Start + Send + Sync + 'static) -> Agreed {
        Agreed { known: Some(Box::new(known)), ..Agreed::default() }
    }

    /// The level at place `ordinal` is ready to start. Only one is at any time.
    pub fn ready(&self, ordinal: usize) {
        let start = self.known.as_ref().map(|known| known(ordinal));
        *self.state() = State { waited_for: Some(ordinal), start };
    }

    /// Takes the start of the level that is ready, once it is known.
    pub fn take(&self) -> Option<Start> {
        let mut state = self.state();
        let start = state.start.take()?;
        state.waited_for = None;
        Some(start)
    }

    /// The level that is ready and has no start yet.
    #[must_use]
    pub fn waited_for(&self) -> Option<usize> {
        let state = self.state();
        state.waited_for.filter(|_| state.start.is_none())
    }

    /// Sets the start of level `ordinal`, if it is that which is waited for.
    pub fn set(&self, ordinal: usize, start: Start) {
        let mut state = self.state();
        if state.waited_for == Some(ordinal) {
            state.start = Some(start);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Agreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agreed").field("state", &self.state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_that_is_known_is_there_at_once() {
        let agreed =
            Agreed::known(|ordinal| Start { at: Stamp::from_millis(ordinal as u64 + 5), note: None });
        assert_eq!(agreed.take(), None);
        agreed.ready(2);
        assert_eq!(agreed.take(), Some(Start { at: Stamp::from_millis(7), note: None }));
    }

    #[test]
    fn a_start_belongs_to_the_level_that_waits_for_it() {
        let agreed = Agreed::default();
        let start = |ms| Start { at: Stamp::from_millis(ms), note: None };
        agreed.set(0, start(1));
        assert_eq!((agreed.waited_for(), agreed.take()), (None, None));
        agreed.ready(0);
        assert_eq!((agreed.waited_for(), agreed.take()), (Some(0), None));
        agreed.set(0, start(2));
        assert_eq!((agreed.waited_for(), agreed.take()), (None, Some(start(2))));
        agreed.set(0, start(3));
        agreed.ready(1);
        agreed.set(0, start(4));
        assert_eq!((agreed.waited_for(), agreed.take()), (Some(1), None));
    }
}
