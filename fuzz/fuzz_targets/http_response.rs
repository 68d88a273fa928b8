#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tokload::wire::http::fuzz_http_response(bytes));
