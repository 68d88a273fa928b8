//! Sessions of a trace that has a clock for all of them: which of its requests are later turns that wait for answers.

use std::collections::HashMap;
use std::sync::Arc;

use super::Refusal;
use crate::workload::trace::{Entry, Input, Options, Selection, Session, Survey, Threads};

/// The sessions of a trace of which some turns have no time: 16 bytes a turn, and the sessions' names.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) threads: Threads,
    by_name: HashMap<Box<str>, u32>,
}

/// Tells the first turns of sessions from later ones, which the first ones draw after them.
#[derive(Clone, Debug)]
pub(super) struct Firsts {
    of: Option<Arc<Sessions>>,
    /// One bit for each session whose first turn has been met.
    met: Vec<u64>,
}

/// How a request of a trace is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At its time.
    Timed,
    /// After the answer to the turn before it.
    Later,
    /// Never: it has no time, and follows nothing.
    Nowhere,
}

impl Sessions {
    /// Looks for sessions where some requests have no time; `None` where there is nothing that waits.
    pub(super) fn of(
        file: &str,
        input: &mut dyn Input,
        options: &Options,
        (survey, selection): (&Survey, &Selection),
    ) -> Result<Option<Sessions>, Refusal> {
        if survey.timed == survey.counts.entries {
            return Ok(None);
        }
        let first_ns = survey.first_ns.unwrap_or(0);
        let mut keeps = |entry: &Entry, is_later| {
            let offset_ns = entry.at.map(|at| at.saturating_sub(first_ns));
            let is_named = matches!(entry.session, Some(Session::Named(_)));
            // A session begins with a turn that has a time.
            is_named && (is_later || offset_ns.is_some()) && selection.takes(entry, offset_ns)
        };
        let (threads, by_name) =
            Threads::with_names(file, input, options, &mut keeps).map_err(Refusal::Record)?;
        let waits = (0..threads.len()).any(|session| threads.turns(session) > 1);
        Ok(waits.then_some(Sessions { threads, by_name }))
    }

    pub(super) fn named(&self, entry: &Entry) -> Option<u32> {
        match entry.session.as_ref()? {
            Session::Named(name) => self.by_name.get(name).copied(),
            Session::Linked { .. } => None,
        }
    }
}

impl Firsts {
    pub(super) fn of(sessions: Option<Arc<Sessions>>) -> Firsts {
        let met = sessions.as_ref().map_or(0, |sessions| sessions.threads.len().div_ceil(64));
        Firsts { of: sessions, met: vec![0; met] }
    }

    /// How an entry is sent that comes next in the order of time.
    pub(super) fn place(&mut self, entry: &Entry, offset_ns: Option<u64>) -> Place {
        let thread = self.of.as_ref().and_then(|sessions| sessions.named(entry));
        let alone = if offset_ns.is_some() { Place::Timed } else { Place::Nowhere };
        let Some(thread) = thread else { return alone };
        let (word, bit) = (thread as usize / 64, 1_u64 << (thread % 64));
        if self.met[word] & bit != 0 {
            return Place::Later;
        }
        if offset_ns.is_some() {
            self.met[word] |= bit;
        }
        alone
    }
}
