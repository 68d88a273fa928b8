//! Data sets as prompts of any load: what requests take, in which order, and how long their answers are.

use std::collections::HashMap;

use tokload::metrics::Class;
use tokload::mock::Faults;
use tokload::plan::{Conversation, DataSet, LengthRule, Load, Plan, Replies};
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

/// Each session's prompt tokens and answers by turn, in the order of the file.
fn sessions(plan: &Plan, units: u64) -> Vec<Vec<(u32, u32)>> {
    let run =
        rig::simulate(plan, tokload::model::Settings::fixed(5.0, 1.0), &rig::level(Load::closed(2), units));
    let mut records = run.measured();
    records.sort_by_key(|record| (record.session, record.turn));
    let mut all: Vec<Vec<(u32, u32)>> = Vec::new();
    for record in records {
        assert_eq!(record.outcome.class, Class::Ok);
        let said = (record.prompt_tokens.unwrap(), record.output_tokens.unwrap());
        match record.turn {
            0 => all.push(vec![said]),
            _ => all.last_mut().unwrap().push(said),
        }
    }
    all
}

fn conversations(name: &str) -> Plan {
    let mut plan = plan_of(name);
    plan.workload.conversation = Some(Conversation::default());
    plan
}

/// Words of ShareGPT's sample: 5 asked, 16 answered, 4 asked, 10 answered; then 4 and 1. Four tokens are asked for three
/// words of an answer.
#[test]
fn all_turns_of_sharegpt_are_sent_with_the_live_answers_or_the_recorded_ones() {
    let mut plan = conversations("sharegpt.json");
    assert_eq!(rig::deck(&plan).unwrap().contents().later, 1);
    // The server says one word a token.
    let live = sessions(&plan, 2);
    assert_eq!(live, [vec![(5, 22), (5 + 22 + 4, 14)], vec![(4, 2)]]);
    plan.workload.conversation.as_mut().unwrap().replies = Replies::Recorded;
    assert_eq!(sessions(&plan, 2), [vec![(5, 22), (5 + 16 + 4, 14)], vec![(4, 2)]]);
}

#[test]
fn pauses_of_a_file_are_kept_and_stretched() {
    let mut plan = conversations("aiperf_multi_turn.jsonl");
    for (ratio, expected_ms) in [(1.0, [800, 1200]), (0.5, [400, 600])] {
        plan.workload.conversation.as_mut().unwrap().delay_ratio = ratio;
        let run =
            rig::simulate(&plan, tokload::model::Settings::fixed(5.0, 1.0), &rig::level(Load::closed(2), 2));
        let mut turns: Vec<_> = run.measured().into_iter().filter(|record| record.session == 0).collect();
        turns.sort_by_key(|record| record.turn);
        let pauses: Vec<u64> =
            turns.windows(2).map(|pair| pair[1].plan.nanos_since(pair[0].end) / 1_000_000).collect();
        assert_eq!(pauses, expected_ms);
    }
}

#[test]
fn sessions_of_lengths_are_whole_requests_in_their_order() {
    // s1 in two records; the others stand alone. The payload is a completion's, which the chat does not know.
    let plan = conversations("mooncake_extended.jsonl");
    let contents = rig::deck(&plan).unwrap().contents().clone();
    assert_eq!((contents.prompts, contents.later), (4, 1));
    assert_eq!(sessions(&plan, 3)[0], [(600, 40), (700, 50)]);
    let plan = conversations("burstgpt_v2.csv");
    assert_eq!(sessions(&plan, 2), [vec![(300, 80), (460, 150)], vec![(40, 25)]]);
    let plan = conversations("bailian.jsonl");
    assert_eq!(sessions(&plan, 2), [vec![(40, 20), (90, 35)], vec![(16, 8)]]);
}

#[test]
fn sessions_are_taken_again_when_all_have_been() {
    let all = sessions(&conversations("sharegpt.json"), 5);
    assert_eq!(all.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 2, 1, 2]);
    assert_eq!(all[0], all[2]);
}
