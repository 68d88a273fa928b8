//! The full reading of an event or a body: what surrounds the text, in both dialects.
//!
//! Owns the fields around the choices (`error`, `usage`), those of a choice (`index`, `finish_reason`, token lists)
//! and the order of the reports. The text of a chat choice is read in `chat`.

#[cfg(test)]
mod tests;

use super::{Channel, Finish, NotAnObject, Reader, Report, Usage, chat, failure};
use crate::wire::json::{Json, Value};

/// Where a choice carries its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// `delta`: a chat stream.
    Delta,
    /// `message`: a whole chat answer.
    Message,
    /// `text`: completions.
    Text,
}

/// Reads `text` as one answer object and reports what it says.
pub(super) fn read<R: Reader>(
    json: &mut Json,
    text: &[u8],
    part: Part,
    to: &mut R,
) -> Result<(), NotAnObject> {
    let document = json.parse(text).map_err(NotAnObject::Text)?;
    if !document.root().is_object() {
        return Err(NotAnObject::OtherValue);
    }
    let answer = Answer::of(document.root());
    if let Some(message) = answer.failure() {
        to.error(message);
    }
    let mut choices = 0;
    for value in answer.choices.into_iter().flat_map(Value::items) {
        Choice::of(value).report(choices, part, to);
        choices += 1;
    }
    if let Some(usage) = answer.usage.and_then(Usage::of) {
        to.usage(usage, choices);
    }
    Ok(())
}

/// The outermost fields. One walk fills them, so that of equal names the last one stays.
#[derive(Default)]
struct Answer<'d> {
    error: Option<Value<'d>>,
    object: Option<Value<'d>>,
    kind: Option<Value<'d>>,
    message: Option<Value<'d>>,
    choices: Option<Value<'d>>,
    usage: Option<Value<'d>>,
}

impl<'d> Answer<'d> {
    fn of(root: Value<'d>) -> Answer<'d> {
        let mut answer = Answer::default();
        for (name, value) in root.fields() {
            let slot = match name {
                "error" => &mut answer.error,
                "object" => &mut answer.object,
                "type" => &mut answer.kind,
                "message" => &mut answer.message,
                "choices" => &mut answer.choices,
                "usage" => &mut answer.usage,
                _ => continue,
            };
            *slot = Some(value);
        }
        answer
    }

    /// The server's words if this is an error. An `error` that is null, false or empty is none.
    fn failure(&self) -> Option<&'d str> {
        if let Some(error) = self.error.filter(|error| !error.is_empty()) {
            return Some(failure::words(error).unwrap_or_default());
        }
        let says_error = |field: Option<Value<'_>>| field.and_then(Value::as_str) == Some("error");
        (says_error(self.object) || says_error(self.kind))
            .then(|| self.message.and_then(Value::as_str).unwrap_or_default())
    }
}

/// The fields of one choice that are read.
#[derive(Default)]
struct Choice<'d> {
    index: Option<Value<'d>>,
    delta: Option<Value<'d>>,
    message: Option<Value<'d>>,
    text: Option<Value<'d>>,
    finish_reason: Option<Value<'d>>,
    logprobs: Option<Value<'d>>,
    token_ids: Option<Value<'d>>,
}

impl<'d> Choice<'d> {
    fn of(value: Value<'d>) -> Choice<'d> {
        let mut choice = Choice::default();
        for (name, value) in value.fields() {
            let slot = match name {
                "index" => &mut choice.index,
                "delta" => &mut choice.delta,
                "message" => &mut choice.message,
                "text" => &mut choice.text,
                "finish_reason" => &mut choice.finish_reason,
                "logprobs" => &mut choice.logprobs,
                "token_ids" => &mut choice.token_ids,
                _ => continue,
            };
            *slot = Some(value);
        }
        choice
    }

    fn report<R: Reader>(&self, place: u32, part: Part, to: &mut R) {
        let index = self.index.and_then(Value::as_u32).unwrap_or(place);
        match part {
            Part::Delta => chat::report(self.delta, index, to),
            Part::Message => chat::report(self.message, index, to),
            Part::Text => {
                to.text(index, Channel::Content, self.text.and_then(Value::as_str).unwrap_or_default());
            }
        }
        if let Some(count) = self.tokens() {
            to.tokens(index, count);
        }
        if let Some(reason) = self.finish_reason.and_then(Value::as_str).and_then(Finish::of) {
            to.finish(index, reason);
        }
    }

    /// The number of tokens that the choice lists. An empty list says nothing: servers send it beside text.
    fn tokens(&self) -> Option<u32> {
        let listed =
            |list: Option<Value<'_>>| list.map(|list| list.items().count()).filter(|count| *count > 0);
        let count = listed(self.token_ids)
            .or_else(|| listed(self.logprobs?.field("content")))
            .or_else(|| listed(self.logprobs?.field("tokens")))?;
        u32::try_from(count).ok()
    }
}
