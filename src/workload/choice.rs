//! Which of several things a request gets, models or endpoints: a function of the seed and its place alone, so that it
//! is the same for any number of shards.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::rng::{self, Purpose};

/// A choice among several, of which there is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice(Rule);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// One after the other, so many of them.
    Equal(u64),
    /// The one of each place in a round.
    Turns(Arc<[u16]>),
    /// For each the sum of its weight and those before it, and what is drawn.
    Drawn(Arc<[u32]>, Purpose),
}

impl Choice {
    /// So many in turn.
    pub(crate) fn equal(n: usize) -> Choice {
        Choice(Rule::Equal(n.max(1) as u64))
    }

    /// In turn, each as often as its weight in every round, spread evenly over it.
    pub(crate) fn in_turn(weights: &[u32]) -> Choice {
        if weights.iter().all(|weight| Some(weight) == weights.first()) {
            return Choice::equal(weights.len());
        }
        Choice(Rule::Turns(turns(weights).into()))
    }

    /// Drawn by weight, from the stream of `purpose`.
    pub(crate) fn drawn(weights: &[u32], purpose: Purpose) -> Choice {
        let sums = weights.iter().scan(0u32, |sum, weight| {
            *sum = sum.saturating_add(*weight);
            Some(*sum)
        });
        Choice(Rule::Drawn(sums.collect(), purpose))
    }

    /// The one of place `turn`, which all draws count by; `seed` is that of the level.
    pub(crate) fn of(&self, seed: u64, turn: u64) -> usize {
        match &self.0 {
            Rule::Equal(n) => (turn % n) as usize,
            Rule::Turns(round) => usize::from(round[(turn % round.len() as u64) as usize]),
            Rule::Drawn(sums, purpose) => {
                let all = sums.last().copied().unwrap_or(0);
                let drawn = rng::below(&mut rng::stream(seed, *purpose, turn), all);
                sums.partition_point(|sum| *sum <= drawn).min(sums.len().saturating_sub(1))
            }
        }
    }

    /// After how many places it begins anew; 1 where each place is drawn on its own.
    pub(crate) fn round(&self) -> u64 {
        match &self.0 {
            Rule::Equal(n) => *n,
            Rule::Turns(round) => round.len() as u64,
            Rule::Drawn(..) => 1,
        }
    }
}

/// A round in which each thing has as many places as its weight, divided by what the weights share, spread evenly: smooth
/// weighted round robin, the one that is most behind its due coming next.
fn turns(weights: &[u32]) -> Vec<u16> {
    let shared = weights.iter().copied().fold(0, gcd).max(1);
    let weights: Vec<i64> = weights.iter().map(|weight| i64::from(weight / shared)).collect();
    let round: i64 = weights.iter().sum();
    let mut behind = vec![0; weights.len()];
    let next = |_| {
        behind.iter_mut().zip(&weights).for_each(|(behind, weight)| *behind += weight);
        // Of two that are equally far behind the first.
        let (place, most) =
            behind.iter_mut().enumerate().max_by_key(|(place, behind)| (**behind, Reverse(*place)))?;
        *most -= round;
        u16::try_from(place).ok()
    };
    (0..round).map_while(next).collect()
}

const fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
