//! Whole replies: status, fields and a body of known length.

use std::io::Write as _;

use serde_json::json;

use super::ask::{Denial, Surface};
use super::request::Refusal;

/// A reply with a body of known length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    /// Further fields, each ended by CRLF.
    pub(super) fields: String,
    pub(super) body: Vec<u8>,
}

/// How a reply goes out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// The peer speaks HTTP/1.1.
    pub(super) chunks: bool,
    /// The connection stays open afterwards.
    pub(super) keep_alive: bool,
    /// The request was HEAD: no body.
    pub(super) head_only: bool,
    /// Who answers, if it says so.
    pub(super) served_by: ServedBy,
}

/// The name of a server in its answers, kept in place: heads are written for every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedBy {
    bytes: [u8; ServedBy::BYTES_MAX],
    len: u8,
}

impl ServedBy {
    /// Longest name.
    pub const BYTES_MAX: usize = 63;
    /// The server does not say who it is.
    pub const NOBODY: ServedBy = ServedBy { bytes: [0; ServedBy::BYTES_MAX], len: 0 };

    /// The name `text`; `None` unless it has 1 to 63 bytes of visible ASCII.
    #[must_use]
    pub fn new(text: &str) -> Option<ServedBy> {
        if text.is_empty()
            || text.len() > ServedBy::BYTES_MAX
            || !text.bytes().all(|byte| byte.is_ascii_graphic())
        {
            return None;
        }
        let mut name = ServedBy { len: text.len() as u8, ..ServedBy::NOBODY };
        name.bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(name)
    }
}

impl Reply {
    pub(super) fn json(status: u16, body: impl Into<Vec<u8>>) -> Reply {
        Reply { status, content_type: "application/json", fields: String::new(), body: body.into() }
    }

    /// 200 with no body, as vLLM answers `/health`.
    pub(super) fn empty() -> Reply {
        Reply { status: 200, content_type: "", fields: String::new(), body: Vec::new() }
    }

    pub(super) fn html() -> Reply {
        let page = "<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><h1>It works!</h1></body></html>\n";
        Reply { status: 200, content_type: HTML, fields: String::new(), body: page.as_bytes().to_vec() }
    }

    /// An error object in vLLM's shape.
    pub(super) fn error(denial: &Denial) -> Reply {
        Reply::json(denial.status, error_body(denial))
    }

    /// An error object in the shape of an API.
    pub(super) fn error_of(surface: Surface, denial: &Denial) -> Reply {
        let Denial { status, message, .. } = denial;
        match surface {
            Surface::OllamaChat | Surface::OllamaGenerate => {
                Reply::json(*status, json!({ "error": message }).to_string())
            }
            Surface::Messages => {
                let kind = match status {
                    404 => "not_found_error",
                    400..=499 => "invalid_request_error",
                    _ => "api_error",
                };
                let error = json!({ "type": kind, "message": message });
                Reply::json(*status, json!({ "type": "error", "error": error }).to_string())
            }
            _ => Reply::error(denial),
        }
    }

    /// Numbers in the text format of Prometheus.
    pub(super) fn exposition(text: String) -> Reply {
        Reply {
            status: 200,
            content_type: crate::wire::exposition::CONTENT_TYPE,
            fields: String::new(),
            body: text.into_bytes(),
        }
    }

    /// An error by status alone.
    pub(super) fn status(status: u16, retry_after_s: Option<u32>) -> Reply {
        let (kind, message) = match status {
            401 => ("Unauthorized", "Unauthorized"),
            404 => ("NotFoundError", "Not Found"),
            429 => ("RateLimitError", "Too many requests; slow down."),
            503 => ("ServiceUnavailableError", "The server is overloaded; try again later."),
            500..=599 => ("InternalServerError", "Internal server error"),
            _ => ("BadRequestError", "Bad request"),
        };
        let denial = Denial { status, kind, param: None, message: message.to_owned() };
        let mut reply = Reply::error(&denial);
        if let Some(seconds) = retry_after_s {
            reply.fields = format!("retry-after: {seconds}\r\n");
        }
        reply
    }

    /// A path that is not there, or not with this method; `allow` names the method that is.
    pub(super) fn no_route(allow: Option<&str>) -> Reply {
        match allow {
            None => Reply::json(404, r#"{"detail":"Not Found"}"#),
            Some(method) => Reply {
                fields: format!("allow: {method}\r\n"),
                ..Reply::json(405, r#"{"detail":"Method Not Allowed"}"#)
            },
        }
    }

    /// The answer to bytes that are no acceptable request.
    pub(super) fn refusal(refusal: Refusal) -> Reply {
        let (status, message) = match refusal {
            Refusal::BodyTooLarge => (413, "Request body too large."),
            Refusal::HeadTooLarge => (431, "Request head too large."),
            Refusal::LengthRequired => (411, "A request body needs a Content-Length or chunks."),
            Refusal::Malformed => (400, "Invalid HTTP request received."),
            Refusal::UnknownCoding => (501, "Unknown transfer coding."),
        };
        let kind = "BadRequestError";
        Reply::error(&Denial { status, kind, param: None, message: message.to_owned() })
    }

    /// Appends the reply as bytes.
    pub(super) fn write(&self, manner: Manner, out: &mut Vec<u8>) {
        write_status(self.status, manner.chunks, out);
        if !self.content_type.is_empty() {
            push(out, format_args!("content-type: {}\r\n", self.content_type));
        }
        push(out, format_args!("content-length: {}\r\n{}", self.body.len(), self.fields));
        write_connection(manner, out);
        out.extend_from_slice(b"\r\n");
        if !manner.head_only {
            out.extend_from_slice(&self.body);
        }
    }
}

/// What a page of HTML is declared as.
pub(super) const HTML: &str = "text/html; charset=utf-8";

/// Appends the head of a stream: in chunks, or to HTTP/1.0 up to the end of the connection.
pub(super) fn write_stream_head(content_type: &str, manner: Manner, out: &mut Vec<u8>) {
    write_status(200, manner.chunks, out);
    push(out, format_args!("content-type: {content_type}\r\n"));
    if manner.chunks {
        out.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    write_connection(manner, out);
    out.extend_from_slice(b"\r\n");
}

/// The data of an event that says that an answer has failed.
pub(super) fn error_event(surface: Surface, denial: &Denial) -> Vec<u8> {
    match surface {
        Surface::Responses => {
            let error = json!({
                "type": "error", "code": "server_error", "message": denial.message, "param": null,
            });
            error.to_string().into_bytes()
        }
        _ => Reply::error_of(surface, denial).body,
    }
}

/// The JSON of an error, also used inside a stream.
pub(super) fn error_body(denial: &Denial) -> Vec<u8> {
    let Denial { status, kind, param, message } = denial;
    let (message, param) = (json!(message), json!(param));
    // By hand, so that the members stand in vLLM's order.
    format!(r#"{{"error":{{"message":{message},"type":"{kind}","param":{param},"code":{status}}}}}"#)
        .into_bytes()
}

/// Appends formatted text.
pub(super) fn push(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a vector does not fail");
}

fn write_status(status: u16, chunks: bool, out: &mut Vec<u8>) {
    let minor = u8::from(chunks);
    push(out, format_args!("HTTP/1.{minor} {status} {}\r\nserver: tokload-mock\r\n", reason(status)));
}

fn write_connection(manner: Manner, out: &mut Vec<u8>) {
    let ServedBy { bytes, len } = manner.served_by;
    if len > 0 {
        out.extend_from_slice(b"x-served-by: ");
        out.extend_from_slice(&bytes[..usize::from(len)]);
        out.extend_from_slice(b"\r\n");
    }
    // The defaults of the two versions need not be said (RFC 9112, section 9.3).
    match (manner.chunks, manner.keep_alive) {
        (true, false) => out.extend_from_slice(b"connection: close\r\n"),
        (false, true) => out.extend_from_slice(b"connection: keep-alive\r\n"),
        (true, true) | (false, false) => {}
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        411 => "Length Required",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Manner =
        Manner { chunks: true, keep_alive: true, head_only: false, served_by: ServedBy::NOBODY };

    fn text(reply: &Reply, manner: Manner) -> String {
        let mut out = Vec::new();
        reply.write(manner, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_reply_says_what_the_other_side_cannot_assume() {
        let reply = Reply::json(200, "{}");
        assert_eq!(
            text(&reply, KEEP),
            "HTTP/1.1 200 OK\r\nserver: tokload-mock\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
        );
        assert!(text(&reply, Manner { keep_alive: false, ..KEEP }).contains("\r\nconnection: close\r\n"));
        let old = Manner { chunks: false, ..KEEP };
        assert!(text(&reply, old).starts_with("HTTP/1.0 200 OK\r\n"));
        assert!(text(&reply, old).contains("\r\nconnection: keep-alive\r\n"));
        assert!(!text(&reply, Manner { keep_alive: false, ..old }).contains("connection:"));
    }

    #[test]
    fn head_keeps_the_length_and_drops_the_body() {
        let head = text(&Reply::json(200, "{}"), Manner { head_only: true, ..KEEP });
        assert!(head.ends_with("content-length: 2\r\n\r\n"));
    }

    #[test]
    fn an_error_has_vllms_shape() {
        let denial = Denial {
            status: 404,
            kind: "NotFoundError",
            param: Some("model".to_owned()),
            message: "The model `a\"b` does not exist.".to_owned(),
        };
        let value: serde_json::Value = serde_json::from_slice(&Reply::error(&denial).body).unwrap();
        assert_eq!(
            value,
            json!({"error": {"message": "The model `a\"b` does not exist.", "type": "NotFoundError",
                "param": "model", "code": 404}})
        );
    }

    #[test]
    fn retry_after_and_allow_are_fields() {
        assert!(text(&Reply::status(429, Some(3)), KEEP).contains("\r\nretry-after: 3\r\n"));
        assert!(text(&Reply::no_route(Some("POST")), KEEP).contains("\r\nallow: POST\r\n"));
    }
}
