//! What can be known of a measurement before it is made: findings over a plan.
//!
//! Owns the rules that need nothing but the plan and what surrounds it. Plans that cannot be run are `check`'s
//! business; what only a run shows is `verdict`'s. Nothing here resolves a name or reads the environment: that is handed
//! in as [`Surroundings`].

mod content;
mod growth;
mod load;
mod server;

use core::net::IpAddr;

use super::{Finding, Plan};
use crate::stats::sort;

/// What findings over a plan rest on beside the plan itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// No server is asked but a model of one, in virtual time.
    pub simulated: bool,
    /// Addresses that the endpoints' names resolve to; empty where that is not known.
    pub addresses: Vec<IpAddr>,
    /// One of them is this machine's own.
    pub server_on_this_host: bool,
    /// Environment variables that are set and name a proxy.
    pub proxies: Vec<String>,
    /// The `Via` field of an answer: who passed it on.
    pub via: Option<String>,
    /// The same prompts were sent to the server before, and it may remember them: when that was last, in words.
    pub same_prompts_at: Option<String>,
    /// Tokens of a prompt and its answer that the model takes together, where the server says.
    pub context_tokens: Option<u32>,
    /// Tokens of the longest request of the file that they are taken from, its answer included, where it says lengths.
    pub longest_prompt: Option<u32>,
}

/// The findings over `plan`, in the order of the rules.
///
/// The plan is taken as complete: what it leaves open is not found wanting.
#[must_use]
pub fn lint(plan: &Plan, around: &Surroundings) -> Vec<Finding> {
    let mut found = Vec::new();
    load::look(plan, &mut found);
    content::look(plan, &mut found);
    server::look(plan, around, &mut found);
    growth::look(plan, around, &mut found);
    sort::few_by_key(&mut found, |finding| finding.rule);
    found
}

pub(crate) use load::{REQUESTS_MIN, few_requests};

#[cfg(test)]
mod tests;
