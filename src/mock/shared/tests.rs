//! The laws of sharing: several workers over one model get what one worker gets, and their timers alone tell them when.

use std::sync::Arc;

use super::*;
use crate::mock::ask::{Ask, Finish, Surface};
use crate::model::tests::rig::{Call, Random, Script};
use crate::model::{Batching, Cost, Fixed, Freeze, Job, Serving, Settings};

/// Each place of the script that submits asks for so many choices.
fn choices(place: usize) -> u32 {
    [1, 1, 2, 3][place % 4]
}

/// Calls `with` with the wish of one place of a script.
pub(in crate::mock) fn wish<T>(place: usize, job: &Job, with: impl FnOnce(Wish<'_>) -> T) -> T {
    let ask = Ask {
        surface: Surface::Chat,
        stream: true,
        choices: choices(place),
        tokens: job.output_tokens,
        finish: Finish::Length,
        reasoning: 0,
        tool: None,
        prompt_tokens: job.prompt_tokens,
        include_usage: false,
        continuous_usage: false,
    };
    let blocks = Arc::clone(&job.blocks);
    with(Wish { owner: place as u64, number: place as u64, ask: &ask, blocks: &blocks })
}

/// What came of a script: emissions as their owners know them, and the places of refused submissions.
type Played = (Vec<Emission>, Vec<usize>);

/// The model itself, without anything between it and the script.
fn plain(settings: &Settings, script: &Script) -> Played {
    let mut server = Server::new(settings, Stamp::ZERO).unwrap();
    let (mut out, mut refused, mut keys) = (Vec::new(), Vec::new(), vec![Vec::new(); script.len()]);
    for (place, (now, call)) in script.iter().enumerate() {
        match call {
            Call::Submit(job) => match wish(place, job, |wish| jobs::submit(&mut server, *now, 0, wish)) {
                Ok(jobs) => keys[place] = jobs,
                Err(_) => refused.push(place),
            },
            Call::Cancel(of) => keys[*of].iter().for_each(|key| _ = server.cancel(*now, *key)),
        }
    }
    while server.next_wakeup() < Stamp::MAX {
        server.advance(server.next_wakeup(), &mut out);
    }
    (out, refused)
}

/// Workers that know nothing but their timers, driven by hand.
struct Crew {
    shared: Shared,
    now: Stamp,
    /// What each has got.
    got: Vec<Vec<Emission>>,
    /// How much later than its timer each looks next, ns.
    late: Vec<u64>,
    /// How often somebody was woken.
    woken: usize,
}

impl Crew {
    fn new(settings: &Settings, workers: usize) -> Crew {
        let shared = Shared::new(Server::new(settings, Stamp::ZERO).unwrap(), workers);
        Crew { shared, now: Stamp::ZERO, got: vec![Vec::new(); workers], late: vec![0; workers], woken: 0 }
    }

    fn looks_at(&self, worker: usize) -> Stamp {
        let timer = self.shared.timer(worker).as_nanos();
        self.now.max(Stamp::from_nanos(timer.saturating_add(self.late[worker])))
    }

    /// Lets everybody look whose time comes by `now`, each at its own moment; `late` draws how late for.
    fn look_until(&mut self, now: Stamp, late: &mut impl FnMut() -> u64) {
        while let Some(worker) = (0..self.got.len())
            .min_by_key(|worker| self.looks_at(*worker))
            .filter(|worker| self.looks_at(*worker) <= now && self.looks_at(*worker) < Stamp::MAX)
        {
            let timer = self.shared.timer(worker);
            self.now = self.looks_at(worker);
            let from = self.got[worker].len();
            self.shared.look(worker, self.now, &mut self.got[worker]);
            assert!(
                self.got[worker][from..].iter().all(|emission| emission.due >= timer),
                "due before the timer"
            );
            assert!(
                self.got[worker][from..].iter().all(|emission| emission.due <= self.now),
                "out before it is due"
            );
            self.late[worker] = late();
        }
        self.now = self.now.max(now);
    }

    /// Plays a script to its end; a call is made by the worker that `by` names for its job.
    fn play(&mut self, script: &Script, by: &[usize], mut late: impl FnMut() -> u64) -> Vec<usize> {
        let (mut refused, mut keys) = (Vec::new(), vec![Vec::new(); script.len()]);
        for (place, (now, call)) in script.iter().enumerate() {
            self.look_until(*now, &mut late);
            match call {
                Call::Submit(job) => {
                    match wish(place, job, |wish| self.shared.submit(by[place], *now, wish)) {
                        Ok(jobs) => keys[place] = jobs,
                        Err(_) => refused.push(place),
                    }
                }
                Call::Cancel(of) => {
                    self.shared.cancel(by[*of], *now, &keys[*of], |_, _| self.woken += 1);
                }
            }
        }
        self.look_until(Stamp::from_nanos(u64::MAX - 1), &mut late);
        assert!(self.shared.workers.iter().all(|worker| worker.jobs == 0), "somebody still waits");
        refused
    }
}

fn random(seed: u64) -> (Random, Settings, Script) {
    let mut random = Random::new(seed);
    let (mut settings, script) = (random.settings(), random.script());
    if seed.is_multiple_of(5) {
        let fixed = Fixed {
            ttft_ms: 1.0,
            ttft_per_in_flight_ms: 2.0,
            itl_ms: 3.0,
            itl_jitter_ms: 2.0,
            ..Fixed::default()
        };
        settings.serving = Serving::Fixed(fixed);
    }
    (random, settings, script)
}

#[test]
fn several_workers_get_what_one_gets_and_none_of_it_is_due_before_their_timers() {
    let (mut emissions, mut refusals, mut woken) = (0, 0, 0);
    for seed in 0..3000 {
        let (mut random, settings, script) = random(seed);
        let expected = plain(&settings, &script);
        for workers in 1..=3 {
            let by: Vec<usize> = script.iter().map(|_| random.below(workers) as usize).collect();
            for lateness in [0, 3_000_000] {
                let mut crew = Crew::new(&settings, workers as usize);
                let refused = crew.play(&script, &by, || u64::from(random.below(lateness + 1)));
                assert_eq!(refused, expected.1, "seed {seed}: {settings:?}");
                for (worker, got) in crew.got.iter().enumerate() {
                    let own = |emission: &&Emission| by[emission.owner as usize] == worker;
                    assert!(got.iter().eq(expected.0.iter().filter(own)), "seed {seed}: {settings:?}");
                }
                woken += crew.woken;
            }
        }
        emissions += expected.0.len();
        refusals += expected.1.len();
    }
    // The scripts are worth something only if all of this happens often.
    assert!(emissions > 10_000 && refusals > 1000 && woken > 100, "{emissions} {refusals} {woken}");
}

/// A job of so many tokens of prompt and answer.
fn submit(shared: &mut Shared, worker: usize, ms: u64, tokens: (u32, u32)) -> Vec<Key> {
    let job = Job { prompt_tokens: tokens.0, output_tokens: tokens.1, ..Job::default() };
    wish(0, &job, |wish| shared.submit(worker, Stamp::from_millis(ms), wish)).unwrap()
}

/// Steps of 10 ms, and 1 ms more for each token of a prompt.
pub(in crate::mock) fn server(freezes: Vec<Freeze>) -> Server {
    let cost = Cost { base_ms: 10.0, per_sequence_ms: 0.0, per_prefill_token_ms: 1.0 };
    let batching = Batching { cost, ..Batching::default() };
    Server::new(&Settings { freezes, ..Settings::serving(Serving::Batching(batching)) }, Stamp::ZERO).unwrap()
}

#[test]
fn who_leaves_a_step_that_has_not_begun_puts_the_others_forward() {
    let mut shared = Shared::new(server(vec![Freeze { at_s: 0.0, for_s: 0.1 }]), 3);
    let at = Stamp::from_millis;
    let long = submit(&mut shared, 1, 1, (50, 1));
    submit(&mut shared, 0, 2, (0, 1));
    assert_eq!([0, 1, 2].map(|worker| shared.timer(worker)), [at(160), at(160), Stamp::MAX]);
    let mut woken = Vec::new();
    shared.cancel(1, at(3), &long, |worker, timer| woken.push((worker, timer)));
    // The third has no job and sleeps on.
    assert_eq!(woken, [(0, at(110))]);
    assert_eq!([0, 1, 2].map(|worker| shared.timer(worker)), [at(110), Stamp::MAX, Stamp::MAX]);
}

#[test]
fn who_leaves_a_step_under_way_or_has_ended_wakes_nobody() {
    let mut shared = Shared::new(server(Vec::new()), 2);
    let (one, other) = (submit(&mut shared, 0, 0, (0, 1)), submit(&mut shared, 1, 0, (0, 3)));
    let mut out = Vec::new();
    shared.look(1, Stamp::from_millis(10), &mut out);
    assert_eq!(out.len(), 1);
    let wakes_nobody = |_, _| panic!("somebody is woken");
    shared.cancel(0, Stamp::from_millis(11), &one, wakes_nobody);
    // What the other has brought about waits where it was due.
    assert_eq!(shared.timer(0), Stamp::from_millis(10));
    shared.look(0, Stamp::from_millis(12), &mut out);
    assert_eq!((out.len(), out[1].due, out[1].last), (2, Stamp::from_millis(10), true));
    shared.cancel(1, Stamp::from_millis(12), &other, wakes_nobody);
    assert_eq!([0, 1].map(|worker| shared.timer(worker)), [Stamp::MAX; 2]);
}
