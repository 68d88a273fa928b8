//! Data sets as prompts of any load: what requests take, in which order, and how long their answers are.

use std::collections::HashMap;

use tokload::metrics::Class;
use tokload::mock::Faults;
use tokload::plan::{DataSet, LengthRule, Load, Plan};
use tokload::workload::Preview;

use crate::rig;

fn sample(name: &str) -> String {
    format!("{}/tests/traces/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn plan_of(name: &str) -> Plan {
    let mut plan = rig::plan_for(1);
    plan.workload.data = Some(DataSet { shuffle: false, ..DataSet::of(&sample(name)) });
    plan.levels = vec![rig::level(Load::closed(2), 8)];
    plan
}

/// First words and tokens of the answer of the first eight requests.
fn shown(plan: &Plan) -> Vec<(String, u32)> {
    let requests = Preview::of_data(plan, 0, &rig::deck(plan).unwrap(), 8).unwrap();
    let first = |text: &str| text.split(' ').take(2).collect::<Vec<_>>().join(" ");
    requests.iter().map(|request| (first(&request.prompt), request.max_tokens)).collect()
}

#[test]
fn prompts_are_taken_in_turn_and_again() {
    // 5 tokens where the file says nothing, as the plan has it.
    let rows = shown(&plan_of("vllm_custom.jsonl"));
    let tokens: Vec<u32> = rows.iter().map(|(_, tokens)| *tokens).collect();
    assert_eq!(tokens, [20, 5, 12, 20, 5, 12, 20, 5]);
    assert_eq!(rows[0], rows[3]);
    assert_ne!(rows[0].0, rows[1].0);

    let mut two = plan_of("vllm_custom.jsonl");
    two.workload.distinct = Some(2);
    assert_eq!(
        shown(&two).iter().map(|(_, tokens)| *tokens).collect::<Vec<_>>(),
        [20, 5, 20, 5, 20, 5, 20, 5]
    );

    let mut set = plan_of("vllm_custom.jsonl");
    set.workload.data.as_mut().unwrap().lengths = LengthRule::Planned;
    assert!(shown(&set).iter().all(|(_, tokens)| *tokens == 5));
}

#[test]
fn shuffled_prompts_are_each_taken_once_in_a_pass() {
    let mut plan = plan_of("azure_llm_2023.csv");
    plan.workload.data.as_mut().unwrap().shuffle = true;
    plan.levels[0].stop.units = Some(12);
    let deck = rig::deck(&plan).unwrap();
    let words: Vec<u32> = Preview::of_data(&plan, 0, &deck, 12).unwrap().iter().map(|p| p.words).collect();
    for pass in words.chunks(6) {
        let mut sorted = pass.to_vec();
        sorted.sort_unstable();
        assert_eq!(sorted, [99, 377, 515, 1213, 4036, 4036]);
    }
    let again = Preview::of_data(&plan, 0, &deck, 12).unwrap();
    assert_eq!(again.iter().map(|p| p.words).collect::<Vec<_>>(), words);
}

#[test]
fn a_prompt_of_a_length_alone_has_the_same_words_whenever_it_comes() {
    let rows = shown(&plan_of("azure_lmm_2025.csv"));
    assert_eq!(rows[0], rows[3]);
    assert_eq!(rows[1], rows[4]);
    assert_ne!(rows[0].0, rows[1].0);
}

#[test]
fn every_sample_is_a_data_set_of_its_first_turns() {
    for (name, prompts, turns) in [
        ("azure_llm_2024.csv", 5, 0),
        ("burstgpt_v1.csv", 4, 0),
        ("mooncake.jsonl", 5, 0),
        ("mooncake_extended.jsonl", 5, 0),
        ("bailian.jsonl", 3, 0),
        ("sharegpt.json", 2, 0),
        ("aiperf_single_turn.jsonl", 3, 1),
        ("aiperf_multi_turn.jsonl", 2, 2),
        ("vllm_custom.jsonl", 3, 0),
    ] {
        let plan = plan_of(name);
        let contents = rig::deck(&plan).unwrap().contents().clone();
        assert_eq!((contents.prompts, contents.turns), (prompts, turns), "{name}");
    }
    let batch = rig::deck(&plan_of("openai_batch.jsonl")).unwrap().contents().clone();
    assert!(batch.prompts > 0 && batch.other_paths > 0, "{batch:?}");
}

#[test]
fn users_get_the_answers_that_their_prompts_ask_for_from_any_number_of_shards() {
    let mock = rig::mock(Faults::default());
    let mut plan = plan_of("vllm_custom.jsonl");
    plan.target.endpoints = rig::plan_for(mock.address().port()).target.endpoints;
    plan.workload.data.as_mut().unwrap().shuffle = true;
    let mut of_one: (HashMap<u64, Option<u32>>, u64) = (HashMap::new(), 0);
    for shards in [1, 3] {
        let run = rig::run(&plan, shards, &rig::level(Load::closed(3), 30));
        assert_eq!(run.count(Class::Ok), 30);
        let asked: HashMap<u64, Option<u32>> =
            run.measured().iter().map(|record| (record.index, record.output_tokens)).collect();
        assert_eq!(asked.len(), 30);
        for tokens in [20, 5, 12] {
            assert_eq!(asked.values().filter(|asked| **asked == Some(tokens)).count(), 10, "{tokens}");
        }
        let bodies = run.result.shards.iter().fold(0_u64, |sum, shard| sum.wrapping_add(shard.bodies));
        if shards == 1 {
            of_one = (asked, bodies);
        } else {
            assert_eq!((asked, bodies), of_one);
        }
    }
}
