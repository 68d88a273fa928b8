//! How a request ended: one class per request, with a finer kind.
//!
//! Classes decide what a request counts as; kinds tell a reader what went wrong. A string is never either.

use serde::{Deserialize, Serialize};

/// The class of a finished request. Exactly one applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Class {
    /// Ended properly with at least one content event.
    Ok = 0,
    /// Planned abort: neither success nor failure.
    Cancelled = 1,
    /// No connection: refused, unreachable, name not found, TLS refused.
    Connect = 2,
    /// Ended properly without any content event.
    Empty = 3,
    /// Final HTTP status outside 200..=299.
    Http = 4,
    /// Not what was asked for: broken framing, bad JSON, a body of another type.
    Malformed = 5,
    /// The peer broke the connection, or closed it before the first response byte.
    Reset = 6,
    /// An error reported inside a response with a 2xx status.
    StreamError = 7,
    /// Our own limit passed while connecting.
    TimeoutConnect = 8,
    /// Our own limit passed before the first content event.
    TimeoutFirst = 9,
    /// Our own limit on silence passed after a content event.
    TimeoutGap = 10,
    /// Our own limit on the whole request passed.
    TimeoutTotal = 11,
    /// The answer ended too early.
    Truncated = 12,
    /// Still open after the grace period.
    Unfinished = 13,
}

/// The finer reason within a [`Class`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Kind {
    /// No finer reason: successes, cancellations, unfinished requests.
    None = 0,
    /// Event data that is not a JSON object.
    BadJson = 1,
    /// Name resolution failed.
    Dns = 2,
    /// No event at all in the answer.
    EmptyStream = 3,
    /// The status says failure.
    HttpStatus = 4,
    /// An error object, error event or error finish reason inside the response.
    InBandError = 5,
    /// A clean end without `[DONE]` and without a finish reason.
    Incomplete = 6,
    /// Events, but none with content.
    NoOutput = 7,
    /// Closed before any response byte.
    NoResponse = 8,
    /// A JSON or HTML body where an event stream was asked for.
    NotSse = 9,
    /// HTTP framing or syntax broken, or over a limit.
    Protocol = 10,
    /// Connection refused.
    Refused = 11,
    /// One of our limits passed.
    Timeout = 12,
    /// TLS handshake failed.
    Tls = 13,
    /// The framing was cut.
    Truncated = 14,
    /// Host or network unreachable, or no descriptor left.
    Unreachable = 15,
    /// A compressed body that was not asked for.
    UnsupportedEncoding = 16,
    /// This machine has no port left towards the server (`EADDRNOTAVAIL`).
    NoLocalPort = 17,
}

/// Class, kind and HTTP status of a finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Outcome {
    /// What the request counts as.
    pub class: Class,
    /// Why.
    pub kind: Kind,
    /// Final HTTP status, 0 if none was seen.
    pub status: u16,
}

/// Which of our own limits passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutPhase {
    /// No connection yet.
    Connect,
    /// No content event yet.
    First,
    /// Silence after a content event.
    Gap,
    /// The whole request took too long.
    Total,
}

const CLASSES: [Class; 14] = [
    Class::Ok,
    Class::Cancelled,
    Class::Connect,
    Class::Empty,
    Class::Http,
    Class::Malformed,
    Class::Reset,
    Class::StreamError,
    Class::TimeoutConnect,
    Class::TimeoutFirst,
    Class::TimeoutGap,
    Class::TimeoutTotal,
    Class::Truncated,
    Class::Unfinished,
];

const KINDS: [Kind; 18] = [
    Kind::None,
    Kind::BadJson,
    Kind::Dns,
    Kind::EmptyStream,
    Kind::HttpStatus,
    Kind::InBandError,
    Kind::Incomplete,
    Kind::NoOutput,
    Kind::NoResponse,
    Kind::NotSse,
    Kind::Protocol,
    Kind::Refused,
    Kind::Timeout,
    Kind::Tls,
    Kind::Truncated,
    Kind::Unreachable,
    Kind::UnsupportedEncoding,
    Kind::NoLocalPort,
];

impl Class {
    /// Every class, in the order of the stored codes.
    pub const ALL: &'static [Class] = &CLASSES;

    /// The class with the stored code `code`, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Class> {
        CLASSES.get(usize::from(code)).copied()
    }

    /// The name in files and tables. For [`Class::Http`] the status is added by [`Outcome::label`].
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Ok => "ok",
            Class::Cancelled => "cancelled",
            Class::Connect => "connect",
            Class::Empty => "empty",
            Class::Http => "http",
            Class::Malformed => "malformed",
            Class::Reset => "reset",
            Class::StreamError => "stream_error",
            Class::TimeoutConnect => "timeout_connect",
            Class::TimeoutFirst => "timeout_first",
            Class::TimeoutGap => "timeout_gap",
            Class::TimeoutTotal => "timeout_total",
            Class::Truncated => "truncated",
            Class::Unfinished => "unfinished",
        }
    }
}

impl Kind {
    /// The kind with the stored code `code`, if there is one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Kind> {
        KINDS.get(usize::from(code)).copied()
    }

    /// The name in files and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::None => "none",
            Kind::BadJson => "bad_json",
            Kind::Dns => "dns",
            Kind::EmptyStream => "empty_stream",
            Kind::HttpStatus => "http_status",
            Kind::InBandError => "in_band_error",
            Kind::Incomplete => "incomplete",
            Kind::NoOutput => "no_output",
            Kind::NoResponse => "no_response",
            Kind::NotSse => "not_sse",
            Kind::Protocol => "protocol",
            Kind::Refused => "refused",
            Kind::Timeout => "timeout",
            Kind::Tls => "tls",
            Kind::Truncated => "truncated",
            Kind::Unreachable => "unreachable",
            Kind::UnsupportedEncoding => "unsupported_encoding",
            Kind::NoLocalPort => "no_local_port",
        }
    }
}

impl Outcome {
    /// A success with the final status `status`.
    #[must_use]
    pub const fn ok(status: u16) -> Outcome {
        Outcome { class: Class::Ok, kind: Kind::None, status }
    }

    /// An outcome of `class` and `kind` with the final status `status` (0: none seen).
    #[must_use]
    pub const fn new(class: Class, kind: Kind, status: u16) -> Outcome {
        Outcome { class, kind, status }
    }

    /// A limit of our own passed.
    #[must_use]
    pub const fn timeout(phase: TimeoutPhase, status: u16) -> Outcome {
        let class = match phase {
            TimeoutPhase::Connect => Class::TimeoutConnect,
            TimeoutPhase::First => Class::TimeoutFirst,
            TimeoutPhase::Gap => Class::TimeoutGap,
            TimeoutPhase::Total => Class::TimeoutTotal,
        };
        Outcome { class, kind: Kind::Timeout, status }
    }

    /// Whether the request counts as a success.
    #[must_use]
    #[inline]
    pub fn is_ok(self) -> bool {
        self.class == Class::Ok
    }

    /// Whether the request counts as a failure: everything but successes and planned cancellations.
    #[must_use]
    pub fn is_failure(self) -> bool {
        !matches!(self.class, Class::Ok | Class::Cancelled)
    }

    /// The class name as printed, with the status for HTTP failures: `http_429`.
    #[must_use]
    pub fn label(self) -> String {
        match self.class {
            Class::Http => format!("http_{}", self.status),
            class => class.name().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places_in_the_tables() {
        for (place, class) in CLASSES.iter().enumerate() {
            assert_eq!(*class as usize, place);
            assert_eq!(Class::from_code(*class as u8), Some(*class));
        }
        for (place, kind) in KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, place);
            assert_eq!(Kind::from_code(*kind as u8), Some(*kind));
        }
        assert_eq!(Class::from_code(14), None);
        assert_eq!(Kind::from_code(18), None);
    }

    #[test]
    fn labels_carry_the_status_of_http_failures() {
        assert_eq!(Outcome::new(Class::Http, Kind::HttpStatus, 429).label(), "http_429");
        assert_eq!(Outcome::ok(200).label(), "ok");
    }
}
