//! The mock server: an LLM server of known timing and known faults, over real sockets.
//!
//! It answers chat and text completions in vLLM's shapes and Ollama's lines, streamed or not, with a set TTFT and ITL,
//! and keeps the truth of when it sent what: `GET /truth`, and `/metrics` in vLLM's names. It serves to check a
//! client, this program's own first of all, and runs as a process of its own or inside another. Each thread owns its
//! connections and does all that costs time alone. The model behind them is reached through submit, cancel, next
//! wake-up and advance; where requests slow each other down it is one for all threads (`shared`, and `backend`, its
//! lock), else one for each. What is answered is decided by pure parts; `shard`, `connection` and `transport` alone
//! touch sockets.

mod account;
mod answering;
mod ask;
mod backend;
mod connection;
mod desk;
mod event;
mod face;
mod faults;
mod generation;
mod house;
mod jobs;
mod meters;
mod paper;
mod reply;
mod request;
mod route;
mod samples;
mod segments;
mod settings;
mod shard;
mod shared;
mod tls;
mod transport;
mod truth;
mod words;

pub use account::{Account, Ending, Write, mark};
pub use faults::{
    Answer, Break, Cut, Delivery, Farewell, Fault, FaultError, Faults, Flaw, HTTP, Outage, RETRY_AFTER,
    RETRY_AFTER_S, Reach, When,
};
pub use paper::{Paper, Written};
pub use reply::ServedBy;
pub use samples::Spread;
pub use settings::{ReasoningField, Role, Settings, Usage};
pub use tls::{Asks, Identity, Unusable, Version};
pub use truth::Truth;

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::pace::{self, Kernel, Pace};
use crate::sys::affinity;
use crate::sys::limits;
use crate::sys::listener::{Claim, Listener, Listening};
use crate::sys::waker::Waker;
use desk::Desk;
use house::House;
use jobs::WORKERS_MAX;
use shard::{Door, Shard};

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct Mock {
    address: SocketAddr,
    kernel: Kernel,
    house: Arc<House>,
    threads: Vec<Running>,
    /// Keeps the port through outages.
    _claim: Claim,
}

#[derive(Debug)]
struct Running {
    thread: JoinHandle<io::Result<()>>,
    waker: Arc<Waker>,
}

/// What a thread says when it is about to serve.
type Started = (Arc<Waker>, Kernel);

impl Mock {
    /// Starts the server; connections are accepted when this returns. Raises the process's limit on descriptors.
    ///
    /// # Errors
    /// The address cannot be listened on, a core cannot be pinned to, the certificate is not usable, the faults cannot
    /// be done, the model is impossible, or the kernel refuses the wished driver.
    pub fn start(settings: Settings) -> io::Result<Mock> {
        limits::raise_descriptor_limit();
        if settings.faults.check().is_err() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the faults' probabilities are not shares of 1",
            ));
        }
        if settings.workers > WORKERS_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "more threads than can be told apart"));
        }
        let tls =
            settings.tls.as_ref().map(|identity| identity.server_config(&settings.tls_asks)).transpose()?;
        let claim = claim(&settings)?;
        let address = claim.address()?;
        let doors = doors(address, &settings)?;
        let house = House::new(settings, tls, doors.len());
        let house = Arc::new(house.map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?);
        let mut mock = Mock { address, kernel: Kernel::Epoll, house, threads: Vec::new(), _claim: claim };
        for (thread, door) in doors.into_iter().enumerate() {
            // An error drops `mock`, which stops the threads that run already.
            mock.kernel = mock.start_thread(thread, door)?;
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

    /// What was served so far, as `GET /truth` tells it; with `restart`, counting begins anew.
    ///
    /// All of it is of one moment. Adding up and sorting exact times takes a while, during which the threads are kept
    /// from serving for no longer than the times take to be copied.
    #[must_use]
    pub fn truth(&self, restart: bool) -> Truth {
        self.house.truth(restart)
    }

    /// Closes everything and tells what was served.
    ///
    /// # Errors
    /// A thread had to give up earlier.
    pub fn stop(mut self) -> io::Result<Truth> {
        self.stop_threads()
    }

    fn start_thread(&mut self, index: usize, door: Door) -> io::Result<Kernel> {
        let (tell, told) = channel();
        let house = Arc::clone(&self.house);
        let name = format!("mock-{index}");
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            let result = serve(&house, index, door, &tell);
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
        let mut failure = None;
        for running in self.threads.drain(..) {
            match running.thread.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failure = Some(error),
                Err(_) => failure = Some(io::Error::other("a thread of the mock server panicked")),
            }
        }
        match failure {
            None => Ok(self.house.truth(false)),
            Some(error) => Err(error),
        }
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        // Whoever wants to know what was served calls `stop`.
        let _ = self.stop_threads();
    }
}

/// The life of one thread.
fn serve(house: &Arc<House>, index: usize, door: Door, tell: &Sender<io::Result<Started>>) -> io::Result<()> {
    // Pinned before anything is allocated, so that buffers lie near the core.
    if let Some(cores) = house.settings.cores.as_deref().filter(|cores| !cores.is_empty()) {
        let core = cores[index % cores.len()];
        if !affinity::pin_to(core) {
            return Err(io::Error::other(format!("cannot pin a thread to core {core}")));
        }
    }
    pace::block_on(house.settings.driver, |kernel| async move {
        let pace = Pace::new(house.clock, house.settings.timer, kernel)?;
        let waker = pace.waker();
        let desk = Desk::new(Arc::clone(house), index, Arc::clone(&waker));
        let shard = Shard::new(desk, pace, door)?;
        if tell.send(Ok((waker, kernel))).is_err() {
            return Ok(());
        }
        shard.run().await
    })?
}

/// Takes the port. A port shared by several threads would let a second server in silently; the claim is shared with
/// nobody and shows that it is free.
fn claim(settings: &Settings) -> io::Result<Claim> {
    let address = (settings.host.as_str(), settings.port)
        .to_socket_addrs()?
        .next()
        .ok_or_else(|| io::Error::other(format!("{} has no address", settings.host)))?;
    Claim::on(address)
}

/// Nothing can listen on the Unix socket; why, is the inner error. [`Mock::start`] has it as the inner error of its own.
#[derive(Debug)]
pub struct NoSocket(pub io::Error);

impl std::fmt::Display for NoSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for NoSocket {}

/// One listening socket per thread, all on one port; and the Unix socket, which the first has.
fn doors(address: SocketAddr, settings: &Settings) -> io::Result<Vec<Door>> {
    let workers = settings.workers.max(1);
    let how = Listening { backlog: settings.backlog, shared: workers > 1 };
    let door = |thread| {
        let listener = Some(Listener::bind(address, how)?);
        let path = settings.unix_socket.as_deref().filter(|_| thread == 0);
        let unix = path.map(|path| Listener::bind_unix(path, settings.backlog)).transpose();
        let unix = unix.map_err(|error| io::Error::new(error.kind(), NoSocket(error)))?;
        Ok(Door { address, how, listener, unix, watched: false, outages: 0 })
    };
    (0..workers).map(door).collect()
}
