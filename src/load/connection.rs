//! One connection of a shard: its socket, its state, the request on it.

use std::io;
use std::time::Duration;

use crate::api::talk::Reply;
use crate::exchange::Exchange;
use crate::load::agenda::Due;
use crate::load::target::TlsRoute;
use crate::load::throttle::Throttle;
use crate::load::transport::Transport;
use crate::metrics::TimeoutPhase;
use crate::run::ShardCheck;
use crate::sys::epoll::Interest;
use crate::sys::prefetch::prefetch;
use crate::sys::socket::{Peer, Socket};
use crate::time::Stamp;
use crate::workload::trace::Entry;

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// No socket: the slot is free.
    Closed,
    /// Waiting for the peer to accept, or for the TLS handshake.
    Opening,
    /// The same before a level, for no request yet.
    Warming,
    /// Open, without a request.
    Idle,
    /// A request is being sent or answered.
    Busy,
}

/// A slot of the shard's table of connections. Its memory is used again by the next connection.
///
/// What each read needs stands first ([`Connection::prefetch`]).
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Connection {
    /// Raised whenever the slot changes hands, so that an event or deadline of the one before is recognised.
    pub(super) generation: u32,
    pub(super) state: State,
    pub(super) is_sent: bool,
    pub(super) watches_writes: bool,
    /// It may have ended, or bytes that nobody has read: it takes no request before that is known.
    pub(super) in_doubt: bool,
    /// The limit that was running when the wheel was last told.
    pub(super) watched: Option<TimeoutPhase>,
    /// It is not watched until its user may read again.
    pub(super) paused: bool,
    pub(super) socket: Option<Socket>,
    pub(super) transport: Transport,
    /// How fast its user reads, if slowly.
    pub(super) throttle: Option<Box<Throttle>>,
    pub(super) read_no: u64,
    pub(super) last_read: Stamp,
    /// Read number of the last content event.
    pub(super) last_content_read: u64,
    pub(super) exchange: Exchange,
    /// When its socket was asked for, and how many requests it has taken since.
    pub(super) opened: Stamp,
    pub(super) served: u32,
    /// Since when the TLS handshake goes on: from the moment the connection under it stands.
    pub(super) shaking_since: Option<Stamp>,
    /// How long the handshake took, and whether it took up an earlier session.
    pub(super) handshake: Option<(Duration, bool)>,
    pub(super) route: usize,
    /// Which of the route's addresses it goes to, and how many have been tried for this request.
    pub(super) address: usize,
    pub(super) tried: usize,
    pub(super) due: Due,
    /// The request and how much of it the kernel has.
    pub(super) request: Vec<u8>,
    /// What the request was written from, if it is one of a trace.
    pub(super) entry: Option<Box<Entry>>,
    pub(super) written: usize,
    /// The socket served a request before this one.
    pub(super) reused: bool,
    /// When the kernel was last asked how the connection does, and how many segments it had sent again by then.
    asked: Option<Stamp>,
    retransmits: u64,
    /// When the deadline wheel looks at this slot next.
    pub(super) looked_at: Stamp,
    /// Stamps of the content events, where they are kept.
    pub(super) times: Vec<u64>,
    /// How often the slot has sent a request, so that an alarm knows its own.
    pub(super) uses: u32,
    /// How long after it was sent the request is given up, if it is.
    pub(super) leaves_after: Option<Duration>,
    /// What was answered, where a later turn repeats it.
    pub(super) reply: Reply,
}

const _: () = assert!(std::mem::offset_of!(Connection, exchange) == 64);

impl Connection {
    pub(super) fn new() -> Connection {
        Connection {
            generation: 0,
            state: State::Closed,
            socket: None,
            transport: Transport::Plain,
            opened: Stamp::ZERO,
            served: 0,
            shaking_since: None,
            handshake: None,
            route: 0,
            address: 0,
            tried: 0,
            exchange: Exchange::new(),
            due: Due::default(),
            request: Vec::new(),
            entry: None,
            written: 0,
            is_sent: false,
            reused: false,
            watches_writes: false,
            in_doubt: false,
            read_no: 0,
            last_read: Stamp::ZERO,
            last_content_read: u64::MAX,
            asked: None,
            retransmits: 0,
            looked_at: Stamp::MAX,
            watched: None,
            times: Vec::new(),
            uses: 0,
            leaves_after: None,
            throttle: None,
            paused: false,
            reply: Reply::default(),
        }
    }

    /// Has what a read needs brought into the cache. With hundreds of streams none of it is there when an event comes, and the
    /// dozen waits for memory, one after the other, would cost more than all that is done with it.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.generation);
        self.exchange.prefetch();
    }

    /// What its socket is to be watched for. Whoever reads slowly leaves bytes behind, and has to hear of them again.
    pub(super) fn interest(&self) -> Interest {
        match (self.watches_writes, self.throttle.is_some()) {
            (true, _) => Interest::ReadWrite,
            (false, true) => Interest::Read,
            (false, false) => Interest::NewRead,
        }
    }

    /// What its connections are kept by when idle: the route, and apart from the others those with little room to receive.
    pub(super) fn lane(&self) -> usize {
        lane(self.route, self.throttle.is_some())
    }

    /// Starts connecting to `address`, with kernel stamps on its reads if `stamped`.
    pub(super) fn open(&mut self, address: &Peer, tls: Option<&TlsRoute>, stamped: bool) -> io::Result<()> {
        self.close();
        self.transport = match tls {
            Some(tls) => Transport::tls(&tls.config, &tls.name)?,
            None => Transport::Plain,
        };
        let socket = match &self.throttle {
            Some(throttle) => Socket::connect_with_room(address, throttle.receive_buffer())?,
            None => Socket::connect(address)?,
        };
        // What a slow reader leaves to wait is no error of the client.
        if stamped && self.throttle.is_none() {
            socket.stamp_reads()?;
        }
        self.socket = Some(socket);
        self.in_doubt = false;
        (self.asked, self.retransmits) = (None, 0);
        self.state = State::Opening;
        self.reused = false;
        self.served = 0;
        (self.shaking_since, self.handshake) = (None, None);
        self.read_no = 0;
        Ok(())
    }

    /// Drops the socket, which also takes it out of the epoll.
    pub(super) fn close(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.socket = None;
        self.transport = Transport::Plain;
        self.state = State::Closed;
        self.watches_writes = false;
        self.paused = false;
    }

    /// A request has ended: asks the kernel how the connection does, unless it was asked a short time ago (the call costs as
    /// much as a read) and will be asked again, since it `goes_on`.
    pub(super) fn ask_kernel(&mut self, check: &mut ShardCheck, now: Stamp, goes_on: bool) {
        let is_due = self.asked.is_none_or(|asked| now - asked >= ASKED_AGAIN);
        if (is_due || !goes_on)
            && let Some(rtt_ns) = self.count_retransmits(check)
            && is_due
        {
            check.rtt.record(rtt_ns);
            self.asked = Some(now);
        }
    }

    /// Counts what has been sent again since the last time; gives the round-trip time, ns.
    pub(super) fn count_retransmits(&mut self, check: &mut ShardCheck) -> Option<u64> {
        let info = self.socket.as_ref()?.tcp_info()?;
        check.retransmits += info.retransmits.saturating_sub(self.retransmits);
        self.retransmits = info.retransmits;
        Some(info.rtt_ns)
    }

    /// Hands the rest of the request to the kernel; `true` once all of it is there.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        self.transport.send(socket, &self.request, &mut self.written)
    }
}

/// The lane of connections of `route`, for slow readers or for all others.
pub(super) fn lane(route: usize, slow: bool) -> usize {
    route * LANES + usize::from(slow)
}

/// How long what the kernel said of a connection is good.
const ASKED_AGAIN: Duration = Duration::from_millis(100);
/// Lanes of each route.
pub(super) const LANES: usize = 2;
