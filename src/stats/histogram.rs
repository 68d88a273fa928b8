//! The one histogram of the program: nanoseconds, three significant digits, up to an hour.
//!
//! Its buckets and its stored form are those of `hdrhistogram`, which other tools read; the counts are kept in less memory
//! while they are counted. What the buckets cannot tell exactly ([`Totals`], the number of values beyond the range) is kept
//! beside them, and ranks are integers.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hdrhistogram::serialization::Deserializer;

use crate::stats::quantile::Quantile;
use crate::stats::totals::Totals;

mod rows;
mod stored;
#[cfg(test)]
mod tests;
mod v2;

use rows::Rows;

/// A histogram of durations in nanoseconds, all of one shape, so that any two can be added.
///
/// Values up to [`Histogram::HIGHEST_NS`] fall into buckets whose width is at most 1/1024 of the value (1 ns below
/// 2048 ns). A larger value is counted in the bucket of the highest one and in [`Histogram::overflow`]; the totals
/// keep it as it is. Memory: 2 KiB, and 1 KiB for each eighth of the way from a power of two to the next in which there are
/// values, from the first of these on.
#[derive(Clone, Default)]
pub struct Histogram {
    counts: Option<Box<Rows>>,
    totals: Totals,
    overflow: u64,
}

/// The form of `hdrhistogram`, in which it is written and read.
type Hdr = hdrhistogram::Histogram<u64>;

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

    /// Forgets the values, keeps the memory.
    pub fn clear(&mut self) {
        if let Some(counts) = &mut self.counts {
            counts.clear();
        }
        (self.totals, self.overflow) = (Totals::new(), 0);
    }

    /// Counts `ns`.
    // As `record_n` does it; a request that ends has a dozen values, and for one the squares need no care.
    pub fn record(&mut self, ns: u64) {
        self.totals.record(ns);
        self.overflow = self.overflow.saturating_add(u64::from(ns > Histogram::HIGHEST_NS));
        self.counts_mut().add(Histogram::bucket_of(ns), 1);
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
        self.counts_mut().add(Histogram::bucket_of(ns), count);
    }

    /// Counts each of `values`, which ascend, as [`Histogram::record`] does: those of a bucket in one step.
    pub fn record_ascending(&mut self, values: impl IntoIterator<Item = u64>) {
        let mut bucket: Option<(u16, u64)> = None;
        for ns in values {
            self.totals.record(ns);
            self.overflow = self.overflow.saturating_add(u64::from(ns > Histogram::HIGHEST_NS));
            let code = Histogram::bucket_of(ns);
            match &mut bucket {
                Some((last, count)) if *last == code => *count += 1,
                _ => {
                    let full = bucket.replace((code, 1));
                    full.iter().for_each(|(code, count)| self.record_bucket(*code, *count));
                }
            }
        }
        bucket.iter().for_each(|(code, count)| self.record_bucket(*code, *count));
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
        self.counts_mut().add(code.min(Histogram::LAST), count);
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
            self.counts_mut().merge(counts);
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
            exchanged.record_bucket(Histogram::bucket_of(lowest), count.saturating_sub(taken));
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
        self.at_rank(quantile.rank(self.counted()?))
    }

    /// [`Histogram::quantile`] as it is printed: never above the exact maximum nor below the exact minimum, which the ends
    /// of their buckets are.
    #[must_use]
    pub fn shown_quantile(&self, quantile: Quantile) -> Option<u64> {
        self.shown_at_rank(quantile.rank(self.counted()?))
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
        self.counts.iter().flat_map(|counts| counts.iter()).map(|(code, count)| Bucket {
            lowest: Histogram::bucket_lowest(code),
            highest: Histogram::bucket_highest(code),
            count,
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
        let buckets = self.counts.iter().flat_map(|counts| counts.iter());
        BASE64_STANDARD.encode(v2::deflated(buckets, Histogram::HIGHEST_NS, Histogram::DIGITS))
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
        let foreign: Hdr =
            Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|_| DecodeError::Format)?;
        if foreign.low() != 1 || foreign.sigfig() != Histogram::DIGITS {
            return Err(DecodeError::Shape);
        }
        if foreign.max() > Histogram::bucket_highest(Histogram::LAST) {
            return Err(DecodeError::Range);
        }
        let mut read = Histogram::new();
        for step in foreign.iter_recorded() {
            read.record_bucket(Histogram::bucket_of(step.value_iterated_to()), step.count_at_value());
        }
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
        let foreign: Hdr =
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
    fn counts_mut(&mut self) -> &mut Rows {
        self.counts.get_or_insert_with(|| Box::new(Rows::new()))
    }

    /// Number of values in the buckets; `None` without any.
    fn counted(&self) -> Option<u64> {
        self.counts.as_ref().map(|counts| counts.n()).filter(|n| *n > 0)
    }
}

impl PartialEq for Histogram {
    /// Equal values in all buckets, totals and overflow; whether empty buckets are allocated makes no difference.
    fn eq(&self, other: &Histogram) -> bool {
        self.totals == other.totals
            && self.overflow == other.overflow
            && match (&self.counts, &other.counts) {
                (Some(ours), Some(theirs)) => ours == theirs,
                (Some(only), None) | (None, Some(only)) => only.n() == 0,
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
