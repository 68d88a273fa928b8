//! The one histogram of the program: nanoseconds, three significant digits, up to an hour.
//!
//! Wraps `hdrhistogram`, whose buckets and stored form other tools read. What the buckets cannot tell exactly
//! ([`Totals`], the number of values beyond the range) is kept beside them, and ranks are integers.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

use crate::stats::quantile::Quantile;
use crate::stats::totals::Totals;

mod stored;

/// A histogram of durations in nanoseconds, all of one shape, so that any two can be added.
///
/// Values up to [`Histogram::HIGHEST_NS`] fall into buckets whose width is at most 1/1024 of the value (1 ns below
/// 2048 ns). A larger value is counted in the bucket of the highest one and in [`Histogram::overflow`]; the totals
/// keep it as it is. The 264 KiB of buckets are allocated with the first value, or by [`Histogram::prepare`].
#[derive(Clone, Default)]
pub struct Histogram {
    counts: Option<Box<Counts>>,
    totals: Totals,
    overflow: u64,
}

type Counts = hdrhistogram::Histogram<u64>;

/// One bucket that holds values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Smallest value that falls into it, ns.
    pub lowest: u64,
    /// Largest value that falls into it, ns.
    pub highest: u64,
    /// Number of values in it.
    pub count: u64,
}

impl Histogram {
    /// Highest value that the buckets tell apart: 3600 s.
    pub const HIGHEST_NS: u64 = 3_600_000_000_000;
    /// Number of buckets in memory: codes are below it.
    pub const BUCKETS: u16 = 33_792;

    /// The bucket of [`Histogram::HIGHEST_NS`]: the crate rounds the range up to a power of two, we do not use the
    /// rest.
    const LAST: u16 = Histogram::bucket_of(Histogram::HIGHEST_NS);
    const DIGITS: u8 = 3;
    /// Values below this have a bucket each: 2^11, the first power of two from 2 * 10^3 on.
    const EXACT_BITS: u32 = 11;
    const HALF: u32 = 1 << (Histogram::EXACT_BITS - 1);

    /// An empty histogram; allocates nothing.
    #[must_use]
    pub const fn new() -> Histogram {
        Histogram { counts: None, totals: Totals::new(), overflow: 0 }
    }

    /// Allocates the buckets now, so that the first value costs what the others do.
    pub fn prepare(&mut self) {
        self.counts_mut();
    }

    /// Allocates the buckets of an empty histogram and touches all of their memory: what pages it takes is then known, and
    /// does not grow with every value that has not been seen before.
    pub fn touch(&mut self) {
        self.counts_mut().reset();
    }

    /// Forgets the values, keeps the memory.
    pub fn clear(&mut self) {
        if let Some(counts) = &mut self.counts {
            counts.reset();
        }
        (self.totals, self.overflow) = (Totals::new(), 0);
    }

    /// Counts `ns`.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.record_n(ns, 1);
    }

    /// Counts `ns`, `count` times.
    #[inline]
    pub fn record_n(&mut self, ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.totals.record_n(ns, count);
        if ns > Histogram::HIGHEST_NS {
            self.overflow = self.overflow.saturating_add(count);
        }
        self.counts_mut().saturating_record_n(ns.min(Histogram::HIGHEST_NS), count);
    }

    /// Counts `ns`, and for a value above `interval` also `ns - interval`, `ns - 2 * interval`, ... down to
    /// `interval`: the requests that a client sending one each `interval` would have sent while it waited.
    ///
    /// For data measured elsewhere without planned times; our own latencies are corrected by the plan. Takes
    /// `ns / interval` steps; an interval of 0 corrects nothing.
    pub fn record_corrected(&mut self, ns: u64, interval: u64) {
        self.record(ns);
        if interval == 0 {
            return;
        }
        let mut missing = ns.saturating_sub(interval);
        while missing >= interval {
            self.record(missing);
            missing -= interval;
        }
    }

    /// Counts `count` values of the bucket `code`, in the buckets only.
    ///
    /// The exact totals of these values, and how many lay beyond the range, are to be added by
    /// [`Histogram::add_totals`]. A code beyond that of [`Histogram::HIGHEST_NS`] counts as that.
    #[inline]
    pub fn record_bucket(&mut self, code: u16, count: u64) {
        let code = code.min(Histogram::LAST);
        self.counts_mut().saturating_record_n(Histogram::bucket_lowest(code), count);
    }

    /// Adds the exact totals of values that [`Histogram::record_bucket`] counted.
    pub fn add_totals(&mut self, totals: &Totals, overflow: u64) {
        self.totals.merge(totals);
        self.overflow = self.overflow.saturating_add(overflow);
    }

    /// Adds everything that `other` holds; in any order the sum is the same.
    pub fn merge(&mut self, other: &Histogram) {
        self.add_totals(&other.totals, other.overflow);
        if let Some(counts) = &other.counts {
            self.counts_mut().add(&**counts).expect("all histograms have one shape");
        }
    }

    /// The histogram with the values of `added` in place of those of `removed`, which must be among its own.
    ///
    /// For quantiles: the totals are those of the buckets.
    #[must_use]
    pub fn with_exchanged(&self, removed: &Histogram, added: &Histogram) -> Histogram {
        let mut all = Histogram::new();
        all.merge(self);
        all.merge(added);
        let mut exchanged = Histogram::new();
        let mut gone = removed.buckets().peekable();
        for Bucket { lowest, count, .. } in all.buckets() {
            let taken = gone.next_if(|bucket| bucket.lowest == lowest).map_or(0, |bucket| bucket.count);
            exchanged.counts_mut().saturating_record_n(lowest, count.saturating_sub(taken));
        }
        exchanged.totals = exchanged.totals_of_buckets();
        exchanged.overflow = self.overflow;
        exchanged
    }

    /// The histogram with `totals` and `overflow` in place of its own.
    ///
    /// For a histogram that was stored with its exact totals beside it: [`Histogram::from_base64`] knows the
    /// buckets only.
    #[must_use]
    pub fn with_totals(mut self, totals: Totals, overflow: u64) -> Histogram {
        self.totals = totals;
        self.overflow = overflow;
        self
    }

    /// The exact totals.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Number of values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.totals.n()
    }

    /// How many values were above [`Histogram::HIGHEST_NS`].
    #[must_use]
    pub fn overflow(&self) -> u64 {
        self.overflow
    }

    /// The nearest-rank quantile as the highest value of the bucket that holds it, ns: up to 0.1 % too high, never
    /// too low but for values beyond the range. `None` if the histogram is empty.
    #[must_use]
    pub fn quantile(&self, quantile: Quantile) -> Option<u64> {
        self.at_rank(quantile.rank(self.counts.as_ref()?.len()))
    }

    /// [`Histogram::quantile`] as it is printed: never above the exact maximum nor below the exact minimum, which the ends
    /// of their buckets are.
    #[must_use]
    pub fn shown_quantile(&self, quantile: Quantile) -> Option<u64> {
        self.shown_at_rank(quantile.rank(self.counts.as_ref()?.len()))
    }

    /// [`Histogram::at_rank`] within the exact extremes.
    #[must_use]
    pub fn shown_at_rank(&self, rank: u64) -> Option<u64> {
        let shown = self.at_rank(rank)?;
        Some(shown.min(self.totals.max().unwrap_or(shown)).max(self.totals.min().unwrap_or(shown)))
    }

    /// The highest value of the bucket that holds the value of this rank (from 1), ns; `None` beyond the last.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<u64> {
        let mut seen = 0_u64;
        self.buckets()
            .find(|bucket| {
                seen = seen.saturating_add(bucket.count);
                seen >= rank
            })
            .map(|bucket| bucket.highest)
    }

    /// The buckets that hold values, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.counts.iter().flat_map(|counts| {
            let codes = Histogram::bucket_of(counts.min())..=Histogram::bucket_of(counts.max());
            codes.filter_map(|code| {
                let lowest = Histogram::bucket_lowest(code);
                let count = counts.count_at(lowest);
                (count > 0).then(|| Bucket { lowest, highest: Histogram::bucket_highest(code), count })
            })
        })
    }

    /// The bucket that `ns` falls into: a code below [`Histogram::BUCKETS`], ascending with the value.
    ///
    /// A list of these costs 2 bytes a value and loses nothing against the histogram.
    #[must_use]
    #[inline]
    pub const fn bucket_of(ns: u64) -> u16 {
        let ns = if ns > Histogram::HIGHEST_NS { Histogram::HIGHEST_NS } else { ns };
        let mask = (1 << Histogram::EXACT_BITS) - 1;
        // How often the value must be halved to fit the exact range: 0 to 31, by the clamp.
        let halvings = u64::BITS - Histogram::EXACT_BITS - (ns | mask).leading_zeros();
        // Each doubling adds one upper half of the exact range; the kept bits stand in that half.
        (halvings * Histogram::HALF + (ns >> halvings) as u32) as u16
    }

    /// The smallest value of the bucket `code`, ns.
    #[must_use]
    pub const fn bucket_lowest(code: u16) -> u64 {
        let halvings = Histogram::bucket_halvings(code);
        (code as u64 - (halvings * Histogram::HALF) as u64) << halvings
    }

    /// The largest value of the bucket `code`, ns.
    #[must_use]
    pub const fn bucket_highest(code: u16) -> u64 {
        Histogram::bucket_lowest(code) + ((1 << Histogram::bucket_halvings(code)) - 1)
    }

    /// The histogram in the compressed form of HdrHistogram V2, as base64: the buckets, not the totals.
    #[must_use]
    pub fn to_base64(&self) -> String {
        let empty;
        let counts: &Counts = match &self.counts {
            Some(counts) => counts,
            None => {
                empty = new_counts();
                &empty
            }
        };
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(counts, &mut bytes)
            .expect("writing to memory does not fail, and counts stay below 2^63");
        BASE64_STANDARD.encode(bytes)
    }

    /// Reads what [`Histogram::to_base64`] or another HDR tool wrote: three digits, lowest value 1, any range that
    /// its values leave within ours. The plain V2 form is read as well.
    ///
    /// The totals are those of the buckets (edges for the extremes, middles for the sums); where exact ones were
    /// stored beside it, restore them with [`Histogram::with_totals`].
    ///
    /// # Errors
    ///
    /// See [`DecodeError`].
    pub fn from_base64(text: &str) -> Result<Histogram, DecodeError> {
        let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|_| DecodeError::Base64)?;
        let foreign: Counts =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|_| DecodeError::Format)?;
        if foreign.low() != 1 || foreign.sigfig() != Histogram::DIGITS {
            return Err(DecodeError::Shape);
        }
        if foreign.max() > Histogram::bucket_highest(Histogram::LAST) {
            return Err(DecodeError::Range);
        }
        let mut read = Histogram::new();
        read.counts_mut().add(&foreign).map_err(|_| DecodeError::Range)?;
        read.totals = read.totals_of_buckets();
        Ok(read)
    }

    /// Reads a histogram of any HDR tool whose values are `scale` ns each, whatever its digits and its lowest value: the
    /// values of one of its buckets become the highest of them, and the totals are those of the middles of its buckets.
    /// Values beyond [`Histogram::HIGHEST_NS`] are kept as overflow.
    ///
    /// # Errors
    ///
    /// What is not base64, or no HdrHistogram of version 2.
    pub fn from_foreign(text: &str, scale: u64) -> Result<Histogram, DecodeError> {
        let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|_| DecodeError::Base64)?;
        let foreign: Counts =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|_| DecodeError::Format)?;
        let mut read = Histogram::new();
        let mut totals = Totals::new();
        for step in foreign.iter_recorded() {
            let (value, count) = (step.value_iterated_to(), step.count_at_value());
            read.record_n(foreign.highest_equivalent(value).saturating_mul(scale), count);
            totals.record_n(foreign.median_equivalent(value).saturating_mul(scale), count);
        }
        read.totals = totals;
        Ok(read)
    }

    fn totals_of_buckets(&self) -> Totals {
        let mut totals = Totals::new();
        for Bucket { lowest, highest, count } in self.buckets() {
            totals.record_n(lowest + (highest - lowest).div_ceil(2), count);
        }
        totals
    }

    const fn bucket_halvings(code: u16) -> u32 {
        (code as u32 / Histogram::HALF).saturating_sub(1)
    }

    #[inline]
    fn counts_mut(&mut self) -> &mut Counts {
        self.counts.get_or_insert_with(|| Box::new(new_counts()))
    }
}

fn new_counts() -> Counts {
    Counts::new_with_bounds(1, Histogram::HIGHEST_NS, Histogram::DIGITS)
        .expect("the bounds are constant and valid")
}

impl PartialEq for Histogram {
    /// Equal values in all buckets, totals and overflow; whether empty buckets are allocated makes no difference.
    fn eq(&self, other: &Histogram) -> bool {
        self.totals == other.totals
            && self.overflow == other.overflow
            && match (&self.counts, &other.counts) {
                (Some(ours), Some(theirs)) => ours == theirs,
                (Some(only), None) | (None, Some(only)) => only.is_empty(),
                (None, None) => true,
            }
    }
}

impl fmt::Debug for Histogram {
    /// The totals; thirty thousand counts tell nobody anything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("totals", &self.totals)
            .field("overflow", &self.overflow)
            .field("p50", &self.quantile(Quantile::P50))
            .field("p99", &self.quantile(Quantile::P99))
            .finish_non_exhaustive()
    }
}

/// Why a stored histogram cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Not base64.
    Base64,
    /// Not an HdrHistogram of version 2.
    Format,
    /// Values above an hour.
    Range,
    /// Not three significant digits, or a lowest value other than 1.
    Shape,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DecodeError::Base64 => "the histogram is not base64",
            DecodeError::Format => "the bytes are not an HdrHistogram of version 2",
            DecodeError::Range => "the histogram has values above 3600 s",
            DecodeError::Shape => "the histogram does not have three digits from 1 ns on",
        })
    }
}

impl std::error::Error for DecodeError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use crate::stats::quantile;

    /// Values spread over all magnitudes, with zeros and repeats.
    fn values(seed: u64, n: usize) -> Vec<u64> {
        let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
        (0..n)
            .map(|_| {
                let magnitude = rng::below(&mut stream, 42);
                (rng::unit(&mut stream) * (1_u64 << magnitude) as f64) as u64
            })
            .map(|ns| ns.min(Histogram::HIGHEST_NS))
            .collect()
    }

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        values.iter().for_each(|ns| histogram.record(*ns));
        histogram
    }

    #[test]
    fn codes_are_the_buckets_of_the_wrapped_crate() {
        let reference = new_counts();
        assert_eq!(reference.distinct_values(), usize::from(Histogram::BUCKETS));
        let edges = (0..42).flat_map(|bits| {
            let power = 1_u64 << bits;
            [power - 1, power, power + 1, power + power / 2]
        });
        for ns in values(3, 2000).into_iter().chain(edges).map(|ns| ns.min(Histogram::HIGHEST_NS)) {
            let code = Histogram::bucket_of(ns);
            assert_eq!(Histogram::bucket_lowest(code), reference.lowest_equivalent(ns), "{ns}");
            assert_eq!(Histogram::bucket_highest(code), reference.highest_equivalent(ns), "{ns}");
        }
    }

    #[test]
    fn foreign_histograms_are_read_in_their_unit_and_digits() {
        let own = of(&[1, 5_000, 5_000, 70_000_000]);
        assert_eq!(Histogram::from_foreign(&own.to_base64(), 1).unwrap().counts, own.counts);
        // Microseconds of two digits: 1000 shares a bucket of 8 with its neighbours, and 3000 ns one of ours with 3001.
        let mut coarse = Counts::new_with_bounds(1, 1_000_000, 2).unwrap();
        coarse.record_n(3, 2).unwrap();
        coarse.record(1_000).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&coarse, &mut bytes).unwrap();
        let read = Histogram::from_foreign(&BASE64_STANDARD.encode(bytes), 1_000).unwrap();
        assert_eq!((read.n(), read.quantile(Quantile::P50)), (3, Some(3_001)));
        let highest = coarse.highest_equivalent(1_000) * 1_000;
        assert_eq!(read.at_rank(3), Some(Histogram::bucket_highest(Histogram::bucket_of(highest))));
        assert_eq!(Histogram::from_foreign("*", 1), Err(DecodeError::Base64));
        assert_eq!(Histogram::from_foreign("AAAA", 1), Err(DecodeError::Format));
    }

    #[test]
    fn codes_follow_each_other_without_gap() {
        for code in 0..Histogram::BUCKETS - 1 {
            assert_eq!(Histogram::bucket_highest(code) + 1, Histogram::bucket_lowest(code + 1));
            if Histogram::bucket_lowest(code) <= Histogram::HIGHEST_NS {
                assert_eq!(Histogram::bucket_of(Histogram::bucket_lowest(code)), code);
            }
        }
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_list_up_to_the_bucket() {
        for (seed, n) in [(1, 1), (2, 2), (3, 10), (4, 99), (5, 1000), (6, 2500)] {
            let mut sorted = values(seed, n);
            let histogram = of(&sorted);
            sorted.sort_unstable();
            for parts in (0..=100_000).step_by(9_990).chain([99_900, 99_000, 50_000, 100_000]) {
                let q = Quantile::from_parts(parts).unwrap();
                let exact = quantile::nearest_rank(&sorted, q).unwrap();
                let bucket = Histogram::bucket_of(exact);
                assert_eq!(histogram.quantile(q), Some(Histogram::bucket_highest(bucket)), "n {n} {q}");
            }
        }
        assert_eq!(Histogram::new().quantile(Quantile::P50), None);
    }

    #[test]
    fn a_reported_quantile_is_at_most_a_thousandth_too_high() {
        for ns in values(8, 2000) {
            let shown = of(&[ns]).quantile(Quantile::P50).unwrap();
            assert!(shown >= ns && (shown - ns) as f64 <= ns as f64 / 1000.0, "{ns} {shown}");
        }
    }

    #[test]
    fn what_is_shown_lies_between_the_exact_extremes() {
        let histogram = of(&[195_905; 100]);
        assert_eq!(histogram.quantile(Quantile::P99), Some(195_967), "the end of the bucket");
        assert_eq!(histogram.shown_quantile(Quantile::P99), Some(195_905));
        assert_eq!((histogram.shown_at_rank(100), histogram.shown_at_rank(101)), (Some(195_905), None));
        // Below the maximum's bucket nothing changes.
        let two = of(&[195_905, 1_000_000]);
        assert_eq!(two.shown_quantile(Quantile::P50), Some(195_967));
        // What the buckets cannot hold is at least what it is known to be.
        let beyond = of(&[Histogram::HIGHEST_NS * 3]);
        assert_eq!(beyond.shown_quantile(Quantile::P50), Some(Histogram::HIGHEST_NS * 3));
        assert_eq!(Histogram::new().shown_quantile(Quantile::P50), None);
    }

    #[test]
    fn an_overflow_is_clamped_and_counted() {
        let histogram = of(&[5, Histogram::HIGHEST_NS, Histogram::HIGHEST_NS + 1, u64::MAX]);
        assert_eq!(histogram.overflow(), 2);
        assert_eq!(histogram.n(), 4);
        assert_eq!(histogram.totals().max(), Some(u64::MAX));
        let last = Histogram::bucket_highest(Histogram::LAST);
        assert_eq!(histogram.quantile(Quantile::MAX), Some(last));
        assert_eq!(Histogram::bucket_of(u64::MAX), Histogram::bucket_of(Histogram::HIGHEST_NS));
    }

    #[test]
    fn merging_histograms_is_recording_both() {
        let (left, right) = (values(10, 700), values(11, 900));
        let all = of(&[left.clone(), right.clone()].concat());
        let (mut a, mut b) = (of(&left), of(&right));
        let before = a.clone();
        a.merge(&b);
        b.merge(&before);
        assert_eq!(a, all);
        assert_eq!(b, all);
        a.merge(&Histogram::new());
        assert_eq!(a, all);
        assert_ne!(a, before);
    }

    #[test]
    fn bucket_codes_lose_nothing_against_the_histogram() {
        let list = values(12, 800);
        let (mut by_code, mut totals) = (Histogram::new(), Totals::new());
        for ns in &list {
            by_code.record_bucket(Histogram::bucket_of(*ns), 1);
            totals.record(*ns);
        }
        by_code.add_totals(&totals, 0);
        assert_eq!(by_code, of(&list));
        by_code.record_bucket(u16::MAX, 1);
        assert_eq!(by_code.at_rank(801), Some(Histogram::bucket_highest(Histogram::LAST)));
    }

    #[test]
    fn a_repeated_value_is_that_many_values() {
        let mut once = Histogram::new();
        once.record_n(1_234_567, 3);
        once.record_n(9, 0);
        assert_eq!(once, of(&[1_234_567; 3]));
    }

    #[test]
    fn correction_fills_in_down_to_the_interval() {
        let mut filled = Histogram::new();
        filled.record_corrected(350, 100);
        filled.record_corrected(99, 100);
        filled.record_corrected(7, 0);
        assert_eq!(filled, of(&[350, 250, 150, 99, 7]));
        let mut exact = Histogram::new();
        exact.record_corrected(200, 100);
        assert_eq!(exact, of(&[200, 100]));
    }

    #[test]
    fn the_stored_form_comes_back() {
        for list in [vec![], vec![0], vec![Histogram::HIGHEST_NS], values(20, 500)] {
            let histogram = of(&list);
            let read = Histogram::from_base64(&histogram.to_base64()).unwrap();
            assert_eq!(read.clone().with_totals(*histogram.totals(), 0), histogram);
            assert_eq!(read.n(), histogram.n());
        }
    }

    #[test]
    fn other_hdr_tools_and_we_read_each_other() {
        let mut theirs = Counts::new_with_bounds(1, 60_000_000, 3).unwrap();
        theirs.record_n(50_000, 7).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(&theirs, &mut bytes).unwrap();
        let ours = Histogram::from_base64(&BASE64_STANDARD.encode(&bytes)).unwrap();
        assert_eq!(
            ours.buckets().collect::<Vec<_>>(),
            [Bucket { lowest: 49_984, highest: 50_015, count: 7 }]
        );
        assert_eq!(ours.totals().sum(), 7 * 50_000);

        let bytes = BASE64_STANDARD.decode(of(&[50_000; 7]).to_base64()).unwrap();
        let read: Counts = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        assert_eq!((read.len(), read.max()), (7, 50_015));
        assert!(of(&[1]).to_base64().starts_with("HISTFAA"), "the mark that readers of HDR logs look for");
    }

    #[test]
    fn what_is_no_histogram_of_ours_is_refused() {
        let stored = |counts: &Counts| {
            let mut bytes = Vec::new();
            V2DeflateSerializer::new().serialize(counts, &mut bytes).unwrap();
            Histogram::from_base64(&BASE64_STANDARD.encode(bytes))
        };
        assert_eq!(Histogram::from_base64("*"), Err(DecodeError::Base64));
        assert_eq!(Histogram::from_base64(""), Err(DecodeError::Format));
        assert_eq!(Histogram::from_base64("HISTFAAAAA=="), Err(DecodeError::Format));
        assert_eq!(stored(&Counts::new_with_bounds(1, 1000, 2).unwrap()), Err(DecodeError::Shape));
        let mut days = Counts::new_with_bounds(1, 1 << 50, 3).unwrap();
        days.record(1 << 49).unwrap();
        assert_eq!(stored(&days), Err(DecodeError::Range));
    }
}
