//! What the server is to do, before anything listens.

use std::path::PathBuf;
use std::time::Duration;

use super::ask::{Beside, Terms};
use super::faults::Faults;
use super::reply::ServedBy;
use super::tls::{Asks, Identity};
use crate::model::{self, Fixed, Serving};
use crate::pace;
use crate::plan::Driver;

/// What the server is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name or address to listen on. Default: 127.0.0.1.
    pub host: String,
    /// Port; 0, the default, takes any free one.
    pub port: u16,
    /// Name of the model. Default: `mock-model`.
    pub model: String,
    /// Further names that are answered and listed, as adapters of the model. Default: none.
    pub adapters: Vec<String>,
    /// Longest context that is reported and allowed, tokens. Default: 131072.
    pub max_model_len: u32,
    /// Tokens that mark the beginning of a prompt that is a text, counted with it. Default: 0.
    pub bos_tokens: u32,
    /// Tokens of the template that messages are put into, counted with them. Default: 0.
    pub template_tokens: u32,
    /// Whether `/tokenize` is answered. Default: yes.
    pub tokenize: bool,
    /// When tokens come. Default: fixed times, 200 ms to the first and 20 ms from one to the next.
    pub serving: model::Settings,
    /// Tokens when a request names no number. Default: 128.
    pub max_tokens: u32,
    /// An answer ends by itself after this many tokens (finish reason `stop`), but not before its `min_tokens`, and
    /// not at all if the request says `ignore_eos`. Default: never, the answer ends at `max_tokens`.
    pub eos_after: Option<u32>,
    /// The first tokens of each chat answer are reasoning. Default: 0.
    pub reasoning: u32,
    /// The member of a chat delta that holds reasoning.
    pub reasoning_field: ReasoningField,
    /// Every chat answer is a call of a tool, not only where the request demands one. Default: no.
    pub tool_call: bool,
    /// When usage is given.
    pub usage: Usage,
    /// When a chat stream says whose turn it is.
    pub role: Role,
    /// Hold the response head back until the first event. Default: no.
    pub late_head: bool,
    /// Close a connection that has been idle this long after an answer. Default: never.
    pub keep_alive: Option<Duration>,
    /// How threads wait.
    pub timer: pace::Mode,
    /// Number of threads; at least 1. The kernel spreads connections over them; where requests slow each other down,
    /// all threads serve from one model. Default: 1.
    pub workers: u32,
    /// Cores to pin threads to, in turn. Default: none.
    pub cores: Option<Vec<u32>>,
    /// Kernel interface of the runtimes.
    pub driver: Driver,
    /// Seed of the faults. The model has its own.
    pub seed: u64,
    /// Most connections that wait to be accepted. Default: 4096.
    pub backlog: u32,
    /// Who answers, in a field `x-served-by` of every answer. Default: not said.
    pub served_by: ServedBy,
    /// Certificate and key, to speak TLS.
    pub tls: Option<Identity>,
    /// What is asked of clients that speak TLS. Default: nothing.
    pub tls_asks: Asks,
    /// Path of a Unix socket to listen on as well, where nothing may be yet; it is removed at the end. Default: none.
    pub unix_socket: Option<PathBuf>,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// Most exact times that are kept per distribution and thread, 8 bytes each; beyond, quantiles come from a
    /// histogram and the truth says so. Default: 2^20.
    pub samples_max: usize,
    /// Most requests whose single accounts are kept, per thread, about 150 bytes each; those beyond are counted.
    /// Default: 0.
    pub accounts_max: usize,
}

/// When a chat stream says whose turn it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// At once on arrival, before any token: a trap for who takes the first event for the first token.
    Early,
    /// Together with the first content of each choice, as vLLM does.
    #[default]
    First,
    /// Never.
    None,
}

/// When usage is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Usage {
    /// At the end of every answer.
    Always,
    /// In whole answers, and in streams whose request asks for it.
    #[default]
    Asked,
    /// Never.
    Never,
}

/// Names under which servers stream reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReasoningField {
    /// `reasoning`, as newer vLLM.
    Reasoning,
    /// `reasoning_content`, as SGLang, llama.cpp and older vLLM.
    #[default]
    ReasoningContent,
}

impl ReasoningField {
    pub(super) fn name(self) -> &'static str {
        match self {
            ReasoningField::Reasoning => "reasoning",
            ReasoningField::ReasoningContent => "reasoning_content",
        }
    }
}

impl Settings {
    /// What requests may ask for.
    pub(super) fn terms(&self) -> Terms<'_> {
        Terms {
            model: &self.model,
            adapters: &self.adapters,
            max_model_len: self.max_model_len,
            beside: Beside { bos: self.bos_tokens, template: self.template_tokens },
            tokenizes: self.tokenize,
            max_tokens: self.max_tokens,
            eos_after: self.eos_after,
            reasoning: self.reasoning,
            tool_call: self.tool_call,
            refused_fields: &self.faults.refused_fields,
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            host: "127.0.0.1".to_owned(),
            port: 0,
            model: "mock-model".to_owned(),
            adapters: Vec::new(),
            max_model_len: 131_072,
            bos_tokens: 0,
            template_tokens: 0,
            tokenize: true,
            serving: model::Settings::serving(Serving::Fixed(Fixed::default())),
            max_tokens: 128,
            eos_after: None,
            reasoning: 0,
            reasoning_field: ReasoningField::default(),
            tool_call: false,
            usage: Usage::default(),
            role: Role::default(),
            late_head: false,
            keep_alive: None,
            timer: pace::Mode::Sleep,
            workers: 1,
            cores: None,
            driver: Driver::Auto,
            seed: 0,
            backlog: 4096,
            served_by: ServedBy::NOBODY,
            tls: None,
            tls_asks: Asks::default(),
            unix_socket: None,
            faults: Faults::default(),
            samples_max: 1 << 20,
            accounts_max: 0,
        }
    }
}
