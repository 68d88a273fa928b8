//! Random servers and scripts, and the ways of driving them.

use crate::model::*;
use crate::rng::{self, Purpose};
use crate::time::Stamp;

use super::{Seen, seen};

/// What happens to a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    /// The place of the call in its script is the job's owner.
    Submit(Job),
    /// Cancels the job that was submitted at that place of the script, if it was taken.
    Cancel(usize),
}

pub(crate) type Script = Vec<(Stamp, Call)>;

/// What came of a script.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Played {
    pub(super) emitted: Vec<Seen>,
    /// Places of refused submissions.
    pub(super) refused: Vec<usize>,
    /// Places of cancellations that found their job.
    pub(super) cancelled: Vec<usize>,
}

impl Played {
    /// Emissions, refusals, cancellations, emissions of jobs of which a part was cached.
    pub(super) fn kinds(&self) -> [usize; 4] {
        let cached = self.emitted.iter().filter(|seen| seen.3 > 0).count();
        [self.emitted.len(), self.refused.len(), self.cancelled.len(), cached]
    }
}

/// Plays a script; `look` is called before each call with its stamp.
pub(super) fn play(
    settings: &Settings,
    script: &Script,
    mut look: impl FnMut(&mut Server, Stamp, &mut Vec<Emission>),
) -> Played {
    let mut server = Server::new(settings, Stamp::ZERO).unwrap();
    let mut played = Played::default();
    let (mut out, mut keys) = (Vec::new(), vec![None; script.len()]);
    for (place, (now, call)) in script.iter().enumerate() {
        look(&mut server, *now, &mut out);
        match call {
            Call::Submit(job) => match server.submit(*now, job.clone()) {
                Ok(key) => keys[place] = Some(key),
                Err(_) => played.refused.push(place),
            },
            Call::Cancel(of) => {
                if keys[*of].is_some_and(|key| server.cancel(*now, key)) {
                    played.cancelled.push(place);
                }
            }
        }
    }
    while server.next_wakeup() < Stamp::MAX {
        server.advance(server.next_wakeup(), &mut out);
    }
    let Gauges { running, waiting, .. } = server.gauges();
    assert_eq!((running, waiting), (0, 0), "something is left");
    played.emitted = out.iter().map(seen).collect();
    played
}

/// The course's server with some change.
pub(super) fn course(change: impl FnOnce(&mut Batching)) -> Server {
    let mut batching = Batching::default();
    change(&mut batching);
    Server::new(&Settings::serving(Serving::Batching(batching)), Stamp::ZERO).unwrap()
}

pub(super) fn at(ms: u64) -> Stamp {
    Stamp::from_millis(ms)
}

pub(super) fn job(owner: u64, prompt_tokens: u32, output_tokens: u32) -> Job {
    Job { owner, prompt_tokens, output_tokens, draw: owner, ..Job::default() }
}

/// All that comes out until the server rests.
pub(super) fn emissions(server: &mut Server) -> Vec<Emission> {
    let mut all = Vec::new();
    while server.next_wakeup() != Stamp::MAX {
        server.advance(server.next_wakeup(), &mut all);
    }
    all
}

pub(super) fn punctual(server: &mut Server) -> Vec<Seen> {
    emissions(server).iter().map(seen).collect()
}

/// (owner, due in ms, tokens, last) of all that comes out until the server rests.
pub(super) fn times(server: &mut Server) -> Vec<(u64, f64, u32, bool)> {
    emissions(server).iter().map(|e| (e.owner, e.due.as_nanos() as f64 / 1e6, e.tokens, e.last)).collect()
}

/// Draws servers and scripts in which ties, full queues and shared prompts are common.
pub(crate) struct Random(rng::Stream);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(rng::stream(seed, Purpose::Choice, 1))
    }

    pub(crate) fn below(&mut self, n: u32) -> u32 {
        rng::below(&mut self.0, n)
    }

    fn sometimes<T>(&mut self, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| draw(self))
    }

    pub(crate) fn settings(&mut self) -> Settings {
        let (slots, tokens_per_step) = (1 + self.below(5), 1 + self.below(3));
        let replicas = 1 + self.below(3);
        let batching = Batching {
            slots,
            queue_max: self.sometimes(|random| random.below(4)),
            step_tokens_max: self.sometimes(|random| slots * tokens_per_step + random.below(20)),
            noise: self.sometimes(|_| 0.3).unwrap_or(0.0),
            replicas,
            speeds: self
                .sometimes(|random| (0..replicas).map(|_| f64::from(1 + random.below(3)) / 2.0).collect())
                .unwrap_or_default(),
            router: self.sometimes(|_| Router::LeastLoaded).unwrap_or_default(),
            cost: Cost {
                base_ms: f64::from(1 + self.below(3)),
                per_sequence_ms: f64::from(self.below(2)),
                per_prefill_token_ms: self.sometimes(|_| 0.1).unwrap_or(0.0),
            },
            prefix_cache: self.sometimes(|random| PrefixCache {
                block_tokens: 1 + random.below(4),
                blocks_max: random.sometimes(|random| 1 + random.below(10)),
                full_hit: random.sometimes(|_| FullHit::LastBlock).unwrap_or_default(),
            }),
        };
        let freezes = (0..self.below(3)).map(|_| Freeze {
            at_s: f64::from(self.below(100)) / 1e3,
            for_s: f64::from(1 + self.below(20)) / 1e3,
        });
        Settings {
            slowing_per_minute: 0.0,
            freezes: freezes.collect(),
            seed: u64::from(self.below(100)),
            tokens_per_step,
            cold_start_s: self.sometimes(|_| 0.005).unwrap_or(0.0),
            serving: Serving::Batching(batching),
        }
    }

    /// Up to 60 calls, most of them on whole milliseconds within 150.
    pub(crate) fn script(&mut self) -> Script {
        let mut stamps: Vec<u64> = (0..10 + self.below(50))
            .map(|_| u64::from(self.below(150)) * 1_000_000 + u64::from(self.below(4) / 3))
            .collect();
        stamps.sort_unstable();
        let mut script = Script::new();
        for (place, ns) in stamps.into_iter().enumerate() {
            let cancels = place > 0 && self.below(4) == 0;
            let call =
                if cancels { Call::Cancel(self.below(place as u32) as usize) } else { self.submit(place) };
            script.push((Stamp::from_nanos(ns), call));
        }
        script
    }

    fn submit(&mut self, place: usize) -> Call {
        let family = u64::from(self.below(3)) * 1000;
        let blocks = (0..u64::from(self.below(12))).map(|block| family + block).collect();
        Call::Submit(Job {
            owner: place as u64,
            choice: 0,
            output_tokens: 1 + self.below(12),
            prompt_tokens: self.below(30),
            blocks,
            draw: 0,
        })
    }
}
