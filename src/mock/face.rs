//! The shapes of an answer: events, lines and whole answers, in the words of the API that was asked.
//!
//! What is said when is `generation`'s business, how bytes are framed `event`'s.

mod messages;
mod native;
mod ollama;
mod openai;
mod responses;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::ask::{Finish, Surface};
use super::words::Vocabulary;

pub(super) use ollama::utc;

/// What all events of one answer share.
#[derive(Clone, Debug)]
pub(super) struct Face {
    pub(super) surface: Surface,
    /// Number of the request; the answer's id is made of it.
    pub(super) number: u64,
    /// Seconds since 1970.
    pub(super) created: u64,
    /// The model's name as a JSON string, with its quotes.
    pub(super) model: Arc<str>,
    /// The tool's name as a JSON string, where the answer calls one.
    pub(super) tool: Option<Arc<str>>,
    /// The answer begins with reasoning.
    pub(super) thinks: bool,
    /// The member of a chat delta that holds reasoning.
    pub(super) reasoning: &'static str,
    pub(super) vocabulary: Vocabulary,
}

/// What tokens are part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    /// What the model thinks before it answers.
    Reasoning,
    /// The answer.
    Text,
    /// The call of a tool: its name is one token, its arguments are the others.
    Tool,
}

/// A piece of a choice's answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) choice: u32,
    pub(super) channel: Channel,
    /// Number of its first token within the choice.
    pub(super) from: u32,
    /// Number of its first token within the channel.
    pub(super) nth: u32,
    pub(super) tokens: u32,
    /// The choice ends with it, and says why.
    pub(super) end: Option<Finish>,
    /// Further bytes that mean nothing.
    pub(super) padding: u32,
}

/// Token counts of a usage object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) prompt: u32,
    pub(super) completion: u32,
    /// Prompt tokens that came out of a cache, where the model has one.
    pub(super) cached: Option<u32>,
    /// Those of `completion` that are reasoning, where the server reasons.
    pub(super) reasoning: Option<u32>,
}

/// A whole answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole {
    pub(super) choices: u32,
    /// Tokens of each choice, the reasoning ones first.
    pub(super) reasoning: u32,
    pub(super) tokens: u32,
    pub(super) finish: Option<Finish>,
    pub(super) usage: Option<Counts>,
    pub(super) times: Times,
}

/// How long an answer took, for those who say so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// From the request to the first token.
    pub(super) prompt: Duration,
    /// From the first token to the last.
    pub(super) tokens: Duration,
}

impl Face {
    /// Appends what opens an answer, or a choice of it, before any text.
    pub(super) fn open(&self, choice: u32, usage: Option<Counts>, out: &mut Vec<u8>) {
        match self.surface {
            Surface::Messages => self.message_start(usage, out),
            Surface::Responses => self.response_created(out),
            _ => self.role(choice, usage, out),
        }
    }

    /// Appends what comes between the part before and that of `piece`, its first one.
    pub(super) fn open_part(&self, piece: &Piece, out: &mut Vec<u8>) {
        match self.surface {
            Surface::Messages => self.message_block(piece, out),
            Surface::Responses => self.response_item(piece, out),
            _ => {}
        }
    }

    /// Appends what closes the last part of an answer.
    pub(super) fn close_part(&self, whole: &Whole, out: &mut Vec<u8>) {
        let reasoning = whole.reasoning.min(whole.tokens);
        let has_answer = whole.tokens > reasoning;
        match self.surface {
            Surface::Messages => self.message_block_stop(u32::from(reasoning > 0 && has_answer), out),
            Surface::Responses if has_answer => {
                self.response_item_done(self.answer_channel(), reasoning..whole.tokens, out);
            }
            Surface::Responses => self.response_item_done(Channel::Reasoning, 0..reasoning, out),
            _ => {}
        }
    }

    /// Appends a content event; gives the place of its words.
    pub(super) fn content(&self, piece: &Piece, usage: Option<Counts>, out: &mut Vec<u8>) -> Range<usize> {
        match self.surface {
            Surface::Chat | Surface::Text => self.openai_event(piece, usage, out),
            // Nothing of it is streamed.
            Surface::Embeddings => out.len()..out.len(),
            Surface::LlamaCpp => self.llama_event(piece, usage, out),
            Surface::Messages => self.message_delta(piece, out),
            Surface::Responses => self.response_delta(piece, out),
            Surface::Sglang => self.sglang_event(piece, usage, out),
            Surface::OllamaChat | Surface::OllamaGenerate => self.ollama_line(piece, out),
        }
    }

    /// Appends the body of a whole answer.
    pub(super) fn whole(&self, whole: &Whole, out: &mut Vec<u8>) {
        match self.surface {
            Surface::Chat | Surface::Text => self.openai_whole(whole, out),
            Surface::Embeddings => self.embeddings(whole, out),
            Surface::LlamaCpp => self.llama_whole(whole, out),
            Surface::Messages => self.message_whole(whole, out),
            Surface::Responses => self.response_whole(whole, out),
            Surface::Sglang => self.sglang_whole(whole, out),
            Surface::OllamaChat | Surface::OllamaGenerate => self.ollama_whole(whole, out),
        }
    }
}

/// JSON within a JSON string: what a tool is called with.
const ARGUMENTS_OPEN: &[u8] = br#"{\"text\":\""#;
const ARGUMENTS_CLOSE: &[u8] = br#"\"}"#;

/// Appends a member that means nothing.
fn write_padding(padding: u32, out: &mut Vec<u8>) {
    if padding > 0 {
        out.extend_from_slice(b",\"padding\":\"");
        out.resize(out.len() + padding as usize, b'x');
        out.push(b'"');
    }
}

/// Names a finish reason or null.
fn finish_json(finish: Option<Finish>) -> &'static str {
    match finish {
        None => "null",
        Some(Finish::Length) => "\"length\"",
        Some(Finish::Stop) => "\"stop\"",
        Some(Finish::ToolCalls) => "\"tool_calls\"",
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::mock) fn face(surface: Surface) -> Face {
        Face {
            surface,
            number: 1,
            created: 1_796_061_161,
            model: "\"mock-model\"".into(),
            tool: None,
            thinks: false,
            reasoning: "reasoning_content",
            vocabulary: Vocabulary::Plain,
        }
    }

    pub(in crate::mock) const PIECE: Piece =
        Piece { choice: 0, channel: Channel::Text, from: 0, nth: 0, tokens: 1, end: None, padding: 0 };
}
