//! Event streams by the algorithm of the WHATWG ("Interpreting an event stream"), over memchr.
//!
//! Bytes of a body go in, one event at a time comes out. Data is bytes, not text, since what is not UTF-8 in it
//! is for the reader of the data to judge, and `[DONE]` is data like any other. Two departures from the standard,
//! both because a request must not look successful that was not: a field named `error` is reported, and the block
//! that the end of the body cuts off can be had from [`Decoder::finish`]. Ids and retry times are read over: a
//! request is never resumed.

mod fuzz;

#[cfg(test)]
mod tests;

use std::fmt;

use memchr::{memchr, memchr2};

use super::after;

#[doc(hidden)]
pub use fuzz::fuzz_sse;

/// Decoder of the event stream in one body; [`reset`](Self::reset) makes it ready for the next.
///
/// Event data lies in the input where it can, which it does when all of an event came in one read and has one data
/// line. Otherwise it is put together in the decoder.
// What an event that came in one read needs stands together at the end.
#[derive(Debug)]
#[repr(C)]
pub struct Decoder {
    limits: Limits,
    /// The data of the block where it could not be left in an input, and after an event that of the event.
    /// Meaningful only as far as `block` says.
    data: Vec<u8>,
    /// The bytes so far of a line that began in an earlier input.
    line: Vec<u8>,
    phase: Phase,
    /// The last line ended in CR: a LF that comes next belongs to that line end.
    skip_lf: bool,
    block: Block,
}

/// A dispatched event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Event<'a> {
    /// The data lines joined by LF; in a block without any, the value of its `error` field.
    pub data: &'a [u8],
    /// The type of the event.
    pub name: Name,
    /// Whether a field named `error` stood in the block, with a value other than empty, `null` and `false`.
    pub error_field: bool,
}

/// The type of an event, as far as it decides something.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Name {
    /// None was given, or `message`, which is the default.
    #[default]
    None,
    /// `error`.
    Error,
    /// Any other.
    Other,
}

/// What one call of [`Decoder::next`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step<'a> {
    /// Bytes of the input that are done with.
    pub used: usize,
    /// The event that they completed; none if all of the input was used and more is needed.
    pub event: Option<Event<'a>>,
}

/// Bounds on what a peer may make us keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of one line without its end. Default 16 MiB.
    pub line_bytes_max: usize,
    /// Bytes of the data of one event. Default 16 MiB.
    pub event_bytes_max: usize,
}

/// What is wrong with an event stream: nothing but its size can be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Error {
    /// The data of an event is over the limit.
    EventTooLong,
    /// A line is over the limit.
    LineTooLong,
}

/// Where in the stream the next byte stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Before the first line, with so many bytes of a byte order mark seen.
    Start(u8),
    /// In the lines.
    Lines,
    /// Broken: every further call says so again.
    Failed(Error),
}

/// What the lines of the block so far add up to.
#[derive(Clone, Copy, Default, Debug)]
struct Block {
    /// A data line stood in it, whose data is in `Decoder::data` (or in the input at hand).
    has_data: bool,
    /// An error field stood in it, whose value is in `Decoder::data` if there is no data line.
    error_field: bool,
    name: Name,
}

/// Where the data of the event lies that a blank line completed.
enum Found<'s> {
    Input(&'s [u8]),
    Decoder,
}

impl Decoder {
    /// Where what an event in one read needs begins, from the start of this struct.
    pub(crate) const HOT: usize = std::mem::offset_of!(Decoder, line);

    /// A decoder at the beginning of a stream.
    #[must_use]
    pub fn new(limits: Limits) -> Decoder {
        Decoder {
            limits,
            phase: Phase::Start(0),
            skip_lf: false,
            block: Block::default(),
            line: Vec::new(),
            data: Vec::new(),
        }
    }

    /// Forgets the stream and waits for the first byte of the next one. Memory up to 4 KiB per buffer is kept.
    pub fn reset(&mut self) {
        self.phase = Phase::Start(0);
        self.skip_lf = false;
        self.block = Block::default();
        for buffer in [&mut self.line, &mut self.data] {
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES);
        }
    }

    /// Takes unread bytes of the body, up to and including the end of the first event that they complete.
    ///
    /// A line end that is a CR completes the line at once, whatever follows it, so that no event waits for a byte
    /// after its own.
    ///
    /// # Errors
    /// A limit is passed. The decoder stays in that error until it is reset.
    // The plain version: take line by line, put the parts of a cut line together in `line`, append the value of
    // each data line to `data`, and give `data` at a blank line. The usual event is one data line, all of it in
    // this input: its value is left where it is until the blank line, and goes to `data` only if another data
    // line or the end of the input comes first. The blank line behind it is seen without a search.
    pub fn next<'s>(&'s mut self, input: &'s [u8]) -> Result<Step<'s>, Error> {
        let mut at = 0;
        if self.phase != Phase::Lines {
            at = self.start(input)?;
        }
        if self.skip_lf && at < input.len() {
            self.skip_lf = false;
            at += usize::from(input[at] == b'\n');
        }
        // The value of the only data line so far, while it lies in this input.
        let mut only: Option<&'s [u8]> = None;
        while at < input.len() {
            let rest = &input[at..];
            let Some(len) = line_len(rest) else {
                self.keep_line(rest)?;
                at = input.len();
                break;
            };
            at += len + 1;
            if rest[len] == b'\r' {
                match rest.get(len + 1) {
                    Some(b'\n') => at += 1,
                    Some(_) => {}
                    None => self.skip_lf = true,
                }
            }
            if !self.line.is_empty() {
                self.keep_line(&rest[..len])?;
                self.on_kept_line()?;
            } else if len > 0 {
                self.on_line(&rest[..len], &mut only)?;
            } else if let Some((found, block)) = self.on_blank_line(only) {
                let data = match found {
                    Found::Input(data) => data,
                    Found::Decoder => &self.data,
                };
                let event = Event { data, name: block.name, error_field: block.error_field };
                return Ok(Step { used: at, event: Some(event) });
            }
        }
        if let Some(value) = only {
            self.keep_data(value)?;
        }
        Ok(Step { used: at, event: None })
    }

    /// The body ended properly: the event, if any, of the block that lacks its blank line, where a line without
    /// an end counts as one. The standard drops that block; whether to believe it is for the caller to decide.
    ///
    /// # Errors
    /// A limit is passed, now or before.
    pub fn finish(&mut self) -> Result<Option<Event<'_>>, Error> {
        match self.phase {
            Phase::Start(seen) => self.line.extend_from_slice(&BOM[..usize::from(seen)]),
            Phase::Lines => {}
            Phase::Failed(error) => return Err(error),
        }
        self.phase = Phase::Lines;
        self.skip_lf = false;
        if !self.line.is_empty() {
            self.on_kept_line()?;
        }
        let Some((_, block)) = self.on_blank_line(None) else { return Ok(None) };
        Ok(Some(Event { data: &self.data, name: block.name, error_field: block.error_field }))
    }

    /// Bytes of the stream kept inside, at most twice the larger limit.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// The calls that are not simply in the lines: gives how much of the input was a byte order mark.
    #[cold]
    fn start(&mut self, input: &[u8]) -> Result<usize, Error> {
        let seen = match self.phase {
            Phase::Start(seen) => usize::from(seen),
            Phase::Lines => return Ok(0),
            Phase::Failed(error) => return Err(error),
        };
        let expected = &BOM[seen..];
        let same = expected.iter().zip(input).take_while(|(a, b)| a == b).count();
        if same == expected.len() {
            self.phase = Phase::Lines;
        } else if same == input.len() {
            self.phase = Phase::Start((seen + same) as u8);
        } else {
            // No mark after all. What looked like its beginning in earlier inputs belongs to the first line.
            self.phase = Phase::Lines;
            self.keep_line(&BOM[..seen])?;
            return Ok(0);
        }
        Ok(same)
    }

    #[inline]
    fn on_line<'s>(&mut self, line: &'s [u8], only: &mut Option<&'s [u8]>) -> Result<(), Error> {
        if line.len() > self.limits.line_bytes_max {
            return Err(self.fail(Error::LineTooLong));
        }
        // `data:` and `data: `, without a search for the colon: nearly every line.
        let value = match after(line, b"data:") {
            Some([b' ', value @ ..]) | Some(value) => value,
            None => return self.on_other_line(line, only),
        };
        self.on_data(value, only)
    }

    fn on_other_line<'s>(&mut self, line: &'s [u8], only: &mut Option<&'s [u8]>) -> Result<(), Error> {
        let colon = memchr(b':', line).unwrap_or(line.len());
        let (name, rest) = line.split_at(colon);
        let value = rest.strip_prefix(b":").unwrap_or(rest);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => return self.on_data(value, only),
            b"event" => self.block.name = Name::from_value(value),
            b"error" => self.on_error_field(value),
            // Comments (an empty name), ids, retry times and names unknown to the standard.
            _ => {}
        }
        Ok(())
    }

    #[inline]
    fn on_data<'s>(&mut self, value: &'s [u8], only: &mut Option<&'s [u8]>) -> Result<(), Error> {
        if let Some(first) = only.take() {
            self.keep_data(first)?;
        }
        if self.block.has_data {
            return self.keep_data(value);
        }
        if value.len() > self.limits.event_bytes_max {
            return Err(self.fail(Error::EventTooLong));
        }
        *only = Some(value);
        Ok(())
    }

    /// A line that was put together in `line`: its value does not lie in an input. It is the first to end in the
    /// input at hand, so no other value lies there.
    fn on_kept_line(&mut self) -> Result<(), Error> {
        let mut line = std::mem::take(&mut self.line);
        let mut value = None;
        self.on_line(&line, &mut value)?;
        if let Some(value) = value {
            self.keep_data(value)?;
        }
        line.clear();
        self.line = line;
        Ok(())
    }

    /// Ends the block; gives it and the place of its data if that makes an event.
    #[inline]
    fn on_blank_line<'s>(&mut self, only: Option<&'s [u8]>) -> Option<(Found<'s>, Block)> {
        let block = std::mem::take(&mut self.block);
        match only {
            Some(value) => Some((Found::Input(value), block)),
            None if block.has_data || block.error_field => Some((Found::Decoder, block)),
            None => None,
        }
    }

    /// Not in the standard, but some servers report a failure so (D5 of the wire cases).
    fn on_error_field(&mut self, value: &[u8]) {
        if matches!(value.trim_ascii(), b"" | b"null" | b"false") {
            return;
        }
        if !self.block.has_data && !self.block.error_field {
            self.data.clear();
            self.data.extend_from_slice(value);
        }
        self.block.error_field = true;
    }

    fn keep_line(&mut self, piece: &[u8]) -> Result<(), Error> {
        if self.line.len() + piece.len() > self.limits.line_bytes_max {
            return Err(self.fail(Error::LineTooLong));
        }
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn keep_data(&mut self, value: &[u8]) -> Result<(), Error> {
        if !self.block.has_data {
            // Left over from the event before, or the value of an error field, to which data is preferred.
            self.data.clear();
        }
        let joint = usize::from(self.block.has_data);
        if self.data.len() + joint + value.len() > self.limits.event_bytes_max {
            return Err(self.fail(Error::EventTooLong));
        }
        self.data.extend_from_slice(&b"\n"[..joint]);
        self.data.extend_from_slice(value);
        self.block.has_data = true;
        Ok(())
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.phase = Phase::Failed(error);
        error
    }
}

impl Name {
    fn from_value(value: &[u8]) -> Name {
        match value {
            b"" | b"message" => Name::None,
            b"error" => Name::Error,
            _ => Name::Other,
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { line_bytes_max: 16 << 20, event_bytes_max: 16 << 20 }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::EventTooLong => "the data of an event is too long",
            Error::LineTooLong => "a line of the event stream is too long",
        })
    }
}

impl std::error::Error for Error {}

/// Memory per buffer that is kept between two streams.
const KEPT_BYTES: usize = 4 << 10;

const BOM: [u8; 3] = *b"\xEF\xBB\xBF";

/// The length of the line that the input begins with; none if its end is not there.
#[inline]
fn line_len(input: &[u8]) -> Option<usize> {
    match input {
        [b'\n' | b'\r', ..] => Some(0),
        _ => memchr2(b'\n', b'\r', input),
    }
}
