//! The bytes of a stream: how events are delimited, and content events rendered once.
//!
//! A content event of one choice differs from the next only in its words, so it is rendered once and patched
//! ([`Template`]).

use super::face::{Channel, Face, Piece};
use super::reply::push;
use super::words::{Vocabulary, WORD};

/// How the bytes of a stream are delimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Framing {
    /// One chunk per event; else the body ends with the connection.
    pub(super) chunks: bool,
    /// Lines end with CRLF instead of LF.
    pub(super) crlf: bool,
}

/// A content event, rendered once.
#[derive(Debug)]
pub(super) struct Template {
    choice: u32,
    channel: Channel,
    vocabulary: Vocabulary,
    bytes: Vec<u8>,
    /// Where the words stand.
    words: std::ops::Range<usize>,
}

impl Template {
    /// The event of `piece`, framed. Only its words may differ in the events patched from it.
    pub(super) fn new(face: &Face, piece: &Piece, framing: Framing) -> Template {
        let mut payload = Vec::with_capacity(256 + piece.tokens as usize * WORD);
        let words = face.content(piece, None, &mut payload);
        let mut bytes = Vec::with_capacity(payload.len() + 16);
        let mut shift = frame(framing, &payload, &mut bytes);
        if framing.crlf {
            shift += payload[..words.start].iter().filter(|byte| **byte == b'\n').count();
        }
        Template {
            choice: piece.choice,
            channel: piece.channel,
            vocabulary: face.vocabulary,
            bytes,
            words: words.start + shift..words.end + shift,
        }
    }

    /// Whether the event of `piece` is one of its events.
    #[inline]
    pub(super) fn fits(&self, piece: &Piece) -> bool {
        self.channel == piece.channel && self.words.len() / WORD == piece.tokens as usize
    }

    /// The event whose first token has number `from`.
    #[inline]
    pub(super) fn patched(&mut self, from: u32) -> &[u8] {
        for (place, slot) in self.bytes[self.words.clone()].chunks_exact_mut(WORD).enumerate() {
            slot.copy_from_slice(self.vocabulary.word(self.choice, from.wrapping_add(place as u32)));
        }
        &self.bytes
    }
}

/// Appends a payload in its frame, unless there is none: an empty chunk would be the last.
pub(super) fn frame_all(framing: Framing, payload: &[u8], out: &mut Vec<u8>) {
    if !payload.is_empty() {
        frame(framing, payload, out);
    }
}

/// Appends a payload in its frame; gives the offset of the payload in what was appended.
pub(super) fn frame(framing: Framing, payload: &[u8], out: &mut Vec<u8>) -> usize {
    let before = out.len();
    let line_ends = if framing.crlf { payload.iter().filter(|byte| **byte == b'\n').count() } else { 0 };
    if framing.chunks {
        push(out, format_args!("{:x}\r\n", payload.len() + line_ends));
    }
    let shift = out.len() - before;
    if line_ends == 0 {
        out.extend_from_slice(payload);
    } else {
        // JSON has no line end within, so each of them is the end of a line.
        for line in payload.split_inclusive(|byte| *byte == b'\n') {
            match line.split_last() {
                Some((b'\n', line)) => {
                    out.extend_from_slice(line);
                    out.extend_from_slice(b"\r\n");
                }
                _ => out.extend_from_slice(line),
            }
        }
    }
    if framing.chunks {
        out.extend_from_slice(b"\r\n");
    }
    shift
}

/// Appends the end of the body.
pub(super) fn write_end(framing: Framing, out: &mut Vec<u8>) {
    if framing.chunks {
        out.extend_from_slice(b"0\r\n\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mock::ask::Surface;
    use crate::mock::face::tests::{PIECE, face};

    const CHUNKS: Framing = Framing { chunks: true, crlf: false };

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_patched_template_is_the_event_rendered_anew() {
        let surfaces = [
            Surface::Chat,
            Surface::Messages,
            Surface::OllamaChat,
            Surface::OllamaGenerate,
            Surface::Responses,
            Surface::Text,
        ];
        for surface in surfaces {
            for (vocabulary, crlf) in [(Vocabulary::Plain, false), (Vocabulary::MultiByte, true)] {
                let face = Face { vocabulary, tool: Some("\"f\"".into()), ..face(surface) };
                for channel in [Channel::Reasoning, Channel::Text, Channel::Tool] {
                    let framing = Framing { crlf, chunks: channel != Channel::Text };
                    let piece = Piece { choice: 2, channel, nth: 2, tokens: 3, ..PIECE };
                    let mut template = Template::new(&face, &piece, framing);
                    assert!(template.fits(&piece) && !template.fits(&Piece { tokens: 2, ..piece }));
                    for from in [0, 3, 14, 1000, u32::MAX] {
                        let mut payload = Vec::new();
                        face.content(&Piece { from, ..piece }, None, &mut payload);
                        let mut framed = Vec::new();
                        frame(framing, &payload, &mut framed);
                        assert_eq!(text(template.patched(from)), text(&framed));
                    }
                }
            }
        }
    }

    #[test]
    fn a_chunk_says_its_own_length() {
        let mut out = Vec::new();
        assert_eq!(frame(CHUNKS, &[b'x'; 26], &mut out), 4);
        assert_eq!(text(&out), format!("1a\r\n{}\r\n", "x".repeat(26)));
        out.clear();
        write_end(CHUNKS, &mut out);
        assert_eq!(text(&out), "0\r\n\r\n");
        out.clear();
        frame(Framing { crlf: true, ..CHUNKS }, b"data: x\n\n", &mut out);
        assert_eq!(text(&out), "b\r\ndata: x\r\n\r\n\r\n");
    }
}
