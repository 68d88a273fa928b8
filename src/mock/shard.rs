//! One thread of the server: its listening socket, its connections, its model, and the loop that waits for them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::connection::{Connection, Desk, LINGER, Phase};
use super::fixed::{Emission, Fixed};
use super::generation::Bytes;
use super::house::House;
use super::keyed::{Key, Keyed};
use super::transport::Transport;
use super::truth::Truth;
use crate::pace::Pace;
use crate::sys::epoll::{Interest, Ready};
use crate::sys::listener::{Accepted, Listener};
use crate::sys::socket::Socket;
use crate::time::Stamp;

/// One thread's server.
#[derive(Debug)]
pub(super) struct Shard {
    pace: Pace,
    listener: Listener,
    connections: Keyed<Watched>,
    desk: Desk,
    emissions: Vec<Emission>,
    alarms: BinaryHeap<Reverse<(Stamp, Alarm)>>,
}

/// A connection and what the epoll watches it for.
#[derive(Debug)]
struct Watched {
    connection: Connection,
    for_room: bool,
    /// Answers given when the last keep-alive alarm was set.
    alarmed_at: u64,
}

/// What is to be done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// Accept again.
    Accept,
    /// Close, if no request has come since this many answers.
    Idle(Key, u64),
    /// Close.
    Linger(Key),
}

const LISTENER: u64 = u64::MAX - 2;
const BUFFER: usize = 64 * 1024;
/// Most connections accepted at once: those that are open must not wait for more.
const ACCEPT_BATCH: usize = 64;
/// Ready sockets between two looks at the schedule.
const STRIDE: usize = 8;
/// How long accepting pauses when no descriptor is left and none becomes free.
const PAUSE: Duration = Duration::from_millis(100);

impl Shard {
    pub(super) fn new(house: Arc<House>, pace: Pace, listener: Listener) -> io::Result<Shard> {
        pace.add(&listener, LISTENER, Interest::Read)?;
        let desk = Desk {
            clock: house.clock,
            model: Fixed::new(house.timing()),
            house,
            truth: Truth::new(),
            bytes: Bytes::default(),
            buffer: vec![0; BUFFER].into_boxed_slice(),
        };
        Ok(Shard {
            pace,
            listener,
            connections: Keyed::new(),
            desk,
            emissions: Vec::new(),
            alarms: BinaryHeap::new(),
        })
    }

    /// Serves until the house stops.
    ///
    /// # Errors
    /// Waiting or accepting became impossible.
    pub(super) async fn run(mut self) -> io::Result<Truth> {
        while !self.desk.house.is_stopping() {
            self.on_time()?;
            let ready = self.pace.poll()?;
            for place in 0..ready {
                if let Some(ready) = self.pace.ready(place) {
                    self.on_ready(ready)?;
                }
                if place % STRIDE == STRIDE - 1 {
                    self.emit_due();
                }
            }
            if ready == 0 {
                self.pace.idle(self.next_wakeup()).await?;
            }
        }
        Ok(self.into_truth())
    }

    fn next_wakeup(&self) -> Stamp {
        let alarm = self.alarms.peek().map_or(Stamp::MAX, |Reverse((at, _))| *at);
        self.desk.model.next_wakeup().min(alarm)
    }

    fn on_time(&mut self) -> io::Result<()> {
        self.emit_due();
        while let Some(Reverse((at, alarm))) = self.alarms.peek().copied() {
            if at > self.desk.clock.now() {
                break;
            }
            self.alarms.pop();
            self.on_alarm(alarm)?;
        }
        Ok(())
    }

    /// Sends what is due, at most one batch of it.
    fn emit_due(&mut self) {
        let now = self.desk.clock.now();
        if self.desk.model.next_wakeup() > now {
            return;
        }
        let mut emissions = std::mem::take(&mut self.emissions);
        self.desk.model.advance(now, &mut emissions);
        for emission in emissions.drain(..) {
            let key = emission.owner;
            if let Some(watched) = self.connections.get_mut(key) {
                watched.connection.on_emission(key, emission, &mut self.desk);
                self.settle(key);
            }
        }
        self.emissions = emissions;
    }

    fn on_ready(&mut self, ready: Ready) -> io::Result<()> {
        if ready.token == LISTENER {
            return self.on_arrivals();
        }
        let key = Key::from_token(ready.token);
        let Some(watched) = self.connections.get_mut(key) else { return Ok(()) };
        if ready.writable && watched.for_room {
            watched.connection.on_writable();
        }
        if ready.readable {
            watched.connection.on_readable(key, &mut self.desk);
        }
        self.settle(key);
        Ok(())
    }

    fn on_alarm(&mut self, alarm: Alarm) -> io::Result<()> {
        match alarm {
            Alarm::Accept => {
                self.pace.add(&self.listener, LISTENER, Interest::Read)?;
                self.accept()
            }
            Alarm::Idle(key, answered) => {
                if let Some(watched) = self.connections.get_mut(key)
                    && watched.connection.idle_since() == Some(answered)
                {
                    watched.connection.end();
                    self.settle(key);
                }
                Ok(())
            }
            Alarm::Linger(key) => {
                self.close(key);
                Ok(())
            }
        }
    }

    /// Somebody waits to be accepted.
    fn on_arrivals(&mut self) -> io::Result<()> {
        let delay = self.desk.house.settings.faults.accept_delay;
        if delay.is_zero() { self.accept() } else { self.pause(delay) }
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPT_BATCH {
            match self.listener.accept()? {
                Accepted::Connection(socket) => self.admit(socket),
                Accepted::Nobody => break,
                Accepted::Exhausted => {
                    self.desk.truth.accept_pauses += 1;
                    return self.pause(PAUSE);
                }
            }
        }
        Ok(())
    }

    /// Takes the listening socket out of the epoll: it would be ready all the time, and the thread would spin.
    fn pause(&mut self, how_long: Duration) -> io::Result<()> {
        self.pace.remove(&self.listener)?;
        self.alarms.push(Reverse((self.desk.clock.now() + how_long, Alarm::Accept)));
        Ok(())
    }

    /// Takes in a connection. One that cannot be watched is dropped, which its peer sees.
    fn admit(&mut self, socket: Socket) {
        let Ok(transport) = Transport::new(socket, self.desk.house.tls.as_ref()) else { return };
        let connection = Connection::new(transport);
        let key = self.connections.insert(Watched { connection, for_room: false, alarmed_at: 0 });
        let watching = match self.connections.get_mut(key) {
            Some(watched) => self.pace.add(&watched.connection, key.token(), Interest::Read),
            None => Ok(()),
        };
        if watching.is_err() {
            self.connections.remove(key);
            return;
        }
        let open = self.connections.len() as u64;
        let truth = &mut self.desk.truth;
        truth.connections += 1;
        truth.connections_max = truth.connections_max.max(open);
    }

    /// Does what the connection's state asks for after it has acted.
    fn settle(&mut self, key: Key) {
        let Some(watched) = self.connections.get_mut(key) else { return };
        if watched.connection.linger() {
            self.alarms.push(Reverse((self.desk.clock.now() + LINGER, Alarm::Linger(key))));
        }
        if matches!(watched.connection.phase(), Phase::Over | Phase::Reset) {
            self.close(key);
            return;
        }
        let for_room = watched.connection.wants_room();
        if for_room != watched.for_room {
            let interest = if for_room { Interest::ReadWrite } else { Interest::Read };
            watched.for_room = for_room;
            if self.pace.modify(&watched.connection, key.token(), interest).is_err() {
                self.close(key);
                return;
            }
        }
        if let Some(keep_alive) = self.desk.house.settings.keep_alive
            && let Some(answered) = watched.connection.idle_since()
            && answered > watched.alarmed_at
        {
            watched.alarmed_at = answered;
            let at = self.desk.clock.now() + keep_alive;
            self.alarms.push(Reverse((at, Alarm::Idle(key, answered))));
        }
    }

    fn close(&mut self, key: Key) {
        if let Some(watched) = self.connections.remove(key) {
            watched.connection.close(&mut self.desk);
        }
    }

    fn into_truth(mut self) -> Truth {
        for key in self.connections.keys() {
            self.close(key);
        }
        self.desk.truth
    }
}
