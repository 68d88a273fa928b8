//! The operating system: clocks, readiness, sockets, cores, limits, signals, and every line of unsafe code.
//!
//! One purpose per file, a safe function on the outside. Nothing here knows requests, plans or files.

pub mod affinity;
pub mod clock;
pub mod cpu;
pub mod epoll;
pub mod host;
pub mod limits;
pub mod listener;
pub mod nvlink;
pub mod prefetch;
pub mod receive;
mod segment;
pub mod signals;
pub mod socket;
pub mod tcp_info;
pub mod timerfd;
pub mod usage;
pub mod waker;
