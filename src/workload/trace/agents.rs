//! Sessions of agents that start others: which requests wait for which answers, and each request when it is wanted.
//!
//! A session's requests are numbered in the order of the file, in which each stands behind all that it waits for. What a
//! choice leaves out is waited for by nobody: whoever waited for it waits for what it had waited for.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::entry::Entry;
use super::error::Error;
use super::format::Format;
use super::reader::{Counts, Options};
use super::source::{Input, Source, open};
use super::weka::Head;

/// The requests of all sessions and what they wait for: 32 bytes for each request, 4 for each answer that one waits for,
/// and some for each session.
#[derive(Clone, Debug)]
pub struct Agents {
    /// The format that the file has.
    pub format: Format,
    /// What was read.
    pub counts: Counts,
    /// Requests that no longer fitted their session: a session has [`Agents::REQUESTS_MAX`].
    pub beyond: u64,
    heads: Arc<[Head]>,
    /// Where the requests of each session begin; one more at the end.
    starts: Arc<[u32]>,
    places: Arc<[Place]>,
    /// The numbers of those that each waits for, and of those that wait for it.
    after: Arc<[u16]>,
    next: Arc<[u16]>,
}

/// When a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// Nanoseconds after the session's first request, as recorded.
    pub at_ns: u64,
    /// Nanoseconds after the last of the answers that it waits for.
    pub pause_ns: u64,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    offset: u64,
    when: When,
    after_end: u32,
    next_end: u32,
}

/// A file of which any request of any session can be taken.
pub struct AgentReader<I> {
    source: Source<I>,
    agents: Agents,
}

/// The sessions, as they are found.
#[derive(Default)]
struct Found {
    heads: Vec<Head>,
    starts: Vec<u32>,
    places: Vec<Place>,
    after: Vec<u16>,
    /// The session that is read, in the file's numbers.
    session: Option<u64>,
    first_ns: u64,
    /// By the numbers of the file, what became of the requests of this session.
    fates: Vec<Fate>,
    beyond: u64,
}

/// What became of a request.
enum Fate {
    /// It has this number.
    Kept(u16),
    /// It is left out; it had waited for these.
    Left(Vec<u16>),
}

impl Agents {
    /// Most requests of a session: a record has 16 bits for the turn.
    pub const REQUESTS_MAX: u32 = u16::MAX as u32;

    /// Looks through the file from its beginning. `keeps` is asked of each request, which it may look at as it will be
    /// sent, and is told how long after the first request of its session it was sent, ns.
    ///
    /// # Errors
    /// Those of [`Survey::of`](super::Survey::of).
    pub fn of(
        file: &str,
        input: &mut dyn Input,
        options: &Options,
        keeps: &mut dyn FnMut(&Entry, u64) -> bool,
    ) -> Result<Agents, Error> {
        let mut core = open(file, input, options)?;
        let mut found = Found::default();
        while let Some(entry) = core.entry(input) {
            let entry = entry?;
            if let Some(head) = core.session_head() {
                found.take(&entry, head, keeps);
            }
        }
        found.starts.push(found.places.len() as u32);
        let next = found.link();
        Ok(Agents {
            format: core.format,
            counts: core.counts,
            beyond: found.beyond,
            heads: found.heads.into(),
            starts: found.starts.into(),
            places: found.places.into(),
            after: found.after.into(),
            next: next.into(),
        })
    }

    /// How many sessions there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heads.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    /// Requests of the session at `session`; 0 beyond the last.
    #[must_use]
    pub fn requests(&self, session: usize) -> u16 {
        let places = self.range(session);
        u16::try_from(places.len()).unwrap_or(u16::MAX)
    }

    /// When request `number` of that session goes; `None` beyond the last.
    #[must_use]
    pub fn when(&self, session: usize, number: u16) -> Option<When> {
        Some(self.places[self.place(session, number)?].when)
    }

    /// The numbers of the requests whose answers request `number` waits for, rising.
    #[must_use]
    pub fn after(&self, session: usize, number: u16) -> &[u16] {
        self.edges(&self.after, self.place(session, number), |place| place.after_end)
    }

    /// The numbers of the requests that wait for its answer, rising.
    #[must_use]
    pub fn next(&self, session: usize, number: u16) -> &[u16] {
        self.edges(&self.next, self.place(session, number), |place| place.next_end)
    }

    /// The numbers of the requests that wait for no answer.
    pub fn roots(&self, session: usize) -> impl Iterator<Item = u16> + use<'_> {
        (0..self.requests(session)).filter(move |number| self.after(session, *number).is_empty())
    }

    fn edges<'a>(&self, all: &'a [u16], place: Option<usize>, end: impl Fn(&Place) -> u32) -> &'a [u16] {
        let Some(place) = place else { return &[] };
        let start = place.checked_sub(1).map_or(0, |before| end(&self.places[before]));
        &all[start as usize..end(&self.places[place]) as usize]
    }

    fn range(&self, session: usize) -> Range<usize> {
        match (self.starts.get(session), self.starts.get(session + 1)) {
            (Some(start), Some(end)) => *start as usize..*end as usize,
            _ => 0..0,
        }
    }

    fn place(&self, session: usize, number: u16) -> Option<usize> {
        self.range(session).nth(usize::from(number))
    }
}

impl Found {
    fn take(&mut self, entry: &Entry, head: &Head, keeps: &mut dyn FnMut(&Entry, u64) -> bool) {
        let Some(node) = &entry.node else { return };
        let at_ns = entry.at.unwrap_or(0);
        if self.session.replace(node.session) != Some(node.session) {
            self.first_ns = at_ns;
            self.fates.clear();
        }
        let at_ns = at_ns.saturating_sub(self.first_ns);
        let after = self.waits_for(&node.after);
        // The first that is kept begins its session.
        let begins = !self.fates.iter().any(|fate| matches!(fate, Fate::Kept(_)));
        let number =
            if begins { 0 } else { self.places.len() - self.starts.last().map_or(0, |at| *at as usize) };
        let fits = number < Agents::REQUESTS_MAX as usize;
        let is_kept = keeps(entry, at_ns);
        self.beyond += u64::from(is_kept && !fits);
        if !(is_kept && fits) {
            return self.fates.push(Fate::Left(after));
        }
        if begins {
            self.heads.push(head.clone());
            self.starts.push(self.places.len() as u32);
        }
        self.after.extend(&after);
        self.fates.push(Fate::Kept(number as u16));
        let when = When { at_ns, pause_ns: node.pause_ns };
        let after_end = self.after.len() as u32;
        self.places.push(Place { offset: node.offset, when, after_end, next_end: 0 });
    }

    /// The numbers of those that are kept, of the file's.
    fn waits_for(&self, after: &[u32]) -> Vec<u16> {
        let mut numbers = Vec::with_capacity(after.len());
        for number in after {
            match self.fates.get(*number as usize) {
                Some(Fate::Kept(number)) => numbers.push(*number),
                Some(Fate::Left(instead)) => numbers.extend(instead),
                None => {}
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }

    /// The other direction: who waits for each.
    fn link(&mut self) -> Vec<u16> {
        let Found { starts, places, after, .. } = self;
        let mut next = vec![0; after.len()];
        let after_of = |places: &[Place], place: usize| {
            let start = place.checked_sub(1).map_or(0, |before| places[before].after_end);
            start as usize..places[place].after_end as usize
        };
        let mut end = 0;
        for bounds in starts.windows(2) {
            let (start, stop) = (bounds[0] as usize, bounds[1] as usize);
            for place in start..stop {
                for number in &after[after_of(places, place)] {
                    places[start + usize::from(*number)].next_end += 1;
                }
            }
            // From counts to where each begins, which filling moves on to where it ends.
            for place in &mut places[start..stop] {
                let count = place.next_end;
                place.next_end = end;
                end += count;
            }
            for place in start..stop {
                for number in &after[after_of(places, place)] {
                    let of = &mut places[start + usize::from(*number)].next_end;
                    next[*of as usize] = (place - start) as u16;
                    *of += 1;
                }
            }
        }
        next
    }
}

impl<I: Input> AgentReader<I> {
    /// Opens a file that was looked through with the same options.
    ///
    /// # Errors
    /// Reading fails.
    pub fn open(of: (&str, I), options: &Options, agents: &Agents) -> Result<AgentReader<I>, Error> {
        Ok(AgentReader { source: Source::open(of, options)?, agents: agents.clone() })
    }

    /// Request `number` of the session at `session`, without its line and its node: `at` counts from the session's first
    /// request, `after_previous` from the last of the answers that it waits for. `None` beyond them.
    ///
    /// # Errors
    /// The file has changed, or reading fails.
    pub fn entry(&mut self, session: usize, number: u16) -> Result<Option<Entry>, Error> {
        let Some(place) = self.agents.place(session, number) else { return Ok(None) };
        let Place { offset, when, .. } = self.agents.places[place];
        let entry = self.source.read_in_session(&self.agents.heads[session], offset)?;
        let after_previous = Some(Duration::from_nanos(when.pause_ns));
        let turn = Some(number.into());
        Ok(Some(Entry { at: Some(when.at_ns), after_previous, line: 0, node: None, turn, ..entry }))
    }
}

impl<I> fmt::Debug for AgentReader<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentReader").field("sessions", &self.agents.len()).finish_non_exhaustive()
    }
}

const _: () = assert!(size_of::<Place>() == 32, "the docs say what a request costs");
