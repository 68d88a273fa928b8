//! `csv-records`: a row per request, with the columns of `--save-detailed`.

use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Error, Form, Needs, Sink, Source};
use crate::report::csv::quoted;

pub(super) const FORM: Form = Form {
    name: "csv-records",
    what: "a row per request, as --save-detailed has it",
    is_folder: false,
    needs: Needs::Records,
    write,
};

fn write(source: &Source<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    let mut failed = None;
    sink.file("", &mut |out| {
        let mut rows = Rows { out, line: Vec::new(), begun: false };
        let written = source.loaded.export_detailed(&mut rows);
        match written {
            Err(crate::run_file::detail::Error::Write(error)) => return Err(error),
            Err(error) => failed = Some(error),
            Ok(()) => {}
        }
        Ok(())
    })?;
    failed.map_or(Ok(()), |error| Err(error.into()))
}

/// Makes a row of each line that is written to it.
struct Rows<'a> {
    out: &'a mut dyn std::io::Write,
    line: Vec<u8>,
    begun: bool,
}

impl std::io::Write for Rows<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let Cells(cells) = serde_json::from_slice(&self.line)?;
                self.line.clear();
                if !std::mem::replace(&mut self.begun, true) {
                    let heads: Vec<&str> = cells.iter().map(|(head, _)| head.as_str()).collect();
                    write!(self.out, "{}\r\n", heads.join(","))?;
                }
                let cells: Vec<String> = cells.iter().map(|(_, value)| cell(value)).collect();
                write!(self.out, "{}\r\n", cells.join(","))?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// What is not known is empty; a list has blanks between its items.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
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
