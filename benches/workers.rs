//! What more threads give a modelled mock server: events per second that it can write, side by side.
//!
//! `cargo bench --bench workers`. One model whose steps come faster than any thread can write them, so that the
//! threads are busy all the time and meet at every step. Nobody reads while they write: the kernel holds the answers,
//! and the cores belong to the server. Times are those of its own accounts. Numbers of threads take turns, so that
//! noise meets them alike; shown is the best of the turns and its ratio to one thread.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use tokload::mock::{Mock, Settings};
use tokload::model::{self, Batching, Cost, Serving};

const STREAMS: usize = 256;
/// So few that the kernel holds a whole answer, and each event is a write.
const TOKENS: usize = 400;
const TURNS: usize = 9;
/// Between two looks whether all is written.
const LOOK: Duration = Duration::from_millis(20);

fn main() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: Vec<u32> = [1, 2, 4, 8].into_iter().filter(|threads| *threads as usize <= cores).collect();
    let mut best = vec![0.0f64; threads.len()];
    for _ in 0..TURNS {
        for (best, threads) in best.iter_mut().zip(&threads) {
            *best = best.max(events_per_s(*threads));
        }
    }
    println!("{STREAMS} streams from one model, {cores} cores: best of {TURNS} turns");
    println!("{:>8} {:>12} {:>8}", "threads", "events/s", "ratio");
    for (threads, events_per_s) in threads.iter().zip(&best) {
        println!("{threads:>8} {events_per_s:>12.0} {:>8.2}", events_per_s / best[0]);
    }
}

fn events_per_s(workers: u32) -> f64 {
    let cost = Cost { base_ms: 0.02, per_sequence_ms: 0.0, per_prefill_token_ms: 0.0 };
    let batching = Batching { slots: STREAMS as u32, cost, ..Batching::default() };
    let serving = model::Settings::serving(Serving::Batching(batching));
    let settings = Settings { serving, workers, accounts_max: STREAMS, ..Settings::default() };
    let mock = Mock::start(settings).expect("a mock server on loopback");
    let mut streams: Vec<TcpStream> =
        (0..STREAMS).map(|_| TcpStream::connect(mock.address()).expect("a connection")).collect();
    streams.iter_mut().for_each(ask);
    while mock.truth(false).completed() < STREAMS as u64 {
        std::thread::sleep(LOOK);
    }
    let truth = mock.stop().expect("an orderly end");
    assert_eq!((truth.events, truth.partial_sends), ((STREAMS * TOKENS) as u64, 0));
    let start = truth.accounts.iter().map(|account| account.arrived).min().expect("accounts");
    let end = truth.accounts.iter().map(|account| account.ended).max().expect("accounts");
    truth.events as f64 / (end - start).as_secs_f64()
}

fn ask(stream: &mut TcpStream) {
    let body = format!(r#"{{"model":"mock-model","messages":[],"stream":true,"max_tokens":{TOKENS}}}"#);
    let length = body.len();
    let head = format!("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all((head + &body).as_bytes()).expect("a request sent");
}
