//! A tokenizer of Hugging Face against the prompts that are made by it. Built with the feature `tokenizer`.
//!
//! The vocabulary (`tools/make_tiny_tokenizer.py`) knows 80 of the 1024 words; the others are several tokens each.

use tokload::metrics::Phase;
use tokload::plan::{Begins, Found, Plan, Prefix, Tokens, Workload};
use tokload::workload::measure::{Unfit, Wish, measure};
use tokload::workload::tokenizer::Tokenizer;
use tokload::workload::{Content, Item, Pieces};

fn tokenizer() -> Tokenizer {
    Tokenizer::read(include_bytes!("../data/tokenizer.json")).unwrap()
}

fn found(tokenizer: &Tokenizer, ids: bool) -> Found {
    let further = tokenizer.words();
    let wish = Wish { further: &further, in_template: false, ids, questions: usize::MAX };
    let found = measure(&mut |text| tokenizer.tokens(text), &wish).unwrap();
    Found { added: tokenizer.added(), ..found }
}

fn content(found: Found, change: impl FnOnce(&mut Workload)) -> Content {
    let tokens = Tokens { tokenizer: Some("t".to_owned()), ids: !found.ids.is_empty(), found: Some(found) };
    let mut plan = Plan::new(7);
    plan.workload.tokens = Some(tokens);
    change(&mut plan.workload);
    Content::new(&plan)
}

fn prompt(content: &Content, index: u64) -> String {
    let mut text = String::new();
    content.write_prompt(&mut text, Item { seed: 3, phase: Phase::Measured, index });
    text
}

#[test]
fn prompts_have_exactly_the_tokens_asked_for_however_long() {
    let tokenizer = tokenizer();
    let found = found(&tokenizer, false);
    assert_eq!((found.begins, found.added), (Some(Begins::Spaced), 1));
    assert!(
        found.left_out.iter().any(|word| word == "zone") && !found.left_out.iter().any(|word| word == "able")
    );
    for tokens in [2, 17, 512, 4000, 32_000] {
        let content = content(found.clone(), |workload| workload.input_words = tokens.into());
        for index in [0, 1, 63, 64, 5000, 1 << 40] {
            let text = prompt(&content, index);
            assert_eq!(tokenizer.tokens(&text).unwrap().len() as u32 + tokenizer.added(), tokens);
        }
    }
}

#[test]
fn what_prompts_share_is_as_long_as_asked_too() {
    let tokenizer = tokenizer();
    let content = content(found(&tokenizer, false), |workload| {
        workload.input_words = 21.into();
        workload.prefix = Some(Prefix::new(40, 1));
    });
    let of = |index| tokenizer.tokens(&prompt(&content, index)).unwrap();
    let first = of(0);
    for index in 1..20 {
        let other = of(index);
        let shared = first.iter().zip(&other).take_while(|(a, b)| a == b).count();
        assert_eq!((other.len(), shared), (60, 40));
    }
}

#[test]
fn ids_are_the_tokens_of_the_text() {
    let tokenizer = tokenizer();
    let numbers = content(found(&tokenizer, true), |workload| workload.input_words = 50.into());
    let texts = content(found(&tokenizer, false), |workload| workload.input_words = 50.into());
    for index in [0, 7, 900] {
        let ids: Vec<u32> = prompt(&numbers, index).split(',').map(|id| id.parse().unwrap()).collect();
        assert_eq!(ids, tokenizer.tokens(&prompt(&texts, index)).unwrap());
    }
}

#[test]
fn what_is_no_tokenizer_or_knows_no_words_is_refused() {
    assert!(Tokenizer::read(b"{}").is_err());
    let tokenizer = tokenizer();
    let wish = Wish { further: &[], in_template: false, ids: false, questions: usize::MAX };
    // Words in another alphabet than the vocabulary's.
    let mut foreign = |text: &str| tokenizer.tokens(&text.to_uppercase());
    assert!(matches!(measure(&mut foreign, &wish), Err(Unfit::TooFew(_))));
    assert_eq!(Pieces::new(&Found::on_average(1.0)), None);
}
