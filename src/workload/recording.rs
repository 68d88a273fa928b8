//! A trace as the load of a level: which of its requests are sent, when, and what each of them is.
//!
//! Owns the way from a plan's [`Trace`] to numbered sends, and what is known of a trace before anything is sent. Formats,
//! order and cuts are [`trace`](super::trace)'s, bodies are [`recorded`](super::recorded)'s. Files are opened by whoever
//! hands in an [`Open`]: a trace is opened again and again, by each shard for itself, and read as far as it is sent, so
//! that its length costs no memory.

mod agents;
mod overview;
mod sessions;
mod turns;

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::trace::{
    AgentReader, Agents, Entry, Error, Format, Input, OnError, Options, Order, Replay, Selected, Selection,
    Speedup, Survey, format_of,
};
use crate::plan::{RecordErrors, Trace};

use agents::Course;
pub use overview::Overview;
use sessions::{Firsts, Place, Sessions};
pub use turns::Turns;

/// Opens the file of a trace at its beginning.
pub type Open = Box<dyn Fn() -> io::Result<Box<dyn Input + Send>> + Send + Sync>;

/// A trace that was looked through.
pub struct Recording {
    file: Arc<str>,
    options: Options,
    selection: Selection,
    kind: Kind,
    open: Open,
    overview: Overview,
    /// Why reading failed behind the look, where it has.
    broken: OnceLock<Error>,
}

/// How what is sent stands in it.
enum Kind {
    /// One clock for all requests.
    Timed {
        survey: Survey,
        order: Order,
        /// Its sessions, where some of their turns wait for answers.
        sessions: Option<Arc<Sessions>>,
    },
    /// Sessions of agents that start others, each with a clock of its own.
    Agents(Arc<Course>),
}

/// Why a trace cannot be replayed.
#[derive(Debug)]
pub enum Refusal {
    /// A record is broken.
    Record(Error),
    /// The file cannot be opened.
    Unreadable(io::Error),
    /// There is no format of that name.
    UnknownFormat(String),
    /// None of its requests has a time.
    NoTimes,
    /// Its requests are those of agents' sessions, and single ones are asked for.
    OfSessions,
    /// It gives no times within its sessions, and these are asked for.
    NoOffsets,
    /// The request on that line (0: unknown) has no time and follows no other.
    Turn(u64),
    /// Nothing is left to send.
    Nothing,
    /// Pauses are to be others, and there are none.
    NoPauses,
    /// Bounds on turns, of sessions of agents that cannot be cut.
    WholeSessions,
}

/// One request of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its place among those that are sent, from 0.
    pub index: u64,
    /// When it is planned, ns after the start.
    pub offset_ns: u64,
    /// What is asked.
    pub entry: Entry,
}

/// The sends of one shard, in order of time.
///
/// It ends with the trace, or where the file can no longer be read ([`Recording::fault`]).
#[derive(Debug)]
pub struct Sends {
    walk: Walk,
    of: Arc<Recording>,
    selection: Selection,
    next: u64,
    shard: u64,
    shards: u64,
}

/// The way from one send to the next.
#[derive(Debug)]
enum Walk {
    /// Through the file.
    Timed(Box<Selected<Replay<Box<dyn Input + Send>>>>, Firsts),
    /// From session to session.
    Agents(Box<AgentReader<Box<dyn Input + Send>>>, Arc<Course>),
}

impl Recording {
    /// Looks through the trace of a plan: twice, once more where it is not in order of time, and once more where some of
    /// its requests have no time, which may be later turns of sessions.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn look(trace: &Trace, open: Open) -> Result<Recording, Refusal> {
        let file: Arc<str> = trace.file.as_str().into();
        let options = options(trace)?;
        let mut input = open().map_err(Refusal::Unreadable)?;
        let (selection, broken) = (selection(trace), OnceLock::new());
        if format_of(&file, &mut input, &options).map_err(Refusal::Record)? == Format::Weka {
            let (course, overview) = Course::of(&file, &mut input, &options, &selection)?;
            let kind = Kind::Agents(Arc::new(course));
            return Ok(Recording { file, options, selection, kind, open, overview, broken });
        }
        let survey = Survey::of(&file, &mut input, &options).map_err(Refusal::Record)?;
        if survey.timed == 0 {
            return Err(Refusal::NoTimes);
        }
        let order = Order::of(&file, &mut input, &options, &survey).map_err(Refusal::Record)?;
        let sessions = Sessions::of(&file, &mut input, &options, (&survey, &selection))?.map(Arc::new);
        let known = (&*file, input);
        let replay = Replay::ordered(known, &options, &survey, order.clone()).map_err(Refusal::Record)?;
        let firsts = Firsts::of(sessions.clone());
        let overview = Overview::of(&survey, selection.clone().of(replay), (firsts, trace.errors))?;
        let kind = Kind::Timed { survey, order, sessions };
        Ok(Recording { file, options, selection, kind, open, overview, broken })
    }

    /// The sessions of agents that it is of.
    #[must_use]
    pub fn agents(&self) -> Option<&Agents> {
        match &self.kind {
            Kind::Timed { .. } => None,
            Kind::Agents(course) => Some(course.agents()),
        }
    }

    /// Which of these sessions is sent as number `index`; `None` beyond the last.
    #[must_use]
    pub fn agents_session(&self, index: u64) -> Option<usize> {
        match &self.kind {
            Kind::Timed { .. } => None,
            Kind::Agents(course) => course.session(index),
        }
    }

    /// Whether some of its turns are sent when the answers before them have ended.
    #[must_use]
    pub fn has_sessions(&self) -> bool {
        self.overview.later > 0
    }

    /// What the look found.
    #[must_use]
    pub fn overview(&self) -> &Overview {
        &self.overview
    }

    /// The sends of shard `shard` (from 0) of `shards`: those whose index is `shard` modulo `shards`.
    ///
    /// # Errors
    /// The file cannot be read again.
    pub fn sends(self: &Arc<Recording>, speedup: f64, (shard, shards): (u32, u32)) -> Result<Sends, Error> {
        let input = (self.open)().map_err(|error| super::trace::unreadable(&self.file, &error))?;
        let (known, options) = ((&*self.file, input), &self.options);
        let selection = Selection { speedup: Speedup::new(speedup), ..self.selection.clone() };
        let walk = match &self.kind {
            Kind::Timed { survey, order, sessions } => {
                let replay = Replay::ordered(known, options, survey, order.clone())?;
                Walk::Timed(Box::new(selection.clone().of(replay)), Firsts::of(sessions.clone()))
            }
            Kind::Agents(course) => {
                let reader = AgentReader::open(known, options, course.agents())?;
                Walk::Agents(Box::new(reader), Arc::clone(course))
            }
        };
        let (of, next) = (Arc::clone(self), 0);
        Ok(Sends { walk, of, selection, next, shard: u64::from(shard), shards: u64::from(shards.max(1)) })
    }

    /// Why sends ended early, if any did: the file changed since the look, or can no longer be read.
    #[must_use]
    pub fn fault(&self) -> Option<&Error> {
        self.broken.get()
    }
}

impl Sends {
    /// A handle for the later turns of their sessions; `None` where no turn waits for an answer.
    #[must_use]
    pub fn turns(&self) -> Option<Turns> {
        Turns::of(&self.of, &self.selection)
    }

    /// The next one, of whatever shard; one that is another's need not be read.
    fn step(&mut self) -> Result<Option<Sent>, Error> {
        loop {
            let index = self.next;
            let is_own = index % self.shards == self.shard;
            match &mut self.walk {
                Walk::Timed(entries, firsts) => {
                    let Some(planned) = entries.next().transpose()? else { return Ok(None) };
                    let place = firsts.place(&planned.entry, planned.offset_ns);
                    let Some(offset_ns) = planned.offset_ns.filter(|_| place == Place::Timed) else {
                        continue;
                    };
                    self.next += 1;
                    if is_own {
                        return Ok(Some(Sent { index, offset_ns, entry: planned.entry }));
                    }
                }
                Walk::Agents(reader, course) => {
                    let Some(session) = course.session(index) else { return Ok(None) };
                    self.next += 1;
                    if is_own {
                        let read = reader.entry(session, 0)?;
                        return Ok(read.map(|mut entry| {
                            self.selection.fit(&mut entry);
                            let offset_ns = self.selection.sent_at(entry.at.unwrap_or(0));
                            Sent { index, offset_ns, entry }
                        }));
                    }
                }
            }
        }
    }
}

impl Iterator for Sends {
    type Item = Sent;

    fn next(&mut self) -> Option<Sent> {
        self.step().unwrap_or_else(|error| {
            // The first shard that notices says so; the others have the same to say.
            let _ = self.of.broken.set(error);
            None
        })
    }
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recording")
            .field("file", &self.file)
            .field("overview", &self.overview)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Record(error) => {
                write!(f, "{error}; correct it, or leave out what cannot be read by --trace-errors skip")
            }
            Refusal::Unreadable(error) => write!(f, "{error}; name a readable file"),
            Refusal::UnknownFormat(name) => {
                write!(f, "'{name}' is no format; there are {}", Format::ALL.map(Format::name).join(", "))
            }
            Refusal::NoTimes => f.write_str("none of its requests has a time; give a file with times"),
            Refusal::OfSessions => f.write_str(
                "its requests are those of agents' sessions; give --multi-turn as well, which sends whole sessions at any \
                 load, or --fixed-schedule, which sends all of them at the times recorded",
            ),
            Refusal::NoOffsets => f.write_str(
                "it gives no times within its sessions; leave out --timing-strategy, or give a file of agents' sessions",
            ),
            Refusal::Turn(line) => {
                match line {
                    0 => f.write_str("a request")?,
                    line => write!(f, "the request of line {line}")?,
                }
                f.write_str(
                    " has no time of its own, and follows no turn of its session that has one; leave out such requests by \
                     --trace-errors skip",
                )
            }
            Refusal::NoPauses => f.write_str(
                "it has no sessions with pauses; leave out --session-delay-ratio, --ignore-trace-delays and \
                 --inter-turn-delay-cap-seconds",
            ),
            Refusal::WholeSessions => f.write_str(
                "sessions of agents are sent whole; leave out --multi-turn-min-turns and --multi-turn-max-turns",
            ),
            Refusal::Nothing => f.write_str("nothing is left to send: the file has no request, or its slice and filters leave none; give others"),
        }
    }
}

impl std::error::Error for Refusal {}

fn options(trace: &Trace) -> Result<Options, Refusal> {
    let named = |name: &String| Format::from_name(name).ok_or_else(|| Refusal::UnknownFormat(name.clone()));
    Ok(Options {
        format: trace.format.as_ref().map(named).transpose()?,
        on_error: match trace.errors {
            RecordErrors::Fail => OnError::Fail,
            RecordErrors::Skip => OnError::Skip,
        },
        block_tokens: trace.block_tokens,
        ..Options::default()
    })
}

fn selection(trace: &Trace) -> Selection {
    let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
    Selection {
        speedup: None,
        from: seconds(trace.from_s),
        until: trace.until_s.map(seconds),
        entries_max: None,
        prompt_tokens_max: trace.prompt_tokens_max,
        output_tokens_max: trace.output_tokens_max,
        models: trace.models.iter().map(|model| model.as_str().into()).collect(),
        failed_too: trace.failed_too,
    }
}
