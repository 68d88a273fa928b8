//! The real engine: a coordinator and S shards that drive real servers.
//!
//! Here, in `pace` and in `mock` the runtime is used, and here sockets are opened. What to send and when is `plan`'s
//! and `workload`'s; what the bytes mean is `exchange`'s.

mod agenda;
pub mod agreed;
mod alarms;
pub(crate) mod assemble;
mod connection;
mod coordinator;
mod deadlines;
pub mod fetch;
mod gauges;
mod leg;
mod limits;
mod outstanding;
mod permits;
mod pools;
mod prefix_cache;
pub mod probe;
pub(crate) mod replay;
mod replicas;
mod requests;
mod shard;
mod source;
mod spool;
mod talks;
mod target;
mod teams;
mod throttle;
pub mod tls;
pub mod tokenize;
mod transport;
mod until;
mod wall;

pub use coordinator::{LoadEngine, Setup};
pub use spool::{Spool, SpoolFiles, SpoolSender, Spooled};
pub use target::{Route, RouteError, RouteParts, Target, TlsRoute, Way};

/// The parts of a shard that know neither sockets nor clocks: the virtual engine is made of them as well.
pub(crate) mod virtually {
    pub(crate) use super::agenda::{Agenda, ClosedLoop, Due, later};
    pub(crate) use super::alarms::{Alarms, Bell, Rung};
    pub(crate) use super::assemble::LegOutcome;
    pub(crate) use super::deadlines::Deadlines;
    pub(crate) use super::gauges::{Gauges, Reading};
    pub(crate) use super::leg::{Halt, Leg, ShardReport};
    pub(crate) use super::limits::{Limit, next_limit};
    pub(crate) use super::replay::Replayed;
    pub(crate) use super::requests::Requests;
    pub(crate) use super::shard::{Ear, Gatherer, REFUSED_PAUSE, Showing, Work};
    pub(crate) use super::throttle::Throttle;
    pub(crate) use super::until::{Standing, Watch};
}
