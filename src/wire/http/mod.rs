//! One HTTP/1.1 response, from bytes to parts, and the head of a request, from values to bytes.
//!
//! [`Response`] decodes what follows one request: interim (1xx) heads, the final head, the body, the end. It
//! decides about framing only: what a status or a content type means for the request is the caller's business.
//! Pipelining, upgrades, trailers as data and content codings are not done here; bytes after the end of the
//! message are left to the caller, who sees how many were used.

mod body;
mod encode;
mod fuzz;
mod head;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use body::Body;
use head::{HeadReader, Parsed};

pub use encode::{EncodeError, RequestHead};
#[doc(hidden)]
pub use fuzz::fuzz_http_response;
pub use head::{ContentType, Framing, Head, ShortText};

/// Decoder of one response to one request; [`reset`](Self::reset) makes it ready for the next.
///
/// The request must not have been a HEAD or a CONNECT: their answers are framed differently.
#[derive(Debug)]
#[repr(C)]
pub struct Response {
    state: State,
    limits: Limits,
    reader: HeadReader,
    head: Option<Head>,
}

/// One thing found in the bytes of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part<'a> {
    /// A complete interim head with this status; the final one is still to come.
    Interim(u16),
    /// The final head is complete: see [`Response::head`].
    Head,
    /// Bytes of the body, never empty, in the input itself.
    Body(&'a [u8]),
    /// The message is complete. What follows in the input does not belong to it.
    End,
}

/// What one call of [`Response::next`] did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step<'a> {
    /// Bytes of the input that are done with.
    pub used: usize,
    /// What was found; none if more input is needed, or if the message had ended before.
    pub part: Option<Part<'a>>,
}

/// How a closing peer left a response that is not broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// The message had ended before the connection did.
    Before,
    /// The body was delimited by the close and is complete with it.
    ByClose,
}

/// Bounds on what a peer may make us keep or read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of the size line of a chunk, extensions included. Default 4 KiB.
    pub chunk_line_bytes_max: usize,
    /// Bytes of data that one chunk may announce. Default 1 TiB: nothing is allocated for it.
    pub chunk_size_max: u64,
    /// Bytes of one head, from status line to blank line, and of blank lines before one. Default 64 KiB.
    pub head_bytes_max: usize,
    /// Header fields in one head, at most 128. Default 128.
    pub headers_max: usize,
    /// Bytes of all trailer lines together, with the empty one that ends them. Default 64 KiB.
    pub trailer_bytes_max: usize,
}

/// What is wrong with a response. All but the last two variants by name, [`NoResponse`](Self::NoResponse) and
/// [`Truncated`](Self::Truncated), are violations of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Error {
    /// Chunk data without a CRLF after it.
    ChunkDataEnd,
    /// A chunk's size line that does not end in CRLF.
    ChunkLineEnd,
    /// A chunk's size line over the limit.
    ChunkLineTooLong,
    /// A chunk's size line that is not a hexadecimal number, alone or before an extension.
    ChunkSize,
    /// A chunk that announces more bytes than the limit.
    ChunkSizeTooLarge,
    /// A Content-Length that is not a number, or several that differ.
    ContentLength,
    /// A header line that cannot be read.
    Header,
    /// A head over the limit.
    HeadTooLong,
    /// The bytes do not begin like an HTTP response: another protocol speaks here.
    NotHttp,
    /// A status line that cannot be read, or a status that is none: below 100, or an upgrade nobody asked for.
    Status,
    /// More header fields than the limit.
    TooManyHeaders,
    /// A trailer line that does not end in CRLF.
    Trailer,
    /// Trailer lines over the limit.
    TrailerTooLong,
    /// A Transfer-Encoding in which chunked is not the last coding, or stands twice.
    TransferEncoding,
    /// A version of HTTP other than 1.0 and 1.1.
    Version,
    /// The connection ended before any byte of a response.
    NoResponse,
    /// The connection ended inside the head or inside the framing of the body.
    Truncated,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Before the final head, with or without bytes of it.
    Head,
    /// Inside the body, or before the end of an empty one.
    Body(Body),
    /// The end was reported.
    Done,
    /// Broken: every further call says so again.
    Failed(Error),
}

impl Response {
    /// A decoder that waits for the first byte of a response.
    #[must_use]
    pub fn new(limits: Limits) -> Response {
        Response { limits, state: State::Head, reader: HeadReader::default(), head: None }
    }

    /// Bytes, from the start of this struct, of what reading a part of the body needs.
    pub(crate) const HOT: usize = size_of::<State>();

    /// Forgets the response, whatever its state, and waits for the next one. The memory for heads is kept.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.reader.reset();
        self.head = None;
    }

    /// Takes the unread bytes of the connection and reports the next part in them.
    ///
    /// A part that needs no byte of its own is reported for an empty input too, so call this until a step
    /// without a part comes back. After the end it uses nothing.
    ///
    /// # Errors
    /// The bytes break the protocol or a limit. The decoder stays in that error until it is reset.
    #[inline]
    pub fn next<'s>(&mut self, input: &'s [u8]) -> Result<Step<'s>, Error> {
        // The usual call is one inside a body, so that is the one to be inlined into the caller.
        let State::Body(body) = &mut self.state else { return self.next_outside_body(input) };
        match body.next(input, &self.limits) {
            Ok(step) => {
                if step.part == Some(Part::End) {
                    self.state = State::Done;
                }
                Ok(step)
            }
            Err(error) => Err(self.fail(error)),
        }
    }

    /// The peer closed its side; no byte will follow.
    ///
    /// # Errors
    /// [`Error::NoResponse`] if no byte of a response was seen, [`Error::Truncated`] if one was cut, and the
    /// earlier error if the response was broken before.
    pub fn on_eof(&mut self) -> Result<End, Error> {
        match self.state {
            State::Head if !self.started() => Err(self.fail(Error::NoResponse)),
            State::Head => Err(self.fail(Error::Truncated)),
            State::Body(body) => match body.on_eof() {
                Ok(end) => {
                    self.state = State::Done;
                    Ok(end)
                }
                Err(error) => Err(self.fail(error)),
            },
            State::Done => Ok(End::Before),
            State::Failed(error) => Err(error),
        }
    }

    /// The final head, from [`Part::Head`] on until the next reset.
    #[must_use]
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// From the next head on keeps the value of the header field `name`: see [`Response::sought`].
    pub fn seek(&mut self, name: Option<Arc<str>>) {
        self.reader.seek(name);
    }

    /// The value of the field that was asked for by [`Response::seek`], its first 128 bytes in printable ASCII; `None`
    /// without the field, and before the final head.
    #[must_use]
    pub fn sought(&self) -> Option<&str> {
        self.reader.sought().value()
    }

    /// Whether the end of the message was reported.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// Whether the connection may serve another request, as far as the framing, the version and the Connection
    /// header of this response say. False before its end. Bytes left over after the end are a reason against it
    /// that only the caller sees.
    #[must_use]
    pub fn keep_alive(&self) -> bool {
        self.is_complete() && self.head.is_some_and(|head| head.keep_alive)
    }

    /// Whether any byte of a response was seen, interim ones included. Blank lines before the status line, as
    /// some servers leave them behind the message before, are none.
    #[must_use]
    pub fn started(&self) -> bool {
        self.reader.started()
    }

    /// Bytes of the response kept inside: those of an unfinished head, at most `head_bytes_max`.
    #[must_use]
    pub fn buffered_bytes(&self) -> usize {
        self.reader.buffered_bytes()
    }

    fn next_outside_body<'s>(&mut self, input: &'s [u8]) -> Result<Step<'s>, Error> {
        match self.state {
            State::Head => self.next_in_head(input).map_err(|error| self.fail(error)),
            State::Failed(error) => Err(error),
            State::Body(_) | State::Done => Ok(Step { used: 0, part: None }),
        }
    }

    fn next_in_head<'s>(&mut self, input: &'s [u8]) -> Result<Step<'s>, Error> {
        let (used, parsed) = self.reader.next(input, &self.limits)?;
        let part = match parsed {
            None => None,
            Some(Parsed::Interim(status)) => Some(Part::Interim(status)),
            Some(Parsed::Final(head)) => {
                self.state = State::Body(Body::new(head.framing));
                self.head = Some(head);
                Some(Part::Head)
            }
        };
        Ok(Step { used, part })
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        self.state = State::Failed(error);
        error
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            chunk_line_bytes_max: 4 << 10,
            chunk_size_max: 1 << 40,
            head_bytes_max: 64 << 10,
            headers_max: head::HEADERS_MAX,
            trailer_bytes_max: 64 << 10,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::ChunkDataEnd => "chunk data is not followed by CRLF",
            Error::ChunkLineEnd => "the size line of a chunk does not end in CRLF",
            Error::ChunkLineTooLong => "the size line of a chunk is too long",
            Error::ChunkSize => "the size of a chunk is not a hexadecimal number",
            Error::ChunkSizeTooLarge => "a chunk announces more data than the limit",
            Error::ContentLength => "the Content-Length is not one number",
            Error::Header => "a header line cannot be read",
            Error::HeadTooLong => "the head of the response is too long",
            Error::NotHttp => "the answer is not an HTTP response",
            Error::Status => "the status of the response cannot be read or was not asked for",
            Error::TooManyHeaders => "the response has too many header fields",
            Error::Trailer => "a trailer line does not end in CRLF",
            Error::TrailerTooLong => "the trailer lines are too long",
            Error::TransferEncoding => "chunked is not the last transfer coding",
            Error::Version => "the version of HTTP is neither 1.0 nor 1.1",
            Error::NoResponse => "the connection ended before any byte of a response",
            Error::Truncated => "the connection ended inside a response",
        })
    }
}

impl std::error::Error for Error {}
