//! What a server says about a request that it refused.
//!
//! For people (an example beside a count) and for the probe, which drops an optional field that the server names.
//! Whether an answer is a failure is decided elsewhere. None of this is on the measured path.

#[cfg(test)]
mod tests;

use crate::wire::json::{Json, Value};

/// The message of an error body in one line of at most 300 characters; `None` where it has none.
///
/// Understands `error.message`, `error`, `message` and `detail` in the shapes seen on the wire, also inside a list;
/// plain text; and the title of an HTML page.
#[must_use]
pub fn error_message(json: &mut Json, body: &[u8]) -> Option<String> {
    let Ok(document) = json.parse(body) else { return plain_message(&String::from_utf8_lossy(body)) };
    let root = document.root();
    let root = root.items().next().unwrap_or(root);
    let message = None
        .or_else(|| root.field("error").and_then(words).map(str::to_owned))
        .or_else(|| root.field("message").and_then(Value::as_str).map(str::to_owned))
        .or_else(|| root.field("detail").map(detail_message))
        .or_else(|| words(root).map(str::to_owned))?;
    one_line(&message)
}

/// Whether the body of a refusal names the request field `field` as a word of its own.
///
/// Only the server's own words are searched: validators quote the whole request beside them, and a field that is
/// merely quoted is not at fault.
#[must_use]
pub fn names_field(body: &[u8], field: &str) -> bool {
    let mut json = Json::new();
    match json.parse(body) {
        Ok(document) => said(document.root()).iter().any(|text| has_word(text, field)),
        Err(_) => has_word(&String::from_utf8_lossy(body), field),
    }
}

/// Whether a server that says `message` refuses a request because it is longer than its context has room for.
///
/// There is no code for it that servers share. These are the words of vLLM, SGLang, llama.cpp, TGI, TensorRT-LLM, Ollama
/// and hosted APIs.
#[must_use]
pub fn is_context_limit(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    CONTEXT_LIMIT.iter().any(|words| message.contains(words))
}

const CONTEXT_LIMIT: [&str; 12] = [
    "context length",
    "context_length",
    "context size",
    "context_size",
    "context window",
    "max_model_len",
    "maximum model length",
    "max_seq_len",
    "max_input_len",
    "maximum input length",
    "max_new_tokens` must be <=",
    "prompt is too long",
];

/// The words of an error value: itself, its `message`, or for want of one its `type` or `code`.
pub(super) fn words(error: Value<'_>) -> Option<&str> {
    let field = |name| error.field(name).and_then(Value::as_str);
    [error.as_str(), field("message"), field("type"), field("code")]
        .into_iter()
        .flatten()
        .find(|text| !text.is_empty())
}

/// The server's words if an object of an answer with status 2xx is an error. An `error` that is null, false or empty
/// is none.
pub(super) fn in_band(object: Value<'_>) -> Option<&str> {
    let [error, kind, of, message] = ["error", "type", "object", "message"].map(|name| object.field(name));
    if let Some(error) = error.filter(|error| !error.is_empty()) {
        return Some(words(error).unwrap_or_default());
    }
    let says_error = |field: Option<Value<'_>>| field.and_then(Value::as_str) == Some("error");
    (says_error(kind) || says_error(of)).then(|| message.and_then(Value::as_str).unwrap_or_default())
}

/// FastAPI's `detail`: a text, or a list of complaints with the place of each.
fn detail_message(detail: Value<'_>) -> String {
    if let Some(text) = words(detail) {
        return text.to_owned();
    }
    let complaints: Vec<String> = detail.items().map(complaint).filter(|text| !text.is_empty()).collect();
    complaints.join("; ")
}

fn complaint(item: Value<'_>) -> String {
    let text = item.field("msg").and_then(Value::as_str).or(words(item)).unwrap_or_default();
    let place: Vec<&str> = place_of(item).collect();
    if place.is_empty() { text.to_owned() } else { format!("{}: {text}", place.join(".")) }
}

/// The names in the `loc` of a complaint; array positions are left out.
fn place_of<'d>(item: Value<'d>) -> impl Iterator<Item = &'d str> {
    item.field("loc").into_iter().flat_map(Value::items).filter_map(Value::as_str)
}

/// Every text in which a server speaks of the request itself.
fn said(root: Value<'_>) -> Vec<&str> {
    let mut texts = Vec::new();
    let error = root.field("error");
    let detail = root.field("detail");
    for speaker in [Some(root), error, detail].into_iter().flatten() {
        texts.extend(speaker.as_str());
        for name in ["message", "param", "msg"] {
            texts.extend(speaker.field(name).and_then(Value::as_str));
        }
    }
    for item in detail.into_iter().flat_map(Value::items) {
        texts.extend(item.field("msg").and_then(Value::as_str));
        texts.extend(place_of(item));
    }
    texts
}

/// Whether `word` stands in `text` without another identifier character beside it. What follows an `'input':` is the
/// request quoted back (pydantic's complaints as one text).
fn has_word(text: &str, word: &str) -> bool {
    let inside = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    text.lines().any(|line| {
        let line = line.split_once("'input':").map_or(line, |(before, _)| before);
        line.match_indices(word).any(|(start, found)| {
            let before = line[..start].bytes().next_back();
            let behind = line[start + found.len()..].bytes().next();
            !word.is_empty() && !inside(before) && !inside(behind)
        })
    })
}

/// The message of a body that is no JSON.
fn plain_message(text: &str) -> Option<String> {
    if !text.trim_start().starts_with('<') {
        return one_line(text);
    }
    let lower = text.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower[start..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    one_line(&text[start..end])
}

/// `text` without control characters (a terminal would obey them) and without runs of blanks, cut to what fits.
fn one_line(text: &str) -> Option<String> {
    let mut line = String::new();
    let words = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > 4 * MESSAGE_CHARS_MAX {
            break;
        }
    }
    if let Some((cut, _)) = line.char_indices().nth(MESSAGE_CHARS_MAX) {
        line.truncate(cut);
        line.push('…');
    }
    (!line.is_empty()).then_some(line)
}

/// Longest message shown, characters.
const MESSAGE_CHARS_MAX: usize = 300;
