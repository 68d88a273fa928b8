//! When requests are meant to be sent: the master schedule of an open loop, and who sends which part of it.
//!
//! The schedule is a lazy generator of constant size, fixed by the seed. It is dealt by index: shard `k` of `n` walks
//! the whole of it and keeps the arrivals whose index is `k` modulo `n`. Nothing else keeps every process intact:
//! dealing gaps instead would turn eight shards of constant arrivals into something close to Poisson. Closed loops
//! have no schedule, only the rules which user sends which index, and when, if it is paced. Waiting until a time is not done here.

use rand_distr::{Distribution as _, Gamma};

use crate::plan::{Arrivals, Stop};
use crate::rng::{self, Purpose, Stream};

/// One planned send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// Its place in the schedule of its level, from 0.
    pub index: u64,
    /// Nanoseconds after the start of the level.
    pub offset_ns: u64,
}

/// All planned sends of one level, in order of index; offsets never decrease.
///
/// - constant: arrival `i` at `i / rate`, computed afresh for each `i`.
/// - Poisson: the first arrival comes one gap after the start, as do all others after their predecessors; a gap is
///   `-ln(1 - u) / rate` for a uniform `u` in `[0, 1)`.
/// - gamma: gaps of shape `k = burstiness` and scale `1 / (rate k)`, so that their coefficient of variation is
///   `1 / sqrt(k)`.
/// - burst: all at offset 0. Without a number of units it is empty, since it would never end.
/// - closed and paced: empty, since users send them; what paced ones plan is [`paced_offset_ns`]'s.
/// - trace: empty, since its times stand in a file ([`Sends`](super::recording::Sends)).
///
/// It ends after `stop.units` arrivals or before the first offset that is not below `stop.duration_s`, whichever
/// comes first; without either it ends where an offset no longer fits 64 bits. Offsets are summed as whole
/// nanoseconds and a fraction below one, so that a billion gaps add up as exactly as ten.
#[derive(Clone, Debug)]
pub struct Schedule {
    process: Process,
    next: u64,
    units: u64,
    end_ns: u64,
}

impl Schedule {
    /// The schedule of `arrivals` under `seed` (use [`Plan::level_seed`](crate::plan::Plan::level_seed)).
    ///
    /// Rates and shapes are taken as validated; with one that is not positive and finite the schedule is empty.
    #[must_use]
    pub fn new(arrivals: Arrivals, seed: u64, stop: &Stop) -> Schedule {
        let unbounded = match arrivals {
            Arrivals::Closed | Arrivals::Paced { .. } | Arrivals::Burst | Arrivals::Trace { .. } => 0,
            Arrivals::Constant { .. } | Arrivals::Gamma { .. } | Arrivals::Poisson { .. } => u64::MAX,
        };
        let units = match arrivals {
            Arrivals::Closed | Arrivals::Paced { .. } | Arrivals::Trace { .. } => 0,
            _ => stop.units.unwrap_or(unbounded),
        };
        let process = Process::new(arrivals, rng::stream(seed, Purpose::Arrivals, 0));
        // `as` saturates: a duration beyond 584 years is no bound, one below zero ends the schedule at once.
        let end_ns = stop.duration_s.map_or(u64::MAX, |s| (s * NANOS).round() as u64);
        Schedule {
            units: if process.is_some() { units } else { 0 },
            process: process.unwrap_or(Process::Burst),
            next: 0,
            end_ns,
        }
    }
}

impl Iterator for Schedule {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        if self.next >= self.units {
            return None;
        }
        let offset_ns = self.process.offset_ns(self.next).filter(|&ns| ns < self.end_ns);
        let Some(offset_ns) = offset_ns else {
            self.units = 0;
            return None;
        };
        let due = Due { index: self.next, offset_ns };
        self.next += 1;
        Some(due)
    }
}

/// The part of a schedule that shard `shard` of `shards` sends: the arrivals whose index is `shard` modulo `shards`.
#[derive(Clone, Debug)]
pub struct Dealt {
    schedule: Schedule,
    shard: u64,
    shards: u64,
}

impl Dealt {
    /// The part of shard `shard` (from 0) of `shards`. At least one shard is assumed; a `shard` that is not below
    /// `shards` gets nothing.
    #[must_use]
    pub fn new(schedule: Schedule, shard: u32, shards: u32) -> Dealt {
        Dealt { schedule, shard: u64::from(shard), shards: u64::from(shards.max(1)) }
    }
}

impl Iterator for Dealt {
    type Item = Due;

    fn next(&mut self) -> Option<Due> {
        let Dealt { schedule, shard, shards } = self;
        if *shard >= *shards {
            return None;
        }
        schedule.find(|due| due.index % *shards == *shard)
    }
}

/// The gap before the next arrival of a Poisson process, s: `-ln(1 - u) / rate` for `u` in `[0, 1)`.
#[must_use]
pub fn poisson_gap_s(u: f64, rate: f64) -> f64 {
    // ln_1p keeps the digits of small draws, which `(1.0 - u).ln()` would round away.
    -(-u).ln_1p() / rate
}

/// Arrivals per second up to and including the last one: `count / last offset`; `None` where the last offset is 0.
#[must_use]
pub fn realised_rate(count: u64, last_offset_ns: u64) -> Option<f64> {
    (last_offset_ns > 0).then(|| count as f64 * NANOS / last_offset_ns as f64)
}

/// The index of the `k`-th request (from 0) of user `user` (from 0) among `users`: `user + k * users`.
#[must_use]
pub fn closed_index(user: u32, k: u64, users: u32) -> u64 {
    u64::from(user).saturating_add(k.saturating_mul(u64::from(users)))
}

/// When request `index` of a paced closed loop is planned, ns after the start: user `u` of `users` plans its `k`-th
/// request for `(k + u / users) * interval`, so that all of them together plan one every `interval / users`.
///
/// Exact in whole nanoseconds, rounded down; it saturates.
#[must_use]
pub fn paced_offset_ns(index: u64, users: u32, interval_ns: u64) -> u64 {
    let whole = u128::from(index) * u128::from(interval_ns) / u128::from(users.max(1));
    u64::try_from(whole).unwrap_or(u64::MAX)
}

/// The users of a closed loop whose home is shard `shard` of `shards`: those that are `shard` modulo `shards`, so
/// that shares differ by one at most and at most `min(shards, users)` shards get any.
pub fn users_of(shard: u32, shards: u32, users: u32) -> impl Iterator<Item = u32> {
    (shard..users).step_by(shards.max(1) as usize)
}

/// A running sum of nanoseconds: whole ones, and a fraction in `[0, 1)`.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    whole_ns: u64,
    fraction_ns: f64,
}

impl Sum {
    /// Adds a gap in seconds and returns the whole nanoseconds; `None` once they no longer fit.
    fn add(&mut self, gap_s: f64) -> Option<u64> {
        let gap_ns = gap_s * NANOS + self.fraction_ns;
        let whole = gap_ns.floor();
        // Also refuses NaN.
        if !(0.0..MAX_GAP_NS).contains(&whole) {
            return None;
        }
        self.whole_ns = self.whole_ns.checked_add(whole as u64)?;
        self.fraction_ns = gap_ns - whole;
        Some(self.whole_ns)
    }
}

#[derive(Clone, Debug)]
enum Process {
    Burst,
    Constant { rate: f64 },
    Gamma { gaps: Gamma<f64>, stream: Stream, sum: Sum },
    Poisson { rate: f64, stream: Stream, sum: Sum },
}

impl Process {
    fn new(arrivals: Arrivals, stream: Stream) -> Option<Process> {
        let positive = |x: f64| (x.is_finite() && x > 0.0).then_some(x);
        let sum = Sum::default();
        Some(match arrivals {
            Arrivals::Burst | Arrivals::Closed | Arrivals::Paced { .. } | Arrivals::Trace { .. } => {
                Process::Burst
            }
            Arrivals::Constant { rate } => Process::Constant { rate: positive(rate)? },
            Arrivals::Poisson { rate } => Process::Poisson { rate: positive(rate)?, stream, sum },
            Arrivals::Gamma { rate, burstiness } => {
                let scale = 1.0 / (positive(rate)? * positive(burstiness)?);
                Process::Gamma { gaps: Gamma::new(burstiness, scale).ok()?, stream, sum }
            }
        })
    }

    /// The offset of arrival `index`; called once for each index, in order.
    fn offset_ns(&mut self, index: u64) -> Option<u64> {
        match self {
            Process::Burst => Some(0),
            Process::Constant { rate } => {
                let ns = (index as f64 / *rate * NANOS).round();
                (ns < MAX_GAP_NS).then_some(ns as u64)
            }
            Process::Gamma { gaps, stream, sum } => sum.add(gaps.sample(stream)),
            Process::Poisson { rate, stream, sum } => sum.add(poisson_gap_s(rng::unit(stream), *rate)),
        }
    }
}

const NANOS: f64 = 1e9;
/// 2^64 as a float: the first value that a `u64` cannot hold.
const MAX_GAP_NS: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
mod tests;
