//! What counting costs on the measured path: per gap, per content event, per request.

use divan::{Bencher, black_box};
use tokload::metrics::{Gaps, Outcome, Record, Tally, TokenSource};
use tokload::stats::Histogram;
use tokload::time::Stamp;

fn main() {
    divan::main();
}

/// Gaps about 20 ms with a spread of a quarter: as many buckets in use as a real server fills.
const GAPS: usize = 1024;

fn gaps_ns() -> Vec<u64> {
    let mut state = 1_u64;
    (0..GAPS)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            17_500_000 + (state >> 40) % 5_000_000
        })
        .collect()
}

#[divan::bench]
fn histogram_record(bencher: Bencher<'_, '_>) {
    let (list, mut histogram) = (gaps_ns(), Histogram::new());
    bencher.counter(divan::counter::ItemsCount::new(GAPS)).bench_local(|| {
        black_box(&list).iter().for_each(|ns| histogram.record(*ns));
    });
}

#[divan::bench]
fn gaps_record(bencher: Bencher<'_, '_>) {
    let (list, mut gaps) = (gaps_ns(), Gaps::with_capacity(GAPS));
    bencher.counter(divan::counter::ItemsCount::new(GAPS)).bench_local(|| {
        gaps.clear();
        black_box(&list).iter().for_each(|ns| gaps.record(*ns));
        gaps.len()
    });
}

#[divan::bench]
fn gaps_record_tokens(bencher: Bencher<'_, '_>) {
    let (list, mut gaps) = (gaps_ns(), Gaps::with_capacity(GAPS));
    bencher.counter(divan::counter::ItemsCount::new(GAPS)).bench_local(|| {
        gaps.clear();
        black_box(&list).iter().for_each(|ns| gaps.record_tokens(*ns, 1));
        gaps.len()
    });
}

#[divan::bench]
fn tally_on_content(bencher: Bencher<'_, '_>) {
    let mut tally = Tally::new(Stamp::ZERO);
    let stamps: Vec<Stamp> = (0..GAPS as u64).map(|i| Stamp::from_millis(i * 20)).collect();
    bencher.counter(divan::counter::ItemsCount::new(GAPS)).bench_local(|| {
        black_box(&stamps).iter().for_each(|at| tally.on_content(*at, 1));
    });
}

/// A request of 64 events and its gaps.
fn request() -> (Record, Gaps) {
    let mut gaps = Gaps::with_capacity(64);
    gaps_ns()[..63].iter().for_each(|ns| gaps.record(*ns));
    let mut record = Record::planned(0, Stamp::from_millis(1000));
    record.outcome = Outcome::ok(200);
    record.conn = Some(record.start);
    record.byte = Some(Stamp::from_millis(1190));
    (record.first, record.answer) = (Some(Stamp::from_millis(1200)), Some(Stamp::from_millis(1200)));
    (record.last, record.end) = (Some(Stamp::from_millis(2460)), Stamp::from_millis(2461));
    (record.events, record.output_tokens) = (64, Some(64));
    (record.output_source, record.stall_ns) = (TokenSource::Usage, gaps.stall().into());
    (record, gaps)
}

/// A whole request, its gaps by both kinds of stamps.
#[divan::bench]
fn tally_on_done(bencher: Bencher<'_, '_>) {
    let (record, gaps) = request();
    let mut tally = Tally::new(Stamp::ZERO);
    bencher.bench_local(|| tally.on_done(black_box(&record), &gaps, &gaps, Stamp::ZERO));
}

/// One shard into another at the end of a level.
#[divan::bench]
fn tally_merge(bencher: Bencher<'_, '_>) {
    let (record, gaps) = request();
    let (mut tally, mut other) = (Tally::new(Stamp::ZERO), Tally::new(Stamp::ZERO));
    other.on_done(&record, &gaps, &gaps, Stamp::ZERO);
    bencher.bench_local(|| tally.merge(black_box(&other)));
}
