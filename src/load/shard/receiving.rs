//! From a ready socket to the exchange: the stamp is taken right after the read returns.

use std::io;

use super::Shard;
use super::hearing::{Ear, Gatherer};
use super::work::Work;
use crate::exchange::{Arrival, Progress};
use crate::load::connection::State;
use crate::sys::epoll::Ready;
use crate::sys::socket::Received;
use crate::time::Stamp;

impl Shard {
    /// Handles an event, and has what one read leaves told again.
    pub(super) fn on_ready(&mut self, work: &mut Work, ready: Ready) {
        self.on_event(work, ready);
        self.have_rest_told(ready);
    }

    /// An event has been handled: where one read may not have taken all, it is told again.
    pub(super) fn have_rest_told(&mut self, ready: Ready) {
        if std::mem::take(&mut self.has_filled) || ready.ended {
            self.have_told_again(ready.token);
        }
    }

    fn on_event(&mut self, work: &mut Work, ready: Ready) {
        let Some(slot) = self.slot_of(ready.token) else { return };
        match self.connections[slot].state {
            State::Closed => {}
            State::Warming => self.on_warming(Some(work), slot, ready),
            State::Idle => self.on_idle_ready(slot),
            State::Opening => self.on_opening(work, slot, ready),
            State::Busy => {
                if ready.writable && !self.connections[slot].is_sent && self.connections[slot].watches_writes
                {
                    self.send(work, slot);
                }
                if ready.readable && self.slot_of(ready.token).is_some() {
                    self.read(work, slot, false);
                }
            }
        }
    }

    /// Has the epoll look again at the socket that a token means, if it is still open. Others are heard before, so that one
    /// that always has more does not keep the shard.
    pub(super) fn have_told_again(&mut self, token: u64) {
        let Some(slot) = self.slot_of(token) else { return };
        let connection = &mut self.connections[slot];
        connection.in_doubt = true;
        if let Some(socket) = connection.socket.as_ref().filter(|_| !connection.paused) {
            // The socket is in the epoll as long as it is open; there is nothing that could fail.
            let _ = self.pace.modify(socket, token, connection.interest());
        }
    }

    pub(super) fn on_opening(&mut self, work: &mut Work, slot: usize, ready: Ready) {
        match self.advance(slot, ready) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return self.try_next_address(work, slot, &error),
        }
        let now = self.pace.clock().now();
        let connection = &mut self.connections[slot];
        connection.state = State::Busy;
        connection.exchange.on_connected(now, true);
        if let Some((took, resumed)) = connection.handshake {
            connection.exchange.on_handshake(took, resumed);
            work.check.on_handshake(resumed);
        }
        self.preferred[connection.route] = connection.address;
        self.watch_deadline(work, slot, now);
        self.send(work, slot);
    }

    /// Carries the opening of a connection on; whether requests may be sent.
    pub(super) fn advance(&mut self, slot: usize, ready: Ready) -> io::Result<bool> {
        if self.connections[slot].transport.is_ready() || !ready.readable {
            match &self.connections[slot].socket {
                Some(socket) => socket.connected()?,
                None => return Err(io::ErrorKind::NotConnected.into()),
            }
        }
        if self.connections[slot].shaking_since.is_none() && !self.connections[slot].transport.is_ready() {
            self.connections[slot].shaking_since = Some(self.pace.clock().now());
        }
        self.handshake(slot, ready)?;
        let connection = &mut self.connections[slot];
        if !connection.transport.is_ready() || self.slot_of(ready.token).is_none() {
            return Ok(false);
        }
        let now = self.pace.clock().now();
        let connection = &mut self.connections[slot];
        if let Some(since) = connection.shaking_since.take() {
            connection.handshake = Some((now - since, connection.transport.is_resumed()));
        }
        Ok(true)
    }

    /// Carries the TLS handshake on; nothing to do without TLS.
    pub(super) fn handshake(&mut self, slot: usize, ready: Ready) -> io::Result<()> {
        let connection = &mut self.connections[slot];
        if connection.transport.is_ready() {
            return Ok(());
        }
        let Some(socket) = &connection.socket else { return Ok(()) };
        if ready.readable {
            match socket.receive(&mut self.buffer)? {
                Received::Bytes(count) => {
                    self.has_filled = count == self.buffer.len();
                    connection.transport.open(&self.buffer[..count], &mut self.plain).map(|_| ())?;
                }
                Received::End => {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "closed during the TLS handshake",
                    ));
                }
                Received::Nothing => {}
            }
        }
        let flushed = connection.transport.flush(socket)?;
        self.set_write_interest(slot, !flushed);
        Ok(())
    }

    pub(super) fn try_next_address(&mut self, work: &mut Work, slot: usize, error: &io::Error) {
        let now = self.pace.clock().now();
        let connection = &mut self.connections[slot];
        let addresses = work.leg.target.routes[connection.route].addresses.len();
        // Another address of a server that does not speak TLS would not either.
        if connection.tried < addresses && error.kind() != io::ErrorKind::InvalidData {
            return self.connect(work, slot, now);
        }
        self.fail_to_connect(work, slot, error);
    }

    /// One read: the stamp is taken right after it returns, before anything is looked at.
    pub(super) fn read(&mut self, work: &mut Work, slot: usize, broken: bool) {
        if self.connections[slot].throttle.is_some() {
            return self.read_slowly(work, slot, broken);
        }
        let connection = &mut self.connections[slot];
        let Some(socket) = &connection.socket else { return };
        connection.exchange.prefetch_parts();
        // A read without room for control messages is the quicker one.
        let received = match &self.wall {
            Some(_) => socket.receive_stamped(&mut self.buffer),
            None => socket.receive(&mut self.buffer).map(|received| (received, None)),
        };
        let now = self.pace.clock().now();
        let (received, stamped) = match received {
            Ok((received, stamped)) => (Ok(received), stamped),
            Err(error) => (Err(error), None),
        };
        match received {
            Ok(Received::Bytes(count)) => {
                self.has_filled = count == self.buffer.len();
                connection.read_no += 1;
                connection.last_read = now;
                self.last_read = now;
                work.check.reads += 1;
                work.check.read_bytes += count as u64;
                work.check.queue_bytes.record(count as u64);
                let read_no = connection.read_no;
                let kernel = self.kernel_stamp(work, stamped, now);
                let late = work.is_late(now, kernel);
                let at = Arrival { read: now, kernel, read_no, late };
                self.on_bytes(work, slot, at, count);
            }
            Ok(Received::Nothing) if !broken => {}
            Ok(Received::End) => self.on_end_of_connection(work, slot, now, true),
            Ok(Received::Nothing) | Err(_) => self.on_end_of_connection(work, slot, now, false),
        }
    }

    pub(super) fn on_bytes(&mut self, work: &mut Work, slot: usize, at: Arrival, count: usize) {
        let connection = &mut self.connections[slot];
        let opened = match connection.transport.open(&self.buffer[..count], &mut self.plain) {
            Ok(opened) => opened,
            Err(_) => return self.on_end_of_connection(work, slot, at.read, false),
        };
        let ended = opened.ended;
        let heard = (&mut connection.last_content_read, &mut connection.times);
        let slow = connection.throttle.is_some();
        let progress = if work.gathers_replies {
            let mut ear = Gatherer::new(Ear::new(work, &self.gauges, heard, slow), &mut connection.reply);
            connection.exchange.on_bytes(&at, opened.bytes, &mut self.json, &mut ear)
        } else {
            let mut ear = Ear::new(work, &self.gauges, heard, slow);
            connection.exchange.on_bytes(&at, opened.bytes, &mut self.json, &mut ear)
        };
        if let Some(socket) = &connection.socket {
            // TLS may have something of its own to say; a failure shows at the next read.
            let _ = connection.transport.flush(socket);
        }
        if progress == Progress::Pending && ended {
            return self.on_end_of_connection(work, slot, at.read, true);
        }
        match progress {
            Progress::Pending => self.go_on_waiting(work, slot, at.read),
            Progress::Over => self.settle(work, slot),
        }
    }

    pub(super) fn on_end_of_connection(
        &mut self,
        work: &mut Work,
        slot: usize,
        now: Stamp,
        in_good_order: bool,
    ) {
        let connection = &mut self.connections[slot];
        if connection.reused && connection.exchange.is_unanswered() {
            return self.resend(work, slot, now);
        }
        let heard = (&mut connection.last_content_read, &mut connection.times);
        let slow = connection.throttle.is_some();
        let mut ear = Gatherer::new(Ear::new(work, &self.gauges, heard, slow), &mut connection.reply);
        let progress = if in_good_order {
            connection.exchange.on_eof(now, &mut self.json, &mut ear)
        } else {
            connection.exchange.on_reset(now)
        };
        self.after(work, slot, progress);
    }

    /// The peer closed a connection that had been idle just when a request was written to it: once more on a fresh
    /// one, counted, with the clock running on.
    pub(super) fn resend(&mut self, work: &mut Work, slot: usize, now: Stamp) {
        let connection = &mut self.connections[slot];
        connection.exchange.resend();
        connection.reply.clear();
        if connection.is_sent {
            let due = connection.due;
            connection.request = work.requests.write_again(&due, connection.entry.as_deref());
        }
        connection.written = work.leg.target.direct(connection.route, &mut connection.request);
        connection.is_sent = false;
        connection.tried = 0;
        // Whatever was set for the first time is over.
        connection.uses = connection.uses.wrapping_add(1);
        work.check.resent += 1;
        self.connect(work, slot, now);
    }
}
