//! Agent sessions of the KV cache tester: one JSON object per session, or several of them one behind the other.
//!
//! A session has a clock of its own, whose seconds begin with it. Its requests are read one by one, so that a session
//! of any length needs the memory of its longest request (or sub-agent, whose requests stand inside of one element).
//! What holds for all of them, the size of a block above all, has to stand before them, as it does in all such files.

use std::io::BufRead;
use std::num::NonZeroU32;
use std::time::Duration;

use super::entry::{Blocks, Entry, Node, Prompt, Session};
use super::error::{Fault, Reason};
use super::json::{Found, Object, not_unicode};
use super::numbers::Unit;
use super::parser::{At, Batch, Sequence, Step, is_last_value, without_column};
use super::pieces::Pieces;

/// The way through the sessions of a file.
pub(super) struct Walk {
    pieces: Pieces,
    sessions: Sequence,
    sessions_seen: u64,
    inside: Option<Inside>,
    block_tokens_set: Option<NonZeroU32>,
}

/// A session that has begun.
struct Inside {
    head: Head,
    place: In,
    is_first: bool,
    has_requests: bool,
    /// Requests so far, those of sub-agents among them.
    count: u32,
    /// The agent that the session is of.
    main: Thread,
}

/// What holds for all requests of a session: they are read in its light.
#[derive(Clone, Debug)]
pub(super) struct Head {
    name: Box<str>,
    /// Its number, from 1.
    ordinal: u64,
    block_tokens: u32,
    /// See [`Blocks::scope`].
    scope: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    Fields,
    Requests,
}

/// Whose request it is, and from when its seconds count.
struct Agent<'h> {
    head: &'h Head,
    name: Box<str>,
    epoch_ns: u64,
    /// The record that it is in: as it is written, and where it begins.
    record: (&'h [u8], u64),
}

/// How far the requests of one agent have been read.
#[derive(Clone, Debug, Default)]
struct Thread {
    turns: u32,
    /// Its last request, or the one that its parent had sent before it began.
    last: Option<Answer>,
    /// The last requests of sub-agents that it has not waited for yet.
    started: Vec<Answer>,
}

/// A request whose answer is waited for.
#[derive(Clone, Copy, Debug)]
struct Answer {
    number: u32,
    sent_ns: u64,
    /// When the answer had ended, as recorded; when it was sent, where that is not known.
    end_ns: u64,
}

impl Walk {
    pub(super) fn new(start: At, bytes_max: usize, block_tokens_set: Option<NonZeroU32>) -> Walk {
        let pieces = Pieces::new(start, bytes_max);
        Walk { pieces, sessions: Sequence::Before, sessions_seen: 0, inside: None, block_tokens_set }
    }

    pub(super) fn position(&self) -> u64 {
        self.pieces.next.offset
    }

    /// The session that is being read.
    pub(super) fn head(&self) -> Option<&Head> {
        self.inside.as_ref().map(|inside| &inside.head)
    }

    /// Goes on at a request of a session, to which the input has been moved: the next step reads it. What it follows is
    /// not known then.
    pub(super) fn enter(&mut self, at: At, head: Head) {
        self.pieces.next = at;
        self.inside = Some(Inside { place: In::Requests, has_requests: true, ..Inside::new(head) });
    }

    /// Reads up to and including the next request. `None` at the end.
    pub(super) fn step(&mut self, input: &mut dyn BufRead, batch: &mut Batch) -> Option<Step> {
        loop {
            let moved = match self.inside.as_ref().map(|inside| inside.place) {
                None => self.begin_session(input),
                Some(In::Fields) => self.read_field(input),
                Some(In::Requests) => self.begin_request(input),
            };
            match moved {
                Ok(Moved::On) => {}
                Ok(Moved::ToTheEnd) => return None,
                Ok(Moved::ToARequest) => return Some(self.read_request(input, batch)),
                Ok(Moved::Past(at, fault)) => return Some(Step::passed(at, Err(fault))),
                Err(fault) => return Some(Step { at: self.pieces.next, outcome: Err(fault), is_last: true }),
            }
        }
    }

    fn begin_session(&mut self, input: &mut dyn BufRead) -> Result<Moved, Fault> {
        if !self.sessions.advance(&mut self.pieces, input)? {
            return Ok(Moved::ToTheEnd);
        }
        let at = self.pieces.next;
        if self.pieces.peek(input)? != Some(b'{') {
            self.pieces.value(input)?;
            return Ok(Moved::Past(at, Fault::of_record(Reason::NotAnObject)));
        }
        self.pieces.take(input);
        self.sessions_seen += 1;
        let head = Head {
            name: format!("session-{}", self.sessions_seen).into(),
            block_tokens: self.block_tokens_set.map_or(BLOCK_TOKENS, u32::from),
            ordinal: self.sessions_seen,
            scope: self.sessions_seen,
        };
        self.inside = Some(Inside::new(head));
        Ok(Moved::On)
    }

    /// One field of a session, up to the first request where it is that one.
    fn read_field(&mut self, input: &mut dyn BufRead) -> Result<Moved, Fault> {
        let Walk { pieces, inside, block_tokens_set, sessions_seen, .. } = self;
        let Some(session) = inside else { return Ok(Moved::On) };
        if pieces.peek(input)? == Some(b'}') {
            pieces.take(input);
            *inside = None;
            return Ok(Moved::On);
        }
        if !session.is_first {
            pieces.expect(input, b',')?;
        }
        session.is_first = false;
        pieces.peek(input)?;
        let at = pieces.next;
        let key: Box<str> =
            serde_json::from_slice(pieces.value(input)?).map_err(|_| Fault::of_record(Reason::Syntax))?;
        pieces.expect(input, b':')?;
        if &*key == "requests" {
            if pieces.peek(input)? != Some(b'[') {
                pieces.value(input)?;
                return Ok(Moved::Past(at, Fault::of_field("requests", Reason::NotAList)));
            }
            pieces.take(input);
            session.place = In::Requests;
            session.is_first = true;
            session.has_requests = true;
            return Ok(Moved::On);
        }
        let value = match pieces.value(input) {
            Ok(value) => value,
            Err(fault) if fault.reason == Reason::TooLong => return Ok(Moved::Past(at, fault)),
            Err(fault) => return Err(fault),
        };
        match session.learn(&key, value, (*block_tokens_set, *sessions_seen)) {
            Ok(()) => Ok(Moved::On),
            Err(fault) => Ok(Moved::Past(at, fault)),
        }
    }

    fn begin_request(&mut self, input: &mut dyn BufRead) -> Result<Moved, Fault> {
        let Some(session) = &mut self.inside else { return Ok(Moved::On) };
        if self.pieces.peek(input)? == Some(b']') {
            self.pieces.take(input);
            session.place = In::Fields;
            session.is_first = false;
            return Ok(Moved::On);
        }
        if !session.is_first {
            self.pieces.expect(input, b',')?;
            self.pieces.peek(input)?;
        }
        session.is_first = false;
        Ok(Moved::ToARequest)
    }

    fn read_request(&mut self, input: &mut dyn BufRead, batch: &mut Batch) -> Step {
        let at = self.pieces.next;
        batch.begin(at);
        let value = self.pieces.value(input);
        let is_last = is_last_value(&value);
        let outcome = value.and_then(|value| match &mut self.inside {
            Some(session) => session.read_request((value, at.offset), batch),
            None => Ok(()),
        });
        Step { at, outcome: outcome.map_err(without_column), is_last }
    }
}

/// What a step through the file has come to.
enum Moved {
    On,
    ToARequest,
    ToTheEnd,
    /// Something that is wrong, behind which reading goes on.
    Past(At, Fault),
}

impl Inside {
    /// Takes from a field what holds for all requests.
    fn learn(
        &mut self,
        key: &str,
        value: &[u8],
        (block_tokens_set, ordinal): (Option<NonZeroU32>, u64),
    ) -> Result<(), Fault> {
        let text = str::from_utf8(value).map_err(|_| Fault::of_record(Reason::NotUnicode))?;
        match key {
            "id" => {
                let name = Found { name: "id", text }.name()?;
                if self.has_requests { Err(Fault::of_field("id", Reason::Late)) } else { self.name(name) }
            }
            "block_size" => {
                let found = Found { name: "block_size", text };
                let said = NonZeroU32::new(found.count()?).ok_or(found.fault(Reason::Empty))?;
                let block_tokens = u32::from(block_tokens_set.unwrap_or(said));
                if self.has_requests && block_tokens != self.head.block_tokens {
                    return Err(found.fault(Reason::Late));
                }
                self.head.block_tokens = block_tokens;
                Ok(())
            }
            "hash_id_scope" => {
                let found = Found { name: "hash_id_scope", text };
                let scope = match &*found.text()? {
                    "local" => ordinal,
                    "global" => 0,
                    _ => return Err(found.fault(Reason::Unknown)),
                };
                if self.has_requests && scope != self.head.scope {
                    return Err(found.fault(Reason::Late));
                }
                self.head.scope = scope;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn name(&mut self, name: Box<str>) -> Result<(), Fault> {
        self.head.name = name;
        Ok(())
    }

    /// One request, or those of a sub-agent.
    fn read_request(&mut self, record: (&[u8], u64), batch: &mut Batch) -> Result<(), Fault> {
        let agent = Agent { head: &self.head, name: self.head.name.clone(), epoch_ns: 0, record };
        // Of a record with an error nothing counts.
        let (mut thread, mut count) = (self.main.clone(), self.count);
        let found = str::from_utf8(record.0).map_err(|error| not_unicode(record.0, error.valid_up_to()))?;
        agent.read(&Object::read(record.0)?, found, (&mut thread, &mut count, 0), batch)?;
        (self.main, self.count) = (thread, count);
        Ok(())
    }
}

impl Inside {
    fn new(head: Head) -> Inside {
        let (is_first, has_requests) = (true, false);
        Inside { head, place: In::Fields, is_first, has_requests, count: 0, main: Thread::default() }
    }
}

/// The requests of a sub-agent, if it is one.
fn sub_agent<'t>(object: &Object<'t>) -> Result<Option<Vec<Found<'t>>>, Fault> {
    let kind = object.get("type");
    match kind.map(|kind| kind.text().map(|word| (kind, word))).transpose()? {
        None => Ok(None),
        Some((_, word)) if matches!(&*word, "n" | "s") => Ok(None),
        Some((_, word)) if &*word == "subagent" => Ok(Some(object.needed("requests")?.items()?)),
        Some((kind, _)) => Err(kind.fault(Reason::Unknown)),
    }
}

impl Agent<'_> {
    /// Reads what stands in the agent's list: a request, or a sub-agent with its own. `text` is how it is written.
    fn read(
        &self,
        object: &Object<'_>,
        text: &str,
        (thread, count, depth): (&mut Thread, &mut u32, u32),
        batch: &mut Batch,
    ) -> Result<(), Fault> {
        let Some(requests) = sub_agent(object)? else {
            let entry = self.read_request(object, text, (thread, count))?;
            batch.push(entry);
            return Ok(());
        };
        if depth == DEPTH_MAX {
            return Err(Fault::of_field("requests", Reason::TooDeep));
        }
        let started = object.needed("t")?;
        let started_ns = self.time(started)?;
        let id =
            object.get("agent_id").map(|id| id.name()).transpose()?.unwrap_or_else(|| batch.session_name());
        let name = format!("{}/{id}", self.name).into();
        let requests = requests
            .into_iter()
            .map(|request| Ok((request.text, request.object()?)))
            .collect::<Result<Vec<_>, Fault>>()?;
        let Some((_, first)) = requests.first() else { return Ok(()) };
        // Two kinds of files: seconds since the session began, and since the sub-agent did. Nothing that a sub-agent
        // asks can have been asked before it began.
        let first_ns = self.time(first.needed("t")?)?;
        let epoch_ns = if first_ns < started_ns { started_ns } else { self.epoch_ns };
        let agent = Agent { name, epoch_ns, ..*self };
        let mut inner = Thread { last: thread.last, ..Thread::default() };
        for (text, request) in &requests {
            agent.read(request, text, (&mut inner, count, depth + 1), batch)?;
        }
        // One that was started and left alone is waited for by nobody.
        let status = object.get("status").filter(|status| status.text.starts_with('"'));
        if status.map(|status| status.text()).transpose()?.as_deref() != Some("async_launched") {
            let last = inner.last.filter(|_| inner.turns > 0);
            thread.started.extend(inner.started.into_iter().chain(last));
        }
        Ok(())
    }

    fn read_request(
        &self,
        object: &Object<'_>,
        text: &str,
        (thread, count): (&mut Thread, &mut u32),
    ) -> Result<Entry, Fault> {
        let at = self.time(object.needed("t")?)?;
        let think = object.time(&["think_time"], Unit::Seconds)?;
        let took_ns = object.time(&["api_time"], Unit::Seconds)?.unwrap_or(0);
        let ids = object.get("hash_ids").map(|found| found.ids()).transpose()?;
        let Head { block_tokens, scope, ordinal, .. } = *self.head;
        let blocks = ids.map(|ids| Blocks { ids, block_tokens, scope });
        let tokens = |name| {
            let found = object.needed(name)?;
            NonZeroU32::new(found.count()?).map(u32::from).ok_or(found.fault(Reason::Zero))
        };
        let (output_tokens, model) = (tokens("out")?, object.text(&["model"])?);
        let input_tokens = tokens("in")?;
        // The last block may be begun only.
        if blocks
            .as_ref()
            .is_some_and(|blocks| blocks.ids.len() > input_tokens.div_ceil(block_tokens.max(1)) as usize)
        {
            return Err(Fault::of_field("hash_ids", Reason::TooMany));
        }
        let prompt = Prompt::Tokens { count: input_tokens, blocks };
        let (after, pause_ns) = thread.next_after(at, think);
        let offset = self.record.1 + (text.as_ptr() as usize - self.record.0.as_ptr() as usize) as u64;
        let node = Node { session: ordinal - 1, number: *count, after, pause_ns, offset };
        thread.last = Some(Answer { number: *count, sent_ns: at, end_ns: at.saturating_add(took_ns) });
        let turn = thread.turns;
        thread.turns = turn.saturating_add(1);
        *count = count.saturating_add(1);
        Ok(Entry {
            at: Some(at),
            after_previous: think.map(Duration::from_nanos),
            session: Some(Session::Named(self.name.clone())),
            turn: Some(turn),
            output_tokens: Some(output_tokens),
            model,
            node: Some(Box::new(node)),
            ..Entry::new(prompt)
        })
    }

    /// Nanoseconds since the session began.
    fn time(&self, found: Found<'_>) -> Result<u64, Fault> {
        let since = found.nanos(Unit::Seconds)?;
        self.epoch_ns.checked_add(since).ok_or(found.fault(Reason::TooLarge))
    }
}

impl Thread {
    /// Whose answers the agent's next request waits for, which was sent at `at`, and how long after the last of them. A
    /// sub-agent that sent something later was not waited for by it.
    fn next_after(&mut self, at: u64, think: Option<u64>) -> (Vec<u32>, u64) {
        let waits_for = |one: &Answer| one.sent_ns <= at;
        let ended: Vec<Answer> = self.started.iter().copied().filter(waits_for).collect();
        self.started.retain(|one| !waits_for(one));
        let all = || self.last.iter().chain(&ended);
        let since_end = at.saturating_sub(all().map(|one| one.end_ns).max().unwrap_or(at));
        let pause_ns = match think {
            Some(think) if ended.is_empty() && self.turns > 0 => think,
            // What an agent waits before it goes on includes the run of its sub-agents.
            Some(think) => think.min(since_end),
            None => since_end,
        };
        (all().map(|one| one.number).collect(), pause_ns)
    }
}

/// Tokens of a block, where a session does not say.
const BLOCK_TOKENS: u32 = 64;
/// Sub-agents of sub-agents.
const DEPTH_MAX: u32 = 16;
