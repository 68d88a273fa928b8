//! Limits of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit on open descriptors to the hard one and gives the limit in force; `u64::MAX` if there is
/// none.
pub fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // A refusal leaves the old limit in force, which is then what is reported.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Makes room for `count` descriptors in the kernel's table of this process, as far as the limit allows.
///
/// The table doubles when it is full, and in a process with several threads the kernel then waits until every CPU has
/// seen the new one: 4 to 24 ms were measured at the 256th, 512th, 1024th descriptor, in the middle of a connect.
pub fn reserve_descriptors(count: u64) {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let highest = count.min(limit.saturating_sub(1));
    let Ok(highest) = i32::try_from(highest) else { return };
    // The copy's number is at least `highest`, for which the table must grow; closing it leaves the table as it is.
    // Where that fails (no such number free) the table grows later, which costs time and nothing else.
    let Ok(any) = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC) else { return };
    drop(rustix::io::fcntl_dupfd_cloexec(any, highest));
}
