//! What the kernel knows of a connection: round-trip time and retransmissions.
#![expect(unsafe_code, reason = "this option has no safe wrapper in the crates that we use")]

use std::mem;
use std::os::fd::AsRawFd;

use super::socket::Socket;

/// The kernel's view of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time, ns; the kernel counts microseconds.
    pub rtt_ns: u64,
    /// Segments sent again since the connection stands.
    pub retransmits: u64,
}

impl Socket {
    /// What the kernel knows of this connection; `None` where it does not tell.
    #[must_use]
    pub fn tcp_info(&self) -> Option<TcpInfo> {
        // SAFETY: all-zero bytes are a valid `tcp_info`: it holds numbers only.
        let mut info: libc::tcp_info = unsafe { mem::zeroed() };
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: pointer and length are those of `info`, which outlives the call; the kernel writes no more than that.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut length,
            )
        };
        (result == 0).then(|| TcpInfo {
            rtt_ns: u64::from(info.tcpi_rtt) * 1000,
            retransmits: u64::from(info.tcpi_total_retrans),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_connection_has_a_round_trip_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let info = Socket::adopt(ours.into()).unwrap().tcp_info().unwrap();
        // A handshake over loopback takes some microseconds, never a second.
        assert!(info.rtt_ns > 0 && info.rtt_ns < 1_000_000_000, "{info:?}");
    }
}
