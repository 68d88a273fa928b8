//! What a generation request asks for: the JSON body read, checked and reduced to numbers.
//!
//! Checks and their wording follow vLLM, so that a client meets the same refusals. Sampling fields are accepted and
//! ignored: the mock generates exactly `max_tokens` tokens whatever they say. Prompt tokens are the words of the
//! prompt, separated by white space, over all messages; a prompt given as token ids counts its ids.

use serde_json::{Map, Value};

use crate::api::Dialect;

/// A generation request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) dialect: Dialect,
    /// Whether the answer is streamed.
    pub(super) stream: bool,
    /// Number of sequences: `n` times the number of prompts.
    pub(super) choices: u32,
    /// Tokens to generate per sequence.
    pub(super) tokens: u32,
    /// Tokens of all prompts.
    pub(super) prompt_tokens: u32,
    /// A usage event at the end of the stream.
    pub(super) include_usage: bool,
    /// The usage so far in each event.
    pub(super) continuous_usage: bool,
}

/// What the server allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'a> {
    pub(super) model: &'a str,
    pub(super) max_model_len: u32,
    /// Tokens when a request names no number.
    pub(super) max_tokens: u32,
    pub(super) refused_fields: &'a [String],
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

/// Reads a body.
pub(super) fn read(dialect: Dialect, body: &[u8], terms: Terms<'_>) -> Result<Ask, Denial> {
    let fields = match serde_json::from_slice(body) {
        Ok(Value::Object(fields)) => fields,
        Ok(_) => return Err(invalid("model_attributes_type", "body", "Input should be a valid dictionary")),
        Err(error) => {
            let at = format!("body.{}", error.column());
            return Err(invalid("json_invalid", &at, "JSON decode error"));
        }
    };
    if let Some(name) = terms.refused_fields.iter().find(|name| lookup(&fields, name).is_some()) {
        return Err(invalid("extra_forbidden", &format!("body.{name}"), "Extra inputs are not permitted"));
    }
    check_model(&fields, terms)?;
    let (prompts, prompt_tokens) = match dialect {
        Dialect::OpenaiChat => (1, messages_tokens(&fields)?),
        Dialect::Openai => prompt_tokens(&fields)?,
    };
    let tokens = tokens(&fields, prompt_tokens, terms)?;
    let choices = integer(&fields, "n")?.unwrap_or(1).saturating_mul(prompts);
    if !(1..=u64::from(CHOICES_MAX)).contains(&choices) {
        let message = format!("n must be between 1 and {CHOICES_MAX}, got {choices}.");
        return Err(bad_request("n", message));
    }
    let stream = flag(&fields, "stream")?.unwrap_or(false);
    let (include_usage, continuous) = stream_options(&fields, stream)?;
    Ok(Ask {
        dialect,
        stream,
        choices: choices as u32,
        tokens,
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
        Some(Value::String(name)) if name == terms.model => Ok(()),
        Some(Value::String(name)) => Err(Denial {
            status: 404,
            kind: "NotFoundError",
            param: Some("model".to_owned()),
            message: format!("The model `{name}` does not exist. Valid aliases: {}.", terms.model),
        }),
        Some(_) => Err(invalid("string_type", "body.model", "Input should be a valid string")),
    }
}

fn tokens(fields: &Map<String, Value>, prompt_tokens: u32, terms: Terms<'_>) -> Result<u32, Denial> {
    let room = terms.max_model_len;
    if prompt_tokens >= room {
        let message = format!(
            "This model's maximum context length is {room} tokens. However, your prompt contains {prompt_tokens} \
             tokens. Please reduce the length of the input prompt. (parameter=input_text, value={prompt_tokens})"
        );
        return Err(bad_request("input_text", message));
    }
    let newer = integer(fields, "max_completion_tokens")?;
    let asked = match newer {
        Some(asked) => Some(asked),
        None => integer(fields, "max_tokens")?,
    };
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
fn prompt_tokens(fields: &Map<String, Value>) -> Result<(u64, u32), Denial> {
    let wrong = || invalid("string_type", "body.prompt", "Input should be a valid string");
    match fields.get("prompt") {
        None => Err(invalid("missing", "body.prompt", "Field required")),
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

fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The field at a dotted path.
fn lookup<'a>(fields: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => fields.get(path),
        Some((outer, inner)) => lookup(fields.get(outer)?.as_object()?, inner),
    }
}

fn integer(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, Denial> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(invalid("int_parsing", &format!("body.{name}"), "Input should be a valid integer")),
        },
    }
}

fn flag(fields: &Map<String, Value>, name: &str) -> Result<Option<bool>, Denial> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(invalid("bool_parsing", &format!("body.{name}"), "Input should be a valid boolean")),
    }
}

/// A failed validation, worded as pydantic does through vLLM.
fn invalid(kind: &str, at: &str, message: &str) -> Denial {
    Denial {
        status: 400,
        kind: "Bad Request",
        param: Some(at.to_owned()),
        message: format!("1 validation error:\n  {{'type': '{kind}', 'loc': '{at}', 'msg': '{message}'}}"),
    }
}

fn bad_request(param: &str, message: String) -> Denial {
    Denial { status: 400, kind: "BadRequestError", param: Some(param.to_owned()), message }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms<'static> =
        Terms { model: "mock", max_model_len: 1000, max_tokens: 16, refused_fields: &[] };

    fn chat(body: &str) -> Result<Ask, Denial> {
        read(Dialect::OpenaiChat, body.as_bytes(), TERMS)
    }

    fn text(body: &str) -> Result<Ask, Denial> {
        read(Dialect::Openai, body.as_bytes(), TERMS)
    }

    #[test]
    fn a_full_chat_request_is_understood() {
        let ask = chat(
            r#"{"model":"mock","messages":[{"role":"system","content":"be brief"},
                {"role":"user","content":[{"type":"text","text":" tell  me\nmore"},{"type":"image_url"}]},
                {"role":"assistant","content":null}],
                "stream":true,"max_tokens":7,"n":2,"ignore_eos":true,"min_tokens":7,"temperature":0.5,
                "stream_options":{"include_usage":true,"continuous_usage_stats":true}}"#,
        );
        assert_eq!(
            ask,
            Ok(Ask {
                dialect: Dialect::OpenaiChat,
                stream: true,
                choices: 2,
                tokens: 7,
                prompt_tokens: 5,
                include_usage: true,
                continuous_usage: true,
            })
        );
    }

    #[test]
    fn defaults_hold_where_fields_are_absent_or_null() {
        let ask = chat(r#"{"messages":[],"max_tokens":null,"n":null,"stream":null,"stream_options":null}"#)
            .unwrap();
        assert_eq!((ask.stream, ask.tokens, ask.choices, ask.prompt_tokens), (false, 16, 1, 0));
        assert!(!ask.include_usage);
    }

    #[test]
    fn the_newer_name_of_max_tokens_wins() {
        let ask = chat(r#"{"messages":[],"max_tokens":3,"max_completion_tokens":4}"#).unwrap();
        assert_eq!(ask.tokens, 4);
    }

    #[test]
    fn continuous_usage_needs_usage() {
        let ask = chat(r#"{"messages":[],"stream":true,"stream_options":{"continuous_usage_stats":true}}"#);
        assert!(!ask.unwrap().continuous_usage);
    }

    #[test]
    fn prompts_may_be_text_or_ids_one_or_many() {
        let of = |prompt: &str| {
            let ask = text(&format!(r#"{{"prompt":{prompt},"n":2}}"#)).unwrap();
            (ask.choices, ask.prompt_tokens)
        };
        assert_eq!(of(r#""one two three""#), (2, 3));
        assert_eq!(of(r#"["one two","three"]"#), (4, 3));
        assert_eq!(of("[5,6,7]"), (2, 3));
        assert_eq!(of("[[5,6],[7]]"), (4, 3));
        for bad in ["[]", "{}", "[true]", "7"] {
            assert_eq!(text(&format!(r#"{{"prompt":{bad}}}"#)).unwrap_err().status, 400, "{bad}");
        }
    }

    #[test]
    fn what_vllm_refuses_is_refused_in_its_words() {
        let says = |body: &str| chat(body).unwrap_err();
        let model = says(r#"{"model":"x","messages":[]}"#);
        assert_eq!((model.status, model.kind), (404, "NotFoundError"));
        assert_eq!(model.message, "The model `x` does not exist. Valid aliases: mock.");
        assert!(says("{").message.contains("JSON decode error"));
        assert!(says("[]").message.contains("valid dictionary"));
        assert!(says("{}").message.contains("Field required"));
        assert_eq!(says(r#"{"messages":[],"max_tokens":"many"}"#).param.as_deref(), Some("body.max_tokens"));
        assert!(says(r#"{"messages":[],"max_tokens":0}"#).message.contains("at least 1"));
        assert!(says(r#"{"messages":[],"max_tokens":1001}"#).message.contains("max_model_len=1000"));
        assert!(says(r#"{"messages":[],"n":0}"#).message.contains("between 1 and 128"));
        assert!(says(r#"{"messages":[],"n":129}"#).message.contains("between 1 and 128"));
        assert!(says(r#"{"messages":[],"stream_options":{}}"#).message.contains("stream=True"));
        assert_eq!(says(r#"{"messages":["x"]}"#).status, 400);
        let long = format!(r#"{{"messages":[{{"content":"{}"}}]}}"#, "w ".repeat(1000));
        assert!(says(&long).message.contains("maximum context length"));
    }

    #[test]
    fn a_field_set_to_be_refused_is_named() {
        let refused = ["ignore_eos".to_owned(), "stream_options.continuous_usage_stats".to_owned()];
        let terms = Terms { refused_fields: &refused, ..TERMS };
        let read = |body: &str| read(Dialect::OpenaiChat, body.as_bytes(), terms);
        let denial = read(r#"{"messages":[],"ignore_eos":true}"#).unwrap_err();
        assert_eq!(denial.status, 400);
        assert!(denial.message.contains("'body.ignore_eos', 'msg': 'Extra inputs are not permitted'"));
        let inner = r#"{"messages":[],"stream":true,"stream_options":{"continuous_usage_stats":false}}"#;
        assert!(read(inner).is_err());
        assert!(read(r#"{"messages":[],"stream":true,"stream_options":{"include_usage":true}}"#).is_ok());
    }
}
