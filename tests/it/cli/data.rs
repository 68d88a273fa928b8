//! Data sets on the command line: what is left out, by whose rules, and what `lint` says of a file.

use std::fs;

use super::Dir;

const SHAREGPT: &str = r#"[
{"id":"a","conversations":[{"from":"gpt","value":"as I said before"},{"from":"human","value":"why is the sky blue today"},{"from":"gpt","value":"because of the way light scatters"}]},
{"id":"b","conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"hello to you as well"}]}
]"#;

#[test]
fn prompts_are_chosen_by_length_and_by_the_rules_of_vllm() {
    let dir = Dir::new();
    fs::write(dir.path("s.json"), SHAREGPT).unwrap();
    let shown = |command: &str, more: &str| {
        let said =
            dir.tokload(&format!("{command} --dataset-path s.json {more} --disable-shuffle --dry-run"));
        assert_eq!(said.code, 0, "{said:?}");
        said
    };
    let ours = shown("run --base-url h:1 -c 1", "");
    assert!(ours.err.contains("sharegpt data: 2 prompts\n"), "{}", ours.err);
    assert!(
        ours.out.contains("5 words, max_tokens 8: why is the sky")
            || ours.out.contains("why is the sky blue today"),
        "{}",
        ours.out
    );
    // The first two turns, and "hi" is below four tokens.
    for (command, more) in [
        ("run --base-url h:1 -c 1", "--compat vllm"),
        ("bench serve --dataset-name sharegpt --max-concurrency 1 --request-rate inf", ""),
    ] {
        let theirs = shown(command, more);
        assert!(theirs.err.contains("1 prompt; left out: 1 filtered prompt"), "{}", theirs.err);
        assert!(theirs.err.contains("by the rules of vLLM"), "{}", theirs.err);
        assert!(theirs.out.contains("as I said before"), "{}", theirs.out);
        assert!(theirs.out.contains("compat = \"vllm\""), "{}", theirs.out);
    }
    let long = shown("run --base-url h:1 -c 1", "--dataset-lengths prompt:4-");
    assert!(long.err.contains("1 prompt; left out: 1 filtered prompt"), "{}", long.err);
    assert!(long.out.contains("prompt_min = 4"), "{}", long.out);
    for (options, wrong) in [
        ("--dataset-lengths prompt:9-4", "nothing lies in a range"),
        ("--dataset-lengths prompts:4-", "'prompts:4-' is no range of lengths"),
        ("--dataset-lengths prompt:4", "'prompt:4' is no range of lengths"),
        ("--dataset-lengths prompt:a-b", "'prompt:a-b' is no range of lengths"),
        ("--dataset-lengths prompt:9000-", "nothing is left to send"),
        ("--compat sglang", "there are no rules of 'sglang'"),
    ] {
        dir.tokload(&format!("run --base-url h:1 -c 1 --dataset-path s.json {options} --dry-run"))
            .refuses(2, &[wrong]);
    }
    for option in ["--dataset-lengths prompt:4-", "--compat vllm"] {
        dir.tokload(&format!("run --base-url h:1 {option}"))
            .refuses(2, &["says how a file of prompts is read"]);
    }
}

#[test]
fn lint_opens_the_file_and_says_what_it_holds_and_what_is_wrong() {
    let dir = Dir::new();
    fs::write(dir.path("s.json"), SHAREGPT).unwrap();
    fs::write(
        dir.path("t.jsonl"),
        "{\"timestamp\":0,\"input_length\":9,\"output_length\":2}\n{\"timestamp\":x}\n",
    )
    .unwrap();
    let said = dir.tokload("lint --base-url http://127.0.0.1:1 -c 1 --num-prompts 9 --dataset-path s.json");
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("sharegpt data: 2 prompts"), "{}", said.err);
    assert!(said.err.contains("9 requests take 2 prompts, again and again"), "{}", said.err);
    let line = "lint --base-url http://127.0.0.1:1 --trace t.jsonl";
    dir.tokload(line).refuses(2, &["--trace t.jsonl: ", "t.jsonl:2"]);
    let skipped = dir.tokload(&format!("{line} --trace-errors skip"));
    assert!(
        skipped.err.contains("mooncake trace: 1 request") && skipped.err.contains("left out: t.jsonl:2"),
        "{}",
        skipped.err
    );
    dir.tokload("lint --base-url http://127.0.0.1:1 -c 1 --dataset-path none.json")
        .refuses(2, &["none.json"]);
}

#[test]
fn data_sets_known_by_name_are_refused_with_where_their_files_are() {
    let dir = Dir::new();
    for (name, where_to) in [
        ("sharegpt", "ShareGPT_V3"),
        ("burstgpt", "HPMLL/BurstGPT"),
        ("dolly", "databricks-dolly-15k"),
        ("sonnet", "sonnet.txt"),
        ("hf", "huggingface.co/datasets"),
        ("spec_bench", "hemingkx/Spec-Bench"),
        ("custom", "--dataset-path FILE"),
        ("random-mm", "--random-input-len"),
        ("nonsense", "prefix_repetition"),
    ] {
        dir.tokload(&format!("run --base-url h:1 --dataset-name {name} --dry-run"))
            .refuses(2, &["--dataset-name", where_to]);
    }
}

#[test]
fn a_parquet_file_is_told_by_its_beginning() {
    let dir = Dir::new();
    fs::write(dir.path("a.parquet"), b"PAR1 and nothing more").unwrap();
    let said = dir.tokload("run --base-url h:1 -c 1 --dataset-path a.parquet --dry-run");
    let wanted =
        if cfg!(feature = "parquet") { "Parquet" } else { "cargo build --release --features parquet" };
    said.refuses(2, &["--dataset-path a.parquet: ", wanted]);
}
