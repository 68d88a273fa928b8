//! The receive path of a shard against the runtime's own reads: CPU time of the client thread per streamed event.
//!
//! `cargo bench --bench receive`. The mock server runs on the second core, the client thread on the first. The ways
//! take turns, so that noise meets them alike; shown is the least of the turns and the ratio to the way in use.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use monoio::io::AsyncReadRent as _;
use tokload::mock::{Mock, Settings};
use tokload::model;
use tokload::pace::{self, Kernel, Mode, Pace};
use tokload::plan::Driver;
use tokload::sys::affinity::pin_to;
use tokload::sys::clock::RunClock;
use tokload::sys::cpu::thread_cpu_ns;
use tokload::sys::epoll::Interest;
use tokload::sys::socket::{Received, Socket};
use tokload::time::Stamp;

const TOKENS: u32 = 100;
const TURNS: usize = 3;
const END: &[u8] = b"0\r\n\r\n";

#[derive(Clone, Copy)]
enum Way {
    /// One epoll for all sockets: what the shards do. The thread sleeps in it, or on a ring in the runtime.
    OneEpoll,
    /// A task and a buffer per stream, the runtime's `read().await`.
    RuntimeReads,
}

fn main() {
    println!("CPU time of the client per event, us: least of {TURNS} turns");
    println!(
        "{:>8} {:>22} {:>22} {:>22} {:>22}",
        "streams", "one epoll, ring", "one epoll, epoll", "reads, ring", "reads, epoll"
    );
    for streams in [64, 256, 1024] {
        let ways = [
            (Way::OneEpoll, Driver::IoUring),
            (Way::OneEpoll, Driver::Epoll),
            (Way::RuntimeReads, Driver::IoUring),
            (Way::RuntimeReads, Driver::Epoll),
        ];
        let mut least = [f64::INFINITY; 4];
        for _ in 0..TURNS {
            for (place, (way, driver)) in ways.iter().enumerate() {
                least[place] = least[place].min(measure(*way, *driver, streams));
            }
        }
        let shown: Vec<String> = least.iter().map(|us| format!("{us:.2} ({:.2} x)", us / least[0])).collect();
        println!("{streams:>8} {:>22} {:>22} {:>22} {:>22}", shown[0], shown[1], shown[2], shown[3]);
    }
}

fn measure(way: Way, driver: Driver, streams: usize) -> f64 {
    let settings = Settings {
        serving: model::Settings::fixed(200.0, 20.0),
        cores: Some(vec![1]),
        ..Settings::default()
    };
    let mock = Mock::start(settings).expect("a mock server on loopback");
    let address = mock.address();
    let client = std::thread::spawn(move || {
        let _ = pin_to(0);
        let sockets = open(address, streams);
        let cpu = thread_cpu_ns();
        pace::block_on(driver, |kernel| async move {
            match way {
                Way::OneEpoll => one_epoll(sockets, kernel).await,
                Way::RuntimeReads => runtime_reads(sockets).await,
            }
        })
        .expect("a runtime");
        thread_cpu_ns() - cpu
    });
    let cpu = client.join().expect("the client");
    drop(mock);
    cpu as f64 / 1e3 / (streams as f64 * f64::from(TOKENS))
}

fn open(address: SocketAddr, streams: usize) -> Vec<TcpStream> {
    let body = format!(r#"{{"model":"mock-model","messages":[],"stream":true,"max_tokens":{TOKENS}}}"#);
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let open = |_| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(request.as_bytes()).expect("a request sent");
        // Each stream on its own phase.
        std::thread::sleep(Duration::from_micros(50));
        stream
    };
    (0..streams).map(open).collect()
}

async fn one_epoll(streams: Vec<TcpStream>, kernel: Kernel) {
    let mut pace = Pace::new(RunClock::start(), Mode::Sleep, kernel).expect("a pace");
    let sockets: Vec<Socket> =
        streams.into_iter().map(|s| Socket::adopt(s.into()).expect("a socket")).collect();
    for (token, socket) in sockets.iter().enumerate() {
        pace.add(socket.as_fd(), token as u64, Interest::Read).expect("watched");
    }
    let mut buffer = vec![0; 64 << 10];
    let mut open = sockets.len();
    while open > 0 {
        let count = pace.poll().expect("polled");
        for place in 0..count {
            let Some(ready) = pace.ready(place) else { continue };
            let Ok(Received::Bytes(count)) = sockets[ready.token as usize].receive(&mut buffer) else {
                continue;
            };
            std::hint::black_box(pace.clock().now());
            open -= usize::from(buffer[..count].ends_with(END));
        }
        if count == 0 {
            pace.idle(Stamp::MAX).await.expect("waited");
        }
    }
}

async fn runtime_reads(streams: Vec<TcpStream>) {
    let clock = RunClock::start();
    let tasks: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            stream.set_nonblocking(true).expect("a non-blocking socket");
            let mut stream = monoio::net::TcpStream::from_std(stream).expect("a stream of the runtime");
            monoio::spawn(async move {
                let mut buffer = vec![0u8; 4 << 10];
                loop {
                    let (read, back) = stream.read(buffer).await;
                    std::hint::black_box(clock.now());
                    buffer = back;
                    match read {
                        Ok(0) | Err(_) => return,
                        Ok(count) if buffer[..count].ends_with(END) => return,
                        Ok(_) => {}
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
}
