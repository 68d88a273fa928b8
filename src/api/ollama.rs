//! Ollama's own API, chat and generation: one JSON object a line, the last of them with `done`, the reason and the
//! counts.

use serde_json::json;

use super::request::{Fields, Order, Part, messages_of};
use super::talk::{self, Fragment};
use super::{Channel, Finish, NotAnObject, Reader, Report, Usage, count_of, read_object, text_of};
use crate::wire::json::{Json, Value};

/// The fields of `/api/chat`.
pub(super) fn chat_fields(order: &Order<'_>) -> Fields {
    let mut fields = Fields::default();
    fields.fixed("model", &json!(order.model));
    fields.put("messages", messages_of(order.options.system));
    further(order, fields)
}

/// The fields of `/api/generate`.
pub(super) fn generate_fields(order: &Order<'_>) -> Fields {
    let mut fields = Fields::default();
    fields.fixed("model", &json!(order.model));
    fields.put("prompt", vec![Part::Prompt]);
    further(order, fields)
}

/// Limits and sampling stand in an object of their own; there is no `ignore_eos`.
fn further(order: &Order<'_>, mut fields: Fields) -> Fields {
    // Streams are the default there.
    fields.fixed("stream", &json!(order.stream));
    let mut options = Fields::default();
    options.put("num_predict", vec![Part::Limit]);
    options.sampling(&order.options.sampling, "repeat_penalty");
    fields.object("options", options);
    fields
}

/// Reads one line, or a whole answer, which looks the same.
pub(super) fn read<R: Reader>(json: &mut Json, line: &[u8], to: &mut R) -> Result<(), NotAnObject> {
    read_object(json, line, to, |line, to| {
        to.text(0, Channel::Reasoning, text_of(line, "thinking"));
        to.text(0, Channel::Content, text_of(line, "response"));
        if let Some(message) = line.field("message") {
            report_message(message, to);
        }
        if line.field("done").and_then(Value::as_bool) == Some(true) {
            report_end(line, to);
        }
    })
}

/// A call comes whole, its arguments as an object: its text is the name.
fn report_message<R: Reader>(message: Value<'_>, to: &mut R) {
    to.text(0, Channel::Reasoning, text_of(message, "thinking"));
    to.text(0, Channel::Content, text_of(message, "content"));
    for call in message.field("tool_calls").into_iter().flat_map(Value::items) {
        let Some(function) = call.field("function") else { continue };
        to.text(0, Channel::Tool, text_of(function, "name"));
        if R::WANTS_TEXT {
            let arguments = function.field("arguments").map(talk::json_of).unwrap_or_default();
            let name = text_of(function, "name");
            to.call(0, &Fragment { place: talk::ALONE, id: "", name, arguments: &arguments });
        }
    }
}

/// A prompt that is cached as a whole is not counted by some versions: its count is then unknown.
fn report_end<R: Reader>(line: Value<'_>, to: &mut R) {
    match text_of(line, "done_reason") {
        "" => {}
        "stop" => to.finish(0, Finish::Stop),
        "length" => to.finish(0, Finish::Length),
        _ => to.finish(0, Finish::Other),
    }
    let counts = Usage {
        prompt: count_of(line, "prompt_eval_count"),
        completion: count_of(line, "eval_count"),
        ..Usage::default()
    };
    if let Some(counts) = counts.told() {
        to.usage(counts, 1);
    }
    to.end();
}
