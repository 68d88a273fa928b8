//! Connections as a subject: how long they last, how many there may be, where they really go.

use serde::{Deserialize, Serialize};

use super::endpoint::is_host;
use super::{Address, Error, Scheme, Target};
pub(super) use crate::sys::listener::UNIX_PATH_BYTES_MAX;

/// How connections are opened, kept and closed. Limits are per endpoint and over all shards of this client.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Connections {
    /// Whether requests share them.
    pub reuse: Reuse,
    /// Most connections to an endpoint at once; a request beyond them waits. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// A connection older than this takes no further request, s. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age_s: Option<f64>,
    /// A connection that has served so many requests takes no further one. Absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_requests: Option<u32>,
    /// Connections to each endpoint that stand, with TLS, before a level begins. 0 by default.
    pub prewarm: u32,
    /// `HOST:PORT:ADDRESS:PORT` as of curl: requests for the first go to the second. The first that fits counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub connect_to: Vec<String>,
    /// Path of the Unix socket that all endpoints are reached by. Absent: they are reached by TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unix_socket: Option<String>,
}

/// Whether requests share connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// A request takes a connection that is idle, else it opens one.
    #[default]
    Pooled,
    /// Each request opens one, and says so to the server (`Connection: close`).
    Never,
    /// All turns of a session go over one of its own, which is closed at the end of the session.
    StickyUserSessions,
}

impl Reuse {
    /// Every way with the name that options have for it.
    pub const ALL: [(Reuse, &'static str); 3] = [
        (Reuse::Pooled, "pooled"),
        (Reuse::Never, "never"),
        (Reuse::StickyUserSessions, "sticky-user-sessions"),
    ];

    /// The name in options.
    #[must_use]
    pub fn name(self) -> &'static str {
        Reuse::ALL.iter().find(|(reuse, _)| *reuse == self).map_or("", |(_, name)| name)
    }
}

/// Where requests for an address go in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectTo {
    host: Option<String>,
    port: Option<u16>,
    to_host: Option<String>,
    to_port: Option<u16>,
}

impl ConnectTo {
    /// Reads curl's `HOST1:PORT1:HOST2:PORT2`. An empty HOST1 or PORT1 stands for any, an empty HOST2 or PORT2 for that
    /// of the request; IPv6 addresses stand in brackets.
    ///
    /// # Errors
    /// Other than four fields, a port that is none, a host that is none.
    pub fn parse(text: &str) -> Result<ConnectTo, Error> {
        let bad = |wrong: String| {
            Error::new(
                "--connect-to",
                wrong,
                "give HOST:PORT:ADDRESS:PORT, as in api.example:443:10.0.0.7:8443",
            )
        };
        let fields = fields(text).ok_or_else(|| bad(format!("'{text}' has a bracket that is not closed")))?;
        let [host, port, to_host, to_port] = fields.as_slice() else {
            return Err(bad(format!("'{text}' has {} fields in place of four", fields.len())));
        };
        let name = |text: &str| match text {
            "" => Ok(None),
            text if is_host(text) => Ok(Some(text.to_ascii_lowercase())),
            text => Err(bad(format!("'{text}' is not a host name or address"))),
        };
        let number = |text: &str| match (text, text.parse::<u16>()) {
            ("", _) => Ok(None),
            (_, Ok(port)) if port > 0 && text.bytes().all(|b| b.is_ascii_digit()) => Ok(Some(port)),
            _ => Err(bad(format!("'{text}' is not a port from 1 to 65535"))),
        };
        Ok(ConnectTo {
            host: name(host)?,
            port: number(port)?,
            to_host: name(to_host)?,
            to_port: number(to_port)?,
        })
    }

    /// Where a request for `host` and `port` goes, if this is about them.
    #[must_use]
    pub fn of<'a>(&'a self, host: &'a str, port: u16) -> Option<(&'a str, u16)> {
        let fits = self.host.as_deref().is_none_or(|own| own.eq_ignore_ascii_case(host))
            && self.port.is_none_or(|own| own == port);
        fits.then(|| (self.to_host.as_deref().unwrap_or(host), self.to_port.unwrap_or(port)))
    }
}

/// The fields between colons, of which those in brackets are none; without the brackets. `None`: a bracket is not closed.
fn fields(text: &str) -> Option<Vec<&str>> {
    let (mut fields, mut rest) = (Vec::new(), text);
    loop {
        let (field, tail) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']')?,
            None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
        };
        fields.push(field);
        match tail.strip_prefix(':') {
            Some(next) => rest = next,
            None if tail.is_empty() => return Some(fields),
            // Something behind a bracket: counted as a field of its own, which is one too many.
            None => rest = tail,
        }
    }
}

impl Connections {
    pub(super) fn is_default(&self) -> bool {
        *self == Connections::default()
    }

    /// Where a connection for `host` and `port` goes.
    ///
    /// # Errors
    /// As [`ConnectTo::parse`].
    pub fn destination(&self, host: &str, port: u16) -> Result<(String, u16), Error> {
        for text in &self.connect_to {
            if let Some((host, port)) = ConnectTo::parse(text)?.of(host, port) {
                return Ok((host.to_owned(), port));
            }
        }
        Ok((host.to_owned(), port))
    }

    /// Where connections for `address` really go, in words, where its URL does not tell: `over unix:/run/vllm.sock`,
    /// `connecting to 10.0.0.7:8443`.
    #[must_use]
    pub fn detour(&self, address: &Address) -> Option<String> {
        if let Some(path) = &self.unix_socket {
            return (address.unix.as_ref() != Some(path)).then(|| format!("over unix:{path}"));
        }
        let (host, port) = self.destination(&address.host, address.port).ok()?;
        let is_elsewhere = !host.eq_ignore_ascii_case(&address.host) || port != address.port;
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        (is_elsewhere && address.unix.is_none()).then(|| format!("connecting to {host}:{port}"))
    }
}

pub(super) fn check(target: &Target) -> Result<(), Error> {
    let connections = &target.connections;
    let at_least_one =
        |option: &str, what: &str| Err(Error::new(option, format!("0 {what}"), "give 1 or more"));
    if connections.max == Some(0) {
        return at_least_one("--max-connections", "connections carry nothing");
    }
    if connections.max_requests == Some(0) {
        return at_least_one("--max-requests-per-connection", "requests are no use of a connection");
    }
    if let Some(age) = connections.max_age_s
        && !(age.is_finite() && age > 0.0)
    {
        let wrong = format!("{age:?} s is no age to reach");
        return Err(Error::new("--max-connection-age", wrong, "give seconds above 0, or leave it out"));
    }
    let kept = [
        ("--max-connection-age", connections.max_age_s.is_some()),
        ("--max-requests-per-connection", connections.max_requests.is_some()),
        ("--prewarm-connections", connections.prewarm > 0),
    ];
    if connections.reuse != Reuse::Pooled
        && let Some((option, _)) = kept.into_iter().find(|(_, given)| *given)
        && (connections.reuse == Reuse::Never || option == "--prewarm-connections")
    {
        let wrong = format!(
            "is about connections that are kept in a pool, and reuse is {}",
            connections.reuse.name()
        );
        return Err(Error::new(option, wrong, "leave it out, or leave out --connection-reuse-strategy"));
    }
    if connections.prewarm > PREWARM_MAX || connections.max.is_some_and(|max| connections.prewarm > max) {
        let most = connections.max.unwrap_or(PREWARM_MAX).min(PREWARM_MAX);
        let wrong = format!("{} are more than there may be", connections.prewarm);
        return Err(Error::new("--prewarm-connections", wrong, format!("give at most {most}")));
    }
    for text in &connections.connect_to {
        ConnectTo::parse(text)?;
    }
    check_unix_socket(target)?;
    check_tls(target)
}

fn check_unix_socket(target: &Target) -> Result<(), Error> {
    let Some(path) = &target.connections.unix_socket else { return Ok(()) };
    let wrong = |wrong: String, remedy: &str| Err(Error::new("--unix-socket", wrong, remedy));
    if path.is_empty() || path.len() > UNIX_PATH_BYTES_MAX || path.contains('\0') {
        let remedy = "give the path of a socket, 1 to 107 bytes long";
        return wrong(format!("'{path}' cannot be the path of a socket"), remedy);
    }
    if !target.connections.connect_to.is_empty() || target.all_addresses {
        return wrong(
            "goes to one socket, whatever addresses there are".to_owned(),
            "leave out --connect-to and --all-addresses",
        );
    }
    Ok(())
}

fn check_tls(target: &Target) -> Result<(), Error> {
    let tls = &target.tls;
    if tls.key.is_some() && tls.cert.is_none() {
        return Err(Error::new("--key", "needs the certificate that it belongs to", "give --cert as well"));
    }
    if let Some(name) = &tls.sni
        && !is_host(name)
    {
        let remedy = "give the name that the server's certificate has";
        return Err(Error::new("--tls-sni", format!("'{name}' is not a host name or address"), remedy));
    }
    let is_plain = |endpoint: &super::Endpoint| endpoint.address().is_ok_and(|a| a.scheme == Scheme::Http);
    let option = [
        ("--cert", tls.cert.is_some()),
        ("--tls-sni", tls.sni.is_some()),
        ("--tls-session-resumption off", !tls.resumption),
    ];
    match option.into_iter().find(|(_, given)| *given) {
        Some((option, _)) if target.endpoints.iter().all(is_plain) => Err(Error::new(
            option,
            "is for TLS, and no server is spoken to by https",
            "give --base-url https://...",
        )),
        _ => Ok(()),
    }
}

/// More than any machine has ports for one destination.
const PREWARM_MAX: u32 = 65_535;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Endpoint, Tls};

    fn to(text: &str, host: &str, port: u16) -> Option<(String, u16)> {
        ConnectTo::parse(text).unwrap().of(host, port).map(|(host, port)| (host.to_owned(), port))
    }

    #[test]
    fn empty_fields_stand_for_any_and_for_the_same() {
        let some = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(to("a:80:b:81", "a", 80), some("b", 81));
        assert_eq!(to("a:80:b:81", "a", 82), None);
        assert_eq!(to("a:80:b:81", "c", 80), None);
        assert_eq!(to("::b:81", "x", 5), some("b", 81));
        assert_eq!(to("A::b:", "a", 5), some("b", 5));
        assert_eq!(to(":443::8443", "h", 443), some("h", 8443));
        assert_eq!(to(":::", "h", 443), some("h", 443));
        assert_eq!(to("[::1]:80:[fe80::2]:81", "::1", 80), some("fe80::2", 81));
    }

    #[test]
    fn what_is_no_four_fields_is_refused() {
        for text in [
            "",
            "a",
            "a:80",
            "a:80:b",
            "a:80:b:81:c",
            "a:0:b:1",
            "a:80:b:x",
            "[::1:80:b:1",
            "a b:80::",
            "[::1]x:80::",
        ] {
            let error = ConnectTo::parse(text).expect_err(text);
            assert_eq!(error.subject, "--connect-to", "{text}");
        }
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let connections = Connections {
            connect_to: vec!["a:80:b:1".to_owned(), "::c:2".to_owned()],
            ..Connections::default()
        };
        assert_eq!(connections.destination("a", 80).unwrap(), ("b".to_owned(), 1));
        assert_eq!(connections.destination("a", 81).unwrap(), ("c".to_owned(), 2));
    }

    #[test]
    fn where_a_connection_really_goes_is_said_where_the_url_does_not() {
        let way = |url: &str, connections: Connections| {
            connections.detour(&Endpoint { url: url.to_owned() }.address().unwrap())
        };
        let to = |text: &str| Connections { connect_to: vec![text.to_owned()], ..Connections::default() };
        let socket = || Connections { unix_socket: Some("/run/s".to_owned()), ..Connections::default() };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(way("http://h:80", to("h:80:10.0.0.7:8443")), some("connecting to 10.0.0.7:8443"));
        assert_eq!(way("http://h:80", to("::[::1]:")), some("connecting to [::1]:80"));
        assert_eq!(way("http://h:80", to("x:80:b:1")), None);
        assert_eq!(way("http://h:80", to("h:80:H:80")), None);
        assert_eq!(way("http://h:80", socket()), some("over unix:/run/s"));
        assert_eq!(way("unix:///run/s", socket()), None);
        assert_eq!(way("unix:///run/s", Connections::default()), None);
        assert_eq!(way("unix:///run/t", socket()), some("over unix:/run/s"));
    }

    #[test]
    fn settings_that_contradict_each_other_are_refused() {
        let wrong = |change: fn(&mut Target)| {
            let endpoints = vec![Endpoint { url: "http://h:80".to_owned() }];
            let mut target = Target { endpoints, ..Target::default() };
            change(&mut target);
            check(&target).expect_err("a contradiction").subject
        };
        assert_eq!(wrong(|t| t.connections.max = Some(0)), "--max-connections");
        assert_eq!(wrong(|t| t.connections.max_age_s = Some(f64::NAN)), "--max-connection-age");
        assert_eq!(wrong(|t| t.connections.max_requests = Some(0)), "--max-requests-per-connection");
        assert_eq!(
            wrong(|t| (t.connections.max, t.connections.prewarm) = (Some(4), 5)),
            "--prewarm-connections"
        );
        assert_eq!(
            wrong(|t| (t.connections.reuse, t.connections.max_age_s) = (Reuse::Never, Some(1.0))),
            "--max-connection-age"
        );
        assert_eq!(wrong(|t| t.connections.unix_socket = Some(String::new())), "--unix-socket");
        assert_eq!(wrong(|t| t.tls.key = Some("k".to_owned())), "--key");
        assert_eq!(wrong(|t| t.tls = Tls { cert: Some("c".to_owned()), ..Tls::default() }), "--cert");
        assert_eq!(wrong(|t| t.tls.sni = Some("a b".to_owned())), "--tls-sni");
        let resumption = "--tls-session-resumption off";
        assert_eq!(wrong(|t| t.tls = Tls { resumption: false, ..Tls::default() }), resumption);
    }
}
