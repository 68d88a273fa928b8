//! What a shard takes from the content events of an answer: counts, times, and, where a later turn repeats it, the text.

use super::work::Work;
use crate::api::Channel;
use crate::api::talk::{Fragment, Reply};
use crate::exchange::{ContentEvent, Sink};
use crate::load::gauges::Gauges;
use crate::metrics::Tally;
use crate::run::ShardCheck;

/// Listens to the content events of one read.
pub(crate) struct Ear<'a> {
    tally: &'a mut Tally,
    gauges: &'a Gauges,
    /// What the shard says of itself; of a slow reader it has nothing to say.
    check: Option<&'a mut ShardCheck>,
    last_content_read: &'a mut u64,
    times: Option<&'a mut Vec<u64>>,
}

impl<'a> Ear<'a> {
    /// An ear for the connection whose last content read and event times are `heard`, of a slow reader if `slow`: then
    /// events share a read because they were left to wait, which says nothing of the client.
    pub(crate) fn new(
        work: &'a mut Work,
        gauges: &'a Gauges,
        heard: (&'a mut u64, &'a mut Vec<u64>),
        slow: bool,
    ) -> Ear<'a> {
        Ear {
            tally: &mut work.tally,
            gauges,
            check: (!slow).then_some(&mut work.check),
            last_content_read: heard.0,
            times: work.leg.keep_chunks.then_some(heard.1),
        }
    }
}

impl Sink for Ear<'_> {
    const WANTS_TEXT: bool = false;

    #[inline]
    fn content_event(&mut self, event: &ContentEvent) {
        if let Some(check) = &mut self.check {
            check.events += 1;
            if *self.last_content_read == event.at.read_no {
                check.coalesced += 1;
                check.joined += u64::from(event.at.late);
            }
        }
        *self.last_content_read = event.at.read_no;
        self.tally.on_content(event.at.read, event.tokens);
        self.gauges.on_event();
        if let Some(times) = &mut self.times {
            times.push(event.at.read.as_nanos());
        }
    }
}

/// An ear that also keeps what was said, for the turn that repeats it. Of several choices the first is kept.
pub(crate) struct Gatherer<'a> {
    ear: Ear<'a>,
    reply: &'a mut Reply,
}

impl<'a> Gatherer<'a> {
    pub(crate) fn new(ear: Ear<'a>, reply: &'a mut Reply) -> Gatherer<'a> {
        Gatherer { ear, reply }
    }
}

impl Sink for Gatherer<'_> {
    const WANTS_TEXT: bool = true;

    #[inline]
    fn piece(&mut self, choice: u32, channel: Channel, text: &str) {
        if choice == 0 {
            self.reply.piece(channel, text);
        }
    }

    fn call(&mut self, choice: u32, fragment: &Fragment<'_>) {
        if choice == 0 {
            self.reply.call(fragment);
        }
    }

    #[inline]
    fn content_event(&mut self, event: &ContentEvent) {
        self.ear.content_event(event);
    }
}
