//! `selftest` from outside: what it finds, what it stores, what a run says of it, and that no server is left behind.
//!
//! How large the errors are is this machine's business, which may be busy with other tests: figures are held to be sane,
//! not small.

use super::*;

/// Servers that were started for this directory's state and still run.
fn servers_of(dir: &Dir) -> Vec<u32> {
    let state = dir.state.path().as_os_str().as_encoded_bytes().to_owned();
    let holds = |text: &[u8], part: &[u8]| text.windows(part.len()).any(|window| window == part);
    let is_ours = |pid: &u32| {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        // A process that has ended and is not waited for yet has neither.
        holds(&read("cmdline"), b"--until-stdin-closes") && holds(&read("environ"), &state)
    };
    let pids = fs::read_dir("/proc").unwrap();
    pids.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok()).filter(is_ours).collect()
}

/// Waits until `holds`.
fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let clock = RunClock::start();
    while !holds() {
        assert!(clock.now().as_secs_f64() < 20.0, "in vain: {what}");
        std::thread::sleep(LOOK);
    }
}

#[test]
fn a_selftest_is_printed_and_stored_and_quoted_by_runs() {
    let dir = Dir::new();
    let clock = RunClock::start();
    let said = dir.tokload("selftest --budget 6s --format json -q");
    assert!(clock.now().as_secs_f64() < 12.0, "it took {:?}", clock.now());
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
    assert_eq!(servers_of(&dir), [0; 0]);
    let told: Value = serde_json::from_str(&said.out).unwrap();
    let stored = fs::read_to_string(dir.state.path().join("selftest.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&stored).unwrap(), told);

    let step = &told["steps"][0];
    assert_eq!((&step["step"]["streams"], &step["step"]["ttft_ms"]), (&1.into(), &100.0.into()));
    // Two answers of 13 tokens, each in the server's accounts.
    assert_eq!((&step["requests"], &step["failed"], &step["unknown"]), (&2.into(), &0.into(), &0.into()));
    assert_eq!(step["events"], 26);
    let ttft = step["ttft"]["p50_ns"].as_i64().unwrap();
    assert!((0..1_000_000_000).contains(&ttft), "{step}");
    assert_eq!(told["sends"]["sends"], 300);
    assert!(
        told["remarks"]
            .as_array()
            .unwrap()
            .iter()
            .any(|remark| remark.as_str().unwrap().starts_with("10000"))
    );

    let mock = mock(Faults::default());
    let line =
        format!("run --base-url {} --max-concurrency 30 --num-prompts 60 --random-output-len 2", url(&mock));
    let said = dir.tokload(&format!("{line} --output-file a.json"));
    assert!(said.shows(0).contains("selftest of 20"), "{said:?}");
    let run: Value = serde_json::from_str(&fs::read_to_string(dir.path("a.json")).unwrap()).unwrap();
    assert_eq!(run["environment"]["selftest"]["created"], told["created"]);

    // One that vouches for little is exceeded, and another machine's is said to be one.
    let mut other = told;
    other["limit"] = serde_json::json!({ "streams": 10, "events_s": 100, "fails_at": 100 });
    other["machine"]["cpu_model"] = "another".into();
    fs::write(dir.state.path().join("selftest.json"), other.to_string()).unwrap();
    let said = dir.tokload(&format!("{line} --no-save"));
    assert!(said.err.contains("the plan asks for 30 streams, beyond 10 streams / 100 events/s"), "{said:?}");
    assert!(said.numbers().contains("! 30 users: it had 30 streams and "), "{said:?}");
    assert!(said.numbers().contains("up to 10 streams / 100 events/s; made "), "{said:?}");
    assert!(said.numbers().contains("made with another CPU: make a new one by tokload selftest"), "{said:?}");

    fs::write(dir.state.path().join("selftest.json"), "{").unwrap();
    let said = dir.tokload(&format!("{line} --no-save"));
    assert!(!said.shows(0).contains("selftest"), "{said:?}");
    assert!(said.err.contains("selftest.json is no selftest of ours"), "{said:?}");
}

#[test]
fn no_server_outlives_a_selftest_however_it_ends() {
    let dir = Dir::new();
    let mut killed = dir.start("selftest --quick -q");
    wait_for("a server of the selftest", || !servers_of(&dir).is_empty());
    killed.child.kill().unwrap();
    killed.child.wait().unwrap();
    wait_for("the end of the server", || servers_of(&dir).is_empty());

    let interrupted = dir.start("selftest --quick -q");
    wait_for("a server of the selftest", || !servers_of(&dir).is_empty());
    let pid = rustix::process::Pid::from_child(&interrupted.child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let said = interrupted.end();
    assert_eq!(said.code, 130, "{said:?}");
    assert_eq!(servers_of(&dir), [0; 0]);
    assert!(!dir.state.path().join("selftest.json").exists());
}
