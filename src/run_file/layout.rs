//! How a run file is laid out: one line per block down to a depth, everything deeper on its block's line.
//!
//! A person can read the head of a level and `grep` a metric; a series of 1800 bins takes a line per column instead
//! of one per number.

use std::io::{self, Write};

use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};
use serde_json::ser::{CompactFormatter, Formatter, PrettyFormatter};

/// `value` as JSON in this layout, with a line feed at its end.
///
/// # Errors
///
/// When `value` cannot be JSON: a map with keys that are not text.
pub(super) fn to_string<T: Serialize>(value: &T) -> serde_json::Result<String> {
    let text = laid_out(value, DEPTH_OPEN)?;
    Ok(String::from_utf8(text).expect("JSON is UTF-8"))
}

/// `value` as one line of JSON, with a line feed at its end.
///
/// # Errors
///
/// As [`to_string`].
pub(super) fn to_line<T: Serialize>(value: &T) -> serde_json::Result<Vec<u8>> {
    laid_out(value, 0)
}

/// What [`to_line`] has written.
///
/// # Errors
///
/// When it is no such JSON.
pub(super) fn of_line<T: DeserializeOwned>(line: &[u8]) -> serde_json::Result<T> {
    serde_json::from_str(std::str::from_utf8(line).map_err(serde_json::Error::custom)?)
}

/// One formatter for both layouts, and one kind of input in this room: each further one would compile the whole schema of a
/// run once more.
fn laid_out<T: Serialize>(value: &T, depth_open: usize) -> serde_json::Result<Vec<u8>> {
    let mut out = Vec::new();
    let layout = Layout { depth: 0, depth_open, pretty: PrettyFormatter::with_indent(b" ") };
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, layout))?;
    out.push(b'\n');
    Ok(out)
}

struct Layout {
    depth: usize,
    depth_open: usize,
    pretty: PrettyFormatter<'static>,
}

impl Layout {
    fn open(&self) -> bool {
        self.depth <= self.depth_open
    }
}

/// Forwards to the indenting formatter in open blocks and to the compact one below. `begin_*` and `end_*` of one
/// block see the same depth.
impl Formatter for Layout {
    fn begin_array<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.open() { self.pretty.begin_array(w) } else { CompactFormatter.begin_array(w) }
    }

    fn end_array<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        let open = self.open();
        self.depth -= 1;
        if open { self.pretty.end_array(w) } else { CompactFormatter.end_array(w) }
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if self.open() {
            self.pretty.begin_array_value(w, first)
        } else {
            CompactFormatter.begin_array_value(w, first)
        }
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        if self.open() { self.pretty.end_array_value(w) } else { CompactFormatter.end_array_value(w) }
    }

    fn begin_object<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.depth += 1;
        if self.open() { self.pretty.begin_object(w) } else { CompactFormatter.begin_object(w) }
    }

    fn end_object<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        let open = self.open();
        self.depth -= 1;
        if open { self.pretty.end_object(w) } else { CompactFormatter.end_object(w) }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, w: &mut W, first: bool) -> io::Result<()> {
        if self.open() {
            self.pretty.begin_object_key(w, first)
        } else {
            CompactFormatter.begin_object_key(w, first)
        }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        if self.open() { self.pretty.begin_object_value(w) } else { CompactFormatter.begin_object_value(w) }
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, w: &mut W) -> io::Result<()> {
        if self.open() { self.pretty.end_object_value(w) } else { CompactFormatter.end_object_value(w) }
    }
}

/// The run, its levels, a level and the blocks of a level are open.
const DEPTH_OPEN: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_level_have_a_line_each() {
        let run = serde_json::json!({"levels": [{"a": {"b": {"c": [1, {"d": 2}]}}, "e": []}], "z": {}});
        let text = to_string(&run).unwrap();
        let expected = r#"{
 "levels": [
  {
   "a": {
    "b": {"c":[1,{"d":2}]}
   },
   "e": []
  }
 ],
 "z": {}
}
"#;
        assert_eq!(text, expected);
        let line = to_line(&run).unwrap();
        assert_eq!(line, format!("{run}\n").into_bytes());
        assert_eq!(of_line::<serde_json::Value>(&line).unwrap(), run);
        assert!(of_line::<serde_json::Value>(b"{\"a\":\"\xff\"}").is_err());
    }
}
