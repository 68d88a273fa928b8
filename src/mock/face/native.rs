//! The shapes of the servers' own APIs: SGLang's, where each event repeats the text so far, and llama.cpp's, where the
//! last event has none. Both count in every event.

use std::ops::Range;

use super::{Counts, Face, Piece, Whole, write_padding};
use crate::mock::ask::Finish;
use crate::mock::reply::push;

impl Face {
    /// Appends SGLang's event; gives the place of all its words.
    pub(super) fn sglang_event(
        &self,
        piece: &Piece,
        usage: Option<Counts>,
        out: &mut Vec<u8>,
    ) -> Range<usize> {
        out.extend_from_slice(b"data: ");
        let words = self.sglang_answer(piece.from + piece.tokens, piece.end, usage, out);
        write_padding(piece.padding, out);
        out.extend_from_slice(b"}\n\n");
        words
    }

    /// Appends an event that ends SGLang's answer and adds no text.
    pub(in crate::mock) fn sglang_finish(&self, whole: &Whole, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: ");
        self.sglang_whole(whole, out);
        out.extend_from_slice(b"\n\n");
    }

    pub(super) fn sglang_whole(&self, whole: &Whole, out: &mut Vec<u8>) {
        self.sglang_answer(whole.tokens, whole.finish, whole.usage, out);
        out.push(b'}');
    }

    /// All but the last brace.
    fn sglang_answer(
        &self,
        tokens: u32,
        end: Option<Finish>,
        usage: Option<Counts>,
        out: &mut Vec<u8>,
    ) -> Range<usize> {
        out.extend_from_slice(b"{\"text\":\"");
        let start = out.len();
        self.vocabulary.write(0, 0, tokens, out);
        let words = start..out.len();
        push(out, format_args!("\",\"meta_info\":{{\"id\":\"{:032x}\",\"finish_reason\":", self.number));
        match end {
            None => out.extend_from_slice(b"null"),
            Some(Finish::Length) => push(out, format_args!("{{\"type\":\"length\",\"length\":{tokens}}}")),
            Some(Finish::Stop | Finish::ToolCalls) => {
                out.extend_from_slice(b"{\"type\":\"stop\",\"matched\":2}");
            }
        }
        if let Some(Counts { prompt, completion, cached, .. }) = usage {
            let cached = cached.unwrap_or(0);
            push(
                out,
                format_args!(
                    ",\"prompt_tokens\":{prompt},\"completion_tokens\":{completion},\"cached_tokens\":{cached}"
                ),
            );
        }
        out.extend_from_slice(b"},\"index\":0");
        words
    }

    /// Appends llama.cpp's event; gives the place of the words.
    pub(super) fn llama_event(
        &self,
        piece: &Piece,
        usage: Option<Counts>,
        out: &mut Vec<u8>,
    ) -> Range<usize> {
        out.extend_from_slice(b"data: {\"index\":0,\"content\":\"");
        let start = out.len();
        self.vocabulary.write(piece.choice, piece.from, piece.tokens, out);
        let words = start..out.len();
        out.extend_from_slice(b"\",\"tokens\":[");
        write_ids(piece.from..piece.from + piece.tokens, out);
        out.extend_from_slice(b"],\"stop\":false,\"id_slot\":-1");
        write_counts(usage, out);
        write_padding(piece.padding, out);
        out.extend_from_slice(b"}\n\n");
        words
    }

    /// Appends llama.cpp's last event.
    pub(in crate::mock) fn llama_end(&self, whole: &Whole, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: ");
        self.llama_whole(&Whole { tokens: 0, ..*whole }, out);
        out.extend_from_slice(b"\n\n");
    }

    pub(super) fn llama_whole(&self, whole: &Whole, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"index\":0,\"content\":\"");
        self.vocabulary.write(0, 0, whole.tokens, out);
        out.extend_from_slice(b"\",\"tokens\":[");
        write_ids(0..whole.tokens, out);
        push(out, format_args!("],\"id_slot\":0,\"stop\":true,\"model\":{}", self.model));
        write_counts(whole.usage, out);
        let kind = match whole.finish {
            None => "none",
            Some(Finish::Length) => "limit",
            Some(Finish::Stop | Finish::ToolCalls) => "eos",
        };
        push(out, format_args!(",\"truncated\":false,\"stop_type\":\"{kind}\",\"stopping_word\":\"\""));
        if let Some(Counts { prompt, completion, cached, .. }) = whole.usage {
            let cached = cached.unwrap_or(0);
            let ms = [whole.times.prompt, whole.times.tokens].map(|time| time.as_secs_f64() * 1e3);
            push(
                out,
                format_args!(
                    ",\"timings\":{{\"cache_n\":{cached},\"prompt_n\":{},\"prompt_ms\":{:.3},\
                     \"predicted_n\":{completion},\"predicted_ms\":{:.3}}}",
                    prompt.saturating_sub(cached),
                    ms[0],
                    ms[1]
                ),
            );
        }
        out.push(b'}');
    }

    /// Appends vectors, one a choice.
    pub(super) fn embeddings(&self, whole: &Whole, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"object\":\"list\",\"data\":[");
        for index in 0..if whole.tokens == 0 { 0 } else { whole.choices } {
            let comma = if index == 0 { "" } else { "," };
            push(out, format_args!("{comma}{{\"object\":\"embedding\",\"index\":{index},\"embedding\":"));
            out.extend_from_slice(b"[0.5,-0.25,0.125,0.75]}");
        }
        push(out, format_args!("],\"model\":{}", self.model));
        if let Some(Counts { prompt, .. }) = whole.usage {
            push(out, format_args!(",\"usage\":{{\"prompt_tokens\":{prompt},\"total_tokens\":{prompt}}}"));
        }
        out.push(b'}');
    }
}

fn write_ids(tokens: Range<u32>, out: &mut Vec<u8>) {
    for (place, id) in tokens.enumerate() {
        push(out, format_args!("{}{id}", if place == 0 { "" } else { "," }));
    }
}

fn write_counts(usage: Option<Counts>, out: &mut Vec<u8>) {
    if let Some(Counts { prompt, completion, .. }) = usage {
        push(out, format_args!(",\"tokens_predicted\":{completion},\"tokens_evaluated\":{prompt}"));
    }
}
