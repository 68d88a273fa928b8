//! What a modelled token costs: stepping alone, without bytes, sockets or sleep.
//!
//! Items are tokens. Users of a closed loop fill all slots of each replica; an answer of 50 to 113 tokens that ends is
//! followed by the next at once, so that submissions are part of the cost.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use tokload::model::{
    Batching, Emission, Fixed, Job, PrefixCache, Router, Server, Serving, Settings, block_hashes,
};
use tokload::time::Stamp;

fn main() {
    divan::main();
}

struct Rig {
    server: Server,
    job: Job,
    emissions: Vec<Emission>,
    submitted: u32,
}

impl Rig {
    fn new(serving: Serving, users: u64, job: Job) -> Rig {
        let server = Server::new(&Settings::serving(serving), Stamp::ZERO).expect("valid settings");
        let mut rig = Rig { server, job, emissions: Vec::new(), submitted: 0 };
        (0..users).for_each(|user| rig.submit(Stamp::from_nanos(user), user));
        // Until answers no longer end all at once.
        rig.run(400 * users as usize);
        rig
    }

    fn submit(&mut self, now: Stamp, owner: u64) {
        self.submitted = self.submitted.wrapping_add(1);
        let output_tokens = 50 + (self.submitted.wrapping_mul(2_654_435_761) >> 26);
        let job = Job { owner, output_tokens, draw: u64::from(self.submitted), ..self.job.clone() };
        self.server.submit(now, job).expect("no limit to the queue");
    }

    /// Steps of at least so many tokens.
    fn run(&mut self, tokens: usize) {
        let mut done = 0;
        while done < tokens {
            done += self.step();
        }
    }

    /// What is due next; the number of tokens.
    fn step(&mut self) -> usize {
        let now = self.server.next_wakeup();
        self.server.advance(now, &mut self.emissions);
        let mut emissions = std::mem::take(&mut self.emissions);
        for emission in emissions.iter().filter(|emission| emission.last) {
            self.submit(now, emission.owner);
        }
        let tokens = black_box(&emissions).len();
        emissions.clear();
        self.emissions = emissions;
        tokens
    }
}

fn batching(slots: u32, replicas: u32) -> Batching {
    Batching { slots, replicas, router: Router::LeastLoaded, ..Batching::default() }
}

/// One iteration is about one step of every replica.
fn bench(bencher: Bencher<'_, '_>, mut rig: Rig, tokens: u64) {
    bencher.counter(ItemsCount::new(tokens)).bench_local(|| rig.run(tokens as usize));
}

const PROMPT: u32 = 200;

#[divan::bench(args = [1, 64, 1000, 10_000])]
fn sequences(bencher: Bencher<'_, '_>, slots: u32) {
    let job = Job { prompt_tokens: PROMPT, ..Job::default() };
    let tokens = u64::from(slots);
    bench(bencher, Rig::new(Serving::Batching(batching(slots, 1)), tokens, job), tokens);
}

#[divan::bench(args = [10, 1000])]
fn replicas_of_64(bencher: Bencher<'_, '_>, replicas: u32) {
    let job = Job { prompt_tokens: PROMPT, ..Job::default() };
    let tokens = u64::from(replicas) * 64;
    bench(bencher, Rig::new(Serving::Batching(batching(64, replicas)), tokens, job), tokens);
}

/// Chunked prefill, noise, and a prefix cache that finds all prompts.
#[divan::bench]
fn everything_64(bencher: Bencher<'_, '_>) {
    let everything = Batching {
        step_tokens_max: Some(512),
        noise: 0.1,
        prefix_cache: Some(PrefixCache { blocks_max: Some(10_000), ..PrefixCache::default() }),
        ..batching(64, 1)
    };
    let job = Job { prompt_tokens: PROMPT, blocks: block_hashes(0..u64::from(PROMPT), 16), ..Job::default() };
    bench(bencher, Rig::new(Serving::Batching(everything), 64, job), 64);
}

#[divan::bench(args = [64, 10_000])]
fn fixed(bencher: Bencher<'_, '_>, jobs: u64) {
    let fixed = Fixed { itl_jitter_ms: 2.0, ..Fixed::default() };
    bench(bencher, Rig::new(Serving::Fixed(fixed), jobs, Job::default()), jobs);
}
