//! One batching replica: its slots, its queue, its prefix cache and the step under way.
//!
//! It does not choose its jobs, and whoever drives it ends each step no later than anything else happens to it.

use std::collections::VecDeque;
use std::sync::Arc;

use rand_distr::{Distribution as _, LogNormal};

use super::freezes::Freezes;
use super::job::{Emission, Job, Key};
use super::prefix::Cache;
use super::settings::{Batching, Cost, nanos};
use crate::rng::{self, Purpose};
use crate::time::Stamp;

/// What is the same for all replicas.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) cost: Cost,
    pub(super) freezes: Freezes,
    pub(super) slots: usize,
    pub(super) tokens_per_step: u32,
    /// Tokens that a step may take; without chunked prefill there is no end to them.
    pub(super) step_tokens: u64,
}

/// One replica.
#[derive(Debug)]
pub(super) struct Replica {
    speed: f64,
    noise: Option<Noise>,
    /// What the cost of the step under way, or else of the next one, is multiplied by.
    factor: f64,
    /// In the order in which they got their slots, which is also that of their keys.
    running: Vec<Running>,
    /// In order of arrival, which is also that of their keys.
    waiting: VecDeque<Waiting>,
    /// Absent when nothing runs.
    step: Option<Step>,
    cache: Option<Cache>,
    /// Prompts of the sequences from which no token has come yet, in order.
    prompts: Vec<Prompt>,
    /// Jobs that were neither finished nor cancelled.
    in_flight: u64,
    counters: Counters,
}

/// What a replica has done so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) steps: u64,
    /// Tokens of prompts that were computed or found in the prefix cache, and those that were found.
    pub(super) prompt_tokens: u64,
    pub(super) cached_tokens: u64,
}

/// A sequence in a slot.
#[derive(Debug)]
struct Running {
    key: Key,
    owner: u64,
    choice: u32,
    /// Tokens still to come; 0 once it is cancelled.
    left: u32,
    /// Tokens of the prompt that remain to be computed after the step under way.
    prompt_left: u32,
    /// Tokens of the prompt that the step under way computes; without meaning once a token has come out.
    chunk: u32,
    cached: u32,
    /// No token has come out yet.
    fresh: bool,
}

#[derive(Debug)]
struct Waiting {
    key: Key,
    job: Job,
}

#[derive(Debug)]
struct Prompt {
    key: Key,
    tokens: u32,
    cached: u32,
    blocks: Arc<[u64]>,
}

/// The step under way.
#[derive(Clone, Copy, Debug)]
struct Step {
    begin: Stamp,
    end: Stamp,
    /// Tokens of prompts that it computes.
    prefill: u64,
    /// Tokens that it may still take.
    room: u64,
}

#[derive(Debug)]
struct Noise {
    draws: rng::Stream,
    factors: LogNormal<f64>,
}

impl Replica {
    /// Replica `index` of a server of these settings.
    pub(super) fn new(settings: &Batching, index: usize, seed: u64) -> Replica {
        let draws = || rng::stream(seed, Purpose::StepCost, index as u64);
        let factors = (settings.noise > 0.0).then(|| LogNormal::from_mean_cv(1.0, settings.noise).ok());
        let mut noise = factors.flatten().map(|factors| Noise { draws: draws(), factors });
        Replica {
            speed: settings.speeds.get(index).copied().unwrap_or(1.0),
            factor: next_factor(&mut noise),
            noise,
            running: Vec::new(),
            waiting: VecDeque::new(),
            step: None,
            cache: settings.prefix_cache.map(Cache::new),
            prompts: Vec::new(),
            in_flight: 0,
            counters: Counters::default(),
        }
    }

    /// When the step under way ends; `Stamp::MAX` if there is none.
    #[inline]
    pub(super) fn step_end(&self) -> Stamp {
        self.step.map_or(Stamp::MAX, |step| step.end)
    }

    /// Jobs that were neither finished nor cancelled.
    #[inline]
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Jobs that have no slot.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Blocks in the prefix cache.
    pub(super) fn cached_blocks(&self) -> usize {
        self.cache.as_ref().map_or(0, Cache::len)
    }

    /// Empties the prefix cache.
    pub(super) fn forget_prefixes(&mut self) {
        self.cache.iter_mut().for_each(Cache::clear);
    }

    pub(super) fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes a job. Its key is above all earlier ones.
    pub(super) fn submit(&mut self, rules: &Rules, now: Stamp, key: Key, job: Job) {
        self.in_flight += 1;
        self.waiting.push_back(Waiting { key, job });
        match self.step {
            None => self.begin(rules, now),
            // The step begins now, or later because of a freeze: the job is in time for it.
            Some(step) if step.begin >= now => self.fill(rules),
            Some(_) => {}
        }
    }

    /// Forgets a job. False if it is not here: it has ended, or was cancelled before.
    pub(super) fn cancel(&mut self, rules: &Rules, now: Stamp, key: Key) -> bool {
        if let Ok(place) = self.waiting.binary_search_by_key(&key, |waiting| waiting.key) {
            self.waiting.remove(place);
        } else if let Ok(place) = self.running.binary_search_by_key(&key, |running| running.key)
            && self.running[place].left > 0
        {
            self.leave(rules, now, place);
        } else {
            return false;
        }
        self.in_flight -= 1;
        true
    }

    /// Ends the step under way, appends what comes out of it, and begins the next one if there is anything to do.
    pub(super) fn end_step(&mut self, rules: &Rules, out: &mut Vec<Emission>) {
        let Some(step) = self.step.take() else { return };
        let due = step.end;
        let mut ended = 0;
        out.reserve(self.running.len());
        self.running.retain_mut(|sequence| {
            if sequence.left == 0 {
                return false;
            }
            if sequence.prompt_left > 0 {
                sequence.chunk = 0;
                return true;
            }
            let emission = sequence.emit(rules.tokens_per_step, due);
            ended += u64::from(emission.last);
            out.push(emission);
            !emission.last
        });
        self.in_flight -= ended;
        self.counters.steps += 1;
        // The prompt that is not wholly computed is the last.
        let whole = self.prompts.len() - usize::from(self.is_prefilling());
        for prompt in self.prompts.drain(..whole) {
            self.counters.prompt_tokens += u64::from(prompt.tokens);
            self.counters.cached_tokens += u64::from(prompt.cached);
            if let Some(cache) = &mut self.cache {
                cache.keep(&prompt.blocks, prompt.tokens);
            }
        }
        self.factor = next_factor(&mut self.noise);
        self.begin(rules, due);
    }

    /// Begins a step at `at` or at the end of a freeze, unless there is nothing to do.
    fn begin(&mut self, rules: &Rules, at: Stamp) {
        let begin = rules.freezes.begin(at);
        let decoding = (self.running.len() - usize::from(self.is_prefilling())) as u64;
        let room = rules.step_tokens.saturating_sub(decoding * u64::from(rules.tokens_per_step));
        self.step = Some(Step { begin, end: begin, prefill: 0, room });
        self.fill(rules);
    }

    /// Gives what room the beginning step has to prompts, first to the one that is under way, then to jobs that get
    /// a slot; and computes when it ends.
    ///
    /// Only the last sequence can have a prompt that is not wholly computed: nobody is let in behind it.
    fn fill(&mut self, rules: &Rules) {
        let Some(mut step) = self.step else { return };
        loop {
            if let Some(last) = self.running.last_mut().filter(|last| last.prompt_left > 0) {
                let chunk = u64::from(last.prompt_left).min(step.room) as u32;
                last.chunk += chunk;
                last.prompt_left -= chunk;
                step.prefill += u64::from(chunk);
                step.room -= u64::from(chunk);
                if last.prompt_left > 0 {
                    break;
                }
            }
            if self.running.len() >= rules.slots || step.room == 0 {
                break;
            }
            let Some(Waiting { key, job }) = self.waiting.pop_front() else { break };
            self.admit(key, job);
        }
        let sequences = self.running.len();
        self.step = (sequences > 0).then(|| {
            let ms = rules.cost.step_ms(sequences, step.prefill) * self.factor / self.speed;
            // At least a nanosecond: with steps of no length, time would stand still.
            step.end = rules.freezes.end(step.begin, nanos(ms).max(1));
            step
        });
    }

    /// Whether the last sequence has a prompt that is not wholly computed.
    fn is_prefilling(&self) -> bool {
        self.running.last().is_some_and(|last| last.prompt_left > 0)
    }

    fn admit(&mut self, key: Key, job: Job) {
        let Job { owner, choice, output_tokens, prompt_tokens: tokens, blocks, .. } = job;
        let cached = self.cache.as_ref().map_or(0, |cache| cache.saved_tokens(&blocks, tokens));
        let prompt_left = tokens - cached;
        let left = output_tokens.max(1);
        self.running.push(Running { key, owner, choice, left, prompt_left, chunk: 0, cached, fresh: true });
        self.prompts.push(Prompt { key, tokens, cached, blocks });
    }

    /// Takes a sequence out of its slot. A step that has begun goes on with it, for the work is already on its way;
    /// one that is only about to begin does without it.
    fn leave(&mut self, rules: &Rules, now: Stamp, place: usize) {
        let Some(step) = self.step.as_mut().filter(|step| step.begin >= now) else {
            let gone = &mut self.running[place];
            gone.left = 0;
            let is_whole = gone.prompt_left == 0;
            let key = gone.key;
            self.prompts.retain(|prompt| is_whole || prompt.key != key);
            return;
        };
        let gone = self.running.remove(place);
        let (prefill, taken) = if gone.fresh {
            (u64::from(gone.chunk), u64::from(gone.chunk))
        } else {
            (0, u64::from(rules.tokens_per_step))
        };
        step.prefill -= prefill;
        step.room = step.room.saturating_add(taken);
        self.prompts.retain(|prompt| prompt.key != gone.key);
        self.fill(rules);
    }
}

impl Running {
    #[inline]
    fn emit(&mut self, tokens_per_step: u32, due: Stamp) -> Emission {
        let tokens = self.left.min(tokens_per_step);
        self.left -= tokens;
        Emission {
            key: self.key,
            owner: self.owner,
            due,
            choice: self.choice,
            tokens,
            cached_tokens: self.cached,
            first: std::mem::replace(&mut self.fresh, false),
            last: self.left == 0,
        }
    }
}

fn next_factor(noise: &mut Option<Noise>) -> f64 {
    noise.as_mut().map_or(1.0, |noise| noise.factors.sample(&mut noise.draws))
}
