//! One request as aiperf keeps it, and the metrics that it has by itself.

use super::metric::Metric;
use crate::plan::Slo;

/// What aiperf keeps of a request. Points in time are ns since 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Place in the plan, from 0; of a session, that of the session.
    pub session: u64,
    /// Turn within its session, from 0.
    pub turn: u16,
    /// It was due: the planned send, or in a closed loop when its user was free.
    pub issued_ns: u64,
    /// It was taken in hand.
    pub start_ns: u64,
    /// First byte of the answer.
    pub ack_ns: Option<u64>,
    /// Last content event, or the moment of failure.
    pub end_ns: u64,
    /// It was ended by the client, on purpose or for want of time.
    pub cancelled: bool,
    /// How it failed; `None` for one that ended well. Only those have the fields below.
    pub failure: Option<Failure>,
    /// From the start to the first content event, ns; `None` for an answer that was not streamed.
    pub ttft_ns: Option<u64>,
    /// The same to the first content event that is not reasoning.
    pub ttfo_ns: Option<u64>,
    /// From the start to the last content event, ns.
    pub latency_ns: u64,
    /// Gaps between content events, ns; `None` if their times were not kept.
    pub gaps_ns: Option<Vec<u64>>,
    /// Tokens of the prompt; the only count that a failed request may have.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: Option<u64>,
    /// Of these, tokens of reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Tokens after the first content event, where running counts were sent.
    pub tokens_after_first: Option<u64>,
    /// What the server's `usage` said.
    pub usage: Usage,
    /// Parts of the exchange.
    pub http: Http,
}

/// Token counts of the server itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt.
    pub prompt: Option<u64>,
    /// Of these, found in its cache.
    pub cache_read: Option<u64>,
    /// Of the answer.
    pub completion: Option<u64>,
    /// Of these, of reasoning.
    pub reasoning: Option<u64>,
}

/// Parts of the exchange, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Http {
    /// On a connection of an earlier request.
    pub reused: bool,
    /// Connecting; 0 on a reused connection.
    pub connecting_ns: Option<u64>,
    /// From the connection to the last byte of the request.
    pub sending_ns: Option<u64>,
    /// From there to the first byte of the answer.
    pub waiting_ns: Option<u64>,
    /// From there to its end.
    pub receiving_ns: Option<u64>,
}

/// How a request failed, in the names of aiperf's Python.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// HTTP status, or 499 for a request that was cancelled.
    pub code: Option<u16>,
    /// Class of the error.
    pub kind: String,
    /// What happened, or what the server said.
    pub message: String,
}

/// A value of one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A count.
    Count(u64),
    /// A number in the metric's unit.
    Real(f64),
    /// One for each gap.
    List(Vec<f64>),
}

impl Answer {
    /// Inter-token latency, ns; `None` for fewer than two tokens, or an answer that was not streamed.
    #[must_use]
    pub fn itl_ns(&self, per_chunk_usage: bool) -> Option<f64> {
        let output = self.output_tokens.filter(|tokens| *tokens >= 2)?;
        let counted = self.tokens_after_first.filter(|after| per_chunk_usage && (1..output).contains(after));
        let after_first = counted.unwrap_or(output - 1);
        Some((self.latency_ns - self.ttft_ns?.min(self.latency_ns)) as f64 / after_first as f64)
    }

    /// Whether the limits were kept: a metric that is not there keeps none.
    #[must_use]
    pub fn is_good(&self, slo: &Slo, per_chunk_usage: bool) -> bool {
        let keeps = |limit_ms: Option<f64>, ns: Option<f64>| {
            limit_ms.is_none_or(|ms| ns.is_some_and(|ns| ns <= (ms * 1e6).round()))
        };
        let whole = |ns: Option<u64>| ns.map(|ns| ns as f64);
        self.failure.is_none()
            && keeps(slo.ttft_ms, whole(self.ttft_ns))
            && keeps(slo.ttfa_ms, whole(self.ttfo_ns))
            && keeps(slo.tpot_ms, self.itl_ns(per_chunk_usage))
            && keeps(slo.e2e_ms, Some(self.latency_ns as f64))
    }

    /// The metrics that it has by itself, in their order.
    #[must_use]
    pub fn values(&self, per_chunk_usage: bool) -> Vec<(Metric, Value)> {
        let mut all = Vec::new();
        if self.failure.is_some() {
            all.extend(self.input_tokens.map(|tokens| (Metric::ErrorIsl, Value::Count(tokens))));
            return all;
        }
        let mut put = |metric, value: Option<Value>| all.extend(value.map(|value| (metric, value)));
        let ms = |ns: Option<u64>| ns.map(|ns| Value::Real(ns as f64 / 1e6));
        let count = |tokens: Option<u64>| tokens.map(Value::Count);
        let Usage { prompt, cache_read, completion, reasoning } = self.usage;
        put(Metric::UsagePromptTokens, count(prompt));
        put(Metric::UsagePromptCacheReadTokens, count(cache_read));
        put(Metric::UsageCompletionTokens, count(completion));
        put(Metric::UsageReasoningTokens, count(reasoning));
        put(Metric::UsageTotalTokens, count(prompt.zip(completion).map(|(prompt, answer)| prompt + answer)));
        put(Metric::TimeToFirstToken, ms(self.ttft_ns));
        let gaps = self.gaps_ns.as_deref().filter(|_| self.ttft_ns.is_some()).unwrap_or_default();
        put(Metric::TimeToSecondToken, ms(gaps.first().copied()));
        put(Metric::TimeToFirstOutputToken, ms(self.ttfo_ns));
        put(Metric::RequestLatency, ms(Some(self.latency_ns)));
        put(Metric::DecodeDuration, ms(self.ttft_ns.map(|ttft| self.latency_ns.saturating_sub(ttft))));
        let itl_ns = self.itl_ns(per_chunk_usage);
        put(Metric::InterTokenLatency, itl_ns.map(|ns| Value::Real(ns / 1e6)));
        let speed = itl_ns.filter(|ns| *ns > 0.0).map(|ns| Value::Real(1e9 / ns));
        put(Metric::OutputTokenThroughputPerUser, speed);
        let per_second = |tokens: Option<u64>, ns: Option<u64>| {
            let (tokens, ns) = (tokens?, ns.filter(|ns| *ns > 0)?);
            Some(Value::Real(tokens as f64 / (ns as f64 / 1e9)))
        };
        put(Metric::E2eOutputTokenThroughput, per_second(self.output_tokens, Some(self.latency_ns)));
        put(Metric::OutputSequenceLength, count(self.output_tokens));
        put(Metric::InputSequenceLength, count(self.input_tokens));
        let list = || Value::List(gaps.iter().map(|ns| *ns as f64 / 1e6).collect());
        put(Metric::InterChunkLatency, (!gaps.is_empty()).then(list));
        let answered = self.output_tokens.map(|all| all.saturating_sub(self.reasoning_tokens.unwrap_or(0)));
        put(Metric::OutputTokenCount, count(answered.filter(|tokens| *tokens > 0)));
        put(Metric::ReasoningTokenCount, count(self.reasoning_tokens));
        put(Metric::PrefillThroughputPerUser, per_second(self.input_tokens, self.ttft_ns));
        let Http { reused, connecting_ns, sending_ns, waiting_ns, receiving_ns } = self.http;
        let sum = |parts: &[Option<u64>]| parts.iter().copied().sum::<Option<u64>>();
        if sending_ns.is_some() {
            put(Metric::HttpConnectionReused, Some(Value::Count(u64::from(reused))));
        }
        put(Metric::HttpConnecting, ms(connecting_ns));
        put(Metric::HttpSending, ms(sending_ns));
        put(Metric::HttpWaiting, ms(waiting_ns));
        put(Metric::HttpReceiving, ms(receiving_ns));
        put(Metric::HttpConnectionOverhead, ms(connecting_ns));
        put(Metric::HttpDuration, ms(sum(&[sending_ns, waiting_ns, receiving_ns])));
        put(Metric::HttpTotal, ms(sum(&[connecting_ns, sending_ns, waiting_ns, receiving_ns])));
        all
    }
}
