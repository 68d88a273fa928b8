#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tokload::api::fuzz_json_scan(bytes));
