//! The framing of a body: by length, chunked, or by the end of the connection (RFC 9112 sections 6 and 7).
//!
//! Data is handed on where it lies in the input; nothing is stored but a position in the framing. Chunk framing
//! takes CRLF and nothing else for a line end, unlike the head.

use super::{End, Error, Framing, Limits, Part, Step};

/// Position in a body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Body {
    Chunked(Chunked),
    Close,
    /// Bytes that are still to come. An absent body is one of length 0.
    Length(u64),
}

impl Body {
    pub(super) fn new(framing: Framing) -> Body {
        match framing {
            Framing::Chunked => Body::Chunked(Chunked::default()),
            Framing::Close => Body::Close,
            Framing::Length(bytes) => Body::Length(bytes),
            Framing::None => Body::Length(0),
        }
    }

    #[inline]
    pub(super) fn next<'s>(&mut self, input: &'s [u8], limits: &Limits) -> Result<Step<'s>, Error> {
        match self {
            Body::Chunked(chunked) => chunked.next(input, limits),
            Body::Close => Ok(data(input)),
            Body::Length(0) => Ok(Step { used: 0, part: Some(Part::End) }),
            Body::Length(left) => {
                let step = data(&input[..available(*left, input)]);
                *left -= step.used as u64;
                Ok(step)
            }
        }
    }

    pub(super) fn on_eof(self) -> Result<End, Error> {
        match self {
            Body::Close => Ok(End::ByClose),
            Body::Length(0) | Body::Chunked(Chunked { at: At::End, .. }) => Ok(End::Before),
            Body::Chunked(_) | Body::Length(_) => Err(Error::Truncated),
        }
    }
}

/// Position in the chunked coding.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Chunked {
    at: At,
    /// In a size line the size so far; in the data the bytes of it that are still to come.
    size: u64,
    /// Bytes of this size line, or of all trailer lines, so far.
    line_bytes: usize,
}

/// What the next byte is.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum At {
    /// The first digit of a chunk's size.
    #[default]
    SizeStart,
    /// A further digit, or what ends the number.
    SizeDigit,
    /// After blanks behind the number: only an extension or the line end may follow.
    SizeBlank,
    /// Inside a chunk extension, which is skipped.
    Extension,
    /// The LF of a size line.
    SizeLf,
    /// Data of a chunk.
    Data,
    /// The CR after the data.
    DataCr,
    /// The LF after the data.
    DataLf,
    /// The first byte of a trailer line, or the CR of the last line.
    TrailerStart,
    /// Inside a trailer line, which is skipped.
    Trailer,
    /// The LF of a trailer line.
    TrailerLf,
    /// The LF of the last line.
    EndLf,
    /// Nothing: the message is over.
    End,
}

impl Chunked {
    // The plain version walks the framing with `on_framing_byte`, one byte at a time, and hands on what stands at
    // `Data`. A server that streams tokens sends chunks of which each is one read: `f8 CR LF data CR LF`. So two
    // sequences are recognised whole, where they stand whole in the input: a bare size line of up to seven
    // digits, and the CRLF behind the data, which is used in the same step as the data. Everything else, any cut
    // and every fault go through the plain version, which therefore alone decides what is an error.
    #[inline]
    fn next<'s>(&mut self, input: &'s [u8], limits: &Limits) -> Result<Step<'s>, Error> {
        let mut used = 0;
        if self.at == At::SizeStart
            && let Some((size, line_bytes)) = bare_size_line(input)
            && line_bytes <= limits.chunk_line_bytes_max
            && u64::from(size) <= limits.chunk_size_max
        {
            self.at = At::Data;
            self.size = u64::from(size);
            used = line_bytes;
        }
        while self.at != At::Data {
            if self.at == At::End {
                return Ok(Step { used, part: Some(Part::End) });
            }
            let Some(&byte) = input.get(used) else { return Ok(Step { used, part: None }) };
            self.on_framing_byte(byte, limits)?;
            used += 1;
        }
        Ok(self.next_data(input, used))
    }

    /// The data that begins at `used`, with the CRLF behind it if both bytes are there.
    #[inline]
    fn next_data<'s>(&mut self, input: &'s [u8], used: usize) -> Step<'s> {
        let rest = &input[used..];
        let (piece, after) = rest.split_at(available(self.size, rest));
        if piece.is_empty() {
            return Step { used, part: None };
        }
        self.size -= piece.len() as u64;
        let mut used = used + piece.len();
        if self.size == 0 {
            self.at = At::DataCr;
            if crate::wire::after(after, b"\r\n").is_some() {
                self.start_line(At::SizeStart);
                used += 2;
            }
        }
        Step { used, part: Some(Part::Body(piece)) }
    }

    fn on_framing_byte(&mut self, byte: u8, limits: &Limits) -> Result<(), Error> {
        match self.at {
            At::SizeStart | At::SizeDigit | At::SizeBlank | At::Extension | At::SizeLf => {
                self.line_bytes += 1;
                if self.line_bytes > limits.chunk_line_bytes_max {
                    return Err(Error::ChunkLineTooLong);
                }
                self.on_size_byte(byte, limits)
            }
            At::DataCr if byte == b'\r' => {
                self.at = At::DataLf;
                Ok(())
            }
            At::DataLf if byte == b'\n' => {
                self.start_line(At::SizeStart);
                Ok(())
            }
            At::DataCr | At::DataLf => Err(Error::ChunkDataEnd),
            At::TrailerStart | At::Trailer | At::TrailerLf | At::EndLf => {
                self.line_bytes += 1;
                if self.line_bytes > limits.trailer_bytes_max {
                    return Err(Error::TrailerTooLong);
                }
                self.on_trailer_byte(byte)
            }
            At::Data | At::End => Ok(()),
        }
    }

    fn on_size_byte(&mut self, byte: u8, limits: &Limits) -> Result<(), Error> {
        let number_is_over = self.at != At::SizeStart;
        self.at = match (self.at, byte) {
            (At::SizeLf, b'\n') if self.size == 0 => {
                self.start_line(At::TrailerStart);
                At::TrailerStart
            }
            (At::SizeLf, b'\n') => At::Data,
            (At::SizeLf, _) => return Err(Error::ChunkLineEnd),
            (At::Extension, b'\r') => At::SizeLf,
            (At::Extension, b'\n') => return Err(Error::ChunkLineEnd),
            (At::Extension, _) => At::Extension,
            (_, b'\r') if number_is_over => At::SizeLf,
            (_, b'\n') if number_is_over => return Err(Error::ChunkLineEnd),
            (_, b';') if number_is_over => At::Extension,
            (_, b' ' | b'\t') if number_is_over => At::SizeBlank,
            (At::SizeStart | At::SizeDigit, _) => {
                let digit = hex_digit(byte).ok_or(Error::ChunkSize)?;
                // No overflow on the way: a size within the limit times 16 may still leave u64.
                self.size = self.size.checked_mul(16).ok_or(Error::ChunkSizeTooLarge)? | u64::from(digit);
                if self.size > limits.chunk_size_max {
                    return Err(Error::ChunkSizeTooLarge);
                }
                At::SizeDigit
            }
            _ => return Err(Error::ChunkSize),
        };
        Ok(())
    }

    fn on_trailer_byte(&mut self, byte: u8) -> Result<(), Error> {
        self.at = match (self.at, byte) {
            (At::TrailerStart, b'\r') => At::EndLf,
            (At::EndLf, b'\n') => At::End,
            (At::Trailer, b'\r') => At::TrailerLf,
            (At::TrailerLf, b'\n') => At::TrailerStart,
            (At::EndLf | At::TrailerLf, _) | (_, b'\n') => return Err(Error::Trailer),
            _ => At::Trailer,
        };
        Ok(())
    }

    #[inline]
    fn start_line(&mut self, at: At) {
        *self = Chunked { at, size: 0, line_bytes: 0 };
    }
}

/// A step over bytes that are all data.
#[inline]
fn data(piece: &[u8]) -> Step<'_> {
    let part = if piece.is_empty() { None } else { Some(Part::Body(piece)) };
    Step { used: piece.len(), part }
}

/// How many of the `left` bytes are in the input.
#[inline]
fn available(left: u64, input: &[u8]) -> usize {
    usize::try_from(left).map_or(input.len(), |left| left.min(input.len()))
}

/// The size and the length of a size line that is nothing but one to seven digits and CRLF, and not the last.
#[inline]
fn bare_size_line(input: &[u8]) -> Option<(u32, usize)> {
    let mut size = 0;
    for (i, &byte) in input.iter().take(8).enumerate() {
        let Some(digit) = hex_digit(byte) else {
            let bare = size > 0 && byte == b'\r' && input.get(i + 1) == Some(&b'\n');
            return bare.then_some((size, i + 2));
        };
        if i == 7 {
            return None;
        }
        size = size << 4 | u32::from(digit);
    }
    None
}

#[inline]
fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    }
}
