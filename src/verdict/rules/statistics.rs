//! How well the level's numbers are known, whether it was steady, and whether its books agree.

use super::words::{percent, seconds, time};
use crate::metrics::Metric;
use crate::plan::lint::REQUESTS_MIN;
use crate::plan::{Finding, Grade, Plan, Rule};
use crate::stats::little::{Little, Verdict};
use crate::stats::{Quantile, Trend};
use crate::summary::statistics::{LatencyStatistics, LittleStatistics, SteadyStatistics};
use crate::verdict::Facts;

/// From here on an interval from the number of requests would be more than three times too narrow.
const DESIGN_EFFECT_MAX: f64 = 10.0;
/// Most of a user's cycle that the client may take for itself.
const TURNAROUND_MAX: f64 = 0.01;
/// The percentiles that the table shows.
const SHOWN: [(&str, Metric); 3] = [("TTFT", Metric::Ttft), ("TPOT", Metric::Tpot), ("E2E", Metric::E2e)];

pub(super) fn look(_: &Plan, facts: &Facts, found: &mut Vec<Finding>) {
    let Some(statistics) = &facts.statistics else { return };
    let steady = &statistics.steady;
    found.extend(not_stationary(steady));
    found.extend(saturated(facts, steady));
    // What grows with the length of the level is no better known from more of it.
    if !steady.latency_grows {
        let shown = SHOWN.iter().filter_map(|(name, metric)| Some((*name, statistics.latency(*metric)?)));
        if let Some((name, latency)) = shown.min_by(|a, b| a.1.n_eff.total_cmp(&b.1.n_eff)) {
            found.extend(n_eff_low(name, latency));
            found.extend(deff_high(name, latency));
        }
    }
    if let Some(little) = &statistics.little {
        found.extend(little_mismatch(little));
        found.extend(turnaround(facts, little));
    }
}

fn not_stationary(steady: &SteadyStatistics) -> Option<Finding> {
    let growth = steady.trend.filter(|trend| trend.growing).map(|trend| {
        format!(
            "requests under way grew from {:.1} to {:.1} between the first and the last quarter (z {:.1}, above {})",
            trend.first_quarter,
            trend.last_quarter,
            trend.z,
            Trend::Z_MAX
        )
    });
    let unsettled = (steady.found == Some(false))
        .then(|| "MSER-5 found no steady state: the window begins by the default rule".to_owned());
    let evidence: Vec<String> = growth.into_iter().chain(unsettled).collect();
    let remedy = match steady.latency_grows {
        true => "offer less than the server can do, and read no latency of this level",
        false => "lengthen the level, so that its start is cut off",
    };
    (!evidence.is_empty())
        .then(|| Finding::new(Rule::NotStationary, Grade::Warn, evidence.join("; "), remedy))
}

fn saturated(facts: &Facts, steady: &SteadyStatistics) -> Option<Finding> {
    let (completed, planned) = (steady.completed as f64, steady.planned as f64);
    (steady.saturated == Some(true)).then(|| {
        let evidence = format!(
            "{} of {} requests planned in the window were completed in it ({}): latencies grow with run length",
            steady.completed,
            steady.planned,
            percent(completed, planned)
        );
        let remedy =
            format!("offer at most {:.1} requests/s, which were completed", completed / facts.times.window_s);
        Finding::new(Rule::Saturated, Grade::Warn, evidence, remedy)
    })
}

/// The table marks what is unsupported, so that only a level that does not even know its median misleads; of one with
/// few requests that is said elsewhere.
fn n_eff_low(name: &str, latency: &LatencyStatistics) -> Option<Finding> {
    let p99 = latency.quantile(Quantile::P99).filter(|known| !known.supported)?;
    let median = latency.quantile(Quantile::P50).filter(|known| !known.supported);
    let grade = if median.is_some() && latency.n >= REQUESTS_MIN { Grade::Warn } else { Grade::Info };
    let (what, needed) = median.map_or(("p99", p99.needed), |median| ("even p50", median.needed));
    let evidence = format!(
        "{name} {what} is unsupported: n_eff {:.0} of {needed} ({} requests, DEFF {:.1})",
        // Rounded it would read as enough.
        latency.n_eff.floor(),
        latency.n,
        latency.design_effect
    );
    let remedy = "lengthen the level, or repeat it with --num-runs";
    Some(Finding::new(Rule::NEffLow, grade, evidence, remedy))
}

/// Intervals already know, but whoever repeats the level should, too.
fn deff_high(name: &str, latency: &LatencyStatistics) -> Option<Finding> {
    let deff = latency.design_effect;
    (deff > DESIGN_EFFECT_MAX).then(|| {
        let evidence = format!(
            "{deff:.0} requests are worth one independent one for {name}: they come in waves, as in the queue of a \
             loaded server"
        );
        let remedy = "lengthen the level, or repeat it with --num-runs: close to saturation one run is one wave";
        Finding::new(Rule::DeffHigh, Grade::Info, evidence, remedy)
    })
}

fn little_mismatch(little: &LittleStatistics) -> Option<Finding> {
    let evidence = format!(
        "Little's law is off by {}: L {:.3}, lambda W {:.3}, at most {} explained by the window's edges",
        percent(little.gap.abs(), 1.0),
        little.in_flight,
        little.ended_s * little.life_s,
        percent(little.gap_bound, 1.0)
    );
    match little.verdict {
        Verdict::Holds => None,
        Verdict::Loose => {
            let remedy = "lengthen the level: the window is short beside its requests, or the queue grows";
            Some(Finding::new(Rule::LittleMismatch, Grade::Warn, evidence, remedy))
        }
        Verdict::Broken => {
            let counter_gap = little.counter_gap.filter(|gap| *gap > Little::COUNTER_GAP_MAX);
            let evidence = counter_gap.map_or(evidence, |gap| {
                format!(
                    "the records have {:.3} requests in flight where {:.3} were counted meanwhile (off by {gap:.1e})",
                    little.in_flight,
                    little.counted.map_or(0.0, |counted| counted.mean)
                )
            });
            let remedy = "use no number of this level: records were lost or damaged, or tokload has a fault";
            Some(Finding::new(Rule::LittleMismatch, Grade::Invalid, evidence, remedy))
        }
    }
}

/// A user's cycle that is longer than answer and pause is the client's doing. Cycles that the window's edges cut may
/// hide or feign as much as their share of the window.
fn turnaround(facts: &Facts, little: &LittleStatistics) -> Option<Finding> {
    let cycle_s = little.life_s + little.pause_s.unwrap_or(facts.level.load.think_s);
    let own_s = little.turnaround_s?;
    let edges = cycle_s / ((little.end_ns - little.start_ns) as f64 / 1e9);
    (own_s > cycle_s * (TURNAROUND_MAX + edges)).then(|| {
        let evidence = format!(
            "{} lie between an answer and the user's next request, beside a cycle of {} ({})",
            time(own_s * 1e9),
            seconds(cycle_s),
            percent(own_s, cycle_s)
        );
        let remedy = "give the client more cores with --workers, or fewer users";
        Finding::new(Rule::LateClient, Grade::Warn, evidence, remedy)
    })
}
