//! Anthropic messages: named events around blocks of content, of which only the deltas say something new.
//!
//! A stream ends with `message_stop`; the reason and the last counts come in the `message_delta` before it. The counts
//! of the prompt leave out what came from a cache, which is told beside them.

use serde_json::json;

use super::request::{Fields, Order, Part, fixed};
use super::talk::{self, Fragment};
use super::{Channel, Finish, NotAnObject, Reader, Report, Usage, count_of, read_object, text_of};
use crate::wire::json::{Json, Value};

/// The fields of a request. Neither an end that the model would make nor a least length can be asked away.
pub(super) fn fields(order: &Order<'_>) -> Fields {
    let mut fields = Fields::default();
    fields.fixed("model", &json!(order.model));
    fields.put("max_tokens", vec![Part::Limit]);
    if order.options.system {
        fields.put("system", vec![Part::System]);
    }
    fields.put("messages", vec![fixed(r#"[{"role":"user","content":"#), Part::Prompt, fixed("}]")]);
    fields.fixed_all(&order.options.sampling);
    fields.fixed("stream", &json!(order.stream));
    fields
}

/// Reads the data of one event.
pub(super) fn read_event<R: Reader>(json: &mut Json, data: &[u8], to: &mut R) -> Result<(), NotAnObject> {
    read_object(json, data, to, |event, to| match text_of(event, "type") {
        "message_start" => {
            let counts = event.field("message").and_then(|message| message.field("usage"));
            report_counts(counts, to);
        }
        "content_block_start" if R::WANTS_TEXT => {
            if let Some(block) =
                event.field("content_block").filter(|block| text_of(*block, "type") == "tool_use")
            {
                let (id, name) = (text_of(block, "id"), text_of(block, "name"));
                to.call(0, &Fragment { place: place_of(event), id, name, arguments: "" });
            }
        }
        "content_block_delta" => {
            if let Some(delta) = event.field("delta") {
                report_delta(delta, to);
                if R::WANTS_TEXT && text_of(delta, "type") == "input_json_delta" {
                    let arguments = text_of(delta, "partial_json");
                    to.call(0, &Fragment { place: place_of(event), arguments, ..Fragment::default() });
                }
            }
        }
        "message_delta" => {
            report_reason(event.field("delta"), to);
            report_counts(event.field("usage"), to);
        }
        "message_stop" => to.end(),
        // Blocks begin and end, and pings keep the connection: no text.
        _ => {}
    })
}

/// Reads a whole message.
pub(super) fn read_whole<R: Reader>(json: &mut Json, body: &[u8], to: &mut R) -> Result<(), NotAnObject> {
    read_object(json, body, to, |message, to| {
        for (place, block) in (0..).zip(message.field("content").into_iter().flat_map(Value::items)) {
            match text_of(block, "type") {
                "thinking" => to.text(0, Channel::Reasoning, text_of(block, "thinking")),
                "tool_use" => {
                    to.text(0, Channel::Tool, text_of(block, "name"));
                    if R::WANTS_TEXT {
                        let arguments = block.field("input").map(talk::json_of).unwrap_or_default();
                        let (id, name) = (text_of(block, "id"), text_of(block, "name"));
                        to.call(0, &Fragment { place, id, name, arguments: &arguments });
                    }
                }
                _ => to.text(0, Channel::Content, text_of(block, "text")),
            }
        }
        report_reason(Some(message), to);
        report_counts(message.field("usage"), to);
    })
}

/// Which block of content an event is about.
fn place_of(event: Value<'_>) -> u32 {
    count_of(event, "index").unwrap_or(0)
}

/// Signatures of thinking and citations are no text of the answer.
fn report_delta<R: Reader>(delta: Value<'_>, to: &mut R) {
    match text_of(delta, "type") {
        "text_delta" => to.text(0, Channel::Content, text_of(delta, "text")),
        "thinking_delta" => to.text(0, Channel::Reasoning, text_of(delta, "thinking")),
        "input_json_delta" => to.text(0, Channel::Tool, text_of(delta, "partial_json")),
        _ => {}
    }
}

fn report_reason<R: Reader>(from: Option<Value<'_>>, to: &mut R) {
    let Some(from) = from else { return };
    let reason = match text_of(from, "stop_reason") {
        "" => return,
        "end_turn" | "stop_sequence" => Finish::Stop,
        "max_tokens" | "model_context_window_exceeded" => Finish::Length,
        "tool_use" => Finish::ToolCalls,
        "refusal" => Finish::ContentFilter,
        _ => Finish::Other,
    };
    to.finish(0, reason);
}

/// Counts of a beginning leave out those of the answer, later ones those of the prompt.
fn report_counts<R: Reader>(usage: Option<Value<'_>>, to: &mut R) {
    let Some(usage) = usage else { return };
    let cached = count_of(usage, "cache_read_input_tokens");
    let parts = [count_of(usage, "input_tokens"), cached, count_of(usage, "cache_creation_input_tokens")];
    let prompt = parts[0].map(|_| parts.iter().flatten().fold(0, |sum: u32, part| sum.saturating_add(*part)));
    let counts = Usage { prompt, completion: count_of(usage, "output_tokens"), cached, reasoning: None };
    if let Some(counts) = counts.told() {
        to.usage_update(counts);
    }
}
