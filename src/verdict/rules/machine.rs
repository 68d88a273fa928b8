//! What the client's machine and its connections went through.

use super::words::{count, percent, seconds};
use crate::metrics::Class;
use crate::plan::{Connections, Finding, Grade, Plan, Reuse, Rule};
use crate::verdict::Facts;

const STEAL_SHARE_MAX: f64 = 0.01;
/// Share of a level that the client may be held back for.
const THROTTLED_SHARE_MAX: f64 = 0.001;
/// Share of requests that may need a new connection beyond those that are open at once.
const NEW_SHARE_MAX: f64 = 0.1;
const PORTS_SHARE_MAX: f64 = 0.8;
/// Share of the local ports from which on the level's own connections are part of that.
const OWN_SHARE_MIN: f64 = 0.05;
/// Segments sent again, per request, that the tail of latencies shows.
const RETRANSMITS_MAX: f64 = 0.01;

pub(super) fn look(plan: &Plan, facts: &Facts, found: &mut Vec<Finding>) {
    found.extend(steal(facts));
    found.extend(throttled(facts));
    found.extend(memory(facts));
    found.extend(reuse(plan, facts));
    found.extend(ports(facts));
    found.extend(retransmits(facts));
}

fn steal(facts: &Facts) -> Option<Finding> {
    let steal = facts.client.host?.steal_share.filter(|share| *share > STEAL_SHARE_MAX)?;
    let evidence = format!("other guests of the machine took {} of its CPU time", percent(steal, 1.0));
    Some(Finding::new(Rule::CpuSteal, Grade::Warn, evidence, "measure from a machine that is not shared"))
}

fn throttled(facts: &Facts) -> Option<Finding> {
    let level_s = facts.times.level_s;
    let held_s = facts.client.host?.throttled_s.filter(|s| *s > THROTTLED_SHARE_MAX * level_s)?;
    let evidence =
        format!("the CPU quota held the client back for {} of {}", seconds(held_s), seconds(level_s));
    Some(Finding::new(Rule::CpuThrottled, Grade::Warn, evidence, "raise the container's CPU limit"))
}

fn memory(facts: &Facts) -> Option<Finding> {
    let host = facts.client.host?;
    if host.records_lost > 0 {
        let evidence = format!("{} could not be written", count(host.records_lost, "record"));
        let remedy = "save to a faster disk, or give --no-records";
        return Some(Finding::new(Rule::Memory, Grade::Warn, evidence, remedy));
    }
    let pages = host.swapped_pages.filter(|pages| *pages > 0)?;
    let waits = count(host.major_faults, "time");
    let evidence =
        format!("the machine swapped {}; the client waited {waits} for a disk", count(pages, "page"));
    Some(Finding::new(Rule::Memory, Grade::Warn, evidence, "free memory on the client's machine"))
}

/// As many connections as requests are open at once must be made, and one for each that was given up; what counts are
/// those beyond.
fn reuse(plan: &Plan, facts: &Facts) -> Option<Finding> {
    // Whoever asks for fresh connections gets them.
    let Connections { reuse, max_age_s, max_requests, .. } = &plan.target.connections;
    if *reuse != Reuse::Pooled || max_age_s.is_some() || max_requests.is_some() {
        return None;
    }
    let (client, load) = (&facts.client, &facts.level.load);
    let planned = || load.users.or(load.cap).map(|n| u64::from(facts.own(plan, n)));
    let at_once = facts.in_flight.map(|n| n.max).or_else(planned)?;
    // Where nothing listens there is nothing to keep open.
    let refused = facts.counts.outcomes.iter().filter(|seen| seen.outcome.class == Class::Connect);
    let opened = client.connects.saturating_sub(refused.map(|seen| seen.count).sum());
    let beyond = opened.saturating_sub(at_once).saturating_sub(facts.counts.cancelled);
    if beyond as f64 <= NEW_SHARE_MAX * client.sent as f64 {
        return None;
    }
    let evidence = format!(
        "{} for {}, of which at most {at_once} were open at once",
        count(opened, "connection"),
        count(client.sent, "request")
    );
    let remedy = "let the server, and what stands before it, keep connections open";
    Some(Finding::new(Rule::ConnectionReuse, Grade::Warn, evidence, remedy))
}

fn ports(facts: &Facts) -> Option<Finding> {
    let host = facts.client.host?;
    let (waiting, ports) = (host.time_wait?, host.ports?);
    if waiting as f64 <= PORTS_SHARE_MAX * ports as f64 {
        return None;
    }
    // Who keeps connections open needs no more ports, however many others have used.
    if (facts.client.connects as f64) < OWN_SHARE_MIN * ports as f64 {
        return None;
    }
    let opened = count(facts.client.connects, "connection");
    let evidence = format!(
        "{waiting} connections that have ended hold local ports, of which there are {ports}; the level opened {opened}"
    );
    let remedy = "widen net.ipv4.ip_local_port_range, or keep connections open";
    Some(Finding::new(Rule::PortsShort, Grade::Warn, evidence, remedy))
}

fn retransmits(facts: &Facts) -> Option<Finding> {
    let (again, sent) = (facts.client.retransmits, facts.client.sent);
    (again > 0).then(|| {
        let many = again as f64 > RETRANSMITS_MAX * sent as f64;
        let grade = if many { Grade::Warn } else { Grade::Info };
        let evidence =
            format!("the kernel sent {} again, in {}", count(again, "segment"), count(sent, "request"));
        Finding::new(Rule::Retransmits, grade, evidence, "look for losses on the way to the server")
    })
}
