//! Connections between two requests: kept or closed, by the plan and by what others wait for.

use std::collections::HashMap;
use std::time::Duration;

use super::work::Work;
use super::{Handed, Shard};
use crate::load::agenda::Due;
use crate::load::connection::{Connection, LANES, State};
use crate::load::pools::Rest;
use crate::plan::Reuse;
use crate::sys::socket::Received;
use crate::time::Stamp;

/// Idle connections that belong to sessions under way, by their numbers.
pub(super) type OfSessions = HashMap<u64, Vec<u32>>;

/// Whether an idle connection is taken to stand without a look, which is a call into the kernel: its server has kept it
/// before, and was heard on it just now. Should it be closed all the same, the request goes out once more on another, as
/// where that happens between look and send.
fn is_warm(connection: &Connection, now: Stamp) -> bool {
    !connection.in_doubt && connection.served >= KEPT_BEFORE && now - connection.last_read <= HEARD_JUST_NOW
}

/// Requests after which a server has shown that it keeps a connection: the second came on one that it had kept.
const KEPT_BEFORE: u32 = 2;
const HEARD_JUST_NOW: Duration = Duration::from_millis(1);

impl Shard {
    /// The request on `slot` is over, and `session_over` the session that it was one of.
    pub(super) fn rest(&mut self, work: &mut Work, slot: usize, session_over: bool) {
        let now = self.pace.clock().now();
        let connection = &self.connections[slot];
        let session = connection.due.index;
        let fit = connection.exchange.reusable() && connection.is_sent;
        let is_retired = fit && self.is_retired(connection, now);
        work.check.retired += u64::from(is_retired);
        match self.settings.reuse {
            Reuse::Pooled if fit && !is_retired => {
                self.keep(slot);
                self.pool(slot);
            }
            Reuse::StickyUserSessions if fit && !is_retired && !session_over => {
                self.keep(slot);
                self.keep_for_session(work, slot);
            }
            _ => self.free(slot),
        }
        if session_over {
            self.free_those_of(session);
        }
    }

    /// Keeps an idle connection for its session. But where requests of that session wait for one it goes to them, or, if they
    /// go elsewhere, makes room: a session that holds one and waits for another might wait for one that does the same.
    fn keep_for_session(&mut self, work: &mut Work, slot: usize) {
        let session = self.connections[slot].due.index;
        if let Some(due) = self.next_of_session(work, slot) {
            self.handed.push(Handed { slot: slot as u32, to: Some(due) });
        } else if self.may_wait(work) && work.is_queued(session) {
            self.free(slot);
        } else {
            self.of_sessions.entry(session).or_default().push(slot as u32);
        }
    }

    /// Whether a session may have requests that wait for a connection when another one of it has ended.
    fn may_wait(&self, work: &Work) -> bool {
        self.pools.is_some() && work.leg.target.content.agents().is_some()
    }

    /// The oldest request of the session of `slot` that waits for a connection to the same endpoint, taken out of its queue.
    fn next_of_session(&self, work: &mut Work, slot: usize) -> Option<Due> {
        let pools = self.pools.as_ref().filter(|_| self.may_wait(work))?;
        let Connection { route, due, .. } = &self.connections[slot];
        let queued = work.queued.get_mut(*route)?;
        let is_own = |place: &usize| queued[*place].due.index == due.index;
        let leaves = |place: &usize| pools.leave(*route, self.place, (*place, queued.len()));
        let place = (0..queued.len()).filter(is_own).find(leaves)?;
        queued.remove(place).map(|one| one.due)
    }

    /// Closes the idle connections that are kept for a session.
    pub(super) fn free_those_of(&mut self, session: u64) {
        for slot in self.of_sessions.remove(&session).unwrap_or_default() {
            self.free(slot as usize);
        }
    }

    /// Whether it takes no further request, by its age or by the number that it has served.
    pub(super) fn is_retired(&self, connection: &Connection, now: Stamp) -> bool {
        let old =
            self.max_age.is_some_and(|most| now.nanos_since(connection.opened) >= most.as_nanos() as u64);
        old || self.settings.max_requests.is_some_and(|most| connection.served >= most)
    }

    fn keep(&mut self, slot: usize) {
        self.connections[slot].state = State::Idle;
        self.set_write_interest(slot, false);
        self.go_on_reading(slot);
    }

    /// Puts an idle connection where any request of its lane finds it, or gives it to whoever waits.
    pub(super) fn pool(&mut self, slot: usize) {
        let connection = &self.connections[slot];
        let (route, lane) = (connection.route, connection.lane());
        match self.pools.as_ref().map_or(Rest::Idle, |pools| pools.on_rest(route, self.place)) {
            Rest::Idle => self.idle[lane].push(slot as u32),
            Rest::Handed => self.handed.push(Handed { slot: slot as u32, to: None }),
            Rest::Closed => self.free(slot),
        }
    }

    /// The socket is closed, and the slot free for another.
    pub(super) fn free(&mut self, slot: usize) {
        self.close(slot, false);
    }

    /// An idle connection is closed, whoever it was kept for.
    pub(super) fn drop_idle(&mut self, slot: usize) {
        let connection = &self.connections[slot];
        let (lane, session) = (connection.lane(), connection.due.index);
        let before = self.idle[lane].len();
        self.idle[lane].retain(|idle| *idle as usize != slot);
        let was_idle = self.idle[lane].len() < before;
        if let Some(own) = self.of_sessions.get_mut(&session) {
            own.retain(|idle| *idle as usize != slot);
        }
        self.close(slot, was_idle);
    }

    fn close(&mut self, slot: usize, was_idle: bool) {
        let route = self.connections[slot].route;
        self.connections[slot].close();
        self.spare.push(slot as u32);
        if let Some(pools) = &self.pools {
            pools.on_closed(route, self.place, was_idle);
            self.has_closed = true;
        }
    }

    /// Closes what other shards are waiting for.
    pub(super) fn evict(&mut self) {
        let Some(pools) = self.pools.clone() else { return };
        for route in 0..self.idle.len() / LANES {
            for _ in 0..pools.take_evictions(route, self.place) {
                // The one used longest ago, of any lane; it may have been taken meanwhile, and is given on when it rests.
                let lanes = route * LANES..(route + 1) * LANES;
                let Some(slot) = lanes.filter_map(|lane| self.idle[lane].first().copied()).next() else {
                    break;
                };
                self.drop_idle(slot as usize);
            }
        }
    }

    /// An idle connection of the lane that still stands and is not too old, taken out of it.
    pub(super) fn take_idle(&mut self, lane: usize, now: Stamp) -> Option<usize> {
        while let Some(slot) = self.idle[lane].pop() {
            let slot = slot as usize;
            if self.stands(slot, now) {
                return Some(slot);
            }
            self.free(slot);
        }
        None
    }

    /// Whether an idle connection can take a request.
    pub(super) fn stands(&mut self, slot: usize, now: Stamp) -> bool {
        let connection = &self.connections[slot];
        connection.state == State::Idle
            && !self.is_retired(connection, now)
            && (is_warm(connection, now) || self.is_unbroken(slot))
    }

    /// Whether an idle connection is still open, and nothing has come on it that nobody asked for. TLS may have something of
    /// its own to say, above all sessions to take up later, which come behind the handshake.
    pub(super) fn is_unbroken(&mut self, slot: usize) -> bool {
        let connection = &mut self.connections[slot];
        let Some(socket) = &connection.socket else { return false };
        if connection.transport.is_plain() {
            return socket.is_quiet();
        }
        loop {
            match socket.receive(&mut self.buffer) {
                Ok(Received::Nothing) => return true,
                Ok(Received::Bytes(count)) => {
                    let opened = connection.transport.open(&self.buffer[..count], &mut self.plain);
                    if !opened.is_ok_and(|opened| opened.bytes.is_empty() && !opened.ended) {
                        return false;
                    }
                }
                Ok(Received::End) | Err(_) => return false,
            }
        }
    }

    /// Something has happened on an idle connection.
    pub(super) fn on_idle_ready(&mut self, slot: usize) {
        if !self.is_unbroken(slot) {
            self.drop_idle(slot);
        }
    }

    /// A slot without a socket.
    pub(super) fn spare_slot(&mut self) -> usize {
        match self.spare.pop() {
            Some(slot) => slot as usize,
            None => {
                self.connections.push(Connection::new());
                self.connections.len() - 1
            }
        }
    }

    /// The level is over: connections that were kept for its sessions are closed.
    pub(super) fn close_sessions(&mut self) {
        for slot in std::mem::take(&mut self.of_sessions).into_values().flatten() {
            self.free(slot as usize);
        }
    }
}
