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

/// What comes after `prefix`, if `bytes` begin with it.
///
/// Its length is part of its type, so that comparing is one or two loads and not a call, also where nothing is optimised
/// across units: `strip_prefix` is a call then, which calls memcmp.
#[inline]
pub(crate) fn after<'b, const N: usize>(bytes: &'b [u8], prefix: &[u8; N]) -> Option<&'b [u8]> {
    let (first, rest) = bytes.split_first_chunk()?;
    (first == prefix).then_some(rest)
}
