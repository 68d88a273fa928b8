//! Which of several endpoints a request goes to, where that does not depend on what is under way.

use crate::plan::{Level, Target, UrlStrategy};
use crate::rng::Purpose;
use crate::workload::Item;
use crate::workload::choice::Choice;

/// How requests are spread over the endpoints of a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    /// `None`: to the endpoint with the fewest requests under way, chosen when a request is sent.
    choice: Option<Choice>,
    /// All requests of a user stay together.
    by_user: bool,
    /// The users of the closed loop, who own every so manyth session; `None` in an open loop.
    users: Option<u64>,
}

impl Routing {
    /// What `target` asks for, which is taken as validated.
    #[must_use]
    pub fn new(target: &Target) -> Routing {
        let weights = match target.url_weights.as_slice() {
            weights if weights.len() == target.endpoints.len() && !weights.is_empty() => weights.to_vec(),
            _ => vec![1; target.endpoints.len().max(1)],
        };
        let choice = match target.url_strategy {
            UrlStrategy::LeastOutstanding => None,
            UrlStrategy::Random => Some(Choice::drawn(&weights, Purpose::Endpoints)),
            UrlStrategy::RoundRobin => Some(Choice::equal(weights.len())),
            UrlStrategy::Weighted | UrlStrategy::StickySession => Some(Choice::in_turn(&weights)),
        };
        Routing { choice, by_user: target.url_strategy == UrlStrategy::StickySession, users: None }
    }

    /// So many endpoints in turn.
    #[must_use]
    pub fn in_turn(endpoints: usize) -> Routing {
        Routing { choice: Some(Choice::equal(endpoints)), by_user: false, users: None }
    }

    /// The same for the users of `level`.
    #[must_use]
    pub fn of_level(&self, level: &Level) -> Routing {
        let users = level.load.users.map(u64::from).filter(|users| self.by_user && *users > 0);
        Routing { users, ..self.clone() }
    }

    /// Whether it depends on who sends.
    #[must_use]
    pub fn is_by_user(&self) -> bool {
        self.by_user
    }

    /// The endpoint of `item` with all its turns; `None` where that is chosen for each request when it is sent.
    #[must_use]
    pub fn of(&self, item: Item) -> Option<usize> {
        // User `u` of `n` runs the sessions `u`, `u + n`, `u + 2 n` and so on.
        let place = self.users.map_or(item.index, |users| item.index % users);
        self.choice.as_ref().map(|choice| choice.of(item.seed, place))
    }

    /// Whether every request's endpoint is known beforehand.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.choice.is_some()
    }

    /// The place of `item` among the requests of its endpoint, roughly: what comes in turn for every endpoint goes by it.
    #[must_use]
    pub fn turn_of(&self, item: Item) -> u64 {
        item.index / self.choice.as_ref().map_or(1, Choice::round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Phase;
    use crate::plan::{Endpoint, Load};

    fn routing(strategy: UrlStrategy, weights: &[u32]) -> Routing {
        Routing::new(&Target {
            endpoints: (0..4).map(|n| Endpoint { url: format!("http://h{n}:80") }).collect(),
            url_strategy: strategy,
            url_weights: weights.to_vec(),
            ..Target::default()
        })
    }

    fn item(seed: u64, index: u64) -> Item {
        Item { seed, phase: Phase::Measured, index }
    }

    fn shares(routing: &Routing, n: u64) -> Vec<u64> {
        let mut counts = vec![0; 4];
        (0..n).for_each(|index| counts[routing.of(item(3, index)).unwrap()] += 1);
        counts
    }

    #[test]
    fn shares_are_exact_in_turn_and_by_weight() {
        assert_eq!(shares(&routing(UrlStrategy::RoundRobin, &[]), 4000), [1000; 4]);
        assert_eq!(shares(&routing(UrlStrategy::Weighted, &[3, 1, 1, 5]), 4000), [1200, 400, 400, 2000]);
        assert_eq!(shares(&routing(UrlStrategy::Weighted, &[]), 4), [1; 4]);
    }

    #[test]
    fn draws_follow_seed_and_weights() {
        let drawn = routing(UrlStrategy::Random, &[]);
        // Standard deviation 27 each: five of those either way.
        assert!(shares(&drawn, 4000).iter().all(|n| (863..=1137).contains(n)));
        let weighted = shares(&routing(UrlStrategy::Random, &[7, 1, 1, 1]), 4000);
        assert!((2655..=2945).contains(&weighted[0]), "{weighted:?}");
        assert!((0..50).any(|index| drawn.of(item(1, index)) != drawn.of(item(2, index))));
    }

    #[test]
    fn a_user_keeps_its_endpoint() {
        let sticky = routing(UrlStrategy::StickySession, &[]);
        let level = Level { load: Load::closed(6), ..Level::default() };
        let of_users = sticky.of_level(&level);
        for index in 0..60 {
            assert_eq!(of_users.of(item(1, index)), Some((index % 6 % 4) as usize));
            assert_eq!(sticky.of(item(1, index)), Some((index % 4) as usize), "a session without users");
        }
        let in_turn = routing(UrlStrategy::RoundRobin, &[]);
        assert_eq!(in_turn.of_level(&level), in_turn);
    }

    #[test]
    fn what_depends_on_others_is_left_open() {
        assert_eq!(routing(UrlStrategy::LeastOutstanding, &[]).of(item(1, 5)), None);
    }
}
