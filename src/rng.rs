//! Seeded random streams: one per purpose and index, so that any item can be drawn without drawing those before it.
//!
//! The same `(seed, purpose, index)` gives the same numbers on every host, for any number of shards.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// What a stream of random numbers is for. Streams of different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
pub enum Purpose {
    /// The gaps between planned sends.
    Arrivals = 1,
    /// The length of a request's own prompt.
    InputLengths = 2,
    /// The words of a measured prompt.
    Prompt = 3,
    /// The words of a warm-up prompt, disjoint from the measured ones.
    WarmupPrompt = 4,
    /// Jitter of the mock server.
    MockJitter = 5,
    /// Picks among endpoints or models.
    Choice = 6,
    /// Noise in what the steps of a modelled server cost; one stream per replica.
    StepCost = 7,
    /// Which request meets which fault of the mock server.
    MockFault = 8,
    /// The length of a request's answer.
    OutputLengths = 9,
    /// The words of a beginning that measured prompts share.
    Prefix = 10,
    /// Which of the shared beginnings a prompt has.
    PrefixChoice = 11,
    /// The words of a beginning that warm-up prompts share, disjoint from the measured ones.
    WarmupPrefix = 12,
    /// The words of a hashed block of a trace.
    TraceBlock = 20,
    /// The order of the prompts of a data set, once for each pass through it.
    DataOrder = 21,
    /// Which pair of lengths a request has.
    LengthPairs = 30,
    /// Whether a request begins with one of the shared beginnings.
    PrefixShare = 31,
    /// The words of the system message of measured requests.
    System = 32,
    /// The words of the system message of warm-up requests, disjoint from those.
    WarmupSystem = 33,
    /// The words that all turns of one session begin with.
    SessionPrefix = 34,
    /// Which requests are given up by their users.
    Aborts = 40,
    /// Which requests are read slowly.
    SlowReaders = 41,
    /// Which of several models a request asks for.
    Models = 42,
    /// Which of several endpoints a request goes to.
    Endpoints = 44,
    /// What a placeholder of a request's fields and headers becomes.
    Blanks = 43,
    /// Number of turns of a session.
    SessionTurns = 50,
    /// The pause before a later turn.
    TurnPauses = 51,
    /// The words that a later turn adds.
    TurnPrompt = 52,
    /// Which blocks of a level a bootstrap draws; the seed is their number.
    Resample = 60,
}

/// A seeded generator: xoshiro256++, which `rand_distr`'s distributions can sample from.
pub type Stream = Xoshiro256PlusPlus;

/// The stream for `(seed, purpose, index)`.
#[must_use]
pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Stream {
    // Three rounds of the SplitMix64 finaliser, one per input: it is a bijection of each input, so that no two
    // indices of one purpose ever share a state.
    let mixed = mix(mix(mix(seed) ^ purpose as u64) ^ index);
    Stream::seed_from_u64(mixed)
}

/// A number in `[0, 1)` with 53 random bits.
#[must_use]
pub fn unit(stream: &mut Stream) -> f64 {
    (stream.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// A number in `0..n`, without modulo bias worth measuring (Lemire's multiplication; n below 2^32).
///
/// Returns 0 for `n == 0`.
#[must_use]
pub fn below(stream: &mut Stream, n: u32) -> u32 {
    ((u64::from(stream.next_u32()) * u64::from(n)) >> 32) as u32
}

/// A number in whose bits those of `value` are spread evenly: different for different values.
#[must_use]
#[inline]
pub fn mixed(value: u64) -> u64 {
    mix(value)
}

#[inline]
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_each_input() {
        let first = |seed, purpose, index| stream(seed, purpose, index).next_u64();
        let base = first(7, Purpose::Prompt, 3);
        assert_eq!(base, first(7, Purpose::Prompt, 3));
        assert_ne!(base, first(8, Purpose::Prompt, 3));
        assert_ne!(base, first(7, Purpose::InputLengths, 3));
        assert_ne!(base, first(7, Purpose::Prompt, 4));
    }

    #[test]
    fn unit_and_below_stay_in_range() {
        let mut s = stream(1, Purpose::Arrivals, 0);
        for _ in 0..10_000 {
            let u = unit(&mut s);
            assert!((0.0..1.0).contains(&u));
            assert!(below(&mut s, 7) < 7);
        }
        assert_eq!(below(&mut s, 0), 0);
    }
}
