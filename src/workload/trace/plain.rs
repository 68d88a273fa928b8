//! Prompts of no particular tool: JSON lines, a CSV column, lines of text.

use std::borrow::Cow;

use super::csv::{Column, Row};
use super::entry::{Entry, Prompt};
use super::error::{Fault, Place, Reason};
use super::json::{Object, not_unicode};
use super::parser::Batch;
use super::sharegpt::Turns;
use super::{messages, numbers};

/// `{"prompt" or "text" or "messages": ..., "output_tokens": ...}`. Messages are one prompt, or the turns of a session.
pub(super) fn read_json(object: &Object<'_>, turns: Turns, batch: &mut Batch) -> Result<(), Fault> {
    let output_tokens = object.count(&["output_tokens", "output_length"])?;
    let prompt = match object.alias(&["prompt", "text", "messages"])? {
        None => return Err(Fault::of_record(Reason::NoPrompt)),
        Some(found) if found.name == "messages" => {
            let tools = object.get("tools").map(|tools| tools.list()).transpose()?;
            if turns == Turns::All {
                let like = Entry { output_tokens, ..Entry::new(Prompt::Parts(Vec::new())) };
                return messages::split(found, tools, &like, batch);
            }
            Prompt::Messages { messages: found.list()?.into(), tools: tools.map(Into::into) }
        }
        Some(found) => Prompt::Text(found.text()?),
    };
    batch.push(Entry { output_tokens, ..Entry::new(prompt) });
    Ok(())
}

/// One line as a prompt.
pub(super) fn read_line(line: &[u8]) -> Result<Entry, Fault> {
    let text = str::from_utf8(line).map_err(|error| not_unicode(line, error.valid_up_to()))?;
    Ok(Entry::new(Prompt::Text(text.into())))
}

/// Where the columns of a CSV file are: that of the prompts, and `output_tokens`, where there is one.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    prompt: Column,
    output_tokens: Option<Column>,
}

impl Columns {
    /// Without a name, the column is called `prompt` or `text`, or is the only one.
    pub(super) fn of(header: Row<'_>, name: Option<&str>) -> Result<Columns, Fault> {
        let prompt = match name {
            Some(name) => header.column(name.to_owned()),
            None => header.column("prompt").or_else(|| header.column("text")).or_else(|| only(header)),
        };
        let missing = || {
            let name = name.map_or(Cow::Borrowed("prompt"), |name| Cow::Owned(name.to_owned()));
            Fault { place: Place::Field(name), reason: Reason::Missing, lines_down: 0 }
        };
        Ok(Columns { prompt: prompt.ok_or_else(missing)?, output_tokens: header.column("output_tokens") })
    }

    pub(super) fn read(&self, row: Row<'_>) -> Result<Entry, Fault> {
        let prompt = row.text(&self.prompt);
        if prompt.is_empty() {
            return Err(self.prompt.fault(Reason::Empty));
        }
        let said = self.output_tokens.as_ref().filter(|column| !row.text(column).trim().is_empty());
        let output_tokens = said.map(|column| row.read(column, numbers::count)).transpose()?;
        Ok(Entry { output_tokens, ..Entry::new(Prompt::Text(prompt.into())) })
    }
}

fn only(header: Row<'_>) -> Option<Column> {
    let name = header.fields().next().filter(|_| header.width() == 1)?;
    header.column(name.to_owned())
}
