use super::*;
use crate::plan::Prefix;

fn plan() -> Plan {
    let mut plan = Plan::new(1);
    plan.target.endpoints.push(Endpoint { url: "http://h:8000".into() });
    plan.complete();
    plan
}

/// The option named by the refusal of the plan that `change` makes of a good one.
fn refused(change: impl FnOnce(&mut Plan)) -> String {
    let mut plan = plan();
    change(&mut plan);
    let error = plan.validate().expect_err("a bad plan");
    assert!(!error.wrong.is_empty() && !error.remedy.is_empty());
    error.subject
}

#[test]
fn a_completed_default_plan_with_an_endpoint_is_valid() {
    assert_eq!(plan().validate(), Ok(()));
}

#[test]
fn targets() {
    let endpoint = |url: &str| vec![Endpoint { url: url.into() }];
    let header = |name: &str, value: &str| vec![Header { name: name.into(), value: value.into() }];
    assert_eq!(refused(|p| p.target.endpoints.clear()), "--base-url");
    assert_eq!(refused(|p| p.target.endpoints = endpoint("http://u:p@h:80")), "--base-url");
    assert_eq!(refused(|p| p.target.endpoints = endpoint("http://h:80/v1")), "--base-url");
    assert_eq!(refused(|p| p.target.endpoints = endpoint("ftp://h")), "--base-url");
    assert_eq!(refused(|p| p.target.models = vec![String::new()]), "--model");
    assert_eq!(refused(|p| p.target.path = Some("v1".into())), "--endpoint");
    assert_eq!(refused(|p| p.target.path = Some("/v1 x".into())), "--endpoint");
    assert_eq!(refused(|p| p.target.headers = header("X Y", "z")), "--header");
    assert_eq!(refused(|p| p.target.headers = header("X", "a\r\nY: b")), "--header");
    assert_eq!(refused(|p| p.target.headers = header("Authorization", "Bearer x")), "--header");
    assert_eq!(refused(|p| p.target.headers = header("content-Length", "1")), "--header");
}

#[test]
fn loads() {
    let set = |load: Load| refused(move |p| p.levels[0].load = load);
    let open = |arrivals| Load { arrivals, cap: None, users: None, think_s: 0.0 };
    assert_eq!(set(Load::closed(0)), "--max-concurrency");
    assert_eq!(set(open(Arrivals::Closed)), "--max-concurrency");
    assert_eq!(set(Load { cap: Some(3), ..Load::closed(2) }), "--max-concurrency");
    assert_eq!(set(Load { arrivals: Arrivals::Burst, ..Load::closed(2) }), "--arrival-pattern");
    assert_eq!(set(Load { cap: Some(3), ..open(Arrivals::Burst) }), "--max-concurrency");
    assert_eq!(set(Load { think_s: 1.0, ..open(Arrivals::Burst) }), "--think-time");
    assert_eq!(set(open(Arrivals::Trace { speedup: 1.0 })), "--fixed-schedule", "no file");
    assert_eq!(set(open(Arrivals::Trace { speedup: f64::NAN })), "--trace-speedup");
    assert_eq!(refused(|p| p.workload.trace = Some(crate::plan::Trace::of("t"))), "--trace", "a burst");
    assert_eq!(set(Load { think_s: f64::NAN, ..Load::closed(2) }), "--think-time");
    assert_eq!(set(Load { think_s: 31_536_001.0, ..Load::closed(2) }), "--think-time");
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY, 2e6] {
        assert_eq!(set(open(Arrivals::Poisson { rate })), "--request-rate");
    }
    assert_eq!(set(open(Arrivals::Gamma { rate: 1.0, burstiness: 0.0 })), "--burstiness");
    for interval_s in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-7, 1e5] {
        assert_eq!(set(Load::paced(2, interval_s)), "--pace");
    }
    assert_eq!(set(Load { think_s: 1.0, ..Load::paced(2, 1.0) }), "--pace");
    assert_eq!(set(Load { users: None, ..Load::paced(2, 1.0) }), "--max-concurrency");
    assert_eq!(set(Load { cap: Some(1), ..Load::paced(2, 1.0) }), "--max-concurrency");
}

#[test]
fn a_rate_must_send_a_request_within_the_level_and_its_requests_within_a_year() {
    let of = |rate, duration_s, units| {
        let mut plan = plan();
        let load = Load { arrivals: Arrivals::Poisson { rate }, cap: None, users: None, think_s: 0.0 };
        plan.levels = vec![Level {
            load,
            stop: Stop { duration_s, units, ..Stop::default() },
            warmups: 0,
            ..Level::default()
        }];
        plan.validate().map_err(|error| error.to_string())
    };
    assert_eq!(of(0.5, Some(2.0), None), Ok(()));
    assert_eq!(of(1.0, None, Some(31_536_000)), Ok(()));
    assert_eq!(
        of(0.4, Some(2.0), Some(64)).unwrap_err(),
        "--request-rate: 0.4 a second is less than one request in 2 s; give a larger one, or a longer level"
    );
    assert_eq!(
        of(1e-300, None, Some(64)).unwrap_err(),
        "--request-rate: at 1e-300 a second 64 requests take more than a year; give a larger one, or fewer requests"
    );
    assert!(of(1.0, None, Some(31_536_001)).is_err());
    assert_eq!(
        of(1e300, None, Some(64)).unwrap_err(),
        "--request-rate: 1e300 is not a rate; give requests per second above 0, at most 1000000, or inf"
    );
}

#[test]
fn stops() {
    assert_eq!(refused(|p| p.levels.clear()), "--request-rate");
    assert_eq!(refused(|p| p.levels[0].stop.units = Some(0)), "--num-prompts");
    assert_eq!(refused(|p| p.levels[0].stop.units = None), "--num-prompts");
    assert_eq!(refused(|p| p.levels[0].stop.duration_s = Some(0.0)), "--duration");
    assert_eq!(refused(|p| p.levels[0].stop.duration_s = Some(31_536_001.0)), "--duration");
    assert_eq!(refused(|p| p.levels[0].stop.grace_s = f64::INFINITY), "--benchmark-grace-period");
    // A duration does not end a burst.
    assert_eq!(
        refused(|p| p.levels[0].stop = Stop { duration_s: Some(1.0), ..Stop::default() }),
        "--num-prompts"
    );
}

#[test]
fn lengths_and_what_prompts_share() {
    let input = |d: Distribution| refused(move |p| p.workload.input_words = Lengths::Drawn(d));
    let output = |d: Distribution| refused(move |p| p.workload.output_tokens = Lengths::Drawn(d));
    let lognormal = |median, sigma| Distribution::Lognormal { median, sigma, min: None, max: None };
    let normal = |mean, stddev| Distribution::Normal { mean, stddev, min: None, max: None };
    for bad in [
        lognormal(0.0, 1.0),
        lognormal(f64::NAN, 1.0),
        lognormal(9.0, -1.0),
        lognormal(9.0, 5.5),
        normal(0.0, 1.0),
        normal(f64::INFINITY, 1.0),
        normal(9.0, -1.0),
        normal(9.0, f64::NAN),
        Distribution::Normal { mean: 9.0, stddev: 1.0, min: Some(5), max: Some(4) },
        Distribution::Uniform { min: 0, max: 4 },
        Distribution::Uniform { min: 5, max: 4 },
    ] {
        assert_eq!(input(bad.clone()), "--random-input-len", "{bad:?}");
        assert_eq!(output(bad.clone()), "--random-output-len", "{bad:?}");
    }
    assert_eq!(input(Distribution::Uniform { min: 1, max: u32::MAX }), "--random-input-len");
    let prefix = |words, pool| refused(move |p| p.workload.prefix = Some(Prefix::new(words, pool)));
    assert_eq!(prefix(0, 1), "--random-prefix-len");
    assert_eq!(prefix(0, 2), "--prefix-prompt-length");
    assert_eq!(prefix(u32::MAX, 1), "--random-prefix-len");
    assert_eq!(prefix(9, 0), "--num-prefix-prompts");
    assert_eq!(refused(|p| p.workload.distinct = Some(0)), "--num-dataset-entries");

    let mut plan = plan();
    plan.workload.prefix = Some(Prefix::new(9, 1));
    plan.workload.input_words = 0.into();
    assert_eq!(plan.validate(), Ok(()), "a prefix may be all there is");
    plan.workload.input_words = Lengths::Drawn(lognormal(600.0, 1.0));
    plan.workload.output_tokens = Lengths::Drawn(normal(200.0, 0.0));
    assert_eq!(plan.validate(), Ok(()));
}

#[test]
fn workload_limits_and_client() {
    assert_eq!(refused(|p| p.seed = u64::MAX), "--seed");
    assert_eq!(refused(|p| p.workload.input_words = 0.into()), "--random-input-len");
    assert_eq!(refused(|p| p.workload.output_tokens = 0.into()), "--random-output-len");
    assert_eq!(refused(|p| p.workload.choices = 0), "--n");
    assert_eq!(refused(|p| p.workload.input_words = u32::MAX.into()), "--random-input-len");
    assert_eq!(refused(|p| p.workload.choices = u32::MAX), "--n");
    assert_eq!(refused(|p| p.workload.sampling.top_p = Some(f64::NAN)), "--top-p");
    assert_eq!(
        refused(|p| drop(p.workload.extra_body.insert("stream".into(), false.into()))),
        "--extra-body"
    );
    assert_eq!(refused(|p| p.slo.tpot_ms = Some(0.0)), "--goodput");
    assert_eq!(refused(|p| p.limits.gap_s = -1.0), "--no-progress-timeout");
    assert_eq!(refused(|p| p.client.start_spread_us = -1.0), "--start-spread");
    assert_eq!(refused(|p| p.client.start_spread_us = 1e300), "--start-spread");
    assert_eq!(refused(|p| p.client.workers = Some(0)), "--workers");
    assert_eq!(refused(|p| p.client.affinity = Some(vec![1, 2, 1])), "--cpu-affinity");
    assert_eq!(
        refused(|p| {
            p.client.affinity = Some(vec![1]);
            p.client.workers = Some(2);
        }),
        "--cpu-affinity"
    );
    assert_eq!(refused(|p| p.runs = 0), "--num-runs");
    let until = |figure, half_width, times_max| Some(Until { figure, half_width, times_max });
    let closed = |p: &mut Plan| p.levels[0].load = Load::closed(2);
    for half_width in [0.0, -0.1, 1.0, f64::NAN, f64::INFINITY] {
        let wish = until(Figure::Attainment, half_width, 2);
        assert_eq!(refused(|p| (closed(p), p.until = wish).1), "--until-ci");
    }
    let good = until(Figure::Attainment, 0.05, 2);
    assert_eq!(refused(|p| (closed(p), p.until = until(Figure::Attainment, 0.05, 0)).1), "--until-ci-max");
    assert_eq!(refused(|p| p.until = good), "--until-ci", "a burst");
    assert_eq!(
        refused(|p| {
            closed(p);
            (p.until, p.slo) = (good, crate::plan::Slo::default());
        }),
        "--until-ci"
    );
    let of = |metric| Figure::Quantile(metric, crate::stats::Quantile::P50);
    assert_eq!(
        refused(|p| {
            closed(p);
            (p.until, p.target.stream) = (until(of(Metric::Ttft), 0.05, 2), false);
        }),
        "--until-ci"
    );
    assert_eq!(refused(|p| p.runs = 1001), "--num-runs");
}
