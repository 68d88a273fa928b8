//! Lines of NDJSON: LF or CRLF ends a line, blank lines are skipped.
//!
//! What a line holds is not looked at. A CR elsewhere than before the LF is part of the line.

use std::fmt;

use memchr::memchr;

/// Decoder of the lines in one body; [`reset`](Self::reset) makes it ready for the next.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    failed: bool,
    /// The bytes so far of a line that began in an earlier input.
    partial: Vec<u8>,
    /// The last line that was put together here, while the caller may look at it.
    whole: Vec<u8>,
}

/// What one call of [`Decoder::next`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step<'a> {
    /// Bytes of the input that are done with.
    pub used: usize,
    /// The line that they completed, without its end and with something other than blanks in it; none if all of
    /// the input was used and more is needed.
    pub line: Option<&'a [u8]>,
}

/// Bounds on what a peer may make us keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of one line, with the CR of its end and without the LF. Default 16 MiB.
    pub line_bytes_max: usize,
}

/// What is wrong with the lines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Error {
    /// A line is over the limit.
    LineTooLong,
}

impl Decoder {
    /// A decoder at the beginning of a body.
    #[must_use]
    pub fn new(limits: Limits) -> Decoder {
        Decoder { limits, failed: false, partial: Vec::new(), whole: Vec::new() }
    }

    /// Forgets the body and waits for the first byte of the next one. Memory up to 4 KiB per buffer is kept.
    pub fn reset(&mut self) {
        self.failed = false;
        for buffer in [&mut self.partial, &mut self.whole] {
            buffer.clear();
            buffer.shrink_to(KEPT_BYTES);
        }
    }

    /// Takes unread bytes of the body, up to and including the end of the first line in them that is not blank.
    /// The line lies in the input, unless it began in an earlier one.
    ///
    /// # Errors
    /// The limit is passed. The decoder stays in that error until it is reset.
    pub fn next<'s>(&'s mut self, input: &'s [u8]) -> Result<Step<'s>, Error> {
        let mut at = 0;
        while let Some(len) = memchr(b'\n', &input[at..]) {
            let piece = &input[at..at + len];
            self.check(piece)?;
            at += len + 1;
            if self.partial.is_empty() {
                if !is_blank(piece) {
                    return Ok(Step { used: at, line: Some(without_cr(piece)) });
                }
                continue;
            }
            self.partial.extend_from_slice(piece);
            if self.take_partial() {
                return Ok(Step { used: at, line: Some(without_cr(&self.whole)) });
            }
        }
        self.check(&input[at..])?;
        self.partial.extend_from_slice(&input[at..]);
        Ok(Step { used: input.len(), line: None })
    }

    /// The body ended properly: the line, if any, that lacks its end.
    ///
    /// # Errors
    /// The limit was passed before.
    pub fn finish(&mut self) -> Result<Option<&[u8]>, Error> {
        self.check(b"")?;
        Ok(if self.take_partial() { Some(without_cr(&self.whole)) } else { None })
    }

    /// Bytes of the body kept inside, at most twice the limit.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.partial.len() + self.whole.len()
    }

    fn check(&mut self, more: &[u8]) -> Result<(), Error> {
        self.failed |= self.partial.len() + more.len() > self.limits.line_bytes_max;
        if self.failed { Err(Error::LineTooLong) } else { Ok(()) }
    }

    /// Makes the partial line the whole one; says whether it is worth a step.
    fn take_partial(&mut self) -> bool {
        std::mem::swap(&mut self.partial, &mut self.whole);
        self.partial.clear();
        !is_blank(&self.whole)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { line_bytes_max: 16 << 20 }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::LineTooLong => "a line of the body is too long",
        })
    }
}

impl std::error::Error for Error {}

/// Memory per buffer that is kept between two bodies.
const KEPT_BYTES: usize = 4 << 10;

fn is_blank(line: &[u8]) -> bool {
    line.trim_ascii().is_empty()
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines and how it ended, for a body that comes in these pieces.
    fn read(pieces: &[&[u8]], limits: Limits) -> (Vec<Vec<u8>>, Result<(), Error>) {
        let mut decoder = Decoder::new(limits);
        let mut lines = Vec::new();
        let result = read_into(&mut decoder, pieces, &mut lines);
        assert!(decoder.buffered_bytes() <= 2 * limits.line_bytes_max);
        (lines, result)
    }

    fn read_into(decoder: &mut Decoder, pieces: &[&[u8]], lines: &mut Vec<Vec<u8>>) -> Result<(), Error> {
        for piece in pieces {
            let mut input = *piece;
            loop {
                let step = decoder.next(input)?;
                input = &input[step.used..];
                let Some(line) = step.line else { break };
                lines.push(line.to_vec());
            }
            assert!(input.is_empty());
        }
        lines.extend(decoder.finish()?.map(<[u8]>::to_vec));
        Ok(())
    }

    #[test]
    fn lines_end_in_lf_or_crlf_and_blank_ones_are_skipped() {
        let (lines, result) = read(&[b"a\nb\r\n\n\r\n  \t\nc\rd\n{\r"], Limits::default());
        assert_eq!(lines, [&b"a"[..], b"b", b"c\rd", b"{"]);
        assert_eq!(result, Ok(()));
    }

    #[test]
    fn every_split_gives_the_same_lines() {
        let body = b"{\"a\":1}\n\r\n\n{\"b\":2}\r\n \nlonger than most\r\r\nx";
        for line_bytes_max in [1, 7, 8, 16, 64] {
            let limits = Limits { line_bytes_max };
            let whole = read(&[body], limits);
            for cut in 0..=body.len() {
                assert_eq!(read(&[&body[..cut], &body[cut..]], limits), whole, "cut at {cut}");
            }
            assert_eq!(read(&body.chunks(1).collect::<Vec<_>>(), limits), whole);
        }
    }

    #[test]
    fn a_line_at_the_limit_passes_and_one_over_it_does_not() {
        let limits = Limits { line_bytes_max: 4 };
        assert_eq!(read(&[b"abcd\n"], limits).1, Ok(()));
        assert_eq!(read(&[b"abc\r\n"], limits).1, Ok(()));
        assert_eq!(read(&[b"abcd"], limits).1, Ok(()));
        assert_eq!(read(&[b"ok\nabcde"], limits), (vec![b"ok".to_vec()], Err(Error::LineTooLong)));
    }

    #[test]
    fn an_error_stays_until_the_reset() {
        let mut decoder = Decoder::new(Limits { line_bytes_max: 4 });
        assert_eq!(decoder.next(b"abcde\nf\n"), Err(Error::LineTooLong));
        assert_eq!(decoder.next(b"f\n"), Err(Error::LineTooLong));
        assert_eq!(decoder.finish(), Err(Error::LineTooLong));
        decoder.reset();
        assert_eq!(decoder.next(b"f\n"), Ok(Step { used: 2, line: Some(b"f") }));
    }

    #[test]
    fn a_whole_line_is_not_copied() {
        let input = b"{\"a\":1}\r\n{\"b\":2}\n";
        let mut decoder = Decoder::new(Limits::default());
        let step = decoder.next(input).unwrap();
        assert_eq!(step.line.unwrap().as_ptr_range(), input[..7].as_ptr_range());
    }
}
