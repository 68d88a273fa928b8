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
        error.remedy.contains(
            "quick, run, find-capacity, check, compare, report, share, merge, import, lint, simulate, mock-server, selftest"
        ),
        "{error}"
    );
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
    let placeholders = text(&["run", "--help"]);
    assert!(placeholders.contains(" {{prompt}}, ") && !placeholders.contains("{{{"), "as they are typed");
}

/// Every option of every command with the word by which its help states the unit; empty for texts and switches.
const UNITS: &[(&str, &str)] = &[
    ("--align", "0.1 s"),
    ("--allow-missing", "share"),
    ("--api-key", ""),
    ("--append-result", ""),
    ("--arrival-pattern", ""),
    ("--backend", ""),
    ("--base-ms", "milliseconds"),
    ("--base-url", ""),
    ("--baseline", "saved run"),
    ("--benchmark-grace-period", "seconds"),
    ("--bos-tokens", "tokens"),
    ("--burstiness", "without unit"),
    ("--bursts", "32 every 10 s"),
    ("--cacert", ""),
    ("--cache-block-tokens", "tokens"),
    ("--cache-blocks-max", "blocks"),
    ("--cache-full-hit", ""),
    ("--calibrate", ""),
    ("--card", "name"),
    ("--cert", "PEM"),
    ("--charts", "directory"),
    ("--cold-start", "seconds"),
    ("--compat", ""),
    ("--concurrency-ramp-duration", "seconds"),
    ("--confidence-level", "percent"),
    ("--config", ""),
    ("--connect-timeout", "seconds"),
    ("--connect-to", "HOST:PORT:ADDRESS:PORT"),
    ("--connection-reuse-strategy", "sticky-user-sessions"),
    ("--continuous-usage-stats", ""),
    ("--cpu-affinity", ""),
    ("--dataset-column", ""),
    ("--dataset-lengths", "tokens"),
    ("--dataset-name", ""),
    ("--dataset-path", ""),
    ("--disable-shuffle", ""),
    ("--driver", ""),
    ("--dry-run", ""),
    ("--dump", "CSV"),
    ("--duration", "seconds"),
    ("--endpoint", ""),
    ("--eos-after", "tokens"),
    ("--exact-count", ""),
    ("--explain", ""),
    ("--export", ""),
    ("--extra-body", ""),
    ("--failed-request-threshold", "share"),
    ("--fault", "KIND"),
    ("--find-capacity", ""),
    ("--findings", ""),
    ("--first-token-timeout", "seconds"),
    ("--fit", ""),
    ("--fixed-schedule", ""),
    ("--force", ""),
    ("--format", ""),
    ("--freeze", "seconds"),
    ("--frequency-penalty", "without unit"),
    ("--fresh-server", ""),
    ("--from", "aiperf"),
    ("--goodput", "milliseconds"),
    ("--gpu-index", "numbers"),
    ("--gpu-telemetry", "DCGM"),
    ("--header", ""),
    ("--host", ""),
    ("--hysteresis", ""),
    ("--ignore-eos", ""),
    ("--ignore-trace-delays", ""),
    ("--insecure", ""),
    ("--inter-turn-delay-cap-seconds", "seconds"),
    ("--isl-stddev", "words"),
    ("--itl", "milliseconds"),
    ("--itl-jitter", "milliseconds"),
    ("--keep-alive", "seconds"),
    ("--key", "PEM"),
    ("--label", ""),
    ("--lora-assignment", ""),
    ("--lora-modules", ""),
    ("--max", "users"),
    ("--max-concurrency", "users"),
    ("--max-connection-age", "seconds"),
    ("--max-connections", "at once"),
    ("--max-requests-per-connection", "requests"),
    ("--max-degradation", "points"),
    ("--max-error-rate-pct", "percent"),
    ("--max-failures", "share"),
    ("--max-goodput-degradation-pct", "percent"),
    ("--max-length", "planned lengths"),
    ("--max-model-len", "tokens"),
    ("--max-sessions", "sessions"),
    ("--max-throughput-degradation-pct", "percent"),
    ("--max-time", "seconds"),
    ("--max-tokens", "tokens"),
    ("--max-tpot-degradation-pct", "percent"),
    ("--max-ttft-degradation-pct", "percent"),
    ("--metadata", ""),
    ("--metric-percentiles", "0 to 100"),
    ("--metric-view", ""),
    ("--metrics-linger", "seconds"),
    ("--metrics-listen", ""),
    ("--min-p", "share"),
    ("--model", ""),
    ("--model-preset", ""),
    ("--model-selection-strategy", ""),
    ("--base-url-file", "one a line"),
    ("--url-strategy", "in turn"),
    ("--url-weights", "whole numbers"),
    ("--replica-header", "x-served-by"),
    ("--all-addresses", "in turn"),
    ("--served-by", "name"),
    ("--model-weights", "whole numbers"),
    ("--multi-turn", ""),
    ("--multi-turn-delay-ms", "milliseconds"),
    ("--multi-turn-max-turns", "turns"),
    ("--multi-turn-min-turns", "turns"),
    ("--multi-turn-num-turns", "number"),
    ("--multi-turn-prefix-conversation-ratio", "part"),
    ("--multi-turn-prefix-global-ratio", "part"),
    ("--n", "choices"),
    ("--no-card", ""),
    ("--no-cpu-affinity", ""),
    ("--no-exact-count", ""),
    ("--no-fresh-server", ""),
    ("--no-gpu-telemetry", ""),
    ("--no-ignore-eos", ""),
    ("--no-progress", ""),
    ("--no-progress-timeout", "seconds"),
    ("--no-records", ""),
    ("--no-same-as-production", ""),
    ("--no-save", ""),
    ("--no-server-metrics", ""),
    ("--no-streaming", ""),
    ("--no-tokenize", ""),
    ("--no-usage", ""),
    ("--noise", "share"),
    ("--num-dataset-entries", "prompts"),
    ("--num-prefix-prompts", "number"),
    ("--num-prompts", "requests"),
    ("--num-runs", "runs"),
    ("--num-warmups", "requests"),
    ("--osl-stddev", "tokens"),
    ("--output", "file"),
    ("--output-file", ""),
    ("--pace", "requests per second"),
    ("--pace-interval", "seconds"),
    ("--per-prefill-token-ms", "milliseconds"),
    ("--per-sequence-ms", "milliseconds"),
    ("--per-turn-input-len", "words"),
    ("--percentile-metrics", ""),
    ("--port", ""),
    ("--prefix-cache", ""),
    ("--prefix-hit-fraction", "share"),
    ("--prefix-prompt-length", "words"),
    ("--prefix-zipf", "exponent"),
    ("--presence-penalty", "without unit"),
    ("--preset", ""),
    ("--prewarm-connections", "number"),
    ("--print-config", ""),
    ("--queue-max", "requests"),
    ("--quick", "seconds"),
    ("--quiet", ""),
    ("--ramp-up-end-rps", "requests per second"),
    ("--ramp-up-start-rps", "requests per second"),
    ("--ramp-up-strategy", ""),
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
    ("--read-rate", "bytes per second"),
    ("--ready-check-timeout-sec", "seconds"),
    ("--reasoning", "tokens"),
    ("--reasoning-field", ""),
    ("--repetition-penalty", "without unit"),
    ("--replicas", "servers"),
    ("--replies", ""),
    ("--request-cancellation-delay", "seconds"),
    ("--request-cancellation-rate", "percent"),
    ("--request-cancellation-tokens", "token"),
    ("--request-rate", "requests per second"),
    ("--request-rate-ramp-duration", "seconds"),
    ("--request-rate-series", "requests per second"),
    ("--request-rate-series-repeat", ""),
    ("--request-timeout-seconds", "seconds"),
    ("--reset-prefix-cache", ""),
    ("--result-dir", ""),
    ("--result-filename", ""),
    ("--resume", ""),
    ("--role", ""),
    ("--router", ""),
    ("--same-as-production", ""),
    ("--save-chunks", ""),
    ("--save-detailed", ""),
    ("--save-result", ""),
    ("--seed", "integer"),
    ("--sequence-distribution", "percent"),
    ("--served-model-name", ""),
    ("--server-metrics", "http://"),
    ("--server-metrics-match", "any text"),
    ("--session-delay-ratio", "factor"),
    ("--session-header", "name"),
    ("--session-turn-delay-stddev", "milliseconds"),
    ("--session-turns-stddev", "number"),
    ("--share", "I/N"),
    ("--share-timeout", "seconds"),
    ("--shared-system-prompt-length", "words"),
    ("--slice-duration", "seconds"),
    ("--slots", "sequences"),
    ("--slow-reader-share", "share"),
    ("--slowing", "share"),
    ("--speeds", "without unit"),
    ("--start", "users"),
    ("--start-at", "in seconds since 1970"),
    ("--start-spread", "microseconds"),
    ("--steady-cut", "60 s"),
    ("--step-tokens-max", "tokens"),
    ("--stress", ""),
    ("--stress-after", "seconds"),
    ("--stress-bad", "share"),
    ("--stress-before", "seconds"),
    ("--stress-hold", "seconds"),
    ("--stress-ramp", "seconds"),
    ("--stress-to", "requests per second"),
    ("--strict", ""),
    ("--target", "share"),
    ("--telemetry-interval", "seconds"),
    ("--temperature", "without unit"),
    ("--template-tokens", "tokens"),
    ("--think-time", "seconds"),
    ("--timer", ""),
    ("--timestamps", ""),
    ("--timing-strategy", ""),
    ("--tls", ""),
    ("--tls-cert-out", "PEM"),
    ("--tls-client-ca", "PEM"),
    ("--tls-handshake-delay", "seconds"),
    ("--tls-session-resumption", "on or off"),
    ("--tls-sni", "SNI"),
    ("--tls-version", "1.2 or 1.3"),
    ("--unix-socket", "path"),
    ("--tokenize-prompt", ""),
    ("--tokenizer", ""),
    ("--tokens-per-step", "tokens"),
    ("--tolerance", "share"),
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
    ("--unit", "ms"),
    ("--ui", ""),
    ("--until-ci", "share"),
    ("--until-ci-max", "planned lengths"),
    ("--usage", ""),
    ("--use-think-time-only", ""),
    ("--user-context-prompt-length", "words"),
    ("--vary", ""),
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
        ("--gsp-zipf-alpha", "--prefix-zipf"),
        ("--seq-dist", "--sequence-distribution"),
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
    assert_eq!(run(&["--ui-type", "none"]), run(&["--ui", "none"]));
    assert!(run(&["--export-level", "records"]).save_detailed);
    let trace = run(&["--input-file", "x", "--custom-dataset-type", "mooncake_trace"]);
    assert!(trace.fixed_schedule && trace.trace_format.as_deref() == Some("mooncake-trace"));
    assert_eq!(run(&["--data", "x.jsonl"]), run(&["--dataset-path", "x.jsonl"]));
    assert_eq!(run(&["--prompts", "x"]), run(&["--dataset-path", "x"]));
    assert_eq!(run(&["--prompts", "synthetic"]), run(&[]));
    assert_eq!(run(&["--notes", "x"]), run(&["--metadata", "notes=x"]));
    assert_eq!(run(&["--constraint", "kind=max_requests,value=9"]), run(&["--num-prompts", "9"]));
    assert_eq!(run(&["--constraint", "kind=max_duration,value=9"]), run(&["--duration", "9"]));
    assert_eq!(run(&["--mooncake-slowdown-factor", "2"]), run(&["--trace-speedup", "0.5"]));
    assert_eq!(run(&["--data-samples", "-1"]), run(&[]));
    assert_eq!(run(&["--artifact-dir", "x"]), run(&["--result-dir", "x"]));
    assert_eq!(run(&["--per-chunk-usage"]), run(&["--continuous-usage-stats"]));
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
        (&["run", "--mooncake-slowdown-factor", "0"], "half as fast"),
        (&["run", "--input-dist", "lognormal"], "--random-input-len lognormal"),
        (&["run", "--wait-for-model-mode", "models"], "one short request"),
        (&["run", "--constraint", "kind=max_errors,value=3"], "--failed-request-threshold"),
        (&["run", "--tokenizer-mode", "slow"], "--tokenizer PATH"),
        (&["run", "--trace-idle-gap-cap-seconds", "9"], "--trace"),
        (&["run", "--fixed-schedule-start-offset", "9"], "--trace-slice"),
        (&["run", "--timed-trace-sec-multiplier", "1"], "--trace-speedup"),
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
        (report.runs.join(" ").as_str(), report.goodput),
        ("a.json", vec!["ttft:5".to_owned(), "tpot:6".to_owned()])
    );
    let Command::Report(report) = command(&["report", "--goodput", "ttft:5", "a.json"]) else { panic!() };
    assert_eq!((report.runs.join(" ").as_str(), report.goodput), ("a.json", vec!["ttft:5".to_owned()]));
    let Command::Quick(quick) = command(&["quick", "--url", "h:1"]) else { panic!() };
    assert_eq!(quick.base_url.as_deref(), Some("h:1"));
    let Command::MockServer(mock) = command(&["mock-server", "--port=9", "--itl", "5", "--no-usage"]) else {
        panic!()
    };
    assert_eq!((mock.own.port.as_deref(), mock.server.itl.as_deref()), (Some("9"), Some("5")));
    assert!(mock.own.no_usage);

    let error = refused(&["share"]);
    assert!(error.wrong.contains("run") && error.remedy.contains("tokload share --help"), "{error}");
    assert!(refused(&["share", "a", "b"]).wrong.contains('b'));
}
