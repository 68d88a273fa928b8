//! Which of several models a request asks for: a function of the seed and its place among the requests.

use crate::plan::{ModelChoice, Target};
use crate::rng::Purpose;
use crate::workload::choice::Choice;

/// A choice among models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix(Choice);

impl Mix {
    /// The choice that `target` asks for among its models, of which there is at least one. It is taken as validated.
    #[must_use]
    pub fn new(target: &Target) -> Mix {
        let models = target.models.len().max(1);
        let weights = match target.model_weights.as_slice() {
            weights if weights.len() == models => weights.to_vec(),
            _ => vec![1; models],
        };
        Mix(match target.model_choice {
            ModelChoice::InTurn => Choice::in_turn(&weights),
            ModelChoice::Drawn => Choice::drawn(&weights, Purpose::Models),
        })
    }

    /// So many models in turn.
    #[must_use]
    pub fn equal(models: usize) -> Mix {
        Mix(Choice::equal(models))
    }

    /// The model of the request that is at place `turn`, which all draws count by; `seed` is that of its level.
    #[must_use]
    pub fn model(&self, seed: u64, turn: u64) -> usize {
        self.0.of(seed, turn)
    }
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
