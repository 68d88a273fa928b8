//! The head of a response: where it ends, and what of it matters to a client that measures.
//!
//! The lines are read by `httparse`; this file finds the end of the head across reads, so that each head is parsed
//! once, and turns header fields into a few plain values. LF alone is accepted as a line end and folded lines are
//! accepted as one. Header fields that decide nothing are dropped.

use std::fmt;
use std::mem::MaybeUninit;
use std::sync::Arc;

use httparse::{ParserConfig, Status};
use memchr::memchr_iter;

use super::{Error, Limits};

/// Header fields that are parsed at most, whatever the limit says: the array for them lies on the stack.
pub(super) const HEADERS_MAX: usize = 128;

/// Memory for heads that is kept between two responses; a larger buffer is given back.
const KEPT_BYTES: usize = 4 << 10;

const PREFIX: &[u8] = b"HTTP/1.";

/// What a final head says, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The status, 200 or above (a peer may send numbers above 599).
    pub status: u16,
    /// 0 or 1, of HTTP/1.0 or HTTP/1.1.
    pub version_minor: u8,
    /// The media type of the body.
    pub content_type: ContentType,
    /// Whether the body went through a content or transfer coding other than identity and chunked: it is not
    /// readable as it is.
    pub encoded: bool,
    /// The wait in seconds that Retry-After asks for. None without that field and if it holds a date.
    pub retry_after_s: Option<u64>,
    /// How the end of the body is found.
    pub framing: Framing,
    /// Whether version, Connection field and framing let the connection serve another request after this one.
    pub keep_alive: bool,
    /// The beginning of the Server field, empty without one.
    pub server: ShortText,
    /// The beginning of the Via field, empty without one: who passed the answer on.
    pub via: ShortText,
}

/// The media type of a body, as far as a client for language models tells them apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum ContentType {
    /// No Content-Type, or none that can be read.
    #[default]
    Absent,
    /// `text/event-stream`.
    EventStream,
    /// `application/json`, `text/json` and everything that ends in `+json`.
    Json,
    /// One JSON value per line, under any of the names in use.
    NdJson,
    /// `text/html` or `application/xhtml+xml`.
    Html,
    /// Anything else.
    Other,
}

/// How the end of a body is found (RFC 9112 section 6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// No body by the status: 204 and 304.
    None,
    /// So many bytes, possibly 0.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// The body lasts until the peer closes.
    Close,
}

/// The first bytes of a header value, printable ASCII only, kept without an allocation.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct ShortText {
    bytes: [u8; ShortText::BYTES_MAX],
    len: u8,
}

/// A parsed head.
#[derive(Debug)]
pub(super) enum Parsed {
    Interim(u16),
    Final(Head),
}

/// Collects the bytes of one head after the other, however they are cut, and parses each as it becomes whole.
#[derive(Default, Debug)]
pub(super) struct HeadReader {
    /// The bytes so far of a head that began in an earlier input.
    buffer: Vec<u8>,
    /// Blank-line bytes before the head.
    blank_bytes: usize,
    /// How many bytes of `PREFIX` were seen.
    prefix_len: usize,
    line: Line,
    started: bool,
    sought: Sought,
}

/// A header field of the final head that the caller wants to read.
#[derive(Default, Debug)]
pub(super) struct Sought {
    /// Its name; `None`: none is wanted.
    pub(super) name: Option<Arc<str>>,
    /// Its value, empty if it did not come.
    value: String,
}

impl Sought {
    /// Bytes of a value that are kept.
    const BYTES_MAX: usize = 128;

    pub(super) fn value(&self) -> Option<&str> {
        Some(self.value.as_str()).filter(|value| !value.is_empty())
    }

    /// Of several fields of the name the first one counts. What is not printable ASCII is left out.
    fn look(&mut self, headers: &[httparse::Header<'_>]) {
        let Some(name) = &self.name else { return };
        let Some(field) = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name)) else {
            return;
        };
        let printable = field.value.trim_ascii().iter().filter(|byte| matches!(byte, b' '..=b'~'));
        self.value.extend(printable.take(Sought::BYTES_MAX).map(|byte| char::from(*byte)));
    }
}

/// What the line that is being collected holds so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum Line {
    #[default]
    Empty,
    /// A CR alone.
    Cr,
    Text,
}

impl HeadReader {
    /// Takes input up to the end of the head; gives the bytes used and the head once it is whole.
    pub(super) fn next(&mut self, input: &[u8], limits: &Limits) -> Result<(usize, Option<Parsed>), Error> {
        // A limit below the prefix would make the kind of fault depend on how the bytes are cut.
        let bytes_max = limits.head_bytes_max.max(PREFIX.len());
        let blank = self.skip_blank_lines(input);
        let rest = &input[blank..];
        if self.blank_bytes > bytes_max {
            return Err(Error::HeadTooLong);
        }
        self.check_prefix(rest)?;
        let end = self.find_end(rest);
        let piece = &rest[..end.unwrap_or(rest.len())];
        if self.buffer.len() + piece.len() > bytes_max {
            return Err(Error::HeadTooLong);
        }
        let used = blank + piece.len();
        if end.is_none() {
            self.buffer.extend_from_slice(piece);
            return Ok((used, None));
        }
        let parsed = if self.buffer.is_empty() {
            parse(piece, limits, &mut self.sought)?
        } else {
            self.buffer.extend_from_slice(piece);
            parse(&self.buffer, limits, &mut self.sought)?
        };
        self.next_head();
        Ok((used, Some(parsed)))
    }

    /// Forgets everything but the memory.
    pub(super) fn reset(&mut self) {
        self.next_head();
        self.started = false;
        self.sought.value.clear();
    }

    pub(super) fn sought(&self) -> &Sought {
        &self.sought
    }

    pub(super) fn seek(&mut self, name: Option<Arc<str>>) {
        self.sought.name = name;
    }

    pub(super) fn started(&self) -> bool {
        self.started
    }

    pub(super) fn buffered_bytes(&self) -> usize {
        self.buffer.len()
    }

    fn next_head(&mut self) {
        self.buffer.clear();
        self.buffer.shrink_to(KEPT_BYTES);
        self.blank_bytes = 0;
        self.prefix_len = 0;
        self.line = Line::Empty;
    }

    /// Some servers leave a CRLF behind a message; it would stand before the next one.
    fn skip_blank_lines(&mut self, input: &[u8]) -> usize {
        if self.prefix_len > 0 {
            return 0;
        }
        let blank = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        self.blank_bytes += blank;
        blank
    }

    /// A peer of another protocol may never send a line end, so its bytes are not waited for.
    fn check_prefix(&mut self, input: &[u8]) -> Result<(), Error> {
        for &byte in input.iter().take(PREFIX.len() - self.prefix_len) {
            self.started = true;
            if byte != PREFIX[self.prefix_len] {
                return Err(if self.prefix_len >= 5 { Error::Version } else { Error::NotHttp });
            }
            self.prefix_len += 1;
        }
        Ok(())
    }

    /// Where in the input the head ends, behind its blank line.
    fn find_end(&mut self, input: &[u8]) -> Option<usize> {
        let mut start = 0;
        for line_end in memchr_iter(b'\n', input) {
            self.line = self.line.with(&input[start..line_end]);
            start = line_end + 1;
            if self.line != Line::Text {
                return Some(start);
            }
            self.line = Line::Empty;
        }
        self.line = self.line.with(&input[start..]);
        None
    }
}

impl Line {
    fn with(self, more: &[u8]) -> Line {
        match (self, more) {
            (line, []) => line,
            (Line::Empty, b"\r") => Line::Cr,
            _ => Line::Text,
        }
    }
}

impl ShortText {
    /// Bytes that are kept.
    pub const BYTES_MAX: usize = 31;

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    fn from_value(value: &[u8]) -> ShortText {
        let mut text = ShortText::default();
        let printable = value.iter().filter(|byte| matches!(byte, b' '..=b'~'));
        for (slot, &byte) in text.bytes.iter_mut().zip(printable) {
            *slot = byte;
            text.len += 1;
        }
        text
    }
}

impl fmt::Debug for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

/// Parses a whole head, from status line to blank line.
fn parse(bytes: &[u8], limits: &Limits, sought: &mut Sought) -> Result<Parsed, Error> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let headers = &mut headers[..limits.headers_max.min(HEADERS_MAX)];
    let mut response = httparse::Response::new(&mut []);
    let mut config = ParserConfig::default();
    config.allow_obsolete_multiline_headers_in_responses(true);
    let parsed = config.parse_response_with_uninit_headers(&mut response, bytes, headers);
    match parsed.map_err(Error::from)? {
        Status::Complete(len) if len == bytes.len() => {}
        // The blank line was not where the parser wants it, so the two disagree about some line in between.
        Status::Complete(_) | Status::Partial => return Err(Error::Header),
    }
    let status = response.code.ok_or(Error::Status)?;
    let version_minor = response.version.ok_or(Error::Version)?;
    match status {
        ..100 | 101 => Err(Error::Status),
        102..200 | 100 => Ok(Parsed::Interim(status)),
        200.. => {
            sought.look(response.headers);
            Fields::read(response.headers)?.into_head(status, version_minor).map(Parsed::Final)
        }
    }
}

/// The header fields that matter, before they are weighed against each other.
#[derive(Default)]
struct Fields {
    chunked: bool,
    close: bool,
    content_type: ContentType,
    encoded: bool,
    keep_alive: bool,
    length: Option<u64>,
    retry_after_s: Option<u64>,
    server: ShortText,
    /// A transfer coding other than identity stands there.
    transfer_coded: bool,
    via: ShortText,
}

impl Fields {
    fn read(headers: &[httparse::Header<'_>]) -> Result<Fields, Error> {
        let mut fields = Fields::default();
        for header in headers {
            fields.add(header.name, header.value)?;
        }
        Ok(fields)
    }

    fn add(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        // The lengths spare the comparison for nearly all fields that do not matter.
        match name.len() {
            3 if is("via") => self.via = ShortText::from_value(value),
            6 if is("server") => self.server = ShortText::from_value(value),
            10 if is("connection") => self.add_connection(value),
            11 if is("retry-after") => {
                self.retry_after_s = self.retry_after_s.or(decimal(value.trim_ascii()))
            }
            12 if is("content-type") => self.add_content_type(value),
            14 if is("content-length") => return self.add_length(value),
            16 if is("content-encoding") => {
                self.encoded |= list(value).any(|coding| !coding.eq_ignore_ascii_case(b"identity"));
            }
            17 if is("transfer-encoding") => return self.add_transfer_encoding(value),
            _ => {}
        }
        Ok(())
    }

    fn add_connection(&mut self, value: &[u8]) {
        for option in list(value) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Of several types the last one counts, as in the Fetch standard ("extract a MIME type").
    fn add_content_type(&mut self, value: &[u8]) {
        if let Some(content_type) = list(value).filter_map(ContentType::from_value).last() {
            self.content_type = content_type;
        }
    }

    /// RFC 9112 section 6.3: equal repetitions count once, anything else is an error.
    fn add_length(&mut self, value: &[u8]) -> Result<(), Error> {
        for number in value.split(|&byte| byte == b',') {
            let length = decimal(number.trim_ascii()).ok_or(Error::ContentLength)?;
            if self.length.replace(length).is_some_and(|earlier| earlier != length) {
                return Err(Error::ContentLength);
            }
        }
        Ok(())
    }

    fn add_transfer_encoding(&mut self, value: &[u8]) -> Result<(), Error> {
        for coding in list(value).filter(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
            if self.chunked {
                return Err(Error::TransferEncoding);
            }
            self.transfer_coded = true;
            self.chunked = coding.eq_ignore_ascii_case(b"chunked");
            self.encoded |= !self.chunked;
        }
        Ok(())
    }

    fn into_head(self, status: u16, version_minor: u8) -> Result<Head, Error> {
        let framing = match self.length {
            _ if matches!(status, 204 | 304) => Framing::None,
            _ if self.chunked => Framing::Chunked,
            _ if self.transfer_coded => Framing::Close,
            Some(length) => Framing::Length(length),
            None => Framing::Close,
        };
        // RFC 9112 section 6.1: a length beside a transfer coding, or a transfer coding in HTTP/1.0, is a sign
        // that somebody on the way frames the message otherwise. It is read, but the connection is not trusted.
        let doubtful = self.transfer_coded && (self.length.is_some() || version_minor == 0);
        let asked = !self.close && (version_minor == 1 || self.keep_alive);
        Ok(Head {
            status,
            version_minor,
            content_type: self.content_type,
            encoded: self.encoded,
            retry_after_s: self.retry_after_s,
            framing,
            keep_alive: asked && !doubtful && framing != Framing::Close,
            server: self.server,
            via: self.via,
        })
    }
}

impl ContentType {
    /// The type of one value, parameters and letter case aside; none if it does not look like a type.
    fn from_value(value: &[u8]) -> Option<ContentType> {
        let essence = value.split(|&byte| byte == b';').next().unwrap_or_default().trim_ascii();
        if !essence.contains(&b'/') {
            return None;
        }
        let is = |known: &str| essence.eq_ignore_ascii_case(known.as_bytes());
        let ends_in_json = essence.len() >= 5 && essence[essence.len() - 5..].eq_ignore_ascii_case(b"+json");
        Some(if is("text/event-stream") {
            ContentType::EventStream
        } else if is("application/json") || is("text/json") || ends_in_json {
            ContentType::Json
        } else if NDJSON_NAMES.iter().any(|name| is(name)) {
            ContentType::NdJson
        } else if is("text/html") || is("application/xhtml+xml") {
            ContentType::Html
        } else {
            ContentType::Other
        })
    }
}

const NDJSON_NAMES: [&str; 6] = [
    "application/x-ndjson",
    "application/ndjson",
    "application/jsonl",
    "application/x-jsonl",
    "application/jsonlines",
    "application/x-jsonlines",
];

impl From<httparse::Error> for Error {
    fn from(error: httparse::Error) -> Error {
        match error {
            httparse::Error::Status => Error::Status,
            httparse::Error::TooManyHeaders => Error::TooManyHeaders,
            httparse::Error::Version => Error::Version,
            httparse::Error::HeaderName
            | httparse::Error::HeaderValue
            | httparse::Error::NewLine
            | httparse::Error::Token => Error::Header,
        }
    }
}

/// The members of a comma-separated list (RFC 9110 section 5.6.1), without the empty ones.
fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// A number of digits only: no sign, no blanks, not empty, within 64 bits.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, &byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}
