//! What more threads give a modelled mock server: events per second that it can write, side by side.
//!
//! `cargo bench --bench workers`. One model whose steps come faster than any thread can write them, so that the
//! threads are busy all the time and meet at every step. The client reads and looks at nothing. Numbers of threads take
//! turns, so that noise meets them alike; shown is the best of the turns and its ratio to one thread. The client takes
//! a part of a core, so the machine needs one more than there are threads to show all of it. Beside it stands what an
//! event costs the server in processor time: what meeting costs shows there on any machine.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tokload::mock::{Mock, Settings};
use tokload::model::{self, Batching, Cost, Serving};
use tokload::sys::clock::RunClock;
use tokload::sys::cpu::{process_cpu_ns, thread_cpu_ns};

const STREAMS: usize = 256;
/// So few that the kernel holds a whole answer: the server never waits for the client, and each event is a write.
const TOKENS: usize = 400;
const TURNS: usize = 9;
/// Between two rounds of the client, in which much can come together.
const PAUSE: Duration = Duration::from_millis(2);

fn main() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads: Vec<u32> = [1, 2, 4, 8].into_iter().filter(|threads| *threads as usize <= cores).collect();
    let mut best = vec![Measured { events_per_s: 0.0, cpu_us: f64::INFINITY }; threads.len()];
    for _ in 0..TURNS {
        for (best, threads) in best.iter_mut().zip(&threads) {
            let Measured { events_per_s, cpu_us } = measure(*threads);
            best.events_per_s = best.events_per_s.max(events_per_s);
            best.cpu_us = best.cpu_us.min(cpu_us);
        }
    }
    println!("{STREAMS} streams from one model, {cores} cores: best of {TURNS} turns");
    println!("{:>8} {:>12} {:>8} {:>16} {:>8}", "threads", "events/s", "ratio", "CPU us/event", "ratio");
    for (threads, Measured { events_per_s, cpu_us }) in threads.iter().zip(&best) {
        let [speed, cost] = [events_per_s / best[0].events_per_s, cpu_us / best[0].cpu_us];
        println!("{threads:>8} {events_per_s:>12.0} {speed:>8.2} {cpu_us:>16.2} {cost:>8.2}");
    }
}

#[derive(Clone, Copy)]
struct Measured {
    events_per_s: f64,
    /// Of all threads but the client's.
    cpu_us: f64,
}

/// Processor time of all threads but this one, ns.
fn others_cpu_ns() -> u64 {
    process_cpu_ns().saturating_sub(thread_cpu_ns())
}

fn measure(workers: u32) -> Measured {
    let cost = Cost { base_ms: 0.02, per_sequence_ms: 0.0, per_prefill_token_ms: 0.0 };
    let batching = Batching { slots: STREAMS as u32, cost, ..Batching::default() };
    let serving = model::Settings::serving(Serving::Batching(batching));
    let mock = Mock::start(Settings { serving, workers, ..Settings::default() }).expect("a mock server");
    let mut streams: Vec<TcpStream> = (0..STREAMS).map(|_| connect(mock.address())).collect();
    let clock = RunClock::start();
    let (start, cpu) = (clock.now(), others_cpu_ns());
    streams.iter_mut().for_each(ask);
    drain(streams);
    let (took, cpu) = (clock.now() - start, others_cpu_ns() - cpu);
    let truth = mock.stop().expect("an orderly end");
    assert_eq!(truth.events, (STREAMS * TOKENS) as u64);
    assert_eq!(truth.partial_sends, 0, "the server has waited for the client");
    let events = truth.events as f64;
    Measured { events_per_s: events / took.as_secs_f64(), cpu_us: cpu as f64 / 1e3 / events }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_nonblocking(true).expect("a non-blocking socket");
    stream
}

fn ask(stream: &mut TcpStream) {
    let body = format!(r#"{{"model":"mock-model","messages":[],"stream":true,"max_tokens":{TOKENS}}}"#);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).expect("a request sent");
}

/// Reads all streams to their ends.
fn drain(mut streams: Vec<TcpStream>) {
    let mut buffer = vec![0; 1 << 20];
    while !streams.is_empty() {
        std::thread::sleep(PAUSE);
        streams.retain_mut(|stream| match stream.read(&mut buffer) {
            Ok(count) => count > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        });
    }
}
