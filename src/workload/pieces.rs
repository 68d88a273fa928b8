//! Synthetic prompts of an exact number of tokens: words that are one token each of one vocabulary, put together.
//!
//! Owns how such a prompt is written. Which words these are was found before (`measure`) and stands in the plan; no
//! prompt is tokenised on the way. The words of prompts that are not counted are [`prompts`](super::prompts)'s.

use std::fmt::Write as _;

use super::prompts::{Digits, WARMUP, is_warm_up, key, permuted};
use super::words::WORDS;
use crate::plan::{Begins, Found};
use crate::rng::{self, Purpose, Stream};

/// The words that prompts are put together from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Begins what warms up; no other prompt contains it.
    marker: Box<str>,
    /// As many as a power of two.
    words: Vec<Box<str>>,
    begins: Begins,
    /// The ids of the marker and of the words, where prompts are sent as such.
    ids: Vec<u32>,
}

/// Fewer words than this make no prompts worth the name.
pub(super) const WORDS_MIN: usize = 32;

impl Pieces {
    /// The words that were found; `None` if there are too few of one token each.
    ///
    /// They are those of the list that are not left out and then the further ones, as many of them as a power of two. One
    /// more marks what warms up: `warm`, or where that is no token the first that is not among them.
    #[must_use]
    pub fn new(found: &Found) -> Option<Pieces> {
        let begins = found.begins?;
        let is_left_out = |word: &str| found.left_out.iter().any(|left_out| left_out == word);
        let listed = WORDS.iter().copied().filter(|word| !is_left_out(word));
        let further = found.further.iter().map(String::as_str).filter(|word| !is_left_out(word));
        let mut words: Vec<Box<str>> = listed.chain(further).map(Into::into).collect();
        let spare = usize::from(is_left_out(WARMUP));
        let count = words.len().checked_sub(spare).filter(|count| *count >= WORDS_MIN)?;
        let count = 1 << count.ilog2();
        let marker = if spare == 0 { WARMUP.into() } else { words[count].clone() };
        words.truncate(count);
        // Ids that do not belong to these words would be another text.
        let ids = if found.ids.len() == count + 1 { found.ids.clone() } else { Vec::new() };
        Some(Pieces { marker, words, begins, ids })
    }

    /// The marker and the words, in the order of their ids.
    #[must_use]
    pub fn words(&self) -> Vec<&str> {
        std::iter::once(&self.marker).chain(&self.words).map(|word| &**word).collect()
    }

    /// Whether it writes ids in the place of words.
    #[must_use]
    pub fn has_ids(&self) -> bool {
        !self.ids.is_empty()
    }

    /// The same with these ids, which prompts are then made of.
    #[must_use]
    pub fn with_ids(self, ids: Vec<u32>) -> Option<Pieces> {
        (ids.len() == self.words.len() + 1).then_some(Pieces { ids, ..self })
    }

    /// Appends a part of a prompt, `tokens` long; `is_first`: nothing of the prompt stands before it.
    ///
    /// It begins with the digits of `index` in the base of the words, one word each, permuted by the seed, least
    /// significant first: parts of one seed and purpose share no token at their beginning within as many consecutive
    /// indices as there are words, and are different as long as the digits of their indices find room. What warms up has
    /// the marker before them. The rest is drawn.
    pub fn write_prompt(
        &self,
        out: &mut String,
        (seed, purpose, index): (u64, Purpose, u64),
        tokens: u32,
        is_first: bool,
    ) {
        let mut page = Page { of: self, out, is_first, left: tokens };
        page.reserve();
        if is_warm_up(purpose) {
            page.put(MARKER);
        }
        let mut key = key(seed, purpose);
        let count = self.words.len();
        let mut rest = index;
        loop {
            page.put(1 + permuted((rest % count as u64) as usize, &mut key, count));
            rest /= count as u64;
            if rest == 0 || page.left == 0 {
                break;
            }
        }
        let mut draws = Digits::new(rng::stream(seed, purpose, index), count);
        while page.left > 0 {
            page.put(1 + draws.next());
        }
    }

    /// Appends `tokens` words drawn from `draws`; the same draws give the same words, and fewer of them their beginning.
    pub fn write_drawn(&self, out: &mut String, draws: &mut Stream, tokens: u32, is_first: bool) {
        let mut page = Page { of: self, out, is_first, left: tokens };
        page.reserve();
        while page.left > 0 {
            page.put(1 + rng::below(draws, self.words.len() as u32) as usize);
        }
    }
}

/// A prompt that is being written.
struct Page<'a> {
    of: &'a Pieces,
    out: &'a mut String,
    is_first: bool,
    /// Tokens that are still to be written.
    left: u32,
}

impl Page<'_> {
    fn reserve(&mut self) {
        self.out.reserve((self.left as usize).saturating_mul(MEAN_BYTES));
    }

    /// Appends the word at `place`, if there is room for it.
    fn put(&mut self, place: usize) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        let is_first = std::mem::take(&mut self.is_first);
        if let Some(id) = self.of.ids.get(place) {
            let comma = if is_first { "" } else { "," };
            write!(self.out, "{comma}{id}").expect("a String takes every write");
            return;
        }
        if !is_first || self.of.begins == Begins::Spaced {
            self.out.push(' ');
        }
        self.out.push_str(if place == MARKER { &self.of.marker } else { &self.of.words[place - 1] });
    }
}

/// The place of the marker before the words.
const MARKER: usize = 0;
/// Bytes of a word and its blank, or of an id and its comma, rounded up.
const MEAN_BYTES: usize = 6;

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashSet;

    use super::*;

    /// All words of the list, each after a blank.
    pub(in crate::workload) fn all() -> Pieces {
        Pieces::new(&found(Begins::Spaced)).unwrap()
    }

    fn found(begins: Begins) -> Found {
        Found { begins: Some(begins), ..Found::on_average(1.0) }
    }

    fn prompt(pieces: &Pieces, purpose: Purpose, index: u64, tokens: u32) -> String {
        let mut out = String::new();
        pieces.write_prompt(&mut out, (7, purpose, index), tokens, true);
        out
    }

    #[test]
    fn a_prompt_has_exactly_as_many_words_as_asked() {
        for begins in [Begins::Bare, Begins::Spaced] {
            let pieces = Pieces::new(&found(begins)).unwrap();
            for index in [0, 1023, 1024, 1 << 20, u64::MAX - 1] {
                for purpose in [Purpose::Prompt, Purpose::WarmupPrompt, Purpose::Prefix] {
                    for tokens in [0, 1, 2, 3, 17, 4000] {
                        let text = prompt(&pieces, purpose, index, tokens);
                        assert_eq!(text.split_whitespace().count(), tokens as usize);
                        let blanks = tokens - u32::from(begins == Begins::Bare && tokens > 0);
                        assert_eq!(text.matches(' ').count(), blanks as usize, "{text:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn prompts_begin_with_different_words_and_those_that_warm_up_with_one_that_is_in_no_other() {
        let pieces = all();
        let first = |purpose, index| prompt(&pieces, purpose, index, 1);
        let firsts: HashSet<String> = (1500..2524).map(|index| first(Purpose::Prompt, index)).collect();
        assert_eq!(firsts.len(), 1024);
        let whole: HashSet<String> =
            (0..50_000).map(|index| prompt(&pieces, Purpose::Prompt, index, 2)).collect();
        assert!(
            whole.len() > 49_000,
            "the digits of an index fit into two words from 1024 on: {}",
            whole.len()
        );
        assert_eq!(first(Purpose::WarmupPrompt, 3), " warm");
        assert!((0..50).all(|index| !prompt(&pieces, Purpose::Prompt, index, 4000).contains("warm")));
    }

    #[test]
    fn words_that_are_no_token_are_in_no_prompt() {
        let left_out: Vec<String> = WORDS.iter().skip(700).map(|word| (*word).to_owned()).collect();
        let some = Found { left_out: left_out.clone(), ..found(Begins::Bare) };
        let pieces = Pieces::new(&some).unwrap();
        assert_eq!((pieces.words.len(), &*pieces.marker), (512, "warm"));
        let text = prompt(&pieces, Purpose::Prompt, 5, 20_000);
        let used: HashSet<&str> = text.split(' ').collect();
        assert_eq!(used.len(), 512);
        assert!(left_out.iter().all(|word| !used.contains(&**word)));
        // Where the usual marker is none, a word that prompts are not made of is one.
        let left_out = left_out.into_iter().chain(["warm".to_owned()]).collect();
        let pieces = Pieces::new(&Found { left_out, ..found(Begins::Bare) }).unwrap();
        assert!(&*pieces.marker == WORDS[512] && !pieces.words.contains(&pieces.marker));
        let left_out = WORDS.iter().skip(31).map(|word| (*word).to_owned()).collect();
        assert_eq!(Pieces::new(&Found { left_out, ..found(Begins::Bare) }), None);
        assert_eq!(Pieces::new(&Found::on_average(1.0)), None);
    }

    #[test]
    fn ids_are_those_of_the_same_words() {
        let text = all();
        let ids: Vec<u32> = (5000..5000 + 1025).collect();
        let numbers = text.clone().with_ids(ids.clone()).unwrap();
        let words = text.words();
        for purpose in [Purpose::Prompt, Purpose::WarmupPrompt] {
            let list = prompt(&numbers, purpose, 1500, 40);
            let named = list.split(',').map(|id| words[id.parse::<usize>().unwrap() - 5000]);
            let spaced: String = named.map(|word| format!(" {word}")).collect();
            assert_eq!(spaced, prompt(&text, purpose, 1500, 40));
        }
        assert_eq!(text.with_ids(ids[1..].to_vec()), None);
    }

    #[test]
    fn drawn_words_are_a_function_of_the_draws() {
        let drawn = |seed, tokens| {
            let mut out = String::new();
            all().write_drawn(&mut out, &mut rng::stream(seed, Purpose::TraceBlock, 3), tokens, false);
            out
        };
        assert_eq!(drawn(7, 16).split_whitespace().count(), 16);
        assert!(drawn(7, 16).starts_with(&drawn(7, 9)));
        assert_ne!(drawn(7, 16), drawn(8, 16));
    }

    #[test]
    fn the_words_of_a_seed_never_change() {
        // A stored plan promises the same requests to later versions.
        assert_eq!(prompt(&all(), Purpose::Prompt, 3, 6), PINNED);
        assert_eq!(prompt(&all(), Purpose::WarmupPrompt, 1025, 5), PINNED_WARMUP);
    }

    const PINNED: &str = " down flat album party data they";
    const PINNED_WARMUP: &str = " warm push names model farm";
}
