//! A level in slices of equal length, each with histograms of its own: what a run of hours is looked at by.
//!
//! A request belongs to the slice in which it ended, with all that was measured of it: so a slice is complete as soon as its
//! time is over, every request is in exactly one, and the slices together are the level. There are at most
//! [`Slices::MAX`]; a level that goes on beyond them has neighbours joined, two by two, and goes on with slices of twice
//! the length. So those of shards and of hosts, which may have been joined at other times, add up.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::metrics::metric::Metric;
use crate::metrics::outcome::Class;
use crate::metrics::record::Record;
use crate::stats::{Histogram, Sparse, Totals};
use crate::time::Stamp;

/// The slices of a level.
#[derive(Clone, Debug)]
pub struct Slices {
    /// Where the first one begins: the first planned send.
    start: Stamp,
    /// Length of a slice as it was asked for, ns, above 0.
    asked_ns: u64,
    /// How often neighbours were joined.
    doublings: u32,
    done: Vec<Row>,
    /// The slice that is being filled, with buckets for all values.
    open: Option<Box<Open>>,
    /// What was put into `done` since somebody asked; `None` where nobody does.
    news: Option<Vec<Added>>,
}

/// What came to a slice.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    /// How often slices of the asked length had been joined two by two by then.
    pub doublings: u32,
    /// Place of the slice among those of that length.
    pub place: usize,
    /// What came.
    pub row: Row,
}

/// One slice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Row {
    /// Requests that ended well in it.
    pub ok: u64,
    /// Requests that failed in it.
    pub failed: u64,
    /// Requests that the user, or the end of the run, cancelled.
    pub cancelled: u64,
    /// Output tokens of those that ended well.
    pub tokens: u64,
    /// Their TTFT, ns.
    pub ttft: Sparse,
    /// Their TPOT, ns.
    pub tpot: Sparse,
    /// Their gaps, ns.
    pub itl: Sparse,
    /// Their E2E, ns.
    pub e2e: Sparse,
}

/// The metrics of a slice, in the order of [`Open::histograms`].
const PER_REQUEST: [Metric; 3] = [Metric::Ttft, Metric::Tpot, Metric::E2e];

#[derive(Clone, Debug)]
struct Open {
    place: usize,
    /// TTFT, TPOT, E2E and ITL.
    histograms: [Histogram; 4],
    counts: Row,
}

impl Slices {
    /// Most slices that a level has: the minutes of a day.
    pub const MAX: usize = 1440;

    /// No slices yet, of so long each, from `start` on. A length of nothing is a nanosecond.
    #[must_use]
    pub fn new(start: Stamp, length: Duration) -> Slices {
        let asked_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX).max(1);
        Slices { start, asked_ns, doublings: 0, done: Vec::new(), open: None, news: None }
    }

    /// Counts a request that has ended, with the buckets of its gaps and their totals.
    pub fn add(&mut self, record: &Record, gaps: &[u16], totals: &Totals) {
        let at = record.end.nanos_since(self.start);
        let place = self.place(at);
        match &self.open {
            None => self.open = Some(Box::new(Open::new(place))),
            Some(open) if open.place < place => {
                self.settle();
                self.open.iter_mut().for_each(|open| open.place = place);
            }
            Some(_) => {}
        }
        match &mut self.open {
            Some(open) if open.place == place => open.add(record, gaps, totals),
            // Another shard was slower to hand it over.
            _ => {
                let mut late = Open { place, histograms: Default::default(), counts: Row::default() };
                late.add(record, gaps, totals);
                self.put(place, late.take());
            }
        }
    }

    /// Keeps what comes to finished slices from now on until it is [taken](Slices::take_news).
    pub fn tell_news(&mut self) {
        self.news = Some(Vec::new());
    }

    /// What has come to finished slices since the last time.
    pub fn take_news(&mut self) -> Vec<Added> {
        self.news.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// What the slice that is being filled holds so far; `None` before the first request.
    #[must_use]
    pub fn open(&self) -> Option<Added> {
        let open = self.open.as_ref()?;
        let mut copy = open.as_ref().clone();
        Some(Added { doublings: self.doublings, place: open.place, row: copy.take() })
    }

    /// Adds what came to a slice elsewhere. Beyond the last possible slice it is put into that.
    pub fn add_news(&mut self, added: Added) {
        self.close();
        while self.doublings < added.doublings.min(63) {
            self.join();
        }
        let doublings = self.doublings.saturating_sub(added.doublings);
        let place = added.place.checked_shr(doublings).unwrap_or(0).min(Slices::MAX - 1);
        self.put(place, added.row);
    }

    /// Adds the slices of another part of the level, each counted from its own start.
    ///
    /// Lengths that were asked for must be equal; else nothing is added and it is `false`.
    #[must_use]
    pub fn merge(&mut self, other: &Slices) -> bool {
        if self.asked_ns != other.asked_ns {
            return false;
        }
        self.close();
        let mut other = other.clone();
        other.close();
        while self.doublings < other.doublings {
            self.join();
        }
        while other.doublings < self.doublings {
            other.join();
        }
        for (place, row) in other.done.iter().enumerate() {
            self.row(place).merge(row);
        }
        true
    }

    /// Takes from `told`, made of records, the slices of which it has more requests, where these were counted up to some moment
    /// only. Gaps between events, which records do not have, stay as they are.
    pub fn complete(&mut self, mut told: Slices) {
        self.close();
        told.close();
        while told.doublings < self.doublings {
            told.join();
        }
        while self.doublings < told.doublings {
            self.join();
        }
        for (place, row) in told.done.into_iter().enumerate() {
            let own = self.row(place);
            if row.ended() > own.ended() {
                *own = Row { itl: std::mem::take(&mut own.itl), ..row };
            }
        }
    }

    /// Puts everything `by` later, in whole slices: by the nearest number of them.
    pub fn delay(&mut self, by: Duration) {
        self.close();
        let ns = u64::try_from(by.as_nanos()).unwrap_or(u64::MAX);
        let places = loop {
            let places = ns.saturating_add(self.width_ns() / 2) / self.width_ns();
            if places.saturating_add(self.done.len() as u64) <= Slices::MAX as u64 || self.doublings >= 63 {
                break places.min(Slices::MAX as u64) as usize;
            }
            self.join();
        };
        if !self.done.is_empty() {
            self.done.splice(0..0, std::iter::repeat_with(Row::default).take(places));
        }
    }

    /// Moves the slices to another time line, on which the level begins at `start`.
    pub fn move_to(&mut self, start: Stamp) {
        self.start = start;
    }

    /// Ends the slice that is being filled: nothing comes any more.
    pub fn close(&mut self) {
        self.settle();
        self.open = None;
    }

    /// Puts what is in the open slice among the others.
    fn settle(&mut self) {
        if let Some(open) = &mut self.open {
            let (place, row) = (open.place, open.take());
            self.put(place, row);
        }
    }

    fn put(&mut self, place: usize, row: Row) {
        if row == Row::default() {
            return;
        }
        self.row(place).merge(&row);
        if let Some(news) = &mut self.news {
            news.push(Added { doublings: self.doublings, place, row });
        }
    }

    /// The slices in order, from the start on; some may be empty.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.done
    }

    /// Length of a slice, ns: a power of two times the one that was asked for.
    #[must_use]
    pub fn width_ns(&self) -> u64 {
        self.asked_ns.saturating_mul(1_u64.checked_shl(self.doublings).unwrap_or(u64::MAX))
    }

    /// Length of a slice that was asked for, ns.
    #[must_use]
    pub fn asked_ns(&self) -> u64 {
        self.asked_ns
    }

    fn place(&mut self, at: u64) -> usize {
        while at / self.width_ns() >= Slices::MAX as u64 {
            self.join();
        }
        (at / self.width_ns()) as usize
    }

    fn row(&mut self, place: usize) -> &mut Row {
        if place >= self.done.len() {
            self.done.resize_with(place + 1, Row::default);
        }
        &mut self.done[place]
    }

    /// Joins neighbours two by two.
    fn join(&mut self) {
        self.close();
        let mut rows = std::mem::take(&mut self.done).into_iter();
        while let Some(mut row) = rows.next() {
            if let Some(second) = rows.next() {
                row.merge(&second);
            }
            self.done.push(row);
        }
        self.doublings += 1;
    }
}

impl PartialEq for Slices {
    /// Equal in what is stored: the time line that they lie on is not, nor whether the last one is still open.
    fn eq(&self, other: &Slices) -> bool {
        let closed = |slices: &Slices| {
            let mut closed = slices.clone();
            closed.close();
            (closed.asked_ns, closed.doublings, closed.done)
        };
        closed(self) == closed(other)
    }
}

impl Row {
    /// Adds everything that `other` holds.
    pub fn merge(&mut self, other: &Row) {
        self.ok = self.ok.saturating_add(other.ok);
        self.failed = self.failed.saturating_add(other.failed);
        self.cancelled = self.cancelled.saturating_add(other.cancelled);
        self.tokens = self.tokens.saturating_add(other.tokens);
        self.ttft.merge(&other.ttft);
        self.tpot.merge(&other.tpot);
        self.itl.merge(&other.itl);
        self.e2e.merge(&other.e2e);
    }

    /// Requests that ended in it, but for the cancelled.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.ok.saturating_add(self.failed)
    }
}

impl Open {
    fn new(place: usize) -> Open {
        Open { place, histograms: Default::default(), counts: Row::default() }
    }

    fn add(&mut self, record: &Record, gaps: &[u16], totals: &Totals) {
        match record.outcome.class {
            Class::Cancelled => {
                self.counts.cancelled += 1;
                return;
            }
            Class::Ok => self.counts.ok += 1,
            _ => {
                self.counts.failed += 1;
                return;
            }
        }
        self.counts.tokens += u64::from(record.output_tokens.unwrap_or(record.events));
        if !record.is_in_distributions() {
            return;
        }
        for (metric, histogram) in PER_REQUEST.into_iter().zip(&mut self.histograms) {
            if let Some(value) = metric.of(record) {
                histogram.record(metric.to_ticks(value));
            }
        }
        let itl = &mut self.histograms[PER_REQUEST.len()];
        gaps.iter().for_each(|code| itl.record_bucket(*code, 1));
        if !gaps.is_empty() {
            itl.add_totals(totals, 0);
        }
    }

    /// Its row, which begins anew; the memory stays.
    fn take(&mut self) -> Row {
        let [ttft, tpot, e2e, itl] = &mut self.histograms;
        let of = |histogram: &mut Histogram| {
            let sparse = Sparse::of(histogram);
            histogram.clear();
            sparse
        };
        Row { ttft: of(ttft), tpot: of(tpot), itl: of(itl), e2e: of(e2e), ..std::mem::take(&mut self.counts) }
    }
}

/// The form in files.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    asked_ns: u64,
    doublings: u32,
    rows: Vec<Row>,
}

impl Serialize for Slices {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut closed = self.clone();
        closed.close();
        Stored { asked_ns: closed.asked_ns, doublings: closed.doublings, rows: closed.done }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Slices {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Slices, D::Error> {
        use serde::de::Error as _;
        let Stored { asked_ns, doublings, rows } = Stored::deserialize(from)?;
        if asked_ns == 0 || doublings > 63 || rows.len() > Slices::MAX {
            return Err(D::Error::custom("a level has at most 1440 slices, each longer than nothing"));
        }
        Ok(Slices { start: Stamp::ZERO, asked_ns, doublings, done: rows, open: None, news: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Outcome;
    use crate::metrics::outcome::Kind;
    use crate::stats::Quantile;

    const MS: u64 = 1_000_000;

    /// A request that ends at `end` ms after a TTFT of 10 ms and one gap of 20 ms.
    fn request(end: u64) -> (Record, Vec<u16>, Totals) {
        let start = Stamp::from_millis(end.saturating_sub(30));
        let mut record = Record::planned(end, start);
        record.outcome = Outcome::ok(200);
        record.first = Some(start + Duration::from_millis(10));
        record.last = Some(start + Duration::from_millis(30));
        record.end = Stamp::from_millis(end);
        (record.events, record.output_tokens) = (2, Some(2));
        let mut totals = Totals::new();
        totals.record(20 * MS);
        (record, vec![Histogram::bucket_of(20 * MS)], totals)
    }

    fn of(ends: impl IntoIterator<Item = u64>) -> Slices {
        let mut slices = Slices::new(Stamp::ZERO, Duration::from_secs(1));
        for end in ends {
            let (record, gaps, totals) = request(end);
            slices.add(&record, &gaps, &totals);
        }
        slices.close();
        slices
    }

    #[test]
    fn a_request_is_in_the_slice_in_which_it_ended() {
        let slices = of([100, 999, 1000, 1001, 3500, 500]);
        let ok: Vec<u64> = slices.rows().iter().map(|row| row.ok).collect();
        assert_eq!(ok, [3, 2, 0, 1]);
        let first = &slices.rows()[0];
        assert_eq!((first.ttft.mean(), first.itl.n(), first.tokens), (Some(1e7), 3, 6));
        assert_eq!(first.e2e.quantile(Quantile::P50).unwrap() / MS, 30);
        assert_eq!((first.tpot.mean(), first.itl.mean()), (Some(2e7), Some(2e7)));
    }

    #[test]
    fn failures_have_no_latency_and_cancelled_requests_are_no_failures() {
        let mut slices = Slices::new(Stamp::ZERO, Duration::from_secs(1));
        let (mut record, gaps, totals) = request(100);
        record.outcome = Outcome::new(Class::Http, Kind::None, 500);
        slices.add(&record, &gaps, &totals);
        record.outcome = Outcome::new(Class::Cancelled, Kind::None, 0);
        slices.add(&record, &gaps, &totals);
        slices.close();
        let row = &slices.rows()[0];
        assert_eq!((row.ok, row.failed, row.cancelled, row.ended()), (0, 1, 1, 1));
        assert_eq!((row.ttft.n(), row.itl.n()), (0, 0));
    }

    #[test]
    fn what_was_counted_in_part_is_completed_from_records() {
        let mut counted = of([100, 999, 1000, 1001]);
        let mut told = Slices::new(Stamp::ZERO, Duration::from_secs(1));
        // Of the first slice a record was lost; the second goes on, and there is a third.
        for end in [100, 1000, 1001, 1500, 1900, 2100] {
            told.add(&request(end).0, &[], &Totals::default());
        }
        counted.complete(told);
        let rows: Vec<_> =
            counted.rows().iter().map(|row| (row.ok, row.tokens, row.e2e.n(), row.itl.n())).collect();
        assert_eq!(rows, [(2, 4, 2, 2), (4, 8, 4, 2), (1, 2, 1, 0)]);
    }

    #[test]
    fn beyond_the_last_slice_neighbours_are_joined() {
        let ends: Vec<u64> = (0..4000).map(|s| s * 1000 + 500).collect();
        let slices = of(ends.iter().copied());
        assert_eq!((slices.width_ns(), slices.asked_ns()), (4_000_000_000, 1_000_000_000));
        assert_eq!(slices.rows().len(), 1000);
        assert!(slices.rows().iter().all(|row| row.ok == 4 && row.itl.n() == 4));
    }

    #[test]
    fn parts_add_up_to_the_whole_in_any_order() {
        // One part ends early, before slices are joined.
        let (early, late): (Vec<u64>, Vec<u64>) = (0..3000).map(|i| i * 977).partition(|end| *end < 900_000);
        let whole = of(early.iter().chain(&late).copied());
        let (mut a, mut b) = (of(early.iter().copied()), of(late.iter().copied()));
        let a_before = a.clone();
        assert!(a.merge(&b) && b.merge(&a_before));
        assert_eq!(a, whole);
        assert_eq!(b, whole);
        assert!(!a.merge(&Slices::new(Stamp::ZERO, Duration::from_secs(2))));
        assert_eq!(a, whole);
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<Slices>(&text).unwrap(), whole);
    }

    #[test]
    fn news_of_slices_make_the_same_slices_elsewhere() {
        // Across joins, and with one that comes late.
        let mut ends: Vec<u64> = (0..3500).map(|s| s * 1000 + 500).collect();
        ends.push(200);
        let (mut slices, mut copy) = (of([]), of([]));
        slices.tell_news();
        for (place, end) in ends.iter().enumerate() {
            let (record, gaps, totals) = request(*end);
            slices.add(&record, &gaps, &totals);
            if place % 7 == 0 {
                slices.take_news().into_iter().for_each(|added| copy.add_news(added));
            }
        }
        slices.take_news().into_iter().for_each(|added| copy.add_news(added));
        slices.open().into_iter().for_each(|added| copy.add_news(added));
        assert_eq!(copy, slices);
    }

    #[test]
    fn a_later_part_is_put_later_by_whole_slices() {
        let mut slices = of([500, 1500]);
        slices.delay(Duration::from_millis(2400));
        let ok: Vec<u64> = slices.rows().iter().map(|row| row.ok).collect();
        assert_eq!(ok, [0, 0, 1, 1]);
        slices.delay(Duration::from_secs(5000));
        assert!(slices.rows().len() <= Slices::MAX);
        assert_eq!(slices.rows().iter().map(|row| row.ok).sum::<u64>(), 2);
    }

    #[test]
    fn nonsense_in_a_file_is_refused() {
        for wrong in [
            r#"{"asked_ns":0,"doublings":0,"rows":[]}"#,
            r#"{"asked_ns":1,"doublings":64,"rows":[]}"#,
            r#"{"asked_ns":1,"doublings":0,"rows":[{"okay":1}]}"#,
        ] {
            assert!(serde_json::from_str::<Slices>(wrong).is_err(), "{wrong}");
        }
    }
}
