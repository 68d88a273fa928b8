//! The requests of a run as rows, with the columns of `--save-detailed`: what the forms with a row per request are made of.

use std::fmt;
use std::io;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Error;
use crate::run_file::{Loaded, detail};

/// Gives each request of `loaded` to `row`, as names of columns with their values, in the order of the columns.
///
/// # Errors
///
/// When there are no records, something cannot be read, or `row` fails.
pub(super) fn each(
    loaded: &Loaded,
    row: &mut dyn FnMut(Vec<(String, Value)>) -> io::Result<()>,
) -> Result<(), Error> {
    loaded.export_detailed(&mut Rows { row, line: Vec::new() }).map_err(|error| match error {
        detail::Error::Write(error) => Error::Unwritable(error.to_string()),
        error => error.into(),
    })
}

/// Makes a row of each line that is written to it.
struct Rows<'a> {
    row: &'a mut dyn FnMut(Vec<(String, Value)>) -> io::Result<()>,
    line: Vec<u8>,
}

impl io::Write for Rows<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let Cells(cells) = serde_json::from_slice(&self.line)?;
                self.line.clear();
                (self.row)(cells)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The keys and values of an object in their order.
struct Cells(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Cells {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Cells, D::Error> {
        struct Pairs;
        impl<'de> Visitor<'de> for Pairs {
            type Value = Cells;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Cells, A::Error> {
                let mut cells = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    cells.push(pair);
                }
                Ok(Cells(cells))
            }
        }
        from.deserialize_map(Pairs)
    }
}
