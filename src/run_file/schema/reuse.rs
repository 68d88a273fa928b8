//! What an unlimited prefix cache would find of a level, as stored.

use serde::{Deserialize, Serialize};

use super::LevelBlock;
use crate::metrics::{Phase, Record};
use crate::run::Window;
use crate::workload::reuse::Sent;
use crate::workload::{Content, Reuse};

/// Tokens of the ok requests of the window as the plan made them, words being tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReuseBlock {
    /// Of their prompts.
    pub prompt_tokens: u64,
    /// Of these, the ones that a cache finds that holds all that was sent before them in the level.
    pub found_tokens: u64,
}

impl From<Reuse> for ReuseBlock {
    fn from(reuse: Reuse) -> ReuseBlock {
        let Reuse { prompt_tokens, found_tokens } = reuse;
        ReuseBlock { prompt_tokens, found_tokens }
    }
}

impl ReuseBlock {
    /// The share of the tokens that is found.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.found_tokens as f64 / self.prompt_tokens.max(1) as f64
    }
}

impl LevelBlock {
    /// Works out what an unlimited prefix cache finds of the prompts of the level, whose `records` are all that were sent,
    /// in any order; `content` writes its prompts, and `seed` is the level's own. Nothing is said of sessions of several
    /// turns, and of a file that can no longer be read: where its requests broke off, that is said elsewhere.
    pub fn find_reuse(&mut self, content: &Content, seed: u64, records: &[Record]) {
        let window = Window::from(self.window);
        let mut sent = Vec::with_capacity(records.len());
        for record in records {
            // What a later turn repeats is the server's own doing, too.
            if record.turn > 0 {
                return;
            }
            if record.phase == Phase::Measured && record.sent.is_some() {
                let counts = record.outcome.is_ok() && window.contains(record.plan);
                sent.push(Sent { index: record.index, counts });
            }
        }
        sent.sort_unstable_by_key(|sent| sent.index);
        self.reuse = Reuse::of(content, seed, &sent).ok().flatten().map(ReuseBlock::from);
    }
}
