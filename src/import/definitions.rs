//! What the numbers of other tools mean, in words: they stand in an imported run in the place of ours.

use super::Tool;
use crate::run_file::schema::Definition;

/// The definitions of an import, `detailed` where it has a line per request.
pub(super) fn of(tool: Tool, detailed: bool) -> Vec<Definition> {
    let quantiles = if detailed { OURS } else { THEIRS };
    let (own, common): (_, &[_]) = match tool {
        Tool::Aiperf => (AIPERF, &[quantiles, COMMON]),
        Tool::BatchedBench => (BATCHED_BENCH, &[]),
        Tool::HdrLog => (HDR_LOG, &[]),
        Tool::Hgrm => (HGRM, &[]),
        Tool::LlamaBench => (LLAMA_BENCH, &[]),
        Tool::Vllm => (VLLM, &[quantiles, COMMON]),
    };
    let whose = |(name, unit, formula): &(&str, &str, &str)| Definition {
        name: (*name).to_owned(),
        unit: (*unit).to_owned(),
        formula: format!("as {} defines it: {formula}", tool.name()),
    };
    own.iter().map(whose).chain(common.iter().copied().flatten().map(plain)).collect()
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

const LLAMA_BENCH: &[(&str, &str, &str)] = &[
    (
        "pp",
        "tok/s",
        "ppN: one sequence whose N prompt tokens are computed in batches of n_batch, nothing is generated; in our terms prompt tokens per second of an otherwise idle server, and N / speed is the part of TTFT that the model needs, without queue, network, tokeniser and the choice of the first token",
    ),
    (
        "tg",
        "tok/s",
        "tgN: N steps of decoding of one sequence, from an empty context or behind n_depth tokens, whose computing is not timed; in our terms 1 / TPOT of a single user, without network and sampling",
    ),
    (
        "pp+tg",
        "tok/s",
        "ppN+tgM: both one after the other, (N + M) tokens by the time of both; no speed of ours",
    ),
    ("ttft", "ns", "not measured: there is no first token that a user would see"),
    ("itl", "ns", "not measured: single steps are not timed"),
    (
        "tpot",
        "ns",
        "of tg tests: samples_ns / n_gen, of which the first token is one; ours leaves the first out",
    ),
    (
        "user_speed",
        "tok/s",
        "of tg tests: n_gen / samples_ns; where the file has no samples avg_ts with its deviation",
    ),
    ("e2e", "ns", "samples_ns: one repetition, from the first batch until the backend has finished the last"),
    (
        "rates",
        "per second",
        "total is avg_ts, the mean of the speeds of the repetitions, which is more than tokens by the mean time where these differ; prompt and output tokens have their shares of it by number, requests it by the tokens of a test",
    ),
    (
        "counts",
        "repetitions",
        "of -r, all ok; 1 where the file does not say how many; the warm-up is not among them",
    ),
    (
        "std",
        "as the metric",
        "of samples that of a population; stddev_ts, which is printed and taken where there are none, divides by n - 1",
    ),
    ("quantiles", "as the metric", "by tokload over the repetitions: nearest rank max(1, ceil(n * p))"),
];

const BATCHED_BENCH: &[(&str, &str, &str)] = &[
    (
        "T_PP",
        "s",
        "time until the prompts of all B sequences are computed, one after another in batches of n_batch",
    ),
    (
        "S_PP",
        "tok/s",
        "B * PP / T_PP, PP / T_PP where the prompt is shared; in our terms prompt tokens per second while nothing is decoded. The last sequence waits T_PP for its first token, the others less: there is no TTFT of each",
    ),
    (
        "S_TG",
        "tok/s",
        "B * TG / T_TG: all sequences decoded in step; in our terms output tokens per second of B users who all decode, without prompts in between",
    ),
    ("S", "tok/s", "(prompt tokens + B * TG) / (T_PP + T_TG), a shared prompt counted once"),
    (
        "N_KV",
        "tokens",
        "cells of the cache: B * (PP + TG), or PP + B * TG where a shared prompt is kept once",
    ),
    ("ttft", "ns", "not measured: no first token is timed"),
    ("itl", "ns", "not measured: single steps are not timed"),
    (
        "tpot",
        "ns",
        "T_TG / TG, the same for each of the B sequences: steps that include the first token; ours leaves the first out",
    ),
    ("user_speed", "tok/s", "S_TG / B"),
    ("e2e", "ns", "T = T_PP + T_TG, of the whole batch: each sequence ends with it"),
    (
        "rates",
        "per second",
        "each over its own time: prompt tokens S_PP over T_PP, output tokens S_TG over T_TG, total S over T, requests B / T",
    ),
    ("counts", "sequences", "B, all ok: it does not fail singly"),
];

const HDR_LOG: &[(&str, &str, &str)] = &[
    (
        "e2e",
        "ns",
        "what the log's writer has timed, where the tag names no metric of ours: whether from the planned or the real send the log does not say",
    ),
    (
        "quantiles",
        "as the metric",
        "by tokload over the lines of a tag together: the highest value of the bucket that holds the nearest rank",
    ),
    ("mean", "as the metric", "of the middles of the buckets; std likewise"),
    (
        "rates",
        "per second",
        "values by the time from the first start to the last end of a line; tokens are not known",
    ),
    ("counts", "values", "all ok: failures are not in a log"),
];

const HGRM: &[(&str, &str, &str)] = &[
    (
        "e2e",
        "ns",
        "what the table's writer has timed, where the file is not named after a metric of ours: whether from the planned or the real send it does not say",
    ),
    (
        "quantiles",
        "as the metric",
        "the value of the first line that holds the rank max(1, ceil(n * p)): never below the true one, and above it by at most the step between two lines",
    ),
    ("mean", "as the metric", "as printed, like std and max"),
    ("rates", "per second", "not known: a table does not say how long it took"),
    ("counts", "values", "all ok: failures are not in a table"),
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
