//! Requests out of bytes: HTTP/1.0 and 1.1 on the server's side. Sans I/O, any split of the bytes gives the same
//! requests.
//!
//! Strict where leniency would let two readers see two different requests (RFC 9112, sections 3.2, 6.1 and 6.3).
//! What a request means is not decided here.

use httparse::Status;

/// Method of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    /// Answered like GET, without the body.
    Head,
    Post,
    /// Any other.
    Other,
}

/// The head of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) method: Method,
    /// Path of the target, without query.
    pub(super) path: String,
    /// The query, without its question mark; empty if there is none.
    pub(super) query: String,
    /// The peer speaks HTTP/1.1: it understands chunked bodies.
    pub(super) chunks: bool,
    /// The connection may be used again afterwards.
    pub(super) keep_alive: bool,
}

/// One whole request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
}

/// What the bytes so far give.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing before more bytes come.
    Starved,
    /// The peer waits for `100 Continue` before it sends the body.
    Continue,
    /// A request.
    Request(Request),
}

/// Why the bytes cannot be read. The connection is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The body is longer than [`BODY_MAX`].
    BodyTooLarge,
    /// The head is longer than [`HEAD_MAX`] or has too many fields.
    HeadTooLarge,
    /// POST without a length.
    LengthRequired,
    /// Not HTTP, or contradictory.
    Malformed,
    /// A transfer coding other than `chunked`.
    UnknownCoding,
}

/// The bytes of one connection and how far they are understood.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    bytes: Vec<u8>,
    /// Bytes before this are done with.
    at: usize,
    /// The request whose body is being received.
    open: Option<Open>,
}

#[derive(Debug)]
struct Open {
    head: Head,
    body: Vec<u8>,
    rest: Rest,
}

/// What is still to come of a body.
#[derive(Clone, Copy, Debug)]
enum Rest {
    /// This many bytes.
    Bytes(usize),
    /// A line with the size of a chunk.
    Size,
    /// This many bytes of a chunk.
    Chunk(usize),
    /// The line end after a chunk.
    ChunkEnd,
    /// Trailer lines of at most this many bytes, up to an empty one.
    Trailer(usize),
}

/// Longest head, bytes.
pub(super) const HEAD_MAX: usize = 64 * 1024;
/// Longest body, bytes.
pub(super) const BODY_MAX: usize = 64 * 1024 * 1024;
const FIELDS_MAX: usize = 128;
const SIZE_LINE_MAX: usize = 1024;
const TRAILER_MAX: usize = 16 * 1024;
/// An emptied buffer larger than this is given back.
const KEEP: usize = 64 * 1024;

impl Inbox {
    /// Takes what was received.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Whether bytes wait to be understood.
    pub(super) fn has_bytes(&self) -> bool {
        self.at < self.bytes.len()
    }

    /// Whether more is kept than one request can hold: a peer that sends without ever reading answers.
    pub(super) fn is_overfull(&self) -> bool {
        self.bytes.len() - self.at > HEAD_MAX + BODY_MAX
    }

    /// Reads on. To be called until it is starved.
    pub(super) fn next(&mut self) -> Result<Step, Refusal> {
        if self.open.is_none() {
            let Some((used, head, framing)) = read_head(&self.bytes[self.at..])? else {
                return Ok(Step::Starved);
            };
            self.at += used;
            let (rest, wants_continue) = framing;
            self.open = Some(Open { head, body: Vec::new(), rest });
            if wants_continue && self.at == self.bytes.len() {
                return Ok(Step::Continue);
            }
        }
        let Some(open) = &mut self.open else { return Ok(Step::Starved) };
        if !open.read_on(&self.bytes, &mut self.at)? {
            return Ok(Step::Starved);
        }
        if self.at == self.bytes.len() && self.bytes.capacity() > KEEP {
            (self.bytes, self.at) = (Vec::new(), 0);
        }
        match self.open.take() {
            Some(Open { head, body, .. }) => Ok(Step::Request(Request { head, body })),
            None => Ok(Step::Starved),
        }
    }
}

impl Open {
    /// Takes from `bytes[*at..]`; `true` when the body is whole.
    fn read_on(&mut self, bytes: &[u8], at: &mut usize) -> Result<bool, Refusal> {
        loop {
            let there = &bytes[*at..];
            let used = match self.rest {
                Rest::Bytes(0) => return Ok(true),
                Rest::Bytes(missing) => {
                    let Some(part) = some_of(there, missing) else { return Ok(false) };
                    self.body.extend_from_slice(part);
                    self.rest = Rest::Bytes(missing - part.len());
                    part.len()
                }
                Rest::Size => {
                    let Some(line) = line(there, SIZE_LINE_MAX)? else { return Ok(false) };
                    self.rest = match chunk_size(line)? {
                        0 => Rest::Trailer(TRAILER_MAX),
                        size if size > BODY_MAX - self.body.len() => return Err(Refusal::BodyTooLarge),
                        size => Rest::Chunk(size),
                    };
                    line.len() + 2
                }
                Rest::Chunk(missing) => {
                    let Some(part) = some_of(there, missing) else { return Ok(false) };
                    self.body.extend_from_slice(part);
                    let left = missing - part.len();
                    self.rest = if left == 0 { Rest::ChunkEnd } else { Rest::Chunk(left) };
                    part.len()
                }
                Rest::ChunkEnd => {
                    let Some(line) = line(there, 0)? else { return Ok(false) };
                    self.rest = Rest::Size;
                    line.len() + 2
                }
                Rest::Trailer(room) => {
                    let Some(line) = line(there, room)? else { return Ok(false) };
                    self.rest = if line.is_empty() {
                        Rest::Bytes(0)
                    } else {
                        Rest::Trailer(room.saturating_sub(line.len() + 2))
                    };
                    line.len() + 2
                }
            };
            *at += used;
        }
    }
}

/// At most `wanted` of the bytes; `None` if there are none.
fn some_of(there: &[u8], wanted: usize) -> Option<&[u8]> {
    let part = &there[..wanted.min(there.len())];
    if part.is_empty() { None } else { Some(part) }
}

/// The next line of at most `max` bytes, without its CRLF; `None` if it is not whole yet.
fn line(there: &[u8], max: usize) -> Result<Option<&[u8]>, Refusal> {
    match memchr::memchr(b'\n', there) {
        Some(end) if end >= 1 && end - 1 <= max && there[end - 1] == b'\r' => Ok(Some(&there[..end - 1])),
        Some(_) => Err(Refusal::Malformed),
        None if there.len() > max + 1 => Err(Refusal::Malformed),
        None => Ok(None),
    }
}

/// `chunk-size [ chunk-ext ]` (RFC 9112, section 7.1).
fn chunk_size(line: &[u8]) -> Result<usize, Refusal> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if digits == 0 || digits > 15 {
        return Err(Refusal::Malformed);
    }
    if !matches!(line.get(digits), None | Some(b';' | b' ' | b'\t')) {
        return Err(Refusal::Malformed);
    }
    let text = std::str::from_utf8(&line[..digits]).map_err(|_| Refusal::Malformed)?;
    usize::from_str_radix(text, 16).map_err(|_| Refusal::Malformed)
}

/// The body's framing, and whether the peer waits for `100 Continue`.
type Framing = (Rest, bool);

/// The head at the start of `bytes` and its length; `None` if it is not whole yet.
fn read_head(bytes: &[u8]) -> Result<Option<(usize, Head, Framing)>, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut parsed = httparse::Request::new(&mut fields);
    let used = match parsed.parse(bytes) {
        Ok(Status::Complete(used)) if used <= HEAD_MAX => used,
        Ok(Status::Partial) if bytes.len() <= HEAD_MAX => return Ok(None),
        Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Refusal::HeadTooLarge),
        Err(_) => return Err(Refusal::Malformed),
    };
    let fields = Fields::read(parsed.headers)?;
    let chunks = parsed.version == Some(1);
    let method = match parsed.method.unwrap_or_default() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        _ => Method::Other,
    };
    // RFC 9112, section 3.2: a request of HTTP/1.1 without exactly one Host is bad.
    if fields.hosts > 1 || (chunks && fields.hosts == 0) {
        return Err(Refusal::Malformed);
    }
    let rest = fields.rest(chunks, method)?;
    let (path, query) = path_and_query(parsed.path.unwrap_or_default());
    let head = Head {
        method,
        path: path.to_owned(),
        query: query.to_owned(),
        chunks,
        keep_alive: if chunks { !fields.close } else { fields.keep_alive },
    };
    Ok(Some((used, head, (rest, chunks && fields.wants_continue))))
}

/// Path and query of a target in origin form, or in absolute form as a proxy would send it.
fn path_and_query(target: &str) -> (&str, &str) {
    let whole = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    let whole = whole.split('#').next().unwrap_or(whole);
    whole.split_once('?').unwrap_or((whole, ""))
}

/// What the header fields say that matters here.
#[derive(Default)]
struct Fields {
    length: Option<usize>,
    coding: Option<bool>,
    hosts: u32,
    close: bool,
    keep_alive: bool,
    wants_continue: bool,
}

impl Fields {
    fn read(headers: &[httparse::Header<'_>]) -> Result<Fields, Refusal> {
        let mut fields = Fields::default();
        for header in headers {
            let value = header.value.trim_ascii();
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let length = decimal(value)?;
                if fields.length.is_some_and(|other| other != length) {
                    return Err(Refusal::Malformed);
                }
                fields.length = Some(length);
            } else if is("transfer-encoding") {
                let known = fields.coding.is_none() && value.eq_ignore_ascii_case(b"chunked");
                fields.coding = Some(known);
            } else if is("host") {
                fields.hosts += 1;
            } else if is("connection") {
                for token in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                    fields.close |= token.eq_ignore_ascii_case(b"close");
                    fields.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            } else if is("expect") {
                fields.wants_continue |= value.eq_ignore_ascii_case(b"100-continue");
            }
        }
        Ok(fields)
    }

    /// RFC 9112, section 6.3, on the server's side.
    fn rest(&self, chunks: bool, method: Method) -> Result<Rest, Refusal> {
        match (self.coding, self.length) {
            // Both at once, or chunks in HTTP/1.0: the way in which requests are smuggled past a proxy.
            (Some(_), Some(_)) => Err(Refusal::Malformed),
            (Some(_), None) if !chunks => Err(Refusal::Malformed),
            (Some(true), None) => Ok(Rest::Size),
            (Some(false), None) => Err(Refusal::UnknownCoding),
            (None, Some(length)) if length > BODY_MAX => Err(Refusal::BodyTooLarge),
            (None, Some(length)) => Ok(Rest::Bytes(length)),
            (None, None) if method == Method::Post => Err(Refusal::LengthRequired),
            (None, None) => Ok(Rest::Bytes(0)),
        }
    }
}

fn decimal(value: &[u8]) -> Result<usize, Refusal> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(Refusal::Malformed);
    }
    let text = std::str::from_utf8(value).map_err(|_| Refusal::Malformed)?;
    // A number that does not fit is a length, only too large a one.
    Ok(text.parse().unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(inbox: &mut Inbox) -> Vec<Result<Step, Refusal>> {
        let mut steps = Vec::new();
        loop {
            match inbox.next() {
                Ok(Step::Starved) => return steps,
                Err(refusal) => {
                    steps.push(Err(refusal));
                    return steps;
                }
                step => steps.push(step),
            }
        }
    }

    fn read(bytes: &[u8]) -> Vec<Result<Step, Refusal>> {
        let mut inbox = Inbox::default();
        inbox.push(bytes);
        all(&mut inbox)
    }

    fn refusal(text: &str) -> Refusal {
        match read(text.as_bytes()).pop() {
            Some(Err(refusal)) => refusal,
            other => panic!("{text:.200} gave {other:?}"),
        }
    }

    fn request(text: &str) -> Request {
        match read(text.as_bytes()).pop() {
            Some(Ok(Step::Request(request))) => request,
            other => panic!("{text:.200} gave {other:?}"),
        }
    }

    const PIPELINE: &str = "POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
        GET /health HTTP/1.1\r\nhost: a\r\nConnection: Close\r\n\r\n\
        POST http://a:1/v1/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
        3;name=\"v\"\r\nabc\r\n00A\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n\
        GET /v1/models HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";

    #[test]
    fn requests_follow_each_other_on_one_connection() {
        let requests: Vec<Request> = read(PIPELINE.as_bytes())
            .into_iter()
            .map(|step| match step {
                Ok(Step::Request(request)) => request,
                other => panic!("{other:?}"),
            })
            .collect();
        let seen: Vec<_> = requests
            .iter()
            .map(|r| {
                let body = std::str::from_utf8(&r.body).unwrap();
                (
                    r.head.method,
                    (r.head.path.as_str(), r.head.query.as_str()),
                    r.head.chunks,
                    r.head.keep_alive,
                    body,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (Method::Post, ("/v1/chat/completions", "x=1"), true, true, "hello"),
                (Method::Get, ("/health", ""), true, false, ""),
                (Method::Post, ("/v1/completions", ""), true, true, "abc0123456789"),
                (Method::Get, ("/v1/models", ""), false, true, ""),
            ]
        );
    }

    #[test]
    fn every_split_gives_the_same_requests() {
        let whole = read(PIPELINE.as_bytes());
        for cut in 0..=PIPELINE.len() {
            let mut inbox = Inbox::default();
            let mut steps = Vec::new();
            for part in [&PIPELINE.as_bytes()[..cut], &PIPELINE.as_bytes()[cut..]] {
                inbox.push(part);
                steps.extend(all(&mut inbox));
            }
            assert_eq!(steps, whole, "cut at {cut}");
        }
        let mut inbox = Inbox::default();
        let mut steps = Vec::new();
        for byte in PIPELINE.as_bytes() {
            inbox.push(&[*byte]);
            steps.extend(all(&mut inbox));
        }
        assert_eq!(steps, whole);
    }

    #[test]
    fn a_waiting_peer_is_told_to_continue_once() {
        let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        let mut inbox = Inbox::default();
        inbox.push(head.as_bytes());
        assert_eq!(all(&mut inbox), [Ok(Step::Continue)]);
        inbox.push(b"h");
        assert_eq!(inbox.next(), Ok(Step::Starved));
        inbox.push(b"i");
        assert!(matches!(inbox.next(), Ok(Step::Request(r)) if r.body == b"hi"));
        // A peer that did not wait is not told.
        assert!(matches!(read(format!("{head}hi").as_bytes())[..], [Ok(Step::Request(_))]));
    }

    #[test]
    fn http_1_0_closes_unless_asked_not_to() {
        assert!(!request("GET / HTTP/1.0\r\n\r\n").head.keep_alive);
        assert!(request("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").head.keep_alive);
        assert!(request("GET / HTTP/1.1\r\nHost: a\r\n\r\n").head.keep_alive);
        assert!(!request("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, CLOSE\r\n\r\n").head.keep_alive);
    }

    #[test]
    fn contradictory_framing_is_refused() {
        let with = |fields: &str| refusal(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n"));
        assert_eq!(with("X: y"), Refusal::LengthRequired);
        assert_eq!(with("Content-Length: 1\r\nContent-Length: 2"), Refusal::Malformed);
        assert_eq!(with("Content-Length: 1, 1"), Refusal::Malformed);
        assert_eq!(with("Content-Length: -1"), Refusal::Malformed);
        assert_eq!(with("Content-Length: "), Refusal::Malformed);
        assert_eq!(with("Content-Length: 99999999999999999999999"), Refusal::BodyTooLarge);
        assert_eq!(with("Content-Length: 1\r\nTransfer-Encoding: chunked"), Refusal::Malformed);
        assert_eq!(with("Transfer-Encoding: gzip, chunked"), Refusal::UnknownCoding);
        assert_eq!(with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"), Refusal::UnknownCoding);
        let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(refusal(old), Refusal::Malformed);
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert_eq!(refusal("GET / HTTP/1.1\r\n\r\n"), Refusal::Malformed, "no host");
        assert_eq!(refusal("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), Refusal::Malformed);
        assert_eq!(refusal("\u{16}\u{3}\u{1}\u{2}\0\u{1}"), Refusal::Malformed, "a TLS handshake");
        assert_eq!(refusal("GET / HTTP/2.0\r\n\r\n"), Refusal::Malformed);
        assert_eq!(refusal(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(HEAD_MAX))), Refusal::HeadTooLarge);
        let fields = "A: b\r\n".repeat(FIELDS_MAX + 1);
        assert_eq!(refusal(&format!("GET / HTTP/1.1\r\n{fields}\r\n")), Refusal::HeadTooLarge);
    }

    #[test]
    fn bad_chunks_are_refused() {
        let with = |chunks: &str| {
            refusal(&format!("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"))
        };
        assert_eq!(with("g\r\n"), Refusal::Malformed);
        assert_eq!(with("\r\n"), Refusal::Malformed);
        assert_eq!(with("3\n"), Refusal::Malformed);
        assert_eq!(with("3x\r\n"), Refusal::Malformed);
        assert_eq!(with("3\r\nabcd\r\n"), Refusal::Malformed);
        assert_eq!(with("fffffffff\r\n"), Refusal::BodyTooLarge);
        assert_eq!(with("ffffffffffffffff\r\n"), Refusal::Malformed);
        assert_eq!(with(&format!("3;{}", "x".repeat(SIZE_LINE_MAX))), Refusal::Malformed);
        assert_eq!(with(&format!("0\r\n{}", "A: b\r\n".repeat(TRAILER_MAX / 6 + 2))), Refusal::Malformed);
    }
}
