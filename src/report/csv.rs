//! The table of levels as CSV (RFC 4180): a line for each level, for a spreadsheet or a script.
//!
//! Numbers are those of the table without its marks; what is not known is empty. A percentile that falls on failed requests
//! is `inf`: they are slower than any that ended. The file has one shape: parts, turns and repeats of levels are in the
//! run file.

use std::io::{self, Write};

use super::view::{Cell, View};

/// Writes the levels of `view`.
///
/// # Errors
///
/// When `out` fails.
pub fn write(view: &View, out: &mut impl Write) -> io::Result<()> {
    let names = view.table.columns.iter().map(super::view::Column::full_name);
    line(out, std::iter::once(view.table.head.to_owned()).chain(names))?;
    for row in &view.table.rows {
        line(out, std::iter::once(row.label.trim().to_owned()).chain(row.cells.iter().map(value)))?;
    }
    Ok(())
}

fn value(cell: &Cell) -> String {
    match cell {
        Cell::Absent | Cell::Blank => String::new(),
        Cell::Failed => "inf".to_owned(),
        Cell::Failures(text)
        | Cell::Growing(text)
        | Cell::Number(text)
        | Cell::Suspect(text)
        | Cell::Unsupported(text) => {
            // An interval follows in brackets, a mark without a gap.
            let number = text.split(' ').next().unwrap_or_default();
            number.trim_end_matches(|c: char| !c.is_ascii_digit()).to_owned()
        }
    }
}

fn line(out: &mut impl Write, fields: impl Iterator<Item = String>) -> io::Result<()> {
    for (place, field) in fields.enumerate() {
        if place > 0 {
            write!(out, ",")?;
        }
        write!(out, "{}", quoted(&field))?;
    }
    // The line break of the RFC.
    write!(out, "\r\n")
}

/// A cell that may hold anything, as RFC 4180 has it.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
