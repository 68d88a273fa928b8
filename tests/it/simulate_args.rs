//! What `simulate` understands: the options of a plan, those of a server, and why not the others.

use std::process::Command as Program;

use tokload::cli::args::{Asked, Command, Name, Placed, SimulateWords, parse};
use tokload::cli::simulate::{self, NOBODY, Ordered, SIMULATED, order};
use tokload::model::{Batching, Freeze, Serving, Settings};
use tokload::plan::{Endpoint, Error, Load, Plan, Secrets};

fn words(line: &str) -> Result<SimulateWords, Error> {
    let line = format!("simulate {line}");
    match parse(line.split_whitespace().map(Into::into))? {
        Asked::Command { command: Command::Simulate(words), .. } => Ok(*words),
        other => panic!("{line}: {other:?}"),
    }
}

fn ordered(line: &str) -> Result<Ordered, Error> {
    words(line).and_then(|words| order(&words, None))
}

#[track_caller]
fn refused(line: &str) -> String {
    ordered(line).expect_err(line).to_string()
}

#[test]
fn a_simulation_is_a_valid_plan_that_asks_nobody_and_repeats() {
    let Ordered { order, model, max_model_len, explain, fit } = ordered("--max-concurrency 1,2,4").unwrap();
    assert_eq!(max_model_len, None);
    assert_eq!(order.plan.validate(), Ok(()));
    assert_eq!(order.plan.target.endpoints, [Endpoint { url: NOBODY.to_owned() }]);
    assert_eq!(order.plan.target.models, [SIMULATED]);
    assert_eq!(order.secrets, Secrets::default());
    assert_eq!(order.plan.seed, 0);
    let loads: Vec<_> = order.plan.levels.iter().map(|level| level.load.clone()).collect();
    assert_eq!(loads, [1, 2, 4].map(Load::closed));
    assert_eq!((model, explain, fit), (Settings::course(), false, None));
    // The plan that is stored is a plan file again.
    assert_eq!(Plan::from_toml(&order.plan.to_toml(), 7).unwrap(), order.plan);
}

#[test]
fn the_options_of_plan_and_server_are_dealt_out() {
    let Ordered { order, model, explain, .. } = ordered(
        "--explain --slots=8 -c 4 --isl 32 --osl 10 --think-time 500ms --seed 9 --base_ms 7 --goodput ttft:300 tpot:40 \
         --freeze 10:2 1m:1.5 --duration 2m --num-warmups 0 --label x --no-save",
    )
    .unwrap();
    let plan = &order.plan;
    assert_eq!(plan.levels[0].load, Load { think_s: 0.5, ..Load::closed(4) });
    assert_eq!((&plan.workload.input_words, &plan.workload.output_tokens), (&32.into(), &10.into()));
    assert_eq!((plan.levels[0].stop.duration_s, plan.levels[0].warmups), (Some(120.0), 0));
    assert_eq!((plan.slo.ttft_ms, plan.slo.tpot_ms), (Some(300.0), Some(40.0)));
    assert_eq!((order.output.label.as_deref(), order.output.no_save), (Some("x"), true));
    // One seed for both: they draw from streams of different purposes.
    assert_eq!((plan.seed, model.seed), (9, 9));
    assert!(explain);
    let Serving::Batching(Batching { slots, cost, .. }) = model.serving else {
        panic!("not a batching server")
    };
    assert_eq!((slots, cost.base_ms, cost.per_sequence_ms), (8, 7.0, 0.5));
    assert_eq!(model.freezes, [Freeze { at_s: 10.0, for_s: 2.0 }, Freeze { at_s: 60.0, for_s: 1.5 }]);
}

#[test]
fn whom_to_ask_and_by_which_threads_is_refused_as_it_was_spelt() {
    let nobody = "says whom to ask, and a simulation asks nobody; leave it out, and describe the server by --slots, \
                  --base-ms and the like";
    for option in
        ["--base-url h", "--url h", "-u h", "--host h", "--api-key k", "-m x", "-H A:b", "--insecure"]
    {
        let spelt = option.split(' ').next().unwrap();
        assert_eq!(refused(option), format!("{spelt}: {nobody}"));
    }
    assert_eq!(
        refused("--threads 4"),
        "--threads: is about the threads that send, and a simulation has none; leave it out"
    );
    assert!(refused("--connect-timeout 4").contains("--cold-start"));
    for option in
        ["--connection-reuse-strategy never", "--max-connections 4", "--tls-sni h", "--unix-socket /x"]
    {
        assert!(refused(option).contains("is about a connection, and a simulation has none"), "{option}");
    }
    // What is refused is an option of a plan that `run` takes, and the table has no other.
    let flags = Name::Run.flags();
    let refused: Vec<&str> = flags
        .iter()
        .map(|Placed { flag, .. }| flag.long)
        .filter(|f| simulate::refusal(f).is_some())
        .collect();
    assert_eq!(refused.len(), 49, "{refused:?}");
    assert!(refused.iter().all(|option| Name::Run.refusal(option).is_none()));
}

#[test]
fn slips_lead_to_the_option_that_was_meant() {
    assert_eq!(refused("--slot 4"), "--slot: is not an option of tokload simulate; did you mean --slots?");
    // The option that was meant may be one that is refused: its own sentence then says why.
    assert!(refused("--base-urls h").ends_with("did you mean --base-url?"));
    let error = parse(["run", "--per-sequence-ms", "4"].map(Into::into)).unwrap_err();
    assert_eq!(error.remedy, "it belongs to tokload simulate");
    assert_eq!(refused("--slots 4 --slots 5"), "--slots: is given twice; give it once");
    assert_eq!(
        refused("--seed 1 --random-seed 2"),
        "--random-seed: and --seed are the same option; give it once"
    );
    assert_eq!(
        refused("4"),
        "tokload simulate: '4' belongs to no option; options begin with --; put quotes around a value that has spaces"
    );
}

#[test]
fn what_a_plan_or_a_server_cannot_be_is_refused() {
    for (line, sentence) in [
        ("--slots 0", "--slots: 0 serves nobody; give at least 1"),
        ("--max-concurrency 0", "--max-concurrency: 0 lets nothing through; give at least 1"),
        ("--noise 2", "--noise: 2 is no relative deviation; give a number from 0 to 1, as in 0.05"),
        (
            "--explain --format json",
            "--explain: is text, which --format json has no place for; leave out one of the two",
        ),
        (
            "--fit x.json --slots 4",
            "--fit: estimates a server and simulates nothing; give it alone, and further options to the command that \
             it prints",
        ),
    ] {
        assert_eq!(refused(line), sentence);
    }
    assert_eq!(ordered("--fit x.json -q").unwrap().fit.as_deref(), Some("x.json"));
}

#[test]
fn users_whose_answers_take_no_time_need_more_than_a_duration_to_stop_them() {
    let sentence = "--duration: users whose answers take no time never come to the end of it; give --num-prompts beside \
                    it, a --think-time, or times above 0 to --ttft or --itl";
    let zero = "-c 4 --ttft 0 --itl 0 --duration 5";
    assert_eq!(refused(zero), sentence);
    assert_eq!(refused("-c 4 --ttft 0 --itl 20 --random-output-len 1 --duration 5"), sentence);
    assert_eq!(refused("-c 4 --ttft 0 --itl 20 --tokens-per-step 64 --duration 5"), sentence);
    assert_eq!(refused(&format!("{zero} --think-time 0.0000001")), sentence);
    for end in [
        "--num-prompts 9",
        "--think-time 0.1",
        "--ttft-per-in-flight 1",
        "--ttft-jitter 1",
        "--itl-jitter 0.1",
    ] {
        let line = format!("{zero} {end}");
        assert!(ordered(&line).is_ok(), "{line}");
    }
    assert!(ordered("-c 4 --ttft 0 --itl 0").is_ok(), "it has a number of requests");
    assert!(ordered("--ttft 0 --itl 0 --request-rate 5 --duration 5").is_ok(), "a rate comes to an end");
}

#[test]
fn a_plan_file_keeps_its_load_and_loses_its_target() {
    let mut plan = Plan::new(5);
    plan.target.endpoints = vec![Endpoint { url: "http://h:8000".to_owned() }];
    plan.target.models = vec!["tiny".to_owned()];
    plan.levels = vec![tokload::plan::Level { load: Load::closed(3), ..Default::default() }];
    plan.complete();
    let text = plan.to_toml();
    let Ordered { order, model, .. } = order(&words("-f p.toml").unwrap(), Some(("p.toml", &text))).unwrap();
    assert_eq!(order.plan.levels, plan.levels);
    assert_eq!(order.plan.target.endpoints, [Endpoint { url: NOBODY.to_owned() }]);
    assert_eq!(order.plan.target.models, [SIMULATED]);
    assert_eq!((order.plan.seed, model.seed), (5, 5));
    assert_eq!(order.notes, ["nobody is asked in a simulation: the target in --config is left out"]);
}

#[test]
fn plan_and_server_can_be_looked_at_before() {
    let said = |line: &str| {
        let output =
            Program::new(env!("CARGO_BIN_EXE_tokload")).args(line.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let plan = said("simulate -c 2 --print-config");
    assert_eq!(Plan::from_toml(&plan, 0).unwrap(), ordered("-c 2").unwrap().order.plan);
    let all = said("simulate -c 2 --slots 4 --freeze 10:2 --dry-run");
    assert!(all.contains("# level 1: 2 users") && all.contains("# request 0"), "{all}");
    let server: Vec<&str> = all.split_once("# the server\n").unwrap().1.lines().collect();
    let text: String = server.iter().map(|line| format!("{}\n", line.trim_start_matches('#'))).collect();
    let stored: Settings = toml::from_str(&text).unwrap();
    assert_eq!(stored, ordered("-c 2 --slots 4 --freeze 10:2").unwrap().model);
}
