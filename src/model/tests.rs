//! The laws of the model: as a naive simulation of the same rules, whoever looks and whenever.

mod oracle;
pub(crate) mod rig;

use std::time::Duration;

use self::rig::{Call, Random, at, course, emissions, job, punctual, times};
use super::*;
use crate::time::Stamp;

/// What of an emission can be compared between servers and oracle.
type Seen = (u64, u64, u32, u32, bool, bool);

fn seen(emission: &Emission) -> Seen {
    let Emission { owner, due, tokens, cached_tokens, first, last, .. } = *emission;
    (due.as_nanos(), owner, tokens, cached_tokens, first, last)
}

#[test]
fn it_is_the_naive_simulation_whenever_the_caller_looks() {
    let mut kinds = [0; 4];
    for seed in 0..3000 {
        let mut random = Random::new(seed);
        let settings = random.settings();
        settings.validate().unwrap();
        let script = random.script();
        let expected = oracle::run(&settings, &script);
        let punctual = rig::play(&settings, &script, |server, now, out| {
            while server.next_wakeup() <= now {
                let due = server.next_wakeup();
                let from = out.len();
                server.advance(due, out);
                assert!(out[from..].iter().all(|emission| emission.due == due), "seed {seed}");
            }
        });
        let late = rig::play(&settings, &script, |_, _, _| {});
        let erratic = rig::play(&settings, &script, |server, now, out| {
            if random.below(2) == 0 {
                let early = now.as_nanos().saturating_sub(u64::from(random.below(5_000_000)));
                server.advance(Stamp::from_nanos(early), out);
            }
        });
        assert_eq!(punctual, expected, "seed {seed}: {settings:?}");
        assert_eq!(late, expected, "late, seed {seed}: {settings:?}");
        assert_eq!(erratic, expected, "erratic, seed {seed}: {settings:?}");
        for (kind, count) in kinds.iter_mut().zip(expected.kinds()) {
            *kind += count;
        }
    }
    // The scripts are worth something only if all of this happens often.
    assert!(kinds.iter().all(|count| *count > 1000), "emitted, refused, cancelled, cached: {kinds:?}");
}

#[test]
fn every_job_gives_exactly_its_tokens_or_is_refused_or_cancelled() {
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let (settings, script) = (random.settings(), random.script());
        let played = rig::play(&settings, &script, |_, _, _| {});
        for (owner, call) in script.iter().enumerate() {
            let Call::Submit(job) = &call.1 else { continue };
            let of_job: Vec<&Seen> = played.emitted.iter().filter(|seen| seen.1 == owner as u64).collect();
            let tokens: u32 = of_job.iter().map(|seen| seen.2).sum();
            let (firsts, lasts) = (of_job.iter().filter(|seen| seen.4), of_job.iter().filter(|seen| seen.5));
            let cancelled = script.iter().find(|other| other.1 == Call::Cancel(owner)).map(|other| other.0);
            if played.refused.contains(&owner) {
                assert_eq!(of_job.len(), 0);
            } else if tokens == job.output_tokens {
                assert_eq!((firsts.count(), lasts.count()), (1, 1));
                assert!(of_job[0].4 && of_job[of_job.len() - 1].5);
            } else {
                assert_eq!(lasts.count(), 0);
                let cancelled = cancelled.expect("tokens are missing");
                assert!(of_job.iter().all(|seen| seen.0 <= cancelled.as_nanos()));
            }
        }
    }
}

#[test]
fn the_same_seed_is_the_same_server_and_another_seed_another() {
    let noisy = |seed| {
        let batching = Batching { noise: 0.2, ..Batching::default() };
        Settings { seed, ..Settings::serving(Serving::Batching(batching)) }
    };
    let run = |seed| {
        let mut server = Server::new(&noisy(seed), Stamp::ZERO).unwrap();
        (0..40).for_each(|owner| assert!(server.submit(at(owner), job(owner, 200, 30)).is_ok()));
        punctual(&mut server)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn noise_keeps_the_mean_and_has_its_deviation() {
    let batching = Batching { noise: 0.1, ..Batching::default() };
    let mut server = Server::new(&Settings::serving(Serving::Batching(batching)), Stamp::ZERO).unwrap();
    server.submit(at(0), job(0, 0, 20_001)).unwrap();
    let dues: Vec<f64> = emissions(&mut server).iter().map(|e| e.due.as_secs_f64() * 1e3).collect();
    let steps: Vec<f64> = dues.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let mean = steps.iter().sum::<f64>() / steps.len() as f64;
    let variance = steps.iter().map(|step| (step - mean).powi(2)).sum::<f64>() / steps.len() as f64;
    // Five standard errors of a mean of 20 000 steps; the deviation of a deviation is about sd / sqrt(2 n).
    assert!((mean - 10.5).abs() < 5.0 * 1.05 / 20_000f64.sqrt(), "{mean}");
    assert!((variance.sqrt() - 1.05).abs() < 5.0 * 1.05 / 40_000f64.sqrt() * 1.1, "{variance}");
}

#[test]
fn two_jobs_worked_by_hand() {
    let mut server = course(|_| {});
    server.submit(at(0), job(1, 200, 3)).unwrap();
    server.submit(at(5), job(2, 100, 2)).unwrap();
    // 10 + 0.5 + 200 * 0.05; then 10 + 2 * 0.5 + 100 * 0.05; then 10 + 2 * 0.5.
    assert_eq!(
        times(&mut server),
        [
            (1, 20.5, 1, false),
            (1, 36.5, 1, false),
            (2, 36.5, 1, false),
            (1, 47.5, 1, true),
            (2, 47.5, 1, true)
        ]
    );
    assert_eq!(server.next_wakeup(), Stamp::MAX);
}

#[test]
fn a_job_that_comes_as_a_step_begins_is_part_of_it_and_a_nanosecond_later_is_not() {
    let second = |ns: u64| {
        let mut server = course(|_| {});
        server.submit(at(0), job(1, 0, 10)).unwrap();
        let mut out = Vec::new();
        server.advance(Stamp::from_nanos(10_500_000), &mut out);
        server.submit(Stamp::from_nanos(10_500_000 + ns), job(2, 0, 1)).unwrap();
        times(&mut server).iter().find(|e| e.0 == 2).unwrap().1
    };
    assert_eq!(second(0), 21.5);
    assert_eq!(second(1), 32.0);
}

#[test]
fn without_a_free_slot_jobs_wait_in_order_and_beyond_the_queue_they_are_refused() {
    let mut server = course(|batching| (batching.slots, batching.queue_max) = (1, Some(2)));
    let submit = |server: &mut Server, ms, owner| server.submit(at(ms), job(owner, 0, 2));
    assert!((1..=3).all(|owner| submit(&mut server, 0, owner).is_ok()));
    assert_eq!(submit(&mut server, 0, 4), Err(Refusal::QueueFull));
    assert_eq!(Refusal::QueueFull.status(), 429);
    // The first ends at 21 ms, and its slot is the second's at once: one place in the queue is free.
    assert_eq!(submit(&mut server, 20, 5), Err(Refusal::QueueFull));
    assert!(submit(&mut server, 21, 6).is_ok());
    assert_eq!(submit(&mut server, 21, 7), Err(Refusal::QueueFull));
    assert_eq!(server.gauges(), Gauges { running: 1, waiting: 2, steps: 2, ..Gauges::default() });
    let ends: Vec<(u64, f64)> = times(&mut server).iter().filter(|e| e.3).map(|e| (e.0, e.1)).collect();
    assert_eq!(ends, [(1, 21.0), (2, 42.0), (3, 63.0), (6, 84.0)]);
}

#[test]
fn without_a_queue_free_slots_still_take_jobs_in_the_middle_of_a_step() {
    let mut server = course(|batching| (batching.slots, batching.queue_max) = (2, Some(0)));
    assert!(server.submit(at(0), job(1, 0, 5)).is_ok());
    assert!(server.submit(at(3), job(2, 0, 5)).is_ok());
    assert_eq!(server.submit(at(4), job(3, 0, 5)), Err(Refusal::QueueFull));
}

#[test]
fn a_cancelled_job_frees_its_slot_at_the_next_step() {
    let mut server = course(|batching| batching.slots = 1);
    let first = server.submit(at(0), job(1, 0, 100)).unwrap();
    let second = server.submit(at(0), job(2, 0, 1)).unwrap();
    server.submit(at(0), job(3, 0, 1)).unwrap();
    assert!(server.cancel(at(12), first));
    assert!(server.cancel(at(12), second), "one that waits");
    assert!(!server.cancel(at(13), first), "twice");
    assert_eq!(server.gauges().running + server.gauges().waiting, 1);
    // The step under way at 12 ms ends at 21 ms without a token.
    assert_eq!(times(&mut server), [(1, 10.5, 1, false), (3, 31.5, 1, true)]);
    assert!(!server.cancel(at(100), first));
}

#[test]
fn chunks_of_a_prompt_ride_along_and_spare_the_others() {
    let longest_gap = |step_tokens_max| {
        let mut server = course(|batching| batching.step_tokens_max = step_tokens_max);
        server.submit(at(0), job(1, 0, 200)).unwrap();
        server.submit(at(100), job(2, 8000, 2)).unwrap();
        let all = times(&mut server);
        let first: Vec<f64> = all.iter().filter(|e| e.0 == 1).map(|e| e.1).collect();
        let gap = first.windows(2).map(|pair| pair[1] - pair[0]).fold(0.0, f64::max);
        let ttft = all.iter().find(|e| e.0 == 2).unwrap().1;
        ((gap * 1e6).round() / 1e6, ttft)
    };
    // In one step: 10 + 2 * 0.5 + 8000 * 0.05, begun at 105 ms.
    assert_eq!(longest_gap(None), (411.0, 516.0));
    // 511 at a time: 15 steps of 36.55 ms, and the last 335 tokens in 27.75 ms.
    assert_eq!(longest_gap(Some(512)), (36.55, 681.0));
}

#[test]
fn several_tokens_come_of_a_step_and_the_last_step_gives_the_rest() {
    let settings = Settings { tokens_per_step: 4, ..Settings::course() };
    let mut server = Server::new(&settings, Stamp::ZERO).unwrap();
    server.submit(at(0), job(1, 0, 10)).unwrap();
    assert_eq!(times(&mut server), [(1, 10.5, 4, false), (1, 21.0, 4, false), (1, 31.5, 2, true)]);
}

#[test]
fn a_cold_server_says_when_it_is_ready() {
    let settings = Settings { cold_start_s: 2.0, ..Settings::course() };
    let mut server = Server::new(&settings, at(1000)).unwrap();
    let refusal = server.submit(at(2500), job(1, 0, 1)).unwrap_err();
    assert_eq!(refusal, Refusal::Cold { ready_in: Duration::from_millis(500) });
    assert_eq!(refusal.status(), 503);
    assert!(server.submit(at(3000), job(1, 0, 1)).is_ok());
}

#[test]
fn replicas_share_by_turns_or_by_load_and_the_slow_one_is_found_out() {
    let served = |router, speeds: &[f64]| {
        let mut server = course(|batching| {
            (batching.replicas, batching.router) = (speeds.len() as u32, router);
            (batching.speeds, batching.slots) = (speeds.to_vec(), 1);
        });
        let keys: Vec<Key> = (0..300).map(|i| server.submit(at(i * 25), job(i, 0, 5)).unwrap()).collect();
        let mut counts = vec![0; speeds.len()];
        keys.iter().for_each(|key| counts[server.replica(*key)] += 1);
        counts
    };
    assert_eq!(served(Router::RoundRobin, &[1.0, 1.0, 0.2]), [100, 100, 100]);
    let by_load = served(Router::LeastLoaded, &[1.0, 1.0, 0.2]);
    assert!(by_load[2] < 40 && by_load[0] > 110, "{by_load:?}");
    assert_eq!(served(Router::LeastLoaded, &[1.0, 1.0, 1.0]), [100, 100, 100], "turns among equals");
}

#[test]
fn a_fast_replica_takes_shorter_steps() {
    let mut server = course(|batching| batching.speeds = vec![2.0]);
    server.submit(at(0), job(1, 0, 2)).unwrap();
    assert_eq!(times(&mut server), [(1, 5.25, 1, false), (1, 10.5, 1, true)]);
}

#[test]
fn what_the_prefix_cache_saves_is_told_and_counted() {
    let mut server = course(|batching| batching.prefix_cache = Some(PrefixCache::default()));
    let prompt = Job { blocks: block_hashes(0..1000, 16), ..job(1, 1000, 1) };
    for (ms, saved) in [(0, 0), (1000, 992)] {
        server.submit(at(ms), prompt.clone()).unwrap();
        let all = emissions(&mut server);
        assert_eq!(all[0].cached_tokens, saved);
        assert_eq!(all[0].due.nanos_since(at(ms)), 10_500_000 + u64::from(1000 - saved) * 50_000);
    }
    let gauges = server.gauges();
    assert_eq!((gauges.prompt_tokens, gauges.cached_tokens, gauges.cache_blocks), (2000, 992, 62));
}

/// TTFT = 80 ms times the requests in flight, in a closed loop of so many.
#[test]
fn the_law_of_80_ms_for_each_request_in_flight() {
    let fixed = Fixed { ttft_ms: 0.0, ttft_per_in_flight_ms: 80.0, ..Fixed::default() };
    let one_at_a_time = Batching {
        slots: 1,
        cost: Cost { base_ms: 80.0, per_sequence_ms: 0.0, per_prefill_token_ms: 0.0 },
        ..Batching::default()
    };
    for (serving, tokens) in [(Serving::Fixed(fixed), 10), (Serving::Batching(one_at_a_time), 1)] {
        for users in 1..=6 {
            let mut server = Server::new(&Settings::serving(serving.clone()), Stamp::ZERO).unwrap();
            let mut sent = vec![Stamp::ZERO; users as usize];
            (0..users).for_each(|user| assert!(server.submit(at(0), job(user, 0, tokens)).is_ok()));
            let mut out = Vec::new();
            for _ in 0..2000 {
                let now = server.next_wakeup();
                server.advance(now, &mut out);
                for emission in out.drain(..) {
                    let sent = &mut sent[emission.owner as usize];
                    let is_first_round = *sent == Stamp::ZERO;
                    if emission.first && !is_first_round {
                        assert_eq!(emission.due.nanos_since(*sent), 80_000_000 * users, "{users} users");
                    }
                    if emission.last {
                        *sent = now;
                        server.submit(now, job(emission.owner, 0, tokens)).unwrap();
                    }
                }
            }
            assert!(sent.iter().all(|sent| *sent > at(1000)));
        }
    }
}

#[test]
fn a_late_caller_gets_a_bounded_batch_in_order() {
    let mut server = course(|batching| batching.slots = 40);
    (0..40).for_each(|owner| assert!(server.submit(at(0), job(owner, 0, 100)).is_ok()));
    let mut batch = Vec::new();
    server.advance(at(60_000), &mut batch);
    assert_eq!(batch.len(), 80, "whole steps");
    // A submission lets what was due come out inside.
    server.submit(at(60_000), job(40, 0, 1)).unwrap();
    let mut rest = 0;
    while server.next_wakeup() <= at(60_000) {
        batch.clear();
        server.advance(at(60_000), &mut batch);
        assert!(batch.len() <= 80 && batch.is_sorted_by_key(|emission| emission.due));
        rest += batch.len();
    }
    assert_eq!(rest, 40 * 98);
}
