//! The rules of batching, written down as plainly as they come: lists, searched and copied; a step is put together
//! only when time has passed its beginning.

use rand_distr::{Distribution as _, LogNormal};

use crate::model::*;
use crate::rng::{self, Purpose};

use super::rig::{Call, Played, Script};

struct Oracle<'a> {
    settings: &'a Settings,
    batching: &'a Batching,
    replicas: Vec<Replica>,
    turn: usize,
    played: Played,
}

#[derive(Default)]
struct Replica {
    queue: Vec<(usize, Job)>,
    slots: Vec<Sequence>,
    /// Beginning of a step that is not put together yet.
    beginning: Option<u64>,
    /// End of the step under way.
    ending: Option<u64>,
    /// Newest first.
    cache: Vec<u64>,
    steps: usize,
}

struct Sequence {
    place: usize,
    job: Job,
    cached: u32,
    computed: u32,
    made: u32,
    gone: bool,
}

pub(super) fn run(settings: &Settings, script: &Script) -> Played {
    let Serving::Batching(batching) = &settings.serving else { panic!("not for fixed timing") };
    let replicas = (0..batching.replicas).map(|_| Replica::default()).collect();
    let mut oracle = Oracle { settings, batching, replicas, turn: 0, played: Played::default() };
    for (place, (now, call)) in script.iter().enumerate() {
        let now = now.as_nanos();
        oracle.pass(now);
        match call {
            Call::Submit(job) => oracle.submit(now, place, job),
            Call::Cancel(of) => oracle.cancel(place, *of),
        }
    }
    oracle.pass(u64::MAX);
    oracle.played
}

impl Oracle<'_> {
    /// Lets time pass until `now`; what begins at `now` is still open.
    fn pass(&mut self, now: u64) {
        loop {
            for index in 0..self.replicas.len() {
                if self.replicas[index].beginning.is_some_and(|begin| begin < now) {
                    self.put_together(index);
                }
            }
            let ends = self.replicas.iter().enumerate().filter_map(|(index, r)| Some((r.ending?, index)));
            match ends.min() {
                Some((end, index)) if end <= now => self.end(index, end),
                _ => return,
            }
        }
    }

    fn submit(&mut self, now: u64, place: usize, job: &Job) {
        if now < (self.settings.cold_start_s * 1e9) as u64 {
            return self.played.refused.push(place);
        }
        let n = self.replicas.len();
        let by_turns: Vec<usize> = (0..n).map(|i| (self.turn + i) % n).collect();
        let chosen = match self.batching.router {
            Router::RoundRobin => by_turns[0],
            // The first of the least.
            Router::LeastLoaded => *by_turns.iter().min_by_key(|i| self.replicas[**i].in_flight()).unwrap(),
        };
        self.turn = (chosen + 1) % n;
        let begin = self.thaw(now);
        let replica = &mut self.replicas[chosen];
        let most = self.batching.queue_max.map(|queue| (queue + self.batching.slots) as usize);
        if most.is_some_and(|most| replica.in_flight() >= most) {
            return self.played.refused.push(place);
        }
        replica.queue.push((place, job.clone()));
        if replica.beginning.is_none() && replica.ending.is_none() {
            replica.beginning = Some(begin);
        }
    }

    fn cancel(&mut self, place: usize, of: usize) {
        for replica in &mut self.replicas {
            let before = replica.in_flight();
            replica.queue.retain(|(place, _)| *place != of);
            if replica.ending.is_some() {
                replica.slots.iter_mut().filter(|s| s.place == of).for_each(|s| s.gone = true);
            } else {
                replica.slots.retain(|s| s.place != of);
            }
            if replica.slots.is_empty() && replica.queue.is_empty() {
                replica.beginning = None;
            }
            if replica.in_flight() < before {
                self.played.cancelled.push(place);
            }
        }
    }

    fn put_together(&mut self, index: usize) {
        let begin = self.replicas[index].beginning.take().unwrap();
        let replica = &mut self.replicas[index];
        let mut room = self.batching.step_tokens_max.unwrap_or(u32::MAX);
        for sequence in &replica.slots {
            if sequence.computed == sequence.job.prompt_tokens {
                room -= self.settings.tokens_per_step;
            }
        }
        let mut prefill = 0;
        for sequence in &mut replica.slots {
            let chunk = room.min(sequence.job.prompt_tokens - sequence.computed);
            sequence.computed += chunk;
            (room, prefill) = (room - chunk, prefill + chunk);
        }
        while room > 0 && replica.slots.len() < self.batching.slots as usize && !replica.queue.is_empty() {
            let (place, job) = replica.queue.remove(0);
            let cached = cached(&replica.cache, self.batching.prefix_cache, &job);
            let chunk = room.min(job.prompt_tokens - cached);
            (room, prefill) = (room - chunk, prefill + chunk);
            replica.slots.push(Sequence {
                place,
                job,
                cached,
                computed: cached + chunk,
                made: 0,
                gone: false,
            });
        }
        let n = replica.slots.len();
        let step = replica.steps;
        let Cost { base_ms, per_sequence_ms, per_prefill_token_ms } = self.batching.cost;
        let ms = base_ms + per_sequence_ms * n as f64 + per_prefill_token_ms * f64::from(prefill);
        let ms = ms * self.factor(index, step) / self.batching.speeds.get(index).unwrap_or(&1.0);
        let end = self.delayed(begin, begin + ((ms * 1e6).round() as u64).max(1));
        self.replicas[index].ending = Some(end);
    }

    fn end(&mut self, index: usize, end: u64) {
        let begin = self.thaw(end);
        let replica = &mut self.replicas[index];
        replica.ending = None;
        replica.steps += 1;
        for sequence in &mut replica.slots {
            let Sequence { place, job, cached, computed, made, gone } = sequence;
            if *computed < job.prompt_tokens {
                continue;
            }
            if let Some(settings) = self.batching.prefix_cache
                && *made == 0
            {
                let whole = (job.prompt_tokens / settings.block_tokens) as usize;
                for block in job.blocks.iter().take(whole).rev() {
                    replica.cache.retain(|held| held != block);
                    replica.cache.insert(0, *block);
                    replica.cache.truncate(settings.blocks_max.map_or(usize::MAX, |most| most as usize));
                }
            }
            if *gone {
                continue;
            }
            let tokens = self.settings.tokens_per_step.min(job.output_tokens - *made);
            let first = *made == 0;
            *made += tokens;
            let last = *made == job.output_tokens;
            self.played.emitted.push((end, *place as u64, tokens, *cached, first, last));
        }
        replica.slots.retain(|s| !s.gone && s.made < s.job.output_tokens);
        if !replica.slots.is_empty() || !replica.queue.is_empty() {
            replica.beginning = Some(begin);
        }
    }

    fn factor(&self, index: usize, step: usize) -> f64 {
        if self.batching.noise == 0.0 {
            return 1.0;
        }
        let stream = rng::stream(self.settings.seed, Purpose::StepCost, index as u64);
        let factors = LogNormal::from_mean_cv(1.0, self.batching.noise).unwrap();
        factors.sample_iter(stream).nth(step).unwrap()
    }

    /// Each millisecond of the freezes, as those are whole ones here.
    fn frozen_ms(&self) -> Vec<u64> {
        let ms = |s: f64| (s * 1e3).round() as u64;
        let windows = self.settings.freezes.iter();
        let mut all: Vec<u64> = windows.flat_map(|f| ms(f.at_s)..ms(f.at_s + f.for_s)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn thaw(&self, mut at: u64) -> u64 {
        for ms in self.frozen_ms() {
            if at / 1_000_000 == ms {
                at = (ms + 1) * 1_000_000;
            }
        }
        at
    }

    fn delayed(&self, begin: u64, mut end: u64) -> u64 {
        for ms in self.frozen_ms() {
            if begin < ms * 1_000_000 + 1 && ms * 1_000_000 < end {
                end += 1_000_000;
            }
        }
        end
    }
}

impl Replica {
    fn in_flight(&self) -> usize {
        self.queue.len() + self.slots.iter().filter(|s| !s.gone).count()
    }
}

fn cached(cache: &[u64], settings: Option<PrefixCache>, job: &Job) -> u32 {
    let Some(PrefixCache { block_tokens, full_hit, .. }) = settings else { return 0 };
    let mut tokens = 0;
    for block in job.blocks.iter() {
        if !cache.contains(block) || tokens + block_tokens > job.prompt_tokens {
            break;
        }
        tokens += block_tokens;
    }
    if tokens > 0 && tokens == job.prompt_tokens {
        tokens -= match full_hit {
            FullHit::LastBlock => block_tokens,
            FullHit::OneToken => 1,
        };
    }
    tokens
}
