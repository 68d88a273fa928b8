//! A file whose records are read from wherever they stand.
//!
//! Owns the way to a record and what is said of a file that is no longer what it was. Which record is wanted, others know.

use std::io::{BufRead, Seek, SeekFrom};

use memchr::memchr_iter;

use super::csv::fill_buf;
use super::entry::Entry;
use super::error::{Error, Reason};
use super::format::Format;
use super::parser::{At, Start};
use super::reader::{self, Core, Options};
use super::weka::Head;

/// A file that can be read again from any of its places.
pub trait Input: BufRead + Seek {}

impl<T: BufRead + Seek + ?Sized> Input for T {}

/// A file that is being read.
pub(super) struct Source<I> {
    input: I,
    pub(super) core: Core,
}

impl<I: Input> Source<I> {
    pub(super) fn open((file, mut input): (&str, I), options: &Options) -> Result<Source<I>, Error> {
        let core = open(file, &mut input, options)?;
        Ok(Source { input, core })
    }

    /// The next entry in the order of the file.
    pub(super) fn entry(&mut self) -> Option<Result<Entry, Error>> {
        self.core.entry(&mut self.input)
    }

    /// The first entry of the record at `offset`.
    pub(super) fn read_at(&mut self, offset: u64) -> Result<Entry, Error> {
        // What is left of the record before.
        while !self.core.is_between_records() {
            let _ = self.entry();
        }
        self.go_to(offset)?;
        self.rest_of(offset)
    }

    /// The request at `offset`, of a session of agents that is read in the light of `head`.
    pub(super) fn read_in_session(&mut self, head: &Head, offset: u64) -> Result<Entry, Error> {
        while !self.core.is_between_records() {
            let _ = self.entry();
        }
        self.go_to(offset)?;
        self.core.enter_session(At { offset, line: 0 }, head);
        self.rest_of(offset)
    }

    /// The next entry of the record at `offset`, which is being read.
    pub(super) fn rest_of(&mut self, offset: u64) -> Result<Entry, Error> {
        match self.entry() {
            Some(Ok(entry)) if self.core.record_at().offset == offset => Ok(entry),
            _ => Err(self.changed(offset)),
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

/// The format of a file, by the options or by its beginning.
///
/// # Errors
/// It cannot be told, or reading fails.
pub fn format_of(file: &str, input: &mut dyn Input, options: &Options) -> Result<Format, Error> {
    Ok(open(file, input, options)?.format)
}

pub(super) fn open(file: &str, input: &mut dyn Input, options: &Options) -> Result<Core, Error> {
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
