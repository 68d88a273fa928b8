use super::*;
use crate::plan::{Arrivals, Conversation, DataSet, Declared, Endpoint, Grade, Load, Prefix, Rule, Stop};

/// An open loop of 1000 requests, and everything declared: nothing to find but that it is one run.
fn good() -> Plan {
    let mut plan = Plan::new(1);
    plan.target.endpoints.push(Endpoint { url: "http://server:8000".to_owned() });
    let load = Load { arrivals: Arrivals::Poisson { rate: 10.0 }, cap: None, users: None, think_s: 0.0 };
    let stop = Stop { units: Some(1000), ..Stop::default() };
    plan.levels.push(super::super::Level { load, stop, warmups: 2, ..super::super::Level::default() });
    plan.declared = Declared { fresh_server: Some(true), same_as_production: Some(true) };
    plan
}

fn found_in(plan: &Plan, around: &Surroundings) -> Vec<(Rule, Grade)> {
    lint(plan, around)
        .into_iter()
        .filter(|finding| finding.rule != Rule::SingleRun)
        .map(|finding| (finding.rule, finding.grade))
        .collect()
}

fn found(change: impl FnOnce(&mut Plan)) -> Vec<(Rule, Grade)> {
    let mut plan = good();
    change(&mut plan);
    found_in(&plan, &Surroundings::default())
}

fn around(change: impl FnOnce(&mut Surroundings)) -> Vec<(Rule, Grade)> {
    let mut around = Surroundings::default();
    change(&mut around);
    found_in(&good(), &around)
}

#[test]
fn a_good_plan_has_nothing_to_find_but_that_it_is_one_run() {
    let findings = lint(&good(), &Surroundings::default());
    assert_eq!(findings.len(), 1);
    assert_eq!((findings[0].rule, findings[0].grade), (Rule::SingleRun, Grade::Info));
}

#[test]
fn each_rule_is_broken_by_its_own_fault_alone() {
    let warn = |rule| vec![(rule, Grade::Warn)];
    let info = |rule| vec![(rule, Grade::Info)];
    assert_eq!(found(|p| p.levels[0].warmups = 0), warn(Rule::NoWarmup));
    assert_eq!(found(|p| p.target.stream = false), warn(Rule::NotStreaming));
    assert_eq!(found(|p| p.workload.options.ignore_eos = false), warn(Rule::OutputLengthNotFixed));
    assert_eq!(found(|p| p.levels[0].load = Load::closed(4)), info(Rule::ClosedLoopWithoutQueueTime));
    let fresh = |value| found(|p| p.declared.fresh_server = value);
    assert_eq!(fresh(None), info(Rule::ServerReusedAcrossConfigs));
    assert_eq!(fresh(Some(false)), warn(Rule::ServerReusedAcrossConfigs));
    let production = |value| found(|p| p.declared.same_as_production = value);
    assert_eq!(production(None), info(Rule::NotProductionPlatform));
    assert_eq!(production(Some(false)), warn(Rule::NotProductionPlatform));
}

#[test]
fn few_requests_are_counted_or_reckoned_from_rate_and_time() {
    let stop =
        |units, duration_s| move |p: &mut Plan| p.levels[0].stop = Stop { units, duration_s, grace_s: 1.0 };
    let few = vec![(Rule::FewRequests, Grade::Warn)];
    assert_eq!(found(stop(Some(200), None)), []);
    assert_eq!(found(stop(Some(199), None)), few);
    assert_eq!(found(stop(None, Some(20.0))), []);
    assert_eq!(found(stop(None, Some(19.9))), few);
    assert_eq!(found(stop(Some(1000), Some(19.9))), few);
    // How many a closed loop sends within a time is the server's to decide.
    let closed = found(|p| {
        p.levels[0].load = Load::closed(4);
        stop(None, Some(1.0))(p);
    });
    assert_eq!(closed, [(Rule::ClosedLoopWithoutQueueTime, Grade::Info)]);
    // Turns are requests too.
    let talks = |sessions| {
        found(move |p| {
            let later_words = Some(1.into());
            p.workload.conversation =
                Some(Conversation { turns: 4.into(), later_words, ..Conversation::default() });
            p.workload.input_words = 2000.into();
            stop(Some(sessions), None)(p);
        })
    };
    assert_eq!((talks(49), talks(50)), (few, Vec::new()));
    assert!(few_requests(20, 4.0).unwrap().remedy.starts_with("give --num-prompts 50 "));
    let evidence = few_requests(20, 1.0).unwrap().evidence;
    assert!(
        evidence.starts_with("20 requests in a level") && evidence.contains("a single one"),
        "{evidence}"
    );
}

#[test]
fn conversations_that_grow_are_told_with_their_lengths() {
    let of = |turns: u32, context_tokens, longest_prompt| {
        let mut plan = good();
        let talk =
            Conversation { turns: turns.into(), later_words: Some(50.into()), ..Conversation::default() };
        plan.workload.input_words = 100.into();
        plan.workload.output_tokens = 50.into();
        plan.workload.conversation = Some(talk);
        let around =
            Surroundings { context_tokens, longest_prompt, simulated: true, ..Surroundings::default() };
        let found = lint(&plan, &around).into_iter();
        found.filter(|finding| finding.rule == Rule::ContextGrowth).collect::<Vec<_>>()
    };
    assert_eq!(of(4, None, None), [], "four times as long is not much");
    let grown = of(5, None, None);
    assert_eq!((grown.len(), grown[0].grade), (1, Grade::Info));
    assert!(
        grown[0].evidence.contains("from 100 tokens in the first turn to 500 in the last of 5"),
        "{grown:?}"
    );
    assert_eq!(of(4, Some(450), None), []);
    let long = of(4, Some(449), None);
    assert_eq!((long.len(), long[0].grade), (1, Grade::Warn));
    assert!(long[0].evidence.contains("400 in the last of 4, and answers 50: more than the 449"), "{long:?}");
    let mut plan = good();
    plan.workload.data = Some(DataSet::of("x"));
    let around = Surroundings {
        context_tokens: Some(1000),
        longest_prompt: Some(1001),
        simulated: true,
        ..Surroundings::default()
    };
    let of_file =
        lint(&plan, &around).into_iter().find(|finding| finding.rule == Rule::ContextGrowth).unwrap();
    assert!(of_file.evidence.starts_with("the longest request has 1001 tokens"), "{of_file:?}");
}

#[test]
fn prompts_repeat_by_number_by_beginning_or_by_an_extra_field() {
    let warn = vec![(Rule::IdenticalPrompts, Grade::Warn)];
    let info = vec![(Rule::IdenticalPrompts, Grade::Info)];
    assert_eq!(found(|p| p.workload.distinct = Some(1)), warn);
    assert_eq!(found(|p| p.workload.distinct = Some(999)), warn);
    assert_eq!(found(|p| p.workload.distinct = Some(1000)), []);
    let prefix = Some(Prefix::new(500, 3));
    assert_eq!(found(|p| p.workload.prefix = prefix), info);
    let bare = |p: &mut Plan| (p.workload.prefix, p.workload.input_words) = (prefix, 0.into());
    assert_eq!(found(bare), warn);
    let field =
        |name: &'static str| move |p: &mut Plan| drop(p.workload.extra_body.insert(name.into(), "x".into()));
    assert_eq!(found(field("messages")), warn);
    assert_eq!(found(field("prompt")), [], "chat has no such field");
}

#[test]
fn lengths_are_fixed_by_any_of_the_ways_there_are() {
    let off = |more: fn(&mut Plan)| {
        found(|p| {
            p.workload.options.ignore_eos = false;
            more(p);
        })
    };
    assert_eq!(off(|p| p.workload.options.min_tokens = true), []);
    assert_eq!(off(|p| drop(p.workload.extra_body.insert("ignore_eos".into(), true.into()))), []);
    assert_eq!(off(|p| drop(p.workload.extra_body.insert("ignore_eos".into(), false.into()))).len(), 1);
    let mut plan = good();
    plan.workload.options.ignore_eos = false;
    plan.workload.options.dropped.push("ignore_eos".to_owned());
    let said = lint(&plan, &Surroundings::default());
    assert!(said[0].evidence.starts_with("the server refuses ignore_eos: "), "{}", said[0]);
}

#[test]
fn where_the_server_is_shows_in_its_addresses() {
    let ip = |text: &str| text.parse().unwrap();
    let here = vec![(Rule::ClientOnServerHost, Grade::Info)];
    assert_eq!(around(|a| a.addresses = vec![ip("10.0.0.7")]), []);
    assert_eq!(around(|a| a.addresses = vec![ip("127.0.0.2")]), here);
    assert_eq!(around(|a| a.addresses = vec![ip("::1")]), here);
    assert_eq!(around(|a| (a.addresses, a.server_on_this_host) = (vec![ip("10.0.0.7")], true)), here);

    let both = Surroundings { addresses: vec![ip("::1"), ip("127.0.0.1")], ..Surroundings::default() };
    let mut plan = good();
    assert_eq!(found_in(&plan, &both), here, "another name may well have both");
    plan.target.endpoints[0].url = "http://LocalHost:8000".to_owned();
    let twice = [here[0], (Rule::LocalhostResolvesTwice, Grade::Info)];
    assert_eq!(found_in(&plan, &both), twice);
}

#[test]
fn a_proxy_that_was_passed_outweighs_one_that_is_only_set() {
    let set = vec!["http_proxy".to_owned()];
    assert_eq!(around(|a| a.proxies.clone_from(&set)), [(Rule::ProxyInPath, Grade::Info)]);
    let passed = around(|a| (a.proxies, a.via) = (set, Some("1.1 front".to_owned())));
    assert_eq!(passed, [(Rule::ProxyInPath, Grade::Warn)]);
}

#[test]
fn a_model_has_no_place_and_no_state_from_before() {
    let mut plan = good();
    plan.declared = Declared::default();
    let around = Surroundings {
        simulated: true,
        addresses: vec!["127.0.0.1".parse().unwrap()],
        proxies: vec!["http_proxy".to_owned()],
        ..Surroundings::default()
    };
    assert_eq!(found_in(&plan, &around), []);
}

#[test]
fn a_load_that_varies_is_told_what_that_means() {
    use crate::plan::{Gaps, Piece, Rate, Series, Varying};
    let varying = |duration_s| {
        let pieces = vec![Piece::steady(5.0, 60.0), Piece::steady(20.0, 60.0)];
        let rate = Rate::Series(Series { pieces, repeat: false });
        let arrivals = Arrivals::Varying(Varying { gaps: Gaps::Poisson, rate, exact_count: false });
        let mut plan = good();
        plan.levels[0].load.arrivals = arrivals;
        plan.levels[0].stop = Stop { duration_s: Some(duration_s), ..Stop::default() };
        let found = lint(&plan, &Surroundings::default());
        let finding = found.into_iter().find(|finding| finding.rule == Rule::NotStationary).unwrap();
        assert_eq!(finding.grade, Grade::Info);
        finding.evidence
    };
    assert!(!varying(120.0).contains("ends"));
    assert!(varying(90.0).ends_with("; the level ends after 90 of its 120 s"), "{}", varying(90.0));
    let joining = |ramp_s, stop: Stop| {
        found(|plan| {
            plan.levels[0].load = Load { arrivals: Arrivals::Joining { ramp_s }, ..Load::closed(4) };
            plan.levels[0].stop = stop;
        })
    };
    let closed = (Rule::ClosedLoopWithoutQueueTime, Grade::Info);
    let short = (Rule::WindowShort, Grade::Info);
    let seconds = |s| Stop { duration_s: Some(s), ..Stop::default() };
    assert_eq!(joining(30.0, seconds(120.0)), [closed]);
    for (ramp_s, stop) in
        [(80.0, seconds(120.0)), (5.0, seconds(59.0)), (30.0, Stop { units: Some(9000), ..Stop::default() })]
    {
        let mut found = joining(ramp_s, stop);
        found.sort_unstable_by_key(|(rule, _)| *rule);
        let mut expected = [closed, short];
        expected.sort_unstable_by_key(|(rule, _)| *rule);
        assert_eq!(found, expected);
    }
}
