//! The histogram against its values one by one, and against the crate whose form it has.

use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer};

use super::*;
use crate::rng;
use crate::stats::quantile;

/// Values spread over all magnitudes, with zeros and repeats.
fn values(seed: u64, n: usize) -> Vec<u64> {
    let mut stream = rng::stream(seed, rng::Purpose::Choice, 0);
    (0..n)
        .map(|_| {
            let magnitude = rng::below(&mut stream, 42);
            (rng::unit(&mut stream) * (1_u64 << magnitude) as f64) as u64
        })
        .map(|ns| ns.min(Histogram::HIGHEST_NS))
        .collect()
}

fn new_hdr() -> Hdr {
    Hdr::new_with_bounds(1, Histogram::HIGHEST_NS, Histogram::DIGITS)
        .expect("the bounds are constant and valid")
}

fn of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    values.iter().for_each(|ns| histogram.record(*ns));
    histogram
}

#[test]
fn ascending_values_are_counted_as_one_by_one() {
    for n in [0, 1, 7, 4000] {
        let mut ascending = values(n as u64, n);
        ascending.extend((n > 1).then_some(Histogram::HIGHEST_NS + 5));
        ascending.sort_unstable();
        let mut together = of(&[3, 3]);
        together.record_ascending(ascending.iter().copied());
        let mut one_by_one = of(&[3, 3]);
        ascending.iter().for_each(|ns| one_by_one.record(*ns));
        assert_eq!(together, one_by_one);
        assert_eq!((together.n(), together.overflow()), (n as u64 + 2 + u64::from(n > 1), u64::from(n > 1)));
    }
}

#[test]
fn codes_are_the_buckets_of_the_wrapped_crate() {
    let reference = new_hdr();
    assert_eq!(reference.distinct_values(), usize::from(Histogram::BUCKETS));
    let edges = (0..42).flat_map(|bits| {
        let power = 1_u64 << bits;
        [power - 1, power, power + 1, power + power / 2]
    });
    for ns in values(3, 2000).into_iter().chain(edges).map(|ns| ns.min(Histogram::HIGHEST_NS)) {
        let code = Histogram::bucket_of(ns);
        assert_eq!(Histogram::bucket_lowest(code), reference.lowest_equivalent(ns), "{ns}");
        assert_eq!(Histogram::bucket_highest(code), reference.highest_equivalent(ns), "{ns}");
    }
}

#[test]
fn foreign_histograms_are_read_in_their_unit_and_digits() {
    let own = of(&[1, 5_000, 5_000, 70_000_000]);
    assert_eq!(Histogram::from_foreign(&own.to_base64(), 1).unwrap().counts, own.counts);
    // Microseconds of two digits: 1000 shares a bucket of 8 with its neighbours, and 3000 ns one of ours with 3001.
    let mut coarse = Hdr::new_with_bounds(1, 1_000_000, 2).unwrap();
    coarse.record_n(3, 2).unwrap();
    coarse.record(1_000).unwrap();
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&coarse, &mut bytes).unwrap();
    let read = Histogram::from_foreign(&BASE64_STANDARD.encode(bytes), 1_000).unwrap();
    assert_eq!((read.n(), read.quantile(Quantile::P50)), (3, Some(3_001)));
    let highest = coarse.highest_equivalent(1_000) * 1_000;
    assert_eq!(read.at_rank(3), Some(Histogram::bucket_highest(Histogram::bucket_of(highest))));
    assert_eq!(Histogram::from_foreign("*", 1), Err(DecodeError::Base64));
    assert_eq!(Histogram::from_foreign("AAAA", 1), Err(DecodeError::Format));
}

#[test]
fn codes_follow_each_other_without_gap() {
    for code in 0..Histogram::BUCKETS - 1 {
        assert_eq!(Histogram::bucket_highest(code) + 1, Histogram::bucket_lowest(code + 1));
        if Histogram::bucket_lowest(code) <= Histogram::HIGHEST_NS {
            assert_eq!(Histogram::bucket_of(Histogram::bucket_lowest(code)), code);
        }
    }
}

#[test]
fn quantiles_are_those_of_the_sorted_list_up_to_the_bucket() {
    for (seed, n) in [(1, 1), (2, 2), (3, 10), (4, 99), (5, 1000), (6, 2500)] {
        let mut sorted = values(seed, n);
        let histogram = of(&sorted);
        sorted.sort_unstable();
        for parts in (0..=100_000).step_by(9_990).chain([99_900, 99_000, 50_000, 100_000]) {
            let q = Quantile::from_parts(parts).unwrap();
            let exact = quantile::nearest_rank(&sorted, q).unwrap();
            let bucket = Histogram::bucket_of(exact);
            assert_eq!(histogram.quantile(q), Some(Histogram::bucket_highest(bucket)), "n {n} {q}");
        }
    }
    assert_eq!(Histogram::new().quantile(Quantile::P50), None);
}

#[test]
fn a_reported_quantile_is_at_most_a_thousandth_too_high() {
    for ns in values(8, 2000) {
        let shown = of(&[ns]).quantile(Quantile::P50).unwrap();
        assert!(shown >= ns && (shown - ns) as f64 <= ns as f64 / 1000.0, "{ns} {shown}");
    }
}

#[test]
fn what_is_shown_lies_between_the_exact_extremes() {
    let histogram = of(&[195_905; 100]);
    assert_eq!(histogram.quantile(Quantile::P99), Some(195_967), "the end of the bucket");
    assert_eq!(histogram.shown_quantile(Quantile::P99), Some(195_905));
    assert_eq!((histogram.shown_at_rank(100), histogram.shown_at_rank(101)), (Some(195_905), None));
    // Below the maximum's bucket nothing changes.
    let two = of(&[195_905, 1_000_000]);
    assert_eq!(two.shown_quantile(Quantile::P50), Some(195_967));
    // What the buckets cannot hold is at least what it is known to be.
    let beyond = of(&[Histogram::HIGHEST_NS * 3]);
    assert_eq!(beyond.shown_quantile(Quantile::P50), Some(Histogram::HIGHEST_NS * 3));
    assert_eq!(Histogram::new().shown_quantile(Quantile::P50), None);
}

#[test]
fn an_overflow_is_clamped_and_counted() {
    let histogram = of(&[5, Histogram::HIGHEST_NS, Histogram::HIGHEST_NS + 1, u64::MAX]);
    assert_eq!(histogram.overflow(), 2);
    assert_eq!(histogram.n(), 4);
    assert_eq!(histogram.totals().max(), Some(u64::MAX));
    let last = Histogram::bucket_highest(Histogram::LAST);
    assert_eq!(histogram.quantile(Quantile::MAX), Some(last));
    assert_eq!(Histogram::bucket_of(u64::MAX), Histogram::bucket_of(Histogram::HIGHEST_NS));
}

#[test]
fn merging_histograms_is_recording_both() {
    let (left, right) = (values(10, 700), values(11, 900));
    let all = of(&[left.clone(), right.clone()].concat());
    let (mut a, mut b) = (of(&left), of(&right));
    let before = a.clone();
    a.merge(&b);
    b.merge(&before);
    assert_eq!(a, all);
    assert_eq!(b, all);
    a.merge(&Histogram::new());
    assert_eq!(a, all);
    assert_ne!(a, before);
}

#[test]
fn bucket_codes_lose_nothing_against_the_histogram() {
    let list = values(12, 800);
    let (mut by_code, mut totals) = (Histogram::new(), Totals::new());
    for ns in &list {
        by_code.record_bucket(Histogram::bucket_of(*ns), 1);
        totals.record(*ns);
    }
    by_code.add_totals(&totals, 0);
    assert_eq!(by_code, of(&list));
    by_code.record_bucket(u16::MAX, 1);
    assert_eq!(by_code.at_rank(801), Some(Histogram::bucket_highest(Histogram::LAST)));
}

#[test]
fn a_repeated_value_is_that_many_values() {
    let mut once = Histogram::new();
    once.record_n(1_234_567, 3);
    once.record_n(9, 0);
    assert_eq!(once, of(&[1_234_567; 3]));
}

#[test]
fn correction_fills_in_down_to_the_interval() {
    let mut filled = Histogram::new();
    filled.record_corrected(350, 100);
    filled.record_corrected(99, 100);
    filled.record_corrected(7, 0);
    assert_eq!(filled, of(&[350, 250, 150, 99, 7]));
    let mut exact = Histogram::new();
    exact.record_corrected(200, 100);
    assert_eq!(exact, of(&[200, 100]));
}

#[test]
fn the_stored_form_comes_back() {
    for list in [vec![], vec![0], vec![Histogram::HIGHEST_NS], values(20, 500)] {
        let histogram = of(&list);
        let read = Histogram::from_base64(&histogram.to_base64()).unwrap();
        assert_eq!(read.clone().with_totals(*histogram.totals(), 0), histogram);
        assert_eq!(read.n(), histogram.n());
    }
}

/// Of any counts, so that files are what they were.
#[test]
fn the_stored_form_is_that_of_the_crate_byte_for_byte() {
    let several = |mut list: Vec<u64>, times: usize| {
        list.extend(vec![77_777; times]);
        list
    };
    let mut lists = vec![vec![], vec![0], vec![1], vec![0, 2], vec![0, 3], vec![Histogram::HIGHEST_NS]];
    lists.extend((0..40).map(|seed| several(values(seed, 1 << (seed % 12)), 1 << (seed % 17))));
    lists.push((0..5000).collect());
    for list in lists {
        let histogram = of(&list);
        assert_eq!(histogram.to_base64(), by_the_crate(&histogram));
    }
    for count in (0..63).map(|bit| 1 << bit).chain([u64::from(u32::MAX), i64::MAX as u64]) {
        let mut histogram = of(&[5]);
        histogram.record_n(1_000_000, count);
        assert_eq!(histogram.to_base64(), by_the_crate(&histogram));
    }
}

fn by_the_crate(histogram: &Histogram) -> String {
    let mut counts = new_hdr();
    for Bucket { lowest, count, .. } in histogram.buckets() {
        counts.saturating_record_n(lowest, count);
    }
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&counts, &mut bytes).unwrap();
    BASE64_STANDARD.encode(bytes)
}

#[test]
fn other_hdr_tools_and_we_read_each_other() {
    let mut theirs = Hdr::new_with_bounds(1, 60_000_000, 3).unwrap();
    theirs.record_n(50_000, 7).unwrap();
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&theirs, &mut bytes).unwrap();
    let ours = Histogram::from_base64(&BASE64_STANDARD.encode(&bytes)).unwrap();
    assert_eq!(ours.buckets().collect::<Vec<_>>(), [Bucket { lowest: 49_984, highest: 50_015, count: 7 }]);
    assert_eq!(ours.totals().sum(), 7 * 50_000);

    let bytes = BASE64_STANDARD.decode(of(&[50_000; 7]).to_base64()).unwrap();
    let read: Hdr = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
    assert_eq!((read.len(), read.max()), (7, 50_015));
    assert!(of(&[1]).to_base64().starts_with("HISTFAA"), "the mark that readers of HDR logs look for");
}

#[test]
fn what_is_no_histogram_of_ours_is_refused() {
    let stored = |counts: &Hdr| {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new().serialize(counts, &mut bytes).unwrap();
        Histogram::from_base64(&BASE64_STANDARD.encode(bytes))
    };
    assert_eq!(Histogram::from_base64("*"), Err(DecodeError::Base64));
    assert_eq!(Histogram::from_base64(""), Err(DecodeError::Format));
    assert_eq!(Histogram::from_base64("HISTFAAAAA=="), Err(DecodeError::Format));
    assert_eq!(stored(&Hdr::new_with_bounds(1, 1000, 2).unwrap()), Err(DecodeError::Shape));
    let mut days = Hdr::new_with_bounds(1, 1 << 50, 3).unwrap();
    days.record(1 << 49).unwrap();
    assert_eq!(stored(&days), Err(DecodeError::Range));
}
