//! The virtual engine: the same plans, the same requests and answers byte for byte, in virtual time.
//!
//! A request is written as the shards write it, read and answered by the mock server's own code over the serving
//! model, and the answer goes through the exchange into the same books. Only sockets and clocks are missing, so a
//! simulation says what a perfect client on a perfect network would have measured; the difference to a real run
//! against the mock is the error of our client and of the kernel. It repeats bit for bit.

mod client;
mod engine;

pub use engine::{Setup, SimEngine};
