//! A client that is slow on purpose, in virtual time: what user stamps, kernel stamps and the bounds make of it.
//!
//! Requests answer at exactly known times; the client looks at its connections only in its turns, and stamps what it
//! finds then. The kernel's stamp is that of the last byte of a read.

use std::time::Duration;

use tokload::exchange::{Arrival, Ask, Exchange, NoSink};
use tokload::metrics::{Metric, Record, Tally};
use tokload::plan::{Level, Slo, Timestamps};
use tokload::run::{LevelResult, ShardCheck, Span, Stamps, Window};
use tokload::stats::{Histogram, Quantile};
use tokload::summary::{self, Input, LevelSummary};
use tokload::time::Stamp;
use tokload::verdict::budget::client_errors;
use tokload::wire::json::Json;

const TOKENS: usize = 64;
const STREAMS: u64 = 64;
const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const EVENT: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
const LAST: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// The turns of a loop that wastes `burn` each `every` (zero: in each turn) and else takes 0.1 ms.
struct Turns {
    burn: Duration,
    every: Duration,
    now: Stamp,
    next_burn: Stamp,
}

impl Turns {
    /// When the loop last had nothing to read, and when it looks again.
    fn next(&mut self) -> (Stamp, Stamp) {
        let caught_up = self.now;
        self.now = self.now + Duration::from_micros(100);
        if self.now >= self.next_burn {
            self.next_burn = self.now + self.every;
            self.now = self.now + self.burn;
        }
        (caught_up, self.now)
    }
}

/// One request: when its tokens arrive, and what has been made of it.
struct Stream {
    arrivals: Vec<Stamp>,
    read: usize,
    exchange: Exchange,
    reads: u64,
}

struct Measured {
    summary: LevelSummary,
    result: LevelResult,
    true_ttft: Histogram,
    true_itl: Histogram,
}

/// Streams that start 1.1 ms apart, with a first token after 200 ms and gaps of `itl`.
fn measure(itl: Duration, burn: Duration, every: Duration, in_use: Timestamps) -> Measured {
    let (mut json, mut sink) = (Json::new(), NoSink);
    let (mut true_ttft, mut true_itl) = (Histogram::new(), Histogram::new());
    let mut streams: Vec<Stream> = (0..STREAMS)
        .map(|index| {
            let start = Stamp::ZERO + Duration::from_micros(1_100) * index as u32;
            let first = start + Duration::from_millis(200);
            let arrivals: Vec<Stamp> = (0..TOKENS as u32).map(|token| first + itl * token).collect();
            true_ttft.record(first.nanos_since(start));
            arrivals.windows(2).for_each(|pair| true_itl.record(pair[1].nanos_since(pair[0])));
            let mut exchange = Exchange::new();
            exchange
                .begin(Ask { max_tokens: TOKENS as u32, ..Ask::default() }, Record::planned(index, start));
            exchange.on_start(start);
            exchange.on_connected(start, true);
            exchange.on_sent(start);
            Stream { arrivals, read: 0, exchange, reads: 0 }
        })
        .collect();
    let mut turns = Turns { burn, every, now: Stamp::ZERO, next_burn: Stamp::from_millis(1) };
    let mut check = ShardCheck::default();
    while streams.iter().any(|stream| stream.read < TOKENS) {
        let (caught_up, now) = turns.next();
        for stream in &mut streams {
            let news = stream.arrivals[stream.read..].iter().take_while(|at| **at <= now).count();
            let arrived = stream.read + news;
            if arrived == stream.read {
                continue;
            }
            let kernel = stream.arrivals[arrived - 1];
            let late = now.nanos_since(caught_up).max(now.nanos_since(kernel)) > 1_000_000;
            let at = Arrival { read: now, kernel: Some(kernel), read_no: stream.reads, late };
            let mut bytes = if stream.read == 0 { HEAD.to_vec() } else { Vec::new() };
            for token in stream.read..arrived {
                bytes.extend_from_slice(if token + 1 == TOKENS { LAST } else { EVENT });
                check.events += 1;
                check.joined += u64::from(late && token > stream.read);
            }
            check.receive_lag.record(now.nanos_since(kernel));
            let _ = stream.exchange.on_bytes(&at, &bytes, &mut json, &mut sink);
            (stream.read, stream.reads) = (arrived, stream.reads + 1);
        }
        check.loop_lag.record(now.nanos_since(caught_up));
    }
    let mut tally = Tally::new(Stamp::ZERO);
    let mut records = Vec::new();
    for stream in &mut streams {
        let _ = stream.exchange.on_eof(turns.now, &mut json, &mut sink);
        let record = *stream.exchange.record();
        assert!(record.outcome.is_ok());
        tally.on_done(&record, stream.exchange.gaps(), stream.exchange.kernel_gaps(), Stamp::ZERO);
        records.push(record);
    }
    let end = turns.now;
    let result = LevelResult {
        slices: None,
        replicas: Vec::new(),
        ordinal: 0,
        level: Level::default(),
        span: Span { t0: Stamp::ZERO, t1: end, t2: end },
        window: Window { start: Stamp::ZERO, end, whole_level: true },
        tally,
        records: None,
        shards: vec![check],
        host: None,
        stamps: Stamps { in_use, why_not: None },
        examples: Vec::new(),
        lengthened: None,
        judged: None,
        interrupted: false,
    };
    let summary = summary::level(&Input::new(&result, Some(&records), Slo::default()));
    Measured { summary, result, true_ttft, true_itl }
}

impl Measured {
    /// p99 of `metric`, ms.
    fn p99(&self, metric: Metric) -> f64 {
        self.summary.distribution(metric).unwrap().quantile(Quantile::P99).unwrap() / 1e6
    }

    fn truth(&self, metric: Metric) -> f64 {
        let truth = if metric == Metric::Ttft { &self.true_ttft } else { &self.true_itl };
        truth.quantile(Quantile::P99).unwrap() as f64 / 1e6
    }

    /// By how much the client says that it may be wrong, ms.
    fn error_said(&self, metric: Metric) -> f64 {
        let errors = client_errors(&self.result, &self.summary);
        let error = errors.iter().find(|e| e.metric == metric && e.parts == Quantile::P99.parts()).unwrap();
        assert!(!error.estimated);
        error.error_ns / 1e6
    }

    /// Bounds of the 99th percentile of `metric`, ms, and the number of gaps between events of one read.
    fn bounds(&self, metric: Metric) -> Option<(f64, f64, u64)> {
        let bounds = self.summary.distribution(metric).unwrap().bounds.as_ref()?;
        let p99 = |side: &[summary::QuantileValue]| {
            side.iter().find(|q| q.parts == Quantile::P99.parts()).unwrap().value.unwrap() / 1e6
        };
        Some((p99(&bounds.low), p99(&bounds.high), bounds.joined))
    }
}

const MS: Duration = Duration::from_millis(1);
const BY_KERNEL: [(Metric, Metric); 2] =
    [(Metric::Ttft, Metric::TtftKernel), (Metric::Itl, Metric::ItlKernel)];

#[test]
fn two_milliseconds_in_every_turn_show_by_user_stamps_and_not_by_the_kernels() {
    let measured = measure(20 * MS, 2 * MS, Duration::ZERO, Timestamps::Both);
    for (by_user, by_kernel) in BY_KERNEL {
        let truth = measured.truth(by_user);
        assert!(measured.p99(by_user) > truth + 0.9, "{by_user:?}");
        assert!((measured.p99(by_kernel) - truth).abs() < 0.03, "{by_user:?}");
        let error = measured.p99(by_user) - truth;
        assert!((measured.error_said(by_user) - error).abs() < 0.06, "{by_user:?}");
    }
    assert_eq!(measured.bounds(Metric::ItlKernel), None, "no read holds two events");
}

#[test]
fn a_stall_shorter_than_a_gap_shows_by_user_stamps_and_not_by_the_kernels() {
    let measured = measure(200 * MS, 50 * MS, 1000 * MS, Timestamps::Both);
    for (by_user, by_kernel) in BY_KERNEL {
        let truth = measured.truth(by_user);
        assert!((measured.p99(by_kernel) - truth).abs() < 0.3, "{by_user:?}");
    }
    assert!(measured.p99(Metric::Itl) > measured.truth(Metric::Itl) + 30.0);
    assert!(measured.error_said(Metric::Itl) > 30.0);
}

#[test]
fn a_stall_longer_than_a_gap_leaves_an_interval_that_holds_the_truth() {
    let measured = measure(20 * MS, 50 * MS, 1000 * MS, Timestamps::Both);
    let truth = measured.truth(Metric::Itl);
    let (low, high, joined) = measured.bounds(Metric::ItlKernel).unwrap();
    assert!(low <= truth && truth <= high, "{low} {truth} {high}");
    assert!(high - low > 5.0, "the interval must not pretend to know");
    // One stall in the 1.46 s that a stream lasts, two or three events each.
    assert!((STREAMS * 2..STREAMS * 7).contains(&joined), "{joined}");
    assert!(measured.result.shards[0].joined > STREAMS);
    assert!(measured.error_said(Metric::Itl) >= (measured.p99(Metric::Itl) - truth).abs());
}

#[test]
fn latencies_by_kernel_stamps_are_those_of_a_client_that_is_in_time() {
    let quick = measure(200 * MS, Duration::ZERO, 1000 * MS, Timestamps::Kernel);
    let slow = measure(200 * MS, 50 * MS, 1000 * MS, Timestamps::Kernel);
    for metric in [Metric::Ttft, Metric::Ttfa, Metric::E2e, Metric::Tpot, Metric::Stall] {
        assert_eq!(slow.p99(metric), quick.p99(metric), "{metric:?}");
    }
    assert!(slow.error_said(Metric::Ttft) < 0.001);
}
