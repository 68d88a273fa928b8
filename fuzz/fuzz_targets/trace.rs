#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tokload::workload::trace::fuzz_trace(bytes));
