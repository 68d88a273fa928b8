//! What a search for capacity looks for, and when a level of it may end.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Arrivals, Error, Level, Plan};
use crate::stats::Confidence;

/// The highest load at which enough requests are good: what `find-capacity` looks for.
///
/// The plan has one level then, which is like all that are tried but for their load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// What is varied.
    pub vary: Axis,
    /// Share of good requests that is to be kept, above 0 and below 1. 0.9 by default.
    #[serde(default = "Search::usual_target")]
    pub target: f64,
    /// Share of requests that may fail, 0 to below 1. 0 by default.
    #[serde(default)]
    pub failures_max: f64,
    /// The first load, in the unit of what is varied.
    pub start: f64,
    /// The highest load that is tried.
    pub max: f64,
    /// How near the ends of the answer are to be, as a share of the lower one, above 0 and below 1; whole loads are never
    /// nearer than 1. 0.1 by default.
    #[serde(default = "Search::usual_tolerance")]
    pub tolerance: f64,
    /// No level is begun later than this, s after the search's start; absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_max_s: Option<f64>,
    /// How far an undecided level is lengthened, in planned lengths, doubling. 16 by default.
    #[serde(default = "Search::usual_times")]
    pub times_max: u32,
    /// Overload the server when the answer is found, and see whether it still bears the same load behind that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overload: bool,
}

/// What a search varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Users of a closed loop.
    Concurrency,
    /// Requests per second of an open loop.
    Rate,
    /// How much faster than recorded a trace is sent.
    Speedup,
}

/// A level may end when it is known on which side of a target its share of good requests lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decide {
    /// The target, a share above 0 and below 1.
    pub target: f64,
    /// Share of requests that may fail.
    pub failures_max: f64,
    /// How sure the one-sided bounds are, a share such as 0.95.
    pub confidence: f64,
    /// How far it is lengthened while it is undecided, in planned lengths.
    pub times_max: u32,
}

impl Search {
    const fn usual_target() -> f64 {
        0.9
    }

    const fn usual_tolerance() -> f64 {
        0.1
    }

    const fn usual_times() -> u32 {
        16
    }

    /// A search along `vary` from its usual start to its usual end, for 90 % of good requests and no failure.
    #[must_use]
    pub const fn along(vary: Axis) -> Search {
        Search {
            vary,
            target: Search::usual_target(),
            failures_max: 0.0,
            start: 1.0,
            max: vary.usual_max(),
            tolerance: Search::usual_tolerance(),
            time_max_s: None,
            times_max: Search::usual_times(),
            overload: false,
        }
    }

    /// Requests of a level that says nothing else: so many that good ones alone are enough to confirm the target, and a
    /// hundred at least.
    #[must_use]
    pub fn usual_requests(&self) -> u64 {
        let enough = 0.01f64.ln() / self.target.ln();
        if enough.is_finite() { (enough.ceil() as u64).clamp(UNITS_MIN, UNITS_MAX) } else { UNITS_MIN }
    }

    /// The level that is `like` another with `load` in place of its own, decided with `confidence`, and `times` times as
    /// long.
    #[must_use]
    pub fn level(&self, like: &Level, load: f64, confidence: Confidence, times: u32) -> Level {
        let mut level = like.clone();
        let stop = &mut level.stop;
        match self.vary {
            Axis::Concurrency => {
                let users = load as u32;
                level.load.users = Some(users);
                // Each user sends several times, or the level would be its own ramp.
                stop.units = stop.units.map(|units| units.max(u64::from(users) * ROUNDS_MIN));
            }
            Axis::Rate => level.load.arrivals = at_rate(&level.load.arrivals, load),
            Axis::Speedup => level.load.arrivals = Arrivals::Trace { speedup: load },
        }
        stop.units = stop.units.map(|units| units.saturating_mul(u64::from(times)));
        stop.duration_s = stop.duration_s.map(|s| s * f64::from(times));
        // A trace is as long as it is.
        let times_max = if self.vary == Axis::Speedup { 1 } else { self.times_max };
        level.decide = Some(Decide {
            target: self.target,
            failures_max: self.failures_max,
            confidence: confidence.level(),
            times_max,
        });
        level
    }
}

const UNITS_MIN: u64 = 100;
const UNITS_MAX: u64 = 1_000_000;

/// The same process at another rate.
pub(super) fn at_rate(arrivals: &Arrivals, rate: f64) -> Arrivals {
    match *arrivals {
        Arrivals::Constant { .. } => Arrivals::Constant { rate },
        Arrivals::Gamma { burstiness, .. } => Arrivals::Gamma { rate, burstiness },
        _ => Arrivals::Poisson { rate },
    }
}

impl Axis {
    /// All of them.
    pub const ALL: [Axis; 3] = [Axis::Concurrency, Axis::Rate, Axis::Speedup];

    /// As typed and stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Axis::Concurrency => "concurrency",
            Axis::Rate => "rate",
            Axis::Speedup => "speedup",
        }
    }

    /// Whether its loads are whole numbers.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        matches!(self, Axis::Concurrency)
    }

    /// The highest load that is tried where nobody says.
    #[must_use]
    pub const fn usual_max(self) -> f64 {
        match self {
            Axis::Concurrency => 4096.0,
            Axis::Rate => 1e6,
            Axis::Speedup => 1000.0,
        }
    }

    /// A load that can be tried.
    ///
    /// # Errors
    /// What is not above 0, or not whole where loads are; `option` gave it.
    pub fn check_load(self, option: &str, load: f64) -> Result<(), Error> {
        if load.is_finite() && load > 0.0 && (!self.is_whole() || load.fract() == 0.0) {
            return Ok(());
        }
        let kind = if self.is_whole() { "a whole number above 0" } else { "a number above 0" };
        let wrong = format!("{load} is no load of a search for {self}");
        Err(Error::new(option, wrong, format!("give {kind}")))
    }

    /// A load in words: `14 users at once`, `3.5 requests per second`.
    #[must_use]
    pub fn in_words(self, load: f64) -> String {
        match self {
            Axis::Concurrency => format!("{load} request{} at once", if load == 1.0 { "" } else { "s" }),
            Axis::Rate => format!("{load} requests per second"),
            Axis::Speedup => format!("{load} times the speed of the trace"),
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Axis {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Axis, &'static str> {
        let known = Axis::ALL.into_iter().find(|axis| axis.name() == name);
        known.ok_or("give concurrency, rate or speedup")
    }
}

impl Plan {
    /// A search and its level that fit each other.
    pub(super) fn check_search(&self) -> Result<(), Error> {
        let Some(search) = &self.search else { return Ok(()) };
        let wrong = |option: &str, wrong: String, remedy: &str| Err(Error::new(option, wrong, remedy));
        let Search { vary, target, failures_max, start, max, tolerance, time_max_s, times_max, .. } = *search;
        let inside = |share: f64| share > 0.0 && share < 1.0;
        if !inside(target) {
            return wrong("--target", format!("{target} is no share to keep"), "give one as in 90% or 0.9");
        }
        if !(0.0..1.0).contains(&failures_max) {
            return wrong(
                "--max-failures",
                format!("{failures_max} is no share"),
                "give one as in 1% or 0.01",
            );
        }
        if !inside(tolerance) {
            return wrong("--tolerance", format!("{tolerance} is no share"), "give one as in 10% or 0.1");
        }
        vary.check_load("--start", start)?;
        vary.check_load("--max", max)?;
        if max < start || max > LOAD_MAX {
            let remedy = format!("give a load from --start ({start}) to {LOAD_MAX}");
            return wrong("--max", format!("{max} is no highest load"), &remedy);
        }
        if time_max_s.is_some_and(|s| !(s.is_finite() && s > 0.0)) {
            return wrong("--max-time", "is no time".to_owned(), "give seconds, or as in 10m");
        }
        if !(1..=TIMES_MAX).contains(&times_max) {
            let remedy = format!("give a number of planned lengths from 1 to {TIMES_MAX}");
            return wrong("--max-length", format!("{times_max} is out of range"), &remedy);
        }
        if self.slo.is_empty() {
            return wrong(
                "--goodput",
                "a search needs limits to keep".to_owned(),
                "give them as in ttft:500 tpot:50",
            );
        }
        if self.runs > 1 {
            return wrong(
                "--num-runs",
                "a search runs a load as often as it has to".to_owned(),
                "leave it out",
            );
        }
        if self.share.is_some() {
            let remedy = "leave it out: search by one process, and give the load that was found to all";
            return wrong("--share", "the next load depends on the answers of all".to_owned(), remedy);
        }
        if self.workload.aborts.is_some_and(|aborts| aborts.share >= 1.0) {
            let remedy = "give less than 100, so that a search has requests to judge";
            return wrong("--request-cancellation-rate", "all requests are given up".to_owned(), remedy);
        }
        if self.workload.slow_readers.is_some_and(|slow| slow.share >= 1.0) {
            let remedy = "give --slow-reader-share below 1: goodput is without slow readers";
            return wrong(
                "--read-rate",
                "all requests are read slowly, and none is judged".to_owned(),
                remedy,
            );
        }
        if self.until.is_some() {
            let remedy = "leave it out: a level is lengthened until it is decided";
            return wrong("--until-ci", "a search ends its levels by itself".to_owned(), remedy);
        }
        let [level] = self.levels.as_slice() else {
            let remedy = "leave out comma lists: the search chooses the loads";
            return wrong("find-capacity", "there are several levels".to_owned(), remedy);
        };
        let fits = match vary {
            Axis::Concurrency => level.load.users.is_some() && level.load.arrivals == Arrivals::Closed,
            Axis::Rate => matches!(
                level.load.arrivals,
                Arrivals::Constant { .. } | Arrivals::Gamma { .. } | Arrivals::Poisson { .. }
            ),
            Axis::Speedup => level.load.speedup().is_some(),
        };
        if !fits {
            let remedy = match vary {
                Axis::Concurrency => "give neither a rate nor a pace nor a trace",
                Axis::Rate => {
                    "give no number of users and no trace; --max-concurrency caps what is in flight"
                }
                Axis::Speedup => "give the trace by --trace",
            };
            return wrong("--vary", format!("the load has no {vary} to vary"), remedy);
        }
        Ok(())
    }
}

/// Requests of a level per user, at least.
const ROUNDS_MIN: u64 = 8;
/// Above it whole loads would not be whole.
const LOAD_MAX: f64 = 1e9;
const TIMES_MAX: u32 = 1024;
