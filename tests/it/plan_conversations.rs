//! Conversations by the options of every tool.

use tokload::cli::args::{Asked, Command, parse};
use tokload::cli::plan_from_args::{Surroundings, order};
use tokload::plan::{Conversation, Distribution, Error, Lengths, Plan, Replies, Timing, TurnShares};

fn ordered(line: &str) -> Result<Plan, Error> {
    let Asked::Command { command: Command::Run(args), tool, .. } =
        parse(line.split_whitespace().map(Into::into))?
    else {
        panic!("not a run: {line}");
    };
    order(
        &args,
        &Surroundings {
            tool,
            fresh_seed: 1,
            config: None,
            env: &|_| None,
            read: &|_| Err(std::io::ErrorKind::NotFound.into()),
        },
    )
    .map(|o| o.plan)
}

#[track_caller]
fn talk(options: &str) -> Option<Conversation> {
    let line = format!("run --url h:1 {options}");
    ordered(&line).unwrap_or_else(|error| panic!("{options}: {error}")).workload.conversation
}

#[track_caller]
fn refused(options: &str) -> Error {
    ordered(&format!("run --url h:1 {options}")).expect_err(options)
}

fn normal(mean: f64, stddev: f64, min: Option<u32>) -> Lengths {
    Lengths::Drawn(Distribution::Normal { mean, stddev, min, max: None })
}

#[test]
fn vllms_options_mean_what_they_do_there() {
    assert_eq!(talk(""), None);
    assert_eq!(talk("--multi-turn"), Some(Conversation::default()));
    let full =
        talk("--multi-turn --multi-turn-num-turns 5 --multi-turn-delay-ms 250 --per-turn-input-len 64");
    let expected = Conversation {
        turns: 5.into(),
        delay_ms: 250.into(),
        later_words: Some(64.into()),
        ..Conversation::default()
    };
    assert_eq!(full, Some(expected));
    assert_eq!(talk("--multi-turn --per-turn-input-len 0").unwrap().later_words, None, "as the first turn");
    let plan = ordered(
        "bench serve --backend openai-chat --multi-turn --multi-turn-concurrency 10 --num-prompts 50",
    )
    .unwrap();
    assert_eq!((plan.levels[0].load.users, plan.levels[0].stop.units), (Some(10), Some(50)));
    assert_eq!(plan.workload.conversation.unwrap().turns, 3.into());
}

#[test]
fn aiperfs_options_mean_what_they_do_there() {
    let plan = ordered(
        "profile --url h:1 --endpoint-type chat --conversation-num 20 --conversation-turn-mean 5 \
         --conversation-turn-stddev 2 --conversation-turn-delay-mean 2000 --conversation-turn-delay-stddev 500 \
         --conversation-turn-delay-ratio 0.5 --concurrency 4 --session-header X-Correlation-ID",
    )
    .unwrap();
    let talk = plan.workload.conversation.unwrap();
    assert_eq!(talk.turns, normal(5.0, 2.0, None));
    assert_eq!(talk.delay_ms, normal(2000.0, 500.0, Some(0)));
    assert_eq!(talk.delay_ratio, 0.5);
    assert_eq!(plan.levels[0].stop.units, Some(20));
    assert_eq!(plan.workload.session_header.as_deref(), Some("X-Correlation-ID"));
    // Sessions and requests are limits of their own, of which the first that is reached counts.
    let units = |more: &str| {
        let line = format!("profile --url h:1 --concurrency 4 --conversation-num 3 {more}");
        ordered(&line).map(|plan| plan.levels[0].stop.units)
    };
    assert_eq!(units(""), Ok(Some(3)));
    assert_eq!(units("--request-count 6"), Ok(Some(3)));
    assert_eq!(units("--request-count 2"), Ok(Some(2)));
    assert_eq!(units("--conversation-turn-mean 2 --request-count 6"), Ok(Some(3)));
    for more in [
        "--conversation-turn-mean 2 --request-count 5",
        "--session-turns-mean 2 --session-turns-stddev 1 --request-count 9",
    ] {
        let error = units(more).unwrap_err();
        assert!(error.wrong.contains("may be over before 3 sessions of up to"), "{error}");
    }
    // Its defaults, written out.
    let plain = "profile --url h:1 --session-turns-mean 1 --session-turns-stddev 0 --session-turn-delay-mean 0 \
                 --session-turn-delay-stddev 0 --session-delay-ratio 1.0";
    assert_eq!(ordered(plain).unwrap().workload.conversation, None);
}

#[test]
fn distributions_stand_where_numbers_do() {
    let found =
        talk("--multi-turn-num-turns uniform:min=2,max=8 --multi-turn-delay-ms lognormal:median=800,sigma=1")
            .unwrap();
    assert_eq!(found.turns, Lengths::Drawn(Distribution::Uniform { min: 2, max: 8 }));
    assert!(matches!(found.delay_ms, Lengths::Drawn(Distribution::Lognormal { .. })));
    assert_eq!(talk("--multi-turn --dataset-path x --replies recorded").unwrap().replies, Replies::Recorded);
    assert_eq!(
        refused("--multi-turn-num-turns uniform:min=2,max=8 --session-turns-stddev 1").subject,
        "--session-turns-stddev"
    );
}

#[test]
fn a_file_of_conversations_by_its_name_is_sent_as_such() {
    assert!(talk("--dataset-path x.jsonl --custom-dataset-type multi_turn").is_some());
    assert!(talk("--dataset-path x.jsonl --dataset-name multi-turn").is_some());
    assert!(talk("--dataset-path x.jsonl --dataset-name sharegpt").is_none());
    assert!(talk("--dataset-path x.jsonl --dataset-name sharegpt --multi-turn").is_some());
}

#[test]
fn what_means_nothing_is_refused_by_its_name() {
    for (options, subject) in [
        ("--multi-turn-delay-ms 100", "--multi-turn-delay-ms"),
        ("--session-delay-ratio 2", "--session-delay-ratio"),
        ("--per-turn-input-len 9", "--per-turn-input-len"),
        ("--replies live", "--replies"),
        ("--multi-turn --replies maybe", "--replies"),
        ("--multi-turn-num-turns 0", "--multi-turn-num-turns"),
        ("--multi-turn-num-turns few", "--multi-turn-num-turns"),
        ("--multi-turn --multi-turn-delay-ms 0.5", "--multi-turn-delay-ms"),
        ("--multi-turn --session-delay-ratio -1", "--session-delay-ratio"),
        ("--multi-turn --session-turns-stddev -1", "--session-turns-stddev"),
        ("--multi-turn -c 2 --pace 3", "--pace"),
        ("--multi-turn --backend openai-embeddings", "--multi-turn"),
        ("--session-header Host", "--session-header"),
        ("--session-header a:b", "--session-header"),
        ("--multi-turn-prefix-global-ratio 0.2", "--multi-turn-prefix-global-ratio"),
    ] {
        let error = refused(options);
        assert_eq!(error.subject, subject, "{options}: {error}");
        assert!(error.remedy.len() > 5, "{options}: {error}");
    }
}

#[test]
fn a_conversation_is_text_since_answers_come_as_text() {
    let error = refused("--multi-turn --tokenize-prompt --backend openai");
    assert!(error.subject.contains("--tokenize-prompt") && error.wrong.contains("single prompts"), "{error}");
}

#[test]
fn a_range_of_turns_has_the_ends_that_are_not_given_from_the_number() {
    let turns = |options: &str| talk(&format!("--multi-turn {options}")).unwrap().turns;
    let between = |min, max| Lengths::Drawn(Distribution::Uniform { min, max });
    assert_eq!(turns("--multi-turn-min-turns 2 --multi-turn-max-turns 8"), between(2, 8));
    assert_eq!(turns("--multi-turn-max-turns 8"), between(3, 8), "3 is the usual number");
    assert_eq!(turns("--multi-turn-num-turns 6 --multi-turn-min-turns 2"), between(2, 6));
    assert_eq!(turns("--multi-turn-min-turns 0 --multi-turn-max-turns 0"), 3.into());
    assert_eq!(turns("--multi-turn-min-turns 5 --multi-turn-max-turns 5"), 5.into());
    assert_eq!(
        refused("--multi-turn --multi-turn-min-turns 9 --multi-turn-max-turns 8").subject,
        "--multi-turn-min-turns"
    );
    assert_eq!(
        refused("--multi-turn --dataset-path x --multi-turn-min-turns 9 --multi-turn-max-turns 8").subject,
        "--multi-turn-min-turns"
    );
    let drawn = "--multi-turn-num-turns uniform:min=1,max=4 --multi-turn-max-turns 8";
    assert_eq!(refused(drawn).subject, "--multi-turn-max-turns");
}

#[test]
fn what_turns_share_and_sessions_have_of_their_own_is_the_plans() {
    let shares = |options: &str| talk(&format!("--multi-turn {options}")).unwrap().shares;
    let given = "--multi-turn-prefix-global-ratio 0.15 --multi-turn-prefix-conversation-ratio 0.75";
    assert_eq!(shares(given), Some(TurnShares { all: 0.15, session: 0.75 }));
    assert_eq!(shares("--multi-turn-prefix-global-ratio 0.0"), None);
    assert_eq!(talk("--multi-turn-prefix-global-ratio 0.0"), None);
    let option = "--multi-turn-prefix-global-ratio";
    assert_eq!(
        refused(&format!("--multi-turn {option} 0.5 --multi-turn-prefix-conversation-ratio 0.5")).subject,
        option
    );
    assert_eq!(refused(&format!("{option} 0.5")).subject, option, "there are no turns");
    assert_eq!(refused(&format!("--multi-turn {option} 0.5 --dataset-path x")).subject, option);
    let words = |options: &str| ordered(&format!("run --url h:1 {options}")).unwrap().workload.context_words;
    assert_eq!(words("--user-context-prompt-length 900"), Some(900));
    assert_eq!(words("--user-context-prompt-length 0"), None);
    let option = "--user-context-prompt-length";
    assert_eq!(refused(&format!("{option} 9 --random-prefix-len 5")).subject, option);
    assert_eq!(refused(&format!("{option} 9 --dataset-path x")).subject, option);
}

#[test]
fn recorded_sessions_have_a_timing_and_pauses_an_end() {
    let timing = |options: &str| ordered(&format!("run --url h:1 {options}")).unwrap().workload.timing;
    assert_eq!(timing("--dataset-path x --multi-turn"), None);
    assert_eq!(timing("--dataset-path x --multi-turn --timing-strategy original"), Some(Timing::Original));
    assert_eq!(timing("--trace x --use-think-time-only"), Some(Timing::ThinkOnly));
    assert_eq!(refused("--timing-strategy original").subject, "--timing-strategy");
    assert_eq!(refused("--trace x --timing-strategy slow").subject, "--timing-strategy");
    let both = "--trace x --timing-strategy original --use-think-time-only";
    assert_eq!(refused(both).subject, "--use-think-time-only");
    let cap = talk("--dataset-path x --dataset-name weka --inter-turn-delay-cap-seconds 60").unwrap();
    assert_eq!(cap.delay_max_s, Some(60.0));
    let option = "--inter-turn-delay-cap-seconds";
    assert_eq!(refused(&format!("{option} 60")).subject, option, "there are no turns");
    let original = format!("--dataset-path x --multi-turn --timing-strategy original {option} 60");
    assert_eq!(refused(&original).subject, option);
    let none = talk("--dataset-path x --multi-turn --ignore-trace-delays").unwrap();
    assert_eq!(none.delay_ratio, 0.0);
    assert_eq!(
        refused("--dataset-path x --multi-turn --ignore-trace-delays --session-delay-ratio 2").subject,
        "--ignore-trace-delays"
    );
}
