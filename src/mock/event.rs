//! The bytes of an answer: events and whole answers in vLLM's shapes.
//!
//! Text is made of five-letter words that are one token in most tokenizers. A content event of one choice differs
//! from the next only in its words, so it is rendered once and patched ([`Template`]).

use std::sync::Arc;

use super::reply::push;
use crate::api::Dialect;

/// What all events of one answer share.
#[derive(Clone, Debug)]
pub(super) struct Face {
    pub(super) dialect: Dialect,
    /// Number of the request; the answer's id is made of it.
    pub(super) number: u64,
    /// Seconds since 1970.
    pub(super) created: u64,
    /// The model's name as a JSON string, with its quotes.
    pub(super) model: Arc<str>,
}

/// Token counts of a usage object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) prompt: u32,
    pub(super) completion: u32,
}

/// A piece of a choice's text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) choice: u32,
    /// Number of its first token.
    pub(super) from: u32,
    pub(super) tokens: u32,
    /// The choice ends with it, for its length.
    pub(super) end: bool,
}

/// How the bytes of a stream are delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// One chunk per event.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

/// A content event, rendered once.
#[derive(Debug)]
pub(super) struct Template {
    choice: u32,
    bytes: Vec<u8>,
    /// Where the words stand.
    words: std::ops::Range<usize>,
}

/// Words of one length: patching them changes no other byte.
const WORDS: [&[u8; WORD]; 16] = [
    b" apple", b" bread", b" cloud", b" dance", b" eagle", b" field", b" grass", b" house", b" light",
    b" music", b" north", b" ocean", b" plant", b" river", b" stone", b" water",
];
const WORD: usize = 6;

impl Face {
    /// Appends a content event; gives the place of its words.
    pub(super) fn content(
        &self,
        piece: Piece,
        usage: Option<Counts>,
        out: &mut Vec<u8>,
    ) -> std::ops::Range<usize> {
        self.open(out);
        let key = match self.dialect {
            Dialect::OpenaiChat => "\"delta\":{\"content\":\"",
            Dialect::Openai => "\"text\":\"",
        };
        push(out, format_args!("{{\"index\":{},{key}", piece.choice));
        let start = out.len();
        write_words(piece, out);
        let words = start..out.len();
        let finish = if piece.end { "\"length\"" } else { "null" };
        match (self.dialect, piece.end) {
            (Dialect::OpenaiChat, false) => {
                push(
                    out,
                    format_args!("\"}},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}}]"),
                );
            }
            (Dialect::OpenaiChat, true) => push(
                out,
                format_args!(
                    "\"}},\"logprobs\":null,\"finish_reason\":{finish},\"stop_reason\":null,\"token_ids\":null}}]"
                ),
            ),
            (Dialect::Openai, _) => push(
                out,
                format_args!(
                    "\",\"logprobs\":null,\"finish_reason\":{finish},\"stop_reason\":null,\
                     \"prompt_token_ids\":null,\"token_ids\":null}}]"
                ),
            ),
        }
        self.shut(usage, out);
        words
    }

    /// Appends the event that opens a chat choice.
    pub(super) fn role(&self, choice: u32, usage: Option<Counts>, out: &mut Vec<u8>) {
        self.open(out);
        push(
            out,
            format_args!(
                "{{\"index\":{choice},\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},\
                 \"logprobs\":null,\"finish_reason\":null}}]"
            ),
        );
        self.shut(usage, out);
    }

    /// Appends the usage event: no choices.
    pub(super) fn usage(&self, usage: Counts, out: &mut Vec<u8>) {
        self.open(out);
        out.push(b']');
        self.shut(Some(usage), out);
    }

    /// Appends the body of a whole answer of `tokens` tokens in each of `choices` choices.
    pub(super) fn whole(&self, choices: u32, tokens: u32, usage: Option<Counts>, out: &mut Vec<u8>) {
        let object = match self.dialect {
            Dialect::OpenaiChat => "chat.completion",
            Dialect::Openai => "text_completion",
        };
        self.preface(object, out);
        for choice in 0..choices {
            let comma = if choice == 0 { "" } else { "," };
            let key = match self.dialect {
                Dialect::OpenaiChat => "\"message\":{\"role\":\"assistant\",\"content\":\"",
                Dialect::Openai => "\"text\":\"",
            };
            push(out, format_args!("{comma}{{\"index\":{choice},{key}"));
            write_words(Piece { choice, from: 0, tokens, end: true }, out);
            let close = if self.dialect == Dialect::OpenaiChat { "\",\"refusal\":null}" } else { "\"" };
            push(
                out,
                format_args!("{close},\"logprobs\":null,\"finish_reason\":\"length\",\"stop_reason\":null}}"),
            );
        }
        out.push(b']');
        write_usage(usage, out);
        out.push(b'}');
    }

    fn open(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: ");
        let object = match self.dialect {
            Dialect::OpenaiChat => "chat.completion.chunk",
            Dialect::Openai => "text_completion",
        };
        self.preface(object, out);
    }

    fn preface(&self, object: &str, out: &mut Vec<u8>) {
        let prefix = match self.dialect {
            Dialect::OpenaiChat => "chatcmpl",
            Dialect::Openai => "cmpl",
        };
        // Multiplying by an odd constant spreads the number over the id and keeps ids apart.
        let spread = self.number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        push(
            out,
            format_args!(
                "{{\"id\":\"{prefix}-{spread:016x}{:016x}\",\"object\":\"{object}\",\"created\":{},\
                 \"model\":{},\"choices\":[",
                self.number, self.created, self.model
            ),
        );
    }

    fn shut(&self, usage: Option<Counts>, out: &mut Vec<u8>) {
        write_usage(usage, out);
        out.extend_from_slice(b"}\n\n");
    }
}

impl Template {
    /// The content event of `choice` with `tokens` tokens, framed.
    pub(super) fn new(face: &Face, choice: u32, tokens: u32, framing: Framing) -> Template {
        let mut payload = Vec::with_capacity(256 + tokens as usize * WORD);
        let words = face.content(Piece { choice, from: 0, tokens, end: false }, None, &mut payload);
        let mut bytes = Vec::with_capacity(payload.len() + 16);
        let shift = frame(framing, &payload, &mut bytes);
        Template { choice, bytes, words: words.start + shift..words.end + shift }
    }

    /// Number of tokens of the event.
    pub(super) fn tokens(&self) -> u32 {
        (self.words.len() / WORD) as u32
    }

    /// The event whose first token has number `from`.
    pub(super) fn patched(&mut self, from: u32) -> &[u8] {
        for (place, slot) in self.bytes[self.words.clone()].chunks_exact_mut(WORD).enumerate() {
            slot.copy_from_slice(word(self.choice, from.wrapping_add(place as u32)));
        }
        &self.bytes
    }
}

/// Appends a payload in its frame; gives the offset of the payload in what was appended.
pub(super) fn frame(framing: Framing, payload: &[u8], out: &mut Vec<u8>) -> usize {
    let before = out.len();
    if framing == Framing::UntilClose {
        out.extend_from_slice(payload);
        return 0;
    }
    push(out, format_args!("{:x}\r\n", payload.len()));
    let shift = out.len() - before;
    out.extend_from_slice(payload);
    out.extend_from_slice(b"\r\n");
    shift
}

/// Appends `[DONE]` and the end of the body.
pub(super) fn write_end(framing: Framing, out: &mut Vec<u8>) {
    frame(framing, b"data: [DONE]\n\n", out);
    if framing == Framing::Chunked {
        out.extend_from_slice(b"0\r\n\r\n");
    }
}

fn write_usage(usage: Option<Counts>, out: &mut Vec<u8>) {
    if let Some(Counts { prompt, completion }) = usage {
        let total = prompt.saturating_add(completion);
        push(
            out,
            format_args!(
                ",\"usage\":{{\"prompt_tokens\":{prompt},\"total_tokens\":{total},\
                 \"completion_tokens\":{completion}}}"
            ),
        );
    }
}

fn write_words(piece: Piece, out: &mut Vec<u8>) {
    for place in 0..piece.tokens {
        out.extend_from_slice(word(piece.choice, piece.from.wrapping_add(place)));
    }
}

/// Word of token `number`; choices begin at different words.
fn word(choice: u32, number: u32) -> &'static [u8; WORD] {
    WORDS[(choice.wrapping_mul(5).wrapping_add(number) % WORDS.len() as u32) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn face(dialect: Dialect) -> Face {
        Face { dialect, number: 1, created: 1_796_061_161, model: "\"mock-model\"".into() }
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_chat_event_has_vllms_shape_and_size() {
        let mut out = Vec::new();
        let piece = Piece { choice: 0, from: 0, tokens: 1, end: false };
        let words = face(Dialect::OpenaiChat).content(piece, None, &mut out);
        assert_eq!(
            text(&out),
            "data: {\"id\":\"chatcmpl-9e3779b97f4a7c150000000000000001\",\"object\":\"chat.completion.chunk\",\
             \"created\":1796061161,\"model\":\"mock-model\",\"choices\":[{\"index\":0,\
             \"delta\":{\"content\":\" apple\"},\"logprobs\":null,\"finish_reason\":null,\"token_ids\":null}]}\n\n"
        );
        assert_eq!(text(&out[words]), " apple");
        assert!((235..=255).contains(&out.len()), "{}", out.len());
    }

    #[test]
    fn every_event_is_json() {
        let usage = Some(Counts { prompt: 3, completion: 4 });
        for dialect in [Dialect::OpenaiChat, Dialect::Openai] {
            let face = face(dialect);
            let mut events = Vec::new();
            for end in [false, true] {
                face.content(Piece { choice: 1, from: 9, tokens: 3, end }, None, &mut events);
                face.content(Piece { choice: 1, from: 9, tokens: 3, end }, usage, &mut events);
            }
            face.role(0, usage, &mut events);
            face.usage(Counts { prompt: 3, completion: 4 }, &mut events);
            for event in text(&events).split_terminator("\n\n") {
                let value: serde_json::Value =
                    serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
                assert_eq!(value["model"], "mock-model");
                assert_eq!(value["created"], 1_796_061_161);
            }
            let mut whole = Vec::new();
            face.whole(2, 3, usage, &mut whole);
            let value: serde_json::Value = serde_json::from_slice(&whole).unwrap();
            assert_eq!(value["choices"].as_array().unwrap().len(), 2);
            assert_eq!(value["usage"]["total_tokens"], 7);
        }
    }

    #[test]
    fn a_patched_template_is_the_event_rendered_anew() {
        for (dialect, framing) in
            [(Dialect::OpenaiChat, Framing::Chunked), (Dialect::Openai, Framing::UntilClose)]
        {
            let face = face(dialect);
            let mut template = Template::new(&face, 2, 3, framing);
            assert_eq!(template.tokens(), 3);
            for from in [0, 3, 14, 1000, u32::MAX] {
                let mut payload = Vec::new();
                face.content(Piece { choice: 2, from, tokens: 3, end: false }, None, &mut payload);
                let mut framed = Vec::new();
                frame(framing, &payload, &mut framed);
                assert_eq!(text(template.patched(from)), text(&framed));
            }
        }
    }

    #[test]
    fn a_chunk_says_its_own_length() {
        let mut out = Vec::new();
        assert_eq!(frame(Framing::Chunked, &[b'x'; 26], &mut out), 4);
        assert_eq!(text(&out), format!("1a\r\n{}\r\n", "x".repeat(26)));
        out.clear();
        write_end(Framing::Chunked, &mut out);
        assert_eq!(text(&out), "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n");
    }
}
