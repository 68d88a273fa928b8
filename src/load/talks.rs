//! The conversations of one shard that are under way: what was said in each, and the next turn as it is sent.
//!
//! Between two turns a conversation holds its history and nothing else, in the form in which it is sent again: as many
//! as users in a closed loop, as many as are under way in an open one. The first turn of a session is an ordinary request
//! ([`Requests`](super::requests::Requests)); a conversation is opened when it has been answered and another turn follows.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::api::request::Template;
use crate::api::talk::{History, Reply};
use crate::load::leg::Leg;
use crate::load::requests::Written;
use crate::load::target::Desk;
use crate::metrics::{Class, Outcome};
use crate::run::Sessions;

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
    counts: Sessions,
    scratch: String,
}

/// A conversation that has another turn.
#[derive(Debug)]
struct Talk {
    history: History,
    turns: u16,
    /// The turn that is sent next, or under way.
    turn: u16,
    max_tokens: u32,
    /// Of what the turn adds that is ours: the answers are the server's.
    hash: u64,
    written: Option<Written>,
}

impl Talks {
    pub(crate) fn new(leg: Arc<Leg>) -> Talks {
        let dialect = leg.ask.dialect;
        let list = |template: &Template| template.of_list().filter(|_| History::is_list(dialect));
        let lists = leg.target.templates.iter().map(list).collect();
        Talks {
            leg,
            open: HashMap::new(),
            unwritten: VecDeque::new(),
            lists,
            counts: Sessions::default(),
            scratch: String::new(),
        }
    }

    /// A first turn is sent.
    pub(crate) fn on_begin(&mut self) {
        self.counts.begun += 1;
    }

    /// Turn `turn` of session `index` has ended: `Some` pause before the next one, or `None` at the end of the session.
    pub(crate) fn on_end(
        &mut self,
        index: u64,
        turn: u16,
        outcome: Outcome,
        reply: &Reply,
    ) -> Option<Duration> {
        let item = self.leg.item(index);
        let content = &self.leg.target.content;
        let turns = self.open.get(&index).map_or_else(|| content.turns(item), |talk| talk.turns);
        let next = turn + 1;
        let unsent = u64::from(turns.saturating_sub(next));
        if !outcome.is_ok() {
            self.open.remove(&index);
            if matches!(outcome.class, Class::Unfinished | Class::Cancelled) {
                self.counts.cut += 1;
                self.counts.turns_cut += unsent;
            } else {
                self.counts.broken += 1;
                self.counts.turns_broken += unsent;
            }
            return None;
        }
        if unsent == 0 {
            self.open.remove(&index);
            self.counts.finished += 1;
            return None;
        }
        let talk = self.open.entry(index).or_insert_with(|| {
            let mut history = History::new(self.leg.ask.dialect);
            self.scratch.clear();
            content.write_prompt(&mut self.scratch, item);
            history.user(&self.scratch);
            Talk { history, turns, turn, max_tokens: 0, hash: 0, written: None }
        });
        talk.history.answer(reply, 0);
        self.scratch.clear();
        content.write_turn(&mut self.scratch, item, next);
        talk.history.user(&self.scratch);
        talk.turn = next;
        talk.max_tokens = content.turn_tokens(item, next);
        talk.hash = super::requests::hashed(place_of(index, next), self.scratch.as_bytes());
        talk.written = None;
        self.unwritten.push_back(index);
        Some(content.pause(item, next, None))
    }

    /// A first turn, which was planned, is never sent.
    pub(crate) fn on_unsent(&mut self, index: u64, turn: u16) {
        if turn > 0
            && let Some(talk) = self.open.remove(&index)
        {
            self.counts.cut += 1;
            self.counts.turns_cut += u64::from(talk.turns - turn - 1);
        }
    }

    /// Writes a turn that will be needed; `false` if there is none.
    pub(crate) fn prepare_one(&mut self, desk: &mut Desk, spare: &mut Vec<Vec<u8>>) -> bool {
        while let Some(index) = self.unwritten.pop_front() {
            // It may have been sent meanwhile, or given up.
            if !self.open.get(&index).is_some_and(|talk| talk.written.is_none()) {
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
        let target = &self.leg.target;
        let model = target.model_of(index);
        let mut bytes = spare.pop().unwrap_or_default();
        let templates = (&target.templates[model], self.lists[model].as_ref());
        let said = (&talk.history, templates, talk.max_tokens);
        target.write_turn(self.leg.item(index), said, desk, &mut bytes);
        Some(Written { bytes, max_tokens: talk.max_tokens, hash: talk.hash, entry: None })
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

/// One number for a turn: sessions have 48 bits, turns 16.
fn place_of(index: u64, turn: u16) -> u64 {
    index & (u64::MAX >> 16) | u64::from(turn) << 48
}
