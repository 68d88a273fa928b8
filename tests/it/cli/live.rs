//! A run that is looked at while it goes on.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use tokload::mock::Faults;

use super::{Dir, Running, json, mock, run, url};

impl Running {
    /// Where it says that metrics are, once it has said so.
    fn metrics_address(&self) -> String {
        for _ in 0..2000 {
            let said = fs::read_to_string(&self.err).unwrap();
            let address =
                said.lines().find_map(|line| line.split_once(" at http://")?.1.split_once("/metrics"));
            if let Some((address, _)) = address {
                return address.to_owned();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("it does not say where: {}", fs::read_to_string(&self.err).unwrap());
    }
}

/// The page, if somebody answers.
fn page(address: &str) -> Option<String> {
    let mut peer = TcpStream::connect(address).ok()?;
    peer.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").ok()?;
    let mut said = String::new();
    peer.read_to_string(&mut said).ok()?;
    Some(said.split_once("\r\n\r\n")?.1.to_owned())
}

fn value(page: &str, name: &str) -> f64 {
    let of = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    of.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

#[test]
fn metrics_grow_while_it_runs_and_nothing_that_is_done_to_them_disturbs_it() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(&url(&mock), "-c 2 --num-prompts 300 --metrics-listen 0 --output-file run.json");
    let running = dir.start(&line);
    let address = running.metrics_address();
    let _hangs = TcpStream::connect(&address).unwrap();
    let mut rude = TcpStream::connect(&address).unwrap();
    rude.write_all(&[0xff; 4096]).unwrap();
    drop(rude);
    let ok = "tokload_requests_total{outcome=\"ok\",part=\"window\"}";
    let pages: Vec<String> = std::iter::from_fn(|| page(&address)).collect();
    let said = running.end();
    assert_eq!(said.code, 0, "{said:?}");
    let last = pages.iter().rev().find(|page| page.contains(ok)).expect("a page with requests");
    assert!(last.contains("tokload_level_info{level=\"1\",load=\"2 users\"} 1.0"), "{last}");
    let counts = json(&dir.path("run.json"))["levels"][0]["counts"].clone();
    assert_eq!((&counts["ok"], &counts["failed"]), (&300.into(), &0.into()));
    assert!((1.0..=300.0).contains(&value(last, ok)), "{last}");
    assert_eq!(value(last, ok), value(last, "tokload_time_to_first_token_seconds_count{part=\"window\"}"));
}

#[test]
fn the_last_values_stay_for_who_asks_seldom_until_they_are_not_wanted() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = "-c 2 --num-prompts 20 --metrics-listen 0 --metrics-linger 50 --output-file run.json";
    let running = dir.start(&run(&url(&mock), line));
    let address = running.metrics_address();
    let lingers = || fs::read_to_string(&running.err).unwrap().contains("for 50 s more, Ctrl-C ends that");
    while !lingers() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // All is saved and shown by then.
    assert!(fs::read_to_string(&running.out).unwrap().contains("saved run.json"));
    let last = page(&address).expect("it is still there");
    assert_eq!(value(&last, "tokload_requests_total{outcome=\"ok\",part=\"window\"}"), 20.0);
    let process = rustix::process::Pid::from_child(&running.child);
    rustix::process::kill_process(process, rustix::process::Signal::INT).unwrap();
    let said = running.end();
    assert_eq!(said.code, 0, "{said:?}");
    assert!(page(&address).is_none());
    dir.tokload("run --base-url http://127.0.0.1:9 --metrics-linger 5").refuses(2, &["--metrics-listen"]);
}

#[test]
fn what_cannot_be_shown_is_said_before_anything_is_sent() {
    let dir = Dir::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let nobody = "run --base-url http://127.0.0.1:9 -c 1";
    let said = dir.tokload(&format!("{nobody} --metrics-listen {port}"));
    said.refuses(2, &[&format!("--metrics-listen 127.0.0.1:{port}"), "in use", "name a free port"]);
    dir.tokload(&format!("{nobody} --metrics-listen x")).refuses(2, &["'x'", "127.0.0.1:9464"]);
    dir.tokload(&format!("{nobody} --ui tv")).refuses(2, &["'tv'", "dashboard, simple or none"]);
    dir.tokload(&format!("{nobody} --ui dashboard -q"))
        .refuses(2, &["--quiet", "contradicts --ui dashboard"]);
    dir.tokload(&format!("{nobody} --ui simple --no-progress")).refuses(2, &["contradicts --ui"]);
    let remedy =
        if cfg!(feature = "dashboard") { "terminal on standard error" } else { "--features dashboard" };
    dir.tokload(&format!("{nobody} --ui dashboard")).refuses(2, &["--ui dashboard", remedy]);
    dir.tokload("quick --base-url http://127.0.0.1:9 --ui dashboard").refuses(2, &["--ui dashboard", remedy]);
    assert_eq!(dir.names(), Vec::<String>::new());
}
