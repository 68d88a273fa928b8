//! How requests are spread over several endpoints.

use serde::{Deserialize, Serialize};

use super::{Error, Target};

/// Which endpoint a request goes to. The turns of a session go where its first one goes, but with
/// [`UrlStrategy::LeastOutstanding`], which looks anew at every request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UrlStrategy {
    /// One after the other, by the number of the request (of its session) over all shards.
    #[default]
    RoundRobin,
    /// The one with the fewest requests under way over all shards, among equals the next one. One that has refused a
    /// connection is passed over for a second while there are others, or it would draw everything by failing quickly.
    LeastOutstanding,
    /// Drawn from the seed and that number, by the weights where there are some.
    Random,
    /// In turn, each as often as its weight, spread evenly.
    Weighted,
    /// As [`UrlStrategy::RoundRobin`] or, with weights, [`UrlStrategy::Weighted`], but by users where there are some: all
    /// requests of a user of a closed loop go to one endpoint.
    StickySession,
}

impl UrlStrategy {
    /// Every strategy with its name.
    pub const ALL: [(UrlStrategy, &'static str); 5] = [
        (UrlStrategy::RoundRobin, "round_robin"),
        (UrlStrategy::LeastOutstanding, "least_outstanding"),
        (UrlStrategy::Random, "random"),
        (UrlStrategy::Weighted, "weighted"),
        (UrlStrategy::StickySession, "sticky_session"),
    ];

    /// The name in plans and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        UrlStrategy::ALL.iter().find(|(strategy, _)| *strategy == self).map_or("", |(_, name)| name)
    }

    pub(super) fn is_default(&self) -> bool {
        *self == UrlStrategy::default()
    }
}

impl Target {
    /// The share of the requests that each endpoint is to get in the long run, in their order; `None` where that depends
    /// on how fast they are.
    #[must_use]
    pub fn shares_due(&self) -> Option<Vec<f64>> {
        let n = self.endpoints.len();
        match self.url_strategy {
            UrlStrategy::LeastOutstanding => None,
            _ if self.url_weights.len() == n => {
                let sum: f64 = self.url_weights.iter().map(|weight| f64::from(*weight)).sum();
                Some(self.url_weights.iter().map(|weight| f64::from(*weight) / sum).collect())
            }
            _ => Some(vec![1.0 / n.max(1) as f64; n]),
        }
    }
}

pub(super) fn check(target: &Target) -> Result<(), Error> {
    let (weights, n) = (&target.url_weights, target.endpoints.len());
    let wrong = |wrong: String, remedy: &str| Err(Error::new("--url-weights", wrong, remedy));
    if n > ENDPOINTS_MAX {
        let remedy = format!("name at most {ENDPOINTS_MAX}");
        return Err(Error::new("--base-url", format!("{n} servers are named"), remedy));
    }
    if weights.is_empty() {
        if target.url_strategy == UrlStrategy::Weighted {
            let remedy = "give one for each server by --url-weights 3,1, or --base-url URL=3";
            return Err(Error::new("--url-strategy", "weighted has no weights", remedy));
        }
        return Ok(());
    }
    if matches!(target.url_strategy, UrlStrategy::RoundRobin | UrlStrategy::LeastOutstanding) {
        let word = target.url_strategy.name();
        let remedy = "give --url-strategy weighted, random or sticky_session, or leave the weights out";
        return wrong(format!("{word} knows no weights"), remedy);
    }
    if weights.len() != n {
        let remedy = "give one weight for each server, in their order";
        return wrong(format!("{} weights do not fit {n} servers", weights.len()), remedy);
    }
    if let Some(weight) = weights.iter().find(|weight| !(1..=WEIGHT_MAX).contains(*weight)) {
        let remedy = format!("give whole numbers from 1 to {WEIGHT_MAX}, as in 3,1");
        return wrong(format!("{weight} is out of range"), &remedy);
    }
    Ok(())
}

/// A record has room for so many.
const ENDPOINTS_MAX: usize = 65_535;
/// As finely as anybody can tell; the table of turns has a place for each.
const WEIGHT_MAX: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Endpoint;

    #[test]
    fn weights_fit_servers_and_strategies() {
        let target = |strategy, weights: &[u32]| Target {
            endpoints: ["a", "b"].map(|host| Endpoint { url: format!("http://{host}:80") }).to_vec(),
            url_strategy: strategy,
            url_weights: weights.to_vec(),
            ..Target::default()
        };
        let refused =
            |strategy, weights: &[u32]| check(&target(strategy, weights)).err().map(|e| e.to_string());
        assert_eq!(refused(UrlStrategy::Weighted, &[3, 1]), None);
        assert_eq!(refused(UrlStrategy::Random, &[]), None);
        assert!(
            refused(UrlStrategy::Weighted, &[])
                .unwrap()
                .starts_with("--url-strategy: weighted has no weights")
        );
        assert!(refused(UrlStrategy::Weighted, &[1]).unwrap().contains("1 weights do not fit 2 servers"));
        assert!(refused(UrlStrategy::Weighted, &[1, 0]).unwrap().contains("0 is out of range"));
        assert!(refused(UrlStrategy::RoundRobin, &[1, 2]).unwrap().contains("round_robin knows no weights"));
        assert_eq!(target(UrlStrategy::Weighted, &[3, 1]).shares_due(), Some(vec![0.75, 0.25]));
        assert_eq!(target(UrlStrategy::StickySession, &[]).shares_due(), Some(vec![0.5, 0.5]));
        assert_eq!(target(UrlStrategy::LeastOutstanding, &[]).shares_due(), None);
    }
}
