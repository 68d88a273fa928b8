//! When requests are meant to be sent: the master schedule of an open loop, and who sends which part of it.
//!
//! The schedule is a lazy generator of constant size, fixed by the seed. It is dealt by index: shard `k` of `n` walks
//! the whole of it and keeps the arrivals whose index is `k` modulo `n`. Nothing else keeps every process intact:
//! dealing gaps instead would turn eight shards of constant arrivals into something close to Poisson. Closed loops
//! have no schedule, only the rules which user sends which index, and when, if it is paced. Waiting until a time is not done here.

use rand_distr::{Distribution as _, Gamma};

use crate::plan::{Arrivals, Course, Gaps, Stop, Varying};
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
/// - varying: arrival `i` of the process of rate one lies at `u`, with the gaps above for a rate of 1; it comes when `u`
///   requests are expected by the rate over time ([`Course::time_of`]). With an exact count, `u` is multiplied by
///   `units / u'`, where `u'` is that of the last one, which takes a pass over the process beforehand.
/// - burst: all at offset 0. Without a number of units it is empty, since it would never end.
/// - bursts: arrival `i` at `floor(i / size) * every_s`.
/// - closed, joining and paced: empty, since users send them; what paced ones plan is [`paced_offset_ns`]'s, and when the
///   others come in [`joined_offset_ns`]'s.
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
    pub fn new(arrivals: &Arrivals, seed: u64, stop: &Stop) -> Schedule {
        let units = match arrivals {
            Arrivals::Closed | Arrivals::Joining { .. } | Arrivals::Paced { .. } | Arrivals::Trace { .. } => {
                0
            }
            Arrivals::Burst => stop.units.unwrap_or(0),
            Arrivals::Bursts { .. }
            | Arrivals::Constant { .. }
            | Arrivals::Gamma { .. }
            | Arrivals::Poisson { .. }
            | Arrivals::Varying(_) => stop.units.unwrap_or(u64::MAX),
        };
        let process = Process::new(arrivals, rng::stream(seed, Purpose::Arrivals, 0), stop.units);
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

/// When user `user` of `users` comes in who come in over `ramp_ns`, ns after the start: at equal gaps, the first at once
/// and the last at its end, rounded down. A user alone comes at once.
#[must_use]
pub fn joined_offset_ns(user: u32, users: u32, ramp_ns: u64) -> u64 {
    let gaps = u128::from(users.saturating_sub(1).max(1));
    u64::try_from(u128::from(user) * u128::from(ramp_ns) / gaps).unwrap_or(u64::MAX)
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

    /// Adds a gap and returns the sum, in the unit of the gap.
    fn add_exact(&mut self, gap: f64) -> Option<f64> {
        let whole = self.add(gap)?;
        // Whole units apart from what is below them: a float of all billionths would lose digits first.
        let (units, below) = (whole / NANOS as u64, whole % NANOS as u64);
        Some(units as f64 + (below as f64 + self.fraction_ns) / NANOS)
    }
}

#[derive(Clone, Debug)]
enum Process {
    Burst,
    Bursts { size: u64, every_ns: u64 },
    Constant { rate: f64 },
    Gamma { gaps: Gamma<f64>, stream: Stream, sum: Sum },
    Poisson { rate: f64, stream: Stream, sum: Sum },
    Varying { unit: UnitProcess, course: Course, scale: f64, last_ns: u64 },
}

impl Process {
    fn new(arrivals: &Arrivals, stream: Stream, units: Option<u64>) -> Option<Process> {
        let sum = Sum::default();
        Some(match *arrivals {
            Arrivals::Burst
            | Arrivals::Closed
            | Arrivals::Joining { .. }
            | Arrivals::Paced { .. }
            | Arrivals::Trace { .. } => Process::Burst,
            Arrivals::Bursts { size, every_s } => Process::Bursts {
                size: (size > 0).then_some(u64::from(size))?,
                every_ns: (positive(every_s)? * NANOS).round() as u64,
            },
            Arrivals::Constant { rate } => Process::Constant { rate: positive(rate)? },
            Arrivals::Poisson { rate } => Process::Poisson { rate: positive(rate)?, stream, sum },
            Arrivals::Gamma { rate, burstiness } => {
                let scale = 1.0 / (positive(rate)? * positive(burstiness)?);
                Process::Gamma { gaps: Gamma::new(burstiness, scale).ok()?, stream, sum }
            }
            Arrivals::Varying(Varying { gaps, ref rate, exact_count }) => {
                let unit = UnitProcess::new(gaps, stream)?;
                positive(rate.peak())?;
                let scale = match units.filter(|_| exact_count) {
                    Some(units) => unit.clone().scale_to(units)?,
                    None => 1.0,
                };
                Process::Varying { unit, course: Course::of(rate), scale, last_ns: 0 }
            }
        })
    }

    /// The offset of arrival `index`; called once for each index, in order.
    fn offset_ns(&mut self, index: u64) -> Option<u64> {
        match self {
            Process::Burst => Some(0),
            Process::Bursts { size, every_ns } => (index / *size).checked_mul(*every_ns),
            Process::Constant { rate } => whole_ns(index as f64 / *rate),
            Process::Gamma { gaps, stream, sum } => sum.add(gaps.sample(stream)),
            Process::Poisson { rate, stream, sum } => sum.add(poisson_gap_s(rng::unit(stream), *rate)),
            Process::Varying { unit, course, scale, last_ns } => {
                let offset_ns = whole_ns(course.time_of(unit.next()? * *scale)?)?;
                // Two arrivals closer than a float can tell may come out in the wrong order.
                *last_ns = offset_ns.max(*last_ns);
                Some(*last_ns)
            }
        }
    }
}

/// The arrivals of a process of rate one, in requests.
#[derive(Clone, Debug)]
enum UnitProcess {
    Constant { next: u64 },
    Gamma { gaps: Gamma<f64>, stream: Stream, sum: Sum },
    Poisson { stream: Stream, sum: Sum },
}

impl UnitProcess {
    fn new(gaps: Gaps, stream: Stream) -> Option<UnitProcess> {
        let sum = Sum::default();
        Some(match gaps {
            Gaps::Constant => UnitProcess::Constant { next: 0 },
            Gaps::Gamma { burstiness } => {
                let gaps = Gamma::new(positive(burstiness)?, 1.0 / burstiness).ok()?;
                UnitProcess::Gamma { gaps, stream, sum }
            }
            Gaps::Poisson => UnitProcess::Poisson { stream, sum },
        })
    }

    /// The next arrival; `None` beyond 18 billion requests.
    fn next(&mut self) -> Option<f64> {
        match self {
            UnitProcess::Constant { next } => {
                *next += 1;
                Some((*next - 1) as f64)
            }
            UnitProcess::Gamma { gaps, stream, sum } => sum.add_exact(gaps.sample(stream)),
            UnitProcess::Poisson { stream, sum } => sum.add_exact(poisson_gap_s(rng::unit(stream), 1.0)),
        }
    }

    /// By what to multiply so that the last of `units` arrivals lies at `units`. Equal gaps are exact as they are.
    fn scale_to(mut self, units: u64) -> Option<f64> {
        if let UnitProcess::Constant { .. } = self {
            return Some(1.0);
        }
        let mut last = 0.0;
        for _ in 0..units {
            last = self.next()?;
        }
        positive(units as f64 / last)
    }
}

/// Seconds as whole nanoseconds, rounded; `None` once they no longer fit.
fn whole_ns(s: f64) -> Option<u64> {
    let ns = (s * NANOS).round();
    (ns < MAX_GAP_NS).then_some(ns as u64)
}

fn positive(x: f64) -> Option<f64> {
    (x.is_finite() && x > 0.0).then_some(x)
}

const NANOS: f64 = 1e9;
/// 2^64 as a float: the first value that a `u64` cannot hold.
const MAX_GAP_NS: f64 = 18_446_744_073_709_551_616.0;

#[cfg(test)]
mod tests;
