use super::*;
use crate::plan::Slo;

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// A streamed answer whose events come `events_ms` after its start, which is `start_ms` after the level's beginning.
fn answer(start_ms: u64, events_ms: &[u64], input: u64, output: u64) -> Answer {
    let (first, last) = (events_ms[0], *events_ms.last().unwrap());
    Answer {
        issued_ns: S + (start_ms - start_ms.min(1)) * MS,
        start_ns: S + start_ms * MS,
        end_ns: S + (start_ms + last) * MS,
        ttft_ns: Some(first * MS),
        ttfo_ns: Some(first * MS),
        latency_ns: last * MS,
        gaps_ns: Some(events_ms.windows(2).map(|pair| (pair[1] - pair[0]) * MS).collect()),
        input_tokens: Some(input),
        output_tokens: Some(output),
        ..Answer::default()
    }
}

fn failed(start_ms: u64, took_ms: u64) -> Answer {
    Answer {
        failure: Some(Failure {
            code: Some(503),
            kind: "Service Unavailable".to_owned(),
            message: "try again".to_owned(),
        }),
        issued_ns: S + start_ms * MS,
        start_ns: S + start_ms * MS,
        end_ns: S + (start_ms + took_ms) * MS,
        ..Answer::default()
    }
}

fn about() -> About {
    About { begun_ns: S, ended_ns: 2 * S, generates: true, ..About::default() }
}

/// Of the level's second: 0.1 to 0.3 prefill and 0.3 to 0.7 decode of the first, 0.5 to 0.6 and 0.6 to 0.8 of the second.
fn two() -> Level {
    let answers = vec![answer(100, &[200, 400, 600], 20, 5), answer(500, &[100, 300], 10, 3)];
    Level::of(answers, Vec::new(), about())
}

fn avg(level: &Level, metric: Metric) -> f64 {
    level.figure(metric).unwrap_or_else(|| panic!("{metric:?}")).stats.avg.unwrap()
}

#[track_caller]
fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} is not {expected}");
}

#[test]
fn latencies_are_those_worked_out_by_hand() {
    let level = two();
    for (metric, expected) in [
        (Metric::TimeToFirstToken, 150.0),
        (Metric::TimeToSecondToken, 200.0),
        (Metric::RequestLatency, 450.0),
        (Metric::DecodeDuration, 300.0),
        // (600 - 200) / 4 and (300 - 100) / 2.
        (Metric::InterTokenLatency, 100.0),
        (Metric::OutputTokenThroughputPerUser, 10.0),
        // 5 / 0.6 and 3 / 0.3.
        (Metric::E2eOutputTokenThroughput, (5.0 / 0.6 + 10.0) / 2.0),
        (Metric::InterChunkLatency, 200.0),
        // 20 / 0.2 and 10 / 0.1.
        (Metric::PrefillThroughputPerUser, 100.0),
        (Metric::EffectiveLatency, 451.0),
        (Metric::CreditToStartLatency, 1.0),
        (Metric::OutputTokenThroughput, 8.0),
        (Metric::InputTokenThroughput, 30.0),
        (Metric::TotalTokenThroughput, 38.0),
        (Metric::RequestThroughput, 2.0),
        // From the first start to the last event: 0.1 to 0.8.
        (Metric::BenchmarkDuration, 0.7),
        (Metric::RequestErrorRate, 0.0),
        (Metric::CompletedRequestCount, 2.0),
    ] {
        assert_near(avg(&level, metric), expected);
    }
    let ttft = &level.figure(Metric::TimeToFirstToken).unwrap().stats;
    // numpy: percentile([100, 200], [1, 50, 99]), std.
    assert_eq!([1, 50, 99].map(|p| ttft.percentile(p)), [Some(101.0), Some(150.0), Some(199.0)]);
    assert_eq!((ttft.std, ttft.sum, ttft.count), (Some(50.0), Some(300.0), Some(2)));
    let gaps = &level.figure(Metric::InterChunkLatency).unwrap().stats;
    assert_eq!((gaps.count, gaps.sum), (Some(3), Some(600.0)));
    for absent in [Metric::Goodput, Metric::ErrorRequestCount, Metric::UsagePromptTokens] {
        assert_eq!(level.figure(absent), None, "{absent:?}");
    }
}

#[test]
fn curves_are_those_worked_out_by_hand() {
    let level = two();
    for (metric, expected) in [
        // 0.6 s of the first and 0.3 s of the second in one second.
        (Metric::EffectiveConcurrency, 0.9),
        (Metric::EffectiveDecodeConcurrency, 0.6),
        (Metric::EffectivePrefillConcurrency, 0.3),
        // All tokens but the two first ones.
        (Metric::EffectiveDecodeThroughput, 6.0),
        (Metric::EffectivePrefillThroughput, 30.0),
        (Metric::EffectiveTotalThroughput, 36.0),
        // Decoding from 0.3 to 0.8 without a break, prefill from 0.1 to 0.3 and 0.5 to 0.6.
        (Metric::ActiveDecodeThroughput, 6.0 / 0.5),
        (Metric::ActivePrefillThroughput, 100.0),
        (Metric::ActiveTotalThroughput, 36.0 / 0.7),
        (Metric::ActiveDecodeThroughputPerUser, 10.0),
        // 20 from 0.1, 21 from 0.3, 23 from 0.5, 25 up to 0.7; 10 from 0.5, 11 from 0.6, 13 up to 0.8.
        (Metric::TokensInFlight, 20.0 * 0.2 + 21.0 * 0.2 + 23.0 * 0.2 + 10.0 * 0.1 + 11.0 * 0.2),
    ] {
        assert_near(avg(&level, metric), expected);
    }
    let decode = &level.figure(Metric::EffectiveDecodeThroughput).unwrap().stats;
    // 0 for half of the time, 10 for 0.4 s, 20 for 0.1 s.
    assert_near(decode.max.unwrap(), 20.0);
    assert_eq!(decode.percentile(25), None, "aiperf has no such percentile of a curve");
    assert_near(decode.percentile(50).unwrap(), 0.0);
    assert_near(decode.percentile(99).unwrap(), 20.0);
}

#[test]
fn failures_are_infinitely_long_where_they_count() {
    let answers = vec![answer(0, &[100, 300], 10, 3), failed(300, 50), answer(400, &[120, 300], 10, 3)];
    let level = Level::of(answers, Vec::new(), about());
    assert_near(avg(&level, Metric::RequestErrorRate), 100.0 / 3.0);
    assert_eq!(avg(&level, Metric::ErrorRequestCount), 1.0);
    assert_eq!(avg(&level, Metric::RequestCount), 2.0);
    assert_eq!(level.figure(Metric::RequestLatency).unwrap().stats.count, Some(2));
    // It takes a place among those in flight, and from its due to its end.
    assert_near(avg(&level, Metric::EffectiveConcurrency), 0.65);
    assert_eq!(level.figure(Metric::EffectiveLatency).unwrap().stats.count, Some(3));
    let adjusted = level.figures.iter().find(|figure| figure.adjusted).unwrap();
    assert_eq!((adjusted.tag().as_str(), adjusted.stats.count), ("adj_time_to_first_token", Some(3)));
    assert_eq!(adjusted.header(), "Time to First Token (error-adjusted)");
    assert_eq!([50, 75].map(|p| adjusted.stats.percentile(p)), [Some(120.0), None]);
    assert_eq!((adjusted.stats.avg, adjusted.stats.max, adjusted.stats.min), (None, None, Some(100.0)));
    assert_eq!(level.errors, [ErrorCount { failure: failed(0, 0).failure.unwrap(), count: 1 }]);
}

#[test]
fn a_good_request_has_every_metric_that_is_limited() {
    let slo = Slo { ttft_ms: Some(200.0), tpot_ms: Some(100.0), ..Slo::default() };
    let answers = vec![
        answer(0, &[200, 400], 1, 3),
        answer(0, &[201, 400], 1, 3),
        // No inter-token latency: to aiperf, a limit on it is missed.
        answer(0, &[100], 1, 1),
    ];
    let level = Level::of(answers, Vec::new(), About { slo, ..about() });
    assert_eq!((avg(&level, Metric::Goodput), avg(&level, Metric::GoodRequestCount)), (1.0, 1.0));
    assert_near(avg(&level, Metric::GoodRequestFraction), 1.0 / 3.0);
}

#[test]
fn the_first_event_may_hold_several_tokens() {
    let bundled = Answer { tokens_after_first: Some(4), ..answer(0, &[100, 500], 1, 9) };
    assert_eq!(bundled.itl_ns(false), Some(50.0 * MS as f64));
    assert_eq!(bundled.itl_ns(true), Some(100.0 * MS as f64));
    let nothing_after = Answer { tokens_after_first: Some(0), ..bundled };
    assert_eq!(nothing_after.itl_ns(true), Some(50.0 * MS as f64));
}

#[test]
fn answers_that_were_not_streamed_have_no_tokens_to_time() {
    let whole = Answer { ttft_ns: None, ttfo_ns: None, gaps_ns: None, ..answer(0, &[500], 4, 8) };
    let level = Level::of(vec![whole], Vec::new(), about());
    assert_eq!(avg(&level, Metric::RequestLatency), 500.0);
    for absent in [Metric::TimeToFirstToken, Metric::InterTokenLatency, Metric::InterChunkLatency] {
        assert_eq!(level.figure(absent), None);
    }
    assert_eq!(avg(&level, Metric::EffectiveDecodeThroughput), 0.0);
    assert_near(avg(&level, Metric::EffectiveConcurrency), 0.5);
}

/// Every number of every file, for levels that have hardly any.
#[test]
fn no_level_has_a_number_that_is_none() {
    let nothing = About { ended_ns: S, ..about() };
    let instant = Answer { latency_ns: 0, ttft_ns: Some(0), ..answer(0, &[0], 0, 1) };
    let levels = [
        Level::of(Vec::new(), Vec::new(), about()),
        Level::of(vec![failed(0, 0)], Vec::new(), nothing.clone()),
        Level::of(vec![failed(10, 10)], vec![failed(0, 0)], about()),
        Level::of(vec![answer(0, &[100], 1, 1)], vec![answer(0, &[1, 2], 1, 2)], about()),
        Level::of(vec![instant.clone(), instant], Vec::new(), nothing),
        Level::of(vec![answer(0, &[100, 100, 100], 1, 3)], Vec::new(), about()),
    ];
    for level in &levels {
        let mut out = Vec::new();
        write(level, WIDTH_MIN, &mut out).unwrap();
        write_csv(level, &mut out).unwrap();
        write_lines(level, &mut out).unwrap();
        let object = to_json(level, &Saved { rounds: 1, levels: 1, ..Saved::default() });
        out.extend(serde_json::to_vec(&object).unwrap());
        let text = String::from_utf8(out).unwrap();
        for none in ["NaN", "nan", "inf,", "inf ", "-0.00"] {
            assert!(!text.contains(none), "{none}: {text}");
        }
    }
    let object = to_json(&levels[2], &Saved::default());
    assert_eq!(object["error_summary"][0]["count"], 1);
    assert_eq!(object["warmup_metrics"]["error_request_count"]["avg"], 1.0);
    assert_eq!(object.get("request_latency"), None);
    assert!(levels[0].figures.is_empty());
}

#[test]
fn lines_have_what_readers_of_aiperfs_look_for() {
    let cancelled = Answer { cancelled: true, ..failed(5, 10) };
    let warm = answer(0, &[10, 20], 2, 2);
    let slo = Slo { ttft_ms: Some(1.0), ..Slo::default() };
    let answers = vec![answer(100, &[200, 400, 600], 20, 5), cancelled];
    let level = Level::of(answers, vec![warm], About { slo, ..about() });
    let mut out = Vec::new();
    write_lines(&level, &mut out).unwrap();
    let lines: Vec<serde_json::Value> =
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let phases: Vec<&str> =
        lines.iter().map(|line| line["metadata"]["benchmark_phase"].as_str().unwrap()).collect();
    assert_eq!(phases, ["warmup", "profiling", "profiling"]);
    assert_eq!(lines[1]["metadata"]["request_start_ns"], S + 100 * MS);
    assert_eq!(lines[1]["metadata"]["request_end_ns"], S + 700 * MS);
    assert_eq!(
        lines[1]["metrics"]["time_to_first_token"],
        serde_json::json!({ "value": 200.0, "unit": "ms" })
    );
    assert_eq!(lines[1]["metrics"]["inter_chunk_latency"]["value"], serde_json::json!([200.0, 200.0]));
    assert_eq!(lines[1]["metrics"]["good_request_count"]["value"], 0);
    assert_eq!(lines[1].get("error"), None);
    assert_eq!(lines[2]["metadata"]["cancellation_time_ns"], S + 15 * MS);
    assert_eq!(lines[2]["error"]["code"], 503);
}
