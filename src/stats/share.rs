//! The share of ones in an ordered sequence of zeros and ones, such as the requests that kept their objectives, and
//! how well a level knows it.
//!
//! Two intervals, and the one shown is both together. Batch means with Student's t are the spec's, and fail where they
//! matter: near saturation a level of 1000 requests sees one wave of the queue or none. Without a miss all batches
//! agree, and the interval is a point. The exact binomial interval never is one, but needs the number of independent
//! requests. So that number is taken from whatever knows the dependence best: the batches, the autocorrelations of the
//! zeros and ones, and those of the value behind them (the latency), which shows the wave even where no limit was
//! passed.
//!
//! How many of 400 nominal 95 % intervals held the truth, by load: 16-slot model, Poisson arrivals, 1000 requests, limit
//! at the true p90, mean width in brackets (`cargo bench --bench coverage`).
//!
//! | interval | 60 % | 80 % | 90 % | 95 % |
//! |---|---|---|---|---|
//! | Wilson of n | 68 % (0.04) | 24 % (0.04) | 14 % (0.03) | 7 % (0.03) |
//! | 10 batch means | 93 % (0.08) | 86 % (0.18) | 67 % (0.23) | 41 % (0.19) |
//! | 5 batch means | 95 % (0.10) | 90 % (0.22) | 73 % (0.29) | 47 % (0.25) |
//! | overlapping means of 100 | 93 % (0.08) | 86 % (0.18) | 66 % (0.22) | 39 % (0.18) |
//! | exact of the effective number | 98 % (0.10) | 94 % (0.22) | 90 % (0.35) | 94 % (0.44) |
//! | both together, as shown | 98 % (0.10) | 95 % (0.23) | 90 % (0.35) | 94 % (0.44) |
//!
//! Larger or overlapping batches pay for less bias with less knowledge of it. What helps is to know the length of a
//! wave: the same effective number also widens the ranks of a quantile ([`crate::stats::order::Ranks::effective`]) until
//! they hold p50 and p99.

use crate::stats::batch::BatchMeans;
use crate::stats::binomial::Sample;
use crate::stats::confidence::{Confidence, Interval};
use crate::stats::correlation;

/// A share with its effective number of independent observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    n: usize,
    ones: usize,
    design_effect: f64,
    batches: Option<BatchMeans>,
}

impl Share {
    /// The share of ones in `hits`, which stand in the order of their planned times; `None` if there are none.
    ///
    /// `behind` is the value that decided each of them, in the same order (not finite where there is none); empty if
    /// it is not known. Its autocorrelations then play no part.
    #[must_use]
    pub fn of(hits: &[bool], behind: &[f64]) -> Option<Share> {
        if hits.is_empty() {
            return None;
        }
        let indicator: Vec<f64> = hits.iter().map(|hit| f64::from(u8::from(*hit))).collect();
        let batches = BatchMeans::of(&indicator);
        let effects = [
            batches.and_then(|batches| batches.design_effect()),
            correlation::design_effect(&indicator),
            correlation::design_effect(behind),
        ];
        let n = hits.len();
        // A sequence is worth one observation at least, and no more than it has.
        let design_effect = effects.into_iter().flatten().fold(1.0, f64::max).min(n as f64);
        let ones = hits.iter().filter(|hit| **hit).count();
        Some(Share { n, ones, design_effect, batches })
    }

    /// Number of observations.
    #[must_use]
    pub const fn n(&self) -> usize {
        self.n
    }

    /// How many of them are ones.
    #[must_use]
    pub const fn ones(&self) -> usize {
        self.ones
    }

    /// The share, 0 to 1.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.ones as f64 / self.n as f64
    }

    /// DEFF: how many dependent observations are worth one independent one, 1 to n.
    #[must_use]
    pub const fn design_effect(&self) -> f64 {
        self.design_effect
    }

    /// n / DEFF: what the observations are worth, 1 to n.
    #[must_use]
    pub fn n_effective(&self) -> f64 {
        self.n as f64 / self.design_effect
    }

    /// The interval that holds the true share with `confidence`: that of the batch means together with the exact
    /// binomial one of the effective number, within 0 and 1.
    #[must_use]
    pub fn interval(&self, confidence: Confidence) -> Interval {
        let exact = self.exact(confidence);
        self.by_batch_means(confidence).map_or(exact, |batches| batches.hull(exact))
    }

    /// The exact binomial interval (Clopper and Pearson) of the effective number alone.
    #[must_use]
    pub fn exact(&self, confidence: Confidence) -> Interval {
        self.sample().interval(confidence)
    }

    /// The interval of the batch means alone, within 0 and 1: a point where all batches agree, `None` below 20
    /// observations.
    #[must_use]
    pub fn by_batch_means(&self, confidence: Confidence) -> Option<Interval> {
        Some(self.batches?.interval(confidence).clamped(0.0, 1.0))
    }

    /// What the true share is above with `confidence`, one-sided: the lower of both methods.
    #[must_use]
    pub fn lower(&self, confidence: Confidence) -> f64 {
        let exact = self.sample().lower(confidence);
        self.batches.map_or(exact, |batches| batches.lower(confidence).clamp(0.0, exact))
    }

    /// What the true share is below with `confidence`, one-sided: the higher of both methods.
    #[must_use]
    pub fn upper(&self, confidence: Confidence) -> f64 {
        let exact = self.sample().upper(confidence);
        self.batches.map_or(exact, |batches| batches.upper(confidence).clamp(exact, 1.0))
    }

    fn sample(&self) -> Sample {
        Sample::with_share(self.value(), self.n_effective())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    const C95: Confidence = Confidence::C95;

    fn independent(seed: u64, share: f64, n: usize) -> Vec<bool> {
        let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
        (0..n).map(|_| rng::unit(&mut stream) < share).collect()
    }

    /// Runs of `length` equal values.
    fn in_waves(seed: u64, share: f64, n: usize, length: usize) -> Vec<bool> {
        independent(seed, share, n.div_ceil(length))
            .into_iter()
            .flat_map(|hit| vec![hit; length])
            .take(n)
            .collect()
    }

    #[test]
    fn it_is_never_narrower_than_exact_binomial() {
        for seed in 0..40 {
            let hits = in_waves(seed, 0.9, 400, 1 + seed as usize % 10);
            let share = Share::of(&hits, &[]).unwrap();
            let exact = Sample::with_share(share.value(), share.n_effective()).interval(C95);
            let independent = Sample::new(share.ones() as u64, 400).interval(C95);
            let shown = share.interval(C95);
            assert_eq!(shown.hull(exact), shown);
            assert!(shown.low <= independent.low && shown.high >= independent.high);
            assert_eq!(shown.hull(share.by_batch_means(C95).unwrap()), shown);
        }
    }

    /// Runs of 10 are worth a tenth.
    #[test]
    fn waves_lower_the_effective_number() {
        let repeats = 30;
        let effective = |length| {
            let of = |seed| Share::of(&in_waves(seed, 0.8, 2000, length), &[]).unwrap().n_effective();
            (0..repeats).map(of).sum::<f64>() / repeats as f64
        };
        assert!(effective(1) > 1200.0, "{}", effective(1));
        assert!((130.0..=220.0).contains(&effective(10)), "{}", effective(10));
    }

    /// All requests kept their limit: the wave in the latency still says what that is worth.
    #[test]
    fn without_a_miss_the_value_behind_tells() {
        let hits = [true; 1000];
        let latency: Vec<f64> = (0..1000).map(|i| (f64::from(i) / 80.0).sin() + 3.0).collect();
        let blind = Share::of(&hits, &[]).unwrap();
        assert_eq!(blind.n_effective(), 1000.0);
        assert_eq!(blind.by_batch_means(C95), Some(Interval { low: 1.0, high: 1.0 }));
        assert!((blind.lower(C95) - 0.05_f64.powf(1e-3)).abs() < 1e-12);
        let seeing = Share::of(&hits, &latency).unwrap();
        assert!(seeing.n_effective() < 20.0, "{}", seeing.n_effective());
        assert!(seeing.interval(C95).low < 0.82 && seeing.interval(C95).high == 1.0);
    }

    #[test]
    fn bounds_are_ordered_and_inside_the_unit_interval() {
        for seed in 0..60 {
            let n = 1 + (seed as usize * 7) % 90;
            let share = Share::of(&independent(seed, 0.95, n), &[]).unwrap();
            let Interval { low, high } = share.interval(C95);
            let (lower, upper) = (share.lower(C95), share.upper(C95));
            let ascending = [0.0, low, lower, share.value(), upper, high, 1.0];
            assert!(ascending.is_sorted(), "n {n}: {ascending:?}");
            assert!((1.0..=n as f64).contains(&share.n_effective()));
        }
    }

    #[test]
    fn few_observations_have_the_exact_interval_only() {
        assert_eq!(Share::of(&[], &[]), None);
        let share = Share::of(&[true; 19], &[]).unwrap();
        assert_eq!(share.by_batch_means(C95), None);
        assert_eq!(share.interval(C95), share.exact(C95));
        let one = Share::of(&[false], &[7.0]).unwrap();
        assert_eq!((one.value(), one.n_effective()), (0.0, 1.0));
        assert_eq!(one.interval(C95).low, 0.0);
        assert!((one.interval(C95).high - 0.975).abs() < 1e-12);
    }
}
