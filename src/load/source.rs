//! Where the turns of sessions are from: made of words, a data set, or a trace.

use std::collections::HashMap;
use std::time::Duration;

use crate::load::leg::Leg;
use crate::workload::deck::Hand;
use crate::workload::recording::{Sends, Turns};
use crate::workload::trace::Entry;

/// Where turns are taken from.
#[derive(Debug)]
pub(crate) enum Source {
    /// They are functions of the seed.
    Synthetic,
    /// The data set.
    Data(Box<Hand>),
    /// The trace.
    Trace(Box<Replayed>),
}

/// The sessions of a trace whose first turn has been sent.
#[derive(Debug)]
pub(crate) struct Replayed {
    /// `None` where no turn of the trace waits for an answer.
    turns: Option<Turns>,
    /// By the index of a session, which one of the trace it is, from its first turn to its end.
    under_way: HashMap<u64, u32>,
}

impl Source {
    /// The source of a leg; `recorded` are the requests of a trace, where it is one that is sent.
    pub(crate) fn of(leg: &Leg, recorded: Option<&Sends>) -> Source {
        match (recorded, leg.target.content.deck()) {
            (Some(sends), _) => {
                Source::Trace(Box::new(Replayed { turns: sends.turns(), under_way: HashMap::new() }))
            }
            (None, Some(deck)) => Source::Data(Box::new(deck.hand())),
            (None, None) => Source::Synthetic,
        }
    }

    /// The first turn of session `index` is sent; `entry` is what it was written from, if that is of a file.
    pub(crate) fn on_begin(&mut self, index: u64, entry: Option<&Entry>) {
        let (Source::Trace(replayed), Some(entry)) = (self, entry) else { return };
        if let Some(session) = replayed.turns.as_ref().and_then(|turns| turns.session(index, entry)) {
            replayed.under_way.insert(index, session);
        }
    }

    /// Session `index` has ended.
    pub(crate) fn forget(&mut self, index: u64) {
        if let Source::Trace(replayed) = self {
            replayed.under_way.remove(&index);
        }
    }

    /// Turns of session `index`, whose first one was sent.
    pub(crate) fn turns(&self, leg: &Leg, index: u64) -> u16 {
        match self {
            Source::Synthetic | Source::Data(_) => leg.target.content.turns(leg.item(index)),
            Source::Trace(replayed) => {
                let found = replayed.turns.as_ref().zip(replayed.under_way.get(&index));
                found.map_or(1, |(turns, session)| turns.count(*session))
            }
        }
    }

    /// Turn `turn` of session `index` as a file has it; `None` where that broke off, and of synthetic ones.
    pub(crate) fn read(&mut self, leg: &Leg, index: u64, turn: u16) -> Option<Entry> {
        match self {
            Source::Synthetic => None,
            Source::Data(hand) => {
                let entry = hand.turn(leg.target.content.place(leg.item(index))?, turn)?;
                // Its times are not kept.
                Some(Entry { at: None, ..entry })
            }
            Source::Trace(replayed) => replayed.turns.as_mut()?.turn(*replayed.under_way.get(&index)?, turn),
        }
    }

    /// The session of a file that is sent as number `index`, whose first turn was sent; of sessions of agents.
    pub(crate) fn agents_session(&self, leg: &Leg, index: u64) -> Option<usize> {
        leg.target.content.agents_session(leg.item(index))
    }

    /// When a request that was recorded `at_ns` after its session's first one is sent after the beginning of what is sent
    /// of the file, ns.
    pub(crate) fn sent_at(&self, at_ns: u64) -> u64 {
        self.of_trace().map_or(at_ns, |turns| turns.sent_at(at_ns))
    }

    /// How long a recorded wait takes, before what the plan makes of it.
    pub(crate) fn waited(&self, wait_ns: u64) -> Duration {
        Duration::from_nanos(self.of_trace().map_or(wait_ns, |turns| turns.waited(wait_ns)))
    }

    fn of_trace(&self) -> Option<&Turns> {
        match self {
            Source::Trace(replayed) => replayed.turns.as_ref(),
            _ => None,
        }
    }
}
