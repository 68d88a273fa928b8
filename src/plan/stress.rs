//! A stress test: normal load, more than the server can take, and normal load again.

use serde::{Deserialize, Serialize};

use super::{Arrivals, Decide, Error, Gaps, Level, Piece, Plan, Rate, Series, Shape, Stop, Varying};

/// What a stress test does to the load of the plan's level, which is the normal one.
///
/// The level that is looked at has four pieces: normal load, a ramp to the overload, the overload, and normal load again.
/// Where the overload is not given it is looked for first: by levels of their own, each a quarter above the one before it,
/// until one fails.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stress {
    /// The overload, requests per second; absent: the first rate of the steps that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to_rate: Option<f64>,
    /// How long the load is normal at first, s. 30 by default.
    pub before_s: f64,
    /// How long it takes to rise, and how long a step of the search is, s. 10 by default.
    pub ramp_s: f64,
    /// How long the overload lasts, s. 30 by default.
    pub hold_s: f64,
    /// How long the load is normal in the end, s. 60 by default.
    pub after_s: f64,
    /// A step fails when surely more than this share of its requests fail or miss a limit. 0.1 by default.
    pub bad_max: f64,
}

/// A part of the level that a stress test looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StressPhase {
    /// Normal load.
    Before,
    /// The load rises.
    Ramp,
    /// More than the server can take.
    Hold,
    /// Normal load again.
    After,
}

impl StressPhase {
    /// In their order.
    pub const ALL: [StressPhase; 4] =
        [StressPhase::Before, StressPhase::Ramp, StressPhase::Hold, StressPhase::After];

    /// As stored.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            StressPhase::Before => "before",
            StressPhase::Ramp => "ramp",
            StressPhase::Hold => "hold",
            StressPhase::After => "after",
        }
    }
}

impl Stress {
    /// By how much each step of the search for the overload is above the one before it.
    pub const STEP: f64 = 1.25;
    /// Steps at most: a hundred times the normal load.
    pub const STEPS_MAX: usize = 21;

    /// The rate of step `number` of the search, from 1, above a normal rate.
    #[must_use]
    pub fn step_rate(normal: f64, number: usize) -> f64 {
        normal * Stress::STEP.powi(i32::try_from(number).unwrap_or(i32::MAX))
    }

    /// Step `number` of the search as a level like the normal one; it ends when it is known that it fails.
    #[must_use]
    pub fn step(&self, like: &Level, number: usize) -> Option<Level> {
        let (gaps, normal) = normal_of(like)?;
        let mut level = like.clone();
        level.load.arrivals = steady(gaps, Stress::step_rate(normal, number));
        level.stop = Stop { units: None, duration_s: Some(self.ramp_s), ..like.stop.clone() };
        level.decide = Some(Decide {
            target: 1.0 - self.bad_max,
            failures_max: self.bad_max,
            confidence: 0.95,
            times_max: 1,
        });
        Some(level)
    }

    /// The level that is looked at, with an overload of `to_rate`: like the normal one; `None` where that has no rate.
    #[must_use]
    pub fn level(&self, like: &Level, to_rate: f64) -> Option<Level> {
        let (gaps, normal) = normal_of(like)?;
        let pieces = vec![
            Piece::steady(normal, self.before_s),
            Piece::ramp(normal, to_rate, self.ramp_s, Shape::Linear),
            Piece::steady(to_rate, self.hold_s),
            Piece::steady(normal, self.after_s),
        ];
        let rate = Rate::Series(Series { pieces, repeat: false });
        let mut level = like.clone();
        level.load.arrivals = Arrivals::with(Varying { gaps, rate, exact_count: false });
        level.stop = Stop { units: None, duration_s: Some(self.length_s()), ..like.stop.clone() };
        level.decide = None;
        Some(level)
    }

    /// Length of the level that is looked at, s.
    #[must_use]
    pub fn length_s(&self) -> f64 {
        self.before_s + self.ramp_s + self.hold_s + self.after_s
    }

    /// Requests that may be under way at once behind an overload of which the server answers nothing; where it is not
    /// known, of four times the normal load.
    pub(super) fn backlog(&self, like: &Level) -> u64 {
        let normal = normal_of(like).map_or(0.0, |(_, rate)| rate);
        let most = self.to_rate.unwrap_or(4.0 * normal);
        (most * (self.ramp_s / 2.0 + self.hold_s)).ceil() as u64
    }

    /// What the test does, line by line.
    #[must_use]
    pub fn in_words(&self, like: &Level) -> Vec<String> {
        let Some((_, normal)) = normal_of(like) else { return Vec::new() };
        let (before, ramp, hold, after) = (self.before_s, self.ramp_s, self.hold_s, self.after_s);
        let phases = |overload: &str| {
            format!(
                "stress test: {normal} req/s for {before} s, a ramp of {ramp} s, {overload} for {hold} s, {normal} req/s \
                 for {after} s"
            )
        };
        let Some(to) = self.to_rate else {
            let steps: Vec<String> =
                (1..=3).map(|step| format!("{:.4}", Stress::step_rate(normal, step))).collect();
            return vec![
                format!(
                    "looked for first: levels of {ramp} s at {}, ... req/s, until more than {} % of the requests are bad",
                    steps.join(", "),
                    self.bad_max * 100.0
                ),
                phases("the rate that fails"),
            ];
        };
        vec![phases(&format!("{to} req/s"))]
    }

    /// The phases of `level` with their beginnings and ends, s after its first planned send; `None` where it is not the
    /// level that is looked at.
    #[must_use]
    pub fn phases(&self, level: &Level) -> Option<[(StressPhase, f64, f64); 4]> {
        let pieces: &[Piece; 4] = level.load.arrivals.series()?.pieces.as_slice().try_into().ok()?;
        let mut at = 0.0;
        let mut next = |place: usize| {
            let begins = at;
            at += pieces[place].length_s;
            (StressPhase::ALL[place], begins, at)
        };
        Some([next(0), next(1), next(2), next(3)])
    }
}

impl Default for Stress {
    fn default() -> Stress {
        Stress { to_rate: None, before_s: 30.0, ramp_s: 10.0, hold_s: 30.0, after_s: 60.0, bad_max: 0.1 }
    }
}

impl Plan {
    pub(super) fn check_stress(&self) -> Result<(), Error> {
        let Some(stress) = &self.stress else { return Ok(()) };
        let wrong = |option: &str, wrong: String, remedy: &str| Err(Error::new(option, wrong, remedy));
        let [level] = self.levels.as_slice() else {
            return wrong("--stress", "takes one normal load".to_owned(), "give one --request-rate");
        };
        let Some((_, normal)) = normal_of(level) else {
            let remedy = "give the normal load by --request-rate; users of a closed loop wait, and never overload a server";
            return wrong("--stress", "needs a rate".to_owned(), remedy);
        };
        for (option, s) in [
            ("--stress-before", stress.before_s),
            ("--stress-ramp", stress.ramp_s),
            ("--stress-hold", stress.hold_s),
            ("--stress-after", stress.after_s),
        ] {
            if !(s.is_finite() && s > 0.0) {
                return wrong(option, format!("{s} s is no length"), "give seconds above 0");
            }
        }
        if let Some(to) = stress.to_rate.filter(|to| !(to.is_finite() && *to > normal)) {
            let remedy = "give more requests per second than --request-rate";
            return wrong("--stress-to", format!("{to} is no more than the normal load of {normal}"), remedy);
        }
        if !(stress.bad_max > 0.0 && stress.bad_max < 1.0) {
            let remedy = "give a share above 0 and below 1, as in 10%";
            return wrong("--stress-bad", format!("{} is no share of requests", stress.bad_max), remedy);
        }
        for (given, what) in [
            (self.search.is_some(), "a search for capacity"),
            (self.until.is_some(), "--until-ci"),
            (self.runs > 1, "--num-runs"),
            (level.stop.units.is_some(), "--num-prompts"),
        ] {
            if given {
                let remedy = "leave out one of the two; --stress-before, --stress-hold and --stress-after are its lengths";
                return wrong("--stress", format!("does not go with {what}"), remedy);
            }
        }
        if self.share.is_some_and(|share| share.of > 1) && stress.to_rate.is_none() {
            let remedy = "give the overload by --stress-to";
            return wrong("--stress", "cannot look for an overload as a share of a run".to_owned(), remedy);
        }
        Ok(())
    }
}

/// The gaps and the rate of the normal load; `None` where it has no single rate.
fn normal_of(level: &Level) -> Option<(Gaps, f64)> {
    if level.load.users.is_some() {
        return None;
    }
    Some((level.load.arrivals.gaps()?, level.load.rate()?))
}

fn steady(gaps: Gaps, rate: f64) -> Arrivals {
    match gaps {
        Gaps::Constant => Arrivals::Constant { rate },
        Gaps::Gamma { burstiness } => Arrivals::Gamma { rate, burstiness },
        Gaps::Poisson => Arrivals::Poisson { rate },
    }
}
