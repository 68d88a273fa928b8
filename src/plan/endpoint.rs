//! Where requests go: base URLs as users write them, taken apart once.
//!
//! Owns the reading of a base URL, with or without a scheme, `/v1` or the full path, and of `unix://` with the path of a
//! socket. It resolves no name and opens
//! nothing.

use core::net::Ipv6Addr; // Only its grammar: nothing here has to do with sockets.
use std::fmt;

use super::{Endpoint, Error, Secret, Target};
use crate::api::Dialect;

/// How an endpoint is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// In the clear.
    Http,
    /// Through TLS.
    Https,
}

/// A base URL, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// In the clear or through TLS.
    pub scheme: Scheme,
    /// Name or number in lower case; IPv6 without its brackets.
    pub host: String,
    /// The port; 80 or 443 where none was given.
    pub port: u16,
    /// What comes before the request's path: empty, or `/some/prefix` without a slash at its end.
    pub prefix: String,
    /// The dialect and the path (after the prefix) that a full URL like `http://host/v1/completions` named.
    pub request: Option<(Dialect, String)>,
    /// `user:password` of the URL, to be sent as basic authorization and never stored.
    pub userinfo: Option<Secret>,
    /// Path of the Unix socket that it is reached by, for `unix:///path`; the host is then `localhost`.
    pub unix: Option<String>,
}

impl Scheme {
    /// As written in a URL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// 80 or 443.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Scheme::Http => 80,
            Scheme::Https => 443,
        }
    }
}

impl Endpoint {
    /// Reads a base URL as users write it.
    ///
    /// The scheme may be missing (`http`). A path that ends in `/v1`, `/v1/models` or the path of a dialect, with `/v1`
    /// or without, is taken apart, so that nothing is doubled later; what comes before it is a prefix.
    ///
    /// # Errors
    /// What is no URL of an HTTP server, and what would be lost or stored wrongly: other schemes, queries, fragments,
    /// paths of dialects that are not spoken. No error repeats a password.
    pub fn parse(text: &str) -> Result<Address, Error> {
        let text = text.trim();
        if text.is_empty() {
            return Err(bad("the URL is empty"));
        }
        if let Some(path) = text
            .get(..UNIX.len())
            .filter(|start| start.eq_ignore_ascii_case(UNIX))
            .map(|_| &text[UNIX.len()..])
        {
            return read_unix(path);
        }
        let (scheme, rest) = split_scheme(text)?;
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let (userinfo, host_port) = match authority.rsplit_once('@') {
            Some((user, host_port)) => (Some(read_userinfo(user)?), host_port),
            None => (None, authority),
        };
        let (host, port) = split_port(host_port)?;
        let (prefix, request) = split_path(path)?;
        let port = port.unwrap_or(scheme.default_port());
        Ok(Address { scheme, host: read_host(host)?, port, prefix, request, userinfo, unix: None })
    }

    /// The parts of this endpoint, whose URL may have been read from a file.
    ///
    /// # Errors
    /// As [`Endpoint::parse`].
    pub fn address(&self) -> Result<Address, Error> {
        Endpoint::parse(&self.url)
    }
}

impl Address {
    /// The endpoint that a plan stores: `scheme://host:port[/prefix]`, without userinfo and request path.
    #[must_use]
    pub fn endpoint(&self) -> Endpoint {
        if let Some(path) = &self.unix {
            return Endpoint { url: format!("{UNIX}{path}") };
        }
        let Address { scheme, port, prefix, .. } = self;
        Endpoint { url: format!("{}://{}:{port}{prefix}", scheme.as_str(), Bracketed(&self.host)) }
    }

    /// Value of the `Host` field: the port only where it is not the scheme's own.
    #[must_use]
    pub fn authority(&self) -> String {
        let host = Bracketed(&self.host);
        if self.port == self.scheme.default_port() {
            host.to_string()
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl Target {
    /// Path of a request below an endpoint's prefix.
    #[must_use]
    pub fn request_path(&self) -> &str {
        self.path.as_deref().unwrap_or(self.dialect.path())
    }

    /// Path of the list of models below an endpoint's prefix: beside the request's path where that is a usual one,
    /// else `/v1/models`.
    #[must_use]
    pub fn models_path(&self) -> String {
        let path = self.request_path();
        let path = path.split('?').next().unwrap_or(path);
        let beside = KNOWN_ENDS.iter().filter(|(_, dialect)| dialect.is_some_and(is_beside_models));
        let base = beside.filter_map(|(end, _)| path.strip_suffix(end)).next();
        format!("{}{MODELS}", base.unwrap_or(V1))
    }
}

/// The server behind the Unix socket at `path`, which is all that such a URL has.
fn read_unix(path: &str) -> Result<Address, Error> {
    let legal =
        path.len() > 1 && path.starts_with('/') && path.len() <= super::connections::UNIX_PATH_BYTES_MAX;
    if !legal || path.contains('\0') {
        return Err(Error::new(
            "--base-url",
            format!("'{path}' cannot be the path of a socket"),
            "give an absolute path of at most 107 bytes, as in unix:///run/server.sock",
        ));
    }
    Ok(Address {
        scheme: Scheme::Http,
        host: "localhost".to_owned(),
        port: Scheme::Http.default_port(),
        prefix: String::new(),
        request: None,
        userinfo: None,
        unix: Some(path.to_owned()),
    })
}

fn split_scheme(text: &str) -> Result<(Scheme, &str), Error> {
    let Some((scheme, rest)) = text.split_once("://") else {
        return Ok((Scheme::Http, text));
    };
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Ok((Scheme::Http, rest)),
        "https" => Ok((Scheme::Https, rest)),
        // What stands before `://` could be a password if the scheme was left out.
        _ => Err(bad("the URL has a scheme that is not http, https or unix")),
    }
}

fn read_userinfo(text: &str) -> Result<Secret, Error> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let (byte, tail) = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, tail),
                _ => return Err(bad("the user or password in the URL has a broken % escape")),
            },
            _ => (first, tail),
        };
        bytes.push(byte);
        rest = tail;
    }
    let mut text =
        String::from_utf8(bytes).map_err(|_| bad("the user or password in the URL is not UTF-8"))?;
    if !text.contains(':') {
        text.push(':');
    }
    Ok(Secret::new(text))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|d| u8::try_from(d).ok())
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), Error> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, tail) = rest.split_once(']').ok_or_else(|| bad("an IPv6 address lacks its ']'"))?;
            host.parse::<Ipv6Addr>().map_err(|_| bad(format!("'[{host}]' is not an IPv6 address")))?;
            match tail.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if tail.is_empty() => (host, None),
                None => return Err(bad(format!("'{tail}' follows the IPv6 address"))),
            }
        }
        None if text.matches(':').count() > 1 => {
            return Err(bad("an IPv6 address needs brackets, as in http://[::1]:8000"));
        }
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let port = port.map(|port| match port.parse::<u16>() {
        // `parse` takes a sign, which no port has.
        Ok(number) if number > 0 && port.bytes().all(|b| b.is_ascii_digit()) => Ok(number),
        _ => Err(bad(format!("'{port}' is not a port from 1 to 65535"))),
    });
    Ok((host, port.transpose()?))
}

fn read_host(host: &str) -> Result<String, Error> {
    if host.is_empty() {
        return Err(bad("the URL names no host"));
    }
    if !host.is_ascii() {
        return Err(bad(format!("the host '{host}' is not ASCII; its xn-- form is needed")));
    }
    match is_host(host) {
        true => Ok(host.to_ascii_lowercase()),
        false => Err(bad(format!("'{host}' is not a host name or address"))),
    }
}

/// Whether it can be a name or an address, IPv6 without its brackets.
pub(super) fn is_host(host: &str) -> bool {
    let legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let is_name = || host.bytes().all(legal) && !host.split('.').rev().skip(1).any(str::is_empty);
    !host.is_empty() && host.len() <= HOST_BYTES_MAX && (host.parse::<Ipv6Addr>().is_ok() || is_name())
}

/// Prefix and request of a URL's path.
type PathParts = (String, Option<(Dialect, String)>);

fn split_path(path: &str) -> Result<PathParts, Error> {
    if path.contains('?') {
        return Err(bad("the URL has a query; give the path with its query by --endpoint"));
    }
    if path.contains('#') {
        return Err(bad("the URL has a fragment (#)"));
    }
    if let Some(c) =
        path.chars().find(|c| !c.is_ascii_graphic() || matches!(c, '"' | '<' | '>' | '\\' | '^' | '`'))
    {
        return Err(bad(format!("the path of the URL has a character {c:?}")));
    }
    let path = path.trim_end_matches('/');
    if let Some(end) = FOREIGN_ENDS.iter().find(|end| path.ends_with(*end)) {
        return Err(bad(format!("the path {end} belongs to an API that is not spoken yet")));
    }
    for (end, dialect) in KNOWN_ENDS {
        let Some(base) = path.strip_suffix(end) else { continue };
        let (prefix, v1) = base.strip_suffix(V1).map_or((base, ""), |prefix| (prefix, V1));
        return Ok((prefix.to_owned(), dialect.map(|dialect| (dialect, format!("{v1}{end}")))));
    }
    Ok((path.strip_suffix(V1).unwrap_or(path).to_owned(), None))
}

fn bad(wrong: impl Into<String>) -> Error {
    Error::new("--base-url", wrong, "give it as http://host:port, with or without /v1")
}

/// Writes a host as it stands in a URL.
struct Bracketed<'h>(&'h str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.contains(':') {
            true => write!(f, "[{}]", self.0),
            false => f.write_str(self.0),
        }
    }
}

const UNIX: &str = "unix://";
const V1: &str = "/v1";
const MODELS: &str = "/models";
/// Ends of paths that are taken apart, the longer of two that match first.
const KNOWN_ENDS: [(&str, Option<Dialect>); 10] = [
    ("/chat/completions", Some(Dialect::OpenaiChat)),
    ("/completions", Some(Dialect::Openai)),
    ("/messages", Some(Dialect::Messages)),
    ("/responses", Some(Dialect::Responses)),
    ("/embeddings", Some(Dialect::Embeddings)),
    ("/api/chat", Some(Dialect::OllamaChat)),
    ("/api/generate", Some(Dialect::OllamaGenerate)),
    ("/generate", Some(Dialect::Sglang)),
    ("/completion", Some(Dialect::LlamaCpp)),
    (MODELS, None),
];
/// Ends of paths of dialects that are not spoken: as prefixes they could only give a 404.
const FOREIGN_ENDS: [&str; 4] = ["/generate_stream", "/v1/rerank", "/v1/score", "/v1/images/generations"];

/// Whether the list of models stands beside a request of this path.
fn is_beside_models(dialect: Dialect) -> bool {
    dialect.path().starts_with(V1)
}

/// Longest host name (RFC 1035 section 2.3.4).
const HOST_BYTES_MAX: usize = 253;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> String {
        Endpoint::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).endpoint().url
    }

    fn wrong(text: &str) -> String {
        let error = Endpoint::parse(text).expect_err(text);
        assert_eq!(error.subject, "--base-url");
        error.wrong
    }

    #[test]
    fn a_base_url_is_the_same_with_or_without_v1_or_the_full_path() {
        for text in [
            "http://h:8000",
            "h:8000",
            " http://h:8000/ ",
            "HTTP://H:8000/v1",
            "http://h:8000/v1/",
            "http://h:8000/v1/chat/completions",
            "http://h:8000/v1/completions/",
            "http://h:8000/v1/models",
            "h:8000/v1",
        ] {
            assert_eq!(url(text), "http://h:8000", "{text}");
        }
    }

    #[test]
    fn prefixes_are_kept() {
        assert_eq!(url("https://gw.example/llm/v1"), "https://gw.example:443/llm");
        assert_eq!(url("https://gw.example/llm/v1/chat/completions"), "https://gw.example:443/llm");
        assert_eq!(url("https://gw.example/api/paas/v4"), "https://gw.example:443/api/paas/v4");
    }

    #[test]
    fn a_full_path_names_dialect_and_path() {
        let request = |text: &str| Endpoint::parse(text).unwrap().request;
        let chat = |path: &str| Some((Dialect::OpenaiChat, path.to_owned()));
        assert_eq!(request("h/v1/chat/completions"), chat("/v1/chat/completions"));
        assert_eq!(request("h/api/paas/v4/chat/completions"), chat("/chat/completions"));
        assert_eq!(request("h/v1/completions"), Some((Dialect::Openai, "/v1/completions".to_owned())));
        assert_eq!(request("h/gw/generate"), Some((Dialect::Sglang, "/generate".to_owned())));
        for dialect in Dialect::ALL {
            assert_eq!(request(&format!("h{}", dialect.path())), Some((dialect, dialect.path().to_owned())));
        }
        assert_eq!(request("h/v1"), None);
        assert_eq!(request("h/v1/models"), None);
    }

    #[test]
    fn ports_default_by_scheme_and_hosts_may_be_addresses() {
        let parts = |text: &str| {
            let a = Endpoint::parse(text).unwrap();
            (a.scheme, a.host.clone(), a.port, a.authority())
        };
        let own = str::to_owned;
        assert_eq!(parts("localhost"), (Scheme::Http, own("localhost"), 80, own("localhost")));
        assert_eq!(parts("https://a.b"), (Scheme::Https, own("a.b"), 443, own("a.b")));
        assert_eq!(parts("https://a.b:80"), (Scheme::Https, own("a.b"), 80, own("a.b:80")));
        assert_eq!(parts("[::1]:8000/v1"), (Scheme::Http, own("::1"), 8000, own("[::1]:8000")));
        assert_eq!(parts("http://[FE80::1]"), (Scheme::Http, own("fe80::1"), 80, own("[fe80::1]")));
        assert_eq!(parts("10.0.0.7:80"), (Scheme::Http, own("10.0.0.7"), 80, own("10.0.0.7")));
    }

    #[test]
    fn what_is_stored_is_read_back_as_it_was() {
        for text in ["http://[::1]:8000/a/b", "https://h/x", "h:1"] {
            let address = Endpoint::parse(text).unwrap();
            assert_eq!(address.endpoint().address().unwrap(), address);
        }
    }

    #[test]
    fn a_unix_socket_is_a_path_and_nothing_else() {
        let address = Endpoint::parse("unix:///run/llm.sock").unwrap();
        assert_eq!(
            (address.unix.as_deref(), address.authority()),
            (Some("/run/llm.sock"), "localhost".to_owned())
        );
        assert_eq!(address.endpoint().url, "unix:///run/llm.sock");
        assert_eq!(address.endpoint().address().unwrap(), address);
        for text in ["unix://", "unix:///", "unix://run/x", &format!("unix:///{}", "x".repeat(107))] {
            assert!(wrong(text).contains("cannot be the path of a socket"), "{text}");
        }
    }

    #[test]
    fn userinfo_is_split_off_as_a_secret() {
        let address = Endpoint::parse("https://user:p%40ss@h:8443/v1").unwrap();
        assert_eq!(address.userinfo, Some(Secret::new("user:p@ss")));
        assert_eq!(address.endpoint().url, "https://h:8443");
        assert!(!format!("{address:?}").contains("p@ss"));
        assert_eq!(Endpoint::parse("token@h").unwrap().userinfo, Some(Secret::new("token:")));
    }

    #[test]
    fn no_error_repeats_a_password() {
        for text in [
            "u:hunter2@h:x",
            "ftp://u:hunter2@h",
            "u:hunter2@",
            "u:hunter2%zz@h",
            "u:hunter2@h/?q",
            "u:hunter2@h h",
        ] {
            assert!(!Endpoint::parse(text).expect_err(text).to_string().contains("hunter2"), "{text}");
        }
    }

    #[test]
    fn junk_is_refused_with_the_reason() {
        assert_eq!(wrong(" "), "the URL is empty");
        assert_eq!(wrong("ftp://h"), "the URL has a scheme that is not http, https or unix");
        assert_eq!(wrong("http://"), "the URL names no host");
        assert_eq!(wrong("http://:8000"), "the URL names no host");
        assert_eq!(wrong("http:/h:8000"), "'' is not a port from 1 to 65535");
        assert_eq!(wrong("h:0"), "'0' is not a port from 1 to 65535");
        assert_eq!(wrong("h:65536"), "'65536' is not a port from 1 to 65535");
        assert_eq!(wrong("h:+80"), "'+80' is not a port from 1 to 65535");
        assert_eq!(wrong("h:"), "'' is not a port from 1 to 65535");
        assert_eq!(wrong("::1"), "an IPv6 address needs brackets, as in http://[::1]:8000");
        assert_eq!(wrong("[::1"), "an IPv6 address lacks its ']'");
        assert_eq!(wrong("[::g]:1"), "'[::g]' is not an IPv6 address");
        assert_eq!(wrong("[::1]8000"), "'8000' follows the IPv6 address");
        assert_eq!(wrong("a..b"), "'a..b' is not a host name or address");
        assert_eq!(wrong("a b"), "'a b' is not a host name or address");
        assert_eq!(wrong("bücher.de"), "the host 'bücher.de' is not ASCII; its xn-- form is needed");
        assert_eq!(wrong("h/v1?x=1"), "the URL has a query; give the path with its query by --endpoint");
        assert_eq!(wrong("h/#top"), "the URL has a fragment (#)");
        assert_eq!(wrong("h/a b"), "the path of the URL has a character ' '");
        assert_eq!(
            wrong("h/generate_stream"),
            "the path /generate_stream belongs to an API that is not spoken yet"
        );
    }

    #[test]
    fn the_list_of_models_stands_beside_the_request() {
        let models = |dialect, path: Option<&str>| {
            Target { dialect, path: path.map(str::to_owned), ..Target::default() }.models_path()
        };
        assert_eq!(models(Dialect::OpenaiChat, None), "/v1/models");
        assert_eq!(models(Dialect::Openai, None), "/v1/models");
        assert_eq!(models(Dialect::OpenaiChat, Some("/chat/completions?v=1")), "/models");
        assert_eq!(models(Dialect::OpenaiChat, Some("/odd/path")), "/v1/models");
        for dialect in Dialect::ALL {
            assert_eq!(models(dialect, None), "/v1/models", "{dialect:?}");
        }
    }
}
