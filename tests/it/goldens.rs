//! The golden values: what the measurement maths must give, to the last digit.
//!
//! Those of single requests and levels are here, through `Record` and `summary`; those of histograms in
//! `goldens_histogram`.

use std::time::Duration;

use serde_json::Value;
use tokload::metrics::{Gaps, Metric, Outcome, Record, Slo, Tally};
use tokload::run::{Span, Window};
use tokload::stats::{Histogram, Quantile};
use tokload::summary::{self, Input, LevelSummary};
use tokload::time::Stamp;

/// The part `name` of the golden values.
pub(crate) fn values(name: &str) -> Value {
    part(include_str!("../golden/values.json"), name)
}

/// The part `name` of their inputs.
pub(crate) fn inputs(name: &str) -> Value {
    part(include_str!("../golden/inputs.json"), name)
}

fn part(text: &str, name: &str) -> Value {
    let mut all: Value = serde_json::from_str(text).unwrap();
    all[name].take()
}

/// Equal up to the rounding of another order of the same operations.
#[track_caller]
pub(crate) fn assert_close(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{value} instead of {expected}");
}

/// A streamed request: when it was sent, and the time and tokens of each content event.
pub(crate) struct Timeline {
    pub(crate) sent: Stamp,
    pub(crate) events: Vec<(Stamp, u32)>,
}

impl Timeline {
    /// The record and the gaps that an exact client makes of it.
    pub(crate) fn finish(&self, index: u64) -> (Record, Gaps) {
        let mut record = Record::planned(index, self.sent);
        record.outcome = Outcome::ok(200);
        let at = |place: Option<&(Stamp, u32)>| place.map(|(at, _)| *at);
        (record.first, record.last) = (at(self.events.first()), at(self.events.last()));
        record.answer = record.first;
        record.end = record.last.unwrap();
        record.events = self.events.len() as u32;
        record.output_tokens = Some(self.events.iter().map(|(_, tokens)| tokens).sum());
        let mut gaps = Gaps::with_capacity(self.events.len());
        for pair in self.events.windows(2) {
            gaps.record_tokens(pair[1].0.nanos_since(pair[0].0), pair[1].1);
        }
        record.stall_ns = gaps.stall().into();
        (record, gaps)
    }
}

/// The summary of requests that are the whole of a closed-loop level, `length` long.
fn whole_level(requests: &[(Record, Gaps)], length: Duration, slo: Slo) -> LevelSummary {
    let mut tally = Tally::new(Stamp::ZERO);
    for (record, gaps) in requests {
        tally.on_sent(record.start);
        tally.on_done(record, gaps, &Gaps::default(), Stamp::ZERO);
    }
    let records: Vec<Record> = requests.iter().map(|(record, _)| *record).collect();
    let end = Stamp::ZERO + length;
    summary::level(&Input {
        records: Some(&records),
        tally: &tally,
        window: Window { start: Stamp::ZERO, end, whole_level: true },
        span: Span { t0: Stamp::ZERO, t1: end, t2: end },
        slo,
        from_plan: false,
        timestamps: tokload::plan::Timestamps::Both,
        steady_cut: tokload::plan::SteadyCut::Default,
        steady_from_s: Some(0.0),
        users: None,
        counted: None,
    })
}

#[test]
fn token_timings() {
    let (golden, input) = (values("TokenTimings"), inputs("TokenTimings"));
    let chunks: Vec<(u64, u32)> = serde_json::from_value(input["chunks"].clone()).unwrap();
    let events = chunks.iter().map(|(ms, tokens)| (Stamp::from_millis(*ms), *tokens)).collect();
    let sent = Stamp::from_millis(input["sent_ms"].as_u64().unwrap());
    let (record, gaps) = Timeline { sent, events }.finish(0);
    let ms = |ns: Option<u64>| ns.unwrap() as f64 / 1e6;
    let expected = |key: &str| golden[key].as_f64().unwrap();
    assert_eq!(ms(record.ttft_ns()), expected("ttft_ms"));
    assert_eq!(ms(record.e2e_ns()), expected("e2e_ms"));
    assert_eq!(record.tpot_ns().unwrap() / 1e6, expected("tpot_ms"));
    assert_close(record.user_speed().unwrap(), expected("decode_tok_s"));
    assert_eq!(ms(gaps.stall()), expected("max_itl_ms"));
    assert_eq!((record.events, record.output_tokens), (8, Some(9)));
    let mut itl = Histogram::new();
    gaps.pool_into(&mut itl);
    assert_close(itl.totals().mean().unwrap() / 1e6, expected("mean_itl_ms"));
    let listed: Vec<u64> = serde_json::from_value(golden["itl_ms"].clone()).unwrap();
    assert_eq!(
        gaps.codes().collect::<Vec<_>>(),
        listed.iter().map(|ms| Histogram::bucket_of(ms * 1_000_000)).collect::<Vec<_>>()
    );
    let tokens_over_e2e = 9.0 / (ms(record.e2e_ns()) / 1e3);
    assert_close(tokens_over_e2e, expected("tokens_per_e2e_tok_s"));
}

#[test]
fn throughput_and_what_one_user_sees() {
    let (golden, input) = (values("ThroughputVsUser"), inputs("ThroughputVsUser"));
    let trace: Vec<(f64, f64, f64, u32)> = serde_json::from_value(input["trace"].clone()).unwrap();
    let stamp = |s: f64| Stamp::from_millis((s * 1e3).round() as u64);
    let requests: Vec<(Record, Gaps)> = trace
        .iter()
        .map(|(sent, first, last, tokens)| {
            let events = vec![(stamp(*first), 1), (stamp(*last), tokens - 1)];
            Timeline { sent: stamp(*sent), events }.finish(0)
        })
        .collect();
    let summary = whole_level(&requests, Duration::from_millis(9800), Slo::default());
    assert_close(summary.level_rates.span_s, golden["trace_span_s"].as_f64().unwrap());
    assert_close(summary.level_rates.out_tok_s, golden["trace_output_tok_s"].as_f64().unwrap());
    assert_eq!(summary.tokens.output, golden["trace_tokens"].as_u64().unwrap());
    let speed = summary.distribution(Metric::UserSpeed).unwrap();
    assert_close(speed.mean(), golden["trace_mean_user_tok_s"].as_f64().unwrap());
    let each: Vec<f64> = serde_json::from_value(golden["trace_user_tok_s"].clone()).unwrap();
    for ((record, _), expected) in requests.iter().zip(each) {
        assert_close(record.user_speed().unwrap(), expected);
    }
}

#[test]
fn goodput() {
    let (golden, input) = (values("Goodput"), inputs("Goodput"));
    let rows: Vec<(u64, u64, u64, u32)> = serde_json::from_value(input["requests"].clone()).unwrap();
    let requests: Vec<(Record, Gaps)> = rows
        .iter()
        .map(|(id, ttft, e2e, tokens)| {
            let mut events = vec![(Stamp::from_millis(*ttft), 1)];
            if *tokens > 1 {
                events.push((Stamp::from_millis(*e2e), tokens - 1));
            }
            Timeline { sent: Stamp::ZERO, events }.finish(*id)
        })
        .collect();
    for ((record, _), row) in requests.iter().zip(golden["requests"].as_array().unwrap()) {
        assert_eq!(record.ttft_ns().unwrap() as f64 / 1e6, row["ttft_ms"].as_f64().unwrap());
        // The golden writes 0 where there is no time between tokens.
        assert_eq!(record.tpot_ns().unwrap_or(0.0) / 1e6, row["tpot_ms"].as_f64().unwrap());
    }
    let length = Duration::from_secs_f64(golden["duration_s"].as_f64().unwrap());
    for row in golden["goodput"].as_array().unwrap() {
        let (ttft_ms, tpot_ms) = (row["ttft_slo_ms"].as_f64(), row["tpot_slo_ms"].as_f64());
        let summary = whole_level(&requests, length, Slo { ttft_ms, tpot_ms, ..Slo::default() });
        let goodput = summary.goodput.unwrap();
        assert_eq!(goodput.good, row["good"].as_u64().unwrap());
        assert_close(goodput.good_s, row["req_s"].as_f64().unwrap());
        assert_close(goodput.attainment, goodput.good as f64 / 10.0);
        assert_close(summary.window_rates.req_s, golden["request_throughput"].as_f64().unwrap());
    }
}

/// The stopwatch of this golden counted microseconds: here a microsecond is written as a nanosecond, the rules are
/// the same.
#[test]
fn bench_core() {
    let golden = values("BenchCore");
    let mut readings = [0, 300_000, 20_000, 20_000, 20_000, 60_000].into_iter().cycle();
    let mut now = 0;
    let mut read = || {
        now += readings.next().unwrap();
        Stamp::from_nanos(now)
    };
    let requests: Vec<(Record, Gaps)> = (0..3)
        .map(|index| {
            let sent = read();
            let events = (0..5).map(|_| (read(), 1)).collect();
            Timeline { sent, events }.finish(index)
        })
        .collect();
    let ticks = |key: &str| golden["per_request_us"][key].as_u64().unwrap();
    let sent: Vec<u64> = serde_json::from_value(golden["sent_us"].clone()).unwrap();
    let mut tally = Tally::new(Stamp::ZERO);
    for ((record, gaps), sent) in requests.iter().zip(sent) {
        assert_eq!(record.start, Stamp::from_nanos(sent));
        assert_eq!(record.ttft_ns(), Some(ticks("ttft")));
        assert_eq!(record.tpot_ns(), Some(ticks("tpot") as f64));
        assert_eq!(record.e2e_ns(), Some(ticks("e2e")));
        tally.on_done(record, gaps, &Gaps::default(), Stamp::ZERO);
    }
    let shown = |metric, quantile| tally.histogram(metric).quantile(quantile).unwrap();
    let expected = |key: &str| golden["hdr_us"][key].as_u64().unwrap();
    assert_eq!(shown(Metric::Ttft, Quantile::P50), expected("ttft_p50"));
    assert_eq!(shown(Metric::Tpot, Quantile::P50), expected("tpot_p50"));
    assert_eq!(shown(Metric::Itl, Quantile::P50), expected("itl_p50"));
    assert_eq!(shown(Metric::Itl, Quantile::MAX), expected("itl_max"));
    assert_eq!(shown(Metric::E2e, Quantile::P50), expected("e2e_p50"));
    assert_eq!(tally.whole().tokens.output, golden["tokens"].as_u64().unwrap());
}

/// One level of the sweep: `clients` workers take the requests `w, w + n, ...` one after another.
fn loop_level(clients: u64) -> Vec<(Record, Gaps)> {
    let ms = Duration::from_millis;
    let mut requests = Vec::new();
    for worker in 0..clients {
        let mut now = Stamp::ZERO;
        for index in (worker..16).step_by(clients as usize) {
            let first = now + ms(150 + 25 * clients);
            let events = (0..8_u32).map(|i| (first + ms(20 + 2 * clients) * i, 1)).collect();
            let timeline = Timeline { sent: now, events };
            now = timeline.events[7].0;
            requests.push(timeline.finish(index));
        }
    }
    requests
}

#[test]
fn loop_bench() {
    let slo = Slo { ttft_ms: Some(300.0), tpot_ms: Some(30.0), ..Slo::default() };
    for row in values("LoopBench").as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        let requests = loop_level(row["clients"].as_u64().unwrap());
        let end = requests.iter().map(|(record, _)| record.end).max().unwrap();
        let summary = whole_level(&requests, end - Stamp::ZERO, slo);
        assert_eq!(summary.counts.ok, row["ok"].as_u64().unwrap());
        assert_eq!(summary.counts.failed, row["failed"].as_u64().unwrap());
        for quantile in [Quantile::P50, Quantile::P99] {
            let ms = |metric| summary.distribution(metric).unwrap().quantile(quantile).unwrap() / 1e6;
            assert_eq!(ms(Metric::Ttft), number("ttft_ms"));
            assert_eq!(ms(Metric::Tpot), number("tpot_ms"));
            // All gaps are alike, and pooled in a histogram: up to 0.1 % high.
            assert!(ms(Metric::Itl) >= number("tpot_ms") && ms(Metric::Itl) < number("tpot_ms") * 1.001);
        }
        assert_close(summary.window_rates.span_s, number("span_s"));
        assert_close(summary.window_rates.req_s, number("req_s"));
        assert_close(summary.window_rates.out_tok_s, number("tok_s"));
        assert_eq!(summary.level_rates.req_s, summary.window_rates.req_s);
        assert_close(summary.goodput.unwrap().good_s, number("goodput"));
        let in_flight = summary.in_flight.unwrap();
        assert_eq!((in_flight.mean, in_flight.max), (number("clients"), row["clients"].as_u64().unwrap()));
    }
}
