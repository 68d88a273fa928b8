//! The text of a chat choice: the fields of a `delta` or a `message`.

use super::talk::Fragment;
use super::{Channel, Reader, Report};
use crate::wire::json::Value;

/// Reports the pieces of a `delta` or `message`: reasoning, content, refusal, tool text.
pub(super) fn report<R: Reader>(part: Option<Value<'_>>, choice: u32, to: &mut R) {
    let Some(part) = part else { return };
    let part = Spoken::of(part);
    to.text(choice, Channel::Reasoning, part.reasoning());
    if let Some(content) = part.content {
        report_content(content, choice, to);
    }
    to.text(choice, Channel::Refusal, text_of(part.refusal));
    for (place, call) in (0..).zip(part.tool_calls.into_iter().flat_map(Value::items)) {
        report_function(call.field("function"), choice, to);
        if R::WANTS_TEXT {
            report_call(call, (choice, place), to);
        }
    }
    report_function(part.function_call, choice, to);
}

/// What a server may say in one `delta` or `message`.
#[derive(Default)]
struct Spoken<'d> {
    content: Option<Value<'d>>,
    reasoning_content: Option<Value<'d>>,
    reasoning: Option<Value<'d>>,
    refusal: Option<Value<'d>>,
    tool_calls: Option<Value<'d>>,
    function_call: Option<Value<'d>>,
}

impl<'d> Spoken<'d> {
    fn of(value: Value<'d>) -> Spoken<'d> {
        let mut spoken = Spoken::default();
        for (name, value) in value.fields() {
            let slot = match name {
                "content" => &mut spoken.content,
                "reasoning_content" => &mut spoken.reasoning_content,
                "reasoning" => &mut spoken.reasoning,
                "refusal" => &mut spoken.refusal,
                "tool_calls" => &mut spoken.tool_calls,
                "function_call" => &mut spoken.function_call,
                _ => continue,
            };
            *slot = Some(value);
        }
        spoken
    }

    /// Two names for one thing. A server that sends both sends the same text twice.
    fn reasoning(&self) -> &'d str {
        let first = text_of(self.reasoning_content);
        if first.is_empty() { text_of(self.reasoning) } else { first }
    }
}

/// `content` is a string, or a list of typed parts.
fn report_content<R: Reader>(content: Value<'_>, choice: u32, to: &mut R) {
    to.text(choice, Channel::Content, text_of(Some(content)));
    for part in content.items() {
        match part.field("type").and_then(Value::as_str) {
            Some("thinking" | "reasoning") => report_thinking(part, choice, to),
            Some("refusal") => to.text(choice, Channel::Refusal, text_of(part.field("refusal"))),
            _ => to.text(choice, Channel::Content, text_of(part.field("text"))),
        }
    }
}

/// The text of a part that is thinking: a string under one of three names, or under `thinking` a list of texts.
fn report_thinking<R: Reader>(part: Value<'_>, choice: u32, to: &mut R) {
    for name in ["thinking", "reasoning", "text"] {
        let Some(said) = part.field(name).filter(|said| !said.is_empty()) else { continue };
        to.text(choice, Channel::Reasoning, text_of(Some(said)));
        for item in said.items() {
            to.text(choice, Channel::Reasoning, text_of(item.field("text")));
        }
        return;
    }
}

/// The same for whoever repeats the call. Whole messages do not number their calls.
fn report_call<R: Reader>(call: Value<'_>, (choice, place): (u32, u32), to: &mut R) {
    let place = call.field("index").and_then(Value::as_u32).unwrap_or(place);
    let of_function = |name| text_of(call.field("function").and_then(|function| function.field(name)));
    let fragment = Fragment {
        place,
        id: text_of(call.field("id")),
        name: of_function("name"),
        arguments: of_function("arguments"),
    };
    to.call(choice, &fragment);
}

/// Name and arguments are fragments of one stream of tool text.
fn report_function<R: Reader>(function: Option<Value<'_>>, choice: u32, to: &mut R) {
    let Some(function) = function else { return };
    to.text(choice, Channel::Tool, text_of(function.field("name")));
    to.text(choice, Channel::Tool, text_of(function.field("arguments")));
}

fn text_of(value: Option<Value<'_>>) -> &str {
    value.and_then(Value::as_str).unwrap_or_default()
}
