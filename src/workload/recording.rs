//! A trace as the load of a level: which of its requests are sent, when, and what each of them is.
//!
//! Owns the way from a plan's [`Trace`] to numbered sends, and what is known of a trace before anything is sent. Formats,
//! order and cuts are [`trace`](super::trace)'s, bodies are [`recorded`](super::recorded)'s. Files are opened by whoever
//! hands in an [`Open`]: a trace is opened again and again, by each shard for itself, and read as far as it is sent, so
//! that its length costs no memory.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::trace::{
    Counts, Dropped, Entry, Error, Format, Input, OnError, Options, Order, Prompt, Replay, Selected,
    Selection, Session, Speedup, Spindle, Survey, Threads,
};
use crate::plan::{RecordErrors, Trace};

/// Opens the file of a trace at its beginning.
pub type Open = Box<dyn Fn() -> io::Result<Box<dyn Input + Send>> + Send + Sync>;

/// A trace that was looked through.
pub struct Recording {
    file: Arc<str>,
    options: Options,
    selection: Selection,
    survey: Survey,
    order: Order,
    open: Open,
    overview: Overview,
    /// Its sessions, where some of their turns wait for answers.
    sessions: Option<Arc<Sessions>>,
    /// Why reading failed behind the look, where it has.
    broken: OnceLock<Error>,
}

/// What a look through a trace found, and what of it is sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Overview {
    /// Its format.
    pub format: Format,
    /// What was read.
    pub counts: Counts,
    /// What the slice and the filters leave out, and what is shortened.
    pub dropped: Dropped,
    /// Requests without a time that follow no turn of their session; they are not sent.
    pub turns: u64,
    /// Requests that are sent at their times: first turns, where there are sessions whose turns wait for answers.
    pub requests: u64,
    /// Later turns of these sessions, which are sent when the answers before them have ended.
    pub later: u64,
    /// Time of the last of them after the beginning of the slice, as recorded, ns.
    pub last_ns: u64,
    /// Tokens of their prompts, as far as the trace gives lengths.
    pub prompt_tokens: u64,
    /// Requests that bring chat messages of their own.
    pub chats: u64,
    /// Requests with images, which no trace holds: their texts alone are sent.
    pub images: u64,
    /// Lengths of the first of them: words of the prompt and, where the trace says, tokens of the answer.
    pub first: Vec<(u32, Option<u32>)>,
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
    /// Each of its sessions has a clock of its own.
    OwnClocks,
    /// The request on that line (0: unknown) has no time and follows no other.
    Turn(u64),
    /// Nothing is left to send.
    Nothing,
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
    entries: Selected<Replay<Box<dyn Input + Send>>>,
    of: Arc<Recording>,
    firsts: Firsts,
    speedup: Option<Speedup>,
    next: u64,
    shard: u64,
    shards: u64,
}

/// The sessions of a trace of which some turns have no time: 16 bytes a turn, and the sessions' names.
#[derive(Debug)]
struct Sessions {
    threads: Threads,
    by_name: HashMap<Box<str>, u32>,
}

/// Tells the first turns of sessions from later ones, which the first ones draw after them.
#[derive(Clone, Debug)]
struct Firsts {
    of: Option<Arc<Sessions>>,
    /// One bit for each session whose first turn has been met.
    met: Vec<u64>,
}

/// How a request of a trace is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// At its time.
    Timed,
    /// After the answer to the turn before it.
    Later,
    /// Never: it has no time, and follows nothing.
    Nowhere,
}

/// The later turns of sessions, for one shard.
#[derive(Debug)]
pub struct Turns {
    of: Arc<Recording>,
    sessions: Arc<Sessions>,
    selection: Selection,
    spindle: Option<Spindle<Box<dyn Input + Send>>>,
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
        let survey = Survey::of(&file, &mut input, &options).map_err(Refusal::Record)?;
        if survey.format == Format::Weka {
            return Err(Refusal::OwnClocks);
        }
        if survey.timed == 0 {
            return Err(Refusal::NoTimes);
        }
        let order = Order::of(&file, &mut input, &options, &survey).map_err(Refusal::Record)?;
        let selection = selection(trace);
        let sessions = Sessions::of(&file, &mut input, &options, (&survey, &selection))?.map(Arc::new);
        let known = (&*file, input);
        let replay = Replay::ordered(known, &options, &survey, order.clone()).map_err(Refusal::Record)?;
        let firsts = Firsts::of(sessions.clone());
        let overview = Overview::of(&survey, selection.clone().of(replay), (firsts, trace.errors))?;
        let broken = OnceLock::new();
        Ok(Recording { file, options, selection, survey, order, open, overview, sessions, broken })
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
        let known = (&*self.file, input);
        let replay = Replay::ordered(known, &self.options, &self.survey, self.order.clone())?;
        let speedup = Speedup::new(speedup);
        let selection = Selection { speedup, ..self.selection.clone() };
        Ok(Sends {
            entries: selection.of(replay),
            of: Arc::clone(self),
            firsts: Firsts::of(self.sessions.clone()),
            speedup,
            next: 0,
            shard: u64::from(shard),
            shards: u64::from(shards.max(1)),
        })
    }

    /// Why sends ended early, if any did: the file changed since the look, or can no longer be read.
    #[must_use]
    pub fn fault(&self) -> Option<&Error> {
        self.broken.get()
    }
}

impl Overview {
    fn of<I: Input>(
        survey: &Survey,
        mut entries: Selected<Replay<I>>,
        (mut firsts, errors): (Firsts, RecordErrors),
    ) -> Result<Overview, Refusal> {
        let mut overview = Overview {
            format: survey.format,
            counts: survey.counts.clone(),
            dropped: Dropped::default(),
            turns: 0,
            requests: 0,
            later: 0,
            last_ns: 0,
            prompt_tokens: 0,
            chats: 0,
            images: 0,
            first: Vec::new(),
        };
        for planned in entries.by_ref() {
            let planned = planned.map_err(Refusal::Record)?;
            match firsts.place(&planned.entry, planned.offset_ns) {
                Place::Timed => overview.count(&planned.entry, planned.offset_ns.unwrap_or_default()),
                Place::Later => overview.later += 1,
                Place::Nowhere if errors == RecordErrors::Fail => {
                    return Err(Refusal::Turn(planned.entry.line));
                }
                Place::Nowhere => overview.turns += 1,
            }
        }
        overview.dropped = entries.dropped();
        if overview.requests == 0 { Err(Refusal::Nothing) } else { Ok(overview) }
    }

    fn count(&mut self, entry: &Entry, offset_ns: u64) {
        self.requests += 1;
        self.last_ns = offset_ns;
        self.prompt_tokens += entry.prompt_tokens().map_or(0, u64::from);
        self.chats += u64::from(matches!(entry.prompt, Prompt::Messages { .. }));
        self.images += u64::from(entry.images > 0);
        if self.first.len() < FIRST_MAX {
            self.first.push((entry.words(), entry.output_tokens));
        }
    }
}

impl Sessions {
    /// Looks for sessions where some requests have no time; `None` where there is nothing that waits.
    fn of(
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

    fn named(&self, entry: &Entry) -> Option<u32> {
        match entry.session.as_ref()? {
            Session::Named(name) => self.by_name.get(name).copied(),
            Session::Linked { .. } => None,
        }
    }
}

impl Firsts {
    fn of(sessions: Option<Arc<Sessions>>) -> Firsts {
        let met = sessions.as_ref().map_or(0, |sessions| sessions.threads.len().div_ceil(64));
        Firsts { of: sessions, met: vec![0; met] }
    }

    /// How an entry is sent that comes next in the order of time.
    fn place(&mut self, entry: &Entry, offset_ns: Option<u64>) -> Place {
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

impl Turns {
    /// The session of an entry that is sent, if it is of one.
    #[must_use]
    pub fn session(&self, entry: &Entry) -> Option<u32> {
        self.sessions.named(entry)
    }

    /// Turns of that session, at least 1.
    #[must_use]
    pub fn count(&self, session: u32) -> u16 {
        u16::try_from(self.sessions.threads.turns(session as usize).max(1)).unwrap_or(u16::MAX)
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
        let Recording { file, options, open, survey, .. } = &*self.of;
        if self.spindle.is_none() {
            let input = open().map_err(|error| super::trace::unreadable(file, &error))?;
            self.spindle = Some(Spindle::open((&**file, input), options, &self.sessions.threads)?);
        }
        let Some(spindle) = &mut self.spindle else { return Ok(None) };
        let Some(mut entry) = spindle.entry(session as usize, usize::from(turn))? else { return Ok(None) };
        self.selection.fit(&mut entry);
        let first_ns = survey.first_ns.unwrap_or(0);
        entry.at = entry.at.map(|at| self.selection.sent_at(at.saturating_sub(first_ns)));
        Ok(Some(entry))
    }
}

impl Sends {
    /// A handle for the later turns of their sessions; `None` where no turn waits for an answer.
    #[must_use]
    pub fn turns(&self) -> Option<Turns> {
        let sessions = self.of.sessions.clone()?;
        let selection = Selection { speedup: self.speedup, ..self.of.selection.clone() };
        Some(Turns { of: Arc::clone(&self.of), sessions, selection, spindle: None })
    }
}

impl Iterator for Sends {
    type Item = Sent;

    fn next(&mut self) -> Option<Sent> {
        loop {
            let planned = match self.entries.next()? {
                Ok(planned) => planned,
                Err(error) => {
                    // The first shard that notices says so; the others have the same to say.
                    let _ = self.of.broken.set(error);
                    return None;
                }
            };
            let place = self.firsts.place(&planned.entry, planned.offset_ns);
            let Some(offset_ns) = planned.offset_ns.filter(|_| place == Place::Timed) else { continue };
            let index = self.next;
            self.next += 1;
            if index % self.shards == self.shard {
                return Some(Sent { index, offset_ns, entry: planned.entry });
            }
        }
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
            Refusal::OwnClocks => f.write_str(
                "each of its sessions has a clock of its own, and agents that start others are not replayed yet; give a \
                 trace with one clock, or a data set of conversations",
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
            Refusal::Nothing => f.write_str("nothing is left to send; give another slice or filter"),
        }
    }
}

impl std::error::Error for Refusal {}

impl fmt::Display for Overview {
    /// One line: `mooncake trace: 5 requests over 3.000 s, 4726 prompt tokens; left out: 1 malformed record`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requests = plural(self.requests, "request");
        write!(f, "{} trace: {requests} over {:.3} s", self.format.name(), self.last_ns as f64 / 1e9)?;
        if self.prompt_tokens > 0 {
            write!(f, ", {} prompt tokens", self.prompt_tokens)?;
        }
        if self.later > 0 {
            write!(f, "; {} after the answers before them", plural(self.later, "later turn"))?;
        }
        let Dropped { failed, other_model, outside, prompts_cut, outputs_cut } = self.dropped;
        let left_out = [
            (self.counts.malformed, "malformed record"),
            (failed, "failed call"),
            (other_model, "request to another model"),
            (outside, "request outside of the slice"),
            (self.turns, "request without a time"),
        ];
        let changed = [
            (prompts_cut, "shortened prompt"),
            (outputs_cut, "shortened answer"),
            (self.images, "request with images left out"),
        ];
        for (heading, counts) in [("; left out: ", &left_out[..]), ("; sent with changes: ", &changed)] {
            let said: Vec<String> =
                counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| plural(*n, what)).collect();
            if !said.is_empty() {
                write!(f, "{heading}{}", said.join(", "))?;
            }
        }
        Ok(())
    }
}

/// `1 failed call`, `2 failed calls`, `2 turns that wait`: the first noun gets the ending.
fn plural(n: u64, what: &str) -> String {
    match what.split_once(' ') {
        _ if n == 1 => format!("1 {what}"),
        Some(("malformed" | "failed" | "shortened" | "later", _)) | None => format!("{n} {what}s"),
        Some((noun, rest)) => format!("{n} {noun}s {rest}"),
    }
}

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

/// Requests whose lengths a warm-up repeats.
const FIRST_MAX: usize = 64;
