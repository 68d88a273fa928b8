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

#[test]
fn what_holds_no_requests_is_told_for_what_it_is() {
    let dir = Dir::new();
    fs::write(dir.path("empty.json"), " \n").unwrap();
    fs::write(dir.path("quote.csv"), "prompt\n\"one\ntwo\n").unwrap();
    let line = "run --base-url h:1 -c 1 --dry-run";
    for (more, said) in [
        ("--dataset-path /dev/zero", "/dev/zero: is a device or a pipe"),
        ("--trace /dev/zero", "/dev/zero: is a device or a pipe"),
        ("--dataset-path .", "is a folder"),
        ("--dataset-path none.json", "No such file"),
        ("--dataset-path empty.json --dataset-name weka", "the file is empty"),
        ("--trace empty.json --trace-format weka", "the file is empty"),
        ("--dataset-path quote.csv", "quote.csv:2: the file ends inside of this record"),
        ("--multi-turn --replies recorded", "recorded are those of a data set"),
        ("--header X-Id={{index", "{{index without }}"),
        ("--config /dev/zero", "is longer than 64 MiB"),
    ] {
        dir.tokload(&format!("{line} {more}")).refuses(2, &[said]);
    }
}

#[test]
fn bounds_on_turns_are_taken_for_a_file_of_conversations() {
    let dir = Dir::new();
    fs::write(dir.path("c.jsonl"), "{\"turns\":[\"1\",\"2\",\"3\"]}\n{\"turns\":[\"x\"]}\n").unwrap();
    let line = "run --base-url h:1 -c 1 --dataset-path c.jsonl --dry-run --multi-turn-max-turns 2 --multi-turn-min-turns 2";
    let said = dir.tokload(line);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(
        said.err.contains("1 session of 2 turns; left out: 1 later turn, 1 filtered prompt"),
        "{}",
        said.err
    );
    assert!(said.out.contains("turns_max = 2"), "{}", said.out);
    let agents = format!("{}/tests/traces/agents.json", env!("CARGO_MANIFEST_DIR"));
    dir.tokload(&format!(
        "run --base-url h:1 -c 1 --dataset-path {agents} --dataset-name weka --multi-turn-max-turns 2"
    ))
    .refuses(2, &["sessions of agents are sent whole"]);
    let profile =
        format!("profile -m m -u h:1 --input-file {agents} --custom-dataset-type weka_trace --dry-run");
    let said = dir.tokload(&profile);
    assert!(said.code == 0 && said.err.contains("weka data: 3 sessions"), "{said:?}");
}

#[test]
fn pauses_of_a_trace_of_agents_are_cut_left_out_or_stretched() {
    let dir = Dir::new();
    let agents = format!("{}/tests/traces/agents.json", env!("CARGO_MANIFEST_DIR"));
    let turns = |more: &str| {
        let said = dir.tokload(&format!("run --base-url h:1 --trace {agents} --dry-run {more}"));
        assert_eq!(said.code, 0, "{more}: {said:?}");
        let lines = said.out.lines().filter_map(|line| line.strip_prefix("#   turn 2 "));
        lines.map(|line| line.split(',').next().unwrap().to_owned()).next().unwrap()
    };
    // It was sent 3 s after the first, whose answer took one; the think time is 2 s.
    assert_eq!(turns(""), "at 3.000000 s");
    assert_eq!(turns("--session-delay-ratio 0.5"), "at 1.500000 s");
    assert_eq!(turns("--timing-strategy think-only --session-delay-ratio 0.5"), "1s after the answer");
    assert_eq!(turns("--inter-turn-delay-cap-seconds 0.5"), "500ms after the answer");
    assert_eq!(turns("--ignore-trace-delays"), "at once after the answer");
    let refused = |more: &str, said: &str| {
        dir.tokload(&format!("run --base-url h:1 --dry-run {more}")).refuses(2, &[said]);
    };
    let cap = "--inter-turn-delay-cap-seconds 1";
    refused(
        &format!("--trace {agents} --timing-strategy original {cap}"),
        "nothing pauses at recorded times",
    );
    let plain = format!("{}/tests/traces/azure_llm_2023.csv", env!("CARGO_MANIFEST_DIR"));
    refused(&format!("--trace {plain} {cap}"), "it has no sessions with pauses");
    refused(cap, "says how conversations go, and there are none");
}
