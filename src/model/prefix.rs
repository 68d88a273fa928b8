//! The prefix cache: which blocks of which prompts have been computed, and which is forgotten next.
//!
//! It knows hashes alone. That a hash stands for the whole prompt up to the end of its block is its maker's part.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::settings::{FullHit, PrefixCache};

/// The hashes of the whole blocks of a prompt, for [`Job::blocks`](super::Job::blocks).
///
/// `tokens` are any numbers that stand for its tokens, for example hashes of its words; what is left after the last
/// whole block is passed over. A `block_tokens` of 0 gives no blocks.
pub fn block_hashes(tokens: impl IntoIterator<Item = u64>, block_tokens: u32) -> Arc<[u64]> {
    // Not zero, which an odd token may leave as it is.
    let (mut chained, mut filled) = (1, 0);
    let block = |token: u64| {
        chained = mix(chained ^ mix(token));
        filled += 1;
        (filled == block_tokens).then(|| {
            filled = 0;
            chained
        })
    };
    tokens.into_iter().filter_map(block).collect()
}

/// Blocks in the order of their last use.
#[derive(Debug)]
pub(super) struct Cache {
    settings: PrefixCache,
    places: HashMap<u64, u32, BuildHasherDefault<Mixing>>,
    blocks: Vec<Block>,
    /// Ends of the list; meaningless while there are no blocks.
    newest: u32,
    oldest: u32,
}

/// A block as part of a doubly linked list. The neighbours of the ends are meaningless.
#[derive(Clone, Copy, Debug)]
struct Block {
    hash: u64,
    newer: u32,
    older: u32,
}

impl Cache {
    pub(super) fn new(settings: PrefixCache) -> Cache {
        Cache { settings, places: HashMap::default(), blocks: Vec::new(), newest: 0, oldest: 0 }
    }

    /// How many tokens of a prompt need not be computed.
    pub(super) fn saved_tokens(&self, blocks: &[u64], prompt_tokens: u32) -> u32 {
        let PrefixCache { block_tokens, full_hit, .. } = self.settings;
        let held = self.whole(blocks, prompt_tokens).iter().take_while(|hash| self.places.contains_key(hash));
        let tokens = held.count() as u32 * block_tokens;
        let most = prompt_tokens.saturating_sub(1);
        match full_hit {
            FullHit::LastBlock => tokens.min(most / block_tokens * block_tokens),
            FullHit::OneToken => tokens.min(most),
        }
    }

    /// Takes note of a computed prompt: all its blocks have been used now.
    pub(super) fn keep(&mut self, blocks: &[u64], prompt_tokens: u32) {
        // From the end, so that its beginning is the newest and outlives it: a block is of no use without those
        // before it.
        let first = self.whole(blocks, prompt_tokens);
        for hash in first.iter().rev() {
            self.touch(*hash);
        }
    }

    /// Forgets all blocks.
    pub(super) fn clear(&mut self) {
        self.places.clear();
        self.blocks.clear();
    }

    /// Number of blocks in it.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    fn whole<'a>(&self, blocks: &'a [u64], prompt_tokens: u32) -> &'a [u64] {
        let whole = (prompt_tokens / self.settings.block_tokens) as usize;
        &blocks[..blocks.len().min(whole)]
    }

    fn touch(&mut self, hash: u64) {
        let full = self.settings.blocks_max.is_some_and(|most| self.blocks.len() >= most as usize);
        match self.places.get(&hash) {
            Some(&place) => {
                self.unlink(place);
                self.link(place);
            }
            None if self.blocks.is_empty() && full => {}
            None if full => {
                let place = self.oldest;
                self.unlink(place);
                let forgotten = std::mem::replace(&mut self.blocks[place as usize].hash, hash);
                self.places.remove(&forgotten);
                self.places.insert(hash, place);
                self.link(place);
            }
            None => {
                let place = self.blocks.len() as u32;
                self.blocks.push(Block { hash, newer: place, older: place });
                self.places.insert(hash, place);
                if place == 0 {
                    (self.newest, self.oldest) = (0, 0);
                } else {
                    self.link(place);
                }
            }
        }
    }

    fn unlink(&mut self, place: u32) {
        let Block { newer, older, .. } = self.blocks[place as usize];
        if place == self.newest {
            self.newest = older;
        } else {
            self.blocks[newer as usize].older = older;
        }
        if place == self.oldest {
            self.oldest = newer;
        } else {
            self.blocks[older as usize].newer = newer;
        }
    }

    /// Makes a block outside of the list its newest.
    fn link(&mut self, place: u32) {
        if self.blocks.len() == 1 {
            return;
        }
        self.blocks[place as usize].older = self.newest;
        self.blocks[self.newest as usize].newer = place;
        self.newest = place;
    }
}

/// Hashes are hashes already, or small numbers of somebody's own: one multiplication spreads them.
#[derive(Default)]
struct Mixing(u64);

impl Hasher for Mixing {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A bijection under which numbers that differ little differ everywhere (the finaliser of MurmurHash3).
fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let number = (number ^ (number >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    number ^ (number >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{self, Purpose};

    fn cache(blocks_max: Option<u32>, full_hit: FullHit) -> Cache {
        Cache::new(PrefixCache { block_tokens: 16, blocks_max, full_hit })
    }

    #[test]
    fn hashes_agree_as_far_as_prompts_do_and_not_behind() {
        let prompt = |n: u64, odd: Option<u64>| (0..n).map(move |i| if Some(i) == odd { 999 } else { i });
        let one = block_hashes(prompt(100, None), 16);
        assert_eq!(one.len(), 6);
        assert_eq!(block_hashes(prompt(96, None), 16), one);
        let other = block_hashes(prompt(100, Some(40)), 16);
        assert_eq!(other[..2], one[..2]);
        assert!(other[2..].iter().zip(&one[2..]).all(|(a, b)| a != b));
        assert!(block_hashes(prompt(100, None), 0).is_empty());
    }

    #[test]
    fn whole_blocks_are_saved_and_something_is_always_computed() {
        for (full_hit, of_1024) in [(FullHit::OneToken, 1023), (FullHit::LastBlock, 1008)] {
            let mut cache = cache(None, full_hit);
            let blocks = block_hashes(0..1030, 16);
            assert_eq!(cache.saved_tokens(&blocks, 1030), 0);
            cache.keep(&blocks, 1030);
            assert_eq!(cache.len(), 64);
            assert_eq!(cache.saved_tokens(&blocks, 1030), 1024);
            assert_eq!(cache.saved_tokens(&blocks, 1024), of_1024);
            assert_eq!(cache.saved_tokens(&block_hashes(0..20, 16), 20), 16);
            assert_eq!(cache.saved_tokens(&block_hashes(1..1000, 16), 999), 0);
            assert_eq!(cache.saved_tokens(&[], 1000), 0);
            assert_eq!(cache.saved_tokens(&blocks, 0), 0, "more blocks than the prompt has");
        }
    }

    #[test]
    fn the_end_of_a_prompt_is_forgotten_before_its_beginning() {
        let mut cache = cache(Some(4), FullHit::OneToken);
        cache.keep(&[1, 2, 3], 48);
        cache.keep(&[7, 8], 32);
        assert_eq!(cache.saved_tokens(&[1, 2, 3], 49), 32);
        assert_eq!(cache.saved_tokens(&[7, 8], 33), 32);
        cache.keep(&[21, 22, 23, 24, 25, 26], 96);
        assert_eq!(cache.saved_tokens(&[21, 22, 23, 24, 25, 26], 97), 64);
        assert_eq!(cache.len(), 4);
    }

    /// Against a plain list, newest first.
    #[test]
    fn it_forgets_what_a_plain_list_forgets() {
        let mut draws = rng::stream(3, Purpose::Choice, 0);
        for most in [0, 1, 2, 5, 40] {
            let mut cache = cache(Some(most), FullHit::OneToken);
            let mut list: Vec<u64> = Vec::new();
            for _ in 0..2000 {
                let start = u64::from(rng::below(&mut draws, 60));
                let blocks: Vec<u64> = (start..start + u64::from(rng::below(&mut draws, 6))).collect();
                let tokens = blocks.len() as u32 * 16;
                let held = blocks.iter().take_while(|block| list.contains(block)).count() as u32;
                assert_eq!(cache.saved_tokens(&blocks, tokens + 1), held * 16);
                cache.keep(&blocks, tokens);
                for block in blocks.iter().rev() {
                    list.retain(|held| held != block);
                    list.insert(0, *block);
                    list.truncate(most as usize);
                }
                assert_eq!(cache.len(), list.len());
            }
        }
    }
}
