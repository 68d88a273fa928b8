//! Ollama's bodies: streamed unless told otherwise, with the sampling options in an object of their own.

use serde_json::{Map, Value};

use super::fields::{flag, invalid, narrow, words};
use super::{Ask, Denial, Finish, Surface, Terms, ending, messages_tokens, room, tool};

/// Reads the fields of `/api/chat` or `/api/generate`.
pub(super) fn read(surface: Surface, fields: &Map<String, Value>, terms: Terms<'_>) -> Result<Ask, Denial> {
    let prompt_tokens = match surface {
        Surface::OllamaChat => messages_tokens(fields)?,
        _ => narrow(text(fields, "prompt")? + text(fields, "system")?),
    };
    let most = room(num_predict(fields)?, prompt_tokens, terms)?;
    let (tokens, finish) = ending(most, terms.eos_after.map(|eos| eos.max(1)));
    let reasoning = if flag(fields, "think")? == Some(false) { 0 } else { terms.reasoning };
    // There is no way to demand a call. It needs a token after the reasoning.
    let is_calling = surface == Surface::OllamaChat && terms.tool_call && reasoning < tokens;
    let tool = if is_calling { tool(fields, terms)? } else { None };
    Ok(Ask {
        surface,
        stream: flag(fields, "stream")?.unwrap_or(true),
        choices: 1,
        tokens,
        finish: if tool.is_some() { Finish::ToolCalls } else { finish },
        reasoning,
        tool,
        prompt_tokens,
        include_usage: true,
        continuous_usage: false,
    })
}

/// Words of a text field; an absent one has none.
fn text(fields: &Map<String, Value>, name: &str) -> Result<usize, Denial> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(0),
        Some(Value::String(text)) => Ok(words(text)),
        Some(_) => Err(invalid("string_type", &format!("body.{name}"), "Input should be a valid string")),
    }
}

/// Most tokens; negative numbers mean no limit.
fn num_predict(fields: &Map<String, Value>) -> Result<Option<u64>, Denial> {
    match fields.get("options").and_then(|options| options.get("num_predict")) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match (value.as_u64(), value.as_i64()) {
            (Some(most), _) => Ok(Some(most)),
            (None, Some(_)) => Ok(None),
            (None, None) => {
                Err(invalid("int_parsing", "body.options.num_predict", "Input should be a valid integer"))
            }
        },
    }
}
