//! How often a search for capacity holds the truth, and what it costs: `cargo bench --bench capacity`.
//!
//! The truth comes from long simulations over a dense grid of loads: where these are not sure to a few thousandths, it is
//! an interval, and an answer holds it only if it holds all of that. Then 100 searches with seeds of their own are made on
//! the same server, and beside them the usual one: 64 requests at each load, which pass if the share of good ones reaches
//! the target. Fails if fewer than 90 % of the decided answers hold the truth, or if most stay undecided.

#[path = "../tests/it/find_capacity/server.rs"]
mod server;

use std::process::ExitCode;

use server::{Naive, Question, Server, TRUTH_REQUESTS, Truth};

const SEEDS: u64 = 100;

/// What became of some searches.
#[derive(Clone, Copy, Default)]
struct Count {
    decided: u64,
    held: u64,
    /// Widths of the decided answers that have two ends, as shares of the lower one.
    widths: f64,
    requests: u64,
    naive_held: u64,
    naive_requests: u64,
}

fn main() -> ExitCode {
    // As a test, without optimisation, it would take minutes.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let mut good = true;
    for question in [Question::users(), Question::rate()] {
        let server = Server::course();
        let truth = server.truth(&question, TRUTH_REQUESTS);
        println!("{}: capacity {truth} by simulations of {TRUTH_REQUESTS} requests", question.name);
        let count = searched(&server, &question, truth);
        let undecided = SEEDS - count.decided;
        println!(
            "  search: {} of {} decided answers hold it, {undecided} undecided, {:.0} % wide and {} requests on average",
            count.held,
            count.decided,
            100.0 * count.widths / count.decided.max(1) as f64,
            count.requests / SEEDS
        );
        println!(
            "  64 requests a load: {} of {SEEDS} answers hold it, {} requests on average\n",
            count.naive_held,
            count.naive_requests / SEEDS
        );
        good &= count.held * 10 >= count.decided * 9 && count.decided > SEEDS / 2;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// All searches, over the cores there are.
fn searched(server: &Server, question: &Question, truth: Truth) -> Count {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let part = |first: u64| {
        let seeds = (1..=SEEDS).filter(move |seed| seed % threads == first);
        seeds.map(|seed| one(server, question, truth, seed)).fold(Count::default(), Count::and)
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        parts.into_iter().map(|part| part.join().expect("a search")).fold(Count::default(), Count::and)
    })
}

fn one(server: &Server, question: &Question, truth: Truth, seed: u64) -> Count {
    let answer = server.search(question, seed).answer;
    let (low, high) = (answer.low.unwrap_or(0.0), answer.high.unwrap_or(f64::INFINITY));
    let width = if low > 0.0 && high.is_finite() { (high - low) / low } else { 0.0 };
    let decided = answer.decided;
    let Naive { low: naive_low, high: naive_high, requests } = server.naive(question, seed);
    Count {
        decided: u64::from(decided),
        held: u64::from(decided && truth.is_within(low, high)),
        widths: if decided { width } else { 0.0 },
        requests: answer.requests,
        naive_held: u64::from(truth.is_within(naive_low, naive_high)),
        naive_requests: requests,
    }
}

impl Count {
    fn and(self, other: Count) -> Count {
        Count {
            decided: self.decided + other.decided,
            held: self.held + other.held,
            widths: self.widths + other.widths,
            requests: self.requests + other.requests,
            naive_held: self.naive_held + other.naive_held,
            naive_requests: self.naive_requests + other.naive_requests,
        }
    }
}
