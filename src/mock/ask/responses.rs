//! Bodies of OpenAI's responses: the prompt is a text or a list of items, tools have their names in the open.

use serde_json::{Map, Value};

use super::fields::{flag, integer, invalid, narrow, words};
use super::{Ask, Denial, Finish, Surface, Terms, ending, room, tool_in_the_open};

/// Reads the fields of `/v1/responses`. There is no way to ask an answer on past its end.
pub(super) fn read(fields: &Map<String, Value>, terms: Terms<'_>) -> Result<Ask, Denial> {
    let instructions = fields.get("instructions").and_then(Value::as_str).map_or(0, words);
    let prompt_tokens = input_tokens(fields)?.saturating_add(narrow(instructions));
    let most = room(integer(fields, "max_output_tokens")?, prompt_tokens, terms)?;
    let (tokens, finish) = ending(most, terms.eos_after.map(|eos| eos.max(1)));
    // A call needs a token after the reasoning.
    let calls = terms.reasoning < tokens && (terms.tool_call || demands_tool(fields));
    let tool = calls.then(|| tool_in_the_open(fields));
    Ok(Ask {
        surface: Surface::Responses,
        stream: flag(fields, "stream")?.unwrap_or(false),
        choices: 1,
        tokens,
        finish: if tool.is_some() { Finish::ToolCalls } else { finish },
        reasoning: terms.reasoning,
        tool,
        prompt_tokens,
        include_usage: true,
        continuous_usage: false,
    })
}

fn input_tokens(fields: &Map<String, Value>) -> Result<u32, Denial> {
    let of_content = |content: &Value| match content {
        Value::String(text) => words(text),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).map(words).sum(),
        _ => 0,
    };
    match fields.get("input") {
        Some(Value::String(text)) => Ok(narrow(words(text))),
        Some(Value::Array(items)) => {
            Ok(narrow(items.iter().filter_map(|item| item.get("content")).map(of_content).sum()))
        }
        None => Err(invalid("missing", "body.input", "Field required")),
        Some(_) => Err(invalid("string_type", "body.input", "Input should be a valid string")),
    }
}

fn demands_tool(fields: &Map<String, Value>) -> bool {
    match fields.get("tool_choice") {
        Some(Value::String(choice)) => choice == "required",
        Some(Value::Object(choice)) => choice.contains_key("name"),
        _ => false,
    }
}
