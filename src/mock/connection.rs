//! One connection: requests in, one answer at a time out.
//!
//! Requests that arrive while an answer is being given wait for its end, and their time counts from then. A client
//! that ends its side is taken to have gone, as most servers do.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use super::ask::{Ask, CHOICES_MAX};
use super::event::Face;
use super::faults;
use super::fixed::{Emission, Fixed, Job};
use super::generation::{Bytes, Generation, Progress};
use super::house::House;
use super::keyed::Key;
use super::reply::{Manner, Reply};
use super::request::{Inbox, Method, Refusal, Request, Step};
use super::route::{self, Answer};
use super::transport::{Intake, Transport};
use super::truth::Truth;
use crate::sys::clock::RunClock;
use crate::time::Stamp;

/// What all connections of a thread share.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) house: Arc<House>,
    pub(super) clock: RunClock,
    pub(super) model: Fixed,
    pub(super) truth: Truth,
    /// Bytes of the event at hand.
    pub(super) bytes: Bytes,
    /// Where sockets are read into.
    pub(super) buffer: Box<[u8]>,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    transport: Transport,
    inbox: Inbox,
    work: Work,
    phase: Phase,
    /// Number of answers given.
    answered: u64,
}

/// What the connection is busy with.
#[derive(Debug)]
enum Work {
    /// Waiting for a request.
    Idle,
    /// An answer.
    Generation(Box<Answering>),
    /// An answer that will never come.
    Silence,
}

#[derive(Debug)]
struct Answering {
    generation: Generation,
    /// One per choice.
    jobs: Vec<Key>,
    /// When the request was complete.
    asked: Stamp,
    /// No content has been sent yet.
    fresh: bool,
    /// The last content event of each choice.
    last: Vec<Stamp>,
}

/// Where a connection is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Requests are taken.
    Open,
    /// No more requests; the connection ends when everything is sent.
    Ending,
    /// Our side has ended. The peer's bytes are thrown away until it ends too: closing with bytes unread would
    /// reset the connection and could take the answer with it (RFC 9112, section 9.6).
    Lingering,
    /// To be closed.
    Over,
    /// To be reset.
    Reset,
}

impl Connection {
    pub(super) fn new(transport: Transport) -> Connection {
        Connection { transport, inbox: Inbox::default(), work: Work::Idle, phase: Phase::Open, answered: 0 }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    pub(super) fn wants_room(&self) -> bool {
        self.transport.wants_room()
    }

    /// The number of answers given so far, if it waits for a request now.
    pub(super) fn idle_since(&self) -> Option<u64> {
        (self.phase == Phase::Open && matches!(self.work, Work::Idle)).then_some(self.answered)
    }

    /// Bytes have come, or the end.
    pub(super) fn on_readable(&mut self, key: Key, desk: &mut Desk) {
        let intake = self.transport.receive(&mut desk.buffer, &mut self.inbox);
        let now = desk.clock.now();
        if self.phase == Phase::Open {
            self.serve(key, now, desk);
        } else {
            self.inbox = Inbox::default();
        }
        match intake {
            Ok(Intake::Open) if !self.inbox.is_overfull() => {}
            Ok(_) | Err(_) => self.phase = Phase::Over,
        }
    }

    /// There is room in the socket.
    pub(super) fn on_writable(&mut self) {
        self.or_over(|transport| transport.flush());
    }

    /// Tokens have come out of the model.
    pub(super) fn on_emission(&mut self, key: Key, emission: Emission, desk: &mut Desk) {
        let Work::Generation(answering) = &mut self.work else { return };
        let Emission { choice, job, tokens, last, .. } = emission;
        // One batch may still hold tokens of the answer before this one.
        if answering.jobs.get(choice as usize) != Some(&job) {
            return;
        }
        desk.bytes.clear();
        let progress = answering.generation.on_tokens(choice, tokens, last, &mut desk.bytes);
        let now = desk.clock.now();
        if desk.bytes.tokens > 0 {
            answering.note(now, emission, desk);
        }
        let sent =
            self.transport.send(&desk.bytes.event).and_then(|()| self.transport.send(&desk.bytes.after));
        match (sent, progress) {
            (Ok(()), Progress::More) => {}
            (Ok(()), Progress::Done) => {
                desk.truth.completed += 1;
                let keeps_alive = answering.generation.keeps_alive();
                // An error event ends an answer of which other choices are still being generated.
                answering.cancel(&mut desk.model);
                self.work = Work::Idle;
                self.answer_ends(keeps_alive);
                self.serve(key, now, desk);
            }
            (Ok(()), Progress::Close) => self.break_off(Work::Idle, Phase::Ending, desk),
            (Ok(()), Progress::Stall) => self.break_off(Work::Silence, Phase::Open, desk),
            (Err(_), _) => self.break_off(Work::Idle, Phase::Over, desk),
            (Ok(()), Progress::Reset) => self.break_off(Work::Idle, Phase::Reset, desk),
        }
    }

    /// Ends our side once everything is sent.
    pub(super) fn end(&mut self) {
        self.phase = Phase::Ending;
    }

    /// Goes from ending to lingering as soon as that is possible; `true` if it did.
    pub(super) fn linger(&mut self) -> bool {
        let due = self.phase == Phase::Ending && !self.transport.wants_room();
        if due {
            self.phase = Phase::Lingering;
            self.or_over(Transport::end);
        }
        due
    }

    /// Closes, and forgets what was still to be generated.
    pub(super) fn close(mut self, desk: &mut Desk) {
        let reset = self.phase == Phase::Reset;
        self.break_off(Work::Idle, Phase::Over, desk);
        desk.truth.bytes += self.transport.sent_bytes;
        desk.truth.partial_sends += self.transport.partial_sends;
        if reset {
            self.transport.reset();
        }
    }

    /// Answers requests as long as they are there and nothing else is being answered.
    fn serve(&mut self, key: Key, now: Stamp, desk: &mut Desk) {
        while self.phase == Phase::Open && matches!(self.work, Work::Idle) {
            match self.inbox.next() {
                Ok(Step::Starved) => return,
                Ok(Step::Continue) => self.or_over(|t| t.send(b"HTTP/1.1 100 Continue\r\n\r\n")),
                Ok(Step::Request(request)) => {
                    desk.truth.requests += 1;
                    self.on_request(key, now, &request, desk);
                }
                Err(refusal) => {
                    desk.truth.requests += 1;
                    self.refuse(refusal);
                }
            }
        }
    }

    fn refuse(&mut self, refusal: Refusal) {
        let manner = Manner { chunks: true, keep_alive: false, head_only: false };
        self.reply(&Reply::refusal(refusal), manner);
    }

    fn on_request(&mut self, key: Key, now: Stamp, request: &Request, desk: &mut Desk) {
        let house = Arc::clone(&desk.house);
        let faults = &house.settings.faults;
        let manner = Manner {
            chunks: request.head.chunks,
            keep_alive: request.head.keep_alive && !faults.close_after_answer,
            head_only: request.head.method == Method::Head,
        };
        let number = route::is_generation(request).then(|| house.next_number());
        let fault = number.and_then(|number| faults.answer_to(number));
        match fault {
            Some(faults::Answer::Close) => self.phase = Phase::Ending,
            Some(faults::Answer::Html) => self.reply(&Reply::html(), manner),
            Some(faults::Answer::Reset) => self.phase = Phase::Reset,
            Some(faults::Answer::Silence) => self.work = Work::Silence,
            Some(faults::Answer::Status { status, retry_after_s }) => {
                self.reply(&Reply::status(status, retry_after_s), manner);
            }
            None | Some(faults::Answer::PlainJson) => {
                let created = house.wall_s(now);
                match route::answer(request, house.terms(), created) {
                    Answer::Reply(reply) => self.reply(&reply, manner),
                    Answer::Generate(ask) => {
                        let number = number.unwrap_or_default();
                        let face = Face { dialect: ask.dialect, number, created, model: house.model_json() };
                        let ask = Ask { stream: ask.stream && fault.is_none(), ..ask };
                        let generation = Generation::new(face, ask, house.dress(), manner);
                        self.generate(key, now, generation.with_cut(faults.cut_of(number)), desk);
                    }
                }
            }
        }
    }

    fn generate(&mut self, key: Key, now: Stamp, mut generation: Generation, desk: &mut Desk) {
        let Ask { stream, choices, tokens, .. } = generation.ask();
        desk.truth.generations += 1;
        desk.truth.streams += u64::from(stream);
        let mut start = Vec::new();
        generation.on_start(&mut start);
        let first_draw = generation.number().wrapping_mul(u64::from(CHOICES_MAX));
        let job = |choice| Job { owner: key, choice, draw: first_draw + u64::from(choice), tokens };
        let jobs = (0..choices).map(|choice| desk.model.submit(now, job(choice))).collect();
        let last = vec![Stamp::ZERO; choices as usize];
        let answering = Answering { generation, jobs, asked: now, fresh: true, last };
        self.work = Work::Generation(Box::new(answering));
        self.or_over(|transport| transport.send(&start));
    }

    fn reply(&mut self, reply: &Reply, manner: Manner) {
        let mut bytes = Vec::with_capacity(reply.body.len() + 256);
        reply.write(manner, &mut bytes);
        self.or_over(|transport| transport.send(&bytes));
        self.answer_ends(manner.keep_alive);
    }

    fn answer_ends(&mut self, keep_alive: bool) {
        self.answered += 1;
        if !keep_alive && self.phase == Phase::Open {
            self.phase = Phase::Ending;
        }
    }

    /// Cancels what is being generated.
    fn break_off(&mut self, work: Work, phase: Phase, desk: &mut Desk) {
        self.phase = phase;
        if let Work::Generation(answering) = std::mem::replace(&mut self.work, work) {
            desk.truth.broken += 1;
            answering.cancel(&mut desk.model);
        }
    }

    fn or_over(&mut self, act: impl FnOnce(&mut Transport) -> io::Result<()>) {
        if act(&mut self.transport).is_err() {
            self.phase = Phase::Over;
        }
    }
}

impl Answering {
    /// Stops what is still being generated.
    fn cancel(&self, model: &mut Fixed) {
        for job in &self.jobs {
            model.cancel(*job);
        }
    }

    /// Notes a content event about to be sent.
    fn note(&mut self, now: Stamp, emission: Emission, desk: &mut Desk) {
        let truth = &mut desk.truth;
        truth.events += 1;
        truth.tokens += u64::from(desk.bytes.tokens);
        truth.on_lateness(now - emission.due);
        if self.fresh {
            self.fresh = false;
            truth.on_ttft(now - self.asked);
        }
        let Some(last) = self.last.get_mut(emission.choice as usize) else { return };
        if *last != Stamp::ZERO {
            truth.on_itl(now - *last);
        }
        *last = now;
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }
}

/// How long a connection lingers for its peer to end.
pub(super) const LINGER: Duration = Duration::from_secs(1);
