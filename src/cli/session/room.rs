//! Whether this process has room for a plan: descriptors, and the cores that its shards go to.

use crate::cli::failure::Failure;
use crate::plan::Plan;
use crate::sys::affinity::usable_cores;
use crate::sys::limits::raise_descriptor_limit;

/// Descriptors that the program needs beside one per connection.
pub(super) const OWN_DESCRIPTORS: u64 = 64;

/// Refuses a plan that this process has no room for; gives the open files that it may have.
pub(in crate::cli) fn check_limits(plan: &Plan) -> Result<u64, Failure> {
    let limit = raise_descriptor_limit();
    check_descriptors(plan, limit).map(|()| limit)
}

/// A plan that needs more descriptors than the process may have is refused before it starts.
fn check_descriptors(plan: &Plan, limit: u64) -> Result<(), Failure> {
    let needed = plan.descriptors_needed();
    let all = needed.connections.saturating_add(OWN_DESCRIPTORS);
    if all <= limit || needed.estimated {
        return Ok(());
    }
    Err(Failure::bad(format!(
        "the plan needs {all} open files ({} connections and {OWN_DESCRIPTORS} of our own), the limit here is {limit}; \
         raise it (ulimit -n, or the container's nofile), lower --max-concurrency, or split the run over processes",
        needed.connections
    )))
}

/// The core of each shard: one per usable core, one of them left to the coordinator when there are more than two, and no more
/// than connections: a shard without one would have to take it from another, for each request anew.
pub(super) fn shard_cores(plan: &Plan) -> Result<Vec<Option<u32>>, Failure> {
    let client = &plan.client;
    let most =
        plan.target.connections.max.map_or(usize::MAX, |max| plan.own_share().count_u32(max).max(1) as usize);
    let usable = usable_cores();
    let wished = client.affinity.iter().flatten();
    if let Some(core) = wished.into_iter().find(|core| !usable.contains(core)) {
        return Err(Failure::bad(format!(
            "--cpu-affinity: core {core} is not one that this process may use; there are {}",
            usable.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        )));
    }
    let pinned = client.affinity.clone().unwrap_or_else(|| usable.clone());
    let workers = match client.workers {
        Some(workers) => workers.max(1) as usize,
        None if client.affinity.as_ref().is_some_and(|cores| !cores.is_empty()) => pinned.len(),
        None if usable.len() > 2 => (usable.len() - 1).min(most),
        None => usable.len().clamp(1, most),
    };
    // The last cores first would leave core 0, where interrupts land, to the coordinator; but users name cores by
    // counting from 0, so shards take them in order.
    Ok((0..workers).map(|shard| pinned.get(shard % pinned.len().max(1)).copied()).collect())
}
