//! From a request to jobs of the model, and from their tokens back to whose they are.

use std::sync::Arc;

use super::ask::{Ask, CHOICES_MAX};
use crate::model::{Emission, Job, Key, Refusal, Server};
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

/// Above these bits of a job's choice, which the model hands back unread, stands the worker.
const CHOICE_BITS: u32 = 8;
const CHOICE: u32 = (1 << CHOICE_BITS) - 1;
const _: () = assert!(CHOICES_MAX <= CHOICE);

/// Most workers of one model.
pub(super) const WORKERS_MAX: u32 = 1 << (32 - CHOICE_BITS);

/// Gives the choices of a request to the model: all of them or none. `worker` asks, where several share the model;
/// else it is 0.
pub(super) fn submit(
    server: &mut Server,
    now: Stamp,
    worker: u32,
    wish: Wish<'_>,
) -> Result<Vec<Key>, Refusal> {
    let Wish { owner, number, ask, blocks } = wish;
    let draw = number.wrapping_mul(u64::from(CHOICES_MAX));
    let mut jobs = Vec::with_capacity(ask.choices as usize);
    for choice in 0..ask.choices {
        let job = Job {
            owner,
            choice: worker << CHOICE_BITS | choice,
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

/// Which worker an emission is for, and the emission as its owner knows it.
#[inline]
pub(super) fn addressed(emission: Emission) -> (usize, Emission) {
    let worker = (emission.choice >> CHOICE_BITS) as usize;
    (worker, Emission { choice: emission.choice & CHOICE, ..emission })
}
