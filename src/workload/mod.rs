//! What is sent and when: pure functions of the seed and the request's index.
//!
//! Nothing here knows how many shards there are, what the time is, or where a byte goes. Whatever a shard plans, any
//! other shard, process or host plans alike.

mod agents;
pub mod arrival;
mod choice;
pub mod conduct;
pub mod content;
pub mod counted;
pub mod deck;
pub mod lengths;
pub mod measure;
pub mod mix;
pub mod pieces;
pub mod preview;
pub mod prompts;
pub mod recorded;
pub mod recording;
pub mod retold;
pub mod reuse;
pub mod routing;
pub mod session;
#[cfg(feature = "tokenizer")]
pub mod tokenizer;
pub mod trace;
mod words;

pub use arrival::{Dealt, Due, Schedule};
pub use conduct::{Abort, Conduct};
pub use content::{Content, Item, Script};
pub use counted::Counted;
pub use deck::Deck;
pub use mix::Mix;
pub use pieces::Pieces;
pub use preview::Preview;
pub use recording::Recording;
pub use reuse::Reuse;
pub use routing::Routing;
