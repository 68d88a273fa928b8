//! The golden values of servers, out of the model, driven by a closed loop of a few lines.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use serde_json::Value;
use tokload::model::{
    Batching, Cost, Emission, Freeze, Job, PrefixCache, Server, Serving, Settings, block_hashes,
};
use tokload::stats::quantile::nearest_rank;
use tokload::stats::{Histogram, Quantile};
use tokload::time::Stamp;

use crate::goldens::{assert_close, values};
use crate::java_random::JavaRandom;

pub(crate) const PROMPT_TOKENS: u32 = 200;

fn server(batching: Batching) -> Server {
    Server::new(&Settings::serving(Serving::Batching(batching)), Stamp::ZERO).unwrap()
}

/// Users who send, wait for the whole answer, think, and send again.
pub(crate) struct ClosedLoop<'a> {
    server: Server,
    think: Duration,
    /// Tokens of the next answer, drawn in the order of the submissions.
    output_tokens: Box<dyn FnMut() -> u32 + 'a>,
    /// Sends to come and their users.
    sends: BinaryHeap<Reverse<(Stamp, u64)>>,
    /// What each user waits for.
    asked: BTreeMap<u64, Asked>,
    pub(crate) done: Vec<Asked>,
    /// Beginning of the step under way.
    begin: Stamp,
    now: Stamp,
    tokens: u64,
    /// Sum over steps of sequences times length, ns.
    occupied: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) sent: Stamp,
    pub(crate) first: Stamp,
    pub(crate) last: Stamp,
    pub(crate) tokens: u32,
}

impl<'a> ClosedLoop<'a> {
    pub(crate) fn new(
        server: Server,
        users: u64,
        think: Duration,
        draw: impl FnMut() -> u32 + 'a,
    ) -> ClosedLoop<'a> {
        ClosedLoop {
            server,
            think,
            output_tokens: Box::new(draw),
            sends: (0..users).map(|user| Reverse((Stamp::ZERO, user))).collect(),
            asked: BTreeMap::new(),
            done: Vec::new(),
            begin: Stamp::ZERO,
            now: Stamp::ZERO,
            tokens: 0,
            occupied: 0,
        }
    }

    /// Until the end of the step that is under way at `end`, or the first send after it if there is none.
    pub(crate) fn run(mut self, end: Stamp) -> Self {
        let mut emissions = Vec::new();
        while self.now < end {
            let wakeup = self.server.next_wakeup();
            match self.sends.peek() {
                Some(&Reverse((at, user))) if at <= wakeup => {
                    self.sends.pop();
                    self.send(at, user);
                }
                _ => {
                    self.server.advance(wakeup, &mut emissions);
                    self.occupied += emissions.len() as u64 * wakeup.nanos_since(self.begin);
                    (self.begin, self.now) = (wakeup, wakeup);
                    emissions.drain(..).for_each(|emission| self.take(emission));
                }
            }
        }
        self
    }

    fn send(&mut self, at: Stamp, user: u64) {
        if self.server.next_wakeup() == Stamp::MAX {
            (self.begin, self.now) = (at, at);
        }
        let tokens = (self.output_tokens)();
        let job = Job { owner: user, prompt_tokens: PROMPT_TOKENS, output_tokens: tokens, ..Job::default() };
        self.server.submit(at, job).unwrap();
        self.asked.insert(user, Asked { sent: at, first: at, last: at, tokens });
    }

    fn take(&mut self, emission: Emission) {
        self.tokens += u64::from(emission.tokens);
        let asked = self.asked.get_mut(&emission.owner).unwrap();
        if emission.first {
            asked.first = emission.due;
        }
        if emission.last {
            asked.last = emission.due;
            self.done.push(*asked);
            self.sends.push(Reverse((emission.due + self.think, emission.owner)));
        }
    }

    fn mean_ms(&self, of: impl Fn(&Asked) -> f64) -> f64 {
        self.done.iter().map(of).sum::<f64>() / self.done.len() as f64
    }
}

impl Asked {
    pub(crate) fn ttft_ms(&self) -> f64 {
        self.first.nanos_since(self.sent) as f64 / 1e6
    }

    fn e2e_ms(&self) -> f64 {
        self.last.nanos_since(self.sent) as f64 / 1e6
    }

    pub(crate) fn tpot_ms(&self) -> f64 {
        self.last.nanos_since(self.first) as f64 / 1e6 / f64::from(self.tokens - 1)
    }
}

pub(crate) fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap_or_else(|| panic!("no {key} in {row}"))
}

#[test]
fn throughput_against_user_speed() {
    let golden = values("ThroughputVsUser");
    for row in golden["curve"].as_array().unwrap() {
        let batch = row["batch"].as_u64().unwrap();
        let cost = Cost { base_ms: 12.0, per_sequence_ms: 0.6, per_prefill_token_ms: 0.0 };
        let mut server = server(Batching { slots: 32, cost, ..Batching::default() });
        for owner in 0..batch {
            server.submit(Stamp::ZERO, Job { owner, output_tokens: 11, ..Job::default() }).unwrap();
        }
        let mut emissions = Vec::new();
        while server.next_wakeup() < Stamp::MAX {
            server.advance(server.next_wakeup(), &mut emissions);
        }
        let (first, last) = (emissions[0].due, emissions[emissions.len() - 1].due);
        let span_s = last.nanos_since(first) as f64 / 1e9;
        let tokens = emissions.iter().filter(|emission| !emission.first).count() as f64;
        assert_close(span_s * 1e3 / 10.0, number(row, "step_ms"));
        assert_close(10.0 / span_s, number(row, "user_tok_s"));
        assert_close(tokens / span_s, number(row, "total_tok_s"));
    }
}

#[test]
fn littles_law_in_a_closed_loop() {
    for row in values("LittleClosedLoop").as_array().unwrap() {
        let users = row["clients"].as_u64().unwrap();
        let think = Duration::from_secs_f64(number(row, "think_s"));
        let server = server(Batching { slots: 1000, ..Batching::default() });
        let run = ClosedLoop::new(server, users, think, || 50).run(Stamp::from_millis(120_000));
        let elapsed_s = run.now.as_secs_f64();
        let (lambda, w_s) = (run.done.len() as f64 / elapsed_s, run.mean_ms(Asked::e2e_ms) / 1e3);
        assert_close(lambda, number(row, "lambda_req_s"));
        assert_close(w_s, number(row, "w_s"));
        assert_close(run.occupied as f64 / 1e9 / elapsed_s, number(row, "l"));
        assert_close(lambda * w_s, number(row, "lambda_w"));
        assert_close(lambda * (w_s + think.as_secs_f64()), number(row, "lambda_w_plus_z"));
    }
}

#[test]
fn a_sweep_of_concurrencies() {
    for row in values("ConcurrencySweep").as_array().unwrap() {
        let users = row["clients"].as_u64().unwrap();
        let mut random = JavaRandom::new(1);
        let server = Server::new(&Settings::course(), Stamp::ZERO).unwrap();
        let draw = || 30 + random.below(41) as u32;
        let run = ClosedLoop::new(server, users, Duration::ZERO, draw).run(Stamp::from_millis(120_000));
        assert_eq!(run.done.len() as u64, row["completed"].as_u64().unwrap(), "{users} users");
        assert_eq!(run.tokens, row["tokens"].as_u64().unwrap());
        assert_eq!(run.now.as_nanos() as f64 / 1e6, number(row, "end_ms"));
        assert_close(run.done.len() as f64 / run.now.as_secs_f64(), number(row, "req_s"));
        assert_close(run.tokens as f64 / run.now.as_secs_f64(), number(row, "tok_s"));
        let mut ttft: Vec<u64> = run.done.iter().map(|asked| asked.first.nanos_since(asked.sent)).collect();
        ttft.sort_unstable();
        for (key, quantile) in [("ttft_p50", Quantile::P50), ("ttft_p99", Quantile::P99)] {
            assert_eq!(nearest_rank(&ttft, quantile).unwrap() as f64 / 1e6, number(row, key));
        }
        assert_close(run.mean_ms(Asked::tpot_ms), number(row, "tpot_mean"));
        assert_close(run.mean_ms(Asked::e2e_ms), number(row, "e2e_mean"));
    }
}

/// A prompt whose first `shared` tokens are those of all others, and its number.
fn prompt(number: u64, shared: u32, tokens: u32) -> impl Iterator<Item = u64> {
    (0..u64::from(tokens))
        .map(move |place| if place < u64::from(shared) { place } else { number << 32 | place })
}

#[test]
fn a_mix_of_prompts() {
    let mut random = JavaRandom::new(3);
    let mut length = |median: f64, sigma: f64, most: f64| {
        let drawn = median * (sigma * random.gaussian()).exp();
        (drawn + 0.5).floor().clamp(8.0, most) as u32
    };
    let drawn: Vec<(u32, u32)> =
        (0..1000).map(|_| (length(600.0, 1.0, 8192.0), length(200.0, 0.8, 4096.0))).collect();
    // Tokens that all prompts share, and tokens in all.
    let cases: [Vec<(u32, u32)>; 4] = [
        vec![(1024, 1024); 1000],
        vec![(0, 1024); 1000],
        drawn.iter().map(|(long, _)| (0, *long)).collect(),
        drawn.iter().map(|(_, short)| (1500, 1500 + short)).collect(),
    ];
    for (row, prompts) in values("PromptMix").as_array().unwrap().iter().zip(cases) {
        let cost = Cost { base_ms: 25.0, per_sequence_ms: 0.0, per_prefill_token_ms: 0.25 };
        let prefix_cache = Some(PrefixCache::default());
        let mut server = server(Batching { cost, prefix_cache, ..Batching::default() });
        let mut ttft_ms = Vec::new();
        let mut emissions = Vec::new();
        let mut now = Stamp::ZERO;
        for (number, (shared, tokens)) in prompts.into_iter().enumerate() {
            let blocks = block_hashes(prompt(number as u64 + 1, shared, tokens), 16);
            let job = Job { prompt_tokens: tokens, output_tokens: 1, blocks, ..Job::default() };
            server.submit(now, job).unwrap();
            let due = server.next_wakeup();
            server.advance(due, &mut emissions);
            ttft_ms.push(due.nanos_since(now) as f64 / 1e6);
            now = due;
        }
        let gauges = server.gauges();
        assert_eq!(gauges.prompt_tokens, row["prompt_tokens"].as_u64().unwrap(), "{}", row["case"]);
        let computed = gauges.prompt_tokens - gauges.cached_tokens;
        assert_eq!(computed, row["computed_tokens"].as_u64().unwrap(), "{}", row["case"]);
        let told: u64 = emissions.iter().map(|emission| u64::from(emission.cached_tokens)).sum();
        assert_eq!(told, gauges.cached_tokens);
        let hits = gauges.cached_tokens as f64 * 100.0 / gauges.prompt_tokens as f64;
        assert_close(hits, number(row, "cache_hit_pct"));
        assert_close(ttft_ms.iter().sum::<f64>() / 1000.0, number(row, "ttft_mean"));
        ttft_ms.sort_unstable_by(f64::total_cmp);
        assert_close(ttft_ms[499], number(row, "ttft_p50"));
        assert_close(ttft_ms[989], number(row, "ttft_p99"));
    }
}

/// One at a time, 50 ms each, and a standstill from 10 s to 12 s.
fn freezing_server() -> Server {
    let cost = Cost { base_ms: 50.0, per_sequence_ms: 0.0, per_prefill_token_ms: 0.0 };
    let batching = Batching { slots: 1, cost, ..Batching::default() };
    let freezes = vec![Freeze { at_s: 10.0, for_s: 2.0 }];
    let settings = Settings { freezes, ..Settings::serving(Serving::Batching(batching)) };
    Server::new(&settings, Stamp::ZERO).unwrap()
}

#[test]
fn an_open_against_a_closed_loop_at_a_freeze() {
    let us = |later: Stamp, earlier: Stamp| later.nanos_since(earlier) / 1000;
    let mut recordings: [Histogram; 4] = Default::default();
    let plans: Vec<Stamp> = (0..300).map(|k| Stamp::from_millis(k * 100)).collect();
    let mut emissions = Vec::new();
    let (mut server, mut free) = (freezing_server(), Stamp::ZERO);
    for plan in &plans {
        let send = free.max(*plan);
        server.submit(send, Job::default()).unwrap();
        server.advance(server.next_wakeup(), &mut emissions);
        free = emissions.pop().unwrap().due;
        recordings[0].record(us(free, send));
        recordings[1].record_corrected(us(free, send), 100_000);
        recordings[2].record(us(free, *plan));
    }
    let mut server = freezing_server();
    for (owner, plan) in plans.iter().enumerate() {
        server.submit(*plan, Job { owner: owner as u64, ..Job::default() }).unwrap();
    }
    while server.next_wakeup() < Stamp::MAX {
        server.advance(server.next_wakeup(), &mut emissions);
    }
    emissions.iter().for_each(|e| recordings[3].record(us(e.due, plans[e.owner as usize])));
    for (histogram, row) in recordings.iter().zip(values("OpenVsClosed").as_array().unwrap()) {
        assert_eq!(histogram.n(), row["n"].as_u64().unwrap(), "{}", row["name"]);
        for (key, quantile) in
            [("p50", Quantile::P50), ("p90", Quantile::P90), ("p99", Quantile::P99), ("max", Quantile::MAX)]
        {
            let shown = histogram.quantile(quantile).unwrap() as f64 / 1e3;
            assert_eq!(shown, number(row, key), "{} {key}", row["name"]);
        }
    }
}
