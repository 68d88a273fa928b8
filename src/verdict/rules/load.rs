//! The load as it was offered, and the window that it was measured in.

use super::words::{count, percent, seconds, time};
use crate::metrics::Metric;
use crate::plan::lint::{REQUESTS_MIN, few_requests};
use crate::plan::{Arrivals, Finding, Gaps, Grade, Plan, Rule};
use crate::stats::sort;
use crate::stats::{Coarse, Quantile};
use crate::verdict::Facts;

/// Shortest window whose rates average over what a server does now and then.
const WINDOW_MIN_S: f64 = 30.0;
/// Fewer times the 99th percentile of E2E, and ramp and drain weigh as much as what lies between.
const GENERATIONS_MIN: f64 = 5.0;
/// Standard deviations of the arrival process that chance explains.
const DEVIATIONS_MAX: f64 = 3.0;
/// How much slower than the median slice one slice may be.
const OUTLIER: f64 = 3.0;
const SLICES_MAX: u64 = 20;
const SLICES_MIN: u64 = 5;

pub(super) fn look(plan: &Plan, facts: &Facts, found: &mut Vec<Finding>) {
    found.extend(too_few(plan, facts));
    if facts.counts.ok > 0 {
        found.extend(window_short(facts));
        found.extend(time_slice_outlier(plan, facts));
    }
    found.extend(realised_rate(plan, facts));
    found.extend(cap_reached(plan, facts));
}

/// Where the plan could not know, or what came was less than it said.
fn too_few(plan: &Plan, facts: &Facts) -> Option<Finding> {
    let n = facts.counts.judged();
    if n == 0 {
        let remedy = "give a longer --duration, or --num-prompts";
        return Some(Finding::new(Rule::FewRequests, Grade::Invalid, "no request was measured", remedy));
    }
    let said = plan.requests_expected(&facts.level).is_some_and(|expected| expected < REQUESTS_MIN);
    // A level of a search answers one question, as well as its bounds say; its percentiles are by the way.
    if said || facts.level.decide.is_some() {
        None
    } else {
        few_requests(n, plan.turns_expected().unwrap_or(1.0))
    }
}

fn window_short(facts: &Facts) -> Option<Finding> {
    let window_s = facts.times.window_s;
    let e2e_s = facts.latencies.get(&Metric::E2e)?.p99_ns / 1e9;
    let what = if facts.times.whole_level { "whole level" } else { "window" };
    // A burst is nothing but ramp and drain, and asked for as such.
    let burst = facts.level.load.arrivals == Arrivals::Burst;
    // One that a search has stopped had nothing more to show.
    let asked_for = burst || facts.level.decide.is_some();
    if window_s < GENERATIONS_MIN * e2e_s && !asked_for {
        let evidence = format!(
            "a {what} of {} for requests of up to {} (E2E p99): ramp and drain weigh in its rates",
            seconds(window_s),
            seconds(e2e_s)
        );
        let remedy =
            format!("give --duration {:.0}s or more", (GENERATIONS_MIN * e2e_s).max(WINDOW_MIN_S).ceil());
        return Some(Finding::new(Rule::WindowShort, Grade::Warn, evidence, remedy));
    }
    (window_s < WINDOW_MIN_S).then(|| {
        let evidence = format!("a {what} of {} does not see what happens now and then", seconds(window_s));
        let remedy = format!("give --duration {WINDOW_MIN_S}s or more");
        Finding::new(Rule::WindowShort, Grade::Info, evidence, remedy)
    })
}

/// Planned sends over the time they were planned for, against the rate asked for, in standard deviations of the
/// process: `rate * cv / sqrt(n)`.
fn realised_rate(plan: &Plan, facts: &Facts) -> Option<Finding> {
    // A rate of conversations is one of sessions; what was planned are turns, most of them by answers.
    if plan.workload.conversation.is_some() {
        return None;
    }
    let shares = facts.shares(plan);
    let (n, times) = (facts.counts.planned as f64, facts.times);
    let (from_s, s) = if times.whole_level { (0.0, times.planned_s) } else { (times.cut_s, times.window_s) };
    if n < 2.0 || s <= 0.0 {
        return None;
    }
    // Over the same time: a rate may vary.
    let load = &facts.level.load;
    let asked = load.asked_between(from_s, from_s + s)?;
    let cv = load.arrivals.gaps().map_or(0.0, Gaps::variation);
    let realised = n / s;
    let of = f64::from(shares[0].of);
    let asked: f64 = shares.iter().map(|share| share.rate(asked)).sum();
    // The gaps of all sends are behind those of a part of them: one share has the sum of as many as there are shares
    // between its own.
    let deviation = asked * cv / (n * of / shares.len() as f64).sqrt();
    // One request more or less, or one burst, lies at the edges of the time, whatever the process.
    let edge = 2.0 * f64::from(load.burst_size().unwrap_or(1)) * asked / n;
    if (realised - asked).abs() <= DEVIATIONS_MAX * deviation + edge {
        return None;
    }
    let mut evidence =
        format!("{realised:.3} requests/s were planned where {} were asked for", rate_text(asked));
    if deviation > 0.0 {
        evidence.push_str(&format!(", {:.1} standard deviations away", (realised - asked).abs() / deviation));
    }
    Some(Finding::new(Rule::RealisedRateOff, Grade::Warn, evidence, "take another --seed, or a longer level"))
}

/// A rate as it was typed, or, on average over a time, to a thousandth.
fn rate_text(rate: f64) -> String {
    let thousandths = (rate * 1e3).round() / 1e3;
    if (thousandths - rate).abs() < 1e-9 * rate { format!("{rate}") } else { format!("{thousandths:.3}") }
}

fn cap_reached(plan: &Plan, facts: &Facts) -> Option<Finding> {
    let cap = facts.level.load.cap.filter(|_| facts.level.load.users.is_none())?;
    let cap = facts.own(plan, cap);
    let wait = facts.latencies.get(&Metric::CapWait).filter(|wait| wait.max_ns > 0.0)?;
    let who = facts.cap_waited.map_or_else(
        || "requests".to_owned(),
        |waited| {
            format!("{waited} of {} ({})", count(wait.n, "request"), percent(waited as f64, wait.n as f64))
        },
    );
    let connection = plan
        .target
        .connections
        .max
        .map_or_else(String::new, |most| format!(" or for one of {most} connections"));
    let mut evidence = format!("{who} waited for the cap of {cap}{connection}, up to {}", time(wait.max_ns));
    for (name, metric) in [("TTFT", Metric::TtftPlan), ("E2E", Metric::E2ePlan)] {
        if let Some(from_plan) = facts.latencies.get(&metric) {
            let (p50, p99) = (time(from_plan.p50_ns), time(from_plan.p99_ns));
            evidence.push_str(&format!("; {name} from the planned send is {p50} p50, {p99} p99"));
        }
    }
    let remedy = "judge by the latencies from the planned send, or raise the cap";
    Some(Finding::new(Rule::CapReached, Grade::Warn, evidence, remedy))
}

/// Slices of equal length, each with enough requests for its median to be one.
fn time_slice_outlier(plan: &Plan, facts: &Facts) -> Option<Finding> {
    // Where the load comes and goes, so does its latency.
    if facts.level.load.has_own_shape() {
        return None;
    }
    // Where lengths differ, so do medians of a few requests.
    let alike = !plan.workload.is_recorded() && plan.workload.output_tokens.fixed().is_some();
    let needed = if alike { 10 } else { 50 };
    let slices = (facts.counts.ok / needed).min(SLICES_MAX);
    let bins: Vec<_> = facts
        .series
        .slices()
        .filter(|bin| {
            bin.start_s >= facts.times.cut_s && bin.start_s < facts.times.cut_s + facts.times.window_s
        })
        .collect();
    let width = bins.len().div_ceil(usize::try_from(slices).ok()?.max(1)).max(1);
    let mut medians: Vec<(f64, f64)> = Vec::new();
    for bins in bins.chunks(width) {
        let mut e2e = Coarse::default();
        bins.iter().for_each(|bin| e2e.merge(bin.e2e));
        // A slice of a few is as good as none, as the last one may be.
        if e2e.n() >= needed / 2
            && let Some(median) = e2e.quantile(Quantile::P50)
        {
            medians.push((median as f64, bins[0].start_s));
        }
    }
    if (medians.len() as u64) < SLICES_MIN {
        return None;
    }
    sort::few_by(&mut medians, |a, b| a.0.total_cmp(&b.0));
    let (usual, (worst, at_s)) = (medians[(medians.len() - 1) / 2].0, *medians.last()?);
    (worst > OUTLIER * usual).then(|| {
        let evidence = format!(
            "E2E p50 was {} around {} s, {:.1} times the usual {}",
            time(worst),
            at_s,
            worst / usual,
            time(usual)
        );
        let remedy = "look for what happened then, and repeat the run";
        Finding::new(Rule::TimeSliceOutlier, Grade::Warn, evidence, remedy)
    })
}
