//! The endpoints of a run, resolved: addresses, TLS, and everything of a request that does not change.

use core::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;

use crate::api::request::Template;
use crate::rng::Purpose;
use crate::workload::prompts;

/// Where requests go and what they say.
#[derive(Debug)]
pub struct Target {
    /// One per endpoint of the plan, in its order; never empty.
    pub routes: Vec<Route>,
    /// One body template per model of the plan, in its order; never empty.
    pub templates: Vec<Template>,
    /// Words of a prompt.
    pub input_words: u32,
    /// `max_tokens` of a request.
    pub output_tokens: u32,
}

/// One endpoint.
#[derive(Debug)]
pub struct Route {
    /// Its addresses, tried in this order; never empty.
    pub addresses: Vec<SocketAddr>,
    /// TLS, for `https`.
    pub tls: Option<TlsRoute>,
    /// The request head up to and including `content-length: `.
    pub head: Vec<u8>,
}

/// TLS settings of an endpoint.
#[derive(Clone, Debug)]
pub struct TlsRoute {
    /// Shared by all connections: it holds the sessions to resume.
    pub config: Arc<rustls::ClientConfig>,
    /// The name to ask for and to verify.
    pub name: ServerName<'static>,
}

/// Which prompt a request carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// Seed of its level.
    pub seed: u64,
    /// Measured or warm-up: the two never share a prompt.
    pub purpose: Purpose,
    /// Place in the stream of prompts.
    pub index: u64,
}

/// Memory for writing requests, one per shard.
#[derive(Debug, Default)]
pub struct Desk {
    prompt: String,
    body: Vec<u8>,
}

impl Target {
    /// The endpoint that request `index` goes to: in turn, by the index over all shards.
    #[must_use]
    pub fn route_of(&self, index: u64) -> usize {
        (index % self.routes.len() as u64) as usize
    }

    /// The model that request `index` asks for: the next one after each round of the endpoints.
    #[must_use]
    pub fn model_of(&self, index: u64) -> usize {
        (index / self.routes.len() as u64 % self.templates.len() as u64) as usize
    }

    /// Writes request `index`, head and body, into `out`; the same bytes for the same index, whoever writes them.
    pub fn write_request(&self, index: u64, prompt: Prompt, desk: &mut Desk, out: &mut Vec<u8>) {
        desk.prompt.clear();
        prompts::write_prompt(&mut desk.prompt, prompt.seed, prompt.purpose, prompt.index, self.input_words);
        desk.body.clear();
        self.templates[self.model_of(index)].write(&mut desk.body, &desk.prompt, self.output_tokens);
        out.clear();
        out.extend_from_slice(&self.routes[self.route_of(index)].head);
        out.extend_from_slice(desk.body.len().to_string().as_bytes());
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(&desk.body);
    }
}
