//! A coarse histogram that costs some tens of bytes: for each bin of a series over time.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stats::quantile::Quantile;
use crate::stats::sparse::{pack, unpack};

/// Durations in 240 buckets: 8 to each doubling from 8 us on, linear steps of 1.024 us below.
///
/// A bucket is 6 to 12.5 % of its value wide. Counts stop at `u32::MAX`. Only the range between the lowest and the
/// highest bucket in use is stored. Stored as a list: the lowest bucket, then the counts from there on; empty for
/// no values.
#[derive(Clone, Debug, Default)]
pub struct Coarse {
    /// Bucket of `counts[0]`.
    first: u8,
    /// Counts from `first` on; neither end is zero.
    counts: Vec<u32>,
    /// The same in a tenth of the room, where nothing more is expected; then there are no `counts`.
    packed: Box<[u8]>,
}

impl Coarse {
    /// Number of buckets.
    pub const BUCKETS: u8 = 240;

    /// log2 of the unit in ns: 1.024 us, a shift in place of a division.
    const UNIT_BITS: u32 = 10;
    /// Units below 2^4 have a bucket each, every doubling after that has 2^3.
    const EXACT_BITS: u32 = 4;
    const HALF: u32 = 1 << (Coarse::EXACT_BITS - 1);

    /// Counts `ns`.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.add(Coarse::bucket_of(ns), 1);
    }

    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Coarse) {
        other.buckets().filter(|(_, count)| *count > 0).for_each(|(bucket, count)| self.add(bucket, count));
    }

    /// Number of values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.buckets().map(|(_, count)| u64::from(count)).sum()
    }

    /// Takes as little room as it can. Counting goes on all the same, and undoes it.
    pub fn pack(&mut self) {
        if !self.counts.is_empty() {
            let used = self.buckets().filter(|(_, count)| *count > 0);
            self.packed = pack(used.map(|(bucket, count)| (u16::from(bucket), u64::from(count))));
            self.counts = Vec::new();
        }
    }

    #[cold]
    fn unpack(&mut self) {
        let packed = Coarse { packed: std::mem::take(&mut self.packed), ..Coarse::default() };
        packed.buckets().for_each(|(bucket, count)| self.add(bucket, count));
    }

    /// The nearest-rank quantile as the upper edge of its bucket, ns; `None` if there are no values.
    #[must_use]
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        let rank = quantile.rank(self.n());
        let mut seen = 0;
        self.buckets()
            .find(|(_, count)| {
                seen += u64::from(*count);
                seen >= rank
            })
            .map(|(bucket, _)| Coarse::bucket_highest(bucket))
    }

    /// The nearest-rank quantile as the middle of its bucket, ns, at most 6 % beside the exact one from 0.1 ms on; `None` if
    /// there are no values.
    #[must_use]
    pub fn quantile_middle(&self, quantile: Quantile) -> Option<f64> {
        let highest = self.quantile(quantile)?;
        let below =
            Coarse::bucket_of(highest).checked_sub(1).map_or(0, |bucket| Coarse::bucket_highest(bucket) + 1);
        Some((below as f64 + highest as f64) / 2.0)
    }

    /// The buckets in use, ascending, with their counts; some between them may come with a count of 0.
    pub fn buckets(&self) -> impl Iterator<Item = (u8, u32)> {
        let (mut rest, mut bucket) = (&*self.packed, 0_u64);
        let packed = std::iter::from_fn(move || {
            bucket += unpack(&mut rest)?;
            // Both fitted when they were packed.
            Some((bucket as u8, unpack(&mut rest)? as u32))
        });
        packed.chain((self.first..).zip(self.counts.iter().copied()))
    }

    /// The bucket that `ns` falls into, below [`Coarse::BUCKETS`]; above 73 minutes the last one.
    #[must_use]
    #[inline]
    pub const fn bucket_of(ns: u64) -> u8 {
        let units = ns >> Coarse::UNIT_BITS;
        let units = if units > u32::MAX as u64 { u32::MAX } else { units as u32 };
        let mask = (1 << Coarse::EXACT_BITS) - 1;
        let halvings = u32::BITS - Coarse::EXACT_BITS - (units | mask).leading_zeros();
        (halvings * Coarse::HALF + (units >> halvings)) as u8
    }

    /// The largest value of the bucket, ns.
    #[must_use]
    pub const fn bucket_highest(bucket: u8) -> u64 {
        let halvings = (bucket as u32 / Coarse::HALF).saturating_sub(1);
        let units = (bucket as u64 - (halvings * Coarse::HALF) as u64 + 1) << halvings;
        (units << Coarse::UNIT_BITS) - 1
    }

    fn add(&mut self, bucket: u8, count: u32) {
        if !self.packed.is_empty() {
            self.unpack();
        }
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let missing = usize::from(self.first - bucket);
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = bucket;
        }
        let place = usize::from(bucket - self.first);
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] = self.counts[place].saturating_add(count);
    }
}

impl PartialEq for Coarse {
    /// Equal in what was counted, packed or not.
    fn eq(&self, other: &Coarse) -> bool {
        let used = |coarse: &Coarse| coarse.buckets().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
        used(self) == used(other)
    }
}

impl Eq for Coarse {}

impl Serialize for Coarse {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if !self.packed.is_empty() {
            let mut plain = self.clone();
            plain.unpack();
            return plain.serialize(to);
        }
        let first = (!self.counts.is_empty()).then_some(u32::from(self.first));
        to.collect_seq(first.into_iter().chain(self.counts.iter().copied()))
    }
}

impl<'de> Deserialize<'de> for Coarse {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Coarse, D::Error> {
        let stored = Vec::<u32>::deserialize(from)?;
        let Some((first, counts)) = stored.split_first() else {
            return Ok(Coarse::default());
        };
        let end = usize::try_from(*first).unwrap_or(usize::MAX).saturating_add(counts.len());
        if end > usize::from(Coarse::BUCKETS) {
            return Err(D::Error::custom(format!("a coarse histogram has {} buckets", Coarse::BUCKETS)));
        }
        let mut read = Coarse::default();
        for (bucket, count) in (*first..).zip(counts).filter(|(_, count)| **count > 0) {
            // Below BUCKETS, by the check of `end`.
            read.add(bucket as u8, *count);
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_a_bucket_is_near_what_it_holds() {
        for ns in [100_000, 131_071, 131_072, 1_000_000, 16_900_000, 493_600_000, 3_600_000_000_000] {
            let mut one = Coarse::default();
            one.record(ns);
            let middle = one.quantile_middle(Quantile::P50).unwrap();
            assert!((middle / ns as f64 - 1.0).abs() <= 0.065, "{ns}: {middle}");
        }
        assert_eq!(Coarse::default().quantile_middle(Quantile::P50), None);
    }

    #[test]
    fn buckets_follow_each_other_up_to_the_last() {
        let mut lowest = 0;
        for bucket in 0..Coarse::BUCKETS {
            let highest = Coarse::bucket_highest(bucket);
            assert_eq!(Coarse::bucket_of(lowest), bucket);
            assert_eq!(Coarse::bucket_of(highest), bucket);
            if lowest >= 8192 {
                let width = (highest + 1 - lowest) as f64 / lowest as f64;
                assert!((0.06..=0.125).contains(&width), "bucket {bucket} is {width} wide");
            }
            lowest = highest + 1;
        }
        assert_eq!(Coarse::bucket_of(u64::MAX), Coarse::BUCKETS - 1);
    }

    #[test]
    fn values_in_any_order_give_the_same_counts() {
        let list = [20_000_000_u64, 3_000, 20_100_000, 0, 500_000_000, 3_000];
        let (mut up, mut down) = (Coarse::default(), Coarse::default());
        list.iter().for_each(|ns| up.record(*ns));
        list.iter().rev().for_each(|ns| down.record(*ns));
        assert_eq!(up, down);
        assert_eq!(up.n(), 6);
        let (mut left, mut right) = (Coarse::default(), Coarse::default());
        list[..2].iter().for_each(|ns| left.record(*ns));
        list[2..].iter().for_each(|ns| right.record(*ns));
        left.merge(&right);
        assert_eq!(left, up);
    }

    #[test]
    fn packed_it_is_the_same_and_counts_on() {
        let mut plain = Coarse::default();
        for ns in [0, 8_000, 20_000_000, 20_100_000, 600_000_000_000, u64::MAX] {
            (0..200).for_each(|_| plain.record(ns));
        }
        let mut packed = plain.clone();
        packed.pack();
        assert!(packed.counts.capacity() == 0 && packed.packed.len() < 20, "{packed:?}");
        assert_eq!(packed, plain);
        assert_eq!((packed.n(), packed.quantile(Quantile::P50)), (1200, plain.quantile(Quantile::P50)));
        assert_eq!(serde_json::to_string(&packed).unwrap(), serde_json::to_string(&plain).unwrap());
        let mut merged = Coarse::default();
        merged.merge(&packed);
        assert_eq!(merged, plain);
        packed.pack();
        for coarse in [&mut packed, &mut plain] {
            coarse.record(50_000);
        }
        assert_eq!(packed, plain);
        let mut nothing = Coarse::default();
        nothing.pack();
        assert_eq!(nothing, Coarse::default());
    }

    #[test]
    fn a_quantile_is_the_upper_edge_of_its_bucket() {
        let mut coarse = Coarse::default();
        [1_000_000, 2_000_000, 40_000_000].into_iter().for_each(|ns| coarse.record(ns));
        let edge = |ns| Coarse::bucket_highest(Coarse::bucket_of(ns));
        assert_eq!(coarse.quantile(Quantile::P50), Some(edge(2_000_000)));
        assert_eq!(coarse.quantile(Quantile::P99), Some(edge(40_000_000)));
        assert_eq!(Coarse::default().quantile(Quantile::P50), None);
    }

    #[test]
    fn the_stored_form_is_a_short_list() {
        let mut coarse = Coarse::default();
        [9_000, 9_000, 11_000].into_iter().for_each(|ns| coarse.record(ns));
        let text = serde_json::to_string(&coarse).unwrap();
        assert_eq!(text, "[8,2,0,1]");
        assert_eq!(serde_json::from_str::<Coarse>(&text).unwrap(), coarse);
        assert_eq!(serde_json::to_string(&Coarse::default()).unwrap(), "[]");
        assert_eq!(
            serde_json::from_str::<Coarse>("[5,0,0,1,0]").unwrap().buckets().collect::<Vec<_>>(),
            [(7, 1)]
        );
        assert!(serde_json::from_str::<Coarse>("[239,1,1]").is_err());
        assert!(serde_json::from_str::<Coarse>("[4294967295,1]").is_err());
    }
}
