//! Which of our limits a request passes next. Pure: the wheel that watches them is `deadlines`.

use std::time::Duration;

use crate::exchange::{Exchange, Waiting};
use crate::load::agenda::later;
use crate::load::leg::Spans;
use crate::metrics::TimeoutPhase;
use crate::time::Stamp;

/// How long the end of the framing is awaited after `[DONE]` before the connection is given up.
const LINGER: Duration = Duration::from_secs(1);

/// Where a request stands, as far as limits go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    /// There is no connection yet.
    connecting: bool,
    start: Stamp,
    last_read: Stamp,
    waiting: Waiting,
}

impl Limit {
    /// Of a request that has a connection.
    pub(crate) fn of(exchange: &Exchange, last_read: Stamp) -> Limit {
        let (start, waiting) = (exchange.record().start, exchange.waiting_for());
        Limit { connecting: false, start, last_read, waiting }
    }

    /// The same with or without a connection.
    pub(crate) fn connecting(self, connecting: bool) -> Limit {
        Limit { connecting, ..self }
    }
}

/// When the request passes its next limit, and which one that is.
pub(crate) fn next_limit(limits: &Spans, of: Limit) -> (Stamp, TimeoutPhase) {
    let total = (later(of.start, limits.total), TimeoutPhase::Total);
    let running = match of.waiting.phase {
        _ if of.connecting => (later(of.start, limits.connect), TimeoutPhase::Connect),
        None => (of.waiting.since + LINGER, TimeoutPhase::Gap),
        // Silence is silence of the connection: a keep-alive is a sign of life.
        Some(TimeoutPhase::Gap) => (later(of.last_read, limits.gap), TimeoutPhase::Gap),
        Some(phase) => (later(of.waiting.since, limits.first), phase),
    };
    if total.0 < running.0 { total } else { running }
}
