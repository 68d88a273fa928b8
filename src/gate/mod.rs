//! The gate: did a candidate get worse than its baseline by more than allowed, as far as can be told.
//!
//! Every gated figure of every load that both runs have gets the interval of its change, all intervals holding together
//! with the confidence of the [`Thresholds`] (each is wider the more there are: Bonferroni, which needs no assumption on
//! how figures of the same requests depend on each other). Then each figure is
//!
//! - **pass** if its whole interval is within the limit,
//! - **regression** if its whole interval is beyond it,
//! - **inconclusive** otherwise, with the number of requests that would decide.
//!
//! A point estimate beyond the limit is no regression, and one within it is no pass: that is what makes a verdict that
//! does not flip from run to run.

mod requests;
mod thresholds;

use serde::Serialize;

use crate::compare::{Difference, Estimate, Figure, LoadOf, Remark, RunName, Sample, Unit, between};
use crate::compare::{alone, in_order, limits};
use crate::plan::{Grade, Slo};

pub use requests::Needed;
pub use thresholds::{Against, Limit, Thresholds, Where};

/// What a gate says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing is worse by more than allowed.
    Pass,
    /// It cannot be told.
    Inconclusive,
    /// Something is.
    Regression,
}

/// A candidate held against its baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Always `tokload.check`.
    pub schema: &'static str,
    /// Version of the schema.
    pub version: u32,
    /// The gravest of its loads.
    pub outcome: Outcome,
    /// All intervals hold together with this probability.
    pub confidence: f64,
    /// Figures of loads that were compared: what the probability is shared by.
    pub comparisons: u64,
    /// The run that is judged.
    pub candidate: RunName,
    /// The runs that it is held against.
    pub baselines: Vec<RunName>,
    /// The loads that both have, in the order of the candidate.
    pub loads: Vec<CheckedLoad>,
    /// Loads that only one side has.
    pub unmatched: Vec<String>,
    /// What besides the server differs, and what the runs lack.
    pub remarks: Vec<Remark>,
}

/// One load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedLoad {
    /// The load in words.
    pub load: String,
    /// The gravest of its figures.
    pub outcome: Outcome,
    /// Requests planned in the windows of the candidate.
    pub candidate_requests: u64,
    /// Those of all baselines.
    pub baseline_requests: u64,
    /// What would decide all its figures; `None` where all are decided, or where no number would.
    pub needed: Option<Needed>,
    /// The gated figures.
    pub figures: Vec<Checked>,
}

/// One figure of a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Checked {
    /// Its name.
    pub figure: Figure,
    /// Its unit.
    pub unit: &'static str,
    /// Its value in the baseline; `None` where there is none, or where the limit is on the candidate alone.
    pub baseline: Option<f64>,
    /// Its value in the candidate.
    pub candidate: Option<f64>,
    /// The change with its interval; `None` where a side has no value.
    pub difference: Option<Difference>,
    /// Most that it may get worse by: a share of the baseline, or points of a share.
    pub limit: f64,
    /// What it is limited against.
    pub against: Against,
    /// Pass, regression, or neither.
    pub outcome: Outcome,
    /// Why it is neither.
    pub reason: Option<Reason>,
    /// Requests that would decide it.
    pub needed: Option<Needed>,
}

/// Why a figure is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A side has no value.
    Missing,
    /// A queue grew: the latency has no steady value, however many requests there are.
    Growing,
    /// How much the requests resemble each other was not kept, so nothing is known of the interval.
    NoRecords,
    /// The requests are worth too few independent ones.
    TooFew,
    /// The interval holds the limit.
    Wide,
    /// Runs differ by so much among themselves that only more of them would help.
    RunsDiffer,
}

/// Holds `candidate` against `baselines`, of which there is at least one; several make a noise floor.
///
/// Goodput is judged by the same limits in all of them.
#[must_use]
pub fn check(baselines: &[Sample], candidate: &Sample, thresholds: &Thresholds) -> Report {
    let slo = thresholds.slo.or_else(|| candidate.slo()).unwrap_or_default();
    let mut pairs = Vec::new();
    let mut unmatched = Vec::new();
    let of_baselines: Vec<Vec<LoadOf<'_>>> = baselines.iter().map(Sample::loads).collect();
    let loads = candidate.loads();
    for load in &loads {
        let twins = || of_baselines.iter().flatten().filter(|twin| twin.key == load.key);
        match twins().next() {
            Some(_) => pairs.push(Pair { load, baselines: twins().collect() }),
            None => unmatched.push(load.label.clone()),
        }
    }
    for load in of_baselines.iter().flatten() {
        if !loads.iter().any(|own| own.key == load.key) && !unmatched.contains(&load.label) {
            unmatched.push(load.label.clone());
        }
    }
    let gated: Vec<Vec<Gated>> = pairs.iter().map(|pair| pair.gated(thresholds, slo)).collect();
    let comparisons = gated.iter().flatten().count() as u64;
    let tail = thresholds.confidence.two_sided_tail() / comparisons.max(1) as f64;
    let checked: Vec<CheckedLoad> =
        pairs.iter().zip(&gated).map(|(pair, gated)| pair.checked(gated, tail)).collect();
    let gravest = checked.iter().map(|load| load.outcome).max();
    let open = if unmatched.is_empty() { Outcome::Pass } else { Outcome::Inconclusive };
    Report {
        schema: "tokload.check",
        version: 1,
        outcome: gravest.map_or(Outcome::Inconclusive, |gravest| gravest.max(open)),
        confidence: thresholds.confidence.level(),
        comparisons,
        candidate: candidate.run_name(),
        baselines: baselines.iter().map(Sample::run_name).collect(),
        loads: checked,
        unmatched,
        remarks: remarks(baselines, candidate, thresholds.slo.is_none()),
    }
}

/// A load with its twins.
struct Pair<'a> {
    load: &'a LoadOf<'a>,
    /// One for each baseline that has it.
    baselines: Vec<&'a LoadOf<'a>>,
}

/// A limit with what is known on both sides.
struct Gated {
    limit: Limit,
    figure: Figure,
    base: Option<Estimate>,
    own: Option<Estimate>,
    growing: bool,
}

impl Pair<'_> {
    /// What is gated here. What neither side has is no figure of this load.
    fn gated(&self, thresholds: &Thresholds, slo: Slo) -> Vec<Gated> {
        let from_plan = self.load.from_plan;
        let grows = self.load.latency_grows() || self.baselines.iter().any(|load| load.latency_grows());
        let units: Vec<Unit<'_>> = match self.baselines.as_slice() {
            [one] => Unit::rounds_of(one),
            several => {
                several.iter().map(|load| Unit { rounds: load.rounds.clone(), is_run: true }).collect()
            }
        };
        let own_units = Unit::rounds_of(self.load);
        let of_limit = |limit: &Limit| {
            let figure = if from_plan { limit.figure.from_plan() } else { limit.figure };
            let own = Estimate::of(figure, &own_units, slo, from_plan);
            let base = match limit.against {
                Against::Baseline => Estimate::of(figure, &units, slo, from_plan),
                Against::Nothing => own.as_ref().map(|_| Estimate::exact(0.0, figure.scale())),
            };
            let own = own.map(|own| match &base {
                Some(base) if self.baselines.len() > 1 => own.among(base, self.baselines.len()),
                _ => own,
            });
            let growing = grows && figure.is_latency();
            (own.is_some() || base.is_some()).then_some(Gated { limit: *limit, figure, base, own, growing })
        };
        let here = thresholds.limits.iter().filter(|limit| match limit.place {
            Where::Everywhere => true,
            Where::UnderFullLoad => !from_plan || grows,
        });
        here.filter_map(of_limit).collect()
    }

    fn checked(&self, gated: &[Gated], tail: f64) -> CheckedLoad {
        let requests = (self.load.requests(), self.baselines.iter().map(|load| load.requests()).sum());
        let figures: Vec<Checked> = gated.iter().map(|gated| gated.checked(tail, requests)).collect();
        let needed = figures.iter().filter_map(|figure| figure.needed);
        CheckedLoad {
            load: self.load.label.clone(),
            outcome: figures.iter().map(|figure| figure.outcome).max().unwrap_or(Outcome::Inconclusive),
            candidate_requests: requests.0,
            baseline_requests: requests.1,
            needed: needed.reduce(Needed::max),
            figures,
        }
    }
}

impl Gated {
    fn checked(&self, tail: f64, requests: (u64, u64)) -> Checked {
        let both = self.base.as_ref().zip(self.own.as_ref());
        let (outcome, reason) = self.outcome(tail);
        let undecided = matches!(reason, Some(Reason::TooFew | Reason::Wide));
        let needed =
            both.filter(|_| undecided).map(|(base, own)| requests::needed(base, own, &self.limit, tail));
        let (needed, reason) = match needed {
            Some(Some(times)) => (Some(Needed::times(times, requests)), reason),
            // Too few even to say how many it would take.
            Some(None) if reason == Some(Reason::TooFew) => (None, reason),
            // No number of requests would do.
            Some(None) => (None, Some(Reason::RunsDiffer)),
            None => (None, reason),
        };
        let is_compared = self.limit.against == Against::Baseline;
        Checked {
            figure: self.figure,
            unit: self.figure.unit(),
            baseline: self.base.as_ref().filter(|_| is_compared).map(|base| base.value),
            candidate: self.own.as_ref().map(|own| own.value),
            difference: both.map(|(base, own)| Difference::between(base, own, tail)),
            limit: self.limit.worse,
            against: self.limit.against,
            outcome,
            reason,
            needed,
        }
    }

    fn outcome(&self, tail: f64) -> (Outcome, Option<Reason>) {
        let open = |reason| (Outcome::Inconclusive, Some(reason));
        let Some((base, own)) = self.base.as_ref().zip(self.own.as_ref()) else {
            return open(Reason::Missing);
        };
        if self.growing {
            return open(Reason::Growing);
        }
        let worse = self.limit.worsening(base, own, tail, 1.0);
        // Exactly the limit is within it, whatever the last digits of two logarithms are.
        let limit = worse.limit + ROUNDING;
        if worse.low > limit {
            return (Outcome::Regression, None);
        }
        if worse.high <= limit {
            return (Outcome::Pass, None);
        }
        if !(base.is_bounded() && own.is_bounded()) {
            return open(Reason::NoRecords);
        }
        open(if base.is_enough() && own.is_enough() { Reason::Wide } else { Reason::TooFew })
    }
}

fn remarks(baselines: &[Sample], candidate: &Sample, own_limits: bool) -> Vec<Remark> {
    let mut remarks: Vec<Remark> = baselines.iter().chain([candidate]).flat_map(alone).collect();
    for baseline in baselines {
        remarks.extend(between(baseline, candidate));
        remarks.extend(limits(baseline, candidate).filter(|_| own_limits));
    }
    if (2..crate::stats::Repeats::ENOUGH).contains(&baselines.len()) {
        let text = format!(
            "{} baselines say little of how much runs differ among themselves: take {}",
            baselines.len(),
            crate::stats::Repeats::ENOUGH
        );
        remarks.push(Remark { grade: Grade::Info, about: "run", text });
    }
    in_order(remarks)
}

/// What two logarithms of the same number may differ by.
const ROUNDING: f64 = 1e-12;

impl Report {
    /// Whether something besides the server may be the cause of a difference, or a load was not compared.
    #[must_use]
    pub fn is_doubtful(&self) -> bool {
        !self.unmatched.is_empty() || self.remarks.iter().any(|remark| remark.grade > Grade::Info)
    }
}
