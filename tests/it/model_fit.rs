//! The fit of a server's costs, on what the model itself gives in a closed loop; and what the fitted server predicts.

use std::time::Duration;

use tokload::model::fit::{Fit, Point, fit};
use tokload::model::{Batching, Cost, Server, Serving, Settings};
use tokload::time::Stamp;

use crate::goldens::values;
use crate::goldens_model::{Asked, ClosedLoop, number};
use crate::java_random::JavaRandom;

const COST: Cost = Cost { base_ms: 7.0, per_sequence_ms: 0.3, per_prefill_token_ms: 0.02 };

/// How a level is measured.
#[derive(Clone, Copy)]
struct Measuring {
    /// Between an answer and the user's next request.
    turnaround: Duration,
    /// Answers of 30 to 70 tokens instead of 50.
    varied: bool,
    seconds: u64,
}

fn measured(batching: &Batching, users: u32, measuring: Measuring) -> Point {
    let settings =
        Settings { seed: u64::from(users), ..Settings::serving(Serving::Batching(batching.clone())) };
    let server = Server::new(&settings, Stamp::ZERO).unwrap();
    let mut random = JavaRandom::new(u64::from(users));
    let draw = || if measuring.varied { 30 + random.below(41) as u32 } else { 50 };
    let end = Stamp::from_millis(measuring.seconds * 1000);
    let run = ClosedLoop::new(server, u64::from(users), measuring.turnaround, draw).run(end);
    // Without the requests of the beginning, when queues were still to fill.
    let warm: Vec<&Asked> = run.done[2 * users as usize..].iter().collect();
    let mean =
        |of: &dyn Fn(&Asked) -> f64| warm.iter().map(|asked| of(asked)).sum::<f64>() / warm.len() as f64;
    Point {
        users,
        prompt_tokens: 200.0,
        output_tokens: mean(&|asked| f64::from(asked.tokens)),
        ttft_ms: mean(&Asked::ttft_ms),
        tpot_ms: mean(&Asked::tpot_ms),
        request_rate: None,
    }
}

#[track_caller]
fn assert_fit(fit: &Fit, slots: u32, relative: f64) {
    assert_eq!(fit.slots, Some(slots), "{fit:?}");
    for (fitted, true_ms) in [
        (fit.cost.base_ms, COST.base_ms),
        (fit.cost.per_sequence_ms, COST.per_sequence_ms),
        (fit.cost.per_prefill_token_ms, COST.per_prefill_token_ms),
    ] {
        assert!((fitted / true_ms - 1.0).abs() <= relative, "{fitted} instead of {true_ms}: {fit:?}");
    }
}

#[test]
fn a_server_without_noise_is_found_exactly() {
    let server = Batching { slots: 12, cost: COST, ..Batching::default() };
    let measuring = Measuring { turnaround: Duration::ZERO, varied: false, seconds: 60 };
    let points: Vec<Point> = [1, 4, 12, 24].map(|users| measured(&server, users, measuring)).into();
    let fit = fit(&points).unwrap();
    assert_fit(&fit, 12, 1e-9);
    assert!(fit.error_rms < 1e-9);
}

#[test]
fn the_golden_sweep_gives_the_server_behind_it() {
    let sweep = values("ConcurrencySweep");
    let points: Vec<Point> = sweep
        .as_array()
        .unwrap()
        .iter()
        .map(|row| Point {
            users: row["clients"].as_u64().unwrap() as u32,
            prompt_tokens: 200.0,
            output_tokens: number(row, "tok_s") / number(row, "req_s"),
            ttft_ms: number(row, "ttft_p50"),
            tpot_ms: number(row, "tpot_mean"),
            request_rate: Some(number(row, "req_s")),
        })
        .collect();
    let fit = fit(&points).unwrap();
    let course = Cost::default();
    assert_eq!(fit.slots, Some(16));
    for (fitted, true_ms) in [
        (fit.cost.base_ms, course.base_ms),
        (fit.cost.per_sequence_ms, course.per_sequence_ms),
        (fit.cost.per_prefill_token_ms, course.per_prefill_token_ms),
    ] {
        assert!((fitted / true_ms - 1.0).abs() < 0.01, "{fitted} instead of {true_ms}");
    }
}

/// Requests that come in the middle of steps, answers of different lengths, noise in every step.
#[test]
fn a_server_measured_with_noise_is_found_within_a_few_percent_and_predicts_what_was_not_measured() {
    let server = Batching { slots: 16, cost: COST, noise: 0.1, ..Batching::default() };
    for turnaround in [Duration::ZERO, Duration::from_micros(300)] {
        let measuring = Measuring { turnaround, varied: true, seconds: 120 };
        let points: Vec<Point> = [1, 4, 16, 64].map(|users| measured(&server, users, measuring)).into();
        let fit = fit(&points).unwrap();
        assert_fit(&fit, 16, 0.03);
        for users in [2, 8, 12, 32, 100] {
            let (true_point, twin) =
                (measured(&server, users, measuring), measured(&fit.batching(), users, measuring));
            for (predicted, true_ms) in
                [(twin.tpot_ms, true_point.tpot_ms), (twin.ttft_ms, true_point.ttft_ms)]
            {
                assert!((predicted / true_ms - 1.0).abs() < 0.03, "{users}: {predicted} and {true_ms}");
            }
        }
    }
}
