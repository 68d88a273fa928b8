//! Results of llama.cpp's benchmarks as run files, held against the golden values of their columns.

use tokload::import::{self, File, Tool};
use tokload::metrics::Metric;
use tokload::report::{View, csv, markdown, terminal};
use tokload::run_file::RunFile;
use tokload::stats::Quantile;

use crate::goldens::{assert_close, inputs, values};
use crate::import::{bytes, imported, metric, ms};

fn cells(run: &RunFile) -> Vec<Vec<String>> {
    let view = View::new(run, &[], None);
    view.printed
        .rows
        .iter()
        .map(|row| row.cells.iter().map(|cell| cell.text().to_owned()).collect())
        .collect()
}

#[test]
fn batched_bench_prints_its_columns_back_from_the_table_and_from_lines() {
    let table = String::from_utf8(bytes("batched-bench.md")).unwrap();
    let rows: Vec<Vec<&str>> = table
        .lines()
        .filter(|line| line.starts_with("|  "))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let golden = values("BatchedBenchColumns");
    let golden = golden["rows"].as_array().unwrap();
    for name in ["batched-bench.md", "batched-bench.jsonl"] {
        let (run, ..) = imported(name, true);
        assert_eq!(run.tool.name, "llama-batched-bench");
        assert_eq!(cells(&run), rows[1..], "{name}");
        let view = View::new(&run, &[], None);
        let heads: Vec<&str> = view.printed.columns.iter().map(|column| column.name).collect();
        assert_eq!(heads, rows[0]);
        let labels: Vec<&str> = run.levels.iter().map(|level| level.label.as_str()).collect();
        assert_eq!(
            labels,
            [
                "pp128 tg128 B1",
                "pp128 tg128 B8",
                "pp128 tg128 B32",
                "pp128 tg128 B32 shared",
                "pp128 tg128 B32 shared unified",
            ]
        );
        // The table has two or three decimals of what the lines and the golden values have more of.
        let within = if name.ends_with("md") { 2e-3 } else { 1e-6 };
        for (level, golden) in run.levels.iter().zip(golden) {
            let of = |key: &str| golden[key].as_f64().unwrap();
            let rates = level.rates.window;
            for (value, expected) in [
                (rates.in_tok_s, of("s_pp")),
                (rates.out_tok_s, of("s_tg")),
                (rates.total_tok_s, of("s")),
                (rates.span_s, of("t_s")),
                (rates.req_s, of("b") / of("t_s")),
                (level.distributions[&Metric::UserSpeed].mean.unwrap(), of("s_tg") / of("b")),
                (level.distributions[&Metric::Tpot].mean.unwrap(), of("t_tg_s") * 1e9 / of("tg")),
                (level.distributions[&Metric::E2e].mean.unwrap(), of("t_s") * 1e9),
            ] {
                assert!(
                    (value / expected - 1.0).abs() < within,
                    "{name} {}: {value} {expected}",
                    level.label
                );
            }
            assert_eq!(level.counts.ok as f64, of("b"));
            assert!(!level.distributions.contains_key(&Metric::Ttft), "nobody timed a first token");
        }
        assert_eq!((run.levels[2].tokens.prompt, run.levels[3].tokens.prompt), (4096, 128));
    }
    let (run, ..) = imported("batched-bench.jsonl", true);
    assert_eq!((run.metadata["n_threads"].as_str(), run.metadata["n_kv_max"].as_str()), ("8", "8192"));
    assert_close(run.levels[2].distributions[&Metric::UserSpeed].mean.unwrap(), 465.401_659 / 32.0);
}

#[test]
fn the_golden_inputs_are_those_of_the_fixture() {
    let lines = String::from_utf8(bytes("batched-bench.jsonl")).unwrap();
    let rows = inputs("BatchedBenchColumns");
    for (line, row) in lines.lines().zip(rows["rows"].as_array().unwrap()) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!([&line["pp"], &line["tg"], &line["pl"]], [&row[0], &row[1], &row[2]]);
    }
}

#[test]
fn a_test_of_llama_bench_is_a_level_whatever_its_form() {
    let labels = ["pp64+tg16", "pp512", "tg10, n_threads 2", "tg10, n_threads 4", "tg10 @ d1024"];
    let golden = values("LlamaBenchJson");
    for name in ["llama-bench.jsonl", "llama-bench.json", "llama-bench.csv", "llama-bench.md"] {
        let (run, ..) = imported(name, true);
        assert_eq!(
            (run.tool.name.as_str(), run.tool.version.as_str()),
            ("llama-bench", "0a1b2c3 (5000)"),
            "{name}"
        );
        assert_eq!(run.target.models, ["llama ?B all F32"]);
        // The table calls it otherwise than the other forms.
        let seen: Vec<String> = run
            .levels
            .iter()
            .map(|level| {
                level.label.replace(", n_threads ", ", threads ").replace(", threads ", ", n_threads ")
            })
            .collect();
        assert_eq!(seen, labels, "{name}");
        let first = ["llama ?B all F32", "307.51 MiB", "80.61 M", "CPU", "2", "1044.94 ± 126.06"];
        assert_eq!(cells(&run)[0], first, "{name}");
        let rates: Vec<[f64; 3]> = run
            .levels
            .iter()
            .map(|level| level.rates.window)
            .map(|rates| [rates.in_tok_s, rates.out_tok_s, rates.total_tok_s])
            .collect();
        assert_eq!(rates[1..3], [[1024.0, 0.0, 1024.0], [0.0, 37.5, 37.5]], "{name}");
        // The mean of the samples' speeds, not tokens by the mean time.
        let reported = golden["reported_avg_ts"].as_f64().unwrap();
        assert!(
            (rates[0][2] / reported - 1.0).abs() < 1e-5 && (rates[0][2] - 1037.338).abs() > 1.0,
            "{name}"
        );
        assert!((rates[0][0] / rates[0][1] - 4.0).abs() < 1e-9, "64 to 16 tokens");
        assert_eq!(metric(&run_of(&run, 2), Metric::UserSpeed).mean, Some(37.5), "{name}");
    }
}

/// The level `place` alone.
fn run_of(run: &RunFile, place: usize) -> RunFile {
    RunFile { levels: vec![run.levels[place].clone()], ..run.clone() }
}

#[test]
fn samples_of_llama_bench_are_values_and_text_forms_have_a_mean_alone() {
    let (run, ..) = imported("llama-bench.jsonl", true);
    assert_eq!(run.created, "2026-01-31T12:00:00.000000000Z");
    let tg = run_of(&run, 2);
    let tpot = metric(&tg, Metric::Tpot);
    // 10 steps in 0.2 and in 0.4 s.
    assert_eq!((tpot.n, ms(tpot, Quantile::P50), ms(tpot, Quantile::P99)), (2, 20.0, 40.0));
    let speed = metric(&tg, Metric::UserSpeed);
    assert_eq!((speed.n, speed.mean, speed.std), (2, Some(37.5), Some(12.5)));
    assert_eq!((tg.levels[0].counts.ok, tg.levels[0].tokens.output), (2, 20));
    let mixed = run_of(&run, 0);
    assert_eq!(metric(&mixed, Metric::E2e).max, Some(83_699_374.0));
    assert!(!mixed.levels[0].distributions.contains_key(&Metric::Tpot), "its time is that of a prompt, too");
    for name in ["llama-bench.csv", "llama-bench.md"] {
        let (run, ..) = imported(name, true);
        let tg = run_of(&run, 2);
        let speed = metric(&tg, Metric::UserSpeed);
        assert_eq!((speed.n, speed.std.map(|std| (std * 100.0).round())), (0, Some(1768.0)), "{name}");
        assert!(!tg.levels[0].distributions.contains_key(&Metric::E2e), "{name}");
        assert_eq!(tg.levels[0].counts.ok, 1, "{name}");
    }
}

#[test]
fn the_columns_stand_in_every_form_of_a_report() {
    let (run, ..) = imported("batched-bench.md", true);
    let view = View::new(&run, &[], None);
    let text = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    };
    let shown = [
        text(&|out| terminal::write(&view, terminal::Style { width: 200, color: false }, out).unwrap()),
        text(&|out| markdown::write(&view, out).unwrap()),
    ];
    for shown in &shown {
        let shown = shown.replace('\\', "");
        assert!(shown.contains("S_TG t/s") && shown.contains("1363.52"), "{shown}");
    }
    assert!(view.notes.iter().any(|note| note.text.contains("no TTFT, ITL or goodput")));
    let levels = text(&|out| csv::write(&run, out).unwrap());
    assert!(levels.lines().nth(2).unwrap().starts_with("1,pp128 tg128 B8,"), "{levels}");
}

#[test]
fn what_is_cut_off_or_cannot_be_is_told_with_its_place() {
    let read = |text: &str, tool: Option<Tool>| {
        let file = File { name: "x", bytes: text.as_bytes() };
        import::read(file, tool, None, &|_| None).and_then(|result| {
            let folder = tempfile::tempdir().unwrap();
            let into = tokload::run_file::Destination::at(folder.path().join("run.json"), false).unwrap();
            result.into_run(&into)
        })
    };
    let of = |name: &str| String::from_utf8(bytes(name)).unwrap();
    let (table, lines, json, csv, bench) = (
        of("batched-bench.md"),
        of("batched-bench.jsonl"),
        of("llama-bench.json"),
        of("llama-bench.csv"),
        of("llama-bench.md"),
    );
    for (text, part) in [
        (table[..table.len() - 20].to_owned(), "of 10 cells: the table was cut off"),
        (table.replace("1363.52", "fast"), "'line 6, S_PP t/s': 'fast'"),
        (table.replace("12.209", "-12.209"), "'line 7, t'"),
        (table.lines().take(4).collect::<Vec<_>>().join("\n"), "a row of the table"),
        (lines[..lines.len() - 30].to_owned(), "'line 5': EOF"),
        (lines.replace("\"pl\": 8", "\"pl\": 0"), "a batch of 0 sequences"),
        (lines.replace("\"pl\": 8", "\"pl\": 999999999999"), "a batch of 999999999999 sequences"),
        (json[..json.len() - 20].to_owned(), "cut off"),
        (json.replace("\"avg_ts\": 1024.0", "\"avg_ts\": \"x\""), "'test 2, avg_ts'"),
        (json.replace("\"avg_ts\": 1024.0", "\"avg_ts\": 0"), "no test has a speed of 0"),
        (json.replace("\"avg_ts\": 1024.0", "\"avg_ts\": -1"), "cannot be measured"),
        (json.replace("\"avg_ts\": 1024.0,", ""), "'test 2, avg_ts' is missing"),
        (json.replace("\"n_prompt\": 512", "\"n_prompt\": 0"), "0 prompt and 0 generated tokens"),
        (json.replace("200000000,", "-5,"), "'test 3, samples_ns'"),
        (csv[..csv.len() - 60].to_owned(), "'line 6'"),
        (bench.replace("tg10 @ d1024", "mmlu"), "'line 7, test': 'mmlu'"),
        (bench.replace("1024.00 ± 0.00", "± "), "'line 4, t/s'"),
    ] {
        let error = read(&text, None).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(read("{}", Some(Tool::LlamaBench)).unwrap_err().to_string().contains("'test 1, n_prompt'"));
    let bytes: &[u8] = &[0xff, 0xfe, 0];
    for tool in [Tool::LlamaBench, Tool::BatchedBench, Tool::HdrLog, Tool::Hgrm] {
        let error = import::read(File { name: "x", bytes }, Some(tool), None, &|_| None).unwrap_err();
        assert!(error.to_string().contains("no text"), "{tool:?}: {error}");
    }
}
