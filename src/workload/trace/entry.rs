//! One request as a file describes it, whatever the format.
//!
//! Owns the common shape only. What a field was called, and its unit in the file, is known to the formats.

use std::time::Duration;

use crate::rng;

/// One request of a trace or one prompt of a data set.
///
/// A field is `None` where the file says nothing. Times are exact to the nanosecond: they are read as decimals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Line of the file on which its record begins, from 1.
    pub line: u64,
    /// When it was sent, nanoseconds after an epoch of the file's own: 1970, the recorder's start, or for
    /// [`Format::Weka`](super::Format::Weka) the start of its session. Offsets are made of it by
    /// [`Replay`](super::Replay).
    pub at: Option<u64>,
    /// How long after the answer before it, in its session, it was sent. Where the file gives a time too, that of the
    /// first turn counts, and this one for the turns that follow.
    pub after_previous: Option<Duration>,
    /// The conversation that it belongs to.
    pub session: Option<Session>,
    /// Its place in that conversation, from 0.
    pub turn: Option<u32>,
    /// What was asked.
    pub prompt: Prompt,
    /// Length of the answer, tokens. May be 0.
    pub output_tokens: Option<u32>,
    /// The recorded answer, of which a tokenizer makes the length where `output_tokens` says none.
    pub answer: Option<Box<str>>,
    /// The same as a message, as written in the file, where it is one: it may make calls.
    pub said: Option<Box<str>>,
    /// The model that was asked.
    pub model: Option<Box<str>>,
    /// Number of images in the prompt.
    pub images: u32,
    /// Fields for the body of this request: a JSON object, as written in the file.
    pub extra: Option<Box<str>>,
    /// Where it stands in a session of several agents.
    pub node: Option<Box<Node>>,
    /// The recorded call failed: a [`Selection`](super::Selection) drops it unless told otherwise.
    pub failed: bool,
}

/// What a request asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// So many tokens, whose text has to be made ([`blocks`](super::blocks)).
    Tokens {
        /// Length, tokens. May be 0.
        count: u32,
        /// Which parts of it are equal to parts of other prompts.
        blocks: Option<Blocks>,
    },
    /// A text, as it stands.
    Text(Box<str>),
    /// Several texts of one message, as content parts: at least two.
    Parts(Vec<Box<str>>),
    /// A chat, as written in the file.
    Messages {
        /// JSON array of messages, not empty.
        messages: Box<str>,
        /// JSON array of tools.
        tools: Option<Box<str>>,
    },
    /// A whole request body, as written in the file.
    Body {
        /// Path to send it to.
        url: Option<Box<str>>,
        /// JSON object.
        body: Box<str>,
    },
}

/// The content of a prompt as hashed blocks: equal ids stand for equal text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// One id per block, from the beginning of the prompt. The last block may be a part of one.
    pub ids: Vec<u64>,
    /// Tokens in a whole block, at least 1.
    pub block_tokens: u32,
    /// Ids are equal within one scope only: 0 for those of the whole file.
    pub scope: u64,
}

/// The place of a request in a session whose requests do not all follow each other: an agent starts others, which work
/// at the same time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The session, from 0 in the order of the file.
    pub session: u64,
    /// Its number among all requests of the session, from 0 in the order of the file.
    pub number: u32,
    /// The numbers of those whose answers it waits for, all of them smaller; none for one that goes with the session's
    /// beginning.
    pub after: Vec<u32>,
    /// How long after the last of these answers it was sent: the recorded think time, or what the file's times leave
    /// between the two. ns.
    pub pause_ns: u64,
    /// Bytes of the file before it.
    pub offset: u64,
}

/// How the turns of one conversation find each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Session {
    /// All turns have this name.
    Named(Box<str>),
    /// Each turn names the one before it.
    Linked {
        /// Of this turn.
        id: u64,
        /// Of the turn before; `None` for the first.
        parent: Option<u64>,
    },
}

impl Entry {
    /// An entry of which only the prompt is known.
    pub(in crate::workload) fn new(prompt: Prompt) -> Entry {
        Entry {
            line: 0,
            at: None,
            after_previous: None,
            session: None,
            turn: None,
            prompt,
            output_tokens: None,
            answer: None,
            said: None,
            model: None,
            images: 0,
            extra: None,
            node: None,
            failed: false,
        }
    }

    /// The same with the text of other blocks, which `scope` tells from those of others.
    #[must_use]
    pub(in crate::workload) fn with_other_words(&self, scope: u64) -> Entry {
        let mut entry = self.clone();
        if let Prompt::Tokens { blocks: Some(blocks), .. } = &mut entry.prompt {
            blocks.scope = rng::mixed(blocks.scope ^ rng::mixed(scope));
        }
        entry
    }

    /// Words of the prompt, each of which stands for a token where the file gives lengths; of JSON the pieces between its
    /// blanks.
    #[must_use]
    pub fn words(&self) -> u32 {
        let words = |text: &str| u32::try_from(text.split_whitespace().count()).unwrap_or(u32::MAX);
        match &self.prompt {
            Prompt::Tokens { count, .. } => *count,
            Prompt::Text(text)
            | Prompt::Messages { messages: text, .. }
            | Prompt::Body { body: text, .. } => words(text),
            Prompt::Parts(parts) => parts.iter().map(|part| words(part)).fold(0, u32::saturating_add),
        }
    }

    /// Whether it is a whole request, what was said before included: a length, a ready body, or a list of messages that was
    /// not cut into turns. Other later turns go on from those before them.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        match self.prompt {
            Prompt::Tokens { .. } | Prompt::Body { .. } => true,
            Prompt::Messages { .. } => self.turn.is_none(),
            Prompt::Text(_) | Prompt::Parts(_) => false,
        }
    }

    /// Tokens of the prompt and its answer, where the file gives the length of the prompt.
    #[must_use]
    pub fn whole_tokens(&self) -> Option<u32> {
        Some(self.prompt_tokens()?.saturating_add(self.output_tokens.unwrap_or(0)))
    }

    /// The length of the prompt in tokens, where the file knows it.
    #[must_use]
    pub fn prompt_tokens(&self) -> Option<u32> {
        match self.prompt {
            Prompt::Tokens { count, .. } => Some(count),
            _ => None,
        }
    }
}
