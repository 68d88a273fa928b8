//! Findings and verdicts of whole runs in virtual time, the checklist of the textbook, and the table in the README.

use serde_json::Value;
use tokload::metrics::{Metric, Outcome};
use tokload::model::{self, Batching, Fixed, Serving};
use tokload::plan::lint::{Surroundings, lint};
use tokload::plan::{Arrivals, Declared, Endpoint, Finding, Grade, Level, Load, Plan, Rule, Stop};
use tokload::run_file::RunFile;
use tokload::run_file::WallTime;
use tokload::run_file::schema::{EnvironmentBlock, FindingBlock, TargetBlock, VIRTUAL_CLOCK};
use tokload::stats::Histogram;
use tokload::summary;
use tokload::summary::{Counts, OutcomeCount, Tokens};
use tokload::verdict::facts::{Client, Latency, Times};
use tokload::verdict::{self, Facts, Verdict};

use crate::simulate;

/// A run of one level in virtual time, as it is stored and judged; `change` stands for what the client and the wire
/// might have done to it, which in virtual time they never do.
fn judged_with(
    plan: &Plan,
    server: model::Settings,
    change: impl FnOnce(&mut tokload::run::LevelResult),
) -> RunFile {
    let (mut result, records) = simulate::run(plan, server, &plan.levels[0]);
    change(&mut result);
    let environment =
        EnvironmentBlock { clock: Some(VIRTUAL_CLOCK.to_owned()), ..EnvironmentBlock::default() };
    let mut run = RunFile::new(WallTime::from_unix_nanos(0), plan, environment, TargetBlock::default());
    run.push(&result, &summary::level(&summary::Input::new(&result, Some(&records), plan.slo)));
    run.judge();
    run
}

fn judged(plan: &Plan, server: model::Settings) -> RunFile {
    judged_with(plan, server, |_| {})
}

/// What was found of level warn or above.
fn warnings(run: &RunFile) -> Vec<(&str, Grade)> {
    let all = run.findings.iter().chain(run.levels.iter().flat_map(|level| &level.findings)).flatten();
    all.filter(|finding| finding.grade > Grade::Info).map(|f| (f.rule.as_str(), f.grade)).collect()
}

fn finding<'a>(run: &'a RunFile, rule: &str) -> &'a FindingBlock {
    let all = run.findings.iter().chain(run.levels.iter().flat_map(|level| &level.findings)).flatten();
    all.into_iter().find(|finding| finding.rule == rule).unwrap_or_else(|| panic!("no {rule} was found"))
}

/// 1000 requests at 8/s: about half of what the course's server can do.
fn open_loop() -> Plan {
    let mut plan = simulate::plan();
    let load = Load { arrivals: Arrivals::Poisson { rate: 8.0 }, cap: None, users: None, think_s: 0.0 };
    plan.levels = vec![Level {
        load,
        stop: Stop { units: Some(1000), ..Stop::default() },
        warmups: 2,
        ..Level::default()
    }];
    plan
}

fn course() -> model::Settings {
    model::Settings::course()
}

#[test]
fn a_thousand_good_requests_of_an_open_loop_are_valid_whatever_the_seed_and_the_process() {
    for seed in 1..=8 {
        for arrivals in [
            Arrivals::Poisson { rate: 8.0 },
            Arrivals::Constant { rate: 8.0 },
            Arrivals::Gamma { rate: 8.0, burstiness: 0.5 },
        ] {
            let mut plan = open_loop();
            plan.seed = seed;
            plan.levels[0].load.arrivals = arrivals.clone();
            let run = judged(&plan, course());
            assert_eq!(warnings(&run), [], "seed {seed}, {arrivals:?}");
            assert_eq!((run.verdict, run.levels[0].verdict), (Some(Verdict::Valid), Some(Verdict::Valid)));
        }
    }
}

#[test]
fn a_closed_loop_of_enough_requests_is_valid_and_told_what_it_is() {
    let mut plan = open_loop();
    plan.levels[0].load = Load::closed(8);
    let run = judged(&plan, course());
    assert_eq!(warnings(&run), []);
    assert_eq!(finding(&run, "closed_loop_without_queue_time").grade, Grade::Info);
}

#[test]
fn a_capped_open_loop_says_how_many_waited() {
    let mut plan = open_loop();
    plan.levels[0].load.cap = Some(4);
    let run = judged(&plan, course());
    // Four at a time get 6.25 requests/s out of the server: the queue before the cap grows.
    assert_eq!(warnings(&run), [("not_stationary", Grade::Warn), ("cap_reached", Grade::Warn)]);
    let waited = run.levels[0].distributions[&Metric::CapWait].histogram().unwrap();
    let n: u64 = waited.buckets().filter(|bucket| bucket.highest > 0).map(|bucket| bucket.count).sum();
    let evidence = &finding(&run, "cap_reached").evidence;
    assert!(n > 100 && evidence.starts_with(&format!("{n} of 1000 requests ")), "{n}: {evidence}");
    // A cap that is never reached is none.
    plan.levels[0].load.cap = Some(1000);
    assert_eq!(warnings(&judged(&plan, course())), []);
}

#[test]
fn too_few_requests_are_too_few_before_and_after() {
    let mut plan = open_loop();
    plan.levels[0].stop.units = Some(60);
    assert_eq!(warnings(&judged(&plan, course())), [("few_requests", Grade::Warn)]);
    // Users within a time: the plan cannot know how many requests that will be.
    plan.levels[0].load = Load::closed(2);
    plan.levels[0].stop = Stop { units: None, duration_s: Some(40.0), grace_s: 30.0 };
    let run = judged(&plan, course());
    assert_eq!(warnings(&run), [("few_requests", Grade::Warn)]);
    assert!(run.levels[0].findings.as_ref().unwrap().iter().any(|finding| finding.rule == "few_requests"));
}

#[test]
fn identical_prompts_are_a_warning_and_no_unwanted_cache() {
    let mut plan = open_loop();
    plan.workload.distinct = Some(1);
    let cache = Some(model::PrefixCache::default());
    let batching = Batching { prefix_cache: cache, ..Batching::default() };
    let run = judged(&plan, model::Settings::serving(Serving::Batching(batching)));
    assert!(run.levels[0].tokens.cached > Some(100_000), "the cache answers");
    assert_eq!(warnings(&run), [("identical_prompts", Grade::Warn)]);
}

#[test]
fn a_server_that_sends_requests_away_makes_no_measurement() {
    let mut server =
        model::Settings::serving(Serving::Batching(Batching { slots: 1, ..Batching::default() }));
    if let Serving::Batching(batching) = &mut server.serving {
        batching.queue_max = Some(1);
    }
    let run = judged(&open_loop(), server);
    let found = warnings(&run);
    assert!(found.contains(&("failures", Grade::Invalid)), "{found:?}");
    assert!(found.contains(&("rate_limited", Grade::Warn)), "{found:?}");
    assert_eq!(run.verdict, Some(Verdict::Invalid));
}

#[test]
fn what_is_cut_off_by_a_short_grace_period_is_unfinished() {
    let mut plan = open_loop();
    plan.levels[0].load = Load::closed(3);
    plan.levels[0].stop = Stop { units: None, duration_s: Some(50.0), grace_s: 0.01 };
    let run = judged(&plan, course());
    let rules: Vec<&str> = warnings(&run).into_iter().map(|(rule, _)| rule).collect();
    assert!(rules.contains(&"unfinished") && rules.contains(&"failures"), "{rules:?}");
}

#[test]
fn a_frozen_server_stands_out_of_the_level() {
    let mut server = course();
    server.freezes = vec![model::Freeze { at_s: 60.0, for_s: 12.0 }];
    let run = judged(&open_loop(), server);
    assert_eq!(warnings(&run), [("time_slice_outlier", Grade::Warn)]);
}

/// 120 s at 110 % of what the server can do.
#[test]
fn a_server_that_falls_behind_is_saturated_and_not_stationary() {
    let mut plan = open_loop();
    plan.levels[0].load.arrivals = Arrivals::Poisson { rate: 16.6 };
    plan.levels[0].stop = Stop { units: None, duration_s: Some(120.0), grace_s: 60.0 };
    let run = judged(&plan, course());
    let rules: Vec<&str> = warnings(&run).into_iter().map(|(rule, _)| rule).collect();
    for rule in ["not_stationary", "saturated", "little_mismatch"] {
        assert!(rules.contains(&rule), "{rule}: {rules:?}");
    }
    assert_eq!(run.verdict, Some(Verdict::Degraded));
    let saturated = finding(&run, "saturated");
    let rate: f64 = saturated.remedy.split(' ').nth(3).unwrap().parse().unwrap();
    assert!((14.0..15.5).contains(&rate), "{}", saturated.remedy);
    assert!(finding(&run, "not_stationary").evidence.starts_with("requests under way grew from "));
    assert!(!run.levels[0].findings.iter().flatten().any(|found| found.rule == "n_eff_low"));
}

/// What the mark in the table is about.
#[test]
fn requests_in_waves_say_how_few_they_are_worth() {
    let run = judged(&open_loop(), course());
    let found = finding(&run, "n_eff_low");
    assert_eq!(found.grade, Grade::Info);
    assert!(found.evidence.contains(" p99 is unsupported: n_eff "), "{}", found.evidence);
    assert!(found.evidence.contains(" of 368 (1000 requests, DEFF "), "{}", found.evidence);
    let mut plan = open_loop();
    plan.levels[0].load.arrivals = Arrivals::Poisson { rate: 14.0 };
    let run = judged(&plan, course());
    assert!(finding(&run, "deff_high").evidence.contains(" requests are worth one independent one for "));
}

/// A count that does not agree with the records: nothing else of the level can be believed.
#[test]
fn books_that_do_not_agree_are_no_measurement() {
    let run = judged_with(&open_loop(), course(), |result| {
        let running = result.shards[0].running.as_mut().unwrap();
        running.on_start(result.span.t0.as_nanos() + 5_000_000_000);
        running.on_end(result.span.t0.as_nanos() + 6_000_000_000);
    });
    assert_eq!(warnings(&run), [("little_mismatch", Grade::Invalid)]);
    assert_eq!(run.verdict, Some(Verdict::Invalid));
    assert!(finding(&run, "little_mismatch").evidence.contains("were counted meanwhile"));
}

/// The sends of a client that could not keep the rate: in virtual time none is late, so its own histogram is told.
#[test]
fn a_rate_that_the_client_could_not_keep_is_not_the_load_that_was_planned() {
    let late = |ms: u64| {
        judged_with(&open_loop(), course(), |result| {
            let shard = &mut result.shards[0];
            shard.schedule_delay = Histogram::new();
            (0..1000).for_each(|i| shard.schedule_delay.record(ms * 1_000_000 * i / 1000));
        })
    };
    let run = late(20);
    assert_eq!(warnings(&run), [("late_client", Grade::Warn)]);
    assert_eq!(run.verdict, Some(Verdict::Degraded));
    let run = late(4000);
    assert_eq!(warnings(&run), [("late_client", Grade::Invalid)]);
    assert_eq!(run.verdict, Some(Verdict::Invalid));
}

#[test]
fn an_overloaded_shard_is_blamed_by_what_it_lost() {
    let run = judged_with(&open_loop(), course(), |result| {
        let shard = &mut result.shards[0];
        (shard.cpu_ns, shard.wall_ns) = (95, 100);
        (0..100).for_each(|_| shard.loop_lag.record(12_000_000));
        (shard.coalesced, shard.joined) = (shard.events / 4, shard.events / 4);
    });
    let rules: Vec<&str> = warnings(&run).into_iter().map(|(rule, _)| rule).collect();
    assert_eq!(rules, ["client_cpu", "coalesced", "loop_lag"]);
}

#[test]
fn a_server_without_usage_is_counted_in_events() {
    let fixed = Fixed { ttft_ms: 50.0, itl_ms: 5.0, ..Fixed::default() };
    let mut plan = open_loop();
    plan.workload.options.include_usage = false;
    let run = judged(&plan, model::Settings::serving(Serving::Fixed(fixed)));
    assert_eq!(warnings(&run), [("tokens_counted_as_chunks", Grade::Warn)]);
}

/// A plan of the textbook's checklist, and what was seen when it was run.
struct Listed {
    plan: Plan,
    facts: Facts,
}

impl Listed {
    /// From a row of `inputs.json`, in the order of its `fields`.
    fn new(row: &[Value]) -> Listed {
        let number = |place: usize| row[place].as_u64().unwrap();
        let yes = |place: usize| row[place].as_bool().unwrap();
        let (warmups, requests) = (number(1) as u32, number(2));
        let load = match yes(6) {
            true => Load { arrivals: Arrivals::Poisson { rate: 5.0 }, cap: None, users: None, think_s: 0.0 },
            false => Load::closed(4),
        };
        let level = Level {
            load,
            stop: Stop { units: Some(requests), ..Stop::default() },
            warmups,
            ..Level::default()
        };
        let mut plan = Plan::new(1);
        plan.target.endpoints.push(Endpoint { url: "http://server:8000".to_owned() });
        plan.levels = vec![level.clone()];
        plan.workload.distinct = (!yes(3)).then_some(1);
        plan.workload.options.ignore_eos = yes(4);
        plan.target.stream = yes(5);
        plan.declared = Declared { fresh_server: Some(yes(7)), same_as_production: Some(yes(10)) };
        let ok = OutcomeCount { outcome: Outcome::ok(200), count: requests };
        let by = if yes(9) { [requests, 0, 0, 0] } else { [0, 0, requests, 0] };
        let facts = Facts {
            level,
            times: Times {
                window_s: 100.0,
                planned_s: requests as f64 / 5.0,
                whole_level: true,
                ..Times::default()
            },
            counts: Counts { planned: requests, ok: requests, outcomes: vec![ok], ..Counts::default() },
            tokens: Tokens { output: 64 * requests, events: 64 * requests, sources: by, ..Tokens::default() },
            latencies: [(Metric::E2e, Latency { n: requests, p99_ns: 2e9, ..Latency::default() })].into(),
            client: Client { cpu_share_max: Some(number(8) as f64 / 100.0), ..Client::default() },
            ..Facts::default()
        };
        Listed { plan, facts }
    }

    /// What is found before and after; that it is one run is no question of the textbook.
    fn rules(&self) -> Vec<&'static str> {
        let before = lint(&self.plan, &Surroundings::default());
        let mut found: Vec<Finding> =
            before.into_iter().chain(verdict::findings(&self.plan, &self.facts)).collect();
        found.sort_by_key(|finding| finding.rule);
        found.retain(|finding| finding.rule != Rule::SingleRun);
        found.iter().map(|finding| finding.rule.name()).collect()
    }
}

/// Golden BenchChecklist: nine rules are broken by the quick laptop run, in this order, and none by the release
/// benchmark.
#[test]
fn the_checklist_of_the_textbook_finds_what_it_found() {
    let inputs: Value = serde_json::from_str(include_str!("../golden/inputs.json")).unwrap();
    let values: Value = serde_json::from_str(include_str!("../golden/values.json")).unwrap();
    let plans = inputs["BenchChecklist"]["plans"].as_array().unwrap();
    assert_eq!(plans.len(), 2);
    for row in plans {
        let row = row.as_array().unwrap();
        let golden = values["BenchChecklist"][row[0].as_str().unwrap()].as_array().unwrap();
        let expected: Vec<&str> =
            golden.iter().map(|rule| rule.as_str().unwrap().split('(').next().unwrap()).collect();
        assert_eq!(Listed::new(row).rules(), expected, "{}", row[0]);
    }
}

/// Each rule has its line in the table of the README, in order.
#[test]
fn the_readme_lists_every_rule() {
    let readme = include_str!("../../README.md");
    let (_, table) = readme.split_once("| rule | grade | found when |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let listed: Vec<&str> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    let rules: Vec<&str> = Rule::ALL.into_iter().map(|(_, name)| name).collect();
    assert_eq!(listed, rules);
}
