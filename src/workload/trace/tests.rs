//! Laws of the room as a whole; those of one file stand in it.

mod agents;
mod malformed;
mod order;
mod property;
mod samples;

use std::io::Cursor;

use super::{Entry, Error, Format, Options, Planned, Prompt, Reader, Replay, Survey};

/// All entries of a file in its own order.
fn read(file: &str, text: &[u8], options: &Options) -> Result<Vec<Entry>, Error> {
    let mut input = text;
    Reader::open(file, &mut input, options.clone())?.collect()
}

/// All entries of a file in order of time.
fn replay(file: &str, text: &[u8], options: &Options) -> Result<Vec<Planned>, Error> {
    let mut input = Cursor::new(text);
    let survey = Survey::of(file, &mut input, options)?;
    Replay::new(file, &mut input, options, &survey)?.collect()
}

fn of_format(format: Format) -> Options {
    Options { format: Some(format), ..Options::default() }
}

/// What kind of prompt it is, and its tokens or its text.
fn said(prompt: &Prompt) -> (&'static str, String) {
    match prompt {
        Prompt::Tokens { count, .. } => ("tokens", count.to_string()),
        Prompt::Text(text) => ("text", text.to_string()),
        Prompt::Parts(parts) => ("parts", parts.join("|")),
        Prompt::Messages { messages, .. } => ("messages", messages.to_string()),
        Prompt::Body { url, body } => ("body", format!("{} {body}", url.as_deref().unwrap_or("-"))),
    }
}
