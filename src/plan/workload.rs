//! What is asked: lengths and contents of prompts, the fields of a request, and users who behave badly.

use serde::{Deserialize, Serialize};

use super::{Aborts, Conversation, DataSet, Lengths, Prefix, SlowReaders, Timing, Tokens, Trace, text};

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Words of a synthetic prompt; each is one token in most tokenizers. 128 by default.
    pub input_words: Lengths,
    /// `max_tokens` of each request. 64 by default.
    pub output_tokens: Lengths,
    /// Number of different requests: after as many, the first comes again, word for word. Absent: all differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub distinct: Option<u64>,
    /// What prompts begin with before their own words; absent: nothing is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Prefix>,
    /// Words of a system message that all requests have, the same for all of a level; absent: there is none. Only dialects
    /// with system messages have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_words: Option<u32>,
    /// The recorded requests that are sent instead of synthetic ones, at their times
    /// ([`Arrivals::Trace`](super::Arrivals::Trace)). Their lengths win over those above; `output_tokens` is that of
    /// requests that say none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The prompts that are sent instead of synthetic ones, at any load. `distinct` is how many of them, then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<DataSet>,
    /// Sessions of several turns; absent: each request is a session of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    /// Words of its own that the first turn of each session has beside the others; absent: none. They belong to that turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_words: Option<u32>,
    /// By which times the requests of sessions of agents go; absent: those of a trace at its own, others by answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// Name of a request header whose value is the same for all turns of a session and another for each session, by
    /// which routers keep a session at one server; absent: none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_header: Option<String>,
    /// The lengths of prompts are tokens of this vocabulary; absent: words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// Choices per request (`n`). 1 by default.
    pub choices: u32,
    /// Optional request fields, all of which a probe may have found unsupported.
    pub options: RequestOptions,
    /// Sampling parameters, sent as they are.
    pub sampling: Sampling,
    /// Further body fields; they win over all others. A file may also give them as one string of JSON, which it must
    /// where TOML cannot hold them (it has no null).
    #[serde(deserialize_with = "text::extra_body")]
    pub extra_body: serde_json::Map<String, serde_json::Value>,
    /// Requests whose users go away before their answer is complete; absent: all wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aborts: Option<Aborts>,
    /// Requests whose users read slowly; absent: all read what there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_readers: Option<SlowReaders>,
}

/// Optional request fields. A field that the server refused is switched off and named in `dropped`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestOptions {
    /// `ignore_eos: true`. On by default.
    pub ignore_eos: bool,
    /// `min_tokens` equal to `max_tokens`. Off by default.
    pub min_tokens: bool,
    /// `stream_options.include_usage: true`. On by default.
    pub include_usage: bool,
    /// `stream_options.continuous_usage_stats: true`. Off by default.
    pub continuous_usage: bool,
    /// Fields switched off because the server refused them.
    pub dropped: Vec<String>,
}

/// Sampling parameters; absent ones are not sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sampling {
    /// `temperature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// `top_p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// `top_k`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<i64>,
    /// `min_p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_p: Option<f64>,
    /// `frequency_penalty`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// `presence_penalty`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// `repetition_penalty`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repetition_penalty: Option<f64>,
}

impl Default for Workload {
    fn default() -> Workload {
        Workload {
            input_words: 128.into(),
            output_tokens: 64.into(),
            distinct: None,
            prefix: None,
            system_words: None,
            trace: None,
            data: None,
            conversation: None,
            context_words: None,
            timing: None,
            session_header: None,
            tokens: None,
            choices: 1,
            options: RequestOptions::default(),
            sampling: Sampling::default(),
            extra_body: serde_json::Map::new(),
            aborts: None,
            slow_readers: None,
        }
    }
}

impl Default for RequestOptions {
    fn default() -> RequestOptions {
        RequestOptions {
            ignore_eos: true,
            min_tokens: false,
            include_usage: true,
            continuous_usage: false,
            dropped: Vec::new(),
        }
    }
}
