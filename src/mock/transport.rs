//! The bytes of one connection between socket and server, with or without TLS.
//!
//! What the kernel does not take at once is kept and sent when there is room. The queue is bounded by the length of
//! the answer: a client that does not read stops at nobody's cost but memory.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use rustls::{HandshakeKind, ServerConfig, ServerConnection};

use super::request::Inbox;
use crate::sys::socket::{Received, Socket};
use crate::time::Stamp;

/// One connection's way of sending and receiving.
#[derive(Debug)]
pub(super) struct Transport {
    socket: Socket,
    tls: Option<Box<ServerConnection>>,
    /// Bytes for the socket that it has not taken.
    waiting: Vec<u8>,
    /// Those before this have been taken.
    taken: usize,
    /// Bytes that the socket has taken.
    pub(super) sent_bytes: u64,
    /// Sends of which it did not take everything.
    pub(super) partial_sends: u64,
    hold: Hold,
    /// The handshake is through, and was told of.
    is_told: bool,
}

/// The server's part of a TLS handshake, which may be held back.
#[derive(Debug)]
enum Hold {
    /// The first answer is to be held back for so long.
    For(Duration),
    /// These records are held back until then.
    Until(Stamp, Vec<u8>),
    /// Nothing is held back any more.
    Over,
}

/// What receiving gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Intake {
    /// Bytes, or nothing for now.
    Open,
    /// The peer has ended.
    End,
}

impl Transport {
    /// # Errors
    /// TLS could not be set up.
    pub(super) fn new(
        socket: Socket,
        tls: Option<&Arc<ServerConfig>>,
        hold: Duration,
    ) -> io::Result<Transport> {
        let tls = match tls {
            None => None,
            Some(config) => {
                let mut tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                // What waits is bounded as without TLS: by the length of the answer.
                tls.set_buffer_limit(None);
                Some(Box::new(tls))
            }
        };
        let hold = if tls.is_some() && !hold.is_zero() { Hold::For(hold) } else { Hold::Over };
        Ok(Transport {
            socket,
            tls,
            waiting: Vec::new(),
            taken: 0,
            sent_bytes: 0,
            partial_sends: 0,
            hold,
            is_told: false,
        })
    }

    /// When [`Transport::release`] is to be called.
    pub(super) fn held_until(&self) -> Option<Stamp> {
        match &self.hold {
            Hold::Until(at, _) => Some(*at),
            Hold::For(_) | Hold::Over => None,
        }
    }

    /// Sends what was held back.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn release(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.hold, Hold::Over) {
            Hold::Until(_, records) => self.send_raw(&records),
            Hold::For(_) | Hold::Over => Ok(()),
        }
    }

    /// Whether the TLS handshake took up an earlier session, told once when it is through.
    pub(super) fn take_handshake(&mut self) -> Option<bool> {
        let tls = self.tls.as_ref().filter(|tls| !self.is_told && !tls.is_handshaking())?;
        self.is_told = true;
        Some(tls.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    /// Takes what the socket holds, at most one `buffer` of it, into `inbox`.
    ///
    /// # Errors
    /// The connection is broken, or the peer does not speak TLS.
    pub(super) fn receive(&mut self, buffer: &mut [u8], inbox: &mut Inbox, now: Stamp) -> io::Result<Intake> {
        let count = match self.socket.receive(buffer)? {
            Received::Bytes(count) => count,
            Received::End => return Ok(Intake::End),
            Received::Nothing => return Ok(Intake::Open),
        };
        if self.tls.is_none() {
            inbox.push(&buffer[..count]);
            return Ok(Intake::Open);
        }
        self.decrypt(&buffer[..count], inbox, now)
    }

    /// Sends `bytes`, or keeps what cannot be sent now.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(tls) = &mut self.tls else { return self.send_raw(bytes) };
        tls.writer().write_all(bytes)?;
        self.send_records(Stamp::ZERO)
    }

    /// Sends what is kept, as far as the socket takes it.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.wants_room() {
            let taken = self.socket.send(&self.waiting[self.taken..])?;
            if taken == 0 {
                return Ok(());
            }
            self.taken += taken;
            self.sent_bytes += taken as u64;
        }
        self.waiting = Vec::new();
        self.taken = 0;
        Ok(())
    }

    /// Whether something waits for room in the socket.
    #[inline]
    pub(super) fn wants_room(&self) -> bool {
        self.taken < self.waiting.len()
    }

    /// Tells the peer that nothing more will come.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn end(&mut self) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            self.send_records(Stamp::ZERO)?;
        }
        self.socket.end_sending()
    }

    /// Closes so that the peer sees a reset.
    pub(super) fn reset(self) {
        self.socket.reset();
    }

    fn decrypt(&mut self, mut bytes: &[u8], inbox: &mut Inbox, now: Stamp) -> io::Result<Intake> {
        let Some(tls) = &mut self.tls else { return Ok(Intake::Open) };
        let mut plain = Vec::new();
        let mut broken = None;
        let mut ended = false;
        while !bytes.is_empty() && broken.is_none() && !ended {
            tls.read_tls(&mut bytes)?;
            match tls.process_new_packets() {
                Ok(state) => {
                    plain.resize(state.plaintext_bytes_to_read(), 0);
                    tls.reader().read_exact(&mut plain)?;
                    inbox.push(&plain);
                    ended = state.peer_has_closed();
                }
                Err(error) => broken = Some(error),
            }
        }
        // Handshake answers, and the alert that names what is wrong with the peer's bytes.
        self.send_records(now)?;
        match broken {
            Some(error) => Err(io::Error::other(error)),
            None if ended => Ok(Intake::End),
            None => Ok(Intake::Open),
        }
    }

    /// Sends what TLS has to say, or holds it back where it is the first answer, which is given at `now`.
    fn send_records(&mut self, now: Stamp) -> io::Result<()> {
        let mut records = Vec::new();
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut records)?;
            }
        }
        match &mut self.hold {
            Hold::For(how_long) if !records.is_empty() => {
                self.hold = Hold::Until(now + *how_long, records);
                Ok(())
            }
            Hold::Until(_, held) => {
                held.extend_from_slice(&records);
                Ok(())
            }
            Hold::For(_) | Hold::Over => self.send_raw(&records),
        }
    }

    #[inline]
    fn send_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        if !self.wants_room() && !bytes.is_empty() {
            let taken = self.socket.send(bytes)?;
            self.sent_bytes += taken as u64;
            rest = &bytes[taken..];
            self.partial_sends += u64::from(!rest.is_empty());
        }
        self.waiting.extend_from_slice(rest);
        Ok(())
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
