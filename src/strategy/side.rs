//! Which side of a target a level's share of good requests lies on.
//!
//! The bounds are those of [`Share`]: of batch means and of the effective number of independent requests, whichever is
//! further out, so never narrower than exact binomial ones. A level is also stopped before its end where that cannot be
//! changed any more: too many failures or misses for the longest level there may be, or a bound that even with 99.9 %
//! does not reach the target. The last is looked at again and again, hence the higher confidence.

use crate::plan::Decide;
use crate::run::{Judged, Judgement, Why};
use crate::stats::{Confidence, Share};
use crate::summary::precision::Observation;

/// Judges what was seen, in any order, and `overdue` requests that are open and have missed a limit by now.
pub(crate) fn judge(decide: &Decide, seen: &mut [Observation], overdue: u64) -> Judged {
    let confidence = Confidence::new(decide.confidence).unwrap_or(Confidence::C95);
    let (n, good, failed) = counts(seen, overdue);
    let share = share(seen, overdue);
    let lower = share.as_ref().map_or(0.0, |share| share.lower(confidence));
    let upper = share.as_ref().map_or(1.0, |share| share.upper(confidence));
    let too_many_failed = failed as f64 > decide.failures_max * n as f64;
    let (outcome, why) = match () {
        () if too_many_failed => (Judgement::Fail, Why::Failures),
        () if lower >= decide.target => (Judgement::Pass, Why::Attainment),
        () if upper < decide.target => (Judgement::Fail, Why::Attainment),
        () => (Judgement::Undecided, Why::Attainment),
    };
    Judged {
        outcome,
        why,
        confidence: confidence.level(),
        n,
        good,
        failed,
        lower,
        upper,
        times: 1,
        stopped_early: false,
    }
}

/// Why the level has failed whatever comes in the rest of its `longest` requests (`None`: of unknown number); `None`
/// while it has not.
pub(crate) fn certain_failure(
    decide: &Decide,
    longest: Option<u64>,
    seen: &mut [Observation],
    overdue: u64,
) -> Option<Why> {
    let (n, good, failed) = counts(seen, overdue);
    // A tenth of 400 is 40, whatever the last place of 1 - 0.9 says.
    let of_all = |share: f64| longest.map_or(f64::INFINITY, |longest| longest as f64) * share * (1.0 + 1e-9);
    // None at all may fail, however long the level is.
    if failed > 0 && (decide.failures_max == 0.0 || failed as f64 > of_all(decide.failures_max)) {
        return Some(Why::Failures);
    }
    if (n - good) as f64 > of_all(1.0 - decide.target) {
        return Some(Why::Misses);
    }
    let hopeless = |share: Share| share.upper(NEARLY_SURE) < decide.target;
    (n >= LOOKED_AT_MIN)
        .then(|| share(seen, overdue))
        .flatten()
        .is_some_and(hopeless)
        .then_some(Why::Attainment)
}

/// Judged, good and failed requests.
fn counts(seen: &[Observation], overdue: u64) -> (u64, u64, u64) {
    let count = |which: fn(&Observation) -> bool| seen.iter().filter(|one| which(one)).count() as u64;
    (seen.len() as u64 + overdue, count(|one| one.good), count(|one| one.failed))
}

/// The share of good ones in the order of their plans; what is overdue comes last, where most of it is.
fn share(seen: &mut [Observation], overdue: u64) -> Option<Share> {
    seen.sort_by_key(|one| one.plan);
    let overdue = std::iter::repeat_n((false, f64::INFINITY), overdue as usize);
    let (hits, behind): (Vec<bool>, Vec<f64>) =
        seen.iter().map(|one| (one.good, one.value)).chain(overdue).unzip();
    Share::of(&hits, if could_pass(&behind) { &behind } else { &[] })
}

/// Whether the waves of `strains` could reach a limit, which is at 1. Those of the machine's own noise, around a latency
/// that is far below it or hardly varies, say nothing of passing it; the waves of a queue do, also while it is calm.
fn could_pass(strains: &[f64]) -> bool {
    if strains.iter().all(|strain| *strain < NEAR) {
        return false;
    }
    let n = strains.len() as f64;
    let mean = strains.iter().sum::<f64>() / n;
    let deviation = (strains.iter().map(|strain| (strain - mean).powi(2)).sum::<f64>() / n).sqrt();
    // Not less, so that what is infinite or no number could.
    let is_flat = deviation < FLAT * mean && mean + DEVIATIONS * deviation < 1.0;
    !is_flat
}

/// A request has come near a limit: half of it.
const NEAR: f64 = 0.5;
/// A latency that varies by less, as a share of its mean, has no queue behind it.
const FLAT: f64 = 0.1;
/// And stays within its limit if it does so with as many standard deviations to spare.
const DEVIATIONS: f64 = 4.0;

/// Fewer requests are not looked at before the end.
const LOOKED_AT_MIN: u64 = 20;
const NEARLY_SURE: Confidence = Confidence::C999;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Stamp;

    const DECIDE: Decide = Decide { target: 0.9, failures_max: 0.0, confidence: 0.95, times_max: 16 };

    /// `n` independent requests of which `misses` are spread evenly.
    fn seen(n: u64, misses: u64) -> Vec<Observation> {
        let one = |i: u64| {
            let missed = (i * misses) / n != ((i + 1) * misses) / n;
            let value = if missed { 1.5 } else { 0.5 };
            Observation { plan: Stamp::from_millis(i), value, good: !missed, failed: false }
        };
        (0..n).map(one).collect()
    }

    fn outcome(n: u64, misses: u64) -> Judgement {
        judge(&DECIDE, &mut seen(n, misses), 0).outcome
    }

    /// METRICS.md section 12: misses allowed and certain failures of independent samples at a target of 90 %. Misses that
    /// are spread evenly are not worth less than independent ones.
    #[test]
    fn independent_samples_pass_and_fail_as_the_spec_has_it() {
        for (n, allowed, certain) in
            [(64, 2, 12), (100, 4, 16), (200, 12, 28), (500, 38, 62), (1000, 84, 117)]
        {
            assert_eq!(outcome(n, allowed), Judgement::Pass, "{n} {allowed}");
            assert_eq!(outcome(n, allowed + 1), Judgement::Undecided, "{n} {}", allowed + 1);
            assert_eq!(outcome(n, certain - 1), Judgement::Undecided, "{n} {}", certain - 1);
            assert_eq!(outcome(n, certain), Judgement::Fail, "{n} {certain}");
        }
    }

    #[test]
    fn too_many_failures_fail_whatever_was_attained() {
        let mut all = seen(1000, 0);
        (all[7].good, all[7].failed, all[7].value) = (false, true, f64::INFINITY);
        let judged = judge(&DECIDE, &mut all, 0);
        assert_eq!((judged.outcome, judged.why, judged.failed), (Judgement::Fail, Why::Failures, 1));
        let lenient = Decide { failures_max: 0.001, ..DECIDE };
        assert_eq!(judge(&lenient, &mut all, 0).outcome, Judgement::Pass);
        assert_eq!(certain_failure(&DECIDE, None, &mut all[..10], 0), Some(Why::Failures));
        // One more than 0.1 % of the longest level.
        assert_eq!(certain_failure(&lenient, Some(1000), &mut all, 0), None);
        assert_eq!(certain_failure(&lenient, Some(999), &mut all, 0), Some(Why::Failures));
        assert_eq!(certain_failure(&lenient, None, &mut all, 0), None);
    }

    #[test]
    fn a_failure_is_certain_when_the_longest_level_cannot_mend_it() {
        let mut all = seen(400, 40);
        assert_eq!(certain_failure(&DECIDE, Some(400), &mut all, 0), None, "equality keeps the target");
        assert_eq!(certain_failure(&DECIDE, Some(400), &mut all, 1), Some(Why::Misses));
        assert_eq!(certain_failure(&DECIDE, Some(1600), &mut all, 1), None);
        assert_eq!(certain_failure(&DECIDE, None, &mut seen(40, 20), 0), Some(Why::Attainment));
        assert_eq!(certain_failure(&DECIDE, None, &mut seen(19, 19), 0), None, "too few to say");
    }

    #[test]
    fn waves_count_where_they_come_near_a_limit() {
        let waves = |height: f64| -> Vec<Observation> {
            let value = |i: u64| height * (1.0 + (i as f64 / 30.0).sin()) / 2.0;
            let one =
                |i| Observation { plan: Stamp::from_millis(i), value: value(i), good: true, failed: false };
            (0..200).map(one).collect()
        };
        let outcome = |height| judge(&DECIDE, &mut waves(height), 0).outcome;
        assert_eq!((outcome(0.4), outcome(0.9)), (Judgement::Pass, Judgement::Undecided));
        // Hardly a ripple, well below the limit; and one that may yet reach it.
        let around = |mean: f64, ripple: f64| {
            let mut all = waves(1.0);
            all.iter_mut().for_each(|one| one.value = mean + ripple * (one.value - 0.5));
            judge(&DECIDE, &mut all, 0).outcome
        };
        assert_eq!((around(0.89, 0.04), around(0.89, 0.2)), (Judgement::Pass, Judgement::Undecided));
    }

    #[test]
    fn what_is_overdue_is_judged_as_missed() {
        let judged = judge(&DECIDE, &mut seen(50, 0), 50);
        assert_eq!((judged.n, judged.good, judged.failed), (100, 50, 0));
        assert_eq!(judge(&DECIDE, &mut seen(20, 0), 480).outcome, Judgement::Fail);
        let nothing = judge(&DECIDE, &mut [], 0);
        assert_eq!((nothing.outcome, nothing.lower, nothing.upper), (Judgement::Undecided, 0.0, 1.0));
    }
}
