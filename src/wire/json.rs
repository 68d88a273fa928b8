//! JSON documents of a peer: a tape over simd-json, in memory that is used again.
//!
//! [`Json`] belongs to one shard and allocates nothing per document once it has seen the largest. What a field means
//! is decided in `api`; this room knows values only. The reading is lenient where refusing would lose an answer: of
//! two equal keys the last one counts, a bad UTF-8 sequence or an unpaired surrogate is U+FFFD, and a number beyond
//! 64 bits is a float.

mod repair;
#[cfg(test)]
mod tests;

use std::fmt;
use std::mem;

use simd_json::{Buffers, ErrorType, INPUT_PADDING, Node, StaticNode, Tape};

/// Longest document that is read, bytes.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// Deepest nesting of arrays and objects that is read.
pub const DEPTH_MAX: usize = 128;

/// The memory in which documents are read, one after another.
pub struct Json {
    /// The document with padding behind it: strings are decoded in place.
    text: Vec<u8>,
    /// The same for a document that had to be repaired. Not the same buffer, because the first attempt has changed
    /// that one and the tape still borrows it.
    repaired: Vec<u8>,
    /// simd-json's own memory.
    buffers: Buffers,
    /// Empty between two documents; kept for its allocation.
    tape: Tape<'static>,
}

/// Why a text is no document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Error {
    /// Longer than [`TEXT_BYTES_MAX`].
    TooLarge,
    /// Nested deeper than [`DEPTH_MAX`].
    TooDeep,
    /// Not JSON, or more than one value.
    Syntax,
}

/// A document that was read. Dropping it returns the memory to its [`Json`].
pub struct Document<'j> {
    /// Not empty.
    tape: Tape<'j>,
    home: &'j mut Tape<'static>,
}

/// One value of a [`Document`].
#[derive(Clone, Copy)]
pub struct Value<'d> {
    /// The nodes from this value on. The first one is this value; what follows its subtree is not looked at.
    nodes: &'d [Node<'d>],
}

impl Json {
    /// Empty memory; it grows with the documents.
    #[must_use]
    pub fn new() -> Json {
        Json {
            text: Vec::new(),
            repaired: Vec::new(),
            buffers: Buffers::with_max_depth(TYPICAL_BYTES, DEPTH_MAX),
            tape: Tape(Vec::new()),
        }
    }

    /// Reads `text` as one document.
    ///
    /// # Errors
    /// [`Error`]; no bytes make it panic, and none make it recurse.
    pub fn parse<'j>(&'j mut self, text: &[u8]) -> Result<Document<'j>, Error> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::TooLarge);
        }
        self.let_go_of_a_giant(text.len());
        let mut tape = mem::replace(&mut self.tape, Tape(Vec::new())).reset();
        let mut outcome = fill(&mut self.text, text, &mut self.buffers, &mut tape);
        if outcome == Err(Error::Syntax)
            && let Some(better) = repair::repaired(text)
        {
            outcome = fill(&mut self.repaired, &better, &mut self.buffers, &mut tape);
        }
        match outcome {
            Ok(()) => Ok(Document { tape, home: &mut self.tape }),
            Err(error) => {
                self.tape = tape.reset();
                Err(error)
            }
        }
    }

    /// One giant document must not hold its memory (a tape takes up to 24 times the text) for the rest of a run.
    fn let_go_of_a_giant(&mut self, next_bytes: usize) {
        let held = self.text.capacity().max(self.repaired.capacity());
        if held > KEPT_BYTES_MAX && next_bytes <= KEPT_BYTES_MAX {
            *self = Json::new();
        }
    }
}

impl Default for Json {
    fn default() -> Json {
        Json::new()
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Json").field("text_bytes_held", &self.text.capacity()).finish_non_exhaustive()
    }
}

impl Document<'_> {
    /// The outermost value.
    #[must_use]
    #[inline]
    pub fn root(&self) -> Value<'_> {
        Value { nodes: &self.tape.0 }
    }
}

impl Drop for Document<'_> {
    #[inline]
    fn drop(&mut self) {
        *self.home = mem::replace(&mut self.tape, Tape(Vec::new())).reset();
    }
}

impl fmt::Debug for Document<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Document").field(&self.tape.0).finish()
    }
}

impl<'d> Value<'d> {
    /// The value of a field of an object; of equal names the last one. `None` too where this is no object.
    #[must_use]
    #[inline]
    pub fn field(self, name: &str) -> Option<Value<'d>> {
        self.fields().filter(|(key, _)| *key == name).last().map(|(_, value)| value)
    }

    /// Names and values of an object in their order, equal names included; empty for everything else.
    #[must_use]
    #[inline]
    pub fn fields(self) -> Fields<'d> {
        match self.head() {
            Some(Node::Object { len, .. }) => Fields { left: *len, rest: &self.nodes[1..] },
            _ => Fields { left: 0, rest: &[] },
        }
    }

    /// The items of an array in their order; empty for everything else.
    #[must_use]
    #[inline]
    pub fn items(self) -> Items<'d> {
        match self.head() {
            Some(Node::Array { len, .. }) => Items { left: *len, rest: &self.nodes[1..] },
            _ => Items { left: 0, rest: &[] },
        }
    }

    /// The text of a string.
    #[must_use]
    #[inline]
    pub fn as_str(self) -> Option<&'d str> {
        match self.head() {
            Some(Node::String(text)) => Some(text),
            _ => None,
        }
    }

    /// `true` or `false`.
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        match self.head() {
            Some(Node::Static(StaticNode::Bool(truth))) => Some(*truth),
            _ => None,
        }
    }

    /// A number of any form; digits beyond 53 bits are rounded.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the doc says so")]
    pub fn as_f64(self) -> Option<f64> {
        match self.head() {
            Some(Node::Static(StaticNode::I64(number))) => Some(*number as f64),
            Some(Node::Static(StaticNode::U64(number))) => Some(*number as f64),
            Some(Node::Static(StaticNode::F64(number))) => Some(*number),
            _ => None,
        }
    }

    /// A count, however it is written: `12`, `12.0`, `1.2e1`. `None` for what is negative, fractional or beyond
    /// 32 bits.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole and in range")]
    #[inline]
    pub fn as_u32(self) -> Option<u32> {
        match self.head()? {
            Node::Static(StaticNode::I64(number)) => u32::try_from(*number).ok(),
            Node::Static(StaticNode::U64(number)) => u32::try_from(*number).ok(),
            Node::Static(StaticNode::F64(number)) => {
                let whole = number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(number);
                whole.then_some(*number as u32)
            }
            _ => None,
        }
    }

    /// `null`.
    #[must_use]
    #[inline]
    pub fn is_null(self) -> bool {
        matches!(self.head(), Some(Node::Static(StaticNode::Null)))
    }

    /// An object, empty or not.
    #[must_use]
    #[inline]
    pub fn is_object(self) -> bool {
        matches!(self.head(), Some(Node::Object { .. }))
    }

    /// An array, empty or not.
    #[must_use]
    pub fn is_array(self) -> bool {
        matches!(self.head(), Some(Node::Array { .. }))
    }

    /// Number of items of an array or of fields of an object, equal names included; 0 for everything else.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        match self.head() {
            Some(Node::Array { len, .. } | Node::Object { len, .. }) => *len,
            _ => 0,
        }
    }

    /// What says nothing: `null`, `false`, zero, `""`, `[]` and `{}`.
    #[must_use]
    #[inline]
    pub fn is_empty(self) -> bool {
        match self.head() {
            None | Some(Node::Static(StaticNode::Null | StaticNode::Bool(false))) => true,
            Some(Node::Static(StaticNode::Bool(true))) => false,
            Some(Node::Static(_)) => self.as_f64() == Some(0.0),
            Some(Node::String(text)) => text.is_empty(),
            Some(Node::Array { len, .. } | Node::Object { len, .. }) => *len == 0,
        }
    }

    #[inline]
    fn head(self) -> Option<&'d Node<'d>> {
        self.nodes.first()
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.head() {
            Some(Node::Object { .. }) => f.debug_map().entries(self.fields()).finish(),
            Some(Node::Array { .. }) => f.debug_list().entries(self.items()).finish(),
            Some(Node::String(text)) => fmt::Debug::fmt(text, f),
            Some(Node::Static(node)) => fmt::Display::fmt(node, f),
            None => Ok(()),
        }
    }
}

/// See [`Value::fields`].
#[derive(Clone, Debug)]
pub struct Fields<'d> {
    left: usize,
    rest: &'d [Node<'d>],
}

impl<'d> Iterator for Fields<'d> {
    type Item = (&'d str, Value<'d>);

    #[inline]
    fn next(&mut self) -> Option<(&'d str, Value<'d>)> {
        if self.left == 0 {
            return None;
        }
        let (Node::String(name), rest) = self.rest.split_first()? else { return None };
        self.left -= 1;
        let value = Value { nodes: rest };
        self.rest = after(rest);
        Some((name, value))
    }
}

/// See [`Value::items`].
#[derive(Clone, Debug)]
pub struct Items<'d> {
    left: usize,
    rest: &'d [Node<'d>],
}

impl<'d> Iterator for Items<'d> {
    type Item = Value<'d>;

    #[inline]
    fn next(&mut self) -> Option<Value<'d>> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let value = Value { nodes: self.rest };
        self.rest = after(self.rest);
        Some(value)
    }
}

/// The nodes behind the subtree of the first one. A node counts the nodes below it, so nothing is descended into.
#[inline]
fn after<'d>(nodes: &'d [Node<'d>]) -> &'d [Node<'d>] {
    let size = match nodes.first() {
        None => 0,
        Some(Node::Object { count, .. } | Node::Array { count, .. }) => count + 1,
        Some(Node::String(_) | Node::Static(_)) => 1,
    };
    nodes.get(size..).unwrap_or_default()
}

/// Copies `text` into `memory` and lays its tape.
fn fill<'j>(
    memory: &'j mut Vec<u8>,
    text: &[u8],
    buffers: &mut Buffers,
    tape: &mut Tape<'j>,
) -> Result<(), Error> {
    memory.clear();
    memory.extend_from_slice(text);
    memory.extend_from_slice(&[b' '; INPUT_PADDING]);
    simd_json::fill_tape_padded(memory, text.len(), buffers, tape).map_err(|error| match error.error() {
        ErrorType::DepthLimitExceeded => Error::TooDeep,
        ErrorType::InputTooLarge => Error::TooLarge,
        _ => Error::Syntax,
    })
}

/// A chunk of a stream, generously: what the buffers start with.
const TYPICAL_BYTES: usize = 1024;

/// Memory for documents up to this size is kept for good, bytes.
const KEPT_BYTES_MAX: usize = 1 << 20;
