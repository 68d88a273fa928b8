//! `csv-records`: a row per request, with the columns of `--save-detailed`.

use serde_json::Value;

use super::{Error, Form, Needs, Sink, Source, records_file, rows};
use crate::report::csv::quoted;

pub(super) const FORM: Form = Form {
    name: "csv-records",
    what: "a row per request, as --save-detailed has it",
    is_folder: false,
    is_built_in: true,
    needs: Needs::Records,
    write,
};

fn write(source: &Source<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
    records_file(source, sink, |source, out| {
        let mut begun = false;
        rows::each(source.loaded, &mut |cells| {
            if !std::mem::replace(&mut begun, true) {
                let heads: Vec<&str> = cells.iter().map(|(head, _)| head.as_str()).collect();
                write!(out, "{}\r\n", heads.join(","))?;
            }
            let cells: Vec<String> = cells.iter().map(|(_, value)| cell(value)).collect();
            write!(out, "{}\r\n", cells.join(","))
        })
    })
}

/// What is not known is empty; a list has blanks between its items.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => quoted(text),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}
