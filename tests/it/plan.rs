//! What arguments mean: the rules by which options, files and other tools' defaults make a plan.

use std::io::ErrorKind;

use tokload::api::Dialect;
use tokload::cli::aliases::Tool;
use tokload::cli::args::{Asked, Command, parse};
use tokload::cli::plan_from_args::{Order, Surroundings, order};
use tokload::cli::value::Format;
use tokload::plan::{
    Arrivals, DataSet, Driver, Endpoint, Error, LengthRule, Load, Plan, RecordErrors, Slo, Trace,
};
use tokload::report::vllm::Figure;

/// The order that the words after `tokload` give, with a plan file and an environment.
fn ordered_with(
    line: &str,
    config: Option<&str>,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Order, Error> {
    let words = shell_words(line).into_iter().map(Into::into);
    let Asked::Command { command: Command::Run(args), tool, .. } = parse(words)? else {
        panic!("not a run: {line}");
    };
    let config = config.map(|text| ("plan.toml", text));
    order(
        &args,
        &Surroundings { tool, fresh_seed: 99, config, env, read: &|_| Err(ErrorKind::NotFound.into()) },
    )
}

pub(crate) fn ordered(line: &str) -> Result<Order, Error> {
    ordered_with(line, None, &|_| None)
}

/// The plan of `tokload run --base-url h:1` with further options.
fn plan(options: &str) -> Plan {
    let line = format!("run --base-url h:1 {options}");
    ordered(&line).unwrap_or_else(|error| panic!("{line}: {error}")).plan
}

/// The error of `tokload run --base-url h:1` with further options.
fn refused(options: &str) -> Error {
    ordered(&format!("run --base-url h:1 {options}")).expect_err(options)
}

/// Splits at spaces outside single quotes.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (place, part) in line.split('\'').enumerate() {
        match place % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

fn loads(options: &str) -> Vec<Load> {
    plan(options).levels.into_iter().map(|level| level.load).collect()
}

fn open(arrivals: Arrivals, cap: Option<u32>) -> Load {
    Load { arrivals, cap, users: None, think_s: 0.0 }
}

const POISSON: Arrivals = Arrivals::Poisson { rate: 5.0 };

#[test]
fn nothing_but_a_server_is_a_burst() {
    let plan = plan("");
    assert_eq!(plan.levels.len(), 1);
    assert_eq!(plan.levels[0].label(), "burst of 64");
    assert_eq!(plan.levels[0].warmups, 2);
    assert_eq!(plan.target.endpoints, [Endpoint { url: "http://h:1".into() }]);
    assert_eq!((plan.target.dialect, plan.target.stream), (Dialect::OpenaiChat, true));
    assert_eq!((plan.workload.input_words, plan.workload.output_tokens), (128.into(), 64.into()));
    assert!(plan.workload.options.ignore_eos && plan.workload.options.include_usage);
    assert_eq!(plan.slo, Slo { ttft_ms: Some(500.0), tpot_ms: Some(50.0), ..Slo::default() });
    assert_eq!(plan.seed, 99);
}

#[test]
fn an_infinite_rate_with_a_cap_is_a_closed_loop() {
    assert_eq!(loads("-c 4"), [Load::closed(4)]);
    assert_eq!(loads("--request-rate inf --max-concurrency 4"), [Load::closed(4)]);
    assert_eq!(loads("--max-concurrency 1,8"), [Load::closed(1), Load::closed(8)]);
    let units: Vec<_> = plan("-c 1,8").levels.iter().map(|level| level.stop.units).collect();
    assert_eq!(units, [Some(16), Some(32)]);
}

#[test]
fn a_finite_rate_is_an_open_loop_with_the_cap_if_there_is_one() {
    assert_eq!(loads("--request-rate 5"), [open(POISSON, None)]);
    assert_eq!(loads("--request-rate 5 -c 8"), [open(POISSON, Some(8))]);
    assert_eq!(plan("--request-rate 5").levels[0].stop.units, Some(64));
    let sweep = loads("--request-rate 5,inf,2.5 -c 8");
    assert_eq!(
        sweep,
        [open(POISSON, Some(8)), Load::closed(8), open(Arrivals::Poisson { rate: 2.5 }, Some(8))]
    );
}

#[test]
fn a_pace_is_a_schedule_for_each_user() {
    assert_eq!(loads("-c 1,4 --pace 2"), [Load::paced(1, 0.5), Load::paced(4, 2.0)]);
    assert_eq!(loads("-c 1,4 --pace-interval 500ms"), [Load::paced(1, 0.5), Load::paced(4, 0.5)]);
    assert_eq!(loads("-c 3 --pace 7")[0].rate(), Some(7.0));
    assert!(loads("-c 3 --pace 7")[0].judged_from_plan());
    for (options, subject) in [
        ("--pace 2", "--pace"),
        ("--request-rate 5 -c 4 --pace 2", "--pace"),
        ("-c 4 --pace 2 --pace-interval 2", "--pace"),
        ("-c 4 --pace 0", "--pace"),
        ("-c 4 --pace -1", "--pace"),
        ("-c 4 --pace-interval 0", "--pace"),
        ("-c 4 --pace 2 --think-time 1", "--pace"),
        ("--request-rate 5 --pace-interval 2", "--pace-interval"),
    ] {
        assert_eq!(refused(options).subject, subject, "{options}");
    }
    let file = "[[levels]]\nload = { users = 4, arrivals = { process = \"paced\", interval_s = 2 } }\n";
    let with = |line: &str| ordered_with(line, Some(file), &|_| None).unwrap().plan.levels[0].load.clone();
    assert_eq!(with("run --base-url h:1"), Load::paced(4, 2.0));
    assert_eq!(with("run --base-url h:1 --pace 8"), Load::paced(4, 0.5));
}

#[test]
fn a_figure_is_to_be_known_to_a_share_of_its_value() {
    let until = |options: &str| {
        let until = plan(&format!("-c 4 {options}")).until.unwrap();
        (until.figure.to_string(), until.half_width, until.times_max)
    };
    assert_eq!(until("--until-ci 5%"), ("attainment".to_owned(), 0.05, 16));
    assert_eq!(until("--until-ci 5% --goodput none"), ("ttft_p50".to_owned(), 0.05, 16));
    assert_eq!(until("--until-ci ttft_p99:0.1 --until-ci-max 4"), ("ttft_p99".to_owned(), 0.1, 4));
    assert_eq!(until("--until-ci e2e_plan_p99.9=20%").0, "e2e_plan_p99.9");
    assert_eq!(plan("-c 4").until, None);
    for (options, subject) in [
        ("-c 4 --until-ci 0%", "--until-ci"),
        ("-c 4 --until-ci 100%", "--until-ci"),
        ("-c 4 --until-ci wide", "--until-ci"),
        ("-c 4 --until-ci itl_p99:5%", "--until-ci"),
        ("-c 4 --until-ci attainment:5% --goodput none", "--until-ci"),
        ("-c 4 --until-ci 5% --no-streaming --goodput none", "--until-ci"),
        ("--until-ci 5%", "--until-ci"),
        ("-c 4 --until-ci-max 3", "--until-ci-max"),
        ("-c 4 --until-ci 5% --until-ci-max 0", "--until-ci-max"),
    ] {
        assert_eq!(refused(options).subject, subject, "{options}");
    }
    let file = "[until]\nfigure = \"tpot_p50\"\nhalf_width = 0.02\n[[levels]]\nload = { users = 4 }\n";
    let with = |line: &str| ordered_with(line, Some(file), &|_| None).unwrap().plan.until.unwrap();
    assert_eq!(with("run --base-url h:1").times_max, 16);
    let longer = with("run --base-url h:1 --until-ci-max 20");
    assert_eq!(
        (longer.figure.to_string().as_str(), longer.half_width, longer.times_max),
        ("tpot_p50", 0.02, 20)
    );
}

#[test]
fn patterns_shape_the_gaps() {
    let one = |options: &str| loads(&format!("--request-rate 5 {options}"))[0].arrivals.clone();
    assert_eq!(one("--arrival-pattern constant"), Arrivals::Constant { rate: 5.0 });
    assert_eq!(one("--burstiness 0.5"), Arrivals::Gamma { rate: 5.0, burstiness: 0.5 });
    assert_eq!(one("--burstiness 1"), POISSON);
    assert_eq!(one("--arrival-pattern gamma --burstiness 4"), Arrivals::Gamma { rate: 5.0, burstiness: 4.0 });
    assert_eq!(one("--arrival-pattern gamma"), POISSON);
    assert_eq!(loads("--arrival-pattern burst"), [open(Arrivals::Burst, None)]);
    assert_eq!(loads("--burstiness 1.0"), [open(Arrivals::Burst, None)]);
}

#[test]
fn two_lists_are_refused_with_the_choice() {
    let error = refused("--request-rate 1,2 -c 4,8");
    assert_eq!(error.subject, "--request-rate");
    assert!(error.wrong.contains("--max-concurrency") && error.wrong.contains("both lists"), "{error}");
    assert!(error.remedy.contains("rates with one --max-concurrency"), "{error}");
}

#[test]
fn combinations_without_sense_are_refused_by_name() {
    for (options, subject, word) in [
        ("--request-rate 0", "--request-rate", "not a rate"),
        ("--request-rate -1", "--request-rate", "not a rate"),
        ("--request-rate nan", "--request-rate", "not a rate"),
        ("--request-rate 5,", "--request-rate", "not a rate"),
        ("-c 0", "--max-concurrency", "0"),
        ("-c 1.5", "--max-concurrency", "whole number"),
        ("-c four", "--max-concurrency", "whole number"),
        ("--burstiness 2", "--burstiness", "gaps of a rate"),
        ("--request-rate 5 --burstiness 0", "--burstiness", "shape"),
        ("--request-rate 5 --burstiness 2 --arrival-pattern constant", "--burstiness", "gamma"),
        ("--request-rate 5 --burstiness 2 --arrival-pattern poisson", "--burstiness", "gamma"),
        ("--arrival-pattern constant", "--arrival-pattern", "gaps of a rate"),
        ("--arrival-pattern burst --request-rate 5", "--arrival-pattern", "burst"),
        ("--arrival-pattern burst -c 4", "--arrival-pattern", "burst"),
        ("--arrival-pattern zipf", "--arrival-pattern", "zipf"),
        ("--arrival-pattern trace", "--arrival-pattern", "no trace"),
        ("--fixed-schedule", "--fixed-schedule", "no trace"),
        ("--trace a --dataset-path b", "--trace", "two files"),
        ("--trace a --request-rate 5", "--request-rate", "times of its own"),
        ("--trace a --burstiness 2", "--burstiness", "times of its own"),
        ("--trace a --arrival-pattern poisson", "--arrival-pattern", "times of its own"),
        ("--trace a --random-input-len 5", "--random-input-len", "prompts of its own"),
        ("--trace a --num-dataset-entries 5", "--num-dataset-entries", "prompts of its own"),
        ("--trace a --trace-speedup 0", "--trace-speedup", "factor"),
        ("--trace a --trace-speedup 1,2 -c 1,2", "--trace-speedup", "lists"),
        ("--trace a --trace-slice 9:3", "--trace-slice", "nothing"),
        ("--trace a --trace-slice 9", "--trace-slice", "no slice"),
        ("--trace a --trace-errors ignore", "--trace-errors", "ignore"),
        ("--trace a --trace-format parquet", "--trace-format", "parquet"),
        ("--trace a --trace-input-max 0", "--trace-input-max", "0"),
        ("--trace a --trace-block-tokens 0", "--trace-block-tokens", "range"),
        ("--trace a --until-ci 5%", "--until-ci", "longer"),
        ("--trace a --think-time 1", "--think-time", "closed loop"),
        ("--trace a --pace 1", "--pace", "closed loop"),
        ("--trace-speedup 2", "--trace-speedup", "there is none"),
        ("--dataset-path a --random-input-len 5", "--random-input-len", "prompts of its own"),
        ("--dataset-path a --random-prefix-len 5", "--random-prefix-len", "prompts of its own"),
        ("--dataset-path a --dataset-name random", "--dataset-name", "no format"),
        ("--dataset-path a --trace-speedup 2", "--trace-speedup", "there is none"),
        ("--dataset-name dolly", "--dataset-name", "none is named"),
        ("--dataset-name hf", "--dataset-name", "would download a data set"),
        ("--dataset-column a", "--dataset-column", "there is none"),
        ("--disable-shuffle", "--disable-shuffle", "there is none"),
        ("--think-time 1", "--think-time", "closed loop"),
        ("--request-rate 5 --think-time 1", "--think-time", "closed loop"),
        ("--num-prompts 0", "--num-prompts", "0"),
        ("--num-prompts -5", "--num-prompts", "whole number"),
        ("--duration 0", "--duration", "duration"),
        ("--duration soon", "--duration", "time"),
        ("--random-input-len 0", "--random-input-len", "0"),
        ("--temperature hot", "--temperature", "number"),
        ("--top-k 1.5", "--top-k", "whole number"),
        ("--seed 9223372036854775808", "--seed", "2^63"),
        ("--seed -1", "--seed", "whole number"),
        ("--goodput ttfx:5", "--goodput", "ttfx"),
        ("--extra-body [1]", "--extra-body", "JSON object"),
        ("--extra-body '{\"stream\":false}'", "--extra-body", "stream"),
        ("--backend klingon", "--backend", "klingon"),
        ("--backend tgi", "--backend", "speaks openai-chat too"),
        ("--backend messages --n 2", "--n", "one answer"),
        ("--dataset-name sharegpt", "--dataset-name", "none is named"),
        ("--driver kqueue", "--driver", "kqueue"),
        ("--format yaml", "--format", "yaml"),
        ("--metadata x", "--metadata", "key=value"),
        ("--endpoint v1/x", "--endpoint", "path"),
        ("--workers 0", "--workers", "range"),
        ("--cpu-affinity 0,0", "--cpu-affinity", "twice"),
        ("--cpu-affinity 1 --no-cpu-affinity", "--no-cpu-affinity", "contradicts"),
        ("--ignore-eos --no-ignore-eos", "--ignore-eos", "contradicts"),
        ("--no-save --output-file x", "--output-file", "contradicts"),
        ("--no-records --save-detailed", "--save-detailed", "records"),
        ("--no-records --save-chunks", "--save-chunks", "records"),
        ("--failed-request-threshold 5", "--failed-request-threshold", "share"),
        ("--header nonsense", "--header", "not a header"),
        ("--header 'A B: c'", "--header", "field name"),
        ("--header 'Host: x'", "--header", "tokload itself"),
        ("--header 'X-A: 1' --header 'x-a: 2'", "--header", "twice"),
        ("--request-timeout-seconds -1", "--request-timeout-seconds", "time"),
        ("--host h", "--host", "--base-url"),
    ] {
        let error = refused(options);
        assert_eq!(error.subject, subject, "{options}: {error}");
        assert!(error.wrong.contains(word), "{options}: {error}");
        assert!(error.remedy.len() > 5, "{options}: {error}");
    }
    let error = ordered("run").unwrap_err();
    assert!(error.subject == "--base-url" && error.remedy.contains("--base-url"), "{error}");
}

#[test]
fn lengths_end_a_level() {
    let stop = |options: &str| plan(options).levels[0].stop.clone();
    assert_eq!((stop("-c4 --duration 2m").units, stop("-c4 --duration 2m").duration_s), (None, Some(120.0)));
    assert_eq!(stop("-c4 --duration 60 --num-prompts 9").units, Some(9));
    assert_eq!(stop("--duration 60").units, Some(64), "a duration does not end a burst");
    assert_eq!(stop("--benchmark-grace-period 5").grace_s, 5.0);
}

#[test]
fn urls_name_the_api_and_its_path() {
    let target = |line: &str| ordered(line).unwrap_or_else(|e| panic!("{line}: {e}")).plan.target;
    assert_eq!(target("run --base-url h/v1/completions").dialect, Dialect::Openai);
    assert_eq!(target("run --base-url h/v1/completions").path, None);
    assert_eq!(target("run --base-url h/api/v4/chat/completions").path.as_deref(), Some("/chat/completions"));
    assert_eq!(target("run --base-url h --backend completions").request_path(), "/v1/completions");
    assert_eq!(target("run --base-url h --endpoint /v1/completions").dialect, Dialect::Openai);
    assert_eq!(target("run --base-url h --backend openai --endpoint /odd").request_path(), "/odd");
    let two = target("run --base-url a:1 --base-url b:2/x/v1");
    assert_eq!(
        two.endpoints.iter().map(|e| e.url.as_str()).collect::<Vec<_>>(),
        ["http://a:1", "http://b:2/x"]
    );
    for (line, subject) in [
        ("run --base-url h/v1/completions --backend openai-chat", "--backend"),
        ("run --base-url h --backend openai --endpoint /v1/chat/completions", "--endpoint"),
        ("run --base-url a/v1/completions --base-url b/v1/chat/completions", "--base-url"),
        ("run --base-url h/v1?x", "--base-url"),
        ("run --base-url u:p@a --base-url b", "--base-url"),
    ] {
        assert_eq!(ordered(line).expect_err(line).subject, subject, "{line}");
    }
}

#[test]
fn models_may_be_left_to_the_server() {
    assert!(plan("").target.models.is_empty());
    assert_eq!(plan("-m a --model b").target.models, ["a", "b"]);
    assert_eq!(plan("--model org/a --served-model-name a").target.models, ["a"]);
}

#[test]
fn a_key_is_a_value_or_the_name_of_a_variable() {
    let env = |name: &str| match name {
        "OPENAI_API_KEY" => Some("sk-env\n".to_owned()),
        "MY_KEY" => Some("sk-mine".to_owned()),
        _ => None,
    };
    let sent = |options: &str| -> Vec<(String, String)> {
        let order = ordered_with(&format!("run --base-url h {options}"), None, &env).unwrap();
        order.secrets.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    let bearer = |key: &str| vec![("Authorization".to_owned(), format!("Bearer {key}"))];
    assert_eq!(sent(""), bearer("sk-env"));
    assert_eq!(sent("--api-key MY_KEY"), bearer("sk-mine"));
    assert_eq!(sent("--api-key EMPTY"), bearer("EMPTY"));
    assert_eq!(sent("-H 'Authorization: Token x'"), [("Authorization".to_owned(), "Token x".to_owned())]);
    let url = ordered_with("run --base-url u:p@h", None, &env).unwrap();
    assert_eq!(url.secrets.headers().collect::<Vec<_>>(), [("Authorization", "Basic dTpw")]);
    for options in ["--api-key OTHER_KEY", "--api-key '  '", "--api-key x -H 'authorization: y'"] {
        let error = ordered_with(&format!("run --base-url h {options}"), None, &env).expect_err(options);
        assert_eq!(error.subject, "--api-key", "{options}");
    }
}

#[test]
fn secrets_are_in_no_plan_and_no_debug_output() {
    let line = "run --base-url http://user:hunter2@h:1 -H 'Cookie: hunter2' -H 'X-Api-Key: hunter2' -H 'X-Tenant: t'";
    let order = ordered(line).unwrap();
    assert_eq!(order.secrets.headers().count(), 3);
    assert_eq!(order.plan.target.headers.len(), 1);
    let shown = format!("{}{:?}{}", order.plan.to_toml(), order, serde_json::to_string(&order.plan).unwrap());
    assert!(!shown.contains("hunter2") && !shown.contains("dXNlcj"), "{shown}");
    let error = ordered("run --base-url h --header sk-hunter2").unwrap_err();
    assert!(!error.to_string().contains("hunter2"), "{error}");
}

#[test]
fn everything_else_reaches_the_plan() {
    let plan = plan(
        "--temperature 0 --top-p 0.9 --top-k -1 --min-p 0.1 --frequency-penalty -0.5 --presence-penalty 1 \
         --repetition-penalty 1.1 --n 2 --random-input-len 7 --random-output-len 9 --no-ignore-eos --seed 5 \
         --extra-body '{\"a\":1,\"b\":null}' --extra-body '{\"a\":2}' --continuous-usage-stats --no-streaming --insecure \
         --cacert ca.pem --connect-timeout 1 --first-token-timeout 2 --no-progress-timeout 3s \
         --request-timeout-seconds 4m --workers 3 --cpu-affinity 1-3 --driver epoll --start-spread 10 -c 2 \
         --think-time 500ms --num-warmups 0 --save-chunks --goodput e2e:900 -H 'X-A: b'",
    );
    let sampling = &plan.workload.sampling;
    assert_eq!((sampling.temperature, sampling.top_p, sampling.top_k), (Some(0.0), Some(0.9), Some(-1)));
    assert_eq!((sampling.min_p, sampling.frequency_penalty), (Some(0.1), Some(-0.5)));
    assert_eq!((sampling.presence_penalty, sampling.repetition_penalty), (Some(1.0), Some(1.1)));
    let workload = &plan.workload;
    assert_eq!((workload.choices, &workload.input_words, &workload.output_tokens), (2, &7.into(), &9.into()));
    assert!(!workload.options.ignore_eos && workload.options.continuous_usage);
    assert_eq!(serde_json::to_string(&workload.extra_body).unwrap(), r#"{"a":2,"b":null}"#);
    assert!(!plan.target.stream && plan.target.tls.insecure);
    assert_eq!(plan.target.tls.cacert.as_deref(), Some("ca.pem"));
    assert_eq!(plan.target.headers[0].name, "X-A");
    let limits = plan.limits;
    assert_eq!([limits.connect_s, limits.first_s, limits.gap_s, limits.total_s], [1.0, 2.0, 3.0, 240.0]);
    let client = &plan.client;
    assert_eq!((client.workers, client.affinity.as_deref()), (Some(3), Some(&[1, 2, 3][..])));
    assert_eq!((client.driver, client.start_spread_us), (Driver::Epoll, 10.0));
    assert_eq!((plan.levels[0].load.think_s, plan.levels[0].warmups), (0.5, 0));
    assert_eq!((plan.keep.records, plan.keep.chunks), (true, true));
    assert_eq!(plan.slo, Slo { e2e_ms: Some(900.0), ..Slo::default() });
    assert_eq!(plan.seed, 5);
    // And the plan says it all: it comes back from its own text.
    assert_eq!(Plan::from_toml(&plan.to_toml(), 0), Ok(plan));
}

#[test]
fn what_is_not_the_plans_is_ordered_beside_it() {
    let order = ordered(
        "run --base-url h --label x --metadata a=b c=d=e --format json -q --output-file r.json --force \
         --save-detailed --ready-check-timeout-sec 5m --failed-request-threshold 0.05 --dry-run --print-config",
    )
    .unwrap();
    assert_eq!(order.output.label.as_deref(), Some("x"));
    assert_eq!(order.output.metadata, [("a".into(), "b".into()), ("c".into(), "d=e".into())]);
    assert_eq!((order.output.format, order.output.file.as_deref()), (Format::Json, Some("r.json")));
    assert!(order.output.quiet && order.output.force && order.output.detailed);
    assert_eq!((order.ready_check_s, order.failed_share_max), (300.0, Some(0.05)));
    assert!(order.dry_run && order.print_config && !order.output.no_save);
}

const FILE: &str = r#"
seed = 7
[target]
endpoints = [{ url = "http://file:1" }]
headers = [{ name = "X-A", value = "file" }, { name = "X-B", value = "file" }]
[workload]
input_words = 10
[slo]
e2e_ms = 9
[[levels]]
load = { users = 4, think_s = 2 }
stop = { duration_s = 60 }
warmups = 5
[[levels]]
load = { users = 8 }
stop = { units = 7 }
"#;

fn from_file(options: &str) -> Plan {
    ordered_with(&format!("run {options}"), Some(FILE), &|_| None)
        .unwrap_or_else(|e| panic!("{options}: {e}"))
        .plan
}

#[test]
fn options_win_over_the_file_and_leave_the_rest() {
    let plan = from_file("");
    assert_eq!(
        (plan.seed, plan.workload.input_words, plan.workload.output_tokens),
        (7, 10.into(), 64.into())
    );
    assert_eq!(plan.slo, Slo { e2e_ms: Some(9.0), ..Slo::default() });
    assert_eq!(plan.levels.len(), 2);

    let plan = from_file("--base-url opt:2 --random-output-len 3 --seed 8 -H 'x-a: opt' --goodput none");
    assert_eq!((plan.seed, plan.workload.input_words, plan.workload.output_tokens), (8, 10.into(), 3.into()));
    assert_eq!(plan.target.endpoints, [Endpoint { url: "http://opt:2".into() }]);
    let values: Vec<_> = plan.target.headers.iter().map(|h| h.value.as_str()).collect();
    assert_eq!(values, ["opt", "file"]);
    assert_eq!(plan.slo, Slo::default());
}

#[test]
fn options_that_shape_the_load_replace_the_levels_and_others_apply_to_each() {
    let plan = from_file("--num-prompts 3 --think-time 1");
    assert!(plan.levels.iter().all(|level| level.stop.units == Some(3) && level.stop.duration_s.is_none()));
    assert!(plan.levels.iter().all(|level| level.load.think_s == 1.0));

    let plan = from_file("--request-rate 5");
    assert_eq!(plan.levels.len(), 1);
    assert_eq!(plan.levels[0].load, open(POISSON, None));
    assert_eq!((plan.levels[0].stop.duration_s, plan.levels[0].warmups), (Some(60.0), 5));
}

#[test]
fn a_printed_plan_read_back_is_the_same_plan() {
    let plan = from_file("--extra-body '{\"a\":null}'");
    let again = ordered_with("run", Some(&plan.to_toml()), &|_| None).unwrap().plan;
    assert_eq!(again, plan);
}

#[test]
fn a_bad_file_is_named_with_line_and_key() {
    let refused = |text: &str| ordered_with("run", Some(text), &|_| None).expect_err(text);
    assert_eq!(refused("[workload]\ninput_word = 3").subject, "plan.toml, line 2, `workload.input_word`");
    assert_eq!(refused("[target]\nendpoints = [{ url = \"http://u:p@h:1\" }]").subject, "--base-url");
}

#[test]
fn a_command_line_of_vllm_has_its_defaults() {
    let order = ordered("bench serve --model m --dataset-name random").unwrap();
    let plan = order.plan;
    assert_eq!(plan.target.endpoints, [Endpoint { url: "http://127.0.0.1:8000".into() }]);
    assert_eq!((plan.target.dialect, plan.target.stream), (Dialect::Openai, true));
    assert_eq!((plan.workload.input_words, plan.workload.output_tokens), (1024.into(), 128.into()));
    assert!(plan.workload.options.ignore_eos, "vLLM's random prompts are answered to their end");
    assert_eq!(plan.levels[0].label(), "burst of 1000");
    assert_eq!((plan.levels[0].warmups, plan.seed, plan.slo), (0, 0, Slo::default()));

    let line = "bench serve --backend openai-chat --endpoint /v1/chat/completions --host 10.0.0.1 --port 9000 \
                --num-prompts 50 --request-rate 4 --max-concurrency 8 --goodput ttft:200 tpot:30 --ignore-eos \
                --random-range-ratio 0.0 --metadata a=b c=d --disable-tqdm --percentile_metrics ttft";
    let Order { plan, output, .. } = ordered(line).unwrap();
    let vllm = output.vllm.unwrap();
    assert!(vllm.is_shown && vllm.file.is_none() && plan.keep.chunks);
    assert_eq!((vllm.selection.figures, vllm.selection.percentiles.len()), (vec![Figure::Ttft], 1));
    assert_eq!(plan.target.endpoints, [Endpoint { url: "http://10.0.0.1:9000".into() }]);
    assert_eq!((plan.target.dialect, plan.target.path), (Dialect::OpenaiChat, None));
    // That it is exact is a question of its own (`arrivals`).
    assert_eq!((plan.levels[0].load.rate(), plan.levels[0].load.cap), (Some(4.0), Some(8)));
    assert!(plan.workload.options.ignore_eos);
    assert_eq!((plan.slo.ttft_ms, plan.slo.tpot_ms), (Some(200.0), Some(30.0)));
}

#[test]
fn a_command_line_of_aiperf_has_its_defaults() {
    let order = ordered("profile --model a,b --url localhost:8000").unwrap();
    assert!(order.notes.iter().any(|note| note.contains("--osl")), "{:?}", order.notes);
    let plan = order.plan;
    assert_eq!(plan.target.models, ["a", "b"]);
    assert_eq!((plan.target.dialect, plan.target.stream), (Dialect::OpenaiChat, false));
    assert_eq!((plan.workload.input_words, plan.levels[0].load.users), (550.into(), Some(1)));
    assert_eq!((plan.levels[0].stop.units, plan.levels[0].warmups), (Some(10), 0));
    assert_eq!((plan.workload.distinct, plan.limits.total_s), (Some(100), 21_600.0));
    assert!(!plan.workload.options.ignore_eos);
    let sized = |more: &str| ordered(&format!("profile -m a {more}")).unwrap().plan.workload.distinct;
    assert_eq!([sized("--request-count 500"), sized("--num-dataset-entries 7")], [None, Some(7)]);
    assert_eq!(ordered("profile -m a --url h:1,h:2").unwrap().plan.target.endpoints.len(), 2);
    assert_eq!(ordered("profile -m a --url h:1 h:2").unwrap().plan.target.endpoints.len(), 2);

    let plan = ordered(
        "profile -m a -u h:1 --streaming --concurrency 20 --isl 100 --osl 50 --random-seed 3 \
         --extra-inputs ignore_eos:true min_tokens:50 --warmup-request-count 4 \
         --goodput 'time_to_first_token:100 inter_token_latency:10' --ui none --isl-stddev 0",
    )
    .unwrap()
    .plan;
    assert!(plan.target.stream);
    assert_eq!((plan.levels[0].load.users, plan.levels[0].stop.units), (Some(20), Some(40)));
    assert_eq!(
        (plan.workload.input_words, plan.workload.output_tokens, plan.seed),
        (100.into(), 50.into(), 3)
    );
    assert_eq!(plan.workload.extra_body["min_tokens"], 50);
    assert_eq!(plan.workload.extra_body["ignore_eos"], true);
    assert_eq!((plan.slo.ttft_ms, plan.slo.tpot_ms), (Some(100.0), Some(10.0)));
    assert_eq!(plan.levels[0].warmups, 4);
    assert_eq!(ordered("profile --request-rate 5").unwrap().plan.levels[0].load, open(POISSON, None));
}

#[test]
fn the_tools_are_told_apart() {
    for (line, tool) in [
        ("run", Tool::Tokload),
        ("benchmark", Tool::Tokload),
        ("benchmark run", Tool::Tokload),
        ("serve", Tool::Tokload),
        ("sweep", Tool::Tokload),
        ("bench serve", Tool::Vllm),
        ("profile", Tool::Aiperf),
    ] {
        let words = line.split(' ').map(Into::into);
        assert!(matches!(parse(words), Ok(Asked::Command { tool: t, .. }) if t == tool), "{line}");
    }
}

#[test]
fn a_trace_brings_its_times_and_takes_a_cap() {
    let replay = |speedup, cap| open(Arrivals::Trace { speedup }, cap);
    assert_eq!(loads("--trace t.jsonl"), [replay(1.0, None)]);
    assert_eq!(loads("--trace t.jsonl -c 8 --request-rate inf"), [replay(1.0, Some(8))]);
    assert_eq!(loads("--trace t.jsonl --trace-speedup 1,2,4").len(), 3);
    let whole = plan("--trace t.jsonl");
    assert_eq!((whole.levels[0].stop.units, whole.levels[0].stop.duration_s), (None, None));
    for same in [
        "--dataset-path t.jsonl --fixed-schedule",
        "--input-file t.jsonl --use-trace-timestamps",
        "--dataset-path t.jsonl --arrival-pattern trace",
    ] {
        assert_eq!(plan(same), whole, "{same}");
    }
    let named = plan("--dataset-path t.jsonl --dataset-name timed_trace").workload.trace.unwrap();
    assert_eq!(named.format.as_deref(), Some("mooncake"));
    let options = "--trace t --trace-format burst_gpt --trace-slice 1m: --trace-slice :90 --trace-errors skip \
                   --trace-model a --trace-model b --trace-failed --trace-input-max 5 --trace-output-max 6 \
                   --trace-block-tokens 64";
    let expected = Trace {
        format: Some("burstgpt".to_owned()),
        errors: RecordErrors::Skip,
        from_s: 60.0,
        until_s: Some(90.0),
        models: vec!["a".to_owned(), "b".to_owned()],
        failed_too: true,
        prompt_tokens_max: Some(5),
        output_tokens_max: Some(6),
        block_tokens: std::num::NonZeroU32::new(64),
        ..Trace::of("t")
    };
    let all = plan(options);
    assert_eq!(all.workload.trace.as_ref(), Some(&expected));
    assert_eq!(Plan::from_toml(&all.to_toml(), 0), Ok(all));
}

#[test]
fn a_trace_in_a_file_keeps_its_speed_until_an_option_gives_another() {
    let file =
        "[workload.trace]\nfile = \"t\"\n[[levels]]\nload.arrivals = { process = \"trace\", speedup = 3 }\n";
    let of =
        |line: &str| ordered_with(&format!("run --base-url h:1 {line}"), Some(file), &|_| None).unwrap().plan;
    assert_eq!(of("").levels[0].load, open(Arrivals::Trace { speedup: 3.0 }, None));
    assert_eq!(of("--trace-speedup 2").levels[0].load, open(Arrivals::Trace { speedup: 2.0 }, None));
    let sliced = of("--trace-slice 5:9 --num-prompts 7");
    assert_eq!(sliced.levels[0].load, of("").levels[0].load);
    assert_eq!(sliced.levels[0].stop.units, Some(7));
    assert_eq!(sliced.workload.trace.unwrap().from_s, 5.0);
}

#[test]
fn a_data_set_is_taken_at_any_load() {
    let data = |options: &str| plan(options).workload.data.unwrap();
    assert_eq!(data("--dataset-path p.jsonl -c 4"), DataSet::of("p.jsonl"));
    assert_eq!(loads("--dataset-path p.jsonl -c 4"), [Load::closed(4)]);
    assert_eq!(loads("--dataset-path p.jsonl --request-rate 5"), [open(POISSON, None)]);
    let all = "--dataset-path p --dataset-name csv --dataset-column q --disable-shuffle --trace-errors skip \
               --random-output-len 9";
    let expected = DataSet {
        format: Some("csv".to_owned()),
        column: Some("q".to_owned()),
        errors: RecordErrors::Skip,
        shuffle: false,
        lengths: LengthRule::Planned,
        ..DataSet::of("p")
    };
    assert_eq!(data(all), expected);
    assert_eq!(Plan::from_toml(&plan(all).to_toml(), 0), Ok(plan(all)));
    // vLLM's own words, and a number of prompts.
    let vllm =
        ordered("bench serve --dataset-name sharegpt --dataset-path s.json --num-prompts 9").unwrap().plan;
    assert_eq!(vllm.workload.data.unwrap().format.as_deref(), Some("sharegpt"));
    assert_eq!(plan("--dataset-path p --num-dataset-entries 7").workload.distinct, Some(7));
}
