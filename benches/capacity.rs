//! How often a search for capacity holds the truth, and what it costs: `cargo bench --bench capacity`.
//!
//! The truth comes from long simulations over a dense grid of loads. Then 100 searches with seeds of their own are made
//! on the same server, and beside them the usual one: 64 requests at each load, which pass if the share of good ones
//! reaches the target. Fails if fewer than 90 % of the decided answers hold the truth.

#[path = "../tests/it/find_capacity/server.rs"]
mod server;

use std::process::ExitCode;

use server::{Naive, Question, Server, TRUTH_REQUESTS};

const SEEDS: u64 = 100;

fn main() -> ExitCode {
    // As a test, without optimisation, it would take minutes.
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    let mut good = true;
    for question in [Question::users(), Question::rate()] {
        let server = Server::course();
        let truth = server.capacity(&question, TRUTH_REQUESTS);
        println!("{}: capacity {} by simulations of {} requests", question.name, truth, TRUTH_REQUESTS);
        let (mut held, mut decided, mut requests) = (0, 0, 0);
        let (mut naive_held, mut naive_requests) = (0, 0);
        for seed in 1..=SEEDS {
            let found = server.search(&question, seed);
            let (low, high) = (found.answer.low.unwrap_or(0.0), found.answer.high.unwrap_or(f64::INFINITY));
            if found.answer.decided {
                decided += 1;
                held += u32::from(low <= truth && truth < high);
            }
            requests += found.answer.requests;
            let naive = server.naive(&question, seed);
            let Naive { low, high, requests: cost } = naive;
            naive_held += u32::from(low <= truth && truth < high);
            naive_requests += cost;
        }
        let mean = |requests: u64| requests / SEEDS;
        println!(
            "  search: {held} of {decided} decided answers hold it, {} undecided, {} requests on average",
            SEEDS as u32 - decided,
            mean(requests)
        );
        println!(
            "  64 requests a load: {naive_held} of {SEEDS} answers hold it, {} requests on average\n",
            mean(naive_requests)
        );
        good &= f64::from(held) >= 0.9 * f64::from(decided) && decided > 0;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
