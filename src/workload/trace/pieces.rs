//! JSON values of a long text, one after another, without the whole of it in memory.
//!
//! Owns where a value ends: brackets are counted and strings are passed over. Whether what lies between is JSON is
//! found out by whoever reads the value.

use std::io::BufRead;

use memchr::memchr2;

use super::csv::fill_buf;
use super::error::{Fault, Reason};
use super::parser::At;

/// Walks the bytes of an input that it is handed with each call.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) next: At,
    bytes_max: usize,
    value: Vec<u8>,
}

/// Where in a value the walk is.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    depth: u64,
    in_string: bool,
    is_escaped: bool,
}

impl Pieces {
    pub(super) fn new(start: At, bytes_max: usize) -> Pieces {
        Pieces { next: start, bytes_max, value: Vec::new() }
    }

    /// Passes blanks and shows the byte behind them; `None` at the end of the input.
    pub(super) fn peek(&mut self, input: &mut dyn BufRead) -> Result<Option<u8>, Fault> {
        loop {
            let available = fill_buf(input)?;
            if available.is_empty() {
                return Ok(None);
            }
            let blank = available.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let found = available.get(blank).copied();
            self.next.pass(&available[..blank]);
            input.consume(blank);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// Passes the byte that was shown.
    pub(super) fn take(&mut self, input: &mut dyn BufRead) {
        self.next.offset += 1;
        input.consume(1);
    }

    /// Passes blanks and the byte `wanted`, which must be there.
    pub(super) fn expect(&mut self, input: &mut dyn BufRead, wanted: u8) -> Result<(), Fault> {
        match self.peek(input)? {
            Some(byte) if byte == wanted => {
                self.take(input);
                Ok(())
            }
            Some(_) => Err(Fault::of_record(Reason::Syntax)),
            None => Err(Fault::of_record(Reason::CutOff)),
        }
    }

    /// The value that begins behind the blanks. One that is too long is passed all the same.
    pub(super) fn value(&mut self, input: &mut dyn BufRead) -> Result<&[u8], Fault> {
        match self.peek(input)? {
            None => return Err(Fault::of_record(Reason::CutOff)),
            Some(b',' | b':' | b']' | b'}') => return Err(Fault::of_record(Reason::Syntax)),
            Some(_) => self.value.clear(),
        }
        let mut inside = Inside::default();
        let mut is_too_long = false;
        loop {
            let available = fill_buf(input)?;
            if available.is_empty() {
                if inside.depth == 0 && !inside.in_string {
                    break;
                }
                return Err(Fault::of_record(Reason::CutOff));
            }
            let (used, is_whole) = inside.walk(available, self.value.is_empty() && !is_too_long);
            if self.value.len() + used > self.bytes_max {
                is_too_long = true;
            } else if !is_too_long {
                self.value.extend_from_slice(&available[..used]);
            }
            self.next.pass(&available[..used]);
            input.consume(used);
            if is_whole {
                break;
            }
        }
        if is_too_long { Err(Fault::of_record(Reason::TooLong)) } else { Ok(&self.value) }
    }
}

impl Inside {
    /// Goes on to the end of the value, or of the bytes: how many belong to it, and whether it ends there. `is_first`:
    /// the first of these bytes is that of the value.
    fn walk(&mut self, bytes: &[u8], is_first: bool) -> (usize, bool) {
        let mut at = 0;
        while at < bytes.len() {
            if self.in_string {
                at += self.walk_string(&bytes[at..]);
                if !self.in_string && self.depth == 0 {
                    return (at, true);
                }
                continue;
            }
            match bytes[at] {
                b'"' if self.depth > 0 || (at == 0 && is_first) => self.in_string = true,
                b'[' | b'{' if self.depth > 0 || (at == 0 && is_first) => self.depth += 1,
                // A number or a word, and then the next thing.
                b'"' | b'[' | b'{' => return (at, true),
                b']' | b'}' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return (at + 1, true);
                    }
                }
                b',' | b':' | b']' | b'}' if self.depth == 0 => return (at, true),
                byte if self.depth == 0 && byte.is_ascii_whitespace() => return (at, true),
                _ => {}
            }
            at += 1;
        }
        (at, false)
    }

    /// Goes on to behind the end of the string, or of the bytes.
    fn walk_string(&mut self, bytes: &[u8]) -> usize {
        let mut at = 0;
        if self.is_escaped {
            self.is_escaped = false;
            at = 1;
        }
        while let Some(len) = bytes.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
            at += len + 1;
            if bytes[at - 1] == b'"' {
                self.in_string = false;
                return at;
            }
            if at == bytes.len() {
                self.is_escaped = true;
                return at;
            }
            at += 1;
        }
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn values(text: &str, chunk: usize, bytes_max: usize) -> Vec<Result<String, Reason>> {
        let mut input = BufReader::with_capacity(chunk, text.as_bytes());
        let mut pieces = Pieces::new(At::START, bytes_max);
        let mut found = Vec::new();
        while let Ok(Some(byte)) = pieces.peek(&mut input) {
            if matches!(byte, b',' | b'[' | b']' if found.len() < 9) && byte != b'[' {
                pieces.take(&mut input);
                continue;
            }
            let value = pieces.value(&mut input);
            let stop = value.is_err() && bytes_max > 100;
            found.push(value.map(|v| String::from_utf8(v.to_vec()).unwrap()).map_err(|fault| fault.reason));
            if stop {
                break;
            }
        }
        found
    }

    #[test]
    fn values_end_where_they_end_however_the_bytes_are_cut() {
        let text =
            r#" {"a": "\"}\\", "b": [1, {"c": "]"}]} , 12 ,"x\\\"",true,[[],{}],{"d":"é"}{"e":1}"f" 1e5"#;
        let expected = [
            r#"{"a": "\"}\\", "b": [1, {"c": "]"}]}"#,
            "12",
            r#""x\\\"""#,
            "true",
            "[[],{}]",
            r#"{"d":"é"}"#,
            r#"{"e":1}"#,
            r#""f""#,
            "1e5",
        ];
        for chunk in 1..text.len() + 1 {
            let found: Vec<_> = values(text, chunk, 1000).into_iter().map(Result::unwrap).collect();
            assert_eq!(found, expected, "{chunk}");
        }
    }

    #[test]
    fn an_open_value_at_the_end_is_cut_off() {
        for text in [r#"{"a": 1"#, r#"["#, r#""abc"#, r#""abc\""#, r#"{"a": "}"#] {
            assert_eq!(values(text, 3, 1000), [Err(Reason::CutOff)], "{text}");
        }
    }

    #[test]
    fn a_long_value_is_told_and_passed() {
        for chunk in 1..20 {
            let found = values(r#"{"a": "123456"}, {"b": 1}, "1234567890", 7"#, chunk, 8);
            let expected =
                [Err(Reason::TooLong), Ok(r#"{"b": 1}"#.to_owned()), Err(Reason::TooLong), Ok("7".into())];
            assert_eq!(found, expected, "{chunk}");
        }
    }
}
