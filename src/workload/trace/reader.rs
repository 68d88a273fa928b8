//! Entries of a file in its own order, and what happens to records that are malformed.

use std::fmt;
use std::io::{BufRead, Chain, Cursor, Read};
use std::num::NonZeroU32;
use std::sync::Arc;

use super::csv::fill_buf;
use super::entry::Entry;
use super::error::{Error, Fault, OnError, RECORD_BYTES_MAX, Reason};
use super::format::Format;
use super::parser::{At, Parser, Start};
use super::sharegpt::Turns;
use super::weka::Head;

/// How a file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its format; detected by default.
    pub format: Option<Format>,
    /// What a malformed record does.
    pub on_error: OnError,
    /// Column of the prompts, for [`Format::Csv`]. By default `prompt` or `text`, or the only one.
    pub column: Option<Box<str>>,
    /// Which turns of a conversation are taken, for [`Format::ShareGpt`] and [`Format::Jsonl`].
    pub turns: Turns,
    /// Tokens of a hashed block. By default what the format says: 512 for Mooncake, 16 for Bailian, 64 for Weka or
    /// what its file says.
    pub block_tokens: Option<NonZeroU32>,
    /// Longest record that is read, bytes, at least 64; by default and at most [`RECORD_BYTES_MAX`](super::RECORD_BYTES_MAX).
    pub record_bytes_max: usize,
}

/// What has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records, malformed ones included: rows, lines, elements.
    pub records: u64,
    /// Entries that they gave.
    pub entries: u64,
    /// Malformed records that were skipped.
    pub malformed: u64,
    /// The first few of them.
    pub first_errors: Vec<Error>,
    /// Conversations that were left out because none of their questions has an answer.
    pub unanswered: u64,
}

/// The entries of a file, in its order.
///
/// Holds one record. It ends at the end of the file, or with the first error that is not skipped: one of reading, one
/// behind which nothing can be read, or any with [`OnError::Fail`].
pub struct Reader<'i> {
    input: Chain<Cursor<Vec<u8>>, &'i mut dyn BufRead>,
    core: Core,
}

impl<'i> Reader<'i> {
    /// Begins to read `input`, which is at its beginning. `file` is its name, for errors and for detection.
    ///
    /// # Errors
    /// The format cannot be told, a CSV header lacks a column, or reading fails.
    pub fn open(file: &str, input: &'i mut dyn BufRead, options: Options) -> Result<Reader<'i>, Error> {
        let beginning = beginning(file, input)?;
        let format = detected(file, &beginning, &options)?;
        let start = Start::of(&beginning);
        let mut input = Cursor::new(beginning).chain(input);
        let core = Core::start((file, format, start), options, &mut input)?;
        Ok(Reader { input, core })
    }

    /// The format that is read.
    #[must_use]
    pub fn format(&self) -> Format {
        self.core.format
    }

    /// What has been read so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.core.counts
    }
}

impl Iterator for Reader<'_> {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.core.entry(&mut self.input)
    }
}

impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("file", &self.core.file)
            .field("format", &self.core.format)
            .field("counts", &self.core.counts)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            format: None,
            on_error: OnError::default(),
            column: None,
            turns: Turns::default(),
            block_tokens: None,
            record_bytes_max: RECORD_BYTES_MAX,
        }
    }
}

/// A reading without its input, which is handed in with each call.
pub(super) struct Core {
    file: Arc<str>,
    pub(super) format: Format,
    options: Options,
    parser: Parser,
    pub(super) counts: Counts,
    has_ended: bool,
}

impl Core {
    pub(super) fn start(
        (file, format, start): (&str, Format, Start),
        options: Options,
        input: &mut dyn BufRead,
    ) -> Result<Core, Error> {
        let record_bytes_max = options.record_bytes_max.clamp(RECORD_BYTES_MIN, RECORD_BYTES_MAX);
        let options = Options { record_bytes_max, ..options };
        let parser = pass(input, start.at.offset)
            .map_err(|fault| (At::START, fault))
            .and_then(|()| Parser::start(format, &options, start, input))
            .map_err(|(at, fault)| error_at(&file.into(), at, fault))?;
        Ok(Core { file: file.into(), format, options, parser, counts: Counts::default(), has_ended: false })
    }

    /// The next entry in the order of the file.
    pub(super) fn entry(&mut self, input: &mut dyn BufRead) -> Option<Result<Entry, Error>> {
        loop {
            if let Some(entry) = self.parser.batch.pop() {
                self.counts.entries += 1;
                return Some(Ok(entry));
            }
            if self.has_ended {
                return None;
            }
            let Some(step) = self.parser.step(input) else {
                self.has_ended = true;
                return None;
            };
            self.counts.records += 1;
            self.counts.unanswered = self.parser.batch.unanswered;
            self.has_ended = step.is_last;
            if let Err(fault) = step.outcome
                && let Err(error) = self.judge(error_at(&self.file, step.at, fault), step.is_last)
            {
                self.has_ended = true;
                return Some(Err(error));
            }
        }
    }

    /// Counts an error that is skipped. A file that has been cut off is read as far as it goes; where its middle is
    /// broken, what is behind must not be left out silently.
    fn judge(&mut self, error: Error, is_last: bool) -> Result<(), Error> {
        let is_bearable = !is_last || error.reason == Reason::CutOff;
        if self.options.on_error == OnError::Fail || !is_bearable {
            return Err(error);
        }
        self.counts.malformed += 1;
        if self.counts.first_errors.len() < ERRORS_KEPT {
            self.counts.first_errors.push(error);
        }
        Ok(())
    }

    /// Where the record begins that gave the last entry.
    pub(super) fn record_at(&self) -> At {
        self.parser.batch.at()
    }

    /// Whether the last entry was the only or last one of its record.
    pub(super) fn is_between_records(&self) -> bool {
        self.parser.batch.is_empty()
    }

    pub(super) fn position(&self) -> u64 {
        self.parser.position()
    }

    /// See [`Parser::resume`].
    pub(super) fn resume(&mut self, at: At) {
        self.has_ended = false;
        self.parser.resume(at);
    }

    /// The session of agents that is being read.
    pub(super) fn session_head(&self) -> Option<&Head> {
        self.parser.session_head()
    }

    /// See [`Parser::enter_session`].
    pub(super) fn enter_session(&mut self, at: At, head: &Head) {
        self.has_ended = false;
        self.parser.enter_session(at, head);
    }

    pub(super) fn error(&self, at: At, reason: Reason) -> Error {
        error_at(&self.file, at, Fault::of_record(reason))
    }
}

/// The first bytes, which the input has then passed.
pub(super) fn beginning(file: &str, input: &mut dyn BufRead) -> Result<Vec<u8>, Error> {
    let mut beginning = Vec::new();
    let read = input.take(BEGINNING_BYTES).read_to_end(&mut beginning);
    read.map_err(|error| error_at(&file.into(), At::START, error.into()))?;
    Ok(beginning)
}

/// The format by option, or else by its beginning.
pub(super) fn detected(file: &str, beginning: &[u8], options: &Options) -> Result<Format, Error> {
    let found = options.format.or_else(|| Format::detect(file, beginning));
    let reason = if beginning.trim_ascii().is_empty() { Reason::Empty } else { Reason::NoFormat };
    found.ok_or_else(|| error_at(&file.into(), At::START, Fault::of_record(reason)))
}

/// Passes so many bytes.
fn pass(input: &mut dyn BufRead, bytes: u64) -> Result<(), Fault> {
    let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
    while left > 0 {
        let passed = fill_buf(input)?.len().min(left);
        if passed == 0 {
            return Err(Fault::of_record(Reason::CutOff));
        }
        input.consume(passed);
        left -= passed;
    }
    Ok(())
}

fn error_at(file: &Arc<str>, at: At, fault: Fault) -> Error {
    let Fault { place, reason, lines_down } = fault;
    Error { file: file.clone(), line: at.line + lines_down, place, reason }
}

/// A walk needs room for something.
const RECORD_BYTES_MIN: usize = 64;
/// Enough for the header of a CSV file and for the first keys of any JSON.
const BEGINNING_BYTES: u64 = 64 << 10;
/// A user who looks at ten errors has seen what is wrong.
const ERRORS_KEPT: usize = 10;

/// The error of a file that cannot be read at all.
pub(in crate::workload) fn unreadable(file: &str, error: &std::io::Error) -> Error {
    error_at(&file.into(), At::START, Fault::of_record(Reason::Read(error.kind())))
}
