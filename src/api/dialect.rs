//! The dialects by name: paths, what each has, and who reads its events.
//!
//! What an event means stands in one file per dialect.

use serde::{Deserialize, Serialize};

use super::answer::{self, Part};
use super::{NotAnObject, Reader, messages, scan};
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
    /// All of them.
    pub const ALL: [Dialect; 3] = [Dialect::OpenaiChat, Dialect::Openai, Dialect::Messages];

    /// The name, as plans and `--backend` have it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dialect::OpenaiChat => "openai-chat",
            Dialect::Openai => "openai",
            Dialect::Messages => "messages",
        }
    }

    /// The path of a request.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Dialect::OpenaiChat => "/v1/chat/completions",
            Dialect::Openai => "/v1/completions",
            Dialect::Messages => "/v1/messages",
        }
    }

    /// The field of a body that holds the prompt.
    #[must_use]
    pub fn prompt_field(self) -> &'static str {
        match self {
            Dialect::OpenaiChat | Dialect::Messages => "messages",
            Dialect::Openai => "prompt",
        }
    }

    /// Whether a request can ask for `extra`.
    #[must_use]
    pub fn has(self, _extra: Extra) -> bool {
        match self {
            Dialect::OpenaiChat | Dialect::Openai => true,
            Dialect::Messages => false,
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
        true
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
        Framing::Events
    }

    /// Reads the data of one event of a stream. Only what is new counts: a `message` repeated beside the `delta` is
    /// not looked at.
    ///
    /// # Errors
    /// [`NotAnObject`]; nothing has been reported then.
    pub fn read_event<R: Reader>(self, json: &mut Json, data: &[u8], to: &mut R) -> Result<(), NotAnObject> {
        if let Some(known) = scan::scan(self, data, R::WANTS_TEXT) {
            if let Some((channel, text)) = known.piece {
                to.piece(known.choice, channel, text);
            }
            return Ok(());
        }
        self.read_event_in_full(json, data, to)
    }

    /// Reads the body of an answer that is not streamed.
    ///
    /// # Errors
    /// [`NotAnObject`]; nothing has been reported then.
    pub fn read_whole<R: Reader>(self, json: &mut Json, body: &[u8], to: &mut R) -> Result<(), NotAnObject> {
        match self {
            Dialect::OpenaiChat => answer::read(json, body, Part::Message, to),
            Dialect::Openai => answer::read(json, body, Part::Text, to),
            Dialect::Messages => messages::read_whole(json, body, to),
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
        }
    }
}
