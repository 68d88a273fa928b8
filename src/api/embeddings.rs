//! OpenAI embeddings: no text comes back and nothing is streamed, so that only the time of the whole answer and the
//! tokens of the prompt are measured.

use serde_json::json;

use super::request::{Fields, Order, Part};
use super::{Channel, NotAnObject, Reader, Usage, count_of, read_object};
use crate::wire::json::{Json, Value};

/// The fields of a request.
pub(super) fn fields(order: &Order<'_>) -> Fields {
    let mut fields = Fields::default();
    fields.fixed("model", &json!(order.model));
    fields.put("input", vec![Part::Prompt]);
    fields
}

/// Reads an answer. It has content if there is a vector, as numbers or in base64.
pub(super) fn read<R: Reader>(json: &mut Json, body: &[u8], to: &mut R) -> Result<(), NotAnObject> {
    read_object(json, body, to, |answer, to| {
        let mut vectors = answer.field("data").into_iter().flat_map(Value::items);
        if vectors.any(|item| item.field("embedding").is_some_and(|vector| !vector.is_empty())) {
            to.piece(0, Channel::Content, if R::WANTS_TEXT { "[embedding]" } else { "" });
        }
        let prompt = answer.field("usage").and_then(|usage| count_of(usage, "prompt_tokens"));
        if prompt.is_some() {
            to.usage(Usage { prompt, ..Usage::default() }, 1);
        }
    })
}
