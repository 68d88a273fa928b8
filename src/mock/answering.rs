//! The books of an answer that is being given: what was due, what was sent, and how it ended.

use super::account::{Account, Ending};
use super::desk::Desk;
use super::faults::Fault;
use super::generation::Generation;
use super::house::Book;
use crate::model::Key;
use crate::time::Stamp;

/// An answer being given.
#[derive(Debug)]
pub(super) struct Answering {
    pub(super) generation: Generation,
    /// One per choice.
    pub(super) jobs: Vec<Key>,
    pub(super) account: Account,
    /// The last content event of each choice.
    pub(super) last: Vec<Stamp>,
}

impl Answering {
    pub(super) fn on_cached(&mut self, tokens: Option<u32>) {
        self.account.cached_tokens = tokens;
        self.generation.on_cached(tokens);
    }

    /// Closes the account and stops what is still being generated.
    pub(super) fn settle(self: Box<Answering>, ending: Ending, desk: &mut Desk) {
        // Of a complete answer nothing is left in the model.
        if ending != Ending::Complete {
            desk.model.cancel(desk.clock.now(), &self.jobs);
        }
        desk.settle(self.account, ending, Some(self.generation.ask()));
    }

    /// Notes the content events that are about to be sent.
    pub(super) fn note(&mut self, sent: Stamp, desk: &Desk) {
        if desk.bytes.content.is_empty() {
            return;
        }
        let account = &mut self.account;
        let held_back = account.fault.is_some_and(Fault::delays);
        let mut book = desk.book();
        let Book { truth, meters } = &mut *book;
        for content in &desk.bytes.content {
            truth.events += 1;
            truth.tokens += u64::from(content.tokens);
            meters.generation_tokens += u64::from(content.tokens);
            if !held_back {
                truth.on_lateness(sent - content.due);
            }
            if account.first.is_none() {
                meters.on_first(account.prompt_tokens, sent - account.arrived);
            }
            account.on_content(content, sent);
            let Some(last) = self.last.get_mut(content.choice as usize) else { continue };
            if *last != Stamp::ZERO {
                truth.on_itl(sent - *last);
                meters.on_gap(sent - *last);
            }
            *last = sent;
        }
    }
}
