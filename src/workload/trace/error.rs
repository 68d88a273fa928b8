//! What is wrong with a record, and where.
//!
//! A record's parser knows a [`Fault`]: a reason and a place within the record. The reader, which knows the file and
//! the line, makes an [`Error`] of it.

use std::borrow::Cow;
use std::sync::Arc;
use std::{fmt, io};

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Name of the file, as it was given to the reader.
    pub file: Arc<str>,
    /// Line on which the record begins (or the broken one, where a record has several), from 1.
    pub line: u64,
    /// Where in the record.
    pub place: Place,
    /// What is wrong there.
    pub reason: Reason,
}

/// A place within a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// All of it.
    Record,
    /// A byte of the line, from 1.
    Column(u64),
    /// A field.
    Field(Cow<'static, str>),
}

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Two names of the same field are used.
    Ambiguous,
    /// The file is not what it was when it was looked through.
    Changed,
    /// The file ends inside of the record.
    CutOff,
    /// Nothing where something is needed.
    Empty,
    /// No digit behind the decimal point counts here: a whole number is needed.
    Fraction,
    /// It stands where its meaning comes too late: behind what it is needed for.
    Late,
    /// The field is not there.
    Missing,
    /// A number below zero.
    Negative,
    /// None of the fields that a prompt is made of.
    NoPrompt,
    /// No format that is known; name one.
    NoFormat,
    /// NaN or infinite.
    NotFinite,
    /// Something else than a JSON list of what belongs there.
    NotAList,
    /// Something else than a number.
    NotANumber,
    /// Something else than a JSON object.
    NotAnObject,
    /// Something else than a text.
    NotText,
    /// Not UTF-8, or an escape for half a character.
    NotUnicode,
    /// Not a date and a time of day.
    NotATime,
    /// Reading failed.
    Read(io::ErrorKind),
    /// Not JSON.
    Syntax,
    /// Nested too deep.
    TooDeep,
    /// More bytes than a record may have ([`RECORD_BYTES_MAX`]).
    TooLong,
    /// More than the 32 bits of a length or the 64 of a time in nanoseconds.
    TooLarge,
    /// More blocks than the prompt has tokens for.
    TooMany,
    /// A word that has no meaning here.
    Unknown,
    /// Another number of fields than the header.
    Width,
    /// None at all, where one is the least.
    Zero,
}

/// What a malformed record does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// It ends the reading.
    #[default]
    Fail,
    /// It is counted, and left out.
    Skip,
}

/// Longest record that is read, bytes: a line, a CSV record, an element of a JSON array.
///
/// The longest lines that are known, whole agent sessions, have 54 MB.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// What a record's parser says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) place: Place,
    pub(super) reason: Reason,
    /// Lines between the beginning of the record and the place.
    pub(super) lines_down: u64,
}

impl Fault {
    pub(super) fn of_record(reason: Reason) -> Fault {
        Fault { place: Place::Record, reason, lines_down: 0 }
    }

    pub(super) fn of_field(name: &'static str, reason: Reason) -> Fault {
        Fault { place: Place::Field(Cow::Borrowed(name)), reason, lines_down: 0 }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Fault {
        Fault::of_record(Reason::Read(error.kind()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        match &self.place {
            Place::Record => {}
            Place::Column(column) => write!(f, "column {column}: ")?,
            Place::Field(name) => write!(f, "{name}: ")?,
        }
        self.reason.fmt(f)
    }
}

impl std::error::Error for Error {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Ambiguous => "given under two names",
            Reason::Changed => "the file has changed since it was looked through",
            Reason::CutOff => "the file ends inside of this record",
            Reason::Empty => "empty",
            Reason::Fraction => "not a whole number",
            Reason::Late => "stands behind the requests that need it",
            Reason::Missing => "missing",
            Reason::Negative => "below zero",
            Reason::NoPrompt => "no field that a prompt could be made of",
            Reason::NoFormat => "not a format that can be told from its beginning; name it",
            Reason::NotFinite => "not a finite number",
            Reason::NotAList => "not a list",
            Reason::NotANumber => "not a number",
            Reason::NotAnObject => "not a JSON object",
            Reason::NotText => "not a text",
            Reason::NotUnicode => "not valid Unicode",
            Reason::NotATime => "not a time like 2023-11-16 09:30:46.6805900",
            Reason::Read(kind) => return write!(f, "cannot be read: {kind}"),
            Reason::Syntax => "not JSON",
            Reason::TooDeep => "nested too deep",
            Reason::TooLong => "longer than 64 MiB",
            Reason::TooLarge => "too large",
            Reason::TooMany => "more blocks than the prompt has tokens for",
            Reason::Unknown => "unknown",
            Reason::Width => "not as many fields as the header has",
            Reason::Zero => "0, and a request has one token at least",
        })
    }
}

const _: () = assert!(RECORD_BYTES_MAX == 64 << 20, "Reason::TooLong names it");
