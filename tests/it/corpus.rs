//! Replays the seed corpora of the fuzz targets as ordinary tests, so that the stable toolchain keeps their laws.

use std::fs;
use std::path::Path;

fn replay(target: &str, law: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let mut files = 0;
    for entry in fs::read_dir(&folder).expect("a corpus folder") {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        println!("{}", path.display());
        law(&bytes);
        files += 1;
    }
    assert!(files >= 10, "the corpus of {target} is gone: {files} files");
}

#[test]
fn exchange_corpus_keeps_its_law() {
    replay("exchange", tokload::exchange::fuzz_exchange);
}

#[test]
fn json_scan_corpus_keeps_its_law() {
    replay("json_scan", tokload::api::fuzz_json_scan);
}

#[test]
fn sse_corpus_keeps_its_law() {
    replay("sse", tokload::wire::sse::fuzz_sse);
}

#[test]
fn http_response_corpus_keeps_its_law() {
    replay("http_response", tokload::wire::http::fuzz_http_response);
}

#[test]
fn trace_corpus_keeps_its_law() {
    replay("trace", tokload::workload::trace::fuzz_trace);
}

#[test]
fn prometheus_corpus_keeps_its_law() {
    replay("prometheus", tokload::telemetry::prometheus::fuzz_prometheus);
}
