//! The mock server on paper: requests as bytes in, answers as bytes out, in whatever time the caller keeps.
//!
//! The same reading of requests, the same model and the same writing of answers as behind the sockets, without faults.
//! A client has a number and asks one thing at a time.

use std::sync::Arc;

use super::Settings;
use super::ask::{self, Terms};
use super::face::Face;
use super::generation::{Bytes, Dress, Generation, Progress};
use super::jobs::{Wish, submit};
use super::reply::{Manner, Reply};
use super::request::{Inbox, Method, Step};
use super::route::{self, Answer};
use super::words::Vocabulary;
use crate::model::{self, Emission, Server};
use crate::plan;
use crate::time::Stamp;

/// The mock server without sockets.
#[derive(Debug)]
pub struct Paper {
    settings: Settings,
    server: Server,
    model_json: Arc<str>,
    block_tokens: u32,
    /// What each client is being answered, by its number.
    answers: Vec<Option<Answering>>,
    emissions: Vec<Emission>,
    bytes: Bytes,
    /// What `advance` wrote, and whom each part is for.
    written: Vec<u8>,
    parts: Vec<Part>,
    requests: u64,
}

#[derive(Debug)]
struct Answering {
    generation: Generation,
    jobs: Vec<model::Key>,
}

#[derive(Clone, Copy, Debug)]
struct Part {
    client: u64,
    due: Stamp,
    end: usize,
}

/// What the server wrote, in order: client, due time, bytes.
#[derive(Debug)]
pub struct Written<'a> {
    bytes: &'a [u8],
    parts: std::slice::Iter<'a, Part>,
    from: usize,
}

impl Paper {
    /// A server whose time begins at `start`.
    ///
    /// # Errors
    /// The model's settings are impossible.
    pub fn new(settings: Settings, start: Stamp) -> Result<Paper, plan::Error> {
        Ok(Paper {
            server: Server::new(&settings.serving, start)?,
            model_json: serde_json::Value::from(settings.model.as_str()).to_string().into(),
            block_tokens: settings.serving.block_tokens(),
            settings,
            answers: Vec::new(),
            emissions: Vec::new(),
            bytes: Bytes::default(),
            written: Vec::new(),
            parts: Vec::new(),
            requests: 0,
        })
    }

    /// Takes a whole request of `client` and gives what is answered at once.
    pub fn on_request(&mut self, now: Stamp, client: u64, request: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut inbox = Inbox::default();
        inbox.push(request);
        match inbox.next() {
            Ok(Step::Request(request)) => {
                let manner = Manner {
                    chunks: request.head.chunks,
                    keep_alive: request.head.keep_alive,
                    head_only: request.head.method == Method::Head,
                    served_by: self.settings.served_by,
                };
                match route::answer(&request, self.terms(), 0) {
                    Answer::Generate(ask) => {
                        let blocks = ask::blocks(ask.surface, &request.body, self.block_tokens);
                        self.generate(now, (client, manner), (ask, &blocks), &mut out);
                    }
                    Answer::Reply(reply) => reply.write(manner, &mut out),
                    Answer::ResetPrefixCache => {
                        self.server.forget_prefixes(now);
                        Reply::empty().write(manner, &mut out);
                    }
                    Answer::Metrics | Answer::Truth { .. } => Reply::no_route(None).write(manner, &mut out),
                }
            }
            Ok(Step::Continue | Step::Starved) => {}
            Err(refusal) => {
                let manner = Manner {
                    chunks: true,
                    keep_alive: false,
                    head_only: false,
                    served_by: self.settings.served_by,
                };
                Reply::refusal(refusal).write(manner, &mut out);
            }
        }
        out
    }

    fn generate(&mut self, now: Stamp, from: (u64, Manner), of: (ask::Ask, &Arc<[u64]>), out: &mut Vec<u8>) {
        let ((client, manner), (ask, blocks)) = (from, of);
        let number = self.requests;
        self.requests += 1;
        let wish = Wish { owner: client, number, ask: &ask, blocks };
        let jobs = match submit(&mut self.server, now, 0, wish) {
            Ok(jobs) => jobs,
            Err(refusal) => return Reply::status(refusal.status(), None).write(manner, out),
        };
        let face = Face {
            surface: ask.surface,
            number,
            created: 0,
            model: Arc::clone(&self.model_json),
            tool: ask.tool.clone(),
            thinks: ask.reasoning > 0,
            reasoning: self.settings.reasoning_field.name(),
            vocabulary: Vocabulary::Plain,
        };
        let Settings { role, late_head, usage, .. } = self.settings;
        let mut generation = Generation::new(face, ask, Dress { role, late_head, usage }, manner);
        generation.on_start(now, out);
        let place = client as usize;
        if self.answers.len() <= place {
            self.answers.resize_with(place + 1, || None);
        }
        self.answers[place] = Some(Answering { generation, jobs });
    }

    /// The client has gone.
    pub fn cancel(&mut self, now: Stamp, client: u64) {
        let Some(answering) = self.answers.get_mut(client as usize).and_then(Option::take) else { return };
        for job in answering.jobs {
            self.server.cancel(now, job);
        }
    }

    /// When [`Paper::advance`] has something to say next; `Stamp::MAX` if nothing is in flight.
    #[must_use]
    pub fn next_wakeup(&self) -> Stamp {
        self.server.next_wakeup()
    }

    /// What is due by `now`, or a good part of it: look at [`Paper::next_wakeup`] again.
    pub fn advance(&mut self, now: Stamp) -> Written<'_> {
        self.written.clear();
        self.parts.clear();
        self.emissions.clear();
        self.server.advance(now, &mut self.emissions);
        for emission in &self.emissions {
            let Some(place) = self.answers.get_mut(emission.owner as usize) else { continue };
            let Some(answering) = place else { continue };
            if answering.jobs.get(emission.choice as usize) != Some(&emission.key) {
                continue;
            }
            if emission.first {
                answering.generation.on_cached((self.block_tokens > 0).then_some(emission.cached_tokens));
            }
            self.bytes.clear();
            let progress = answering.generation.on_emission(emission, emission.due, &mut self.bytes);
            if progress != Progress::More {
                *place = None;
            }
            self.written.extend_from_slice(&self.bytes.event);
            self.written.extend_from_slice(&self.bytes.after);
            self.parts.push(Part { client: emission.owner, due: emission.due, end: self.written.len() });
        }
        Written { bytes: &self.written, parts: self.parts.iter(), from: 0 }
    }

    fn terms(&self) -> Terms<'_> {
        self.settings.terms()
    }
}

impl<'a> Iterator for Written<'a> {
    type Item = (u64, Stamp, &'a [u8]);

    fn next(&mut self) -> Option<(u64, Stamp, &'a [u8])> {
        let Part { client, due, end } = *self.parts.next()?;
        let bytes = &self.bytes[self.from..end];
        self.from = end;
        Some((client, due, bytes))
    }
}
