use serde_json::Value;

use super::*;
use crate::plan::{Piece, Rate, Series, Shape};

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
    Schedule::new(&arrivals, seed, stop).map(|due| due.offset_ns).collect()
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
        let whole: Vec<Due> = Schedule::new(&arrivals, 7, &stop).collect();
        for shards in [1, 2, 7] {
            let mut dealt = Vec::new();
            for shard in 0..shards {
                let part: Vec<Due> = Dealt::new(Schedule::new(&arrivals, 7, &stop), shard, shards).collect();
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
    let schedule = || Schedule::new(&CONSTANT, 7, &units(10));
    assert_eq!(Dealt::new(schedule(), 2, 2).count(), 0);
    assert_eq!(Dealt::new(schedule(), 0, 0).count(), 10);
}

#[test]
fn constant_arrivals_never_drift() {
    let at = |rate: f64, index: usize| {
        let due = Schedule::new(&Arrivals::Constant { rate }, 0, &units(u64::MAX)).nth(index).unwrap();
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
    let mut ended = Schedule::new(&CONSTANT, 0, &units(1));
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
        Dealt::new(Schedule::new(&CONSTANT, 0, &units(80)), 3, 8).map(|due| due.offset_ns).collect();
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

fn varying(gaps: Gaps, rate: Rate, exact_count: bool) -> Arrivals {
    Arrivals::Varying(Varying { gaps, rate, exact_count })
}

fn series(pieces: &[Piece], repeat: bool) -> Rate {
    Rate::Series(Series { pieces: pieces.to_vec(), repeat })
}

const ALL_GAPS: [Gaps; 4] =
    [Gaps::Constant, Gaps::Poisson, Gaps::Gamma { burstiness: 0.25 }, Gaps::Gamma { burstiness: 4.0 }];

/// Up, a pause, a step down, and up again by the same factor in equal times.
fn day() -> [Piece; 4] {
    [
        Piece::ramp(0.0, 40.0, 10.0, Shape::Linear),
        Piece::steady(0.0, 5.0),
        Piece::steady(15.0, 5.0),
        Piece::ramp(15.0, 60.0, 7.5, Shape::Exponential),
    ]
}

/// The process of rate one with the same draws, added up another way.
fn unit_arrivals(gaps: Gaps, seed: u64, n: u64) -> Vec<f64> {
    let mut stream = rng::stream(seed, Purpose::Arrivals, 0);
    let mut sum = 0.0;
    let mut next = |i: u64| {
        sum += match gaps {
            Gaps::Constant if i == 0 => 0.0,
            Gaps::Constant => 1.0,
            Gaps::Poisson => -(1.0 - rng::unit(&mut stream)).ln(),
            Gaps::Gamma { burstiness } => {
                Gamma::new(burstiness, 1.0).unwrap().sample(&mut stream) / burstiness
            }
        };
        sum
    };
    (0..n).map(&mut next).collect()
}

#[test]
fn the_rate_up_to_an_arrival_makes_that_arrival_of_the_process_of_rate_one() {
    for (repeat, stop) in [(false, units(3000)), (true, units(3000)), (true, seconds(100.0))] {
        let rate = series(&day(), repeat);
        let course = Course::of(&rate);
        for gaps in ALL_GAPS {
            let at_ns = offsets(varying(gaps, rate.clone(), false), 5, &stop);
            assert!(at_ns.len() > 1000 && at_ns.is_sorted());
            for (at, unit) in at_ns.iter().zip(unit_arrivals(gaps, 5, at_ns.len() as u64)) {
                // An offset is rounded to a nanosecond, in which less than a ten millionth of a request comes.
                let count = course.count_by(*at as f64 / 1e9);
                assert!((count - unit).abs() < 1e-7 + 1e-12 * unit, "{gaps:?}: {count} is not {unit}");
            }
        }
    }
}

#[test]
fn nothing_is_planned_while_the_rate_is_0() {
    for gaps in ALL_GAPS {
        let at_ns = offsets(varying(gaps, series(&day(), true), false), 3, &units(5000));
        assert_eq!(at_ns.len(), 5000);
        for at in at_ns {
            let s = at as f64 / 1e9 % 27.5;
            assert!(!(10.000_000_001..14.999_999_999).contains(&s), "{gaps:?} at {s}");
        }
    }
    // When the rate ends at 0, so do the arrivals, whatever was asked for.
    let down = series(&[Piece::steady(100.0, 1.0), Piece::steady(0.0, 1.0)], false);
    assert_eq!(offsets(varying(Gaps::Constant, down, false), 3, &units(5000)).len(), 100);
}

#[test]
fn one_rate_over_time_is_that_rate() {
    for (gaps, plain) in
        [(Gaps::Constant, CONSTANT), (Gaps::Poisson, POISSON), (Gaps::Gamma { burstiness: 0.25 }, GAMMA)]
    {
        let expected = offsets(plain, 7, &units(20_000));
        for rate in [Rate::Steady(20.0), series(&[Piece::steady(20.0, 3.0)], false)] {
            let at_ns = offsets(varying(gaps, rate, false), 7, &units(20_000));
            assert_eq!(at_ns.len(), expected.len());
            for (at, expected) in at_ns.iter().zip(&expected) {
                assert!(at.abs_diff(*expected) <= 1, "{gaps:?}: {at} is not {expected}");
            }
        }
    }
}

#[test]
fn any_number_of_shards_sends_a_rate_over_time_as_one_does() {
    let stop = Stop { units: Some(2000), duration_s: Some(90.0), ..Stop::default() };
    let bursts = Arrivals::Bursts { size: 7, every_s: 0.5 };
    let of_gaps = ALL_GAPS.iter().flat_map(|gaps| {
        [
            varying(*gaps, series(&day(), true), false),
            varying(*gaps, series(&day(), false), true),
            varying(*gaps, Rate::Steady(30.0), true),
        ]
    });
    for arrivals in of_gaps.chain([bursts]) {
        let whole: Vec<Due> = Schedule::new(&arrivals, 7, &stop).collect();
        assert!(whole.len() > 1000, "{arrivals:?}");
        for shards in [1, 2, 7] {
            let parts =
                (0..shards).flat_map(|shard| Dealt::new(Schedule::new(&arrivals, 7, &stop), shard, shards));
            let mut dealt: Vec<Due> = parts.collect();
            dealt.sort();
            assert_eq!(dealt, whole, "{arrivals:?} over {shards} shards");
        }
    }
}

#[test]
fn an_exact_count_ends_when_the_rate_has_made_as_many() {
    for gaps in [Gaps::Poisson, Gaps::Gamma { burstiness: 0.25 }, Gaps::Gamma { burstiness: 4.0 }] {
        let last = |rate, n| *offsets(varying(gaps, rate, true), 11, &units(n)).last().unwrap();
        for n in [1, 2, 1000] {
            // n / rate, as vLLM has it.
            assert!(last(Rate::Steady(20.0), n).abs_diff(n * 50_000_000) <= 1, "{gaps:?} {n}");
            let expected = Course::of(&series(&day(), true)).time_of(n as f64).unwrap();
            let actual = last(series(&day(), true), n) as f64 / 1e9;
            assert!((actual - expected).abs() < 1e-6, "{gaps:?} {n}: {actual} is not {expected}");
        }
        // All in proportion.
        let free = offsets(varying(gaps, Rate::Steady(20.0), false), 11, &units(1000));
        let exact = offsets(varying(gaps, Rate::Steady(20.0), true), 11, &units(1000));
        let factor = 50e9 / *free.last().unwrap() as f64;
        for (free, exact) in free.iter().zip(exact) {
            assert!((*free as f64 * factor - exact as f64).abs() < 4.0);
        }
    }
    // Equal gaps are exact as they are: the first at 0.
    let exact = varying(Gaps::Constant, Rate::Steady(20.0), true);
    assert_eq!(offsets(exact, 0, &units(500)), offsets(CONSTANT, 0, &units(500)));
}

/// The spec measured what conditioning on the last arrival takes from slow swings: the standard deviation of arrivals in
/// the first half goes from 22.1 to 15.6 of 1000. In theory the latter is `sqrt(1000 / 4) = 15.8`; that of a binomial
/// number, of which 300 give the standard deviation to 4.1 % (one standard deviation of it), and the former
/// `sqrt(500) = 22.4` likewise. Bounds are four of them, of fixed seeds.
#[test]
fn an_exact_count_keeps_the_gaps_and_calms_the_swings() {
    let in_first_half = |exact_count| {
        let counts: Vec<f64> = (0..300)
            .map(|seed| {
                let arrivals = varying(Gaps::Poisson, Rate::Steady(20.0), exact_count);
                let at_ns = offsets(arrivals, seed, &units(1000));
                at_ns.iter().filter(|&&at| at < 25_000_000_000).count() as f64
            })
            .collect();
        let mean = counts.iter().sum::<f64>() / 300.0;
        (counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 299.0).sqrt()
    };
    for (exact_count, expected) in [(false, 22.36), (true, 15.81)] {
        let actual = in_first_half(exact_count);
        assert!((actual / expected - 1.0).abs() < 4.0 * 0.041, "{exact_count}: {actual}");
    }
}

/// Counts of an inhomogeneous Poisson process in stretches of time are independent Poisson numbers with the integral of
/// the rate as their mean: the sum of `(n - m)^2 / m` over 400 of them has mean 400 and a variance of twice that and of the
/// sum of `1 / m`.
#[test]
fn poisson_arrivals_of_a_rate_over_time_are_the_inhomogeneous_process() {
    let pieces = [
        Piece::ramp(20.0, 200.0, 10.0, Shape::Linear),
        Piece::ramp(200.0, 30.0, 10.0, Shape::Hyperbolic),
        Piece::ramp(30.0, 20.0, 5.0, Shape::Exponential),
    ];
    let rate = series(&pieces, true);
    let course = Course::of(&rate);
    let at_ns = offsets(varying(Gaps::Poisson, rate, false), 1, &seconds(100.0));
    let mut counts = [0u32; 400];
    at_ns.iter().for_each(|at| counts[(at / 250_000_000) as usize] += 1);
    let (mut chi, mut variance) = (0.0, 0.0);
    for (place, n) in counts.iter().enumerate() {
        let from = place as f64 / 4.0;
        let mean = course.count_by(from + 0.25) - course.count_by(from);
        chi += (f64::from(*n) - mean).powi(2) / mean;
        variance += 2.0 + 1.0 / mean;
    }
    assert!((chi - 400.0).abs() < 4.0 * f64::sqrt(variance), "{chi}, variance {variance}");
    // And equal gaps follow the rate to within one request at each end.
    let equal = offsets(varying(Gaps::Constant, series(&pieces, true), false), 1, &seconds(100.0));
    let mut counts = [0u32; 400];
    equal.iter().for_each(|at| counts[(at / 250_000_000) as usize] += 1);
    for (place, n) in counts.iter().enumerate() {
        let from = place as f64 / 4.0;
        let mean = course.count_by(from + 0.25) - course.count_by(from);
        assert!((f64::from(*n) - mean).abs() <= 1.0, "{n} in the stretch from {from}: {mean}");
    }
}

/// The golden's arrivals, moved so that the last of 10 000 comes at 10 000 / 4 s.
#[test]
fn exact_counts_are_those_of_vllm_on_the_golden_draws() {
    let golden = &golden()["PoissonArrivals"];
    let mut java = JavaRandom::new(7);
    let gaps: Vec<f64> = (0..10_000).map(|_| poisson_gap_s(java.unit(), 1.0)).collect();
    let mut sum = Sum::default();
    let unit: Vec<f64> = gaps.iter().map(|gap| sum.add_exact(*gap).unwrap()).collect();
    near(unit[9_999] / 4.0, &golden["span_s"]);
    // As vLLM does it: the sums of the gaps, times (n / rate) / the last sum.
    let factor = 2500.0 / golden["span_s"].as_f64().unwrap();
    for (place, expected) in golden["first8_s"].as_array().unwrap().iter().enumerate() {
        let moved = unit[place] * (10_000.0 / unit[9_999]) / 4.0;
        let expected_s = expected.as_f64().unwrap() * factor;
        // The golden shows milliseconds.
        assert!((moved - expected_s).abs() <= 0.000_51, "{moved} is not {expected_s}");
    }
}

#[test]
fn bursts_come_again_and_again() {
    let bursts = Arrivals::Bursts { size: 3, every_s: 2.5 };
    let (a, b, c) = (0, 2_500_000_000, 5_000_000_000);
    assert_eq!(offsets(bursts.clone(), 0, &units(8)), [a, a, a, b, b, b, c, c]);
    assert_eq!(offsets(bursts.clone(), 0, &seconds(5.0)), [a, a, a, b, b, b]);
    assert_eq!(offsets(bursts, 0, &seconds(5.1)).len(), 9);
    for wrong in [
        Arrivals::Bursts { size: 0, every_s: 1.0 },
        Arrivals::Bursts { size: 1, every_s: 0.0 },
        Arrivals::Bursts { size: 1, every_s: f64::NAN },
    ] {
        assert!(offsets(wrong, 0, &units(3)).is_empty());
    }
}

#[test]
fn what_is_no_rate_over_time_gives_an_empty_schedule() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        for gaps in ALL_GAPS {
            assert!(offsets(varying(gaps, Rate::Steady(rate), true), 0, &units(3)).is_empty());
            let rate = series(&[Piece::steady(rate, 1.0)], true);
            assert!(offsets(varying(gaps, rate, false), 0, &units(3)).is_empty());
        }
    }
    let no_shape = Gaps::Gamma { burstiness: 0.0 };
    assert!(offsets(varying(no_shape, Rate::Steady(1.0), false), 0, &units(3)).is_empty());
}

#[test]
fn users_come_in_at_equal_gaps_until_the_ramp_is_over() {
    let at: Vec<u64> = (0..4).map(|user| joined_offset_ns(user, 4, 10)).collect();
    assert_eq!(at, [0, 3, 6, 10]);
    assert_eq!(joined_offset_ns(0, 1, 10), 0);
    assert_eq!(joined_offset_ns(u32::MAX - 1, u32::MAX, u64::MAX), u64::MAX);
    assert_eq!(joined_offset_ns(0, 0, 10), 0);
}
