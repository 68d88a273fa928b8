#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tokload::wire::sse::fuzz_sse(bytes));
