//! From a request to jobs of the model.

use std::sync::Arc;

use super::ask::{Ask, CHOICES_MAX};
use crate::model::{Job, Key, Refusal, Server};
use crate::time::Stamp;

/// A request that wants tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wish<'a> {
    /// Who gets the emissions.
    pub(super) owner: u64,
    /// Number of the request: the same number gives the same times.
    pub(super) number: u64,
    pub(super) ask: &'a Ask,
    /// Its prompt, for a prefix cache.
    pub(super) blocks: &'a Arc<[u64]>,
}

/// Gives the choices of a request to the model: all of them or none.
pub(super) fn submit(server: &mut Server, now: Stamp, wish: Wish<'_>) -> Result<Vec<Key>, Refusal> {
    let Wish { owner, number, ask, blocks } = wish;
    let draw = number.wrapping_mul(u64::from(CHOICES_MAX));
    let mut jobs = Vec::with_capacity(ask.choices as usize);
    for choice in 0..ask.choices {
        let job = Job {
            owner,
            choice,
            output_tokens: ask.tokens,
            prompt_tokens: ask.prompt_tokens,
            blocks: Arc::clone(blocks),
            draw: draw + u64::from(choice),
        };
        match server.submit(now, job) {
            Ok(key) => jobs.push(key),
            Err(refusal) => {
                for job in jobs {
                    server.cancel(now, job);
                }
                return Err(refusal);
            }
        }
    }
    Ok(jobs)
}
