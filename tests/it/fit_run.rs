//! From a saved run to the server behind it: what the model gives in a closed loop, stored as a run, is found again.

use std::process::Command;
use std::time::Duration;

use tokload::cli::args::{Asked, parse};
use tokload::cli::simulate::fit::Estimate;
use tokload::metrics::{Gaps, Metric, Outcome, Record, Tally, TokenSource};
use tokload::model::fit::Terms;
use tokload::model::{Batching, Cost, Server, Serving, Settings};
use tokload::plan::{Endpoint, Level, Load, Plan, Stop};
use tokload::run::{LevelResult, Span, Stamps, Window};
use tokload::run_file::schema::{EnvironmentBlock, LevelBlock, TargetBlock, Verbatim};
use tokload::run_file::{Destination, RunFile, WallTime};
use tokload::summary;
use tokload::time::Stamp;

use crate::goldens_model::{Asked as Answer, ClosedLoop, PROMPT_TOKENS};
use crate::java_random::JavaRandom;

/// How the levels of a run are driven.
#[derive(Clone, Copy)]
pub(crate) struct Driving {
    pub(crate) think: Duration,
    /// Tokens of an answer.
    pub(crate) tokens: u32,
    /// Answers of up to 20 tokens more or fewer.
    pub(crate) varied: bool,
    /// Length of the window, which begins at 10 s.
    pub(crate) seconds: u64,
}

pub(crate) const STEADY: Driving = Driving { think: Duration::ZERO, tokens: 50, varied: false, seconds: 60 };

/// A run of `settings` with a level of each number of users, as `run` would store it.
pub(crate) fn run(settings: &Settings, users: &[u32], driving: Driving) -> RunFile {
    let mut plan = Plan::new(1);
    plan.target.endpoints.push(Endpoint { url: "http://127.0.0.1:8000".to_owned() });
    plan.target.models.push("m".to_owned());
    plan.levels = users.iter().map(|users| level(*users, driving)).collect();
    let mut run = RunFile::new(
        WallTime::from_unix_nanos(0),
        &plan,
        EnvironmentBlock::default(),
        TargetBlock::default(),
    );
    for (ordinal, level) in plan.levels.iter().enumerate() {
        let (result, records) = drive(settings, ordinal, level, driving);
        run.push(&result, &summary::level(&summary::Input::new(&result, Some(&records), plan.slo)));
    }
    run
}

fn level(users: u32, driving: Driving) -> Level {
    let load = Load { think_s: driving.think.as_secs_f64(), ..Load::closed(users) };
    let stop = Stop { duration_s: Some(10.0 + driving.seconds as f64), ..Stop::default() };
    Level { load, stop, warmups: 0, ..Level::default() }
}

fn drive(settings: &Settings, ordinal: usize, level: &Level, driving: Driving) -> (LevelResult, Vec<Record>) {
    let users = level.load.users.unwrap();
    let mut random = JavaRandom::new(u64::from(users));
    let draw = || if driving.varied { driving.tokens - 20 + random.below(41) as u32 } else { driving.tokens };
    let (start, end) = (Stamp::from_millis(10_000), Stamp::from_millis(10_000 + driving.seconds * 1000));
    // Beyond the end, so that the requests of the window are followed to theirs.
    let t2 = end + Duration::from_secs(30);
    let server = Server::new(settings, Stamp::ZERO).unwrap();
    let driven = ClosedLoop::new(server, u64::from(users), driving.think, draw).run(t2);
    let records: Vec<Record> = driven.done.iter().enumerate().map(|(i, a)| record(i as u64, a)).collect();
    let mut tally = Tally::new(Stamp::ZERO);
    for record in &records {
        tally.on_sent(record.start);
        tally.on_done(record, &Gaps::with_capacity(0), &Gaps::with_capacity(0), Stamp::ZERO);
    }
    let result = LevelResult {
        slices: None,
        replicas: Vec::new(),
        ordinal,
        level: level.clone(),
        span: Span { t0: Stamp::ZERO, t1: end, t2 },
        window: Window { start, end, whole_level: false },
        tally,
        records: None,
        shards: Vec::new(),
        host: None,
        stamps: Stamps::default(),
        examples: Vec::new(),
        lengthened: None,
        judged: None,
        interrupted: false,
    };
    (result, records)
}

fn record(index: u64, answer: &Answer) -> Record {
    let mut record = Record::planned(index, answer.sent);
    record.outcome = Outcome::ok(200);
    (record.conn, record.sent) = (Some(answer.sent), Some(answer.sent));
    (record.byte, record.first, record.answer) = (Some(answer.first), Some(answer.first), Some(answer.first));
    (record.last, record.end) = (Some(answer.last), answer.last);
    (record.prompt_tokens, record.prompt_source) = (Some(PROMPT_TOKENS), TokenSource::Usage);
    (record.output_tokens, record.output_source) = (Some(answer.tokens), TokenSource::Usage);
    record.events = answer.tokens;
    record
}

pub(crate) fn server(slots: u32, cost: Cost) -> Settings {
    Settings::serving(Serving::Batching(Batching { slots, cost, ..Batching::default() }))
}

const COST: Cost = Cost { base_ms: 7.0, per_sequence_ms: 0.3, per_prefill_token_ms: 0.02 };

#[track_caller]
fn assert_cost(estimate: &Estimate, cost: Cost, relative: f64) {
    for (fitted, true_ms) in [
        (estimate.fit.cost.base_ms, cost.base_ms),
        (estimate.fit.cost.per_sequence_ms, cost.per_sequence_ms),
        (estimate.fit.cost.per_prefill_token_ms, cost.per_prefill_token_ms),
    ] {
        assert!((fitted / true_ms - 1.0).abs() <= relative, "{fitted} instead of {true_ms}: {estimate:?}");
    }
}

#[test]
fn a_stored_sweep_gives_the_server_behind_it() {
    let estimate = Estimate::of_run(&run(&server(12, COST), &[1, 4, 12, 32], STEADY)).unwrap();
    assert_eq!(estimate.fit.slots, Some(12));
    // A window holds so many requests and a part of one.
    assert_cost(&estimate, COST, 0.03);
    assert_eq!(estimate.points.len(), 4);
    assert_eq!(estimate.points[3].users, 32);
    assert_eq!((estimate.points[0].prompt_tokens, estimate.points[0].output_tokens), (200.0, 50.0));
    assert_eq!(
        estimate.remarks,
        [
            "12 slots are not certain: 11 fit nearly as well; further numbers of users would tell".to_owned(),
            context(200, 50)
        ]
    );
}

fn context(prompt: u32, answer: u32) -> String {
    format!(
        "these are the costs with prompts of {prompt} tokens and answers of {answer}: a real server's sequences cost more \
         the longer their context is, and a part of a prompt's cost does not depend on its length"
    )
}

#[test]
fn the_fitted_server_predicts_what_was_not_measured_within_five_percent() {
    let noisy = |settings: Settings| match settings.serving {
        Serving::Batching(batching) => {
            Settings::serving(Serving::Batching(Batching { noise: 0.1, ..batching }))
        }
        Serving::Fixed(_) => unreachable!("it is a batching server"),
    };
    let driving = Driving { varied: true, ..STEADY };
    let measured = noisy(server(16, COST));
    let estimate = Estimate::of_run(&run(&measured, &[1, 4, 16, 64], driving)).unwrap();
    let twin = Settings::serving(Serving::Batching(estimate.fit.batching()));
    let unseen = [2, 8, 32, 100];
    let (known, predicted) = (run(&measured, &unseen, driving), run(&twin, &unseen, driving));
    for (known, predicted) in known.levels.iter().zip(&predicted.levels) {
        for metric in [Metric::Ttft, Metric::Tpot, Metric::E2e] {
            let mean = |level: &LevelBlock| level.distributions[&metric].mean.unwrap();
            let error = mean(predicted) / mean(known) - 1.0;
            assert!(error.abs() < 0.05, "{} {metric:?}: {error}", known.label);
        }
        assert!((predicted.rates.window.req_s / known.rates.window.req_s - 1.0).abs() < 0.05);
    }
}

#[test]
fn the_printed_command_is_one_that_simulate_takes() {
    let mut estimate = Estimate::of_run(&run(&server(12, COST), &[1, 4, 12, 32], STEADY)).unwrap();
    estimate.fit.cost = COST;
    let command = estimate.command();
    assert_eq!(
        command,
        "tokload simulate --slots 12 --base-ms 7 --per-sequence-ms 0.3 --per-prefill-token-ms 0.02 \
         --random-input-len 200 --random-output-len 50 --max-concurrency 1,4,12,32"
    );
    let Ok(Asked::Command { command: tokload::cli::args::Command::Simulate(words), .. }) =
        parse(command.split_whitespace().skip(1).map(Into::into))
    else {
        panic!("{command}")
    };
    let ordered = tokload::cli::simulate::order(&words, None).unwrap();
    assert_eq!(ordered.model, server(12, COST));
    let users: Vec<_> = ordered.order.plan.levels.iter().map(|level| level.load.users).collect();
    assert_eq!(users, [Some(1), Some(4), Some(12), Some(32)]);
}

#[test]
fn every_residual_is_shown_and_the_costs_as_they_can_be_typed() {
    let mut estimate = Estimate::of_run(&run(&server(12, COST), &[1, 4], STEADY)).unwrap();
    estimate.fit.cost = COST;
    estimate.fit.deviation =
        Cost { base_ms: 0.1234, per_sequence_ms: 0.0, per_prefill_token_ms: f64::INFINITY };
    estimate.fit.error_rms = 0.0123;
    for residual in &mut estimate.fit.residuals {
        (residual.measured_ms, residual.fitted_ms) = (200.0, 201.0);
    }
    let expected = "\
what a step costs, by run.json at 1, 4 users

  base               7 ms +- 0.12
  per sequence       0.3 ms
  per prefill token  0.02 ms
  slots              not filled

users  quantity                 measured ms  fitted ms  error %
    1  server time per request        200.0      201.0    +0.50
    1  TTFT                           200.0      201.0    +0.50
    1  TPOT                           200.0      201.0    +0.50
    4  server time per request        200.0      201.0    +0.50
root of the mean square of the errors: 1.23 %

  no level filled the slots: there are at least 4, and beyond that many users --slots inf is a guess
  these are the costs with prompts of 200 tokens and answers of 50: a real server's sequences cost more the longer \
their context is, and a part of a prompt's cost does not depend on its length

next:
  tokload simulate --slots inf --base-ms 7 --per-sequence-ms 0.3 --per-prefill-token-ms 0.02 \
--random-input-len 200 --random-output-len 50 --max-concurrency 1,4
";
    assert_eq!(estimate.text("run.json"), expected);
}

#[test]
fn levels_that_cannot_be_used_are_named_with_the_reason() {
    let sweep = run(&server(12, COST), &[1, 4, 12, 32], STEADY);
    let think = Driving { think: Duration::from_secs(1), ..STEADY };
    let mut mixed = sweep.clone();
    mixed.levels.extend(run(&server(12, COST), &[8], think).levels);
    mixed.levels.extend(crate::run_file::sample().run.levels.split_off(1));
    let mut silent = sweep.levels[0].clone();
    silent.counts.ok = 0;
    mixed.levels.push(silent);
    let mut unstreamed = sweep.levels[0].clone();
    unstreamed.distributions.remove(&Metric::Ttft);
    mixed.levels.push(unstreamed);
    let estimate = Estimate::of_run(&mixed).unwrap();
    assert_eq!(estimate.fit, Estimate::of_run(&sweep).unwrap().fit);
    assert_eq!(
        estimate.remarks[..4],
        [
            "8 users think 1 s is not used: its users think",
            "poisson 12.5/s cap 4 is not used: it is no closed loop",
            "1 user is not used: no request ended well",
            "1 user is not used: it has no TTFT",
        ]
    );
}

#[test]
fn what_the_numbers_lack_is_remarked_upon() {
    let mut sweep = run(&server(12, COST), &[1, 4, 12, 32], STEADY);
    for level in &mut sweep.levels {
        level.tokens.prompt_known = 0;
        level.window.whole_level = true;
    }
    sweep.levels[0].counts.failed = 3;
    let remarks = Estimate::of_run(&sweep).unwrap().remarks;
    let failed = format!("1 user: 3 of {} requests failed", sweep.levels[0].counts.ok + 3);
    assert!(remarks[0].starts_with(&failed), "{remarks:?}");
    assert_eq!(remarks[1], "no prompt tokens were reported: 128 words are taken as 128 tokens");
    for level in &mut sweep.levels {
        (level.tokens.prompt_known, level.tokens.cached) = (level.counts.ok, Some(level.tokens.prompt / 4));
        level.counts.ok /= 15;
        level.tokens.output /= 15;
        level.tokens.prompt_known = level.counts.ok;
    }
    let remarks = Estimate::of_run(&sweep).unwrap().remarks;
    assert_eq!(remarks[1], "25.0 % of the prompt tokens came from a cache and count as not computed");
    assert!(
        remarks[2].starts_with("4 users, 12 users, 32 users: fewer than 10 answers per user"),
        "{remarks:?}"
    );
}

#[test]
fn a_run_that_leaves_a_cost_open_is_refused_with_what_to_measure() {
    let remedy =
        "measure one user and several more numbers of users, as in tokload run --max-concurrency 1,4,16,64";
    let refused = |run: &RunFile| Estimate::of_run(run).unwrap_err().to_string();
    let few = run(&server(12, COST), &[4, 8], STEADY);
    assert_eq!(
        refused(&few),
        "--fit: levels of 4, 8 users do not tell the cost of a sequence from that of a prompt token; measure one user, as \
         in tokload run --max-concurrency 1,4,16,64 --random-output-len 64"
    );
    let mut open = crate::run_file::sample().run;
    open.levels.remove(0);
    let why = "poisson 12.5/s cap 4 is not used: it is no closed loop";
    assert_eq!(refused(&open), format!("--fit: {why}; {remedy}"));
    open.levels.clear();
    assert_eq!(refused(&open), format!("--fit: the run has no level; {remedy}"));
}

#[test]
fn answers_of_one_token_are_refused_with_the_costs_that_they_leave_open() {
    let one = Driving { tokens: 1, ..STEADY };
    let refused = Estimate::of_run(&run(&server(12, COST), &[1, 4, 12], one)).unwrap_err().to_string();
    assert_eq!(
        refused,
        "--fit: levels of 1, 4, 12 users do not tell the cost of a sequence from that of a prompt token; measure answers \
         of many tokens, as in tokload run --max-concurrency 1,4,16,64 --random-output-len 64"
    );
}

#[test]
fn several_answers_to_a_request_are_refused_as_what_they_are() {
    let mut sweep = run(&server(12, COST), &[1, 4, 12, 32], STEADY);
    let mut plan = sweep.plan.read().unwrap();
    plan.workload.choices = 4;
    sweep.plan = Verbatim::of(&plan);
    assert_eq!(
        Estimate::of_run(&sweep).unwrap_err().to_string(),
        "--fit: each request asks for 4 answers, which share steps with each other; measure with one answer to a request, \
         without --n"
    );
}

#[test]
fn what_fits_worst_is_named_with_what_it_may_come_from() {
    let sweep = run(&server(12, COST), &[1, 4, 12, 32], STEADY);
    let said = |place: usize, factor: f64, change: &dyn Fn(&mut LevelBlock)| {
        let mut sweep = sweep.clone();
        let level = &mut sweep.levels[place];
        level.rates.window.req_s *= factor;
        change(level);
        let remarks = Estimate::of_run(&sweep).unwrap().remarks;
        let found = remarks.iter().find(|remark| remark.contains("fitted worst")).cloned();
        found.unwrap_or_else(|| panic!("{remarks:?}"))
    };
    let at = |place, factor| said(place, factor, &|_| {});
    let slow = at(3, 0.8);
    assert!(
        slow.starts_with("server time per request at 32 users is fitted worst, -12.1 % off: perhaps"),
        "{slow}"
    );
    assert!(slow.contains("short of memory or processor"), "{slow}");
    assert!(
        at(3, 0.6).starts_with("the errors are large: this model does not describe this server; server time")
    );
    assert!(at(0, 0.8).ends_with("perhaps the server is idle between the requests of a single user"));
    assert!(at(1, 1.25).ends_with("or steps do not grow evenly with their sequences"));
    let short = |level: &mut LevelBlock| {
        level.window.whole_level = true;
        let shorter = level.counts.ok / 40;
        level.tokens.output = level.tokens.output / level.counts.ok * shorter;
        (level.counts.ok, level.tokens.prompt_known) = (shorter, 0);
    };
    assert!(said(3, 0.8, &short).ends_with("the level was too short"));
}

#[test]
fn a_cost_that_would_be_negative_is_named() {
    let free = Cost { per_sequence_ms: 0.0, ..COST };
    let mut sweep = run(&server(64, free), &[1, 2, 4, 8], STEADY);
    for (level, users) in sweep.levels.iter_mut().zip([1.0, 2.0, 4.0, 8.0]) {
        level.rates.window.req_s *= 1.0 + 0.02 * users;
    }
    let estimate = Estimate::of_run(&sweep).unwrap();
    assert_eq!(estimate.fit.at_zero, Terms { sequence: true, ..Terms::default() });
    let sentence =
        "per sequence would have come out below zero and is held at 0: it does not show in these levels";
    assert!(estimate.remarks.iter().any(|remark| remark == sentence), "{:?}", estimate.remarks);
}

#[test]
fn the_program_fits_a_saved_run_and_says_what_is_wrong_with_another() {
    let folder = tempfile::tempdir().unwrap();
    let said = |words: &[&str]| {
        let mut program = Command::new(env!("CARGO_BIN_EXE_tokload"));
        let output = program.current_dir(folder.path()).arg("simulate").args(words).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    };
    let sweep = run(&server(12, COST), &[1, 4, 12, 32], STEADY);
    Destination::at(folder.path().join("sweep.json"), false).unwrap().write(&sweep).unwrap();
    let (code, out, err) = said(&["--fit", "sweep.json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, Estimate::of_run(&sweep).unwrap().text("sweep.json"));

    let (code, out, err) = said(&["--fit", "nothing.json"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.starts_with("tokload: --fit: cannot read nothing.json: No such file"), "{err}");
    std::fs::write(folder.path().join("other.json"), "{}").unwrap();
    assert!(said(&["--fit", "other.json"]).2.contains("is not a tokload run file"));
    let (code, _, err) = said(&["--fit", "sweep.json", "-c", "4"]);
    assert_eq!(code, 2);
    assert_eq!(
        err,
        "tokload: --fit: estimates a server and simulates nothing; give it alone, and further options to the command \
         that it prints\n"
    );
}
