//! Each sample gives the offsets and lengths that its format means.

use std::collections::HashSet;
use std::time::Duration;

use super::super::*;
use super::{read, replay, said};

/// Offset in microseconds, tokens of the prompt, tokens of the answer.
type Row = (Option<u64>, Option<u32>, Option<u32>);

macro_rules! sample {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../../tests/traces/", $name)).as_slice())
    };
}

fn planned((file, text): (&str, &[u8])) -> Vec<Planned> {
    replay(file, text, &Options::default()).unwrap()
}

fn entries((file, text): (&str, &[u8])) -> Vec<Entry> {
    read(file, text, &Options::default()).unwrap()
}

fn rows(sample: (&str, &[u8])) -> Vec<Row> {
    let tokens = |planned: &Planned| {
        let offset_us = planned.offset_ns.map(|ns| {
            assert_eq!(ns % 100, 0, "no format here is finer");
            ns / 1000
        });
        (offset_us, planned.entry.prompt_tokens(), planned.entry.output_tokens)
    };
    planned(sample).iter().map(tokens).collect()
}

fn timed(rows: &[(u64, u32, u32)]) -> Vec<Row> {
    rows.iter().map(|(offset_us, prompt, output)| (Some(*offset_us), Some(*prompt), Some(*output))).collect()
}

fn formats() -> [((&'static str, &'static [u8]), Format); 13] {
    [
        (sample!("azure_llm_2023.csv"), Format::AzureLlm),
        (sample!("azure_llm_2024.csv"), Format::AzureLlm),
        (sample!("azure_lmm_2025.csv"), Format::AzureLmm),
        (sample!("burstgpt_v1.csv"), Format::BurstGpt),
        (sample!("burstgpt_v2.csv"), Format::BurstGpt),
        (sample!("mooncake.jsonl"), Format::Mooncake),
        (sample!("mooncake_extended.jsonl"), Format::Mooncake),
        (sample!("bailian.jsonl"), Format::Bailian),
        (sample!("sharegpt.json"), Format::ShareGpt),
        (sample!("aiperf_single_turn.jsonl"), Format::AiperfSingleTurn),
        (sample!("aiperf_multi_turn.jsonl"), Format::AiperfMultiTurn),
        (sample!("vllm_custom.jsonl"), Format::VllmCustom),
        (sample!("openai_batch.jsonl"), Format::OpenAiBatch),
    ]
}

#[test]
fn each_sample_is_told_by_its_beginning_even_under_another_name() {
    for ((file, text), format) in formats() {
        for name in [file, "prompts", "a.txt", "a.csv", "a.json"] {
            assert_eq!(Format::detect(name, text), Some(format), "{file} as {name}");
        }
    }
}

#[test]
fn azure_2023_has_seven_digits_and_equal_times_keep_the_order_of_the_file() {
    let sample = sample!("azure_llm_2023.csv");
    let expected = [
        (0, 377, 45),
        (250_610, 1213, 10),
        (319_410, 99, 129),
        (1_726_533, 4036, 13),
        (1_726_533, 4036, 16),
        (3_319_409, 515, 65),
    ];
    assert_eq!(rows(sample), timed(&expected));
    assert_eq!(planned(sample)[5].offset_ns, Some(3_319_409_900), "not a digit is lost");
}

#[test]
fn azure_2024_has_zones_and_a_time_without_fraction() {
    let expected =
        [(0, 620, 31), (248_800, 1480, 210), (998_800, 77, 5), (1_731_904, 2900, 88), (3_099_300, 45, 400)];
    assert_eq!(rows(sample!("azure_llm_2024.csv")), timed(&expected));
}

#[test]
fn azure_2025_has_images() {
    let sample = sample!("azure_lmm_2025.csv");
    assert_eq!(rows(sample), timed(&[(0, 350, 60), (800_000, 1800, 45), (2_300_000, 900, 120)]));
    assert_eq!(entries(sample).iter().map(|entry| entry.images).collect::<Vec<_>>(), [0, 2, 1]);
}

#[test]
fn burstgpt_marks_failed_calls_and_dropping_them_moves_no_other() {
    for (sample, all, failed) in [
        (
            sample!("burstgpt_v1.csv"),
            &[
                (0, 410, 22),
                (0, 1500, 310),
                (1_000_000, 64, 0),
                (13_000_000, 220, 95),
                (13_000_000, 900, 140),
            ][..],
            2,
        ),
        (
            sample!("burstgpt_v2.csv"),
            &[(0, 300, 80), (12_500_000, 40, 25), (31_000_000, 460, 150), (31_000_000, 1200, 0)],
            3,
        ),
    ] {
        assert_eq!(rows(sample), timed(all));
        let mut kept = Selection::default().of(planned(sample).into_iter().map(Ok));
        let offsets: Vec<_> =
            kept.by_ref().map(|planned| planned.unwrap().offset_ns.unwrap() / 1000).collect();
        let expected: Vec<_> =
            all.iter().enumerate().filter(|(row, _)| *row != failed).map(|(_, row)| row.0).collect();
        assert_eq!(offsets, expected);
        assert_eq!(kept.dropped(), Dropped { failed: 1, ..Dropped::default() });
        assert!(entries(sample)[failed].failed);
    }
}

#[test]
fn burstgpt_knows_models_and_in_its_second_version_sessions() {
    let models: Vec<_> = entries(sample!("burstgpt_v1.csv")).into_iter().map(|e| e.model.unwrap()).collect();
    assert_eq!(models, ["ChatGPT", "GPT-4", "ChatGPT", "GPT-4", "ChatGPT"].map(Box::<str>::from));
    let second = entries(sample!("burstgpt_v2.csv"));
    assert_eq!(second[0].session, second[2].session);
    assert_ne!(second[0].session, second[1].session);
    assert!(second[0].session.is_some());
    assert_eq!(second[3].session, None);
}

#[test]
fn mooncake_has_blocks_of_512_tokens() {
    let sample = sample!("mooncake.jsonl");
    let expected =
        [(0, 1300, 60), (0, 700, 12), (250_000, 1536, 200), (3_000_000, 90, 1), (3_000_000, 1100, 33)];
    assert_eq!(rows(sample), timed(&expected));
    for entry in entries(sample) {
        let Prompt::Tokens { count, blocks: Some(blocks) } = &entry.prompt else { panic!("{entry:?}") };
        assert_eq!((blocks.block_tokens, blocks.scope), (512, 0));
        assert_eq!(blocks.ids.len(), count.div_ceil(512) as usize);
    }
}

#[test]
fn equal_ids_give_the_hits_of_a_prefix_cache() {
    let mut cached = HashSet::new();
    let (mut hits, mut hit_tokens, mut tokens) = (Vec::new(), 0, 0);
    for (index, entry) in (0..).zip(entries(sample!("mooncake.jsonl"))) {
        let Prompt::Tokens { count, blocks } = &entry.prompt else { panic!("{entry:?}") };
        let mut text = String::new();
        blocks::write_prompt(&mut text, (7, index), (*count, blocks.as_ref()), None);
        let words: Vec<_> = text.split(' ').map(str::to_owned).collect();
        assert_eq!(words.len(), *count as usize, "one word is one token");
        // A block is known by everything up to its end; one that is not whole is not kept.
        let prefixes: Vec<_> = (1..=words.len() / 512).map(|block| words[..block * 512].to_vec()).collect();
        let hit = prefixes.iter().take_while(|prefix| cached.contains(*prefix)).count();
        hits.push(hit);
        hit_tokens += hit * 512;
        tokens += words.len();
        cached.extend(prefixes);
    }
    assert_eq!(hits, [0, 1, 2, 0, 2]);
    assert_eq!((hit_tokens, tokens), (2560, 4726));
}

#[test]
fn extended_mooncake_has_other_names_waits_and_ready_prompts() {
    let planned = planned(sample!("mooncake_extended.jsonl"));
    let ms = |ms: u64| Some(ms * 1_000_000);
    assert_eq!(
        planned.iter().map(|planned| planned.offset_ns).collect::<Vec<_>>(),
        [ms(0), None, ms(400), ms(800), ms(1200)]
    );
    let entries: Vec<_> = planned.into_iter().map(|planned| planned.entry).collect();
    assert_eq!(entries[1].after_previous, Some(Duration::from_millis(1500)));
    assert_eq!(entries[0].session, Some(Session::Named("s1".into())));
    assert_eq!(entries[0].session, entries[1].session);
    let prompts: Vec<_> = entries.iter().map(|entry| said(&entry.prompt)).collect();
    assert_eq!(prompts[0], ("tokens", "600".into()));
    assert_eq!(prompts[1], ("tokens", "700".into()));
    assert_eq!(prompts[2], ("text", "Name three prime numbers.".into()));
    assert_eq!(
        prompts[3],
        ("messages", r#"[{"role": "user", "content": "Explain caching in one line."}]"#.into())
    );
    assert_eq!(
        prompts[4],
        (
            "body",
            r#"- {"model": "any", "prompt": "Count to five.", "max_tokens": 16, "stream": true}"#.into()
        )
    );
    let outputs: Vec<_> = entries.iter().map(|entry| entry.output_tokens).collect();
    assert_eq!(outputs, [Some(40), Some(50), Some(24), Some(32), Some(16)]);
}

#[test]
fn bailian_is_sorted_and_links_its_turns() {
    let sample = sample!("bailian.jsonl");
    assert_eq!(rows(sample), timed(&[(0, 40, 20), (150_000, 16, 8), (14_300_000, 90, 35)]));
    let entries = entries(sample);
    let linked = |id, parent| Some(Session::Linked { id, parent });
    assert_eq!(
        entries.iter().map(|entry| entry.session.clone()).collect::<Vec<_>>(),
        [linked(1, None), linked(2, Some(1)), linked(3, None)]
    );
    assert_eq!(entries.iter().map(|entry| entry.turn).collect::<Vec<_>>(), [Some(0), Some(1), Some(0)]);
    let Prompt::Tokens { blocks: Some(blocks), .. } = &entries[1].prompt else { panic!() };
    assert_eq!((blocks.block_tokens, blocks.ids.len()), (16, 6));
}

#[test]
fn sharegpt_gives_the_first_question_that_has_an_answer() {
    let (file, text) = sample!("sharegpt.json");
    let mut input = text;
    let mut reader = Reader::open(file, &mut input, Options::default()).unwrap();
    let pairs: Vec<_> = reader.by_ref().map(|entry| pair(&entry.unwrap())).collect();
    assert_eq!(
        pairs,
        [
            (
                "What is a load test?",
                "A run that sends many requests to a service to learn how it behaves under pressure."
            ),
            ("Give me a colour.", "Green.")
        ]
        .map(|(question, answer)| (question.to_owned(), answer.to_owned()))
    );
    assert_eq!(reader.counts().unanswered, 2);
    assert_eq!(reader.counts().records, 4);
}

#[test]
fn sharegpt_gives_whole_conversations_or_what_vllm_takes() {
    let (file, text) = sample!("sharegpt.json");
    let all = read(file, text, &Options { turns: Turns::All, ..Options::default() }).unwrap();
    let places: Vec<_> = all.iter().map(|entry| (entry.session.clone(), entry.turn)).collect();
    let named = |name: &str| Some(Session::Named(name.into()));
    assert_eq!(places, [(named("a1_0"), Some(0)), (named("a1_0"), Some(1)), (named("a3_0"), Some(0))]);
    assert_eq!(pair(&all[1]).0, "And a soak test?");
    let vllm = read(file, text, &Options { turns: Turns::Vllm, ..Options::default() }).unwrap();
    let pairs: Vec<_> = vllm.iter().map(pair).collect();
    assert_eq!(pairs.len(), 3);
    assert_eq!(pairs[1].0, "This conversation starts with an answer.");
    assert_eq!(pairs[2], ("Answer shortly.".to_owned(), "Give me a colour.".to_owned()));
    assert_eq!(vllm.iter().map(|entry| entry.line).collect::<Vec<_>>(), [2, 23, 45]);
}

fn pair(entry: &Entry) -> (String, String) {
    (said(&entry.prompt).1, entry.answer.as_deref().unwrap().to_owned())
}

#[test]
fn aiperf_single_turns_have_times_or_waits() {
    let entries = entries(sample!("aiperf_single_turn.jsonl"));
    let prompts: Vec<_> = entries.iter().map(|entry| said(&entry.prompt)).collect();
    assert_eq!(
        prompts,
        [
            ("text", "Write one sentence about rivers.".to_owned()),
            ("text", "Write one sentence about hills.".to_owned()),
            ("parts", "First part.|Second part.".to_owned()),
            ("text", "Third request.".to_owned()),
        ]
    );
    assert_eq!(
        entries.iter().map(|entry| entry.at).collect::<Vec<_>>(),
        [None, Some(120_000_000), None, None]
    );
    assert_eq!(entries[2].after_previous, Some(Duration::from_millis(50)));
    assert_eq!(entries[2].session, Some(Session::Named("u1".into())));
    assert_eq!(entries[3].extra.as_deref(), Some(r#"{"temperature": 0.0}"#));
    assert_eq!(entries[0].output_tokens, Some(24));
}

#[test]
fn aiperf_multi_turns_wait_for_the_answer_before() {
    let planned = planned(sample!("aiperf_multi_turn.jsonl"));
    let row = |planned: &Planned| {
        let Some(Session::Named(session)) = &planned.entry.session else { panic!("{planned:?}") };
        let wait_ms = planned.entry.after_previous.map(|wait| wait.as_millis());
        (
            session.to_string(),
            planned.entry.turn.unwrap(),
            wait_ms,
            planned.entry.at,
            planned.entry.output_tokens,
        )
    };
    assert_eq!(
        planned.iter().map(row).collect::<Vec<_>>(),
        [
            ("c1".to_owned(), 0, None, None, None),
            ("c1".to_owned(), 1, Some(800), None, None),
            ("c1".to_owned(), 2, Some(1200), None, Some(8)),
            ("c2".to_owned(), 0, None, Some(300_000_000), None),
        ]
    );
}

#[test]
fn vllm_custom_may_say_how_long_the_answer_is() {
    let entries = entries(sample!("vllm_custom.jsonl"));
    assert_eq!(
        entries.iter().map(|entry| entry.output_tokens).collect::<Vec<_>>(),
        [Some(20), None, Some(12)]
    );
    assert_eq!(said(&entries[1].prompt).1, "Translate 'good morning' into Latin.");
}

#[test]
fn a_batch_file_has_bodies_for_two_endpoints() {
    let entries = entries(sample!("openai_batch.jsonl"));
    let bodies: Vec<_> = entries.iter().map(|entry| said(&entry.prompt).1).collect();
    assert_eq!(
        bodies,
        [
            r#"/v1/chat/completions {"model": "any", "messages": [{"role": "user", "content": "Say hi."}], "max_tokens": 8}"#,
            r#"/v1/completions {"model": "any", "prompt": "Once upon a time", "max_tokens": 16}"#,
        ]
    );
    assert_eq!(entries.iter().map(|entry| entry.output_tokens).collect::<Vec<_>>(), [Some(8), Some(16)]);
    assert_eq!(entries[0].model.as_deref(), Some("any"));
}

#[test]
fn agent_sessions_have_clocks_and_blocks_of_their_own() {
    // No public sample is small enough; the fields are those of the published files.
    let text = br#"{"id": "t1", "models": ["big"], "block_size": 32, "hash_id_scope": "local", "requests": [
        {"t": 0.0, "type": "n", "model": "big", "in": 40, "out": 5, "hash_ids": [1, 2]},
        {"t": 2, "type": "subagent", "agent_id": "a1", "requests": [
            {"t": 0.5, "type": "s", "model": "small", "in": 10, "out": 1, "hash_ids": [3]},
            {"t": 1.5, "type": "n", "model": "small", "in": 12, "out": 2, "think_time": 0.25}]},
        {"t": 3.25, "type": "s", "model": "big", "in": 70, "out": 6, "hash_ids": [1, 2, 4]}], "totals": {}}
        {"id": "t2", "requests": [{"t": 7, "type": "subagent", "requests": [{"t": 7.5, "in": 1, "out": 1}]},
        {"t": 8, "in": 9, "out": 3, "hash_ids": [1]}]}"#;
    let planned = planned(("agents.jsonl", text));
    let row = |planned: &Planned| {
        let Some(Session::Named(session)) = &planned.entry.session else { panic!("{planned:?}") };
        (session.to_string(), planned.offset_ns.unwrap() / 1_000_000, planned.entry.turn.unwrap())
    };
    let rows: Vec<_> = planned.iter().map(row).collect();
    let sub = rows[4].0.clone();
    assert!(sub.starts_with("t2/at-byte-"), "{sub}");
    assert_eq!(
        rows,
        [
            ("t1".to_owned(), 0, 0),
            ("t1/a1".to_owned(), 2500, 0),
            ("t1/a1".to_owned(), 3500, 1),
            ("t1".to_owned(), 3250, 1),
            (sub, 7500, 0),
            ("t2".to_owned(), 8000, 0),
        ]
    );
    let blocks = |row: usize| match &planned[row].entry.prompt {
        Prompt::Tokens { blocks, .. } => blocks.as_ref().map(|b| (b.ids.clone(), b.block_tokens, b.scope)),
        other => panic!("{other:?}"),
    };
    assert_eq!(blocks(0), Some((vec![1, 2], 32, 1)));
    assert_eq!(blocks(1), Some((vec![3], 32, 1)));
    assert_eq!(blocks(2), None);
    assert_eq!(blocks(5), Some((vec![1], 64, 2)));
    assert_eq!(planned[2].entry.after_previous, Some(Duration::from_millis(250)));
    assert_eq!(planned[1].entry.model.as_deref(), Some("small"));
}

#[test]
fn collections_of_no_tool_are_read() {
    let texts = |file: &str, text: &str, options: &Options| -> Vec<_> {
        read(file, text.as_bytes(), options).unwrap().iter().map(|entry| said(&entry.prompt).1).collect()
    };
    let plain = Options::default();
    assert_eq!(texts("a.txt", "one line\r\n\n another\n", &plain), ["one line", " another"]);
    assert_eq!(texts("a.csv", "prompt\n\"a, \"\"b\"\"\nc\"\nd\n", &plain), ["a, \"b\"\nc", "d"]);
    let column = Options { column: Some("Question".into()), ..Options::default() };
    assert_eq!(texts("a.csv", "id,question,text\n1,why?,x\n", &column), ["why?"]);
    let dolly = concat!(
        r#"{"instruction": "Sum up.", "context": "A\nB", "response": "C", "category": "x"}"#,
        "\n",
        r#"{"instruction": "Go.", "context": "", "response": "D"}"#
    );
    assert_eq!(texts("dolly.jsonl", dolly, &plain), ["Sum up.\n\nA\nB", "Go."]);
    let mixed = "{\"messages\": [1]}\n{\"text\": \"t\"}\n{\"prompt\": \"\\u00e9\"}";
    assert_eq!(texts("a.jsonl", mixed, &plain), ["[1]", "t", "é"]);
    // Lines and an array of the same objects are the same.
    assert_eq!(texts("a.json", "[{\"prompt\": \"a\"},\n {\"prompt\": \"b\"}\n]\n", &plain), ["a", "b"]);
}
