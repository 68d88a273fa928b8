//! Listening sockets, TCP and Unix, that never block, and what becomes of a connection that is accepted.

use core::net::SocketAddr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};

use crate::sys::socket::Socket;

/// A non-blocking listening socket; closed on drop.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    /// The Unix socket's place, which is removed with it.
    path: Option<Box<Path>>,
}

/// How to listen.
#[derive(Clone, Copy, Debug)]
pub struct Listening {
    /// Most connections that the kernel keeps waiting to be accepted; it may lower the number.
    pub backlog: u32,
    /// Let other sockets of this user listen on the same port; the kernel spreads connections over all of them.
    pub shared: bool,
}

/// A port that is ours although nobody listens on it: connections are refused until a [`Listener`] is bound.
#[derive(Debug)]
pub struct Claim {
    fd: OwnedFd,
}

/// What an attempt to accept gave.
#[derive(Debug)]
pub enum Accepted {
    /// A connection, with Nagle's algorithm off.
    Connection(Socket),
    /// Nobody waits.
    Nobody,
    /// Somebody waits, but the process or the system has no descriptor or memory left. The socket stays readable.
    Exhausted,
}

impl Listener {
    /// Listens on `address`; port 0 takes any free one.
    ///
    /// # Errors
    /// The address is in use or not ours, or the port needs a privilege.
    pub fn bind(address: SocketAddr, how: Listening) -> io::Result<Listener> {
        let fd = bound(address, how.shared)?;
        rustix::net::listen(&fd, i32::try_from(how.backlog).unwrap_or(i32::MAX))?;
        Ok(Listener { fd, path: None })
    }

    /// Listens on a Unix socket at `path`. A socket that a server has left behind there, on which nobody listens any more, is
    /// replaced; anything else is left alone.
    ///
    /// # Errors
    /// A sentence that says what is wrong and what to do: the path is too long, something is there, or nothing may be made
    /// there.
    pub fn bind_unix(path: &Path, backlog: u32) -> io::Result<Listener> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let address = unix_address(path)?;
        make_room(path, &address)?;
        rustix::net::bind(&fd, &address).map_err(|errno| {
            let error = io::Error::from(errno);
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => "its folder must exist",
                io::ErrorKind::AddrInUse => "something has just been made there: give another path",
                _ => "give a path in a folder that can be written to",
            };
            io::Error::new(error.kind(), format!("no socket can be made there: {error}; {remedy}"))
        })?;
        rustix::net::listen(&fd, i32::try_from(backlog).unwrap_or(i32::MAX))?;
        Ok(Listener { fd, path: Some(path.into()) })
    }

    /// The address listened on, with the port that port 0 became.
    ///
    /// # Errors
    /// None in practice.
    pub fn address(&self) -> io::Result<SocketAddr> {
        address_of(&self.fd)
    }

    /// Takes one waiting connection.
    ///
    /// # Errors
    /// The socket does not listen. A connection that broke before it was accepted is passed over.
    pub fn accept(&self) -> io::Result<Accepted> {
        loop {
            match rustix::net::accept_with(&self.fd, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                Ok(fd) => return Ok(Accepted::Connection(Socket::adopt(fd)?)),
                Err(Errno::AGAIN) => return Ok(Accepted::Nobody),
                Err(Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM) => {
                    return Ok(Accepted::Exhausted);
                }
                Err(error @ (Errno::BADF | Errno::INVAL | Errno::NOTSOCK)) => return Err(error.into()),
                // Linux passes errors that are pending on the new connection on to accept (accept(2)).
                Err(_) => {}
            }
        }
    }
}

/// The address of `path`, which has to fit into it.
fn unix_address(path: &Path) -> io::Result<SocketAddrUnix> {
    let bytes = path.as_os_str().len();
    let wrong = |wrong: String| io::Error::new(io::ErrorKind::InvalidInput, wrong);
    match bytes {
        0 => Err(wrong("the path is empty; give that of the socket to make".to_owned())),
        // Linux takes one more, which many clients cannot ask for.
        1..=UNIX_PATH_BYTES_MAX => SocketAddrUnix::new(path).map_err(|errno| {
            wrong(format!("it is no path of a socket: {}; give another", io::Error::from(errno)))
        }),
        _ => Err(wrong(format!(
            "the path has {bytes} bytes, and that of a socket has at most {UNIX_PATH_BYTES_MAX}; give a shorter one, as in /tmp"
        ))),
    }
}

/// Takes away a socket at `path` on which nobody listens; refuses whatever else is there.
fn make_room(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let there = match std::fs::symlink_metadata(path) {
        Ok(there) => there,
        // Nothing is there, or what keeps us from seeing it is said when the socket is made.
        Err(_) => return Ok(()),
    };
    if !there.file_type().is_socket() {
        let what = if there.is_dir() { "a folder" } else { "a file that is no socket" };
        let wrong = format!("{what} is there already; give another path, or move it away");
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, wrong));
    }
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let asking = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&asking, address) {
        // Nobody listens: its server has ended without taking it away.
        Err(Errno::CONNREFUSED) => std::fs::remove_file(path).map_err(|error| {
            let wrong = format!(
                "a socket that nobody listens on is there, and cannot be removed: {error}; remove it"
            );
            io::Error::new(error.kind(), wrong)
        }),
        // It has gone meanwhile.
        Err(Errno::NOENT) => Ok(()),
        // Connected, or there is somebody who has no room for us, or whom we may not ask.
        _ => {
            let wrong = "a server listens there already; end it, or give another path";
            Err(io::Error::new(io::ErrorKind::AddrInUse, wrong))
        }
    }
}

/// What `sockaddr_un` has room for, without the byte that ends it.
pub const UNIX_PATH_BYTES_MAX: usize = 107;

impl Claim {
    /// Claims `address`; port 0 takes any free one. To be made before the listeners on it.
    ///
    /// # Errors
    /// Somebody listens on the address or it is not ours, or the port needs a privilege.
    pub fn on(address: SocketAddr) -> io::Result<Claim> {
        Ok(Claim { fd: bound(address, false)? })
    }

    /// The address claimed, with the port that port 0 became.
    ///
    /// # Errors
    /// None in practice.
    pub fn address(&self) -> io::Result<SocketAddr> {
        address_of(&self.fd)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Whoever has removed it already has done no harm.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn bound(address: SocketAddr, shared: bool) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    // Connections of an earlier process in TIME_WAIT must not keep its successor from the port, and a claim its own
    // listeners.
    sockopt::set_socket_reuseaddr(&fd, true)?;
    if shared {
        sockopt::set_socket_reuseport(&fd, true)?;
    }
    rustix::net::bind(&fd, &address)?;
    Ok(fd)
}

fn address_of(fd: &OwnedFd) -> io::Result<SocketAddr> {
    Ok(SocketAddr::try_from(rustix::net::getsockname(fd)?)?)
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Socket {
    /// Ends our side: the peer reads everything sent so far and then the end.
    ///
    /// # Errors
    /// The connection is broken already.
    pub fn end_sending(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Write)?)
    }

    /// Closes the connection so that the peer sees a reset (RST) at once instead of an end.
    pub fn reset(self) {
        // Lingering for zero seconds makes close discard what is unsent and reset. Where it is refused, the
        // connection is broken and the peer sees that anyway.
        let _ = sockopt::set_socket_linger(&self.fd, Some(std::time::Duration::ZERO));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::socket::Received;

    const HOW: Listening = Listening { backlog: 16, shared: false };

    #[test]
    fn a_waiting_connection_is_accepted_once() {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), HOW).unwrap();
        assert!(matches!(listener.accept().unwrap(), Accepted::Nobody));
        let client = Socket::connect(&listener.address().unwrap().into()).unwrap();
        let Accepted::Connection(server) = listener.accept().unwrap() else { panic!("nobody there") };
        assert!(matches!(listener.accept().unwrap(), Accepted::Nobody));
        server.end_sending().unwrap();
        assert_eq!(client.receive(&mut [0; 8]).unwrap(), Received::End);
    }

    #[test]
    fn a_reset_is_an_error_to_the_peer_and_not_an_end() {
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), HOW).unwrap();
        let client = Socket::connect(&listener.address().unwrap().into()).unwrap();
        let Accepted::Connection(server) = listener.accept().unwrap() else { panic!("nobody there") };
        server.reset();
        let error = client.receive(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn only_a_socket_that_nobody_listens_on_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sock");
        let said = |path: &Path| Listener::bind_unix(path, 4).unwrap_err();
        // Left behind: the descriptor is closed, the file stays.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let listener = Listener::bind_unix(&path, 4).unwrap();
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok());
        let error = said(&path);
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(error.to_string().contains("listens there already"), "{error}");
        assert!(std::os::unix::net::UnixStream::connect(&path).is_ok(), "the first goes on");
        drop(listener);
        assert!(!path.exists());
        for (made, what) in [(true, "a file that is no socket"), (false, "a folder")] {
            let place = folder.path().join(if made { "file" } else { "folder" });
            if made {
                std::fs::write(&place, "kept").unwrap()
            } else {
                std::fs::create_dir(&place).unwrap()
            }
            let error = said(&place);
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            assert!(error.to_string().contains(what), "{error}");
        }
        assert_eq!(std::fs::read_to_string(folder.path().join("file")).unwrap(), "kept");
        assert!(said(&folder.path().join("none/s")).to_string().contains("its folder must exist"));
        let long = folder.path().join("x".repeat(108 - folder.path().as_os_str().len() - 1));
        assert_eq!(long.as_os_str().len(), 108);
        assert!(said(&long).to_string().contains("has 108 bytes, and that of a socket has at most 107"));
        assert!(said(Path::new("")).to_string().contains("empty"));
    }

    #[test]
    fn a_port_is_shared_only_on_wish() {
        let shared = Listening { shared: true, ..HOW };
        let first = Listener::bind(([127, 0, 0, 1], 0).into(), shared).unwrap();
        let address = first.address().unwrap();
        assert_eq!(Listener::bind(address, HOW).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert!(Listener::bind(address, shared).is_ok());
    }

    #[test]
    fn a_claimed_port_refuses_until_it_is_listened_on_and_again_afterwards() {
        let claim = Claim::on(([127, 0, 0, 1], 0).into()).unwrap();
        let address = claim.address().unwrap();
        let refused = || std::net::TcpStream::connect(address).unwrap_err().kind();
        assert_eq!(refused(), io::ErrorKind::ConnectionRefused);
        for shared in [false, true, false] {
            let listener = Listener::bind(address, Listening { shared, ..HOW }).unwrap();
            assert!(std::net::TcpStream::connect(address).is_ok());
            assert_eq!(Claim::on(address).unwrap_err().kind(), io::ErrorKind::AddrInUse);
            drop(listener);
            assert_eq!(refused(), io::ErrorKind::ConnectionRefused);
        }
    }
}
