//! What stays the same from event to event.
//!
//! The events of one answer usually differ in nothing but their piece of text. What stands around the piece of the last
//! event that the walk has known is kept, and where the next one has it too, only the piece is looked at, which
//! halves the instructions of an event (`tools/instructions.sh`). Nothing is guessed: bytes that are equal up to the piece bring the walk to the same place,
//! the piece is checked as the walk would, and equal bytes behind it bring the walk to the same end.

use super::{CHUNK_BYTES_MAX, Choice, Piece, Walk, as_wanted};
use crate::api::Channel;
use crate::sys::prefetch::prefetch;

/// The bytes around the piece of the last event that was known. Good for the events of one answer in one dialect.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Frame {
    head: usize,
    len: usize,
    choice: u32,
    channel: Channel,
    /// Up to the piece with its opening quote, then from the closing one on. A place of its own, so that no event
    /// allocates.
    bytes: [u8; FRAME_BYTES_MAX],
}

impl Frame {
    /// One that knows nothing yet.
    #[must_use]
    pub fn new() -> Frame {
        Frame { bytes: [0; FRAME_BYTES_MAX], head: 0, len: 0, choice: 0, channel: Channel::Content }
    }

    /// Another answer begins.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Has what the next event is compared with brought into the cache.
    pub(crate) fn prefetch(&self) {
        // Of most servers all of it; the processor guesses what lies behind.
        for part in self.bytes[..PREFETCHED_BYTES].as_chunks::<64>().0 {
            prefetch(part);
        }
        prefetch(&self.head);
    }

    /// What the walk would say of `data`; `None` where it has to be asked.
    #[inline]
    pub(super) fn known<'t>(&self, data: &'t [u8], wants_text: bool) -> Option<Piece<'t>> {
        if self.len == 0 || data.len() > CHUNK_BYTES_MAX {
            return None;
        }
        let (head, tail) = self.bytes[..self.len].split_at(self.head);
        let mut walk = Walk { rest: data.strip_prefix(head)? };
        let text = walk.text_after_quote()?;
        // An empty piece is none to the walk. The closing quote is the first byte of the tail.
        if text.is_empty() || walk.rest != &tail[1..] {
            return None;
        }
        Some(Piece { choice: self.choice, channel: self.channel, text: as_wanted(text, wants_text)? })
    }

    /// Keeps what stands around the piece of `data`, of which the walk has said `choice`.
    pub(super) fn learn(&mut self, data: &[u8], choice: &Choice<'_>) {
        let Some((channel, text)) = choice.piece else { return };
        let tail = choice.left + 1;
        let head = data.len() - tail - text.len();
        self.len = 0;
        // An event that says more than its piece is the last of its kind.
        if head + tail > FRAME_BYTES_MAX || choice.says_more() {
            return;
        }
        self.bytes[..head].copy_from_slice(&data[..head]);
        self.bytes[head..head + tail].copy_from_slice(&data[data.len() - tail..]);
        (self.head, self.len) = (head, head + tail);
        (self.choice, self.channel) = (choice.index, channel);
    }
}

impl Default for Frame {
    fn default() -> Frame {
        Frame::new()
    }
}

/// Events with more around their piece are read by the walk each. Those of the servers that were seen have 100 to 350 bytes.
const FRAME_BYTES_MAX: usize = 512 - 24;
const PREFETCHED_BYTES: usize = 256;
const _: () = assert!(size_of::<Frame>() == 512);
