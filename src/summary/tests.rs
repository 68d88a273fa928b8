use super::*;
use crate::metrics::{Class, Flags, Gaps, Kind, Outcome, Phase, TokenSource};
use crate::plan::SteadyCut;
use crate::rng::{self, Purpose};
use crate::stats::totals::FloatSum;
use crate::time::Stamp;

const MS: u64 = 1_000_000;

fn at(ms: u64) -> Stamp {
    Stamp::from_millis(ms)
}

/// Requests over 10 s with all outcomes, of up to 30 events and up to 2 tokens in each.
fn random_records(seed: u64, n: usize) -> Vec<Record> {
    let mut s = rng::stream(seed, Purpose::Choice, 0);
    (0..n as u64)
        .map(|index| {
            let mut below = |n| u64::from(rng::below(&mut s, n));
            let plan = Stamp::from_nanos(below(1_000_000_000) * 10);
            let mut record = Record::planned(index, plan);
            let after = |from: Stamp, ns: u64| Stamp::from_nanos(from.as_nanos() + ns);
            record.permit = after(plan, below(5) * MS);
            record.start = after(record.permit, below(300_000));
            record.end = after(record.start, below(3000) * MS);
            match below(10) {
                0 => record.outcome = Outcome::new(Class::Reset, Kind::NoResponse, 0),
                1 => record.outcome = Outcome::new(Class::Cancelled, Kind::None, 200),
                _ => {
                    record.outcome = Outcome::ok(200);
                    record.events = 1 + below(30) as u32;
                    let first = after(record.start, below(400) * MS);
                    let gaps = u64::from(record.events - 1);
                    record.first = Some(first);
                    record.last = Some(after(first, gaps * below(50) * MS));
                    record.end = after(record.last.unwrap(), below(2_000_000));
                    record.output_tokens =
                        Some(record.events + below(u64::from(record.events) as u32 + 1) as u32);
                    record.output_source = TokenSource::Usage;
                    record.prompt_tokens = (below(4) > 0).then(|| 1 + below(500) as u32);
                    record.stall_ns = (gaps > 0).then_some(50 * MS).into();
                    if below(2) == 0 && gaps > 0 {
                        record.tokens_after_first = record.output_tokens.map(|n| n - 1).into();
                    }
                }
            }
            record
        })
        .collect()
}

fn tally_of(records: &[Record], window_start: Stamp) -> Tally {
    let mut tally = Tally::default();
    for record in records.iter().filter(|record| record.phase == Phase::Measured) {
        let mut gaps = Gaps::default();
        if let (Some(first), Some(last)) = (record.first, record.last) {
            let between = u64::from(record.events - 1);
            (0..between).for_each(|_| gaps.record(last.nanos_since(first) / between));
            (0..=between).for_each(|i| {
                let ns = last.nanos_since(first) * i / between.max(1);
                tally.on_content(Stamp::from_nanos(first.as_nanos() + ns), 1);
            });
        }
        tally.on_sent(record.start);
        tally.on_done(record, &gaps, &Gaps::default(), window_start);
    }
    tally
}

fn window(from_ms: u64, to_ms: u64) -> Window {
    Window { start: at(from_ms), end: at(to_ms), whole_level: false }
}

fn input<'a>(records: &'a [Record], tally: &'a Tally, window: Window) -> Input<'a> {
    Input {
        records: Some(records),
        tally,
        window,
        span: Span { t0: Stamp::ZERO, t1: at(10_000), t2: at(40_000) },
        slo: Slo::default(),
        from_plan: true,
        timestamps: crate::plan::Timestamps::Both,
        steady_cut: SteadyCut::Default,
        steady_from_s: Some(0.0),
        users: None,
        counted: None,
    }
}

fn summary_of(records: &[Record], window: Window) -> LevelSummary {
    let tally = tally_of(records, window.start);
    level(&input(records, &tally, window))
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// The events of an `ok` request with the tokens of each, written out one by one.
fn events(record: &Record) -> Vec<(u128, f64)> {
    let (first, last) = (record.first.unwrap(), record.last.unwrap());
    let (n, count) = (f64::from(record.output_tokens.unwrap()), record.events);
    (0..count)
        .map(|i| {
            // In units of 1 / (count - 1) ns, so that places between nanoseconds are exact.
            let scale = u128::from((count - 1).max(1));
            let at =
                u128::from(first.as_nanos()) * scale + u128::from(i) * u128::from(last.nanos_since(first));
            let tokens = match record.tokens_after_first.get() {
                Some(later) if i > 0 => f64::from(later) / f64::from(count - 1),
                Some(later) => n - f64::from(later),
                None => n / f64::from(count),
            };
            (at, tokens)
        })
        .collect()
}

#[test]
fn window_rates_are_those_of_events_counted_one_by_one() {
    for seed in 1..6 {
        let records = random_records(seed, 300);
        for (from, to) in [(2_000, 8_000), (0, 10_000), (3_333, 3_334), (9_000, 20_000)] {
            let window = window(from, to);
            let rates = summary_of(&records, window).window_rates;
            let (mut ok, mut output, mut prompt) = (0.0, 0.0, 0.0);
            for record in records.iter().filter(|record| record.outcome.is_ok()) {
                let scale = u128::from((record.events - 1).max(1));
                let inside =
                    |at: u128| u128::from(from * MS) * scale <= at && at < u128::from(to * MS) * scale;
                let stamp_inside = |at: Option<Stamp>| inside(u128::from(at.unwrap().as_nanos()) * scale);
                output += events(record).iter().filter(|(at, _)| inside(*at)).map(|(_, n)| n).sum::<f64>();
                ok += f64::from(u8::from(stamp_inside(record.last)));
                if stamp_inside(record.first) {
                    prompt += f64::from(record.prompt_tokens.unwrap_or(0));
                }
            }
            let planned =
                records.iter().filter(|record| at(from) <= record.plan && record.plan < at(to)).count();
            let span = (to - from) as f64 / 1e3;
            assert_eq!(rates.span_s, span);
            assert!(close(rates.offered_s, planned as f64 / span), "seed {seed} {from}..{to}");
            assert!(close(rates.req_s, ok / span), "seed {seed} {from}..{to}");
            assert!(close(rates.out_tok_s, output / span), "seed {seed} {from}..{to}");
            assert!(close(rates.in_tok_s, prompt / span));
            assert!(close(rates.total_tok_s, (output + prompt) / span));
        }
    }
}

#[test]
fn in_flight_is_the_count_of_open_lives_at_each_instant() {
    for seed in 1..6 {
        let mut records = random_records(seed, 60);
        // On a grid of 50 ms, so that starts and ends meet each other and the window's edges.
        let grid = |at: Stamp| Stamp::from_nanos(at.as_nanos() / (50 * MS) * (50 * MS));
        records.iter_mut().for_each(|r| (r.start, r.end) = (grid(r.start), grid(r.end)));
        let window = window(2_000, 8_000);
        let open = |t: Stamp| records.iter().filter(|r| r.start <= t && t < r.end).count() as u64;
        let instants: Vec<u64> = (2_000..8_000).step_by(50).map(|ms| open(at(ms))).collect();
        let expected = InFlight {
            mean: instants.iter().sum::<u64>() as f64 / instants.len() as f64,
            max: *instants.iter().max().unwrap(),
            at_start: open(at(2_000)),
            at_end: open(at(8_000)),
        };
        let got = summary_of(&records, window).in_flight.unwrap();
        assert!(close(got.mean, expected.mean));
        assert_eq!(InFlight { mean: expected.mean, ..got }, expected, "seed {seed}");
    }
}

#[test]
fn distributions_are_those_of_the_sorted_values() {
    let records = random_records(9, 500);
    let summary = summary_of(&records, window(1_000, 9_000));
    let population: Vec<&Record> =
        records.iter().filter(|r| at(1_000) <= r.plan && r.plan < at(9_000)).collect();
    let failed = population.iter().filter(|r| r.outcome.is_failure()).count();
    assert!(failed > 10);
    for metric in Metric::ALL.into_iter().filter(|metric| metric.is_per_request()) {
        let mut values: Vec<f64> =
            population.iter().filter(|r| r.outcome.is_ok()).filter_map(|r| metric.of(r)).collect();
        values.sort_unstable_by(f64::total_cmp);
        let Some(distribution) = summary.distribution(metric) else {
            assert!(values.is_empty(), "{}", metric.name());
            continue;
        };
        let n = values.len();
        assert_eq!((distribution.n, distribution.histogram.n()), (n as u64, n as u64));
        assert_eq!((distribution.min, distribution.max), (values[0], values[n - 1]));
        assert!(close(distribution.mean(), values.iter().sum::<f64>() / n as f64));
        let variance = values.iter().map(|v| (v - distribution.mean()).powi(2)).sum::<f64>() / n as f64;
        assert!((distribution.standard_deviation() - variance.sqrt()).abs() <= 1e-6 * distribution.max);
        for q in Quantile::REPORTED {
            let rank = |n: usize| (n * q.parts() as usize).div_ceil(100_000).max(1) - 1;
            assert_eq!(distribution.quantile(q), Some(values[rank(n)]), "{} p{q}", metric.name());
            let ranked = match values.get(rank(n + failed)) {
                Some(value) => Ranked::Value(*value),
                None => Ranked::Failed,
            };
            assert_eq!(summary.with_failures(metric, q), ranked);
        }
    }
}

/// To the bit, of so many that they are sorted by digits: one metric after another, each value compared and counted by itself.
#[test]
fn columns_are_the_metrics_one_by_one() {
    let records = random_records(11, 6000);
    let summary = summary_of(&records, window(0, 10_000));
    for metric in Metric::ALL.into_iter().filter(|metric| metric.is_per_request()) {
        let ok = records.iter().filter(|r| r.outcome.is_ok());
        let mut values: Vec<f64> = ok.filter_map(|r| metric.of(r)).collect();
        values.sort_by(f64::total_cmp);
        let Some(distribution) = summary.distribution(metric) else {
            assert!(values.is_empty(), "{}", metric.name());
            continue;
        };
        let mut histogram = Histogram::new();
        values.iter().for_each(|value| histogram.record(metric.to_ticks(*value)));
        assert_eq!(distribution.histogram, histogram, "{}", metric.name());
        let sum = |of: fn(f64) -> f64| values.iter().copied().map(of).collect::<FloatSum>().total();
        let sums = [distribution.sum, distribution.sum_of_squares].map(f64::to_bits);
        assert_eq!(sums, [sum(|value| value), sum(|value| value * value)].map(f64::to_bits));
        let quantile = |q: Quantile| values[q.rank(values.len() as u64) as usize - 1];
        assert!(Quantile::REPORTED.iter().all(|q| distribution.quantile(*q) == Some(quantile(*q))));
    }
}

#[test]
fn in_which_order_records_stand_makes_no_difference() {
    let mut records = random_records(12, 5000);
    // Bursts of some ten.
    records.iter_mut().for_each(|r| r.plan = at(r.plan.as_nanos() / (20 * MS) * 20));
    let slo = Slo { e2e_ms: Some(900.0), ttft_ms: Some(300.0), ..Slo::default() };
    let tally = tally_of(&records, at(1_000));
    let of = |records: &[Record]| level(&Input { slo, ..input(records, &tally, window(1_000, 9_000)) });
    let of_requests = |summary: &LevelSummary| {
        let statistics = summary.statistics.clone().unwrap();
        (summary.distributions.clone(), summary.goodput, statistics.latencies, statistics.attainment)
    };
    let some = of(&records);
    records.sort_by_key(|r| (r.plan, r.index));
    assert!(of_requests(&of(&records)) == of_requests(&some), "in the order of their plans");
    records.sort_by_key(|r| (r.end, std::cmp::Reverse(r.index)));
    assert!(of_requests(&of(&records)) == of_requests(&some), "in the order of their ends");
    let good = records.iter().filter(|r| at(1_000) <= r.plan && r.plan < at(9_000));
    let good = good.filter(|r| crate::metrics::slo::good(r, &slo, true)).count() as u64;
    let attainment = some.statistics.as_ref().and_then(|statistics| statistics.attainment).unwrap();
    assert_eq!((some.goodput.unwrap().good, attainment.good), (good, good));
}

#[test]
fn without_records_the_whole_level_is_the_same_up_to_the_buckets() {
    let records = random_records(4, 400);
    let tally = tally_of(&records, Stamp::ZERO);
    let window = Window { start: Stamp::ZERO, end: at(14_000), whole_level: true };
    let exact = level(&input(&records, &tally, window));
    let coarse = level(&Input { records: None, ..input(&records, &tally, window) });
    assert_eq!((&coarse.counts, &coarse.tokens), (&exact.counts, &exact.tokens));
    assert_eq!((coarse.window_rates, coarse.level_rates), (exact.window_rates, exact.level_rates));
    assert_eq!((coarse.goodput, coarse.in_flight), (None, None));
    assert_eq!(coarse.distributions.len(), exact.distributions.len());
    for (rough, fine) in coarse.distributions.iter().zip(&exact.distributions) {
        assert_eq!((rough.metric, rough.n, &rough.histogram), (fine.metric, fine.n, &fine.histogram));
        // Half a tick: a thousandth of a token per second, a nanosecond of a mean.
        assert!((rough.min - fine.min).abs() <= 0.5 && (rough.max - fine.max).abs() <= 0.5);
        assert!((rough.mean() - fine.mean()).abs() <= 0.5);
        for (rough, fine) in rough.quantiles.iter().zip(&fine.quantiles) {
            let (rough, fine) = (rough.value.unwrap(), fine.value.unwrap());
            assert!(rough >= fine - 0.5 && rough <= fine * 1.001 + 1.0, "{rough} for {fine}");
        }
        for (rough, fine) in rough.with_failures.iter().zip(&fine.with_failures) {
            assert_eq!(rough.value.is_none(), fine.value.is_none());
        }
    }
}

#[test]
fn without_records_a_window_is_cut_from_the_series() {
    let records = random_records(5, 3000);
    let window = window(2_000, 8_500);
    let tally = tally_of(&records, window.start);
    let exact = level(&input(&records, &tally, window)).window_rates;
    let coarse = level(&Input { records: None, ..input(&records, &tally, window) }).window_rates;
    for (rough, fine) in
        [(coarse.req_s, exact.req_s), (coarse.out_tok_s, exact.out_tok_s), (coarse.in_tok_s, exact.in_tok_s)]
    {
        assert!((rough / fine - 1.0).abs() < 0.05, "{rough} for {fine}");
    }
}

#[test]
fn the_last_event_of_a_whole_level_is_inside() {
    let mut record = Record::planned(0, at(0));
    record.outcome = Outcome::ok(200);
    (record.first, record.last, record.end) = (Some(at(100)), Some(at(400)), at(400));
    (record.events, record.output_tokens, record.prompt_tokens) = (4, Some(8), Some(2));
    let whole = Window { start: at(0), end: at(400), whole_level: true };
    let rates = summary_of(&[record], whole).window_rates;
    assert_eq!((rates.req_s, rates.out_tok_s, rates.in_tok_s, rates.total_tok_s), (2.5, 20.0, 5.0, 25.0));
    let cut = summary_of(&[record], window(0, 400)).window_rates;
    assert_eq!((cut.req_s, cut.out_tok_s), (0.0, 15.0));
}

#[test]
fn a_body_without_events_counts_at_its_end() {
    let mut record = Record::planned(0, at(0));
    record.outcome = Outcome::ok(200);
    record.flags.insert(crate::metrics::Flags::WHOLE_BODY);
    (record.end, record.output_tokens, record.prompt_tokens) = (at(500), Some(10), Some(4));
    let inside = summary_of(&[record], window(0, 1000));
    assert_eq!((inside.window_rates.req_s, inside.window_rates.total_tok_s), (1.0, 14.0));
    assert_eq!(inside.distribution(Metric::E2e).unwrap().max, 500e6);
    assert_eq!(inside.distribution(Metric::Ttft), None);
    let outside = summary_of(&[record], window(0, 500));
    assert_eq!((outside.window_rates.req_s, outside.window_rates.total_tok_s), (0.0, 0.0));
    assert_eq!(outside.counts.ok, 1);
}

#[test]
fn a_cancelled_request_does_not_lengthen_the_level() {
    let mut ok = Record::planned(0, at(0));
    ok.outcome = Outcome::ok(200);
    (ok.first, ok.last, ok.end) = (Some(at(500)), Some(at(500)), at(500));
    (ok.events, ok.output_tokens) = (1, Some(1));
    let mut cancelled = Record::planned(1, at(0));
    cancelled.outcome = Outcome::new(Class::Cancelled, Kind::None, 200);
    cancelled.end = at(9_000);
    let slo = Slo { ttft_ms: Some(500.0), ..Slo::default() };
    let records = [ok, cancelled];
    let tally = tally_of(&records, Stamp::ZERO);
    let summary = level(&Input { slo, ..input(&records, &tally, window(0, 2_000)) });
    assert_eq!((summary.level_rates.span_s, summary.level_rates.req_s), (0.5, 2.0));
    let goodput = summary.goodput.unwrap();
    assert_eq!((goodput.good, goodput.good_s, goodput.attainment), (1, 0.5, 1.0));
    let unfinished = Record { outcome: Outcome::new(Class::Unfinished, Kind::None, 0), ..cancelled };
    let late = [ok, Record { end: at(90_000), ..unfinished }];
    assert_eq!(summary_of(&late, window(0, 2_000)).level_rates.span_s, 40.0, "at most up to T2");
}

#[test]
fn nothing_measured_gives_zeros_and_no_value() {
    let nowhere = Window { start: at(5), end: at(5), whole_level: true };
    let tally = Tally::default();
    for records in [Some(&[][..]), None] {
        let slo = Slo { ttft_ms: Some(1.0), ..Slo::default() };
        let summary = level(&Input { records, slo, ..input(&[], &tally, nowhere) });
        assert_eq!(summary.distributions, []);
        assert_eq!(summary.counts, Counts::default());
        assert_eq!(summary.window_rates, Rates::default());
        assert_eq!(summary.level_rates, Rates::default());
        assert_eq!(summary.with_failures(Metric::Ttft, Quantile::P50), Ranked::Undefined);
        assert_eq!(summary.goodput.map(|goodput| goodput.attainment), records.map(|_| 0.0));
        assert_eq!(summary.in_flight, records.map(|_| InFlight::default()));
    }
}

#[test]
fn warm_up_records_count_nowhere() {
    let mut records = random_records(7, 50);
    let whole = Window { start: at(0), end: at(14_000), whole_level: true };
    let without = summary_of(&records, whole);
    let warmup = random_records(8, 20).into_iter().map(|record| Record { phase: Phase::Warmup, ..record });
    records.extend(warmup);
    assert_eq!(summary_of(&records, whole), without);
}

#[test]
fn a_first_event_that_a_late_client_read_with_others_is_known_in_bounds_only() {
    // TTFT of 1 to 100 ms, and 9 more events 10 ms apart. A stall until 200 ms joined the last two with later ones; of
    // one of them the head had come, by itself, at 90 ms.
    let records: Vec<Record> = (1..=100)
        .map(|i| {
            let mut record = Record::planned(i, Stamp::ZERO);
            record.outcome = Outcome::ok(200);
            record.sent = Some(at(1));
            let stalled = i > 98;
            let first = if stalled { 200 } else { i };
            (record.first, record.answer) = (Some(at(first)), Some(at(first)));
            (record.last, record.end) = (Some(at(i + 190)), at(i + 190));
            record.byte = Some(at(if i == 100 { 90 } else { first }));
            (record.events, record.output_tokens) = (10, Some(11));
            if stalled {
                record.flags.insert(Flags::FIRST_COALESCED);
            }
            record
        })
        .collect();
    let summary = summary_of(&records, window(0, 10_000));
    let bounds = |metric| {
        let distribution = summary.distribution(metric).unwrap();
        let bounds = distribution.bounds.as_ref().unwrap();
        let of = |side: &[QuantileValue], q: Quantile| {
            side.iter().find(|value| value.parts == q.parts()).unwrap().value.unwrap() / MS as f64
        };
        let at = |q| (of(&bounds.low, q), distribution.quantile(q).unwrap() / MS as f64, of(&bounds.high, q));
        (bounds.joined, at(Quantile::P50), at(Quantile::P99))
    };
    // At the earliest: 1..=98, 1 and 90 ms.
    let ttft = (2, (49.0, 50.0, 50.0), (97.0, 200.0, 200.0));
    assert_eq!(bounds(Metric::Ttft), ttft);
    assert_eq!(bounds(Metric::TtfaPlan), ttft);
    // 19 ms each but for the stalled: 8.9 and 9 ms as stamped, 28.8 and 20 ms at the longest.
    assert_eq!(bounds(Metric::Tpot), (2, (19.0, 19.0, 19.0), (19.0, 19.0, 20.0)));
    assert!(summary.distribution(Metric::E2e).unwrap().bounds.is_none());
    let plain: Vec<Record> =
        records.into_iter().map(|record| Record { flags: Flags::default(), ..record }).collect();
    assert!(summary_of(&plain, window(0, 10_000)).distribution(Metric::Ttft).unwrap().bounds.is_none());
}
