//! Synthetic prompts: words that are one token each, no two prompts with a common beginning.
//!
//! A prompt is a function of (seed, purpose, index, words) alone, drawn without drawing those before it. What prompts
//! share, how long they are, real texts and tokenizers are not this file's business.

use rand_xoshiro::rand_core::Rng as _;

use super::words::{COUNT, WORDS};
use crate::rng::{self, Purpose, Stream};

/// Appends the prompt of request `index` to `out`: `words` words, separated by single spaces.
///
/// **First word.** It writes `index` in base 1024 with the list's words as digits, hyphens between them, the digits
/// permuted by the seed: `stone` below 1024, `river-stone` below 1 048 576, and so on. So all first words of one seed
/// and purpose differ, and prompts of 1024 consecutive indices do not even share their first token. Warm-up prompts
/// and prefixes put `warm-`, which no other prompt contains, in front of it.
///
/// **Cost.** A listed word is one token (see the list). Each further piece of the first word counts as two words, the
/// hyphen and the digit, so that a prompt has `words` tokens: exactly below index 1024; beyond, a vocabulary that
/// merges a hyphen with what follows it saves up to one token per piece. Where `words` is smaller than the cost of
/// the first word (1, 3, 5, ...), the prompt is the first word alone. What a chat template adds comes on top.
pub fn write_prompt(out: &mut String, seed: u64, purpose: Purpose, index: u64, words: u32) {
    let spent = write_first_word(out, seed, purpose, index);
    let draws = Digits::new(rng::stream(seed, purpose, index), COUNT);
    write_words(out, draws, words.saturating_sub(spent));
}

/// Appends `words` words that are drawn, each behind a space. A word is a copy of eight bytes, of which the next one writes
/// over those that are not its own: a call for each of the words of a prompt was most of what it cost.
fn write_words(out: &mut String, mut draws: Digits, words: u32) {
    out.reserve(words as usize * MEAN_BYTES);
    let mut block = [0; 512];
    let mut at = 0;
    for _ in 0..words {
        let spaced = &SPACED[draws.next()];
        block[at..at + 8].copy_from_slice(spaced);
        at += usize::from(spaced[LENGTH]);
        if at > block.len() - 8 {
            out.push_str(str::from_utf8(&block[..at]).expect("the words are ASCII"));
            at = 0;
        }
    }
    out.push_str(str::from_utf8(&block[..at]).expect("the words are ASCII"));
}

/// How many words a prompt that is asked for with `words` stands for: as many, but at least the cost of its first.
#[must_use]
pub fn prompt_words(purpose: Purpose, index: u64, words: u32) -> u32 {
    let further_digits = (index.max(1).ilog2() / COUNT.ilog2()) * 2;
    words.max(1 + further_digits + if is_warm_up(purpose) { 2 } else { 0 })
}

pub(super) fn is_warm_up(purpose: Purpose) -> bool {
    matches!(purpose, Purpose::WarmupPrefix | Purpose::WarmupPrompt | Purpose::WarmupSystem)
}

/// Appends the first word and returns how many words of the prompt it stands for.
fn write_first_word(out: &mut String, seed: u64, purpose: Purpose, index: u64) -> u32 {
    let mut spent = 1;
    if is_warm_up(purpose) {
        out.push_str(WARMUP);
        out.push('-');
        spent += 2;
    }
    let mut key = key(seed, purpose);
    let mut left = index;
    loop {
        out.push_str(WORDS[permuted((left % COUNT as u64) as usize, &mut key, COUNT)]);
        left /= COUNT as u64;
        if left == 0 {
            return spent;
        }
        out.push('-');
        spent += 2;
    }
}

/// The stream that permutes the digits of indices. It must not depend on the index, so it is that of an index that no
/// request reaches.
pub(super) fn key(seed: u64, purpose: Purpose) -> Stream {
    rng::stream(seed, purpose, u64::MAX)
}

/// The image of `digit` under `x -> a x + b (mod count)` with odd `a`: a bijection, since `count` is a power of two.
pub(super) fn permuted(digit: usize, key: &mut Stream, count: usize) -> usize {
    let draw = key.next_u64() as usize;
    let (a, b) = (draw | 1, draw >> 10);
    digit.wrapping_mul(a).wrapping_add(b) % count
}

/// Uniform digits in base `count`, a power of two; of base 1024 six to a draw: a prompt of 100 000 words costs 17 000
/// draws.
pub(super) struct Digits {
    stream: Stream,
    width: u32,
    bits: u64,
    left: u32,
}

impl Digits {
    pub(super) fn new(stream: Stream, count: usize) -> Digits {
        Digits { stream, width: count.ilog2(), bits: 0, left: 0 }
    }

    pub(super) fn next(&mut self) -> usize {
        if self.left == 0 {
            self.bits = self.stream.next_u64();
            self.left = u64::BITS / self.width;
        }
        let digit = self.bits as usize & ((1 << self.width) - 1);
        self.bits >>= self.width;
        self.left -= 1;
        digit
    }
}

/// The words of the list, each behind a space; the last byte is the number of those before it that are used.
static SPACED: [[u8; 8]; COUNT] = {
    let mut all = [[0; 8]; COUNT];
    let mut place = 0;
    while place < COUNT {
        let word = WORDS[place].as_bytes();
        assert!(word.len() < LENGTH);
        all[place][0] = b' ';
        let mut at = 0;
        while at < word.len() {
            all[place][at + 1] = word[at];
            at += 1;
        }
        all[place][LENGTH] = word.len() as u8 + 1;
        place += 1;
    }
    all
};
/// Where that number stands.
const LENGTH: usize = 7;

const _: () = assert!(COUNT.is_power_of_two(), "digits are taken bit by bit");

/// Starts every warm-up prompt; not in the list.
pub(super) const WARMUP: &str = "warm";
/// Bytes of a word and its space, rounded up: the list's mean is 5.8.
const MEAN_BYTES: usize = 6;

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn prompt(seed: u64, purpose: Purpose, index: u64, words: u32) -> String {
        let mut out = String::new();
        write_prompt(&mut out, seed, purpose, index, words);
        out
    }

    fn first_word(text: &str) -> &str {
        text.split(' ').next().unwrap()
    }

    #[test]
    fn the_list_has_1024_different_plain_words() {
        assert_eq!(WORDS.iter().collect::<HashSet<_>>().len(), COUNT);
        assert!(
            WORDS.iter().all(|w| (4..=6).contains(&w.len()) && w.bytes().all(|b| b.is_ascii_lowercase()))
        );
        assert!(!WORDS.contains(&WARMUP));
        let mean = WORDS.iter().map(|w| w.len() + 1).sum::<usize>() as f64 / COUNT as f64;
        assert!(mean <= MEAN_BYTES as f64, "{mean}");
    }

    #[test]
    fn words_are_those_of_the_list_as_they_are_drawn() {
        for words in [1, 2, 60, 61, 90, 91, 92, 2000] {
            let mut draws = Digits::new(rng::stream(3, Purpose::Prompt, 5), COUNT);
            let drawn: String = (1..words).map(|_| format!(" {}", WORDS[draws.next()])).collect();
            let prompt = prompt(3, Purpose::Prompt, 5, words);
            assert_eq!(prompt[first_word(&prompt).len()..], drawn);
        }
    }

    #[test]
    fn no_two_prompts_of_a_seed_share_their_first_word() {
        let first: HashSet<String> = (0..5000)
            .chain(1 << 20..(1 << 20) + 2000)
            .map(|i| first_word(&prompt(7, Purpose::Prompt, i, 8)).to_owned())
            .collect();
        assert_eq!(first.len(), 7000);
    }

    #[test]
    fn prompts_of_1024_consecutive_indices_do_not_share_a_first_token() {
        let first_piece =
            |seed, i| prompt(seed, Purpose::Prompt, i, 8).split(['-', ' ']).next().unwrap().to_owned();
        for seed in 0..8 {
            let first: HashSet<String> = (1500..1500 + 1024).map(|i| first_piece(seed, i)).collect();
            assert_eq!(first.len(), 1024, "seed {seed}");
        }
    }

    #[test]
    fn a_prompt_has_the_asked_number_of_pieces() {
        // Hyphens are tokens of their own.
        let pieces = |text: &str| text.split([' ', '-']).count() + text.matches('-').count();
        for (index, least) in [(0, 1), (1023, 1), (1024, 3), (1 << 20, 5), (u64::MAX - 1, 13)] {
            for words in [1, 2, 5, 128, 4000] {
                let text = prompt(3, Purpose::Prompt, index, words);
                assert_eq!(pieces(&text), least.max(words as usize), "index {index}, {words} words");
            }
        }
        assert_eq!(pieces(&prompt(3, Purpose::WarmupPrompt, 0, 128)), 128);
        for index in [0, 1, 1023, 1024, 1025, (1 << 20) - 1, 1 << 20, u64::MAX - 1] {
            for purpose in [Purpose::Prefix, Purpose::Prompt, Purpose::WarmupPrefix, Purpose::WarmupPrompt] {
                for words in [1, 4, 20] {
                    let stated = prompt_words(purpose, index, words) as usize;
                    assert_eq!(
                        pieces(&prompt(3, purpose, index, words)),
                        stated,
                        "{purpose:?} {index} {words}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_prompt_is_a_function_of_its_inputs() {
        let base = prompt(7, Purpose::Prompt, 3, 64);
        assert_eq!(base, prompt(7, Purpose::Prompt, 3, 64));
        assert_ne!(base, prompt(8, Purpose::Prompt, 3, 64));
        assert!(prompt(7, Purpose::Prompt, 3, 128).starts_with(&base));
    }

    #[test]
    fn the_words_of_a_seed_never_change() {
        // A stored plan promises the same requests to later versions.
        assert_eq!(prompt(7, Purpose::Prompt, 3, 6), PINNED);
        assert_eq!(prompt(7, Purpose::WarmupPrompt, 1025, 7), PINNED_WARMUP);
    }

    #[test]
    fn warm_up_prompts_share_no_first_word_with_measured_ones() {
        for i in 0..2000 {
            assert!(first_word(&prompt(7, Purpose::WarmupPrompt, i, 8)).starts_with("warm-"));
            assert!(!prompt(7, Purpose::Prompt, i, 8).contains(WARMUP));
        }
    }

    #[test]
    fn words_are_drawn_evenly() {
        let text = prompt(1, Purpose::Prompt, 0, 102_400);
        let mut counts = std::collections::HashMap::new();
        for word in text.split(' ') {
            *counts.entry(word).or_insert(0u32) += 1;
        }
        // Mean 100, sd 10: six of those either way.
        assert_eq!(counts.len(), COUNT);
        assert!(counts.values().all(|n| (40..=160).contains(n)));
    }

    const PINNED: &str = "down flat album party data they";
    const PINNED_WARMUP: &str = "warm-push-names model farm";
}
