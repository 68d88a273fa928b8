//! Dolly: instructions, some with a context that they are about.

use super::entry::{Entry, Prompt};
use super::error::Fault;
use super::json::Object;

/// The context stands behind the instruction, one blank line between them.
pub(super) fn read(object: &Object<'_>) -> Result<Entry, Fault> {
    let instruction = object.needed("instruction")?.text()?;
    let context = object.text(&["context"])?.filter(|context| !context.trim().is_empty());
    let prompt = match context {
        Some(context) => format!("{instruction}\n\n{context}").into(),
        None => instruction,
    };
    Ok(Entry { answer: object.text(&["response"])?, ..Entry::new(Prompt::Text(prompt)) })
}
