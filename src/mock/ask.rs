//! What a generation request asks for: the JSON body read, checked and reduced to numbers.
//!
//! Checks and their wording follow vLLM, so that a client meets the same refusals. Sampling fields are accepted and
//! ignored: the mock generates the tokens asked for whatever they say. Prompt tokens are the words of the prompt,
//! separated by white space, over all messages; a prompt given as token ids counts its ids. Bodies that are not those of
//! OpenAI's completions are read each in a file of its own.

mod fields;
mod messages;
mod native;
mod ollama;
mod responses;
#[cfg(test)]
mod tests;
mod tokenize;

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::model;

pub(super) use tokenize::answer as tokens_of;

use fields::{bad_request, flag, integer, invalid, lookup, narrow, words};

/// A way to ask for tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surface {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's embeddings.
    Embeddings,
    /// llama.cpp's `/completion`.
    LlamaCpp,
    /// Anthropic's messages.
    Messages,
    /// Ollama's `/api/chat`.
    OllamaChat,
    /// Ollama's `/api/generate`.
    OllamaGenerate,
    /// OpenAI's responses.
    Responses,
    /// SGLang's `/generate`.
    Sglang,
    /// OpenAI's text completions.
    Text,
}

/// A generation request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) surface: Surface,
    /// Whether the answer is streamed.
    pub(super) stream: bool,
    /// Number of sequences: `n` times the number of prompts.
    pub(super) choices: u32,
    /// Tokens to generate per sequence.
    pub(super) tokens: u32,
    /// Why a sequence ends after them.
    pub(super) finish: Finish,
    /// The first of them are reasoning, up to this many.
    pub(super) reasoning: u32,
    /// The answer calls the tool of this name, a JSON string with its quotes.
    pub(super) tool: Option<Arc<str>>,
    /// Tokens of all prompts.
    pub(super) prompt_tokens: u32,
    /// A usage event at the end of the stream.
    pub(super) include_usage: bool,
    /// The usage so far in each event.
    pub(super) continuous_usage: bool,
}

/// Why a sequence ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finish {
    /// `max_tokens` was reached.
    Length,
    /// The model had said all.
    Stop,
    /// It has called a tool.
    ToolCalls,
}

/// What the server allows and how it answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    pub(super) model: &'a str,
    /// Names that are answered as well.
    pub(super) adapters: &'a [String],
    pub(super) max_model_len: u32,
    pub(super) beside: Beside,
    /// `/tokenize` is answered.
    pub(super) tokenizes: bool,
    /// Tokens when a request names no number.
    pub(super) max_tokens: u32,
    /// Tokens after which a sequence ends by itself.
    pub(super) eos_after: Option<u32>,
    pub(super) reasoning: u32,
    /// Every chat answer calls a tool.
    pub(super) tool_call: bool,
    pub(super) refused_fields: &'a [String],
}

/// Tokens that a server adds to prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Beside {
    /// Before a text.
    pub(super) bos: u32,
    /// Around messages.
    pub(super) template: u32,
}

/// A request that is answered with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Denial {
    pub(super) status: u16,
    /// The error's `type`.
    pub(super) kind: &'static str,
    /// The field at fault.
    pub(super) param: Option<String>,
    pub(super) message: String,
}

/// Most choices of one request, as vLLM limits `n`; also what keeps the draws of two requests apart.
pub(super) const CHOICES_MAX: u32 = 128;

impl Surface {
    /// Whose paths these are.
    pub(super) fn of_path(path: &str) -> Option<Surface> {
        match path {
            "/api/chat" => Some(Surface::OllamaChat),
            "/api/generate" => Some(Surface::OllamaGenerate),
            "/v1/chat/completions" => Some(Surface::Chat),
            "/v1/completions" => Some(Surface::Text),
            "/completion" => Some(Surface::LlamaCpp),
            "/generate" => Some(Surface::Sglang),
            "/v1/embeddings" => Some(Surface::Embeddings),
            "/v1/messages" => Some(Surface::Messages),
            "/v1/responses" => Some(Surface::Responses),
            _ => None,
        }
    }

    /// Whether streams are JSON lines instead of events.
    pub(super) fn is_ollama(self) -> bool {
        matches!(self, Surface::OllamaChat | Surface::OllamaGenerate)
    }

    /// Whether streams end with `[DONE]`.
    pub(super) fn has_done(self) -> bool {
        matches!(self, Surface::Chat | Surface::Sglang | Surface::Text)
    }

    /// Whether an answer consists of parts that are opened and closed by events of their own.
    pub(super) fn has_parts(self) -> bool {
        matches!(self, Surface::Messages | Surface::Responses)
    }

    /// Whether the last event of a stream is the only one that says that it has ended, and why.
    pub(super) fn ends_in_one_event(self) -> bool {
        self.is_ollama() || matches!(self, Surface::LlamaCpp | Surface::Responses)
    }

    /// Whether events differ in more than the words of their tokens.
    pub(super) fn differs_by_event(self) -> bool {
        matches!(self, Surface::LlamaCpp | Surface::Sglang)
    }
}

/// The blocks of a prompt for a prefix cache of `block_tokens`: its tokens in order, over all messages. Empty without
/// a cache, and for a body of several prompts or of token ids, which are shared with nobody.
pub(super) fn blocks(surface: Surface, body: &[u8], block_tokens: u32) -> Arc<[u64]> {
    if block_tokens == 0 {
        return Arc::from([]);
    }
    let Ok(fields) = serde_json::from_slice::<Value>(body) else { return Arc::from([]) };
    let texts: Vec<&str> = match surface {
        Surface::Chat | Surface::Messages | Surface::OllamaChat => {
            let messages = fields["messages"].as_array().into_iter().flatten();
            let contents = messages.filter_map(|message| message["content"].as_str());
            fields["system"].as_str().into_iter().chain(contents).collect()
        }
        Surface::Text | Surface::OllamaGenerate | Surface::LlamaCpp => {
            fields["prompt"].as_str().into_iter().collect()
        }
        Surface::Embeddings | Surface::Responses => {
            let items = fields["input"].as_array().into_iter().flatten();
            let items = items.filter_map(|item| item["content"].as_str());
            let texts = [&fields["instructions"], &fields["input"]].into_iter().filter_map(Value::as_str);
            texts.chain(items).collect()
        }
        Surface::Sglang => fields["text"].as_str().into_iter().collect(),
    };
    let words = texts.iter().flat_map(|text| fields::tokens(text)).map(|word| {
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        hasher.finish()
    });
    model::block_hashes(words, block_tokens)
}

/// The fields of a body for the model that is served.
fn object(body: &[u8], terms: Terms<'_>) -> Result<Map<String, Value>, Denial> {
    let fields = match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return Err(invalid("model_attributes_type", "body", "Input should be a valid dictionary")),
        Err(error) => {
            let at = format!("body.{}", error.column());
            return Err(invalid("json_invalid", &at, "JSON decode error"));
        }
    };
    check_model(&fields, terms)?;
    Ok(fields)
}

/// Reads a body.
pub(super) fn read(surface: Surface, body: &[u8], terms: Terms<'_>) -> Result<Ask, Denial> {
    let fields = object(body, terms)?;
    if let Some(name) = terms.refused_fields.iter().find(|name| lookup(&fields, name).is_some()) {
        return Err(invalid("extra_forbidden", &format!("body.{name}"), "Extra inputs are not permitted"));
    }
    let ask = match surface {
        Surface::Chat | Surface::Text => openai(surface, &fields, terms),
        Surface::Embeddings => native::embeddings(&fields, terms),
        Surface::LlamaCpp => native::llama_cpp(&fields, terms),
        Surface::Messages => messages::read(&fields, terms),
        Surface::Responses => responses::read(&fields, terms),
        Surface::Sglang => native::sglang(&fields, terms),
        Surface::OllamaChat | Surface::OllamaGenerate => ollama::read(surface, &fields, terms),
    }?;
    let more = terms.beside.tokens(surface, &fields);
    Ok(Ask { prompt_tokens: ask.prompt_tokens.saturating_add(more), ..ask })
}

impl Beside {
    /// What comes to a prompt.
    fn tokens(self, surface: Surface, fields: &Map<String, Value>) -> u32 {
        match surface {
            Surface::Chat
            | Surface::Messages
            | Surface::OllamaChat
            | Surface::OllamaGenerate
            | Surface::Responses => self.template,
            Surface::Text | Surface::LlamaCpp | Surface::Embeddings | Surface::Sglang => {
                let is_text = ["prompt", "text", "input"]
                    .iter()
                    .any(|name| fields.get(*name).is_some_and(Value::is_string));
                if is_text { self.bos } else { 0 }
            }
        }
    }
}

/// Reads the fields of a completion.
fn openai(surface: Surface, fields: &Map<String, Value>, terms: Terms<'_>) -> Result<Ask, Denial> {
    let (prompts, prompt_tokens) = match surface {
        Surface::Text => prompt_tokens(fields, "prompt")?,
        _ => (1, messages_tokens(fields)?),
    };
    let (tokens, finish) = tokens(fields, prompt_tokens, terms)?;
    let choices = integer(fields, "n")?.unwrap_or(1).saturating_mul(prompts);
    if !(1..=u64::from(CHOICES_MAX)).contains(&choices) {
        let message = format!("n must be between 1 and {CHOICES_MAX}, got {choices}.");
        return Err(bad_request("n", message));
    }
    let is_chat = surface == Surface::Chat;
    // A call needs a token after the reasoning.
    let tool = if is_chat { tool(fields, terms)?.filter(|_| terms.reasoning < tokens) } else { None };
    let stream = flag(fields, "stream")?.unwrap_or(false);
    let (include_usage, continuous) = stream_options(fields, stream)?;
    Ok(Ask {
        surface,
        stream,
        choices: choices as u32,
        tokens,
        finish: if tool.is_some() { Finish::ToolCalls } else { finish },
        reasoning: if is_chat { terms.reasoning } else { 0 },
        tool,
        prompt_tokens,
        include_usage,
        continuous_usage: include_usage && continuous,
    })
}

/// `include_usage` and `continuous_usage_stats`.
fn stream_options(fields: &Map<String, Value>, stream: bool) -> Result<(bool, bool), Denial> {
    match fields.get("stream_options") {
        None | Some(Value::Null) => Ok((false, false)),
        Some(_) if !stream => Err(bad_request(
            "stream_options",
            "Stream options can only be defined when `stream=True`.".to_owned(),
        )),
        Some(Value::Object(options)) => Ok((
            flag(options, "include_usage")?.unwrap_or(false),
            flag(options, "continuous_usage_stats")?.unwrap_or(false),
        )),
        Some(_) => {
            Err(invalid("model_attributes_type", "body.stream_options", "Input should be a valid dictionary"))
        }
    }
}

fn check_model(fields: &Map<String, Value>, terms: Terms<'_>) -> Result<(), Denial> {
    match fields.get("model") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(name)) if name == terms.model || terms.adapters.contains(name) => Ok(()),
        Some(Value::String(name)) => Err(Denial {
            status: 404,
            kind: "NotFoundError",
            param: Some("model".to_owned()),
            message: format!("The model `{name}` does not exist. Valid aliases: {}.", terms.model),
        }),
        Some(_) => Err(invalid("string_type", "body.model", "Input should be a valid string")),
    }
}

/// Tokens per sequence, and why it ends after them.
fn tokens(
    fields: &Map<String, Value>,
    prompt_tokens: u32,
    terms: Terms<'_>,
) -> Result<(u32, Finish), Denial> {
    let newer = integer(fields, "max_completion_tokens")?;
    let asked = match newer {
        Some(asked) => Some(asked),
        None => integer(fields, "max_tokens")?,
    };
    let most = room(asked, prompt_tokens, terms)?;
    let least = integer(fields, "min_tokens")?.unwrap_or(0);
    if least > u64::from(most) {
        let message = format!("min_tokens must be less than or equal to max_tokens={most}, got {least}.");
        return Err(bad_request("min_tokens", message));
    }
    let ignores_eos = flag(fields, "ignore_eos")?.unwrap_or(false);
    let eos = terms.eos_after.filter(|_| !ignores_eos).map(|eos| eos.max(least as u32).max(1));
    Ok(ending(most, eos))
}

/// At most `most` tokens, fewer if the sequence ends by itself before.
fn ending(most: u32, eos: Option<u32>) -> (u32, Finish) {
    match eos {
        Some(eos) if eos < most => (eos, Finish::Stop),
        _ => (most, Finish::Length),
    }
}

/// Most tokens of a sequence, by what is asked for and what the context has room for.
fn room(asked: Option<u64>, prompt_tokens: u32, terms: Terms<'_>) -> Result<u32, Denial> {
    let room = terms.max_model_len;
    if prompt_tokens >= room {
        let message = format!(
            "This model's maximum context length is {room} tokens. However, your prompt contains {prompt_tokens} \
             tokens. Please reduce the length of the input prompt. (parameter=input_text, value={prompt_tokens})"
        );
        return Err(bad_request("input_text", message));
    }
    match asked {
        None => Ok(terms.max_tokens.min(room - prompt_tokens).max(1)),
        Some(0) => Err(bad_request("max_tokens", "max_tokens must be at least 1, got 0.".to_owned())),
        Some(asked) if asked > u64::from(room) => Err(bad_request(
            "max_tokens",
            format!(
                "max_tokens={asked} cannot be greater than max_model_len={room}. Please request fewer output \
                 tokens. (parameter=max_tokens, value={asked})"
            ),
        )),
        Some(asked) => Ok(asked as u32),
    }
}

/// The name of the tool to call, if one is to be called: the server's setting, a `tool_choice` of `required`, or one
/// that names a function. Of several tools the first is called.
fn tool(fields: &Map<String, Value>, terms: Terms<'_>) -> Result<Option<Arc<str>>, Denial> {
    let tools = fields.get("tools").and_then(Value::as_array).filter(|tools| !tools.is_empty());
    let chosen = match fields.get("tool_choice") {
        Some(Value::Object(choice)) => lookup(choice, "function.name").cloned(),
        Some(Value::String(choice)) if choice == "required" => None,
        Some(Value::String(choice)) if choice == "none" => return Ok(None),
        _ if terms.tool_call => None,
        _ => return Ok(None),
    };
    if tools.is_none() && !terms.tool_call {
        let message = "When using `tool_choice`, `tools` must be set.".to_owned();
        return Err(bad_request("tool_choice", message));
    }
    let first = tools.and_then(|tools| tools[0].get("function")?.get("name").cloned());
    Ok(Some(tool_name(chosen.or(first))))
}

/// The tool that is named, or else the first, where names do not stand in an object of the function.
fn tool_in_the_open(fields: &Map<String, Value>) -> Arc<str> {
    let named = fields.get("tool_choice").and_then(|choice| choice.get("name"));
    let first = || fields.get("tools")?.as_array()?.first()?.get("name");
    tool_name(named.or_else(first).cloned())
}

/// The name of a tool as a JSON string.
fn tool_name(name: Option<Value>) -> Arc<str> {
    name.filter(Value::is_string).unwrap_or_else(|| Value::from("lookup")).to_string().into()
}

fn messages_tokens(fields: &Map<String, Value>) -> Result<u32, Denial> {
    let messages = match fields.get("messages") {
        Some(Value::Array(messages)) => messages,
        None => return Err(invalid("missing", "body.messages", "Field required")),
        Some(_) => return Err(invalid("list_type", "body.messages", "Input should be a valid list")),
    };
    let mut count = 0usize;
    for message in messages {
        match message.get("content") {
            Some(Value::String(text)) => count += words(text),
            Some(Value::Array(parts)) => {
                let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
                count += texts.map(words).sum::<usize>();
            }
            _ if message.is_object() => {}
            _ => {
                return Err(invalid("model_attributes_type", "body.messages", "Input should be an object"));
            }
        }
    }
    Ok(narrow(count))
}

/// Number of prompts and the tokens of all: a text, a list of texts, a list of ids, or a list of lists of ids.
fn prompt_tokens(fields: &Map<String, Value>, name: &str) -> Result<(u64, u32), Denial> {
    let at = format!("body.{name}");
    let wrong = || invalid("string_type", &at, "Input should be a valid string");
    match fields.get(name) {
        None => Err(invalid("missing", &at, "Field required")),
        Some(Value::String(text)) => Ok((1, narrow(words(text)))),
        Some(Value::Array(items)) if items.is_empty() => Err(wrong()),
        Some(Value::Array(items)) if items.iter().all(Value::is_u64) => Ok((1, narrow(items.len()))),
        Some(Value::Array(items)) => {
            let mut count = 0usize;
            for item in items {
                count += match item {
                    Value::String(text) => words(text),
                    Value::Array(ids) if ids.iter().all(Value::is_u64) => ids.len(),
                    _ => return Err(wrong()),
                };
            }
            Ok((items.len() as u64, narrow(count)))
        }
        Some(_) => Err(wrong()),
    }
}
