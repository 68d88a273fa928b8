use super::collect::{Place, level};
use super::*;
use crate::metrics::{Class, Kind, Outcome, Record};
use crate::plan::Slo;
use crate::report::requests::Request;
use crate::stats::Quantile;
use crate::time::Stamp;

fn ms(ms: u64) -> Stamp {
    Stamp::from_millis(ms)
}

/// An answer with content at `events_ms`, in ms of the level; the stream ends at `end_ms`.
fn answer(index: u64, plan_ms: u64, start_ms: u64, events_ms: &[u64], end_ms: u64, tokens: u32) -> Request {
    let events: Vec<Stamp> = events_ms.iter().map(|at| ms(*at)).collect();
    let record = Record {
        outcome: Outcome::ok(200),
        start: ms(start_ms),
        first: events.first().copied(),
        last: events.last().copied(),
        end: ms(end_ms),
        output_tokens: Some(tokens),
        prompt_tokens: Some(10),
        events: events.len() as u32,
        ..Record::planned(index, ms(plan_ms))
    };
    Request { record, events: Some(events) }
}

/// Three answers and a failure: the first is late by 10 ms, the third by 50, and two have a tail behind the last token.
fn requests() -> Vec<Request> {
    let failed = Record {
        outcome: Outcome::new(Class::Http, Kind::HttpStatus, 503),
        start: ms(300),
        end: ms(900),
        ..Record::planned(3, ms(300))
    };
    vec![
        answer(0, 0, 10, &[110, 210, 310], 330, 5),
        answer(1, 100, 100, &[200, 300, 400, 500], 500, 4),
        answer(2, 200, 250, &[350], 360, 1),
        Request { record: failed, events: Some(Vec::new()) },
    ]
}

fn as_(tool: Other, requests: &[Request]) -> Level {
    let slo = Slo { ttft_ms: Some(100.0), tpot_ms: Some(60.0), ..Slo::default() };
    level(Place { ordinal: 0, label: "x", t0: ms(0) }, requests, &slo, tool)
}

/// Mean, median and p99.
fn of(level: &Level, name: &str) -> [f64; 3] {
    let spread = level.figure(name).unwrap_or_else(|| panic!("{name}"));
    [spread.mean(), spread.percentile(Quantile::P50), spread.percentile(Quantile::P99)]
}

#[track_caller]
fn near(found: impl IntoIterator<Item = f64>, expected: &[f64]) {
    let found: Vec<f64> = found.into_iter().collect();
    assert_eq!(found.len(), expected.len());
    for (one, other) in found.iter().zip(expected) {
        assert!((one - other).abs() <= 1e-9 * other.abs().max(1.0), "{found:?} is not {expected:?}");
    }
}

#[test]
fn guidellm_divides_by_all_tokens_and_ends_with_the_stream() {
    let level = as_(Other::Guidellm, &requests());
    near(of(&level, "request_latency"), &[(0.32 + 0.4 + 0.11) / 3.0, 0.32, 0.4]);
    near(of(&level, "time_to_first_token_ms"), &[100.0; 3]);
    // 300 / 5, 400 / 4 and 100 / 1.
    near(of(&level, "time_per_output_token_ms"), &[260.0 / 3.0, 100.0, 100.0]);
    // 200 / 4 and 300 / 3: of two values the first is the median.
    near(of(&level, "inter_token_latency_ms"), &[75.0, 50.0, 100.0]);
    // From the first start to the end of the last request, which failed.
    let total = |name| level.total(name).unwrap();
    near([total("duration"), total("requests_per_second")], &[0.89, 3.0 / 0.89]);
    near([total("output_tokens_per_second"), total("tokens_per_second")], &[10.0 / 0.89, 40.0 / 0.89]);
    near([total("request_concurrency")], &[(0.32 + 0.4 + 0.11) / 0.89]);
    assert_eq!((level.ok, level.failed, level.cancelled, level.passes), (3, 1, 0, None));
}

#[test]
fn servebench_counts_the_tail_into_tpot_and_failures_as_missed() {
    let level = as_(Other::Servebench, &requests());
    near(of(&level, "ttft_ms"), &[100.0; 3]);
    // 220 / 4 and 300 / 3, between which is interpolated.
    near(of(&level, "tpot_ms"), &[77.5, 77.5, 99.55]);
    near(of(&level, "e2e_ms"), &[830.0 / 3.0, 320.0, 398.4]);
    near(of(&level, "itl_ms"), &[100.0; 3]);
    let total = |name| level.total(name).unwrap();
    near([total("duration_s"), total("request_throughput")], &[0.9, 3.0 / 0.9]);
    // The second has a TPOT of 100; the third has none, which passes.
    near([total("goodput"), total("attainment")], &[2.0 / 0.9, 0.5]);
    let untimed: Vec<Request> =
        requests().into_iter().map(|request| Request { events: None, ..request }).collect();
    assert!(as_(Other::Servebench, &untimed).figure("itl_ms").is_none());
}

#[test]
fn mlperf_counts_from_the_plan_and_takes_the_floor() {
    let level = as_(Other::Mlperf, &requests());
    near(of(&level, "latency_ns"), &[890e6 / 3.0, 330e6, 400e6]);
    near(of(&level, "first_token_latency_ns"), &[120e6, 110e6, 150e6]);
    // Of two values the second is at floor(2 * 0.5).
    near(of(&level, "time_to_output_token_ns"), &[77.5e6, 100e6, 100e6]);
    // The one issued last that ended well is complete after 360 ms.
    let total = |name| level.total(name).unwrap();
    near([total("final_query_done_s"), total("completed_samples_per_second")], &[0.36, 2.0 / 0.36]);
    near([total("completed_tokens_per_second"), total("scheduled_samples_per_second")], &[10.0 / 0.36, 10.0]);
    assert_eq!(level.passes, Some(false), "one failed");
    let fine = vec![answer(0, 0, 0, &[50, 60], 60, 2)];
    assert_eq!(as_(Other::Mlperf, &fine).passes, Some(true));
    assert_eq!(as_(Other::Mlperf, &[answer(0, 0, 0, &[101], 101, 1)]).passes, Some(false));
}

#[test]
fn nothing_is_no_number() {
    let failed = vec![requests().remove(3)];
    for tool in [Other::Guidellm, Other::Mlperf, Other::Servebench] {
        for requests in [Vec::new(), failed.clone()] {
            let level = as_(tool, &requests);
            assert_eq!((level.ok, level.failed as usize), (0, requests.len()), "{tool:?}");
            assert!(level.figures.is_empty() && level.totals.iter().all(|total| total.value.is_finite()));
            let text = serde_json::Value::Object(to_json(&level)).to_string();
            assert!(!text.contains("null"), "{text}");
        }
    }
}

#[test]
fn percentiles_are_those_of_each_rule() {
    let of = |rule| {
        let spread = Spread::of((1..=100).map(f64::from).collect(), rule).unwrap();
        [Quantile::P50, Quantile::P99, Quantile::MAX].map(|quantile| spread.percentile(quantile))
    };
    near(of(Rule::Linear), &[50.5, 99.01, 100.0]);
    assert_eq!(of(Rule::NearestRank), [50.0, 99.0, 100.0]);
    assert_eq!(of(Rule::Floor), [51.0, 100.0, 100.0]);
    assert_eq!(Spread::of(Vec::new(), Rule::Floor), None);
}
