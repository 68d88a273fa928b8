//! What a shard counts while a level runs: what records cannot carry, and a live view.
//!
//! One tally per shard and level, of measured requests only; tallies add up to that of the level. Gaps exist here
//! only. Distributions of per-request metrics are here as well, so that a run without records has them; with records
//! the exact ones are computed from those.

use std::array;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::metrics::counts::{Counts, Tokens};
use crate::metrics::metric::Metric;
use crate::metrics::outcome::Class;
use crate::metrics::record::{Flags, Record};
use crate::stats::{Histogram, Series, Sparse};
use crate::time::Stamp;

pub use crate::metrics::gaps::Gaps;
use crate::metrics::joined::Joined;

mod stored;

/// Counts and histograms of the measured requests of one level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "stored::Stored", from = "stored::Stored")]
pub struct Tally {
    /// Origin of the series.
    start: Stamp,
    series: Series,
    whole: Population,
    window: Population,
    /// End of the last request that was not cancelled.
    last_end: Option<Stamp>,
    /// One for each metric, by its place.
    histograms: [Histogram; Metric::COUNT],
    /// The same of requests planned before the window: wanted only where the level is cut short and is then reported
    /// whole.
    early: [Histogram; Metric::COUNT],
    /// What bounds the gaps of [`Metric::Itl`] and [`Metric::ItlKernel`] whose events shared a read.
    joined: [Joined; 2],
    early_joined: [Joined; 2],
}

/// Counts of a set of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Population {
    /// How they ended.
    pub counts: Counts,
    /// Tokens of those that ended well.
    pub tokens: Tokens,
}

impl Tally {
    /// A tally of a level whose first planned send is at `start`, ready to be filled.
    #[must_use]
    pub fn new(start: Stamp) -> Tally {
        let mut tally = Tally { start, ..Tally::default() };
        tally.series.prepare();
        tally
    }

    /// Moves the origin of an empty tally to `start`: its memory is made ready before the start is known.
    pub fn begin(&mut self, start: Stamp) {
        self.start = start;
    }

    /// A request was sent at `at`.
    pub fn on_sent(&mut self, at: Stamp) {
        self.series.add_sent(at.nanos_since(self.start));
    }

    /// A content event came at `at` with `tokens` tokens (1 where the event does not tell).
    #[inline]
    pub fn on_content(&mut self, at: Stamp, tokens: u32) {
        self.series.add_tokens(at.nanos_since(self.start), tokens);
    }

    /// A request ended, with its gaps by user and by kernel stamps.
    ///
    /// All requests count in the series and by outcome. Into the distributions go those that ended well, were
    /// planned at or after `window_start` and not read slowly; those planned before it are kept apart, see [`Tally::include_early`].
    pub fn on_done(&mut self, record: &Record, user: &Gaps, kernel: &Gaps, window_start: Stamp) {
        self.add_to_series(record, user);
        if record.outcome.class != Class::Cancelled {
            self.last_end = self.last_end.max(Some(record.end));
        }
        self.whole.add(record);
        let is_early = record.plan < window_start;
        if !is_early {
            self.window.add(record);
        }
        if !record.is_in_distributions() {
            return;
        }
        let (histograms, joined) = if is_early {
            (&mut self.early, &mut self.early_joined)
        } else {
            (&mut self.histograms, &mut self.joined)
        };
        Metric::each_of(record, |metric, value| {
            histograms[metric as usize].record(metric.to_ticks(value));
        });
        user.pool_into(&mut histograms[Metric::Itl as usize]);
        user.pool_tokens_into(&mut histograms[Metric::ItlToken as usize]);
        kernel.pool_into(&mut histograms[Metric::ItlKernel as usize]);
        joined[0].add(user);
        joined[1].add(kernel);
    }

    /// Adds gaps that are known as buckets alone.
    pub fn add_gaps(&mut self, gaps: &Sparse) {
        gaps.pool_into(&mut self.histograms[Metric::Itl as usize]);
    }

    /// Moves the tally to another time line, on which its level begins at `start`.
    pub fn move_to(&mut self, start: Stamp) {
        let after = |at: Stamp| start + Duration::from_nanos(at.nanos_since(self.start));
        self.last_end = self.last_end.map(after);
        self.start = start;
    }

    /// The same where the level began `by` earlier than this part of it did: its series is put so much later, in whole bins.
    pub fn delay(&mut self, by: Duration) {
        self.series.delay(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX));
        self.last_end = self.last_end.map(|at| at + by);
    }

    /// Drops what rests on kernel stamps, because they were found to be worth nothing: all metrics of content events if
    /// these were `judged` by them, else only those that are named after them.
    pub fn forget_kernel_stamps(&mut self, judged: bool) {
        for histograms in [&mut self.histograms, &mut self.early] {
            let by_kernel = |metric: &Metric| metric.is_by_kernel() || (judged && metric.is_stamped());
            for metric in Metric::ALL.into_iter().filter(by_kernel) {
                histograms[metric as usize] = Histogram::new();
            }
        }
        for joined in [&mut self.joined, &mut self.early_joined] {
            joined[1] = Joined::default();
            if judged {
                joined[0] = Joined::default();
            }
        }
    }

    /// Lower and upper bound of every quantile of `metric`; `None` if it has no gaps between events of one read, and
    /// for all metrics but [`Metric::Itl`] and [`Metric::ItlKernel`].
    #[must_use]
    pub fn bounds(&self, metric: Metric) -> Option<(Histogram, Histogram)> {
        self.joined_of(metric)?.bounds(self.histogram(metric))
    }

    /// Number of gaps of `metric` whose events shared a read.
    #[must_use]
    pub fn joined_gaps(&self, metric: Metric) -> u64 {
        self.joined_of(metric).map_or(0, Joined::gaps)
    }

    fn joined_of(&self, metric: Metric) -> Option<&Joined> {
        match metric {
            Metric::Itl => Some(&self.joined[0]),
            Metric::ItlKernel => Some(&self.joined[1]),
            _ => None,
        }
    }

    /// Counts the requests planned before the window among those in it: the level was cut short and has no window.
    pub fn include_early(&mut self) {
        for (ours, early) in self.histograms.iter_mut().zip(&mut self.early) {
            ours.merge(&std::mem::take(early));
        }
        for (ours, early) in self.joined.iter_mut().zip(&mut self.early_joined) {
            ours.merge(&std::mem::take(early));
        }
        self.window = self.whole.clone();
    }

    /// Adds everything that `other` holds; in any order the sum is the same.
    ///
    /// Times in the series of `other` count from its own start.
    pub fn merge(&mut self, other: &Tally) {
        self.series.merge(&other.series);
        self.whole.merge(&other.whole);
        self.window.merge(&other.window);
        self.last_end = self.last_end.max(other.last_end);
        for (ours, theirs) in self.histograms.iter_mut().zip(&other.histograms) {
            ours.merge(theirs);
        }
        for (ours, theirs) in self.early.iter_mut().zip(&other.early) {
            ours.merge(theirs);
        }
        for (ours, theirs) in self.joined.iter_mut().zip(&other.joined) {
            ours.merge(theirs);
        }
        for (ours, theirs) in self.early_joined.iter_mut().zip(&other.early_joined) {
            ours.merge(theirs);
        }
    }

    /// The values of `metric`, in ticks ([`Metric::to_ticks`]), of requests in the window that ended well.
    #[must_use]
    pub fn histogram(&self, metric: Metric) -> &Histogram {
        &self.histograms[metric as usize]
    }

    /// Counts over time.
    #[must_use]
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Origin of the series: the first planned send.
    #[must_use]
    pub fn start(&self) -> Stamp {
        self.start
    }

    /// Every request that ended.
    #[must_use]
    pub fn whole(&self) -> &Population {
        &self.whole
    }

    /// The requests planned at or after the start of the window.
    #[must_use]
    pub fn window(&self) -> &Population {
        &self.window
    }

    /// End of the last request that was not cancelled; `None` if there was none.
    #[must_use]
    pub fn last_end(&self) -> Option<Stamp> {
        self.last_end
    }

    fn add_to_series(&mut self, record: &Record, gaps: &Gaps) {
        let start = self.start;
        let place = |at: Stamp| at.nanos_since(start);
        self.series.add_life(place(record.start), place(record.end));
        match record.outcome.class {
            Class::Ok => {}
            Class::Cancelled => return,
            _ => return self.series.add_failed(place(record.end)),
        }
        let last = place(record.last.unwrap_or(record.end));
        if record.flags.contains(Flags::SLOW_READER) {
            return self.series.add_ok(last, None);
        }
        self.series.add_ok(last, record.e2e_ns());
        let Some((first, ttft)) = record.first.map(place).zip(record.ttft_ns()) else { return };
        self.series.add_ttft(first, ttft);
        // Gaps of several choices run side by side and have no order in time: all stand at the end.
        let in_turn = !record.flags.contains(Flags::SEVERAL_CHOICES);
        let mut at = first;
        for code in gaps.codes() {
            let ns = Histogram::bucket_highest(code);
            // Each gap ends where the next begins; the buckets' rounding up is cut off at the true end.
            at = if in_turn { at.saturating_add(ns).min(last) } else { last };
            self.series.add_gap(at, ns);
        }
    }
}

impl Default for Tally {
    /// A tally from the epoch on, without any buckets allocated.
    fn default() -> Tally {
        Tally {
            start: Stamp::ZERO,
            series: Series::new(),
            whole: Population::default(),
            window: Population::default(),
            last_end: None,
            histograms: array::from_fn(|_| Histogram::new()),
            early: array::from_fn(|_| Histogram::new()),
            joined: Default::default(),
            early_joined: Default::default(),
        }
    }
}

impl Population {
    fn add(&mut self, record: &Record) {
        self.counts.add(record);
        if record.outcome.is_ok() {
            self.tokens.add(record);
        }
    }

    fn merge(&mut self, other: &Population) {
        self.counts.merge(&other.counts);
        self.tokens.merge(&other.tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::outcome::{Kind, Outcome};
    use crate::rng;
    use crate::stats::Quantile;

    const MS: u64 = 1_000_000;

    /// A request planned and started at `at` ms: TTFT 100 ms, then gaps of 20 ms, one token each.
    fn request(at: u64, gaps: u64) -> (Record, Gaps) {
        let mut record = Record::planned(at, Stamp::from_millis(at));
        record.outcome = Outcome::ok(200);
        record.byte = Some(Stamp::from_millis(at + 90));
        record.first = Some(Stamp::from_millis(at + 100));
        record.last = Some(Stamp::from_millis(at + 100 + 20 * gaps));
        record.end = Stamp::from_millis(at + 101 + 20 * gaps);
        (record.events, record.output_tokens) = (gaps as u32 + 1, Some(gaps as u32 + 1));
        let mut list = Gaps::default();
        (0..gaps).for_each(|_| list.record_tokens(20 * MS, 1));
        record.stall_ns = list.stall().into();
        (record, list)
    }

    fn done(tally: &mut Tally, (record, gaps): &(Record, Gaps), window_ms: u64) {
        tally.on_sent(record.start);
        tally.on_content(record.end, 1);
        tally.on_done(record, gaps, &Gaps::default(), Stamp::from_millis(window_ms));
    }

    #[test]
    fn distributions_hold_requests_in_the_window_that_ended_well() {
        let mut tally = Tally::new(Stamp::from_millis(1000));
        let early = request(1000, 3);
        let inside = request(2000, 5);
        let mut failed = request(2500, 7);
        failed.0.outcome = Outcome::new(Class::Reset, Kind::Truncated, 200);
        let mut cancelled = request(2600, 2);
        cancelled.0.outcome = Outcome::new(Class::Cancelled, Kind::None, 200);
        cancelled.0.end = Stamp::from_millis(9000);
        [&early, &inside, &failed, &cancelled]
            .into_iter()
            .for_each(|request| done(&mut tally, request, 2000));
        assert_eq!(tally.histogram(Metric::Ttft).n(), 1);
        assert_eq!(tally.histogram(Metric::E2e).totals().sum(), u128::from(200 * MS));
        assert_eq!(tally.histogram(Metric::Itl).n(), 5);
        assert_eq!(tally.histogram(Metric::ItlToken).n(), 5);
        assert_eq!(tally.histogram(Metric::Stall).totals().max(), Some(20 * MS));
        assert_eq!(tally.histogram(Metric::ItlKernel).quantile(Quantile::P50), None);
        let counts = |population: &Population| {
            let counts = &population.counts;
            (counts.planned, counts.ok, counts.failed, counts.cancelled, population.tokens.output)
        };
        assert_eq!(counts(tally.window()), (3, 1, 1, 1, 6));
        assert_eq!(counts(tally.whole()), (4, 2, 1, 1, 10));
        assert_eq!(tally.last_end(), Some(failed.0.end));
        tally.include_early();
        assert_eq!((tally.histogram(Metric::Ttft).n(), tally.histogram(Metric::Itl).n()), (2, 8));
        assert_eq!(tally.window(), tally.whole());
    }

    #[test]
    fn the_series_has_each_event_in_its_own_second() {
        let mut tally = Tally::new(Stamp::from_millis(1000));
        let (mut record, mut gaps) = request(1800, 0);
        for ms in [100, 1500, 700] {
            gaps.record(ms * MS);
        }
        record.last = Some(Stamp::from_millis(1900 + 2300));
        record.end = Stamp::from_millis(4210);
        tally.on_sent(record.start);
        tally.on_content(record.last.unwrap(), 3);
        tally.on_done(&record, &gaps, &Gaps::default(), Stamp::ZERO);
        let column = |f: fn(crate::stats::series::Slice<'_>) -> u64| {
            tally.series().slices().map(f).collect::<Vec<_>>()
        };
        assert_eq!(column(|s| s.sent), [1, 0, 0, 0]);
        assert_eq!(column(|s| s.ttft.n()), [1, 0, 0, 0]);
        assert_eq!(column(|s| s.itl.n()), [0, 1, 1, 1], "gaps end at 2.0, 3.5 and 4.2 s");
        assert_eq!(column(|s| s.ok), [0, 0, 0, 1]);
        assert_eq!(column(|s| s.e2e.n()), [0, 0, 0, 1]);
        assert_eq!(column(|s| s.tokens), [0, 0, 0, 3]);
        assert_eq!(column(|s| (s.in_flight * 1000.0).round() as u64), [200, 1000, 1000, 210]);
    }

    #[test]
    fn merging_tallies_is_one_tally() {
        let start = Stamp::from_millis(500);
        let mut stream = rng::stream(5, rng::Purpose::Choice, 0);
        let (mut one, mut shards) = (Tally::new(start), [(); 3].map(|()| Tally::new(start)));
        for _ in 0..400 {
            let mut request = request(
                500 + u64::from(rng::below(&mut stream, 4_000_000)),
                u64::from(rng::below(&mut stream, 40)),
            );
            match rng::below(&mut stream, 8) {
                0 => request.0.outcome = Outcome::new(Class::Http, Kind::HttpStatus, 429),
                1 => request.0.outcome = Outcome::new(Class::Cancelled, Kind::None, 0),
                _ => {}
            }
            done(&mut one, &request, 60_000);
            done(&mut shards[rng::below(&mut stream, 3) as usize], &request, 60_000);
        }
        let mut forward = Tally { start, ..Tally::default() };
        let mut backward = forward.clone();
        shards.iter().for_each(|shard| forward.merge(shard));
        shards.iter().rev().for_each(|shard| backward.merge(shard));
        assert_eq!(forward, one);
        assert_eq!(backward, one);
        assert_ne!(shards[0], one);
        assert!(one.series().width_ns() > 1_000_000_000, "the bins were folded");
    }
}
