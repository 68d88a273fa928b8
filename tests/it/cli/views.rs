//! One run in the definitions of other tools, and all of them beside each other.

use serde_json::Value;

use super::Dir;

/// A run of two levels, whose server takes 50 ms to the first token and 10 ms to each further one.
fn saved(dir: &Dir) {
    let line = "simulate --ttft 50 --itl 10 --max-concurrency 1,3 --num-prompts 12 --random-output-len 6 --num-warmups 2 \
                --goodput ttft:60 tpot:12 --save-chunks --output-file run.json -q";
    dir.tokload(line).shows(0);
}

#[test]
fn every_view_of_a_tool_is_written_in_every_form() {
    let dir = Dir::new();
    saved(&dir);
    for (view, has) in [
        ("guidellm", "inter_token_latency_ms"),
        ("servebench", "attainment"),
        ("mlperf", "time_to_output_token_ns"),
        ("all", "E2E p99 ms"),
    ] {
        for (form, begins) in
            [("table", "tokload "), ("markdown", "tokload "), ("csv", ""), ("html", "<!doctype")]
        {
            let said = dir.tokload(&format!("report run.json --metric-view {view} --format {form}"));
            assert!(said.code == 0 && said.out.starts_with(begins), "{view} {form}: {said:?}");
            let text = said.out.replace("\\_", "_");
            assert!(text.contains(has), "{view} {form}: {text}");
            for none in [">NaN", " NaN", "inf "] {
                assert!(!text.contains(none), "{view} {form}: {none}");
            }
        }
        dir.tokload(&format!("report run.json --metric-view {view} --output {view}.md")).ends(0);
        assert!(dir.path(&format!("{view}.md")).is_file());
    }
    dir.tokload("report run.json --metric-view genai").refuses(2, &["--metric-view", "guidellm", "all"]);
    dir.tokload("simulate -c 1 --num-prompts 2 --no-records --output-file bare.json -q").shows(0);
    dir.tokload("report bare.json --metric-view all").refuses(2, &["has no records"]);
}

#[test]
fn a_run_shows_the_views_that_a_report_of_it_has() {
    let dir = Dir::new();
    let line = "simulate --ttft 50 --itl 10 --max-concurrency 1,3 --num-prompts 6 --random-output-len 4 -q \
                --goodput ttft:60 tpot:12";
    for view in ["guidellm", "servebench", "mlperf", "all"] {
        let run = dir.tokload(&format!("{line} --metric-view {view} --output-file {view}.json"));
        let report = dir.tokload(&format!("report {view}.json --metric-view {view}"));
        assert_eq!((run.code, report.code), (0, 0), "{run:?} {report:?}");
        assert_eq!(run.out, format!("{}saved {view}.json\n", report.out));
        // Nothing is saved, and all the same shown.
        let unsaved = dir.tokload(&format!("{line} --metric-view {view} --no-save --format json"));
        let report = dir.tokload(&format!("report {view}.json --metric-view {view} --format json"));
        assert!(unsaved.out.starts_with('{'), "{unsaved:?}");
        assert_eq!(unsaved.out, report.out);
    }
    dir.tokload("simulate -c 1 --num-prompts 2 --no-records --metric-view all")
        .refuses(2, &["--metric-view", "--no-records"]);
}

#[test]
fn the_columns_of_all_tools_are_what_each_prints_alone() {
    let dir = Dir::new();
    saved(&dir);
    let all: Value =
        serde_json::from_str(&dir.tokload("report run.json --metric-view all --format json").out).unwrap();
    let alone = |view: &str| -> Vec<Value> {
        let out = dir.tokload(&format!(
            "report run.json --metric-view {view} --percentile-metrics ttft,tpot,itl,e2el"
        ));
        assert_eq!(out.code, 2, "its lines are vLLM's");
        let out = dir.tokload(&format!("report run.json --metric-view {view} --format json")).out;
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let vllm: Vec<Value> = dir
        .tokload("report run.json --metric-view vllm --percentile-metrics ttft,tpot,itl,e2el --format json")
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [aiperf, guidellm, servebench, mlperf] = ["aiperf", "guidellm", "servebench", "mlperf"].map(alone);
    let stored: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.path("run.json")).unwrap()).unwrap();
    for place in 0..2 {
        let rows = all["levels"][place]["rows"].as_array().unwrap();
        let row = |name: &str| {
            &rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}"))["values"]
        };
        let close = |found: &Value, expected: f64, what: &str| {
            let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}"));
            assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{what}: {found} {expected}");
        };
        let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value}"));
        for (name, ours, of_vllm, of_aiperf, of_guidellm, of_servebench, of_mlperf) in [
            (
                "TTFT",
                "ttft",
                "ttft",
                "time_to_first_token",
                Some(("time_to_first_token_ms", 1.0)),
                "ttft_ms",
                Some("first_token_latency_ns"),
            ),
            (
                "TPOT",
                "tpot",
                "tpot",
                "inter_token_latency",
                Some(("inter_token_latency_ms", 1.0)),
                "tpot_ms",
                Some("time_to_output_token_ns"),
            ),
            ("ITL", "itl", "itl", "inter_chunk_latency", None, "itl_ms", None),
            (
                "E2E",
                "e2e",
                "e2el",
                "request_latency",
                Some(("request_latency", 1e3)),
                "e2e_ms",
                Some("latency_ns"),
            ),
        ] {
            for (part, in_vllm, in_aiperf, in_others) in
                [("mean", "mean", "avg", "/mean"), ("p99", "p99", "p99", "/percentiles/p99")]
            {
                let what = format!("level {place} {name} {part}");
                let values = row(&format!("{name} {part}"));
                let block = &stored["levels"][place]["distributions"][ours];
                let own = if part == "mean" { &block["mean"] } else { &block["quantiles"]["p99"] };
                close(&values["tokload"], number(own) / 1e6, &what);
                close(&values["vllm"], number(&vllm[place][format!("{in_vllm}_{of_vllm}_ms")]), &what);
                // aiperf has no gaps in its JSON.
                if name != "ITL" {
                    close(&values["aiperf"], number(&aiperf[place][of_aiperf][in_aiperf]), &what);
                }
                let in_ = |level: &Value, name: &str| {
                    number(level.pointer(&format!("/{name}{in_others}")).unwrap())
                };
                match of_guidellm {
                    Some((of, times)) => close(&values["guidellm"], in_(&guidellm[place], of) * times, &what),
                    None => assert!(values["guidellm"].is_null()),
                }
                close(&values["servebench"], in_(&servebench[place], of_servebench), &what);
                match of_mlperf {
                    Some(of) => close(&values["mlperf"], in_(&mlperf[place], of) / 1e6, &what),
                    None => assert!(values["mlperf"].is_null()),
                }
            }
        }
        close(&row("requests")["vllm"], number(&vllm[place]["request_throughput"]), "req/s");
        close(&row("goodput")["vllm"], number(&vllm[place]["request_goodput"]), "goodput");
        close(&row("goodput")["servebench"], number(&servebench[place]["goodput"]), "goodput");
        assert_eq!(row("goodput")["mlperf"], "limits hold");
        assert_eq!(row("percentiles")["mlperf"], "floor(n p)");
        assert_eq!((&row("ok")["aiperf"], &row("failed")["vllm"]), (&Value::from(12), &Value::from(0)));
        // E2E / n of guidellm: (50 + 5 * 10) / 6.
        let per_token = row("E2E / n mean")["guidellm"].as_f64().unwrap();
        assert!((per_token - 100.0 / 6.0).abs() < 1.0, "{per_token}");
    }
    assert!(all["reasons"]["TPOT"].as_str().unwrap().contains("[DONE]"));
    // Other limits judge all of them.
    let strict = dir.tokload("report run.json --metric-view all --goodput ttft:1 --format json").out;
    let strict: Value = serde_json::from_str(&strict).unwrap();
    let rows = strict["levels"][0]["rows"].as_array().unwrap();
    let goodput = rows.iter().find(|row| row["name"] == "goodput").unwrap();
    assert_eq!(
        (&goodput["values"]["tokload"], &goodput["values"]["mlperf"]),
        (&Value::from(0.0), &Value::from("missed"))
    );
    // An imported run with records is shown so as well.
    dir.tokload("report run.json --export vllm=v.jsonl").shows(0);
}
