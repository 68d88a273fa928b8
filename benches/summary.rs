//! What it costs at the end of a level to make its numbers of a million records.

use divan::Bencher;
use tokload::metrics::{Flags, Outcome, Record, Tally, TokenSource};
use tokload::plan::{Slo, SteadyCut, Timestamps};
use tokload::run::{Span, Window};
use tokload::summary::{self, Input, Users};
use tokload::time::Stamp;

fn main() {
    divan::main();
}

const RECORDS: u64 = 1_000_000;
const MS: u64 = 1_000_000;

/// A thousand requests per second with latencies that wander, in the order of their ends.
fn records() -> Vec<Record> {
    let (mut state, mut wave) = (1_u64, 0_i64);
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % n
    };
    let mut records: Vec<Record> = (0..RECORDS)
        .map(|index| {
            let plan = index * MS;
            wave = (wave + below(201) as i64 - 100).clamp(0, 20_000);
            let at = Stamp::from_nanos;
            let first = plan + 20 * MS + wave as u64 * 10_000 + below(MS);
            let last = first + 60 * (5 * MS + below(MS));
            let mut record = Record::planned(index, at(plan));
            record.outcome = Outcome::ok(200);
            record.start = at(plan + below(100_000));
            (record.first, record.answer, record.last) = (Some(at(first)), Some(at(first)), Some(at(last)));
            record.end = at(last + 50_000);
            (record.events, record.output_tokens, record.prompt_tokens) = (61, Some(61), Some(200));
            record.output_source = TokenSource::Usage;
            record.stall_ns = (6 * MS + below(MS)).into();
            record
        })
        .collect();
    records.sort_by_key(|record| record.end);
    records
}

fn input<'a>(records: &'a [Record], tally: &'a Tally, steady_cut: SteadyCut) -> Input<'a> {
    let end = Stamp::from_millis(RECORDS);
    Input {
        records: Some(records),
        tally,
        window: Window { start: Stamp::from_millis(RECORDS / 10), end, whole_level: false },
        steady_cut,
        span: Span { t0: Stamp::ZERO, t1: end, t2: Stamp::from_millis(RECORDS + 1000) },
        slo: Slo::usual(),
        from_plan: true,
        timestamps: Timestamps::Both,
        steady_from_s: Some(0.0),
        users: None,
        counted: None,
    }
}

#[divan::bench(args = [SteadyCut::Default, SteadyCut::Mser5], sample_count = 5)]
fn an_open_loop_of_a_million(bencher: Bencher<'_, '_>, steady_cut: SteadyCut) {
    let (records, tally) = (records(), Tally::default());
    bencher.bench_local(|| summary::level(&input(&records, &tally, steady_cut)));
}

/// Answers that came as one body, on connections of which one in a thousand was opened for its request.
#[divan::bench(sample_count = 5)]
fn whole_bodies_of_a_million(bencher: Bencher<'_, '_>) {
    let (mut records, tally) = (records(), Tally::default());
    for record in &mut records {
        (record.first, record.answer, record.last, record.stall_ns) = (None, None, None, None.into());
        (record.events, record.conn) = (0, Some(record.start));
        record.flags.insert(Flags::WHOLE_BODY);
        if record.index % 1000 == 0 {
            record.flags.insert(Flags::FRESH_CONNECTION);
        }
    }
    let users = Some(Users { n: 64, think_s: 0.0 });
    let input = Input { from_plan: false, users, ..input(&records, &tally, SteadyCut::Default) };
    bencher.bench_local(|| summary::level(&input));
}

#[divan::bench(sample_count = 5)]
fn a_closed_loop_of_a_million(bencher: Bencher<'_, '_>) {
    let (records, tally) = (records(), Tally::default());
    let users = Some(Users { n: 500, think_s: 0.0 });
    let input = Input { from_plan: false, users, ..input(&records, &tally, SteadyCut::Default) };
    bencher.bench_local(|| summary::level(&input));
}
