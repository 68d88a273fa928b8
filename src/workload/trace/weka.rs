//! Agent sessions of the KV cache tester: one JSON object per session, or several of them one behind the other.
//!
//! A session has a clock of its own, whose seconds begin with it. Its requests are read one by one, so that a session
//! of any length needs the memory of its longest request (or sub-agent, whose requests stand inside of one element).
//! What holds for all of them, the size of a block above all, has to stand before them, as it does in all such files.

use std::io::BufRead;
use std::num::NonZeroU32;
use std::time::Duration;

use super::entry::{Blocks, Entry, Prompt, Session};
use super::error::{Fault, Reason};
use super::json::{Found, Object};
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
    turns: u32,
}

/// What holds for all requests of a session.
struct Head {
    name: Box<str>,
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
}

impl Walk {
    pub(super) fn new(start: At, bytes_max: usize, block_tokens_set: Option<NonZeroU32>) -> Walk {
        let pieces = Pieces::new(start, bytes_max);
        Walk { pieces, sessions: Sequence::Before, sessions_seen: 0, inside: None, block_tokens_set }
    }

    pub(super) fn position(&self) -> u64 {
        self.pieces.next.offset
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
            scope: self.sessions_seen,
        };
        self.inside = Some(Inside { head, place: In::Fields, is_first: true, has_requests: false, turns: 0 });
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
            Some(session) => session.read_request(&Object::read(value)?, batch),
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

    /// One request, or a sub-agent's in a session of their own.
    fn read_request(&mut self, object: &Object<'_>, batch: &mut Batch) -> Result<(), Fault> {
        let Some(requests) = sub_agent(object)? else {
            let agent = Agent { head: &self.head, name: self.head.name.clone(), epoch_ns: 0 };
            batch.push(agent.read(object, self.turns)?);
            self.turns = self.turns.saturating_add(1);
            return Ok(());
        };
        let started_ns = object.needed("t")?.nanos(Unit::Seconds)?;
        let id =
            object.get("agent_id").map(|id| id.name()).transpose()?.unwrap_or_else(|| batch.session_name());
        let name = format!("{}/{id}", self.head.name).into();
        let requests = requests.into_iter().map(|request| request.object()).collect::<Result<Vec<_>, _>>()?;
        let first_ns = match requests.first() {
            Some(first) => first.needed("t")?.nanos(Unit::Seconds)?,
            None => return Ok(()),
        };
        // Two kinds of files: seconds since the session began, and since the sub-agent did. Nothing that a sub-agent
        // asks can have been asked before it began.
        let epoch_ns = if first_ns < started_ns { started_ns } else { 0 };
        let agent = Agent { head: &self.head, name, epoch_ns };
        for (turn, request) in (0..).zip(&requests) {
            batch.push(agent.read(request, turn)?);
        }
        Ok(())
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
    fn read(&self, object: &Object<'_>, turn: u32) -> Result<Entry, Fault> {
        let t = object.needed("t")?;
        let at = self.epoch_ns.checked_add(t.nanos(Unit::Seconds)?).ok_or(t.fault(Reason::TooLarge))?;
        let think = object.time(&["think_time"], Unit::Seconds)?;
        let ids = object.get("hash_ids").map(|found| found.ids()).transpose()?;
        let Head { block_tokens, scope, .. } = *self.head;
        let blocks = ids.map(|ids| Blocks { ids, block_tokens, scope });
        Ok(Entry {
            at: Some(at),
            after_previous: think.map(Duration::from_nanos),
            session: Some(Session::Named(self.name.clone())),
            turn: Some(turn),
            output_tokens: Some(object.needed("out")?.count()?),
            model: object.text(&["model"])?,
            ..Entry::new(Prompt::Tokens { count: object.needed("in")?.count()?, blocks })
        })
    }
}

/// Tokens of a block, where a session does not say.
const BLOCK_TOKENS: u32 = 64;
