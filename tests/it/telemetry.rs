//! Telemetry: what a server says is joined to the level that it was said in, and whoever says nothing, nonsense or too much
//! costs a line of the report.

use std::io::{Read as _, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use tokload::load::{Route, RouteParts, tls};
use tokload::metrics::Meter;
use tokload::mock::{self, Mock};
use tokload::model::Settings;
use tokload::plan::{Endpoint, Nvml, Plan, Telemetry as Wished};
use tokload::report::{Style, View, csv, terminal};
use tokload::summary::telemetry::{ExporterSeen, Observed};
use tokload::sys::clock::RunClock;
use tokload::telemetry::{Ask, Library, Page, Setup, Telemetry, Whom};
use tokload::{Run, Runner};

const GOOD: &str = "vllm:num_requests_running 3\nvllm:generation_tokens_total 5\n";

/// An exporter whose answers `answer` writes, each on a thread of its own; its address.
fn exporter(answer: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(mut stream), answer) = (stream, Arc::clone(&answer)) else { return };
            std::thread::spawn(move || {
                let _ = stream.read(&mut [0; 4096]);
                answer(&mut stream);
            });
        }
    });
    address
}

/// One that answers with these bytes.
fn saying(answer: impl Into<Vec<u8>>) -> String {
    let answer = answer.into();
    exporter(move |stream| drop(stream.write_all(&answer)))
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn page(address: &str) -> Page {
    let address = Endpoint::parse(address).unwrap();
    let parts = RouteParts {
        address: &address,
        path: "/".to_owned(),
        headers: Vec::new(),
        tls: tls::config(&tls::Trust::anyone()).unwrap(),
    };
    Page {
        route: Route::new(parts).unwrap(),
        path: "/metrics".to_owned(),
        patterns: Vec::new(),
        limit: Duration::from_millis(300),
    }
}

fn asked(whom: Vec<(&str, Whom)>, quietly: bool, looks: u32, patience: Duration) -> Observed {
    let asks = whom.into_iter().map(|(name, whom)| Ask { name: name.to_owned(), whom, quietly }).collect();
    let telemetry =
        Telemetry::start(Setup { clock: RunClock::start(), interval: Duration::from_secs(60), asks });
    for _ in 1..looks {
        std::thread::sleep(Duration::from_millis(60));
        telemetry.look();
    }
    telemetry.finish(patience)
}

fn of_server(address: &str) -> ExporterSeen {
    let observed = asked(vec![("x", Whom::Server(page(address)))], false, 1, Duration::from_secs(5));
    observed.exporters.into_iter().next().unwrap()
}

#[test]
fn a_broken_exporter_is_one_line_and_no_more() {
    let endless = |stream: &mut TcpStream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        // A gibibyte, if it is taken.
        let lines = b"vllm:num_requests_running 1\n".repeat(40_000);
        for _ in 0..1_000 {
            if stream.write_all(&lines).is_err() {
                return;
            }
        }
    };
    for (address, expected) in [
        (saying(http("500 Internal Server Error", "", "")), "HTTP 500"),
        (saying(http("302 Found", "Location: http://127.0.0.1:1/\r\n", "")), "sends elsewhere"),
        (saying(http("200 OK", "", "<!doctype html><h1>Grafana</h1>")), "HTML"),
        (saying(http("200 OK", "", "{\"a\": 1}")), "no Prometheus text"),
        (
            saying(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\x00"),
            "compressed",
        ),
        (saying("\x00\x01\x02 no http at all\r\n\r\n"), "no HTTP"),
        (saying(http("200 OK", "", "up 1\n")), "no series that is known"),
        (exporter(|_| {}), "no HTTP"),
        (exporter(endless), "larger than 16 MiB"),
        (exporter(|_| std::thread::sleep(Duration::from_secs(3))), "no whole answer within 0.3 s"),
        (
            exporter(|stream| {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n");
                while stream.write_all(b"x").is_ok() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }),
            "no whole answer within 0.3 s",
        ),
    ] {
        let seen = of_server(&address);
        assert!(seen.sources.is_empty() && seen.answered == 0, "{expected}: {seen:?}");
        assert_eq!(seen.troubles.len(), 1, "{seen:?}");
        assert!(seen.troubles[0].what.contains(expected), "{expected}: {seen:?}");
    }
}

#[test]
fn whoever_hangs_delays_nobody_and_whoever_lies_is_believed_no_more_than_a_number() {
    let hangs = exporter(|_| std::thread::sleep(Duration::from_secs(3)));
    let lies = saying(http(
        "200 OK",
        "",
        "vllm:num_requests_running 1e300\nvllm:num_requests_waiting -1e308\nvllm:generation_tokens_total -5\nvllm:kv_cache_usage_perc NaN\n",
    ));
    let good = saying(http("200 OK", "", GOOD));
    let whom = [&hangs, &lies, &good].map(|address| Whom::Server(page(address)));
    let clock = RunClock::start();
    let observed = asked(
        ["hangs", "lies", "good"].into_iter().zip(whom).collect(),
        false,
        1,
        Duration::from_millis(150),
    );
    assert!(clock.now().as_secs_f64() < 0.3, "the end waited for who hangs: {}", clock.now());
    let [hangs, lies, good] = &observed.exporters[..] else { panic!("{observed:?}") };
    assert_eq!((hangs.answered, hangs.troubles.len()), (0, 1));
    assert!(lies.sources[0].tracks.values().all(tokload::stats::Track::is_empty));
    assert_eq!(good.sources[0].last(Meter::Running), Some(3.0));
}

#[test]
fn nobody_speaks_of_a_server_that_was_not_named_and_has_no_metrics() {
    let address = saying(http("404 Not Found", "", "{\"detail\":\"Not Found\"}"));
    let observed = asked(vec![("x", Whom::Server(page(&address)))], true, 2, Duration::from_secs(5));
    assert_eq!(observed.exporters, []);
    assert_eq!(of_server(&address).troubles[0].what, "HTTP 404");
}

fn level_of(run: &Run) -> tokload::summary::telemetry::LevelTelemetry {
    run.file().levels[0].telemetry.clone().expect("the mock has said something")
}

/// A run of 12 requests by 3 users on a mock with a TTFT of 20 ms.
fn run(change: impl FnOnce(&mut Plan, &str)) -> Run {
    let serving = Settings::fixed(20.0, 1.0);
    let server = Mock::start(mock::Settings { serving, ..mock::Settings::default() }).unwrap();
    let url = format!("http://{}", server.address());
    let mut plan = Plan::builder(&url).users([3]).requests(12).warmups(2).output_tokens(4).build().unwrap();
    change(&mut plan, &url);
    Runner::new().run(&plan).unwrap()
}

#[test]
fn a_servers_own_metrics_are_those_of_the_level_alone() {
    let run = run(|plan, _| {
        // Long enough for readings within it, however busy the machine.
        plan.levels[0].stop.units = Some(120);
        plan.telemetry.interval_s = 0.1;
    });
    let told = level_of(&run);
    let [server] = &told.servers[..] else { panic!("{told:?}") };
    assert_eq!(server.product.as_deref(), Some("vLLM"));
    // The warm-up and the client's own question before it are not in it.
    assert_eq!((server.output_tokens, server.ttft.map(|ttft| ttft.n)), (Some(480.0), Some(120.0)));
    assert!(server.running.is_some_and(|running| running.max <= 3.0), "{server:?}");
    let network = told.network.unwrap();
    let difference = network.difference_ms.unwrap();
    assert!(network.server_ttft_ms >= 20.0 && difference.abs() < 20.0, "{network:?}");
    let exporters = &run.file().telemetry.as_ref().unwrap().exporters;
    let names: Vec<&str> = exporters.iter().map(|exporter| exporter.name.as_str()).collect();
    assert!(names.len() == 2 && names[0].ends_with("/metrics") && names[1] == "client", "{names:?}");
    assert!(exporters.iter().all(|exporter| exporter.troubles.is_empty()), "{exporters:?}");
    let mut table = Vec::new();
    terminal::write(&View::new(run.file(), &[], None), Style::PLAIN, &mut table).unwrap();
    let table = String::from_utf8(table).unwrap();
    assert!(table.contains("mean TTFT ms") && table.contains("between"), "{table}");
    let mut rows = Vec::new();
    csv::write(run.file(), &mut rows).unwrap();
    let rows = String::from_utf8(rows).unwrap();
    let rows: Vec<Vec<&str>> = rows.lines().map(|line| line.split(',').collect()).collect();
    let cell = |head: &str| rows[1][rows[0].iter().position(|other| *other == head).expect(head)];
    let written: f64 = cell("server_ttft_mean_ms").parse().unwrap();
    assert!((written / network.server_ttft_ms - 1.0).abs() < 1e-12, "{rows:?}");
    assert_eq!((cell("gpus"), rows[0].len()), ("", rows[1].len()), "{rows:?}");
}

#[test]
fn series_are_taken_by_name_and_a_page_that_is_named_twice_is_one() {
    let run = run(|plan, url| {
        plan.telemetry.server_metrics = vec![format!("{url}/metrics")];
        plan.telemetry.server_metrics_match = vec!["vllm:request_success_*".to_owned()];
    });
    let told = level_of(&run);
    assert_eq!(told.servers.len(), 1);
    let counters: Vec<(&str, f64)> =
        told.servers[0].counters.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    let length = counters.iter().find(|(name, _)| name.contains("finished_reason=\"length\"")).unwrap();
    assert_eq!((counters.len(), length.1), (4, 12.0));
}

#[test]
fn without_telemetry_a_run_says_nothing_of_servers() {
    let run = run(|plan, _| plan.telemetry = Wished::off());
    let told = run.file().levels[0].telemetry.as_ref();
    assert!(told.is_none_or(|told| told.servers.is_empty() && told.gpus.is_empty()), "{told:?}");
    let mut rows = Vec::new();
    csv::write(run.file(), &mut rows).unwrap();
    assert!(!String::from_utf8(rows).unwrap().contains("server_"));
}

#[test]
fn a_password_in_the_url_of_a_page_is_not_stored() {
    let run = run(|plan, url| {
        plan.telemetry.server_metrics = vec![url.replace("http://", "http://ann:hunter2@") + "/metrics"];
    });
    assert!(!run.to_json().contains("hunter2"));
    assert_eq!(level_of(&run).servers.len(), 1);
}

/// The stand-in for NVIDIA's library, compiled.
fn stand_in(folder: &std::path::Path) -> String {
    let library = folder.join("libnvidia-ml.so.1");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/stubs/nvml.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let built = Command::new(rustc)
        .args([
            "--edition",
            "2024",
            "--crate-type",
            "cdylib",
            "--crate-name",
            "nvml_stand_in",
            "-C",
            "panic=abort",
            "-o",
        ])
        .args([&library, std::path::Path::new(source)])
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    library.to_str().unwrap().to_owned()
}

#[test]
fn gpus_of_the_machine_are_read_through_nvidias_library() {
    let folder = tempfile::tempdir().unwrap();
    let path = stand_in(folder.path());
    let gpus = |indices: &[u32]| {
        let library = Library { path: Some(path.clone()), indices: indices.to_vec() };
        asked(vec![("gpus", Whom::Gpus(library))], false, 3, Duration::from_secs(5)).exporters.remove(0)
    };
    let all = gpus(&[]);
    let names: Vec<&str> = all.sources.iter().map(|source| source.name.as_str()).collect();
    assert_eq!(names, ["GPU 0", "GPU 1", "GPU 2"]);
    let last = |gpu: usize, meter| all.sources[gpu].last(meter);
    assert_eq!((last(0, Meter::GpuUse), last(1, Meter::GpuUse)), (Some(0.8), Some(0.4)));
    assert_eq!((last(0, Meter::Power), last(1, Meter::Power)), (Some(500.0), Some(250.0)));
    assert_eq!((last(0, Meter::GpuMemory), last(1, Meter::GpuMemory)), (Some(64.0 * 1_073_741_824.0), None));
    assert_eq!((last(0, Meter::SmClock), last(0, Meter::MemoryClock)), (Some(1_980.0), Some(3_201.0)));
    assert_eq!((last(0, Meter::PcieOut), last(0, Meter::PcieIn)), (Some(2e6), Some(3e6)));
    // 50 J with each look.
    let looks = all.answered as f64;
    assert!(looks >= 2.0);
    assert_eq!(last(0, Meter::Energy), Some((looks - 1.0) * 50.0));
    // 3 MiB sent and 1 MiB received with each look; the second GPU has no links, which is nobody's trouble.
    assert_eq!(last(0, Meter::Nvlink), Some((looks - 1.0) * 4.0 * 1_048_576.0));
    assert_eq!(last(1, Meter::Nvlink), None);
    let held = &all.sources[0].tracks[&(Meter::Throttle, "power cap".to_owned())];
    assert_eq!(held.last(), Some(1.0));
    assert!(all.sources[2].tracks.is_empty());
    assert!(all.troubles.len() == 1 && all.troubles[0].what.starts_with("GPU 2: "), "{:?}", all.troubles);
    let chosen = gpus(&[1, 7]);
    assert_eq!(chosen.sources[0].name, "GPU 1");
    assert_eq!(chosen.troubles[0].what, "--gpu-index 7: there are 3, from 0 on");
}

#[test]
fn a_run_has_its_gpus_tokens_per_joule() {
    let folder = tempfile::tempdir().unwrap();
    let path = stand_in(folder.path());
    let run = run(|plan, _| {
        // A power is what was read within the level, so the level is many readings long, however busy the machine.
        plan.levels[0].stop.units = Some(150);
        plan.telemetry = Wished {
            nvml: Nvml::On,
            nvml_library: Some(path),
            gpu_index: vec![1],
            interval_s: 0.1,
            ..Wished::default()
        };
    });
    let told = level_of(&run);
    let efficiency = told.efficiency.unwrap();
    let out_tok_s = run.levels()[0].rates.window.out_tok_s;
    // It has no counter of energy, but power: 250 W all the time.
    assert!(told.gpus[0].energy_by_power && told.gpus[0].product.as_deref() == Some("Stand-in 9000"));
    assert!((efficiency.power_w.unwrap() - 250.0).abs() < 1e-6, "{efficiency:?}");
    assert!((efficiency.tok_per_joule.unwrap() - out_tok_s / 250.0).abs() < 1e-9, "{efficiency:?}");
    assert!((efficiency.tok_s_per_gpu - out_tok_s).abs() < 1e-9);
}

/// On a machine with an NVIDIA GPU this reads the real one, on any other it sees that nobody misses it:
/// `cargo test --test it a_real_gpu -- --nocapture` shows what it said.
#[test]
fn a_real_gpu_is_read_where_there_is_one() {
    let observed = asked(vec![("gpus", Whom::Gpus(Library::default()))], true, 3, Duration::from_secs(10));
    let Some(gpus) = observed.exporters.first() else {
        println!("no GPU on this machine");
        return;
    };
    println!("{gpus:#?}");
    for gpu in &gpus.sources {
        let last = |meter| gpu.last(meter).unwrap_or_else(|| panic!("{}: no {meter:?}", gpu.name));
        assert!((0.0..=1.0).contains(&last(Meter::GpuUse)));
        assert!(last(Meter::GpuMemoryAll) > 1e9 && last(Meter::GpuMemory) <= last(Meter::GpuMemoryAll));
        assert!((1.0..5_000.0).contains(&last(Meter::Power)) && last(Meter::Energy) >= 0.0);
        assert!((0.0..120.0).contains(&last(Meter::Temperature)) && last(Meter::SmClock) > 0.0);
    }
}
