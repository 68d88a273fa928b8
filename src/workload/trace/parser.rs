//! From bytes to entries, one record at a time: which walk through the file a format needs, and which reader of records.
//!
//! Owns neither the input, which is handed in with each call, nor what an error leads to.

use std::collections::VecDeque;
use std::io::BufRead;

use super::csv::{Records, Row};
use super::entry::Entry;
use super::error::{Fault, Place, Reason};
use super::format::Format;
use super::json::Object;
use super::lines::Lines;
use super::pieces::Pieces;
use super::reader::Options;
use super::weka::{Head, Walk};
use super::{aiperf, azure, bailian, burstgpt, dolly, mooncake, openai_batch, plain, sharegpt, vllm};

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    /// Bytes before it.
    pub(super) offset: u64,
    /// Its line, from 1.
    pub(super) line: u64,
}

impl At {
    pub(super) const START: At = At { offset: 0, line: 1 };
}

/// How a file begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// Behind the mark that some editors put there.
    pub(super) at: At,
    /// It is a JSON array.
    pub(super) is_array: bool,
}

impl Start {
    pub(super) fn of(beginning: &[u8]) -> Start {
        let text = beginning.strip_prefix(BYTE_ORDER_MARK).unwrap_or(beginning);
        let offset = (beginning.len() - text.len()) as u64;
        Start { at: At { offset, ..At::START }, is_array: text.trim_ascii_start().first() == Some(&b'[') }
    }
}

/// What the record that was read last has given and nobody has taken yet.
#[derive(Debug)]
pub(super) struct Batch {
    entries: VecDeque<Entry>,
    at: At,
    /// Conversations without a question and an answer, so far.
    pub(super) unanswered: u64,
}

/// The reading of one file.
pub(super) struct Parser {
    walk: Kind,
    rules: Rules,
    pub(super) batch: Batch,
}

/// What was found at a record.
pub(super) struct Step {
    pub(super) at: At,
    pub(super) outcome: Result<(), Fault>,
    /// Nothing behind it can be read.
    pub(super) is_last: bool,
}

enum Kind {
    Rows(Records, Header),
    Lines(Lines),
    Values(Pieces, Sequence),
    Sessions(Walk),
}

/// What the first record of a CSV file says.
struct Header {
    columns: Columns,
    width: usize,
}

enum Columns {
    Azure(azure::Columns),
    BurstGpt(burstgpt::Columns),
    Plain(plain::Columns),
}

/// What a record's meaning depends on, besides itself.
#[derive(Clone, Copy, Debug)]
struct Rules {
    format: Format,
    turns: sharegpt::Turns,
    block_tokens: u32,
}

impl Parser {
    /// Begins a file, of which the input has passed the mark; of CSV the header is read.
    pub(super) fn start(
        format: Format,
        options: &Options,
        start: Start,
        input: &mut dyn BufRead,
    ) -> Result<Parser, (At, Fault)> {
        let bytes_max = options.record_bytes_max;
        let default_block =
            if format == Format::Bailian { bailian::BLOCK_TOKENS } else { mooncake::BLOCK_TOKENS };
        let walk = match format {
            Format::AzureLlm | Format::AzureLmm | Format::BurstGpt | Format::Csv => {
                let mut records = Records::new(start.at, bytes_max);
                let header = read_header(&mut records, format, options, input)?;
                Kind::Rows(records, header)
            }
            Format::Weka => Kind::Sessions(Walk::new(start.at, bytes_max, options.block_tokens)),
            _ if start.is_array && format != Format::Text => {
                Kind::Values(Pieces::new(start.at, bytes_max), Sequence::Before)
            }
            _ => Kind::Lines(Lines::new(start.at, bytes_max)),
        };
        let block_tokens = options.block_tokens.map_or(default_block, u32::from);
        let rules = Rules { format, turns: options.turns, block_tokens };
        Ok(Parser { walk, rules, batch: Batch { entries: VecDeque::new(), at: At::START, unanswered: 0 } })
    }

    /// Reads the next record into the batch, which is empty. `None` at the end.
    pub(super) fn step(&mut self, input: &mut dyn BufRead) -> Option<Step> {
        let Parser { walk, rules, batch } = self;
        let mut step = match walk {
            Kind::Rows(records, header) => {
                let (at, row) = records.next(input)?;
                batch.at = at;
                Step::passed(at, row.and_then(|row| header.read(row)).map(|entry| batch.push(entry)))
            }
            Kind::Lines(lines) => {
                let (at, line) = lines.next(input)?;
                batch.at = at;
                Step::passed(at, line.and_then(|line| rules.read(line, batch)))
            }
            Kind::Values(pieces, sequence) => match sequence.advance(pieces, input) {
                Ok(false) => return None,
                Ok(true) => {
                    batch.at = pieces.next;
                    let value = pieces.value(input);
                    let is_last = is_last_value(&value);
                    let outcome = value.and_then(|value| rules.read(value, batch)).map_err(without_column);
                    Step { at: batch.at, outcome, is_last }
                }
                Err(fault) => Step { at: pieces.next, outcome: Err(fault), is_last: true },
            },
            Kind::Sessions(walk) => walk.step(input, batch)?,
        };
        if let Err(fault) = &step.outcome {
            // Of a record with an error nothing is used.
            batch.entries.clear();
            step.is_last |= matches!(fault.reason, Reason::Read(_));
        }
        Some(step)
    }

    /// Goes on at the record that begins there, to which the input has been moved. Not for sessions, whose records
    /// depend on what is before them.
    pub(super) fn resume(&mut self, at: At) {
        match &mut self.walk {
            Kind::Rows(records, _) => records.resume(at),
            Kind::Lines(lines) => lines.resume(at),
            Kind::Values(pieces, sequence) => {
                pieces.next = at;
                *sequence = Sequence::Inside { is_first: true };
            }
            Kind::Sessions(_) => {}
        }
    }

    /// The session that is being read, of a format that has sessions of agents.
    pub(super) fn session_head(&self) -> Option<&Head> {
        match &self.walk {
            Kind::Sessions(walk) => walk.head(),
            _ => None,
        }
    }

    /// Goes on at a request of such a session, to which the input has been moved.
    pub(super) fn enter_session(&mut self, at: At, head: &Head) {
        if let Kind::Sessions(walk) = &mut self.walk {
            walk.enter(at, head.clone());
        }
    }

    /// Bytes of the file that are read.
    pub(super) fn position(&self) -> u64 {
        match &self.walk {
            Kind::Rows(records, _) => records.position(),
            Kind::Lines(lines) => lines.position(),
            Kind::Values(pieces, _) => pieces.next.offset,
            Kind::Sessions(walk) => walk.position(),
        }
    }
}

impl Step {
    /// A record behind which reading can go on.
    pub(super) fn passed(at: At, outcome: Result<(), Fault>) -> Step {
        Step { at, outcome, is_last: false }
    }
}

impl Batch {
    pub(super) fn push(&mut self, entry: Entry) {
        self.entries.push_back(Entry { line: self.at.line, ..entry });
    }

    pub(super) fn pop(&mut self) -> Option<Entry> {
        self.entries.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Where the record begins.
    pub(super) fn at(&self) -> At {
        self.at
    }

    pub(super) fn begin(&mut self, at: At) {
        self.at = at;
    }

    /// A name for a conversation without one: the same however the record is come upon.
    pub(super) fn session_name(&self) -> Box<str> {
        format!("at-byte-{}", self.at.offset).into()
    }
}

impl Rules {
    fn read(&self, record: &[u8], batch: &mut Batch) -> Result<(), Fault> {
        let entry = match self.format {
            Format::Text => plain::read_line(record)?,
            format => {
                let object = Object::read(record)?;
                match format {
                    Format::AiperfMultiTurn => return aiperf::read_multi_turn(&object, batch),
                    Format::ShareGpt => return sharegpt::read(&object, self.turns, batch),
                    Format::Mooncake => mooncake::read(&object, self.block_tokens)?,
                    Format::Bailian => bailian::read(&object, self.block_tokens)?,
                    Format::AiperfSingleTurn => aiperf::read_single_turn(&object)?,
                    Format::VllmCustom => vllm::read_custom(&object)?,
                    Format::OpenAiBatch => openai_batch::read(&object)?,
                    Format::Dolly => dolly::read(&object)?,
                    _ => return plain::read_json(&object, self.turns, batch),
                }
            }
        };
        batch.push(entry);
        Ok(())
    }
}

impl Header {
    fn read(&self, row: Row<'_>) -> Result<Entry, Fault> {
        if row.width() != self.width {
            return Err(Fault::of_record(Reason::Width));
        }
        match &self.columns {
            Columns::Azure(columns) => columns.read(row),
            Columns::BurstGpt(columns) => columns.read(row),
            Columns::Plain(columns) => columns.read(row),
        }
    }
}

fn read_header(
    records: &mut Records,
    format: Format,
    options: &Options,
    input: &mut dyn BufRead,
) -> Result<Header, (At, Fault)> {
    let missing = || (At::START, Err(Fault::of_record(Reason::Empty)));
    let (at, header) = records.next(input).unwrap_or_else(missing);
    let columns = header.and_then(|header| {
        let columns = match format {
            Format::AzureLlm => Columns::Azure(azure::Columns::of(header, false)?),
            Format::AzureLmm => Columns::Azure(azure::Columns::of(header, true)?),
            Format::BurstGpt => Columns::BurstGpt(burstgpt::Columns::of(header)?),
            _ => Columns::Plain(plain::Columns::of(header, options.column.as_deref())?),
        };
        Ok(Header { columns, width: header.width() })
    });
    columns.map_err(|fault| (at, fault))
}

/// Where in a sequence of values the walk is: an array, or values one behind the other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sequence {
    Before,
    Inside { is_first: bool },
    Bare,
    Behind,
}

impl Sequence {
    /// Goes to the beginning of the next value; `false` at the end of the sequence and the file.
    pub(super) fn advance(&mut self, pieces: &mut Pieces, input: &mut dyn BufRead) -> Result<bool, Fault> {
        loop {
            let next = pieces.peek(input)?;
            match (*self, next) {
                (Sequence::Before, Some(b'[')) => {
                    pieces.take(input);
                    *self = Sequence::Inside { is_first: true };
                }
                (Sequence::Before, _) => *self = Sequence::Bare,
                (Sequence::Bare | Sequence::Behind, None) => return Ok(false),
                (Sequence::Bare, Some(_)) => return Ok(true),
                (Sequence::Behind, Some(_)) => return Err(Fault::of_record(Reason::Syntax)),
                (Sequence::Inside { .. }, Some(b']')) => {
                    pieces.take(input);
                    *self = Sequence::Behind;
                }
                (Sequence::Inside { is_first }, _) => {
                    if !is_first {
                        pieces.expect(input, b',')?;
                        pieces.peek(input)?;
                    }
                    *self = Sequence::Inside { is_first: false };
                    return Ok(true);
                }
            }
        }
    }
}

/// Whether reading cannot go on behind a value: its end was not found. One that is too long was passed.
pub(super) fn is_last_value(value: &Result<&[u8], Fault>) -> bool {
    value.as_ref().is_err_and(|fault| fault.reason != Reason::TooLong)
}

/// A column that counts from the beginning of a value is none of the file, unless a line begins in between.
pub(super) fn without_column(fault: Fault) -> Fault {
    match fault.place {
        Place::Column(_) if fault.lines_down == 0 => Fault { place: Place::Record, ..fault },
        _ => fault,
    }
}

/// U+FEFF in UTF-8.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
