//! The mock server as a child process: started, asked for the truth, and gone on every path.
//!
//! It reads a pipe whose other end only we hold, and stops when that closes, which the kernel does however we end; while
//! we live it is killed and waited for when its guard is dropped. It is in a process group of its own, so that Ctrl-C
//! reaches us first.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use serde::Deserialize;

use super::errors::{Off, Served};
use super::ladder::Step;
use super::shares::Cores;
use crate::cli::failure::Failure;
use crate::load::{Route, fetch};

/// A running mock server.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
    /// What it says on standard error, line by line.
    lines: Receiver<String>,
    /// Its base URL.
    pub(super) url: String,
}

/// What it did.
#[derive(Debug)]
pub(super) struct Truth {
    /// Requests by the marks of their bodies.
    pub(super) served: HashMap<u64, Served>,
    /// Gaps between the events of a stream.
    pub(super) itl: Off,
    /// How late it sent its events.
    pub(super) lateness: Off,
}

/// How long it may take to come up, and to tell the truth.
const START: Duration = Duration::from_secs(5);
const TELL: Duration = Duration::from_secs(5);

impl Server {
    /// Starts a server with the times of `step` on its share of the cores.
    ///
    /// # Errors
    /// This program cannot be started again, or it says why it cannot serve.
    pub(super) fn start(step: &Step, cores: &Cores) -> Result<Server, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::own(format!("the mock server cannot be started: {error}")))?;
        let mut command = Command::new(program);
        command.args(["mock-server", "--port", "0", "--keep-accounts", "--until-stdin-closes"]);
        command.args(["--ttft", &step.ttft_ms.to_string(), "--itl", &step.itl_ms.to_string()]);
        if !cores.server.is_empty() {
            let list: Vec<String> = cores.server.iter().map(ToString::to_string).collect();
            command.args(["--cpu-affinity", &list.join(",")]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| Failure::own(format!("the mock server cannot be started: {error}")))?;
        let (to, lines) = channel();
        let says = child.stderr.take();
        // From here on the guard ends the child.
        let mut server = Server { child, lines, url: String::new() };
        if let Some(says) = says {
            pass_on(says, to).map_err(Failure::own)?;
        }
        server.url = server.address()?;
        Ok(server)
    }

    /// What it did since it was last asked.
    ///
    /// # Errors
    /// It does not answer, or not as it should.
    pub(super) fn truth(&self, route: &Route) -> Result<Truth, Failure> {
        let told = fetch::get(route, "/truth/requests?reset", TELL)
            .map_err(|error| Failure::own(format!("the mock server does not tell the truth: {error}")))?;
        Truth::read(&told.body)
            .map_err(|error| Failure::own(format!("the mock server's truth cannot be read: {error}")))
    }

    /// The first line that names it.
    fn address(&self) -> Result<String, Failure> {
        let mut last = String::new();
        loop {
            match self.lines.recv_timeout(START) {
                Ok(line) => match url_in(&line) {
                    Some(url) => return Ok(url.to_owned()),
                    None => last = line,
                },
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Failure::own("the mock server does not come up within 5 s"));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::own(format!("the mock server ended at once: {last}")));
                }
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing that it could still say is wanted. Who has gone already cannot be killed, and is waited for all the same.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what the child says to its end: it must not find its pipe closed, nor full.
fn pass_on(says: ChildStderr, to: Sender<String>) -> std::io::Result<()> {
    let read = move || {
        for line in BufReader::new(says).lines().map_while(Result::ok) {
            // Nobody listens any more after the start.
            let _ = to.send(line);
        }
    };
    std::thread::Builder::new().name("mock".to_owned()).spawn(read).map(drop)
}

/// `mock server on http://127.0.0.1:40001, stop it with Ctrl-C`.
fn url_in(line: &str) -> Option<&str> {
    let url = &line[line.find("http://")?..];
    url.split([',', ' ']).next()
}

/// What `GET /truth/requests` tells, as far as it is used.
#[derive(Deserialize)]
struct Told {
    truth: Counted,
    requests: Vec<(u64, u64, u64, u64)>,
}

#[derive(Deserialize)]
struct Counted {
    itl: Spread,
    lateness: Spread,
}

#[derive(Deserialize)]
struct Spread {
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
}

impl Truth {
    fn read(body: &[u8]) -> serde_json::Result<Truth> {
        let Told { truth, requests } = serde_json::from_slice(body)?;
        let served = requests.into_iter();
        Ok(Truth {
            served: served
                .map(|(mark, arrived, first, last)| (mark, Served { arrived, first, last }))
                .collect(),
            itl: truth.itl.off(),
            lateness: truth.lateness.off(),
        })
    }
}

impl Spread {
    fn off(&self) -> Off {
        let ns = |us: f64| (us * 1e3).round() as i64;
        Off { p50_ns: ns(self.p50_us), p99_ns: ns(self.p99_us), max_ns: ns(self.max_us) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_what_the_server_says() {
        let line = "mock server on http://127.0.0.1:40001, stop it with Ctrl-C";
        assert_eq!(url_in(line), Some("http://127.0.0.1:40001"));
        assert_eq!(url_in("tokload: cannot listen"), None);
    }

    #[test]
    fn the_truth_is_read_as_the_mock_tells_it() {
        let body = br#"{"requests":[[18446744073709551615,1,2,3]],"truth":{"events":5,
            "itl":{"count":4,"p50_us":20000.0,"p99_us":20100.5,"max_us":20200.0},
            "lateness":{"p50_us":0.0,"p99_us":1.0,"max_us":2.5}}}"#;
        let truth = Truth::read(body).unwrap();
        assert_eq!(truth.served[&u64::MAX], Served { arrived: 1, first: 2, last: 3 });
        assert_eq!(truth.itl, Off { p50_ns: 20_000_000, p99_ns: 20_100_500, max_ns: 20_200_000 });
        assert_eq!(truth.lateness.max_ns, 2_500);
        assert!(Truth::read(b"{}").is_err());
    }
}
