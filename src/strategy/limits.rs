//! Which limit binds, and why.

use serde::{Deserialize, Serialize};

use crate::metrics::metric::Metric;
use crate::metrics::slo::{Held, Slo, held};
use crate::metrics::{Class, Flags, Phase, Record, Tally};
use crate::plan::Axis;
use crate::run::Why;
use crate::stats::Quantile;
use crate::strategy::Trial;

/// Medians of the requests of a level that ended well; `None` without a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Medians {
    /// TTFT, ms.
    pub ttft_ms: Option<f64>,
    /// TPOT, ms.
    pub tpot_ms: Option<f64>,
    /// E2E, ms.
    pub e2e_ms: Option<f64>,
}

/// How the requests of a level stood to one limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitHeld {
    /// Its name, as in `--goodput`.
    pub name: String,
    /// The limit, ms.
    pub limit_ms: f64,
    /// Requests that did not keep it, failed ones among them.
    pub missed: u64,
    /// The value that the wished share of requests kept, ms; `None` where that share did not even have one.
    pub kept_ms: Option<f64>,
}

/// The limit that a load does not keep, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Binding {
    /// The limit; `None` where requests failed.
    pub limit: Option<LimitHeld>,
    /// Why, as far as the levels tell.
    pub cause: Cause,
    /// The load that keeps it, the medians there, and those where it is not kept.
    pub below: Option<Medians>,
    /// See `below`.
    pub above: Medians,
}

/// Why a load does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Requests fail.
    Failures,
    /// They wait for their turn: TTFT rises, TPOT hardly does.
    Queueing,
    /// They are served together, and each token takes longer: TPOT rises.
    SlowerTokens,
    /// The server refuses requests that are longer than its context.
    ContextLimit,
    /// Longer prompts take longer until their first token: TTFT rises with the length, and not faster than prefill can.
    Prefill,
    /// Longer answers take longer, at the same pace.
    LongerAnswers,
    /// Nothing in the levels tells.
    Unknown,
}

impl Medians {
    /// Those of a level.
    #[must_use]
    pub fn of(tally: &Tally) -> Medians {
        let median = |metric: Metric| Some(tally.histogram(metric).quantile(Quantile::P50)? as f64 / 1e6);
        Medians { ttft_ms: median(Metric::Ttft), tpot_ms: median(Metric::Tpot), e2e_ms: median(Metric::E2e) }
    }
}

impl LimitHeld {
    /// How the requests of a level stood to each limit of `slo`; `share` of them are to keep it.
    #[must_use]
    pub fn all(records: &[Record], slo: &Slo, from_plan: bool, share: f64) -> Vec<LimitHeld> {
        // Those that goodput counts: what a slow reader waits for is its own doing.
        let judged = |record: &&Record| {
            record.phase == Phase::Measured
                && record.outcome.class != Class::Cancelled
                && !record.flags.contains(Flags::SLOW_READER)
        };
        let rows: Vec<([Held; 5], bool)> = records
            .iter()
            .filter(judged)
            .map(|record| (held(record, slo, from_plan), record.outcome.is_ok()))
            .collect();
        (0..5).filter_map(|place| LimitHeld::of(&rows, place, share)).collect()
    }

    fn of(rows: &[([Held; 5], bool)], place: usize, share: f64) -> Option<LimitHeld> {
        let Held { name, limit_ms, .. } = rows.first()?.0[place];
        let limit_ms = limit_ms?;
        let missed = rows.iter().filter(|(held, ok)| !(*ok && held[place].is_kept())).count() as u64;
        let value = |(held, ok): &([Held; 5], bool)| match held[place] {
            _ if !ok => f64::INFINITY,
            Held { value_ns: Some(ns), .. } => ns,
            Held { if_undefined: true, .. } => 0.0,
            Held { .. } => f64::INFINITY,
        };
        let mut values: Vec<f64> = rows.iter().map(value).collect();
        values.sort_unstable_by(f64::total_cmp);
        // As for every quantile: the nearest rank. With a little less than the share, whose last place is dust.
        let rank = ((values.len() as f64 * share * (1.0 - 1e-12)).ceil() as usize).clamp(1, values.len());
        let kept_ms = Some(values[rank - 1] / 1e6).filter(|ms| ms.is_finite());
        Some(LimitHeld { name: name.to_owned(), limit_ms, missed, kept_ms })
    }
}

impl Binding {
    /// What keeps `above` from holding in a search along `vary`, compared with `below`, a load that does; `None` where nothing was looked at.
    #[must_use]
    pub fn of(vary: Axis, below: Option<&Trial>, above: &Trial) -> Option<Binding> {
        let medians = below.map(|trial| trial.medians);
        if above.judged.is_some_and(|judged| judged.why == Why::Failures && judged.failed > 0) {
            let cause = if above.too_long { Cause::ContextLimit } else { Cause::Failures };
            let above = above.medians;
            return Some(Binding { limit: None, cause, below: medians, above });
        }
        let limit = above.limits.iter().max_by_key(|limit| limit.missed).filter(|limit| limit.missed > 0)?;
        let cause = match (vary, below) {
            (Axis::InputLen | Axis::OutputLen, Some(below)) => {
                cause_of_length(vary, &limit.name, below, above)
            }
            _ => cause(&limit.name, medians, above.medians),
        };
        Some(Binding { limit: Some(limit.clone()), cause, below: medians, above: above.medians })
    }
}

/// What the medians tell about a limit that was missed.
fn cause(limit: &str, below: Option<Medians>, above: Medians) -> Cause {
    let growth = |of: fn(&Medians) -> Option<f64>| {
        let (low, high) = (of(&below?)?, of(&above)?);
        (low > 0.0).then(|| (high - low, high / low))
    };
    let (ttft, tpot, e2e) = (growth(|m| m.ttft_ms), growth(|m| m.tpot_ms), growth(|m| m.e2e_ms));
    let slower = tpot.is_some_and(|(_, ratio)| ratio > SLOWER);
    match limit {
        "tpot" | "itl_max" if slower => Cause::SlowerTokens,
        "ttft" | "ttfa" if ttft.is_some_and(|(_, ratio)| ratio > SLOWER) && !slower => Cause::Queueing,
        "e2e" => match (ttft, e2e) {
            (Some((waited, _)), Some((longer, ratio))) if ratio > SLOWER && waited > longer / 2.0 => {
                Cause::Queueing
            }
            (_, Some((_, ratio))) if ratio > SLOWER && slower => Cause::SlowerTokens,
            _ => Cause::Unknown,
        },
        _ => Cause::Unknown,
    }
}

/// What the medians tell about a limit that a length of `above` misses, and a shorter one of `below` does not.
fn cause_of_length(vary: Axis, limit: &str, below: &Trial, above: &Trial) -> Cause {
    let longer = above.load / below.load;
    let growth = |of: fn(&Medians) -> Option<f64>| {
        let ratio = of(&above.medians)? / of(&below.medians)?;
        ratio.is_finite().then_some(ratio)
    };
    match (vary, limit) {
        (Axis::InputLen, "ttft" | "ttfa" | "e2e") => match growth(|medians| medians.ttft_ms) {
            // The work of a prefill is at most quadratic in the length: what grows faster is waiting.
            Some(ratio) if ratio > (longer * longer).max(SLOWER) => Cause::Queueing,
            Some(ratio) if ratio > 1.0 => Cause::Prefill,
            _ => Cause::Unknown,
        },
        (Axis::OutputLen, "e2e") => match growth(|medians| medians.e2e_ms) {
            // Each token at the same pace: as much longer as there are more of them.
            Some(ratio) if ratio > 1.0 && ratio <= longer * SLOWER => Cause::LongerAnswers,
            _ => cause(limit, Some(below.medians), above.medians),
        },
        _ => cause(limit, Some(below.medians), above.medians),
    }
}

/// A median is longer by more than this: less may be chance.
const SLOWER: f64 = 1.05;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Kind, Outcome};
    use crate::strategy::Stage;
    use crate::time::Stamp;

    fn record(ttft_ms: u64, e2e_ms: u64) -> Record {
        let mut record = Record::planned(0, Stamp::ZERO);
        record.outcome = Outcome::ok(200);
        (record.start, record.first) = (Stamp::ZERO, Some(Stamp::from_millis(ttft_ms)));
        (record.answer, record.last) = (record.first, Some(Stamp::from_millis(e2e_ms)));
        record
    }

    #[test]
    fn each_limit_has_its_misses_and_the_value_that_the_share_kept() {
        let mut records: Vec<Record> = (1..=20).map(|i| record(10 * i, 1000)).collect();
        records[19].outcome = Outcome::new(Class::Reset, Kind::Truncated, 200);
        let slo = Slo { ttft_ms: Some(150.0), e2e_ms: Some(2000.0), ..Slo::default() };
        let held = LimitHeld::all(&records, &slo, false, 0.9);
        let of = |place: usize| (held[place].name.as_str(), held[place].missed, held[place].kept_ms);
        assert_eq!((of(0), of(1)), (("ttft", 5, Some(180.0)), ("e2e", 1, Some(1000.0))));
        assert_eq!(LimitHeld::all(&records, &slo, false, 0.99)[0].kept_ms, None, "that one failed");
        assert_eq!(LimitHeld::all(&[], &slo, false, 0.9), []);
    }

    #[test]
    fn whom_goodput_leaves_out_misses_no_limit() {
        let mut records = [record(100, 1000), record(900, 9000), record(900, 9000)];
        records[1].flags = Flags::SLOW_READER;
        records[2].outcome = Outcome::new(Class::Cancelled, Kind::None, 200);
        let slo = Slo { ttft_ms: Some(500.0), ..Slo::default() };
        let held = LimitHeld::all(&records, &slo, false, 0.9);
        assert_eq!((held[0].missed, held[0].kept_ms), (0, Some(100.0)));
    }

    #[test]
    fn causes_are_told_by_what_grew() {
        let medians = |ttft: f64, tpot: f64, e2e: f64| Medians {
            ttft_ms: Some(ttft),
            tpot_ms: Some(tpot),
            e2e_ms: Some(e2e),
        };
        let below = Some(medians(100.0, 20.0, 2000.0));
        assert_eq!(cause("ttft", below, medians(400.0, 20.5, 2300.0)), Cause::Queueing);
        assert_eq!(cause("ttft", below, medians(120.0, 30.0, 3000.0)), Cause::Unknown);
        assert_eq!(cause("tpot", below, medians(120.0, 30.0, 3000.0)), Cause::SlowerTokens);
        assert_eq!(cause("e2e", below, medians(120.0, 30.0, 3000.0)), Cause::SlowerTokens);
        assert_eq!(cause("e2e", below, medians(900.0, 20.5, 2900.0)), Cause::Queueing);
        assert_eq!(cause("e2e", below, medians(100.0, 20.0, 2000.0)), Cause::Unknown);
        assert_eq!(cause("ttft", None, medians(400.0, 20.5, 2300.0)), Cause::Unknown);
    }

    #[test]
    fn causes_of_a_length_are_told_by_how_fast_it_grew() {
        let trial = |load: f64, ttft: f64, e2e: f64| Trial {
            flow: None,
            load,
            stage: Stage::Bisect,
            judged: None,
            medians: Medians { ttft_ms: Some(ttft), tpot_ms: Some(20.0), e2e_ms: Some(e2e) },
            limits: Vec::new(),
            too_long: false,
        };
        let below = trial(1000.0, 100.0, 500.0);
        let of = |vary, limit, above: &Trial| cause_of_length(vary, limit, &below, above);
        let prompts = |ttft| of(Axis::InputLen, "ttft", &trial(2000.0, ttft, 900.0));
        // Twice as long: as much again by length, four times by its square, more by waiting.
        assert_eq!((prompts(190.0), prompts(399.0)), (Cause::Prefill, Cause::Prefill));
        assert_eq!((prompts(450.0), prompts(99.0)), (Cause::Queueing, Cause::Unknown));
        let answers = |e2e| of(Axis::OutputLen, "e2e", &trial(2000.0, 100.0, e2e));
        assert_eq!((answers(980.0), answers(2000.0)), (Cause::LongerAnswers, Cause::Unknown));
        assert_eq!(of(Axis::InputLen, "tpot", &trial(2000.0, 100.0, 900.0)), Cause::Unknown);
    }
}
