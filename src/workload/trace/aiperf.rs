//! AIPerf's own data sets: single requests, and conversations of them.

use std::time::Duration;

use super::entry::{Entry, Prompt, Session};
use super::error::{Fault, Reason};
use super::json::{Found, Object};
use super::numbers::Unit;
use super::parser::Batch;

/// One request: `{"text": ..., "timestamp" or "delay": ms, ...}`.
pub(super) fn read_single_turn(object: &Object<'_>) -> Result<Entry, Fault> {
    let delay = object.time(&["delay"], Unit::Milliseconds)?;
    Ok(Entry {
        at: object.time(&["timestamp"], Unit::Milliseconds)?,
        after_previous: delay.map(Duration::from_nanos),
        session: session(object)?,
        output_tokens: object.count(&["output_length", "max_tokens"])?,
        model: object.text(&["model"])?,
        images: images(object)?,
        extra: object.get("extra").map(|extra| extra.object_text()).transpose()?.map(Into::into),
        ..Entry::new(prompt(object)?)
    })
}

/// One conversation: `{"session_id": ..., "turns": [...]}`, where a turn may be a text alone. Without a name it gets
/// one of its place in the file.
pub(super) fn read_multi_turn(object: &Object<'_>, batch: &mut Batch) -> Result<(), Fault> {
    let turns = object.needed("turns")?;
    turns.list()?;
    let session = session(object)?.unwrap_or_else(|| Session::Named(batch.session_name()));
    for (index, turn) in turns.items()?.into_iter().enumerate() {
        let entry = if turn.text.starts_with('"') {
            Entry::new(Prompt::Text(turn.text()?))
        } else {
            read_single_turn(&turn.object()?)?
        };
        let index = u32::try_from(index).map_err(|_| turns.fault(Reason::TooLarge))?;
        batch.push(Entry { session: Some(session.clone()), turn: Some(index), ..entry });
    }
    Ok(())
}

fn session(object: &Object<'_>) -> Result<Option<Session>, Fault> {
    object.get("session_id").map(|id| id.name().map(Session::Named)).transpose()
}

/// A role other than the user's makes it a message.
fn prompt(object: &Object<'_>) -> Result<Prompt, Fault> {
    let role = object.text(&["role"])?.filter(|role| &**role != "user");
    let texts = match object.alias(&["text", "texts"])? {
        Some(Found { name: "text", text }) if !text.starts_with('[') => {
            object.text(&["text"])?.into_iter().collect()
        }
        Some(list) => list.items()?.into_iter().map(Found::text).collect::<Result<Vec<_>, _>>()?,
        None => Vec::new(),
    };
    match (role, <[Box<str>; 1]>::try_from(texts)) {
        (None, Ok([text])) => Ok(Prompt::Text(text)),
        (Some(role), Ok([text])) => {
            let message = serde_json::json!([{ "role": role, "content": text }]);
            Ok(Prompt::Messages { messages: message.to_string().into(), tools: None })
        }
        (_, Err(texts)) if texts.is_empty() => Err(Fault::of_record(Reason::NoPrompt)),
        (None, Err(texts)) => Ok(Prompt::Parts(texts)),
        (Some(role), Err(texts)) => {
            let part = |text| serde_json::json!({ "type": "text", "text": text });
            let parts: Vec<_> = texts.into_iter().map(part).collect();
            let message = serde_json::json!([{ "role": role, "content": parts }]);
            Ok(Prompt::Messages { messages: message.to_string().into(), tools: None })
        }
    }
}

/// How many images are asked about: their content is not read.
fn images(object: &Object<'_>) -> Result<u32, Fault> {
    match object.alias(&["image", "images"])? {
        None => Ok(0),
        Some(one) if !one.text.starts_with('[') => Ok(1),
        Some(list) => u32::try_from(list.items()?.len()).map_err(|_| list.fault(Reason::TooLarge)),
    }
}
