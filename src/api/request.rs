//! Request bodies.
//!
//! A [`Template`] holds everything of a body but the prompt and the limit on the answer; those two are all that is
//! written per request. Which options a run asks for is decided in `plan`, where each of the other dialects puts them
//! in its own file.

#[cfg(test)]
mod tests;

use std::io::Write as _;

use serde_json::{Map, Value, json};

use super::blanks::{Blank, Dress, Piece, pieces};
use super::{Dialect, Filling, Raw, RawError, embeddings, llama_cpp, messages, ollama, responses, sglang};

/// What is asked for in every body.
#[derive(Clone, Debug, PartialEq)]
pub struct BodyOptions {
    /// `n`; sent if more than one.
    pub choices: u32,
    /// `ignore_eos: true`.
    pub ignore_eos: bool,
    /// `min_tokens` equal to `max_tokens`.
    pub min_tokens: bool,
    /// `stream_options.include_usage: true`; sent with a stream only.
    pub include_usage: bool,
    /// `stream_options.continuous_usage_stats: true`; sent with a stream only.
    pub continuous_usage: bool,
    /// A message of the system before the prompt, where the dialect has such messages.
    pub system: bool,
    /// The prompt is a list of token ids, where the dialect takes one; otherwise it is a text.
    pub prompt_ids: bool,
    /// Sampling parameters, sent as they are.
    pub sampling: Map<String, Value>,
    /// Further fields. One that has the name of another field, the prompt's and the limit's included, stands in its
    /// place.
    pub extra_body: Map<String, Value>,
}

impl Default for BodyOptions {
    fn default() -> BodyOptions {
        BodyOptions {
            choices: 1,
            ignore_eos: false,
            min_tokens: false,
            include_usage: false,
            continuous_usage: false,
            system: false,
            prompt_ids: false,
            sampling: Map::new(),
            extra_body: Map::new(),
        }
    }
}

/// The texts of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Texts<'a> {
    /// The message of the system, where one is asked for.
    pub system: &'a str,
    /// The prompt.
    pub prompt: &'a str,
}

impl<'a> From<&'a str> for Texts<'a> {
    /// A prompt where no message of the system is asked for.
    fn from(prompt: &'a str) -> Texts<'a> {
        Texts { system: "", prompt }
    }
}

/// A body with blanks: for the texts, for the limit, and for what the user has written placeholders for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Bytes that are the same in every body.
    Fixed(Vec<u8>),
    /// The prompt as a JSON string.
    Prompt,
    /// The prompt, numbers with commas between them, as a JSON array.
    PromptIds,
    /// The prompt within a JSON string.
    PromptInside,
    /// The messages of a conversation, JSON objects with commas between them.
    Messages,
    /// The largest number of tokens of the answer.
    Limit,
    /// A placeholder of the user's.
    Blank(Blank, Dress),
    /// The message of the system as a JSON string.
    System,
}

impl Template {
    /// The body of a request for `model`.
    #[must_use]
    pub fn new(dialect: Dialect, model: &str, stream: bool, options: &BodyOptions) -> Template {
        let order = Order { model, stream, options };
        let mut fields = match dialect {
            Dialect::OpenaiChat => openai_fields(&order, |fields| {
                fields.put("messages", messages_of(options.system));
            }),
            Dialect::Openai => openai_fields(&order, |fields| fields.put("prompt", vec![order.prompt()])),
            Dialect::Messages => messages::fields(&order),
            Dialect::Responses => responses::fields(&order),
            Dialect::OllamaChat => ollama::chat_fields(&order),
            Dialect::OllamaGenerate => ollama::generate_fields(&order),
            Dialect::LlamaCpp => llama_cpp::fields(&order),
            Dialect::Sglang => sglang::fields(&order),
            Dialect::Embeddings => embeddings::fields(&order),
            // There is no body without a template: see `of_raw`.
            Dialect::Raw => Fields::default(),
        };
        fields.further(&options.extra_body, &Constants { model, stream });
        Template { parts: fields.into_parts() }
    }

    /// The body of a request for `model` to the user's own API, in which options stand as its author put them.
    ///
    /// # Errors
    /// The body cannot be used.
    pub fn of_raw(raw: &Raw, model: &str, stream: bool) -> Result<Template, RawError> {
        Ok(Template { parts: raw.fields(model, stream)?.into_parts() })
    }

    /// The same body for a whole conversation, which is written by [`Template::write_list`]: its messages, or input items,
    /// stand in place of the one prompt. `None` where the body has no list of them, or the user's fields replace it.
    #[must_use]
    pub fn of_list(&self) -> Option<Template> {
        let place = self.parts.iter().position(|part| *part == Part::Prompt)?;
        let mut parts = self.parts.clone();
        let (Part::Fixed(before), Part::Fixed(after)) =
            (parts.get(place.checked_sub(1)?)?.clone(), parts.get(place + 1)?.clone())
        else {
            return None;
        };
        let around = match (before.strip_suffix(ONE_MESSAGE), after.strip_prefix(b"}")) {
            (Some(before), Some(after)) => (before.to_vec(), after.to_vec()),
            // Responses take one text, or a list of items in its place.
            _ if before.ends_with(br#""input":"#) => {
                ([&before[..], b"["].concat(), [b"]", &after[..]].concat())
            }
            _ => return None,
        };
        (parts[place - 1], parts[place + 1]) = (Part::Fixed(around.0), Part::Fixed(around.1));
        parts[place] = Part::Messages;
        Some(Template { parts })
    }

    /// Appends the body of a conversation to `out`; of [`Template::of_list`] alone.
    pub fn write_list(
        &self,
        out: &mut Vec<u8>,
        messages: &[u8],
        max_tokens: u32,
        (system, of): (&str, &Filling),
    ) {
        for part in &self.parts {
            match part {
                Part::Fixed(bytes) => out.extend_from_slice(bytes),
                Part::Messages => out.extend_from_slice(messages),
                Part::System => write_string(out, system),
                Part::Blank(blank, dress) => blank.write(out, *dress, of),
                Part::Limit => write!(out, "{max_tokens}").expect("a Vec takes every write"),
                Part::Prompt | Part::PromptIds | Part::PromptInside => {}
            }
        }
    }

    /// Appends the body of one request to `out`.
    pub fn write<'t>(&self, out: &mut Vec<u8>, texts: impl Into<Texts<'t>>, max_tokens: u32, of: &Filling) {
        let Texts { system, prompt } = texts.into();
        for part in &self.parts {
            match part {
                Part::Fixed(bytes) => out.extend_from_slice(bytes),
                Part::Prompt => write_string(out, prompt),
                Part::PromptIds => {
                    out.push(b'[');
                    out.extend_from_slice(prompt.as_bytes());
                    out.push(b']');
                }
                Part::PromptInside => {
                    let start = out.len();
                    write_string(out, prompt);
                    // Its quotes are those of the string around it.
                    out.pop();
                    out.remove(start);
                }
                Part::System => write_string(out, system),
                Part::Messages => {}
                Part::Limit => write!(out, "{max_tokens}").expect("a Vec takes every write"),
                Part::Blank(blank, dress) => blank.write(out, *dress, of),
            }
        }
    }
}

/// What stands in a body before the text of its one message.
const ONE_MESSAGE: &[u8] = br#"{"role":"user","content":"#;

/// What the body of a dialect is made of.
pub(super) struct Order<'a> {
    pub(super) model: &'a str,
    pub(super) stream: bool,
    pub(super) options: &'a BodyOptions,
}

/// The messages of a chat: that of the system if there is one, and that of the user.
pub(super) fn messages_of(system: bool) -> Vec<Part> {
    let user = [fixed(r#"{"role":"user","content":"#), Part::Prompt, fixed("}]")];
    match system {
        false => [fixed("[")].into_iter().chain(user).collect(),
        true => [fixed(r#"[{"role":"system","content":"#), Part::System, fixed("},")]
            .into_iter()
            .chain(user)
            .collect(),
    }
}

impl Order<'_> {
    /// The prompt where it may be a list of ids.
    pub(super) fn prompt(&self) -> Part {
        if self.options.prompt_ids { Part::PromptIds } else { Part::Prompt }
    }
}

/// The fields of OpenAI's completions; `prompt` puts the one that they have under different names.
fn openai_fields(order: &Order<'_>, prompt: impl FnOnce(&mut Fields)) -> Fields {
    let Order { model, stream, options } = order;
    let mut fields = Fields::default();
    fields.fixed("model", &json!(model));
    prompt(&mut fields);
    fields.put("max_tokens", vec![Part::Limit]);
    if options.min_tokens {
        fields.put("min_tokens", vec![Part::Limit]);
    }
    if options.ignore_eos {
        fields.fixed("ignore_eos", &json!(true));
    }
    if options.choices > 1 {
        fields.fixed("n", &json!(options.choices));
    }
    fields.fixed_all(&options.sampling);
    fields.fixed("stream", &json!(stream));
    if let Some(value) = stream_options(options).filter(|_| *stream) {
        fields.fixed("stream_options", &value);
    }
    fields
}

fn stream_options(options: &BodyOptions) -> Option<Value> {
    let mut wishes = Map::new();
    if options.include_usage {
        wishes.insert("include_usage".to_owned(), json!(true));
    }
    if options.continuous_usage {
        wishes.insert("continuous_usage_stats".to_owned(), json!(true));
    }
    (!wishes.is_empty()).then_some(Value::Object(wishes))
}

/// The fields of an object in their order, each name once.
#[derive(Default)]
pub(super) struct Fields {
    list: Vec<(String, Field)>,
}

enum Field {
    Value(Vec<Part>),
    Object(Fields),
}

impl Fields {
    /// Adds a field, in the place of an earlier one of that name if there is one.
    pub(super) fn put(&mut self, name: &str, value: Vec<Part>) {
        self.set(name, Field::Value(value));
    }

    pub(super) fn fixed(&mut self, name: &str, value: &Value) {
        self.put(name, vec![Part::Fixed(value.to_string().into_bytes())]);
    }

    pub(super) fn fixed_all(&mut self, values: &Map<String, Value>) {
        for (name, value) in values {
            self.fixed(name, value);
        }
    }

    /// Adds sampling parameters, where the penalty for repetition has another name.
    pub(super) fn sampling(&mut self, values: &Map<String, Value>, repetition: &str) {
        for (name, value) in values {
            self.fixed(if name == "repetition_penalty" { repetition } else { name }, value);
        }
    }

    /// Adds an object. Of the user's further fields, those of an object of this name go into it.
    pub(super) fn object(&mut self, name: &str, fields: Fields) {
        self.set(name, Field::Object(fields));
    }

    /// Adds the user's fields, which win over all others, with their placeholders. They are taken as validated: what
    /// cannot be read as placeholders stands as it is.
    fn further(&mut self, values: &Map<String, Value>, of: &Constants<'_>) {
        for (name, value) in values {
            let inner = self.list.iter_mut().find(|(earlier, _)| earlier == name);
            if let (Some((_, Field::Object(fields))), Value::Object(values)) = (inner, value) {
                fields.further(values, of);
                continue;
            }
            let mut parts = Vec::new();
            match of.write(value, &mut parts) {
                Ok(()) => self.put(name, parts),
                Err(_) => self.fixed(name, value),
            }
        }
    }

    fn set(&mut self, name: &str, field: Field) {
        match self.list.iter_mut().find(|(earlier, _)| earlier == name) {
            Some((_, place)) => *place = field,
            None => self.list.push((name.to_owned(), field)),
        }
    }

    /// The whole object; fixed parts beside each other become one.
    fn into_parts(self) -> Vec<Part> {
        let mut parts = Vec::new();
        let mut pending = b"{".to_vec();
        for (place, (name, value)) in self.list.into_iter().enumerate() {
            if place > 0 {
                pending.push(b',');
            }
            write_string(&mut pending, &name);
            pending.push(b':');
            let value = match value {
                Field::Value(parts) => parts,
                Field::Object(fields) => fields.into_parts(),
            };
            for part in value {
                match part {
                    Part::Fixed(bytes) => pending.extend_from_slice(&bytes),
                    blank => parts.extend([Part::Fixed(std::mem::take(&mut pending)), blank]),
                }
            }
        }
        pending.push(b'}');
        parts.push(Part::Fixed(pending));
        parts
    }
}

/// The placeholders that are filled once.
pub(super) struct Constants<'a> {
    pub(super) model: &'a str,
    pub(super) stream: bool,
}

impl Constants<'_> {
    /// Appends a JSON value that the user has written, with blanks where its strings have placeholders.
    ///
    /// # Errors
    /// In words, a placeholder that there is none of.
    pub(super) fn write(&self, value: &Value, out: &mut Vec<Part>) -> Result<(), String> {
        match value {
            Value::String(text) => return self.string(text, out),
            Value::Array(items) => {
                out.push(fixed("["));
                for (place, item) in items.iter().enumerate() {
                    if place > 0 {
                        out.push(fixed(","));
                    }
                    self.write(item, out)?;
                }
                out.push(fixed("]"));
            }
            Value::Object(fields) => {
                out.push(fixed("{"));
                for (place, (name, value)) in fields.iter().enumerate() {
                    let comma = if place > 0 { "," } else { "" };
                    out.push(fixed(&format!("{comma}{}:", Value::from(name.as_str()))));
                    self.write(value, out)?;
                }
                out.push(fixed("}"));
            }
            plain => out.push(fixed(&plain.to_string())),
        }
        Ok(())
    }

    /// A string that is one placeholder and nothing else becomes a value of its own type.
    fn string(&self, text: &str, out: &mut Vec<Part>) -> Result<(), String> {
        let pieces = pieces(text)?;
        if let [piece] = pieces.as_slice()
            && !matches!(piece, Piece::Fixed(_))
        {
            out.push(match piece {
                Piece::Fixed(text) => fixed(text),
                Piece::Prompt => Part::Prompt,
                Piece::Limit => Part::Limit,
                Piece::Model => fixed(&Value::from(self.model).to_string()),
                Piece::Stream => fixed(&self.stream.to_string()),
                Piece::Blank(blank) => Part::Blank(blank.clone(), Dress::Value),
            });
            return Ok(());
        }
        let inside = |text: &str| {
            let quoted = Value::from(text).to_string();
            fixed(&quoted[1..quoted.len() - 1])
        };
        out.push(fixed("\""));
        out.extend(pieces.iter().map(|piece| match piece {
            Piece::Fixed(text) => inside(text),
            Piece::Prompt => Part::PromptInside,
            Piece::Limit => Part::Limit,
            Piece::Model => inside(self.model),
            Piece::Stream => fixed(&self.stream.to_string()),
            Piece::Blank(blank) => Part::Blank(blank.clone(), Dress::Inside),
        }));
        out.push(fixed("\""));
        Ok(())
    }
}

/// Whether the placeholders in further fields can be filled.
///
/// # Errors
/// In words, the first that there is none of.
pub fn check_placeholders(extra_body: &Map<String, Value>) -> Result<(), String> {
    let constants = Constants { model: "", stream: true };
    extra_body.values().try_for_each(|value| constants.write(value, &mut Vec::new()))
}

pub(super) fn fixed(text: &str) -> Part {
    Part::Fixed(text.as_bytes().to_vec())
}

/// Appends `text` as a JSON string. Prompts of plain words need no escape, which is seen many bytes at a time; finding the
/// characters that need one goes byte by byte.
pub(super) fn write_string(out: &mut Vec<u8>, text: &str) {
    let needs_escape = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    if text.bytes().fold(false, |any, byte| any | needs_escape(byte)) {
        serde_json::to_writer(out, text).expect("a Vec takes every write, and a string is always JSON");
        return;
    }
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}
