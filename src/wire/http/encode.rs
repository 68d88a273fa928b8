//! The head of a request, from values to bytes.
//!
//! Everything that goes into the head is checked first: a line end inside an API key would otherwise become a
//! header of its own. The body is the caller's, who appends it behind the head or writes it after it.

use std::fmt;

/// The values of a request head.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method, such as `POST`.
    pub method: &'a str,
    /// Path and query, beginning with `/`.
    pub path: &'a str,
    /// Host and, unless it is the scheme's own, port. An IPv6 address stands in brackets.
    pub host: &'a str,
    /// Further fields in the order of sending. Host, Content-Length and Transfer-Encoding are refused here.
    pub headers: &'a [(&'a str, &'a str)],
    /// Bytes of the body, sent as Content-Length; none for a request without a body.
    pub body_bytes: Option<usize>,
}

/// What cannot be sent. Names the first fault; an index counts the entries of [`RequestHead::headers`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EncodeError {
    /// A header name that is empty or holds something other than letters, digits and `!#$%&'*+-.^_|~` or a
    /// backquote.
    HeaderName(usize),
    /// A header that would contradict the ones written here.
    HeaderReserved(usize),
    /// A header value with a line end or another control character.
    HeaderValue(usize),
    /// A host that is empty or holds blanks, control characters or a path.
    Host,
    /// A method that is no token.
    Method,
    /// A path that does not begin with `/` or holds blanks, control characters or non-ASCII.
    Path,
}

impl RequestHead<'_> {
    /// Appends the head, up to and including its blank line.
    ///
    /// # Errors
    /// Something in it cannot be sent; nothing was appended then.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        self.check()?;
        for piece in [self.method, " ", self.path, " HTTP/1.1\r\nHost: ", self.host, "\r\n"] {
            out.extend_from_slice(piece.as_bytes());
        }
        for &(name, value) in self.headers {
            for piece in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(piece.as_bytes());
            }
        }
        if let Some(bytes) = self.body_bytes {
            out.extend_from_slice(b"Content-Length: ");
            push_decimal(out, bytes);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    fn check(&self) -> Result<(), EncodeError> {
        if !is_token(self.method) {
            return Err(EncodeError::Method);
        }
        if !self.path.starts_with('/') || !self.path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(EncodeError::Path);
        }
        let in_host = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'@');
        if self.host.is_empty() || !self.host.bytes().all(in_host) {
            return Err(EncodeError::Host);
        }
        for (i, (name, value)) in self.headers.iter().enumerate() {
            if !is_token(name) {
                return Err(EncodeError::HeaderName(i));
            }
            if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
                return Err(EncodeError::HeaderReserved(i));
            }
            if value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
                return Err(EncodeError::HeaderValue(i));
            }
        }
        Ok(())
    }
}

const RESERVED: [&str; 3] = ["host", "content-length", "transfer-encoding"];

impl fmt::Display for EncodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EncodeError::HeaderName(i) => write!(f, "the name of header {} is not a header name", i + 1),
            EncodeError::HeaderReserved(i) => {
                write!(f, "header {} is one that is written by the client", i + 1)
            }
            EncodeError::HeaderValue(i) => {
                write!(f, "the value of header {} holds a line end or control character", i + 1)
            }
            EncodeError::Host => {
                f.write_str("the host is empty or holds a character that a host cannot have")
            }
            EncodeError::Method => f.write_str("the method is not a method name"),
            EncodeError::Path => {
                f.write_str("the path does not begin with a slash or holds a character to be percent-encoded")
            }
        }
    }
}

impl std::error::Error for EncodeError {}

/// RFC 9110 section 5.6.2.
fn is_token(text: &str) -> bool {
    let in_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(in_token)
}

fn push_decimal(out: &mut Vec<u8>, mut number: usize) {
    let start = out.len();
    loop {
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out[start..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: RequestHead<'_> = RequestHead {
        method: "POST",
        path: "/v1/chat/completions?x=1",
        host: "[::1]:8000",
        headers: &[("Content-Type", "application/json"), ("Authorization", "Bearer a\tb")],
        body_bytes: Some(1204),
    };

    #[test]
    fn a_head_is_its_lines() {
        let mut out = b"before".to_vec();
        CHAT.encode(&mut out).unwrap();
        let text = "beforePOST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: [::1]:8000\r\n\
            Content-Type: application/json\r\nAuthorization: Bearer a\tb\r\nContent-Length: 1204\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }

    #[test]
    fn a_head_without_body_has_no_length_and_an_empty_body_has_one() {
        let encoded = |body_bytes| {
            let mut out = Vec::new();
            RequestHead { method: "GET", path: "/", headers: &[], host: "a", body_bytes }
                .encode(&mut out)
                .unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(encoded(None), "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(encoded(Some(0)), "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    }

    #[test]
    fn what_would_break_the_head_is_refused_and_nothing_is_written() {
        let header = |name: &'static str, value: &'static str| {
            let headers = [("a", "b"), (name, value)];
            let mut out = Vec::new();
            let result = RequestHead { headers: &headers, ..CHAT }.encode(&mut out);
            assert_eq!(result.is_err(), out.is_empty());
            result
        };
        assert_eq!(header("x-key", "secret\n"), Err(EncodeError::HeaderValue(1)));
        assert_eq!(header("x-key", "a\rb"), Err(EncodeError::HeaderValue(1)));
        assert_eq!(header("x-key", "a\0b"), Err(EncodeError::HeaderValue(1)));
        assert_eq!(header("x-key", "a\u{7f}b"), Err(EncodeError::HeaderValue(1)));
        assert_eq!(header("x-key", "grüße"), Ok(()));
        assert_eq!(header("x-key", ""), Ok(()));
        assert_eq!(header("", "v"), Err(EncodeError::HeaderName(1)));
        assert_eq!(header("x key", "v"), Err(EncodeError::HeaderName(1)));
        assert_eq!(header("x:key", "v"), Err(EncodeError::HeaderName(1)));
        assert_eq!(header("x\r\nkey", "v"), Err(EncodeError::HeaderName(1)));
        assert_eq!(header("clé", "v"), Err(EncodeError::HeaderName(1)));
        assert_eq!(header("HOST", "v"), Err(EncodeError::HeaderReserved(1)));
        assert_eq!(header("content-Length", "3"), Err(EncodeError::HeaderReserved(1)));
        assert_eq!(header("Transfer-Encoding", "chunked"), Err(EncodeError::HeaderReserved(1)));
    }

    #[test]
    fn the_first_line_and_the_host_are_checked() {
        let fault = |head: RequestHead<'_>| head.encode(&mut Vec::new());
        for method in ["", "PO ST", "POST\r\n"] {
            assert_eq!(fault(RequestHead { method, ..CHAT }), Err(EncodeError::Method), "{method:?}");
        }
        for path in ["", "v1", "/a b", "/a\r\nx: y", "/ä", "http://a/"] {
            assert_eq!(fault(RequestHead { path, ..CHAT }), Err(EncodeError::Path), "{path:?}");
        }
        for host in ["", "a b", "a\n", "a/b", "user@a"] {
            assert_eq!(fault(RequestHead { host, ..CHAT }), Err(EncodeError::Host), "{host:?}");
        }
    }
}
