//! `/tokenize`: the tokens of a text, in the shape of vLLM and SGLang (`prompt`) or of llama.cpp (`content`).

use serde_json::{Value, json};

use super::fields::{invalid, narrow, tokens};
use super::{Denial, Terms, object};

/// The answer to a body.
pub(in crate::mock) fn answer(body: &[u8], terms: Terms<'_>) -> Result<String, Denial> {
    let fields = object(body, terms)?;
    let text = |name: &str| match fields.get(name) {
        Some(Value::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let Some(text) = text("prompt") {
        let ids: Vec<u32> = tokens(text).map(id).collect();
        return Ok(json!({
            "count": narrow(ids.len()),
            "max_model_len": terms.max_model_len,
            "tokens": ids,
            "token_strs": null,
        })
        .to_string());
    }
    let Some(text) = text("content") else {
        return Err(invalid("missing", "body.prompt", "Field required"));
    };
    Ok(json!({ "tokens": tokens(text).map(id).collect::<Vec<_>>() }).to_string())
}

/// The number of a word, the same for the same word (FNV-1a, folded to the size of a vocabulary).
fn id(token: &str) -> u32 {
    let hash =
        token.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    (hash ^ hash >> 17) % VOCABULARY
}

const VOCABULARY: u32 = 128_000;
