//! A level in the definitions of guidellm, servebench and MLPerf's LoadGen, and one run as all of the tools beside each
//! other.
//!
//! What vLLM's client and aiperf print has rooms of its own ([`vllm`](super::vllm), [`aiperf`](super::aiperf)), which are
//! asked here. All is computed from the records of single requests, so that the numbers of a tool differ from another's by
//! its definitions alone: the requests, the stamps and the counts of tokens are the same.

mod block;
mod collect;
mod discrepancies;
mod figures;
mod lines;
mod reasons;

pub use block::{to_json, view};
pub use collect::{Level, recorded};
pub use discrepancies::{Discrepancies, Entry, Line};
pub use figures::{Figure, Rule, Spread, Total};

/// A tool whose definitions are kept here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// guidellm, `benchmark run`.
    Guidellm,
    /// MLPerf's LoadGen, scenario Server, with token latencies.
    Mlperf,
    /// servebench.
    Servebench,
}

impl Other {
    /// Its name in options and files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Other::Guidellm => "guidellm",
            Other::Mlperf => "mlperf",
            Other::Servebench => "servebench",
        }
    }

    /// How it takes a percentile of n values.
    #[must_use]
    pub const fn rule(self) -> Rule {
        match self {
            Other::Guidellm => Rule::NearestRank,
            Other::Mlperf => Rule::Floor,
            Other::Servebench => Rule::Linear,
        }
    }

    /// What its numbers are, in a sentence.
    #[must_use]
    pub const fn definitions(self) -> &'static str {
        match self {
            Other::Guidellm => {
                "these are guidellm's definitions over all requests of the level that ended well, without a cut of the ramp: percentiles \
                 are the least value that the wanted share of requests does not exceed; request latency ends with the stream; \
                 time_per_output_token_ms is (last token - start) / n, and what others call TPOT is its inter_token_latency_ms"
            }
            Other::Mlperf => {
                "these are the definitions of MLPerf's LoadGen in scenario Server, and no submission: latencies are from the scheduled send \
                 to the end of the answer, percentiles the value at place floor(n * p) of the sorted list from 0; samples per second are \
                 (n - 1) by the time until the one issued last is complete"
            }
            Other::Servebench => {
                "these are servebench's definitions: latencies from the send, behind a limit on concurrency, to [DONE] or the end of the \
                 stream; percentiles by linear interpolation; goodput counts failures as missed, and looks at TTFT and TPOT alone"
            }
        }
    }
}

#[cfg(test)]
mod tests;
