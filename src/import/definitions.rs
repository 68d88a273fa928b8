//! What the numbers of other tools mean, in words: they stand in an imported run in the place of ours.

use super::Tool;
use crate::run_file::schema::Definition;

/// The definitions of an import, `detailed` where it has a line per request.
pub(super) fn of(tool: Tool, detailed: bool) -> Vec<Definition> {
    let own = match tool {
        Tool::Aiperf => AIPERF,
        Tool::Vllm => VLLM,
    };
    let quantiles = if detailed { OURS } else { THEIRS };
    let whose = |(name, unit, formula): &(&str, &str, &str)| Definition {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        formula: format!("as {} defines it: {formula}", tool.name()),
    };
    own.iter().map(whose).chain(quantiles.iter().map(plain)).chain(COMMON.iter().map(plain)).collect()
}

fn plain((name, unit, formula): &(&str, &str, &str)) -> Definition {
    Definition { name: (*name).to_owned(), unit: (*unit).to_owned(), formula: (*formula).to_owned() }
}

const VLLM: &[(&str, &str, &str)] = &[
    (
        "ttft",
        "ns",
        "from just before the request is sent, behind the wait for --max-concurrency, until the first chunk with choices, even one with a role alone or without text",
    ),
    (
        "e2e",
        "ns",
        "from the same start until the last chunk with choices, that of the finish reason included; its e2el",
    ),
    (
        "tpot",
        "ns",
        "(e2e - ttft) / (output tokens - 1) of requests of more than one token; from single requests those in one chunk are left out here, which the tool counts with 0",
    ),
    ("itl", "ns", "gaps between consecutive chunks with choices, pooled over requests"),
    (
        "rates",
        "per second",
        "over the time from the start of the loop until the last request has ended, ramp and drain included: completed requests, and output tokens of these, divided by it; prompt tokens likewise",
    ),
    (
        "tokens.output",
        "tokens",
        "by the server's usage, else by the tool's tokenizer on the text, else 1 per request",
    ),
    (
        "request_rate",
        "requests/s",
        "gamma gaps that were scaled so that the last request falls on its number over the rate",
    ),
];

const AIPERF: &[(&str, &str, &str)] = &[
    ("ttft", "ns", "from the start of the request until the first response with text, reasoning included"),
    ("ttfa", "ns", "time_to_first_output_token: until the first text that is not reasoning"),
    ("e2e", "ns", "request_latency: until the last response with content"),
    (
        "tpot",
        "ns",
        "inter_token_latency: (request_latency - ttft) / (output tokens - 1), one value per request",
    ),
    ("itl", "ns", "inter_chunk_latency: every gap between responses with content"),
    ("user_speed", "tok/s", "output_token_throughput_per_user: 1 / inter_token_latency"),
    (
        "rates",
        "per second",
        "over benchmark_duration, from the first start to the last end of a request: valid requests and their tokens, divided by it",
    ),
    (
        "tokens.output",
        "tokens",
        "by the tool's tokenizer on text and reasoning, unless told to use the server's counts",
    ),
];

const OURS: &[(&str, &str, &str)] = &[(
    "quantiles",
    "as the metric",
    "by tokload over the values of the tool's ok requests: nearest rank max(1, ceil(n * p)); those that the tool itself prints interpolate between values and may differ a little",
)];

const THEIRS: &[(&str, &str, &str)] = &[(
    "quantiles",
    "as the metric",
    "the tool's own: linear interpolation at (n - 1) * p (numpy); std is that of a population",
)];

const COMMON: &[(&str, &str, &str)] = &[
    (
        "span",
        "ns",
        "from the first start of a request, where starts are known, else from 0; when requests were planned is not known: t1 is the last start, or the end",
    ),
    (
        "counts",
        "requests",
        "as the tool counted them; where it tells a failure in words alone its class is guessed from these, and `malformed` where they say nothing",
    ),
    ("goodput", "requests/s", "by tokload from single requests, judged from their start"),
    (
        "in_flight",
        "requests",
        "requests between their start and their last chunk, failed ones for no time where their end is not known",
    ),
];
