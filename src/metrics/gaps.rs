//! The gaps of one request until its outcome is known: a failed request takes part in no latency.
//!
//! Owned by the connection that serves the request and reused for the next; pooled by `tally`.

use crate::stats::{Histogram, Totals};
use crate::sys::prefetch::prefetch;

/// The gaps between the content events of one request, by one kind of stamp.
///
/// Each costs 2 bytes, its bucket in a [`Histogram`]; the totals beside them are exact. With several choices the
/// gaps of each are taken per choice and all are recorded here.
// What a gap changes is one line of the cache: of a thousand streams none is near when an event comes.
#[derive(Clone, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct Gaps {
    /// Bucket of each gap, in order; [`JOINED`] for a gap between two events of one read, which is zero by the stamps.
    codes: Vec<u16>,
    /// `u64::MAX` while there is no gap.
    min: u64,
    max: u64,
    /// In 584 years of gaps it would stop at the largest value.
    sum: u64,
    sum_of_squares: u128,

    overflow: u64,
    /// Bucket of gap / k, and k, for each event whose tokens are known.
    token_codes: Vec<(u16, u16)>,
    token_totals: Totals,
    token_overflow: u64,
    /// By when before its stamp the first event came at the earliest, if events joined it in its read, ns.
    first_within_ns: u64,
    /// Some gap is [`JOINED`]: most requests have none, and are then not searched for them.
    is_joined: bool,
}

const _: () = assert!(std::mem::offset_of!(Gaps, overflow) == 64);

impl Default for Gaps {
    fn default() -> Gaps {
        Gaps {
            codes: Vec::new(),
            min: u64::MAX,
            max: 0,
            sum: 0,
            sum_of_squares: 0,
            overflow: 0,
            token_codes: Vec::new(),
            token_totals: Totals::new(),
            token_overflow: 0,
            first_within_ns: 0,
            is_joined: false,
        }
    }
}

/// Beyond the code of every bucket.
const JOINED: u16 = u16::MAX;
const _: () = assert!(Histogram::BUCKETS < JOINED);

/// Content events that came in one read: its stamp is right for the last of them, the others came at some time before
/// and after the read before. So their gaps are known in sum only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lump {
    /// Sum of the gaps, ns, as the highest value of its bucket in a [`Histogram`]; the most that it can be where the
    /// first event of the request is among them.
    pub sum_ns: u64,
    /// Number of gaps.
    pub gaps: u32,
    /// The first gap was recorded with the whole sum, the others with zero. If not, all were recorded with zero.
    pub led: bool,
}

impl Gaps {
    /// No gaps, with room for those of `events` content events.
    #[must_use]
    pub fn with_capacity(events: usize) -> Gaps {
        Gaps { codes: Vec::with_capacity(events), ..Gaps::default() }
    }

    /// Makes room for the gaps of `events` content events in all, so that recording them does not allocate.
    ///
    /// Room for gaps per token, which most servers give no cause for, is made as large when the first one comes.
    pub fn reserve(&mut self, events: usize) {
        self.codes.reserve(events.saturating_sub(self.codes.len()));
    }

    /// Forgets the gaps, keeps the memory.
    pub fn clear(&mut self) {
        self.codes.clear();
        self.first_within_ns = 0;
        self.is_joined = false;
        self.token_codes.clear();
        (self.min, self.max, self.sum, self.sum_of_squares) = (u64::MAX, 0, 0, 0);
        self.overflow = 0;
        (self.token_totals, self.token_overflow) = (Totals::new(), 0);
    }

    /// Has what recording a gap changes in this struct brought into the cache.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&self.codes);
    }

    /// The same for the place of the next gap; to be called once the struct itself is there.
    #[inline]
    pub fn prefetch_next(&self) {
        // The one after the last may lie in a line that nothing has been written to yet; the last is near enough.
        self.codes.last().into_iter().for_each(prefetch);
    }

    /// Records a gap of `ns`.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        self.codes.push(Histogram::bucket_of(ns));
        self.add(ns);
        if ns > Histogram::HIGHEST_NS {
            self.overflow += 1;
        }
    }

    #[inline]
    fn add(&mut self, ns: u64) {
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        self.sum = self.sum.saturating_add(ns);
        self.sum_of_squares = self.sum_of_squares.saturating_add(u128::from(ns) * u128::from(ns));
    }

    /// Records that one more content event came in the read of the one before, at most `within_ns` after the read
    /// before that: a gap of zero by the stamps, which is part of a [`Lump`].
    #[inline]
    pub fn record_joined(&mut self, within_ns: u64) {
        if self.codes.is_empty() {
            self.first_within_ns = within_ns;
        }
        self.is_joined = true;
        self.codes.push(JOINED);
        self.add(0);
    }

    /// The events that shared a read, read by read.
    pub fn lumps(&self) -> impl Iterator<Item = Lump> {
        let mut rest = if self.is_joined { &self.codes[..] } else { &[] };
        let mut leader = None;
        std::iter::from_fn(move || {
            while let Some((&code, others)) = rest.split_first() {
                if code != JOINED {
                    (leader, rest) = (Some(code), others);
                    continue;
                }
                let joined = rest.iter().take_while(|code| **code == JOINED).count();
                rest = &rest[joined..];
                let led = leader.take();
                return Some(Lump {
                    sum_ns: led.map_or(self.first_within_ns, Histogram::bucket_highest),
                    gaps: u32::try_from(joined + usize::from(led.is_some())).unwrap_or(u32::MAX),
                    led: led.is_some(),
                });
            }
            None
        })
    }

    /// Records a gap of `ns` whose event brought `k` tokens: a gap, and `k` times `ns / k` per token.
    ///
    /// The quotient is rounded to the nearest nanosecond. An event without any token is a gap only.
    #[inline]
    pub fn record_tokens(&mut self, ns: u64, k: u32) {
        self.record(ns);
        self.record_per_token(ns, k);
    }

    /// Records the tokens of an event alone: `k` times `ns / k`.
    #[inline]
    pub fn record_per_token(&mut self, ns: u64, k: u32) {
        if k == 0 {
            return;
        }
        let k64 = u64::from(k);
        let each = ns / k64 + u64::from(ns % k64 >= k64.div_ceil(2));
        self.token_totals.record_n(each, k64);
        if each > Histogram::HIGHEST_NS {
            self.token_overflow += k64;
        }
        if self.token_codes.len() == self.token_codes.capacity() {
            self.token_codes.reserve(self.codes.capacity().saturating_sub(self.token_codes.len()));
        }
        let code = Histogram::bucket_of(each);
        let mut left = k;
        while left > 0 {
            let part = u16::try_from(left).unwrap_or(u16::MAX);
            self.token_codes.push((code, part));
            left -= u32::from(part);
        }
    }

    /// The largest gap, ns; `None` if there is none.
    #[must_use]
    pub fn stall(&self) -> Option<u64> {
        (!self.codes.is_empty()).then_some(self.max)
    }

    /// The exact totals of the gaps.
    #[must_use]
    pub fn totals(&self) -> Totals {
        Totals::of_parts(self.codes.len() as u64, (self.min, self.max), self.sum, self.sum_of_squares)
    }

    /// Number of gaps.
    #[must_use]
    pub fn len(&self) -> usize {
        self.codes.len()
    }

    /// Whether there is no gap.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.codes.is_empty()
    }

    /// The gaps in order, each as its bucket in a [`Histogram`].
    pub fn codes(&self) -> impl Iterator<Item = u16> {
        self.codes.iter().map(|code| if *code == JOINED { 0 } else { *code })
    }

    /// Adds the gaps to `histogram`.
    pub fn pool_into(&self, histogram: &mut Histogram) {
        let mut joined = 0;
        for code in &self.codes {
            match *code {
                JOINED => joined += 1,
                code => histogram.record_bucket(code, 1),
            }
        }
        if joined > 0 {
            histogram.record_bucket(0, joined);
        }
        if !self.codes.is_empty() {
            histogram.add_totals(&self.totals(), self.overflow);
        }
    }

    /// Adds the gaps per token to `histogram`.
    pub fn pool_tokens_into(&self, histogram: &mut Histogram) {
        self.token_codes.iter().for_each(|(code, k)| histogram.record_bucket(*code, u64::from(*k)));
        if !self.token_codes.is_empty() {
            histogram.add_totals(&self.token_totals, self.token_overflow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pooled_gaps_are_those_recorded_at_once() {
        let list = [24_000_000, 0, 1_999, 72_000_001, Histogram::HIGHEST_NS + 5];
        let (mut gaps, mut direct) = (Gaps::with_capacity(4), Histogram::new());
        for ns in list {
            gaps.record(ns);
            direct.record(ns);
        }
        let mut pooled = Histogram::new();
        gaps.pool_into(&mut pooled);
        assert_eq!(pooled, direct);
        assert_eq!((gaps.len(), gaps.stall()), (5, Some(Histogram::HIGHEST_NS + 5)));
    }

    #[test]
    fn a_gap_of_k_tokens_counts_k_times_a_kth() {
        let mut gaps = Gaps::default();
        gaps.record_tokens(90, 3);
        gaps.record_tokens(100, 3);
        gaps.record_tokens(101, 3);
        gaps.record_tokens(50, 4);
        gaps.record_tokens(7, 0);
        gaps.record_tokens(70_000, 70_000);
        let (mut per_token, mut plain) = (Histogram::new(), Histogram::new());
        gaps.pool_tokens_into(&mut per_token);
        gaps.pool_into(&mut plain);
        let mut expected = Histogram::new();
        for (each, k) in [(30, 3), (33, 3), (34, 3), (13, 4), (1, 70_000)] {
            expected.record_n(each, k);
        }
        assert_eq!(per_token, expected);
        assert_eq!(plain.n(), 6);
    }

    #[test]
    fn events_of_one_read_make_a_lump() {
        let mut gaps = Gaps::default();
        // Read 1: events 1 to 3. Read 2: event 4. Read 3: events 5 and 6. Read 4: events 7 to 9.
        gaps.record_joined(400);
        gaps.record_joined(400);
        gaps.record(20);
        gaps.record(50);
        gaps.record_joined(50);
        gaps.record(60);
        gaps.record_joined(60);
        gaps.record_joined(60);
        let expected = [
            Lump { sum_ns: 400, gaps: 2, led: false },
            Lump { sum_ns: 50, gaps: 2, led: true },
            Lump { sum_ns: 60, gaps: 3, led: true },
        ];
        assert_eq!(gaps.lumps().collect::<Vec<_>>(), expected);
        assert_eq!(gaps.len(), 8);
        gaps.clear();
        assert_eq!(gaps, Gaps::default());
    }

    #[test]
    fn clearing_keeps_the_memory_and_nothing_else() {
        let mut gaps = Gaps::with_capacity(100);
        (0..100).for_each(|ns| gaps.record_tokens(ns, 2));
        let room = gaps.codes.capacity();
        gaps.clear();
        assert_eq!(gaps, Gaps::default());
        assert_eq!((gaps.stall(), gaps.is_empty()), (None, true));
        assert_eq!(gaps.codes.capacity(), room);
    }

    #[test]
    fn nothing_pooled_leaves_a_histogram_without_buckets() {
        let mut histogram = Histogram::new();
        Gaps::default().pool_into(&mut histogram);
        Gaps::default().pool_tokens_into(&mut histogram);
        assert_eq!(histogram, Histogram::new());
    }
}
