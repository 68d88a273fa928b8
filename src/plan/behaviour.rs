//! What users do beside asking: some go away before their answer is complete, some read it slowly, and not all ask for
//! the same model.
//!
//! Owns the data and its checks. Whom it meets is drawn in `workload::conduct` and `workload::mix`.

use serde::{Deserialize, Serialize};

use super::{Error, Plan, Target, Workload};

/// Requests that their users give up: the connection is closed, as HTTP/1.1 has no other way to say so.
///
/// Where both a time and a number of tokens are given, whichever comes first counts; where neither is, the user leaves as
/// soon as the request is sent. An answer that is complete before is an ordinary one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Aborts {
    /// Share of the measured requests, above 0 and at most 1. Which they are is drawn by the seed.
    pub share: f64,
    /// How long after its last byte was sent a request is given up, s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_s: Option<f64>,
    /// With which token of the answer it is given up, at least 1; content events where the server does not count tokens
    /// as it goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_tokens: Option<u32>,
}

/// Requests whose users read no faster than they can, so that the server's own sending comes to a stop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowReaders {
    /// Share of the measured requests, above 0 and at most 1. Which they are is drawn by the seed.
    #[serde(default = "all")]
    pub share: f64,
    /// Most bytes of a response that are read per second on one connection, head and framing included; from
    /// [`SlowReaders::RATE_MIN`] on.
    pub bytes_per_s: u64,
}

/// By which rule requests choose among several models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelChoice {
    /// In turn. With weights, so that any stretch of requests has nearly its due of each.
    #[default]
    InTurn,
    /// Each drawn on its own, by the seed.
    Drawn,
}

impl SlowReaders {
    /// Slower than this, the head of a response alone takes longer than any limit on silence.
    pub const RATE_MIN: u64 = 16;
    /// Beyond this no reader is slow.
    pub const RATE_MAX: u64 = 1 << 30;
}

impl ModelChoice {
    pub(super) fn is_default(&self) -> bool {
        *self == ModelChoice::default()
    }
}

impl Plan {
    pub(super) fn check_behaviour(&self) -> Result<(), Error> {
        check_aborts(&self.workload, self.target.stream)?;
        check_slow_readers(&self.workload)?;
        self.workload.check_placeholders()?;
        check_weights(&self.target)
    }
}

fn check_aborts(workload: &Workload, stream: bool) -> Result<(), Error> {
    let Some(Aborts { share, after_s, after_tokens }) = workload.aborts else { return Ok(()) };
    if !is_share(share) {
        let wrong = format!("{} % is no part of the requests", share * 100.0);
        return Err(Error::new(RATE, wrong, "give percent above 0, at most 100, as in 10"));
    }
    if let Some(after_s) = after_s.filter(|s| !(s.is_finite() && (0.0..=DELAY_S_MAX).contains(s))) {
        let remedy = "give seconds, 0 for at once, at most a day of them";
        return Err(Error::new("--request-cancellation-delay", format!("{after_s} s is no delay"), remedy));
    }
    match after_tokens {
        Some(0) => {
            let remedy = "give at least 1, or --request-cancellation-delay 0 to leave as soon as it is sent";
            Err(Error::new(TOKENS, "no answer has a token number 0", remedy))
        }
        Some(_) if !stream => {
            let remedy = "give --request-cancellation-delay";
            Err(Error::new(TOKENS, "whole answers have no tokens to be counted", remedy))
        }
        _ => Ok(()),
    }
}

fn check_slow_readers(workload: &Workload) -> Result<(), Error> {
    let Some(SlowReaders { share, bytes_per_s }) = workload.slow_readers else { return Ok(()) };
    if !is_share(share) {
        let remedy = "give a share above 0, at most 1, as in 0.1";
        return Err(Error::new("--slow-reader-share", format!("{share} is no part of the requests"), remedy));
    }
    let (min, max) = (SlowReaders::RATE_MIN, SlowReaders::RATE_MAX);
    if !(min..=max).contains(&bytes_per_s) {
        let remedy = format!("give bytes per second from {min} to {max}");
        return Err(Error::new("--read-rate", format!("{bytes_per_s} is out of range"), remedy));
    }
    Ok(())
}

/// Models may still be missing, and with them what the weights are of.
fn check_weights(target: &Target) -> Result<(), Error> {
    let weights = &target.model_weights;
    let wrong = |wrong: String, remedy: &str| Err(Error::new("--model-weights", wrong, remedy));
    if weights.is_empty() {
        return Ok(());
    }
    if weights.len() != target.models.len() {
        let wrong_number = format!("{} weights do not fit {} models", weights.len(), target.models.len());
        return wrong(wrong_number, "name each model by --model, and give one weight for each in that order");
    }
    if let Some(weight) = weights.iter().find(|weight| !(1..=WEIGHT_MAX).contains(*weight)) {
        let remedy = format!("give whole numbers from 1 to {WEIGHT_MAX}, as in 3,1");
        return wrong(format!("{weight} is out of range"), &remedy);
    }
    Ok(())
}

fn is_share(share: f64) -> bool {
    share > 0.0 && share <= 1.0
}

const fn all() -> f64 {
    1.0
}

const RATE: &str = "--request-cancellation-rate";
const TOKENS: &str = "--request-cancellation-tokens";
const DELAY_S_MAX: f64 = 86_400.0;
/// As finely as anybody can tell; the table of turns has a place for each.
const WEIGHT_MAX: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Plan)) -> Option<String> {
        let mut plan = Plan::new(1);
        change(&mut plan);
        plan.check_behaviour().err().map(|error| error.subject)
    }

    fn aborts(aborts: Aborts) -> Option<String> {
        refused(|plan| plan.workload.aborts = Some(aborts))
    }

    #[test]
    fn shares_times_and_counts_have_their_ranges() {
        let usual = Aborts { share: 0.2, after_s: Some(0.0), after_tokens: Some(1) };
        assert_eq!(aborts(usual), None);
        assert_eq!(aborts(Aborts { share: 1.0, ..Aborts::default() }), None);
        for share in [0.0, -0.1, 1.01, f64::NAN, f64::INFINITY] {
            assert_eq!(aborts(Aborts { share, ..usual }).as_deref(), Some(RATE), "{share}");
            let slow = SlowReaders { share, bytes_per_s: 1000 };
            let subject = refused(|plan| plan.workload.slow_readers = Some(slow));
            assert_eq!(subject.as_deref(), Some("--slow-reader-share"), "{share}");
        }
        for after_s in [-1.0, f64::NAN, f64::INFINITY, 86_401.0] {
            let subject = aborts(Aborts { after_s: Some(after_s), ..usual });
            assert_eq!(subject.as_deref(), Some("--request-cancellation-delay"), "{after_s}");
        }
        assert_eq!(aborts(Aborts { after_tokens: Some(0), ..usual }).as_deref(), Some(TOKENS));
        let whole = refused(|plan| {
            plan.workload.aborts = Some(usual);
            plan.target.stream = false;
        });
        assert_eq!(whole.as_deref(), Some(TOKENS));
        for bytes_per_s in [0, 15, u64::MAX] {
            let slow = SlowReaders { share: 1.0, bytes_per_s };
            let subject = refused(|plan| plan.workload.slow_readers = Some(slow));
            assert_eq!(subject.as_deref(), Some("--read-rate"), "{bytes_per_s}");
        }
    }

    #[test]
    fn weights_are_as_many_as_models() {
        let weighed = |models: &[&str], weights: &[u32]| {
            refused(|plan| {
                plan.target.models = models.iter().map(|name| (*name).to_owned()).collect();
                plan.target.model_weights = weights.to_vec();
            })
        };
        assert_eq!(weighed(&["a", "b"], &[3, 1]), None);
        assert_eq!(weighed(&["a", "b"], &[]), None);
        for (models, weights) in
            [(&["a", "b"][..], &[3][..]), (&[], &[1]), (&["a", "b"], &[0, 1]), (&["a"], &[10_001])]
        {
            assert_eq!(
                weighed(models, weights).as_deref(),
                Some("--model-weights"),
                "{models:?} {weights:?}"
            );
        }
    }
}
