//! Requests parted by how much of their prompts the server's prefix cache held.
//!
//! A mean over requests that were computed and requests that were found is the TTFT of neither. Where the shares that
//! were cached fall into two groups, each group is given by itself.

use serde::{Deserialize, Serialize};

use crate::metrics::Record;
use crate::metrics::metric::Metric;
use crate::stats::Quantile;
use crate::stats::quantile::nearest_rank;
use crate::stats::sort;

/// Two groups of requests.
///
/// The cut between them is the one that leaves the least variance of the cached share within the groups. They are told
/// apart if that is less than a fifth of the whole variance (a quarter is what evenly spread shares leave), if their means
/// are a tenth of the prompt apart, and if each has 10 requests and a twentieth of all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CacheSplit {
    /// Requests are cached if at least this share of their prompt was found.
    pub cut: f64,
    /// Those that are.
    pub cached: Group,
    /// Those that are not.
    pub uncached: Group,
}

/// Requests of one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// How many there are.
    pub n: u64,
    /// Tokens of their prompts.
    pub prompt_tokens: u64,
    /// Of these, the ones that came from the cache.
    pub cached_tokens: u64,
    /// Quantiles of their TTFT by nearest rank, ns; `None` where none has one.
    pub ttft: Option<GroupTtft>,
}

/// Quantiles of a group, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupTtft {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// A request whose prompt tokens and cached tokens are known.
#[derive(Clone, Copy)]
struct Known {
    share: f64,
    prompt_tokens: u32,
    cached_tokens: u32,
    ttft_ns: Option<f64>,
}

/// The two groups of ok requests, if there are two.
pub(super) fn split<'r>(ok: impl Iterator<Item = &'r Record>) -> Option<CacheSplit> {
    let known = |record: &Record| {
        let (prompt_tokens, cached_tokens) = (record.prompt_tokens?, record.cached_tokens.get()?);
        let share = f64::from(cached_tokens) / f64::from(prompt_tokens.max(1));
        Some(Known { share: share.min(1.0), prompt_tokens, cached_tokens, ttft_ns: Metric::Ttft.of(record) })
    };
    let mut known: Vec<Known> = ok.filter_map(known).collect();
    sort::few_by(&mut known, |a, b| a.share.total_cmp(&b.share));
    let place = cut(&known)?;
    let (uncached, cached) = known.split_at(place);
    let least = (known.len() / LEAST_PART).max(LEAST);
    if cached.len() < least || uncached.len() < least || mean(cached) - mean(uncached) < APART {
        return None;
    }
    Some(CacheSplit { cut: cached[0].share, cached: Group::of(cached), uncached: Group::of(uncached) })
}

/// The first place of the upper group, of requests in the order of their shares.
fn cut(known: &[Known]) -> Option<usize> {
    let n = known.len() as f64;
    let all = mean(known);
    let variance = known.iter().map(|known| (known.share - all).powi(2)).sum::<f64>() / n;
    if variance.is_nan() || variance <= 0.0 {
        return None;
    }
    // What a cut leaves within is the whole less what it puts between the groups.
    let mut below = 0.0;
    let mut best = (0.0, 0);
    for place in 1..known.len() {
        below += known[place - 1].share;
        if known[place].share == known[place - 1].share {
            continue;
        }
        let (lower, upper) = (place as f64, n - place as f64);
        let means = (below / lower, (all * n - below) / upper);
        let between = lower * upper / (n * n) * (means.1 - means.0).powi(2);
        if between > best.0 {
            best = (between, place);
        }
    }
    (1.0 - best.0 / variance < WITHIN_MAX).then_some(best.1)
}

fn mean(known: &[Known]) -> f64 {
    known.iter().map(|known| known.share).sum::<f64>() / known.len() as f64
}

impl Group {
    fn of(known: &[Known]) -> Group {
        let mut ttft_ns: Vec<f64> = known.iter().filter_map(|known| known.ttft_ns).collect();
        ttft_ns.sort_by(f64::total_cmp);
        let of = |quantile| nearest_rank(&ttft_ns, quantile);
        let quantiles = of(Quantile::P50).zip(of(Quantile::P90)).zip(of(Quantile::P99));
        Group {
            n: known.len() as u64,
            prompt_tokens: known.iter().map(|known| u64::from(known.prompt_tokens)).sum(),
            cached_tokens: known.iter().map(|known| u64::from(known.cached_tokens)).sum(),
            ttft: quantiles.map(|((p50, p90), p99)| GroupTtft { p50, p90, p99 }),
        }
    }

    /// The share of its prompt tokens that came from the cache.
    #[must_use]
    pub fn cached_share(&self) -> f64 {
        self.cached_tokens as f64 / self.prompt_tokens.max(1) as f64
    }
}

/// Share of the whole variance that two groups may leave within.
const WITHIN_MAX: f64 = 0.2;
/// Distance between the means of two groups.
const APART: f64 = 0.1;
/// Requests of a group.
const LEAST: usize = 10;
/// A group is at least one in so many.
const LEAST_PART: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Class, Kind, Outcome};
    use crate::time::Stamp;

    fn record(index: u64, cached: Option<u32>, ttft_ms: u64) -> Record {
        let mut record = Record::planned(index, Stamp::ZERO);
        record.outcome = Outcome::new(Class::Ok, Kind::None, 200);
        record.first = Some(Stamp::from_nanos(ttft_ms * 1_000_000));
        (record.prompt_tokens, record.cached_tokens) = (Some(1000), cached.into());
        record
    }

    fn of(cached: impl IntoIterator<Item = u32>) -> Option<CacheSplit> {
        let records: Vec<Record> =
            cached.into_iter().enumerate().map(|(i, cached)| record(i as u64, Some(cached), 50)).collect();
        split(records.iter())
    }

    #[test]
    fn two_groups_have_their_own_ttft() {
        // 60 found 800 to 859 tokens and took 10 to 69 ms, 40 found none or a block and took 101 to 140 ms.
        let mut records: Vec<Record> = (0..60).map(|i| record(i, Some(800 + i as u32), 10 + i)).collect();
        records.extend((0..40).map(|i| record(60 + i, Some(16 * (i as u32 % 2)), 101 + i)));
        records.push(record(100, None, 9000));
        let split = split(records.iter()).unwrap();
        assert_eq!((split.cut, split.cached.n, split.uncached.n), (0.8, 60, 40));
        assert_eq!((split.cached.prompt_tokens, split.cached.cached_tokens), (60_000, 60 * 800 + 59 * 30));
        assert_eq!((split.uncached.prompt_tokens, split.uncached.cached_tokens), (40_000, 320));
        let ms = |group: Group| group.ttft.map(|ttft| [ttft.p50, ttft.p90, ttft.p99].map(|ns| ns / 1e6));
        // Nearest ranks 30, 54, 60 of 60 and 20, 36, 40 of 40.
        assert_eq!(ms(split.cached), Some([39.0, 63.0, 69.0]));
        assert_eq!(ms(split.uncached), Some([120.0, 136.0, 140.0]));
    }

    #[test]
    fn one_group_is_not_parted() {
        assert_eq!(of(std::iter::empty()), None);
        assert_eq!(of([500; 100]), None, "all alike");
        assert_eq!(of((0..1000).map(|i| i % 1000)), None, "evenly spread");
        assert_eq!(of((0..100).map(|i| if i < 4 { 0 } else { 900 })), None, "four in a hundred");
        assert_eq!(of((0..15).map(|i| if i < 7 { 0 } else { 900 })), None, "seven requests");
        assert_eq!(of((0..100).map(|i| if i < 50 { 0 } else { 90 })), None, "too near");
        assert_eq!(
            of((0..100).map(|i| if i < 10 { 0 } else { 900 })).map(|split| split.uncached.n),
            Some(10)
        );
    }
}
