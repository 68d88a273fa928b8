//! What an LLM server does with its requests, without one: a pure state machine that stamps go into and tokens come
//! out of.
//!
//! Behind a socket and real time it is the mock server, in virtual time the simulation; both drive it alike. A request
//! is a [`Job`]; [`Server::submit`] takes it or refuses it, [`Server::next_wakeup`] says when something comes out
//! next, [`Server::advance`] hands it out as [`Emission`]s. What comes out depends on the stamps of the submissions
//! and cancellations alone, never on how often or how late the caller looks.
//!
//! A server is of one of two kinds ([`Serving`]):
//!
//! - *batching*, as LLM servers are built: the sequences in the slots of a replica take steps together, each step ends
//!   at its own computed time and yields a token (or several) for each of them, whoever finds no slot waits;
//! - *fixed*: each job has the set times to itself, however many there are.
//!
//! [`fit`] goes the other way: from a measured sweep to the costs of such a server.

mod batching;
mod check;
pub mod fit;
mod fixed;
mod freezes;
mod job;
pub(crate) mod keyed;
mod min_tree;
mod prefix;
mod replica;
mod server;
mod settings;

#[cfg(test)]
pub(crate) mod tests;

pub use job::{Emission, Job, Key, Refusal};
pub use prefix::block_hashes;
pub use server::{Gauges, Server};
pub use settings::{Batching, Cost, Fixed, Freeze, FullHit, PRESETS, PrefixCache, Router, Serving, Settings};
