//! Each dialect through both engines against the mock, which learned it from the servers' documents and captures: what
//! was made is counted, an answer cut short is no success, and an error is one wherever it stands.

use tokload::api::{Dialect, Framing, Raw};
use tokload::metrics::{Class, Flags, Record, TokenSource};
use tokload::mock::{Break, Cut, Delivery, Fault, Faults, Flaw, Mock, Role, Settings};
use tokload::model::{Batching, PrefixCache, Serving};
use tokload::plan::{Load, Plan};

use crate::rig::{self, Run};

const TOKENS: u32 = 5;
const PROMPT: u32 = 8;

fn plan_for(dialect: Dialect, port: u16) -> Plan {
    let mut plan = rig::plan_for(port);
    plan.target.dialect = dialect;
    plan.complete();
    plan
}

fn run(dialect: Dialect, change: impl FnOnce(&mut Settings)) -> Run {
    run_as(dialect, |_| {}, change)
}

fn run_as(dialect: Dialect, adjust: impl FnOnce(&mut Plan), change: impl FnOnce(&mut Settings)) -> Run {
    let mut settings = rig::quick();
    change(&mut settings);
    let mock = Mock::start(settings).unwrap();
    let mut plan = plan_for(dialect, mock.address().port());
    adjust(&mut plan);
    let run = rig::run(&plan, 1, &rig::level(Load::closed(2), 6));
    assert_eq!(run.measured().len(), 6, "{dialect:?}");
    run
}

fn with(dialect: Dialect, fault: Fault) -> Run {
    run(dialect, |settings| settings.faults = Faults::always(fault))
}

fn streaming() -> impl Iterator<Item = Dialect> {
    Dialect::ALL.into_iter().filter(|dialect| dialect.streams())
}

fn in_order(record: &Record) -> bool {
    let marks = [record.sent, record.byte, record.first, record.answer, record.last, Some(record.end)];
    marks.into_iter().flatten().collect::<Vec<_>>().is_sorted()
}

fn check_whole(dialect: Dialect, record: &Record) {
    assert_eq!(record.outcome.class, Class::Ok, "{dialect:?}: {:?}", record.outcome);
    assert_eq!(
        (record.output_tokens, record.output_source),
        (Some(TOKENS), TokenSource::Usage),
        "{dialect:?}"
    );
    assert_eq!(
        (record.prompt_tokens, record.prompt_source),
        (Some(PROMPT), TokenSource::Usage),
        "{dialect:?}"
    );
    for flag in [Flags::NO_DONE, Flags::NO_FINISH_REASON, Flags::LENGTH_OFF, Flags::HIDDEN_REASONING] {
        assert!(!record.flags.contains(flag), "{dialect:?}: {:?}", record.flags.names().collect::<Vec<_>>());
    }
}

#[test]
fn each_dialect_counts_what_the_server_made() {
    for dialect in streaming() {
        let run = run(dialect, |_| {});
        for record in run.measured() {
            check_whole(dialect, record);
            assert_eq!(record.events, TOKENS, "{dialect:?}");
            // Counts that run are told in each event, from which tokens per gap are known.
            let runs = matches!(dialect, Dialect::LlamaCpp | Dialect::Sglang);
            assert_eq!(record.tokens_after_first.get(), runs.then_some(TOKENS - 1), "{dialect:?}");
            assert!(in_order(record) && record.first > record.sent, "{dialect:?}: {record:?}");
        }
        assert!(run.records.iter().skip(2).any(|record| !record.flags.contains(Flags::FRESH_CONNECTION)));
    }
}

#[test]
fn each_dialect_counts_the_same_in_virtual_time() {
    for dialect in streaming() {
        let plan = plan_for(dialect, 1);
        let serving = tokload::model::Settings::fixed(5.0, 1.0);
        let run = rig::simulate(&plan, serving, &rig::level(Load::closed(2), 6));
        for record in run.measured() {
            check_whole(dialect, record);
            assert_eq!(record.ttft_ns().map(|ns| ns / 1000), Some(5000), "{dialect:?}");
            assert_eq!(record.tpot_ns(), Some(1e6), "{dialect:?}");
        }
    }
}

#[test]
fn answers_that_are_not_streamed_are_counted_too() {
    for dialect in Dialect::ALL {
        let run = run_as(dialect, |plan| plan.target.stream = false, |_| {});
        for record in run.measured() {
            assert_eq!(record.outcome.class, Class::Ok, "{dialect:?}");
            assert_eq!(record.prompt_tokens, Some(PROMPT), "{dialect:?}");
            let tokens = dialect.generates().then_some(TOKENS);
            assert_eq!((record.output_tokens, record.events), (tokens, 0), "{dialect:?}");
            assert!(record.flags.contains(Flags::WHOLE_BODY) && !record.flags.contains(Flags::LENGTH_OFF));
        }
    }
}

#[test]
fn an_early_opening_is_no_first_token() {
    for dialect in streaming() {
        let run = run(dialect, |settings| settings.role = Role::Early);
        for record in run.measured() {
            check_whole(dialect, record);
            let ttft = record.ttft_ns().unwrap();
            assert!(ttft >= 5_000_000, "{dialect:?}: {ttft} ns");
        }
    }
}

#[test]
fn reasoning_is_told_from_the_answer_where_the_dialect_has_it() {
    let thinking = [
        Dialect::OpenaiChat,
        Dialect::Messages,
        Dialect::Responses,
        Dialect::OllamaChat,
        Dialect::OllamaGenerate,
    ];
    for dialect in thinking {
        let slow = tokload::model::Settings::fixed(5.0, 20.0);
        let run = run(dialect, |settings| (settings.reasoning, settings.serving) = (2, slow.clone()));
        for record in run.measured() {
            check_whole(dialect, record);
            assert!(record.answer > record.first, "{dialect:?}");
        }
    }
}

#[test]
fn fragments_of_a_tool_call_are_content() {
    for dialect in [Dialect::OpenaiChat, Dialect::Messages, Dialect::Responses, Dialect::OllamaChat] {
        let run = run(dialect, |settings| settings.tool_call = true);
        for record in run.measured() {
            check_whole(dialect, record);
            // Ollama's come in one.
            let events = if dialect == Dialect::OllamaChat { 1 } else { TOKENS };
            assert_eq!((record.events, record.answer), (events, record.first), "{dialect:?}");
        }
    }
}

#[test]
fn a_stream_that_is_cut_is_no_success() {
    for dialect in streaming() {
        for (how, class) in [
            (Break::Close, Class::Truncated),
            (Break::Half, Class::Truncated),
            (Break::ErrorEvent, Class::StreamError),
            (Break::BadJson, Class::Malformed),
            (Break::Reset, Class::Reset),
        ] {
            let run = with(dialect, Fault::Cut(Cut { after_events: 2, how }));
            assert_eq!(run.count(class), 6, "{dialect:?} {how:?}: {:?}", run.measured()[0].outcome);
            assert!(run.measured().iter().all(|record| record.events == 2), "{dialect:?} {how:?}");
        }
    }
}

/// A finish reason is enough where it comes before the end; where both are one event, an answer without it is not over.
#[test]
fn what_is_left_out_is_noticed() {
    for dialect in streaming() {
        let has_both =
            matches!(dialect, Dialect::OpenaiChat | Dialect::Openai | Dialect::Messages | Dialect::Sglang);
        let expected = if has_both { Class::Ok } else { Class::Truncated };
        let run = with(dialect, Fault::Flaw(Flaw::NoDone));
        assert_eq!(run.count(expected), 6, "{dialect:?}");
        assert_eq!(run.measured()[0].flags.contains(Flags::NO_DONE), has_both, "{dialect:?}");
        assert_eq!(with(dialect, Fault::Flaw(Flaw::NoFinish)).count(Class::Truncated), 6, "{dialect:?}");
        assert_eq!(with(dialect, Fault::Flaw(Flaw::Empty)).count(Class::Empty), 6, "{dialect:?}");
        assert_eq!(with(dialect, Fault::Flaw(Flaw::WrongType)).count(Class::Malformed), 6, "{dialect:?}");
        let run = with(dialect, Fault::Flaw(Flaw::NoUsage));
        for record in run.measured() {
            let events = (Some(TOKENS), TokenSource::Events, None);
            assert_eq!(
                (record.output_tokens, record.output_source, record.prompt_tokens),
                events,
                "{dialect:?}"
            );
        }
    }
}

#[test]
fn unusual_deliveries_say_the_same() {
    for dialect in streaming() {
        for delivery in [
            Delivery::Bundle(3),
            Delivery::ByteSegments,
            Delivery::Comments,
            Delivery::Crlf,
            Delivery::Giant(100_000),
            Delivery::SplitUtf8,
        ] {
            for record in with(dialect, Fault::Delivery(delivery)).measured() {
                check_whole(dialect, record);
                assert_eq!(record.events, TOKENS, "{dialect:?} {delivery:?}");
            }
        }
    }
}

/// APIs that are known, described as if they were not: path, body, and the places of text, reason and counts.
const DESCRIBED: [(&str, &str, [&str; 4], bool); 4] = [
    (
        "/v1/chat/completions",
        r#"{"model":"{{model}}","messages":[{"role":"user","content":"{{prompt}}"}],"max_tokens":"{{max_tokens}}",
            "stream":"{{stream}}","stream_options":{"include_usage":true}}"#,
        [
            "/choices/0/delta/content",
            "/choices/0/finish_reason",
            "/usage/prompt_tokens",
            "/usage/completion_tokens",
        ],
        false,
    ),
    (
        "/generate",
        r#"{"text":" {{prompt}} ","sampling_params":{"max_new_tokens":"{{max_tokens}}"},"stream":"{{stream}}"}"#,
        [
            "/text",
            "/meta_info/finish_reason/type",
            "/meta_info/prompt_tokens",
            "/meta_info/completion_tokens",
        ],
        true,
    ),
    (
        "/completion",
        r#"{"prompt":"{{prompt}}","n_predict":"{{max_tokens}}","stream":"{{stream}}"}"#,
        ["/content", "/stop", "/tokens_evaluated", "/tokens_predicted"],
        false,
    ),
    (
        "/api/generate",
        r#"{"prompt":"{{prompt}}","options":{"num_predict":"{{max_tokens}}"},"stream":"{{stream}}"}"#,
        ["/response", "/done_reason", "/prompt_eval_count", "/eval_count"],
        false,
    ),
];

fn describe(plan: &mut Plan, (path, body, places, cumulative): (&str, &str, [&str; 4], bool)) {
    let [content, finish, prompt, output] = places.map(str::to_owned);
    plan.target.dialect = Dialect::Raw;
    plan.target.path = Some(path.to_owned());
    plan.target.raw = Some(Raw {
        body: body.to_owned(),
        content,
        cumulative,
        finish: Some(finish),
        prompt_tokens: Some(prompt),
        output_tokens: Some(output),
    });
    plan.complete();
    plan.validate().unwrap();
}

#[test]
fn an_api_that_is_described_is_read_as_one_that_is_known() {
    for described in DESCRIBED {
        let run = run_as(Dialect::Raw, |plan| describe(plan, described), |_| {});
        for record in run.measured() {
            check_whole(Dialect::Raw, record);
            assert_eq!(record.events, TOKENS, "{}", described.0);
        }
        let mut plan = plan_for(Dialect::Openai, 1);
        describe(&mut plan, described);
        let run =
            rig::simulate(&plan, tokload::model::Settings::fixed(5.0, 1.0), &rig::level(Load::closed(2), 6));
        for record in run.measured() {
            check_whole(Dialect::Raw, record);
            assert_eq!(record.tpot_ns(), Some(1e6), "{}", described.0);
        }
        for (how, class) in [(Break::Close, Class::Truncated), (Break::ErrorEvent, Class::StreamError)] {
            let fault = Faults::always(Fault::Cut(Cut { after_events: 2, how }));
            let run =
                run_as(Dialect::Raw, |plan| describe(plan, described), |settings| settings.faults = fault);
            assert_eq!(run.count(class), 6, "{} {how:?}", described.0);
        }
        let fault = Faults::always(Fault::Flaw(Flaw::NoFinish));
        let run = run_as(Dialect::Raw, |plan| describe(plan, described), |settings| settings.faults = fault);
        assert_eq!(run.count(Class::Truncated), 6, "{}", described.0);
    }
}

/// Where nothing else says that an answer is over, a body that ends in good order does, and one that is cut does not.
#[test]
fn the_end_of_the_body_is_enough_where_no_other_is_known() {
    let without_finish = |plan: &mut Plan| {
        describe(plan, DESCRIBED[2]);
        plan.target.raw.as_mut().unwrap().finish = None;
    };
    let of = |faults: Faults| run_as(Dialect::Raw, without_finish, |settings| settings.faults = faults);
    let run = of(Faults::always(Fault::Flaw(Flaw::NoFinish)));
    assert_eq!(run.count(Class::Ok), 6);
    assert!(run.measured().iter().all(|record| record.flags.contains(Flags::NO_FINISH_REASON)));
    let cut = Fault::Cut(Cut { after_events: 2, how: Break::Close });
    assert_eq!(of(Faults::always(cut)).count(Class::Truncated), 6);
}

/// Messages tell what was cached beside the rest of the prompt, others within it; Ollama does not tell.
#[test]
fn a_prompt_is_counted_whole_whatever_a_cache_had_of_it() {
    let prefix_cache = Some(PrefixCache { block_tokens: 4, ..PrefixCache::default() });
    let batching = Batching { prefix_cache, ..Batching::default() };
    for dialect in streaming() {
        let serving = tokload::model::Settings::serving(Serving::Batching(batching.clone()));
        let run =
            run_as(dialect, |plan| plan.workload.distinct = Some(1), |settings| settings.serving = serving);
        let tells = dialect.framing() == Framing::Events;
        for record in run.measured() {
            check_whole(dialect, record);
            assert_eq!(record.cached_tokens.get().is_some(), tells, "{dialect:?}");
        }
        let most = run.measured().iter().filter_map(|record| record.cached_tokens.get()).max();
        assert!(!tells || most >= Some(4), "{dialect:?}: {most:?}");
    }
}
