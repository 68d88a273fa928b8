use super::*;

fn read(text: &str) -> Plan {
    Plan::from_toml(text, 77).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> Error {
    Plan::from_toml(text, 77).expect_err(text)
}

#[test]
fn an_empty_file_is_the_default_plan_with_a_fresh_seed() {
    assert_eq!(read(""), Plan::new(77));
    assert_eq!(read("seed = 3").seed, 3);
    assert_eq!(read("seed = 0").seed, 0);
}

#[test]
fn a_partial_file_keeps_the_other_defaults() {
    let plan = read(
        r#"
        [target]
        endpoints = [{ url = "http://h:8000" }]
        [workload]
        output_tokens = 5
        [[levels]]
        load = { users = 4 }
        [[levels]]
        load = { arrivals = { process = "poisson", rate = 2.5 }, cap = 8 }
        stop = { duration_s = 60 }
        "#,
    );
    assert!(plan.target.stream && plan.workload.options.ignore_eos);
    assert_eq!(plan.workload, Workload { output_tokens: 5.into(), ..Workload::default() });
    assert_eq!(plan.levels[0], Level { load: Load::closed(4), ..Level::default() });
    assert_eq!(plan.levels[1].load.rate(), Some(2.5));
    assert_eq!(plan.levels[1].stop, Stop { duration_s: Some(60.0), ..Stop::default() });
}

#[test]
fn a_plan_round_trips() {
    let mut full = full_plan();
    full.workload.extra_body.insert("stop".into(), serde_json::json!(["x", { "y": [1, 2.5, true] }]));
    let without_slo = Plan { slo: Slo::default(), ..Plan::new(1) };
    for plan in [full, without_slo, Plan::new(Plan::SEED_MAX)] {
        let text = plan.to_toml();
        assert_eq!(Plan::from_toml(&text, 0).unwrap_or_else(|e| panic!("{e}\n{text}")), plan);
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }
}

#[test]
fn every_distribution_round_trips_and_whole_numbers_are_numbers() {
    for distribution in [
        Distribution::Lognormal { median: 600.0, sigma: 1.0, min: None, max: Some(9) },
        Distribution::Normal { mean: 600.0, stddev: 0.5, min: Some(3), max: None },
        Distribution::Uniform { min: 1, max: 3 },
    ] {
        let mut plan = full_plan();
        let lengths = Lengths::Drawn(distribution.clone());
        plan.workload.conversation = Some(Conversation {
            turns: lengths.clone(),
            delay_ms: lengths.clone(),
            later_words: Some(lengths),
            ..Conversation::default()
        });
        plan.workload.input_words = Lengths::Drawn(distribution);
        plan.workload.output_tokens = Lengths::Fixed(7);
        plan.workload.prefix = None;
        assert_eq!(Plan::from_toml(&plan.to_toml(), 0), Ok(plan));
    }
    let plan = read(
        r#"
        [workload]
        input_words = { distribution = "lognormal", median = 600, sigma = 1 }
        prefix = { words = 1500 }
        [workload.output_tokens]
        distribution = "normal"
        mean = 200
        stddev = 50
        min = 20
        "#,
    );
    let lognormal = Distribution::Lognormal { median: 600.0, sigma: 1.0, min: None, max: None };
    let normal = Distribution::Normal { mean: 200.0, stddev: 50.0, min: Some(20), max: None };
    assert_eq!(plan.workload.input_words, Lengths::Drawn(lognormal));
    assert_eq!(plan.workload.output_tokens, Lengths::Drawn(normal));
    assert_eq!(plan.workload.prefix, Some(Prefix::new(1500, 1)));
}

#[test]
fn a_slip_in_a_distribution_is_refused_with_its_line() {
    let error = refused("[workload]\ninput_words = { distribution = \"normal\", mean = 9, stdev = 1 }\n");
    assert_eq!(error.subject, "line 2, `workload.input_words.stdev`");
    assert_eq!(error.remedy, "did you mean `stddev`?");
    let error = refused("seed = 1\n[workload]\noutput_tokens = { distribution = \"zeta\" }\n");
    assert!(error.subject.starts_with("line 3, `workload.output_tokens"), "{error}");
    assert!(error.wrong.contains("zeta") && error.wrong.contains("lognormal"), "{error}");
}

fn varying(gaps: Gaps, rate: Rate, exact_count: bool) -> Arrivals {
    Arrivals::Varying(Varying { gaps, rate, exact_count })
}

fn series(repeat: bool) -> Rate {
    let pieces = vec![Piece::steady(0.0, 1.5), Piece::ramp(0.0, 50.0, 60.0, Shape::Linear)];
    Rate::Series(Series { pieces, repeat })
}

#[test]
fn a_rate_over_time_stands_where_one_rate_would() {
    let arrivals = |rate: &str| {
        let text =
            format!("[[levels]]\nload = {{ arrivals = {{ process = \"poisson\", rate = {rate} }} }}\n");
        Plan::from_toml(&text, 0).map(|plan| plan.levels[0].load.arrivals.clone())
    };
    let table = "{ pieces = [{ rate = 0, length_s = 1.5 }, { rate = 0, to_rate = 50, length_s = 60 }] }";
    assert_eq!(arrivals(table), Ok(varying(Gaps::Poisson, series(false), false)));
    // A number is what it always was, also with a flag that says what is so anyway.
    assert_eq!(arrivals("5"), Ok(Arrivals::Poisson { rate: 5.0 }));
    assert_eq!(arrivals("5, exact_count = false"), Ok(Arrivals::Poisson { rate: 5.0 }));
    let error = arrivals("{ pieces = [{ rate = 1, to_rat = 2, length_s = 3 }] }").unwrap_err();
    assert_eq!(error.subject, "line 2, `levels.load.arrivals.rate.pieces.to_rat`");
    assert_eq!(error.remedy, "did you mean `to_rate`?");
    let error = arrivals("\"fast\"").unwrap_err();
    assert!(error.wrong.contains("a number of requests per second, or a table of pieces"), "{error}");
    assert!(arrivals("{ pieces = [{ rate = 1, length_s = 3, shape = \"cubic\" }] }").is_err());
}

#[test]
fn every_process_round_trips() {
    let processes = [
        Arrivals::Burst,
        Arrivals::Closed,
        Arrivals::Paced { interval_s: 2.5 },
        Arrivals::Constant { rate: 0.1 },
        Arrivals::Gamma { rate: 3.0, burstiness: 0.25 },
        Arrivals::Poisson { rate: 1e6 },
        Arrivals::Trace { speedup: 0.5 },
        Arrivals::Joining { ramp_s: 30.0 },
        Arrivals::Bursts { size: 32, every_s: 2.5 },
        varying(Gaps::Constant, Rate::Steady(5.0), true),
        varying(Gaps::Gamma { burstiness: 2.0 }, Rate::Steady(5.0), true),
        varying(Gaps::Poisson, series(false), false),
        varying(Gaps::Gamma { burstiness: 2.0 }, series(true), true),
    ];
    for arrivals in processes {
        let mut plan = full_plan();
        plan.levels[0].load.arrivals = arrivals;
        assert_eq!(Plan::from_toml(&plan.to_toml(), 0), Ok(plan));
    }
}

#[test]
fn an_extra_body_that_toml_cannot_hold_becomes_a_string() {
    let mut plan = Plan::new(1);
    plan.workload.extra_body.insert("guided".into(), Json::Null);
    plan.workload.extra_body.insert("big".into(), serde_json::json!(u64::MAX));
    assert!(plan.to_toml().contains("extra_body = '"));
    assert_eq!(Plan::from_toml(&plan.to_toml(), 0), Ok(plan));
}

#[test]
fn an_unknown_key_is_refused_with_line_and_nearest_name() {
    let error = refused("seed = 1\n[target]\nmodel = [\"m\"]\n");
    assert_eq!(error.subject, "line 3, `target.model`");
    assert_eq!(error.remedy, "did you mean `models`?");

    let error = refused("[[levels]]\nload = { user = 4 }\n");
    assert_eq!(error.subject, "line 2, `levels.load.user`");
    assert_eq!(error.remedy, "did you mean `users`?");
}

#[test]
fn a_key_in_the_wrong_table_is_sent_to_the_right_one() {
    assert_eq!(refused("users = 4").remedy, "it belongs under [levels.load]");
    assert_eq!(refused("[slo]\nduration_s = 4").remedy, "it belongs under [levels.stop]");
}

#[test]
fn a_stranger_is_answered_with_the_known_keys() {
    assert_eq!(refused("[keep]\nqqq = 1").remedy, "known here: `chunks`, `records`");
}

#[test]
fn the_keys_of_extra_body_are_the_users_own() {
    let plan = read("[workload.extra_body]\nanything = 1\nnested = { at = [{ all = true }] }\n");
    assert_eq!(plan.workload.extra_body["anything"], 1);
    assert_eq!(read("[workload]\nextra_body = '{\"a\": null}'").workload.extra_body["a"], Json::Null);
}

#[test]
fn a_value_of_the_wrong_type_is_refused_with_line_and_key() {
    let error = refused("seed = 1\n[workload]\ninput_words = \"many\"\n");
    assert_eq!(error.subject, "line 3, `workload.input_words`");
    assert!(error.wrong.contains("string \"many\""), "{error}");

    assert_eq!(refused("seed = -1").subject, "line 1, `seed`");
    assert_eq!(refused("[target]\ndialect = \"klingon\"").subject, "line 2, `target.dialect`");
    let error = refused("[[levels]]\n[levels.load]\narrivals = { process = \"poison\", rate = 1 }\n");
    assert!(error.subject.starts_with("line 3, `levels.load"), "{error}");
    assert!(error.wrong.contains("poison"), "{error}");
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    let error = refused("seed = 1\nlevels = [\n");
    assert!(error.subject.starts_with("line "), "{error}");
    assert!(!error.to_string().contains('\n'), "{error}");
}
