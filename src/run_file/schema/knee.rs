//! The knee of a run's sweep as stored: which levels are one sweep, and what of them is compared.
//!
//! The rule itself is `stats::knee`'s. Made of the levels' own blocks, so that a run from before there were knees has its
//! own when it is read.

use serde::{Deserialize, Serialize};

use super::RunFile;
use super::level::LevelBlock;
use crate::metrics::metric::Metric;
use crate::plan::{Axis, Gaps, Load};
use crate::stats::knee::{Bend, LOADS_MIN, Point, Sweep};

/// What the loads of a sweep say together: from which on throughput does not grow while latency does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct KneeBlock {
    /// What is varied, in whose unit loads are: users, requests per second, or times the speed of a trace.
    pub vary: Axis,
    /// How many different loads are compared, 3 or more.
    pub loads: usize,
    /// What counts as throughput.
    pub throughput: Served,
    /// The knee: the lowest load whose throughput the higher ones do not exceed by more than 5 % on average, up to the
    /// best of them; `None` where throughput still grows.
    pub at: Option<LoadPoint>,
    /// The load below it, which had less; where throughput still grows, the one below the highest. `None` where the knee
    /// is the lowest load.
    pub below: Option<LoadPoint>,
    /// The highest load.
    pub last: LoadPoint,
    /// Latency grows behind the knee, as it must where the server is full. Where it does not, something else holds
    /// throughput back.
    pub waits: bool,
}

/// What of throughput is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Served {
    /// Output tokens.
    #[serde(rename = "out_tok_s")]
    OutputTokens,
    /// Requests that ended well, where nothing is generated or tokens are not known.
    #[serde(rename = "req_s")]
    Requests,
}

/// A load of a sweep; repeats of it are one, with their mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// The load, in the unit of what is varied.
    pub load: f64,
    /// Throughput, per second.
    pub per_s: f64,
    /// Mean E2E, ns; from the planned send where requests are judged from it.
    pub e2e_ns: f64,
}

impl RunFile {
    /// Puts in its place what the loads of its sweep say together; nothing where there is no sweep of three loads,
    /// of a search for capacity, whose levels are as long as they had to be, and of one share of a run.
    ///
    /// A pure function of the levels' blocks, to be called again when these have changed.
    pub fn find_knee(&mut self) {
        let is_part = self.plan.read().is_ok_and(|plan| plan.share.is_some());
        self.knee = match self.capacity {
            None if !is_part => KneeBlock::of(&self.levels),
            _ => None,
        };
    }
}

impl LevelBlock {
    /// How much of `vary` the level has: users, requests per second, times the speed of a trace, or the length that it has
    /// in place of the workload's; `None` where that is not one number.
    #[must_use]
    pub fn amount(&self, vary: Axis) -> Option<f64> {
        let setting = self.setting.read().ok()?;
        match vary {
            Axis::Concurrency => setting.load.users.map(f64::from),
            Axis::InputLen => setting.sizes.input_words.map(f64::from),
            Axis::OutputLen => setting.sizes.output_tokens.map(f64::from),
            Axis::Rate => setting.load.rate(),
            Axis::Speedup => setting.load.speedup(),
        }
    }

    /// Whether all users of a closed loop were there; true of other loads. With fewer requests than users the others never
    /// came; where some pause or fail, the most in flight does not tell, and nobody is said to be missing.
    #[must_use]
    pub fn has_all_users(&self) -> bool {
        let Ok(load) = self.setting.read().map(|setting| setting.load) else { return true };
        let tells = load.think_s <= 0.0 && self.counts.failed + self.counts.cancelled == 0;
        match (load.users, self.in_flight) {
            (Some(users), Some(in_flight)) if tells => in_flight.max >= u64::from(users),
            _ => true,
        }
    }
}

impl KneeBlock {
    /// Of the largest sweep among `levels`, the first of equal ones: loads that differ in what is varied alone.
    #[must_use]
    pub fn of(levels: &[LevelBlock]) -> Option<KneeBlock> {
        let mut sweeps: Vec<(Kind, Vec<(f64, &LevelBlock)>)> = Vec::new();
        for level in levels.iter().filter(|level| !level.interrupted && level.has_all_users()) {
            let Some((kind, load)) = level.setting.read().ok().and_then(|setting| kind(&setting.load)) else {
                continue;
            };
            match sweeps.iter_mut().find(|sweep| sweep.0 == kind) {
                Some((_, levels)) => levels.push((load, level)),
                None => sweeps.push((kind, vec![(load, level)])),
            }
        }
        let bent = sweeps.iter().filter_map(|(kind, levels)| KneeBlock::of_sweep(*kind, levels));
        bent.reduce(|most, next| if next.loads > most.loads { next } else { most })
    }

    fn of_sweep(kind: Kind, levels: &[(f64, &LevelBlock)]) -> Option<KneeBlock> {
        let generates = levels.iter().all(|(_, level)| level.rates.window.out_tok_s > 0.0);
        let throughput = if generates { Served::OutputTokens } else { Served::Requests };
        let points: Vec<Point> =
            levels.iter().filter_map(|(load, level)| point(*load, level, throughput, kind)).collect();
        let sweep = Sweep::of(&points);
        let of = |place: usize| sweep.points().get(place).map(|point| LoadPoint::from(*point));
        let (place, waits) = match sweep.bend()? {
            Bend::Knee(place) => (Some(place), true),
            Bend::Idle(place) => (Some(place), false),
            Bend::Growing => (None, true),
        };
        let loads = sweep.points().len();
        if loads < LOADS_MIN {
            return None;
        }
        Some(KneeBlock {
            vary: kind.vary,
            loads,
            throughput,
            at: place.and_then(of),
            below: place.unwrap_or(loads - 1).checked_sub(1).and_then(of),
            last: of(loads - 1)?,
            waits,
        })
    }
}

/// What the loads of a sweep have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kind {
    vary: Axis,
    think_s: f64,
    gaps: Option<Gaps>,
    cap: Option<u32>,
    from_plan: bool,
}

/// The kind of `load`, and how much of it there is; `None` of bursts, of loads that vary over time, and of users with a
/// schedule, who are neither users that wait nor arrivals that do not.
fn kind(load: &Load) -> Option<(Kind, f64)> {
    let (vary, amount) = match (load.users, load.speedup()) {
        (Some(users), _) if load.interval_s().is_none() => (Axis::Concurrency, f64::from(users)),
        (Some(_), _) => return None,
        (None, Some(speedup)) => (Axis::Speedup, speedup),
        (None, None) => (Axis::Rate, load.rate()?),
    };
    let gaps = load.arrivals.gaps();
    if vary == Axis::Rate && gaps.is_none() {
        return None;
    }
    let from_plan = load.judged_from_plan();
    Some((Kind { vary, think_s: load.think_s, gaps, cap: load.cap, from_plan }, amount))
}

fn point(load: f64, level: &LevelBlock, throughput: Served, kind: Kind) -> Option<Point> {
    let metric = if kind.from_plan { Metric::E2ePlan } else { Metric::E2e };
    let e2e = level.distributions.get(&metric).or_else(|| level.distributions.get(&Metric::E2e))?;
    let rates = &level.rates.window;
    let throughput = match throughput {
        Served::OutputTokens => rates.out_tok_s,
        Served::Requests => rates.req_s,
    };
    Some(Point { load, throughput, latency: e2e.mean? })
}

impl From<Point> for LoadPoint {
    fn from(point: Point) -> LoadPoint {
        LoadPoint { load: point.load, per_s: point.throughput, e2e_ns: point.latency }
    }
}
