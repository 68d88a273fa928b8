//! Asking the processor for memory before it is needed.
#![expect(unsafe_code, reason = "the instruction has no safe wrapper in the standard library")]

/// Bytes that the caches of all processors we know move at once, or half of them.
const LINE: usize = 64;

/// Has the memory of `value` itself (nothing that it points to) brought into the nearest cache, and returns at once.
///
/// What a thousand streams keep does not fit the nearest caches, and between two events of one stream the kernel has
/// filled them anyway: what is asked for before a system call is there after it. Does nothing where the processor is
/// none of those known.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    let bytes = size_of_val(value);
    for at in (0..bytes).step_by(LINE) {
        line(start.wrapping_add(at));
    }
    // It need not begin where a line does.
    if bytes > 1 {
        line(start.wrapping_add(bytes - 1));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn line(at: *const u8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint, which neither faults nor changes anything, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn line(at: *const u8) {
    // SAFETY: a hint, which neither faults nor changes anything, whatever the address.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, readonly, preserves_flags));
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
fn line(_at: *const u8) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_size_may_be_asked_for() {
        prefetch(&());
        prefetch(&[0_u8; 1000]);
        prefetch::<[u64]>(&[]);
        prefetch("text");
    }
}
