//! What an unlimited prefix cache would find of the prompts of a level, worked out from what was sent.
//!
//! Owns the rule: requests stand in the order of their indices, each finds what those before it had, and a text is found
//! from its beginning up to where it differs. How large a real cache's blocks are is not known here, except where a trace
//! says it.

use std::collections::HashSet;
use std::sync::Arc;

use super::content::{Common, Content, Item, Script};
use super::deck::Deck;
use super::recording::Recording;
use super::trace::{Entry, Error, Prompt};
use crate::metrics::Phase;
use crate::rng;

/// Tokens of prompts, and how many of them an unlimited cache finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reuse {
    /// Tokens of the prompts.
    pub prompt_tokens: u64,
    /// Of these, the ones that are found.
    pub found_tokens: u64,
}

/// A request of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its index.
    pub index: u64,
    /// It counts; others only leave their prompts in the cache.
    pub counts: bool,
}

impl Reuse {
    /// What is found of the prompts of a level with this seed; `sent` is in the order of the indices. `None` where texts of
    /// a file are sent, of which nobody knows what they share, and where nothing was sent.
    ///
    /// # Errors
    /// The file can no longer be read.
    pub fn of(content: &Content, seed: u64, sent: &[Sent]) -> Result<Option<Reuse>, Error> {
        let mut reuse = Reuse::default();
        match content.script() {
            None => reuse.add_synthetic(content, seed, sent),
            Some(Script::Data(deck)) => {
                if !reuse.add_data(deck, content, seed, sent)? {
                    return Ok(None);
                }
            }
            Some(Script::Trace(recording)) => {
                if !reuse.add_trace(recording, sent)? {
                    return Ok(None);
                }
            }
        }
        Ok(Some(reuse).filter(|reuse| reuse.prompt_tokens > 0))
    }

    /// The share of the tokens that is found.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.found_tokens as f64 / self.prompt_tokens.max(1) as f64
    }

    fn add(&mut self, sent: Sent, tokens: u32, found: u32) {
        if sent.counts {
            self.prompt_tokens += u64::from(tokens);
            self.found_tokens += u64::from(found.min(tokens));
        }
    }

    fn add_synthetic(&mut self, content: &Content, seed: u64, all: &[Sent]) {
        let (mut entries, mut prefixes) = (HashSet::new(), HashSet::new());
        let repeats = content.repeats();
        for (place, sent) in all.iter().enumerate() {
            let item = Item { seed, phase: Phase::Measured, index: sent.index };
            let Common { entry, system_tokens, prefix, tokens } = content.common(item);
            // Which entries came is only worth its memory where they come again.
            let is_old = repeats && !entries.insert(entry);
            let of_system = if place > 0 { system_tokens } else { 0 };
            let of_prefix = match prefix {
                Some((number, tokens)) if !prefixes.insert(number) => tokens,
                _ => 0,
            };
            self.add(*sent, tokens, if is_old { tokens } else { of_system.saturating_add(of_prefix) });
        }
    }

    /// Whether all prompts are made of lengths.
    fn add_data(
        &mut self,
        deck: &Arc<Deck>,
        content: &Content,
        seed: u64,
        all: &[Sent],
    ) -> Result<bool, Error> {
        let (mut hand, mut cache, mut places) = (deck.hand(), Blocks::default(), HashSet::new());
        for sent in all {
            let item = Item { seed, phase: Phase::Measured, index: sent.index };
            let Some(place) = content.place(item) else { return Ok(false) };
            let Some(entry) = hand.entry(place) else {
                return deck.fault().map_or(Ok(false), |fault| Err(fault.clone()));
            };
            let Some((tokens, mut found)) = cache.found(&entry) else { return Ok(false) };
            if !places.insert(place) {
                found = tokens;
            }
            self.add(*sent, tokens, found);
        }
        Ok(cache.knows_all())
    }

    fn add_trace(&mut self, recording: &Arc<Recording>, all: &[Sent]) -> Result<bool, Error> {
        let mut cache = Blocks::default();
        let mut wanted = all.iter().copied().peekable();
        for request in recording.sends(1.0, (0, 1))? {
            while wanted.next_if(|sent| sent.index < request.index).is_some() {}
            let Some(sent) = wanted.next_if(|sent| sent.index == request.index) else {
                if wanted.peek().is_none() {
                    break;
                }
                continue;
            };
            let Some((tokens, found)) = cache.found(&request.entry) else { return Ok(false) };
            self.add(sent, tokens, found);
        }
        recording.fault().map_or(Ok(cache.knows_all()), |fault| Err(fault.clone()))
    }
}

/// Blocks of prompts that were sent: hashes of all ids up to each of them.
#[derive(Debug, Default)]
pub(super) struct Blocks(HashSet<u64>);

impl Blocks {
    /// Tokens of the prompt of `entry`, and of these the ones in whole blocks that are known from its beginning on; its
    /// own are known from now on. `None` if it is not made of a length.
    pub(super) fn found(&mut self, entry: &Entry) -> Option<(u32, u32)> {
        let Prompt::Tokens { count, blocks } = &entry.prompt else { return None };
        let Some(blocks) = blocks else { return Some((*count, 0)) };
        let whole = (*count / blocks.block_tokens.max(1)) as usize;
        let (mut chained, mut found, mut goes_on) = (rng::mixed(blocks.scope), 0, true);
        for id in blocks.ids.iter().take(whole) {
            chained = rng::mixed(chained ^ rng::mixed(*id));
            let is_known = self.0.contains(&chained) || (self.knows_all() && !self.0.insert(chained));
            goes_on &= is_known;
            found += if goes_on { blocks.block_tokens } else { 0 };
        }
        Some((*count, found))
    }

    /// Whether there was room for all of them.
    pub(super) fn knows_all(&self) -> bool {
        self.0.len() < BLOCKS_MAX
    }
}

/// Blocks that are remembered: some 150 MB.
const BLOCKS_MAX: usize = 1 << 23;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::plan::{DataSet, Level, Plan, Prefix, Stop, Trace};

    fn all(n: u64) -> Vec<Sent> {
        (0..n).map(|index| Sent { index, counts: true }).collect()
    }

    fn of(change: impl FnOnce(&mut Plan), sent: &[Sent]) -> Reuse {
        let mut plan = Plan::new(3);
        plan.workload.input_words = 40.into();
        change(&mut plan);
        plan.complete();
        Reuse::of(&Content::new(&plan), plan.level_seed(0), sent).unwrap().unwrap()
    }

    #[test]
    fn a_prefix_is_found_from_its_second_request_on() {
        let one = of(|plan| plan.workload.prefix = Some(Prefix::new(60, 1)), &all(10));
        assert_eq!(one, Reuse { prompt_tokens: 1000, found_tokens: 540 });
        assert_eq!(of(|_| {}, &all(10)), Reuse { prompt_tokens: 400, found_tokens: 0 });
        let system = of(|plan| plan.workload.system_words = Some(10), &all(5));
        assert_eq!(system, Reuse { prompt_tokens: 250, found_tokens: 40 });
        let again = of(|plan| plan.workload.distinct = Some(3), &all(10));
        assert_eq!(again, Reuse { prompt_tokens: 400, found_tokens: 280 });
        // What does not count fills the cache all the same.
        let mut sent = all(10);
        sent[..4].iter_mut().for_each(|sent| sent.counts = false);
        let behind = of(|plan| plan.workload.prefix = Some(Prefix::new(60, 1)), &sent);
        assert_eq!(behind, Reuse { prompt_tokens: 600, found_tokens: 360 });
    }

    /// Against the prompts themselves: the longest beginning that an earlier one had, in words.
    #[test]
    fn what_is_found_is_the_longest_beginning_seen_before() {
        for (exponent, hit_fraction) in
            [(None, None), (Some(1.3), None), (Some(0.7), Some(0.4)), (None, Some(0.2))]
        {
            let n = 150;
            let mut plan = Plan::new(11);
            plan.workload.input_words = 30.into();
            plan.workload.system_words = Some(7);
            plan.workload.prefix = Some(Prefix { exponent, hit_fraction, ..Prefix::new(40, 9) });
            plan.levels =
                vec![Level { stop: Stop { units: Some(n), ..Stop::default() }, ..Level::default() }];
            let content = Content::new(&plan);
            let seed = plan.level_seed(0);
            let mut before: Vec<Vec<String>> = Vec::new();
            let (mut tokens, mut found) = (0, 0);
            for index in 0..n {
                let item = Item { seed, phase: Phase::Measured, index };
                let mut text = String::new();
                content.write_system(&mut text, item);
                text.push(' ');
                content.write_prompt(&mut text, item);
                let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
                let shared =
                    |other: &Vec<String>| words.iter().zip(other).take_while(|(a, b)| a == b).count();
                found += before.iter().map(shared).max().unwrap_or(0) as u64;
                tokens += words.len() as u64;
                before.push(words);
            }
            let reuse = Reuse::of(&content, seed, &all(n)).unwrap().unwrap();
            assert_eq!(
                reuse,
                Reuse { prompt_tokens: tokens, found_tokens: found },
                "{exponent:?} {hit_fraction:?}"
            );
        }
    }

    #[test]
    fn a_hit_fraction_is_that_of_what_is_sent() {
        for (exponent, pool) in [(None, 1), (None, 40), (Some(1.2), 40)] {
            let n = 3000;
            let reuse = of(
                |plan| {
                    plan.workload.prefix =
                        Some(Prefix { exponent, hit_fraction: Some(0.45), ..Prefix::new(60, pool) });
                    plan.levels =
                        vec![Level { stop: Stop { units: Some(n), ..Stop::default() }, ..Level::default() }];
                },
                &all(n),
            );
            // 60 of 100 tokens each time: the share of requests that find them is 0.75, of a binomial.
            let error = 5.0 * 0.6 * (0.75_f64 * 0.25 / n as f64).sqrt();
            assert!((reuse.share() - 0.45).abs() < error, "{} is not 0.45 +- {error}", reuse.share());
        }
    }

    const MOONCAKE: &str = include_str!("../../tests/traces/mooncake.jsonl");

    fn open(text: &'static str) -> crate::workload::recording::Open {
        Box::new(move || Ok(Box::new(Cursor::new(text)) as _))
    }

    #[test]
    fn blocks_of_a_trace_are_found_as_the_sample_says() {
        let recording = Arc::new(Recording::look(&Trace::of("t.jsonl"), open(MOONCAKE)).unwrap());
        let content = Content::new(&Plan::new(1)).with_script(Some(Script::Trace(recording)));
        let whole = Reuse::of(&content, 1, &all(5)).unwrap().unwrap();
        assert_eq!(whole, Reuse { prompt_tokens: 4726, found_tokens: 2560 });
        let first = Reuse::of(&content, 1, &all(3)).unwrap().unwrap();
        assert_eq!(first, Reuse { prompt_tokens: 3536, found_tokens: 1536 });
    }

    #[test]
    fn a_data_set_of_lengths_is_known_and_one_of_texts_is_not() {
        let deck = |text, name: &str| {
            let data = DataSet { shuffle: false, ..DataSet::of(name) };
            let deck = Arc::new(Deck::look(&data, "/v1/chat/completions", open(text)).unwrap());
            Content::new(&Plan::new(1)).with_script(Some(Script::Data(deck)))
        };
        let lengths = deck(MOONCAKE, "t.jsonl");
        // The sixth is the first again, as a whole.
        let six = Reuse::of(&lengths, 1, &all(6)).unwrap().unwrap();
        assert_eq!(six, Reuse { prompt_tokens: 4726 + 1300, found_tokens: 2560 + 1300 });
        assert_eq!(Reuse::of(&deck("one\ntwo\n", "t.txt"), 1, &all(2)), Ok(None));
        assert_eq!(Reuse::of(&lengths, 1, &[]), Ok(None));
    }
}
