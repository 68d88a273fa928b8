//! Processor time.

use rustix::time::{ClockId, clock_gettime};

/// CPU time used by the calling thread so far, ns (user and system).
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    nanos(ClockId::ThreadCPUTime)
}

/// CPU time used by the whole process so far, ns (user and system).
#[must_use]
pub fn process_cpu_ns() -> u64 {
    nanos(ClockId::ProcessCPUTime)
}

/// Puts the calling thread behind all others: it runs where a processor is free, or soon will be. Where that is refused it
/// stays where it is.
pub fn go_last() {
    // Linux has a nice value for each thread, and takes the calling one for 0.
    let _ = rustix::process::setpriority_process(None, NICEST);
}

const NICEST: i32 = 19;

fn nanos(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}
