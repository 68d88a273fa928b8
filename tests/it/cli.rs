//! The built program from outside: what it says, what it writes, and how it ends.
//!
//! Servers are the mock, in this process, or a canned one where the mock is too well-behaved.

mod aiperf;
mod backends;
mod bad_input;
mod behaviour;
mod cache;
mod canned;
mod check;
mod conversations;
mod data;
mod endpoints;
mod find_capacity;
mod fleet;
mod histograms;
mod imported;
mod interrupt;
mod live;
mod merge;
mod merge_cut;
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
mod prefixes;
mod quick;
mod readme;
mod repeats;
mod replay;
mod secrets;
mod selftest;
mod soak;
mod stored;
mod together;
mod tokens;
mod unwritable;
mod verdict;
mod views;
mod vllm;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokload::mock::{Faults, Mock, Settings};
use tokload::model;
use tokload::sys::clock::RunClock;

/// A working directory of a test's own.
struct Dir {
    work: TempDir,
    /// What programs print goes to files of their own place: a pipe could fill up.
    prints: TempDir,
    /// What programs remember: nothing of the user's, and nothing of another test's.
    state: TempDir,
}

/// A program that runs.
struct Running {
    child: Child,
    out: PathBuf,
    err: PathBuf,
}

/// A program that has ended.
#[derive(Debug)]
struct Said {
    code: i32,
    out: String,
    err: String,
}

/// No command of these tests takes longer.
const LIMIT: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

impl Dir {
    fn new() -> Dir {
        let [work, prints, state] = [(); 3].map(|()| TempDir::new().unwrap());
        Dir { work, prints, state }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// The names in the directory, sorted.
    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.work.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Runs `tokload` with the words of `line` to its end.
    fn tokload(&self, line: &str) -> Said {
        self.start(line).end()
    }

    fn start(&self, line: &str) -> Running {
        self.start_with(line, |_| {})
    }

    fn start_with(&self, line: &str, adjust: impl FnOnce(&mut Command)) -> Running {
        let number = fs::read_dir(self.prints.path()).unwrap().count();
        let [out, err] = ["out", "err"].map(|kind| self.prints.path().join(format!("{number}.{kind}")));
        let mut command = Command::new(env!("CARGO_BIN_EXE_tokload"));
        command.args(line.split_whitespace()).current_dir(self.work.path());
        // What may have started the tests is not what starts the programs.
        for launcher in ["SLURM_STEP_ID", "SLURM_STEPID"] {
            command.env_remove(launcher);
        }
        for launcher in ["OMPI_COMM_WORLD", "PMI", "PMIX"] {
            command.env_remove(format!("{launcher}_RANK")).env_remove(format!("{launcher}_SIZE"));
        }
        for name in ["JOB_COMPLETION_INDEX", "JOB_COMPLETIONS", "TOKLOAD_COMPLETIONS", "TOKLOAD_JOB"] {
            command.env_remove(name);
        }
        command.env_remove("OPENAI_API_KEY").env("TOKLOAD_STATE_DIR", self.state.path()).stdin(Stdio::null());
        command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap());
        adjust(&mut command);
        Running { child: command.spawn().unwrap(), out, err }
    }
}

impl Running {
    /// Waits until it has said `part` on standard error.
    fn wait_for(&self, part: &str) {
        let clock = RunClock::start();
        while !fs::read_to_string(&self.err).unwrap().contains(part) {
            assert!(clock.now().as_secs_f64() < LIMIT.as_secs_f64(), "it has not said {part:?}");
            std::thread::sleep(LOOK);
        }
    }

    fn end(mut self) -> Said {
        let clock = RunClock::start();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if clock.now().as_secs_f64() > LIMIT.as_secs_f64() {
                self.child.kill().unwrap();
                panic!("it hangs; it said: {}", fs::read_to_string(&self.err).unwrap());
            }
            std::thread::sleep(LOOK);
        };
        let said = Said {
            code: status.code().unwrap_or(-1),
            out: fs::read_to_string(&self.out).unwrap(),
            err: fs::read_to_string(&self.err).unwrap(),
        };
        assert!(!said.err.contains("panicked"), "{}", said.err);
        said
    }
}

impl Said {
    /// It failed with `code`, one sentence that has all of `parts`, and nothing on standard output.
    #[track_caller]
    fn refuses(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        assert_eq!(self.out, "", "{self:?}");
        assert_eq!(self.err.lines().count(), 1, "{self:?}");
        assert!(self.err.starts_with("tokload") && self.err.ends_with('\n'), "{self:?}");
        for part in parts {
            assert!(self.err.contains(part), "no {part:?} in {:?}", self.err);
        }
    }

    /// It ended with `code` and nothing more.
    #[track_caller]
    fn ends(&self, code: i32) {
        assert_eq!((self.code, self.out.as_str(), self.err.as_str()), (code, "", ""));
    }

    /// It ended with `code` and a table.
    #[track_caller]
    fn shows(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{self:?}");
        assert!(self.out.contains("TTFT ms") && self.out.contains("E2E ms"), "{self:?}");
        &self.out
    }

    /// What it showed, in one line, without what to do next and where it was saved.
    fn numbers(&self) -> String {
        let table = self.out.split("\nnext:").next().unwrap();
        table.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// A mock server with quick answers.
fn mock(faults: Faults) -> Mock {
    mock_at(0, faults)
}

fn mock_at(port: u16, faults: Faults) -> Mock {
    let serving = model::Settings::fixed(5.0, 1.0);
    let settings = Settings { port, model: "m".to_owned(), serving, faults, ..Settings::default() };
    Mock::start(settings).unwrap()
}

fn url(mock: &Mock) -> String {
    format!("http://{}", mock.address())
}

/// A short run of `more` against `base`.
fn run(base: &str, more: &str) -> String {
    format!("run --base-url {base} --random-input-len 8 --random-output-len 5 --num-warmups 1 {more}")
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn json_lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
