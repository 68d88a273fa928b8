//! `profile`: aiperf's tables in the place of ours, and its files; and the other forms of `--export`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Dir, json, json_lines, mock, url};
use crate::aiperf_report::assert_golden;
use tokload::mock::{Answer, Fault, Faults, When};

const SERVER: &str = "--slots 4 --base-ms 8 --seed 7 --no-progress";

/// The value of a table's first column.
fn avg(tables: &str, row: &str) -> f64 {
    let line = tables.lines().find(|line| line.contains(row)).unwrap_or_else(|| panic!("{row}: {tables}"));
    line.split('│').nth(2).unwrap().trim().replace(',', "").parse().unwrap()
}

#[test]
fn profile_prints_aiperfs_tables_and_leaves_its_files() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let profile = format!(
        "profile -m m --url {} --endpoint-type chat --streaming --concurrency 2 --isl 8 --osl 5 \
         --warmup-request-count 2 --goodput time_to_first_token:60000",
        url(&mock)
    );
    let said = dir.tokload(&format!("{profile} --request-count 8"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.starts_with("\n\n     "), "{}", said.out);
    for (row, expected) in [
        ("Request Count (requests)", 8.0),
        ("Output Sequence Length (tokens)", 5.0),
        ("Input Sequence Length (tokens)", 8.0),
        ("Request Error Rate (%)", 0.0),
        ("Total Usage Completion Tokens (tokens)", 40.0),
    ] {
        assert_eq!(avg(&said.out, row), expected, "{row}");
    }
    // The mock's first token comes after 5 ms, and its gaps are 1 ms.
    assert!(avg(&said.out, "Time to First Token (ms)") >= 5.0);
    assert!((0.1..50.0).contains(&avg(&said.out, "Inter Token Latency (ms)")));
    assert!(said.err.contains("aiperf's definitions"), "{}", said.err);
    let folder = dir.path("artifacts/m-openai-chat-concurrency2");
    let saved = json(&folder.join("profile_export_aiperf.json"));
    assert_eq!(saved["schema_version"], "1.4");
    assert_eq!(saved["request_count"]["avg"], 8.0);
    assert_eq!(saved["input_config"]["phases"][0]["concurrency"], 2);
    assert_eq!(saved["warmup_metrics"]["request_count"]["avg"], 2.0);
    assert_eq!(saved["goodput"]["avg"], saved["request_throughput"]["avg"]);
    let shown = avg(&said.out, "Request Latency (ms)");
    assert!((saved["request_latency"]["avg"].as_f64().unwrap() - shown).abs() <= 0.005);
    let lines = json_lines(&folder.join("profile_export.jsonl"));
    assert_eq!(lines.len(), 10);
    let gaps = |line: &Value| line["metrics"]["inter_chunk_latency"]["value"].as_array().unwrap().len();
    assert!(lines.iter().all(|line| gaps(line) == 4), "{lines:?}");
    let csv = fs::read_to_string(folder.join("profile_export_aiperf.csv")).unwrap();
    assert!(
        csv.contains("\r\nTime to First Token (ms),") && csv.contains("\r\nRequest Count,8.00\r\n"),
        "{csv}"
    );

    // What is printed is what the saved run gives again, and we read what we write.
    let mut saved = said.out.lines().filter_map(|line| line.strip_prefix("saved "));
    let run = saved.find(|name| name.contains("tokload-")).unwrap();
    let again = dir.tokload(&format!("report {run} --metric-view aiperf"));
    let tables = |text: &str| text[..text.rfind('┘').unwrap()].to_owned();
    assert_eq!(tables(&again.out), tables(&said.out));
    let file = folder.join("profile_export_aiperf.json").display().to_string();
    dir.tokload(&format!("import {file} --output-file again.json")).shows(0);
    let counts = &json(&dir.path("again.json"))["levels"][0]["counts"];
    assert_eq!((&counts["ok"], &counts["failed"]), (&8.into(), &0.into()));

    // aiperf overwrites; several loads have folders of their own; who wants nothing saved gets tables alone.
    let said = dir.tokload(&format!(
        "{} --request-count 4 --artifact-dir out",
        profile.replace("concurrency 2", "concurrency 1,2")
    ));
    assert_eq!(said.code, 0, "{said:?}");
    for load in ["concurrency_1", "concurrency_2"] {
        let saved = json(&dir.path("out").join(load).join("profile_export_aiperf.json"));
        assert_eq!(saved["request_count"]["avg"], 4.0);
    }
    let before = dir.names();
    let said = dir.tokload(&format!("{profile} --request-count 2 --no-save"));
    assert_eq!((said.code, avg(&said.out, "Request Count (requests)")), (0, 2.0));
    assert_eq!(dir.names(), before);
    dir.tokload(&format!("{profile} --request-count 2 --no-records")).refuses(2, &["--metric-view"]);
}

#[test]
fn failures_stand_in_a_table_of_their_own() {
    let broken = Fault::Answer(Answer::Status { status: 503, retry_after_s: None });
    let one_in_four = Faults { requests: vec![(When::EveryNth(4), broken)], ..Faults::default() };
    let (dir, mock) = (Dir::new(), mock(one_in_four));
    let said = dir.tokload(&format!(
        "profile -m m --url {} --endpoint-type chat --streaming --concurrency 1 --request-count 8 --osl 4 \
         --artifact-dir out",
        url(&mock)
    ));
    assert_eq!(said.code, 0, "{said:?}");
    let errors = said.out.split("LLM Metrics").next().unwrap();
    assert!(
        errors.contains("NVIDIA AIPerf | Error Summary") && errors.contains("Service Unavailable"),
        "{errors}"
    );
    assert_eq!(avg(&said.out, "Request Error Rate (%)"), 25.0, "{}", said.out);
    assert!(said.out.contains("Request Latency (error-adjusted)"), "{}", said.out);
    assert!(said.err.contains("verdict: invalid (failures"), "{said:?}");
    let saved = json(&dir.path("out/profile_export_aiperf.json"));
    assert_eq!(saved["error_summary"][0]["error_details"]["code"], 503);
    assert_eq!(
        (&saved["error_summary"][0]["count"], &saved["error_request_count"]["avg"]),
        (&2.into(), &2.0.into())
    );
}

#[test]
fn a_simulated_run_is_shown_to_the_letter() {
    let dir = Dir::new();
    let line = format!(
        "simulate {SERVER} --max-concurrency 6 --num-prompts 40 --random-input-len 16 --random-output-len 12 \
         --num-warmups 0 --goodput ttft:60 tpot:12 --metric-view aiperf --no-save -q"
    );
    let said = dir.tokload(&line);
    assert_eq!(said.code, 0, "{said:?}");
    assert_golden("AiperfReport.txt", &said.out);
    // Six users and nothing between their requests: five of them wait or are served until the last ones leave.
    assert!((5.0..6.0).contains(&avg(&said.out, "Effective Concurrency (requests)")));
    let json_form = dir.tokload(&format!("{line} --format json"));
    let object: Value = serde_json::from_str(&json_form.out).unwrap();
    assert_eq!(object["request_count"]["avg"], 40.0);
}

const FORMS: [&str; 6] = ["aiperf", "csv", "csv-records", "hdrlog", "hgrm", "vllm"];

#[cfg(not(feature = "parquet"))]
#[test]
fn a_form_that_is_not_built_in_is_refused_before_the_run() {
    let dir = Dir::new();
    dir.tokload("simulate -c 1 --num-prompts 1 --export parquet=x.parquet")
        .refuses(2, &["--export", "--features parquet", "csv-records"]);
    assert!(dir.names().is_empty(), "{:?}", dir.names());
}

/// All forms of the run `run` below the folder `to`, none of which has a number that is none.
fn export(dir: &Dir, run: &str, to: &str) {
    let exports: Vec<String> = FORMS.iter().map(|form| format!("--export {form}={to}/{form}")).collect();
    let said = dir.tokload(&format!("report {run} {}", exports.join(" ")));
    assert_eq!(said.code, 0, "{said:?}");
    for form in FORMS {
        clean(&dir.path(to).join(form));
    }
}

fn clean(path: &Path) {
    // A form of many files has none where there is nothing to write.
    if !path.is_file() {
        path.read_dir().into_iter().flatten().for_each(|entry| clean(&entry.unwrap().path()));
        return;
    }
    let text = fs::read_to_string(path).unwrap();
    // In the table of levels a percentile that falls on failures is infinite.
    let infinite = if path.ends_with("csv") { "infinity," } else { "inf," };
    for none in ["NaN", "nan,", infinite, "Infinity"] {
        assert!(!text.contains(none), "{}: {none}", path.display());
    }
}

#[test]
fn a_saved_run_is_written_in_every_form() {
    let dir = Dir::new();
    let sweep = format!("simulate {SERVER} --num-prompts 20 --random-output-len 6 -q");
    dir.tokload(&format!(
        "{sweep} --max-concurrency 1,3 --output-file a.json --export csv=a.csv --export aiperf=ai --export vllm=v.jsonl"
    ))
    .shows(0);
    let csv = fs::read_to_string(dir.path("a.csv")).unwrap();
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let column = |name: &str| rows[0].iter().position(|head| *head == name).unwrap();
    let stored = json(&dir.path("a.json"));
    for (row, level) in rows[1..].iter().zip(stored["levels"].as_array().unwrap()) {
        assert_eq!(row[column("ok")], "20");
        let p50: f64 = row[column("ttft_p50_ms")].parse().unwrap();
        assert_eq!(p50 * 1e6, level["distributions"]["ttft"]["quantiles"]["p50"].as_f64().unwrap());
    }
    let lines = json_lines(&dir.path("v.jsonl"));
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["max_concurrency"], 3);
    assert_eq!(lines[1]["itls"].as_array().unwrap().len(), 20);
    assert!(lines[1]["p99.9_e2el_ms"].is_number());
    assert!(dir.path("ai/concurrency_3/profile_export.jsonl").is_file());

    export(&dir, "a.json", "all");
    let records = fs::read_to_string(dir.path("all/csv-records")).unwrap();
    let heads: Vec<&str> = records.lines().next().unwrap().split(',').collect();
    assert_eq!(&heads[..3], ["level", "label", "index"]);
    let warmups = records.lines().filter(|line| line.contains(",warmup,")).count();
    assert_eq!(records.lines().count() - 1 - warmups, 40);
    let log = fs::read_to_string(dir.path("all/hdrlog")).unwrap();
    let ttft = log.lines().find(|line| line.starts_with("Tag=1-ttft,")).unwrap();
    let histogram = tokload::stats::Histogram::from_base64(ttft.split(',').nth(4).unwrap()).unwrap();
    assert_eq!(histogram.n(), 20);
    let table = fs::read_to_string(dir.path("all/hgrm/1-ttft.hgrm")).unwrap();
    assert!(table.contains("1.000000000000         20\n#[Mean"), "{table}");

    // Nothing is written over without being told, and nothing is begun that could not be written.
    dir.tokload("report a.json --export csv=a.csv").refuses(2, &["a.csv", "--force"]);
    dir.tokload("report a.json --export csv=a.csv --force").shows(0);
    dir.tokload(&format!("{sweep} --export csv=a.csv")).refuses(2, &["a.csv", "--force"]);
    dir.tokload(&format!("{sweep} --export html=x")).refuses(2, &["html", "aiperf"]);
    dir.tokload(&format!("{sweep} --export csv=x --no-save")).refuses(2, &["--export", "--no-save"]);
    dir.tokload(&format!("{sweep} --export vllm=x --no-records")).refuses(2, &["--export", "--no-records"]);
    dir.tokload(&format!("{sweep} --export csv=bare.csv --no-records --output-file bare.json")).shows(0);
    for form in ["aiperf", "csv-records", "vllm"] {
        // Whatever was asked for, what is missing is said.
        dir.tokload(&format!("report bare.json --export {form}=x")).refuses(2, &["has no records", form]);
    }
}

#[test]
fn runs_that_have_hardly_anything_are_written_too() {
    let dir = Dir::new();
    let one = format!("simulate {SERVER} --num-prompts 1 --random-output-len 1 --max-concurrency 1 -q");
    dir.tokload(&format!("{one} --output-file one.json")).shows(0);
    export(&dir, "one.json", "one");
    let shares = format!("simulate {SERVER} --num-prompts 8 --request-rate 20 --random-output-len 3 -q");
    for share in ["1/2", "2/2"] {
        dir.tokload(&format!("{shares} --share {share} --output-file s.json")).shows(0);
    }
    let merged = dir.tokload("merge s.share-1-of-2.json s.share-2-of-2.json --output-file merged.json");
    assert_eq!(merged.code, 0, "{merged:?}");
    export(&dir, "merged.json", "merged");
    assert_eq!(json_lines(&dir.path("merged/aiperf/profile_export.jsonl")).len(), 8 + warmups(&dir));

    // A server that is not there yet refuses everybody.
    let refused = dir.tokload(&format!("{one} --cold-start 100 --num-warmups 0 --output-file failed.json"));
    assert_eq!(refused.code, 1, "{refused:?}");
    export(&dir, "failed.json", "failed");
    let failed = json(&dir.path("failed/aiperf/profile_export_aiperf.json"));
    assert_eq!((&failed["request_error_rate"]["avg"], failed.get("request_latency")), (&100.0.into(), None));
}

/// Requests of the merged run's warm-up.
fn warmups(dir: &Dir) -> usize {
    let lines = json_lines(&dir.path("merged/aiperf/profile_export.jsonl"));
    lines.iter().filter(|line| line["metadata"]["benchmark_phase"] == "warmup").count()
}
