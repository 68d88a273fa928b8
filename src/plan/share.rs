//! This process's part of a run that several processes make together, on one host or many.
//!
//! Owns the dealing: who of them sends what, and what of a cap or a number of users is whose. Every process has the same
//! plan but for its share, so that all know the whole and none needs a message from another.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Arrivals, Error, Level, Plan};

/// One of several equal parts of a run.
///
/// Requests and users are dealt by index: request `i` belongs to the share whose place (from 0) is `i` modulo the number
/// of shares, user `u` of a closed loop likewise, with all the requests that the user sends. Within a share they are dealt
/// on to shards by the same rule, so that shares times shards send the plan of one process, whatever the numbers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    /// Which of them it is, from 1.
    pub index: u32,
    /// How many there are, at least 1.
    pub of: u32,
}

impl Share {
    /// The only share of a run that one process makes alone.
    pub const WHOLE: Share = Share { index: 1, of: 1 };
    /// Most shares of a run.
    pub const OF_MAX: u32 = 65_536;

    /// The part of the whole that shard `shard` (from 0) of `shards` of this share has: indices that are the first number
    /// modulo the second.
    #[must_use]
    pub fn part(self, (shard, shards): (u32, u32)) -> (u32, u32) {
        (self.place().saturating_add(self.of.saturating_mul(shard)), self.of.saturating_mul(shards.max(1)))
    }

    /// How many of `n` that are dealt by index are this share's: `n / of`, rounded up for the first `n mod of` shares.
    #[must_use]
    pub fn count(self, n: u64) -> u64 {
        let of = u64::from(self.of.max(1));
        n / of + u64::from(n % of > u64::from(self.place()))
    }

    /// The same of users or of a cap. The caps of all shares together are the cap.
    #[must_use]
    pub fn count_u32(self, n: u32) -> u32 {
        self.count(u64::from(n)) as u32
    }

    /// This share's part of a rate, in the mean.
    #[must_use]
    pub fn rate(self, rate: f64) -> f64 {
        rate / f64::from(self.of.max(1))
    }

    fn place(self) -> u32 {
        self.index.saturating_sub(1)
    }
}

impl Default for Share {
    fn default() -> Share {
        Share::WHOLE
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.index, self.of)
    }
}

impl Plan {
    /// The share of this process: all of the plan where it says none.
    #[must_use]
    pub fn own_share(&self) -> Share {
        self.share.unwrap_or_default()
    }

    pub(super) fn check_share(&self) -> Result<(), Error> {
        let Some(share) = self.share else { return Ok(()) };
        let wrong = |wrong: String, remedy: &str| Err(Error::new("--share", wrong, remedy));
        let Share { index, of } = share;
        if !(1..=Share::OF_MAX).contains(&of) || !(1..=of).contains(&index) {
            let remedy = format!("shares are counted from 1: 1/4 to 4/4, at most {}", Share::OF_MAX);
            return wrong(format!("there is no share {share}"), &remedy);
        }
        if self.until.is_some() {
            let remedy = "leave out --until-ci, and give a --duration that is long enough";
            return wrong("no process sees how well all of them know a figure".to_owned(), remedy);
        }
        if self.target.reset_prefix_cache {
            let remedy = "leave out --reset-prefix-cache, and empty the cache before the processes start";
            return wrong("each process would empty the cache under the others".to_owned(), remedy);
        }
        if let Some(max) = self.target.connections.max.filter(|max| *max < of) {
            let wrong = format!("{max} connections cannot be dealt to {of} shares: some would have none");
            let remedy = format!("give at least {of}, or take fewer processes");
            return Err(Error::new("--max-connections", wrong, remedy));
        }
        self.levels.iter().try_for_each(|level| check_level(level, of))
    }
}

/// A share without anything to send would be through with its level at once, and ahead of the others from then on.
fn check_level(level: &Level, of: u32) -> Result<(), Error> {
    let (load, units) = (&level.load, level.stop.units);
    let too_few = |option: &str, n: u64, what: &str| {
        let wrong = format!("{n} {what} cannot be dealt to {of} shares: some would have none");
        Err(Error::new(option, wrong, format!("give at least {of}, or take fewer processes")))
    };
    match (load.users, load.cap) {
        (Some(users), _) if users < of => return too_few("--max-concurrency", users.into(), "users"),
        (_, Some(cap)) if cap < of => return too_few("--max-concurrency", cap.into(), "requests in flight"),
        _ => {}
    }
    match units {
        Some(units) if units < u64::from(of) && !matches!(load.arrivals, Arrivals::Trace { .. }) => {
            too_few("--num-prompts", units, "requests")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dealt_adds_up_and_differs_by_one_at_most() {
        for of in [1, 2, 3, 7, 64] {
            for n in [0, 1, 5, 64, 1000] {
                let parts: Vec<u64> = (1..=of).map(|index| Share { index, of }.count(n)).collect();
                assert_eq!(parts.iter().sum::<u64>(), n);
                assert!(parts.is_sorted_by(|a, b| a >= b) && parts[0] - parts[parts.len() - 1] <= 1);
            }
        }
    }

    #[test]
    fn shares_times_shards_have_every_index_once() {
        for (of, shards) in [(1, 1), (1, 4), (3, 1), (2, 5), (7, 3)] {
            let parts: Vec<(u32, u32)> = (1..=of)
                .flat_map(|index| (0..shards).map(move |shard| Share { index, of }.part((shard, shards))))
                .collect();
            for i in 0..200_u32 {
                let having: Vec<_> = parts.iter().filter(|(rest, modulus)| i % modulus == *rest).collect();
                assert_eq!(having.len(), 1, "{i}");
                // The share is that of the index itself, whatever its shards are.
                assert_eq!(having[0].0 % of, i % of);
            }
        }
    }
}
