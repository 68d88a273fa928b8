//! API dialects: what the bytes of a request and of an event mean.
//!
//! A dialect reads one event (or one whole body) and reports its parts to a [`Reader`]. It owns no time and no
//! socket; what the parts mean for TTFT and the outcome is decided in `exchange`.

pub mod usage;

pub use usage::Usage;

use serde::{Deserialize, Serialize};

/// The dialects that can be spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// OpenAI chat completions, `/v1/chat/completions`.
    #[default]
    OpenaiChat,
    /// OpenAI text completions, `/v1/completions`.
    Openai,
}

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

/// Receives the parts of one event in the order in which they stand in it.
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
    /// The event lists this many tokens for the choice (`token_ids`, or the length of `logprobs.content`).
    fn tokens(&mut self, choice: u32, count: u32);
    /// A usage object that is not null, in an event with `choices` choices beside it.
    fn usage(&mut self, usage: Usage, choices: u32);
    /// The event reports an error; `message` is the server's text, empty if there is none.
    fn error(&mut self, message: &str);
}
