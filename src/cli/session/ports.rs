//! Whether this machine has ports enough for the connections of a plan.

use crate::cli::failure::Failure;
use crate::load::Route;
use crate::plan::{Plan, PortsNeeded, Reuse, TIME_WAIT_S};
use crate::sys::socket::Peer;
use crate::sys::usage::Ports;

/// Refuses a plan that needs more local ports towards one address of a server than there are; returns what to say of one
/// that may come to it.
pub(in crate::cli) fn check(plan: &Plan, routes: &[Route], have: &Ports) -> Result<Option<String>, Failure> {
    let is_inet = |route: &Route| route.addresses.iter().any(|peer| matches!(peer, Peer::Inet(_)));
    let Some(all) = have.all.filter(|_| routes.iter().any(is_inet)) else { return Ok(None) };
    let addresses: Vec<usize> = routes.iter().map(|route| route.addresses.len()).collect();
    let is_loopback =
        |route: &Route| route.addresses.iter().all(|peer| peer.ip().is_none_or(|ip| ip.is_loopback()));
    let is_here = routes.iter().all(is_loopback);
    let needed = plan.ports_needed(&addresses, held_s(have.tw_reuse, is_here));
    judged(needed, all, plan.target.connections.reuse).map_err(Failure::bad)
}

/// How long a port is not given again after its connection was closed, s.
fn held_s(reuse: Option<u64>, is_loopback: bool) -> f64 {
    match reuse {
        // net.ipv4.tcp_tw_reuse: 1 for all outgoing connections, 2 for those on loopback, each after a second.
        Some(1) => 1.0,
        Some(2) if is_loopback => 1.0,
        _ => TIME_WAIT_S,
    }
}

fn judged(needed: PortsNeeded, all: u64, reuse: Reuse) -> Result<Option<String>, String> {
    let PortsNeeded { at_once, held, estimated } = needed;
    if at_once > all && !estimated {
        return Err(format!(
            "the plan needs {at_once} connections at once to one address of a server, and this machine has {all} local ports \
             for that (net.ipv4.ip_local_port_range); {REMEDY}, or lower the load or --max-connections"
        ));
    }
    if at_once.saturating_add(held) <= all {
        return Ok(None);
    }
    let what = match held {
        0 => format!("some {at_once} connections at once"),
        _ => {
            format!("some {at_once} connections at once beside {held} that hold their ports after their end")
        }
    };
    let pooled = if reuse == Reuse::Pooled { "" } else { ", or let requests share connections" };
    Ok(Some(format!(
        "ports may run out: the plan comes to {what}, to one address of a server, and this machine has {all} local ports for \
         that (net.ipv4.ip_local_port_range); {REMEDY}{pooled}; a request without a port fails as no_local_port"
    )))
}

const REMEDY: &str = "widen the range, spread the load over more addresses (--all-addresses, further --base-url) or machines \
                      (--share)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_fit_is_refused_and_what_may_not_is_said() {
        let judged =
            |at_once, held, estimated| judged(PortsNeeded { at_once, held, estimated }, 28_232, Reuse::Never);
        assert_eq!(judged(28_232, 0, false), Ok(None));
        assert!(judged(28_233, 0, false).unwrap_err().contains("has 28232 local ports"));
        assert!(judged(28_233, 0, true).unwrap().unwrap().contains("ports may run out"));
        assert!(judged(1000, 27_233, false).unwrap().unwrap().contains("beside 27233 that hold"));
        assert_eq!(judged(1000, 27_232, false), Ok(None));
    }

    #[test]
    fn a_port_is_held_for_a_minute_unless_the_kernel_gives_it_again() {
        assert_eq!((held_s(Some(2), true), held_s(Some(2), false)), (1.0, 60.0));
        assert_eq!((held_s(Some(1), false), held_s(Some(0), true), held_s(None, true)), (1.0, 60.0, 60.0));
    }
}
