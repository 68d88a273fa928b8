//! Asking a server how its vocabulary cuts a text.
//!
//! llama.cpp, vLLM and SGLang answer `POST /tokenize`; the first reads `content`, the others `prompt`, and each lets the
//! fields of the other pass, so that one body serves all.

use std::time::Duration;

use serde_json::json;

use crate::api::error_message;
use crate::load::fetch;
use crate::load::target::Route;
use crate::wire::json::Json;

/// Why there are no tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenizeError {
    /// The server has no such endpoint.
    Absent,
    /// It has one, or nobody answers at all; a sentence.
    Failed(String),
}

/// The server has this long to answer.
const LIMIT: Duration = Duration::from_secs(10);

/// The tokens of `text` for `model`, without those that mark its beginning or end; `prefix` is what stands before the
/// paths of the server. Blocks.
///
/// # Errors
/// [`TokenizeError`].
pub fn tokens(route: &Route, prefix: &str, model: &str, text: &str) -> Result<Vec<u32>, TokenizeError> {
    let body = json!({
        "model": model, "prompt": text, "content": text, "add_special_tokens": false, "add_special": false,
    });
    let path = format!("{prefix}{PATH}");
    let failed = |why: String| TokenizeError::Failed(format!("POST {path}: {why}"));
    let answer = fetch::post(route, &path, body.to_string().as_bytes(), LIMIT)
        .map_err(|error| failed(error.to_string()))?;
    match answer.status {
        200..=299 => {}
        404 | 405 | 501 => return Err(TokenizeError::Absent),
        status => {
            let said = error_message(&mut Json::new(), &answer.body);
            return Err(failed(format!(
                "HTTP {status}{}",
                said.map_or_else(String::new, |said| format!(": {said}"))
            )));
        }
    }
    let mut json = Json::new();
    let document = json.parse(&answer.body).map_err(|_| failed("the answer is no JSON".to_owned()))?;
    let list = document.root().field("tokens").filter(|tokens| tokens.is_array());
    let ids = list.and_then(|list| list.items().map(|id| id.as_u32()).collect::<Option<Vec<u32>>>());
    ids.ok_or_else(|| failed("the answer has no list of tokens".to_owned()))
}

const PATH: &str = "/tokenize";
