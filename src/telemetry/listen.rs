//! What watches the program while it measures, from outside: an endpoint that tells a Prometheus what it asks for.
//!
//! Nothing here is on the path of a request, and nothing that somebody does to the endpoint reaches a shard: it has a thread
//! of its own, which goes behind all others, serves one peer after another, and gives up on one after a second.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::sys::clock::RunClock;
use crate::sys::cpu::go_last;
use crate::sys::waker::Waker;
use crate::wire::exposition::CONTENT_TYPE;

/// An endpoint that answers `GET /metrics` until it is dropped.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    end: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
}

/// Time for one peer, from its connection to the last byte of the answer.
const PEER: Duration = Duration::from_secs(1);
/// More than a head that any scraper sends.
const HEAD_MAX: usize = 8 << 10;
/// After a failed `accept`, such as one without a descriptor left.
const PAUSE: Duration = Duration::from_millis(100);

impl Endpoint {
    /// Listens at `address` (port 0: any), and answers with what `page` writes at that moment.
    ///
    /// # Errors
    /// The address cannot be had: the port is in use, or the address is none of this machine.
    pub fn start(address: SocketAddr, page: impl Fn() -> String + Send + 'static) -> io::Result<Endpoint> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let end = Arc::new(Waker::new()?);
        let ends = Arc::clone(&end);
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            go_last();
            serve(&listener, &ends, &page);
        })?;
        Ok(Endpoint { address, end, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.end.wake();
        if let Some(thread) = self.thread.take() {
            // A page that panicked has hurt nobody but its reader.
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, end: &Waker, page: &dyn Fn() -> String) {
    let clock = RunClock::start();
    loop {
        let mut ready =
            [(listener.as_fd()), end.as_fd()].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        if poll(&mut ready, None).is_err() {
            std::thread::sleep(PAUSE);
            continue;
        }
        if !ready[1].revents().is_empty() {
            return;
        }
        match listener.accept() {
            // Who hangs, sends nonsense or goes away is no matter of ours.
            Ok((peer, _)) => drop(answer(&clock, end, peer, page)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => std::thread::sleep(PAUSE),
        }
    }
}

/// Hears one peer out and answers it, all of it within [`PEER`].
fn answer(clock: &RunClock, end: &Waker, mut peer: TcpStream, page: &dyn Fn() -> String) -> io::Result<()> {
    let until = clock.now() + PEER;
    peer.set_nonblocking(true)?;
    // Whether the peer is ready for more; not if its time is over, or that of the endpoint.
    let wait = |peer: &TcpStream, flags: PollFlags| -> io::Result<()> {
        let left = until - clock.now();
        let timeout = left.try_into().map_err(io::Error::other)?;
        let mut ready = [PollFd::new(peer, flags), PollFd::new(end, PollFlags::IN)];
        let count = if left.is_zero() { 0 } else { poll(&mut ready, Some(&timeout))? };
        if count > 0 && ready[1].revents().is_empty() { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    };
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !is_whole(&head) && head.len() < HEAD_MAX {
        wait(&peer, PollFlags::IN)?;
        match peer.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => head.extend_from_slice(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    let reply = reply(&head, page);
    let mut rest = reply.as_slice();
    while !rest.is_empty() {
        wait(&peer, PollFlags::OUT)?;
        match peer.write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    peer.shutdown(std::net::Shutdown::Write)
}

fn is_whole(head: &[u8]) -> bool {
    memchr::memmem::find(head, b"\r\n\r\n").is_some()
}

/// The answer to a request with this head.
fn reply(head: &[u8], page: &dyn Fn() -> String) -> Vec<u8> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    let read = request.parse(head);
    let target = request.path.unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let (status, content_type, body) = match (read, request.method, path) {
        (Ok(httparse::Status::Complete(_)), Some("GET" | "HEAD"), "/metrics") => {
            ("200 OK", CONTENT_TYPE, page())
        }
        (Ok(httparse::Status::Complete(_)), Some("GET" | "HEAD"), _) => {
            ("404 Not Found", PLAIN, "what there is lies at /metrics\n".to_owned())
        }
        (Ok(httparse::Status::Complete(_)), ..) => {
            ("405 Method Not Allowed", PLAIN, "only GET is answered\n".to_owned())
        }
        _ => ("400 Bad Request", PLAIN, "this is no HTTP request\n".to_owned()),
    };
    let mut reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if request.method != Some("HEAD") {
        reply.push_str(&body);
    }
    reply.into_bytes()
}

const PLAIN: &str = "text/plain; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint() -> Endpoint {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        Endpoint::start(address, || "a 1.0\n".to_owned()).unwrap()
    }

    /// What it says to these bytes.
    fn asked(endpoint: &Endpoint, bytes: &[u8]) -> String {
        let mut peer = TcpStream::connect(endpoint.address()).unwrap();
        peer.write_all(bytes).unwrap();
        let mut said = String::new();
        // Who still has to be told something when the endpoint hangs up gets a reset.
        let _ = peer.read_to_string(&mut said);
        said
    }

    #[test]
    fn what_is_asked_for_properly_is_answered_and_nothing_else_ends_it() {
        let endpoint = endpoint();
        let page = "Content-Length: 6\r\nConnection: close\r\n\r\na 1.0\n";
        for bytes in ["GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "GET /metrics?x=1 HTTP/1.0\r\n\r\n"] {
            let said = asked(&endpoint, bytes.as_bytes());
            assert!(said.starts_with("HTTP/1.1 200 OK\r\n") && said.ends_with(page), "{said}");
        }
        let head = asked(&endpoint, b"HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("close\r\n\r\n"), "{head}");
        assert!(asked(&endpoint, b"GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(asked(&endpoint, b"POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
        assert!(asked(&endpoint, b"\x16\x03\x01\0\xff\r\n\r\n").starts_with("HTTP/1.1 400"));
        let _reset_or_400 = asked(&endpoint, &vec![b'a'; 64 << 10]);
        drop(TcpStream::connect(endpoint.address()).unwrap());
        assert!(asked(&endpoint, b"GET /metrics HTTP/1.1\r\n\r\n").ends_with("a 1.0\n"));
    }

    #[test]
    fn one_that_says_nothing_neither_blocks_others_for_long_nor_the_end() {
        let endpoint = endpoint();
        let silent = TcpStream::connect(endpoint.address()).unwrap();
        let clock = RunClock::start();
        assert!(asked(&endpoint, b"GET /metrics HTTP/1.1\r\n\r\n").ends_with("a 1.0\n"));
        let waited = clock.now() - crate::time::Stamp::ZERO;
        assert!(waited < PEER * 4, "{waited:?}");
        let again = TcpStream::connect(endpoint.address()).unwrap();
        let end = clock.now();
        drop(endpoint);
        assert!(clock.now() - end < PEER, "its end waits for a peer");
        drop((silent, again));
    }

    #[test]
    fn a_port_that_is_taken_is_an_error() {
        let endpoint = endpoint();
        let error = Endpoint::start(endpoint.address(), String::new).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
