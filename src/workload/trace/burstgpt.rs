//! BurstGPT, both versions: calls of a campus and an API, in seconds. An answer of no tokens is a call that failed.

use super::csv::{Column, Row};
use super::entry::{Entry, Prompt, Session};
use super::error::Fault;
use super::numbers::{self, Unit};

/// Where the columns are.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    time: Column,
    model: Option<Column>,
    session: Option<Column>,
    request: Column,
    response: Column,
}

impl Columns {
    pub(super) fn of(header: Row<'_>) -> Result<Columns, Fault> {
        Ok(Columns {
            time: header.needed("Timestamp")?,
            model: header.column("Model"),
            session: header.column("Session ID"),
            request: header.needed("Request tokens")?,
            response: header.needed("Response tokens")?,
        })
    }

    pub(super) fn read(&self, row: Row<'_>) -> Result<Entry, Fault> {
        let word = |column: &Option<Column>| {
            column.as_ref().map(|column| row.text(column).trim()).filter(|word| !word.is_empty())
        };
        let count = row.read(&self.request, numbers::count)?;
        let output_tokens = row.read(&self.response, numbers::count)?;
        Ok(Entry {
            at: Some(row.read(&self.time, |text| numbers::nanos(text, Unit::Seconds))?),
            session: word(&self.session).map(|name| Session::Named(name.into())),
            model: word(&self.model).map(Into::into),
            output_tokens: Some(output_tokens),
            failed: output_tokens == 0,
            ..Entry::new(Prompt::Tokens { count, blocks: None })
        })
    }
}
