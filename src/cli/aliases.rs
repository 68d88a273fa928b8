//! Other spellings: what the options of the other tools, and older names, are here. One table.
//!
//! An alias never changes a meaning. Where the other tool means something else by a name, its value is converted or
//! the option is refused with what to do instead; nothing is silently ignored but what says what is so anyway. Names
//! are spelt with dashes; the reading of a command line is `normalise`'s.

mod guidellm;

use serde_json::{Map, Value as Json};

use self::Action::{Accept, Convert, Noted, Refuse, Same};
use self::Takes::{Nothing, Value};
use super::args::Name;

/// Whose command line is being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tool {
    /// `profile ...`: that of aiperf, with aiperf's defaults.
    Aiperf,
    /// Our own.
    #[default]
    Tokload,
    /// `bench serve ...`: that of vLLM, with vLLM's defaults.
    Vllm,
}

/// What becomes of an option of some tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It says what is so anyway.
    Accepted,
    /// Its value is read and becomes options of ours.
    Converted,
    /// It is ours, or ours under another name.
    Mapped(&'static str),
    /// It is refused, with what to do instead.
    Refused(&'static str),
}

/// What becomes of `option` (`--like-this`) on a command line of `tool` for `run`; `None` if nobody knows it.
#[must_use]
pub fn verdict(tool: Tool, option: &str) -> Option<Verdict> {
    let of_action = |action: &'static Action| match *action {
        Accept(_) => Verdict::Accepted,
        Convert(_) => Verdict::Converted,
        Noted(name, _) | Same(name) => Verdict::Mapped(name),
        Refuse(_, remedy) => Verdict::Refused(remedy),
    };
    let own = || Name::Run.info().flags.iter().find(|flag| flag.long == option).map(|flag| flag.long);
    of_tool(tool, option)
        .map(of_action)
        .or_else(|| own().map(Verdict::Mapped))
        .or_else(|| of_any_tool(option).map(of_action))
}

/// What to do with an option.
pub(super) enum Action {
    /// Nothing: it says what is so anyway. It is followed by what `Takes` says.
    Accept(Takes),
    /// Read its value as options of ours.
    Convert(fn(&str) -> Converted),
    /// As `Same`, with a remark to the user.
    Noted(&'static str, &'static str),
    /// Refuse it: what is wrong, what to do instead.
    Refuse(&'static str, &'static str),
    /// Read it as our option of that name.
    Same(&'static str),
}

/// What follows an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing.
    Nothing,
    /// One value.
    Value,
}

/// Options of ours with their values (empty for a switch), or what is wrong with the value and what to do instead.
pub(super) type Converted = Result<Vec<(&'static str, String)>, (String, &'static str)>;

/// The action for an option that `tool` means in its own way, even where the name is one of ours.
pub(super) fn of_tool(tool: Tool, option: &str) -> Option<&'static Action> {
    find(OF_ONE_TOOL.iter().filter(|(of, ..)| *of == tool).map(|(_, names, action)| (*names, action)), option)
}

/// The action for an option that is not ours, whoever's it is.
pub(super) fn of_any_tool(option: &str) -> Option<&'static Action> {
    find(OF_ANY_TOOL.iter().map(|(names, action)| (*names, action)), option)
}

/// All names of the table that are spelt out, for finding the nearest.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    OF_ANY_TOOL.iter().flat_map(|(names, _)| names.iter().copied()).filter(|name| !name.ends_with('*'))
}

fn find(
    mut entries: impl Iterator<Item = (&'static [&'static str], &'static Action)>,
    option: &str,
) -> Option<&'static Action> {
    let matches = |name: &&str| match name.strip_suffix('*') {
        Some(prefix) => option.starts_with(prefix),
        None => *name == option,
    };
    entries.find(|(names, _)| names.iter().any(&matches)).map(|(_, action)| action)
}

const LATER: &str = "is not supported yet";
const NO_TOKENIZER: &str = "leave it out: tokens are counted by the server's usage";
const LENGTHS: &str = "give lengths by --random-input-len and --random-output-len, numbers or distributions";
const PREFIXES: &str = "give what prompts begin with by --random-prefix-len, or by --num-prefix-prompts and \
                        --prefix-prompt-length";
const DATA: &str = "give a local file by --dataset-path, or --random-input-len and --random-output-len";
const TIMES: &str = "give a trace with times by --trace, or the load by --request-rate and --arrival-pattern";
const SAVED: &str = "leave it out: every run is saved as tokload-<time>.json, or by --output-file";
const ONE_MODEL: &str = "give the adapter's name by --model, once for each";
const WARMUPS: &str = "use --num-warmups with a number of requests";
const SWEEP: &str = "give a comma list to --max-concurrency or --request-rate";
const REPEAT: &str =
    "leave it out: --num-runs runs every level that often, with requests of its own each time";
const MEASURE: &str = "leave it out: only the client's own measurements are taken so far";

/// Options that one tool means differently from us or from the others.
static OF_ONE_TOOL: [(Tool, &[&str], Action); 7] = [
    (
        Tool::Aiperf,
        &["--num-prompts"],
        Noted(
            "--num-dataset-entries",
            "--num-prompts is the number of different prompts here, as in aiperf; requests are --request-count",
        ),
    ),
    (Tool::Aiperf, &["--model", "--model-names", "-m"], Convert(models)),
    (
        Tool::Aiperf,
        &["--stream"],
        Refuse("exports telemetry in aiperf", "use --streaming for streamed answers"),
    ),
    (Tool::Aiperf, &["--config", "-f"], Refuse("is a YAML file in aiperf", "write a plan by --print-config")),
    (Tool::Aiperf, &["--arrival-pattern", "--request-rate-mode"], Convert(aiperf_pattern)),
    (Tool::Vllm, &["--no-stream"], Accept(Nothing)),
    (Tool::Vllm, &["--config"], Refuse("is a YAML file in vLLM", "write a plan by --print-config")),
];

/// Options that are not ours. A name that ends in `*` stands for all that begin so; the first match counts.
static OF_ANY_TOOL: &[(&[&str], Action)] = &[
    // Whom to ask.
    (&["--url", "-u", "--target", "--endpoints", "--server"], Same("--base-url")),
    (&["--custom-endpoint"], Same("--endpoint")),
    (&["--endpoint-type", "--api", "--api-type"], Same("--backend")),
    (&["--model-names"], Same("--model")),
    (&["--headers"], Same("--header")),
    (&["--url-strategy"], Convert(url_strategy)),
    (&["--model-selection-strategy"], Convert(url_strategy)),
    (&["--connection-reuse-strategy"], Convert(reuse)),
    (&["--force-close-connections"], Refuse(LATER, "leave it out: connections are reused")),
    (&["--transport", "--transport-type"], Convert(http_only)),
    (&["--request-content-type"], Convert(json_only)),
    (&["--cert", "--key"], Refuse(LATER, "leave it out: client certificates are not sent so far")),
    (&["--session-header", "--request-id-prefix"], Refuse(LATER, "give fixed fields by --header")),
    (&["--lora-modules", "--lora-assignment", "--lora-name"], Refuse(LATER, ONE_MODEL)),
    (&["--disable-stream"], Same("--no-streaming")),
    (
        &["--no-stream"],
        Noted(
            "--no-streaming",
            "--no-stream asks for whole answers here; in vLLM it is about loading a dataset (see --no-streaming)",
        ),
    ),
    (&["--stream"], Same("--streaming")),
    // How requests arrive.
    (
        &["--concurrency", "--num-concurrency", "--num-concurrent-requests", "--sweep-max-concurrency"],
        Same("--max-concurrency"),
    ),
    (&["--rate", "--target-qps", "--sweep-request-rate"], Same("--request-rate")),
    (&["--rate-type"], Convert(guidellm_rate_type)),
    (&["--arrival-smoothness", "--vllm-burstiness"], Same("--burstiness")),
    (&["--arrival-dist", "--load-pattern", "--request-rate-mode"], Same("--arrival-pattern")),
    (
        &[
            "--request-count",
            "--num-requests",
            "--max-requests",
            "--num-samples",
            "--num-sessions",
            "--num-conversations",
            "--conversation-num",
        ],
        Same("--num-prompts"),
    ),
    (&["--benchmark-duration", "--max-seconds"], Same("--duration")),
    (
        &[
            "--warmup",
            "--warmup-request-count",
            "--num-warmup-requests",
            "--warmup-requests",
            "--num-warmup-sessions",
        ],
        Same("--num-warmups"),
    ),
    (&["--warmup-*"], Refuse(LATER, WARMUPS)),
    (&["--ramp-up-*", "--request-rate-ramp-duration", "--concurrency-ramp-duration"], Refuse(LATER, SWEEP)),
    (&["--request-rate-series", "--probe-request-rate"], Refuse(LATER, SWEEP)),
    (&["--prefill-concurrency*"], Refuse(LATER, "use --max-concurrency")),
    (&["--user-centric-rate", "--num-users"], Refuse(LATER, "use --max-concurrency with --pace")),
    (
        &["--exact-count", "--strict-request-rate"],
        Refuse(LATER, "leave it out: the realised rate is reported"),
    ),
    (&["--self-timed", "--no-self-timed"], Refuse(LATER, "leave it out: sends follow the plan's own times")),
    (&["--start", "--busy-poll"], Refuse(LATER, "leave it out")),
    (&["--request-cancellation-*"], Refuse(LATER, "leave it out: no request is cancelled")),
    (&["--retries"], Refuse(LATER, "leave it out: a retry would hide a failure inside a latency")),
    (
        &["--sweep-*", "--parameter-sweep-*", "--no-parameter-sweep-*", "--no-sweep-table", "--variant"],
        Refuse(LATER, SWEEP),
    ),
    (&["--search-*", "--optuna-*", "--bo-constraint-mode", "--degradation-*"], Refuse(LATER, SWEEP)),
    (&["--concurrency-min", "--concurrency-max", "--concurrency-steps"], Refuse(LATER, SWEEP)),
    (
        &["--isl-min", "--isl-max", "--isl-steps", "--osl-min", "--osl-max", "--osl-steps"],
        Refuse(LATER, LENGTHS),
    ),
    (
        &["--num-profile-runs"],
        Noted(
            "--num-runs",
            "each of the runs has prompts and gaps of its own here; aiperf may repeat the same ones (--set-consistent-seed)",
        ),
    ),
    (&["--repeat"], Same("--num-runs")),
    (&["--confidence-level"], Convert(confidence)),
    (&["--profile-run-*", "--no-profile-run-*"], Refuse(LATER, REPEAT)),
    (
        &["--convergence-*"],
        Refuse(LATER, "use --until-ci, which lengthens a level until a figure is known well enough"),
    ),
    (
        &["--set-consistent-seed", "--no-set-consistent-seed", "--vary-seed-*", "--no-vary-seed-*"],
        Refuse(LATER, REPEAT),
    ),
    (&["--ruleset", "--scenario", "--unsafe-override"], Refuse(LATER, "give the options one by one")),
    // What to ask.
    (
        &[
            "--input-len",
            "--isl",
            "--synthetic-input-tokens-mean",
            "--prompt-input-tokens-mean",
            "--mean-input-tokens",
            "--prefix-repetition-suffix-len",
            "--gsp-question-len",
        ],
        Same("--random-input-len"),
    ),
    (
        &[
            "--output-len",
            "--osl",
            "--output-tokens-mean",
            "--prompt-output-tokens-mean",
            "--mean-output-tokens",
            "--prefix-repetition-output-len",
            "--gsp-output-len",
        ],
        Same("--random-output-len"),
    ),
    (
        &["--synthetic-input-tokens-stddev", "--prompt-input-tokens-stddev", "--stddev-input-tokens"],
        Same("--isl-stddev"),
    ),
    (
        &["--output-tokens-stddev", "--prompt-output-tokens-stddev", "--stddev-output-tokens"],
        Same("--osl-stddev"),
    ),
    (&["--random-seed"], Same("--seed")),
    (&["--disable-ignore-eos"], Same("--no-ignore-eos")),
    (&["--extra-inputs"], Convert(extra_inputs)),
    (&["--extra-request-body"], Same("--extra-body")),
    (&["--use-legacy-max-tokens"], Accept(Nothing)),
    (
        &["--logprobs", "--use-beam-search", "--chat-template-kwargs"],
        Refuse(LATER, "give the field by --extra-body"),
    ),
    (
        &["--random-batch-size", "--prompt-batch-size", "--batch-size*", "-b", "--no-reranker"],
        Refuse(LATER, "leave it out: a request has one prompt"),
    ),
    (&["--random-mm-*", "--enable-multimodal-chat", "--custom-ensure-client-side-data"], Refuse(LATER, DATA)),
    (
        &["--audio-*", "--image-*", "--video-*", "--download-video-content", "--uuid-and-strip"],
        Refuse(LATER, DATA),
    ),
    (&["--rankings-*", "--accuracy-*", "--prompt-corpus"], Refuse(LATER, DATA)),
    (&["--input-file", "--prompts"], Same("--dataset-path")),
    (&["--custom-dataset-type"], Convert(custom_dataset_type)),
    (&["--public-dataset"], Refuse("would download a data set", DATA)),
    (&["--dataset-sampling-strategy"], Convert(sampling_strategy)),
    (&["--sharegpt-output-len", "--hf-output-len"], Same("--random-output-len")),
    (&["--custom-output-len"], Convert(custom_output_len)),
    (&["--allow-dataset-wrap"], Accept(Nothing)),
    (&["--data"], Convert(guidellm::data)),
    (&["--dataset-*", "--hf-*", "--sharegpt-*", "--sonnet-*", "--bfcl-*"], Refuse(LATER, DATA)),
    (
        &["--asr-*", "--blazedit-*", "--spec-bench-*", "--speed-bench-*", "--no-allow-dataset-wrap"],
        Refuse(LATER, DATA),
    ),
    (&["--no-oversample", "--skip-chat-template", "--apply-chat-template"], Refuse(LATER, DATA)),
    (&["--seq-dist", "--sequence-distribution", "--isl-osl-pairs"], Refuse(LATER, LENGTHS)),
    (
        &[
            "--isl-block-size",
            "--prompt-input-tokens-block-size",
            "--synthetic-input-tokens-block-size",
            "--timed-trace-chunk-hash-size",
        ],
        Same("--trace-block-tokens"),
    ),
    (&["--prompt-input-tokens-*", "--synthetic-input-tokens-*"], Refuse(LATER, LENGTHS)),
    (
        &[
            "--prefix-prompt-pool-size",
            "--prompt-prefix-pool-size",
            "--prefix-repetition-num-prefixes",
            "--gsp-num-groups",
        ],
        Same("--num-prefix-prompts"),
    ),
    (
        &["--prompt-prefix-length", "--prefix-repetition-prefix-len", "--gsp-system-prompt-len"],
        Same("--prefix-prompt-length"),
    ),
    (&["--shared-prefix-tokens"], Same("--random-prefix-len")),
    (&["--gsp-prompts-per-group"], Refuse(LATER, "give the groups times the prompts by --num-prompts")),
    (
        &["--prefix-*", "--prompt-prefix-*", "--gsp-*", "--shared-*", "--user-context-*"],
        Refuse(LATER, PREFIXES),
    ),
    (&["--cache-bust"], Convert(cache_bust)),
    (&["--flush-cache", "--reset-kv-cache"], Same("--reset-prefix-cache")),
    (&["--reset-*"], Refuse(LATER, "use --reset-prefix-cache, which knows the paths of vLLM and SGLang")),
    (
        &[
            "--multi-turn*",
            "--session-*",
            "--conversation-*",
            "--inter-turn-*",
            "--max-idle-gap-*",
            "--max-context-length",
        ],
        Refuse(LATER, "leave it out: a session has one turn"),
    ),
    (&["--use-trace-timestamps"], Same("--fixed-schedule")),
    (&["--fixed-schedule-auto-offset"], Accept(Nothing)),
    (
        &["--fixed-schedule-start-offset", "--fixed-schedule-end-offset"],
        Refuse(
            "counts milliseconds from the trace's own zero",
            "give --trace-slice FROM:UNTIL in seconds after its first request",
        ),
    ),
    (&["--timed-trace-sec-multiplier"], Convert(trace_multiplier)),
    (
        &["--timed-trace-*"],
        Refuse(LATER, "leave it out: fields are found by their names in the format of --trace-format"),
    ),
    (&["--replay-speedup", "--synthesis-speedup-ratio"], Same("--trace-speedup")),
    (&["--synthesis-max-osl"], Same("--trace-output-max")),
    (&["--synthesis-*"], Refuse(LATER, "use --trace-speedup, --trace-input-max and --trace-output-max")),
    (&["--trace*", "--fixed-schedule*", "--no-fixed-schedule", "--compat"], Refuse(LATER, TIMES)),
    (
        &["--open-loop-*", "--no-open-loop-replay", "--ignore-trace-delays", "--use-think-time-only"],
        Refuse(LATER, TIMES),
    ),
    (
        &[
            "--trajectory-*",
            "--burst-phase-starts",
            "--system-idle-*",
            "--agentic-*",
            "--omit-kv-hints",
            "--force-min-tokens",
            "--no-force-min-tokens",
        ],
        Refuse(LATER, TIMES),
    ),
    // Counting tokens.
    (&["--use-server-token-count", "--skip-tokenizer-init", "--trust-remote-code"], Accept(Nothing)),
    (&["--tokenizer-trust-remote-code"], Accept(Nothing)),
    (&["--tokenizer", "--tokenizer-mode", "--tokenizer-revision"], Refuse(LATER, NO_TOKENIZER)),
    // Limits.
    (&["--slo-ttft-ms", "--ttft-sla-ms", "--slo-ttft"], Convert(slo_ttft)),
    (&["--slo-tpot-ms", "--tpot-sla-ms", "--slo-tpot", "--itl-sla-ms"], Convert(slo_tpot)),
    (&["--e2e-sla-ms"], Convert(slo_e2e)),
    (&["--error-rate-sla"], Same("--failed-request-threshold")),
    (&["--slo-attainment-fraction"], Refuse(LATER, "leave it out: the share of good requests is reported")),
    (&["--timeout"], Same("--request-timeout-seconds")),
    (&["--wait-for-model-timeout"], Same("--ready-check-timeout-sec")),
    (&["--wait-for-model-*"], Refuse(LATER, "use --ready-check-timeout-sec")),
    // The client.
    (&["--threads", "--num-workers"], Same("--workers")),
    (
        &["--workers-max", "--max-workers", "--record-processors", "--record-processor-service-count"],
        Refuse("is about Python processes", "use --workers for threads, or leave it out for one per core"),
    ),
    (&["--zmq-*", "--api-port", "--api-host"], Refuse(LATER, "leave it out: one process does it all")),
    (&["--verbose", "-v", "-vv", "--extra-verbose"], Accept(Nothing)),
    (&["--log-level", "--stats-interval"], Accept(Value)),
    // The result.
    (&["--disable-tqdm"], Same("--no-progress")),
    (&["--ui", "--ui-type"], Convert(ui)),
    (&["--out"], Same("--output-file")),
    (&["--tag"], Same("--label")),
    (&["--output-details"], Same("--save-detailed")),
    (&["--export-level", "--profile-export-level"], Convert(export_level)),
    (&["--save-result", "--result-filename", "--append-result"], Refuse(LATER, SAVED)),
    (
        &["--result-dir", "--artifact-dir", "--output-artifact-dir", "--report-dir", "--profile-export-*"],
        Refuse(LATER, "give the whole path by --output-file"),
    ),
    (
        &["--export*", "--output-*", "--auto-plot", "--no-auto-plot", "--plot-*", "--timeline-*"],
        Refuse(LATER, SAVED),
    ),
    (
        &["--percentile-metrics", "--metric-percentiles"],
        Refuse(LATER, "leave it out: p50 and p99 of TTFT, TPOT, ITL and E2E are printed, all are saved"),
    ),
    (&["--slice-duration"], Refuse(LATER, "leave it out: a series of at most 1800 bins is saved")),
    (&["--show-trace-timing", "--network-latency-*"], Refuse(LATER, MEASURE)),
    (
        &["--server-metrics*", "--gpu-telemetry", "--gpu", "--scrape-metrics", "--replica-header"],
        Refuse(LATER, MEASURE),
    ),
    (&["--no-server-metrics", "--no-gpu-telemetry"], Accept(Nothing)),
    (&["--metrics-listen", "--otel-*", "--gen-ai-provider", "--mlflow-*", "--wandb-*"], Refuse(LATER, SAVED)),
    (&["--profile", "--server-profiler*"], Refuse(LATER, "start the server's profiler by hand")),
    (&["--compare"], Refuse(LATER, "print each run by tokload report")),
];

/// aiperf's names for the formats of files; a trace is replayed at its times there.
fn custom_dataset_type(value: &str) -> Converted {
    match value.replace('-', "_").as_str() {
        "bailian_trace" | "burst_gpt_trace" | "mooncake_trace" => {
            let format = value.replace('_', "-");
            Ok(vec![("--fixed-schedule", String::new()), ("--trace-format", format)])
        }
        "single_turn" | "multi_turn" | "sharegpt" => Ok(vec![("--trace-format", value.to_owned())]),
        _ => Err((format!("'{value}' is not supported yet"), TIMES)),
    }
}

fn sampling_strategy(value: &str) -> Converted {
    match value {
        "sequential" => Ok(vec![("--disable-shuffle", String::new())]),
        "shuffle" => Ok(Vec::new()),
        _ => Err((
            format!("'{value}' is not supported yet"),
            "give shuffle or sequential: each prompt is taken once in a pass",
        )),
    }
}

/// vLLM's -1 is the length that the file says, which is so here without the option.
fn custom_output_len(value: &str) -> Converted {
    match value {
        "-1" => Ok(Vec::new()),
        _ => Ok(vec![("--random-output-len", value.to_owned())]),
    }
}

/// vLLM's factor that makes seconds of a trace's times: those of the format that it reads are milliseconds.
fn trace_multiplier(value: &str) -> Converted {
    match value.parse() {
        Ok(0.001) => Ok(Vec::new()),
        _ => Err((
            format!("'{value}' is another unit than the format's milliseconds"),
            "leave it out, and make the trace faster or slower by --trace-speedup",
        )),
    }
}

fn models(value: &str) -> Converted {
    Ok(value.split(',').map(|name| ("--model", name.trim().to_owned())).collect())
}

fn aiperf_pattern(value: &str) -> Converted {
    match value {
        "concurrency_burst" => Err((
            "concurrency_burst is not a process of its own here".into(),
            "leave it out and use --concurrency",
        )),
        _ => Ok(vec![("--arrival-pattern", value.to_owned())]),
    }
}

fn url_strategy(value: &str) -> Converted {
    only(value, &["round_robin", "round-robin"], "leave it out: requests take servers and models in turn")
}

fn reuse(value: &str) -> Converted {
    only(value, &["pooled"], "leave it out: connections are pooled and reused")
}

fn http_only(value: &str) -> Converted {
    only(value, &["http"], "leave it out: requests go by HTTP/1.1")
}

fn json_only(value: &str) -> Converted {
    only(value, &["application/json"], "leave it out: bodies are JSON")
}

fn confidence(value: &str) -> Converted {
    only(value, &["0.95", "95"], "leave it out: intervals are of 95 %")
}

fn cache_bust(value: &str) -> Converted {
    only(
        value,
        &["none"],
        "leave it out: every prompt begins with a word of its own, unless options say otherwise",
    )
}

/// Accepts the values that say what is so anyway.
fn only(value: &str, accepted: &[&str], remedy: &'static str) -> Converted {
    match accepted.contains(&value) {
        true => Ok(Vec::new()),
        false => Err((format!("'{value}' is not supported yet"), remedy)),
    }
}

fn guidellm_rate_type(value: &str) -> Converted {
    match value {
        "constant" | "poisson" => Ok(vec![("--arrival-pattern", value.to_owned())]),
        "concurrent" | "synchronous" => {
            Err((format!("with '{value}' a rate is a number of users"), "give it by --max-concurrency"))
        }
        _ => Err((format!("'{value}' is not supported yet"), SWEEP)),
    }
}

/// aiperf's `key:value`, the value read as JSON where it is JSON, or a JSON object.
fn extra_inputs(value: &str) -> Converted {
    if value.trim_start().starts_with('{') {
        return Ok(vec![("--extra-body", value.to_owned())]);
    }
    let Some((key, text)) = value.split_once(':').filter(|(key, _)| !key.is_empty()) else {
        return Err((format!("'{value}' is not key:value"), "give key:value or a JSON object"));
    };
    let mut body = Map::new();
    body.insert(key.to_owned(), serde_json::from_str(text).unwrap_or_else(|_| Json::String(text.to_owned())));
    Ok(vec![("--extra-body", Json::Object(body).to_string())])
}

fn slo_ttft(value: &str) -> Converted {
    Ok(vec![("--goodput", format!("ttft:{value}"))])
}

/// aiperf's inter-token latency is one value per request, which is TPOT.
fn slo_tpot(value: &str) -> Converted {
    Ok(vec![("--goodput", format!("tpot:{value}"))])
}

fn slo_e2e(value: &str) -> Converted {
    Ok(vec![("--goodput", format!("e2e:{value}"))])
}

fn ui(value: &str) -> Converted {
    match value {
        "none" => Ok(vec![("--no-progress", String::new())]),
        "dashboard" | "simple" => Ok(Vec::new()),
        _ => Err((format!("'{value}' is no kind of display"), "give simple or none")),
    }
}

fn export_level(value: &str) -> Converted {
    match value {
        "records" => Ok(vec![("--save-detailed", String::new())]),
        "summary" => Ok(Vec::new()),
        _ => Err((format!("'{value}' is not supported yet"), "give summary or records")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_alias_leads_to_an_option_of_ours() {
        let flags = Name::Run.info().flags;
        let actions = OF_ANY_TOOL.iter().map(|(_, action)| action);
        for action in actions.chain(OF_ONE_TOOL.iter().map(|(.., action)| action)) {
            if let Same(name) | Noted(name, _) = action {
                assert!(flags.iter().any(|flag| flag.long == *name), "{name}");
            }
        }
    }

    #[test]
    fn no_name_stands_twice_and_none_hides_an_option_of_ours() {
        let flags = Name::Run.info().flags;
        let all: Vec<&str> = OF_ANY_TOOL.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        for (place, name) in all.iter().enumerate() {
            assert!(!all[..place].contains(name), "{name} stands twice");
            assert!(!flags.iter().any(|flag| flag.long == *name), "{name} is ours");
        }
    }

    #[test]
    fn every_exact_name_is_reached() {
        // A pattern above an exact name would shadow it.
        for (names, action) in OF_ANY_TOOL {
            for name in names.iter().filter(|name| !name.contains('*')) {
                let found = of_any_tool(name).unwrap();
                assert!(std::ptr::eq(found, action), "{name} is shadowed");
            }
        }
    }

    #[test]
    fn extra_inputs_become_a_body() {
        let body = |text: &str| extra_inputs(text).unwrap().remove(0).1;
        assert_eq!(body("ignore_eos:true"), r#"{"ignore_eos":true}"#);
        assert_eq!(body("temperature:0.5"), r#"{"temperature":0.5}"#);
        assert_eq!(body("stop:a:b"), r#"{"stop":"a:b"}"#);
        assert_eq!(body(r#"{"a":1}"#), r#"{"a":1}"#);
        assert!(extra_inputs("nothing").is_err());
    }
}
