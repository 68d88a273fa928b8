//! What happened when: counts over the time of a level, in a bounded number of bins.
//!
//! Owns the bins and their folding. Times are nanoseconds since the start of the level, so that the series of shards
//! and of hosts, whose clocks do not compare, can be added.

use serde::{Deserialize, Serialize};

use crate::stats::coarse::Coarse;

/// A series of at most [`Series::BINS_MAX`] bins, 1 s wide at first.
///
/// When an event falls beyond the last bin, pairs of bins are folded and the width doubles. Folding loses nothing
/// but resolution: series of different widths add up to what one series would have been.
///
/// In flight is weighted by time: each bin knows how long requests were open in it, as an exact integer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(into = "Stored", try_from = "Stored")]
pub struct Series {
    /// log2 of the width in seconds.
    doublings: u32,
    bins: Vec<Bin>,
}

/// One bin of a series, as it is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice<'a> {
    /// Its start since the start of the level, s.
    pub start_s: f64,
    /// Its width, s.
    pub width_s: f64,
    /// Time-weighted mean of the requests in flight.
    pub in_flight: f64,
    /// Requests sent.
    pub sent: u64,
    /// Requests whose last content event came, of those that ended well.
    pub ok: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Output tokens (content events where an event's tokens are not known).
    pub tokens: u64,
    /// TTFT of the requests that ended well, at their first content event.
    pub ttft: &'a Coarse,
    /// Their gaps, each at its end.
    pub itl: &'a Coarse,
    /// Their E2E, at their last content event.
    pub e2e: &'a Coarse,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Bin {
    /// Open time that begins or ends in this bin, counted to the bin's end, ns: negative where more ends.
    edge_ns: i64,
    /// Requests begun minus requests ended in this bin: they are open, or not, in all later bins.
    step: i64,
    sent: u64,
    ok: u64,
    failed: u64,
    tokens: u64,
    ttft: Coarse,
    itl: Coarse,
    e2e: Coarse,
}

impl Series {
    /// Most bins that a series has.
    pub const BINS_MAX: usize = 1800;

    const SECOND_NS: u64 = 1_000_000_000;

    /// An empty series.
    #[must_use]
    pub fn new() -> Series {
        Series::default()
    }

    /// Makes room for all bins that there can be (a third of a MiB), and touches it, so that time going by neither
    /// allocates nor takes pages while requests stream.
    pub fn prepare(&mut self) {
        let used = self.bins.len();
        self.bins.reserve_exact(Series::BINS_MAX.saturating_sub(used));
        self.bins.resize_with(Series::BINS_MAX.max(used), Bin::default);
        self.bins.truncate(used);
    }

    /// Counts a request sent at `at` ns.
    pub fn add_sent(&mut self, at: u64) {
        self.bin(at).sent += 1;
    }

    /// Counts `tokens` that came at `at` ns.
    #[inline]
    pub fn add_tokens(&mut self, at: u64, tokens: u32) {
        self.bin(at).tokens += u64::from(tokens);
    }

    /// Counts a request that ended well, with its E2E, ns, at its last content event at `at` ns.
    pub fn add_ok(&mut self, at: u64, e2e: Option<u64>) {
        let bin = self.bin(at);
        bin.ok += 1;
        e2e.into_iter().for_each(|ns| bin.e2e.record(ns));
    }

    /// Counts a request that failed at `at` ns.
    pub fn add_failed(&mut self, at: u64) {
        self.bin(at).failed += 1;
    }

    /// Counts a TTFT of `ns`, whose first content event came at `at` ns.
    pub fn add_ttft(&mut self, at: u64, ns: u64) {
        self.bin(at).ttft.record(ns);
    }

    /// Counts a gap of `ns` that ended at `at` ns.
    #[inline]
    pub fn add_gap(&mut self, at: u64, ns: u64) {
        self.bin(at).itl.record(ns);
    }

    /// Counts a request as open in `[start, end)` ns.
    ///
    /// Two bins are touched, however long the request was open: what lies between follows from them.
    pub fn add_life(&mut self, start: u64, end: u64) {
        if end <= start {
            return;
        }
        // The end first: it may fold the bins, and the width must be the same for both.
        let last = self.place(end);
        let first = self.place(start);
        let width = self.width_ns();
        let to_end = |place: usize, at: u64| (width - (at - place as u64 * width).min(width)) as i64;
        self.bins[first].edge_ns += to_end(first, start);
        self.bins[first].step += 1;
        self.bins[last].edge_ns -= to_end(last, end);
        self.bins[last].step -= 1;
    }

    /// Adds everything that `other` holds, each counted from its own start.
    pub fn merge(&mut self, other: &Series) {
        if other.doublings < self.doublings {
            let mut folded = other.clone();
            folded.fold_to(self.doublings);
            return self.merge(&folded);
        }
        self.fold_to(other.doublings);
        if self.bins.len() < other.bins.len() {
            self.bins.resize_with(other.bins.len(), Bin::default);
        }
        for (ours, theirs) in self.bins.iter_mut().zip(&other.bins) {
            ours.add(theirs, 0);
        }
    }

    /// Puts everything `by` ns later, in whole bins: by the nearest number of them.
    pub fn delay(&mut self, by: u64) {
        let later = |series: &Series| (by.saturating_add(series.width_ns() / 2) / series.width_ns()) as usize;
        while self.doublings < DOUBLINGS_MAX && later(self).saturating_add(self.bins.len()) > Series::BINS_MAX
        {
            self.fold_to(self.doublings + 1);
        }
        if !self.bins.is_empty() {
            let empty = std::iter::repeat_with(Bin::default).take(later(self).min(Series::BINS_MAX));
            self.bins.splice(0..0, empty);
        }
    }

    /// Width of a bin, ns.
    #[must_use]
    pub fn width_ns(&self) -> u64 {
        Series::SECOND_NS << self.doublings
    }

    /// The bins in order, from the start of the level to the last event.
    pub fn slices(&self) -> impl Iterator<Item = Slice<'_>> {
        let width_s = self.width_ns() as f64 / 1e9;
        self.open_ns().zip(&self.bins).enumerate().map(move |(place, (open_ns, bin))| Slice {
            start_s: place as f64 * width_s,
            width_s,
            in_flight: open_ns as f64 / self.width_ns() as f64,
            sent: bin.sent,
            ok: bin.ok,
            failed: bin.failed,
            tokens: bin.tokens,
            ttft: &bin.ttft,
            itl: &bin.itl,
            e2e: &bin.e2e,
        })
    }

    /// How long requests were open in each bin, together, ns.
    fn open_ns(&self) -> impl Iterator<Item = i64> {
        let width = self.width_ns() as i64;
        self.bins.iter().scan(0_i64, move |open, bin| {
            let open_ns = open.saturating_mul(width).saturating_add(bin.edge_ns);
            *open = open.saturating_add(bin.step);
            Some(open_ns)
        })
    }

    #[inline]
    fn bin(&mut self, at: u64) -> &mut Bin {
        let place = self.place(at);
        &mut self.bins[place]
    }

    /// The place of the bin of `at`, which exists afterwards.
    #[inline]
    fn place(&mut self, at: u64) -> usize {
        // The divisor is constant, which makes this a multiplication.
        let place = ((at / Series::SECOND_NS) >> self.doublings) as usize;
        if place < self.bins.len() {
            return place;
        }
        self.grow(at)
    }

    #[cold]
    fn grow(&mut self, at: u64) -> usize {
        let seconds = at / Series::SECOND_NS;
        let mut doublings = self.doublings;
        while (seconds >> doublings) as usize >= Series::BINS_MAX {
            doublings += 1;
        }
        self.fold_to(doublings);
        let place = (seconds >> doublings) as usize;
        let before = self.bins.len();
        if place >= before {
            self.bins.resize_with(place + 1, Bin::default);
        }
        // What is past takes little room, so that the memory of a run hardly grows with its length.
        for age in PACKED_AT {
            let past = before.saturating_sub(age)..self.bins.len().saturating_sub(age);
            self.bins[past].iter_mut().for_each(Bin::pack);
        }
        place
    }

    fn fold_to(&mut self, doublings: u32) {
        while self.doublings < doublings {
            let width = self.width_ns() as i64;
            let mut folded = Vec::with_capacity(self.bins.len().div_ceil(2));
            let mut bins = std::mem::take(&mut self.bins).into_iter();
            while let Some(mut bin) = bins.next() {
                // What began in the first half stays open through the second, whether or not anything fell there.
                let second = bins.next().unwrap_or_default();
                bin.add(&second, width);
                folded.push(bin);
            }
            self.bins = folded;
            self.doublings += 1;
        }
    }
}

impl Bin {
    /// Adds `other`, which begins `later_ns` after this bin.
    fn add(&mut self, other: &Bin, later_ns: i64) {
        // Saturating: a series read from a file may hold anything.
        let carried = self.step.saturating_mul(later_ns);
        self.edge_ns = self.edge_ns.saturating_add(other.edge_ns).saturating_add(carried);
        self.step = self.step.saturating_add(other.step);
        self.sent = self.sent.saturating_add(other.sent);
        self.ok = self.ok.saturating_add(other.ok);
        self.failed = self.failed.saturating_add(other.failed);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.ttft.merge(&other.ttft);
        self.itl.merge(&other.itl);
        self.e2e.merge(&other.e2e);
    }
}

impl Bin {
    fn pack(&mut self) {
        [&mut self.ttft, &mut self.itl, &mut self.e2e].into_iter().for_each(Coarse::pack);
    }
}

impl PartialEq for Series {
    /// Equal in what is stored; how open time came about makes no difference.
    fn eq(&self, other: &Series) -> bool {
        Stored::from(self.clone()) == Stored::from(other.clone())
    }
}

/// How many bins ago one is packed: requests count into the bins of their time when they end, and undo it if they took long.
const PACKED_AT: [usize; 4] = [16, 64, 256, 1024];
/// 2^33 s is the width at which the bins cover every stamp there is, with room to spare.
const DOUBLINGS_MAX: u32 = 33;

/// The form in files: a column per count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    /// Width of a bin, s: a power of two.
    width_s: u64,
    /// Open time of all requests in the bin, ns.
    in_flight_ns: Vec<i64>,
    sent: Vec<u64>,
    ok: Vec<u64>,
    failed: Vec<u64>,
    tokens: Vec<u64>,
    ttft: Vec<Coarse>,
    itl: Vec<Coarse>,
    e2e: Vec<Coarse>,
}

impl From<Series> for Stored {
    fn from(series: Series) -> Stored {
        let mut stored = Stored {
            width_s: 1 << series.doublings,
            in_flight_ns: series.open_ns().collect(),
            sent: Vec::new(),
            ok: Vec::new(),
            failed: Vec::new(),
            tokens: Vec::new(),
            ttft: Vec::new(),
            itl: Vec::new(),
            e2e: Vec::new(),
        };
        for bin in series.bins {
            stored.sent.push(bin.sent);
            stored.ok.push(bin.ok);
            stored.failed.push(bin.failed);
            stored.tokens.push(bin.tokens);
            stored.ttft.push(bin.ttft);
            stored.itl.push(bin.itl);
            stored.e2e.push(bin.e2e);
        }
        stored
    }
}

impl TryFrom<Stored> for Series {
    type Error = &'static str;

    fn try_from(stored: Stored) -> Result<Series, &'static str> {
        let n = stored.in_flight_ns.len();
        let counts = [&stored.sent, &stored.ok, &stored.failed, &stored.tokens];
        let histograms = [&stored.ttft, &stored.itl, &stored.e2e];
        if counts.iter().any(|column| column.len() != n) || histograms.iter().any(|column| column.len() != n)
        {
            return Err("the columns of a series must have one length");
        }
        if n > Series::BINS_MAX {
            return Err("a series has at most 1800 bins");
        }
        if !stored.width_s.is_power_of_two() || stored.width_s > 1 << DOUBLINGS_MAX {
            return Err("the width of a series must be a power of two in seconds");
        }
        let mut histograms = stored.ttft.into_iter().zip(stored.itl).zip(stored.e2e);
        let bins = (0..n)
            .zip(&mut histograms)
            .map(|(i, ((ttft, itl), e2e))| Bin {
                edge_ns: stored.in_flight_ns[i],
                step: 0,
                sent: stored.sent[i],
                ok: stored.ok[i],
                failed: stored.failed[i],
                tokens: stored.tokens[i],
                ttft,
                itl,
                e2e,
            })
            .collect();
        Ok(Series { doublings: stored.width_s.trailing_zeros(), bins })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use crate::stats::quantile::Quantile;

    const S: u64 = Series::SECOND_NS;

    #[test]
    fn a_delayed_series_has_everything_later_in_whole_bins() {
        let mut series = Series::new();
        series.add_sent(0);
        series.add_life(S / 2, 3 * S);
        let mut later = series.clone();
        later.delay(4 * S + S / 4);
        let sent: Vec<u64> = later.slices().map(|slice| slice.sent).collect();
        assert_eq!(sent, [0, 0, 0, 0, 1, 0, 0, 0]);
        let open: Vec<f64> = later.slices().map(|slice| slice.in_flight).collect();
        assert_eq!(open, [0.0, 0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 0.0]);
        // So late that bins must be folded for it.
        later.delay(5000 * S);
        assert!(later.slices().count() <= Series::BINS_MAX && later.width_ns() == 4 * S);
        assert_eq!(later.slices().map(|slice| slice.sent).sum::<u64>(), 1);
        let open_s: f64 = later.slices().map(|slice| slice.in_flight * slice.width_s).sum();
        assert_eq!(open_s, 2.5);
        let mut nothing = Series::new();
        nothing.delay(9 * S);
        assert_eq!(nothing, Series::new());
    }

    /// Lives within `span` ns, a few of them empty.
    fn lives(seed: u64, n: usize, span: u64) -> Vec<(u64, u64)> {
        let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
        let mut at = || (rng::unit(&mut stream) * span as f64) as u64;
        (0..n).map(|_| (at(), at())).map(|(a, b)| (a.min(b), a.max(b))).collect()
    }

    fn record(series: &mut Series, life: (u64, u64)) {
        series.add_sent(life.0);
        series.add_life(life.0, life.1);
        series.add_tokens(life.1, 3);
        series.add_ok(life.1, Some(life.1 - life.0));
        series.add_ttft(life.0, 5_000_000);
        series.add_gap(life.1, 20_000_000);
    }

    fn of(lives: &[(u64, u64)]) -> Series {
        let mut series = Series::new();
        lives.iter().for_each(|life| record(&mut series, *life));
        series
    }

    #[test]
    fn open_time_is_that_of_a_sum_over_overlaps() {
        for (seed, span) in [(1, 9 * S), (2, 1800 * S), (3, 5000 * S), (4, 100_000 * S)] {
            let mut lives = lives(seed, 200, span);
            // In the order of their ends, so that bins are folded while requests are open in them.
            lives.sort_unstable_by_key(|(_, end)| *end);
            let series = of(&lives);
            let width = series.width_ns();
            for (place, open) in series.open_ns().enumerate() {
                let (start, end) = (place as u64 * width, (place as u64 + 1) * width);
                let overlap: u64 =
                    lives.iter().map(|(a, b)| (*b).min(end).saturating_sub((*a).max(start))).sum();
                assert_eq!(open, overlap as i64, "seed {seed} bin {place}");
            }
        }
    }

    #[test]
    fn in_flight_is_the_mean_over_the_bin() {
        let mut series = Series::new();
        series.add_life(S / 2, 2 * S + S / 4);
        series.add_life(S, S);
        let mean: Vec<f64> = series.slices().map(|slice| slice.in_flight).collect();
        assert_eq!(mean, [0.5, 1.0, 0.25]);
    }

    #[test]
    fn bins_stay_bounded_and_lose_no_count() {
        let mut series = Series::new();
        for second in 0..10_000 {
            series.add_tokens(second * S, 2);
        }
        assert_eq!(series.width_ns(), 8 * S);
        assert_eq!(series.slices().count(), 1250);
        assert_eq!(series.slices().map(|slice| slice.tokens).sum::<u64>(), 20_000);
        assert!(series.slices().all(|slice| slice.tokens == 16));
        series.add_life(0, u64::MAX);
        assert!(series.slices().count() <= Series::BINS_MAX);
    }

    #[test]
    fn merging_series_of_any_widths_is_recording_both() {
        for (seed, left_span, right_span) in [(1, 5, 7), (2, 10, 9000), (3, 40_000, 3), (4, 2000, 8000)] {
            let left = lives(seed, 150, left_span * S);
            let right = lives(seed + 10, 150, right_span * S);
            let all = of(&[left.clone(), right.clone()].concat());
            let (mut a, mut b) = (of(&left), of(&right));
            let before = a.clone();
            a.merge(&b);
            b.merge(&before);
            assert_eq!(a, all, "spans {left_span} and {right_span}");
            assert_eq!(b, all);
            assert_ne!(a, before);
        }
    }

    #[test]
    fn a_stored_series_is_the_same_and_can_be_added_to() {
        let (first, second) = (lives(1, 100, 20 * S), lives(2, 100, 6000 * S));
        let text = serde_json::to_string(&of(&first)).unwrap();
        let mut read: Series = serde_json::from_str(&text).unwrap();
        assert_eq!(read, of(&first));
        read.merge(&of(&second));
        assert_eq!(read, of(&[first, second].concat()));
    }

    #[test]
    fn a_slice_shows_what_fell_into_it() {
        let mut series = Series::new();
        record(&mut series, (0, S + S / 2));
        series.add_failed(S);
        let slices: Vec<_> = series.slices().collect();
        assert_eq!(slices.len(), 2);
        assert_eq!((slices[0].sent, slices[0].ok, slices[0].ttft.n()), (1, 0, 1));
        assert_eq!((slices[1].ok, slices[1].failed, slices[1].tokens), (1, 1, 3));
        assert_eq!((slices[1].start_s, slices[1].width_s), (1.0, 1.0));
        assert!(slices[1].e2e.quantile(Quantile::P50).unwrap() >= S + S / 2);
        assert_eq!(slices[1].itl.n(), 1);
    }

    #[test]
    fn a_broken_stored_series_is_refused() {
        let text = serde_json::to_string(&of(&[(0, 1)])).unwrap();
        for (from, to) in [
            ("\"width_s\":1", "\"width_s\":3"),
            ("\"width_s\":1", "\"width_s\":17179869184"),
            ("\"sent\":[1]", "\"sent\":[]"),
            ("\"itl\":[[", "\"itl\":[[],["),
            ("\"ok\"", "\"fine\""),
        ] {
            let broken = text.replacen(from, to, 1);
            assert_ne!(broken, text);
            assert!(serde_json::from_str::<Series>(&broken).is_err(), "{broken}");
        }
    }
}
