use std::collections::HashSet;

use super::*;
use crate::plan::{Distribution, Workload};

fn item(index: u64) -> Item {
    Item { seed: 7, phase: Phase::Measured, index }
}

fn warm_up(index: u64) -> Item {
    Item { phase: Phase::Warmup, ..item(index) }
}

fn prompt(content: &Content, item: Item) -> String {
    let mut out = String::new();
    content.write_prompt(&mut out, item);
    out
}

fn content(change: impl FnOnce(&mut Workload)) -> Content {
    let mut plan = Plan::new(7);
    plan.workload.input_words = 24.into();
    change(&mut plan.workload);
    plan.complete();
    Content::new(&plan)
}

const SPREAD: Lengths = Lengths::Drawn(Distribution::Uniform { min: 1, max: 40 });

#[test]
fn prompts_that_share_nothing_are_those_of_earlier_versions() {
    let content = content(|_| {});
    for index in [0, 1, 1500] {
        for (item, purpose) in [(item(index), Purpose::Prompt), (warm_up(index), Purpose::WarmupPrompt)] {
            let mut plain = String::new();
            write_prompt(&mut plain, 7, purpose, index, 24);
            assert_eq!(prompt(&content, item), plain);
        }
    }
}

#[test]
fn prompts_share_exactly_the_words_of_the_prefix() {
    let content = content(|workload| workload.prefix = Some(Prefix::new(50, 1)));
    let prompts: Vec<String> = (0..1000).map(|index| prompt(&content, item(index))).collect();
    let first: Vec<&str> = prompts[0].split(' ').collect();
    let mut own = HashSet::new();
    for prompt in &prompts {
        let words: Vec<&str> = prompt.split(' ').collect();
        assert_eq!((words.len(), &words[..50]), (74, &first[..50]));
        assert!(own.insert(words[50]), "two prompts share {}", words[50]);
    }
    assert_eq!(content.prompt_words(item(3)), 74);
}

#[test]
fn each_prompt_has_one_of_the_pool_and_all_of_the_pool_are_used_alike() {
    let content = content(|workload| workload.prefix = Some(Prefix::new(5, 8)));
    let mut counts = std::collections::HashMap::new();
    for index in 0..8000 {
        let prompt = prompt(&content, item(index));
        let prefix: Vec<String> = prompt.split(' ').take(5).map(str::to_owned).collect();
        *counts.entry(prefix).or_insert(0u32) += 1;
    }
    // Mean 1000, standard deviation sqrt(8000 * 1/8 * 7/8) = 29.6: five of those either way.
    assert_eq!(counts.len(), 8);
    assert!(counts.values().all(|n| (852..=1148).contains(n)), "{counts:?}");
    let beginnings: HashSet<_> = counts.keys().map(|prefix| &prefix[0]).collect();
    assert_eq!(beginnings.len(), 8, "prefixes differ from their first word on");
}

#[test]
fn requests_beyond_the_distinct_ones_repeat_them_whole() {
    let content = content(|workload| {
        workload.distinct = Some(3);
        workload.output_tokens = SPREAD;
        workload.input_words = SPREAD;
        workload.prefix = Some(Prefix::new(4, 100));
    });
    for index in 0..3 {
        for later in [index + 3, index + 3000] {
            assert_eq!(prompt(&content, item(index)), prompt(&content, item(later)));
            assert_eq!(content.output_tokens(item(index)), content.output_tokens(item(later)));
        }
    }
    let different: HashSet<String> = (0..3).map(|index| prompt(&content, item(index))).collect();
    assert_eq!(different.len(), 3);
}

/// A prefix cache holds blocks of 16 tokens or single ones (a radix tree); either way another seed finds nothing worth
/// the name, whatever prompts share among themselves.
#[test]
fn prompts_of_two_seeds_share_no_beginning() {
    let content = content(|workload| workload.prefix = Some(Prefix::new(40, 20)));
    let mut all: Vec<(Vec<String>, u64)> = Vec::new();
    for seed in [0, 1, 7, 8, u64::MAX / 3] {
        for phase in [Phase::Measured, Phase::Warmup] {
            all.extend((0..300).map(|index| {
                let prompt = prompt(&content, Item { seed, phase, index });
                (prompt.split(' ').map(str::to_owned).collect(), seed)
            }));
        }
    }
    // Of sorted prompts the neighbours share most.
    all.sort_unstable();
    for pair in all.windows(2).filter(|pair| pair[0].1 != pair[1].1) {
        let shared = pair[0].0.iter().zip(&pair[1].0).take_while(|(a, b)| a == b).count();
        assert!(shared < 4, "seeds {} and {} share {shared} words", pair[0].1, pair[1].1);
    }
}

#[test]
fn a_prompt_may_be_its_prefix_alone() {
    let content = content(|workload| {
        workload.input_words = 0.into();
        workload.prefix = Some(Prefix::new(9, 1));
    });
    assert_eq!(prompt(&content, item(0)), prompt(&content, item(1)));
    assert_eq!(prompt(&content, item(0)).split(' ').count(), 9);
    assert_eq!(content.prompt_words(item(0)), 9);
}

#[test]
fn warm_up_requests_have_the_lengths_of_measured_ones_and_none_of_their_beginnings() {
    let content = content(|workload| {
        workload.input_words = Lengths::Drawn(Distribution::Uniform { min: 10, max: 40 });
        workload.output_tokens = SPREAD;
        workload.prefix = Some(Prefix::new(12, 2));
    });
    // A hyphen and what follows it are two tokens.
    let tokens = |text: &str| text.split(' ').count() + 2 * text.matches('-').count();
    for index in 0..50 {
        let (cold, warm) = (prompt(&content, item(index)), prompt(&content, warm_up(index)));
        assert!(warm.starts_with("warm-") && !cold.contains("warm"));
        assert_eq!(tokens(&cold), tokens(&warm));
        assert_eq!(tokens(&cold), content.prompt_words(item(index)) as usize);
        assert_eq!(content.output_tokens(item(index)), content.output_tokens(warm_up(index)));
    }
}

#[test]
fn prefixes_are_drawn_by_zipf_where_an_exponent_is_given() {
    let (pool, n) = (20_u32, 20_000_u64);
    let prefix = Prefix { exponent: Some(1.1), ..Prefix::new(5, pool) };
    let content = content(|workload| workload.prefix = Some(prefix));
    let mut counts = vec![0_u32; pool as usize];
    (0..n).for_each(|index| counts[content.common(item(index)).prefix.unwrap().0 as usize] += 1);
    let sum: f64 = (1..=pool).map(|k| f64::from(k).powf(-1.1)).sum();
    for (place, found) in counts.into_iter().enumerate() {
        let p = (place as f64 + 1.0).powf(-1.1) / sum;
        let error = 5.0 * (n as f64 * p * (1.0 - p)).sqrt();
        assert!((f64::from(found) - p * n as f64).abs() <= error, "{place}: {found}");
    }
}

#[test]
fn all_requests_have_the_system_message_and_warm_up_another_one() {
    let content = content(|workload| workload.system_words = Some(30));
    let system = |item| {
        let mut out = String::new();
        content.write_system(&mut out, item);
        out
    };
    assert_eq!(system(item(0)).split(' ').count(), 30);
    assert_eq!(system(item(0)), system(item(99)));
    assert!(system(warm_up(3)).starts_with("warm-"));
    assert_ne!(system(item(0)), system(Item { seed: 8, ..item(0) }));
    assert_eq!(content.prompt_words(item(3)), 54);
    assert_ne!(system(item(0)).split(' ').next(), prompt(&content, item(0)).split(' ').next());
}

#[test]
fn as_many_requests_have_a_prefix_as_the_hit_fraction_takes_and_all_prompts_are_as_long() {
    let n = 4000;
    let mut plan = Plan::new(7);
    plan.workload.input_words = 100.into();
    plan.workload.prefix = Some(Prefix { hit_fraction: Some(0.3), ..Prefix::new(100, 10) });
    plan.levels = vec![Level {
        stop: crate::plan::Stop { units: Some(n), ..Default::default() },
        ..Default::default()
    }];
    let content = Content::new(&plan);
    let shared = (0..n).filter(|index| content.common(item(*index)).prefix.is_some()).count() as f64;
    // Of 200 tokens 100 can be found: 6 in 10 requests, and ten more that bring a prefix along.
    let p = 0.6 + 10.0 / n as f64;
    assert!((shared - p * n as f64).abs() <= 5.0 * (n as f64 * p * (1.0 - p)).sqrt(), "{shared}");
    let words = |index| prompt(&content, item(index)).split(' ').count();
    assert!((0..500).all(|index| words(index) == 200));
}

#[test]
fn an_excerpt_shows_the_beginning_of_each_part() {
    let content = content(|workload| {
        workload.input_words = 3.into();
        workload.prefix = Some(Prefix::new(9, 1));
    });
    let whole = prompt(&content, item(2));
    let words: Vec<&str> = whole.split(' ').collect();
    let shown = format!("{} ... {}", words[..4].join(" "), words[9..].join(" "));
    assert_eq!(content.excerpt(item(2), 4), shown);
}

#[test]
fn the_prefix_of_a_seed_never_changes() {
    // A stored plan promises the same requests to later versions.
    let content = content(|workload| {
        workload.input_words = 2.into();
        workload.prefix = Some(Prefix::new(4, 5));
    });
    assert_eq!(prompt(&content, item(3)), PINNED);
    assert_eq!(prompt(&content, warm_up(3)), PINNED_WARMUP);
}

const PINNED: &str = "small houses give yards down flat";
const PINNED_WARMUP: &str = "warm-star club warm-above";
