#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tokload::exchange::fuzz_exchange(bytes));
