//! An API without a dialect of its own: a body with blanks, and where the parts of an answer stand.
//!
//! A stream ends with `[DONE]`, or, where the place of the finish reason is known, once that was told, or else in good
//! order with its body.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Text};

use super::request::{Constants, Fields, Part};
use super::{Channel, Finish, NotAnObject, Reader, Report, Usage, read_object};
use crate::wire::json::{Json, Value};

/// How requests are written and answers are read. The places are JSON pointers (RFC 6901) into an event of a stream or
/// into a whole answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Raw {
    /// The body of a request, the text of a JSON object. Within its strings stand `{{prompt}}`, which is wanted, and
    /// `{{model}}`; the strings `"{{max_tokens}}"` and `"{{stream}}"` become a number and a truth value. The placeholders
    /// of [`Text`](super::Text) are filled too.
    pub body: String,
    /// Where new text stands.
    pub content: String,
    /// Each event has all text so far at that place, not only what is new.
    #[serde(default)]
    pub cumulative: bool,
    /// Where the reason for the end stands: a text, or `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// Where the number of prompt tokens stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<String>,
    /// Where the number of output tokens stands, of all so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<String>,
}

/// Where the parts of an answer stand, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    content: Pointer,
    cumulative: bool,
    finish: Option<Pointer>,
    prompt_tokens: Option<Pointer>,
    output_tokens: Option<Pointer>,
}

/// Why a [`Raw`] cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawError {
    /// The field at fault.
    pub field: &'static str,
    /// What is wrong with it.
    pub wrong: String,
}

/// A JSON pointer; empty, it points to the whole.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pointer(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: String,
    /// The same as a place in an array.
    place: Option<usize>,
}

impl Raw {
    /// Where the parts of an answer stand.
    ///
    /// # Errors
    /// A place is no JSON pointer.
    pub fn shape(&self) -> Result<Shape, RawError> {
        let optional =
            |field, text: &Option<String>| text.as_ref().map(|text| Pointer::read(field, text)).transpose();
        Ok(Shape {
            content: Pointer::read("content", &self.content)?,
            cumulative: self.cumulative,
            finish: optional("finish", &self.finish)?,
            prompt_tokens: optional("prompt_tokens", &self.prompt_tokens)?,
            output_tokens: optional("output_tokens", &self.output_tokens)?,
        })
    }

    /// The fields of the body.
    ///
    /// # Errors
    /// It is no JSON object, has a blank that is not known, or none for the prompt.
    pub(super) fn fields(&self, model: &str, stream: bool) -> Result<Fields, RawError> {
        let wrong = |wrong: String| RawError { field: "body", wrong };
        let body: Map<String, Text> = serde_json::from_str(&self.body)
            .map_err(|error| wrong(format!("is not a JSON object with its blanks in strings: {error}")))?;
        let constants = Constants { model, stream };
        let mut fields = Fields::default();
        let mut prompts = 0;
        for (name, value) in &body {
            let mut parts = Vec::new();
            constants.write(value, &mut parts).map_err(wrong)?;
            prompts += parts.iter().filter(|part| matches!(part, Part::Prompt | Part::PromptInside)).count();
            fields.put(name, parts);
        }
        if prompts == 0 {
            return Err(wrong("has no {{prompt}}".to_owned()));
        }
        Ok(fields)
    }

    /// Whether it can be used.
    ///
    /// # Errors
    /// As [`Raw::shape`], and what is wrong with the body.
    pub fn check(&self) -> Result<(), RawError> {
        self.fields("m", true)?;
        self.shape().map(|_| ())
    }
}

impl Shape {
    /// Whether the end of the body is all that ends an answer.
    #[must_use]
    pub fn ends_with_body(&self) -> bool {
        self.finish.is_none()
    }

    /// Reads one event, or a whole answer.
    ///
    /// # Errors
    /// [`NotAnObject`]; nothing has been reported then.
    pub fn read<R: Reader>(&self, json: &mut Json, data: &[u8], to: &mut R) -> Result<(), NotAnObject> {
        read_object(json, data, to, |event, to| {
            let at = |pointer: &Option<Pointer>| pointer.as_ref().and_then(|pointer| pointer.find(event));
            if let Some(finish) = at(&self.finish).and_then(reason) {
                to.finish(0, finish);
            }
            let text = self.content.find(event).and_then(Value::as_str).unwrap_or_default();
            if self.cumulative {
                to.grown(0, Channel::Content, text);
            } else {
                to.text(0, Channel::Content, text);
            }
            let count = |pointer| at(pointer).and_then(Value::as_u32);
            let counts = Usage {
                prompt: count(&self.prompt_tokens),
                completion: count(&self.output_tokens),
                ..Usage::default()
            };
            if let Some(counts) = counts.told() {
                to.usage_update(counts);
            }
        })
    }
}

/// Words are those of other APIs.
fn reason(value: Value<'_>) -> Option<Finish> {
    if value.as_bool() == Some(true) {
        return Some(Finish::Stop);
    }
    Some(match value.as_str()? {
        "eos" | "end_turn" | "eos_token" | "completed" => Finish::Stop,
        "max_tokens" | "max_output_tokens" | "limit" => Finish::Length,
        word => return Finish::of(word),
    })
}

impl Pointer {
    fn read(field: &'static str, text: &str) -> Result<Pointer, RawError> {
        if !text.is_empty() && !text.starts_with('/') {
            let wrong = format!("'{text}' is not a JSON pointer, as in /choices/0/text");
            return Err(RawError { field, wrong });
        }
        let step = |name: &str| {
            // In this order, so that `~01` is `~1`.
            let name = name.replace("~1", "/").replace("~0", "~");
            let place = name.parse().ok();
            Step { name, place }
        };
        Ok(Pointer(text.split('/').skip(1).map(step).collect()))
    }

    fn find<'d>(&self, root: Value<'d>) -> Option<Value<'d>> {
        self.0.iter().try_fold(root, |value, step| {
            if value.is_array() { value.items().nth(step.place?) } else { value.field(&step.name) }
        })
    }
}
