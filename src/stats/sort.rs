//! Sorting: of what a level has hundreds of thousands of by the digits in which the keys differ, and of the few things of a
//! table, of many kinds, by one sort for all kinds.
//!
//! Latencies in whole nanoseconds differ in two or three digits of 11 bits, where comparing takes some seventeen steps. Few
//! items, and keys that differ in many digits, are compared.

use std::cmp::Ordering;

/// Sorts `values` in the order of [`f64::total_cmp`].
pub fn values(values: &mut Vec<f64>) {
    if !by_digits(values, |value| total_order(*value)) {
        values.sort_unstable_by(f64::total_cmp);
    }
}

/// Sorts `items` by `key`, equal ones staying in their order.
pub fn by_key<T: Copy>(items: &mut Vec<T>, key: impl Fn(&T) -> u64) {
    if !by_digits(items, &key) {
        items.sort_by_key(key);
    }
}

/// Sorts few `items`, equal ones staying in their order.
///
/// What is sorted is their places, by the one sort that is compiled for all: a sort of its own for each kind of thing that a
/// report lists was a twentieth of the whole program's build.
pub fn few_by<T>(items: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    let mut order = places(items.len(), &|a, b| compare(&items[a], &items[b]));
    for first in 0..order.len() {
        // Along a cycle of moves, until the one whose place the first had.
        let mut at = first;
        loop {
            let from = std::mem::replace(&mut order[at], at);
            if from == first {
                break;
            }
            items.swap(at, from);
            at = from;
        }
    }
}

/// The same by a key.
pub fn few_by_key<T, K: Ord>(items: &mut [T], key: impl Fn(&T) -> K) {
    few_by(items, |a, b| key(a).cmp(&key(b)));
}

/// The places `0..n` in the order of what stands there.
fn places(n: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..n).collect();
    places.sort_by(|a, b| compare(*a, *b));
    places
}

/// An integer that stands among others as `value` does among numbers.
#[inline]
fn total_order(value: f64) -> u64 {
    let bits = value.to_bits();
    let is_negative = bits >> 63 == 1;
    if is_negative { !bits } else { bits | 1 << 63 }
}

/// Sorts where that takes few passes, and says whether it did.
fn by_digits<T: Copy>(items: &mut Vec<T>, key: impl Fn(&T) -> u64) -> bool {
    let Some(first) = items.first().map(&key) else { return true };
    let (mut differing, mut last, mut is_sorted) = (0, first, true);
    for item in items.iter() {
        let key = key(item);
        differing |= key ^ first;
        is_sorted &= last <= key;
        last = key;
    }
    if is_sorted {
        return true;
    }
    let lowest = differing.trailing_zeros();
    let bits = u64::BITS - differing.leading_zeros() - lowest;
    let passes = bits.div_ceil(DIGIT_BITS);
    if items.len() < DIGITS_FROM || passes > PASSES_MAX {
        return false;
    }
    let width = bits.div_ceil(passes);
    let mut sorted = items.clone();
    let mut places = vec![0; 1 << width];
    for pass in 0..passes {
        let digit = |item: &T| (key(item) >> (lowest + pass * width)) as usize & ((1 << width) - 1);
        places.fill(0);
        items.iter().for_each(|item| places[digit(item)] += 1);
        // From how many there are of each digit to where its first one goes.
        let mut next = 0;
        for place in &mut places {
            next += std::mem::replace(place, next);
        }
        for item in items.iter() {
            let place = &mut places[digit(item)];
            sorted[*place] = *item;
            *place += 1;
        }
        std::mem::swap(items, &mut sorted);
    }
    true
}

/// Bits of a digit: the counts of its values fit in the nearest cache.
const DIGIT_BITS: u32 = 11;
/// Digits at most: of more, comparing is as quick.
const PASSES_MAX: u32 = 4;
/// Items at least: with fewer, the counts cost more than they save.
const DIGITS_FROM: usize = 2048;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;

    #[test]
    fn values_stand_as_comparing_them_puts_them() {
        let mut stream = rng::stream(1, rng::Purpose::Choice, 0);
        let mut draw = |n| rng::below(&mut stream, n);
        for n in [0, 1, 2, 100, DIGITS_FROM - 1, DIGITS_FROM, 5000] {
            for kind in 0..6 {
                let mut sorted: Vec<f64> = (0..n)
                    .map(|i| match kind {
                        0 => f64::from(draw(50)),
                        1 => 1e6 + f64::from(draw(4_000_000_000)),
                        2 => f64::from(draw(1 << 30)) / f64::from(1 + draw(1 << 30)),
                        3 => f64::from(draw(2000)) - 1000.0,
                        4 => [0.0, -0.0, f64::INFINITY, f64::NAN, -f64::NAN, f64::MIN][draw(6) as usize],
                        _ => f64::from(i as u32),
                    })
                    .collect();
                let mut expected = sorted.clone();
                expected.sort_by(f64::total_cmp);
                values(&mut sorted);
                let bits = |all: &[f64]| all.iter().map(|one| one.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&sorted), bits(&expected), "n {n} kind {kind}");
            }
        }
    }

    #[test]
    fn equal_keys_stay_in_their_order() {
        let mut stream = rng::stream(2, rng::Purpose::Choice, 0);
        for shift in [0, 5, 40, 60] {
            for below in [1, 3, 1 << 12, u32::MAX] {
                let mut items: Vec<(u64, usize)> = (0..2 * DIGITS_FROM)
                    .map(|i| (u64::from(rng::below(&mut stream, below)) << shift, i))
                    .collect();
                let mut expected = items.clone();
                expected.sort();
                by_key(&mut items, |item| item.0);
                assert!(items == expected, "shift {shift} below {below}");
            }
        }
    }

    #[test]
    fn few_of_any_kind_stand_as_a_stable_sort_puts_them() {
        let mut stream = rng::stream(3, rng::Purpose::Choice, 0);
        for n in 0..60 {
            let mut items: Vec<(u32, String)> =
                (0..n).map(|i| (rng::below(&mut stream, 8), i.to_string())).collect();
            let mut expected = items.clone();
            expected.sort_by_key(|item| item.0);
            few_by_key(&mut items, |item| item.0);
            assert_eq!(items, expected);
            expected.sort_by(|a, b| b.1.cmp(&a.1));
            few_by(&mut items, |a, b| b.1.cmp(&a.1));
            assert_eq!(items, expected);
        }
    }
}
