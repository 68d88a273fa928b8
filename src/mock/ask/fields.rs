//! Fields out of a JSON body, and refusals in vLLM's words.

use serde_json::{Map, Value};

use super::Denial;

/// How many tokens a text has.
pub(super) fn words(text: &str) -> usize {
    tokens(text).count()
}

/// The tokens of a text: its words, separated by white space, and in these each hyphen and what stands around it.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split_whitespace().flat_map(|word| word.split_inclusive('-'));
    let halves = pieces.flat_map(|piece| match piece.strip_suffix('-') {
        Some(before) => [before, "-"],
        None => [piece, ""],
    });
    halves.filter(|token| !token.is_empty())
}

/// A count that fits.
pub(super) fn narrow(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The field at a dotted path.
pub(super) fn lookup<'a>(fields: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    match path.split_once('.') {
        None => fields.get(path),
        Some((outer, inner)) => lookup(fields.get(outer)?.as_object()?, inner),
    }
}

pub(super) fn integer(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, Denial> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(number) => Ok(Some(number)),
            None => Err(invalid("int_parsing", &format!("body.{name}"), "Input should be a valid integer")),
        },
    }
}

pub(super) fn flag(fields: &Map<String, Value>, name: &str) -> Result<Option<bool>, Denial> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(invalid("bool_parsing", &format!("body.{name}"), "Input should be a valid boolean")),
    }
}

/// A failed validation, worded as pydantic does through vLLM.
pub(super) fn invalid(kind: &str, at: &str, message: &str) -> Denial {
    Denial {
        status: 400,
        kind: "Bad Request",
        param: Some(at.to_owned()),
        message: format!("1 validation error:\n  {{'type': '{kind}', 'loc': '{at}', 'msg': '{message}'}}"),
    }
}

pub(super) fn bad_request(param: &str, message: String) -> Denial {
    Denial { status: 400, kind: "BadRequestError", param: Some(param.to_owned()), message }
}
