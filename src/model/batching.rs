//! Batching replicas behind a router: which one gets a job, and which one's step ends next.

use super::freezes::Freezes;
use super::job::{Emission, Job, Key};
use super::min_tree::MinTree;
use super::replica::{Counters, Replica, Rules};
use super::server::Gauges;
use super::settings::{Batching, Router, Settings};
use crate::time::Stamp;

/// All replicas of a server.
#[derive(Debug)]
pub(super) struct Replicas {
    rules: Rules,
    replicas: Vec<Replica>,
    /// When the step of each replica ends, ns.
    ends: MinTree,
    /// Jobs in flight at each replica.
    loads: MinTree,
    router: Router,
    /// The replica after the last choice.
    next: usize,
    /// Jobs that a replica takes, in slots and queue.
    in_flight_max: u64,
    cache_blocks_max: Option<u64>,
    /// Jobs taken so far.
    jobs: u64,
}

impl Replicas {
    /// Replicas of valid settings.
    pub(super) fn new(settings: &Settings, batching: &Batching, freezes: Freezes) -> Replicas {
        let replicas = batching.replicas as usize;
        let slots = u64::from(batching.slots);
        Replicas {
            rules: Rules {
                cost: batching.cost,
                freezes,
                slots: batching.slots as usize,
                tokens_per_step: settings.tokens_per_step,
                step_tokens: batching.step_tokens_max.map_or(u64::MAX, u64::from),
            },
            replicas: (0..replicas).map(|index| Replica::new(batching, index, settings.seed)).collect(),
            ends: MinTree::new(replicas, u64::MAX),
            loads: MinTree::new(replicas, 0),
            router: batching.router,
            next: 0,
            in_flight_max: batching.queue_max.map_or(u64::MAX, |queue| slots + u64::from(queue)),
            cache_blocks_max: batching.prefix_cache.and_then(|cache| cache.blocks_max.map(u64::from)),
            jobs: 0,
        }
    }

    /// When the next step ends; `Stamp::MAX` if none is under way.
    #[inline]
    pub(super) fn next_due(&self) -> Stamp {
        Stamp::from_nanos(self.ends.min())
    }

    /// Ends the steps that end by `now`, in order, and of one moment in the order of replicas; stops early once
    /// `out` has `enough` emissions.
    pub(super) fn run(&mut self, now: Stamp, enough: usize, out: &mut Vec<Emission>) {
        while out.len() < enough && self.next_due() <= now && self.next_due() < Stamp::MAX {
            let Some(index) = self.ends.first_at_most(0, self.ends.min()) else { return };
            self.replicas[index].end_step(&self.rules, out);
            self.note(index);
        }
    }

    /// Takes a job; `None` if the queue of the replica that would get it is full. All that ends by `now` has ended.
    pub(super) fn submit(&mut self, now: Stamp, job: Job) -> Option<Key> {
        let index = self.choose();
        self.next = (index + 1) % self.replicas.len();
        if self.replicas[index].in_flight() >= self.in_flight_max {
            return None;
        }
        let key = Key(self.jobs * self.replicas.len() as u64 + index as u64);
        self.jobs += 1;
        self.replicas[index].submit(&self.rules, now, key, job);
        self.note(index);
        Some(key)
    }

    /// Forgets a job; false if it has ended. All that ends by `now` has ended.
    pub(super) fn cancel(&mut self, now: Stamp, key: Key) -> bool {
        let index = self.replica(key);
        let found = self.replicas[index].cancel(&self.rules, now, key);
        self.note(index);
        found
    }

    /// Empties the prefix caches.
    pub(super) fn forget_prefixes(&mut self) {
        self.replicas.iter_mut().for_each(Replica::forget_prefixes);
    }

    /// The replica that a job was given to.
    pub(super) fn replica(&self, key: Key) -> usize {
        (key.0 % self.replicas.len() as u64) as usize
    }

    /// The sum over all replicas.
    pub(super) fn gauges(&self) -> Gauges {
        let replicas = self.replicas.len() as u64;
        let mut gauges = Gauges {
            cache_blocks_max: self.cache_blocks_max.map(|most| most * replicas),
            ..Gauges::default()
        };
        for replica in &self.replicas {
            let Counters { steps, prompt_tokens, cached_tokens } = replica.counters();
            let waiting = replica.waiting() as u64;
            gauges.waiting += waiting;
            gauges.running += replica.in_flight() - waiting;
            gauges.cache_blocks += replica.cached_blocks() as u64;
            gauges.steps += steps;
            gauges.prompt_tokens += prompt_tokens;
            gauges.cached_tokens += cached_tokens;
        }
        gauges
    }

    fn choose(&self) -> usize {
        match self.router {
            Router::RoundRobin => self.next,
            Router::LeastLoaded => {
                let least = self.loads.min();
                let after = self.loads.first_at_most(self.next, least);
                after.or_else(|| self.loads.first_at_most(0, least)).unwrap_or(self.next)
            }
        }
    }

    /// Takes over what has changed at a replica.
    #[inline]
    fn note(&mut self, index: usize) {
        let replica = &self.replicas[index];
        self.ends.set(index, replica.step_end().as_nanos());
        self.loads.set(index, replica.in_flight());
    }
}
