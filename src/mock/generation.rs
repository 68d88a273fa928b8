//! One answer in the making: emissions of the model in, bytes out. Pure: it owns neither time nor socket.
//!
//! What a fault does to the contents of an answer is done here; what it does to the connection is `connection`'s.

mod broken;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use super::ask::{Ask, Surface};
use super::event::{self, Framing, Template};
use super::face::{Channel, Counts, Face, Piece, Times, Whole};
use super::faults::{Break, Delivery, Fault, Flaw};
use super::reply::{self, HTML, Manner, Reply};
use super::settings::{Role, Usage};
use crate::model::Emission;
use crate::time::Stamp;

/// How an answer is dressed; the same for all answers of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dress {
    pub(super) role: Role,
    /// The head waits for the first event.
    pub(super) late_head: bool,
    pub(super) usage: Usage,
}

/// An answer in the making.
#[derive(Debug)]
pub(super) struct Generation {
    face: Face,
    ask: Ask,
    dress: Dress,
    manner: Manner,
    fault: Option<Fault>,
    /// When the request was complete.
    asked: Stamp,
    /// When the first tokens came.
    first: Option<Stamp>,
    /// Prompt tokens that came out of a cache.
    cached: Option<u32>,
    choices: Vec<Choice>,
    /// Choices that have not ended.
    open: u32,
    head_written: bool,
    /// Content events so far.
    events: u64,
    /// What is held back to be sent together.
    held: Bytes,
}

#[derive(Debug, Default)]
struct Choice {
    /// Tokens so far.
    sent: u32,
    /// Says whose turn it is.
    opened: bool,
    template: Option<Template>,
}

/// Bytes to send; cleared by the caller.
#[derive(Debug, Default)]
pub(super) struct Bytes {
    /// The event.
    pub(super) event: Vec<u8>,
    /// What follows it in a write of its own: usage and the end of the stream.
    pub(super) after: Vec<u8>,
    /// The content events in `event`; for a whole answer one with all tokens.
    pub(super) content: Vec<Content>,
}

/// A content event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) choice: u32,
    pub(super) tokens: u32,
    /// When its tokens were due.
    pub(super) due: Stamp,
}

/// How far an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// It breaks off: the connection ends once the bytes are sent.
    Close,
    /// It is whole.
    Done,
    /// It ends in good order, but is not what was asked for.
    Failed,
    /// More will come.
    More,
    /// It breaks off: the connection is reset.
    Reset,
    /// Nothing more will come, and the connection stays open.
    Stall,
}

impl Bytes {
    pub(super) fn clear(&mut self) {
        self.event.clear();
        self.after.clear();
        self.content.clear();
    }
}

impl Generation {
    pub(super) fn new(face: Face, ask: Ask, dress: Dress, manner: Manner) -> Generation {
        Generation {
            choices: (0..ask.choices).map(|_| Choice::default()).collect(),
            open: ask.choices,
            face,
            ask,
            dress,
            manner,
            fault: None,
            asked: Stamp::ZERO,
            first: None,
            cached: None,
            head_written: false,
            events: 0,
            held: Bytes::default(),
        }
    }

    /// Lets something be wrong with it.
    pub(super) fn with_fault(mut self, fault: Option<Fault>) -> Generation {
        self.fault = fault;
        self
    }

    /// What was asked for.
    pub(super) fn ask(&self) -> &Ask {
        &self.ask
    }

    /// Whether the connection can be used again afterwards.
    pub(super) fn keeps_alive(&self) -> bool {
        self.manner.keep_alive && (self.manner.chunks || !self.ask.stream)
    }

    /// The request was complete at `now`. Appends what is sent on arrival, before any token.
    pub(super) fn on_start(&mut self, now: Stamp, out: &mut Vec<u8>) {
        self.asked = now;
        if !self.ask.stream {
            return;
        }
        let early_role = self.dress.role == Role::Early && self.has_opening();
        // A head can only be slow if it comes before the rest.
        let slow_head = matches!(self.delivery(), Some(Delivery::SlowHead(_)));
        if early_role || slow_head || !self.dress.late_head {
            self.write_head(out);
        }
        if early_role {
            for choice in 0..self.ask.choices {
                self.write_opening(choice, out);
            }
        }
    }

    /// Prompt tokens that the model had in its cache; to be told before the first emission.
    pub(super) fn on_cached(&mut self, tokens: Option<u32>) {
        self.cached = tokens;
    }

    /// Appends what an emission gives.
    pub(super) fn on_emission(&mut self, emission: &Emission, now: Stamp, out: &mut Bytes) -> Progress {
        let Emission { choice, tokens, last, due, .. } = *emission;
        let Some(place) = self.choices.get(choice as usize) else { return Progress::More };
        let from = place.sent;
        self.first.get_or_insert(now);
        if self.ask.stream {
            for piece in self.pieces(emission, from).iter().filter(|piece| piece.tokens > 0) {
                let is_last = last && self.open == 1 && piece.from + piece.tokens == from + tokens;
                if let ControlFlow::Break(progress) = self.on_piece(piece, is_last, out) {
                    return progress;
                }
                if self.flaw() != Some(Flaw::Empty) {
                    out.content.push(Content { choice, tokens: piece.tokens, due });
                }
            }
        }
        self.choices[choice as usize].sent = from + tokens;
        self.open -= u32::from(last);
        if self.ask.stream && last {
            self.write_finish(choice, &mut out.event);
        }
        let progress = match self.open {
            1.. => Progress::More,
            0 if self.ask.stream => {
                self.write_tail(now, &mut out.after);
                if self.is_spoiled() { Progress::Failed } else { Progress::Done }
            }
            0 => self.write_whole(due, now, out),
        };
        if let Some(Delivery::Bundle(events)) = self.delivery()
            && self.ask.stream
        {
            self.bundle(events, progress, out);
        }
        progress
    }

    /// An emission in pieces of one channel each: reasoning, then the answer. Either may be without tokens.
    fn pieces(&self, emission: &Emission, from: u32) -> [Piece; 2] {
        let Emission { choice, tokens, last, .. } = *emission;
        let reasoning = self.ask.reasoning;
        let thought = reasoning.saturating_sub(from).min(tokens);
        let channel = if self.ask.tool.is_some() { Channel::Tool } else { Channel::Text };
        let piece = |channel, from: u32, nth, tokens| Piece {
            choice,
            channel,
            from,
            nth,
            tokens,
            end: None,
            padding: 0,
        };
        let answer = from + thought;
        let mut rest = piece(channel, answer, answer - reasoning.min(answer), tokens - thought);
        if channel == Channel::Tool && self.ask.surface.is_ollama() {
            // A call comes whole, with its last token.
            let all = from + tokens - reasoning.min(from + tokens);
            rest = piece(channel, reasoning, 0, if last { all } else { 0 });
        }
        let mut pieces = [piece(Channel::Reasoning, from, from, thought), rest];
        let (first, final_one) = (usize::from(thought == 0), usize::from(tokens > thought));
        if let Some(Delivery::Giant(bytes)) = self.delivery()
            && self.events == 0
        {
            pieces[first].padding = bytes;
        }
        // The arguments of a tool call are closed by their last token, whatever becomes of the finish reason.
        if last && (channel == Channel::Tool || self.flaw() != Some(Flaw::NoFinish)) {
            pieces[final_one].end = Some(self.ask.finish);
        }
        pieces
    }

    fn on_piece(&mut self, piece: &Piece, is_last: bool, out: &mut Bytes) -> ControlFlow<Progress> {
        if let Some(cut) = self.fault.and_then(Fault::cut)
            && (cut.after_events == self.events || is_last)
        {
            return ControlFlow::Break(self.break_stream(cut.how, piece, out));
        }
        if self.flaw() != Some(Flaw::Empty) {
            self.write_event(piece, &mut out.event);
            self.events += 1;
        }
        ControlFlow::Continue(())
    }

    fn write_event(&mut self, piece: &Piece, out: &mut Vec<u8>) {
        self.write_head(out);
        self.open_choice(piece.choice, out);
        if piece.nth == 0 && self.ask.surface.has_parts() {
            let mut payload = Vec::new();
            self.face.open_part(piece, &mut payload);
            event::frame(self.framing(), &payload, out);
        }
        if self.delivery() == Some(Delivery::Comments) && !self.ask.surface.is_ollama() {
            event::frame(self.framing(), b": keep-alive\n\n", out);
        }
        let framing = self.framing();
        // The first fragment of a tool's arguments opens them.
        let opens = piece.channel == Channel::Tool && piece.nth <= 1;
        let is_alone = self.continuous_usage() || self.ask.surface.differs_by_event();
        if opens || piece.end.is_some() || piece.padding > 0 || is_alone {
            let usage = self.usage_so_far(piece.choice, piece.from + piece.tokens);
            let mut payload = Vec::new();
            self.face.content(piece, usage, &mut payload);
            event::frame(framing, &payload, out);
            return;
        }
        let slot = &mut self.choices[piece.choice as usize].template;
        if !slot.as_ref().is_some_and(|template| template.fits(piece)) {
            *slot = Some(Template::new(&self.face, piece, framing));
        }
        if let Some(template) = slot {
            out.extend_from_slice(template.patched(piece.from));
        }
    }

    fn write_head(&mut self, out: &mut Vec<u8>) {
        if self.head_written {
            return;
        }
        self.head_written = true;
        let content_type = match self.ask.surface {
            _ if self.flaw() == Some(Flaw::WrongType) => HTML,
            surface if surface.is_ollama() => "application/x-ndjson",
            _ => "text/event-stream; charset=utf-8",
        };
        let manner = Manner { keep_alive: self.keeps_alive(), ..self.manner };
        reply::write_stream_head(content_type, manner, out);
    }

    /// Whether there is an event before all text.
    fn has_opening(&self) -> bool {
        self.ask.surface == Surface::Chat || self.ask.surface.has_parts()
    }

    /// Says whose turn it is before the first event of a choice. Text completions have no roles, and lines of Ollama
    /// say so all the time. Where parts are opened, the answer is, too.
    fn open_choice(&mut self, choice: u32, out: &mut Vec<u8>) {
        let is_new = !std::mem::replace(&mut self.choices[choice as usize].opened, true);
        let is_now = match self.dress.role {
            Role::Early => false,
            Role::First => self.has_opening(),
            Role::None => self.ask.surface.has_parts(),
        };
        if is_new && is_now {
            self.write_opening(choice, out);
        }
    }

    fn write_opening(&self, choice: u32, out: &mut Vec<u8>) {
        let usage = match self.ask.surface.has_parts() {
            true => self.gives_usage().then(|| self.counts_of(0, 0)),
            false => self.usage_so_far(choice, 0),
        };
        let mut payload = Vec::new();
        self.face.open(choice, usage, &mut payload);
        event::frame(self.framing(), &payload, out);
    }

    /// Appends the finish reason of a choice where its last content event does not have it.
    fn write_finish(&mut self, choice: u32, out: &mut Vec<u8>) {
        let is_empty = self.flaw() == Some(Flaw::Empty);
        let apart = is_empty || self.ask.tool.is_some();
        let surface = self.ask.surface;
        if surface.has_parts() && !is_empty && self.flaw() != Some(Flaw::NoFinish) {
            let mut payload = Vec::new();
            self.face.close_part(&self.whole(self.asked), &mut payload);
            return event::frame_all(self.framing(), &payload, out);
        }
        if !apart || self.flaw() == Some(Flaw::NoFinish) || surface.has_parts() || surface.ends_in_one_event()
        {
            return;
        }
        self.write_head(out);
        self.open_choice(choice, out);
        let sent = self.choices[choice as usize].sent;
        let mut payload = Vec::new();
        if surface == Surface::Sglang {
            self.face.sglang_finish(&self.whole(self.asked), &mut payload);
        } else {
            self.face.finish(choice, self.ask.finish, self.usage_so_far(choice, sent), &mut payload);
        }
        event::frame(self.framing(), &payload, out);
    }

    fn write_tail(&mut self, now: Stamp, out: &mut Vec<u8>) {
        self.write_head(out);
        let framing = self.framing();
        let mut payload = Vec::new();
        let whole = self.whole(now);
        let [ends, says_why] = [&[Flaw::NoDone, Flaw::NoFinish][..], &[Flaw::NoFinish]]
            .map(|without| !self.flaw().is_some_and(|flaw| without.contains(&flaw)));
        match self.ask.surface {
            Surface::Chat | Surface::Text if self.gives_usage() => {
                self.face.usage(self.counts(), &mut payload);
            }
            Surface::Messages if says_why => self.face.message_reason(&whole, &mut payload),
            Surface::OllamaChat | Surface::OllamaGenerate if ends => {
                self.face.ollama_done(&whole, &mut payload);
            }
            Surface::LlamaCpp if ends => self.face.llama_end(&whole, &mut payload),
            Surface::Responses if ends => self.face.response_end(&whole, &mut payload),
            _ => {}
        }
        event::frame_all(framing, &payload, out);
        payload.clear();
        match self.ask.surface {
            Surface::Messages if ends => self.face.message_stop(&mut payload),
            surface if surface.has_done() && ends => payload.extend_from_slice(b"data: [DONE]\n\n"),
            _ => {}
        }
        event::frame_all(framing, &payload, out);
        event::write_end(framing, out);
    }

    fn write_whole(&mut self, due: Stamp, now: Stamp, out: &mut Bytes) -> Progress {
        let whole = self.whole(now);
        let mut body = Vec::new();
        self.face.whole(&whole, &mut body);
        let how = self.fault.and_then(Fault::cut).map(|cut| cut.how);
        if how == Some(Break::ErrorEvent) {
            Reply::status(500, None).write(self.manner, &mut out.event);
            return Progress::Failed;
        }
        if how == Some(Break::BadJson) {
            body.truncate(body.len() / 2);
        }
        let mut reply = Reply::json(200, body);
        if self.flaw() == Some(Flaw::WrongType) {
            reply.content_type = HTML;
        }
        reply.write(self.manner, &mut out.event);
        let half = out.event.len() / 2;
        match how {
            None => {
                let made = if self.ask.surface == Surface::Embeddings { 0 } else { whole.tokens };
                out.content.push(Content { choice: 0, tokens: made * whole.choices, due });
                return if self.is_spoiled() { Progress::Failed } else { Progress::Done };
            }
            Some(Break::BadJson | Break::ErrorEvent) => return Progress::Failed,
            Some(Break::Close | Break::Half | Break::Reset | Break::Stall) => out.event.truncate(half),
        }
        match how {
            Some(Break::Reset) => Progress::Reset,
            Some(Break::Stall) => Progress::Stall,
            _ => Progress::Close,
        }
    }

    /// Holds events back until there are as many as are to be sent together, or no more come.
    fn bundle(&mut self, events: u32, progress: Progress, out: &mut Bytes) {
        self.held.event.append(&mut out.event);
        self.held.content.append(&mut out.content);
        if progress != Progress::More || self.held.content.len() >= events as usize {
            out.event.append(&mut self.held.event);
            out.content.append(&mut self.held.content);
        }
    }

    fn framing(&self) -> Framing {
        Framing { chunks: self.manner.chunks, crlf: self.delivery() == Some(Delivery::Crlf) }
    }

    fn delivery(&self) -> Option<Delivery> {
        self.fault.and_then(Fault::delivery)
    }

    fn flaw(&self) -> Option<Flaw> {
        self.fault.and_then(Fault::flaw)
    }

    fn gives_usage(&self) -> bool {
        let wished = match self.dress.usage {
            Usage::Always => true,
            Usage::Asked => !self.ask.stream || self.ask.include_usage,
            Usage::Never => false,
        };
        wished && self.flaw() != Some(Flaw::NoUsage)
    }

    fn continuous_usage(&self) -> bool {
        self.ask.continuous_usage && self.gives_usage()
    }

    /// The usage so far in one choice, where each event is to carry it.
    fn usage_so_far(&self, choice: u32, completion: u32) -> Option<Counts> {
        debug_assert!(choice < self.ask.choices);
        self.continuous_usage().then(|| self.counts_of(completion, completion.min(self.ask.reasoning)))
    }

    fn counts(&self) -> Counts {
        if self.flaw() == Some(Flaw::Empty) {
            return self.counts_of(0, 0);
        }
        let completion = self.choices.iter().map(|choice| choice.sent).sum();
        let reasoning = self.choices.iter().map(|choice| choice.sent.min(self.ask.reasoning)).sum();
        self.counts_of(completion, reasoning)
    }

    fn counts_of(&self, completion: u32, reasoning: u32) -> Counts {
        Counts {
            prompt: self.ask.prompt_tokens,
            completion,
            cached: self.cached,
            reasoning: (self.ask.reasoning > 0).then_some(reasoning),
        }
    }

    fn whole(&self, now: Stamp) -> Whole {
        let first = self.first.unwrap_or(now);
        Whole {
            choices: self.ask.choices,
            reasoning: self.ask.reasoning,
            tokens: if self.flaw() == Some(Flaw::Empty) { 0 } else { self.ask.tokens },
            finish: (self.flaw() != Some(Flaw::NoFinish)).then_some(self.ask.finish),
            usage: self.gives_usage().then(|| self.counts()),
            times: Times { prompt: first - self.asked, tokens: now - first },
        }
    }
}
