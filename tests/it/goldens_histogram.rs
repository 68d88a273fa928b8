//! The golden values of histograms.
//!
//! They counted microseconds. Here a microsecond is written as a nanosecond: the buckets are those of the number, not
//! of the unit.

use tokload::stats::quantile::nearest_rank;
use tokload::stats::{Histogram, Quantile};

use crate::goldens::{assert_close, values};
use crate::java_random::JavaRandom;

const SECOND: u64 = 1_000_000;

#[test]
fn hdr_percentiles() {
    let golden = values("HdrPercentiles");
    let mut random = JavaRandom::new(42);
    let mut sorted: Vec<u64> = (0..1000)
        .map(|_| {
            if random.double() < 0.05 {
                1_500_000 + random.below(1_000_000) as u64
            } else {
                (180_000 + (random.gaussian() * 30_000.0) as i64).max(50_000) as u64
            }
        })
        .collect();
    let mut histogram = Histogram::new();
    sorted.iter().for_each(|us| histogram.record(*us));
    sorted.sort_unstable();
    assert_eq!(histogram.n(), golden["count"].as_u64().unwrap());
    for row in golden["percentiles"].as_array().unwrap() {
        let quantile: Quantile = row["p"].to_string().parse().unwrap();
        assert_eq!(nearest_rank(&sorted, quantile), row["exact_us"].as_u64(), "p{quantile}");
        assert_eq!(histogram.quantile(quantile), row["hdr_us"].as_u64(), "p{quantile}");
    }
    // What a mean from buckets would be: the golden has it, we never show it.
    let middles: f64 = histogram
        .buckets()
        .map(|bucket| {
            (bucket.lowest + (bucket.highest - bucket.lowest).div_ceil(2)) as f64 * bucket.count as f64
        })
        .sum();
    assert_close(middles / 1000.0, golden["hdr_mean_us"].as_f64().unwrap());
    assert_eq!(histogram.totals().sum(), u128::from(sorted.iter().sum::<u64>()));
}

#[test]
fn hdr_buckets() {
    let golden = values("HdrBuckets");
    for row in golden.as_array().unwrap() {
        let number = |key: &str| row[key].as_u64().unwrap();
        let code = Histogram::bucket_of(number("v"));
        assert_eq!(Histogram::bucket_lowest(code), number("lowest"));
        assert_eq!(Histogram::bucket_highest(code), number("highest"));
        assert_eq!(Histogram::bucket_lowest(code + 1), number("next"));
        assert_eq!(Histogram::bucket_highest(code) + 1 - Histogram::bucket_lowest(code), number("size"));
    }
    let edges: Vec<u64> = serde_json::from_value(values("HdrPercentiles")["bucket_1234567"].clone()).unwrap();
    let code = Histogram::bucket_of(1_234_567);
    assert_eq!([Histogram::bucket_lowest(code), Histogram::bucket_highest(code)][..], edges);
}

#[test]
fn hdr_expected_interval() {
    let golden: Vec<u64> =
        serde_json::from_value(values("HdrExpectedInterval_2050000_every_100000")).unwrap();
    let mut histogram = Histogram::new();
    histogram.record_corrected(2_050_000, 100_000);
    assert!(histogram.buckets().all(|bucket| bucket.count == 1));
    assert_eq!(histogram.buckets().map(|bucket| bucket.highest).collect::<Vec<_>>(), golden);
}

/// When a server that takes 50 ms, and stands still from 10 s to 12 s, ends what it begins at `start`.
fn served(start: u64) -> u64 {
    let (freeze, thaw) = (10 * SECOND, 12 * SECOND);
    let begin = if (freeze..thaw).contains(&start) { thaw } else { start };
    let end = begin + 50_000;
    if begin < freeze && end > freeze { end + (thaw - freeze) } else { end }
}

#[test]
fn open_against_closed_loop() {
    let mut recordings: [Histogram; 4] = Default::default();
    let (mut client_free, mut server_free) = (0, 0);
    for plan in (0..300).map(|k| k * 100_000) {
        let send = client_free.max(plan);
        client_free = served(send);
        recordings[0].record(client_free - send);
        recordings[1].record_corrected(client_free - send, 100_000);
        recordings[2].record(client_free - plan);
        server_free = served(server_free.max(plan));
        recordings[3].record(server_free - plan);
    }
    let golden = values("OpenVsClosed");
    for (histogram, row) in recordings.iter().zip(golden.as_array().unwrap()) {
        let shown = |quantile| histogram.quantile(quantile).unwrap() as f64 / 1e3;
        assert_eq!(histogram.n(), row["n"].as_u64().unwrap(), "{}", row["name"]);
        for (key, quantile) in
            [("p50", Quantile::P50), ("p90", Quantile::P90), ("p99", Quantile::P99), ("max", Quantile::MAX)]
        {
            assert_eq!(shown(quantile), row[key].as_f64().unwrap(), "{} {key}", row["name"]);
        }
    }
}
