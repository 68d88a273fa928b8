//! What a GPU moves over its NVLinks, by NVIDIA's library: the sum of all links, which the library gives for a scope that its
//! wrapper cannot ask for.
#![expect(unsafe_code, reason = "the wrapper asks for the first link alone")]

use std::mem;
use std::os::raw::{c_int, c_uint};

use nvml_wrapper::Device;
use nvml_wrapper_sys::bindings as nvml;
use nvml_wrapper_sys::bindings::field_id::{
    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX,
};

/// Data that `device` has sent and received over all of its links together, without what the protocol adds, bytes: a counter
/// that begins anew with the driver. `None` where the GPU has no such links, or it, its driver or its library does not count
/// both directions.
#[must_use]
pub fn moved_bytes(device: &Device<'_>) -> Option<u64> {
    let ask = device.nvml().lib().nvmlDeviceGetFieldValues.as_ref().ok()?;
    let mut fields =
        [NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX].map(of_all_links);
    // SAFETY: the handle is that of a device of this library, which `device` keeps open, and pointer and count are those of
    // `fields`, which outlives the call.
    let answer = unsafe { ask(device.handle(), fields.len() as c_int, fields.as_mut_ptr()) };
    let kib: u64 = match answer {
        nvml::nvmlReturn_enum_NVML_SUCCESS => fields.iter().map(value).sum::<Option<u64>>()?,
        _ => return None,
    };
    kib.checked_mul(KIB)
}

/// The question for the sum of a counter over all links. What is left unanswered is an error.
fn of_all_links(id: u32) -> nvml::nvmlFieldValue_t {
    // SAFETY: all-zero bytes are a valid `nvmlFieldValue_t`: it holds numbers only.
    let zeroed: nvml::nvmlFieldValue_t = unsafe { mem::zeroed() };
    nvml::nvmlFieldValue_t {
        fieldId: id,
        scopeId: c_uint::MAX,
        nvmlReturn: nvml::nvmlReturn_enum_NVML_ERROR_UNKNOWN,
        ..zeroed
    }
}

fn value(field: &nvml::nvmlFieldValue_t) -> Option<u64> {
    if field.nvmlReturn != nvml::nvmlReturn_enum_NVML_SUCCESS {
        return None;
    }
    let value = field.value;
    // SAFETY: each arm of the union is a number, all of its bytes were set to zero before the library wrote some of them, and
    // any bytes are a number.
    unsafe {
        match field.valueType {
            nvml::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT => Some(u64::from(value.uiVal)),
            nvml::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG => Some(value.ulVal),
            nvml::nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_LONG_LONG => Some(value.ullVal),
            _ => None,
        }
    }
}

const KIB: u64 = 1024;
