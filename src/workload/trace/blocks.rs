//! The text of prompts of which a trace gives lengths and hashed blocks: equal ids become equal text.
//!
//! Owns the words of a block. One listed word is one token (see [`prompts`]) unless tokens are counted; templates are
//! not this file's business.

use rand_xoshiro::rand_core::Rng as _;

use super::super::counted::Counted;
use super::super::prompts;
use super::super::words::{COUNT, WORDS};
use super::entry::Blocks;
use crate::rng::{self, Purpose, Stream};

/// Appends the prompt of `count` tokens of request `index`, one word per token, single spaces between them.
///
/// - The words of a block are a function of the seed, the scope and the id alone: of any size, so that a block of which
///   a prompt has only the beginning gives the beginning of its text.
/// - Where the ids are too few for the length, the rest are words of this request alone. Those beyond it are not used.
/// - Without blocks the prompt begins like no other ([`prompts::write_prompt`]).
/// - Where tokens are counted, words are as many as have them.
pub fn write_prompt(
    out: &mut String,
    (seed, index): (u64, u64),
    (count, blocks): (u32, Option<&Blocks>),
    counted: Option<&Counted>,
) {
    let count = counted.filter(|_| count > 0).map_or(count, |counted| counted.words(count));
    let Some(blocks) = blocks else {
        if let Some(counted) = counted {
            counted.write_prompt(out, (seed, Purpose::Prompt, index), count, true);
        } else if count > 0 {
            prompts::write_prompt(out, seed, Purpose::Prompt, index, count);
        }
        return;
    };
    let of_block = counted.map_or(blocks.block_tokens, |counted| counted.words_of_part(blocks.block_tokens));
    let start = out.len();
    out.reserve(count as usize * MEAN_BYTES);
    let scope_seed = rng::stream(seed, Purpose::TraceBlock, blocks.scope).next_u64();
    let mut left = count;
    for id in &blocks.ids {
        let words = left.min(of_block);
        write_words(out, start, &mut rng::stream(scope_seed, Purpose::TraceBlock, *id), (words, counted));
        left -= words;
    }
    write_words(out, start, &mut rng::stream(seed, Purpose::Prompt, index), (left, counted));
}

/// Appends words to a text that begins at `start`.
fn write_words(
    out: &mut String,
    start: usize,
    draws: &mut Stream,
    (words, counted): (u32, Option<&Counted>),
) {
    let is_first = out.len() == start;
    if counted.is_some_and(|counted| counted.write_drawn(out, draws, words, is_first)) {
        return;
    }
    for _ in 0..words {
        if out.len() > start {
            out.push(' ');
        }
        out.push_str(WORDS[rng::below(draws, COUNT as u32) as usize]);
    }
}

/// Bytes of a word and its space, rounded up: the list's mean is 5.8.
const MEAN_BYTES: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(seed: u64, index: u64, count: u32, ids: &[u64], scope: u64) -> String {
        let mut out = String::from("before");
        let blocks = Blocks { ids: ids.to_vec(), block_tokens: 16, scope };
        write_prompt(&mut out, (seed, index), (count, Some(&blocks)), None);
        out.split_off("before".len())
    }

    #[test]
    fn a_prompt_has_as_many_words_as_the_trace_says() {
        for count in [0, 1, 15, 16, 17, 32, 40, 1000] {
            for ids in [&[][..], &[1], &[1, 2], &[1, 2, 3]] {
                let text = prompt(7, 2000, count, ids, 0);
                assert_eq!(text.split_whitespace().count(), count as usize, "{count} {ids:?}");
                assert!(!text.starts_with(' ') && !text.ends_with(' ') && !text.contains("  "));
            }
        }
    }

    #[test]
    fn a_block_is_a_function_of_seed_scope_and_id() {
        let base = prompt(7, 0, 16, &[5], 0);
        assert_eq!(base, prompt(7, 9, 16, &[5], 0), "not of the request");
        assert!(base.starts_with(&prompt(7, 0, 9, &[5], 0)), "a part is its beginning");
        assert!(prompt(7, 0, 32, &[4, 5], 0).ends_with(&base), "not of its place");
        assert_ne!(base, prompt(8, 0, 16, &[5], 0));
        assert_ne!(base, prompt(7, 0, 16, &[6], 0));
        assert_ne!(base, prompt(7, 0, 16, &[5], 1));
    }

    #[test]
    fn what_the_ids_do_not_cover_is_the_requests_own() {
        let (one, other) = (prompt(7, 1, 32, &[5], 0), prompt(7, 2, 32, &[5], 0));
        let shared = prompt(7, 0, 16, &[5], 0);
        assert!(one.starts_with(&shared) && other.starts_with(&shared));
        assert_ne!(one, other);
    }

    #[test]
    fn the_words_of_a_block_never_change() {
        // A stored plan promises the same requests to later versions.
        assert_eq!(prompt(7, 0, 6, &[3], 0), PINNED);
    }

    const PINNED: &str = "heavy west center upon below filled";
}
