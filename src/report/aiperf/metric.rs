//! aiperf's metrics: their names in files and tables, units and places.

/// A metric of aiperf, in the order in which its tables have them and files may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is named as aiperf names it; `Metric::header` spells it out")]
pub enum Metric {
    EffectiveConcurrency,
    EffectiveDecodeThroughput,
    EffectivePrefillThroughput,
    EffectiveDecodeConcurrency,
    EffectivePrefillConcurrency,
    EffectiveTotalThroughput,
    EffectiveDecodeThroughputPerUser,
    EffectivePrefillThroughputPerUser,
    TokensInFlight,
    EffectiveLatency,
    ActiveDecodeThroughput,
    ActivePrefillThroughput,
    ActiveDecodeThroughputPerUser,
    ActivePrefillThroughputPerUser,
    ActiveTotalThroughput,
    UsagePromptTokens,
    UsagePromptCacheReadTokens,
    UsageCompletionTokens,
    UsageReasoningTokens,
    UsageTotalTokens,
    TotalUsagePromptTokens,
    TotalUsagePromptCacheReadTokens,
    OverallUsagePromptCacheReadPct,
    TotalUsageCompletionTokens,
    TotalUsageReasoningTokens,
    TotalUsageTotalTokens,
    TimeToFirstToken,
    TimeToSecondToken,
    TimeToFirstOutputToken,
    RequestLatency,
    DecodeDuration,
    InterTokenLatency,
    OutputTokenThroughputPerUser,
    E2eOutputTokenThroughput,
    OutputSequenceLength,
    InputSequenceLength,
    OutputTokenThroughput,
    InputTokenThroughput,
    RequestThroughput,
    Goodput,
    CompletedRequestCount,
    RequestErrorRate,
    RequestCount,
    InterChunkLatency,
    OutputTokenCount,
    ReasoningTokenCount,
    PrefillThroughputPerUser,
    CreditToStartLatency,
    GoodRequestCount,
    GoodRequestFraction,
    ErrorRequestCount,
    ErrorIsl,
    TotalErrorIsl,
    BenchmarkDuration,
    TotalIsl,
    TotalOsl,
    TotalOutputTokens,
    TotalReasoningTokens,
    TotalTokenThroughput,
    HttpConnectionReused,
    HttpConnecting,
    HttpSending,
    HttpWaiting,
    HttpReceiving,
    HttpConnectionOverhead,
    HttpDuration,
    HttpTotal,
}

/// The table in which a metric stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Weighted by time over the whole level.
    Effective,
    /// Weighted by time while the phase is under way.
    Active,
    /// Token counts of the server.
    Usage,
    /// The main table.
    Main,
    /// In files alone.
    Files,
}

impl Metric {
    /// Its name in files.
    #[must_use]
    pub fn tag(self) -> &'static str {
        self.words().0
    }

    /// Its name in tables.
    #[must_use]
    pub fn header(self) -> &'static str {
        self.words().1
    }

    /// Its unit.
    #[must_use]
    pub fn unit(self) -> &'static str {
        self.words().2
    }

    /// Where it stands.
    #[must_use]
    pub fn group(self) -> Group {
        let from = |first: Metric| self as usize >= first as usize;
        match () {
            () if from(Metric::InterChunkLatency) => Group::Files,
            () if from(Metric::TimeToFirstToken) => Group::Main,
            () if from(Metric::UsagePromptTokens) => Group::Usage,
            () if from(Metric::ActiveDecodeThroughput) => Group::Active,
            () => Group::Effective,
        }
    }

    /// Whether each request has its own value: files say of how many, and what they come to.
    #[must_use]
    pub fn is_of_a_request(self) -> bool {
        use Metric as M;
        match self {
            M::EffectiveLatency
            | M::CreditToStartLatency
            | M::UsagePromptTokens
            | M::UsagePromptCacheReadTokens
            | M::UsageCompletionTokens
            | M::UsageReasoningTokens
            | M::UsageTotalTokens
            | M::InterChunkLatency
            | M::OutputTokenCount
            | M::ReasoningTokenCount
            | M::PrefillThroughputPerUser
            | M::ErrorIsl => true,
            other => {
                let place = other as usize;
                let within = |first: M, last: M| (first as usize..=last as usize).contains(&place);
                within(M::TimeToFirstToken, M::InputSequenceLength)
                    || within(M::HttpConnectionReused, M::HttpTotal)
            }
        }
    }

    /// Whether it has a twin in which failures are infinitely long.
    #[must_use]
    pub fn has_adjusted(self) -> bool {
        matches!(
            self,
            Metric::TimeToFirstToken
                | Metric::RequestLatency
                | Metric::DecodeDuration
                | Metric::InterTokenLatency
        )
    }

    fn words(self) -> (&'static str, &'static str, &'static str) {
        use Metric as M;
        const MS: &str = "ms";
        const TOKENS: &str = "tokens";
        const REQUESTS: &str = "requests";
        const TOKENS_S: &str = "tokens/sec";
        const TOKENS_S_USER: &str = "tokens/sec/user";
        match self {
            M::EffectiveConcurrency => ("effective_concurrency", "Effective Concurrency", REQUESTS),
            M::EffectiveDecodeThroughput => {
                ("effective_decode_throughput", "Effective Decode Throughput", TOKENS_S)
            }
            M::EffectivePrefillThroughput => {
                ("effective_prefill_throughput", "Effective Prefill Throughput", TOKENS_S)
            }
            M::EffectiveDecodeConcurrency => {
                ("effective_decode_concurrency", "Effective Decode Concurrency", REQUESTS)
            }
            M::EffectivePrefillConcurrency => {
                ("effective_prefill_concurrency", "Effective Prefill Concurrency", REQUESTS)
            }
            M::EffectiveTotalThroughput => {
                ("effective_total_throughput", "Effective Total Throughput", TOKENS_S)
            }
            M::EffectiveDecodeThroughputPerUser => (
                "effective_decode_throughput_per_user",
                "Effective Decode Throughput Per User",
                TOKENS_S_USER,
            ),
            M::EffectivePrefillThroughputPerUser => (
                "effective_prefill_throughput_per_user",
                "Effective Prefill Throughput Per User",
                TOKENS_S_USER,
            ),
            M::TokensInFlight => ("tokens_in_flight", "Tokens In Flight", TOKENS),
            M::EffectiveLatency => ("effective_latency", "Effective Latency (CO-aware)", MS),
            M::ActiveDecodeThroughput => ("active_decode_throughput", "Active Decode Throughput", TOKENS_S),
            M::ActivePrefillThroughput => {
                ("active_prefill_throughput", "Active Prefill Throughput", TOKENS_S)
            }
            M::ActiveDecodeThroughputPerUser => {
                ("active_decode_throughput_per_user", "Active Decode Throughput Per User", TOKENS_S_USER)
            }
            M::ActivePrefillThroughputPerUser => {
                ("active_prefill_throughput_per_user", "Active Prefill Throughput Per User", TOKENS_S_USER)
            }
            M::ActiveTotalThroughput => ("active_total_throughput", "Active Total Throughput", TOKENS_S),
            M::UsagePromptTokens => ("usage_prompt_tokens", "Usage Prompt Tokens", TOKENS),
            M::UsagePromptCacheReadTokens => {
                ("usage_prompt_cache_read_tokens", "Usage Prompt Cache Read Tokens", TOKENS)
            }
            M::UsageCompletionTokens => ("usage_completion_tokens", "Usage Completion Tokens", TOKENS),
            M::UsageReasoningTokens => ("usage_reasoning_tokens", "Usage Reasoning Tokens", TOKENS),
            M::UsageTotalTokens => ("usage_total_tokens", "Usage Total Tokens", TOKENS),
            M::TotalUsagePromptTokens => ("total_usage_prompt_tokens", "Total Usage Prompt Tokens", TOKENS),
            M::TotalUsagePromptCacheReadTokens => {
                ("total_usage_prompt_cache_read_tokens", "Total Usage Prompt Cache Read Tokens", TOKENS)
            }
            M::OverallUsagePromptCacheReadPct => {
                ("overall_usage_prompt_cache_read_pct", "Overall Usage Prompt Cache Read %", "%")
            }
            M::TotalUsageCompletionTokens => {
                ("total_usage_completion_tokens", "Total Usage Completion Tokens", TOKENS)
            }
            M::TotalUsageReasoningTokens => {
                ("total_usage_reasoning_tokens", "Total Usage Reasoning Tokens", TOKENS)
            }
            M::TotalUsageTotalTokens => ("total_usage_total_tokens", "Total Usage Total Tokens", TOKENS),
            M::TimeToFirstToken => ("time_to_first_token", "Time to First Token", MS),
            M::TimeToSecondToken => ("time_to_second_token", "Time to Second Token", MS),
            M::TimeToFirstOutputToken => ("time_to_first_output_token", "Time to First Output Token", MS),
            M::RequestLatency => ("request_latency", "Request Latency", MS),
            M::DecodeDuration => ("decode_duration", "Decode Duration", MS),
            M::InterTokenLatency => ("inter_token_latency", "Inter Token Latency", MS),
            M::OutputTokenThroughputPerUser => {
                ("output_token_throughput_per_user", "Output Token Throughput Per User", TOKENS_S_USER)
            }
            M::E2eOutputTokenThroughput => {
                ("e2e_output_token_throughput", "E2E Output Token Throughput", TOKENS_S_USER)
            }
            M::OutputSequenceLength => ("output_sequence_length", "Output Sequence Length", TOKENS),
            M::InputSequenceLength => ("input_sequence_length", "Input Sequence Length", TOKENS),
            M::OutputTokenThroughput => ("output_token_throughput", "Output Token Throughput", TOKENS_S),
            M::InputTokenThroughput => ("input_token_throughput", "Input Token Throughput", TOKENS_S),
            M::RequestThroughput => ("request_throughput", "Request Throughput", "requests/sec"),
            M::Goodput => ("goodput", "Goodput", "requests/sec"),
            M::CompletedRequestCount => {
                ("completed_request_count", "Completed Requests (Success + Error)", REQUESTS)
            }
            M::RequestErrorRate => ("request_error_rate", "Request Error Rate", "%"),
            M::RequestCount => ("request_count", "Request Count", REQUESTS),
            M::InterChunkLatency => ("inter_chunk_latency", "Inter Chunk Latency", MS),
            M::OutputTokenCount => ("output_token_count", "Output Token Count", TOKENS),
            M::ReasoningTokenCount => ("reasoning_token_count", "Reasoning Token Count", TOKENS),
            M::PrefillThroughputPerUser => {
                ("prefill_throughput_per_user", "Prefill Throughput Per User", TOKENS_S_USER)
            }
            M::CreditToStartLatency => ("credit_to_start_latency", "Credit-to-Start Latency", MS),
            M::GoodRequestCount => ("good_request_count", "Good Request Count", REQUESTS),
            M::GoodRequestFraction => ("good_request_fraction", "GoodRequestFraction", "ratio"),
            M::ErrorRequestCount => ("error_request_count", "Error Request Count", REQUESTS),
            M::ErrorIsl => ("error_isl", "Error Input Sequence Length", TOKENS),
            M::TotalErrorIsl => ("total_error_isl", "Total Error Input Sequence Length", TOKENS),
            M::BenchmarkDuration => ("benchmark_duration", "Benchmark Duration", "sec"),
            M::TotalIsl => ("total_isl", "Total Input Sequence Length", TOKENS),
            M::TotalOsl => ("total_osl", "Total Output Sequence Length", TOKENS),
            M::TotalOutputTokens => ("total_output_tokens", "Total Output Tokens", TOKENS),
            M::TotalReasoningTokens => ("total_reasoning_tokens", "Total Reasoning Tokens", TOKENS),
            M::TotalTokenThroughput => ("total_token_throughput", "Total Token Throughput", TOKENS_S),
            M::HttpConnectionReused => ("http_req_connection_reused", "HTTP Connection Reused", "ratio"),
            M::HttpConnecting => ("http_req_connecting", "HTTP Connecting", MS),
            M::HttpSending => ("http_req_sending", "HTTP Sending", MS),
            M::HttpWaiting => ("http_req_waiting", "HTTP Waiting (TTFB)", MS),
            M::HttpReceiving => ("http_req_receiving", "HTTP Receiving", MS),
            M::HttpConnectionOverhead => ("http_req_connection_overhead", "HTTP Connection Overhead", MS),
            M::HttpDuration => ("http_req_duration", "HTTP Duration (excl. conn)", MS),
            M::HttpTotal => ("http_req_total", "HTTP Total Time", MS),
        }
    }
}
