//! One thread of the server: its listening socket, its connections, its way to the model, and the loop that waits for
//! them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::account::Ending;
use super::connection::{Connection, LINGER, Phase};
use super::desk::Desk;
use super::faults::{Outage, Reach};
use super::transport::Transport;
use crate::model::keyed::{Key, Keyed};
use crate::pace::Pace;
use crate::sys::epoll::{Interest, Ready};
use crate::sys::listener::{Accepted, Listener, Listening};
use crate::sys::socket::Socket;
use crate::time::Stamp;

/// One thread's server.
#[derive(Debug)]
pub(super) struct Shard {
    pace: Pace,
    door: Door,
    connections: Keyed<Watched>,
    desk: Desk,
    alarms: BinaryHeap<Reverse<(Stamp, Alarm)>>,
}

/// The listening socket, which may be gone for a while.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) address: SocketAddr,
    pub(super) how: Listening,
    pub(super) listener: Option<Listener>,
    /// The Unix socket, which no outage closes.
    pub(super) unix: Option<Listener>,
    /// The epoll watches it.
    pub(super) watched: bool,
    /// Number of outages that keep it closed.
    pub(super) outages: u32,
}

/// A connection and what the epoll watches it for.
#[derive(Debug)]
struct Watched {
    connection: Connection,
    interest: Interest,
    /// Answers given when the last keep-alive alarm was set.
    alarmed_at: u64,
    /// When the last alarm for held bytes was set to.
    released_at: Stamp,
}

/// What is to be done at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Alarm {
    /// Accept again.
    Accept,
    /// Accept from the Unix socket again.
    AcceptUnix,
    /// An outage ends: this one of the settings'.
    Back(usize),
    /// An outage begins: this one of the settings'.
    Down(usize),
    /// Close, if no request has come since this many answers.
    Idle(Key, u64),
    /// Close.
    Linger(Key),
    /// Listen again, where it did not work before.
    Listen,
    /// Send what was held back.
    Release(Key),
}

const LISTENER: u64 = u64::MAX - 2;
const UNIX_LISTENER: u64 = u64::MAX - 3;
/// Most emissions served between two looks at the sockets.
const EMISSION_BATCH: usize = 64;
/// Most connections accepted at once: those that are open must not wait for more.
const ACCEPT_BATCH: usize = 64;
/// Ready sockets between two looks at the schedule.
const STRIDE: usize = 8;
/// How long accepting pauses when no descriptor is left and none becomes free.
const PAUSE: Duration = Duration::from_millis(100);

impl Shard {
    pub(super) fn new(desk: Desk, pace: Pace, door: Door) -> io::Result<Shard> {
        let mut shard = Shard { pace, door, connections: Keyed::new(), desk, alarms: BinaryHeap::new() };
        shard.watch_door()?;
        shard.watch_unix()?;
        for (place, outage) in shard.desk.house.settings.faults.outages.iter().enumerate() {
            let start = Stamp::ZERO + outage.start;
            shard.alarms.push(Reverse((start, Alarm::Down(place))));
            shard.alarms.push(Reverse((start + outage.length, Alarm::Back(place))));
        }
        Ok(shard)
    }

    /// Serves until the house stops.
    ///
    /// # Errors
    /// Waiting or accepting became impossible.
    pub(super) async fn run(mut self) -> io::Result<()> {
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
        for key in self.connections.keys() {
            self.close(key, Ending::Stopped);
        }
        Ok(())
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
        self.desk.model.look(self.desk.clock.now());
        for _ in 0..EMISSION_BATCH {
            let Some(emission) = self.desk.model.next() else { return };
            let key = Key::from_token(emission.owner);
            if let Some(watched) = self.connections.get_mut(key) {
                watched.connection.on_emission(key, emission, &mut self.desk);
                self.settle(key);
            }
        }
    }

    fn on_ready(&mut self, ready: Ready) -> io::Result<()> {
        if ready.token == LISTENER {
            return self.on_arrivals();
        }
        if ready.token == UNIX_LISTENER {
            return self.accept_unix();
        }
        let key = Key::from_token(ready.token);
        let Some(watched) = self.connections.get_mut(key) else { return Ok(()) };
        if ready.writable && watched.interest != Interest::Read {
            watched.connection.on_writable(key, &mut self.desk);
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
                self.watch_door()?;
                self.accept()?;
            }
            Alarm::AcceptUnix => {
                self.watch_unix()?;
                self.accept_unix()?;
            }
            Alarm::Back(_) => {
                self.door.outages = self.door.outages.saturating_sub(1);
                self.open_door()?;
            }
            Alarm::Down(place) => {
                if let Some(outage) = self.desk.house.settings.faults.outages.get(place).copied() {
                    self.go_down(outage);
                }
            }
            Alarm::Idle(key, answered) => {
                if let Some(watched) = self.connections.get_mut(key)
                    && watched.connection.idle_since() == Some(answered)
                {
                    watched.connection.end_idle();
                    self.settle(key);
                }
            }
            Alarm::Linger(key) => self.close(key, Ending::ClientLeft),
            Alarm::Listen => self.open_door()?,
            Alarm::Release(key) => {
                if let Some(watched) = self.connections.get_mut(key) {
                    watched.connection.release(key, &mut self.desk);
                    self.settle(key);
                }
            }
        }
        Ok(())
    }

    /// Closes the door, and with it, where the server is down, everything that came in through it.
    fn go_down(&mut self, outage: Outage) {
        self.door.outages += 1;
        // Connections that wait to be accepted are reset by the kernel.
        self.door.listener = None;
        self.door.watched = false;
        if outage.reach == Reach::Listener {
            return;
        }
        for key in self.connections.keys() {
            if let Some(watched) = self.connections.get_mut(key) {
                watched.connection.go_down(&mut self.desk);
            }
            self.close(key, Ending::Stopped);
        }
    }

    /// Listens again once no outage is left.
    fn open_door(&mut self) -> io::Result<()> {
        if self.door.outages > 0 || self.door.listener.is_some() {
            return Ok(());
        }
        match Listener::bind(self.door.address, self.door.how) {
            Ok(listener) => {
                self.door.listener = Some(listener);
                self.watch_door()
            }
            // Somebody else has the port, or descriptors are short: neither need last.
            Err(_) => {
                self.desk.book().truth.listen_retries += 1;
                self.alarms.push(Reverse((self.desk.clock.now() + PAUSE, Alarm::Listen)));
                Ok(())
            }
        }
    }

    fn watch_door(&mut self) -> io::Result<()> {
        if let Some(listener) = &self.door.listener
            && !self.door.watched
        {
            self.pace.add(listener, LISTENER, Interest::Read)?;
            self.door.watched = true;
        }
        Ok(())
    }

    /// Somebody waits to be accepted.
    fn on_arrivals(&mut self) -> io::Result<()> {
        let delay = self.desk.house.settings.faults.accept_delay;
        if delay.is_zero() { self.accept() } else { self.pause(delay) }
    }

    fn accept(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPT_BATCH {
            let Some(listener) = &self.door.listener else { return Ok(()) };
            match listener.accept()? {
                Accepted::Connection(socket) => self.admit(socket),
                Accepted::Nobody => break,
                Accepted::Exhausted => {
                    self.desk.book().truth.accept_pauses += 1;
                    return self.pause(PAUSE);
                }
            }
        }
        Ok(())
    }

    fn watch_unix(&mut self) -> io::Result<()> {
        match &self.door.unix {
            Some(listener) => self.pace.add(listener, UNIX_LISTENER, Interest::Read),
            None => Ok(()),
        }
    }

    fn accept_unix(&mut self) -> io::Result<()> {
        for _ in 0..ACCEPT_BATCH {
            let Some(listener) = &self.door.unix else { return Ok(()) };
            match listener.accept()? {
                Accepted::Connection(socket) => self.admit(socket),
                Accepted::Nobody => break,
                Accepted::Exhausted => {
                    self.pace.remove(listener)?;
                    self.desk.book().truth.accept_pauses += 1;
                    self.alarms.push(Reverse((self.desk.clock.now() + PAUSE, Alarm::AcceptUnix)));
                    break;
                }
            }
        }
        Ok(())
    }

    /// Takes the listening socket out of the epoll: it would be ready all the time, and the thread would spin.
    fn pause(&mut self, how_long: Duration) -> io::Result<()> {
        if let Some(listener) = &self.door.listener {
            self.pace.remove(listener)?;
            self.door.watched = false;
            self.alarms.push(Reverse((self.desk.clock.now() + how_long, Alarm::Accept)));
        }
        Ok(())
    }

    /// Takes in a connection. One that cannot be watched is dropped, which its peer sees.
    fn admit(&mut self, socket: Socket) {
        let hold = self.desk.house.settings.tls_asks.hold;
        let Ok(transport) = Transport::new(socket, self.desk.house.tls.as_ref(), hold) else { return };
        let connection = Connection::new(transport);
        let key = self.connections.insert(Watched {
            connection,
            interest: Interest::Read,
            alarmed_at: 0,
            released_at: Stamp::ZERO,
        });
        let watching = match self.connections.get_mut(key) {
            Some(watched) => self.pace.add(&watched.connection, key.token(), Interest::Read),
            None => Ok(()),
        };
        if watching.is_err() {
            self.connections.remove(key);
            return;
        }
        self.desk.book().truth.connections += 1;
        self.desk.house.on_connection();
    }

    /// Does what the connection's state asks for after it has acted.
    fn settle(&mut self, key: Key) {
        let Some(watched) = self.connections.get_mut(key) else { return };
        if watched.connection.linger() {
            self.alarms.push(Reverse((self.desk.clock.now() + LINGER, Alarm::Linger(key))));
        }
        if matches!(watched.connection.phase(), Phase::Over | Phase::Reset) {
            self.close(key, Ending::ClientLeft);
            return;
        }
        let interest = watched.connection.interest();
        if interest != watched.interest {
            watched.interest = interest;
            if self.pace.modify(&watched.connection, key.token(), interest).is_err() {
                self.close(key, Ending::ClientLeft);
                return;
            }
        }
        if let Some(at) = watched.connection.held_until()
            && at != watched.released_at
        {
            watched.released_at = at;
            self.alarms.push(Reverse((at, Alarm::Release(key))));
        }
        if let Some(limit) = watched.connection.idle_limit().or(self.desk.house.settings.keep_alive)
            && let Some(answered) = watched.connection.idle_since()
            && answered > watched.alarmed_at
        {
            watched.alarmed_at = answered;
            let at = self.desk.clock.now() + limit;
            self.alarms.push(Reverse((at, Alarm::Idle(key, answered))));
        }
    }

    fn close(&mut self, key: Key, ending: Ending) {
        if let Some(watched) = self.connections.remove(key) {
            watched.connection.close(ending, &mut self.desk);
            self.desk.house.on_connection_end();
        }
    }
}
