//! The largest segment that a connection takes: loopback and jumbo frames make it so large that buffers of megabytes
//! stand between a reader and a writer.
#![expect(unsafe_code, reason = "this option has no safe wrapper in the crates that we use")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Has the peer of `socket`, which is not connected yet, send segments of at most `bytes`.
///
/// # Errors
/// The system refuses the number: it takes 88 to 32767.
pub(super) fn limit_segments(socket: impl AsFd, bytes: u16) -> io::Result<()> {
    let value = libc::c_int::from(bytes);
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: `value` is an initialised int that lives until the call returns, `length` is its size, and the kernel only
    // reads it; the descriptor is open for as long as `socket` is borrowed.
    let done = unsafe {
        libc::setsockopt(fd, libc::IPPROTO_TCP, libc::TCP_MAXSEG, (&raw const value).cast(), length)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use crate::sys::socket::Socket;

    /// The bytes that a server can write until it has to stop, to a client that reads nothing.
    fn room(connect: impl Fn(std::net::SocketAddr) -> Socket) -> usize {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let _client = connect(listener.local_addr().unwrap());
        let (mut server, _) = listener.accept().unwrap();
        server.set_nonblocking(true).unwrap();
        let mut written = 0;
        while let Ok(count) = server.write(&[0; 4096]) {
            written += count;
        }
        written
    }

    #[test]
    fn a_small_window_stops_a_writer_early() {
        let usual = room(|address| Socket::connect(&address.into()).unwrap());
        let small = room(|address| Socket::connect_with_room(&address.into(), 4096).unwrap());
        assert!(small < 256 << 10 && small * 4 < usual, "{small} bytes of {usual}");
    }
}
