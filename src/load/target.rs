//! The endpoints of a run, resolved: addresses, TLS, and everything of a request that does not change.

use core::net::SocketAddr;
use std::fmt;
use std::io;
use std::net::UdpSocket;
use std::sync::Arc;

use rustls::pki_types::ServerName;

use crate::api::request::Template;
use crate::api::request::Texts;
use crate::api::talk::History;
use crate::api::{Filling, Text};
use crate::plan::{self, Address, Connections, Level, Reuse, Scheme};
use crate::sys::socket::Peer;
use crate::wire::http::{EncodeError, RequestHead};
use crate::workload::trace::Entry;
use crate::workload::{Content, Item, Mix, Routing};

mod resolve;

use resolve::peers;

/// Where requests go and what they say.
#[derive(Debug)]
pub struct Target {
    /// One per endpoint of the plan, in its order; never empty.
    pub routes: Vec<Route>,
    /// One body template per model of the plan, in its order; never empty.
    pub templates: Vec<Template>,
    /// Which of them a request is made of.
    pub mix: Mix,
    /// Which endpoint a request goes to.
    pub routing: Routing,
    /// Prompts and lengths of answers.
    pub content: Content,
}

/// One endpoint.
#[derive(Clone)]
pub struct Route {
    /// Its addresses, tried in this order; empty only for a route that leads nowhere.
    pub addresses: Vec<Peer>,
    /// TLS, for `https`.
    pub tls: Option<TlsRoute>,
    /// Value of the `Host` field.
    authority: String,
    /// Headers of every request, secret ones among them.
    headers: Vec<(String, String)>,
    /// The head of a request up to and including `Content-Length: `.
    head: Vec<u8>,
    /// Headers that differ by request.
    filled: Vec<(String, Text)>,
}

/// TLS settings of an endpoint.
#[derive(Clone, Debug)]
pub struct TlsRoute {
    /// Shared by all connections: it holds the sessions to resume.
    pub config: Arc<rustls::ClientConfig>,
    /// The name to ask for and to verify.
    pub name: ServerName<'static>,
}

/// What a route is made of.
#[derive(Clone)]
#[expect(missing_debug_implementations, reason = "its headers hold secrets")]
pub struct RouteParts<'a> {
    /// The endpoint.
    pub address: &'a Address,
    /// Path of the measured requests, with the endpoint's prefix.
    pub path: String,
    /// Headers of every request, secret ones among them.
    pub headers: Vec<(String, String)>,
    /// TLS configuration, used for `https`.
    pub tls: Arc<rustls::ClientConfig>,
}

/// How an endpoint is reached where that is not as its URL says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Way<'a> {
    /// Other addresses, a Unix socket, a connection for each request; absent: as the URL says.
    pub connections: Option<&'a Connections>,
    /// The name to ask for and to verify in place of the URL's.
    pub sni: Option<&'a str>,
}

/// Why an endpoint cannot be used.
#[derive(Debug)]
pub enum RouteError {
    /// A header or the path cannot be sent.
    Head(EncodeError),
    /// The name has no address.
    Resolve(io::Error),
    /// The host is no name that TLS can verify.
    ServerName,
    /// A rule for where to connect is none.
    ConnectTo(plan::Error),
}

impl Route {
    /// Resolves an endpoint: all addresses of both families, in the system's order.
    ///
    /// # Errors
    /// [`RouteError`].
    pub fn new(parts: RouteParts<'_>) -> Result<Route, RouteError> {
        Route::along(parts, Way::default())
    }

    /// The same on another way.
    ///
    /// # Errors
    /// [`RouteError`].
    pub fn along(parts: RouteParts<'_>, way: Way<'_>) -> Result<Route, RouteError> {
        let RouteParts { address, path, mut headers, tls } = parts;
        if way.connections.is_some_and(|settings| settings.reuse == Reuse::Never) {
            headers.push(("Connection".to_owned(), "close".to_owned()));
        }
        let tls = match address.scheme {
            Scheme::Http => None,
            Scheme::Https => {
                let name = way.sni.unwrap_or(&address.host).to_owned();
                let name = ServerName::try_from(name).map_err(|_| RouteError::ServerName)?;
                Some(TlsRoute { config: tls, name })
            }
        };
        let route = Route::nowhere(&address.authority(), &path, headers)?;
        let addresses = peers(address, way.connections)?;
        Ok(Route { addresses, tls, ..route })
    }

    /// A route that leads nowhere, for an engine that opens no connection: the requests are written all the same.
    ///
    /// # Errors
    /// A header or the path cannot be sent.
    pub fn nowhere(authority: &str, path: &str, headers: Vec<(String, String)>) -> Result<Route, RouteError> {
        let mut head = encode(("POST", path), authority, &headers, None)?;
        // The encoder's head ends with a blank line; the length of the body and that line come with each body.
        head.truncate(head.len() - 2);
        head.extend_from_slice(b"Content-Length: ");
        Ok(Route {
            addresses: Vec::new(),
            tls: None,
            authority: authority.to_owned(),
            headers,
            head,
            filled: Vec::new(),
        })
    }

    /// The same with further headers, whose placeholders are filled for each request.
    ///
    /// # Errors
    /// A header cannot be sent.
    pub fn with_filled(self, filled: Vec<(String, Text)>) -> Result<Route, RouteError> {
        let route = Route { filled, ..self };
        // Whatever request they are filled for: what is drawn is text of the user's own, which is the same to look at.
        encode(("GET", "/"), &route.authority, &route.all_headers(), None)?;
        Ok(route)
    }

    /// All headers, those that differ by request as of a request without a number.
    fn all_headers(&self) -> Vec<(String, String)> {
        let filled = self.filled.iter().map(|(name, text)| {
            let mut value = Vec::new();
            text.write(&mut value, &Filling::default());
            (name.clone(), String::from_utf8_lossy(&value).into_owned())
        });
        self.headers.iter().cloned().chain(filled).collect()
    }

    /// Whether it leads to this machine: to a loopback address, or to one that we would ourselves speak from. Nothing
    /// is sent to find out.
    #[must_use]
    pub fn is_on_this_host(&self) -> bool {
        let own = |to: SocketAddr| {
            let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            // Connecting a datagram socket only makes the kernel choose where it would send from.
            let from =
                UdpSocket::bind(any).and_then(|socket| socket.connect(to).and_then(|()| socket.local_addr()));
            from.is_ok_and(|from| from.ip() == to.ip())
        };
        self.addresses.iter().any(|peer| match peer {
            Peer::Inet(address) => address.ip().is_loopback() || own(*address),
            Peer::Unix(_) => true,
        })
    }

    /// The head of a GET request for `path`.
    ///
    /// # Errors
    /// The path cannot be sent.
    pub fn get(&self, path: &str) -> Result<Vec<u8>, RouteError> {
        encode(("GET", path), &self.authority, &self.all_headers(), None)
    }

    /// A whole POST request for `path` with an empty body.
    ///
    /// # Errors
    /// The path cannot be sent.
    pub fn post_nothing(&self, path: &str) -> Result<Vec<u8>, RouteError> {
        encode(("POST", path), &self.authority, &self.all_headers(), Some(0))
    }

    /// A whole POST request for `path` with `body`.
    ///
    /// # Errors
    /// The path cannot be sent.
    pub fn post_to(&self, path: &str, body: &[u8]) -> Result<Vec<u8>, RouteError> {
        let mut request = encode(("POST", path), &self.authority, &self.all_headers(), Some(body.len()))?;
        request.extend_from_slice(body);
        Ok(request)
    }

    /// Writes a POST request with `body` into `out`; `of` is what its headers are filled by.
    pub fn post(&self, body: &[u8], of: &Filling, out: &mut Vec<u8>) {
        self.post_with((None, 0), body, of, out);
    }

    /// The same with one more header, whose name and value are taken as checked, and with at least `room` bytes up to the
    /// length of the body, which the head fills from their end.
    fn post_with(&self, more: (Option<(&str, String)>, usize), body: &[u8], of: &Filling, out: &mut Vec<u8>) {
        let (header, room) = more;
        out.clear();
        out.resize(room.saturating_sub(self.head.len()), b' ');
        out.extend_from_slice(&self.head);
        out.extend_from_slice(body.len().to_string().as_bytes());
        if let Some((name, value)) = header {
            for part in ["\r\n", name, ": ", &value] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        for (name, text) in &self.filled {
            for piece in ["\r\n", name, ": "] {
                out.extend_from_slice(piece.as_bytes());
            }
            text.write(out, of);
        }
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(body);
    }
}

impl fmt::Debug for Route {
    /// Heads and headers hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("addresses", &self.addresses)
            .field("tls", &self.tls)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for RouteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RouteError::Head(error) => write!(f, "the request cannot be sent: {error}"),
            RouteError::Resolve(error) => write!(f, "the name cannot be resolved: {error}"),
            RouteError::ServerName => f.write_str("the host is no name that a certificate can carry"),
            RouteError::ConnectTo(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RouteError {}

/// The head of a request for (method, path).
fn encode(
    what: (&str, &str),
    host: &str,
    headers: &[(String, String)],
    body_bytes: Option<usize>,
) -> Result<Vec<u8>, RouteError> {
    let (method, path) = what;
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut head = Vec::new();
    let request = RequestHead { method, path, host, headers: &headers, body_bytes };
    request.encode(&mut head).map_err(RouteError::Head)?;
    Ok(head)
}

/// Memory for writing requests, one per shard.
#[derive(Debug, Default)]
pub struct Desk {
    prompt: String,
    system: String,
    body: Vec<u8>,
}

impl Desk {
    /// The body that was written last.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body
    }
}

impl Target {
    /// The same with what `level`, the run's at place `ordinal`, has of its own; itself where that is nothing.
    #[must_use]
    pub fn of_level(self: &Arc<Target>, level: &Level, ordinal: usize) -> Arc<Target> {
        if !self.content.differs_in(level) && !self.routing.is_by_user() {
            return Arc::clone(self);
        }
        Arc::new(Target {
            routes: self.routes.clone(),
            templates: self.templates.clone(),
            mix: self.mix.clone(),
            routing: self.routing.of_level(level),
            content: self.content.clone().of_level(level, ordinal),
        })
    }

    /// The endpoint that the session of `item` goes to, with all of its turns; `None` where it is chosen for each request
    /// when it is sent.
    #[must_use]
    pub fn route_of(&self, item: Item) -> Option<usize> {
        self.routing.of(item).map(|route| route.min(self.routes.len() - 1))
    }

    /// The model that `item` asks for. Those that come in turn do so after each round of the endpoints, so that every
    /// endpoint gets every model.
    #[must_use]
    pub fn model_of(&self, item: Item) -> usize {
        self.mix.model(item.seed, self.routing.turn_of(item))
    }

    /// Makes a written request one to endpoint `route`, of whichever it was; returns where it begins in `request`.
    #[must_use]
    pub fn direct(&self, route: usize, request: &mut [u8]) -> usize {
        if self.routing.is_fixed() {
            return 0;
        }
        let (head, end) = (&self.routes[route].head, self.head_room());
        let begin = end - head.len();
        if let Some(room) = request.get_mut(begin..end) {
            room.copy_from_slice(head);
        }
        begin
    }

    /// Bytes of the longest head, up to the length of the body.
    fn head_room(&self) -> usize {
        self.routes.iter().map(|route| route.head.len()).max().unwrap_or(0)
    }

    /// Writes the request of `item`, head and body, into `out`; the same bytes for the same item, whoever writes them.
    pub fn write_request(&self, item: Item, desk: &mut Desk, out: &mut Vec<u8>) {
        self.write_prompt(item, desk);
        self.write_body(item, desk);
        self.write_post(item, desk, out);
    }

    /// The first of the three steps of [`Target::write_request`], for whoever has something else to do in between: a prompt
    /// of 128 000 words takes about half a millisecond in each.
    pub fn write_prompt(&self, item: Item, desk: &mut Desk) {
        desk.prompt.clear();
        self.content.write_prompt(&mut desk.prompt, item);
    }

    /// The second: the body around the prompt on the desk.
    pub fn write_body(&self, item: Item, desk: &mut Desk) {
        desk.system.clear();
        self.content.write_system(&mut desk.system, item);
        desk.body.clear();
        let limit = self.content.output_tokens(item);
        let texts = Texts { system: &desk.system, prompt: &desk.prompt };
        self.templates[self.model_of(item)].write(&mut desk.body, texts, limit, &item.filling());
    }

    /// Writes a later turn of the session that begins with `item`: what was said, in which templates, and how long an
    /// answer it asks for.
    pub fn write_turn(
        &self,
        item: Item,
        (said, templates, max_tokens): (&History, (&Template, Option<&Template>), u32),
        desk: &mut Desk,
        out: &mut Vec<u8>,
    ) {
        desk.system.clear();
        self.content.write_system(&mut desk.system, item);
        desk.body.clear();
        said.write(&mut desk.body, templates, max_tokens, (&desk.system, &item.filling()));
        self.write_post(item, desk, out);
    }

    /// The last: the request around the body on the desk. Where the endpoint is chosen when it is sent, [`Target::direct`]
    /// has the last word.
    pub fn write_post(&self, item: Item, desk: &Desk, out: &mut Vec<u8>) {
        let header = self.content.session_header(item);
        let (route, room) = self.route_of(item).map_or_else(|| (0, self.head_room()), |route| (route, 0));
        self.routes[route].post_with((header, room), &desk.body, &item.filling(), out);
    }

    /// The same for a request of a trace. Returns the longest answer that it asks for, tokens.
    pub fn write_recorded(&self, of: (Item, &Entry), desk: &mut Desk, out: &mut Vec<u8>) -> u32 {
        let item = of.0;
        desk.body.clear();
        let template = &self.templates[self.model_of(item)];
        let max_tokens = self.content.write_recorded(&mut desk.body, template, of, &mut desk.prompt);
        self.write_post(item, desk, out);
        max_tokens
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_request_is_directed_to_any_endpoint_without_moving_its_body() {
        let mut plan = crate::plan::Plan::new(1);
        plan.target.url_strategy = crate::plan::UrlStrategy::LeastOutstanding;
        let route = |host: &str, path: &str| {
            Route::nowhere(host, path, vec![("X-Of".to_owned(), host.to_owned())]).expect("a plain head")
        };
        let routes =
            vec![route("a", "/v1/x"), route("much-longer.example:8000", "/prefix/v1/x"), route("bb", "/")];
        let template = Template::new(plan.target.dialect, "m", true, &plan.workload.body_options());
        let (mix, content) = (Mix::equal(1), Content::new(&plan));
        let routing = Routing::new(&plan.target);
        let target = Target { routes, templates: vec![template], mix, routing, content };
        let item = Item { seed: 1, phase: crate::metrics::Phase::Measured, index: 7 };
        let (mut desk, mut bytes, mut plain) = (Desk::default(), Vec::new(), Vec::new());
        target.write_request(item, &mut desk, &mut bytes);
        for place in [2, 0, 1, 0] {
            let begin = target.direct(place, &mut bytes);
            target.routes[place].post_with(
                (target.content.session_header(item), 0),
                desk.body(),
                &item.filling(),
                &mut plain,
            );
            assert_eq!(bytes[begin..], plain, "endpoint {place}");
        }
    }

    #[test]
    fn a_route_goes_along_its_way() {
        let address = crate::plan::Endpoint::parse("https://name.invalid:8443/v1").unwrap();
        let of = |settings: &Connections, sni: Option<&str>| {
            let tls = crate::load::tls::config(&crate::load::tls::Trust::anyone()).unwrap();
            let parts = RouteParts { address: &address, path: "/x".to_owned(), headers: Vec::new(), tls };
            Route::along(parts, Way { connections: Some(settings), sni }).unwrap()
        };
        let to = Connections {
            connect_to: vec!["name.invalid:8443:127.0.0.2:".to_owned()],
            ..Connections::default()
        };
        let route = of(&to, Some("other.example"));
        assert_eq!(route.addresses, [Peer::Inet("127.0.0.2:8443".parse().unwrap())]);
        assert_eq!(route.authority, "name.invalid:8443");
        assert_eq!(route.tls.unwrap().name, ServerName::try_from("other.example").unwrap());
        let unix = Connections { unix_socket: Some("/run/x".to_owned()), ..Connections::default() };
        assert_eq!(of(&unix, None).addresses, [Peer::Unix(Path::new("/run/x").into())]);
        let never = Connections { reuse: Reuse::Never, ..unix };
        let (mut bytes, filling) = (Vec::new(), Filling::default());
        of(&never, None).post(b"{}", &filling, &mut bytes);
        assert!(String::from_utf8(bytes).unwrap().contains("\r\nConnection: close\r\n"));
    }

    #[test]
    fn this_machine_is_known_by_its_addresses() {
        let to = |addresses: &[&str]| {
            let mut route = Route::nowhere("h", "/", Vec::new()).expect("a plain head");
            route.addresses =
                addresses.iter().map(|text| Peer::Inet(text.parse().expect("an address"))).collect();
            route.is_on_this_host()
        };
        assert!(to(&["127.0.0.1:80"]) && to(&["192.0.2.1:80", "[::1]:80"]));
        // An address of documentation (RFC 5737), and a route that leads nowhere.
        assert!(!to(&["192.0.2.1:80"]) && !to(&[]));
    }
}
