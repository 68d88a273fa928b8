//! Recorded traffic and prompt collections: what files of the public formats say, as one kind of [`Entry`].
//!
//! Owns the formats and their rules, one file each; the order by time, the cuts and filters, and the text of hashed
//! blocks. It does not own files (bytes come from whoever opened them), tokenizers (a text whose tokens must be
//! counted is handed on as text), or sending.
//!
//! ```text
//! bytes ─ Reader ─> entries in file order ─ Survey, Replay ─> Planned in time order ─ Selection ─> what is sent
//! ```
//!
//! A [`Shelf`] gives the records of a file in any order instead, for which it keeps 8 bytes for each; a [`Spindle`] the
//! turns of its sessions, for which it keeps 16; an [`AgentReader`] the requests of sessions of agents that start others,
//! for which it keeps 32 and some for each answer that one waits for ([`Agents`]).
//!
//! **Memory.** A [`Reader`] holds one record: a line, a CSV record, an element of a JSON array. A file in order of
//! time is replayed with nothing but that. For one that is not, [`Replay`] keeps 16 bytes per record, a time and a
//! place in the file (160 MB for 10 million), and reads each record again when it is due. That was preferred to a
//! window in which a file has to be sorted: a window too small gives a wrong order or a refusal, and no one knows how
//! large it should be.
//!
//! **Errors.** A malformed record gives an [`Error`] with its file and line. It ends the reading, or is counted and
//! skipped ([`OnError`]). Reading goes on behind it wherever a record's end can be seen.

mod agents;
mod aiperf;
mod azure;
mod bailian;
pub mod blocks;
mod burstgpt;
mod csv;
mod dolly;
mod entry;
mod error;
mod format;
mod fuzz;
mod json;
mod lines;
mod messages;
mod mooncake;
mod numbers;
mod openai_batch;
mod order;
mod parser;
mod pieces;
mod plain;
mod reader;
mod select;
mod sharegpt;
mod shelf;
mod source;
#[cfg(test)]
mod tests;
mod threads;
mod timestamp;
mod vllm;
mod weka;

pub use agents::{AgentReader, Agents, When};
pub use entry::{Blocks, Entry, Node, Prompt, Session};
pub use error::{Error, OnError, Place, RECORD_BYTES_MAX, Reason};
pub use format::Format;
#[doc(hidden)]
pub use fuzz::fuzz_trace;
pub use order::{Order, Planned, Replay, Survey};
pub(super) use reader::unreadable;
pub use reader::{Counts, Options, Reader};
pub use select::{Dropped, Selected, Selection, Speedup};
pub use sharegpt::Turns;
pub use shelf::{Places, Shelf};
pub use source::{Input, format_of};
pub use threads::{Spindle, Threads};
pub use vllm::sharegpt_keeps as vllm_sharegpt_keeps;
