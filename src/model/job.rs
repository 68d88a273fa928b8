//! What goes into the model and what comes out: jobs, emissions, refusals.

use std::sync::Arc;
use std::time::Duration;

use super::keyed;
use crate::time::Stamp;

/// One sequence of tokens to generate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Handed back with each emission: whose tokens they are.
    pub owner: u64,
    /// Handed back with each emission: which of the owner's sequences.
    pub choice: u32,
    /// Tokens to generate; 0 counts as 1.
    pub output_tokens: u32,
    /// Tokens of the prompt; 0 for nothing to compute before the first token.
    pub prompt_tokens: u32,
    /// The prompt's whole blocks in order, each hash standing for all of the prompt up to the end of its block: two
    /// prompts share a prefix as far as their lists begin alike. May be shorter than the prompt: what follows is
    /// shared with nobody. Only looked at where there is a prefix cache. [`block_hashes`](super::block_hashes) makes
    /// it.
    pub blocks: Arc<[u64]>,
    /// Number of the job's stream of random numbers, where its times are drawn: the same number gives the same times.
    pub draw: u64,
}

/// Names a job that a server has taken.
///
/// Keys of jobs that have ended are not mistaken for those of later jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub(super) u64);

impl From<keyed::Key> for Key {
    fn from(key: keyed::Key) -> Key {
        Key(key.token())
    }
}

impl From<Key> for keyed::Key {
    fn from(key: Key) -> keyed::Key {
        keyed::Key::from_token(key.0)
    }
}

/// Tokens that have come out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emission {
    /// Which job, as [`Server::submit`](super::Server::submit) named it.
    pub key: Key,
    /// As in the job.
    pub owner: u64,
    /// When they came out of the server: the end of the step. The caller may look later; that is its own lateness.
    pub due: Stamp,
    /// As in the job.
    pub choice: u32,
    /// How many; at least 1.
    pub tokens: u32,
    /// Prompt tokens of the job that the prefix cache saved; the same in all emissions of a job.
    pub cached_tokens: u32,
    /// Nothing came of this job before.
    pub first: bool,
    /// Nothing more will come of this job.
    pub last: bool,
}

/// Why a server does not take a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has not finished starting.
    Cold {
        /// How much longer it takes.
        ready_in: Duration,
    },
    /// All slots are taken and the queue has its full length.
    QueueFull,
}

impl Refusal {
    /// The HTTP status that says so: 503 for a cold server, 429 for a full queue.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Refusal::Cold { .. } => 503,
            Refusal::QueueFull => 429,
        }
    }
}
