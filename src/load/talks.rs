//! The conversations of one shard that are under way: what was said in each, and the next turn as it is sent.
//!
//! Between two turns a conversation holds its history and its next turn, in the form in which they are sent: as many
//! conversations as users in a closed loop, as many as are under way in an open one. The first turn of a session is an
//! ordinary request ([`Requests`](super::requests::Requests)); a conversation is opened when it has been answered and
//! another turn follows. What a turn adds is `workload`'s, how it is written `api::talk`'s.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::api::request::Template;
use crate::api::talk::{History, Reply};
use crate::load::leg::Leg;
use crate::load::requests::{Follow, Next, Written, hashed, place_of};
use crate::load::source::Source;
use crate::load::target::Desk;
use crate::metrics::{Class, Outcome};
use crate::plan::Replies;
use crate::run::Sessions;
use crate::workload::recording::Sends;
use crate::workload::retold;
use crate::workload::trace::{Entry, Prompt};

/// The conversations of one shard in one leg.
#[derive(Debug)]
pub(crate) struct Talks {
    leg: Arc<Leg>,
    /// By the index of the session.
    open: HashMap<u64, Talk>,
    /// Sessions whose next turn may be written ahead.
    unwritten: VecDeque<u64>,
    /// By model, the template of a whole conversation, where the dialect has a list of messages.
    lists: Vec<Option<Template>>,
    source: Source,
    counts: Sessions,
    scratch: String,
}

/// What a file says of when a turn goes: its time, ns after the start of the level, and its pause.
type When = (Option<u64>, Option<Duration>);

/// A conversation that has another turn.
#[derive(Debug)]
struct Talk {
    history: History,
    turns: u16,
    /// The turn that is sent next, or under way.
    turn: u16,
    /// That turn, where it is one of a file.
    entry: Option<Box<Entry>>,
    max_tokens: u32,
    /// Of what the turn adds that is ours: the answers are the server's.
    hash: u64,
    written: Option<Written>,
}

impl Talks {
    /// No conversation yet; `recorded` are the requests of a trace, where it is one that is sent.
    pub(crate) fn new(leg: Arc<Leg>, recorded: Option<&Sends>) -> Talks {
        let dialect = leg.ask.dialect;
        let list = |template: &Template| template.of_list().filter(|_| History::is_list(dialect));
        Talks {
            lists: leg.target.templates.iter().map(list).collect(),
            source: Source::of(&leg, recorded),
            leg,
            open: HashMap::new(),
            unwritten: VecDeque::new(),
            counts: Sessions::default(),
            scratch: String::new(),
        }
    }

    /// The first turn of session `index` is sent; `entry` is what it was written from, if that is of a file.
    pub(crate) fn on_begin(&mut self, index: u64, entry: Option<&Entry>) {
        self.counts.begun += 1;
        self.source.on_begin(index, entry);
    }

    /// Turn `turn` of session `index` has ended.
    pub(crate) fn on_end(&mut self, index: u64, turn: u16, outcome: Outcome, reply: &Reply) -> Follow {
        let next = self.next(index, turn, outcome, reply);
        Follow {
            is_over: next.is_none(),
            next: next.map(|next| (turn + 1, next)).into_iter().collect(),
            ..Follow::default()
        }
    }

    /// When the next turn is planned, or `None` at the end of the session.
    fn next(&mut self, index: u64, turn: u16, outcome: Outcome, reply: &Reply) -> Option<Next> {
        let known = self.open.get(&index).map(|talk| talk.turns);
        let turns = known.unwrap_or_else(|| self.source.turns(&self.leg, index));
        let next = turn + 1;
        let unsent = u64::from(turns.saturating_sub(next));
        if outcome.is_ok() && unsent == 0 {
            self.forget(index);
            self.counts.finished += 1;
            return None;
        }
        let goes_on = if outcome.is_ok() { self.go_on(index, (next, turns), reply) } else { None };
        if goes_on.is_none() {
            self.forget(index);
            // A file that broke off ends the level as well.
            if outcome.is_ok() || matches!(outcome.class, Class::Unfinished | Class::Cancelled) {
                self.counts.cut += 1;
                self.counts.turns_cut += unsent;
            } else {
                self.counts.broken += 1;
                self.counts.turns_broken += unsent;
            }
        }
        goes_on
    }

    fn forget(&mut self, index: u64) -> Option<Talk> {
        self.source.forget(index);
        self.open.remove(&index)
    }

    /// The seed and the place that words are made by where a file gives lengths alone: one for all turns of a session, so
    /// that a longer prompt begins with a shorter one.
    fn words_of(&self, index: u64) -> (u64, u64) {
        let item = self.leg.item(index);
        (item.seed, self.leg.target.content.place(item).unwrap_or(index))
    }

    /// Makes turn `turn` of session `index`, after `reply`; `None` where the file that it is in broke off.
    fn go_on(&mut self, index: u64, (turn, turns): (u16, u16), reply: &Reply) -> Option<Next> {
        let mut talk = match self.open.remove(&index) {
            Some(talk) => talk,
            None => self.opened(index, turns)?,
        };
        talk.turn = turn;
        talk.written = None;
        let (at_ns, pause) = match talk.entry.take() {
            Some(before) => self.retell(index, &mut talk, &before, reply)?,
            None => self.tell(index, &mut talk, reply),
        };
        self.open.insert(index, talk);
        self.unwritten.push_back(index);
        Some(match (at_ns, pause) {
            (Some(at_ns), None) => Next::At(at_ns),
            // Where a file gives both, the pause is meant for later turns.
            (_, pause) => Next::After(self.leg.target.content.pause(self.leg.item(index), turn, pause)),
        })
    }

    /// A conversation whose first turn has been sent.
    fn opened(&mut self, index: u64, turns: u16) -> Option<Talk> {
        let mut history = History::new(self.leg.ask.dialect);
        let mut entry = None;
        if matches!(self.source, Source::Synthetic) {
            self.scratch.clear();
            self.leg.target.content.write_prompt(&mut self.scratch, self.leg.item(index));
            history.user(&self.scratch);
        } else {
            let first = self.source.read(&self.leg, index, 0)?;
            let said = (self.words_of(index), self.leg.target.content.counted());
            retold::say(&mut history, &first, said, &mut self.scratch);
            entry = Some(Box::new(first));
        }
        Some(Talk { history, turns, turn: 0, entry, max_tokens: 0, hash: 0, written: None })
    }

    /// What a synthetic turn adds. No file says when it goes.
    fn tell(&mut self, index: u64, talk: &mut Talk, reply: &Reply) -> When {
        let (item, content) = (self.leg.item(index), &self.leg.target.content);
        if content.forgets() {
            talk.history = History::new(self.leg.ask.dialect);
        } else {
            talk.history.answer(reply, 0);
        }
        self.scratch.clear();
        content.write_turn(&mut self.scratch, item, talk.turn);
        talk.history.user(&self.scratch);
        talk.max_tokens = content.turn_tokens(item, talk.turn);
        talk.hash = hashed(place_of(index, talk.turn), self.scratch.as_bytes());
        (None, None)
    }

    /// What the next turn of a file adds, with when it goes; `None` where the file broke off.
    fn retell(&mut self, index: u64, talk: &mut Talk, before: &Entry, reply: &Reply) -> Option<When> {
        let next = self.source.read(&self.leg, index, talk.turn)?;
        let words = self.words_of(index);
        let (item, content) = (self.leg.item(index), &self.leg.target.content);
        let replies = content.conversation(item.phase).map_or(Replies::Live, |talk| talk.replies);
        let next = if next.is_whole() {
            // What was said before is in it, or in nothing.
            talk.history = History::new(self.leg.ask.dialect);
            next
        } else {
            retold::answer(&mut talk.history, (before, reply), next, replies)
        };
        retold::say(&mut talk.history, &next, (words, self.leg.target.content.counted()), &mut self.scratch);
        talk.max_tokens = content.recorded_tokens(item, &next);
        talk.hash = hashed(place_of(index, talk.turn), self.scratch.as_bytes());
        let when = (next.at, next.after_previous);
        talk.entry = Some(Box::new(next));
        Some(when)
    }

    /// The request of `index`, a first or later turn, which was planned, is never sent.
    pub(crate) fn on_unsent(&mut self, index: u64, turn: u16) {
        if turn > 0
            && let Some(talk) = self.forget(index)
        {
            self.counts.cut += 1;
            self.counts.turns_cut += u64::from(talk.turns - turn - 1);
        }
    }

    /// Writes a turn that will be needed; `false` if there is none.
    pub(crate) fn prepare_one(&mut self, desk: &mut Desk, spare: &mut Vec<Vec<u8>>) -> bool {
        while let Some(index) = self.unwritten.pop_front() {
            // It may have been sent meanwhile, or given up.
            if self.open.get(&index).is_none_or(|talk| talk.written.is_some()) {
                continue;
            }
            let written = self.write(index, desk, spare);
            if let (Some(talk), Some(written)) = (self.open.get_mut(&index), written) {
                talk.written = Some(written);
                return true;
            }
        }
        false
    }

    /// The turn of session `index` that is due.
    pub(crate) fn take(&mut self, index: u64, desk: &mut Desk, spare: &mut Vec<Vec<u8>>) -> Option<Written> {
        let ahead = self.open.get_mut(&index)?.written.take();
        ahead.or_else(|| self.write(index, desk, spare))
    }

    /// The turn of session `index` that is due or under way, written anew.
    pub(crate) fn write(&self, index: u64, desk: &mut Desk, spare: &mut Vec<Vec<u8>>) -> Option<Written> {
        let talk = self.open.get(&index)?;
        let (item, target) = (self.leg.item(index), &self.leg.target);
        let mut bytes = spare.pop().unwrap_or_default();
        let max_tokens = match &talk.entry {
            None => {
                let model = target.model_of(item);
                let templates = (&target.templates[model], self.lists[model].as_ref());
                target.write_turn(item, (&talk.history, templates, talk.max_tokens), desk, &mut bytes);
                talk.max_tokens
            }
            Some(entry) if entry.is_whole() => target.write_recorded((item, entry), desk, &mut bytes),
            Some(entry) => {
                let text = talk.history.text().into();
                let prompt = match History::is_list(self.leg.ask.dialect) {
                    true => Prompt::Messages { messages: text, tools: retold::tools(entry) },
                    false => Prompt::Text(text),
                };
                let all = Entry { prompt, ..Entry::clone(entry) };
                target.write_recorded((item, &all), desk, &mut bytes)
            }
        };
        Some(Written { bytes, max_tokens, hash: talk.hash, entry: None })
    }

    /// What became of the sessions; those that are still open were cut off by the end.
    pub(crate) fn into_counts(self) -> Sessions {
        let left: u64 = self.open.values().map(|talk| u64::from(talk.turns - talk.turn)).sum();
        let mut counts = self.counts;
        counts.cut += self.open.len() as u64;
        counts.turns_cut += left;
        counts
    }
}
