#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tokload::telemetry::prometheus::fuzz_prometheus(bytes));
