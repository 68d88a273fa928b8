//! Bytes to and from one socket, plain or under TLS.
//!
//! TLS is driven on the buffers that our own reads filled, so that stamps mean the same with and without it.

use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind};

use crate::sys::socket::Socket;

/// How bytes travel.
#[derive(Debug)]
pub(super) enum Transport {
    /// As they are.
    Plain,
    /// Encrypted.
    Tls(Box<ClientConnection>),
}

/// What decryption made of received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Opened<'a> {
    /// The plain bytes.
    pub bytes: &'a [u8],
    /// The peer has ended the TLS stream.
    pub ended: bool,
}

impl Transport {
    /// A TLS client that has not said hello yet.
    ///
    /// # Errors
    /// The configuration does not fit the name.
    pub(super) fn tls(
        config: &Arc<rustls::ClientConfig>,
        name: &ServerName<'static>,
    ) -> io::Result<Transport> {
        let connection = ClientConnection::new(Arc::clone(config), name.clone()).map_err(io::Error::other)?;
        Ok(Transport::Tls(Box::new(connection)))
    }

    /// Whether bytes travel as they are.
    #[must_use]
    pub(super) fn is_plain(&self) -> bool {
        matches!(self, Transport::Plain)
    }

    /// Whether requests may be sent.
    #[must_use]
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Transport::Plain => true,
            Transport::Tls(tls) => !tls.is_handshaking(),
        }
    }

    /// Whether the TLS session is that of an earlier connection.
    #[must_use]
    pub(super) fn is_resumed(&self) -> bool {
        matches!(self, Transport::Tls(tls) if tls.handshake_kind() == Some(HandshakeKind::Resumed))
    }

    /// Hands `request` from `*written` on to the kernel; `true` once all of it is there.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn send(&mut self, socket: &Socket, request: &[u8], written: &mut usize) -> io::Result<bool> {
        match self {
            Transport::Plain => {
                while *written < request.len() {
                    match socket.send(&request[*written..])? {
                        0 => return Ok(false),
                        count => *written += count,
                    }
                }
                Ok(true)
            }
            Transport::Tls(tls) => {
                while *written < request.len() {
                    // The buffer inside has a limit: what it does not take now is given once it has drained.
                    let taken = tls.writer().write(&request[*written..])?;
                    *written += taken;
                    if !flush(tls, socket)? {
                        return Ok(false);
                    }
                    if taken == 0 {
                        return Ok(false);
                    }
                }
                flush(tls, socket)
            }
        }
    }

    /// Hands over what TLS itself has to say (handshake messages); `true` once nothing is left.
    ///
    /// # Errors
    /// The connection is broken.
    pub(super) fn flush(&mut self, socket: &Socket) -> io::Result<bool> {
        match self {
            Transport::Plain => Ok(true),
            Transport::Tls(tls) => flush(tls, socket),
        }
    }

    /// Decrypts what was received; `room` is used where plain bytes differ from those received.
    ///
    /// # Errors
    /// The peer does not speak TLS as agreed, or its certificate is refused.
    pub(super) fn open<'a>(&mut self, received: &'a [u8], room: &'a mut Vec<u8>) -> io::Result<Opened<'a>> {
        match self {
            Transport::Plain => Ok(Opened { bytes: received, ended: false }),
            Transport::Tls(tls) => {
                room.clear();
                let ended = decrypt(tls, received, room)?;
                Ok(Opened { bytes: room, ended })
            }
        }
    }
}

fn flush(tls: &mut ClientConnection, socket: &Socket) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(&mut Outlet(socket)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

/// Appends the plain bytes in `received` to `plain`; `true` if the peer ended the stream.
fn decrypt(tls: &mut ClientConnection, mut received: &[u8], plain: &mut Vec<u8>) -> io::Result<bool> {
    loop {
        if !received.is_empty() {
            tls.read_tls(&mut received)?;
        }
        let state =
            tls.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let ready = state.plaintext_bytes_to_read();
        if ready > 0 {
            let from = plain.len();
            plain.resize(from + ready, 0);
            tls.reader().read_exact(&mut plain[from..])?;
        }
        if state.peer_has_closed() {
            return Ok(true);
        }
        if received.is_empty() {
            return Ok(false);
        }
    }
}

/// A socket as rustls writes to it.
struct Outlet<'a>(&'a Socket);

impl Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.send(bytes)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            sent => Ok(sent),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
