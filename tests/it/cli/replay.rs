//! Traces from the command line: shown before, sent, and stored.

use tokload::mock::Faults;

use super::{Dir, json, mock, run, url};

fn sample(name: &str) -> String {
    format!("{}/tests/traces/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_dry_run_shows_each_request_with_its_time_and_lengths() {
    let dir = Dir::new();
    let of = |name: &str, more: &str| {
        let said = dir.tokload(&format!("run --base-url h:1 --trace {} --dry-run {more}", sample(name)));
        assert_eq!(said.code, 0, "{said:?}");
        let lines = said.out.lines().filter_map(|line| line.strip_prefix("# request "));
        let lines: Vec<String> = lines.map(|line| line.split(':').next().unwrap().to_owned()).collect();
        (lines, said.err)
    };
    let (lines, said) = of("azure_llm_2023.csv", "");
    assert_eq!(
        lines,
        [
            "0 at 0.000000 s, 377 words, max_tokens 45",
            "1 at 0.250610 s, 1213 words, max_tokens 10",
            "2 at 0.319410 s, 99 words, max_tokens 129",
            "3 at 1.726533 s, 4036 words, max_tokens 13",
            "4 at 1.726533 s, 4036 words, max_tokens 16",
            "5 at 3.319410 s, 515 words, max_tokens 65",
        ]
    );
    assert_eq!(said, "azure-llm trace: 6 requests over 3.319 s, 10276 prompt tokens\n");
    let (lines, said) = of("azure_lmm_2025.csv", "--trace-speedup 2,4");
    assert_eq!((lines.len(), lines[4].as_str()), (6, "1 at 0.200000 s, 1800 words, max_tokens 45"));
    assert!(said.ends_with("sent with changes: 2 requests with images left out\n"), "{said}");
    let (_, said) = of("aiperf_multi_turn.jsonl", "--trace-errors skip");
    assert!(said.contains("; left out: ") && said.contains("3 requests without a time"), "{said}");
}

/// aiperf's own defaults are those of prompts that it makes up: a trace says itself what is sent.
#[test]
fn a_trace_is_taken_by_aiperfs_command_line() {
    let line = format!(
        "profile -m mock -u 127.0.0.1:9 --streaming --input-file {} --custom-dataset-type mooncake_trace --fixed-schedule \
         --dry-run",
        sample("mooncake.jsonl")
    );
    let said = Dir::new().tokload(&line);
    assert!(said.code == 0 && said.out.contains("at 0.000000 s"), "{said:?}");
}

#[test]
fn a_share_says_which_part_of_the_trace_it_sends() {
    let dir = Dir::new();
    // Six requests over four shares: 0 and 4, 1 and 5, 2, 3.
    for (index, sent) in [(1, 2), (2, 2), (3, 1), (4, 1)] {
        let said = dir.tokload(&format!(
            "simulate --ttft 1 --itl 1 --trace {} --share {index}/4 --seed 1 --output-file r.json",
            sample("azure_llm_2023.csv")
        ));
        let table = said.shows(0).split_whitespace().collect::<Vec<_>>().join(" ");
        let expected = format!("trace: 6 of 6 records are sent, {sent} of them by share {index} of 4");
        assert!(table.contains(&expected), "{table}");
        assert_eq!(json(&dir.path(&format!("r.share-{index}-of-4.json")))["levels"][0]["counts"]["ok"], sent);
    }
}

#[test]
fn a_trace_is_sent_and_what_was_left_out_is_stored() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let options = format!("--trace {} --trace-speedup 1000 --output-file r.json", sample("burstgpt_v1.csv"));
    let line = run(&url(&mock), &options).replacen("--random-input-len 8 ", "", 1);
    let said = dir.tokload(&line);
    assert!(said.shows(0).contains("trace x1000"), "{said:?}");
    assert!(said.out.contains("trace: 4 of 5 records are sent; left out: 1 failed calls"), "{said:?}");
    let stored = json(&dir.path("r.json"));
    let trace = &stored["trace"];
    assert_eq!((&trace["requests"], &trace["failed"], &trace["records"]), (&4.into(), &1.into(), &5.into()));
    assert_eq!(stored["levels"][0]["counts"]["ok"], 4);
    assert_eq!(stored["levels"][0]["tokens"]["output"], 22 + 310 + 95 + 140);
    assert_eq!(stored["plan"]["workload"]["trace"]["file"], sample("burstgpt_v1.csv"));
    let bodies = |file: &str| json(&dir.path(file))["levels"][0]["bodies"].as_str().unwrap().to_owned();
    let seed = &stored["plan"]["seed"];
    for (file, more, is_same) in
        [("s.json", format!("--seed {seed}"), true), ("t.json", "--seed 1".to_owned(), false)]
    {
        let again = line.replacen("r.json", file, 1);
        dir.tokload(&format!("{again} {more} --workers 3")).shows(0);
        assert_eq!(bodies(file) == bodies("r.json"), is_same, "{more}");
    }
}

#[test]
fn a_trace_that_cannot_be_read_is_bad_input_with_its_place() {
    let dir = Dir::new();
    let trace = |file: &str| dir.tokload(&format!("run --base-url h:1 --dry-run --trace {file}"));
    trace("nowhere.jsonl").refuses(2, &["--trace nowhere.jsonl: ", "readable"]);
    std::fs::write(dir.path("t.jsonl"), "{\"timestamp\":0,\"input_length\":1,\"output_length\":1}\nx\n")
        .unwrap();
    trace("t.jsonl").refuses(2, &["t.jsonl:2: ", "--trace-errors skip"]);
    trace(&sample("sharegpt.json")).refuses(2, &["none of its requests has a time"]);
    let chats = format!("{} --trace-errors skip --backend openai", sample("mooncake_extended.jsonl"));
    trace(&chats).refuses(2, &["1 of its requests are chats", "--backend openai-chat"]);
}

#[test]
fn a_data_set_is_sent_and_what_comes_again_is_said() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let options =
        format!("--dataset-path {} -c 2 --num-prompts 10 --output-file r.json", sample("sharegpt.json"));
    let line = run(&url(&mock), &options).replacen("--random-input-len 8 ", "", 1).replacen(
        "--random-output-len 5 ",
        "",
        1,
    );
    let said = dir.tokload(&line);
    said.shows(0);
    assert!(said.err.contains("sharegpt data: 2 prompts") && said.err.contains("are estimated"), "{said:?}");
    assert!(said.err.contains("warning: 10 requests take 2 prompts"), "{said:?}");
    assert!(said.numbers().contains("prompts came again: 10 requests of a level took 2"), "{said:?}");
    let stored = json(&dir.path("r.json"));
    assert_eq!((&stored["data"]["prompts"], &stored["levels"][0]["counts"]["ok"]), (&2.into(), &10.into()));
    let shown = dir.tokload(&format!("{line} --dry-run --force"));
    assert_eq!(shown.out.matches("# request ").count(), 5, "{shown:?}");
    dir.tokload("run --base-url h:1 --dataset-path nowhere.txt").refuses(2, &["--dataset-path nowhere.txt"]);
}
