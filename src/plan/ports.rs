//! Local ports that a plan takes: each connection to an address and port of a server needs one of its own, and whoever
//! closes first keeps it for a while.

use super::{Level, Plan, Reuse};

/// What connections to one address of a server need of this machine's ports at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortsNeeded {
    /// Connections at once.
    pub at_once: u64,
    /// How many that are closed already still hold theirs (`TIME_WAIT`), in the busiest minute.
    pub held: u64,
    /// The first number is a guess, as in [`Descriptors`](super::Descriptors); the second always is, but for its bound.
    pub estimated: bool,
}

/// How long Linux keeps a port in `TIME_WAIT`, s; no setting changes it.
pub const TIME_WAIT_S: f64 = 60.0;

impl Plan {
    /// The ports that the most demanding level needs, where endpoint `i` has `addresses[i]` addresses that connections go
    /// to, at least 1, and a port is held for `held_s` after its connection was closed by us.
    #[must_use]
    pub fn ports_needed(&self, addresses: &[usize], held_s: f64) -> PortsNeeded {
        let n = self.target.endpoints.len().max(1);
        let shares = self.target.shares_due().unwrap_or_else(|| vec![1.0 / n as f64; n]);
        // Connections go to one address of a name, but for those that are used in turn.
        let spread = |place: usize| match self.target.all_addresses {
            true => addresses.get(place).copied().unwrap_or(1).max(1) as f64,
            false => 1.0,
        };
        let most = shares.iter().enumerate().map(|(place, share)| share / spread(place)).fold(0.0, f64::max);
        let of_levels = self.levels.iter().map(|level| self.ports_of(level, most, held_s));
        of_levels.fold(PortsNeeded::default(), |worst, next| {
            if next.at_once + next.held > worst.at_once + worst.held { next } else { worst }
        })
    }

    /// The same of one level, of whose requests the `share` goes to one address.
    fn ports_of(&self, level: &Level, share: f64, held_s: f64) -> PortsNeeded {
        let needed = self.level_descriptors(level);
        let limit = self.target.connections.max.map_or(u64::MAX, u64::from);
        let part = |n: f64| (n * share).ceil() as u64;
        let at_once = part(needed.connections as f64).min(limit);
        let closes = self.target.connections.reuse != Reuse::Pooled;
        let held = if closes { self.closed_within(level, held_s) } else { 0.0 };
        PortsNeeded { at_once, held: part(held), estimated: needed.estimated }
    }

    /// Connections that are closed within `seconds` at the level's load: one for each request, or for each session.
    fn closed_within(&self, level: &Level, seconds: f64) -> f64 {
        let turns = match self.target.connections.reuse {
            Reuse::Never => self.workload.conversation.as_ref().map_or(1.0, |talk| talk.turns.mean()),
            Reuse::Pooled | Reuse::StickyUserSessions => 1.0,
        };
        let share = self.own_share();
        let all = level.stop.units.map_or(f64::INFINITY, |units| share.count(units) as f64) * turns;
        let rate = match (level.load.users, level.load.peak_rate()) {
            (_, Some(rate)) => share.rate(rate) * turns,
            // Each user as fast as the SLO lets it: servers may well be quicker, and are then held to the number of requests.
            (Some(users), None) => {
                share.count(u64::from(users)) as f64 / (self.request_s() + level.load.think_s)
            }
            (None, None) => f64::INFINITY,
        };
        let length_s = level.stop.duration_s.unwrap_or(f64::INFINITY);
        let closed = (rate * seconds.min(length_s)).min(all);
        if closed.is_finite() { closed } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Arrivals, Connections, Endpoint, Load, Stop};

    fn plan(load: Load, units: u64) -> Plan {
        let mut plan = Plan::new(1);
        plan.target.endpoints = vec![Endpoint { url: "http://h:80".to_owned() }];
        let stop = Stop { units: Some(units), ..Stop::default() };
        plan.levels = vec![Level { load, stop, ..Level::default() }];
        plan
    }

    fn needed(plan: &Plan) -> (u64, u64) {
        let needed = plan.ports_needed(&[2], TIME_WAIT_S);
        (needed.at_once, needed.held)
    }

    #[test]
    fn users_need_a_port_each_and_a_limit_is_a_limit() {
        let mut plan = plan(Load::closed(30_000), 100_000);
        assert_eq!(needed(&plan), (30_000, 0));
        plan.target.all_addresses = true;
        assert_eq!(needed(&plan), (15_000, 0));
        plan.target.connections.max = Some(100);
        assert_eq!(needed(&plan), (50, 0), "to both addresses together");
        plan.target.all_addresses = false;
        assert_eq!(needed(&plan), (100, 0));
    }

    #[test]
    fn what_is_closed_holds_its_port_for_a_minute() {
        let rate =
            Load { arrivals: Arrivals::Constant { rate: 700.0 }, cap: Some(50), users: None, think_s: 0.0 };
        let mut plan = plan(rate, 1_000_000);
        assert_eq!(needed(&plan), (50, 0));
        plan.target.connections = Connections { reuse: Reuse::Never, ..Connections::default() };
        assert_eq!(needed(&plan), (50, 42_000));
        plan.levels[0].stop.units = Some(1000);
        assert_eq!(needed(&plan), (50, 1000));
        let second = plan.target.endpoints[0].clone();
        plan.target.endpoints.push(second);
        assert_eq!(needed(&plan), (25, 500));
    }
}
