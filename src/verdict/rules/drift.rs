//! What changes as a run goes on.

use super::words::{percent, seconds, time};
use crate::plan::{Finding, Grade, Plan, Rule};
use crate::summary::DriftFigure;
use crate::verdict::Facts;

pub(super) fn look(_: &Plan, facts: &Facts, found: &mut Vec<Finding>) {
    let drifting: Vec<&DriftFigure> = facts.drift.iter().filter(|figure| figure.drifts).collect();
    let Some(first) = drifting.first() else { return };
    let words: Vec<String> = drifting.iter().map(|figure| said(figure)).collect();
    let evidence = format!(
        "{} (95 % intervals, {} slices of {}, worth {:.0} independent ones)",
        words.join("; "),
        first.slices,
        seconds(facts.slice_s.unwrap_or(0.0)),
        first.n_eff
    );
    let remedy = "look at what the server gathers meanwhile, as memory, caches, logs or heat, and read no number of this level \
                  without its time";
    found.push(Finding::new(Rule::Drift, Grade::Warn, evidence, remedy));
}

/// `TTFT p50 grows by 62 ms per hour (58 to 66 ms, 31.0 % of 200 ms)`.
fn said(figure: &DriftFigure) -> String {
    let DriftFigure { per_hour, low, high, level, .. } = *figure;
    let how = if per_hour > 0.0 { "grows" } else { "falls" };
    // Ends of an interval from less to more of what is said to happen.
    let (change, least, most) = if per_hour > 0.0 { (per_hour, low, high) } else { (-per_hour, -high, -low) };
    let relative = |unit: String| match level {
        0.0 => String::new(),
        level => format!(", {} of {unit}", percent(change, level.abs())),
    };
    match figure.figure.as_str() {
        "failed_share" => format!(
            "the share of failed requests {how} by {} per hour ({} to {})",
            percent(change, 1.0),
            percent(least, 1.0),
            percent(most, 1.0)
        ),
        "req_s" => format!(
            "throughput {how} by {change:.3} requests/s per hour ({least:.3} to {most:.3}{})",
            relative(format!("{level:.2} requests/s"))
        ),
        name => {
            let (metric, quantile) = name.split_once('_').unwrap_or((name, ""));
            format!(
                "{} {quantile} {how} by {} per hour ({} to {}{})",
                metric.to_uppercase(),
                time(change),
                time(least),
                time(most),
                relative(time(level))
            )
        }
    }
}
