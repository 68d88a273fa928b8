//! Whether a request was good: it ended well and kept every limit.
//!
//! The limits are values of the plan; what is compared with them is computed by the formulas of
//! [`Record`]. Rates of good requests are made in `summary`.

use serde::{Deserialize, Serialize};

use crate::metrics::record::Record;

/// Limits that a good request keeps, ms; `<=` passes, an undefined TPOT passes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slo {
    /// TTFT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft_ms: Option<f64>,
    /// Time to the first answer token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttfa_ms: Option<f64>,
    /// TPOT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tpot_ms: Option<f64>,
    /// Largest gap of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub itl_max_ms: Option<f64>,
    /// E2E.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub e2e_ms: Option<f64>,
}

impl Slo {
    /// Whether there is no limit at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Slo::default()
    }
}

/// Whether the request ended well and kept every limit of `slo`, equality included.
///
/// TTFT, time to the first answer token and E2E count from the planned send if `from_plan`, else from the start. An
/// answer without a TPOT or without any gap (one token, one event) cannot miss a limit on it; one without a first
/// token, first answer token or end has missed its limit.
#[must_use]
pub fn good(record: &Record, slo: &Slo, from_plan: bool) -> bool {
    judged(record, slo, from_plan).0
}

/// How near the request came to its limits: the largest of its values over their limits, so that 1 is just good. 0
/// without a value that a limit holds, infinite for a request that failed or has no value where it needs one.
///
/// Where several limits stand, this is the value that decides.
#[must_use]
pub fn strain(record: &Record, slo: &Slo, from_plan: bool) -> f64 {
    judged(record, slo, from_plan).1
}

/// Both at once: whether it was [`good`], and its [`strain`].
#[must_use]
pub fn judged(record: &Record, slo: &Slo, from_plan: bool) -> (bool, f64) {
    if !record.outcome.is_ok() {
        return (false, f64::INFINITY);
    }
    let held = held(record, slo, from_plan);
    (held.into_iter().all(Held::is_kept), held.into_iter().map(Held::strain).fold(0.0, f64::max))
}

/// A value held against its limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Held {
    /// The limit's name, as in `--goodput`.
    pub name: &'static str,
    /// The limit; `None`: there is none.
    pub limit_ms: Option<f64>,
    /// The value, ns; `None` where the request has none.
    pub value_ns: Option<f64>,
    /// Whether a request without the value keeps the limit.
    pub if_undefined: bool,
}

/// Every limit that there may be, with the request's value.
#[must_use]
pub fn held(record: &Record, slo: &Slo, from_plan: bool) -> [Held; 5] {
    let (ttft, ttfa, e2e) = if from_plan {
        (record.ttft_plan_ns(), record.ttfa_plan_ns(), record.e2e_plan_ns())
    } else {
        (record.ttft_ns(), record.ttfa_ns(), record.e2e_ns())
    };
    let ns = |value: Option<u64>| value.map(|ns| ns as f64);
    let held = |name, limit_ms, value_ns, if_undefined| Held { name, limit_ms, value_ns, if_undefined };
    [
        held("ttft", slo.ttft_ms, ns(ttft), false),
        held("ttfa", slo.ttfa_ms, ns(ttfa), false),
        held("e2e", slo.e2e_ms, ns(e2e), false),
        held("tpot", slo.tpot_ms, record.tpot_ns(), true),
        held("itl_max", slo.itl_max_ms, ns(record.stall_ns.get()), true),
    ]
}

impl Held {
    fn limit_ns(self) -> Option<f64> {
        // To the whole nanosecond: 33.3 ms is 33 299 999.999999996 ns in floating point, and equality must pass.
        self.limit_ms.map(|ms| (ms * 1e6).round())
    }

    /// Whether the limit is kept.
    #[must_use]
    pub fn is_kept(self) -> bool {
        let Some(limit_ns) = self.limit_ns() else { return true };
        self.value_ns.map_or(self.if_undefined, |ns| ns <= limit_ns)
    }

    fn strain(self) -> f64 {
        match (self.limit_ns(), self.value_ns) {
            (None, _) => 0.0,
            (Some(_), None) if self.if_undefined => 0.0,
            (Some(_), None) => f64::INFINITY,
            // 0 of 0 is kept.
            (Some(_), Some(0.0)) => 0.0,
            (Some(limit), Some(ns)) => ns / limit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::outcome::{Class, Kind, Outcome};
    use crate::time::Stamp;

    /// Planned at 0, started at 10 ms, TTFT 100 ms, 11 tokens of 20 ms each.
    fn record() -> Record {
        let at = Stamp::from_millis;
        let mut record = Record::planned(0, at(0));
        record.outcome = Outcome::ok(200);
        record.start = at(10);
        (record.first, record.answer, record.last) = (Some(at(110)), Some(at(110)), Some(at(310)));
        record.end = at(311);
        (record.output_tokens, record.events, record.stall_ns) = (Some(11), 11, 33_300_000.into());
        record
    }

    fn limits() -> Slo {
        Slo {
            ttft_ms: Some(100.0),
            ttfa_ms: Some(100.0),
            tpot_ms: Some(20.0),
            itl_max_ms: Some(33.3),
            e2e_ms: Some(300.0),
        }
    }

    #[test]
    fn a_value_on_its_limit_passes_and_a_nanosecond_more_does_not() {
        assert!(good(&record(), &limits(), false));
        let fields: [fn(&mut Slo) -> &mut Option<f64>; 5] = [
            |slo| &mut slo.ttft_ms,
            |slo| &mut slo.ttfa_ms,
            |slo| &mut slo.tpot_ms,
            |slo| &mut slo.itl_max_ms,
            |slo| &mut slo.e2e_ms,
        ];
        for field in fields {
            let mut slo = limits();
            *field(&mut slo).as_mut().unwrap() -= 1e-6;
            assert!(!good(&record(), &slo, false), "{slo:?}");
        }
    }

    #[test]
    fn an_open_loop_is_judged_from_the_plan() {
        for slo in [
            Slo { ttft_ms: Some(105.0), ..Slo::default() },
            Slo { ttfa_ms: Some(105.0), ..Slo::default() },
            Slo { e2e_ms: Some(305.0), ..Slo::default() },
        ] {
            assert!(good(&record(), &slo, false));
            assert!(!good(&record(), &slo, true));
        }
    }

    #[test]
    fn the_strain_is_that_of_the_limit_that_decides() {
        assert_eq!(strain(&record(), &limits(), false), 1.0);
        // TTFT is 110 ms from the plan.
        assert_eq!(strain(&record(), &limits(), true), 1.1);
        let slo = Slo { tpot_ms: Some(16.0), ttft_ms: Some(400.0), ..Slo::default() };
        assert_eq!(strain(&record(), &slo, false), 1.25);
        assert_eq!(strain(&record(), &Slo::default(), false), 0.0);
        let failed = Record { outcome: Outcome::new(Class::Reset, Kind::Truncated, 200), ..record() };
        assert_eq!(strain(&failed, &slo, false), f64::INFINITY);
        let silent = Record { first: None, ..record() };
        assert_eq!(strain(&silent, &limits(), false), f64::INFINITY);
        let at_once = Record { first: Some(record().start), ..record() };
        assert_eq!(strain(&at_once, &Slo { ttft_ms: Some(0.0), ..Slo::default() }, false), 0.0);
    }

    #[test]
    fn one_token_cannot_miss_a_limit_on_gaps() {
        let mut one = record();
        (one.output_tokens, one.events, one.stall_ns, one.last) = (Some(1), 1, None.into(), one.first);
        assert!(good(&one, &limits(), false));
    }

    #[test]
    fn an_answer_of_reasoning_only_misses_a_limit_on_the_first_answer_token() {
        let mut silent = record();
        silent.answer = None;
        assert!(!good(&silent, &limits(), false));
        assert!(good(&silent, &Slo { ttfa_ms: None, ..limits() }, false));
    }

    #[test]
    fn failures_are_never_good() {
        let mut failed = record();
        failed.outcome = Outcome::new(Class::Truncated, Kind::Incomplete, 200);
        assert!(!good(&failed, &Slo::default(), false));
        failed.outcome = Outcome::new(Class::Cancelled, Kind::None, 200);
        assert!(!good(&failed, &Slo::default(), false));
        assert!(good(&record(), &Slo::default(), false));
    }
}
