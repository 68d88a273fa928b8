//! What is to be seen of a run while it goes on: sums that one shard writes and anybody may read.
//!
//! Every sum is an atomic that its shard alone writes, by a load and a store without order: a reader never delays it, and
//! sees each sum exact and all of them together perhaps a moment apart. They follow the rules of [`Tally`](super::Tally):
//! what stands here when a level has ended is what its result holds, sum by sum and bucket by bucket. They run on from
//! level to level and are never reset; [`Sums::since`] is the part of one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::metrics::gaps::Gaps;
use crate::metrics::metric::Metric;
use crate::metrics::outcome::{Class, Kind, Outcome};
use crate::metrics::record::Record;
use crate::stats::{Histogram, Quantile};
use crate::time::Stamp;

/// The sums of all shards of a run. A clone is another handle to the same.
#[derive(Clone, Debug)]
pub struct Live {
    shards: Vec<Arc<LiveShard>>,
}

/// The sums of one shard, on cache lines of their own.
#[derive(Debug)]
pub struct LiveShard {
    lines: Box<[Line]>,
    /// Bucket of each code of a [`Histogram`]: one look instead of a search for each gap of an answer.
    places: Arc<[u8]>,
}

/// Two lines of most processors, which fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line([AtomicU64; Line::CELLS]);

/// A reading, or the sum or difference of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sums {
    cells: Box<[u64]>,
}

/// What is counted beside outcomes, tokens and times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Requests started, those of warm-ups included.
    Started,
    /// Started requests that have ended, however.
    Ended,
    /// Requests of warm-ups started.
    WarmUps,
    /// Requests of levels started.
    Sent,
    /// Bytes read of the answers to them, up to the last tick of the shard or the end of the level.
    ReadBytes,
    /// Content events of these answers, up to the same moment.
    Events,
}

/// Of which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Planned before the level's window: its ramp, which its result leaves out.
    Ramp,
    /// Planned in the window.
    Window,
}

/// Times that are kept as buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Our own lateness in starting a request, whatever became of it.
    ScheduleDelay,
    /// How late the loop saw a tick.
    LoopLag,
    /// Of a [`Part`]: [`Metric::Ttft`].
    Ttft(Part),
    /// [`Metric::Tpot`].
    Tpot(Part),
    /// [`Metric::Itl`].
    Itl(Part),
    /// [`Metric::E2e`].
    E2e(Part),
}

/// Times in buckets.
#[derive(Clone, Copy, Debug)]
pub struct Times<'a> {
    /// Sum of all values, ns.
    pub sum_ns: u64,
    /// Values in each bucket, not those below it: one for each of [`BOUNDS_NS`], which is its highest value, and one for
    /// what lies beyond.
    pub counts: &'a [u64],
}

/// Twenty to a decade, rounded as preferred numbers are (ISO 3), from 10 us to 1000 s, ns: a bucket is 12 % wide. A value
/// less than 0.1 % above a bound, which a [`Histogram`] does not tell from it, counts as at it.
pub static BOUNDS_NS: [u64; BOUNDS] = bounds();

const BOUNDS: usize = DECADES * R20.len() + 1;
const DECADES: usize = 8;
const R20: [u64; 20] =
    [100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900];

// Where what stands in the cells.
const COUNTS: usize = 6;
/// The sum and the buckets.
const TIMES: usize = 1 + BOUNDS + 1;
/// Final HTTP statuses that are counted one by one.
const STATUSES: std::ops::Range<usize> = 100..1000;
const OUTCOMES: usize = Class::ALL.len() + STATUSES.end - STATUSES.start;
const OUTPUT_TOKENS: usize = OUTCOMES;
const PROMPT_TOKENS: usize = OUTCOMES + 1;
const PART: usize = OUTCOMES + 2 + 4 * TIMES;
const CELLS: usize = COUNTS + 2 * TIMES + 2 * PART;

impl Live {
    /// Sums of so many shards, all zero: about 35 kB for each.
    #[must_use]
    pub fn new(shards: usize) -> Live {
        let place = |code| BOUNDS_NS.partition_point(|bound| *bound < Histogram::bucket_lowest(code)) as u8;
        let places: Arc<[u8]> = (0..Histogram::BUCKETS).map(place).collect();
        let shard = |_| {
            let lines = (0..CELLS.div_ceil(Line::CELLS)).map(|_| Line::default()).collect();
            Arc::new(LiveShard { lines, places: Arc::clone(&places) })
        };
        Live { shards: (0..shards).map(shard).collect() }
    }

    /// The sums of the shard at `place`; `None` beyond the last.
    #[must_use]
    pub fn shard(&self, place: usize) -> Option<Arc<LiveShard>> {
        self.shards.get(place).cloned()
    }

    /// The sums over all shards, now.
    #[must_use]
    pub fn read(&self) -> Sums {
        let mut sums = Sums::default();
        for shard in &self.shards {
            let cells = shard.lines.iter().flat_map(|line| &line.0);
            for (sum, cell) in sums.cells.iter_mut().zip(cells) {
                *sum += cell.load(Ordering::Relaxed);
            }
        }
        sums
    }
}

impl LiveShard {
    /// Counts `n` more.
    #[inline]
    pub fn count(&self, what: Count, n: u64) {
        self.add(what as usize, n);
    }

    /// Counts a time of the client's own.
    #[inline]
    pub fn time(&self, what: Timing, ns: u64) {
        let base = what.cell();
        self.add(base, ns);
        self.add(base + 1 + self.bucket(Histogram::bucket_of(ns.min(Histogram::HIGHEST_NS))), 1);
    }

    /// A measured request ended, or will never be sent: what [`Tally::on_done`](super::Tally::on_done) is told.
    pub fn on_done(&self, record: &Record, gaps: &Gaps, window_start: Stamp) {
        let part = if record.plan < window_start { Part::Ramp } else { Part::Window };
        let base = part.cell();
        self.add(base + outcome_cell(record.outcome), 1);
        if !record.outcome.is_ok() {
            return;
        }
        self.add(base + OUTPUT_TOKENS, u64::from(record.output_tokens.unwrap_or(0)));
        self.add(base + PROMPT_TOKENS, u64::from(record.prompt_tokens.unwrap_or(0)));
        if !record.is_in_distributions() {
            return;
        }
        for (timing, metric) in [
            (Timing::Ttft(part), Metric::Ttft),
            (Timing::Tpot(part), Metric::Tpot),
            (Timing::E2e(part), Metric::E2e),
        ] {
            if let Some(value) = metric.of(record) {
                self.time(timing, metric.to_ticks(value));
            }
        }
        let base = Timing::Itl(part).cell();
        self.add(base, u64::try_from(gaps.totals().sum()).unwrap_or(u64::MAX));
        for code in gaps.codes() {
            self.add(base + 1 + self.bucket(code), 1);
        }
    }

    #[inline]
    fn bucket(&self, code: u16) -> usize {
        self.places.get(usize::from(code)).map_or(BOUNDS, |place| usize::from(*place))
    }

    /// One writer: a load and a store, not a locked addition.
    #[inline]
    fn add(&self, cell: usize, n: u64) {
        if let Some(line) = self.lines.get(cell / Line::CELLS) {
            let cell = &line.0[cell % Line::CELLS];
            cell.store(cell.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        }
    }
}

impl Line {
    const CELLS: usize = 16;
}

impl Sums {
    /// What came after `before`.
    #[must_use]
    pub fn since(&self, before: &Sums) -> Sums {
        let cells = self.cells.iter().zip(&before.cells);
        Sums { cells: cells.map(|(now, before)| now.saturating_sub(*before)).collect() }
    }

    /// That count.
    #[must_use]
    pub fn count(&self, what: Count) -> u64 {
        self.cells[what as usize]
    }

    /// Requests in flight, those of warm-ups included.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.count(Count::Started).saturating_sub(self.count(Count::Ended))
    }

    /// Every outcome that was seen, with its count: the label of [`Outcome::label`], by class.
    pub fn outcomes(&self, part: Part) -> impl Iterator<Item = (Outcome, u64)> {
        let cells = &self.cells[part.cell()..part.cell() + OUTCOMES];
        let of = |place: usize| match Class::ALL.get(place) {
            Some(class) => Outcome::new(*class, Kind::None, 0),
            None => {
                let status = STATUSES.start + place - Class::ALL.len();
                Outcome::new(Class::Http, Kind::HttpStatus, status as u16)
            }
        };
        cells
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(move |(place, count)| (of(place), *count))
    }

    /// Requests of both parts that ended well, failed, and were cancelled.
    #[must_use]
    pub fn ends(&self) -> (u64, u64, u64) {
        let mut ends = (0, 0, 0);
        for (outcome, count) in Part::ALL.into_iter().flat_map(|part| self.outcomes(part)) {
            *match outcome.class {
                Class::Ok => &mut ends.0,
                Class::Cancelled => &mut ends.2,
                _ => &mut ends.1,
            } += count;
        }
        ends
    }

    /// Output tokens of requests that ended well, where known.
    #[must_use]
    pub fn output_tokens(&self, part: Part) -> u64 {
        self.cells[part.cell() + OUTPUT_TOKENS]
    }

    /// Prompt tokens of requests that ended well, where known.
    #[must_use]
    pub fn prompt_tokens(&self, part: Part) -> u64 {
        self.cells[part.cell() + PROMPT_TOKENS]
    }

    /// These times.
    #[must_use]
    pub fn times(&self, what: Timing) -> Times<'_> {
        let cells = &self.cells[what.cell()..what.cell() + TIMES];
        Times { sum_ns: cells[0], counts: &cells[1..] }
    }
}

impl Default for Sums {
    fn default() -> Sums {
        Sums { cells: vec![0; CELLS].into_boxed_slice() }
    }
}

impl Part {
    /// Both.
    pub const ALL: [Part; 2] = [Part::Ramp, Part::Window];

    const fn cell(self) -> usize {
        COUNTS + 2 * TIMES + self as usize * PART
    }
}

impl Timing {
    const fn cell(self) -> usize {
        match self {
            Timing::ScheduleDelay => COUNTS,
            Timing::LoopLag => COUNTS + TIMES,
            Timing::Ttft(part) => part.cell() + OUTCOMES + 2,
            Timing::Tpot(part) => part.cell() + OUTCOMES + 2 + TIMES,
            Timing::Itl(part) => part.cell() + OUTCOMES + 2 + 2 * TIMES,
            Timing::E2e(part) => part.cell() + OUTCOMES + 2 + 3 * TIMES,
        }
    }
}

impl Times<'_> {
    /// Number of values.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The nearest-rank quantile as a place within its bucket, ns, for the eye; `None` if there are no values.
    #[must_use]
    pub fn quantile(&self, quantile: Quantile) -> Option<f64> {
        quantile_of(self.counts.iter().copied(), quantile)
    }
}

/// [`Times::quantile`] of values in buckets that were added up elsewhere.
#[must_use]
pub fn quantile_of(counts: impl Iterator<Item = u64> + Clone, quantile: Quantile) -> Option<f64> {
    let n: u64 = counts.clone().sum();
    let rank = quantile.rank(n);
    let mut below = 0;
    for (place, count) in counts.enumerate() {
        if count > 0 && below + count >= rank {
            let low = place.checked_sub(1).map_or(0, |place| BOUNDS_NS[place]) as f64;
            // Of what lies beyond the last bound only that is known.
            let high = BOUNDS_NS.get(place).map_or(low, |bound| *bound as f64);
            return Some(low + (high - low) * (rank - below) as f64 / count as f64);
        }
        below += count;
    }
    None
}

fn outcome_cell(outcome: Outcome) -> usize {
    let status = usize::from(outcome.status);
    if outcome.class == Class::Http && STATUSES.contains(&status) {
        return Class::ALL.len() + status - STATUSES.start;
    }
    outcome.class as usize
}

const fn bounds() -> [u64; BOUNDS] {
    let mut all = [0; BOUNDS];
    let (mut place, mut decade) = (0, 100);
    while place < BOUNDS {
        all[place] = R20[place % R20.len()] * decade;
        place += 1;
        if place % R20.len() == 0 {
            decade *= 10;
        }
    }
    all
}
