//! Stream sockets, TCP and Unix, that never block: connect, send, receive.
//!
//! The runtime's own reads give no control messages and own a buffer per connection; these calls fill one buffer
//! per shard and leave room for the kernel's receive stamps.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use super::segment::limit_segments;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sockopt};

/// Whom a socket is connected to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// An address and a port.
    Inet(SocketAddr),
    /// A Unix socket at this path.
    Unix(Arc<Path>),
}

impl Peer {
    /// Its address; `None` for a Unix socket.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Peer::Inet(address) => Some(address.ip()),
            Peer::Unix(_) => None,
        }
    }
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Peer {
        Peer::Inet(address)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Peer::Inet(address) => address.fmt(f),
            Peer::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A non-blocking stream socket; closed on drop.
#[derive(Debug)]
pub struct Socket {
    pub(super) fd: OwnedFd,
}

/// What a read gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// This many bytes.
    Bytes(usize),
    /// The peer has ended its side.
    End,
    /// Nothing there yet.
    Nothing,
}

impl Socket {
    /// Starts connecting to `peer`, with Nagle's algorithm off: it would delay the last packet of a handshake.
    ///
    /// # Errors
    /// No descriptor or port left, or the address cannot be reached; a refusal may also come later, from
    /// [`Socket::connected`].
    pub fn connect(peer: &Peer) -> io::Result<Socket> {
        Socket::connect_as(peer, None)
    }

    /// The same with room for about `receive_buffer` bytes that nobody has read yet (the kernel doubles it for its own
    /// use, and has a least size): once they are there, the peer has to stop. Segments are as small as on the way to most
    /// users, since the peer's kernel makes its own buffer by their size: on loopback some megabytes. Both are agreed on
    /// when the connection is opened and cannot be set later.
    ///
    /// # Errors
    /// As [`Socket::connect`].
    pub fn connect_with_room(peer: &Peer, receive_buffer: usize) -> io::Result<Socket> {
        Socket::connect_as(peer, Some(receive_buffer))
    }

    fn connect_as(peer: &Peer, receive_buffer: Option<usize>) -> io::Result<Socket> {
        let address = match peer {
            Peer::Inet(address) => *address,
            Peer::Unix(path) => return Socket::connect_unix(path, receive_buffer),
        };
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&fd, true)?;
        if let Some(bytes) = receive_buffer {
            sockopt::set_socket_recv_buffer_size(&fd, bytes)?;
            limit_segments(&fd, ETHERNET_SEGMENT)?;
        }
        match rustix::net::connect(&fd, &address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(Socket { fd }),
            Err(error) => Err(error.into()),
        }
    }

    /// A Unix socket stands at once or not at all: one whose queue of connections is full says `WouldBlock`.
    fn connect_unix(path: &Path, receive_buffer: Option<usize>) -> io::Result<Socket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        if let Some(bytes) = receive_buffer {
            sockopt::set_socket_recv_buffer_size(&fd, bytes)?;
        }
        rustix::net::connect(&fd, &SocketAddrUnix::new(path)?)?;
        Ok(Socket { fd })
    }

    /// Takes over a socket that somebody else accepted, and makes it non-blocking with Nagle's algorithm off.
    ///
    /// # Errors
    /// The descriptor is not a stream socket.
    pub fn adopt(fd: OwnedFd) -> io::Result<Socket> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        if sockopt::socket_domain(&fd)? != AddressFamily::UNIX {
            sockopt::set_tcp_nodelay(&fd, true)?;
        }
        Ok(Socket { fd })
    }

    /// The result of connecting, once the socket is writable.
    ///
    /// # Errors
    /// Why the connection did not come about.
    pub fn connected(&self) -> io::Result<()> {
        match sockopt::socket_error(&self.fd)? {
            Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Hands bytes to the kernel; 0 if it takes none now.
    ///
    /// # Errors
    /// The connection is broken.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::net::send(&self.fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(sent) => Ok(sent),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what is there into `buffer`.
    ///
    /// # Errors
    /// The connection is broken (reset by the peer, timed out by the kernel).
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Received> {
        self.receive_with(buffer, RecvFlags::DONTWAIT)
    }

    /// Whether an idle connection still stands: no end, no error, and no bytes that nobody asked for.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let mut byte = [0];
        matches!(self.receive_with(&mut byte, RecvFlags::DONTWAIT | RecvFlags::PEEK), Ok(Received::Nothing))
    }

    fn receive_with(&self, buffer: &mut [u8], flags: RecvFlags) -> io::Result<Received> {
        match rustix::net::recv(&self.fd, buffer, flags) {
            Ok((0, _)) => Ok(Received::End),
            Ok((count, _)) => Ok(Received::Bytes(count)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(Received::Nothing),
            Err(error) => Err(error.into()),
        }
    }
}

/// What fits an Ethernet frame of 1500 bytes with the headers of IPv6 and timestamps.
const ETHERNET_SEGMENT: u16 = 1428;

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
