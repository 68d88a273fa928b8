use std::collections::HashSet;
use std::io::Cursor;

use super::*;
use crate::plan::Filter;
use crate::workload::trace::Prompt;

fn deck(text: &'static str, data: &DataSet) -> Result<Arc<Deck>, Refusal> {
    let open: Open = Box::new(move || Ok(Box::new(Cursor::new(text))));
    Deck::look(data, "/v1/chat/completions", open).map(Arc::new)
}

#[test]
fn a_shuffle_is_a_permutation_of_any_size() {
    for n in [1, 2, 3, 7, 64, 65, 1000, 4097] {
        for key in [0, 1, u64::MAX] {
            let images: HashSet<u64> = (0..n).map(|place| shuffled(place, n, key)).collect();
            assert!(images.len() as u64 == n && images.iter().all(|image| *image < n), "{n}");
        }
    }
}

#[test]
fn shuffles_are_even_and_differ_by_key() {
    // Where place 0 goes among 10, over 10 000 keys: 1000 each, sd 30; five of those either way.
    let mut counts = [0_u32; 10];
    for key in 0..10_000 {
        counts[shuffled(0, 10, rng::mixed(key)) as usize] += 1;
    }
    assert!(counts.iter().all(|n| (850..=1150).contains(n)), "{counts:?}");
    // Fixed points of a random permutation of 1000: 1 on average.
    let fixed: usize = (0..50)
        .map(|key| (0..1000).filter(|place| shuffled(*place, 1000, rng::mixed(key)) == *place).count())
        .sum();
    assert!((15..=95).contains(&fixed), "{fixed}");
}

#[test]
fn every_prompt_is_taken_once_before_the_first_comes_again() {
    let text = "a\nb\nc\nd\ne\n";
    let data = DataSet::of("t.txt");
    let shuffled = deck(text, &data).unwrap();
    let pass = |seed, pass: u64| (0..5).map(|i| shuffled.place(seed, pass * 5 + i)).collect::<Vec<_>>();
    for seed in 0..20 {
        for n in 0..3 {
            let mut places = pass(seed, n);
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2, 3, 4]);
        }
    }
    assert!((0..20).any(|seed| pass(seed, 0) != pass(seed, 1)), "another order for each pass");
    assert!((0..20).any(|seed| pass(seed, 0) != pass(20, 0)), "another order for each seed");
    let plain = deck(text, &DataSet { shuffle: false, ..data }).unwrap();
    assert_eq!((0..7).map(|i| plain.place(3, i)).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 0, 1]);
}

#[test]
fn whole_conversations_are_sessions_whose_turns_are_read_when_they_are_wanted() {
    let text = "{\"session_id\":\"a\",\"turns\":[\"one\",{\"text\":\"two\",\"delay\":800},\"three\"]}\n{\"turns\":[\"x\"]}\n";
    let open: Open = Box::new(move || Ok(Box::new(Cursor::new(text))));
    let data = DataSet { shuffle: false, ..DataSet::of("c.jsonl") };
    let deck = Arc::new(Deck::look_for_sessions(&data, "/v1/chat/completions", open).unwrap());
    assert_eq!(deck.contents().to_string(), "multi-turn data: 2 sessions of 4 turns");
    assert_eq!((deck.turns(0), deck.turns(1), deck.turns(2)), (3, 1, 1));
    let mut hand = deck.hand();
    assert_eq!(hand.turn(0, 2).unwrap().prompt, Prompt::Text("three".into()));
    assert_eq!(hand.turn(0, 1).unwrap().after_previous, Some(std::time::Duration::from_millis(800)));
    assert_eq!(hand.entry(1).unwrap().prompt, Prompt::Text("x".into()));
    assert_eq!((hand.turn(1, 1), hand.turn(2, 0), deck.fault()), (None, None, None));
}

#[test]
fn what_is_no_prompt_of_its_own_is_left_out_and_counted() {
    let batch = "{\"custom_id\":\"a\",\"url\":\"/v1/chat/completions\",\"body\":{\"messages\":[],\"max_tokens\":5}}\n\
                 {\"custom_id\":\"b\",\"url\":\"/v1/completions\",\"body\":{\"prompt\":\"x\"}}\n";
    let found = deck(batch, &DataSet::of("b.jsonl")).unwrap().contents().clone();
    assert_eq!((found.prompts, found.other_paths, found.lengths_said), (1, 1, 1));
    let turns = "{\"session_id\":\"a\",\"turns\":[\"one\",\"two\",\"three\"]}\n";
    let found = deck(turns, &DataSet::of("c.jsonl")).unwrap().contents().clone();
    assert_eq!((found.prompts, found.turns), (1, 2));
    assert_eq!(found.to_string(), "multi-turn data: 1 prompt; left out: 2 later turns");
}

#[test]
fn answers_are_as_long_as_said_or_as_their_text_seems_or_as_planned() {
    let text = "{\"instruction\":\"i\",\"context\":\"\",\"response\":\"one two three four\"}\n";
    let recorded = deck(text, &DataSet::of("d.jsonl")).unwrap();
    let entry = recorded.hand().entry(0).unwrap();
    assert_eq!(recorded.output_tokens(&entry), Some(6), "four tokens for three words");
    assert_eq!(recorded.output_tokens(&Entry { output_tokens: Some(9), ..entry.clone() }), Some(9));
    assert_eq!(recorded.output_tokens(&Entry { answer: None, ..entry.clone() }), None);
    let planned = deck(text, &DataSet { lengths: LengthRule::Planned, ..DataSet::of("d.jsonl") }).unwrap();
    assert_eq!(planned.output_tokens(&entry), None);
}

#[test]
fn prompts_are_left_out_by_their_lengths() {
    let filter = |filter| {
        let text = "{\"prompt\":\"one two three\",\"output_tokens\":5}\n{\"prompt\":\"one\"}\n\
                    {\"prompt\":\"1 2 3 4 5 6\",\"output_tokens\":90}\n";
        deck(text, &DataSet { filter, shuffle: false, ..DataSet::of("c.jsonl") })
    };
    // 4, 2 and 8 tokens; answers of 5, nobody knows how many, and 90.
    let kept = |by: Filter| filter(by).map(|deck| deck.contents().prompts).ok();
    let none = Filter::default();
    assert_eq!(kept(none), Some(3));
    assert_eq!(kept(Filter { prompt_min: Some(3), ..none }), Some(2));
    assert_eq!(kept(Filter { prompt_max: Some(4), ..none }), Some(2));
    assert_eq!(kept(Filter { answer_min: Some(5), answer_max: Some(5), ..none }), Some(2));
    assert_eq!(kept(Filter { total_max: Some(97), ..none }), Some(2));
    assert_eq!(kept(Filter { total_max: Some(98), ..none }), Some(3));
    assert_eq!(kept(Filter { prompt_min: Some(9), ..none }), None, "nothing is left");
    let deck = filter(Filter { prompt_min: Some(3), ..none }).unwrap();
    assert_eq!(deck.contents().to_string(), "custom data: 2 prompts; left out: 1 filtered prompt");
    assert_eq!(deck.hand().entry(1).unwrap().prompt, Prompt::Text("1 2 3 4 5 6".into()));
}

#[test]
fn vllm_takes_the_first_two_turns_of_bearable_length_and_gpt_4() {
    let said = |turns: &[(&str, &str)]| {
        let turns = turns.iter().map(|(from, value)| format!(r#"{{"from":"{from}","value":"{value}"}}"#));
        format!(r#"{{"conversations":[{}]}}"#, turns.collect::<Vec<_>>().join(","))
    };
    let long = "word ".repeat(769);
    let text = [
        said(&[("gpt", "a b c"), ("human", "d e f"), ("gpt", "g h i")]),
        said(&[("human", "a b"), ("gpt", "c d e f")]),
        said(&[("human", "a b c"), ("gpt", "d")]),
        said(&[("human", &long), ("gpt", "d e f g")]),
        said(&[("human", "alone and long enough")]),
    ];
    let text: &'static str = Box::leak(text.join("\n").into_boxed_str());
    let data = DataSet { compat: Some(Compat::Vllm), shuffle: false, ..DataSet::of("s.jsonl") };
    let vllm = deck(text, &data).unwrap();
    let found = vllm.contents();
    // Of three words are made four tokens, of two three, of 769 more than 1024.
    assert_eq!((found.prompts, found.filtered, found.counts.unanswered), (1, 3, 1));
    assert_eq!(vllm.hand().entry(0).unwrap().prompt, Prompt::Text("a b c".into()));
    let set = deck(text, &DataSet { lengths: LengthRule::Planned, ..data.clone() }).unwrap();
    assert_eq!(set.contents().prompts, 2, "a short answer does not matter where its length is set");
    let ours = deck(text, &DataSet { compat: None, ..data.clone() }).unwrap();
    assert_eq!(ours.contents().prompts, 4);

    let burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                 1,ChatGPT,10,5,15,a\n2,GPT-4,11,5,16,a\n3,GPT-4,12,0,12,a\n";
    let found = deck(burst, &data).unwrap().contents().clone();
    assert_eq!((found.prompts, found.filtered, found.failed), (1, 1, 1));
}

#[test]
fn a_csv_column_is_named_and_nothing_to_send_is_refused() {
    let column = |name: Option<&str>| {
        let data = DataSet { column: name.map(str::to_owned), ..DataSet::of("q.csv") };
        deck("id,question,answer\n1,why?,so\n2,\"who, me?\",you\n", &data)
    };
    let found = column(Some("question")).unwrap();
    assert_eq!(found.hand().entry(1).unwrap().prompt, Prompt::Text("who, me?".into()));
    assert!(column(None).is_err());
    assert!(matches!(
        deck("\n", &DataSet { format: Some("text".into()), ..DataSet::of("t") }),
        Err(Refusal::Nothing)
    ));
}

#[test]
fn conversations_are_bounded_by_their_turns() {
    let text = "{\"session_id\":\"a\",\"turns\":[\"1\",\"2\",\"3\"]}\n{\"turns\":[\"x\"]}\n{\"turns\":[\"y\",\"z\"]}\n";
    let of = |turns_min, turns_max| {
        let open: Open = Box::new(move || Ok(Box::new(Cursor::new(text))));
        let filter = Filter { turns_min, turns_max, ..Filter::default() };
        let data = DataSet { shuffle: false, filter, ..DataSet::of("c.jsonl") };
        Deck::look_for_sessions(&data, "/v1/chat/completions", open).map(Arc::new)
    };
    let said = |min, max| of(min, max).unwrap().contents().to_string();
    assert_eq!(said(None, Some(2)), "multi-turn data: 3 sessions of 5 turns; left out: 1 later turn");
    assert_eq!(said(Some(2), None), "multi-turn data: 2 sessions of 5 turns; left out: 1 filtered prompt");
    let deck = of(Some(2), Some(2)).unwrap();
    assert_eq!((deck.turns(0), deck.turns(1), deck.contents().prompts), (2, 2, 2));
    let mut hand = deck.hand();
    assert_eq!(hand.turn(1, 1).unwrap().prompt, Prompt::Text("z".into()));
    assert_eq!((hand.turn(0, 2), hand.turn(2, 0), deck.fault()), (None, None, None));
    assert!(matches!(of(Some(4), None), Err(Refusal::Nothing)));
}
