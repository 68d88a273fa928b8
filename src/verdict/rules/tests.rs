use super::super::{Verdict, findings};
use super::*;
use crate::metrics::{Class, Kind, Metric, Outcome, TimeoutPhase};
use crate::plan::{
    Arrivals, Distribution, Grade, Lengths, Level, Load, Prefix, Rule, SteadyCut, Stop, Timestamps,
};
use crate::plan::{Gaps, Piece, Rate, Shape, Varying};
use crate::run::HostCheck;
use crate::stats::little::{Counted, Verdict as Books};
use crate::stats::{Quantile, Series};
use crate::summary::statistics::{
    LatencyStatistics, LittleStatistics, QuantileStatistics, Statistics, SteadyStatistics, TrendStatistics,
};
use crate::summary::{Counts, InFlight, OutcomeCount, Tokens};
use crate::verdict::facts::{Delay, Latency, Times};

const MS: f64 = 1e6;

fn delay(p50_ms: f64, p99_ms: f64) -> Option<Delay> {
    Some(Delay { p50_ns: p50_ms * MS, p99_ns: p99_ms * MS, max_ns: 2.0 * p99_ms * MS })
}

fn latency(p50_ms: f64, p99_ms: f64) -> Latency {
    Latency { n: 1000, p50_ns: p50_ms * MS, p99_ns: p99_ms * MS, max_ns: p99_ms * MS, p99_bounds_ns: None }
}

/// 1000 good requests at 10/s for 100 s: TTFT 200 ms, 64 tokens 20 ms apart, a client in time.
fn good() -> Facts {
    let load = Load { arrivals: Arrivals::Poisson { rate: 10.0 }, cap: None, users: None, think_s: 0.0 };
    let ok = OutcomeCount { outcome: Outcome::ok(200), count: 1000 };
    let mut facts = Facts {
        level: Level {
            load,
            stop: Stop { units: Some(1000), ..Stop::default() },
            warmups: 2,
            ..Level::default()
        },
        times: Times { window_s: 102.0, cut_s: 0.0, whole_level: true, planned_s: 100.0, level_s: 102.0 },
        counts: Counts { planned: 1000, ok: 1000, outcomes: vec![ok], ..Counts::default() },
        tokens: Tokens {
            output: 64_000,
            prompt: 128_000,
            prompt_known: 1000,
            cached: Some(0),
            events: 64_000,
            sources: [1000, 0, 0, 0],
            ..Tokens::default()
        },
        in_flight: Some(InFlight { mean: 14.0, max: 30, at_start: 0, at_end: 0 }),
        ..Facts::default()
    };
    for (metric, value) in [
        (Metric::Ttft, latency(200.0, 400.0)),
        (Metric::Tpot, latency(20.0, 21.0)),
        (Metric::Itl, latency(20.0, 22.0)),
        (Metric::E2e, latency(1460.0, 1700.0)),
    ] {
        facts.latencies.insert(metric, value);
    }
    facts.client.timestamps = Some(Timestamps::Both);
    facts.client.schedule_delay = delay(0.02, 0.1);
    facts.client.receive_lag = delay(0.03, 0.2);
    facts.client.loop_lag = delay(0.02, 0.5);
    facts.client.cpu_share_max = Some(0.3);
    (facts.client.sent, facts.client.events, facts.client.connects) = (1000, 64_000, 30);
    facts.client.host = Some(HostCheck::default());
    facts
}

fn found_with(plan: &Plan, change: impl FnOnce(&mut Facts)) -> Vec<Finding> {
    let mut facts = good();
    change(&mut facts);
    findings(plan, &facts)
}

fn found(change: impl FnOnce(&mut Facts)) -> Vec<(Rule, Grade)> {
    let found = found_with(&Plan::new(1), change);
    for finding in &found {
        let words = format!("{} {}", finding.evidence, finding.remedy);
        assert!(!words.contains("NaN") && !words.contains("inf "), "{finding}");
    }
    found.iter().map(|finding| (finding.rule, finding.grade)).collect()
}

fn info(rule: Rule) -> Vec<(Rule, Grade)> {
    vec![(rule, Grade::Info)]
}

fn warn(rule: Rule) -> Vec<(Rule, Grade)> {
    vec![(rule, Grade::Warn)]
}

/// Turns `n` of the ok requests into requests that ended so.
fn ended(facts: &mut Facts, outcome: Outcome, n: u64) {
    (facts.counts.ok, facts.counts.failed) = (facts.counts.ok - n, facts.counts.failed + n);
    facts.counts.outcomes[0].count -= n;
    facts.counts.outcomes.push(OutcomeCount { outcome, count: n });
    facts.tokens.sources[0] -= n;
}

#[test]
fn a_thousand_good_requests_have_nothing_to_find() {
    assert_eq!(found(|_| {}), []);
}

#[test]
fn the_gravest_finding_is_the_verdict() {
    assert_eq!(Verdict::of([]), Verdict::Valid);
    assert_eq!(Verdict::of([Grade::Info]), Verdict::Valid);
    assert_eq!(Verdict::of([Grade::Warn, Grade::Info]), Verdict::Degraded);
    assert_eq!(Verdict::of([Grade::Warn, Grade::Invalid, Grade::Info]), Verdict::Invalid);
}

#[test]
fn more_than_one_failure_in_a_hundred_is_no_measurement() {
    let reset = Outcome::new(Class::Reset, Kind::Truncated, 200);
    assert_eq!(found(|f| ended(f, reset, 1)), warn(Rule::Failures));
    assert_eq!(found(|f| ended(f, reset, 10)), warn(Rule::Failures));
    assert_eq!(found(|f| ended(f, reset, 11)), [(Rule::Failures, Grade::Invalid)]);
    let evidence = &found_with(&Plan::new(1), |f| ended(f, reset, 11))[0].evidence;
    assert_eq!(evidence, "11 of 1000 requests failed (1.1 %)");
    let all = found(|f| ended(f, reset, 1000));
    assert_eq!(all, [(Rule::Failures, Grade::Invalid)]);
    let none = found(|f| (f.counts, f.tokens) = (Counts::default(), Tokens::default()));
    assert!(none.contains(&(Rule::FewRequests, Grade::Invalid)), "{none:?}");
}

#[test]
fn failures_that_have_a_remedy_of_their_own_are_named_beside_the_rest() {
    let with = |outcome| found(|f| ended(f, outcome, 1));
    let beside = |rule| vec![(Rule::Failures, Grade::Warn), (rule, Grade::Warn)];
    assert_eq!(with(Outcome::new(Class::Unfinished, Kind::None, 200)), beside(Rule::Unfinished));
    assert_eq!(with(Outcome::new(Class::Truncated, Kind::Incomplete, 200)), beside(Rule::Truncated));
    for status in [429, 503] {
        let refused = Outcome::new(Class::Http, Kind::HttpStatus, status);
        assert_eq!(with(refused), beside(Rule::RateLimited));
    }
    assert_eq!(with(Outcome::new(Class::Http, Kind::HttpStatus, 500)), warn(Rule::Failures));
    assert_eq!(with(Outcome::timeout(TimeoutPhase::Gap, 200)), warn(Rule::Failures));
}

#[test]
fn lengths_are_off_from_one_answer_in_a_hundred() {
    assert_eq!(found(|f| f.tokens.length_off = 10), info(Rule::EarlyStop));
    assert_eq!(found(|f| f.tokens.length_off = 11), warn(Rule::EarlyStop));
    let counted = found(|f| (f.tokens.length_off, f.tokens.sources) = (900, [0, 0, 1000, 0]));
    assert_eq!(counted, warn(Rule::TokensCountedAsChunks), "a number of events is no length");
}

#[test]
fn prompts_may_be_two_in_a_hundred_off() {
    let reported = |tokens: u64| found(|f| f.tokens.prompt = 1000 * tokens);
    assert_eq!([reported(126), reported(130)], [vec![], vec![]]);
    assert_eq!([reported(125), reported(131)], [info(Rule::PromptTokensOff), info(Rule::PromptTokensOff)]);
    assert_eq!([reported(102), reported(154)], [warn(Rule::PromptTokensOff), warn(Rule::PromptTokensOff)]);
    assert_eq!(found(|f| (f.tokens.prompt, f.tokens.prompt_known) = (0, 0)), []);
    let mut drawn = Plan::new(1);
    drawn.workload.input_words = Lengths::Drawn(Distribution::Uniform { min: 10, max: 20 });
    assert_eq!(
        found_with(&drawn, |f| f.tokens.prompt = 900_000),
        [],
        "there is no one length to be off from"
    );
}

#[test]
fn a_cache_is_to_find_what_prompts_have_in_common() {
    let mut plan = Plan::new(1);
    plan.workload.prefix = Some(Prefix::new(1872, 1));
    // 1000 prompts of 2000 tokens: off by 0.02 for the rule and 64 of 2000 for the blocks is as planned.
    let found = |planned, cached: u64| {
        let found = found_with(&plan, |f| {
            (f.tokens.prompt, f.tokens.prompt_known, f.tokens.cached) = (2_000_000, 1000, Some(cached));
            f.cache_share_planned = planned;
        });
        let found = found.iter().filter(|finding| finding.rule == Rule::CacheShareOff);
        found.map(|finding| (finding.rule, finding.grade)).collect::<Vec<_>>()
    };
    let off = |grade| vec![(Rule::CacheShareOff, grade)];
    assert_eq!(found(Some(0.9), 1_800_000), []);
    assert_eq!(found(Some(0.9), 1_700_000), []);
    assert_eq!(found(Some(0.9), 1_690_000), off(Grade::Info));
    assert_eq!(found(Some(0.9), 1_530_000), off(Grade::Warn));
    assert_eq!(found(Some(0.9), 0), off(Grade::Warn));
    assert_eq!(found(Some(0.5), 1_110_000), off(Grade::Info));
    assert_eq!(found(Some(0.5), 1_300_000), off(Grade::Warn));
    assert_eq!(found(Some(0.0), 0), []);
    assert_eq!(found(None, 1_300_000), []);
}

#[test]
fn a_cache_may_hit_only_what_was_asked_to_be_repeated() {
    let cached = |plan: &Plan, tokens| {
        let found = found_with(plan, |f| f.tokens.cached = tokens);
        found.iter().map(|finding| (finding.rule, finding.grade)).collect::<Vec<_>>()
    };
    let mut plan = Plan::new(1);
    assert_eq!(cached(&plan, Some(1280)), []);
    assert_eq!(cached(&plan, Some(1281)), warn(Rule::CacheHitsUnwanted));
    let mut talks = plan.clone();
    talks.workload.conversation = Some(crate::plan::Conversation::default());
    assert_eq!(cached(&talks, Some(1281)), [], "later turns repeat the earlier ones");
    assert_eq!(cached(&plan, None), []);
    // 1000 prompts of 128 tokens, 125 of them words: a template of three, which all of them share.
    plan.workload.input_words = 125.into();
    let of_template = cached(&plan, Some(3000));
    assert!(of_template.contains(&(Rule::CacheHitsUnwanted, Grade::Info)), "{of_template:?}");
    assert!(cached(&plan, Some(3001)).contains(&(Rule::CacheHitsUnwanted, Grade::Warn)));
    plan.workload.input_words = 128.into();
    plan.workload.distinct = Some(7);
    assert_eq!(cached(&plan, Some(100_000)), []);
    (plan.workload.distinct, plan.workload.prefix) = (Some(1000), None);
    assert_eq!(cached(&plan, Some(100_000)), warn(Rule::CacheHitsUnwanted));
    // With the shared words prompts are longer than the 128 tokens reported.
    plan.workload.prefix = Some(Prefix::new(500, 1));
    assert_eq!(cached(&plan, Some(100_000)), warn(Rule::PromptTokensOff));
}

#[test]
fn tokens_have_one_source_and_events_are_none() {
    assert_eq!(found(|f| f.tokens.sources = [0, 0, 1000, 0]), warn(Rule::TokensCountedAsChunks));
    let mixed = found(|f| (f.tokens.sources, f.tokens.mixed_sources) = ([900, 0, 100, 0], true));
    assert_eq!(mixed, warn(Rule::MixedTokenSource));
    assert_eq!(found(|f| f.tokens.hidden_reasoning = 3), info(Rule::HiddenReasoning));
    assert_eq!(found(|f| f.tokens.events = 64_000 * 2 / 3 + 1), []);
    assert_eq!(found(|f| f.tokens.events = 64_000 * 2 / 3 - 1), info(Rule::Bundled));
    assert_eq!(found(|f| f.tokens.single_chunk = 10), []);
    assert_eq!(found(|f| f.tokens.single_chunk = 11), warn(Rule::Bundled));
}

#[test]
fn a_window_holds_several_lives_of_a_request() {
    let window = |s| found(|f| f.times.window_s = s);
    assert_eq!(window(30.0), []);
    assert_eq!(window(29.9), info(Rule::WindowShort));
    assert_eq!(window(8.5), info(Rule::WindowShort));
    assert_eq!(window(8.4), warn(Rule::WindowShort));
    let burst = found(|f| (f.level.load.arrivals, f.times.window_s) = (Arrivals::Burst, 1.7));
    assert_eq!(burst, info(Rule::WindowShort), "a burst is one generation by its nature");
}

#[test]
fn what_a_plan_could_not_know_is_counted_afterwards() {
    let closed = |n: u64| {
        found(|f| {
            f.level.load = Load::closed(4);
            f.level.stop = Stop { units: None, duration_s: Some(100.0), grace_s: 30.0 };
            f.counts = Counts { planned: n, ok: n, ..Counts::default() };
            f.tokens = Tokens::default();
        })
    };
    assert_eq!(closed(200), []);
    assert_eq!(closed(199), warn(Rule::FewRequests));
    let planned = found(|f| {
        f.level.stop.units = Some(20);
        f.level.load = Load::closed(4);
        f.counts = Counts { planned: 20, ok: 20, ..Counts::default() };
        f.tokens = Tokens::default();
    });
    assert_eq!(planned, [], "the plan has said so already");
}

#[test]
fn a_rate_may_be_off_by_three_deviations_of_its_process() {
    // sd of 1000 Poisson arrivals at 10/s: 10 / sqrt(1000) = 0.316/s; three are 0.949, an edge 0.02.
    let realised = |arrivals, per_s: f64| {
        found(|f| (f.level.load.arrivals, f.times.planned_s) = (arrivals, 1000.0 / per_s))
    };
    let poisson = || Arrivals::Poisson { rate: 10.0 };
    assert_eq!([realised(poisson(), 9.05), realised(poisson(), 10.95)], [vec![], vec![]]);
    assert_eq!(realised(poisson(), 9.02), warn(Rule::RealisedRateOff));
    assert_eq!(realised(poisson(), 10.98), warn(Rule::RealisedRateOff));
    let bursty = Arrivals::Gamma { rate: 10.0, burstiness: 0.25 };
    assert_eq!(realised(bursty, 9.02), [], "gaps of twice the spread");
    let constant = || Arrivals::Constant { rate: 10.0 };
    assert_eq!([realised(constant(), 10.01), realised(constant(), 9.99)], [vec![], vec![]]);
    assert_eq!(realised(constant(), 10.03), warn(Rule::RealisedRateOff));
}

/// Three of four shares of 10/s: 7.5/s, of a process whose 1000 sends are 1333 of the whole: three deviations are
/// 3 * 7.5 / sqrt(1333) = 0.616.
#[test]
fn a_level_without_some_of_its_shares_is_held_against_their_part_of_the_rate() {
    let there = [1, 2, 4].map(|index| crate::plan::Share { index, of: 4 });
    let realised =
        |per_s: f64| found(|f| (f.shares_there, f.times.planned_s) = (there.to_vec(), 1000.0 / per_s));
    assert_eq!([realised(7.5), realised(6.95), realised(8.05)], [vec![], vec![], vec![]]);
    assert_eq!(
        [realised(6.85), realised(8.2), realised(10.0)].concat(),
        warn(Rule::RealisedRateOff).repeat(3)
    );
}

#[test]
fn turns_are_not_held_against_a_rate_of_sessions() {
    let mut plan = Plan::new(1);
    plan.workload.conversation = Some(crate::plan::Conversation::default());
    // Three turns of each session, all planned.
    let found = found_with(&plan, |f| {
        (f.level.load.arrivals, f.times.planned_s) = (Arrivals::Poisson { rate: 10.0 }, 1000.0 / 30.0);
    });
    assert!(found.iter().all(|finding| finding.rule != Rule::RealisedRateOff), "{found:?}");
}

#[test]
fn a_rate_that_varies_is_held_against_what_was_asked_over_the_same_time() {
    // From 0 to 20/s in 100 s, then 20/s: 1000 requests in the first 100 s, and 2000 in 150.
    let pieces = vec![Piece::ramp(0.0, 20.0, 100.0, Shape::Linear)];
    let rate = Rate::Series(crate::plan::Series { pieces, repeat: false });
    let arrivals = Arrivals::Varying(Varying { gaps: Gaps::Poisson, rate, exact_count: false });
    let of =
        |planned_s| found(|f| (f.level.load.arrivals, f.times.planned_s) = (arrivals.clone(), planned_s));
    assert_eq!(of(100.0), []);
    assert_eq!(of(150.0), warn(Rule::RealisedRateOff));
    // In a window behind the ramp 1000 requests take 50 s.
    let window = |s| {
        found(|f| {
            f.level.load.arrivals = arrivals.clone();
            (f.times.whole_level, f.times.cut_s, f.times.window_s) = (false, 100.0, s);
        })
    };
    assert_eq!([window(50.0), window(60.0)], [vec![], warn(Rule::RealisedRateOff)]);
    // Bursts of 100 every 10 s: one of them more or less lies at the edges.
    let bursts = |planned_s| {
        found(|f| {
            f.level.load.arrivals = Arrivals::Bursts { size: 100, every_s: 10.0 };
            f.times.planned_s = planned_s;
        })
    };
    assert_eq!([bursts(100.0), bursts(90.0), bursts(60.0)], [vec![], vec![], warn(Rule::RealisedRateOff)]);
}

#[test]
fn waiting_for_a_cap_is_told_with_what_it_cost() {
    let capped = |wait_ms: f64| {
        found_with(&Plan::new(1), |f| {
            f.level.load.cap = Some(8);
            f.latencies.insert(Metric::CapWait, Latency { max_ns: wait_ms * MS, ..latency(0.0, 0.0) });
            f.latencies.insert(Metric::TtftPlan, latency(300.0, 900.0));
            f.cap_waited = Some(40);
        })
    };
    assert_eq!(capped(0.0), []);
    let found = capped(500.0);
    assert_eq!((found.len(), found[0].rule, found[0].grade), (1, Rule::CapReached, Grade::Warn));
    assert_eq!(
        found[0].evidence,
        "40 of 1000 requests (4.0 %) waited for the cap of 8, up to 500 ms; TTFT from the planned send is 300 ms p50, \
         900 ms p99"
    );
}

#[test]
fn late_sends_are_measured_against_a_millisecond_and_ttft() {
    let late = |p50, p99, ttft_ms: f64| {
        found(|f| {
            f.client.schedule_delay = delay(p50, p99);
            f.latencies.insert(Metric::Ttft, latency(ttft_ms, ttft_ms));
            f.client.receive_lag = None;
        })
    };
    assert_eq!(late(0.0, 1.0, 20.0), []);
    assert_eq!(late(0.0, 1.1, 20.0), warn(Rule::LateClient));
    assert_eq!(late(0.0, 2.9, 300.0), []);
    assert_eq!(late(0.0, 3.1, 300.0), warn(Rule::LateClient));
    assert_eq!(late(299.0, 900.0, 300.0), warn(Rule::LateClient));
    assert_eq!(late(301.0, 900.0, 300.0), [(Rule::LateClient, Grade::Invalid)]);
    assert_eq!(late(9.0, 900.0, 5.0), warn(Rule::LateClient), "ten milliseconds at least");
}

#[test]
fn late_reads_matter_where_latencies_rest_on_them() {
    let late = |p99, ttft_ms: f64, stamps| {
        found(|f| {
            f.client.receive_lag = delay(0.0, p99);
            f.client.timestamps = Some(stamps);
            f.latencies.insert(Metric::Ttft, latency(ttft_ms, ttft_ms));
        })
    };
    let both = Timestamps::Both;
    assert_eq!(late(1.0, 200.0, both), []);
    assert_eq!(late(1.1, 50.0, both), warn(Rule::ReceiveLag));
    assert_eq!(late(1.1, 200.0, both), info(Rule::ReceiveLag), "lost in a TTFT of 200 ms");
    assert_eq!(late(2.1, 200.0, both), warn(Rule::ReceiveLag), "a tenth of TPOT");
    assert_eq!(late(0.3, 20.0, both), info(Rule::ReceiveLag), "less than a millisecond");
    assert_eq!(late(9.0, 200.0, Timestamps::Kernel), info(Rule::ReceiveLag));
}

#[test]
fn a_late_loop_is_a_warning_where_nothing_better_is_known() {
    assert_eq!(found(|f| f.client.loop_lag = delay(0.0, 1.1)), info(Rule::LoopLag));
    let user = found(|f| (f.client.loop_lag, f.client.receive_lag) = (delay(0.0, 1.1), None));
    assert_eq!(user, warn(Rule::LoopLag));
    assert_eq!(found(|f| f.client.cpu_share_max = Some(0.7)), []);
    assert_eq!(found(|f| f.client.cpu_share_max = Some(0.71)), warn(Rule::ClientCpu));
    assert_eq!(found(|f| f.client.wall_step_ns = Some(-3_000_000)), warn(Rule::ClockStep));
}

#[test]
fn joined_events_are_the_clients_doing_only_if_it_was_late() {
    let joined = |joined: f64, together: f64, bounds| {
        let found = found_with(&Plan::new(1), |f| {
            f.client.joined = (joined * 64_000.0) as u64;
            f.client.coalesced = ((joined + together) * 64_000.0) as u64;
            f.latencies.get_mut(&Metric::Itl).unwrap().p99_bounds_ns = bounds;
        });
        found.into_iter().filter(|finding| finding.rule == Rule::Coalesced).collect::<Vec<_>>()
    };
    assert_eq!(joined(0.05, 0.0, None), []);
    let by_us = joined(0.06, 0.3, None);
    assert_eq!(by_us[0].grade, Grade::Warn);
    assert!(by_us[0].evidence.starts_with("6.0 % of the events"), "{}", by_us[0]);
    let by_server = joined(0.0, 0.5, None);
    assert_eq!(by_server[0].grade, Grade::Info);
    assert!(by_server[0].evidence.ends_with("so they were sent together"), "{}", by_server[0]);
    assert_eq!(joined(0.0, 0.05, None), []);
    // 50 ms lost each second at gaps of 20 ms join three events in a hundred, and all of the tail.
    let few = joined(0.03, 0.0, Some((20.0 * MS, 58.0 * MS)));
    assert_eq!(few[0].grade, Grade::Warn);
    assert!(few[0].evidence.ends_with("ITL p99 lies between 20.0 ms and 58.0 ms"), "{}", few[0]);
    assert_eq!(joined(0.03, 0.0, Some((21.0 * MS, 23.0 * MS))), []);
}

#[test]
fn the_machine_is_asked_too() {
    let host = |change: fn(&mut HostCheck)| found(|f| change(f.client.host.as_mut().unwrap()));
    assert_eq!(host(|h| h.steal_share = Some(0.01)), []);
    assert_eq!(host(|h| h.steal_share = Some(0.011)), warn(Rule::CpuSteal));
    assert_eq!(host(|h| h.throttled_s = Some(0.1)), []);
    assert_eq!(host(|h| h.throttled_s = Some(0.2)), warn(Rule::CpuThrottled));
    assert_eq!(host(|h| h.swapped_pages = Some(0)), []);
    assert_eq!(host(|h| h.swapped_pages = Some(1)), warn(Rule::Memory));
    assert_eq!(host(|h| h.records_lost = 1), warn(Rule::Memory));
    // Whoever keeps connections open is not short of ports that others used.
    let short = |waiting, connects| {
        found(|f| {
            let host = f.client.host.as_mut().unwrap();
            (host.time_wait, host.ports) = (Some(waiting), Some(28_000));
            f.client.connects = connects;
            // Each request has asked for its own.
            f.client.sent = 100 * connects;
        })
    };
    assert_eq!(short(22_000, 1_400), []);
    assert_eq!(short(23_000, 1_399), []);
    assert_eq!(short(23_000, 1_400), warn(Rule::PortsShort));
}

#[test]
fn connections_beyond_those_open_at_once_are_too_many() {
    let connects = |n, at_once: Option<u64>| {
        found(|f| {
            f.client.connects = n;
            f.in_flight = at_once.map(|max| InFlight { max, ..InFlight::default() });
        })
    };
    assert_eq!(connects(130, Some(30)), []);
    assert_eq!(connects(131, Some(30)), warn(Rule::ConnectionReuse));
    assert_eq!(connects(1000, Some(1000)), [], "a burst needs them all");
    let refused = found(|f| {
        (f.client.connects, f.in_flight) = (500, Some(InFlight { max: 30, ..InFlight::default() }));
        let outcome = Outcome::new(Class::Connect, Kind::Refused, 0);
        f.counts.outcomes.push(OutcomeCount { outcome, count: 400 });
    });
    assert_eq!(refused, [], "a refused connection was never open");
    let given_up = found(|f| {
        (f.client.connects, f.counts.cancelled) = (500, 400);
        f.in_flight = Some(InFlight { max: 30, ..InFlight::default() });
    });
    assert_eq!(given_up, [], "whoever goes away takes a connection along");
    assert_eq!(connects(1000, None), [], "an open loop without records may have needed them");
    assert_eq!(found(|f| f.client.retransmits = 10), info(Rule::Retransmits));
    assert_eq!(found(|f| f.client.retransmits = 11), warn(Rule::Retransmits));
}

/// A hundred seconds of ten requests each, of which those in `slow` took four times as long.
#[test]
fn one_slow_stretch_stands_out_of_its_level() {
    let level = |slow: std::ops::Range<u64>| {
        found_with(&Plan::new(1), |f| {
            let mut series = Series::new();
            for second in 0..100 {
                let e2e = if slow.contains(&second) { 6_000_000_000 } else { 1_500_000_000 };
                (0..10).for_each(|i| series.add_ok(second * 1_000_000_000 + i * 90_000_000, Some(e2e)));
            }
            f.series = series;
        })
    };
    assert_eq!(level(0..0), []);
    let found = level(50..55);
    assert_eq!((found.len(), found[0].rule, found[0].grade), (1, Rule::TimeSliceOutlier, Grade::Warn));
    assert!(found[0].evidence.contains("around 50 s"), "{}", found[0]);
    assert_eq!(level(50..52), [], "the median of a slice of five seconds stands");
    assert_eq!(level(20..100), [], "what lasts is the level itself");
}

/// Statistics of the good level, which find nothing.
fn known() -> Statistics {
    let quantile = |quantile, needed| QuantileStatistics {
        quantile,
        value: 200.0 * MS,
        low: Some(190.0 * MS),
        high: Some(210.0 * MS),
        needed,
        supported: true,
        conservative: None,
    };
    let steady = SteadyStatistics {
        cut: SteadyCut::Default,
        found: None,
        fixed_start_ns: 0,
        trend: Some(TrendStatistics { z: 0.5, first_quarter: 14.0, last_quarter: 15.0, growing: false }),
        completed: 1000,
        planned: 1000,
        saturated: Some(false),
        latency_grows: false,
    };
    let little = LittleStatistics {
        pause_s: None,
        start_ns: 0,
        end_ns: 102_000_000_000,
        in_flight: 14.0,
        ended_s: 9.8,
        life_s: 1.43,
        gap: 0.001,
        gap_bound: 0.03,
        counted: Some(Counted { mean: 14.0, at_start: 0, at_end: 0 }),
        counter_gap: Some(0.0),
        verdict: Books::Holds,
        turnaround_s: None,
    };
    Statistics {
        attainment: None,
        latencies: vec![LatencyStatistics {
            metric: Metric::Ttft,
            n: 1000,
            design_effect: 2.0,
            n_eff: 500.0,
            mean: None,
            quantiles: vec![quantile(Quantile::P50, 6), quantile(Quantile::P99, 368)],
        }],
        throughput: None,
        steady,
        little: Some(little),
        whole_level: None,
    }
}

fn found_in(change: impl FnOnce(&mut Statistics)) -> Vec<(Rule, Grade)> {
    let mut statistics = known();
    change(&mut statistics);
    found(|facts| facts.statistics = Some(statistics))
}

#[test]
fn a_level_that_is_known_and_steady_has_nothing_to_find() {
    assert_eq!(found_in(|_| {}), []);
}

#[test]
fn growth_is_found_in_any_loop_and_saturation_where_it_was_judged() {
    let grow = |s: &mut Statistics| s.steady.trend.as_mut().unwrap().growing = true;
    assert_eq!(found_in(grow), warn(Rule::NotStationary));
    assert_eq!(found_in(|s| s.steady.saturated = Some(true)), warn(Rule::Saturated));
    assert_eq!(found_in(|s| s.steady.saturated = None), []);
    assert_eq!(found_in(|s| s.steady.found = Some(false)), warn(Rule::NotStationary));
    assert_eq!(found_in(|s| s.steady.found = Some(true)), []);
    let both = found_in(|s| {
        grow(s);
        s.steady.found = Some(false);
    });
    assert_eq!(both, warn(Rule::NotStationary), "one line for both");
}

#[test]
fn too_few_independent_requests_are_a_warning_only_where_the_median_is_not_known() {
    let few = |n_eff: f64, supported: [bool; 2]| {
        move |s: &mut Statistics| {
            let latency = &mut s.latencies[0];
            (latency.n_eff, latency.design_effect) = (n_eff, 1000.0 / n_eff);
            latency.quantiles.iter_mut().zip(supported).for_each(|(q, supported)| q.supported = supported);
        }
    };
    assert_eq!(found_in(few(367.0, [true, false])), info(Rule::NEffLow));
    let waves = [(Rule::NEffLow, Grade::Info), (Rule::DeffHigh, Grade::Info)];
    assert_eq!(found_in(few(99.0, [true, false])), waves);
    let one = [(Rule::NEffLow, Grade::Warn), (Rule::DeffHigh, Grade::Info)];
    assert_eq!(found_in(few(5.0, [false, false])), one);
    let mut statistics = known();
    few(5.7, [false, false])(&mut statistics);
    let nearly = found_with(&Plan::new(1), |facts| facts.statistics = Some(statistics));
    assert!(
        nearly[0].evidence.contains(" n_eff 5 of "),
        "not enough is not rounded to enough: {}",
        nearly[0]
    );
    // What grows has no steady value, however much there is of it.
    assert_eq!(
        found_in(|s| {
            few(5.0, [false, false])(s);
            (s.steady.latency_grows, s.steady.saturated) = (true, Some(true));
        }),
        warn(Rule::Saturated)
    );
}

#[test]
fn books_are_loose_or_broken() {
    let little =
        |change: fn(&mut LittleStatistics)| move |s: &mut Statistics| change(s.little.as_mut().unwrap());
    assert_eq!(found_in(little(|l| l.verdict = Books::Loose)), warn(Rule::LittleMismatch));
    assert_eq!(found_in(little(|l| l.verdict = Books::Broken)), [(Rule::LittleMismatch, Grade::Invalid)]);
    // 1 % of a cycle of 1.43 s, and as much as the edges of 102 s may feign.
    assert_eq!(found_in(little(|l| l.turnaround_s = Some(0.034))), []);
    assert_eq!(found_in(little(|l| l.turnaround_s = Some(0.035))), warn(Rule::LateClient));
    assert_eq!(found_in(little(|l| l.turnaround_s = Some(-0.5))), []);
}
