//! The dialects by name: paths, what each has, and who reads its events.
//!
//! What an event means stands in one file per dialect.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use super::answer::{self, Part};
use super::{
    Frame, NotAnObject, Reader, embeddings, llama_cpp, messages, ollama, read_object, responses, scan, sglang,
};
use crate::wire::json::Json;

/// The dialects that can be spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// OpenAI chat completions, `/v1/chat/completions`.
    #[default]
    OpenaiChat,
    /// OpenAI text completions, `/v1/completions`.
    Openai,
    /// Anthropic messages, `/v1/messages`.
    Messages,
    /// OpenAI responses, `/v1/responses`.
    Responses,
    /// Ollama's own chat, `/api/chat`.
    OllamaChat,
    /// Ollama's own generation, `/api/generate`.
    OllamaGenerate,
    /// llama.cpp's own completion, `/completion`.
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    /// SGLang's own generation, `/generate`.
    Sglang,
    /// OpenAI embeddings, `/v1/embeddings`.
    #[serde(rename = "openai-embeddings")]
    Embeddings,
    /// The user's own, by a [`Raw`](super::Raw).
    Raw,
}

/// Optional parts of a request that not every dialect has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// Several choices per prompt.
    Choices,
    /// Tokens so far in each event, on wish.
    ContinuousUsage,
    /// Go on past the end that the model would make.
    IgnoreEos,
    /// Token counts at the end of a stream, on wish. Where this is missing they are always told.
    IncludeUsage,
    /// A least number of tokens.
    MinTokens,
    /// A message of the system before those of the user.
    System,
}

/// How the events of a stream are parted where the content type does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Server-sent events.
    Events,
    /// One JSON object a line.
    Lines,
}

impl Dialect {
    /// All whose shapes are known; [`Dialect::Raw`] is not among them.
    pub const ALL: [Dialect; 9] = [
        Dialect::OpenaiChat,
        Dialect::Openai,
        Dialect::Messages,
        Dialect::Responses,
        Dialect::OllamaChat,
        Dialect::OllamaGenerate,
        Dialect::LlamaCpp,
        Dialect::Sglang,
        Dialect::Embeddings,
    ];

    /// The name, as plans and `--backend` have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dialect::OpenaiChat => "openai-chat",
            Dialect::Openai => "openai",
            Dialect::Messages => "messages",
            Dialect::Responses => "responses",
            Dialect::OllamaChat => "ollama-chat",
            Dialect::OllamaGenerate => "ollama-generate",
            Dialect::LlamaCpp => "llama.cpp",
            Dialect::Sglang => "sglang",
            Dialect::Embeddings => "openai-embeddings",
            Dialect::Raw => "raw",
        }
    }

    /// The path of a request; empty where the user must say.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Dialect::OpenaiChat => "/v1/chat/completions",
            Dialect::Openai => "/v1/completions",
            Dialect::Messages => "/v1/messages",
            Dialect::Responses => "/v1/responses",
            Dialect::OllamaChat => "/api/chat",
            Dialect::OllamaGenerate => "/api/generate",
            Dialect::LlamaCpp => "/completion",
            Dialect::Sglang => "/generate",
            Dialect::Embeddings => "/v1/embeddings",
            Dialect::Raw => "",
        }
    }

    /// The field of a body that holds the prompt; empty where it is not known.
    #[must_use]
    pub fn prompt_field(self) -> &'static str {
        match self {
            Dialect::OpenaiChat | Dialect::Messages | Dialect::OllamaChat => "messages",
            Dialect::Openai | Dialect::OllamaGenerate | Dialect::LlamaCpp => "prompt",
            Dialect::Responses | Dialect::Embeddings => "input",
            Dialect::Sglang => "text",
            Dialect::Raw => "",
        }
    }

    /// Whether a request can ask for `extra`.
    #[must_use]
    pub fn has(self, extra: Extra) -> bool {
        match self {
            Dialect::OpenaiChat => true,
            Dialect::Openai => extra != Extra::System,
            Dialect::Messages | Dialect::Responses | Dialect::OllamaChat => extra == Extra::System,
            Dialect::LlamaCpp => extra == Extra::IgnoreEos,
            Dialect::Sglang => matches!(extra, Extra::IgnoreEos | Extra::MinTokens),
            Dialect::OllamaGenerate | Dialect::Embeddings | Dialect::Raw => false,
        }
    }

    /// Whether its answers can be streamed.
    #[must_use]
    pub fn streams(self) -> bool {
        self.generates()
    }

    /// Whether its answers are text, of which a request limits the length.
    #[must_use]
    pub fn generates(self) -> bool {
        self != Dialect::Embeddings
    }

    /// Headers that its servers want beside the usual ones.
    #[must_use]
    pub fn headers(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Dialect::Messages => &[("anthropic-version", "2023-06-01")],
            _ => &[],
        }
    }

    /// How its streams are framed.
    #[must_use]
    pub fn framing(self) -> Framing {
        match self {
            Dialect::OllamaChat | Dialect::OllamaGenerate => Framing::Lines,
            _ => Framing::Events,
        }
    }

    /// Reads the data of one event of a stream. Of [`Dialect::Raw`] only errors are known here:
    /// [`Shape::read`](super::Shape::read) knows the rest. Only what is new counts: a `message` repeated beside the `delta` is
    /// not looked at. `frame` is kept from event to event of one answer, and changes nothing but the work.
    ///
    /// # Errors
    /// [`NotAnObject`]; nothing has been reported then.
    pub fn read_event<R: Reader>(
        self,
        json: &mut Json,
        frame: &mut Frame,
        data: &[u8],
        to: &mut R,
    ) -> Result<(), NotAnObject> {
        if let Some(part) = self.part_of_event()
            && scan::event(part, frame, data, to)
        {
            return Ok(());
        }
        self.read_event_in_full(json, data, to)
    }

    /// Reads the body of an answer that is not streamed.
    ///
    /// # Errors
    /// [`NotAnObject`]; nothing has been reported then.
    pub fn read_whole<R: Reader>(self, json: &mut Json, body: &[u8], to: &mut R) -> Result<(), NotAnObject> {
        if let Some(part) = self.part_of_whole()
            && let Some(known) = scan::whole(part, body, R::WANTS_TEXT)
        {
            known.report(to);
            return Ok(());
        }
        self.read_whole_in_full(json, body, to)
    }

    pub(super) fn read_whole_in_full<R: Reader>(
        self,
        json: &mut Json,
        body: &[u8],
        to: &mut R,
    ) -> Result<(), NotAnObject> {
        match self {
            Dialect::OpenaiChat => answer::read(json, body, Part::Message, to),
            Dialect::Openai => answer::read(json, body, Part::Text, to),
            Dialect::Messages => messages::read_whole(json, body, to),
            Dialect::Responses => responses::read_whole(json, body, to),
            Dialect::OllamaChat | Dialect::OllamaGenerate => ollama::read(json, body, to),
            Dialect::LlamaCpp => llama_cpp::read(json, body, to),
            Dialect::Sglang => sglang::read(json, body, to),
            Dialect::Embeddings => embeddings::read(json, body, to),
            Dialect::Raw => read_object(json, body, to, |_, _| ()),
        }
    }

    /// Where an event of it has its text, if the scan may know it.
    #[inline]
    pub(super) fn part_of_event(self) -> Option<Part> {
        match self {
            Dialect::OpenaiChat => Some(Part::Delta),
            Dialect::Openai => Some(Part::Text),
            _ => None,
        }
    }

    /// Where a whole answer has it.
    pub(super) fn part_of_whole(self) -> Option<Part> {
        match self {
            Dialect::OpenaiChat => Some(Part::Message),
            Dialect::Openai => Some(Part::Text),
            _ => None,
        }
    }

    pub(super) fn read_event_in_full<R: Reader>(
        self,
        json: &mut Json,
        data: &[u8],
        to: &mut R,
    ) -> Result<(), NotAnObject> {
        match self {
            Dialect::OpenaiChat => answer::read(json, data, Part::Delta, to),
            Dialect::Openai => answer::read(json, data, Part::Text, to),
            Dialect::Messages => messages::read_event(json, data, to),
            Dialect::Responses => responses::read_event(json, data, to),
            Dialect::OllamaChat | Dialect::OllamaGenerate => ollama::read(json, data, to),
            Dialect::LlamaCpp => llama_cpp::read(json, data, to),
            Dialect::Sglang => sglang::read(json, data, to),
            Dialect::Embeddings => embeddings::read(json, data, to),
            Dialect::Raw => read_object(json, data, to, |_, _| ()),
        }
    }
}
