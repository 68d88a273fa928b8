//! Several endpoints or replicas: one that fails, one that is slower than the rest, shares that are not those planned.

use super::words::{count, percent, time};
use crate::metrics::Metric;
use crate::plan::{Finding, Grade, Plan, Rule, UrlStrategy};
use crate::stats::Confidence;
use crate::stats::binomial::Sample;
use crate::summary::{Against, GroupKey};
use crate::verdict::Facts;
use crate::verdict::facts::PartOf;
use crate::workload::{Item, Routing};

/// Smaller differences change nothing that anybody does, however sure they are.
const RATIO_MIN: f64 = 1.1;

pub(super) fn look(plan: &Plan, facts: &Facts, found: &mut Vec<Finding>) {
    let endpoints: Vec<&PartOf> = facts.parts.iter().filter(|part| is_endpoint(part)).collect();
    let replicas: Vec<&PartOf> =
        facts.parts.iter().filter(|part| matches!(part.of, GroupKey::Replica(_))).collect();
    for (parts, word) in [(endpoints.as_slice(), "endpoints"), (replicas.as_slice(), "replicas")] {
        found.extend(failing(plan, facts, parts, word));
        found.extend(slow(plan, facts, parts));
    }
    found.extend(uneven(plan, facts, &endpoints));
}

fn is_endpoint(part: &PartOf) -> bool {
    matches!(part.of, GroupKey::Endpoint(_))
}

fn name(plan: &Plan, facts: &Facts, of: GroupKey) -> String {
    match of {
        GroupKey::Endpoint(place) => plan
            .target
            .endpoints
            .get(usize::from(place))
            .map_or_else(|| format!("endpoint {}", place + 1), |endpoint| endpoint.url.clone()),
        GroupKey::Replica(place) => facts
            .replicas
            .get(usize::from(place))
            .map_or_else(|| format!("replica {}", place + 1), |name| format!("replica {name}")),
        GroupKey::Model(_)
        | GroupKey::SlowReaders
        | GroupKey::FreshConnections
        | GroupKey::ReusedConnections => String::new(),
    }
}

/// The confidence of each of so many comparisons that hold together with 95 %.
fn each_of(parts: usize) -> Confidence {
    let tail = Confidence::C95.one_sided_tail() / parts.max(1) as f64;
    Confidence::new(1.0 - tail).unwrap_or(Confidence::C999)
}

/// Those of which surely a larger share fails than of all the others.
fn failing(plan: &Plan, facts: &Facts, parts: &[&PartOf], word: &str) -> Option<Finding> {
    let confidence = each_of(parts.len());
    let all = |of: fn(&PartOf) -> u64| parts.iter().map(|part| of(part)).sum::<u64>();
    let (failed, judged) = (all(|part| part.counts.failed), all(|part| part.counts.judged()));
    let bad = parts.iter().filter(|part| {
        let (own_failed, own) = (part.counts.failed, part.counts.judged());
        let own_share = Sample::new(own_failed, own).interval(confidence);
        let others = Sample::new(failed - own_failed, judged - own).interval(confidence);
        own_failed > 0 && own_share.low > others.high
    });
    let bad: Vec<&&PartOf> = bad.collect();
    let worst = bad.iter().max_by(|a, b| failed_share(a).total_cmp(&failed_share(b)))?;
    let (own_failed, own) = (worst.counts.failed, worst.counts.judged());
    let (rest_failed, rest) = (failed - own_failed, judged - own);
    let mut evidence = format!(
        "{} failed {own_failed} of {} ({}), the other {word} {rest_failed} of {rest}",
        name(plan, facts, worst.of),
        count(own, "request"),
        percent(own_failed as f64, own as f64),
    );
    let further: Vec<String> =
        bad.iter().filter(|part| part.of != worst.of).map(|part| name(plan, facts, part.of)).collect();
    if !further.is_empty() {
        evidence.push_str(&format!("; so do {}", further.join(", ")));
    }
    let remedy = "look at that server, and judge the others by their own rows";
    Some(Finding::new(Rule::ReplicaFailing, Grade::Warn, evidence, remedy))
}

fn failed_share(part: &PartOf) -> f64 {
    part.counts.failed as f64 / part.counts.judged().max(1) as f64
}

/// The one that is slowest against the rest, or, where none is slower, the one that is fastest.
fn slow(plan: &Plan, facts: &Facts, parts: &[&PartOf]) -> Option<Finding> {
    let known = || parts.iter().flat_map(|part| part.against.iter().map(move |against| (part.of, against)));
    let slower = known().filter(|(_, one)| one.is_slower() && one.ratio >= RATIO_MIN);
    let faster = known().filter(|(_, one)| one.is_faster() && one.ratio <= 1.0 / RATIO_MIN);
    let slowest = slower.max_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
    let (of, against) = slowest.or_else(|| faster.min_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio)))?;
    let evidence = format!("{} is {}", name(plan, facts, of), in_words(against)?);
    let remedy =
        "look at that server: the level's percentiles are a mixture, so judge by the rows of its parts";
    Some(Finding::new(Rule::ReplicaSlow, Grade::Warn, evidence, remedy))
}

/// `1.5 times slower (1.4 to 1.6): TTFT p50 300 ms (280 ms to 320 ms) against 200 ms`.
fn in_words(against: &Against) -> Option<String> {
    let Against { metric, value, low, high, others, ratio, ratio_low, ratio_high } = *against;
    let (times, word, least, most) = match ratio >= 1.0 {
        true => (ratio, "slower", ratio_low?, ratio_high),
        false => (1.0 / ratio, "faster", 1.0 / ratio_high?, ratio_low.map(|low| 1.0 / low)),
    };
    let most = most.map_or_else(|| "more".to_owned(), |most| format!("{most:.2}"));
    let metric = if metric == Metric::Tpot { "TPOT" } else { "TTFT" };
    let within =
        low.zip(high).map_or_else(String::new, |(low, high)| format!(" ({} to {})", time(low), time(high)));
    Some(format!(
        "{times:.2} times {word} ({least:.2} to {most}): {metric} p50 {}{within} against {} of the others",
        time(value),
        time(others)
    ))
}

/// Shares of the endpoints that are not those of the strategy: of sessions, since turns follow their session.
fn uneven(plan: &Plan, facts: &Facts, parts: &[&PartOf]) -> Option<Finding> {
    let due = due(plan, facts)?;
    let all: u64 = parts.iter().map(|part| part.sessions).sum();
    let confidence = each_of(due.len());
    let of = |place: usize| {
        let is = |part: &&&PartOf| part.of == GroupKey::Endpoint(place as u16);
        parts.iter().find(is).map_or(0, |part| part.sessions)
    };
    let off = due.iter().enumerate().filter_map(|(place, due)| {
        let own = of(place);
        let (share, within) = (own as f64 / all.max(1) as f64, Sample::new(own, all).interval(confidence));
        let relative = (share / due).ln().abs();
        (all > 0 && !within.contains(*due) && relative >= RATIO_MIN.ln())
            .then_some((place, own, *due, relative))
    });
    let (place, own, due, _) = off.max_by(|a, b| a.3.total_cmp(&b.3))?;
    let evidence = format!(
        "{} got {} of the requests ({own} of {all}), where {} gives it {}",
        name(plan, facts, GroupKey::Endpoint(place as u16)),
        percent(own as f64, all as f64),
        plan.target.url_strategy.name(),
        percent(due, 1.0)
    );
    let remedy = "mind that users who wait for a slow server ask it less: an open loop does not";
    Some(Finding::new(Rule::ShareUneven, Grade::Info, evidence, remedy))
}

/// The share that each endpoint is due; `None` where there is one, or it depends on how fast they are.
fn due(plan: &Plan, facts: &Facts) -> Option<Vec<f64>> {
    let n = plan.target.endpoints.len();
    let users = facts.level.load.users.filter(|_| plan.target.url_strategy == UrlStrategy::StickySession);
    if n < 2 {
        return None;
    }
    let Some(users) = users.filter(|users| *users > 0) else { return plan.target.shares_due() };
    let routing = Routing::new(&plan.target).of_level(&facts.level);
    let mut due = vec![0.0; n];
    for index in 0..u64::from(users) {
        let item = Item { seed: plan.seed, phase: crate::metrics::Phase::Measured, index };
        if let Some(own) = routing.of(item).and_then(|place| due.get_mut(place)) {
            *own += 1.0 / f64::from(users);
        }
    }
    // Nothing is due where there is no user.
    due.iter().all(|due| *due > 0.0).then_some(due)
}
