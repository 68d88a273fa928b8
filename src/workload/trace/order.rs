//! Entries in order of time, and their planned offsets.
//!
//! Owns the look through a file, which finds its first time and whether it is in order, and the replay of one that is
//! not. See the [room](super) for what that costs.

use std::fmt;
use std::sync::Arc;

use super::entry::Entry;
use super::error::Error;
use super::format::Format;
use super::reader::{Core, Counts, Options};
use super::source::{Input, Source, open};

/// What a look through a whole file has found. Takes constant memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Survey {
    /// The format that it has.
    pub format: Format,
    /// Its earliest time, nanoseconds in the file's own epoch: offset 0. Failed calls count, so that dropping them
    /// does not move the others. `None` for a file without times.
    pub first_ns: Option<u64>,
    /// Its latest time.
    pub last_ns: Option<u64>,
    /// Entries that have a time.
    pub timed: u64,
    /// Whether its records are in order of time.
    pub is_in_order: bool,
    /// What was read.
    pub counts: Counts,
}

/// An entry and when it is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Nanoseconds after the earliest entry of the file, for [`Format::Weka`] after the start of its session. `None`
    /// where the file gives no time.
    pub offset_ns: Option<u64>,
    /// The entry. Its `line` is 0 where the file was not in order.
    pub entry: Entry,
}

/// The entries of a file in order of time; of equal times in the order of the file.
///
/// - An entry without a time stays behind every entry that stands before it in the file: a later turn, which waits for
///   an answer, never comes before the turn that it follows.
/// - The entries of one record (the turns of a conversation) stay together, at the time of the first.
/// - Sessions of [`Format::Weka`], each of which has a clock of its own, stay in the order of the file.
pub struct Replay<I> {
    source: Source<I>,
    first_ns: u64,
    /// In file order where it is `None`.
    order: Order,
    /// How many of its places are behind us.
    passed: usize,
    has_failed: bool,
}

/// The order by time of the records of a file that is not in order; shared by all replays of it, since it is as large as
/// the [room](super) says. Nothing for other files.
#[derive(Clone, Debug, Default)]
pub struct Order(Option<Arc<[Place]>>);

/// Where a record is and when it is due. 16 bytes, since there may be tens of millions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    due_ns: u64,
    offset: u64,
}

/// Gives each record its time in the order.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    latest_ns: u64,
}

impl Survey {
    /// Looks through the file from its beginning.
    ///
    /// # Errors
    /// Those of [`Reader`](super::Reader), and of going to the beginning.
    pub fn of(file: &str, input: &mut dyn Input, options: &Options) -> Result<Survey, Error> {
        let mut core = open(file, input, options)?;
        let mut survey = Survey {
            format: core.format,
            first_ns: None,
            last_ns: None,
            timed: 0,
            is_in_order: true,
            counts: Counts::default(),
        };
        let mut clock = Clock::default();
        let mut record = None;
        while let Some(entry) = core.entry(input) {
            let entry = entry?;
            let offset = core.record_at().offset;
            if record.replace(offset) != Some(offset) {
                survey.is_in_order &= entry.at.is_none_or(|at| at >= clock.latest_ns);
                clock.due(&entry);
            }
            if let Some(at) = entry.at {
                survey.timed += 1;
                survey.first_ns = Some(survey.first_ns.map_or(at, |first| first.min(at)));
                survey.last_ns = survey.last_ns.max(Some(at));
            }
        }
        survey.is_in_order |= core.format == Format::Weka;
        survey.counts = core.counts;
        Ok(survey)
    }
}

impl Clock {
    /// When a record is due that begins with this entry.
    fn due(&mut self, entry: &Entry) -> u64 {
        self.latest_ns = self.latest_ns.max(entry.at.unwrap_or(0));
        entry.at.unwrap_or(self.latest_ns)
    }
}

impl Order {
    /// The order of a file that was looked through with the same options. One that is not in order is read once more.
    ///
    /// # Errors
    /// Those of [`Survey::of`].
    pub fn of(file: &str, input: &mut dyn Input, options: &Options, survey: &Survey) -> Result<Order, Error> {
        if survey.is_in_order {
            return Ok(Order(None));
        }
        let mut core = open(file, input, options)?;
        Ok(Order(Some(sorted(&mut core, input)?.into())))
    }
}

impl<I: Input> Replay<I> {
    /// Begins the replay of a file that was looked through with the same options.
    ///
    /// # Errors
    /// Those of [`Order::of`].
    pub fn new(file: &str, mut input: I, options: &Options, survey: &Survey) -> Result<Replay<I>, Error> {
        let order = Order::of(file, &mut input, options, survey)?;
        Replay::ordered((file, input), options, survey, order)
    }

    /// As [`Replay::new`], of a file whose order is known.
    ///
    /// # Errors
    /// Reading fails.
    pub fn ordered(
        of: (&str, I),
        options: &Options,
        survey: &Survey,
        order: Order,
    ) -> Result<Replay<I>, Error> {
        let source = Source::open(of, options)?;
        let first_ns = if source.core.format == Format::Weka { 0 } else { survey.first_ns.unwrap_or(0) };
        Ok(Replay { source, first_ns, order, passed: 0, has_failed: false })
    }

    fn is_placed(&self) -> bool {
        self.order.0.is_some()
    }

    /// The next entry of a file that is not in order.
    fn placed(&mut self) -> Option<Result<Entry, Error>> {
        if !self.source.core.is_between_records() {
            return Some(self.source.rest_of(self.source.core.record_at().offset));
        }
        let place = *self.order.0.as_ref()?.get(self.passed)?;
        self.passed += 1;
        Some(self.source.read_at(place.offset))
    }
}

impl<I: Input> Iterator for Replay<I> {
    type Item = Result<Planned, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let entry = if self.is_placed() { self.placed()? } else { self.source.entry()? };
        self.has_failed = entry.is_err();
        Some(entry.map(|mut entry| {
            if self.is_placed() {
                entry.line = 0;
            }
            let offset_ns = entry.at.map(|at| at.saturating_sub(self.first_ns));
            Planned { offset_ns, entry }
        }))
    }
}

impl<I> fmt::Debug for Replay<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.order.0.as_ref().map(|places| places.len() - self.passed);
        f.debug_struct("Replay")
            .field("first_ns", &self.first_ns)
            .field("left", &left)
            .finish_non_exhaustive()
    }
}

/// The places of all records in order of time. Equal times keep the order of the file, because places differ.
fn sorted(core: &mut Core, input: &mut dyn Input) -> Result<Vec<Place>, Error> {
    let mut places: Vec<Place> = Vec::new();
    let mut clock = Clock::default();
    while let Some(entry) = core.entry(input) {
        let entry = entry?;
        let offset = core.record_at().offset;
        if places.last().is_none_or(|place| place.offset != offset) {
            places.push(Place { due_ns: clock.due(&entry), offset });
        }
    }
    places.sort_unstable();
    Ok(places)
}

const _: () = assert!(size_of::<Place>() == 16, "the docs say what a file out of order costs");
