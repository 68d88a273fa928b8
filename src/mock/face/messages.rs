//! Anthropic's shapes: named events, blocks that are opened and closed, and counts of the prompt without what came from
//! a cache.

use std::ops::Range;

use super::{ARGUMENTS_CLOSE, ARGUMENTS_OPEN, Channel, Counts, Face, Piece, Whole};
use crate::mock::ask::Finish;
use crate::mock::reply::push;

impl Face {
    /// Appends the event that opens an answer.
    pub(super) fn message_start(&self, usage: Option<Counts>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{");
        self.message_head(out);
        out.extend_from_slice(b"\"content\":[],\"stop_reason\":null,\"stop_sequence\":null");
        if let Some(counts) = usage {
            write_usage(Counts { completion: 0, ..counts }, out);
        }
        out.extend_from_slice(b"}}\n\n");
    }

    /// Appends the event that opens the block of `piece`, and before it the one that closes the block before.
    pub(super) fn message_block(&self, piece: &Piece, out: &mut Vec<u8>) {
        let index = self.block_of(piece);
        if index > 0 {
            self.message_block_stop(index - 1, out);
        }
        out.extend_from_slice(b"event: content_block_start\ndata: {\"type\":\"content_block_start\",");
        push(out, format_args!("\"index\":{index},\"content_block\":{{"));
        match (piece.channel, &self.tool) {
            (Channel::Reasoning, _) => {
                out.extend_from_slice(b"\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"");
            }
            (Channel::Tool, Some(name)) => {
                push(out, format_args!("{},\"name\":{name},\"input\":{{}}", self.tool_use()));
            }
            _ => out.extend_from_slice(b"\"type\":\"text\",\"text\":\"\""),
        }
        out.extend_from_slice(b"}}\n\n");
    }

    /// Appends a delta; gives the place of the words.
    pub(super) fn message_delta(&self, piece: &Piece, out: &mut Vec<u8>) -> Range<usize> {
        out.extend_from_slice(b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",");
        push(out, format_args!("\"index\":{},\"delta\":{{", self.block_of(piece)));
        out.extend_from_slice(match piece.channel {
            Channel::Reasoning => b"\"type\":\"thinking_delta\",\"thinking\":\"",
            Channel::Text => b"\"type\":\"text_delta\",\"text\":\"",
            Channel::Tool => b"\"type\":\"input_json_delta\",\"partial_json\":\"",
        });
        let words = self.fragment(piece, out);
        out.extend_from_slice(b"\"}");
        super::write_padding(piece.padding, out);
        out.extend_from_slice(b"}\n\n");
        words
    }

    /// Appends the event that closes block `index`.
    pub(super) fn message_block_stop(&self, index: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",");
        push(out, format_args!("\"index\":{index}}}\n\n"));
    }

    /// Appends the event with the reason and the counts.
    pub(in crate::mock) fn message_reason(&self, whole: &Whole, out: &mut Vec<u8>) {
        out.extend_from_slice(b"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{");
        push(out, format_args!("\"stop_reason\":{},\"stop_sequence\":null}}", reason_json(whole.finish)));
        if let Some(counts) = whole.usage {
            push(out, format_args!(",\"usage\":{{\"output_tokens\":{}}}", counts.completion));
        }
        out.extend_from_slice(b"}\n\n");
    }

    /// Appends the last event.
    pub(in crate::mock) fn message_stop(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    }

    pub(super) fn message_whole(&self, whole: &Whole, out: &mut Vec<u8>) {
        out.push(b'{');
        self.message_head(out);
        out.extend_from_slice(b"\"content\":[");
        let reasoning = whole.reasoning.min(whole.tokens);
        let rest = whole.tokens - reasoning;
        if reasoning > 0 {
            out.extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":\"");
            self.vocabulary.write(0, 0, reasoning, out);
            out.extend_from_slice(b"\",\"signature\":\"\"}");
        }
        if rest > 0 {
            if reasoning > 0 {
                out.push(b',');
            }
            self.answer_block(reasoning, rest, out);
        }
        let reason = reason_json(whole.finish);
        push(out, format_args!("],\"stop_reason\":{reason},\"stop_sequence\":null"));
        if let Some(counts) = whole.usage {
            write_usage(counts, out);
        }
        out.push(b'}');
    }

    fn answer_block(&self, from: u32, tokens: u32, out: &mut Vec<u8>) {
        match &self.tool {
            Some(name) => {
                push(out, format_args!("{{{},\"name\":{name},\"input\":{{\"text\":\"", self.tool_use()));
                self.vocabulary.write(0, from + 1, tokens - 1, out);
                out.extend_from_slice(b"\"}}");
            }
            None => {
                out.extend_from_slice(b"{\"type\":\"text\",\"text\":\"");
                self.vocabulary.write(0, from, tokens, out);
                out.extend_from_slice(b"\"}");
            }
        }
    }

    fn message_head(&self, out: &mut Vec<u8>) {
        push(
            out,
            format_args!(
                "\"id\":\"msg_{:024x}\",\"type\":\"message\",\"role\":\"assistant\",\"model\":{},",
                self.number, self.model
            ),
        );
    }

    /// Reasoning is the first block where there is any.
    fn block_of(&self, piece: &Piece) -> u32 {
        u32::from(self.thinks && piece.channel != Channel::Reasoning)
    }

    fn tool_use(&self) -> String {
        format!("\"type\":\"tool_use\",\"id\":\"toolu_{:024x}\"", self.number)
    }

    /// The words of a piece; those of a tool's arguments in one JSON string. A name, the first token of a call, stands
    /// in the event that opens it.
    pub(super) fn fragment(&self, piece: &Piece, out: &mut Vec<u8>) -> Range<usize> {
        let is_tool = piece.channel == Channel::Tool;
        let of_name = u32::from(is_tool && piece.nth == 0).min(piece.tokens);
        if of_name > 0 {
            out.extend_from_slice(ARGUMENTS_OPEN);
        }
        let start = out.len();
        self.vocabulary.write(piece.choice, piece.from + of_name, piece.tokens - of_name, out);
        let words = start..out.len();
        if is_tool && piece.end.is_some() {
            out.extend_from_slice(ARGUMENTS_CLOSE);
        }
        words
    }
}

fn reason_json(finish: Option<Finish>) -> &'static str {
    match finish {
        None => "null",
        Some(Finish::Length) => "\"max_tokens\"",
        Some(Finish::Stop) => "\"end_turn\"",
        Some(Finish::ToolCalls) => "\"tool_use\"",
    }
}

fn write_usage(counts: Counts, out: &mut Vec<u8>) {
    let Counts { prompt, completion, cached, .. } = counts;
    let fresh = prompt.saturating_sub(cached.unwrap_or(0));
    push(out, format_args!(",\"usage\":{{\"input_tokens\":{fresh},\"output_tokens\":{completion}"));
    if let Some(cached) = cached {
        push(out, format_args!(",\"cache_read_input_tokens\":{cached}"));
    }
    out.push(b'}');
}
