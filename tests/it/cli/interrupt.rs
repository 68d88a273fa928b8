//! What stops a run from outside: the user, once and twice, and a server that dies.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokload::mock::Faults;

use super::canned::{Canned, models, stream};
use super::{Dir, Running, json, mock, mock_at, run, url};

impl Running {
    pub(super) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }
}

/// A server that answers well, but each request only after `pause`.
fn slow(pause: Duration) -> Canned {
    Canned::start(move |asked| {
        if !asked.is_post() {
            return models();
        }
        // The request before the run and the warm-up are not held up.
        if asked.posts >= 2 {
            std::thread::sleep(pause);
        }
        stream()
    })
}

#[test]
fn ctrl_c_once_ends_the_open_requests_and_saves_what_there_is() {
    let (dir, canned) = (Dir::new(), slow(Duration::from_millis(5)));
    let running = dir.start(&run(&canned.url(), "-c 2 --duration 300 --output-file run.json"));
    canned.wait_for_posts(12);
    running.interrupt();
    let said = running.end();
    assert!(said.shows(130).contains("interrupted"), "{said:?}");

    let stored = json(&dir.path("run.json"));
    assert_eq!(stored["interrupted"], true);
    let counts = &stored["levels"][0]["counts"];
    assert!(counts["ok"].as_u64().unwrap() >= 8, "{counts}");
    assert_eq!(counts["failed"], 0);
    assert!(dir.path("run.records").exists());
    let again = dir.tokload("report run.json");
    assert_eq!(again.numbers(), said.numbers());
    assert_eq!(again.code, 0);
}

#[test]
fn ctrl_c_twice_ends_at_once() {
    // Nothing is answered within the grace period of an hour.
    let (dir, canned) = (Dir::new(), slow(Duration::from_secs(3600)));
    let line = run(&canned.url(), "-c 2 --duration 300 --benchmark-grace-period 3600 --output-file run.json");
    let running = dir.start(&line);
    canned.wait_for_posts(4);
    running.interrupt();
    std::thread::sleep(Duration::from_millis(200));
    running.interrupt();
    let said = running.end();
    assert_eq!(said.code, 130, "{said:?}");
    assert!(said.out.contains("interrupted"), "{said:?}");
    let counts = json(&dir.path("run.json"))["levels"][0]["counts"].clone();
    assert_eq!((&counts["planned"], &counts["ok"]), (&2.into(), &0.into()), "{counts}");
    assert_eq!(counts["outcomes"][0]["outcome"]["class"], "unfinished");
}

#[test]
fn a_start_that_is_far_ahead_is_said_and_ctrl_c_ends_the_wait() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let line = run(&url(&mock), "-c 2 --num-prompts 4 --start-at +7200 --no-progress --output-file run.json");
    let running = dir.start(&line);
    running.wait_for("(UTC), in ");
    running.interrupt();
    let said = running.end();
    assert_eq!((said.code, said.out.as_str()), (130, ""), "{said:?}");
    let line = said.err.lines().find(|line| line.contains("the run starts at 20")).unwrap();
    assert!(line.contains("in 2 h 0 min: Ctrl-C ends the waiting"), "{line}");
    assert!(
        said.err.lines().last().unwrap().contains("nothing was measured, and nothing is saved"),
        "{said:?}"
    );
    assert_eq!(dir.names(), [""; 0]);
    dir.tokload(&run(&url(&mock), "--start-at 2026-12-01T18:00:00"))
        .refuses(2, &["--start-at", "of which time zone", "2026-12-01T18:00:00Z", "+01:00"]);
}

#[test]
fn ctrl_c_in_the_warm_up_leaves_nothing() {
    // The request before the run is answered; those of the warm-up are not.
    let canned = Canned::start(|asked| {
        if asked.is_post() && asked.posts >= 1 {
            std::thread::sleep(Duration::from_secs(3600));
        }
        if asked.is_post() { stream() } else { models() }
    });
    let dir = Dir::new();
    let running = dir.start(&run(&canned.url(), "-c 2 --duration 300 --output-file run.json"));
    canned.wait_for_posts(2);
    running.interrupt();
    // The open request has its grace period, which the second Ctrl-C ends.
    std::thread::sleep(Duration::from_millis(200));
    running.interrupt();
    let said = running.end();
    assert_eq!((said.code, said.out.as_str()), (130, ""), "{said:?}");
    assert!(said.err.contains("nothing was measured, and nothing is saved"), "{said:?}");
    assert_eq!(dir.names(), [""; 0]);
}

#[test]
fn a_signal_ends_the_wait_for_a_server() {
    let dir = Dir::new();
    let running = dir.start(&run("http://127.0.0.1:9", "--ready-check-timeout-sec 3000"));
    std::thread::sleep(Duration::from_millis(200));
    // Not Ctrl-C: a shell that runs the tests in the background has it ignored, here as well.
    kill_process(Pid::from_child(&running.child), Signal::TERM).unwrap();
    let said = running.end();
    assert_ne!(said.code, 0);
    assert!(dir.names().is_empty());
}

#[test]
fn a_server_that_dies_and_comes_back_costs_requests_but_not_the_run() {
    let (dir, first) = (Dir::new(), mock(Faults::default()));
    let port = first.address().port();
    let line = run(
        &url(&first),
        "--request-rate 200 --duration 3 --benchmark-grace-period 5 --output-file run.json",
    );
    let running = dir.start(&line);
    // Well after the warm-up, however slowly the program has come up.
    while first.truth(false).completed() < 120 {
        std::thread::sleep(super::LOOK);
    }
    first.stop().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let _second = mock_at(port, Faults::default());
    let said = running.end();
    said.shows(0);
    let counts = json(&dir.path("run.json"))["levels"][0]["counts"].clone();
    let count = |what: &str| counts[what].as_u64().unwrap();
    assert!(count("ok") > 100 && count("failed") > 10, "{counts}");
    assert_eq!(count("ok") + count("failed") + count("cancelled"), count("planned"));
    assert!(said.out.contains("connect"), "{}", said.out);
}

#[test]
fn a_server_that_dies_for_good_does_not_hang_the_run() {
    let (dir, mock) = (Dir::new(), mock(Faults::default()));
    let running = dir.start(&run(&url(&mock), "-c 4 --duration 2 --benchmark-grace-period 2 --no-save"));
    std::thread::sleep(Duration::from_millis(800));
    mock.stop().unwrap();
    let said = running.end();
    assert!([0, 1, 3].contains(&said.code), "{said:?}");
}
