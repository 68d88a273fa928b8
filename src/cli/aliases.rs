//! Other spellings: what the options of the other tools, and older names, are here. One table.
//!
//! An alias never changes a meaning. Where the other tool means something else by a name, its value is converted or
//! the option is refused with what to do instead; nothing is silently ignored but what says what is so anyway. Names
//! are spelt with dashes; the reading of a command line is `normalise`'s. What becomes of every option of the other
//! tools is shown by `FLAGS.md`, a page that a test writes from this table, below.

#![doc = include_str!("FLAGS.md")]

mod guidellm;
mod servebench;
mod sglang;

use serde_json::{Map, Value as Json};

use self::Action::{Accept, Convert, Noted, Refuse, Same, Set};
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
        Noted(name, _) | Same(name) | Set(name, _) => Verdict::Mapped(name),
        Refuse(_, remedy) => Verdict::Refused(remedy),
    };
    let own = || Name::Run.info().flags.iter().find(|flag| is_spelt(flag, option)).map(|flag| flag.long);
    of_tool(tool, option)
        .map(of_action)
        .or_else(|| own().map(Verdict::Mapped))
        .or_else(|| of_any_tool(option).map(of_action))
}

/// What is wrong with `option` on a command line of `tool`, where it is refused whatever its value.
#[must_use]
pub fn wrong(tool: Tool, option: &str) -> Option<&'static str> {
    let own = Name::Run.info().flags.iter().any(|flag| is_spelt(flag, option));
    let action = of_tool(tool, option).or_else(|| of_any_tool(option).filter(|_| !own))?;
    match action {
        Refuse(wrong, _) => Some(wrong),
        _ => None,
    }
}

/// The options of ours, with their values, that `option` with this value is read as, if its value is read here at all:
/// nothing where it says what is so anyway, else what is wrong with the value and what to do instead.
#[must_use]
pub fn converted(tool: Tool, option: &str, value: &str) -> Option<Result<String, String>> {
    let Convert(convert) = of_tool(tool, option).or_else(|| of_any_tool(option))? else { return None };
    let words = |pairs: Vec<(&str, String)>| {
        let words: Vec<String> = pairs.iter().map(|(option, value)| format!("{option} {value}")).collect();
        words.join(" ").trim_end().to_owned()
    };
    Some(convert(value).map(words).map_err(|(wrong, remedy)| format!("{wrong}; {remedy}")))
}

/// Whether `option` is that option of ours, long or short.
fn is_spelt(flag: &argh::FlagInfo<'_>, option: &str) -> bool {
    flag.long == option || flag.short.is_some_and(|short| option == format!("-{short}"))
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
    /// It is a switch: read it as our option of that name with this value.
    Set(&'static str, &'static str),
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
    find(of_any().map(|(names, action)| (*names, action)), option)
}

/// Options that are not ours: first those that one tool alone has, which patterns of the others would cover.
fn of_any() -> impl Iterator<Item = &'static (&'static [&'static str], Action)> {
    [sglang::TABLE, servebench::TABLE, guidellm::TABLE, OF_ANY_TOOL].into_iter().flatten()
}

/// All names of the table that are spelt out, for finding the nearest.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    of_any().flat_map(|(names, _)| names.iter().copied()).filter(|name| !name.ends_with('*'))
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
const TOKENIZER: &str = "leave it out, or name the file of that version by --tokenizer PATH";
const LENGTHS: &str = "give lengths by --random-input-len and --random-output-len, numbers or distributions";
const PREFIXES: &str = "give what prompts begin with by --random-prefix-len, or by --num-prefix-prompts and \
                        --prefix-prompt-length";
const DATA: &str = "give a local file by --dataset-path, or --random-input-len and --random-output-len";
const TIMES: &str = "give a trace with times by --trace, or the load by --request-rate and --arrival-pattern";
const SAVED: &str = "leave it out: every run is saved as tokload-TIME.json, or by --output-file";
const HUB: &str = "is about a data set that would be downloaded";
const HUB_REMEDY: &str =
    "give a local file by --dataset-path, and the length of answers by --random-output-len";
const IMAGES: &str = "is about images, sound or films, and prompts are texts here";
const IMAGES_REMEDY: &str =
    "leave it out, or give ready messages with data URLs in a data set of --dataset-path";
const PROFILER: &str = "start and stop it by hand: POST /start_profile and /stop_profile";
const WARMUPS: &str = "use --num-warmups with a number of requests, which go at the level's own load";
const SWEEP: &str = "give a comma list to --max-concurrency or --request-rate";

/// Options that one tool means differently from us or from the others.
static OF_ONE_TOOL: [(Tool, &[&str], Action); 9] = [
    (
        Tool::Aiperf,
        &["--num-prompts"],
        Noted(
            "--num-dataset-entries",
            "--num-prompts is the number of different prompts here, as in aiperf; requests are --request-count",
        ),
    ),
    (Tool::Aiperf, &["--model", "--model-names", "-m"], Convert(models)),
    (Tool::Aiperf, &["--url", "-u"], Convert(urls)),
    (
        Tool::Aiperf,
        &["--failed-request-threshold"],
        Noted(
            "--failed-request-threshold",
            "--failed-request-threshold is judged when the run is over; aiperf ends it early",
        ),
    ),
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
    (&["--force-close-connections", "--disable-keepalive"], Set("--connection-reuse-strategy", "never")),
    (&["--transport", "--transport-type"], Convert(http_only)),
    (&["--request-content-type"], Convert(json_only)),
    (&["--request-id-prefix"], Convert(request_id)),
    (
        &["--lora-name"],
        Noted(
            "--lora-modules",
            "an adapter is asked for as the model; where SGLang wants lora_path as well, give --extra-body \
             '{\"lora_path\":\"{{model}}\"}'",
        ),
    ),
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
    (&["--request-count", "--num-requests", "--max-requests", "--num-samples"], Same("--num-prompts")),
    (&["--num-sessions", "--num-conversations", "--conversation-num"], Same("--max-sessions")),
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
    (&["--warmup-*"], Refuse("gives a warm-up a load of its own", WARMUPS)),
    (
        &["--probe-request-rate"],
        Refuse(
            "sends other requests beside the load",
            "run a second tokload beside this one, with --request-rate and --random-output-len 1",
        ),
    ),
    (
        &["--prefill-concurrency*"],
        Refuse(
            "limits the requests that wait for their first token",
            "use --max-concurrency, which limits all that are in flight",
        ),
    ),
    (
        &["--user-centric-rate"],
        Noted(
            "--pace",
            "each user sends every --num-users / --user-centric-rate seconds, as in aiperf; after a late answer it keeps to \
             its schedule here, where aiperf moves it",
        ),
    ),
    (&["--num-users"], Same("--max-concurrency")),
    (&["--user-centric-*"], Refuse(LATER, "leave it out: the gaps between the sends of a user are equal")),
    (&["--strict-request-rate"], Refuse(LATER, "leave it out: the realised rate is reported")),
    (&["--self-timed"], Same("--fixed-schedule")),
    (
        &["--no-self-timed"],
        Refuse(
            "leaves the times of a trace unused",
            "leave out --dataset-name timed_trace as well: the file of --dataset-path alone is sent at --request-rate",
        ),
    ),
    (&["--start", "--busy-poll"], Refuse(LATER, "leave it out")),
    (&["--retries"], Refuse(LATER, "leave it out: a retry would hide a failure inside a latency")),
    (
        &["--sweep-summary-percentiles"],
        Refuse(LATER, "use --metric-percentiles: every level has a block of its own"),
    ),
    (
        &["--sweep-num-prompts-factor"],
        Refuse(LATER, "leave out --num-prompts: a level of N users has max(16, 4 N) requests then"),
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
    (&["--no-profile-run-disable-warmup-after-first"], Accept(Nothing)),
    (
        &["--profile-run-disable-warmup-after-first"],
        Refuse("warms up before the first run only", "leave it out: --num-warmups go before every level"),
    ),
    (&["--parameter-sweep-cooldown-seconds", "--profile-run-cooldown-seconds"], Convert(cooldown)),
    (
        &["--convergence-*"],
        Refuse(LATER, "use --until-ci, which lengthens a level until a figure is known well enough"),
    ),
    // Each level of each run has prompts and gaps of its own.
    (
        &["--no-parameter-sweep-same-seed", "--no-set-consistent-seed", "--vary-seed-per-trial"],
        Accept(Nothing),
    ),
    (
        &["--no-vary-seed-per-trial", "--parameter-sweep-same-seed", "--set-consistent-seed"],
        Refuse(
            "sends the same prompts again, which a prefix cache then answers",
            "leave it out: each level of each run has prompts of its own; --seed repeats a whole run",
        ),
    ),
    (&["--parameter-sweep-mode"], Convert(sweep_mode)),
    (&["--sweep-type"], Convert(sweep_type)),
    (&["--no-sweep-table"], Refuse("hides the table over all levels", "leave it out, or use --format json")),
    (
        &["--ruleset", "--scenario", "--unsafe-override"],
        Refuse(
            LATER,
            "give the options one by one, or a workload by --preset (chat, rag, code, agent and others)",
        ),
    ),
    (&["--sweep-*", "--variant"], Refuse(LATER, SWEEP)),
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
        &["--logprobs"],
        Refuse(
            "is a field of the request",
            r#"give it by --extra-body: '{"logprobs":5}' for completions, '{"logprobs":true,"top_logprobs":5}' for chat"#,
        ),
    ),
    (
        &["--use-beam-search"],
        Refuse(
            "is read and left unused by vLLM's own client",
            r#"leave it out, or give the field by --extra-body '{"use_beam_search":true}'"#,
        ),
    ),
    (
        &["--chat-template-kwargs"],
        Refuse(
            "is for a client that writes out the chat template itself",
            r#"give it to the server by --extra-body, as in '{"chat_template_kwargs":{"enable_thinking":false}}'"#,
        ),
    ),
    (
        &["--batch-size", "--batch-size-text", "--prompt-batch-size", "--random-batch-size", "-b"],
        Convert(batch),
    ),
    (&["--batch-size-*"], Refuse(IMAGES, IMAGES_REMEDY)),
    (
        &["--no-reranker"],
        Refuse("is about rankings, which are not asked for here", "use --backend raw with a body of yours"),
    ),
    (
        &["--random-mm-*", "--enable-multimodal-chat", "--custom-ensure-client-side-data"],
        Refuse(IMAGES, IMAGES_REMEDY),
    ),
    (
        &["--audio-*", "--image-*", "--video-*", "--download-video-content", "--uuid-and-strip"],
        Refuse(IMAGES, IMAGES_REMEDY),
    ),
    (
        &["--accuracy-*"],
        Refuse("is about whether answers are right", "leave it out, and measure that with a tool for it"),
    ),
    (
        &["--rankings-*"],
        Refuse("is about rankings, which are not asked for here", "use --backend raw with a body of yours"),
    ),
    (&["--random-corpus-style"], Convert(corpus_style)),
    (
        &["--prompt-corpus"],
        Refuse(
            "is about aiperf's own texts",
            "leave it out: prompts are of words that are one token each in most tokenizers; give texts by --dataset-path",
        ),
    ),
    (
        &["--system-prompt", "--system-prompt-file"],
        Refuse(LATER, "give messages with a system message in a data set of --dataset-path"),
    ),
    (&["--prompt-suffix"], Refuse(LATER, "write it into the prompts of a data set of --dataset-path")),
    (
        &["--max-model-len"],
        Refuse(
            "is the server's limit, which its client cannot set",
            "leave it out: what is too long is refused by the server and counted with its words",
        ),
    ),
    (&["--hf-text-column"], Same("--dataset-column")),
    (&["--input-file"], Same("--dataset-path")),
    (&["--custom-dataset-type"], Convert(custom_dataset_type)),
    (&["--public-dataset"], Refuse("would download a data set", DATA)),
    (&["--dataset-sampling-strategy"], Convert(sampling_strategy)),
    (&["--sharegpt-output-len", "--hf-output-len"], Same("--random-output-len")),
    (&["--custom-output-len"], Convert(custom_output_len)),
    (&["--allow-dataset-wrap"], Accept(Nothing)),
    (
        &["--asr-*", "--bfcl-*", "--blazedit-*", "--hf-*", "--spec-bench-*", "--speed-bench-*"],
        Refuse(HUB, HUB_REMEDY),
    ),
    (
        &["--sonnet-*"],
        Refuse(
            "cuts lines of a poem into prompts",
            "give the file's lines as prompts by --dataset-path, or lengths by --random-input-len",
        ),
    ),
    (&["--dataset-*", "--sharegpt-*", "--no-allow-dataset-wrap", "--no-oversample"], Refuse(LATER, DATA)),
    // No template is written out here: messages go to the server as they are, other prompts as text.
    (&["--skip-chat-template"], Accept(Nothing)),
    (
        &["--apply-chat-template"],
        Refuse(
            "is for a client that writes out the chat template itself",
            "use --backend openai-chat, where the server does it",
        ),
    ),
    (&["--seq-dist"], Same("--sequence-distribution")),
    (
        &["--isl-osl-pairs"],
        Refuse(
            "is a sweep over pairs of lengths in aiperf",
            "run once for each pair, or give a mix of them by --sequence-distribution",
        ),
    ),
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
    (&["--gsp-zipf-alpha"], Same("--prefix-zipf")),
    (&["--gsp-group-distribution"], Convert(group_distribution)),
    (
        &["--prefix-*", "--prompt-prefix-*", "--gsp-*", "--shared-*", "--user-context-*"],
        Refuse(LATER, PREFIXES),
    ),
    (&["--cache-bust"], Convert(cache_bust)),
    (&["--flush-cache", "--reset-kv-cache"], Same("--reset-prefix-cache")),
    (
        &["--reset-*"],
        Refuse(
            "is about the call that empties a cache",
            "use --reset-prefix-cache alone, which knows the paths of vLLM and SGLang",
        ),
    ),
    (&["--session-turns-mean", "--conversation-turn-mean"], Same("--multi-turn-num-turns")),
    (&["--conversation-turn-stddev"], Same("--session-turns-stddev")),
    (&["--session-turn-delay-mean", "--conversation-turn-delay-mean"], Same("--multi-turn-delay-ms")),
    (&["--conversation-turn-delay-stddev"], Same("--session-turn-delay-stddev")),
    (&["--conversation-turn-delay-ratio"], Same("--session-delay-ratio")),
    (&["--multi-turn-concurrency"], Same("--max-concurrency")),
    (
        &[
            "--multi-turn*",
            "--session-*",
            "--conversation-*",
            "--inter-turn-*",
            "--max-idle-gap-*",
            "--max-context-length",
            "--mooncake-num-rounds",
        ],
        Refuse(LATER, "see --multi-turn and the options behind it in tokload run --help"),
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
    (&["--no-fixed-schedule"], Accept(Nothing)),
    (&["--trace*", "--fixed-schedule*"], Refuse(LATER, TIMES)),
    (&["--open-loop-*", "--no-open-loop-replay"], Refuse(LATER, TIMES)),
    (
        &["--trajectory-*", "--burst-phase-starts", "--system-idle-*", "--agentic-*", "--omit-kv-hints"],
        Refuse(LATER, TIMES),
    ),
    (&["--no-force-min-tokens"], Accept(Nothing)),
    (
        &["--force-min-tokens"],
        Refuse(
            "sends min_tokens",
            "use --ignore-eos, which keeps answers as long as they are asked for, or --extra-body '{\"min_tokens\":N}'",
        ),
    ),
    // Counting tokens.
    (&["--use-server-token-count", "--skip-tokenizer-init", "--trust-remote-code"], Accept(Nothing)),
    (&["--tokenizer-trust-remote-code"], Accept(Nothing)),
    (&["--tokenizer-mode", "--tokenizer-revision"], Refuse(LATER, TOKENIZER)),
    (&["--prompt-token-ids"], Same("--tokenize-prompt")),
    // Limits.
    (&["--slo-ttft-ms", "--ttft-sla-ms", "--slo-ttft"], Convert(slo_ttft)),
    (&["--slo-tpot-ms", "--tpot-sla-ms", "--slo-tpot", "--itl-sla-ms"], Convert(slo_tpot)),
    (&["--e2e-sla-ms"], Convert(slo_e2e)),
    (&["--error-rate-sla"], Same("--failed-request-threshold")),
    (&["--slo-attainment-fraction"], Refuse(LATER, "leave it out: the share of good requests is reported")),
    (&["--timeout"], Same("--request-timeout-seconds")),
    (&["--wait-for-model-timeout"], Same("--ready-check-timeout-sec")),
    (&["--wait-for-model-mode"], Convert(ready_by)),
    (
        &["--wait-for-model-interval"],
        Refuse(
            "says how often a server is asked that is not ready",
            "leave it out, and say by --ready-check-timeout-sec for how long",
        ),
    ),
    // The client.
    (&["--threads", "--num-workers"], Same("--workers")),
    (
        &["--workers-max", "--max-workers", "--record-processors", "--record-processor-service-count"],
        Refuse("is about Python processes", "use --workers for threads, or leave it out for one per core"),
    ),
    (
        &["--zmq-*", "--api-port", "--api-host"],
        Refuse("is about how aiperf's processes talk", "leave it out: one process does it all"),
    ),
    (&["--verbose", "-v", "-vv", "--extra-verbose"], Accept(Nothing)),
    (&["--log-level", "--stats-interval"], Accept(Value)),
    // The result.
    (&["--disable-tqdm"], Same("--no-progress")),
    (&["--ui-type"], Same("--ui")),
    (&["--out"], Same("--output-file")),
    (&["--tag"], Same("--label")),
    (&["--output-details"], Same("--save-detailed")),
    (&["--export-level", "--profile-export-level"], Convert(export_level)),
    (&["--artifact-dir", "--output-artifact-dir", "--report-dir"], Same("--result-dir")),
    (
        &["--profile-export-*"],
        Refuse("names files of aiperf's forms", "give the path of the result by --output-file"),
    ),
    (
        &["--export-outputs-json", "--output-*", "--auto-plot", "--plot-*", "--timeline-*"],
        Refuse(LATER, SAVED),
    ),
    (
        &["--export-http-trace", "--show-trace-timing"],
        Refuse(
            "is about the parts of a request",
            "use --save-detailed, which has connect, first byte and every other mark of each request",
        ),
    ),
    (
        &["--network-latency-*"],
        Refuse(
            "takes the way through the network off the latencies",
            "leave it out: latencies are what a user has; --timestamps kernel takes the client's own part out",
        ),
    ),
    (
        &["--server-metrics-formats"],
        Refuse("names files of its own", "leave it out: what servers say is part of the saved run"),
    ),
    (&["--no-auto-plot"], Accept(Nothing)),
    (&["--otel-*", "--gen-ai-provider", "--mlflow-*", "--wandb-*"], Refuse(LATER, SAVED)),
    (
        &["--profile"],
        Refuse(
            "is the server's profiler in vLLM and SGLang and a load in guidellm",
            "start and stop the profiler by hand (POST /start_profile and /stop_profile), or give a load by \
             --max-concurrency or --request-rate",
        ),
    ),
    (
        &["--profile-batch-threshold", "--profile-duration", "--server-profiler*"],
        Refuse("is about the server's profiler", PROFILER),
    ),
    (&["--per-chunk-usage"], Same("--continuous-usage-stats")),
    (
        &["--no-steady-state", "--steady-state-*"],
        Refuse(
            "chooses the window of vLLM's client in Rust",
            "use --steady-cut none, or leave it out: both the window and the whole level are saved",
        ),
    ),
    (&["--random-cache-hit-fraction", "--random-cache-ratio"], Refuse(LATER, PREFIXES)),
    (&["--compare"], Refuse(LATER, "print each run by tokload report")),
];

/// aiperf's names for the formats of files; a trace is replayed at its times there.
fn custom_dataset_type(value: &str) -> Converted {
    match value.replace('-', "_").as_str() {
        "bailian_trace" | "burst_gpt_trace" | "mooncake_trace" => {
            let format = value.replace('_', "-");
            Ok(vec![("--fixed-schedule", String::new()), ("--trace-format", format)])
        }
        "weka_trace" => Ok(vec![("--trace-format", "weka".to_owned())]),
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

fn urls(value: &str) -> Converted {
    Ok(value.split(',').map(|url| ("--base-url", url.trim().to_owned())).collect())
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

/// vLLM's field with the number of the request behind the prefix.
fn request_id(value: &str) -> Converted {
    let literal = value.replace("{{", "{{{{");
    Ok(vec![("--header", format!("x-request-id: {literal}{{{{index}}}}"))])
}

fn http_only(value: &str) -> Converted {
    only(value, &["http"], "leave it out: requests go by HTTP/1.1")
}

fn json_only(value: &str) -> Converted {
    only(value, &["application/json"], "leave it out: bodies are JSON")
}

/// Both are so anyway: models are asked for, and one short request goes before a run.
fn ready_by(value: &str) -> Converted {
    only(value, &["both", "inference"], "leave it out: one short request goes before every run")
}

/// Prompts of a request.
fn batch(value: &str) -> Converted {
    only(value, &["1"], "leave it out: a request has one prompt")
}

fn cooldown(value: &str) -> Converted {
    match value.parse() {
        Ok(0.0) => Ok(Vec::new()),
        _ => Err((
            format!("'{value}' is a pause between levels, which there is none of yet"),
            "leave it out, and run the levels one by one with pauses of yours",
        )),
    }
}

/// All levels in turn, then all again.
fn sweep_mode(value: &str) -> Converted {
    only(value, &["repeated"], "leave it out: all levels are run in turn, then all again")
}

/// How `--random-range-ratio` spreads lengths; the words are ours either way.
fn corpus_style(value: &str) -> Converted {
    only(value, &["vllm"], "leave it out: lengths are spread evenly about the number given, as in vLLM")
}

fn sweep_type(value: &str) -> Converted {
    only(value, &["grid"], "leave it out, and give one list: --max-concurrency or --request-rate")
}

fn confidence(value: &str) -> Converted {
    only(value, &["0.95", "95"], "leave it out: intervals are of 95 %")
}

/// SGLang's groups of prompts: alike, or with the exponent that --gsp-zipf-alpha gives.
fn group_distribution(value: &str) -> Converted {
    only(value, &["uniform", "zipf"], "give uniform, or zipf with --gsp-zipf-alpha")
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
        let actions = of_any().map(|(_, action)| action);
        for action in actions.chain(OF_ONE_TOOL.iter().map(|(.., action)| action)) {
            if let Same(name) | Noted(name, _) = action {
                assert!(flags.iter().any(|flag| flag.long == *name), "{name}");
            }
        }
    }

    #[test]
    fn no_name_stands_twice_and_none_hides_an_option_of_ours() {
        let flags = Name::Run.info().flags;
        let all: Vec<&str> = of_any().flat_map(|(names, _)| names.iter().copied()).collect();
        for (place, name) in all.iter().enumerate() {
            assert!(!all[..place].contains(name), "{name} stands twice");
            assert!(!flags.iter().any(|flag| flag.long == *name), "{name} is ours");
        }
    }

    #[test]
    fn every_exact_name_is_reached() {
        // A pattern above an exact name would shadow it.
        for (names, action) in of_any() {
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
