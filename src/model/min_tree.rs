//! The least of many numbers that change one at a time: which replica ends its step next, which has the least to do.

/// A tournament over a fixed number of places: each inner node is the lesser of its two children.
#[derive(Clone, Debug)]
pub(super) struct MinTree {
    /// Node 1 is the root, the children of node `i` are `2i` and `2i + 1`; places begin at half of the length.
    nodes: Vec<u64>,
}

impl MinTree {
    /// `places` places that all hold `value`.
    pub(super) fn new(places: usize, value: u64) -> MinTree {
        let leaves = places.max(1).next_power_of_two();
        let mut tree = MinTree { nodes: vec![u64::MAX; 2 * leaves] };
        (0..places).for_each(|place| tree.set(place, value));
        tree
    }

    /// Puts `value` into `place`.
    #[inline]
    pub(super) fn set(&mut self, place: usize, value: u64) {
        let mut node = self.leaves() + place;
        self.nodes[node] = value;
        while node > 1 {
            let least = self.nodes[node].min(self.nodes[node ^ 1]);
            node /= 2;
            if self.nodes[node] == least {
                return;
            }
            self.nodes[node] = least;
        }
    }

    /// The least of all.
    #[inline]
    pub(super) fn min(&self) -> u64 {
        self.nodes[1]
    }

    /// The first place from `from` on whose value is at most `bound`.
    #[inline]
    pub(super) fn first_at_most(&self, from: usize, bound: u64) -> Option<usize> {
        let mut node = self.leaves() + from;
        while self.nodes[node] > bound {
            // On to the subtree that begins where this one ends; a right child ends where its parent does.
            while node % 2 == 1 {
                node /= 2;
            }
            if node == 0 {
                return None;
            }
            node += 1;
        }
        while node < self.leaves() {
            node *= 2;
            if self.nodes[node] > bound {
                node += 1;
            }
        }
        Some(node - self.leaves())
    }

    fn leaves(&self) -> usize {
        self.nodes.len() / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{self, Purpose};

    #[test]
    fn it_is_the_least_and_the_first_of_a_plain_list() {
        let mut draws = rng::stream(1, Purpose::Choice, 0);
        for places in [1, 2, 3, 7, 8, 100] {
            let mut tree = MinTree::new(places, 5);
            let mut list = vec![5; places];
            for _ in 0..500 {
                let (place, value) =
                    (rng::below(&mut draws, places as u32) as usize, rng::below(&mut draws, 10));
                tree.set(place, u64::from(value));
                list[place] = u64::from(value);
                assert_eq!(tree.min(), *list.iter().min().unwrap());
                let from = rng::below(&mut draws, places as u32) as usize;
                let bound = u64::from(rng::below(&mut draws, 10));
                let first = (from..places).find(|place| list[*place] <= bound);
                assert_eq!(tree.first_at_most(from, bound), first);
            }
        }
    }
}
