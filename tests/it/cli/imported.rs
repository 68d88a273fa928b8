//! Results of other tools from the command line: imported, then shown, compared and checked as runs of our own are.

use std::fs;
use std::path::Path;

use super::Dir;

const FILES: [&str; 8] = [
    "batched-bench.jsonl",
    "batched-bench.md",
    "llama-bench.csv",
    "llama-bench.json",
    "llama-bench.jsonl",
    "llama-bench.md",
    "vllm.json",
    "vllm-detailed.json",
];

#[test]
fn every_import_is_shown_compared_and_checked() {
    let dir = Dir::new();
    let fixtures = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/imports"));
    for file in FILES {
        fs::copy(fixtures.join(file), dir.path(file)).unwrap();
        let said = dir.tokload(&format!("import {file} --output-file {file}.run --force"));
        assert_eq!(said.code, 0, "{file}: {said:?}");
        for form in ["table", "markdown", "csv", "html", "json"] {
            let said = dir.tokload(&format!("report {file}.run --format {form}"));
            assert_eq!(said.code, 0, "{file} {form}: {said:?}");
            for none in [">NaN", " NaN", ",NaN", "inf "] {
                assert!(!said.out.contains(none), "{file} {form}: {none}");
            }
        }
        let said = dir.tokload(&format!("compare {file}.run {file}.run"));
        assert!(said.code == 0 && !said.out.contains("NaN"), "{file}: {said:?}");
        let said =
            dir.tokload(&format!("check {file}.run --baseline {file}.run --max-degradation out_tok_s=0.1"));
        assert!(said.code == 0 || said.code == 2, "{file}: {said:?}");
        // As it is it is no run, and the next step is named.
        dir.tokload(&format!("report {file}")).refuses(2, &["a result of", "tokload import"]);
        dir.tokload(&format!("compare {file} {file}")).refuses(2, &["a result of", "tokload import"]);
    }
    let shown = dir.tokload("report batched-bench.md.run").out;
    assert!(shown.contains("S_TG t/s") && shown.contains("as printed"), "{shown}");
    dir.tokload("import vllm.json --from llama-bench --output-file x.json").refuses(2, &["n_prompt"]);
    dir.tokload("import vllm.json --from llamabench --output-file x.json")
        .refuses(2, &["did you mean llama-bench?"]);
}
