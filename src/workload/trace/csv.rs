//! The records of a CSV file, with quoting, and the columns by the names in its header.
//!
//! Owns bounds, numbers of lines and columns; `csv_core` owns the quoting. What a column means is known to the formats.

use std::borrow::Cow;
use std::io::{BufRead, ErrorKind};

use csv_core::ReadRecordResult;
use memchr::memchr_iter;

use super::error::{Fault, Place, Reason};
use super::parser::At;

/// Walks the records of an input that it is handed with each call.
pub(super) struct Records {
    /// Boxed, since it holds tables.
    core: Box<csv_core::Reader>,
    next: At,
    bytes_max: usize,
    text: Vec<u8>,
    ends: Vec<usize>,
    quoting: Quoting,
}

/// Where in a field the input stands, as far as quotes go: a file must not end inside of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Quoting {
    /// At its beginning.
    #[default]
    Before,
    /// In a field without quotes, in which one means itself, or behind the quotes.
    Outside,
    Inside,
    /// Behind a quote that ends the field, unless another one follows.
    Perhaps,
}

impl Quoting {
    fn pass(self, bytes: &[u8]) -> Quoting {
        bytes.iter().fold(self, |at, byte| match (at, byte) {
            (Quoting::Inside, b'"') => Quoting::Perhaps,
            (Quoting::Inside, _) | (Quoting::Before | Quoting::Perhaps, b'"') => Quoting::Inside,
            (_, b',' | b'\n' | b'\r') => Quoting::Before,
            _ => Quoting::Outside,
        })
    }
}

/// One record, all of it UTF-8.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'r> {
    text: &'r str,
    /// Where in `text` each field ends.
    ends: &'r [usize],
}

/// Where a named column is.
#[derive(Clone, Debug)]
pub(super) struct Column {
    name: Cow<'static, str>,
    index: usize,
}

impl Records {
    pub(super) fn new(start: At, bytes_max: usize) -> Records {
        Records {
            core: Box::new(csv_core::Reader::new()),
            next: start,
            bytes_max,
            text: Vec::new(),
            ends: Vec::new(),
            quoting: Quoting::Before,
        }
    }

    /// The next record and where it begins. `None` at the end of the input.
    pub(super) fn next(&mut self, input: &mut dyn BufRead) -> Option<(At, Result<Row<'_>, Fault>)> {
        if let Err(fault) = self.pass_blank_lines(input) {
            return Some((self.next, Err(fault)));
        }
        let at = self.next;
        let filled = match self.fill(input) {
            Ok(None) => return None,
            Ok(Some(filled)) => Ok(filled),
            Err(fault) => Err(fault),
        };
        Some((at, filled.and_then(|Filled { bytes, fields }| self.row(bytes, fields))))
    }

    /// Goes on at a record to which the input has been moved.
    pub(super) fn resume(&mut self, at: At) {
        self.core.reset();
        self.quoting = Quoting::Before;
        self.next = at;
    }

    pub(super) fn position(&self) -> u64 {
        self.next.offset
    }

    fn row(&self, bytes: usize, fields: usize) -> Result<Row<'_>, Fault> {
        let text = str::from_utf8(&self.text[..bytes]).map_err(|_| Fault::of_record(Reason::NotUnicode))?;
        // Fields are cut at ASCII bytes, but a broken sequence may have been completed across a cut.
        let ends = &self.ends[..fields];
        if ends.iter().any(|end| !text.is_char_boundary(*end)) {
            return Err(Fault::of_record(Reason::NotUnicode));
        }
        Ok(Row { text, ends })
    }

    /// So that a record's place is its own and not that of blank lines before it.
    fn pass_blank_lines(&mut self, input: &mut dyn BufRead) -> Result<(), Fault> {
        loop {
            let available = fill_buf(input)?;
            let blank = available.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            if blank == 0 {
                return Ok(());
            }
            self.next.pass(&available[..blank]);
            input.consume(blank);
        }
    }

    /// Reads one record into the buffers; `None` if there is none. Of one that is too long nothing is kept.
    fn fill(&mut self, input: &mut dyn BufRead) -> Result<Option<Filled>, Fault> {
        let mut filled = Filled { bytes: 0, fields: 0 };
        let mut is_too_long = false;
        loop {
            let available = fill_buf(input)?;
            let (result, used, wrote, ended) = self.core.read_record(
                available,
                &mut self.text[filled.bytes..],
                &mut self.ends[filled.fields..],
            );
            self.next.pass(&available[..used]);
            self.quoting = self.quoting.pass(&available[..used]);
            let is_at_the_end = available.is_empty();
            input.consume(used);
            filled.bytes += wrote;
            filled.fields += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.text.len() < self.bytes_max => {
                    self.text.resize((self.text.len() * 2).max(FIRST_BYTES).min(self.bytes_max), 0);
                }
                ReadRecordResult::OutputEndsFull if self.ends.len() < FIELDS_MAX => {
                    self.ends.resize((self.ends.len() * 2).clamp(FIRST_FIELDS, FIELDS_MAX), 0);
                }
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    is_too_long = true;
                    filled = Filled { bytes: 0, fields: 0 };
                }
                ReadRecordResult::Record if is_at_the_end && self.quoting == Quoting::Inside => {
                    return Err(Fault::of_record(Reason::CutOff));
                }
                ReadRecordResult::Record if is_too_long => return Err(Fault::of_record(Reason::TooLong)),
                ReadRecordResult::Record => return Ok(Some(filled)),
                ReadRecordResult::End => return Ok(None),
            }
        }
    }
}

struct Filled {
    bytes: usize,
    fields: usize,
}

impl<'r> Row<'r> {
    /// The fields in their order.
    pub(super) fn fields(self) -> impl Iterator<Item = &'r str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends).map(move |(start, end)| &self.text[start..*end])
    }

    /// Number of fields.
    pub(super) fn width(self) -> usize {
        self.ends.len()
    }

    /// The column of that name in this row, taken as the header. Blanks around names do not count, nor does case.
    pub(super) fn column(self, name: impl Into<Cow<'static, str>>) -> Option<Column> {
        let name = name.into();
        let index = self.fields().position(|field| field.trim().eq_ignore_ascii_case(name.trim()))?;
        Some(Column { name, index })
    }

    /// The column of that name, which must be there.
    pub(super) fn needed(self, name: &'static str) -> Result<Column, Fault> {
        self.column(name).ok_or(Fault::of_field(name, Reason::Missing))
    }

    /// The text in a column; the row has the width of its header.
    pub(super) fn text(self, column: &Column) -> &'r str {
        self.fields().nth(column.index).unwrap_or_default()
    }

    /// What `read` makes of the text in a column.
    pub(super) fn read<T>(
        self,
        column: &Column,
        read: impl FnOnce(&str) -> Result<T, Reason>,
    ) -> Result<T, Fault> {
        read(self.text(column)).map_err(|reason| column.fault(reason))
    }
}

impl Column {
    pub(super) fn fault(&self, reason: Reason) -> Fault {
        Fault { place: Place::Field(self.name.clone()), reason, lines_down: 0 }
    }
}

/// Bytes of the input, none at its end; a signal is not one.
pub(super) fn fill_buf(input: &mut dyn BufRead) -> Result<&[u8], Fault> {
    loop {
        // The borrow of what is returned must not reach the next round.
        match input.fill_buf() {
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(input.fill_buf()?)
}

impl At {
    /// Moves past bytes that were read.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        self.offset += bytes.len() as u64;
        self.line += memchr_iter(b'\n', bytes).count() as u64;
    }
}

const FIRST_BYTES: usize = 256;
const FIRST_FIELDS: usize = 16;
/// A header of more fields than this is not one.
const FIELDS_MAX: usize = 4096;
