//! Anthropic's bodies: a limit that must be given, the system prompt beside the messages, tools with their names in the
//! open.

use serde_json::{Map, Value};

use super::fields::{flag, integer, invalid, narrow, words};
use super::{Ask, Denial, Finish, Surface, Terms, ending, messages_tokens, room, tool_in_the_open};

/// Reads the fields of `/v1/messages`. There is no way to ask an answer on past its end.
pub(super) fn read(fields: &Map<String, Value>, terms: Terms<'_>) -> Result<Ask, Denial> {
    let Some(limit) = integer(fields, "max_tokens")? else {
        return Err(invalid("missing", "body.max_tokens", "Field required"));
    };
    let prompt_tokens = messages_tokens(fields)?.saturating_add(system_tokens(fields));
    let most = room(Some(limit), prompt_tokens, terms)?;
    let (tokens, finish) = ending(most, terms.eos_after.map(|eos| eos.max(1)));
    // A call needs a token after the reasoning.
    let calls = terms.reasoning < tokens && (terms.tool_call || demands_tool(fields));
    let tool = calls.then(|| tool_in_the_open(fields));
    Ok(Ask {
        surface: Surface::Messages,
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

/// The system prompt is a text or a list of blocks.
fn system_tokens(fields: &Map<String, Value>) -> u32 {
    let count = match fields.get("system") {
        Some(Value::String(text)) => words(text),
        Some(Value::Array(blocks)) => {
            blocks.iter().filter_map(|block| block.get("text")?.as_str()).map(words).sum()
        }
        _ => 0,
    };
    narrow(count)
}

fn demands_tool(fields: &Map<String, Value>) -> bool {
    let kind = fields.get("tool_choice").and_then(|choice| choice.get("type")?.as_str());
    matches!(kind, Some("any" | "tool"))
}
