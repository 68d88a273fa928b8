//! Which entries of a trace are sent, when, and how long they are: pure functions over planned entries.

use std::collections::HashSet;
use std::time::Duration;

use super::entry::{Entry, Prompt, Session};
use super::error::Error;
use super::order::Planned;

/// A choice among the entries of a trace, and changes to them. The default keeps all but failed calls, unchanged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// How much faster than recorded: 2 halves offsets and waiting times. `None` is 1.
    pub speedup: Option<Speedup>,
    /// Entries before this offset are left out, and offsets count from here. In recorded time.
    pub from: Duration,
    /// So are those from this offset on. In recorded time.
    pub until: Option<Duration>,
    /// Only so many entries are kept: the first ones.
    pub entries_max: Option<u64>,
    /// Longer prompts are cut to so many tokens, where the trace gives their length.
    pub prompt_tokens_max: Option<u32>,
    /// Longer answers are asked for with so many tokens.
    pub output_tokens_max: Option<u32>,
    /// Only entries of these models are kept; all if there is none.
    pub models: Vec<Box<str>>,
    /// Failed calls are sent too.
    pub failed_too: bool,
}

/// A factor of time: finite and above 0.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Speedup(f64);

/// How many entries a selection has left out, and shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Failed calls.
    pub failed: u64,
    /// Of other models, or of none.
    pub other_model: u64,
    /// Before or behind the slice.
    pub outside: u64,
    /// Kept with a shorter prompt.
    pub prompts_cut: u64,
    /// Kept with a shorter answer.
    pub outputs_cut: u64,
}

/// The entries that a [`Selection`] keeps.
#[derive(Debug)]
pub struct Selected<I> {
    entries: I,
    selection: Selection,
    kept: u64,
    dropped: Dropped,
    /// Names of sessions with turns outside of the slice: their turns without a time are left out too. Formats whose
    /// turns are linked give each of them a time.
    outside: HashSet<Box<str>>,
}

impl Selection {
    /// Applies it to entries, which are in order of time.
    pub fn of<I: Iterator<Item = Result<Planned, Error>>>(self, entries: I) -> Selected<I> {
        Selected { entries, selection: self, kept: 0, dropped: Dropped::default(), outside: HashSet::new() }
    }

    fn is_outside(&self, offset_ns: u64) -> bool {
        let offset = Duration::from_nanos(offset_ns);
        offset < self.from || self.until.is_some_and(|until| offset >= until)
    }

    fn is_of_other_model(&self, entry: &Entry) -> bool {
        !self.models.is_empty() && !entry.model.as_ref().is_some_and(|model| self.models.contains(model))
    }

    fn hurry(&self, planned: &mut Planned) {
        planned.offset_ns = planned.offset_ns.map(|offset_ns| self.sent_at(offset_ns));
        self.hurry_wait(&mut planned.entry);
    }

    fn hurry_wait(&self, entry: &mut Entry) {
        if let Some(wait) = &mut entry.after_previous {
            *wait = Duration::from_nanos(self.scale(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX)));
        }
    }

    fn scale(&self, ns: u64) -> u64 {
        self.speedup.map_or(ns, |speedup| speedup.scale(ns))
    }

    /// When what has this offset in recorded time is sent, ns after the start.
    #[must_use]
    pub fn sent_at(&self, offset_ns: u64) -> u64 {
        self.scale(self.recorded_at(offset_ns))
    }

    /// How long a recorded wait takes, ns.
    #[must_use]
    pub fn waited(&self, wait_ns: u64) -> u64 {
        self.scale(wait_ns)
    }

    /// What has this offset in recorded time, counted from the beginning of the slice, ns.
    #[must_use]
    pub fn recorded_at(&self, offset_ns: u64) -> u64 {
        offset_ns.saturating_sub(u64::try_from(self.from.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Whether an entry with this offset, if it has one, is one of those that are kept; it is shortened where it must be.
    /// What is left out or changed is counted.
    pub fn choose(&self, entry: &mut Entry, offset_ns: Option<u64>, dropped: &mut Dropped) -> bool {
        let is_outside = offset_ns.is_some_and(|offset_ns| self.is_outside(offset_ns));
        if self.takes(entry, offset_ns) {
            let (prompt, output) = self.shorten(entry);
            dropped.prompts_cut += u64::from(prompt);
            dropped.outputs_cut += u64::from(output);
            return true;
        }
        let counter = if entry.failed && !self.failed_too {
            &mut dropped.failed
        } else if is_outside {
            &mut dropped.outside
        } else {
            &mut dropped.other_model
        };
        *counter += 1;
        false
    }

    /// Whether an entry with this offset, if it has one, is one of those that are kept.
    #[must_use]
    pub fn takes(&self, entry: &Entry, offset_ns: Option<u64>) -> bool {
        let is_outside = offset_ns.is_some_and(|offset_ns| self.is_outside(offset_ns));
        !is_outside && (self.failed_too || !entry.failed) && !self.is_of_other_model(entry)
    }

    /// Makes an entry that is kept what is sent of it, but for its time: shorter where it must be, and faster.
    pub fn fit(&self, entry: &mut Entry) {
        let _ = self.shorten(entry);
        self.hurry_wait(entry);
    }

    /// Whether a prompt was cut, and an answer.
    fn shorten(&self, entry: &mut Entry) -> (bool, bool) {
        let mut cut = (false, false);
        if let Some(max) = self.prompt_tokens_max
            && let Prompt::Tokens { count, blocks } = &mut entry.prompt
            && *count > max
        {
            *count = max;
            if let Some(blocks) = blocks {
                blocks.ids.truncate(max.div_ceil(blocks.block_tokens.max(1)) as usize);
            }
            cut.0 = true;
        }
        if let Some(max) = self.output_tokens_max
            && entry.output_tokens.is_some_and(|tokens| tokens > max)
        {
            entry.output_tokens = Some(max);
            cut.1 = true;
        }
        cut
    }
}

impl Speedup {
    /// The factor, if it is one.
    #[must_use]
    pub fn new(factor: f64) -> Option<Speedup> {
        (factor.is_finite() && factor > 0.0).then_some(Speedup(factor))
    }

    /// Rounded to the nanosecond, exact for 1. A time that becomes too long is the longest there is.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "`as` saturates; below 104 days a float holds every nanosecond, beyond it errs by two"
    )]
    fn scale(self, ns: u64) -> u64 {
        if self.0 == 1.0 { ns } else { (ns as f64 / self.0).round() as u64 }
    }
}

impl<I> Selected<I> {
    /// What has been left out so far.
    #[must_use]
    pub fn dropped(&self) -> Dropped {
        self.dropped
    }

    /// Whether the slice leaves it out. A turn without a time goes with its session.
    fn cuts(&mut self, planned: &Planned) -> bool {
        let session = match &planned.entry.session {
            Some(Session::Named(name)) => Some(name),
            _ => None,
        };
        match planned.offset_ns {
            Some(offset_ns) if self.selection.is_outside(offset_ns) => {
                if let Some(session) = session {
                    self.outside.insert(session.clone());
                }
                true
            }
            Some(_) => false,
            None => session.is_some_and(|session| self.outside.contains(session)),
        }
    }

    fn shorten(&mut self, entry: &mut Entry) {
        let (prompt, output) = self.selection.shorten(entry);
        self.dropped.prompts_cut += u64::from(prompt);
        self.dropped.outputs_cut += u64::from(output);
    }
}

impl<I: Iterator<Item = Result<Planned, Error>>> Iterator for Selected<I> {
    type Item = Result<Planned, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.selection.entries_max.is_some_and(|max| self.kept >= max) {
                return None;
            }
            let mut planned = match self.entries.next()? {
                Ok(planned) => planned,
                Err(error) => return Some(Err(error)),
            };
            let counter = if planned.entry.failed && !self.selection.failed_too {
                &mut self.dropped.failed
            } else if self.selection.is_of_other_model(&planned.entry) {
                &mut self.dropped.other_model
            } else if self.cuts(&planned) {
                &mut self.dropped.outside
            } else {
                self.kept += 1;
                self.shorten(&mut planned.entry);
                self.selection.hurry(&mut planned);
                return Some(Ok(planned));
            };
            *counter += 1;
        }
    }
}
