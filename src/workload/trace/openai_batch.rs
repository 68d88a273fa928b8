//! Input files of OpenAI's batch API: ready bodies with the path that they go to.

use super::entry::{Entry, Prompt};
use super::error::Fault;
use super::json::Object;

pub(super) fn read(object: &Object<'_>) -> Result<Entry, Fault> {
    let body = object.needed("body")?.object_text()?;
    let said = said(body)?;
    let url = object.text(&["url"])?;
    Ok(Entry {
        output_tokens: said.output_tokens,
        model: said.model,
        ..Entry::new(Prompt::Body { url, body: body.into() })
    })
}

/// What a body says of itself.
pub(super) struct Said {
    pub(super) output_tokens: Option<u32>,
    pub(super) model: Option<Box<str>>,
}

pub(super) fn said(body: &str) -> Result<Said, Fault> {
    let body = Object::read(body.as_bytes())?;
    // Where a body has both names of chat, servers take the newer.
    let limits = ["max_completion_tokens", "max_output_tokens", "max_tokens"];
    let limit = limits.into_iter().find_map(|name| body.get(name));
    Ok(Said { output_tokens: limit.map(|limit| limit.count()).transpose()?, model: body.text(&["model"])? })
}
