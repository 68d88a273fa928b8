//! Asking the processor for memory before it is needed.
#![expect(unsafe_code, reason = "the instruction has no safe wrapper in the standard library")]

/// Has the line of the cache in which `value` begins (64 bytes with all processors we know, or twice that) brought into the
/// nearest cache, and returns at once. What is to come with it is laid out to lie in that line.
///
/// What a thousand streams keep does not fit the nearest caches, and between two events of one stream the kernel has
/// filled them anyway: what is asked for before a system call is there after it. Does nothing where the processor is
/// none of those known.
#[inline]
pub fn prefetch<T>(value: &T) {
    line(std::ptr::from_ref(value).cast());
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
