//! One event being read: what the dialect reports of it, and whose it is.

use std::sync::Arc;

use super::Answer;
use crate::api::talk::Fragment;
use crate::api::{Channel, Finish, Frame, NotAnObject, Reader, Shape, Usage};
use crate::exchange::Sink;
use crate::wire::json::Json;

/// What one event said, gathered while it is read.
#[derive(Default)]
pub(super) struct Said {
    pub(super) content: bool,
    pub(super) answer: bool,
    pub(super) error: Option<String>,
    pub(super) completion: Option<u32>,
    pub(super) tokens: u32,
    /// Nothing more will come.
    pub(super) end: bool,
}

/// One event being read: the dialect reports its parts here.
pub(super) struct Reading<'a, S> {
    pub(super) answer: &'a mut Answer,
    pub(super) sink: &'a mut S,
    pub(super) said: &'a mut Said,
}

impl<S: Sink> Reading<'_, S> {
    pub(super) fn event(
        &mut self,
        json: &mut Json,
        frame: &mut Frame,
        data: &[u8],
    ) -> Result<(), NotAnObject> {
        match self.answer.ask.raw.take() {
            Some(shape) => self.raw(shape, json, data),
            None => self.answer.ask.dialect.read_event(json, frame, data, self),
        }
    }

    pub(super) fn whole(&mut self, json: &mut Json, body: &[u8]) -> Result<(), NotAnObject> {
        match self.answer.ask.raw.take() {
            Some(shape) => self.raw(shape, json, body),
            None => self.answer.ask.dialect.read_whole(json, body, self),
        }
    }

    /// The shape is laid aside meanwhile: it is asked for parts that are reported to its owner.
    fn raw(&mut self, shape: Arc<Shape>, json: &mut Json, data: &[u8]) -> Result<(), NotAnObject> {
        let read = shape.read(json, data, self);
        self.answer.ask.raw = Some(shape);
        read
    }

    /// With one answer expected everything belongs to it, whatever `index` says (some servers count tokens in it).
    fn place(&self, choice: u32) -> usize {
        if self.answer.several { (choice as usize).min(self.answer.others.len()) } else { 0 }
    }
}

impl<S: Sink> Reader for Reading<'_, S> {
    const WANTS_TEXT: bool = S::WANTS_TEXT;

    fn piece(&mut self, choice: u32, channel: Channel, text: &str) {
        let place = self.place(choice);
        self.said.content = true;
        match channel {
            Channel::Reasoning => self.answer.reasoning_seen = true,
            Channel::Content | Channel::Refusal | Channel::Tool => self.said.answer = true,
        }
        self.answer.choice_at(place).touched = true;
        self.sink.piece(place as u32, channel, text);
    }

    fn finish(&mut self, choice: u32, reason: Finish) {
        if reason == Finish::Error {
            self.said.error.get_or_insert_with(|| "the finish reason says error".to_owned());
            return;
        }
        let place = self.place(choice);
        self.answer.choice_at(place).finish = Some(reason);
    }

    fn tokens(&mut self, _choice: u32, count: u32) {
        self.said.tokens = self.said.tokens.saturating_add(count);
    }

    fn usage(&mut self, usage: Usage, _choices: u32) {
        self.said.completion = usage.completion;
        self.answer.usages.add(usage);
    }

    fn error(&mut self, message: &str) {
        self.said.error = Some(message.to_owned());
    }

    fn usage_update(&mut self, update: Usage) {
        self.said.completion = update.completion;
        self.answer.usages.update(update);
    }

    fn grown(&mut self, choice: u32, channel: Channel, text: &str) {
        let place = self.place(choice);
        let known = self.answer.choice_at(place);
        let told = known.told as usize;
        known.told = u32::try_from(told.max(text.len())).unwrap_or(u32::MAX);
        if text.len() > told {
            let more = &text[text.floor_char_boundary(told)..];
            self.piece(choice, channel, if S::WANTS_TEXT { more } else { "" });
        } else if text.len() < told && known.finish.is_none() {
            // At its end an answer may lose a stop word.
            self.said.error = Some(SHRUNK.to_owned());
        }
    }

    fn end(&mut self) {
        self.said.end = true;
    }

    fn call(&mut self, choice: u32, fragment: &Fragment<'_>) {
        let place = self.place(choice);
        self.sink.call(place as u32, fragment);
    }
}

/// What is said of text that does not begin with what was told before.
const SHRUNK: &str =
    "the text so far became shorter: the server sends pieces, which this API does not by default";
