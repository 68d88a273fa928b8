use serde_json::Value;

use super::*;

/// `java.util.Random`, the source of randomness of the goldens.
struct JavaRandom(u64);

impl JavaRandom {
    fn new(seed: u64) -> JavaRandom {
        JavaRandom((seed ^ 0x5_DEEC_E66D) & ((1 << 48) - 1))
    }

    fn bits(&mut self, count: u32) -> u64 {
        self.0 = (self.0.wrapping_mul(0x5_DEEC_E66D).wrapping_add(0xB)) & ((1 << 48) - 1);
        self.0 >> (48 - count)
    }

    fn unit(&mut self) -> f64 {
        ((self.bits(26) << 27) + self.bits(27)) as f64 / (1u64 << 53) as f64
    }
}

fn golden() -> Value {
    let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/values.json"));
    serde_json::from_str(text).unwrap()
}

fn near(actual: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((actual - expected).abs() <= 1e-9 * expected.abs(), "{actual} is not {expected}");
}

fn units(n: u64) -> Stop {
    Stop { units: Some(n), ..Stop::default() }
}

fn seconds(s: f64) -> Stop {
    Stop { duration_s: Some(s), ..Stop::default() }
}

fn offsets(arrivals: Arrivals, seed: u64, stop: &Stop) -> Vec<u64> {
    Schedule::new(arrivals, seed, stop).map(|due| due.offset_ns).collect()
}

const POISSON: Arrivals = Arrivals::Poisson { rate: 20.0 };
const GAMMA: Arrivals = Arrivals::Gamma { rate: 20.0, burstiness: 0.25 };
const CONSTANT: Arrivals = Arrivals::Constant { rate: 20.0 };

#[test]
fn the_java_source_draws_as_the_golden_says() {
    let draws = &golden()["JavaRandomDraws"];
    for seed in [0, 7, 42] {
        let mut java = JavaRandom::new(seed);
        for expected in draws[seed.to_string()]["nextDouble"].as_array().unwrap() {
            assert_eq!(java.unit(), expected.as_f64().unwrap());
        }
    }
}

#[test]
fn poisson_gaps_give_the_golden_arrivals() {
    let golden = &golden()["PoissonArrivals"];
    let mut java = JavaRandom::new(7);
    let mut sum = Sum::default();
    let gaps: Vec<f64> = (0..10_000).map(|_| poisson_gap_s(java.unit(), 4.0)).collect();
    let at_ns: Vec<u64> = gaps.iter().map(|&gap| sum.add(gap).unwrap()).collect();
    let n = at_ns.len() as u64;
    let span_ns = *at_ns.last().unwrap();

    assert_eq!(n, golden["n"].as_u64().unwrap());
    near(span_ns as f64 / 1e9, &golden["span_s"]);
    near(realised_rate(n, span_ns).unwrap(), &golden["mean_rate"]);
    near(span_ns as f64 / 1e9 / n as f64, &golden["mean_gap_s"]);
    let short = gaps.iter().filter(|&&gap| gap < 0.05).count();
    near(short as f64 / n as f64 * 100.0, &golden["gaps_under_50ms_pct"]);
    for (at, expected) in at_ns.iter().zip(golden["first8_s"].as_array().unwrap()) {
        assert_eq!((*at as f64 / 1e6).round(), (expected.as_f64().unwrap() * 1e3).round());
    }

    // Counts per whole second, complete seconds only.
    let mut windows = vec![0usize; (span_ns / 1_000_000_000) as usize];
    for at in at_ns {
        if let Some(window) = windows.get_mut((at / 1_000_000_000) as usize) {
            *window += 1;
        }
    }
    assert_eq!(*windows.iter().min().unwrap() as u64, golden["window_min"].as_u64().unwrap());
    assert_eq!(*windows.iter().max().unwrap() as u64, golden["window_max"].as_u64().unwrap());
    let expected: Vec<usize> =
        golden["window_hist"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap() as usize).collect();
    let hist: Vec<usize> =
        (0..expected.len()).map(|k| windows.iter().filter(|&&count| count == k).count()).collect();
    assert_eq!(hist, expected);
}

#[test]
fn any_number_of_shards_sends_the_schedule_of_one() {
    for arrivals in [POISSON, GAMMA, CONSTANT, Arrivals::Burst] {
        let stop = Stop { units: Some(1000), duration_s: Some(40.0), ..Stop::default() };
        let whole: Vec<Due> = Schedule::new(arrivals, 7, &stop).collect();
        for shards in [1, 2, 7] {
            let mut dealt = Vec::new();
            for shard in 0..shards {
                let part: Vec<Due> = Dealt::new(Schedule::new(arrivals, 7, &stop), shard, shards).collect();
                assert!(part.iter().all(|due| due.index % u64::from(shards) == u64::from(shard)));
                assert!(part.is_sorted());
                dealt.extend(part);
            }
            dealt.sort();
            assert_eq!(dealt, whole, "{arrivals:?} over {shards} shards");
        }
    }
}

#[test]
fn a_shard_that_does_not_exist_sends_nothing() {
    let schedule = || Schedule::new(CONSTANT, 7, &units(10));
    assert_eq!(Dealt::new(schedule(), 2, 2).count(), 0);
    assert_eq!(Dealt::new(schedule(), 0, 0).count(), 10);
}

#[test]
fn constant_arrivals_never_drift() {
    let at = |rate: f64, index: usize| {
        let due = Schedule::new(Arrivals::Constant { rate }, 0, &units(u64::MAX)).nth(index).unwrap();
        (due.index, due.offset_ns)
    };
    assert_eq!(offsets(Arrivals::Constant { rate: 4.0 }, 0, &units(3)), [0, 250_000_000, 500_000_000]);
    assert_eq!(at(3.0, 300_000), (300_000, 100_000_000_000_000));
    assert_eq!(at(0.1, 100_000), (100_000, 1_000_000_000_000_000));
}

#[test]
fn sums_of_gaps_do_not_drift() {
    // A third of a nanosecond, a million and a half times: half a million nanoseconds and no rounding in between.
    let mut sum = Sum::default();
    let last = (0..1_500_000).map(|_| sum.add(1e-9 / 3.0).unwrap()).last().unwrap();
    assert!((499_999..=500_000).contains(&last), "{last}");
    // Gaps that a float of seconds could no longer hold beside a hundred days.
    let mut sum = Sum { whole_ns: 100 * 86_400 * 1_000_000_000, fraction_ns: 0.0 };
    let start = sum.whole_ns;
    (0..1000).for_each(|_| assert!(sum.add(1e-9).is_some()));
    assert!((999..=1000).contains(&(sum.whole_ns - start)));
}

#[test]
fn a_schedule_ends_with_its_units_or_before_its_duration() {
    assert_eq!(offsets(CONSTANT, 0, &seconds(10.0)).len(), 200);
    assert_eq!(offsets(CONSTANT, 0, &Stop { units: Some(3), ..seconds(10.0) }).len(), 3);
    assert_eq!(offsets(CONSTANT, 0, &Stop { units: Some(300), ..seconds(10.0) }).len(), 200);
    assert!(offsets(POISSON, 3, &seconds(10.0)).iter().all(|&ns| ns < 10_000_000_000));
    let mut ended = Schedule::new(CONSTANT, 0, &units(1));
    assert_eq!((ended.next().is_some(), ended.next(), ended.next()), (true, None, None));
}

#[test]
fn a_burst_is_all_at_once_and_a_closed_loop_has_no_schedule() {
    assert_eq!(offsets(Arrivals::Burst, 0, &units(3)), [0, 0, 0]);
    assert!(offsets(Arrivals::Burst, 0, &seconds(1.0)).is_empty());
    assert!(offsets(Arrivals::Closed, 0, &units(3)).is_empty());
}

#[test]
fn a_rate_that_is_none_gives_an_empty_schedule() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for arrivals in [
            Arrivals::Constant { rate },
            Arrivals::Poisson { rate },
            Arrivals::Gamma { rate, burstiness: 1.0 },
            Arrivals::Gamma { rate: 1.0, burstiness: rate },
        ] {
            assert!(offsets(arrivals, 0, &units(3)).is_empty());
        }
    }
    // One request in more than 584 years: there is no second one.
    assert_eq!(offsets(Arrivals::Constant { rate: 1e-11 }, 0, &units(3)), [0]);
}

#[test]
fn a_seed_gives_one_schedule_and_another_seed_another() {
    assert_eq!(offsets(POISSON, 7, &units(50)), offsets(POISSON, 7, &units(50)));
    assert_ne!(offsets(POISSON, 7, &units(50)), offsets(POISSON, 8, &units(50)));
    // The end does not change the beginning.
    assert_eq!(offsets(GAMMA, 7, &units(50))[..10], offsets(GAMMA, 7, &seconds(100.0))[..10]);
}

/// Gaps of a schedule, s.
fn gaps(arrivals: Arrivals, n: u64) -> Vec<f64> {
    let at = offsets(arrivals, 11, &units(n));
    std::iter::once(0).chain(at.iter().copied()).zip(&at).map(|(a, &b)| (b - a) as f64 / 1e9).collect()
}

/// Mean and coefficient of variation.
fn moments(gaps: &[f64]) -> (f64, f64) {
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    (mean, variance.sqrt() / mean)
}

#[test]
fn poisson_gaps_are_exponential() {
    let mut gaps = gaps(POISSON, 20_000);
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let distance = gaps
        .iter()
        .enumerate()
        .map(|(i, gap)| {
            let expected = 1.0 - (-gap * 20.0).exp();
            (expected - i as f64 / n).abs().max((expected - (i + 1) as f64 / n).abs())
        })
        .fold(0.0, f64::max);
    // Kolmogorov-Smirnov at 1 %.
    assert!(distance < 1.63 / n.sqrt(), "{distance}");
}

#[test]
fn gamma_gaps_have_the_mean_of_the_rate_and_the_variation_of_the_shape() {
    for (burstiness, tolerance) in [(0.25, 0.06), (1.0, 0.03), (4.0, 0.02), (100.0, 0.02)] {
        let (mean, cv) = moments(&gaps(Arrivals::Gamma { rate: 20.0, burstiness }, 20_000));
        assert!((mean * 20.0 - 1.0).abs() < tolerance, "shape {burstiness}: mean {mean}");
        let expected = 1.0 / f64::sqrt(burstiness);
        assert!((cv / expected - 1.0).abs() < tolerance, "shape {burstiness}: variation {cv}");
    }
}

#[test]
fn dealing_keeps_the_process_intact() {
    // Each of 8 shards of constant arrivals still sends at equal gaps, 8 times as long.
    let part: Vec<u64> =
        Dealt::new(Schedule::new(CONSTANT, 0, &units(80)), 3, 8).map(|due| due.offset_ns).collect();
    assert!(part.windows(2).all(|w| w[1] - w[0] == 400_000_000));
}

#[test]
fn a_realised_rate_needs_a_span() {
    assert_eq!(realised_rate(10, 2_000_000_000), Some(5.0));
    assert_eq!(realised_rate(10, 0), None);
}

#[test]
fn closed_loop_users_send_every_index_once() {
    let users = 5;
    let mut indices: Vec<u64> =
        (0..users).flat_map(|user| (0..4).map(move |k| closed_index(user, k, users))).collect();
    assert_eq!(closed_index(3, 2, users), 13);
    indices.sort();
    assert_eq!(indices, (0..20).collect::<Vec<_>>());
}

#[test]
fn users_are_shared_out_evenly() {
    for (shards, users) in [(1, 5), (2, 5), (7, 5), (4, 4), (3, 0)] {
        let shares: Vec<Vec<u32>> = (0..shards).map(|s| users_of(s, shards, users).collect()).collect();
        let mut all: Vec<u32> = shares.concat();
        all.sort();
        assert_eq!(all, (0..users).collect::<Vec<_>>());
        let sizes: Vec<usize> = shares.iter().map(Vec::len).collect();
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        assert_eq!(sizes.iter().filter(|&&n| n > 0).count() as u32, shards.min(users));
    }
}
