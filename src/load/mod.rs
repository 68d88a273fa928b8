//! The real engine: a coordinator and S shards that drive real servers.
//!
//! Here, in `pace` and in `mock` the runtime is used, and here sockets are opened. What to send and when is `plan`'s
//! and `workload`'s; what the bytes mean is `exchange`'s.

mod agenda;
mod assemble;
mod connection;
mod coordinator;
mod deadlines;
pub mod fetch;
mod gauges;
mod leg;
mod permits;
pub mod probe;
mod requests;
mod shard;
mod spool;
mod target;
pub mod tls;
mod transport;

pub use coordinator::{LoadEngine, Setup};
pub use spool::{Spool, SpoolFiles, Spooled};
pub use target::{Route, RouteError, RouteParts, Target, TlsRoute};
