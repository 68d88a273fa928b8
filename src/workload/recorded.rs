//! From a recorded request to the body that is sent: what the file says wins, as far as the run leaves it free.
//!
//! Owns the rules by which an [`Entry`] and the plan make one body. The fields of a dialect are `api`'s, the words of
//! hashed blocks `trace::blocks`'s.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::content::Item;
use super::counted::Counted;
use super::trace::{Entry, Prompt, blocks};
use crate::api::request::Template;

/// What a body is made of beside the recorded request.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The body of a request of the run.
    pub template: &'a Template,
    /// Fields that the user gave for all bodies.
    pub extra_body: &'a Map<String, Value>,
    /// Longest answer to ask for, tokens; a ready body may say another.
    pub max_tokens: u32,
    /// How prompts of which the length is given get it; `None`: a word is a token.
    pub counted: Option<&'a Counted>,
}

type Fields = BTreeMap<String, Box<RawValue>>;

/// Ready bodies of a file, by the field that holds their prompt: they can be asked of one kind of API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bodies([u64; PROMPT_FIELDS.len()]);

impl Bodies {
    /// Counts an entry, if it is a ready body with one such field.
    pub fn count(&mut self, entry: &Entry) {
        let Prompt::Body { body, .. } = &entry.prompt else { return };
        let fields: BTreeMap<String, serde::de::IgnoredAny> = serde_json::from_str(body).unwrap_or_default();
        let mut has = (0..PROMPT_FIELDS.len()).filter(|place| fields.contains_key(PROMPT_FIELDS[*place]));
        if let (Some(place), None) = (has.next(), has.next()) {
            self.0[place] += 1;
        }
    }

    /// How many are for APIs with another field than `field`, and the field of most of these.
    #[must_use]
    pub fn for_others(&self, field: &str) -> Option<(u64, &'static str)> {
        let others = || PROMPT_FIELDS.into_iter().zip(self.0).filter(|(name, n)| *name != field && *n > 0);
        let (name, _) = others().max_by_key(|(_, n)| *n)?;
        Some((others().map(|(_, n)| n).sum(), name))
    }
}

/// The fields that hold the prompt, of all APIs.
const PROMPT_FIELDS: [&str; 4] = [MESSAGES, "prompt", "input", "text"];

/// Appends the body of request `item` and returns the longest answer that it asks for, tokens; `desk` is scratch space.
///
/// - A prompt of so many tokens is made of words, its hashed blocks of the words of their ids under the item's seed. It
///   has one token at least: no server takes less.
/// - Texts and messages are sent as they stand. Several texts are parts of one message, or lines of one prompt where the
///   dialect has no messages.
/// - A ready body keeps its fields, but for those by which answers are read and found (`model`, `n`, `stream`,
///   `stream_options`) and those that the user gave for all bodies. What it leaves out is added.
/// - Further fields of an entry win over those of the user, but for `n` and `stream`.
pub fn write_body(
    out: &mut Vec<u8>,
    frame: &Frame<'_>,
    (item, entry): (Item, &Entry),
    desk: &mut String,
) -> u32 {
    let max_tokens = match &entry.prompt {
        // Its own limit is kept, so it is what its answer is read by.
        Prompt::Body { .. } => entry.output_tokens.unwrap_or(frame.max_tokens).max(1),
        _ => frame.max_tokens,
    };
    desk.clear();
    let special = match &entry.prompt {
        Prompt::Tokens { count, blocks } => {
            let length = ((*count).max(1), blocks.as_ref());
            blocks::write_prompt(desk, (item.seed, item.index), length, frame.counted);
            None
        }
        Prompt::Text(text) => {
            desk.push_str(text);
            None
        }
        Prompt::Parts(parts) => {
            desk.push_str(&parts.join("\n"));
            Some(Special::Parts(parts))
        }
        Prompt::Messages { messages, tools } => Some(Special::Messages(messages, tools.as_deref())),
        Prompt::Body { body, .. } => Some(Special::Body(body)),
    };
    if special.is_none() && entry.extra.is_none() {
        frame.template.write(out, desk.as_str(), max_tokens, &item.filling());
        return max_tokens;
    }
    let mut usual = Vec::new();
    frame.template.write(&mut usual, desk.as_str(), max_tokens, &item.filling());
    let mut fields = object(&usual);
    if let Some(special) = special {
        fields = special.applied(fields, frame.extra_body);
    }
    if let Some(extra) = &entry.extra {
        let free = object(extra.as_bytes()).into_iter().filter(|(name, _)| !READING.contains(&name.as_str()));
        fields.extend(free);
    }
    serde_json::to_writer(out, &fields).expect("a Vec takes every write, and raw JSON is JSON");
    max_tokens
}

/// A prompt that is more than one text.
enum Special<'e> {
    Parts(&'e [Box<str>]),
    Messages(&'e str, Option<&'e str>),
    Body(&'e str),
}

impl Special<'_> {
    /// The fields of the usual body, changed.
    fn applied(&self, mut fields: Fields, extra_body: &Map<String, Value>) -> Fields {
        match self {
            Special::Parts(parts) => {
                // Elsewhere it is one prompt of lines, which the usual body has already.
                let Some((name, kind)) = list_field(&fields) else { return fields };
                let part = |text: &str| json!({ "type": kind, "text": text });
                let content: Vec<Value> = parts.iter().map(|text| part(text)).collect();
                let messages = json!([{ "role": "user", "content": content }]);
                fields.extend(raw(&messages.to_string()).map(|messages| (name.to_owned(), messages)));
            }
            Special::Messages(messages, tools) => {
                let name = list_field(&fields).map_or(MESSAGES, |(name, _)| name);
                fields.extend(raw(messages).map(|messages| (name.to_owned(), messages)));
                fields.extend(tools.and_then(raw).map(|tools| ("tools".to_owned(), tools)));
            }
            Special::Body(body) => {
                let mut ready = object(body.as_bytes());
                ready.retain(|name, _| !OWN.contains(&name.as_str()));
                let has_limit = LIMITS.iter().any(|name| ready.contains_key(*name));
                for (name, value) in fields {
                    let is_said = match name.as_str() {
                        MESSAGES | "prompt" | "input" | "text" => true,
                        name if LIMITS.contains(&name) => has_limit,
                        _ => false,
                    };
                    if extra_body.contains_key(&name) {
                        ready.insert(name, value);
                    } else if !is_said {
                        ready.entry(name).or_insert(value);
                    }
                }
                return ready;
            }
        }
        fields
    }
}

/// The fields of a JSON object. Readers and templates give nothing else; what is none has no fields.
fn object(text: &[u8]) -> Fields {
    serde_json::from_slice(text).unwrap_or_default()
}

fn raw(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.to_owned()).ok()
}

/// The field of a body that holds a list of messages or input items, and how such a list calls a text.
fn list_field(fields: &Fields) -> Option<(&'static str, &'static str)> {
    if fields.contains_key(MESSAGES) {
        return Some((MESSAGES, "text"));
    }
    // Of embeddings `input` is a text, or several of them.
    let is_of_responses = fields.contains_key("input") && fields.contains_key("max_output_tokens");
    is_of_responses.then_some(("input", "input_text"))
}

const MESSAGES: &str = "messages";
/// Fields by which an answer is read: the plan's alone.
const READING: [&str; 2] = ["n", "stream"];
/// Fields of a ready body that are the run's.
const OWN: [&str; 4] = ["model", "n", "stream", "stream_options"];
/// The names of the limit on an answer.
const LIMITS: [&str; 3] = ["max_completion_tokens", "max_output_tokens", "max_tokens"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Dialect;
    use crate::api::request::BodyOptions;
    use crate::metrics::Phase;
    use crate::workload::trace::Blocks;

    const ITEM: Item = Item { seed: 7, phase: Phase::Measured, index: 3 };

    fn entry(prompt: Prompt) -> Entry {
        Entry { output_tokens: Some(9), ..Entry::new(prompt) }
    }

    fn options() -> BodyOptions {
        let extra_body = json!({ "top_k": 5 });
        let extra_body = extra_body.as_object().unwrap().clone();
        BodyOptions { ignore_eos: true, include_usage: true, extra_body, ..BodyOptions::default() }
    }

    /// The body for an entry, as JSON, and the limit on its answer.
    fn body_of(dialect: Dialect, options: &BodyOptions, entry: &Entry) -> (Value, u32) {
        let template = Template::new(dialect, "m", true, options);
        let max_tokens = entry.output_tokens.unwrap_or(64);
        let frame = Frame { template: &template, extra_body: &options.extra_body, max_tokens, counted: None };
        let mut out = Vec::new();
        let max_tokens = write_body(&mut out, &frame, (ITEM, entry), &mut String::from("left over"));
        (serde_json::from_slice(&out).unwrap(), max_tokens)
    }

    fn chat(entry: &Entry) -> Value {
        body_of(Dialect::OpenaiChat, &options(), entry).0
    }

    #[test]
    fn a_length_becomes_as_many_words_and_at_least_one() {
        for (count, words) in [(0, 1), (1, 1), (40, 40)] {
            for ids in [None, Some(vec![1, 2])] {
                let blocks = ids.map(|ids| Blocks { ids, block_tokens: 16, scope: 0 });
                let body = chat(&entry(Prompt::Tokens { count, blocks }));
                let text = body["messages"][0]["content"].as_str().unwrap();
                assert_eq!(text.split(' ').count(), words);
                assert_eq!(body["max_tokens"], 9);
            }
        }
    }

    #[test]
    fn several_texts_are_parts_of_a_message_or_lines_of_a_prompt() {
        let entry = entry(Prompt::Parts(vec!["a".into(), "b".into()]));
        let parts = json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }]);
        assert_eq!(chat(&entry)["messages"], json!([{ "role": "user", "content": parts }]));
        assert_eq!(body_of(Dialect::Openai, &options(), &entry).0["prompt"], "a\nb");
        let items = body_of(Dialect::Responses, &options(), &entry).0["input"].clone();
        assert_eq!(items[0]["content"][1], json!({ "type": "input_text", "text": "b" }));
        let messages =
            Prompt::Messages { messages: "[{\"role\":\"user\",\"content\":\"u\"}]".into(), tools: None };
        let body = body_of(Dialect::Responses, &options(), &self::entry(messages)).0;
        assert_eq!((&body["input"][0]["content"], body.get("messages")), (&json!("u"), None));
    }

    #[test]
    fn messages_and_tools_are_sent_as_they_stand_among_the_fields_of_the_run() {
        let messages = json!([{ "role": "system", "content": "s" }, { "role": "user", "content": "u" }]);
        let tools = json!([{ "type": "function" }]);
        let prompt =
            Prompt::Messages { messages: messages.to_string().into(), tools: Some(tools.to_string().into()) };
        let usual = chat(&entry(Prompt::Text("x".into())));
        let mut expected = usual.as_object().unwrap().clone();
        expected.extend([("messages".to_owned(), messages), ("tools".to_owned(), tools)]);
        assert_eq!(chat(&entry(prompt)), Value::Object(expected));
    }

    #[test]
    fn a_ready_body_keeps_all_but_what_answers_are_read_and_found_by() {
        let body = r#"{"model":"theirs","messages":[1],"n":4,"stream":false,"stream_options":{"x":1},
                       "max_completion_tokens":16,"temperature":0.25,"top_k":9,"ignore_eos":false}"#;
        let sent = chat(&entry(Prompt::Body { url: None, body: body.into() }));
        let expected = json!({
            "model": "m", "messages": [1], "stream": true, "stream_options": { "include_usage": true },
            "max_completion_tokens": 16, "temperature": 0.25, "top_k": 5, "ignore_eos": false,
        });
        assert_eq!(sent, expected);
        let several = BodyOptions { choices: 2, ..options() };
        let of = |text: &str| entry(Prompt::Body { url: None, body: text.into() });
        assert_eq!(body_of(Dialect::OpenaiChat, &several, &of(body)).0["n"], 2);
        let bare = chat(&of(r#"{"prompt":"p"}"#));
        assert_eq!(
            (&bare["max_tokens"], &bare["prompt"], bare.get("messages")),
            (&json!(9), &json!("p"), None)
        );
    }

    #[test]
    fn ready_bodies_are_told_apart_by_the_field_of_their_prompt() {
        let mut bodies = Bodies::default();
        for body in [
            r#"{"messages":[],"model":"m"}"#,
            r#"{"prompt":"p"}"#,
            r#"{"prompt":"p","max_tokens":3}"#,
            r#"{"prompt":"p","messages":[]}"#,
            r#"{"model":"m"}"#,
        ] {
            bodies.count(&entry(Prompt::Body { url: None, body: body.into() }));
        }
        bodies.count(&entry(Prompt::Text("{}".into())));
        assert_eq!(bodies.for_others("prompt"), Some((1, "messages")));
        assert_eq!(bodies.for_others("messages"), Some((2, "prompt")));
        assert_eq!(bodies.for_others("input"), Some((3, "prompt")));
        assert_eq!(Bodies::default().for_others("prompt"), None);
    }

    #[test]
    fn an_entrys_own_fields_win_but_not_over_how_answers_are_read() {
        let extra = r#"{"top_k":1,"stream":false,"n":3,"guided":null}"#;
        let entry = Entry { extra: Some(extra.into()), ..entry(Prompt::Text("x".into())) };
        let body = chat(&entry);
        assert_eq!((&body["top_k"], &body["stream"], body.get("n")), (&json!(1), &json!(true), None));
        assert_eq!(body.get("guided"), Some(&Value::Null));
    }

    #[test]
    fn numbers_of_a_file_are_sent_to_the_last_digit() {
        let body = r#"{"messages":[],"seed":18446744073709551616,"p":0.10000000000000000001}"#;
        let options = options();
        let template = Template::new(Dialect::OpenaiChat, "m", true, &options);
        let frame =
            Frame { template: &template, extra_body: &options.extra_body, max_tokens: 64, counted: None };
        let mut out = Vec::new();
        let entry = entry(Prompt::Body { url: None, body: body.into() });
        write_body(&mut out, &frame, (ITEM, &entry), &mut String::new());
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("18446744073709551616") && text.contains("0.10000000000000000001"), "{text}");
    }
}
