//! How requests ended.

use super::words::{count, percent};
use crate::metrics::{Class, Outcome};
use crate::plan::{Finding, Grade, Plan, Rule};
use crate::verdict::Facts;

/// Share of failed requests above which the others tell nothing of the server under that load.
const FAILED_SHARE_MAX: f64 = 0.01;

pub(super) fn look(_: &Plan, facts: &Facts, found: &mut Vec<Finding>) {
    found.extend(failures(facts));
    found.extend(unfinished(facts));
    found.extend(truncated(facts));
    found.extend(rate_limited(facts));
}

/// All that went wrong, whatever it was; the rules below say what to do about some of it.
fn failures(facts: &Facts) -> Option<Finding> {
    let counts = &facts.counts;
    let (failed, all) = (counts.failed, counts.judged());
    if failed == 0 {
        return None;
    }
    let too_many = failed as f64 > FAILED_SHARE_MAX * all as f64;
    let grade = if too_many { Grade::Invalid } else { Grade::Warn };
    let share = percent(failed as f64, all as f64);
    let evidence = format!("{failed} of {} failed ({share})", count(all, "request"));
    Some(Finding::new(Rule::Failures, grade, evidence, "find their cause before trusting what is left"))
}

fn unfinished(facts: &Facts) -> Option<Finding> {
    let n = ended(facts, |outcome| outcome.class == Class::Unfinished);
    (n > 0).then(|| {
        let grace = facts.level.stop.grace_s;
        let evidence = format!("{} still open {grace} s after the last send", are(n));
        let remedy = "give a longer --benchmark-grace-period, or a lower load";
        Finding::new(Rule::Unfinished, Grade::Warn, evidence, remedy)
    })
}

fn truncated(facts: &Facts) -> Option<Finding> {
    let n = ended(facts, |outcome| outcome.class == Class::Truncated);
    (n > 0).then(|| {
        let evidence = format!("{} broke off before their end", count(n, "answer"));
        let remedy = "look for limits on time or size in the server and what stands before it";
        Finding::new(Rule::Truncated, Grade::Warn, evidence, remedy)
    })
}

fn rate_limited(facts: &Facts) -> Option<Finding> {
    let n = ended(facts, |outcome| outcome.class == Class::Http && matches!(outcome.status, 429 | 503));
    (n > 0).then(|| {
        let evidence = format!("{} sent away with 429 or 503", are(n));
        let remedy = "raise the server's limit, or stay below it";
        Finding::new(Rule::RateLimited, Grade::Warn, evidence, remedy)
    })
}

fn ended(facts: &Facts, how: impl Fn(Outcome) -> bool) -> u64 {
    facts.counts.outcomes.iter().filter(|seen| how(seen.outcome)).map(|seen| seen.count).sum()
}

/// `1 request was`, `3 requests were`.
fn are(n: u64) -> String {
    format!("{} {}", count(n, "request"), if n == 1 { "was" } else { "were" })
}
