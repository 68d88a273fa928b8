//! From an endpoint to the addresses that its connections are opened to.

use core::net::SocketAddr;
use std::io;
use std::net::ToSocketAddrs as _;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use super::RouteError;
use crate::plan::{Address, Connections};
use crate::sys::socket::Peer;

/// How long a name may take to be resolved.
const RESOLVE_LIMIT: Duration = Duration::from_secs(10);

/// Whom connections for `address` are opened to.
pub(super) fn peers(address: &Address, settings: Option<&Connections>) -> Result<Vec<Peer>, RouteError> {
    let socket = settings.and_then(|settings| settings.unix_socket.as_deref()).or(address.unix.as_deref());
    if let Some(path) = socket {
        return Ok(vec![Peer::Unix(Path::new(path).into())]);
    }
    let destination = settings.map(|settings| settings.destination(&address.host, address.port));
    let (host, port) = destination
        .transpose()
        .map_err(RouteError::ConnectTo)?
        .unwrap_or_else(|| (address.host.clone(), address.port));
    let addresses = resolve(&host, port).map_err(RouteError::Resolve)?;
    Ok(addresses.into_iter().map(Peer::Inet).collect())
}

/// The system's resolver blocks and may take minutes; it gets a thread of its own and a limit.
fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let (to, from) = channel();
    let name = host.to_owned();
    std::thread::Builder::new().name("resolve".to_owned()).spawn(move || {
        let found = (name.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        // The asker may have given up.
        let _ = to.send(found);
    })?;
    let addresses = match from.recv_timeout(RESOLVE_LIMIT) {
        Ok(found) => found?,
        Err(_) => return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer within 10 s")),
    };
    if addresses.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
    }
    Ok(addresses)
}
