//! Bytes to events and back: HTTP/1.1 framing, event streams, lines, JSON.
//!
//! Nothing here owns a socket, reads a clock or knows what a request is for. Every decoder takes whatever bytes
//! a read happened to return and gives the same events for any cut of the stream; it keeps only what one event
//! needs across reads, under limits. The usual event lies whole in one read and is handed on without a copy and
//! without an allocation.
//!
//! All decoders are driven alike: call `next` with the unread bytes, drop the `used` ones, and stop when a step
//! carries nothing; it has then used all it can and needs more input. Do not stop merely because the input is
//! used up: the end of a message takes no bytes of its own.

pub(crate) mod cuts;
pub mod exposition;
pub mod http;
pub mod json;
pub mod lines;
pub mod sse;
