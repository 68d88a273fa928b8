//! What follows from a level: its default length, its label, the descriptors it needs, its own seed.

use serde::Deserialize;

use super::{Arrivals, Level, Load, Plan, Series, Stop, in_label};

/// How a load is written in a file: arrivals may be left out.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LoadText {
    arrivals: Option<Arrivals>,
    cap: Option<u32>,
    users: Option<u32>,
    think_s: f64,
}

impl Default for LoadText {
    fn default() -> LoadText {
        LoadText { arrivals: None, cap: None, users: None, think_s: 0.0 }
    }
}

impl From<LoadText> for Load {
    fn from(text: LoadText) -> Load {
        let LoadText { arrivals, cap, users, think_s } = text;
        let unnamed = if users.is_some() { Arrivals::Closed } else { Arrivals::Burst };
        Load { arrivals: arrivals.unwrap_or(unnamed), cap, users, think_s }
    }
}

/// Every level once.
pub(super) const fn once() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(super) const fn is_once(runs: &u32) -> bool {
    *runs == 1
}

/// File descriptors that a plan needs for its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptors {
    /// Connections open at once.
    pub connections: u64,
    /// The number is a guess: an open loop without a cap has no bound but the server's speed.
    pub estimated: bool,
}

impl Plan {
    /// Fills what was left open: one burst where there is no level, [`Level::default_units`] where a level has
    /// neither a number of requests nor a duration (and in a burst, which a duration does not end). A trace has an end of
    /// its own, and so has a rate over time, once through. Options that the dialect does not have are switched off ([`Plan::fit_dialect`]).
    pub fn complete(&mut self) {
        self.fit_dialect();
        if self.levels.is_empty() {
            self.levels.push(Level::default());
        }
        if let (Some(stress), [level]) = (&self.stress, self.levels.as_mut_slice())
            && level.stop.units.is_none()
            && level.stop.duration_s.is_none()
        {
            level.stop.duration_s = Some(stress.length_s());
        }
        for level in &mut self.levels {
            level.end_with_series();
            let endless = level.stop.duration_s.is_none() || level.load.arrivals == Arrivals::Burst;
            if level.stop.units.is_none() && endless && level.load.speedup().is_none() {
                level.stop.units = Some(level.default_units());
            }
        }
    }

    /// The levels in the order in which they are run: round after round, as many as [`Plan::runs`]. So a server that
    /// drifts does so for all of them, where a level run several times in a row would seem to differ from the others.
    #[must_use]
    pub fn in_rounds(&self) -> Vec<Level> {
        std::iter::repeat_n(&self.levels, self.runs as usize).flatten().cloned().collect()
    }

    /// In which round, from 0, the level at place `ordinal` of [`Plan::in_rounds`] is run.
    #[must_use]
    pub fn round(&self, ordinal: usize) -> usize {
        ordinal / self.levels.len().max(1)
    }

    /// The seed of the level at place `ordinal` of [`Plan::in_rounds`]: levels have different prompts and schedules, in
    /// each round again, so that none finds the prompts of an earlier one in the server's cache.
    #[must_use]
    pub fn level_seed(&self, ordinal: usize) -> u64 {
        // Level 0 keeps the seed, so that a run of one level is what its seed says. The multiplier is odd, so that
        // no two levels below 2^64 share a seed.
        self.seed.wrapping_add((ordinal as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    /// What the connections of the most demanding level need: users, cap, units of a burst; for an open loop without
    /// a cap, twice its largest rate times the time that a request of exactly the SLO takes (without an SLO: 500 ms and
    /// 50 ms a token), at most its units. The program itself needs some more.
    #[must_use]
    pub fn descriptors_needed(&self) -> Descriptors {
        let none = Descriptors { connections: 0, estimated: false };
        let of_levels = self.levels.iter().map(|level| self.level_descriptors(level));
        let overload = self
            .stress
            .iter()
            .zip(&self.levels)
            .map(|(stress, level)| Descriptors { connections: stress.backlog(level), estimated: true });
        of_levels
            .chain(overload)
            .fold(none, |most, next| if next.connections > most.connections { next } else { most })
    }

    /// How long a request of exactly the SLO takes (without an SLO: 500 ms and 50 ms a token), s.
    pub(super) fn request_s(&self) -> f64 {
        let (ttft_ms, tpot_ms) = (self.slo.ttft_ms.unwrap_or(500.0), self.slo.tpot_ms.unwrap_or(50.0));
        (ttft_ms + tpot_ms * self.workload.output_tokens.mean()) / 1000.0
    }

    pub(super) fn level_descriptors(&self, level: &Level) -> Descriptors {
        let limit = self.target.connections.max.map(|max| {
            let endpoints = self.target.endpoints.len().max(1) as u64;
            self.own_share().count(u64::from(max)).max(1).saturating_mul(endpoints)
        });
        let load = self.load_descriptors(level);
        let warm = u64::from(self.target.connections.prewarm) * self.target.endpoints.len() as u64;
        let connections = load.connections.min(limit.unwrap_or(u64::MAX)).max(self.own_share().count(warm));
        // What a limit bounds is no guess.
        Descriptors {
            connections,
            estimated: load.estimated && limit.is_none_or(|limit| load.connections < limit),
        }
    }

    fn load_descriptors(&self, level: &Level) -> Descriptors {
        let times = self.until.map_or(1, |until| until.times_max);
        let units = level.stop.units.map_or(u64::MAX, |units| units.saturating_mul(u64::from(times)));
        let share = self.own_share();
        let sure = |n: u64| Descriptors { connections: share.count(n.min(units)), estimated: false };
        match (level.load.users.or(level.load.cap), level.load.peak_rate()) {
            (Some(most), _) => sure(u64::from(most)),
            // How many of a trace's requests are in flight at once nobody knows.
            (None, None) if level.load.speedup().is_some() => {
                Descriptors { connections: OF_A_TRACE.min(units), estimated: true }
            }
            (None, None) => sure(level.stop.units.unwrap_or_else(|| level.default_units())),
            (None, Some(rate)) => {
                // The rate is one of sessions.
                let turns = self.workload.conversation.as_ref().map_or(1.0, |talk| talk.turns.mean());
                let burst = u64::from(level.load.burst_size().unwrap_or(0));
                let in_flight = ((2.0 * rate * turns * self.request_s()).ceil() as u64).max(burst);
                let connections = share.count(in_flight.clamp(1, units.max(1))).max(1);
                Descriptors { connections, estimated: true }
            }
        }
    }
}

impl Level {
    /// Ends a level that has no end with the rate over time that it has.
    fn end_with_series(&mut self) {
        if let Stop { units: None, duration_s: None, .. } = self.stop {
            self.stop.duration_s = self.load.arrivals.series().map(Series::length_s);
        }
    }

    /// Requests of a level that says nothing else: max(16, 4 N) for N users, 64 for a rate or a burst.
    #[must_use]
    pub fn default_units(&self) -> u64 {
        match self.load.users {
            Some(users) => (4 * u64::from(users)).max(16),
            None => 64,
        }
    }

    /// A few words for tables: `4 users`, `4 users, paced 2 req/s`, `4 users, in 30 s`, `5 req/s`, `5 req/s, cap 8`,
    /// `0 to 50 req/s`, `burst of 64`, `8 every 10 s`, `trace`, `trace x2`; `4 users, prompts of 3000` where the lengths are
    /// the level's own.
    #[must_use]
    pub fn label(&self) -> String {
        self.load_label() + &self.sizes.in_label()
    }

    fn load_label(&self) -> String {
        let load = &self.load;
        if let Some(users) = load.users {
            let paced = load.rate().map(|rate| format!(", paced {} req/s", in_label(rate)));
            let more = paced.or_else(|| Some(format!(", in {} s", load.ramp_s()?))).unwrap_or_default();
            return format!("{users} user{}{more}", if users == 1 { "" } else { "s" });
        }
        let mut label = match (&load.arrivals, load.rate(), self.stop.units) {
            (Arrivals::Bursts { size, every_s }, ..) => format!("{size} every {every_s} s"),
            (_, Some(rate), _) => format!("{} req/s", in_label(rate)),
            (Arrivals::Varying(varying), ..) => format!("{} req/s", varying.rate),
            _ if load.speedup() == Some(1.0) => "trace".to_owned(),
            _ if load.speedup().is_some() => format!("trace x{}", in_label(load.speedup().unwrap_or(1.0))),
            (_, None, Some(units)) => format!("burst of {units}"),
            (_, None, None) => "burst".to_owned(),
        };
        if let Some(cap) = load.cap {
            label.push_str(&format!(", cap {cap}"));
        }
        label
    }
}

/// Connections that are made room for where a trace is replayed.
const OF_A_TRACE: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn open(arrivals: Arrivals, cap: Option<u32>) -> Level {
        Level { load: Load { arrivals, cap, users: None, think_s: 0.0 }, ..Level::default() }
    }

    fn closed(users: u32) -> Level {
        Level { load: Load::closed(users), ..Level::default() }
    }

    #[test]
    fn labels() {
        let poisson = Arrivals::Poisson { rate: 5.0 };
        let burst = Level { stop: Stop { units: Some(64), ..Stop::default() }, ..Level::default() };
        assert_eq!(closed(1).label(), "1 user");
        assert_eq!(closed(4).label(), "4 users");
        let paced = Level { load: Load::paced(4, 2.0), ..Level::default() };
        assert_eq!(paced.label(), "4 users, paced 2 req/s");
        assert_eq!(open(poisson, None).label(), "5 req/s");
        assert_eq!(open(Arrivals::Constant { rate: 2.5 }, Some(8)).label(), "2.5 req/s, cap 8");
        assert_eq!(burst.label(), "burst of 64");
        let joining = Load { arrivals: Arrivals::Joining { ramp_s: 30.0 }, ..Load::closed(4) };
        assert_eq!(Level { load: joining, ..Level::default() }.label(), "4 users, in 30 s");
        assert_eq!(open(Arrivals::Bursts { size: 8, every_s: 2.5 }, None).label(), "8 every 2.5 s");
        assert_eq!(open(Arrivals::Trace { speedup: 1.0 }, None).label(), "trace");
        assert_eq!(open(Arrivals::Trace { speedup: 2.5 }, Some(8)).label(), "trace x2.5, cap 8");
    }

    #[test]
    fn what_is_left_open_is_completed() {
        let mut plan = Plan::new(1);
        plan.complete();
        assert_eq!(plan.levels[0].label(), "burst of 64");

        let timed = |level: Level| Level { stop: Stop { duration_s: Some(9.0), ..Stop::default() }, ..level };
        plan.levels =
            vec![closed(1), closed(32), open(Arrivals::Poisson { rate: 1.0 }, Some(4)), timed(closed(2))];
        plan.levels.push(timed(Level::default()));
        plan.complete();
        let units: Vec<_> = plan.levels.iter().map(|l| l.stop.units).collect();
        assert_eq!(units, [Some(16), Some(128), Some(64), None, Some(64)]);
    }

    #[test]
    fn descriptors_are_those_of_the_largest_level() {
        let mut plan = Plan::new(1);
        plan.levels = vec![closed(8), closed(500), open(Arrivals::Poisson { rate: 90.0 }, Some(64))];
        plan.complete();
        assert_eq!(plan.descriptors_needed(), Descriptors { connections: 500, estimated: false });

        // 64 tokens at 50 ms after 500 ms are 3.7 s; twice 10 req/s of that are 74 connections, of which 64 requests
        // can use 64.
        plan.levels = vec![open(Arrivals::Poisson { rate: 10.0 }, None)];
        assert_eq!(plan.descriptors_needed(), Descriptors { connections: 74, estimated: true });
        plan.complete();
        assert_eq!(plan.descriptors_needed(), Descriptors { connections: 64, estimated: true });

        // Ten times 64 requests may come: the guess is no longer bounded by their number.
        plan.until = Some(crate::plan::Until {
            figure: crate::plan::Figure::Attainment,
            half_width: 0.05,
            times_max: 10,
        });
        assert_eq!(plan.descriptors_needed(), Descriptors { connections: 74, estimated: true });
        plan.until = None;

        plan.levels = vec![Level { stop: Stop { units: Some(9000), ..Stop::default() }, ..Level::default() }];
        assert_eq!(plan.descriptors_needed(), Descriptors { connections: 9000, estimated: false });
    }

    #[test]
    fn levels_have_seeds_of_their_own() {
        let plan = Plan::new(42);
        assert_eq!(plan.level_seed(0), 42);
        assert_ne!(plan.level_seed(1), plan.level_seed(2));
    }

    #[test]
    fn rounds_take_the_levels_in_turn_and_no_two_share_a_seed() {
        let mut plan = Plan::new(42);
        plan.levels = vec![closed(1), closed(2), closed(4)];
        assert_eq!(plan.in_rounds(), plan.levels, "one round is the plan");
        plan.runs = 3;
        let run = plan.in_rounds();
        let users: Vec<_> = run.iter().map(|level| level.load.users.unwrap()).collect();
        assert_eq!(users, [1, 2, 4, 1, 2, 4, 1, 2, 4]);
        let rounds: Vec<_> = (0..run.len()).map(|ordinal| plan.round(ordinal)).collect();
        assert_eq!(rounds, [0, 0, 0, 1, 1, 1, 2, 2, 2]);
        let mut seeds: Vec<_> = (0..run.len()).map(|ordinal| plan.level_seed(ordinal)).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), run.len());
    }
}
