//! What a search for capacity looks for, and when a level of it may end.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Arrivals, Error, Lengths, Level, Load, Plan, in_label};
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
    /// A quick look, which ends within so many seconds of its first request, above 0: one user stands first, by itself,
    /// and levels are cut to the time that is left. Absent: loads take the time that they take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_s: Option<f64>,
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
    /// Words of each synthetic prompt, at one load.
    #[serde(rename = "input-len")]
    InputLen,
    /// Tokens of each answer, at one load.
    #[serde(rename = "output-len")]
    OutputLen,
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
            start: vary.usual_start(),
            max: vary.usual_max(),
            tolerance: Search::usual_tolerance(),
            time_max_s: None,
            times_max: Search::usual_times(),
            overload: false,
            within_s: None,
        }
    }

    /// How near to `low` another load may be without being told apart from it any more.
    #[must_use]
    pub fn step(&self, low: f64) -> f64 {
        let step = self.tolerance * low;
        if self.vary.is_whole() { step.floor().max(1.0) } else { step }
    }

    /// Whether two loads are so near that they need not be told apart any more.
    #[must_use]
    pub fn is_near(&self, low: f64, high: f64) -> bool {
        // With some room, or 1.1 would not be near enough to 1.
        high - low <= self.step(low) * (1.0 + 1e-9)
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
                level.load.users = Some(load as u32);
            }
            Axis::Rate => level.load.arrivals = at_rate(&level.load.arrivals, load),
            Axis::Speedup => level.load.arrivals = Arrivals::Trace { speedup: load },
            Axis::InputLen => level.sizes.input_words = Some(load as u32),
            Axis::OutputLen => level.sizes.output_tokens = Some(load as u32),
        }
        if let Some(users) = level.load.users {
            // Each user sends several times, or the level would be its own ramp.
            stop.units = stop.units.map(|units| units.max(u64::from(users) * ROUNDS_MIN));
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
    pub const ALL: [Axis; 5] =
        [Axis::Concurrency, Axis::Rate, Axis::Speedup, Axis::InputLen, Axis::OutputLen];

    /// As typed and stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Axis::Concurrency => "concurrency",
            Axis::Rate => "rate",
            Axis::Speedup => "speedup",
            Axis::InputLen => "input-len",
            Axis::OutputLen => "output-len",
        }
    }

    /// The option that gives it a single value.
    #[must_use]
    pub const fn option(self) -> &'static str {
        match self {
            Axis::Concurrency => "--max-concurrency",
            Axis::Rate => "--request-rate",
            Axis::Speedup => "--trace-speedup",
            Axis::InputLen => "--random-input-len",
            Axis::OutputLen => "--random-output-len",
        }
    }

    /// Whether it is the length of prompts or answers, which are searched at one load.
    #[must_use]
    pub const fn is_length(self) -> bool {
        matches!(self, Axis::InputLen | Axis::OutputLen)
    }

    /// The load that is tried first where nobody says.
    #[must_use]
    pub const fn usual_start(self) -> f64 {
        match self {
            Axis::Concurrency | Axis::Rate | Axis::Speedup => 1.0,
            Axis::InputLen => 128.0,
            Axis::OutputLen => 16.0,
        }
    }

    /// Whether its loads are whole numbers.
    #[must_use]
    pub const fn is_whole(self) -> bool {
        matches!(self, Axis::Concurrency | Axis::InputLen | Axis::OutputLen)
    }

    /// The highest load that is tried where nobody says.
    #[must_use]
    pub const fn usual_max(self) -> f64 {
        match self {
            Axis::Concurrency => 4096.0,
            Axis::Rate => 1e6,
            Axis::Speedup => 1000.0,
            Axis::InputLen => 131_072.0,
            Axis::OutputLen => 8192.0,
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

    /// A load in words: `14 requests at once`, `3.5 requests per second`, `prompts of 3000 tokens`.
    #[must_use]
    pub fn in_words(self, load: f64) -> String {
        self.span_in_words(load, load)
    }

    /// The loads from `low` to `high` in words: `14 to 15 requests at once`, `prompts of 3000 to 3199 tokens`.
    #[must_use]
    pub fn span_in_words(self, low: f64, high: f64) -> String {
        let loads = match [low, high].map(in_label) {
            [least, most] if low < high && least != most => format!("{least} to {most}"),
            _ if low < high => format!("{low} to {high}"),
            [only, _] => only,
        };
        let plural = if low == 1.0 && high == 1.0 { "" } else { "s" };
        match self {
            Axis::Concurrency => format!("{loads} request{plural} at once"),
            Axis::Rate => format!("{loads} requests per second"),
            Axis::Speedup => format!("{loads} times the speed of the trace"),
            Axis::InputLen => format!("prompts of {loads} token{plural}"),
            Axis::OutputLen => format!("answers of {loads} token{plural}"),
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
        // Also by the name of the option that gives it a single value.
        let known = |axis: &Axis| axis.name() == name || axis.option().trim_start_matches("--") == name;
        let axis = Axis::ALL.into_iter().find(known);
        axis.ok_or("give concurrency, rate, speedup, input-len or output-len")
    }
}

impl Plan {
    /// A search and its level that fit each other.
    pub(super) fn check_search(&self) -> Result<(), Error> {
        let Some(search) = &self.search else { return Ok(()) };
        let wrong = |option: &str, wrong: String, remedy: &str| Err(Error::new(option, wrong, remedy));
        let Search { vary, target, failures_max, start, max, tolerance, .. } = *search;
        let Search { time_max_s, times_max, within_s, .. } = *search;
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
        let most = if vary.is_length() { f64::from(Lengths::MAX) } else { LOAD_MAX };
        if max < start || max > most {
            let remedy = format!("give a load from --start ({start}) to {most}");
            return wrong("--max", format!("{max} is no highest load"), &remedy);
        }
        if time_max_s.is_some_and(|s| !(s.is_finite() && s > 0.0)) {
            return wrong("--max-time", "is no time".to_owned(), "give seconds, or as in 10m");
        }
        if within_s.is_some_and(|s| !(s.is_finite() && s > 0.0 && vary == Axis::Concurrency)) {
            let remedy = "give seconds above 0, to a search for concurrency";
            return wrong("search.within_s", "is no time of a quick look".to_owned(), remedy);
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
            let remedy = match vary.is_length() {
                true => "leave out comma lists: a length is searched for at one load",
                false => "leave out comma lists: the search chooses the loads",
            };
            return wrong("find-capacity", "there are several levels".to_owned(), remedy);
        };
        let fits = match vary {
            Axis::Concurrency => level.load.users.is_some() && level.load.arrivals == Arrivals::Closed,
            Axis::Rate => matches!(
                level.load.arrivals,
                Arrivals::Constant { .. } | Arrivals::Gamma { .. } | Arrivals::Poisson { .. }
            ),
            Axis::Speedup => level.load.speedup().is_some(),
            Axis::InputLen | Axis::OutputLen => return self.check_length_search(vary, &level.load),
        };
        if !fits {
            let remedy = match vary {
                Axis::Concurrency => "give neither a rate nor a pace nor a trace",
                Axis::Rate => {
                    "give no number of users and no trace; --max-concurrency caps what is in flight"
                }
                Axis::Speedup => "give the trace by --trace",
                Axis::InputLen | Axis::OutputLen => "give one length",
            };
            return wrong("--vary", format!("the load has no {vary} to vary"), remedy);
        }
        Ok(())
    }
}

impl Plan {
    /// A load that stays the same, and one length to vary.
    fn check_length_search(&self, vary: Axis, load: &Load) -> Result<(), Error> {
        let wrong = |wrong: String, remedy: &str| Err(Error::new("--vary", wrong, remedy));
        let workload = &self.workload;
        if workload.is_recorded() || workload.conversation.is_some() {
            let whose = if workload.is_recorded() { "a file has" } else { "the turns of a session have" };
            let remedy = "search with synthetic prompts of one turn";
            return wrong(format!("{whose} lengths of their own, and {vary} is none of them"), remedy);
        }
        if load.arrivals == Arrivals::Burst || load.has_own_shape() {
            let remedy = "give --max-concurrency or --request-rate";
            return wrong(format!("{vary} is searched for at a load that stays the same"), remedy);
        }
        let lengths = if vary == Axis::InputLen { &workload.input_words } else { &workload.output_tokens };
        if lengths.fixed().is_none() {
            let remedy = "leave out what spreads the lengths";
            return wrong(format!("lengths that differ are no {vary} to vary"), remedy);
        }
        let hit_fraction = workload.prefix.and_then(|prefix| prefix.hit_fraction);
        if vary == Axis::InputLen && hit_fraction.is_some() {
            let remedy = "give --random-prefix-len, which all prompts have";
            return wrong("a hit fraction depends on the length of prompts".to_owned(), remedy);
        }
        Ok(())
    }
}

/// Requests of a level per user, at least.
const ROUNDS_MIN: u64 = 8;
/// Above it whole loads would not be whole.
const LOAD_MAX: f64 = 1e9;
const TIMES_MAX: u32 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_named_as_stored_or_by_their_options() {
        for axis in Axis::ALL {
            let typed = axis.option().trim_start_matches("--");
            assert_eq!((axis.name().parse(), typed.parse()), (Ok(axis), Ok(axis)));
            assert_eq!(serde_json::to_value(axis).unwrap(), axis.name());
        }
        assert!("prompts".parse::<Axis>().is_err());
    }

    #[test]
    fn loads_in_words() {
        let span = |axis: Axis, low, high| axis.span_in_words(low, high);
        assert_eq!(span(Axis::Concurrency, 1.0, 1.0), "1 request at once");
        assert_eq!(span(Axis::Concurrency, 14.0, 15.0), "14 to 15 requests at once");
        assert_eq!(span(Axis::InputLen, 3000.0, 3199.0), "prompts of 3000 to 3199 tokens");
        assert_eq!(Axis::OutputLen.in_words(1.0), "answers of 1 token");
        assert_eq!(Axis::Rate.in_words(2.5), "2.5 requests per second");
        let found = 29.802_322_387_695_313;
        assert_eq!(span(Axis::Rate, found, 31.25), "29.802 to 31.25 requests per second");
        // Where they would look alike they have all their digits.
        assert_eq!(span(Axis::Rate, 29.802, 29.8023), "29.802 to 29.8023 requests per second");
    }
}
