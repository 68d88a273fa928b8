//! The threads of the shards: how one comes up, pinned and with its runtime, and what is said of one that ended.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::Setup;
use crate::engine::Error;
use crate::load::gauges::Gauges;
use crate::load::leg::{Order, Reply};
use crate::load::shard::{Equipment, Shard};
use crate::load::spool::{Spool, SpoolSender};
use crate::metrics::LiveShard;
use crate::pace::{self, Kernel, Mode, Pace};
use crate::plan::Driver;
use crate::sys::affinity::pin_to;
use crate::sys::clock::RunClock;
use crate::sys::waker::Waker;

/// A running shard.
#[derive(Debug)]
pub(super) struct Handle {
    pub(super) orders: Sender<Order>,
    pub(super) waker: Arc<Waker>,
    pub(super) gauges: Arc<Gauges>,
    pub(super) thread: Option<JoinHandle<io::Result<()>>>,
}

/// What a shard's thread says when it has come up.
type Started = Result<(Arc<Waker>, Kernel), io::Error>;

/// Starts the shard of this place, on this core, with the kernel's stamps or without.
///
/// # Errors
/// The system refuses the thread or its runtime.
pub(super) fn start_shard(
    setup: &Setup,
    of: (usize, Option<u32>, bool),
    reply: Sender<Reply>,
) -> Result<(Handle, Kernel), Error> {
    let (place, core, stamped) = of;
    let (orders, from) = channel();
    let (started, on_start) = channel::<Started>();
    let gauges = Arc::new(Gauges::default());
    let spool = setup.spool.as_ref().map(Spool::sender);
    let live = setup.live.as_ref().and_then(|live| live.shard(place));
    let of_thread =
        ThreadPart { place, core, stamped, reply, started, gauges: Arc::clone(&gauges), live, spool };
    let (clock, driver) = (setup.clock, setup.plan.client.driver);
    let thread = std::thread::Builder::new()
        .name(format!("shard-{place}"))
        .spawn(move || shard_thread(of_thread, from, clock, driver))
        .map_err(|source| Error::Machine { doing: format!("cannot start shard {place}"), source })?;
    let refused =
        |source| Error::Machine { doing: format!("cannot start the runtime of shard {place}"), source };
    match on_start.recv() {
        Ok(Ok((waker, kernel))) => Ok((Handle { orders, waker, gauges, thread: Some(thread) }, kernel)),
        Ok(Err(source)) => Err(refused(source)),
        Err(_) => match thread.join() {
            Ok(Err(source)) => Err(refused(source)),
            Ok(Ok(())) => Err(Error::Refused(format!("shard {place} ended at once"))),
            Err(panic) => Err(Error::ShardLost { shard: place, message: message_of(&*panic) }),
        },
    }
}

/// What moves into a shard's thread.
struct ThreadPart {
    place: usize,
    core: Option<u32>,
    stamped: bool,
    reply: Sender<Reply>,
    started: Sender<Started>,
    gauges: Arc<Gauges>,
    live: Option<Arc<LiveShard>>,
    spool: Option<SpoolSender>,
}

fn shard_thread(
    part: ThreadPart,
    orders: Receiver<Order>,
    clock: RunClock,
    driver: Driver,
) -> io::Result<()> {
    // Pinned before the runtime and its buffers exist, so that their memory is this core's.
    let core = part.core.filter(|core| pin_to(*core));
    pace::block_on(driver, |kernel| async move {
        let pace = match Pace::new(clock, Mode::Sleep, kernel) {
            Ok(pace) => pace,
            Err(error) => {
                // Nobody listens only if the coordinator has gone.
                let _ = part.started.send(Err(error));
                return Ok(());
            }
        };
        let _ = part.started.send(Ok((pace.waker(), kernel)));
        let equipment = Equipment {
            place: part.place,
            core,
            pace,
            gauges: part.gauges,
            live: part.live,
            spool: part.spool,
            stamped: part.stamped,
        };
        Shard::new(equipment).run(orders, part.reply).await
    })?
}

/// How a shard's thread ended.
///
/// # Errors
/// It could not go on, or panicked.
pub(super) fn joined(shard: usize, thread: JoinHandle<io::Result<()>>) -> Result<(), Error> {
    match thread.join() {
        Ok(Ok(())) => Ok(()),
        Ok(Err(source)) => {
            Err(Error::Machine { doing: format!("shard {shard} could not go on waiting"), source })
        }
        Err(panic) => Err(Error::ShardLost { shard, message: message_of(&*panic) }),
    }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
