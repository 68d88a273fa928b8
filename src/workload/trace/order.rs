//! Entries in order of time, and their planned offsets.
//!
//! Owns the look through a file, which finds its first time and whether it is in order, and the replay of one that is
//! not. See the [room](super) for what that costs.

use std::fmt;
use std::io::{BufRead, Seek, SeekFrom};
use std::sync::Arc;

use memchr::memchr_iter;

use super::csv::fill_buf;
use super::entry::Entry;
use super::error::{Error, Reason};
use super::format::Format;
use super::parser::{At, Start};
use super::reader::{self, Core, Counts, Options};

/// A file that can be read again from any of its places.
pub trait Input: BufRead + Seek {}

impl<T: BufRead + Seek + ?Sized> Input for T {}

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
    input: I,
    core: Core,
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
        (file, mut input): (&str, I),
        options: &Options,
        survey: &Survey,
        order: Order,
    ) -> Result<Replay<I>, Error> {
        let core = open(file, &mut input, options)?;
        let first_ns = if core.format == Format::Weka { 0 } else { survey.first_ns.unwrap_or(0) };
        Ok(Replay { input, core, first_ns, order, passed: 0, has_failed: false })
    }

    fn is_placed(&self) -> bool {
        self.order.0.is_some()
    }

    /// The next entry of a file that is not in order.
    fn placed(&mut self) -> Option<Result<Entry, Error>> {
        let wanted = if self.core.is_between_records() {
            let place = *self.order.0.as_ref()?.get(self.passed)?;
            self.passed += 1;
            if let Err(error) = self.go_to(place.offset) {
                return Some(Err(error));
            }
            place.offset
        } else {
            self.core.record_at().offset
        };
        match self.core.entry(&mut self.input) {
            Some(Ok(entry)) if self.core.record_at().offset == wanted => Some(Ok(entry)),
            _ => Some(Err(self.changed(wanted))),
        }
    }

    /// Moves within what is buffered, if it can: a file is seldom far out of order.
    fn go_to(&mut self, offset: u64) -> Result<(), Error> {
        let distance = offset.wrapping_sub(self.core.position()).cast_signed();
        let moved = if distance == 0 { Ok(()) } else { self.input.seek_relative(distance) };
        moved.map_err(|error| self.core.error(At::START, Reason::Read(error.kind())))?;
        self.core.resume(At { offset, line: 0 });
        Ok(())
    }

    /// An error at a place of which only the bytes before it are known: their lines are counted.
    fn changed(&mut self, offset: u64) -> Error {
        let mut at = At::START;
        let mut left = offset;
        // Only a better line is lost if the file cannot even be read again.
        if self.input.seek(SeekFrom::Start(0)).is_ok() {
            while left > 0 {
                let Ok(available) = fill_buf(&mut self.input) else { break };
                let used = available.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                if used == 0 {
                    break;
                }
                at.line += memchr_iter(b'\n', &available[..used]).count() as u64;
                self.input.consume(used);
                left -= used as u64;
            }
        }
        self.core.error(at, Reason::Changed)
    }
}

impl<I: Input> Iterator for Replay<I> {
    type Item = Result<Planned, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let entry = if self.is_placed() { self.placed()? } else { self.core.entry(&mut self.input)? };
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

fn open(file: &str, input: &mut dyn Input, options: &Options) -> Result<Core, Error> {
    let rewound = |input: &mut dyn Input| match input.seek(SeekFrom::Start(0)) {
        Ok(_) => Ok(()),
        Err(error) => Err(reader::unreadable(file, &error)),
    };
    rewound(input)?;
    let beginning = reader::beginning(file, input)?;
    rewound(input)?;
    let format = reader::detected(file, &beginning, options)?;
    let mut options = options.clone();
    options.format = Some(format);
    Core::start((file, format, Start::of(&beginning)), options, input)
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
