//! HdrHistogram's logs and tables as run files: our own exports round trip, foreign ones keep their numbers.

use std::fs;

use tokload::import::{self, Error, File, TimeUnit};
use tokload::metrics::Metric;
use tokload::run_file::{Destination, Loaded, RunFile};
use tokload::stats::{Histogram, Quantile};

use super::Dir;

fn read(
    name: &str,
    text: &str,
    unit: Option<TimeUnit>,
    beside: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Result<RunFile, Error> {
    let folder = tempfile::tempdir().unwrap();
    let into = Destination::at(folder.path().join("run.json"), false).unwrap();
    import::read(File { name, bytes: text.as_bytes() }, None, unit, beside)?.into_run(&into)
}

/// A histogram of these values as a log has it.
fn coded(values: &[u64]) -> String {
    let mut histogram = Histogram::default();
    values.iter().for_each(|value| histogram.record(*value));
    histogram.to_base64()
}

const HEAD: &str = "#[Histogram log format version 1.3]\n#[StartTime: 1769860800.000 (seconds since epoch), x]\n\
                    \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n";

#[test]
fn intervals_of_a_tag_are_added_up_in_the_unit_that_is_given() {
    let (one, two, tagged) = (coded(&[1000, 1000]), coded(&[2000]), coded(&[5]));
    let log = format!("{HEAD}0.000,1.000,1.0,{one}\n1.000,1.000,2.0,{two}\nTag=READ,0.5,1.0,0.1,{tagged}\n");
    let run = read("a.hdrlog", &log, Some(TimeUnit::Microseconds), &|_| None).unwrap();
    assert_eq!((run.tool.name.as_str(), run.created.as_str()), ("hdrlog", "2026-01-31T12:00:00.000000000Z"));
    let labels: Vec<&str> = run.levels.iter().map(|level| level.label.as_str()).collect();
    assert_eq!(labels, ["untagged", "READ"]);
    let level = &run.levels[0];
    let e2e = &level.distributions[&Metric::E2e];
    assert_eq!((e2e.n, e2e.quantile(Quantile::P50).map(|ns| (ns / 1e3).round())), (3, Some(1000.0)));
    assert_eq!((level.counts.ok, level.rates.window.span_s, level.rates.window.req_s), (3, 2.0, 1.5));
    assert_eq!(level.tokens.sources, [0; 4], "of tokens a log says nothing");
    let read_level = &run.levels[1];
    assert_eq!((read_level.distributions[&Metric::E2e].n, read_level.rates.window.req_s), (1, 1.0));
    let ns = read("a.hdrlog", &log, None, &|_| None).unwrap();
    assert_eq!(ns.levels[0].distributions[&Metric::E2e].quantile(Quantile::P99), Some(2000.0));
}

#[test]
fn our_own_exports_come_back_as_they_were() {
    let dir = Dir::new();
    dir.tokload("simulate -c 2,3 --num-prompts 12 --output-file run.json").shows(0);
    dir.tokload("report run.json --export hdrlog=run.hdrlog --export hgrm=tables").shows(0);
    dir.tokload("import run.hdrlog --output-file log.json").shows(0);
    dir.tokload("import tables/1-ttft.hgrm --output-file tables.json").shows(0);
    let of = |name: &str| Loaded::open(&dir.path(name)).unwrap().run;
    let (run, log, tables) = (of("run.json"), of("log.json"), of("tables.json"));
    assert_eq!([log.levels.len(), tables.levels.len()], [2, 2]);
    for (own, (log, table)) in run.levels.iter().zip(log.levels.iter().zip(&tables.levels)) {
        assert_eq!((log.counts.ok, table.counts.ok), (own.counts.ok, own.counts.ok));
        for (metric, block) in &own.distributions {
            let [from_log, from_table] = [log, table].map(|level| &level.distributions[metric]);
            assert_eq!(from_log.histogram().unwrap().n(), block.histogram().unwrap().n(), "{metric:?}");
            assert_eq!((from_table.n, from_log.n), (block.n, block.n));
            for quantile in Quantile::REPORTED {
                let exact = block.quantile(quantile).unwrap();
                let near = from_log.quantile(quantile).unwrap();
                assert!((near - exact).abs() <= exact * 1e-3 + 1.0, "{metric:?} {quantile}: {near} {exact}");
                // A table gives the value of its next line.
                let above = from_table.quantile(quantile).unwrap();
                assert!(above >= exact * (1.0 - 1e-3) - 1e3 && above <= block.max.unwrap() * 1.002 + 1e3);
            }
        }
    }
    // Without a length nothing per second is known.
    let shown = dir.tokload("report tables.json --format csv").out;
    let (head, line) = (shown.lines().next().unwrap(), shown.lines().nth(1).unwrap());
    let at = |name: &str| {
        let place = head.split(',').position(|cell| cell == name).unwrap();
        line.split(',').nth(place).unwrap().to_owned()
    };
    assert_eq!((at("req_s"), at("ok")), (String::new(), run.levels[0].counts.ok.to_string()));
    // A log has a length, and says nothing of tokens.
    let shown = dir.tokload("report log.json --format csv").out;
    let cells: Vec<&str> = shown.lines().nth(1).unwrap().split(',').collect();
    let place = |name: &str| head.split(',').position(|cell| cell == name).unwrap();
    assert!(cells[place("req_s")].parse::<f64>().unwrap() > 0.0);
    assert_eq!((cells[place("out_tok_s")], cells[place("total_tok_s")]), ("", ""));
    dir.tokload("report run.hdrlog").refuses(2, &["a log of HdrHistogram's", "tokload import"]);
}

#[test]
fn a_table_of_wrk2_is_that_of_its_requests() {
    // Between the lines of other output, in ms; the last column is infinite.
    let table = "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%  1.50ms\n\n  Detailed Percentile spectrum:\n       \
                 Value   Percentile   TotalCount 1/(1-Percentile)\n\n       1.000     0.000000            1         1.00\n       \
                 1.500     0.500000            5         2.00\n       8.000     0.900000            9        10.00\n       \
                 9.000     1.000000           10          inf\n#[Mean    =        2.100, StdDeviation   =        2.000]\n\
                 #[Max     =        9.000, Total count    =           10]\n#[Buckets =           27, SubBuckets     =         2048]\n----\n";
    let run = read("wrk2.txt", table, None, &|_| None).unwrap();
    let level = &run.levels[0];
    let e2e = &level.distributions[&Metric::E2e];
    assert_eq!((level.label.as_str(), level.counts.ok, e2e.n), ("wrk2", 10, 10));
    let at = |quantile| e2e.quantile(quantile).unwrap() / 1e6;
    assert_eq!((at(Quantile::P50), at(Quantile::P90), at(Quantile::P99)), (1.5, 8.0, 9.0));
    assert_eq!((e2e.mean, e2e.max, e2e.std), (Some(2.1e6), Some(9e6), Some(2e6)));
    let seconds = read("wrk2.txt", table, Some(TimeUnit::Seconds), &|_| None).unwrap();
    assert_eq!(seconds.levels[0].distributions[&Metric::E2e].max, Some(9e9));
    let cut = table.split("#[Mean").next().unwrap();
    for (text, part) in [
        (cut.to_owned(), "ends before its last lines"),
        (table.replace("         10          inf\n", "          9          inf\n"), "reach 9 of 10"),
        (table.replace("8.000     0.9", "8.000     1.9"), "no percentile can be"),
        (table.replace("       8.000", "       0.500"), "percentiles rise"),
        (table.replace("       8.000", "       fast "), "no line of a value"),
    ] {
        let error = read("wrk2.txt", &text, None, &|_| None).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn logs_that_are_cut_off_or_foreign_are_told_by_their_line() {
    let one = coded(&[1000]);
    for (line, part) in [
        (format!("0.0,1.0,1.0,{}", &one[..one.len() / 2]), "line 4"),
        ("0.0,1.0,1.0,AAAA".to_owned(), "not an HdrHistogram"),
        ("0.0,1.0".to_owned(), "2 fields where"),
        ("Tag=x".to_owned(), "a tag without a histogram"),
        (format!("soon,1.0,1.0,{one}"), "'soon' is no start"),
        (format!("0.0,-1.0,1.0,{one}"), "'-1.0' is no length"),
    ] {
        let error = read("a", &format!("{HEAD}{line}\n"), None, &|_| None).unwrap_err().to_string();
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(read("a", HEAD, None, &|_| None).unwrap_err().to_string().contains("a line with a histogram"));
    let long = format!("{HEAD}0,1,1,{}\n", coded(&[7_200_000_000]));
    let run = read("a", &long, Some(TimeUnit::Seconds), &|_| None).unwrap();
    assert!(run.imported.unwrap().notes.iter().any(|note| note.contains("above an hour")));
    let dir = Dir::new();
    fs::write(dir.path("a.hdrlog"), HEAD).unwrap();
    dir.tokload("import a.hdrlog --unit weeks").refuses(2, &["--unit", "ns, us, ms or s"]);
    dir.tokload("import a.hdrlog --from hdrlg").refuses(2, &["did you mean hdrlog?", "llama-bench"]);
}
