//! Which of several models a request asks for: a function of the seed and its place among the requests.

use std::cmp::Reverse;
use std::sync::Arc;

use crate::plan::{ModelChoice, Target};
use crate::rng::{self, Purpose};

/// A choice among models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix(Rule);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// One after the other, so many of them.
    Equal(u64),
    /// The model of each place in a round.
    Turns(Arc<[u16]>),
    /// For each model the sum of its weight and those before it.
    Drawn(Arc<[u32]>),
}

impl Mix {
    /// The choice that `target` asks for among its models, of which there is at least one. It is taken as validated.
    #[must_use]
    pub fn new(target: &Target) -> Mix {
        let models = target.models.len().max(1);
        let weights = match target.model_weights.as_slice() {
            weights if weights.len() == models => weights.to_vec(),
            _ => vec![1; models],
        };
        match target.model_choice {
            ModelChoice::InTurn if weights.iter().all(|weight| *weight == weights[0]) => Mix::equal(models),
            ModelChoice::InTurn => Mix(Rule::Turns(turns(&weights).into())),
            ModelChoice::Drawn => {
                let sums = weights.iter().scan(0u32, |sum, weight| {
                    *sum = sum.saturating_add(*weight);
                    Some(*sum)
                });
                Mix(Rule::Drawn(sums.collect()))
            }
        }
    }

    /// So many models in turn.
    #[must_use]
    pub fn equal(models: usize) -> Mix {
        Mix(Rule::Equal(models.max(1) as u64))
    }

    /// The model of the request that is at place `turn`, which all draws count by; `seed` is that of its level.
    #[must_use]
    pub fn model(&self, seed: u64, turn: u64) -> usize {
        match &self.0 {
            Rule::Equal(models) => (turn % models) as usize,
            Rule::Turns(round) => usize::from(round[(turn % round.len() as u64) as usize]),
            Rule::Drawn(sums) => {
                let all = sums.last().copied().unwrap_or(0);
                let drawn = rng::below(&mut rng::stream(seed, Purpose::Models, turn), all);
                sums.partition_point(|sum| *sum <= drawn).min(sums.len().saturating_sub(1))
            }
        }
    }
}

/// A round in which each model has as many places as its weight, divided by what the weights share, spread evenly: smooth
/// weighted round robin, the model that is most behind its due coming next.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(choice: ModelChoice, models: usize, weights: &[u32]) -> Mix {
        Mix::new(&Target {
            models: (0..models).map(|place| format!("m{place}")).collect(),
            model_weights: weights.to_vec(),
            model_choice: choice,
            ..Target::default()
        })
    }

    #[test]
    fn equal_models_come_in_turn() {
        for weights in [&[][..], &[7, 7, 7]] {
            let mix = mix(ModelChoice::InTurn, 3, weights);
            let models: Vec<usize> = (0..7).map(|turn| mix.model(1, turn)).collect();
            assert_eq!(models, [0, 1, 2, 0, 1, 2, 0]);
        }
    }

    #[test]
    fn weights_are_spread_evenly_over_a_round_that_repeats() {
        // The worked example of the method's author: 5 1 1 gives a a b a c a a.
        let mixed = mix(ModelChoice::InTurn, 3, &[50, 10, 10]);
        let round: Vec<usize> = (0..7).map(|turn| mixed.model(1, turn)).collect();
        assert_eq!(round, [0, 0, 1, 0, 2, 0, 0]);
        assert!((7..700).all(|turn| mixed.model(9, turn) == round[turn as usize % 7]));
        // Any stretch has its due of each to within one request and a half.
        let weights = [5, 3, 1];
        let mixed = mix(ModelChoice::InTurn, 3, &weights);
        let mut counts = [0u32; 3];
        for turn in 0..900 {
            counts[mixed.model(1, turn)] += 1;
            for (count, weight) in counts.iter().zip(weights) {
                let due = (turn + 1) as f64 * f64::from(weight) / 9.0;
                assert!((f64::from(*count) - due).abs() < 1.5, "{counts:?} at {turn}");
            }
        }
        assert_eq!(counts, [500, 300, 100]);
    }

    #[test]
    fn draws_follow_the_weights_and_the_seed() {
        let mixed = mix(ModelChoice::Drawn, 3, &[6, 3, 1]);
        let mut counts = [0u32; 3];
        (0..10_000).for_each(|turn| counts[mixed.model(1, turn)] += 1);
        // Standard deviations 49, 46, 30: five of those either way.
        assert!((5755..=6245).contains(&counts[0]), "{counts:?}");
        assert!((2770..=3230).contains(&counts[1]), "{counts:?}");
        assert!((850..=1150).contains(&counts[2]), "{counts:?}");
        assert!((0..100).any(|turn| mixed.model(1, turn) != mixed.model(2, turn)));
        assert!((0..100).all(|turn| mix(ModelChoice::Drawn, 1, &[]).model(1, turn) == 0));
    }
}
