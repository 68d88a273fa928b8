//! The shapes of OpenAI's responses: named events around items of output, of which each is told three times, in deltas,
//! when it is done, and in the last event.
//!
//! As llama.cpp, without the running numbers of other servers, which a client can do without.

use std::ops::Range;

use super::{ARGUMENTS_CLOSE, ARGUMENTS_OPEN, Channel, Counts, Face, Piece, Whole, write_padding};
use crate::mock::ask::Finish;
use crate::mock::reply::push;

impl Face {
    /// Appends the events that open an answer.
    pub(super) fn response_created(&self, out: &mut Vec<u8>) {
        for kind in ["response.created", "response.in_progress"] {
            begin(kind, out);
            out.extend_from_slice(b",\"response\":{");
            self.response_head("in_progress", out);
            out.extend_from_slice(b",\"output\":[]}}\n\n");
        }
    }

    /// Appends the events that open the item of `piece`, after those that close the reasoning before it.
    pub(super) fn response_item(&self, piece: &Piece, out: &mut Vec<u8>) {
        if self.thinks && piece.channel != Channel::Reasoning {
            self.response_item_done(Channel::Reasoning, 0..piece.from, out);
        }
        begin("response.output_item.added", out);
        push(out, format_args!(",\"output_index\":{},\"item\":", self.place_of(piece.channel)));
        self.item(piece.channel, "in_progress", 0..0, out);
        out.extend_from_slice(b"}\n\n");
        if piece.channel == Channel::Text {
            self.begin_part("response.content_part.added", piece.channel, out);
            out.extend_from_slice(b",\"part\":");
            self.part(piece.channel, 0..0, out);
            out.extend_from_slice(b"}\n\n");
        }
    }

    /// Appends a delta; gives the place of the words.
    pub(super) fn response_delta(&self, piece: &Piece, out: &mut Vec<u8>) -> Range<usize> {
        self.begin_part(&format!("{}.delta", kind_of(piece.channel)), piece.channel, out);
        out.extend_from_slice(b",\"delta\":\"");
        let words = self.fragment(piece, out);
        out.push(b'"');
        write_padding(piece.padding, out);
        out.extend_from_slice(b"}\n\n");
        words
    }

    /// Appends the events that close an item of these tokens.
    pub(super) fn response_item_done(&self, channel: Channel, tokens: Range<u32>, out: &mut Vec<u8>) {
        let text = if channel == Channel::Tool { "arguments" } else { "text" };
        self.begin_part(&format!("{}.done", kind_of(channel)), channel, out);
        push(out, format_args!(",\"{text}\":\""));
        self.item_text(channel, tokens.clone(), out);
        out.extend_from_slice(b"\"}\n\n");
        begin("response.output_item.done", out);
        push(out, format_args!(",\"output_index\":{},\"item\":", self.place_of(channel)));
        self.item(channel, "completed", tokens, out);
        out.extend_from_slice(b"}\n\n");
    }

    /// Appends the last event.
    pub(in crate::mock) fn response_end(&self, whole: &Whole, out: &mut Vec<u8>) {
        let is_cut = whole.finish == Some(Finish::Length);
        begin(if is_cut { "response.incomplete" } else { "response.completed" }, out);
        out.extend_from_slice(b",\"response\":");
        self.response_whole(whole, out);
        out.extend_from_slice(b"}\n\n");
    }

    pub(super) fn response_whole(&self, whole: &Whole, out: &mut Vec<u8>) {
        out.push(b'{');
        let is_cut = whole.finish == Some(Finish::Length);
        self.response_head(if is_cut { "incomplete" } else { "completed" }, out);
        let reason = if is_cut { "{\"reason\":\"max_output_tokens\"}" } else { "null" };
        push(out, format_args!(",\"error\":null,\"incomplete_details\":{reason},\"output\":["));
        let reasoning = whole.reasoning.min(whole.tokens);
        if reasoning > 0 {
            self.item(Channel::Reasoning, "completed", 0..reasoning, out);
        }
        if whole.tokens > reasoning {
            if reasoning > 0 {
                out.push(b',');
            }
            self.item(self.answer_channel(), "completed", reasoning..whole.tokens, out);
        }
        out.push(b']');
        if let Some(counts) = whole.usage {
            write_usage(counts, out);
        }
        out.push(b'}');
    }

    /// What the answer consists of behind the reasoning.
    pub(super) fn answer_channel(&self) -> Channel {
        if self.tool.is_some() { Channel::Tool } else { Channel::Text }
    }

    fn response_head(&self, status: &str, out: &mut Vec<u8>) {
        push(
            out,
            format_args!(
                "\"id\":\"resp_{:024x}\",\"object\":\"response\",\"created_at\":{},\"model\":{},\
                 \"status\":\"{status}\"",
                self.number, self.created, self.model
            ),
        );
    }

    /// Opens an event about a part of an item.
    fn begin_part(&self, kind: &str, channel: Channel, out: &mut Vec<u8>) {
        begin(kind, out);
        let index = self.place_of(channel);
        push(out, format_args!(",\"item_id\":\"{}\",\"output_index\":{index}", self.item_id(channel)));
        if channel != Channel::Tool {
            out.extend_from_slice(b",\"content_index\":0");
        }
    }

    fn item(&self, channel: Channel, status: &str, tokens: Range<u32>, out: &mut Vec<u8>) {
        push(out, format_args!("{{\"id\":\"{}\",\"status\":\"{status}\",", self.item_id(channel)));
        match (channel, &self.tool) {
            (Channel::Tool, Some(name)) => {
                push(
                    out,
                    format_args!(
                        "\"type\":\"function_call\",\"call_id\":\"call_{:024x}\",\"name\":{name},\"arguments\":\"",
                        self.number
                    ),
                );
                if !tokens.is_empty() {
                    self.item_text(channel, tokens, out);
                }
                out.extend_from_slice(b"\"}");
                return;
            }
            (Channel::Reasoning, _) => {
                out.extend_from_slice(b"\"type\":\"reasoning\",\"summary\":[],\"content\":[");
            }
            _ => out.extend_from_slice(b"\"type\":\"message\",\"role\":\"assistant\",\"content\":["),
        }
        if !tokens.is_empty() {
            self.part(channel, tokens, out);
        }
        out.extend_from_slice(b"]}");
    }

    fn part(&self, channel: Channel, tokens: Range<u32>, out: &mut Vec<u8>) {
        out.extend_from_slice(if channel == Channel::Reasoning {
            b"{\"type\":\"reasoning_text\",\"text\":\"".as_slice()
        } else {
            b"{\"type\":\"output_text\",\"annotations\":[],\"text\":\""
        });
        self.item_text(channel, tokens, out);
        out.extend_from_slice(b"\"}");
    }

    /// The text of these tokens; of a call its arguments, since its name is the first token.
    fn item_text(&self, channel: Channel, tokens: Range<u32>, out: &mut Vec<u8>) {
        if channel == Channel::Tool {
            out.extend_from_slice(ARGUMENTS_OPEN);
            self.vocabulary.write(0, tokens.start + 1, (tokens.end - tokens.start).saturating_sub(1), out);
            return out.extend_from_slice(ARGUMENTS_CLOSE);
        }
        self.vocabulary.write(0, tokens.start, tokens.end - tokens.start, out);
    }

    fn item_id(&self, channel: Channel) -> String {
        let prefix = match channel {
            Channel::Reasoning => "rs",
            Channel::Text => "msg",
            Channel::Tool => "fc",
        };
        format!("{prefix}_{:024x}", self.number)
    }

    /// Reasoning is the first item where there is any.
    fn place_of(&self, channel: Channel) -> u32 {
        u32::from(self.thinks && channel != Channel::Reasoning)
    }
}

fn kind_of(channel: Channel) -> &'static str {
    match channel {
        Channel::Reasoning => "response.reasoning_text",
        Channel::Text => "response.output_text",
        Channel::Tool => "response.function_call_arguments",
    }
}

/// Opens an event.
fn begin(kind: &str, out: &mut Vec<u8>) {
    push(out, format_args!("event: {kind}\ndata: {{\"type\":\"{kind}\""));
}

fn write_usage(counts: Counts, out: &mut Vec<u8>) {
    let Counts { prompt, completion, cached, reasoning } = counts;
    let total = prompt.saturating_add(completion);
    push(out, format_args!(",\"usage\":{{\"input_tokens\":{prompt},\"output_tokens\":{completion},"));
    push(out, format_args!("\"total_tokens\":{total}"));
    if let Some(cached) = cached {
        push(out, format_args!(",\"input_tokens_details\":{{\"cached_tokens\":{cached}}}"));
    }
    if let Some(reasoning) = reasoning {
        push(out, format_args!(",\"output_tokens_details\":{{\"reasoning_tokens\":{reasoning}}}"));
    }
    out.push(b'}');
}
