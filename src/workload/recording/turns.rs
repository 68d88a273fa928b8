//! The later turns of a trace's sessions, each read when it is wanted.

use std::sync::Arc;

use super::agents::Course;
use super::sessions::Sessions;
use super::{Kind, Recording};
use crate::workload::trace::{AgentReader, Entry, Error, Input, Selection, Spindle, unreadable};

/// The later turns of sessions, for one shard.
#[derive(Debug)]
pub struct Turns {
    of: Arc<Recording>,
    found: Found,
    selection: Selection,
}

/// Where they stand, and the file, once it is open.
#[derive(Debug)]
enum Found {
    Threads(Arc<Sessions>, Option<Box<Spindle<Box<dyn Input + Send>>>>),
    Agents(Arc<Course>, Option<Box<AgentReader<Box<dyn Input + Send>>>>),
}

impl Turns {
    /// Those of a trace, as far as `selection` takes them; `None` where no turn waits for an answer.
    pub(super) fn of(recording: &Arc<Recording>, selection: &Selection) -> Option<Turns> {
        let found = match &recording.kind {
            Kind::Timed { sessions, .. } => Found::Threads(sessions.clone()?, None),
            Kind::Agents(course) => Found::Agents(Arc::clone(course), None),
        };
        Some(Turns { of: Arc::clone(recording), found, selection: selection.clone() })
    }

    /// The session that is sent as number `index` and begins with `entry`, if it is one.
    #[must_use]
    pub fn session(&self, index: u64, entry: &Entry) -> Option<u32> {
        match &self.found {
            Found::Threads(sessions, _) => sessions.named(entry),
            Found::Agents(course, _) => u32::try_from(course.session(index)?).ok(),
        }
    }

    /// Turns of that session, at least 1.
    #[must_use]
    pub fn count(&self, session: u32) -> u16 {
        let count = match &self.found {
            Found::Threads(sessions, _) => sessions.threads.turns(session as usize),
            Found::Agents(course, _) => course.agents().requests(session as usize).into(),
        };
        u16::try_from(count.max(1)).unwrap_or(u16::MAX)
    }

    /// When what was recorded at this time is sent, ns after the start of the level.
    #[must_use]
    pub fn sent_at(&self, at_ns: u64) -> u64 {
        self.selection.sent_at(at_ns)
    }

    /// How long a recorded wait takes, ns.
    #[must_use]
    pub fn waited(&self, wait_ns: u64) -> u64 {
        self.selection.waited(wait_ns)
    }

    /// Turn `turn` of that session as it is sent: a time that it has counts ns from the start of the level. `None` beyond
    /// the last, and where the file can no longer be read ([`Recording::fault`]).
    pub fn turn(&mut self, session: u32, turn: u16) -> Option<Entry> {
        let read = self.read(session, turn);
        read.unwrap_or_else(|error| {
            let _ = self.of.broken.set(error);
            None
        })
    }

    fn read(&mut self, session: u32, turn: u16) -> Result<Option<Entry>, Error> {
        let Recording { file, options, open, kind, .. } = &*self.of;
        let opened = || open().map_err(|error| unreadable(file, &error));
        let session = session as usize;
        let read = match &mut self.found {
            Found::Threads(sessions, spindle) => {
                if spindle.is_none() {
                    let opened = Spindle::open((&**file, opened()?), options, &sessions.threads)?;
                    *spindle = Some(Box::new(opened));
                }
                spindle.as_mut().map_or(Ok(None), |spindle| spindle.entry(session, usize::from(turn)))
            }
            Found::Agents(course, reader) => {
                if reader.is_none() {
                    let opened = AgentReader::open((&**file, opened()?), options, course.agents())?;
                    *reader = Some(Box::new(opened));
                }
                reader.as_mut().map_or(Ok(None), |reader| reader.entry(session, turn))
            }
        };
        let Some(mut entry) = read? else { return Ok(None) };
        self.selection.fit(&mut entry);
        let first_ns = match kind {
            Kind::Timed { survey, .. } => survey.first_ns.unwrap_or(0),
            Kind::Agents(_) => 0,
        };
        entry.at = entry.at.map(|at| self.selection.sent_at(at.saturating_sub(first_ns)));
        Ok(Some(entry))
    }
}
