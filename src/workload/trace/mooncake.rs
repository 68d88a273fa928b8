//! Mooncake's traces, with the other names of their fields and the ready-made prompts that AIPerf and Dynamo added.

use std::time::Duration;

use super::entry::{Blocks, Entry, Prompt, Session};
use super::error::{Fault, Reason};
use super::json::Object;
use super::numbers::Unit;
use super::openai_batch;

pub(super) fn read(object: &Object<'_>, block_tokens: u32) -> Result<Entry, Fault> {
    let delay = object.time(&["delay", "delay_ms"], Unit::Milliseconds)?;
    let mut entry = Entry {
        at: object.time(&["timestamp", "created_time"], Unit::Milliseconds)?,
        after_previous: delay.map(Duration::from_nanos),
        session: object.get("session_id").map(|id| id.name().map(Session::Named)).transpose()?,
        model: object.text(&["model"])?,
        extra: object.get("extra").map(|extra| extra.object_text()).transpose()?.map(Into::into),
        ..Entry::new(prompt(object, block_tokens)?)
    };
    entry.output_tokens = object.count(&["output_length", "output_tokens"])?;
    if let Prompt::Body { body, .. } = &entry.prompt {
        let said = openai_batch::said(body)?;
        entry.output_tokens = entry.output_tokens.or(said.output_tokens);
        entry.model = entry.model.or(said.model);
    }
    Ok(entry)
}

/// What was recorded as it was sent says more than lengths do, and stands in their place where a row has both.
fn prompt(object: &Object<'_>, block_tokens: u32) -> Result<Prompt, Fault> {
    if let Some(payload) = object.get("payload") {
        return Ok(Prompt::Body { url: None, body: payload.object_text()?.into() });
    }
    if let Some(messages) = object.get("messages") {
        let tools = object.get("tools").map(|tools| tools.list()).transpose()?;
        return Ok(Prompt::Messages { messages: messages.list()?.into(), tools: tools.map(Into::into) });
    }
    if let Some(text) = object.get("text_input") {
        return Ok(Prompt::Text(text.text()?));
    }
    let count = object.count(&["input_length", "input_tokens"])?;
    let blocks = blocks(object, block_tokens)?;
    match count {
        Some(count) => Ok(Prompt::Tokens { count, blocks }),
        None if blocks.is_some() => Err(Fault::of_field("input_length", Reason::Missing)),
        None => Err(Fault::of_record(Reason::NoPrompt)),
    }
}

/// The blocks of a row, of ids that hold in the whole file.
pub(super) fn blocks(object: &Object<'_>, block_tokens: u32) -> Result<Option<Blocks>, Fault> {
    let ids = object.get("hash_ids").map(|found| found.ids()).transpose()?;
    Ok(ids.map(|ids| Blocks { ids, block_tokens, scope: 0 }))
}

/// Tokens of a block.
pub(super) const BLOCK_TOKENS: u32 = 512;
