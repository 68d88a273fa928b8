//! Requests written ahead, so that none is serialised between its start and its first byte.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::api::talk::Reply;
use crate::load::agenda::{Agenda, Due};
use crate::load::leg::Leg;
use crate::load::talks::Talks;
use crate::load::target::Desk;
use crate::load::teams::Teams;
use crate::metrics::{Phase, Record};
use crate::rng;
use crate::run::Sessions;
use crate::time::Stamp;
use crate::workload::deck::{Deck, Hand};
use crate::workload::recording::{Sends, Sent};
use crate::workload::trace::Entry;

#[cfg(test)]
pub(in crate::load) mod tests;

/// How many bytes of an open loop's requests are written ahead, about.
pub(in crate::load) const AHEAD_BYTES: usize = 4 << 20;
/// Prompts of more words are written in steps; shorter ones take less than a tenth of a millisecond.
const LONG_WORDS: u32 = 4096;
/// A step of a prompt of 128 000 words takes less.
const STEP_MAX: Duration = Duration::from_millis(1);

/// The written requests of one shard in one leg.
#[derive(Debug)]
pub(crate) struct Requests {
    leg: Arc<Leg>,
    desk: Desk,
    /// That of the next draft.
    long_desk: Desk,
    /// The requests of a trace, in the order in which they are sent.
    recorded: Option<Sends>,
    /// The data set that prompts are taken from.
    data: Option<Hand>,
    /// Open loop: written requests, in the order of the schedule.
    ahead: VecDeque<(u64, Written)>,
    ahead_bytes: usize,
    /// The sessions that go on, where sessions have several turns.
    sessions: Running,
    /// Closed loop: by user, the first request of its next session with its index, once written.
    by_user: Vec<Option<(u64, Written)>>,
    /// Users whose next request is still to be written.
    unwritten: VecDeque<u32>,
    /// A long request that is half written.
    draft: Option<Draft>,
    /// Buffers to write into.
    spare: Vec<Vec<u8>>,
}

/// The sessions that are under way.
#[derive(Debug)]
enum Running {
    /// Each request is one of its own.
    Single,
    /// Turns that follow each other.
    Talks(Box<Talks>),
    /// Requests of agents, several of which may be under way at once.
    Teams(Box<Teams>),
}

/// What follows a request of a session that has ended.
#[derive(Debug, Default)]
pub(crate) struct Follow {
    /// Turns of the session, and when they are planned.
    pub(crate) next: Vec<(u16, Next)>,
    /// Nothing of the session is planned or under way any more.
    pub(crate) is_over: bool,
    /// What is planned of the session and not yet due is not sent ([`Requests::on_withdrawn`]).
    pub(crate) withdraws: bool,
}

/// When a session goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// So long after the end of the answer.
    After(Duration),
    /// So many nanoseconds after the start of the level, as it was recorded, or when the answer has ended.
    At(u64),
    /// Planned for the first of these times, and ready to be sent at the second.
    On(Stamp, Stamp),
}

/// A request that is written ahead in steps, so that none of them keeps the shard from its sockets for long.
#[derive(Debug)]
struct Draft {
    index: u64,
    user: Option<u32>,
    /// Its own: another request may have to be written at once.
    desk: Desk,
    done: Step,
}

/// The last step that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    None,
    Prompt,
    Body,
}

/// A request as it is sent.
#[derive(Debug)]
pub(crate) struct Written {
    /// Head and body.
    pub(crate) bytes: Vec<u8>,
    /// The longest answer that it asks for, by which its answer is judged, tokens.
    pub(crate) max_tokens: u32,
    /// A hash of its index and its body.
    pub(crate) hash: u64,
    /// What it was written from, if that was read from a file: to write it again.
    pub(crate) entry: Option<Box<Entry>>,
}

impl Requests {
    /// The requests of `agenda`, of which none is written yet; those of a trace where there are such.
    pub(crate) fn new(leg: Arc<Leg>, agenda: &Agenda, recorded: Option<Sends>) -> Requests {
        // Warm-up prompts are synthetic in any case.
        let data = leg.target.content.deck().filter(|_| leg.phase == Phase::Measured).map(Deck::hand);
        let sessions = match leg.target.content.agents() {
            _ if !leg.has_sessions() => Running::Single,
            None => Running::Talks(Box::new(Talks::new(Arc::clone(&leg), recorded.as_ref()))),
            Some(_) => Running::Teams(Box::new(Teams::new(Arc::clone(&leg), recorded.as_ref()))),
        };
        Requests {
            leg,
            desk: Desk::default(),
            long_desk: Desk::default(),
            recorded,
            data,
            sessions,
            ahead: VecDeque::new(),
            ahead_bytes: 0,
            by_user: (0..agenda.users()).map(|_| None).collect(),
            unwritten: (0..agenda.users()).collect(),
            draft: None,
            spare: Vec::new(),
        }
    }

    /// Writes one request that will be needed, or of a long one a part; `false` if there is nothing to write now, or if
    /// that might take longer than `room`.
    pub(crate) fn prepare_one(&mut self, agenda: &mut Agenda, room: Duration) -> bool {
        let has_written = match &mut self.sessions {
            Running::Single => false,
            Running::Talks(talks) => talks.prepare_one(&mut self.desk, &mut self.spare),
            Running::Teams(teams) => teams.prepare_one(&mut self.desk, &mut self.spare, room),
        };
        if has_written {
            return true;
        }
        if self.draft.is_some() {
            return self.go_on(room);
        }
        while let Some(user) = self.unwritten.pop_front() {
            let Some(index) = agenda.next_of_user(user) else { continue };
            if self.by_user[user as usize].as_ref().is_some_and(|(written, _)| *written == index) {
                continue;
            }
            if self.is_long(index) {
                return self.begin(index, Some(user), room);
            }
            let Some(request) = self.write(index) else { return false };
            self.by_user[user as usize] = Some((index, request));
            return true;
        }
        if self.ahead_bytes >= AHEAD_BYTES {
            return false;
        }
        let next = if self.recorded.is_some() {
            self.write_recorded()
        } else {
            let after = self.ahead.back().map(|(index, _)| *index);
            let upcoming = agenda.upcoming_after(after);
            if let Some(index) = upcoming.filter(|index| self.is_long(*index)) {
                return self.begin(index, None, room);
            }
            upcoming.and_then(|index| Some((index, self.write(index)?)))
        };
        let Some((index, request)) = next else { return false };
        self.ahead_bytes += request.bytes.len();
        self.ahead.push_back((index, request));
        true
    }

    /// Whether request `index` is written in steps: a synthetic one of many words.
    fn is_long(&self, index: u64) -> bool {
        let content = &self.leg.target.content;
        self.data.is_none() && content.prompt_words(self.leg.item(index)) > LONG_WORDS
    }

    fn begin(&mut self, index: u64, user: Option<u32>, room: Duration) -> bool {
        self.draft = Some(Draft { index, user, desk: std::mem::take(&mut self.long_desk), done: Step::None });
        self.go_on(room)
    }

    /// Takes the next step of the draft, if there is room for it.
    fn go_on(&mut self, room: Duration) -> bool {
        if room < STEP_MAX {
            return false;
        }
        let Some(mut draft) = self.draft.take() else { return false };
        let (item, target) = (self.leg.item(draft.index), &self.leg.target);
        match draft.done {
            Step::None => {
                target.write_prompt(item, &mut draft.desk);
                draft.done = Step::Prompt;
            }
            Step::Prompt => {
                target.write_body(item, &mut draft.desk);
                draft.done = Step::Body;
            }
            Step::Body => {
                let Draft { index, user, .. } = draft;
                let request = self.finished(draft);
                match user {
                    Some(user) => self.by_user[user as usize] = Some((index, request)),
                    None => {
                        self.ahead_bytes += request.bytes.len();
                        self.ahead.push_back((index, request));
                    }
                }
                return true;
            }
        }
        self.draft = Some(draft);
        true
    }

    /// The request of a draft, whatever is still to be done.
    fn finished(&mut self, mut draft: Draft) -> Written {
        let (item, target) = (self.leg.item(draft.index), &self.leg.target);
        if draft.done == Step::None {
            target.write_prompt(item, &mut draft.desk);
        }
        if draft.done != Step::Body {
            target.write_body(item, &mut draft.desk);
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        target.write_post(item, &draft.desk, &mut bytes);
        let max_tokens = target.content.output_tokens(item);
        let hash = hashed(draft.index, draft.desk.body());
        self.long_desk = draft.desk;
        Written { bytes, max_tokens, hash, entry: None }
    }

    /// The request of `due` out of the draft, if it is that one; a draft of an earlier one will not be needed.
    fn take_draft(&mut self, due: &Due) -> Option<Written> {
        let is_useless = |draft: &Draft| draft.user == due.user && draft.index <= due.index;
        let draft = self.draft.take_if(|draft| is_useless(draft))?;
        if draft.index == due.index {
            return Some(self.finished(draft));
        }
        self.long_desk = draft.desk;
        None
    }

    /// The request of `due`: the one written ahead, or written now if there was no time. `None` where the file that it is
    /// in broke off.
    pub(crate) fn take(&mut self, due: &Due) -> Option<Written> {
        if due.turn > 0 {
            return match &mut self.sessions {
                Running::Single => None,
                Running::Talks(talks) => talks.take(due.index, &mut self.desk, &mut self.spare),
                Running::Teams(teams) => teams.take(due, &mut self.desk, &mut self.spare),
            };
        }
        let first = self.take_first(due);
        if let Some(first) = &first {
            match &mut self.sessions {
                Running::Single => {}
                Running::Talks(talks) => talks.on_begin(due.index, first.entry.as_deref()),
                Running::Teams(teams) => teams.on_begin(due, first.entry.as_deref()),
            }
        }
        first
    }

    /// Turns that go with the first request of a session, which `due` is and which was taken: those that wait for no answer.
    pub(crate) fn beside(&mut self, due: &Due) -> Vec<(u16, Next)> {
        match &mut self.sessions {
            Running::Teams(teams) if due.turn == 0 => teams.beside(due.index),
            _ => Vec::new(),
        }
    }

    /// The first request of a session.
    fn take_first(&mut self, due: &Due) -> Option<Written> {
        if let Some(user) = due.user {
            return match self.by_user.get_mut(user as usize).and_then(Option::take) {
                Some((index, request)) if index == due.index => Some(request),
                _ => self.take_draft(due).or_else(|| self.write(due.index)),
            };
        }
        // Sends are taken in the order of the schedule: what is written for earlier ones will not be needed.
        while self.ahead.front().is_some_and(|(index, _)| *index <= due.index) {
            let Some((index, request)) = self.ahead.pop_front() else { break };
            self.ahead_bytes -= request.bytes.len();
            if index == due.index {
                return Some(request);
            }
            self.spare.push(request.bytes);
        }
        if self.recorded.is_none() {
            return self.take_draft(due).or_else(|| self.write(due.index));
        }
        loop {
            let (index, request) = self.write_recorded()?;
            if index >= due.index {
                return Some(request).filter(|_| index == due.index);
            }
            self.spare.push(request.bytes);
        }
    }

    /// The request of `due` has ended, with this record. `reply` is what was answered, where the leg gathers it.
    pub(crate) fn on_end(&mut self, due: &Due, record: &Record, reply: &Reply) -> Follow {
        match &mut self.sessions {
            Running::Single => Follow { is_over: true, ..Follow::default() },
            Running::Talks(talks) => talks.on_end(due.index, due.turn, record.outcome, reply),
            Running::Teams(teams) => teams.on_end(due, record),
        }
    }

    /// So many planned requests of session `index` were taken back; whether it is over.
    pub(crate) fn on_withdrawn(&mut self, index: u64, requests: usize) -> bool {
        match &mut self.sessions {
            Running::Teams(teams) => teams.on_withdrawn(index, requests),
            _ => true,
        }
    }

    /// The request of `due` will never be sent.
    pub(crate) fn on_unsent(&mut self, due: &Due) {
        match &mut self.sessions {
            Running::Single => {}
            Running::Talks(talks) => talks.on_unsent(due.index, due.turn),
            Running::Teams(teams) => teams.on_unsent(due),
        }
    }

    /// What became of the sessions, where they have several turns.
    pub(crate) fn into_sessions(self) -> Option<Sessions> {
        match self.sessions {
            Running::Single => None,
            Running::Talks(talks) => Some(talks.into_counts()),
            Running::Teams(teams) => Some(teams.into_counts()),
        }
    }

    /// Takes back the buffer of a request that the kernel has in full.
    pub(crate) fn give_back(&mut self, user: Option<u32>, buffer: Vec<u8>) {
        self.spare.push(buffer);
        if let Some(user) = user {
            self.unwritten.push_back(user);
        }
    }

    /// Writes request `index`, which is not one of a trace, into a spare buffer.
    pub(crate) fn write(&mut self, index: u64) -> Option<Written> {
        let item = self.leg.item(index);
        if let Some(data) = &mut self.data {
            let entry = data.entry(self.leg.target.content.place(item)?)?;
            return Some(self.write_entry(index, entry));
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        self.leg.target.write_request(item, &mut self.desk, &mut bytes);
        let max_tokens = self.leg.target.content.output_tokens(item);
        Some(Written { bytes, max_tokens, hash: hashed(index, self.desk.body()), entry: None })
    }

    /// The bytes of the request of `due`, which was sent before, once more; of a file if it was `entry` of one.
    pub(crate) fn write_again(&mut self, due: &Due, entry: Option<&Entry>) -> Vec<u8> {
        let index = due.index;
        if due.turn > 0
            && let Running::Talks(talks) = &self.sessions
            && let Some(written) = talks.write(index, &mut self.desk, &mut self.spare)
        {
            return written.bytes;
        }
        let mut bytes = self.spare.pop().unwrap_or_default();
        let (item, target) = (self.leg.item(index), &self.leg.target);
        match entry {
            Some(entry) => {
                target.write_recorded((item, entry), &mut self.desk, &mut bytes);
            }
            None => target.write_request(item, &mut self.desk, &mut bytes),
        }
        bytes
    }

    /// Writes the next request of the trace.
    fn write_recorded(&mut self) -> Option<(u64, Written)> {
        let Sent { index, entry, .. } = self.recorded.as_mut()?.next()?;
        Some((index, self.write_entry(index, entry)))
    }

    fn write_entry(&mut self, index: u64, entry: Entry) -> Written {
        let mut bytes = self.spare.pop().unwrap_or_default();
        let item = self.leg.item(index);
        let max_tokens = self.leg.target.write_recorded((item, &entry), &mut self.desk, &mut bytes);
        Written { bytes, max_tokens, hash: hashed(index, self.desk.body()), entry: Some(Box::new(entry)) }
    }
}

/// A hash of a body and its place, in four lanes of eight bytes side by side, since each step of one waits for the step
/// before it. The length is in it, so that bytes of zero at the end count.
pub(in crate::load) fn hashed(index: u64, body: &[u8]) -> u64 {
    let start = rng::mixed(index) ^ body.len() as u64;
    let mut lanes = [start, start ^ 1, start ^ 2, start ^ 3];
    let mut add = |block: &[u8; 32]| {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = rng::mixed(*lane ^ u64::from_le_bytes(*word));
        }
    };
    let (blocks, rest) = body.as_chunks::<32>();
    blocks.iter().for_each(&mut add);
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    add(&last);
    lanes.into_iter().fold(start, |hash, lane| rng::mixed(hash ^ lane))
}

/// One number for a turn: sessions have 48 bits, turns 16.
pub(in crate::load) fn place_of(index: u64, turn: u16) -> u64 {
    index & (u64::MAX >> 16) | u64::from(turn) << 48
}
