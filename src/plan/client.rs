//! How the client runs: threads, cores, the kernel interface that it waits on, and the stamps that it takes.

use serde::{Deserialize, Serialize};

/// How the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Client {
    /// Number of shards; absent: one per usable core, one core left to the coordinator when there are more than two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workers: Option<u32>,
    /// Cores to pin shards to, in order; absent: the usable ones. Empty: no pinning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Vec<u32>>,
    /// Which kernel interface the runtime waits on.
    pub driver: Driver,
    /// Gap between the first sends of a shard's users in a closed loop, us.
    pub start_spread_us: f64,
    /// Which stamps of arriving bytes are taken.
    pub timestamps: Timestamps,
    /// Time that each shard wastes on purpose, to show what a slow client does to the numbers; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burn: Option<Burn>,
}

/// Which stamps of arriving bytes are taken, and which of them the latencies rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timestamps {
    /// Both; the latencies are those of the user's stamps, and their difference to the kernel's is the client's error.
    #[default]
    Both,
    /// The kernel's receive stamps, which a busy client does not delay; the user's where one is missing.
    Kernel,
    /// The user's alone: right after each read returns.
    User,
}

/// Time wasted between two turns of a shard's loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Burn {
    /// How long at a time, ms.
    pub ms: f64,
    /// How often, s; 0: in every turn.
    pub every_s: f64,
}

/// Kernel interface of the runtime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Driver {
    /// The one that costs less per event: epoll.
    #[default]
    Auto,
    /// epoll.
    Epoll,
    /// io_uring; an error where the kernel refuses it.
    IoUring,
}

impl Default for Client {
    fn default() -> Client {
        Client {
            workers: None,
            affinity: None,
            driver: Driver::Auto,
            start_spread_us: 50.0,
            timestamps: Timestamps::default(),
            burn: None,
        }
    }
}
