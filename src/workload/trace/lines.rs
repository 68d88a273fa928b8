//! The lines of a file, with their numbers and places, none of them longer than a bound.
//!
//! Owns line ends and blank lines. A line's content is not looked at. The decoder of [`wire::lines`](crate::wire::lines) is handed bytes as they arrive and fails for good on
//! a long line; here bytes are asked for, and reading goes on behind it.

use std::io::BufRead;

use memchr::memchr;

use super::csv::fill_buf;
use super::error::{Fault, Reason};
use super::parser::At;

/// Walks the lines of an input that it is handed with each call.
#[derive(Debug)]
pub(super) struct Lines {
    next: At,
    bytes_max: usize,
    line: Vec<u8>,
}

impl Lines {
    pub(super) fn new(start: At, bytes_max: usize) -> Lines {
        Lines { next: start, bytes_max, line: Vec::new() }
    }

    /// The next line that is not blank, without its end, and where it begins. `None` at the end of the input.
    pub(super) fn next(&mut self, input: &mut dyn BufRead) -> Option<(At, Result<&[u8], Fault>)> {
        loop {
            let at = self.next;
            match self.fill(input) {
                Ok(false) => return None,
                Ok(true) if self.line.iter().all(u8::is_ascii_whitespace) => {}
                Ok(true) => return Some((at, Ok(&self.line))),
                Err(fault) => return Some((at, Err(fault))),
            }
        }
    }

    /// Goes on at a line to which the input has been moved.
    pub(super) fn resume(&mut self, at: At) {
        self.next = at;
    }

    pub(super) fn position(&self) -> u64 {
        self.next.offset
    }

    /// Reads one line; `false` if there is none.
    fn fill(&mut self, input: &mut dyn BufRead) -> Result<bool, Fault> {
        self.line.clear();
        let read = self.append_line(input)?;
        if read.bytes == 0 {
            return Ok(false);
        }
        self.next.line += 1;
        self.next.offset += read.bytes;
        if read.is_too_long {
            return Err(Fault::of_record(Reason::TooLong));
        }
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(true)
    }

    /// Takes everything up to the end of the line, and keeps what is within the bound.
    fn append_line(&mut self, input: &mut dyn BufRead) -> Result<Taken, Fault> {
        let mut taken = Taken { bytes: 0, is_too_long: false };
        loop {
            let available = fill_buf(input)?;
            if available.is_empty() {
                return Ok(taken);
            }
            let end = memchr(b'\n', available);
            let piece = &available[..end.unwrap_or(available.len())];
            if self.line.len() + piece.len() > self.bytes_max {
                taken.is_too_long = true;
            } else if !taken.is_too_long {
                self.line.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            input.consume(used);
            taken.bytes += used as u64;
            if end.is_some() {
                return Ok(taken);
            }
        }
    }
}

struct Taken {
    bytes: u64,
    is_too_long: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], bytes_max: usize) -> Vec<(u64, u64, Result<Vec<u8>, Reason>)> {
        let mut input = text;
        let mut lines = Lines::new(At::START, bytes_max);
        let mut found = Vec::new();
        while let Some((at, line)) = lines.next(&mut input) {
            found.push((at.line, at.offset, line.map(<[u8]>::to_vec).map_err(|fault| fault.reason)));
        }
        found
    }

    #[test]
    fn lines_have_their_numbers_and_places() {
        assert_eq!(
            read(b"one\r\n\n  \ntwo\nthree", 5),
            [(1, 0, Ok(b"one".to_vec())), (4, 9, Ok(b"two".to_vec())), (5, 13, Ok(b"three".to_vec()))]
        );
    }

    #[test]
    fn a_long_line_is_told_and_passed() {
        assert_eq!(
            read(b"toolong\nshort\n", 5),
            [(1, 0, Err(Reason::TooLong)), (2, 8, Ok(b"short".to_vec()))]
        );
    }
}
