//! The length of each prompt and answer: a function of (seed, purpose, index), drawn without drawing those before it.
//!
//! What is drawn from is a plan's [`Lengths`]. Of what words a prompt of that length consists is not decided here.

use rand_distr::{Distribution as _, Gamma, StandardNormal, Zipf};

use crate::plan::{Distribution, Lengths, Part};
use crate::rng::{self, Purpose, Stream};

/// The length number `index` of `lengths` under `seed`, for `purpose`.
///
/// Lengths are taken as validated; of a distribution that is none, some length within its bounds is drawn all the
/// same.
#[must_use]
pub fn draw(lengths: &Lengths, seed: u64, purpose: Purpose, index: u64) -> u32 {
    let distribution = match lengths {
        Lengths::Drawn(distribution) => distribution,
        Lengths::Fixed(length) => return *length,
    };
    let mut stream = rng::stream(seed, purpose, index);
    let drawn = match distribution {
        Distribution::Empirical(table) => {
            return table.pick(rng::unit(&mut stream)).unwrap_or_default().length;
        }
        Distribution::Gamma { mean, shape, .. } => {
            let gamma = Gamma::new(*shape, mean / shape);
            (gamma.map_or(*mean, |gamma| gamma.sample(&mut stream)) + 0.5).floor()
        }
        Distribution::Lognormal { median, sigma, .. } => {
            (median * (sigma * standard_normal(&mut stream)).exp() + 0.5).floor()
        }
        Distribution::Normal { mean, stddev, .. } => not_negative(*mean, *stddev, &mut stream).ceil(),
        Distribution::Paired(table) => {
            // The same for the prompt and for the answer.
            let mut choice = rng::stream(seed, Purpose::LengthPairs, index);
            match table.pick(rng::unit(&mut choice)).unwrap_or_default() {
                Part { length, stddev, .. } if stddev > 0.0 => {
                    not_negative(f64::from(length), stddev, &mut stream).ceil()
                }
                Part { length, .. } => return length,
            }
        }
        Distribution::Uniform { min, max } => {
            return min.saturating_add(rng::below(&mut stream, max.saturating_sub(*min).saturating_add(1)));
        }
        Distribution::Zipf { exponent, max, .. } => {
            let zipf = Zipf::new(f64::from(*max), *exponent);
            zipf.map_or(1.0, |zipf| zipf.sample(&mut stream))
        }
    };
    let (min, max) = lengths.bounds();
    // `as` saturates, and makes 0 of what is no number.
    (drawn as u32).min(max).max(min)
}

/// A draw of the normal distribution, repeated while it is negative.
fn not_negative(mean: f64, stddev: f64, stream: &mut Stream) -> f64 {
    // With a mean above 0 each try succeeds at least every other time: that all fail happens to nobody.
    let mut tries = (0..TRIES_MAX).map(|_| mean + stddev * standard_normal(stream));
    tries.find(|length| *length >= 0.0).unwrap_or(mean)
}

fn standard_normal(stream: &mut Stream) -> f64 {
    StandardNormal.sample(stream)
}

const TRIES_MAX: u32 = 128;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Table;

    const N: u64 = 40_000;

    fn drawn(distribution: Distribution) -> impl Iterator<Item = u32> {
        let lengths = Lengths::Drawn(distribution);
        (0..N).map(move |index| draw(&lengths, 5, Purpose::InputLengths, index))
    }

    /// Mean and variance of what `of` makes of `N` draws.
    fn moments(distribution: Distribution, of: impl Fn(f64) -> f64) -> (f64, f64) {
        let values: Vec<f64> = drawn(distribution).map(|length| of(f64::from(length))).collect();
        let mean = values.iter().sum::<f64>() / N as f64;
        (mean, values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / N as f64)
    }

    /// Five standard errors of a mean of `N` values of variance `variance`.
    fn five_errors(variance: f64) -> f64 {
        5.0 * (variance / N as f64).sqrt()
    }

    #[track_caller]
    fn assert_near(found: f64, wanted: f64, tolerance: f64) {
        assert!((found - wanted).abs() <= tolerance, "{found} is not {wanted} +- {tolerance}");
    }

    #[test]
    fn a_fixed_length_is_that_length() {
        assert_eq!(draw(&Lengths::Fixed(9), 1, Purpose::OutputLengths, 3), 9);
    }

    #[test]
    fn uniform_lengths_have_the_moments_of_theirs_and_reach_both_ends() {
        // Of 201 numbers: variance (201^2 - 1) / 12, and of a sample variance (kurtosis 1.8) about 0.8 v^2 / N.
        let (mean, variance) = moments(Distribution::Uniform { min: 100, max: 300 }, |length| length);
        let v = (201.0 * 201.0 - 1.0) / 12.0;
        assert_near(mean, 200.0, five_errors(v));
        assert_near(variance, v, five_errors(0.8 * v * v));
        let all: Vec<u32> = drawn(Distribution::Uniform { min: 100, max: 300 }).collect();
        assert_eq!((all.iter().min(), all.iter().max()), (Some(&100), Some(&300)));
        assert!(drawn(Distribution::Uniform { min: 7, max: 7 }).all(|length| length == 7));
    }

    #[test]
    fn normal_lengths_have_the_moments_of_theirs() {
        // Rounding up adds 1/2 to the mean and 1/12 to the variance; a sample variance has 2 v^2 / N.
        let normal = Distribution::Normal { mean: 200.0, stddev: 30.0, min: None, max: None };
        let (mean, variance) = moments(normal, |length| length);
        let v = 900.0 + 1.0 / 12.0;
        assert_near(mean, 200.5, five_errors(v));
        assert_near(variance, v, five_errors(2.0 * v * v));
    }

    #[test]
    fn negative_lengths_are_drawn_again_and_not_cut() {
        // A standard normal times 10, given that it is not negative, is half normal: mean 10 sqrt(2 / pi), and 1/2
        // for rounding up.
        let normal = Distribution::Normal { mean: 0.0, stddev: 10.0, min: None, max: None };
        let (mean, variance) = moments(normal.clone(), |length| length);
        assert_near(mean, 10.0 * (2.0 / std::f64::consts::PI).sqrt() + 0.5, five_errors(variance));
        // Cut at 1, half of all would be there; P(0 < x <= 1 | x >= 0) is erf(0.1 / sqrt 2) = 0.0797.
        let ones = drawn(normal).filter(|length| *length == 1).count() as f64 / N as f64;
        assert_near(ones, 0.0797, five_errors(0.0797 * 0.9203));
    }

    #[test]
    fn lognormal_lengths_have_the_moments_of_theirs() {
        let lognormal = Distribution::Lognormal { median: 600.0, sigma: 1.0, min: None, max: None };
        let (mean, variance) = moments(lognormal.clone(), f64::ln);
        // Rounding 600 e^z shifts no logarithm worth mentioning; that of the shortest of 40 000 is about 600 e^-4.
        assert_near(mean, 600f64.ln(), five_errors(1.0));
        assert_near(variance, 1.0, five_errors(2.0));
        let below = drawn(lognormal).filter(|length| *length < 600).count() as f64 / N as f64;
        assert_near(below, 0.5, five_errors(0.25));
    }

    #[test]
    fn bounds_hold_and_are_reached() {
        for distribution in [
            Distribution::Lognormal { median: 600.0, sigma: 1.0, min: Some(300), max: Some(900) },
            Distribution::Normal { mean: 600.0, stddev: 400.0, min: Some(300), max: Some(900) },
            Distribution::Gamma { mean: 600.0, shape: 2.0, min: Some(300), max: Some(900) },
            Distribution::Zipf { exponent: 0.5, min: Some(300), max: 900 },
        ] {
            let all: Vec<u32> = drawn(distribution).collect();
            assert_eq!((all.iter().min(), all.iter().max()), (Some(&300), Some(&900)));
        }
    }

    #[test]
    fn what_no_plan_allows_is_still_a_length() {
        let wild = [f64::NAN, f64::INFINITY, -1e300, 1e300];
        for (a, b) in wild.iter().flat_map(|a| wild.iter().map(move |b| (*a, *b))) {
            for distribution in [
                Distribution::Lognormal { median: a, sigma: b, min: None, max: None },
                Distribution::Normal { mean: a, stddev: b, min: None, max: None },
                Distribution::Gamma { mean: a, shape: b, min: None, max: None },
                Distribution::Zipf { exponent: a, min: None, max: 9 },
                Distribution::Paired(table(&[(5, a, b)])),
            ] {
                let length = draw(&Lengths::Drawn(distribution), 1, Purpose::InputLengths, 0);
                assert!((1..=Lengths::MAX).contains(&length));
            }
        }
        for nothing in [Table::new([]), table(&[(5, 0.0, 0.0)])] {
            let length = draw(&Lengths::Drawn(Distribution::Empirical(nothing)), 1, Purpose::InputLengths, 0);
            assert!((1..=5).contains(&length));
        }
        let wide = Lengths::Drawn(Distribution::Uniform { min: 0, max: u32::MAX });
        let _ = draw(&wide, 1, Purpose::InputLengths, 0);
        assert_eq!(draw(&Lengths::Drawn(Distribution::Uniform { min: 9, max: 3 }), 1, Purpose::Prompt, 0), 9);
    }

    #[test]
    fn the_lengths_of_a_seed_never_change() {
        // A stored plan promises the same requests to later versions, of this program and of what it draws with.
        let first = |distribution| drawn(distribution).take(5).collect::<Vec<_>>();
        let lognormal = Distribution::Lognormal { median: 600.0, sigma: 1.0, min: None, max: None };
        let normal = Distribution::Normal { mean: 200.0, stddev: 30.0, min: None, max: None };
        let three = table(&[(10, 0.0, 1.0), (20, 0.0, 2.0), (30, 0.0, 3.0)]);
        let found = [
            lognormal,
            normal,
            Distribution::Uniform { min: 100, max: 300 },
            Distribution::Gamma { mean: 600.0, shape: 2.5, min: None, max: None },
            Distribution::Zipf { exponent: 1.2, min: None, max: 4096 },
            Distribution::Empirical(three.clone()),
            Distribution::Paired(three),
            Distribution::Paired(table(&[(100, 20.0, 1.0), (900, 5.0, 1.0)])),
        ];
        assert_eq!(found.map(first), PINNED);
    }

    #[test]
    fn lengths_of_prompts_and_answers_are_independent() {
        let uniform = Lengths::Drawn(Distribution::Uniform { min: 0, max: 999 });
        let pairs = (0..N).map(|i| {
            let of = |purpose| f64::from(draw(&uniform, 5, purpose, i)) - 499.5;
            of(Purpose::InputLengths) * of(Purpose::OutputLengths)
        });
        // The product of two independent ones of variance v has the variance v^2.
        let v = (1e6 - 1.0) / 12.0;
        assert_near(pairs.sum::<f64>() / N as f64, 0.0, five_errors(v * v));
    }

    #[test]
    fn gamma_lengths_have_the_moments_of_theirs() {
        // Shape 1 is exponential; below it has no hump. The kurtosis is 3 + 6 / shape, and a sample variance has
        // (kurtosis - 1) v^2 / N. Rounding adds 1/12 to the variance; of 600 none is rounded to 0 worth mentioning.
        for shape in [1.0, 2.5, 16.0] {
            let gamma = Distribution::Gamma { mean: 600.0, shape, min: None, max: None };
            let (mean, variance) = moments(gamma.clone(), |length| length);
            let v = 600.0 * 600.0 / shape + 1.0 / 12.0;
            assert_near(mean, 600.0, five_errors(v));
            assert_near(variance, v, five_errors((2.0 + 6.0 / shape) * v * v));
        }
        // P(x < 600 ln 2) of the exponential is one half.
        let exponential = Distribution::Gamma { mean: 600.0, shape: 1.0, min: None, max: None };
        let below = drawn(exponential).filter(|length| *length < 416).count() as f64 / N as f64;
        assert_near(below, 1.0 - (-415.5_f64 / 600.0).exp(), five_errors(0.25));
    }

    #[test]
    fn zipf_lengths_have_the_probabilities_of_theirs() {
        for (exponent, max) in [(0.0, 8_u32), (1.0, 8), (1.2, 4096), (2.5, 100)] {
            let sum: f64 = (1..=max).map(|k| f64::from(k).powf(-exponent)).sum();
            let mut counts = vec![0_u32; max as usize];
            drawn(Distribution::Zipf { exponent, min: None, max }).for_each(|k| counts[k as usize - 1] += 1);
            for k in 1..=8 {
                let p = f64::from(k).powf(-exponent) / sum;
                let found = f64::from(counts[k as usize - 1]) / N as f64;
                assert_near(found, p, five_errors(p * (1.0 - p)));
            }
        }
    }

    #[test]
    fn lengths_of_a_table_have_their_shares() {
        let weights = [0.0, 3.0, 1.0, 4.0];
        let parts: Vec<_> =
            weights.iter().zip([5, 10, 20, 30]).map(|(weight, length)| (length, 0.0, *weight)).collect();
        let all: Vec<u32> = drawn(Distribution::Empirical(table(&parts))).collect();
        for (length, _, weight) in parts {
            let p = weight / 8.0;
            let found = all.iter().filter(|drawn| **drawn == length).count() as f64 / N as f64;
            assert_near(found, p, five_errors(p * (1.0 - p)));
        }
    }

    #[test]
    fn a_prompt_and_its_answer_are_of_one_pair() {
        let half = |lengths: [u32; 3], stddev| {
            let parts = lengths.iter().zip([5.0, 3.0, 2.0]).map(|(length, weight)| (*length, stddev, weight));
            Lengths::Drawn(Distribution::Paired(table(&parts.collect::<Vec<_>>())))
        };
        let of = |lengths: &Lengths, purpose, index| draw(lengths, 5, purpose, index);
        let (inputs, outputs) = (half([100, 200, 300], 0.0), half([9, 7, 9], 0.0));
        let mut counts = std::collections::BTreeMap::new();
        for index in 0..N {
            let pair =
                (of(&inputs, Purpose::InputLengths, index), of(&outputs, Purpose::OutputLengths, index));
            *counts.entry(pair).or_insert(0_u32) += 1;
        }
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), [(100, 9), (200, 7), (300, 9)]);
        for (found, p) in counts.values().zip([0.5, 0.3, 0.2]) {
            assert_near(f64::from(*found) / N as f64, p, five_errors(p * (1.0 - p)));
        }
        // Spread, each length by itself: within a pair they do not go together.
        let (inputs, outputs) = (half([1000; 3], 30.0), half([500; 3], 20.0));
        let product = |index| {
            let input = f64::from(of(&inputs, Purpose::InputLengths, index)) - 1000.5;
            input * (f64::from(of(&outputs, Purpose::OutputLengths, index)) - 500.5)
        };
        let mean = (0..N).map(product).sum::<f64>() / N as f64;
        assert_near(mean, 0.0, five_errors((900.0 + 1.0 / 12.0) * (400.0 + 1.0 / 12.0)));
    }

    fn table(of: &[(u32, f64, f64)]) -> Table {
        Table::new(of.iter().map(|&(length, stddev, weight)| Part { length, stddev, weight }))
    }

    const PINNED: [[u32; 5]; 8] = [
        [349, 432, 897, 855, 487],
        [184, 191, 213, 211, 194],
        [155, 177, 226, 223, 188],
        [351, 413, 675, 655, 450],
        [2, 3, 18, 16, 5],
        [20, 20, 30, 30, 20],
        [20, 20, 20, 20, 20],
        [90, 94, 109, 108, 96],
    ];
}
