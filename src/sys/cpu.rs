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

fn nanos(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    u64::try_from(t.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(t.tv_nsec).unwrap_or(0)
}
