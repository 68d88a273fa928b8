//! The explanation of a run: only what its numbers carry, in order, and silent where there are none.

use std::time::Duration;

use tokload::metrics::Metric;
use tokload::model::{Batching, Cost, Fixed, PrefixCache, Serving, Settings};
use tokload::plan::{Arrivals, Load};
use tokload::report::explain;
use tokload::run_file::RunFile;
use tokload::run_file::schema::{LevelBlock, Verbatim};
use tokload::stats::Quantile;
use tokload::summary::{InFlight, QuantileValue};

use crate::fit_run::{Driving, STEADY, run, server};
use crate::run_file::sample;

const VARIED: Driving = Driving { varied: true, ..STEADY };

fn explained(run: &RunFile, model: Option<&Settings>) -> String {
    let mut out = Vec::new();
    explain::write(run, model, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The explanation in one line, to look for sentences that may be broken anywhere.
fn flowing(run: &RunFile, model: Option<&Settings>) -> String {
    explained(run, model).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_says(text: &str, sentences: &[&str]) {
    let mut rest = text;
    for sentence in sentences {
        let place =
            rest.find(sentence).unwrap_or_else(|| panic!("not, or not in this order: {sentence}\n{text}"));
        rest = &rest[place + sentence.len()..];
    }
}

fn set_mean(level: &mut LevelBlock, metric: Metric, ms: f64) {
    level.distributions.get_mut(&metric).unwrap().mean = Some(ms * 1e6);
}

const COURSE: &str = "
why the curve bends
  Users divided by the time of an answer are the throughput, X = N / W: it bends
    where W grows.
  1 to 16 users: 16 times the users, 8.51 times the throughput (1.77 to 15.03
    requests/s): an answer takes longer, E2E 566.8 to 1067 ms. Nearly all of
    that comes after the first token: TPOT 10.50 to 20.98 ms, TTFT 20.50 to
    31.17 ms.
  16 to 64 users: 4 times the users, 1.00 times the throughput (15.03 to 15.07
    requests/s): an answer takes longer, E2E 1067 to 4240 ms. Nearly all of that
    is the wait for the first token: TTFT 31.17 to 3212 ms, TPOT 20.98 to 21.01
    ms.
  From 16 users on throughput no longer grows: 15.03 requests/s there, 15.07
    with 64 users.
  Each further user adds 66.26 ms to TTFT; 1/X, the time between two answers
    that end, is 66.37 ms (E2E / N: 66.24 ms). So a queue has formed: who comes
    waits for one more answer to end.
  X (E2E - TTFT) = 15.58 answers are under way at once with 16 users and 15.49
    with 64 users: the places are taken.
  The server has 16 slots: of 64 users at least 48 have none.
  In the long run at most 1000 / (49.95 steps * (10 / 16 + 0.5) + 200 prompt
    tokens * 0.05) ms = 15.11 requests/s can end.
  The speed of one against the throughput of all: with 1 user each reads 95.24
    tokens/s (1000 / TPOT), with 16 users 47.67; all together 93.55 and 755.5.
    That is 8.08 times the tokens at 0.50 times the speed.
  A step of b sequences costs 10 + 0.5 b ms: 10.50 ms for one, 18.00 ms for 16.
    The server spends 10.50 ms on a token alone and 1.12 ms in a batch of 16;
    the user waits for the whole step.
  Prompts go in between: 16 users: 15.03/s * 200 tokens * 0.05 ms = 150.3 ms of
    each second. Whoever receives tokens waits for them too: TPOT is 20.98 ms, a
    step of 16 without prompts takes 18.00 ms.

Little's law: in flight = ended per second * time in flight, L = X W
  1 user
    X W = 1.77/s * 566.8 ms = 1.00. Counted: L = 1 on average, 1 at most.
    N = X W: 1.00 of 1; nothing remains.
    X TTFT = 0.04 wait for their first token, X (E2E - TTFT) = 0.97 receive the
      others.
  16 users
    X W = 15.03/s * 1067 ms = 16.05. Counted: L = 16 on average, 16 at most.
    N = X W: 16.05 of 16; 0.05 too many (0.3 %).
    X TTFT = 0.47 wait for their first token, X (E2E - TTFT) = 15.58 receive the
      others.
  64 users
    X W = 15.07/s * 4240 ms = 63.88. Counted: L = 64 on average, 64 at most.
    N = X W: 63.88 of 64; 0.12 remain (0.2 %).
    X TTFT = 48.39 wait for their first token, X (E2E - TTFT) = 15.49 receive
      the others.
";

#[test]
fn the_course_server_is_explained_to_the_last_number() {
    let course = Settings::course();
    let run = run(&course, &[1, 16, 64], VARIED);
    assert_eq!(explained(&run, Some(&course)), COURSE);
    assert!(COURSE.lines().all(|line| line.len() <= 80));
}

#[test]
fn a_measured_run_is_explained_by_what_was_measured() {
    let run = run(&Settings::course(), &[1, 16, 64], VARIED);
    let text = flowing(&run, None);
    for of_the_model in ["slots", "A step of", "Prompts", "can end"] {
        assert!(!text.contains(of_the_model), "{of_the_model}: {text}");
    }
    let known = flowing(&run, Some(&Settings::course()));
    let law = |text: &str| text.split_once("Little's law:").unwrap().1.to_owned();
    assert_eq!(law(&text), law(&known));
    assert_says(&text, &["Nearly all of that is the wait", "From 16 users on", "So a queue has formed"]);
}

#[test]
fn gaps_tell_a_measured_run_of_prompts_in_between() {
    let mut run = run(&Settings::course(), &[1, 16, 64], VARIED);
    for (level, [p50, p99]) in run.levels.iter_mut().zip([[10.5, 10.6], [18.0, 28.0], [18.0, 28.0]]) {
        let mut itl = level.distributions[&Metric::E2e].clone();
        let value =
            |quantile: Quantile, ms: f64| QuantileValue { parts: quantile.parts(), value: Some(ms * 1e6) };
        itl.quantiles = vec![value(Quantile::P50, p50), value(Quantile::P99, p99)];
        level.distributions.insert(Metric::Itl, itl);
    }
    let sentence = "alone, ITL is 10.50 ms at p50 and 10.60 ms at p99; with 16 users 18.00 and 28.00. Prompts that are \
                    computed between the tokens of others do that, and there are 15.03 of them a second.";
    assert_says(&flowing(&run, None), &[sentence]);
    // Gaps that vary for a single user too say nothing about others.
    run.levels[0].distributions.get_mut(&Metric::Itl).unwrap().quantiles[1].value = Some(20e6);
    assert!(!flowing(&run, None).contains("Prompts"));
}

#[test]
fn thinking_users_are_part_of_littles_law() {
    let driving = Driving { think: Duration::from_secs(2), varied: true, seconds: 600, ..STEADY };
    let run = run(&Settings::course(), &[4, 16], driving);
    let text = flowing(&run, None);
    assert_says(
        &text,
        &[
            "X = N / (W + Z): it bends where W grows.",
            "4 to 16 users: 4 times the users, 3.79 times the throughput",
            "16 users think 2 s X W = 5.90/s * 707.6 ms = 4.18. Counted: L = 4.17 on average, 14 at most.",
            "N = X (W + Z), Z = 2 s: 4.18 + 11.81 who think = 15.98 of 16; 0.02 remain (0.1 %).",
        ],
    );
    assert!(!text.contains("What remains") && !text.contains("no longer grows"));
}

#[test]
fn what_remains_is_named_by_its_cause() {
    let mut run = run(&Settings::course(), &[16], VARIED);
    let in_flight = |mean| Some(InFlight { mean, max: 16, at_start: 16, at_end: 3 });
    run.levels[0].in_flight = in_flight(15.5);
    assert_says(
        &flowing(&run, None),
        &[
            "N = X W: 16.05 of 16; 0.05 too many (0.3 %).",
            "What remains: L - X W = -0.55: requests in flight at the edges, 16 at the start of the window and 3 at its \
             end, count in L with the part of their time that lies inside; 0.50 users were between an answer and the \
             next request: the client's turn-around.",
        ],
    );
    run.levels[0].window.whole_level = true;
    run.levels[0].counts.failed = 7;
    run.levels[0].in_flight = in_flight(15.0);
    set_mean(&mut run.levels[0], Metric::Stream, 900.0);
    assert_says(
        &flowing(&run, None),
        &[
            "N = X W: 13.53 of 16; 2.47 remain (15.4 %).",
            "What remains: L - X W = 1.47: X leaves out 7 requests that did not end well; 1.00 users had nothing in \
             flight: before their first request, or after their last while the others still waited, or in the pause after one that failed \
             at once.",
        ],
    );
}

#[test]
fn what_rounds_to_nothing_has_no_share() {
    let mut run = run(&Settings::course(), &[1], VARIED);
    let level = &mut run.levels[0];
    set_mean(level, Metric::E2e, 500.0);
    set_mean(level, Metric::Stream, 500.0);
    for (rate, sentence) in [
        (2.009, "N = X W: 1.00 of 1; nothing remains."),
        (1.991, "N = X W: 1.00 of 1; nothing remains."),
        (2.02, "N = X W: 1.01 of 1; 0.01 too many (1.0 %)."),
        (1.98, "N = X W: 0.99 of 1; 0.01 remain (1.0 %)."),
    ] {
        run.levels[0].rates.window.req_s = rate;
        assert_says(&flowing(&run, None), &[sentence]);
    }
}

#[test]
fn users_who_are_refused_are_not_taken_for_a_slow_client() {
    let mut run = run(&Settings::course(), &[16], VARIED);
    run.levels[0].counts.failed = 5000;
    run.levels[0].in_flight = Some(InFlight { mean: 6.0, max: 7, at_start: 6, at_end: 6 });
    set_mean(&mut run.levels[0], Metric::Stream, 398.4);
    let text = flowing(&run, None);
    assert_says(
        &text,
        &[
            "10.01 remain (62.6 %).",
            "What remains: 10.00 users had nothing in flight: there are 5000 requests that did not end well, and after one \
             that fails at once its user pauses.",
        ],
    );
    assert!(!text.contains("turn-around"));
    // What failed after a time was in flight.
    run.levels[0].in_flight = Some(InFlight { mean: 16.0, max: 16, at_start: 16, at_end: 16 });
    let sentence = "What remains: L - X W = 10.01: X leaves out 5000 requests that did not end well, and requests in flight \
                    at the edges, 16 at the start of the window and 16 at its end, count in L with the part of their time \
                    that lies inside.";
    assert_says(&flowing(&run, None), &[sentence]);
}

#[test]
fn several_answers_to_a_request_are_as_many_sequences() {
    let course = Settings::course();
    let mut run = run(&course, &[4, 16], VARIED);
    let mut plan = run.plan.read().unwrap();
    plan.workload.choices = 4;
    run.plan = Verbatim::of(&plan);
    for (level, users) in run.levels.iter_mut().zip([4.0, 16.0]) {
        level.tokens.output *= 4;
        level.distributions.remove(&Metric::Tpot);
        level.rates.window.req_s = 5.0;
        set_mean(level, Metric::Ttft, 1000.0 * (users - 3.0) / 5.0);
        set_mean(level, Metric::E2e, 1000.0 * users / 5.0);
    }
    assert_says(
        &flowing(&run, Some(&course)),
        &[
            "Each request asks for 4 answers, 4 sequences of the server: N users are 4 N. Its E2E ends with the last of \
             them.",
            "X (E2E - TTFT) = 3 requests are under way at once with 4 users and 3 with 16 users",
            "The server has 16 slots: 16 users with 4 answers to a request ask for 64 sequences, of which at least 48 have \
             none.",
            // 4 times 200 prompt tokens.
            "+ 800 prompt tokens * 0.05) ms",
        ],
    );
    // A cache may have answered for the prompts of all but the first.
    let batching = Batching { prefix_cache: Some(PrefixCache::default()), ..Batching::default() };
    let cached = Settings::serving(Serving::Batching(batching));
    assert!(!flowing(&run, Some(&cached)).contains("In the long run at most"));
}

#[test]
fn where_an_answer_takes_no_longer_there_was_room() {
    let cost = Cost { base_ms: 10.0, per_sequence_ms: 0.0, per_prefill_token_ms: 0.0 };
    let settings = server(1000, cost);
    let text = flowing(&run(&settings, &[1, 4], STEADY), Some(&settings));
    let sentence = "1 to 4 users: 4 times the users, 4.00 times the throughput (2 to 8 requests/s): an answer takes as \
                    long as before, there was room.";
    assert_says(&text, &[sentence]);
    assert!(!text.contains("no longer grows") && !text.contains("wait for one more"));
}

#[test]
fn a_server_of_set_times_does_not_bend_unless_ttft_is_set_to() {
    for (each, sentence) in [
        (
            0.0,
            "has its first token after 100 ms and the others every 10 ms, however many there are. Nothing bends.",
        ),
        (
            80.0,
            "comes after 100 ms and 80 ms more for each request in flight, the others every 10 ms. Only TTFT grows",
        ),
    ] {
        let fixed = Fixed { ttft_ms: 100.0, itl_ms: 10.0, ttft_per_in_flight_ms: each, ..Fixed::default() };
        let settings = Settings::serving(Serving::Fixed(fixed));
        assert_says(&flowing(&run(&settings, &[1, 4], STEADY), Some(&settings)), &[sentence]);
    }
}

#[test]
fn the_knee_is_claimed_only_where_clearly_more_users_get_no_more() {
    let course = Settings::course();
    assert!(!flowing(&run(&course, &[1, 16, 18], VARIED), None).contains("no longer grows"));
    assert!(!flowing(&run(&course, &[1, 4, 16], VARIED), None).contains("no longer grows"));
    assert_says(&flowing(&run(&course, &[1, 16, 24], VARIED), None), &["From 16 users on"]);
    // Replicas add up.
    let batching = Batching { slots: 8, replicas: 2, ..Batching::default() };
    let two = Settings::serving(Serving::Batching(batching));
    let text = flowing(&run(&two, &[1, 16, 64], VARIED), Some(&two));
    assert_says(
        &text,
        &[
            "The server has 2 times 8, 16 slots: of 64 users at least 48 have none.",
            "2 * 1000 / (",
            "steps * (10 / 8 + 0.5)",
        ],
    );
}

#[test]
fn a_short_level_whose_first_answers_waited_less_is_no_proof_of_a_queue() {
    let mut run = run(&Settings::course(), &[1, 16, 64], VARIED);
    set_mean(&mut run.levels[2], Metric::Ttft, 2000.0);
    run.levels[2].window.whole_level = true;
    let text = flowing(&run, None);
    assert_says(&text, &["Each further user adds 41.02 ms to TTFT", "The level began with a free server"]);
    assert!(!text.contains("a queue has formed"));
}

#[test]
fn users_for_whom_there_was_no_request_are_no_part_of_the_curve() {
    let mut run = run(&Settings::course(), &[1, 16, 64], VARIED);
    run.levels[2].in_flight.as_mut().unwrap().max = 16;
    let text = flowing(&run, None);
    assert_says(&text, &["1 to 16 users", "Little's law", "64 users"]);
    assert!(!text.contains("16 to 64 users") && !text.contains("From 16 users on"), "{text}");
}

/// The sample's open loop, with a window.
fn open(offered: f64, ended: f64) -> RunFile {
    let mut run = sample().run;
    run.levels.remove(0);
    let level = &mut run.levels[0];
    let mut setting = level.setting.read().unwrap();
    setting.load =
        Load { arrivals: Arrivals::Poisson { rate: offered }, cap: None, users: None, think_s: 0.0 };
    (level.setting, level.label) = (Verbatim::of(&setting), "poisson".to_owned());
    level.window.whole_level = false;
    (level.rates.window.offered_s, level.rates.window.req_s) = (offered, ended);
    level.in_flight = Some(InFlight { mean: 100.0, max: 200, at_start: 12, at_end: 190 });
    run
}

#[test]
fn an_open_loop_keeps_up_or_its_queue_grows() {
    assert_says(
        &flowing(&open(4.0, 3.95), None),
        &["poisson: 4 requests/s are sent and 3.95 end: the server keeps up."],
    );
    let growing = "poisson: 20 requests/s are sent and 15 end, so the queue grows: 12 in flight at the start of the \
                   window, 190 at its end.";
    assert_says(&flowing(&open(20.0, 15.0), None), &[growing]);
    // Of a whole level its own beginning and end are part.
    let mut whole = open(20.0, 15.0);
    whole.levels[0].window.whole_level = true;
    assert!(!flowing(&whole, None).contains("why the curve bends"));
}

#[test]
fn a_known_server_says_how_much_an_open_loop_asks_of_it() {
    let course = Settings::course();
    // Nine tokens an answer, 131 prompt tokens of which 16 are cached: 9 * 1.125 + 115 * 0.05 ms.
    let most = "In the long run at most 1000 / (9 steps * (10 / 16 + 0.5) + 115 prompt tokens * 0.05) ms = 62.99 \
                requests/s can end";
    let half = format!("{most}; 31.50 come, 50 % of that.");
    assert_says(&flowing(&open(31.5, 31.5), Some(&course)), &[&half]);
    let twice = format!("{most}: 100 come, 37.01 more each second than can end.");
    assert_says(&flowing(&open(100.0, 62.0), Some(&course)), &[&twice]);
    // Where a cap or cut steps are what is full, the slots say nothing.
    let mut capped = open(100.0, 5.0);
    let mut setting = capped.levels[0].setting.read().unwrap();
    setting.load.cap = Some(4);
    capped.levels[0].setting = Verbatim::of(&setting);
    assert!(!flowing(&capped, Some(&course)).contains("In the long run at most"));
    let batching = Batching { step_tokens_max: Some(32), ..Batching::default() };
    let cut = Settings::serving(Serving::Batching(batching));
    assert!(!flowing(&open(100.0, 5.0), Some(&cut)).contains("In the long run at most"));
}

#[test]
fn a_run_without_data_is_not_explained() {
    let mut run = sample().run;
    for level in &mut run.levels {
        level.counts.ok = 0;
    }
    assert_eq!(explained(&run, None), "");
    run.levels.clear();
    assert_eq!(explained(&run, Some(&Settings::course())), "");
    // One without is passed over, and so is what a level lacks.
    let mut run = sample().run;
    run.levels[0].distributions.clear();
    run.levels[1].distributions.remove(&Metric::Ttft);
    run.levels[1].in_flight = None;
    let expected = "
Little's law: in flight = ended per second * time in flight, L = X W
  poisson 12.5/s cap 4
    X W = 3.03/s * 900.0 ms = 2.73.
";
    assert_eq!(explained(&run, None), expected);
}
