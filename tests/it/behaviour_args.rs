//! How users behave, which models they ask for and what they write into each request, by the options of every tool.

use serde_json::json;
use tokload::cli::args::{Asked, Command, parse};
use tokload::cli::plan_from_args::{Order, Surroundings, order};
use tokload::plan::{Aborts, Error, Header, ModelChoice, Plan, SlowReaders};

fn ordered(line: &str, config: Option<&str>) -> Result<Order, Error> {
    let words = line.split('\'').enumerate().flat_map(|(place, part)| match place % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    let Asked::Command { command: Command::Run(args), tool, .. } = parse(words.map(Into::into))? else {
        panic!("not a run: {line}");
    };
    let config = config.map(|text| ("plan.toml", text));
    order(
        &args,
        &Surroundings {
            tool,
            fresh_seed: 1,
            config,
            env: &|_| None,
            read: &|_| Err(std::io::ErrorKind::NotFound.into()),
        },
    )
}

#[track_caller]
fn plan(options: &str) -> Plan {
    with(options, None)
}

#[track_caller]
fn with(options: &str, config: Option<&str>) -> Plan {
    let ordered = ordered(&format!("run --url h:1 {options}"), config);
    ordered.unwrap_or_else(|error| panic!("{options}: {error}")).plan
}

#[track_caller]
fn refused(options: &str) -> Error {
    ordered(&format!("run --url h:1 {options}"), None).expect_err(options)
}

fn aborts(share: f64, after_s: Option<f64>, after_tokens: Option<u32>) -> Option<Aborts> {
    Some(Aborts { share, after_s, after_tokens })
}

#[test]
fn cancellation_is_that_of_aiperf_and_by_tokens_too() {
    let of = |options: &str| plan(options).workload.aborts;
    assert_eq!(of(""), None);
    assert_eq!(of("--request-cancellation-rate 20"), aborts(0.2, None, None));
    assert_eq!(
        of("--request-cancellation-rate 12.5 --request-cancellation-delay 0.5"),
        aborts(0.125, Some(0.5), None)
    );
    assert_eq!(
        of(
            "--request-cancellation-rate 100 --request-cancellation-delay 50ms --request-cancellation-tokens 3"
        ),
        aborts(1.0, Some(0.05), Some(3))
    );
    assert_eq!(of("--request-cancellation-rate 0 --request-cancellation-delay 1"), None);
    for (options, subject) in [
        ("--request-cancellation-rate 101", "--request-cancellation-rate"),
        ("--request-cancellation-rate -1", "--request-cancellation-rate"),
        ("--request-cancellation-rate few", "--request-cancellation-rate"),
        ("--request-cancellation-delay 1", "--request-cancellation-delay"),
        ("--request-cancellation-tokens 1", "--request-cancellation-tokens"),
        ("--request-cancellation-rate 9 --request-cancellation-delay soon", "--request-cancellation-delay"),
        ("--request-cancellation-rate 9 --request-cancellation-tokens 0", "--request-cancellation-tokens"),
        (
            "--request-cancellation-rate 9 --request-cancellation-tokens 2 --no-streaming",
            "--request-cancellation-tokens",
        ),
    ] {
        assert_eq!(refused(options).subject, subject, "{options}");
    }
    let file = "[workload.aborts]\nshare = 0.5\nafter_tokens = 4\n";
    assert_eq!(with("", Some(file)).workload.aborts, aborts(0.5, None, Some(4)));
    let later = with("--request-cancellation-delay 2", Some(file));
    assert_eq!(later.workload.aborts, aborts(0.5, Some(2.0), Some(4)));
    assert_eq!(with("--request-cancellation-rate 0", Some(file)).workload.aborts, None);
}

#[test]
fn slow_readers_are_all_unless_a_share_is_given() {
    let of = |options: &str| plan(options).workload.slow_readers;
    assert_eq!(of("--read-rate 2000"), Some(SlowReaders { share: 1.0, bytes_per_s: 2000 }));
    let some = Some(SlowReaders { share: 0.25, bytes_per_s: 2000 });
    assert_eq!(of("--read-rate 2000 --slow-reader-share 0.25"), some);
    for (options, subject) in [
        ("--slow-reader-share 0.5", "--slow-reader-share"),
        ("--read-rate 2000 --slow-reader-share 0", "--slow-reader-share"),
        ("--read-rate 2000 --slow-reader-share 50", "--slow-reader-share"),
        ("--read-rate 2k", "--read-rate"),
        ("--read-rate 0", "--read-rate"),
    ] {
        assert_eq!(refused(options).subject, subject, "{options}");
    }
    let file = "[workload.slow_readers]\nbytes_per_s = 500\n";
    let slow = |options: &str| with(options, Some(file)).workload.slow_readers.unwrap();
    assert_eq!(slow(""), SlowReaders { share: 1.0, bytes_per_s: 500 });
    assert_eq!(slow("--slow-reader-share 0.5"), SlowReaders { share: 0.5, bytes_per_s: 500 });
    assert_eq!(slow("--read-rate 900"), SlowReaders { share: 1.0, bytes_per_s: 900 });
}

#[test]
fn models_have_weights_and_a_way_to_be_chosen() {
    let of = |options: &str| {
        let target = plan(options).target;
        (target.models, target.model_weights, target.model_choice)
    };
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let two = "-m org/a:1b -m b=c";
    assert_eq!(of(two), (names(&["org/a:1b", "b=c"]), vec![], ModelChoice::InTurn));
    assert_eq!(of(&format!("{two} --model-weights 3,1")).1, [3, 1]);
    for (how, choice) in [
        ("random", ModelChoice::Drawn),
        ("round-robin", ModelChoice::InTurn),
        ("round_robin", ModelChoice::InTurn),
        ("weighted --model-weights 2,1", ModelChoice::Drawn),
    ] {
        assert_eq!(of(&format!("{two} --model-selection-strategy {how}")).2, choice, "{how}");
    }
    for (options, subject) in [
        ("-m a -m b --model-weights 1", "--model-weights"),
        ("-m a -m b --model-weights 1,0", "--model-weights"),
        ("-m a -m b --model-weights 0.5,0.5", "--model-weights"),
        ("--model-weights 1", "--model-weights"),
        ("-m a --model-selection-strategy weighted", "--model-selection-strategy"),
        ("-m a --model-selection-strategy best", "--model-selection-strategy"),
    ] {
        assert_eq!(refused(options).subject, subject, "{options}");
    }
    let file = "[target]\nmodels = ['x', 'y']\nmodel_weights = [5, 2]\n";
    assert_eq!(with("", Some(file)).target.model_weights, [5, 2]);
    assert!(with("-m z", Some(file)).target.model_weights.is_empty(), "weights are of those of the file");
}

#[test]
fn adapters_take_the_place_of_the_model_as_in_vllm() {
    for line in [
        "bench serve --model base --lora-modules a b --num-prompts 8",
        "bench serve --model base --lora-modules a --lora-modules b --num-prompts 8",
        "run --url h:1 -m base --lora-name a b",
    ] {
        let Order { plan, notes, .. } = ordered(line, None).unwrap();
        assert_eq!(
            (plan.target.models, plan.target.model_choice),
            (vec!["a".into(), "b".into()], ModelChoice::Drawn)
        );
        assert!(notes.iter().any(|note| note.contains("none of --model")), "{notes:?}");
    }
    let in_turn = plan("--lora-modules a b --lora-assignment round-robin --model-weights 1,2").target;
    assert_eq!((in_turn.model_choice, in_turn.model_weights), (ModelChoice::InTurn, vec![1, 2]));
    for (options, subject) in [
        ("-m a --lora-assignment random", "--lora-assignment"),
        ("--lora-modules a b --lora-assignment best", "--lora-assignment"),
        ("--lora-modules a --lora-assignment random --model-selection-strategy random", "--lora-assignment"),
        ("--lora-modules", "--lora-modules"),
    ] {
        assert_eq!(refused(options).subject, subject, "{options}");
    }
}

#[test]
fn placeholders_are_checked_where_they_are_given() {
    let header = |options: &str| plan(options).target.headers.remove(0);
    let own = |name: &str, value: &str| Header { name: name.into(), value: value.into() };
    assert_eq!(header("-H 'X-Tier: {{choice:gold,free}}'"), own("X-Tier", "{{choice:gold,free}}"));
    assert_eq!(header("--request-id-prefix bench-"), own("x-request-id", "bench-{{index}}"));
    let literal = header("--request-id-prefix '{{x}}'");
    assert_eq!(literal.value, "{{{{x}}{{index}}");
    let body =
        plan(r#"--extra-body '{"user":"u{{index}}","priority":"{{choice:0,0,1}}"}'"#).workload.extra_body;
    assert_eq!(body["priority"], json!("{{choice:0,0,1}}"));
    for (options, subject, word) in [
        ("-H 'X: {{indx}}'", "--header", "{{index}}"),
        ("-H 'X: {{prompt}}'", "--header", "only bodies"),
        ("-H 'Authorization: Bearer {{choice:a,b}}'", "--header", "secret"),
        (r#"--extra-body '{"a":["{{indx}}"]}'"#, "--extra-body", "{{max_tokens}}"),
        (r#"--extra-body '{"a":"{{random:9:1}}"}'"#, "--extra-body", "{{random:9:1}}"),
        ("--request-id-prefix a -H x-request-id=b", "--header", "twice"),
    ] {
        let error = refused(options);
        assert_eq!(error.subject, subject, "{options}");
        assert!(error.to_string().contains(word), "{error}");
    }
    // Braces that open no placeholder are text.
    assert_eq!(header("-H 'X: a {{ b'").value, "a {{ b");
}

#[test]
fn a_plan_says_all_of_it_and_is_read_back() {
    let plan = plan(
        "-m a -m b --model-weights 3,1 --model-selection-strategy random --request-cancellation-rate 10 \
         --request-cancellation-delay 0.25 --request-cancellation-tokens 9 --read-rate 4000 --slow-reader-share 0.5 \
         -H 'X-Id: {{uuid}}'",
    );
    let text = plan.to_toml();
    let mut back = Plan::from_toml(&text, 7).unwrap();
    back.complete();
    assert_eq!(back, plan, "{text}");
    back.validate().unwrap();
    for wrong in ["[workload.aborts]\nshare = 0.5\nafter_ms = 3\n", "[target]\nmodel_choice = 'best'\n"] {
        assert!(Plan::from_toml(wrong, 7).is_err(), "{wrong}");
    }
    // What is not asked for is not written, and plans from before have none of it.
    let usual = with("-m a", None).to_toml();
    for key in ["aborts", "slow_readers", "model_weights", "model_choice"] {
        assert!(!usual.contains(key), "{usual}");
    }
}
