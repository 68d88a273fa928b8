//! `bench serve`: vLLM's block in the place of our table, and its files.

use serde_json::Value;

use super::{Dir, json, json_lines, mock, run, url};
use tokload::mock::{Answer, Fault, Faults, When};

/// The number behind `label` in a block.
fn number(block: &str, label: &str) -> f64 {
    let line =
        block.lines().find(|line| line.starts_with(label)).unwrap_or_else(|| panic!("{label}: {block}"));
    line[label.len()..].trim().parse().unwrap()
}

const SERVE: &str = "--num-prompts 8 --random-input-len 8 --random-output-len 5";

#[test]
fn bench_serve_prints_vllms_block_and_saves_its_file() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let said = dir.tokload(&format!(
        "bench serve --base-url {} {SERVE} --max-concurrency 2 --percentile-metrics ttft,itl,e2el \
         --metric-percentiles 50,99.9 --goodput ttft:60000 --save-result --save-detailed --result-dir out \
         --result-filename a.json --metadata tp=2 --label x",
        url(&mock)
    ));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("============ Serving Benchmark Result ============\n"), "{said:?}");
    for (label, expected) in [
        ("Successful requests:", 8.0),
        ("Failed requests:", 0.0),
        ("Maximum request concurrency:", 2.0),
        ("Total input tokens:", 64.0),
        ("Total generated tokens:", 40.0),
        ("Peak concurrent requests:", 2.0),
    ] {
        assert_eq!(number(&said.out, label), expected, "{}", said.out);
    }
    // The mock's gaps are 1 ms, and its first token comes after 5 ms.
    assert!((0.5..50.0).contains(&number(&said.out, "P99.9 ITL (ms):")), "{}", said.out);
    assert!(number(&said.out, "P50 TTFT (ms):") >= 5.0);
    assert!(!said.out.contains("TPOT") && !said.out.contains("E2E ms"), "{}", said.out);
    assert!(said.err.contains("vLLM's definitions") && said.err.contains("role"), "{}", said.err);

    let saved = json(&dir.path("out/a.json"));
    for (key, expected) in [
        ("backend", "openai"),
        ("completed", "8"),
        ("label", "x"),
        ("max_concurrency", "2"),
        ("num_prompts", "8"),
        ("request_rate", "inf"),
        ("total_output_tokens", "40"),
        ("tp", "2"),
    ] {
        assert_eq!(
            saved[key].as_str().map_or_else(|| saved[key].to_string(), str::to_owned),
            expected,
            "{key}"
        );
    }
    let lens = |key: &str| saved[key].as_array().unwrap().len();
    assert_eq!(["input_lens", "itls", "ttfts", "errors"].map(lens), [8; 4]);
    assert!(saved["itls"].as_array().unwrap().iter().all(|gaps| gaps.as_array().unwrap().len() == 4));
    // What is printed is what is saved, and what the records give again.
    let shown = number(&said.out, "Mean E2EL (ms):");
    assert!((saved["mean_e2el_ms"].as_f64().unwrap() - shown).abs() <= 0.005);
    let run_file = said.out.lines().rev().find_map(|line| line.strip_prefix("saved out/tokload-")).unwrap();
    let again = dir.tokload(&format!(
        "report out/tokload-{run_file} --metric-view vllm --percentile-metrics ttft,itl,e2el \
         --metric-percentiles 50,99.9"
    ));
    let block = |text: &str| {
        text.lines().take_while(|line| !line.starts_with("saved")).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(block(&again.out), block(&said.out));
}

#[test]
fn a_line_per_level_is_added_and_a_file_that_is_there_is_kept() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(&url(&mock), "-c 1,2 --num-prompts 4 --append-result --result-filename all.jsonl");
    for round in 1..=2 {
        let said = dir.tokload(&format!("{line} --output-file {round}.json"));
        said.shows(0);
        assert!(said.out.ends_with("saved all.jsonl\n"), "{}", said.out);
        let lines = json_lines(&dir.path("all.jsonl"));
        let users: Vec<&Value> = lines.iter().map(|line| &line["max_concurrency"]).collect();
        assert_eq!(users, [1, 2].repeat(round));
    }
    // `bench serve` stretches gaps, which takes nothing from the rate that was asked for.
    let serve = format!("bench serve --base-url {} {SERVE} --burstiness 0.5", url(&mock));
    let said = dir.tokload(&format!("{serve} --request-rate 200 --save-result --result-filename rate.json"));
    assert_eq!(number(&said.out, "Request rate configured (RPS):"), 200.0, "{said:?}");
    let saved = json(&dir.path("rate.json"));
    assert_eq!((saved["request_rate"].as_f64(), saved["burstiness"].as_f64()), (Some(200.0), Some(0.5)));
    // What was imported is no share of a run.
    dir.tokload("import rate.json --output-file imported.json").shows(0);
    dir.tokload("merge imported.json --output-file x.json").refuses(2, &["imported", "--share"]);
    dir.tokload(&run(&url(&mock), "-c 1 --save-result --result-filename all.jsonl")).refuses(2, &["--force"]);
    dir.tokload(&run(&url(&mock), "-c 1,2 --save-result --result-filename b.json"))
        .refuses(2, &["2 levels", "--append-result"]);
    let said = dir.tokload(&run(&url(&mock), "-c 1,2 --num-prompts 4 --save-result --no-save"));
    said.shows(0);
    let mut names = dir.names();
    names.retain(|name| name.starts_with("openai-chat-infqps-concurrency"));
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn failures_are_counted_and_what_is_wrong_with_the_run_is_not_lost() {
    let broken = Fault::Answer(Answer::Status { status: 500, retry_after_s: None });
    let one_in_four = Faults { requests: vec![(When::EveryNth(4), broken)], ..Faults::default() };
    let (dir, mock) = (Dir::new(), mock(one_in_four));
    let said = dir.tokload(&format!("bench serve --base-url {} {SERVE}", url(&mock)));
    assert_eq!(said.code, 0, "{said:?}");
    let failed = number(&said.out, "Failed requests:");
    assert_eq!(failed, 2.0, "{said:?}");
    assert_eq!(number(&said.out, "Successful requests:"), 6.0, "{said:?}");
    assert!(said.err.contains("verdict: invalid (failures"), "{said:?}");
}

#[test]
fn users_who_went_away_are_no_failures_and_are_said() {
    let dir = Dir::new();
    let line = "simulate -c 4 --num-prompts 60 --seed 3 --request-cancellation-rate 20 --request-cancellation-delay 0.2 \
                --metric-view vllm --output-file r.json";
    let said = dir.tokload(line);
    let counts = json(&dir.path("r.json"))["levels"][0]["counts"].clone();
    let (ok, cancelled) = (counts["ok"].as_u64().unwrap(), counts["cancelled"].as_u64().unwrap());
    assert!(said.code == 0 && cancelled > 2 && ok + cancelled == 60, "{said:?}");
    assert_eq!(number(&said.out, "Failed requests:"), 0.0, "{said:?}");
    assert_eq!(number(&said.out, "Successful requests:"), ok as f64, "{said:?}");
    assert!(said.err.contains(&format!("{cancelled} cancelled requests are counted neither")), "{said:?}");
    let object = dir.tokload("report r.json --metric-view vllm --format json").out;
    let object: Value = serde_json::from_str(&object).unwrap();
    assert_eq!((&object["failed"], &object["cancelled"]), (&0.into(), &cancelled.into()));
}

#[test]
fn the_object_is_had_as_json_and_our_table_on_wish() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let serve = format!("bench serve --base-url {} {SERVE} --no-save", url(&mock));
    let said = dir.tokload(&format!("{serve} --format json"));
    let object: Value = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    assert_eq!((&object["completed"], &object["request_goodput"]), (&Value::from(8), &Value::Null));
    dir.tokload(&format!("{serve} --metric-view tokload")).shows(0);
    let simulated = dir.tokload("simulate -c 2 --num-prompts 4 --metric-view vllm --no-save");
    assert_eq!(number(&simulated.out, "Successful requests:"), 4.0, "{simulated:?}");
    let presets = dir.tokload("run --preset help");
    assert!(presets.code == 0 && presets.out.contains("azure-chat: "), "{presets:?}");
}
