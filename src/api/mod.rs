//! API dialects: what the bytes of a request and of an event mean.
//!
//! A dialect reads one event (or one whole body) and reports its parts to a [`Reader`]. It owns no time and no
//! socket; what the parts mean for TTFT and the outcome is decided in `exchange`.
//!
//! The usual chunk of a stream is known by a strict scan (`scan`), which says "exactly this" or "ask the full parser";
//! the full parser (`answer`) is the truth, and `fuzz_json_scan` holds the two equal.

mod answer;
mod blanks;
mod chat;
mod dialect;
mod embeddings;
pub mod failure;
mod llama_cpp;
mod messages;
mod ollama;
mod raw;
pub mod request;
mod responses;
mod scan;
mod sglang;
pub mod talk;
pub mod usage;

pub use blanks::{Filling, Text};
pub use dialect::{Dialect, Extra, Framing};
pub use failure::{error_message, names_field};
pub use raw::{Raw, RawError, Shape};
pub use scan::{Frame, fuzz_json_scan};
pub use usage::Usage;

use crate::wire::json::{self, Json, Value};

/// Which part of an answer a piece of text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Visible text: `content`, or `text` in completions.
    Content,
    /// Thinking: `reasoning_content`, `reasoning`, `thinking` parts.
    Reasoning,
    /// `refusal`.
    Refusal,
    /// Name or arguments fragment of a tool or function call.
    Tool,
}

/// Why a choice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Finish {
    /// `stop`
    Stop,
    /// `length`
    Length,
    /// `tool_calls`
    ToolCalls,
    /// `function_call`
    FunctionCall,
    /// `content_filter`
    ContentFilter,
    /// `error` or `abort`: fails the request.
    Error,
    /// Any other non-empty reason.
    Other,
}

impl Finish {
    /// The reason as servers spell it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Finish::Stop => "stop",
            Finish::Length => "length",
            Finish::ToolCalls => "tool_calls",
            Finish::FunctionCall => "function_call",
            Finish::ContentFilter => "content_filter",
            Finish::Error => "error",
            Finish::Other => "other",
        }
    }
}

/// Receives the parts of one event: an error first, then each choice in its place with its pieces, its token count
/// and its finish reason, then usage.
///
/// `choice` is the choice's `index` (its place where there is none).
pub trait Reader {
    /// Whether [`Reader::piece`] wants the decoded text. Where `false`, `text` is empty although the piece is not:
    /// a fast scan need not decode it.
    const WANTS_TEXT: bool;

    /// A non-empty piece of text.
    fn piece(&mut self, choice: u32, channel: Channel, text: &str);
    /// A non-empty finish reason.
    fn finish(&mut self, choice: u32, reason: Finish);
    /// The event lists this many tokens for the choice (`token_ids`, or the length of `logprobs.content` or
    /// `logprobs.tokens`); never 0, since an empty list stands beside text too.
    fn tokens(&mut self, choice: u32, count: u32);
    /// A usage object that is not null, in an event with `choices` choices beside it.
    fn usage(&mut self, usage: Usage, choices: u32);
    /// The event reports an error; `message` is the server's text, empty if there is none.
    fn error(&mut self, message: &str);

    /// Counts that are told in parts: what `update` does not say stays as it was told before.
    fn usage_update(&mut self, update: Usage) {
        self.usage(update, 0);
    }
    /// All text of a choice so far: what goes beyond what was told before is new. Comes after the finish reason.
    fn grown(&mut self, choice: u32, channel: Channel, text: &str) {
        self.piece(choice, channel, text);
    }
    /// The event says that nothing more will come, as `[DONE]` does elsewhere.
    fn end(&mut self) {}
    /// A fragment of a call, beside the pieces of [`Channel::Tool`] that it gives. Of several choices it is told of all.
    fn call(&mut self, _choice: u32, _fragment: &talk::Fragment<'_>) {}
}

/// Data that holds no JSON object (`bad_json`, unless it is one of the keep-alives).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotAnObject {
    /// Not JSON, or beyond what is read.
    Text(json::Error),
    /// JSON, but `null`, a number, a string, an array, `true` or `false`.
    OtherValue,
}

impl<R: Reader> Report for R {}

/// What every report of text keeps to.
trait Report: Reader {
    /// Reports `text` unless it is empty, and does not hand out what nobody wants.
    fn text(&mut self, choice: u32, channel: Channel, text: &str) {
        if !text.is_empty() {
            self.piece(choice, channel, if Self::WANTS_TEXT { text } else { "" });
        }
    }
}

/// Parses `text`, has what is no error read by `read`, and reports what is one.
fn read_object<R: Reader>(
    json: &mut Json,
    text: &[u8],
    to: &mut R,
    read: impl FnOnce(Value<'_>, &mut R),
) -> Result<(), NotAnObject> {
    let document = json.parse(text).map_err(NotAnObject::Text)?;
    let root = document.root();
    if !root.is_object() {
        return Err(NotAnObject::OtherValue);
    }
    match failure::in_band(root) {
        Some(message) => to.error(message),
        None => read(root, to),
    }
    Ok(())
}

/// The text of a field; empty where there is none.
fn text_of<'d>(object: Value<'d>, name: &str) -> &'d str {
    object.field(name).and_then(Value::as_str).unwrap_or_default()
}

/// The count in a field.
fn count_of(object: Value<'_>, name: &str) -> Option<u32> {
    object.field(name).and_then(Value::as_u32)
}

impl Finish {
    /// The meaning of a `finish_reason`; `None` for the empty one, which says nothing.
    fn of(reason: &str) -> Option<Finish> {
        Some(match reason {
            "" => return None,
            "stop" => Finish::Stop,
            "length" => Finish::Length,
            "tool_calls" => Finish::ToolCalls,
            "function_call" => Finish::FunctionCall,
            "content_filter" => Finish::ContentFilter,
            "error" | "abort" => Finish::Error,
            _ => Finish::Other,
        })
    }
}
