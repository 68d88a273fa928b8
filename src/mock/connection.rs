//! One connection: requests in, one answer at a time out.
//!
//! Requests that arrive while an answer is being given, or while the client has not read the answers before, wait for
//! the end of that, and their time counts from then. A client that ends its side is taken to have gone, as most
//! servers do.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use super::account::{self, Account, Ending};
use super::answering::Answering;
use super::ask::{self, Ask};
use super::desk::Desk;
use super::face::Face;
use super::faults::{self, Delivery, Farewell, Fault};
use super::generation::{Bytes, Generation, Progress};
use super::jobs::Wish;
use super::reply::{Manner, Reply};
use super::request::{Inbox, Method, Refusal, Request, Step};
use super::route::{self, Answer};
use super::segments::Segments;
use super::transport::{Intake, Transport};
use super::words::Vocabulary;
use crate::model::keyed::Key;
use crate::model::{self, Emission};
use crate::sys::epoll::Interest;
use crate::time::Stamp;

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    transport: Transport,
    inbox: Inbox,
    work: Work,
    phase: Phase,
    /// Number of answers given.
    answered: u64,
    /// How the bytes of the answer at hand are portioned.
    segments: Segments,
    /// The head of the answer at hand is to be held back by this much.
    slow: Option<Duration>,
    hold: Option<Hold>,
    /// How long the connection may be idle after the answer at hand.
    idle_limit: Option<Duration>,
    /// It was closed for being idle.
    closed_idle: bool,
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

/// Bytes that are held back.
#[derive(Debug)]
struct Hold {
    until: Stamp,
    bytes: Vec<u8>,
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
        Connection {
            transport,
            inbox: Inbox::default(),
            work: Work::Idle,
            phase: Phase::Open,
            answered: 0,
            segments: Segments::Whole,
            slow: None,
            hold: None,
            idle_limit: None,
            closed_idle: false,
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.phase
    }

    /// What its socket is to be watched for.
    ///
    /// A client whose answers wait to be read is not heard before it reads them, so that nobody makes the server keep
    /// more than one answer. While one is being given it is: it may end its side.
    pub(super) fn interest(&self) -> Interest {
        match (self.transport.wants_room(), &self.work) {
            (false, _) => Interest::Read,
            (true, Work::Idle) if self.phase == Phase::Open => Interest::Write,
            (true, _) => Interest::ReadWrite,
        }
    }

    /// The number of answers given so far, if it waits for a request now.
    pub(super) fn idle_since(&self) -> Option<u64> {
        (self.phase == Phase::Open && matches!(self.work, Work::Idle)).then_some(self.answered)
    }

    /// How long it may be idle, where the last answer has set a time.
    pub(super) fn idle_limit(&self) -> Option<Duration> {
        self.idle_limit
    }

    /// When [`Connection::release`] is to be called.
    pub(super) fn held_until(&self) -> Option<Stamp> {
        self.transport.held_until().or_else(|| self.hold.as_ref().map(|hold| hold.until))
    }

    /// Bytes have come, or the end.
    pub(super) fn on_readable(&mut self, key: Key, desk: &mut Desk) {
        let before = desk.clock.now();
        let intake = self.transport.receive(&mut desk.buffer, &mut self.inbox, before);
        let now = desk.clock.now();
        if let Some(resumed) = self.transport.take_handshake() {
            let truth = &mut desk.book().truth;
            *(if resumed { &mut truth.tls_resumed } else { &mut truth.tls_full }) += 1;
        }
        if self.phase == Phase::Open {
            self.serve(key, now, desk);
        } else {
            if self.closed_idle && self.inbox.has_bytes() {
                self.closed_idle = false;
                desk.book().truth.unheard += 1;
            }
            self.inbox = Inbox::default();
        }
        match intake {
            Ok(Intake::Open) if !self.inbox.is_overfull() => {}
            Ok(_) | Err(_) => self.phase = Phase::Over,
        }
    }

    /// There is room in the socket.
    pub(super) fn on_writable(&mut self, key: Key, desk: &mut Desk) {
        self.or_over(Transport::flush);
        self.serve(key, desk.clock.now(), desk);
    }

    /// Tokens have come out of the model.
    pub(super) fn on_emission(&mut self, key: Key, emission: Emission, desk: &mut Desk) {
        let Work::Generation(answering) = &mut self.work else { return };
        // One batch may still hold tokens of the answer before this one.
        if answering.jobs.get(emission.choice as usize) != Some(&emission.key) {
            return;
        }
        if answering.account.events == 0 {
            let caches = desk.house.block_tokens() > 0;
            answering.on_cached(caches.then_some(emission.cached_tokens));
        }
        desk.bytes.clear();
        let now = desk.clock.now();
        let progress = answering.generation.on_emission(&emission, now, &mut desk.bytes);
        let now = desk.clock.now();
        let sent = self.hold.as_ref().map_or(now, |hold| now.max(hold.until));
        answering.note(sent, desk);
        let bytes = std::mem::take(&mut desk.bytes);
        let put = match progress {
            Progress::Done => self.put_end(now, Ending::Complete, &bytes, desk),
            Progress::Failed => self.put_end(now, Ending::Failed, &bytes, desk),
            _ => self.put(now, &bytes.event),
        };
        desk.bytes = bytes;
        if put.is_err() {
            return self.break_off(Work::Idle, Phase::Over, Ending::ClientLeft, desk);
        }
        let broken = Ending::BrokenOff;
        match progress {
            Progress::More => {}
            Progress::Done | Progress::Failed => {
                let now = desk.clock.now();
                self.serve(key, now, desk);
            }
            Progress::Close => self.break_off(Work::Idle, Phase::Ending, broken, desk),
            Progress::Reset => self.break_off(Work::Idle, Phase::Reset, broken, desk),
            Progress::Stall => self.break_off(Work::Silence, Phase::Open, broken, desk),
        }
    }

    /// Sends what was held back.
    pub(super) fn release(&mut self, key: Key, desk: &mut Desk) {
        if self.transport.held_until().is_some() {
            return self.or_over(Transport::release);
        }
        if let Some(hold) = self.hold.take() {
            self.or_over(|transport| transport.send(&hold.bytes));
            self.serve(key, desk.clock.now(), desk);
        }
    }

    /// Ends our side, because nobody has asked for anything for a while.
    pub(super) fn end_idle(&mut self) {
        self.phase = Phase::Ending;
        self.closed_idle = true;
    }

    /// Resets the connection, as if the server were gone.
    pub(super) fn go_down(&mut self, desk: &mut Desk) {
        self.break_off(Work::Idle, Phase::Reset, Ending::Stopped, desk);
    }

    /// Goes from ending to lingering as soon as that is possible; `true` if it did.
    pub(super) fn linger(&mut self) -> bool {
        let due = self.phase == Phase::Ending && self.hold.is_none() && !self.transport.wants_room();
        if due {
            self.phase = Phase::Lingering;
            self.or_over(Transport::end);
        }
        due
    }

    /// Closes, and forgets what was still to be generated.
    pub(super) fn close(mut self, ending: Ending, desk: &mut Desk) {
        let reset = self.phase == Phase::Reset;
        self.break_off(Work::Idle, Phase::Over, ending, desk);
        let truth = &mut desk.book().truth;
        truth.bytes += self.transport.sent_bytes;
        truth.partial_sends += self.transport.partial_sends;
        if reset {
            self.transport.reset();
        }
    }

    /// Answers requests as long as they are there, nothing else is being answered, and the answers before are sent.
    fn serve(&mut self, key: Key, now: Stamp, desk: &mut Desk) {
        while self.phase == Phase::Open
            && matches!(self.work, Work::Idle)
            && self.hold.is_none()
            && !self.transport.wants_room()
        {
            match self.inbox.next() {
                Ok(Step::Starved) => return,
                Ok(Step::Continue) => self.or_over(|t| t.send(b"HTTP/1.1 100 Continue\r\n\r\n")),
                Ok(Step::Request(request)) => {
                    desk.book().truth.requests += 1;
                    self.on_request(key, now, &request, desk);
                }
                Err(refusal) => {
                    desk.book().truth.requests += 1;
                    self.refuse(now, refusal, desk);
                }
            }
        }
    }

    fn refuse(&mut self, now: Stamp, refusal: Refusal, desk: &Desk) {
        let manner =
            Manner { chunks: true, keep_alive: false, head_only: false, served_by: desk.house.served_by() };
        self.reply(now, &Reply::refusal(refusal), manner);
    }

    fn on_request(&mut self, key: Key, now: Stamp, request: &Request, desk: &mut Desk) {
        let manner = Manner {
            chunks: request.head.chunks,
            keep_alive: request.head.keep_alive,
            head_only: request.head.method == Method::Head,
            served_by: desk.house.served_by(),
        };
        self.begin_answer(None);
        if route::is_generation(request) {
            return self.on_generation(key, now, (request, manner), desk);
        }
        let house = Arc::clone(&desk.house);
        match route::answer(request, house.terms(), house.wall_s(now)) {
            // Only generation requests generate.
            Answer::Generate(_) => {}
            Answer::Metrics => self.reply(now, &Reply::exposition(house.exposition()), manner),
            Answer::Reply(reply) => {
                // What would be true of a server that is ready.
                let cold = house.cold_for(now).filter(|_| reply.status == 200);
                let refusal = cold.map(|left| Reply::status(503, retry_after_s(left)));
                self.reply(now, &refusal.unwrap_or(reply), manner);
            }
            Answer::ResetPrefixCache => {
                desk.model.forget_prefixes(now);
                self.reply(now, &Reply::empty(), manner);
            }
            Answer::Truth { restart, requests } => {
                let truth = house.truth(restart);
                let told =
                    if requests { truth.with_requests(house.clock.on_monotonic()) } else { truth.to_json() };
                self.reply(now, &Reply::json(200, told.to_string()), manner);
            }
        }
    }

    /// A request to a generating endpoint: it has a number, may meet a fault, and gets an account.
    fn on_generation(&mut self, key: Key, now: Stamp, request: (&Request, Manner), desk: &mut Desk) {
        let (request, manner) = request;
        let house = Arc::clone(&desk.house);
        let number = desk.open();
        let faults = &house.settings.faults;
        let place = faults.of(house.settings.seed, number);
        let fault = place.map(|place| faults.requests[place].1);
        // Nobody asks for the mark of what is not kept.
        let mark = if house.settings.accounts_max > 0 { account::mark(&request.body) } else { 0 };
        let account = Account { mark, ..Account::new(number, fault, now) };
        if let Some(Fault::Answer(answer)) = fault
            && answer != faults::Answer::PlainJson
        {
            place.into_iter().for_each(|place| desk.book().truth.on_fault(place));
            return self.answer_wrongly(now, (answer, manner), account, desk);
        }
        match route::answer(request, house.terms(), house.wall_s(now)) {
            Answer::Generate(ask) => {
                // A whole answer to who asks for one is none of the faults.
                let met = ask.stream || fault != Some(Fault::Answer(faults::Answer::PlainJson));
                let account = Account { fault: fault.filter(|_| met), ..account };
                let blocks = ask::blocks(ask.surface, &request.body, house.block_tokens());
                if self.generate(key, (ask, manner, blocks), account, desk) && met {
                    place.into_iter().for_each(|place| desk.book().truth.on_fault(place));
                }
            }
            Answer::Reply(reply) => {
                desk.settle(Account { fault: None, status: reply.status, ..account }, Ending::Refused, None);
                self.reply(now, &reply, manner);
            }
            // Their paths are not those of generation.
            Answer::Metrics | Answer::ResetPrefixCache | Answer::Truth { .. } => {}
        }
    }

    /// Gives another answer than the one asked for.
    fn answer_wrongly(
        &mut self,
        now: Stamp,
        answer: (faults::Answer, Manner),
        mut account: Account,
        desk: &mut Desk,
    ) {
        let (answer, manner) = answer;
        let (ending, reply) = match answer {
            faults::Answer::Close | faults::Answer::Reset | faults::Answer::Silence => {
                (Ending::BrokenOff, None)
            }
            faults::Answer::Html | faults::Answer::PlainJson => (Ending::Failed, Some(Reply::html())),
            faults::Answer::Status { status, retry_after_s } => {
                (Ending::Refused, Some(Reply::status(status, retry_after_s)))
            }
        };
        account.status = reply.as_ref().map_or(0, |reply| reply.status);
        desk.settle(account, ending, None);
        match (answer, reply) {
            (_, Some(reply)) => self.reply(now, &reply, manner),
            (faults::Answer::Reset, None) => self.phase = Phase::Reset,
            (faults::Answer::Silence, None) => self.work = Work::Silence,
            (_, None) => self.phase = Phase::Ending,
        }
    }

    /// Begins an answer, unless the model turns the request away, which then meets no fault: whether it was taken.
    fn generate(
        &mut self,
        key: Key,
        ask: (Ask, Manner, Arc<[u64]>),
        mut account: Account,
        desk: &mut Desk,
    ) -> bool {
        let (ask, manner, blocks) = ask;
        let (house, now, fault) = (Arc::clone(&desk.house), account.arrived, account.fault);
        let plain_json = fault == Some(Fault::Answer(faults::Answer::PlainJson));
        let splits = fault == Some(Fault::Delivery(Delivery::SplitUtf8));
        let face = Face {
            surface: ask.surface,
            number: account.number,
            created: house.wall_s(now),
            model: house.model_json(),
            tool: ask.tool.clone(),
            thinks: ask.reasoning > 0,
            reasoning: house.settings.reasoning_field.name(),
            vocabulary: if splits { Vocabulary::MultiByte } else { Vocabulary::Plain },
        };
        desk.book().truth.streams += u64::from(ask.stream);
        account.stream = ask.stream && !plain_json;
        account.choices = ask.choices;
        account.prompt_tokens = ask.prompt_tokens;
        account.status = 200;
        let choices = ask.choices;
        let wish = Wish { owner: key.token(), number: account.number, ask: &ask, blocks: &blocks };
        let jobs = match desk.model.submit(now, wish) {
            Ok(jobs) => jobs,
            Err(refusal) => {
                self.turn_away(now, refusal, (manner, account), desk);
                return false;
            }
        };
        self.begin_answer(fault);
        let manner = Manner {
            keep_alive: manner.keep_alive && fault != Some(Fault::Farewell(Farewell::Announced)),
            ..manner
        };
        let ask = Ask { stream: account.stream, ..ask };
        let mut generation = Generation::new(face, ask, house.dress(), manner).with_fault(fault);
        let mut start = Vec::new();
        generation.on_start(now, &mut start);
        let last = vec![Stamp::ZERO; choices as usize];
        self.work = Work::Generation(Box::new(Answering { generation, jobs, account, last }));
        if self.put(now, &start).is_err() {
            self.phase = Phase::Over;
        }
        true
    }

    /// The model does not take the request.
    fn turn_away(&mut self, now: Stamp, refusal: model::Refusal, of: (Manner, Account), desk: &mut Desk) {
        let (manner, account) = of;
        let retry_after_s = match refusal {
            model::Refusal::Cold { ready_in } => retry_after_s(ready_in),
            model::Refusal::QueueFull => None,
        };
        let status = refusal.status();
        desk.settle(Account { fault: None, status, ..account }, Ending::Refused, None);
        self.reply(now, &Reply::status(status, retry_after_s), manner);
    }

    /// How the bytes of the next answer go out and what follows it.
    fn begin_answer(&mut self, fault: Option<Fault>) {
        self.segments = Segments::of(fault);
        self.slow = match fault.and_then(Fault::delivery) {
            Some(Delivery::SlowHead(time)) => Some(time),
            _ => None,
        };
        self.idle_limit = match fault.and_then(Fault::farewell) {
            Some(Farewell::Idle(time)) => Some(time),
            _ => None,
        };
    }

    fn reply(&mut self, now: Stamp, reply: &Reply, manner: Manner) {
        let mut bytes = Vec::with_capacity(reply.body.len() + 256);
        reply.write(manner, &mut bytes);
        if self.put(now, &bytes).is_err() {
            self.phase = Phase::Over;
        }
        self.answer_ends(manner.keep_alive);
    }

    /// Sends the end of the answer at hand. Its account is closed before the last bytes go: a client that has them
    /// finds it in the truth, and has no more requests in flight there than here.
    fn put_end(&mut self, now: Stamp, ending: Ending, bytes: &Bytes, desk: &mut Desk) -> io::Result<()> {
        // A whole answer is one write.
        let is_whole = bytes.after.is_empty();
        let (first, last): (&[u8], &[u8]) =
            if is_whole { (&[], &bytes.event) } else { (&bytes.event, &bytes.after) };
        self.put(now, first)?;
        if let Work::Generation(answering) = std::mem::replace(&mut self.work, Work::Idle) {
            let keeps_alive = answering.generation.keeps_alive();
            // An error event ends an answer of which other choices are still being generated.
            answering.settle(ending, desk);
            self.answer_ends(keeps_alive);
        }
        self.put(now, last)
    }

    fn answer_ends(&mut self, keep_alive: bool) {
        self.answered += 1;
        if !keep_alive && self.phase == Phase::Open {
            self.phase = Phase::Ending;
        }
    }

    /// Cancels what is being generated.
    fn break_off(&mut self, work: Work, phase: Phase, ending: Ending, desk: &mut Desk) {
        self.phase = phase;
        if let Work::Generation(answering) = std::mem::replace(&mut self.work, work) {
            answering.settle(ending, desk);
        }
    }

    /// Sends in portions, or holds back.
    fn put(&mut self, now: Stamp, bytes: &[u8]) -> io::Result<()> {
        if let Some(hold) = &mut self.hold {
            hold.bytes.extend_from_slice(bytes);
            return Ok(());
        }
        if let Some(time) = self.slow
            && !bytes.is_empty()
        {
            self.slow = None;
            let head = memchr::memmem::find(bytes, b"\r\n\r\n").unwrap_or(bytes.len());
            let (early, late) = bytes.split_at(head / 2);
            self.hold = Some(Hold { until: now + time, bytes: late.to_vec() });
            return self.transport.send(early);
        }
        self.segments.split(bytes).try_for_each(|portion| self.transport.send(portion))
    }

    fn or_over(&mut self, act: impl FnOnce(&mut Transport) -> io::Result<()>) {
        if act(&mut self.transport).is_err() {
            self.phase = Phase::Over;
        }
    }
}

/// Whole seconds after which a cold start is over.
fn retry_after_s(ready_in: Duration) -> Option<u32> {
    u32::try_from(ready_in.as_secs() + 1).ok()
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.transport.as_fd()
    }
}

/// How long a connection lingers for its peer to end.
pub(super) const LINGER: Duration = Duration::from_secs(1);
