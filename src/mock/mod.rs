//! The mock server: an LLM server of known timing and known faults, over real sockets.
//!
//! It answers chat and text completions in vLLM's shapes, streamed or not, with a set TTFT and ITL, and keeps the truth
//! of when it sent what. It serves to check a client, this program's own first of all, and runs as a process of its
//! own or inside another. Each thread owns its connections and shares nothing per event. What is answered is decided
//! by pure parts; `shard`, `connection` and `transport` alone touch sockets.

mod ask;
mod connection;
mod event;
mod faults;
mod fixed;
mod generation;
mod house;
mod keyed;
mod reply;
mod request;
mod route;
mod shard;
mod tls;
mod transport;
mod truth;

pub use faults::{Answer, Break, Cut, Faults, When};
pub use generation::Role;
pub use tls::Identity;
pub use truth::{Spread, Truth};

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::pace::{self, Kernel, Pace};
use crate::plan::Driver;
use crate::sys::affinity;
use crate::sys::clock::RunClock;
use crate::sys::limits;
use crate::sys::listener::{Listener, Listening};
use crate::sys::waker::Waker;
use house::House;
use shard::Shard;

/// What the server is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name or address to listen on. Default: 127.0.0.1.
    pub host: String,
    /// Port; 0, the default, takes any free one.
    pub port: u16,
    /// Name of the model. Default: `mock-model`.
    pub model: String,
    /// Longest context that is reported and allowed, tokens. Default: 131072.
    pub max_model_len: u32,
    /// From the request's last byte to its first content event. Default: 200 ms.
    pub ttft: Duration,
    /// Between the content events of a choice. Default: 20 ms.
    pub itl: Duration,
    /// Each TTFT is drawn evenly from `ttft` plus or minus this. Default: 0.
    pub ttft_jitter: Duration,
    /// Each gap is drawn evenly from `itl` plus or minus this. Default: 0.
    pub itl_jitter: Duration,
    /// Tokens of one content event. Default: 1.
    pub tokens_per_chunk: u32,
    /// Tokens when a request names no number. Default: 128.
    pub max_tokens: u32,
    /// Give usage where it is asked for. Default: yes.
    pub usage: bool,
    /// When a chat stream says whose turn it is.
    pub role: Role,
    /// Hold the response head back until the first event. Default: no.
    pub late_head: bool,
    /// Close a connection that has been idle this long after an answer. Default: never.
    pub keep_alive: Option<Duration>,
    /// How threads wait.
    pub timer: pace::Mode,
    /// Number of threads; at least 1. The kernel spreads connections over them. Default: 1.
    pub workers: u32,
    /// Cores to pin threads to, in turn. Default: none.
    pub cores: Option<Vec<u32>>,
    /// Kernel interface of the runtimes.
    pub driver: Driver,
    /// Seed of the jitter.
    pub seed: u64,
    /// Most connections that wait to be accepted. Default: 4096.
    pub backlog: u32,
    /// Certificate and key, to speak TLS.
    pub tls: Option<Identity>,
    /// What goes wrong on purpose.
    pub faults: Faults,
}

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct Mock {
    address: SocketAddr,
    kernel: Kernel,
    house: Arc<House>,
    threads: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    thread: JoinHandle<io::Result<Truth>>,
    waker: Arc<Waker>,
}

/// What a thread says when it is about to serve.
type Started = (Arc<Waker>, Kernel);

impl Mock {
    /// Starts the server; connections are accepted when this returns. Raises the process's limit on descriptors.
    ///
    /// # Errors
    /// The address cannot be listened on, a core cannot be pinned to, the certificate is not usable, or the kernel
    /// refuses the wished driver.
    pub fn start(settings: Settings) -> io::Result<Mock> {
        limits::raise_descriptor_limit();
        let tls = settings.tls.as_ref().map(Identity::server_config).transpose()?;
        let listeners = listen(&settings)?;
        let address = listeners[0].address()?;
        let house = Arc::new(House::new(settings, RunClock::start(), tls));
        let mut mock = Mock { address, kernel: Kernel::Epoll, house, threads: Vec::new() };
        for (index, listener) in listeners.into_iter().enumerate() {
            // An error drops `mock`, which stops the threads that run already.
            mock.kernel = mock.start_thread(index, listener)?;
        }
        Ok(mock)
    }

    /// The address that it listens on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The kernel interface that its threads wait on.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Closes everything and tells what was served.
    ///
    /// # Errors
    /// A thread had to give up earlier.
    pub fn stop(mut self) -> io::Result<Truth> {
        self.stop_threads()
    }

    fn start_thread(&mut self, index: usize, listener: Listener) -> io::Result<Kernel> {
        let (tell, told) = channel();
        let house = Arc::clone(&self.house);
        let name = format!("mock-{index}");
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let result = serve(&house, index, listener, &tell);
            if let Err(error) = &result {
                // Nobody listens any more once the thread has started; `stop` has the error then.
                let _ = tell.send(Err(io::Error::new(error.kind(), error.to_string())));
            }
            result
        })?;
        let (waker, kernel) =
            told.recv().map_err(|_| io::Error::other("a thread of the mock server did not start"))??;
        self.threads.push(Running { thread, waker });
        Ok(kernel)
    }

    fn stop_threads(&mut self) -> io::Result<Truth> {
        self.house.stop();
        for running in &self.threads {
            running.waker.wake();
        }
        let mut truth = Truth::new();
        let mut failure = None;
        for running in self.threads.drain(..) {
            match running.thread.join() {
                Ok(Ok(part)) => truth.add(&part),
                Ok(Err(error)) => failure = Some(error),
                Err(_) => failure = Some(io::Error::other("a thread of the mock server panicked")),
            }
        }
        failure.map_or(Ok(truth), Err)
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // Whoever wants to know what was served calls `stop`.
        let _ = self.stop_threads();
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            host: "127.0.0.1".to_owned(),
            port: 0,
            model: "mock-model".to_owned(),
            max_model_len: 131_072,
            ttft: Duration::from_millis(200),
            itl: Duration::from_millis(20),
            ttft_jitter: Duration::ZERO,
            itl_jitter: Duration::ZERO,
            tokens_per_chunk: 1,
            max_tokens: 128,
            usage: true,
            role: Role::First,
            late_head: false,
            keep_alive: None,
            timer: pace::Mode::Sleep,
            workers: 1,
            cores: None,
            driver: Driver::Auto,
            seed: 0,
            backlog: 4096,
            tls: None,
            faults: Faults::default(),
        }
    }
}

/// The life of one thread.
fn serve(
    house: &Arc<House>,
    index: usize,
    listener: Listener,
    tell: &Sender<io::Result<Started>>,
) -> io::Result<Truth> {
    // Pinned before anything is allocated, so that buffers lie near the core.
    if let Some(cores) = house.settings.cores.as_deref().filter(|cores| !cores.is_empty()) {
        let core = cores[index % cores.len()];
        if !affinity::pin_to(core) {
            return Err(io::Error::other(format!("cannot pin a thread to core {core}")));
        }
    }
    pace::block_on(house.settings.driver, |kernel| async move {
        let pace = Pace::new(house.clock, house.settings.timer)?;
        let waker = pace.waker();
        let shard = Shard::new(Arc::clone(house), pace, listener)?;
        if tell.send(Ok((waker, kernel))).is_err() {
            return Ok(Truth::new());
        }
        shard.run().await
    })?
}

/// One listening socket per thread, all on one port.
fn listen(settings: &Settings) -> io::Result<Vec<Listener>> {
    let mut address = (settings.host.as_str(), settings.port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::other(format!("{} has no address", settings.host)))?;
    let workers = settings.workers.max(1);
    let backlog = settings.backlog;
    if workers == 1 {
        return Ok(vec![Listener::bind(address, Listening { backlog, shared: false })?]);
    }
    // A shared port would let a second server in silently; a socket of our own shows that it is free.
    address = Listener::bind(address, Listening { backlog, shared: false })?.address()?;
    (0..workers).map(|_| Listener::bind(address, Listening { backlog, shared: true })).collect()
}
