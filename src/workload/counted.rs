//! From the tokens that a prompt is asked to have to its words, by what was found before the run.
//!
//! Owns the step from a length to words of that length. Without it, as in plans that count words, a word is a token.

use std::sync::Arc;

use super::pieces::Pieces;
use super::prompts;
use crate::plan::Found;
use crate::rng::{Purpose, Stream};

/// How prompts get the number of tokens that is asked for.
#[derive(Clone, Debug)]
pub struct Counted {
    found: Arc<Found>,
    /// Words of one token each; `None`: the usual ones, as many as have so many tokens on average.
    pieces: Option<Arc<Pieces>>,
}

impl Counted {
    /// By what was found.
    #[must_use]
    pub fn new(found: &Found) -> Counted {
        Counted { found: Arc::new(found.clone()), pieces: Pieces::new(found).map(Arc::new) }
    }

    /// Whether prompts are written as lists of token ids.
    #[must_use]
    pub fn writes_ids(&self) -> bool {
        self.pieces.as_ref().is_some_and(|pieces| pieces.has_ids())
    }

    /// The words of a whole prompt of `tokens`, of which the server adds some: at least one.
    #[must_use]
    pub fn words(&self, tokens: u32) -> u32 {
        self.found.words_of(tokens).max(1)
    }

    /// The words of a part of `tokens`, to which nothing is added.
    #[must_use]
    pub fn words_of_part(&self, tokens: u32) -> u32 {
        match self.pieces {
            Some(_) => tokens,
            // `as` saturates.
            None => (f64::from(tokens) / self.found.tokens_per_word).round() as u32,
        }
    }

    /// The words of what a prompt of `tokens` has of its own, behind a part that it shares: maybe none.
    #[must_use]
    pub fn words_behind(&self, tokens: u32) -> u32 {
        self.found.words_of(tokens)
    }

    /// What the server should count of a prompt of `words`, without its template, for reading.
    #[must_use]
    pub fn tokens(&self, words: u32) -> u32 {
        let tokens = f64::from(words) * self.found.tokens_per_word;
        (tokens.round() as u32).saturating_add(self.found.added)
    }

    /// What the server should count of a part of `words`.
    #[must_use]
    pub fn tokens_of_part(&self, words: u32) -> u32 {
        (f64::from(words) * self.found.tokens_per_word).round() as u32
    }

    /// Appends a part of a prompt; `is_first`: nothing of it stands before.
    pub fn write_prompt(
        &self,
        out: &mut String,
        (seed, purpose, index): (u64, Purpose, u64),
        words: u32,
        is_first: bool,
    ) {
        match &self.pieces {
            Some(pieces) => pieces.write_prompt(out, (seed, purpose, index), words, is_first),
            None => {
                if !is_first {
                    out.push(' ');
                }
                prompts::write_prompt(out, seed, purpose, index, words);
            }
        }
    }

    /// Appends words drawn from `draws`, or `false` where those are the usual ones.
    pub(super) fn write_drawn(
        &self,
        out: &mut String,
        draws: &mut Stream,
        words: u32,
        is_first: bool,
    ) -> bool {
        self.pieces.as_ref().inspect(|pieces| pieces.write_drawn(out, draws, words, is_first)).is_some()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::metrics::Phase;
    use crate::plan::{Begins, Distribution, Found, Lengths, Plan, Prefix, Tokens, Workload};
    use crate::workload::{Content, Item};

    /// What a server counts that adds one token and knows all words after a blank.
    fn content(found: Found, change: impl FnOnce(&mut Workload)) -> Content {
        let tokens = Tokens { found: Some(Found { added: 1, ..found }), ..Tokens::default() };
        let mut plan = Plan::new(7);
        plan.workload.input_words = 24.into();
        plan.workload.tokens = Some(tokens);
        change(&mut plan.workload);
        Content::new(&plan)
    }

    fn exact() -> Found {
        Found { begins: Some(Begins::Spaced), ..Found::on_average(1.0) }
    }

    fn words(content: &Content, phase: Phase, index: u64) -> Vec<String> {
        let mut text = String::new();
        content.write_prompt(&mut text, Item { seed: 7, phase, index });
        assert!(text.starts_with(' ') && !text.contains("  ") && !text.contains('-'), "{text:?}");
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn a_prompt_has_the_tokens_asked_for_with_those_that_the_server_adds() {
        let content = content(exact(), |workload| {
            workload.input_words = Lengths::Drawn(Distribution::Uniform { min: 2, max: 3000 });
        });
        for index in [0, 1, 5000, 1 << 30] {
            let item = Item { seed: 7, phase: Phase::Measured, index };
            let asked = super::super::lengths::draw(
                &Lengths::Drawn(Distribution::Uniform { min: 2, max: 3000 }),
                7,
                crate::rng::Purpose::InputLengths,
                index,
            );
            assert_eq!(content.prompt_words(item), asked);
            assert_eq!(words(&content, Phase::Measured, index).len() as u32, asked - 1);
            assert_eq!(
                words(&content, Phase::Warmup, index).len() as u32,
                asked - 1,
                "as long as the measured one"
            );
        }
        let one = self::content(exact(), |workload| workload.input_words = 1.into());
        assert_eq!(words(&one, Phase::Measured, 3).len(), 1, "a prompt is never empty");
    }

    #[test]
    fn prompts_share_exactly_the_tokens_of_the_prefix_and_a_warm_up_none() {
        let content = content(exact(), |workload| workload.prefix = Some(Prefix::new(50, 1)));
        let shared = words(&content, Phase::Measured, 0)[..50].to_vec();
        let mut own = HashSet::new();
        for index in 0..1000 {
            let words = words(&content, Phase::Measured, index);
            assert_eq!((words.len(), &words[..50]), (73, &shared[..]));
            assert!(own.insert(words[50].clone()), "two prompts share {}", words[50]);
        }
        for index in 0..20 {
            let words = words(&content, Phase::Warmup, index);
            assert_eq!((words.len(), &*words[0], &*words[50]), (73, "warm", "warm"));
        }
        assert!(!shared.contains(&"warm".to_owned()) && !own.contains("warm"));
    }

    #[test]
    fn where_words_have_tokens_on_average_prompts_have_as_many_words_as_that_takes() {
        let content = content(Found::on_average(1.25), |workload| {
            workload.input_words = 101.into();
            workload.prefix = Some(Prefix::new(50, 1));
        });
        let item = Item { seed: 7, phase: Phase::Measured, index: 3 };
        let mut text = String::new();
        content.write_prompt(&mut text, item);
        assert_eq!(text.split(' ').count(), 40 + 80);
        assert_eq!(content.prompt_words(item), 151);
    }
}
