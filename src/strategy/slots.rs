//! How many requests a server works on at once, told from how long they wait.
//!
//! A server with `S` slots serves the first `S` of `N` users, and whoever comes later waits for an answer to end. Three
//! things then hold whatever its speed is, and however much it slows down with the number that it serves:
//!
//! - *Little's law*: of `N` users `N * wait / E2E` wait, so that `S = N * (1 - wait / E2E)` are served, the same with any
//!   `N > S`. The wait is TTFT without what a load that fits has of it, of which a busy machine may have added some.
//! - `S` answers are under way at once, from their first token to their last, and never more; with few users all of
//!   theirs are. Where most of the time in a slot goes into prompts it is fewer, and those may be what is served one by
//!   one: then nothing is said.
//!
//! Without slots E2E may grow with the users just as well, since what is shared gets slower; but then all their answers
//! go on at once. Slots are named only if the loads agree on one number within a tenth.

use serde::{Deserialize, Serialize};

use crate::metrics::{Phase, Record};

/// Where the time of the requests of one load went, behind the first of each user: these came to an empty server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// Requests that this rests on.
    pub requests: u64,
    /// Their mean TTFT, ms.
    pub ttft_ms: f64,
    /// Their mean E2E, ms.
    pub e2e_ms: f64,
    /// Answers under way at once, from first token to last: more were for less than a twentieth of the time.
    pub under_way: u32,
}

/// What the loads tell of a server's slots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Slots {
    /// Requests that it works on at once.
    pub slots: u32,
    /// By which share the loads are off from that: root of the mean square over their requests, at most 0.1.
    pub off: f64,
}

impl Flow {
    /// That of the requests of a level of `users`; `None` where too few of them came again.
    #[must_use]
    pub fn of(records: &[Record], users: u64) -> Option<Flow> {
        let ended = |record: &&Record| record.phase == Phase::Measured && record.outcome.is_ok();
        // By the kernel's stamps where there are any: on a machine that is busy with the server the client is late, and
        // sees one answer begin before it has seen another end.
        let exact = |record: &Record| record.by_kernel().unwrap_or(*record);
        let times: Vec<Times> =
            records.iter().filter(ended).filter_map(|record| Times::of(&exact(record))).collect();
        let again: Vec<&Times> = times.iter().filter(|times| times.index >= users).collect();
        // Half of the users again, or the rest would be those that were lucky.
        if again.len() < REQUESTS_MIN || (again.len() as u64) < users / 2 {
            return None;
        }
        let mean_ms = |of: fn(&Times) -> u64| {
            again.iter().map(|times| of(times) as f64).sum::<f64>() / again.len() as f64 / 1e6
        };
        Some(Flow {
            requests: again.len() as u64,
            ttft_ms: mean_ms(|times| times.first - times.start),
            e2e_ms: mean_ms(|times| times.last - times.start),
            under_way: under_way(&times),
        })
    }
}

/// Marks of a request, ns.
struct Times {
    index: u64,
    start: u64,
    first: u64,
    last: u64,
}

impl Times {
    fn of(record: &Record) -> Option<Times> {
        let (first, last) = (record.first?.as_nanos(), record.last?.as_nanos());
        let times = Times { index: record.index, start: record.start.as_nanos(), first, last };
        (times.start <= first && first <= last).then_some(times)
    }
}

/// The number of answers under way that was exceeded for less than a twentieth of the time, while there was load: until
/// the last request came.
fn under_way(times: &[Times]) -> u32 {
    let (Some(begin), Some(end)) =
        (times.iter().map(|times| times.first).min(), times.iter().map(|times| times.start).max())
    else {
        return 0;
    };
    let mut steps: Vec<(u64, i64)> =
        times.iter().flat_map(|times| [(times.first, 1), (times.last, -1)]).collect();
    // Ends sort before beginnings of the same stamp: a place that changes hands is one.
    steps.sort_unstable();
    // How long so many were under way.
    let mut spent: Vec<u64> = vec![0; times.len() + 1];
    let (mut at, mut now) = (begin, 0i64);
    for (next, step) in steps {
        let until = next.min(end);
        if until > at {
            spent[now.max(0) as usize] += until - at;
            at = until;
        }
        now += step;
    }
    let all: u64 = spent.iter().sum();
    let mut beyond = 0;
    let is_seen = |time: &u64| {
        beyond += time;
        beyond > 0 && beyond as f64 >= RARE * all as f64
    };
    let from_the_end = spent.iter().rev().position(is_seen);
    from_the_end.map_or(0, |places| u32::try_from(times.len() - places).unwrap_or(u32::MAX))
}

/// Users, and where the time of their requests went.
type Load = (u32, Flow);

/// The slots that all `loads`, users and where the time of their requests went, agree on.
#[must_use]
pub fn infer(loads: &[(u32, Flow)]) -> Option<Slots> {
    let most = loads.iter().map(|(users, _)| *users).max()?;
    let fits = (1..most).filter_map(|slots| Some(Slots { slots, off: off(slots, loads)? }));
    fits.filter(|fit| fit.off <= TOLERANCE).min_by(|a, b| a.off.total_cmp(&b.off))
}

/// By which share the loads are off from what `slots` would give; `None` where they are not told, or contradicted.
fn off(slots: u32, loads: &[Load]) -> Option<f64> {
    let (fit, wait): (Vec<Load>, Vec<Load>) = loads.iter().copied().partition(|(users, _)| *users <= slots);
    // What nobody waits for is only sure of one user.
    let alone = fit.iter().find(|(users, _)| *users == 1)?.1;
    let fullest = fit.iter().max_by_key(|(users, _)| *users)?.1;
    // Users in step have their prompts computed together, which makes TTFT longer, but not by much of E2E: that is a queue,
    // even where all of its answers are under way at times.
    let is_free = |(users, flow): &Load| {
        let longer = (flow.ttft_ms - alone.ttft_ms) / flow.e2e_ms;
        let all_at_once = f64::from(flow.under_way) >= (1.0 - TOLERANCE) * f64::from(*users);
        longer <= TOLERANCE || (longer <= IN_STEP && all_at_once)
    };
    let most = wait.iter().map(|(users, _)| *users).max()?;
    let slots = f64::from(slots);
    if f64::from(most) < CLEARLY_MORE * slots || !fit.iter().all(is_free) {
        return None;
    }
    let (mut squares, mut requests) = (0.0, 0.0);
    for (users, flow) in wait {
        // What belongs to the place and not to the wait is between nothing and TTFT without a wait: that of one alone, or
        // of the fullest load that fits, whose users may go in step and have their prompts computed together.
        let served = |free_ms: f64| f64::from(users) * (1.0 - (flow.ttft_ms - free_ms) / flow.e2e_ms);
        let (least, most) = (served(0.0), served(alone.ttft_ms.max(fullest.ttft_ms)));
        // Where prompts take much of the time, a place cannot be told from a turn.
        let is_known = least.is_finite() && most.is_finite() && most - least <= IN_STEP * slots;
        if !is_known {
            return None;
        }
        let nearest = slots.max(least).min(most);
        let under_way = f64::from(flow.under_way) / slots - 1.0;
        if under_way.abs() > TOLERANCE {
            return None;
        }
        let off = (nearest / slots - 1.0).abs().max(under_way.abs());
        squares += flow.requests as f64 * off.powi(2);
        requests += flow.requests as f64;
    }
    Some((squares / requests).sqrt()).filter(|off| off.is_finite())
}

/// The loads agree within it.
const TOLERANCE: f64 = 0.1;
/// TTFT without a wait is this share of the time in a place at most.
const IN_STEP: f64 = 0.25;
/// Some load has clearly more users than slots, so that answers of all of them at once would be seen.
const CLEARLY_MORE: f64 = 1.25;
/// A share of the time that a stamp out of order may take.
const RARE: f64 = 0.05;
/// Fewer requests say nothing.
const REQUESTS_MIN: usize = 4;

#[cfg(test)]
mod tests;
