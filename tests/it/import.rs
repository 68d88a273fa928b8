//! Result files of other tools as run files. The files in `tests/imports` are made by hand, in the layouts of the tools.

use std::fs;
use std::path::Path;

use tokload::import::{self, Error, File, Tool};
use tokload::metrics::Metric;
use tokload::plan::{Arrivals, Load, Slo};
use tokload::run_file::schema::DistributionBlock;
use tokload::run_file::{Destination, Loaded, RunFile, write};
use tokload::stats::Quantile;

use crate::run_file::against_the_schema;

pub(crate) fn bytes(name: &str) -> Vec<u8> {
    fs::read(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/imports")).join(name)).unwrap()
}

/// The file imported, saved and loaded again; `alone` without what lies beside it.
pub(crate) fn imported(name: &str, alone: bool) -> (RunFile, Loaded, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let into = Destination::at(folder.path().join("run.json"), false).unwrap();
    let beside = |name: &str| (!alone).then(|| bytes(name));
    let run = import::read(File { name, bytes: &bytes(name) }, None, None, &beside)
        .unwrap()
        .into_run(&into)
        .unwrap();
    into.write(&run).unwrap();
    let loaded = Loaded::open(into.path()).unwrap();
    assert_eq!(loaded.run, run);
    let text: serde_json::Value = serde_json::from_str(&write::to_json(&run)).unwrap();
    assert_eq!(against_the_schema(&text), Ok(()), "{name}");
    // Nobody judges by rules of ours what was measured by others.
    assert_eq!((run.verdict, run.findings.is_none(), run.plan.read().is_err()), (None, true, true));
    assert!(run.definitions.iter().any(|definition| definition.formula.starts_with("as ")));
    (run, loaded, folder)
}

pub(crate) fn metric(run: &RunFile, metric: Metric) -> &DistributionBlock {
    &run.levels[0].distributions[&metric]
}

pub(crate) fn ms(block: &DistributionBlock, quantile: Quantile) -> f64 {
    (block.quantile(quantile).unwrap() / 1e3).round() / 1e3
}

#[test]
fn a_summary_of_vllm_keeps_its_numbers_and_leaves_the_rest_unknown() {
    let (run, loaded, _folder) = imported("vllm.json", true);
    let level = &run.levels[0];
    assert_eq!((run.tool.name.as_str(), run.created.as_str()), ("vllm", "2026-01-31T12:00:00"));
    assert_eq!((run.label.as_deref(), run.metadata["site"].as_str()), (Some("night"), "lab 2"));
    assert_eq!(run.target.models, ["org/model"]);
    let load = Load { arrivals: Arrivals::Poisson { rate: 10.0 }, cap: None, users: None, think_s: 0.0 };
    assert_eq!((level.label.as_str(), level.setting.read().unwrap().load), ("poisson 10/s", load));
    assert_eq!((level.counts.planned, level.counts.ok, level.counts.failed), (4, 3, 1));
    let rates = level.rates.window;
    assert_eq!((rates.req_s, rates.out_tok_s, rates.in_tok_s, rates.offered_s), (6.0, 12.0, 36.0, 8.0));
    let ttft = metric(&run, Metric::Ttft);
    assert_eq!((ttft.n, ttft.mean, ttft.std.map(f64::round)), (3, Some(200e6), Some(81_649_658.0)));
    assert_eq!((ms(ttft, Quantile::P50), ms(ttft, Quantile::P99)), (200.0, 298.0));
    assert_eq!((ttft.min, ttft.max, ttft.histogram.as_ref()), (None, None, None));
    assert_eq!((metric(&run, Metric::Itl).n, metric(&run, Metric::Itl).sum), (0, None));
    assert!(level.goodput.is_none() && level.statistics.is_none() && level.in_flight.is_none());
    assert!(loaded.judged_by(&Slo::usual()).unwrap_err().to_string().contains("has no records"));
    assert!(run.imported.unwrap().notes[0].contains("4.000 good requests/s"));
}

#[test]
fn lists_of_vllm_become_records() {
    let (run, loaded, _folder) = imported("vllm-detailed.json", true);
    let level = &run.levels[0];
    assert_eq!((level.span.t0_ns, level.span.t1_ns, level.span.t2_ns), (0, 300_000_000, 450_000_000));
    // The rates stay the tool's, over its duration.
    assert_eq!((level.rates.window.req_s, level.rates.window.span_s), (6.0, 0.5));
    let known: Vec<Metric> = level.distributions.keys().copied().collect();
    // Nothing that a wait for a connection, a plan or a first byte would be needed for.
    assert_eq!(
        known,
        [Metric::Ttft, Metric::E2e, Metric::Tpot, Metric::Itl, Metric::Stall, Metric::UserSpeed]
    );
    let of = |metric_: Metric| {
        let block = metric(&run, metric_);
        (block.n, ms(block, Quantile::P50), block.max.unwrap())
    };
    assert_eq!(of(Metric::Ttft), (3, 200.0, 300e6));
    assert_eq!(of(Metric::E2e), (3, 250.0, 350e6));
    assert_eq!(of(Metric::Tpot), (2, 25.0, 50e6));
    assert_eq!((metric(&run, Metric::Itl).n, metric(&run, Metric::Itl).sum), (3, Some(100e6)));
    assert!(metric(&run, Metric::Ttft).fails(Quantile::P99), "one of four failed");
    assert_eq!(
        (level.examples[0].label.as_str(), level.examples[0].message.as_str()),
        ("http_429", "Too Many Requests")
    );
    assert_eq!(run.records.as_ref().unwrap().count, 4);
    assert_eq!((level.tokens.output, level.tokens.prompt), (6, 18));
    // Good are those that begin within 200 ms, of four.
    let judged = loaded.judged_by(&Slo { ttft_ms: Some(200.0), ..Slo::default() }).unwrap();
    let goodput = judged.levels[0].goodput.unwrap();
    assert_eq!((goodput.good, goodput.attainment, goodput.from_plan), (2, 0.5, false));
    // Everything else is as it was.
    let mut others = judged.clone();
    others.levels[0].goodput = None;
    others.levels[0].statistics.clone_from(&level.statistics);
    assert_eq!(others, run);
}

#[test]
fn lists_without_starts_give_distributions_and_no_records() {
    let (run, _, _folder) = imported("vllm-untimed.json", true);
    let level = &run.levels[0];
    assert_eq!((level.counts.failed, ms(metric(&run, Metric::E2e), Quantile::P50)), (1, 250.0));
    assert!(level.in_flight.is_none() && level.statistics.is_none() && level.series.is_none());
    assert!(run.records.is_none() && run.records_absent.unwrap().contains("when each request was sent"));
}

#[test]
fn appended_results_are_levels() {
    let (run, ..) = imported("vllm-append.jsonl", true);
    let labels: Vec<&str> = run.levels.iter().map(|level| level.label.as_str()).collect();
    assert_eq!(labels, ["poisson 10/s", "16 users"]);
    assert_eq!(run.levels[1].setting.read().unwrap().load, Load::closed(16));
}

#[test]
fn statistics_of_aiperf_keep_their_names_and_numbers() {
    let (run, ..) = imported("profile_export_aiperf.json", true);
    let level = &run.levels[0];
    assert_eq!((run.tool.name.as_str(), run.tool.version.as_str()), ("aiperf", "0.13.0"));
    assert_eq!((level.label.as_str(), level.counts.ok, level.counts.failed), ("4 users", 3, 1));
    assert_eq!(
        (level.rates.window.req_s, level.rates.window.out_tok_s, level.rates.window.in_tok_s),
        (1.5, 3.0, 9.0)
    );
    let ttft = metric(&run, Metric::Ttft);
    let p1 = ttft.quantiles.iter().find(|quantile| quantile.parts == 1000).unwrap();
    assert_eq!(
        (ttft.min, ttft.max, ttft.sum, p1.value),
        (Some(100e6), Some(300e6), Some(600e6), Some(102e6))
    );
    assert_eq!(metric(&run, Metric::E2e).n, 0, "how many it does not say");
    assert_eq!(metric(&run, Metric::UserSpeed).mean, Some(30.0));
    assert_eq!((run.created.as_str(), run.records.is_none()), ("2026-01-31T12:00:00", true));
}

#[test]
fn lines_of_aiperf_become_records_whichever_of_both_files_is_named() {
    let (run, loaded, _folder) = imported("profile_export.jsonl", false);
    let (other, ..) = imported("profile_export_aiperf.json", false);
    assert_eq!(other.levels, run.levels);
    let level = &run.levels[0];
    assert_eq!(
        (level.counts.planned, level.counts.ok, level.counts.failed, level.counts.cancelled),
        (5, 3, 1, 1)
    );
    assert_eq!((level.label.as_str(), level.rates.window.req_s), ("4 users", 1.5));
    assert_eq!(ms(metric(&run, Metric::Tpot), Quantile::P50), 25.0);
    assert_eq!(metric(&run, Metric::Itl).n, 3, "warm-up requests count nowhere");
    assert_eq!(run.created, "2026-01-31T12:00:00.000000000Z");
    let records: Vec<_> = {
        let stored = loaded.records().unwrap();
        stored.range(stored.all()).unwrap().map(Result::unwrap).collect()
    };
    assert_eq!(records.len(), 6);
    assert_eq!(records[1].start.as_nanos() - records[0].start.as_nanos(), 500_000_000);
    let (alone, ..) = imported("profile_export.jsonl", true);
    let rates = alone.levels[0].rates.window;
    // Three requests from the first start to the last end.
    assert_eq!(
        (alone.levels[0].label.as_str(), (rates.req_s * 1e3).round()),
        ("load not said", (3e3 / rates.span_s).round())
    );
}

#[test]
fn what_is_no_result_is_refused_with_the_place() {
    let read = |text: &str, tool: Option<Tool>| {
        import::read(File { name: "x", bytes: text.as_bytes() }, tool, None, &|_| None).unwrap_err()
    };
    let whole = String::from_utf8(bytes("vllm-detailed.json")).unwrap();
    for (text, part) in [
        ("", "empty"),
        ("nonsense", "not JSON"),
        (&whole[..whole.len() - 40], "cut off"),
        ("{}", "no file that can be imported"),
        ("[1]", "no file that can be imported"),
        ("{\"schema\":\"tokload.run\"}", "run file of tokload already"),
        ("{\"metadata\":{},\"metrics\":{}}\n{\"metadata\":7}", "line 2"),
        ("{\"metadata\":{},\"metrics\":{}}", "request_start_ns"),
        (&whole.replace("\"duration\": 0.5", "\"duration\": -1"), "'duration'"),
        (&whole.replace("[0.02, 0.03]", "[0.02, -0.03]"), "'itls[0]'"),
        (&whole.replace("\"ttfts\": [0.2, ", "\"ttfts\": [1e9, "), "'ttfts[0]'"),
        (
            &whole.replace("\"output_lens\": [3, 2, 1, 0]", "\"output_lens\": [3]"),
            "1 entries where ttfts has 4",
        ),
        (&whole.replace("\"input_lens\": [5", "\"input_lens\": [-5"), "not JSON, or was cut off"),
    ] {
        let error = read(text, None).to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(matches!(read("{}", Some(Tool::Vllm)), Error::Missing { key } if key == "duration"));
    let cancelled = "{\"metadata\":{\"request_start_ns\":5},\"metrics\":{\"request_latency\":{\"value\":3,\"unit\":\"furlong\"}}}";
    assert!(read(cancelled, None).to_string().contains("'furlong' is no unit of time"));
}
