//! OpenAI's shapes, member for member as vLLM writes them.

use std::ops::Range;

use super::{ARGUMENTS_CLOSE, ARGUMENTS_OPEN, Channel, Counts, Face, Piece, Whole, finish_json};
use crate::mock::ask::{Finish, Surface};
use crate::mock::reply::push;

impl Face {
    pub(super) fn openai_event(
        &self,
        piece: &Piece,
        usage: Option<Counts>,
        out: &mut Vec<u8>,
    ) -> Range<usize> {
        self.begin(out);
        push(out, format_args!("{{\"index\":{},", piece.choice));
        let words = if self.surface == Surface::Text {
            out.extend_from_slice(b"\"text\":\"");
            let words = self.words(piece, piece.tokens, out);
            out.extend_from_slice(b"\",");
            words
        } else {
            out.extend_from_slice(b"\"delta\":{");
            let words = self.delta(piece, out);
            out.extend_from_slice(b"},");
            words
        };
        // The finish reason of a tool call comes in an event of its own.
        self.close_choice(piece.end.filter(|_| piece.channel != Channel::Tool), out);
        self.shut(usage, piece.padding, out);
        words
    }

    /// Appends the event that opens a chat choice.
    pub(super) fn role(&self, choice: u32, usage: Option<Counts>, out: &mut Vec<u8>) {
        self.begin(out);
        push(
            out,
            format_args!(
                "{{\"index\":{choice},\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},\
                 \"logprobs\":null,\"finish_reason\":null}}]"
            ),
        );
        self.shut(usage, 0, out);
    }

    /// Appends an event that ends a choice and has no content.
    pub(in crate::mock) fn finish(
        &self,
        choice: u32,
        finish: Finish,
        usage: Option<Counts>,
        out: &mut Vec<u8>,
    ) {
        self.begin(out);
        let empty = if self.surface == Surface::Text { "\"text\":\"\"" } else { "\"delta\":{}" };
        push(out, format_args!("{{\"index\":{choice},{empty},"));
        self.close_choice(Some(finish), out);
        self.shut(usage, 0, out);
    }

    /// Appends the usage event: no choices.
    pub(in crate::mock) fn usage(&self, usage: Counts, out: &mut Vec<u8>) {
        self.begin(out);
        out.push(b']');
        self.shut(Some(usage), 0, out);
    }

    pub(super) fn openai_whole(&self, whole: &Whole, out: &mut Vec<u8>) {
        let object = if self.surface == Surface::Text { "text_completion" } else { "chat.completion" };
        self.preface(object, out);
        for choice in 0..whole.choices {
            let comma = if choice == 0 { "" } else { "," };
            push(out, format_args!("{comma}{{\"index\":{choice},"));
            if self.surface == Surface::Text {
                out.extend_from_slice(b"\"text\":\"");
                self.vocabulary.write(choice, 0, whole.tokens, out);
                out.push(b'"');
            } else {
                self.message(choice, whole, out);
            }
            let finish = finish_json(whole.finish);
            push(out, format_args!(",\"logprobs\":null,\"finish_reason\":{finish},\"stop_reason\":null}}"));
        }
        out.push(b']');
        write_usage(whole.usage, out);
        out.push(b'}');
    }

    fn message(&self, choice: u32, whole: &Whole, out: &mut Vec<u8>) {
        let reasoning = whole.reasoning.min(whole.tokens);
        let rest = whole.tokens - reasoning;
        out.extend_from_slice(b"\"message\":{\"role\":\"assistant\",\"content\":");
        match &self.tool {
            Some(name) if rest > 0 => {
                push(out, format_args!("null,\"refusal\":null,\"tool_calls\":[{{{},", self.call(choice)));
                push(out, format_args!("\"function\":{{\"name\":{name},\"arguments\":\""));
                out.extend_from_slice(ARGUMENTS_OPEN);
                self.vocabulary.write(choice, reasoning + 1, rest - 1, out);
                out.extend_from_slice(ARGUMENTS_CLOSE);
                out.extend_from_slice(b"\"}}]");
            }
            _ => {
                out.push(b'"');
                self.vocabulary.write(choice, reasoning, rest, out);
                out.extend_from_slice(b"\",\"refusal\":null");
            }
        }
        if reasoning > 0 {
            push(out, format_args!(",\"{}\":\"", self.reasoning));
            self.vocabulary.write(choice, 0, reasoning, out);
            out.push(b'"');
        }
        out.push(b'}');
    }

    /// The members of a chat delta; gives the place of the words.
    fn delta(&self, piece: &Piece, out: &mut Vec<u8>) -> Range<usize> {
        match (piece.channel, &self.tool) {
            (Channel::Tool, Some(name)) => return self.tool_delta(piece, name, out),
            (Channel::Reasoning, _) => push(out, format_args!("\"{}\":\"", self.reasoning)),
            _ => out.extend_from_slice(b"\"content\":\""),
        }
        let words = self.words(piece, piece.tokens, out);
        out.push(b'"');
        words
    }

    /// The first token is the name, the others are words in one JSON string of arguments.
    fn tool_delta(&self, piece: &Piece, name: &str, out: &mut Vec<u8>) -> Range<usize> {
        out.extend_from_slice(b"\"tool_calls\":[{");
        let has_name = piece.nth == 0;
        let count = piece.tokens - u32::from(has_name).min(piece.tokens);
        let is_last = piece.end.is_some();
        if has_name {
            push(out, format_args!("{},\"index\":0,\"function\":{{\"name\":{name}", self.call(piece.choice)));
        } else {
            out.extend_from_slice(b"\"index\":0,\"function\":{");
        }
        let mut words = out.len()..out.len();
        if count > 0 || is_last {
            out.extend_from_slice(if has_name { b",\"arguments\":\"" } else { b"\"arguments\":\"" });
            if piece.nth <= 1 {
                out.extend_from_slice(ARGUMENTS_OPEN);
            }
            words = self.words(&Piece { from: piece.from + u32::from(has_name), ..*piece }, count, out);
            if is_last {
                out.extend_from_slice(ARGUMENTS_CLOSE);
            }
            out.push(b'"');
        }
        out.extend_from_slice(b"}}]");
        words
    }

    /// The members that make a tool call known.
    fn call(&self, choice: u32) -> String {
        format!("\"id\":\"chatcmpl-tool-{:012x}{choice:04x}\",\"type\":\"function\"", self.number)
    }

    fn words(&self, piece: &Piece, count: u32, out: &mut Vec<u8>) -> Range<usize> {
        let start = out.len();
        self.vocabulary.write(piece.choice, piece.from, count, out);
        start..out.len()
    }

    fn close_choice(&self, end: Option<Finish>, out: &mut Vec<u8>) {
        let finish = finish_json(end);
        push(out, format_args!("\"logprobs\":null,\"finish_reason\":{finish},"));
        out.extend_from_slice(match (self.surface, end) {
            (Surface::Text, _) => b"\"stop_reason\":null,\"prompt_token_ids\":null,\"token_ids\":null}]",
            (_, Some(_)) => b"\"stop_reason\":null,\"token_ids\":null}]",
            (_, None) => b"\"token_ids\":null}]",
        });
    }

    fn begin(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: ");
        let object = if self.surface == Surface::Text { "text_completion" } else { "chat.completion.chunk" };
        self.preface(object, out);
    }

    fn preface(&self, object: &str, out: &mut Vec<u8>) {
        let prefix = if self.surface == Surface::Text { "cmpl" } else { "chatcmpl" };
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

    fn shut(&self, usage: Option<Counts>, padding: u32, out: &mut Vec<u8>) {
        write_usage(usage, out);
        if padding > 0 {
            // The member with which OpenAI hides the length of a piece.
            out.extend_from_slice(b",\"obfuscation\":\"");
            out.resize(out.len() + padding as usize, b'x');
            out.push(b'"');
        }
        out.extend_from_slice(b"}\n\n");
    }
}

fn write_usage(usage: Option<Counts>, out: &mut Vec<u8>) {
    let Some(Counts { prompt, completion, cached, reasoning }) = usage else { return };
    let total = prompt.saturating_add(completion);
    push(
        out,
        format_args!(
            ",\"usage\":{{\"prompt_tokens\":{prompt},\"total_tokens\":{total},\"completion_tokens\":{completion}"
        ),
    );
    if let Some(cached) = cached {
        push(out, format_args!(",\"prompt_tokens_details\":{{\"cached_tokens\":{cached}}}"));
    }
    if let Some(reasoning) = reasoning {
        push(out, format_args!(",\"completion_tokens_details\":{{\"reasoning_tokens\":{reasoning}}}"));
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::mock::face::tests::{PIECE, face};
    use crate::mock::face::{Times, Whole};

    const COUNTS: Counts = Counts { prompt: 3, completion: 4, cached: None, reasoning: None };

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    fn json(event: &[u8]) -> Value {
        serde_json::from_str(text(event).strip_prefix("data: ").unwrap()).unwrap()
    }

    #[test]
    fn a_chat_event_has_vllms_shape_and_size() {
        let mut out = Vec::new();
        let words = face(Surface::Chat).content(&PIECE, None, &mut out);
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
        for surface in [Surface::Chat, Surface::Text] {
            let face = face(surface);
            let mut events = Vec::new();
            for end in [None, Some(Finish::Length)] {
                let piece = Piece { choice: 1, from: 9, tokens: 3, end, padding: 5, ..PIECE };
                face.content(&piece, None, &mut events);
                face.content(&piece, Some(COUNTS), &mut events);
            }
            face.role(0, Some(COUNTS), &mut events);
            face.finish(0, Finish::Stop, None, &mut events);
            face.usage(Counts { cached: Some(2), reasoning: Some(1), ..COUNTS }, &mut events);
            let events: Vec<Value> =
                text(&events).split_terminator("\n\n").map(|event| json(event.as_bytes())).collect();
            assert_eq!(events.len(), 7);
            assert!(events.iter().all(|e| e["model"] == "mock-model" && e["created"] == 1_796_061_161));
            assert_eq!(events[3]["obfuscation"], "xxxxx");
            assert_eq!(events[5]["choices"][0]["finish_reason"], "stop");
            assert_eq!(events[6]["usage"]["total_tokens"], 7);
            assert_eq!(events[6]["usage"]["prompt_tokens_details"]["cached_tokens"], 2);
            assert_eq!(events[6]["usage"]["completion_tokens_details"]["reasoning_tokens"], 1);
        }
    }

    #[test]
    fn fragments_of_a_tool_call_add_up_to_a_name_and_json() {
        let face = Face { tool: Some("\"weather\"".into()), ..face(Surface::Chat) };
        for step in [1, 2, 5, 7] {
            let (mut name, mut arguments) = (String::new(), String::new());
            let mut nth = 0;
            while nth < 7 {
                let tokens = step.min(7 - nth);
                let end = (nth + tokens == 7).then_some(Finish::ToolCalls);
                let piece = Piece { channel: Channel::Tool, from: nth, nth, tokens, end, ..PIECE };
                let mut event = Vec::new();
                face.content(&piece, None, &mut event);
                let event = json(&event);
                let call = &event["choices"][0]["delta"]["tool_calls"][0];
                assert_eq!((call["index"].as_u64(), call["id"].is_string()), (Some(0), nth == 0));
                name += call["function"]["name"].as_str().unwrap_or_default();
                arguments += call["function"]["arguments"].as_str().unwrap_or_default();
                nth += tokens;
            }
            assert_eq!(name, "weather");
            let arguments: Value = serde_json::from_str(&arguments).unwrap();
            assert_eq!(arguments["text"], " bread cloud dance eagle field grass");
        }
    }

    #[test]
    fn a_whole_answer_has_its_parts() {
        let whole = Whole {
            choices: 2,
            reasoning: 2,
            tokens: 5,
            finish: Some(Finish::ToolCalls),
            usage: Some(COUNTS),
            times: Times::default(),
        };
        let of = |face: &Face, whole: &Whole| -> Value {
            let mut body = Vec::new();
            face.whole(whole, &mut body);
            serde_json::from_slice(&body).unwrap()
        };
        let chat = of(&face(Surface::Chat), &whole);
        assert_eq!(chat["choices"][0]["message"]["reasoning_content"], " apple bread");
        assert_eq!(chat["choices"][0]["message"]["content"], " cloud dance eagle");
        let calling = Face { tool: Some("\"f\"".into()), ..face(Surface::Chat) };
        let call = of(&calling, &whole)["choices"][1]["message"]["tool_calls"][0]["function"].clone();
        assert_eq!(call["name"], "f");
        assert_eq!(call["arguments"], r#"{"text":" light music"}"#);
        let text = of(&face(Surface::Text), &Whole { reasoning: 0, finish: None, ..whole });
        assert_eq!(text["choices"][0]["text"], " apple bread cloud dance eagle");
        assert_eq!(text["choices"][0]["finish_reason"], Value::Null);
        assert_eq!(text["usage"]["total_tokens"], 7);
    }
}
