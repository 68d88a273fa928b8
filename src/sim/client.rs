//! A connection of the simulation, and what a read of it does.

use std::collections::VecDeque;
use std::time::Duration;

use crate::api::talk::Reply;
use crate::exchange::{Arrival, Exchange, Progress};
use crate::load::virtually::{Alarms, Bell, Due, Ear, Gatherer, Gauges, REFUSED_PAUSE, Rung, Throttle, Work};
use crate::time::Stamp;
use crate::wire::json::Json;

/// One connection of the simulation: it always stands, and it takes no time.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) exchange: Exchange,
    pub(super) due: Due,
    /// Where its request goes.
    pub(super) route: usize,
    pub(super) busy: bool,
    /// How often the slot has been used, so that a late deadline or alarm does not hit the next request.
    pub(super) uses: u64,
    /// How long after it was sent the request is given up, if it is.
    pub(super) leaves_after: Option<Duration>,
    /// What its user reads slowly; `None` for one who reads all there is.
    pub(super) pipe: Option<Pipe>,
    pub(super) read_no: u64,
    pub(super) last_content_read: u64,
    pub(super) last_read: Stamp,
    pub(super) times: Vec<u64>,
    /// What was answered, where a later turn repeats it.
    pub(super) reply: Reply,
}

/// What the server has written and a slow reader not read yet. The modelled server writes on all the same: that its own
/// sending would come to a stop is not part of the model.
#[derive(Debug)]
pub(super) struct Pipe {
    pub(super) throttle: Throttle,
    pub(super) bytes: VecDeque<u8>,
    /// An alarm is set for when it may be read again.
    pub(super) waits: bool,
}

impl Client {
    pub(super) fn new() -> Client {
        Client {
            exchange: Exchange::new(),
            due: Due::default(),
            route: 0,
            busy: false,
            uses: 0,
            leaves_after: None,
            pipe: None,
            read_no: 0,
            last_content_read: u64::MAX,
            last_read: Stamp::ZERO,
            times: Vec::new(),
            reply: Reply::default(),
        }
    }

    pub(super) fn begin(&mut self, due: Due, route: usize, now: Stamp) {
        self.due = due;
        self.route = route;
        self.busy = true;
        self.uses += 1;
        self.last_read = now;
        self.last_content_read = u64::MAX;
        self.times.clear();
        self.reply.clear();
    }
}

/// One read of a client: everything that the server wrote at once.
pub(super) fn hear(
    client: &mut Client,
    at: Stamp,
    bytes: &[u8],
    json: &mut Json,
    work: &mut Work,
    gauges: &Gauges,
) -> Progress {
    client.read_no += 1;
    client.last_read = at;
    work.check.reads += 1;
    work.check.read_bytes += bytes.len() as u64;
    let arrival = Arrival { read: at, kernel: None, read_no: client.read_no, late: false };
    let heard = (&mut client.last_content_read, &mut client.times);
    let slow = client.pipe.is_some();
    if work.gathers_replies {
        let mut ear = Gatherer::new(Ear::new(work, gauges, heard, slow), &mut client.reply);
        return client.exchange.on_bytes(&arrival, bytes, json, &mut ear);
    }
    let mut ear = Ear::new(work, gauges, heard, slow);
    client.exchange.on_bytes(&arrival, bytes, json, &mut ear)
}

impl Pipe {
    pub(super) fn new(bytes_per_s: u64) -> Pipe {
        Pipe { throttle: Throttle::new(bytes_per_s), bytes: VecDeque::new(), waits: false }
    }
}

/// A slow reader reads what it may, and is called when it may again.
pub(super) fn drink(
    client: &mut Client,
    slot: usize,
    now: Stamp,
    work: &mut Work,
    (json, gauges, alarms): (&mut Json, &Gauges, &mut Alarms),
) -> Progress {
    let Some(pipe) = &mut client.pipe else { return Progress::Pending };
    let room = pipe.throttle.room(now).min(pipe.bytes.len());
    let read: Vec<u8> = pipe.bytes.drain(..room).collect();
    if room > 0 {
        pipe.throttle.take(room, now);
    }
    if !pipe.bytes.is_empty() && !pipe.waits {
        pipe.waits = true;
        let rung = Rung { slot, uses: client.uses as u32, bell: Bell::Read };
        alarms.set(pipe.throttle.opens_at(), rung);
    }
    if room == 0 {
        return Progress::Pending;
    }
    hear(client, now, &read, json, work, gauges)
}

/// Books a request that is over and makes its user ready again.
pub(super) fn settle(
    client: &mut Client,
    slot: usize,
    now: Stamp,
    work: &mut Work,
    permits: &mut u32,
    spare: &mut Vec<usize>,
    gauges: &Gauges,
) {
    let record = work.record_of(&client.exchange, (client.route, 0));
    work.on_done(&record, &client.exchange, &client.times);
    gauges.on_done(record.outcome);
    // An answer that takes no time would be asked for again at the same moment, for ever.
    let pause = if now == record.start { REFUSED_PAUSE } else { Duration::ZERO };
    work.go_on(&client.due, &record, &client.reply, (now, pause));
    client.busy = false;
    *permits += 1;
    spare.push(slot);
}
