//! Reads with the kernel's receive stamp: `recvmsg` and `SO_TIMESTAMPING`.
//!
//! The kernel stamps a packet when it takes it in, before any process wakes. A read gives the stamp of the last byte
//! that it returns; the stamps of earlier bytes are lost, because the kernel joins packets in the receive queue.
#![expect(
    unsafe_code,
    reason = "control messages of this kind have no safe wrapper in the crates that we use"
)]

use core::net::{Ipv4Addr, SocketAddr};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketFlags, SocketType};

use super::socket::{Received, Socket};

/// Wall-clock time at which the kernel took in the last byte of a read, ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallStamp(pub u64);

/// Keeps receive stamps switched on.
///
/// The switch is one for the whole machine and is off while no socket asks for stamps, and turning it on takes the
/// kernel a moment, in which packets go unstamped. So one socket that never receives anything asks for the whole run.
#[derive(Debug)]
pub struct Stamping {
    _switch: OwnedFd,
}

impl Stamping {
    /// Switches stamps on and sees to it that they come: a packet that we send to ourselves must have one within
    /// 50 ms.
    ///
    /// # Errors
    /// The kernel, or the container that we are in, refuses, or takes the wish and stamps nothing.
    pub fn enable() -> io::Result<Stamping> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let switch = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        ask_for_stamps(&switch)?;
        let socket = Socket { fd: switch };
        // Without a loopback interface there is nothing to try it on, and the first reads will tell.
        if talk_to_self(&socket).is_ok() && !(0..TRIES).any(|_| is_stamped(&socket)) {
            return Err(io::Error::other("it takes the wish for them and gives none"));
        }
        Ok(Stamping { _switch: socket.fd })
    }
}

/// How long the kernel may take to switch stamps on: less than 1 ms was seen.
const PATIENCE: Duration = Duration::from_millis(50);
const TRIES: u32 = 50;

fn talk_to_self(socket: &Socket) -> io::Result<()> {
    let any_port = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    rustix::net::bind(&socket.fd, &any_port)?;
    let own = rustix::net::getsockname(&socket.fd)?;
    Ok(rustix::net::connect(&socket.fd, &own)?)
}

/// Whether a packet from the socket to itself comes with a stamp; waits a part of [`PATIENCE`] if not.
fn is_stamped(socket: &Socket) -> bool {
    let sent = socket.send(b"?").is_ok();
    let stamped = sent && matches!(socket.receive_stamped(&mut [0; 8]), Ok((_, Some(_))));
    if !stamped {
        std::thread::sleep(PATIENCE / TRIES);
    }
    stamped
}

impl Socket {
    /// Asks for a receive stamp with each read, see [`Socket::receive_stamped`]. The first bytes after it may lack
    /// one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn stamp_reads(&self) -> io::Result<()> {
        ask_for_stamps(&self.fd)
    }

    /// As [`Socket::receive`], with the kernel's stamp of the last byte where there is one.
    ///
    /// # Errors
    /// The connection is broken (reset by the peer, timed out by the kernel).
    #[inline]
    pub fn receive_stamped(&self, buffer: &mut [u8]) -> io::Result<(Received, Option<WallStamp>)> {
        let mut control = Control([0; CONTROL_BYTES]);
        let mut slice = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: an all-zero `msghdr` is valid: null pointers with lengths of zero.
        let mut message: libc::msghdr = unsafe { mem::zeroed() };
        message.msg_iov = &raw mut slice;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        // SAFETY: `message` points to `slice` and `control`, and `slice` to `buffer`; all of them outlive the call,
        // and the lengths given are theirs.
        let count = unsafe {
            // Not by the library's function: in a process with threads that is a point of cancellation, which costs two
            // atomic exchanges a call, a hundredth of an event.
            libc::syscall(libc::SYS_recvmsg, self.fd.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT)
        };
        match usize::try_from(count) {
            Ok(0) => Ok((Received::End, None)),
            Ok(count) => Ok((Received::Bytes(count), stamp_of(&message))),
            Err(_) => {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok((Received::Nothing, None)),
                    _ => Err(error),
                }
            }
        }
    }
}

/// Three `timespec` and a header, with room to spare for what else a kernel may send along.
const CONTROL_BYTES: usize = 128;

/// Memory for control messages, aligned as their headers must be.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

const _: () = assert!(align_of::<Control>() >= align_of::<libc::cmsghdr>());

fn ask_for_stamps(socket: &OwnedFd) -> io::Result<()> {
    let wanted: libc::c_uint = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
    // SAFETY: the option takes an unsigned int; pointer and length are those of one that outlives the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPING,
            (&raw const wanted).cast(),
            size_of_val(&wanted) as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The software stamp among the control messages of a received message.
fn stamp_of(message: &libc::msghdr) -> Option<WallStamp> {
    // SAFETY: the kernel has filled the control buffer of `message`, which is alive, and has set its length; the
    // CMSG functions keep within that.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(message) };
    while !header.is_null() {
        // SAFETY: a header that the CMSG functions give is whole and lies in the control buffer.
        let one = unsafe { &*header };
        let holds_stamps = one.cmsg_len as usize >= size_of::<libc::cmsghdr>() + size_of::<libc::timespec>();
        if one.cmsg_level == libc::SOL_SOCKET && one.cmsg_type == libc::SCM_TIMESTAMPING && holds_stamps {
            // SAFETY: the message holds at least one `timespec`, by its length; reading it unaligned asks for nothing
            // more. The first of three is the software stamp.
            let at: libc::timespec =
                unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
            return wall_stamp(at);
        }
        // SAFETY: as above.
        header = unsafe { libc::CMSG_NXTHDR(message, header) };
    }
    None
}

/// Zero means that there is none: only hardware stamps, or none at all.
fn wall_stamp(at: libc::timespec) -> Option<WallStamp> {
    let seconds = u64::try_from(at.tv_sec).ok().filter(|s| *s > 0)?;
    let nanos = u64::try_from(at.tv_nsec).ok()?;
    Some(WallStamp(seconds.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::sys::clock::RunClock;

    fn pair() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (Socket::adopt(ours.into()).unwrap(), listener.accept().unwrap().0)
    }

    /// Reads until something has come.
    fn read(socket: &Socket) -> (Received, Option<WallStamp>) {
        let mut buffer = [0; 64];
        loop {
            let read = socket.receive_stamped(&mut buffer).unwrap();
            if read.0 != Received::Nothing {
                return read;
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_stamp_lies_between_the_send_and_the_read() {
        let Ok(_stamping) = Stamping::enable() else { return };
        let clock = RunClock::start();
        let (socket, mut peer) = pair();
        socket.stamp_reads().unwrap();
        peer.write_all(b"first, which may lack a stamp").unwrap();
        read(&socket);
        for _ in 0..50 {
            let (offset, before) = (clock.wall_offset(), clock.now());
            peer.write_all(b"data").unwrap();
            let (received, at) = read(&socket);
            let after = clock.now();
            assert_eq!(received, Received::Bytes(4));
            // A kernel without stamps (some sandboxes take the option and do nothing) has none to be wrong.
            let Some(at) = at else { continue };
            let at = offset.stamp(at);
            let slack = std::time::Duration::from_nanos(2 * offset.error_ns + 1_000);
            assert!(before - slack <= at && at <= after + slack, "{before} {at} {after}");
        }
    }

    #[test]
    fn without_asking_there_is_no_stamp() {
        let (socket, mut peer) = pair();
        peer.write_all(b"data").unwrap();
        assert_eq!(read(&socket), (Received::Bytes(4), None));
        drop(peer);
        assert_eq!(read(&socket), (Received::End, None));
    }

    #[test]
    fn a_zero_stamp_is_none() {
        let at = |tv_sec, tv_nsec| wall_stamp(libc::timespec { tv_sec, tv_nsec });
        assert_eq!(at(0, 0), None);
        assert_eq!(at(-1, 0), None);
        assert_eq!(at(1, 5), Some(WallStamp(1_000_000_005)));
    }
}
