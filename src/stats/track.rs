//! A quantity that somebody else counts, as it was read now and then: gauges and counters over time, in bounded memory.
//!
//! A [`Track`] is cut into segments, one for each stretch that is looked at later (a level). Each keeps so many bins at
//! most; when they are full, neighbours are joined, so that a segment of a day costs what one of four minutes does and
//! only its resolution is coarser. The first and last reading of each bin are kept as they are: what a counter gained
//! is a difference of two true readings, and comes with the time between them.

use crate::time::Stamp;

/// Bins of a segment at most: four minutes at a reading per second.
pub const BINS_MAX: usize = 240;
/// Segments at most. A run of more levels has the first and the last of them joined, which nothing then lies between.
pub const SEGMENTS_MAX: usize = 4096;

/// Nothing that is counted is larger; sums of such readings are numbers still.
pub const VALUE_MAX: f64 = 1e30;

/// What lies at most between the reading for a level and its first send: shards write their requests ahead.
const LEAD_NS: u64 = 5_000_000_000;
/// What lies between a level's edge and the reading that was asked for there: shards get ready, an exporter answers.
const SLACK_NS: u64 = 250_000_000;

/// A gauge or a counter over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    segments: Vec<Segment>,
    counter: Option<Counter>,
}

/// Some readings in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bin {
    /// When the first was taken.
    pub first_at: Stamp,
    /// What it was.
    pub first: f64,
    /// When the last was taken.
    pub last_at: Stamp,
    /// What it was.
    pub last: f64,
    /// How many there are, at least 1.
    pub n: u64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// All of them together.
    pub sum: f64,
}

/// What a gauge was over a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Readings in that time, at least 1.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// What a counter gained between two readings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// By how much it grew, resets aside.
    pub amount: f64,
    /// The earlier reading.
    pub from: Stamp,
    /// The later one.
    pub to: Stamp,
    /// How often it began anew in between.
    pub resets: u64,
}

#[derive(Clone, Debug, PartialEq)]
struct Segment {
    bins: Vec<Bin>,
    /// Readings that make a bin.
    together: u64,
}

/// What turns readings of a counter that may begin anew into a sum that only grows.
#[derive(Clone, Debug, Default, PartialEq)]
struct Counter {
    last: Option<f64>,
    sum: f64,
    resets: Vec<Stamp>,
}

impl Track {
    /// That of a counter: readings may only grow, and one below the last is a new beginning.
    #[must_use]
    pub fn counter() -> Track {
        Track { counter: Some(Counter::default()), ..Track::default() }
    }

    /// Whether it is a counter.
    #[must_use]
    pub fn is_counter(&self) -> bool {
        self.counter.is_some()
    }

    /// Whether nothing was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.segments.iter().all(|segment| segment.bins.is_empty())
    }

    /// The last reading; a counter's without what it had before the first.
    #[must_use]
    pub fn last(&self) -> Option<f64> {
        self.bins().next_back().map(|bin| bin.last)
    }

    /// Begins a segment: what is read from here on is kept apart from what was.
    pub fn cut(&mut self) {
        if self.segments.last().is_some_and(|last| !last.bins.is_empty()) {
            if self.segments.len() >= SEGMENTS_MAX {
                return;
            }
            self.segments.push(Segment::default());
        }
    }

    /// Adds a reading. One that is no number, or beyond [`VALUE_MAX`], lies before the last, or is a counter's below 0, is
    /// passed over.
    pub fn add(&mut self, at: Stamp, value: f64) {
        // NaN is within nothing.
        if !(-VALUE_MAX..=VALUE_MAX).contains(&value)
            || self.bins().next_back().is_some_and(|last| at < last.last_at)
        {
            return;
        }
        let value = match &mut self.counter {
            None => value,
            Some(_) if value < 0.0 => return,
            Some(counter) => counter.grown(at, value),
        };
        if self.segments.is_empty() {
            self.segments.push(Segment::default());
        }
        if let Some(segment) = self.segments.last_mut() {
            segment.add(at, value);
        }
    }

    /// All bins in order.
    pub fn bins(&self) -> impl DoubleEndedIterator<Item = &Bin> {
        self.segments.iter().flat_map(|segment| &segment.bins)
    }

    /// What it was in `[from, to]`, of the bins that lie in it for the most part; `None` without a reading.
    #[must_use]
    pub fn spread(&self, from: Stamp, to: Stamp) -> Option<Spread> {
        let middle = |bin: &Bin| bin.first_at.as_nanos() / 2 + bin.last_at.as_nanos() / 2;
        let within = |bin: &&Bin| (from.as_nanos()..=to.as_nanos()).contains(&middle(bin));
        let all = self.bins().filter(within).copied().reduce(|a, b| a.joined(&b))?;
        Some(Spread { n: all.n, mean: all.sum / all.n as f64, min: all.min, max: all.max })
    }

    /// What a counter gained from `from` to `to`, between the readings around them; `None` where no two readings tell, or for
    /// a gauge.
    ///
    /// That is the last reading before `from`, if it is at most 5 s older, and the first after `to`, within a tenth of the
    /// time and 250 ms: a reading within would have missed a part. Where there is none the nearest one in that distance is
    /// taken, else the outermost one inside: the gain is then that of a shorter time, which it says.
    #[must_use]
    pub fn gain(&self, from: Stamp, to: Stamp) -> Option<Gain> {
        let counter = self.counter.as_ref()?;
        let slack = to.nanos_since(from) / 10 + SLACK_NS;
        let readings = || self.bins().flat_map(|bin| [(bin.first_at, bin.first), (bin.last_at, bin.last)]);
        let nearest = |edge: Stamp| {
            let off = |at: Stamp| at.nanos_since(edge).max(edge.nanos_since(at));
            readings().filter(|(at, _)| off(*at) <= slack).min_by_key(|(at, _)| off(*at))
        };
        let before =
            readings().rfind(|(at, _)| *at <= from).filter(|(at, _)| from.nanos_since(*at) <= LEAD_NS);
        let after = readings().find(|(at, _)| *at >= to).filter(|(at, _)| at.nanos_since(to) <= slack);
        let inside = || readings().find(|(at, _)| *at >= from);
        let (start, before) = before.or_else(|| nearest(from)).or_else(inside)?;
        let inside = || readings().rfind(|(at, _)| *at <= to);
        let (end, after) = after.or_else(|| nearest(to)).or_else(inside)?;
        let resets = counter.resets.iter().filter(|at| **at > start && **at <= end).count() as u64;
        (start < end).then_some(Gain { amount: after - before, from: start, to: end, resets })
    }
}

impl Gain {
    /// The time between the two readings, s, above 0.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.to.nanos_since(self.from) as f64 / 1e9
    }
}

impl Bin {
    fn of(at: Stamp, value: f64) -> Bin {
        Bin { first_at: at, first: value, last_at: at, last: value, n: 1, min: value, max: value, sum: value }
    }

    fn joined(&self, later: &Bin) -> Bin {
        Bin {
            last_at: later.last_at,
            last: later.last,
            n: self.n + later.n,
            min: self.min.min(later.min),
            max: self.max.max(later.max),
            sum: self.sum + later.sum,
            ..*self
        }
    }
}

impl Default for Segment {
    fn default() -> Segment {
        Segment { bins: Vec::new(), together: 1 }
    }
}

impl Segment {
    fn add(&mut self, at: Stamp, value: f64) {
        let bin = Bin::of(at, value);
        let is_full = self.bins.len() >= BINS_MAX;
        match self.bins.last_mut() {
            Some(last) if last.n < self.together => *last = last.joined(&bin),
            _ if !is_full => self.bins.push(bin),
            _ => {
                let joined = |pair: &[Bin]| match pair {
                    [a, b] => a.joined(b),
                    rest => rest[0],
                };
                self.bins = self.bins.chunks(2).map(joined).collect();
                self.together *= 2;
                self.bins.push(bin);
            }
        }
    }
}

impl Counter {
    fn grown(&mut self, at: Stamp, value: f64) -> f64 {
        match self.last {
            Some(last) if value >= last => self.sum += value - last,
            Some(_) => {
                // It began at 0 again; what it had gained before that and since the last reading, nobody knows.
                self.sum += value;
                if self.resets.len() < SEGMENTS_MAX {
                    self.resets.push(at);
                }
            }
            None => {}
        }
        self.last = Some(value);
        self.sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: f64) -> Stamp {
        Stamp::from_nanos((s * 1e9) as u64)
    }

    #[test]
    fn a_gauge_is_the_mean_and_the_extremes_of_what_was_read_in_the_time() {
        let mut track = Track::default();
        for (s, value) in
            [(0.0, 100.0), (1.0, 2.0), (2.0, 4.0), (3.0, 9.0), (4.0, f64::NAN), (4.1, -1e300), (5.0, 100.0)]
        {
            track.add(at(s), value);
        }
        let spread = track.spread(at(0.5), at(4.5)).unwrap();
        assert_eq!(spread, Spread { n: 3, mean: 5.0, min: 2.0, max: 9.0 });
        assert_eq!(track.spread(at(5.5), at(9.0)), None);
        assert_eq!(track.gain(at(0.0), at(5.0)), None, "a gauge gains nothing");
    }

    #[test]
    fn a_counter_gains_what_lies_between_the_readings_at_the_edges() {
        let mut track = Track::counter();
        for (s, value) in [(0.0, 1_000.0), (0.98, 1_000.0), (2.0, 1_060.0), (3.01, 1_100.0), (4.0, 1_900.0)] {
            track.add(at(s), value);
        }
        let gain = track.gain(at(1.0), at(3.0)).unwrap();
        assert_eq!((gain.amount, gain.from, gain.to, gain.resets), (100.0, at(0.98), at(3.01), 0));
        assert!((gain.seconds() - 2.03).abs() < 1e-9);
    }

    #[test]
    fn without_a_reading_at_an_edge_the_time_is_shorter_and_says_so() {
        let mut track = Track::counter();
        for (s, value) in [(0.0, 0.0), (20.0, 5.0), (30.0, 7.0), (90.0, 99.0)] {
            track.add(at(s), value);
        }
        let gain = track.gain(at(10.0), at(40.0)).unwrap();
        assert_eq!((gain.amount, gain.seconds()), (2.0, 10.0));
        assert_eq!(track.gain(at(40.0), at(80.0)), None, "nothing was read meanwhile");
    }

    #[test]
    fn readings_around_the_time_win_over_nearer_ones_within() {
        let mut track = Track::counter();
        track.add(at(8.0), 0.0);
        track.cut();
        for (s, value) in [(8.5, 10.0), (10.1, 13.0), (12.0, 30.0)] {
            track.add(at(s), value);
        }
        // The one 0.1 s behind the edge is nearer, and has missed something.
        assert_eq!(track.gain(at(10.0), at(12.0)).unwrap().amount, 20.0);
        assert_eq!(track.gain(at(10.2), at(11.9)).unwrap().amount, 17.0);
        assert_eq!(track.gain(at(14.0), at(20.0)), None);
    }

    #[test]
    fn a_counter_that_begins_anew_loses_nothing_that_is_known() {
        let mut track = Track::counter();
        for (s, value) in [(0.0, 50.0), (1.0, 70.0), (2.0, 5.0), (3.0, 15.0), (4.0, -3.0)] {
            track.add(at(s), value);
        }
        let gain = track.gain(at(0.0), at(3.0)).unwrap();
        assert_eq!((gain.amount, gain.resets), (20.0 + 5.0 + 10.0, 1));
        assert_eq!(track.gain(at(2.0), at(3.0)).unwrap().resets, 0);
    }

    #[test]
    fn a_day_costs_no_more_than_four_minutes_and_its_ends_stay_exact() {
        let mut track = Track::counter();
        for s in 0..86_400_u32 {
            track.add(at(f64::from(s)), f64::from(s) * 3.0);
        }
        assert!(track.bins().count() <= BINS_MAX);
        assert_eq!(track.bins().map(|bin| bin.n).sum::<u64>(), 86_400);
        let gain = track.gain(at(0.0), at(86_399.0)).unwrap();
        assert_eq!((gain.amount, gain.seconds()), (86_399.0 * 3.0, 86_399.0));
        let spread = track.spread(at(0.0), at(86_399.0)).unwrap();
        assert_eq!((spread.n, spread.max), (86_400, 86_399.0 * 3.0));
    }

    #[test]
    fn segments_are_decimated_apart() {
        let mut track = Track::default();
        track.add(at(0.0), 1.0);
        track.cut();
        track.cut();
        for s in 1..1_000_u32 {
            track.add(at(f64::from(s)), 2.0);
        }
        track.cut();
        track.add(at(1_000.0), 3.0);
        let counts: Vec<u64> = track.bins().map(|bin| bin.n).collect();
        assert_eq!((counts[0], counts[counts.len() - 1]), (1, 1));
        assert!(counts.len() <= BINS_MAX + 2);
        // A reading from before the last one would turn time around.
        track.add(at(3.0), 9.0);
        assert_eq!(track.last(), Some(3.0));
    }
}
