//! Cores that the process may use, and pinning a thread to one.

/// Numbers of the cores in the calling thread's mask, ascending. Ask before pinning: a pinned thread sees only its
/// own. Empty if the system does not say.
#[must_use]
pub fn usable_cores() -> Vec<u32> {
    let ids = core_affinity::get_core_ids().unwrap_or_default();
    let mut cores: Vec<u32> = ids.into_iter().filter_map(|id| u32::try_from(id.id).ok()).collect();
    cores.sort_unstable();
    cores
}

/// Pins the calling thread to `core`; `false` if the system refused.
#[must_use]
pub fn pin_to(core: u32) -> bool {
    // A number outside the kernel's set is not refused below but indexed with, which aborts the process.
    if i64::from(core) >= i64::from(libc::CPU_SETSIZE) {
        return false;
    }
    core_affinity::set_for_current(core_affinity::CoreId { id: core as usize })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_cannot_be_is_refused() {
        assert!(!pin_to(1024));
        assert!(!pin_to(u32::MAX));
    }
}
