//! Bailian's traces: seconds, blocks of 16 tokens, and turns that name the turn before them.

use super::entry::{Entry, Prompt, Session};
use super::error::{Fault, Reason};
use super::json::Object;
use super::mooncake;
use super::numbers::Unit;

pub(super) fn read(object: &Object<'_>, block_tokens: u32) -> Result<Entry, Fault> {
    let count = object.needed("input_length")?.count()?;
    let blocks = mooncake::blocks(object, block_tokens)?;
    Ok(Entry {
        at: Some(object.needed("timestamp")?.nanos(Unit::Seconds)?),
        session: session(object)?,
        turn: turn(object)?,
        output_tokens: Some(object.needed("output_length")?.count()?),
        ..Entry::new(Prompt::Tokens { count, blocks })
    })
}

/// A parent of -1 is none.
fn session(object: &Object<'_>) -> Result<Option<Session>, Fault> {
    let Some(id) = object.get("chat_id") else { return Ok(None) };
    let parent = object.get("parent_chat_id").filter(|parent| parent.text != "-1");
    Ok(Some(Session::Linked { id: id.id()?, parent: parent.map(|parent| parent.id()).transpose()? }))
}

/// The file counts from 1.
fn turn(object: &Object<'_>) -> Result<Option<u32>, Fault> {
    let Some(turn) = object.get("turn") else { return Ok(None) };
    let from_zero = turn.count()?.checked_sub(1).ok_or(turn.fault(Reason::Empty))?;
    Ok(Some(from_zero))
}

/// Tokens of a block.
pub(super) const BLOCK_TOKENS: u32 = 16;
