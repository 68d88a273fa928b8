//! Where the server is, what stands before it, and what is declared of it because nobody can see it.

use core::net::IpAddr;

use super::Surroundings;
use crate::plan::{Finding, Grade, Plan, Rule};

pub(super) fn look(plan: &Plan, around: &Surroundings, found: &mut Vec<Finding>) {
    // A model has no state from before, no platform and no way to it.
    if around.simulated {
        return;
    }
    found.extend(declared(&FRESH_SERVER, plan.declared.fresh_server));
    found.extend(declared(&SAME_AS_PRODUCTION, plan.declared.same_as_production));
    let here = around.server_on_this_host || around.addresses.iter().any(IpAddr::is_loopback);
    if here {
        found.push(Finding::new(
            Rule::ClientOnServerHost,
            Grade::Info,
            "client and server share this machine, and its cores",
            "run tokload on another machine, or keep both on cores of their own",
        ));
    }
    found.extend(localhost(plan, around));
    found.extend(proxy(around, here));
}

/// Something that only the user knows.
struct Fact {
    rule: Rule,
    unknown: &'static str,
    denied: &'static str,
    /// What to do where it is denied.
    remedy: &'static str,
    /// How it is declared.
    options: &'static str,
}

const FRESH_SERVER: Fact = Fact {
    rule: Rule::ServerReusedAcrossConfigs,
    unknown: "not declared whether the server is fresh",
    denied: "the server goes on from one configuration to the next, with what that one left in its caches",
    remedy: "start the server anew before each",
    options: "give --fresh-server or --no-fresh-server",
};

const SAME_AS_PRODUCTION: Fact = Fact {
    rule: Rule::NotProductionPlatform,
    unknown: "not declared whether it is that of production",
    denied: "hardware or software differ from those of production, and so will its numbers",
    remedy: "measure on the platform that will serve",
    options: "give --same-as-production or --no-same-as-production",
};

fn declared(fact: &Fact, value: Option<bool>) -> Option<Finding> {
    match value {
        Some(true) => None,
        Some(false) => Some(Finding::new(fact.rule, Grade::Warn, fact.denied, fact.remedy)),
        None => Some(Finding::new(fact.rule, Grade::Info, fact.unknown, fact.options)),
    }
}

/// Both families are tried in the system's order: a server that listens on one of them refuses the other first, and
/// another server may listen there.
fn localhost(plan: &Plan, around: &Surroundings) -> Option<Finding> {
    let hosts = plan.target.endpoints.iter().filter_map(|endpoint| endpoint.address().ok());
    let named = hosts.into_iter().any(|address| address.host.eq_ignore_ascii_case("localhost"));
    let loopback = |v4| around.addresses.iter().any(|ip| ip.is_loopback() && ip.is_ipv4() == v4);
    (named && loopback(true) && loopback(false)).then(|| {
        Finding::new(
            Rule::LocalhostResolvesTwice,
            Grade::Info,
            "localhost is 127.0.0.1 and ::1, where different servers may listen",
            "name the address in --base-url",
        )
    })
}

/// Nobody expects requests to this very machine to take the way of a proxy.
fn proxy(around: &Surroundings, here: bool) -> Option<Finding> {
    if let Some(via) = &around.via {
        let evidence = format!("an answer came by way of {via}, whose share is in every latency");
        return Some(Finding::new(Rule::ProxyInPath, Grade::Warn, evidence, "ask the server itself"));
    }
    (!around.proxies.is_empty() && !here).then(|| {
        let verb = if around.proxies.len() == 1 { "is" } else { "are" };
        let evidence = format!(
            "{} {verb} set and not used: requests go straight to the server",
            around.proxies.join(", ")
        );
        Finding::new(
            Rule::ProxyInPath,
            Grade::Info,
            evidence,
            "name the proxy in --base-url to measure it too",
        )
    })
}
