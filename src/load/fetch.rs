//! One request and its whole answer, slowly and clearly: for what is asked before a run.
//!
//! Blocking, on a fresh connection, read through the same [`Exchange`] as the measured requests or as plain bytes.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use crate::api::Filling;
use crate::exchange::{Arrival, Ask, Exchange, NoSink, Progress};
use crate::load::target::{Route, RouteError};
use crate::metrics::{Record, TimeoutPhase};
use crate::sys::clock::RunClock;
use crate::sys::socket::Peer;
use crate::time::Stamp;
use crate::wire::http::{Limits, Part, Response};
use crate::wire::json::Json;

/// A whole answer.
#[derive(Debug)]
pub struct Fetched {
    /// HTTP status.
    pub status: u16,
    /// Value of the `Server` header; empty if there is none.
    pub server: String,
    /// Value of the `Via` header; empty if there is none.
    pub via: String,
    /// The body, cut off at its bound.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum FetchError {
    /// No connection to any address.
    Connect(io::Error),
    /// The request cannot be sent as it is.
    Request(RouteError),
    /// TLS failed.
    Tls(io::Error),
    /// The connection broke or fell silent.
    Broken(io::Error),
    /// What came is no HTTP.
    NotHttp,
}

/// Bodies beyond it are cut off: lists of models and error pages are smaller.
pub const BODY_BYTES_MAX: usize = 4 << 20;

/// How long the parts of a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Until there is a connection.
    pub connect: Duration,
    /// From the start to the first content event.
    pub first: Duration,
    /// From one content event to the next.
    pub gap: Duration,
    /// The whole.
    pub total: Duration,
}

/// How long the end of the framing is awaited once nothing can change the outcome.
const LINGER: Duration = Duration::from_secs(1);

/// A connection that blocks.
enum Line {
    Plain(Stream),
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, Stream>>),
}

/// What it goes over.
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl io::Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl io::Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.flush(),
            Stream::Unix(stream) => stream.flush(),
        }
    }
}

/// Fetches `path` of an endpoint with GET; `limit` is on connecting, on each silence, and on the whole answer.
///
/// # Errors
/// [`FetchError`].
pub fn get(route: &Route, path: &str, limit: Duration) -> Result<Fetched, FetchError> {
    get_up_to(route, path, limit, BODY_BYTES_MAX)
}

/// The same, where bodies are cut off at `bytes_max` in place of [`BODY_BYTES_MAX`].
///
/// # Errors
/// [`FetchError`].
pub fn get_up_to(
    route: &Route,
    path: &str,
    limit: Duration,
    bytes_max: usize,
) -> Result<Fetched, FetchError> {
    fetch(route, &route.get(path).map_err(FetchError::Request)?, limit, bytes_max)
}

/// The same with POST and an empty body, which asks a server to do something.
///
/// # Errors
/// [`FetchError`].
pub fn post_nothing(route: &Route, path: &str, limit: Duration) -> Result<Fetched, FetchError> {
    fetch(route, &route.post_nothing(path).map_err(FetchError::Request)?, limit, BODY_BYTES_MAX)
}

/// The same with POST and a body.
///
/// # Errors
/// [`FetchError`].
pub fn post(route: &Route, path: &str, body: &[u8], limit: Duration) -> Result<Fetched, FetchError> {
    fetch(route, &route.post_to(path, body).map_err(FetchError::Request)?, limit, BODY_BYTES_MAX)
}

fn fetch(route: &Route, head: &[u8], limit: Duration, bytes_max: usize) -> Result<Fetched, FetchError> {
    let mut line = open(route, limit)?;
    let clock = RunClock::start();
    line.write_all(head).map_err(FetchError::Broken)?;
    let mut response = Response::new(Limits::default());
    let mut body = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        let count = line.read(&mut buffer).map_err(FetchError::Broken)?;
        if count == 0 {
            response.on_eof().map_err(|_| FetchError::NotHttp)?;
            break;
        }
        let mut rest = &buffer[..count];
        while let Some(part) = take_part(&mut response, &mut rest)? {
            if let Part::Body(bytes) = part {
                let room = bytes_max.saturating_sub(body.len()).min(bytes.len());
                body.extend_from_slice(&bytes[..room]);
            }
        }
        if response.is_complete() || body.len() >= bytes_max {
            break;
        }
        // A server that sends a little now and then is never silent and may never end.
        if clock.now() - Stamp::ZERO > limit {
            return Err(FetchError::Broken(io::ErrorKind::TimedOut.into()));
        }
    }
    let head = response.head().ok_or(FetchError::NotHttp)?;
    let (server, via) = (head.server.as_str().to_owned(), head.via.as_str().to_owned());
    Ok(Fetched { status: head.status, server, via, body })
}

fn take_part<'a>(response: &mut Response, rest: &mut &'a [u8]) -> Result<Option<Part<'a>>, FetchError> {
    if response.is_complete() {
        return Ok(None);
    }
    let step = response.next(rest).map_err(|_| FetchError::NotHttp)?;
    *rest = &rest[step.used..];
    Ok(step.part)
}

/// Sends one request with `body` and reads the answer as the measured ones are read.
///
/// # Errors
/// There was no connection; everything after that is the exchange's outcome.
pub fn ask(route: &Route, body: &[u8], ask: Ask, patience: &Patience) -> Result<Exchange, FetchError> {
    let clock = RunClock::start();
    let mut request = Vec::new();
    route.post(body, &Filling::default(), &mut request);
    let mut exchange = Exchange::new();
    exchange.begin(ask, Record::planned(0, Stamp::ZERO));
    exchange.on_start(clock.now());
    let Patience { connect, first, gap, total } = *patience;
    let mut line = open(route, connect)?;
    // Woken by then, if not by bytes, to see what has passed.
    line.set_silence(first.min(gap).min(total).min(LINGER)).map_err(FetchError::Broken)?;
    exchange.on_connected(clock.now(), true);
    // The answer may come before the request is read in full; reading decides.
    let _ = line.write_all(&request);
    exchange.on_sent(clock.now());
    let (mut json, mut buffer, mut read_no) = (Json::new(), vec![0; 64 << 10], 0);
    loop {
        let received = line.read(&mut buffer);
        let now = clock.now();
        read_no += 1;
        let progress = match received {
            Ok(0) => exchange.on_eof(now, &mut json, &mut NoSink),
            Ok(count) => {
                let at = Arrival { read: now, kernel: None, read_no, late: false };
                exchange.on_bytes(&at, &buffer[..count], &mut json, &mut NoSink)
            }
            Err(error) if is_silence(&error) => Progress::Pending,
            Err(_) => exchange.on_reset(now),
        };
        let progress = match progress {
            Progress::Pending => give_up(&mut exchange, now, patience),
            Progress::Over => Progress::Over,
        };
        if progress == Progress::Over {
            return Ok(exchange);
        }
    }
}

/// Ends an answer that has had its time, be the connection silent or not: keep-alives, interim responses and bodies
/// without end are no progress.
fn give_up(exchange: &mut Exchange, now: Stamp, patience: &Patience) -> Progress {
    let start = exchange.record().start;
    let waiting = exchange.waiting_for();
    let (until, phase) = match waiting.phase {
        None => (waiting.since + LINGER, TimeoutPhase::Gap),
        Some(TimeoutPhase::Gap) => (waiting.since + patience.gap, TimeoutPhase::Gap),
        Some(phase) => (waiting.since + patience.first, phase),
    };
    let total = start + patience.total;
    if now >= until.min(total) {
        let phase = if total < until { TimeoutPhase::Total } else { phase };
        return exchange.on_timeout(now, phase);
    }
    Progress::Pending
}

/// Whether a blocking call only ran out of time.
pub(super) fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// A connection to the route within `limit`, which is also that on each read and write of it.
fn open(route: &Route, limit: Duration) -> Result<Line, FetchError> {
    let stream = connect(&route.addresses, limit).map_err(FetchError::Connect)?;
    set_silence(&stream, limit).map_err(FetchError::Broken)?;
    let Some(tls) = &route.tls else { return Ok(Line::Plain(stream)) };
    let connection = rustls::ClientConnection::new(Arc::clone(&tls.config), tls.name.clone())
        .map_err(|error| FetchError::Tls(io::Error::other(error)))?;
    let mut line = rustls::StreamOwned::new(connection, stream);
    while line.conn.is_handshaking() {
        line.conn.complete_io(&mut line.sock).map_err(FetchError::Tls)?;
    }
    Ok(Line::Tls(Box::new(line)))
}

fn connect(peers: &[Peer], limit: Duration) -> io::Result<Stream> {
    let mut last = io::Error::other("no address to connect to");
    for peer in peers {
        let stream = match peer {
            Peer::Inet(address) => TcpStream::connect_timeout(address, limit).and_then(|stream| {
                stream.set_nodelay(true)?;
                Ok(Stream::Tcp(stream))
            }),
            Peer::Unix(path) => UnixStream::connect(path).map(Stream::Unix),
        };
        match stream {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn set_silence(stream: &Stream, limit: Duration) -> io::Result<()> {
    match stream {
        Stream::Tcp(stream) => {
            stream.set_read_timeout(Some(limit))?;
            stream.set_write_timeout(Some(limit))
        }
        Stream::Unix(stream) => {
            stream.set_read_timeout(Some(limit))?;
            stream.set_write_timeout(Some(limit))
        }
    }
}

impl Line {
    /// The limit on each further read and write.
    fn set_silence(&self, limit: Duration) -> io::Result<()> {
        match self {
            Line::Plain(stream) => set_silence(stream, limit),
            Line::Tls(stream) => set_silence(&stream.sock, limit),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Line::Plain(stream) => stream.write_all(bytes),
            Line::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Line::Plain(stream) => stream.read(buffer),
            Line::Tls(stream) => match stream.read(buffer) {
                // Many servers end the connection without ending TLS first.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                other => other,
            },
        }
    }
}

impl fmt::Display for FetchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FetchError::Connect(error) => write!(f, "no connection: {error}"),
            FetchError::Request(error) => error.fmt(f),
            FetchError::Tls(error) if is_silence(error) => {
                f.write_str("TLS failed: no answer to the handshake in time")
            }
            FetchError::Tls(error) => write!(f, "TLS failed: {error}"),
            FetchError::Broken(error) if is_silence(error) => f.write_str("no answer in time"),
            FetchError::Broken(error) => write!(f, "the connection broke: {error}"),
            FetchError::NotHttp => f.write_str("what answers there does not speak HTTP/1.1"),
        }
    }
}

impl std::error::Error for FetchError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::target::RouteParts;
    use crate::load::tls;
    use crate::plan::Endpoint;

    const LIMIT: Duration = Duration::from_millis(200);

    /// A route to a server that answers one request with `head`, then with `drop` again and again, without end.
    fn dripping(head: &'static [u8], drop: &'static [u8]) -> Route {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut sent = stream.write_all(head);
            while sent.is_ok() {
                sent = stream.write_all(drop);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let address = Endpoint::parse(&url).unwrap();
        let tls = tls::config(&tls::Trust::anyone()).unwrap();
        Route::new(RouteParts { address: &address, path: "/".to_owned(), headers: Vec::new(), tls }).unwrap()
    }

    #[test]
    fn a_question_whose_answer_never_ends_is_given_up() {
        let route = dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"x");
        let error = get(&route, "/v1/models", LIMIT).unwrap_err();
        assert_eq!(error.to_string(), "no answer in time");
        let route = dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n");
        assert_eq!(get(&route, "/v1/models", LIMIT).unwrap_err().to_string(), "no answer in time");
    }

    #[test]
    fn a_handshake_without_an_answer_is_no_refusal() {
        // The system takes the connection; nobody reads from it.
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Endpoint::parse(&format!("https://{}", listener.local_addr().unwrap())).unwrap();
        let tls = tls::config(&tls::Trust::anyone()).unwrap();
        let parts = RouteParts { address: &address, path: "/".to_owned(), headers: Vec::new(), tls };
        let error = get(&Route::new(parts).unwrap(), "/v1/models", LIMIT).unwrap_err();
        assert_eq!(error.to_string(), "TLS failed: no answer to the handshake in time");
    }

    #[test]
    fn silence_ends_by_the_limit_that_runs() {
        let (soon, late) = (Duration::from_millis(50), Duration::from_secs(60));
        let of = |patience: Patience, head| {
            // It says nothing more, but keeps the connection.
            let route = dripping(head, b"");
            ask(&route, b"{}", Ask::default(), &patience).unwrap().record().outcome.label()
        };
        let all = Patience { connect: late, first: late, gap: late, total: late };
        let begun = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n\
                      data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
        assert_eq!(of(Patience { first: soon, ..all }, b""), "timeout_first");
        assert_eq!(of(Patience { total: soon, ..all }, b""), "timeout_total");
        assert_eq!(of(Patience { gap: soon, ..all }, begun), "timeout_gap");
        // A limit on gaps is none on the first token.
        assert_eq!(of(Patience { gap: soon, first: 2 * soon, ..all }, b""), "timeout_first");
    }

    #[test]
    fn an_answer_without_progress_or_without_end_is_given_up() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        let patience = Patience { connect: LIMIT, first: LIMIT, gap: LIMIT, total: 5 * LIMIT };
        let outcome = |drop| {
            let exchange = ask(&dripping(head, drop), b"{}", Ask::default(), &patience).unwrap();
            exchange.record().outcome.label()
        };
        assert_eq!(outcome(b": ping\n\n"), "timeout_first");
        assert_eq!(
            outcome(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n"),
            "timeout_total"
        );
        assert_eq!(outcome(b"data: {\"error\":\"no\"}\n\n"), "stream_error");
    }
}
