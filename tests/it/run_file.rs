//! Stored runs: what is written is read, judged anew it is the same, and nothing is lost or overwritten.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tokload::metrics::{Class, Flags, Gaps, Kind, Metric, Outcome, Phase, Record, Tally, TokenSource};
use tokload::plan::{
    Arrivals, Client, Connections, Declared, Endpoint, Header, Keep, Level, Limits, Load, Plan,
    RequestOptions, Sampling, Slo, SteadyCut, Stop, Target, Tls, Until, Workload,
};
use tokload::report::{Style, View, terminal};
use tokload::run::{Example, LevelResult, RecordRange, Sessions, ShardCheck, Span, Stamps, Window};
use tokload::run_file::schema::{
    ConnectionsBlock, DataBlock, DelayBlock, EnvironmentBlock, ExporterBlock, GroupBlock, LengthenedBlock,
    LevelBlock, ReuseBlock, SeenBlock, SelftestBlock, SideFile, TargetBlock, TelemetryBlock, TraceBlock,
    TurnBlock,
};
use tokload::run_file::write::to_json;
use tokload::run_file::{Destination, Loaded, ReadError, Records, RunFile, WallTime, WriteError, read};
use tokload::summary::cache::{CacheSplit, Group, GroupTtft};
use tokload::summary::telemetry::{
    Efficiency, Gauge, GpuLevel, HostLevel, LevelTelemetry, Line, Network, ServerLevel, Times, Trouble,
};
use tokload::summary::{self, GroupKey};
use tokload::time::Stamp;
use tokload::verdict::Verdict;

/// A run of two levels made up by hand: a closed loop with failures, and a capped open loop.
pub(crate) struct Sample {
    pub(crate) run: RunFile,
    pub(crate) records: Vec<Record>,
}

pub(crate) fn plan() -> Plan {
    let level = |load: Load, units| Level {
        load,
        stop: Stop { units: Some(units), duration_s: None, grace_s: 30.0 },
        warmups: 2,
        ..Level::default()
    };
    let open = Load { arrivals: Arrivals::Poisson { rate: 12.5 }, cap: Some(4), users: None, think_s: 0.0 };
    Plan {
        share: None,
        seed: 42,
        runs: 1,
        until: None,
        search: None,
        steady_cut: SteadyCut::Default,
        slice_s: None,
        stress: None,
        target: Target {
            endpoints: vec![Endpoint { url: "http://127.0.0.1:8000".to_owned() }],
            url_strategy: tokload::plan::UrlStrategy::RoundRobin,
            url_weights: Vec::new(),
            all_addresses: false,
            connections: Connections::default(),
            replica_header: None,
            models: vec!["tiny".to_owned()],
            model_weights: Vec::new(),
            model_choice: tokload::plan::ModelChoice::InTurn,
            reset_prefix_cache: false,
            dialect: tokload::api::Dialect::OpenaiChat,
            raw: None,
            path: None,
            stream: true,
            headers: vec![Header { name: "X-Team".to_owned(), value: "core".to_owned() }],
            tls: Tls::default(),
        },
        levels: vec![level(Load::closed(4), 40), level(open, 24)],
        workload: Workload {
            input_words: 128.into(),
            output_tokens: 9.into(),
            distinct: None,
            prefix: None,
            system_words: None,
            trace: None,
            data: None,
            conversation: None,
            timing: None,
            context_words: None,
            session_header: None,
            tokens: None,
            choices: 1,
            options: RequestOptions {
                include_usage: true,
                dropped: vec!["min_tokens".to_owned()],
                ..RequestOptions::default()
            },
            sampling: Sampling { temperature: Some(0.7), ..Sampling::default() },
            extra_body: serde_json::Map::new(),
            aborts: None,
            slow_readers: None,
        },
        slo: Slo { ttft_ms: Some(550.0), tpot_ms: Some(60.0), ..Slo::default() },
        limits: Limits::default(),
        client: Client::default(),
        telemetry: tokload::plan::Telemetry::default(),
        keep: Keep::default(),
        declared: Declared::default(),
    }
}

/// A run of `plan` before its first level.
pub(crate) fn empty(plan: &Plan) -> RunFile {
    let created = WallTime::from_unix_nanos(1_796_071_493_000_000_042);
    RunFile::new(created, plan, EnvironmentBlock::default(), TargetBlock::default())
}

pub(crate) fn sample() -> Sample {
    sample_of(&plan())
}

/// A run of `plan`.
pub(crate) fn sample_of(plan: &Plan) -> Sample {
    let environment = EnvironmentBlock {
        command_line: vec!["tokload".to_owned(), "run".to_owned()],
        cores_used: vec![1],
        driver: Some("epoll".to_owned()),
        selftest: Some(SelftestBlock {
            created: "2026-11-30T08:00:00.000000042Z".to_owned(),
            error_max_us: 1_000,
            streams: Some(1_000),
            events_s: Some(48_000),
            events_s_core: Some(210_000),
            send_delay_us_p99: Some(9),
            others_percent: Some(3),
            differs: vec!["kernel".to_owned()],
            ..SelftestBlock::default()
        }),
        ..EnvironmentBlock::default()
    };
    let target = TargetBlock { kind: Some("vllm".to_owned()), ..TargetBlock::default() };
    let created = WallTime::from_unix_nanos(1_796_071_493_000_000_042);
    let mut sample = Sample { run: RunFile::new(created, plan, environment, target), records: Vec::new() };
    sample.run.label = Some("nightly".to_owned());
    sample.run.metadata.insert("gpu".to_owned(), "H200".to_owned());
    for (ordinal, level) in plan.in_rounds().iter().enumerate() {
        sample.add(ordinal, level, &plan.slo);
    }
    sample.run.telemetry = Some(telemetry_block());
    sample.run.levels[0].telemetry = Some(level_telemetry());
    sample.run.compare_repeats();
    sample.run.judge();
    sample
}

fn telemetry_block() -> TelemetryBlock {
    use tokload::summary::telemetry::Kind;
    let trouble = Trouble { what: "HTTP 500".to_owned(), times: 2 };
    let of = |kind, name: &str| ExporterBlock {
        kind,
        name: name.to_owned(),
        attempts: 20,
        answered: 18,
        ..ExporterBlock::default()
    };
    let server = ExporterBlock {
        products: vec!["vLLM".to_owned()],
        troubles: vec![trouble],
        ..of(Kind::Server, "http://127.0.0.1:8000/metrics")
    };
    let exporters = vec![server, of(Kind::Gpu, "GPUs of this machine"), of(Kind::Host, "client")];
    TelemetryBlock { interval_s: 1.0, exporters }
}

fn level_telemetry() -> LevelTelemetry {
    let gauge = |mean: f64| Some(Gauge { n: 12, mean, min: mean / 2.0, max: mean * 1.25 });
    let times = |mean_ms| Some(Times { n: 40.0, mean_ms });
    let server = ServerLevel {
        name: "http://127.0.0.1:8000/metrics".to_owned(),
        product: Some("vLLM".to_owned()),
        seen_s: Some(12.25),
        resets: 1,
        running: gauge(3.5),
        waiting: gauge(0.5),
        kv_cache_use: gauge(0.25),
        prefix_hit_share: Some(0.125),
        preemptions: Some(2.0),
        prompt_tokens: Some(5_120.0),
        output_tokens: Some(360.0),
        ttft: times(450.0),
        itl: times(50.0),
        e2e: times(900.0),
        queue: times(25.0),
        gauges: [("my_depth".to_owned(), gauge(2.0).unwrap())].into(),
        counters: [("my_requests{code=\"200\"}".to_owned(), 40.0)].into(),
    };
    let gpu = GpuLevel {
        name: "GPU 0".to_owned(),
        product: Some("NVIDIA H200".to_owned()),
        busy: gauge(0.75),
        memory_bytes: gauge(64e9),
        memory_all_bytes: Some(141e9),
        power_w: gauge(500.0),
        energy_j: Some(6_000.0),
        energy_by_power: true,
        temperature_c: gauge(64.0),
        sm_clock_mhz: gauge(1_600.0),
        memory_clock_mhz: gauge(3_200.0),
        pcie_in_bytes_s: gauge(1e6),
        pcie_out_bytes_s: gauge(2e6),
        nvlink_bytes_s: Some(3e9),
        throttled: [("power cap".to_owned(), 0.25)].into(),
    };
    let host = HostLevel {
        cpu_busy: gauge(0.25),
        cpu_steal: gauge(0.0),
        memory_bytes: gauge(8e9),
        net_in_bytes_s: Some(1e6),
        net_out_bytes_s: Some(1e5),
    };
    LevelTelemetry {
        servers: vec![server],
        gpus: vec![gpu],
        host: Some(host),
        hosts: Vec::new(),
        network: Some(Network {
            server_n: 40.0,
            server_ttft_ms: 450.0,
            client_n: 38,
            client_ttft_ms: 451.5,
            difference_ms: Some(1.5),
        }),
        efficiency: Some(Efficiency {
            gpus: 1,
            tok_s_per_gpu: 30.0,
            power_w: Some(500.0),
            tok_per_joule: Some(0.0625),
        }),
        lines: vec![Line {
            what: "running".to_owned(),
            of: "http://127.0.0.1:8000/metrics".to_owned(),
            at_s: vec![1.5, 2.5],
            values: vec![3.0, 4.0],
        }],
    }
}

impl Sample {
    fn add(&mut self, ordinal: usize, level: &Level, slo: &Slo) {
        let t0 = Stamp::from_millis(1_000 + 20_000 * ordinal as u64);
        let requests = level.stop.units.unwrap();
        let first = self.records.len() as u64;
        let warm = (0..2).map(|i| Record { phase: Phase::Warmup, ..request(i, t0 - ms(900), level) });
        let measured = (0..requests).map(|i| request(i, t0 + ms(300 * i), level));
        let records: Vec<Record> = warm.chain(measured).collect();
        let mut tally = Tally::new(t0);
        for record in records.iter().filter(|record| record.phase == Phase::Measured) {
            tally.on_sent(record.start);
            let mut gaps = Gaps::with_capacity(8);
            GAPS_MS.iter().for_each(|gap| gaps.record(gap * 1_000_000));
            tally.on_done(record, &gaps, &Gaps::with_capacity(0), t0);
        }
        let t1 = records.iter().map(|r| r.plan).max().unwrap();
        let t2 = records.iter().map(|r| r.end).max().unwrap();
        let result = LevelResult {
            slices: None,
            replicas: Vec::new(),
            ordinal,
            level: level.clone(),
            span: Span { t0, t1, t2 },
            window: Window { start: t0, end: t2, whole_level: true },
            tally,
            records: Some(RecordRange { first, count: records.len() as u64 }),
            shards: vec![ShardCheck {
                core: Some(1),
                cpu_ns: 1,
                wall_ns: 4,
                sent: requests,
                ..ShardCheck::default()
            }],
            host: None,
            stamps: Stamps::default(),
            examples: examples(&records),
            lengthened: None,
            judged: None,
            interrupted: false,
        };
        let summary = summary::level(&summary::Input::new(&result, Some(&records), *slo));
        self.run.push(&result, &summary);
        self.records.extend(records);
    }

    /// Writes the run and its records to `path` as the command line would.
    pub(crate) fn write(&mut self, path: PathBuf) -> Destination {
        let destination = Destination::at(path, false).unwrap();
        let spool = destination.records().unwrap();
        let mut writer: Box<dyn std::io::Write + Send> = Box::new(spool.writer().unwrap());
        self.records.iter().for_each(|record| writer.write_all(&record.encode()).unwrap());
        drop(writer);
        self.run.records = Some(spool.finish().unwrap());
        destination.write(&self.run).unwrap();
        destination
    }
}

/// The gaps of the reference case: nine tokens in eight events.
const GAPS_MS: [u64; 7] = [24, 25, 24, 72, 24, 249, 24];

/// Request `i`: answers as in the reference case, a little later each time; in the closed loop one in ten fails.
fn request(i: u64, plan: Stamp, level: &Level) -> Record {
    let mut r = Record::planned(i, plan);
    r.permit = plan + if level.load.cap.is_some() { ms(100 + i) } else { ms(0) };
    r.start = r.permit + Duration::from_micros(3 + i);
    (r.conn, r.sent) = (Some(r.start), Some(r.start + Duration::from_micros(20)));
    if level.load.cap.is_none() && i % 10 == 3 {
        r.outcome = Outcome::new(Class::Http, Kind::HttpStatus, 429);
        r.end = r.start + ms(5);
        return r;
    }
    r.outcome = Outcome::ok(200);
    r.byte = Some(r.start + ms(400));
    r.first = Some(r.start + ms(412) + Duration::from_nanos(i * 1_234_567));
    r.answer = r.first;
    r.last = r.first.map(|first| first + ms(GAPS_MS.iter().sum()));
    r.end = r.start + ms(900);
    r.stall_ns = 249_000_000.into();
    (r.prompt_tokens, r.prompt_source) = (Some(131), TokenSource::Usage);
    (r.output_tokens, r.output_source, r.events) = (Some(9), TokenSource::Usage, 8);
    r.cached_tokens = 16.into();
    r.flags = Flags::default();
    r
}

fn examples(records: &[Record]) -> Vec<Example> {
    let failed = records.iter().find(|record| record.outcome.is_failure());
    failed
        .map(|r| Example { outcome: r.outcome, message: "slow down,\nhttp://a:hush@b/ is busy".to_owned() })
        .into_iter()
        .collect()
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn in_directory(test: impl FnOnce(&Path)) {
    let directory = tempfile::tempdir().unwrap();
    test(directory.path());
}

#[test]
fn what_is_written_is_read() {
    in_directory(|dir| {
        let mut sample = sample();
        let destination = sample.write(dir.join("run.json"));
        let loaded = Loaded::open(destination.path()).unwrap();
        assert_eq!(loaded.run, sample.run);
        assert_eq!(loaded.run.records.as_ref().unwrap().count, 68);
        let records = loaded.records().unwrap();
        let read: Vec<Record> = records.range(records.all()).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(read, sample.records);
        assert_eq!(loaded.run.plan.read().unwrap(), plan());
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["run.json", "run.records"], "no temporary file is left");
    });
}

#[test]
fn judged_by_its_own_slo_a_stored_run_is_the_same() {
    in_directory(|dir| {
        let mut sample = sample();
        let destination = sample.write(dir.join("run.json"));
        let loaded = Loaded::open(destination.path()).unwrap();
        assert_eq!(loaded.judged_by(&plan().slo).unwrap(), sample.run);
    });
}

#[test]
fn another_slo_changes_the_goodput_alone() {
    in_directory(|dir| {
        let mut sample = sample();
        let destination = sample.write(dir.join("run.json"));
        let loaded = Loaded::open(destination.path()).unwrap();
        // TTFT of request i is 412 ms + i * 1.234567 ms: i = 0..=10 keep 425 ms, one of which failed.
        let mut anew = loaded.judged_by(&Slo { ttft_ms: Some(425.0), ..Slo::default() }).unwrap();
        let goodput = anew.levels[0].goodput.unwrap();
        assert_eq!((goodput.good, goodput.attainment), (10, 0.25));
        for (judged, stored) in anew.levels.iter_mut().zip(&sample.run.levels) {
            assert_ne!(judged.goodput, stored.goodput);
            judged.goodput = stored.goodput;
            // How well attainment is known changes with it.
            let (judged, stored) = (judged.statistics.as_mut().unwrap(), stored.statistics.as_ref().unwrap());
            assert_ne!(judged.attainment, stored.attainment);
            judged.attainment = stored.attainment;
        }
        assert_eq!(anew, sample.run);
    });
}

#[test]
fn repeats_are_compared_load_by_load_and_judged_anew_with_them() {
    in_directory(|dir| {
        let mut sample = sample_of(&Plan { runs: 3, ..plan() });
        let destination = sample.write(dir.join("run.json"));
        let loaded = Loaded::open(destination.path()).unwrap();
        assert_eq!(loaded.judged_by(&plan().slo).unwrap(), sample.run);
        let labels: Vec<_> = sample.run.levels.iter().map(|level| level.label.as_str()).collect();
        let loads = ["4 users", "poisson 12.5/s cap 4"];
        let expected: Vec<_> = (1..=3).flat_map(|n| loads.map(|load| format!("{load} #{n}"))).collect();
        assert_eq!(labels, expected);
        let of = |run: &RunFile, load: usize, name: &str| {
            let repeats = &run.repeats.as_ref().unwrap()[load];
            assert_eq!((repeats.level, repeats.label.as_str(), repeats.n), (load, loads[load], 3));
            assert!(!repeats.enough);
            repeats.figures[name].clone()
        };
        // All rounds of the sample are alike, so the mean is the level's and nothing varies.
        let attainment = of(&sample.run, 0, "attainment");
        assert_eq!((attainment.mean, attainment.reach), (Some(0.9), Some(0.0)));
        // One in ten fails: the rank of p99 is one of them, and infinity has no mean.
        let failed = of(&sample.run, 0, "ttft_p99");
        assert_eq!((failed.values, failed.mean), (vec![None; 3], None));
        assert!(of(&sample.run, 1, "ttft_p99").mean.is_some());
        let anew = loaded.judged_by(&Slo { ttft_ms: Some(425.0), ..Slo::default() }).unwrap();
        assert_eq!(of(&anew, 0, "attainment").values, vec![Some(0.25); 3]);
        // What was cut short is no repeat.
        let mut cut = sample.run.clone();
        cut.levels.last_mut().unwrap().interrupted = true;
        cut.compare_repeats();
        let n: Vec<_> = cut.repeats.iter().flatten().map(|repeats| repeats.n).collect();
        assert_eq!(n, [3, 2]);
    });
}

#[test]
fn failures_are_in_the_stored_numbers() {
    let run = sample().run;
    let closed: &LevelBlock = &run.levels[0];
    assert_eq!((closed.counts.planned, closed.counts.ok, closed.counts.failed), (40, 36, 4));
    let text: Value = serde_json::from_str(&to_json(&run)).unwrap();
    let ttft = &text["levels"][0]["distributions"]["ttft"];
    assert_eq!(ttft["n"], 36);
    assert!(ttft["with_failures"]["p50"].is_number() && ttft["quantiles"]["p99"].is_number());
    assert_eq!(ttft["with_failures"]["p99"], Value::Null);
    assert_eq!(ttft["unit"], "ns");
    assert_eq!(text["levels"][0]["distributions"]["itl"]["with_failures"], serde_json::json!({}));
    let histogram = closed.distributions[&Metric::Itl].histogram().unwrap();
    assert_eq!(histogram.buckets().map(|b| b.count).sum::<u64>(), 36 * 7);
}

#[test]
fn goodput_counts_failures_and_judges_open_loops_from_the_plan() {
    let [closed, open] = [0, 1].map(|level: usize| sample().run.levels[level].goodput.unwrap());
    // TTFT is 412 ms + i * 1.234567 ms from the start: all 36 ok requests of 40 keep 550 ms.
    assert_eq!((closed.from_plan, closed.good, closed.attainment), (false, 36, 0.9));
    // From the plan 100 ms + i * 1 ms more: request 16 of 24 is the last to keep it.
    assert_eq!((open.from_plan, open.good, open.attainment), (true, 17, 17.0 / 24.0));
}

#[test]
fn blocks_that_are_not_known_are_null_and_there() {
    let text: Value = serde_json::from_str(&to_json(&sample().run)).unwrap();
    let null = |value: &Value, key: &str| value.as_object().unwrap().get(key) == Some(&Value::Null);
    assert!(["records_absent", "chunks"].iter().all(|key| null(&text, key)));
    let check = &text["levels"][0]["self_check"];
    assert!(["receive_lag", "loop_lag", "rtt", "queue_bytes", "host"].iter().all(|key| null(check, key)));
    assert_eq!(check["cpu_share_max"], 0.25);
}

#[test]
fn keys_and_metrics_of_later_writers_are_skipped() {
    let run = sample().run;
    let mut text: Value = serde_json::from_str(&to_json(&run)).unwrap();
    text["novelty"] = 1.into();
    text["plan"]["novelty"] = 1.into();
    text["levels"][0]["setting"]["novelty"] = 1.into();
    text["levels"][0]["series"]["novelty"] = 1.into();
    text["levels"][0]["distributions"]["novelty"] = serde_json::json!({"unit": "parsec"});
    text["levels"][0]["self_check"]["shards"][0]["novelty"] = 1.into();
    let finding =
        serde_json::json!({"rule": "novelty", "grade": "warn", "evidence": "seen", "remedy": "look", "x": 1});
    text["findings"] = serde_json::json!([finding]);
    let read = read::parse(&text.to_string(), Path::new("run.json")).unwrap();
    assert_eq!(read.levels[0].distributions, run.levels[0].distributions);
    assert!(read.plan.read().is_err(), "a plan with unknown keys must not be run again");
    assert_eq!(read.findings.unwrap()[0].rule, "novelty", "its words are worth reading all the same");
}

#[test]
fn a_file_from_before_there_were_findings_is_judged_as_today() {
    in_directory(|dir| {
        let run = sample().run;
        let mut text: Value = serde_json::from_str(&to_json(&run)).unwrap();
        let blocks = text.as_object_mut().unwrap();
        assert!(blocks.remove("findings").is_some() && blocks.remove("verdict").is_some());
        for level in blocks["levels"].as_array_mut().unwrap() {
            (level["findings"], level["verdict"]) = (Value::Null, Value::Null);
        }
        fs::write(dir.join("old.json"), text.to_string()).unwrap();
        assert_eq!(Loaded::open(&dir.join("old.json")).unwrap().run, run);
        assert_eq!(run.verdict, Some(Verdict::Invalid), "one request in ten failed");
    });
}

#[test]
fn other_schemas_and_newer_versions_are_refused_in_words() {
    let refusal = |text: &str| read::parse(text, Path::new("x.json")).unwrap_err().to_string();
    let not_ours = "x.json is not a tokload run file (JSON with schema \"tokload.run\")";
    let elsewhere = "name the file that a run has saved";
    assert_eq!(refusal("not json"), format!("{not_ours}: it is no JSON; {elsewhere}"));
    let other = r#"{"schema": "other", "version": 1}"#;
    assert_eq!(refusal(other), format!("{not_ours}: it is JSON of something else; {elsewhere}"));
    assert!(refusal(r#"{"schema": "tokload.run", "vers"#).contains("it is JSON that breaks off in line 1"));
    let theirs = r#"{"completed": 3, "request_throughput": 1.5, "duration": 2.0}"#;
    assert!(refusal(theirs).contains("a result of vLLM's client; make one of it with tokload import FILE"));
    assert_eq!(
        refusal(r#"{"schema": "tokload.run", "version": 2, "levels": "of another form"}"#),
        "x.json has version 2 of the run file, this tokload reads up to 1: use a newer tokload"
    );
    let part = refusal(r#"{"schema": "tokload.run", "version": 1}"#);
    assert!(part.starts_with("x.json is a run file, but not a whole one: missing field"), "{part}");
}

#[test]
fn a_torn_last_record_is_counted_and_left_out() {
    in_directory(|dir| {
        let mut sample = sample();
        let destination = sample.write(dir.join("run.json"));
        let path = dir.join("run.records");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 100]).unwrap();
        let records = Records::open(&path).unwrap();
        assert_eq!((records.count(), records.torn_bytes()), (67, 28));
        assert_eq!(records.range(records.all()).unwrap().count(), 67);
        let loaded = Loaded::open(destination.path()).unwrap();
        let short = loaded.judged_by(&plan().slo).unwrap_err();
        assert!(matches!(short, ReadError::RecordsShort { wanted: 68, have: 67, .. }), "{short}");
    });
}

#[test]
fn foreign_record_files_are_refused() {
    in_directory(|dir| {
        sample().write(dir.join("run.json"));
        let path = dir.join("run.records");
        let whole = fs::read(&path).unwrap();
        let refused = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = whole.clone();
            change(&mut bytes);
            fs::write(&path, bytes).unwrap();
            Records::open(&path).unwrap_err()
        };
        assert!(matches!(refused(&|b| b.truncate(15)), ReadError::ForeignSideFile { .. }));
        assert!(matches!(refused(&|b| b[0] = b'X'), ReadError::ForeignSideFile { .. }));
        assert!(refused(&|b| b[8] = 2).to_string().ends_with("the only one that this tokload knows"));
        assert!(refused(&|b| b[12] = 64).to_string().ends_with("its items are of another size"));
        // The lower half of byte 19 of a record is its class.
        let mut bytes = whole.clone();
        bytes[16 + 128 * 5 + 19] = 0x0f;
        fs::write(&path, bytes).unwrap();
        let records = Records::open(&path).unwrap();
        let read: Vec<_> = records.range(records.all()).unwrap().collect();
        assert!(matches!(read.last(), Some(Err(ReadError::BadRecord { number: 5, .. }))));
        assert_eq!(read.len(), 6);
    });
}

#[test]
fn without_records_the_run_is_shown_but_not_judged() {
    in_directory(|dir| {
        let mut sample = sample();
        let destination = sample.write(dir.join("run.json"));
        fs::remove_file(dir.join("run.records")).unwrap();
        let loaded = Loaded::open(destination.path()).unwrap();
        assert!(matches!(loaded.records(), Err(ReadError::NoRecords { .. })));
        assert!(matches!(loaded.judged_by(&Slo::default()), Err(ReadError::NoRecords { .. })));
    });
}

#[test]
fn records_are_found_after_both_files_were_renamed() {
    in_directory(|dir| {
        sample().write(dir.join("run.json"));
        fs::rename(dir.join("run.json"), dir.join("kept.json")).unwrap();
        fs::rename(dir.join("run.records"), dir.join("kept.records")).unwrap();
        assert!(Loaded::open(&dir.join("kept.json")).unwrap().records().is_ok());
    });
}

#[test]
fn a_run_file_opens_nothing_outside_its_directory() {
    in_directory(|dir| {
        let inside = dir.join("inside");
        fs::create_dir(&inside).unwrap();
        let mut sample = sample();
        sample.write(dir.join("out.json"));
        sample.run.records = Some(SideFile { file: "../out.records".to_owned(), count: 68, item_bytes: 128 });
        fs::write(inside.join("run.json"), to_json(&sample.run)).unwrap();
        assert!(Loaded::open(&inside.join("run.json")).unwrap().records().is_err());
    });
}

#[test]
fn nothing_is_overwritten_without_force() {
    in_directory(|dir| {
        let mut sample = sample();
        let destination = sample.write(dir.join("run.json"));
        let unwritten = destination.write(&sample.run).unwrap_err();
        assert!(matches!(unwritten.error, WriteError::Exists { .. }));
        assert_eq!(unwritten.json, to_json(&sample.run), "what was measured comes back");
        assert!(matches!(destination.records(), Err(WriteError::Exists { .. })));
        let forced = Destination::at(dir.join("run.json"), true).unwrap();
        sample.run.label = Some("second".to_owned());
        forced.write(&sample.run).unwrap();
        assert_eq!(Loaded::open(forced.path()).unwrap().run.label.as_deref(), Some("second"));
    });
}

#[test]
fn a_directory_that_vanished_gives_the_numbers_back() {
    in_directory(|dir| {
        let gone = dir.join("gone");
        fs::create_dir(&gone).unwrap();
        let destination = Destination::at(gone.join("run.json"), false).unwrap();
        fs::remove_dir(&gone).unwrap();
        let run = sample().run;
        let unwritten = destination.write(&run).unwrap_err();
        assert_eq!(read::parse(&unwritten.json, Path::new("memory")).unwrap(), run);
        assert!(unwritten.error.to_string().starts_with("cannot write "), "{}", unwritten.error);
    });
}

#[test]
fn a_spool_that_lost_bytes_says_so_and_keeps_the_rest() {
    in_directory(|dir| {
        let destination = Destination::at(dir.join("run.json"), false).unwrap();
        let spool = destination.records().unwrap();
        let mut writer = spool.writer().unwrap();
        writer.write_all(&[0; 256]).unwrap();
        drop(writer);
        let part = spool.part().to_owned();
        // As a full disk would have it.
        fs::File::options().write(true).open(&part).unwrap().set_len(200).unwrap();
        assert!(matches!(spool.finish(), Err(WriteError::Lost { lost_bytes: 72, .. })));
        assert!(part.is_file() && !dir.join("run.records").exists());
    });
}

#[test]
fn an_unused_spool_leaves_nothing() {
    in_directory(|dir| {
        let destination = Destination::at(dir.join("run.json"), false).unwrap();
        drop(destination.records().unwrap());
        drop(destination.chunks().unwrap());
        assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
    });
}

#[test]
fn detailed_lines_carry_the_times_of_their_events() {
    in_directory(|dir| {
        let mut sample = sample();
        let destination = sample.write(dir.join("run.json"));
        let spool = destination_forced(dir).chunks().unwrap();
        let mut writer = spool.writer().unwrap();
        for record in &sample.records {
            for event in 0..u64::from(record.events) {
                let at = record.first.unwrap() + ms(event);
                writer.write_all(&at.as_nanos().to_le_bytes()).unwrap();
            }
        }
        drop(writer);
        sample.run.chunks = Some(spool.finish().unwrap());
        destination_forced(dir).write(&sample.run).unwrap();
        let mut out = Vec::new();
        Loaded::open(destination.path()).unwrap().export_detailed(&mut out).unwrap();
        let lines: Vec<Value> =
            String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 68);
        let (warm, failed, open) = (&lines[0], &lines[2 + 3], &lines[42 + 2]);
        assert_eq!((warm["phase"].as_str(), warm["plan_ms"].as_f64()), (Some("warmup"), Some(-900.0)));
        assert_eq!(
            (failed["outcome"].as_str(), failed["event_ms"].to_string()),
            (Some("http_429"), "[]".into())
        );
        assert_eq!(open["label"], "poisson 12.5/s cap 4");
        assert_eq!(open["first_ms"], 512.003);
        assert_eq!(open["event_ms"][7], 519.003);
        assert_eq!(open["tpot_ms"], 55.25);
        assert_eq!(open["cap_wait_ms"], 100.0);
    });
}

fn destination_forced(dir: &Path) -> Destination {
    Destination::at(dir.join("run.json"), true).unwrap()
}

/// A run file of every version stays here for ever.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[test]
fn old_run_files_still_load_and_give_their_numbers() {
    let loaded = Loaded::open(&golden("run.v1.json")).unwrap();
    assert_eq!(loaded.judged_by(&plan().slo).unwrap().levels, loaded.run.levels);
    let mut out = Vec::new();
    terminal::write(&View::new(&loaded.run, &[], None), Style::PLAIN, &mut out).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), fs::read_to_string(golden("run.v1.txt")).unwrap());
}

/// What is written today is what the golden file of its version holds. `TOKLOAD_REWRITE_GOLDEN=1 cargo test` writes the
/// golden files anew, which is right only while that version has not been released.
#[test]
fn the_present_version_is_written_as_its_golden_file_says() {
    in_directory(|dir| {
        let mut sample = sample();
        sample.write(dir.join("run.v1.json"));
        let mut shown = Vec::new();
        terminal::write(&View::new(&sample.run, &[], None), Style::PLAIN, &mut shown).unwrap();
        fs::write(dir.join("run.v1.txt"), shown).unwrap();
        for name in ["run.v1.json", "run.v1.records", "run.v1.txt"] {
            if std::env::var_os("TOKLOAD_REWRITE_GOLDEN").is_some() {
                fs::copy(dir.join(name), golden(name)).unwrap();
            }
            let same = fs::read(dir.join(name)).unwrap() == fs::read(golden(name)).unwrap();
            assert!(same, "{name} is written differently now: is that a new version of the format?");
        }
    });
}

#[test]
fn secrets_are_in_no_run_file() {
    let mut plan = plan();
    plan.target.headers.push(Header { name: "Authorization".to_owned(), value: "Bearer hush".to_owned() });
    plan.target.endpoints[0].url = "http://me:hush@host:8000".to_owned();
    plan.workload.extra_body.insert("api_key".to_owned(), "hush".into());
    let body = r#"{"auth":{"api_key":"hush"},"text":"{{prompt}}"}"#.to_owned();
    plan.target.raw = Some(tokload::api::Raw { body, ..Default::default() });
    let environment = EnvironmentBlock {
        command_line: ["--api-key", "hush", "--label", "sk-12345"].map(str::to_owned).to_vec(),
        ..EnvironmentBlock::default()
    };
    let mut run = RunFile::new(WallTime::from_unix_nanos(0), &plan, environment, TargetBlock::default());
    run.metadata.insert("db_password".to_owned(), "hush".to_owned());
    run.levels = sample().run.levels;
    run.levels[0].examples[0].message += ": sk-12345 is not a key";
    run.scrub(&["sk-12345"]);
    let text = to_json(&run);
    assert!(!text.contains("hush") && !text.contains("sk-12345"));
    assert!(text.contains("http://<removed>@host:8000") && text.contains("<removed> is not a key"));
}

fn data_block() -> DataBlock {
    DataBlock {
        format: "sharegpt".to_owned(),
        records: 9,
        prompts: 5,
        later_turns: 7,
        malformed: 1,
        malformed_first: vec!["s.json:2: id: missing".to_owned()],
        unanswered: 1,
        failed: 0,
        turns: 2,
        other_paths: 0,
        filtered: 2,
        images: 0,
        lengths_said: 1,
        lengths_estimated: 4,
        longest_prompt: None,
    }
}

fn trace_block() -> TraceBlock {
    TraceBlock {
        format: "mooncake".to_owned(),
        records: 9,
        requests: 5,
        later_turns: 2,
        prompt_tokens: 4726,
        last_ns: 3_000_000_000,
        malformed: 1,
        malformed_first: vec!["t.jsonl:2: input_length: below zero".to_owned()],
        failed: 1,
        other_model: 0,
        outside: 1,
        turns: 1,
        prompts_cut: 0,
        outputs_cut: 0,
        images: 0,
        longest_prompt: Some(1536),
    }
}

#[test]
fn a_written_file_conforms_to_the_published_schema() {
    let published = include_str!("../../tools/schema/tokload.run.v1.schema.json");
    let schema: Value = serde_json::from_str(published).unwrap();
    let valid: Value = serde_json::from_str(&to_json(&sample().run)).unwrap();
    assert_eq!(conforms(&schema, &schema, &valid, "run"), Ok(()));
    let until = Until { figure: "ttft_p99".parse().unwrap(), half_width: 0.05, times_max: 4 };
    let mut repeated = sample_of(&Plan { runs: 3, until: Some(until), ..plan() }).run;
    repeated.levels[0].lengthened =
        Some(LengthenedBlock { times: 4, reached: false, value: Some(5e6), low: Some(4e6), high: None });
    let group = |n, ttft| Group { n, prompt_tokens: 1000, cached_tokens: 10, ttft };
    let ttft = GroupTtft { p50: 1e6, p90: 2e6, p99: 3e6 };
    repeated.levels[0].cache_split =
        Some(CacheSplit { cut: 0.5, cached: group(10, Some(ttft)), uncached: group(30, None) });
    repeated.levels[0].reuse = Some(ReuseBlock { prompt_tokens: 1000, found_tokens: 10 });
    repeated.target.seen_before = Some(SeenBlock { runs: 2, last: repeated.created.clone() });
    repeated.target.prefix_cache_reset = Some(false);
    let level = &mut repeated.levels[0];
    (level.counts.cancelled_after_first, level.counts.cancelled_tokens) = (1, 7);
    (level.counts.slow_ok, level.counts.slow_failed) = (2, 1);
    let group = |of| GroupBlock {
        of,
        counts: level.counts.clone(),
        tokens: level.tokens.clone(),
        distributions: level.distributions.clone(),
        goodput: level.goodput,
        rates: Some(level.rates.window),
        sessions: 3,
        against: Vec::new(),
    };
    level.groups = [
        GroupKey::Model(1),
        GroupKey::Replica(2),
        GroupKey::Endpoint(0),
        GroupKey::SlowReaders,
        GroupKey::FreshConnections,
        GroupKey::ReusedConnections,
    ]
    .map(group)
    .into();
    let wait = DelayBlock { p50_ns: Some(1e6), p99_ns: None, max_ns: 2e6, n: 3 };
    level.self_check.connections = ConnectionsBlock {
        prewarmed: 4,
        tls_full: 2,
        tls_resumed: 7,
        wait: Some(wait),
        ..ConnectionsBlock::default()
    };
    let text = to_json(&repeated);
    assert_eq!(
        read::parse(&text, Path::new("run.json")).unwrap().levels[0].groups,
        repeated.levels[0].groups
    );
    repeated.trace = Some(trace_block());
    repeated.data = Some(data_block());
    repeated.levels[0].sessions = Some(Sessions { begun: 3, finished: 1, broken: 1, ..Sessions::default() });
    let of_level = &repeated.levels[0];
    repeated.levels[0].turns = Some(vec![TurnBlock {
        turn: 16,
        and_later: true,
        counts: of_level.counts.clone(),
        distributions: of_level.distributions.clone(),
        tokens: of_level.tokens.clone(),
    }]);
    let repeated: Value = serde_json::from_str(&to_json(&repeated)).unwrap();
    assert_eq!(conforms(&schema, &schema, &repeated, "run"), Ok(()));
    assert!(repeated["repeats"][1]["figures"]["ttft_p50"]["mean"].is_number());
    let broken = |pointer: &str, value: Value| {
        let mut file = valid.clone();
        *file.pointer_mut(pointer).unwrap() = value;
        conforms(&schema, &schema, &file, "run").unwrap_err()
    };
    assert_eq!(broken("/version", 2.into()), "run.version: not the constant");
    assert_eq!(
        broken("/levels/0/distributions/ttft/unit", "ms".into()),
        "run.levels[0].distributions.ttft.unit: not in the enum"
    );
    assert_eq!(
        broken("/levels/1/goodput/attainment", 1.5.into()),
        "run.levels[1].goodput: fits nothing of anyOf"
    );
    assert_eq!(broken("/levels/0/counts", serde_json::json!({})), "run.levels[0].counts: lacks planned");
    assert_eq!(broken("/metadata/gpu", 3.into()), "run.metadata.gpu: of another type");
}

/// Where a run file is not as the published schema has it.
pub(crate) fn against_the_schema(file: &Value) -> Result<(), String> {
    let published = include_str!("../../tools/schema/tokload.run.v1.schema.json");
    let schema: Value = serde_json::from_str(published).unwrap();
    conforms(&schema, &schema, file, "run")
}

/// The part of JSON Schema that the published file uses; an unknown keyword is an error, so that none is passed over.
/// Stricter than the standard in one thing: what we write must be described.
pub(crate) fn conforms(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let fail = |what: &str| Err(format!("{at}: {what}"));
    let schema = schema.as_object().unwrap();
    for (keyword, rule) in schema {
        let holds = match keyword.as_str() {
            "$defs" | "$id" | "$schema" | "title" | "description" | "patternProperties" => true,
            "$ref" => {
                let target = root.pointer(rule.as_str().unwrap().strip_prefix('#').unwrap()).unwrap();
                conforms(root, target, value, at)?;
                true
            }
            "anyOf" => {
                let fits = rule.as_array().unwrap().iter().any(|s| conforms(root, s, value, at).is_ok());
                if !fits {
                    return fail("fits nothing of anyOf");
                }
                true
            }
            "type" => {
                let one = |name: &Value| is_of(value, name.as_str().unwrap());
                if !rule.as_array().map_or_else(|| one(rule), |names| names.iter().any(one)) {
                    return fail("of another type");
                }
                true
            }
            "const" => {
                if rule != value {
                    return fail("not the constant");
                }
                true
            }
            "enum" => {
                if !rule.as_array().unwrap().contains(value) {
                    return fail("not in the enum");
                }
                true
            }
            "required" => {
                let Some(object) = value.as_object() else { continue };
                for key in rule.as_array().unwrap() {
                    if !object.contains_key(key.as_str().unwrap()) {
                        return fail(&format!("lacks {}", key.as_str().unwrap()));
                    }
                }
                true
            }
            "properties" | "additionalProperties" => true,
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    conforms(root, rule, item, &format!("{at}[{i}]"))?;
                }
                true
            }
            "exclusiveMinimum" => value.as_f64().is_none_or(|v| v > rule.as_f64().unwrap()),
            "minimum" => value.as_f64().is_none_or(|v| v >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|v| v <= rule.as_f64().unwrap()),
            "minItems" => value.as_array().is_none_or(|v| v.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|v| v.len() as u64 <= rule.as_u64().unwrap()),
            // Of the two patterns there are, length and zone say enough here; `wall` tests the form.
            "pattern" if rule == "^[^Z]*$" => value.as_str().is_none_or(|text| !text.contains('Z')),
            "pattern" => value.as_str().is_none_or(|text| text.len() == 30 && text.ends_with('Z')),
            unknown => panic!("{unknown} is not understood by this test"),
        };
        if !holds {
            return fail(keyword);
        }
    }
    let described = ["properties", "patternProperties", "additionalProperties"];
    if !described.iter().any(|keyword| schema.contains_key(*keyword)) {
        return Ok(());
    }
    for (key, member) in value.as_object().into_iter().flatten() {
        let place = format!("{at}.{key}");
        if let Some(described) = schema.get("properties").and_then(|p| p.get(key)) {
            conforms(root, described, member, &place)?;
        } else if let Some(patterns) = schema.get("patternProperties") {
            // All patterns of ours are names of percentiles.
            let name = key.strip_prefix('p').and_then(|p| p.parse::<tokload::stats::Quantile>().ok());
            assert!(name.is_some() && patterns.as_object().unwrap().len() == 1, "{place}");
            conforms(root, patterns.as_object().unwrap().values().next().unwrap(), member, &place)?;
        } else if let Some(further) = schema.get("additionalProperties").filter(|s| s.is_object()) {
            conforms(root, further, member, &place)?;
        } else {
            return Err(format!("{place}: not described"));
        }
    }
    Ok(())
}

fn is_of(value: &Value, name: &str) -> bool {
    match name {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        other => panic!("{other} is no type"),
    }
}
