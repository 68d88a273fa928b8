//! A stand-in for NVIDIA's `libnvidia-ml.so.1`, for machines without a GPU: three GPUs, of which the second lacks counters
//! and the third is lost. A test compiles this one file as a C library and loads it in the place of the real one.
//!
//! Energy grows by 50 J with each question, and what went over NVLink by 4 MiB, so that two readings differ by a known amount.

#![allow(non_snake_case, reason = "the names are NVIDIA's")]

use std::ffi::{c_char, c_int, c_longlong, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

type Device = *mut c_void;

const SUCCESS: c_int = 0;
const INVALID_ARGUMENT: c_int = 2;
const NOT_SUPPORTED: c_int = 3;
const GPU_IS_LOST: c_int = 15;

static ENERGY_MJ: AtomicU64 = AtomicU64::new(1_000_000);
/// What was sent over all links; what was received is a third of it.
static NVLINK_KIB: AtomicU64 = AtomicU64::new(1 << 40);
const NVLINK_SENT: c_uint = 138;
const NVLINK_RECEIVED: c_uint = 139;
const UNSIGNED_LONG_LONG: c_uint = 3;

#[repr(C)]
pub struct Utilization {
    gpu: c_uint,
    memory: c_uint,
}

#[repr(C)]
pub struct Memory {
    version: c_uint,
    total: c_ulonglong,
    reserved: c_ulonglong,
    free: c_ulonglong,
    used: c_ulonglong,
}

#[repr(C)]
pub struct FieldValue {
    field: c_uint,
    scope: c_uint,
    timestamp: c_longlong,
    latency_us: c_longlong,
    kind: c_uint,
    answer: c_int,
    value: c_ulonglong,
}

/// Numbers stand in for handles, from 1 on.
fn number(device: Device) -> usize {
    device as usize - 1
}

/// Writes `value` for the first GPU; what the second tells is `second`.
unsafe fn tell<T>(device: Device, place: *mut T, first: T, second: Option<T>) -> c_int {
    let value = match number(device) {
        0 => Some(first),
        1 => second,
        _ => return GPU_IS_LOST,
    };
    let Some(value) = value else { return NOT_SUPPORTED };
    unsafe { place.write(value) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_int {
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_int {
    unsafe { count.write(3) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut Device) -> c_int {
    if index >= 3 {
        return INVALID_ARGUMENT;
    }
    unsafe { device.write((index as usize + 1) as Device) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetName(device: Device, name: *mut c_char, length: c_uint) -> c_int {
    let text = b"Stand-in 9000\0";
    if number(device) > 1 || (length as usize) < text.len() {
        return GPU_IS_LOST;
    }
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr().cast(), name, text.len()) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetUtilizationRates(device: Device, rates: *mut Utilization) -> c_int {
    let of = |gpu| Utilization { gpu, memory: 10 };
    unsafe { tell(device, rates, of(80), Some(of(40))) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetMemoryInfo_v2(device: Device, memory: *mut Memory) -> c_int {
    let all = Memory { version: 0, total: 100 << 30, reserved: 0, free: 36 << 30, used: 64 << 30 };
    unsafe { tell(device, memory, all, None) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPowerUsage(device: Device, milliwatts: *mut c_uint) -> c_int {
    unsafe { tell(device, milliwatts, 500_000, Some(250_000)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTotalEnergyConsumption(device: Device, mj: *mut c_ulonglong) -> c_int {
    let energy = if number(device) == 0 { ENERGY_MJ.fetch_add(50_000, Ordering::Relaxed) } else { 0 };
    unsafe { tell(device, mj, energy, None) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetTemperature(device: Device, _: c_uint, celsius: *mut c_uint) -> c_int {
    unsafe { tell(device, celsius, 71, Some(45)) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetClockInfo(device: Device, which: c_uint, mhz: *mut c_uint) -> c_int {
    // 1 is that of the multiprocessors.
    unsafe { tell(device, mhz, if which == 1 { 1_980 } else { 3_201 }, None) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetPcieThroughput(device: Device, which: c_uint, kb: *mut c_uint) -> c_int {
    // 0 is what it sent.
    unsafe { tell(device, kb, if which == 0 { 2_000 } else { 3_000 }, None) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetCurrentClocksThrottleReasons(device: Device, bits: *mut c_ulonglong) -> c_int {
    // Idle, and held by the power cap.
    unsafe { tell(device, bits, 0x05, None) }
}

/// Answers for all links together alone; the second GPU has none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetFieldValues(device: Device, count: c_int, fields: *mut FieldValue) -> c_int {
    if number(device) > 1 {
        return GPU_IS_LOST;
    }
    let fields = unsafe { std::slice::from_raw_parts_mut(fields, count as usize) };
    for field in fields {
        field.kind = UNSIGNED_LONG_LONG;
        let has_links = number(device) == 0;
        (field.answer, field.value) = match field.field {
            _ if field.scope != c_uint::MAX => (INVALID_ARGUMENT, 0),
            NVLINK_SENT if has_links => (SUCCESS, NVLINK_KIB.fetch_add(3 << 10, Ordering::Relaxed)),
            NVLINK_RECEIVED if has_links => (SUCCESS, NVLINK_KIB.load(Ordering::Relaxed) / 3),
            _ => (NOT_SUPPORTED, 0),
        };
    }
    SUCCESS
}
