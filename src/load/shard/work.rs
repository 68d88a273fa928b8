//! The books of one leg on one shard: what is due, what was counted, which records wait to be written.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::exchange::{ContentEvent, Exchange, Sink};
use crate::load::agenda::{Agenda, Due, later};
use crate::load::gauges::Gauges;
use crate::load::leg::{Leg, ShardReport};
use crate::load::requests::Requests;
use crate::load::spool::Block;
use crate::metrics::tally::Gaps;
use crate::metrics::{Class, Flags, Kind, Outcome, Phase, Record, Tally};
use crate::run::{Example, ShardCheck};
use crate::time::Stamp;

/// E2E values kept for the cut of the level after a warm-up.
const E2E_KEPT_MAX: usize = 4096;
const EXAMPLES_MAX: usize = 32;

/// What belongs to one leg.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) leg: Arc<Leg>,
    pub(super) agenda: Agenda,
    pub(super) requests: Requests,
    pub(super) tally: Tally,
    pub(super) block: Block,
    pub(super) check: ShardCheck,
    pub(super) examples: Vec<Example>,
    /// Due, but without a permit yet; in the order of their plans.
    pub(super) waiting: VecDeque<Due>,
    pub(super) in_flight: usize,
    /// Nothing more is sent, and what is open is given up at this stamp.
    pub(super) give_up: Option<Stamp>,
    pub(super) window_start: Stamp,
    pub(super) end: Stamp,
    pub(super) last_plan: Option<Stamp>,
    pub(super) last_end: Option<Stamp>,
    pub(super) records: u64,
    pub(super) e2e_ns: Vec<u64>,
}

impl Work {
    pub(super) fn new(leg: Arc<Leg>, agenda: Agenda, requests: Requests) -> Work {
        Work {
            agenda,
            requests,
            tally: Tally::new(Stamp::ZERO),
            block: Block::default(),
            check: ShardCheck::default(),
            examples: Vec::new(),
            waiting: VecDeque::new(),
            in_flight: 0,
            give_up: None,
            window_start: Stamp::ZERO,
            end: Stamp::MAX,
            last_plan: None,
            last_end: None,
            records: 0,
            e2e_ns: Vec::new(),
            leg,
        }
    }

    /// The common start is known: everything that was laid out from zero moves there.
    pub(super) fn begin(&mut self, start: Stamp) {
        self.agenda.begin(start);
        self.tally.begin(start);
        self.window_start = start + self.leg.cut;
        self.end = later(start, self.leg.duration);
    }

    pub(super) fn is_over(&mut self) -> bool {
        self.in_flight == 0 && self.waiting.is_empty() && self.agenda.is_empty()
    }

    pub(super) fn next_send(&mut self) -> Stamp {
        self.agenda.next().unwrap_or(Stamp::MAX)
    }

    /// When the end of the leg has to be looked at.
    pub(super) fn next_end(&self) -> Stamp {
        self.give_up.unwrap_or(self.end)
    }

    pub(super) fn on_done(&mut self, record: &Record, exchange: &Exchange, times: &[u64]) {
        self.in_flight -= 1;
        if record.outcome.is_failure() {
            self.keep_example(record.outcome, exchange.message());
        }
        self.tally.on_done(record, exchange.gaps(), exchange.kernel_gaps(), self.window_start);
        if record.outcome.class != Class::Cancelled {
            self.last_end = self.last_end.max(Some(record.end));
        }
        if let (true, Some(e2e)) = (record.outcome.is_ok(), record.e2e_ns())
            && self.e2e_ns.len() < E2E_KEPT_MAX
        {
            self.e2e_ns.push(e2e);
        }
        self.keep_record(record, times);
    }

    /// A request that was planned and never sent.
    pub(super) fn on_unsent(&mut self, due: &Due, now: Stamp, class: Class) {
        let mut record = Record::planned(due.index, due.plan);
        record.phase = self.leg.phase;
        record.outcome = Outcome::new(class, Kind::None, 0);
        record.permit = now;
        record.start = now;
        record.end = now;
        record.flags.insert(Flags::FROM_PLAN);
        let none = Gaps::default();
        self.tally.on_done(&record, &none, &none, self.window_start);
        self.keep_record(&record, &[]);
    }

    pub(super) fn keep_record(&mut self, record: &Record, times: &[u64]) {
        self.records += 1;
        self.block.records.extend_from_slice(&record.encode());
        for at in times {
            self.block.chunks.extend_from_slice(&at.to_le_bytes());
        }
    }

    pub(super) fn keep_example(&mut self, outcome: Outcome, message: &str) {
        let known = self.examples.iter().any(|one| one.outcome == outcome);
        if !known && self.examples.len() < EXAMPLES_MAX && self.leg.phase == Phase::Measured {
            self.examples.push(Example { outcome, message: message.to_owned() });
        }
    }

    pub(super) fn into_report(self) -> ShardReport {
        ShardReport {
            tally: self.tally,
            check: self.check,
            examples: self.examples,
            records: self.records,
            last_plan: self.last_plan,
            last_end: self.last_end,
            e2e_ns: self.e2e_ns,
        }
    }
}

/// Listens to the content events of one read.
pub(super) struct Ear<'a> {
    tally: &'a mut Tally,
    gauges: &'a Gauges,
    check: &'a mut ShardCheck,
    last_content_read: &'a mut u64,
    times: Option<&'a mut Vec<u64>>,
}

impl<'a> Ear<'a> {
    /// An ear for the connection whose last content read and event times are `heard`.
    pub(super) fn new(
        work: &'a mut Work,
        gauges: &'a Gauges,
        heard: (&'a mut u64, &'a mut Vec<u64>),
    ) -> Ear<'a> {
        Ear {
            tally: &mut work.tally,
            gauges,
            check: &mut work.check,
            last_content_read: heard.0,
            times: work.leg.keep_chunks.then_some(heard.1),
        }
    }
}

impl Sink for Ear<'_> {
    const WANTS_TEXT: bool = false;

    #[inline]
    fn content_event(&mut self, event: &ContentEvent) {
        self.check.events += 1;
        if *self.last_content_read == event.at.read_no {
            self.check.coalesced += 1;
        }
        *self.last_content_read = event.at.read_no;
        self.tally.on_content(event.at.read, event.tokens);
        self.gauges.on_event();
        if let Some(times) = &mut self.times {
            times.push(event.at.read.as_nanos());
        }
    }
}
