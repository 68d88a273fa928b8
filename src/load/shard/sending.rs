//! From a due request to its bytes in the kernel: permits, connecting, writes.

use std::io;

use rustix::io::Errno;

use super::Shard;
use super::admitting::Way;
use super::work::Work;
use crate::load::agenda::{Due, later};
use crate::load::alarms::Bell;
use crate::load::connection::State;
use crate::load::leg::Halt;
use crate::load::throttle::Throttle;
use crate::metrics::{Class, Kind};
use crate::time::Stamp;

impl Shard {
    pub(super) fn send_due(&mut self, work: &mut Work) {
        while !work.waiting.is_empty()
            && work.leg.permits.as_ref().is_some_and(|all| all.take_grant(self.place))
        {
            if let Some(due) = work.waiting.pop_front() {
                self.admit(work, due, self.pace.clock().now());
            }
        }
        self.admit_waiting(work);
        while let Some(due) = work.agenda.pop(self.pace.clock().now()) {
            work.last_plan = Some(work.last_plan.map_or(due.plan, |last| last.max(due.plan)));
            let admitted =
                work.leg.permits.as_ref().is_none_or(|permits| permits.acquire(self.place, due.plan));
            if admitted {
                self.admit(work, due, due.ready);
            } else {
                work.waiting.push_back(due);
            }
        }
    }

    /// Takes a request in hand that goes by `way`.
    pub(super) fn start(&mut self, work: &mut Work, due: Due, permit: Stamp, way: Way) {
        let Way { route, slot, checked } = way;
        let Some(mut request) = work.take(&due) else {
            // The file of requests broke off under our hands: the level is no longer the planned one, on no shard.
            work.on_unsent(&due, self.pace.clock().now(), Class::Cancelled);
            self.connections[slot].route = route;
            self.free(slot);
            return work.leg.signal.halt(Halt::Abort);
        };
        let begin = work.leg.target.direct(route, &mut request.bytes);
        let (conduct, item) = (work.leg.target.content.conduct(), work.leg.item(due.index));
        let (abort, read_rate) = (conduct.abort(item, due.turn).unwrap_or_default(), conduct.read_rate(item));
        let record = work.leg.record_of(&due, route, permit, read_rate.is_some());
        self.gauges.on_sent();
        let now = self.pace.clock().now();
        work.on_start(now);
        let connection = &mut self.connections[slot];
        connection.route = route;
        connection.due = due;
        work.check.bodies = work.check.bodies.wrapping_add(request.hash);
        connection.written = begin;
        connection.request = request.bytes;
        connection.entry = request.entry;
        connection.is_sent = false;
        connection.tried = 0;
        connection.times.clear();
        connection.reply.clear();
        connection.last_read = now;
        connection.last_content_read = u64::MAX;
        connection.uses = connection.uses.wrapping_add(1);
        connection.leaves_after = abort.after;
        connection.throttle = read_rate.map(|rate| Box::new(Throttle::new(rate)));
        connection.exchange.begin(work.leg.ask_of(request.max_tokens, abort), record);
        connection.exchange.on_start(now);
        work.on_delay(now.nanos_since(due.plan.max(permit)));
        let is_idle = self.connections[slot].state == State::Idle;
        if is_idle && (checked || self.stands(slot, now)) {
            let connection = &mut self.connections[slot];
            connection.state = State::Busy;
            connection.reused = true;
            connection.exchange.on_connected(now, false);
            self.watch_deadline(work, slot, now);
            self.send(work, slot);
        } else {
            self.connect(work, slot, now);
        }
    }

    pub(super) fn connect(&mut self, work: &mut Work, slot: usize, now: Stamp) {
        let route = self.connections[slot].route;
        let addresses = work.leg.target.routes[route].addresses.len();
        let mut error = None;
        let in_turn = work.leg.replicas.as_ref().is_some_and(|replicas| replicas.are_addresses());
        if in_turn && self.connections[slot].tried == 0 && addresses > 1 {
            self.preferred[route] = (self.preferred[route] + 1) % addresses;
        }
        while self.connections[slot].tried < addresses {
            let connection = &mut self.connections[slot];
            connection.address = (self.preferred[route] + connection.tried) % addresses;
            connection.tried += 1;
            let target = &work.leg.target.routes[route];
            let address = &target.addresses[connection.address];
            match connection.open(address, target.tls.as_ref(), self.wall.is_some()) {
                Ok(()) => {
                    work.check.connects += 1;
                    self.connections[slot].opened = now;
                    match self.send_at_once(work, slot) {
                        Ok(()) => return self.watch_deadline(work, slot, now),
                        Err(refused) => error = Some(refused),
                    }
                }
                Err(refused) => error = Some(refused),
            }
        }
        let error = error.unwrap_or_else(|| io::Error::other("no address left to try"));
        self.fail_to_connect(work, slot, &error);
    }

    pub(super) fn fail_to_connect(&mut self, work: &mut Work, slot: usize, error: &io::Error) {
        let kind = kind_of(error);
        let now = self.pace.clock().now();
        let progress = self.connections[slot].exchange.on_no_connection(now, kind, &told(error));
        self.after(work, slot, progress);
    }

    /// Tries to send on a connection that was asked for just now: on loopback and on quick networks it stands already,
    /// which saves a turn of the loop and three system calls. Where it does not, readiness will tell.
    fn send_at_once(&mut self, work: &mut Work, slot: usize) -> io::Result<()> {
        let before = self.pace.clock().now();
        let connection = &mut self.connections[slot];
        let whole = connection.transport.is_ready() && connection.send()?;
        if connection.written > 0 {
            connection.state = State::Busy;
            connection.exchange.on_connected(before, true);
            self.preferred[connection.route] = connection.address;
        }
        if whole {
            self.on_sent(work, slot);
        }
        self.watch(slot, !whole)
    }

    /// Starts watching a socket, for room to write as well if it `writes`.
    pub(super) fn watch(&mut self, slot: usize, writes: bool) -> io::Result<()> {
        let token = self.token(slot);
        let connection = &mut self.connections[slot];
        connection.watches_writes = writes;
        let socket = connection.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        self.pace.add(socket, token, connection.interest())
    }

    /// Asks for write readiness only while something waits to be written: a writable socket is always ready.
    pub(super) fn set_write_interest(&mut self, slot: usize, wanted: bool) {
        let token = self.token(slot);
        let connection = &mut self.connections[slot];
        if connection.watches_writes == wanted {
            return;
        }
        connection.watches_writes = wanted;
        // Who does not read now does not write either; both go on together.
        if let Some(socket) = connection.socket.as_ref().filter(|_| !connection.paused) {
            // The socket is in the epoll as long as it is open; there is nothing that could fail.
            let _ = self.pace.modify(socket, token, connection.interest());
        }
    }

    pub(super) fn send(&mut self, work: &mut Work, slot: usize) {
        match self.connections[slot].send() {
            Ok(true) => {
                self.on_sent(work, slot);
                self.set_write_interest(slot, false);
            }
            Ok(false) => self.set_write_interest(slot, true),
            // The answer may be there all the same (a 413 before the body was read): reading decides.
            Err(_) => {
                let token = self.token(slot);
                self.read(work, slot, true);
                self.have_told_again(token);
            }
        }
    }

    /// The kernel has the whole request.
    fn on_sent(&mut self, work: &mut Work, slot: usize) {
        let now = self.pace.clock().now();
        let connection = &mut self.connections[slot];
        connection.is_sent = true;
        connection.served += 1;
        connection.exchange.on_sent(now);
        let request = std::mem::take(&mut connection.request);
        work.requests.give_back(connection.due.user, request);
        if let Some(after) = connection.leaves_after {
            self.set_alarm(slot, later(now, after), Bell::Leave);
        }
    }
}

/// Why there is no connection.
fn kind_of(error: &io::Error) -> Kind {
    match error.kind() {
        // A Unix socket whose queue of connections is full says so.
        io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock => Kind::Refused,
        io::ErrorKind::InvalidData => Kind::Tls,
        io::ErrorKind::AddrNotAvailable => Kind::NoLocalPort,
        _ => Kind::Unreachable,
    }
}

/// What the system says, with whose fault it is where that is not the server's.
fn told(error: &io::Error) -> String {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE) => {
            format!("{error}: a limit of this machine, not of the server; raise it (ulimit -n) or send less")
        }
        Some(Errno::ADDRNOTAVAIL) => {
            format!(
                "{error}: this machine has no free port left towards the server; reuse connections, send less, widen \
                 net.ipv4.ip_local_port_range, or spread the load over more addresses or machines"
            )
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_of_this_machine_is_not_blamed_on_the_server() {
        let told = |errno: Errno| told(&errno.into());
        assert!(told(Errno::MFILE).contains("not of the server"));
        assert!(told(Errno::ADDRNOTAVAIL).contains("this machine"));
        assert_eq!(told(Errno::CONNREFUSED), "Connection refused (os error 111)");
        let kind = |errno: Errno| kind_of(&errno.into());
        assert_eq!(kind(Errno::ADDRNOTAVAIL), Kind::NoLocalPort);
        assert_eq!((kind(Errno::CONNREFUSED), kind(Errno::AGAIN)), (Kind::Refused, Kind::Refused));
        assert_eq!((kind(Errno::MFILE), kind(Errno::HOSTUNREACH)), (Kind::Unreachable, Kind::Unreachable));
    }
}
