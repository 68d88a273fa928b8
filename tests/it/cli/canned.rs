//! A server that says what a test wants it to say, one connection at a time each on its own thread.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::LOOK;

/// A request as it came.
pub(super) struct Asked {
    /// Its first line and headers.
    pub(super) head: String,
    pub(super) body: String,
    /// How many POST requests came before it.
    pub(super) posts: usize,
}

impl Asked {
    pub(super) fn is_post(&self) -> bool {
        self.head.starts_with("POST")
    }
}

/// It serves until the test process ends.
pub(super) struct Canned {
    pub(super) port: u16,
    posts: Arc<AtomicUsize>,
}

impl Canned {
    /// Each request gets the bytes that `answer` gives, then the connection ends.
    pub(super) fn start(answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Canned {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let posts = Arc::new(AtomicUsize::new(0));
        let (answer, count) = (Arc::new(answer), Arc::clone(&posts));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, count) = (Arc::clone(&answer), Arc::clone(&count));
                std::thread::spawn(move || serve(stream, &*answer, &count));
            }
        });
        Canned { port, posts }
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// How many POST requests have come.
    pub(super) fn posts(&self) -> usize {
        self.posts.load(Ordering::SeqCst)
    }

    /// Waits until `count` POST requests have come.
    pub(super) fn wait_for_posts(&self, count: usize) {
        for _ in 0..6000 {
            if self.posts() >= count {
                return;
            }
            std::thread::sleep(LOOK);
        }
        panic!("only {} of {count} requests came", self.posts());
    }
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&Asked) -> Vec<u8>, posts: &AtomicUsize) {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let Some((head, body)) = read(&mut stream) else { return };
    let post = usize::from(head.starts_with("POST"));
    let asked = Asked { head, body, posts: posts.fetch_add(post, Ordering::SeqCst) };
    // A client that has gone away is no failure of the test.
    let _ = stream.write_all(&answer(&asked));
}

fn read(stream: &mut TcpStream) -> Option<(String, String)> {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().unwrap())
            });
            let body = &bytes[end + 4..];
            if body.len() >= length.unwrap_or(0) {
                return Some((head, String::from_utf8_lossy(body).into_owned()));
            }
        }
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => bytes.extend_from_slice(&buffer[..count]),
            _ => return None,
        }
    }
}

/// A whole response.
pub(super) fn http(status: u16, kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Said\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

/// A list of one model, `m`.
pub(super) fn models() -> Vec<u8> {
    http(200, "application/json", r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#)
}

/// An error object.
pub(super) fn error(status: u16, message: &str) -> Vec<u8> {
    let body = serde_json::json!({ "error": { "message": message, "type": "x", "code": status } });
    http(status, "application/json", &body.to_string())
}

/// A stream of five tokens, counted.
pub(super) fn stream() -> Vec<u8> {
    counted_stream(8)
}

/// The same, to a prompt of `prompt_tokens`.
pub(super) fn counted_stream(prompt_tokens: usize) -> Vec<u8> {
    let mut body = String::new();
    for word in ["a", " b", " c", " d", " e"] {
        body += &format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n");
    }
    body += "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    body += &format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt_tokens},\"completion_tokens\":5}}}}\n\n"
    );
    body += "data: [DONE]\n\n";
    http(200, "text/event-stream", &body)
}
