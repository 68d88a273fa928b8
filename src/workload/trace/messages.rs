//! A recorded list of messages as the turns of a session: each ends with what the model said.

use super::entry::{Entry, Prompt, Session};
use super::error::Fault;
use super::json::Found;
use super::parser::Batch;

/// Gives the turns of `list` to `batch`: what was said to the model since its last answer, and that answer. What is behind
/// the last answer is a turn without one. `like` is everything else that is known of the conversation.
///
/// Answers before the first question are part of it. A list with one turn is one entry, as it stands.
pub(super) fn split(
    list: Found<'_>,
    tools: Option<&str>,
    like: &Entry,
    batch: &mut Batch,
) -> Result<(), Fault> {
    list.list()?;
    let mut turns: Vec<Turn<'_>> = Vec::new();
    let mut open = Turn::default();
    for message in list.items()? {
        let object = message.object()?;
        let is_answer = object.text(&["role"])?.as_deref() == Some("assistant");
        if is_answer && open.asks {
            open.said = Some(message.text);
            // A list of parts, or nothing but calls, is no text.
            open.answer = object.get("content").and_then(|content| content.text().ok());
            turns.push(std::mem::take(&mut open));
        } else {
            open.asks |= !is_answer && object.text(&["role"])?.as_deref() != Some("system");
            open.messages.push(message.text);
        }
    }
    if open.asks || turns.is_empty() {
        turns.push(open);
    }
    let session = (turns.len() > 1).then(|| Session::Named(batch.session_name()));
    for (place, turn) in (0..).zip(turns) {
        let messages = format!("[{}]", turn.messages.join(",")).into();
        batch.push(Entry {
            session: session.clone(),
            turn: session.is_some().then_some(place),
            answer: turn.answer,
            said: turn.said.map(Into::into),
            prompt: Prompt::Messages { messages, tools: tools.map(Into::into) },
            ..like.clone()
        });
    }
    Ok(())
}

/// Messages up to and including an answer.
#[derive(Default)]
struct Turn<'t> {
    messages: Vec<&'t str>,
    asks: bool,
    said: Option<&'t str>,
    answer: Option<Box<str>>,
}
