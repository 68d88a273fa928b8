//! The reading of a command line: spellings, help, and the options of other tools.

use tokload::cli::aliases::{Tool, Verdict, verdict};
use tokload::cli::args::{Asked, Command, Name, Placed, RunArgs, parse};
use tokload::plan::Error;

fn asked(words: &[&str]) -> Result<Asked, Error> {
    parse(words.iter().map(Into::into))
}

fn run(words: &[&str]) -> RunArgs {
    let words = [&["run"], words].concat();
    match asked(&words).unwrap_or_else(|error| panic!("{words:?}: {error}")) {
        Asked::Command { command: Command::Run(args), .. } => *args,
        other => panic!("{words:?}: {other:?}"),
    }
}

fn refused(words: &[&str]) -> Error {
    asked(words).expect_err(&words.join(" "))
}

fn text(words: &[&str]) -> String {
    match asked(words) {
        Ok(Asked::Text(text)) => text,
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn every_spelling_of_an_option_is_the_same_option() {
    for words in [
        &["--max-concurrency", "5"][..],
        &["--max-concurrency=5"],
        &["--max_concurrency", "5"],
        &["--concurrency=5"],
        &["--num-concurrency", "5"],
        &["-c", "5"],
        &["-c5"],
        &["-c=5"],
    ] {
        assert_eq!(run(words).max_concurrency.as_deref(), Some("5"), "{words:?}");
    }
    for words in
        [&["-H", "K: V"][..], &["-HK: V"], &["--header", "K: V"], &["--header=K: V"], &["--headers", "K: V"]]
    {
        assert_eq!(run(words).header, ["K: V"], "{words:?}");
    }
    assert_eq!(
        run(&["--url", "a", "-u", "b", "--base-url", "c", "--target=d"]).base_url,
        ["a", "b", "c", "d"]
    );
}

#[test]
fn several_values_may_follow_one_name() {
    let args = run(&[
        "--goodput",
        "ttft:500",
        "tpot:50",
        "--metadata",
        "a=b",
        "c=d",
        "--header",
        "A=1",
        "B=2",
        "-q",
    ]);
    assert_eq!(args.goodput, ["ttft:500", "tpot:50"]);
    assert_eq!(args.metadata, ["a=b", "c=d"]);
    assert_eq!(args.header, ["A=1", "B=2"]);
    assert!(args.quiet);
}

#[test]
fn negative_numbers_are_values_and_options_are_not() {
    assert_eq!(run(&["--frequency-penalty", "-0.5"]).frequency_penalty.as_deref(), Some("-0.5"));
    assert_eq!(run(&["--top-k=-1"]).top_k.as_deref(), Some("-1"));
    let error = refused(&["run", "--model", "--seed", "3"]);
    assert_eq!((error.subject.as_str(), error.wrong.as_str()), ("--model", "has no value"));
    assert_eq!(refused(&["run", "--seed"]).subject, "--seed");
}

#[test]
fn switches_take_no_value_but_yes_and_no() {
    assert!(run(&["--ignore-eos"]).ignore_eos);
    assert!(run(&["--ignore-eos=true"]).ignore_eos);
    let args = run(&["--ignore-eos=false"]);
    assert!(!args.ignore_eos && args.no_ignore_eos);
    assert!(!run(&["--insecure=false"]).insecure);
    assert!(run(&["-q", "-q"]).quiet);
    assert_eq!(refused(&["run", "--insecure=maybe"]).subject, "--insecure");
    assert_eq!(refused(&["run", "--insecure", "maybe"]).wrong, "'maybe' belongs to no option");
}

#[test]
fn an_option_given_twice_is_refused_under_any_name() {
    assert_eq!(refused(&["run", "--seed", "1", "--seed=2"]).wrong, "is given twice");
    let error = refused(&["run", "--concurrency", "1", "-c", "2"]);
    assert_eq!(
        (error.subject.as_str(), error.wrong.as_str()),
        ("-c", "and --concurrency are the same option")
    );
}

#[test]
fn unknown_options_are_answered_with_the_nearest() {
    for (words, remedy) in [
        (&["run", "--max-concurency", "4"][..], "did you mean --max-concurrency?"),
        (&["run", "--num-prompt=4"], "did you mean --num-prompts?"),
        (&["run", "--requst-rate", "4"], "did you mean --request-rate?"),
        (&["mock-server", "--tttf", "4"], "did you mean --ttft?"),
        (&["report", "x", "--max-concurrency", "4"], "it belongs to tokload run"),
        (&["run", "--xyzzy"], "see `tokload run --help`"),
    ] {
        let error = refused(words);
        assert_eq!(error.remedy, remedy, "{error}");
        assert!(error.wrong.starts_with("is not an option of tokload"), "{error}");
    }
    assert!(refused(&["run", "-Z"]).subject == "-Z");
}

#[test]
fn commands_are_found_or_the_nearest_is_named() {
    let error = refused(&["rum"]);
    assert!(error.wrong.contains("'rum'") && error.remedy.starts_with("did you mean run?"), "{error}");
    assert!(
        error.remedy.contains("quick, run, check, compare, report, lint, simulate, mock-server, selftest"),
        "{error}"
    );
    let error = refused(&["find-capacity"]);
    assert!(error.wrong.contains("not supported yet") && error.remedy.contains("comma list"), "{error}");
    assert!(refused(&["--seed", "1"]).remedy.contains("tokload run --seed"));
    assert!(refused(&["bench", "latency"]).remedy.contains("bench serve"));
    assert!(refused(&["xyzzy"]).remedy.starts_with("there are"));
}

#[test]
fn help_and_version_are_no_errors() {
    let version = format!("tokload {}\n", env!("CARGO_PKG_VERSION"));
    for words in [&["--version"][..], &["-V"], &["version"]] {
        assert_eq!(text(words), version);
    }
    for words in [&["--help"][..], &["-h"], &["help"], &[]] {
        assert!(text(words).contains("mock-server"));
    }
    for words in [
        &["run", "--help"][..],
        &["run", "-h"],
        &["help", "run"],
        &["run", "help"],
        &["run", "--seed", "1", "--help"],
        &["bench", "serve", "--help"],
    ] {
        assert!(text(words).contains("--request-rate <rate,...>"), "{words:?}");
    }
    assert!(text(&["mock-server", "--help"]).contains("--tokens-per-step"));
}

/// Every option of every command with the word by which its help states the unit; empty for texts and switches.
const UNITS: &[(&str, &str)] = &[
    ("--api-key", ""),
    ("--arrival-pattern", ""),
    ("--backend", ""),
    ("--base-ms", "milliseconds"),
    ("--base-url", ""),
    ("--baseline", "saved run"),
    ("--benchmark-grace-period", "seconds"),
    ("--burstiness", "without unit"),
    ("--cacert", ""),
    ("--cache-block-tokens", "tokens"),
    ("--cache-blocks-max", "blocks"),
    ("--cache-full-hit", ""),
    ("--cert", "PEM"),
    ("--cold-start", "seconds"),
    ("--confidence-level", "percent"),
    ("--config", ""),
    ("--connect-timeout", "seconds"),
    ("--continuous-usage-stats", ""),
    ("--cpu-affinity", ""),
    ("--dataset-column", ""),
    ("--dataset-name", ""),
    ("--dataset-path", ""),
    ("--disable-shuffle", ""),
    ("--driver", ""),
    ("--dry-run", ""),
    ("--dump", "CSV"),
    ("--duration", "seconds"),
    ("--endpoint", ""),
    ("--eos-after", "tokens"),
    ("--explain", ""),
    ("--extra-body", ""),
    ("--failed-request-threshold", "share"),
    ("--fault", "KIND"),
    ("--findings", ""),
    ("--first-token-timeout", "seconds"),
    ("--fit", ""),
    ("--fixed-schedule", ""),
    ("--force", ""),
    ("--format", ""),
    ("--freeze", "seconds"),
    ("--frequency-penalty", "without unit"),
    ("--fresh-server", ""),
    ("--goodput", "milliseconds"),
    ("--header", ""),
    ("--host", ""),
    ("--ignore-eos", ""),
    ("--insecure", ""),
    ("--isl-stddev", "words"),
    ("--itl", "milliseconds"),
    ("--itl-jitter", "milliseconds"),
    ("--keep-alive", "seconds"),
    ("--key", "PEM"),
    ("--label", ""),
    ("--max-concurrency", "users"),
    ("--max-degradation", "points"),
    ("--max-error-rate-pct", "percent"),
    ("--max-goodput-degradation-pct", "percent"),
    ("--max-model-len", "tokens"),
    ("--max-throughput-degradation-pct", "percent"),
    ("--max-tokens", "tokens"),
    ("--max-tpot-degradation-pct", "percent"),
    ("--max-ttft-degradation-pct", "percent"),
    ("--metadata", ""),
    ("--min-p", "share"),
    ("--model", ""),
    ("--model-preset", ""),
    ("--n", "choices"),
    ("--no-cpu-affinity", ""),
    ("--no-fresh-server", ""),
    ("--no-ignore-eos", ""),
    ("--no-progress", ""),
    ("--no-progress-timeout", "seconds"),
    ("--no-records", ""),
    ("--no-same-as-production", ""),
    ("--no-save", ""),
    ("--no-streaming", ""),
    ("--no-usage", ""),
    ("--noise", "share"),
    ("--num-dataset-entries", "prompts"),
    ("--num-prefix-prompts", "number"),
    ("--num-prompts", "requests"),
    ("--num-runs", "runs"),
    ("--num-warmups", "requests"),
    ("--osl-stddev", "tokens"),
    ("--output-file", ""),
    ("--pace", "requests per second"),
    ("--pace-interval", "seconds"),
    ("--per-prefill-token-ms", "milliseconds"),
    ("--per-sequence-ms", "milliseconds"),
    ("--port", ""),
    ("--prefix-cache", ""),
    ("--prefix-prompt-length", "words"),
    ("--presence-penalty", "without unit"),
    ("--print-config", ""),
    ("--queue-max", "requests"),
    ("--quick", "seconds"),
    ("--quiet", ""),
    ("--random-input-len", "words"),
    ("--random-output-len", "tokens"),
    ("--random-prefix-len", "words"),
    ("--random-range-ratio", "share"),
    ("--raw-body", "JSON"),
    ("--raw-content", "pointer"),
    ("--raw-cumulative", ""),
    ("--raw-finish", "pointer"),
    ("--raw-output-tokens", "pointer"),
    ("--raw-prompt-tokens", "pointer"),
    ("--ready-check-timeout-sec", "seconds"),
    ("--reasoning", "tokens"),
    ("--reasoning-field", ""),
    ("--repetition-penalty", "without unit"),
    ("--replicas", "servers"),
    ("--reset-prefix-cache", ""),
    ("--request-rate", "requests per second"),
    ("--request-timeout-seconds", "seconds"),
    ("--role", ""),
    ("--router", ""),
    ("--same-as-production", ""),
    ("--save-chunks", ""),
    ("--save-detailed", ""),
    ("--seed", "integer"),
    ("--served-model-name", ""),
    ("--slots", "sequences"),
    ("--speeds", "without unit"),
    ("--start-spread", "microseconds"),
    ("--steady-cut", "60 s"),
    ("--step-tokens-max", "tokens"),
    ("--strict", ""),
    ("--temperature", "without unit"),
    ("--think-time", "seconds"),
    ("--timer", ""),
    ("--timestamps", ""),
    ("--tls", ""),
    ("--tls-cert-out", "PEM"),
    ("--tokens-per-step", "tokens"),
    ("--tool-call", ""),
    ("--top-k", "tokens"),
    ("--top-p", "share"),
    ("--trace", "file"),
    ("--trace-block-tokens", "tokens"),
    ("--trace-errors", ""),
    ("--trace-failed", ""),
    ("--trace-format", ""),
    ("--trace-input-max", "tokens"),
    ("--trace-model", ""),
    ("--trace-output-max", "tokens"),
    ("--trace-slice", "seconds"),
    ("--trace-speedup", "without unit"),
    ("--truth-out", "file"),
    ("--ttft", "milliseconds"),
    ("--ttft-jitter", "milliseconds"),
    ("--ttft-per-in-flight", "milliseconds"),
    ("--until-ci", "share"),
    ("--until-ci-max", "planned lengths"),
    ("--usage", ""),
    ("--workers", "threads"),
];

#[test]
fn the_help_of_every_option_states_unit_and_default() {
    for name in Name::ALL {
        let shown = |Placed { flag, .. }: &Placed| !flag.hidden && flag.long != "--help";
        for Placed { flag, .. } in name.flags().into_iter().filter(shown) {
            let help = flag.description;
            assert!(help.contains("(default: ") || help.contains("(required"), "{}: {help}", flag.long);
            let unit = UNITS.iter().find(|(option, _)| *option == flag.long);
            let (_, unit) = unit.unwrap_or_else(|| panic!("{} has no line in UNITS", flag.long));
            assert!(help.contains(unit), "{}: {help}", flag.long);
        }
    }
}

/// The options of `vllm bench serve`.
const VLLM: &str = "append-result asr-max-audio-len-sec asr-min-audio-len-sec backend base-url bfcl-categories \
    blazedit-max-distance blazedit-min-distance burstiness chat-template-kwargs custom-ensure-client-side-data \
    custom-output-len dataset-name dataset-path disable-shuffle disable-tqdm enable-multimodal-chat endpoint \
    endpoint-type extra-body frequency-penalty goodput header hf-name hf-output-len hf-split hf-subset host ignore-eos \
    input-len insecure label logprobs lora-assignment lora-modules max-concurrency metadata metric-percentiles min-p \
    model no-oversample no-reranker no-self-timed no-stream num-prompts num-warmups output-len percentile-metrics \
    plot-dataset-stats plot-timeline port prefix-repetition-num-prefixes prefix-repetition-output-len \
    prefix-repetition-prefix-len prefix-repetition-suffix-len presence-penalty probe-request-rate profile \
    ramp-up-end-rps ramp-up-start-rps ramp-up-strategy random-batch-size random-input-len \
    random-mm-base-items-per-request random-mm-bucket-config random-mm-limit-mm-per-prompt \
    random-mm-num-mm-items-range-ratio random-output-len random-prefix-len random-range-ratio ready-check-timeout-sec \
    repetition-penalty request-id-prefix request-rate result-dir result-filename save-detailed save-result seed \
    self-timed served-model-name sharegpt-output-len skip-chat-template skip-tokenizer-init sonnet-input-len \
    sonnet-output-len sonnet-prefix-len spec-bench-category spec-bench-output-len speed-bench-category \
    speed-bench-dataset-subset speed-bench-output-len temperature timed-trace-chunk-hash-size \
    timed-trace-label-hash-ids timed-trace-label-input-length timed-trace-label-output-length \
    timed-trace-label-timestamp timed-trace-sec-multiplier timeline-itl-thresholds tokenizer tokenizer-mode top-k \
    top-p trust-remote-code use-beam-search";

/// The options of `aiperf profile`.
const AIPERF: &str = "accuracy-benchmark accuracy-enable-cot accuracy-grader accuracy-n-shots accuracy-no-enable-cot \
    accuracy-system-prompt accuracy-tasks accuracy-verbose agentic-cache-warmup-duration agentic-warmup-grace-period \
    allow-dataset-wrap api-host api-key api-port apply-chat-template arrival-pattern arrival-smoothness artifact-dir \
    audio-batch-size audio-depths audio-format audio-length-mean audio-length-stddev audio-num-channels \
    audio-sample-rates auto-plot batch-size batch-size-audio batch-size-image batch-size-text batch-size-video \
    benchmark-duration benchmark-grace-period bo-constraint-mode burst-phase-starts cache-bust concurrency \
    concurrency-max concurrency-min concurrency-ramp-duration concurrency-steps confidence-level config \
    connection-reuse-strategy convergence-metric convergence-mode convergence-stat convergence-threshold \
    conversation-num conversation-turn-delay-mean conversation-turn-delay-ratio conversation-turn-delay-stddev \
    conversation-turn-mean conversation-turn-stddev custom-dataset-type custom-endpoint dataset-filter \
    dataset-sampling-strategy degradation-metric-tag degradation-stat degradation-threshold download-video-content \
    e2e-sla-ms endpoint endpoint-type error-rate-sla export-http-trace export-level export-outputs-json extra-inputs \
    extra-verbose failed-request-threshold fixed-schedule fixed-schedule-auto-offset fixed-schedule-end-offset \
    fixed-schedule-start-offset force-min-tokens gen-ai-provider goodput gpu-telemetry header hf-subset \
    hf-weka-dataset ignore-trace-delays image-batch-size image-format image-height-mean image-height-stddev \
    image-source image-source-sampling image-width-mean image-width-stddev input-file inter-turn-delay-cap-seconds \
    isl isl-block-size isl-max isl-min isl-osl-pairs isl-stddev isl-steps itl-sla-ms log-level max-context-length \
    max-idle-gap-cap-seconds max-workers mlflow-artifact-glob mlflow-experiment mlflow-parent-run-id mlflow-run-name \
    mlflow-tag mlflow-tracking-uri model model-names model-selection-strategy network-latency-automatic \
    network-latency-mean network-latency-ping-interval no-allow-dataset-wrap no-auto-plot no-fixed-schedule \
    no-force-min-tokens no-gpu-telemetry no-open-loop-replay no-parameter-sweep-same-seed \
    no-profile-run-disable-warmup-after-first no-server-metrics no-set-consistent-seed no-sweep-table \
    no-vary-seed-per-trial num-conversations num-dataset-entries num-prefix-prompts num-profile-runs num-prompts \
    num-requests num-sessions num-users num-warmup-requests num-warmup-sessions omit-kv-hints open-loop-replay \
    open-loop-strict optuna-acquisition optuna-sampler optuna-terminator osl osl-max osl-min osl-stddev osl-steps \
    otel-resource-attributes otel-url output-artifact-dir output-tokens-mean output-tokens-stddev \
    parameter-sweep-cooldown-seconds parameter-sweep-mode parameter-sweep-same-seed plot-required \
    prefill-concurrency prefill-concurrency-ramp-duration prefix-prompt-length prefix-prompt-pool-size \
    profile-export-file profile-export-level profile-export-prefix profile-run-cooldown-seconds \
    profile-run-disable-warmup-after-first prompt-batch-size prompt-corpus prompt-input-tokens-block-size \
    prompt-input-tokens-mean prompt-input-tokens-stddev prompt-output-tokens-mean prompt-output-tokens-stddev \
    prompt-prefix-length prompt-prefix-pool-size public-dataset random-seed rankings-passages-mean \
    rankings-passages-prompt-token-mean rankings-passages-prompt-token-stddev rankings-passages-stddev \
    rankings-query-prompt-token-mean rankings-query-prompt-token-stddev record-processor-service-count \
    record-processors replay-speedup request-cancellation-delay request-cancellation-rate request-content-type \
    request-count request-rate request-rate-mode request-rate-ramp-duration request-rate-series \
    request-timeout-seconds reset-kv-cache reset-kv-cache-path reset-kv-cache-timeout-seconds scenario \
    search-direction search-initial-points search-max-iterations search-metric search-percentile-pooling \
    search-planner search-random-seed search-recipe search-sla search-sla-tier search-space search-stat search-style \
    seq-dist sequence-distribution server-metrics server-metrics-formats server-profiler server-profiler-start-path \
    server-profiler-stop-path server-profiler-timeout-seconds session-delay-ratio session-header \
    session-turn-delay-mean session-turn-delay-stddev session-turns-mean session-turns-stddev set-consistent-seed \
    shared-system-prompt-length show-trace-timing slice-duration slo-attainment-fraction stats-interval stream \
    streaming sweep-type sweep-variant synthesis-max-isl synthesis-max-osl synthesis-output-len-multiplier \
    synthesis-prefix-len-multiplier synthesis-prefix-root-multiplier synthesis-prompt-len-multiplier \
    synthesis-speedup-ratio synthetic-input-tokens-block-size synthetic-input-tokens-mean \
    synthetic-input-tokens-stddev system-idle-gap-cap-seconds tokenizer tokenizer-revision \
    tokenizer-trust-remote-code tpot-sla-ms trace-idle-gap-cap-seconds trace-session-sample-ratio \
    trajectory-start-max-ratio trajectory-start-min-ratio transport transport-type ttft-sla-ms ui ui-type \
    unsafe-override url url-strategy use-legacy-max-tokens use-server-token-count use-think-time-only \
    user-centric-rate user-context-prompt-length uuid-and-strip variant vary-seed-per-trial verbose video-audio-codec \
    video-audio-depth video-audio-num-channels video-audio-sample-rate video-batch-size video-codec video-duration \
    video-format video-fps video-height video-synth-type video-width vllm-burstiness wait-for-model-interval \
    wait-for-model-mode wait-for-model-timeout wandb-entity wandb-project wandb-run-name wandb-tag warmup-arrival-pattern \
    warmup-concurrency warmup-concurrency-ramp-duration warmup-duration warmup-grace-period warmup-prefill-concurrency \
    warmup-prefill-concurrency-ramp-duration warmup-request-count warmup-request-rate \
    warmup-request-rate-ramp-duration workers-max zmq-dual-bind zmq-host zmq-ipc-path";

#[test]
fn every_option_of_vllm_and_aiperf_is_mapped_accepted_or_refused_with_a_remedy() {
    for (tool, names) in [(Tool::Vllm, VLLM), (Tool::Aiperf, AIPERF)] {
        for name in names.split_whitespace() {
            match verdict(tool, &format!("--{name}")) {
                Some(Verdict::Refused(remedy)) => assert!(remedy.len() > 10, "--{name}: {remedy}"),
                Some(_) => {}
                None => panic!("--{name} of {tool:?} is unknown"),
            }
        }
    }
}

#[test]
fn no_name_of_another_tool_gets_a_new_meaning() {
    let mapped = |tool, option| match verdict(tool, option) {
        Some(Verdict::Mapped(name)) => name,
        other => panic!("{option}: {other:?}"),
    };
    // aiperf's number of prompts is a size of its data set, its --stream exports telemetry, its configuration is YAML.
    assert_eq!(mapped(Tool::Aiperf, "--num-prompts"), "--num-dataset-entries");
    assert!(matches!(verdict(Tool::Aiperf, "--stream"), Some(Verdict::Refused(_))));
    assert!(matches!(verdict(Tool::Aiperf, "--config"), Some(Verdict::Refused(_))));
    assert_eq!(mapped(Tool::Tokload, "--num-prompts"), "--num-prompts");
    // vLLM's --no-stream is about loading a data set.
    assert_eq!(verdict(Tool::Vllm, "--no-stream"), Some(Verdict::Accepted));
    assert_eq!(mapped(Tool::Tokload, "--no-stream"), "--no-streaming");
    for (option, ours) in [
        ("--request-count", "--num-prompts"),
        ("--concurrency", "--max-concurrency"),
        ("--isl", "--random-input-len"),
        ("--osl", "--random-output-len"),
        ("--synthetic-input-tokens-stddev", "--isl-stddev"),
        ("--stddev-output-tokens", "--osl-stddev"),
        ("--isl-stddev", "--isl-stddev"),
        ("--random-range-ratio", "--random-range-ratio"),
        ("--prompt-prefix-pool-size", "--num-prefix-prompts"),
        ("--prefix-prompt-pool-size", "--num-prefix-prompts"),
        ("--prefix-repetition-num-prefixes", "--num-prefix-prompts"),
        ("--prompt-prefix-length", "--prefix-prompt-length"),
        ("--gsp-system-prompt-len", "--prefix-prompt-length"),
        ("--prefix-repetition-suffix-len", "--random-input-len"),
        ("--shared-prefix-tokens", "--random-prefix-len"),
        ("--benchmark-duration", "--duration"),
        ("--vllm-burstiness", "--burstiness"),
        ("--warmup-requests", "--num-warmups"),
        ("--random-seed", "--seed"),
        ("--num-profile-runs", "--num-runs"),
        ("--repeat", "--num-runs"),
        ("--tag", "--label"),
        ("--out", "--output-file"),
        ("--disable-stream", "--no-streaming"),
        ("--disable-ignore-eos", "--no-ignore-eos"),
        ("--extra-request-body", "--extra-body"),
        ("--wait-for-model-timeout", "--ready-check-timeout-sec"),
        ("--threads", "--workers"),
        ("--use-trace-timestamps", "--fixed-schedule"),
        ("--input-file", "--dataset-path"),
        ("--isl-block-size", "--trace-block-tokens"),
        ("--timed-trace-chunk-hash-size", "--trace-block-tokens"),
        ("--synthesis-speedup-ratio", "--trace-speedup"),
    ] {
        assert_eq!(mapped(Tool::Tokload, option), ours);
    }
}

#[test]
fn values_that_differ_are_converted_or_refused() {
    assert_eq!(run(&["--slo-ttft-ms", "300"]).goodput, ["ttft:300"]);
    assert_eq!(run(&["--extra-inputs", "a:1", "b:x"]).extra_body, [r#"{"a":1}"#, r#"{"b":"x"}"#]);
    assert_eq!(run(&["--rate-type", "constant", "--rate", "5"]).arrival_pattern.as_deref(), Some("constant"));
    assert!(run(&["--ui", "none"]).no_progress && !run(&["--ui=simple"]).no_progress);
    assert!(run(&["--export-level", "records"]).save_detailed);
    let trace = run(&["--input-file", "x", "--custom-dataset-type", "mooncake_trace"]);
    assert!(trace.fixed_schedule && trace.trace_format.as_deref() == Some("mooncake-trace"));
    assert_eq!(run(&["--data", "x.jsonl"]), run(&["--dataset-path", "x.jsonl"]));
    assert_eq!(run(&["--prompts", "x"]), run(&["--dataset-path", "x"]));
    assert!(run(&["--dataset-sampling-strategy", "sequential"]).disable_shuffle);
    assert_eq!(run(&["--custom-output-len", "-1"]), run(&[]));
    assert_eq!(run(&["--sharegpt-output-len", "9"]), run(&["--custom-output-len", "9"]));
    assert_eq!(run(&["--timed-trace-sec-multiplier", "0.001"]), run(&[]));
    assert_eq!(run(&["--confidence-level", "0.95"]), run(&[]));
    let guidellm = run(&["--data", "prompt_tokens=512,prompt_tokens_stdev=64,output_tokens=9"]);
    assert_eq!(guidellm.random_input_len.as_deref(), Some("normal:mean=511.5,stddev=64,min=192,max=832"));
    assert_eq!(guidellm.random_output_len.as_deref(), Some("9"));
    for (words, word) in [
        (&["run", "--rate-type", "concurrent"][..], "--max-concurrency"),
        (&["run", "--data", "org/name"], "--dataset-path"),
        (&["run", "--dataset-sampling-strategy", "random"], "shuffle"),
        (&["run", "--cache-bust", "first_turn_prefix"], "a word of its own"),
        (&["run", "--tokenizer", "x"], "usage"),
        (&["run", "--save-result"], "saved"),
        (&["run", "--trace-idle-gap-cap-seconds", "9"], "--trace"),
        (&["run", "--fixed-schedule-start-offset", "9"], "--trace-slice"),
        (&["run", "--timed-trace-sec-multiplier", "1"], "--trace-speedup"),
        (&["run", "--metric-percentiles", "99"], "p99"),
        (&["run", "--confidence-level", "0.9"], "95 %"),
    ] {
        let error = refused(words);
        assert!(error.remedy.contains(word), "{error}");
    }
}

#[test]
fn harmless_options_change_nothing() {
    let words = [
        "--use-server-token-count",
        "--skip-tokenizer-init",
        "--trust-remote-code",
        "-v",
        "--log-level",
        "INFO",
    ];
    assert_eq!(run(&words), run(&[]));
    assert!(run(&["--disable-tqdm"]).no_progress);
    assert!(run(&["--streaming"]).streaming);
}

#[test]
fn a_name_with_two_meanings_is_remarked_upon() {
    let Ok(Asked::Command { command: Command::Run(args), notes, .. }) = asked(&["run", "--no-stream"]) else {
        panic!("no run");
    };
    assert!(args.no_streaming);
    assert!(notes[0].contains("vLLM"), "{notes:?}");
}

#[test]
fn the_other_commands_are_read() {
    let command = |words: &[&str]| match asked(words) {
        Ok(Asked::Command { command, .. }) => command,
        other => panic!("{words:?}: {other:?}"),
    };
    let Command::Report(report) = command(&["report", "a.json", "--goodput", "ttft:5", "tpot:6"]) else {
        panic!()
    };
    assert_eq!(
        (report.run.as_str(), report.goodput),
        ("a.json", vec!["ttft:5".to_owned(), "tpot:6".to_owned()])
    );
    let Command::Report(report) = command(&["report", "--goodput", "ttft:5", "a.json"]) else { panic!() };
    assert_eq!((report.run.as_str(), report.goodput), ("a.json", vec!["ttft:5".to_owned()]));
    let Command::Quick(quick) = command(&["quick", "--url", "h:1"]) else { panic!() };
    assert_eq!(quick.base_url.as_deref(), Some("h:1"));
    let Command::MockServer(mock) = command(&["mock-server", "--port=9", "--itl", "5", "--no-usage"]) else {
        panic!()
    };
    assert_eq!((mock.own.port.as_deref(), mock.server.itl.as_deref()), (Some("9"), Some("5")));
    assert!(mock.own.no_usage);

    let error = refused(&["report"]);
    assert!(error.wrong.contains("run") && error.remedy.contains("tokload report --help"), "{error}");
    assert!(refused(&["report", "a", "b"]).wrong.contains('b'));
}
