//! Stored runs: the JSON file, and beside it the records and the times of events.
//!
//! Owns the stored form and its versions, the writing without loss and the reading with judgement. It computes no
//! number: those come from `summary`, at run time and again when a stored run is judged by other SLOs.

mod alike;
mod capacity;
pub mod checkpoint;
mod chunks;
pub mod detail;
mod foreign;
pub mod gathering;
mod layout;
pub mod merge;
pub mod read;
pub mod records;
mod recover;
pub mod redact;
pub mod schema;
mod spool;
mod tool;
mod wall;
pub mod write;

pub use checkpoint::Checkpoint;
pub use chunks::Chunks;
pub use foreign::Foreign;
pub use read::{Loaded, ReadError};
pub use records::Records;
pub use schema::RunFile;
pub use spool::{Content, Spool, SpoolWriter};
pub use tool::Tool;
pub use wall::WallTime;
pub use write::{Destination, Unwritten, WriteError};
