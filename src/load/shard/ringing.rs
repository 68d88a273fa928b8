//! What is done at an exact time: users who go away, and slow readers.

use super::Shard;
use super::work::Work;
use crate::exchange::Arrival;
use crate::load::alarms::{Bell, Rung};
use crate::load::connection::State;
use crate::sys::socket::Received;
use crate::time::Stamp;

impl Shard {
    /// Has something done at `at` for the request on `slot`, if it is still there then.
    pub(super) fn set_alarm(&mut self, slot: usize, at: Stamp, bell: Bell) {
        let uses = self.connections[slot].uses;
        self.alarms.set(at, Rung { slot, uses, bell });
    }

    /// Does what is due.
    pub(super) fn ring(&mut self, work: &mut Work) {
        if self.alarms.next() == Stamp::MAX {
            return;
        }
        while let Some(Rung { slot, uses, bell }) = self.alarms.pop(self.pace.clock().now()) {
            let connection = &mut self.connections[slot];
            if connection.uses != uses || connection.state != State::Busy {
                continue;
            }
            match bell {
                Bell::Leave => {
                    let progress = connection.exchange.on_leaving(self.pace.clock().now());
                    self.after(work, slot, progress);
                }
                Bell::Read => {
                    self.go_on_reading(slot);
                    self.read(work, slot, false);
                }
            }
        }
    }

    /// One read of a slow reader: no more than there is room for, stamped when its user sees it. The kernel's stamp tells
    /// when the bytes came, which this user does not know.
    pub(super) fn read_slowly(&mut self, work: &mut Work, slot: usize, broken: bool) {
        let before = self.pace.clock().now();
        let connection = &mut self.connections[slot];
        let (Some(socket), Some(throttle)) = (&connection.socket, &mut connection.throttle) else { return };
        let room = throttle.room(before).min(self.buffer.len());
        if room == 0 && !broken {
            return self.pause_reading(slot);
        }
        // What is broken says so in the next read, however little it is to bring.
        let received = socket.receive(&mut self.buffer[..room.max(1)]);
        let now = self.pace.clock().now();
        match received {
            Ok(Received::Bytes(count)) => {
                throttle.take(count, now);
                let is_shut = throttle.room(now) == 0;
                connection.read_no += 1;
                connection.last_read = now;
                self.last_read = now;
                work.check.reads += 1;
                work.check.read_bytes += count as u64;
                let at = Arrival { read: now, kernel: None, read_no: connection.read_no, late: false };
                if is_shut {
                    self.pause_reading(slot);
                }
                self.on_bytes(work, slot, at, count);
            }
            Ok(Received::Nothing) if !broken => {}
            Ok(Received::End) => self.on_end_of_connection(work, slot, now, true),
            Ok(Received::Nothing) | Err(_) => self.on_end_of_connection(work, slot, now, false),
        }
    }

    /// Leaves what comes to the kernel until there is room again: watched on, a connection with bytes to read would be
    /// ready all the time, and a broken one even if nothing is asked of it.
    fn pause_reading(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        let (Some(socket), Some(throttle)) = (&connection.socket, &connection.throttle) else { return };
        if !connection.paused {
            // The socket is in the epoll as long as it is open; there is nothing that could fail.
            let _ = self.pace.remove(socket);
            connection.paused = true;
            let opens_at = throttle.opens_at();
            self.set_alarm(slot, opens_at, Bell::Read);
        }
    }

    /// Watches a connection again that was left alone.
    pub(super) fn go_on_reading(&mut self, slot: usize) {
        let token = self.token(slot);
        let connection = &mut self.connections[slot];
        let Some(socket) = connection.socket.as_ref().filter(|_| connection.paused) else { return };
        // It was watched before, so that the system has room for it.
        let _ = self.pace.add(socket, token, connection.interest());
        connection.paused = false;
    }
}
