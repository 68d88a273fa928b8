//! OpenAI responses: events with a `type` each, of which those that end in `.delta` carry text.
//!
//! Everything is told several times: what ends in `.done` repeats the deltas, and the last event repeats the whole
//! answer beside its counts. That event, `response.completed` or `response.incomplete`, is the end; some servers send
//! `[DONE]` after it.

use serde_json::json;

use super::request::{Fields, Order, Part};
use super::talk::Fragment;
use super::{Channel, Finish, NotAnObject, Reader, Report, Usage, count_of, failure, read_object, text_of};
use crate::wire::json::{Json, Value};

/// The fields of a request.
pub(super) fn fields(order: &Order<'_>) -> Fields {
    let mut fields = Fields::default();
    fields.fixed("model", &json!(order.model));
    if order.options.system {
        fields.put("instructions", vec![Part::System]);
    }
    fields.put("input", vec![Part::Prompt]);
    fields.put("max_output_tokens", vec![Part::Limit]);
    fields.fixed_all(&order.options.sampling);
    fields.fixed("stream", &json!(order.stream));
    fields
}

/// Reads the data of one event.
pub(super) fn read_event<R: Reader>(json: &mut Json, data: &[u8], to: &mut R) -> Result<(), NotAnObject> {
    read_object(json, data, to, |event, to| match text_of(event, "type") {
        "response.completed" | "response.incomplete" => {
            if let Some(response) = event.field("response") {
                report_end(response, to);
            }
            to.end();
        }
        "response.failed" | "response.cancelled" => to.error(cause(event)),
        "response.output_item.added" if R::WANTS_TEXT => {
            if let Some(item) = event.field("item").filter(|item| text_of(*item, "type") == "function_call") {
                let (id, name) = (text_of(item, "call_id"), text_of(item, "name"));
                to.call(0, &Fragment { place: place_of(event), id, name, arguments: "" });
            }
        }
        kind => {
            if let Some(of) = kind.strip_suffix(".delta") {
                to.text(0, channel_of(of), text_of(event, "delta"));
                if R::WANTS_TEXT && of == "response.function_call_arguments" {
                    let arguments = text_of(event, "delta");
                    to.call(0, &Fragment { place: place_of(event), arguments, ..Fragment::default() });
                }
            }
        }
    })
}

/// Which item of the output an event is about.
fn place_of(event: Value<'_>) -> u32 {
    count_of(event, "output_index").unwrap_or(0)
}

/// Reads a whole response.
pub(super) fn read_whole<R: Reader>(json: &mut Json, body: &[u8], to: &mut R) -> Result<(), NotAnObject> {
    read_object(json, body, to, |response, to| {
        if matches!(text_of(response, "status"), "failed" | "cancelled") {
            return to.error(text_of(response, "status"));
        }
        for (place, item) in (0..).zip(response.field("output").into_iter().flat_map(Value::items)) {
            report_item(item, to);
            if R::WANTS_TEXT && text_of(item, "type") == "function_call" {
                let (id, name) = (text_of(item, "call_id"), text_of(item, "name"));
                to.call(0, &Fragment { place, id, name, arguments: text_of(item, "arguments") });
            }
        }
        report_end(response, to);
    })
}

/// What is streamed under `response.X.delta`. Kinds that are not known are content: they are new to the user all the
/// same.
fn channel_of(kind: &str) -> Channel {
    match kind {
        "response.refusal" => Channel::Refusal,
        _ if kind.contains("reasoning") => Channel::Reasoning,
        _ if kind.contains("_call") => Channel::Tool,
        _ => Channel::Content,
    }
}

fn report_item<R: Reader>(item: Value<'_>, to: &mut R) {
    let kind = text_of(item, "type");
    if kind.ends_with("_call") {
        to.text(0, Channel::Tool, text_of(item, "name"));
        to.text(0, Channel::Tool, text_of(item, "arguments"));
    }
    for list in ["summary", "content"] {
        for part in item.field(list).into_iter().flat_map(Value::items) {
            match text_of(part, "type") {
                "refusal" => to.text(0, Channel::Refusal, text_of(part, "refusal")),
                _ if kind == "reasoning" => to.text(0, Channel::Reasoning, text_of(part, "text")),
                _ => to.text(0, Channel::Content, text_of(part, "text")),
            }
        }
    }
}

/// Why it ended, and the counts. A response that calls `response.completed` what its status calls incomplete is
/// believed in its status.
fn report_end<R: Reader>(response: Value<'_>, to: &mut R) {
    let reason = response.field("incomplete_details").map(|details| text_of(details, "reason"));
    let output = || response.field("output").into_iter().flat_map(Value::items);
    to.finish(
        0,
        match (text_of(response, "status"), reason.unwrap_or_default()) {
            (_, "max_output_tokens" | "max_tokens") => Finish::Length,
            (_, "content_filter") => Finish::ContentFilter,
            ("incomplete", _) => Finish::Other,
            _ if output().any(|item| text_of(item, "type") == "function_call") => Finish::ToolCalls,
            _ => Finish::Stop,
        },
    );
    if let Some(usage) = response.field("usage").and_then(counts) {
        to.usage(usage, 1);
    }
}

fn counts(usage: Value<'_>) -> Option<Usage> {
    let detail = |of, name| count_of(usage.field(of)?, name);
    let counts = Usage {
        prompt: count_of(usage, "input_tokens"),
        completion: count_of(usage, "output_tokens"),
        cached: detail("input_tokens_details", "cached_tokens"),
        reasoning: detail("output_tokens_details", "reasoning_tokens"),
    };
    counts.told()
}

/// The server's words for a failed response.
fn cause(event: Value<'_>) -> &str {
    let error = event.field("response").and_then(|response| response.field("error"));
    error.and_then(failure::words).unwrap_or_else(|| text_of(event, "type"))
}
