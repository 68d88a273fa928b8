//! What was said: events to marks, gaps, token counts and an outcome. Knows nothing of HTTP.

mod reading;

use std::mem::offset_of;

use crate::api::{Finish, Frame};
use crate::exchange::usages::Usages;
use crate::exchange::{Arrival, Ask, ContentEvent, Sink};
use crate::metrics::record::Maybe;
use crate::metrics::tally::Gaps;
use crate::metrics::{Class, Flags, Kind, Outcome, Record, TokenSource};
use crate::sys::prefetch::prefetch;
use crate::time::Stamp;
use crate::wire::json::Json;
use crate::wire::sse;
use reading::{Reading, Said};

/// The answer of one exchange while it is being read.
// What each event needs is the first two lines of the cache and one each of the record and of the gaps, as in `Exchange`.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Answer {
    pub(super) dispatched: u64,
    /// Read number of the last content event.
    last_read_no: Maybe<u64>,
    reads: Reads,
    /// Running token count at the last event that told one.
    running: Running,

    /// The first choice, in most answers the only one.
    choice: Choice,
    /// `[DONE]` was seen, or the dialect's own last event.
    pub(super) done: bool,
    /// A failure is fixed; later events mean nothing.
    failed: bool,
    reasoning_seen: bool,
    /// A JSON object was read.
    spoke: bool,
    /// More than one choice is expected.
    several: bool,
    pub(super) ask: Ask,
    /// Further choices.
    others: Vec<Choice>,

    pub(super) record: Record,
    pub(super) gaps: Gaps,
    pub(super) kernel_gaps: Gaps,
    pub(super) usages: Usages,
    pub(super) message: String,
    /// The message of an `error` field, which is no event but means that the answer has failed.
    doom: Option<String>,
}

const _: () = assert!(offset_of!(Answer, ask) + Ask::HOT <= 128);

/// The reads of the response: what the last one brought came after the one before it.
#[derive(Clone, Copy, Debug, Default)]
struct Reads {
    last_no: Maybe<u64>,
    /// Stamps of the last read and of the one before; the start of the request before the first.
    last: Stamp,
    before: Stamp,
    kernel_last: Stamp,
    kernel_before: Stamp,
}

impl Reads {
    #[inline]
    fn on_read(&mut self, at: &Arrival) {
        let no = Maybe::from(at.read_no);
        if self.last_no != no {
            self.last_no = no;
            (self.before, self.last) = (self.last, at.read);
            (self.kernel_before, self.kernel_last) = (self.kernel_last, at.kernel.unwrap_or(at.read));
        }
    }
}

/// One choice of the answer.
#[derive(Clone, Copy, Debug, Default)]
struct Choice {
    last: Option<Stamp>,
    kernel_last: Option<Stamp>,
    /// Bytes of text told so far, where each event repeats all of it.
    told: u32,
    finish: Option<Finish>,
    /// The event being read has content for it.
    touched: bool,
}

/// Running token counts, from cumulative usage or from the tokens listed in each event.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    count: Maybe<u32>,
    at_first: Maybe<u32>,
    at_last: Maybe<u32>,
}

impl Answer {
    pub(super) fn new() -> Answer {
        Answer {
            ask: Ask::default(),
            record: Record::planned(0, Stamp::ZERO),
            gaps: Gaps::default(),
            kernel_gaps: Gaps::default(),
            usages: Usages::default(),
            message: String::new(),
            done: false,
            dispatched: 0,
            failed: false,
            doom: None,
            spoke: false,
            reasoning_seen: false,
            choice: Choice::default(),
            several: false,
            others: Vec::new(),
            last_read_no: Maybe::NONE,
            running: Running::default(),
            reads: Reads::default(),
        }
    }

    pub(super) fn begin(&mut self, ask: Ask, mut record: Record) {
        if ask.answers > 1 {
            record.flags.insert(Flags::SEVERAL_CHOICES);
        }
        self.record = record;
        self.gaps.clear();
        self.kernel_gaps.clear();
        // Room for the gaps is made before the request is sent, so that no event allocates.
        self.gaps.reserve(expected_events(&ask));
        self.usages = Usages::default();
        self.message.clear();
        self.done = false;
        self.dispatched = 0;
        self.failed = false;
        self.doom = None;
        self.spoke = false;
        self.reasoning_seen = false;
        self.several = ask.answers > 1;
        self.ask = ask;
        self.forget_choices();
        self.last_read_no = Maybe::NONE;
        self.running = Running::default();
        self.reads = Reads::default();
    }

    /// The request is on its way: no byte of the answer is older.
    pub(super) fn on_start(&mut self, now: Stamp) {
        self.record.start = now;
        self.reads = Reads { last: now, kernel_last: now, ..Reads::default() };
    }

    fn forget_choices(&mut self) {
        self.choice = Choice::default();
        self.others.clear();
        self.others.resize(self.ask.answers.max(1) as usize - 1, Choice::default());
    }

    /// Has what an event needs of this struct brought into the cache.
    #[inline]
    pub(super) fn prefetch(&self) {
        prefetch(&self.dispatched);
        prefetch(&self.choice);
        self.record.prefetch_content();
        self.gaps.prefetch();
        self.kernel_gaps.prefetch();
    }

    /// Bytes of the response were read.
    #[inline]
    pub(super) fn on_read(&mut self, at: &Arrival) {
        self.reads.on_read(at);
    }

    /// Makes room for gaps by kernel stamps, once it is known that there are such.
    pub(super) fn expect_kernel_gaps(&mut self) {
        self.kernel_gaps.reserve(expected_events(&self.ask));
    }

    /// Nothing that comes can change the outcome any more.
    pub(super) fn is_settled(&self) -> bool {
        self.done || self.failed
    }

    /// A failure is fixed.
    pub(super) fn has_failed(&self) -> bool {
        self.failed
    }

    fn choices(&self) -> impl Iterator<Item = &Choice> {
        std::iter::once(&self.choice).chain(&self.others)
    }

    /// The choice at this place; the first one for a place beyond all.
    #[inline]
    fn choice_at(&mut self, place: usize) -> &mut Choice {
        match place {
            0 => &mut self.choice,
            _ => self.others.get_mut(place - 1).unwrap_or(&mut self.choice),
        }
    }

    /// Every answer has a finish reason.
    pub(super) fn is_finished(&self) -> bool {
        self.choices().all(|choice| choice.finish.is_some())
    }

    /// Nothing but the end of the body says that the answer is complete.
    fn ends_with_body(&self) -> bool {
        self.ask.raw.as_ref().is_some_and(|shape| shape.ends_with_body())
    }

    pub(super) fn finish_reason(&self) -> Option<Finish> {
        self.choices().find_map(|choice| choice.finish)
    }

    /// Fixes a failure; the first one stays.
    pub(super) fn fail(&mut self, outcome: Outcome, now: Stamp, message: &str) {
        if !self.is_settled() {
            self.settle(outcome, now, message);
        }
    }

    fn settle(&mut self, outcome: Outcome, now: Stamp, message: &str) {
        self.failed = true;
        self.record.outcome = outcome;
        self.record.end = now;
        self.message.push_str(&message[..message.floor_char_boundary(SAID_BYTES_MAX)]);
        self.count_tokens();
    }

    /// The user goes away: what comes now is not looked at any more.
    pub(super) fn leave(&mut self, now: Stamp) {
        self.fail(self.outcome(Class::Cancelled, Kind::None), now, "");
    }

    /// The user has gone away.
    pub(super) fn has_left(&self) -> bool {
        self.failed && self.record.outcome.class == Class::Cancelled
    }

    /// One dispatched event of the stream.
    pub(super) fn on_event<S: Sink>(
        &mut self,
        at: &Arrival,
        event: &sse::Event<'_>,
        (json, frame): (&mut Json, &mut Frame),
        sink: &mut S,
    ) {
        let message = |json: &mut Json| {
            crate::api::error_message(json, event.data)
                .unwrap_or_else(|| String::from_utf8_lossy(event.data).into_owned())
        };
        if event.error_field {
            // To the standard an unknown field and no event: it dooms the answer, but the stream goes on to its end.
            return self.doom = Some(message(json));
        }
        self.dispatched += 1;
        if event.name == sse::Name::Error {
            let message = message(json);
            return self.fail_in_band(at.read, &message);
        }
        self.read_data(at, event.data, (json, frame), sink);
    }

    /// One line or event without a name.
    pub(super) fn on_data<S: Sink>(
        &mut self,
        at: &Arrival,
        data: &[u8],
        means: (&mut Json, &mut Frame),
        sink: &mut S,
    ) {
        self.dispatched += 1;
        self.read_data(at, data, means, sink);
    }

    /// The last event of a stream that ended cleanly without the blank line after it: accepted if it is whole.
    pub(super) fn on_tail<S: Sink>(
        &mut self,
        at: &Arrival,
        event: &sse::Event<'_>,
        (json, frame): (&mut Json, &mut Frame),
        sink: &mut S,
    ) {
        let data = event.data.trim_ascii();
        if data == b"[DONE]" || json.parse(data).is_ok_and(|document| document.root().is_object()) {
            self.record.flags.insert(Flags::FLUSHED_AT_EOF);
            self.on_event(at, event, (json, frame), sink);
        }
    }

    fn read_data<S: Sink>(
        &mut self,
        at: &Arrival,
        data: &[u8],
        (json, frame): (&mut Json, &mut Frame),
        sink: &mut S,
    ) {
        let trimmed = data.trim_ascii();
        match trimmed {
            b"[DONE]" => return self.on_done(at.read),
            b"" | b"null" | [b':', ..] => return self.record.flags.insert(Flags::KEEPALIVE_DATA),
            _ => {}
        }
        // Filled where it lies: a copy would wait for the stores before it.
        let mut said = Said::default();
        let read = Reading { answer: self, sink, said: &mut said }.event(json, frame, data);
        if read.is_err() {
            let message = format!("not a JSON object: {}", excerpt(trimmed));
            return self.fail(self.outcome(Class::Malformed, Kind::BadJson), at.read, &message);
        }
        self.spoke = true;
        if let Some(message) = &said.error {
            return self.fail_in_band(at.read, message);
        }
        let tokens = self.count_event(&said);
        if said.content {
            self.on_content(at, &said, tokens);
            let index = self.dispatched - 1;
            sink.content_event(&ContentEvent { at: *at, index, tokens: tokens.unwrap_or(1) });
            let enough = self.ask.leaves_with;
            if enough > 0 && self.running.count.get().unwrap_or(self.record.events) >= enough {
                return self.leave(at.read);
            }
        }
        if said.end {
            self.on_done(at.read);
        }
    }

    /// The stream says that it is over.
    fn on_done(&mut self, now: Stamp) {
        self.record.end = now;
        self.fail_if_doomed(now);
        self.done = true;
    }

    /// Tokens of the event by running usage, else by the tokens that it lists.
    fn count_event(&mut self, said: &Said) -> Option<u32> {
        let before = self.running.count.get();
        if let Some(completion) = said.completion {
            self.running.count = completion.into();
            return Some(completion.saturating_sub(before.unwrap_or(0))).filter(|n| *n > 0);
        }
        if said.tokens > 0 {
            self.running.count = before.unwrap_or(0).saturating_add(said.tokens).into();
            return Some(said.tokens);
        }
        None
    }

    fn on_content(&mut self, at: &Arrival, said: &Said, tokens: Option<u32>) {
        let record = &mut self.record;
        record.events = record.events.saturating_add(1);
        let read_no = Maybe::from(at.read_no);
        let joined = self.last_read_no == read_no;
        if joined {
            record.flags.insert(Flags::COALESCED);
            if record.events == 2 && at.late {
                record.flags.insert(Flags::FIRST_COALESCED);
            }
        }
        self.last_read_no = read_no;
        if record.first.is_none() {
            record.first = Some(at.read);
            record.kernel_first = at.kernel;
            self.running.at_first = tokens.and(self.running.count.get()).into();
        }
        if said.answer && record.answer.is_none() {
            record.answer = Some(at.read);
            record.kernel_answer = at.kernel;
        }
        record.last = Some(at.read);
        record.kernel_last = at.kernel;
        self.running.at_last = tokens.and(self.running.count.get()).into();
        // Who was there in time knows that the server sent them together. Events of several choices in one read say
        // nothing of the gaps of each.
        let joined = joined && at.late && !self.several;
        let (reads, gaps, kernel_gaps) = (&self.reads, &mut self.gaps, &mut self.kernel_gaps);
        let mut hear = |choice: &mut Choice| {
            if let Some(last) = choice.last {
                let gap = at.read.nanos_since(last);
                if joined {
                    gaps.record_joined(at.read.nanos_since(reads.before));
                } else {
                    gaps.record(gap);
                }
                gaps.record_per_token(gap, tokens.unwrap_or(0));
            }
            if let (Some(last), Some(now)) = (choice.kernel_last, at.kernel) {
                if joined {
                    kernel_gaps.record_joined(now.nanos_since(reads.kernel_before));
                } else {
                    kernel_gaps.record(now.nanos_since(last));
                }
            }
            choice.last = Some(at.read);
            choice.kernel_last = at.kernel;
        };
        if std::mem::take(&mut self.choice.touched) {
            hear(&mut self.choice);
        }
        if self.several {
            let others = self.others.iter_mut().filter(|choice| choice.touched);
            others.for_each(|choice| {
                choice.touched = false;
                hear(choice);
            });
        }
    }

    /// The stream ended in good order.
    pub(super) fn on_end_of_stream(&mut self, now: Stamp) {
        self.fail_if_doomed(now);
        if self.failed {
            return;
        }
        if !self.done {
            self.record.end = now;
        }
        let outcome = if !self.spoke {
            self.outcome(Class::Empty, Kind::EmptyStream)
        } else if !self.done && !self.is_finished() && !self.ends_with_body() {
            self.outcome(Class::Truncated, Kind::Incomplete)
        } else if self.record.events == 0 {
            self.outcome(Class::Empty, Kind::NoOutput)
        } else {
            return self.settle_ok();
        };
        self.settle(outcome, self.record.end, "");
    }

    /// The answer is complete; whether it is a success depends on its having content.
    pub(super) fn settle_ok(&mut self) {
        if self.record.events == 0 && !self.record.flags.contains(Flags::WHOLE_BODY) {
            let kind = if !self.spoke { Kind::EmptyStream } else { Kind::NoOutput };
            return self.settle(self.outcome(Class::Empty, kind), self.record.end, "");
        }
        if !self.record.flags.contains(Flags::WHOLE_BODY) {
            // Whether the user's own API has one is not known.
            if !self.done && self.ask.raw.is_none() {
                self.record.flags.insert(Flags::NO_DONE);
            }
            if self.finish_reason().is_none() {
                self.record.flags.insert(Flags::NO_FINISH_REASON);
            }
        }
        self.record.outcome = Outcome::ok(self.record.outcome.status);
        self.count_tokens();
    }

    /// A whole body that was asked for as one.
    pub(super) fn on_whole<S: Sink>(&mut self, at: &Arrival, body: &[u8], json: &mut Json, sink: &mut S) {
        self.record.end = at.read;
        if body.trim_ascii().is_empty() {
            return self.fail(self.outcome(Class::Empty, Kind::EmptyStream), at.read, "");
        }
        let mut said = Said::default();
        let read = Reading { answer: self, sink, said: &mut said }.whole(json, body);
        if read.is_err() {
            let message = format!("not a JSON object: {}", excerpt(body));
            return self.fail(self.outcome(Class::Malformed, Kind::BadJson), at.read, &message);
        }
        self.spoke = true;
        if let Some(message) = &said.error {
            return self.fail_in_band(at.read, message);
        }
        if !said.content {
            return self.fail(self.outcome(Class::Empty, Kind::NoOutput), at.read, "");
        }
        self.settle_ok();
    }

    /// A JSON or HTML body where a stream was asked for: an error object, or simply not a stream.
    pub(super) fn on_not_a_stream(&mut self, at: &Arrival, body: &[u8], json: &mut Json) {
        let mut nothing = super::NoSink;
        let mut said = Said::default();
        let read = Reading { answer: self, sink: &mut nothing, said: &mut said }.whole(json, body);
        let error = read.ok().and(said.error);
        self.usages = Usages::default();
        self.forget_choices();
        match error {
            Some(message) => self.fail_in_band(at.read, &message),
            None => {
                let message = format!("a stream was asked for, this came: {}", excerpt(body));
                self.fail(self.outcome(Class::Malformed, Kind::NotSse), at.read, &message);
            }
        }
    }

    /// Fails the answer if an `error` field stood in its stream.
    pub(super) fn fail_if_doomed(&mut self, now: Stamp) {
        if let Some(message) = self.doom.take() {
            self.fail_in_band(now, &message);
        }
    }

    fn fail_in_band(&mut self, now: Stamp, message: &str) {
        self.fail(self.outcome(Class::StreamError, Kind::InBandError), now, message);
    }

    fn outcome(&self, class: Class, kind: Kind) -> Outcome {
        Outcome::new(class, kind, self.record.outcome.status)
    }

    /// Token counts into the record: the server's, else the number of content events.
    fn count_tokens(&mut self) {
        let record = &mut self.record;
        let usage = self.usages.total(&self.ask).unwrap_or_default();
        record.prompt_tokens = usage.prompt;
        record.prompt_source = if usage.prompt.is_some() { TokenSource::Usage } else { TokenSource::Unknown };
        record.cached_tokens = usage.cached.into();
        record.reasoning_tokens = usage.reasoning.into();
        (record.output_tokens, record.output_source) = match usage.completion {
            Some(n) => (Some(n), TokenSource::Usage),
            None if record.events > 0 => (Some(record.events), TokenSource::Events),
            None => (None, TokenSource::Unknown),
        };
        record.stall_ns = self.gaps.stall().into();
        record.kernel_stall_ns = self.kernel_gaps.stall().into();
        if let (Some(first), Some(last)) = (self.running.at_first.get(), self.running.at_last.get()) {
            record.tokens_after_first = last.saturating_sub(first).into();
        }
        if usage.reasoning.is_some_and(|n| n > 0) && !self.reasoning_seen {
            record.flags.insert(Flags::HIDDEN_REASONING);
        }
        let n = record.output_tokens.unwrap_or(0);
        if n > 1 && record.events == 1 {
            record.flags.insert(Flags::SINGLE_CHUNK);
        }
        if self.ask.max_tokens > 0 && n != self.ask.max_tokens.saturating_mul(self.ask.answers) {
            record.flags.insert(Flags::LENGTH_OFF);
        }
    }
}

/// Most bytes kept of what a server says of a failure.
pub(super) const SAID_BYTES_MAX: usize = 1 << 10;

/// Room to reserve for gaps: what was asked for, within reason.
fn expected_events(ask: &Ask) -> usize {
    const RESERVED_MAX: u32 = 4096;
    ask.max_tokens.saturating_mul(ask.answers).min(RESERVED_MAX) as usize
}

/// The beginning of some bytes, readable on one line.
fn excerpt(bytes: &[u8]) -> String {
    const EXCERPT_BYTES: usize = 120;
    let cut = &bytes[..bytes.len().min(EXCERPT_BYTES)];
    let mut text: String =
        String::from_utf8_lossy(cut).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if bytes.len() > EXCERPT_BYTES {
        text.push('…');
    }
    text
}
