//! Makes the plan of a quick look: one request shows how fast the server is, and by that answers, limits and levels are
//! chosen.

use std::time::Duration;

use crate::cli::failure::Failure;
use crate::cli::target::{self, Ready};
use crate::load::probe;
use crate::metrics::{Metric, Phase};
use crate::plan::{Plan, Slo};
use crate::strategy::first_look::{self, Glance};
use crate::workload::Item;

/// A plan that is ready to run.
pub(super) struct Shaped {
    pub(super) ready: Ready,
    /// What the user should know, one line each.
    pub(super) notes: Vec<String>,
    /// How long an answer to a user alone takes.
    pub(super) answer: Duration,
}

/// Asks once, and gives the plan the length of its answers, of which there is to be time for enough within about `within_s`,
/// and, unless the user gave some, its limits.
pub(super) fn shape(
    plan: &mut Plan,
    ready: Ready,
    has_limits: bool,
    within_s: f64,
) -> Result<Shaped, Failure> {
    let glance = glance(plan, &ready)?;
    let tokens = first_look::answer_tokens(glance, within_s);
    plan.workload.output_tokens = tokens.into();
    let usual = plan.slo;
    if !has_limits {
        plan.slo = first_look::limits(glance, usual);
    }
    let notes = widened(glance, usual, plan.slo);
    let answer_ms = first_look::answer_ms(glance, tokens);
    let answer = Duration::try_from_secs_f64(answer_ms / 1e3).unwrap_or_default();
    // The requests are others now.
    let Ready { target, facts, notes: said } = ready;
    let routes = std::sync::Arc::try_unwrap(target).map(|target| target.routes);
    let routes = routes.map_err(|_| Failure::own("the target is in use before the run"))?;
    let target = std::sync::Arc::new(target::of(plan, routes, None)?);
    let notes = said.iter().cloned().chain(notes).collect();
    Ok(Shaped { ready: Ready { target, facts, notes: said }, notes, answer })
}

/// One request as the plan has them, alone.
fn glance(plan: &Plan, ready: &Ready) -> Result<Glance, Failure> {
    let item = Item { seed: plan.seed, phase: Phase::Warmup, index: u64::from(u32::MAX) };
    let seen = probe::one(&ready.target, plan, item).map_err(|error| {
        let url = plan.target.endpoints.first().map_or("", |endpoint| &endpoint.url);
        Failure::of_probe(url, &error)
    })?;
    let ms = |metric: Metric| Some(metric.of(&seen)? / 1e6).filter(|ms| ms.is_finite());
    Ok(Glance { ttft_ms: ms(Metric::Ttft).unwrap_or(0.0), tpot_ms: ms(Metric::Tpot) })
}

/// Which of the usual limits were widened, and why.
fn widened(glance: Glance, usual: Slo, taken: Slo) -> Vec<String> {
    let one = |name: &str, usual: Option<f64>, taken: Option<f64>, seen: Option<f64>| {
        let (usual, taken, seen) = (usual?, taken?, seen?);
        (taken > usual).then(|| {
            format!(
                "even one user alone has {name} {seen:.0} ms here: the limit is {taken} ms instead of {usual} (give your \
                 own by --goodput)"
            )
        })
    };
    let ttft = one("TTFT", usual.ttft_ms, taken.ttft_ms, Some(glance.ttft_ms));
    ttft.into_iter().chain(one("TPOT", usual.tpot_ms, taken.tpot_ms, glance.tpot_ms)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_widened_is_said_with_its_reason() {
        let usual = Slo { ttft_ms: Some(500.0), tpot_ms: Some(50.0), ..Slo::default() };
        let slow = Glance { ttft_ms: 300.0, tpot_ms: Some(83.4) };
        let taken = first_look::limits(slow, usual);
        let said = widened(slow, usual, taken);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("TPOT 83 ms") && said[0].contains("200 ms instead of 50"), "{said:?}");
        assert_eq!(widened(slow, usual, usual), Vec::<String>::new());
    }
}
