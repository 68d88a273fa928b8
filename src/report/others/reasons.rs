//! Why the tools print different numbers of the same run, by metric.

/// A metric of the table, and why its columns differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    /// How the rows begin that it is about.
    pub(super) about: &'static str,
    /// The reason.
    pub(super) text: &'static str,
}

pub(super) const REASONS: [Reason; 11] = [
    Reason {
        about: "tokload",
        text: "the column tokload is over the steady window, without the ramp; all others are over the whole level",
    },
    Reason {
        about: "TTFT",
        text: "from the start of the request, behind a limit on concurrency, to the first content; mlperf counts from the planned send, so that \
               what had to wait before it was sent counts. On the wire vLLM's clock may stop earlier, at a first event with a role alone, which no \
               record holds",
    },
    Reason {
        about: "TPOT",
        text: "time after the first token by tokens - 1: until the last content for tokload, vllm, aiperf (which calls it inter-token latency) and \
               guidellm (likewise), until the end of the stream for servebench and mlperf, with usage and [DONE] in it. An answer of one event and \
               several tokens is left out by tokload and counts as 0 for the others",
    },
    Reason {
        about: "E2E / n",
        text: "guidellm's time_per_output_token_ms is (last token - start) / tokens, with TTFT in it: it is no other tool's TPOT",
    },
    Reason {
        about: "ITL",
        text: "gaps between events with content, pooled over requests (aiperf calls them inter-chunk latency); guidellm and mlperf have none: their \
               token latencies are means of each request",
    },
    Reason {
        about: "E2E",
        text: "until the last content for tokload, vllm and aiperf, until the end of the stream for guidellm, servebench and mlperf; mlperf counts \
               from the planned send",
    },
    Reason {
        about: "duration",
        text: "tokload: the steady window; vllm and servebench: from the beginning of the level to the end of its last request; aiperf and guidellm: \
               from the first start; mlperf: until the request that was issued last is complete. aiperf divides by another one than it prints, that \
               from the first planned send",
    },
    Reason {
        about: "requests, output, total",
        text: "requests that ended well and their tokens by the duration; mlperf counts one request less, and tokens of answers alone",
    },
    Reason {
        about: "goodput",
        text: "tokload judges by all limits, from the planned send where the load is open; vllm and aiperf from the start; servebench looks at TTFT and \
               TPOT alone; mlperf says whether the limits hold at p99 and no request failed; guidellm has none. Undefined TPOT passes for vllm and \
               servebench",
    },
    Reason {
        about: "failed",
        text: "failures are infinitely slow for tokload's judgement, though the percentiles here are of those that ended well, as they are for \
               the others; aiperf counts planned cancellations among them; for mlperf a run with failures is invalid",
    },
    Reason {
        about: "percentiles",
        text: "linear is numpy's interpolation at (n - 1) p, nearest rank the value at ceil(n p) from 1, floor(n p) the value at that place from 0: \
               of few values they are far apart",
    },
];
